//! What a repository can try to loosen a policy with. None of it does: no agent is asked that is not allowed, and no action runs
//! that the policy would have confined.

use serde_json::json;

use super::{answer, asking};
use crate::common::{Project, Ran, git};
use crate::fake_host;

/// Nobody may be asked but one that is not here.
const POLICY: &str = "hosts: [codex]\nmodels: [haiku]\nsandbox: workspace\n";

/// A looser one, as a repository would like it.
const LOOSE: &str = "hosts: ['*']\n";

const ASK: &[&str] = &["run", "main", "--llm", "--yes"];

/// A way to loosen a policy: what the repository has, and what is called.
struct Attempt {
    name: &'static str,
    files: Vec<(&'static str, String)>,
    env: Vec<(&'static str, String)>,
    call: Vec<&'static str>,
}

fn attempt(name: &'static str, files: Vec<(&'static str, String)>, call: &[&'static str]) -> Attempt {
    Attempt { name, files, env: Vec::new(), call: call.to_vec() }
}

impl Attempt {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }
}

fn main_loop(text: String) -> (&'static str, String) {
    (".loops/main.yaml", text)
}

/// A loop whose check is nothing but a program of ours, which asks an agent.
fn nested(how: &str) -> (&'static str, String) {
    let program = env!("CARGO_BIN_EXE_ll-loop");
    let text = format!(
        "name: main\nscope: [out]\ninitial: a\nstates:\n  a:\n    action: |\n      {}\n    next: b\n  b: {{terminal: true}}\n",
        how.replace("PROGRAM", program)
    );
    main_loop(text)
}

fn inner() -> (&'static str, String) {
    (".loops/inner.yaml", asking("", "model: opus,").replace("name: main", "name: inner"))
}

fn attempts() -> Vec<Attempt> {
    let loose = || LOOSE.to_owned();
    let opus = || main_loop(asking("", "model: opus,"));
    let chosen =
        |value: &str| main_loop(asking(&format!("context: {{m: {value}}}"), "model: '${context.m}',"));
    let off = "sandbox: off";
    vec![
        attempt("a policy in the repository", vec![opus(), (".loops/policy.yaml", loose())], ASK),
        attempt("one at its top", vec![opus(), ("policy.yaml", loose()), (".ll-loop/policy.yaml", loose())], ASK),
        attempt("one in the home", vec![opus(), (".config/ll-loop/policy.yaml", loose())], ASK),
        attempt("one below a directory like that of the machine", vec![opus(), ("etc/ll-loop/policy.yaml", loose())], ASK),
        attempt("a file of variables", vec![opus(), (".env", "LL_LOOP_POLICY=\n".to_owned())], ASK),
        attempt("a setting of git", vec![opus(), (".gitconfig", "[ll-loop]\n\tpolicy = none\n".to_owned())], ASK),
        attempt("a key of the loop", vec![main_loop(asking("policy: {hosts: ['*']}", "model: opus,"))], ASK),
        attempt("a key below config", vec![main_loop(asking("config: {policy: {hosts: ['*']}}", "model: opus,"))], ASK),
        attempt("another host by option", vec![opus()], &["run", "main", "--llm", "--yes", "--host", "claude"]),
        attempt("another host by variable", vec![opus()], ASK).with("LL_HOST_CLI", "claude"),
        attempt("a model by option", vec![main_loop(asking("", ""))], &["run", "main", "--llm", "--yes", "--model", "opus"]),
        attempt("a model in a variable of the loop", vec![chosen("opus")], ASK),
        attempt("a model in a variable of the call", vec![chosen("haiku")], &["run", "main", "--llm", "--yes", "--context", "m=opus"]),
        attempt("a model in the environment", vec![main_loop(asking("", "model: '${env.MODEL}',"))], ASK).with("MODEL", "opus"),
        attempt("a merge key of YAML", vec![main_loop(asking(
            "config: {}\nx-base: &base {sandbox: off}", "<<: *base, model: haiku,",
        ))], ASK),
        attempt("an anchor of YAML", vec![main_loop(asking("sandbox: &s off", "sandbox: *s, model: haiku,"))], ASK),
        attempt("a parent", vec![
            (".loops/parent.yaml", format!("name: parent\n{off}\ninitial: z\nstates:\n  z: {{terminal: true}}\n")),
            main_loop(asking("from: parent", "model: haiku,")),
        ], ASK),
        attempt("a fragment", vec![
            (".loops/lib.yaml", "fragments:\n  f: {sandbox: off}\n".to_owned()),
            main_loop(asking("import: [lib.yaml]", "fragment: f, model: haiku,")),
        ], ASK),
        attempt("a loop below", vec![inner(), main_loop(
            "name: main\ninitial: a\nstates:\n  a: {loop: inner, on_yes: b, on_no: b, on_error: b}\n  b: {terminal: true}\n".to_owned(),
        )], ASK),
        attempt("a run in a run without the variable", vec![inner(), nested("env -u LL_LOOP_POLICY PROGRAM run inner --llm --yes || true")], ASK),
        attempt("a run in a run with another policy", vec![inner(), nested("LL_LOOP_POLICY='hosts: [\"*\"]' PROGRAM run inner --llm --yes || true")], ASK),
        attempt("a run in a run elsewhere", vec![inner(), nested(
            "mkdir e && cp -r .loops bin answers e/ && cd e && env -i PATH=$PWD/bin:$PATH HOME=$HOME PROGRAM run inner --llm --yes || true",
        )], ASK),
        attempt("a directory that is a link", vec![inner(), nested(
            "mkdir real && cp -r .loops bin answers real/ && ln -s real link && cd link && env -u LL_LOOP_POLICY PROGRAM run inner --llm --yes || true",
        )], ASK),
        attempt("a run in a run that is called something else", vec![inner(), nested(
            "cp PROGRAM other && env -u LL_LOOP_POLICY -u LL_LOOP_PARENT ./other run inner --llm --yes || true",
        )], ASK),
        attempt("an environment that the loop gives to its actions", vec![inner(), main_loop(format!(
            "name: main\nscope: [out]\ninitial: a\nstates:\n  a: {{action: '{} run inner --llm --yes || true', env: {{LL_LOOP_POLICY: ''}}, next: b}}\n  b: {{terminal: true}}\n",
            env!("CARGO_BIN_EXE_ll-loop")
        ))], ASK),
        attempt("a policy of a later version", vec![opus()], ASK).with("LL_LOOP_POLICY", "version: 2\nhosts: ['*']\n"),
        attempt("a rule in capitals", vec![opus()], ASK).with("LL_LOOP_POLICY", "Hosts: ['*']\n"),
        attempt("a merge key in the policy", vec![opus()], ASK).with("LL_LOOP_POLICY", "hosts: [codex]\n<<: {hosts: ['*']}\n"),
        attempt("a second document in the policy", vec![opus()], ASK).with("LL_LOOP_POLICY", "hosts: [codex]\n---\nhosts: ['*']\n"),
        attempt("a larger cap in the loop", vec![main_loop(asking("budget: {llm_calls: 100}", "model: haiku,"))], ASK)
            .with("LL_LOOP_POLICY", "caps: {run: {calls: 0}}"),
        attempt("a larger cap by option", vec![main_loop(asking("", "model: haiku,"))], &["run", "main", "--llm", "--yes", "--max-llm-calls", "9"])
            .with("LL_LOOP_POLICY", "caps: {run: {calls: 0}}"),
    ]
}

#[test]
fn nothing_that_a_repository_can_have_loosens_a_policy() {
    let all = attempts();
    assert!(all.len() >= 30, "{}", all.len());
    for Attempt { name, files, env, call } in all {
        let mut project = fake_host::project(&["claude"], "", &answer()).env("LL_LOOP_POLICY", POLICY);
        for (file, text) in &files {
            project.write(file, text);
        }
        for (key, value) in env {
            project = project.env(key, value);
        }
        let ran = project.run(&call);
        let asked: usize = [".", "e", "real"]
            .iter()
            .map(|place| usize::from(project.exists(&format!("{place}/calls/count"))))
            .sum();
        assert_eq!(asked, 0, "{name}:\n{}", ran.all());
        assert!(!ran.all().contains("panicked"), "{name}:\n{}", ran.all());
    }
}

#[test]
fn the_attempts_would_succeed_without_a_policy() {
    // Or the test above could not fail: some of these ask an agent where nothing binds.
    let mut asked = 0;
    for Attempt { files, env, call, .. } in attempts() {
        let mut project = fake_host::project(&["claude"], "", &answer());
        for (file, text) in &files {
            project.write(file, text);
        }
        for (key, value) in env.into_iter().filter(|(key, _)| *key != "LL_LOOP_POLICY") {
            project = project.env(key, value);
        }
        let _any = project.run(&call);
        let is_asked = [".", "e", "real"].iter().any(|place| project.exists(&format!("{place}/calls/count")));
        asked += usize::from(is_asked);
    }
    assert!(asked >= 24, "{asked}");
}

#[test]
fn a_policy_that_is_changed_while_a_run_goes_on_holds_as_it_was() {
    let text = "name: main\ninitial: loosen\nstates:\n  loosen: {action: \"echo \\\"hosts: ['*']\\\" >rules.yaml\", next: ask}\n  \
                ask: {action_type: prompt, action: do it, model: opus, next: done}\n  done: {terminal: true}\n";
    let project = fake_host::project(&["claude"], text, &answer())
        .file("rules.yaml", "hosts: [claude]\nmodels: [haiku]\n");
    let project = project.env("LL_LOOP_POLICY", "rules.yaml");
    project.run(ASK).code(2).says("`models` (rules.yaml (LL_LOOP_POLICY):2)");
    // Where only the run knows which loop asks, the file was changed by the time.
    project.write(".loops/inner.yaml", &asking("", "model: opus,").replace("name: main", "name: inner"));
    let text = text
        .replace(
            "ask: {action_type: prompt, action: do it, model: opus, next: done}",
            "ask: {loop: '${captured.m.output}', on_yes: done, on_no: done, on_error: done}",
        )
        .replace("next: ask}", "next: name}\n  name: {action: echo inner, capture: m, next: ask}");
    project.write(".loops/main.yaml", &text);
    project.write("rules.yaml", "hosts: [claude]\nmodels: [haiku]\n");
    project.run(ASK).says("the policy forbids the model `opus`");
    assert_eq!(project.read("rules.yaml"), "hosts: ['*']\n");
    assert_eq!(fake_host::calls(&project), 0);
}

#[test]
fn a_run_from_elsewhere_brings_no_looser_policy() {
    let home = fake_host::project(&["claude"], &asking("", "model: opus,"), &answer());
    home.run(&["run", "main", "--no-llm", "--report-dir", "report"]).code(75);
    let under = |policy: &str, arguments: &[&str]| {
        Ran::of(&home.command(arguments).env("LL_LOOP_POLICY", policy).output().unwrap())
    };
    for arguments in [
        &["resume", "main", "--llm", "--yes"][..],
        &["resume", "main", "--from", "report", "--llm", "--yes"],
        &["rewind", "main", "--to", "ask", "--llm", "--yes"],
    ] {
        let ran = under(POLICY, arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}: {}", ran.all());
        assert_eq!(fake_host::calls(&home), 0, "{arguments:?}");
    }
}

#[test]
fn what_nothing_confines_is_not_started_where_every_action_has_to_be() {
    let everything = "sandbox: {of: everything}";
    let loop_file = "name: main\nparameters: {p: {type: string}}\ninitial: a\nstates:\n  a: {action: 'true', next: b}\n  b: {terminal: true}\n";
    let project = Project::with_loop(loop_file);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    let state = json!({"task": "t", "criteria": [{"name": "c", "met": false, "check": "touch checked"}]});
    project.write(".loop/state.json", &state.to_string());
    let under = |policy: &str, arguments: &[&str]| {
        Ran::of(&project.command(arguments).env("LL_LOOP_POLICY", policy).output().unwrap())
    };
    let plan = ["plan", "main", "--each", "p=cmd:touch planned", "--dirty"];
    under(everything, &plan).code(2).says("`sandbox` (LL_LOOP_POLICY:1)");
    under(everything, &["criteria", "check"]).code(2).says("`sandbox` (LL_LOOP_POLICY:1)");
    assert!(!project.exists("planned") && !project.exists("checked"));
    under("hosts:", &["criteria", "check"]).code(2).says("cannot be read");
    let _started = under("sandbox: workspace", &plan);
    assert!(project.exists("planned"));
}
