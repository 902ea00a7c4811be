//! Decides whether an earlier run stands for one that is about to begin, and what is to be kept of one that is made.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use super::left_behind;
use super::reuse_key::{FoundKey, KeyQuestion, KeyedFiles, no_key};
use super::reuse_origin::{self, OriginQuestion};
use crate::base::name::LoopName;
use crate::base::text::one_line;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::{ReuseStoreAt, ReuseUse};
use crate::definition::load::DIRECTORY;
use crate::engine::check_history::CheckHistory;
use crate::engine::reused::ReusedRun;
use crate::machine::{Action, Machine, Step};
use crate::process::clock::Clock;
use crate::process::signal::Cancel;
use crate::repository;
use crate::reuse::key::{KeyParts, of_texts};
use crate::reuse::no_key::NoKey;
use crate::reuse::origin::{OriginEvent, RunOrigin};
use crate::reuse::record::{ReuseRecord, WantedRecord};
use crate::reuse::store::{FoundRecord, ReuseStore, StoreError, TrackedRecords};
use crate::reuse::verdict_table::{CheckKey, histories};
use crate::reuse::verifying::is_due;
use crate::reuse_refs::ReuseRefs;

/// What is known of the reuse of a run when it begins.
#[derive(Default)]
pub(crate) enum ReuseDecision {
    /// The loop says nothing of it, or the run has no key.
    #[default]
    None,
    /// An earlier run stands for it.
    Hit(Box<ReusedRun>),
    /// It is made, and its result kept where it is a success.
    Make(Box<PendingReuse>),
}

/// A run whose result may be kept.
pub(crate) struct PendingReuse {
    /// How its key is made again.
    pub(crate) question: KeyQuestion,
    /// What its key was made of when it began.
    pub(crate) before: KeyParts,
    /// What is hidden from its actions, each by its whole path.
    pub(crate) hidden: Vec<String>,
    /// Where it is made.
    pub(crate) origin: RunOrigin,
    /// Where results are kept.
    pub(crate) store: ReuseStore,
    /// The record that it proves right or wrong, where it could have been reused.
    pub(crate) verifies: Option<Box<ReuseRecord>>,
    /// Its checks, by what they find.
    pub(crate) checks: Vec<CheckKey>,
    /// What they said in earlier runs.
    pub(crate) histories: Vec<CheckHistory>,
    /// Why nothing of it is kept, if so.
    pub(crate) unkept: Option<String>,
    /// The refs in which its result is kept, too.
    pub(crate) refs: Option<ReuseRefs>,
}

/// A run that is about to begin.
pub(crate) struct ReusableRun<'r> {
    /// Its id.
    pub(crate) id: &'r str,
    /// Its machine.
    pub(crate) machine: &'r Machine,
    /// Whether it is in CI.
    pub(crate) in_ci: bool,
    /// Whether an earlier run may stand for it.
    pub(crate) wanted: ReuseUse,
    /// Where results are kept.
    pub(crate) store_at: &'r ReuseStoreAt,
}

impl Session<'_> {
    /// Returns where the results of runs of this directory are kept.
    pub(crate) fn reuse_store(&self) -> ReuseStore {
        let has_loops = |root: &&Path| root.join(DIRECTORY).is_dir();
        let root = self.cwd.ancestors().find(has_loops).unwrap_or(&self.cwd);
        ReuseStore::new(&root.join(DIRECTORY), &repository::at(root, self))
    }
}

/// What an earlier run is looked for by, while it is being found out. Each question walks through the working tree, and none
/// of them needs another's answer.
pub(crate) struct BegunQuestion {
    files: JoinHandle<(KeyQuestion, Result<KeyedFiles, NoKey>)>,
    committed: JoinHandle<Result<BTreeSet<PathBuf>, StoreError>>,
    origin: OriginQuestion,
}

impl KeyQuestion {
    /// Begins to read what the key of the run is made of, while something else is done.
    pub(crate) fn begin(self, in_ci: bool, session: &Session<'_>) -> BegunQuestion {
        let origin = OriginQuestion::ask(in_ci, self.git(), self.root(), session);
        let store = self.store();
        let committed = std::thread::spawn(move || store.committed());
        let files = std::thread::spawn(move || {
            let files = self.read();
            (self, files)
        });
        BegunQuestion { files, committed, origin }
    }

    /// Looks for an earlier run that stands for this one.
    ///
    /// # Errors
    /// There is none, and without one nothing is to be run.
    pub(crate) async fn decide(
        self,
        run: &ReusableRun<'_>,
        cancel: &Cancel,
        session: &Session<'_>,
    ) -> Result<ReuseDecision, Error> {
        self.begin(run.in_ci, session).decide(run, cancel, session).await
    }
}

impl BegunQuestion {
    /// Looks for an earlier run that stands for this one.
    ///
    /// # Errors
    /// There is none, and without one nothing is to be run.
    pub(crate) async fn decide(
        self,
        run: &ReusableRun<'_>,
        cancel: &Cancel,
        session: &Session<'_>,
    ) -> Result<ReuseDecision, Error> {
        let Self { files, committed, origin } = self;
        let (question, mut files) = files.join().expect("reading files does not panic");
        let in_index = files.as_mut().map(KeyedFiles::take_tracked).unwrap_or_default();
        let found = match files {
            Ok(files) => question.complete(files, cancel).await,
            Err(why) => Err(why),
        };
        let committed = committed.join().expect("calling git does not panic");
        let found = match found {
            Ok(found) => found,
            Err(why) => {
                let why = no_key(&why).to_string();
                return keyless(run, &why, session);
            }
        };
        let Some(origin) = origin.answer() else {
            let why = "nothing is reused or kept: a shallow clone does not know which repository it is of";
            return keyless(run, why, session);
        };
        let mut verifies = None;
        let (store, refs) = (question.store(), question.refs(run, session));
        let tracked = committed.and_then(|committed| store.all_tracked(in_index, committed));
        let stores = RunStores { store, refs, tracked };
        // It is made anew whatever is known, and its own result may still stand for later runs.
        if run.wanted == ReuseUse::Never {
            if let Err(why) = &stores.tracked {
                session.talk.warning(&unreachable(why));
            }
            return Ok(question.made(run, found, origin, stores, None, session));
        }
        let wanted = WantedRecord {
            key: found.parts.key(),
            origin: &origin,
            machine: run.machine,
            now: Clock::start().now(),
            max_age: question.rules().max_age,
        };
        match stores.find(&wanted, &found.parts, session) {
            Ok(FoundRecord::Hit(record)) => {
                let is_scheduled = origin.event == OriginEvent::Schedule;
                let every = question.rules().verify_every.get();
                let is_planned = run.wanted == ReuseUse::Proved;
                // No person waits for a scheduled run, so it always proves that inputs are declared and checks are steady.
                let is_verifying = is_planned || is_scheduled || is_due(wanted.key, run.id, every);
                // With `--reuse-only` nothing is run, so nothing can be proved either.
                if !is_verifying || run.wanted == ReuseUse::Only {
                    return Ok(ReuseDecision::Hit(Box::new(stands(*record, &found))));
                }
                let why = match (is_planned, is_scheduled) {
                    (true, _) => "the plan wants it",
                    (false, true) => "scheduled runs always are",
                    (false, false) => "one in so many is",
                };
                session.talk.note(&format!(
                    "run {} has verified the same; this one is made to prove it, as {why}",
                    one_line(&record.run.run, 120)
                ));
                verifies = Some(record);
            }
            Ok(FoundRecord::Miss { refused, nearest }) => {
                for why in &refused {
                    session.talk.warning(&format!("a record of the same key is not taken: {why}"));
                }
                let why = nearest.map(|nearest| format!("not reused: {}", nearest.sentence()));
                let why = why.unwrap_or_else(|| "not reused: no earlier run is known".to_owned());
                without(run, &why, || session.talk.note(&why))?;
            }
            Err(why) => without(run, &why, || session.talk.warning(&why))?,
        }
        Ok(question.made(run, found, origin, stores, verifies, session))
    }
}

impl KeyQuestion {
    /// Returns the refs in which results are kept, where somebody wants that.
    fn refs(&self, run: &ReusableRun<'_>, session: &Session<'_>) -> Option<ReuseRefs> {
        let ReuseStoreAt::Refs { remote } = run.store_at else { return None };
        match ReuseRefs::find(remote.as_deref(), self.git(), session) {
            Ok(refs) => Some(refs),
            Err(why) => {
                session.talk.warning(&format!("the results of other jobs cannot be used: {why}"));
                None
            }
        }
    }

    fn made(
        self,
        run: &ReusableRun<'_>,
        found: FoundKey,
        origin: RunOrigin,
        stores: RunStores,
        verifies: Option<Box<ReuseRecord>>,
        session: &Session<'_>,
    ) -> ReuseDecision {
        let FoundKey { parts: before, hidden, .. } = found;
        let unkept = reuse_origin::strangers(session).filter(|_| origin.event != OriginEvent::Local);
        let checks = check_keys(run.machine, &before);
        let histories = stores.known(run.machine, &origin, &checks, session);
        let RunStores { store, refs, tracked: _ } = stores;
        ReuseDecision::Make(Box::new(PendingReuse {
            question: self,
            checks,
            histories,
            before,
            hidden,
            origin,
            store,
            verifies,
            unkept,
            refs,
        }))
    }
}

/// Where the results of a run are looked for and kept.
struct RunStores {
    store: ReuseStore,
    refs: Option<ReuseRefs>,
    /// What git tracks of the folder.
    tracked: Result<TrackedRecords, StoreError>,
}

impl RunStores {
    /// Looks for a record, in the folder first. Refs that cannot be reached are a miss, and said.
    fn find(
        &self,
        wanted: &WantedRecord<'_>,
        parts: &KeyParts,
        session: &Session<'_>,
    ) -> Result<FoundRecord, String> {
        let tracked = self.tracked.as_ref().map_err(unreachable)?;
        left_behind::remove_planted(&self.store, None, session).map_err(|why| unreachable(&why))?;
        let found = self.store.find(wanted, parts, tracked).map_err(|why| unreachable(&why))?;
        let Some(refs) = self.refs.as_ref().filter(|_| matches!(found, FoundRecord::Miss { .. })) else {
            return Ok(found);
        };
        match refs.fetch(&wanted.machine.name, &parts.sums(), &self.store) {
            Ok(0) => Ok(found),
            // What was fetched is untrusted too, and passes the same checks as the records of the folder.
            Ok(_) => self.store.find(wanted, parts, tracked).map_err(|why| unreachable(&why)),
            Err(why) => {
                session.talk.warning(&format!("the results of other jobs cannot be used: {why}"));
                Ok(found)
            }
        }
    }

    /// Returns what earlier runs know of checks.
    fn known(
        &self,
        machine: &Machine,
        origin: &RunOrigin,
        checks: &[CheckKey],
        session: &Session<'_>,
    ) -> Vec<CheckHistory> {
        // That git does not say what it tracks was said when a record was looked for.
        let Ok(tracked) = &self.tracked else { return histories(checks, &[]) };
        match self.store.verdicts(&machine.name, origin, tracked, Clock::start().now()) {
            Ok((tables, refused)) => {
                for why in refused {
                    session.talk.warning(&format!("verdicts of earlier runs are not taken: {why}"));
                }
                histories(checks, &tables)
            }
            Err(why) => {
                session.talk.warning(&unreachable(&why));
                histories(checks, &[])
            }
        }
    }
}

/// Returns the keys of the checks of a loop.
fn check_keys(machine: &Machine, parts: &KeyParts) -> Vec<CheckKey> {
    let sums = parts.sums();
    let checks = machine.steps().map(|(_, step)| step).filter(|step| step.is_check);
    let key = |step: &Step| {
        let Some(Action::Shell(shell)) = &step.action else { return None };
        // Whatever of it is filled in stands in the values of the run.
        let (setting, judged) =
            // The text of `Debug` is no format, but it only has to differ where the settings do: a miss costs one look.
            (format!("{:?} {:?}", shell.shell, shell.setting), format!("{:?}", step.evaluate));
        let command = of_texts([shell.text.source(), setting.as_str(), judged.as_str()]);
        Some(CheckKey::of(&step.name, command, &sums))
    };
    checks.filter_map(key).collect()
}

/// Goes on without an earlier run, where no key can be made of the tree of the run.
///
/// # Errors
/// Without one, nothing is to be run.
pub(crate) fn unfit(run: &ReusableRun<'_>, why: &str, session: &Session<'_>) -> Result<ReuseDecision, Error> {
    let why = format!("nothing is reused or kept, because the run has no key: {}", one_line(why, 200));
    keyless(run, &why, session)
}

/// Goes on without a key, and so without hiding anything from actions.
fn keyless(run: &ReusableRun<'_>, why: &str, session: &Session<'_>) -> Result<ReuseDecision, Error> {
    without(run, why, || session.talk.warning(why))?;
    if run.machine.reuse.as_ref().is_some_and(|reuse| reuse.hermetic) {
        session.talk.warning("this run is not hermetic: its actions see what is not declared");
    }
    Ok(ReuseDecision::None)
}

/// Goes on without an earlier run, and says why; or refuses to, where nothing is to be run without one.
fn without(run: &ReusableRun<'_>, why: &str, say: impl FnOnce()) -> Result<(), Error> {
    if run.wanted == ReuseUse::Only {
        return Err(Error::refused(format!("nothing was run: {why}"))
            .with_hint("leave out `--reuse-only` to run the loop"));
    }
    say();
    Ok(())
}

/// Says that the store could not be read, which is a miss.
pub(crate) fn unreachable(why: &StoreError) -> String {
    format!("the results of earlier runs cannot be used: {why}")
}

/// Returns what a record says, for a run that finds the same.
fn stands(record: ReuseRecord, found: &FoundKey) -> ReusedRun {
    ReusedRun { has_uncommitted: found.has_uncommitted, ..record.run }
}

/// Refuses to go on without an earlier run where the loop says nothing of reuse.
pub(crate) fn unsaid(name: &LoopName) -> Error {
    Error::refused(format!("`{name}` says nothing about `reuse`, so that no run stands for another one"))
        .with_hint("`reuse: {inputs: […]}` names the files that its checks read")
}
