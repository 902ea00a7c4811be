//! A loop as a graph of its states, and the way of a run through it: as text, Mermaid, Graphviz and SVG.

mod layout;
mod markup;
mod model;
mod svg;
mod written;

pub use model::Graph;
pub use svg::standalone;
pub use written::{dot, mermaid, text};
