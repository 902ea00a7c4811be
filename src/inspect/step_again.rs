//! `repro`: stands where a step of a run stood: the tree as it was, the captures and the environment that its action had;
//! or a script that carries all of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;
use crate::base::text::listed;
use crate::context::Session;
use crate::context::error::Error;
use crate::engine::event::{Event, LoopStart};
use crate::engine::past::Standing;
use crate::engine::request::{Input, Next, Setting};
use crate::engine::{Engine, Start};
use crate::git::call::{Call, without_repository};
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;
use crate::journal::reader;
use crate::journal::streams::Streams;
use crate::report::digest::Digest;
use crate::report::numbers::{Numbering, StepNumber};
use crate::repository;
use crate::run::replay::{KnownMachine, LeftLoop, Replay};
use crate::run::tree_snapshots::Moment;
use crate::session::end::finish;
use crate::session::prepare::prepared::Prepared;
use crate::session::read::run_ref::RunRef;
use crate::session::read::run_snapshots;
use crate::session::read::run_snapshots::SnapshotWorktree;
use crate::session::start::incoming::Incoming;

/// How often what a step waits for is answered before its work begins.
// The loop may have changed since, or be a stranger's, and must not keep the engine here for ever.
const MOST_QUESTIONS: usize = 1000;

/// A step of a run, with everything that it had.
pub(crate) struct Repro {
    /// Its number.
    pub(crate) step: StepNumber,
    /// Its state.
    pub(crate) state: String,
    pub(super) run: String,
    work: StepWork,
    /// Variables beside those of the environment.
    pub(super) env: Vec<(String, String)>,
    /// The directory of its action, seen from the top of the working tree.
    pub(super) within: PathBuf,
    pub(super) commit: ObjectId,
    pub(super) exit: Option<i32>,
    files: RunFiles,
    pub(super) git: Git,
}

/// What a step did.
enum StepWork {
    /// A command: the words of its shell, and the text.
    Command(Vec<String>, String),
    /// Something else, in words for people.
    Other(&'static str),
}

/// A run whose journal is read.
struct ReproRun {
    files: RunFiles,
    began: LoopStart,
    /// What leads to the step: the last event before its work.
    until: u64,
    step: StepNumber,
    state: String,
    exit: Option<i32>,
}

impl Session<'_> {
    /// Finds a step of a run, by default the one that decided it.
    ///
    /// # Errors
    /// There is no such run or step, or no tree snapshot of it.
    pub(crate) fn repro(&self, name: Option<&str>, step: Option<&StepNumber>) -> Result<Repro, Error> {
        let failed = |why: TreeError| {
            let name = name.unwrap_or("the last run");
            Error::refused(format!("the tree snapshots of {name} cannot be used: {why}"))
        };
        let mut incoming = None;
        let (root, told, found) = match RunRef::parse(name, self)? {
            RunRef::Here(run) => {
                let files = run.files;
                let root = files.loops().parent().unwrap_or(files.loops()).to_owned();
                let found =
                    run_snapshots::all(&repository::at(&root, self), files.instance()).map_err(failed)?;
                (root, read(&files, step)?, found)
            }
            RunRef::Brought { path, shown } => {
                let brought = incoming.insert(Incoming::open(&path, &shown, self)?);
                let told = read(brought.there(), step)?;
                let (prepared, _) = finish::read_again(&brought.files, &told.began, self)?;
                let git = repository::at(&brought.root, self);
                let found = brought.take_snapshots(&git, &prepared.definition()).map_err(failed)?;
                (brought.root.clone(), told, found)
            }
            RunRef::Artifact(what) => return Err(RunRef::not_fetched(&what)),
        };
        let git = repository::at(&root, self);
        let instance = told.files.instance().to_owned();
        // Where a worktree is made, and what a run has for itself, is beside the runs of this checkout.
        let files = incoming.as_ref().map_or(&told.files, |incoming| &incoming.files).clone();
        let commit = run_snapshots::before(&found, &told.step).map_err(|near| none(&told, &near))?;
        let (mut prepared, _) = finish::read_again(&files, &told.began, self)?;
        let prefix = git.line(&Call::new("rev-parse").with(&["--show-prefix"]));
        let within = PathBuf::from(prefix.map_err(|why| failed(why.into()))?);
        let (work, setting) = self.work(&told, &files, &mut prepared)?;
        let within = setting.cwd.as_deref().map_or_else(|| within.clone(), |cwd| within.join(cwd));
        let ReproRun { step, state, exit, .. } = told;
        Ok(Repro { step, state, run: instance, work, env: setting.env, within, commit, exit, files, git })
    }

    /// Folds the run up to the step, and asks the engine what it does there.
    fn work(
        &self,
        told: &ReproRun,
        files: &RunFiles,
        prepared: &mut Prepared,
    ) -> Result<(StepWork, Setting), Error> {
        let unfit = |why: Explanation| {
            Error::refused(format!("step {} cannot be made again: {why}", told.step))
                .with_hint("check out the loop as it was when the run began")
        };
        // Not an error: the step is often there all the same, and where it is not, the fold says so.
        if prepared.loaded.digest != told.began.definition_sha256 {
            self.talk.warning("the definition of the loop is not what it was when the run began");
        }
        let levels = folded(told, prepared).map_err(unfit)?;
        let depth = told.step.depth();
        let mut key = told.files.instance().to_owned();
        // The key of each step is made as the run made it, in a sub-loop from that of the step that ran it.
        for level in levels.iter().take(depth) {
            key = format!("{key}/{}", level.past.run().step());
        }
        let level =
            levels.into_iter().nth(depth).ok_or_else(|| unfit(Explanation::new("its loop did not begin")))?;
        let how = match level.standing() {
            Standing::Open(how) => how,
            Standing::Over(_) => return Err(unfit(Explanation::new("the run was over"))),
            Standing::Lost(state) => {
                return Err(unfit(Explanation::new(format!("the loop has no state `{state}`"))));
            }
        };
        let start = Start {
            env: self.env.for_templates(),
            run_dir: files.scratch().to_string_lossy().into_owned(),
            ..Start::of(level.past.start().clone(), level.at, &key)
        };
        let machine = Rc::clone(&level.machine);
        let now = level.past.elapsed();
        let mut engine = Engine::resume(&machine, start, level.past, how, Duration::ZERO);
        asked(&mut engine, now).ok_or_else(|| unfit(Explanation::new("it did no work")))
    }
}

/// Lets the engine go on until it asks for work.
fn asked(engine: &mut Engine<'_>, now: Duration) -> Option<(StepWork, Setting)> {
    for _ in 0..MOST_QUESTIONS {
        let input = match engine.next() {
            Next::Begin => Input::Begin,
            Next::Survey(_) => Input::Surveyed(Err(Explanation::new("the step is looked at, and not run"))),
            Next::Wait(_) => Input::WaitDone,
            Next::Yield => Input::Yielded,
            Next::ReadContinuation => Input::Continuation(None),
            Next::Run(request) => {
                let work = StepWork::Command(request.shell.clone(), request.text.clone());
                return Some((work, request.setting.clone()));
            }
            Next::Prompt(request) => {
                return Some((StepWork::Other("asks an agent"), request.setting.clone()));
            }
            Next::Learn(request) => return Some((StepWork::Other("asks an agent"), request.setting.clone())),
            Next::Call(request) => return Some((StepWork::Other("calls a tool"), request.setting.clone())),
            Next::Approve(request) => {
                return Some((StepWork::Other("asks a person"), request.setting.clone()));
            }
            Next::SubLoop(_) => return Some((StepWork::Other("runs another loop"), Setting::default())),
            Next::Ask(_)
            | Next::LookForQuestion
            | Next::Read(_)
            | Next::Query(_)
            | Next::Look
            | Next::LookForJudges(_)
            | Next::Restore(_)
            | Next::SetAside(_)
            | Next::Measure(_)
            | Next::Done(_) => {
                return Some((StepWork::Other("runs no action"), Setting::default()));
            }
        };
        engine.handle(input, now).ok()?;
    }
    None
}

/// Folds the loops of a run up to the step.
fn folded(told: &ReproRun, prepared: &mut Prepared) -> Result<Vec<LeftLoop>, Explanation> {
    let Prepared { machine, loaded, library, .. } = prepared;
    let outermost = KnownMachine { machine: Rc::new(machine.clone()), digest: loaded.digest.clone() };
    let mut find =
        |name: &str, around: &LoopStart, begun: &LoopStart| library.find(name, around, &begun.context);
    let mut replay = Replay::new(outermost, &mut find);
    let mut failed = None;
    reader::read(&told.files.journal(), |stamped| {
        if stamped.seq <= told.until && failed.is_none() {
            failed = replay.event(stamped).err();
        }
    })
    .map_err(Explanation::from)?;
    if let Some(error) = failed {
        return Err(Explanation::from(error));
    }
    let mut streams = Streams::new(told.files.streams());
    let mut left = replay.finish(|stored, stream| streams.read(stored, stream)).map_err(|error| {
        Explanation::new(format!("the output of an earlier step cannot be read: {error}"))
    })?;
    Ok(std::iter::from_fn(|| left.take_outermost()).collect())
}

/// What is known of a step of the journal.
#[derive(Default)]
struct RecordedStep {
    until: u64,
    state: String,
    exit: Option<i32>,
}

/// Reads the journal up to the step that is meant.
fn read(files: &RunFiles, step: Option<&StepNumber>) -> Result<ReproRun, Error> {
    let mut numbering = Numbering::default();
    let mut digest = Digest::default();
    let mut began = None;
    let mut visits: BTreeMap<StepNumber, RecordedStep> = BTreeMap::new();
    let (mut entered, mut evaluated) = (None, None);
    reader::read(&files.journal(), |stamped| {
        digest.event(&stamped);
        let number = numbering.event(&stamped);
        match (&stamped.event, number) {
            (Event::LoopStart(start), _) if stamped.depth == 0 => began = Some(start.clone()),
            (Event::StateEnter { state, .. }, Some(number)) => {
                let visit = RecordedStep { until: stamped.seq, state: state.to_string(), exit: None };
                visits.insert(number.clone(), visit);
                entered = Some(number);
            }
            (Event::Evaluate { .. }, Some(number)) => evaluated = Some(number),
            (Event::ActionComplete(complete), Some(number)) => {
                if let Some(visit) = visits.get_mut(&number) {
                    visit.exit = Some(complete.seen.exit_code);
                }
            }
            _ => {}
        }
    })
    .map_err(|error| Error::failed(format!("run {}", files.instance()), &error))?;
    let decided = || digest.deciding_step().map(|step| StepNumber::of_run(step.number));
    // A success, a cap or a stall has no deciding step: its last verdict counts.
    let meant = step.cloned().or_else(decided).or(evaluated).or(entered);
    let meant = meant.ok_or_else(|| Error::refused(format!("the run {} did no step", files.instance())))?;
    let (Some(began), Some(visit)) = (began, visits.remove(&meant)) else {
        return Err(Error::refused(format!("the run {} has no step {meant}", files.instance()))
            .with_hint(format!("`ll-loop history {}` shows its steps", files.instance())));
    };
    let RecordedStep { until, state, exit } = visit;
    Ok(ReproRun { files: files.clone(), began, until, step: meant, state, exit })
}

fn none(told: &ReproRun, near: &[StepNumber]) -> Error {
    let instance = told.files.instance();
    let refused =
        Error::refused(format!("there is no tree snapshot of step {} of the run {instance}", told.step));
    match near {
        [] => refused.with_hint("a run with `--snapshots` has one of every step"),
        near => {
            let named = listed(near.iter().map(|step| format!("--step {step}")), "and");
            refused.with_hint(format!("the nearest: {named}"))
        }
    }
}

impl Repro {
    /// Makes the worktree, or takes the one that is there if it is unchanged.
    ///
    /// # Errors
    /// Git cannot make it.
    pub(crate) fn worktree(&self) -> Result<SnapshotWorktree, Error> {
        let moment = Moment::Before(self.step.clone());
        run_snapshots::worktree(&self.git, &self.commit, &self.files, &moment).map_err(|why| {
            Error::refused(format!("cannot make a worktree: {why}"))
                .with_hint("`git worktree list` shows those there are")
        })
    }

    /// Removes the worktree if it is unchanged.
    pub(crate) fn close(&self, worktree: &SnapshotWorktree) -> bool {
        worktree.close(&self.git)
    }

    /// Returns the directory of the action in the worktree.
    pub(crate) fn directory(&self, worktree: &SnapshotWorktree) -> PathBuf {
        let path = worktree.path.join(&self.within);
        // A directory that held no file is in no tree of git, and so not in the snapshot.
        if path.is_dir() { path } else { worktree.path.clone() }
    }

    /// Returns the environment of the action.
    pub(crate) fn env(&self, session: &Session<'_>) -> BTreeMap<String, String> {
        let mut env = without_repository(session.env.for_actions(false));
        env.extend(self.env.iter().cloned());
        env
    }

    /// Returns the command line of the action, if it is a command.
    pub(crate) fn command(&self) -> Result<(&[String], &str), &'static str> {
        match &self.work {
            StepWork::Command(shell, text) => Ok((shell, text)),
            StepWork::Other(what) => Err(what),
        }
    }
}
