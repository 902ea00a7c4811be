//! What `plan` makes of values, directories and changes, and what it refuses.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::{item, plan, read_plan, repository};
use crate::common::{Project, git};

fn scopes(plan: &Value) -> Vec<String> {
    plan["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            item["scope"]
                .as_array()
                .unwrap()
                .iter()
                .map(|path| path.as_str().unwrap())
                .collect::<Vec<_>>()
                .join("+")
        })
        .collect()
}

/// Plans with these values of `path`.
fn values(project: &Project, each: &str) -> Vec<String> {
    project.run(&["plan", "main", "--each", each]).code(0);
    let plan = read_plan(project);
    plan["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["params"]["path"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_item_is_a_directory_a_value_or_a_line() {
    let project = repository(&[("api", "ok"), ("web", "ok")]);
    let plan = plan(&project, &["--legs", "1"]);
    assert_eq!(scopes(&plan), ["packages/api", "packages/web"]);
    assert_eq!(plan["legs"].as_array().unwrap().len(), 1);
    assert_eq!(plan["commit"], git(&project, &["rev-parse", "HEAD"]));
    assert_eq!(
        values(&project, "path=packages/web,packages/api,packages/web"),
        ["packages/web", "packages/api"]
    );
    assert_eq!(
        values(&project, "path=cmd:ls -d packages/api 'packages/web'"),
        ["packages/api", "packages/web"]
    );
    fs::write(project.at("out.txt"), "packages/api\n\npackages/web\r\n").unwrap();
    git(&project, &["add", "out.txt"]);
    git(&project, &["commit", "-qm", "list"]);
    assert_eq!(values(&project, "path=@out.txt"), ["packages/api", "packages/web"]);
}

#[test]
fn a_file_that_each_module_has_finds_the_modules() {
    let project = repository(&[("api", "ok"), ("api/inner", "ok"), ("web", "ok")]);
    let per_path = |pattern: &str| {
        project.run(&["plan", "main", "--per-path", pattern]).code(0);
        scopes(&read_plan(&project))
    };
    assert_eq!(per_path("packages/*/state"), ["packages/api", "packages/web"]);
    assert_eq!(per_path("**/inner/state"), ["packages/api/inner"]);
    assert_eq!(per_path("fix.*"), [""; 0], "a pattern for directories does not mean the files beside them");
    // A directory of that name is meant before a file.
    project.write("packages/state/of/things", "");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "directory"]);
    assert_eq!(per_path("packages/state"), ["packages/state"]);
    // The module at the root of the repository works on all others, too.
    let ran = project.run(&["plan", "main", "--per-path", "**/state"]).code(0);
    assert!(!ran.all().contains("warning"), "{}", ran.all());
    fs::remove_dir_all(project.at("packages/state")).unwrap();
    project.write("state", "ok\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "root"]);
    let ran = project.run(&["plan", "main", "--per-path", "**/state"]).code(0);
    drop(ran.says("4 items on 1 leg").says("claims `.`, and with it what the others work on"));
    assert_eq!(scopes(&read_plan(&project))[0], ".");
}

#[test]
fn a_submodule_is_a_directory_of_the_repository() {
    let project = repository(&[("api", "ok")]);
    let other = repository(&[("x", "ok")]);
    let from = other.path().display().to_string();
    git(
        &project,
        &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "packages/vendored"],
    );
    git(&project, &["commit", "-qm", "submodule"]);
    assert_eq!(scopes(&plan(&project, &[])), ["packages/api", "packages/vendored"]);
    assert_eq!(scopes(&plan(&project, &["--changed-since", "HEAD~1"])), ["packages/vendored"]);
    git(&project, &["submodule", "deinit", "-q", "--all"]);
    assert_eq!(scopes(&plan(&project, &[])), ["packages/api", "packages/vendored"]);
}

#[test]
fn a_pattern_that_matches_nothing_is_pointed_out() {
    let project = repository(&[("api", "ok")]);
    let ran = project.run(&["plan", "main", "--per-path", "package/*"]).code(0);
    drop(
        ran.says("nothing to run")
            .says("no directory with tracked files matches `package/*`, so nothing is checked"),
    );
    let ran = project.run(&["plan", "main", "--per-path", "packages/*", "--changed-since", "HEAD"]).code(0);
    assert!(!ran.says("nothing to run").all().contains("is the pattern right"));
}

#[test]
fn values_of_strangers_are_values_and_nothing_else() {
    let project = repository(&[("api", "ok")]);
    let odd = [
        "${{ github.token }}",
        "a\nb",
        "it's \"so\"",
        "$(touch pwned)",
        "../../etc",
        "é\u{202e}x",
        "-rf",
        " ",
    ];
    let list = project.path().join("out");
    fs::create_dir(&list).unwrap();
    fs::write(list.join("odd.json"), json!(odd).to_string()).unwrap();
    assert_eq!(values(&project, "path=@out/odd.json"), odd);
    let plan = read_plan(&project);
    for item in plan["items"].as_array().unwrap() {
        let id = item["id"].as_str().unwrap();
        assert!(id.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)), "{id}");
    }
    let github = project.run(&["plan", "main", "--each", "path=@out/odd.json", "--matrix", "github"]).code(0);
    let matrix: Value = serde_json::from_str(&github.stdout).unwrap();
    let jobs = matrix["include"].as_array().unwrap();
    assert_eq!(jobs.len(), plan["legs"].as_array().unwrap().len());
    assert!(jobs.iter().all(|job| job.as_object().unwrap().len() == 2), "keys and titles alone: {matrix}");
    assert!(!project.exists("pwned"));
}

#[test]
fn a_plan_has_at_most_ten_thousand_items() {
    let project = repository(&[("api", "ok")]);
    fs::create_dir(project.at("out")).unwrap();
    let list = |count: usize| {
        let lines = (0..count).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "p{n}");
            text
        });
        fs::write(project.at("out/list"), lines).unwrap();
    };
    list(10_000);
    project.run(&["plan", "main", "--each", "path=@out/list"]).code(0);
    assert_eq!(read_plan(&project)["items"].as_array().unwrap().len(), 10_000);
    list(10_001);
    project.run(&["plan", "main", "--each", "path=@out/list"]).code(2).says("more than 10000 items");
    list(300);
    let many = ["plan", "main", "--each", "path=@out/list", "--legs", "300", "--matrix", "github"];
    project.run(&many).code(2).says("300").says("256").says("--legs");
}

#[test]
fn what_cannot_be_planned_says_why() {
    let project = repository(&[("api", "ok")]);
    let refused = |arguments: &[&str], says: &str| {
        drop(project.run(&[&["plan"], arguments].concat()).code(2).says(says));
    };
    refused(&["main", "--each", "nothing=a"], "not declared in `main`");
    refused(&["main", "--each", "path=a", "--per-path", "packages/*"], "given twice");
    refused(&["main", "--each", "path=cmd:ls absent"], "exit code 2");
    refused(&["main", "--each", "path=cmd:no-such-program"], "could not be run");
    refused(&["main", "--each", "path=cmd:ls 'open"], "not a command");
    refused(&["main", "--each", "path=cmd:yes"], "more than 16 MiB");
    refused(&["main", "--each", "path=cmd:printf '\\377'"], "not UTF-8");
    project.write(".git/values.json", r#"["a\u0000b"]"#);
    refused(&["main", "--each", "path=@.git/values.json"], "NUL byte");
    refused(&["main", "--each", "path=@absent"], "cannot read the values");
    refused(&["main", "--each", "path"], "write `NAME=VALUE,VALUE`");
    refused(&["main", "--per-path", "packages/{"], "--per-path");
    refused(&["absent"], "absent");
    refused(&["main", "--each", "path=a", "--weights", "absent.json"], "cannot read weights");
    refused(&["main", "--each", "path=a", "--changed-since", "absent"], "absent");
    refused(&["main", "--each", "path=a", "--legs", "0"], "from 1");
    assert!(!project.exists("plan.json"), "what is refused leaves no plan");
    project.write("packages/api/state", "changed\n");
    refused(&["main", "--each", "path=a"], "differs from its commit");
    project.run(&["plan", "main", "--each", "path=a", "--dirty"]).code(0);
    git(&project, &["checkout", "-q", "packages"]);
    project.write("notes.json", "{}");
    refused(&["main", "--each", "path=a"], "`notes.json`");
    refused(&["main", "--each", "path=a"], "`.gitignore`");
}

#[test]
fn an_earlier_plan_is_no_change_and_a_secret_is_no_value() {
    let project = repository(&[("api", "ok")]).env("DEPLOY_TOKEN", "s3cr3t-t0ken-of-a-team");
    let there = ["plan", "main", "--each", "path=a", "-o", "p.json"];
    project.run(&there).code(0);
    project.run(&there).code(0);
    // Neither is one that was written to another place.
    project.run(&["plan", "main", "--each", "path=b", "-o", "q.json"]).code(0);
    project
        .run(&["plan", "main", "--each", "path=s3cr3t-t0ken-of-a-team", "-o", "p.json"])
        .code(2)
        .says("holds a secret");
}

#[test]
fn a_pattern_matches_whole_directories_with_tracked_files() {
    let names = ["api", "web app", "web\nline", "ünï"];
    let packages: Vec<(&str, &str)> = names.iter().map(|name| (*name, "ok")).collect();
    let project = repository(&packages);
    fs::create_dir_all(project.at("packages/untracked/deep")).unwrap();
    fs::write(project.at("packages/untracked/deep/x"), "").unwrap();
    project.write(".git/info/exclude", "untracked\n");
    let found = |pattern: &str| {
        project.run(&["plan", "main", "--per-path", pattern]).code(0);
        read_plan(&project)["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["params"]["path"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found("packages/*"),
        ["packages/api", "packages/web\nline", "packages/web app", "packages/ünï"]
    );
    assert_eq!(found("./packages/w*/"), ["packages/web\nline", "packages/web app"]);
    assert_eq!(found("**/{api,ünï}"), ["packages/api", "packages/ünï"]);
    assert_eq!(found("*"), [".loops", "packages"]);
}

#[test]
fn a_plan_without_items_is_fine_and_says_why() {
    let project = repository(&[("api", "ok")]).in_github_job();
    project.write(".git/info/exclude", "out\nsummary\n");
    project.run(&["plan", "main", "--per-path", "nothing/*"]).code(0).says("nothing/*");
    let outputs = project.read("out");
    assert!(outputs.contains("any") && outputs.contains("false") && !outputs.contains("matrix"), "{outputs}");
    let plan = read_plan(&project);
    assert!(plan["reason"].as_str().unwrap().contains("nothing/*"), "{plan}");
    project.run(&["run", "--plan", "plan.json"]).code(0).says("nothing/*");
    project.run(&["merge", "--report-dir", "merged"]).code(0).says("nothing/*");
}

#[test]
fn what_did_not_change_is_skipped_with_a_reason() {
    let project = repository(&[("api", "ok"), ("web", "ok")]);
    project.write("packages/web/state", "worse\n");
    git(&project, &["commit", "-qam", "worse"]);
    let found = plan(&project, &["--changed-since", "HEAD~1"]);
    assert_eq!(scopes(&found), ["packages/web"]);
    assert_eq!(found["skipped"][0]["id"], item(&found, "api"));
    assert_eq!(found["skipped"][0]["reason"], "nothing in `packages/api` changed since HEAD~1");
    let none = plan(&project, &["--changed-since", "HEAD"]);
    assert_eq!((scopes(&none).len(), none["skipped"].as_array().unwrap().len()), (0, 2));
    // Nobody knows what changed where git does not look.
    project.run(&["plan", "main", "--each", "path=absent", "--changed-since", "HEAD"]).code(0);
    assert_eq!(scopes(&read_plan(&project)), ["absent"]);
    // The loop itself is part of what is checked.
    project.write(".loops/main.yaml", &format!("{}# more\n", super::TIDY));
    git(&project, &["commit", "-qam", "loop"]);
    assert_eq!(scopes(&plan(&project, &["--changed-since", "HEAD~1"])).len(), 2);
}

#[test]
fn items_that_claim_everything_share_a_leg_and_the_plan_says_so() {
    let project = Project::with_loop(&super::TIDY.replace("scope: ['${context.path}']\n", ""));
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    let ran = project.run(&["plan", "main", "--each", "path=a,b,c", "-o", "p.json"]).code(0);
    let ran =
        ran.says("3 items on 1 leg").says("claim the whole directory").says("scope: [src/${context.path}]");
    drop(ran.says("--per-path"));
}

#[test]
fn earlier_durations_decide_who_shares_a_leg() {
    let project = repository(&[("a", "ok"), ("b", "ok"), ("c", "ok")]);
    let first = plan(&project, &[]);
    let runs = |ms: u64| json!([{"duration_ms": ms, "verified": true}]);
    let weights = json!({"items": [
        {"id": item(&first, "a"), "runs": runs(9000)},
        {"id": item(&first, "b"), "runs": runs(2000)},
        {"id": item(&first, "c"), "runs": runs(3000)},
    ]});
    fs::create_dir(project.at("out")).unwrap();
    fs::write(project.at("out/weights.json"), weights.to_string()).unwrap();
    let weighed = plan(&project, &["--legs", "2", "--weights", "out/weights.json"]);
    assert_eq!(weighed["legs"][0]["items"], json!([item(&first, "a")]));
    assert_eq!(weighed["legs"][1]["items"], json!([item(&first, "b"), item(&first, "c")]));
    assert_eq!(weighed["legs"][1]["estimate_ms"], 5000);
    // The id is about what runs where, and not about how long that takes.
    fs::write(project.at("out/weights.json"), weights.to_string().replace("9000", "9999")).unwrap();
    assert_eq!(
        plan(&project, &["--legs", "2", "--weights", "out/weights.json"])["plan_id"],
        weighed["plan_id"]
    );
}

#[test]
fn the_last_merge_on_github_says_how_long_items_took() {
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    use crate::ci::reported::Github;

    let project = repository(&[("a", "ok"), ("b", "ok")]);
    let first = plan(&project, &[]);
    let weights =
        json!({"items": [{"id": item(&first, "a"), "runs": [{"duration_ms": 7000, "verified": true}]}]});
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("result.json"), weights.to_string()).unwrap();
    let zip = place.path().join("artifact.zip");
    let packed = std::process::Command::new("python3")
        .args(["-m", "zipfile", "-c", zip.to_str().unwrap(), "result.json"])
        .current_dir(place.path())
        .status();
    assert!(packed.unwrap().success());
    let github = Github::silent();
    let project = project
        .env("GITHUB_API_URL", github.address())
        .env("GITHUB_REPOSITORY", "o/r")
        .env("GITHUB_REPOSITORY_ID", "1")
        .env("GITHUB_TOKEN", "ghs_geheim")
        .env("LL_RETRY_WAIT", "1ms");
    let latest = ["plan", "main", "--per-path", "packages/*", "--weights", "run:latest"];
    // Where nothing can be fetched, there is a plan all the same.
    project.run(&latest).code(0).says("how long items take");
    assert_eq!(read_plan(&project)["items"][0]["weight_from"], "default");
    let answer = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let get = |at: &str| Mock::given(method("GET")).and(path(format!("/repos/o/r/actions/{at}")));
    let row = |id: u32, name: &str| json!({"id": id, "name": name, "expired": false, "workflow_run": {"id": 7, "repository_id": 1, "head_repository_id": 1}});
    // Among what the workflow has left, only the merge is meant.
    let names = ["ll-loop-main-l01-r7-a1", "ll-loop-main-merge-r7-a1", "ll-plan-main-r7-a1"];
    let rows: Vec<Value> = names.iter().zip([4, 5, 6]).map(|(name, id)| row(id, name)).collect();
    let all = answer(json!({"artifacts": rows}));
    github.mount(get("artifacts").respond_with(all.clone()));
    github.mount(get("runs/7/artifacts").respond_with(all));
    let location = format!("{}/blob?sig=geheim", github.address());
    github.mount(
        get("artifacts/5/zip").respond_with(ResponseTemplate::new(302).insert_header("location", location)),
    );
    let blob = ResponseTemplate::new(200).set_body_bytes(fs::read(zip).unwrap());
    github.mount(Mock::given(method("GET")).and(path("/blob")).respond_with(blob));
    project.run(&latest).code(0);
    let plan = read_plan(&project);
    let weight = |package: &str| {
        let id = item(&plan, package);
        let found = plan["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap();
        (found["weight_ms"].as_u64().unwrap(), found["weight_from"].as_str().unwrap().to_owned())
    };
    assert_eq!(weight("a"), (7000, "runs".to_owned()));
    assert_eq!(weight("b"), (7000, "median".to_owned()));
}

/// Plans the items of two packages in which nothing changed since the last commit, after this change to the repository.
fn since_last_commit(change: impl FnOnce(&Project), each: &[&str]) -> (Vec<String>, String) {
    let project = repository(&[("api", "ok"), ("web", "ok")]);
    change(&project);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "more", "--allow-empty"]);
    let ran = project.run(&[&["plan", "main", "--changed-since", "HEAD"], each].concat()).code(0);
    (scopes(&read_plan(&project)), ran.all())
}

#[test]
fn only_what_is_known_is_skipped() {
    const EACH: [&str; 2] = ["--per-path", "packages/*"];
    let (runs, _) = since_last_commit(|_| {}, &EACH);
    assert!(runs.is_empty());
    let sub_loop = |name: &str| {
        let state = "fix: {loop: NAME, on_success: check, on_failure: done}".replace("NAME", name);
        let own = "fix: {action: './fix.sh ${context.path:shell}', next: check}";
        super::TIDY.replace(own, &state)
    };
    let all = ["packages/api", "packages/web"];
    let (runs, said) = since_last_commit(
        |project| {
            project.write(".loops/main.yaml", &sub_loop("inner"));
            project.write(".loops/inner.yaml", "name: inner\nstates: [");
        },
        &EACH,
    );
    assert!(
        runs == all && said.contains("the loop `inner`, which `fix` of `main` runs, cannot be read"),
        "{said}"
    );
    let (runs, said) =
        since_last_commit(|project| project.write(".loops/main.yaml", &sub_loop("'${context.path}'")), &EACH);
    assert!(runs == all && said.contains("`fix` of `main` chooses its loop only while it runs"), "{said}");
    let (runs, said) = since_last_commit(
        |project| {
            project.write("shared/state", "ok\n");
            std::os::unix::fs::symlink("../../shared", project.at("packages/api/lib")).unwrap();
        },
        &EACH,
    );
    assert!(runs == ["packages/api"] && said.contains("`packages/api/lib` of the scope"), "{said}");
    assert!(said.contains("is a link to `shared`, which is outside of it, so `main.packages-api"), "{said}");
    let (runs, said) = since_last_commit(|_| {}, &["--each", "path=/etc/hosts"]);
    assert!(runs == ["/etc/hosts"] && said.contains("outside of the repository"), "{said}");
}

#[test]
fn what_git_is_told_not_to_see_is_not_skipped() {
    let project = repository(&[("api", "ok"), ("web", "ok")]);
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        git(&project, &["update-index", flag, "packages/api/state"]);
        let ran =
            project.run(&["plan", "main", "--per-path", "packages/*", "--changed-since", "HEAD"]).code(0);
        drop(ran.says("the index tells git not to look at it"));
        assert_eq!(scopes(&read_plan(&project)), ["packages/api"], "{flag}");
        git(&project, &["update-index", &flag.replace("--", "--no-"), "packages/api/state"]);
    }
    // A module that moved is seen, whatever `.gitmodules` says.
    let other = repository(&[("x", "ok")]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "second"]);
    let from = other.path().display().to_string();
    git(
        &project,
        &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "packages/vendored"],
    );
    git(&project, &["config", "-f", ".gitmodules", "submodule.packages/vendored.ignore", "all"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "submodule"]);
    assert!(scopes(&plan(&project, &["--changed-since", "HEAD"])).is_empty());
    git(&project, &["-C", "packages/vendored", "checkout", "-q", "HEAD~1"]);
    git(&project, &["add", "-f", "packages/vendored"]);
    git(&project, &["commit", "-qm", "moved"]);
    assert_eq!(scopes(&plan(&project, &["--changed-since", "HEAD~1"])), ["packages/vendored"]);
}

#[test]
fn a_scope_that_was_named_by_a_link_is_another_one_where_the_link_leads_elsewhere() {
    let project = repository(&[("api", "ok"), ("web", "ok")]);
    std::os::unix::fs::symlink("packages/api", project.at("current")).unwrap();
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "link"]);
    fs::remove_file(project.at("current")).unwrap();
    std::os::unix::fs::symlink("packages/web", project.at("current")).unwrap();
    git(&project, &["commit", "-qam", "other"]);
    project.run(&["plan", "main", "--each", "path=current", "--changed-since", "HEAD~1"]).code(0);
    assert_eq!(scopes(&read_plan(&project)), ["packages/web"]);
}
