//! Which files of the commit on which a run began are judges by their names, and whether they were written to since.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::ignored;
use crate::base::gitpath;
use crate::files::file_time::FileTime;
use crate::judges::compare::is_by_name;

/// The judges of the commit on which a run began that are some by their names alone.
pub(super) struct CommittedJudges {
    paths: Vec<String>,
    /// Where the files of the commit lie: a new file beside them may be obeyed before they are.
    directories: BTreeSet<String>,
}

impl CommittedJudges {
    /// Takes those among the files of a commit.
    pub(super) fn among(files: impl Iterator<Item = String>) -> Self {
        let mut found = Self { paths: Vec::new(), directories: BTreeSet::from([String::new()]) };
        for path in files {
            if let Some((directory, _)) = path.rsplit_once('/')
                && !found.directories.contains(directory)
            {
                found.directories.insert(directory.to_owned());
            }
            if is_by_name(&path) {
                found.paths.push(path);
            }
        }
        found
    }

    /// Tells whether one of them was written to or is gone, or a further one came.
    pub(super) fn are_moved(&self, top: &Path, began: FileTime) -> bool {
        let is_later = |path: &str| ignored::changed_at(path, top).is_none_or(|at| at >= began);
        self.paths.iter().any(|path| is_later(path))
            || self.directories.iter().filter(|directory| is_later(directory)).any(|directory| {
                let entries =
                    std::fs::read_dir(ignored::place(top, directory)).into_iter().flatten().flatten();
                let paths = entries.map(|entry| {
                    let name = gitpath::to_text(entry.file_name().as_bytes());
                    if directory.is_empty() { name } else { format!("{directory}/{name}") }
                });
                paths.filter(|path| is_by_name(path)).any(|path| is_later(&path))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file_time::next_moment;

    #[test]
    fn judges_that_were_written_to_or_came_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let write = |path: &str| std::fs::write(top.join(path), path).unwrap();
        for folder in ["src", "tests"] {
            std::fs::create_dir(top.join(folder)).unwrap();
        }
        let committed = ["Makefile", "src/main.py", "tests/test_main.py"];
        for path in committed {
            write(path);
        }
        let judges = CommittedJudges::among(committed.map(str::to_owned).into_iter());
        let began = next_moment(top);
        next_moment(top);
        write("src/main.py");
        write("coverage.xml");
        assert!(!judges.are_moved(top, began));
        write("tests/conftest.py");
        assert!(judges.are_moved(top, began));
        let began = next_moment(top);
        assert!(!judges.are_moved(top, began));
        std::fs::remove_file(top.join("tests/test_main.py")).unwrap();
        assert!(judges.are_moved(top, began));
        // The content is what it was, and it was another one meanwhile.
        let began = next_moment(top);
        next_moment(top);
        write("tests/test_main.py");
        assert!(judges.are_moved(top, began));
    }
}
