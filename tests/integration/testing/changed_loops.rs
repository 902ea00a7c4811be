//! Real runs, played on loops that were changed in every way that people change them: what is said of each is true.

use crate::common::Project;

const LOOP: (&str, &str) = (
    ".loops/tidy.yaml",
    "\
name: tidy
import: [lib/steps.yaml]
initial: measure
max_iterations: 6
parameters:
  wanted: { type: integer, default: 1 }
states:
  measure: { fragment: counted, on_yes: inner, on_no: lower }
  lower: { action: 'n=$(cat number); echo $((n - 1)) > number', next: measure }
  inner: { loop: inner, on_success: wait, on_failure: failed }
  wait: { action: 'echo \"CONTEXT_HANDOFF: later\"', on_yes: done, on_no: failed }
  done: { terminal: true }
  failed: { terminal: true, outcome: failure }
",
);

const LIBRARY: (&str, &str) = (
    ".loops/lib/steps.yaml",
    "\
fragments:
  counted:
    action: cat number
    evaluate: { type: output_numeric, operator: le, target: \"${context.wanted}\" }
",
);

const INNER: (&str, &str) = (
    ".loops/inner.yaml",
    "\
name: inner
initial: look
states:
  look: { action: test -e number, on_yes: done, on_no: failed }
  done: { terminal: true }
  failed: { terminal: true, outcome: failure }
",
);

/// A change of a file, and what is said of a run that was handed off in `wait` after two rounds.
struct ChangedLoop {
    file: (&'static str, &'static str),
    edits: &'static [(&'static str, &'static str)],
    said: &'static str,
    code: i32,
}

const CHANGES: [ChangedLoop; 12] = [
    ChangedLoop {
        file: LOOP,
        edits: &[("lower:", "shrink:"), ("on_no: lower", "on_no: shrink")],
        said: "parts at step 2, after `measure`: it came to `lower`, and comes to `shrink` now",
        code: 0,
    },
    ChangedLoop {
        file: LOOP,
        edits: &[("wait:", "rest:"), ("on_success: wait", "on_success: rest")],
        said: "could not be resumed: it stands in `wait`, which the loop `tidy` does not have any more",
        code: 1,
    },
    ChangedLoop {
        file: LOOP,
        edits: &[("on_success: wait", "on_success: done")],
        said: "parts at step 7, after `inner`: it came to `wait`, and comes to `done` now",
        code: 0,
    },
    ChangedLoop {
        file: LIBRARY,
        edits: &[("operator: le", "operator: lt")],
        said: "parts at step 6, after `measure`: it came to `inner`, and comes to `lower` now",
        code: 0,
    },
    ChangedLoop {
        file: LOOP,
        edits: &[
            ("on_no: lower", "on_no: note"),
            ("  lower:", "  note: { action: echo noted, next: lower }\n  lower:"),
        ],
        said: "parts at step 2, after `measure`: it came to `lower`, and comes to `note` now",
        code: 0,
    },
    ChangedLoop {
        file: LOOP,
        edits: &[("max_iterations: 6", "max_iterations: 2")],
        said: "parts at step 5, after `lower`: it came to `measure`, and comes to its end now",
        code: 0,
    },
    ChangedLoop {
        file: LIBRARY,
        edits: &[("\"${context.wanted}\"", "2")],
        said: "parts at step 4, after `measure`: it came to `lower`, and comes to `inner` now",
        code: 0,
    },
    ChangedLoop {
        file: LOOP,
        edits: &[("default: 1", "default: 2")],
        said: "parts at step 4, after `measure`: it came to `lower`, and comes to `inner` now",
        code: 0,
    },
    ChangedLoop {
        file: LOOP,
        edits: &[
            ("default: 1 }", "default: 1 }\n  unit: { type: string, default: lines }"),
            ("> number'", "> number; echo ${context.unit:shell}'"),
        ],
        said: "the same way",
        code: 0,
    },
    ChangedLoop {
        file: LOOP,
        edits: &[("default: 1 }", "default: 1 }\n  unit: { type: string, required: true }")],
        said: "could not be resumed: the input `unit` is required",
        code: 1,
    },
    ChangedLoop {
        file: INNER,
        edits: &[("on_yes: done", "on_yes: failed")],
        said: "parts at step 7, after `inner`: it came to `wait`, and comes to `failed` now",
        code: 0,
    },
    ChangedLoop {
        file: INNER,
        edits: &[
            ("on_yes: done", "on_yes: more"),
            ("  done:", "  more: { action: echo more, next: done }\n  done:"),
        ],
        said: "parts at step 7, after `inner`: it came to `wait`, and comes to `inner/more` now",
        code: 0,
    },
];

#[test]
fn runs_that_are_not_over_are_held_against_every_change_of_their_loop() {
    let project = Project::new().file("number", "3\n");
    for (path, text) in [LOOP, LIBRARY, INNER] {
        project.write(path, text);
    }
    project.run(&["run", "tidy"]).code(75);
    project.run(&["test", "tidy", "--replay", "history"]).code(0).says("the same way");
    for change in CHANGES {
        let (path, text) = change.file;
        let changed = change.edits.iter().fold(text.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        project.write(path, &changed);
        let ran = project.run(&["test", "tidy", "--replay", "history"]);
        assert_eq!(ran.code, Some(change.code), "{:?}\n{}", change.edits, ran.all());
        assert!(ran.stdout.contains(change.said), "{:?}\n{}", change.edits, ran.all());
        project.write(path, text);
    }
}
