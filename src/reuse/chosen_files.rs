//! Which of the files of a working tree a key is made of: the inputs that a loop names, and the judges that are not among
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::input_patterns::{InputPatterns, as_read, is_within};
use super::no_key::NoKey;
use super::quarantine::is_quarantine;
use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::judges::compare::{is_by_name, is_obeyed_by_name};
use crate::judges::declared::Declared;
use crate::judges::pattern::PathSet;

/// The most files of a key.
pub const MOST_FILES: usize = 500_000;

/// The files of a working tree, as git lists them, by their paths from its top.
#[derive(Clone, Debug, Default)]
pub struct ListedTree {
    /// What git tracks, there or not.
    pub tracked: BTreeSet<String>,
    /// What of it is a link for git.
    pub links: BTreeSet<String>,
    /// What it neither tracks nor ignores.
    pub untracked: BTreeSet<String>,
    /// What it ignores and the loop names by itself.
    pub named: BTreeSet<String>,
    /// Submodules, with the commits that the index has of them.
    pub submodules: BTreeMap<String, ObjectId>,
    /// Repositories that are no submodules.
    pub nested: BTreeSet<String>,
}

/// What a loop says of its inputs and judges.
pub struct Choice<'c> {
    /// Its inputs.
    pub inputs: &'c InputPatterns,
    /// Its judges.
    pub declared: &'c Declared,
    /// The files that its checks run or obey, there or not.
    pub obeyed: &'c [String],
    /// The paths that it works on; an empty one is the whole tree. A judge elsewhere is another loop's, unless it lies in a
    /// folder above, where tools look for configuration.
    pub scope: &'c [String],
    /// Files that the run itself writes.
    pub own: &'c [String],
}

impl Choice<'_> {
    /// Tells whether a file can be work. A record is only of checks that passed, whatever was excused, so that the quarantine decides
    /// nothing.
    pub(super) fn is_work(&self, tree: &ListedTree, path: &str) -> bool {
        // Somebody who has committed a file where reports are written wants it to be there.
        let is_report = || self.own.iter().any(|own| is_within(path, own)) && !tree.tracked.contains(path);
        !is_own(path.as_bytes()) && !is_quarantine(path) && !is_report()
    }
}

/// The files that a key is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenFiles {
    /// The inputs.
    pub inputs: BTreeSet<String>,
    /// The submodules among the inputs.
    pub submodules: BTreeMap<String, ObjectId>,
    /// The judges that are no inputs.
    pub judges: BTreeSet<String>,
    /// The inputs that no commit has.
    pub uncommitted: BTreeSet<String>,
}

/// Chooses the files of a key.
///
/// # Errors
/// A repository inside, which is not looked into, may be read, or there are too many files.
pub fn chosen(tree: &ListedTree, choice: &Choice<'_>) -> Result<ChosenFiles, NoKey> {
    let is_work = |path: &str| choice.is_work(tree, path);
    let judges = NamedJudges::of(choice);
    // Of a repository inside, no file is listed: what is there counts as a whole, or not at all.
    let is_read = |path: &str| choice.inputs.may_reach(path) || judges.hold(path);
    if let Some(path) = tree.nested.iter().find(|path| is_work(path) && is_read(path)) {
        return Err(NoKey::NestedRepository(path.clone()));
    }
    let is_input = |path: &&String| is_work(path) && choice.inputs.hold(path);
    let uncommitted: BTreeSet<String> =
        tree.untracked.iter().chain(&tree.named).filter(is_input).cloned().collect();
    let inputs: BTreeSet<String> =
        tree.tracked.iter().filter(is_input).chain(&uncommitted).cloned().collect();
    let submodules = tree.submodules.iter().filter(|(path, _)| is_read(path));
    let submodules: BTreeMap<_, _> =
        submodules.map(|(path, commit)| (path.clone(), commit.clone())).collect();
    let judges = judges.chosen(tree, &inputs, &is_work);
    if inputs.len() + judges.len() > MOST_FILES {
        return Err(NoKey::TooMany(MOST_FILES));
    }
    Ok(ChosenFiles { inputs, submodules, judges, uncommitted })
}

/// Tells whether every pattern holds one of the files that are there. Git lists those that were removed, too.
///
/// # Errors
/// One of them holds none.
pub fn each_holds_some<'p>(
    inputs: &InputPatterns,
    there: &(impl Iterator<Item = &'p str> + Clone),
) -> Result<(), NoKey> {
    let without = inputs.without_files(there);
    if without.is_empty() { Ok(()) } else { Err(NoKey::NoFile(without)) }
}

/// The judges that a loop has by what it says and by their names.
struct NamedJudges<'c> {
    choice: &'c Choice<'c>,
    declared: PathSet,
}

impl<'c> NamedJudges<'c> {
    fn of(choice: &'c Choice<'c>) -> Self {
        Self { choice, declared: PathSet::of(&choice.declared.rules.files) }
    }

    /// Tells whether the file at a path is one.
    fn hold(&self, path: &str) -> bool {
        let Choice { declared, obeyed, scope, .. } = *self.choice;
        let path = &*as_read(path);
        let is_obeyed = || obeyed.iter().any(|obeyed| is_within(path, obeyed));
        let is_near = || {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            scope.iter().any(|scope| is_within(path, scope) || is_within(scope, folder))
        };
        let by_name = || is_by_name(path) || is_obeyed_by_name(path);
        !declared.are_none && (self.declared.matches(path) || is_obeyed() || (is_near() && by_name()))
    }

    /// Returns those that are no inputs, there or not.
    fn chosen(
        &self,
        tree: &ListedTree,
        inputs: &BTreeSet<String>,
        is_work: &dyn Fn(&str) -> bool,
    ) -> BTreeSet<String> {
        if self.choice.declared.are_none {
            return BTreeSet::new();
        }
        let others = tree.tracked.iter().chain(&tree.untracked).filter(|path| !inputs.contains(*path));
        let listed = others.filter(|path| is_work(path) && self.hold(path));
        // What is obeyed where it is found counts although git ignores it, or it is not there. Programs of the system are for
        // `tools` to tell.
        let unlisted = self.choice.obeyed.iter().filter(|path| !path.starts_with('/') && !path.is_empty());
        let all: BTreeSet<String> = listed.chain(unlisted).cloned().collect();
        all.difference(inputs).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::key::{KeyFile, KeyParts, ReuseKey, of_texts};
    use super::*;
    use crate::base::file_mode::FileMode;
    use crate::base::gitpath;
    use crate::base::sum::Sum;

    /// A repository with a check, in memory. What the check reads is known here alone.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct FilesAround {
        /// Content and whether it can be executed.
        files: BTreeMap<&'static str, (u8, bool)>,
        ignored: BTreeSet<&'static str>,
        tool: u8,
        variable: Option<u8>,
        other_variable: u8,
        value: u8,
    }

    const PATHS: [&str; 12] = [
        "src/a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/deep/notes.txt",
        "tests/t.rs",
        "docs/guide.md",
        "pytest.ini",
        "check.sh",
        "other/tests/x_test.go",
        "build/out.bin",
        "local.env",
        "lib/data",
    ];

    /// The check runs `check.sh`, which reads these and looks whether others are there.
    const READ: [&str; 8] = [
        "src/a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "tests/t.rs",
        "pytest.ini",
        "check.sh",
        "local.env",
        "lib/data",
    ];

    impl FilesAround {
        fn listed(&self) -> ListedTree {
            let is_ignored = |path: &str| self.ignored.contains(path);
            let of = |is: bool| {
                let those = self.files.keys().filter(move |path| is_ignored(path) == is);
                those.map(|path| (*path).to_owned()).collect::<BTreeSet<String>>()
            };
            let named = of(true).into_iter().filter(|path| path == "local.env").collect();
            ListedTree { tracked: of(false), named, ..ListedTree::default() }
        }

        fn key(&self) -> Option<ReuseKey> {
            let inputs = ["src/", "lib/data", "local.env"].map(str::to_owned);
            let inputs = InputPatterns::parse(&inputs).ok()?;
            let choice = Choice {
                inputs: &inputs,
                declared: &Declared::default(),
                obeyed: &["check.sh".to_owned()],
                scope: &[String::new()],
                own: &[],
            };
            let chosen = chosen(&self.listed(), &choice).ok()?;
            let file = |path: &String| {
                let (content, is_executable) = self.files.get(path.as_str())?;
                let mode = if *is_executable { FileMode::Executable } else { FileMode::File };
                Some(KeyFile { mode, content: Sum::of(&[*content]) })
            };
            let inputs = chosen.inputs.iter().filter_map(|path| Some((path.clone(), file(path)?)));
            let parts = KeyParts {
                definition: of_texts(["loop"]),
                values: of_texts([self.value.to_string().as_str()]),
                options: of_texts([]),
                inputs: inputs.collect(),
                judges: chosen.judges.iter().map(|path| (path.clone(), file(path))).collect(),
                tools: [("tool -V".to_owned(), Sum::of(&[self.tool]))].into(),
                env: [("MODE".to_owned(), self.variable.map(|value| Sum::of(&[value])))].into(),
                platform: BTreeMap::new(),
                sandbox: of_texts([]),
            };
            Some(parts.key())
        }

        /// What the check comes to: everything that it reads.
        fn read(&self) -> impl PartialEq + use<> {
            let files: Vec<_> = READ.iter().map(|path| self.files.get(path).copied()).collect();
            (files, self.tool, self.variable, self.value)
        }
    }

    #[derive(Clone, Debug)]
    enum Edit {
        Write(usize, u8),
        Mode(usize),
        Remove(usize),
        Move(usize, usize),
        Tool(u8),
        Variable(Option<u8>),
        OtherVariable(u8),
        Value(u8),
    }

    fn edit() -> impl Strategy<Value = Edit> {
        let path = || 0..PATHS.len();
        prop_oneof![
            4 => (path(), 0..3u8).prop_map(|(path, content)| Edit::Write(path, content)),
            1 => path().prop_map(Edit::Mode),
            2 => path().prop_map(Edit::Remove),
            1 => (path(), path()).prop_map(|(from, to)| Edit::Move(from, to)),
            1 => (0..3u8).prop_map(Edit::Tool),
            1 => proptest::option::of(0..3u8).prop_map(Edit::Variable),
            1 => (0..3u8).prop_map(Edit::OtherVariable),
            1 => (0..3u8).prop_map(Edit::Value),
        ]
    }

    fn edited(mut world: FilesAround, edit: &Edit) -> FilesAround {
        match *edit {
            Edit::Write(path, content) => {
                world.files.entry(PATHS[path]).or_insert((0, false)).0 = content;
            }
            Edit::Mode(path) => {
                if let Some(file) = world.files.get_mut(PATHS[path]) {
                    file.1 = !file.1;
                }
            }
            Edit::Remove(path) => drop(world.files.remove(PATHS[path])),
            Edit::Move(from, to) => {
                if let Some(file) = world.files.remove(PATHS[from]) {
                    world.files.insert(PATHS[to], file);
                }
            }
            Edit::Tool(tool) => world.tool = tool,
            Edit::Variable(value) => world.variable = value,
            Edit::OtherVariable(value) => world.other_variable = value,
            Edit::Value(value) => world.value = value,
        }
        world
    }

    fn world() -> FilesAround {
        FilesAround {
            files: PATHS.iter().map(|path| (*path, (0, false))).collect(),
            ignored: ["build/out.bin", "local.env"].into(),
            tool: 0,
            variable: None,
            other_variable: 0,
            value: 0,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// An oracle that knows what the check reads: whenever two runs have one key, the check comes to the same. A thousand
        /// histories of ten edits each.
        #[test]
        fn no_edit_leads_to_a_wrong_hit(edits in prop::collection::vec(edit(), 10)) {
            let mut world = world();
            let mut known: BTreeMap<ReuseKey, FilesAround> = BTreeMap::new();
            for edit in &edits {
                world = edited(world, edit);
                let Some(key) = world.key() else { continue };
                if let Some(earlier) = known.get(&key) {
                    prop_assert!(earlier.read() == world.read(), "{earlier:?} and {world:?}");
                }
                known.insert(key, world.clone());
            }
        }

        /// What is not read changes no key.
        #[test]
        fn what_is_not_read_costs_no_hit(content in 0..3u8, other in 0..3u8) {
            let before = world();
            let mut after = edited(world(), &Edit::Write(9, content));
            after.other_variable = other;
            after.files.insert("docs/guide.md", (content, true));
            prop_assert_eq!(before.key(), after.key());
        }
    }

    #[test]
    fn judges_of_other_packages_are_left_out_and_those_above_are_not() {
        let tree = ListedTree {
            tracked: ["a/src/x.py", "a/tests/test_x.py", "b/tests/test_y.py", "pytest.ini", "b/pytest.ini"]
                .map(str::to_owned)
                .into(),
            ..ListedTree::default()
        };
        let inputs = InputPatterns::parse(&["a/src/".to_owned()]).ok().unwrap();
        let scope = ["a".to_owned()];
        let choice =
            Choice { inputs: &inputs, declared: &Declared::default(), obeyed: &[], scope: &scope, own: &[] };
        let found = chosen(&tree, &choice).ok().unwrap();
        assert_eq!(found.judges.iter().collect::<Vec<_>>(), ["a/tests/test_x.py", "pytest.ini"]);
    }

    #[test]
    fn repositories_where_judges_lie_are_read_as_a_whole_or_make_no_key() {
        let commit = ObjectId::parse(&"a".repeat(40)).unwrap();
        let submodules = ["tests/data", "vendor/lib"].map(|path| (path.to_owned(), commit.clone()));
        let tracked = ["src/a".to_owned()].into();
        let mut tree = ListedTree { tracked, submodules: submodules.into(), ..ListedTree::default() };
        let inputs = InputPatterns::parse(&["./src/".to_owned()]).ok().unwrap();
        let (declared, scope) = (Declared::default(), [String::new()]);
        let choice = Choice { inputs: &inputs, declared: &declared, obeyed: &[], scope: &scope, own: &[] };
        let found = chosen(&tree, &choice).ok().unwrap();
        assert_eq!(found.submodules.keys().collect::<Vec<_>>(), ["tests/data"]);
        tree.nested.insert("vendor/other".to_owned());
        assert!(chosen(&tree, &choice).is_ok());
        tree.nested.insert("tests/other".to_owned());
        assert!(matches!(chosen(&tree, &choice), Err(NoKey::NestedRepository(_))));
    }

    #[test]
    fn a_file_where_reports_are_written_counts_where_git_tracks_it() {
        let inputs = InputPatterns::parse(&["src/".to_owned()]).ok().unwrap();
        let (declared, own) = (Declared::default(), ["src/api".to_owned()]);
        let choice = Choice { inputs: &inputs, declared: &declared, obeyed: &[], scope: &[], own: &own };
        let tree = ListedTree {
            tracked: ["src/api/x".to_owned()].into(),
            untracked: ["src/api/result.json".to_owned()].into(),
            ..ListedTree::default()
        };
        let found = chosen(&tree, &choice).ok().unwrap();
        assert_eq!(found.inputs.iter().collect::<Vec<_>>(), ["src/api/x"]);
    }

    #[test]
    fn a_judge_whose_name_is_not_utf8_is_one() {
        let test = gitpath::to_text(b"tests/test_caf\xe9.py");
        let tree = ListedTree { tracked: ["src/a".to_owned(), test.clone()].into(), ..ListedTree::default() };
        let inputs = InputPatterns::parse(&["src/".to_owned()]).ok().unwrap();
        let (declared, scope) = (Declared::default(), [String::new()]);
        let choice = Choice { inputs: &inputs, declared: &declared, obeyed: &[], scope: &scope, own: &[] };
        assert_eq!(chosen(&tree, &choice).ok().unwrap().judges, BTreeSet::from([test]));
    }

    #[test]
    fn a_pattern_without_a_file_and_a_repository_inside_make_no_key() {
        let inputs = InputPatterns::parse(&["src/".to_owned(), "scr/".to_owned()]).ok().unwrap();
        let choice =
            Choice { inputs: &inputs, declared: &Declared::default(), obeyed: &[], scope: &[], own: &[] };
        let mut tree = ListedTree { tracked: ["src/a".to_owned()].into(), ..ListedTree::default() };
        let wrong = each_holds_some(&inputs, &["src/a"].into_iter()).unwrap_err();
        assert_eq!(wrong.to_string(), "`scr/` holds no file");
        tree.nested.insert("src/vendor".to_owned());
        assert!(matches!(chosen(&tree, &choice), Err(NoKey::NestedRepository(_))));
        // A working tree of ours is no work, wherever it lies.
        tree.nested = ["src/.loops/.worktrees/a".to_owned()].into();
        assert!(chosen(&tree, &choice).is_ok());
    }
}
