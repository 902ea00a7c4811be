//! Finds, loads, compiles and checks a loop, and keeps the findings.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::guidance;
use super::library::{Library, texts};
use crate::base::diagnostic::{Diagnostics, Severity};
use crate::base::template::{Expression, Namespace, Template};
use crate::base::text::plural;
use crate::context::environment::Environment;
use crate::context::error::{Error, Kind};
use crate::context::mistakes::mistakes;
use crate::context::talk::Findings;
use crate::context::{Session, binding};
use crate::definition::builtin::is_builtin;
use crate::definition::load::{self, LoadError, Loaded, Located, Reach, Rejected};
use crate::definition::source_text;
use crate::engine::event::{Llm, Overrides, PolicyRecord, Source};
use crate::journal::files::RunFiles;
use crate::machine::early::KnownValues;
use crate::machine::provided::Provided;
use crate::machine::{Action, Machine, Step, check, compile, run_variables};
use crate::policy::{Policy, PolicyRefusal};
use crate::reuse::loop_findings;

/// A loop that can run.
pub struct Prepared {
    pub(crate) located: Located,
    pub(crate) loaded: Loaded,
    pub(crate) machine: Machine,
    /// Warnings and notes.
    pub(crate) findings: Diagnostics,
    /// Its sub-loops.
    pub(crate) library: Library,
    /// The directory that relative paths of its files start from.
    cwd: PathBuf,
    /// The directory of the checkout that its `.loops` is in.
    home: PathBuf,
    /// The paths that a run of it claims, where a plan says them.
    pub(crate) scope: Option<Vec<String>>,
    /// What binds its runs from above.
    pub(crate) policy: Policy,
}

impl Prepared {
    /// Binds a run that goes on also to what bound it before. A record that somebody changed can only add rules.
    pub(crate) fn bind_again(&mut self, recorded: &[PolicyRecord]) -> Result<(), Error> {
        binding::add_records(&mut self.policy, recorded)?;
        self.library.bind(&self.policy);
        Ok(())
    }

    /// Looks whether the models are known that a run with these variables asks, as far as that can be told before, and allowed.
    ///
    /// # Errors
    /// A document does not allow one.
    pub(crate) fn check_models(
        &mut self,
        llm: Llm,
        overrides: &Overrides,
        context: &Map<String, Value>,
        env: &Environment,
    ) -> Result<(), Error> {
        let policy = self.policy.clone();
        if policy.is_empty() || llm != Llm::On {
            return Ok(());
        }
        let below = self.library.below(&self.machine);
        let machines = std::iter::once(&self.machine).chain(below.iter().map(Rc::as_ref));
        let open: Vec<&Machine> = machines.filter(|machine| !machine.llm.is_forbidden).collect();
        let is_unnamed = |step: &Step| match &step.action {
            Some(Action::Prompt(prompt)) => prompt.model.is_none() && overrides.model.is_none(),
            Some(_) | None => false,
        };
        let mut steps = open.iter().flat_map(|machine| machine.steps());
        let unnamed = steps.any(|(_, step)| is_unnamed(step)).then(|| policy.model(None));
        let named = [&overrides.model, &overrides.llm_model]
            .into_iter()
            .flatten()
            .map(|name| policy.model(Some(name)));
        let late = open
            .iter()
            .flat_map(|machine| binding::model_templates(machine))
            .filter(|model| !is_known_before(model))
            .map(|model| policy.late_model(model.source()));
        // What a sub-loop is handed is known in its turn.
        let env = env.for_templates();
        let rendered = binding::model_templates(&self.machine)
            .filter_map(|model| run_variables::render(model, context, &env).ok())
            .map(|name| policy.model(Some(&name)));
        named
            .chain(unnamed)
            .chain(rendered)
            .chain(late)
            .collect::<Result<(), PolicyRefusal>>()
            .map_err(|refusal| binding::refused(&refusal))
    }

    /// Returns the paths and texts of all files of the loop and its sub-loops that are not the program's own.
    pub(crate) fn files(&self) -> Vec<(PathBuf, String)> {
        let of_project = |(file, _): &(String, String)| !is_builtin(file);
        let at = |directory: &PathBuf, (file, text): (String, String)| (directory.join(file), text);
        let of_loop = texts(&self.loaded.sources).into_iter().filter(of_project);
        let below = self.library.texts().filter(of_project);
        // The texts of the loop are named from where it was called, those of its sub-loops from the root.
        of_loop.map(|file| at(&self.cwd, file)).chain(below.map(|file| at(&self.home, file))).collect()
    }

    /// Says which loop of those that it runs cannot be known before the run, if there is one.
    pub(crate) fn untold(&mut self) -> Option<String> {
        self.library.untold(&self.machine)
    }

    /// Returns the paths of these files, in the checkout and in another working tree where the run works.
    pub(crate) fn definition(&self) -> Vec<PathBuf> {
        let here: Vec<PathBuf> = self.files().into_iter().map(|(file, _)| file).collect();
        let below = here.iter().filter_map(|file| file.strip_prefix(&self.home).ok());
        let there: Vec<PathBuf> = below.map(|file| self.located.root.join(file)).collect();
        here.into_iter().chain(there).collect()
    }

    /// Returns the place of the loop file, as a later run of ll-loop finds it.
    pub(crate) fn source(&self) -> Source {
        let Located { path, shown, .. } = &self.located;
        let file =
            path.strip_prefix(&self.home).map_or_else(|_| shown.clone(), |file| file.display().to_string());
        let all = self.files().into_iter();
        let others =
            all.filter_map(|(file, _)| Some(file.strip_prefix(&self.home).ok()?.display().to_string()));
        let others = others.filter(|other| *other != file).collect();
        Source { file, others, lines: self.loaded.lines_of_states() }
    }

    /// Returns what is provided to the loop in a run with these files.
    pub(crate) fn provided(&self, files: &RunFiles) -> Provided {
        let texts: Vec<&str> = self.loaded.sources.iter().map(source_text::SourceFile::text).collect();
        Provided::new(&texts, &files.scratch().to_string_lossy())
    }

    /// Makes the machine again where its targets and counts are made of these variables.
    ///
    /// # Errors
    /// One of them has no value, or one that does not fit.
    pub(crate) fn settle(
        &mut self,
        context: &Map<String, Value>,
        session: &Session<'_>,
    ) -> Result<(), Error> {
        if !self.machine.depends_on_context() {
            return Ok(());
        }
        let (machine, problems) = compile::compile_with(&self.loaded.definition, KnownValues::Run(context));
        if let Some(machine) = machine {
            self.machine = machine;
            return Ok(());
        }
        let errors = problems.filtered(|problem| problem.severity == Severity::Error);
        let found = Findings::of(&errors, &self.loaded);
        session.talk.findings(&found);
        Err(unusable(&self.located, &found, &self.cwd))
    }

    /// Lets the run work in a directory other than the one that its loop is in.
    pub(crate) fn work_in(&mut self, root: PathBuf) {
        self.located.root = root;
    }
}

impl Session<'_> {
    /// Finds a loop file by the name of its loop or by its path.
    ///
    /// # Errors
    /// The file does not exist, or may not be read: only with `outside` may loop files lie outside of the repository.
    pub fn find(&self, name: &str, outside: bool) -> Result<Located, Error> {
        let located = load::find(name, &self.cwd).map_err(|error| refused(&error))?;
        Ok(reaching(located, outside).beneath(self.unsaved.clone()))
    }

    /// Reads, compiles and checks a loop. Its findings go to the session's [`Talk`](crate::context::talk::Talk).
    ///
    /// # Errors
    /// The file cannot be read, or has errors.
    pub fn prepare(&self, located: Located) -> Result<Prepared, Error> {
        let policy = binding::in_checkout(&located.root, self)?;
        let mut loaded = match load::load(&located) {
            Ok(loaded) => loaded,
            Err(LoadError::Rejected { rejected, .. }) => {
                let findings = without_notes(all_findings(&rejected));
                let (sources, tree) = (&rejected.sources, rejected.tree.as_ref());
                let found = Findings { found: &findings, sources, tree };
                self.talk.findings(&found);
                return Err(unusable(&located, &found, &self.cwd));
            }
            Err(error) => return Err(refused(&error)),
        };
        let mut findings = std::mem::take(&mut loaded.findings);
        let (machine, problems) = compile::compile_with(&loaded.definition, KnownValues::Draft);
        findings.extend(problems);
        let mut library = Library::new(&located);
        // A wrong machine is not looked at further: that would only report the consequences of its errors.
        let machine = machine.filter(|_| !findings.has_errors());
        if let Some(machine) = &machine {
            findings.extend(check::check(machine, &loaded.definition));
            findings.extend(library.check(machine));
            findings.extend(guidance::findings(machine, &guidance::of_tree(&located.root)));
            findings.extend(loop_findings::find(machine, &loaded.definition.scope, &located.root));
        }
        let Some(machine) = machine.filter(|_| !findings.has_errors()) else {
            let findings = without_notes(findings);
            let found = Findings::of(&findings, &loaded);
            self.talk.findings(&found);
            return Err(unusable(&located, &found, &self.cwd));
        };
        let (cwd, home) = (self.cwd.clone(), located.root.clone());
        library.bind(&policy);
        Ok(Prepared { located, loaded, machine, findings, library, cwd, home, scope: None, policy })
    }

    /// Shows findings about a loop that could be read.
    pub(crate) fn show(&self, findings: &Diagnostics, loaded: &Loaded) {
        self.talk.findings(&Findings::of(findings, loaded));
    }
}

/// Lets a loop import files from anywhere, if the caller allows it.
pub(crate) fn reaching(located: Located, outside: bool) -> Located {
    if outside { located.reaching(Reach::Anywhere) } else { located }
}

/// Returns all findings of a file that could not be loaded: those of loading, and those of the states that can be
/// checked without it, so that a user sees all of them at once.
pub(crate) fn all_findings(rejected: &Rejected) -> Diagnostics {
    let mut findings = rejected.findings.clone();
    if let (Some(remains), Some(tree)) = (&rejected.remains, &rejected.tree) {
        let states = tree.get("states");
        findings
            .extend(compile::further_problems(remains, |name| states.is_some_and(|s| s.get(name).is_some())));
    }
    findings
}

/// Returns what somebody has to read whose loop is not run. Notes can wait until it is.
fn without_notes(findings: Diagnostics) -> Diagnostics {
    findings.filtered(|finding| finding.severity > Severity::Note)
}

/// Says that nothing was run because of a file.
pub(crate) fn unusable(located: &Located, findings: &Findings<'_>, cwd: &Path) -> Error {
    let count = findings.found.count(Severity::Error) as u64;
    Error::refused(format!("{} has {}; nothing was run", located.shown, plural(count, "error")))
        .with_mistakes(mistakes(located, findings, cwd))
}

/// Returns the error of a loop that cannot be loaded.
pub(crate) fn refused(error: &LoadError) -> Error {
    let refused = Error::failed("cannot load the loop", error).of_kind(Kind::Refused);
    match error.help() {
        Some(help) => refused.with_hint(help),
        None => refused,
    }
}

/// Tells whether all that a text needs is known before a run begins, or a sub-loop.
fn is_known_before(text: &Template) -> bool {
    let is_known = |expression: &Expression| match expression.namespace {
        Namespace::Context | Namespace::Env | Namespace::Param => true,
        Namespace::Captured
        | Namespace::Prev
        | Namespace::Result
        | Namespace::State
        | Namespace::Loop
        | Namespace::Messages
        | Namespace::Criteria
        | Namespace::Board => false,
    };
    text.expressions().all(is_known)
}

/// Returns the error of a run whose definition has changed since it began.
pub(crate) fn changed(names: &str) -> Error {
    Error::refused(format!("the definition of `{names}` is not what it was when the run began"))
        .with_hint("with `--accept-changes` the run goes on with the definition as it is now")
}
