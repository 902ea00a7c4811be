//! A closing pass that is killed, at any moment of it: whoever comes next leaves the tree byte for byte as the run had it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Project, git};

/// What the fix does: it mends the work, and does to judges what can be done to them.
const FIX: &str = "\
echo good > a.txt
printf 'sleep 0.02; grep -q goo a.txt\\n' > test.sh; chmod 750 test.sh
printf 'x\\000y' > conftest.py; chmod 640 conftest.py
rm tests/test_b.py; ln -sf ../a.txt tests/test_c.py
printf '[project]\\nname = \"b\"\\n[tool.pytest]\\na = 2\\n' > pyproject.toml
printf '[pytest]\\naddopts = -x\\n' > pytest.ini
rm -r spec; ln -s tests spec";

fn project() -> Project {
    let definition = format!(
        "name: main\ninitial: check\non_change: report\nstates:\n  check: {{action: sh test.sh, check: true, on_yes: done, on_no: fix}}\n  fix:\n    action: |\n      {}\n    next: check\n  done: {{terminal: true}}\n",
        FIX.replace('\n', "\n      ")
    );
    let idle = "name: idle\ninitial: look\nscope: [elsewhere]\nstates:\n  look: {action: 'true', on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let project = Project::new()
        .file(".loops/main.yaml", &definition)
        .file(".loops/idle.yaml", idle)
        .file(".gitignore", "pytest.ini\n")
        .file("a.txt", "bad\n")
        .file("test.sh", "sleep 0.02; grep -q good a.txt\n")
        .file("tests/test_b.py", "def test_b():\n    assert b()\n")
        .file("tests/test_c.py", "def test_c():\n    assert c()\n")
        .file("pyproject.toml", "[project]\nname = \"a\"\n[tool.pytest]\na = 1\n")
        .file("spec/deep/a_spec.rb", "it 'is' do\nend\n");
    for words in [&["init", "-q", "-b", "main"][..], &["config", "user.name", "nobody"]] {
        git(&project, words);
    }
    git(&project, &["config", "user.email", "nobody@example.org"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    project.write("pytest.ini", "[pytest]\n");
    project
}

/// Every file of the tree with its mode and content; folders, too.
fn standing(project: &Project) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![project.path().to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(project.path()).unwrap().to_string_lossy().into_owned();
            if matches!(name.as_str(), ".git" | ".loops") {
                continue;
            }
            let metadata = path.symlink_metadata().unwrap();
            let content = content(&path, &metadata);
            if metadata.is_dir() {
                open.push(path);
            }
            found.insert(
                name,
                (metadata.mode() & 0o170_000 | metadata.permissions().mode() & 0o7777, content),
            );
        }
    }
    found
}

fn content(path: &Path, metadata: &fs::Metadata) -> Vec<u8> {
    if metadata.is_symlink() {
        fs::read_link(path).unwrap().to_string_lossy().into_owned().into_bytes()
    } else if metadata.is_dir() {
        Vec::new()
    } else {
        fs::read(path).unwrap()
    }
}

/// Kills runs in their closing passes, so many times, and lets another run, or the resumed one, find what they left.
/// Returns after how many kills something had to be put back.
#[track_caller]
fn kill(count: u32) -> u32 {
    let whole = project();
    let ran = whole.run(&["run", "main", "--strict"]);
    assert_eq!(ran.code, Some(0), "{}", ran.all());
    let expected = standing(&whole);
    let mut put_back = 0;
    let mut kills = 0;
    while kills < count {
        let project = project();
        let mut child = project
            .command(&["run", "main", "--strict"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_in_pass = || !project.run_files(".aside/record.json").is_empty();
        while !is_in_pass() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(u64::from(kills * 7919 % 60_000)));
        let was_over = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        if was_over {
            // A machine that is busy elsewhere let it come to its end.
            assert_eq!(standing(&project), expected);
            kills += u32::from(kills % 2 == 1);
            continue;
        }
        kills += 1;
        put_back += u32::from(standing(&project) != expected);
        let next: &[&str] = if kills % 2 == 0 { &["resume", "main"] } else { &["run", "idle"] };
        let ran = project.run(next);
        assert_eq!(standing(&project), expected, "after {kills} kills, {next:?}: {}", ran.all());
        assert!(project.run_files(".aside/record.json").is_empty(), "{}", ran.all());
    }
    put_back
}

#[test]
fn a_closing_pass_that_is_killed_anywhere_leaves_the_tree_as_it_was() {
    kill(6);
}

/// What a bundle has of the tree is what the run had made of it, and not what its checks were asked with.
#[test]
fn a_bundle_of_a_run_that_was_killed_in_its_closing_pass_has_the_tree_of_the_run() {
    let whole = project();
    whole.run(&["run", "main", "--strict"]).code(0);
    // What git ignores does not travel, nor does a link in the place of a folder.
    let travels = |project: &Project| {
        let mut found = standing(project);
        found.retain(|path, _| path != "pytest.ini" && path != "spec");
        found
    };
    let mut expected = travels(&whole);
    // Git knows whether a file can be executed, and no more.
    for (mode, _) in expected.values_mut() {
        *mode &= 0o170_100;
    }
    for kill in 0..4 {
        let project = project();
        let child =
            project.command(&["run", "main", "--strict"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        while project.run_files(".aside/record.json").is_empty() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_millis(kill * 12));
        child.kill().unwrap();
        child.wait().unwrap();
        let bundled = project.run(&["bundle", "main", "--output", ".loops/run.llz"]);
        if bundled.code != Some(0) {
            // It had come to its end.
            assert!(project.run_files(".aside/record.json").is_empty(), "{}", bundled.all());
            continue;
        }
        let clone = Project::new();
        git(&clone, &["init", "-q", "-b", "main"]);
        git(&clone, &["fetch", "-q", &project.path().to_string_lossy(), "main"]);
        git(&clone, &["reset", "-q", "--hard", "FETCH_HEAD"]);
        let bundle = project.at(".loops/run.llz");
        fs::copy(&bundle, clone.at("run.llz")).unwrap();
        let ran = clone.run(&["resume", "--from", "run.llz"]);
        fs::remove_file(clone.at("run.llz")).unwrap();
        let mut found = travels(&clone);
        for (mode, _) in found.values_mut() {
            *mode &= 0o170_100;
        }
        assert_eq!(found, expected, "{}", ran.all());
    }
}

/// `cargo test --test integration -- --ignored five_hundred_kills`: some minutes.
#[test]
#[ignore = "it takes some minutes"]
fn five_hundred_kills_in_the_closing_pass_leave_the_tree_as_it_was() {
    let put_back = kill(500);
    assert!(put_back > 200, "only {put_back} of 500 kills came while something was aside");
}
