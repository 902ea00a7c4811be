//! Uploads the files of a run as artifacts of the workflow's run. The runner allows that only in actions that
//! are containers or JavaScript: it keeps the token for artifacts from the scripts of `run:` steps.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use tempfile::NamedTempFile;

use crate::base::time::Timestamp;
use crate::ci::archive::pack;
use crate::ci::github::fault::ArtifactError;
use crate::ci::github::results::{Results, Uploaded, expiry};
use crate::run::clock::Clock;

use super::context::Session;
use super::options::{Storing, Upload};

/// Uploads the files of one run: its bundle at checkpoints, and all of them at the end.
pub(crate) struct Uploader {
    results: Results,
    name: String,
    expires: Option<Timestamp>,
    checkpoints: RefCell<Checkpoints>,
}

#[derive(Default)]
struct Checkpoints {
    count: u32,
    /// The upload that is under way.
    running: Option<JoinHandle<Result<Uploaded, String>>>,
    secrets: Vec<String>,
    failed: Option<String>,
}

/// The result of an upload.
#[derive(Default)]
pub(crate) struct Stored {
    /// Whether all files were uploaded.
    pub(crate) done: bool,
    /// Secrets that the log has to mask.
    pub(crate) secrets: Vec<String>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

impl Uploader {
    /// Finds the artifact service, unless the user turned uploads off or the runner offers none.
    pub(crate) fn find(storing: Storing, name: &str, session: &Session<'_>) -> Option<Self> {
        let Storing::Ours(Upload { retention_days }) = storing else { return None };
        match Results::from_env(&session.env.lookup()) {
            Ok(results) => results.map(|results| Self {
                results,
                name: name.to_owned(),
                expires: retention_days.map(|days| expiry(days, &session.env.lookup(), Clock::start().now())),
                checkpoints: RefCell::default(),
            }),
            Err(error) => {
                session.talk.warning(&format!("the files of the run will not be uploaded: {}", told(&error)));
                None
            }
        }
    }

    /// Uploads a bundle while the run goes on. While an upload is under way, further checkpoints are skipped.
    pub(crate) fn checkpoint(&self, bundle: &Path) {
        let mut checkpoints = self.checkpoints.borrow_mut();
        if checkpoints.running.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        checkpoints.settle();
        checkpoints.count += 1;
        let name = checkpoint_name(&self.name, checkpoints.count);
        // A copy, because the next checkpoint replaces the file.
        let copy = NamedTempFile::new().and_then(|copy| fs_err::copy(bundle, copy.path()).map(|_| copy));
        let copy = match copy {
            Ok(copy) => copy,
            Err(error) => {
                checkpoints.failed = Some(error.to_string());
                return;
            }
        };
        let (results, expires) = (self.results.clone(), self.expires);
        let store = move || results.upload(&name, copy.path(), expires).map_err(|error| told(&error));
        checkpoints.running = Some(std::thread::spawn(store));
    }

    /// Uploads everything in a directory.
    pub(crate) fn store(&self, directory: PathBuf) -> Stored {
        let mut checkpoints = self.checkpoints.take();
        if checkpoints.running.as_ref().is_some_and(JoinHandle::is_finished) {
            checkpoints.settle();
        }
        let failed = checkpoints.failed.map(|why| format!("a checkpoint was not uploaded: {why}"));
        let mut stored =
            Stored { done: false, secrets: checkpoints.secrets, warnings: failed.into_iter().collect() };
        match self.store_all(directory) {
            Ok(uploaded) => {
                stored.done = true;
                stored.secrets.extend(uploaded.secrets);
            }
            Err(why) => stored.warnings.push(format!("the files of the run were not uploaded: {why}")),
        }
        stored
    }

    fn store_all(&self, directory: PathBuf) -> Result<Uploaded, String> {
        let mut zip = NamedTempFile::new().map_err(|error| error.to_string())?;
        pack(&[directory], zip.as_file_mut()).map_err(|error| error.to_string())?;
        self.results.upload(&self.name, zip.path(), self.expires).map_err(|error| told(&error))
    }
}

impl Checkpoints {
    /// Records the result of the upload that ended.
    fn settle(&mut self) {
        let Some(thread) = self.running.take() else { return };
        match thread.join() {
            Ok(Ok(uploaded)) => {
                self.secrets.extend(uploaded.secrets);
                self.failed = None;
            }
            Ok(Err(why)) => self.failed = Some(why),
            Err(_panicked) => self.failed = Some("the upload panicked".to_owned()),
        }
    }
}

fn told(error: &ArtifactError) -> String {
    let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{error}{help}")
}

/// Names a checkpoint. The attempt stays at the end, where a search for the last attempt looks for it.
fn checkpoint_name(name: &str, count: u32) -> String {
    match name.rsplit_once("-a") {
        Some((before, attempt)) => format!("{before}-c{count}-a{attempt}"),
        None => format!("{name}-c{count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_has_a_name_of_its_own() {
        assert_eq!(checkpoint_name("ll-loop-tidy-check-r7-a2", 3), "ll-loop-tidy-check-r7-c3-a2");
        assert_eq!(checkpoint_name("ll-loop-x", 1), "ll-loop-x-c1");
    }
}
