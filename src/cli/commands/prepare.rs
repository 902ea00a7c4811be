//! From a name on the command line to a checked machine, with everything that was found on the way.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::base::diagnostic::{Diagnostics, Place, Severity};
use crate::base::name::StateName;
use crate::base::path::DocPath;
use crate::base::text::plural;
use crate::cli::args::ReachArgs;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::definition::load::{self, LoadError, Loaded, Located, Reach, Rejected};
use crate::definition::{render, schema::Loop};
use crate::machine::{Machine, check, compile};

use super::sub_loops::Library;

/// A loop that can run.
pub(super) struct Prepared {
    pub(super) located: Located,
    pub(super) loaded: Loaded,
    pub(super) machine: Machine,
    /// Warnings and notes.
    pub(super) findings: Diagnostics,
    /// The loops that it runs.
    pub(super) library: Library,
}

impl Prepared {
    /// Returns every file that the loop and its sub-loops were read from, and what was read. `cwd` is where the names of
    /// the loop's own files are read from.
    pub(super) fn files(&self, cwd: &Path) -> Vec<(PathBuf, String)> {
        let of_loop = self.loaded.sources.iter();
        let of_loop = of_loop.map(|source| (cwd.join(source.name()), source.text().to_owned()));
        let root = &self.located.root;
        of_loop.chain(self.library.texts().map(|(file, text)| (root.join(file), text))).collect()
    }

    /// Returns the paths of these files, in the checkout and in another working tree where the run works.
    pub(super) fn definition(&self, cwd: &Path) -> Vec<PathBuf> {
        let root = &self.located.root;
        let elsewhere = self.loaded.sources.iter().map(|source| root.join(source.name()));
        self.files(cwd).into_iter().map(|(file, _)| file).chain(elsewhere).collect()
    }
}

/// Finds a loop file.
pub(super) fn find(name: &str, reach: &ReachArgs) -> Result<Located, CliError> {
    let located = load::find(name, &cwd()?).map_err(|error| refused(&error))?;
    Ok(reaching(located, reach))
}

/// Lets a loop take over files from anywhere, where the command line says so.
pub(super) fn reaching(located: Located, reach: &ReachArgs) -> Located {
    if reach.allow_outside { located.reaching(Reach::Anywhere) } else { located }
}

/// Returns the working directory.
pub(super) fn cwd() -> Result<PathBuf, CliError> {
    Env::cwd().map_err(|error| CliError::failed("cannot tell the working directory", &error))
}

/// Reads, compiles and checks a loop. `adjust` changes the definition before it is compiled, as command-line options
/// do. Errors are drawn on standard error.
pub(super) fn prepare(
    located: Located,
    adjust: impl FnOnce(&mut Loop),
    output: &Output,
) -> Result<Prepared, CliError> {
    let mut loaded = match load::load(&located) {
        Ok(loaded) => loaded,
        Err(LoadError::Rejected { rejected, .. }) => {
            let findings = all_findings(&rejected);
            let (sources, tree) = (&rejected.sources, rejected.tree.as_ref());
            output
                .talk(&format!("{}\n\n", render::to_text(&findings, sources, tree, output.color_findings())));
            return Err(unusable(&located.shown, &findings));
        }
        Err(error) => return Err(refused(&error)),
    };
    adjust(&mut loaded.definition);
    let mut findings = std::mem::take(&mut loaded.findings);
    let (machine, problems) = compile::compile(&loaded.definition);
    findings.extend(problems);
    match machine {
        Some(machine) if !findings.has_errors() => {
            findings.extend(check::check(&machine, &loaded.definition));
            let mut library = Library::new(&located);
            findings.extend(library.check(&machine));
            if findings.has_errors() {
                output.talk(&drawn(&findings, &loaded, output));
                return Err(unusable(&located.shown, &findings));
            }
            Ok(Prepared { located, loaded, machine, findings, library })
        }
        _ => {
            output.talk(&drawn(&findings, &loaded, output));
            Err(unusable(&located.shown, &findings))
        }
    }
}

/// Returns what is wrong with a file that could not be read whole: what reading it found, and what can be told of the
/// rest, so that one look at the file is enough.
pub(super) fn all_findings(rejected: &Rejected) -> Diagnostics {
    let mut findings = rejected.findings.clone();
    if let (Some(remains), Some(tree)) = (&rejected.remains, &rejected.tree) {
        let states = tree.get("states");
        findings
            .extend(compile::further_problems(remains, |name| states.is_some_and(|s| s.get(name).is_some())));
    }
    findings
}

/// Draws findings with carets.
pub(super) fn drawn(findings: &Diagnostics, loaded: &Loaded, output: &Output) -> String {
    let text = render::to_text(findings, &loaded.sources, Some(&loaded.tree), output.color_findings());
    format!("{text}\n\n")
}

/// Says that nothing was run because of a file.
pub(super) fn unusable(file: &str, findings: &Diagnostics) -> CliError {
    let count = findings.count(Severity::Error) as u64;
    CliError::invalid(format!("{file} has {}; nothing was run", plural(count, "error")))
}

/// Says why there is no loop to run.
pub(super) fn refused(error: &LoadError) -> CliError {
    let refused = CliError::failed("cannot load the loop", error).before_the_run();
    match error.help() {
        Some(help) => refused.help(help),
        None => refused,
    }
}

/// Returns the line of each state, for reports.
pub(super) fn lines(loaded: &Loaded) -> IndexMap<StateName, u32> {
    let states = DocPath::root().key("states");
    let line = |name: &StateName| {
        let span = loaded.sources.locate(&Place::Key(states.key(name.as_str())), Some(&loaded.tree))?;
        let line = loaded.sources.get(span.file)?.position(span.range.start).line;
        u32::try_from(line).ok()
    };
    loaded.definition.states.keys().filter_map(|name| Some((name.clone(), line(name)?))).collect()
}
