//! Makes the chain: from an outcome to the terminal, the way there, the verdict, who gave it, and what speaks for it.

use serde_json::{Map, Value};

use super::code::Code;
use super::{Link, MOST_LINES, Why};
use crate::base::name::StateName;
use crate::base::text::{head, one_line};
use crate::base::time::{human, millis};
use crate::board::TaskStatus;
use crate::engine::changes::Changes;
use crate::engine::event::{HandoffReason, LoopComplete, RouteReason, Source};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::verification::{Reason, StaleVerdict};
use crate::evaluate::verdict::Observes;
use crate::report::digest::flips::Otherwise;
use crate::report::digest::visits::{LoopAccount, Visit};
use crate::report::digest::{Digest, SentencePart};
use crate::report::items::{Items, printed, why};
use crate::report::numbers::StepNumber;
use crate::report::stages;
use crate::report::step::{Step, StepJudgement};

/// The longest line of evidence, in characters.
const LONGEST_LINE: usize = 200;

/// How many items of a merge are named.
const MOST_ITEMS: usize = 20;

/// The longest text among the numbers.
const LONGEST_VALUE: usize = 200;

/// The details that are sentences: what an evaluator gives as its reason.
const REASONS: [&str; 4] = ["error", "reason", "feedback", "refused"];

impl Why {
    /// Says why a run ended as it did, or why the step did what it did that the digest was asked for. Nothing for a run
    /// that did not begin.
    pub fn of(digest: &Digest) -> Option<Self> {
        let (fold, start) = (digest.fold()?, digest.start()?);
        if digest.is_merge() && !fold.is_of_step() {
            return Some(of_merge(digest, &fold.account()?, start.run_id.clone()));
        }
        let chain = if fold.is_of_step() {
            let (visit, source) = fold.found()?;
            let mut chain = Vec::new();
            if let Some(way) = way(&visit, &source, None) {
                chain.push(way);
            }
            of_visit(&visit, &source, &mut chain);
            chain
        } else {
            let account = fold.account()?;
            let mut chain = vec![Link { says: digest.sentence_parts(), ..outcome(&account) }];
            of_account(&account, Some(digest), &mut chain);
            chain
        };
        let otherwise: Otherwise = digest.otherwise.clone();
        Some(Self { run: start.run_id.clone(), outcome: digest.outcome_word(), chain, otherwise })
    }
}

/// Says of a merge which items are not verified, and why. None of them leads to the next one.
fn of_merge(digest: &Digest, account: &LoopAccount, run: String) -> Why {
    let mut chain = vec![Link { says: digest.sentence_parts(), ..outcome(account) }];
    chain.extend(Items::of(digest).unverified.into_iter().take(MOST_ITEMS).map(of_item));
    Why { run, outcome: digest.outcome_word(), chain, otherwise: Otherwise::default() }
}

fn of_item(item: &Step) -> Link {
    let code = match item.result {
        Some(_) => Code::Verdict(Observes::Failing),
        None => Code::NoVerdict,
    };
    let says = Says::default().name(item.state.as_str()).words(": ").quoted(&why(item), 300);
    let printed = printed(item);
    let lines: Vec<&str> = printed.iter().flat_map(|printed| printed.lines()).collect();
    let last = lines[lines.len().saturating_sub(MOST_LINES)..].iter();
    Link {
        state: Some(item.state.clone()),
        step: Some(StepNumber::of_run(item.number)),
        verdict: item.verdict().cloned(),
        lines: last.map(|line| head(line, LONGEST_LINE).to_owned()).collect(),
        ..link(code, says)
    }
}

/// A sentence that is made bit by bit.
#[derive(Default)]
struct Says(Vec<SentencePart>);

impl Says {
    fn words(mut self, words: &str) -> Self {
        self.0.push(SentencePart::Words(words.to_owned()));
        self
    }

    fn name(mut self, name: &str) -> Self {
        self.0.push(SentencePart::Name(one_line(name, 120)));
        self
    }

    /// Adds words of whoever wrote the run.
    fn quoted(self, text: &str, limit: usize) -> Self {
        let line = one_line(text, limit);
        self.words(&line)
    }
}

fn link(code: Code, says: Says) -> Link {
    Link {
        code,
        says: says.0,
        state: None,
        step: None,
        file: None,
        line: None,
        verdict: None,
        evaluator: None,
        numbers: Map::new(),
        lines: Vec::new(),
    }
}

/// Returns a link about a state, with its place.
fn at(state: &StateName, source: &Source, link: Link) -> Link {
    let file = Some(source.file.clone()).filter(|file| !file.is_empty());
    let written = source.lines.get(state).copied();
    Link { state: Some(state.clone()), file, line: written.filter(|line| *line > 0), ..link }
}

fn of_step(visit: &Visit, source: &Source, link: Link) -> Link {
    at(&visit.step.state, source, Link { step: Some(visit.number.clone()), ..link })
}

fn outcome(account: &LoopAccount) -> Link {
    let code = match &account.end {
        None => Code::Incomplete,
        Some(end) if end.outcome == Outcome::Success && !end.verified => Code::Unverified,
        Some(end) => Code::Outcome(end.outcome),
    };
    let word = match &account.end {
        None => "incomplete".to_owned(),
        Some(end) => end.outcome.word().to_owned(),
    };
    let unverified = if code == Code::Unverified { " (unverified)" } else { "" };
    link(
        code,
        Says::default().words("the loop ").name(&account.loop_name).words(&format!(": {word}{unverified}")),
    )
}

/// Adds what lies behind the outcome of a loop.
fn of_account(account: &LoopAccount, digest: Option<&Digest>, chain: &mut Vec<Link>) {
    let source = &account.source;
    if let Some(end) = &account.end {
        chain.push(terminal(end, account.saved, source));
        chain.extend(changes(end));
        chain.extend(unverified(end));
    }
    chain.extend(digest.and_then(tasks));
    let last = account.last.as_ref();
    if let Some(visit) = last {
        chain.extend(way(visit, source, account.end.as_ref()));
    }
    let Some(decided) = &account.decided else { return };
    // The last step often is the one that decided, and its way out stands above then.
    if last.is_none_or(|last| last.number != decided.number) {
        chain.extend(way(decided, source, None));
    }
    of_visit(decided, source, chain);
}

/// Adds what lies behind the way out of a step.
fn of_visit(visit: &Visit, source: &Source, chain: &mut Vec<Link>) {
    chain.push(verdict(visit, source));
    if visit.step.result.is_some() || visit.step.judged.is_some() {
        chain.push(evaluator(visit, source));
    }
    // What a sub-loop printed is what its own steps printed, so that the chain goes on inside of it.
    if let Some(inner) = &visit.inner {
        chain.push(Link { step: Some(visit.number.clone()), ..outcome(inner) });
        of_account(inner, None, chain);
        return;
    }
    chain.extend(evidence(visit, source));
}

fn terminal(end: &LoopComplete, saved: Option<HandoffReason>, source: &Source) -> Link {
    let by = end.terminated_by;
    let code = match saved {
        // A failure that only `--strict` makes has reached its terminal like a success, and its end would not tell.
        _ if end.unproven => Code::Strict,
        Some(reason) if by == TerminatedBy::Handoff => Code::Saved(reason),
        _ => Code::End(by),
    };
    let says = Says::default();
    let state = end.final_state.as_str();
    let reason = end.reason.as_str();
    let says = match by {
        TerminatedBy::Terminal if end.unproven => says.quoted(reason, 300),
        TerminatedBy::Terminal => says.words("it reached ").name(state),
        TerminatedBy::Killed if let Some(pass) = &end.killed_in_pass => {
            says.words("its process was killed in ").words(pass)
        }
        TerminatedBy::Killed => says.words("its process was killed in ").name(state),
        TerminatedBy::Interrupted => {
            let signal = end.signal.map_or("a request to end", |signal| signal.name());
            says.words(&format!("{signal} came in ")).name(state)
        }
        TerminatedBy::UncommittedChanges
        | TerminatedBy::NotConfirmed
        | TerminatedBy::MaxIterations
        | TerminatedBy::MaxSteps
        | TerminatedBy::MaxEdgeRevisits
        | TerminatedBy::Error
        | TerminatedBy::Blocked
        | TerminatedBy::Timeout
        | TerminatedBy::Handoff
        | TerminatedBy::LeaseLost
        | TerminatedBy::Cancelled
        | TerminatedBy::Stall
        | TerminatedBy::FatalError
        | TerminatedBy::LoopStop
        | TerminatedBy::Budget
        | TerminatedBy::Unavailable
        | TerminatedBy::NotRecorded
        | TerminatedBy::JournalLost => match reason {
            "" => says.words("it ended in ").name(state),
            reason => says.quoted(reason, 300),
        },
    };
    at(&end.final_state, source, link(code, says))
}

/// Returns why the end of a run does not stand on its tree, although something passed.
fn unverified(end: &LoopComplete) -> Option<Link> {
    let verification = end.verification.as_deref()?;
    let reason = *verification.reasons.iter().find(|reason| **reason != Reason::Unobserved)?;
    let of = |stale: &StaleVerdict| {
        stale.files.iter().map(|file| one_line(file, LONGEST_LINE)).collect::<Vec<_>>()
    };
    let lines = verification.stale.iter().flat_map(of).take(MOST_LINES).collect();
    let says = verification.why().into_iter().fold(Says::default(), |says, why| says.quoted(&why, 500));
    Some(Link { lines, ..link(Code::Verification(reason), says) })
}

/// Returns what changed in the working tree, where that is what failed.
fn changes(end: &LoopComplete) -> Option<Link> {
    let changes = end.changes.as_ref().and_then(Changes::known)?;
    if end.terminated_by != TerminatedBy::UncommittedChanges {
        return None;
    }
    let file = |file: &crate::engine::changes::ChangedFile| {
        format!("{} {}", file.kind.word(), one_line(&file.path, LONGEST_LINE))
    };
    let lines = changes.files.iter().take(MOST_LINES).map(file).collect();
    let says = Says::default().words(&format!("the run changed {}", changes.words()));
    Some(Link { lines, ..link(Code::Changes, says) })
}

/// Returns the tasks that are not done, of a run that works on a board and did not succeed.
fn tasks(digest: &Digest) -> Option<Link> {
    let work = digest.work().filter(|_| !digest.is_success())?;
    let board = work.board();
    let left: Vec<_> = board.leaves().filter(|task| task.status != TaskStatus::Completed).collect();
    if left.is_empty() {
        return None;
    }
    // What failed says more than what was not reached.
    let (failed, others): (Vec<_>, Vec<_>) = left.iter().partition(|task| task.status == TaskStatus::Failed);
    let line = |task: &&&crate::board::Task| {
        let why = work.reason(task).map_or_else(String::new, |why| format!(": {why}"));
        let line =
            format!("{} {} — {}{why}", task.id, one_line(&task.description, 80), stages::status(task.status));
        one_line(&line, LONGEST_LINE)
    };
    let lines = failed.iter().chain(&others).take(MOST_LINES).map(line).collect();
    let says =
        Says::default().words(&format!("{} of {} tasks are not done", left.len(), board.leaves().count()));
    Some(Link { lines, ..link(Code::Tasks, says) })
}

/// Returns the way out of a step. Of the last one, what it was that the run ended without one.
fn way(visit: &Visit, source: &Source, end: Option<&LoopComplete>) -> Option<Link> {
    let step = &visit.step;
    let says = |says: Says| numbered(says, &visit.number);
    let Some(route) = &step.route else {
        let is_lost = end.is_some_and(|end| {
            matches!(end.terminated_by, TerminatedBy::Error | TerminatedBy::Blocked)
                && end.final_state == step.state
        });
        let verdict = step.verdict().filter(|_| is_lost)?;
        let words = says(Says::default())
            .name(step.state.as_str())
            .words(" has no way for the verdict ")
            .name(verdict.as_str());
        let verdict = Some(verdict.clone());
        return Some(of_step(visit, source, Link { verdict, ..link(Code::NoRoute, words) }));
    };
    let words = says(Says::default()).name(step.state.as_str()).words(" → ").name(route.to.as_str());
    let words = match &route.verdict {
        Some(_) if route.reason == RouteReason::RetryExhausted => {
            words.words(", the way when no try is left")
        }
        Some(verdict) => words.words(", the way for ").name(verdict.as_str()),
        None => words,
    };
    let link = Link { verdict: route.verdict.clone(), ..link(Code::Route(route.reason), words) };
    Some(of_step(visit, source, link))
}

fn numbered(says: Says, number: &StepNumber) -> Says {
    says.words(&format!("step {number}: "))
}

fn verdict(visit: &Visit, source: &Source) -> Link {
    let step = &visit.step;
    let says = numbered(Says::default(), &visit.number)
        .name(step.state.as_str())
        .words(" ")
        .quoted(&step.said(), 300);
    let code = match (&step.judged, step.verdict()) {
        (Some(judged), _) => Code::Verdict(judged.observes),
        (None, Some(_)) => Code::Verdict(step.observes()),
        (None, None) => Code::NoVerdict,
    };
    of_step(visit, source, Link { verdict: step.verdict().cloned(), ..link(code, says) })
}

fn evaluator(visit: &Visit, source: &Source) -> Link {
    let step = &visit.step;
    let numbers = numbers(step);
    let name = step.judged.as_ref().map(|judged| one_line(&judged.evaluator, 120));
    let code = name.as_deref().map_or(Code::NoEvaluator, Code::of_evaluator);
    let facts = facts(step, &numbers);
    let says = match (&name, facts.is_empty()) {
        (Some(name), true) => Says::default().name(name).words(" judged it"),
        (Some(name), false) => Says::default().name(name).words(": ").words(&facts),
        (None, true) => Says::default().words("nothing was judged"),
        (None, false) => Says::default().words("nothing was judged: ").words(&facts),
    };
    of_step(visit, source, Link { evaluator: name, numbers, ..link(code, says) })
}

/// Returns the numbers of an evaluator: the end of the action, and the values that it compared.
fn numbers(step: &Step) -> Map<String, Value> {
    let mut numbers = Map::new();
    if let Some(result) = &step.result {
        numbers.insert("exit_code".to_owned(), result.exit_code.into());
        numbers.insert("duration_ms".to_owned(), millis(result.duration).into());
    }
    let details = step.judged.iter().flat_map(|judged| &judged.details);
    for (key, value) in details.filter(|(key, _)| !REASONS.contains(&key.as_str())) {
        let value = value.as_str().map_or_else(|| value.clone(), |text| one_line(text, LONGEST_VALUE).into());
        numbers.insert(one_line(key, 60), value);
    }
    numbers
}

fn facts(step: &Step, numbers: &Map<String, Value>) -> String {
    let ended = step.result.as_ref().map(|result| step.ended(result));
    // People read these two as words: how the action ended, and how long it took.
    let compared = numbers.iter().filter(|(key, _)| !matches!(key.as_str(), "exit_code" | "duration_ms"));
    let compared = compared.map(|(key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key} {}", one_line(&value, 80))
    });
    let took = step.result.as_ref().map(|result| human(result.duration));
    ended.into_iter().chain(compared).chain(took).collect::<Vec<_>>().join(", ")
}

/// Returns what speaks for a verdict: the reason that was given, and the last lines that were printed.
fn evidence(visit: &Visit, source: &Source) -> Option<Link> {
    let step = &visit.step;
    let reasons = reasons(step.judged.as_ref());
    let printed = step.output();
    // There are fewer reasons than lines: a step keeps no more than four details of a verdict.
    let room = MOST_LINES - reasons.len();
    let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    let lines = lines[lines.len().saturating_sub(room)..].iter().map(|line| cut(line)).collect::<Vec<_>>();
    let code = if lines.is_empty() { Code::Reason } else { Code::Output };
    let lines: Vec<String> = reasons.into_iter().chain(lines).collect();
    if lines.is_empty() {
        return None;
    }
    let says = match step.action_line(80) {
        Some(action) => Says::default().name(&action),
        None => Says::default().words("what there was to see"),
    };
    let says = if code == Code::Output { says.words(" printed last") } else { says.words(": the reason") };
    Some(of_step(visit, source, Link { lines, ..link(code, says) }))
}

fn reasons(judged: Option<&StepJudgement>) -> Vec<String> {
    let details = judged.iter().flat_map(|judged| &judged.details);
    let reasons = details.filter(|(key, _)| REASONS.contains(&key.as_str()));
    reasons
        .filter_map(|(key, value)| Some(format!("{key}: {}", one_line(value.as_str()?, LONGEST_LINE))))
        .collect()
}

/// Shortens a line, and leaves what stands in front of its first word.
fn cut(line: &str) -> String {
    let line = line.trim_end();
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", head(line, end)),
        None => line.to_owned(),
    }
}
