//! The one pull request, or branch, of a loop and a base.

use super::delivered::Done;
use super::delivery_plan;
use super::delivery_plan::{DeliveryPlan, Observed, Offer, PullStep};
use super::offer::{Offered, check_changes};
use super::secrecy::check_texts;
use super::servers::DeliveryServer;
use super::texts::Texts;
use super::way::{Brought, DeliverOptions};
use crate::context::Session;
use crate::forge::forge_trait::{Checks, Forge, ForgeError, ForgeErrorKind, NewCommit, NewPull};
use crate::forge::names::StickyNames;
use crate::forge::standing::FixStanding;
use crate::policy::DeliveryMode;
use crate::repository::delivery_stop::DeliveryStop;

/// Delivers to the branch of a loop and a base, and keeps its pull request.
pub(super) fn deliver(
    offered: &Offered<'_>,
    standing: FixStanding,
    server: &DeliveryServer,
    options: &DeliverOptions,
    session: &Session<'_>,
) -> Result<Brought, DeliveryStop> {
    let base = server.base(options.base.as_deref(), session)?;
    let names = StickyNames::new(&offered.bundle.manifest.r#loop, &base).map_err(|_| {
        DeliveryStop::refused(format!("no branch can be named after the loop and the base `{base}`"))
    })?;
    let forge = offered.forge(server, session)?;
    let forge = forge.as_ref();
    let wants_pull = options.way == DeliveryMode::Pr;
    let with_push = wants_pull && forge.takes_pulls_with_pushes();
    if wants_pull && !with_push && forge.pulls().is_none() {
        return Err(DeliveryStop::refused(format!(
            "{} has no pull requests: use `--to branch`",
            forge.name()
        )));
    }
    let (base_ref, branch_ref) = (format!("refs/heads/{base}"), names.branch_ref());
    let found = forge.refs(&[&base_ref, &branch_ref, &names.delivered])?;
    let Some(newest) = found.get(&base_ref) else {
        return Err(DeliveryStop::refused(format!(
            "{} has no branch `{base}` (any more): name the one that is meant with `--base`",
            forge.name()
        )));
    };
    let applied = offered.onto(newest, &base)?;
    check_changes(&applied.changes, options)?;
    let pulls = match forge.pulls().filter(|_| wants_pull) {
        Some(pulls) => pulls.of_branch(&names.branch, &base)?,
        None => Vec::new(),
    };
    let observed = Observed {
        base: forge.commit(newest)?,
        head: found.get(&branch_ref).map(|head| forge.commit(head)).transpose()?,
        delivered: found.get(&names.delivered).cloned(),
        pulls,
    };
    let offer = Offer { tree: applied.tree.clone(), patch: applied.patch.clone(), standing };
    let texts = Texts { offered, standing, applied: &applied };
    let wanted = |checks| texts.pull(&names, &base, checks);
    // Whoever only asks wants to know where it would go.
    let rehearsed = |done| {
        let branch = options.dry_run.then(|| format!("branch: {}, onto {base}", names.branch));
        Brought { notes: branch.into_iter().collect(), ..Brought::nothing(done) }
    };
    // A merge request that the push itself opens cannot be seen beforehand: it is planned as a branch is.
    match delivery_plan::plan(&names, &observed, &offer, wants_pull && !with_push) {
        DeliveryPlan::Unchanged { why, pull } => Ok(Brought {
            url: pull.map(|pull| pull.url),
            commit: observed.head.map(|head| head.id),
            ..rehearsed(Done::Unchanged { why })
        }),
        DeliveryPlan::Refused(refusal) => Err(DeliveryStop::Refused(vec![refusal])),
        DeliveryPlan::Pull(step) => {
            let checks = checks(forge, wants_pull)?;
            let done = if matches!(step, PullStep::Open) { Done::Created } else { Done::Updated };
            let wanted = wanted(checks);
            check_texts(&[("the text of the pull request", &wanted.body)], session)?;
            let url = if options.dry_run { None } else { tell(forge, &step, &wanted)? };
            let commit = observed.head.map(|head| head.id);
            Ok(Brought { url, commit, checks, ..rehearsed(done) })
        }
        DeliveryPlan::Write { moves, pull } => {
            let checks = checks(forge, wants_pull)?;
            let is_new = match &pull {
                PullStep::None => observed.head.is_none(),
                PullStep::Open => true,
                PullStep::Edit { .. } => false,
            };
            let done = if is_new { Done::Created } else { Done::Updated };
            let (wanted, message) = (wanted(checks), texts.message());
            let body = Some(("the text of the pull request", wanted.body.as_str())).filter(|_| wants_pull);
            let all: Vec<_> =
                [("the message of the commit", message.as_str())].into_iter().chain(body).collect();
            check_texts(&all, session)?;
            if options.dry_run {
                return Ok(Brought { checks, ..rehearsed(done) });
            }
            let commit = NewCommit {
                parent: newest,
                tree: &applied.tree,
                changes: &applied.changes,
                message: &message,
                require_signed: options.require_signed,
                pull: Some(&wanted).filter(|_| with_push || pull == PullStep::Open),
            };
            let written = forge.write(&commit, &moves, &names.temporary, &offered.workspace)?;
            let url = match tell(forge, &pull, &wanted) {
                // Without the pull request, nothing would say what the branch is, or that nothing verified it.
                Err(error) if error.kind == ForgeErrorKind::Declined => {
                    return Err(taken_back(error, forge.take_back(&written.id, &moves), &names));
                }
                // After any other error the branch stays, and the next delivery finishes what is missing.
                told => told?,
            };
            let (commit, signed) = (Some(written.id), Some(written.signed));
            Ok(Brought { url, commit, signed, checks, ..Brought::nothing(done) })
        }
    }
}

/// Asks what becomes of checks.
fn checks(forge: &dyn Forge, wants_pull: bool) -> Result<Checks, DeliveryStop> {
    if forge.starts_checks()? {
        return Ok(Checks::Run);
    }
    // A pull request has a button for it.
    let has_button = wants_pull && forge.waits_for_approval();
    Ok(if has_button { Checks::Approval } else { Checks::None })
}

/// Does what is to be done about the pull request; returns its page.
fn tell(forge: &dyn Forge, step: &PullStep, wanted: &NewPull) -> Result<Option<String>, ForgeError> {
    let Some(pulls) = forge.pulls() else { return Ok(None) };
    match step {
        PullStep::None => Ok(None),
        PullStep::Open => Ok(Some(pulls.open(wanted)?.url)),
        PullStep::Edit { pull, makes_ready } => {
            pulls.edit(pull, wanted, *makes_ready)?;
            Ok(Some(pull.url.clone()))
        }
    }
}

/// Says why there is no pull request, and what of the branch it would have been for stays.
fn taken_back(declined: ForgeError, taken: Result<(), ForgeError>, names: &StickyNames) -> DeliveryStop {
    let Err(error) = taken else { return declined.into() };
    let stays = format!("; its branch `{}` stays, because it cannot be taken back: {error}", names.branch);
    ForgeError { message: declined.message + &stays, ..declined }.into()
}
