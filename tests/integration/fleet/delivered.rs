//! What became of deliveries on a board: asked of the server, or read of the file that `ll-loop deliveries` wrote.

use serde_json::{Value, json};

use crate::ci::reported::Github;
use crate::common::{Project, Ran};
use crate::fake_host;
use crate::inspect::deliveries::{answers, commit, pull};

const ASK: &str = "name: main\ninitial: ask\nstates:\n  ask: {action_type: prompt, action: go, next: done}\n  done: {terminal: true}\n";

/// Two runs of `main`, each of which took $0.60, their ids, and a server that says that people kept one of them.
fn two_runs() -> (Project, Vec<String>, Github) {
    let answer = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "session_id": "s",
        "total_cost_usd": 0.6, "modelUsage": {"model-one": {}}, "usage": {"input_tokens": 5, "output_tokens": 5}});
    let answer = fake_host::prints(&[answer]);
    let project = fake_host::project(&["claude"], ASK, &[answer.clone(), answer]);
    for place in ["all/one", "all/two"] {
        project.run(&["run", "main", "--llm", "--yes", "--report-dir", place]).code(0);
    }
    let run = |place: &str| {
        let journal = project.read(&format!("{place}/events.jsonl"));
        let start: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
        start["run_id"].as_str().unwrap().to_owned()
    };
    let runs: Vec<String> = ["all/one", "all/two"].into_iter().map(run).collect();
    let github = Github::silent();
    let late = |more: Value| {
        let mut all = json!({"created_at": "2999-01-01T00:00:00Z"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let pulls = json!([
        pull(1, &runs[0], &late(json!({"merged_at": "2999-01-02T00:00:00Z"}))),
        pull(2, &runs[1], &late(json!({}))),
        pull(3, "other-20260101T000000-000001", &late(json!({}))),
    ]);
    answers(&github, "/pulls", &pulls);
    answers(&github, "/pulls/1/commits", &json!([commit("Fix\n\nLL-Patch: 1", 1), commit("By hand", 1)]));
    answers(&github, "/commits", &json!([]));
    let project = project.env("GITHUB_API_URL", github.address()).env("LL_RETRY_WAIT", "1ms");
    (project, runs, github)
}

fn deliveries(ran: &Ran) -> Value {
    let board: Value = serde_json::from_str(&ran.stdout).unwrap();
    board["loops"][0]["deliveries"].clone()
}

#[test]
fn a_board_says_what_became_of_fixes_and_what_each_that_was_kept_has_cost() {
    let (project, _, _github) = two_runs();
    let unknown = project.run(&["board", "--repo", "o/r=all", "--json"]).code(0);
    assert_eq!(deliveries(&unknown), Value::Null);
    project.run(&["board", "--repo", "o/r=all", "--fetch"]).code(2).says("there is no token");
    let project = project.env("GITHUB_TOKEN", "t");
    let asked = project.run(&["board", "--repo", "o/r=all", "--fetch", "--json"]).code(0);
    let found = deliveries(&asked);
    assert_eq!(found["fates"], json!({"edited": 1, "closed": 1}), "{found}");
    assert_eq!(
        (&found["delivered"], &found["kept"], &found["per_kept_fix_usd"], &found["is_whole"]),
        (&json!(2), &json!(1), &json!(1.2), &json!(true)),
        "{found}"
    );
    assert_eq!(found["by_model"].as_array().unwrap().len(), 1, "{found}");
    asked.says("left out of o/r: 1 pull request of loops without a run here");
    // The file says the same to a board that has no token.
    project.run(&["deliveries", "--repo", "o/r", "-o", "all/web.deliveries.json"]).code(0);
    let read = project.env("GITHUB_TOKEN", "").run(&["board", "--repo", "o/r=all", "--json"]).code(0);
    assert_eq!(deliveries(&read), found);
}

#[test]
fn what_a_server_does_not_say_stays_unknown() {
    let (project, _, _github) = two_runs();
    let project = project.env("GITHUB_TOKEN", "t");
    let ran = project.run(&["board", "--repo", "o/elsewhere=all", "--fetch", "--json"]).code(0);
    assert_eq!(deliveries(&ran), Value::Null);
    ran.says("what became of the deliveries of o/elsewhere is unknown: ");
    // No repository of another server is asked for.
    let ran = project.run(&["board", "--repo", "git.example/o/r=all", "--fetch", "--json"]).code(0);
    assert_eq!((deliveries(&ran), ran.all().contains("unknown: ")), (Value::Null, false), "{}", ran.all());
}

#[test]
fn what_a_file_claims_of_deliveries_is_text_on_a_board() {
    let (project, runs, _github) = two_runs();
    let delivery = |run: &str, cost: f64| {
        json!({"number": 1, "url": "javascript:alert(1)", "run": run, "loop": "main", "opened": "2026-01-01T00:00:00Z",
               "fate": "merged", "cost_usd": cost, "model": "<script>alert(2)</script>"})
    };
    let list = |deliveries: Value| {
        json!({"schema": 1, "repository": "o/r", "at": "2026-01-01T00:00:00Z", "deliveries": deliveries})
            .to_string()
    };
    project.write("all/deliveries.json", &list(json!([delivery("unseen", 1e308), delivery("unseen", -1.0)])));
    let page = project.run(&["board", "--repo", "o/r=all"]).code(0).stdout;
    assert!(page.contains("&lt;script&gt;alert(2)") && !page.contains("<script>alert(2)"), "{page}");
    assert!(!page.contains("href=\"javascript"), "{page}");
    // A price that nobody could have paid is none, and the journal knows better than the file.
    let found = deliveries(&project.run(&["board", "--repo", "o/r=all", "--json"]).code(0));
    assert_eq!((&found["by_model"][0]["priced"], &found["per_kept_fix_usd"]), (&json!(1), &Value::Null));
    project.write("all/deliveries.json", &list(json!([delivery(&runs[0], 1000.0)])));
    let found = deliveries(&project.run(&["board", "--repo", "o/r=all", "--json"]).code(0));
    assert_eq!(found["per_kept_fix_usd"], 0.6, "{found}");
    for damaged in ["{", "{\"schema\": 2}", &list(json!([])).replace("\"schema\":1", "\"schema\":2")] {
        project.write("all/deliveries.json", damaged);
        project.run(&["board", "--repo", "o/r=all"]).code(0).says("deliveries.json is left out: ");
    }
}
