//! Asks git what differs from the commit that is checked out, and reads the answer.

use super::call::Call;
use crate::base::object::ObjectId;

/// What happens to files that git does not track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untracked {
    /// They are listed, without those that are ignored.
    Listed,
    /// They are not looked for.
    LeftOut,
}

/// Asks for the commit, and for everything that differs from it.
pub(crate) fn call(untracked: Untracked) -> Call {
    let untracked = match untracked {
        Untracked::Listed => "--untracked-files=all",
        Untracked::LeftOut => "--untracked-files=no",
    };
    Call::new("status").with(&[
        "--porcelain=v2",
        "-z",
        "--branch",
        // Counting the commits ahead and behind takes long in a large history, and nobody asks for
        // them.
        "--no-ahead-behind",
        untracked,
        "--ignored=no",
        // A rename is a line with two paths. Whoever compares trees wants both, each on its own.
        "--no-renames",
        // `.gitmodules` may say `ignore = all`, and then a submodule that moved is not listed.
        "--ignore-submodules=none",
    ])
}

/// A file that differs from the commit.
pub(crate) struct StatusLine<'s> {
    /// The whole line.
    pub(crate) line: &'s [u8],
    /// The path from the top of the working tree; that of an untracked repository ends with a slash.
    pub(crate) path: &'s [u8],
    /// How it differs.
    pub(crate) standing: FileStanding,
}

/// How a file differs from the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileStanding {
    /// Git tracks it.
    Tracked {
        /// Whether the index no longer has it.
        is_removed: bool,
        /// Whether the file differs from the index.
        unstaged: bool,
    },
    /// It is a repository of its own that git tracks by its commit.
    Submodule {
        /// Whether it has changes that no commit of its own has.
        is_dirty: bool,
    },
    /// A merge left it in conflict.
    Unmerged,
    /// Git does not track it.
    Untracked,
}

impl StatusLine<'_> {
    /// Tells whether its content stands in the working tree only, so that no id of git names it.
    pub(crate) fn is_unhashed(&self) -> bool {
        match self.standing {
            FileStanding::Tracked { unstaged, .. } => unstaged,
            FileStanding::Unmerged => true,
            FileStanding::Untracked => !self.is_repository(),
            FileStanding::Submodule { .. } => false,
        }
    }

    /// Tells whether it is a single file that git tracks.
    pub(crate) fn is_of_a_file(&self) -> bool {
        matches!(self.standing, FileStanding::Tracked { .. })
    }

    /// Tells whether the commit has it.
    pub(crate) fn is_in_commit(&self) -> bool {
        match self.standing {
            // `1 XY sub mH mI mW hH hI path`
            FileStanding::Tracked { .. } | FileStanding::Submodule { .. } => {
                self.line.splitn(5, |byte| *byte == b' ').nth(3).is_some_and(|mode| mode != b"000000")
            }
            FileStanding::Unmerged => true,
            FileStanding::Untracked => false,
        }
    }

    /// Returns what the index has of a tracked file.
    pub(crate) fn in_index(&self) -> Option<ObjectId> {
        // `1 XY sub mH mI mW hH hI path`
        let field = self.line.splitn(9, |byte| *byte == b' ').nth(7);
        let is_file = matches!(self.standing, FileStanding::Tracked { .. });
        field.filter(|_| is_file).and_then(|id| ObjectId::parse(std::str::from_utf8(id).ok()?).ok())
    }

    /// Tells whether it is a repository of its own.
    pub(crate) fn is_repository(&self) -> bool {
        match self.standing {
            FileStanding::Submodule { .. } => true,
            FileStanding::Untracked => self.path.ends_with(b"/"),
            FileStanding::Tracked { .. } | FileStanding::Unmerged => false,
        }
    }
}

/// Reads the commit and the files from what git prints.
pub(crate) fn read(status: &[u8]) -> (Option<String>, Vec<StatusLine<'_>>) {
    let mut commit = None;
    let mut changes = Vec::new();
    for line in status.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        // `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`, `? path`
        let fields = match line[0] {
            // `# branch.oid (initial)` is what git says before the first commit.
            b'#' => {
                let text = String::from_utf8_lossy(line);
                if let Some(id) = text.strip_prefix("# branch.oid ").filter(|id| *id != "(initial)") {
                    commit = Some(id.to_owned());
                }
                continue;
            }
            b'1' => 9,
            b'u' => 11,
            b'?' => 2,
            // Lines of type `2` (renames) and `!` (ignored files) are not asked for.
            _ => continue,
        };
        let parts: Vec<_> = line.splitn(fields, |byte| *byte == b' ').collect();
        let Some(path) = parts.last().copied().filter(|_| parts.len() == fields) else { continue };
        let letter = |field: usize, at: usize| parts.get(field).and_then(|part| part.get(at)).copied();
        let standing = match fields {
            2 => FileStanding::Untracked,
            _ if letter(2, 0) == Some(b'S') => {
                // The field is `S<c><m><u>`: whether its commit moved, its files changed, and it
                // has untracked files.
                FileStanding::Submodule { is_dirty: letter(2, 2) == Some(b'M') || letter(2, 3) == Some(b'U') }
            }
            9 => FileStanding::Tracked {
                is_removed: letter(1, 0) == Some(b'D'),
                unstaged: letter(1, 1) != Some(b'.'),
            },
            _ => FileStanding::Unmerged,
        };
        changes.push(StatusLine { line, path, standing });
    }
    (commit, changes)
}
