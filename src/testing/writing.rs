//! Writes cases into test files: those that the program makes, and those of runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::case_text::CaseText;
use super::edges::Coverage;
use super::from_run::case;
use super::generate::{added, generate};
use super::old_runs::OldRun;
use super::play::MOST_TURNS;
use super::suite::{GenerateTo, TestPlace, TestedFile, find_tests};
use super::test_file::LoadedTests;
use super::tested_loop::{LoopUnderTest, named};
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::DIRECTORY;
use crate::files::read::{self, MIB};
use crate::files::replace::replace;

/// What was written, or is to be printed.
pub(crate) enum WrittenCases {
    /// These lines say where cases were written to, and which ways are left.
    Lines(Vec<String>),
    /// The text of the cases.
    Text(String),
}

/// Makes a case for each way of a loop that no test takes.
///
/// # Errors
/// There is no such loop, or its test file cannot be read or written.
pub(crate) fn generated(name: &str, to: GenerateTo, session: &Session<'_>) -> Result<WrittenCases, Error> {
    // That there are no tests yet is no error here: a file is begun.
    let known = find_tests(&[name.to_owned()], session).ok().and_then(|found| found.into_iter().next());
    let (mut subject, coverage, names, target) = if let Some(place) = known {
        of_file(place, session)?
    } else {
        let subject = LoopUnderTest::find(name, session)?;
        let coverage = Coverage::of(&subject.own.machine, &subject.loaded.definition);
        let target = WrittenTarget { path: usual(&subject, session), name: name.to_owned(), text: None };
        (subject, coverage, BTreeSet::new(), target)
    };
    let made = generate(&mut subject, &coverage, &names)
        .map_err(|why| Error::refused(format!("no cases can be made for `{name}`: {why}")))?;
    let mut lines: Vec<String> =
        made.left.iter().map(|edge| format!("no case was found for {}", edge.words())).collect();
    if made.cases.is_empty() {
        lines.insert(0, "every way that a case can be made for is taken by a test already".to_owned());
        return Ok(WrittenCases::Lines(lines));
    }
    match to {
        GenerateTo::Stdout => Ok(WrittenCases::Text(made.cases.iter().map(|case| case.write(2)).collect())),
        GenerateTo::File => {
            let shown = target.write(&made.cases, session)?;
            let count = crate::base::text::plural(made.cases.len() as u64, "case");
            lines.insert(0, format!("{count} written to {shown}: look at each, and take its mark away"));
            Ok(WrittenCases::Lines(lines))
        }
    }
}

/// A test file that is written to.
struct WrittenTarget {
    path: PathBuf,
    /// The loop.
    name: String,
    /// What is in it, if it is there.
    text: Option<String>,
}

impl WrittenTarget {
    /// Adds cases, and returns the file as people know it. What would not be read as a test file is not written.
    fn write(&self, cases: &[CaseText], session: &Session<'_>) -> Result<String, Error> {
        let shown = self.path.strip_prefix(&session.cwd).unwrap_or(&self.path).display().to_string();
        let text = added(self.text.as_deref(), &self.name, cases);
        let tests = LoadedTests::read(&shown, &text);
        if tests.findings.has_errors() {
            let why =
                tests.findings.iter().next().map_or_else(String::new, |finding| finding.message.clone());
            return Err(Error::refused(format!("the cases do not fit into `{shown}`: {why}"))
                .with_hint("print them with `--stdout`, and add them by hand"));
        }
        let failed = |error: &std::io::Error| Error::failed(format!("cannot write `{shown}`"), error);
        if let Some(directory) = self.path.parent() {
            fs_err::create_dir_all(directory).map_err(|error| failed(&error))?;
        }
        replace(&self.path, text).map_err(|error| failed(&error))?;
        Ok(shown)
    }
}

/// Returns the place of the tests of a loop that has none.
fn usual(subject: &LoopUnderTest, session: &Session<'_>) -> PathBuf {
    // A loop that was named by the path of its file may lie outside of any `.loops`.
    let root = if subject.located.name.is_some() { &subject.located.root } else { &session.cwd };
    let name = subject.loaded.definition.name.to_string();
    root.join(DIRECTORY).join("tests").join(format!("{name}.test.yaml"))
}

type Known = (LoopUnderTest, Coverage, BTreeSet<String>, WrittenTarget);

/// Reads a test file, and plays its cases to see what they take.
fn of_file(place: TestPlace, session: &Session<'_>) -> Result<Known, Error> {
    let text = read::text(&place.path, MIB)
        .map_err(|error| Error::refused(format!("cannot read `{}`: {error}", place.shown)))?;
    let path = place.path.clone();
    let mut file = TestedFile::read(place, session)?;
    let ready = file.ready(None);
    let parsed = file.tests.file.clone();
    let mut subject = file.subject?;
    let mut coverage = Coverage::of(&subject.own.machine, &subject.loaded.definition);
    let machine = std::rc::Rc::clone(&subject.own.machine);
    for test in &ready {
        let own = subject.own.clone();
        if let Ok(played) = test.play(&own, &mut subject, MOST_TURNS) {
            coverage.take(&machine, &played.events);
        }
    }
    let names = parsed.iter().flat_map(|file| file.cases.iter().map(|case| case.name.clone())).collect();
    let name = parsed.map_or_else(String::new, |file| file.subject);
    Ok((subject, coverage, names, WrittenTarget { path, name, text: Some(text) }))
}

/// Makes a case of a run, and adds it to the tests of its loop.
///
/// # Errors
/// The loop is not there any more, or its test file cannot be read or written.
pub(crate) fn of_run(run: &OldRun, to: GenerateTo, session: &Session<'_>) -> Result<WrittenCases, Error> {
    let source = &run.recorded.start.source.file;
    let file = session.path(Path::new(source));
    let name = if file.is_file() { source.clone() } else { run.recorded.start.r#loop.to_string() };
    let mut subject = LoopUnderTest::find(&name, session)?;
    let library = &mut subject.library;
    let mut find = |name: &str, caller: &str| named(library, name, caller);
    let made = case(&run.recorded, &run.events, &subject.own.machine, &mut find);
    if to == GenerateTo::Stdout {
        return Ok(WrittenCases::Text(made.write(2)));
    }
    let known =
        find_tests(std::slice::from_ref(&name), session).ok().and_then(|found| found.into_iter().next());
    let target = if let Some(place) = known {
        let text = read::text(&place.path, MIB)
            .map_err(|error| Error::refused(format!("cannot read `{}`: {error}", place.shown)))?;
        WrittenTarget { path: place.path, name, text: Some(text) }
    } else {
        let name = subject.loaded.definition.name.to_string();
        WrittenTarget { path: usual(&subject, session), name, text: None }
    };
    let shown = target.write(&[made], session)?;
    Ok(WrittenCases::Lines(vec![format!("a case of {} written to {shown}", run.name)]))
}
