//! Loops made of several files, and what the seed documents show, run with tools that pretend.

use crate::common::Project;

const LIBRARY: &str = "\
fragments:
  say:
    action: 'echo ${param.what:shell} >> said'
    parameters: {what: {type: string, required: true}}
";

#[test]
fn a_loop_of_several_files_runs() {
    let project = Project::with_loop(
        "name: main\nfrom: lib/base\nstates:\n  a: {fragment: say, with: {what: \"it's ${context.who}\"}, next: done}\n",
    )
    .file(".loops/lib/base.yaml", "initial: a\nimport: [say.yaml]\ncontext: {who: me}\nstates: {done: {terminal: true}}\n")
    .file(".loops/lib/say.yaml", LIBRARY);
    drop(project.run(&["run", "main"]).code(0));
    assert_eq!(project.read("said"), "it's me\n");
    let first = project.events()[0]["definition_sha256"].clone();
    project.write(".loops/lib/say.yaml", &format!("{LIBRARY}# changed\n"));
    let json = project.run(&["run", "main", "--context", "who=you"]).code(0);
    drop(json);
    let digests: Vec<_> = project
        .run_files(".events.jsonl")
        .iter()
        .map(|path| crate::common::events(path)[0]["definition_sha256"].clone())
        .collect();
    assert_eq!(digests.len(), 2);
    assert!(digests.contains(&first));
    assert_ne!(digests[0], digests[1], "the digest covers every file");
}

#[test]
fn findings_name_the_file_they_are_in() {
    let project = Project::with_loop("name: main\nfrom: base\n").file(
        ".loops/base.yaml",
        "initial: a\nstates:\n  a: {action: x, nxt: done}\n  done: {terminal: true}\n",
    );
    let ran = project.run(&["validate", "main", "--format", "json"]).code(2);
    drop(ran.says("\"file\":\".loops/base.yaml\",\"line\":3,\"column\":18"));
    drop(project.run(&["validate", "main"]).code(2).says("--> .loops/base.yaml:3:18"));
    let gone = Project::with_loop("name: main\nfrom: base\n");
    drop(gone.run(&["run", "main"]).code(2).says("there is no `.loops/base`"));
}

#[test]
fn parents_are_found_by_name_from_anywhere() {
    let project = Project::new()
        .file(
            ".loops/base.yml",
            "initial: a\nstates:\n  a: {action: touch ran, next: done}\n  done: {terminal: true}\n",
        )
        .file("deep/one.yaml", "name: one\nfrom: base\n");
    drop(project.run(&["run", "deep/one.yaml"]).code(0));
    assert!(project.exists("ran"));
}

/// Every key that loads without effect, with a value as the predecessor takes it.
const COMPATIBLE: &[&str] = &[
    "targets: []",
    "host_guard: {enabled: true}",
    "prompt_size_guard: {warn_chars: 5}",
    "pruning_profile: {enabled: true}",
    "session_mode: fresh",
    "effort: low",
    "singleton: true",
    "artifact_versioning: true",
    "meta_self_eval_ok: true",
    "throttle: {normal_max: 3}",
    "on_throttle_hard: done",
    "max_rate_limit_retries: 3",
    "on_rate_limit_exhausted: done",
    "rate_limit_backoff_base_seconds: 30",
    "rate_limit_max_wait_seconds: 60",
    "rate_limit_long_wait_ladder: [1, 2]",
    "request_path: cli",
    "cost_ceiling: {cost_warn_at: 1}",
    "circuit: {repeated_failure: {window: 3, on_repeated_failure: abort}}",
    "config: {handoff_threshold: 40, automation: {max_continuations: 3}}",
];

#[test]
fn what_the_predecessor_knew_loads_with_one_notice() {
    let rest = "name: main\ndescription: d\ninitial: a\nstates:\n  a: {action: 'true', on_yes: done, on_no: bad}\n  bad: {terminal: true, outcome: failure, description: d}\n  done: {terminal: true}\n";
    for key in COMPATIBLE {
        let project = Project::with_loop(&format!("{key}\n{rest}"));
        let ran = project.run(&["validate", "main", "--strict", "--format", "json"]).code(0);
        assert_eq!(ran.stdout.lines().count(), 1, "{key}: {}", ran.all());
        assert!(ran.stdout.contains("\"severity\":\"note\""), "{key}: {}", ran.all());
    }
    let flow = "name: main\ndescription: d\nflow: ['a?done:b', b, done]\nstate_defs: {a: {action: 'true'}, b: {action: 'true'}}\n";
    let ran = Project::with_loop(flow).run(&["validate", "main", "--format", "json"]).code(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.all());
}
