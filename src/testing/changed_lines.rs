//! Which lines of the files of a loop a change touches.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::context::Session;
use crate::context::error::Error;
use crate::git::call::Call;
use crate::repository::at;

/// Returns the lines that are not as in this commit, for each file of these.
///
/// # Errors
/// There is no such commit, or git cannot be asked.
pub(crate) fn since(
    reference: &str,
    files: &[String],
    session: &Session<'_>,
) -> Result<Vec<(String, RangeInclusive<usize>)>, Error> {
    let git = at(&session.cwd, session);
    let commit = Call::new("rev-parse").with(&["--verify", "--quiet"]).named(reference, "^{commit}");
    let commit = git.id(&commit).map_err(|_| {
        Error::refused(format!("`--in-diff {reference}` names no commit"))
            .with_hint("name a branch, a tag or a commit; a shallow clone may not have it")
    })?;
    let mut all = Vec::new();
    for file in files.iter().filter(|file| session.path(Path::new(file)).is_file()) {
        // Without the programs that a repository may name for diffs, which print no hunks.
        let diff =
            Call::new("diff").with(&["-U0", "--no-color", "--no-ext-diff", "--no-textconv"]).id(&commit);
        let diff = diff.path(file.as_str()).literal();
        let printed =
            git.bytes(&diff, &[]).map_err(|why| Error::refused(format!("cannot compare `{file}`: {why}")))?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        // A file that git does not know yet is new as a whole.
        let listed = Call::new("ls-files").with(&["--error-unmatch"]).path(file.as_str()).literal();
        if printed.is_empty() && git.line(&listed).is_err() {
            all.push((file.clone(), 1..=usize::MAX));
        }
        all.extend(hunks(&printed).into_iter().map(|lines| (file.clone(), lines)));
    }
    Ok(all)
}

/// Reads the heads of hunks: `@@ -1,2 +3,4 @@`.
fn hunks(diff: &str) -> Vec<RangeInclusive<usize>> {
    let heads = diff.lines().filter_map(|line| line.strip_prefix("@@ -"));
    heads
        .filter_map(|head| {
            let new = head.split(" +").nth(1)?.split(' ').next()?;
            let (start, count) = new.split_once(',').unwrap_or((new, "1"));
            let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
            // Where lines went, the one before says it.
            Some(start.max(1)..=(start + count.max(1) - 1).max(1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heads_of_hunks_say_which_lines_are_new() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@ x\n-a\n+b\n@@ -4,0 +5,3 @@\n@@ -9,2 +11,0 @@\n";
        assert_eq!(hunks(diff), [1..=1, 5..=7, 11..=11]);
    }
}
