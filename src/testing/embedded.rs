//! Plays cases for a program that embeds ll-loop.

use super::file_report::SuiteReport;
use super::results_text;
use super::suite::{SuiteOptions, TestPlace, TestedFile, run};
use crate::context::Session;
use crate::context::error::Error;
use crate::process::clock::Clock;

/// The results of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedCases {
    /// How many were played.
    pub played: usize,
    /// The names of those that are not as expected.
    pub failed: Vec<String>,
    /// Everything that there is to say, as `ll-loop test` says it.
    pub text: String,
}

/// Plays the cases of a test file, given as its text. No action of the loop is run, and nothing is written.
///
/// # Errors
/// The text is not a test file, its loop is not there or has errors, or a case cannot be played on it.
pub fn play_cases(text: &str, session: &Session<'_>) -> Result<PlayedCases, Error> {
    // No such file is read: the text has a place only so that the paths in it have a directory.
    let path = session.cwd.join("cases.test.yaml");
    let place = TestPlace { path, root: session.cwd.clone(), shown: "the cases".to_owned() };
    let mut file = TestedFile::of_text(place, text, session);
    // As in CI, where nothing is written.
    let options = SuiteOptions { is_ci: true, ..SuiteOptions::default() };
    let report = run(&mut file, &options, session)?;
    let failed = report.cases.iter().filter(|case| !case.passed()).map(|case| case.name.clone()).collect();
    let (played, is_bad) = (report.cases.len(), report.is_bad());
    let whole = SuiteReport {
        files: vec![report],
        shows_coverage: false,
        min_edges: None,
        min_killed: None,
        old_runs: Vec::new(),
        now: Clock::start().now(),
    };
    let text = results_text::write(&whole, false);
    if is_bad { Err(Error::refused(text)) } else { Ok(PlayedCases { played, failed, text }) }
}
