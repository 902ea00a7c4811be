//! Bundles that must not be delivered, and bases that have gone elsewhere.

use super::model::{Owner, TOKEN, Token};
use super::scene::{BRANCH_REF, Scene, TIDY, deliver};
use crate::bundles::hostile_bundles::Parts;
use crate::forge::git_server::Bare;

/// Checks that what a loop makes besides its fix is refused, and that nothing is written.
#[track_caller]
fn refuses(makes: &str, named: &str) {
    let tidy = TIDY.replace("xargs sed -i s/wrong/right/", &format!("xargs sed -i s/wrong/right/; {makes}"));
    let scene = Scene::with(&tidy, &[("Cargo.lock", "locked\n"), ("CODEOWNERS", "* @ann\n")]);
    let bundle = scene.night();
    let before = scene.bare.refs();
    scene.hub.begin(None);
    scene.deliver(&bundle).is(5, "refused").says(named).keeps_the_patch();
    assert_eq!((scene.hub.writes(), scene.bare.refs()), (vec![], before));
}

#[test]
fn protected_files_and_too_much_of_it_are_refused() {
    refuses("mkdir -p .github/workflows; echo x > .github/workflows/x.yml", ".github/workflows/x.yml");
    refuses("mkdir -p .claude; echo x > src/AGENTS.md", "src/AGENTS.md");
    refuses("echo more >> Cargo.lock", "Cargo.lock");
    refuses("rm CODEOWNERS", "CODEOWNERS");
    refuses("for n in $(seq 101); do echo $n > src/$n; done", "100");
    refuses("head -c 5000000 /dev/zero > src/huge", "4 MiB");
}

#[test]
fn a_protected_path_is_allowed_by_its_name_and_loops_never_are() {
    let tidy = TIDY.replace("s/wrong/right/", "s/wrong/right/; echo x > AGENTS.md");
    let scene = Scene::with(&tidy, &[]);
    let bundle = scene.night();
    scene.deliver(&bundle).is(5, "refused").says("AGENTS.md");
    scene.deliver_with(&bundle, &["--allow-path", "*"]).is(5, "refused");
    let made = scene.deliver_with(&bundle, &["--allow-path", "AGENTS.md"]).is(0, "created");
    scene.is_in_order(&made.ran.all());
    let tidy = TIDY.replace("s/wrong/right/", "s/wrong/right/; mkdir -p .github; echo x > .github/x");
    let scene = Scene::with(&tidy, &[]);
    scene.deliver_with(&scene.night(), &["--allow-path", ".github/x"]).is(5, "refused").says(".github/x");
}

#[test]
fn a_secret_is_neither_delivered_nor_kept() {
    let tidy = TIDY.replace("s/wrong/right/", "s/wrong/right/; echo hunter2hunter2 > src/key");
    let scene = Scene::with(&tidy, &[]);
    let bundle = scene.night();
    scene.hub.begin(None);
    let project = scene.job(&bundle).env("DEPLOY_SECRET", "hunter2hunter2");
    let refused = deliver(project, &[]).is(5, "refused").keeps_nothing();
    assert!(!refused.ran.all().contains("hunter2"), "{}", refused.ran.all());
    assert_eq!(scene.hub.writes(), [""; 0]);
    assert!(!scene.bare.refs().contains_key(BRANCH_REF));
}

#[test]
fn links_and_repositories_inside_are_refused() {
    for makes in ["ln -s ../../../etc/passwd src/out", "ln -s /etc/passwd src/out"] {
        let scene = Scene::with(&TIDY.replace("s/wrong/right/", &format!("s/wrong/right/; {makes}")), &[]);
        let bundle = scene.night();
        scene.hub.begin(None);
        scene.deliver(&bundle).is(5, "refused").says("src/out");
        assert_eq!(scene.hub.writes(), [""; 0]);
    }
    refuses_tree("160000 commit", "module");
}

/// Puts one more entry into the tree of a bundle, whose journal lies as well.
fn with_entry(scene: &Scene, bundle: &[u8], kind: &str, name: &str) -> Vec<u8> {
    let bare: &Bare = &scene.bare;
    let mut parts = Parts::of(bundle);
    let (base, old) = (text(&parts, "base"), text(&parts, "tree"));
    let id = if kind.ends_with("commit") {
        base.clone()
    } else {
        bare.feed(&["hash-object", "-w", "--stdin"], &[], b"../../evil").unwrap()
    };
    let listed = bare.git(&["ls-tree", "-z", &base]);
    let tree = bare
        .feed(&["mktree", "-z", "--missing"], &[], format!("{listed}{kind} {id}\t{name}\0").as_bytes())
        .unwrap();
    let commit = bare.git(&["commit-tree", &tree, "-p", &base, "-m", "The working tree of a run"]);
    let pack = std::process::Command::new("sh")
        .args(["-c", "git rev-list --objects \"$1\" | cut -d' ' -f1 | git pack-objects --stdout -q", "sh"])
        .arg(&commit)
        .current_dir(&bare.path)
        .output()
        .unwrap()
        .stdout;
    let header = format!("# v2 git bundle\n-{base} where the run began\n{commit} refs/ll-loop/tree\n\n");
    *parts.file("tree.bundle") = [header.into_bytes(), pack].concat();
    for name in ["events.jsonl", "state.json"] {
        let file = parts.file(name);
        *file = String::from_utf8(file.clone()).unwrap().replace(&old, &tree).into_bytes();
    }
    let saved = &mut parts.manifest["tree"];
    saved["commit"] = commit.into();
    saved["tree"] = tree.into();
    saved["index"] = serde_json::Value::Null;
    parts.sealed()
}

fn text(parts: &Parts, key: &str) -> String {
    parts.manifest["tree"][key].as_str().unwrap().to_owned()
}

/// Checks that a bundle with one more entry is not delivered, and that nothing is written.
#[track_caller]
fn refuses_tree(kind: &str, name: &str) {
    let scene = Scene::new();
    let bundle = with_entry(&scene, &scene.night(), kind, name);
    let before = scene.bare.refs();
    scene.hub.begin(None);
    let ended = scene.deliver(&bundle);
    let said = ended.ran.all();
    assert!(matches!(ended.ran.code, Some(2 | 5)), "{:?} {kind} {name:?}: {said}", ended.ran.code);
    assert!(!said.contains('\u{1b}') && !said.contains("panicked") && !said.contains("hint:"), "{said}");
    assert_eq!((scene.hub.writes(), scene.bare.refs()), (vec![], before), "{said}");
    assert!(!ended.project.at("../evil").exists());
}

#[test]
fn no_name_of_a_tree_leads_out_of_the_repository() {
    for name in [".git", ".GIT", "git~1", "..", ".", "a\nb", "x\u{1b}[2J", ".gitmodules", ".g\u{200c}it"] {
        refuses_tree("100644 blob", name);
    }
    refuses_tree("120000 blob", "out");
}

#[test]
fn a_run_that_verified_nothing_or_was_somewhere_else_is_refused() {
    let scene = Scene::new();
    let elsewhere = scene.night_with(&[], |project| project.env("GITHUB_REPOSITORY", "evil/project"));
    let unverified = scene.night_with(&["--max-iterations", "1"], |project| project);
    let before = scene.bare.refs();
    scene.hub.begin(None);
    scene.deliver(&elsewhere).is(5, "refused").says("evil/project");
    scene.deliver(&unverified).is(5, "refused");
    assert_eq!((scene.hub.writes(), scene.bare.refs()), (vec![], before));
    let garbage = scene.deliver(b"PK\x03\x04 not a zip");
    assert_eq!(garbage.ran.code, Some(2), "{}", garbage.ran.all());
}

#[test]
fn a_base_that_went_elsewhere_is_refused() {
    // Forced: the commit where the run began is in no history any more.
    let scene = Scene::new();
    let bundle = scene.night();
    scene.bare.git(&["update-ref", "-d", "refs/heads/main"]);
    scene.bare.commits("main", &[("other", Some("history\n"))], "another beginning");
    scene.hub.begin(None);
    scene.deliver(&bundle).is(5, "refused").says("main").keeps_the_patch();
    assert_eq!(scene.hub.writes(), [""; 0]);
    // Another branch, in whose history it is not either.
    let scene = Scene::new();
    scene.bare.git(&["update-ref", "refs/heads/release", "main"]);
    scene.bare.commits("main", &[("new", Some("new\n"))], "newer");
    let bundle = scene.night();
    scene.deliver_with(&bundle, &["--base", "release"]).is(5, "refused").says("release").keeps_the_patch();
    // Renamed, or deleted.
    scene.bare.git(&["update-ref", "refs/heads/trunk", "main"]);
    let project = scene.job(&bundle);
    scene.bare.git(&["update-ref", "-d", "refs/heads/main"]);
    let gone = deliver(project, &[]);
    assert!(matches!(gone.ran.code, Some(4 | 5)), "{}", gone.ran.all());
    gone.says("main").keeps_the_patch();
    assert!(scene.pulls().is_empty());
}

#[test]
fn a_branch_that_is_protected_or_in_the_way_is_named() {
    for rule in ["refs/heads/ll-loop/*", "refs/heads/ll-loop-tmp/*", "refs/heads/*"] {
        let scene = Scene::new();
        let bundle = scene.night();
        scene.hub.set(|state| state.protected.insert(rule.to_owned()));
        let before = scene.bare.refs();
        scene.deliver(&bundle).is(4, "").says("ll-loop").keeps_the_patch();
        assert_eq!(scene.bare.refs(), before, "{rule}");
    }
    for in_the_way in ["ll-loop", "ll-loop/tidy", "ll-loop/tidy/main/x"] {
        let scene = Scene::new();
        let bundle = scene.night();
        scene.bare.git(&["update-ref", &format!("refs/heads/{in_the_way}"), "main"]);
        let before = scene.bare.refs();
        scene.deliver(&bundle).is(4, "").says(in_the_way).keeps_the_patch();
        assert_eq!(scene.bare.refs(), before, "{in_the_way}");
    }
    // That the base is protected is what a pull request is for.
    let scene = Scene::new();
    scene.hub.admit(TOKEN, Token::of(Owner::App));
    scene.hub.set(|state| state.protected.insert("refs/heads/main".to_owned()));
    scene.deliver(&scene.night()).is(0, "created");
}
