//! What a command prints is obeyed by nobody, and shows no secret.

use crate::common::Project;

/// What the log of each CI system obeys: where a line begins, and what stands anywhere in it.
const SYSTEMS: &[(&str, &str, &[&str], &[&str])] = &[
    ("GITHUB_ACTIONS", "true", &["::"], &["##["]),
    ("TF_BUILD", "True", &[], &["##vso[", "##["]),
    ("TEAMCITY_VERSION", "2026.1", &[], &["##teamcity["]),
    ("GITLAB_CI", "true", &[], &["section_start:", "section_end:"]),
    ("BUILDKITE", "true", &["---", "+++", "~~~", "^^^"], &[]),
    ("TRAVIS", "true", &[], &["travis_fold:", "travis_time:"]),
];

const HOSTILE: &str = r"::set-output name=x::y\n::error::a\n  ::add-mask::b\n##[error]c\nd ##vso[task.setvariable variable=x]e\n##teamcity[buildStop]\n--- f\n+++ g\n^^^ +++\n~~~ h\nsection_start:1:a\ntravis_fold:start:a";

fn hostile() -> Project {
    let text = format!(
        "name: main\ndescription: \"{HOSTILE}\"\ninitial: a\ncontext: {{x: \"{HOSTILE}\"}}\nstates:\n  a: {{action: \"printf '%b' '{}'; false\", on_yes: done, on_no: done}}\n  done: {{terminal: true}}\n",
        HOSTILE.replace('\\', "\\\\"),
    );
    Project::with_loop(&text)
}

const COMMANDS: &[&str] = &[
    "list",
    "list --json",
    "show main",
    "show main --json",
    "compile main",
    "validate main",
    "validate main --format json",
    "validate main --format sarif",
    "history main",
    "history --json",
    "stats",
    "stats --json",
    "status main",
    "logs main",
    "report main",
    "report main --format html",
    "report main --format markdown",
    "report main --format junit",
    "report main --format summary",
    "report main --format json",
    "why main",
    "why main --json",
    "why ::error::x",
    "diff main main",
    "diff main main --json",
    "replay main",
    "repro main",
    "catalog",
    "explain",
    "doctor",
    "schema",
    "completions bash",
    "completions zsh",
    "show ::error::x",
    "status ##[error]x",
    "list --##[error]x",
];

/// Returns the lines of a text that a system obeys.
fn obeyed<'t>(text: &'t str, starts: &[&str], anywhere: &[&str]) -> Vec<&'t str> {
    let is_obeyed = |line: &&str| {
        starts.iter().any(|sign| line.trim_start().starts_with(sign))
            || anywhere.iter().any(|sign| line.contains(sign))
    };
    text.lines().filter(is_obeyed).collect()
}

#[test]
fn no_line_of_any_command_is_a_command_for_the_ci_system() {
    let project = hostile();
    let _ran = project.run(&["run", "main"]);
    for (variable, value, starts, anywhere) in SYSTEMS {
        for line in COMMANDS {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ran = project.command(&words).env("CI", "true").env(variable, value).output().unwrap();
            for stream in [&ran.stdout, &ran.stderr] {
                let text = String::from_utf8_lossy(stream);
                // Lines of ours, which a replay shows as the run did, are commands that we mean.
                let found = if *line == "replay main" { Vec::new() } else { obeyed(&text, starts, anywhere) };
                assert!(found.is_empty(), "{line} in {variable}: {found:#?}");
            }
        }
    }
    // The test can fail.
    let said = project.run(&["show", "main"]).stdout + &project.run(&["compile", "main"]).stdout;
    assert!(!obeyed(&said, &["::"], &["##["]).is_empty(), "{said}");
}

/// Whoever reads the log obeys it, whatever language it is written in.
#[test]
fn no_line_of_a_run_is_a_command_for_another_ci_system() {
    let project = hostile();
    let mut seen = 0;
    for (variable, value, starts, anywhere) in SYSTEMS {
        for language in ["plain", "github", "azure", "teamcity", "gitlab", "buildkite", "travis"] {
            let own = ["GITHUB_ACTIONS", "TF_BUILD"].iter().zip(["github", "azure"]);
            let is_own = own.chain([(&"GITLAB_CI", "gitlab")]).any(|pair| pair == (variable, language));
            if is_own || variable.to_ascii_lowercase().starts_with(language) {
                continue;
            }
            let language = format!("--ci={language}");
            for line in [&["run", "main", &language][..], &["run", "main", "--no-ci"], &["replay", "main"]] {
                let ran = project.command(line).env("CI", "true").env(variable, value).output().unwrap();
                for stream in [&ran.stdout, &ran.stderr] {
                    let text = String::from_utf8_lossy(stream);
                    seen += text.matches("buildStop").count();
                    let found = obeyed(&text, starts, anywhere);
                    assert!(found.is_empty(), "{line:?} in {variable}: {found:#?}");
                }
            }
        }
    }
    assert!(seen > 0);
}

#[test]
fn json_says_the_same_in_a_job() {
    let project = hostile();
    for line in [&["list", "--json"][..], &["validate", "main", "--format", "json"]] {
        let outside = project.run(line).stdout;
        let inside = project.command(line).env("GITHUB_ACTIONS", "true").env("CI", "true").output().unwrap();
        let read = |text: &str| -> Vec<serde_json::Value> {
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        assert_eq!(read(&outside), read(&String::from_utf8_lossy(&inside.stdout)));
    }
}

#[test]
fn a_secret_on_a_command_line_that_cannot_be_read_is_not_shown() {
    const SECRET: &str = "s3cr3t-4f9a8b7c6d5e";
    let lines = [
        "run main --max-iterations SECRET",
        "run main --max-iterations=SECRET",
        "run main --SECRET",
        "run main --nosuch=SECRET",
        "run main --context SECRET",
        "run main --deadline SECRET",
        "run main --host SECRET",
        "run main --ci=SECRET",
        "run main x SECRET",
        "SECRET",
        "--SECRET",
        "--color SECRET list",
        "resume main --timeout SECRET",
        "plan main --legs SECRET",
        "plan main --each SECRET",
        "merge --deadline SECRET",
        "deliver main --to SECRET",
        "report main --format SECRET",
        "validate --format SECRET",
        "history --since SECRET",
        "stats --since SECRET",
        "why main --step SECRET",
        "rewind main --to SECRET",
        "replay main --until SECRET",
        "artifact SECRET",
        "criteria SECRET",
        "criteria set SECRET",
        "hook SECRET",
        "hook stop-check --SECRET",
        "explain SECRET",
        "completions SECRET",
        "list SECRET",
        "version SECRET",
        "status SECRET",
        "help SECRET",
    ];
    let project = Project::with_loop("name: main\ninitial: a\nstates:\n  a: {terminal: true}\n")
        .in_github_job()
        .env("MY_TOKEN", SECRET);
    for line in lines {
        let line = line.replace("SECRET", SECRET);
        let words: Vec<&str> = line.split_whitespace().collect();
        let ran = project.run(&words);
        assert!(!ran.all().contains(SECRET), "{line}: {}", ran.all());
    }
    assert!(!project.read("out").contains(SECRET) && !project.read("summary").contains(SECRET));
    // The test can fail: another value is quoted.
    let _ran = project.run(&["run", "main", "--max-iterations", "other-value"]).code(2).says("other-value");
}
