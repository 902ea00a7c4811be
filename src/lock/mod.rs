//! `--lock git`: a lease on the scope of a run, as a ref of a repository that several machines share. Which step comes
//! next is decided in [`crate::lease`]; here the steps are made, and a person is told.

mod charge;
mod keeper;
mod remote;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) use charge::LeaseCharge;
use keeper::LeaseKeeper;
pub(crate) use remote::RefRemote;
use remote::{LeaseRemote, Swapped};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;
use crate::base::territory::Territory;
use crate::base::text::{listed_in_part, plural};
use crate::base::time::human;
use crate::ci::job_page;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::options::{LockOptions, RunOptions};
use crate::git::call::Call;
use crate::journal::claim::Claim;
use crate::lease::lease_record::{FoundLease, LeaseName, LeaseRecord, MAX_SCOPES};
use crate::lease::lease_scope::Scopes;
use crate::lease::race::{Act, Held, Race};
use crate::process::clock::steady;
use crate::process::guard_pipe::Guard;
use crate::process::life::host;
use crate::process::signal::{self, Cancel, EndRequest};
use crate::repository;
use crate::repository::workspace::Remote;

/// How long a call of git may take before the lease is held.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a look is tried: a ref may vanish while it is fetched.
const TRIES: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(250);

/// A lease that is held, renewed, and removed when it is dropped.
pub(crate) struct Lock {
    keeper: LeaseKeeper,
    /// The same remote for looks of the run itself.
    look: LeaseRemote,
    ttl: Duration,
}

impl LeaseCharge {
    /// Removes the lease of a run whose process is gone and whose actions have ended, from where it may be: nobody has to
    /// wait until its time is over. It is left alone where somebody else has it.
    pub(crate) fn give_back(&self, places: &[String], session: &Session<'_>) {
        let Ok(name) = LeaseName::parse(&self.name) else { return };
        let Ok(remote) = LeaseRemote::handed_on(self, session) else { return };
        // A renewal that was told may not have been made.
        for place in places.iter().rev().take(2) {
            let Ok(from) = ObjectId::parse(place) else { continue };
            if remote.swap(&name, Some(&from), None, PATIENCE) == Ok(Swapped::Done) {
                return;
            }
        }
    }
}

/// What is to be locked.
pub(crate) struct LockRequest<'w> {
    pub(crate) scopes: Scopes,
    /// The run.
    pub(crate) run: &'w str,
    /// The runs around it.
    pub(crate) ancestors: &'w [String],
    /// Runs of this checkout that were killed before they started anything: nobody gives their leases back.
    pub(crate) unstarted: &'w [String],
    pub(crate) queue: bool,
    /// Where the checkout is.
    pub(crate) checkout: &'w Path,
    /// The remote where none is named.
    pub(crate) otherwise: Option<Remote>,
}

/// A run that is to have a lease.
#[derive(Clone, Copy)]
pub(crate) struct LeasedRun<'r> {
    /// Its id.
    pub(crate) id: &'r str,
    /// The directory of the repository in which it is started.
    pub(crate) home: &'r Path,
    /// Runs of the same checkout that were killed before they started anything.
    pub(crate) unstarted: &'r [String],
}

/// Gets the lease of a run, if it is to have one.
pub(crate) async fn of_run(
    options: &RunOptions,
    run: LeasedRun<'_>,
    territory: &Territory,
    claim: &Claim,
    cancel: &mut Cancel,
    session: &Session<'_>,
) -> Result<Option<Lock>, Error> {
    let Some(lock) = &options.lock else { return Ok(None) };
    let wanted = LockRequest {
        scopes: scopes(territory, run.home, session)?,
        run: run.id,
        ancestors: claim.ancestors(),
        unstarted: run.unstarted,
        queue: options.queue,
        checkout: run.home,
        otherwise: None,
    };
    Lock::take(lock, wanted, cancel, session).await
}

/// Works out what a run claims as every machine sees it: relative to the top of the repository. `home` is a directory of
/// the repository, and the run works in its counterpart, which is the tree of its territory.
fn scopes(territory: &Territory, home: &Path, session: &Session<'_>) -> Result<Scopes, Error> {
    let prefix = repository::at(home, session).line(&Call::new("rev-parse").with(&["--show-prefix"]));
    let prefix = prefix.map_err(|why| {
        Error::refused(format!("`--lock git` needs a git repository: {why}"))
            .of_kind(Kind::Unavailable)
            .with_hint("run it in a checkout, or without `--lock`")
    })?;
    let above = prefix.split('/').filter(|part| !part.is_empty()).map(|_| "..").collect::<Vec<_>>().join("/");
    Ok(Scopes::of(territory, &territory.tree.join(&above)))
}

impl Lock {
    /// Gets a lease, or says who has it. Where nothing is to be locked, there is none.
    pub(crate) async fn take(
        options: &LockOptions,
        wanted: LockRequest<'_>,
        cancel: &mut Cancel,
        session: &Session<'_>,
    ) -> Result<Option<Self>, Error> {
        let Some(prepared) = Contender::prepare(options, wanted, session)? else { return Ok(None) };
        let (sender, mut notes) = unbounded_channel();
        let (done, mut ended) = oneshot::channel();
        let stop = Arc::clone(&prepared.stop);
        let calls = prepared.remote.stop();
        // In a thread, because calls of git block, and signals have to be heard meanwhile.
        let thread = std::thread::spawn(move || {
            let _nobody_waits = done.send(prepared.race(&sender));
        });
        let held = loop {
            tokio::select! {
                Some(note) = notes.recv() => session.talk.note(&note),
                ended = &mut ended => break ended,
                _ = cancel.differs_from(EndRequest::None), if !stop.load(Ordering::Relaxed) => {
                    stop.store(true, Ordering::Relaxed);
                    calls.store(true, Ordering::Relaxed);
                }
            }
        };
        let _joined = thread.join();
        while let Ok(note) = notes.try_recv() {
            session.talk.note(&note);
        }
        let interrupted = || {
            let kind =
                cancel.signal().map_or(Kind::Failed, |signal| Kind::Interrupted(crate::run::named(signal)));
            Error::refused("interrupted while waiting for the lock; nothing was run").of_kind(kind)
        };
        match held {
            Ok(Ok(held)) if !stop.load(Ordering::Relaxed) => Self::keep(held, session).map(Some),
            Ok(Ok(held)) => {
                held.give_back();
                Err(interrupted())
            }
            Ok(Err(Denied::Stopped)) | Err(_) => Err(interrupted()),
            Ok(Err(Denied::Error(error))) => Err(error),
        }
    }

    /// The same for work that no signal ends in order.
    pub(crate) fn take_now(
        options: &LockOptions,
        wanted: LockRequest<'_>,
        session: &Session<'_>,
    ) -> Result<Option<Self>, Error> {
        let Some(prepared) = Contender::prepare(options, wanted, session)? else { return Ok(None) };
        let (sender, mut notes) = unbounded_channel();
        let thread = std::thread::spawn(move || prepared.race(&sender));
        while let Some(note) = notes.blocking_recv() {
            session.talk.note(&note);
        }
        match thread.join() {
            Ok(Ok(held)) => Self::keep(held, session).map(Some),
            Ok(Err(Denied::Error(error))) => Err(error),
            Ok(Err(Denied::Stopped)) | Err(_) => {
                Err(Error::refused("could not acquire the lock").of_kind(Kind::Failed))
            }
        }
    }

    fn keep(held: HeldLease, session: &Session<'_>) -> Result<Self, Error> {
        let HeldLease { remote, record, held } = held;
        let (ttl, look) = (record.ttl(), remote.another());
        let shown = listed_in_part(record.scopes.paths().iter());
        session.talk.note(&format!("locked {shown} for all machines, by a lease on {}", remote.shown));
        let keeper = LeaseKeeper::start(remote, record, held.oid, held.good)
            .map_err(|error| Error::failed("cannot keep the lock", &error))?;
        Ok(Self { keeper, look, ttl })
    }

    /// Returns what asks the run to end when its lease is lost.
    pub(crate) fn fence(&self) -> Arc<dyn signal::Fence> {
        self.keeper.fence()
    }

    /// Returns what the guard of the run has to know.
    pub(crate) fn charge(&self) -> LeaseCharge {
        self.look.charge(&self.keeper.known().0)
    }

    /// Tells the guard of the run where the lease is, from now on.
    pub(crate) fn tell(&self, guard: Guard) {
        self.keeper.tell(guard);
    }

    /// Makes sure that the lease is still held: by the clock, and by a look at the server.
    pub(crate) fn check(&self) -> Result<(), Explanation> {
        if let Some(why) = self.keeper.lost() {
            return Err(why);
        }
        let mut seen = Err(Explanation::new("it was being renewed all the time"));
        // A renewal may come between the two looks.
        for _ in 0..TRIES {
            let (name, before) = self.keeper.known();
            let at = self.look.at(&name, self.ttl / 3)?;
            let after = self.keeper.known().1;
            if at.as_ref() == Some(&before) || at.as_ref() == Some(&after) {
                seen = Ok(());
                break;
            }
            if before == after {
                seen = Err(Explanation::new("another one has taken it over, or somebody removed it"));
            }
        }
        // Once more, because the looks took time in which the lease may have come to its end.
        match self.keeper.lost() {
            Some(why) => Err(why),
            None => seen,
        }
    }

    /// Removes the lease, and says what is to be said about its end.
    pub(crate) fn release(mut self) -> Vec<String> {
        let mut said = Vec::new();
        said.extend(self.keeper.lost().map(|why| format!("the lock across machines was lost: {why}")));
        said.extend(self.keeper.release().map(|why| {
            format!(
                "the lock across machines could not be removed, and is over in {}: {why}",
                human(self.ttl)
            )
        }));
        said
    }
}

/// Why there is no lease.
enum Denied {
    /// It is not wanted any more.
    Stopped,
    Error(Error),
}

/// Who tries to get a lease.
struct Contender {
    remote: LeaseRemote,
    record: LeaseRecord,
    queue: bool,
    ancestors: Vec<String>,
    unstarted: Vec<String>,
    holder: String,
    stop: Arc<AtomicBool>,
}

/// What was got.
struct HeldLease {
    remote: LeaseRemote,
    record: LeaseRecord,
    held: Held,
}

impl HeldLease {
    fn give_back(mut self) {
        self.remote.anew();
        let name = LeaseName::of(&self.record.scopes);
        let _best_effort = self.remote.swap(&name, Some(&self.held.oid), None, BETWEEN * 20);
    }
}

impl Contender {
    fn prepare(
        options: &LockOptions,
        wanted: LockRequest<'_>,
        session: &Session<'_>,
    ) -> Result<Option<Self>, Error> {
        let LockRequest { scopes, run, ancestors, unstarted, queue, checkout, otherwise } = wanted;
        if scopes.is_empty() {
            session.talk.note("nothing is locked for other machines: the loop claims no path");
            return Ok(None);
        }
        let checkout = repository::at(checkout, session);
        let remote = match (&options.remote, otherwise) {
            (None, Some(known)) => LeaseRemote::known(known, &checkout, session)?,
            (asked, _) => LeaseRemote::find(asked.as_deref(), &checkout, session)?,
        };
        let holder = job_page::of_job(&session.env.lookup()).unwrap_or_else(host);
        let record = LeaseRecord {
            run: run.to_owned(),
            holder: holder.clone(),
            scopes,
            n: 0,
            ttl_s: options.ttl.as_secs(),
        };
        record.to_text().map_err(|error| {
            Error::refused(format!("the scope cannot be locked across machines: {error}")).with_hint(format!(
                "give the loop at most {}, or a directory that holds them all",
                plural(MAX_SCOPES as u64, "path")
            ))
        })?;
        let (ancestors, unstarted) = (ancestors.to_vec(), unstarted.to_vec());
        Ok(Some(Self { remote, record, queue, ancestors, unstarted, holder, stop: Arc::default() }))
    }

    /// Makes the steps of a race until it is decided.
    fn race(mut self, notes: &UnboundedSender<String>) -> Result<HeldLease, Denied> {
        let scopes = self.record.scopes.clone();
        let mut race = Race::new(scopes, self.record.ttl(), self.queue);
        let raced = self.steps(&mut race, notes);
        // What was made is taken back, or others would wait until its time is over.
        if raced.is_err()
            && let Some(own) = race.own()
        {
            self.remote.anew();
            let name = LeaseName::of(&self.record.scopes);
            let _best_effort = self.remote.swap(&name, Some(own), None, BETWEEN * 20);
        }
        let held = raced?;
        Ok(HeldLease { remote: self.remote, record: self.record, held })
    }

    fn steps(&mut self, race: &mut Race, notes: &UnboundedSender<String>) -> Result<Held, Denied> {
        let name = LeaseName::of(&self.record.scopes);
        let began = steady();
        let mut said = None;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Denied::Stopped);
            }
            match race.act().clone() {
                Act::Look => {
                    let (found, start, end) = self.look_at_all()?;
                    let found = self.without_unstarted(found)?;
                    race.looked(found, start, end);
                    self.not_around(race.in_the_way())?;
                }
                Act::Remove(other, oid) => {
                    let _by_others = self.swap(&other, Some(&oid), None)?;
                    race.removed();
                }
                Act::Withdraw(oid) => {
                    let _by_others = self.swap(&name, Some(&oid), None)?;
                    race.removed();
                }
                Act::Make => {
                    // No two refs of this process are ever the same, or others would think that it did not change.
                    let mark = Uuid::new_v4().simple();
                    self.record = LeaseRecord {
                        holder: format!("{} {mark}", self.holder),
                        n: 0,
                        ..self.record.clone()
                    };
                    let (made, start) = self.push(&name, None)?;
                    race.made(made, start);
                }
                Act::Confirm(from) => {
                    self.record.n = 1;
                    let (moved, start) = self.push(&name, Some(&from))?;
                    race.confirmed(moved, start);
                }
                Act::Wait(wait) => {
                    let first = race.in_the_way().first();
                    let name = first.map(|found| found.name.clone());
                    if let Some(found) = first.filter(|_| self.queue && said != name) {
                        let _nobody_hears =
                            notes.send(format!("waiting: {}", found.sentence(&self.record.scopes)));
                        said = name;
                    }
                    self.sleep(wait);
                    race.waited();
                }
                Act::Hold(held) => {
                    if said.is_some() {
                        let waited = human(steady().saturating_sub(began));
                        let _nobody_hears = notes.send(format!("the scope is free after {waited}"));
                    }
                    return Ok(held);
                }
                Act::Refuse(others) => return Err(Denied::Error(self.refused(&others))),
            }
        }
    }

    /// Gives back the leases of runs that were killed here before they started anything.
    fn without_unstarted(&self, found: Vec<FoundLease>) -> Result<Vec<FoundLease>, Denied> {
        let is_of_one = |lease: &FoundLease| {
            lease.record.as_ref().is_some_and(|record| self.unstarted.contains(&record.run))
        };
        let (left, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_of_one);
        for lease in left {
            let _by_others = self.swap(&lease.name, Some(&lease.oid), None)?;
        }
        Ok(others)
    }

    fn look_at_all(&self) -> Result<(Vec<FoundLease>, Duration, Duration), Denied> {
        let mut tried = 1;
        loop {
            let start = steady();
            match self.remote.look(PATIENCE) {
                Ok(found) => return Ok((found, start, steady())),
                Err(_) if tried < TRIES => {
                    self.sleep(BETWEEN * tried);
                    tried += 1;
                }
                Err(why) => return Err(self.away(&why)),
            }
        }
    }

    /// Makes a commit of the record, and moves the own ref there.
    fn push(
        &self,
        name: &LeaseName,
        from: Option<&ObjectId>,
    ) -> Result<(Option<ObjectId>, Duration), Denied> {
        let oid = self.remote.commit(&self.record).map_err(|why| {
            Denied::Error(Error::refused(format!("cannot make the lease: {why}")).of_kind(Kind::Failed))
        })?;
        // From here, and not from the answer: others may see the ref as soon as the server has it.
        let start = steady();
        let swapped = self.swap(name, from, Some(&oid))?;
        Ok(((swapped == Swapped::Done).then_some(oid), start))
    }

    fn swap(
        &self,
        name: &LeaseName,
        from: Option<&ObjectId>,
        to: Option<&ObjectId>,
    ) -> Result<Swapped, Denied> {
        let mut tried = 1;
        loop {
            match self.remote.swap(name, from, to, PATIENCE) {
                Ok(swapped) => return Ok(swapped),
                Err(_) if tried < TRIES => {
                    self.sleep(BETWEEN * tried);
                    tried += 1;
                }
                Err(why) => return Err(self.away(&why)),
            }
        }
    }

    fn away(&self, why: &Explanation) -> Denied {
        if self.stop.load(Ordering::Relaxed) {
            return Denied::Stopped;
        }
        let message = format!("cannot lock the scope on {}: {why}", self.remote.shown);
        Denied::Error(Error::refused(message).of_kind(Kind::Unavailable).with_hint(
            "git has to get there and be allowed to push; a job of GitHub Actions needs `permissions: { contents: write }`",
        ))
    }

    /// Refuses to wait for the run from whose action this one was started.
    fn not_around(&self, others: &[FoundLease]) -> Result<(), Denied> {
        let is_around = |found: &&FoundLease| {
            found.record.as_ref().is_some_and(|record| self.ancestors.contains(&record.run))
        };
        let Some(found) = others.iter().find(is_around) else { return Ok(()) };
        let message = format!("{}, and this run was started from it", found.sentence(&self.record.scopes));
        Err(Denied::Error(
            Error::refused(message)
                .of_kind(Kind::Locked)
                .with_hint("leave out `--lock` of the inner run: the lock of the outer one holds for both"),
        ))
    }

    fn refused(&self, others: &[FoundLease]) -> Error {
        let sentence = others.first().map_or_else(String::new, |found| found.sentence(&self.record.scopes));
        let ttl = others
            .first()
            .and_then(|found| found.record.as_ref())
            .map_or(self.record.ttl(), LeaseRecord::ttl);
        Error::refused(sentence).of_kind(Kind::Locked).with_hint(format!(
            "wait for it with `--queue`, which also takes over from a run that was killed, {} after its last sign of life",
            human(ttl)
        ))
    }

    /// Sleeps until the lease is not wanted any more, at most.
    fn sleep(&self, time: Duration) {
        const STEP: Duration = Duration::from_millis(20);
        // Not all at the same moments.
        let jitter = u32::from(Uuid::new_v4().as_bytes()[0]);
        let time = time * (256 + jitter / 4) / 256;
        let until = steady() + time;
        while steady() < until && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(STEP.min(time));
        }
    }
}
