//! Keys that promise protection, in every place where they do nothing and in spellings that mean nothing: each is an error.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Project;

const PROMISES: [(&str, &str); 5] = [
    ("sandbox", "workspace"),
    ("broker", "auto"),
    ("judges", "[a.txt]"),
    ("approvers", "{users: [somebody]}"),
    ("reuse", "{inputs: [a.txt]}"),
];

const HEAD: &str = "name: main\ndescription: x\ninitial: work\n";

const STATES: &str = "states:\n  work: {action: make, on_yes: done, on_no: bad}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";

/// A place for a key: what it is called, its files with `@@` where the key stands, and the promises that are right there.
struct Place {
    name: String,
    files: Vec<(&'static str, String)>,
    right: &'static [&'static str],
}

/// Without a question for people, `approvers` are for nothing.
const OF_LOOPS: &[&str] = &["sandbox", "broker", "judges", "reuse"];
/// What plans its own work cannot be reused.
const OF_AGENTS: &[&str] = &["sandbox", "broker", "judges"];
const SANDBOX: &[&str] = &["sandbox"];
const APPROVERS: &[&str] = &["approvers"];
/// What uses a fragment may ask people.
const OF_FRAGMENTS: &[&str] = &["sandbox", "approvers"];
const NONE: &[&str] = &[];

fn state(body: &str) -> String {
    let body = format!("work: {{{body}}}");
    HEAD.to_owned() + &STATES.replace("work: {action: make, on_yes: done, on_no: bad}", &body)
}

fn top(keys: &str) -> String {
    format!("{HEAD}{keys}\n{STATES}")
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |name: &str, right, files: &[(&'static str, String)]| {
        places.push(Place { name: name.to_owned(), files: files.to_vec(), right });
    };
    let child = HEAD.replace("main", "child");
    add("a loop", OF_LOOPS, &[("main", top("@@"))]);
    for (body, right) in [
        ("action: make, on_yes: done, on_no: bad, @@", SANDBOX),
        ("action: /x, action_type: prompt, next: done, @@", SANDBOX),
        ("action: go?, action_type: human_approval, on_yes: done, on_no: bad, @@", APPROVERS),
        ("action: make, repeat: {passes: 2, @@}, on_yes: done, on_no: bad", NONE),
        ("action: make, evaluate: {type: exit_code, @@}, on_yes: done, on_no: bad", NONE),
        ("action: make, evaluate: {type: llm_structured, @@}, on_yes: done, on_no: bad", NONE),
        ("check_condition: {type: exit_code, source: work, @@}, on_yes: done, on_no: bad", NONE),
    ] {
        add(body, right, &[("main", state(body))]);
    }
    for idle in ["host_guard", "throttle", "rate_limit_x", "some_ok", "cost_ceiling", "pruning_profile"] {
        add(idle, &[], &[("main", top(&format!("{idle}: {{a: [{{@@}}]}}")))]);
        add(
            &format!("{idle} of a state"),
            &[],
            &[("main", state(&format!("action: make, next: done, {idle}: {{@@}}")))],
        );
    }
    for idle in ["config", "circuit", "targets", "singleton"] {
        add(idle, &[], &[("main", top(&format!("{idle}: {{deep: {{@@}}}}")))]);
    }
    for record in [
        "llm",
        "budget",
        "stall",
        "notify",
        "board",
        "artifact_output",
        "sandbox",
        "reuse",
        "judges",
        "approvers",
    ] {
        add(&format!("below {record}"), &[], &[("main", top(&format!("{record}: {{@@}}")))]);
    }
    add("a parameter", &[], &[("main", top("parameters: {p: {default: a, @@}}"))]);
    add("among the states", &[], &[("main", format!("{HEAD}{STATES}  @@\n"))]);
    add("a terminal", &[], &[("main", HEAD.to_owned() + &STATES.replace("done: {", "done: {@@, "))]);
    add(
        "a terminal that works",
        SANDBOX,
        &[("main", HEAD.to_owned() + &STATES.replace("done: {", "done: {action: make, @@, "))],
    );
    add(
        "a state of a sub-loop",
        &[],
        &[
            ("main", state("loop: child, on_yes: done, on_no: bad, @@")),
            ("child", format!("{child}{STATES}")),
        ],
    );
    add(
        "values for a sub-loop",
        &[],
        &[
            ("main", state("loop: child, with: {@@}, on_yes: done, on_no: bad")),
            ("child", format!("{child}{STATES}")),
        ],
    );
    add(
        "an inherited loop",
        OF_LOOPS,
        &[("main", "name: main\nfrom: base\n".to_owned()), ("base", top("@@"))],
    );
    add(
        "a state laid over",
        SANDBOX,
        &[("main", "name: main\nfrom: base\nstates: {work: {@@}}\n".to_owned()), ("base", top(""))],
    );
    let import = "import: [lib.yaml]";
    let uses =
        state("fragment: f, on_yes: done, on_no: bad").replace("states:", &format!("{import}\nstates:"));
    add(
        "a fragment of a library",
        SANDBOX,
        &[("main", uses), ("lib", "fragments:\n  f: {action: make, @@}\n".to_owned())],
    );
    add(
        "an unused fragment of a library",
        OF_FRAGMENTS,
        &[("main", top(import)), ("lib", "fragments:\n  f: {action: make, @@}\n".to_owned())],
    );
    add(
        "a library",
        &[],
        &[("main", top(import)), ("lib", "@@\nfragments:\n  f: {action: make}\n".to_owned())],
    );
    add("an own fragment", OF_FRAGMENTS, &[("main", top("fragments: {f: {action: make, @@}}"))]);
    add("a name of a fragment", &[], &[("main", top("fragments: {@@}"))]);
    add(
        "values for a fragment",
        &[],
        &[(
            "main",
            state("fragment: f, with: {@@}, on_yes: done, on_no: bad")
                .replace("states:", "fragments: {f: {action: make}}\nstates:"),
        )],
    );
    add("bodies without a flow", &[], &[("main", top("state_defs: {work: {@@}}"))]);
    let flow = "name: main\ndescription: x\nflow: ['work?done:bad']\nstate_defs: {work: {action: make, @@}, done: {terminal: true}, bad: {terminal: true, outcome: failure}}\n";
    add("a body of a flow", SANDBOX, &[("main", flow.to_owned())]);
    let agents =
        |keys: &str| format!("name: main\nparadigm: agents\ngoal: x\nbudget: {{llm_calls: 3}}\n{keys}\n");
    add("agents", OF_AGENTS, &[("main", agents("@@"))]);
    add("roles", &[], &[("main", agents("roles: {@@}"))]);
    add("a role", SANDBOX, &[("main", agents("roles: {coder: {@@}}"))]);
    add("limits of agents", &[], &[("main", agents("limits: {@@}"))]);
    add(
        "a constraint",
        &[],
        &[(
            "main",
            "name: main\nparadigm: invariants\nconstraints: [{name: a, check: make, fix: x, @@}]\n"
                .to_owned(),
        )],
    );
    add("a criterion", &[], &[("main", "name: main\nparadigm: criteria\nspec: x\ncriteria: [{id: a, text: b, check: make, @@}]\nwork: x\n".to_owned())]);
    places
}

/// Spellings of a key that mean nothing.
fn slips(key: &str) -> [String; 3] {
    let turned = [&key[..1], &key[2..3], &key[1..2], &key[3..]].concat();
    [key[1..].to_owned(), turned, format!("{}_{}", key[..3].to_uppercase(), &key[3..])]
}

#[test]
fn a_promise_of_protection_that_does_nothing_is_an_error_wherever_it_stands() {
    let project = Project::with_loop(&top(""));
    let mut cases = BTreeMap::new();
    for place in places() {
        for (key, value) in PROMISES {
            let own = Some(key.to_owned()).filter(|_| !place.right.contains(&key));
            // Two letters that are the same can be turned round without harm.
            for spelt in own.into_iter().chain(slips(key).into_iter().filter(|slip| slip != key)) {
                let directory = format!("case-{}", cases.len());
                for (file, text) in &place.files {
                    project.write(
                        &format!(".loops/{directory}/{file}.yaml"),
                        &text.replace("@@", &format!("{spelt}: {value}")),
                    );
                }
                cases.insert(format!("/{directory}/main.yaml"), format!("`{spelt}` in {}", place.name));
            }
        }
    }
    assert!(cases.len() > 800, "{}", cases.len());
    let ran = project.run(&["validate", "--json"]).code(2);
    let mut open = cases.clone();
    for line in ran.stdout.lines() {
        let Ok(found) = serde_json::from_str::<Value>(line) else { continue };
        let file = found["file"].as_str().unwrap_or_default();
        if found["valid"] == false {
            open.retain(|name, _| !file.ends_with(name.as_str()));
        }
    }
    assert!(open.is_empty(), "{open:#?}");
}

#[test]
fn a_promise_in_its_place_is_not_an_error() {
    let project = Project::with_loop(&top(""));
    for place in places() {
        for (key, value) in PROMISES.iter().filter(|(key, _)| place.right.contains(key)) {
            for (file, text) in &place.files {
                project
                    .write(&format!(".loops/{file}.yaml"), &text.replace("@@", &format!("{key}: {value}")));
            }
            let ran = project.run(&["validate", "main"]);
            assert_eq!(ran.code, Some(0), "{key} in {}: {}", place.name, ran.all());
        }
    }
}
