//! Finds the sub-loops of a loop by name, compiles each once, and checks them together with the loop around them.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::base::diagnostic::{Diagnostic, Diagnostics, Place, Severity, nearest};
use crate::base::name::VarName;
use crate::base::path::DocPath;
use crate::base::text::plural;
use crate::base::time::Timestamp;
use crate::definition::load::{self, Located, Reach};
use crate::definition::schema::Loop;
use crate::definition::source::Sources;
use crate::engine::Start;
use crate::engine::event::{LoopStart, Source};
use crate::engine::request::SubLoopRequest;
use crate::machine::compile;
use crate::machine::context::{self, Given};
use crate::machine::early::Values;
use crate::machine::{Action, Machine, Step, SubLoopAction, SubLoopInput, graph};
use crate::run::{SubLoop, replay};

use super::lines::lines;

/// A loop that was looked up.
pub(crate) struct KnownLoop {
    machine: Rc<Machine>,
    definition: Loop,
    digest: String,
    source: Source,
    /// The files it is written in: their names and texts.
    texts: Vec<(String, String)>,
}

impl KnownLoop {
    /// Returns its machine for a run with these variables.
    fn settled(&self, context: &Map<String, Value>) -> Result<Rc<Machine>, String> {
        if !self.machine.depends_on_context() {
            return Ok(Rc::clone(&self.machine));
        }
        let (machine, problems) = compile::compile_with(&self.definition, Values::Run(context));
        machine.map(Rc::new).ok_or_else(|| unusable(&self.source.file, &problems))
    }
}

/// Says why a loop cannot be run.
fn unusable(shown: &str, problems: &Diagnostics) -> String {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let errors: Vec<_> = errors.map(|problem| problem.message.clone()).collect();
    format!("{shown} has {}: {}", plural(errors.len() as u64, "error"), errors.join("; "))
}

/// Returns the files of a loop: their names and texts.
pub(crate) fn texts(sources: &Sources) -> Vec<(String, String)> {
    sources.iter().map(|source| (source.name().to_owned(), source.text().to_owned())).collect()
}

/// The sub-loops that a loop can run by name.
pub(crate) struct Library {
    root: PathBuf,
    reach: Reach,
    known: HashMap<String, Result<Rc<KnownLoop>, String>>,
}

impl Library {
    /// Makes the library of a loop. Its sub-loops have to lie where its own files may lie.
    pub(crate) fn new(located: &Located) -> Self {
        Self { root: located.root.clone(), reach: located.reach.clone(), known: HashMap::new() }
    }

    /// Finds and compiles a loop, or says why it cannot be run.
    fn get(&mut self, name: &str) -> Result<Rc<KnownLoop>, String> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let known = self.load(name).map(Rc::new);
        self.known.insert(name.to_owned(), known.clone());
        known
    }

    /// Finds a sub-loop that an earlier process of the run had begun with these variables.
    pub(crate) fn find(&mut self, name: &str, context: &Map<String, Value>) -> Result<replay::Known, String> {
        let known = self.get(name)?;
        Ok(replay::Known { machine: known.settled(context)?, digest: known.digest.clone() })
    }

    /// Returns the files of the loops that were looked up so far: their names and texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        self.known.values().flatten().flat_map(|known| known.texts.iter().cloned())
    }

    fn load(&self, name: &str) -> Result<KnownLoop, String> {
        let located = load::find(name, &self.root).map_err(|error| error.to_string())?;
        let located = located.reaching(self.reach.clone());
        let loaded = load::load(&located).map_err(|error| error.to_string())?;
        let (machine, problems) = compile::compile_with(&loaded.definition, Values::Draft);
        let source = Source { file: located.shown.clone(), lines: lines(&loaded) };
        match machine {
            Some(machine) => {
                let texts = texts(&loaded.sources);
                let (machine, definition) = (Rc::new(machine), loaded.definition);
                Ok(KnownLoop { machine, definition, digest: loaded.digest, source, texts })
            }
            None => Err(unusable(&located.shown, &problems)),
        }
    }

    /// Makes a sub-loop ready to run inside of the run that began like `around`.
    pub(crate) fn start(&mut self, request: &SubLoopRequest, around: &Start) -> Result<SubLoop, String> {
        let known = self.get(&request.name)?;
        let mut inherited = request.around.as_ref().map(|around| around.context.clone()).unwrap_or_default();
        let mut params: Vec<_> =
            request.params.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if known.machine.parameters.is_empty() {
            inherited.extend(params.drain(..));
        }
        let given = Given { params, inherited, ..Given::default() };
        let context = context::resolve(&known.machine, &given, &around.env)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        let captured = request.around.as_ref().map(|around| around.captured.clone()).unwrap_or_default();
        let machine = known.settled(&context)?;
        Ok(SubLoop {
            start: Start {
                event: LoopStart {
                    r#loop: known.machine.name.clone(),
                    definition_sha256: known.digest.clone(),
                    max_iterations: machine.limits.iterations.limit,
                    inputs: request.params.keys().cloned().collect(),
                    until_clean: false,
                    tree: None,
                    warnings: Vec::new(),
                    nights: Vec::new(),
                    source: known.source.clone(),
                    context: context.clone(),
                    overrides: Box::default(),
                    ..around.event.clone()
                },
                at: Timestamp::from_millis(0),
                context,
                env: around.env.clone(),
                key: request.key.clone(),
                run_dir: around.run_dir.clone(),
                deadline: request.deadline,
                timeout: request.limit(std::time::Duration::ZERO),
                budget: request.budget,
                on_handoff: around.on_handoff,
                captured,
            },
            machine,
        })
    }

    /// Checks every sub-loop of a machine whose name is known before the run.
    pub(crate) fn check(&mut self, machine: &Machine) -> Diagnostics {
        let mut findings = Diagnostics::default();
        for (step, sub) in sub_loops(machine) {
            let path = DocPath::root().key("states").key(step.name.as_str());
            let Some(name) = sub.name.as_literal() else { continue };
            match self.get(&name) {
                Err(why) => {
                    let place = Place::Value(path.key("loop"));
                    let message = format!("the loop `{name}` cannot be run: {why}");
                    let help = "sub-loops are found like loops: `.loops/NAME.yaml`, or a path";
                    findings.push(Diagnostic::error("sub-loop", place, message).help(help));
                }
                Ok(known) => check_bindings(&known.machine, &sub.given, &path, &mut findings),
            }
        }
        self.check_recursion(machine, &mut findings);
        findings
    }

    /// Looks for a loop that cannot end without running itself again.
    fn check_recursion(&mut self, machine: &Machine, findings: &mut Diagnostics) {
        let mut recursive = BTreeSet::new();
        let mut shown = None;
        for (id, step) in machine.steps() {
            let Some(sub) = step.action.as_ref().and_then(Action::sub_loop) else { continue };
            let Some(name) = sub.name.as_literal() else { continue };
            let mut path = vec![machine.name.to_string()];
            if self.leads_back(&name, machine.name.as_str(), &mut path) {
                recursive.insert(id);
                shown.get_or_insert((step.name.clone(), path.join(" → ")));
            }
        }
        if let Some((state, path)) = shown.filter(|_| !graph::can_end_without(machine, &recursive)) {
            let place = Place::Value(DocPath::root().key("states").key(state.as_str()).key("loop"));
            let message = format!("the loop runs itself without a way to its end: {path}");
            let help = "add a route to a terminal that does not pass this state";
            findings.push(Diagnostic::warning("recursion", place, message).help(help));
        }
    }

    /// Returns every loop that a machine can run, directly or through others, by a name without a template. Each
    /// comes once.
    pub(crate) fn below(&mut self, machine: &Machine) -> Vec<Rc<Machine>> {
        let mut found: Vec<Rc<Machine>> = Vec::new();
        let mut open = literal_names(machine);
        while let Some(name) = open.pop() {
            let Ok(known) = self.get(&name) else { continue };
            let is_new = known.machine.name != machine.name
                && found.iter().all(|other| other.name != known.machine.name);
            if is_new {
                open.extend(literal_names(&known.machine));
                found.push(Rc::clone(&known.machine));
            }
        }
        found
    }

    fn leads_back(&mut self, name: &str, to: &str, path: &mut Vec<String>) -> bool {
        let Ok(known) = self.get(name) else { return false };
        let found = known.machine.name.to_string();
        path.push(found.clone());
        if found == to {
            return true;
        }
        // A loop that is on the path already was explored.
        let fresh = !path[..path.len() - 1].contains(&found);
        let names = literal_names(&known.machine);
        if fresh && names.iter().any(|name| self.leads_back(name, to, path)) {
            return true;
        }
        path.pop();
        false
    }
}

/// Returns the names of the loops that a machine runs, if they hold no template.
fn literal_names(machine: &Machine) -> Vec<String> {
    let names = sub_loops(machine).filter_map(|(_, sub)| sub.name.as_literal());
    names.map(std::borrow::Cow::into_owned).collect()
}

fn sub_loops(machine: &Machine) -> impl Iterator<Item = (&Step, &SubLoopAction)> {
    machine.steps().filter_map(|(_, step)| Some((step, step.action.as_ref()?.sub_loop()?)))
}

/// Compares the values that a state gives with the parameters that the sub-loop declares.
fn check_bindings(child: &Machine, given: &SubLoopInput, path: &DocPath, findings: &mut Diagnostics) {
    let bindings = match given {
        SubLoopInput::Everything => return,
        SubLoopInput::Nothing => None,
        SubLoopInput::Parameters(bindings) => Some(bindings),
    };
    if child.parameters.is_empty() {
        if bindings.is_some() {
            let message = format!(
                "the loop `{}` declares no `parameters`: what it is given becomes its context, unchecked",
                child.name
            );
            let help = "declare there what it takes, so that a misspelt name is found";
            let place = Place::Key(path.key("with"));
            findings.push(Diagnostic::warning("binding", place, message).help(help));
        }
        return;
    }
    let declared = || child.parameters.keys().map(VarName::as_str);
    for name in bindings.into_iter().flatten().map(|(name, _)| name) {
        if !child.parameters.contains_key(name) {
            let message = format!("the loop `{}` has no parameter `{name}`", child.name);
            let help = match nearest(name.as_str(), declared()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`with` gives values to the `parameters` that the loop declares".to_owned(),
            };
            let place = Place::Key(path.key("with").key(name.as_str()));
            findings.push(Diagnostic::error("binding", place, message).help(help));
        }
    }
    for (name, _) in child.parameters.iter().filter(|(_, parameter)| parameter.required) {
        if bindings.is_none_or(|bindings| !bindings.contains_key(name)) {
            let message = format!("the loop `{}` needs the parameter `{name}`", child.name);
            let help = format!("add `with: {{{name}: …}}`");
            findings.push(Diagnostic::error("binding", Place::Value(path.key("loop")), message).help(help));
        }
    }
    if let Some(bindings) = bindings {
        check_types(child, bindings, path, findings);
    }
}

/// Checks the values without templates; the others are checked when the sub-loop starts.
fn check_types(
    child: &Machine,
    bindings: &indexmap::IndexMap<VarName, crate::machine::Binding>,
    path: &DocPath,
    findings: &mut Diagnostics,
) {
    for (name, binding) in bindings {
        let value = match binding {
            crate::machine::Binding::Text(text) => {
                text.as_literal().map(|text| Value::from(text.into_owned()))
            }
            crate::machine::Binding::Value(value) => Some(value.clone()),
        };
        if let (Some(value), Some(parameter)) = (value, child.parameters.get(name))
            && let Err(why) = context::convert(name, parameter, &value)
        {
            let place = Place::Value(path.key("with").key(name.as_str()));
            findings.push(Diagnostic::error("binding", place, why));
        }
    }
}
