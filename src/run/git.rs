//! Makes the calls of [`crate::process::git`] while a run goes on: they share their time, and end with the run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::text::one_line;
use crate::evaluate::observation::{Stop, Stream};
use crate::process::git::{Call, Filters, Walk, environment};
use crate::process::guard::Guard;
use crate::process::signal::{Cancel, Request};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

use super::clock::Clock;
use super::world::World;

/// More than this is neither a list of changes nor a patch.
const MOST_OUTPUT: usize = 256 * 1024 * 1024;

const CANCELLED: &str = "the run is to end";

/// Calls of `git` that share their time.
pub(super) struct GitCalls {
    pub(super) env: BTreeMap<String, String>,
    pub(super) cancel: Cancel,
    pub(super) clock: Clock,
    pub(super) limit: Duration,
    /// The filters of the repositories that were looked at.
    known: HashMap<PathBuf, Filters>,
}

impl GitCalls {
    /// Starts the time for calls in the environment of a run. Which repository is meant is the user's choice.
    pub(super) fn new(world: &World, limit: Duration) -> Self {
        Self::with(world.env.clone(), world.cancel.clone(), limit)
    }

    /// Starts the time for calls.
    pub(super) fn with(env: BTreeMap<String, String>, cancel: Cancel, limit: Duration) -> Self {
        Self { env: environment(env), cancel, clock: Clock::start(), limit, known: HashMap::new() }
    }

    /// Runs `git` and returns everything it printed.
    pub(super) async fn run(&mut self, directory: &Path, call: &Call) -> Result<Vec<u8>, String> {
        let filters = if let Some(known) = self.known.get(directory) {
            known.clone()
        } else {
            let found = self.look(directory).await?;
            self.known.insert(directory.to_owned(), found.clone());
            found
        };
        let env = self.env.clone();
        self.perform(directory, call, &filters, env).await
    }

    /// Looks for the filters that are to be turned off.
    async fn look(&mut self, directory: &Path) -> Result<Filters, String> {
        let mut inside = self.env.clone();
        // An index of our own is not yet there, or is one of another moment.
        inside.remove("GIT_INDEX_FILE");
        let outside = Walk::environment(&inside);
        let mut walk = Walk::new(directory);
        while let Some(directory) = walk.step()? {
            let none = Filters::default();
            let found = self.perform(&directory, &Walk::configuration(), &none, outside.clone()).await?;
            walk.configured(&found)?;
            // Where there is no repository, there is none inside; what is wrong with one is said by the call itself.
            let listed = self.perform(&directory, &Walk::inside(), &walk.trusted(), inside.clone()).await;
            walk.listed(&directory, &listed.unwrap_or_default());
        }
        Ok(walk.filters())
    }

    async fn perform(
        &mut self,
        directory: &Path,
        call: &Call,
        filters: &Filters,
        env: BTreeMap<String, String>,
    ) -> Result<Vec<u8>, String> {
        // Starting it in the directory itself costs more, and is left to names that are no text.
        let named = directory.to_str();
        let program = Program {
            argv: call.words(named, filters),
            env: env.into_iter().collect(),
            cwd: if named.is_some() { None } else { Some(directory.to_owned()) },
            stdin: None,
            guard: Guard::default(),
        };
        let limits = ProcessLimits { end: Some((self.left()?, Stop::Timeout)), idle: None };
        let mut printed = Vec::new();
        let mut keep = |stream: Stream, bytes: &[u8]| {
            if stream == Stream::Stdout && printed.len() <= MOST_OUTPUT {
                printed.extend_from_slice(bytes);
            }
            Heard::More
        };
        let seen = spawn::run(&program, limits, &mut self.cancel, &mut keep).await;
        if let Some(why) = seen.failure {
            return Err(why);
        }
        match seen.stop {
            Some(Stop::Cancelled) => return Err(CANCELLED.to_owned()),
            Some(_) => return Err(self.too_long()),
            None => {}
        }
        if printed.len() > MOST_OUTPUT {
            return Err("too much has changed in it".to_owned());
        }
        if seen.exit_code == 0 {
            return Ok(printed);
        }
        let said = seen.stderr.as_str();
        let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let why = why.trim().trim_start_matches("fatal: ");
        Err(format!("`git {}` failed (exit {}): {}", call.command(), seen.exit_code, one_line(why, 200)))
    }

    /// Returns how much time is left, or why there is none.
    pub(super) fn left(&self) -> Result<Duration, String> {
        if self.cancel.request() != Request::None {
            return Err(CANCELLED.to_owned());
        }
        let left = self.limit.saturating_sub(self.clock.elapsed());
        if left.is_zero() { Err(self.too_long()) } else { Ok(left) }
    }

    fn too_long(&self) -> String {
        format!("it took more than {}", crate::base::time::human(self.limit))
    }
}
