//! Calls git for one directory, and leaves out of its answers the files that ll-loop itself writes.

pub(crate) mod branch;
pub(crate) mod delivery_stop;
pub(crate) mod pushed_refs;
pub(crate) mod scratch;
pub(crate) mod workspace;
pub(crate) mod worktree;

use std::path::Path;

use crate::base::own::is_own;
use crate::context::Session;
use crate::git::call::Call;
use crate::git::runner::Git;

/// Calls git in a directory. The variables that would point git to another repository are removed.
pub(crate) fn at(directory: &Path, session: &Session<'_>) -> Git {
    Git::new(directory, session.env.for_ourselves())
}

/// Asks for the commit that is checked out.
pub(crate) fn head() -> Call {
    Call::new("rev-parse").with(&["--verify", "--quiet"]).revision("HEAD^{commit}")
}

/// Returns the files that `git status --porcelain -z --no-renames` printed, without those of ll-loop itself.
pub(crate) fn changed(status: &str) -> impl Iterator<Item = &str> {
    let files = status.split('\0').filter(|change| !change.is_empty());
    files.map(|change| change.get(3..).unwrap_or(change)).filter(|file| !is_own(file.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_leave_behind_is_no_change() {
        let ours = "!! .loops/.running/\0?? .loops/.gitignore\0!! sub/.loops/.history/x/y.log\0";
        assert_eq!(changed(ours).count(), 0);
        assert_eq!(changed("").count(), 0);
        let others = " M .loops/main.yaml\0?? .loops/x.yaml\0!! .loops/gen.yaml\0 D src/old\0";
        let found: Vec<_> = changed(others).collect();
        assert_eq!(found, [".loops/main.yaml", ".loops/x.yaml", ".loops/gen.yaml", "src/old"]);
    }
}
