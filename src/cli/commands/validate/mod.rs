//! `ll-loop validate`: everything that is wrong with loop files, and nothing run.

use crate::base::diagnostic::{Diagnostics, Severity};
use crate::base::node::Node;
use crate::cli::args::{Findings, ValidateArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::definition::load::{self, LoadError, Located};
use crate::definition::render;
use crate::definition::source::Sources;
use crate::machine::{check, compile};

use super::prepare::{all_findings, find, reaching, refused};
use super::sub_loops::Library;

mod github;
mod json;
mod sarif;
mod text;

/// A file and what was found in it.
struct Report {
    shown: String,
    findings: Diagnostics,
    sources: Sources,
    tree: Option<Node>,
}

/// All files that were looked at, and what could not be.
struct Reports {
    files: Vec<Report>,
    unread: Vec<CliError>,
}

/// Writes all that was found.
type Write = fn(&Reports, &Output);

/// How findings are written, one line a format.
const FORMATS: [(Findings, Write); 4] = [
    (Findings::Text, text::write),
    (Findings::Json, json::write),
    (Findings::Sarif, sarif::write),
    (Findings::Github, github::write),
];

pub(in crate::cli) fn validate(args: &ValidateArgs, _env: &Env, output: &Output) -> Result<u8, CliError> {
    let mut reports = Reports { files: Vec::new(), unread: Vec::new() };
    for located in located(args)? {
        match located.and_then(|located| report(&located, args.deep)) {
            Ok(report) => reports.files.push(report),
            Err(error) => reports.unread.push(error),
        }
    }
    if let Some((_, write)) = FORMATS.iter().find(|(format, _)| *format == args.format) {
        write(&reports, output);
    }
    for error in &reports.unread {
        error.print(output);
    }
    let bar = if args.strict { Severity::Warning } else { Severity::Error };
    let failed =
        !reports.unread.is_empty() || reports.files.iter().any(|report| report.findings.count(bar) > 0);
    Ok(if failed { exit::INVALID } else { 0 })
}

fn located(args: &ValidateArgs) -> Result<Vec<Result<Located, CliError>>, CliError> {
    if !args.loops.is_empty() {
        return Ok(args.loops.iter().map(|name| find(name, &args.reach)).collect());
    }
    let cwd = Env::cwd().map_err(|error| CliError::failed("cannot tell the working directory", &error))?;
    let all: Vec<_> =
        load::list(&cwd).into_iter().map(|listed| Ok(reaching(listed.located, &args.reach))).collect();
    if all.is_empty() {
        let help = "name a loop file, or make `.loops/NAME.yaml`";
        return Err(CliError::invalid("there are no loops here").help(help));
    }
    Ok(all)
}

fn report(located: &Located, deep: bool) -> Result<Report, CliError> {
    let shown = located.shown.clone();
    let loaded = match load::load(located) {
        Ok(loaded) => loaded,
        Err(LoadError::Rejected { rejected, .. }) => {
            let findings = all_findings(&rejected);
            let rejected = *rejected;
            return Ok(Report { shown, findings, sources: rejected.sources, tree: rejected.tree });
        }
        Err(error) => return Err(refused(&error)),
    };
    let mut findings = loaded.findings;
    let (machine, problems) = compile::compile(&loaded.definition);
    findings.extend(problems);
    if let Some(machine) = machine {
        let check = if deep { check::check_deeply } else { check::check };
        findings.extend(check(&machine, &loaded.definition));
        findings.extend(Library::new(located).check(&machine));
    }
    Ok(Report { shown, findings, sources: loaded.sources, tree: Some(loaded.tree) })
}

impl Report {
    fn counts(&self) -> (u64, u64) {
        let errors = self.findings.count(Severity::Error);
        (errors as u64, (self.findings.count(Severity::Warning) - errors) as u64)
    }

    /// Returns one object a finding, in the order of the file.
    fn objects(&self) -> Vec<serde_json::Value> {
        render::to_json(&self.findings, &self.sources, self.tree.as_ref())
    }
}

/// Reads a word of a finding's object.
fn word<'o>(object: &'o serde_json::Value, key: &str) -> Option<&'o str> {
    object.get(key)?.as_str()
}
