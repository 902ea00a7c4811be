//! The index of git says by times and flags which files it need not look at, and an action can write there what it likes. No
//! change is hidden by that.

use crate::common::{Project, git};

/// Writes into the index of the repository what is not so.
pub(crate) const FORGE: &str = r#"
import hashlib, os, struct, subprocess, sys

def entries(data):
    count, = struct.unpack(">I", data[8:12])
    at = 12
    for _ in range(count):
        length = struct.unpack(">H", data[at + 60:at + 62])[0] & 0xfff
        name = data[at + 62:at + 62 + length].decode()
        yield at, name
        at += (62 + length + 8) // 8 * 8
    yield at, None

def stat(path):
    found = os.lstat(path)
    seconds = lambda ns: (ns // 10**9, ns % 10**9)
    return struct.pack(
        ">10I", *seconds(found.st_ctime_ns), *seconds(found.st_mtime_ns), found.st_dev & 0xffffffff,
        found.st_ino & 0xffffffff, found.st_mode, found.st_uid, found.st_gid, found.st_size & 0xffffffff)

def save(place, data, is_checked):
    body = data[:-20]
    times = os.stat(place)
    with open(place, "wb") as file:
        file.write(body + (hashlib.sha1(body).digest() if is_checked else data[-20:]))
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))

what, place, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
data = open(place, "rb").read()
if what == "times":
    for at, name in entries(data):
        if name in paths:
            old = struct.unpack(">I", data[at + 24:at + 28])[0]
            data = data[:at] + stat(name) + data[at + 40:]
            data = data[:at + 24] + struct.pack(">I", old) + data[at + 28:]
    save(place, data, "sharedindex" not in place)
elif what == "tree":
    every = list(entries(data))
    tree = bytes.fromhex(subprocess.check_output(["git", "rev-parse", "HEAD^{tree}"], text=True).strip())
    body = b"\0" + f"{len(every) - 1} 0\n".encode() + tree
    end = every[-1][0]
    save(place, data[:end] + b"TREE" + struct.pack(">I", len(body)) + body + b"\0" * 20, True)
"#;

fn project() -> Project {
    let project = Project::new()
        .file(".gitignore", "forge.py\n")
        .file("a.txt", "one\n")
        .file("b.txt", "two\n")
        .file("sub/c.txt", "three\n")
        .file("forge.py", FORGE);
    for words in
        [&["init", "-q", "-b", "main"][..], &["config", "user.name", "t"], &["config", "user.email", "t@t"]]
    {
        git(&project, words);
    }
    git(&project, &["config", "index.version", "2"]);
    project
}

/// What was done to the checkout before the run, and what its action does.
const TRICKS: &[(&str, &str, &str)] = &[
    (
        "the times of the change beside the id of the commit",
        "",
        "echo eno > a.txt; forge times .git/index a.txt",
    ),
    ("the same, with another size", "", "echo something else > a.txt; forge times .git/index a.txt"),
    (
        "the same, and a flag",
        "",
        "echo x > a.txt; forge times .git/index a.txt; git update-index --assume-unchanged a.txt",
    ),
    (
        "the same, and another flag",
        "",
        "echo x > a.txt; forge times .git/index a.txt; git update-index --skip-worktree a.txt",
    ),
    (
        "a flag that was there is taken away",
        "git update-index --assume-unchanged a.txt",
        "echo x > a.txt; git update-index --no-assume-unchanged a.txt; forge times .git/index a.txt",
    ),
    (
        "a flag that was there stays",
        "git update-index --assume-unchanged a.txt",
        "echo x > a.txt; forge times .git/index a.txt",
    ),
    (
        "another flag that was there",
        "git update-index --skip-worktree a.txt",
        "echo x > a.txt; forge times .git/index a.txt",
    ),
    (
        "what is staged is not what stands there",
        "",
        "echo x > a.txt; git add a.txt; echo y > a.txt; forge times .git/index a.txt",
    ),
    (
        "the tree of the commit is said to be that of the index",
        "",
        "echo x > a.txt; git add a.txt; forge tree .git/index",
    ),
    (
        "a file that is to be added",
        "",
        "echo x > b.txt; git rm -q --cached b.txt; git add -N b.txt; forge times .git/index b.txt",
    ),
    (
        "an index that is split",
        "",
        "git update-index --split-index; echo x > a.txt; forge times .git/sharedindex.* a.txt",
    ),
    (
        "an index that was split",
        "git update-index --split-index",
        "echo x > a.txt; forge times .git/sharedindex.* a.txt",
    ),
    (
        "an index that was split, and a flag",
        "git update-index --split-index --assume-unchanged a.txt",
        "echo x > a.txt; forge times .git/sharedindex.* a.txt",
    ),
    (
        "an index that splits itself",
        "git config core.splitIndex true; git update-index --force-write-index",
        "echo x > a.txt; forge times .git/sharedindex.* a.txt",
    ),
    ("an index of the future", "", "echo x > a.txt; touch -d '+1 day' .git/index"),
    (
        "an index of the future that lies",
        "",
        "echo x > a.txt; forge times .git/index a.txt; touch -d '+1 day' .git/index",
    ),
    ("an index that is gone", "", "echo x > a.txt; rm .git/index"),
    ("an index without times", "", "echo x > a.txt; rm .git/index; git read-tree HEAD"),
    (
        "an index of another repository",
        "",
        "git clone -q . other; cp other/.git/index .git/index; rm -r other; echo x > a.txt; forge times .git/index a.txt",
    ),
    (
        "a monitor that has seen nothing",
        "",
        "git config core.fsmonitor true; git update-index --fsmonitor; git update-index --fsmonitor-valid a.txt; echo x > a.txt",
    ),
    (
        "a hook that has seen nothing",
        "",
        "printf '#!/bin/sh\nprintf \"token\\\\0\"\n' > .git/mon; chmod +x .git/mon; git config core.fsmonitor .git/mon; git update-index --fsmonitor; git status; git update-index --fsmonitor-valid a.txt; echo x > a.txt",
    ),
    (
        "the copy is overwritten",
        "",
        "echo x > a.txt; forge times .git/index a.txt; for copy in .loops/.running/*.objects/start-index; do cp .git/index \"$copy\"; done",
    ),
    (
        "the copy is removed",
        "",
        "echo x > a.txt; forge times .git/index a.txt; rm -f .loops/.running/*.objects/start-index",
    ),
    ("an index of version 4", "", "git update-index --index-version 4; echo x > a.txt"),
    (
        "ids of a hash that is not checked",
        "",
        "echo x > a.txt; git config index.skipHash true; git update-index --force-write-index; forge times .git/index a.txt",
    ),
    ("a mode, and its times", "", "chmod +x a.txt; forge times .git/index a.txt"),
    ("a file in a folder", "", "echo x > sub/c.txt; forge times .git/index sub/c.txt"),
];

#[test]
fn no_change_is_hidden_by_the_index() {
    let mut wrong = Vec::new();
    for (what, before, action) in TRICKS {
        let forge = "forge() { python3 forge.py \"$@\"; }";
        let definition = format!(
            "name: main\ninitial: work\non_change: fail\nstates:\n  work:\n    action: |\n      {forge}\n      {}\n    shell: [bash, -ec]\n    on_yes: done\n  done: {{terminal: true}}\n",
            action.replace('\n', "\n      ")
        );
        let project = project().file(".loops/main.yaml", &definition);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", "start"]);
        let done = project.program("bash", &["-euc", before]).output().unwrap();
        assert!(done.status.success(), "{what}");
        let ran = project.run(&["run", "main"]);
        if ran.code != Some(1) || !ran.all().contains(".txt") {
            wrong.push(format!("{what}: {:?}\n{}", ran.code, ran.all()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), TRICKS.len(), wrong.join("\n\n"));
}

/// What only looks like a change to an index of the start is none.
#[test]
fn what_was_written_again_is_no_change() {
    for action in [
        "cp a.txt x; mv x a.txt; git status",
        "echo x > a.txt; git stash -q; git stash drop -q",
        "git switch -q -c other; echo x > a.txt; git commit -qam x; git switch -q main; git branch -qD other",
        "git update-index --split-index; git update-index --index-version 4",
        "rm .git/index; git reset -q",
        "git update-index --assume-unchanged a.txt",
        "touch a.txt b.txt sub/c.txt; git add -A",
        "rm -f .loops/.running/*.objects/start-index",
    ] {
        let definition = format!(
            "name: main\ninitial: work\non_change: fail\nstates:\n  work: {{action: {action:?}, on_yes: done}}\n  done: {{terminal: true}}\n"
        );
        let project = project().file(".loops/main.yaml", &definition);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", "start"]);
        let ran = project.run(&["run", "main"]);
        assert_eq!(ran.code, Some(0), "{action}: {}", ran.all());
    }
}
