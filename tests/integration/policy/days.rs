//! A day's cap: what runs take is counted in a ledger that all of them share, and where it cannot be counted no model is called.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wiremock::{Mock, Request, Respond, ResponseTemplate, matchers};

use super::{CHECK, asking};
use crate::ci::reported::Github;
use crate::common::{Project, Ran, git};
use crate::fake_host;

/// An answer that costs so much, after something else.
fn costs(usd: f64, first: &str) -> Vec<String> {
    let answer = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done",
        "session_id": "s", "total_cost_usd": usd, "usage": {"input_tokens": 5, "output_tokens": 5}});
    vec![format!("{first}\n{}", fake_host::prints(&[answer]))]
}

/// A place for ledgers that all runs of a test share.
fn shelf() -> Project {
    let shelf = Project::new();
    git(&shelf, &["init", "-q", "--bare", "ledger.git"]);
    shelf
}

fn policy(shelf: &Project, cap: f64) -> String {
    format!("caps: {{day: {{cost_usd: {cap}}}}}\nledger: git={}", shelf.at("ledger.git").display())
}

/// A project that asks an agent once, under a policy.
fn project(policy: &str, of_loop: &str, answers: &[String]) -> Project {
    fake_host::project(&["claude"], &asking(of_loop, ""), answers).env("LL_LOOP_POLICY", policy)
}

const ASK: [&str; 4] = ["run", "main", "--llm", "--yes"];

fn standing(project: &Project) -> Value {
    let shown = project.run(&["ledger", "--json"]).code(0).stdout;
    serde_json::from_str::<Value>(&shown).unwrap()["days"][0].clone()
}

/// Looks that no model is called, and everything else goes on.
#[track_caller]
fn refused(project: &Project, says: &str) {
    let before = fake_host::calls(project);
    project.run(&ASK).code(69).says(says).says("`caps.day.cost_usd` (LL_LOOP_POLICY:1)");
    assert_eq!(fake_host::calls(project), before);
    project.run(&["run", "main", "--no-llm"]).code(75);
    project.write(".loops/check.yaml", &CHECK.replace("name: main", "name: check"));
    project.run(&["run", "check"]).code(0);
}

#[test]
fn a_day_is_spent_once_whoever_spends_it() {
    let shelf = shelf();
    let rules = policy(&shelf, 1.0);
    let (one, other) = (project(&rules, "", &costs(0.7, "")), project(&rules, "", &costs(0.7, "")));
    refused(&one, "it is missing");
    one.run(&["ledger", "--begin"]).code(0).says("has begun");
    one.run(&["ledger", "--begin"]).code(2).says("has begun already");
    one.run(&ASK).code(0).says("$1.00 of the day's cap on cost are reserved");
    assert_eq!(standing(&other)["taken_usd"], 0.7);
    // The host does not stop in the middle of a call: it takes more than was left, and that counts.
    other.run(&ASK).code(0).says("$0.30 of the day's cap");
    let day = standing(&one);
    assert_eq!((&day["taken_usd"], &day["left_usd"]), (&json!(1.4), &json!(0.0)));
    let ran = one.run(&ASK).code(2);
    ran.says("`caps.day.cost_usd` (LL_LOOP_POLICY:1) allows $1.00 a day").says("$1.40 spent or reserved");
    assert_eq!(fake_host::calls(&one), 1);
}

#[test]
fn runs_at_the_same_time_never_have_the_same_dollar_promised() {
    let shelf = shelf();
    let rules = policy(&shelf, 1.0);
    // All of them wait until the test lets them go on.
    let wait = format!("touch here-$n; while [ ! -e {} ]; do sleep 0.05; done", shelf.at("go").display());
    let projects: Vec<Project> =
        (0..6).map(|_| project(&rules, "budget: {cost_usd: 0.3}", &costs(0.1, &wait))).collect();
    projects[0].run(&["ledger", "--begin"]).code(0);
    let start = |project: &Project| {
        project.command(&ASK).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut children: Vec<_> = projects.iter().map(start).collect();
    crate::common::wait_for(|| {
        let over = |at: usize, child: &mut std::process::Child| {
            projects[at].exists("here-1") || child.try_wait().unwrap().is_some()
        };
        children.iter_mut().enumerate().all(|(at, child)| over(at, child))
    });
    let day = standing(&projects[0]);
    let reserved: Vec<f64> =
        day["runs"].as_array().unwrap().iter().map(|run| run["reserved_usd"].as_f64().unwrap()).collect();
    assert_eq!(reserved.len(), 4, "{day}");
    assert!(reserved.iter().sum::<f64>() <= 1.0 + 1e-9, "{day}");
    shelf.write("go", "");
    let runs: Vec<Ran> =
        children.into_iter().map(|child| Ran::of(&child.wait_with_output().unwrap())).collect();
    let count = |code| runs.iter().filter(|ran| ran.code == Some(code)).count();
    assert_eq!((count(0), count(2)), (4, 2), "{runs:#?}");
    // A run that cannot settle in time leaves what it reserved.
    let taken = standing(&projects[0])["taken_usd"].as_f64().unwrap();
    assert!((0.4..=1.0).contains(&taken), "{taken}");
}

#[test]
fn what_another_run_adds_while_a_ledger_is_read_was_not_taken_out_of_it() {
    let shelf = shelf();
    let rules = policy(&shelf, 1.0);
    let (one, other) = (project(&rules, "", &costs(0.2, "")), project(&rules, "", &costs(0.2, "")));
    one.run(&["ledger", "--begin"]).code(0);
    let there = other.at("");
    // As soon as the first run has the ledger, a whole other one of the same machine passes it.
    let git = format!(
        "#!/bin/sh\nPATH=/usr/local/bin:/usr/bin:/bin git \"$@\"\ncode=$?\ncase \" $* \" in *' fetch '*)\n\
         if mkdir {}/passed 2>/dev/null; then\n(cd {} && HOME={} PATH={}/bin:/usr/bin:/bin {} run main --llm --yes) >&2\nfi\nesac\nexit $code\n",
        shelf.at("").display(),
        there.display(),
        there.display(),
        there.display(),
        env!("CARGO_BIN_EXE_ll-loop")
    );
    fake_host::program(&one, "bin/git", &git);
    one.run(&ASK).code(0);
    assert_eq!((fake_host::calls(&one), fake_host::calls(&other)), (1, 1));
    assert_eq!(standing(&one)["taken_usd"], 0.4);
}

#[test]
fn a_server_that_refuses_for_a_while_is_tried_again_and_one_that_forbids_it_is_named() {
    let shelf = shelf();
    let project = project(&policy(&shelf, 1.0), "", &costs(0.2, ""));
    project.run(&["ledger", "--begin"]).code(0);
    // A lock that somebody else holds looks like this: the server refuses, and the branch is where it was.
    let counted = "#!/bin/sh\necho x >>tries\n[ $(wc -l <tries) -gt 6 ]\n";
    fake_host::program(&shelf, "ledger.git/hooks/pre-receive", counted);
    project.run(&ASK).code(0);
    assert_eq!(standing(&project)["taken_usd"], 0.2);
    fake_host::program(&shelf, "ledger.git/hooks/pre-receive", "#!/bin/sh\necho not here >&2\nexit 1\n");
    let ran = project.run(&ASK).code(69).says("it takes nothing that is added: ").says("not here");
    ran.says("the token of the job must be able to add to it");
    assert_eq!(fake_host::calls(&project), 1);
}

#[test]
fn a_ledger_that_has_shrunk_or_was_changed_lets_no_model_be_called() {
    let shelf = shelf();
    let project = project(&policy(&shelf, 1.0), "", &costs(0.1, ""));
    project.run(&["ledger", "--begin"]).code(0);
    project.run(&ASK).code(0);
    let branch = "refs/heads/ll-loop-ledger";
    let bare = |arguments: &[&str]| git(&shelf, &[&["--git-dir", "ledger.git"], arguments].concat());
    let tip = bare(&["rev-parse", branch]);
    let (tip, back) = (tip.trim(), |steps: u32| format!("{branch}~{steps}"));
    for steps in [1, 2] {
        bare(&["update-ref", branch, &back(steps)]);
        refused(&project, "it has shrunk");
        bare(&["update-ref", branch, tip]);
    }
    bare(&["update-ref", "-d", branch]);
    refused(&project, "it is missing");
    // Another one in its place lacks what was seen of this one.
    project.run(&["ledger", "--begin"]).code(0);
    refused(&project, "it has shrunk");
    bare(&["update-ref", branch, tip]);
    let text = bare(&["show", &format!("{branch}:ledger.jsonl")]);
    let write = |text: &str| {
        shelf.write("text", text);
        let blob = bare(&["hash-object", "-w", "text"]);
        shelf.write("row", &format!("100644 blob {}\tledger.jsonl\n", blob.trim()));
        let made = shelf.program("bash", &["-c", "git --git-dir ledger.git mktree <row"]).output().unwrap();
        let tree = String::from_utf8(made.stdout).unwrap();
        let commit = bare(&["commit-tree", "-p", tip, "-m", "x", tree.trim()]);
        bare(&["update-ref", branch, commit.trim()]);
    };
    write(&text.replace("\"usd\":0.1", "\"usd\":0.0"));
    refused(&project, "it has shrunk");
    write(&text.replace("\"usd\":1.0", "\"usd\":0.0"));
    refused(&project, "does not follow the one before it");
    write("nothing\n");
    refused(&project, "line 1 is not an entry of a ledger");
    bare(&["update-ref", branch, tip]);
    project.run(&ASK).code(0);
}

#[test]
fn nothing_else_says_where_days_are_counted() {
    let shelf = shelf();
    let cap = "caps: {day: {cost_usd: 1}}";
    let alone = project(cap, "", &costs(0.1, ""));
    alone.run(&ASK).code(69).says("has no `ledger` beside it");
    // A ledger of another document does not count for this one: the run around has the cap, and the environment inside a ledger.
    let program = env!("CARGO_BIN_EXE_ll-loop");
    let outer = format!(
        "name: outer\nscope: [out]\ninitial: a\nstates:\n  a: {{action: \"LL_LOOP_POLICY='{{caps: {{day: {{cost_usd: 9}}}}, ledger: git={}}}' {program} run main --llm --yes\", next: b}}\n  b: {{terminal: true}}\n",
        shelf.at("ledger.git").display()
    );
    alone.write(".loops/outer.yaml", &outer);
    alone.run(&["run", "outer"]).says("exit 69");
    assert_eq!(fake_host::calls(&alone), 0);
    // Git is not led elsewhere by the configuration of the user.
    let led = project(&policy(&shelf, 1.0), "", &costs(0.1, ""));
    led.run(&["ledger", "--begin"]).code(0);
    git(&shelf, &["init", "-q", "--bare", "other.git"]);
    for key in ["insteadOf", "pushInsteadOf"] {
        let (from, to) = (shelf.at("ledger.git"), shelf.at("other.git"));
        let line = format!("[url \"{}\"]\n\t{key} = {}\n", to.display(), from.display());
        led.write(".gitconfig", &line);
        assert_ne!(led.run(&ASK).code, Some(0), "{key}");
        assert_eq!(fake_host::calls(&led), 0, "{key}");
    }
    for place in ["git=-u", "git=", "http://example.com/ledger", "/srv/ledger"] {
        let rules = format!("{cap}\nledger: '{place}'");
        project(&rules, "", &[]).run(&["validate"]).code(2).says("is not a valid place of a ledger");
    }
}

#[test]
fn a_run_that_was_killed_counts_what_its_journal_knows() {
    let shelf = shelf();
    let text = "name: main\ninitial: ask\nstates:\n  ask: {action_type: prompt, action: one, next: wait}\n  \
                wait: {action: 'touch here; while [ ! -e go ]; do sleep 0.05; done', next: again}\n  \
                again: {action_type: prompt, action: two, next: done}\n  done: {terminal: true}\n";
    let project =
        fake_host::project(&["claude"], text, &costs(0.2, "")).env("LL_LOOP_POLICY", policy(&shelf, 1.0));
    project.run(&["ledger", "--begin"]).code(0);
    let mut child = project.start_until(&ASK, "here");
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody knows yet, so all that it was promised counts.
    assert_eq!(standing(&project)["left_usd"], 0.0);
    project.write("go", "");
    project.run(&["resume", "main", "--llm", "--yes"]).code(0);
    let day = standing(&project);
    let spent: Vec<&Value> = day["runs"].as_array().unwrap().iter().map(|run| &run["spent_usd"]).collect();
    assert_eq!(spent, [&json!(0.2), &json!(0.2)], "{day}");
    // Another run of the checkout knows it as well.
    std::fs::remove_file(project.at("here")).unwrap();
    std::fs::remove_file(project.at("go")).unwrap();
    let mut child = project.start_until(&ASK, "here");
    child.kill().unwrap();
    child.wait().unwrap();
    project.write(".loops/other.yaml", &asking("", "").replace("name: main", "name: other"));
    project.run(&["run", "other", "--llm", "--yes"]).code(0);
    assert_eq!(standing(&project)["taken_usd"], 0.8);
}

#[test]
fn a_call_that_a_kill_cut_off_counts_with_all_that_was_promised() {
    let shelf = shelf();
    let slow = costs(0.2, "touch here; while [ ! -e go ]; do sleep 0.05; done");
    let project = project(&policy(&shelf, 1.0), "", &slow);
    project.run(&["ledger", "--begin"]).code(0);
    let mut child = project.start_until(&[&ASK[..], &["--max-cost", "0.3"]].concat(), "here");
    child.kill().unwrap();
    child.wait().unwrap();
    project.write("go", "");
    let spent = || {
        let runs = standing(&project)["runs"].take();
        runs.as_array().unwrap().iter().map(|run| run["spent_usd"].clone()).collect::<Vec<_>>()
    };
    // Nobody knows what the service was asked until then, neither another run of the checkout nor the one that goes on.
    project.write(".loops/other.yaml", &asking("", "").replace("name: main", "name: other"));
    project.run(&["run", "other", "--llm", "--yes", "--max-cost", "0.3"]).code(0);
    assert_eq!(spent(), [Value::Null, json!(0.2)]);
    project.run(&["resume", "main", "--llm", "--yes"]).code(0);
    assert_eq!(spent(), [Value::Null, json!(0.2), json!(0.2)]);
}

#[test]
fn a_run_that_is_refused_as_it_goes_on_has_nothing_promised() {
    let shelf = shelf();
    let text = "name: main\ninitial: make\nstates:\n  make: {action: echo made, next: may}\n  \
                may: {action_type: human_approval, action: 'Go on?', on_yes: ask, on_no: done}\n  \
                ask: {action_type: prompt, action: one, next: done}\n  done: {terminal: true}\n";
    let project =
        fake_host::project(&["claude"], text, &costs(0.2, "")).env("LL_LOOP_POLICY", policy(&shelf, 1.0));
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "x"]);
    project.run(&["ledger", "--begin"]).code(0);
    project.run(&["run", "main", "--no-llm", "--ci=plain", "--no-strict", "--on-change", "report"]).code(75);
    let answer = ["answer", "main", "approve", "--llm", "--yes"];
    // About another tree.
    project.write("more", "by somebody else");
    project.run(&answer).code(2).says("is not the one that the question is about");
    assert_eq!(standing(&project)["left_usd"], 1.0);
    std::fs::remove_file(project.at("more")).unwrap();
    // Where its files cannot be made.
    let journal = project.run_files(".events.jsonl").remove(0);
    let scratch = journal.to_str().unwrap().replace(".events.jsonl", ".dir");
    std::fs::write(&scratch, "").unwrap();
    project.run(&answer).code(2).says("cannot save the run");
    assert_eq!(standing(&project)["left_usd"], 1.0);
    std::fs::remove_file(&scratch).unwrap();
    project.run(&answer).code(0).says("$1.00 of the day's cap");
    assert_eq!(standing(&project)["taken_usd"], 0.2);
}

#[test]
fn nothing_is_promised_where_another_ledger_is_not_found() {
    let shelf = shelf();
    let text = "name: main\ninitial: wait\nstates:\n  \
                wait: {action: 'touch here; while [ ! -e go ]; do sleep 0.05; done', next: ask}\n  \
                ask: {action_type: prompt, action: one, next: done}\n  done: {terminal: true}\n";
    let project = fake_host::project(&["claude"], text, &costs(0.2, ""));
    git(&project, &["init", "-q"]);
    git(&shelf, &["init", "-q", "--bare", "other.git"]);
    git(&project, &["remote", "add", "other", &shelf.at("other.git").display().to_string()]);
    let project = project.env("LL_LOOP_POLICY", "caps: {day: {cost_usd: 1}}\nledger: git=other");
    project.run(&["ledger", "--begin"]).code(0);
    let mut child = project.start_until(&ASK, "here");
    child.kill().unwrap();
    child.wait().unwrap();
    project.write("go", "");
    git(&project, &["remote", "remove", "other"]);
    // A run keeps its policy where it goes on under another one.
    let project = project.env("LL_LOOP_POLICY", policy(&shelf, 1.0));
    project.run(&["ledger", "--begin"]).code(0);
    project.run(&["resume", "main", "--llm", "--yes"]).code(69).says("has no remote `other`");
    assert_eq!(standing(&project)["left_usd"], 1.0);
}

/// A service that keeps a ledger, and lets the first writers be outrun.
#[derive(Clone, Default)]
struct Service(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    text: String,
    outrun: u32,
    authorized: Vec<String>,
}

impl Respond for Service {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut kept = self.0.lock().unwrap();
        let header = |name: &str| {
            request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        kept.authorized.push(header("authorization"));
        let tag = format!("\"{}\"", kept.text.len());
        if request.method.as_str() == "GET" {
            return match kept.text.as_str() {
                "" => ResponseTemplate::new(404),
                text => ResponseTemplate::new(200).insert_header("ETag", tag.as_str()).set_body_string(text),
            };
        }
        let is_current =
            if kept.text.is_empty() { header("if-none-match") == "*" } else { header("if-match") == tag };
        if !is_current || kept.outrun > 0 {
            kept.outrun = kept.outrun.saturating_sub(1);
            return ResponseTemplate::new(412);
        }
        kept.text += &String::from_utf8(request.body.clone()).unwrap();
        ResponseTemplate::new(204)
    }
}

#[test]
fn a_service_of_the_organisation_counts_as_well() {
    let (service, server) = (Service::default(), Github::silent());
    server.mount(Mock::given(matchers::path("/ledger")).respond_with(service.clone()));
    let rules = format!("caps: {{day: {{cost_usd: 1}}}}\nledger: {}/ledger?key=geheim", server.address());
    let project = project(&rules, "", &costs(0.25, "")).env("LL_LEDGER_TOKEN", "token-of-the-ledger");
    refused(&project, "it is missing");
    project.run(&["ledger", "--begin"]).code(0);
    service.0.lock().unwrap().outrun = 2;
    let ran = project.run(&ASK).code(0);
    assert!(!ran.all().contains("geheim"), "{}", ran.all());
    assert_eq!(standing(&project)["taken_usd"], 0.25);
    let authorized = service.0.lock().unwrap().authorized.clone();
    assert!(authorized.iter().all(|header| header == "Bearer token-of-the-ledger"), "{authorized:?}");
    assert!(!project.read("calls/1.env").contains("token-of-the-ledger"));
    service.0.lock().unwrap().text.clear();
    refused(&project, "it is missing");
    service.0.lock().unwrap().text = "<html>".to_owned();
    refused(&project, "line 1 is not an entry");
}
