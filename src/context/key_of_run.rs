//! Finds the key of a run, by which its artifacts, its status and its resumption are told from those of other runs. What
//! a job does with several processes is counted in the temporary directory of the job, which all of them share.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use uuid::Uuid;

use super::Session;
use super::audience::Audience;
use super::environment::PARENT;
use super::options::{KeyOption, RunOptions};
use crate::base::run_key::RunKey;
use crate::base::sum::Sum;
use crate::ci::Provider;
use crate::ci::job::JobId;
use crate::files::read;
use crate::forge::github::artifacts::{PREFIX, key_of};

/// The most runs of one loop that are counted in a job.
const MOST: u32 = 1000;

/// Returns the key of a run of a loop in this job; `stem` is the loop as it stands in file names. It is the same whenever this process asks.
pub(crate) fn of_run(options: &RunOptions, stem: &str, session: &Session<'_>) -> Option<RunKey> {
    let given = match &options.key {
        KeyOption::Known(key) => return Some(key.clone()),
        KeyOption::Given(given) => given.as_deref(),
    };
    let provider = match &options.audience {
        Audience::Ci(provider) => provider.clone(),
        Audience::Person => Provider::detect(&session.env.lookup()),
    };
    let job = provider.job().id;
    let key = of_job(given, job.as_ref())?;
    // What an action of another run starts is a part of that run.
    let counts = options.audience.is_ci() && key.number() == 1 && session.env.get(PARENT).is_none();
    let number = job.filter(|_| counts).and_then(|job| number(&job, stem, &key, session));
    Some(match number {
        Some(number) => key.nth(number),
        None => key,
    })
}

/// Returns the key that a run to be resumed has to have. Where neither a job nor the caller names one, it has to be the only
/// one.
pub(crate) fn wanted(options: &RunOptions, stem: Option<&str>, session: &Session<'_>) -> Option<RunKey> {
    match (stem, &options.key) {
        (Some(stem), _) => of_run(options, stem, session),
        (None, KeyOption::Known(key)) => Some(key.clone()),
        (None, KeyOption::Given(given)) => {
            let job = Provider::detect(&session.env.lookup()).job().id;
            of_job(given.as_deref(), job.as_ref())
        }
    }
}

/// Returns the key of a run that goes on from an artifact. It is reported in place of the run that it continues, and what it
/// leaves has a name of its own.
pub(crate) fn continuing(
    options: &RunOptions,
    stem: &str,
    artifact: &str,
    session: &Session<'_>,
) -> KeyOption {
    let Audience::Ci(provider) = &options.audience else { return options.key.clone() };
    let (Some(key), Some(job)) = (of_run(options, stem, session), provider.job().id) else {
        return options.key.clone();
    };
    let is_of_same_name = artifact == format!("{PREFIX}{stem}-{}", job.name_for(&key));
    KeyOption::Known(match key_of(artifact, stem) {
        _ if is_of_same_name => key.after_itself(),
        Some(other) => key.continuing(other),
        None => key,
    })
}

/// Returns the key that a job has for its runs of whatever loop, before they are counted.
pub(crate) fn of_job(given: Option<&str>, job: Option<&JobId>) -> Option<RunKey> {
    match (given, job) {
        (_, Some(job)) => Some(RunKey::new(given, &job.name)),
        (Some(given), None) => Some(RunKey::new(Some(given), "")),
        (None, None) => None,
    }
}

/// Returns what tells this job from every other one on this machine, also from other legs of its matrix.
pub(crate) fn mark_of_job(session: &Session<'_>) -> Option<String> {
    let path = directory(session)?.join("job");
    let mark = Uuid::new_v4().to_string();
    match create(&path, &mark) {
        Ok(()) => Some(mark),
        Err(_there) => left_word(&path),
    }
}

/// Counts the runs of a loop with this key in the job, this one included.
fn number(job: &JobId, stem: &str, key: &RunKey, session: &Session<'_>) -> Option<u32> {
    // The ids of processes repeat where each is in a container of its own.
    static THIS_PROCESS: OnceLock<String> = OnceLock::new();
    let this = THIS_PROCESS.get_or_init(|| Uuid::new_v4().to_string());
    let subject = Sum::of(format!("{job}\0{stem}\0{key}").as_bytes());
    let uses = directory(session)?.join("runs").join(subject.to_string());
    for number in 1..=MOST {
        let path = uses.join(number.to_string());
        match create(&path, this) {
            Ok(()) => return Some(number),
            // Where nothing can be counted, a run has the key of a first one.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            // A process that asks twice is counted once.
            Err(_there) if left_word(&path).is_some_and(|who| who == *this) => return Some(number),
            Err(_there) => {}
        }
    }
    None
}

/// Returns the directory in which the processes of a job leave word for each other.
fn directory(session: &Session<'_>) -> Option<PathBuf> {
    // The runner empties this directory at the end of each job, so that no count reaches the next
    // one.
    session.env.get("RUNNER_TEMP").map(|temp| Path::new(temp).join("ll-loop"))
}

/// Reads what another process of the job left, which may have been in a container.
fn left_word(path: &Path) -> Option<String> {
    read::bytes(path, read::MIB).ok().and_then(|word| String::from_utf8(word).ok())
}

/// Creates a file that must not exist, whole at once.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(directory)?;
    // Written beside and then put there: whoever finds the name must not read half of a mark.
    let mut file = crate::files::transient::file_in(0o600, directory)?;
    file.write_all(text.as_bytes())?;
    file.persist_noclobber(path).map(drop).map_err(|error| error.error)
}
