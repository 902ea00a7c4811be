//! A loop as a graph of its states, and the way of a run through it: as text, Mermaid, Graphviz and SVG.

mod layout;
pub(crate) mod model;
pub(crate) mod svg;
pub(crate) mod written;

pub use model::{EdgeRow, Graph};
pub use svg::{CSS, embedded, standalone};
pub use written::{dot, mermaid, text};
