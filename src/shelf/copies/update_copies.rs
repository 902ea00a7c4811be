//! `ll-loop update`: takes newer versions of the loops that were copied, once a person has seen what they can do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::copied_loop::{abilities_here, at, digests, has_moved, moved, of_another_server};
use super::gather::{CopyFiles, Files, Gathered, Instead, gather};
use super::git_address::GitAddress;
use super::merged_edits::{Versions, merge};
use super::origin::{Origin, OriginError};
use super::remote_repository::RemoteRepository;
use super::store::{self, LoopChange};
use super::{copy_summary, failed, home, server};
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::base::time::{Timestamp, human};
use crate::context::error::Error;
use crate::context::{Session, binding};
use crate::definition::vendored::{COPY, CopiedFile, Copies, LockedLoop, OF_GIT, REMOTE, SharedName};
use crate::files::read::MIB;
use crate::forge::github::api::Api;
use crate::forge::github::contents::{MeantCommit, ServerRepository};
use crate::forge::github::workflow_event::{is_sha, short};
use crate::process::clock::Clock;

/// The most newer commits of a loop that are remembered.
const MOST_WAITING: usize = 50;

/// What a person asks for.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// One loop; all of them, where it is not given.
    pub name: Option<String>,
    /// How long ago a commit must have been seen first.
    pub cool_down: Option<Duration>,
    /// Whether edits of copies are merged with what is new.
    pub merge: bool,
    /// Whether nothing is written.
    pub check: bool,
    /// Whether what a moved tag leads to is taken.
    pub copies: Copies,
}

/// Its result.
pub struct Updated {
    /// What a person has to know.
    pub text: String,
    /// Why nothing was taken, where something was in the way.
    pub refused: Option<Error>,
}

/// What is to be done about one loop.
enum UpdateStep {
    /// Nothing.
    Nothing,
    /// Its newer commits are remembered.
    Remember(LoopChange),
    /// It is taken anew.
    Take(LoopChange),
}

/// Takes newer versions of loops, or only shows them.
///
/// # Errors
/// No loop has this name, or the server does not answer.
pub(crate) fn update(options: &UpdateOptions, session: &Session<'_>) -> Result<Updated, Error> {
    let loops = home(session);
    let lock = store::lock(&loops)?;
    let mut chosen: Vec<(SharedName, LockedLoop)> = Vec::new();
    for one in lock.loops {
        let name = one.name().map_err(|error| Error::failed("cannot read `.loops/lock.json`", &error))?;
        chosen.push((name, one));
    }
    if let Some(asked) = &options.name {
        let plain = asked.trim_start_matches(COPY).trim_start_matches(REMOTE).trim_start_matches(OF_GIT);
        // People name a loop as they have added it, with `@REF`.
        let plain = plain.split_once('@').map_or(plain, |(name, _)| name);
        chosen.retain(|(name, _)| name.as_str() == plain);
        if chosen.is_empty() {
            return Err(Error::refused(format!("`{}` was not added here", one_line(asked, 200)))
                .with_hint("`.loops/lock.json` names the loops that were"));
        }
    }
    if chosen.is_empty() {
        let text = "no loop of another repository was added here\n".to_owned();
        return Ok(Updated { text, refused: None });
    }
    let policy = binding::acting(session)?;
    for (name, _) in &chosen {
        // Before any server is asked.
        policy.source(name.repository()).map_err(|refusal| binding::refused(&refusal))?;
    }
    let mut updated = Updated { text: String::new(), refused: None };
    let (api, address) = server(session)?;
    let newer = UpdateCheck { options, session, loops: &loops, api, address, now: Clock::start().now() };
    let (mut taken, mut remembered) = (Vec::new(), Vec::new());
    for (name, before) in chosen {
        match newer.one(name, before, &mut updated.text) {
            Ok(UpdateStep::Nothing) => {}
            Ok(UpdateStep::Remember(change)) => remembered.push(change),
            Ok(UpdateStep::Take(change)) => taken.push(change),
            Err(error) => {
                let _ = writeln!(updated.text, "  {}", error.message());
                // The text names all refusals; the first one decides how the command ends.
                updated.refused.get_or_insert(error);
            }
        }
    }
    if options.check {
        return Ok(updated);
    }
    if updated.refused.is_some() {
        if !taken.is_empty() {
            updated
                .text
                .push_str("nothing was taken: see what was refused; `ll-loop update NAME` takes one alone\n");
        }
        taken.clear();
    }
    // When a commit was first seen is kept in any case: otherwise its time to wait would begin anew
    // each time.
    taken.append(&mut remembered);
    if !taken.is_empty() {
        store::write(&loops, &taken)?;
    }
    Ok(updated)
}

/// Looks at one loop after the other.
struct UpdateCheck<'u> {
    options: &'u UpdateOptions,
    session: &'u Session<'u>,
    loops: &'u Path,
    api: Api,
    address: String,
    now: Timestamp,
}

/// Refuses a copy with edits.
fn edited_here(edited: &BTreeMap<String, Sum>) -> Error {
    let files: Vec<String> = edited.keys().map(|path| format!("`{}`", one_line(path, 200))).collect();
    Error::refused(format!("edited here: {}", files.join(", ")))
        .with_hint("`--merge` merges the edits with what is new")
}

impl UpdateCheck<'_> {
    /// Looks what is new about one loop, and says so.
    fn one(&self, name: SharedName, before: LockedLoop, text: &mut String) -> Result<UpdateStep, Error> {
        let _ = writeln!(text, "`{COPY}{name}`");
        if !before.is_of_git() && before.server != self.address {
            return Err(of_another_server(&before, &self.address));
        }
        let edited = self.edited(&name, &before)?;
        let is_fixed = is_sha(&before.reference);
        // An edit that a merge has taken is part of the copy; with any other one, no run takes the copy, whether something is new or not.
        let is_known = |(path, there): (&String, &Sum)| before.digest(path) == Some(*there);
        if !self.options.merge && !edited.iter().all(is_known) {
            return Err(edited_here(&edited));
        }
        if is_fixed && (edited.is_empty() || !self.options.merge) {
            let _ = writeln!(text, "  stays at {}: it was added by its commit", short(&before.commit));
            return Ok(UpdateStep::Nothing);
        }
        let what = format!("cannot update `{name}`");
        let failed = |error: OriginError| error.failed(&what);
        let origin = of_locked(&before, &name, &self.api, self.session)?;
        let origin = origin.as_ref();
        let newest = if is_fixed {
            MeantCommit { reference: before.reference.clone(), commit: before.commit.clone() }
        } else {
            origin.resolve(&before.reference).map_err(failed)?
        };
        if has_moved(&before, &newest) && self.options.copies == Copies::Locked {
            return Err(moved(&before, &newest));
        }
        let (meant, waiting) = self.meant(&before, newest, origin, text)?;
        let is_new = meant.commit != before.commit;
        if is_new && !edited.is_empty() && !self.options.merge {
            return Err(edited_here(&edited));
        }
        let has_edits =
            self.options.merge && edited.iter().any(|(path, there)| before.digest(path) != Some(*there));
        if !is_new && !has_edits {
            if waiting.is_empty() {
                let _ = writeln!(text, "  is up to date, {}", at(&meant));
            }
            if waiting == before.waiting {
                return Ok(UpdateStep::Nothing);
            }
            let after = LockedLoop { waiting, ..before.clone() };
            let (files, edited) = (BTreeMap::new(), BTreeMap::new());
            return Ok(UpdateStep::Remember(LoopChange { name, before: Some(before), after, files, edited }));
        }
        let contents = origin.at(&meant.commit).map_err(failed)?;
        let gathered = gather(contents.as_ref(), &name, self.loops, self.session)?;
        let merged = if edited.is_empty() {
            BTreeMap::new()
        } else {
            let old = origin.at(&before.commit).map_err(failed)?;
            let mut merged = BTreeMap::new();
            for path in edited.keys() {
                let theirs = gathered.files.get(path);
                merged.insert(path.clone(), self.merged(&name, &before, path, old.as_ref(), theirs)?);
            }
            merged
        };
        let files = digests(&gathered);
        let Gathered { files: texts, abilities } = if merged.is_empty() {
            gathered
        } else {
            // Once more: edits may take over other files, and change what the loop can do.
            gather(&Instead { files: contents.as_ref(), with: &merged }, &name, self.loops, self.session)?
        };
        if is_new {
            let verb = if self.options.check { "would go" } else { "goes" };
            let _ = writeln!(text, "  {verb} from {} {}", short(&before.commit), to(&meant));
        }
        if !merged.is_empty() {
            let names: Vec<String> = merged.keys().map(|path| format!("`{}`", one_line(path, 200))).collect();
            let _ = writeln!(text, "  with the edits that were made here: {}", names.join(", "));
        }
        text.push_str(&copy_summary::difference(
            &abilities_here(&name, self.loops, self.session),
            &abilities,
        ));
        let digest_of = |text: &String| Sum::of(text.as_bytes());
        let files: BTreeMap<String, Sum> = texts
            .iter()
            .map(|(path, text)| (path.clone(), files.get(path).copied().unwrap_or_else(|| digest_of(text))))
            .collect();
        let merged = texts.iter().filter(|(path, text)| files.get(*path) != Some(&digest_of(text)));
        let merged = merged.map(|(path, text)| (path.clone(), digest_of(text))).collect();
        let seen =
            if is_new { before.waiting.get(&meant.commit).copied().unwrap_or(self.now) } else { before.seen };
        let after = LockedLoop {
            reference: meant.reference,
            commit: meant.commit,
            seen,
            waiting,
            files,
            merged,
            ..before.clone()
        };
        Ok(UpdateStep::Take(LoopChange { name, before: Some(before), after, files: texts, edited }))
    }

    /// Returns the commit that is taken, and the newer ones that have to wait.
    fn meant(
        &self,
        before: &LockedLoop,
        newest: MeantCommit,
        origin: &dyn Origin,
        text: &mut String,
    ) -> Result<(MeantCommit, BTreeMap<String, Timestamp>), Error> {
        let Some(cool_down) = self.options.cool_down.filter(|_| newest.commit != before.commit) else {
            return Ok((newest, BTreeMap::new()));
        };
        let mut waiting = before.waiting.clone();
        waiting.entry(newest.commit.clone()).or_insert(self.now);
        let mut in_order: Vec<(String, Timestamp)> = waiting.clone().into_iter().collect();
        // From the latest: the newest commit that has waited long enough is taken.
        in_order.sort_by_key(|(_, seen)| std::cmp::Reverse(*seen));
        in_order.truncate(MOST_WAITING);
        let mut still: BTreeMap<String, Timestamp> = BTreeMap::new();
        for (commit, seen) in in_order {
            if self.now.since(seen) < cool_down {
                still.insert(commit, seen);
                continue;
            }
            // A branch may have been written anew since.
            let is_there = commit == newest.commit
                || origin
                    .is_before(&commit, &newest.commit)
                    .map_err(|error| error.failed("cannot compare two commits"))?;
            if is_there {
                return Ok((MeantCommit { commit, ..newest }, still));
            }
        }
        let seen = waiting.get(&newest.commit).copied().unwrap_or(self.now);
        let _ = writeln!(
            text,
            "  {} waits: it was first seen at {}, and is taken {} later",
            at(&newest).trim_start_matches("at "),
            seen.minute(),
            human(cool_down)
        );
        Ok((MeantCommit { commit: before.commit.clone(), ..newest }, still))
    }

    /// Returns the files that are not what was copied, with the digests that they have.
    fn edited(&self, name: &SharedName, before: &LockedLoop) -> Result<BTreeMap<String, Sum>, Error> {
        let mut edited = BTreeMap::new();
        for (path, copied) in &before.files {
            let there = store::digest(&CopiedFile::new(self.loops, name.repository(), path))?;
            // A file that was removed holds no edits to keep.
            if let Some(there) = there.filter(|there| there != copied) {
                edited.insert(path.clone(), there);
            }
        }
        Ok(edited)
    }

    /// Merges the edits of a file with what is new in it.
    fn merged(
        &self,
        name: &SharedName,
        before: &LockedLoop,
        path: &str,
        old: &dyn Files,
        theirs: Option<&String>,
    ) -> Result<String, Error> {
        let shown = one_line(path, 200);
        let Some(theirs) = theirs else {
            let message = format!("`{shown}` was edited here, and is not part of the loop any more");
            return Err(Error::refused(message).with_hint("undo the edits, or keep the file elsewhere"));
        };
        let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let limit = MIB;
        let base = text(old.file(path, limit)?)
            .filter(|base| before.files.get(path) == Some(&Sum::of(base.as_bytes())));
        let base = base.ok_or_else(|| {
            let message = format!("`{shown}` at {} is not what was copied from there", short(&before.commit));
            Error::refused(message)
                .with_hint("somebody has edited `.loops/lock.json`, or the server gives something else now")
        })?;
        let here = CopyFiles(CopiedFile::new(self.loops, name.repository(), path));
        let ours = text(here.file(path, limit)?)
            .ok_or_else(|| Error::refused(format!("`{shown}` was edited here, and is not text any more")))?;
        merge(path, &Versions { ours: &ours, base: &base, theirs }, self.session)
    }
}

/// Shows where a loop goes.
fn to(meant: &MeantCommit) -> String {
    at(meant).replacen("at ", "to ", 1)
}

/// Opens the repository that a loop of the lock file was copied from. `api` is a client of the server of loops on GitHub.
fn of_locked<'o>(
    before: &LockedLoop,
    name: &SharedName,
    api: &'o Api,
    session: &'o Session<'o>,
) -> Result<Box<dyn Origin + 'o>, Error> {
    let what = format!("cannot update `{name}`");
    if before.is_of_git() {
        let address = GitAddress::parse(&before.server)
            .ok()
            // Else an edited lock file could bring the loop of another server under a name that is trusted.
            .filter(|address| address.name(name.path()).as_ref() == Ok(name))
            .ok_or_else(|| {
                let shown = one_line(&before.server, 200);
                Error::refused(format!("{what}: `{shown}` is not the address of its repository"))
                    .with_hint("somebody has edited `.loops/lock.json`: add the loop again")
            })?;
        let origin = RemoteRepository::open(address, session).map_err(|error| error.failed(&what))?;
        return Ok(Box::new(origin));
    }
    let origin = ServerRepository::open(api, name.repository()).map_err(|error| failed(&what, &error))?;
    if origin.name() != name.repository() {
        let message = format!("`{}` is `{}` now", name.repository(), origin.name());
        return Err(Error::refused(message).with_hint("add it by its new name"));
    }
    Ok(Box::new(origin))
}
