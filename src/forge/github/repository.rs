//! The name of a repository, which becomes part of addresses.

use std::fmt;

/// `owner/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryName(String);

impl RepositoryName {
    /// Reads `owner/name`.
    pub fn parse(text: &str) -> Option<Self> {
        let is_part = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            // `..` would lead to another path of the API.
            !part.is_empty() && !matches!(part, "." | "..") && part.chars().all(plain)
        };
        let (owner, name) = text.split_once('/')?;
        (is_part(owner) && is_part(name)).then(|| Self(text.to_owned()))
    }

    /// Returns who has it.
    pub(crate) fn owner(&self) -> &str {
        self.0.split_once('/').map_or(self.0.as_str(), |(owner, _)| owner)
    }

    /// Returns the path of something in it, in the REST API.
    pub(crate) fn path(&self, below: &str) -> String {
        format!("/repos/{}{below}", self.0)
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
