//! Loops in an editor: the language server, which says what `validate` says, and what it shares with the command line.

mod capabilities;
pub(crate) mod checked_file;
mod completion;
mod cursor_place;
mod documents;
mod editor_queries;
mod findings;
pub(crate) mod fix;
pub(crate) mod format;
pub(crate) mod formatted_files;
mod key_meanings;
mod loop_names;
mod navigation;
mod outline;
pub(crate) mod project_check;
mod protocol;
mod repair_edit;
pub(crate) mod server;
mod tests_of_loops;
mod text_document;
mod workspace;
pub(crate) mod write_back;
