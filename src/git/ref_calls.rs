//! Calls that move refs between repositories: each moves nothing but what is named, whatever the settings of the user say.

use super::call::Call;
use crate::base::object::{IdError, ObjectId};

impl Call {
    /// Fetches what is named behind it: no tags and no submodules come along, no `FETCH_HEAD` is left behind, and no `gc` goes
    /// on in the background.
    pub fn fetch_from(url: &str) -> Self {
        let options =
            ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules"];
        Self::new("fetch").with(&options).named(url, "")
    }

    /// Pushes what is named behind it: no hook is run, and no tags or submodules are pushed along.
    pub fn push_to(url: &str) -> Self {
        let options = ["--quiet", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"];
        Self::new("push").with(&options).named(url, "")
    }

    /// Asks for the refs with the names that stand behind it.
    pub fn refs_of(url: &str) -> Self {
        Self::new("ls-remote").with(&["--quiet"]).named(url, "")
    }
}

/// Returns what a ref points at, by the answer to [`Call::refs_of`]. A name finds others that end in the same way, too.
///
/// # Errors
/// The line of the ref has no id.
pub(crate) fn ref_in(printed: &str, name: &str) -> Result<Option<ObjectId>, IdError> {
    let row = printed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix('\t'));
    row.map(ObjectId::parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_is_found_by_its_whole_name() {
        let id = "1".repeat(40);
        let printed = format!("{}\trefs/heads/x/refs/heads/a\n{id}\trefs/heads/a\n", "2".repeat(40));
        assert_eq!(ref_in(&printed, "refs/heads/a").unwrap(), Some(ObjectId::parse(&id).unwrap()));
        assert_eq!(ref_in(&printed, "refs/heads/b").unwrap(), None);
        assert!(ref_in("what\trefs/heads/a", "refs/heads/a").is_err());
    }
}
