//! Going on with a run: what comes back, what is refused and why, and what bad files do.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::common::{CHECK_FIX, Project, Ran, events, signal};

/// Two steps, of which the second one waits for the file `go`.
const TWO: &str = "\
name: main
initial: one
states:
  one: {action: echo one >> order; echo first, capture: first, next: two}
  two: {action: \"echo two >> order; echo half; touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done; echo second\", capture: second, next: three}
  three: {action: 'echo three ${captured.first.output} ${captured.second.output:shell} >> order', on_yes: done}
  done: {terminal: true}
";

/// Runs until the second step, and ends there.
fn left(project: &Project, arguments: &[&str], with: Signal) -> Ran {
    let child = project.start_until(&[&["run", "main"], arguments].concat(), "begun");
    signal(&child, with);
    Ran::of(&child.wait_with_output().unwrap())
}

fn killed(text: &str, arguments: &[&str]) -> Project {
    let project = Project::with_loop(text);
    assert_eq!(left(&project, arguments, Signal::KILL).code, None);
    project.write("go", "");
    project
}

fn journal(project: &Project) -> PathBuf {
    project.run_files(".events.jsonl").pop().unwrap()
}

fn instance(project: &Project) -> String {
    let name = journal(project).file_name().unwrap().to_string_lossy().into_owned();
    name.trim_end_matches(".events.jsonl").to_owned()
}

#[test]
fn finished_steps_are_not_run_again_and_the_open_one_is_once() {
    let project = killed(TWO, &[]);
    let ran = project.run(&["resume", "main"]).code(0).says("which was killed, in two (iteration 1, step 2)");
    assert!(ran.stdout.contains("goes on in two"), "progress is shown: {}", ran.stdout);
    assert!(ran.stdout.contains("Loop completed: done"), "{}", ran.stdout);
    assert_eq!(project.read("order"), "one\ntwo\ntwo\nthree first half\nsecond\n");
    let events = project.events();
    let named =
        |name: &str| events.iter().filter(|event| event["event"] == name).cloned().collect::<Vec<_>>();
    let resumed = &named("loop_resume")[0];
    assert_eq!(
        (&resumed["from_state"], &resumed["iteration"], &resumed["step"]),
        (&"two".into(), &1.into(), &2.into())
    );
    assert_eq!(resumed["reason"], "crash");
    let entered: Vec<_> = named("state_enter").iter().map(|event| event["step"].as_u64().unwrap()).collect();
    assert_eq!(entered, [1, 2, 2, 3]);
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"].as_u64(), Some(index as u64 + 1));
    }
    assert_eq!(named("loop_start").len(), 1);
    assert_eq!(project.end()["steps"], 3);
    assert!(journal(&project).to_string_lossy().contains(".history"));
    assert!(project.run_files(".pid").is_empty());
}

#[test]
fn an_interrupted_run_goes_on_by_name_by_id_by_its_beginning_and_by_file() {
    for (with, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for ways in 0..4 {
            if ways > 0 && code != 143 {
                continue;
            }
            let project = Project::with_loop(TWO);
            left(&project, &[], with).code(code);
            project.write("go", "");
            let id = instance(&project);
            let name = [id[..id.len() - 3].to_owned(), id, "main".to_owned(), ".loops/main.yaml".to_owned()]
                [ways]
                .clone();
            project.run(&["resume", &name]).code(0).says("which was interrupted");
            assert_eq!(project.read("order"), "one\ntwo\ntwo\nthree first half\nsecond\n");
        }
    }
}

#[test]
fn a_loop_of_another_name_than_its_file_is_found_by_both() {
    for name in ["main", ".loops/main.yaml"] {
        let project = killed(&TWO.replace("name: main", "name: other"), &[]);
        project.run(&["resume", "other"]).code(2).says("no run and no loop is named `other`");
        project.run(&["resume", name]).code(0);
    }
}

#[test]
fn a_run_that_an_earlier_version_named_after_the_text_of_its_file_goes_on() {
    let project = killed(&TWO.replace("name: main", "name: other"), &[]);
    // An earlier version took the name from the file, for the journal and for the names of all files of the run.
    let id = instance(&project);
    let old = id.replace("main-", "other-");
    for file in fs::read_dir(project.at(".loops/.running")).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().replace(&id, &old);
        fs::rename(&file, file.with_file_name(name)).unwrap();
    }
    let journal = format!(".loops/.running/{old}.events.jsonl");
    let text = project.read(&journal).replace(&id, &old).replace("\"loop\":\"main\"", "\"loop\":\"other\"");
    assert!(text.contains("\"loop\":\"other\""), "{text}");
    project.write(&journal, &text);
    for name in ["main", &old] {
        project.run(&["status", name]).code(0).says(&old);
    }
    project.run(&["resume", "main"]).code(0);
    for name in ["main", &old] {
        project.run(&["history", name]).code(0).says(&old);
    }
}

#[test]
fn several_resumes_of_one_run_work_also_from_below() {
    let project = Project::with_loop(TWO);
    left(&project, &[], Signal::KILL);
    for _ in 0..3 {
        fs::remove_file(project.at("begun")).unwrap();
        let child = project.start_until(&["resume", "main"], "begun");
        signal(&child, Signal::TERM);
        Ran::of(&child.wait_with_output().unwrap()).code(143);
    }
    project.write("go", "");
    project.write("sub/x", "");
    let mut command = project.command(&["resume", "main"]);
    // Without a repository only the working directory counts.
    Ran::of(&command.current_dir(project.at("sub")).output().unwrap())
        .code(2)
        .says("no run and no loop is named `main`");
    project.write(".git/HEAD", "");
    Ran::of(&command.output().unwrap()).code(0);
    assert_eq!(project.read("order"), "one\ntwo\ntwo\ntwo\ntwo\ntwo\nthree first half\nsecond\n");
    assert_eq!(project.end()["steps"], 3);
}

#[test]
fn a_run_that_is_running_is_refused() {
    let project = Project::with_loop(TWO);
    let child = project.start_until(&["run", "main"], "begun");
    let id = instance(&project);
    project.run(&["resume", "main"]).code(73).says(&format!("the run {id} is running"));
    project.run(&["resume", &id]).code(73);
    project.write("go", "");
    Ran::of(&child.wait_with_output().unwrap()).code(0);
    assert_eq!(project.read("order"), "one\ntwo\nthree first half\nsecond\n");
}

#[test]
fn a_finished_run_is_refused_and_so_is_one_that_never_was() {
    let project = Project::with_loop(CHECK_FIX);
    project
        .run(&["resume", "main"])
        .code(2)
        .says("there is no run of `main` to resume")
        .says("ll-loop run main");
    project.run(&["run", "main"]).code(0);
    let id = instance(&project);
    for name in ["main", &id] {
        project.run(&["resume", name]).code(2).says("has ended (success in done), and nothing is left to do");
    }
    project.run(&["resume", "mian"]).code(2).says("no run and no loop is named `mian`");
    let project = killed(TWO, &[]);
    project.run(&["resume", "mian"]).code(2).says("did you mean `main`?");
}

#[test]
fn of_several_runs_the_newest_goes_on() {
    let project = Project::with_loop(TWO);
    left(&project, &[], Signal::KILL);
    let first = instance(&project);
    fs::remove_file(project.at("begun")).unwrap();
    // The same second gives both the same time in their names; the events know it better.
    std::thread::sleep(std::time::Duration::from_millis(5));
    left(&project, &[], Signal::TERM);
    project.write("go", "");
    let ran =
        project.run(&["resume", "main"]).code(0).says("2 runs can go on; taking the newest").says(&first);
    assert!(ran.stderr.contains("which was interrupted"), "{}", ran.stderr);
    project.run(&["resume", "main"]).code(0).says("which was killed");
    project.run(&["resume", "main"]).code(2).says("nothing is left to do");
}

#[test]
fn a_changed_loop_is_refused_unless_it_is_accepted() {
    let project = killed(TWO, &[]);
    project.write(".loops/main.yaml", &TWO.replace("echo three", "echo 3"));
    let before = fs::read(journal(&project)).unwrap();
    project.run(&["resume", "main"]).code(2).says("is not what it was").says("--accept-changes");
    assert_eq!(fs::read(journal(&project)).unwrap(), before, "a refusal writes nothing");
    project.run(&["resume", "main", "--accept-changes"]).code(0);
    assert!(project.read("order").ends_with("3 first half\nsecond\n"));

    // What was accepted once is not asked again.
    let project = Project::with_loop(TWO);
    left(&project, &[], Signal::KILL);
    project.write(".loops/main.yaml", &TWO.replace("echo three", "echo 3"));
    fs::remove_file(project.at("begun")).unwrap();
    let child = project.start_until(&["resume", "main", "--accept-changes"], "begun");
    signal(&child, Signal::TERM);
    Ran::of(&child.wait_with_output().unwrap()).code(143);
    project.write("go", "");
    project.run(&["resume", "main"]).code(0);
}

#[test]
fn a_state_that_is_gone_is_refused_by_its_name() {
    let project = killed(TWO, &[]);
    let text = TWO.replace("  two: ", "  zwei: ").replace("next: two", "next: zwei");
    project.write(".loops/main.yaml", &text);
    let ran = project.run(&["resume", "main", "--accept-changes"]);
    ran.code(2).says("the run is in the state `two`, which the loop no longer has");
}

#[test]
fn what_the_first_command_line_said_still_holds() {
    let text = "name: main\ninitial: a\nstrict: true\nparameters: {p: {type: integer}}\nstates:
  a: {action: \"touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done; echo ${context.k} ${context.p} ${context.input} >> said; false\", on_yes: done, on_no: a}
  done: {terminal: true}\n".replace("strict: true\n", "");
    let arguments = ["in put", "--context", "k=v=1", "--param", "p=7", "--max-iterations", "2", "--strict"];
    let project = Project::with_loop(&text);
    left(&project, &arguments, Signal::TERM).code(143);
    project.write("go", "");
    project.run(&["resume", "main"]).code(3);
    assert_eq!(project.read("said"), "v=1 7 in put\nv=1 7 in put\n");
    let state = project.state();
    assert_eq!(state["overrides"]["max_iterations"], 2);
    assert_eq!(state["overrides"]["param"]["p"], "7");
    assert_eq!(project.events()[0]["strict"], true);
}

#[test]
fn a_cap_can_be_raised_and_strictness_changed() {
    let text = "name: main\ninitial: a\nmax_iterations: 2\nstates:
  a: {action: \"touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done; echo x >> n; test $LL_ITERATION -ge 4\", on_yes: done, on_no: a}
  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    left(&project, &[], Signal::TERM).code(143);
    project.write("go", "");
    project.run(&["resume", "main", "-n", "9", "--ci=plain"]).code(0).says("[4/9]");
    assert_eq!(project.read("n").lines().count(), 4);
    let resumed = project.events().into_iter().find(|event| event["event"] == "loop_resume").unwrap();
    assert_eq!(resumed["max_iterations"], 9);
    let unverified = TWO.replace("next: three", "on_yes: done, on_no: done").replace("echo second", "false");
    killed(&unverified, &[]).run(&["resume", "main"]).code(0);
    killed(&unverified, &[]).run(&["resume", "main", "--strict"]).code(1);
}

#[test]
fn secrets_come_from_the_environment_again_or_are_asked_for() {
    let text = TWO
        .replace("states:", "context: {t: '${env.MY_TOKEN}'}\nstates:")
        .replace("echo three", "echo ${context.t} ${context.u?}");
    let project = Project::with_loop(&text).env("MY_TOKEN", "tok-123456");
    left(&project, &[], Signal::KILL);
    project.write("go", "");
    project.run(&["resume", "main"]).code(0);
    assert!(project.read("order").contains("\ntok-123456 first half"), "{}", project.read("order"));

    let project = Project::with_loop(&text).env("MY_TOKEN", "tok-123456");
    left(&project, &["--context", "u=tok-123456"], Signal::KILL);
    project.write("go", "");
    project.run(&["resume", "main"]).code(2).says("the value of `u` was a secret").says("--context u=");
    project.run(&["resume", "main", "--context", "u=again"]).code(0);
    assert!(project.read("order").contains("\ntok-123456 again first half"), "{}", project.read("order"));
}

#[test]
fn a_capture_of_five_megabytes_comes_back_whole() {
    let text = TWO.replace("echo first", "seq 1 750000").replace(
        "three: {action: 'echo three ${captured.first.output} ${captured.second.output:shell} >> order'",
        "three: {action: 'printf %s ${captured.first.output:shell} | cksum > sum'",
    );
    let project = killed(&text, &[]);
    project.run(&["resume", "main"]).code(0);
    let expected = std::process::Command::new("bash")
        .args(["-c", "printf %s \"$(seq 1 750000)\" | cksum"])
        .output()
        .unwrap();
    assert_eq!(project.read("sum"), String::from_utf8(expected.stdout).unwrap());

    let project = killed(&text, &[]);
    let stream = project.run_files(".stdout").pop().unwrap();
    fs::write(&stream, "short").unwrap();
    project.run(&["resume", "main"]).code(2).says("has 5 bytes, and had");
    fs::remove_file(stream).unwrap();
    project.run(&["resume", "main"]).code(2).says("cannot be read");
}

#[test]
fn a_capture_keeps_what_it_had_when_its_action_is_cut_short() {
    let text = "name: main\ninitial: one\nstates:
  one: {action: echo old, capture: c, next: two}
  two: {action: \"echo ${captured.c.output} >> saw; echo new; touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done\", capture: c, next: done}
  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    left(&project, &[], Signal::TERM).code(143);
    assert_eq!(project.state()["captured"]["c"]["output"], "old");
    project.write("go", "");
    project.run(&["resume", "main"]).code(0);
    assert_eq!(project.read("saw"), "old\nold\n");
    assert_eq!(project.state()["captured"]["c"]["output"], "new");
}

#[test]
fn the_timeout_counts_over_resumes_without_the_pause() {
    let text = TWO.replace("initial: one", "initial: one\ntimeout: 60");
    let project = killed(&text, &[]);
    std::thread::sleep(std::time::Duration::from_millis(1200));
    project.run(&["resume", "main"]).code(0);
    let events = project.events();
    let resumed = events.iter().position(|event| event["event"] == "loop_resume").unwrap();
    let at = |index: usize| events[index]["at_ms"].as_u64().unwrap();
    assert!(at(resumed) - at(resumed - 1) < 1000, "the pause does not count");
    assert!(events.windows(2).all(|two| two[0]["at_ms"].as_u64() <= two[1]["at_ms"].as_u64()));

    let text = TWO.replace("initial: one", "initial: one\ntimeout: 0.4");
    let project = Project::with_loop(&text);
    project.run(&["run", "main"]).code(124);
    project.write("go", "");
    project.run(&["resume", "main"]).code(2).says("is used up").says("--timeout");
    project.run(&["resume", "main", "--timeout", "1m"]).code(0).says("ran into its timeout");
    assert_eq!(project.read("order"), "one\ntwo\ntwo\nthree first half\nsecond\n");
}

#[test]
fn a_deadline_is_that_of_each_job() {
    let project = Project::with_loop(TWO);
    project.run(&["run", "main", "--deadline", "0.8"]).code(75);
    project.run(&["resume", "main", "--deadline", "0.8"]).code(75).says("was handed off");
    project.write("go", "");
    project.run(&["resume", "main", "--deadline", "30"]).code(0);
    assert_eq!(project.read("order"), "one\ntwo\ntwo\ntwo\nthree first half\nsecond\n");
}

#[test]
fn work_that_asks_for_a_fresh_session_is_told_what_it_left_to_say() {
    let text = "name: main
initial: pre
states:
  pre: {action: echo base, capture: base, next: work}
  work:
    action: |
      echo \"[${loop.continuation}] ${captured.base.output}\" >> saw
      if [ $(wc -l < saw) -lt 3 ]; then echo \"CONTEXT_HANDOFF: item $(wc -l < saw)\"; fi
    capture: w
    on_yes: done
    on_no: done
  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main"]).code(75);
    project.run(&["resume", "main"]).code(75).says("which was handed off, in work").says("  item 1");
    project.run(&["resume", "main"]).code(0).says("  item 2");
    assert_eq!(project.read("saw"), "[] base\n[item 1] base\n[item 2] base\n");
    assert_eq!((&project.state()["handoffs"], &project.end()["steps"]), (&2.into(), &2.into()));
}

#[test]
fn a_sub_loop_goes_on_where_it_stood() {
    let main = "name: main\ninitial: p\nstates:\n  p: {loop: kid, context_passthrough: true, on_success: q, on_failure: done}\n  q: {action: 'echo ${captured.first.output} ${captured.p.output} >> order', next: done}\n  done: {terminal: true}\n";
    for with in [Signal::KILL, Signal::TERM] {
        let project =
            Project::with_loop(main).file(".loops/kid.yaml", &TWO.replace("name: main", "name: kid"));
        left(&project, &[], with);
        project.write("go", "");
        project.run(&["resume", "main"]).code(0);
        assert_eq!(project.read("order"), "one\ntwo\ntwo\nthree first half\nsecond\nfirst\n");
        let events = project.events();
        let of = |name: &str, depth: u64| {
            events
                .iter()
                .filter(|event| event["event"] == name && event["depth"].as_u64().unwrap_or(0) == depth)
                .count()
        };
        assert_eq!((of("loop_start", 1), of("loop_resume", 0), of("loop_resume", 1)), (1, 1, 1));
        assert_eq!(project.end()["steps"], 2);
    }
    let project = Project::with_loop(main).file(".loops/kid.yaml", &TWO.replace("name: main", "name: kid"));
    left(&project, &[], Signal::KILL);
    project.write(".loops/kid.yaml", &TWO.replace("name: main", "name: kid").replace("echo three", "echo 3"));
    project.write("go", "");
    project.run(&["resume", "main"]).code(2).says("the definition of `kid` is not what it was");
    project.run(&["resume", "main", "--accept-changes"]).code(0);
}

#[test]
fn reports_after_a_resume_are_about_the_whole_run() {
    let project = Project::with_loop(TWO);
    left(&project, &["--ci=plain", "--report-dir", "r"], Signal::TERM).code(143);
    project.write("go", "");
    let ran = project.run(&["resume", "main", "--ci=plain", "--report-dir", "r", "--no-strict"]);
    ran.code(0).says("goes on in two: the run was interrupted");
    let result: serde_json::Value = serde_json::from_str(&project.read("r/result.json")).unwrap();
    let visits: Vec<_> = result["states"]
        .as_array()
        .unwrap()
        .iter()
        .map(|state| (state["state"].as_str().unwrap(), state["visits"].as_u64().unwrap()))
        .collect();
    assert_eq!(visits, [("one", 1), ("two", 1), ("three", 1)]);
    assert_eq!(result["outputs"]["outcome"], "success");
    assert_eq!(result["outputs"]["steps"], "3");
    let log = project.read("r/output.log");
    assert!(log.contains("first") && log.contains("second"), "{log}");
    let state: serde_json::Value = serde_json::from_str(&project.read("r/state.json")).unwrap();
    assert_eq!(state["status"], "completed");
    assert_eq!(project.read("r/events.jsonl"), fs::read_to_string(journal(&project)).unwrap());
}

#[test]
fn a_torn_last_line_is_cut_off_before_anything_is_written() {
    for cut in [1, 10, 60] {
        let project = killed(TWO, &[]);
        let path = journal(&project);
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - cut]).unwrap();
        project.run(&["resume", "main"]).code(0);
        let events = events(&journal(&project));
        assert_eq!(events.last().unwrap()["event"], "loop_complete");
        assert!(events.iter().enumerate().all(|(index, event)| event["seq"] == index + 1), "{events:#?}");
        assert_eq!(project.read("order"), "one\ntwo\ntwo\nthree first half\nsecond\n");
    }
}

#[test]
fn a_journal_that_was_changed_is_refused_with_its_line() {
    let project = killed(TWO, &[]);
    let path = journal(&project);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without = |line: usize| [&lines[..line - 1], &lines[line..]].concat().join("\n") + "\n";
    let with =
        |line: usize, text: &str| [&lines[..line - 1], &[text], &lines[line..]].concat().join("\n") + "\n";
    for (changed, says) in [
        (with(3, "{\"event\":"), "line 3 of the journal"),
        (with(4, ""), "line 4 of the journal"),
        (without(4), "line 4 of the journal"),
        (with(2, &lines[1].replace("state_enter", "teleport")), "newer version"),
        (with(1, &lines[0].replace("\"schema\":1", "\"schema\":2")), "its schema is 2"),
    ] {
        fs::write(&path, &changed).unwrap();
        project.run(&["resume", "main"]).code(2).says(says);
        assert_eq!(fs::read_to_string(&path).unwrap(), changed);
    }
    fs::write(&path, text).unwrap();
    project.run(&["resume", "main"]).code(0);
}

#[test]
fn an_empty_journal_is_a_run_that_never_began() {
    let project = killed(TWO, &[]);
    let id = instance(&project);
    for begin in ["", "{\"event\":\"loop_st"] {
        fs::write(journal(&project), begin).unwrap();
        for name in ["main", &id] {
            project.run(&["resume", name]).code(2).says("ended before its first step").says("ll-loop run");
        }
    }
}

#[test]
fn state_json_is_never_read_back() {
    for content in [Some(""), Some("{\"schema\":99,\"current_state\":\"nowhere\",\"iteration\":77"), None] {
        let project = killed(TWO, &[]);
        let path = project.run_files(".state.json").pop().unwrap();
        match content {
            Some(content) => fs::write(path, content).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        project.run(&["resume", "main"]).code(0);
        assert_eq!(project.state()["iteration"], 1);
    }
}

#[test]
fn a_clock_that_was_set_back_changes_dates_and_nothing_else() {
    let project = killed(&TWO.replace("initial: one", "initial: one\ntimeout: 60"), &[]);
    let path = journal(&project);
    let text = fs::read_to_string(&path).unwrap();
    let year = &text.split("\"ts\":\"").nth(1).unwrap()[..4];
    fs::write(&path, text.replace(&format!("\"ts\":\"{year}"), "\"ts\":\"2199")).unwrap();
    project.run(&["resume", "main"]).code(0);
    let end = project.end();
    assert!(end["duration_ms"].as_u64().unwrap() < 60_000, "{end}");
    assert!(end["ts"].as_str().unwrap() < "2199");
}

#[test]
fn a_disk_that_is_full_stops_the_run_and_leaves_it_to_be_resumed() {
    let text = "name: main\ninitial: a\nmax_iterations: 400\nstates:\n  a: {action: 'echo $LL_STEP >> n; test $LL_STEP -ge 300', on_yes: done, on_no: a}\n  done: {terminal: true}\n";
    // The limit is in blocks of 1 KiB, and writes beyond it fail; with a signal, where it is not ignored.
    for ignored in ["trap '' XFSZ; ", ""] {
        let project = Project::with_loop(text);
        let program = crate::common::LL_LOOP.as_str();
        let limited = format!("{ignored}ulimit -f 64; exec {program} run main -q");
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &limited]).current_dir(project.path()).env_clear().env("PATH", "/usr/bin:/bin");
        let ran = Ran::of(&command.output().unwrap()).code(4);
        assert!(ran.stderr.contains("its journal cannot be written"), "{}", ran.all());
        assert!(ran.stderr.contains("ll-loop resume"), "{}", ran.all());
        let done = project.read("n").lines().count();
        assert!(done > 20 && done < 290, "{done}");
        project.run(&["resume", "main", "-q"]).code(0);
        // The step whose end could not be written is the one that ran again.
        let steps: Vec<u32> = project.read("n").lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(steps.len(), 301);
        assert_eq!(project.end()["steps"], 300);
    }
}

#[test]
fn a_directory_that_cannot_be_written_to_is_said_before_anything_runs() {
    let project = killed(TWO, &[]);
    // A file where a directory has to be fails for everybody, also for root.
    let scratch = project.at(&format!(".loops/.running/{}.dir", instance(&project)));
    let _absent = fs::remove_dir_all(&scratch);
    fs::write(&scratch, "").unwrap();
    project.run(&["resume", "main"]).code(2).says("cannot save the run");
    assert_eq!(project.read("order"), "one\ntwo\n");
    let project = Project::with_loop(TWO);
    project.write(".loops/.running", "a file");
    project.run(&["run", "main"]).code(2).says("cannot save the run").says("make `.loops` writable");
}

/// A loop that checks twice and mends nothing by itself.
const CHECKED: &str = "name: main
description: checks
initial: build
states:
  build: {action: 'echo build >> told', next: check}
  check: {action: 'echo check >> told; test -e fixed', on_yes: done, on_no: failed, on_error: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

#[test]
fn a_run_that_failed_is_taken_up_in_the_state_that_failed() {
    let project = Project::with_loop(CHECKED);
    project.run(&["run", "main", "--no-ci"]).code(1);
    assert!(project.run_files(".events.jsonl")[0].to_string_lossy().contains(".history"));
    let ran = project.run(&["resume", "main", "--no-ci"]).code(1);
    assert!(ran.stderr.contains("which did not succeed, in check"), "{}", ran.stderr);
    assert!(project.run_files(".events.jsonl")[0].to_string_lossy().contains(".history"));
    project.write("fixed", "");
    project.run(&["resume", "main", "--no-ci"]).code(0);
    assert_eq!(project.read("told"), "build\ncheck\ncheck\ncheck\n");
    let ran = project.run(&["resume", "main", "--no-ci"]).code(2);
    let _ran = ran.says("of `main` has ended (success in done), and nothing is left to do");
    assert_eq!(project.run_files(".events.jsonl").len(), 1);
}

#[test]
fn the_newest_run_goes_on_whether_it_was_left_or_failed() {
    let project = Project::with_loop(CHECKED);
    project.run(&["run", "main", "--no-ci"]).code(1);
    let first = instance(&project);
    std::thread::sleep(std::time::Duration::from_millis(5));
    project.write("fixed", "");
    project.run(&["run", "main", "--no-ci"]).code(0);
    project.run(&["resume", "main", "--no-ci"]).code(2).says("has ended (success in done)");
    // The older one is named.
    project.run(&["resume", &first, "--no-ci"]).code(0);
    project.run(&["resume", &first, "--no-ci"]).code(2).says("has ended (success in done)");
}

#[test]
fn a_run_without_a_way_on_or_at_its_cap_is_taken_up_where_it_stood() {
    let text = "name: main
description: counts
initial: work
max_iterations: 2
states:
  work: {action: 'echo work >> told; test -e broken && exit 7; test -e fixed', on_yes: done, on_no: work}
  done: {terminal: true}
";
    let project = Project::with_loop(text);
    project.run(&["run", "main", "--no-ci"]).code(3);
    // The cap still holds, and a higher one lets it go on.
    project.run(&["resume", "main", "--no-ci"]).code(3);
    assert_eq!(project.read("told"), "work\nwork\n");
    project.write("broken", "");
    project.run(&["resume", "main", "--no-ci", "--max-iterations", "4"]).code(4);
    assert_eq!(project.read("told"), "work\nwork\nwork\n");
    fs::remove_file(project.at("broken")).unwrap();
    project.write("fixed", "");
    project.run(&["resume", "main", "--no-ci"]).code(0);
    assert_eq!(project.read("told"), "work\nwork\nwork\nwork\n");
}

#[test]
fn a_failed_run_that_cannot_be_taken_up_stays_in_the_history() {
    let project = Project::with_loop(CHECKED);
    project.run(&["run", "main", "--no-ci"]).code(1);
    project.write(".loops/main.yaml", &CHECKED.replace("test -e fixed", "true"));
    project.run(&["resume", "main", "--no-ci"]).code(2).says("--accept-changes");
    assert!(project.run_files(".events.jsonl")[0].to_string_lossy().contains(".history"));
    project.run(&["resume", "main", "--no-ci", "--accept-changes"]).code(0);
}
