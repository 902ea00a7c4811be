//! The results of the tests of a loop, and of all of them.

use super::case_report::CaseReport;
use super::edges::Coverage;
use super::fuzz_report::FuzzReport;
use super::mutant_report::MutantReport;
use super::old_run_report::OldRunReport;
use super::real_report::ComparedMock;
use crate::base::diagnostic::Diagnostics;
use crate::base::node::Node;
use crate::base::time::Timestamp;
use crate::definition::render;
use crate::definition::source_text::Sources;

/// A file as findings in it are drawn.
#[derive(Clone, Debug, Default)]
pub struct DrawnFile {
    /// The texts.
    pub sources: Sources,
    /// The tree.
    pub tree: Option<Node>,
}

impl DrawnFile {
    /// Draws findings.
    pub fn draw(&self, findings: &Diagnostics, colour: bool) -> String {
        render::to_text(findings, &self.sources, self.tree.as_ref(), colour)
    }
}

/// An error of a file, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedError {
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// The result of a test file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The test file, as people know it.
    pub shown: String,
    /// The loop, as the file names it.
    pub loop_name: String,
    /// The file of the loop, as people know it.
    pub loop_file: String,
    /// What is wrong with the test file.
    pub findings: Diagnostics,
    /// The test file, to draw findings.
    pub test_text: DrawnFile,
    /// The loop, to draw findings.
    pub loop_text: DrawnFile,
    /// Why the loop cannot be tested, if it cannot.
    pub error: Option<ReportedError>,
    /// The results of the cases.
    pub cases: Vec<CaseReport>,
    /// Which ways they took.
    pub coverage: Coverage,
    /// The results of what always holds.
    pub proofs: Vec<ProofReport>,
    /// The results of the mutants, if they were run.
    pub mutants: Option<MutantReport>,
    /// The results of walks at random, if any were taken.
    pub fuzz: Option<FuzzReport>,
    /// What commands come to beside their mocks, if they were run.
    pub compared: Vec<ComparedMock>,
    /// How many cases could not be played to compare their mocks.
    pub unplayed: usize,
    /// How often the state ran that is to be run truly.
    pub ran_truly: usize,
    /// What was done beside, in lines.
    pub notes: Vec<String>,
}

/// The result of a sentence of `always`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofReport {
    /// The sentence.
    pub text: String,
    /// Its result.
    pub result: ProofResult,
}

/// The result of a sentence of `always` on all ways of the model check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofResult {
    /// It holds on all of them.
    Proven,
    /// It is broken by a run like this, a case ready to paste.
    Broken(String),
    /// The model cannot tell, and why.
    Unknown(String),
}

impl FileReport {
    /// Tells whether a sentence of `always` is broken, by a way of the model or a walk.
    pub fn is_broken(&self) -> bool {
        let broken = self.proofs.iter().any(|proof| matches!(proof.result, ProofResult::Broken(_)));
        broken || self.fuzz.as_ref().is_some_and(|fuzz| fuzz.failure.is_some())
    }

    /// Returns the mocks that no longer fit.
    pub fn unfit(&self) -> impl Iterator<Item = &ComparedMock> {
        self.compared.iter().filter(|compared| !compared.fits())
    }

    /// Tells whether the file cannot be used.
    pub fn is_bad(&self) -> bool {
        self.error.is_some() || self.findings.has_errors()
    }

    /// Returns how many cases failed.
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| !case.passed()).count()
    }
}

/// The results of all of them, and what was asked for.
#[derive(Clone, Debug)]
pub struct SuiteReport {
    /// The files.
    pub files: Vec<FileReport>,
    /// Whether the ways that no test takes are shown.
    pub shows_coverage: bool,
    /// The share of the ways that has to be taken, in percent.
    pub min_edges: Option<f64>,
    /// The share of the mutants that has to be killed, in percent.
    pub min_killed: Option<f64>,
    /// The results of old runs.
    pub old_runs: Vec<OldRunReport>,
    /// What time it is.
    pub now: Timestamp,
}

impl SuiteReport {
    /// Returns the exit code: 2 for a bad file, 1 for a case that failed or a bound that was missed.
    pub fn exit_code(&self) -> u8 {
        // Before the others: how the cases of a file that cannot be used would end is unknown.
        if self.files.iter().any(FileReport::is_bad) {
            return 2;
        }
        let fails = |file: &FileReport| {
            let misses = self.misses_edges(file) || self.misses_killed(file);
            let is_unfit = file.unplayed > 0 || file.unfit().next().is_some();
            file.failed() > 0 || file.is_broken() || misses || is_unfit
        };
        u8::from(self.files.iter().any(fails) || self.old_runs.iter().any(OldRunReport::is_lost))
    }

    /// Tells whether too few mutants of a loop are killed.
    pub fn misses_killed(&self, file: &FileReport) -> bool {
        let Some(mutants) = &file.mutants else { return false };
        // Where a case fails without a mutant, no mutant was tried, so the bound is not met.
        mutants.unusable.is_some() || self.min_killed.is_some_and(|bound| mutants.percent() < bound)
    }

    /// Tells whether too few ways of a loop are taken.
    pub fn misses_edges(&self, file: &FileReport) -> bool {
        self.min_edges.is_some_and(|bound| !file.is_bad() && file.coverage.percent() < bound)
    }
}
