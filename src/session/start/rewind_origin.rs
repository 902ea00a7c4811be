//! The run that another one is rewound from: the events in front of the step, what they leave of it for the new run, and
//! which steps come once more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use super::incoming::Incoming;
use crate::base::diagnostic::nearest;
use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::base::text::{listed, one_line, plural};
use crate::base::time::{Timestamp, millis};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::engine::event::{Event, LoopStart, Parent, Stamped};
use crate::engine::loop_stack::LoopStack;
use crate::engine::run::Run;
use crate::files::read;
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;
use crate::journal::inherit::inherit;
use crate::journal::reader;
use crate::machine::{Machine, Target};
use crate::report::numbers::{Numbering, StepNumber};
use crate::repository;
use crate::repository::worktree::Worktree;
use crate::run::tree_snapshots::Moment;
use crate::session::prepare::library::Library;
use crate::session::prepare::prepared::Prepared;
use crate::session::read::run_ref::RunRef;
use crate::session::read::run_snapshots;

/// How many steps that come once more are named.
const MOST_NAMED: usize = 20;

/// A run that is found.
pub(super) struct Origin {
    /// The directory with the `.loops` in which the new run has its files.
    pub(super) root: PathBuf,
    /// Where the files of the run are.
    files: RunFiles,
    /// The run as it was unpacked, if it comes in a bundle.
    incoming: Option<Incoming>,
    /// The name by which the user knows it.
    name: String,
}

/// What the journal of a run says about a step.
pub(super) struct Cut {
    pub(super) step: u32,
    /// How the run began.
    pub(super) began: LoopStart,
    /// The last event before the step was entered.
    seq: u64,
    /// When it was entered.
    at: Timestamp,
}

/// What a new run has of another one.
pub(crate) struct Rewound {
    origin: Origin,
    pub(super) parent: Parent,
    step: u32,
    at: Timestamp,
    /// The tree snapshots of the steps before, which are steps of the new run as well.
    before: BTreeMap<Moment, ObjectId>,
    git: Git,
    /// Captures that the user set.
    pub(super) captured: BTreeMap<String, String>,
}

impl Origin {
    /// Finds a run on this machine by its id, the last one of a loop, or one in a bundle.
    pub(super) fn find(name: Option<&str>, session: &Session<'_>) -> Result<Self, Error> {
        match RunRef::parse(name, session)? {
            RunRef::Here(run) => {
                let root = run.files.loops().parent().unwrap_or(run.files.loops()).to_owned();
                let name = name.unwrap_or(run.files.instance()).to_owned();
                Ok(Self { root, files: run.files, incoming: None, name })
            }
            RunRef::Brought { path, shown } => {
                let incoming = Incoming::open(&path, &shown, session)?;
                let (root, files) = (incoming.root.clone(), incoming.there().clone());
                Ok(Self { root, files, incoming: Some(incoming), name: shown })
            }
            RunRef::Artifact(what) => Err(RunRef::not_fetched(&what)),
        }
    }

    /// Returns the id of the run.
    pub(super) fn instance(&self) -> &str {
        self.files.instance()
    }

    /// Reads the journal up to the step, which is the run's own.
    pub(super) fn cut(&self, to: &StepNumber) -> Result<Cut, Error> {
        let outer = to.outermost();
        if to.depth() > 0 {
            return Err(Error::refused(format!(
                "step {to} is a step of the sub-loop that step {outer} ran, and a run is rewound to a step of its own"
            ))
            .with_hint(format!("`--to {outer}` begins that sub-loop again")));
        }
        let (mut began, mut cut, mut last, mut before) = (None, None, 0, 0);
        self.read(|stamped| {
            if let (Event::LoopStart(start), 0) = (&stamped.event, stamped.depth) {
                began = Some(start.clone());
            }
            if let (Event::StateEnter { step, .. }, 0) = (&stamped.event, stamped.depth) {
                last = *step;
                if *step == outer {
                    // A resume enters an open step again with its number. The last entry counts: on that tree the step was done.
                    cut = Some((before, stamped.ts));
                }
            }
            before = stamped.seq;
        })?;
        let instance = self.instance();
        match (began, cut) {
            (Some(began), Some((seq, at))) => Ok(Cut { step: outer, began, seq, at }),
            _ if last == 0 => Err(Error::refused(format!("the run {instance} did no step"))),
            _ => Err(Error::refused(format!(
                "the run {instance} has no step {outer}: it has {}",
                plural(last, "step")
            ))
            .with_hint(format!("`ll-loop report {} --format text` shows them", self.name))),
        }
    }

    /// Names the steps from there on that ran an action which should run once: what a rewind does once more.
    pub(super) fn repeated(&self, cut: &Cut, prepared: &mut Prepared) -> Result<Repeated, Error> {
        let Prepared { machine, library, .. } = prepared;
        let mut actions = Actions { machine, library, levels: LoopStack::default() };
        let (mut numbering, mut repeated) = (Numbering::default(), Repeated::default());
        self.read(|stamped| {
            let number = numbering.event(&stamped);
            actions.event(&stamped);
            if let (Event::ActionStart { state, .. }, Some(number)) = (&stamped.event, number)
                && stamped.seq > cut.seq
                && !actions.may_be_repeated(state, stamped.depth)
            {
                repeated.add(&number, state);
            }
        })?;
        Ok(repeated)
    }

    fn read(&self, each: impl FnMut(Stamped)) -> Result<(), Error> {
        let read = reader::read_whole(&self.files.journal(), each);
        let failed = |error| Error::failed(format!("run {}", self.instance()), &error).of_kind(Kind::Refused);
        read.map(drop).map_err(failed)
    }

    /// Finds the tree snapshot of the step. Returns it with what the new run has of this one.
    pub(super) fn rewound(
        self,
        cut: &Cut,
        prepared: &Prepared,
        session: &Session<'_>,
    ) -> Result<(Rewound, ObjectId), Error> {
        let git = repository::at(&self.root, session);
        let instance = self.instance().to_owned();
        let failed = |why: TreeError| {
            Error::refused(format!("the tree snapshots of {instance} cannot be used: {why}"))
        };
        if let Err(why) = git.line(&repository::head()) {
            let what = if why.is_of_no_object() {
                "there is no commit yet".to_owned()
            } else {
                one_line(&why.to_string(), 200)
            };
            return Err(Error::refused(format!("a rewind needs a git repository with a commit: {what}"))
                .with_hint(
                    "it works in a worktree with the tree as it was, which a run with `--snapshots` keeps",
                ));
        }
        let found = match &self.incoming {
            Some(incoming) => incoming.take_snapshots(&git, &prepared.definition()),
            None => run_snapshots::all(&git, &instance),
        };
        let found = found.map_err(failed)?;
        let step = StepNumber::of_run(cut.step);
        let commit = run_snapshots::before(&found, &step).map_err(|_| none(&found, &step, &instance))?;
        let is_before = |moment: &Moment| matches!(moment, Moment::Before(other) if *other < step);
        let before = found.into_iter().filter(|(moment, _)| is_before(moment)).collect();
        let parent = Parent { run: instance, seq: cut.seq };
        let (step, at, captured) = (cut.step, cut.at, BTreeMap::new());
        Ok((Rewound { origin: self, parent, step, at, before, git, captured }, commit))
    }
}

/// Says which of the run's own steps have a snapshot, nearest to one that has none.
fn none(found: &BTreeMap<Moment, ObjectId>, step: &StepNumber, instance: &str) -> Error {
    let refused = Error::refused(format!("there is no tree snapshot of step {step} of the run {instance}"));
    let own = |moment: &Moment| match moment {
        Moment::Before(other) if other.depth() == 0 => Some(other.own()),
        Moment::Before(_) | Moment::End => None,
    };
    let own: Vec<u32> = found.keys().filter_map(own).collect();
    let earlier = own.iter().copied().filter(|other| *other < step.own()).max();
    let later = own.iter().copied().filter(|other| *other > step.own()).min();
    let near: Vec<String> = earlier.into_iter().chain(later).map(|step| format!("--to {step}")).collect();
    match near.as_slice() {
        [] => refused.with_hint("a run with `--snapshots` has one of every step"),
        near => refused.with_hint(format!("the nearest: {}", listed(near, "and"))),
    }
}

/// Steps that come once more.
#[derive(Default)]
pub(super) struct Repeated {
    named: Vec<String>,
    more: u64,
}

impl Repeated {
    fn add(&mut self, number: &StepNumber, state: &StateName) {
        if self.named.len() < MOST_NAMED {
            self.named.push(format!("{number} ({})", one_line(state.as_str(), 80)));
        } else {
            self.more += 1;
        }
    }

    /// Refuses to run them once more, if there are any.
    pub(super) fn refuse(&self, cut: &Cut, instance: &str) -> Result<(), Error> {
        if self.named.is_empty() {
            return Ok(());
        }
        let more = match self.more {
            0 => String::new(),
            more => format!(", and {}", plural(more, "more")),
        };
        Err(Error::refused(format!(
            "from step {} on, {instance} ran actions of states that are not `idempotent: true`, and a rewind runs such \
             actions once more: {}{more}",
            cut.step,
            self.named.join(", "),
        ))
        .with_hint("agree with `--yes`"))
    }
}

/// The loops that a run is in while its events pass, so far as they say which actions may run twice.
struct Actions<'p> {
    machine: &'p Machine,
    library: &'p mut Library,
    levels: LoopStack<RunningLoop>,
}

/// One of them.
struct RunningLoop {
    start: LoopStart,
    /// The state that it is in, and the name of the loop that this one runs.
    state: Option<StateName>,
    runs: String,
    machine: FoundOrigin,
}

/// The machine of a loop.
enum FoundOrigin {
    /// It was not asked for.
    NotYet,
    There(Rc<Machine>),
    /// The loop is not there any more.
    Gone,
}

impl Actions<'_> {
    fn event(&mut self, stamped: &Stamped) {
        if let Event::LoopStart(start) = &stamped.event {
            let begun = RunningLoop {
                start: start.clone(),
                state: None,
                runs: String::new(),
                machine: FoundOrigin::NotYet,
            };
            return self.levels.begin(stamped.depth, begun);
        }
        let Some(level) = self.levels.at_mut(stamped.depth) else { return };
        if let Event::LoopResume(resume) = &stamped.event {
            level.start.change(resume);
        } else if let Event::StateEnter { state, .. } = &stamped.event {
            level.state = Some(state.clone());
        } else if let Event::SubLoopStart { r#loop, .. } = &stamped.event {
            r#loop.clone_into(&mut level.runs);
        }
    }

    /// Tells whether the action of a state may run twice: because the state says so, or one that runs its loop.
    fn may_be_repeated(&mut self, state: &StateName, depth: u32) -> bool {
        (0..=depth).any(|at| {
            let around = || self.levels.at(at).and_then(|level| level.state.clone());
            let here = if at == depth { Some(state.clone()) } else { around() };
            here.is_some_and(|state| self.says_so(&state, at))
        })
    }

    fn says_so(&mut self, state: &StateName, depth: u32) -> bool {
        let says = |machine: &Machine| match machine.find(state) {
            Some(Target::Step(id)) => machine.step(id).is_idempotent,
            Some(Target::End(id)) => machine.end(id).is_idempotent,
            None => false,
        };
        let Some(outside) = depth.checked_sub(1) else { return says(self.machine) };
        let Some((around, Some(level))) = self.levels.with_inner(outside) else { return false };
        if matches!(level.machine, FoundOrigin::NotYet) {
            let found = self.library.find(&around.runs, &around.start, &level.start.context);
            level.machine = found.map_or(FoundOrigin::Gone, |known| FoundOrigin::There(known.machine));
        }
        match &level.machine {
            FoundOrigin::There(machine) => says(machine),
            // Of a loop that is gone nothing is known, so its actions count as ones that must run only once.
            FoundOrigin::NotYet | FoundOrigin::Gone => false,
        }
    }
}

/// What was made for a new run. If it is not kept, it is removed again.
pub(super) struct Made<'m> {
    rewound: &'m Rewound,
    files: &'m RunFiles,
    worktree: &'m Worktree,
    /// What of the other run is missing.
    warnings: Vec<String>,
    is_kept: bool,
}

impl Made<'_> {
    /// Keeps it, if anything was made: from now on, it belongs to the run. Says what is not as it was.
    pub(super) fn keep(made: Option<Self>, session: &Session<'_>) {
        let Some(mut made) = made else { return };
        made.is_kept = true;
        made.worktree.warn_of_filters(session);
        for warning in &made.warnings {
            session.talk.warning(warning);
        }
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let files = self.files;
        // The journal goes first: without it there is no run here, even if this process dies on the way.
        for file in [files.journal(), files.log(), files.unreported(), files.state()] {
            let _absent = fs::remove_file(file);
        }
        for directory in [files.streams(), files.scratch(), files.objects()] {
            let _absent = fs::remove_dir_all(directory);
        }
        files.release();
        let _none = run_snapshots::forget(files, &self.rewound.git);
        let _absent = self.worktree.take_back();
    }
}

impl Rewound {
    /// Makes everything that the new run begins with: the worktree, and its files. The journal comes last: with it, the run
    /// is there.
    pub(super) fn make<'m>(
        &'m self,
        files: &'m RunFiles,
        now: Timestamp,
        worktree: &'m Worktree,
    ) -> Result<Made<'m>, Error> {
        worktree.make_whole()?;
        let mut made = Made { rewound: self, files, worktree, warnings: Vec::new(), is_kept: false };
        if let Err(why) = run_snapshots::refer(&self.git, files.instance(), &self.before) {
            made.warnings.push(format!("the tree snapshots of earlier steps are not taken over: {why}"));
        }
        let from = &self.origin.files;
        let failed = |error: &dyn std::error::Error| {
            let what = format!("cannot begin with the files of {}", self.parent.run);
            Error::failed(what, error).of_kind(Kind::Refused)
        };
        let objects = Copied::of(&from.objects(), &files.objects(), None);
        let scratch = Copied::of(&from.scratch(), &files.scratch(), Some(self.until()));
        objects.map_err(|error| failed(&error))?;
        if let left_out @ 1.. = scratch.map_err(|error| failed(&error))?.left_out {
            made.warnings.push(format!(
                "the run's own directory is without {} that {} written after step {} had begun",
                plural(left_out, "file"),
                if left_out == 1 { "was" } else { "were" },
                self.step
            ));
        }
        inherit(from, &self.parent, files, now).map_err(|error| failed(&error))?;
        Ok(made)
    }

    /// Returns the time until which files are those of earlier steps.
    fn until(&self) -> SystemTime {
        // The moment is known to the millisecond.
        let millis = millis(self.at.since_epoch()).saturating_add(1);
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    /// Says where the new run begins.
    pub(super) fn sentence(&self, files: &RunFiles, worktree: &Worktree) -> String {
        format!(
            "rewinding {} to step {}: the run {} works in {} on the branch {}",
            self.parent.run,
            self.step,
            files.instance(),
            worktree.path().display(),
            worktree.branch()
        )
    }

    /// Refuses captures that the loop does not have.
    pub(super) fn check(&self, run: &Run, machine: &Machine) -> Result<(), Error> {
        let unknown = self.captured.keys().find(|name| run.state_of_capture(machine, name).is_none());
        let Some(name) = unknown else { return Ok(()) };
        let refused = Error::refused(format!("nothing is captured as `{}`", one_line(name, 100)));
        let steps = || machine.steps().map(|(_, step)| step);
        let captures = steps().filter_map(|step| Some(step.capture.as_ref()?.as_str()));
        let known: Vec<&str> =
            run.capture_names().chain(captures).chain(steps().map(|step| step.name.as_str())).collect();
        Err(match nearest(name, known.iter().copied()) {
            Some(near) => refused.with_hint(format!("did you mean `captured.{near}`?")),
            None => refused.with_hint("name a `capture` of the loop, or a state, whose output it sets"),
        })
    }
}

/// Files that were copied.
#[derive(Default)]
struct Copied {
    /// How many were not, because they are too new.
    left_out: u64,
}

impl Copied {
    /// Copies a directory, as far as its files are not newer than this; nothing where there is none.
    fn of(from: &Path, to: &Path, until: Option<SystemTime>) -> io::Result<Self> {
        let mut copied = Self::default();
        let mut open = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = open.pop() {
            let entries = match fs_err::read_dir(&from) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            fs_err::create_dir_all(&to)?;
            for entry in entries {
                let entry = entry?;
                let (path, there) = (entry.path(), to.join(entry.file_name()));
                // A link is copied as a link: followed, it would bring in files from anywhere on the machine.
                let metadata = path.symlink_metadata()?;
                if metadata.is_dir() {
                    open.push((path, there));
                } else if until.is_some_and(|until| metadata.modified().is_ok_and(|at| at > until)) {
                    copied.left_out += 1;
                } else if metadata.is_symlink() {
                    fs_err::os::unix::fs::symlink(fs_err::read_link(&path)?, there)?;
                // Pipes, sockets and devices are left out: to open a pipe would wait for a writer that may never come.
                } else if metadata.is_file() {
                    read::copy(&path, &there)?;
                }
            }
        }
        Ok(copied)
    }
}
