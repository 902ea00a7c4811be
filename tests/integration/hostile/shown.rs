//! What commands print is shown by CI systems, which take some lines for commands, and kept in logs that many read.

use crate::common::{Project, git};

/// A CI system: the variables by which it is known, and what it would take for a command of its own.
struct Reader {
    variables: &'static [(&'static str, &'static str)],
    obeys: fn(&str) -> bool,
}

/// What every name, text and output below holds, in a line each.
const HOSTILE: &str = "::warning::FORGED
::stop-commands::FORGED
##[error]FORGED
##vso[task.x]FORGED
##teamcity[x 'FORGED']
section_start:1:FORGED
--- FORGED
+++ FORGED
~~~ FORGED
^^^ +++ FORGED
";

fn begins(line: &str, forms: &[&str]) -> bool {
    forms.iter().any(|form| line.starts_with(form) && line.contains("FORGED"))
}

const READERS: [Reader; 5] = [
    Reader {
        variables: &[("GITHUB_ACTIONS", "true"), ("GITHUB_REPOSITORY", "o/r")],
        obeys: |line| {
            begins(line.trim_start(), &["::warning::FORGED", "::stop-commands::"])
                || line.contains("##[error]FORGED")
        },
    },
    Reader { variables: &[("GITLAB_CI", "true")], obeys: |line| line.contains("section_start:1:FORGED") },
    Reader {
        variables: &[("TF_BUILD", "True")],
        obeys: |line| line.contains("##vso[task.x]FORGED") || line.contains("##[error]FORGED"),
    },
    Reader { variables: &[("TEAMCITY_VERSION", "1")], obeys: |line| line.contains("##teamcity[x 'FORGED'") },
    Reader {
        variables: &[("BUILDKITE", "true")],
        obeys: |line| begins(line, &["--- FORGED", "+++ FORGED", "~~~ FORGED", "^^^ +++ FORGED"]),
    },
];

const LOOP: &str = r#"name: main
description: |
  DESCRIPTION
initial: check
context: {v: "x\n::warning::FORGED\n--- FORGED"}
states:
  check: {action: "cat hostile; cat hostile >&2; exit 1", on_yes: done, on_no: fix}
  fix: {action: "cp hostile 'a new file'; cat hostile", next: look}
  look: {action: "cat hostile; echo ${context.v:shell}", on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
"#;

#[rustfmt::skip]
const COMMANDS: &[&[&str]] = &[
    &["run", "main", "--report-dir", "reports"],
    &["why", "main"],
    &["why", "main", "--json"],
    &["logs", "main"],
    &["replay", "main"],
    &["list"],
    &["show", "main"],
    &["validate"],
    &["validate", "bad"],
    &["run", "bad"],
    &["compile", "main"],
    &["diff", "main", "main"],
    &["deliver", "main", "--to", "patch"],
    &["resume", "main"],
    &["report", "main", "--format", "text"],
    &["report", "main", "--format", "html"],
    &["report", "main", "--format", "junit"],
    &["report", "main", "--format", "summary"],
    &["run", "\n::warning::FORGED"],
    &["run", "main", "--max-iterations", "\n::warning::FORGED"],
    &["run", "main", "--none=\n::warning::FORGED\n--- FORGED"],
    &["\n::warning::FORGED\n--- FORGED"],
    &["show", "\n##teamcity[x 'FORGED']"],
    &["report", "\n--- FORGED"],
    &["add", "\n##vso[task.x]FORGED"],
    &["explain", "\nsection_start:1:FORGED"],
];

#[test]
fn no_line_of_any_command_is_obeyed_by_the_ci_system() {
    let mut wrong = Vec::new();
    for reader in &READERS {
        let mut project = Project::new();
        for (name, value) in reader.variables.iter().chain(&[("CI", "true")]) {
            project = project.env(name, *value);
        }
        let definition = LOOP.replace("DESCRIPTION", &HOSTILE.replace('\n', "\n  "));
        let project = project
            .file("hostile", HOSTILE)
            .file("::warning::FORGED", "x")
            .file(".loops/main.yaml", &definition)
            .file(".loops/bad.yaml", "name: bad\n\"::warning::FORGED\": 1\nstates: {\"--- FORGED\": {}}\n");
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", HOSTILE]);
        for command in COMMANDS {
            let ran = project.run(command);
            let lines = ran.stdout.split(['\n', '\r']).chain(ran.stderr.split(['\n', '\r']));
            let obeyed = lines.filter(|line| (reader.obeys)(line));
            wrong.extend(obeyed.map(|line| format!("{:?} {command:?}: {line}", reader.variables[0])));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whoever writes `--max-iterations "$MY_TOKEN"` by mistake does not find the token in the log.
#[test]
fn no_command_repeats_a_secret_that_was_given_to_it() {
    const SECRET: &str = "s3cr3t-0123456789-abcdef";
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: 'true', on_yes: b}\n  b: {terminal: true}\n",
    )
    .env("MY_TOKEN", SECRET);
    let commands = [
        "run",
        "resume",
        "report",
        "deliver",
        "plan",
        "merge",
        "validate",
        "show",
        "compile",
        "list",
        "status",
        "stop",
        "history",
        "logs",
        "why",
        "diff",
        "stats",
        "replay",
        "repro",
        "rewind",
        "bundle",
        "init",
        "add",
        "update",
        "doctor",
        "test",
        "criteria",
        "hook",
        "artifact",
        "publish",
        "explain",
        "completions",
    ];
    let secret_in = [
        vec![SECRET.to_owned()],
        vec![format!("--{SECRET}")],
        vec![format!("--none={SECRET}")],
        vec!["main".to_owned(), "--max-iterations".to_owned(), SECRET.to_owned()],
        vec!["main".to_owned(), "--format".to_owned(), SECRET.to_owned()],
        vec!["main".to_owned(), "--to".to_owned(), SECRET.to_owned()],
        vec!["main".to_owned(), "--legs".to_owned(), SECRET.to_owned()],
        vec!["main".to_owned(), "--deadline".to_owned(), SECRET.to_owned()],
        vec!["main".to_owned(), "--context".to_owned(), SECRET.to_owned()],
        vec!["main".to_owned(), SECRET.to_owned(), SECRET.to_owned(), SECRET.to_owned()],
    ];
    let mut wrong = Vec::new();
    for command in commands {
        for arguments in &secret_in {
            let words: Vec<&str> =
                std::iter::once(command).chain(arguments.iter().map(String::as_str)).collect();
            let ran = project.run(&words);
            if ran.all().contains(SECRET) {
                wrong.push(format!("{words:?}: {}", ran.all()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
