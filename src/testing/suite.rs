//! Finds test files, plays their cases, and collects the results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use globset::{Glob, GlobMatcher};

use super::always::Always;
use super::case_player::CasePlayer;
use super::case_report::{CaseFailure, CaseReport};
use super::changed_lines::since;
use super::counterexample::{HeldClaim, hold, words};
use super::edges::Coverage;
use super::expected::path;
use super::file_report::{DrawnFile, FileReport, ProofReport, ProofResult, ReportedError};
use super::kept_snapshots::KeptSnapshots;
use super::mutate::MutantSelection;
use super::play::MOST_TURNS;
use super::prepare::ready;
use super::ready_test::ReadyTest;
use super::real_work::{compare as compare_mocks, real};
use super::test_file::{LoadedTests, check};
use super::test_worktree::TestWorktree;
use super::tested_loop::{LoopUnderTest, named};
use super::written::TestFile;
use super::{fuzz, mutate};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::path::DocPath;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::talk::Silence;
use crate::definition::builtin::is_builtin;
use crate::definition::load::{self, DIRECTORY};
use crate::files::file_name::file_name;
use crate::files::read::{self as files, MIB};
use crate::process::clock::Clock;
use crate::report::digest::Digest;
use crate::report::why::{Why, chain_text};

/// The directory in `.loops` that holds test files.
const TESTS: &str = "tests";

/// How the names of test files end.
const ENDINGS: [&str; 2] = [".test.yaml", ".test.yml"];

/// How deep directories of test files may be nested.
// Links are not followed, so there are no circles; this bounds what a stranger's checkout may make the search walk.
const DEEPEST: usize = 8;

/// Which tests are run, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct SuiteOptions {
    /// Which mutants are run, if any are.
    pub(crate) mutants: Option<MutantOptions>,
    /// How many walks at random are taken, and what they follow from.
    pub(crate) fuzz: Option<(u64, u64)>,
    /// Whether the commands that are mocked are run and compared.
    pub(crate) verifies_mocks: bool,
    /// The state that is run truly, if one is.
    pub(crate) real: Option<String>,
    /// Which cases, by their names.
    pub(crate) case: Option<String>,
    /// Whether snapshots are written anew.
    pub(crate) updates: bool,
    /// Whether nothing may be written.
    pub(crate) is_ci: bool,
}

/// Which mutants are run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MutantOptions {
    /// Only those that a change since this commit touches.
    pub(crate) in_diff: Option<String>,
    /// This part of them, from 1, of so many.
    pub(crate) shard: Option<(usize, usize)>,
}

/// Where cases are written to that the program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GenerateTo {
    /// Into the test file.
    File,
    /// To standard output.
    Stdout,
}

/// A test file that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TestPlace {
    /// The file.
    pub(crate) path: PathBuf,
    /// The directory with the `.loops` that it is in, or else that of the session.
    pub(crate) root: PathBuf,
    /// The file as people know it.
    pub(crate) shown: String,
}

/// A test file with its loop, ready to be played.
pub(crate) struct TestedFile {
    pub(crate) place: TestPlace,
    pub(crate) tests: LoadedTests,
    /// The loop, or why it cannot be tested.
    pub(crate) subject: Result<LoopUnderTest, Error>,
    /// The directory from which the names of the files of the loop count.
    base: PathBuf,
}

/// Tells whether the name of a file says that it holds tests of a loop.
pub(crate) fn is_test_file(path: &Path) -> bool {
    let name = file_name(path);
    ENDINGS.iter().any(|ending| name.ends_with(ending) && name.len() > ending.len())
}

/// Finds the test files that are meant, each once.
///
/// # Errors
/// A name means none, or there are none at all.
pub(crate) fn find_tests(names: &[String], session: &Session<'_>) -> Result<Vec<TestPlace>, Error> {
    let all = listed(session);
    if names.is_empty() {
        return if all.is_empty() { Err(none()) } else { Ok(all) };
    }
    let mut found: Vec<TestPlace> = Vec::new();
    for name in names {
        let meant = meant(name, &all, session)?;
        let new = meant.into_iter().filter(|place| !found.contains(place));
        let new: Vec<_> = new.collect();
        found.extend(new);
    }
    Ok(found)
}

fn none() -> Error {
    Error::refused("no tests here")
        .with_hint("write `.loops/tests/NAME.test.yaml`, or let `ll-loop test --generate NAME` begin one")
}

fn meant(name: &str, all: &[TestPlace], session: &Session<'_>) -> Result<Vec<TestPlace>, Error> {
    let given = session.path(Path::new(name));
    if let Some(place) = at_path(&given, session) {
        return Ok(vec![place]);
    }
    if given.is_dir() && !given.join(DIRECTORY).is_dir() {
        let mut below = Vec::new();
        walk(&given, 0, &mut |path| below.push(placed(path, session)));
        below.sort();
        return if below.is_empty() {
            Err(Error::refused(format!("there are no tests in the directory `{name}`")))
        } else {
            Ok(below)
        };
    }
    let wanted = session.find(name, false).ok().map(|located| located.path);
    let is_of = |place: &&TestPlace| {
        // A test file that cannot be read belongs to no loop. That it cannot be read is said where all tests are run.
        let text = files::text(&place.path, MIB).unwrap_or_default();
        let tests = LoadedTests::read(&place.shown, &text);
        let subject = tests.file.map(|file| file.subject).unwrap_or_default();
        let file = || {
            let (session, name) = located(&subject, place, session);
            session.find(&name, false).ok()
        };
        // A test may name its loop by a path and the command line by a name: both may lead to one file.
        subject == name
            || wanted.as_ref().is_some_and(|wanted| file().is_some_and(|file| file.path == *wanted))
    };
    let of_loop: Vec<TestPlace> = all.iter().filter(is_of).cloned().collect();
    if of_loop.is_empty() { Err(untested(name, session)) } else { Ok(of_loop) }
}

/// Says why there are no tests of this name.
fn untested(name: &str, session: &Session<'_>) -> Error {
    match session.find(name, false) {
        Ok(located) if is_builtin(&located.shown) => {
            Error::refused(format!("`{name}` is a loop of the catalogue, and is not in this project"))
                .with_hint(format!("`ll-loop add {name}` copies it to `.loops`, and its tests with it"))
        }
        Ok(_) => Error::refused(format!("`{name}` has no tests"))
            .with_hint(format!("`ll-loop test --generate {name}` begins a test file")),
        Err(error) => error,
    }
}

/// Lists the test files of the project.
pub(crate) fn listed(session: &Session<'_>) -> Vec<TestPlace> {
    let mut all = Vec::new();
    for root in load::ancestors(&session.cwd) {
        walk(&root.join(DIRECTORY).join(TESTS), 0, &mut |path| all.push(placed(path, session)));
    }
    all.sort();
    all
}

fn walk(directory: &Path, depth: usize, take: &mut dyn FnMut(&Path)) {
    if depth > DEEPEST {
        return;
    }
    for entry in fs_err::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        // The type of the entry, not of what a link leads to: a link to a directory above would be walked again and again.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&path, depth + 1, take),
            Ok(kind) if kind.is_file() && is_test_file(&path) => take(&path),
            Ok(_) | Err(_) => {}
        }
    }
}

fn walk_loops(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    if depth > DEEPEST {
        return;
    }
    for entry in fs_err::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk_loops(&path, depth + 1, files),
            Ok(_) if load::is_loop_file(&path) => files.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Makes the place of a test file.
pub(crate) fn placed(path: &Path, session: &Session<'_>) -> TestPlace {
    let root = path
        .ancestors()
        .find(|above| above.file_name().is_some_and(|name| name == DIRECTORY))
        .and_then(Path::parent)
        .map_or_else(|| session.cwd.clone(), Path::to_owned);
    let shown = path.strip_prefix(&session.cwd).unwrap_or(path).display().to_string();
    TestPlace { path: path.to_owned(), root, shown }
}

/// Returns the session and the name by which the loop of a test file is found: a path counts from the test file.
pub(crate) fn located<'s>(subject: &str, place: &TestPlace, session: &Session<'s>) -> (Session<'s>, String) {
    let beside = place.path.parent().map(|directory| directory.join(subject));
    match beside.filter(|path| load::is_loop_file(path) && path.is_file()) {
        Some(path) => (session.clone(), path.display().to_string()),
        None => (session.at(&place.root), subject.to_owned()),
    }
}

/// A test file that was checked, and nothing played.
pub(crate) struct CheckedTests {
    /// What is wrong with it.
    pub(crate) findings: Diagnostics,
    /// The text and the tree, to draw findings.
    pub(crate) drawn: DrawnFile,
    /// The file of the loop that it tests, if that is there.
    pub(crate) loop_file: Option<PathBuf>,
}

/// Checks a test file, and plays nothing.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn checked(place: TestPlace, session: &Session<'_>) -> Result<CheckedTests, Error> {
    // What is wrong with the loop is said about the loop.
    let mut file = TestedFile::read(place, &session.clone().talking_to(&Silence))?;
    file.ready(None);
    let tests = &mut file.tests;
    if let (Some(_), Err(error)) = (&tests.file, &file.subject) {
        let place = FindingPlace::Value(DocPath::root().key("loop"));
        tests.findings.push(Diagnostic::error("test-case", place, error.message().to_owned()));
    }
    let loop_file = file.subject.as_ref().ok().map(|subject| subject.located.path.clone());
    let drawn = DrawnFile { sources: tests.sources.clone(), tree: tests.tree.clone() };
    Ok(CheckedTests { findings: tests.findings.clone(), drawn, loop_file })
}

/// Returns the test file at a path, as people name it.
pub(crate) fn at_path(path: &Path, session: &Session<'_>) -> Option<TestPlace> {
    let given = session.path(path);
    (is_test_file(&given) && given.is_file()).then(|| placed(&given, session))
}

impl TestedFile {
    /// Reads a test file, and the loop that it tests.
    pub(crate) fn read(place: TestPlace, session: &Session<'_>) -> Result<Self, Error> {
        let text = session
            .unsaved
            .text(&place.path, MIB)
            .map_err(|error| Error::refused(format!("cannot read `{}`: {error}", place.shown)))?;
        Ok(Self::of_text(place, &text, session))
    }

    /// Reads the text of a test file, and the loop that it tests.
    pub(crate) fn of_text(place: TestPlace, text: &str, session: &Session<'_>) -> Self {
        let mut tests = LoadedTests::read(&place.shown, text);
        let mut base = session.cwd.clone();
        let subject = match &tests.file {
            None => Err(Error::refused(format!("`{}` cannot be read", place.shown))),
            Some(file) => {
                let (session, name) = located(&file.subject, &place, session);
                base.clone_from(&session.cwd);
                LoopUnderTest::find(&name, &session)
            }
        };
        if let (Some(file), Ok(subject)) = (&tests.file, &subject) {
            check(file, &subject.own.machine, &mut tests.findings);
        }
        Self { place, tests, subject, base }
    }

    /// Returns the file that holds the snapshots of its cases.
    pub(super) fn snapshots(&self) -> PathBuf {
        let name = file_name(&self.place.path);
        let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
        self.place.path.with_file_name(format!("{stem}.snapshots"))
    }

    /// Returns every file that changes what comes of it: its own, its snapshots, those of the loop and of the loops that this
    /// one runs. Where the loop cannot be read, it is everything beside it.
    pub(crate) fn depends_on(&mut self) -> Vec<PathBuf> {
        let mut files = vec![self.place.path.clone(), self.snapshots()];
        match &mut self.subject {
            Ok(subject) => {
                let machine = Rc::clone(&subject.own.machine);
                // It reads the sub-loops; their files are among the texts of the library only then.
                subject.library.check(&machine);
                let own = subject.loaded.sources.iter().map(|source| source.name().to_owned());
                let below = subject.library.texts().map(|(name, _)| name);
                files.extend(own.chain(below).map(|name| self.base.join(name)));
            }
            Err(_) => walk_loops(&self.place.root.join(DIRECTORY), 0, &mut files),
        }
        files
    }

    /// Makes the cases ready that can be; what is wrong with the others is a finding.
    pub(crate) fn ready(&mut self, only: Option<&GlobMatcher>) -> Vec<ReadyTest> {
        let (Some(file), Ok(subject)) = (&self.tests.file, &mut self.subject) else { return Vec::new() };
        // Taken out while the cases are made ready, which borrow everything else of the loop.
        let mut library = std::mem::replace(
            &mut subject.library,
            crate::session::prepare::library::Library::new(&subject.located),
        );
        let texts = subject.texts();
        let tested = subject.tested(&texts);
        let mut all = Vec::new();
        for (index, case) in file.cases.iter().enumerate() {
            if only.is_some_and(|only| !only.is_match(&case.name)) {
                continue;
            }
            let place = DocPath::root().key("cases").index(index);
            let mut find = |name: &str, caller: &str| named(&mut library, name, caller);
            let ready = ready(case, tested, &mut find, &place, &mut self.tests.findings);
            let line = self.tests.line(&place.key("name"));
            let is_generated = self.tests.is_generated(index);
            all.extend(ready.map(|ready| ReadyTest { case: case.clone(), ready, place, line, is_generated }));
        }
        subject.library = library;
        all
    }
}

impl ReportedError {
    fn of(error: &Error) -> Self {
        Self { message: error.message().to_owned(), help: error.hint().map(str::to_owned) }
    }
}

/// Plays the cases of a file, and does what else was asked for.
pub(crate) fn run(
    file: &mut TestedFile,
    options: &SuiteOptions,
    session: &Session<'_>,
) -> Result<FileReport, Error> {
    let only = options.case.as_deref().map(glob).transpose()?;
    let ready = file.ready(only.as_ref());
    let snapshot_file = file.snapshots();
    let always = file.tests.file.as_ref().map(|file: &TestFile| file.always.clone()).unwrap_or_default();
    let mut report = begun(file);
    let base = session.at(&file.base);
    let Ok(subject) = &mut file.subject else { return Ok(report) };
    let mut kept = KeptSnapshots::read(&snapshot_file, options.updates, options.is_ci);
    let worktree = match (options.verifies_mocks, &options.real) {
        (false, None) => None,
        (true, _) | (_, Some(_)) => Some(TestWorktree::make(&subject.located.root, session)?),
    };
    for test in &ready {
        let truly = options.real.as_deref().zip(worktree.as_ref());
        let truly = truly.map(|(state, worktree)| TrueWork { state, worktree, count: &mut report.ran_truly });
        report.cases.push(played(test, truly, subject, &always, &mut kept, &mut report.coverage));
    }
    if options.verifies_mocks
        && let Some(worktree) = &worktree
    {
        // Shared by all cases: a command that several of them mock is run once.
        let mut seen = BTreeSet::new();
        for test in &ready {
            if let Err(why) = compare_mocks(test, subject, worktree, &mut report.compared, &mut seen) {
                report.unplayed += 1;
                report.notes.push(format!("`{}` could not be played: {why}", test.case.name));
            }
        }
    }
    report.proofs = always.iter().map(|always| proved(always, subject)).collect();
    if let Some(mutants) = &options.mutants {
        let selection = selection(mutants, subject, &base)?;
        report.mutants = Some(mutate::run(&ready, subject, &always, &kept, &selection));
    }
    if let Some((walks, seed)) = options.fuzz {
        match fuzz::run(subject, &always, walks, seed) {
            Ok(fuzzed) => report.fuzz = Some(fuzzed),
            Err(why) => report.notes.push(format!("no walks were taken: {why}")),
        }
    }
    // At the very end, so that the file stays as it was where something above fails.
    kept.write(&snapshot_file)?;
    Ok(report)
}

/// Returns what says that there is time for more, until this much has passed.
pub(crate) fn while_within(limit: Duration) -> impl FnMut() -> bool {
    let clock = Clock::start();
    move || clock.elapsed() < limit
}

/// Plays the cases of a file and looks at nothing but the ways that they take, unless `goes_on` says no. Nothing is started or
/// written.
pub(crate) fn covered(file: &mut TestedFile, goes_on: &mut dyn FnMut() -> bool) -> Option<Coverage> {
    let ready = file.ready(None);
    let subject = file.subject.as_mut().ok()?;
    let own = subject.own.clone();
    let mut coverage = Coverage::of(&own.machine, &subject.loaded.definition);
    for test in &ready {
        if !goes_on() {
            return None;
        }
        // A case that cannot be played takes no way.
        if let Ok(played) = test.play(&own, subject, MOST_TURNS) {
            coverage.take(&own.machine, &played.events);
        }
    }
    Some(coverage)
}

/// Begins the report of a file.
fn begun(file: &TestedFile) -> FileReport {
    let tests = &file.tests;
    let mut report = FileReport {
        shown: file.place.shown.clone(),
        loop_name: tests.file.as_ref().map(|file| file.subject.clone()).unwrap_or_default(),
        loop_file: String::new(),
        findings: tests.findings.clone(),
        test_text: DrawnFile { sources: tests.sources.clone(), tree: tests.tree.clone() },
        loop_text: DrawnFile::default(),
        // A test file that cannot be read is explained by its findings; that its loop is unknown then says nothing more.
        error: file.subject.as_ref().err().filter(|_| tests.file.is_some()).map(ReportedError::of),
        cases: Vec::new(),
        coverage: Coverage::default(),
        proofs: Vec::new(),
        mutants: None,
        fuzz: None,
        compared: Vec::new(),
        unplayed: 0,
        ran_truly: 0,
        notes: Vec::new(),
    };
    if let Ok(subject) = &file.subject {
        report.loop_file.clone_from(&subject.located.shown);
        let (sources, tree) = (subject.loaded.sources.clone(), Some(subject.loaded.tree.clone()));
        report.loop_text = DrawnFile { sources, tree };
        report.coverage = Coverage::of(&subject.own.machine, &subject.loaded.definition);
    }
    report
}

/// Looks whether a sentence holds on every way of the model. Where it does not, a run has to show it.
fn proved(always: &Always, subject: &mut LoopUnderTest) -> ProofReport {
    let own = subject.own.clone();
    let held = CasePlayer::of(subject).map(|player| hold(always, &own, &player, subject));
    let result = match held {
        Ok(HeldClaim::Proven) => ProofResult::Proven,
        Ok(HeldClaim::Unknown(why)) => ProofResult::Unknown(why),
        Ok(HeldClaim::Broken(found)) => {
            ProofResult::Broken(format!("# {}\n{}", words(&found.way), found.case.write(2)))
        }
        Err(why) => ProofResult::Unknown(format!("no run can begin: {why}")),
    };
    ProofReport { text: always.text.clone(), result }
}

fn selection(
    mutants: &MutantOptions,
    subject: &LoopUnderTest,
    session: &Session<'_>,
) -> Result<MutantSelection, Error> {
    let files: Vec<String> = subject.loaded.sources.iter().map(|source| source.name().to_owned()).collect();
    let changed =
        mutants.in_diff.as_deref().map(|reference| since(reference, &files, session)).transpose()?;
    Ok(MutantSelection { shard: mutants.shard, changed })
}

/// A state that is run truly.
struct TrueWork<'t, 's> {
    state: &'t str,
    worktree: &'t TestWorktree<'s>,
    /// How often it ran.
    count: &'t mut usize,
}

fn played(
    test: &ReadyTest,
    truly: Option<TrueWork<'_, '_>>,
    subject: &mut LoopUnderTest,
    always: &[Always],
    snapshots: &mut KeptSnapshots,
    coverage: &mut Coverage,
) -> CaseReport {
    let own = subject.own.clone();
    let machine = Rc::clone(&own.machine);
    let mut report = CaseReport::new(&test.case.name, test.line, test.is_generated);
    let played = match truly {
        Some(TrueWork { state, worktree, count }) => real(test, state, count, subject, worktree),
        None => test.play(&own, subject, MOST_TURNS),
    };
    let played = match played {
        Ok(played) => played,
        Err(why) => {
            report.failures.push(CaseFailure::NotMade(why.into()));
            return report;
        }
    };
    // A case that fails has taken its ways all the same.
    coverage.take(&machine, &played.events);
    report.failures = test.failures(&played, always, &machine, snapshots);
    report.path = path(&played.events);
    report.expected_path = test.case.expect.as_ref().and_then(|expected| expected.path.clone());
    report.took = played.events.last().map_or(Duration::ZERO, |last| last.at);
    if !report.failures.is_empty() {
        let mut digest = Digest::default();
        played.events.iter().for_each(|stamped| digest.event(stamped));
        report.why = Why::of(&digest).map(|why| chain_text::chain(&why));
    }
    report
}

/// Makes the pattern of a `--case`.
pub(crate) fn glob(pattern: &str) -> Result<GlobMatcher, Error> {
    Glob::new(pattern).map(|glob| glob.compile_matcher()).map_err(|error| {
        Error::refused(format!("`--case {pattern}` is not a pattern: {error}")).with_hint("write `*retries*`")
    })
}
