//! What the runs that came back prove together: green only if every item of the plan is there and verified, or was
//! skipped with a reason.

use std::collections::{BTreeMap, BTreeSet};

use super::item::{ItemId, LegKey};
use super::item_plan::{Leg, Plan};
use super::severity::{severity, worst};
use crate::base::object::ObjectId;
use crate::base::relative::Line;
use crate::base::sum::Sum;
use crate::base::text::{head, one_line};
use crate::engine::event::Assignment;
use crate::engine::outcome::{GOES_ON, Outcome};

/// The exit code of a merge that lacks an item.
const MISSING: u8 = 4;

/// A success that nothing verified.
// As under `--strict`, where a success that nothing verified is a failure.
const UNVERIFIED: u8 = 1;

/// Something that was found where runs are expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeInput {
    /// Where it was found, for people; no two readings have the same.
    pub shown: String,
    /// What it is.
    pub found: MergeContent,
    /// Whether it is among what an earlier merge has left that was named itself: whichever CI run it is of, it is meant.
    pub is_of_merge: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeContent {
    /// The bundle of a run.
    Run(Box<BundledRun>),
    /// A bundle that cannot be read.
    Unreadable {
        /// Why.
        why: String,
        /// The item that it is of, if the place says it.
        item: Option<ItemId>,
        /// The attempt, if the place says it.
        attempt: Option<u32>,
    },
    /// Something else.
    Foreign {
        /// What it is, or why it cannot be told.
        why: String,
    },
}

/// What the bundle of a run says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledRun {
    /// The id of the run.
    pub run: String,
    /// The item that it worked on.
    pub assignment: Option<Assignment>,
    /// The commit on which it began.
    pub commit: Option<ObjectId>,
    /// The digest of its definition, at its end.
    pub definition_sha256: Option<Sum>,
    /// How it ended; none if it did not.
    pub outcome: Option<Outcome>,
    /// Its exit code.
    pub exit_code: u8,
    /// Whether its success was verified.
    pub verified: bool,
    /// How it did not begin on the tree of the plan, if it did not: whatever it verified then, it was not that tree.
    pub dirty_start: Option<String>,
    /// Whether it began with the changes that the plan names.
    pub began_with_changes: bool,
    /// Whether it entered a state.
    pub entered: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// Why runs cannot be merged at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeRefusal {
    /// A run was not made for a plan.
    #[error("{shown} is the run {run}, which belongs to no plan, and this is the plan {plan}")]
    NoPlan {
        /// The bundle.
        shown: String,
        /// Its run.
        run: String,
        /// This plan.
        plan: String,
    },
    /// A run was made for another plan.
    #[error("{shown} belongs to the plan {other}, and this is the plan {plan}")]
    OtherPlan {
        /// The bundle.
        shown: String,
        /// Its plan.
        other: String,
        /// This plan.
        plan: String,
    },
    /// There are runs of several CI runs, and nothing says which of them is meant.
    #[error("{shown} is of the CI run {found}, and others are of the CI run {other}")]
    SeveralCiRuns {
        /// The bundle.
        shown: String,
        /// Its CI run.
        found: String,
        /// That of the others.
        other: String,
    },
    /// A run contradicts the plan that it names.
    #[error("{shown} says {found}, and the plan says {planned}")]
    Contradiction {
        /// The bundle.
        shown: String,
        /// What it says.
        found: String,
        /// What the plan says.
        planned: String,
    },
}

/// What all runs together are worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The items of the plan, in its order: first those that were to run, then those for which an earlier run stands, then
    /// those that were skipped.
    pub items: Vec<MergedItem>,
    /// Readings that a later attempt at the same item has replaced.
    pub superseded: Vec<String>,
    /// Readings that do not count, and why.
    pub ignored: Vec<(String, String)>,
    /// Bundles that cannot be read and that nothing says of which item they are, and why: each may be a later attempt at
    /// any of them.
    pub lost: Vec<(String, String)>,
    /// The exit code.
    pub exit_code: u8,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedItem {
    /// The item.
    pub id: ItemId,
    /// Its leg; none for one that was not to run.
    pub leg: Option<LegKey>,
    /// What became of it.
    pub standing: ItemStanding,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemStanding {
    /// It ran.
    Ran {
        /// The place of the reading that counts.
        reading: usize,
        /// Which attempt that was.
        attempt: u32,
        /// The exit code that it counts with.
        exit_code: u8,
        /// Whether it was verified.
        verified: bool,
        /// Whether it goes on in a later job.
        is_handed_off: bool,
    },
    /// There is no run that counts.
    Missing {
        /// Why.
        why: String,
        /// What is missing.
        absence: Absence,
    },
    /// It was not run, because an earlier run has verified the same.
    Reused,
    /// It need not run.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// Why there is no run of an item that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// None came back.
    Lost,
    /// What came back cannot be used.
    Unusable,
    /// Its leg had no time left for it: it goes on in a later job.
    PutOff,
}

impl ItemStanding {
    /// Returns the exit code that it counts with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ran { exit_code, .. } => *exit_code,
            Self::Missing { absence: Absence::PutOff, .. } => GOES_ON,
            Self::Missing { absence: Absence::Lost | Absence::Unusable, .. } => MISSING,
            Self::Reused | Self::Skipped { .. } => 0,
        }
    }

    /// Tells whether nothing is left to do for it.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Ran { verified, .. } => *verified,
            Self::Missing { .. } => false,
            Self::Reused | Self::Skipped { .. } => true,
        }
    }

    /// Tells whether a run has verified it: one of this plan, or an earlier one.
    pub fn is_verified(&self) -> bool {
        match self {
            Self::Ran { verified, .. } => *verified,
            Self::Reused => true,
            Self::Missing { .. } | Self::Skipped { .. } => false,
        }
    }
}

impl Merged {
    /// Merges what was found. The order of the readings makes no difference. What another CI run than this has left, where
    /// this is one, is not counted.
    ///
    /// # Errors
    /// Something was found that is of another plan, commit or definition; or of several CI runs, and this is not a CI run.
    pub fn of(plan: &Plan, readings: &[MergeInput], ci_run: Option<&str>) -> Result<Self, MergeRefusal> {
        let mut attempts: BTreeMap<&ItemId, Attempts> = BTreeMap::new();
        let (mut superseded, mut ignored, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        let ci_run = match ci_run {
            Some(ci_run) => Some(ci_run),
            None => one_ci_run(readings)?,
        };
        let is_leftover = |reading: &&MergeInput| leftover(reading, ci_run).is_some();
        let meant: Vec<&MergeInput> = readings.iter().filter(|reading| !is_leftover(reading)).collect();
        let first = first_attempts(plan, &meant);
        // If one run began with the changes of `--dirty`, all have to: otherwise they were verified on different trees.
        let with_changes = meant.iter().any(|reading| began_with_changes(reading));
        for (place, reading) in readings.iter().enumerate() {
            if let Some(other) = leftover(reading, ci_run) {
                let here = ci_run.unwrap_or("");
                ignored.push((
                    reading.shown.clone(),
                    format!("it is of the CI run {other}, and this is {here}"),
                ));
                continue;
            }
            match &reading.found {
                MergeContent::Run(run) => match belonging(plan, reading, run, &first)? {
                    Some(item) => attempts.entry(item).or_default().runs.push(place),
                    None => superseded.push(reading.shown.clone()),
                },
                MergeContent::Unreadable { item, why, .. } => {
                    match item.as_ref().and_then(|id| plan.items.iter().find(|item| item.id == *id)) {
                        Some(item) => attempts.entry(&item.id).or_default().unreadable.push(place),
                        None => lost.push((reading.shown.clone(), why.clone())),
                    }
                }
                MergeContent::Foreign { why } => ignored.push((reading.shown.clone(), why.clone())),
            }
        }
        let mut items = Vec::new();
        for item in &plan.items {
            let found = attempts.remove(&item.id).unwrap_or_default();
            let (standing, older) = found.settle(readings, with_changes);
            superseded.extend(older.into_iter().map(|place| readings[place].shown.clone()));
            items.push(MergedItem { id: item.id.clone(), leg: None, standing });
        }
        for leg in &plan.legs {
            let own: BTreeSet<&ItemId> = leg.items.iter().collect();
            items
                .iter_mut()
                .filter(|item| own.contains(&item.id))
                .for_each(|item| item.leg = Some(leg.key.clone()));
        }
        items.extend(plan.reused.iter().map(|reused| MergedItem {
            id: reused.item.id.clone(),
            leg: None,
            standing: ItemStanding::Reused,
        }));
        items.extend(plan.skipped.iter().map(|skipped| MergedItem {
            id: skipped.id.clone(),
            leg: None,
            standing: ItemStanding::Skipped { reason: skipped.reason.to_string() },
        }));
        // Readings come in the order of a file system, which must not show in the result.
        superseded.sort();
        ignored.sort();
        lost.sort();
        let mut merged = Self { items, superseded, ignored, lost, exit_code: 0 };
        merged.count();
        Ok(merged)
    }

    /// Finds out the exit code.
    pub(super) fn count(&mut self) {
        let codes = self.items.iter().map(|item| item.standing.exit_code());
        self.exit_code = worst(codes.chain(self.lost.iter().map(|_| MISSING)));
    }

    /// Returns the legs of which an item goes on in a later job.
    pub fn handed_off(&self) -> BTreeSet<LegKey> {
        self.legs(|standing| match standing {
            ItemStanding::Ran { is_handed_off, .. } => *is_handed_off,
            ItemStanding::Missing { absence, .. } => *absence == Absence::PutOff,
            ItemStanding::Reused | ItemStanding::Skipped { .. } => false,
        })
    }

    /// Returns the legs of which an item is not verified.
    pub fn unsettled(&self) -> BTreeSet<LegKey> {
        self.legs(|standing| !standing.is_settled())
    }

    fn legs(&self, is_wanted: impl Fn(&ItemStanding) -> bool) -> BTreeSet<LegKey> {
        let wanted = self.items.iter().filter(|item| is_wanted(&item.standing));
        wanted.filter_map(|item| item.leg.clone()).collect()
    }

    /// Returns the items of which there is no run that counts, by their legs.
    pub fn missing<'m>(&'m self, plan: &'m Plan) -> Vec<(&'m Leg, Vec<&'m MergedItem>)> {
        let mut all: Vec<(&Leg, Vec<&MergedItem>)> = Vec::new();
        for leg in &plan.legs {
            let is_missing = |item: &&MergedItem| {
                item.leg.as_ref() == Some(&leg.key)
                    && matches!(&item.standing, ItemStanding::Missing { absence, .. } if *absence != Absence::PutOff)
            };
            let items: Vec<&MergedItem> = self.items.iter().filter(is_missing).collect();
            if !items.is_empty() {
                all.push((leg, items));
            }
        }
        all
    }
}

/// What was found of an item.
#[derive(Default)]
struct Attempts {
    runs: Vec<usize>,
    unreadable: Vec<usize>,
}

impl Attempts {
    /// Decides which reading counts. Returns what became of the item, and the readings that do not count.
    fn settle(self, readings: &[MergeInput], with_changes: bool) -> (ItemStanding, Vec<usize>) {
        let mut runs: Vec<(u32, usize, usize)> = Vec::new();
        for place in self.runs {
            let MergeContent::Run(run) = &readings[place].found else { continue };
            let attempt = run.assignment.as_ref().map_or(0, |assignment| assignment.attempt);
            runs.push((attempt, severity(code_of(run, with_changes)), place));
        }
        // The highest attempt counts, and of two runs of one attempt the worse one.
        let key = |(attempt, severity, place): &(u32, usize, usize)| {
            (*attempt, *severity, readings[*place].shown.as_str())
        };
        runs.sort_by(|one, other| key(one).cmp(&key(other)));
        let counted = runs.pop();
        let older: Vec<usize> = runs.iter().map(|(_, _, place)| *place).collect();
        let mut unreadable: Vec<usize> = self.unreadable;
        unreadable.sort_by_key(|place| readings[*place].shown.as_str());
        let hides = |place: &&usize| match &readings[**place].found {
            // One of an unknown attempt may be the last one.
            MergeContent::Unreadable { attempt, .. } => {
                attempt.is_none_or(|attempt| counted.is_none_or(|(counted, ..)| attempt >= counted))
            }
            MergeContent::Run(_) | MergeContent::Foreign { .. } => false,
        };
        if let Some(place) = unreadable.iter().find(hides) {
            let why = match &readings[*place].found {
                MergeContent::Unreadable { why, .. } => {
                    format!("{} cannot be read: {why}", readings[*place].shown)
                }
                MergeContent::Run(_) | MergeContent::Foreign { .. } => String::new(),
            };
            let older = older.into_iter().chain(counted.map(|(_, _, place)| place)).collect();
            return (ItemStanding::Missing { why, absence: Absence::Unusable }, older);
        }
        let older = older.into_iter().chain(unreadable).collect();
        let Some((attempt, _, place)) = counted else {
            let why = "no run of it came back".to_owned();
            return (ItemStanding::Missing { why, absence: Absence::Lost }, older);
        };
        let MergeContent::Run(run) = &readings[place].found else {
            return (ItemStanding::Missing { why: String::new(), absence: Absence::Unusable }, older);
        };
        if !run.entered {
            let why = format!("the run {} entered no state", run.run);
            // The deadline came while it was being prepared.
            let is_put_off = run.outcome == Some(Outcome::Handoff);
            let absence = if is_put_off { Absence::PutOff } else { Absence::Unusable };
            return (ItemStanding::Missing { why, absence }, older);
        }
        let exit_code = code_of(run, with_changes);
        let standing = ItemStanding::Ran {
            reading: place,
            attempt,
            exit_code,
            verified: exit_code == 0,
            is_handed_off: run.outcome == Some(Outcome::Handoff),
        };
        (standing, older)
    }
}

/// Returns the exit code that a run counts with: 0 only for a success that was verified on the tree on which all of them
/// began.
fn code_of(run: &BundledRun, with_changes: bool) -> u8 {
    let is_success = run.outcome == Some(Outcome::Success) && run.exit_code == 0;
    let is_of_tree = run.dirty_start.is_none() && run.began_with_changes == with_changes;
    match (run.entered, is_success, run.verified && is_of_tree) {
        (false, ..) => MISSING,
        (true, true, true) => 0,
        (true, true, false) => UNVERIFIED,
        // A run that claims to be fine without being a success is a lie, or a fault.
        (true, false, _) if run.exit_code == 0 => MISSING,
        (true, false, _) => run.exit_code,
    }
}

/// Tells whether a run began with the changes that the plan names.
fn began_with_changes(reading: &MergeInput) -> bool {
    match &reading.found {
        MergeContent::Run(run) => run.began_with_changes && run.dirty_start.is_none(),
        MergeContent::Unreadable { .. } | MergeContent::Foreign { .. } => false,
    }
}

/// Returns the CI run that a run is of, where an earlier merge has not vouched for it.
fn ci_run_of(reading: &MergeInput) -> Option<&str> {
    let MergeContent::Run(run) = &reading.found else { return None };
    run.assignment.as_ref()?.ci_run.as_ref().map(Line::as_str).filter(|_| !reading.is_of_merge)
}

/// Returns the CI run whose job left this behind, if that is another one.
fn leftover<'r>(reading: &'r MergeInput, ci_run: Option<&str>) -> Option<&'r str> {
    ci_run_of(reading).filter(|of| ci_run.is_some_and(|ci_run| ci_run != *of))
}

/// Returns the CI run that the runs are of.
fn one_ci_run(readings: &[MergeInput]) -> Result<Option<&str>, MergeRefusal> {
    let mut all = readings.iter().filter_map(|reading| Some((reading, ci_run_of(reading)?)));
    let Some((_, first)) = all.next() else { return Ok(None) };
    match all.find(|(_, other)| *other != first) {
        None => Ok(Some(first)),
        Some((reading, other)) => Err(MergeRefusal::SeveralCiRuns {
            shown: reading.shown.clone(),
            found: one_line(other, 100),
            other: one_line(first, 100),
        }),
    }
}

/// Returns for each CI run the first attempt at this plan: what came before it may have had another one.
fn first_attempts<'r>(plan: &Plan, readings: &[&'r MergeInput]) -> BTreeMap<&'r str, u32> {
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    for reading in readings {
        let MergeContent::Run(run) = &reading.found else { continue };
        let Some(assignment) = run.assignment.as_ref().filter(|one| one.plan_id == plan.plan_id) else {
            continue;
        };
        if let Some(ci_run) = &assignment.ci_run {
            let lowest = first.entry(ci_run.as_str()).or_insert(assignment.attempt);
            *lowest = (*lowest).min(assignment.attempt);
        }
    }
    first
}

/// Returns the item of the plan that a run is of; none for an older attempt of the same CI run under another plan.
fn belonging<'p>(
    plan: &'p Plan,
    reading: &MergeInput,
    run: &BundledRun,
    first: &BTreeMap<&str, u32>,
) -> Result<Option<&'p ItemId>, MergeRefusal> {
    let shown = reading.shown.clone();
    let this = || short(&plan.plan_id.to_string());
    let Some(assignment) = &run.assignment else {
        return Err(MergeRefusal::NoPlan { shown, run: run.run.clone(), plan: this() });
    };
    if assignment.plan_id != plan.plan_id {
        let first = assignment.ci_run.as_ref().and_then(|ci_run| first.get(ci_run.as_str()));
        // The workflow was run again and has planned anew, so what its earlier attempt left is out of date.
        if first.is_some_and(|first| assignment.attempt < *first) {
            return Ok(None);
        }
        return Err(MergeRefusal::OtherPlan {
            shown,
            other: short(&assignment.plan_id.to_string()),
            plan: this(),
        });
    }
    let contradiction =
        |found: String, planned: String| MergeRefusal::Contradiction { shown: shown.clone(), found, planned };
    let item = plan.items.iter().find(|item| item.id.as_str() == assignment.item.as_str());
    let Some(item) = item else {
        let found = format!("the item `{}`", one_line(assignment.item.as_str(), 100));
        return Err(contradiction(found, "that there is none of this name".to_owned()));
    };
    let leg = plan.leg_of(&item.id).map_or("", |leg| leg.key.as_str());
    if leg != assignment.leg.as_str() {
        let found = format!("the leg `{}`", one_line(assignment.leg.as_str(), 100));
        return Err(contradiction(found, format!("`{}` is on the leg `{leg}`", item.id)));
    }
    if run.commit.as_ref() != Some(&plan.commit) {
        let found = run
            .commit
            .as_ref()
            .map_or("no commit".to_owned(), |commit| format!("the commit {}", short(commit.as_str())));
        return Err(contradiction(found, format!("the commit {}", short(plan.commit.as_str()))));
    }
    let planned = plan.planned(&item.r#loop).map(|planned| planned.definition_sha256);
    if run.definition_sha256 != planned {
        let word = |sum: Option<Sum>| {
            sum.map_or("no definition".to_owned(), |sum| {
                format!("the definition {}", short(&sum.to_string()))
            })
        };
        return Err(contradiction(word(run.definition_sha256), word(planned)));
    }
    Ok(Some(&item.id))
}

fn short(id: &str) -> String {
    head(id, 12).to_owned()
}
