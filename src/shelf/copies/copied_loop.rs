//! `ll-loop add github:…`: copies a loop of another repository with everything that it is made of.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::gather::{CopyFiles, Gathered, gather};
use super::store::{self, LoopChange};
use super::{RequestedLoop, copy_summary, failed, home, server};
use crate::base::sum::Sum;
use crate::base::text::{one_line, plural};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::talk::Silence;
use crate::definition::load::name_below;
use crate::definition::vendored::{COPY, CopiedFile, Copies, LockedLoop, REMOTE, SharedName};
use crate::forge::github::contents::{MeantCommit, ServerRepository};
use crate::forge::github::workflow_event::short;
use crate::git::call::Call;
use crate::machine::abilities::Abilities;
use crate::process::clock::Clock;
use crate::repository;
use crate::session::prepare::binding;

/// Copies the loop that a text names, and returns what a person has to know about it. `accept` takes also what a tag
/// leads to that has moved.
///
/// # Errors
/// The server does not give it, it is not a loop, or it may not be copied.
pub(crate) fn add(text: &str, accept: Copies, session: &Session<'_>) -> Result<String, Error> {
    let asked = RequestedLoop::parse(text)?;
    let policy = binding::acting(session)?;
    policy.source(asked.name.repository()).map_err(|refusal| binding::refused(&refusal))?;
    let loops = home(session);
    let (api, server) = server(session)?;
    let what = format!("cannot add `{}`", asked.name);
    let origin =
        ServerRepository::open(&api, asked.name.repository()).map_err(|error| failed(&what, &error))?;
    let name = SharedName::parse(&format!("{}/{}", origin.name(), asked.name.path()))
        .map_err(|error| Error::failed(&what, &error))?;
    check_name(&name)?;
    // A repository that was renamed is what it is now.
    policy.source(name.repository()).map_err(|refusal| binding::refused(&refusal))?;
    let source = format!("{REMOTE}{name}");
    let lock = store::lock(&loops)?;
    let before = lock.loops.into_iter().find(|one| one.source == source);
    if let Some(before) = before.as_ref().filter(|before| before.server != server) {
        return Err(of_another_server(before, &server));
    }
    let meant = origin.resolve(&asked.reference).map_err(|error| failed(&what, &error))?;
    if let Some(before) = &before
        && has_moved(before, &meant)
        && accept == Copies::Locked
    {
        return Err(moved(before, &meant));
    }
    let contents = origin.at(&meant.commit).map_err(|error| failed(&what, &error))?;
    let gathered = gather(&contents, &name, &loops, session)?;
    let seen = before.as_ref().filter(|before| before.commit == meant.commit).map(|before| before.seen);
    let after = LockedLoop {
        source,
        server,
        reference: meant.reference.clone(),
        commit: meant.commit.clone(),
        seen: seen.unwrap_or_else(|| Clock::start().now()),
        waiting: BTreeMap::new(),
        files: digests(&gathered),
        merged: BTreeMap::new(),
    };
    let mut text = String::new();
    match &before {
        Some(before) if before.commit == after.commit && before.reference == after.reference => {
            let _ = writeln!(text, "`{COPY}{name}` is there already, {}", at(&meant));
        }
        Some(before) => {
            let old = abilities_here(&name, &loops, session);
            let _ = writeln!(text, "`{COPY}{name}` was {}, and is now {}", short(&before.commit), at(&meant));
            text += &copy_summary::difference(&old, &gathered.abilities);
        }
        None => {
            let bytes: usize = gathered.files.values().map(String::len).sum();
            let files = plural(gathered.files.len() as u64, "file");
            let _ = writeln!(text, "added `{COPY}{name}`, {}: {files}, {bytes} bytes", at(&meant));
            text += &copy_summary::abilities(&gathered.abilities);
        }
    }
    let change =
        LoopChange { name: name.clone(), before, after, files: gathered.files, edited: BTreeMap::new() };
    store::write(&loops, &[change])?;
    if is_ignored(&loops, session) {
        session.talk.warning(
            "git ignores `.loops/vendor`, and a run elsewhere would not have the copy: add the line `!/.loops/vendor/` to `.gitignore`",
        );
    }
    let _ = writeln!(
        text,
        "run it with `ll-loop run {COPY}{name}`; commit `.loops/vendor` and `.loops/lock.json`"
    );
    Ok(text)
}

/// Tells whether git leaves copies out of commits, as it does where every `vendor/` is ignored.
fn is_ignored(loops: &Path, session: &Session<'_>) -> bool {
    let ask = Call::new("check-ignore").with(&["-q"]).path(VENDORED);
    let root = loops.parent().unwrap_or(loops);
    repository::at(root, session).judged(&ask).is_ok_and(|judged| judged.is_yes)
}

/// A file as copies are.
const VENDORED: &str = ".loops/vendor/owner/repository/loop.yaml";

/// Returns the digests of files.
pub(super) fn digests(gathered: &Gathered) -> BTreeMap<String, Sum> {
    gathered.files.iter().map(|(path, text)| (path.clone(), Sum::of(text.as_bytes()))).collect()
}

/// Returns what the copy can do that is here; nothing, where it cannot be read any more.
pub(super) fn abilities_here(name: &SharedName, loops: &Path, session: &Session<'_>) -> Abilities {
    let here = CopyFiles(CopiedFile::new(loops, name.repository(), name.path()));
    let quiet = session.clone().talking_to(&Silence);
    gather(&here, name, loops, &quiet).map(|gathered| gathered.abilities).unwrap_or_default()
}

/// Shows a commit and the name that leads to it.
pub(super) fn at(meant: &MeantCommit) -> String {
    let of = |kind: &str, name: &str| format!("at {} (the {kind} `{name}`)", short(&meant.commit));
    match (meant.reference.strip_prefix("refs/tags/"), meant.reference.strip_prefix("refs/heads/")) {
        (Some(tag), _) => of("tag", tag),
        (None, Some(branch)) => of("branch", branch),
        (None, None) => format!("at {}", short(&meant.commit)),
    }
}

/// Tells whether a name that should never mean something else does so.
pub(super) fn has_moved(before: &LockedLoop, meant: &MeantCommit) -> bool {
    meant.reference.starts_with("refs/tags/")
        && before.reference == meant.reference
        && before.commit != meant.commit
}

/// Says so.
pub(super) fn moved(before: &LockedLoop, meant: &MeantCommit) -> Error {
    let tag = meant.reference.trim_start_matches("refs/tags/");
    let message = format!(
        "the tag `{tag}` of `{}` has moved: it was {}, and is {} now",
        before.source.trim_start_matches(REMOTE),
        short(&before.commit),
        short(&meant.commit)
    );
    Error::refused(message).with_hint(
        "tags are not meant to move: ask the authors why; `--accept-changes` takes it all the same",
    )
}

/// Refuses another server with a repository of the same name.
pub(super) fn of_another_server(before: &LockedLoop, server: &str) -> Error {
    let message = format!(
        "`{}` was copied from {}, and this is {server}",
        before.source,
        one_line(&before.server, 200)
    );
    Error::refused(message).with_hint("set `GITHUB_SERVER_URL` and `GITHUB_API_URL` to that server, or remove the loop from `.loops/lock.json`")
}

/// Refuses a loop that no run could be named after.
fn check_name(name: &SharedName) -> Result<(), Error> {
    let below = Path::new("vendor").join(name.as_str());
    name_below(&below).map(drop).map_err(|error| {
        Error::failed(format!("no loop can have the name that `{name}` would have"), &error)
            .of_kind(Kind::Refused)
    })
}
