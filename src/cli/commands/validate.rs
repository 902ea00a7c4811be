//! `ll-loop validate`: everything that is wrong with loop files, and nothing run.

use std::fmt::Write as _;

use crate::base::diagnostic::{Diagnostics, Severity};
use crate::base::node::Node;
use crate::base::text::plural;
use crate::cli::args::{Findings, ValidateArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::definition::load::{self, LoadError, Located};
use crate::definition::render;
use crate::definition::source::Sources;
use crate::machine::{check, compile};

use super::prepare::{all_findings, find, refused};
use super::sub_loops::Library;

/// A file and what was found in it.
struct Report {
    shown: String,
    findings: Diagnostics,
    sources: Sources,
    tree: Option<Node>,
}

pub(in crate::cli) fn validate(args: &ValidateArgs, _env: &Env, output: &Output) -> Result<u8, CliError> {
    let mut failed = false;
    for located in located(&args.loops)? {
        let report = match located.and_then(|located| report(&located)) {
            Ok(report) => report,
            Err(error) => {
                error.print(output);
                failed = true;
                continue;
            }
        };
        let bar = if args.strict { Severity::Warning } else { Severity::Error };
        failed |= report.findings.count(bar) > 0;
        match args.format {
            Findings::Text => output.data(&report.text(output)),
            Findings::Json => output.data(&report.json()),
        }
    }
    Ok(if failed { exit::INVALID } else { 0 })
}

fn located(names: &[String]) -> Result<Vec<Result<Located, CliError>>, CliError> {
    if !names.is_empty() {
        return Ok(names.iter().map(|name| find(name)).collect());
    }
    let cwd = Env::cwd().map_err(|error| CliError::failed("cannot tell the working directory", &error))?;
    let all: Vec<_> = load::list(&cwd).into_iter().map(|listed| Ok(listed.located)).collect();
    if all.is_empty() {
        let help = "name a loop file, or make `.loops/NAME.yaml`";
        return Err(CliError::invalid("there are no loops here").help(help));
    }
    Ok(all)
}

fn report(located: &Located) -> Result<Report, CliError> {
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
        findings.extend(check::check(&machine, &loaded.definition));
        findings.extend(Library::new(&located.root).check(&machine));
    }
    Ok(Report { shown, findings, sources: loaded.sources, tree: Some(loaded.tree) })
}

impl Report {
    fn text(&self, output: &Output) -> String {
        let mut text = render::to_text(&self.findings, &self.sources, self.tree.as_ref(), output.color);
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let (errors, warnings) = self.counts();
        let _ = match (errors, warnings) {
            (0, 0) => writeln!(text, "✓ {}", self.shown),
            (0, warnings) => writeln!(text, "✓ {}: {}", self.shown, plural(warnings, "warning")),
            (errors, warnings) => {
                writeln!(
                    text,
                    "✗ {}: {}, {}",
                    self.shown,
                    plural(errors, "error"),
                    plural(warnings, "warning")
                )
            }
        };
        text
    }

    fn counts(&self) -> (u64, u64) {
        let errors = self.findings.count(Severity::Error);
        (errors as u64, (self.findings.count(Severity::Warning) - errors) as u64)
    }

    fn json(&self) -> String {
        let findings = render::to_json(&self.findings, &self.sources, self.tree.as_ref());
        findings.into_iter().fold(String::new(), |mut lines, finding| {
            let _ = writeln!(lines, "{finding}");
            lines
        })
    }
}
