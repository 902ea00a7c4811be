//! Where the words of a repository are read.

/// Where commands are.
pub(super) const COMMANDS: &str = ".claude/commands";

/// The files of a repository, by their paths from its top, with `/` between their parts.
pub trait Texts {
    /// Returns the text of a file; none where there is none, where it is not text, or where a link leads out of the repository.
    fn text(&self, path: &str) -> Option<String>;

    /// Tells whether something has this path, also what is no text.
    fn is_there(&self, path: &str) -> bool;

    /// Returns the paths of all files below a directory.
    fn below(&self, directory: &str) -> Vec<String>;
}

/// A file, with as much of its text as is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidanceFile {
    /// Its path from the top of the repository.
    pub path: String,
    /// Its text.
    pub text: String,
}
