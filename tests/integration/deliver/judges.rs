//! What a fix has changed of that by which it is judged: people are told, and what nothing confirms is not delivered.

use super::scene::{BRANCH, Scene};

/// A loop whose check is a script of the repository, and whose fix is this.
fn scene(fix: &str, check: &str, more: &str) -> Scene {
    let tidy = format!(
        "name: tidy\ninitial: check\nmax_iterations: 5\n{more}states:\n  check: {{action: sh check.sh{check}, on_yes: done, on_no: fix}}\n  fix:\n    action: |\n      {fix}\n    next: check\n  done: {{terminal: true}}\n"
    );
    Scene::with(&tidy, &[("check.sh", "! grep -rq wrong src\n")])
}

const MENDS: &str = "sed -i s/wrong/right/ src/a.txt";
const WEAKENS: &str = "echo 'exit 0' > check.sh";

#[test]
fn judges_that_the_commit_confirms_are_shown_in_a_draft() {
    let scene = scene(&format!("{MENDS}; {WEAKENS}"), ", check: true", "");
    let made = scene.deliver(&scene.night()).is(0, "created").says("check.sh (edited");
    scene.is_in_order(&made.ran.all());
    let pull = &scene.pulls()[0];
    assert!(pull.is_draft && pull.title.starts_with("To review: "), "{}", pull.title);
    assert!(
        pull.body.starts_with("> [!WARNING]\n> **The run changed what its checks are judged by."),
        "{}",
        pull.body
    );
    assert!(pull.body.contains("> - `check.sh`: edited"), "{}", pull.body);
    scene.deliver(&scene.night()).is(0, "unchanged");
    // A branch and a patch know no drafts: their message says it.
    scene.reset();
    scene
        .deliver_with(&scene.night(), &["--to", "branch"])
        .is(0, "created")
        .says("changed what its checks are judged by");
    let message = scene.bare.git(&["log", "-1", "--format=%B", BRANCH]);
    assert!(
        message.contains("changed what its checks are judged by") && message.contains("check.sh"),
        "{message}"
    );
    assert!(message.contains("\nLL-Patch: "), "{message}");
    scene.deliver_with(&scene.night(), &["--to", "patch"]).is(0, "created").says("check.sh (edited");
}

#[test]
fn judges_that_nothing_confirms_are_delivered_only_where_somebody_wants_them() {
    // The check is none that may be made again.
    let scene = scene(&format!("{MENDS}; {WEAKENS}"), "", "");
    let bundle = scene.night();
    scene.deliver(&bundle).is(5, "refused").says("--allow-judges").says("check.sh").keeps_the_patch();
    assert!(scene.pulls().is_empty());
    scene.deliver_with(&bundle, &["--allow-judges"]).is(0, "created");
    let pull = &scene.pulls()[0];
    assert!(
        pull.is_draft && pull.body.contains("nothing confirms") && pull.body.contains("`check.sh`"),
        "{}",
        pull.body
    );
    // Strictly, such a run is a failure, and its fix the same.
    let bundle = scene.night_with(&["--strict"], |project| project);
    scene.deliver(&bundle).is(5, "refused").says("--allow-judges");
    scene.deliver_with(&bundle, &["--allow-judges"]).is(0, "unchanged");
    scene.reset();
    scene.deliver_with(&bundle, &["--allow-judges", "--to", "branch"]).is(0, "created");
    let message = scene.bare.git(&["log", "-1", "--format=%B", BRANCH]);
    assert!(message.contains("nothing confirms") && message.contains("check.sh"), "{message}");
}

#[test]
fn what_the_check_of_the_commit_refuses_is_not_delivered_for_its_judges() {
    let scene = scene(WEAKENS, ", check: true", "");
    let bundle = scene.night();
    for more in [&[][..], &["--allow-judges"]] {
        scene.deliver_with(&bundle, more).is(5, "refused").says("the run verified no fix");
    }
    assert!(scene.pulls().is_empty());
    scene.deliver_with(&bundle, &["--unverified"]).is(0, "created");
    let pull = &scene.pulls()[0];
    assert!(pull.is_draft && pull.body.contains("`check.sh`"), "{}", pull.body);
}

#[test]
fn a_loop_that_may_change_its_judges_is_delivered_ready_and_says_so() {
    let scene = scene(&format!("{MENDS}; {WEAKENS}"), "", "judges: {may: change}\n");
    scene.deliver(&scene.night()).is(0, "created");
    let pull = &scene.pulls()[0];
    assert!(
        !pull.is_draft && pull.body.contains("The loop may change what its checks are judged by"),
        "{}",
        pull.body
    );
    assert!(pull.body.contains("`check.sh`"), "{}", pull.body);
}

#[test]
fn suppressions_are_named_with_their_lines() {
    let fix = "echo 'import os  # noqa' >> src/b.py; sed -i s/wrong/right/ src/a.txt";
    let scene = scene(fix, ", check: true", "");
    let bundle = scene.night();
    scene.deliver(&bundle).is(5, "refused").says("src/b.py:1");
    scene.deliver_with(&bundle, &["--allow-judges"]).is(0, "created");
    let pull = &scene.pulls()[0];
    assert!(pull.is_draft && pull.body.contains("keep checks from looking"), "{}", pull.body);
    assert!(pull.body.contains("`src/b.py:1`"), "{}", pull.body);
}

#[test]
fn what_was_spoilt_after_its_check_is_not_delivered() {
    let tidy = "name: tidy\ninitial: check\nmax_iterations: 5\nstates:
  check: {action: '! grep -rq wrong src', on_yes: last, on_no: fix}
  fix: {action: 'grep -rl wrong src | xargs sed -i s/wrong/right/', next: check}
  last: {action: 'echo wrong >> src/a.txt', next: done}
  done: {terminal: true}\n";
    let scene = Scene::with(tidy, &[]);
    scene.deliver(&scene.night()).is(5, "refused").says("passed on another tree").keeps_the_patch();
    assert!(scene.pulls().is_empty());
    scene.deliver_with(&scene.night(), &["--allow-judges"]).is(5, "refused");
    scene.deliver_with(&scene.night(), &["--unverified"]).is(0, "created");
    assert!(scene.pulls()[0].is_draft);
}
