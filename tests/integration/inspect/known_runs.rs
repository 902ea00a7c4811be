//! `list`, `status`, `stop`, `history` and `logs`, about runs of every kind: alive, ended, killed, damaged.

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{CHECK_FIX, Project, Ran, signal, wait_for};

/// A loop that says who it is, and ends when it may.
const LONG: &str = "\
name: long
description: d
scope: ['${context.part}']
context: {part: '.'}
initial: one
states:
  one: {action: echo first words, next: two}
  two: {action: 'echo $$ > pid; until test -e may-end || ! test -d $PWD; do sleep 0.02; done; echo last words', next: done}
  done: {terminal: true}
";

fn running() -> (Project, Child) {
    let project = Project::new().file(".loops/long.yaml", LONG);
    let child = project.start_until(&["run", "long"], "pid");
    (project, child)
}

fn killed() -> Project {
    let (project, mut child) = running();
    child.kill().unwrap();
    child.wait().unwrap();
    project.write("may-end", "");
    project
}

fn ended(project: &Project, child: Child) {
    project.write("may-end", "");
    Ran::of(&child.wait_with_output().unwrap()).code(0);
}

fn json(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn instance(project: &Project) -> String {
    let ran = project.run(&["status", "--json"]).code(0);
    json(&ran)[0]["instance"].as_str().unwrap().to_owned()
}

fn alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn list_names_loops_and_finds_them_by_their_labels() {
    let project = Project::new()
        .file(".loops/a.yaml", &format!("{CHECK_FIX}labels: [fast, rust]\ncategory: quality\n"))
        .file(".loops/b.yaml", &format!("{CHECK_FIX}labels: [rust]\n"))
        .file(".loops/c.yaml", "name: [\n");
    let names = |ran: &Ran| {
        ran.stdout
            .lines()
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let all = "a  -  quality  fixes a flag\nb  -  -        fixes a flag\nc  -  -\n";
    assert_eq!(project.run(&["list"]).code(0).stdout, all);
    let ran = project.run(&["list", "--label", "rust"]).code(0);
    assert_eq!(names(&ran), "a b");
    assert!(ran.stderr.contains(".loops/c.yaml"), "{}", ran.stderr);
    assert_eq!(names(&project.run(&["list", "--label", "rust", "-l", "fast"]).code(0)), "a");
    assert_eq!(names(&project.run(&["list", "--category", "quality"]).code(0)), "a");
    assert_eq!(names(&project.run(&["l", "-c", "none"]).code(0)), "");
    assert_eq!(project.run(&["list", "--label", "none"]).code(0).stdout, "");
    let all = json(&project.run(&["list", "--json"]).code(0));
    assert_eq!(all.len(), 3);
    assert_eq!((&all[0]["category"], &all[0]["labels"][1]), (&"quality".into(), &"rust".into()));
    let keys: Vec<_> = all[0].as_object().unwrap().keys().cloned().collect();
    let expected = "name path description category labels visibility last_outcome running";
    assert_eq!(keys.join(" "), expected);
    assert_eq!((&all[0]["name"], &all[2]["description"]), (&"a".into(), &Value::Null));
}

#[test]
fn a_run_that_lives_is_shown_as_what_it_is() {
    let (project, child) = running();
    let instance = instance(&project);
    let ran = project.run(&["list", "--running"]).code(0).says(&instance).says("running").says("two");
    assert_eq!(ran.stdout.lines().count(), 1);
    for name in ["long", ".loops/long.yaml", &instance] {
        let ran = project.run(&["status", name]).code(0);
        ran.says("running")
            .says("two, iteration 1 of at most 50, step 2")
            .says(&format!("{} on ", child.id()));
    }
    let runs = json(&project.run(&["status", "long", "--json"]).code(0));
    assert_eq!((runs.len(), &runs[0]["status"], &runs[0]["live"]), (1, &"running".into(), &true.into()));
    assert_eq!((&runs[0]["current_state"], &runs[0]["pid"]), (&"two".into(), &child.id().into()));
    assert_eq!((&runs[0]["scope"][0], &runs[0]["resumable"]), (&".".into(), &false.into()));
    project.run(&["logs"]).code(0).says("first words");
    ended(&project, child);
    project.run(&["list", "--running"]).code(0).says("nothing runs here");
    project.run(&["status", "long"]).code(0).says("completed").says("ended in `done`");
}

#[test]
fn a_run_that_waits_is_shown_and_can_be_stopped() {
    let (project, child) = running();
    let waits = project.command(&["run", "long", "--queue"]).stderr(Stdio::piped()).spawn().unwrap();
    let queued = || {
        json(&project.run(&["list", "--running", "--json"])).into_iter().find(|run| run["waiting"] == true)
    };
    wait_for(|| queued().is_some());
    let queued = queued().unwrap();
    assert_eq!((&queued["status"], &queued["journal"]), (&"queued".into(), &Value::Null));
    project.run(&["stop", "long"]).code(2).says("`long` is 2 runs");
    let instance = queued["instance"].as_str().unwrap();
    project.run(&["status", instance]).code(0).says("queued").says("  queued ");
    project.run(&["stop", instance]).code(0).says("left the queue");
    Ran::of(&waits.wait_with_output().unwrap()).code(143);
    ended(&project, child);
}

#[test]
fn a_killed_run_is_never_shown_as_running() {
    let project = killed();
    let ran = project.run(&["list", "--running"]).code(0);
    assert_eq!(ran.stdout, "");
    ran.says("1 other run was left before the end");
    let ran = project
        .run(&["status", "long"])
        .code(0)
        .says("crashed")
        .says("its process is gone")
        .says("ll-loop resume long-");
    assert!(!ran.all().contains("running\n"), "{}", ran.all());
    assert_eq!(project.state()["status"], "running", "the copy says what the process last knew");
    let run = &json(&project.run(&["status", "--json"]).code(0))[0];
    assert_eq!(
        (&run["status"], &run["resumable"], &run["live"]),
        (&"crashed".into(), &true.into(), &false.into())
    );
    project.run(&["stop", "long"]).code(1).says("has ended already (crashed)");
    project.run(&["history", "long"]).code(0).says("crashed  two");
    project.run(&["logs", "-f"]).code(0).says("first words");
}

#[test]
fn who_asks_for_nothing_that_exists_is_told() {
    let project = Project::with_loop(CHECK_FIX);
    for command in ["status", "stop", "history", "logs"] {
        project
            .run(&[command, "mian"])
            .code(2)
            .says("no run and no loop is named `mian`")
            .says("did you mean `main`?");
        project.run(&[command, "main"]).code(2);
    }
    project.run(&["logs"]).code(2).says("there is no run here");
    project.run(&["history"]).code(0).says("no run has ended here yet");
    project.run(&["status"]).code(0);
    assert_eq!(project.run(&["list", "--running"]).code(0).stdout, "");
    project.run(&["run", "main"]).code(0);
    project.run(&["stop", "main"]).code(1).says("has ended already (completed)");
    project.run(&["history", "main", "main-1"]).code(2).says("had no run `main-1`");
}

/// Stops a run whose action is like this, and returns how its end is written down.
fn stopped(action: &str) -> (Project, Value) {
    let text = format!(
        "name: main\ndescription: d\ninitial: a\nstates:\n  a: {{action: \"{action}\", next: b}}\n  b: {{action: touch b, next: done}}\n  done: {{terminal: true}}\n"
    );
    let project = Project::with_loop(&text);
    let child = project.start_until(&["run", "main"], "pid");
    project.run(&["stop", "main"]).code(0).says("interrupted");
    assert!(!project.exists("b"));
    Ran::of(&child.wait_with_output().unwrap()).code(143);
    for pid in project.read("pid").lines() {
        assert!(!alive(pid), "{pid}");
    }
    let end = project.end();
    (project, end)
}

#[test]
fn stop_ends_a_run_with_its_children_and_the_run_says_so() {
    let (project, end) =
        stopped("sleep 300 & (sleep 300 & echo $! >> pid); echo $! $$ | tr ' ' '\\n' >> pid; wait");
    assert_eq!((&end["outcome"], &end["signal"]), (&"interrupted".into(), &"TERM".into()));
    assert_eq!(project.state()["status"], "interrupted");
    assert_eq!(project.state()["current_state"], "a");
    project.run(&["status", "main"]).code(0).says("interrupted").says("ll-loop resume main-");
    project.run(&["stop", "main"]).code(1).says("has ended already (interrupted)");
}

#[test]
fn stop_ends_a_run_whose_action_does_not_listen() {
    stopped("trap '' TERM INT; echo $$ > pid; while :; do sleep 0.05; done");
}

#[test]
fn stop_ends_one_run_and_nobody_else() {
    let project = Project::new().file(".loops/long.yaml", &LONG.replace("> pid", "> pid-${context.part}"));
    let one = project.start_until(&["run", "long", "--context", "part=x"], "pid-x");
    let other = project.start_until(&["run", "long", "--context", "part=y"], "pid-y");
    project.run(&["stop", "long"]).code(2).says("name one of them: long-");
    let runs = json(&project.run(&["status", "--json"]));
    let ours = runs.iter().find(|run| run["scope"][0] == "x").unwrap();
    // The caller's own group, as a script without job control has it, is left alone.
    let script = format!(
        "\"{}\" stop {} && echo survived",
        crate::common::LL_LOOP.as_str(),
        ours["instance"].as_str().unwrap()
    );
    let mut command = std::process::Command::new("bash");
    let ran = Ran::of(&command.args(["-c", &script]).current_dir(project.path()).output().unwrap()).code(0);
    ran.says("survived");
    Ran::of(&one.wait_with_output().unwrap()).code(143);
    assert!(alive(&project.read("pid-y")));
    ended(&project, other);
}

#[test]
fn stop_wakes_a_suspended_run() {
    let (project, child) = running();
    signal(&child, Signal::STOP);
    project.run(&["stop", "long"]).code(0).says("interrupted");
    Ran::of(&child.wait_with_output().unwrap()).code(143);
}

#[test]
fn a_number_that_belongs_to_another_process_by_now_is_not_signalled() {
    let project = killed();
    let instance = instance(&project);
    // Somebody else holds the lock of a claim that names an innocent process.
    let mut innocent = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let claim = project.at(&format!(".loops/.running/{instance}.lock"));
    let mut record: Value = serde_json::from_str(&fs::read_to_string(&claim).unwrap()).unwrap();
    record["pid"] = innocent.id().into();
    fs::write(&claim, record.to_string()).unwrap();
    project.run(&["stop", "long"]).code(1);
    let file = fs::File::open(&claim).unwrap();
    file.lock().unwrap();
    project.run(&["stop", "long"]).code(4).says("is another one; nothing was stopped");
    assert!(innocent.try_wait().unwrap().is_none());
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[test]
fn a_damaged_state_file_changes_nothing_that_is_known() {
    let project = killed();
    let path = project.run_files(".state.json").remove(0);
    let whole = fs::read_to_string(&path).unwrap();
    let check = |says: &str| {
        project.run(&["status", "long"]).code(0).says("crashed").says("two, iteration 1").says(says);
        let run = &json(&project.run(&["status", "--json"]).code(0))[0];
        assert_eq!(run["current_state"], "two");
        assert!(run["state_problem"].as_str().is_some_and(|problem| says.ends_with(problem)), "{run}");
    };
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    project.run(&["status", "long"]).code(0).says("it is damaged: ").says("this is what the journal says");
    fs::write(&path, whole.replacen("\"schema\":1", "\"schema\":2", 1)).unwrap();
    check("state.json a later version wrote it (schema 2; this one knows 1)");
    fs::write(&path, whole.replacen("\"last_seq\":", "\"last_seq\":9", 1)).unwrap();
    check("it does not agree with the journal; was it edited?");
    fs::write(&path, whole.replacen("\"instance\":\"long", "\"instance\":\"other", 1)).unwrap();
    check("it is the state of another run");
    fs::remove_file(&path).unwrap();
    check("it is missing");
    fs::create_dir(&path).unwrap();
    project.run(&["status", "long"]).code(0).says("it cannot be read").says("crashed");
    fs::remove_dir(&path).unwrap();
    fs::write(&path, whole).unwrap();
    let ran = project.run(&["status", "long"]).code(0);
    assert!(!ran.all().contains("state.json"), "{}", ran.all());
}

#[test]
fn an_empty_and_an_unreadable_journal_are_shown_as_such() {
    let project = killed();
    let journal = project.run_files(".events.jsonl").remove(0);
    fs::write(&journal, "").unwrap();
    project.run(&["status", "long"]).code(0).says("crashed");
    fs::remove_file(&journal).unwrap();
    fs::create_dir(&journal).unwrap();
    project.run(&["status", "long"]).code(0).says("journal    cannot be read");
}

#[test]
fn a_run_killed_after_its_last_event_moves_to_the_history_with_the_next_one() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let stem = project.run_files(".events.jsonl")[0]
        .file_name()
        .unwrap()
        .to_string_lossy()
        .replace(".events.jsonl", "");
    // The same files, where a kill between the last event and the move leaves them.
    for ending in ["events.jsonl", "state.json", "log"] {
        let name = format!("{stem}.{ending}");
        fs::rename(project.at(".loops/.history/main").join(&name), project.at(".loops/.running").join(&name))
            .unwrap();
    }
    project.write(&format!(".loops/.running/{stem}.lock"), "{}");
    project.run(&["status", "main"]).code(0).says("completed");
    project.run(&["run", "main"]).code(0);
    assert!(project.exists(&format!(".loops/.history/main/{stem}.events.jsonl")));
    assert!(!project.exists(&format!(".loops/.running/{stem}.lock")));
}

#[test]
fn history_shows_what_there_was() {
    let project = Project::with_loop(CHECK_FIX).file(
        ".loops/other.yaml",
        "name: elsewhere\ndescription: d\ninitial: f\nstates:\n  f: {terminal: true, outcome: failure}\n",
    );
    project.run(&["run", "main"]).code(0);
    project.run(&["run", "other"]).code(1);
    project.run(&["run", ".loops/main.yaml"]).code(0);
    assert_eq!(project.run(&["history"]).code(0).stdout.lines().count(), 3);
    assert_eq!(project.run(&["history", "main"]).code(0).stdout.lines().count(), 2);
    for name in ["other", ".loops/other.yaml"] {
        project.run(&["history", name]).code(0).says("other-").says("failed");
    }
    project.run(&["history", "elsewhere"]).code(2).says("no run and no loop is named `elsewhere`");
    let runs = json(&project.run(&["history", "main", "--json"]).code(0));
    assert_eq!((&runs[0]["outcome"], &runs[0]["exit_code"]), (&"success".into(), &0.into()));
    let instance = runs[1]["instance"].as_str().unwrap();
    for arguments in [&["history", instance][..], &["history", "main", instance]] {
        project.run(arguments).code(0).says("main: success").says("check");
    }
    let events = json(&project.run(&["history", "main", instance, "--json"]).code(0));
    assert_eq!((&events[0]["event"], &events[0]["run_id"]), (&"loop_start".into(), &instance.into()));
    assert_eq!(events.last().unwrap()["event"], "loop_complete");
}

#[test]
fn pruning_forgets_what_is_over_and_nothing_else() {
    let (project, child) = running();
    let project = project.file(".loops/main.yaml", &CHECK_FIX.replace("initial", "scope: []\ninitial"));
    project.write(".loops/slow.yaml", "name: slow\ndescription: d\nscope: []\ntimeout: 0.2\ninitial: a\nstates:\n  a: {action: sleep 9, next: done}\n  done: {terminal: true}\n");
    for _ in 0..3 {
        project.run(&["run", "main"]).code(0);
    }
    project.run(&["run", "slow"]).code(124);
    let files = || project.run_files(".events.jsonl").len();
    project
        .run(&["history", "--prune"])
        .code(0)
        .says("keeping the last 500 runs of each loop that ended less than 90 days ago")
        .says("0 runs forgotten, 3 kept");
    assert_eq!(files(), 5);
    project
        .run(&["history", "main", "--prune", "--keep", "2", "--dry-run"])
        .code(0)
        .says("1 run would be forgotten, 2 kept");
    assert_eq!(files(), 5);
    let runs = json(&project.run(&["history", "main", "--json"]).code(0));
    let oldest = project.at(runs[0]["journal"].as_str().unwrap());
    project.run(&["history", "--prune", "--keep", "2"]).code(0).says("1 run forgotten, 2 kept");
    assert!(!oldest.exists() && !oldest.with_extension("").with_extension("state.json").exists());
    project.run(&["history", "--prune", "--older-than", "1ms"]).code(0);
    assert_eq!(files(), 2, "the run that lives and the one that can be continued stay");
    project.run(&["history", "--keep", "2"]).code(2);
    ended(&project, child);
}

#[test]
fn logs_follow_a_run_to_its_end() {
    let (project, child) = running();
    let follower = project.command(&["logs", "long", "-f"]).stdout(Stdio::piped()).spawn().unwrap();
    ended(&project, child);
    let ran = Ran::of(&follower.wait_with_output().unwrap()).code(0);
    ran.says("first words").says("last words");
    project.run(&["logs", ".loops/long.yaml"]).code(0).says("last words");
}

#[test]
fn a_watch_shows_changes_until_nothing_runs() {
    let (project, child) = running();
    let watcher =
        project.command(&["status", "long", "--watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    ended(&project, child);
    let ran = Ran::of(&watcher.wait_with_output().unwrap()).code(0);
    let last = json(&ran).pop().unwrap();
    assert_eq!((&last["status"], &last["current_state"]), (&"completed".into(), &"done".into()));
}

#[test]
fn runs_are_found_from_below_and_not_from_a_stranger() {
    let (project, child) = running();
    fs::create_dir_all(project.at("src/deep")).unwrap();
    let from = |directory: &str| {
        Ran::of(&project.command(&["list", "--running"]).current_dir(project.at(directory)).output().unwrap())
    };
    assert_eq!(from("src/deep").code(0).stdout, "");
    fs::create_dir(project.at(".git")).unwrap();
    from("src/deep").code(0).says("long-");
    ended(&project, child);
}

/// Makes a run in the history, of the journal of another one.
fn copied(project: &Project, from: &str, name: &str, change: impl Fn(&str) -> String) {
    let path = |name: &str| format!(".loops/.history/main/{name}.events.jsonl");
    project.write(&path(name), &change(&project.read(&path(from)).replace(from, name)));
}

#[test]
fn history_has_dates_and_filters() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    project.write(".loops/main.yaml", &CHECK_FIX.replace("touch flag", "true").replace("20", "2"));
    fs::remove_file(project.at("flag")).unwrap();
    project.run(&["run", "main"]).code(3);
    let all = project.run(&["history"]).code(0).stdout;
    let first = all.lines().next().unwrap();
    let instance = first.split("  ").nth(1).unwrap();
    let date = project.run(&["history", instance, "--json"]).code(0).stdout[..200].to_owned();
    let at = date.split("\"ts\":\"").nth(1).unwrap();
    assert!(first.starts_with(&at[..16].replace('T', " ")), "{first} began at {at}");
    let lines =
        |arguments: &[&str]| project.run(&[&["history"], arguments].concat()).code(0).stdout.lines().count();
    assert_eq!(lines(&["--outcome", "success"]), 1);
    assert_eq!(lines(&["main", "--outcome", "exhausted"]), 1);
    assert_eq!(lines(&["--outcome", "success,exhausted", "--since", "1h"]), 2);
    assert_eq!(lines(&["--last", "1", "--json"]), 1);
    copied(&project, instance, "main-20191122T061530-0001", |text| {
        text.replace("\"ts\":\"20", "\"ts\":\"19")
    });
    assert_eq!((lines(&[]), lines(&["--since", "1h"])), (3, 2));
    project.run(&["history", "--outcome", "blocked"]).code(0).says("no run is like that");
    project.run(&["history", "--outcome", "good"]).code(2);
    project.run(&["history", "--prune", "--outcome", "success"]).code(2);
}

#[test]
fn runs_that_came_out_of_others_are_a_tree() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let listed = project.run(&["history"]).code(0).stdout;
    let instance = listed.split("  ").nth(1).unwrap();
    let rewound = |parent: &'static str| {
        move |text: &str| {
            let start = format!("\"parent\":{{\"run\":\"{parent}\",\"seq\":4}},\"source\":");
            text.replacen("\"source\":", &start, 1)
        }
    };
    copied(&project, instance, "main-20201122T061530-000a", |text| {
        let lines: Vec<&str> = text.lines().collect();
        let seq = lines.len();
        let time = lines[0].split("\"ts\":\"").nth(1).unwrap().split('"').next().unwrap();
        let resume = format!(
            r#"{{"event":"loop_resume","from_state":"check","iteration":1,"step":1,"reason":"handoff","ts":"{time}","seq":{seq}}}"#
        );
        let last = lines[seq - 1].replace(&format!("\"seq\":{seq}"), &format!("\"seq\":{}", seq + 1));
        format!("{}\n{resume}\n{last}\n", lines[..seq - 1].join("\n"))
    });
    copied(&project, instance, "main-20201122T061530-000b", rewound("main-20201122T061530-000a"));
    copied(&project, instance, "main-20201122T061530-000c", rewound("main-20201122T061530-000b"));
    copied(&project, instance, "main-20201122T061530-000d", rewound("main-20201122T061530-000e"));
    copied(&project, instance, "main-20201122T061530-000e", rewound("main-20201122T061530-000d"));
    let drawn = project.run(&["history", "--graph"]).code(0).stdout;
    let short: Vec<String> = drawn
        .lines()
        .map(|line| line.split("  completed").next().unwrap().replace(instance, "RUN"))
        .map(|line| line.replace(&listed[..16], "DATE"))
        .collect();
    insta::assert_snapshot!(short.join("\n"), @"
    DATE  main-20201122T061530-000a
    │  resumed DATE in check, after a hand-off
    └─ DATE  main-20201122T061530-000b
       │  rewound from main-20201122T061530-000a, after its event 4
       └─ DATE  main-20201122T061530-000c
             rewound from main-20201122T061530-000b, after its event 4
    DATE  RUN
    DATE  main-20201122T061530-000d
    │  rewound from main-20201122T061530-000e, after its event 4
    └─ DATE  main-20201122T061530-000e
          rewound from main-20201122T061530-000d, after its event 4
    ");
    let objects = json(&project.run(&["history", "--graph", "--json"]).code(0));
    let a = objects.iter().find(|run| run["instance"] == "main-20201122T061530-000a").unwrap();
    assert_eq!(
        (&a["resumed"][0]["from_state"], &a["resumed"][0]["reason"]),
        (&"check".into(), &"handoff".into())
    );
    let b = objects.iter().find(|run| run["instance"] == "main-20201122T061530-000b").unwrap();
    assert_eq!((&b["parent"]["run"], &b["parent"]["seq"]), (&"main-20201122T061530-000a".into(), &4.into()));
}

#[test]
fn a_loop_comes_before_a_directory_of_its_name() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main", "-q"]).code(0);
    let commands = [
        &["report"][..],
        &["why"],
        &["replay"],
        &["logs"],
        &["status"],
        &["history"],
        &["stats"],
        &["diff", "main"],
    ];
    let run = |name: &str| {
        for command in &commands {
            drop(project.run(&[*command, &[name]].concat()).code(0));
        }
        // There is no repository, so the two that need one say so, rather than that this is not a bundle.
        for command in [&["repro"][..], &["rewind", "--yes", "--to", "1"], &["deliver", "--dry-run"]] {
            let said = project.run(&[command, &[name]].concat()).all();
            assert!(!said.contains("bundle main") && !said.contains("bundle .loops"), "{command:?}: {said}");
        }
    };
    run(".loops/main.yaml");
    project.write("main/source.py", "");
    run("main");
    std::fs::remove_dir_all(project.at("main")).unwrap();
    project.write("main", "a program");
    run("main");
    project.run(&["report", "./main"]).code(2).says("it is not a bundle");
}

#[test]
fn a_run_that_is_not_there_is_missed_in_one_way() {
    let project = Project::with_loop(CHECK_FIX);
    for command in
        ["report", "why", "replay", "repro", "status", "logs", "history", "stats", "deliver", "rewind --to 1"]
    {
        let words: Vec<&str> = command.split(' ').collect();
        let (first, more) = words.split_first().unwrap();
        drop(project.run(&[&[*first, "main"], more].concat()).code(2).says("no run of `main`"));
    }
    for command in ["report", "why", "replay", "repro", "diff", "rewind --to 1"] {
        let words: Vec<&str> = command.split(' ').collect();
        drop(project.run(&words).code(2).says("there is no run here"));
    }
    drop(project.run(&["stop"]).code(1).says("no run is running"));
    for command in ["report", "why", "replay", "repro", "rewind --to 1"] {
        let words: Vec<&str> = command.split(' ').collect();
        let (first, more) = words.split_first().unwrap();
        let ran = project.run(&[&[*first, "run:latest"], more].concat());
        drop(ran.code(2).says("`ll-loop artifact download --to DIR NAME`"));
    }
}

#[test]
fn the_beginning_of_an_id_names_a_run_wherever_a_run_is_named() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:\n  a: {action: 'echo $MARK', on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true, outcome: failure, description: x}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main", "--no-ci"]).code(0);
    let id = project.events()[0]["run_id"].as_str().unwrap().to_owned();
    let short = &id[..id.len() - 2];
    let commands = [
        "report",
        "why",
        "replay",
        "repro",
        "status",
        "logs",
        "bundle",
        "history",
        "stats",
        "stop",
        "resume",
        "deliver --to patch",
        "rewind --to 1",
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let (first, more) = words.split_first().unwrap();
        let named = |name: &str| project.run(&[&[*first, name], more].concat());
        let (whole, short) = (named(&id), named(short));
        assert_eq!(short.code, whole.code, "{command}: {}", short.all());
        assert!(
            !short.all().contains("no run of") && !short.all().contains("no loop"),
            "{command}: {}",
            short.all()
        );
    }
    project.run(&["diff", short, &id]).code(0);
    project.run(&["history", "main", short]).code(0);
    // The last run where none is named.
    for command in ["report", "why", "replay"] {
        assert_eq!(project.run(&[command]).code, Some(0), "{command}");
    }
    drop(project.run(&["diff"]).code(2).says("there is no run of `main` before"));
    project.run(&["run", "main", "--no-ci"]).code(0);
    project.run(&["diff"]).code(0);
    let day = &id[.."main-20".len()];
    for command in ["report", "why", "status", "logs", "history", "stop"] {
        drop(project.run(&[command, day]).code(2).says("write more of the id of the run"));
    }
    // What fits every run of a loop is the name of one that is not there.
    drop(project.run(&["report", "mai"]).says("main"));
}
