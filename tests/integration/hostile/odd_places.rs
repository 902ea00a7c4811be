//! Places where a file is named and something else lies: a pipe that nobody writes, a socket, a device without an end, a
//! directory. Nobody waits for one.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use crate::common::{Project, Ran, git, signal, wait_for};

const LOOP: &str = "name: main
initial: a
states:
  a: {action: 'echo hi', next: done}
  done: {terminal: true}
";

const KINDS: [&str; 4] = ["pipe", "socket", "device", "directory"];

/// Puts something into a place, instead of what is there.
fn put(project: &Project, kind: &str, place: &str) {
    let path = project.at(place);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.is_dir() {
        std::fs::remove_dir_all(&path).unwrap();
    }
    let _absent = std::fs::remove_file(&path);
    match kind {
        "pipe" => mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        "socket" => drop(UnixListener::bind(&path).unwrap()),
        "device" => symlink("/dev/zero", &path).unwrap(),
        "directory" => std::fs::create_dir(&path).unwrap(),
        other => panic!("{other}"),
    }
}

/// A project with a run that has ended, in a repository.
fn project() -> Project {
    let project = Project::with_loop(LOOP).file(".gitignore", "/odd\n/reports\n/out\n/summary\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    let _ran = project.run(&["run", "main"]).code(0);
    project
}

/// Runs a command that must come to its end by itself. The bound is that of a machine with much else to do.
#[track_caller]
fn ends(project: &Project, line: &str) -> Ran {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut child = project.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..3000 {
        if child.try_wait().unwrap().is_some() {
            return Ran::of(&child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("`{line}` hangs");
}

/// Where a file is named on the command line that is to be read, and is not a directory.
const READ: &[&str] = &[
    "run ./odd",
    "./odd",
    "run --plan ./odd --leg 1",
    "resume ./odd",
    "resume main --from ./odd",
    "bundle ./odd",
    "validate ./odd",
    "show ./odd",
    "show main --run ./odd",
    "compile ./odd",
    "merge --plan ./odd reports",
    "plan ./odd",
    "plan main --each p=@./odd",
    "plan main --weights ./odd --legs 2",
    "status ./odd",
    "stop ./odd",
    "history ./odd",
    "logs ./odd",
    "diff ./odd main",
    "diff main ./odd",
    "deliver ./odd --to patch",
    "report ./odd",
    "report main --format html --against ./odd",
    "why ./odd",
    "replay ./odd",
    "repro ./odd",
    "rewind ./odd --to 1",
    "criteria --state ./odd status",
    "criteria --state ./odd check",
    "criteria start --spec ./odd",
];

#[test]
fn what_is_no_file_is_named_and_not_read() {
    for kind in ["pipe", "socket", "device"] {
        let project = project();
        for line in READ {
            put(&project, kind, "odd");
            let ran = ends(&project, line);
            assert_eq!(ran.code, Some(2), "{line} with a {kind}: {}", ran.all());
            assert!(ran.all().contains("odd"), "{line} with a {kind}: {}", ran.all());
        }
    }
}

#[test]
fn no_command_waits_for_what_is_no_file() {
    let more = [
        "stats --from ./odd",
        "merge ./odd",
        "merge --plan ./odd ./odd",
        "run main --replay ./odd",
        "run main --record ./odd",
        "artifact upload n ./odd",
        "artifact download n --to ./odd",
        "add ./odd",
        "run main ./odd",
        "hook stop-check",
    ];
    for kind in KINDS {
        let project = project();
        for line in READ.iter().chain(&more) {
            put(&project, kind, "odd");
            let ran = ends(&project, line);
            assert!(ran.code.is_some(), "{line} with a {kind}: {}", ran.all());
        }
    }
}

#[test]
fn what_nobody_reads_is_not_written_to_and_stays() {
    for kind in ["pipe", "socket", "directory"] {
        let project = project();
        for line in ["compile main -o odd", "report main -o odd", "plan main -o odd"] {
            put(&project, kind, "odd");
            let ran = ends(&project, line);
            assert_eq!(ran.code, Some(2), "{line} with a {kind}: {}", ran.all());
            assert!(ran.all().contains("odd"), "{line} with a {kind}: {}", ran.all());
            assert!(!project.at("odd").is_file(), "{line} with a {kind}");
        }
    }
    let project = project();
    for kind in ["pipe", "socket", "device"] {
        put(&project, kind, "odd");
        let _ran = ends(&project, "run main --report-dir odd").code(2).says("`odd` is a");
    }
}

#[test]
fn what_lies_in_our_own_places_holds_nobody_up() {
    let places = [
        ".loops/main.yaml",
        ".loops/other.yaml",
        ".loops/.running/main-20260101T000000-000001.events.jsonl",
        ".loops/.running/main-20260101T000000-000001.state.json",
        ".loops/.running/main-20260101T000000-000001.pid",
        ".loops/.history/main",
        ".loops/vendor.lock",
        ".loop/state.json",
        ".claude/settings.json",
        ".github/ll-loop.yml",
        "reports/state.json",
        "reports/events.jsonl",
        "reports/a.llz",
        "Cargo.toml",
    ];
    let commands = [
        "run main --report-dir reports",
        "resume main",
        "validate",
        "list",
        "status",
        "stop main",
        "history",
        "stats",
        "stats --from reports",
        "logs main",
        "report main",
        "report reports",
        "why",
        "deliver main --dry-run",
        "merge reports",
        "init --dry-run",
        "doctor",
        "update",
        "criteria status",
        "hook stop-check",
        "hook install",
    ];
    for place in places {
        let project = project();
        put(&project, "pipe", place);
        for line in commands {
            let ran = ends(&project, line);
            assert!(ran.code.is_some(), "{line} with a pipe at {place}: {}", ran.all());
        }
    }
}

#[test]
fn files_of_the_ci_system_that_are_none_are_passed_over_with_a_warning() {
    for (variable, place) in [("GITHUB_OUTPUT", "out"), ("GITHUB_STEP_SUMMARY", "summary")] {
        for kind in KINDS {
            let project = project().in_github_job();
            put(&project, kind, place);
            let ran = ends(&project, "run main");
            assert!(matches!(ran.code, Some(0 | 1)), "{variable} is a {kind}: {}", ran.all());
            assert!(ran.all().contains(&format!("/{place}")), "{variable} is a {kind}: {}", ran.all());
        }
    }
    for variable in ["GITHUB_ENV", "GITHUB_STATE", "GITHUB_EVENT_PATH", "GITHUB_PATH", "RUNNER_TEMP"] {
        let root = project().in_github_job();
        let place = root.at("odd").to_string_lossy().into_owned();
        let project = root.env(variable, place);
        put(&project, "pipe", "odd");
        let ran = ends(&project, "run main");
        assert!(matches!(ran.code, Some(0 | 1)), "{variable}: {}", ran.all());
    }
}

/// Sends a signal at any moment, and expects that the process ends.
#[test]
fn who_is_asked_to_end_ends() {
    let slow = LOOP.replace("echo hi", "touch here; sleep 600");
    for sent in [Signal::TERM, Signal::INT] {
        let project = Project::with_loop(&slow);
        let mut child = project.start_until(&["run", "main"], "here");
        signal(&child, sent);
        wait_for(|| child.try_wait().unwrap().is_some());
    }
}

/// Tells whether a process receives SIGTERM instead of ending by it.
fn listens(child: &Child) -> bool {
    const TERM: u64 = 1 << 14;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & TERM != 0)
}

/// Where git waits for who writes, and we for git. The last one is found by git alone, in the middle of its work.
const IN_FRONT_OF_GIT: [&str; 10] = [
    ".git/HEAD",
    ".git/config",
    ".git/index",
    ".git/packed-refs",
    ".git/info/attributes",
    ".git/objects/pack/multi-pack-index",
    ".gitattributes",
    ".gitignore",
    ".loops/.gitignore",
    "sub/.gitignore",
];

#[test]
fn nobody_waits_for_git_once_the_end_was_asked_for() {
    for place in IN_FRONT_OF_GIT {
        for line in ["run main --report-dir reports", "run main --worktree", "plan main", "doctor"] {
            let project = project().file("sub/file", "text");
            put(&project, "pipe", place);
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut child =
                project.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut ended = false;
            wait_for(|| {
                ended = child.try_wait().unwrap().is_some();
                ended || listens(&child) || !line.starts_with("run")
            });
            if !ended {
                signal(&child, Signal::TERM);
            }
            wait_for(|| child.try_wait().unwrap().is_some());
        }
    }
}

#[test]
fn a_pipe_in_front_of_git_is_named() {
    for place in &IN_FRONT_OF_GIT[..9] {
        let project = project();
        put(&project, "pipe", place);
        let why = format!("{place}`, which is not a file");
        let _ran = ends(&project, "plan main").says("git would wait for").says(&why);
        let _ran = ends(&project, "doctor");
        let _ran = ends(&project, "run main --ci=plain --report-dir reports").says(&why);
    }
}

#[test]
fn a_pipe_that_the_configuration_of_git_names_is_named() {
    for setting in
        ["[include]\n\tpath = \"pipe\"", "[core]\n\texcludesFile = pipe", "[core] attributesFile = ../pipe"]
    {
        let project = project();
        let config = project.read(".git/config");
        project.write(".git/config", &format!("{config}{setting}\n"));
        put(&project, "pipe", if setting.contains("[include]") { ".git/pipe" } else { "pipe" });
        let says = |line: &str| {
            let ran = ends(&project, line);
            assert!(ran.all().contains("pipe`, which is not a file"), "{setting}: {line}: {}", ran.all());
        };
        says("plan main");
        says("run main --ci=plain --report-dir reports");
    }
    // That nothing is ignored, or that no file has attributes, is said so.
    let project = project();
    let config = project.read(".git/config");
    project.write(".git/config", &format!("{config}[core]\n\texcludesFile = /dev/null\n"));
    let ran = project.run(&["plan", "main"]);
    assert!(!ran.all().contains("git would wait"), "{}", ran.all());
}

#[test]
fn an_action_that_puts_a_pipe_in_front_of_git_does_not_keep_a_run_from_its_end() {
    let planted = LOOP.replace("echo hi", "mkdir sub; mkfifo sub/.gitignore; touch here; sleep 600");
    let project = project();
    project.write(".loops/main.yaml", &planted);
    let mut child = project.start_until(&["run", "main", "--ci=plain", "--report-dir", "reports"], "here");
    signal(&child, Signal::TERM);
    wait_for(|| child.try_wait().unwrap().is_some());
    assert!(project.exists("reports/result.json"));
}

/// The commands that look at the files of a run, or write them.
const OF_A_RUN: &[&str] = &[
    "report main",
    "why main",
    "history main",
    "status",
    "logs main",
    "replay main",
    "bundle main",
    "resume main",
];

#[test]
fn nobody_waits_for_a_pipe_among_the_files_of_a_run() {
    let killed = || {
        let project = project().file(".loops/main.yaml", &LOOP.replace("echo hi", "kill -9 $PPID; sleep 9"));
        drop(project.run(&["run", "main", "--no-ci"]));
        project
    };
    let names = |project: &Project| {
        let files = std::fs::read_dir(project.at(".loops/.running")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("main-")).collect::<Vec<_>>()
    };
    let endings: Vec<String> =
        names(&killed()).iter().map(|name| name.split_once('.').unwrap().1.to_owned()).collect();
    assert!(endings.iter().any(|ending| ending == "unreported"), "{endings:?}");
    for ending in endings {
        for command in OF_A_RUN {
            let project = killed();
            let name = names(&project).into_iter().find(|name| name.ends_with(&ending)).unwrap();
            put(&project, "pipe", &format!(".loops/.running/{name}"));
            ends(&project, command);
        }
    }
}
