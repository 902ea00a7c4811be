//! `show`, `schema`, `list`, `version`.

use insta::assert_snapshot;

use crate::common::{CHECK_FIX, Project};

#[test]
fn a_loop_is_drawn_in_three_ways() {
    let project = Project::with_loop(CHECK_FIX);
    assert_snapshot!(project.run(&["show", "main"]).code(0).stdout, @"
    main  (.loops/main.yaml)
    fixes a flag
    at most 20 iterations

    ▶ check  echo looking; test -f flag
        ├─ no → fix
        └─ yes → done
      fix  touch flag
        └─ next → check
      done  ■ success
    ");
    assert_snapshot!(project.run(&["show", "main", "--format", "mermaid"]).code(0).stdout, @r#"
    stateDiagram-v2
        state "check" as s0
        state "fix" as s1
        state "done" as e0
        [*] --> s0
        s0 --> s1: no
        s0 --> e0: yes
        s1 --> s0: next
        e0 --> [*]
    "#);
    assert_snapshot!(project.run(&["show", "main", "--format", "dot"]).code(0).stdout, @r#"
    digraph loop {
        rankdir=LR
        node [shape=box, style=rounded]
        s0 [label="check"]
        s1 [label="fix"]
        e0 [label="done", shape=doublecircle]
        start [shape=point]
        start -> s0
        s0 -> s1 [label="no"]
        s0 -> e0 [label="yes"]
        s1 -> s0 [label="next"]
    }
    "#);
}

#[test]
fn the_way_of_a_run_is_drawn_into_its_loop() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let drawn =
        |format: &str| project.run(&["show", "main", "--run", "main", "--format", format]).code(0).stdout;
    assert_snapshot!(drawn("text"), @"
    main  (.loops/main.yaml)
    fixes a flag
    at most 20 iterations

    ▶ check  echo looking; test -f flag  [2 visits, 1 failed]
        ├─ no → fix  ×1
        └─ yes → done  ×1
      fix  touch flag  [1 visit]
        └─ next → check  ×1
      done  ■ success  [✓ success]
    ");
    assert_snapshot!(drawn("mermaid"), @r#"
    stateDiagram-v2
        state "check (2 visits, 1 failed)" as s0
        state "fix (1 visit)" as s1
        state "done (✓ success)" as e0
        [*] --> s0
        s0 --> s1: no ×1
        s0 --> e0: yes ×1
        s1 --> s0: next ×1
        e0 --> [*]
        classDef visited stroke-width:3px
        class s0,s1,e0 visited
    "#);
    assert!(drawn("dot").contains(r#"s0 -> s1 [label="no ×1", penwidth=2]"#), "{}", drawn("dot"));
    let svg = drawn("svg");
    assert!(svg.starts_with("<svg ") && svg.contains("✓ success") && svg.contains("no ×1"), "{svg}");
    assert!(!project.run(&["show", "main", "--format", "svg"]).code(0).stdout.contains("×"));
}

#[test]
fn only_a_run_of_the_loop_is_drawn_into_it() {
    let project = Project::with_loop(CHECK_FIX);
    project.write(".loops/other.yaml", "name: other\ninitial: done\nstates: {done: {terminal: true}}\n");
    project.run(&["run", "main"]).code(0);
    let refused = project.run(&["show", "other", "--run", "main"]).code(2);
    assert!(refused.stderr.contains("is a run of `main`, not of `other`"), "{}", refused.stderr);
    project.run(&["show", "main", "--run", "nobody"]).code(2);
    project
        .write(".loops/main.yaml", &CHECK_FIX.replace("fix:", "mend:").replace("on_no: fix", "on_no: mend"));
    let changed = project.run(&["show", "main", "--run", "main"]).code(0);
    assert!(changed.stderr.contains("the loop has changed since that run"), "{}", changed.stderr);
    assert!(
        changed.stdout.contains("mend") && changed.stdout.contains("fix  [1 visit]"),
        "{}",
        changed.stdout
    );
}

#[test]
fn the_schema_accepts_the_loops_of_this_repository() {
    let schema: serde_json::Value =
        serde_json::from_str(&Project::new().run(&["schema"]).code(0).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let loops = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".loops");
    let mut count = 0;
    for path in std::fs::read_dir(loops).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let value: serde_json::Value =
                serde_yaml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", path.display());
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn loops_are_listed_and_the_version_is_said() {
    let project = Project::with_loop(CHECK_FIX).file(".loops/other.yml", CHECK_FIX);
    assert_eq!(
        project.run(&["list"]).code(0).stdout,
        "main   -  -  fixes a flag\nother  -  -  fixes a flag\n"
    );
    assert_eq!(project.run(&["version"]).code(0).stdout, format!("ll-loop {}\n", env!("CARGO_PKG_VERSION")));
}

/// `LL_UPDATE_SCHEMA=1 cargo test` writes the files anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of this test alone")]
fn the_published_schemas_are_those_of_this_version() {
    for (file, arguments) in [
        ("loop.schema.json", &["schema"][..]),
        ("test.schema.json", &["schema", "--tests"]),
        ("policy.schema.json", &["schema", "--policy"]),
        ("verdict.schema.json", &["schema", "--verdict"]),
        ("verdict-policy.schema.json", &["schema", "--verdict-policy"]),
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(file);
        let schema = Project::new().run(arguments).code(0).stdout;
        if std::env::var_os("LL_UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == schema, "run the tests with LL_UPDATE_SCHEMA=1 and commit schema/{file}");
    }
}
