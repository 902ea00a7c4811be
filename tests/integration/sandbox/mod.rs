//! Actions that are confined: what they try is denied, what they need works, and what cannot be confined does not run.
//!
//! As root, the working tree belongs to somebody else, as whom actions then run. Where bubblewrap cannot start, most of
//! this says so and passes: then `a_sandbox_that_cannot_be_had_is_no_run` is what is left to see.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{Project, Ran, git};
use crate::confined::{As, SOMEBODY, give_away, possible, run_as};

mod at_work;
pub(crate) mod container;
mod landlock;
mod network;
mod probes;

/// Makes a project in git that belongs to somebody.
fn project(main: &str) -> Project {
    let project = Project::with_loop(main)
        .file("src/work.txt", "work\n")
        .file(".github/workflows/ci.yml", "on: push\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["config", "user.name", "Somebody"]);
    git(&project, &["config", "user.email", "somebody@example.org"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "start"]);
    project
}

fn output_of(project: &Project) -> String {
    let events = project.events();
    let action = events.iter().rev().find(|event| event["event"] == "action_complete").unwrap();
    format!("{}{}", action["output_tail"].as_str().unwrap(), action["stderr_tail"].as_str().unwrap())
}

fn confined(project: &Project) -> Vec<Value> {
    project.events().into_iter().filter(|event| event["event"] == "sandbox").collect()
}

/// A loop with one confined action.
fn one(sandbox: &str, action: &str) -> String {
    let action: String = action.lines().flat_map(|line| ["      ", line, "\n"]).collect();
    format!(
        "name: main\ndescription: one confined action\ninitial: work\nstates:\n  work:\n    sandbox: {sandbox}\n    action: |\n{action}    \
         on_yes: done\n    on_no: failed\n    on_error: broken\n  done: {{terminal: true}}\n  failed: {{terminal: true, outcome: failure}}\n  \
         broken: {{terminal: true, outcome: blocked}}\n"
    )
}

#[test]
fn a_sandbox_that_cannot_be_had_is_no_run() {
    let project = project(&one("workspace", "touch ran"));
    let nowhere = project.at("nowhere").to_string_lossy().into_owned();
    let mut command = project.command(&["run", "main", "--no-ci"]);
    command.env("PATH", &nowhere);
    let ran = Ran::of(&command.output().unwrap()).code(69);
    ran.says("`bwrap` is not on PATH");
    let ran = Ran::of(&command.output().unwrap());
    assert!(ran.all().contains("apt-get install -y bubblewrap") && !project.exists("ran"), "{}", ran.all());
    project.write(".loops/main.yaml", &one("{engine: container}", "touch ran"));
    Ran::of(&command.output().unwrap()).code(69).says("neither `docker` nor `podman` is on PATH");
    assert!(!project.exists("ran"));
    project.write(".loops/main.yaml", &one("{engine: host}", "touch ran"));
    project.run(&["run", "main", "--no-ci"]).code(2).says("leaves its sandbox to the host");
    assert!(!project.exists("ran"));
}

/// Makes a bubblewrap that fails some times before it starts an action, as the real one does where a mount goes away meanwhile.
fn failing_bwrap(failures: u32) -> tempfile::TempDir {
    let aside = tempfile::tempdir().unwrap();
    let starts = aside.path().join("starts");
    let starts = starts.display();
    let script = format!(
        "#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin\ncase \"$*\" in *--version* | *' -c :') exec bwrap \"$@\" ;; esac\n\
         echo once >> {starts}\n[ \"$(wc -l < {starts})\" -gt {failures} ] && exec bwrap \"$@\"\n\
         echo 'bwrap: a mount has gone' >&2\nexit 1\n"
    );
    let program = aside.path().join("bwrap");
    std::fs::write(&program, script).unwrap();
    for path in [aside.path(), &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    aside
}

#[test]
fn an_engine_that_fails_before_anything_runs_is_started_again() {
    for who in possible() {
        for (failures, code) in [(2, 0), (3, 5)] {
            let project = project(&one("workspace", "echo ran >> ran"));
            give_away(&project);
            let aside = failing_bwrap(failures);
            let mut command = project.command(&["run", "main", "--no-ci"]);
            command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", aside.path().display()));
            let ran = run_as(command, who).code(code);
            assert_eq!(project.exists("ran"), code == 0, "{}", ran.all());
            let starts = std::fs::read_to_string(aside.path().join("starts")).unwrap();
            assert_eq!(starts.lines().count(), 3, "{}", ran.all());
            let why = "the sandbox did not start, so neither did the action: bwrap: a mount has gone";
            assert_eq!(ran.all().contains(why), code != 0, "{}", ran.all());
        }
    }
}

#[test]
fn what_belongs_to_root_is_not_confined_as_root() {
    if !possible().contains(&As::Root) {
        return;
    }
    let project = project(&one("{engine: bwrap}", "touch ran"));
    project.run(&["run", "main", "--no-ci"]).code(69).says("belongs to root");
    project.run(&["run", "main", "--no-ci", "--sandbox", "off"]).code(69).says("chown -R");
    assert!(!project.exists("ran"));
}

#[test]
fn the_command_line_confines_what_a_loop_leaves_open() {
    for who in possible() {
        let project = project(&one("workspace", "true").replace("    sandbox: workspace\n", ""));
        give_away(&project);
        run_as(project.command(&["run", "main", "--no-ci", "--sandbox", "strict"]), who).code(0);
        let [event] = &confined(&project)[..] else { panic!("{:?}", confined(&project)) };
        assert_eq!((event["engine"].as_str(), event["mode"].as_str()), (Some("bwrap"), Some("strict")));
        assert!(
            event["enforced"].as_array().unwrap().contains(&"home".into()) && event.get("missing").is_none()
        );
    }
}

#[test]
fn what_a_loop_leaves_unconfined_is_said_and_refused_where_strangers_set_it_off() {
    for text in [one("off", "touch ran"), one("off", "touch ran").replace("states:", "sandbox: off\nstates:")]
    {
        let strangers = project(&text).env("GITHUB_EVENT_NAME", "pull_request");
        for asked in [&[][..], &["--sandbox", "strict"]] {
            let ran = strangers.run(&[&["run", "main", "--ci=plain"], asked].concat()).code(2);
            ran.says("`work` says `sandbox: off`").says("strangers can set off the event `pull_request`");
        }
        assert!(!strangers.exists("ran"));
    }
    let own = project(&one("off", "true"));
    own.run(&["run", "main", "--no-ci"]).code(0).says("warning: `work` says `sandbox: off`");
}

#[test]
fn a_sandbox_where_nothing_runs_is_an_error() {
    for (state, why) in [
        ("{sandbox: workspace, next: done}", "the state runs nothing"),
        (
            "{action_type: human_approval, action: 'Go on?', sandbox: workspace, on_yes: done, on_no: done}",
            "starts no process",
        ),
        ("{loop: other, sandbox: strict, next: done}", "in the loop that this state runs"),
        ("{action: make, sandbox: read-only, next: done}", "only the host of a prompt"),
        ("{action: make, sandbox: tight, next: done}", "cannot be `tight`"),
        ("{action: make, sandbox: {mode: off, net: none}, next: done}", "confines nothing"),
        ("{action: make, sandbox: {net: [1.2.3.4]}, next: done}", "an address is not a name"),
        ("{action: make, sandbox: {forward: [0]}, next: done}", "a port from 1 to 65535"),
        ("{action: make, broker: auto, next: done}", "unknown key"),
        ("{action: make, judges: [x], next: done}", "unknown key"),
        ("{action: make, reuse: true, next: done}", "unknown key"),
    ] {
        let text = format!(
            "name: main\ndescription: x\ninitial: work\nstates:\n  work: {state}\n  done: {{terminal: true}}\n"
        );
        Project::with_loop(&text).run(&["validate", "main"]).code(2).says(why);
    }
}

/// What is outside of a sandbox, for an action to reach for.
struct Outside {
    directory: tempfile::TempDir,
    victim: Child,
    port: u16,
    _listening: (TcpListener, UnixListener),
}

impl Outside {
    fn new() -> Self {
        // Not below the temporary directory, of which an action has its own.
        let directory = tempfile::TempDir::with_prefix_in("ll-outside-", "/var/lib")
            .or_else(|_| tempfile::TempDir::with_prefix_in("ll-outside-", env!("CARGO_TARGET_TMPDIR")));
        let directory = directory.unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let files = directory.path().join("_runner_file_commands");
        let home = |name: &str| directory.path().join("home").join(name);
        for made in [&files, &home(".ssh"), &home(".aws"), &home(".gnupg")] {
            std::fs::create_dir_all(made).unwrap();
        }
        for (name, text) in [
            ("file", "kept"),
            ("home/.ssh/id", "secret"),
            ("home/.aws/credentials", "secret"),
            ("home/.gnupg/S.gpg-agent", "secret"),
            ("home/.bashrc", "kept"),
            ("_runner_file_commands/set_output", "kept"),
        ] {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
        }
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let unix = UnixListener::bind(directory.path().join("socket")).unwrap();
        std::fs::set_permissions(directory.path().join("socket"), std::fs::Permissions::from_mode(0o777))
            .unwrap();
        let mut victim = Command::new("sleep");
        victim
            .arg("604")
            .env("LL_VICTIM", "1")
            .env("LL_ONLY_OUTSIDE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if rustix::process::getuid().is_root() {
            victim.uid(SOMEBODY).gid(SOMEBODY);
        }
        let port = tcp.local_addr().unwrap().port();
        let victim = victim.spawn().unwrap();
        Self { directory, victim, port, _listening: (tcp, unix) }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn is_as_it_was(&mut self) -> bool {
        let read = |name: &str| std::fs::read_to_string(self.path().join(name)).unwrap_or_default();
        let kept = ["file", "home/.bashrc", "_runner_file_commands/set_output"]
            .iter()
            .all(|name| read(name) == "kept");
        let names = std::fs::read_dir(self.path()).unwrap().count();
        kept && names == 4 && self.victim.try_wait().unwrap().is_none()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _gone = self.victim.kill();
        let _reaped = self.victim.wait();
    }
}
