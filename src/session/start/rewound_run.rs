//! `rewind`: a new run that begins again in front of a step of another one, in a worktree with the tree as it was then.

use std::collections::BTreeMap;

use super::resume::{FoundRun, UnclaimedRun, settle};
use super::rewind_origin::Origin;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::ResumeOptions;
use crate::definition::load;
use crate::definition::load::DIRECTORY;
use crate::journal::files::RunFiles;
use crate::process::clock::Clock;
use crate::report::numbers::StepNumber;
use crate::repository::worktree::Worktree;
use crate::session::end::ready::Ready;
use crate::session::prepare::prepared::{reaching, refused};

/// Where a run is rewound to.
#[derive(Clone, Debug)]
pub struct RewindOptions {
    /// The step that is run again first.
    pub to: StepNumber,
    /// Captures that are set to another text.
    pub captured: BTreeMap<String, String>,
    /// Whether steps may run once more that should run once.
    pub agreed: bool,
}

impl<'s> Session<'s> {
    /// Makes a run that begins again in front of a step of another one: a run of this machine by its id, the last one of a
    /// loop, or one in a bundle. That one is not touched. With `outside`, its loop file may lie outside of the repository.
    ///
    /// # Errors
    /// There is no such run or step, or no tree snapshot of it, or it would run steps once more that should run once. Then
    /// nothing is made.
    pub fn rewind(
        &'s self,
        name: Option<&str>,
        rewind: RewindOptions,
        options: ResumeOptions,
        outside: bool,
    ) -> Result<Box<Ready<'s>>, Error> {
        let origin = Origin::find(name, self)?;
        let cut = origin.cut(&rewind.to)?;
        let located = load::find(&cut.began.source.file, &origin.root).map_err(|error| refused(&error))?;
        let mut prepared = self.at(&origin.root).prepare(reaching(located, outside))?;
        let repeated = origin.repeated(&cut, &mut prepared)?;
        let files =
            RunFiles::fresh(&origin.root.join(DIRECTORY), &prepared.machine.name, Clock::start().now());
        let (root, instance) = (origin.root.clone(), origin.instance().to_owned());
        let (mut rewound, snapshot) = origin.rewound(&cut, &prepared, self)?;
        // Only now: there is no point in asking for agreement to a rewind that has no snapshot to stand on.
        if !rewind.agreed {
            repeated.refuse(&cut, &instance)?;
        }
        rewound.captured = rewind.captured;
        settle(&cut.began, &options, &mut prepared, self)?;
        let worktree = Worktree::plan(&root, &files, self)?.standing_on(&snapshot);
        let worktree = worktree.map_err(|why| Error::refused(format!("cannot make a worktree: {why}")))?;
        prepared.work_in(worktree.root().to_owned());
        let found = FoundRun { root, files, began: cut.began, incoming: None };
        let options = ResumeOptions { run: options.run.settled(), ..options };
        let (worktree, rewound) = (Some(worktree), Some(rewound));
        let going = UnclaimedRun { session: self, options, prepared, worktree, rewound };
        going.ready(found).map(Box::new)
    }
}
