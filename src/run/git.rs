//! Calls `git` without changing the repository, and without a helper, a prompt or a lock.

use std::path::Path;
use std::time::Duration;

use crate::base::text::one_line;
use crate::evaluate::observation::{Stop, Stream};
use crate::process::signal::{Cancel, Request};
use crate::process::spawn::{self, Heard, Limits, Program};

use super::World;
use super::clock::Clock;

/// More than this is neither a list of changes nor a patch.
const MOST_OUTPUT: usize = 256 * 1024 * 1024;

/// Settings that would make `git` start helpers.
const SETTINGS: [&str; 4] = ["-c", "core.fsmonitor=false", "-c", "core.untrackedCache=keep"];

/// Variables that change how `git` reads paths, and no others: which repository is meant is the user's choice.
const UNSET: [&str; 4] =
    ["GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

const CANCELLED: &str = "the run is to end";

/// Calls of `git` that share their time.
pub(super) struct Git {
    pub(super) env: Vec<(String, String)>,
    pub(super) cancel: Cancel,
    pub(super) clock: Clock,
    pub(super) limit: Duration,
}

impl Git {
    /// Starts the time for calls in the environment of a run.
    pub(super) fn new(world: &World, limit: Duration) -> Self {
        let mut env = world.env.clone();
        env.retain(|name, _| !UNSET.contains(&name.as_str()));
        for (name, value) in [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")] {
            env.insert(name.to_owned(), value.to_owned());
        }
        Self { env: env.into_iter().collect(), cancel: world.cancel.clone(), clock: Clock::start(), limit }
    }

    /// Runs `git` and returns everything it printed.
    pub(super) async fn run(&mut self, directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
        // Starting it in the directory itself costs more, and is left to names that are no text.
        let named = directory.to_str();
        let place = named.map(|directory| ["-C", directory]);
        let words = ["git"].iter().chain(place.iter().flatten()).chain(&SETTINGS).chain(arguments);
        let program = Program {
            argv: words.map(|word| (*word).to_owned()).collect(),
            env: self.env.clone(),
            cwd: if named.is_some() { None } else { Some(directory.to_owned()) },
            stdin: None,
        };
        let limits = Limits { end: Some((self.left()?, Stop::Timeout)), idle: None };
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
        Err(format!(
            "`git {}` failed (exit {}): {}",
            arguments_shown(arguments),
            seen.exit_code,
            one_line(why, 200)
        ))
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

/// Returns the word that people know a call of `git` by.
fn arguments_shown<'a>(arguments: &[&'a str]) -> &'a str {
    arguments.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default()
}
