//! Finds the sub-loops of a loop by name, compiles each once, and checks them together with the loop around them.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Severity, nearest};
use crate::base::explanation::Explanation;
use crate::base::name::{StateName, VarName};
use crate::base::path::DocPath;
use crate::base::template::shell_quote;
use crate::base::text::{one_line, plural};
use crate::base::time::Timestamp;
use crate::context::binding;
use crate::definition::load::{self, LoadError, Located, Reach};
use crate::definition::promises;
use crate::definition::schema::Loop;
use crate::definition::source_text::Sources;
use crate::definition::vendored::{CopiedFile, Copies};
use crate::engine::Start;
use crate::engine::event::{LoopStart, Source};
use crate::engine::request::{Around, SubLoopRequest};
use crate::files::unsaved::UnsavedTexts;
use crate::machine::check::{injection, unknown_names};
use crate::machine::early::KnownValues;
use crate::machine::provided::{self, Provided};
use crate::machine::reusable::{self, Obstacle};
use crate::machine::run_variables::{self, Given};
use crate::machine::{Action, Machine, Step, SubLoopAction, SubLoopInput, compile, graph};
use crate::policy::Policy;
use crate::run::sub_loop::DEEPEST;
use crate::run::{SubLoop, replay};

/// A loop that was looked up.
pub(crate) struct KnownLoop {
    machine: Rc<Machine>,
    definition: Loop,
    file: PathBuf,
    digest: String,
    source: Source,
    /// The files it is written in: their names and texts.
    texts: Vec<(String, String)>,
}

impl KnownLoop {
    /// Returns its machine for a run with these variables.
    fn settled(&self, context: &Map<String, Value>) -> Result<Rc<Machine>, Explanation> {
        if !self.machine.depends_on_context() {
            return Ok(Rc::clone(&self.machine));
        }
        let (machine, problems) = compile::compile_with(&self.definition, KnownValues::Run(context));
        machine.map(Rc::new).ok_or_else(|| Explanation::new(errors(&self.source.file, &problems)))
    }
}

/// Says why a loop cannot be run.
fn errors(shown: &str, problems: &Diagnostics) -> String {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let errors: Vec<_> = errors.map(|problem| problem.message.clone()).collect();
    format!("{shown} has {}: {}", plural(errors.len() as u64, "error"), errors.join("; "))
}

/// Returns the variables that a loop takes over from the one around it. A capture of that one counts as a variable where none
/// has its name; those that the loop needs before it begins are among them.
fn inherited(around: &Around, machine: &Machine) -> Map<String, Value> {
    let mut inherited = around.context.clone();
    // Only declared names: any other capture of the loop around would become a variable by accident.
    let declared = machine.parameters.keys().chain(&machine.required_inputs).chain([&machine.input_key]);
    for name in declared.map(VarName::as_str).filter(|name| !around.context.contains_key(*name)) {
        if let Some(capture) = around.captured.get(name) {
            inherited.insert(name.to_owned(), capture.seen.stdout.without_line_end().into());
        }
    }
    inherited
}

/// Returns the files of a loop: their names and texts.
pub(crate) fn texts(sources: &Sources) -> Vec<(String, String)> {
    sources.iter().map(|source| (source.name().to_owned(), source.text().to_owned())).collect()
}

/// Why a sub-loop cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MissingLoop {
    /// There is no such loop, or none that may be used; perhaps another one is meant.
    Absent { why: String, help: String },
    /// There is one, and it cannot be used.
    Unusable(String),
}

impl MissingLoop {
    fn why(&self) -> &str {
        match self {
            Self::Absent { why, .. } | Self::Unusable(why) => why,
        }
    }
}

/// The sub-loops that a loop can run by name. Each file is read once.
pub(crate) struct Library {
    root: PathBuf,
    reach: Reach,
    copies: Copies,
    unsaved: UnsavedTexts,
    /// The file of the loop itself.
    file: PathBuf,
    /// The files that names mean, which depends on the directory of the file that they are written in.
    named: HashMap<(PathBuf, String), Result<Rc<KnownLoop>, MissingLoop>>,
    /// What is in the files.
    known: HashMap<PathBuf, Result<Rc<KnownLoop>, MissingLoop>>,
    /// The names of all loops, once one of them may be meant by another name.
    names: Option<Vec<String>>,
    /// How many names were compared with them.
    compared: usize,
    /// Whether strangers may have written what its loops are given.
    is_guarded: bool,
    /// What binds its loops from above.
    policy: Policy,
}

/// Which texts from outside in the commands of sub-loops are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignTexts {
    /// Those that the loop around hands on.
    HandedOn,
    /// These, and those that a sub-loop brings in itself.
    All,
}

/// The most ways to sub-loops that are followed, each with other values from outside.
// A loop is looked at again for each set of such values, and n values make up to 2^n sets. What lies beyond is still
// caught when a guarded run starts the sub-loop.
const MOST_WAYS: usize = 1_000;

/// Tells whether a value can become more than one word of a command.
pub(crate) fn can_write(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.is_empty() && shell_quote(text) != *text,
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

impl KnownLoop {
    /// Says something about one of its states, with the place in its file.
    fn at(&self, state: &StateName, message: &str) -> String {
        let Source { file, lines, .. } = &self.source;
        let line = lines.get(state).map_or_else(String::new, |line| format!(":{line}"));
        format!("in `{state}` of the loop `{}` ({file}{line}), {message}", self.machine.name)
    }
}

/// Among more names than this, it is not looked which ones may be meant.
// Each comparison goes through the names of all loops, so a file full of wrong names would take quadratic time.
const MAX_COMPARED: usize = 100;

impl Library {
    /// Makes the library of a loop. Its sub-loops have to lie where its own files may lie.
    pub(crate) fn new(located: &Located) -> Self {
        Self {
            root: located.root.clone(),
            reach: located.reach.clone(),
            copies: located.copies,
            unsaved: located.unsaved.clone(),
            file: located.path.clone(),
            named: HashMap::new(),
            known: HashMap::new(),
            names: None,
            compared: 0,
            is_guarded: false,
            policy: Policy::default(),
        }
    }

    /// Binds loops whose names only the run knows to what binds the others.
    pub(crate) fn bind(&mut self, policy: &Policy) {
        self.policy = policy.clone();
    }

    /// Makes the library of another loop, with what is known from one before it where both may run the same loops.
    pub(crate) fn after(before: Option<Self>, located: &Located) -> Self {
        let is_alike = |before: &Self| {
            (&before.root, &before.reach, before.copies, &before.unsaved)
                == (&located.root, &located.reach, located.copies, &located.unsaved)
        };
        match before.filter(is_alike) {
            Some(before) => Self { file: located.path.clone(), ..before },
            None => Self::new(located),
        }
    }

    /// Finds and compiles a loop that a state in the file `caller` runs, or says why it cannot be run.
    fn get(&mut self, name: &str, caller: &Path) -> Result<Rc<KnownLoop>, MissingLoop> {
        let key = (caller.parent().unwrap_or(caller).to_owned(), name.to_owned());
        if let Some(known) = self.named.get(&key) {
            return known.clone();
        }
        let known = match load::find_beside(name, &self.root, caller) {
            Ok(located) => {
                let located = located.reaching(self.reach.clone()).taking(self.copies);
                let located = located.beneath(self.unsaved.clone());
                let load = || load(&located, &self.root).map(Rc::new);
                // By path, because several names can mean one file, and it must be the same loop under each of them.
                self.known.entry(located.path.clone()).or_insert_with(load).clone()
            }
            Err(error) => Err(self.absent(error)),
        };
        self.named.insert(key, known.clone());
        known
    }

    fn absent(&mut self, error: LoadError) -> MissingLoop {
        self.compared += 1;
        if self.compared > MAX_COMPARED {
            return absent(&error);
        }
        // Listed only after a mistake: it reads the whole directory of loops, and most loops name no wrong one.
        let names = self.names.get_or_insert_with(|| load::names(&self.root));
        absent(&error.suggesting(|| names))
    }

    /// Finds a sub-loop that an earlier process of the run had begun with these variables, in the loop that began like
    /// `around`.
    pub(crate) fn find(
        &mut self,
        name: &str,
        around: &LoopStart,
        context: &Map<String, Value>,
    ) -> Result<replay::KnownMachine, Explanation> {
        let known = self.get(name, &self.root.join(&around.source.file));
        let known = known.map_err(|missing| Explanation::new(missing.why()))?;
        Ok(replay::KnownMachine { machine: known.settled(context)?, digest: known.digest.clone() })
    }

    /// Finds the machine of a loop that a state in a file runs by this name, and the file that it is in. Without a file it
    /// is that of the loop itself.
    pub(crate) fn named(&mut self, name: &str, caller: Option<&Path>) -> Option<(Rc<Machine>, PathBuf)> {
        let caller = caller.map_or_else(|| self.file.clone(), Path::to_owned);
        let known = self.get(name, &caller).ok()?;
        Some((Rc::clone(&known.machine), known.file.clone()))
    }

    /// Says which of the loops below a machine keeps it from being reused, if one does.
    pub(crate) fn obstacle(&mut self, machine: &Machine) -> Option<String> {
        let of_below = self.below(machine).into_iter().find_map(|below| {
            let Obstacle { state, does } = reusable::obstacle(&below)?;
            Some(format!("`{state}` of the loop `{}`, which it runs, {does}", below.name))
        });
        of_below.or_else(|| self.untold(machine))
    }

    /// Returns the files of the loops that were looked up so far: their names and texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        self.known.values().flatten().flat_map(|known| known.texts.iter().cloned())
    }

    /// Makes a sub-loop ready to run inside of the run that began like `around`.
    pub(crate) fn start(&mut self, request: &SubLoopRequest, around: &Start) -> Result<SubLoop, Explanation> {
        let known = self.get(&request.name, &self.root.join(&around.event.source.file));
        let known = known.map_err(|missing| Explanation::new(missing.why()))?;
        // Only now are the values known, so what `check` could not see before the run is refused here.
        if let Some(why) = self.objection(&known, request) {
            return Err(Explanation::new(why));
        }
        // Loops that a name at run time chose were not looked at before.
        binding::check_machine(&self.policy, &known.machine)?;
        binding::check_source(&self.policy, &known.file)?;
        let around_it = request.around.iter();
        let mut inherited: Map<_, _> =
            around_it.flat_map(|around| inherited(around, &known.machine)).collect();
        let mut params: Vec<_> =
            request.params.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        // `resolve` refuses parameters that are not declared; a loop that declares none takes them as its context.
        if known.machine.parameters.is_empty() {
            inherited.extend(params.drain(..));
        }
        let texts: Vec<&str> = known.texts.iter().map(|(_, text)| text.as_str()).collect();
        let provided = Provided::new(&texts, &around.run_dir);
        let given = Given { params, inherited, provided, ..Given::default() };
        let context = run_variables::resolve(&known.machine, &given, &around.env).map_err(|errors| {
            Explanation::new(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        let captured = request.around.iter().flat_map(|around| around.captured.clone()).collect();
        // After `resolve`, because targets and counts may be made of its variables.
        let machine = known.settled(&context)?;
        Ok(SubLoop {
            start: Start {
                event: LoopStart {
                    // The fields that are empty here hold for the whole run, and stand in the event of its outermost loop alone.
                    r#loop: known.machine.name.clone(),
                    definition_sha256: known.digest.clone(),
                    max_iterations: machine.limits.iterations.limit,
                    inputs: request.params.keys().cloned().collect(),
                    until_clean: false,
                    tree: None,
                    warnings: Vec::new(),
                    nights: Vec::new(),
                    parent: None,
                    assignment: None,
                    merges: None,
                    policy: Vec::new(),
                    source: known.source.clone(),
                    // What is known of checks is known by the loop and the state, and this is another loop.
                    checks: Box::default(),
                    context: context.clone(),
                    overrides: Box::new(around.event.overrides.below()),
                    ..around.event.clone()
                },
                // Set by the driver when the loop begins.
                at: Timestamp::from_millis(0),
                context,
                env: around.env.clone(),
                key: request.key.clone(),
                run_dir: around.run_dir.clone(),
                deadline: request.deadline,
                timeout: request.limit(std::time::Duration::ZERO),
                budget: request.budget,
                on_handoff: around.on_handoff,
                people: around.people.clone(),
                job: around.job.clone(),
                approvals: Vec::new(),
                merged_head: around.merged_head.clone(),
                captured,
                // A tree of its own is not the one that the run around it ends on.
                shares_tree: request.worktree.is_none() && around.sees_tree(),
                reused: None,
            },
            machine,
            workplace: None,
        })
    }

    /// Checks every sub-loop of a machine whose name is known before the run.
    pub(crate) fn check(&mut self, machine: &Machine) -> Diagnostics {
        let mut findings = Diagnostics::default();
        for (step, sub) in sub_loops(machine) {
            let path = DocPath::root().key("states").key(step.name.as_str());
            let Some(name) = sub.name.as_literal() else { continue };
            match self.get(&name, &self.file.clone()) {
                Err(missing) => {
                    findings.push(cannot_run(&name, &missing, FindingPlace::Value(path.key("loop"))));
                }
                Ok(known) => {
                    check_bindings(&known.machine, &sub.given, &path, &mut findings);
                    findings.extend(unknown_names::unknown_below(machine, &step.name, sub, &known.machine));
                }
            }
        }
        self.check_copies(machine, &mut findings);
        if let Some(why) = machine.reuse.as_ref().and_then(|_| self.obstacle(machine)) {
            let place = FindingPlace::Key(DocPath::root().key("reuse"));
            let help = "leave `reuse` out, or move the checks into a loop of their own";
            let message = format!("the loop cannot be reused: {why}");
            findings.push(Diagnostic::error("reuse", place, message).help(help));
        }
        self.check_recursion(machine, &mut findings);
        findings.extend(self.injections(machine, &BTreeSet::new(), ForeignTexts::HandedOn));
        findings
    }

    /// Looks for texts from outside in the commands of the loops below a machine. `outside` are the values of its
    /// context that came from there.
    pub(crate) fn injections(
        &mut self,
        machine: &Machine,
        outside: &BTreeSet<String>,
        which: ForeignTexts,
    ) -> Diagnostics {
        let mut findings = Diagnostics::default();
        for (step, sub) in sub_loops(machine) {
            let Some(name) = sub.name.as_literal() else { continue };
            let handed_on = injection::handed_on(machine, step, sub, outside);
            // For each state anew: another one may hand on other values, and its finding stands at another place.
            let mut seen = HashSet::new();
            let mut found = Vec::new();
            let file = self.file.clone();
            self.injections_below(&name, &file, &handed_on, which, &mut seen, &mut found);
            let place =
                FindingPlace::Value(DocPath::root().key("states").key(step.name.as_str()).key("loop"));
            for message in found {
                let help = "quote it there with `:shell`, or read it from the environment";
                findings.push(injection::finding(place.clone(), message, help));
            }
        }
        findings
    }

    fn injections_below(
        &mut self,
        name: &str,
        caller: &Path,
        outside: &BTreeSet<String>,
        which: ForeignTexts,
        seen: &mut HashSet<(PathBuf, BTreeSet<String>)>,
        found: &mut Vec<String>,
    ) {
        let Ok(known) = self.get(name, caller) else { return };
        // By the values as well: a loop that is harmless with one set of them may paste another one into a command.
        if !seen.insert((known.file.clone(), outside.clone())) || seen.len() > MOST_WAYS {
            return;
        }
        // What is wrong with a loop whoever runs it is said about that loop itself.
        let own = match which {
            ForeignTexts::HandedOn => injection::described(&known.machine, &BTreeSet::new()),
            ForeignTexts::All => Vec::new(),
        };
        for (state, message) in injection::described(&known.machine, outside) {
            let said = known.at(&state, &message);
            if !own.contains(&(state, message)) && !found.contains(&said) {
                found.push(said);
            }
        }
        for (step, sub) in sub_loops(&known.machine) {
            let Some(below) = sub.name.as_literal() else { continue };
            let handed_on = injection::handed_on(&known.machine, step, sub, outside);
            self.injections_below(&below, &known.file, &handed_on, which, seen, found);
        }
    }

    /// From now on, a loop that pastes texts from outside into its commands is not run.
    pub(crate) fn guard(&mut self) {
        self.is_guarded = true;
    }

    /// Returns why a loop may not be run here with what it is given, where strangers may have written that.
    fn objection(&self, known: &KnownLoop, request: &SubLoopRequest) -> Option<String> {
        if !self.is_guarded {
            return None;
        }
        let around = request.around.as_ref().map(|around| &around.context);
        let given = request.params.iter().chain(around.into_iter().flatten());
        let outside = given.filter(|(_, value)| can_write(value)).map(|(name, _)| name.clone()).collect();
        let (state, message) = injection::described(&known.machine, &outside).into_iter().next()?;
        Some(format!("strangers may have set off this run, and {}", known.at(&state, &message)))
    }

    /// Looks whether every copy of a loop from another repository can run what it names: what was edited is found before
    /// the run, and not in the middle of it.
    fn check_copies(&mut self, machine: &Machine, findings: &mut Diagnostics) {
        let mut seen = HashSet::new();
        for (step, sub) in sub_loops(machine) {
            let place =
                FindingPlace::Value(DocPath::root().key("states").key(step.name.as_str()).key("loop"));
            let mut open: Vec<(String, PathBuf)> = sub
                .name
                .as_literal()
                .map(|name| (name.into_owned(), self.file.clone()))
                .into_iter()
                .collect();
            while let Some((name, caller)) = open.pop() {
                match self.get(&name, &caller) {
                    Ok(known) if seen.insert(known.file.clone()) => {
                        let names = literal_names(&known.machine).into_iter();
                        open.extend(names.map(|name| (name, known.file.clone())));
                    }
                    // The names in the loop itself were reported by `check`.
                    // Files that are no copies may still be mended during the run.
                    Err(missing) if caller != self.file && CopiedFile::at(&caller).is_some() => {
                        findings.push(cannot_run(&name, &missing, place.clone()));
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }

    /// Looks for a loop that cannot end without running itself again.
    fn check_recursion(&mut self, machine: &Machine, findings: &mut Diagnostics) {
        let mut recursive = BTreeSet::new();
        let mut shown = None;
        for (id, step) in machine.steps() {
            let Some(sub) = step.action.as_ref().and_then(Action::sub_loop) else { continue };
            let Some(name) = sub.name.as_literal() else { continue };
            if let Some(way) = self.way_back(&name, machine) {
                recursive.insert(id);
                shown.get_or_insert((step.name.clone(), way.join(" → ")));
            }
        }
        // Recursion with a way out is legitimate, and bounded by the depth and the limits of the run.
        if let Some((state, path)) = shown.filter(|_| !graph::can_end_without(machine, &recursive)) {
            let place = FindingPlace::Value(DocPath::root().key("states").key(state.as_str()).key("loop"));
            let message = format!("the loop runs itself without a way to its end: {path}");
            let help = "add a route to a terminal that does not pass this state";
            findings.push(Diagnostic::warning("recursion", place, message).help(help));
        }
    }

    /// Returns every loop that a machine can run, directly or through others, by a name without a template. Each
    /// comes once.
    pub(crate) fn below(&mut self, machine: &Machine) -> Vec<Rc<Machine>> {
        let file = self.file.clone();
        let reached = self.reached(literal_names(machine), &file, usize::MAX);
        let others = reached.into_iter().map(|reached| Rc::clone(&reached.known.machine));
        // Recursion leads back to the machine itself; callers that want it as well put it in front.
        others.filter(|other| other.name != machine.name).collect()
    }

    /// Says which of the loops below a machine cannot be known before it runs, if there is one: where one is chosen at run
    /// time, or cannot be read, what it would look at is not known either.
    pub(crate) fn untold(&mut self, machine: &Machine) -> Option<String> {
        let file = self.file.clone();
        let reached = self.reached(literal_names(machine), &file, usize::MAX);
        let of_below = reached.iter().map(|reached| (&*reached.known.machine, reached.known.file.as_path()));
        let all: Vec<_> = std::iter::once((machine, file.as_path())).chain(of_below).collect();
        all.into_iter().find_map(|(machine, caller)| {
            sub_loops(machine).find_map(|(step, sub)| {
                let (state, of) = (&step.name, &machine.name);
                let Some(name) = sub.name.as_literal() else {
                    return Some(format!(
                        "the state `{state}` of `{of}` chooses its loop only while it runs"
                    ));
                };
                let missing = self.get(&name, caller).err()?;
                let why = one_line(missing.why(), 200);
                Some(format!("the loop `{name}`, which `{state}` of `{of}` runs, cannot be read: {why}"))
            })
        })
    }

    /// Returns the names of the loops on the shortest way from a loop that a machine runs back to itself.
    fn way_back(&mut self, name: &str, machine: &Machine) -> Option<Vec<String>> {
        let file = self.file.clone();
        // A longer way is never walked to its end: a run refuses sub-loops that are nested deeper.
        let reached = self.reached(vec![name.to_owned()], &file, DEEPEST);
        let mut at = reached.iter().position(|reached| reached.known.machine.name == machine.name);
        at?;
        let mut way = Vec::new();
        while let Some(reached) = at.and_then(|at| reached.get(at)) {
            way.push(reached.known.machine.name.to_string());
            at = reached.from;
        }
        way.push(machine.name.to_string());
        way.reverse();
        Some(way)
    }

    /// Returns the loops that these names in a file lead to, directly or through at most so many others, the nearest
    /// first. Each comes once.
    fn reached(&mut self, names: Vec<String>, file: &Path, deepest: usize) -> Vec<Reached> {
        let mut open: VecDeque<_> = names.into_iter().map(|name| (name, file.to_owned(), None, 0)).collect();
        // Breadth first, so that the way that is shown is the shortest one. What cannot be read leads nowhere.
        let (mut seen, mut reached) = (HashSet::new(), Vec::new());
        while let Some((name, caller, from, depth)) = open.pop_front() {
            let Ok(known) = self.get(&name, &caller) else { continue };
            if seen.insert(known.file.clone()) {
                let at = Some(reached.len());
                let names = literal_names(&known.machine).into_iter().filter(|_| depth < deepest);
                open.extend(names.map(|name| (name, known.file.clone(), at, depth + 1)));
                reached.push(Reached { known, from });
            }
        }
        reached
    }
}

/// A loop that can be reached from another one.
struct Reached {
    known: Rc<KnownLoop>,
    /// The place in the list of the loop that runs it, if that is not where the list begins.
    from: Option<usize>,
}

fn absent(error: &LoadError) -> MissingLoop {
    let near = if let LoadError::UnknownName { nearest, .. } = error { nearest.as_ref() } else { None };
    let of_copy = if let LoadError::Copy(error) = error { Some(error.help()) } else { None };
    let help = near.map(|near| format!("did you mean `{near}`?")).or(of_copy).unwrap_or_else(|| {
        "sub-loops are found like loops, `.loops/NAME.yaml`, or else beside this file".to_owned()
    });
    MissingLoop::Absent { why: error.to_string(), help }
}

/// Reads and compiles a loop whose file was found.
fn load(located: &Located, root: &Path) -> Result<KnownLoop, MissingLoop> {
    let unusable = |why: &dyn std::fmt::Display| MissingLoop::Unusable(why.to_string());
    let loaded = load::load(located).map_err(|error| {
        let is_refused = matches!(error, LoadError::Outside { .. } | LoadError::Copy(_));
        // A copy is not mended while a run goes on.
        let rejected = if let LoadError::Rejected { rejected, .. } = &error { Some(rejected) } else { None };
        match rejected.filter(|_| CopiedFile::at(&located.path).is_some()) {
            Some(rejected) => MissingLoop::Absent {
                why: errors(&located.shown, &rejected.findings),
                help: format!("`ll-loop validate {}` says more", located.shown),
            },
            None if is_refused => absent(&error),
            None => unusable(&error),
        }
    })?;
    // Its variables are not known yet; where the machine depends on them, `settled` compiles it once more.
    let (machine, problems) = compile::compile_with(&loaded.definition, KnownValues::Draft);
    let lines = loaded.lines_of_states();
    let source = Source { file: located.shown.clone(), others: Vec::new(), lines };
    let machine =
        machine.map(Rc::new).ok_or_else(|| MissingLoop::Unusable(errors(&located.shown, &problems)))?;
    let (texts, file) = (texts(&loaded.sources), root.join(&located.shown));
    Ok(KnownLoop { machine, definition: loaded.definition, file, digest: loaded.digest, source, texts })
}

/// Says at the place of its name that a sub-loop cannot be run. One that cannot be used may be mended before the state is
/// entered, and ends it with `error` otherwise.
fn cannot_run(name: &str, missing: &MissingLoop, place: FindingPlace) -> Diagnostic {
    let message = format!("the loop `{name}` cannot be run: {}", missing.why());
    match missing {
        MissingLoop::Absent { help, .. } => Diagnostic::error("sub-loop", place, message).help(help.clone()),
        MissingLoop::Unusable(_) => Diagnostic::warning("sub-loop", place, message)
            .help("mend it; as it is, the state gives the verdict `error`"),
    }
}

/// Returns the names of the loops that a machine runs, if they hold no template.
fn literal_names(machine: &Machine) -> Vec<String> {
    let names = sub_loops(machine).filter_map(|(_, sub)| sub.name.as_literal());
    names.map(std::borrow::Cow::into_owned).collect()
}

pub(crate) fn sub_loops(machine: &Machine) -> impl Iterator<Item = (&Step, &SubLoopAction)> {
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
            let place = FindingPlace::Key(path.key("with"));
            findings.push(Diagnostic::warning("binding", place, message).help(help));
            for name in bindings.into_iter().flatten().map(|(name, _)| name.as_str()) {
                if let Some(promise) = promises::meant(name) {
                    let message =
                        format!("`{name}` protects nothing below `with`: it becomes a value of the context");
                    let place = FindingPlace::Key(path.key("with").key(name));
                    let help = format!(
                        "write `{promise}` in the loop itself, or declare a parameter `{name}` there"
                    );
                    findings.push(Diagnostic::error("binding", place, message).help(help));
                }
            }
        }
        return;
    }
    let declared = || child.parameters.keys().map(VarName::as_str);
    for name in bindings.into_iter().flatten().map(|(name, _)| name) {
        if !child.parameters.contains_key(name) {
            let message = format!("the loop `{}` has no parameter `{name}`", child.name);
            let place = FindingPlace::Key(path.key("with").key(name.as_str()));
            let finding = Diagnostic::error("binding", place, message);
            findings.push(match nearest(name.as_str(), declared()) {
                Some(near) => finding.meant(name.as_str(), near),
                None => finding.help("`with` gives values to the `parameters` that the loop declares"),
            });
        }
    }
    let needed = child.parameters.iter().filter(|(_, parameter)| parameter.required);
    // The program gives these itself, where nobody else does.
    for (name, _) in needed.filter(|(name, _)| !provided::NAMES.contains(&name.as_str())) {
        if bindings.is_none_or(|bindings| !bindings.contains_key(name)) {
            let message = format!("the loop `{}` needs the parameter `{name}`", child.name);
            let help = format!("add `with: {{{name}: …}}`");
            findings.push(
                Diagnostic::error("binding", FindingPlace::Value(path.key("loop")), message).help(help),
            );
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
            && let Err(why) = run_variables::convert(name, parameter, &value)
        {
            let place = FindingPlace::Value(path.key("with").key(name.as_str()));
            findings.push(Diagnostic::error("binding", place, why));
        }
    }
}
