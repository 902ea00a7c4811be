//! Runs beside each other: who may, who waits, who is told what. Real processes, and the actions themselves look.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::common::{Project, Ran, signal, wait_for};

/// A loop that says that it began, and ends when it may.
fn holder(name: &str, scope: &str) -> String {
    format!(
        "name: {name}\ndescription: d\nscope: {scope}\ninitial: a\nstates:\n  a: {{action: 'touch {name}-began; until test -e {name}-may-end || ! test -d $PWD; do sleep 0.02; done', next: done}}\n  done: {{terminal: true}}\n"
    )
}

/// A loop that leaves a trace.
fn quick(name: &str, scope: &str) -> String {
    format!(
        "name: {name}\ndescription: d\nscope: {scope}\ninitial: a\nstates:\n  a: {{action: 'echo {name} >> order', next: done}}\n  done: {{terminal: true}}\n"
    )
}

/// A project where `holder` runs with this scope.
fn held(scope: &str) -> (Project, Child) {
    let project = Project::new().file(".loops/holder.yaml", &holder("holder", scope));
    let child = project.start_until(&["run", "holder"], "holder-began");
    (project, child)
}

/// Lets the loop end and returns its result.
fn ended(project: &Project, name: &str, child: Child) -> Ran {
    project.write(&format!("{name}-may-end"), "");
    Ran::of(&child.wait_with_output().unwrap())
}

fn claims(project: &Project, suffix: &str) -> Vec<String> {
    let entries = fs::read_dir(project.at(".loops/.running")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(suffix)).collect()
}

fn started(project: &Project, arguments: &[&str]) -> Child {
    project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a run that has to wait, and comes back when it does.
fn waiting(project: &Project, name: &str) -> Child {
    let child = started(project, &["run", name, "--queue"]);
    wait_for(|| claims(project, ".wait").iter().any(|claim| claim.starts_with(&format!("{name}-2"))));
    child
}

#[test]
fn a_run_whose_scope_overlaps_is_refused_and_told_by_whom() {
    for (first, second) in [
        ("[src]", "[src/api]"),
        ("[src/api]", "[src]"),
        ("['.']", "[docs/]"),
        ("[./src/]", "[src]"),
        ("[a, b]", "[c, b/x]"),
        ("['..']", "[src]"),
        ("[x/../src]", "[src]"),
    ] {
        let (project, child) = held(first);
        project.write(".loops/second.yaml", &quick("second", second));
        let ran = project.run(&["run", "second"]).code(73);
        let instance = claims(&project, ".lock").pop().unwrap().replace(".lock", "");
        let ran = ran.says(&format!("run {instance} of the loop `holder` holds")).says("--queue");
        ran.says(&format!("ll-loop stop {instance}"));
        assert!(!project.exists("order"));
        assert_eq!(project.run_files(".events.jsonl").len(), 1, "a refused run leaves nothing behind");
        assert_eq!(project.run_files(".pid").len(), 1);
        ended(&project, "holder", child).code(0);
        project.run(&["run", "second"]).code(0);
    }
}

#[test]
fn runs_with_disjoint_scopes_run_beside_each_other() {
    for (first, second) in
        [("[src/api]", "[src/api2]"), ("[src]", "[tests]"), ("[src]", "[]"), ("[src]", "[../src]")]
    {
        let (project, child) = held(first);
        project.write(".loops/second.yaml", &quick("second", second));
        project.run(&["run", "second"]).code(0);
        ended(&project, "holder", child).code(0);
    }
}

#[test]
fn absolute_paths_and_links_are_what_they_lead_to() {
    let (project, child) = held("[src]");
    fs::create_dir(project.at("src")).unwrap();
    std::os::unix::fs::symlink(project.at("src"), project.at("link")).unwrap();
    project
        .write(".loops/absolute.yaml", &quick("absolute", &format!("['{}']", project.at("src/x").display())));
    project.run(&["run", "absolute"]).code(73);
    project.write(".loops/linked.yaml", &quick("linked", "[link/not/there]"));
    project.run(&["run", "linked"]).code(73).says("holds `src`, which overlaps `src/not/there`");
    ended(&project, "holder", child).code(0);
}

#[test]
fn a_loop_may_run_twice_where_its_scopes_are_apart() {
    let text = holder("holder", "['parts/${context.part}']").replace("began", "began-${context.part}");
    let project = Project::new().file(".loops/holder.yaml", &text);
    let with = |part: &'static str| ["run", "holder", "--context", part];
    let one = project.start_until(&with("part=a"), "holder-began-a");
    project.run(&with("part=a")).code(73).says("`parts/a`");
    project.run(&with("part=a/b")).code(73);
    let other = project.start_until(&with("part=b"), "holder-began-b");
    let states: BTreeSet<String> = project
        .run_files(".state.json")
        .iter()
        .map(|path| serde_json::from_str::<serde_json::Value>(&fs::read_to_string(path).unwrap()).unwrap())
        .map(|state| state["scope"].to_string())
        .collect();
    assert_eq!(states, BTreeSet::from([r#"["parts/a"]"#.to_owned(), r#"["parts/b"]"#.to_owned()]));
    ended(&project, "holder", one).code(0);
    ended(&project, "holder", other).code(0);
    let text = quick("bad", "['${captured.x.output}']");
    project.write(".loops/bad.yaml", &text);
    project
        .run(&["run", "bad"])
        .code(2)
        .says("the scope `${captured.x.output}`")
        .says("before the run begins");
}

#[test]
fn a_killed_run_holds_nothing() {
    let (project, mut child) = held("['.']");
    project.write(".loops/second.yaml", &quick("second", "[src]"));
    project.run(&["run", "second"]).code(73);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(claims(&project, ".lock").len(), 1);
    project.run(&["run", "second"]).code(0);
    assert_eq!(claims(&project, ".lock"), [""; 0], "what the killed one left behind is removed");
    assert!(claims(&project, ".pid").is_empty());
    project.write("holder-may-end", "");
}

#[test]
fn what_outlives_a_run_holds_no_claim() {
    let text = "name: main\ndescription: d\nleaves_running: true\ninitial: a\nstates:\n  a: {action: 'setsid sh -c \"echo \\$\\$ >> pid; touch apart; exec sleep 300\" > /dev/null 2>&1 & until rm apart; do sleep 0.05; done; ls -l /proc/self/fd > fds', next: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main"]).code(0);
    let fds = project.read("fds");
    assert!(!fds.contains(".running") && !fds.contains(".claim"), "{fds}");
    project.run(&["run", "main"]).code(0);
    for pid in fs::read_to_string(project.at("pid")).unwrap().lines() {
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
}

#[test]
fn who_waits_says_for_whom_and_runs_in_the_order_of_arrival() {
    let (project, child) = held("[src]");
    let scopes = [("one", "[src]"), ("two", "['.']"), ("three", "[src/api]"), ("four", "[src, docs]")];
    let mut queue = Vec::new();
    for (name, scope) in scopes {
        project.write(&format!(".loops/{name}.yaml"), &quick(name, scope));
        queue.push(waiting(&project, name));
    }
    assert!(!project.exists("order"));
    // `docs` is nobody's, but somebody waits for it: who came earlier goes first.
    project.write(".loops/docs.yaml", &quick("docs", "[docs]"));
    project.run(&["run", "docs"]).code(73).says("came earlier and waits for `.`, which overlaps `docs`");
    project.write(".loops/tests.yaml", &quick("tests", "[tests]"));
    project.run(&["run", "tests"]).code(73);
    ended(&project, "holder", child).code(0);
    for child in queue {
        let ran = Ran::of(&child.wait_with_output().unwrap()).code(0).says("the scope is free after");
        ran.says("waiting: run holder-");
    }
    assert_eq!(project.read("order"), "one\ntwo\nthree\nfour\n");
    assert!(claims(&project, ".wait").is_empty() && claims(&project, ".lock").is_empty());
}

#[test]
fn nobody_waits_where_nothing_is_in_the_way() {
    let (project, child) = held("[src]");
    project.write(".loops/second.yaml", &quick("second", "[docs]"));
    let ran = project.run(&["run", "second", "--queue"]).code(0);
    assert!(!ran.all().contains("waiting"), "{}", ran.all());
    ended(&project, "holder", child).code(0);
}

#[test]
fn who_waits_can_be_interrupted_and_holds_nobody_up() {
    let (project, child) = held("[src]");
    for name in ["one", "two", "three", "last"] {
        project.write(&format!(".loops/{name}.yaml"), &quick(name, "[src]"));
    }
    let mut one = waiting(&project, "one");
    let two = waiting(&project, "two");
    let three = waiting(&project, "three");
    let last = waiting(&project, "last");
    one.kill().unwrap();
    one.wait().unwrap();
    signal(&two, Signal::INT);
    Ran::of(&two.wait_with_output().unwrap()).code(130).says("nothing was run");
    signal(&three, Signal::TERM);
    Ran::of(&three.wait_with_output().unwrap()).code(143);
    ended(&project, "holder", child).code(0);
    Ran::of(&last.wait_with_output().unwrap()).code(0);
    assert_eq!(project.read("order"), "last\n");
    assert_eq!(project.run_files(".events.jsonl").len(), 2);
}

#[test]
fn who_waits_goes_on_when_the_holder_is_killed() {
    let (project, mut child) = held("[src]");
    project.write(".loops/one.yaml", &quick("one", "[src]"));
    let one = waiting(&project, "one");
    child.kill().unwrap();
    child.wait().unwrap();
    Ran::of(&one.wait_with_output().unwrap()).code(0);
    project.write("holder-may-end", "");
}

/// The loops `outer` and, below it, what its action does.
fn nested(action: &str) -> Project {
    let outer = format!(
        "name: outer\ndescription: d\ninitial: a\nstates:\n  a: {{action: '{action}', on_yes: done, on_no: failed, on_error: failed}}\n  done: {{terminal: true}}\n  failed: {{terminal: true}}\n"
    );
    let inner = "name: inner\ndescription: d\nscope: [src]\ninitial: a\nstates:\n  a: {action: '\"$LL\" run innermost', on_yes: done, on_no: failed, on_error: failed}\n  done: {terminal: true}\n  failed: {terminal: true}\n";
    Project::new()
        .env("LL", crate::common::LL_LOOP.as_str())
        .file(".loops/outer.yaml", &outer)
        .file(".loops/inner.yaml", inner)
        .file(".loops/innermost.yaml", &quick("innermost", "[src/api]"))
        .file(".loops/stranger.yaml", &quick("stranger", "[src]"))
}

#[test]
fn a_loop_that_an_action_starts_shares_the_scope_of_the_run_around_it() {
    let project = nested(r#""$LL" run inner"#);
    project.run(&["run", "outer"]).code(0);
    assert_eq!(project.read("order"), "innermost\n");
}

#[test]
fn inner_runs_meet_each_other_and_strangers_meet_them() {
    let project = nested(r#""$LL" run holder & until test -e holder-began || ! test -d $PWD; do sleep 0.02; done; "$LL" run stranger; echo $? > code; touch outer-began; wait"#)
        .file(".loops/holder.yaml", &holder("holder", "[src]"));
    let outer = project.start_until(&["run", "outer"], "outer-began");
    assert_eq!(project.read("code"), "73\n");
    project.run(&["run", "stranger"]).code(73);
    ended(&project, "holder", outer).code(0);
}

#[test]
fn a_loop_that_waits_inside_of_a_run_waits_for_nobody_who_waits_for_that_run() {
    let project = nested(
        r#"touch outer-began; until test -e go || ! test -d $PWD; do sleep 0.02; done; "$LL" run inner --queue"#,
    );
    let outer = project.start_until(&["run", "outer"], "outer-began");
    let stranger = waiting(&project, "stranger");
    project.write("go", "");
    Ran::of(&outer.wait_with_output().unwrap()).code(0);
    Ran::of(&stranger.wait_with_output().unwrap()).code(0);
    assert_eq!(project.read("order"), "innermost\nstranger\n");
}

#[test]
fn two_runs_whose_inner_runs_would_wait_for_each_other_are_told() {
    let outer = |name: &str, scope: &str, inner: &str| {
        format!(
            "name: {name}\ndescription: d\nscope: [{scope}]\ninitial: a\nstates:\n  a: {{action: 'touch {name}-began; until test -e {name}-go || ! test -d $PWD; do sleep 0.02; done; \"$LL\" run {inner} --queue', on_yes: done, on_no: failed, on_error: failed}}\n  done: {{terminal: true}}\n  failed: {{terminal: true}}\n"
        )
    };
    let project = Project::new()
        .env("LL", crate::common::LL_LOOP.as_str())
        .file(".loops/left.yaml", &outer("left", "src", "docs"))
        .file(".loops/right.yaml", &outer("right", "docs", "src"))
        .file(".loops/docs.yaml", &quick("docs", "[docs]"))
        .file(".loops/src.yaml", &quick("src", "[src]"));
    let left = project.start_until(&["run", "left"], "left-began");
    let right = project.start_until(&["run", "right", "--verbose"], "right-began");
    project.write("left-go", "");
    wait_for(|| !claims(&project, ".wait").is_empty());
    project.write("right-go", "");
    Ran::of(&right.wait_with_output().unwrap())
        .code(1)
        .says("waits for the run from which this one was started");
    Ran::of(&left.wait_with_output().unwrap()).code(0);
}

#[test]
fn ancestors_that_are_forged_or_dead_do_not_count() {
    let project = nested(
        "env | grep ^LL_LOOP > vars; touch outer-began; until test -e go || ! test -d $PWD; do sleep 0.02; done",
    );
    let outer = project.start_until(&["run", "outer"], "outer-began");
    let vars = project.read("vars");
    let run = vars.lines().find_map(|line| line.strip_prefix("LL_LOOP_RUN=")).unwrap();
    let pass = vars.lines().find_map(|line| line.strip_prefix("LL_LOOP_PARENT=")).unwrap();
    for forged in [run.to_owned(), format!("{run}:"), format!("{run}:0123"), "x:y".to_owned()] {
        let mut command = project.command(&["run", "stranger"]);
        let ran = Ran::of(&command.env("LL_LOOP_PARENT", forged).env("LL_LOOP_RUN", run).output().unwrap());
        ran.code(73);
    }
    project.write("go", "");
    Ran::of(&outer.wait_with_output().unwrap()).code(0);
    let project = project.file(".loops/holder.yaml", &holder("holder", "[src]"));
    let child = project.start_until(&["run", "holder"], "holder-began");
    let mut command = project.command(&["run", "stranger"]);
    Ran::of(&command.env("LL_LOOP_PARENT", pass).output().unwrap()).code(73);
    ended(&project, "holder", child).code(0);
}

#[test]
fn a_dry_run_claims_nothing() {
    let (project, child) = held("['.']");
    project.run(&["run", "holder", "--dry-run"]).code(0);
    ended(&project, "holder", child).code(0);
}

#[test]
fn a_claim_that_this_version_cannot_read_is_respected() {
    let project = Project::new().file(".loops/second.yaml", &quick("second", "[src]"));
    fs::create_dir(project.at(".loops/.running")).unwrap();
    project.write(".loops/.running/later-20300101T000000-000000.lock", "{\"schema\": 99}");
    let file = fs::File::open(project.at(".loops/.running/later-20300101T000000-000000.lock")).unwrap();
    file.lock().unwrap();
    project.run(&["run", "second"]).code(73).says("run later-20300101T000000-000000");
    drop(file);
    project.run(&["run", "second"]).code(0);
}

/// The parts of a tree, and scopes that hold some of them.
const SCOPES: [(&str, &str); 7] = [
    ("['.']", "api web a b other"),
    ("[src]", "api web"),
    ("[src/api/]", "api"),
    ("[./src/web]", "web"),
    ("[docs, src/api]", "a b api"),
    ("[docs/a]", "a"),
    ("[docs/b, other]", "b other"),
];

#[test]
fn fifty_runs_at_once_never_meet_and_none_is_lost() {
    let mut project = Project::new();
    for (index, (scope, parts)) in SCOPES.iter().enumerate() {
        // Nobody but the actions themselves says whether two of them were there at the same time.
        let action = format!(
            "for part in {parts}; do mkdir held-$part || echo met >> met; done; sleep 0.03; for part in {parts}; do rmdir held-$part; done; echo {index} >> ends"
        );
        let text = format!(
            "name: l{index}\ndescription: d\nscope: {scope}\ninitial: a\nstates:\n  a: {{action: '{action}', next: done}}\n  done: {{terminal: true}}\n"
        );
        project = project.file(&format!(".loops/l{index}.yaml"), &text);
    }
    let runs: Vec<Child> = (0..50)
        .map(|number| started(&project, &["run", &format!("l{}", number % SCOPES.len()), "--queue", "-q"]))
        .collect();
    for run in runs {
        Ran::of(&run.wait_with_output().unwrap()).code(0);
    }
    assert!(!project.exists("met"));
    assert_eq!(project.read("ends").lines().count(), 50);
    let journals = project.run_files(".events.jsonl");
    assert_eq!(journals.len(), 50);
    assert!(journals.iter().all(|path| path.starts_with(project.at(".loops/.history"))));
    assert!(claims(&project, ".lock").is_empty() && claims(&project, ".wait").is_empty());
}
