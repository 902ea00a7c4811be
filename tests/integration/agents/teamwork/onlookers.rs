//! What a tester or a supervisor changes all the same: it is put back, the coder's work that is in no commit included.

use super::*;
use crate::common::git;

/// A repository with two commits, a loop file and a script that tests in it, and a script for one call.
fn repository(call: &str, script: &str, answer: &str) -> Project {
    let project = watched(call, script, answer);
    let check = project.at("check.sh");
    fs::write(&check, "exit 0\n").unwrap();
    git(&project, &["add", "check.sh"]);
    git(&project, &["commit", "-qm", "second"]);
    git(&project, &["tag", "v1"]);
    project
}

/// Everything that git knows, but for the ids of commits, which differ from repository to repository.
fn known(project: &Project) -> String {
    let of = |arguments: &[&str]| git(project, arguments);
    let locks = [".git/index.lock", ".git/HEAD.lock"].map(|lock| project.exists(lock));
    let modes = of(&["ls-files", "-s", "-o", "--exclude-standard"]);
    // What ll-loop itself writes there guards itself.
    let modes: Vec<_> = modes.lines().filter(|line| !line.starts_with(".loops/.")).collect();
    let linked = fs::read_link(project.at("sub")).is_ok();
    format!(
        "{}\n{modes:?}\n{}\n{}\n{locks:?} {linked}",
        everything(project).lines().skip(2).collect::<Vec<_>>().join("\n"),
        of(&["for-each-ref", "--format=%(refname) %(subject)"]),
        of(&["stash", "list"]),
    )
}

/// Where the program of the test lies, and what ll-loop writes.
const KEEP: &str = "-e calls -e bin -e script -e .loops";

#[test]
fn whatever_a_supervisor_does_is_put_back_and_its_call_fails() {
    let undisturbed = repository("verify_step", "true", &scored(90));
    undisturbed.works(0);
    let identity = "-c user.name=t -c user.email=t@example.org";
    for (script, why) in [
        (&*format!("git clean -qfdx {KEEP}"), "changed `added`, `stray`"),
        (&format!("git add -A && git {identity} commit -qm mine"), "made commits, which were taken back"),
        (&format!("git {identity} commit -q --amend -m mine"), "made commits"),
        (&format!("git {identity} stash -q -u; git {identity} stash -q -u 2> /dev/null"), "changed `added`"),
        (
            "git checkout -q -b other; git branch another; git tag -d v1 > /dev/null; git tag v2",
            "made commits",
        ),
        ("git reset -q --hard HEAD~1", "made commits and changed"),
        ("git reset -q --soft HEAD~1", "made commits"),
        ("git checkout -q -- . ; git clean -qfd", "changed `added`"),
        ("git mv kept other; mv added elsewhere", "changed `added`, `elsewhere`, `kept`, `other`"),
        ("chmod +x kept stray", "changed `kept`, `stray`"),
        ("rm -r sub; ln -s . sub", "changed `sub`, `sub/deep`"),
        ("rm link; mkdir link; echo x > link/x", "changed `link`, `link/x`"),
        ("touch .git/index.lock .git/HEAD.lock; echo mine >> kept", "changed `kept`"),
        ("echo own >> .gitignore; echo x > own; rm stray", "changed `.gitignore`, `own`, `stray`"),
        ("echo > .gitignore; rm added", "changed `.gitignore`, `added`, which was put back"),
        ("echo '!*' > sub/.gitignore", "changed `sub/.gitignore`, which was put back"),
        (
            "echo 'exit 0 # always' > check.sh; echo '# mine' >> .loops/main.yaml",
            "changed `.loops/main.yaml`, `check.sh`",
        ),
        ("git rm -q --cached check.sh; rm check.sh", "changed `check.sh`"),
    ] {
        let project = repository("verify_step", script, &scored(90));
        let ran = project.works(0);
        let asked = ["implement one", "test one", "verify_step one", "verify_step one"];
        assert_eq!(project.asked(), around(&asked), "{script}: {}", ran.all());
        assert_eq!(known(&project), known(&undisturbed), "{script}");
        assert!(ran.all().contains(why), "{script}: {}", ran.all());
    }
}

#[test]
fn a_stash_and_branches_that_were_there_stay() {
    let identity = "-c user.name=t -c user.email=t@example.org";
    let project = repository(
        "verify_step",
        &format!("git {identity} stash -q -u; git branch -D -q other"),
        &scored(90),
    );
    project.write("kept", "for later\n");
    git(&project, &["stash", "push", "-q", "--", "kept"]);
    git(&project, &["branch", "other"]);
    drop(project.works(0).says("the supervisor changed"));
    assert_eq!(git(&project, &["stash", "list"]).lines().count(), 1);
    assert_eq!(git(&project, &["stash", "show", "-p"]).matches("+for later").count(), 1);
    assert_eq!(git(&project, &["branch", "--format=%(refname:short)"]), "main\nother");
}

/// In another working tree of the repository, somebody else may make branches meanwhile.
#[test]
fn branches_of_others_stay_where_the_repository_has_other_working_trees() {
    let project = repository("verify_step", "git branch theirs; echo mine >> kept", &scored(90));
    let other = project.at("ignored/tree");
    git(&project, &["worktree", "add", "-q", "-b", "side", other.to_str().unwrap()]);
    drop(project.works(0).says("the supervisor changed `kept`"));
    assert_eq!(git(&project, &["branch", "--format=%(refname:short)"]), "main\nside\ntheirs");
    assert!(!project.read("kept").contains("mine"));
}

#[test]
fn a_repository_that_an_onlooker_makes_fails_its_call_and_is_named() {
    let identity = "-c user.name=t -c user.email=t@example.org";
    let script = format!("git init -q nested; cd nested; git {identity} commit -q --allow-empty -m x; cd ..");
    let project = repository("verify_step", &script, &scored(90));
    drop(project.works(0).says("the supervisor changed `nested`, which cannot be put back: `nested`"));
}

#[test]
fn a_tester_that_edits_the_rules_of_its_work_has_not_tested() {
    let script = "echo 'exit 0' > check.sh; echo '# mine' >> .loops/main.yaml; echo x > report.xml";
    let project = repository("test", script, &tested(0));
    let (check, text) = (project.read("check.sh"), project.read(".loops/main.yaml"));
    let script = script.replace("exit 0", "true");
    project.write(
        "script/test.1",
        &format!("{script}\necho '{}'", result(&serde_json::from_str(&tested(0)).unwrap())),
    );
    let ran = project.works(0).says("the tester changed `.loops/main.yaml`, `check.sh`");
    assert_eq!((project.read("check.sh"), project.read(".loops/main.yaml")), (check, text));
    assert!(!project.exists("report.xml"), "{}", ran.all());
    assert_eq!(project.asked(), around(&["implement one", "test one", "test one", "verify_step one"]));
}

#[test]
fn a_tester_s_new_files_are_removed_and_what_git_ignores_is_no_change() {
    let script = "mkdir -p out/deep ignored; echo x > out/deep/report.xml; echo x > ignored/cache; ln -s kept new-link";
    let project = repository("test", script, &tested(0));
    drop(project.works(0).says("the tester left `new-link`, `out/deep/report.xml`, removed again"));
    assert_eq!(project.asked(), ONE);
    assert!(
        !project.exists("out") && !project.at("new-link").is_symlink() && project.exists("ignored/cache")
    );
}
