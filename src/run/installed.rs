//! Looks at the host that is installed before it is called: which version it is, and whether it has an account. It is
//! asked outside of the checkout, once for each program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::world::{Installed, ProgramIdentity, World};
use crate::base::explanation::Explanation;
use crate::base::text::one_line;
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::files::transient;
use crate::host::{Host, Version};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// How long a host may take to answer. One that is written for Node.js takes seconds to start.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// Returns the version of a host; nothing if it does not say.
///
/// # Errors
/// It is too old, with what to do about it.
pub(super) async fn version(host: &dyn Host, world: &mut World) -> Result<Option<Version>, Explanation> {
    let Some(installed) = look(host, world).await else { return Ok(None) };
    let version = installed.version;
    let release = host.release();
    match version.filter(|version| *version < release.oldest) {
        Some(version) => Err(Explanation::new(format!(
            "{} {version} is too old: {} is the oldest version that works; `{}` installs the newest (npm silently takes an \
             older one where Node.js is older than 22)",
            host.name(),
            release.oldest,
            release.install
        ))),
        None => Ok(version),
    }
}

/// Says which version a host is, for a message.
pub(super) async fn described(host: &dyn Host, world: &mut World) -> String {
    let said = look(host, world).await.map(|installed| installed.said).filter(|said| !said.is_empty());
    said.unwrap_or_else(|| "of unknown version".to_owned())
}

/// Asks a host whether it has an account, where it has a way to say so.
///
/// # Errors
/// It has none, with what to do about it.
pub(super) async fn account(host: &dyn Host, world: &mut World) -> Result<(), Explanation> {
    if world.agents.broker.is_some() {
        // It is called with a token of ours.
        return Ok(());
    }
    let is_set = |name: &str| world.env.get(name).is_some_and(|value| !value.is_empty());
    let Some(preflight) = host.preflight(&is_set) else { return Ok(()) };
    let Some(installed) = look(host, world).await.filter(|installed| !installed.has_account) else {
        return Ok(());
    };
    // An account may be a key in the environment, which the host is called with as well.
    let env = world.env.clone();
    // Without an answer there is no reason to believe that there is no account; the call will tell.
    let Some(seen) = asked(&installed.identity.0, preflight.arguments, env, world).await else {
        return Ok(());
    };
    // Only the known answer counts: a host that fails otherwise may still have an account.
    if seen.exit_code == 1 && seen.stderr.as_str().lines().any(|line| line.trim() == preflight.denial) {
        return Err(Explanation::new(preflight.advice.to_owned()));
    }
    // Asked once; an account does not go away in the middle of a run.
    world.agents.installed = Some(Installed { has_account: true, ..installed });
    Ok(())
}

/// Returns what is known of the program of a host, and asks it where it is another one than before.
async fn look(host: &dyn Host, world: &mut World) -> Option<Installed> {
    let path = spawn::find(host.name(), world.env.get("PATH").map(String::as_str))?;
    let path = std::path::absolute(path).ok()?;
    let identity = identity(path)?;
    if let Some(known) = world.agents.installed.as_ref().filter(|known| known.identity == identity) {
        return Some(known.clone());
    }
    // With our environment, which has no secrets: a version needs none.
    let seen = asked(&identity.0, &["--version"], world.own_env.clone(), world).await?;
    let said = if seen.succeeded() { one_line(seen.stdout.as_str(), 60) } else { String::new() };
    let version = host.release().read(&said);
    let installed = Installed { identity, version, said, has_account: false };
    world.agents.installed = Some(installed.clone());
    Some(installed)
}

/// Tells which program lies at a path.
fn identity(path: PathBuf) -> Option<ProgramIdentity> {
    use std::os::unix::fs::MetadataExt as _;
    let of = fs_err::metadata(&path).ok()?;
    Some((path, of.ino(), of.size(), of.mtime(), of.mtime_nsec()))
}

/// Asks a program something short, in a directory where it finds nothing.
async fn asked(
    path: &Path,
    arguments: &[&str],
    mut env: BTreeMap<String, String>,
    world: &mut World,
) -> Option<Observation> {
    // In an empty directory, so that nothing of a project counts or runs.
    let nowhere = transient::directory("").ok()?;
    let path = path.to_str()?.to_owned();
    env.insert("PWD".to_owned(), nowhere.path().to_string_lossy().into_owned());
    let program = Program {
        argv: std::iter::once(path).chain(arguments.iter().map(|argument| (*argument).to_owned())).collect(),
        env: env.into_iter().collect(),
        cwd: Some(nowhere.path().to_owned()),
        stdin: None,
        guard: world.guard.clone(),
    };
    let limits = ProcessLimits { end: Some((ANSWER_TIME, Stop::Timeout)), ..ProcessLimits::default() };
    let mut ignored = |_: Stream, _: &[u8]| Heard::More;
    // Whatever it prints is not part of the run.
    Some(spawn::run(&program, limits, &mut world.cancel, &mut ignored).await)
}
