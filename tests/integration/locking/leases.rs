//! `--lock git`: runs on several machines, which share nothing but a git remote. Every project here is a machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Project, Ran, git, signal, wait_for};
use crate::forge::git_server::{Access, Bare, GitServer, Repositories};
use crate::forge::web::{Fault, Planned, When};

const PREFIX: &str = "refs/ll-loop/lease/";

/// A loop with this scope that begins, waits until it may end, and goes on to another step.
fn holder(scope: &str) -> String {
    format!(
        "name: main\nscope: {scope}\ninitial: a\nstates:\n  a: {{action: 'touch began; until test -e may-end || ! test -d \"$PWD\"; do sleep 0.02; done', next: b}}\n  b: {{action: touch after, next: done}}\n  done: {{terminal: true}}\n"
    )
}

/// A loop with this scope that leaves a trace.
fn quick(scope: &str) -> String {
    format!(
        "name: main\nscope: {scope}\ninitial: a\nstates:\n  a: {{action: touch ran, next: done}}\n  done: {{terminal: true}}\n"
    )
}

/// Makes a machine: a checkout with a loop, whose `origin` is this.
fn machine(origin: &str, text: &str) -> Project {
    let project = Project::with_loop(text);
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["remote", "add", "origin", origin]);
    project
}

/// The remote, as a directory that every machine reaches.
struct Remote {
    repositories: Repositories,
    bare: Bare,
}

impl Remote {
    fn new() -> Self {
        let repositories = Repositories::new();
        let bare = repositories.create("octo/project");
        Self { repositories, bare }
    }

    fn url(&self) -> String {
        self.bare.path.display().to_string()
    }

    fn machine(&self, text: &str) -> Project {
        machine(&self.url(), text)
    }

    /// Returns the leases there are.
    fn leases(&self) -> Vec<String> {
        leases(&self.bare)
    }

    /// Puts a commit with this message where a lease would be.
    fn plant(&self, name: &str, message: &[u8]) -> String {
        let tree = self.bare.git(&["mktree"]);
        let id = self.bare.feed(&["commit-tree", &tree], &[], message).unwrap();
        self.bare.git(&["update-ref", &format!("{PREFIX}{name}"), &id]);
        id
    }
}

fn leases(bare: &Bare) -> Vec<String> {
    bare.refs().into_keys().filter(|name| name.starts_with(PREFIX)).collect()
}

/// Returns what the one lease says.
fn record(bare: &Bare) -> Value {
    let names = leases(bare);
    assert_eq!(names.len(), 1, "{names:?}");
    serde_json::from_str(&bare.git(&["log", "-1", "--format=%B", &names[0]])).unwrap()
}

/// Waits until the one lease was renewed so often.
fn wait_for_renewal(bare: &Bare, n: u64) {
    wait_for(|| {
        let names = leases(bare);
        let message = names.first().and_then(|name| bare.ask(&["log", "-1", "--format=%B", name]).ok());
        let record = message.and_then(|message| serde_json::from_str::<Value>(&message).ok());
        record.is_some_and(|record| record["n"].as_u64() >= Some(n))
    });
}

fn ended(child: Child) -> Ran {
    Ran::of(&child.wait_with_output().unwrap())
}

fn started(project: &Project, arguments: &[&str]) -> Child {
    project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts the loop and comes back when it holds its lease and has begun.
fn holding(project: &Project, arguments: &[&str]) -> Child {
    let child = project.start_until(&[&["run", "main", "--lock", "git"], arguments].concat(), "began");
    fs::remove_file(project.at("began")).unwrap();
    child
}

/// Lets the loop end.
fn may_end(project: &Project) {
    project.write("may-end", "");
}

#[test]
fn a_lease_is_a_ref_that_says_who_has_what_and_is_gone_afterwards() {
    let remote = Remote::new();
    let project = remote.machine(&holder("[src, docs]"));
    let child = holding(&project, &[]);
    let record = record(&remote.bare);
    let keys: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["run", "holder", "scopes", "n", "ttl_s"], "no time of any clock");
    assert_eq!(record["scopes"], serde_json::json!(["docs", "src"]));
    assert_eq!(record["ttl_s"], 60);
    assert_eq!(remote.leases(), ["refs/ll-loop/lease/72ab3cadb3547b46"]);
    let dates = remote.bare.git(&["log", "-1", "--format=%at %ct", &remote.leases()[0]]);
    assert_eq!(dates, "0 0");
    let other = remote.machine(&quick("[docs/api]"));
    let instance = record["run"].as_str().unwrap();
    let refused = other.run(&["run", "main", "--lock", "git"]).code(73);
    let refused = refused.says(&format!("the run {instance} has locked `docs`, which overlaps `docs/api`"));
    let _refused = refused.says("--queue");
    assert!(!other.exists("ran"));
    assert!(other.run_files(".events.jsonl").is_empty(), "nothing was run");
    may_end(&project);
    ended(child).code(0);
    assert!(remote.leases().is_empty());
    other.run(&["run", "main", "--lock", "git"]).code(0);
    // Without the option nobody is asked.
    git(&other, &["remote", "remove", "origin"]);
    other.run(&["run", "main"]).code(0);
}

#[test]
fn overlapping_scopes_exclude_each_other_and_others_do_not() {
    for (first, second, code) in [
        ("['.']", "[src/a]", 73),
        ("[src/a]", "['.']", 73),
        ("[src/a]", "[src/ab]", 0),
        ("[src]", "[./src/]", 73),
        ("[src, x]", "[docs, x/y]", 73),
        ("[src]", "[docs]", 0),
        ("[]", "['.']", 0),
    ] {
        let remote = Remote::new();
        let project = remote.machine(&holder(first));
        let child = holding(&project, &[]);
        let other = remote.machine(&quick(second));
        let ran = other.run(&["run", "main", "--lock", "git"]);
        assert_eq!(ran.code, Some(code), "{first} {second}: {}", ran.all());
        may_end(&project);
        ended(child).code(0);
        assert!(remote.leases().is_empty(), "{first} {second}");
    }
}

#[test]
fn paths_are_those_of_the_repository_wherever_the_loop_is() {
    let remote = Remote::new();
    let project = remote.machine("").file("part/.loops/main.yaml", &holder("[src, ../other]"));
    let child = project
        .program(
            "sh",
            &["-c", &format!("cd part && exec '{}' run main --lock git", crate::common::LL_LOOP.as_str())],
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(|| project.exists("part/began"));
    assert_eq!(record(&remote.bare)["scopes"], serde_json::json!(["other", "part/src"]));
    remote.machine(&quick("[part/src/x]")).run(&["run", "main", "--lock", "git"]).code(73);
    remote.machine(&quick("[src]")).run(&["run", "main", "--lock", "git"]).code(0);
    project.write("part/may-end", "");
    ended(child).code(0);
}

/// Lets many run at once, each in the arena for a moment, in which nobody may be there whose scope overlaps. Half of them
/// wait for their turn. Returns how many got it.
fn race(url: &str, bare: &Bare, scopes: &[(&str, &str)]) -> usize {
    let arena = TempDir::with_prefix("ll-arena-").unwrap();
    let at = arena.path().display().to_string();
    let machines: Vec<(Project, bool)> = (0..20)
        .map(|number| {
            let (scope, rooms) = scopes[number % scopes.len()];
            // A directory can be made once.
            let enter = format!("for room in {rooms}; do mkdir {at}/$room || touch {at}/clash-{number}-$room; done");
            let leave = format!("for room in {rooms}; do rmdir {at}/$room; done");
            let text = format!(
                "name: main\nscope: [{scope}]\ninitial: a\nstates:\n  a: {{action: '{enter}; sleep 0.2; {leave}', on_yes: done}}\n  done: {{terminal: true}}\n"
            );
            (machine(url, &text), number % 2 == 0)
        })
        .collect();
    let children: Vec<Child> = machines
        .iter()
        .map(|(project, queues)| {
            let queue: &[&str] = if *queues { &["--queue"] } else { &[] };
            started(project, &[&["run", "main", "--lock", "git", "--lock-ttl", "20s"], queue].concat())
        })
        .collect();
    let mut got = 0;
    for child in children {
        let ran = ended(child);
        assert!(matches!(ran.code, Some(0 | 73)), "{:?}: {}", ran.code, ran.all());
        got += usize::from(ran.code == Some(0));
    }
    let left: Vec<_> = fs::read_dir(arena.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "two were there at once: {left:?}");
    assert_eq!(leases(bare), Vec::<String>::new());
    got
}

#[test]
fn of_twenty_racers_for_one_scope_never_two_hold_it() {
    let remote = Remote::new();
    let got = race(&remote.url(), &remote.bare, &[("'.'", "all")]);
    assert!(got >= 10, "those who wait get it: {got}");
}

#[test]
fn of_twenty_racers_for_scopes_that_overlap_never_two_hold_what_both_want() {
    let remote = Remote::new();
    let scopes = [("'.'", "a ab docs"), ("src/a", "a"), ("src", "a ab"), ("src/ab", "ab"), ("docs", "docs")];
    let got = race(&remote.url(), &remote.bare, &scopes);
    assert!(got >= 10, "those who wait get it: {got}");
}

/// A server that lets in who has the password, and the address with it.
fn web() -> (GitServer, Bare, String) {
    let server = GitServer::start();
    let bare = server.repositories.create("octo/project");
    server.repositories.admit("geheim-geheim", Access::Write);
    server.repositories.admit("reads", Access::Read);
    let url = server.url("octo/project").replace("http://", "http://me:geheim-geheim@");
    (server, bare, url)
}

#[test]
fn of_twenty_racers_on_a_server_never_two_hold_it() {
    let (_server, bare, url) = web();
    let got = race(&url, &bare, &[("'.'", "a ab"), ("src/a", "a"), ("src/ab", "ab")]);
    assert!(got >= 10, "those who wait get it: {got}");
}

/// Returns everything that a project holds below `.loops`, in one text.
fn written(directory: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            all.push_str(&written(&path));
        } else {
            all.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap()));
        }
    }
    all
}

#[test]
fn a_password_in_the_address_is_used_and_never_shown() {
    let (server, bare, url) = web();
    let project = machine(&url, &quick("['.']"));
    let mut said = project.run(&["run", "main", "--lock", "git", "-v"]).code(0).all();
    let wrong = url.replace("geheim-geheim", "wrong-geheim");
    said += &machine(&wrong, &quick("['.']")).run(&["run", "main", "--lock", "git"]).code(69).all();
    let missing = url.replace("octo/project", "octo/nothing");
    said += &project.run(&["run", "main", &format!("--lock=git={missing}")]).code(69).all();
    let query = format!("{}?private_token=geheim-geheim", url.replace("octo/project", "octo/nothing"));
    said += &project.run(&["run", "main", &format!("--lock=git={query}")]).code(69).all();
    assert!(leases(&bare).is_empty());
    drop(server);
    said += &project.run(&["run", "main", "--lock", "git"]).code(69).all();
    let all = said.clone() + &written(&project.at(".loops"));
    assert!(!all.contains("geheim"), "{all}");
    assert!(said.contains("by a lease on http://127.0.0.1"), "{said}");
}

#[test]
fn the_header_that_a_checkout_has_for_its_server_lets_the_lock_in() {
    use base64::Engine as _;
    let (server, bare, _) = web();
    let basic = |token: &str| {
        let words = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{token}"));
        format!("AUTHORIZATION: basic {words}")
    };
    let url = server.url("octo/project");
    let project = machine(&url, &holder("['.']"));
    let key = format!("http.{}/.extraheader", server.web.url());
    git(&project, &["config", &key, &basic("reads")]);
    project.run(&["run", "main", "--lock", "git"]).code(69).says("403").says("contents: write");
    assert!(!project.exists("began"));
    git(&project, &["config", &key, &basic("geheim-geheim")]);
    let child = holding(&project, &[]);
    assert_eq!(leases(&bare).len(), 1);
    may_end(&project);
    ended(child).code(0);
    // What else the checkout says about servers and programs is not obeyed.
    git(&project, &["config", "core.sshCommand", "touch pwned"]);
    git(&project, &["config", "credential.helper", "!touch pwned; false"]);
    git(&project, &["config", "http.proxy", "http://127.0.0.1:1"]);
    git(&project, &["config", "core.hooksPath", "hooks"]);
    project.write("hooks/pre-push", "#!/bin/sh\ntouch pwned\n");
    project.run(&["run", "main", "--lock", "git"]).code(0);
    assert!(!project.exists("pwned"));
}

#[test]
fn without_a_remote_nothing_is_run() {
    let remote = Remote::new();
    let cases: [(&[&str], Option<&str>, &str); 4] = [
        (&["--lock", "git"], None, "no remote `origin`"),
        (&["--lock", "git=upstream"], Some("origin"), "no remote `upstream`"),
        (&["--lock", "git=/nowhere/x.git"], Some("origin"), "/nowhere/x.git"),
        (&["--lock", "git=ext::touch pwned"], Some("origin"), "cannot lock the scope"),
    ];
    for (arguments, name, says) in cases {
        let project = Project::with_loop(&quick("['.']"));
        git(&project, &["init", "-q", "-b", "main"]);
        if let Some(name) = name {
            git(&project, &["remote", "add", name, &remote.url()]);
        }
        project.run(&[&["run", "main"], arguments].concat()).code(69).says(says);
        assert!(!project.exists("ran") && !project.exists("pwned"));
        assert!(project.run_files(".events.jsonl").is_empty());
    }
    let nowhere = Project::with_loop(&quick("['.']"));
    nowhere.run(&["run", "main", "--lock", "git"]).code(69).says("needs a git repository");
    for (arguments, says) in [
        (["--lock", "svn"], "write `git` or `git=REMOTE`"),
        (["--lock", "git="], "write `git` or `git=REMOTE`"),
        (["--lock-ttl", "30s"], "add `--lock git`"),
        (["--lock-ttl", "25h"], "whole seconds"),
        (["--lock-ttl", "0.5"], "whole seconds"),
    ] {
        nowhere.run(&[&["run", "main"], &arguments[..]].concat()).code(2).says(says);
    }
    git(&nowhere, &["init", "-q"]);
    nowhere.run(&["run", "main", "--lock", "git=--upload-pack=x"]).code(2).says("invalid remote");
}

#[test]
fn a_lease_is_removed_at_every_end() {
    let ends: [(&str, i32, &[&str]); 5] = [
        ("{action: 'exit 0', on_yes: done}", 0, &[]),
        ("{action: 'exit 1', on_yes: done, on_no: failed}", 1, &[]),
        ("{action: 'echo FATAL_ERROR: all is lost', next: done}", 4, &[]),
        ("{action: 'sleep 60', next: done}", 75, &["--deadline", "1s"]),
        ("{action: 'sleep 60', next: done}\ntimeout: 1", 124, &[]),
    ];
    let remote = Remote::new();
    for (state, code, arguments) in ends {
        let (state, top) = state.split_once('\n').unwrap_or((state, ""));
        let text = format!(
            "name: main\ninitial: a\n{top}\nstates:\n  a: {state}\n  done: {{terminal: true}}\n  failed: {{terminal: true, outcome: failure}}\n"
        );
        let project = remote.machine(&text);
        project.run(&[&["run", "main", "--lock", "git"], arguments].concat()).code(code);
        assert!(remote.leases().is_empty(), "{state}");
    }
    for (kill, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let project = remote.machine(&holder("['.']"));
        let child = holding(&project, &[]);
        assert_eq!(remote.leases().len(), 1);
        signal(&child, kill);
        ended(child).code(code);
        assert!(remote.leases().is_empty(), "{kill:?}");
    }
}

#[test]
fn the_guard_of_a_killed_run_gives_its_lease_back_when_its_actions_have_ended() {
    for mode in ["--no-ci", "--ci=plain"] {
        let remote = Remote::new();
        let killed = remote.machine(&holder("['.']"));
        let mut child = holding(&killed, &[mode, "--lock-ttl", "3s"]);
        // Not only where the run began, but also where a renewal has moved it.
        wait_for_renewal(&remote.bare, 1);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for(|| remote.leases().is_empty());
        assert!(!killed.exists("after"), "{mode}: nothing of it is at work any more");
        remote.machine(&quick("[src]")).run(&["run", "main", "--lock", "git"]).code(0);
    }
}

#[test]
fn the_next_run_gives_back_the_lease_of_one_that_was_killed_before_it_started_anything() {
    let remote = Remote::new();
    let killed = remote.machine(&quick("[src]"));
    let run = ["run", "main", "--lock", "git", "--lock-ttl", "10m"];
    let mut command = killed.command(&run);
    let ran = Ran::of(&command.env("LL_FAULT", "1").output().unwrap());
    assert_eq!(ran.code, None, "{}", ran.all());
    assert_eq!(remote.leases().len(), 1, "{}", ran.all());
    // For everybody else it is at work.
    remote.machine(&quick("[src]")).run(&run).code(73);
    killed.run(&run).code(0);
    assert!(remote.leases().is_empty());
}

/// Kills a run together with what would clear up after it, as the end of a machine does.
fn lose(mut child: Child) {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let guards = children.split_whitespace().filter(|pid| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(6).any(|word| word == b"\0guard"))
    });
    for guard in guards.filter_map(|pid| Pid::from_raw(pid.parse().unwrap())) {
        kill_process(guard, Signal::KILL).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn who_was_lost_has_the_lease_until_somebody_has_waited_for_it() {
    let remote = Remote::new();
    let killed = remote.machine(&holder("['.']"));
    lose(holding(&killed, &["--lock-ttl", "3s"]));
    may_end(&killed);
    assert_eq!(remote.leases().len(), 1);
    let other = remote.machine(&quick("[src]"));
    other.run(&["run", "main", "--lock", "git"]).code(73).says("3.0s after its last sign of life");
    let ran = other.run(&["run", "main", "--lock", "git", "--queue"]).code(0);
    let _ran = ran.says("waiting: the run main-").says("the scope is free after");
    assert!(remote.leases().is_empty());
    // The killed one goes on where it was.
    killed.run(&["resume", "main", "--lock", "git"]).code(0);
    assert!(killed.exists("after") && remote.leases().is_empty());
}

#[test]
fn who_waits_begins_when_the_other_one_ends_and_can_be_stopped_before() {
    let remote = Remote::new();
    let project = remote.machine(&holder("['.']"));
    let child = holding(&project, &["--lock-ttl", "6s"]);
    let waits = |project: &Project| {
        let child = project.command(&["run", "main", "--lock", "git", "--queue", "--lock-ttl", "6s"]);
        let mut child = { child }
            .stdout(Stdio::piped())
            .stderr(Stdio::from(fs::File::create(project.at("said")).unwrap()))
            .spawn()
            .unwrap();
        wait_for(|| project.read("said").contains("waiting:") || child.try_wait().unwrap().is_some());
        child
    };
    let (patient, stopped) = (remote.machine(&quick("[docs]")), remote.machine(&quick("[src]")));
    let (first, second) = (waits(&patient), waits(&stopped));
    signal(&second, Signal::TERM);
    ended(second).code(143);
    assert!(stopped.read("said").contains("nothing was run"), "{}", stopped.read("said"));
    assert!(!stopped.exists("ran"));
    may_end(&project);
    ended(child).code(0);
    ended(first).code(0);
    assert!(patient.exists("ran") && remote.leases().is_empty());
}

#[test]
fn who_is_stopped_for_longer_than_its_lease_touches_nothing_when_it_wakes_up() {
    let remote = Remote::new();
    let sleeper = remote.machine(&holder("['.']"));
    let child = holding(&sleeper, &["--lock-ttl", "3s"]);
    signal(&child, Signal::STOP);
    let other = remote.machine(&holder("[src]"));
    let second =
        other.start_until(&["run", "main", "--lock", "git", "--queue", "--lock-ttl", "30s"], "began");
    // Both have what they wait for: the one that sleeps would go on to its next step at once.
    may_end(&sleeper);
    signal(&child, Signal::CONT);
    let ran =
        ended(child).code(73).says("lease_lost").says("lost its lease in a").says("ll-loop resume main-");
    assert!(!sleeper.exists("after"), "{}", ran.all());
    let end = sleeper.end();
    assert_eq!(
        (&end["outcome"], &end["terminated_by"]),
        (&"lease_lost".into(), &"lease_lost".into()),
        "{end}"
    );
    let state = sleeper.state();
    assert_eq!(state["outcome"], "lease_lost", "{state}");
    // The other one still has it, and the first waits for it to go on.
    assert_eq!(record(&remote.bare)["scopes"], serde_json::json!(["src"]));
    sleeper.run(&["resume", "main", "--lock", "git"]).code(73);
    may_end(&other);
    ended(second).code(0);
    sleeper.run(&["resume", "main", "--lock", "git"]).code(0);
    assert!(sleeper.exists("after") && remote.leases().is_empty());
}

#[test]
fn a_remote_that_is_cut_off_ends_the_run_which_goes_on_later() {
    let remote = Remote::new();
    let project = remote.machine(&holder("['.']"));
    let mut child = holding(&project, &["--lock-ttl", "3s", "--report-dir", "reports"]);
    let away: PathBuf = remote.bare.path.with_extension("away");
    fs::rename(&remote.bare.path, &away).unwrap();
    wait_for(|| child.try_wait().unwrap().is_some());
    let ran = ended(child).code(73).says("lease_lost").says("could not be removed");
    let _ran = ran.says("it was not renewed in time: fatal:");
    assert!(!project.exists("after"));
    let result: Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
    let outputs = &result["outputs"];
    assert_eq!(
        (&outputs["outcome"], &outputs["exit-code"]),
        (&"lease_lost".into(), &"73".into()),
        "{result}"
    );
    assert_eq!(result["terminated_by"], "lease_lost");
    let summary = project.read("reports/summary.md");
    assert!(
        summary.contains("the lease of its scope was lost") && summary.contains("ll-loop resume"),
        "{summary}"
    );
    let log = written(&project.at(".loops"));
    assert!(log.contains("another machine may have taken it over"), "{log}");
    project.run(&["resume", "main", "--lock", "git"]).code(69);
    fs::rename(&away, &remote.bare.path).unwrap();
    may_end(&project);
    project.run(&["resume", "main", "--lock", "git", "--queue"]).code(0);
    assert!(project.exists("after") && remote.leases().is_empty());
    drop(remote.repositories);
}

#[test]
fn a_server_that_does_not_answer_ends_the_run_in_time_and_is_named() {
    let remote = Remote::new();
    let project = remote.machine(&holder("['.']"));
    let mut child = holding(&project, &["--lock-ttl", "3s"]);
    let silent = format!("until test -e {}; do sleep 0.05; done", project.at("may-end").display());
    remote.bare.hook("pre-receive", &silent);
    wait_for(|| child.try_wait().unwrap().is_some());
    ended(child).code(73).says("it was not renewed in time: the server did not answer");
    assert!(!project.exists("after"));
    may_end(&project);
}

#[test]
fn a_lease_that_somebody_removes_ends_the_run_and_what_is_there_then_stays() {
    let remote = Remote::new();
    let project = remote.machine(&holder("['.']"));
    let mut child = holding(&project, &["--lock-ttl", "3s"]);
    let name = remote.leases()[0].clone();
    let theirs = remote.plant(name.strip_prefix(PREFIX).unwrap(), b"{}");
    wait_for(|| child.try_wait().unwrap().is_some());
    ended(child).code(73).says("another one has taken it over");
    assert_eq!(remote.bare.refs()[&name], theirs, "the lease of somebody else is not removed");
}

#[test]
fn whatever_answer_is_lost_the_lock_is_got_and_removed() {
    let (server, bare, url) = web();
    let project = machine(&url, &quick("['.']"));
    server.web.begin(None);
    project.run(&["run", "main", "--lock", "git"]).code(0);
    let count = server.web.log().len();
    assert!(count > 5, "{:#?}", server.web.log());
    for at in 0..count {
        for when in [When::Before, When::After] {
            server.web.begin(Some(Planned { at, count: 1, fault: Fault::Error, when }));
            let ran = project.run(&["run", "main", "--lock", "git"]);
            assert_eq!(ran.code, Some(0), "{at} {when:?}: {} {:#?}", ran.all(), server.web.log());
            assert_eq!(leases(&bare), Vec::<String>::new(), "{at} {when:?}: {}", ran.all());
        }
    }
}

#[test]
fn renewals_survive_a_server_that_is_away_for_a_moment() {
    let (server, bare, url) = web();
    let project = machine(&url, &holder("['.']"));
    let child = holding(&project, &["--lock-ttl", "12s"]);
    for when in [When::Before, When::After] {
        let before = record(&bare)["n"].as_u64().unwrap();
        server.web.begin(Some(Planned { at: 0, count: 3, fault: Fault::Lost, when }));
        wait_for_renewal(&bare, before + 2);
    }
    may_end(&project);
    ended(child).code(0);
    assert!(project.exists("after") && leases(&bare).is_empty());
}

#[test]
fn leases_of_strangers_are_named_and_end_some_day() {
    let hostile = "\\u001b[2J\\u202ex\\n::error::pwned";
    let claims = |ttl: &str| {
        format!(
            r#"{{"run":"{hostile}","holder":"{hostile}","scopes":["{hostile}","."],"n":5,"ttl_s":{ttl}}}"#
        )
    };
    let bomb = "[".repeat(200_000);
    let huge =
        format!(r#"{{"run":"a","holder":"b","scopes":["."],"n":1,"ttl_s":1,"x":"{}"}}"#, "y".repeat(1 << 20));
    let unreadable = ["", "fix: a typo", "{\"run\":7}", &bomb, &huge, "{\"scopes\":[\"docs\"]}"];
    let remote = Remote::new();
    let name = "0123456789abcdef";
    let project = remote.machine(&quick("['.']"));
    for message in unreadable {
        remote.plant(name, message.as_bytes());
        let ran = project.run(&["run", "main", "--lock", "git"]).code(73);
        let _ran = ran.says(&format!("the lease `{PREFIX}{name}`, which cannot be read"));
    }
    // Whoever waits gets it, after the time of the own lease.
    project.run(&["run", "main", "--lock", "git", "--lock-ttl", "2s", "--queue"]).code(0);
    assert!(remote.leases().is_empty());
    remote.plant(name, claims("999999999999").as_bytes());
    let ran = project.run(&["run", "main", "--lock", "git"]).code(73);
    let _ran = ran.says("1 day after its last sign of life");
    remote.plant(name, claims("0").as_bytes());
    let ran = project.run(&["run", "main", "--lock", "git", "--lock-ttl", "2s", "--queue"]).code(0);
    let said = ran.all();
    assert!(!said.contains(['\u{1b}', '\u{202e}']) && !said.contains("\n::error"), "{said}");
    // A number that is none, and things that are not commits or have other names.
    remote.plant(name, claims("-1").as_bytes());
    project.run(&["run", "main", "--lock", "git"]).code(73);
    let blob = remote.bare.feed(&["hash-object", "-w", "--stdin"], &[], b"x").unwrap();
    remote.bare.git(&["update-ref", &format!("{PREFIX}{name}"), &blob]);
    project.run(&["run", "main", "--lock", "git"]).code(73);
    remote.bare.git(&["update-ref", "-d", &format!("{PREFIX}{name}")]);
    for other in ["x", "0123456789ABCDEF", "0123456789abcdeg", "a/0123456789abcdef"] {
        remote.plant(other, claims("60").as_bytes());
    }
    project.run(&["run", "main", "--lock", "git"]).code(0);
    assert_eq!(remote.leases().len(), 4, "what is not ours stays");
}

#[test]
fn an_inner_run_does_not_wait_for_the_lock_of_the_run_around_it() {
    let remote = Remote::new();
    let inner = crate::common::LL_LOOP.as_str();
    let outer = format!(
        "name: main\nscope: ['.']\ninitial: a\nstates:\n  a: {{action: '{inner} run inner --lock git --queue; echo $? > code; {inner} run inner; echo $? >> code', next: done}}\n  done: {{terminal: true}}\n"
    );
    let project = remote.machine(&outer).file(".loops/inner.yaml", &quick("[src]").replace("main", "inner"));
    project.run(&["run", "main", "--lock", "git", "-v"]).code(0).says("leave out `--lock` of the inner run");
    assert_eq!(project.read("code"), "73\n0\n");
}

#[test]
fn a_run_in_a_worktree_locks_the_paths_of_the_repository() {
    let remote = Remote::new();
    let project = remote.machine(
        &holder("[src]")
            .replace("touch began", "touch ../../../began")
            .replace("test -e may-end", "test -e ../../../may-end"),
    );
    git(&project, &["add", ".loops/main.yaml"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    let child = started(&project, &["run", "main", "--worktree", "--lock", "git"]);
    wait_for(|| project.exists("began"));
    assert_eq!(record(&remote.bare)["scopes"], serde_json::json!(["src"]));
    remote.machine(&quick("[src]")).run(&["run", "main", "--lock", "git"]).code(73);
    may_end(&project);
    ended(child).code(0);
    assert!(remote.leases().is_empty());
}

/// A repository with other kinds of ids.
#[test]
fn a_repository_of_longer_ids_is_locked_as_well() {
    let place = TempDir::with_prefix("ll-sha256-").unwrap();
    let at = place.path().join("r.git");
    let made = Command::new("git").args(["init", "-q", "--bare", "--object-format=sha256"]).arg(&at).status();
    assert!(made.unwrap().success());
    let project = Project::with_loop(&holder("['.']"));
    git(&project, &["init", "-q", "-b", "main", "--object-format=sha256"]);
    git(&project, &["remote", "add", "origin", &at.display().to_string()]);
    let child = holding(&project, &[]);
    assert_eq!(leases(&Bare { path: at.clone() }).len(), 1);
    may_end(&project);
    ended(child).code(0);
    assert!(leases(&Bare { path: at }).is_empty());
}

#[test]
fn a_lease_is_held_where_git_takes_bare_repositories_only_by_their_names() {
    let remote = Remote::new();
    let project = remote.machine(&quick("['.']"));
    // In the home of the test. Git before 2.38 knows no such key.
    project.write(".gitconfig", "[safe]\n\tbareRepository = explicit\n");
    project.run(&["run", "main", "--lock", "git"]).code(0);
    assert!(project.exists("ran") && remote.leases().is_empty());
}
