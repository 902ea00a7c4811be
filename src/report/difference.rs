//! What tells two runs apart: the first step at which they part, and the verdicts, times and captures after all steps.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use indexmap::{IndexMap, IndexSet};
use serde_json::{Map, Value, json};

use super::digest::Digest;
use super::numbers::StepNumber;
use super::taken_edges::{MAX_STATES, count, has_room};
use crate::base::text::{head, one_line, plural};
use crate::base::time::{human, millis};
use crate::engine::event::{Event, Stamped};
use crate::engine::loop_stack::LoopStack;

/// Characters of a name, of the words of a verdict, and of the end of a capture, that are shown.
const NAME: usize = 80;
const WORDS: usize = 40;
const CAPTURE: usize = 120;

/// How many states and captures are shown to people.
const MOST: usize = 50;

/// The fields of a capture that tell it from another. How long its state took is not part of what it says.
const TELLING: [&str; 6] = ["state", "output", "stderr", "exit_code", "verdict", "output_bytes"];

/// How many steps of a run are compared, and how many words are kept to be shown. Only a journal that no loop of ours wrote
/// has more of them.
const MAX_STEPS: usize = 1_000_000;
const MAX_WORDS: usize = 20_000;

/// How much is kept of a word, in bytes.
const MAX_WORD: usize = 400;

/// The steps of a run, a few numbers for each, so that long runs can be compared.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    steps: Vec<TrailStep>,
    words: HashMap<Word, String>,
    /// The steps that are not left, each in the sub-loop of the one before.
    open: LoopStack<usize>,
    is_cut: bool,
}

/// A word, by a number that is the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Word(u64);

#[derive(Clone, Copy, Debug)]
struct TrailStep {
    depth: u32,
    number: u32,
    state: Word,
    word: Option<Word>,
    to: Option<Word>,
    duration_ms: u64,
}

/// A step as it is compared and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ComparedStep<'t> {
    depth: u32,
    number: u32,
    state: ShownWord<'t>,
    word: Option<ShownWord<'t>>,
    to: Option<ShownWord<'t>>,
}

/// A word with its text, which is not part of what it is.
#[derive(Clone, Copy, Debug)]
struct ShownWord<'t> {
    word: Word,
    text: &'t str,
}

impl PartialEq for ShownWord<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl Eq for ShownWord<'_> {}

impl<'t> ComparedStep<'t> {
    /// Returns what is known of the step when it is entered.
    fn entered(&self) -> (u32, u32, ShownWord<'t>) {
        (self.depth, self.number, self.state)
    }
}

impl Trail {
    /// Takes the next event.
    pub fn event(&mut self, stamped: &Stamped) {
        let depth = stamped.depth;
        match &stamped.event {
            Event::StateEnter { state, step, .. } => {
                // A journal that somebody changed may begin in a sub-loop, or claim a depth that no run has.
                if self.open.reaches(depth) {
                    self.enter(depth, *step, state.as_str());
                }
            }
            Event::ActionComplete(complete) => {
                let exit = format!("exit {}", complete.seen.exit_code);
                self.set(depth, millis(complete.seen.duration), &exit);
            }
            Event::SubLoopComplete(complete) => {
                self.open.leave_inner(depth);
                self.set(depth, complete.duration_ms, complete.verdict.as_str());
            }
            Event::Evaluate { verdict, .. } => self.say(depth, verdict.as_str()),
            Event::Board(event) => self.say(depth, event.verdict.as_str()),
            Event::ActionError { .. } | Event::LoopError { .. } => self.say(depth, "error"),
            Event::Route { from, to, verdict, .. } => {
                if let Some(verdict) = verdict {
                    self.say(depth, verdict.as_str());
                }
                let (from, to) = (self.word(from.as_str()), self.word(to.as_str()));
                // A maintain loop also leaves its terminal, which is not the step that is open.
                if let Some(step) = self.at(depth).filter(|step| step.state == from) {
                    step.to = Some(to);
                }
            }
            Event::LoopStart(_)
            | Event::LoopResume(_)
            | Event::Approval(_)
            | Event::LoopComplete(_)
            | Event::ActionStart { .. }
            | Event::SubLoopStart { .. }
            | Event::Message { .. }
            | Event::Retry { .. }
            | Event::VerdictTree { .. }
            | Event::ClosingPassStart(_)
            | Event::ClosingPassCheck(_)
            | Event::ClosingPassProof(_)
            | Event::Reused(_)
            | Event::ClosingPassEnd(_)
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::CallFailed(_)
            | Event::Judge { .. }
            | Event::Sandbox(_)
            | Event::Signal { .. }
            | Event::Handoff(_)
            | Event::Stall { .. }
            | Event::LoopTimeout { .. } => {}
        }
    }

    fn enter(&mut self, depth: u32, number: u32, state: &str) {
        let state = self.word(state);
        let entered = TrailStep { depth, number, state, word: None, to: None, duration_ms: 0 };
        // A step that was cut off, and begins again after a resume, is the same one; what its sub-loop did stays.
        if let Some(again) = self.at(depth).filter(|step| step.number == number) {
            *again = entered;
            self.open.leave_inner(depth);
            return;
        }
        // Where there is no room for it, what follows in it is no other step's.
        self.open.begin(depth, self.steps.len());
        self.is_cut |= self.steps.len() == MAX_STEPS;
        if !self.is_cut {
            self.steps.push(entered);
        }
    }

    fn at(&mut self, depth: u32) -> Option<&mut TrailStep> {
        let step = *self.open.at(depth)?;
        self.steps.get_mut(step)
    }

    fn set(&mut self, depth: u32, duration_ms: u64, word: &str) {
        if let Some(step) = self.at(depth) {
            step.duration_ms = duration_ms;
        }
        self.say(depth, word);
    }

    fn say(&mut self, depth: u32, word: &str) {
        let word = self.word(word);
        if let Some(step) = self.at(depth) {
            step.word = Some(word);
        }
    }

    fn word(&mut self, text: &str) -> Word {
        // Its keys are always the same, unlike those of a `RandomState`: both runs must have one
        // number for a word.
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let word = Word(hasher.finish());
        if self.words.len() < MAX_WORDS && !self.words.contains_key(&word) {
            self.words.insert(word, head(text, MAX_WORD).to_owned());
        }
        word
    }

    fn shown(&self, step: TrailStep) -> ComparedStep<'_> {
        let text = |word: Word| ShownWord { word, text: self.words.get(&word).map_or("…", String::as_str) };
        ComparedStep {
            depth: step.depth,
            number: step.number,
            state: text(step.state),
            word: step.word.map(text),
            to: step.to.map(text),
        }
    }

    /// Returns what was done in every step.
    fn told(&self) -> HashMap<StepNumber, ToldStep> {
        let mut around: Vec<u32> = Vec::new();
        let told = self.steps.iter().filter_map(|step| {
            around.truncate(usize::try_from(step.depth).unwrap_or(usize::MAX));
            around.push(step.number);
            let text = |shown: ShownWord<'_>| shown.text.to_owned();
            let shown = self.shown(*step);
            let told = ToldStep {
                state: text(shown.state),
                word: shown.word.map(text),
                to: shown.to.map(text),
                duration: Duration::from_millis(step.duration_ms),
            };
            Some((StepNumber::of(around.clone())?, told))
        });
        told.collect()
    }

    /// Returns the numbers that people know a step by.
    fn number(&self, index: usize) -> Option<StepNumber> {
        // Walked anew for the one step that is named: a way for each of a million steps would take more room than they do.
        let mut around: Vec<u32> = Vec::new();
        for step in self.steps.get(..=index)? {
            around.truncate(usize::try_from(step.depth).unwrap_or(usize::MAX));
            around.push(step.number);
        }
        StepNumber::of(around)
    }

    /// Returns what the states of the run itself came to, in the order of their first visits.
    fn states(&self) -> IndexMap<&str, StateSum> {
        let mut states: IndexMap<&str, StateSum> = IndexMap::new();
        for step in self.steps.iter().filter(|step| step.depth == 0) {
            let shown = self.shown(*step);
            let state = shown.state.text;
            if !has_room(&states, &state, MAX_STATES) {
                continue;
            }
            let sum = states.entry(state).or_default();
            sum.visits += 1;
            sum.total_ms = sum.total_ms.saturating_add(step.duration_ms);
            count(&mut sum.verdicts, shown.word.map_or("next", |word| word.text));
        }
        states
    }
}

/// What a state came to in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StateSum {
    visits: u64,
    total_ms: u64,
    verdicts: IndexMap<String, u64>,
}

/// A run that is compared.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What it is called: its id, or the bundle that it is in.
    pub name: String,
    /// What all formats know of it.
    pub digest: Digest,
    /// Its steps.
    pub trail: Trail,
    /// Its captures at its end, by name, as its state has them; absent where the state is missing.
    pub captured: Option<Map<String, Value>>,
}

/// The step at which two runs part.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parting<'r> {
    /// The number of the step in the run that has it.
    number: StepNumber,
    steps: [Option<(ComparedStep<'r>, Duration)>; 2],
}

impl Parting<'_> {
    fn state(&self) -> &str {
        let is_it = |(step, _): &&(ComparedStep<'_>, Duration)| step.number == self.number.own();
        self.steps.iter().flatten().find(is_it).map_or("", |(step, _)| step.state.text)
    }
}

fn parting(runs: [&Compared; 2]) -> Option<Parting<'_>> {
    let [one, other] = runs.map(|run| &run.trail);
    let steps = |at: usize| [one, other].map(|trail| trail.steps.get(at).map(|step| trail.shown(*step)));
    let differs = |at: &usize| {
        let [one, other] = steps(*at);
        one != other
    };
    let longest = one.steps.len().max(other.steps.len());
    let mut at = (0..longest).find(differs)?;
    // A step that ran a sub-loop came to something else because a step in there did.
    while let [Some(left), Some(right)] = steps(at)
        && left.entered() == right.entered()
    {
        let is_inner = |at: &usize| steps(*at).iter().flatten().any(|step| step.depth > left.depth);
        let Some(inner) = (at + 1..longest).take_while(is_inner).find(differs) else { break };
        at = inner;
    }
    // Where one has left a sub-loop, the other has a further step in it.
    let depth = |step: Option<ComparedStep<'_>>| step.map(|step| step.depth);
    let [left, right] = steps(at).map(depth);
    let number = if left >= right { one.number(at) } else { other.number(at) }?;
    let took = |trail: &Trail| Duration::from_millis(trail.steps.get(at).map_or(0, |step| step.duration_ms));
    let [left, right] = steps(at);
    let steps = [left.map(|step| (step, took(one))), right.map(|step| (step, took(other)))];
    Some(Parting { number, steps })
}

/// How a run differs from another one, step by step.
#[derive(Clone, Debug, Default)]
pub struct Against {
    /// What the other run is called.
    pub name: String,
    /// What it came to.
    pub outcome: &'static str,
    /// The first step at which they part, and what each of them did there.
    pub first: Option<(StepNumber, [String; 2])>,
    steps: HashMap<StepNumber, ToldStep>,
}

/// What the other run did in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldStep {
    /// The state.
    pub state: String,
    /// The verdict, if there was one.
    pub word: Option<String>,
    /// The state that followed.
    pub to: Option<String>,
    /// How long its action took.
    pub duration: Duration,
}

impl Against {
    /// Compares a run with another one.
    pub fn of([run, other]: [&Compared; 2]) -> Self {
        let first = parting([run, other]).map(|first| {
            let said = |step: &Option<_>| step.as_ref().map_or("has ended".to_owned(), line);
            (first.number.clone(), [said(&first.steps[0]), said(&first.steps[1])])
        });
        let (name, outcome) = (other.name.clone(), other.digest.outcome_word());
        Self { name, outcome, first, steps: other.trail.told() }
    }

    /// Returns what the other run did in this step.
    pub fn step(&self, number: &StepNumber) -> Option<&ToldStep> {
        self.steps.get(number)
    }
}

/// Returns the names of the captures that differ; nothing where the captures of one are not known.
fn captures([one, other]: [&Compared; 2]) -> Option<Vec<&str>> {
    let (one, other) = (one.captured.as_ref()?, other.captured.as_ref()?);
    let names: IndexSet<&String> = one.keys().chain(other.keys()).collect();
    let is_same = |name: &str| match (one.get(name), other.get(name)) {
        (Some(one), Some(other)) => TELLING.iter().all(|field| one.get(field) == other.get(field)),
        _ => false,
    };
    Some(names.into_iter().map(String::as_str).filter(|name| !is_same(name)).collect())
}

/// Writes the difference for programs.
pub fn json(runs: [&Compared; 2]) -> Value {
    let first = parting(runs).map(|first| json!({"step": first.number.to_string(), "state": first.state()}));
    let named = |names: Vec<&str>| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    json!({
        "first": first,
        "outcomes": runs.map(|run| run.digest.outcome_word()),
        "captures": captures(runs).map(named),
    })
}

/// Writes the difference for people.
pub fn text(runs: [&Compared; 2]) -> String {
    let mut out = String::new();
    for (mark, run) in ["a", "b"].into_iter().zip(runs) {
        let (steps, took) = (plural(run.digest.step_count(), "step"), human(run.digest.duration()));
        let (name, outcome) = (one_line(&run.name, 200), run.digest.outcome_word());
        let _ = writeln!(out, "{mark}  {name}: {outcome}, {steps} in {took}");
    }
    out.push('\n');
    match parting(runs) {
        Some(first) => {
            let _ = writeln!(out, "they part at step {}", first.number);
            for (mark, step) in ["a", "b"].into_iter().zip(&first.steps) {
                let _ = writeln!(out, "  {mark}  {}", step.as_ref().map_or("has ended".to_owned(), line));
            }
        }
        None => out.push_str("the same states, verdicts and ways, step by step\n"),
    }
    if runs.iter().any(|run| run.trail.is_cut) {
        let _ = writeln!(out, "only the first {MAX_STEPS} steps were compared");
    }
    out.push_str(&states_text(runs));
    out.push_str(&captures_text(runs));
    out
}

fn line((step, took): &(ComparedStep<'_>, Duration)) -> String {
    let mut line = one_line(step.state.text, NAME);
    if let Some(word) = step.word {
        let _ = write!(line, ": {}", one_line(word.text, WORDS));
    }
    if let Some(to) = step.to {
        let _ = write!(line, " → {}", one_line(to.text, NAME));
    }
    line + &format!(", {}", human(*took))
}

fn states_text(runs: [&Compared; 2]) -> String {
    let [one, other] = runs.map(|run| run.trail.states());
    let names: IndexSet<&str> = one.keys().chain(other.keys()).copied().collect();
    if names.is_empty() {
        return String::new();
    }
    let mut rows = vec![["state", "visits", "verdicts", "actions took"].map(str::to_owned)];
    for name in names.iter().take(MOST) {
        // A run that never came to the state visited it no time.
        let never = StateSum::default();
        let both = |show: &dyn Fn(&StateSum) -> String| {
            let [one, other] = [&one, &other].map(|sums| show(sums.get(name).unwrap_or(&never)));
            // Once where both are the same, so that what differs is seen.
            if one == other { one } else { format!("{one} | {other}") }
        };
        rows.push([
            one_line(name, WORDS),
            both(&|sum| sum.visits.to_string()),
            both(&verdicts),
            both(&|sum| human(Duration::from_millis(sum.total_ms))),
        ]);
    }
    let mut out = "\n".to_owned();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for [state, visits, verdicts, took] in &rows {
        let [a, b, c] = widths;
        let _ = writeln!(out, "{state:<a$}  {visits:<b$}  {verdicts:<c$}  {took}");
    }
    if names.len() > MOST {
        let _ = writeln!(out, "… and {} more", plural((names.len() - MOST) as u64, "state"));
    }
    out
}

fn verdicts(sum: &StateSum) -> String {
    let each = sum.verdicts.iter().map(|(word, count)| format!("{count}× {}", one_line(word, WORDS)));
    let shown: Vec<String> = each.take(4).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}

fn captures_text(runs: [&Compared; 2]) -> String {
    let Some(names) = captures(runs) else {
        return "\nthe captures are not known: the `state.json` of a run is missing\n".to_owned();
    };
    if names.is_empty() {
        return String::new();
    }
    let mut out = "\ncaptures that differ\n".to_owned();
    for name in names.iter().take(MOST) {
        let _ = writeln!(out, "  {}", one_line(name, NAME));
        for (mark, run) in ["a", "b"].into_iter().zip(runs) {
            let capture = run.captured.as_ref().and_then(|captured| captured.get(*name));
            let output = capture.map_or("none".to_owned(), |capture| {
                let output = one_line(capture["output"].as_str().unwrap_or_default().trim_end(), CAPTURE);
                format!("exit {}, `{output}`", capture["exit_code"])
            });
            let _ = writeln!(out, "    {mark}  {output}");
        }
    }
    if names.len() > MOST {
        let _ = writeln!(out, "  … and {} more", names.len() - MOST);
    }
    out
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::testing::{Journal, failing, state, succeeding};
    use super::*;
    use crate::engine::event::Event;

    fn compared(name: &str, journal: &Journal, captured: &Value) -> Compared {
        let mut trail = Trail::default();
        journal.events.iter().for_each(|event| trail.event(event));
        let captured = captured.as_object().cloned();
        Compared { name: name.to_owned(), digest: journal.digest(), trail, captured }
    }

    #[test]
    fn the_first_step_that_differs_is_named() {
        let one =
            compared("one", &failing(), &json!({"kept": {"output": "1\n", "exit_code": 0}, "same": {}}));
        let gone = json!({"kept": {"output": "2\u{1b}[31m\n", "exit_code": 3}, "same": {"duration_ms": 7}});
        let other = compared("other", &succeeding(), &gone);
        assert_snapshot!(text([&one, &other]), @"
        a  one: failure, 5 steps in 11.8s
        b  other: success, 3 steps in 7.0s

        they part at step 3
          a  check: no → fix, 2.3s
          b  check: yes → done, 2.3s

        state  visits  verdicts               actions took
        check  3 | 2   3× no | 1× no, 1× yes  7.0s | 4.6s
        fix    2 | 1   2× exit 0 | 1× exit 0  4.6s | 2.3s

        captures that differ
          kept
            a  exit 0, `1`
            b  exit 3, `2`
        ");
        assert_eq!(
            json([&one, &other]),
            json!({
                "first": {"step": "3", "state": "check"},
                "outcomes": ["failure", "success"],
                "captures": [{"name": "kept"}],
            })
        );
    }

    #[test]
    fn runs_that_are_the_same_part_nowhere() {
        let one = compared("one", &succeeding(), &json!({}));
        assert_eq!(json([&one, &one])["first"], Value::Null);
        assert!(text([&one, &one]).contains("the same states, verdicts and ways"));
    }

    #[test]
    fn a_run_that_is_over_first_parts_at_the_next_step_of_the_other() {
        let mut short = Journal::start();
        short.step(("check", 1), "x", (1, ""), "no", "fix");
        let short = compared("short", &short, &Value::Null);
        let whole = compared("whole", &succeeding(), &json!({}));
        for runs in [[&short, &whole], [&whole, &short]] {
            assert_eq!(json(runs)["first"], json!({"step": "2", "state": "fix"}));
            assert!(text(runs).contains("has ended"), "{}", text(runs));
            assert!(text(runs).contains("the captures are not known"));
            assert_eq!(json(runs)["captures"], Value::Null);
        }
    }

    /// Each step is its depth, its number and its state, and is left by this verdict.
    fn of(steps: &[(u32, u32, &str, &str)]) -> Compared {
        let mut journal = Journal::start();
        for (depth, step, name, verdict) in steps {
            let at = journal.events.len();
            journal.push(Event::StateEnter { state: state(name), iteration: 1, step: *step, attempt: 1 });
            journal.judge(verdict);
            journal.events[at..].iter_mut().for_each(|event| event.depth = *depth);
        }
        compared("run", &journal, &json!({}))
    }

    #[test]
    fn a_step_of_a_sub_loop_has_its_whole_number() {
        let first = |one: &[_], other: &[_]| json([&of(one), &of(other)])["first"]["step"].clone();
        let steps = [
            (0, 1, "a", "yes"),
            (0, 2, "b", "yes"),
            (1, 1, "c", "yes"),
            (1, 2, "d", "yes"),
            (0, 3, "e", "yes"),
        ];
        assert_eq!(first(&steps, &steps), Value::Null);
        for (at, number) in ["1", "2", "2.1", "2.2", "3"].into_iter().enumerate() {
            let mut other = steps;
            other[at].3 = "no";
            assert_eq!(first(&steps, &other), number);
            other = steps;
            other[at].2 = "z";
            assert_eq!(first(&steps, &other), number);
            assert_eq!(first(&steps[..at], &steps), number);
        }
        // What a sub-loop did is why its step came to something else.
        let mut other = steps;
        (other[1].3, other[3].3) = ("no", "no");
        assert_eq!(first(&steps, &other), "2.2");
        // A sub-loop with a step more.
        let fewer = [steps[0], steps[1], steps[2], steps[4]];
        assert_eq!((first(&steps, &fewer), first(&fewer, &steps)), (json!("2.2"), json!("2.2")));
        // Unlikely, but allowed.
        assert_eq!(first(&[(7, 1, "a", "yes")], &steps), "1");
    }

    #[test]
    fn a_step_that_begins_again_is_one_step() {
        let once = of(&[(0, 1, "a", "yes"), (0, 2, "b", "no")]);
        let again = of(&[(0, 1, "a", "timeout"), (0, 1, "a", "yes"), (0, 2, "b", "no")]);
        assert_eq!(json([&once, &again])["first"], Value::Null);
    }
}
