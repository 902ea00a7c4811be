//! The loops that the program brings along: each is clean, mends, gives up with a reason, and is never green where a
//! program is missing.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use crate::common::{Project, Ran, git};

/// The loops that need no agent, and those that do.
const LOOPS: [&str; 21] = [
    "actions",
    "advisories",
    "bisect",
    "codegen-drift",
    "coverage-ratchet",
    "deps-update",
    "docs-commands",
    "dotnet-tidy",
    "file-hygiene",
    "flaky-hunt",
    "go-tidy",
    "java-tidy",
    "js-tidy",
    "links",
    "lockfile-drift",
    "markdown",
    "python-tidy",
    "rust-tidy",
    "shell",
    "snapshots",
    "typos",
];
const WITH_AGENT: [&str; 4] = ["fix-ci", "fix-issue", "review-fix", "upgrade"];

/// A run of a loop in a repository: with these files, committed, and these parameters.
struct Case {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    parameters: &'static [&'static str],
    /// Its exit code, the state where it ends, and the files that it changes.
    ends: (i32, &'static str, &'static [&'static str]),
}

const fn case(
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    parameters: &'static [&'static str],
    ends: (i32, &'static str, &'static [&'static str]),
) -> Case {
    Case { name, files, parameters, ends }
}

fn repository(files: &[(&str, &str)]) -> Project {
    let project = Project::new();
    git(&project, &["init", "-q", "-b", "main"]);
    project.write(".gitignore", "/bin/\n/.config/\n/tools/\n");
    for (path, text) in files {
        project.write(path, text);
    }
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project
}

/// Puts a program of that name first on PATH.
fn program(project: &Project, name: &str, text: &str) {
    let path = format!("bin/{name}");
    project.write(&path, &format!("#!/usr/bin/env bash\nset -eu\n{text}\n"));
    std::fs::set_permissions(project.at(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(project: &Project, name: &str, parameters: &[&str]) -> Ran {
    let mut arguments = vec!["run", name];
    arguments.extend(parameters.iter().flat_map(|parameter| ["--param", parameter]));
    project.run(&arguments)
}

fn with_programs(project: Project) -> Project {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", project.at("bin").display());
    project.env("PATH", path)
}

fn play(case: &Case) {
    let project = repository(case.files);
    let ran = run(&project, case.name, case.parameters);
    judge(&project, case.name, &ran, case.ends);
}

fn judge(project: &Project, name: &str, ran: &Ran, (code, state, changed): (i32, &str, &[&str])) {
    assert_eq!(ran.code, Some(code), "{name} → {state}: {}", ran.all());
    let end = project.end();
    assert_eq!(end["final_state"], state, "{name}: {}", ran.all());
    let seen = git(project, &["status", "--porcelain", "-uall", "--", ".", ":!.loops", ":!.local"]);
    let seen: Vec<_> = seen.lines().map(|line| line[2..].trim()).collect();
    assert_eq!(seen, changed, "{name} → {state}: {}", ran.all());
    if code == 1 {
        let text = project.run(&["catalog", "show", name]).code(0).stdout;
        let after = text.split_once(&format!("\n  {state}:\n")).unwrap().1;
        let why = after.lines().find_map(|line| line.trim().strip_prefix("description: ")).unwrap();
        let why = why.trim_matches('\'').split('\'').next().unwrap();
        assert!(ran.all().contains(why), "{name} does not say: {why}\n{}", ran.all());
    }
}

/// The loops that lint, format and test, with commands that look for the words of a mistake.
const LINT: &str = "lint=if grep -rn MISTAKE a; then exit 9; fi";
const MEND: &str = "mend=sed s/MISTAKE/right/ a >b && cat b >a && rm b";
const FORMAT: &str = "format=if grep -n UGLY a; then exit 2; fi";
const REFORMAT: &str = "reformat=sed s/UGLY/nice/ a >b && cat b >a && rm b";
const TEST: &str = "test=if grep -n BROKEN a; then exit 101; fi";

#[test]
fn tidy_loops_mend_what_they_can_and_say_what_they_cannot() {
    for name in ["rust-tidy", "python-tidy", "js-tidy", "go-tidy", "java-tidy", "dotnet-tidy"] {
        let mends = !["go-tidy", "java-tidy", "dotnet-tidy"].contains(&name);
        let own = run_with(name, "fine\n", mends, &[]);
        judge(&own.0, name, &own.1, (0, "done", &[]));
        let ugly = run_with(name, "UGLY\n", mends, &[]);
        judge(&ugly.0, name, &ugly.1, (0, "done", &["a"]));
        let broken = run_with(name, "BROKEN\n", mends, &[]);
        judge(&broken.0, name, &broken.1, (1, "broken", &[]));
        let stays = run_with(name, "UGLY\n", mends, &["reformat=true"]);
        judge(&stays.0, name, &stays.1, (1, "unformatted", &[]));
        let mistake = run_with(name, "MISTAKE\n", mends, &[]);
        let ends: (_, _, &[_]) = if mends { (0, "done", &["a"]) } else { (1, "mistakes", &[]) };
        judge(&mistake.0, name, &mistake.1, ends);
        if mends {
            let hopeless = run_with(name, "MISTAKE\n", mends, &["mend=exit 1"]);
            judge(&hopeless.0, name, &hopeless.1, (1, "mistakes", &[]));
        }
    }
}

fn run_with(name: &str, text: &str, mends: bool, last: &[&str]) -> (Project, Ran) {
    let project = repository(&[("a", text)]);
    let mut parameters = vec!["tools=git", LINT, FORMAT, REFORMAT, TEST];
    parameters.extend(mends.then_some(MEND));
    parameters.retain(|one| last.iter().all(|own| own.split('=').next() != one.split('=').next()));
    parameters.extend(last);
    let ran = run(&project, name, &parameters);
    (project, ran)
}

#[test]
fn checks_mend_once_and_judge_again() {
    const CHECK: &str = "check=if grep -n BAD a.md; then exit 2; fi";
    const MEND: &str = "mend=sed s/BAD/good/ a.md >b && cat b >a.md && rm b; exit 1";
    for name in ["markdown", "typos", "lockfile-drift", "advisories"] {
        let of = |text| [("a.md", text)];
        for (text, mend, ends) in [
            ("good\n", MEND, (0, "done", &[][..])),
            ("BAD\n", MEND, (0, "done", &["a.md"][..])),
            ("BAD\n", "mend=true", (1, "", &[][..])),
        ] {
            let project = repository(&of(text));
            let mend =
                if name == "lockfile-drift" { mend.strip_suffix("; exit 1").unwrap_or(mend) } else { mend };
            let ran = run(&project, name, &["tools=git", CHECK, mend]);
            let failure = match name {
                "lockfile-drift" => "drifted",
                "advisories" => "vulnerable",
                _ => "failed",
            };
            let state = if ends.1.is_empty() { failure } else { ends.1 };
            judge(&project, name, &ran, (ends.0, state, ends.2));
        }
    }
    play(&case("markdown", &[("a", "")], &["tools=git"], (1, "nothing", &[])));
    play(&case("lockfile-drift", &[("a", "")], &[], (1, "drifted", &[])));
    play(&case("advisories", &[("a", "")], &[], (1, "vulnerable", &[])));
}

#[test]
fn files_are_mended_whatever_their_names_are() {
    const NAME: &str = "file-hygiene";
    play(&case(NAME, &[("a", "one\n"), ("empty", "")], &[], (0, "done", &[])));
    let dirty: &'static [(&str, &str)] =
        &[("-n", "x \n"), ("a b", "one  \ntwo"), ("c", "one\r\n"), ("d.md", "line  \n"), ("b.bat", "x\r\n")];
    let project = repository(dirty);
    let ran = run(&project, NAME, &[]);
    judge(&project, NAME, &ran, (0, "done", &["-n", "\"a b\"", "c"]));
    assert_eq!(project.read("-n") + &project.read("a b") + &project.read("c"), "x\none\ntwo\none\n");
    assert_eq!(project.read("b.bat"), "x\r\n");
    let markers: &'static [(&str, &str)] = &[("a", "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n")];
    play(&case(NAME, markers, &[], (1, "conflict", &[])));
    play(&case(NAME, &[("a", "x\n")], &["paths=nowhere"], (1, "nothing", &[])));
    let project = repository(&[("a", "x \n")]);
    program(&project, "awk", "cat \"${@: -1}\"");
    let project = with_programs(project);
    let ran = run(&project, NAME, &[]);
    judge(&project, NAME, &ran, (1, "untidy", &[]));
}

/// Scripts, with stand-ins for `ShellCheck` and `shfmt`.
#[test]
fn shell_scripts_are_linted_and_formatted() {
    const NAME: &str = "shell";
    let play = |text: &str, patches: bool, ends: (i32, &str, &[&str])| {
        let project = repository(&[("a b.sh", text)]);
        let patch = if patches { "diff -u \"a/$file\" \"b/$file\" || true" } else { "true" };
        let mending = format!(
            "mkdir a b; cp \"$file\" a; sed s/MISTAKE/fine/ \"$file\" >\"b/$file\"; {patch}; rm -r a b; exit 1"
        );
        program(
            &project,
            "shellcheck",
            &format!(
                "file=$1; grep -q MISTAKE \"$file\" || exit 0\nif [ \"$#\" = 2 ]; then {mending}; fi; exit 1"
            ),
        );
        program(
            &project,
            "shfmt",
            "case $1 in -f) ls *.sh 2>/dev/null || true ;; -d) ! grep UGLY \"$2\" ;; -w) sed -i.bak s/UGLY/nice/ \"$2\"; rm \"$2.bak\" ;; esac",
        );
        let project = with_programs(project);
        // The file comes first for this stand-in, and the format of the patch last.
        let ran = run(&project, NAME, &["lint=shellcheck"]);
        judge(&project, NAME, &ran, ends);
    };
    play("echo\n", true, (0, "done", &[]));
    play("UGLY\n", true, (0, "done", &["\"a b.sh\""]));
    self::play(&case(NAME, &[("a", "")], &["tools=git", "list=true"], (1, "nothing", &[])));
    let script: &'static [(&str, &str)] = &[("a.sh", "x\n")];
    self::play(&case(NAME, script, &["tools=git", "list=echo a.sh", "lint=false"], (1, "mistakes", &[])));
    let lints = ["tools=git", "list=echo a.sh", "lint=true", "format=false", "reformat=true"];
    let project = repository(script);
    let ran = run(&project, NAME, &lints);
    judge(&project, NAME, &ran, (1, "unformatted", &[]));
}

#[test]
fn links_are_dead_or_alive() {
    const FILES: &[(&str, &str)] = &[("a b.md", "x\n")];
    const CHECK: &str = "check=sh -c 'test -f \"$1\" && ! grep DEAD \"$1\"' x";
    play(&case("links", FILES, &["tools=git", CHECK], (0, "done", &[])));
    play(&case("links", &[("a b.md", "DEAD\n")], &["tools=git", CHECK], (1, "dead", &[])));
    play(&case("links", &[("a", "x\n")], &["tools=git", CHECK], (1, "nothing", &[])));
}

#[test]
fn workflows_are_linted_pinned_and_audited() {
    const NAME: &str = "actions";
    const PINNED: &[(&str, &str)] = &[(
        ".github/workflows/a.yml",
        "steps:\n  - uses: \"a/b@0123456789abcdef0123456789abcdef01234567\" # v1\n  - uses: ./mine\n",
    )];
    const FINE: &[&str] = &["tools=git", "lint=true", "audit=true", "mend=true"];
    play(&case(NAME, PINNED, FINE, (0, "done", &[])));
    play(&case(NAME, &[("a", "")], FINE, (1, "nothing", &[])));
    let tag: &'static [(&str, &str)] = &[(".github/workflows/a.yml", "steps:\n  - uses: a/b@v1\n")];
    play(&case(NAME, tag, FINE, (1, "unpinned", &[])));
    play(&case(NAME, PINNED, &["tools=git", "lint=false"], (1, "mistakes", &[])));
    let mended: &'static [&str] = &[
        "tools=git",
        "lint=true",
        "audit=grep safe .github/workflows/a.yml",
        "mend=echo '# safe' >>.github/workflows/a.yml",
    ];
    play(&case(NAME, PINNED, mended, (0, "done", &[".github/workflows/a.yml"])));
    let hopeless: &'static [&str] = &["tools=git", "lint=true", "audit=exit 14", "mend=exit 14"];
    play(&case(NAME, PINNED, hopeless, (1, "insecure", &[])));
}

#[test]
fn generated_files_are_made_until_they_stay_the_same() {
    const NAME: &str = "codegen-drift";
    const FILES: &[(&str, &str)] = &[("src", "1\n"), ("made", "1\n")];
    play(&case(NAME, FILES, &["generate=cp src made"], (0, "done", &[])));
    play(&case(NAME, &[("src", "2\n"), ("made", "1\n")], &["generate=cp src made"], (0, "done", &["made"])));
    play(&case(NAME, FILES, &["generate=cp src 'new file'"], (0, "done", &["\"new file\""])));
    play(&case(NAME, FILES, &["generate=echo x >>made"], (1, "restless", &["made"])));
    play(&case(NAME, FILES, &["generate=exit 3"], (1, "generator", &[])));
}

#[test]
fn snapshots_are_taken_over_only_where_the_tests_then_pass() {
    const TEST: &str = "test=cmp made snap";
    const NONE: &[(&str, &str)] = &[("made", "1\n"), ("snap", "1\n")];
    const OLD: &[(&str, &str)] = &[("made", "1\n"), ("snap", "0\n")];
    play(&case("snapshots", NONE, &["tools=git", TEST, "accept=false"], (0, "done", &[])));
    play(&case("snapshots", OLD, &["tools=git", TEST, "accept=cp made snap"], (0, "done", &["snap"])));
    play(&case("snapshots", OLD, &["tools=git", "test=exit 2", "accept=true"], (1, "failed", &[])));
}

#[test]
fn a_flaky_test_is_told_from_a_broken_one() {
    const NAME: &str = "flaky-hunt";
    play(&case(NAME, &[], &["test=echo x >>.git/count", "times=7"], (0, "done", &[])));
    let counted = "n=$(cat .git/count 2>/dev/null || echo 0); echo $((n + 1)) >.git/count; test $n != ";
    let project = repository(&[]);
    let ran = run(&project, NAME, &[&format!("test={counted}2")]);
    judge(&project, NAME, &ran, (1, "flaky", &[]));
    play(&case(NAME, &[], &["test=exit 1"], (1, "broken", &[])));
    let project = repository(&[]);
    drop(run(&project, NAME, &["test=echo >>.git/times", "times=7"]).code(0));
    assert_eq!(project.read(".git/times").lines().count(), 7);
}

#[test]
fn the_first_bad_commit_is_found_and_the_tree_stays_as_it_is() {
    const NAME: &str = "bisect";
    let project = repository(&[("a", "0\n")]);
    for number in 1..8 {
        project.write("a", &format!("{number}\n"));
        git(&project, &["commit", "-qam", &format!("number {number}")]);
    }
    project.write("a", "not committed\n");
    let good = git(&project, &["rev-parse", "HEAD~7"]).trim().to_owned();
    let of = |test: &str, good: &str| {
        drop(std::fs::remove_dir_all(project.at(".loops/.history")));
        run(&project, NAME, &[&format!("test={test}"), &format!("good={good}")])
    };
    let ran = of("test $(cat a) -lt 5", &good);
    judge(&project, NAME, &ran, (0, "done", &["a"]));
    drop(ran.says("number 5"));
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
    judge(&project, NAME, &of("true", &good), (1, "passes", &["a"]));
    judge(&project, NAME, &of("false", &good), (1, "fails", &["a"]));
    judge(
        &project,
        NAME,
        &of("case $(cat a) in 0) ;; 7) exit 1 ;; *) exit 125 ;; esac", &good),
        (1, "unsure", &["a"]),
    );
    judge(&project, NAME, &of("true", "--help; nonsense"), (1, "unknown", &["a"]));
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
    drop(of("nonesuch", &good).code(4).says("nonesuch"));
}

#[test]
fn coverage_rises_and_does_not_fall() {
    const NAME: &str = "coverage-ratchet";
    const SAME: &[&str] = &["tools=git", "test=true", "measure=echo 80.5"];
    play(&case(NAME, &[(".coverage-floor", "80.5\n")], SAME, (0, "done", &[])));
    play(&case(NAME, &[(".coverage-floor", "80.25\n")], SAME, (0, "done", &[".coverage-floor"])));
    play(&case(NAME, &[("a", "")], SAME, (0, "done", &[".coverage-floor"])));
    play(&case(NAME, &[(".coverage-floor", "100\n")], SAME, (1, "fallen", &[])));
    let slack: &'static [&str] = &["tools=git", "test=true", "measure=echo 80.5", "slack=0.5"];
    play(&case(NAME, &[(".coverage-floor", "81\n")], slack, (0, "done", &[])));
    play(&case(NAME, &[("a", "")], &["tools=git", "test=false"], (1, "tests", &[])));
    play(&case(NAME, &[("a", "")], &["tools=git", "test=true", "measure=echo -1"], (1, "unmeasured", &[])));
    let project = repository(&[]);
    drop(run(&project, NAME, &["tools=git", "test=true", "measure=echo many"]).code(4));
    drop(project.run(&["catalog", "show", NAME]).code(0));
}

#[test]
fn an_update_stays_only_where_the_tests_pass() {
    const NAME: &str = "deps-update";
    const FILES: &[(&str, &str)] = &[("Cargo.lock", "1\n")];
    play(&case(NAME, FILES, &["test=true", "update=true"], (0, "done", &[])));
    let taken: &'static [&str] = &["test=true", "update=echo 2 >Cargo.lock"];
    play(&case(NAME, FILES, taken, (0, "done", &["Cargo.lock"])));
    let refused: &'static [&str] = &["test=grep 1 Cargo.lock", "update=echo 2 >Cargo.lock"];
    play(&case(NAME, FILES, refused, (1, "incompatible", &[])));
    let fails: &'static [&str] = &["test=true", "update=echo 2 >Cargo.lock; exit 1"];
    play(&case(NAME, FILES, fails, (1, "failed", &[])));
    play(&case(NAME, FILES, &["test=false", "update=true"], (1, "broken", &[])));
    let project = repository(FILES);
    project.write("Cargo.lock", "mine\n");
    let ran = run(&project, NAME, taken);
    judge(&project, NAME, &ran, (1, "uncommitted", &["Cargo.lock"]));
    assert_eq!(project.read("Cargo.lock"), "mine\n");
}

#[test]
fn commands_of_documents_run_in_a_copy() {
    const NAME: &str = "docs-commands";
    const FINE: &[(&str, &str)] = &[
        (
            "README.md",
            "# x\n\n```sh run\ntouch new\ntest -e a\n```\n\n```sh run\ntest -e new\n```\n\n```sh\nfalse\n```\n",
        ),
        ("a", ""),
    ];
    play(&case(NAME, FINE, &[], (0, "done", &[])));
    let wrong: &'static [(&str, &str)] = &[("README.md", "```sh run\ntest -e nothing\ntrue\n```\n")];
    play(&case(NAME, wrong, &[], (1, "wrong", &[])));
    play(&case(NAME, &[("README.md", "```sh\nfalse\n```\n")], &[], (1, "nothing", &[])));
}

/// Where every program is missing but those that a system always has, no loop is green, and the program is named.
#[test]
fn a_missing_program_is_an_error_that_names_it() {
    let required = ["test=true", "good=HEAD", "generate=true"];
    for name in LOOPS {
        let project = repository(&[("a", "x\n")]);
        std::fs::create_dir(project.at("tools")).unwrap();
        for program in ["bash", "env"] {
            let found =
                ["/usr/bin", "/bin", "/usr/local/bin"].map(|directory| format!("{directory}/{program}"));
            let found = found.iter().find(|path| std::path::Path::new(path).exists()).unwrap();
            symlink(found, project.at(&format!("tools/{program}"))).unwrap();
        }
        let tools = project.at("tools").to_string_lossy().into_owned();
        let project = project.env("PATH", tools);
        let needed = parameters(&project, name);
        let given: Vec<_> = required
            .iter()
            .copied()
            .filter(|one| needed.contains(&one.split('=').next().unwrap().to_owned()))
            .collect();
        let ran = run(&project, name, &given);
        assert!(matches!(ran.code, Some(4 | 69)), "{name}: {}", ran.all());
        assert!(ran.all().contains("is not on PATH"), "{name}: {}", ran.all());
        let all = run(&project, name, &[&given[..], &["tools=bash nonesuch"]].concat());
        let word = all.code(4).says("nonesuch is not on PATH");
        drop(word);
    }
}

/// The same where the loop finds out by itself which program it needs.
#[test]
fn a_missing_program_for_a_lock_file_is_named() {
    for (file, name, program) in [
        ("Cargo.lock", "lockfile-drift", "cargo"),
        ("uv.lock", "lockfile-drift", "uv"),
        ("poetry.lock", "lockfile-drift", "poetry"),
        ("pnpm-lock.yaml", "lockfile-drift", "pnpm"),
        ("Cargo.lock", "advisories", "cargo"),
        ("requirements.txt", "advisories", "pip-audit"),
        ("go.sum", "advisories", "go"),
        ("uv.lock", "deps-update", "uv"),
    ] {
        let project = repository(&[(file, "")]);
        std::fs::create_dir(project.at("tools")).unwrap();
        for program in ["bash", "env", "ls", "head", "git", "cat"] {
            let found =
                ["/usr/bin", "/bin", "/usr/local/bin"].map(|directory| format!("{directory}/{program}"));
            let found = found.iter().find(|path| std::path::Path::new(path).exists()).unwrap();
            symlink(found, project.at(&format!("tools/{program}"))).unwrap();
        }
        let tools = project.at("tools").to_string_lossy().into_owned();
        let project = project.env("PATH", tools);
        let given: &[&str] = if name == "deps-update" { &["test=true"] } else { &[] };
        drop(run(&project, name, given).code(4).says(&format!("{program} is not on PATH")));
    }
}

fn parameters(project: &Project, name: &str) -> Vec<String> {
    let list = project.run(&["catalog", "--json"]).code(0).stdout;
    let entries = list.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let entry = entries.into_iter().find(|entry| entry["name"] == name).unwrap();
    let all = entry["parameters"].as_array().unwrap().iter();
    all.filter(|one| one["required"] == true).map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn loops_with_an_agent_hand_off_without_one() {
    for (name, given) in [
        ("fix-ci", &["check=false"][..]),
        ("fix-issue", &["issue=a", "test=true"]),
        ("review-fix", &["comments=a", "check=true"]),
        ("upgrade", &["upgrade=touch new", "check=test ! -e new"]),
    ] {
        let project = repository(&[("a", "x\n")]);
        let mut arguments = vec!["run", name, "--no-llm"];
        arguments.extend(given.iter().flat_map(|parameter| ["--param", parameter]));
        drop(project.run(&arguments).code(75).says("needs an agent"));
        // Where it may be asked, and none is installed, the service is unavailable.
        let project = repository(&[("a", "x\n")]);
        drop(run(&project, name, given).code(69).says("there is no agent on PATH"));
    }
    play(&case("fix-ci", &[], &["check=true"], (0, "done", &[])));
    play(&case("fix-issue", &[], &["issue=none", "test=true"], (1, "unreadable", &[])));
    play(&case("review-fix", &[("a", "x")], &["comments=a", "check=false"], (1, "broken", &[])));
    play(&case("upgrade", &[], &["upgrade=false", "check=true"], (1, "not_upgraded", &[])));
}

#[test]
fn every_loop_is_listed_shown_copied_checked_and_documented() {
    let project = Project::new();
    let list = project.run(&["catalog"]).code(0).stdout;
    let docs = |file: &str| {
        let path = format!("{}/docs/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let index = docs("catalog.md");
    for name in LOOPS.into_iter().chain(WITH_AGENT) {
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
        let shown = project.run(&["catalog", "show", name]).code(0).stdout;
        let path = format!(".loops/{name}.yaml");
        drop(project.run(&["add", name]).code(0).says(&format!("wrote {path}")));
        assert_eq!(project.read(&path), shown);
        drop(project.run(&["add", name]).code(0).says("unchanged"));
        let found = project.run(&["validate", name, "--deep", "--strict", "--format", "json"]).code(0).stdout;
        // An error of a state ends the run with exit code 4, and an agent is needed where one is asked: that is meant.
        let meant = ["dead-end", "needs-agent"];
        for line in found.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let is_note = line["severity"] == "note" && meant.contains(&line["code"].as_str().unwrap());
            assert!(is_note, "{name}: {line}");
        }
        assert!(index.contains(&format!("(catalog/{name}.md)")), "{name}");
        let page = docs(&format!("catalog/{name}.md"));
        assert!(page.contains("```console"), "{name}");
    }
    assert_eq!(project.run(&["catalog", "--json"]).code(0).stdout.lines().count(), 25);
    let names: Vec<_> = LOOPS.into_iter().chain(WITH_AGENT).collect();
    drop(project.run(&[&["validate", "--errors-only"][..], &names].concat()).code(0));
}

#[test]
fn a_copy_never_overwrites() {
    let project = Project::new().file(".loops/typos.yaml", "name: mine\n");
    let ran = project.run(&["add", "typos"]).code(2).says("differs").says("-name: mine").says("+name: typos");
    drop(ran.says("--as"));
    assert_eq!(project.read(".loops/typos.yaml"), "name: mine\n");
    drop(project.run(&["add", "typos", "--as", ".loops/sub/spelling.yaml"]).code(0));
    drop(project.run(&["run", "sub/spelling", "--param", "tools=sh", "--param", "check=true"]).code(0));
    drop(project.run(&["add", "typos", "--as", "spelling"]).code(2).says(".yaml"));
    drop(project.run(&["add", "tyops"]).code(2).says("did you mean `typos`"));
    drop(project.run(&["add", "lib/common"]).code(2).says("no `lib/common` in the catalogue"));
    drop(project.run(&["catalog", "show", "../x"]).code(2));
    // Another spelling of the extension is the same loop, and a link is never written through.
    project.write(".loops/links.yml", "name: mine\n");
    drop(project.run(&["add", "links"]).code(2).says("links.yml"));
    symlink("/nowhere/else", project.at(".loops/shell.yaml")).unwrap();
    drop(project.run(&["add", "shell"]).code(2));
    let elsewhere = tempfile::tempdir().unwrap();
    let project = repository(&[]);
    std::fs::remove_dir_all(project.at(".loops")).unwrap();
    symlink(elsewhere.path(), project.at(".loops")).unwrap();
    drop(project.run(&["add", "typos"]).code(2).says("out of the repository"));
    assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_copy_goes_where_its_name_is_looked_for() {
    let project = repository(&[("deep/er/a", "x\n")]);
    std::fs::remove_dir_all(project.at(".loops")).unwrap();
    let mut command = project.command(&["add", "file-hygiene"]);
    let ran = Ran::of(&command.current_dir(project.at("deep/er")).output().unwrap());
    drop(ran.code(0));
    assert!(project.exists(".loops/file-hygiene.yaml"));
    drop(project.run(&["run", "file-hygiene"]).code(0));
}

#[test]
fn a_loop_is_added_from_a_path_with_its_tests() {
    let text = "name: tidy\ninitial: check\nstates:\n  check: {action: make, on_yes: done}\n  done: {terminal: true}\n";
    let project = Project::new()
        .file("shared/tidy.yaml", text)
        .file("shared/tests/tidy.test.yaml", "loop: tidy\ncases: [{name: x, mocks: {check: {exit: 0}}}]\n")
        .file("shared/child.yaml", "from: tidy.yaml\nname: child\n");
    project.run(&["add", "shared/tidy.yaml"]).code(0).says(".loops/tests/tidy.test.yaml");
    assert_eq!(project.read(".loops/tidy.yaml"), text);
    project.run(&["test", "tidy"]).code(0);
    project.run(&["add", "./shared/tidy.yaml"]).code(0).says("unchanged");
    project.write(".loops/tidy.yaml", &text.replace("make", "just"));
    project.run(&["add", "shared/tidy.yaml"]).code(2).says("differs");
    project.run(&["add", "shared/child.yaml"]).code(2).says("made of other files");
    project.run(&["add", "shared/nothing.yaml"]).code(2);
}
