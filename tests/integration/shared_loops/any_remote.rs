//! Loops of any git repository, by its address: what is copied, what is refused, and that nothing of the repository runs.

use super::{FILES, lock};
use crate::common::{Project, git};

/// A repository with the loops, and its address.
fn remote() -> (Project, String) {
    let remote = FILES.iter().fold(Project::new(), |project, (path, text)| project.file(path, text));
    git(&remote, &["init", "-q", "-b", "main"]);
    commit(&remote, "one");
    git(&remote, &["tag", "v1"]);
    let address = format!("file://{}", remote.path().display());
    (remote, address)
}

fn commit(remote: &Project, message: &str) -> String {
    git(remote, &["add", "-A"]);
    git(remote, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", message]);
    git(remote, &["rev-parse", "HEAD"]).trim().to_owned()
}

#[test]
fn a_loop_of_any_repository_is_copied_by_its_commit_and_updated() {
    let (remote, address) = remote();
    let head = git(&remote, &["rev-parse", "HEAD"]).trim().to_owned();
    let project = Project::new();
    let loop_at = |reference: &str| format!("{address}//loops/tidy.yaml@{reference}");
    for reference in ["v1", "main", "refs/heads/main", head.as_str()] {
        project.run(&["add", &loop_at(reference)]).code(0);
    }
    project.run(&["add", &format!("{address}//loops/tidy.yaml#v1")]).code(0);
    let one = lock(&project)["loops"][0].clone();
    assert_eq!((&one["server"], &one["commit"]), (&address.clone().into(), &head.into()));
    let source = one["source"].as_str().unwrap().to_owned();
    let name = source.replacen("git:", "vendor:", 1);
    assert!(source.starts_with("git:") && source.ends_with("/loops/tidy.yaml"), "{source}");
    let files: Vec<&String> = one["files"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["loops/base.yaml", "loops/help.yaml", "loops/lib/common.yaml", "loops/tidy.yaml"]);
    project.run(&["run", &name]).code(0);
    assert!(project.exists("seen") && project.exists("helped"));

    project.run(&["add", &loop_at("main")]).code(0);
    remote.write(
        "loops/help.yaml",
        "name: help\ninitial: a\nstates: {a: {action: echo other, next: b}, b: {terminal: true}}\n",
    );
    let newer = commit(&remote, "two");
    project.run(&["update", "--check"]).code(0).says("+ echo other");
    project.run(&["update"]).code(0);
    assert_eq!(lock(&project)["loops"][0]["commit"], newer);

    // A tag is not meant to move.
    project.run(&["add", &loop_at("v1")]).code(0);
    git(&remote, &["tag", "-f", "v1"]);
    project.run(&["update"]).code(2).says("has moved");
    project.run(&["update", "--accept-changes"]).code(0);
    // And no other repository has its name.
    let mut other = lock(&project);
    other["loops"][0]["server"] = "ext::touch stolen".into();
    project.write(".loops/lock.json", &other.to_string());
    project.run(&["update"]).code(2).says("is not the address of its repository");
    assert!(!project.exists("stolen"));
}

#[test]
fn whoever_names_no_file_is_told_which_there_are() {
    let (_remote, address) = remote();
    Project::new()
        .run(&["add", &address])
        .code(2)
        .says("`loops/base.yaml`")
        .says(&format!("{address}//loops/base.yaml@main"));
}

#[test]
fn what_may_not_be_copied_is_refused_and_nothing_of_the_repository_runs() {
    let (remote, address) = remote();
    let mark = remote.path().join("started");
    // Everything by which a repository could start something in whoever fetches or reads it.
    let evil = format!("#!/bin/sh\ntouch {}\n", mark.display());
    for hook in ["post-checkout", "pre-receive", "post-update", "reference-transaction"] {
        remote.write(&format!(".git/hooks/{hook}"), &evil);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(remote.at(&format!(".git/hooks/{hook}")), mode).unwrap();
    }
    git(&remote, &["config", "uploadpack.packObjectsHook", &format!("touch {}; true", mark.display())]);
    remote.write(".gitattributes", "* filter=evil\n");
    git(&remote, &["config", "filter.evil.required", "false"]);
    std::os::unix::fs::symlink("/etc/passwd", remote.at("loops/link.yaml")).unwrap();
    remote.write("loops/large.yaml", &"#".repeat(2 << 20));
    let head = commit(&remote, "two");
    git(&remote, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},loops/sub")]);
    git(&remote, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "three"]);
    git(&remote, &["tag", "main"]);
    // What the hooks did for the commits and the tag just now.
    std::fs::remove_file(&mark).unwrap();
    let of = |path: &str, reference: &str| format!("{address}//{path}@{reference}");
    let at = "refs/heads/main";
    for (what, code, says) in [
        (of("loops/link.yaml", at), 2, "is a link"),
        (of("loops/sub/a.yaml", at), 2, "is a submodule"),
        (of("loops/large.yaml", at), 2, "is larger than"),
        (of("loops/nowhere.yaml", at), 2, "has no file"),
        (of("loops/tidy.yaml", "main"), 2, "both a branch and a tag"),
        (of("loops/tidy.yaml", &head[..8]), 2, "write all 40 digits"),
        (of("loops/tidy.yaml", &"1".repeat(40)), 2, "no branch or tag"),
        (of("loops/tidy.yaml", "v9"), 2, "has no branch, tag or commit `v9`"),
        (format!("{address}//loops/tidy.yaml"), 2, "it has no `@REF`"),
        (format!("{address}-x//a.yaml@v1"), 69, "git ls-remote"),
        (format!("ext::touch+{}//a.yaml@v1", mark.display()), 2, "not a protocol"),
        ("https://me:geheim@127.0.0.1:1/o/r//a.yaml@v1".to_owned(), 2, "holds a credential"),
        ("https://127.0.0.1:1/o/r//a.yaml@v1".to_owned(), 69, "127.0.0.1"),
    ] {
        let project = Project::new();
        let ran = project.run(&["add", &what]).code(code).says(says);
        assert!(!ran.all().contains("geheim"), "{}", ran.all());
        assert!(!project.exists(".loops/vendor") && !project.exists(".loops/lock.json"), "{what}");
    }
    Project::new().run(&["add", &of("loops/tidy.yaml", at)]).code(0);
    assert!(!mark.exists());
}
