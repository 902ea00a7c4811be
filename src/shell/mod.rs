//! Shell text, read once: what is a word, an operator, quoted, substituted, a comment or a here-document. Findings about
//! masked failures, quoting and counts read it here, and so does whoever has to know which programs a check runs.
//!
//! It is a lexer of our own, and no crate: the text is one of a loop file, with templates in it (`${prev.output:shell}`)
//! whose surroundings are asked for, in any dialect of the shell, and often not whole. `docs/dependencies.md` names the
//! crates that were looked at.

pub mod command;
pub mod lexer;
pub mod token;
