//! A run as spans. What the official messages make of the same requests is in `tests/packaging`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::common::{CHECK_FIX, Project};

/// Reads the spans of a request in JSON: their names, ids, attributes by name, and links.
pub(super) fn spans(request: &str) -> Vec<Value> {
    let request: Value = serde_json::from_str(request).unwrap();
    let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    spans.iter().map(span).collect()
}

fn span(span: &Value) -> Value {
    let links = span["links"].as_array().cloned().unwrap_or_default();
    let link = |link: &Value| json!({"id": link["spanId"], "attributes": attributes(&link["attributes"])});
    json!({
        "trace": span["traceId"],
        "id": span["spanId"],
        "parent": span["parentSpanId"].as_str().unwrap_or(""),
        "name": span["name"],
        "kind": span["kind"],
        "attributes": attributes(&span["attributes"]),
        "links": links.iter().map(link).collect::<Vec<_>>(),
    })
}

fn attributes(listed: &Value) -> Value {
    let pair = |pair: &Value| {
        let value = pair["value"].as_object().unwrap().values().next().unwrap().clone();
        (pair["key"].as_str().unwrap().to_owned(), value)
    };
    Value::Object(listed.as_array().unwrap().iter().map(pair).collect::<Map<_, _>>())
}

/// Exports the last run of `main`.
fn exported(project: &Project) -> Vec<Value> {
    spans(&project.run(&["export", "otlp", "main"]).code(0).stdout)
}

/// Writes spans as a tree: names, with the attributes that say how it came out.
fn tree(spans: &[Value]) -> String {
    let mut children: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for span in spans {
        children.entry(span["parent"].as_str().unwrap()).or_default().push(span);
    }
    let mut out = String::new();
    write_below("", 0, &children, &mut out);
    out
}

fn write_below(parent: &str, depth: usize, children: &BTreeMap<&str, Vec<&Value>>, out: &mut String) {
    for span in children.get(parent).into_iter().flatten() {
        let attributes = &span["attributes"];
        let shown =
            ["cicd.pipeline.result", "cicd.pipeline.task.run.result", "ll.verdict", "ll.outcome", "ll.visit"];
        let shown: Vec<String> = shown
            .into_iter()
            .filter_map(|name| Some(format!(" {name}={}", attributes.get(name)?.as_str()?)))
            .collect();
        let links = if span["links"].as_array().unwrap().is_empty() { "" } else { " (goes on)" };
        let name = span["name"].as_str().unwrap();
        writeln!(out, "{}{name}{links}{}", "  ".repeat(depth), shown.concat()).unwrap();
        write_below(span["id"].as_str().unwrap(), depth + 1, children, out);
    }
}

#[test]
fn a_run_is_a_span_and_its_steps_are_below() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let first = exported(&project);
    insta::assert_snapshot!(tree(&first), @r"
    ll-loop main cicd.pipeline.result=success ll.outcome=success
      check cicd.pipeline.task.run.result=failure ll.verdict=no ll.visit=1
      fix ll.visit=1
      check cicd.pipeline.task.run.result=success ll.verdict=yes ll.visit=2
    ");
    let root = &first[0];
    assert_eq!((&root["kind"], &root["attributes"]["cicd.pipeline.name"]), (&json!(2), &json!("main")));
    assert_eq!(root["attributes"]["cicd.pipeline.run.url.full"], Value::Null, "a run at home has no page");
    assert_eq!(first[1]["attributes"]["ll.action"], json!("echo looking; test -f flag"));
    assert_eq!(first, exported(&project), "two exports say the same");
}

#[test]
fn loops_that_a_run_runs_are_below_their_steps() {
    let inner = "name: inner\ninitial: look\nstates:\n  look: {action: 'true', on_yes: done}\n  done: {terminal: true}\n";
    let outer = "name: main\ninitial: all\nstates:\n  all: {loop: inner, on_success: done, on_failure: bad}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure, description: it failed}\n";
    let project = Project::with_loop(outer).file(".loops/inner.yaml", inner);
    project.run(&["run", "main"]).code(0);
    insta::assert_snapshot!(tree(&exported(&project)), @r"
    ll-loop main cicd.pipeline.result=success ll.outcome=success
      all cicd.pipeline.task.run.result=success ll.verdict=success ll.visit=1
        ll-loop inner ll.outcome=success
          look cicd.pipeline.task.run.result=success ll.verdict=yes ll.visit=1
    ");
}

#[test]
fn an_action_is_told_the_span_of_its_step() {
    let text = "name: main\ninitial: look\nstates:\n  look: {action: 'echo $TRACEPARENT > told', on_yes: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main"]).code(0);
    let found = exported(&project);
    let step = found.iter().find(|span| span["name"] == "look").unwrap();
    let expected = format!("00-{}-{}-01\n", step["trace"].as_str().unwrap(), step["id"].as_str().unwrap());
    assert_eq!(project.read("told"), expected);
}

#[test]
fn a_run_stands_in_the_trace_around_it() {
    let around = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    let project =
        Project::with_loop(&CHECK_FIX.replace("touch flag", "touch flag; echo $TRACEPARENT > told"))
            .env("TRACEPARENT", around);
    project.run(&["run", "main"]).code(0);
    let root = exported(&project).remove(0);
    assert_eq!(root["trace"], json!("4bf92f3577b34da6a3ce929d0e0e4736"));
    assert_eq!(root["parent"], json!("00f067aa0ba902b7"));
    let told = project.read("told");
    assert!(told.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && told.ends_with("-00\n"), "{told}");
}

/// A loop that hands itself off once.
const IN_TWO_PARTS: &str = "\
name: main
initial: check
states:
  check:
    action: 'test -e late || { touch late; echo \"CONTEXT_HANDOFF: later\"; }'
    on_yes: done
    on_no: bad
  done: {terminal: true}
  bad: {terminal: true, outcome: failure, description: it failed}
";

#[test]
fn a_part_that_was_handed_off_has_no_result_and_the_next_one_links_to_it() {
    let project = Project::with_loop(IN_TWO_PARTS);
    project.run(&["run", "main"]).code(75);
    project.run(&["resume", "main"]).code(0);
    let found = exported(&project);
    insta::assert_snapshot!(tree(&found), @r"
    ll-loop main ll.outcome=handoff
      check ll.visit=1
    ll-loop main (goes on) cicd.pipeline.result=success ll.outcome=success
      check cicd.pipeline.task.run.result=success ll.verdict=yes ll.visit=2
    ");
    let [first, next] = [0, 2].map(|index| &found[index]);
    assert_eq!(next["links"][0]["id"], first["id"]);
    assert_eq!(next["links"][0]["attributes"]["ll.resume.reason"], json!("handoff"));
    let ids: BTreeSet<_> = found.iter().map(|span| span["id"].to_string()).collect();
    assert_eq!(ids.len(), found.len(), "every id is one span's");
}

#[test]
fn metrics_of_a_run_are_written_too() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    project.run(&["export", "otlp", "main", "--metrics", "-o", "metrics.json"]).code(0);
    let request: Value = serde_json::from_str(&project.read("metrics.json")).unwrap();
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let named = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let took = &named("ll.run.duration")["histogram"]["dataPoints"][0];
    assert_eq!(
        attributes(&took["attributes"]),
        json!({"loop": "main", "outcome": "success", "verified": "true"})
    );
    assert_eq!(named("ll.run.verdicts")["sum"]["dataPoints"].as_array().unwrap().len(), 2);
}

#[test]
fn a_password_in_the_trace_around_a_run_costs_the_trace_and_not_the_journal() {
    let project = Project::with_loop(CHECK_FIX)
        .env("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .env("DB_PASSWORD", "4bf92f35");
    project.run(&["run", "main"]).code(0);
    let root = exported(&project).remove(0);
    assert_eq!((&root["name"], &root["parent"]), (&json!("ll-loop main"), &json!("")));
}

#[test]
fn an_action_of_an_inner_loop_is_told_its_own_step_also_when_it_is_gone_on_with() {
    let inner = "name: inner\ninitial: look\nstates:\n  look: {action: 'echo $TRACEPARENT >> told; test -e late || { touch late; echo \"CONTEXT_HANDOFF: later\"; }', on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let outer = "name: main\ninitial: all\nstates:\n  all: {loop: inner, on_success: done, on_failure: bad}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure, description: it failed}\n";
    let project = Project::with_loop(outer).file(".loops/inner.yaml", inner);
    project.run(&["run", "main"]).code(75);
    project.run(&["resume", "main"]).code(0);
    let found = exported(&project);
    let looked: Vec<String> = found
        .iter()
        .filter(|span| span["name"] == "look")
        .map(|span| format!("00-{}-{}-01", span["trace"].as_str().unwrap(), span["id"].as_str().unwrap()))
        .collect();
    let told = project.read("told");
    assert_eq!(told.lines().collect::<Vec<_>>(), looked, "{}", tree(&found));
    assert_eq!(looked.len(), 2);
}

#[test]
fn a_run_opens_in_perfetto() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let shown = project.run(&["export", "perfetto", "main"]).code(0);
    let value: Value = serde_json::from_str(&shown.stdout).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let complete: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    let names: Vec<_> = complete.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ll-loop main", "check", "fix", "check"]);
    let end = |event: &Value| event["ts"].as_u64().unwrap() + event["dur"].as_u64().unwrap();
    assert!(complete.iter().all(|event| end(event) <= end(complete[0])), "steps are inside of the run");
}
