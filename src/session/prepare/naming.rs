//! Names the files of a run that is to begin.

use std::path::Path;

use crate::base::name::LoopName;
use crate::definition::load::DIRECTORY;
use crate::journal::files::RunFiles;
use crate::process::clock::Clock;

/// Names the files of a new run.
pub(crate) fn new_files((root, name): (&Path, &LoopName), clock: &Clock) -> RunFiles {
    let random = uuid::Uuid::new_v4().as_fields().0;
    RunFiles::new(&root.join(DIRECTORY), name, clock.now(), random)
}
