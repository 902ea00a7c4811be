//! Bundles an unfinished run on request.

use std::path::{Path, PathBuf};

use crate::context::Session;
use crate::context::error::Error;
use crate::journal::known::KnownRun;
use crate::session::end::bundler::{Bundler, file_name, warnings};
use crate::session::end::finish;
use crate::session::end::killed::{self, Telling};
use crate::session::read::choose::{Chosen, choose, never_began};

impl Session<'_> {
    /// Writes the bundle of a run, to `<run>.llz` in the directory of the session where no file is named. Returns the
    /// file, as it was named.
    ///
    /// # Errors
    /// No such run exists, its loop cannot be read, or the file cannot be written.
    pub fn bundle(&self, name: &str, target: Option<&Path>) -> Result<PathBuf, Error> {
        let run = match choose(name, self)? {
            Chosen::Left(_, run) | Chosen::Unfinished(run) => run,
        };
        // First of all, because the bundle takes the reports of the run, from where it lies in the end.
        killed::report(&run, None, Telling::Quietly, self)?;
        let mut files = run.files.clone();
        if run.is_to_be_finished() {
            files = finish::finish(&run, None, None, self)?.files;
        }
        let KnownRun { ends, .. } = *run;
        let Some((_, began)) = ends.start else { return Err(never_began(files.instance(), name)) };
        let (prepared, territory) = finish::read_again(&files, &began, self)?;
        let target = target.map_or_else(|| PathBuf::from(file_name(&files)), Path::to_owned);
        let bundler = Bundler::new(&prepared, &territory, self);
        let packed = bundler.write_to(&files, &files.report(), &self.path(&target));
        let packed = packed.map_err(|error| Error::failed("cannot write the bundle", &error))?;
        for warning in warnings(&packed) {
            self.talk.warning(&warning);
        }
        Ok(target)
    }
}
