//! Writes how the work of a run stands to `.loop/state.json`, for hooks and people. It goes one way: the run knows by its
//! journal, and reads nothing from there but whose work the file is about.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::work_file::{LockedStateFile, STATE, WorkHolder, this_run};
use crate::base::text::one_line;
use crate::criteria::CriteriaState;
use crate::criteria::work_owner::{Owner, OwningRun};
use crate::engine::event::{Event, Stamped};
use crate::engine::outcome::Outcome;
use crate::report::Sink;

/// The most characters of a word from the file that are shown.
const LINE: usize = 100;

/// The file of somebody else's work.
#[derive(Debug)]
pub struct Anothers {
    /// The file.
    pub path: PathBuf,
    /// The run whose work it is; without one it is a session's.
    pub run: Option<OwningRun>,
    /// What the work is about.
    pub spec: String,
}

/// Keeps the file. Its copies keep the same one.
#[derive(Clone)]
pub struct Projection(Rc<RefCell<ProjectedFile>>);

/// What is known of the file.
struct ProjectedFile {
    path: PathBuf,
    owner: OwningRun,
    /// How the work stands, and how deep in sub-loops it is done.
    state: Option<(CriteriaState, u32)>,
    /// Whether the file is this run's.
    is_claimed: bool,
}

impl Projection {
    /// Makes one for a run in a directory.
    pub fn new(root: &Path, instance: &str) -> Self {
        let (path, owner) = (root.join(STATE), this_run(instance));
        Self(Rc::new(RefCell::new(ProjectedFile { path, owner, state: None, is_claimed: false })))
    }

    /// Takes the file for work that this run is about to do, if it is not somebody else's. The work stands as the run
    /// knows it already, or else at its beginning.
    pub fn claim(&self, beginning: CriteriaState) -> io::Result<Result<(), Anothers>> {
        let mut kept = self.0.borrow_mut();
        // A run that goes on knows the state from its past events.
        kept.state.get_or_insert((beginning, 0));
        kept.claim()
    }
}

impl ProjectedFile {
    fn claim(&mut self) -> io::Result<Result<(), Anothers>> {
        // Others write the file as well, and wait for the same lock.
        let file = LockedStateFile::wait_for(&self.path)?;
        if let Some(anothers) = self.anothers(&file, |holder| *holder != WorkHolder::Nobody)? {
            return Ok(Err(anothers));
        }
        self.is_claimed = true;
        self.write(&file).map(Ok)
    }

    /// Writes how the work stands, unless somebody took the file meanwhile.
    fn show(&mut self) -> io::Result<()> {
        if !self.is_claimed {
            return self.claim()?.map_err(|anothers| io::Error::other(anothers.sentence()));
        }
        let file = LockedStateFile::wait_for(&self.path)?;
        // What names no other run was written over what this one wrote.
        match self.anothers(&file, |holder| matches!(holder, WorkHolder::Run(_)))? {
            Some(anothers) => Err(io::Error::other(anothers.sentence())),
            None => self.write(&file),
        }
    }

    /// Returns whose work it is when it is somebody else's. Work of a run that was killed belongs to no one.
    fn anothers(
        &self,
        file: &LockedStateFile,
        counts: impl Fn(&WorkHolder) -> bool,
    ) -> io::Result<Option<Anothers>> {
        let Some(Ok(state)) = file.read()?.map(|bytes| CriteriaState::read(&bytes)) else { return Ok(None) };
        let holder = WorkHolder::of(&state);
        // What cannot be read belongs to no one.
        let run = match &holder {
            WorkHolder::Gone(_) => return Ok(None),
            WorkHolder::Run(run) if run.instance == self.owner.instance => return Ok(None),
            WorkHolder::Run(run) => Some(run.clone()),
            WorkHolder::Nobody | WorkHolder::Session => None,
        };
        let spec = state.spec().unwrap_or("unknown").to_owned();
        Ok(counts(&holder).then(|| Anothers { path: self.path.clone(), run, spec }))
    }

    fn write(&self, file: &LockedStateFile) -> io::Result<()> {
        let Some((state, _)) = &self.state else { return Ok(()) };
        let mut state = state.clone();
        state.give_to(&Owner::Run(self.owner.clone()));
        file.write(&state)
    }

    /// Leaves the file when the work ends.
    fn leave(&mut self, outcome: Outcome) -> io::Result<()> {
        let Some((state, _)) = self.state.as_mut().filter(|_| self.is_claimed) else { return Ok(()) };
        state.end_with(outcome.word());
        self.show()?;
        (self.is_claimed, self.state) = (false, None);
        Ok(())
    }
}

/// Work that never began, or whose run was given up, belongs to no one either.
impl Drop for ProjectedFile {
    fn drop(&mut self) {
        let _best_effort = self.leave(Outcome::Error);
    }
}

/// Returns how the work stands, if an event says so.
fn told(stamped: &Stamped) -> Option<(CriteriaState, u32)> {
    let Event::Evaluate { r#type, details, .. } = &stamped.event else { return None };
    let state = details.get("state")?.as_object().filter(|_| r#type == "criteria")?;
    Some((CriteriaState::of(state), stamped.depth))
}

impl Sink for Projection {
    fn name(&self) -> &'static str {
        STATE
    }

    fn event(&mut self, stamped: &Stamped) -> io::Result<()> {
        let mut kept = self.0.borrow_mut();
        if let Some(told) = told(stamped) {
            kept.state = Some(told);
            return kept.show();
        }
        if let Event::LoopComplete(complete) = &stamped.event
            // A sub-loop's end leaves the file only if the work was its own.
            && kept.state.as_ref().is_some_and(|(_, depth)| stamped.depth <= *depth)
        {
            return kept.leave(complete.outcome);
        }
        Ok(())
    }

    fn past(&mut self, stamped: &Stamped) {
        if let Some(told) = told(stamped) {
            self.0.borrow_mut().state = Some(told);
        }
    }
}

impl Anothers {
    /// Says whose work it is.
    pub fn sentence(&self) -> String {
        let path = self.path.display();
        match &self.run {
            Some(OwningRun { instance, host, pid, .. }) => {
                let (instance, host) = (one_line(instance, LINE), one_line(host, LINE));
                format!("{path} is about the work of the run {instance} (process {pid} on {host})")
            }
            None => format!("{path} is about work that goes on: {}", one_line(&self.spec, LINE)),
        }
    }
}
