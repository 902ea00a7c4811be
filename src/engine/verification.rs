//! What a green of a run means: this tree, by these checks. A verdict belongs to the tree on which it fell, and a success
//! is verified only where the verdicts that it rests on hold for the tree on which the run ended.

use serde::{Deserialize, Serialize};

use super::changes::{ChangedSince, TreeIds};
use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::base::text::{listed_in_part, plural};
use crate::evaluate::verdict::{Observes, Verdict};
use crate::judges::declared::MayChange;
use crate::judges::found_judges::{JudgeFile, JudgesFound, JudgesState, Suppression};

/// How many of the files that changed since a verdict are named.
pub const MOST_NAMED: usize = 20;

/// What verified a run, and what did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// The tree that the run ended on; none where it is unknown.
    pub tree: Option<ObjectId>,
    /// The checks, and the last observation, in the order in which they first spoke.
    pub checks: Vec<CheckRecord>,
    /// What became of the files that decide what the checks say.
    #[serde(default)]
    pub judges: JudgesRecord,
    /// The suppressions that the run has added.
    #[serde(default)]
    pub suppressions: Vec<Suppression>,
    /// Why the success does not stand; empty where it does.
    pub reasons: Vec<Reason>,
    /// The verdicts that fell on another tree, and are not confirmed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stale: Vec<StaleVerdict>,
    /// Why the tree is not known, where that speaks against the success.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown: Option<String>,
    /// How the run, as an item of a plan, did not begin on the tree that was planned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dirty_start: Option<String>,
    /// Whether all of the tree was checked, or its parts were, each without the others.
    #[serde(skip_serializing_if = "VerifiedExtent::is_whole", default)]
    pub extent: VerifiedExtent,
    /// The tests that the run has added and that pass without its work, too; only where the loop wants them tried.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub proves_nothing: Vec<String>,
    /// Whether the run would have been a success without these reasons.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub spoils_success: bool,
}

/// What of a tree the verdicts are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedExtent {
    /// All of it.
    #[default]
    Whole,
    /// The items of a plan changed files, and each was verified without the changes of the others.
    EachAlone,
}

impl VerifiedExtent {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// What became of the judges of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgesRecord {
    /// All in all.
    pub state: JudgesStanding,
    /// Those that are not as they were at the start.
    pub files: Vec<JudgeFile>,
}

/// What became of the judges, all in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgesStanding {
    /// They are as they were at the start.
    Unchanged,
    /// There are more of them, and nothing was taken away.
    Added,
    /// They may say something else now.
    Changed,
    /// They were changed, and the checks pass with those of the start as well.
    Confirmed,
    /// It is unknown.
    Unknown,
}

impl From<JudgesState> for JudgesStanding {
    fn from(state: JudgesState) -> Self {
        match state {
            JudgesState::Unchanged => Self::Unchanged,
            JudgesState::Added => Self::Added,
            JudgesState::Changed => Self::Changed,
            JudgesState::Unknown => Self::Unknown,
        }
    }
}

/// A journal of an earlier version says nothing of them.
impl Default for JudgesRecord {
    fn default() -> Self {
        Self { state: JudgesStanding::Unknown, files: Vec::new() }
    }
}

impl JudgesRecord {
    /// Nothing happened to them.
    pub fn unchanged() -> Self {
        Self { state: JudgesStanding::Unchanged, files: Vec::new() }
    }
}

/// The last verdict of a state that looked at the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// The state.
    pub state: StateName,
    /// What it said last.
    pub verdict: Verdict,
    /// The tree on which it said so; none where it is unknown.
    pub tree: Option<ObjectId>,
    /// What says that the verdict holds for the tree on which the run ended.
    pub confirmed: Confirmed,
}

impl CheckRecord {
    /// Tells whether the check failed, and people have excused that.
    fn is_excused(&self) -> bool {
        self.verdict.is_quarantined() && self.confirmed == Confirmed::No
    }
}

/// What says that a verdict holds for the tree on which a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirmed {
    /// It fell on that tree.
    InRun,
    /// The check was made once more at the end.
    ClosingPass,
    /// An earlier run had it on that tree.
    Reused,
    /// Nothing.
    No,
}

/// Why a success is not verified although its last observation passed, or because none did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Nothing passed since the last failing observation.
    Unobserved,
    /// What passed did so on another tree.
    Stale,
    /// The tree is not known at the end, although it was at the start, or although the run has come from elsewhere.
    TreeUnknown,
    /// The files that decide what the checks say are not those of the start.
    JudgesChanged,
    /// A check that was made once more said no.
    NotConfirmed,
    /// The item of a plan did not begin on the tree of the plan.
    DirtyStart,
    /// A check failed, and people have excused that for a time.
    Quarantined,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Unobserved,
        Self::Stale,
        Self::TreeUnknown,
        Self::JudgesChanged,
        Self::NotConfirmed,
        Self::DirtyStart,
        Self::Quarantined,
    ];

    /// Tells whether something speaks against the success, and not only nothing for it.
    fn is_against(self) -> bool {
        match self {
            Self::Unobserved | Self::Quarantined => false,
            Self::Stale | Self::TreeUnknown | Self::JudgesChanged | Self::NotConfirmed | Self::DirtyStart => {
                true
            }
        }
    }

    /// Returns the word that is written everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unobserved => "unobserved",
            Self::Stale => "stale",
            Self::TreeUnknown => "tree_unknown",
            Self::JudgesChanged => "judges_changed",
            Self::NotConfirmed => "not_confirmed",
            Self::DirtyStart => "dirty_start",
            Self::Quarantined => "quarantined",
        }
    }
}

/// A verdict that passed on a tree which is not the one on which the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleVerdict {
    /// The state.
    pub state: StateName,
    /// The tree on which it passed; none where it was not looked at.
    pub tree: Option<ObjectId>,
    /// The first files that changed since.
    pub files: Vec<String>,
    /// How many more did.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub more: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Where the tree of a verdict stands in what a run knows.
#[derive(Clone, Debug, PartialEq)]
pub enum VerdictTree {
    /// No action ran since: whatever is found at the next look is what the verdict is about.
    Standing,
    /// It was looked at before the next action.
    Seen(TreeIds),
    /// It was to be looked at, and could not be.
    Unseen(String),
    /// An action ran since, and the tree was not looked at before.
    Passed,
    /// The run went on elsewhere since, and the tree was not looked at before.
    Left,
}

/// The last verdict of a state, as far as a run remembers it.
#[derive(Clone, Debug, PartialEq)]
pub struct LastVerdict {
    /// What it said.
    pub verdict: Verdict,
    /// What that says about the work.
    pub observes: Observes,
    /// On which tree.
    pub tree: VerdictTree,
}

impl LastVerdict {
    /// Makes the verdict of an observation that just ended.
    pub fn new(verdict: Verdict, observes: Observes) -> Self {
        Self { verdict, observes, tree: VerdictTree::Standing }
    }

    fn seen(&self, last: &FinalTree) -> Option<ObjectId> {
        match (&self.tree, last) {
            (VerdictTree::Seen(ids), _) | (VerdictTree::Standing, FinalTree::Known(ids)) => {
                Some(ids.tree.clone())
            }
            (VerdictTree::Standing | VerdictTree::Unseen(_) | VerdictTree::Passed | VerdictTree::Left, _) => {
                None
            }
        }
    }
}

/// The tree on which a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum FinalTree {
    /// None was known from the start, so that nothing can be said about it.
    None,
    /// It is known.
    Known(TreeIds),
    /// It is unknown: it was known at the start, or the run has come from elsewhere with verdicts that fell there.
    Unknown(String),
}

impl FinalTree {
    fn holds(&self, tree: &VerdictTree) -> bool {
        match (self, tree) {
            (Self::None, _) | (Self::Known(_), VerdictTree::Standing) => true,
            (Self::Unknown(_), _)
            | (Self::Known(_), VerdictTree::Unseen(_) | VerdictTree::Passed | VerdictTree::Left) => false,
            (Self::Known(last), VerdictTree::Seen(then)) => last.holds_same_files(then),
        }
    }

    fn id(&self) -> Option<ObjectId> {
        match self {
            Self::Known(ids) => Some(ids.tree.clone()),
            Self::None | Self::Unknown(_) => None,
        }
    }
}

/// What is known of the tree on which a run ends, beside its ids.
#[derive(Default)]
pub(super) struct Grounding {
    /// The files that changed since verdicts fell.
    pub(super) since: Vec<ChangedSince>,
    /// What became of the judges; none where they were not looked at.
    pub(super) judges: Option<JudgesFound>,
}

/// A verdict that a success may rest on.
#[derive(Clone, Copy)]
pub struct Ground<'r> {
    /// The state.
    pub state: &'r StateName,
    /// What it said last.
    pub last: &'r LastVerdict,
    /// Whether it is a check, or a loop that has some: what passed then has to hold at the end.
    pub is_check: bool,
    /// Whether the whole run observed nothing after it.
    pub is_last: bool,
}

/// Who has said that the work is good.
pub(super) struct Observers {
    /// The states whose last observation passed.
    pub(super) passed: Vec<StateName>,
    /// Whether none of them runs a command that says so.
    pub(super) are_agents: bool,
}

impl Verification {
    /// Weighs the verdicts of a run that ended on this tree. Which files changed since is for others to add.
    pub fn of<'r>(
        grounds: impl IntoIterator<Item = Ground<'r>>,
        is_observed: bool,
        last: &FinalTree,
    ) -> Self {
        let (mut checks, mut stale) = (Vec::new(), Vec::new());
        for ground in grounds.into_iter().filter(|ground| ground.is_check || ground.is_last) {
            let passed = ground.last.observes == Observes::Passing;
            let holds = last.holds(&ground.last.tree);
            let tree = ground.last.seen(last);
            if passed && !holds && !matches!(last, FinalTree::Unknown(_)) {
                stale.push(StaleVerdict {
                    state: ground.state.clone(),
                    tree: tree.clone(),
                    files: Vec::new(),
                    more: 0,
                });
            }
            checks.push(CheckRecord {
                state: ground.state.clone(),
                verdict: ground.last.verdict.clone(),
                tree,
                confirmed: if passed && holds { Confirmed::InRun } else { Confirmed::No },
            });
        }
        let unknown = match last {
            FinalTree::Unknown(why) => Some(why.clone()),
            FinalTree::None | FinalTree::Known(_) => None,
        };
        let reasons = [
            (!is_observed).then_some(Reason::Unobserved),
            (!stale.is_empty()).then_some(Reason::Stale),
            unknown.is_some().then_some(Reason::TreeUnknown),
            checks.iter().any(CheckRecord::is_excused).then_some(Reason::Quarantined),
        ];
        let reasons = reasons.into_iter().flatten().collect();
        Self {
            tree: last.id(),
            checks,
            judges: JudgesRecord::unchanged(),
            suppressions: Vec::new(),
            reasons,
            stale,
            unknown,
            dirty_start: None,
            extent: VerifiedExtent::Whole,
            proves_nothing: Vec::new(),
            spoils_success: false,
        }
    }

    /// Makes one of a run that a check verified on this tree.
    #[cfg(test)]
    pub(crate) fn verified_on(tree: ObjectId) -> Self {
        let last = FinalTree::Known(TreeIds { commit: tree.clone(), tree, index: None, rest: None });
        Self::of([], true, &last)
    }

    /// Makes one of a run for which this is the reason that its success does not stand.
    #[cfg(test)]
    pub(crate) fn refused_on(tree: ObjectId, reason: Reason) -> Self {
        Self {
            reasons: vec![reason],
            spoils_success: reason != Reason::Unobserved,
            ..Self::verified_on(tree)
        }
    }

    /// Adds that the run did not begin on the tree on which its plan wants it to begin.
    pub(super) fn began_elsewhere(&mut self, how: String) {
        self.reasons.push(Reason::DirtyStart);
        self.dirty_start = Some(how);
    }

    /// Adds what became of the judges. Where the loop is there to change them, nothing speaks against that.
    pub(super) fn judge(&mut self, found: &JudgesFound, observers: &Observers, may: MayChange) {
        self.judges = JudgesRecord { state: found.state.into(), files: found.files.clone() };
        self.suppressions.clone_from(&found.suppressions);
        let is_doubtful = match found.state {
            JudgesState::Unchanged | JudgesState::Added => false,
            // Judges of others than those that passed decide nothing.
            JudgesState::Changed => {
                !self.doubted(found).is_empty() || self.has_judges_beyond_checks(found, observers)
            }
            JudgesState::Unknown => true,
        };
        if is_doubtful && may != MayChange::Change {
            self.reasons.push(Reason::JudgesChanged);
        }
    }

    /// Tells whether a judge changed that no check of this run would be asked with once more: it is that of a state that observed
    /// and is no check, or nothing but agents has said that the work is good.
    pub(super) fn has_judges_beyond_checks(&self, found: &JudgesFound, observers: &Observers) -> bool {
        let is_check = |state: &str| self.checks.iter().any(|check| check.state.as_str() == state);
        let has_passed = |state: &str| observers.passed.iter().any(|passed| passed.as_str() == state);
        let changed = found.files.iter().filter(|file| file.kind.state() == JudgesState::Changed);
        let mut beyond = changed.filter(|file| !file.checks.iter().any(|state| is_check(state)));
        beyond.any(|file| {
            file.checks.iter().any(|state| has_passed(state))
                || (observers.are_agents && file.checks.is_empty())
        })
    }

    /// Returns the states that passed and whose judges changed.
    pub(super) fn doubted(&self, found: &JudgesFound) -> Vec<StateName> {
        let all: Vec<String> = self.checks.iter().map(|check| check.state.to_string()).collect();
        let doubted = found.doubted(&all);
        let states = self.checks.iter().map(|check| &check.state);
        states.filter(|state| doubted.contains(&state.as_str())).cloned().collect()
    }

    /// Tells whether nothing speaks against a success.
    pub fn holds(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Tells whether something passed, and yet the success does not stand: no outcome that a loop declares excuses that.
    pub fn is_refuted(&self) -> bool {
        // A route that was not observed is a weaker success by its name, and not one that was
        // contradicted.
        self.reasons.iter().any(|reason| reason.is_against())
    }

    /// Says in one sentence why the success does not stand, if it does not.
    pub fn why(&self) -> Option<String> {
        let excused = || self.reasons.iter().find(|reason| **reason == Reason::Quarantined);
        let first = self.reasons.iter().find(|reason| reason.is_against()).or_else(excused)?;
        Some(match first {
            Reason::Quarantined => self.quarantine_sentence(),
            Reason::Unobserved => return None,
            Reason::Stale => self.stale_sentence(),
            Reason::TreeUnknown => {
                let why = self.unknown.as_deref().unwrap_or("it could not be looked at");
                format!("the tree that the run ended on is unknown: {why}")
            }
            Reason::JudgesChanged => self.judges_sentence(),
            Reason::NotConfirmed => "a check that was made once more said no".to_owned(),
            Reason::DirtyStart => {
                let how = self.dirty_start.as_deref().unwrap_or("it is not known");
                format!("it did not begin on the tree of its plan: {how}")
            }
        })
    }

    fn judges_sentence(&self) -> String {
        let doubtful = self.judges.files.iter().filter(|file| file.kind.state() >= JudgesState::Changed);
        let files: Vec<String> =
            doubtful.map(|file| format!("{} {} ({})", file.kind.word(), file.path, file.why)).collect();
        let suppressed =
            self.suppressions.iter().map(|one| format!("{}:{}: {}", one.path, one.line, one.text.trim()));
        let all: Vec<String> = files.into_iter().chain(suppressed).collect();
        match all.split_first() {
            None => "what decides what the checks say is not known".to_owned(),
            Some((first, [])) => format!("what decides what the checks say was changed: {first}"),
            Some((first, rest)) => {
                format!("what decides what the checks say was changed: {first}, and {} more", rest.len())
            }
        }
    }

    fn quarantine_sentence(&self) -> String {
        let excused = self.checks.iter().filter(|check| check.is_excused());
        let states: Vec<&str> = excused.map(|check| check.state.as_str()).collect();
        let verb = if states.len() == 1 { "is" } else { "are" };
        format!("{} failed and {verb} in quarantine", listed_in_part(&states))
    }

    fn stale_sentence(&self) -> String {
        let states = listed_in_part(self.stale.iter().map(|stale| stale.state.as_str()));
        let Some(first) = self.stale.iter().find(|stale| !stale.files.is_empty()) else {
            return format!("{states} passed on another tree than the one that the run ended on");
        };
        let count = first.files.len() as u64 + first.more;
        let named = listed_in_part(first.files.iter().take(3));
        format!("{states} passed on another tree: {} changed since ({named})", plural(count, "file"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(letter: char) -> TreeIds {
        let id = ObjectId::parse(&letter.to_string().repeat(40)).unwrap();
        TreeIds { commit: id.clone(), tree: id.clone(), index: None, rest: None }
    }

    fn last(observes: Observes, tree: VerdictTree) -> LastVerdict {
        LastVerdict { verdict: Verdict::yes_if(observes == Observes::Passing), observes, tree }
    }

    fn of(verdicts: &[(LastVerdict, bool)], end: &FinalTree) -> Verification {
        let names: Vec<_> =
            (0..verdicts.len()).map(|n| StateName::parse(&format!("s{n}")).unwrap()).collect();
        let grounds = verdicts.iter().enumerate().map(|(n, (last, is_check))| Ground {
            state: &names[n],
            last,
            is_check: *is_check,
            is_last: n + 1 == verdicts.len(),
        });
        let is_observed = verdicts.last().is_some_and(|(last, _)| last.observes == Observes::Passing);
        Verification::of(grounds, is_observed, end)
    }

    #[test]
    fn what_passed_on_another_tree_is_stale() {
        let passing = |tree| last(Observes::Passing, tree);
        let end = FinalTree::Known(ids('b'));
        let found =
            of(&[(passing(VerdictTree::Seen(ids('a'))), true), (passing(VerdictTree::Standing), true)], &end);
        assert_eq!(found.reasons, [Reason::Stale]);
        assert_eq!(found.stale[0].tree, Some(ids('a').tree));
        assert_eq!(
            found.checks.iter().map(|check| check.confirmed).collect::<Vec<_>>(),
            [Confirmed::No, Confirmed::InRun]
        );
        // What is not a check counts only where nothing was observed after it.
        assert!(
            of(&[(passing(VerdictTree::Passed), false), (passing(VerdictTree::Standing), true)], &end)
                .holds()
        );
        assert_eq!(of(&[(passing(VerdictTree::Passed), false)], &end).reasons, [Reason::Stale]);
        // Another commit with the same files changes nothing.
        let committed = TreeIds { commit: ids('c').commit, ..ids('b') };
        assert!(of(&[(passing(VerdictTree::Seen(committed)), true)], &end).holds());
    }

    #[test]
    fn unknown_is_not_unchanged() {
        let passing = last(Observes::Passing, VerdictTree::Standing);
        let found = of(&[(passing.clone(), true)], &FinalTree::Unknown("no repository".to_owned()));
        assert_eq!(
            (found.reasons.as_slice(), found.unknown.as_deref()),
            (&[Reason::TreeUnknown][..], Some("no repository"))
        );
        assert!(of(&[(passing, true)], &FinalTree::None).holds());
    }

    fn tree() -> impl Strategy<Value = VerdictTree> {
        prop_oneof![
            Just(VerdictTree::Standing),
            prop::sample::select(vec!['a', 'b', 'c']).prop_map(|letter| VerdictTree::Seen(ids(letter))),
            Just(VerdictTree::Unseen("why".to_owned())),
            Just(VerdictTree::Passed),
            Just(VerdictTree::Left),
        ]
    }

    proptest! {
        #[test]
        fn a_success_that_holds_rests_on_verdicts_of_its_own_tree(
            verdicts in prop::collection::vec((any::<bool>(), any::<bool>(), tree()), 1..6),
        ) {
            let verdicts: Vec<_> = verdicts.into_iter().map(|(passes, is_check, tree)| {
                let observes = if passes { Observes::Passing } else { Observes::Failing };
                (last(observes, tree), is_check)
            }).collect();
            let end = FinalTree::Known(ids('b'));
            if of(&verdicts, &end).holds() {
                let count = verdicts.len();
                prop_assert_eq!(verdicts[count - 1].0.observes, Observes::Passing);
                for (at, (last, is_check)) in verdicts.iter().enumerate() {
                    if last.observes == Observes::Passing && (*is_check || at + 1 == count) {
                        let is_there = last.tree == VerdictTree::Standing || last.tree == VerdictTree::Seen(ids('b'));
                        prop_assert!(is_there);
                    }
                }
            }
        }
    }
}
