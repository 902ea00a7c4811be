//! What became of judges, over a table of small changes and over changes of any kind.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde::Deserialize;

use super::super::tree::FileAt;
use super::*;
use crate::base::file_mode::FileMode;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    ecosystem: String,
    what: String,
    check: String,
    start: BTreeMap<String, String>,
    end: BTreeMap<String, String>,
    found: String,
}

#[derive(Deserialize)]
struct Pairs {
    pair: Vec<Pair>,
}

type MemoryTree = BTreeMap<String, FileAt>;

fn file(bytes: &[u8]) -> FileAt {
    FileAt { mode: FileMode::File, bytes: bytes.to_vec(), is_ignored: false }
}

fn tree(files: &BTreeMap<String, String>) -> MemoryTree {
    files.iter().map(|(path, text)| (path.clone(), file(text.as_bytes()))).collect()
}

fn looked(
    check: &str,
    declared: &Declared,
    changed: &[String],
    start: &MemoryTree,
    end: &MemoryTree,
) -> JudgesFound {
    let command = CheckCommand {
        state: "check",
        text: check,
        directory: "",
        search: &[],
        libraries: &[],
        variables: &[],
        shell: &[],
    };
    let commands = [command];
    look(&TreeComparison { declared, commands: &commands, loop_files: &[], changed, start, end })
}

fn shown(found: &JudgesFound) -> String {
    let files: Vec<_> =
        found.files.iter().map(|file| format!("{} {}", file.path, file.kind.word())).collect();
    let mut text = format!("{:?}", found.state).to_lowercase();
    if !files.is_empty() {
        text += &[": ", &files.join(", ")].concat();
    }
    if !found.suppressions.is_empty() {
        text += &[" +", &found.suppressions.len().to_string()].concat();
    }
    if !found.can_be_put_back {
        text.push_str(" work");
    }
    text
}

#[test]
fn what_became_of_judges_is_known_for_small_changes_of_every_ecosystem() {
    let pairs: Pairs = toml::from_str(include_str!("pairs.toml")).unwrap();
    let mut wrong = Vec::new();
    for pair in &pairs.pair {
        let start = tree(&pair.start);
        let mut end = start.clone();
        for (path, text) in &pair.end {
            match text.as_str() {
                "" => drop(end.remove(path)),
                text => drop(end.insert(path.clone(), file(text.as_bytes()))),
            }
        }
        let changed: Vec<String> = pair.end.keys().cloned().collect();
        let found = looked(&pair.check, &Declared::default(), &changed, &start, &end);
        if shown(&found) != pair.found {
            wrong.push(format!("{}, {}: {}, not {}", pair.ecosystem, pair.what, shown(&found), pair.found));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let ecosystems: BTreeSet<&str> = pairs.pair.iter().map(|pair| pair.ecosystem.as_str()).collect();
    assert!(pairs.pair.len() >= 100 && ecosystems.len() >= 8);
}

#[test]
fn what_a_loop_says_of_its_judges_holds() {
    let start = tree(&[("data/a.json".to_owned(), "1".to_owned())].into());
    let end = tree(&[("data/a.json".to_owned(), "2".to_owned())].into());
    let changed = ["data/a.json".to_owned()];
    let mut declared = Declared::default();
    assert_eq!(shown(&looked("pytest", &declared, &changed, &start, &end)), "unchanged");
    declared.rules.files = vec![super::super::pattern::PathPattern::parse("data/").unwrap()];
    let found = looked("pytest", &declared, &changed, &start, &end);
    assert_eq!(shown(&found), "changed: data/a.json edited");
    assert_eq!(
        (found.to_put_back.as_slice(), found.files[0].checks.as_slice()),
        (&changed[..], &["check".to_owned()][..])
    );
    declared.are_none = true;
    assert_eq!(shown(&looked("pytest", &declared, &changed, &start, &end)), "unchanged");
}

#[test]
fn what_a_check_runs_or_a_loop_names_is_compared_whole() {
    let of = |path: &str, text: &str| tree(&[(path.to_owned(), text.to_owned())].into());
    let mut declared = Declared::default();
    declared.rules.files = vec![super::super::pattern::PathPattern::parse("golden/").unwrap()];
    for (path, start, end) in [
        ("check.sh", "diff out - <<E\n# a\nE\n", "diff out - <<E\n# b\nE\n"),
        ("check.sh", "# FIXME\nsed 's/^# //' check.sh\n", "sed 's/^# //' check.sh\n"),
        ("golden/a.yml", "a: |\n  # a\n", "a: |\n  # b\n"),
        ("golden/a.py", "a # a\n", "a # b\n"),
        ("golden/a.json", "[1]", "[ 1 ]"),
    ] {
        let found = looked("sh check.sh", &declared, &[path.to_owned()], &of(path, start), &of(path, end));
        assert_eq!(shown(&found), format!("changed: {path} edited"));
    }
}

#[test]
fn suppressions_may_be_reported_alone_and_nothing_added() {
    let start = tree(&[("a.py".to_owned(), "x\n".to_owned())].into());
    let end = tree(&[("a.py".to_owned(), "x  # noqa\n".to_owned())].into());
    let mut declared = Declared::default();
    declared.rules.suppressions = OnSuppression::Report;
    assert_eq!(shown(&looked("ruff .", &declared, &["a.py".to_owned()], &start, &end)), "unchanged +1");
    declared.rules.may = MayChange::Nothing;
    let end = tree(&[("test_b.py".to_owned(), "x\n".to_owned())].into());
    let found = looked("pytest", &declared, &["test_b.py".to_owned()], &start, &end);
    assert_eq!(found.state, JudgesState::Changed);
}

/// A tree of which nothing can be read.
struct Dark;
impl Tree for Dark {
    fn at(&self, _: &str) -> At {
        At::Unreadable
    }
    fn seen(&self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn modes_ignored_files_and_what_cannot_be_read_count() {
    let start: MemoryTree = [("check".to_owned(), file(b"x")), ("tests/a.py".to_owned(), file(b"x"))].into();
    let with = |path: &str, file: FileAt| {
        let mut end = start.clone();
        end.insert(path.to_owned(), file);
        looked("./check && pytest", &Declared::default(), &[path.to_owned()], &start, &end)
    };
    let executable = FileAt { mode: FileMode::Executable, ..file(b"x") };
    assert_eq!(shown(&with("check", executable)), "changed: check mode");
    let ignored = FileAt { is_ignored: true, ..file(b"x") };
    assert_eq!(shown(&with("tests/a.py", ignored)), "changed: tests/a.py ignored");
    let link = FileAt { mode: FileMode::Link, ..file(b"x") };
    assert_eq!(shown(&with("tests/a.py", link)), "changed: tests/a.py mode");
    let search = ["node_modules/.bin".to_owned()];
    let command = CheckCommand {
        state: "check",
        text: "jest",
        directory: "",
        search: &search,
        libraries: &[],
        variables: &[],
        shell: &[],
    };
    let mut end = start.clone();
    let path = "node_modules/.bin/jest".to_owned();
    end.insert(path.clone(), FileAt { is_ignored: true, ..file(b"x") });
    let comparison = TreeComparison {
        declared: &Declared::default(),
        commands: &[command],
        loop_files: &[],
        changed: std::slice::from_ref(&path),
        start: &start,
        end: &end,
    };
    assert_eq!(shown(&look(&comparison)), "unchanged: node_modules/.bin/jest installed");
    assert_eq!(followed(&[command], &start).obeyed, [path.as_str()]);

    let comparison = TreeComparison { changed: &["tests/a.py".to_owned()], end: &Dark, ..comparison };
    assert_eq!(look(&comparison).state, JudgesState::Unknown);
}

#[test]
fn tests_that_may_need_a_helper_are_named_for_a_second_try() {
    let test = "def test_a():\n    assert f()\n";
    let start = tree(&[("tests/test_a.py".to_owned(), test.to_owned())].into());
    let mut end = start.clone();
    end.insert(
        "tests/test_a.py".to_owned(),
        file(format!("{test}\ndef test_c(one):\n    pass\n").as_bytes()),
    );
    end.insert("tests/test_b.py".to_owned(), file(b"def test_b(one):\n    assert one\n"));
    let added =
        looked("pytest", &Declared::default(), &end.keys().cloned().collect::<Vec<_>>(), &start, &end);
    assert!(added.second_try.are_none());
    end.insert("tests/conftest.py".to_owned(), file(b"import pytest\n"));
    let found =
        looked("pytest", &Declared::default(), &end.keys().cloned().collect::<Vec<_>>(), &start, &end);
    assert_eq!(found.to_hide, ["tests/conftest.py"]);
    assert_eq!(found.second_try.to_hide, ["tests/test_b.py"]);
    assert_eq!(found.second_try.to_put_back, ["tests/test_a.py"]);
}

#[test]
fn a_manifest_with_a_suppression_around_its_judges_goes_back_as_a_whole() {
    let of = |text: &str| tree(&[("build.gradle.kts".to_owned(), text.to_owned())].into());
    let start = of("tasks.named<Test>(\"test\") {\n    useJUnitPlatform()\n}\nval a = 1\n");
    let judges = "tasks.named<Test>(\"test\") {\n    exclude(\"A\")\n}\n";
    let changed = ["build.gradle.kts".to_owned()];
    let looked = |end: &str| looked("gradle test", &Declared::default(), &changed, &start, &of(end));
    let found = looked(&format!("{judges}val a = 2\n"));
    assert_eq!((found.in_part.len(), found.to_put_back.len()), (1, 0), "{}", shown(&found));
    let found = looked(&format!("{judges}val a = 2 // NOSONAR\n"));
    assert_eq!((found.in_part.len(), found.to_put_back.as_slice()), (0, &changed[..]), "{}", shown(&found));
}

fn paths() -> impl Strategy<Value = String> {
    let names = vec![
        "a.py",
        "tests/test_a.py",
        "src/lib.rs",
        "tests/a.rs",
        "src/a.test.ts",
        "a_test.go",
        "package.json",
        "Cargo.toml",
        "pyproject.toml",
        "Makefile",
        ".gitignore",
        "conftest.py",
        "spec/a_spec.rb",
        "check.sh",
        "x.bin",
        "pom.xml",
    ];
    prop::sample::select(names).prop_map(str::to_owned)
}

fn trees() -> impl Strategy<Value = MemoryTree> {
    let pieces = prop::sample::select(vec![
        "x = 1\n",
        "# noqa\n",
        "#[cfg(test)]\n",
        "mod a {\n",
        "}\n",
        "/// ```\n",
        "'",
        "\"",
        "/*",
        "*/",
        "test:\n\ta\n",
        "[tool.ruff]\n",
        "{\"scripts\":{}}",
        "<plugins>\n",
        "\\",
        "\t",
        ">>> a\n",
        "exit 0\n",
        "é",
    ]);
    let text = prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat().into_bytes());
    let bytes = prop_oneof![4 => text, 1 => any::<Vec<u8>>()];
    prop::collection::btree_map(paths(), bytes.prop_map(|bytes| file(&bytes)), 0..8)
}

const CHECKS: [&str; 6] = ["pytest", "make test", "npm test", "sh check.sh && ruff .", "cargo clippy", "'"];

proptest! {
    #[test]
    fn any_trees_are_compared_without_harm_and_in_any_order(
        (start, end) in (trees(), trees()),
        check in prop::sample::select(CHECKS.to_vec()),
    ) {
        let mut changed: Vec<String> = start.keys().chain(end.keys()).cloned().collect();
        let found = looked(check, &Declared::default(), &changed, &start, &end);
        changed.reverse();
        prop_assert_eq!(&found, &looked(check, &Declared::default(), &changed, &start, &end));
        let worst = found.files.iter().map(|file| file.kind.state()).max();
        prop_assert!(worst.is_none_or(|worst| worst <= found.state));
    }

    #[test]
    fn nothing_happens_to_the_judges_of_one_tree(tree in trees(), check in prop::sample::select(CHECKS.to_vec())) {
        let changed: Vec<String> = tree.keys().cloned().collect();
        let found = looked(check, &Declared::default(), &changed, &tree, &tree);
        prop_assert_eq!(found, JudgesFound::unchanged());
    }

    #[test]
    fn new_tests_alone_are_never_a_change(
        start in trees(),
        names in prop::collection::vec("[a-z]{1,8}", 1..4),
    ) {
        let mut end = start.clone();
        let mut changed = Vec::new();
        for name in names {
            let path = format!("tests/test_new_{name}.py");
            end.insert(path.clone(), file(b"def test_it():\n    assert f() == 1\n"));
            changed.push(path);
        }
        let found = looked("pytest", &Declared::default(), &changed, &start, &end);
        prop_assert_eq!(found.state, JudgesState::Added);
    }
}
