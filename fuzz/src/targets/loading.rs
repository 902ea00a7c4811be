//! From the text of a loop file to a machine and back: what loads is compiled to a text that loads, and means the same.
//!
//! An input is the loop file; behind lines `#=== PATH` stand other files that it may name.

use std::path::{Path, PathBuf};

use ll_loop::internals::base::decode::Decode as _;
use ll_loop::internals::base::diagnostic::{Diagnostics, FindingPlace};
use ll_loop::internals::base::explanation::Explanation;
use ll_loop::internals::base::node::Node;
use ll_loop::internals::base::path::DocPath;
use ll_loop::internals::definition::resolve::{self, Fetched, Reference};
use ll_loop::internals::definition::schema::Loop;
use ll_loop::internals::definition::source_text::Sources;
use ll_loop::internals::definition::{emit, render, yaml};
use ll_loop::internals::machine::{Machine, check, compile};
use ll_loop::internals::report::graph::{self, Graph};

use crate::{Target, note, repository};

/// See above.
pub const TARGET: Target = Target {
    name: "loading",
    run,
    seeds,
    words: &[
        "name: ",
        "initial: ",
        "states:\n",
        "  a:\n",
        "action: ",
        "evaluate:\n",
        "type: ",
        "exit_code",
        "output_json",
        "output_contains",
        "output_numeric",
        "convergence",
        "diff_stall",
        "action_stall",
        "score_stall",
        "classify",
        "criteria",
        "mcp_result",
        "action: |\n      ",
        "set -e\n",
        "|| true",
        " | ",
        "; ",
        "<<EOF\n",
        "if x; then ",
        "for f in *; do ",
        "$(",
        "on_yes: ",
        "on_no: ",
        "on_error: ",
        "next: ",
        "route:\n",
        "_: ",
        "_error: ",
        "terminal: true",
        "maintain: true",
        "on_maintain: ",
        "context:\n",
        "parameters:\n",
        "loop: ",
        "with:\n",
        "from: ",
        "import: [",
        "fragments:\n",
        "fragment: ",
        "paradigm: ",
        "goal",
        "invariants",
        "imperative",
        "agents",
        "roles:\n",
        "tools: [",
        "max_iterations: ",
        "max_retries: ",
        "retryable_exit_codes: [1]",
        "on_retry_exhausted: ",
        "timeout: ",
        "1h30m",
        "capture: ",
        "${context.a}",
        "${captured.a.output}",
        "${prev.output}",
        "${param.a}",
        "${env.HOME}",
        "${x:-y}",
        "${a?}",
        "$current",
        "<<: *a",
        "&a ",
        "*a",
        "|\n",
        ">-\n",
        "|2+\n",
        "- ",
        "? ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "'",
        "\"",
        "#=== lib/a.yaml\n",
        "!!str ",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "null",
        "~",
        "yes",
        "0x1f",
        "0o17",
        "1e3",
        ".inf",
        ".nan",
        "\t",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "\r\n",
        "\\u0000",
        "@",
        "`",
        "flow:",
        "commands:\n",
        "scope: [",
        "budget:\n",
        "board:\n",
        "repeat:\n",
        "throttle:\n",
        "stall:\n",
        "llm:\n",
        "shell: ",
        "env:\n",
        "cwd: ",
        "pattern: ",
        "negate: true",
        "target: ",
        "operator: ",
        "ge",
        "path: ",
        ".a[0]",
        "schema:\n",
        "prompt: ",
        "prompts:\n",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = repository::loops().into_iter().map(String::into_bytes).collect();
    all.extend(COMPOSED.iter().map(|text| text.as_bytes().to_vec()));
    all
}

/// Loops of several files, and forms that the fixtures do not have.
const COMPOSED: &[&str] = &[
    "name: a\nfrom: base\nimport: [lib/x.yaml]\nstates:\n  fix: {fragment: f, with: {n: 2}}\n\
     #=== base\ninitial: check\nstates:\n  check: {action: 'true', on_yes: done, on_no: fix}\n  fix: {action: b, next: \
     check}\n  done: {terminal: true}\n\
     #=== lib/x.yaml\nfragments:\n  f:\n    parameters: {n: {type: integer}}\n    action: echo ${param.n}\n    next: check\n",
    "name: a\ninitial: s\nstates:\n  s:\n    loop: other\n    with: {a: [1, {b: ~}], c: '1.10'}\n    on_yes: d\n    on_no: \
     d\n  d: {terminal: true, description: \"a\\nb\\u2028\"}\n",
    "name: a\ninitial: s\ncontext: {deep: [[1, [2]], {a: {b: []}}], k: {}, t: \" x\\n\", u: |+\n  a\n\n }\nstates:\n  s: \
     {action: \"echo $${x} ${context.deep.0.1.0}\", next: d}\n  d: {terminal: true}\n",
];

/// The input, taken apart.
struct Files<'d> {
    main: &'d str,
    others: Vec<(&'d str, &'d str)>,
}

impl<'d> Files<'d> {
    fn new(text: &'d str) -> Self {
        let mut parts = text.split("#=== ");
        let main = parts.next().unwrap_or_default();
        Self { main, others: parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect() }
    }

    fn fetch(&self, reference: &Reference<'_>) -> Result<Fetched, Explanation> {
        let found = self.others.iter().find(|(name, _)| *name == reference.name);
        let (name, text) = found.ok_or_else(|| Explanation::new("it is not there"))?;
        Ok(Fetched { path: PathBuf::from(name), shown: (*name).to_owned(), text: (*text).to_owned() })
    }
}

/// The result of a text.
struct Came {
    definition: Option<Loop>,
    machine: Option<Machine>,
    tree: Option<Node>,
    findings: Diagnostics,
    sources: Sources,
}

/// Does what the loader does, with files from memory.
fn load(files: &Files<'_>) -> Came {
    let text = files.main.strip_prefix('\u{feff}').unwrap_or(files.main);
    let (mut sources, mut findings) = (Sources::default(), Diagnostics::default());
    let file = sources.add("loop.yaml", text);
    let tree = yaml::parse(text, file, &mut findings);
    let mut fetch = |reference: &Reference<'_>| files.fetch(reference);
    let path = Path::new("loop.yaml");
    let resolved = tree.map(|tree| resolve::resolve(tree, path, &mut sources, &mut fetch, &mut findings));
    let tree = resolved.map(|resolved| resolved.tree);
    let definition = tree.as_ref().and_then(|tree| Loop::decode(tree, &DocPath::root(), &mut findings));
    let mut machine = None;
    if let Some(definition) = &definition {
        if findings.has_errors() {
            findings.extend(compile::further_problems(definition, |_| false));
        } else {
            let (compiled, problems) = compile::compile(definition);
            findings.extend(problems);
            machine = compiled.filter(|_| !findings.has_errors());
        }
    }
    Came { definition, machine, tree, findings, sources }
}

fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut came = load(&Files::new(&text));
    let tree = came.tree.as_ref();
    assert!(
        came.findings.has_errors() || came.machine.is_some(),
        "a loop that does not become a machine has an error that says why"
    );
    if let (Some(machine), Some(definition)) = (&came.machine, &came.definition) {
        came.findings.extend(check::check_deeply(machine, definition));
        let graph = Graph::of_machine(machine);
        drop((graph::text(&graph), graph::mermaid(&graph), graph::dot(&graph), graph::standalone(&graph)));
    }
    for finding in came.findings.iter() {
        note((finding.code, matches!(finding.place, FindingPlace::File)));
        assert!(!finding.message.is_empty(), "{} says nothing", finding.code);
    }
    if came.findings.iter().count() < 50 {
        drop(render::to_text(&came.findings, &came.sources, tree, true));
        drop(render::to_text(&came.findings, &came.sources, tree, false));
    }
    for object in render::to_json(&came.findings, &came.sources, tree) {
        drop(object.to_string());
    }
    if let (Some(machine), Some(tree)) = (came.machine, tree) {
        note(("machine", machine.steps().len().min(8), machine.ends().len().min(4)));
        loads_again(&machine, tree);
    }
}

/// What `compile` prints is the same loop.
fn loads_again(machine: &Machine, tree: &Node) {
    let text = emit::to_yaml(tree);
    let again = load(&Files { main: &text, others: Vec::new() });
    let shown = || render::to_text(&again.findings, &again.sources, again.tree.as_ref(), false);
    let same = again
        .machine
        .as_ref()
        .unwrap_or_else(|| panic!("what was compiled does not load:\n{text}\n{}", shown()));
    assert!(same == machine, "what was compiled is another loop:\n{text}\n{same:#?}\n{machine:#?}");
    let twice = again.tree.as_ref().map(emit::to_yaml);
    assert_eq!(twice.as_deref(), Some(text.as_str()), "what was compiled is compiled to something else");
}
