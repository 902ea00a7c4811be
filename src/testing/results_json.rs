//! Writes the results of tests for programs: one object.

use serde_json::{Value, json};

use super::case_report::{CaseFailure, CaseReport};
use super::edges::Coverage;
use super::file_report::{FileReport, ProofReport, ProofResult, SuiteReport};
use super::fuzz_report::FuzzReport;
use super::mutant_report::MutantReport;
use super::old_run_report::{OldRunReport, OldRunResult};
use crate::base::time::millis;
use crate::definition::render;

/// Returns all results.
pub fn object(report: &SuiteReport) -> Value {
    let cases: usize = report.files.iter().map(|file| file.cases.len()).sum();
    let failed: usize = report.files.iter().map(FileReport::failed).sum();
    json!({
        "exit_code": report.exit_code(),
        "cases": cases,
        "failed": failed,
        "files": report.files.iter().map(|file| of_file(file, report)).collect::<Vec<_>>(),
        "runs": report.old_runs.iter().map(of_old_run).collect::<Vec<_>>(),
    })
}

fn of_file(file: &FileReport, report: &SuiteReport) -> Value {
    let test = &file.test_text;
    json!({
        "file": file.shown,
        "loop": file.loop_name,
        "loop_file": file.loop_file,
        "error": file.error.as_ref().map(|error| &error.message),
        "findings": render::to_json(&file.findings, &test.sources, test.tree.as_ref()),
        "cases": file.cases.iter().map(of_case).collect::<Vec<_>>(),
        "edges": of_coverage(&file.coverage),
        "misses_min_edges": report.misses_edges(file),
        "always": file.proofs.iter().map(of_proof).collect::<Vec<_>>(),
        "mutants": file.mutants.as_ref().map(of_mutants),
        "misses_min_killed": report.misses_killed(file),
        "fuzz": file.fuzz.as_ref().map(of_fuzz),
        "mocks": file.compared.iter().map(|compared| {
            json!({
                "case": compared.case,
                "state": compared.state,
                "fits": compared.fits(),
                "message": compared.sentence(report.now),
            })
        }).collect::<Vec<_>>(),
        "notes": file.notes,
    })
}

fn of_old_run(run: &OldRunReport) -> Value {
    let mut object = json!({
        "run": run.run,
        "loop": run.loop_name,
        "open": run.is_left,
        "result": run.word(),
        "message": run.sentence(),
    });
    if let OldRunResult::Parts { step, then, now, .. } = &run.result {
        object["step"] = (*step).into();
        object["then"] = then.clone().into();
        object["now"] = now.clone().into();
    }
    object
}

fn of_proof(proof: &ProofReport) -> Value {
    let (result, detail) = match &proof.result {
        ProofResult::Proven => ("proven", None),
        ProofResult::Broken(case) => ("broken", Some(case)),
        ProofResult::Unknown(why) => ("unknown", Some(why)),
    };
    json!({"claim": proof.text, "result": result, "detail": detail})
}

fn of_mutants(mutants: &MutantReport) -> Value {
    let survivors = mutants.survivors.iter().map(|survivor| {
        json!({
            "what": survivor.what,
            "file": survivor.file,
            "line": survivor.line,
            "difference": survivor.difference,
        })
    });
    let skipped = mutants
        .skipped
        .iter()
        .map(|skipped| json!({"file": skipped.file, "line": skipped.line, "reason": skipped.reason}));
    json!({
        "killed": mutants.killed,
        "survived": mutants.survivors.len(),
        "equal": mutants.equal,
        "invalid": mutants.invalid,
        "percent": mutants.percent(),
        "took_ms": millis(mutants.took),
        "error": mutants.unusable,
        "survivors": survivors.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
    })
}

fn of_fuzz(fuzz: &FuzzReport) -> Value {
    json!({
        "seed": fuzz.seed,
        "walks": fuzz.walks,
        "events": fuzz.steps,
        "unplayed": fuzz.unplayed,
        "took_ms": millis(fuzz.took),
        "failure": fuzz.failure.as_ref().map(|failure| json!({"message": failure.what, "case": failure.case})),
    })
}

fn of_case(case: &CaseReport) -> Value {
    let failures = case.failures.iter().map(|failure| {
        let mut object = json!({"kind": failure.word(), "message": failure.sentence()});
        if let CaseFailure::Differs(differs) = failure {
            object["what"] = differs.what.clone().into();
            object["expected"] = differs.expected.clone().into();
            object["actual"] = differs.actual.clone().into();
        }
        object
    });
    json!({
        "name": case.name,
        "line": case.line,
        "passed": case.passed(),
        "generated": case.is_generated,
        "failures": failures.collect::<Vec<_>>(),
        "path": case.path,
        "took_ms": millis(case.took),
        "why": case.why,
    })
}

fn of_coverage(coverage: &Coverage) -> Value {
    let edges = coverage.edges.iter().map(|edge| {
        json!({
            "from": edge.id.from,
            "word": edge.id.word,
            "to": edge.to,
            "taken": coverage.count(edge),
            "reachable": edge.is_reachable,
        })
    });
    json!({
        "reachable": coverage.reachable().count(),
        "taken": coverage.reachable().count() - coverage.uncovered().count(),
        "percent": coverage.percent(),
        "all": edges.collect::<Vec<_>>(),
    })
}
