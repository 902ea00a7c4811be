//! A loop as a graph of its states, and the way of a run through it: as text, Mermaid, Graphviz and SVG, and as a table
//! for those who do not see a picture.

mod layout;
mod markup;
mod model;
mod svg;
mod written;

pub use model::{Edge, End, Graph, Row, State};
pub use svg::{CSS, standalone, svg};
pub use written::{dot, mermaid, text};
