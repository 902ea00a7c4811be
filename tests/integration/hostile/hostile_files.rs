//! What stands in the place of a file of ours may be anything: nothing waits, reads without end or panics for it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{CHECK_FIX, Project, Ran, wait_for};

/// Puts something else in the place of a file.
fn put(what: &str, path: &Path) {
    let _absent = fs::remove_file(path);
    match what {
        "a pipe" => mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        "a device" => symlink("/dev/zero", path).unwrap(),
        "a directory" => fs::create_dir(path).unwrap(),
        "a hole" => fs::File::create(path).unwrap().set_len(10 << 30).unwrap(),
        text => fs::write(path, text).unwrap(),
    }
}

/// Runs the program; it comes back whatever stands there.
fn run(project: &Project, arguments: &[&str]) -> Ran {
    let (out, err) = (project.at("stdout"), project.at("stderr"));
    let mut command = project.command(arguments);
    command.stdin(Stdio::null()).stdout(fs::File::create(&out).unwrap());
    let mut child = command.stderr(fs::File::create(&err).unwrap()).spawn().unwrap();
    let mut status = None;
    wait_for(|| {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Ran { code: status.unwrap().code(), stdout: text(out), stderr: text(err) }
}

/// Makes a project with one run that is over.
fn with_run() -> Project {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main", "-q"]).code(0);
    project
}

#[test]
fn a_journal_that_is_something_else_is_said_and_nobody_waits_for_it() {
    for (what, why) in [
        ("a pipe", "it is a pipe, not a file"),
        ("a device", "it is a device, not a file"),
        ("a directory", "it is a directory, not a file"),
        ("a hole", "is longer than 64 MiB"),
    ] {
        let project = with_run();
        let journal = project.run_files(".events.jsonl").remove(0);
        put(what, &journal);
        let status = run(&project, &["status", "main"]).code(0);
        // The ends of a hole can be looked at; there is nothing.
        if what != "a hole" {
            status.says("journal").says(why);
        }
        run(&project, &["report", "main"]).code(4).says(why);
        run(&project, &["history"]).code(0).says("main-");
        run(&project, &["history", "main"]).code(0);
        run(&project, &["list", "--running"]).code(0);
        run(&project, &["logs", "main"]).code(0).says("looking");
    }
}

#[test]
fn a_log_and_a_state_that_are_something_else_are_said() {
    for what in ["a pipe", "a device", "a directory"] {
        let project = with_run();
        put(what, &project.run_files(".log").remove(0));
        put(what, &project.run_files(".state.json").remove(0));
        let why = format!("it is {what}, not a file");
        run(&project, &["logs", "main"]).code(4).says(&why);
        run(&project, &["status", "main"]).code(0).says("completed").says("state.json").says(&why);
    }
}

#[test]
fn a_claim_that_is_something_else_is_named_and_one_with_an_odd_process_ends_nobody() {
    let project = with_run();
    let claim = project.at(".loops/.running/main-20260101T000000-000001.lock");
    for what in ["a pipe", "a device", "a directory"] {
        put(what, &claim);
        let said = run(&project, &["list", "--running"]).code(4);
        said.says("main-20260101T000000-000001.lock").says(&format!("it is {what}, not a file"));
        if what == "a directory" {
            fs::remove_dir(&claim).unwrap();
        }
    }
    for text in ["garbage", "", "{\"pid\": 1}", "{\"pid\": -1}", "a hole"] {
        put(text, &claim);
        run(&project, &["list", "--running"]).code(0);
        run(&project, &["stop", "main"]).code(1).says("nothing to stop");
    }
}

#[test]
fn what_a_journal_holds_beside_events_is_no_reason_to_panic() {
    for text in ["", "\n\n\n", "{}\n", "null\n", "[[[[\n", "\u{0}\u{1}\n", "{\"event\":\"loop_start\"}\n"] {
        let project = with_run();
        put(text, &project.run_files(".events.jsonl").remove(0));
        for arguments in [&["status", "main"][..], &["report", "main"], &["history"], &["history", "main"]] {
            let ran = run(&project, arguments);
            assert!(!ran.stderr.contains("panicked"), "{}", ran.all());
        }
    }
}

/// What a terminal would obey, in the escapes of a text in double quotes.
const OBEYED: &str = "\\e[2J\\e]0;title\\a\\u009b2J\\u202e";

/// Tells whether a terminal would obey anything of it.
fn is_obeyed(text: &str) -> bool {
    text.chars()
        .any(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}'))
}

#[test]
fn nothing_in_a_loop_file_reaches_a_terminal_as_a_command() {
    let text = format!(
        "name: main\ndescription: \"d{OBEYED}escription\"\ncategory: \"c{OBEYED}\"\nlabels: [\"l{OBEYED}\"]\ninitial: a\nstates:\n  a: {{action: \"echo {OBEYED}\", \"n{OBEYED}ext\": done, next: done}}\n  done: {{terminal: true}}\n"
    );
    let good = text.replace(&format!(", \"n{OBEYED}ext\": done"), "");
    let project = Project::with_loop(&good).file(".loops/bad.yaml", &text);
    fs::write(project.at(".loops/raw.yaml"), "name: \u{1b}[2J\u{9b}2J\n").unwrap();
    for arguments in [
        &["show", "main"][..],
        &["show", "main", "--format", "mermaid"],
        &["list"],
        &["list", "--json"],
        &["compile", "main"],
        &["compile", "main", "--color", "always"],
        &["validate", "bad", "--color", "always"],
        &["validate", "raw", "--color", "always"],
        &["validate", "bad", "--format", "json"],
        &["validate", "bad", "--format", "sarif"],
        &["validate", "bad", "--format", "github"],
        &["run", "main", "--dry-run"],
        &["run", "bad"],
        &["run", "no\u{1b}[2Jthing"],
        &["explain", "no\u{1b}[2Jthing"],
    ] {
        let ran = run(&project, arguments);
        let ours = |text: &str| {
            // Colours of our own, where they were asked for.
            let mut text = text.to_owned();
            for code in
                ["0", "1", "1m\u{1b}[91", "1m\u{1b}[94", "1m\u{1b}[33", "91", "94", "96", "33", "31", "1;31"]
            {
                text = text.replace(&format!("\u{1b}[{code}m"), "");
            }
            while let Some(start) = text.find("\u{1b}[") {
                let end = text[start..].find('m').map_or(text.len(), |end| start + end + 1);
                let is_colour = text[start + 2..end]
                    .trim_end_matches('m')
                    .chars()
                    .all(|c| c.is_ascii_digit() || c == ';');
                assert!(is_colour && arguments.contains(&"always"), "{arguments:?}: {text:?}");
                text.replace_range(start..end, "");
            }
            text
        };
        assert!(!is_obeyed(&ours(&ran.stdout)), "{arguments:?}: {:?}", ran.stdout);
        assert!(!is_obeyed(&ours(&ran.stderr)), "{arguments:?}: {:?}", ran.stderr);
        assert!(!ran.all().contains("panicked"), "{}", ran.all());
    }
    // What was compiled says the same.
    let compiled = run(&project, &["compile", "main"]).code(0).stdout;
    let project = Project::with_loop(&compiled);
    assert_eq!(run(&project, &["compile", "main"]).code(0).stdout, compiled);
    assert!(
        run(&project, &["list", "--json"])
            .code(0)
            .stdout
            .contains(r"d\u001b[2J\u001b]0;title\u0007\u009b2J\u202eescription")
    );
}

#[test]
fn a_log_that_somebody_edited_is_shown_as_text() {
    let project = with_run();
    let log = project.run_files(".log").remove(0);
    fs::write(&log, "one\u{1b}[2J\r\ntwo\rthree\u{9b}1A\u{1b}]0;title\u{7}\n\u{202e}four").unwrap();
    assert_eq!(run(&project, &["logs", "main"]).code(0).stdout, "one\ntwo\nthree\nfour");
    let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(10 << 30).unwrap();
    let shown = run(&project, &["logs", "main"]).code(0).says("the log has 10240 MiB");
    assert_eq!(shown.stdout, "");
}

#[test]
fn no_secret_of_the_environment_is_shown_of_a_file() {
    let text = "name: main\ndescription: 'd Sesame-0pen d'\ncategory: Sesame-0pen\ninitial: a\nstates:\n  a: {action: echo Sesame-0pen, next: done}\n  done: {terminal: true}\n";
    let bad = text.replace("next: done", "next: Sesame-0pen");
    let project = Project::with_loop(text).file(".loops/bad.yaml", &bad).env("MY_TOKEN", "Sesame-0pen");
    for arguments in [
        &["show", "main"][..],
        &["list", "--json"],
        &["compile", "main"],
        &["validate", "bad"],
        &["validate", "bad", "--format", "json"],
        &["validate", "bad", "--format", "sarif"],
        &["validate", "bad", "--format", "github"],
        &["run", "main", "--dry-run"],
        &["run", "bad"],
        &["show", "bad"],
        &["explain", "Sesame-0pen"],
        &["show", "Sesame-0pen"],
    ] {
        let ran = run(&project, arguments);
        assert!(!ran.all().contains("Sesame-0pen"), "{arguments:?}\n{}", ran.all());
        ran.says("***");
    }
    run(&project, &["compile", "main"]).code(0).says("the loop holds a secret");
    // A file that is written is the loop, and means the same.
    run(&project, &["compile", "main", "--output", "out.yaml"]).code(0);
    assert!(project.read("out.yaml").contains("echo Sesame-0pen"));
}

const LOOP: &str = "name: main\ninitial: a\nstates:\n  a: {action: 'true', on_yes: done, on_no: a}\n  done: {terminal: true}\n";

#[test]
fn what_a_loop_takes_over_stays_inside_of_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("base.yaml"), LOOP.replace("'true'", "'true # unseen'")).unwrap();
    fs::write(outside.path().join("lib.yaml"), "fragments: {f: {action: 'true'}}\n").unwrap();
    let at = |name: &str| outside.path().join(name).display().to_string();
    let project = Project::new()
        .file(".loops/from.yaml", &format!("from: {}\nname: x\n", at("base.yaml")))
        .file(".loops/absent.yaml", &format!("from: {}\nname: x\n", at("nothing")))
        .file(".loops/import.yaml", &format!("import: ['{}']\n{LOOP}", at("lib.yaml")))
        .file(".loops/sub.yaml", &LOOP.replace("action: 'true'", &format!("loop: {}", at("base.yaml"))))
        .file(".loops/way.yaml", &format!("import: [way/lib.yaml]\n{LOOP}"));
    symlink(at("base.yaml"), project.at(".loops/linked.yaml")).unwrap();
    symlink(outside.path(), project.at(".loops/way")).unwrap();
    let why = "lies outside of the repository";
    for name in ["from", "import", "sub", "way", "linked", "absent"] {
        for command in ["validate", "show", "compile", "run"] {
            let ran = run(&project, &[command, name]).code(2).says(why);
            assert!(!ran.all().contains("unseen"), "{}", ran.all());
        }
    }
    run(&project, &["list", "--json"]).code(0).says(why);
    for name in ["from", "import", "sub", "way", "linked"] {
        run(&project, &["validate", name, "--allow-outside"]).code(0);
        run(&project, &["run", name, "--allow-outside", "-q"]).code(0);
    }
    // A file may be anywhere that a person names, and takes over what lies beside it.
    fs::write(outside.path().join("child.yaml"), "from: base.yaml\nname: child\nimport: [lib.yaml]\n")
        .unwrap();
    run(&project, &["validate", &at("child.yaml")]).code(0);
}

#[test]
fn a_loop_that_is_a_link_to_a_file_of_the_system_shows_nothing_of_it() {
    let project = Project::new();
    symlink("/etc/passwd", project.at(".loops/x.yaml")).unwrap();
    symlink("/etc", project.at("etc")).unwrap();
    for name in ["x", ".loops/x.yaml", "etc/passwd"] {
        let ran = run(&project, &["validate", name]).code(2).says("outside of the repository");
        assert!(!ran.all().contains("root:"), "{}", ran.all());
    }
}

#[test]
fn a_state_of_work_behind_a_link_out_of_the_repository_is_left_alone() {
    let outside = tempfile::tempdir().unwrap();
    let project = Project::new();
    symlink(outside.path(), project.at(".loop")).unwrap();
    let begin = ["criteria", "start", "spec", "--criterion", "tests"];
    let ran = run(&project, &begin);
    assert_ne!(ran.code, Some(0));
    ran.says("leads out of the repository");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn a_report_takes_the_place_of_a_link_that_was_planted_there() {
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    let project = Project::with_loop(CHECK_FIX);
    fs::create_dir(project.at("reports")).unwrap();
    for name in ["junit.xml", "summary.md", "result.json", "report.env", "outputs.env", "events.jsonl", "log"]
    {
        symlink(&victim, project.at("reports").join(name)).unwrap();
    }
    symlink(&victim, project.at(".loops/.gitignore")).unwrap();
    symlink(&victim, project.at("compiled.yaml")).unwrap();
    run(&project, &["run", "main", "--ci=plain", "--report-dir", "reports"]).code(0);
    run(&project, &["compile", "main", "--output", "compiled.yaml"]).code(0);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert!(project.read("reports/junit.xml").contains("<testsuite"));
    assert!(project.read("compiled.yaml").contains("name: main"));
    // A directory that a person names may be a link.
    symlink(project.at("reports"), project.at("named")).unwrap();
    run(&project, &["run", "main", "--ci=plain", "--report-dir", "named"]).code(0);
    assert!(fs::symlink_metadata(project.at("named")).unwrap().is_symlink());
}
