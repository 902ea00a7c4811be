//! Finds every file that a loop is made of, wherever they are: on a server, or in a copy. Each is read as a run would
//! read it, so that a copy has all that a run needs, and nothing else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use super::failed;
use crate::base::diagnostic::Severity;
use crate::base::explanation::Explanation;
use crate::base::relative::RelativePath;
use crate::base::text::{is_direction, one_line, plural};
use crate::context::Session;
use crate::context::error::Error;
use crate::context::talk::Findings;
use crate::definition::builtin::Builtin;
use crate::definition::load;
use crate::definition::resolve::{Fetched, Reference, ReferenceKind};
use crate::definition::vendored::{COPY, CopiedFile, Naming, SharedName, WITHIN, name_within};
use crate::files::read::{self, MIB, Unread};
use crate::forge::github::contents::{CommitFiles, ContentsError};
use crate::machine::abilities::Abilities;
use crate::machine::compile;
use crate::machine::early::KnownValues;
use crate::session::prepare::library::sub_loops;
use crate::session::prepare::prepared::all_findings;

/// A loop is made of at most so many files.
const MAX_FILES: usize = 20;

/// Together they have at most so many bytes.
const MAX_BYTES: u64 = MIB;

/// What a file takes over may take over others, so many times.
const DEEPEST: u32 = 4;

/// Where the files of a repository are.
pub(super) trait Files {
    /// Tells whether there is a file.
    fn has(&self, path: &str) -> Result<bool, Error>;
    /// Reads a file, if there is one.
    fn file(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Error>;
}

impl Files for CommitFiles<'_> {
    fn has(&self, path: &str) -> Result<bool, Error> {
        Self::has(self, path).map_err(|error| failed("cannot copy the loop", &error))
    }

    fn file(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        Self::file(self, path, limit).map_err(|error| {
            let refused = failed("cannot copy the loop", &error);
            if matches!(error, ContentsError::TooLarge { .. }) { refused.with_hint(LIMITS) } else { refused }
        })
    }
}

/// The files of a copy.
pub(super) struct CopyFiles(pub(super) CopiedFile);

impl Files for CopyFiles {
    fn has(&self, path: &str) -> Result<bool, Error> {
        Ok(self.0.sibling(path).file().is_file())
    }

    fn file(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        match read::bytes(&self.0.sibling(path).file(), limit) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Unread::Absent) => Ok(None),
            Err(unread) => {
                let why = std::io::Error::from(unread);
                Err(Error::refused(format!("`{}` cannot be read: {why}", one_line(path, 200))))
            }
        }
    }
}

/// Some files in the place of others.
pub(super) struct Instead<'f> {
    pub(super) files: &'f dyn Files,
    pub(super) with: &'f BTreeMap<String, String>,
}

impl Files for Instead<'_> {
    fn has(&self, path: &str) -> Result<bool, Error> {
        Ok(self.with.contains_key(path) || self.files.has(path)?)
    }

    fn file(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        match self.with.get(path) {
            Some(text) => Ok(Some(text.clone().into_bytes())),
            None => self.files.file(path, limit),
        }
    }
}

/// All that a loop is made of.
pub(super) struct Gathered {
    /// The files, by their paths in the repository.
    pub(super) files: BTreeMap<String, String>,
    /// What the loop and those that it runs can do.
    pub(super) abilities: Abilities,
}

/// A file that was read.
struct GatheredFile {
    text: String,
    depth: u32,
}

struct Gatherer<'g> {
    files: &'g dyn Files,
    /// Where the loop itself is copied to.
    entry: CopiedFile,
    found: RefCell<BTreeMap<String, GatheredFile>>,
    /// What went wrong in a way that no loop file can be blamed for.
    failed: RefCell<Option<Error>>,
}

/// Finds all files of a loop. What is wrong with it is shown.
pub(super) fn gather(
    files: &dyn Files,
    name: &SharedName,
    loops: &Path,
    session: &Session<'_>,
) -> Result<Gathered, Error> {
    let entry = CopiedFile::new(loops, name.repository(), name.path());
    let gatherer = Gatherer { files, entry, found: RefCell::default(), failed: RefCell::default() };
    if gatherer.read(name.path(), 0)?.is_none() {
        return Err(Error::refused(format!("`{}` has no file `{}` there", name.repository(), name.path()))
            .with_hint("look for the path of the file in the repository, at that branch, tag or commit"));
    }
    let mut abilities = Abilities::default();
    let mut open: VecDeque<String> = [name.path().to_owned()].into();
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    while let Some(path) = open.pop_front() {
        let (of_loop, others) = gatherer.one(&path, session)?;
        abilities.extend(of_loop);
        // Loops may run each other in circles.
        open.extend(others.into_iter().filter(|other| seen.insert(other.clone())));
    }
    let files: BTreeMap<String, String> =
        gatherer.found.into_inner().into_iter().map(|(path, found)| (path, found.text)).collect();
    Ok(Gathered { files, abilities })
}

impl Gatherer<'_> {
    /// Reads one loop with all that it takes over, and returns what it can do and the files of the loops that it runs.
    fn one(&self, path: &str, session: &Session<'_>) -> Result<(Abilities, Vec<String>), Error> {
        let place = self.entry.sibling(path);
        let text = self.found.borrow().get(path).map_or_else(String::new, |found| found.text.clone());
        let shown = place.to_string();
        let mut fetch = |reference: &Reference<'_>| self.fetch(reference);
        let loaded = load::decode_with(&shown, &text, &place.file(), &mut fetch);
        // First: without the file that the server did not give, the findings below would blame the loop.
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let unusable = |found: &Findings<'_>| {
            session.talk.findings(found);
            let count = found.found.iter().filter(|finding| finding.severity == Severity::Error).count();
            Error::refused(format!("`{shown}` has {}; nothing was copied", plural(count as u64, "error")))
                .with_hint(
                    "ask its authors to mend it; `ll-loop validate` finds the same where the loop comes from",
                )
        };
        let mut loaded = loaded.map_err(|rejected| {
            let findings = all_findings(&rejected);
            unusable(&Findings { found: &findings, sources: &rejected.sources, tree: rejected.tree.as_ref() })
        })?;
        let (machine, problems) = compile::compile_with(&loaded.definition, KnownValues::Draft);
        loaded.findings.extend(problems);
        let Some(machine) = machine.filter(|_| !loaded.findings.has_errors()) else {
            let findings = loaded.findings.clone();
            return Err(unusable(&Findings::of(&findings, &loaded)));
        };
        let mut others = Vec::new();
        for (step, sub) in sub_loops(&machine) {
            let Some(name) = sub.name.as_literal() else {
                let message = format!(
                    "`{}` in `{shown}` runs a loop whose name only a run knows; it is not copied unless it is named elsewhere",
                    step.name
                );
                session.talk.warning(&message);
                continue;
            };
            match self.locate(&place, Naming::Loop, &name)? {
                Some(path) => {
                    self.read(&path, self.depth(place.path()) + 1)?;
                    others.push(path);
                }
                // What every ll-loop has built in need not be copied.
                None if Builtin::named(name_within(&name).map_or(&name, |(_, name)| name)).is_some() => {}
                None => {
                    let shown = one_line(&name, 100);
                    let message =
                        format!("the loop `{shown}`, which `{place}` runs, is not in its repository");
                    return Err(Error::refused(message).with_hint(OWN));
                }
            }
        }
        Ok((Abilities::of(&machine), others))
    }

    /// Reads a file that another one names.
    fn fetch(&self, reference: &Reference<'_>) -> Result<Fetched, Explanation> {
        let of_program = |file: Builtin| Fetched {
            path: file.place(),
            shown: file.place().display().to_string(),
            text: file.text().to_owned(),
        };
        let absent =
            || Explanation::new(format!("there is no `{}` in its repository", one_line(reference.name, 100)));
        if let Some(file) = Builtin::at(reference.from) {
            return file.beside(reference.name).map(of_program).ok_or_else(absent);
        }
        let from = CopiedFile::at(reference.from).ok_or_else(absent)?;
        let read = || -> Result<Option<(CopiedFile, String)>, Error> {
            let Some(path) = self.locate(&from, load::naming(reference.kind), reference.name)? else {
                return Ok(None);
            };
            let text = self.read(&path, self.depth(from.path()) + 1)?;
            Ok(text.map(|text| (self.entry.sibling(&path), text)))
        };
        match read() {
            Ok(Some((copy, text))) => Ok(Fetched { path: copy.file(), shown: copy.to_string(), text }),
            Ok(None) => {
                let file = Builtin::named(reference.name).filter(|_| reference.kind != ReferenceKind::Text);
                file.map(of_program).ok_or_else(absent)
            }
            Err(error) => {
                let message = error.message().to_owned();
                self.failed.borrow_mut().get_or_insert(error);
                Err(Explanation::new(message))
            }
        }
    }

    /// Finds the file that a name means.
    fn locate(&self, from: &CopiedFile, naming: Naming, name: &str) -> Result<Option<String>, Error> {
        // What a state took over from another file is named as it is there.
        let elsewhere = name_within(name).and_then(|(from, name)| {
            let shared = SharedName::parse(from.strip_prefix(COPY)?).ok()?;
            (shared.repository() == self.entry.repository())
                .then(|| (self.entry.sibling(shared.path()), name))
        });
        let (from, name) = elsewhere.as_ref().map_or((from, name), |(from, name)| (from, *name));
        let places = from.places(naming, name);
        let places = places.map_err(|why| Error::refused(format!("`{from}`: {why}")).with_hint(OWN))?;
        for path in places {
            if self.files.has(&path)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn depth(&self, path: &str) -> u32 {
        self.found.borrow().get(path).map_or(0, |found| found.depth)
    }

    /// Reads a file, unless that becomes too much.
    fn read(&self, path: &str, depth: u32) -> Result<Option<String>, Error> {
        let mut found = self.found.borrow_mut();
        if let Some(known) = found.get(path) {
            return Ok(Some(known.text.clone()));
        }
        let shown = one_line(path, 200);
        let refused = |why: String| Err(Error::refused(why).with_hint(LIMITS));
        if depth > DEEPEST {
            return refused(format!(
                "`{shown}` is taken over by what was taken over more than {DEEPEST} times"
            ));
        }
        if found.len() == MAX_FILES {
            return refused(format!("`{shown}` is one file too many"));
        }
        check_path(path)?;
        if let Some(twin) = found.keys().find(|other| is_twin(other, path)) {
            let message = format!(
                "`{shown}` and `{}` differ in upper and lower case alone, and are one file on some machines",
                one_line(twin, 200)
            );
            return Err(Error::refused(message));
        }
        // The limit of each file is what is left of the whole, so that nothing larger is ever fetched.
        let room =
            MAX_BYTES - found.values().map(|found| found.text.len() as u64).sum::<u64>().min(MAX_BYTES);
        let Some(bytes) = self.files.file(path, room)? else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::refused(format!("`{shown}` is not UTF-8, and no file of a loop")))?;
        found.insert(path.to_owned(), GatheredFile { text: text.clone(), depth });
        Ok(Some(text))
    }
}

/// What a shared loop may name.
const OWN: &str = "a shared loop may name files of its own repository, and what ll-loop has built in";

/// What a shared loop may be made of.
const LIMITS: &str = "a shared loop has at most 20 files with 1 MiB altogether, 4 levels of them";

/// Refuses paths that are not the same file everywhere.
fn check_path(path: &str) -> Result<(), Error> {
    // Some file systems write letters with marks otherwise, and a colon begins a stream of a file
    // on Windows.
    let is_odd = |c: &char| is_direction(*c) || matches!(c, '\u{300}'..='\u{36f}' | ':' | &WITHIN);
    let why = match (RelativePath::parse(path), path.chars().find(is_odd)) {
        (Err(error), _) => error.to_string(),
        (Ok(_), Some(odd)) => format!("a path from elsewhere cannot contain {odd:?}"),
        (Ok(_), None) => return Ok(()),
    };
    Err(Error::refused(format!("`{}` cannot be copied: {why}", one_line(path, 200))))
}

/// Tells whether two paths, or the directories that they are in, are one where upper and lower case are.
pub(super) fn is_twin(one: &str, other: &str) -> bool {
    let parts = one.split('/').zip(other.split('/'));
    let mut differs = false;
    for (one, other) in parts {
        if one.to_lowercase() != other.to_lowercase() {
            return false;
        }
        differs |= one != other;
        if differs {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_would_be_one_are_told() {
        assert!(is_twin("lib/a.yaml", "lib/A.yaml"));
        assert!(is_twin("Lib/a.yaml", "lib/b.yaml"));
        assert!(is_twin("é.yaml", "É.yaml"));
        assert!(!is_twin("lib/a.yaml", "lib/b.yaml"));
        assert!(!is_twin("lib/a.yaml", "lib/a.yaml"));
    }

    #[test]
    fn paths_that_mean_another_file_elsewhere_are_refused() {
        for odd in ["a\nb.yaml", "e\u{301}.yaml", "a\u{202e}.yaml", ".git/x.yaml", "a:b.yaml", "../a.yaml"] {
            assert!(check_path(odd).is_err(), "{odd:?}");
        }
        assert!(check_path("lib/é.yaml").is_ok());
    }
}
