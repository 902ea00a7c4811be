//! Runs that are killed where it hurts, resumed, and compared with runs that were not.
//!
//! `cargo test` kills at some points of each loop. `LL_CRASH=all cargo test --test integration crash` kills at every
//! one, and at many random moments.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Project, Ran, events};

/// A kind of loop.
struct Kind {
    main: &'static str,
    kid: &'static str,
    arguments: &'static [&'static str],
    code: i32,
}

/// What every action does first. Whatever else it does can be done twice: that is what an action owes a run that is
/// resumed.
const KEY: &str = "echo \"$LL_STEP_KEY\" >> keys";

const LINEAR: Kind = Kind {
    main: "name: main\ninitial: a\nstates:
  a: {action: 'KEY; echo one-$LL_STEP; echo err >&2', capture: one, next: b}
  b: {action: 'KEY; echo \"${captured.one.output} two\"', capture: two, append_to_messages: 'b said ${prev.output?}', on_yes: c, on_no: c}
  c: {action: 'KEY; echo \"${captured.one.output}+${captured.two.output}+${prev.output}+${messages}\" > out', next: done}
  done: {terminal: true, action: 'KEY; echo over > last'}\n",
    kid: "",
    arguments: &[],
    code: 0,
};

const CONVERGENCE: Kind = Kind {
    main: "name: main\ninitial: measure\nstates:
  measure:
    action: 'KEY; echo $((LL_STEP < 6 ? 9 - LL_STEP : 4))'
    capture: value
    evaluate: {type: convergence, toward: 0}
    on_target: done
    on_progress: fix
    on_stall: failed
    on_error: failed
  fix: {action: 'KEY; echo ${captured.value.output} > out', next: measure}
  failed: {terminal: true}
  done: {terminal: true}\n",
    kid: "",
    arguments: &[],
    code: 1,
};

const RETRIES: Kind = Kind {
    main: "name: main\ninitial: a\nmax_edge_revisits: 9\nstates:
  a: {action: 'KEY; echo $LL_ATTEMPT; test $LL_STEP -ge 4', max_retries: 2, on_retry_exhausted: b, on_yes: done, on_no: $current}
  b: {action: 'KEY; echo ${captured.a.output} > out', next: a}
  done: {terminal: true}\n",
    kid: "",
    arguments: &[],
    code: 0,
};

const MAINTAIN: Kind = Kind {
    main: "name: main\ninitial: a\nmaintain: true\nstates:
  a: {action: 'KEY; echo $LL_STEP; test $LL_STEP -gt 2', on_yes: done, on_no: b}
  b: {action: 'KEY', next: a}
  done: {terminal: true, action: 'KEY.closing'}\n",
    kid: "",
    arguments: &["--max-cycles", "3"],
    code: 0,
};

const SUB_LOOPS: Kind = Kind {
    main: "name: main\ninitial: a\nstates:
  a: {action: 'KEY; echo top', capture: top, next: p}
  p: {loop: kid, context_passthrough: true, on_success: q, on_failure: failed}
  q: {loop: kid, with: {n: '${captured.inner.output}'}, on_success: c, on_failure: failed}
  c: {action: 'KEY; echo \"${captured.inner.output} ${captured.top.output} ${captured.p.output} ${captured.q.output}\" > out', next: done}
  failed: {terminal: true}
  done: {terminal: true}\n",
    kid: "name: kid\ninitial: x\nparameters: {n: {type: string, default: none}}\nstates:
  x: {action: 'KEY; echo \"in ${context.n} ${captured.top.output?}\"', capture: inner, next: g}
  g: {loop: grandkid, on_success: y, on_failure: failed}
  y: {action: 'KEY; echo \"y ${captured.g.output}\"', on_yes: done, on_no: x}
  failed: {terminal: true}
  done: {terminal: true}\n",
    arguments: &[],
    code: 0,
};

const GRANDKID: &str = "name: grandkid\ninitial: u\nstates:
  u: {action: 'KEY; echo u$LL_STEP', capture: u, next: v}
  v: {action: 'KEY; echo v ${captured.u.output}; test $LL_STEP -ge 4', on_yes: done, on_no: u}
  done: {terminal: true}\n";

const STALL: Kind = Kind {
    main: "name: main\ninitial: a\nstall: {window: 3}\nstates:
  a: {action: 'KEY; echo same; false', on_yes: done, on_no: b}
  b: {action: 'KEY', next: a}
  done: {terminal: true}\n",
    kid: "",
    arguments: &[],
    code: 3,
};

const LONG: Kind = Kind {
    main: "name: main\ninitial: a\nmax_iterations: 2\non_max_iterations: sum\nstates:
  a: {action: 'KEY; seq $LL_STEP 4000; seq 1 3000 >&2', capture: big, next: b}
  b: {action: 'KEY; printf %s ${captured.big.output:shell} | cksum > out; printf %s ${captured.big.stderr:shell} | cksum >> out', next: a}
  sum: {action: 'KEY; printf %s ${captured.big.output:shell} | cksum > last', next: done}
  done: {terminal: true}\n",
    kid: "",
    arguments: &[],
    code: 3,
};

impl Kind {
    fn project(&self) -> Project {
        let project = Project::with_loop(&self.main.replace("KEY", KEY)).file("keys", "");
        project
            .file(".loops/kid.yaml", &self.kid.replace("KEY", KEY))
            .file(".loops/grandkid.yaml", &GRANDKID.replace("KEY", KEY))
    }

    fn run(&self) -> Vec<&'static str> {
        [&["run", "main", "-q", "--report-dir", "reports"], self.arguments].concat()
    }
}

/// What a run came to, as far as it must not depend on kills.
#[derive(Debug, PartialEq)]
struct Story {
    steps: Vec<Value>,
    end: Value,
    captured: Value,
    counts: Value,
    out: String,
}

/// Reads the one run that did something.
fn story(project: &Project) -> (Story, Vec<Value>) {
    let journals = project.run_files(".events.jsonl");
    let journal = journals.iter().map(|path| events(path)).find(|events| !events.is_empty()).unwrap();
    let state = project.run_files(".state.json").pop().unwrap();
    let state: Value = serde_json::from_str(&std::fs::read_to_string(state).unwrap()).unwrap();
    let mut captured = state["captured"].clone();
    for result in captured.as_object_mut().unwrap().values_mut() {
        result.as_object_mut().unwrap().remove("duration_ms");
    }
    let result: Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
    let mut states = result["states"].clone();
    for state in states.as_array_mut().unwrap() {
        state.as_object_mut().unwrap().remove("duration_ms");
    }
    let end = journal.last().unwrap();
    let end = json!([
        end["event"],
        end["outcome"],
        end["final_state"],
        end["iterations"],
        end["steps"],
        end["cycles"],
        end["verified"]
    ]);
    let out =
        ["out", "last"].map(|file| std::fs::read_to_string(project.at(file)).unwrap_or_default()).concat();
    let counts = json!([states, result["edges"]]);
    (Story { steps: steps(&journal), end, captured, counts, out }, journal)
}

/// Returns every step of a journal once, in order, with where it led; sub-loops inclusive.
fn steps(journal: &[Value]) -> Vec<Value> {
    let mut steps: Vec<Value> = Vec::new();
    let mut current: Vec<Option<usize>> = Vec::new();
    for event in journal {
        let depth = usize::try_from(event["depth"].as_u64().unwrap_or(0)).unwrap();
        current.resize(current.len().max(depth + 1), None);
        match event["event"].as_str().unwrap() {
            "loop_start" => current[depth] = None,
            "state_enter" => {
                let is_again = current[depth]
                    .is_some_and(|at| steps[at]["step"] == event["step"] && steps[at].get("to").is_none());
                let fields = ["state", "iteration", "step", "attempt"];
                let mut step = json!({"depth": depth});
                for field in fields {
                    step[field] = event[field].clone();
                }
                if is_again {
                    assert_eq!(steps[current[depth].unwrap()].get("verdict"), None, "{event}");
                    for field in fields {
                        assert_eq!(steps[current[depth].unwrap()][field], step[field], "{event}");
                    }
                } else {
                    current[depth] = Some(steps.len());
                    steps.push(step);
                }
            }
            "evaluate" => steps[current[depth].unwrap()]["verdict"] = event["verdict"].clone(),
            "route" => {
                if let Some(at) = current[depth] {
                    steps[at]["to"] = json!([event["to"], event["verdict"], event["reason"]]);
                }
            }
            _ => {}
        }
    }
    steps
}

/// Asserts that an action came to an end once, and was begun as often as its key was written or more.
fn check_keys(project: &Project, journal: &[Value]) {
    let mut written: BTreeMap<String, u64> = BTreeMap::new();
    for key in project.read("keys").lines() {
        *written.entry(key.to_owned()).or_default() += 1;
    }
    let mut at: Vec<u64> = vec![0];
    let (mut begun, mut ended) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
    let mut is_closing = false;
    for event in journal {
        let depth = usize::try_from(event["depth"].as_u64().unwrap_or(0)).unwrap();
        at.resize(at.len().max(depth + 1), 0);
        let name = event["event"].as_str().unwrap();
        if name == "state_enter" {
            at[depth] = event["step"].as_u64().unwrap();
        }
        is_closing = if name == "action_start" {
            event["action"].as_str().unwrap().contains("closing") || event["state"] == "done"
        } else {
            is_closing
        };
        let steps: Vec<String> = at[..=depth].iter().map(ToString::to_string).collect();
        let run = journal[0]["run_id"].as_str().unwrap();
        let key = format!("{run}/{}{}", steps.join("/"), if is_closing { " closing" } else { "" });
        match name {
            "action_start" => *begun.entry(key).or_default() += 1,
            "action_complete" => *ended.entry(key).or_default() += 1,
            _ => {}
        }
    }
    assert!(ended.values().all(|times| *times == 1), "{ended:?}");
    assert_eq!(begun.len(), ended.len());
    for (key, times) in written {
        let key = key.replace(".closing", "");
        let may = begun
            .iter()
            .filter(|(begun, _)| begun.trim_end_matches(" closing") == key)
            .map(|(_, times)| times)
            .sum::<u64>();
        assert!(times <= may, "{key}: {times} times, {may} allowed");
    }
}

/// A run that is killed.
struct Victim<'k> {
    kind: &'k Kind,
    project: Project,
    kills: usize,
}

impl Victim<'_> {
    /// Lets a command be killed at a point; tells whether it was.
    fn dies_at(&mut self, arguments: &[&str], point: usize) -> (bool, Ran) {
        let output = self.project.command(arguments).env("LL_FAULT", point.to_string()).output().unwrap();
        let killed = output.status.code().is_none();
        self.kills += usize::from(killed);
        (killed, Ran::of(&output))
    }

    /// Resumes to the end, killed on the way as often as there are points.
    fn goes_on(&mut self, points: &[usize]) {
        let reports = ["--report-dir", "reports"];
        let resume: Vec<&str> = ["resume", "main", "-q"].iter().chain(&reports).copied().collect();
        for point in points {
            if self.failed_for_good() {
                return;
            }
            let (killed, ran) = self.dies_at(&resume, *point);
            if !killed {
                return self.is_over(&ran);
            }
        }
        if !self.failed_for_good() {
            let ran = self.project.run(&resume);
            self.is_over(&ran);
        }
    }

    /// Tells whether the run was killed when everything was done. One that did not succeed would be taken up again.
    fn failed_for_good(&self) -> bool {
        let journals = self.project.run_files(".events.jsonl");
        let is_archived = journals.iter().any(|journal| journal.to_string_lossy().contains(".history"));
        self.kind.code != 0 && is_archived && self.project.run_files(".unreported").is_empty()
    }

    fn is_over(&mut self, ran: &Ran) {
        let began =
            !["before its first step", "there is no run of"].iter().any(|why| ran.stderr.contains(why));
        if ran.code == Some(2) && !began {
            assert_eq!(self.project.read("keys"), "");
            let again = self.project.run(&self.kind.run());
            assert_eq!(again.code, Some(self.kind.code), "{}", again.all());
        } else if ran.code == Some(2) {
            // It was killed when everything was done.
            assert!(ran.stderr.contains("has ended"), "{}", ran.all());
        } else {
            assert_eq!(ran.code, Some(self.kind.code), "{}", ran.all());
        }
    }

    fn check(&self, expected: &Story, why: &str) {
        let (story, journal) = story(&self.project);
        assert_eq!(&story.steps, &expected.steps, "{why}");
        assert_eq!(&story, expected, "{why}");
        check_keys(&self.project, &journal);
    }
}

#[expect(clippy::disallowed_methods, reason = "a switch of the test")]
pub(crate) fn thorough() -> bool {
    std::env::var_os("LL_CRASH").is_some_and(|how| how == "all")
}

#[expect(clippy::print_stderr, reason = "the count, for who asks for it")]
fn survives(kind: &Kind) {
    let whole = kind.project();
    whole.run(&kind.run()).code(kind.code);
    let (expected, journal) = story(&whole);
    check_keys(&whole, &journal);

    let mut kills = 0;
    // Whoever is not killed any more has passed the last point.
    let mut point = 1;
    loop {
        let mut victim = Victim { kind, project: kind.project(), kills: 0 };
        let (killed, ran) = victim.dies_at(&kind.run(), point);
        if !killed {
            assert_eq!(ran.code, Some(kind.code), "{}", ran.all());
            break;
        }
        // Some die again while they are resumed, some at once.
        victim
            .goes_on([&[][..], &[1 + point % 11], &[2, 1 + point % 5], &[3, 4, 13 + point % 17]][point % 4]);
        victim.check(&expected, &format!("killed at point {point}"));
        kills += victim.kills;
        point += if thorough() { 1 } else { 13 };
    }

    let moments = if thorough() { 40 } else { 2 };
    for moment in 0..moments {
        let mut victim = Victim { kind, project: kind.project(), kills: 0 };
        let mut command = victim.project.command(&kind.run());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(5_000 + (moment * 7_919_000 / 13) % 110_000));
        child.kill().unwrap();
        victim.kills += usize::from(child.wait().unwrap().code().is_none());
        victim.goes_on(&[]);
        victim.check(&expected, &format!("killed at moment {moment}"));
        kills += victim.kills;
    }
    // Shown with `--nocapture`.
    eprintln!("{kills} kills");
}

#[test]
fn a_linear_loop_survives() {
    survives(&LINEAR);
}

#[test]
fn a_loop_that_measures_survives() {
    survives(&CONVERGENCE);
}

#[test]
fn a_loop_that_tries_again_survives() {
    survives(&RETRIES);
}

#[test]
fn a_loop_that_starts_again_survives() {
    survives(&MAINTAIN);
}

#[test]
fn a_loop_that_runs_loops_survives() {
    survives(&SUB_LOOPS);
}

#[test]
fn a_loop_that_stalls_survives() {
    survives(&STALL);
}

#[test]
fn a_loop_that_prints_much_survives() {
    survives(&LONG);
}
