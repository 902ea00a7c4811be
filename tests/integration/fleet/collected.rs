//! The artifacts of a repository that a board is made of are fetched once, and those of strangers never.

use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, ResponseTemplate};

use crate::ci::relay;
use crate::ci::reported::Github;
use crate::common::Project;

/// A server with artifacts of `o/r`, the newest first, of which each that is fetched has this content.
fn server(content: &[u8]) -> Github {
    let github = Github::silent();
    let get = |at: &str| Mock::given(method("GET")).and(path(at));
    let row = |id: u32, name: &str, head: u32, created: &str, is_expired: bool| {
        json!({"id": id, "name": name, "expired": is_expired, "created_at": created,
               "workflow_run": {"id": 7, "repository_id": 1, "head_repository_id": head, "head_sha": "0"}})
    };
    let now = "2999-01-01T00:00:00Z";
    let rows = [
        row(9, "ll-loop-main-x-r7-a1", 1, now, false),
        row(8, "pages", 1, now, false),
        row(7, "ll-loop-main-x-r7-a1", 2, now, false),
        row(6, "ll-loop-main-x-r7-a1", 1, now, true),
        row(5, "ll-loop-main-x-r7-a1", 1, "2020-01-01T00:00:00Z", false),
        row(4, "ll-loop-main-x-r7-a1", 1, now, false),
    ];
    let answer = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    github.mount(get("/repos/o/r").respond_with(answer(json!({"id": 1}))));
    github.mount(get("/repos/o/r/actions/artifacts").respond_with(answer(json!({"artifacts": rows}))));
    for id in 4..10 {
        let blob = format!("/blob/{id}");
        let moved =
            ResponseTemplate::new(302).insert_header("location", format!("{}{blob}", github.address()));
        github.mount(get(&format!("/repos/o/r/actions/artifacts/{id}/zip")).respond_with(moved));
        github.mount(get(&blob).respond_with(ResponseTemplate::new(200).set_body_bytes(content)));
    }
    github
}

#[test]
fn what_was_stored_lately_is_fetched_once_and_becomes_a_board() {
    let github = server(&relay::left(relay::PASSING, &[], &[]).zip);
    let project = Project::new()
        .env("GITHUB_API_URL", github.address())
        .env("GITHUB_TOKEN", "t")
        .env("LL_RETRY_WAIT", "1ms");
    let fetch = ["artifact", "download", "ll-loop-*", "--since", "30d", "--repo", "o/r", "--to", "runs/o/r"];
    project.run(&fetch).code(0).says("fetched 1 artifact of o/r, and 0 were there");
    project.run(&fetch).code(0).says("fetched 0 artifacts of o/r, and 1 were there");
    let names: Vec<_> =
        std::fs::read_dir(project.at("runs/o/r")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["9.zip"]);
    let shown = project.run(&["board", "--repo", "o/r=runs/o/r", "--json"]).code(0).stdout;
    let board: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&board["loops"][0]["repository"], &board["loops"][0]["loop"]),
        (&json!("o/r"), &json!("main"))
    );
    for refused in [&["--run", "7"][..], &["--repo", ".."], &["--since", "soon"]] {
        project.run(&[&fetch[..], refused].concat()).code(2);
    }
}
