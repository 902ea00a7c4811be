//! Tells for files that git would send through a filter whether they changed. No filter is started: what one of them
//! would make of a file is known for Git LFS alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::look_error::LookError;
use crate::base::object::ObjectId;
use crate::base::text::{hex, listed, plural};
use crate::files::read;
use crate::git::call::Call;
use crate::git::in_run::GitCalls;
use crate::git::status::StatusLine;

/// Files that may or may not have changed.
pub(super) struct Untold {
    /// They.
    pub(super) paths: Vec<Vec<u8>>,
    /// A sentence about them.
    pub(super) sentence: String,
}

/// Leaves out what only looks changed because no filter ran. Returns what cannot be told.
pub(super) async fn settle(
    git: &mut GitCalls,
    top: &Path,
    lines: &mut Vec<StatusLine<'_>>,
) -> Result<Option<Untold>, LookError> {
    let asked: Vec<u8> =
        lines.iter().filter(|line| line.is_unhashed()).flat_map(|line| [line.path, b"\0"].concat()).collect();
    // Without filters, `status` has told the truth, and the files need no other look.
    if asked.is_empty() || !git.has_filters(top).await? {
        return Ok(None);
    }
    let attributes = Call::new("check-attr").with(&["-z", "--stdin", "filter"]);
    let printed = git.feed(top, &attributes, asked).await?;
    let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    let filters: BTreeMap<&[u8], String> = fields
        .chunks_exact(3)
        .map(|field| (field[0], String::from_utf8_lossy(field[2]).into_owned()))
        // These are no names of filters, but what `check-attr` says where there is none.
        .filter(|(_, name)| !["unspecified", "unset", "set", ""].contains(&name.as_str()))
        .collect();
    let (mut kept, mut paths, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for line in std::mem::take(lines) {
        match filters.get(line.path).map(String::as_str) {
            Some("lfs") if is_pointed_to(git, top, &line).await? => {}
            Some("lfs") | None => kept.push(line),
            Some(name) => {
                paths.push(line.path.to_vec());
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    *lines = kept;
    let sentence = format!(
        "whether {} changed is not known: git would send {} through {}, which ll-loop does not start",
        plural(paths.len() as u64, "file"),
        if paths.len() == 1 { "it" } else { "them" },
        listed(names.iter().map(|name| format!("the filter `{name}`")), "and"),
    );
    Ok((!paths.is_empty()).then_some(Untold { paths, sentence }))
}

/// Tells whether the index has the pointer that Git LFS makes of a file.
async fn is_pointed_to(git: &mut GitCalls, top: &Path, line: &StatusLine<'_>) -> Result<bool, LookError> {
    let Some(known) = line.in_index() else { return Ok(false) };
    // It was removed or replaced since, and that is a change.
    let Ok(mut file) = read::open(&top.join(OsStr::from_bytes(line.path))) else { return Ok(false) };
    let (mut digest, mut length) = (Sha256::new(), 0);
    let take = |piece: &[u8]| {
        digest.update(piece);
        length += piece.len();
    };
    git.read(&mut file, take).await?;
    let oid = hex(&digest.finalize());
    // The pointer has exactly this form (git-lfs, `docs/spec.md`), so its id can be computed.
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {length}\n");
    let hash = Call::new("hash-object").with(&["--stdin"]);
    let id = git.feed(top, &hash, pointer.into_bytes()).await?;
    Ok(ObjectId::parse(String::from_utf8_lossy(&id).trim()).is_ok_and(|id| id == known))
}
