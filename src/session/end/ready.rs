//! Drives a run that is ready to start, and does what follows its end: archive, report, hand off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bundler::Bundler;
use super::finish;
use super::kept_reuse::{self, EndedReuse};
use super::next_run::{UNSTORED, dispatch, spawn_session, subject};
use super::notify::NoticeSender;
use super::publication::{self, Publication, ReportedEnd, Stage, export, publisher};
use super::run_guard::Watchman;
use super::whereabouts::reader;
use crate::base::advised_command;
use crate::base::name::LoopName;
use crate::base::territory::Territory;
use crate::ci::job_page;
use crate::context::audience::Audience;
use crate::context::error::Error;
use crate::context::interrupts::Interrupts;
use crate::context::options::RunOptions;
use crate::context::talk::Watched;
use crate::context::{Session, binding, key_of_run};
use crate::engine::event::{Handoff, LoopComplete, LoopResume};
use crate::engine::outcome::{Asker, Outcome};
use crate::engine::past::Past;
use crate::engine::question::GivenAnswer;
use crate::engine::{Engine, Start};
use crate::host::Host;
use crate::journal::claim::Claim;
use crate::journal::files::RunFiles;
use crate::journal::writer::Journal;
use crate::lock::Lock;
use crate::machine::{Machine, NotifyRule};
use crate::process::clock::Clock;
use crate::process::signal::Cancel;
use crate::report::digest::ReportPaths;
use crate::report::log_file::LogFile;
use crate::report::reading_place::Reader;
use crate::report::{Sinks, advice};
use crate::repository;
use crate::repository::branch::Branches;
use crate::repository::worktree::Worktree;
use crate::reuse::planted::RecordsBefore;
use crate::run::area::Area;
use crate::run::beside_checks::BesideChecks;
use crate::run::checkpoint::Checkpoints;
use crate::run::leftovers::Leftovers;
use crate::run::projection::Projection;
use crate::run::replay::Left;
use crate::run::sandbox_setup::SandboxSetup;
use crate::run::tree_snapshots::TreeSnapshots;
use crate::run::{self, AgentSetup, Lost, Rules, RunMoments, SubLoop, Surprises, World, conduct};
use crate::session::prepare::claim::{passed_on, surroundings};
use crate::session::prepare::confinement::SandboxDecision;
use crate::session::prepare::left_behind;
use crate::session::prepare::prepared::Prepared;
use crate::session::prepare::reuse_decision::{PendingReuse, unreachable};
use crate::session::read::run_snapshots;
use crate::spending::day_reservation::DayReservation;
use crate::telemetry::live_export::{self, ExportedRun};

/// A run that can start: it has its scope, its files and its journal.
pub struct Ready<'s> {
    pub(crate) interrupts: Interrupts,
    pub(crate) launch: Launch<'s>,
}

/// Everything that a run needs to be driven to its end.
pub(crate) struct Launch<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) options: RunOptions,
    pub(crate) prepared: Prepared,
    pub(crate) position: StartPosition,
    pub(crate) files: RunFiles,
    pub(crate) journal: Journal,
    pub(crate) sinks: Sinks,
    pub(crate) clock: Clock,
    pub(crate) agents: AgentSetup,
    /// What confines actions where the loop says nothing.
    pub(crate) sandbox: SandboxDecision,
    pub(crate) territory: Territory,
    pub(crate) area: Area,
    pub(crate) claim: Claim,
    /// The lock across machines, if there is one.
    pub(crate) lock: Option<Lock>,
    pub(crate) worktree: Option<Worktree>,
    /// Whether the working tree is kept as it is before each step.
    pub(crate) snapshots: bool,
    /// What is kept of it for later runs.
    pub(crate) reuse: Option<Box<PendingReuse>>,
    /// What it may take of the day.
    pub(crate) reserved: Option<DayReservation>,
}

/// Where a run starts.
pub(crate) enum StartPosition {
    /// At its initial state.
    Start(Box<Start>),
    /// Where an earlier process stopped.
    Left(Box<Resumed>),
}

/// A run that goes on where an earlier process stopped.
pub(crate) struct Resumed {
    pub(crate) start: Start,
    pub(crate) past: Past,
    pub(crate) how: Box<LoopResume>,
    /// The answers to the question that it waited with.
    pub(crate) answers: Vec<GivenAnswer>,
    /// What has ended the question before it was answered.
    pub(crate) cancelled_by: Option<Asker>,
    /// The time since its last event, in which nothing ran.
    pub(crate) rested: Duration,
    /// The time that it took before that.
    pub(crate) elapsed: Duration,
    /// The sub-loops that it was in.
    pub(crate) left: Left,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct EndedRun {
    /// The id of the run.
    pub instance: String,
    /// Its last event, from which all reports are made.
    pub complete: LoopComplete,
    /// Whether its files were to be stored for other jobs, and are not.
    pub is_unstored: bool,
}

impl EndedRun {
    /// Returns the exit code for its outcome. A hand-off that cannot be taken is an error.
    pub fn exit_code(&self) -> u8 {
        let is_lost = self.complete.outcome == Outcome::Handoff && self.is_unstored;
        if is_lost { UNSTORED } else { self.complete.exit_code }
    }
}

impl Ready<'_> {
    /// Returns the id of the run.
    pub fn instance(&self) -> &str {
        self.launch.files.instance()
    }

    /// Drives the run to its end and reports it.
    ///
    /// # Errors
    /// The journal could not be written to its end. What was written is reported, and can be resumed.
    pub fn run(self) -> Result<EndedRun, Error> {
        let Self { interrupts, launch } = self;
        interrupts.block_on(Box::pin(launch.drive(interrupts.cancel())))
    }
}

impl Launch<'_> {
    async fn drive(self, cancel: Cancel) -> Result<EndedRun, Error> {
        let Self { session, options, prepared, position, .. } = self;
        // Kept to the end of this function: runs that actions start find in it what binds them.
        let _kept = binding::keep_record(&prepared.policy, session);
        let Self {
            files,
            journal,
            sinks,
            clock,
            agents,
            sandbox,
            territory,
            area,
            claim,
            lock,
            worktree,
            snapshots,
            reuse,
            reserved,
            ..
        } = self;
        let name = prepared.machine.name.clone();
        // Rather than when it has ended.
        if let Some(fault) = live_export::settings_fault(&session.env.lookup()) {
            session.talk.warning(&format!("the run is not exported: {fault}"));
        }
        let mut publication = publisher(&options).map(|provider| {
            let bundler = Bundler::new(&prepared, &territory, session).working_on(options.assignment.clone());
            let root = prepared.located.root.as_path();
            Publication::new(&options, provider, root, &name, &files, Some(bundler), session)
        });
        if let Some(publication) = &mut publication {
            publication.announce(session);
            publication.begin(&options, name.as_str(), Stage::Beginning, session);
        } else if options.is_report_asked() {
            session.talk.warning("the run will not be reported at its commit: that needs `--ci` and GitHub");
        }
        let asks_agents = agents.host.is_some();
        // Before the first action: from then on, a killed process could leave agents behind, or a status that stays pending.
        let watchman = Watchman::start(
            &options,
            prepared.machine.notify.as_ref(),
            asks_agents,
            lock.as_ref(),
            name.as_str(),
            &files,
            session,
        );
        let Prepared { located, machine, mut library, .. } = prepared;
        let (reader, shown) = (reader(&located.root, &files, &options, session), located.shown);
        let branches = Branches::new(&located.root, &files, session);
        let (notify, root, mut told) = (machine.notify.clone(), located.root.clone(), cancel.clone());
        let (mut engine, before, left) = position.engine(&machine);
        let mut world = World {
            checkpoints: checkpoints(&options, publication.as_ref(), session),
            journal,
            sinks,
            // The time of the lease is looked at with every look at the signals: a process that was
            // stopped for an hour learns of it before it does anything.
            cancel: cancel.fenced(lock.as_ref().map(Lock::fence)),
            guard: left_behind::recorded(watchman.as_ref().map(Watchman::pipe).unwrap_or_default(), &files),
            agents,
            clock,
            before,
            left,
            env: passed_on(env_of_actions(&options, worktree.is_some(), session), &claim),
            own_env: own_env(worktree.is_some(), session),
            starts_in: run::directory_of_actions(&located.root),
            root: located.root,
            redactor: session.redactor.clone(),
            area,
            surroundings: surroundings(&territory),
            remarks: sandbox.open,
            followed: None,
            moments: RunMoments::default(),
            written: None,
            surprises: Surprises::default(),
            sandbox: SandboxSetup::new(
                sandbox.default,
                sandbox.engines,
                left_behind::masks(&files),
                &|name| session.env.get(name).map(str::to_owned),
            ),
            leftovers: Leftovers::new(),
            beside_checks: BesideChecks::default(),
            rules: Rules::default(),
            artifact: None,
            state_failure: None,
            files: files.clone(),
            path: vec![name.clone()],
            around: Vec::new(),
            snapshots: snapshots.then(|| TreeSnapshots::of(files.instance())),
            helper: session.helper.clone(),
            sub_loops: Box::new(move |request, around| {
                let sub = library.start(request, around)?;
                Ok(SubLoop { workplace: branches.workplace(request)?, ..sub })
            }),
        };
        if let Some(pending) = &reuse {
            world.sandbox.hidden.clone_from(&pending.hidden);
        }
        if let Some(watchman) = &watchman {
            world.sinks.add(watchman.sink());
        }
        for warning in publication.iter().flat_map(|publication| publication.remember(engine.start())) {
            session.talk.warning(&warning);
        }
        let reusable = left_behind::reusable(&files);
        let records = RecordsBefore::noted(session.reuse_store(), &reusable);
        let run::Ended { complete, lost } = conduct(&mut engine, &mut world).await;
        // Before the run keeps a record of its own.
        remove_planted(records, &reusable, session);
        // At once, before anything that takes long or may be killed: what is not settled counts in full for the day.
        if let Some(reserved) = reserved {
            reserved.settle(engine.run().usage().known_cost(), session);
        }
        // Without a whole journal there is no proof of what the run has verified.
        if let Some(pending) = reuse.filter(|_| lost.is_none()) {
            let (id, journal) = (files.instance(), files.journal());
            let (now, link) = (world.clock.now(), job_page::of_job(&session.env.lookup()));
            let ended = EndedReuse { id, name: &name, complete: &complete, journal: &journal, now, link };
            Box::pin(kept_reuse::settle(*pending, &ended, &engine, &mut world, session)).await;
        }
        say_the_rest(&mut world, session);
        keep_start(&world, &complete, session);
        let host = world.agents.host;
        let handoff = engine.run().handoff().cloned();
        // Closes the journal and the log, which are moved next.
        drop(world);
        let end = RunEnd {
            session,
            options,
            watchman,
            claim,
            lock,
            worktree,
            host,
            handoff,
            complete,
            lost,
            reader,
            shown,
            notify,
            root,
        };
        end.follow(&files, &name, publication, &mut told).await
    }
}

/// Removes the records of results that came while actions worked, because one of them may have written these.
fn remove_planted(records: RecordsBefore, note: &Path, session: &Session<'_>) {
    let removed = records.remove_others();
    match removed {
        Ok(0) => {}
        Ok(count) => session.talk.note(&left_behind::planted(count, "while actions of this run worked")),
        Err(why) => {
            // The note stays for who comes next.
            session.talk.warning(&unreachable(&why));
            return;
        }
    }
    let _gone = std::fs::remove_file(note);
}

/// Keeps the tree on which a run with snapshots began, as a run that is rewound from it is compared with that.
fn keep_start(world: &World, complete: &LoopComplete, session: &Session<'_>) {
    let start = complete.changes.as_ref().and_then(|changes| Some(&changes.known()?.start));
    let Some(start) = start.filter(|_| world.snapshots.is_some()) else { return };
    let git = repository::at(world.files.loops(), session);
    if let Err(why) = run_snapshots::keep_start(&git, &world.files, start) {
        session.talk.warning(&format!("a run that is rewound from this one may have no patch: {why}"));
    }
}

/// Warns of sinks that failed, says what became of the artifact, and removes a `state.json` that could not be written.
fn say_the_rest(world: &mut World, session: &Session<'_>) {
    for failure in world.sinks.take_failures() {
        session.talk.warning(&failure);
    }
    match &world.artifact {
        Some(Ok(to)) => session.talk.note(&format!("artifact: {to}")),
        Some(Err(why)) => session.talk.warning(&format!("no artifact was copied: {why}")),
        None => {}
    }
    if let Some(error) = world.drop_stale_state() {
        let instance = world.files.instance();
        session.talk.warning(&format!(
            "`state.json` was removed, because it could not be kept up to date: {error}; `{}` shows how the run stands",
            advised_command::status(instance)
        ));
    }
}

/// A run whose last event was written, and what its reports and its hand-off need.
struct RunEnd<'s> {
    session: &'s Session<'s>,
    options: RunOptions,
    watchman: Option<Watchman>,
    claim: Claim,
    lock: Option<Lock>,
    worktree: Option<Worktree>,
    host: Option<&'static dyn Host>,
    handoff: Option<Handoff>,
    complete: LoopComplete,
    lost: Option<Lost>,
    reader: Reader,
    /// The loop file, as people know it.
    shown: String,
    /// Whom the loop tells of its outcome.
    notify: Option<NotifyRule>,
    root: PathBuf,
}

impl RunEnd<'_> {
    /// Archives, reports and hands off, in this order: if this process dies on the way, the next command does the
    /// rest.
    async fn follow(
        self,
        files: &RunFiles,
        name: &LoopName,
        publication: Option<Publication>,
        cancel: &mut Cancel,
    ) -> Result<EndedRun, Error> {
        let Self { session, options, watchman, claim, lock, worktree, host, handoff, .. } = self;
        let Self { complete, lost, reader, shown, notify, root, .. } = self;
        // First, because it frees the reserved space: on a full disk, that is the room for the reports.
        files.release();
        let files = archived(files, &complete, session);
        // Even after the journal failed: the reports show the run as far as it was written.
        let unwritten = lost.as_ref().and_then(|lost| lost.unwritten.as_ref());
        let ending = ReportedEnd::Journaled { files: &files, unwritten };
        let published = match publication {
            Some(publication) => {
                Some(Box::pin(publication.tell_unless_stopped(ending, cancel, session)).await)
            }
            None => None,
        };
        // Everybody who has to know how it ended does.
        drop(watchman);
        left_behind::forget(&files);
        // Otherwise the mark stays, by which a later command makes the missing reports.
        if published.as_ref().is_none_or(|published| published.is_whole) {
            finish::end(&files);
        }
        // After the mark is gone: a process that is killed while a collector hangs has left nothing to do.
        export(
            ExportedRun { files: files.clone(), unwritten: unwritten.cloned(), is_killed: false },
            session,
        );
        let uploaded = published.as_ref().and_then(|published| published.uploaded);
        let beside = || {
            let places = ReportPaths { run_id: files.instance().to_owned(), ..ReportPaths::default() };
            advice::more(&reader, &places, complete.is_verified_success())
        };
        let (more, reader, news) = match published {
            Some(published) => (published.more, published.reader, published.news),
            None => (beside(), reader, None),
        };
        if let Some(worktree) = &worktree {
            // A run that can go on needs the tree that it has worked on.
            worktree.close(!complete.is_resumable(), session);
        }
        // Only now: as long as files are being written, no other process may continue the run.
        for warning in lock.map(Lock::release).into_iter().flatten() {
            session.talk.warning(&warning);
        }
        drop(claim);
        let is_unstored = uploaded == Some(false);
        // No runner waits for a person: whoever answers starts the next run.
        let waits = handoff.as_ref().is_some_and(|handoff| handoff.awaiting.is_some());
        if complete.outcome == Outcome::Handoff {
            if let Audience::Ci(provider) = &options.audience
                && ((options.chain.is_some() && !waits) || is_unstored)
            {
                let wanted = publication::wanted(&options.commit, session);
                // If the upload failed, the files could not be fetched.
                let link = options.chain.filter(|_| !is_unstored);
                let key = key_of_run::of_run(&options, files.stem(), session);
                let subject = subject(name.as_str(), files.instance(), key.as_ref(), session);
                dispatch(provider, &wanted, &subject, link, session);
            }
            spawn_session(handoff.as_ref(), host, &files, session);
        }
        // After everything else: it takes time and decides nothing.
        if let Some(news) = news {
            let key = key_of_run::of_run(&options, files.stem(), session);
            let instance = files.instance();
            let (notify, key, root) = (notify.as_ref(), key.as_ref(), root.as_path());
            NoticeSender { notify, options: &options, instance, key, root }.tell(news, cancel, session).await;
        }
        for line in more {
            session.talk.closing(&line, &options.audience);
        }
        match lost {
            None => Ok(EndedRun { instance: files.instance().to_owned(), complete, is_unstored }),
            Some(lost) => Err(journal_lost(&lost, &files, &shown, &reader)),
        }
    }
}

impl StartPosition {
    /// Makes the engine at this position. Returns the time that the run has taken so far, and the sub-loops it was
    /// in.
    fn engine(self, machine: &Machine) -> (Engine<'_>, Duration, Left) {
        match self {
            Self::Start(start) => (Engine::new(machine, *start), Duration::ZERO, Left::default()),
            Self::Left(resumed) => {
                let Resumed { start, past, how, answers, cancelled_by, rested, elapsed, left } = *resumed;
                let mut engine = Engine::resume(machine, start, past, how, rested).answered(answers);
                if let Some(asker) = cancelled_by {
                    let events = engine.cancel(asker, elapsed);
                    debug_assert!(events.is_empty(), "a run says first that it goes on");
                }
                (engine, elapsed, left)
            }
        }
    }
}

fn checkpoints(
    options: &RunOptions,
    publication: Option<&Publication>,
    session: &Session<'_>,
) -> Checkpoints {
    let Some(every) = options.checkpoint_every else { return Checkpoints::default() };
    if let Some(saver) = publication.and_then(Publication::saver) {
        return Checkpoints::every(every, move || saver.checkpoint());
    }
    session.talk.warning("`--checkpoint-every` has no effect without `--ci` or `--report-dir`");
    Checkpoints::default()
}

fn env_of_actions(
    options: &RunOptions,
    in_worktree: bool,
    session: &Session<'_>,
) -> BTreeMap<String, String> {
    let env = session.env.for_actions(options.pass_token);
    if in_worktree { Worktree::env(env) } else { env }
}

fn own_env(in_worktree: bool, session: &Session<'_>) -> BTreeMap<String, String> {
    let env = session.env.for_ourselves();
    if in_worktree { Worktree::env(env) } else { env }
}

fn journal_lost(lost: &Lost, files: &RunFiles, shown: &str, reader: &Reader) -> Error {
    let what = format!("run {}", files.instance());
    let mend = if lost.error.is_tampered() {
        "keep the actions of the loop away from the files in `.loops/.running`"
    } else {
        "free some space"
    };
    let hint = if lost.has_begun && reader.remote.is_some() {
        format!("{mend}; the end of the log says how to go on")
    } else if lost.has_begun {
        format!("{mend}, and go on with `{}`", advised_command::resume(files.instance()))
    } else {
        format!("{mend}, and start it again with `{}`", advised_command::run(shown))
    };
    Error::failed(what, &lost.error).with_hint(hint)
}

/// Moves the files of a finished run to the history. If that fails, they stay where they are.
fn archived(files: &RunFiles, complete: &LoopComplete, session: &Session<'_>) -> RunFiles {
    if complete.is_resumable() {
        return files.clone();
    }
    files.archive().unwrap_or_else(|error| {
        session.talk.warning(&format!("the files of the run stay in .running: {error}"));
        files.clone()
    })
}

/// Makes the sinks of a run: its log, the state of its work, and the sink of the caller.
pub(crate) fn sinks(
    prepared: &Prepared,
    files: &RunFiles,
    options: &RunOptions,
    projection: &Projection,
    session: &Session<'_>,
) -> Sinks {
    let mut sinks = Sinks::default();
    match LogFile::open(&files.log()) {
        Ok(log) => sinks.add(log),
        // No error: the log is for people, and nothing is ever read back from it.
        Err(error) => session.talk.warning(&format!("cannot write the log file: {error}")),
    }
    sinks.add(projection.clone());
    let reader = &reader(&prepared.located.root, files, options, session);
    let (log, audience) = (&files.log(), &options.audience);
    let watched = Watched { instance: files.instance(), log, audience, reader };
    if let Some(sink) = session.talk.watch(&watched) {
        sinks.add_boxed(sink);
    }
    sinks
}
