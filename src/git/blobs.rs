//! Reads the contents of many files in one call: a call for each takes longer than all of them together.

use super::call::Call;
use super::error::TreeError;
use super::runner::Git;
use crate::base::object::ObjectId;

/// An object as `cat-file --batch` prints it: `ID TYPE SIZE`, and the content between two ends of lines.
pub(crate) struct PrintedObject<'p> {
    kind: &'p str,
    /// What is in it.
    pub(crate) content: &'p [u8],
    /// What is printed behind it.
    pub(crate) rest: &'p [u8],
}

impl<'p> PrintedObject<'p> {
    /// Cuts the first object from what is printed; nothing where that is cut short.
    pub(crate) fn first(printed: &'p [u8]) -> Option<Self> {
        let end = printed.iter().position(|byte| *byte == b'\n')?;
        let mut words = std::str::from_utf8(&printed[..end]).ok()?.rsplit(' ');
        let size: usize = words.next()?.parse().ok()?;
        let kind = words.next()?;
        let end_of_content = size.checked_add(end + 1)?;
        let content = printed.get(end + 1..end_of_content)?;
        Some(Self { kind, content, rest: printed.get(end_of_content + 1..)? })
    }
}

/// Reads the contents of files, in their order.
///
/// # Errors
/// Git fails, or one of them is no content of a file.
pub(crate) fn contents(git: &Git, ids: &[&ObjectId]) -> Result<Vec<Vec<u8>>, TreeError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let asked: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let printed = git.bytes(&Call::new("cat-file").with(&["--batch"]), asked.as_bytes())?;
    let mut rest = printed.as_slice();
    let mut all = Vec::with_capacity(ids.len());
    for id in ids {
        let object = PrintedObject::first(rest).filter(|object| object.kind == "blob");
        let object =
            object.ok_or_else(|| TreeError::unfit(format!("git does not print the content of {id}")))?;
        all.push(object.content.to_vec());
        rest = object.rest;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn contents_are_read_in_one_call_whatever_they_hold() {
        let place = tempfile::tempdir().unwrap();
        let path = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin".to_owned();
        let git = Git::new(place.path(), BTreeMap::from([("PATH".to_owned(), path)]));
        git.line(&Call::new("init").with(&["--quiet"])).unwrap();
        let write = Call::new("hash-object").with(&["-w", "--stdin"]);
        let all: Vec<(ObjectId, Vec<u8>)> = [&b""[..], b"a\n2\n", b"\xff\0b"]
            .into_iter()
            .map(|content| {
                let id = String::from_utf8(git.bytes(&write, content).unwrap()).unwrap();
                (ObjectId::parse(id.trim()).unwrap(), content.to_vec())
            })
            .collect();
        let ids: Vec<&ObjectId> = all.iter().map(|(id, _)| id).collect();
        let found: Vec<Vec<u8>> = all.iter().map(|(_, content)| content.clone()).collect();
        assert_eq!(contents(&git, &ids).unwrap(), found);
        let absent = ObjectId::parse(&"1".repeat(40)).unwrap();
        assert!(contents(&git, &[&absent]).is_err());
    }
}
