//! Makes calls of git while a run goes on: they share their time, and end with the run.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::call::{Call, environment};
use super::error::{GitError, GitFailure};
use super::filters::{Filters, Walk, WalkQuestion};
use super::own_index::OwnIndex;
use crate::base::object::ObjectId;
use crate::evaluate::observation::{Stop, Stream};
use crate::process::clock::Clock;
use crate::process::guard_pipe::Guard;
use crate::process::signal::{Cancel, EndRequest};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// More than this is neither a list of changes nor a patch.
const MOST_OUTPUT: usize = 256 * 1024 * 1024;

/// Calls of `git` that share their time.
#[derive(Clone)]
pub(crate) struct GitCalls {
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cancel: Cancel,
    pub(crate) clock: Clock,
    pub(crate) limit: Duration,
    /// What the system says about directories that may be trusted, as it was said in each directory.
    trusted: HashMap<PathBuf, Filters>,
    /// What is turned off, where it was looked for once and for all calls.
    looked: Option<Arc<Filters>>,
}

impl GitCalls {
    /// Starts the time for calls in this environment. Which repository is meant is the user's choice.
    pub(crate) fn new(env: BTreeMap<String, String>, cancel: Cancel, limit: Duration) -> Self {
        let trusted = HashMap::new();
        Self { env: environment(env), cancel, clock: Clock::start(), limit, trusted, looked: None }
    }

    /// Runs `git` and returns everything it printed.
    pub(crate) async fn run(&mut self, directory: &Path, call: &Call) -> Result<Vec<u8>, GitError> {
        let env = self.env.clone();
        let filters = self.filters_for(call, directory, &env).await?;
        self.perform(directory, call, &filters, env, None).await
    }

    /// Begins to look for what is to be turned off in a repository, by its configuration. What the system says is known
    /// afterwards, so that other calls need not ask for it.
    pub(crate) async fn begin_walk(&mut self, directory: &Path) -> Result<Walk, GitError> {
        let mut walk = Walk::new(directory, self.env.clone());
        self.step(&mut walk).await?;
        Ok(walk)
    }

    /// Returns calls in one repository that take place one right after the other: what a look has just found is turned off
    /// for all of them.
    pub(crate) fn looked(&self, filters: Filters) -> Self {
        Self { looked: Some(Arc::new(filters)), ..self.clone() }
    }

    /// The same for a repository in which nobody has looked yet. Calls with an index of our own see it through that.
    pub(crate) async fn look(&mut self, directory: &Path, own: Option<&OwnIndex>) -> Result<Self, GitError> {
        let mut env = self.env.clone();
        env.extend(own.map(|own| own.env.clone()).into_iter().flatten());
        let filters = self.filters_of_files(directory, &env).await?;
        Ok(self.looked(filters))
    }

    /// Tells whether the repository knows filters.
    pub(crate) async fn has_filters(&mut self, directory: &Path) -> Result<bool, GitError> {
        let env = self.env.clone();
        Ok(self.filters_of_files(directory, &env).await?.is_any())
    }

    /// Gives `git` something to read, and returns everything it printed.
    pub(crate) async fn feed(
        &mut self,
        directory: &Path,
        call: &Call,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, GitError> {
        let env = self.env.clone();
        let filters = self.filters_for(call, directory, &env).await?;
        self.perform(directory, call, &filters, env, Some(input)).await
    }

    /// Runs `git` with an index of our own, gives it something to read, and returns everything it printed.
    pub(crate) async fn run_in(
        &mut self,
        own: &OwnIndex,
        directory: &Path,
        call: &Call,
        input: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, GitError> {
        let mut env = self.env.clone();
        env.extend(own.env.clone());
        let filters = self.filters_for(call, directory, &env).await?;
        self.perform(directory, call, &filters, env, input).await
    }

    /// The same for a call that prints an id.
    pub(crate) async fn id_in(
        &mut self,
        own: &OwnIndex,
        directory: &Path,
        call: &Call,
    ) -> Result<ObjectId, GitError> {
        let printed = self.run_in(own, directory, call, None).await?;
        Ok(ObjectId::parse(String::from_utf8_lossy(&printed).trim())?)
    }

    /// Begins with new time.
    pub(crate) fn again(&mut self) {
        self.clock = Clock::start();
    }

    /// Returns what is to be turned off for a call in this environment, as it is now.
    async fn filters_for(
        &mut self,
        call: &Call,
        directory: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Filters, GitError> {
        if self.looked.is_some() || call.reads_files() {
            return self.filters_of_files(directory, env).await;
        }
        if let Some(known) = self.trusted.get(directory) {
            return Ok(known.clone());
        }
        let trusted = self.walked(Walk::about_trust(directory, self.env.clone())).await?;
        self.trusted.insert(directory.to_owned(), trusted.clone());
        Ok(trusted)
    }

    /// Returns what is to be turned off where git reads files.
    async fn filters_of_files(
        &mut self,
        directory: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Filters, GitError> {
        match &self.looked {
            Some(looked) => Ok(looked.as_ref().clone()),
            None => self.walked(Walk::new(directory, env.clone())).await,
        }
    }

    /// Looks to the end, and returns what is to be turned off.
    async fn walked(&mut self, mut walk: Walk) -> Result<Filters, GitError> {
        self.finish_walk(&mut walk).await?;
        Ok(walk.filters())
    }

    /// Looks to the end.
    pub(crate) async fn finish_walk(&mut self, walk: &mut Walk) -> Result<(), GitError> {
        while self.step(walk).await? {}
        Ok(())
    }

    /// Makes the next call of a walk, if there is one.
    async fn step(&mut self, walk: &mut Walk) -> Result<bool, GitError> {
        let Some(WalkQuestion { directory, env, call, filters }) = walk.question()? else { return Ok(false) };
        let printed = self.perform(&directory, &call, &filters, env, None).await;
        walk.answer(printed)?;
        Ok(true)
    }

    async fn perform(
        &mut self,
        directory: &Path,
        call: &Call,
        filters: &Filters,
        env: BTreeMap<String, String>,
        stdin: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, GitError> {
        // Starting it in the directory itself costs more, and is left to names that are not text.
        let named = directory.to_str();
        let program = Program {
            argv: call.words(named, filters.settings()),
            env: env.into_iter().collect(),
            cwd: if named.is_some() { None } else { Some(directory.to_owned()) },
            stdin,
            guard: Guard::default(),
        };
        let limits = ProcessLimits { end: Some((self.left()?, Stop::Timeout)), idle: None, first: None };
        let mut printed = Vec::new();
        let mut keep = |stream: Stream, bytes: &[u8]| {
            // What goes beyond the limit is still read: git would stop at a full pipe, and seem to
            // take too long.
            if stream == Stream::Stdout && printed.len() <= MOST_OUTPUT {
                printed.extend_from_slice(bytes);
            }
            Heard::More
        };
        let seen = spawn::run(&program, limits, &mut self.cancel, &mut keep).await;
        if let Some(why) = seen.failure {
            return Err(GitError::NotStarted(why));
        }
        match seen.stop {
            Some(Stop::Cancelled) => return Err(GitError::Cancelled),
            Some(_) => return Err(GitError::TooLong(self.limit)),
            None => {}
        }
        if printed.len() > MOST_OUTPUT {
            return Err(GitError::Unreadable("too much has changed in it".to_owned()));
        }
        if seen.exit_code == 0 {
            return Ok(printed);
        }
        let said = seen.stderr.as_str().to_owned();
        Err(GitError::of(GitFailure { command: call.command(), code: Some(seen.exit_code), said }))
    }

    /// Reads a file to its end, in the time of the calls. Reading holds up this thread, so others get their turn between
    /// two pieces.
    pub(crate) async fn read(
        &self,
        file: &mut impl Read,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), GitError> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            tokio::task::yield_now().await;
            self.left()?;
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => take(&buffer[..count]),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns how much time is left, or why there is none.
    pub(crate) fn left(&self) -> Result<Duration, GitError> {
        if self.cancel.request() != EndRequest::None {
            return Err(GitError::Cancelled);
        }
        let left = self.limit.saturating_sub(self.clock.elapsed());
        if left.is_zero() { Err(GitError::TooLong(self.limit)) } else { Ok(left) }
    }
}
