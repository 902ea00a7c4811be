//! `paradigm: criteria`: work that goes on until every criterion is met, or nothing moves any more.

use super::paradigm_parts::{Work, by_exit_code, done, empty, identifier, to};
use crate::base::decode::{Decode as _, choice, record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::{Entry, Node};
use crate::base::path::DocPath;
use crate::definition::assembled_tree::{entry, items, map, plain, text};
use crate::evaluate::exit_codes::ExitCodes;
use crate::evaluate::number_bounds::VisitCount;

record! {
    /// Work, and the criteria by which it is done.
    pub struct Criteria {
        /// What is to be done.
        spec: String,
        /// What has to be met, in the order in which it is checked.
        criteria: Vec<Criterion>,
        /// The steps of the work, one a round.
        steps: Vec<String> = Vec::new(),
        /// What does the work.
        using: Work,
        /// Who says that the work is done.
        exit_signal: ExitSignal = ExitSignal::Auto,
        /// How many rounds in a row at the same criterion are enough.
        stuck_after: VisitCount = VisitCount::FIVE,
    }
}

record! {
    /// Something that has to be met.
    pub struct Criterion {
        /// The name.
        name: String,
        /// The command that tells whether it is met.
        check: Option<Work>,
        /// The exit codes of the command that mean that it is not met; without, 1 to 125. With any other one but 0 the
        /// command did not tell.
        no: Option<ExitCodes>,
        /// What a model is asked to judge instead.
        judge: Option<String>,
    }
}

choice! {
    /// Who says that the work is done.
    pub enum ExitSignal { Auto = "auto", Agent = "agent" }
}

pub(super) fn expand(own: &Node, out: &mut Diagnostics) -> Option<Node> {
    let read = Criteria::decode(own, &DocPath::root(), out)?;
    let path = DocPath::root().key("criteria");
    let (written, using) = (own.get("criteria")?, own.get("using")?);
    if read.criteria.is_empty() {
        empty(&path, "criterion", out);
        return None;
    }
    let names = names(&read.criteria, &path, out)?;
    let checks: Vec<String> = names.iter().map(|name| format!("check_{name}")).collect();
    // The checks come after the work whatever became of it; what judges it decides whether a step is done.
    let onward: &[&str] = if read.using.is_judged() { &["on_yes", "on_no", "on_error"] } else { &["next"] };
    let onward = onward.iter().filter(|key| !read.using.has(key)).map(|key| to(key, &checks[0], using));
    let mut states = vec![read.using.state("work", using, onward.collect())];
    for (index, (criterion, at)) in read.criteria.iter().zip(items(written)).enumerate() {
        let next = checks.get(index + 1).map_or("decide", String::as_str);
        let onward = |words: &[&str]| -> Vec<Entry> { words.iter().map(|word| to(word, next, at)).collect() };
        states.push(match (&criterion.check, at.get("judge")) {
            (Some(check), None) => {
                let (no, written) = (at.get("no").filter(|no| !no.is_null()), at.get("check")?);
                let mut keys = onward(&["on_yes", "on_no", "on_error"]);
                if check.is_judged_by_code() {
                    keys.insert(0, by_exit_code(no, written));
                } else if no.is_some() {
                    out.push(without_code(&path.index(index), "here, something else judges"));
                }
                keys.extend(check.check(written));
                check.state(&checks[index], written, keys)
            }
            // No way out for an error: what could not be judged is not unmet, and where no model may be asked the run
            // is handed to a job that may.
            (None, Some(judge)) => {
                if criterion.no.is_some() {
                    out.push(without_code(&path.index(index), "`judge` asks a model"));
                }
                judged(&checks[index], judge, onward(&["on_yes", "on_no", "on_partial"]))
            }
            (None, None) => {
                let message = format!("nothing tells whether `{}` is met", criterion.name);
                let help = "write `check: COMMAND`, or `judge: QUESTION` for a model";
                out.push(
                    Diagnostic::error("missing-key", FindingPlace::Value(path.index(index)), message)
                        .help(help),
                );
                continue;
            }
            (Some(_), Some(_)) => {
                let message = "`check` and `judge` both tell whether it is met";
                let place = FindingPlace::Key(path.index(index).key("judge"));
                let other = FindingPlace::Key(path.index(index).key("check"));
                out.push(
                    Diagnostic::error("duplicate-key", place, message)
                        .related(other, "the other one")
                        .help("keep one"),
                );
                continue;
            }
        });
    }
    states.push(decide(&read, own, items(written), &checks)?);
    // Quoted for the shell: the reason names criteria, whose names are free texts.
    let reason = "printf 'LOOP_STOP: %s\\n' ${result.details.reason:shell}";
    // The run is over with the printed signal. It goes on only where `signals` leaves `stop` out, and then to a failure.
    let tripped = vec![to("action", reason, written), to("next", "not_stopped", written)];
    states.push(entry("tripped", map(&written.span, tripped)));
    let failed = vec![entry("terminal", plain(&written.span, "true")), to("outcome", "failure", written)];
    states.push(entry("not_stopped", map(&written.span, failed)));
    states.push(done("completed", written));
    Some(map(&own.span, vec![to("initial", "work", using), entry("states", map(&written.span, states))]))
}

/// Reports exit codes where none is looked at.
fn without_code(path: &DocPath, because: &str) -> Diagnostic {
    let message = format!("`no` has no effect here: {because}");
    let help = "`no` lists exit codes of the command in `check`";
    Diagnostic::warning("no-effect", FindingPlace::Key(path.key("no")), message).help(help)
}

/// Makes the state in which an agent looks, and a model judges what it saw.
fn judged(name: &str, judge: &Node, routes: Vec<Entry>) -> Entry {
    let question = judge.as_scalar().map_or("", |scalar| scalar.text.as_str());
    let action = format!("Change nothing. Find out whether this holds, and name the evidence: {question}");
    let evaluate = vec![
        to("type", "llm_structured", judge),
        to("prompt", &format!("Does this hold? {question}"), judge),
    ];
    let keys = vec![
        to("action", &action, judge),
        to("action_type", "prompt", judge),
        entry("evaluate", map(&judge.span, evaluate)),
    ];
    entry(name, map(&judge.span, keys.into_iter().chain(routes).collect()))
}

/// Makes the state that puts the results together.
fn decide(read: &Criteria, own: &Node, written: &[Node], checks: &[String]) -> Option<Entry> {
    let at = own.get("criteria")?;
    let results = read.criteria.iter().zip(written).zip(checks).map(|((criterion, at), check)| {
        entry(&criterion.name, text(&at.span, format!("${{captured.{check}.verdict?}}")))
    });
    let mut judge = vec![
        to("type", "criteria", at),
        entry("spec", own.get("spec")?.clone()),
        entry("results", map(&at.span, results.collect())),
    ];
    judge
        .extend(own.get("steps").filter(|steps| !steps.is_null()).map(|steps| entry("steps", steps.clone())));
    let passed =
        if read.using.is_judged() { "${captured.work.verdict?}" } else { "${captured.work.exit_code}" };
    judge.push(to("work", passed, own.get("using")?));
    if read.exit_signal == ExitSignal::Agent {
        judge.push(to("signal", "${captured.work.output}", own.get("exit_signal")?));
    }
    let stuck_after = own.get("stuck_after").filter(|count| !count.is_null());
    judge.extend(stuck_after.map(|count| entry("stuck_after", count.clone())));
    let keys = vec![
        entry("evaluate", map(&at.span, judge)),
        to("on_done", "completed", at),
        to("on_continue", "work", at),
        to("on_stuck", "tripped", at),
    ];
    Some(entry("decide", map(&at.span, keys)))
}

/// Returns the name of each criterion as it stands in the name of its state.
fn names(criteria: &[Criterion], path: &DocPath, out: &mut Diagnostics) -> Option<Vec<String>> {
    let names: Vec<_> = criteria.iter().map(|criterion| identifier(&criterion.name)).collect();
    for (index, name) in names.iter().enumerate() {
        let place = FindingPlace::Value(path.index(index).key("name"));
        let written = &criteria[index].name;
        if name.is_empty() {
            let message = format!("`{written}` has no letters or digits to name a state by");
            out.push(Diagnostic::error("name", place, message));
        } else if let Some(first) = names[..index].iter().position(|other| other == name) {
            let message = format!("two criteria are named `{name}`");
            let other = FindingPlace::Value(path.index(first).key("name"));
            out.push(Diagnostic::error("name", place, message).related(other, "the other one"));
        }
    }
    (!out.has_errors()).then_some(names)
}
