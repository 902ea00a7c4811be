//! The protected files of a working tree: which there are before a confined action, and what appeared beside them.
//!
//! An engine keeps what is there from being written. What it cannot keep an action from, because nothing was there to
//! bind, or because a link led elsewhere, is found here before anything of ours looks at the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::base::protected_paths::{is_sandboxed, sandboxed_at_root};
use crate::base::text::up_to;
use crate::files::file_name::file_name;
use crate::files::file_time::FileTime;
use crate::files::read::{self, MIB};
use crate::files::replace::create;

/// What is downloaded or built: no tool looks for settings there, and there is much of it.
const SKIPPED: [&str; 7] = ["node_modules", "target", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"];

/// What ll-loop itself writes below protected directories.
const OURS: [&str; 4] = [".loops/.running", ".loops/.history", ".loops/.worktrees", ".loops/.gitignore"];

/// The file in which an agent leaves word for the next session.
pub const CONTINUATION: &str = ".claude/ll-continue-prompt.md";

/// Protected paths that are directories where they are there, so that an empty one stands in for them.
const DIRECTORIES: [&str; 9] =
    [".git/hooks", ".github", ".codex", ".gemini", ".qwen", ".cursor", ".vscode", ".devcontainer", ".husky"];

/// A file beyond this size is not copied: it is compared by its size and times.
const MOST_COPIED: u64 = 4 * 1024 * 1024;

/// Directories that are looked into at most.
// The whole tree is read before and after each action; what is beyond is said as missing, and the action runs.
const MOST_DIRECTORIES: usize = 50_000;

/// What is protected in a working tree.
#[derive(Debug, Default)]
pub struct ProtectedFiles {
    /// What is there: files and directories, each the highest protected one.
    pub present: BTreeSet<PathBuf>,
    /// What is there as a link, or with a second name: a mount protects neither.
    linked: BTreeMap<PathBuf, FileCopy>,
    /// Whether there were too many directories to look into all.
    pub is_partial: bool,
    /// Whether everything is copied, because no mount protects it.
    copies_all: bool,
}

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FileCopy {
    Link(PathBuf),
    File { mode: u32, bytes: Vec<u8> },
    Large { size: u64, changed: FileTime },
}

impl ProtectedFiles {
    /// Looks at a working tree and at its directories of git.
    ///
    /// # Errors
    /// The working tree cannot be read.
    pub fn look(root: &Path, git: &[PathBuf]) -> io::Result<Self> {
        Self::default().found(root, git)
    }

    /// The same, with a copy of everything, for an engine that prevents nothing of it.
    ///
    /// # Errors
    /// The working tree cannot be read.
    pub fn copied(root: &Path, git: &[PathBuf]) -> io::Result<Self> {
        Self { copies_all: true, ..Self::default() }.found(root, git)
    }

    fn found(self, root: &Path, git: &[PathBuf]) -> io::Result<Self> {
        let mut found = self;
        let mut left = MOST_DIRECTORIES;
        let mut stack = vec![(root.to_owned(), String::new())];
        while let Some((directory, shown)) = stack.pop() {
            if left == 0 {
                found.is_partial = true;
                break;
            }
            left -= 1;
            let entries = match fs_err::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if shown.is_empty() => return Err(error),
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let shown = if shown.is_empty() { name.clone() } else { format!("{shown}/{name}") };
                let Ok(kind) = entry.file_type() else { continue };
                // Those of repositories inside, too: our own `git status` would start what their configuration names.
                if name == ".git" {
                    found.git_directory(&entry.path(), kind.is_dir());
                } else if is_sandboxed(&shown) {
                    found.note(entry.path());
                } else if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                    stack.push((entry.path(), shown));
                }
            }
        }
        // Those of a linked working tree lie outside of it.
        for directory in git {
            found.git_directory(directory, true);
        }
        Ok(found)
    }

    /// Looks at a directory of git, with those of repositories inside.
    fn git_directory(&mut self, path: &Path, is_directory: bool) {
        if !is_directory {
            // A link file: who changes it leads our git elsewhere.
            return self.note(path.to_owned());
        }
        // Each of these can name a program that git starts, or lead git to another repository.
        for name in ["hooks", "config", "config.worktree", "commondir", "gitdir", "info/attributes"] {
            let part = path.join(name);
            if part.symlink_metadata().is_ok() {
                self.note(part);
            }
        }
        for name in ["modules", "worktrees"] {
            for entry in std::fs::read_dir(path.join(name)).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    self.git_directory(&entry.path(), true);
                }
            }
        }
    }

    fn note(&mut self, path: PathBuf) {
        for entry in all_below(&path) {
            let Ok(metadata) = entry.symlink_metadata() else { continue };
            // Under another name, the same file can be written past the mount.
            let is_second = metadata.is_file() && (metadata.nlink() > 1 || self.copies_all);
            if (metadata.is_symlink() || is_second)
                && let Ok(copy) = FileCopy::of(&entry, &metadata)
            {
                self.linked.insert(entry, copy);
            }
        }
        self.present.insert(path);
    }

    /// Returns what is protected and can be bound: no links.
    pub fn bound(&self) -> impl Iterator<Item = &PathBuf> {
        self.present.iter().filter(|path| !path.is_symlink())
    }

    /// Returns the directories from the root, or from a directory of git, down to each protected path, the outermost first.
    pub fn above(&self, root: &Path, git: &[PathBuf]) -> BTreeSet<PathBuf> {
        let parents = self.present.iter().flat_map(|path| path.ancestors().skip(1));
        let is_inside = |parent: &&Path| {
            let mut tops = std::iter::once(root).chain(git.iter().map(PathBuf::as_path));
            *parent != root && tops.any(|top| parent.starts_with(top))
        };
        parents.filter(is_inside).map(Path::to_owned).collect()
    }

    /// Finds what is there against the rules after an action, puts it back, and names it. What appeared is moved to `aside`.
    ///
    /// # Errors
    /// Something cannot be put back, or the tree cannot be read.
    pub fn put_back(&self, root: &Path, git: &[PathBuf], aside: &Path) -> io::Result<Vec<String>> {
        let mut changed = Vec::new();
        for (path, copy) in &self.linked {
            let now = path.symlink_metadata().and_then(|metadata| FileCopy::of(path, &metadata));
            if now.ok().as_ref() != Some(copy) {
                if let Some(directory) = path.parent() {
                    fs_err::create_dir_all(directory)?;
                }
                copy.restore(path)?;
                changed.push(shown(path, root));
            }
        }
        let after = Self::look(root, git)?;
        for path in after.present.difference(&self.present) {
            if is_word_for_next(path) || is_harmless(path) {
                continue;
            }
            fs_err::create_dir_all(aside)?;
            // With a number: two files of one name must not overwrite each other there.
            let place = aside.join(format!("{}-{}", changed.len(), file_name(path)));
            if fs_err::rename(path, &place).is_err() {
                // Another file system: what appeared is the action's own work, and named in every report.
                remove(path)?;
            }
            changed.push(shown(path, root));
        }
        Ok(changed)
    }
}

impl FileCopy {
    fn of(path: &Path, metadata: &Metadata) -> io::Result<Self> {
        if metadata.is_symlink() {
            return Ok(Self::Link(fs_err::read_link(path)?));
        }
        if metadata.len() > MOST_COPIED || !metadata.is_file() {
            return Ok(Self::Large { size: metadata.len(), changed: FileTime::of(metadata) });
        }
        Ok(Self::File {
            mode: metadata.mode(),
            bytes: read::bytes(path, MOST_COPIED).map_err(io::Error::other)?,
        })
    }

    fn restore(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Link(target) => {
                remove(path)?;
                fs_err::os::unix::fs::symlink(target, path)
            }
            Self::File { mode, bytes } => {
                // A new file: the old one has other names, through which it could be written again.
                remove(path)?;
                create(path, bytes)?;
                fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o7777))
            }
            Self::Large { .. } => Err(io::Error::other(format!(
                "`{}` was changed, and is too large to have been copied",
                path.display()
            ))),
        }
    }
}

/// What stands in for protected paths that are not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// In the place of files.
    pub files: Vec<PathBuf>,
    /// In the place of directories.
    pub directories: Vec<PathBuf>,
}

/// Returns the paths at the root that are protected and not there, and whose directory is.
pub fn absent(root: &Path) -> Masks {
    // Git takes the content of `commondir` for a path, and `.claude` has a file in it that may be written.
    let can_be_masked = |path: &&str| !matches!(*path, ".git/commondir" | ".loops" | ".claude");
    let is_absent =
        |path: &PathBuf| path.symlink_metadata().is_err() && path.parent().is_some_and(Path::is_dir);
    let (directories, files): (Vec<_>, Vec<_>) =
        sandboxed_at_root().filter(can_be_masked).partition(|path| DIRECTORIES.contains(path));
    let here = |names: Vec<&str>| names.into_iter().map(|name| root.join(name)).filter(is_absent).collect();
    Masks { files: here(files), directories: here(directories) }
}

impl Masks {
    /// Returns all of them.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().chain(&self.directories)
    }

    /// Removes them where they are still what was made: empty.
    pub fn remove(&self) {
        for mask in &self.files {
            let is_ours = mask.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
            if is_ours {
                let _vanished = fs_err::remove_file(mask);
            }
        }
        for mask in &self.directories {
            // It is not removed where something is in it, or where it is no directory.
            let _in_use = std::fs::remove_dir(mask);
        }
    }

    /// Notes in a file which they are, before they are made: who is killed removes none.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&self, file: &Path) -> io::Result<()> {
        let mut note = Vec::new();
        for (kind, masks) in [(b'f', &self.files), (b'd', &self.directories)] {
            for mask in masks {
                note.push(kind);
                note.extend_from_slice(mask.as_os_str().as_bytes());
                note.push(0);
            }
        }
        // They are the same before most actions.
        if read::bytes(file, MIB).is_ok_and(|known| known == note) { Ok(()) } else { create(file, note) }
    }

    /// Reads such a note; there are none where it cannot be read.
    pub fn noted(file: &Path) -> Self {
        let mut masks = Self::default();
        let Ok(note) = read::bytes(file, MIB) else { return masks };
        for line in note.split(|byte| *byte == 0) {
            match line {
                [b'f', path @ ..] => masks.files.push(OsStr::from_bytes(path).into()),
                [b'd', path @ ..] => masks.directories.push(OsStr::from_bytes(path).into()),
                _ => {}
            }
        }
        masks
    }
}

/// Returns a path and what is below it, but for what ll-loop writes there.
fn all_below(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let mut at = 0;
    while let Some(path) = all.get(at).cloned() {
        at += 1;
        let is_ours = OURS.iter().any(|ours| path.ends_with(ours));
        if is_ours || !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        all.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    all
}

/// Tells whether a directory holds nothing but the word for the next session.
fn is_word_for_next(path: &Path) -> bool {
    let word = Path::new(CONTINUATION);
    let (Some(directory), Some(file)) = (word.parent(), word.file_name()) else { return false };
    let is_only = || {
        fs_err::read_dir(path).is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == file))
    };
    path.ends_with(directory) && !path.is_symlink() && is_only()
}

/// Tells whether the part of a new repository is what `git init` and `git clone` write: no program is named in it that a
/// git of ours could start.
fn is_harmless(path: &Path) -> bool {
    match file_name(path).as_str() {
        // Our git runs no hooks. Git notes for itself where a worktree lies, and that it belongs to this repository.
        "hooks" | "gitdir" => true,
        "commondir" => {
            let is_worktree = path.ancestors().nth(2).is_some_and(|above| above.ends_with(".git/worktrees"));
            is_worktree && read::text(path, MIB).is_ok_and(|text| text.trim() == "../..")
        }
        "config" => read::text(path, MIB).is_ok_and(|text| is_harmless_config(&text)),
        _ => false,
    }
}

const HARMLESS: [&str; 14] = [
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "worktree",
    "name",
    "email",
    "url",
    "fetch",
    "merge",
    "remote",
];

/// Tells whether a configuration of git has nothing but harmless lines, each in the form in which git itself writes it. There is more
/// that git reads, such as a key behind the head of a section: whatever has another form is harmful.
fn is_harmless_config(text: &str) -> bool {
    text.lines().all(is_harmless_line)
}

fn is_harmless_line(line: &str) -> bool {
    let line = line.trim();
    if let Some(head) = line.strip_prefix('[') {
        return head.strip_suffix(']').is_some_and(is_harmless_section);
    }
    let key = up_to(line, &['=']).trim().to_ascii_lowercase();
    // What a backslash ends goes on in the next line.
    let is_whole = !line.ends_with('\\');
    let is_harmless = || line.starts_with('#') || HARMLESS.contains(&key.as_str()) || key == "active";
    line.is_empty() || (is_whole && is_harmless())
}

/// Reads what stands between the brackets of a section head. A quote or a bracket inside may be where git takes the head to end.
fn is_harmless_section(head: &str) -> bool {
    let (name, subsection) = match head.split_once(" \"") {
        Some((name, quoted)) => (name, quoted.strip_suffix('"')),
        None => return ["core", "user", "submodule"].contains(&head.to_ascii_lowercase().as_str()),
    };
    let is_plain = subsection.is_some_and(|name| !name.contains(['"', '\\']));
    is_plain && ["remote", "branch", "submodule"].contains(&name.to_ascii_lowercase().as_str())
}

fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs_err::remove_dir_all(path),
        Ok(_) => fs_err::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::text::after_last;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let tree = tempfile::TempDir::with_prefix("ll-protected-").unwrap();
        for file in files {
            let path = tree.path().join(file);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "old\n").unwrap();
        }
        tree
    }

    #[test]
    fn what_is_protected_is_found_at_every_depth() {
        let files = [
            ".github/workflows/x.yml",
            "a/b/CLAUDE.md",
            "a/.git/config",
            ".git/config",
            "src/x.rs",
            "node_modules/.npmrc",
        ];
        let tree = tree(&files);
        let found = ProtectedFiles::look(tree.path(), &[]).unwrap();
        let shown: Vec<_> = found.present.iter().map(|path| shown(path, tree.path())).collect();
        assert_eq!(shown, [".git/config", ".github", "a/.git/config", "a/b/CLAUDE.md"]);
        let above: Vec<_> =
            found.above(tree.path(), &[]).iter().map(|path| super::shown(path, tree.path())).collect();
        assert_eq!(above, [".git", "a", "a/.git", "a/b"]);
    }

    #[test]
    fn what_appears_is_set_aside_and_links_are_put_back() {
        let tree = tree(&["src/x.rs", "elsewhere"]);
        let at = |path: &str| tree.path().join(path);
        fs_err::os::unix::fs::symlink("elsewhere", at("AGENTS.md")).unwrap();
        fs_err::write(at(".npmrc"), "old\n").unwrap();
        fs_err::hard_link(at(".npmrc"), at("second")).unwrap();
        let found = ProtectedFiles::look(tree.path(), &[]).unwrap();
        assert_eq!(found.linked.len(), 2);
        fs_err::remove_file(at("AGENTS.md")).unwrap();
        fs_err::write(at("AGENTS.md"), "obey\n").unwrap();
        fs_err::write(at("second"), "evil\n").unwrap();
        fs_err::create_dir_all(at("src/.claude")).unwrap();
        fs_err::write(at("src/.claude/settings.json"), "{}").unwrap();
        fs_err::create_dir_all(at("new/.git/hooks")).unwrap();
        fs_err::write(at("new/.git/config"), "[core]\n\tbare = false\n").unwrap();
        fs_err::create_dir_all(at("bad/.git")).unwrap();
        fs_err::write(at("bad/.git/config"), "[core]\n\tfsmonitor = evil\n").unwrap();
        let changed = found.put_back(tree.path(), &[], &at("aside")).unwrap();
        assert_eq!(changed, [".npmrc", "AGENTS.md", "bad/.git/config", "src/.claude"]);
        assert_eq!(fs_err::read_link(at("AGENTS.md")).unwrap(), Path::new("elsewhere"));
        assert_eq!(fs_err::read_to_string(at(".npmrc")).unwrap(), "old\n");
        assert!(
            !at("src/.claude").exists() && !at("bad/.git/config").exists() && at("new/.git/config").exists()
        );
        assert_eq!(fs_err::read_dir(at("aside")).unwrap().count(), 2);
    }

    #[test]
    fn a_configuration_is_harmless_only_where_git_reads_it_as_we_do() {
        for text in [
            "[core]\n\tbare = false\n\tworktree = ../x\n[remote \"origin\"]\n\turl = /x\n\tfetch = +a:b\n",
            "[Branch \"a]b #;\"]\r\n\tremote = origin\r\n\tmerge = refs/heads/a]b\r\n",
            "# [alias] \n[submodule]\n\tactive = .\n[submodule \"a b\"]\n\tactive = true\n\turl = u\n",
            "",
        ] {
            assert!(is_harmless_config(text), "{text:?}");
        }
        for text in [
            "[core] fsmonitor = ./evil # ]\n",
            "[core]fsmonitor=./evil;]\n",
            "[core] fsmonitor = \"./evil]\n",
            "[core][core] fsmonitor = ./evil # ]\n",
            "[remote \"x\"] uploadpack = \"./evil #\"]\n",
            "[remote \"x\"] [core] fsmonitor = ./evil #\"]\n",
            "[remote \"\\\"\"] uploadpack = ./evil # \"]\n",
            "[submodule \"x\"] update = !./evil #]\n",
            "[branch \"x\n\tremote = \"]\n",
            "[core] bare = false\n",
            "[core] # ]\n",
            "[ core]\n",
            "[remote.x]\n",
            "[remote]\n",
            "[include]\n\tname = x\n",
            "[user]\n\tname = x \\\n[core]\n",
            "[core]\n\tbare = false; \\\n\tfsmonitor = ./evil\n",
            "[core]\rfsmonitor = ./evil # ]\n",
            "\u{feff}[core]\n",
            "x",
        ] {
            assert!(!is_harmless_config(text), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Git says what it reads: whatever the pieces of a configuration come to, what passes names no other keys.
        #[test]
        fn git_reads_nothing_else_in_what_is_harmless(pieces in prop::collection::vec(piece(), 1..8)) {
            let text = format!("[core]\n{}", pieces.concat());
            if !is_harmless_config(&text) {
                return Ok(());
            }
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("config");
            fs_err::write(&file, &text).unwrap();
            let mut git = std::process::Command::new("git");
            let listed = git.args(["config", "--list", "-z", "--file"]).arg(file).output().unwrap().stdout;
            for entry in String::from_utf8(listed).unwrap().split_terminator('\0') {
                let name = up_to(entry, &['\n']);
                let (section, key) = (up_to(name, &['.']), after_last(name, &['.']));
                prop_assert!(["core", "user", "remote", "branch", "submodule"].contains(&section), "{text:?}: {name}");
                prop_assert!(HARMLESS.contains(&key) || key == "active", "{text:?}: {name}");
            }
        }
    }

    fn piece() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            4 => prop::sample::select(vec!["[core]\n", "[remote \"x\"]\n", "bare = true\n", "[user]\r\n", "name = x\n"]),
            1 => prop::sample::select(vec!["[core]", "[remote \"", "fsmonitor", " = ", "url", "name = ", "./evil"]),
            1 => prop::sample::select(vec!["[", "]", "\"", "\"]", "\\", "\\\n", "\n", "\r", " ", "# ", ";", "=", "]\n"]),
        ]
    }

    #[test]
    fn masks_stand_only_where_nothing_is_and_go_when_nobody_wrote_them() {
        let tree = tree(&[".github/x", ".git/config"]);
        let absent = absent(tree.path());
        let has = |path: &str| absent.all().any(|mask| *mask == tree.path().join(path));
        assert!(has(".npmrc") && has(".git/hooks") && has("lefthook.yml"));
        assert!(absent.directories.contains(&tree.path().join(".codex")));
        assert!(
            !has(".github") && !has(".git/config") && !has(".git/commondir") && !has(".cargo/config.toml")
        );
        fs_err::write(tree.path().join(".npmrc"), "").unwrap();
        fs_err::write(tree.path().join(".envrc"), "x").unwrap();
        fs_err::create_dir(tree.path().join(".codex")).unwrap();
        fs_err::create_dir_all(tree.path().join(".qwen/mine")).unwrap();
        let note = tree.path().join("note");
        absent.note(&note).unwrap();
        assert_eq!(Masks::noted(&note), absent);
        Masks::noted(&note).remove();
        let is_there = [".npmrc", ".envrc", ".codex", ".qwen"].map(|path| tree.path().join(path).exists());
        assert_eq!(is_there, [false, true, false, true]);
    }
}
