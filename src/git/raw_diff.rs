//! Reads the differences between two trees that git prints.

use std::collections::HashMap;

use super::error::GitError;
use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::engine::changes::{FileMode, LineCount};

/// A difference between two trees at one path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The path.
    pub(crate) path: Vec<u8>,
    /// The path that the file had, where it has another one now.
    pub(crate) from: Option<Vec<u8>>,
    /// What stood there.
    pub(crate) old: Option<(FileMode, ObjectId)>,
    /// What stands there.
    pub(crate) new: Option<(FileMode, ObjectId)>,
    /// Lines that came and went, where content has lines.
    pub(crate) lines: Option<LineCount>,
}

/// Reads what `git diff-tree -r -z --raw --no-abbrev` or `git diff-index` prints, with `--numstat` or without.
pub(crate) fn read(printed: &[u8]) -> Result<Vec<Difference>, GitError> {
    let mut fields = printed.split(|byte| *byte == 0);
    let mut found = Vec::new();
    let mut counts = HashMap::new();
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let unread = || {
            let line = one_line(&String::from_utf8_lossy(head), 200);
            GitError::Unreadable(format!("git printed a change that cannot be read: {line}"))
        };
        if head.starts_with(b":") {
            found.push(raw(head, &mut fields).ok_or_else(unread)?);
        } else {
            let (path, lines) = counted(head, &mut fields).ok_or_else(unread)?;
            counts.insert(path, lines);
        }
    }
    for difference in &mut found {
        difference.lines = counts.remove(&difference.path).flatten();
    }
    Ok(found)
}

/// Reads `:100644 100644 ID ID M`, and the paths behind it.
fn raw<'f>(head: &[u8], fields: &mut impl Iterator<Item = &'f [u8]>) -> Option<Difference> {
    let words: Vec<&str> = std::str::from_utf8(head).ok()?.strip_prefix(':')?.split(' ').collect();
    let [old_mode, new_mode, old, new, status] = words.as_slice() else { return None };
    let side = |mode: &str, id: &str| -> Option<Option<(FileMode, ObjectId)>> {
        if mode == "000000" {
            return Some(None);
        }
        Some(Some((FileMode::parse(mode)?, ObjectId::parse(id).ok()?)))
    };
    let first = fields.next()?.to_vec();
    let is_moved = status.starts_with(['R', 'C']);
    let second = if is_moved { Some(fields.next()?.to_vec()) } else { None };
    let (path, from) = match second {
        Some(path) => (path, Some(first)),
        None => (first, None),
    };
    Some(Difference { path, from, old: side(old_mode, old)?, new: side(new_mode, new)?, lines: None })
}

/// Reads `3\t1\tPATH`, or `3\t1\t` and two paths behind it; binary content has hyphens.
fn counted<'f>(
    head: &[u8],
    fields: &mut impl Iterator<Item = &'f [u8]>,
) -> Option<(Vec<u8>, Option<LineCount>)> {
    let mut parts = head.splitn(3, |byte| *byte == b'\t');
    let mut count = || std::str::from_utf8(parts.next()?).ok().map(|text| text.parse::<u64>().ok());
    let (came, went) = (count()?, count()?);
    let mut path = parts.next()?.to_vec();
    if path.is_empty() {
        let _old = fields.next()?;
        path = fields.next()?.to_vec();
    }
    Some((path, came.zip(went).map(|(added, removed)| LineCount { added, removed })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_difference_is_read() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let printed = format!(
            ":100644 100755 {one} {two} M\0a\tb\0:000000 120000 {zero} {two} A\0new\0:100644 100644 {one} {one} R100\0old\0moved\0\
             3\t1\ta\tb\0-\t-\tnew\00\t0\t\0old\0moved\0",
            zero = "0".repeat(40)
        );
        let found = read(printed.as_bytes()).unwrap();
        let id = |text: &str| ObjectId::parse(text).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].path, b"a\tb");
        assert_eq!(found[0].new, Some((FileMode::Executable, id(&two))));
        assert_eq!(found[0].lines, Some(LineCount { added: 3, removed: 1 }));
        assert_eq!((&found[1].old, found[1].lines), (&None, None));
        assert_eq!(
            (found[2].from.as_deref(), found[2].lines),
            (Some(&b"old"[..]), Some(LineCount { added: 0, removed: 0 }))
        );
        assert!(read(b":100644 nonsense\0a\0").is_err());
        assert!(read(b":100644 100644 x y M\0a\0").is_err());
        assert!(read(b"").unwrap().is_empty());
    }
}
