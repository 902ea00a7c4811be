//! Loops in an editor: the language server, which says what `validate` says, and what it shares with the command line.

mod capabilities;
pub(crate) mod checked_file;
mod documents;
mod findings;
mod loop_names;
pub(crate) mod project_check;
mod protocol;
pub(crate) mod server;
mod tests_of_loops;
mod text_document;
mod workspace;
