//! `--to branch --remote` and `--to patch`: a person at home, whose server is a plain git repository.

use std::fs;
use std::path::PathBuf;

use crate::common::{Project, Ran, git};

const SPELLING: &str = "name: spelling
initial: check
states:
  check: {action: '! grep -rn recieve docs', on_yes: done, on_no: fix}
  fix: {action: 'grep -rl recieve docs | xargs sed -i s/recieve/receive/g', next: check}
  done: {terminal: true}
";

const BRANCH: &str = "refs/heads/ll-loop/spelling/main";
const DELIVERED: &str = "refs/ll-loop/delivered/spelling/main";

/// A checkout in which the loop has fixed something, beside the repository that it was cloned from.
struct Home {
    project: Project,
    server: Project,
}

impl Home {
    fn new() -> Self {
        let server = Project::new();
        git(&server, &["init", "-q", "--bare", "-b", "main", "server.git"]);
        let project = Project::new()
            .file(".loops/spelling.yaml", SPELLING)
            .file("docs/guide.md", "You recieve an answer.\n")
            .env("GIT_AUTHOR_NAME", "Ann")
            .env("GIT_AUTHOR_EMAIL", "ann@example.org");
        git(&project, &["init", "-q", "-b", "main"]);
        let home = Self { project, server };
        home.commit("Begin");
        let server = home.at().to_string_lossy().into_owned();
        git(&home.project, &["remote", "add", "origin", &server]);
        git(&home.project, &["push", "-q", "origin", "main"]);
        let ran = home.project.run(&["run", "spelling", "--on-change", "report", "--no-ci"]);
        let _ran = ran.code(0);
        home
    }

    fn at(&self) -> PathBuf {
        self.server.at("server.git")
    }

    fn commit(&self, subject: &str) {
        git(&self.project, &["add", "docs", ".loops/spelling.yaml"]);
        git(&self.project, &["commit", "-q", "-m", subject]);
    }

    /// Returns what the server has at a ref; nothing where there is none.
    fn on_server(&self, name: &str) -> String {
        let at = self.at().to_string_lossy().into_owned();
        git(&self.server, &["-C", &at, "for-each-ref", "--format=%(objectname)", name])
    }

    #[track_caller]
    fn deliver(&self, code: i32, word: &str) -> String {
        let ran = self.project.run(&["deliver", "spelling", "--to", "branch", "--remote", "origin"]);
        ran.code(code).says(&format!("delivered: {word}\n")).all()
    }

    /// Moves the branch on the server by a commit of somebody else.
    fn push(&self, from: &str, to: &str, file: &str, text: &str) {
        let server = self.at().to_string_lossy().into_owned();
        let clone = Project::new();
        git(&clone, &["clone", "-q", "-b", from, &server, "clone"]);
        clone.write(&format!("clone/{file}"), text);
        git(&clone, &["-C", "clone", "add", "-A"]);
        git(&clone, &["-C", "clone", "commit", "-q", "-m", "Somebody else's"]);
        git(&clone, &["-C", "clone", "push", "-q", "origin", &format!("HEAD:{to}")]);
    }
}

#[test]
fn a_branch_is_written_once_and_a_persons_work_stays() {
    let home = Home::new();
    home.deliver(0, "created");
    let made = home.on_server(BRANCH);
    assert_eq!((made.is_empty(), &home.on_server(DELIVERED)), (false, &made));
    let at = home.at().to_string_lossy().into_owned();
    let shown = git(&home.server, &["-C", &at, "log", "-1", "--format=%an <%ae>%n%B", BRANCH]);
    assert!(shown.starts_with("Ann <ann@example.org>\nFix what spelling found (1 file)\n"), "{shown}");
    let files = git(&home.server, &["-C", &at, "diff", "--name-only", "main", BRANCH]);
    assert_eq!(files.trim(), "docs/guide.md");
    // The same again, also by its path.
    home.deliver(0, "unchanged");
    let again = home.project.run(&["deliver", "spelling", "--to", "branch", "--remote", &at]);
    let _ran = again.code(0).says("delivered: unchanged");
    assert_eq!(home.on_server(BRANCH), made);
    home.push("ll-loop/spelling/main", "ll-loop/spelling/main", "docs/more.md", "More.\n");
    let persons = home.on_server(BRANCH);
    home.deliver(5, "refused");
    assert_eq!((home.on_server(BRANCH), home.on_server(DELIVERED)), (persons, made));
    // Nothing of it is in the checkout.
    assert_eq!(git(&home.project, &["status", "--porcelain", "docs"]).trim(), "M docs/guide.md");
}

#[test]
fn a_remote_that_is_pushed_to_elsewhere_is_pushed_to_there() {
    let home = Home::new();
    let at = home.at().to_string_lossy().into_owned();
    git(&home.project, &["remote", "set-url", "--push", "origin", &at]);
    git(&home.project, &["config", "remote.origin.url", "https://mirror.invalid/o/r"]);
    home.deliver(0, "created");
    assert!(!home.on_server(BRANCH).is_empty());
}

#[test]
fn a_base_that_moved_gets_the_fix_anew_or_a_refusal_with_the_files() {
    let home = Home::new();
    home.push("main", "main", "docs/other.md", "Other.\n");
    home.deliver(0, "created");
    let parent = home.on_server("refs/heads/main");
    let at = home.at().to_string_lossy().into_owned();
    assert_eq!(git(&home.server, &["-C", &at, "rev-parse", &format!("{BRANCH}^")]).trim(), parent.trim());
    home.push("main", "main", "docs/guide.md", "You get an answer.\n");
    let said = home.deliver(5, "refused");
    assert!(said.contains("docs/guide.md") && said.contains("changes.patch"), "{said}");
}

#[test]
fn who_comes_at_the_same_time_finds_it_done() {
    let home = Home::new();
    let ended: Vec<(Option<i32>, String)> = std::thread::scope(|scope| {
        let deliver = || {
            let ran = home.project.run(&["deliver", "spelling", "--to", "branch", "--remote", "origin"]);
            (ran.code, ran.all())
        };
        let all: Vec<_> = (0..8).map(|_| scope.spawn(deliver)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let count = |word: &str| ended.iter().filter(|(_, said)| said.contains(word)).count();
    assert!(ended.iter().all(|(code, _)| matches!(code, Some(0 | 73))), "{ended:#?}");
    assert_eq!(count("delivered: created"), 1, "{ended:#?}");
    let at = home.at().to_string_lossy().into_owned();
    assert_eq!(
        git(&home.server, &["-C", &at, "rev-list", "--count", &format!("main..{BRANCH}")]).trim(),
        "1"
    );
}

#[test]
fn a_patch_makes_the_same_files_again() {
    let home = Home::new();
    let ran = home.project.run(&["deliver", "spelling", "--to", "patch", "--report-dir", "kept"]);
    let _ran = ran.code(0).says("delivered: created");
    let fixed = home.project.read("docs/guide.md");
    git(&home.project, &["checkout", "-q", "docs"]);
    git(&home.project, &["apply", "kept/changes.patch"]);
    assert_eq!(home.project.read("docs/guide.md"), fixed);
    // What the run left is not what stands there now.
    fs::remove_dir_all(home.project.at("kept")).unwrap();
    home.project.write("docs/guide.md", "Something else.\n");
    let ran = home.project.run(&["deliver", "spelling", "--to", "patch", "--report-dir", "kept"]);
    let _ran = ran.code(5).says("they were changed since");
}

#[test]
fn a_fix_that_was_committed_since_is_delivered_from_where_the_run_began() {
    let home = Home::new();
    let began = git(&home.project, &["rev-parse", "HEAD"]);
    home.commit("Mend it");
    let ran = home.project.run(&["deliver", "spelling", "--to", "patch", "--report-dir", "kept"]);
    let _ran = ran.code(0).says("delivered: created");
    assert!(home.project.read("kept/changes.patch").contains("+You receive an answer."));
    // It would be a file that the run did not leave.
    fs::remove_dir_all(home.project.at("kept")).unwrap();
    home.deliver(0, "created");
    let at = home.at().to_string_lossy().into_owned();
    let shown = git(&home.server, &["-C", &at, "log", "-1", "--format=%P", BRANCH]);
    assert_eq!(shown, began);
}

#[test]
fn a_fix_whose_start_is_not_here_any_more_is_refused_and_not_called_nothing() {
    let home = Home::new();
    home.commit("Mend it");
    let tree = git(&home.project, &["rev-parse", "HEAD^{tree}"]);
    // The same files without a history.
    let alone = git(&home.project, &["commit-tree", &tree, "-m", "All of it"]);
    let shallow = Project::new();
    let from = home.project.at("").to_string_lossy().into_owned();
    git(&home.project, &["update-ref", "refs/heads/alone", &alone]);
    git(&shallow, &["clone", "-q", "--single-branch", "-b", "alone", &format!("file://{from}"), "clone"]);
    fs::rename(home.project.at(".loops/.history"), shallow.at("clone/.loops/.history")).unwrap();
    let mut command = shallow.command(&["deliver", "spelling", "--to", "patch", "--report-dir", "kept"]);
    let ran = Ran::of(&command.current_dir(shallow.at("clone")).output().unwrap());
    let _ran = ran.code(5).says("the run began at the commit").says("delivered: refused");
}

#[test]
fn a_remote_that_cannot_be_reached_or_understood_is_an_error() {
    let home = Home::new();
    for (remote, code) in
        [("/nowhere", 4), ("http://127.0.0.1:1/x.git", 69), ("ext::sh -c date", 4), ("--upload-pack=date", 2)]
    {
        let remote = format!("--remote={remote}");
        let ran = home.project.run(&["deliver", "spelling", "--to", "branch", &remote]);
        assert_eq!(ran.code, Some(code), "{remote}: {}", ran.all());
    }
    let ran = home.project.run(&["deliver", "spelling", "--to", "pr", "--remote", "origin"]);
    let _ran = ran.code(2).says("--to branch");
}

/// Puts a lease on these paths there, as another machine would.
fn lease(home: &Home, name: &str, scopes: &str) {
    let at = home.at().to_string_lossy().into_owned();
    let record = format!(r#"{{"run":"other-1","holder":"elsewhere","scopes":{scopes},"n":3,"ttl_s":60}}"#);
    let tree = git(&home.server, &["-C", &at, "hash-object", "-w", "-t", "tree", "/dev/null"]);
    let commit = git(&home.server, &["-C", &at, "commit-tree", &tree, "-m", &record]);
    git(&home.server, &["-C", &at, "update-ref", &format!("refs/ll-loop/lease/{name}"), &commit]);
}

const LOCKED: [&str; 8] = ["deliver", "spelling", "--to", "branch", "--remote", "origin", "--lock", "git"];

#[test]
fn a_delivery_locks_what_it_changes_and_nothing_is_written_where_somebody_else_has() {
    let home = Home::new();
    lease(&home, "0123456789abcdef", r#"["docs"]"#);
    let refused = home.project.run(&LOCKED).code(73);
    let refused =
        refused.says("the run other-1 has locked `docs`, which overlaps `docs/guide.md` (elsewhere)");
    let _refused = refused.says("the patch is kept");
    assert_eq!(home.on_server(BRANCH), "");
    // A rehearsal and a patch write nothing there.
    home.project.run(&[&LOCKED[..], &["--dry-run"]].concat()).code(0).says("delivered: created");
    lease(&home, "0123456789abcdef", r#"["src"]"#);
    home.project
        .run(&LOCKED)
        .code(0)
        .says("delivered: created")
        .says("locked `docs/guide.md` for all machines");
    assert!(!home.on_server(BRANCH).is_empty());
    let leases = home.on_server("refs/ll-loop/lease/");
    assert_eq!(leases.lines().count(), 1, "only that of the other one is left: {leases}");
}

#[test]
fn a_delivery_that_loses_its_lease_pushes_nothing() {
    let home = Home::new();
    // Somebody removes the lease as soon as it is held.
    let hook = "while read -r old new name; do case $name in refs/ll-loop/lease/*) \
                git log -1 --format=%B \"$new\" | grep -q '\"n\":1' && git update-ref -d \"$name\";; esac; done; exit 0";
    let path = home.at().join("hooks/post-receive");
    let write = "cat > \"$1\" && chmod +x \"$1\"";
    let mut child = std::process::Command::new("sh")
        .args(["-c", write, "sh"])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("#!/bin/sh\n{hook}\n").as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    let ran = home.project.run(&LOCKED).code(73).says("lease_lost: the lock of the delivery was lost");
    let _ran = ran.says("the patch is kept");
    assert_eq!((home.on_server(BRANCH), home.on_server(DELIVERED)), (String::new(), String::new()));
}
