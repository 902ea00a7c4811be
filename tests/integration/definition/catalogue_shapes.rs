//! Loops in the shapes of little-loops' catalogue, in words of our own: each loads, is shown, and is ready to run.

use crate::common::{Project, git};

const ENDS: &str =
    "  done: {terminal: true}\n  failed: {terminal: true, outcome: failure, description: it failed}\n";

/// Files below `.loops`, each with what it shows: the letters are those of the ways in which loops rely on their runner.
const FILES: &[(&str, &str)] = &[
    // The run's own directory, undeclared and declared empty; the digest of the input; thresholds; design tokens.
    (
        "gathers.yaml",
        "name: gathers\ndescription: d\ncategory: data\nvisibility: public\ninput_key: input\nrequired_inputs: [input]\ncontext: {input: '', run_dir: '', design_tokens_context: '', quota: 3}\ninitial: read\nmax_steps: 20\ntimeout: 3600\non_handoff: spawn\nstates:\n  read: {action: 'cat \"${context.run_dir}list\" 2>/dev/null || echo none > \"${context.run_dir}list\"; echo ${context.input_hash:default=x} ${context.readiness_threshold} ${context.outcome_threshold} ${context.max_steps}', capture: seen, on_yes: done, on_no: failed, on_error: failed}\n",
    ),
    // Fragments of the libraries, with their own keys over them.
    (
        "checks.yaml",
        "name: checks\ndescription: d\nimport: [lib/common.yaml]\ninitial: tests\nstates:\n  tests: {fragment: shell_exit, action: 'true', on_yes: style, on_no: failed, on_error: failed}\n  style: {fragment: harness_exit, action: 'true', on_yes: still, on_no: failed, on_cannot_judge: failed, on_error: failed}\n  still: {fragment: diff_stall_gate, action: 'true', on_yes: count, on_no: failed, on_error: failed}\n  count: {fragment: retry_counter, with: {counter_key: tries, max_retries: 3}, on_yes: limited, on_no: failed, on_error: failed}\n  limited: {fragment: with_rate_limit_handling, action: 'true', on_rate_limit_exhausted: failed, on_yes: done, on_no: failed, on_error: failed}\n",
    ),
    // A loop of a directory, which inherits from one beside it and imports what is in the program.
    (
        "oracles/judge.yaml",
        "name: judge\ndescription: d\nvisibility: internal\nimport: [lib/common.yaml]\nparameters: {topic: {type: string, required: true, description: t}, run_dir: {type: path, required: true}}\ninitial: look\nstates:\n  look: {action: 'echo ${context.topic:shell} >> \"${context.run_dir}topics\"', capture: verdict, on_yes: done, on_no: failed, on_error: failed}\n",
    ),
    ("oracles/strict.yaml", "name: strict\ndescription: d\nfrom: judge\nmax_steps: 5\n"),
    (
        "asks.yaml",
        "name: asks\ndescription: d\ninitial: ask\nstates:\n  ask: {loop: oracles/judge, with: {topic: rust}, on_success: read, on_failure: failed, on_error: failed}\n  read: {action: 'echo ${captured.ask.verdict.output:shell} ${captured.ask.terminated_by} ${captured.ask.failure_terminal:default=no}', on_yes: strict, on_no: failed, on_error: failed}\n  strict: {loop: oracles/strict, with: {topic: rust}, on_yes: done, on_no: failed, on_error: failed}\n",
    ),
    // Values for a loop without parameters; a name that is known only then; a loop on a branch.
    (
        "plain.yaml",
        "name: plain\ndescription: d\ncontext: {topic: none}\ninitial: say\nstates:\n  say: {action: 'echo ${context.topic:shell}', on_yes: done, on_no: failed, on_error: failed}\n",
    ),
    (
        "hands-on.yaml",
        "name: hands-on\ndescription: d\ncontext: {which: plain, branch: ''}\ninitial: one\nstates:\n  one: {loop: plain, with: {topic: a, items: [1, 2]}, on_success: two, on_failure: failed, on_error: failed}\n  two: {loop: '${context.which}', context_passthrough: true, worktree: '${context.branch}', on_success: done, on_failure: failed, on_error: failed}\n",
    ),
    // Parents from the program.
    (
        "tunes.yaml",
        "name: tunes\ndescription: d\nfrom: lib/apo-shape-a\ncontext: {prompt_file: p.md}\ninitial: look\nstates:\n  look: {action: 'test -n ${context.prompt_file:shell} && test ${context.quality_threshold} = 90', on_yes: done, on_no: done}\n",
    ),
    // Numbers in quotes and made of others; a reference; histories.
    (
        "counts.yaml",
        "name: counts\ndescription: d\ncontext: {most: 3, best: 5}\ninitial: count\nstates:\n  count: {action: 'echo 2', evaluate: {type: output_numeric, operator: le, target: '3'}, on_yes: again, on_no: failed, on_error: failed}\n  again: {action: 'echo 2', evaluate: {type: output_numeric, operator: lt, target: '${context.most}'}, on_yes: nears, on_no: failed, on_error: failed}\n  nears: {action: 'echo 4', evaluate: {type: convergence, target: '4', tolerance: 0, direction: minimize, reference: '${context.best}'}, on_target: scores, on_progress: failed, on_stall: failed, on_error: failed}\n  scores: {action: 'true', evaluate: {type: score_stall, history_file: '${context.run_dir}.score_history', max_stall: 2}, on_yes: questions, on_no: failed, on_error: failed}\n  questions: {action: 'true', evaluate: {type: open_question_stall, max_stall: 2}, on_yes: done, on_no: failed, on_error: failed}\n",
    ),
    // Short forms, keys without effect, an artifact.
    (
        "flows.yaml",
        "name: flows\ndescription: d\nartifact_output: {from: out.md, to: out.md, on: [done]}\nartifact_mode: file\nartifact_versioning: true\npruning_profile: {enabled: false}\nhost_guard: {enabled: true}\nsingleton: false\nflow: [make, 'look?done:failed']\nstate_defs:\n  make: {action: 'echo x > \"${context.run_dir}out.md\"', missing_ok: true}\n  look: {action: 'test -e \"${context.run_dir}out.md\"', on_error: failed, throttle: {normal_max: 3}, throttle_hard_ok: true}\nstates:\n",
    ),
    // A person, and what has to be known first.
    (
        "asks-person.yaml",
        "name: asks-person\ndescription: d\ninitial: first\nstates:\n  first: {type: learning, learning: {targets: [the api], max_retries: 1}, on_yes: ask, on_blocked: ask, on_no: ask, on_error: ask}\n  ask: {action_type: human_approval, action: 'go on?', timeout: 5, on_yes: done, on_no: failed, on_timeout: failed}\n",
    ),
    // A judge that may abstain, and one that is unsure.
    (
        "judges.yaml",
        "name: judges\ndescription: d\nllm: {enabled: true, model: small}\ninitial: write\nstates:\n  write: {action: 'write the page', action_type: prompt, model_hint: coding, tools: [Read], on_yes: done, on_yes_uncertain: failed, on_no: failed, on_partial: failed, on_blocked: failed, on_cannot_judge: failed, on_error: failed}\n",
    ),
    // Termination by caps, and an action at the end.
    (
        "caps.yaml",
        "name: caps\ndescription: d\nmax_steps: 3\non_max_steps: told\ncircuit: {repeated_failure: {window: 3, on_repeated_failure: failed}}\ninitial: work\nstates:\n  work: {action: 'true', max_retries: 2, on_retry_exhausted: told, on_yes: work, on_no: failed, on_error: failed}\n  told: {action: 'echo capped', terminal: true}\n",
    ),
];

fn project() -> Project {
    FILES.iter().fold(Project::new(), |project, (path, text)| {
        project.file(
            &format!(".loops/{path}"),
            &format!("{text}{}", if path.ends_with("strict.yaml") { "" } else { ENDS }),
        )
    })
}

fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| path.trim_end_matches(".yaml"))
}

#[test]
fn every_shape_loads_is_shown_and_is_ready_to_run() {
    let project = project();
    let all = project.run(&["validate"]).code(0);
    assert!(!all.all().contains("error["), "{}", all.all());
    for name in names() {
        project.run(&["validate", name]).code(0);
        project.run(&["show", name]).code(0).says(name);
        let given: &[&str] = match name {
            "gathers" => &["hello"],
            "oracles/judge" | "oracles/strict" => &["--param", "topic=rust"],
            _ => &[],
        };
        project.run(&[&["run", name, "--dry-run"], given].concat()).code(0).says("would run");
    }
    assert!(!project.exists(".loops/.running"));
}

#[test]
fn every_shape_without_an_agent_runs() {
    for name in names().filter(|name| *name != "judges") {
        let project = project();
        git(&project, &["init", "-q"]);
        git(&project, &["add", "."]);
        git(&project, &["commit", "-qm", "x"]);
        let (given, code): (&[&str], i32) = match name {
            "gathers" => (&["hello"], 0),
            "oracles/judge" | "oracles/strict" => (&["--param", "topic=rust"], 0),
            // Nobody is there to answer.
            "asks-person" => (&[], 1),
            _ => (&[], 0),
        };
        project.run(&[&["run", name], given].concat()).code(code);
    }
}
