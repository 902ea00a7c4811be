//! A disk that is full, wherever that is met: one outcome everywhere, and a run that goes on when there is room again.
//!
//! `LL_FAULT=full:N` is a disk that has no room from the N-th write on, but for what is given back. `once:N` is one
//! write that fails. Root has a real small disk as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Project, Ran, events};
use crate::runs::crash::thorough;

/// A loop with long and short outputs, a sub-loop, and something to show for it, on another disk. What its actions do can
/// be done twice: the step whose end could not be written is.
const LOOP: &str = "name: main\ninitial: a\nstates:
  a: {action: 'seq 1 3000', capture: big, next: k}
  k: {loop: kid, context_passthrough: true, on_success: b, on_failure: failed}
  b: {action: 'printf %s ${captured.big.output:shell} | cksum > $RESULT; echo ${captured.inner.output} >> $RESULT', on_yes: done, on_no: failed}
  failed: {terminal: true}
  done: {terminal: true, action: 'echo over > $RESULT.last'}\n";

const KID: &str = "name: kid\ninitial: x\nstates:
  x: {action: 'echo inner', capture: inner, on_yes: done}
  done: {terminal: true}\n";

fn project() -> Project {
    let project = Project::with_loop(LOOP).file(".loops/kid.yaml", KID);
    let result = project.at("result").to_string_lossy().into_owned();
    project.env("RESULT", result)
}

/// Returns what a run has to show.
fn result(project: &Project) -> String {
    project.read("result") + &project.read("result.last")
}

const RUN: [&str; 4] = ["run", "main", "--report-dir", "reports"];

/// Where a run is, and how it is asked about.
struct Place<'p> {
    project: &'p Project,
    root: PathBuf,
}

impl Place<'_> {
    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.project.command(arguments).current_dir(&self.root).output().unwrap())
    }

    /// Returns the files of runs with this ending.
    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for directory in [".running", ".history/main"] {
            let entries = fs::read_dir(self.root.join(".loops").join(directory)).into_iter().flatten();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
        found.retain(|path| path.to_string_lossy().ends_with(ending));
        found
    }

    /// Asserts that everything that says how the run ended says the same as its exit code.
    #[track_caller]
    fn check_one_outcome(&self, ran: &Ran, reports: &Path, outputs: Option<&Path>, why: &str) {
        let why = format!("{why}\n{}", ran.all());
        let code = ran.code.unwrap_or_else(|| panic!("killed: {why}"));
        let Some(outcome) = [(0, "success"), (4, "error")].into_iter().find(|(of, _)| *of == code) else {
            // Nothing was run, and nothing says that something was.
            assert_eq!(code, 2, "{why}");
            let begun = self.files(".events.jsonl").iter().any(|path| fs::metadata(path).unwrap().len() > 0);
            let result = fs::read_to_string(reports.join("result.json")).unwrap_or_default();
            assert!(!begun && (result.is_empty() || result.contains("\"outcome\": \"invalid\"")), "{why}");
            return;
        };
        let outcome = outcome.1;
        let journal = self.files(".events.jsonl").pop().unwrap();
        let last = events(&journal).pop();
        let instance = journal.file_name().unwrap().to_string_lossy().replace(".events.jsonl", "");
        let instance = instance.as_str();
        let written = last.as_ref().is_some_and(|last| last["event"] == "loop_complete");
        if written {
            let last = last.unwrap();
            assert_eq!((&last["outcome"], &last["exit_code"]), (&outcome.into(), &code.into()), "{why}");
            let status: Value =
                serde_json::from_str(&self.run(&["status", instance, "--json"]).code(0).stdout).unwrap();
            assert_eq!((&status["outcome"], &status["exit_code"]), (&outcome.into(), &code.into()), "{why}");
            assert_eq!(status["resumable"], code == 4, "{why}");
        } else {
            // Not even the last words could be written.
            assert_eq!(code, 4, "{why}");
        }
        let result = fs::read_to_string(reports.join("result.json")).unwrap_or_default();
        if !result.is_empty() {
            let result: Value =
                serde_json::from_str(&result).unwrap_or_else(|error| panic!("{error}: {why}"));
            let seen = (&result["outputs"]["outcome"], &result["outputs"]["exit-code"]);
            assert_eq!(seen, (&outcome.into(), &code.to_string().into()), "{why}");
        }
        let junit = fs::read_to_string(reports.join("junit.xml")).unwrap_or_default();
        if !junit.is_empty() {
            assert!(junit.contains("</testsuites>"), "{why}\n{junit}");
            assert!(junit.contains(&format!("\"ll.outcome\" value=\"{outcome}\"")), "{why}\n{junit}");
        }
        let summary = fs::read_to_string(reports.join("summary.md")).unwrap_or_default();
        assert!(summary.is_empty() || summary.contains(outcome), "{why}\n{summary}");
        for state in self.files(".state.json") {
            let state: Value = serde_json::from_str(&fs::read_to_string(state).unwrap()).unwrap();
            let is_open = state["outcome"].is_null();
            assert!(state["outcome"] == outcome || (is_open && code == 4), "{why}\n{state}");
        }
        if let Some(text) = outputs.and_then(|path| fs::read_to_string(path).ok())
            && text.contains("outcome<<")
        {
            assert!(text.contains(&format!("\n{outcome}\n")), "{why}\n{text}");
        }
        assert!(!ran.stdout.contains("Loop completed") || code == 0, "{why}");
        if written {
            // Last, because it makes reports that are missing.
            let report = self.run(&["report", instance, "--format", "outputs"]).code(0).stdout;
            assert!(report.contains(&format!("outcome={outcome}\nexit-code={code}\n")), "{why}\n{report}");
        }
    }

    /// Returns every command that was printed as an advice.
    fn advice(ran: &Ran) -> Vec<String> {
        let all = ran.all();
        let mut found: Vec<String> =
            all.split('`').filter(|part| part.starts_with("ll-loop ")).map(str::to_owned).collect();
        found.sort();
        found.dedup();
        found
    }

    /// Follows the advice, which has to lead to the end that the run would have had.
    #[track_caller]
    fn follow(&self, ran: &Ran, out: &str, why: &str) {
        let advice = Self::advice(ran);
        let why = format!("{why}\n{}", ran.all());
        if ran.code == Some(4) {
            assert!(!advice.is_empty(), "{why}");
        }
        for line in advice {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            let followed = self.run(&words);
            assert_eq!(followed.code, Some(0), "`{line}`: {}\nafter {why}", followed.all());
        }
        if ran.code == Some(2) {
            self.run(&["run", "main"]).code(0);
        }
        assert_eq!(result(self.project), out, "{why}");
        let last =
            self.files(".events.jsonl").iter().map(|path| events(path)).find(|events| !events.is_empty());
        assert_eq!(last.unwrap().pop().unwrap()["outcome"], "success", "{why}");
    }
}

/// Returns what an undisturbed run leaves.
fn undisturbed() -> String {
    let project = project();
    project.run(&RUN).code(0);
    result(&project)
}

#[test]
fn a_write_that_fails_anywhere_leaves_one_outcome() {
    let out = undisturbed();
    let mut last = usize::MAX;
    for kind in ["full", "once"] {
        let mut ends = [0, 0, 0];
        let mut point = 1;
        while point < last {
            let project = project();
            let fault = format!("{kind}:{point}");
            let reports = project.at("reports");
            let output = project.command(&RUN).env("LL_FAULT", &fault).output().unwrap();
            let ran = Ran::of(&output);
            if kind == "full" && !ran.stderr.contains("No space left") {
                // There are no more writes.
                assert_eq!(ran.code, Some(0));
                last = point;
                break;
            }
            let place = Place { root: project.path().to_owned(), project: &project };
            let why = format!("LL_FAULT={fault}");
            place.check_one_outcome(&ran, &reports, None, &why);
            let at = match ran.code {
                Some(0) => 0,
                Some(2) => 1,
                _ => 2,
            };
            ends[at] += 1;
            place.follow(&ran, &out, &why);
            point += if thorough() { 1 } else { 3 };
        }
        assert!(ends.iter().all(|count| *count > 0), "{kind}: {ends:?}");
    }
}

#[test]
fn a_resume_without_room_leaves_the_run_to_be_resumed() {
    let out = undisturbed();
    let text = LOOP.replace(
        "seq 1 3000",
        "test -f go || touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done; seq 1 3000",
    );
    let mut point = 1;
    loop {
        let project = project().file(".loops/main.yaml", &text);
        let child = project.start_until(&["run", "main"], "begun");
        crate::common::signal(&child, rustix::process::Signal::TERM);
        let _ran = Ran::of(&child.wait_with_output().unwrap()).code(143);
        project.write("go", "");
        let place = Place { root: project.path().to_owned(), project: &project };
        let mut command = project.command(&["resume", "main", "--report-dir", "reports"]);
        let ran = Ran::of(&command.env("LL_FAULT", format!("full:{point}")).output().unwrap());
        if ran.code == Some(0) {
            break;
        }
        let why = format!("LL_FAULT=full:{point}");
        if ran.code == Some(2) {
            assert_eq!(project.end()["outcome"], "interrupted", "{why}");
        } else {
            place.check_one_outcome(&ran, &project.at("reports"), None, &why);
        }
        project.run(&["resume", "main"]).code(0);
        assert_eq!(result(&project), out, "{why}");
        point += if thorough() { 1 } else { 3 };
    }
    assert!(point > 4);
}

/// A small file system, until it is dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir_all(&path).unwrap();
        let mut command = Command::new("mount");
        let mounted =
            command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(&path).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(path))
    }

    fn grow(&self) {
        let grown = Command::new("mount").args(["-o", "remount,size=16m"]).arg(&self.0).status().unwrap();
        assert!(grown.success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _status = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_real_disk_that_is_full_leaves_one_outcome_whatever_its_size() {
    let out = undisturbed();
    let mut ends = [0, 0, 0];
    for size in (64..400).step_by(if thorough() { 4 } else { 20 }) {
        let project = project().in_github_job().env("CI", "false");
        let Some(disk) = Disk::mount(project.at("disk"), &format!("{size}k")) else {
            // Only root can make a small disk; the container of CI is root.
            eprintln!("SKIPPED: cannot mount a small file system here");
            return;
        };
        fs::create_dir(disk.0.join(".loops")).unwrap();
        for name in ["main", "kid"] {
            let file = format!(".loops/{name}.yaml");
            fs::copy(project.at(&file), disk.0.join(&file)).unwrap();
        }
        let place = Place { root: disk.0.clone(), project: &project };
        let ran = place.run(&["run", "main", "--ci=github", "--report-dir", "reports"]);
        let why = format!("a disk of {size} KiB");
        place.check_one_outcome(&ran, &disk.0.join("reports"), Some(&project.at("out")), &why);
        let at = match ran.code {
            Some(0) => 0,
            Some(2) => 1,
            _ => 2,
        };
        ends[at] += 1;
        disk.grow();
        place.follow(&ran, &out, &why);
    }
    assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
}

#[test]
fn a_limit_on_the_size_of_files_leaves_one_outcome() {
    let text = "name: main\ninitial: a\nmax_iterations: 400\nstates:\n  a: {action: 'echo $LL_STEP >> n; test $LL_STEP -ge 200', on_yes: done, on_no: a}\n  done: {terminal: true}\n";
    for blocks in [8, 24, 40, 56] {
        let project = Project::with_loop(text);
        let program = crate::common::LL_LOOP.as_str();
        let limited =
            format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} run main -q --report-dir reports");
        let mut command = Command::new("bash");
        command.args(["-c", &limited]).current_dir(project.path()).env_clear().env("PATH", "/usr/bin:/bin");
        let ran = Ran::of(&command.output().unwrap()).code(4);
        let place = Place { root: project.path().to_owned(), project: &project };
        let why = format!("files of at most {blocks} KiB");
        place.check_one_outcome(&ran, &project.at("reports"), None, &why);
        assert_eq!(project.end()["terminated_by"], "journal_lost", "{why}");
        project.run(&["resume", "main", "-q"]).code(0);
        let steps: Vec<u32> = project.read("n").lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!((steps.len(), project.end()["steps"].as_u64()), (201, Some(200)), "{why}");
    }
}

#[test]
fn a_copy_that_cannot_be_written_costs_a_warning() {
    let project = project();
    project.write("hold", "");
    // A directory where a file has to be fails for everybody, also for root.
    let text = LOOP.replace(
        "seq 1 3000",
        "cd .loops/.running; rm -f main-*.new; mkdir $(basename $LL_RUN_DIR .dir).state.json.new; seq 1 3000",
    );
    project.write(".loops/main.yaml", &text);
    let ran = project.run(&RUN).code(0);
    assert!(ran.stderr.contains("state.json"), "{}", ran.all());
    assert_eq!(project.end()["outcome"], "success");
    // What is no longer true is not left there.
    assert!(project.run_files(".state.json").is_empty());
}
