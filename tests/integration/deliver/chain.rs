//! Night after night: what the first delivery makes, the later ones keep, and people stand above all of them.

use super::model::{Owner, Stands, TOKEN, Token};
use super::scene::{BRANCH, BRANCH_REF, DELIVERED, Scene, wrong};

#[test]
fn a_fix_becomes_one_pull_request_which_the_next_night_leaves_alone_until_it_is_merged() {
    let scene = Scene::new();
    let first = scene.night();
    let made = scene.deliver(&first).is(0, "created");
    let pulls = scene.pulls();
    assert_eq!((pulls.len(), pulls[0].stands, pulls[0].is_draft), (1, Stands::Open, false));
    assert_eq!((pulls[0].head.as_str(), pulls[0].base.as_str()), (BRANCH, "main"));
    assert_eq!(made.output("pr-url"), format!("{}/octo/project/pull/1", scene.hub.web.url()));
    assert_eq!(made.output("commit"), scene.bare.refs()[BRANCH_REF]);
    assert_eq!((made.output("signed"), made.output("checks")), ("true", "run"), "{}", made.ran.all());
    assert!(made.ran.all().contains("sha256:"), "the digest of the bundle: {}", made.ran.all());
    scene.is_in_order(&made.ran.all());
    assert_eq!(scene.bare.file(BRANCH, "src/a.txt"), Some(wrong("right").trim_end().to_owned()));
    let message = scene.bare.git(&["log", "-1", "--format=%B", BRANCH]);
    for trailer in ["LL-Loop: tidy@", "LL-Run: ", "LL-Patch: "] {
        assert!(message.lines().any(|line| line.starts_with(trailer)), "{message}");
    }

    // The same bundle again, and the same fix by another run.
    for bundle in [&first, &scene.night()] {
        scene.hub.begin(None);
        let again = scene.deliver(bundle).is(0, "unchanged");
        assert_eq!(scene.hub.writes(), [""; 0], "{}", again.ran.all());
        assert_eq!(again.output("pr-url"), made.output("pr-url"));
    }

    scene.hub.merge(1);
    scene.hub.begin(None);
    scene.deliver(&first).is(0, "unchanged");
    let clean = scene.night();
    scene.deliver(&clean).is(0, "unchanged");
    assert_eq!(scene.hub.writes(), [""; 0]);
    assert_eq!(scene.pulls().len(), 1);
}

#[test]
fn what_a_person_committed_is_never_touched() {
    let scene = Scene::new();
    let bundle = scene.night();
    scene.deliver(&bundle).is(0, "created");
    let theirs = scene.bare.commits(BRANCH, &[("src/b.txt", Some("mine\n"))], "a person's");
    for bundle in [&bundle, &scene.night()] {
        scene.hub.begin(None);
        scene.deliver(bundle).is(5, "refused").says(BRANCH).keeps_the_patch();
        assert_eq!(scene.hub.writes(), [""; 0]);
    }
    assert_eq!(scene.bare.refs()[BRANCH_REF], theirs);
    // A merge of the base into it is a person's work as well.
    let scene = Scene::new();
    let bundle = scene.night();
    scene.deliver(&bundle).is(0, "created");
    scene.bare.commits("main", &[("README.md", Some("new\n"))], "base moves");
    let tree = scene.bare.git(&["merge-tree", "--write-tree", "main", BRANCH]);
    let merged = scene.bare.git(&["commit-tree", &tree, "-p", BRANCH, "-p", "main", "-m", "Update branch"]);
    scene.bare.git(&["update-ref", BRANCH_REF, &merged]);
    scene.deliver(&bundle).is(5, "refused").keeps_the_patch();
    assert_eq!(scene.bare.refs()[BRANCH_REF], merged);
    // Deleting the branch hands it back, and the pull request is a new one.
    scene.bare.git(&["update-ref", "-d", BRANCH_REF]);
    assert_eq!(scene.pulls()[0].stands, Stands::Closed);
}

#[test]
fn a_branch_that_was_there_before_is_a_persons() {
    let scene = Scene::new();
    let bundle = scene.night();
    let theirs = scene.bare.commits(BRANCH, &[("x", Some("x"))], "theirs");
    scene.deliver(&bundle).is(5, "refused").keeps_the_patch();
    assert_eq!(scene.bare.refs()[BRANCH_REF], theirs);
}

#[test]
fn a_branch_that_is_gone_is_handed_back() {
    let scene = Scene::new();
    scene.deliver(&scene.night()).is(0, "created");
    scene.hub.merge(1);
    scene.bare.git(&["update-ref", "-d", BRANCH_REF]);
    // Another word, another fix.
    scene.bare.commits("main", &[("src/b.txt", Some("wrong\n"))], "wrong again");
    let made = scene.deliver(&scene.night()).is(0, "created");
    scene.is_in_order(&made.ran.all());
    let pulls = scene.pulls();
    assert_eq!((pulls.len(), pulls[1].stands), (2, Stands::Open));
}

#[test]
fn a_base_that_moved_gets_the_fix_anew() {
    let scene = Scene::new();
    let bundle = scene.night();
    scene.deliver(&bundle).is(0, "created");
    let changed = wrong("wrong").replacen("line 1\n", "line one\n", 1);
    scene.bare.commits("main", &[("src/a.txt", Some(&changed)), ("new.txt", Some("new\n"))], "base moves");
    scene.hub.begin(None);
    let moved = scene.deliver(&bundle).is(0, "updated");
    scene.is_in_order(&moved.ran.all());
    assert_eq!(scene.pulls().len(), 1);
    let expected = changed.replace("wrong", "right");
    assert_eq!(scene.bare.file(BRANCH, "src/a.txt").unwrap(), expected.trim_end());
    assert_eq!(scene.bare.file(BRANCH, "new.txt").unwrap(), "new");
    scene.hub.begin(None);
    scene.deliver(&bundle).is(0, "unchanged");
    assert_eq!(scene.hub.writes(), [""; 0]);
}

#[test]
fn a_conflict_is_refused_with_its_files() {
    let scene = Scene::new();
    let bundle = scene.night();
    let before = scene.bare.commits("main", &[("src/a.txt", Some(&wrong("otherwise")))], "base moves");
    scene.deliver(&bundle).is(5, "refused").says("src/a.txt").keeps_the_patch();
    assert_eq!(scene.bare.refs().into_iter().collect::<Vec<_>>(), [("refs/heads/main".to_owned(), before)]);
}

#[test]
fn what_a_person_closed_is_not_opened_again_until_the_fix_is_another() {
    let scene = Scene::new();
    let bundle = scene.night();
    scene.deliver(&bundle).is(0, "created");
    scene.hub.set(|state| state.pulls[0].stands = Stands::Closed);
    scene.hub.begin(None);
    let again = scene.deliver(&bundle).is(0, "unchanged");
    assert_eq!(again.output("pr-url"), format!("{}/octo/project/pull/1", scene.hub.web.url()));
    assert_eq!(scene.hub.writes(), [""; 0]);
    scene.bare.commits("main", &[("README.md", Some("moved\n"))], "base moves");
    scene.deliver(&bundle).is(0, "unchanged");
    assert_eq!(scene.hub.writes(), [""; 0], "the fix is the same, wherever the base is");
    scene.bare.commits("main", &[("src/b.txt", Some("wrong\n"))], "wrong again");
    scene.deliver(&scene.night()).is(0, "created");
    assert_eq!(scene.pulls().len(), 2);
}

#[test]
fn another_fix_goes_to_the_same_pull_request() {
    let scene = Scene::new();
    scene.deliver(&scene.night()).is(0, "created");
    scene.bare.commits("main", &[("src/b.txt", Some("wrong\n"))], "wrong again");
    let made = scene.deliver(&scene.night()).is(0, "updated");
    scene.is_in_order(&made.ran.all());
    assert_eq!(scene.pulls().len(), 1);
    assert_eq!(scene.bare.file(BRANCH, "src/b.txt").unwrap(), "right");
}

#[test]
fn what_nothing_verified_is_a_draft_that_a_verified_fix_makes_ready() {
    let scene = Scene::new();
    let bundle = scene.night_with(&["--max-iterations", "1"], |project| project);
    scene.deliver(&bundle).is(5, "refused").keeps_the_patch();
    assert!(scene.pulls().is_empty());
    // A patch knows no drafts.
    scene.deliver_with(&bundle, &["--unverified", "--to", "patch"]).is(5, "refused");
    let made = scene.deliver_with(&bundle, &["--unverified"]).is(0, "created");
    scene.is_in_order(&made.ran.all());
    assert!(scene.pulls()[0].is_draft);
    let body = scene.pulls()[0].body.clone();
    scene.deliver(&scene.night()).is(0, "updated");
    assert!(!scene.pulls()[0].is_draft && scene.pulls()[0].body != body);
    assert_eq!(scene.pulls().len(), 1);
    let scene = Scene::new();
    scene.hub.set(|state| state.has_drafts = false);
    let bundle = scene.night_with(&["--max-iterations", "1"], |project| project);
    let before = scene.bare.refs();
    scene.deliver_with(&bundle, &["--unverified"]).is(5, "refused").keeps_the_patch();
    assert!(scene.pulls().is_empty());
    assert_eq!(scene.bare.refs(), before, "nothing but the draft would have said that it is not verified");
}

#[test]
fn the_job_s_own_token_starts_no_checks_and_people_are_told() {
    let scene = Scene::new();
    scene.hub.admit(TOKEN, Token::of(Owner::Actions));
    let made = scene.deliver(&scene.night()).is(0, "created");
    assert_eq!(made.output("checks"), "approval");
    scene.is_in_order(&made.ran.all());
}

#[test]
fn a_rehearsal_writes_nothing() {
    let scene = Scene::new();
    let bundle = scene.night();
    let before = scene.bare.refs();
    scene.hub.begin(None);
    scene.deliver_with(&bundle, &["--dry-run"]).is(0, "created");
    assert_eq!((scene.hub.writes(), scene.bare.refs()), (vec![], before));
}

#[test]
fn a_branch_alone_needs_no_pull_request() {
    let scene = Scene::new();
    let bundle = scene.night();
    scene.hub.admit(TOKEN, Token::of(Owner::App).may("pull_requests", None));
    let made = scene.deliver_with(&bundle, &["--to", "branch"]).is(0, "created");
    scene.is_in_order(&made.ran.all());
    scene.hub.begin(None);
    scene.deliver_with(&bundle, &["--to", "branch"]).is(0, "unchanged");
    assert_eq!(scene.hub.writes(), [""; 0]);
    assert!(scene.pulls().is_empty());
}

#[test]
fn executables_and_links_are_delivered_as_what_they_are() {
    let tidy = super::scene::TIDY.replace(
        "xargs sed -i s/wrong/right/",
        "xargs sed -i s/wrong/right/; chmod +x src/a.txt; ln -s a.txt src/link",
    );
    let scene = Scene::with(&tidy, &[("src/gone.txt", "wrong\n")]);
    let made = scene.deliver(&scene.night()).is(0, "created");
    scene.is_in_order(&made.ran.all());
    let listed = scene.bare.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", BRANCH, "--", "src/"]);
    assert_eq!(listed, "100755 src/a.txt\n100644 src/gone.txt\n120000 src/link");
    assert_eq!(made.output("signed"), "true");
    // A person's token cannot sign these.
    let scene = Scene::with(&tidy, &[]);
    scene.hub.admit(TOKEN, Token::of(Owner::Person));
    let bundle = scene.night();
    let before = scene.bare.refs();
    scene.deliver_with(&bundle, &["--require-signed"]).is(5, "refused").keeps_the_patch();
    assert_eq!(scene.bare.refs(), before);
    let made = scene.deliver(&bundle).is(0, "created");
    assert_eq!(made.output("signed"), "false");
    assert!(scene.bare.refs().contains_key(DELIVERED));
}

#[test]
fn a_server_that_signs_nothing_is_refused_where_signatures_are_required() {
    let scene = Scene::new();
    scene.hub.set(|state| state.signs = false);
    let bundle = scene.night();
    let before = scene.bare.refs();
    scene.deliver_with(&bundle, &["--require-signed"]).is(5, "refused").keeps_the_patch();
    assert_eq!(scene.bare.refs(), before, "no temporary branch stays");
    let made = scene.deliver(&bundle).is(0, "created");
    assert_eq!(made.output("signed"), "false");
}

#[test]
fn what_people_did_to_the_pull_request_is_respected() {
    // A conversation that is locked is still told.
    let scene = Scene::new();
    let bundle = scene.night();
    scene.deliver(&bundle).is(0, "created");
    scene.hub.set(|state| state.pulls[0].is_locked = true);
    scene.bare.commits("main", &[("src/b.txt", Some("wrong\n"))], "wrong again");
    let second = scene.night();
    scene.deliver(&second).is(0, "updated");
    // A draft that a person made stays one.
    scene.hub.set(|state| state.pulls[0].is_draft = true);
    scene.bare.commits("main", &[("src/c.txt", Some("wrong\n"))], "wrong again");
    scene.deliver(&scene.night()).is(0, "updated");
    assert!(scene.pulls()[0].is_draft);
    // What merges itself gets nothing that nobody has seen.
    scene.hub.set(|state| (state.pulls[0].is_draft, state.pulls[0].merges_itself) = (false, true));
    scene.bare.commits("main", &[("src/d.txt", Some("wrong\n"))], "wrong again");
    let before = scene.bare.refs();
    scene.deliver(&scene.night()).is(5, "refused").says("/pull/1").keeps_the_patch();
    assert_eq!(scene.bare.refs(), before);
}
