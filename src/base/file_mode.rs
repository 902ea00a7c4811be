//! The modes that git knows.

use serde::{Deserialize, Serialize};

/// The mode of a file in a tree, as git writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileMode {
    /// A file.
    #[serde(rename = "100644")]
    File,
    /// A file that can be executed.
    #[serde(rename = "100755")]
    Executable,
    /// A link.
    #[serde(rename = "120000")]
    Link,
    /// Another repository, by its commit.
    #[serde(rename = "160000")]
    Repository,
}

impl FileMode {
    /// Reads what git writes.
    pub fn parse(mode: &str) -> Option<Self> {
        let all = [Self::File, Self::Executable, Self::Link, Self::Repository];
        all.into_iter().find(|known| known.word() == mode)
    }

    /// Returns what git writes.
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Repository => "160000",
        }
    }
}
