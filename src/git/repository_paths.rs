//! Where a repository has its working tree, its objects and its index: one question, which every look at a tree begins
//! with.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::call::Call;
use super::error::GitError;
use crate::base::object::ObjectId;

/// The places of a repository, as absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryPaths {
    /// The root of the working tree, as git names it.
    pub top: PathBuf,
    /// The directory of the objects.
    pub objects: PathBuf,
    /// The index.
    pub index: PathBuf,
}

impl RepositoryPaths {
    /// Asks for the places, and for the ids of objects besides, in this order.
    pub fn call(objects: &[&'static str]) -> Call {
        let paths = ["--show-toplevel", "--git-path", "objects", "--git-path", "index"];
        // `--path-format` holds for the options behind it only.
        Call::new("rev-parse").with(&["--path-format=absolute"]).with(&paths).with(objects)
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// It has other lines than were asked for: a path may hold an end of a line.
    pub fn read<const N: usize>(printed: &[u8]) -> Result<(Self, [ObjectId; N]), GitError> {
        let odd = || GitError::Unreadable("git names the repository in a way that cannot be read".to_owned());
        let lines: Vec<&[u8]> =
            printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let [top, objects, index, ids @ ..] = lines.as_slice() else { return Err(odd()) };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let ids: Result<Vec<_>, _> =
            ids.iter().map(|id| ObjectId::parse(&String::from_utf8_lossy(id))).collect();
        let ids = ids?.try_into().map_err(|_| odd())?;
        Ok((Self { top: path(top), objects: path(objects), index: path(index) }, ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_lines_that_were_asked_for() {
        let id = "a".repeat(40);
        let printed = format!("/r\n/r/.git/objects\n/r/.git/index\n{id}\n");
        let (paths, [commit]) = RepositoryPaths::read(printed.as_bytes()).unwrap();
        assert_eq!((paths.top, paths.index), ("/r".into(), "/r/.git/index".into()));
        assert_eq!(commit.to_string(), id);
        assert!(RepositoryPaths::read::<0>(printed.as_bytes()).is_err());
        assert!(RepositoryPaths::read::<2>(printed.as_bytes()).is_err());
        assert!(RepositoryPaths::read::<1>(b"/r\nwith a line\n/o\n/i\n").is_err());
    }
}
