//! Walks at random: verdicts, kills, requests to end and resumes, until something does not hold that always should.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::always::Always;
use super::asked::{AskedPlace, AskedWork, Gap, GapReason, Script, SubLoopAnswer, WorkAnswer};
use super::case_player::{CasePlayer, SHORT, made};
use super::case_text::{CaseText, given};
use super::choices::Choices;
use super::expected::path;
use super::facts::broken;
use super::fuzz_report::{FuzzFailure, FuzzReport};
use super::mock::{Interruption, Mock, MockedEnd, MockedState, MockedWork};
use super::mock_witness::mock;
use super::play::{Play, Played, PlayedEnd, play};
use super::tested_loop::LoopUnderTest;
use super::virtual_tree::TreeEffects;
use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::engine::event::{Event, Stamped};
use crate::engine::outcome::{Outcome, Signal};
use crate::engine::past::Past;
use crate::engine::request::{AskRequest, SubLoopRequest};
use crate::engine::run::Phase;
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::Observation;
use crate::machine::explore::{BOUND, Exploration, explore};
use crate::machine::routing::departures;
use crate::machine::{Machine, Target};
use crate::process::clock::Clock;

/// How many rounds of a maintain loop a walk takes at most.
// A maintain loop has no end of its own: without a cap each walk would go to the bound of turns.
const MOST_CYCLES: u32 = 3;

/// How often a walk is interrupted at most.
const MOST_INTERRUPTIONS: u32 = 6;

/// One visit in so many is interrupted.
const INTERRUPTED: u32 = 24;

/// One visit in so many changes the tree.
const WRITES: u32 = 8;

/// How often a walk is tried with fewer choices to make it short.
const SHRINKS: u32 = 2_000;

/// What a state can come to, with how it is written.
type Options = Rc<Vec<(Value, Mock)>>;

/// Answers at random, and remembers what.
struct RandomScript<'f> {
    choices: &'f mut Choices,
    options: &'f mut BTreeMap<(String, String), Options>,
    /// The mock of the visit that goes on.
    current: BTreeMap<String, Mock>,
    /// What was answered.
    answers: WalkAnswers,
    /// How often the run may still be interrupted.
    interruptions: u32,
    /// Whether a run goes on that has stopped.
    may_resume: bool,
}

/// What was answered on a walk, as a case has it.
#[derive(Default)]
pub(super) struct WalkAnswers {
    /// At each visit, by state.
    pub(super) visits: IndexMap<String, Vec<Value>>,
    /// When checks were made once more at the end.
    pub(super) closing: IndexMap<String, Value>,
}

/// Makes everything that a state can come to.
fn options(place: &AskedPlace<'_>) -> Vec<(Value, Mock)> {
    let machine = place.machine;
    match machine.find(place.state) {
        Some(Target::Step(id)) => {
            let step = machine.step(id);
            let mocks = departures(step).into_iter().filter_map(|departure| mock(step, &departure));
            mocks.filter_map(|value| Some((value.clone(), made(&value, MockedState::step(step))?))).collect()
        }
        Some(Target::End(id)) => {
            // Those that do not fit the action are left out below: a command has an exit code, a prompt says something.
            let values = [json!({"exit": 0}), json!({"exit": 1}), json!({"says": "done"})];
            let state = MockedState::end(machine.end(id));
            values.into_iter().filter_map(|value| Some((value.clone(), made(&value, state)?))).collect()
        }
        None => Vec::new(),
    }
}

impl RandomScript<'_> {
    fn pick(&mut self, place: &AskedPlace<'_>, text: &str) -> Result<(Value, Mock), Gap> {
        let of = place.loops.last().map(ToString::to_string).unwrap_or_default();
        // Kept for all walks: to find a mock, the evaluator is asked about many outputs.
        let all =
            self.options.entry((of, place.state.to_string())).or_insert_with(|| Rc::new(options(place)));
        let all = Rc::clone(all);
        let gap = || Gap {
            state: place.key(),
            text: text.to_owned(),
            why: GapReason::Unknown("no mock is known for it".to_owned()),
        };
        if all.is_empty() {
            return Err(gap());
        }
        let at = self.choices.below(all.len());
        all.get(at).cloned().ok_or_else(gap)
    }

    /// Lets something happen to the run, now and then.
    fn interruption(&mut self) -> Option<Interruption> {
        // The last number and not 0, to which walks are simplified: what is left of a walk has no needless interruption.
        if self.interruptions == 0 || self.choices.below(INTERRUPTED as usize) != INTERRUPTED as usize - 1 {
            return None;
        }
        self.interruptions -= 1;
        Some(match self.choices.below(3) {
            0 => Interruption::Killed,
            1 => Interruption::Asked(Signal::Term),
            _ => Interruption::Asked(Signal::Int),
        })
    }

    fn effects(&mut self) -> TreeEffects {
        // The last number again, so that a simplified walk changes nothing.
        if self.choices.below(WRITES as usize) != WRITES as usize - 1 {
            return TreeEffects::default();
        }
        // Few texts, so that the tree may also become what it was before.
        let text = self.choices.below(4).to_string();
        TreeEffects { writes: vec![("file".to_owned(), text)], ..TreeEffects::default() }
    }

    fn remember(
        &mut self,
        place: &AskedPlace<'_>,
        mut value: Value,
        interruption: Option<Interruption>,
        effects: &TreeEffects,
    ) {
        if let Some(object) = value.as_object_mut() {
            match interruption {
                Some(Interruption::Killed) => drop(object.insert("killed".to_owned(), true.into())),
                Some(Interruption::Asked(signal)) => {
                    drop(object.insert("cancel".to_owned(), signal.name().into()));
                }
                None => {}
            }
            if let Some((path, text)) = effects.writes.first() {
                object.insert("writes".to_owned(), json!({ path: text }));
            }
        }
        if place.in_closing_pass {
            self.answers.closing.insert(place.key(), value);
        } else {
            self.answers.visits.entry(place.key()).or_default().push(value);
        }
    }
}

impl Script for RandomScript<'_> {
    fn work(&mut self, place: AskedPlace<'_>, work: AskedWork<'_>) -> Result<WorkAnswer, Gap> {
        let (value, mock) = self.pick(&place, &work.text())?;
        let (interruption, effects) = (self.interruption(), self.effects());
        self.remember(&place, value, interruption, &effects);
        let (seen, usage) = match &mock.work {
            MockedWork::Ends(seen, usage) => (Observation::clone(seen), usage.clone()),
            MockedWork::Nothing | MockedWork::SubLoop(_) => (Observation::exited(0, ""), Usage::default()),
        };
        let (takes, is_late) = (mock.takes, mock.is_late);
        self.current.insert(place.key(), mock);
        Ok(WorkAnswer { seen, usage, effects, takes, is_late, interruption })
    }

    fn judge(&mut self, place: AskedPlace<'_>, request: &AskRequest) -> Result<(ModelAnswer, Duration), Gap> {
        let text = &request.question.prompt;
        let mock = match self.current.get(&place.key()) {
            Some(mock) if mock.judgement.is_some() => mock.clone(),
            Some(_) | None => {
                let (value, mock) = self.pick(&place, text)?;
                self.remember(&place, value, None, &TreeEffects::default());
                mock
            }
        };
        let answer = match mock.judgement {
            Some(said) => ModelAnswer { reply: said.reply, stop: said.stop, usage: said.usage },
            None => {
                ModelAnswer { reply: Err(Explanation::new("no answer")), stop: None, usage: Usage::default() }
            }
        };
        Ok((answer, Duration::ZERO))
    }

    fn sub_loop(&mut self, place: AskedPlace<'_>, _: &SubLoopRequest) -> Result<SubLoopAnswer, Gap> {
        let outcomes = [Outcome::Success, Outcome::Failure, Outcome::Blocked, Outcome::Error];
        let outcome = outcomes[self.choices.below(outcomes.len())];
        let verified = self.choices.below(2) == 0;
        let value = json!({"outcome": outcome.word(), "verified": verified});
        self.remember(&place, value, None, &TreeEffects::default());
        let end = MockedEnd {
            outcome,
            final_state: None,
            verified,
            captures: IndexMap::new(),
            stdout: String::new(),
            usage: Usage::default(),
        };
        Ok(SubLoopAnswer::Ends(Box::new(end), Duration::ZERO, TreeEffects::default()))
    }

    /// A run goes on once after each thing that its last state came to: a budget that is spent stays spent.
    fn resumes(&mut self, state: &str) -> bool {
        if !self.may_resume {
            return false;
        }
        let last = self.answers.visits.get_mut(state).and_then(|visits| visits.last_mut());
        last.and_then(Value::as_object_mut)
            .is_some_and(|last| last.insert("resume".to_owned(), true.into()).is_none())
    }
}

/// What is walked.
pub(super) struct FuzzedLoop {
    machine: Rc<Machine>,
    player: CasePlayer,
    all: Exploration,
    options: BTreeMap<(String, String), Options>,
}

impl FuzzedLoop {
    /// Makes a loop ready to be walked, with values for what it needs.
    pub(super) fn of(subject: &LoopUnderTest) -> Result<Self, Explanation> {
        let player = CasePlayer::of(subject)?;
        let mut machine = Machine::clone(&*subject.own.settled(&player.start)?);
        machine.limits.cycles = Some(MOST_CYCLES);
        let all = explore(&machine, BOUND);
        Ok(Self { machine: Rc::new(machine), player, all, options: BTreeMap::new() })
    }

    /// Takes a walk. Returns it with what was answered.
    pub(super) fn walk(
        &mut self,
        choices: &mut Choices,
        interrupts: bool,
        subject: &mut LoopUnderTest,
    ) -> (Played, WalkAnswers) {
        let mut script = RandomScript {
            choices,
            options: &mut self.options,
            current: BTreeMap::new(),
            answers: WalkAnswers::default(),
            interruptions: if interrupts { MOST_INTERRUPTIONS } else { 0 },
            may_resume: interrupts,
        };
        let (machine, start) = (Rc::clone(&self.machine), self.player.start.clone());
        let played = play(Play::from_the_start(machine, start, &mut subject.library, &mut script, SHORT));
        (played, script.answers)
    }

    /// Plays a case that was written by the program, if its mocks can be read.
    pub(super) fn play_case(&self, case: &CaseText, subject: &mut LoopUnderTest) -> Option<Played> {
        self.player.play(case, &self.machine, subject)
    }

    /// Returns what does not hold of a walk, if anything does not.
    fn violation(&self, played: &Played, always: &[Always]) -> Option<String> {
        if let Some(broken) = broken(always, &self.machine, None, &played.events).into_iter().next() {
            return Some(format!(
                "`{}` does not hold: step {}, in `{}`",
                broken.text, broken.step, broken.state
            ));
        }
        self.law(played)
    }

    /// Returns which law of the engine itself a walk breaks.
    fn law(&self, played: &Played) -> Option<String> {
        let end = match &played.end {
            PlayedEnd::Complete(end) => end,
            // A walk that stopped in the middle has no end that could break a law.
            PlayedEnd::Gap(_) | PlayedEnd::Killed => return None,
            PlayedEnd::Endless => return Some(format!("the run comes to no end in {SHORT} turns")),
            PlayedEnd::NotResumable(why) => return Some(format!("the run cannot be resumed: {why}")),
        };
        let (limits, signal) = (self.machine.limits, end.signal);
        if end.iterations > limits.iterations.limit {
            return Some(format!("{} iterations, and at most {}", end.iterations, limits.iterations.limit));
        }
        if end.exit_code != end.outcome.exit_code(signal) {
            return Some(format!("the exit code of `{}` is {}", end.outcome.word(), end.exit_code));
        }
        self.unexplored(&played.events).or_else(|| self.unfolded(&played.events))
    }

    /// A run enters no state that the model check does not know.
    fn unexplored(&self, events: &[Stamped]) -> Option<String> {
        // What was cut off at the bound may come to states that it does not know.
        if !self.all.is_complete() {
            return None;
        }
        let state = |stamped: &Stamped| -> Option<StateName> {
            let Event::StateEnter { state, .. } = &stamped.event else { return None };
            (stamped.depth == 0).then(|| state.clone())
        };
        let mut entered = events.iter().filter_map(state);
        let unknown = entered.find(|state| self.machine.find(state).is_none_or(|at| !self.all.reaches(at)));
        unknown.map(|state| format!("the model check does not know that a run comes to `{state}`"))
    }

    /// The events of a run make it again.
    fn unfolded(&self, events: &[Stamped]) -> Option<String> {
        let mut own = events.iter().filter(|stamped| stamped.depth == 0);
        let Some(Event::LoopStart(start)) = own.next().map(|stamped| &stamped.event) else {
            return Some("a journal begins with its start".to_owned());
        };
        let mut past = Past::new(&self.machine, start.clone(), IndexMap::new());
        for stamped in own {
            past.event(&self.machine, &stamped.event, stamped.at);
        }
        let is_over = matches!(past.run().phase(), Phase::Done(_));
        (!is_over).then(|| "the events of a run that ended do not say that it did".to_owned())
    }
}

/// Walks so often, or until something does not hold.
pub(crate) fn run(
    subject: &mut LoopUnderTest,
    always: &[Always],
    walks: u64,
    seed: u64,
) -> Result<FuzzReport, Explanation> {
    let clock = Clock::start();
    let mut fuzzed = FuzzedLoop::of(subject)?;
    let mut report =
        FuzzReport { seed, walks: 0, steps: 0, unplayed: 0, failure: None, took: Duration::ZERO };
    for walk in 0..walks {
        // By the number of the walk, so that one is the same however many were taken before.
        let mut choices = Choices::random(seed, walk);
        let (played, _) = fuzzed.walk(&mut choices, true, subject);
        report.walks += 1;
        report.steps += played.events.len() as u64;
        report.unplayed += u64::from(matches!(played.end, PlayedEnd::Gap(_)));
        if let Some(what) = fuzzed.violation(&played, always) {
            report.failure = Some(shrunk(&mut fuzzed, subject, always, walk, what, &choices));
            break;
        }
    }
    report.took = clock.elapsed();
    Ok(report)
}

/// Makes a walk shorter that breaks something, as long as it still does.
fn shrunk(
    fuzzed: &mut FuzzedLoop,
    subject: &mut LoopUnderTest,
    always: &[Always],
    walk: u64,
    what: String,
    choices: &Choices,
) -> FuzzFailure {
    let mut best = choices.taken().to_vec();
    let mut what = what;
    let mut tries = 0;
    // Large parts first: most choices of a long walk have nothing to do with what it breaks.
    let mut size = best.len().div_ceil(2).max(1);
    while size > 0 && tries < SHRINKS {
        let mut at = 0;
        let mut is_better = false;
        while at < best.len() && tries < SHRINKS {
            tries += 1;
            let end = (at + size).min(best.len());
            // Without these choices, or with the first of each.
            let without: Vec<u32> = best[..at].iter().chain(&best[end..]).copied().collect();
            let mut plain = best.clone();
            plain[at..end].fill(0);
            let candidates = [without, plain];
            // One that equals the best breaks the same again, and the search would stay where it is.
            let found = candidates.into_iter().filter(|candidate| *candidate != best).find_map(|candidate| {
                let mut choices = Choices::given(candidate.clone());
                let (played, _) = fuzzed.walk(&mut choices, true, subject);
                fuzzed.violation(&played, always).map(|what| (candidate, what))
            });
            match found {
                Some((shorter, said)) => {
                    (best, what, is_better) = (shorter, said, true);
                }
                None => at += size,
            }
        }
        if !is_better {
            size /= 2;
        }
    }
    let mut choices = Choices::given(best);
    let (played, answers) = fuzzed.walk(&mut choices, true, subject);
    let mut case = CaseText {
        name: format!("walk {walk}"),
        comment: Some(what.clone()),
        given: given(&subject.own.machine),
        mocks: answers.visits,
        closing: answers.closing,
        ..CaseText::default()
    };
    case.expect.insert("path".to_owned(), path(&played.events).into());
    // A case cannot say everything that a walk did, so the reader is told whether it shows the failure by itself.
    let replayed = fuzzed.play_case(&case, subject);
    let is_shown = replayed.is_some_and(|replayed| fuzzed.violation(&replayed, always).is_some());
    FuzzFailure { what, case: case.write(2), is_shown }
}
