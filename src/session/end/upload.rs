//! Uploads the files of a run as artifacts of the workflow's run, where the runner gives the token for it: GitHub's gives
//! it to actions that are containers or JavaScript, and keeps it from `run:` steps; act, Gitea and Forgejo give it to all.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use crate::base::explanation::Explanation;
use crate::base::time::Timestamp;
use crate::ci::Provider;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::options::{Storing, Upload};
use crate::files::{read, transient};
use crate::forge::archive::{comment, pack_with};
use crate::forge::github::artifact_fault::ArtifactError;
use crate::forge::github::results::{Results, Uploaded, expiry, uncounted_job};
use crate::process::clock::Clock;

/// The most bytes of an artifact that is fetched to see whose it is.
// A larger one counts as somebody else's, and is not replaced.
const MAX_LOOK: u64 = 1 << 30;

/// Uploads the files of one run: its bundle at checkpoints, and all of them at the end.
pub(crate) struct Uploader {
    results: Results,
    name: String,
    mark: ArtifactMark,
    expires: Option<Timestamp>,
    checkpoints: RefCell<CheckpointUploads>,
}

/// What an artifact says of who stored it, in the comment of its zip file.
struct ArtifactMark {
    /// The run of the loop.
    instance: String,
    /// The job, where its attempts are not counted: then it stores under the same name when it runs again.
    job: Option<String>,
}

impl ArtifactMark {
    fn of(instance: &str, session: &Session<'_>) -> Self {
        Self { instance: instance.to_owned(), job: uncounted_job(&session.env.lookup()) }
    }

    fn text(&self) -> String {
        let job = self.job.as_deref().map_or_else(String::new, |job| format!(" job {job}"));
        format!("ll-loop run {}{job}", self.instance)
    }

    /// Tells whether this run, or this job before it ran again, left this mark.
    fn is_ours(&self, left: &str) -> bool {
        let Some(left) = left.strip_prefix("ll-loop run ") else { return false };
        let (instance, job) = left.split_once(" job ").map_or((left, None), |(run, job)| (run, Some(job)));
        instance == self.instance || (job.is_some() && job == self.job.as_deref())
    }
}

#[derive(Default)]
struct CheckpointUploads {
    count: u32,
    /// The upload that is under way.
    running: Option<JoinHandle<Result<Uploaded, Explanation>>>,
    secrets: Vec<String>,
    failed: Option<String>,
}

/// The result of an upload.
#[derive(Default)]
pub(crate) struct UploadResult {
    /// Why the files were not uploaded.
    pub(crate) failed: Option<String>,
    /// Secrets that the log has to mask.
    pub(crate) secrets: Vec<String>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

impl Uploader {
    /// Finds the artifact service, unless the user turned uploads off or the runner offers none.
    pub(crate) fn find(storing: Storing, name: &str, instance: &str, session: &Session<'_>) -> Option<Self> {
        let Storing::Ours(Upload { retention_days }) = storing else { return None };
        match Results::from_env(&session.env.lookup()) {
            Ok(results) => results.map(|results| Self {
                mark: ArtifactMark::of(instance, session),
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
        let copy = transient::file("", "").and_then(|copy| read::copy(bundle, copy.path()).map(|()| copy));
        let copy = match copy {
            Ok(copy) => copy,
            Err(error) => {
                checkpoints.failed = Some(error.to_string());
                return;
            }
        };
        let (results, expires) = (self.results.clone(), self.expires);
        let store = move || {
            results.upload(&name, copy.path(), expires).map_err(|error| Explanation::new(told(&error)))
        };
        checkpoints.running = Some(std::thread::spawn(store));
    }

    /// Uploads everything in a directory.
    pub(crate) fn store(&self, directory: PathBuf) -> UploadResult {
        let mut checkpoints = self.checkpoints.take();
        // One that is still under way is not waited for: what follows stores all that it would.
        if checkpoints.running.as_ref().is_some_and(JoinHandle::is_finished) {
            checkpoints.settle();
        }
        let failed = checkpoints.failed.map(|why| format!("a checkpoint was not uploaded: {why}"));
        let mut stored = UploadResult {
            failed: None,
            secrets: checkpoints.secrets,
            warnings: failed.into_iter().collect(),
        };
        match self.store_all(directory) {
            Ok(uploaded) => stored.secrets.extend(uploaded.secrets),
            Err(why) => stored.failed = Some(why.into()),
        }
        stored
    }

    fn store_all(&self, directory: PathBuf) -> Result<Uploaded, Explanation> {
        let mut zip = transient::file("", "")?;
        let mark = self.mark.text();
        pack_with(&[directory], &mark, zip.as_file_mut())?;
        let stored = match self.results.upload(&self.name, zip.path(), self.expires) {
            // A job that runs again has the name that it had before. What another job has stored under it must stay.
            Err(ArtifactError::Conflict { .. }) if self.is_there_as_ours() => {
                self.results.replace(&self.name, zip.path(), self.expires)
            }
            stored => stored,
        };
        stored.map_err(|error| Explanation::new(told(&error)))
    }

    /// Tells whether what has our name was stored by this run, or by this job before it ran again.
    fn is_there_as_ours(&self) -> bool {
        let look = |mut into: File| {
            self.results.download(&self.name, &mut into, MAX_LOOK).ok()?;
            Some(self.mark.is_ours(&comment(&mut into)))
        };
        tempfile::tempfile().ok().and_then(look).unwrap_or(false)
    }
}

impl Session<'_> {
    /// Uploads the report directory of a run that could not do it itself, and tells whether this step may: as a run in a
    /// container, which the runner gives no access.
    ///
    /// # Errors
    /// The files were not uploaded.
    pub fn store_reports(
        &self,
        upload: Upload,
        name: &str,
        instance: &str,
        directory: &Path,
    ) -> Result<bool, Error> {
        let Some(uploader) = Uploader::find(Storing::Ours(upload), name, instance, self) else {
            return Ok(false);
        };
        let stored = uploader.store(directory.to_owned());
        let provider = Provider::detect(&self.env.lookup());
        for line in stored.secrets.iter().filter_map(|secret| provider.dialect().mask(secret)) {
            self.talk.ci_line(&line, &provider);
        }
        if let Some(why) = stored.failed {
            return Err(
                Error::refused(format!("the reports of the run are not stored: {why}")).of_kind(Kind::Failed)
            );
        }
        let told = provider.announce(&[("stored", "true".to_owned())]);
        told.map(|()| true).map_err(|error| Error::failed("cannot tell that the reports are stored", &error))
    }
}

impl CheckpointUploads {
    /// Records the result of the upload that ended.
    fn settle(&mut self) {
        let Some(thread) = self.running.take() else { return };
        match thread.join() {
            Ok(Ok(uploaded)) => {
                self.secrets.extend(uploaded.secrets);
                self.failed = None;
            }
            Ok(Err(why)) => self.failed = Some(why.into()),
            Err(_panicked) => self.failed = Some("the upload panicked".to_owned()),
        }
    }
}

fn told(error: &ArtifactError) -> String {
    let help = error.help().map_or_else(String::new, |help| format!("; {help}"));
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
    fn what_a_run_stored_it_may_replace_and_what_its_job_stored_before_it_ran_again() {
        let mark = |instance: &str, job: Option<&str>| ArtifactMark {
            instance: instance.to_owned(),
            job: job.map(str::to_owned),
        };
        let ours = mark("main-1", Some("57"));
        assert!(ours.is_ours(&mark("main-1", Some("57")).text()));
        assert!(ours.is_ours(&mark("main-0", Some("57")).text()));
        assert!(!ours.is_ours(&mark("main-0", Some("58")).text()));
        assert!(!ours.is_ours(&mark("main-0", None).text()));
        assert!(!ours.is_ours("") && !ours.is_ours("main-1"));
        let counted = mark("main-1", None);
        assert!(counted.is_ours(&counted.text()));
        assert!(!counted.is_ours(&mark("main-0", None).text()));
        assert!(!counted.is_ours(&mark("main-0", Some("57")).text()));
    }

    #[test]
    fn a_checkpoint_has_a_name_of_its_own() {
        assert_eq!(checkpoint_name("ll-loop-tidy-check-r7-a2", 3), "ll-loop-tidy-check-r7-c3-a2");
        assert_eq!(checkpoint_name("ll-loop-x", 1), "ll-loop-x-c1");
    }
}
