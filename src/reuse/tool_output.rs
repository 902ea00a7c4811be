//! Asks tools which ones they are: `rustc -V`, `node --version`. One that does not answer makes no key, for it is unknown then
//! whether it is the one of the earlier run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::no_key::{NoKey, ToolFailure};
use crate::base::sum::Sum;
use crate::evaluate::observation::{Stop, Stream};
use crate::process::guard_pipe::Guard;
use crate::process::signal::Cancel;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// How long a tool may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How much it may print.
const MOST_OUTPUT: usize = 1024 * 1024;

/// Asks tools in a directory, one after the other, and returns the digests of their answers.
///
/// # Errors
/// One of them is missing, fails, hangs or prints too much.
pub async fn ask_all(
    commands: &[String],
    directory: &Path,
    env: &BTreeMap<String, String>,
    cancel: &Cancel,
) -> Result<BTreeMap<String, Sum>, NoKey> {
    let mut answers = BTreeMap::new();
    for command in commands {
        let answer = ask(command, directory, env, &mut cancel.clone()).await?;
        let failed = |why| NoKey::Tool { command: command.clone(), why };
        answers.insert(command.clone(), answer.map_err(failed)?);
    }
    Ok(answers)
}

async fn ask(
    command: &str,
    directory: &Path,
    env: &BTreeMap<String, String>,
    cancel: &mut Cancel,
) -> Result<Result<Sum, ToolFailure>, NoKey> {
    let Some(argv) = shlex::split(command).filter(|words| !words.is_empty()) else {
        return Ok(Err(ToolFailure::NoCommand));
    };
    let program = Program {
        argv,
        env: env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        cwd: Some(directory.to_owned()),
        stdin: None,
        guard: Guard::default(),
    };
    let limits = ProcessLimits { end: Some((LIMIT, Stop::Timeout)), idle: None, first: None };
    // Each stream by itself: how their pieces come between each other differs from call to call.
    let (mut out, mut err, mut printed) = (Sha256::new(), Sha256::new(), 0);
    let mut hear = |stream: Stream, bytes: &[u8]| {
        printed += bytes.len();
        match stream {
            Stream::Stdout => out.update(bytes),
            Stream::Stderr => err.update(bytes),
        }
        if printed > MOST_OUTPUT { Heard::Stop(Stop::Unavailable) } else { Heard::More }
    };
    let seen = spawn::run(&program, limits, cancel, &mut hear).await;
    if let Some(why) = seen.failure {
        return Ok(Err(ToolFailure::NotStarted(why)));
    }
    match seen.stop {
        Some(Stop::Cancelled) => return Err(NoKey::Interrupted),
        Some(Stop::Timeout) => return Ok(Err(ToolFailure::TooLong)),
        Some(_) => return Ok(Err(ToolFailure::TooMuch)),
        None => {}
    }
    if seen.exit_code != 0 {
        return Ok(Err(ToolFailure::Failed(seen.exit_code)));
    }
    let mut both = Sha256::new();
    both.update(out.finalize());
    both.update(err.finalize());
    Ok(Ok(Sum::end(both)))
}
