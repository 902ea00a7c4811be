//! The legs of a plan: each item a run of its own, whatever becomes of the others.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};

use rustix::process::Signal;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use super::{Fan, bundle, checkout, item, plan, repository, with_fix};
use crate::ci::ci_mode::outputs;
use crate::common::{Project, Ran, git, signal};
use crate::forge::git_server::Repositories;
use crate::runs::lying_index::FORGE;

fn manifest(fan: &Fan, directory: &str) -> Value {
    let file = fs::File::open(bundle(&fan.at(directory))).unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    serde_json::from_reader(archive.by_name("manifest.json").unwrap()).unwrap()
}

#[test]
fn every_item_of_a_leg_is_a_run_of_its_own() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "bad")]));
    let plan = plan(&fan.project, &["--legs", "1"]);
    fan.leg("l01").code(0).says("2 items").says("2 verified");
    for package in ["a", "b"] {
        let id = item(&plan, package);
        let manifest = manifest(&fan, &format!("legs/l01/{id}"));
        assert_eq!(manifest["assignment"]["item"], id);
        assert_eq!(manifest["assignment"]["leg"], "l01");
        assert_eq!(manifest["assignment"]["attempt"], 1);
        assert_eq!(manifest["assignment"]["plan_id"], plan["plan_id"]);
        let changed = fan.at(&format!("legs/l01/{id}/changes.patch"));
        assert_eq!(changed.exists(), package == "b", "the reports of one item are not changes of the next");
    }
    let again = fan.leg("l01").code(0);
    drop(again);
    assert_eq!(attempts(&fan, &item(&plan, "a")), [1, 2]);
}

#[test]
fn an_item_that_fails_does_not_stop_the_next() {
    let fan = Fan::of(with_fix(
        &[("a", "bad"), ("b", "ok"), ("c", "bad")],
        "#!/bin/sh\n[ $1 = packages/a ] && kill -9 $$; echo ok > \"$1/state\"\n",
    ));
    plan(&fan.project, &["--legs", "1"]);
    let ran = fan.job("legs/l01", &["--leg", "index:0", "--max-iterations", "2"]);
    assert_eq!(ran.code, Some(3), "{}", ran.all());
    drop(ran.says("2 verified, 1 not verified"));
}

#[test]
fn a_leg_runs_what_was_planned_or_nothing() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "ok")]));
    plan(&fan.project, &[]);
    fan.leg("l09").code(2).says("no leg `l09`").says("`l01` and `l02`");
    fan.job("x", &["--leg", "index:2"]).code(2).says("no leg `index:2`");
    // Jobs that were listed before there was a plan: some have nothing to do, and too few are refused.
    fan.job("x", &["--leg", "index:2/3"]).code(0).says("this job has nothing to run");
    fan.job("x", &["--leg", "index:0/1"]).code(2).says("for 1 job");
    fan.job("x", &["--leg", "index:3/3"]).code(2).says("no leg `index:3/3`");
    fan.job("x", &[]).code(2).says("2 legs");
    let text = fan.project.read("plan.json");
    fan.project.write("plan.json", &text.replace("packages/a\"", "packages/b\""));
    fan.leg("l01").code(2).says("the plan was edited");
    fan.project.write("plan.json", &text.replacen("\"schema\": 1", "\"schema\": 9", 1));
    fan.leg("l01").code(2).says("schema 9");
    fan.project.write("plan.json", "");
    fan.leg("l01").code(2).says("not a plan");
    fan.project.write("plan.json", &text);
    git(&fan.project, &["commit", "-q", "--allow-empty", "-m", "later"]);
    fan.leg("l01").code(2).says("about the commit").says("checkout is at");
    let mut left = Vec::new();
    super::below(&fan.at("legs"), &mut left);
    assert!(left.iter().all(|file| file.extension().is_none_or(|end| end != "llz")), "{left:?}");
}

#[test]
fn a_loop_that_was_edited_is_not_the_one_that_was_planned() {
    let fan = Fan::of(repository(&[("a", "ok")]));
    plan(&fan.project, &[]);
    fan.project.write(".loops/main.yaml", &super::TIDY.replace("= ok", "!= ok"));
    let ran = fan.project.run(&["run", "--plan", "plan.json"]);
    drop(ran.code(2).says("not what it was when it was planned"));
}

#[test]
fn the_command_line_says_which_goes_with_which() {
    let project = Project::new();
    project.run(&["run"]).code(2).says("<LOOP>");
    project.run(&["run", "main", "--plan", "plan.json"]).code(2).says("cannot be used with");
    project.run(&["run", "main", "--leg", "l01"]).code(2).says("cannot be used with");
    project.run(&["run", "--plan", "absent.json", "--leg", "l01"]).code(2).says("absent.json");
}

#[test]
fn a_deadline_is_one_for_all_items_and_a_later_attempt_goes_on() {
    let slow = "#!/bin/sh\n[ -n \"$LL_GO\" ] || sleep 60\necho ok > \"$1/state\"\n";
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], slow));
    let plan = plan(&fan.project, &["--legs", "1"]);
    let ran = fan.job("legs/l01", &["--leg", "l01", "--deadline", "3s"]).code(75);
    drop(ran.says("handed off"));
    // What the deadline left no time for goes on, and is not lost.
    let merged = fan.merge("merged", &["legs"]).code(75);
    assert!(!merged.all().contains("leg_missing"), "{}", merged.all());
    // What goes on later is neither a failure nor an error.
    let junit = fs::read_to_string(fan.at("merged/junit.xml")).unwrap();
    assert!(!junit.contains("<failure") && !junit.contains("<error"), "{junit}");
    let result = fan.result("merged");
    assert_eq!(
        (&result["resume"], &result["rerun"], &result["missing"]),
        (&json!(["l01"]), &json!(["l01"]), &json!([]))
    );
    // Whatever else is there, it makes nothing better than it is.
    fs::write(fan.at("legs/not-begun.json"), "{\"plan_id\": 1}").unwrap();
    drop(fan.merge("again", &["legs"]).code(75));
    // Another attempt on the same reports goes on with the hand-off, and runs what was not begun.
    let clone = checkout(&fan.project, Project::new().env("LL_GO", "1"));
    let (plan_file, reports) = (fan.project.at("plan.json"), fan.text("legs/l01"));
    let plan_file = plan_file.to_string_lossy();
    let fixed = ["run", "--plan", &plan_file, "--ci", "--on-change", "report", "--report-dir", &reports];
    drop(clone.run(&fixed).code(0).says("goes on from").says("2 verified"));
    let manifest = manifest(&fan, &format!("legs/l01/{}", item(&plan, "a")));
    assert_eq!(
        (manifest["assignment"]["attempt"].as_u64(), manifest["outcome"].as_str()),
        (Some(2), Some("success"))
    );
    assert!(!fan.at("legs/l01/not-begun.json").exists());
    drop(fan.merge("whole", &["legs"]).code(0));
}

#[test]
fn items_for_which_no_time_is_left_go_on_and_are_not_lost() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "ok"), ("c", "ok")]));
    plan(&fan.project, &["--legs", "1"]);
    fan.job("legs/l01", &["--leg", "l01", "--deadline", "1ms"]).code(75).says("not begun");
    let merged = fan.merge("merged", &["legs"]).code(75).says("not begun before the deadline");
    assert!(!merged.all().contains("leg_missing"), "{}", merged.all());
    let junit = fs::read_to_string(fan.at("merged/junit.xml")).unwrap();
    assert!(junit.contains("had no time left for it"), "{junit}");
    assert!(!junit.contains("<failure") && !junit.contains("<error"), "{junit}");
    let merged = fan.text("merged");
    let plan_file = fan.project.at("plan.json").to_string_lossy().into_owned();
    let clone = checkout(&fan.project, Project::new());
    let again = fan.text("again");
    let fixed = ["run", "--plan", &plan_file, "--ci", "--rerun", &merged, "--report-dir", &again];
    drop(clone.run(&fixed).code(0).says("3 verified"));
    drop(fan.merge("whole", &["merged", "again"]).code(0));
}

#[test]
fn a_note_of_a_leg_excuses_nothing_that_a_later_attempt_lost() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "ok")]));
    let plan = plan(&fan.project, &["--legs", "1"]);
    fan.leg("l01").code(0);
    fs::remove_dir_all(fan.at("legs/l01").join(item(&plan, "b"))).unwrap();
    let note = |attempt: u32, id: &str| {
        let note = json!({"plan_id": plan["plan_id"], "attempt": attempt, "items": [item(&plan, "b")]});
        let note = note.to_string().replace(plan["plan_id"].as_str().unwrap(), id);
        fs::write(fan.at("legs/l01/not-begun.json"), note).unwrap();
    };
    let id = plan["plan_id"].as_str().unwrap();
    note(0, id);
    drop(fan.merge("m0", &["legs"]).code(4).says("leg_missing"));
    note(1, &"0".repeat(64));
    drop(fan.merge("m1", &["legs"]).code(4).says("leg_missing"));
    note(1, id);
    drop(fan.merge("m2", &["legs"]).code(75));
    let junit = fs::read_to_string(fan.at("m2/junit.xml")).unwrap();
    assert!(junit.contains("no time left"), "{junit}");
}

/// A leg with two items of which the first is verified, and which was ended in the second one.
fn ended_in_the_second() -> (Fan, Value) {
    let fix = "#!/bin/sh
[ $1 = packages/a ] || [ -n \"$LL_GO\" ] || { echo half > \"$1/state\"; touch plan.started; sleep 60; }
echo ok > \"$1/state\"\n";
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad"), ("c", "ok")], fix));
    let plan = plan(&fan.project, &["--legs", "1"]);
    let reports = fan.text("legs/l01");
    let arguments = ["run", "--plan", "plan.json", "--ci", "--on-change", "report", "--report-dir", &reports];
    let child = fan.project.start_until(&arguments, "plan.started");
    signal(&child, Signal::TERM);
    let ran = Ran::of(&child.wait_with_output().unwrap());
    drop(ran.code(143).says("1 verified, 1 not begun, 1 not verified"));
    // What it left in its checkout is lost with its machine.
    for package in ["a", "b"] {
        fan.project.write(&format!("packages/{package}/state"), "bad\n");
    }
    (fan, plan)
}

/// Runs the leg again in a checkout of its own, with the reports of the first time.
fn again(fan: &Fan, prepare: impl FnOnce(&Project)) -> Ran {
    let clone = checkout(&fan.project, Project::new().env("LL_GO", "1"));
    prepare(&clone);
    let (plan, reports) = (fan.project.at("plan.json"), fan.text("legs/l01"));
    let plan = plan.to_string_lossy();
    clone.run(&["run", "--plan", &plan, "--ci", "--on-change", "report", "--report-dir", &reports])
}

fn attempts(fan: &Fan, id: &str) -> Vec<u64> {
    let mut attempts = Vec::new();
    for entry in fs::read_dir(fan.at("legs/l01").join(id)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "llz") {
            let mut archive = zip::ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
            let manifest: Value = serde_json::from_reader(archive.by_name("manifest.json").unwrap()).unwrap();
            attempts.push(manifest["assignment"]["attempt"].as_u64().unwrap());
        }
    }
    attempts.sort_unstable();
    attempts
}

#[test]
fn a_leg_goes_on_in_its_second_item_and_what_it_verified_before_stands() {
    let (fan, plan) = ended_in_the_second();
    let ran = again(&fan, |_| {}).code(0).says("goes on from").says("3 verified");
    assert!(!ran.all().contains("begins anew"), "{}", ran.all());
    assert_eq!(["a", "b", "c"].map(|package| attempts(&fan, &item(&plan, package))), [[1], [2], [2]]);
    fan.merge("merged", &["legs"]).code(0).says("3 of 3 items verified");
    let changes = fs::read_to_string(fan.at("merged/changes.patch")).unwrap();
    let files: Vec<&str> = changes.lines().filter(|line| line.starts_with("diff --git")).collect();
    assert_eq!(
        files,
        ["a", "b"].map(|package| format!("diff --git a/packages/{package}/state b/packages/{package}/state"))
    );
}

#[test]
fn where_a_hand_off_cannot_go_on_its_item_begins_anew() {
    let (fan, plan) = ended_in_the_second();
    let ran = again(&fan, |clone| clone.write("packages/b/state", "worse\n")).code(1);
    // What was verified before stands, and the rest does not begin on the tree of the plan.
    drop(ran.says("begins anew").says("has changes of its own").says("1 verified"));
    assert_eq!(attempts(&fan, &item(&plan, "a")), [1]);
    assert_eq!(attempts(&fan, &item(&plan, "b")), [1, 2]);
}

#[test]
fn what_another_item_failed_or_forged_does_not_stand() {
    let (fan, plan) = ended_in_the_second();
    // The bundle of the first item is gone, and one of the second lies in its place.
    let (a, b) = (fan.at("legs/l01").join(item(&plan, "a")), fan.at("legs/l01").join(item(&plan, "b")));
    fs::remove_file(bundle(&a)).unwrap();
    fs::copy(bundle(&b), a.join("forged.llz")).unwrap();
    drop(again(&fan, |_| {}).code(0).says("3 verified"));
    assert!(attempts(&fan, &item(&plan, "a")).contains(&2));
    fan.merge("merged", &["legs"]).code(0);
}

#[test]
fn a_hand_off_of_the_last_attempt_that_can_be_counted_is_no_fault() {
    let (fan, plan) = ended_in_the_second();
    let path = bundle(&fan.at("legs/l01").join(item(&plan, "b")));
    let mut old = zip::ZipArchive::new(fs::File::open(&path).unwrap()).unwrap();
    let mut new = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for index in 0..old.len() {
        let mut entry = old.by_index(index).unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let name = entry.name().unwrap().into_owned();
        if name == "manifest.json" {
            let mut manifest: Value = serde_json::from_slice(&content).unwrap();
            manifest["assignment"]["attempt"] = u32::MAX.into();
            content = serde_json::to_vec(&manifest).unwrap();
        }
        new.start_file(name, SimpleFileOptions::default()).unwrap();
        new.write_all(&content).unwrap();
    }
    fs::write(&path, new.finish().unwrap().into_inner()).unwrap();
    let ran = again(&fan, |_| {});
    assert!(!ran.stderr.contains("panicked"), "{}", ran.all());
}

#[test]
fn whoever_ends_the_job_ends_the_leg() {
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "ok")], "#!/bin/sh\ntouch plan.started\nsleep 60\n"));
    plan(&fan.project, &["--legs", "1"]);
    let reports = fan.text("legs/l01");
    let arguments = ["run", "--plan", "plan.json", "--ci", "--on-change", "report", "--report-dir", &reports];
    let child = fan.project.start_until(&arguments, "plan.started");
    signal(&child, Signal::TERM);
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(143), "{}", ran.all());
    drop(ran.says("1 not begun").says("somebody ended the job"));
}

#[test]
fn an_item_that_another_machine_has_locked_is_missing_until_it_is_run() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "ok")]));
    plan(&fan.project, &["--legs", "1"]);
    let repositories = Repositories::new();
    let remote = repositories.create("octo/project");
    let lease = "refs/ll-loop/lease/0123456789abcdef";
    let record =
        br#"{"run": "other-1", "holder": "elsewhere", "scopes": ["packages/a"], "n": 3, "ttl_s": 3600}"#;
    let commit = remote.feed(&["commit-tree", &remote.git(&["mktree"])], &[], record).unwrap();
    remote.git(&["update-ref", lease, &commit]);
    let lock = format!("--lock=git={}", remote.path.display());
    let ran = fan.job("legs/l01", &["--leg", "l01", &lock]).code(73);
    drop(ran.says("the run other-1 has locked `packages/a`").says("locked `packages/b` for all machines"));
    fan.merge("merged", &["legs"]).code(4).says("leg_missing: l01 (packages/a)");
    assert_eq!(remote.refs().into_keys().filter(|name| name.contains("lease")).collect::<Vec<_>>(), [lease]);
    remote.git(&["update-ref", "-d", lease]);
    let merged = fan.text("merged");
    fan.job("again", &["--rerun", &merged, &lock]).code(0).says("1 verified");
    fan.merge("both", &["merged", "again"]).code(0);
}

/// A checkout of the commit of a plan, in which legs run one after the other.
struct Checkout<'f> {
    fan: &'f Fan,
    project: Project,
}

impl<'f> Checkout<'f> {
    fn of(fan: &'f Fan) -> Self {
        Self { fan, project: checkout(&fan.project, Project::new()) }
    }

    fn leg(&self, to: &str, key: &str) -> Ran {
        let (plan, to) = (self.fan.project.at("plan.json"), self.fan.text(to));
        let plan = plan.to_string_lossy();
        let fixed = ["run", "--plan", &plan, "--ci", "--on-change", "report", "--report-dir", &to];
        self.project.run(&[&fixed[..], &["--leg", key]].concat())
    }

    /// Returns the result of the run of a package.
    fn result(&self, of: &str, plan: &Value, package: &str) -> Value {
        let path = self.fan.at(of).join(item(plan, package)).join("result.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    fn states(&self) -> [String; 2] {
        ["a", "b"].map(|package| self.project.read(&format!("packages/{package}/state")))
    }
}

/// What mends one package mends the other one as well, and leaves a file there.
const FOR_BOTH: &str =
    "#!/bin/sh\nfor package in packages/*; do echo ok > $package/state; done\necho \"$1\" > packages/b/by\n";

#[test]
fn each_item_begins_on_the_tree_of_the_plan_whatever_the_one_before_has_left() {
    for more in [
        "",
        "git add -A\n",
        "git add -A; git -c user.name=x -c user.email=x@y.example commit -qm mended\n",
        "git checkout -q -b other\n",
        "rm fix.sh\n",
    ] {
        let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], &format!("{FOR_BOTH}{more}")));
        let plan = plan(&fan.project, &["--legs", "1"]);
        let place = Checkout::of(&fan);
        let ran = place.leg("legs/l01", "l01").code(0).says("2 verified");
        for package in ["a", "b"] {
            let result = place.result("legs/l01", &plan, package);
            // Nobody has mended it before.
            assert_eq!(result["outputs"]["steps"], "3", "{more} {package} {}", ran.all());
            assert_eq!(result["changes"]["start"]["commit"], plan["commit"], "{more}");
            assert_eq!(result["verification"]["reasons"], json!([]), "{more}");
        }
        // When the leg is over, everything is there again but for what both have left.
        assert_eq!(place.states(), ["ok\n", "ok\n"], "{more}");
        assert_eq!(git(&place.project, &["rev-parse", "HEAD"]), plan["commit"].as_str().unwrap());
    }
}

/// The fix of `a` leaves something in the checkout; that of `b` says what it found.
const LEAVES: &str = "#!/bin/sh
echo ok > $1/state
ls conftest.py .venv/bin/look > $1/found 2> /dev/null
wc -c < fix.sh >> $1/found
test $1 = packages/a || exit 0
";

#[test]
fn what_git_ignores_or_the_index_hides_is_not_seen_by_the_next_item() {
    for leaves in [
        "echo conftest.py >> .git/info/exclude; echo x > conftest.py",
        "echo '# more' >> fix.sh; python3 out/forge.py times .git/index fix.sh",
        "echo '# more' >> fix.sh; git update-index --assume-unchanged fix.sh",
        "echo '# more' >> fix.sh; git add fix.sh; python3 out/forge.py tree .git/index",
    ] {
        let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], &format!("{LEAVES}{leaves}\n")));
        let plan = plan(&fan.project, &["--legs", "1"]);
        let place = Checkout::of(&fan);
        place.project.write("out/forge.py", FORGE);
        git(&place.project, &["update-index", "--index-version", "2"]);
        let ran = place.leg("legs/l01", "l01");
        let found = |package: &str| place.project.read(&format!("packages/{package}/found"));
        assert_eq!(found("b"), found("a"), "{leaves}: {}", ran.all());
        assert_eq!(place.result("legs/l01", &plan, "b")["verified"], true, "{leaves}: {}", ran.all());
    }
}

#[test]
fn a_program_that_another_item_left_is_not_run_by_the_next_one() {
    let fix = format!(
        "{LEAVES}mkdir -p .venv/bin; printf '#!/bin/sh\\nexit 0\\n' > .venv/bin/look; chmod +x .venv/bin/look\n"
    );
    let project = with_fix(&[("a", "bad"), ("b", "bad")], &fix);
    let text = project.read(".loops/main.yaml");
    let own = "test \"$(cat ${context.path:shell}/state)\" = ok";
    let asks = format!("test -e .venv/bin/look && exec .venv/bin/look; {own}");
    assert!(text.contains(own), "{text}");
    project.write(".loops/main.yaml", &text.replace(own, &asks));
    project.write(".gitignore", "plan.json\nout/\n.venv/\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "a check that runs a program where it is there"]);
    let fan = Fan::of(project);
    let plan = plan(&fan.project, &["--legs", "1"]);
    let place = Checkout::of(&fan);
    let ran = place.leg("legs/l01", "l01");
    assert_eq!(place.result("legs/l01", &plan, "b")["outputs"]["steps"], "3", "{}", ran.all());
    assert!(!place.project.read("packages/b/found").contains("look"), "{}", ran.all());
    assert_eq!(place.project.read(".venv/bin/look"), "#!/bin/sh\nexit 0\n");
}

#[test]
fn another_leg_and_another_attempt_in_the_same_checkout_begin_on_the_tree_of_the_plan() {
    let fan = Fan::of(with_fix(&[("a", "bad"), ("b", "bad")], FOR_BOTH));
    let plan = plan(&fan.project, &["--legs", "2"]);
    let place = Checkout::of(&fan);
    for (to, key) in [("legs/l01", "l01"), ("legs/l02", "l02"), ("again/l01", "l01")] {
        place.leg(to, key).code(0).says("1 verified");
    }
    for (to, package) in [("legs/l01", "a"), ("legs/l02", "b"), ("again/l01", "a")] {
        assert_eq!(place.result(to, &plan, package)["outputs"]["steps"], "3", "{to}");
    }
    assert_eq!(place.states(), ["ok\n", "ok\n"]);
}

#[test]
fn an_item_that_begins_on_the_work_of_people_is_not_verified() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "ok")]));
    let plan = plan(&fan.project, &["--legs", "1"]);
    let place = Checkout::of(&fan);
    // An untracked file counts in its scope, a tracked one everywhere.
    place.project.write("packages/a/more", "x\n");
    place
        .leg("untracked", "l01")
        .code(1)
        .says("did not begin on the tree of its plan: 1 file differs (`packages/a/more`)");
    assert_eq!(place.result("untracked", &plan, "a")["verification"]["reasons"], json!(["dirty_start"]));
    assert_eq!(place.result("untracked", &plan, "b")["verified"], true);
    fan.merge("merged", &["untracked"]).code(1).says("1 of 2 items verified");
    assert_eq!(fan.result("merged")["rerun"], json!(["l01"]));
    // Without strictness it is a success that says so, and the merge believes it as little.
    let lax = ["run", "--plan", "plan.json", "--leg", "l01", "--no-strict", "--report-dir"];
    let plan_text = fan.project.read("plan.json");
    place.project.write("plan.json", &plan_text);
    place.project.run(&[&lax[..], &[fan.text("lax").as_str()]].concat()).code(0);
    fan.merge("merged", &["lax"]).code(1);
    place.project.write("packages/b/state", "bad\n");
    place.leg("tracked", "l01").code(1);
    fan.merge("merged", &["tracked"]).code(1).says("0 of 2 items verified");
    // What people left is there as it was.
    assert_eq!(place.project.read("packages/a/more"), "x\n");
    // It is run again on the tree of the plan.
    let merged = fan.text("merged");
    fan.job("again", &["--rerun", &merged]).code(0).says("2 verified");
    fan.merge("merged", &["merged", "again"]).code(0);
}

#[test]
fn a_plan_of_a_checkout_with_changes_names_its_tree() {
    let fan = Fan::of(repository(&[("a", "ok"), ("b", "ok")]));
    fan.project.write("packages/a/state", "bad\n");
    fan.project.write("packages/b/new", "x\n");
    fan.project.run(&["plan", "main", "--per-path", "packages/*"]).code(2);
    let plan = plan(&fan.project, &["--dirty", "--legs", "1"]);
    let paths: Vec<&str> =
        plan["differs"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["packages/a/state", "packages/b/new"]);
    let leg = |to: &str| {
        let to = fan.text(to);
        fan.project.run(&["run", "--plan", "plan.json", "--ci", "--on-change", "report", "--report-dir", &to])
    };
    leg("dirty").code(0).says("2 verified");
    assert_eq!(fan.project.read("packages/a/state"), "ok\n", "it was mended");
    // It cannot be told from what was there before.
    fan.merge("merged", &["dirty"]).code(0).says("it began with changes that no commit has");
    fan.project.write("packages/b/new", "y\n");
    leg("edited").code(1).says("packages/b/new");
    // The commit alone is a tree as well, but not the same one.
    fan.job("clean", &[]).code(0).says("2 verified");
    fan.merge("merged", &["clean"]).code(0);
    fs::remove_dir_all(fan.at("clean").join(item(&plan, "a"))).unwrap();
    fs::remove_dir_all(fan.at("dirty").join(item(&plan, "b"))).unwrap();
    fan.merge("merged", &["clean", "dirty"]).code(1).says("1 of 2 items verified");
}

#[test]
fn neither_the_plan_nor_the_reports_of_the_leg_are_changes_of_the_checkout() {
    let project = repository(&[("a", "ok"), ("b", "ok")]);
    project.write(".loops/main.yaml", &super::TIDY.replace("scope: ['${context.path}']\n", ""));
    project.write(".gitignore", "");
    git(&project, &["commit", "-qam", "everything"]);
    project.run(&["plan", "main", "--each", "path=packages/a,packages/b", "-o", "the-plan.json"]).code(0);
    let ran = project.run(&["run", "--plan", "the-plan.json", "--ci", "--report-dir", "reports"]).code(0);
    drop(ran.says("2 verified"));
    let ran = project.run(&["run", "--plan", "the-plan.json", "--ci", "--report-dir", "reports"]).code(0);
    drop(ran.says("2 verified"));
}

/// A job of GitHub in a checkout, whose outputs and summary are beside it.
fn github_job(fan: &Fan) -> Project {
    for file in ["out", "summary"] {
        fs::write(fan.at(file), "").unwrap();
    }
    checkout(&fan.project, Project::new())
        .env("CI", "true")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_OUTPUT", fan.text("out"))
        .env("GITHUB_STEP_SUMMARY", fan.text("summary"))
}

/// Runs the only leg of a plan in a job of GitHub; returns what it printed, and its outputs.
fn in_github_job(fan: &Fan, code: i32) -> (Ran, BTreeMap<String, String>) {
    let (plan, to) = (fan.project.at("plan.json"), fan.text("legs/l01"));
    let plan = plan.to_string_lossy();
    let arguments = ["run", "--plan", &plan, "--leg", "l01", "--on-change", "report", "--report-dir", &to];
    let ran = github_job(fan).run(&arguments).code(code);
    (ran, outputs(&fs::read_to_string(fan.at("out")).unwrap()))
}

/// Fails everywhere, unless that is excused.
const NEVER: &str = "name: main
description: d
initial: check
parameters: {path: {type: string}}
scope: ['${context.path}']
states:
  check: {action: 'test -e ${context.path:shell}/absent', check: true, on_yes: done, on_no: stuck}
  done: {terminal: true}
  stuck: {terminal: true, outcome: blocked}\n";

#[test]
fn a_leg_annotates_no_more_than_a_run_and_lists_what_is_red_first() {
    let packages = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(|name| (name, "bad"));
    let project = repository(&packages);
    project.write(".loops/main.yaml", NEVER);
    git(&project, &["commit", "-qam", "loop"]);
    let fan = Fan::of(project);
    let plan = plan(&fan.project, &["--legs", "1"]);
    let (ran, _) = in_github_job(&fan, 5);
    let errors: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("::error ")).collect();
    assert_eq!(errors.len(), 8, "{errors:#?}");
    assert!(errors[7].contains("3 more items") && errors[7].contains(&item(&plan, "j")), "{errors:#?}");
    let summary = fs::read_to_string(fan.at("summary")).unwrap();
    assert!(summary.starts_with("## leg l01 of the plan"), "{summary}");
    let (list, items) = summary.split_once("\n\n## ✋").unwrap();
    assert!(items.contains("blocked"), "{items}");
    for (package, _) in packages {
        assert!(list.contains(&item(&plan, package)), "{list}");
    }
}

#[test]
fn the_outcome_of_a_leg_is_what_its_exit_code_says() {
    let excused = "- {loop: main, state: check, owner: ann, until: 2999-12-31, reason: r}\n";
    for (quarantine, code, outcome) in [(None, 5, "blocked"), (Some(excused), 0, "success")] {
        let project = repository(&[("a", "bad")]);
        project.write(".loops/main.yaml", NEVER);
        if let Some(quarantine) = quarantine {
            project.write(".loops/quarantine.yaml", quarantine);
        }
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", "loop"]);
        let fan = Fan::of(project);
        plan(&fan.project, &["--legs", "1"]);
        let (_, told) = in_github_job(&fan, code);
        let of = |name: &str| told[name].as_str();
        let code = code.to_string();
        assert_eq!((of("outcome"), of("exit-code")), (outcome, code.as_str()));
        assert_eq!((of("verified"), of("handoff")), ("false", "false"));
    }
}

#[test]
fn an_item_whose_hand_off_has_gone_on_by_itself_begins_anew() {
    let text = "name: main
description: d
initial: check
parameters: {path: {type: string}}
scope: ['${context.path}']
states:
  check: {action: 'test -n \"$LL_GO\" || echo \"CONTEXT_HANDOFF: go\"', on_yes: done, on_no: done}
  done: {terminal: true}\n";
    let project = repository(&[("a", "ok")]);
    project.write(".loops/main.yaml", text);
    git(&project, &["commit", "-qam", "loop"]);
    let fan = Fan::of(project);
    plan(&fan.project, &["--legs", "1"]);
    let (plan_file, reports) = (fan.project.at("plan.json"), fan.text("legs/l01"));
    let plan_file = plan_file.to_string_lossy();
    let leg = ["run", "--plan", &plan_file, "--leg", "l01", "--ci", "--report-dir", &reports];
    let clone = checkout(&fan.project, Project::new());
    drop(clone.run(&leg).code(75));
    let clone = clone.env("LL_GO", "1");
    drop(clone.run(&["resume", "main", "--ci"]).code(0));
    drop(clone.run(&leg).code(0).says("begins anew").says("1 verified"));
    drop(fan.merge("merged", &["legs"]).code(0));
}
