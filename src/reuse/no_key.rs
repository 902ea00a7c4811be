//! Why a run has no key: something that its checks may read is not known, so nothing is reused and nothing is kept.

use crate::base::template::RenderError;
use crate::base::text::{listed_in_part, one_line};
use crate::git::error::GitError;
use crate::judges::pattern::PatternError;

/// Why a run has no key.
#[derive(Debug, thiserror::Error)]
pub enum NoKey {
    /// Git does not say which files there are.
    #[error("the files of the repository cannot be listed: {0}")]
    Git(#[from] GitError),
    /// An input or the command of a tool needs a value that is not there.
    #[error("`{template}`: {error}")]
    Value {
        /// The input or the command, as it is written.
        template: String,
        /// What is missing.
        error: RenderError,
    },
    /// A value makes an input no pattern.
    #[error("the input `{}` is not a valid pattern: {error}", one_line(input, 80))]
    Pattern {
        /// The input, with its values.
        input: String,
        /// What is wrong with it.
        error: PatternError,
    },
    /// Patterns that hold no file: a misspelt one would make every run the same as the first.
    #[error("{} {} no file", listed_in_part(.0), if .0.len() == 1 { "holds" } else { "hold" })]
    NoFile(Vec<String>),
    /// A check reads a file that git ignores, and that no key has unless an input names it.
    #[error(
        "`{tool}` reads `{}`, which git ignores: only an input that is its path or folder, without `*`, counts it",
        one_line(path, 120)
    )]
    IgnoredSource {
        /// Its path from the root of the repository.
        path: String,
        /// The tool.
        tool: &'static str,
    },
    /// The content of a submodule is not that of its commit.
    #[error("the submodule `{}` has changes of its own", one_line(.0, 120))]
    DirtySubmodule(String),
    /// The index of a submodule tells git not to look at one of its files.
    #[error(
        "the index of the submodule `{}` tells git not to look at `{}`",
        one_line(submodule, 120),
        one_line(path, 120)
    )]
    UnseenInSubmodule {
        /// The path of the submodule.
        submodule: String,
        /// The path of the file from there.
        path: String,
    },
    /// An input is a file that git ignores in a submodule: no commit has it.
    #[error(
        "git ignores `{}` in the submodule `{}`, and an input names it",
        one_line(path, 120),
        one_line(submodule, 120)
    )]
    IgnoredInSubmodule {
        /// The path of the submodule.
        submodule: String,
        /// The path of the file from there.
        path: String,
    },
    /// Git tracks files below what is a link now. What else it leads to is in no list.
    #[error("`{}` is a link, and git tracks files below it", one_line(.0, 120))]
    LinkedFolder(String),
    /// A link leads to a folder, and something that is read there is in no list or no input.
    #[error("`{}` is a link to a folder, and not all that lies there is an input", one_line(.0, 120))]
    UnseenBehindLink(String),
    /// Git does not look into a repository that is not a submodule.
    #[error("`{}` is a repository of its own, and no submodule", one_line(.0, 120))]
    NestedRepository(String),
    /// A file cannot be read.
    #[error("`{}` cannot be read: {why}", one_line(path, 120))]
    Unreadable {
        /// Its path from the root of the repository.
        path: String,
        /// Why.
        why: std::io::Error,
    },
    /// There are more inputs than a key is made of.
    #[error("there are more than {0} inputs")]
    TooMany(usize),
    /// A hermetic run would have to hide more places than it can.
    #[error("it would have to hide more than {0} places: name folders, and not single files")]
    TooMuchHidden(usize),
    /// A tool did not say which one it is.
    #[error("the tool `{}` {why}", one_line(command, 80))]
    Tool {
        /// Its command.
        command: String,
        /// What it did instead.
        why: ToolFailure,
    },
    /// What is measured lies elsewhere.
    #[error("its scope `{}` is outside of the repository", one_line(.0, 120))]
    ScopeOutside(String),
    /// The run was asked to end meanwhile.
    #[error("it was interrupted")]
    Interrupted,
}

/// What a tool did that did not say which one it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolFailure {
    /// Its command has a quote without an end, or no word.
    #[error("is no command")]
    NoCommand,
    /// It could not be started.
    #[error("cannot be started: {0}")]
    NotStarted(String),
    /// It took too long.
    #[error("did not end within 10 seconds")]
    TooLong,
    /// It printed too much.
    #[error("printed more than 1 MiB")]
    TooMuch,
    /// It failed.
    #[error("failed with exit code {0}")]
    Failed(i32),
}
