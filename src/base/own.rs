//! Knows by their paths the files that ll-loop itself writes into a working tree: they are never work of a run.

/// The directories in `.loops` that runs fill, and that no commit should have.
pub const OF_RUNS: [&str; 4] = [".running", ".history", ".worktrees", ".reuse"];

/// What the names of bundles end with.
const BUNDLE: &[u8] = b".llz";

/// What the names of files begin with that are still written.
pub const UNFINISHED: &str = ".ll-loop-";

/// Tells whether a path, as git prints it, is one that ll-loop itself writes.
pub fn is_own(path: &[u8]) -> bool {
    is_of_runs(path) || is_of_criteria(path) || path.ends_with(BUNDLE)
}

/// Tells whether a path is that of a state file, or of one that was about to become it when its writer was killed.
pub fn is_of_criteria(path: &[u8]) -> bool {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let [.., b".loop", name] = parts.as_slice() else { return false };
    *name == b"state.json" || name.starts_with(UNFINISHED.as_bytes())
}

/// Tells whether a path is one of the files of runs in `.loops`.
pub fn is_of_runs(path: &[u8]) -> bool {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    parts.windows(2).any(|pair| {
        pair[0] == b".loops"
            // ll-loop writes that file, so that git passes over the directories of runs.
            && (pair[1] == b".gitignore" || OF_RUNS.iter().any(|name| name.as_bytes() == pair[1]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_leave_behind_is_told_from_the_work_of_people() {
        for own in [
            ".loops/.running/",
            ".loops/.running",
            ".loops/.gitignore",
            "sub/.loops/.history/x/y.log",
            ".loops/.worktrees/a/src/b",
            ".loop/state.json",
            "sub/.loop/state.json",
            ".loop/.ll-loop-x7Gh2a",
            "out/main-1.llz",
        ] {
            assert!(is_own(own.as_bytes()), "{own}");
        }
        for other in [
            ".loops/main.yaml",
            ".loops/x.gitignore",
            ".loop/notes.md",
            "x.loop/state.json",
            ".ll-loop-x7Gh2a",
            "a.loops/.running/x",
            "src/.gitignore",
            "x.llz.txt",
            "",
        ] {
            assert!(!is_own(other.as_bytes()), "{other}");
        }
        // Somebody may call a loop file so.
        assert!(!is_of_runs(b".loops/x.llz"));
    }
}
