//! What a state comes to in place of its work, checked against what it does: a mock that the state could not produce is a
//! mistake of the test file.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::virtual_tree::{TreeEffects, leads_out, outside};
use super::written::{CancelSignal, MockedOutcome, WrittenMock};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::explanation::Explanation;
use crate::base::name::{StateName, VarName};
use crate::base::path::DocPath;
use crate::base::text::listed;
use crate::engine::outcome::{Outcome, Signal};
use crate::evaluate::form::mismatch;
use crate::evaluate::model::{Usage, price};
use crate::evaluate::number_bounds::ExitStatus;
use crate::evaluate::observation::{NOT_FOUND_CODE, Observation, Stop, TIMEOUT_CODE, Text};
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Evaluate, Verdicts};
use crate::machine::{Action, End, SignalKind, Step};

/// Makes the finding of a mistake in a mock.
pub fn mistake(place: FindingPlace, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("mock", place, message)
}

/// What a state comes to at one visit.
#[derive(Clone, Debug, PartialEq)]
pub struct Mock {
    /// What its work comes to.
    pub work: MockedWork,
    /// What the judge says that is asked about it.
    pub judgement: Option<MockedJudgement>,
    /// What it does to the tree.
    pub effects: TreeEffects,
    /// How long it takes.
    pub takes: Duration,
    /// Whether it runs into its timeout, however long that is.
    pub is_late: bool,
    /// What happens to the run meanwhile.
    pub interruption: Option<Interruption>,
    /// Whether the run is resumed in front of this visit, or after it where it interrupts the run.
    pub resumes: bool,
    /// When it was recorded, where it says so.
    pub from: Option<String>,
}

/// What the work of a state comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum MockedWork {
    /// There is none, or it is said nothing about it.
    Nothing,
    /// It ends like this, and costs so much.
    Ends(Box<Observation>, Usage),
    /// The loop that it runs ends like this.
    SubLoop(MockedEnd),
}

/// How a sub-loop ends.
#[derive(Clone, Debug, PartialEq)]
pub struct MockedEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// The terminal.
    pub final_state: Option<StateName>,
    /// Whether something passed in it.
    pub verified: bool,
    /// What it gives back.
    pub captures: IndexMap<VarName, String>,
    /// What it prints last.
    pub stdout: String,
    /// What models cost in it.
    pub usage: Usage,
}

/// What a judge says.
#[derive(Clone, Debug, PartialEq)]
pub struct MockedJudgement {
    /// Its answer, or why there is none.
    pub reply: Result<Value, Explanation>,
    /// Whether its host is down.
    pub stop: Option<Stop>,
    /// What it costs.
    pub usage: Usage,
}

/// What happens to a run while a state works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// It is asked to end.
    Asked(Signal),
    /// Its process is killed.
    Killed,
}

/// What has to be known of a state to mock it.
#[derive(Clone, Copy, Debug)]
pub struct MockedState<'m> {
    name: &'m StateName,
    action: Option<&'m Action>,
    evaluate: Option<&'m Evaluate>,
}

impl<'m> MockedState<'m> {
    /// Makes it of a step.
    pub fn step(step: &'m Step) -> Self {
        Self { name: &step.name, action: step.action.as_ref(), evaluate: step.evaluate.as_ref() }
    }

    /// Makes it of a terminal.
    pub fn end(end: &'m End) -> Self {
        Self { name: &end.name, action: end.closing.as_ref(), evaluate: None }
    }

    /// Returns what it does, in words, with the keys that its mocks may have beside those of every mock.
    fn kind(&self) -> (&'static str, &'static [&'static str]) {
        match self.action {
            Some(Action::Shell(_)) => {
                ("a shell command", &["exit", "signal", "stdout", "stderr", "not_started"])
            }
            Some(Action::Prompt(_)) => {
                ("a prompt", &["says", "exit", "tokens", "cost", "signal", "answers", "unavailable"])
            }
            Some(Action::Tool(_)) => ("a call of an MCP tool", &["result", "is_error", "not_found"]),
            Some(Action::Approval(_)) => {
                ("a question for a person", &["verdict", "text", "by", "unanswered"])
            }
            Some(Action::Learning(_)) => {
                ("a look at what is known", &["verdict", "reason", "tokens", "cost"])
            }
            Some(Action::SubLoop(_)) => (
                "a sub-loop",
                &["outcome", "final_state", "captures", "verified", "stdout", "tokens", "cost"],
            ),
            Some(Action::Board(_)) => ("an operation on the task board", &[]),
            None => ("nothing", &[]),
        }
    }

    fn asks(&self) -> bool {
        self.evaluate.is_some_and(|evaluate| evaluate.asks())
    }
}

/// The keys of mocks of all work.
const OF_WORK: [&str; 6] = ["takes", "timed_out", "writes", "deletes", "commits", "from"];

/// The keys of every mock.
const OF_ALL: [&str; 3] = ["cancel", "killed", "resume"];

/// The keys of mocks of judges.
const OF_JUDGES: [&str; 7] = ["verdict", "confidence", "reason", "answers", "tokens", "cost", "unavailable"];

impl WrittenMock {
    /// Returns the keys that are written.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("exit", self.exit.is_some()),
            ("signal", self.signal.is_some()),
            ("stdout", self.stdout.is_some()),
            ("stderr", self.stderr.is_some()),
            ("takes", self.takes.is_some()),
            ("timed_out", self.timed_out),
            ("not_started", self.not_started.is_some()),
            ("unavailable", self.unavailable),
            ("writes", !self.writes.is_empty()),
            ("deletes", !self.deletes.is_empty()),
            ("commits", self.commits.is_some()),
            ("says", self.says.is_some()),
            ("tokens", self.tokens.is_some()),
            ("cost", self.cost.is_some()),
            ("answers", self.answers.is_some()),
            ("verdict", self.verdict.is_some()),
            ("confidence", self.confidence.is_some()),
            ("reason", self.reason.is_some()),
            ("result", self.result.is_some()),
            ("is_error", self.is_error.is_some()),
            ("not_found", self.not_found),
            ("text", self.text.is_some()),
            ("by", self.by.is_some()),
            ("unanswered", self.unanswered),
            ("outcome", self.outcome.is_some()),
            ("final_state", self.final_state.is_some()),
            ("verified", self.verified.is_some()),
            ("captures", !self.captures.is_empty()),
            ("cancel", self.cancel.is_some()),
            ("killed", self.killed),
            ("resume", self.resume),
            ("from", self.from.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect()
    }

    /// Tells whether it only says that the run goes on.
    pub fn only_resumes(&self) -> bool {
        self.given() == ["resume"]
    }

    fn usage(&self) -> Usage {
        Usage {
            calls: 1,
            output_tokens: self.tokens.map_or(0, |tokens| tokens.0.into()),
            // No price means free: one call of unknown price would make the cost of the whole run unknown.
            cost_usd: self.cost.and_then(price).or(Some(0.0)),
            ..Usage::default()
        }
    }
}

/// Reads the mock of a visit of a state. What is wrong with it goes to `out`.
pub fn typed(
    written: &WrittenMock,
    state: MockedState<'_>,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<Mock> {
    let mut check = MockCheck { written, state, path, out, is_wrong: false };
    check.keys();
    check.paths();
    let work = check.work();
    let judgement = if state.asks() { check.judgement() } else { None };
    check.time();
    let interruption = match (written.cancel, written.killed) {
        (Some(_), true) => {
            check.wrong(
                "killed",
                "a run is asked to end or its process is killed, not both".to_owned(),
                None,
            );
            None
        }
        (Some(signal), false) => Some(Interruption::Asked(signal_of(signal))),
        (None, true) => Some(Interruption::Killed),
        (None, false) => None,
    };
    (!check.is_wrong).then(|| Mock {
        work,
        judgement,
        effects: TreeEffects {
            writes: written.writes.iter().map(|(path, text)| (path.clone(), text.clone())).collect(),
            deletes: written.deletes.clone(),
            commits: written.commits.clone(),
        },
        takes: written.takes.map_or(Duration::ZERO, |takes| takes.0),
        is_late: written.timed_out || written.unanswered,
        interruption,
        resumes: written.resume,
        from: written.from.as_ref().and_then(|from| from.at.clone()),
    })
}

fn signal_of(signal: CancelSignal) -> Signal {
    match signal {
        CancelSignal::Int => Signal::Int,
        CancelSignal::Term => Signal::Term,
        CancelSignal::Hup => Signal::Hup,
        CancelSignal::Quit => Signal::Quit,
    }
}

/// The check of one mock.
struct MockCheck<'c, 'm> {
    written: &'c WrittenMock,
    state: MockedState<'m>,
    path: &'c DocPath,
    out: &'c mut Diagnostics,
    is_wrong: bool,
}

impl MockCheck<'_, '_> {
    fn wrong(&mut self, key: &str, message: String, help: Option<String>) {
        self.is_wrong = true;
        let finding = mistake(FindingPlace::Key(self.path.key(key)), message);
        self.out.push(match help {
            Some(help) => finding.help(help),
            None => finding,
        });
    }

    /// Refuses keys of work that the state does not do.
    fn keys(&mut self) {
        let (kind, own) = self.state.kind();
        let does_work = !own.is_empty();
        let asks = self.state.asks();
        // A state that only asks a judge does no work, but its judge takes time.
        let fits = |key: &&str| {
            own.contains(key)
                || OF_ALL.contains(key)
                || (does_work && OF_WORK.contains(key))
                || (asks && (OF_JUDGES.contains(key) || *key == "takes"))
        };
        for key in self.written.given().into_iter().filter(|key| !fits(key)) {
            let name = self.state.name;
            let message = format!("`{name}` does not come to `{key}`: it is {kind}");
            let message = match self.state.action {
                None => format!("`{name}` does not come to `{key}`: it only judges what is there"),
                Some(_) => message,
            };
            let known = own.iter().chain(if asks { &OF_JUDGES[..] } else { &[] });
            // `from`, the last of them, says where a mock is from, which no state comes to.
            let known = known.chain(if does_work { &OF_WORK[..5] } else { &[] });
            let known: Vec<&str> = known.copied().collect();
            let help = if known.is_empty() {
                "remove the mock: the engine does this by itself".to_owned()
            } else {
                format!("it can come to {}", listed(&known, "or"))
            };
            self.wrong(key, message, Some(help));
        }
    }

    /// Refuses times and ends that exclude each other.
    fn time(&mut self) {
        let written = self.written;
        let limit = self.state.action.and_then(Action::timeout);
        let is_fine = written.exit.is_some_and(|exit| exit.get() == 0);
        let takes = written.takes.map_or(Duration::ZERO, |takes| takes.0);
        if written.timed_out && is_fine {
            self.wrong("timed_out", "what runs into its timeout does not exit with 0".to_owned(), None);
        }
        match limit {
            None if written.timed_out && !has_idle_timeout(self.state.action) => {
                let message = format!("`{}` has no timeout that it could run into", self.state.name);
                self.wrong("timed_out", message, Some("give the state a `timeout`".to_owned()));
            }
            Some(limit) if takes > limit && is_fine => {
                let limit = crate::base::time::human(limit);
                let message = format!("it is stopped after {limit}, so it does not exit with 0");
                self.wrong("exit", message, Some("remove `exit`, or let it take less".to_owned()));
            }
            Some(_) | None => {}
        }
    }

    /// Refuses files outside of the repository, in which a mock is compared with what its command does.
    fn paths(&mut self) {
        let written = self.written;
        let writes = written.writes.keys().map(|path| ("writes", path));
        let deletes = written.deletes.iter().map(|path| ("deletes", path));
        for (key, path) in writes.chain(deletes).filter(|(_, path)| leads_out(path)) {
            self.wrong(key, outside(path), None);
        }
    }

    fn work(&mut self) -> MockedWork {
        match self.state.action {
            None | Some(Action::Board(_)) => MockedWork::Nothing,
            Some(Action::Shell(_)) => self.shell(),
            Some(Action::Prompt(prompt)) => {
                let form = prompt.answer.as_ref().map(|form| form.schema().clone());
                self.prompt(form.as_ref())
            }
            Some(Action::Tool(_)) => self.tool(),
            Some(Action::Approval(_)) => self.approval(),
            Some(Action::Learning(_)) => self.learning(),
            Some(Action::SubLoop(_)) => self.sub_loop(),
        }
    }

    fn shell(&mut self) -> MockedWork {
        let written = self.written;
        if let Some(why) = &written.not_started {
            return MockedWork::Ends(Box::new(Observation::not_started(why)), Usage::default());
        }
        let signal = written.signal.as_deref().and_then(|name| {
            let number = signal_number(name);
            if number.is_none() {
                let message = format!("`{name}` is not a signal");
                self.wrong("signal", message, Some("write `SIGKILL`, `SIGTERM` or a number".to_owned()));
            }
            number
        });
        if signal.is_some() && written.exit.is_some() {
            let message = "a command ends by a signal or with an exit code, not both".to_owned();
            self.wrong("signal", message, Some("keep one".to_owned()));
        }
        let code = signal.map_or(written.exit.map_or(0, ExitStatus::get), |signal| 128 + signal);
        let seen = Observation {
            signal,
            stderr: Text::whole(lines(written.stderr.as_deref())),
            ..Observation::exited(code, lines(written.stdout.as_deref()))
        };
        MockedWork::Ends(Box::new(seen), Usage::default())
    }

    fn prompt(&mut self, form: Option<&Value>) -> MockedWork {
        let written = self.written;
        let usage = written.usage();
        if written.unavailable {
            let seen = Observation {
                stop: Some(Stop::Unavailable),
                ..Observation::not_started("the host of the agent is down")
            };
            return MockedWork::Ends(Box::new(seen), Usage::default());
        }
        if self.state.asks() && form.is_none() && written.answers.is_some() {
            // It is the judge who answers in a form.
        } else if let (Some(answers), None) = (&written.answers, form) {
            let message = format!("`{}` asks for no answer in a form", self.state.name);
            let help = format!("write `says: {answers}`, or give the state an `answer`");
            self.wrong("answers", message, Some(help));
        }
        let mut said = written.says.clone().unwrap_or_default();
        if let (Some(answers), Some(form)) = (&written.answers, form) {
            if let Some(why) = mismatch(form, answers) {
                let message = format!("the prompt of `{}` does not take this answer: {why}", self.state.name);
                self.wrong("answers", message, None);
            }
            said = answers.to_string();
        }
        if let Some(signal) = &written.signal {
            let (word, text) = signal.split_once(':').unwrap_or((signal, ""));
            if let Some(kind) = SignalKind::by_word(word.trim()) {
                // Nothing behind `CONTEXT_HANDOFF:` leaves the reason to a file; without that file it would be no signal.
                let text = Some(text.trim()).filter(|text| !text.is_empty()).unwrap_or("the mock says so");
                said = format!("{}{}: {text}\n", lines(Some(&said)), marker(kind));
            } else {
                let message = format!("`{word}` is not a signal that an agent gives");
                self.wrong("signal", message, Some("write `handoff`, `error` or `stop`".to_owned()));
            }
        }
        let code = written.exit.map_or(0, ExitStatus::get);
        MockedWork::Ends(Box::new(Observation::exited(code, lines(Some(&said)))), usage)
    }

    fn tool(&mut self) -> MockedWork {
        let written = self.written;
        let given = [written.result.is_some(), written.is_error.is_some(), written.not_found];
        if given.iter().filter(|given| **given).count() > 1 {
            let message = "a tool gives a `result`, is an error or is not found: one of them".to_owned();
            self.wrong("result", message, Some("keep one".to_owned()));
        }
        let envelope = |is_error: bool, text: String| {
            format!("{}\n", json!({"isError": is_error, "content": [{"type": "text", "text": text}]}))
        };
        let seen = if written.not_found {
            Observation::exited(NOT_FOUND_CODE, envelope(true, "there is no such tool".to_owned()))
        } else if let Some(why) = &written.is_error {
            Observation::exited(1, envelope(true, why.clone()))
        } else {
            let text = match &written.result {
                None => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            };
            Observation::exited(0, envelope(false, text))
        };
        MockedWork::Ends(Box::new(seen), Usage::default())
    }

    fn approval(&mut self) -> MockedWork {
        let written = self.written;
        let text = written.text.clone().unwrap_or_default();
        let ends = |seen| MockedWork::Ends(Box::new(seen), Usage::default());
        if written.unanswered {
            return ends(Observation {
                stderr: Text::whole("no answer"),
                ..Observation::exited(TIMEOUT_CODE, "")
            });
        }
        match written.verdict.as_deref() {
            Some("approve" | "yes") => ends(Observation::exited(0, "")),
            Some("reject" | "no") => {
                ends(Observation { stderr: Text::whole(text), ..Observation::exited(1, "") })
            }
            Some("edit") if !text.trim().is_empty() => ends(Observation::exited(0, text)),
            // An empty text with code 0 would be read as an approval.
            Some("edit") => {
                let message = "an `edit` is the text that the person writes".to_owned();
                self.wrong("verdict", message, Some("add `text`".to_owned()));
                MockedWork::Nothing
            }
            Some(other) => {
                let message = format!("a person does not say `{other}`");
                let help = "write `approve`, `reject` or `edit`, or `unanswered: true`".to_owned();
                self.wrong("verdict", message, Some(help));
                MockedWork::Nothing
            }
            // A run that ends or goes on while it waits has no answer yet.
            None if written.cancel.is_some() || written.killed || written.only_resumes() => {
                MockedWork::Nothing
            }
            None => {
                let message = "what the person says is missing".to_owned();
                let help = "write `verdict: approve`, `reject` or `edit`, or `unanswered: true`".to_owned();
                self.wrong("verdict", message, Some(help));
                MockedWork::Nothing
            }
        }
    }

    fn learning(&mut self) -> MockedWork {
        let written = self.written;
        // A record that is there is found without a call, so one is counted only where the mock says what it took.
        let usage = if written.tokens.is_some() || written.cost.is_some() {
            written.usage()
        } else {
            Usage::default()
        };
        let reason = written.reason.clone().unwrap_or_default();
        let code = match written.verdict.as_deref() {
            None | Some("yes") => 0,
            Some("blocked" | "no") => 1,
            Some(other) => {
                let message = format!("a look at what is known does not end with `{other}`");
                self.wrong("verdict", message, Some("write `yes` or `blocked`".to_owned()));
                1
            }
        };
        let seen = Observation { stderr: Text::whole(reason), ..Observation::exited(code, "") };
        MockedWork::Ends(Box::new(seen), usage)
    }

    fn sub_loop(&mut self) -> MockedWork {
        let written = self.written;
        let Some(outcome) = written.outcome else {
            let others = ["final_state", "captures", "verified", "stdout", "tokens", "cost"];
            if let Some(key) = written.given().into_iter().find(|key| others.contains(key)) {
                let message = format!("`{key}` says how a sub-loop ends, and its `outcome` is missing");
                self.wrong(key, message, Some("add `outcome`, or mock the states of the loop".to_owned()));
            }
            return MockedWork::Nothing;
        };
        let outcome = outcome_of(outcome);
        let usage = if written.tokens.is_some() || written.cost.is_some() {
            written.usage()
        } else {
            Usage::default()
        };
        MockedWork::SubLoop(MockedEnd {
            outcome,
            final_state: written.final_state.clone(),
            verified: written.verified.unwrap_or(outcome == Outcome::Success),
            captures: written.captures.clone(),
            stdout: lines(written.stdout.as_deref()),
            usage,
        })
    }

    fn judgement(&mut self) -> Option<MockedJudgement> {
        let (written, evaluate) = (self.written, self.state.evaluate?);
        if written.unavailable {
            let reply = Err(Explanation::new("the host of the judge is down"));
            return Some(MockedJudgement { reply, stop: Some(Stop::Unavailable), usage: Usage::default() });
        }
        // Where the prompt itself asks for a form, `answers` belongs to the prompt, and the judge has no answer from it.
        let is_forms = self.state.action.is_some_and(|action| action.form().is_some());
        let answers = written.answers.as_ref().filter(|_| !is_forms);
        let reply = match (answers, &written.verdict) {
            (Some(answers), _) => answers.clone(),
            (None, Some(verdict)) => {
                self.possible(evaluate, verdict);
                let mut reply =
                    json!({"verdict": verdict, "reason": written.reason.clone().unwrap_or_default()});
                if let Some(confidence) = written.confidence {
                    reply["confidence"] = json!(confidence);
                }
                reply
            }
            (None, None) => return None,
        };
        // An impossible verdict does not fit the schema either; it is one mistake and is named once.
        if let Evaluate::LlmStructured(judge) = evaluate
            && !self.is_wrong
            && let Some(why) = mismatch(&judge.answer_schema(), &reply)
        {
            let key = if answers.is_some() { "answers" } else { "verdict" };
            let message = format!("the judge of `{}` does not answer like this: {why}", self.state.name);
            self.wrong(key, message, Some("write what fits its `schema` as `answers`".to_owned()));
        }
        // `tokens` and `cost` are those of the work, where there is some: they must not be counted twice.
        let usage = if self.state.action.is_some() {
            Usage { calls: 1, cost_usd: Some(0.0), ..Usage::default() }
        } else {
            written.usage()
        };
        Some(MockedJudgement { reply: Ok(reply), stop: None, usage })
    }

    /// Refuses a verdict that the evaluator cannot give.
    fn possible(&mut self, evaluate: &Evaluate, verdict: &str) {
        let Verdicts::Only(words) = evaluate.verdicts() else { return };
        let is_meant = |word: &str| Verdict::canonical(word) == Verdict::canonical(verdict);
        if !words.iter().any(|word| is_meant(word)) {
            let message =
                format!("`{}` never gives the verdict `{verdict}` ({})", self.state.name, evaluate.name());
            self.wrong("verdict", message, Some(format!("it can give {}", listed(&words, "or"))));
        }
    }
}

fn has_idle_timeout(action: Option<&Action>) -> bool {
    action.is_some_and(Action::can_be_late)
}

fn outcome_of(outcome: MockedOutcome) -> Outcome {
    match outcome {
        MockedOutcome::Success => Outcome::Success,
        MockedOutcome::Failure => Outcome::Failure,
        MockedOutcome::Exhausted => Outcome::Exhausted,
        MockedOutcome::Stopped => Outcome::Stopped,
        MockedOutcome::Error => Outcome::Error,
        MockedOutcome::Blocked => Outcome::Blocked,
        MockedOutcome::Timeout => Outcome::Timeout,
        MockedOutcome::Handoff => Outcome::Handoff,
        MockedOutcome::OverBudget => Outcome::OverBudget,
        MockedOutcome::Unavailable => Outcome::Unavailable,
    }
}

/// Returns a text as a program prints it: its last line has an end.
fn lines(text: Option<&str>) -> String {
    match text {
        None | Some("") => String::new(),
        Some(text) if text.ends_with('\n') => text.to_owned(),
        Some(text) => format!("{text}\n"),
    }
}

/// Returns the word in front of a signal's line.
fn marker(kind: SignalKind) -> &'static str {
    match kind {
        SignalKind::Handoff => "CONTEXT_HANDOFF",
        SignalKind::Error => "FATAL_ERROR",
        SignalKind::Stop => "LOOP_STOP",
    }
}

/// The signals that commands usually die of, with their numbers on all systems that this program runs on.
// USR1, USR2, BUS and others are left out: Linux and macOS number them differently, so a mock has to say the number.
const SIGNALS: [(&str, i32); 12] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("FPE", 8),
    ("KILL", 9),
    ("SEGV", 11),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
];

fn signal_number(name: &str) -> Option<i32> {
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    let known = SIGNALS.iter().find(|(known, _)| *known == bare).map(|(_, number)| *number);
    // 64 is the last of Linux's real-time signals.
    known.or_else(|| name.parse().ok().filter(|number| (1..=64).contains(number)))
}
