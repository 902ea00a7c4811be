//! Makes a case ready to be played: its mocks in their types, the run as it begins, the tree; and refuses what could not be.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::mock::{self, Mock, MockedState};
use super::scripted::{MockedTurns, StateMocks};
use super::virtual_tree::VirtualTree;
use super::written::{CaseStart, LoopCase, MockedVisits, WrittenMock};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, nearest};
use crate::base::name::StateName;
use crate::base::path::DocPath;
use crate::base::time::Timestamp;
use crate::board::BoardChange;
use crate::engine::Start;
use crate::engine::event::{Llm, LoopStart, Source};
use crate::engine::run::placed::Placement;
use crate::engine::state_result::StateResult;
use crate::evaluate::number_bounds::ExitStatus;
use crate::evaluate::observation::Observation;
use crate::machine::explore::{BOUND, explore};
use crate::machine::provided::Provided;
use crate::machine::run_variables::{self, Given};
use crate::machine::{Action, Machine, OnChange, Target};

/// When runs begin that say nothing else: the first moment of 2026.
// Always the same, so that a command or prompt that holds a date does not depend on the day of the test.
const BEGINNING: i64 = 1_767_225_600_000;

/// The directory for files of a run's own, in runs that are played.
pub const RUN_DIR: &str = ".loops/.running/test.dir";

/// A case that can be played.
#[derive(Clone, Debug)]
pub struct ReadyCase {
    /// How the run begins.
    pub start: Start,
    /// Where it begins, if not at the start.
    pub placement: Option<Placement>,
    /// The tree.
    pub tree: VirtualTree,
    /// The mocks, by the names of the states.
    pub mocks: BTreeMap<String, StateMocks>,
}

/// What has to be known of a loop to make its cases ready.
#[derive(Clone, Copy)]
pub struct TestedLoop<'l> {
    /// The machine.
    pub machine: &'l Machine,
    /// The digest of its definition.
    pub digest: &'l str,
    /// Where it is written down.
    pub source: &'l Source,
    /// The texts of its files.
    pub texts: &'l [&'l str],
}

/// Finds the machine of the loop that a state runs, where that is known before the run.
pub type FindInner<'f> = dyn FnMut(&str, &str) -> Option<(Rc<Machine>, String)> + 'f;

/// Makes a case ready. What is wrong with it goes to `out`, at places below `path`.
pub fn ready(
    case: &LoopCase,
    tested: TestedLoop<'_>,
    find: &mut FindInner<'_>,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<ReadyCase> {
    let before = out.total();
    let given = case.given.as_ref();
    // All parts are read before it is decided whether they are right, so that every mistake is named at once.
    let mocks = mocks(case, tested, find, &path.key("mocks"), out);
    let start = start(given, tested, &path.key("given"), out);
    let placement = given.and_then(|given| placement(given, tested.machine, &path.key("given"), out));
    if placement.is_some()
        && let Some((state, _)) = mocks.iter().find(|(_, mocks)| mocks.resumes())
    {
        let message = format!("a case that begins in the middle cannot resume its run, as `{state}` says");
        let place = FindingPlace::Key(path.key("mocks").key(state.as_str()));
        out.push(Diagnostic::error("test-start", place, message).help("let it begin at the start"));
    }
    let none = IndexMap::new();
    let tree = VirtualTree::of(given.map_or(&none, |given| &given.files));
    (out.total() == before).then_some(())?;
    Some(ReadyCase { start: start?, placement, tree, mocks })
}

impl StateMocks {
    fn resumes(&self) -> bool {
        match &self.visits {
            MockedTurns::Every(mock) => mock.resumes,
            MockedTurns::Listed(listed) => listed.iter().any(|mock| mock.resumes),
        }
    }
}

fn mocks(
    case: &LoopCase,
    tested: TestedLoop<'_>,
    find: &mut FindInner<'_>,
    path: &DocPath,
    out: &mut Diagnostics,
) -> BTreeMap<String, StateMocks> {
    let mut all = BTreeMap::new();
    for (key, written) in &case.mocks {
        let path = path.key(key.as_str());
        let outer = InnerCase::Outer(tested.machine);
        let typed = match found(key, outer, find) {
            FoundState::In(inner, state) => match inner.get().find(&state) {
                Some(Target::Step(id)) => {
                    of_state(written, MockedState::step(inner.get().step(id)), &path, out)
                }
                Some(Target::End(id)) => of_state(written, MockedState::end(inner.get().end(id)), &path, out),
                None => {
                    unknown(key, inner.get(), &state, &path, out);
                    None
                }
            },
            FoundState::NoLoop(state) => {
                let message =
                    format!("`{key}` is in no loop: `{state}` runs none that is known before the run");
                out.push(mock::mistake(FindingPlace::Key(path), message));
                None
            }
            FoundState::NoName => {
                let message = format!("`{key}` is not the name of a state");
                out.push(mock::mistake(FindingPlace::Key(path), message));
                None
            }
        };
        all.extend(typed.map(|typed| (key.clone(), typed)));
    }
    all
}

/// The machine that a state is looked up in.
enum InnerCase<'m> {
    Outer(&'m Machine),
    Found(Rc<Machine>),
}

impl InnerCase<'_> {
    fn get(&self) -> &Machine {
        match self {
            Self::Outer(machine) => machine,
            Self::Found(machine) => machine,
        }
    }
}

/// What a state does, with how it is judged.
pub struct StateWork {
    /// What it does.
    pub action: Option<Action>,
    /// Whether a judge is asked about it.
    pub is_judged: bool,
}

/// Finds what the state does that a key names, in the loop or in one that it runs.
pub fn work_of(key: &str, machine: &Machine, find: &mut FindInner<'_>) -> Option<StateWork> {
    let FoundState::In(inner, state) = found(key, InnerCase::Outer(machine), find) else { return None };
    let machine = inner.get();
    Some(match machine.find(&state)? {
        Target::Step(id) => {
            let step = machine.step(id);
            let is_judged = step.evaluate.as_ref().is_some_and(|evaluate| evaluate.asks());
            StateWork { action: step.action.clone(), is_judged }
        }
        Target::End(id) => StateWork { action: machine.end(id).closing.clone(), is_judged: false },
    })
}

enum FoundState<'m> {
    In(InnerCase<'m>, StateName),
    NoLoop(String),
    NoName,
}

/// Finds the state that a key names, from loop to loop.
fn found<'m>(key: &str, outer: InnerCase<'m>, find: &mut FindInner<'_>) -> FoundState<'m> {
    let mut inner = outer;
    let mut parts = key.split('/').peekable();
    let mut caller = String::new();
    while let Some(part) = parts.next() {
        let Ok(name) = StateName::parse(part) else { return FoundState::NoName };
        if parts.peek().is_none() {
            return FoundState::In(inner, name);
        }
        // The state that runs the loop, or else the loop itself.
        let of_state = match inner.get().find(&name) {
            Some(Target::Step(id)) => inner.get().step(id).action.as_ref().and_then(Action::sub_loop),
            Some(Target::End(_)) | None => None,
        };
        let named = of_state.and_then(|sub| sub.name.as_literal().map(std::borrow::Cow::into_owned));
        // The name of the loop does as well: a test need not say which state runs it.
        let by_name = || {
            let runs = |step: &crate::machine::Step| {
                step.action
                    .as_ref()
                    .and_then(Action::sub_loop)
                    .and_then(|sub| sub.name.as_literal().map(std::borrow::Cow::into_owned))
            };
            inner.get().steps().filter_map(|(_, step)| runs(step)).find(|known| known == part)
        };
        let Some((machine, file)) = named.or_else(by_name).and_then(|name| find(&name, &caller)) else {
            return FoundState::NoLoop(part.to_owned());
        };
        (inner, caller) = (InnerCase::Found(machine), file);
    }
    FoundState::NoName
}

fn unknown(key: &str, machine: &Machine, state: &StateName, path: &DocPath, out: &mut Diagnostics) {
    let known = machine.steps().map(|(_, step)| step.name.as_str());
    let known = known.chain(machine.ends().map(|(_, end)| end.name.as_str()));
    let near = nearest(state.as_str(), known);
    let message = format!("the loop `{}` has no state `{state}`", machine.name);
    let finding = mock::mistake(FindingPlace::Key(path.clone()), message);
    let prefix = key.rsplit_once('/').map_or_else(String::new, |(before, _)| format!("{before}/"));
    out.push(match near {
        Some(near) => finding.help(format!("did you mean `{prefix}{near}`?")),
        None => finding,
    });
}

fn of_state(
    written: &MockedVisits,
    state: MockedState<'_>,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<StateMocks> {
    match written {
        MockedVisits::Every(every) => {
            let visits = MockedTurns::Every(Box::new(mock::typed(every, state, path, out)?));
            Some(StateMocks { visits, closing_pass: None })
        }
        MockedVisits::Listed(listed) => {
            let is_keyed = listed.closing_pass.is_some();
            let items = if is_keyed { path.key("visits") } else { path.clone() };
            let visits = turns(&listed.visits, state, &items, out);
            let closing = listed.closing_pass.as_ref();
            let closing = closing.map(|closing| mock::typed(closing, state, &path.key("closing_pass"), out));
            let closing_pass = match closing {
                Some(None) => return None,
                Some(Some(closing)) => Some(closing),
                None => None,
            };
            Some(StateMocks { visits: MockedTurns::Listed(visits?), closing_pass })
        }
    }
}

/// Reads the visits of a state. An item that only says that the run is resumed belongs to the one behind it.
fn turns(
    written: &[WrittenMock],
    state: MockedState<'_>,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<Vec<Mock>> {
    let mut turns = Vec::new();
    let (mut resumes, mut is_whole) = (false, true);
    for (at, one) in written.iter().enumerate() {
        // The last item has none behind it, and is a mock by itself.
        if one.only_resumes() && at + 1 < written.len() {
            resumes = true;
            continue;
        }
        match mock::typed(one, state, &path.index(at), out) {
            Some(typed) => {
                turns.push(Mock { resumes: typed.resumes || std::mem::take(&mut resumes), ..typed });
            }
            // The others are read all the same, as each may have its own mistake.
            None => is_whole = false,
        }
    }
    is_whole.then_some(turns)
}

fn start(
    given: Option<&CaseStart>,
    tested: TestedLoop<'_>,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<Start> {
    let TestedLoop { machine, digest, source, texts } = tested;
    let at = match given.and_then(|given| given.now.as_ref()) {
        None => Some(Timestamp::from_millis(BEGINNING)),
        Some(now) => Timestamp::try_from(now.clone())
            .inspect_err(|_| {
                let message = format!("`{now}` is not a moment");
                let place = FindingPlace::Value(path.key("now"));
                out.push(
                    Diagnostic::error("test-start", place, message).help("write `2026-01-01T00:00:00Z`"),
                );
            })
            .ok(),
    };
    // Nothing of the environment of this machine: a case would pass on one machine and fail on another.
    let env: BTreeMap<String, String> = given.into_iter().flat_map(|given| given.env.clone()).collect();
    let context = variables(given, machine, texts, &env, path, out);
    let context = context?;
    let said = |given: &CaseStart| given.on_change;
    let on_change = given.and_then(said).or(machine.on_change).unwrap_or(OnChange::Report);
    // The same at each play, because commands and prompts that hold it are compared with texts.
    let run_id = format!("{}-test", machine.name.file_stem());
    let event = LoopStart {
        definition_sha256: digest.to_owned(),
        max_iterations: machine.limits.iterations.limit,
        inputs: given
            .into_iter()
            .flat_map(|given| given.params.keys().chain(given.context.keys()))
            .cloned()
            .collect(),
        llm: if given.is_none_or(|given| given.llm) { Llm::On } else { Llm::Off },
        until_clean: machine.maintain.is_some(),
        board: machine.has_board().then(|| Box::new(machine.board)),
        strict: given.is_some_and(|given| given.strict),
        source: source.clone(),
        on_change,
        // Checks are made once more as in a run without flags: whether a success is verified depends on it.
        no_closing_pass: false,
        context,
        ..LoopStart::new(machine.name.clone(), &run_id)
    };
    let deadline: Option<Duration> = given.and_then(|given| given.deadline).map(|deadline| deadline.0);
    let start = Start::of(event, at?, "test");
    Some(Start { env, run_dir: RUN_DIR.to_owned(), deadline, ..start })
}

fn variables(
    given: Option<&CaseStart>,
    machine: &Machine,
    texts: &[&str],
    env: &BTreeMap<String, String>,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<Map<String, Value>> {
    let provided = Provided::new(texts, RUN_DIR);
    let of = |map: &IndexMap<String, Value>| {
        map.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let values = Given {
        input: given.and_then(|given| given.input.clone()),
        context: given.into_iter().flat_map(|given| given.context.clone()).collect(),
        params: given.map_or_else(Vec::new, |given| of(&given.params)),
        provided,
        ..Given::default()
    };
    run_variables::resolve(machine, &values, env)
        .map_err(|errors| {
            for error in errors {
                let place = FindingPlace::Key(path.clone());
                let finding = Diagnostic::error("test-start", place, error.to_string());
                out.push(finding.help("give it in `given`, under `params`, `context` or `env`"));
            }
        })
        .ok()
}

fn placement(
    given: &CaseStart,
    machine: &Machine,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<Placement> {
    let is_at_start = given.state.is_none()
        && given.counts.is_none()
        && given.prev.is_none()
        && given.captures.is_empty()
        && given.board.is_empty()
        && !given.verified;
    if is_at_start {
        return None;
    }
    let mut check = StartCheck { given, machine, path, out };
    check.state();
    check.counts();
    let captures = check.captures();
    let board = check.board();
    // What came before the case has no state in it, but every result names one.
    let before = StateName::parse("before").expect("it is a name");
    let result = |state: &StateName, code: i32, text: &str| StateResult {
        state: state.clone(),
        seen: Observation::exited(code, text),
        verdict: None,
    };
    let prev = given
        .prev
        .as_ref()
        .map(|prev| result(&before, prev.exit_code.map_or(0, ExitStatus::get), &prev.output));
    let captures = captures.into_iter().map(|(name, state)| {
        let result = result(&state, 0, &given.captures[&name]);
        (name, result)
    });
    Some(Placement {
        state: given.state.clone(),
        iteration: given.counts.as_ref().map_or(1, |counts| counts.iteration.get()),
        steps: given.counts.as_ref().map_or(0, |counts| counts.steps.0),
        retries: given.counts.as_ref().map_or(0, |counts| counts.retries.0),
        is_verified: given.verified,
        captures: captures.collect(),
        prev,
        board,
    })
}

/// The check of where a case begins.
struct StartCheck<'c> {
    given: &'c CaseStart,
    machine: &'c Machine,
    path: &'c DocPath,
    out: &'c mut Diagnostics,
}

impl StartCheck<'_> {
    fn wrong(&mut self, key: &str, message: String) {
        let help = "if it is meant all the same, write `unreachable: true`";
        let place = FindingPlace::Value(key.split('.').fold(self.path.clone(), |path, key| path.key(key)));
        self.out.push(Diagnostic::error("test-start", place, message).help(help));
    }

    /// Refuses a state where no run can come.
    fn state(&mut self) {
        let Some(state) = &self.given.state else { return };
        match self.machine.find(state) {
            None => unknown(state.as_str(), self.machine, state, &self.path.key("state"), self.out),
            Some(target) if !self.given.unreachable => {
                // The exploration ignores counters and holds every real run: where it does not come, no run does.
                let all = explore(self.machine, BOUND);
                let nodes: BTreeSet<bool> = all
                    .nodes()
                    .filter(|(_, node)| node.at == target)
                    .map(|(_, node)| node.verified)
                    .collect();
                if nodes.is_empty() {
                    self.wrong("state", format!("no run can come to `{state}`"));
                } else if self.given.verified && !nodes.contains(&true) {
                    self.wrong("verified", format!("no run comes to `{state}` with verified work"));
                }
            }
            Some(_) => {}
        }
    }

    fn counts(&mut self) {
        let Some(counts) = self.given.counts.as_ref().filter(|_| !self.given.unreachable) else { return };
        let (iteration, most) = (counts.iteration.get(), self.machine.limits.iterations.limit);
        if iteration > most {
            self.wrong(
                "counts.iteration",
                format!("no run comes to iteration {iteration}: `max_iterations` is {most}"),
            );
        }
        let target = self.given.state.as_ref().and_then(|state| self.machine.find(state));
        let retries = counts.retries.0;
        if let (Some(Target::Step(id)), true) = (target, retries > 0) {
            let step = self.machine.step(id);
            match &step.retry {
                Some(retry) if retries > retry.max => {
                    let message = format!("`{}` is tried again {} times at most", step.name, retry.max);
                    self.wrong("counts.retries", message);
                }
                // Without `max_retries` a state may be entered in a row as often as the caps allow.
                Some(_) | None => {}
            }
        }
    }

    /// Returns the captures with the states that make them.
    fn captures(&mut self) -> Vec<(String, StateName)> {
        let mut known = Vec::new();
        let unnamed = || StateName::parse("before").expect("it is a name");
        for name in self.given.captures.keys() {
            let by = self.machine.steps().find(|(_, step)| {
                // The last result of each state is a capture under the name of the state as well.
                let captures = step.capture.as_ref().is_some_and(|capture| capture.as_str() == name);
                captures || step.name.as_str() == name
            });
            match by {
                Some((_, step)) => known.push((name.clone(), step.name.clone())),
                None if self.given.unreachable => known.push((name.clone(), unnamed())),
                None => {
                    let message = format!("no state of the loop captures `{name}`");
                    self.wrong(&format!("captures.{name}"), message);
                }
            }
        }
        known
    }

    fn board(&mut self) -> Vec<BoardChange> {
        let mut changes = Vec::new();
        for (at, value) in self.given.board.iter().enumerate() {
            match serde_json::from_value(value.clone()) {
                Ok(change) => changes.push(change),
                Err(error) => {
                    let place = FindingPlace::Value(self.path.key("board").index(at));
                    let message = format!("this is not a change of a task board: {error}");
                    self.out.push(Diagnostic::error("test-start", place, message));
                }
            }
        }
        changes
    }
}
