//! Journals of test runs, built step by step as an engine would write them.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::digest::{Digest, NotRun};
use crate::base::name::{LoopName, StateName};
use crate::base::time::Timestamp;
use crate::board::{self, Board, BoardChange, Limits, OperationKind};
use crate::engine::event::{
    ActionComplete, ActionKind, BoardEvent, Event, LoopComplete, LoopStart, RouteReason, Source, Stamped,
    TreeState,
};
use crate::engine::night::Night;
use crate::engine::outcome::{Outcome, Signal, TerminatedBy};
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Observation, Text};
use crate::evaluate::survey::Survey;
use crate::evaluate::verdict::Verdict;

pub(crate) fn state(name: &str) -> StateName {
    StateName::parse(name).unwrap()
}

/// The limits of the boards here: two attempts, and one split.
const LIMITS: Limits =
    Limits { plan_revisions: 3, fix_cycles: 3, attempts: 2, depth: 1, idle_passes: 9, failed_ratio: 0.5 };

/// The events of a run that is being told.
pub(crate) struct Journal {
    pub(crate) events: Vec<Stamped>,
    now: i64,
    began: i64,
    step: u32,
    iteration: u32,
    last: StateName,
    board: Board,
    /// The working tree before actions.
    pub(crate) tree: &'static str,
}

impl Journal {
    /// Begins a run of `fix-types`, whose `check` stands on line 6 and whose `fix` on line 12.
    pub(crate) fn start() -> Self {
        Self::of("fix-types", 20)
    }

    /// Says what the command line gave the loop: the option, the name and the value of each variable, and the input.
    pub(crate) fn given(&mut self, variables: &[(&str, &str, &str)], input: Option<&str>) -> &mut Self {
        let Event::LoopStart(start) = &mut self.events[0].event else {
            panic!("the run begins with its start")
        };
        for (option, name, value) in variables {
            let overrides = &mut start.overrides;
            let map = if *option == "--param" { &mut overrides.param } else { &mut overrides.context };
            map.insert((*name).to_owned(), (*value).to_owned());
        }
        start.overrides.input = input.map(str::to_owned);
        self
    }

    pub(crate) fn of(name: &str, max_iterations: u32) -> Self {
        let began = 1_763_682_527_000;
        let mut journal = Self {
            events: vec![],
            now: began,
            began,
            step: 0,
            iteration: 1,
            last: state("check"),
            board: Board::default(),
            tree: "as it was",
        };
        journal.push(Event::LoopStart(LoopStart {
            definition_sha256: "0".repeat(64),
            max_iterations,
            strict: true,
            source: Source {
                file: format!(".loops/{name}.yaml"),
                others: Vec::new(),
                lines: IndexMap::from([(state("check"), 6), (state("fix"), 12)]),
            },
            ..LoopStart::new(LoopName::parse(name).unwrap(), &format!("{name}-20251120T234847-1f2e"))
        }));
        journal
    }

    /// Begins a run of `build` that works on a task board.
    pub(crate) fn on_board() -> Self {
        let mut journal = Self::of("build", 500);
        let Some(Stamped { event: Event::LoopStart(start), .. }) = journal.events.first_mut() else {
            panic!()
        };
        start.board = Some(Box::default());
        journal
    }

    /// A whole step that works on the board, with what the board really makes of it: `params` are texts, or JSON.
    pub(crate) fn operate(&mut self, name: &str, word: &str, params: &Value) -> &mut Self {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let params: IndexMap<_, _> = params
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        let operation = OperationKind::parse(word).unwrap().with(&params).unwrap();
        let (after, verdict, notes) = board::apply(self.board.clone(), &LIMITS, operation);
        let change = BoardChange::between(&self.board, &after);
        self.board = after;
        self.enter(name, self.iteration);
        let verdict = Verdict::new(verdict);
        let (state, operation) = (self.last.clone(), word.to_owned());
        self.push(Event::Board(BoardEvent { state, operation, verdict: verdict.clone(), change, notes }));
        self.route(Some(verdict.as_str()), "x")
    }

    /// Enters a state of somebody with a role, who begins.
    pub(crate) fn begin(&mut self, name: &str, role: &str) -> &mut Self {
        self.enter(name, self.iteration);
        self.push(Event::ActionStart {
            state: state(name),
            action: format!("do {name}"),
            kind: ActionKind::Prompt,
            role: Some(role.to_owned()),
            session: None,
            tree: None,
        })
    }

    /// A whole stage: somebody with a role is called, and an evaluator judges.
    pub(crate) fn stage(&mut self, name: &str, role: &str, verdict: &str, details: &Value) -> &mut Self {
        self.begin(name, role);
        self.now += 2_340;
        let mut seen = Observation::exited(0, format!("{name} prints\n"));
        seen.duration = Duration::from_millis(2_340);
        let usage = Usage {
            calls: 1,
            input_tokens: 1000,
            output_tokens: 20,
            cost_usd: Some(0.5),
            ..Usage::default()
        };
        self.push(Event::ActionComplete(ActionComplete { step: self.step, seen, usage: Some(usage) }));
        let r#type = if details.get("score").is_some() { "score" } else { "answer" };
        let details = details.as_object().cloned().unwrap_or_default();
        self.push(Event::evaluated(r#type, Verdict::new(verdict), None, details, None));
        self.route(Some(verdict), "x")
    }

    /// Makes the last step lead to another state.
    pub(crate) fn to(&mut self, name: &str) -> &mut Self {
        if let Some(Event::Route { to, .. }) = self.events.last_mut().map(|stamped| &mut stamped.event) {
            *to = state(name);
        }
        self
    }

    /// Makes it a night after these.
    pub(crate) fn after(&mut self, nights: Vec<Night>) -> &mut Self {
        let Some(Stamped { event: Event::LoopStart(start), .. }) = self.events.first_mut() else { panic!() };
        (start.until_clean, start.nights) = (true, nights);
        self
    }

    pub(crate) fn push(&mut self, event: Event) -> &mut Self {
        self.now += 5;
        let seq = self.events.len() as u64 + 1;
        self.events.push(Stamped::new(Timestamp::from_millis(self.now), seq, event));
        self
    }

    pub(crate) fn enter(&mut self, name: &str, iteration: u32) -> &mut Self {
        self.step += 1;
        self.iteration = iteration;
        self.last = state(name);
        let entered = Event::StateEnter { state: state(name), iteration, step: self.step, attempt: 1 };
        self.push(entered)
    }

    pub(crate) fn act(&mut self, action: &str) -> &mut Self {
        let started = Event::ActionStart {
            state: self.last.clone(),
            action: action.into(),
            kind: ActionKind::Shell,
            role: None,
            session: None,
            tree: Some(TreeState::Seen(Survey { head: None, digest: self.tree.to_owned() })),
        };
        self.push(started)
    }

    pub(crate) fn done(&mut self, exit_code: i32, stdout: &str, stderr: &str) -> &mut Self {
        let mut seen = Observation::exited(exit_code, stdout);
        seen.stderr = Text::whole(stderr);
        seen.duration = Duration::from_millis(2_340);
        self.seen(seen)
    }

    pub(crate) fn seen(&mut self, seen: Observation) -> &mut Self {
        self.now += i64::try_from(seen.duration.as_millis()).unwrap();
        let step = self.step;
        self.push(Event::ActionComplete(ActionComplete { step, seen, usage: None }))
    }

    pub(crate) fn judge(&mut self, verdict: &str) -> &mut Self {
        self.push(Event::evaluated("exit_code", Verdict::new(verdict), None, Map::new(), None))
    }

    pub(crate) fn route(&mut self, verdict: Option<&str>, to: &str) -> &mut Self {
        let reason = if verdict.is_some() { RouteReason::Verdict } else { RouteReason::Next };
        let from = self.last.clone();
        self.push(Event::Route { from, to: state(to), verdict: verdict.map(Verdict::new), reason })
    }

    /// A whole judged step: entered, run, judged, left.
    pub(crate) fn step(
        &mut self,
        (name, iteration): (&str, u32),
        action: &str,
        (exit_code, stdout): (i32, &str),
        verdict: &str,
        to: &str,
    ) -> &mut Self {
        self.enter(name, iteration).act(action).done(exit_code, stdout, "");
        self.judge(verdict).route(Some(verdict), to)
    }

    /// A whole step that is left by `next`.
    pub(crate) fn next(
        &mut self,
        name: &str,
        iteration: u32,
        action: &str,
        exit_code: i32,
        to: &str,
    ) -> &mut Self {
        self.enter(name, iteration).act(action).done(exit_code, "", "").route(None, to)
    }

    pub(crate) fn end(
        &mut self,
        outcome: Outcome,
        terminated_by: TerminatedBy,
        name: &str,
        verified: bool,
    ) -> &mut Self {
        let signal = (terminated_by == TerminatedBy::Interrupted).then_some(Signal::Term);
        let complete = LoopComplete {
            iterations: self.iteration,
            steps: self.step,
            cycles: 1,
            duration_ms: u64::try_from(self.now - self.began).unwrap(),
            verified,
            exit_code: outcome.exit_code(signal),
            signal,
            ..LoopComplete::new(outcome, terminated_by, state(name))
        };
        self.push(Event::LoopComplete(complete))
    }

    /// Gives the end a reason.
    pub(crate) fn because(&mut self, reason: &str) -> &mut Self {
        let Some(Stamped { event: Event::LoopComplete(end), .. }) = self.events.last_mut() else { panic!() };
        reason.clone_into(&mut end.reason);
        self
    }

    pub(crate) fn events(&self) -> &[Stamped] {
        &self.events
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.events)
    }
}

pub(crate) const MYPY: &str = "src/app.py:3: error: Name \"foo\" is not defined  [name-defined]\n\
    src/app.py:9:5: error: Missing return statement  [return]\nFound 2 errors in 1 file (checked 4 source files)\n";

/// Three failing checks, two fixes, a failure.
pub(crate) fn failing() -> Journal {
    let mut journal = Journal::start();
    for iteration in 1..=3 {
        let to = if iteration == 3 { "failed" } else { "fix" };
        journal.step(("check", iteration), "mypy src/", (1, MYPY), "no", to);
        if iteration < 3 {
            journal.next("fix", iteration, "ruff check --fix src/", 0, "check");
        }
    }
    journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
    journal
}

/// A failing check, a fix, a passing check.
pub(crate) fn succeeding() -> Journal {
    let mut journal = Journal::start();
    journal.step(("check", 1), "mypy src/", (1, MYPY), "no", "fix");
    journal.next("fix", 1, "ruff check --fix src/", 0, "check");
    journal.step(("check", 2), "mypy src/", (0, "Success: no issues found\n"), "yes", "done");
    journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
    journal
}

/// What a planner answers with these tasks, each with the tasks that it waits for, from 0.
pub(crate) fn plan(tasks: &[(&str, &[i64])]) -> Value {
    let task = |(description, dependencies): &(&str, &[i64])| json!({"description": description, "dependencies": dependencies});
    json!({"answer": {"tasks": tasks.iter().map(task).collect::<Vec<_>>()}})
}

/// Begins the run of `build` up to its first task, with a plan that is revised once.
pub(crate) fn planned(tasks: &[(&str, &[i64])]) -> Journal {
    let mut journal = Journal::on_board();
    journal.stage("plan", "planner", "yes", &json!({})).operate("load", "load", &plan(&[("Do it", &[])]));
    let vague = json!({"score": 62, "level": "remind", "feedback": "too vague"});
    journal.stage("review", "supervisor", "partial", &vague);
    journal.operate("review_round", "tick", &json!({"feedback": "too vague", "level": "remind"}));
    journal.stage("plan", "planner", "yes", &json!({})).operate("load", "load", &plan(tasks));
    journal.stage("review", "supervisor", "yes", &json!({"score": 85, "level": "none", "feedback": "fine"}));
    journal.operate("approve_plan", "approve", &json!({"because": "85"}));
    journal
}

/// Three tasks: one is completed after a fix, one is split and fails in a part, and one waits for it.
pub(crate) fn working() -> Journal {
    let mut journal = planned(&[("Add the login form", &[]), ("Store sessions", &[]), ("Document it", &[1])]);
    journal.operate("next", "next", &json!({})).stage("implement", "coder", "complete", &json!({}));
    journal.stage("test", "tester", "no", &json!({"answer": "failed", "reason": "2 failures"}));
    journal.operate("fix_round", "tick", &json!({"output": "2 failures"}));
    journal.stage("fix", "coder", "fixed", &json!({})).stage("test", "tester", "yes", &json!({}));
    // Facts for the supervisor, which nobody in particular finds out.
    journal.next("facts", 1, "git diff --stat", 0, "verify");
    journal.stage("verify", "supervisor", "yes", &json!({"score": 85, "level": "none", "feedback": "good"}));
    journal.operate("pass", "pass", &json!({"summary": "a form"}));
    let poor = json!({"score": 20, "level": "refocus", "feedback": "sessions are lost"});
    let told = json!({"feedback": "sessions are lost", "level": "refocus"});
    for _ in 0..2 {
        journal.operate("next", "next", &json!({})).stage("implement", "coder", "complete", &json!({}));
        journal.stage("verify", "supervisor", "no", &poor).operate("fail", "fail", &told);
    }
    journal.stage("replan", "planner", "yes", &json!({}));
    let parts =
        json!({"answer": {"subtasks": [{"description": "Pick a store"}, {"description": "Write to it"}]}});
    journal.operate("split", "split", &parts);
    journal.operate("next", "next", &json!({})).stage("implement", "coder", "complete", &json!({}));
    journal.operate("pass", "pass", &json!({}));
    for _ in 0..2 {
        let blocked = json!({"reason": "no disk"});
        journal.operate("next", "next", &json!({})).stage("implement", "coder", "blocked", &blocked);
        journal.operate("fail", "fail", &json!({"error": "no disk"}));
    }
    journal.operate("give_up", "give_up", &json!({}));
    journal.operate("next", "next", &json!({}));
    journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
    journal
}

/// A run of `fix-types` that there was no reason for.
pub(crate) fn not_run() -> Digest {
    Digest::of_none(NotRun {
        loop_name: "fix-types".to_owned(),
        file: ".loops/fix-types.yaml".to_owned(),
        scope: vec!["src".to_owned(), "tests/*_x".to_owned()],
        since: "1a2b3c4".to_owned(),
    })
}

/// Something to write to that can be read afterwards, or that fails after so many bytes.
#[derive(Clone, Default)]
pub(crate) struct Buffer(std::sync::Arc<std::sync::Mutex<(Vec<u8>, Option<usize>)>>);

impl Buffer {
    pub(crate) fn closed_after(bytes: usize) -> Self {
        let buffer = Self::default();
        buffer.0.lock().unwrap().1 = Some(bytes);
        buffer
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
    }
}

impl std::io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let (written, limit) = &mut *self.0.lock().unwrap();
        if limit.is_some_and(|limit| written.len() + bytes.len() > limit) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Shows a journal to a sink as a run would: what an action printed comes line by line before its end.
pub(crate) fn show(sink: &mut dyn super::Sink, journal: &Journal) -> std::io::Result<()> {
    for stamped in &journal.events {
        if let Event::ActionComplete(complete) = &stamped.event {
            for text in complete.seen.stdout.as_str().lines() {
                sink.output(super::OutputLine { stream: super::Stream::Stdout, text })?;
            }
        }
        sink.event(stamped)?;
    }
    Ok(())
}
