//! Reads the part of a working tree that a key is made of, from the question which files there are to what is in them.

use std::path::Path;

use super::chosen_files::{Choice, ListedTree, chosen, each_holds_some};
use super::ignored_sources::{IgnoredReads, IgnoredSource};
use super::input_files::{ReadFiles, ignored_source, listed, no_links_above, read_all, read_one};
use super::linked_folders::LinkSearch;
use super::no_key::NoKey;
use crate::git::runner::Git;

/// A working tree of which a key is to be made.
pub struct KeyedTree<'k> {
    /// Looks at its top.
    pub git: &'k Git,
    /// Its top, with all links followed.
    pub top: &'k Path,
    /// What the loop says of its inputs and judges.
    pub choice: &'k Choice<'k>,
    /// What its checks read of what git ignores.
    pub reads: &'k IgnoredReads,
}

/// A working tree as it was read.
pub struct TreeRead {
    /// The files of the key.
    pub read: ReadFiles,
    /// Whether some input is in no commit.
    pub has_uncommitted: bool,
    /// What git lists of the tree.
    pub tree: ListedTree,
}

impl KeyedTree<'_> {
    /// Reads the files of the key.
    ///
    /// # Errors
    /// Something that the checks may read is not known.
    pub fn read(&self) -> Result<TreeRead, NoKey> {
        let Self { git, top, choice, reads } = *self;
        let inputs = choice.inputs;
        let tree = listed(git, inputs.literals())?;
        if let Some(IgnoredSource { path, tool }) = ignored_source(git, top, reads, inputs, choice.own)? {
            return Err(NoKey::IgnoredSource { path, tool });
        }
        let chosen = chosen(&tree, choice)?;
        let tracked_judges = chosen.judges.intersection(&tree.tracked);
        no_links_above(top, chosen.inputs.iter().chain(chosen.submodules.keys()).chain(tracked_judges))?;
        let mut read = read_all(git, top, &chosen, inputs)?;
        let mut has_uncommitted = !chosen.uncommitted.is_empty();
        for link in (LinkSearch { top, tree: &tree, choice, chosen: &chosen }).followed(&read)? {
            if let Some(file) = read_one(top, &link)? {
                has_uncommitted |= !tree.tracked.contains(&link);
                read.inputs.entry(link).or_insert(file);
            }
        }
        // A pattern may mean files inside of a submodule, which are not listed.
        if !chosen.submodules.keys().any(|path| inputs.may_reach(path)) {
            each_holds_some(inputs, &read.inputs.keys().map(String::as_str))?;
        }
        Ok(TreeRead { read, has_uncommitted, tree })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;
    use std::process::Command;

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;
    use tempfile::TempDir;

    use super::super::input_patterns::InputPatterns;
    use super::*;
    use crate::judges::declared::Declared;

    /// What a check reads: the inputs of the loop, the script that it runs, and its tests.
    const READ: [&str; 6] = ["src", "local.env", "gen", "vendor", "check.sh", "tests"];
    const INPUTS: [&str; 4] = ["src/", "local.env", "gen/", "vendor/"];

    const FILES: [&str; 9] = [
        "src/a",
        "src/b",
        "src/deep/c",
        "src/new/d",
        "local.env",
        "gen/g",
        "check.sh",
        "tests/test_t.py",
        "other/x",
    ];
    const FOLDERS: [&str; 5] = ["src/deep", "src", "gen", "tests", "vendor"];
    /// What links lead to, from the top of the tree; and what of it is written to.
    const TARGETS: [&str; 7] =
        ["other/x", "other/folder", "../out/file", "../out/folder", "nowhere", "src/a", "src/deep"];
    const BEHIND: [&str; 4] = ["other/x", "other/folder/y", "../out/file", "../out/folder/z"];
    const SUBMODULES: [&str; 2] = ["vendor/sub", "vendor/sub/inner"];

    #[derive(Clone, Debug)]
    enum Edit {
        Write(usize, u8),
        Mode(usize),
        Remove(usize),
        Link(usize, usize),
        LinkForFolder(usize, usize),
        FileForFolder(usize, u8),
        FolderForFile(usize, u8),
        Behind(usize, u8),
        Commit,
        Restore,
        Unseen(usize, &'static str),
        Repository(u8),
        Submodule(usize, SubmoduleEdit),
    }

    #[derive(Clone, Debug)]
    enum SubmoduleEdit {
        Write(u8),
        WriteUnseen(u8),
        Mode,
        Commit,
        LeaveOut,
        NotCheckedOut,
        File(u8),
        Link(usize),
        NoRepository(u8),
    }

    fn edit() -> impl Strategy<Value = Edit> {
        let (file, folder, target) = (|| 0..FILES.len(), || 0..FOLDERS.len(), || 0..TARGETS.len());
        let submodule = prop_oneof![
            (0..3u8).prop_map(SubmoduleEdit::Write),
            (0..3u8).prop_map(SubmoduleEdit::WriteUnseen),
            Just(SubmoduleEdit::Mode),
            Just(SubmoduleEdit::Commit),
            Just(SubmoduleEdit::LeaveOut),
            Just(SubmoduleEdit::NotCheckedOut),
            (0..3u8).prop_map(SubmoduleEdit::File),
            target().prop_map(SubmoduleEdit::Link),
            (0..3u8).prop_map(SubmoduleEdit::NoRepository),
        ];
        let flag = prop_oneof![Just("--assume-unchanged"), Just("--skip-worktree")];
        prop_oneof![
            4 => (file(), 0..3u8).prop_map(|(file, content)| Edit::Write(file, content)),
            1 => file().prop_map(Edit::Mode),
            1 => file().prop_map(Edit::Remove),
            2 => (file(), target()).prop_map(|(file, target)| Edit::Link(file, target)),
            1 => (folder(), target()).prop_map(|(folder, target)| Edit::LinkForFolder(folder, target)),
            1 => (folder(), 0..3u8).prop_map(|(folder, content)| Edit::FileForFolder(folder, content)),
            1 => (file(), 0..3u8).prop_map(|(file, content)| Edit::FolderForFile(file, content)),
            3 => (0..BEHIND.len(), 0..3u8).prop_map(|(place, content)| Edit::Behind(place, content)),
            1 => Just(Edit::Commit),
            2 => Just(Edit::Restore),
            1 => (file(), flag).prop_map(|(file, flag)| Edit::Unseen(file, flag)),
            1 => (0..3u8).prop_map(Edit::Repository),
            4 => (0..SUBMODULES.len(), submodule).prop_map(|(at, edit)| Edit::Submodule(at, edit)),
        ]
    }

    /// A repository with a submodule that has one of its own, and files beside it.
    struct RealTree(TempDir);

    impl RealTree {
        fn made() -> Self {
            let this = Self(TempDir::with_prefix("ll-keyed-").unwrap());
            for repository in ["innermost", "module", "tree"] {
                this.write(&format!("../{repository}/a"), 0);
                let place = this.0.path().join(repository);
                done("git", &["init", "-q", "-b", "main"], &place);
                if repository == "module" {
                    done("git", &["submodule", "add", "-q", "../innermost", "inner"], &place);
                }
                commit(&place);
            }
            let files = FILES.iter().chain(&BEHIND).filter(|file| **file != "src/new/d");
            files.for_each(|file| this.write(file, 0));
            fs_err::write(this.top().join(".gitignore"), "/local.env\n/gen\n").unwrap();
            done("git", &["submodule", "add", "-q", "../module", "vendor/sub"], &this.top());
            commit(&this.top());
            this.restore();
            assert!(this.top().join("vendor/sub/inner/a").exists(), "the submodules are checked out");
            this
        }

        fn copy(&self) -> Self {
            let this = Self(TempDir::with_prefix("ll-keyed-").unwrap());
            done("cp", &["-a", ".", this.0.path().to_str().unwrap()], self.0.path());
            this
        }

        fn top(&self) -> PathBuf {
            self.0.path().canonicalize().unwrap().join("tree")
        }

        fn write(&self, path: &str, content: u8) {
            let place = self.0.path().join("tree").join(path);
            // Where something else stands in the way, nothing is written.
            drop(fs_err::create_dir_all(place.parent().unwrap()));
            drop(fs_err::write(place, [content]));
        }

        fn remove(&self, path: &str) {
            let place = self.top().join(path);
            let is_folder = place.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            drop(if is_folder { fs_err::remove_dir_all(place) } else { fs_err::remove_file(place) });
        }

        fn link(&self, path: &str, target: &str) {
            self.remove(path);
            drop(symlink(self.top().join(target), self.top().join(path)));
        }

        fn change_mode(&self, path: &str) {
            let place = self.top().join(path);
            if let Some(metadata) = place.metadata().ok().filter(std::fs::Metadata::is_file) {
                let mode = metadata.permissions().mode() ^ 0o100;
                fs_err::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
            }
        }

        fn restore(&self) {
            // A file or a link may stand in the place of a folder.
            done("git", &["reset", "-q", "--hard"], &self.top());
            done("git", &["submodule", "update", "--init", "--recursive", "-q", "--force"], &self.top());
        }

        fn edit(&self, edit: &Edit) {
            match *edit {
                Edit::Write(file, content) => self.write(FILES[file], content),
                Edit::Mode(file) => self.change_mode(FILES[file]),
                Edit::Remove(file) => self.remove(FILES[file]),
                Edit::Link(file, target) => self.link(FILES[file], TARGETS[target]),
                Edit::LinkForFolder(folder, target) => self.link(FOLDERS[folder], TARGETS[target]),
                Edit::FileForFolder(folder, content) => {
                    self.remove(FOLDERS[folder]);
                    self.write(FOLDERS[folder], content);
                }
                Edit::FolderForFile(file, content) => {
                    self.remove(FILES[file]);
                    self.write(&format!("{}/x", FILES[file]), content);
                }
                Edit::Behind(place, content) => self.write(BEHIND[place], content),
                Edit::Commit => commit(&self.top()),
                Edit::Restore => self.restore(),
                Edit::Unseen(file, flag) => done("git", &["update-index", flag, FILES[file]], &self.top()),
                Edit::Repository(content) => {
                    done("git", &["init", "-q", "src/repository"], &self.top());
                    self.write("src/repository/x", content);
                }
                Edit::Submodule(at, ref edit) => self.edit_submodule(SUBMODULES[at], edit),
            }
        }

        fn edit_submodule(&self, at: &str, edit: &SubmoduleEdit) {
            let place = self.top().join(at);
            let is_repository = place.join(".git").is_file() && !place.is_symlink();
            let file = format!("{at}/a");
            match *edit {
                SubmoduleEdit::File(content) => {
                    self.remove(at);
                    self.write(at, content);
                }
                SubmoduleEdit::Link(target) => self.link(at, TARGETS[target]),
                // Anywhere else, git would change the repository around it.
                SubmoduleEdit::Write(_)
                | SubmoduleEdit::WriteUnseen(_)
                | SubmoduleEdit::Mode
                | SubmoduleEdit::Commit
                | SubmoduleEdit::LeaveOut
                | SubmoduleEdit::NotCheckedOut
                | SubmoduleEdit::NoRepository(_)
                    if !is_repository => {}
                SubmoduleEdit::Write(content) => self.write(&file, content),
                SubmoduleEdit::WriteUnseen(content) => {
                    done("git", &["update-index", "--assume-unchanged", "a"], &place);
                    self.write(&file, content);
                }
                SubmoduleEdit::Mode => {
                    done("git", &["config", "core.fileMode", "false"], &place);
                    self.change_mode(&file);
                }
                SubmoduleEdit::Commit => commit(&place),
                SubmoduleEdit::LeaveOut => {
                    done("git", &["update-index", "--skip-worktree", "a"], &place);
                    self.remove(&file);
                }
                SubmoduleEdit::NotCheckedOut => {
                    self.remove(at);
                    fs_err::create_dir(place).unwrap();
                }
                SubmoduleEdit::NoRepository(content) => {
                    self.remove(&format!("{at}/.git"));
                    fs_err::create_dir(place.join(".git")).unwrap();
                    self.write(&file, content);
                }
            }
        }

        /// Returns what the key is made of, as it is printed; nothing where there is none.
        fn key(&self) -> Option<String> {
            let top = self.top();
            let inputs = InputPatterns::parse(&INPUTS.map(str::to_owned)).ok()?;
            let choice = Choice {
                inputs: &inputs,
                declared: &Declared::default(),
                obeyed: &["check.sh".to_owned()],
                scope: &[String::new()],
                own: &[],
            };
            let git = Git::new(&top, env());
            let tree = KeyedTree { git: &git, top: &top, choice: &choice, reads: &IgnoredReads::of(&[]) };
            let TreeRead { read, .. } = tree.read().ok()?;
            Some(format!("{:?} {:?}", read.inputs, read.judges))
        }

        /// What the check comes to: everything that it reads.
        fn read(&self) -> Vec<Option<Read>> {
            READ.iter().map(|path| read(&self.top().join(path), &mut Vec::new())).collect()
        }
    }

    /// What somebody finds in a place.
    #[derive(Clone, Debug, PartialEq)]
    enum Read {
        File(bool, Vec<u8>),
        Folder(BTreeMap<String, Self>),
        /// A link with its target, and what that is.
        Link(PathBuf, Option<Box<Self>>),
    }

    fn read(place: &Path, behind: &mut Vec<PathBuf>) -> Option<Read> {
        let metadata = place.symlink_metadata().ok()?;
        if metadata.is_symlink() {
            let real = place.canonicalize().ok().filter(|real| !behind.contains(real));
            let found = real.and_then(|real| {
                behind.push(real.clone());
                let found = read(&real, behind);
                behind.pop();
                found
            });
            return Some(Read::Link(place.read_link().unwrap(), found.map(Box::new)));
        }
        if metadata.is_file() {
            let is_executable = metadata.permissions().mode() & 0o100 != 0;
            return Some(Read::File(is_executable, fs_err::read(place).unwrap()));
        }
        let entries = fs_err::read_dir(place).unwrap().map(Result::unwrap);
        let entries = entries.filter(|entry| entry.file_name() != ".git");
        let entry = |entry: fs_err::DirEntry| {
            Some((entry.file_name().to_string_lossy().into_owned(), read(&entry.path(), behind)?))
        };
        let found: BTreeMap<String, Read> = entries.filter_map(entry).collect();
        // Git knows no empty folders.
        (!found.is_empty()).then_some(Read::Folder(found))
    }

    fn env() -> BTreeMap<String, String> {
        [("PATH", "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Runs a program. What it refuses, such as to commit nothing, is not done.
    fn done(program: &str, arguments: &[&str], directory: &Path) {
        let settings = ["protocol.file.allow=always", "user.name=t", "user.email=t@example.org"];
        let settings = settings.iter().flat_map(|setting| ["-c", *setting]);
        let settings = settings.filter(|_| program == "git");
        let mut command = Command::new(program);
        command.args(settings).args(arguments).current_dir(directory).env_clear().envs(env());
        command.output().unwrap();
    }

    fn commit(directory: &Path) {
        done("git", &["add", "-A"], directory);
        done("git", &["commit", "-q", "-m", "more"], directory);
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_of_inputs_is_in_the_key() {
        let tree = RealTree::made();
        tree.remove("vendor");
        let without = tree.key().unwrap();
        tree.write("vendor", 0);
        assert_ne!(tree.key(), Some(without));
    }

    /// An oracle that knows what the check reads: whenever two trees have one key, the check comes to the same.
    #[test]
    fn no_edit_of_a_tree_leads_to_a_wrong_hit() {
        let template = RealTree::made();
        assert!(template.key().is_some());
        let config = ProptestConfig { max_shrink_iters: 60, ..ProptestConfig::with_cases(8) };
        let history = |edits: Vec<Edit>| {
            let tree = template.copy();
            let mut known = BTreeMap::from([(tree.key(), tree.read())]);
            for edit in &edits {
                tree.edit(edit);
                let Some(key) = tree.key() else { continue };
                let read = tree.read();
                let earlier = known.entry(Some(key)).or_insert_with(|| read.clone());
                prop_assert!(*earlier == read, "{earlier:?} and {read:?} after {edits:?}");
            }
            Ok(())
        };
        TestRunner::new(config).run(&prop::collection::vec(edit(), 10), history).unwrap();
    }
}
