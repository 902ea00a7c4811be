//! Delivers what a run has fixed, from a job that runs nothing of the loop: `docs/deliver.md`.
//!
//! A bundle is untrusted input: claims of a stranger. [`offer`] takes out of it the fix, if it may be delivered;
//! [`sticky`], [`commit`] and [`suggest`] bring it to a server, which [`servers`] knows. Nothing of a checkout is
//! changed, and nothing of it is obeyed.
//!
//! [`policy`] says whether a fix may leave at all, [`plan`] compares what stands on the server with what would be
//! written, and [`body`] is what people read. These know no server and no git.

pub mod body;
pub(crate) mod bundle_source;
pub mod caveats;
mod commit;
pub(crate) mod delivered;
pub mod delivery_plan;
pub mod leaks;
mod locked;
mod offer;
pub mod policy;
mod push_service;
pub(crate) mod pushed;
pub mod relayed_report;
mod secrecy;
pub(crate) mod servers;
mod sticky;
mod suggest;
mod texts;
mod waiting_status;
pub(crate) mod way;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use bundle_source::Source;
use caveats::Caveats;
pub use delivered::{Delivery, Done};
use offer::Offered;
use servers::DeliveryServer;
use way::Brought;
pub use way::DeliverOptions;

use crate::ci::Provider;
use crate::context::error::{Error, Kind};
use crate::context::{Session, binding};
use crate::engine::question::AnswerWay;
use crate::forge::standing::FixStanding;
use crate::lock::Lock;
use crate::policy::{DeliveryMode, Policy};
use crate::repository::delivery_stop::DeliveryStop;

/// How often a delivery is begun anew because another one was faster.
// Each time another one has won, which mostly leaves nothing to do, so that more tries would seldom be used.
const TRIES: usize = 3;

impl Session<'_> {
    /// Delivers what a run has fixed, and tells the CI system the result.
    ///
    /// # Errors
    /// There is no such bundle, the token may not, the server does not answer, or others were faster each time.
    pub fn deliver(&self, options: &DeliverOptions) -> Result<Delivery, Error> {
        check(options)?;
        let policy = binding::acting(self)?;
        let provider = Provider::detect(&self.env.lookup());
        let source = bundle_source::open(&options.what, options.way == DeliveryMode::Suggest, self);
        let source = source.inspect_err(|error| {
            self.told(provider.summarize(&delivered::failure(None, error)), &provider);
        })?;
        self.talk.note(&format!("delivering {}: sha256:{}", source.shown, source.bundle.sum));
        let loop_name = source.bundle.manifest.r#loop.to_string();
        bound(policy, &source, options).inspect_err(|error| {
            self.told(provider.summarize(&delivered::failure(Some(&loop_name), error)), &provider);
        })?;
        let (delivered, patch) = match self.bring(&source, options) {
            Ok(delivery) => (Ok(delivery), None),
            Err(Undelivered { error, patch }) => (Err(error), patch),
        };
        let told = match &delivered {
            Ok(delivery) => provider
                .announce(&delivery.outputs())
                .and_then(|()| provider.summarize(&delivery.summary(&loop_name))),
            Err(error) => provider
                .announce(&delivered::outputs_of_failure(patch.as_deref(), source.bundle.sum))
                .and_then(|()| provider.summarize(&delivered::failure(Some(&loop_name), error))),
        };
        self.told(told, &provider);
        if let Some(patch) = &patch {
            self.talk.note(&format!("the patch is kept: {}", patch.display()));
        }
        // After a rehearsal, the status still waits for the delivery itself.
        if !options.dry_run {
            self.end_waiting(source.bundle.manifest.instance.as_str(), &waiting_status::text(&delivered));
        }
        delivered
    }

    /// Warns where the CI system could not be told the result of a delivery.
    fn told(&self, told: io::Result<()>, provider: &Provider) {
        if let Err(error) = told {
            self.talk.warning(&format!("cannot tell {} what was delivered: {error}", provider.name()));
        }
    }

    fn bring(&self, source: &Source, options: &DeliverOptions) -> Result<Delivery, Undelivered> {
        let server = match servers::find(options, self) {
            Ok(server) => server,
            Err(error) => return Err(self.undelivered(source, options, error)),
        };
        let mut offered = Offered::new(&source.bundle, &server, options, self);
        let brought = match &mut offered {
            Ok(offered) => offered.check(options).and_then(|standing| {
                let run = offered.bundle.manifest.instance.as_str();
                // Locked behind the checks: a fix that stays here holds nobody up.
                offered.lock = locked::lock(&offered.changes, run, &server, options, self)?;
                let brought = self.by_its_way(offered, standing, &server, options);
                for warning in offered.lock.take().map(Lock::release).into_iter().flatten() {
                    self.talk.warning(&warning);
                }
                brought
            }),
            Err(stop) => Err(stop.clone()),
        };
        let is_delivered = brought.as_ref().is_ok_and(|brought| brought.done.is_delivered());
        // What was not handed over is kept, also where something failed.
        let kept = offered.ok().filter(|_| !is_delivered || options.way == DeliveryMode::Patch);
        let patch = kept.map(|offered| offered.keep_patch(options, self)).transpose()?.flatten();
        let kept_after = |error| Undelivered { error, patch: patch.clone() };
        let brought = match brought {
            Ok(brought) => brought,
            Err(DeliveryStop::Unchanged(why)) => Brought::nothing(Done::Unchanged { why }),
            Err(DeliveryStop::Refused(why)) => Brought::nothing(Done::Refused { why }),
            Err(DeliveryStop::Failed(error)) => return Err(kept_after(error)),
            Err(DeliveryStop::Raced(why)) => {
                let error = Error::refused(format!("others were faster {TRIES} times: {why}"));
                return Err(kept_after(
                    error.of_kind(Kind::Locked).with_hint("deliver it again when they are done"),
                ));
            }
        };
        let Brought { done, url, commit, signed, checks, mut notes } = brought;
        if done.is_delivered() {
            notes.extend(Caveats::of(&source.bundle.digest).lines());
        }
        let (is_rehearsal, bundle) = (options.dry_run, source.bundle.sum);
        Ok(Delivery { done, is_rehearsal, url, commit, signed, checks, patch, bundle, notes })
    }

    /// Keeps the patch where no server can be reached at all, as far as everything that it needs is at hand.
    fn undelivered(&self, source: &Source, options: &DeliverOptions, error: Error) -> Undelivered {
        let server = DeliveryServer::nowhere();
        let offered = Offered::new(&source.bundle, &server, options, self);
        let patch = offered.ok().and_then(|offered| offered.keep_patch(options, self).ok()).flatten();
        Undelivered { error, patch }
    }

    fn by_its_way(
        &self,
        offered: &Offered<'_>,
        standing: FixStanding,
        server: &DeliveryServer,
        options: &DeliverOptions,
    ) -> Result<Brought, DeliveryStop> {
        match options.way {
            // It is kept at the end.
            DeliveryMode::Patch => Ok(Brought::nothing(Done::Created)),
            DeliveryMode::Pr | DeliveryMode::Branch => {
                again(|| sticky::deliver(offered, standing, server, options, self))
            }
            DeliveryMode::Commit => again(|| commit::deliver(offered, standing, server, options, self)),
            // A review moves no ref, so that no other delivery can be faster.
            DeliveryMode::Suggest => suggest::deliver(offered, standing, server, options, self),
        }
    }
}

/// A delivery that failed.
struct Undelivered {
    error: Error,
    /// The patch, where it was kept.
    patch: Option<PathBuf>,
}

impl From<Error> for Undelivered {
    fn from(error: Error) -> Self {
        Self { error, patch: None }
    }
}

/// Begins anew while others are faster.
fn again(deliver: impl Fn() -> Result<Brought, DeliveryStop>) -> Result<Brought, DeliveryStop> {
    let mut tried = 1;
    loop {
        match deliver() {
            Err(DeliveryStop::Raced(_)) if tried < TRIES => tried += 1,
            ended => return ended,
        }
    }
}

/// Refuses what the policy here, or the one that bound the run, does not allow.
fn bound(mut policy: Policy, source: &Source, options: &DeliverOptions) -> Result<(), Error> {
    let digest = &source.bundle.digest;
    // What a stranger wrote there can only forbid more.
    if let Some(start) = digest.start() {
        binding::add_records(&mut policy, &start.policy)?;
    }
    // What is delivered is the tree on which the run ended: what somebody approved before that counts for nothing.
    let tree = digest.verification().and_then(|verification| verification.tree.as_ref());
    let given = tree.into_iter().flat_map(|tree| digest.guarded().approvals_of(tree));
    // An answer on the command line is by somebody who was not checked.
    let given = given.filter(|given| given.by == AnswerWay::Comment);
    // By their ids: a person who approved twice counts once, under whatever name.
    let people: BTreeSet<u64> = given.filter_map(|given| given.id).collect();
    let count = u32::try_from(people.len()).unwrap_or(u32::MAX);
    let asked = policy.deliver(options.way).and_then(|()| policy.approvals(count));
    asked.map_err(|refusal| binding::refused(&refusal))
}

/// Refuses options that contradict each other.
fn check(options: &DeliverOptions) -> Result<(), Error> {
    let refused = |message: &str, hint: &str| Err(Error::refused(message).with_hint(hint));
    if options.remote.is_some() && options.way != DeliveryMode::Branch {
        return refused("`--remote` is for a branch alone", "add `--to branch`");
    }
    if options.accept_no_checks && options.way != DeliveryMode::Commit {
        return refused("`--accept-no-checks` is for a commit alone", "add `--to commit`, or leave it out");
    }
    Ok(())
}
