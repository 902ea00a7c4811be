//! What became of what runs delivered, as a server tells it.

use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, ResponseTemplate};

use crate::ci::reported::Github;
use crate::common::Project;

const LOOP: &str =
    "name: tidy\ninitial: a\nstates:\n  a: {action: 'true', on_yes: b, on_no: b}\n  b: {terminal: true}\n";

fn id(last: u32) -> String {
    format!("tidy-20260101T000000-00000{last}")
}

pub(crate) fn pull(number: u32, run: &str, more: &Value) -> Value {
    let patch = "1".repeat(40);
    let body = format!("Fixed.\n<!-- ll-loop:deliver run={run} patch={patch} verified -->\n");
    let mut row = json!({
        "number": number, "html_url": format!("https://github.com/o/r/pull/{number}"), "state": "closed", "body": body,
        "created_at": "2026-01-01T00:00:00Z", "closed_at": "2026-01-02T00:00:00Z", "merged_at": null,
        "merge_commit_sha": format!("{number:040x}"), "base": {"ref": "main"},
    });
    for (key, value) in more.as_object().unwrap() {
        row[key] = value.clone();
    }
    row
}

pub(crate) fn commit(message: &str, parents: usize) -> Value {
    json!({"commit": {"message": message}, "parents": vec![json!({"sha": "0"}); parents]})
}

/// Lets a server answer a question about `o/r`.
pub(crate) fn answers(github: &Github, at: &str, body: &Value) {
    let mock = Mock::given(method("GET")).and(path(format!("/repos/o/r{at}")));
    github.mount(mock.respond_with(ResponseTemplate::new(200).set_body_json(body)));
}

fn server() -> Github {
    let github = Github::silent();
    let answer = |at: &str, body: Value| answers(&github, at, &body);
    let merged = json!({"merged_at": "2026-01-02T00:00:00Z", "head": {"repo": {"full_name": "O/r"}}});
    let pulls = json!([
        pull(1, &id(1), &merged),
        pull(2, &id(2), &merged),
        pull(3, &id(3), &json!({"merged_at": "2026-01-03T00:00:00Z"})),
        pull(4, &id(4), &json!({})),
        pull(5, &id(5), &json!({"state": "open", "closed_at": null})),
        pull(6, &id(6), &json!({"body": "of a person", "merged_at": "2026-01-02T00:00:00Z"})),
        // Anybody can copy a mark into a pull request from a fork.
        pull(7, &id(7), &json!({"head": {"repo": {"full_name": "mallory/r"}}})),
        pull(8, &id(8), &json!({"head": {"repo": null}})),
    ]);
    answer("/pulls", pulls);
    let ours =
        format!("Fix what tidy found (1 file)\n\nLL-Loop: tidy@1\nLL-Run: x\nLL-Patch: {}", "1".repeat(40));
    answer("/pulls/1/commits", json!([commit(&ours, 1), commit("Merge branch 'main'", 2)]));
    answer("/pulls/2/commits", json!([commit(&ours, 1), commit("Use the other name", 1)]));
    answer("/pulls/3/commits", json!([commit(&ours, 1)]));
    let revert = format!("Revert \"Fix\"\n\nThis reverts commit {:040x}.", 3);
    answer("/commits", json!([commit(&revert, 1), commit("Something else", 1)]));
    github
}

fn project(github: &Github) -> Project {
    Project::with_loop(LOOP)
        .env("GITHUB_API_URL", github.address())
        .env("GITHUB_TOKEN", "t")
        .env("LL_RETRY_WAIT", "1ms")
}

#[test]
fn each_delivery_has_what_became_of_it() {
    let github = server();
    let project = project(&github);
    let shown = project.run(&["stats", "--deliveries", "--repo", "o/r", "--json"]).code(0).stdout;
    let list: Value = serde_json::from_str(&shown).unwrap();
    let fates: Vec<(u64, &str)> = list["deliveries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|delivery| (delivery["number"].as_u64().unwrap(), delivery["fate"].as_str().unwrap()))
        .collect();
    assert_eq!(fates, [(1, "merged"), (2, "edited"), (3, "reverted"), (4, "closed"), (5, "open")]);
    assert_eq!((&list["repository"], &list["deliveries"][0]["loop"]), (&json!("o/r"), &json!("tidy")));
    let ran = project.run(&["stats", "tidy", "--deliveries", "--repo", "o/r"]).code(0);
    for said in [
        "5 pull requests of o/r",
        "#2  tidy  edited and merged",
        "tidy: 2 of 5 kept, the cost of 5 runs is not known",
    ] {
        assert!(ran.all().contains(said), "{}", ran.all());
    }
    // It is the same by its own name, and as a file.
    let again = project.run(&["deliveries", "tidy", "--repo", "o/r"]).code(0);
    assert_eq!(again.stdout, ran.stdout);
    project.run(&["deliveries", "--repo", "o/r", "-o", "deliveries.json"]).code(0);
    let file: Value = serde_json::from_str(&project.read("deliveries.json")).unwrap();
    assert_eq!(
        (&file["deliveries"], &file["costs"][0]["per_kept_fix_usd"]),
        (&list["deliveries"], &Value::Null)
    );
    project.run(&["stats", "other", "--deliveries", "--repo", "o/r"]).code(0).says("0 pull requests of o/r");
}

#[test]
fn what_a_run_has_cost_is_read_where_its_journal_is() {
    let github = server();
    let project = project(&github);
    project.write(".loops/tidy.yaml", LOOP);
    project.run(&["run", "tidy"]).code(0);
    let journal = project.run_files(".events.jsonl").remove(0);
    let run = journal.file_name().unwrap().to_str().unwrap().trim_end_matches(".events.jsonl").to_owned();
    let pulls = json!([pull(1, &run, &json!({"merged_at": "2026-01-02T00:00:00Z"}))]);
    let again = Github::silent();
    let mount = |at: &str, body: Value| answers(&again, at, &body);
    mount("/pulls", pulls);
    mount("/pulls/1/commits", json!([commit("Fix\n\nLL-Patch: 1", 1)]));
    mount("/commits", json!([]));
    let project = project.env("GITHUB_API_URL", again.address());
    let ran = project.run(&["stats", "--deliveries", "--repo", "o/r"]).code(0);
    ran.says("tidy: 1 of 1 kept, $0.00 for each fix that was kept");
}

#[test]
fn an_open_delivery_is_found_by_the_name_of_its_loop_in_a_directory() {
    let text = LOOP.replace("name: tidy", "name: team/tidy");
    let github = Github::silent();
    let project = project(&github).file(".loops/team/tidy.yaml", &text);
    project.run(&["run", "team/tidy"]).code(0);
    let journal = project.run_files(".events.jsonl").remove(0);
    let run = journal.file_name().unwrap().to_str().unwrap().trim_end_matches(".events.jsonl").to_owned();
    answers(&github, "/pulls", &json!([pull(1, &run, &json!({"state": "open", "closed_at": null}))]));
    let ran = project.run(&["deliveries", "team/tidy", "--repo", "o/r"]).code(0);
    ran.says("1 pull request of o/r").says("#1  team/tidy  open");
}

#[test]
fn nobody_is_asked_without_a_repository_and_a_token() {
    let project = Project::with_loop(LOOP);
    project.run(&["stats", "--deliveries"]).code(2).says("no repository is known");
    project.run(&["stats", "--deliveries", "--repo", "o/r"]).code(2).says("there is no token");
    project.run(&["stats", "--deliveries", "--repo", "o"]).code(2).says("`o` is not a repository");
    project.run(&["stats", "--repo", "o/r"]).code(2).says("`--repo` says where");
    let away = project
        .env("GITHUB_API_URL", "http://127.0.0.1:1")
        .env("GITHUB_TOKEN", "t")
        .env("LL_RETRY_WAIT", "1ms");
    away.run(&["stats", "--deliveries", "--repo", "o/r"]).code(69).says("cannot ask the server");
}
