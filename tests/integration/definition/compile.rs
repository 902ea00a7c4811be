//! `ll-loop compile`: what is printed is a loop that runs as the one it was made from.

use std::process::Command;

use serde_json::{Value, json};

use crate::common::Project;

const GOAL: &str = "\
paradigm: goal
goal: The flag exists
tools: ['test -f flag', {tool: 'touch flag; echo done', timeout: 10}]
max_iterations: 4
";

/// The states and routes of a run.
fn path(project: &Project) -> Vec<(Value, Value)> {
    let routes = project.events().into_iter().filter(|event| event["event"] == "route");
    routes.map(|event| (event["from"].clone(), event["to"].clone())).collect()
}

#[test]
fn what_is_compiled_runs_the_same_way() {
    let project = Project::with_loop(GOAL);
    let ran = project.run(&["compile", "main", "--output", "plain.yaml"]).code(0);
    assert_eq!(ran.stdout, "");
    let printed = project.run(&["compile", "main"]).code(0).stdout;
    assert_eq!(printed, project.read("plain.yaml"));
    assert_eq!(project.run(&["compile", "plain.yaml"]).code(0).stdout, printed);
    drop(project.run(&["run", "main"]).code(0));
    let plain = Project::with_loop(&printed);
    drop(plain.run(&["run", "main"]).code(0));
    assert_eq!(path(&project), path(&plain));
    assert_eq!(path(&plain).len(), 3);
}

#[test]
fn the_loop_itself_is_not_overwritten() {
    let project = Project::with_loop(GOAL);
    let ran = project.run(&["compile", "main", "--output", ".loops/../.loops/main.yaml"]).code(2);
    drop(ran.says("would be overwritten"));
    assert_eq!(project.read(".loops/main.yaml"), GOAL);
    drop(project.run(&["compile", "main", "-o", "no/such/directory.yaml"]).code(4));
}

#[test]
fn what_cannot_be_compiled_is_drawn() {
    let project = Project::with_loop("paradigm: goal\ngoal: g\n");
    let ran = project.run(&["compile", "main"]).code(2);
    assert_eq!(ran.stdout, "");
    drop(ran.says("`tools` is missing").says("a loop of this form needs `goal` and `tools`"));
}

#[test]
fn exit_codes_that_mean_no_are_printed_so_that_every_reader_of_yaml_reads_them() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: exit 101, evaluate: {type: exit_code, no: [1, 3-9, 101]}, on_yes: b, on_no: done}\n  b: {terminal: true, outcome: failure}\n  done: {terminal: true}\n",
    );
    let printed = project.run(&["compile", "main"]).code(0).stdout;
    assert!(printed.contains("'no':\n        - 1\n        - '3-9'\n        - 101\n"), "{printed}");
    let again = Project::with_loop(&printed);
    drop(again.run(&["run", "main", "--no-ci"]).code(0));
    assert_eq!(path(&again).len(), 1);
}

#[test]
fn real_readers_read_what_is_compiled() {
    let texts = [
        "",
        " ",
        " a",
        "a ",
        "a\n",
        "\na",
        "a\n\n",
        "a\n\n\n",
        "a\n b\n",
        " a\nb",
        "a\r\nb",
        "a\rb",
        "a\tb",
        "\ta\nb",
        "a: b",
        "a:",
        ":",
        "#a",
        "a #b",
        "---",
        "--- a",
        "...",
        "- a",
        "? a",
        "!a",
        "&a",
        "*a",
        "%a",
        "@a",
        "`a`",
        "| ",
        "> a",
        "{a}",
        "[a]",
        "'a'",
        "\"a\"",
        "it's",
        "\\",
        "a\\n",
        "a\u{85}b",
        "a\u{2028}b",
        "a\u{2029}b",
        "\u{feff}a",
        "\u{a0}a",
        "\u{1b}[31m",
        "\u{7f}",
        "é",
        "\u{1f600}",
        "\u{202e}a",
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "N",
        "true",
        "null",
        "Null",
        "~",
        "0o17",
        "017",
        "012",
        "1e3",
        "0x1F",
        "0b11",
        "1_000",
        "12:30:45",
        "12:30",
        "1.10",
        ".inf",
        "-.INF",
        ".nan",
        "+1",
        "2026-11-22",
        "2026-11-22T10:00:00Z",
        "<<",
        "=",
        "line 1\n# two\n\n  three\n",
        "a\n---\nb\n",
        "a \nb",
    ];
    let values = json!({
        "texts": texts.as_slice(),
        "keys": texts.iter().map(|text| ((*text).to_owned(), Value::from("x"))).collect::<serde_json::Map<_, _>>(),
        "nested": [[["a", ["b"]], []], {"a": [{"b": ["c", {"d": "e\nf"}]}], "g": {}}, [{"h": 1, "i": [2]}]],
        "numbers": [1, -2, 1.5, 1e300, true, null],
    });
    // JSON is YAML as well, but for characters that have to be escaped there.
    let escaped = |c: char| if c <= '~' { c.to_string() } else { format!("\\U{:08x}", u32::from(c)) };
    let written_out: String = values.to_string().chars().map(escaped).collect();
    let text = format!(
        "name: main\ninitial: a\ncontext: {written_out}\nstates:\n  a: {{action: x, next: done}}\n  done: {{terminal: true}}\n"
    );
    let written = "written: [0o17, 1e3, 0b101, -0xC, -.5, 1.5e3, 0x1F, 012]";
    let text = text.replace("context: {", &format!("context: {{{written}, "));
    let project = Project::with_loop(&text);
    project.run(&["compile", "main", "-o", "plain.yaml"]).code(0);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports/read_yaml.py");
    let read = Command::new("python3").arg(script).arg(project.at("plain.yaml")).output().unwrap();
    let stderr = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "run `tests/run` once, which installs the readers: {stderr}");
    let read: Value = serde_json::from_slice(&read.stdout).unwrap();
    let mut expected = values;
    expected["written"] = json!([15, 1000.0, 5, -12, -0.5, 1500.0, 31, "012"]);
    for reader in ["pyyaml", "ruamel"] {
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(read[reader]["context"][key], *value, "{reader}: {key}");
        }
    }
}
