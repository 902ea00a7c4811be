//! Writes the results of tests for CI systems: JUnit, annotations, and the coverage of the lines of loop files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::case_report::{CaseFailure, CaseReport};
use super::file_report::{DrawnFile, FileReport, ProofReport, ProofResult, SuiteReport};
use crate::base::diagnostic::{Diagnostics, FindingPlace};
use crate::base::node::FileId;
use crate::base::path::DocPath;
use crate::definition::render;
use crate::report::annotations::{Annotation, AnnotationLevel, Location};
use crate::report::formats::junit::{self, PlainCase};

/// Returns the results as JUnit XML: a suite for each loop, and a case with its name for each of its cases.
pub fn junit(report: &SuiteReport) -> String {
    let suites = report.files.iter().map(|file| {
        let cases = file.cases.iter().map(|case| plain_case(file, case));
        let broken = file.is_bad().then(|| PlainCase {
            name: format!("{} / test file", file.loop_name),
            took: std::time::Duration::ZERO,
            failure: Some(("test file".to_owned(), why_bad(file))),
        });
        let claims = file.proofs.iter().map(|proof| PlainCase {
            name: format!("{} / always {}", file.loop_name, proof.text),
            took: std::time::Duration::ZERO,
            failure: match &proof.result {
                ProofResult::Broken(case) => {
                    Some(("always".to_owned(), format!("it does not hold:\n{case}")))
                }
                // As for the exit code: what the model cannot tell is no failure.
                ProofResult::Proven | ProofResult::Unknown(_) => None,
            },
        });
        junit::plain_suite(&file.loop_name, cases.chain(claims).chain(broken))
    });
    junit::file(suites)
}

fn plain_case(file: &FileReport, case: &CaseReport) -> PlainCase {
    let word = case.failures.first().map(CaseFailure::word);
    PlainCase {
        name: format!("{} / {}", file.loop_name, case.name),
        took: case.took,
        failure: word.map(|word| (word.to_owned(), case.details())),
    }
}

fn why_bad(file: &FileReport) -> String {
    let error = file.error.as_ref().map(|error| error.message.clone());
    error.unwrap_or_else(|| file.test_text.draw(&file.findings, false))
}

/// Returns what people have to look at, each at its line.
pub fn annotations(report: &SuiteReport) -> Vec<Annotation> {
    report.files.iter().flat_map(|file| of_file(file, report)).collect()
}

fn of_file(file: &FileReport, report: &SuiteReport) -> Vec<Annotation> {
    let mut all = Vec::new();
    for case in file.cases.iter().filter(|case| !case.passed()) {
        all.push(Annotation {
            level: AnnotationLevel::Error,
            title: format!("{} / {}", file.loop_name, case.name),
            message: case.details(),
            location: Some(Location {
                file: file.shown.clone(),
                line: u32::try_from(case.line).ok(),
                column: None,
            }),
        });
    }
    if let Some(error) = &file.error {
        all.push(Annotation {
            level: AnnotationLevel::Error,
            title: file.shown.clone(),
            message: error.message.clone(),
            location: Some(Location { file: file.shown.clone(), line: None, column: None }),
        });
    }
    all.extend(of_findings(&file.findings, file, true));
    if report.shows_coverage || report.misses_edges(file) {
        all.extend(of_findings(&file.coverage.findings(), file, false));
    }
    // Without a bound survivors are questions for people, and fail nothing.
    let level = if report.misses_killed(file) { AnnotationLevel::Warning } else { AnnotationLevel::Notice };
    let survivors = file.mutants.iter().flat_map(|mutants| &mutants.survivors);
    all.extend(survivors.map(|survivor| Annotation {
        level,
        title: "no test notices this".to_owned(),
        message: format!("{}\n{}", survivor.what, survivor.difference.clone().unwrap_or_default()),
        location: survivor.file.clone().map(|file| Location {
            file,
            line: survivor.line.and_then(|line| u32::try_from(line).ok()),
            column: None,
        }),
    }));
    all.extend(file.proofs.iter().filter_map(|proof| broken(proof, file)));
    all
}

fn broken(proof: &ProofReport, file: &FileReport) -> Option<Annotation> {
    let ProofResult::Broken(case) = &proof.result else { return None };
    Some(Annotation {
        level: AnnotationLevel::Error,
        title: format!("{}: `{}` does not hold", file.loop_name, proof.text),
        message: format!("a run like this breaks it:\n{case}"),
        location: Some(Location { file: file.shown.clone(), line: None, column: None }),
    })
}

fn of_findings(findings: &Diagnostics, file: &FileReport, of_test: bool) -> Vec<Annotation> {
    let drawn = if of_test { &file.test_text } else { &file.loop_text };
    let objects = render::to_json(findings, &drawn.sources, drawn.tree.as_ref());
    let annotation = |object: &serde_json::Value| {
        let text = |key: &str| object.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
        let number = |key: &str| object.get(key)?.as_u64().and_then(|number| u32::try_from(number).ok());
        let level = match text("severity").as_deref() {
            Some("error") => AnnotationLevel::Error,
            Some("warning") => AnnotationLevel::Warning,
            _ => AnnotationLevel::Notice,
        };
        let message = text("message").unwrap_or_default();
        let message = text("help").map_or(message.clone(), |help| format!("{message}\nhelp: {help}"));
        let location =
            text("file").map(|file| Location { file, line: number("line"), column: number("column") });
        Annotation { level, title: text("code").unwrap_or_default(), message, location }
    };
    objects.iter().map(annotation).collect()
}

/// Returns which lines of the loop files tests have come to, as LCOV: the lines of states and of their ways.
pub fn lcov(report: &SuiteReport) -> String {
    let mut out = String::new();
    for file in report.files.iter().filter(|file| !file.is_bad()) {
        let mut lines: BTreeMap<usize, u64> = BTreeMap::new();
        let mut branches: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (state, visits) in &file.coverage.visits {
            if let Some(line) = line(file, &DocPath::root().key("states").key(state.as_str())) {
                *lines.entry(line).or_default() += visits.first + visits.again;
            }
        }
        for edge in file.coverage.reachable() {
            let taken = file.coverage.count(edge);
            if let Some(line) = line(file, &edge.key) {
                *lines.entry(line).or_default() += taken;
                branches.entry(line).or_default().push(taken);
            }
        }
        let _ = writeln!(out, "TN:\nSF:{}", file.loop_file);
        for (line, taken) in
            branches.iter().flat_map(|(line, all)| all.iter().enumerate().map(move |one| (line, one)))
        {
            let (branch, count) = taken;
            // A hyphen says that the line itself was never reached.
            let is_reached = lines.get(line).is_some_and(|taken| *taken > 0);
            let count = if is_reached { count.to_string() } else { "-".to_owned() };
            let _ = writeln!(out, "BRDA:{line},0,{branch},{count}");
        }
        for (line, count) in &lines {
            let _ = writeln!(out, "DA:{line},{count}");
        }
        let hit = lines.values().filter(|count| **count > 0).count();
        let _ = writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len());
    }
    out
}

/// Returns the line of a key of the loop file itself.
fn line(file: &FileReport, key: &DocPath) -> Option<usize> {
    let DrawnFile { sources, tree } = &file.loop_text;
    let span = sources.locate(&FindingPlace::Key(key.clone()), tree.as_ref())?;
    // A record of LCOV is about one file.
    if span.file != FileId(0) {
        return None;
    }
    Some(sources.get(span.file)?.position(span.range.start).line)
}
