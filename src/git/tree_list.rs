//! Asks git what is in a tree, and reads the answer.

use super::call::Call;
use crate::base::object::ObjectId;

/// Asks for the paths of all files of a tree or a commit, from its top.
pub(crate) fn names(of: &ObjectId) -> Call {
    Call::new("ls-tree").with(&["-r", "-z", "--name-only", "--full-tree"]).id(of)
}

/// A line of a list with modes and ids.
pub(crate) struct ListedEntry<'p> {
    /// Its mode, in the six digits that git prints.
    pub(crate) mode: &'p str,
    /// Whether it is a tree itself.
    pub(crate) is_tree: bool,
    /// Its id.
    pub(crate) id: ObjectId,
    /// Where it lies, from the top.
    pub(crate) path: &'p [u8],
}

/// Reads such a list, whose lines end with NUL; nothing for a line that is none.
pub(crate) fn entries(printed: &[u8]) -> impl Iterator<Item = Option<ListedEntry<'_>>> {
    printed.split(|byte| *byte == 0).filter(|line| !line.is_empty()).map(|line| {
        // `100644 blob ID<tab>PATH`
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
        let (mode, kind, id) = (words.next()?, words.next()?, words.next()?);
        let id = ObjectId::parse(id).ok()?;
        Some(ListedEntry { mode, is_tree: kind == "tree", id, path: &line[tab + 1..] })
    })
}
