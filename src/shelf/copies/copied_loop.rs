//! `ll-loop add github:…` or `ll-loop add https://…`: copies a loop of another repository with everything that it is made of.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::gather::{CopyFiles, Gathered, gather};
use super::git_address::GitAddress;
use super::origin::{Origin, OriginError};
use super::remote_repository::RemoteRepository;
use super::store::{self, LoopChange};
use super::{RequestedLoop, copy_summary, failed, home, server};
use crate::base::sum::Sum;
use crate::base::text::{listed, one_line, plural};
use crate::context::error::{Error, Kind};
use crate::context::talk::Silence;
use crate::context::{Session, binding};
use crate::definition::load::name_below;
use crate::definition::vendored::{COPY, CopiedFile, Copies, LockedLoop, OF_GIT, REMOTE, SharedName};
use crate::forge::github::contents::{MeantCommit, ServerRepository};
use crate::forge::github::workflow_event::short;
use crate::git::call::Call;
use crate::machine::abilities::Abilities;
use crate::process::clock::Clock;
use crate::repository;

/// Copies the loop that a text names, and returns what a person has to know about it. `accept` takes also what a tag
/// leads to that has moved.
///
/// # Errors
/// The server does not give it, it is not a loop, or it may not be copied.
pub(crate) fn add(text: &str, accept: Copies, session: &Session<'_>) -> Result<String, Error> {
    let asked = RequestedLoop::parse(text)?;
    let policy = binding::acting(session)?;
    let allowed =
        |name: &SharedName| policy.source(name.repository()).map_err(|refusal| binding::refused(&refusal));
    match asked {
        RequestedLoop::OfGithub { name, reference } => {
            // Before any server is asked: a source that the policy forbids does not even learn of the question.
            allowed(&name)?;
            let (api, server) = server(session)?;
            let what = format!("cannot add `{name}`");
            let origin =
                ServerRepository::open(&api, name.repository()).map_err(|error| failed(&what, &error))?;
            let name = SharedName::parse(&format!("{}/{}", origin.name(), name.path()))
                .map_err(|error| Error::failed(&what, &error))?;
            // A repository that was renamed is what it is now.
            allowed(&name)?;
            copy(&CopiedFrom { prefix: REMOTE, server, name, origin: &origin }, &reference, accept, session)
        }
        RequestedLoop::OfGit { address, name, reference } => {
            allowed(&name)?;
            if address.is_open() {
                session.talk.warning(&format!(
                    "`{}` is not encrypted: anybody on the way can change what comes",
                    address.as_str()
                ));
            }
            let server = address.as_str().to_owned();
            let origin = RemoteRepository::open(address, session)
                .map_err(|error| error.failed(&format!("cannot add `{name}`")))?;
            copy(&CopiedFrom { prefix: OF_GIT, server, name, origin: &origin }, &reference, accept, session)
        }
        RequestedLoop::Unnamed { address, reference } => {
            // No file is named yet, and a policy allows repositories: any path stands for it.
            address.name("loop.yaml").map_or(Ok(()), |name| allowed(&name))?;
            Err(unnamed(text, &address, reference, session))
        }
    }
}

/// Says which loops a repository has, to somebody who named none.
fn unnamed(text: &str, address: &GitAddress, reference: Option<String>, session: &Session<'_>) -> Error {
    let shown = one_line(address.as_str(), 200);
    let look = || -> Result<(String, Vec<String>), OriginError> {
        let origin = RemoteRepository::open(address.clone(), session)?;
        let name = reference.or_else(|| origin.likely_branch().map(str::to_owned)).unwrap_or_default();
        let files = origin.loop_files(&origin.resolve(&name)?.commit)?;
        Ok((name, files))
    };
    let refused = |name: &str, file: &str| {
        Error::refused(format!("`{}` names no file", one_line(text, 200)))
            .with_hint(format!("write `{shown}//{file}@{name}`"))
    };
    match look() {
        Err(error) => error.failed(&format!("cannot look for loops in `{shown}`")),
        Ok((name, files)) if files.is_empty() => refused(&name, "PATH.yaml"),
        Ok((name, files)) => {
            let files: Vec<String> = files.iter().map(|file| one_line(file, 200)).collect();
            let message =
                format!("{}; the repository has {}", refused(&name, "").message(), listed(&files, "and"));
            Error::refused(message).with_hint(format!("write `{shown}//{}@{name}`", files[0]))
        }
    }
}

/// A loop that is copied, and where it is.
struct CopiedFrom<'o> {
    /// What its name begins with in the lock file.
    prefix: &'static str,
    /// Where it comes from, as the lock file has it.
    server: String,
    name: SharedName,
    origin: &'o dyn Origin,
}

fn copy(
    source: &CopiedFrom<'_>,
    reference: &str,
    accept: Copies,
    session: &Session<'_>,
) -> Result<String, Error> {
    let CopiedFrom { prefix, server, name, origin } = source;
    let loops = home(session);
    let what = format!("cannot add `{name}`");
    check_name(name)?;
    let source = format!("{prefix}{name}");
    let lock = store::lock(&loops)?;
    // The place of a copy does not tell its server, so that the files of two would get mixed.
    let is_of_other = |one: &&LockedLoop| {
        let is_same = one.source.starts_with(prefix) && one.server == *server;
        !is_same && one.name().is_ok_and(|other| other.repository() == name.repository())
    };
    if let Some(other) = lock.loops.iter().find(is_of_other) {
        return Err(of_another_server(other, server));
    }
    let before = lock.loops.into_iter().find(|one| one.source == source);
    let meant = origin.resolve(reference).map_err(|error| error.failed(&what))?;
    if let Some(before) = &before
        && has_moved(before, &meant)
        && accept == Copies::Locked
    {
        return Err(moved(before, &meant));
    }
    let contents = origin.at(&meant.commit).map_err(|error| error.failed(&what))?;
    let gathered = gather(contents.as_ref(), name, &loops, session)?;
    // A cool-down counts from when the commit was first seen, not from when it was added again.
    let seen = before.as_ref().filter(|before| before.commit == meant.commit).map(|before| before.seen);
    let after = LockedLoop {
        source,
        server: server.clone(),
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
            let old = abilities_here(name, &loops, session);
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
    // What is wrong with the old copy is not what was asked about.
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
    // A branch is meant to move, and the name of a commit cannot lead elsewhere.
    meant.reference.starts_with("refs/tags/")
        && before.reference == meant.reference
        && before.commit != meant.commit
}

/// Says so.
pub(super) fn moved(before: &LockedLoop, meant: &MeantCommit) -> Error {
    let tag = meant.reference.trim_start_matches("refs/tags/");
    let message = format!(
        "the tag `{tag}` of `{}` has moved: it was {}, and is {} now",
        before.source.trim_start_matches(REMOTE).trim_start_matches(OF_GIT),
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
        "`{}` was copied from {}, and this is {}",
        one_line(&before.source, 200),
        one_line(&before.server, 200),
        one_line(server, 200)
    );
    let hint = if before.is_of_git() {
        "add it from there, or remove the loop from `.loops/lock.json`"
    } else {
        "set `GITHUB_SERVER_URL` and `GITHUB_API_URL` to that server, or remove the loop from `.loops/lock.json`"
    };
    Error::refused(message).with_hint(hint)
}

/// Refuses a loop that no run could be named after.
fn check_name(name: &SharedName) -> Result<(), Error> {
    let below = Path::new("vendor").join(name.as_str());
    name_below(&below).map(drop).map_err(|error| {
        Error::failed(format!("no loop can have the name that `{name}` would have"), &error)
            .of_kind(Kind::Refused)
    })
}
