//! Loops of other repositories: added, run from their copies, updated; with a GitHub of our own.

mod any_remote;
mod hostile;
mod hub;
mod updates;

use hub::{Hub, TOKEN};

use crate::common::Project;

const TIDY: &str = "\
name: tidy
initial: check
from: base
import: [lib/common.yaml]
context: {lint: make lint}
states:
  check: {action: 'echo checked $GITHUB_TOKEN > seen', on_yes: below, on_no: done}
  below: {loop: help, on_yes: done, on_no: done}
";

const FILES: &[(&str, &str)] = &[
    ("loops/tidy.yaml", TIDY),
    ("loops/base.yaml", "name: base\ninitial: done\nstates: {done: {terminal: true}}\n"),
    ("loops/lib/common.yaml", "fragments: {f: {action: echo from the library}}\n"),
    (
        "loops/help.yaml",
        "name: help\ninitial: a\nstates: {a: {action: echo helped > helped, next: b}, b: {terminal: true}}\n",
    ),
    ("loops/other.yaml", "name: other\n"),
    ("README.md", "hello"),
];

const NAME: &str = "vendor:octo/tools/loops/tidy.yaml";

fn lock(project: &Project) -> serde_json::Value {
    serde_json::from_str(&project.read(".loops/lock.json")).unwrap()
}

#[test]
fn a_loop_is_copied_with_what_it_is_made_of_and_runs_without_the_network() {
    let hub = Hub::with(FILES);
    let head = hub.head();
    hub.tag("v1", &head);
    let project = hub.project();
    let ran = project.run(&["add", "github:octo/tools/loops/tidy.yaml@v1"]).code(0);
    assert_eq!(
        ran.stdout.replace(&head[..7], "COMMIT"),
        "added `vendor:octo/tools/loops/tidy.yaml`, at COMMIT (the tag `v1`): 4 files, 432 bytes\n\
         what it can do:\n  commands:\n    • echo checked $GITHUB_TOKEN > seen\n    • echo helped > helped\n  \
         values:\n    • lint: make lint\n  environment:\n    • GITHUB_TOKEN\n  loops:\n    • help\n\
         run it with `ll-loop run vendor:octo/tools/loops/tidy.yaml`; commit `.loops/vendor` and `.loops/lock.json`\n"
    );
    let lock = lock(&project);
    let one = &lock["loops"][0];
    assert_eq!(one["source"], "github:octo/tools/loops/tidy.yaml");
    assert_eq!((&one["ref"], &one["commit"]), (&"refs/tags/v1".into(), &head.clone().into()));
    let files: Vec<&String> = one["files"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["loops/base.yaml", "loops/help.yaml", "loops/lib/common.yaml", "loops/tidy.yaml"]);
    assert!(!project.exists(".loops/vendor/octo/tools/loops/other.yaml"));
    assert!(!project.exists(".loops/vendor/octo/tools/README.md"));
    assert!(hub.asked().iter().all(|(_, token)| token.as_deref() == Some(&format!("Bearer {TOKEN}"))));

    // A loop of the project with the name of one in the copy is not meant there.
    project.write(
        ".loops/help.yaml",
        "name: help\ninitial: a\nstates: {a: {action: touch stolen, next: b}, b: {terminal: true}}\n",
    );
    project.write(
        ".loops/base.yaml",
        "name: base\ninitial: done\nstates: {done: {terminal: true, failure: true}}\n",
    );
    project.run(&["run", NAME]).code(0);
    assert!(project.exists("seen") && project.exists("helped") && !project.exists("stolen"));
    assert_eq!(hub.asked(), []);
    project.run(&["validate", NAME]).code(0);
    project.run(&["run", "vendor/octo/tools/loops/tidy", "--dry-run"]).code(0);
    project.run(&["status", NAME]).code(0).says("vendor/octo/tools/loops/tidy");

    // It can be inherited from, and be run by a loop of the project.
    project.write(
        ".loops/mine.yaml",
        "name: mine\nfrom: 'vendor:octo/tools/loops/tidy.yaml'\nstates: {below: {next: done}}\n",
    );
    project.write(".loops/around.yaml", "name: around\ninitial: a\nstates: {a: {loop: 'vendor:octo/tools/loops/help.yaml', on_yes: b, on_no: c}, b: {terminal: true}, c: {terminal: true, failure: true}}\n");
    std::fs::remove_file(project.at("helped")).unwrap();
    project.run(&["validate", "around"]).code(0);
    project.run(&["run", "around"]).code(0);
    assert!(project.exists("helped"));
    project.run(&["show", "mine"]).code(0).says("check");
    project.write(".loops/heir.yaml", "name: heir\nfrom: 'vendor:octo/tools/loops/tidy.yaml'\n");
    std::fs::remove_file(project.at("helped")).unwrap();
    project.run(&["validate", "heir"]).code(0);
    project.run(&["run", "heir"]).code(0);
    assert!(project.exists("helped") && !project.exists("stolen"));
    assert_eq!(hub.asked(), []);
}

#[test]
fn an_edited_copy_is_not_run_unless_a_person_says_so() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    for file in ["tidy.yaml", "base.yaml", "lib/common.yaml", "help.yaml"] {
        let path = format!(".loops/vendor/octo/tools/loops/{file}");
        let text = project.read(&path);
        project.write(&path, &format!("{text}# edited\n"));
        project.run(&["run", NAME]).code(2).says("was edited").says("update --merge");
        project.run(&["validate", NAME]).code(2).says("was edited");
        project.write(".loops/mine.yaml", &format!("name: mine\ninitial: a\nstates: {{a: {{loop: '{NAME}', on_yes: b, on_no: b}}, b: {{terminal: true}}}}\n"));
        project.run(&["run", "mine"]).code(2).says("was edited");
        assert!(!project.exists("seen"), "{file}");
        project.run(&["run", NAME, "--accept-changes"]).code(0);
        std::fs::remove_file(project.at("seen")).unwrap();
        project.write(&path, &text);
    }
    project.run(&["run", NAME]).code(0);

    // The path of the file is no way around.
    let path = ".loops/vendor/octo/tools/loops/tidy.yaml";
    project.run(&["run", path]).code(0);
    project.write(path, "name: x\ninitial: a\nstates: {a: {terminal: true, action: touch stolen}}\n");
    project.run(&["run", path]).code(2).says("was edited");
    std::os::unix::fs::symlink(project.at(path), project.at(".loops/way.yaml")).unwrap();
    project.run(&["run", "way"]).code(2).says("was edited");
    project.write(".loops/mine.yaml", "name: mine\nfrom: vendor/octo/tools/loops/tidy.yaml\n");
    project.run(&["run", "mine"]).code(2).says("was edited");
    assert!(!project.exists("stolen"));
}

#[test]
fn without_a_lock_file_that_can_be_read_no_copy_is_run() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    let good = project.read(".loops/lock.json");
    let value = lock(&project);
    let with = |key: &str, what: serde_json::Value| {
        let mut value = value.clone();
        value["loops"][0][key] = what;
        value.to_string()
    };
    for (bad, says) in [
        ("{".to_owned(), "cannot be read"),
        ("[]".to_owned(), "cannot be read"),
        (good.replace("\"version\": 1", "\"version\": 2"), "version 2"),
        (with("source", "github:../../x.yaml".into()), "names no loop"),
        (with("source", "octo/tools/loops/tidy.yaml".into()), "names no loop"),
        (with("commit", "main".into()), "has no commit"),
        (with("ref", "main".into()), "has no branch, tag or commit"),
        (with("ref", "refs/heads/../../x".into()), "has no branch, tag or commit"),
        (with("files", serde_json::json!({"../../x": "0".repeat(64)})), "not among its own files"),
        (with("files", serde_json::json!({"loops/tidy.yaml": "abc"})), "cannot be read"),
        (with("files", serde_json::json!({"loops/tidy.yaml": "0".repeat(64)})), "was edited"),
        (with("odd\u{1b}[31m", 1.into()), "cannot be read"),
        (serde_json::json!({"version": 1, "loops": []}).to_string(), "not in `.loops/lock.json`"),
    ] {
        project.write(".loops/lock.json", &bad);
        let ran = project.run(&["run", NAME]).code(2).says(says);
        assert!(!ran.all().contains('\u{1b}'), "{bad}");
    }
    assert!(!project.exists("seen"));
    std::fs::remove_file(project.at(".loops/lock.json")).unwrap();
    project.run(&["run", NAME]).code(2).says("there is no `.loops/lock.json`");
    project.run(&["run", NAME, "--accept-changes"]).code(0);
}

#[test]
fn a_name_means_one_commit_of_the_repository_itself() {
    let hub = Hub::with(FILES);
    let first = hub.head();
    let head = hub.commit("main", &[("README.md", "newer")]);
    let side = hub.commit("side/x", &[("loops/tidy.yaml", TIDY)]);
    let fork = hub.loose(Some(&first), &[("loops/tidy.yaml", "evil")]);
    let stranger = hub.loose(None, &[("loops/tidy.yaml", TIDY), ("x", "y")]);
    hub.tag("both", &head);
    hub.branch("both", &first);
    hub.tag("deadbeef", &head);
    let project = hub.project();
    let add =
        |reference: &str| project.run(&["add", &format!("github:octo/tools/loops/tidy.yaml@{reference}")]);
    add(&fork).code(2).says("no branch or tag of `octo/tools` leads to the commit").says("fork");
    add(&stranger).code(2).says("no branch or tag");
    add("both").code(2).says("both a branch and a tag").says("refs/tags/both");
    add(&head[..12]).code(2).says("a part of the id");
    add("nowhere").code(2).says("no branch, tag or commit `nowhere`");
    add("mai").code(2).says("no branch, tag or commit");
    assert!(!project.exists(".loops/vendor") && !project.exists(".loops/lock.json"));
    for (good, commit) in [
        (first.as_str(), &first),
        (&head.to_uppercase(), &head),
        (&side, &side),
        ("refs/tags/both", &head),
        ("deadbeef", &head),
        ("main", &head),
    ] {
        let project = hub.project();
        let what = format!("github:octo/tools/loops/help.yaml@{good}");
        let ran = project.run(&["add", &what]);
        if commit == &side {
            // The branch has nothing but this file.
            ran.code(2).says("has no file");
        } else {
            ran.code(0);
            assert_eq!(lock(&project)["loops"][0]["commit"], **commit);
        }
    }
}

#[test]
fn a_repository_has_one_name() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project
        .run(&["add", "github:Octo/TOOLS/loops/help.yaml@main"])
        .code(0)
        .says("vendor:octo/tools/loops/help.yaml");
    assert!(project.exists(".loops/vendor/octo/tools/loops/help.yaml"));
    hub.rename("evil/tools");
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(2).says("is `evil/tools`");
}

/// What a loop runs that was taken over is that of the copy, whoever takes it over.
#[test]
fn names_keep_their_meaning_in_what_is_taken_over() {
    let helper = |word: &str| {
        format!(
            "name: help\ninitial: a\nstates: {{a: {{action: touch {word}, next: b}}, b: {{terminal: true}}}}\n"
        )
    };
    let hub = Hub::with(&[
        (
            ".loops/tidy.yaml",
            "name: tidy\nfrom: base\nimport: [../share/lib.yaml, lib/common.yaml]\nstates:\n  b: {fragment: f, on_yes: done, on_no: done}\n",
        ),
        (
            ".loops/base.yaml",
            "name: base\ninitial: a\nstates:\n  a: {loop: help, on_yes: b, on_no: done}\n  done: {terminal: true}\n",
        ),
        (".loops/help.yaml", &helper("of_base")),
        ("share/lib.yaml", "fragments: {f: {loop: '${context.which}'}, g: {loop: help}}\n"),
        ("share/help.yaml", &helper("of_library")),
    ]);
    let project = hub.project();
    project
        .run(&["add", "github:octo/tools/.loops/tidy.yaml@main"])
        .code(0)
        .says("    • help\n")
        .says("whose name only a run knows");
    let files: Vec<String> =
        lock(&project)["loops"][0]["files"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(files, [".loops/base.yaml", ".loops/help.yaml", ".loops/tidy.yaml", "share/lib.yaml"]);
    project.write(".loops/help.yaml", &helper("stolen"));
    project.write(
        ".loops/heir.yaml",
        "name: heir\nfrom: 'vendor:octo/tools/.loops/tidy.yaml'\ncontext: {which: help}\n",
    );
    for name in ["vendor:octo/tools/.loops/tidy.yaml", "heir"] {
        project.run(&["run", name, "--context", "which=help"]).code(0);
        assert!(project.exists("of_base") && !project.exists("stolen"), "{name}");
        std::fs::remove_file(project.at("of_base")).unwrap();
    }
}

/// Many projects ignore every `vendor/`, which other tools fill.
#[test]
fn a_copy_that_git_ignores_is_warned_of() {
    let hub = Hub::with(FILES);
    let project = hub.project().file(".gitignore", "vendor/\n");
    crate::common::git(&project, &["init", "-q"]);
    let add = ["add", "github:octo/tools/loops/tidy.yaml@main"];
    project.run(&add).code(0).says("git ignores `.loops/vendor`").says("!/.loops/vendor/");
    project.write(".gitignore", "vendor/\n!/.loops/vendor/\n");
    let ran = project.run(&add).code(0);
    assert!(!ran.all().contains("ignores"), "{}", ran.all());
    crate::common::git(&project, &["add", "-A"]);
    assert!(crate::common::git(&project, &["ls-files"]).contains(".loops/vendor/octo/tools/loops/tidy.yaml"));
}

#[test]
fn a_loop_file_names_no_server() {
    let project = Project::new();
    for (name, text) in [
        ("parent", "from: 'github:octo/tools/a.yaml@v1'\n"),
        ("library", "import: ['github:octo/tools/a.yaml@v1']\ninitial: a\nstates: {a: {terminal: true}}\n"),
        (
            "child",
            "initial: a\nstates: {a: {loop: 'github:octo/tools/a.yaml@v1', on_yes: b, on_no: b}, b: {terminal: true}}\n",
        ),
    ] {
        project.write(&format!(".loops/{name}.yaml"), &format!("name: {name}\n{text}"));
        for command in ["validate", "run"] {
            let ran = project.run(&[command, name]).code(2);
            ran.says("ll-loop add github:octo/tools/a.yaml@v1");
        }
    }
    project
        .run(&["run", "github:octo/tools/a.yaml@v1"])
        .code(2)
        .says("ll-loop add github:octo/tools/a.yaml@v1");
    project
        .run(&["run", "vendor:octo/tools/a.yaml"])
        .code(2)
        .says("ll-loop add github:octo/tools/a.yaml@REF");
    project.run(&["run", "vendor:../x.yaml"]).code(2).says("vendor:OWNER/REPOSITORY/PATH.yaml");
    project.run(&["add", "tidy"]).code(2).says("github:OWNER/REPOSITORY/PATH.yaml@REF");
    project.run(&["update"]).code(0).says("no loop of another repository");
}

/// What the page shows is what the commands print, but for commits.
#[test]
fn the_examples_of_the_page_run_as_shown() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/shared-loops.md");
    let page = std::fs::read_to_string(path).unwrap();
    let block = |begin: &str, number: usize| {
        let block = page.split(&format!("```{begin}\n")).nth(number).unwrap();
        block.split("```").next().unwrap().to_owned()
    };
    let text = block("yaml loop", 1);
    let hub = Hub::with(&[("loops/spelling.yaml", &text)]);
    hub.tag("v1", &hub.head());
    let mut project = hub.project();
    let commits = regex::Regex::new(r"\b[0-9a-f]{7}\b").unwrap();
    let known = |text: &str| commits.replace_all(text, "*").into_owned();
    for number in 1..=3 {
        if number == 3 {
            project = hub.project();
            project.run(&["add", "github:octo/tools/loops/spelling.yaml@main"]).code(0);
            let newer =
                text.replace("initial:", "env: { LC_ALL: C }\ninitial:").replace("grep -rl", "git grep -l");
            hub.commit("main", &[("loops/spelling.yaml", &newer)]);
        }
        let shown = block("console", number);
        let mut printed = String::new();
        for command in shown.lines().filter_map(|line| line.strip_prefix("$ ")) {
            let ran = match command.strip_prefix("ll-loop ") {
                Some(arguments) => project.run(&arguments.split(' ').collect::<Vec<_>>()),
                None => crate::common::Ran::of(&project.program("bash", &["-c", command]).output().unwrap()),
            };
            printed += &["$ ", command, "\n", &ran.all()].concat();
        }
        assert_eq!(known(&printed), known(&shown), "{printed}");
    }
}
