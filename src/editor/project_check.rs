//! Checks the loops and the tests of a project together: what `validate` prints, and what the language server publishes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use super::checked_file::{CheckedFile, UnreadableFile};
use super::loop_names::{self, Same};
use super::tests_of_loops;
use crate::base::diagnostic::{Diagnostic, FindingPlace};
use crate::context::error::Error;
use crate::context::{Session, binding};
use crate::definition::load::{self, DIRECTORY, Listed, Located};
use crate::machine::check::injection;
use crate::policy::Policy;
use crate::session::prepare::check_quarantine;
use crate::session::prepare::loop_check::{Checked, Checker};
use crate::session::prepare::prepared::{reaching, refused};
use crate::testing::suite;

/// What is checked, and how.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckOptions<'o> {
    /// Names or files of loops or tests, or directories; empty for everything in the project.
    pub(crate) named: &'o [String],
    /// Whether files may lie outside of the repository.
    pub(crate) outside: bool,
    /// Whether every sequence of verdicts is explored.
    pub(crate) deep: bool,
    /// Whether what is a warning elsewhere and dangerous in CI is an error.
    pub(crate) strict: bool,
    /// The words that name commands; a loop with such a name gets a warning.
    pub(crate) commands: &'o [String],
}

/// What was found in a project.
#[derive(Default)]
pub(crate) struct CheckedProject {
    /// The loops and libraries, and then the tests.
    pub(crate) files: Vec<CheckedFile>,
    pub(crate) unread: Vec<UnreadableFile>,
    /// What the files know of each other.
    pub(crate) facts: ProjectFacts,
    /// What binds its runs from above; none where it cannot be read, which is among what is not read.
    pub(crate) policy: Policy,
}

/// What is known of a file by looking at the others.
#[derive(Clone, Default)]
pub(crate) struct ProjectFacts {
    /// The loops that have tests; nothing where not all files of the project are checked.
    tested: Option<BTreeSet<PathBuf>>,
    /// The files that others take over, by the names of their findings.
    parents: BTreeSet<String>,
    /// The files whose names are too much like those of others.
    same: HashMap<PathBuf, Same>,
}

/// Checks what is named, or a whole project.
pub(crate) fn check(options: &CheckOptions<'_>, session: &Session<'_>) -> CheckedProject {
    let Ok(project) = check_while(options, session, &mut || Ok::<(), Infallible>(()));
    project
}

/// Does the same as long as `may_go_on` has nothing against it, which is asked before each file.
pub(super) fn check_while<E>(
    options: &CheckOptions<'_>,
    session: &Session<'_>,
    may_go_on: &mut dyn FnMut() -> Result<(), E>,
) -> Result<CheckedProject, E> {
    let mut named = options.named.to_vec();
    let is_whole = named.is_empty();
    let mut project = CheckedProject::default();
    let mut tests = Vec::new();
    let mut tested = BTreeSet::new();
    for place in tests_of_loops::take(&mut named, session) {
        may_go_on()?;
        let test = tests_of_loops::check(place, session);
        tested.extend(test.tested);
        tests.push(test.file);
    }
    project.facts.tested = is_whole.then_some(tested);
    // Where only tests were named, no name is left by now, and none would stand for the whole project.
    let subjects =
        if is_whole || !named.is_empty() { subjects(&named, options, session) } else { Vec::new() };
    // The files are checked without a policy that cannot be read, which is told beside what is found in them.
    let policy = binding::here(session).unwrap_or_else(|error| {
        let asked = "the policy from above".to_owned();
        project.unread.push(UnreadableFile { asked, path: None, error: Box::new(error) });
        Policy::default()
    });
    project.policy = policy.clone();
    if is_whole && let Some((path, error)) = check_quarantine::broken_promise(session) {
        let asked = format!("{DIRECTORY}/{}", path.file_name().unwrap_or_default().display());
        project.unread.push(UnreadableFile { asked, path: Some(path), error: Box::new(error) });
    }
    let mut checker = Checker::bound_by(policy);
    let mut whole = Vec::new();
    for subject in subjects {
        may_go_on()?;
        project.facts.same.extend(subject.path.clone().map(|path| (path, subject.same)));
        let file = subject.located.and_then(|located| {
            let path = located.path.clone();
            let found = checker.check(&located.beneath(session.unsaved.clone()), options.deep)?;
            Ok(CheckedFile { path, checked: found })
        });
        match file {
            // Other YAML may lie in the directory, and was not asked for by its name.
            Ok(file) if !file.checked.is_ours && !subject.is_named => {}
            Ok(file) => whole.push((file, subject.is_named)),
            Err(error) => {
                project.unread.push(UnreadableFile {
                    asked: subject.asked,
                    path: subject.path,
                    error: Box::new(error),
                });
            }
        }
    }
    // Only when all are read is it known which of them others take over.
    project.facts.parents = parents(whole.iter().map(|(file, _)| &file.checked));
    for (mut file, is_named) in whole {
        project.facts.add_to(&mut file, is_named, options);
        project.files.push(file);
    }
    for test in tests {
        match test {
            Ok(file) => project.files.push(file),
            Err(unread) => project.unread.push(unread),
        }
    }
    Ok(project)
}

/// Checks one file again of a project that was checked.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn check_again(
    path: &Path,
    facts: &ProjectFacts,
    options: &CheckOptions<'_>,
    session: &Session<'_>,
) -> Result<CheckedFile, UnreadableFile> {
    if suite::is_test_file(path) {
        return tests_of_loops::check(suite::placed(path, session), session).file;
    }
    let asked = path.display().to_string();
    let located = load::unsaved(&asked, path, &session.cwd).map_err(|error| refused(&error));
    let checked = located.and_then(|located| {
        let located = reaching(located, options.outside).beneath(session.unsaved.clone());
        // One that cannot be read was told of with the whole project.
        let policy = binding::here(session).unwrap_or_default();
        Checker::bound_by(policy).check(&located, options.deep)
    });
    match checked {
        Ok(checked) => {
            let mut file = CheckedFile { path: path.to_owned(), checked };
            // A file that is not listed is checked only because it was asked for.
            facts.add_to(&mut file, !facts.same.contains_key(path), options);
            Ok(file)
        }
        Err(error) => Err(UnreadableFile { asked, path: Some(path.to_owned()), error: Box::new(error) }),
    }
}

impl ProjectFacts {
    /// Tells whether a file is one of the project, and can be checked by itself with these facts.
    pub(crate) fn knows(&self, path: &Path) -> bool {
        self.same.contains_key(path) || (self.tested.is_some() && suite::is_test_file(path))
    }

    /// Adds what is found by looking at other files, and takes away what is left to them.
    fn add_to(&self, file: &mut CheckedFile, is_named: bool, options: &CheckOptions<'_>) {
        let CheckedFile { path, checked } = file;
        loop_names::check(checked, self.same.get(path), options.commands);
        if let Some(tested) = &self.tested {
            tests_of_loops::note(tested, checked, path);
        }
        let mut findings = std::mem::take(&mut checked.findings);
        if options.strict {
            findings = findings.raised(injection::CODE);
        }
        if !is_named && self.parents.contains(&checked.shown) {
            findings = findings.filtered(|finding| !is_left_to_children(finding));
        }
        checked.findings = findings;
    }
}

/// Returns the files that these take over, by the names of their findings.
fn parents<'c>(all: impl Iterator<Item = &'c Checked>) -> BTreeSet<String> {
    let taken = |checked: &Checked| -> Vec<String> {
        checked.sources.iter().skip(1).map(|source| source.name().to_owned()).collect()
    };
    all.flat_map(taken).collect()
}

/// Tells whether a finding is about a key of a whole loop that a file may leave to those that take it over.
fn is_left_to_children(finding: &Diagnostic) -> bool {
    let is_of_whole = match &finding.place {
        FindingPlace::File => true,
        FindingPlace::Value(path) | FindingPlace::Key(path) => path.segments().is_empty(),
        FindingPlace::Bytes(_) | FindingPlace::At(_) | FindingPlace::Within(..) => false,
    };
    finding.code == "missing-key" && is_of_whole
}

/// A file to check.
struct FileToCheck {
    /// What was asked for, or the name of the file.
    asked: String,
    /// The file, where that is known.
    path: Option<PathBuf>,
    located: Result<Located, Error>,
    /// Whether a user named this very file, and not a directory around it.
    is_named: bool,
    /// Files whose names are too much like that of this one.
    same: Same,
}

/// Returns the files to check, each once.
fn subjects(named: &[String], options: &CheckOptions<'_>, session: &Session<'_>) -> Vec<FileToCheck> {
    let mut subjects = Vec::new();
    for asked in named {
        let located = session.find(asked, options.outside);
        match directory(asked, &located, session) {
            Some(directory) => {
                let below = load::list_below(&directory, &session.cwd);
                if below.is_empty() {
                    let error = Error::refused(format!("there are no loops in the directory `{asked}`"));
                    subjects.push(FileToCheck::named(asked, Err(error)));
                }
                subjects.extend(FileToCheck::listed(below, options.outside));
            }
            None => subjects.push(FileToCheck::named(asked, located)),
        }
    }
    if named.is_empty() {
        subjects = FileToCheck::listed(load::list(&session.cwd), options.outside);
    }
    let mut seen = HashSet::new();
    subjects
        // One that was not found is kept, so that its error is told.
        .retain(|subject| subject.located.as_ref().map_or(true, |located| seen.insert(located.path.clone())));
    subjects
}

/// Returns the directory that a text names which does not name a loop.
fn directory(asked: &str, located: &Result<Located, Error>, session: &Session<'_>) -> Option<PathBuf> {
    if let Ok(located) = located {
        return Some(located.path.clone()).filter(|path| path.is_dir());
    }
    let named = load::ancestors(&session.cwd).into_iter().map(|root| root.join(DIRECTORY).join(asked));
    std::iter::once(session.cwd.join(asked)).chain(named).find(|path| path.is_dir())
}

impl FileToCheck {
    fn named(asked: &str, located: Result<Located, Error>) -> Self {
        let path = located.as_ref().ok().map(|located| located.path.clone());
        Self { asked: asked.to_owned(), path, located, is_named: true, same: Same::default() }
    }

    fn listed(all: Vec<Listed>, outside: bool) -> Vec<Self> {
        let same = loop_names::same(&all);
        let subject = |(listed, same): (Listed, Same)| {
            let located = listed.located.map(|located| reaching(located, outside));
            let located = located.map_err(|error| refused(&error));
            Self { asked: listed.name, path: Some(listed.path), located, is_named: false, same }
        };
        all.into_iter().zip(same).map(subject).collect()
    }
}
