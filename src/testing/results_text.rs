//! Writes the results of tests for people.

use std::fmt::Write as _;

use super::edges::Coverage;
use super::file_report::{FileReport, ProofResult, SuiteReport};
use super::fuzz_report::FuzzReport;
use super::mutant_report::{MutantReport, Survivor};
use crate::base::text::plural;

/// Writes all results.
pub fn write(report: &SuiteReport, colour: bool) -> String {
    let mut out = String::new();
    for file in &report.files {
        write_file(&mut out, file, report, colour);
    }
    for run in &report.old_runs {
        let mark = if run.is_lost() { "✗ " } else { "" };
        let _ = writeln!(out, "{mark}{}", run.sentence());
    }
    if report.files.len() > 1 {
        let cases: usize = report.files.iter().map(|file| file.cases.len()).sum();
        let failed: usize = report.files.iter().map(FileReport::failed).sum();
        let bad = report.files.iter().filter(|file| file.is_bad()).count();
        let _ =
            write!(out, "{}, {}, {failed} failed", count(report.files.len(), "file"), count(cases, "case"));
        let _ = writeln!(out, "{}", if bad > 0 { format!(", {bad} unusable") } else { String::new() });
    }
    out
}

/// What a file with mistakes comes to beside the cases that were played.
const REST: &str = "what is wrong in it was not tested";

fn count(count: usize, word: &str) -> String {
    plural(count as u64, word)
}

fn write_file(out: &mut String, file: &FileReport, report: &SuiteReport, colour: bool) {
    let drawn = file.test_text.draw(&file.findings, colour);
    if !drawn.is_empty() {
        let _ = writeln!(out, "{drawn}\n");
    }
    for case in file.cases.iter().filter(|case| !case.passed()) {
        let _ = writeln!(out, "✗ {} / {} ({}:{})", file.loop_name, case.name, file.shown, case.line);
        for line in case.details().lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    if let Some(error) = &file.error {
        let _ = writeln!(out, "✗ {}: {}", file.shown, error.message);
        if let Some(help) = &error.help {
            let _ = writeln!(out, "    {help}");
        }
        return;
    }
    if file.is_bad() {
        let (cases, failed) = (file.cases.len(), file.failed());
        let _ = match (cases, failed) {
            (0, _) => writeln!(out, "✗ {}: nothing of it was tested", file.shown),
            (_, 0) => writeln!(out, "✗ {}: {} played; {REST}", file.shown, count(cases, "case")),
            (_, _) => {
                writeln!(out, "✗ {}: {} played, {failed} failed; {REST}", file.shown, count(cases, "case"))
            }
        };
        return;
    }
    let is_red = file.failed() > 0 || file.is_broken();
    let (failed, mark) = (file.failed(), if is_red { "✗" } else { "✓" });
    let coverage = &file.coverage;
    let all = coverage.reachable().count();
    let taken = all - coverage.uncovered().count();
    let _ = write!(out, "{mark} {}: {}", file.loop_name, count(file.cases.len(), "case"));
    if failed > 0 {
        let _ = write!(out, ", {failed} failed");
    }
    let _ = writeln!(out, ", {taken} of {all} ways taken");
    let generated = file.cases.iter().filter(|case| case.is_generated).count();
    if generated > 0 {
        let _ = writeln!(
            out,
            "  {} made by the program, and nobody has looked at it yet",
            count(generated, "case")
        );
    }
    if report.misses_edges(file) {
        let bound = report.min_edges.unwrap_or_default();
        // Rounded down: 99.6 % must not read as the 100 % that are asked for.
        let _ = writeln!(
            out,
            "  {:.0} % of the ways are taken, and {bound} % are asked for",
            coverage.percent().floor()
        );
    }
    write_proofs(out, file);
    if report.shows_coverage || report.misses_edges(file) {
        write_coverage(out, file, coverage, colour);
    }
    if let Some(mutants) = &file.mutants {
        write_mutants(out, mutants, report);
    }
    if let Some(fuzz) = &file.fuzz {
        write_fuzz(out, fuzz);
    }
    if file.ran_truly > 0 {
        let _ = writeln!(out, "  {} ran truly", count(file.ran_truly, "command"));
    }
    if !file.compared.is_empty() {
        let unfit = file.unfit().count();
        let _ = writeln!(out, "  {} compared, {unfit} no longer fit", count(file.compared.len(), "mock"));
    }
    for compared in file.unfit() {
        let _ = writeln!(out, "  ✗ {}: {}", compared.case, compared.sentence(report.now));
    }
    for note in &file.notes {
        let _ = writeln!(out, "  {note}");
    }
}

fn write_proofs(out: &mut String, file: &FileReport) {
    for proof in &file.proofs {
        match &proof.result {
            ProofResult::Proven => {}
            ProofResult::Broken(case) => {
                let _ = writeln!(out, "  ✗ always `{}`: not on this way", proof.text);
                case.lines().for_each(|line| {
                    let _ = writeln!(out, "      {line}");
                });
            }
            ProofResult::Unknown(why) => {
                let _ = writeln!(out, "  always `{}`: not proven, {why}", proof.text);
            }
        }
    }
}

fn write_mutants(out: &mut String, mutants: &MutantReport, report: &SuiteReport) {
    if let Some(why) = &mutants.unusable {
        let _ = writeln!(out, "  no mutants were run: {why}");
        return;
    }
    let _ = writeln!(out, "  {}", mutants.sentence());
    if let Some(bound) = report.min_killed.filter(|bound| mutants.percent() < *bound) {
        // Rounded down for the same reason.
        let _ = writeln!(
            out,
            "  {:.0} % of them are killed, and {bound} % are asked for",
            mutants.percent().floor()
        );
    }
    for Survivor { what, file, line, difference } in &mutants.survivors {
        let place = file.as_ref().map(|file| format!(" ({file}:{})", line.unwrap_or(1))).unwrap_or_default();
        let _ = writeln!(out, "  survived: {what}{place}; no test notices it");
        for line in difference.iter().flat_map(|diff| diff.lines()) {
            let _ = writeln!(out, "      {line}");
        }
    }
    for skipped in &mutants.skipped {
        let _ = writeln!(out, "  skipped: {}:{}: {}", skipped.file, skipped.line, skipped.reason);
    }
}

fn write_fuzz(out: &mut String, fuzz: &FuzzReport) {
    let FuzzReport { seed, walks, steps, unplayed, failure, took } = fuzz;
    let took = took.as_secs_f64();
    let _ = writeln!(out, "  {walks} walks, {steps} events, seed {seed} ({took:.1} s)");
    if *unplayed > 0 {
        let _ = writeln!(out, "  {unplayed} of them came to work that no mock is known for, and ended there");
    }
    if let Some(failure) = failure {
        let _ = writeln!(out, "  ✗ {}", failure.what);
        failure.case.lines().for_each(|line| {
            let _ = writeln!(out, "      {line}");
        });
        if !failure.is_shown {
            let _ =
                writeln!(out, "      the case alone does not show it: `--fuzz {walks} --seed {seed}` does");
        }
    }
}

fn write_coverage(out: &mut String, file: &FileReport, coverage: &Coverage, colour: bool) {
    let drawn = file.loop_text.draw(&coverage.findings(), colour);
    if !drawn.is_empty() {
        let _ = writeln!(out, "\n{drawn}\n");
    }
    for edge in coverage.edges.iter().filter(|edge| !edge.is_reachable) {
        let _ = writeln!(out, "  no run takes {}: left out", edge.id.words());
    }
    let _ = writeln!(out, "  state: visits in all runs, first and again; before a cap");
    for (state, visits) in &coverage.visits {
        let cap = if visits.before_cap > 0 {
            format!("; {} before a cap", visits.before_cap)
        } else {
            String::new()
        };
        let _ = writeln!(out, "    {state}: {} and {}{cap}", visits.first, visits.again);
    }
}
