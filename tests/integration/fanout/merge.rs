//! What legs have left, brought together: what is missing is never green, and what anybody may have written is not
//! believed.

use std::fs;

use serde_json::{Value, json};

use super::{Fan, bundle, item, plan, read_plan, repository, with_fix};
use crate::bundles::hostile_bundles::Parts;

fn three() -> (Fan, Value) {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "bad"), ("c", "bad")]));
    let plan = plan(&fan.project, &["--legs", "3"]);
    (fan, plan)
}

fn all_legs(fan: &Fan) {
    for key in ["l01", "l02", "l03"] {
        fan.leg(key).code(0);
    }
}

#[test]
fn all_legs_together_are_one_result_and_one_fix() {
    let (fan, plan) = three();
    all_legs(&fan);
    fan.merge("merged", &["legs"]).code(0).says("3 of 3 items verified");
    let result = fan.result("merged");
    // Nobody has checked what two of them changed together.
    assert_eq!((&result["verified"], result["exit_code"].as_u64()), (&json!("each alone"), Some(0)));
    assert_eq!(result["verification"]["extent"], "each_alone");
    assert_eq!(result["plan_id"], plan["plan_id"]);
    let summary = fs::read_to_string(fan.at("merged/summary.md")).unwrap();
    assert!(summary.contains("success: 3 of 3 items verified"), "{summary}");
    assert!(summary.contains("verified: each alone"), "{summary}");
    let junit = fs::read_to_string(fan.at("merged/junit.xml")).unwrap();
    for package in ["a", "b", "c"] {
        assert!(junit.contains(&format!("<testsuite name=\"{}\"", item(&plan, package))), "{junit}");
    }
    let page = fs::read_to_string(fan.at("merged/report.html")).unwrap();
    assert!(page.contains(&item(&plan, "b")));
    let out = fan.text("patch");
    let ran =
        fan.project.run(&["deliver", &fan.text("merged"), "--to", "patch", "--report-dir", &out]).code(0);
    drop(ran.says("verified each alone"));
    let patch = fs::read_to_string(fan.at("patch/changes.patch")).unwrap();
    let files: Vec<&str> = patch.lines().filter(|line| line.starts_with("diff --git")).collect();
    assert_eq!(files.len(), 2, "{patch}");
    // What a merge says of durations is what a plan reads of them.
    let weights = fan.text("merged/result.json");
    let weighed = super::plan(&fan.project, &["--weights", &weights]);
    assert!(
        weighed["items"].as_array().unwrap().iter().all(|item| item["weight_from"] == "runs"),
        "{weighed}"
    );
}

#[test]
fn each_item_has_a_page_of_its_own() {
    let fix = "#!/bin/sh\necho \"<script>alert('of the leg')</script>\"\necho ok > \"$1/state\"\n";
    let fan = Fan::of(with_fix(&[("a", "ok"), ("b", "bad"), ("c", "bad")], fix));
    let plan = plan(&fan.project, &["--legs", "3"]);
    fan.leg("l01").code(0);
    fan.leg("l02").code(0);
    fan.merge("merged", &["legs"]).code(4);
    let read = |name: &str| fs::read_to_string(fan.at(&format!("merged/{name}"))).unwrap();
    for package in ["a", "b"] {
        let id = item(&plan, package);
        let page = read(&format!("items/{id}.html"));
        assert!(page.contains("id=\"step-1\"") && !page.contains("<script>alert"), "{page}");
        let link = format!("items/{id}.html");
        assert!(read("report.html").contains(&format!("href=\"{link}\"")), "{link}");
        assert!(read("summary.md").contains(&format!("({link})")), "{}", read("summary.md"));
    }
    // There is no run of the third, and a page that lies in its place is none of this merge.
    let missing = format!("items/{}.html", item(&plan, "c"));
    assert!(!fan.at("merged").join(&missing).exists() && !read("report.html").contains(&missing));
    fs::write(fan.at("merged").join(&missing), "earlier").unwrap();
    fan.merge("merged", &["legs"]).code(4);
    assert!(!fan.at("merged").join(&missing).exists());
}

#[test]
fn what_did_not_come_back_is_missing_and_said_first() {
    let (fan, _) = three();
    fan.leg("l01").code(0);
    fan.leg("l03").code(0);
    let ran = fan.merge("merged", &["legs"]).code(4);
    drop(ran.says("leg_missing: l02 (packages/b)"));
    let summary = fs::read_to_string(fan.at("merged/summary.md")).unwrap();
    let first = summary.lines().find(|line| line.contains("error: ")).unwrap();
    assert!(first.contains("missing: l02"), "{summary}");
    assert_eq!(fan.result("merged")["missing"], json!(["l02"]));
    let junit = fs::read_to_string(fan.at("merged/junit.xml")).unwrap();
    assert!(junit.contains("type=\"missing\""), "{junit}");
    fan.project.run(&["deliver", &fan.text("merged"), "--to", "patch"]).code(5);
    fs::create_dir(fan.at("empty")).unwrap();
    fan.merge("none", &["empty"]).code(4).says("0 of 3 items verified");
    fan.merge("nowhere", &["absent"]).code(2).says("absent");
}

#[test]
fn the_reports_begin_with_what_is_not_verified_and_why() {
    let fix = "#!/bin/sh\n[ $1 = packages/a ] && exit 0; [ $1 != packages/b ] || { echo '</details> | **b** is `broken`'; exit 1; }\necho ok > $1/state\n";
    let fan = Fan::of(with_fix(&[("a", "ok"), ("b", "bad"), ("c", "ok"), ("d", "ok")], fix));
    let plan = plan(&fan.project, &["--legs", "4"]);
    fan.leg("l01").code(0);
    fan.leg("l02").code(3);
    fan.leg("l04").code(0);
    drop(fan.merge("merged", &["legs"]).code(4));
    let read = |name: &str| fs::read_to_string(fan.at(&format!("merged/{name}"))).unwrap();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|package| item(&plan, package));
    let summary = read("summary.md");
    let places = [
        "4 items · ",
        "### Not verified",
        &format!("| `{c}` |  |  |  | leg l03: no run of it came back |"),
        &format!("| `{b}` | 3 | "),
        "exhausted: met the cap of 50 iterations",
        &format!("### Last output of `{b}`"),
        "</details> | **b** is `broken`",
        "<details><summary>2 verified items</summary>",
        &format!("| `{a}` | 0 | "),
        &format!("| `{d}` | 0 | "),
    ];
    let mut rest = summary.as_str();
    for place in places {
        let at = rest.find(place).unwrap_or_else(|| panic!("no {place:?} in its place:\n{summary}"));
        rest = &rest[at + place.len()..];
    }
    assert!(!summary.contains("ended at"), "{summary}");
    let text = read("summary.txt");
    let (missing, failed) =
        (text.find(&format!("✗ {c}: leg l03: no run")), text.find(&format!("✗ {b} (leg l02,")));
    assert!(missing.is_some() && missing < failed, "{text}");
    assert!(text.contains("✓ 2 verified items"), "{text}");
    let page = read("report.html");
    assert!(page.contains(&format!("<code>{c}</code>: leg l03: no run of it came back")), "{page}");
    assert!(page.contains(&format!("<code>{b}</code>: exhausted: met the cap")), "{page}");
    assert!(!page.contains("href=\"#state-"), "a merge has no part about states");
    let ran = fan.project.run(&["why", &fan.text("merged")]).code(0);
    let why: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with('←')).collect();
    assert_eq!(why[0], format!("← `{c}`: leg l03: no run of it came back [verdict-none]"));
    assert!(why[1].starts_with(&format!("← `{b}`: exhausted: ")) && why.len() == 2, "{}", ran.stdout);
}

#[test]
fn a_summary_of_many_items_is_short_and_counts_the_others() {
    let project = repository(&[("a", "ok")]);
    let values: Vec<String> = (0..700).map(|index| format!("p{index}")).collect();
    project
        .run(&["plan", "main", "--each", &format!("path=packages/a,{}", values.join(",")), "--legs", "701"])
        .code(0);
    let fan = Fan::of(project);
    let verified = read_plan(&fan.project)["legs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|leg| leg["items"].to_string().contains("packages-a"))
        .unwrap()["key"]
        .clone();
    drop(fan.leg(verified.as_str().unwrap()));
    drop(fan.merge("merged", &["legs"]).code(4).says("1 of 701 items verified").says(" and 680 more"));
    let summary = fs::read_to_string(fan.at("merged/summary.md")).unwrap();
    assert!(summary.contains("no run of it came back |\n\n… and "), "{summary}");
    assert!(summary.contains("<details><summary>1 verified item</summary>"), "{summary}");
    assert!(summary.contains(" more items not shown; `result.json` has all."), "{summary}");
    assert!(summary.lines().count() < 300, "{summary}");
    let text = fs::read_to_string(fan.at("merged/summary.txt")).unwrap();
    assert!(text.contains(" more items\n  ✓ 1 verified item\n"), "{text}");
}

#[test]
fn a_report_that_cannot_be_written_is_named_and_another_merge_makes_it() {
    let (fan, _) = three();
    all_legs(&fan);
    fs::create_dir_all(fan.at("merged/summary.md/x")).unwrap();
    let ran = fan.merge("merged", &["legs"]).code(0);
    drop(ran.says("not every report was written").says("; merge again when there is room"));
    fs::remove_dir_all(fan.at("merged/summary.md")).unwrap();
    fan.merge("merged", &["legs"]).code(0);
    assert!(fan.at("merged/summary.md").is_file());
}

#[test]
fn each_failed_item_is_an_annotation_where_its_output_says() {
    let fix = "#!/bin/sh\n[ $1 != packages/a ] || echo 'packages/a/state:1:2: error: bad%0A::error::forged'\nexit 1\n";
    let mut fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad"), ("c", "ok")], fix));
    let plan = plan(&fan.project, &["--legs", "3"]);
    fan.job("legs/l01", &["--leg", "l01", "--max-iterations", "2"]).code(3);
    fan.job("legs/l02", &["--leg", "l02", "--max-iterations", "2"]).code(3);
    for (name, value) in [("GITHUB_ACTIONS", "true"), ("GITHUB_EVENT_NAME", "push")] {
        fan.project = fan.project.env(name, value);
    }
    let workspace = fan.project.path().display().to_string();
    fan.project = fan.project.env("GITHUB_WORKSPACE", workspace);
    let ran = fan.merge("merged", &["legs"]).code(4);
    let said: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("::")).collect();
    let [a, b] = ["a", "b"].map(|package| item(&plan, package));
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said[0].ends_with("leg_missing: l03 (packages/c); 0 of 3 items verified"), "{said:#?}");
    let place = format!("::error file=packages/a/state,line=1,col=2,title={a}::");
    assert!(said[1].starts_with(&place) && said[1].ends_with("bad%250A::error::forged"), "{said:#?}");
    assert!(said[2].starts_with(&format!("::error title={b}::exhausted: met the cap")), "{said:#?}");
}

#[test]
fn what_cannot_be_read_is_missing_and_what_is_no_bundle_is_ignored() {
    let (fan, plan) = three();
    all_legs(&fan);
    fs::write(fan.at("legs/foreign.zip"), "no zip").unwrap();
    fs::write(fan.at("legs/notes.txt"), "").unwrap();
    std::os::unix::fs::symlink("/", fan.at("legs/root")).unwrap();
    fan.merge("merged", &["legs"]).code(0);
    assert!(fan.result("merged")["ignored"][0]["file"].as_str().unwrap().ends_with("foreign.zip"));
    let torn = bundle(&fan.at(&format!("legs/l01/{}", item(&plan, "a"))));
    let whole = fs::read(&torn).unwrap();
    for part in [&whole[..0], &whole[..whole.len() / 2], &whole[1..]] {
        fs::write(&torn, part).unwrap();
        fan.merge("merged", &["legs"]).code(4).says("leg_missing: l01 (packages/a)");
    }
    // Nobody knows what a bundle was that lies anywhere else.
    fs::write(&torn, &whole).unwrap();
    fs::write(fan.at("legs/lost.llz"), "").unwrap();
    fan.merge("merged", &["legs"]).code(4).says("nothing says of which item it is");
}

#[test]
fn the_outcome_of_a_merge_is_told_and_that_of_its_legs_is_not() {
    let inbox = crate::ci::reported::Github::silent();
    inbox.mount(
        wiremock::Mock::given(wiremock::matchers::method("POST"))
            .respond_with(wiremock::ResponseTemplate::new(200)),
    );
    let address = inbox.address();
    let (fan, _) = three();
    for key in ["l01", "l02", "l03"] {
        drop(fan.job(&format!("legs/{key}"), &["--leg", key, "--notify", &address]).code(0));
    }
    assert_eq!(inbox.received().len(), 0, "a leg is told by its merge");
    // Of an empty directory no item is known: that is red.
    let nothing = fan.text("nothing");
    std::fs::create_dir_all(&nothing).unwrap();
    let to = fan.text("merged");
    let ran = fan.project.run(&["merge", "--ci", "--report-dir", &to, "--notify", &address, &nothing]);
    assert_ne!(ran.code, Some(0), "{}", ran.all());
    let received = inbox.received();
    assert_eq!(received.len(), 1, "{}", ran.all());
    assert_eq!(
        (&received[0].1["is"], &received[0].1["loop"]),
        (&serde_json::json!("red"), &serde_json::json!("main"))
    );
}

#[test]
fn the_same_bundle_twice_is_one_and_a_merge_is_none() {
    let (fan, _) = three();
    all_legs(&fan);
    fan.merge("merged", &["legs"]).code(0);
    fan.merge("merged", &["legs", "legs", "merged"]).code(0).says("3 of 3 items verified");
    fan.merge("from-merged", &["merged"]).code(0).says("3 of 3 items verified");
    assert_eq!(
        bundle(&fan.at("merged")).extension().unwrap(),
        "llz",
        "one bundle, also after several merges"
    );
}

#[test]
fn two_merges_into_one_directory_leave_one_result() {
    let (fan, _) = three();
    all_legs(&fan);
    let (legs, merged) = (fan.text("legs"), fan.text("merged"));
    let merge = || {
        let mut command = fan.project.command(&["merge", "--ci", "--report-dir", &merged, &legs]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    for _ in 0..3 {
        let both = [merge(), merge()];
        for child in both {
            crate::common::Ran::of(&child.wait_with_output().unwrap()).code(0);
        }
        assert_eq!(fan.result("merged")["verified"], "each alone");
        fan.project.run(&["deliver", &merged, "--to", "patch", "--report-dir", &fan.text("patch")]).code(0);
    }
}

#[test]
fn runs_of_another_plan_commit_or_loop_are_refused() {
    let (fan, plan) = three();
    all_legs(&fan);
    super::plan(&fan.project, &["--legs", "1"]);
    let id = plan["plan_id"].as_str().unwrap();
    fan.merge("merged", &["legs"]).code(2).says(&id[..12]).says("belongs to the plan");
    let fan = Fan::of(repository(&[("a", "ok")]));
    super::plan(&fan.project, &[]);
    let reports = fan.text("legs/alone");
    fan.project.run(&["run", "main", "--param", "path=packages/a", "--report-dir", &reports, "--ci"]).code(0);
    fan.merge("merged", &["legs"]).code(2).says("belongs to no plan");
}

#[test]
fn what_failed_is_run_again_and_the_later_attempt_counts() {
    let fix = "#!/bin/sh\n[ $1 = packages/b ] && [ ! -e \"$FIXED\" ] && exit 0\necho ok > \"$1/state\"\n";
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], fix));
    let plan = plan(&fan.project, &["--legs", "2"]);
    let limit = ["--max-iterations", "2"];
    fan.job("legs/l01", &[&["--leg", "l01"][..], &limit].concat()).code(0);
    fan.job("legs/l02", &[&["--leg", "l02"][..], &limit].concat()).code(3);
    fan.merge("merged", &["legs"]).code(3).says("1 of 2 items verified").says("--rerun");
    assert_eq!(fan.result("merged")["rerun"], json!(["l02"]));
    fs::write(fan.at("fixed"), "").unwrap();
    let fan = Fan { project: fan.project.env("FIXED", "unused"), ..fan };
    let merged = fan.text("merged");
    // The job that runs it again has another environment.
    let fixed = crate::common::Project::new().env("FIXED", fan.text("fixed"));
    let clone = super::checkout(&fan.project, fixed);
    let (plan_file, again) = (fan.text("merged/plan.json"), fan.text("again"));
    let ran = clone.run(&[
        "run",
        "--plan",
        &plan_file,
        "--rerun",
        &merged,
        "--ci",
        "--on-change",
        "report",
        "--report-dir",
        &again,
    ]);
    drop(ran.code(0).says("item 1 of 1"));
    fan.merge("merged", &["merged", "again"]).code(0).says("2 of 2 items verified");
    let result = fan.result("merged");
    let found = result["items"].as_array().unwrap().iter().find(|one| one["id"] == item(&plan, "b")).unwrap();
    assert_eq!((found["attempt"].as_u64(), found["verified"].as_bool()), (Some(2), Some(true)));
    assert_eq!(result["superseded"].as_array().unwrap().len(), 1);
    let nothing = ["run", "--plan", &plan_file, "--rerun", &merged];
    clone.run(&nothing).code(0).says("verified already");
}

#[test]
fn changes_that_contradict_each_other_are_a_conflict() {
    let fix = "#!/bin/sh\necho ok > \"$1/state\"\necho \"$1\" > packages/shared\n";
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], fix));
    fan.project.write("packages/shared", "none\n");
    crate::common::git(&fan.project, &["add", "-A"]);
    crate::common::git(&fan.project, &["commit", "-qm", "shared"]);
    let plan = plan(&fan.project, &["--legs", "2"]);
    fan.leg("l01").code(0);
    fan.leg("l02").code(0);
    let ran = fan.merge("merged", &["legs"]).code(5);
    drop(ran.says("l02").says("conflict").says("l01").says("packages/shared"));
    let conflict = &fan.result("merged")["conflicts"][0];
    assert_eq!(
        (conflict["item"].as_str().unwrap(), &conflict["files"]),
        (item(&plan, "b").as_str(), &json!(["packages/shared"]))
    );
    let junit = fs::read_to_string(fan.at("merged/junit.xml")).unwrap();
    assert!(junit.contains("<failure") && junit.contains("packages/shared"), "{junit}");
    fan.project.run(&["deliver", &fan.text("merged"), "--to", "patch"]).code(5);

    // However many files cannot be read, each is named with what is wrong with it, and so is the conflict.
    for number in 0..60 {
        fs::write(fan.at(&format!("legs/broken{number}.llz")), "no bundle").unwrap();
    }
    fan.merge("many", &["legs"]).code(4);
    let junit = fs::read_to_string(fan.at("many/junit.xml")).unwrap();
    let suites: Vec<&str> = junit.split("<testsuite ").filter(|suite| suite.contains("type=\"")).collect();
    let lost = suites.iter().filter(|suite| suite.contains("nothing says of which item it is"));
    assert!(
        lost.clone().count() > 1 && lost.clone().all(|suite| !suite.contains("packages/shared")),
        "{junit}"
    );
    let conflicts: Vec<_> = suites.iter().filter(|suite| suite.contains("packages/shared")).collect();
    assert_eq!(conflicts.len(), 1, "{junit}");
    assert!(conflicts[0].starts_with(&format!("name=\"{}\"", item(&plan, "b"))), "{}", conflicts[0]);
}

#[test]
fn equal_changes_are_no_conflict_and_those_outside_of_a_scope_are_named() {
    let fix = "#!/bin/sh\necho ok > \"$1/state\"\necho same > packages/shared\n";
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], fix));
    fan.project.write("packages/shared", "none\n");
    crate::common::git(&fan.project, &["add", "-A"]);
    crate::common::git(&fan.project, &["commit", "-qm", "shared"]);
    plan(&fan.project, &["--legs", "2"]);
    fan.leg("l01").code(0);
    fan.leg("l02").code(0);
    fan.merge("merged", &["legs"]).code(0);
    let summary = fs::read_to_string(fan.at("merged/summary.md")).unwrap();
    assert!(summary.contains("outside of its scope"), "{summary}");
    assert_eq!(fan.result("merged")["outside"].as_array().unwrap().len(), 2);
}

#[test]
fn what_an_unverified_item_left_is_not_in_the_fix_of_the_next_one() {
    let fix =
        "#!/bin/sh\necho \"from $1\" >> packages/a/mess\n[ $1 = packages/a ] || echo ok > \"$1/state\"\n";
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], fix));
    fan.project.write("packages/a/mess", "");
    crate::common::git(&fan.project, &["add", "-A"]);
    crate::common::git(&fan.project, &["commit", "-qm", "mess"]);
    plan(&fan.project, &["--legs", "1"]);
    fan.job("legs/l01", &["--leg", "l01", "--max-iterations", "2"]).code(3);
    fan.merge("merged", &["legs"]).code(3);
    let result = fan.result("merged");
    // The second item wrote into a file that the first one had written into, and did not see that.
    let said = result["warnings"].to_string();
    assert!(
        said.contains("changed files outside of its scope") && !said.contains("cannot be delivered"),
        "{said}"
    );
    let patch = fs::read_to_string(fan.at("merged/changes.patch")).unwrap();
    assert!(patch.contains("+from packages/b") && !patch.contains("from packages/a"), "{patch}");
    fan.project.run(&["deliver", &fan.text("merged"), "--to", "patch"]).code(5);
}

#[test]
fn an_item_that_only_found_things_well_adds_nothing() {
    let fan = Fan::of(repository(&[("a", "bad"), ("b", "ok")]));
    plan(&fan.project, &["--legs", "1"]);
    fan.leg("l01").code(0);
    fan.merge("merged", &["legs"]).code(0);
    let patch = fs::read_to_string(fan.at("merged/changes.patch")).unwrap();
    let files: Vec<&str> = patch.lines().filter(|line| line.starts_with("diff --git")).collect();
    assert_eq!(files, ["diff --git a/packages/a/state b/packages/a/state"]);
}

#[test]
fn what_a_merge_is_not_is_said_by_the_commands_that_go_on_with_runs() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "bad")]));
    plan(&fan.project, &["--legs", "2"]);
    for key in ["l01", "l02"] {
        fan.leg(key).code(0);
    }
    fan.merge("merged", &["legs"]).code(0);
    let merged = fan.text("merged");
    for arguments in [&["resume", "--from", &merged][..], &["rewind", &merged, "--to", "1"]] {
        let ran = fan.project.run(arguments).code(2).says("is a merge of many runs");
        drop(ran.says("--rerun"));
    }
    fan.project.run(&["show", "main", "--run", &merged]).code(2).says("is a merge of many runs");
    let replayed = fan.project.run(&["replay", &merged]).code(0).says("main.packages-b");
    assert!(!replayed.all().contains("earlier version"), "{}", replayed.all());
    let text = fan.project.run(&["report", &merged]).code(0);
    assert!(!text.all().contains(" of \n"), "{}", text.all());
}

#[test]
fn a_file_that_nobody_can_read_is_red_in_every_report() {
    let (fan, _) = three();
    all_legs(&fan);
    fs::write(fan.at("legs/broken.llz"), "no bundle").unwrap();
    let ran = fan.merge("merged", &["legs"]).code(4).says("take away what cannot be read");
    assert!(!ran.all().contains("--rerun"), "{}", ran.all());
    let read = |name: &str| fs::read_to_string(fan.at(&format!("merged/{name}"))).unwrap();
    let junit = read("junit.xml");
    assert!(junit.contains("<failure") && junit.contains("broken.llz"), "{junit}");
    for report in ["summary.md", "report.html"] {
        assert!(read(report).contains("broken.llz") && !read(report).contains("--rerun"), "{}", read(report));
    }
    fs::remove_file(fan.at("legs/broken.llz")).unwrap();
    fan.merge("merged", &["legs"]).code(0);
}

#[test]
fn a_manifest_that_contradicts_its_journal_is_named() {
    let (fan, plan) = three();
    all_legs(&fan);
    let path = bundle(&fan.at("legs/l02"));
    let mut parts = Parts::of(&fs::read(&path).unwrap());
    parts.manifest["definition_sha256"] = "0".repeat(64).into();
    fs::write(&path, parts.sealed()).unwrap();
    drop(fan.merge("merged", &["legs"]).code(4).says("leg_missing: l02 (packages/b)"));
    let junit = fs::read_to_string(fan.at("merged/junit.xml")).unwrap();
    assert!(junit.contains(&item(&plan, "b")) && junit.contains("different definitions"), "{junit}");
}

#[test]
fn where_no_item_changed_anything_the_commit_of_the_plan_is_verified() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "ok")]));
    let plan = plan(&fan.project, &["--legs", "2"]);
    for key in ["l01", "l02"] {
        fan.leg(key).code(0);
    }
    let ran = fan.merge("merged", &["legs"]).code(0);
    assert!(!ran.all().contains("each alone"), "{}", ran.all());
    let result = fan.result("merged");
    assert_eq!((&result["verified"], &result["commit"]), (&json!(true), &plan["commit"]));
    assert_eq!(result["verification"]["checks"].as_array().unwrap().len(), 2);
    let tree = crate::common::git(&fan.project, &["rev-parse", "HEAD^{tree}"]);
    assert_eq!(result["verification"]["tree"], tree);
}

#[test]
fn what_another_run_of_the_workflow_has_left_is_not_counted() {
    let (fan, plan) = three();
    let leg = |run: &str, key: &str| {
        let job = crate::common::Project::new().env("GITHUB_ACTIONS", "true").env("GITHUB_RUN_ID", run);
        let clone =
            super::checkout(&fan.project, job.env("GITHUB_JOB", "leg").env("GITHUB_RUN_ATTEMPT", "1"));
        let (plan, to) = (fan.project.at("plan.json"), fan.text(&format!("legs/{key}")));
        let fixed =
            ["run", "--plan", &plan.to_string_lossy(), "--ci", "--on-change", "report", "--report-dir", &to];
        clone.run(&[&fixed[..], &["--leg", key]].concat()).code(0);
    };
    leg("76", "l01");
    leg("77", "l02");
    leg("77", "l03");
    let fan = Fan {
        project: fan
            .project
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_JOB", "merge"),
        ..fan
    };
    let ran = fan.merge("merged", &["legs"]).code(4);
    let lost = plan["legs"][0]["items"][0].as_str().unwrap();
    drop(ran.says("leg_missing: l01").says("it is of the CI run 76, and this is 77"));
    assert_eq!(fan.result("merged")["items"][0]["id"], lost);
    // Where it is part of no run of a workflow, nobody knows which one is meant.
    let fan = Fan { project: fan.project.env("GITHUB_ACTIONS", "").env("GITHUB_RUN_ID", ""), ..fan };
    fan.merge("other", &["legs"]).code(2).says("of the CI run 76");
}

#[test]
fn what_a_merge_writes_on_a_full_disk_agrees_with_its_exit_code() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "bad")]));
    plan(&fan.project, &["--legs", "1"]);
    fan.leg("l01").code(0);
    let (to, legs) = (fan.text("merged"), fan.text("legs"));
    for fault in ["once", "full"] {
        for point in 1..20 {
            // What stands there is red, and must not stay for what this one could not write.
            fs::create_dir_all(fan.at("none")).unwrap();
            fan.merge("merged", &["none"]).code(4);
            let mut command = fan.project.command(&["merge", "--ci", "--report-dir", &to, &legs]);
            let ran = crate::common::Ran::of(
                &command.env("LL_FAULT", format!("{fault}:{point}")).output().unwrap(),
            );
            let code = ran.code.unwrap_or_else(|| panic!("{fault}:{point} {}", ran.all()));
            let read = |name: &str| fs::read_to_string(fan.at("merged").join(name)).unwrap_or_default();
            let why = format!("{fault}:{point} ({code}) {}", ran.all());
            if !read("result.json").is_empty() {
                let result: Value = serde_json::from_str(&read("result.json")).unwrap();
                assert_eq!(result["outputs"]["exit-code"], code.to_string(), "{why}");
            }
            for report in ["summary.md", "junit.xml", "report.html"] {
                let text = read(report);
                assert!(text.is_empty() || (code == 0) != text.contains("leg_missing"), "{report}: {why}");
            }
        }
    }
}

/// Two packages, each mended on a leg of its own by this, whose checks may be made again.
fn two(fix: &str, check: &str) -> Fan {
    let project =
        with_fix(&[("a", "bad"), ("b", "bad")], &format!("#!/bin/sh\necho ok > \"$1/state\"\n{fix}"));
    let tidy =
        super::TIDY.replace("'test", &format!("'{check}test")).replace("= ok',", "= ok', check: true,");
    project.write(".loops/main.yaml", &tidy);
    project.write("packages/b/more", "");
    crate::common::git(&project, &["add", "-A"]);
    crate::common::git(&project, &["commit", "-qm", "checks"]);
    let fan = Fan::of(project);
    plan(&fan.project, &["--legs", "2"]);
    for key in ["l01", "l02"] {
        fan.leg(key).code(0);
    }
    fan
}

fn confirm(fan: &Fan, to: &str) -> crate::common::Ran {
    let (to, legs) = (fan.text(to), fan.text("legs"));
    let ran = fan.project.run(&["merge", "--ci", "--confirm", "--report-dir", &to, &legs]);
    assert_eq!(crate::common::git(&fan.project, &["status", "--porcelain"]), "", "{}", ran.all());
    ran
}

#[test]
fn items_that_do_not_meet_are_confirmed_as_they_are() {
    let fan = two("", "");
    let ran = confirm(&fan, "merged").code(0).says("no item works on what another one changed");
    assert!(!ran.all().contains("once more"), "{}", ran.all());
    assert_eq!(fan.result("merged")["verified"], true);
    let ran = fan.project.run(&["deliver", &fan.text("merged"), "--to", "patch"]).code(0);
    assert!(!ran.all().contains("each alone"), "{}", ran.all());
}

#[test]
fn where_items_meet_their_checks_are_made_once_more_on_the_merged_tree() {
    // The first one leaves something in the second one's scope, and checks leave something as well.
    let fan = two("[ $1 = packages/b ] || echo x > packages/b/more\n", "date +%N > packages/b/junk; ");
    // What a check changes is none of what it speaks of.
    let ran = confirm(&fan, "odd").code(0).says("verified: each alone").says("change files");
    drop(ran);
    let fan = two("[ $1 = packages/b ] || echo x > packages/b/more\n", "");
    let ran =
        confirm(&fan, "merged").code(0).says("the checks of 1 item passed once more on the merged tree");
    drop(ran);
    let result = fan.result("merged");
    assert_eq!((&result["verified"], &result["verification"]["extent"]), (&json!(true), &Value::Null));
    let confirmed: Vec<&str> = result["verification"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["confirmed"].as_str().unwrap())
        .collect();
    assert_eq!(confirmed, ["in_run", "closing_pass"]);
}

#[test]
fn what_passes_alone_and_not_together_is_not_verified() {
    let fan = two(
        "[ $1 = packages/b ] || echo x > packages/b/more\n",
        "! grep -sq x ${context.path:shell}/more && ",
    );
    fan.merge("alone", &["legs"]).code(0).says("verified: each alone");
    let ran =
        confirm(&fan, "merged").code(1).says("not confirmed: with the changes of all items, the checks of");
    drop(ran);
    let result = fan.result("merged");
    assert_eq!(
        (&result["verified"], &result["verification"]["reasons"]),
        (&json!(false), &json!(["not_confirmed"]))
    );
    for report in ["junit.xml", "summary.md", "report.html"] {
        let text = fs::read_to_string(fan.at("merged").join(report)).unwrap();
        assert!(text.contains("not confirmed"), "{report}: {text}");
    }
    fan.project.run(&["deliver", &fan.text("merged"), "--to", "patch"]).code(5);
}

/// While it asks, the merged files stand in the checkout.
#[test]
fn a_merge_that_is_killed_while_it_asks_leaves_the_checkout_as_it_was() {
    let idle = "name: idle\ninitial: look\nscope: [elsewhere]\nstates:\n  look: {action: 'true', on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let slow = "test ! -e out/slow || { touch out/asked; sleep 60; }; ";
    for next in ["merge", "run"] {
        let fan = two("[ $1 = packages/b ] || echo x > packages/b/more\n", slow);
        fan.project.write("out/slow", "");
        let (to, legs) = (fan.text("merged"), fan.text("legs"));
        let arguments = ["merge", "--ci", "--confirm", "--report-dir", &to, &legs];
        let mut child = fan.project.start_until(&arguments, "out/asked");
        assert_eq!(fan.project.read("packages/b/more"), "x\n");
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(fan.project.at("out/slow")).unwrap();
        if next == "merge" {
            confirm(&fan, "again").code(0).says("passed once more on the merged tree");
        } else {
            fan.project.write(".loops/idle.yaml", idle);
            fan.project.run(&["run", "idle"]).code(0).says("a merge was killed");
            fs::remove_file(fan.project.at(".loops/idle.yaml")).unwrap();
        }
        let left = crate::common::git(&fan.project, &["status", "--porcelain"]);
        assert_eq!(left, "", "after {next}");
    }
}

#[test]
fn what_cannot_be_asked_again_stays_verified_each_alone() {
    let fan = two("[ $1 = packages/b ] || echo x > packages/b/more\n", "");
    let tidy = fan.project.read(".loops/main.yaml").replace("check: true, ", "");
    let unmarked = with_fix(&[("a", "bad"), ("b", "bad")], &fan.project.read("fix.sh"));
    unmarked.write(".loops/main.yaml", &tidy);
    unmarked.write("packages/b/more", "");
    crate::common::git(&unmarked, &["add", "-A"]);
    crate::common::git(&unmarked, &["commit", "-qm", "no checks"]);
    let unmarked = Fan::of(unmarked);
    plan(&unmarked.project, &["--legs", "2"]);
    for key in ["l01", "l02"] {
        unmarked.leg(key).code(0);
    }
    confirm(&unmarked, "merged").code(0).says("verified: each alone").says("say `check: true` in the loop");
    fan.project.write("packages/a/state", "other\n");
    let (to, legs) = (fan.text("merged"), fan.text("legs"));
    let ran = fan.project.run(&["merge", "--ci", "--confirm", "--report-dir", &to, &legs]).code(2);
    drop(ran.says("needs a clean checkout"));
    assert_eq!(fan.project.read("packages/a/state"), "other\n");
}
