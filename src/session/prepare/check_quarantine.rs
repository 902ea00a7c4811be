//! Reads which checks of a loop are in quarantine. In CI, only what is committed counts: an earlier step of the job may have
//! written the file, and only people may excuse a check.

use std::path::PathBuf;

use crate::base::name::StateName;
use crate::base::text::{listed_in_part, one_line};
use crate::base::time::Timestamp;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::DIRECTORY;
use crate::engine::check_history::QuarantinedCheck;
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::machine::{Machine, Target};
use crate::repository;
use crate::reuse::quarantine::{self, FILE, LoopQuarantine, QuarantineEntry, WrongQuarantine};
use crate::reuse::quarantine_file::{self, QuarantineFileError};
use crate::session::prepare::prepared::Prepared;

/// The file as it is committed, from the directory with loops.
const COMMITTED: &str = "HEAD:./.loops/quarantine.yaml";

/// Tells whether a loop has a check of a name.
pub(crate) fn has_check(machine: &Machine, state: &StateName) -> bool {
    match machine.find(state) {
        Some(Target::Step(step)) => machine.step(step).is_check,
        Some(Target::End(_)) | None => false,
    }
}

/// Returns the checks of a loop whose failures are excused now, and says which are, and which are not any more.
///
/// # Errors
/// The file promises protection: whoever wrote that believes that the run has it.
pub(crate) fn in_force(
    prepared: &Prepared,
    in_ci: bool,
    now: Timestamp,
    session: &Session<'_>,
) -> Result<Vec<QuarantinedCheck>, Error> {
    let root = &prepared.located.root;
    let loops = root.join(DIRECTORY);
    let is_there = || loops.join(FILE).symlink_metadata().is_ok();
    let entries = if !is_there() {
        Ok(Vec::new())
    } else if in_ci {
        committed(&repository::at(root, session))
    } else {
        quarantine_file::entries(&loops)
    };
    let entries = match entries {
        Ok(entries) => entries,
        Err(why @ QuarantineFileError::Wrong(WrongQuarantine::Promise { .. })) => return Err(unusable(&why)),
        Err(why) => {
            let why = one_line(&why.to_string(), 300);
            session
                .talk
                .warning(&format!("{DIRECTORY}/{FILE} is not used, and nothing is in quarantine: {why}"));
            return Ok(Vec::new());
        }
    };
    let found = quarantine::of_loop(&entries, prepared.machine.name.as_str(), now);
    say(&found, &prepared.machine, session);
    Ok(found.in_force)
}

/// Returns the file of a project where it promises protection, with what is wrong, for whoever looks at all files of the project.
/// Any other mistake makes it excuse nothing, of which a run warns.
pub(crate) fn broken_promise(session: &Session<'_>) -> Option<(PathBuf, Error)> {
    let store = session.reuse_store().folder();
    let loops = store.parent()?;
    let why = quarantine_file::entries(loops).err()?;
    let is_promise = matches!(&why, QuarantineFileError::Wrong(WrongQuarantine::Promise { .. }));
    is_promise.then(|| (loops.join(FILE), unusable(&why)))
}

/// Says that the file cannot be used.
pub(crate) fn unusable(why: &QuarantineFileError) -> Error {
    Error::refused(format!("cannot use {DIRECTORY}/{FILE}: {why}"))
}

/// Reads the file of the commit; one that is in none excuses nothing.
fn committed(git: &Git) -> Result<Vec<QuarantineEntry>, QuarantineFileError> {
    let call = Call::new("cat-file").with(&["blob"]).revision(COMMITTED);
    let not_there = |_| std::io::Error::new(std::io::ErrorKind::NotFound, "it is in no commit");
    let text = String::from_utf8(git.bytes(&call, &[]).map_err(not_there)?);
    Ok(quarantine::parse(&text.map_err(|_| QuarantineFileError::NoText)?)?)
}

fn say(found: &LoopQuarantine, machine: &Machine, session: &Session<'_>) {
    for check in &found.in_force {
        session.talk.note(&format!("`{}` is in quarantine {}", check.state, check.words()));
    }
    for check in &found.expired {
        let QuarantinedCheck { state, until, owner, .. } = check;
        let owner = one_line(owner, 80);
        session.talk.warning(&format!(
            "the quarantine of `{state}` ended on {until} ({owner}): it fails like any other"
        ));
    }
    let is_check = |check: &&QuarantinedCheck| has_check(machine, &check.state);
    let others: Vec<&str> =
        found.in_force.iter().filter(|check| !is_check(check)).map(|check| check.state.as_str()).collect();
    if !others.is_empty() {
        session.talk.warning(&format!(
            "the quarantine of {} has no effect: `{}` has no such check",
            listed_in_part(&others),
            machine.name
        ));
    }
}
