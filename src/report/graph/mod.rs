//! A loop as a graph of its states, and the way of a run through it: as text, Mermaid, Graphviz and SVG.

pub(crate) mod graph_model;
pub(crate) mod graph_text;
mod layout;
pub(crate) mod svg;

pub use graph_model::{EdgeRow, Graph};
pub use graph_text::{dot, mermaid, text};
pub use svg::{CSS, embedded, standalone};
