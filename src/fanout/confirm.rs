//! `merge --confirm`: makes the checks of items once more where all changes are together. An item was verified without the
//! changes of the others, which says nothing of them together where its scope meets theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::item::ItemId;
use super::item_plan::{Item, Plan};
use super::leg::{LoopReach, prepared};
use super::leg_tree::{self, LegTree};
use super::merged_tree::MergedTree;
use super::whole_tree::WholeTree;
use crate::base::name::StateName;
use crate::base::text::{head, one_line, plural};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::options::{BeginOptions, KeyOption, LlmOptions, RunOptions, Storing};
use crate::definition::load::{self, DIRECTORY};
use crate::definition::vendored::Copies;
use crate::engine::changes::{Changes, TreeChanges};
use crate::engine::outcome::Outcome;
use crate::engine::verification::{CheckRecord, Confirmed};
use crate::files::aside::{self, AtWork};
use crate::journal::files::RunFiles;
use crate::machine::OnChange;
use crate::session::end::ready::EndedRun;
use crate::session::start::begin::Begun;

/// What the checks said of the merged tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// All of it is verified; these items were asked once more.
    Whole(BTreeSet<ItemId>),
    /// The question cannot be asked.
    None {
        /// Why.
        why: String,
    },
    /// A check says no.
    Refused {
        /// The item that it is of.
        item: ItemId,
        /// What it says.
        says: String,
        /// The exit code.
        exit_code: u8,
    },
}

/// An item that is asked once more.
pub(super) struct AskedItem<'m> {
    pub(super) item: &'m Item,
    /// The checks of the run that verified it.
    pub(super) checks: &'m [CheckRecord],
}

/// How items are asked.
pub(super) struct ConfirmOptions<'o> {
    /// Values of the context of the loops.
    pub(super) context: &'o [(String, String)],
    pub(super) run: &'o RunOptions,
    /// Where reports go.
    pub(super) directory: &'o Path,
    /// Other paths that are not work of items: the plan, and what legs have left.
    pub(super) own: Vec<PathBuf>,
}

/// Puts the merged tree into the checkout, makes the checks of these items there, and puts the checkout back as it was.
pub(super) fn confirm(
    plan: &Plan,
    tree: &MergedTree,
    items: &[AskedItem<'_>],
    options: &ConfirmOptions<'_>,
    session: &Session<'_>,
) -> Result<Confirmation, Error> {
    if items.is_empty() {
        return Ok(Confirmation::Whole(BTreeSet::new()));
    }
    let root = load::ancestors(&session.cwd).into_iter().find(|root| root.join(DIRECTORY).is_dir());
    let root = root.unwrap_or_else(|| session.cwd.clone());
    for asked in items {
        // All are looked at before the checkout is touched.
        if let Some(why) = not_made_again(plan, asked, session)? {
            return Ok(Confirmation::None { why });
        }
    }
    let id = plan.plan_id.to_string();
    let home =
        RunFiles::running(&root.join(DIRECTORY)).join(format!("plan-{}{}", head(&id, 16), aside::OF_MERGES));
    let unplaced =
        |error: std::io::Error| Error::failed("cannot put the merged files into the checkout", &error);
    let Some(_at_work) = AtWork::begin(&home).map_err(unplaced)? else {
        return Err(Error::refused("another merge of this plan is at work in this checkout"));
    };
    // A merge that was killed left them there.
    aside::put_back(&home).map_err(unplaced)?;
    let own: Vec<PathBuf> = options.own.iter().cloned().chain([options.directory.to_owned()]).collect();
    let clean = WholeTree::look(&root, &own, session)?;
    if clean.start.ids.commit != plan.commit || !clean.start.entries.is_empty() {
        return Err(Error::refused("`--confirm` needs a clean checkout of the commit of the plan")
            .with_hint("commit or stash what differs, or merge in a checkout of its own"));
    }
    aside::put_aside(&home, &clean.top, &tree.placed()?).map_err(unplaced)?;
    let asked = ask_all(plan, items, &root, &own, options, session);
    // Before the answer is looked at, which may be an error: the checkout has to be as it was in any case.
    let edited = aside::put_back(&home).map_err(unplaced)?;
    if !edited.is_empty() {
        session
            .talk
            .warning(&format!("{} stayed as the checks left it", plural(edited.len() as u64, "file")));
    }
    asked
}

fn ask_all(
    plan: &Plan,
    items: &[AskedItem<'_>],
    root: &Path,
    own: &[PathBuf],
    options: &ConfirmOptions<'_>,
    session: &Session<'_>,
) -> Result<Confirmation, Error> {
    leg_tree::forget_left(plan, root);
    // What checks leave is put aside for good: the next one has to find the merged tree.
    let mut tree = LegTree::begin(plan, root, own, session)?;
    let mut confirmed = BTreeSet::new();
    let mut found = None;
    for asked in items {
        let id = &asked.item.id;
        session.talk.note(&format!("the checks of {id} once more, with the changes of all items"));
        let ended = ask(plan, asked, options, session);
        tree.after(id, false)?;
        match ended.map(|ended| refused(id, &ended)) {
            Ok(None) => drop(confirmed.insert(id.clone())),
            Ok(Some(refused)) => found = Some(refused),
            Err(error) if matches!(error.kind(), Kind::Interrupted(_)) => return Err(error),
            Err(error) => {
                let why = format!("the checks of `{id}` cannot be made once more: {}", error.message());
                found = Some(Confirmation::None { why });
            }
        }
        if found.is_some() {
            break;
        }
    }
    tree.forget();
    Ok(found.unwrap_or(Confirmation::Whole(confirmed)))
}

/// Makes the checks of an item, and nothing else of its loop.
fn ask(
    plan: &Plan,
    asked: &AskedItem<'_>,
    options: &ConfirmOptions<'_>,
    session: &Session<'_>,
) -> Result<EndedRun, Error> {
    let item = asked.item;
    let mut prepared = prepared(plan, item, reach(), session)?;
    let begin = begin_options(item, options);
    let alone = prepared.machine.checks_alone(&states(asked.checks));
    prepared.machine = alone.ok_or_else(|| Error::refused("its loop has other checks than its run"))?;
    match prepared.begin(begin, session)? {
        Begun::Ready(ready) => ready.run(),
        Begun::Skipped(_) => Err(Error::refused("nothing was run")),
    }
}

/// Returns how the checks of an item are made.
fn begin_options(item: &Item, options: &ConfirmOptions<'_>) -> BeginOptions {
    let mut run = options.run.clone();
    run.report_dir = Some(options.directory.join("confirmed").join(item.id.as_str()));
    run.key = KeyOption::Given(Some(item.id.to_string()));
    // The merge reports, and nothing of this is told beside it.
    run.storing = Storing::Nobody;
    run.commit.status = Some(false);
    (run.commit.check, run.commit.comment) = (false, false);
    (run.chain, run.assignment) = (None, None);
    run.llm = LlmOptions { allowed: Some(false), ..LlmOptions::default() };
    BeginOptions {
        context: options.context.to_vec(),
        params: item.params.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        scope: Some(item.scope.clone()),
        // A check that changes files is an unanswered question here, and not a failure.
        on_change: Some(OnChange::Report),
        run,
        ..BeginOptions::default()
    }
}

/// Tells whether another item changed what the checks of this one are of: something in its scope, or one of the inputs that
/// its loop names, wherever they lie.
pub(super) fn is_concerned(
    plan: &Plan,
    tree: &MergedTree,
    item: &Item,
    options: &ConfirmOptions<'_>,
    session: &Session<'_>,
) -> Result<bool, Error> {
    // First what costs nothing: asking a loop for its inputs reads files.
    if tree.meets_others(item) || tree.changed_by_others(item).next().is_none() {
        return Ok(tree.meets_others(item));
    }
    let prepared = prepared(plan, item, reach(), session)?;
    // Without `reuse`, a loop names no inputs besides its scope.
    if prepared.machine.reuse.is_none() {
        return Ok(false);
    }
    let bound = prepared.bind(begin_options(item, options), session)?;
    // Inputs that cannot be told may be anything.
    let read = bound.inputs().ok().flatten();
    Ok(read.is_none_or(|read| tree.changed_by_others(item).any(|path| read.hold(path))))
}

/// Returns what a run of checks says against the merged tree, if it does.
fn refused(id: &ItemId, ended: &EndedRun) -> Option<Confirmation> {
    let end = &ended.complete;
    let changes = end.changes.as_ref().and_then(Changes::known);
    // What is unknown is not unchanged.
    let is_changed = changes.is_none_or(TreeChanges::has_own);
    match end.outcome {
        Outcome::Success if end.verified && !is_changed => None,
        Outcome::Success => {
            let why =
                format!("the checks of `{id}` change files, so that it is unknown which tree they speak of");
            Some(Confirmation::None { why })
        }
        Outcome::Failure
        | Outcome::Exhausted
        | Outcome::Stopped
        | Outcome::Error
        | Outcome::Blocked
        | Outcome::OverBudget
        | Outcome::Unavailable
        | Outcome::Handoff
        | Outcome::Timeout
        | Outcome::Interrupted
        | Outcome::LeaseLost
        | Outcome::Cancelled => Some(Confirmation::Refused {
            item: id.clone(),
            says: one_line(&end.reason, 300),
            exit_code: ended.exit_code(),
        }),
    }
}

/// Says why the checks of an item cannot be made once more, if they cannot.
fn not_made_again(
    plan: &Plan,
    asked: &AskedItem<'_>,
    session: &Session<'_>,
) -> Result<Option<String>, Error> {
    let prepared = prepared(plan, asked.item, reach(), session)?;
    let can = prepared.machine.checks_alone(&states(asked.checks)).is_some();
    let id = &asked.item.id;
    Ok((!can).then(|| {
        format!("what verified `{id}` is not a check that may be made again: say `check: true` in the loop, if it is one")
    }))
}

/// Returns the states whose checks verified an item.
fn states(checks: &[CheckRecord]) -> BTreeSet<StateName> {
    let passed = checks.iter().filter(|check| check.confirmed != Confirmed::No);
    passed.map(|check| check.state.clone()).collect()
}

/// Loops lie where legs look for them.
fn reach() -> LoopReach {
    LoopReach { outside: false, copies: Copies::accepted_if(false) }
}
