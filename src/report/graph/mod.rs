//! A loop as a graph of its states, and the way of a run through it: as text, Mermaid, Graphviz and SVG.

pub(crate) mod graph_model;
mod layout;
pub(crate) mod svg;
pub(crate) mod written;

pub use graph_model::{EdgeRow, Graph};
pub use svg::{CSS, embedded, standalone};
pub use written::{dot, mermaid, text};
