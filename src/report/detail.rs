//! What a page shows of a run beyond what all formats know: its steps and those of its sub-loops, with what they printed
//! and changed. Its size is bounded whatever the length of the run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::difference::Against;
use super::digest::Digest;
use super::graph::Graph;
use super::numbers::{Numbering, StepNumber};
use super::step::tracker::Tracker;
use super::step::{Step, StepStanding, Tail};
use crate::base::text;
use crate::engine::event::{ActionKind, Event, Stamped};
use crate::engine::loop_stack::LoopStack;

/// How many steps are kept of a state from its first visits, and from its last ones.
const OF_STATE: usize = 500;

/// How many failing steps between these are kept of a state.
const FAILING: usize = 200;

/// How many steps are kept in all.
const MOST: usize = 6_000;

/// How much is kept of what a step printed, in bytes of each stream.
pub const STREAM: usize = 64 * 1024;

/// How much is kept of what all steps printed, in bytes.
const STREAMS: usize = 32 << 20;

/// How many states are counted that have steps which are left out.
const MAX_STATES: usize = 1_000;

/// What an action printed on its two streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// Standard output.
    pub stdout: Tail,
    /// Standard error.
    pub stderr: Tail,
}

impl Printed {
    fn len(&self) -> usize {
        self.stdout.text.len() + self.stderr.text.len()
    }

    /// Keeps of each stream what knows more of it.
    fn with(self, other: Self) -> Self {
        let longer = |one: Tail, other: Tail| Tail {
            bytes: one.bytes.max(other.bytes),
            text: if one.text.len() < other.text.len() { other.text } else { one.text },
        };
        Self { stdout: longer(self.stdout, other.stdout), stderr: longer(self.stderr, other.stderr) }
    }
}

/// What a step changed in the working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDiff {
    /// The step.
    pub step: StepNumber,
    /// A patch; text from outside.
    pub patch: String,
    /// The bytes of the patch that are not here.
    pub cut: u64,
}

/// A step of the run or of one of its sub-loops.
#[derive(Clone, Debug)]
pub struct DetailedStep {
    /// Its number.
    pub number: StepNumber,
    /// The loop, if it is a sub-loop.
    pub sub_loop: Option<Arc<str>>,
    /// The step. What it printed is not in it.
    pub step: Step,
    /// Whether it happened in the run that this one was rewound from.
    pub inherited: bool,
    /// What it printed; nothing where there was no room for it.
    pub printed: Option<Printed>,
}

impl DetailedStep {
    /// Tells whether the step failed.
    pub fn failed(&self) -> bool {
        self.step.standing() == StepStanding::Failing
    }

    /// Returns what a visit belongs to: the state, and the loop if it is a sub-loop.
    fn place(&self) -> (Option<&str>, &str) {
        (self.sub_loop.as_deref(), self.step.state.as_str())
    }
}

/// A loop that runs.
#[derive(Clone, Debug, Default)]
struct DetailedLoop {
    name: Option<Arc<str>>,
    tracker: Tracker,
    current: Option<StepNumber>,
    printed: Printed,
    inherited: bool,
    is_merge: bool,
}

impl DetailedLoop {
    /// Makes the entry of a step of this loop.
    fn entry(&self, mut step: Step, number: StepNumber, printed: Printed, inherited: bool) -> DetailedStep {
        let own = taken(&mut step);
        // What a sub-loop printed stands at its steps. The steps of an item are in a journal of their own.
        let is_sub_loop = step.action.as_ref().is_some_and(|action| action.kind == ActionKind::SubLoop);
        let printed = if is_sub_loop && !self.is_merge { Printed::default() } else { printed.with(own) };
        DetailedStep { number, sub_loop: self.name.clone(), step, inherited, printed: Some(printed) }
    }
}

/// What a page shows of a run beyond what all formats know.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// The loop, with the way of the run; nothing but that way where the loop is not known.
    pub graph: Graph,
    /// What steps changed, in their order.
    pub diffs: Vec<StepDiff>,
    /// The run that it is compared with.
    pub against: Option<Against>,
    entries: Vec<DetailedStep>,
    left_out: BTreeMap<String, u64>,
    more_left_out: u64,
    streams: usize,
    numbering: Numbering,
    levels: LoopStack<DetailedLoop>,
}

impl Detail {
    /// Makes what is known of a run without a closer look.
    pub fn of(digest: &Digest) -> Self {
        let mut detail = Self { graph: Graph::default().with_run(digest), ..Self::default() };
        for step in digest.steps() {
            let mut step = step.clone();
            let printed = taken(&mut step);
            let number = StepNumber::of_run(step.number);
            detail.keep(DetailedStep {
                number,
                sub_loop: None,
                step,
                inherited: false,
                printed: Some(printed),
            });
        }
        detail.more_left_out += digest.omitted();
        detail
    }

    /// Takes the next event. With one that begins an action comes what that printed, as far as it is known.
    pub fn event(&mut self, stamped: &Stamped, printed: Printed) {
        let depth = stamped.depth;
        let number = self.numbering.event(stamped);
        if let Event::LoopStart(start) = &stamped.event {
            let name = (depth > 0).then(|| Arc::from(start.r#loop.as_str()));
            let (tracker, is_merge) = (Tracker::at(depth), start.merges.is_some());
            let begun = DetailedLoop { name, tracker, is_merge, ..DetailedLoop::default() };
            return self.levels.begin(depth, begun);
        }
        let Some(level) = self.levels.at_mut(depth) else { return };
        // Before the event is taken: a step is finished by the one that enters the next.
        let (before, was_inherited) = (level.current.clone(), level.inherited);
        if matches!(stamped.event, Event::StateEnter { .. }) {
            (level.current, level.inherited) = (number, stamped.inherited);
        }
        let finished = level.tracker.event(stamped);
        let entry = finished.zip(before).map(|(step, number)| {
            let printed = std::mem::take(&mut level.printed);
            level.entry(step, number, printed, was_inherited)
        });
        // Only now: the step that this event may have finished has taken what it printed.
        if matches!(stamped.event, Event::ActionStart { .. }) {
            level.printed = printed;
        }
        if let Some(entry) = entry {
            self.keep(entry);
        }
        if matches!(stamped.event, Event::Route { .. }) {
            // The state is left, and with it the loop that it ran.
            self.levels.leave_inner(depth);
        }
    }

    /// Says that there are no more events: what was running is shown as far as it came.
    pub fn finish(&mut self) {
        for mut level in std::mem::take(&mut self.levels).into_levels() {
            if let Some((step, number)) = level.tracker.current().cloned().zip(level.current.take()) {
                let printed = std::mem::take(&mut level.printed);
                self.keep(level.entry(step, number, printed, level.inherited));
            }
        }
        // Steps come as they end, those of a sub-loop before the one that ran it; `has` searches by number.
        self.entries.sort_by(|one, other| one.number.cmp(&other.number));
        self.thin(MOST);
        // After the steps were thinned out: what those printed takes no more room.
        self.shed(STREAMS);
    }

    /// Returns the steps, in the order in which they were entered.
    pub fn entries(&self) -> &[DetailedStep] {
        &self.entries
    }

    /// Tells whether a step is here.
    pub fn has(&self, number: &StepNumber) -> bool {
        self.entries.binary_search_by(|entry| entry.number.cmp(number)).is_ok()
    }

    /// Returns the states of which steps are left out, with how many.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, u64)> {
        self.left_out.iter().map(|(state, count)| (state.as_str(), *count))
    }

    /// Returns how many steps are left out in all.
    pub fn all_left_out(&self) -> u64 {
        self.left_out.values().sum::<u64>() + self.more_left_out
    }

    fn keep(&mut self, entry: DetailedStep) {
        if entry.step.closing && entry.step.action.is_none() {
            return;
        }
        // A step that was cut off, and went on after a resume, is the same one. Its sub-loop may have come since.
        let again = self.entries.iter().rev().take(64).position(|known| known.number == entry.number);
        // The closing action of a terminal has the number of the last step, and is another row.
        if let Some(back) = again.filter(|_| !entry.step.closing) {
            let known = self.entries.remove(self.entries.len() - 1 - back);
            self.streams -= known.printed.as_ref().map_or(0, Printed::len);
        }
        self.streams += entry.printed.as_ref().map_or(0, Printed::len);
        self.entries.push(entry);
        // Not at each step: what is thinned out is counted and moved as a whole.
        if self.entries.len() > 2 * MOST {
            self.thin(MOST);
        }
        if self.streams > 2 * STREAMS {
            self.shed(STREAMS);
        }
    }

    /// Leaves out steps until there are no more than so many. The first and the last visits of each state stay, then what
    /// failed.
    pub fn thin(&mut self, limit: usize) {
        let mut visits: HashMap<(Option<&str>, &str), Vec<usize>> = HashMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            visits.entry(entry.place()).or_default().push(index);
        }
        let mut kept: HashSet<usize> = HashSet::new();
        for of_state in visits.values() {
            let last = of_state.len().saturating_sub(OF_STATE).max(OF_STATE.min(of_state.len()));
            let between = &of_state[OF_STATE.min(of_state.len())..last];
            // The latest ones, because they are nearest to what decided.
            let failing = between.iter().rev().filter(|index| self.entries[**index].failed()).take(FAILING);
            kept.extend(failing);
            kept.extend(of_state[..of_state.len().min(OF_STATE)].iter().chain(&of_state[last..]));
        }
        if kept.len() > limit {
            let mut order: Vec<usize> = kept.iter().copied().collect();
            order.sort_unstable();
            let failing = order.iter().rev().filter(|index| self.entries[**index].failed()).take(limit / 4);
            let failing: Vec<usize> = failing.copied().collect();
            let each = (limit - failing.len()) / 2;
            let (first, last) = (order.iter().take(each), order.iter().rev().take(each));
            kept = first.chain(last).copied().chain(failing).collect();
        }
        let mut index = 0;
        let (left_out, more, streams) = (&mut self.left_out, &mut self.more_left_out, &mut self.streams);
        self.entries.retain(|entry| {
            let stays = kept.contains(&index);
            index += 1;
            if !stays {
                *streams -= entry.printed.as_ref().map_or(0, Printed::len);
                let state = named(entry);
                if left_out.len() < MAX_STATES || left_out.contains_key(&state) {
                    *left_out.entry(state).or_default() += 1;
                } else {
                    *more += 1;
                }
            }
            stays
        });
    }

    /// Forgets what steps printed until there are no more than so many bytes: first what passed long ago.
    fn shed(&mut self, limit: usize) {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        // The last steps are those that decided.
        let is_last = |index: usize| index + 8 >= self.entries.len();
        order.sort_by_key(|index| (is_last(*index), self.entries[*index].failed(), *index));
        for index in order {
            if self.streams <= limit {
                return;
            }
            self.streams -= self.entries[index].printed.take().as_ref().map_or(0, Printed::len);
        }
    }
}

/// Returns the name of the state of a step, with the loop if it is a sub-loop.
pub fn named(entry: &DetailedStep) -> String {
    match entry.place() {
        (None, state) => state.to_owned(),
        (Some(sub_loop), state) => format!("{sub_loop} › {state}"),
    }
}

/// Takes out of a step what it printed.
fn taken(step: &mut Step) -> Printed {
    step.result.as_mut().map_or_else(Printed::default, |result| Printed {
        stdout: std::mem::take(&mut result.stdout),
        stderr: std::mem::take(&mut result.stderr),
    })
}

/// Makes the end of a stream from its lines, and takes little more memory than that end.
#[derive(Debug, Default)]
pub struct TailOfLines {
    end: String,
    bytes: u64,
}

impl TailOfLines {
    /// Takes the next line, which is given without its line end.
    pub fn push(&mut self, line: &str) {
        self.bytes += line.len() as u64 + 1;
        self.end.push_str(line);
        self.end.push('\n');
        // Not at each line: what is cut off is moved.
        if self.end.len() > 4 * STREAM {
            self.end = text::tail(&self.end, STREAM).to_owned();
        }
    }

    /// Returns the end of the stream.
    pub fn end(self) -> Tail {
        Tail { text: text::tail(&self.end, STREAM).to_owned(), bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::Journal;

    fn detail(journal: &Journal) -> Detail {
        let mut detail = Detail::default();
        for stamped in journal.events() {
            detail.event(stamped, Printed::default());
        }
        detail.finish();
        detail
    }

    fn numbers(detail: &Detail) -> Vec<String> {
        detail.entries().iter().map(|entry| entry.number.to_string()).collect()
    }

    #[test]
    fn of_a_state_with_many_visits_the_ends_stay_and_what_failed() {
        let mut journal = Journal::of("long", 5_000);
        for pass in 1..=2_000 {
            let (exit, verdict) = if pass % 4 == 0 { (1, "no") } else { (0, "yes") };
            journal.step(("check", pass), "make", (exit, "x\n"), verdict, "check");
        }
        let detail = detail(&journal);
        let of = |wanted: &dyn Fn(u32) -> bool| {
            detail.entries().iter().filter(|entry| wanted(entry.number.own())).count()
        };
        assert_eq!((of(&|step| step <= 500), of(&|step| step > 1_500)), (500, 500));
        assert_eq!(of(&|step| (701..=1_500).contains(&step) && step % 4 == 0), 200);
        assert_eq!(detail.entries().len(), 1_200);
        assert_eq!(detail.left_out().collect::<Vec<_>>(), [("check", 800)]);
        assert!(detail.entries().is_sorted_by_key(|entry| &entry.number));
    }

    #[test]
    fn with_many_states_there_is_a_limit_for_all_of_them() {
        let mut journal = Journal::of("long", 50_000);
        for pass in 1..=20_000_u32 {
            let name = format!("s{}", pass % 40);
            let (exit, verdict) = if pass == 10_000 { (1, "no") } else { (0, "yes") };
            journal.step((&name, pass), "make", (exit, "x\n"), verdict, "check");
        }
        let detail = detail(&journal);
        assert!(detail.entries().len() <= MOST);
        assert_eq!(detail.entries().len() as u64 + detail.all_left_out(), 20_000);
        let has = |step: u32| detail.has(&StepNumber::of_run(step));
        assert!(has(1) && has(10_000) && has(20_000) && !has(9_999));
    }

    #[test]
    fn what_was_printed_is_forgotten_before_the_steps_are() {
        let mut detail = Detail::default();
        let tail = Tail { text: "x".repeat(STREAM), bytes: STREAM as u64 };
        let mut journal = Journal::of("loud", 5_000);
        for pass in 1..=800 {
            let (exit, verdict) = if pass == 1 { (1, "no") } else { (0, "yes") };
            journal.step(("check", pass), "make", (exit, ""), verdict, "check");
        }
        for stamped in journal.events() {
            detail.event(stamped, Printed { stdout: tail.clone(), stderr: Tail::default() });
        }
        detail.finish();
        let kept: Vec<bool> = detail.entries().iter().map(|entry| entry.printed.is_some()).collect();
        assert_eq!(kept.len(), 800);
        assert_eq!(kept.iter().filter(|is_kept| **is_kept).count(), STREAMS / STREAM);
        assert!(kept[0] && !kept[1] && kept[799], "what failed stays, and what is new");
    }

    #[test]
    fn a_step_that_was_cut_off_and_went_on_is_one() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "make", (1, "bad\n"), "no", "fix").enter("fix", 1).act("ruff");
        assert_eq!(numbers(&detail(&journal)), ["1", "2"], "what runs is shown as far as it came");
        let mut digest = journal.digest();
        digest.was_killed();
        assert_eq!(numbers(&Detail::of(&digest)), ["1", "2"]);
    }

    #[test]
    fn the_end_of_a_long_stream_is_kept() {
        let line = "0123456789".repeat(10);
        let mut lines = TailOfLines::default();
        std::iter::repeat_n(line.as_str(), 10_000).chain(["the last"]).for_each(|line| lines.push(line));
        let tail = lines.end();
        assert_eq!(tail.bytes, 10_000 * 101 + 9);
        assert!(tail.text.len() <= STREAM && tail.text.ends_with("9\nthe last\n"));
        assert!(tail.is_cut());
    }
}
