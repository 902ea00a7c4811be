//! Definition → machine: names become targets, keys become types, and every problem is reported at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

use super::check::unknown_names;
use super::early::{EarlyValue, EarlyValues, KnownValues};
use super::{
    Action, ActionSetting, Artifact, Binding, BoardAction, Budget, Cap, End, EndId, Fallback, FlakyRule,
    JudgedBy, Llm, LoopLimits, Machine, Maintain, Meaning, Params, PromptAction, Retry, Routes, ShellAction,
    Stall, Step, StepId, SubLoopAction, SubLoopInput, Target, TokenPrice, ToolAction, action, answerers,
    asking_states, graph, notified, observations, reusable,
};
use crate::base::decode;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair, Severity, nearest};
use crate::base::name::{StateName, VarName};
use crate::base::path::{DocPath, Segment};
use crate::base::sandbox::SandboxMode;
use crate::base::template::{Expression, Namespace, Template, TemplateFallback};
use crate::base::text::{listed_in_part, one_line};
use crate::board;
use crate::definition::early_values::Early;
use crate::definition::schema::{
    self, ActionType, Count, HostSettings, Loop, Paradigm, PrepatchCheck, Shell, State, TamperGuard,
    TerminalOutcome,
};
use crate::evaluate::effort::PatternEffort;
use crate::evaluate::field::{Field, FromText};
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Evaluate, Verdicts};
use crate::judges::declared::{Declared, MayChange, OnSuppression};

/// Compiles a definition with the values that it gives itself. The machine is there when no problem is an error.
pub fn compile(definition: &Loop) -> (Option<Machine>, Diagnostics) {
    compile_with(definition, KnownValues::Written)
}

/// Compiles a definition whose targets and counts are made of these values.
pub fn compile_with<'d>(definition: &'d Loop, values: KnownValues<'d>) -> (Option<Machine>, Diagnostics) {
    let mut compiler = Compiler::new(definition, values, true);
    let machine = compiler.machine();
    let problems = compiler.problems;
    (if problems.has_errors() { None } else { machine }, problems)
}

/// Looks for further problems in what remains of a definition that could not be read whole. Only problems that no
/// missing part can have caused are returned; `is_there` tells whether the file has a state of that name, readable or
/// not.
pub fn further_problems(remains: &Loop, is_there: impl Fn(&str) -> bool) -> Diagnostics {
    let mut compiler = Compiler::new(remains, KnownValues::Written, false);
    compiler.machine();
    let problems = compiler.problems;
    let mut certain = Diagnostics::default();
    for problem in problems.iter() {
        let is_certain = match problem.code {
            "unknown-state" => !problem.about.as_deref().is_some_and(&is_there),
            "unknown-key" | "unknown-name" | "duplicate-route" | "parameter" | "nested-param" => true,
            _ => false,
        };
        if is_certain {
            certain.push(problem.clone());
        }
    }
    certain
}

struct Compiler<'d> {
    definition: &'d Loop,
    targets: IndexMap<&'d StateName, Target>,
    values: EarlyValues<'d>,
    /// The parameters of the state that is compiled.
    params: IndexMap<VarName, Field<Value>>,
    /// What stands for targets that are known only when a run begins, by how they are made.
    open: IndexMap<String, EndId>,
    /// Whether some target or count is made of values.
    depends: bool,
    /// Whether nothing of the file is missing.
    is_whole: bool,
    /// What is left for looking at evaluators.
    effort: PatternEffort,
    problems: Diagnostics,
}

impl<'d> Compiler<'d> {
    fn new(definition: &'d Loop, values: KnownValues<'d>, is_whole: bool) -> Self {
        let (mut steps, mut ends) = (0, 0);
        let next = |counter: &mut usize| {
            *counter += 1;
            *counter - 1
        };
        let targets = definition.states.iter().map(|(name, state)| {
            let target = if state.terminal {
                Target::End(EndId(next(&mut ends)))
            } else {
                Target::Step(StepId(next(&mut steps)))
            };
            (name, target)
        });
        let targets = targets.collect();
        Self {
            definition,
            targets,
            values: EarlyValues::new(definition, values),
            params: IndexMap::new(),
            open: IndexMap::new(),
            depends: false,
            is_whole,
            effort: PatternEffort::new(),
            problems: Diagnostics::default(),
        }
    }

    fn machine(&mut self) -> Option<Machine> {
        let definition = self.definition;
        let root = DocPath::root();
        let states = root.key("states");
        let (mut steps, mut ends) = (Vec::new(), Vec::new());
        for (name, state) in &definition.states {
            let path = states.key(name.as_str());
            // Targets and counts of this state may be made of them.
            self.params.clone_from(&state.param);
            if state.terminal {
                ends.push(self.end(name, state, &path));
            } else if let Some(step) = self.step(name, state, &path) {
                steps.push(step);
            }
        }
        // What follows belongs to the whole loop, which has no parameters of a fragment.
        self.params.clear();
        self.parameters();
        let initial = self.state(&definition.initial, &root.key("initial"));
        let fallback = Fallback {
            on_error: self.optional(definition.on_error.as_ref(), &root.key("on_error")),
            on_timeout: self.optional(definition.on_timeout.as_ref(), &root.key("on_timeout")),
            on_blocked: self.optional(definition.on_blocked.as_ref(), &root.key("on_blocked")),
        };
        answerers::check_loop(definition, self.is_whole, &mut self.problems);
        let notify = notified::notify(definition, &mut self.problems);
        let limits = self.limits();
        let stall = self.stall();
        let (llm, budget, board) = (self.llm(), self.budget(), self.board());
        self.sandbox_of_all();
        let on_resume = self.optional(definition.on_resume.as_ref(), &root.key("on_resume"));
        // A loop with errors has no machine, but names that cannot exist are said together with the
        // rest.
        if self.problems.has_errors() {
            self.names(&steps, &ends);
            return None;
        }
        // An end stands for what only a run can know, so that each route leads somewhere.
        ends.extend(self.open.keys().map(|made| End::open(made)));
        let mut machine = Machine {
            name: definition.name.clone(),
            description: definition.description.clone(),
            initial: initial?,
            limits,
            context: definition.context.clone(),
            parameters: definition.parameters.clone(),
            input_key: definition.input_key.clone(),
            required_inputs: definition.required_inputs.clone(),
            env: definition.env.clone(),
            maintain: definition.maintain.then(|| Maintain {
                delay: definition.maintain_delay.map_or(Duration::ZERO, |delay| delay.0),
            }),
            fallback,
            stall,
            llm,
            budget,
            signals: definition.signals.clone(),
            on_handoff: definition.on_handoff,
            heeds_project: definition.host_settings == HostSettings::Project,
            broker: definition.broker,
            leaves_running: definition.leaves_running,
            on_change: definition.on_change,
            judges: judges(definition),
            makes_closing_pass: definition.closing_pass,
            reuse: definition.reuse.clone(),
            sandbox: definition.sandbox.clone(),
            notify,
            artifact: self.artifact(),
            max_handoffs: definition.max_handoffs.get(),
            board,
            on_resume,
            depends: self.depends,
            undecided: self.open.values().copied().collect(),
            steps,
            ends,
            referred: BTreeSet::new(),
            repeating: BTreeSet::new(),
        };
        machine.referred = referred(&machine);
        machine.repeating = graph::repeating(&machine);
        reusable::check(&machine, &mut self.problems);
        // What is missing might be what a name refers to, so of the rest only names that are wrong everywhere are reported.
        if self.is_whole {
            self.problems.extend(unknown_names::unknown(&machine));
        } else {
            self.names(&machine.steps, &machine.ends);
        }
        Some(machine)
    }

    /// Looks for names that cannot exist, as far as this can be told without a machine.
    fn names(&mut self, steps: &[Step], ends: &[End]) {
        let of_steps = steps.iter().map(|step| (&step.name, step.templates()));
        let of_ends = ends.iter().map(|end| {
            let closing = end.closing.iter().flat_map(Action::templates);
            (&end.name, closing.collect())
        });
        for (state, templates) in of_steps.chain(of_ends) {
            for (key, template) in templates {
                unknown_names::unknown_in(state, &key, template, &mut self.problems);
            }
        }
    }

    fn limits(&mut self) -> LoopLimits {
        let definition = self.definition;
        let root = DocPath::root();
        let iterations = self.optional(definition.on_max_iterations.as_ref(), &root.key("on_max_iterations"));
        let steps = self.optional(definition.on_max_steps.as_ref(), &root.key("on_max_steps"));
        if definition.on_max_steps.is_some() && definition.max_steps.is_none() {
            let place = FindingPlace::Key(root.key("on_max_steps"));
            let message = "`on_max_steps` has no effect without `max_steps`";
            self.problems.push(Diagnostic::warning("no-effect", place, message));
        }
        let limit = self.count(&definition.max_iterations, &root.key("max_iterations"));
        LoopLimits {
            // A cap that is known only when the run begins is checked as the usual one.
            iterations: Cap { limit: limit.unwrap_or(schema::STANDARD_ITERATIONS), handler: iterations },
            steps: self
                .optional_count(definition.max_steps.as_ref(), &root.key("max_steps"))
                .map(|limit| Cap { limit, handler: steps }),
            cycles: None,
            edge_revisits: self
                .optional_count(definition.max_edge_revisits.as_ref(), &root.key("max_edge_revisits")),
            timeout: definition.timeout,
            backoff: definition.backoff.map(|delay| delay.0),
        }
    }

    fn stall(&mut self) -> Option<Stall> {
        let stall = self.definition.stall.as_ref()?;
        let path = DocPath::root().key("stall");
        let to = match &stall.action {
            schema::StallAction::Stop => None,
            schema::StallAction::Go(state) => Some(self.state(state, &path.key("action"))?),
        };
        Some(Stall { window: stall.window.get(), to })
    }

    fn llm(&mut self) -> Llm {
        let Some(llm) = &self.definition.llm else { return Llm::default() };
        let model = self.model(llm.model.as_ref(), &DocPath::root().key("llm").key("model"));
        Llm {
            is_forbidden: !llm.enabled,
            model,
            max_tokens: llm.max_tokens.map(schema::Count::get),
            timeout: llm.timeout,
            prices: llm
                .prices
                .iter()
                .map(|(model, price)| {
                    let price = TokenPrice { input: price.input.get(), output: price.output.get() };
                    (model.clone(), price)
                })
                .collect(),
        }
    }

    /// Takes the name of a model, unless it is a shell variable, which no shell would expand here.
    fn model(&mut self, model: Option<&Template>, path: &DocPath) -> Option<Template> {
        let model = model?;
        if model.expressions().next().is_none() && model.source().contains("${") {
            let message = format!("`{}` is not the name of a model", model.source());
            let help = "the host chooses the model; write a name, or a template such as `${context.model}`";
            let place = FindingPlace::Value(path.clone());
            self.problems.push(Diagnostic::warning("no-effect", place, message).help(help));
            return None;
        }
        Some(model.clone())
    }

    fn budget(&mut self) -> Budget {
        let Some(budget) = &self.definition.budget else { return Budget::default() };
        Budget {
            cost_usd: budget.cost_usd.map(schema::Money::get),
            tokens: budget.tokens.map(|tokens| tokens.get().into()),
            calls: budget.llm_calls.map(schema::Count::get),
            allows_unpriced: budget.unpriced == schema::Unpriced::Allow,
        }
    }

    fn artifact(&mut self) -> Option<Artifact> {
        let definition = self.definition;
        let Some(schema::ArtifactOutput(artifact)) = &definition.artifact_output else {
            if definition.artifact_mode.is_some() {
                let place = FindingPlace::Key(DocPath::root().key("artifact_mode"));
                let message = "`artifact_mode` has no effect without `artifact_output`";
                self.problems.push(Diagnostic::note("no-effect", place, message));
            }
            return None;
        };
        for (at, state) in artifact.on.iter().enumerate() {
            let path = DocPath::root().key("artifact_output").key("on").index(at);
            // These names are written as they are: they cannot be made of values.
            if let Some(Target::Step(_)) = self.named(state, &Field::Literal(()), &path) {
                let message = format!("`{state}` is not terminal, so nothing is copied there");
                self.problems.push(Diagnostic::warning("no-effect", FindingPlace::Value(path), message));
            }
        }
        let said = definition.context.iter().find(|(name, _)| name.as_str() == "artifact_mode");
        let is_template = definition.artifact_mode == Some(schema::ArtifactMode::Template)
            // Loops of the predecessor may say it among their values.
            || said.is_some_and(|(_, mode)| mode == "template");
        let schema::Artifact { from, to, on } = artifact.clone();
        Some(Artifact { from, to, on, is_template })
    }

    /// Refuses a sandbox for all actions that no kind but prompts knows.
    fn sandbox_of_all(&mut self) {
        let is_for_prompts =
            self.definition.sandbox.as_ref().is_some_and(|rules| rules.mode == SandboxMode::ReadOnly);
        if is_for_prompts {
            let place = FindingPlace::Value(DocPath::root().key("sandbox"));
            let message = "`sandbox: read-only` is for single prompts";
            let help = "write it on those, or `workspace` or `strict` here";
            self.problems.push(Diagnostic::error("sandbox", place, message).help(help));
        }
    }

    fn board(&mut self) -> board::Limits {
        let Some(limits) = &self.definition.board else { return board::Limits::default() };
        let path = DocPath::root().key("board");
        let is_used = |state: &State| state.action_type == Some(ActionType::Board);
        if !self.definition.states.values().any(is_used) {
            let message = "`board` has no effect: no state works on the task board";
            let help = "add `action_type: board` to a state, or remove it";
            self.problems.push(Diagnostic::warning("no-effect", FindingPlace::Key(path), message).help(help));
        }
        board::Limits {
            plan_revisions: limits.max_plan_revisions.get(),
            fix_cycles: limits.max_fix_cycles.get(),
            attempts: limits.attempts_before_replan.get(),
            depth: limits.max_replan_depth.get(),
            idle_passes: limits.max_goal_iterations.get(),
            failed_ratio: limits.abort_failed_ratio.get(),
        }
    }

    fn parameters(&mut self) {
        for (name, parameter) in &self.definition.parameters {
            let path = DocPath::root().key("parameters").key(name.as_str());
            if parameter.kind == schema::ParameterType::Enum && parameter.values.is_empty() {
                let message = format!("the enum `{name}` has no `values`");
                self.problems.push(
                    Diagnostic::error("parameter", FindingPlace::Value(path.clone()), message)
                        .help("add `values: [a, b]`"),
                );
            }
            if parameter.required && parameter.default.is_some() {
                let message = format!("the parameter `{name}` is required and has a default");
                self.problems.push(
                    Diagnostic::error("parameter", FindingPlace::Value(path.key("required")), message)
                        .help("a parameter with a default is never missing; remove one of the two"),
                );
            }
            if let Some(default) = &parameter.default
                && let Err(why) = super::run_variables::convert(name, parameter, default)
            {
                self.problems.push(Diagnostic::error(
                    "parameter",
                    FindingPlace::Value(path.key("default")),
                    why,
                ));
            }
        }
    }

    fn end(&mut self, name: &StateName, state: &State, path: &DocPath) -> End {
        for (key, given) in [
            ("loop", state.r#loop.is_some()),
            ("next", state.next.is_some()),
            ("route", !state.route.is_empty()),
            ("evaluate", state.evaluate.is_some()),
            ("capture", state.capture.is_some()),
            ("on_rate_limit_exhausted", state.on_rate_limit_exhausted.is_some()),
            ("on_throttle_hard", state.on_throttle_hard.is_some()),
        ] {
            if given {
                let message = format!("`{key}` has no effect in the terminal state `{name}`");
                let help = "a terminal ends the run; put the work in a state before it";
                self.problems.push(
                    Diagnostic::warning("no-effect", FindingPlace::Key(path.key(key)), message).help(help),
                );
            }
        }
        for verdict in state.on.keys() {
            let key = format!("on_{verdict}");
            let message = format!("`{key}` has no effect in the terminal state `{name}`");
            self.problems.push(Diagnostic::warning("no-effect", FindingPlace::Key(path.key(key)), message));
        }
        // Without the usual time of its kind: the action of a terminal has a minute, whatever it is.
        let closing = self.action(state, path).filter(Action::can_close);
        self.idle_sandbox(state, closing.as_ref(), path);
        End {
            name: name.clone(),
            description: state.description.clone(),
            meaning: self.meaning(name, state, path),
            closing,
            on_maintain: self.optional(state.on_maintain.as_ref(), &path.key("on_maintain")),
            is_idempotent: state.idempotent,
        }
    }

    fn meaning(&mut self, name: &StateName, state: &State, path: &DocPath) -> Meaning {
        let declared = match (state.outcome, state.failure) {
            (Some(outcome), _) => Some(outcome),
            (None, Some(true)) => Some(TerminalOutcome::Failure),
            (None, Some(false)) => Some(TerminalOutcome::Success),
            (None, None) => None,
        };
        match declared {
            Some(TerminalOutcome::Success | TerminalOutcome::Neutral) => return Meaning::DeclaredSuccess,
            Some(TerminalOutcome::Failure) => return Meaning::Failure,
            Some(TerminalOutcome::Blocked) => return Meaning::Blocked,
            None => {}
        }
        let inferred = inferred_meaning(name);
        if inferred != Meaning::Success {
            let word = if inferred == Meaning::Failure { "failure" } else { "blocked" };
            let message = format!("ending in `{name}` counts as {word}, by its name");
            let help = format!("write `outcome: {word}` to say so, or `outcome: success` if it is not");
            let place = FindingPlace::Key(path.clone());
            self.problems.push(Diagnostic::note("inferred-outcome", place, message).help(help));
        }
        inferred
    }

    fn step(&mut self, name: &StateName, state: &State, path: &DocPath) -> Option<Step> {
        let action = self.action(state, path).map(Action::within_standard_time);
        self.idle_sandbox(state, action.as_ref(), path);
        let routes = self.routes(name, state, path);
        asking_states::routes(action.as_ref(), routes.as_ref(), path, &mut self.problems);
        let evaluate = self.evaluator(state, action.as_ref(), routes.as_ref(), path);
        for (key, given) in [("outcome", state.outcome.is_some()), ("failure", state.failure.is_some())] {
            if given {
                let message = format!("`{key}` has no effect, because `{name}` is not terminal");
                let place = FindingPlace::Key(path.key(key));
                let repair = Repair::Add { key: "terminal", value: "true".to_owned() };
                let finding = Diagnostic::warning("no-effect", place, message).help("add `terminal: true`");
                self.problems.push(finding.repair(repair));
            }
        }
        let is_check = self.is_check(state, action.as_ref(), evaluate.as_ref(), path);
        let step = Step {
            name: name.clone(),
            description: state.description.clone(),
            role: state.role.clone(),
            phase: state.phase,
            action,
            evaluate,
            // Given up only here, so that everything else of a state without a way out was looked at.
            routes: routes?,
            capture: match (&state.capture, state.capture_exit) {
                (Some(name), _) => Some(name.clone()),
                // Every name of a state can be the name of a capture: both are checked by the same rule.
                (None, true) => VarName::parse(name.as_str()).ok(),
                (None, false) => None,
            },
            message: state.append_to_messages.clone(),
            retry: self.retry(name, state, path),
            repeat: self.repeat(state, path),
            flaky: self.flaky(state, is_check, path),
            is_idempotent: state.idempotent,
            is_check,
            params: state.param.clone(),
            unused: self.unused(state, path),
        };
        self.params(&step, path);
        Some(step)
    }

    /// Tells whether the observation of a state may be made again without harm: where the state says so, or else by its
    /// command.
    fn is_check(
        &mut self,
        state: &State,
        action: Option<&Action>,
        evaluate: Option<&Evaluate>,
        path: &DocPath,
    ) -> bool {
        let repeatable = observations::repeatable(action, evaluate);
        match (state.check, repeatable) {
            (Some(true), Ok(_)) => true,
            (Some(true), Err(why)) => {
                let message = format!("`check: true` has no effect: {why}");
                let help = "a check is a shell command that is judged by what it prints or by its exit code";
                let place = FindingPlace::Key(path.key("check"));
                self.problems.push(Diagnostic::warning("no-effect", place, message).help(help));
                false
            }
            (None, Ok(shell)) => observations::is_known_check(shell),
            (Some(false), _) | (None, Err(_)) => false,
        }
    }

    /// Looks at the ways for reasons that only the predecessor knows.
    fn unused(&mut self, state: &State, path: &DocPath) -> Vec<Target> {
        let keys = [
            ("on_rate_limit_exhausted", &state.on_rate_limit_exhausted),
            ("on_throttle_hard", &state.on_throttle_hard),
        ];
        let given = keys.into_iter().filter_map(|(key, name)| Some((key, name.as_ref()?)));
        let read = given.filter_map(|(key, name)| {
            let place = FindingPlace::Key(path.key(key));
            self.problems.push(Diagnostic::note("no-effect", place, format!("`{key}` has no effect here")));
            self.state(name, &path.key(key))
        });
        read.collect()
    }

    /// A parameter that was not given has no value in any run.
    fn params(&mut self, step: &Step, path: &DocPath) {
        for (key, template) in step.templates() {
            // `templates` gives keys as people write them, with dots between their parts.
            let at = key.split('.').fold(path.clone(), |path, key| path.key(key));
            for expression in template.expressions().filter(|e| e.namespace == Namespace::Param) {
                if key.starts_with("param.") {
                    let place = FindingPlace::Within(at.clone(), expression.span.clone());
                    let message = "a parameter cannot refer to parameters";
                    let help = "name where its value comes from, such as `${context.…}`";
                    self.problems.push(Diagnostic::error("nested-param", place, message).help(help));
                } else {
                    self.known_param(expression, &step.params, &at);
                }
            }
        }
    }

    /// Tells whether a parameter has a value, and says so where it has none.
    fn known_param(
        &mut self,
        expression: &Expression,
        params: &IndexMap<VarName, Field<Value>>,
        at: &DocPath,
    ) -> bool {
        let wanted = match expression.path.first() {
            Some(Segment::Key(wanted)) => wanted.clone(),
            Some(Segment::Index(index)) => index.to_string(),
            None => return true,
        };
        let is_known = params.keys().any(|known| known.as_str() == wanted);
        if is_known || expression.fallback != TemplateFallback::Required {
            return true;
        }
        let message = format!("`${{{expression}}}` has no value here");
        let near = nearest(&wanted, params.keys().map(VarName::as_str));
        let place = FindingPlace::Within(at.clone(), expression.span.clone());
        let finding = Diagnostic::error("unknown-param", place, message);
        self.problems.push(match near {
            Some(near) => finding.meant(&format!("param.{wanted}"), &format!("param.{near}")),
            None => finding.help(format!(
                "declare it in the `parameters` of a fragment and give it with `with: {{{wanted}: …}}`"
            )),
        });
        false
    }

    fn evaluator(
        &mut self,
        state: &State,
        action: Option<&Action>,
        routes: Option<&Routes>,
        path: &DocPath,
    ) -> Option<Evaluate> {
        let explicit = state.evaluate.as_ref();
        let place = |key: &str| FindingPlace::Value(path.key("evaluate").key(key));
        let effort = &mut self.effort;
        for odd in explicit.iter().flat_map(|evaluate| evaluate.check(effort)) {
            let place = place(odd.key);
            self.problems.push(if odd.is_fault {
                Diagnostic::error("unusable-evaluator", place, odd.message)
            } else {
                Diagnostic::warning("odd-evaluator", place, odd.message)
            });
        }
        match routes {
            Some(Routes::Always { .. }) => {
                if explicit.is_some() {
                    let place = FindingPlace::Key(path.key("evaluate"));
                    let message = "`evaluate` has no effect beside `next`";
                    let help =
                        "`next` is taken whatever the result; name the verdicts with `on_yes` and `on_no`";
                    self.problems.push(Diagnostic::warning("no-effect", place, message).help(help));
                }
                None
            }
            Some(Routes::ByVerdict { .. }) | None => match action.map(Action::judged_by) {
                None => explicit.cloned(),
                Some(JudgedBy::Evaluator(standard)) => Some(explicit.cloned().unwrap_or(*standard)),
                Some(JudgedBy::Itself(_)) => {
                    // Beside `loop` it is an error, which is found with the loop.
                    let own = match action {
                        Some(Action::Board(_)) => Some("an operation on the board"),
                        Some(Action::Approval(_)) => Some("a question for a person"),
                        Some(Action::Learning(_)) => Some("`learning`"),
                        _ => None,
                    };
                    if let (Some(own), true) = (own, explicit.is_some()) {
                        let place = FindingPlace::Key(path.key("evaluate"));
                        let message = format!("`evaluate` has no effect beside {own}");
                        let help = "it has verdicts of its own; name them with `on_` or `route`";
                        self.problems.push(Diagnostic::warning("no-effect", place, message).help(help));
                    }
                    None
                }
            },
        }
    }

    fn sub_loop(&mut self, name: &Template, state: &State, path: &DocPath) -> Action {
        for (key, given) in [("action", state.action.is_some()), ("evaluate", state.evaluate.is_some())] {
            if given {
                let message = format!("`{key}` and `loop` exclude each other");
                let help = "a state runs a command or another loop; use two states for both";
                self.problems.push(
                    Diagnostic::error("sub-loop", FindingPlace::Key(path.key(key)), message).help(help),
                );
            }
        }
        let given = match (state.context_passthrough, state.with.is_empty()) {
            (true, true) => SubLoopInput::Everything,
            (false, true) => SubLoopInput::Nothing,
            (passthrough, false) => {
                if passthrough {
                    let message = "`with` and `context_passthrough` exclude each other";
                    let help = "`with` gives single values, `context_passthrough` everything; keep one";
                    let place = FindingPlace::Key(path.key("with"));
                    self.problems.push(Diagnostic::error("sub-loop", place, message).help(help));
                }
                let bindings = state.with.iter();
                SubLoopInput::Parameters(
                    bindings
                        .map(|(name, value)| {
                            (name.clone(), self.binding(value, &path.key("with").key(name.as_str())))
                        })
                        .collect(),
                )
            }
        };
        let worktree = state.worktree.clone();
        Action::SubLoop(SubLoopAction { name: name.clone(), given, worktree, timeout: state.timeout })
    }

    fn binding(&mut self, value: &serde_json::Value, path: &DocPath) -> Binding {
        let Some(text) = value.as_str() else {
            return Binding::Value(value.clone());
        };
        let template = decode::template(text, path, &mut self.problems);
        template.map_or_else(|| Binding::Value(value.clone()), Binding::Text)
    }

    fn action(&mut self, state: &State, path: &DocPath) -> Option<Action> {
        answerers::check_state(state, path, &mut self.problems);
        if let Some(learning) = asking_states::learning(state, path, &mut self.problems) {
            let setting = self.setting_of(state);
            return Some(asking_states::learn(learning, setting, path, &mut self.problems));
        }
        if let Some(name) = &state.r#loop {
            return Some(self.sub_loop(name, state, path));
        }
        for (key, given) in
            [("with", !state.with.is_empty()), ("context_passthrough", state.context_passthrough)]
        {
            if given {
                let message = format!("`{key}` has no effect without `loop`");
                self.problems.push(Diagnostic::warning(
                    "no-effect",
                    FindingPlace::Key(path.key(key)),
                    message,
                ));
            }
        }
        if state.worktree.is_some() {
            let message = "`worktree` needs `loop`";
            let help = "it is where a sub-loop works; for a whole run there is `run --worktree`";
            let place = FindingPlace::Key(path.key("worktree"));
            self.problems.push(Diagnostic::error("sub-loop", place, message).help(help));
        }
        let Some(text) = state.action.clone() else {
            asking_states::without_question(state, path, &mut self.problems);
            return None;
        };
        if text.source().trim().is_empty() {
            let place = FindingPlace::Value(path.key("action"));
            let help = "remove the key for a state that runs nothing";
            let finding = Diagnostic::error("empty-action", place, "the action is empty").help(help);
            self.problems.push(finding.repair(Repair::Remove));
        }
        let kind = kind(state, &text);
        self.idle_keys(state, kind, path);
        let setting = self.setting_of(state);
        Some(match kind {
            ActionType::Shell => {
                let shell = match state.shell.as_ref().unwrap_or(&self.definition.shell) {
                    Shell::Bash => vec!["bash".to_owned(), "-c".to_owned()],
                    Shell::Sh => vec!["sh".to_owned(), "-c".to_owned()],
                    Shell::Argv(words) => words.clone(),
                };
                Action::Shell(ShellAction { text, shell, setting })
            }
            ActionType::Prompt | ActionType::SlashCommand => Action::Prompt(Box::new(PromptAction {
                text,
                context: state.context.clone(),
                agent: state.agent.clone(),
                tools: state.tools.clone(),
                sandbox: state.sandbox.as_ref().map(|rules| rules.mode),
                model: self.model(state.model.as_ref(), &path.key("model")),
                fallback_model: self.model(state.fallback_model.as_ref(), &path.key("fallback_model")),
                answer: state.answer.clone(),
                session: state.session.clone(),
                setting,
            })),
            ActionType::McpTool => self.tool(text, state, setting, path),
            ActionType::Board => return self.operation(text, state, path),
            ActionType::HumanApproval => {
                asking_states::approval(text, setting, state, self.definition.approvers.as_ref())
            }
        })
    }

    /// Returns where and how long the action of a state runs.
    fn setting_of(&self, state: &State) -> ActionSetting {
        ActionSetting {
            env: state.env.clone(),
            cwd: state.cwd.clone(),
            timeout: state.timeout.or(self.definition.default_timeout),
            idle_timeout: state.idle_timeout.or(self.definition.default_idle_timeout),
            sandbox: state.sandbox.clone().or_else(|| self.definition.sandbox.clone()),
        }
    }

    /// Notes keys that belong to another kind of action.
    fn idle_keys(&mut self, state: &State, kind: ActionType, path: &DocPath) {
        for (key, given, help) in [
            ("agent", state.agent.is_some(), "a prompt has an agent: add `action_type: prompt`"),
            ("tools", !state.tools.is_empty(), "a prompt has tools: add `action_type: prompt`"),
            ("model", state.model.is_some(), "a prompt has a model: add `action_type: prompt`"),
            (
                "context",
                !state.context.is_empty(),
                "it is shown to prompts; name the values in the action, or put them under `env`",
            ),
            ("fallback_model", state.fallback_model.is_some(), "only a prompt has a model"),
            ("answer", state.answer.is_some(), "only a prompt is answered"),
            ("session", state.session.is_some(), "only a prompt belongs to a conversation"),
            ("params", !state.params.is_empty(), "a tool has parameters: add `action_type: mcp_tool`"),
            ("env", !state.env.is_empty(), "an action of this kind starts no process"),
            ("shell", state.shell.is_some(), "only a shell action is run by a shell"),
        ] {
            if given && !own_keys(kind).contains(&key) {
                let place = FindingPlace::Key(path.key(key));
                let message = format!("`{key}` has no effect beside a {} action", kind.word());
                self.problems.push(Diagnostic::note("no-effect", place, message).help(help));
            }
        }
    }

    /// Refuses a sandbox where there is no process that it could confine: who reads it believes that something is confined.
    fn idle_sandbox(&mut self, state: &State, action: Option<&Action>, path: &DocPath) {
        let Some(rules) = &state.sandbox else { return };
        let help = match action {
            Some(Action::Shell(_) | Action::Tool(_) | Action::Learning(_))
                if rules.mode == SandboxMode::ReadOnly =>
            {
                "only the host of a prompt knows `read-only`; write `workspace` or `strict`"
            }
            Some(Action::Prompt(_) | Action::Shell(_) | Action::Tool(_) | Action::Learning(_)) => return,
            Some(Action::SubLoop(_)) => "write it in the loop that this state runs, at its top",
            Some(Action::Board(_) | Action::Approval(_)) => {
                "an action of this kind starts no process; remove it"
            }
            None => "the state runs nothing; remove it",
        };
        let place = FindingPlace::Key(path.key("sandbox"));
        let message = "`sandbox` confines nothing here";
        self.problems.push(Diagnostic::error("sandbox", place, message).help(help));
    }

    fn tool(&mut self, tool: Template, state: &State, setting: ActionSetting, path: &DocPath) -> Action {
        // A name that is made of a template can be checked only in the run.
        if let Some(name) = tool.as_literal() {
            let parts: Vec<_> = name.trim().split('/').collect();
            if parts.len() != 2 || parts.iter().any(|part| part.is_empty()) {
                let message = format!("`{}` is not a tool", one_line(&name, 60));
                let help = "write the server and its tool, such as `github/create_issue`";
                let place = FindingPlace::Value(path.key("action"));
                self.problems.push(Diagnostic::error("tool", place, message).help(help));
            }
        }
        let at = path.key("params");
        let params = state
            .params
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), self.tool_params(value, &at.key(name))?)));
        let params = params.collect();
        Action::Tool(ToolAction { tool, params, setting })
    }

    /// Reads an operation on the board and its parameters.
    fn operation(&mut self, text: Template, state: &State, path: &DocPath) -> Option<Action> {
        let word = text.source().trim();
        let Some(kind) = board::OperationKind::parse(word) else {
            let words = || board::OperationKind::ALL.iter().map(|kind| kind.word());
            let message = format!("`{}` is not an operation on the board", one_line(word, 60));
            let place = FindingPlace::Value(path.key("action"));
            let finding = Diagnostic::error("operation", place, message);
            self.problems.push(match nearest(word, words()) {
                Some(near) => finding.meant(word, near),
                None => {
                    finding.help(format!("the operations are {}", words().collect::<Vec<_>>().join(", ")))
                }
            });
            return None;
        };
        let mut params = IndexMap::new();
        for (name, value) in &state.params {
            let at = path.key("params").key(name);
            if !kind.params().contains(&name.as_str()) {
                let message = format!("the operation `{kind}` has no parameter `{name}`", kind = kind.word());
                let help = match kind.params() {
                    [] => "it has none".to_owned(),
                    known => format!("it has {}", known.join(", ")),
                };
                self.problems.push(Diagnostic::error("operation", FindingPlace::Key(at), message).help(help));
            } else if let Some(text) = value.as_str() {
                params
                    .extend(decode::template(text, &at, &mut self.problems).map(|text| (name.clone(), text)));
            } else {
                let message = format!("the parameter `{name}` of an operation is a text");
                let help = "write a text, such as `${captured.plan.json}`";
                self.problems
                    .push(Diagnostic::error("operation", FindingPlace::Value(at), message).help(help));
            }
        }
        Some(Action::Board(BoardAction { text, kind, params }))
    }

    fn tool_params(&mut self, value: &Value, path: &DocPath) -> Option<Params> {
        Some(match value {
            Value::String(text) => Params::Text(decode::template(text, path, &mut self.problems)?),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Params::List(items.filter_map(|(at, item)| self.tool_params(item, &path.index(at))).collect())
            }
            Value::Object(entries) => {
                let entries = entries.iter();
                let read = entries.filter_map(|(name, value)| {
                    Some((name.clone(), self.tool_params(value, &path.key(name))?))
                });
                Params::Map(read.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Params::Plain(value.clone()),
        })
    }

    fn routes(&mut self, name: &StateName, state: &State, path: &DocPath) -> Option<Routes> {
        let mut table: BTreeMap<Verdict, (Target, DocPath)> = BTreeMap::new();
        let (mut error, mut otherwise) = (None, None);
        for (word, target) in &state.route {
            let at = path.key("route").key(word);
            let target = self.target(name, target, &at);
            match word.as_str() {
                "_" => otherwise = target,
                "_error" => error = target,
                // As a verdict, a misspelt `_error` would quietly never come.
                _ if word.starts_with('_') => {
                    let message = format!("unknown route key `{word}`");
                    let help = "the special keys are `_` for any other verdict and `_error` for errors";
                    self.problems
                        .push(Diagnostic::error("unknown-key", FindingPlace::Key(at), message).help(help));
                }
                _ => self.enter(&mut table, word, target, at),
            }
        }
        let mut shorthand = BTreeMap::new();
        for (word, target) in &state.on {
            let at = path.key(format!("on_{word}"));
            if let Some(meant) = misspelt(word, state) {
                let message = format!("unknown key `on_{word}`");
                let finding = Diagnostic::error("unknown-key", FindingPlace::Key(at), message);
                self.problems.push(finding.meant(&format!("on_{word}"), &format!("on_{meant}")));
                continue;
            }
            let target = self.target(name, target, &at);
            self.enter(&mut shorthand, word, target, at);
        }
        for (verdict, (target, at)) in shorthand {
            // A full table overrides the shorthand.
            table.entry(verdict).or_insert((target, at));
        }
        let way = |verdict: Verdict| table.get(&verdict).map(|(target, _)| *target);
        if let Some(next) = &state.next {
            let next = self.target(name, next, &path.key("next"))?;
            let (on_error, on_timeout) = (way(Verdict::error()).or(error), way(Verdict::timeout()));
            // Only a prompt can be blocked before it has run: where no model may be asked.
            let on_blocked = way(Verdict::blocked()).filter(|_| is_prompt(state));
            for (verdict, (_, at)) in &table {
                let is_blocked = on_blocked.is_some() && *verdict == Verdict::blocked();
                if !verdict.is_error() && !verdict.is_timeout() && !is_blocked {
                    let message = format!("the route for `{verdict}` has no effect beside `next`");
                    let help = "`next` is taken whatever the result; remove one of the two";
                    self.problems.push(
                        Diagnostic::warning("no-effect", FindingPlace::Key(at.clone()), message).help(help),
                    );
                }
            }
            return Some(Routes::Always { next, on_error, on_timeout, on_blocked });
        }
        if state.route.is_empty() && state.on.is_empty() {
            let message = format!("the state `{name}` has no way out");
            let help = "add `next`, routes such as `on_yes` and `on_no`, or `terminal: true`";
            self.problems
                .push(Diagnostic::error("no-way-out", FindingPlace::Key(path.clone()), message).help(help));
            return None;
        }
        let table = table.into_iter().map(|(verdict, (target, _))| (verdict, target)).collect();
        Some(Routes::ByVerdict { table, error, otherwise })
    }

    /// Adds a way; two keys of one alias family are a contradiction.
    fn enter(
        &mut self,
        table: &mut BTreeMap<Verdict, (Target, DocPath)>,
        word: &str,
        target: Option<Target>,
        at: DocPath,
    ) {
        let verdict = Verdict::canonical(word);
        if let Some((_, first)) = table.get(&verdict) {
            let message = format!("two routes for the verdict `{verdict}`");
            let help =
                "`success`, `pass` and `met` mean `yes`; `failure`, `fail` and `unmet` mean `no`; keep one";
            self.problems.push(
                Diagnostic::error("duplicate-route", FindingPlace::Key(at), message)
                    .related(FindingPlace::Key(first.clone()), "the other one")
                    .help(help),
            );
        } else if let Some(target) = target {
            table.insert(verdict, (target, at));
        }
    }

    fn retry(&mut self, name: &StateName, state: &State, path: &DocPath) -> Option<Retry> {
        let exhausted = self.optional(state.on_retry_exhausted.as_ref(), &path.key("on_retry_exhausted"));
        let max = state.max_retries.as_ref();
        match (max, &state.on_retry_exhausted) {
            (Some(max), Some(_)) => Some(Retry {
                // Where it is known only in the run, the loop is compiled once more before that, and any number will do here.
                max: self.count(max, &path.key("max_retries")).unwrap_or(1),
                exhausted: exhausted?,
                codes: state.retryable_exit_codes.iter().map(|code| code.get()).collect(),
                delay: state.retry_delay.map_or(Duration::ZERO, |delay| delay.0),
            }),
            (None, None) => {
                let idle = [
                    ("retryable_exit_codes", !state.retryable_exit_codes.is_empty()),
                    ("retry_delay", state.retry_delay.is_some()),
                ];
                for (key, _) in idle.into_iter().filter(|(_, given)| *given) {
                    let message = format!("`{key}` has no effect without `max_retries`");
                    self.problems.push(Diagnostic::warning(
                        "no-effect",
                        FindingPlace::Key(path.key(key)),
                        message,
                    ));
                }
                None
            }
            (max, _) => {
                let (there, missing) = match max {
                    Some(_) => ("max_retries", "on_retry_exhausted"),
                    None => ("on_retry_exhausted", "max_retries"),
                };
                let message = format!("`{there}` of `{name}` needs `{missing}`");
                let help = "give both or neither";
                self.problems
                    .push(Diagnostic::error("retry", FindingPlace::Key(path.key(there)), message).help(help));
                None
            }
        }
    }

    /// Returns how often a state may be entered in a row, by the keys that say so.
    fn caps(&self) -> [(&'static str, Option<u32>); 3] {
        let known = |count: &Early<Count>| match self.values.settle(count, &self.params) {
            EarlyValue::Known(count) => Some(count.get()),
            EarlyValue::Open | EarlyValue::Missing(_) | EarlyValue::Unfit(_) => None,
        };
        let definition = self.definition;
        // The first entry takes no way back.
        let edges =
            definition.max_edge_revisits.as_ref().and_then(known).map(|edges| edges.saturating_add(1));
        [
            ("max_iterations", known(&definition.max_iterations)),
            ("max_steps", definition.max_steps.as_ref().and_then(known)),
            ("max_edge_revisits", edges),
        ]
    }

    fn repeat(&mut self, state: &State, path: &DocPath) -> Option<u32> {
        let path = path.key("repeat");
        let passes = self.count(&state.repeat.as_ref()?.passes, &path.key("passes"))?;
        if state.next.is_some() {
            let message = "`repeat` has no effect beside `next`";
            let help = "`next` is taken whatever the result; name the verdicts with `on_yes` and `on_no`";
            self.problems.push(Diagnostic::warning("no-effect", FindingPlace::Key(path), message).help(help));
            return None;
        }
        for (key, cap) in self.caps() {
            if let Some(cap) = cap.filter(|cap| passes > *cap) {
                let message = format!("`passes: {passes}` cannot be reached: `{key}` allows {cap}");
                let place = FindingPlace::Value(path.key("passes"));
                let help = format!("each of them is a pass of its own; raise `{key}`");
                self.problems.push(Diagnostic::error("range", place, message).help(help));
            }
        }
        Some(passes)
    }

    fn flaky(&mut self, state: &State, is_check: bool, path: &DocPath) -> Option<FlakyRule> {
        let path = path.key("flaky");
        let flaky = state.flaky.as_ref()?;
        let again = self.count(&flaky.again, &path.key("again"))?;
        let place = FindingPlace::Key(path);
        if state.next.is_some() {
            let finding = Diagnostic::warning("no-effect", place, "`flaky` has no effect beside `next`");
            self.problems.push(finding.help("name the verdicts with `on_yes` and `on_no`"));
            return None;
        }
        if !is_check {
            let message = "`flaky` has no effect: the state is not a check";
            let help = "say `check: true`, if its observation may be made again without harm";
            // A state that says itself that it is not a check keeps its word.
            let said = Repair::Add { key: "check", value: "true".to_owned() };
            let finding = Diagnostic::warning("no-effect", place, message).help(help);
            self.problems.push(finding.repair(state.check.is_none().then_some(said)));
            return None;
        }
        Some(FlakyRule { again, always: flaky.always })
    }

    fn target(&mut self, from: &StateName, target: &Early<schema::Target>, path: &DocPath) -> Option<Target> {
        match self.early(target, path) {
            Worked::Known(schema::Target::State(name)) => self.named(&name, target.field(), path),
            Worked::Known(schema::Target::Current) => self.targets.get(from).copied(),
            Worked::Open => Some(self.open(target.field())),
            Worked::Refused => None,
        }
    }

    fn optional(&mut self, name: Option<&Early<StateName>>, path: &DocPath) -> Option<Target> {
        name.and_then(|name| self.state(name, path))
    }

    fn state(&mut self, name: &Early<StateName>, path: &DocPath) -> Option<Target> {
        match self.early(name, path) {
            Worked::Known(found) => self.named(&found, name.field(), path),
            Worked::Open => Some(self.open(name.field())),
            Worked::Refused => None,
        }
    }

    fn named<T>(&mut self, name: &StateName, made: &Field<T>, path: &DocPath) -> Option<Target> {
        let found = self.targets.get(name).copied();
        // The values of a draft are not those of the run, which may well lead to a state that exists.
        if found.is_none() && made.as_template().is_some() && self.values.are_draft() {
            return Some(self.open(made));
        }
        if found.is_none() {
            self.problems.push_with(Severity::Error, || {
                let known = self.targets.keys().map(|name| name.as_str());
                let from = made.as_template().map(|made| format!(", which `{}` becomes,", made.source()));
                let message = format!("the state `{name}`{} is not defined", from.unwrap_or_default());
                let label = "no state has this name";
                let place = FindingPlace::Value(path.clone());
                let finding = Diagnostic::error("unknown-state", place, message).label(label);
                let finding = finding.about(name.as_str());
                let finding = match nearest(name.as_str(), known.clone()) {
                    Some(near) => finding.meant(name.as_str(), near),
                    None => finding.help(format!("the states are {}", listed_in_part(known.clone()))),
                };
                finding.or_meant(name.as_str(), known)
            });
        }
        found
    }

    /// Returns what stands for a target that is known only when a run begins.
    fn open<T>(&mut self, made: &Field<T>) -> Target {
        let made = made.as_template().map_or("", Template::source).to_owned();
        // `machine` puts these behind the ends that the file declares.
        let declared = self.targets.values().filter(|target| matches!(target, Target::End(_))).count();
        let next = EndId(declared + self.open.len());
        Target::End(*self.open.entry(made).or_insert(next))
    }

    fn count(&mut self, count: &Early<Count>, path: &DocPath) -> Option<u32> {
        match self.early(count, path) {
            Worked::Known(count) => Some(count.get()),
            Worked::Open | Worked::Refused => None,
        }
    }

    fn optional_count(&mut self, count: Option<&Early<Count>>, path: &DocPath) -> Option<u32> {
        count.and_then(|count| self.count(count, path))
    }

    /// Works out a value that is needed before the run, and says why where it cannot be.
    fn early<T: FromText + Clone>(&mut self, value: &Early<T>, path: &DocPath) -> Worked<T> {
        let template = value.field().as_template();
        // A run with another context may then be another machine, which a resume has to know.
        self.depends |= template.is_some_and(|template| !template.source().is_empty());
        // A value that is written as it is never comes to be one of those that are told of.
        let source = template.map(Template::source).unwrap_or_default();
        let expressions = template.into_iter().flat_map(Template::expressions);
        // Taken out for this look, because what is wrong is reported through `self`.
        let params = std::mem::take(&mut self.params);
        let mut named = expressions.filter(|expression| expression.namespace == Namespace::Param);
        let are_known = named.all(|expression| self.known_param(expression, &params, path));
        self.params = params;
        if !are_known {
            return Worked::Refused;
        }
        let place = FindingPlace::Value(path.clone());
        match self.values.settle(value, &self.params) {
            EarlyValue::Known(value) => Worked::Known(value),
            EarlyValue::Open => {
                let message = format!("`{source}` is known only when a run begins");
                let help = "until then every state counts as reachable";
                self.problems.push(Diagnostic::note("open-value", place, message).help(help));
                Worked::Open
            }
            EarlyValue::Missing(error) => {
                let message = error.to_string();
                let help = "give it with `--context NAME=…`, or add it to `context`";
                self.problems.push(Diagnostic::error("undefined-context", place, message).help(help));
                Worked::Refused
            }
            EarlyValue::Unfit(text) => {
                let message =
                    format!("`{source}` becomes `{}`, which is not {}", one_line(&text, 60), T::EXPECTED);
                self.problems.push(Diagnostic::error("unfit-value", place, message));
                Worked::Refused
            }
        }
    }
}

/// A value that is needed before the run.
enum Worked<T> {
    Known(T),
    /// It is known only when a run begins.
    Open,
    /// It cannot be worked out, which was said.
    Refused,
}

/// Returns every name that a template reads from `captured`.
fn referred(machine: &Machine) -> BTreeSet<String> {
    let templates = machine.templates();
    let expressions = templates.iter().flat_map(|(_, _, template)| template.expressions());
    let captured = expressions.filter(|expression| expression.namespace == Namespace::Captured);
    captured
        .filter_map(|expression| match expression.path.first()? {
            Segment::Key(name) => Some(name.clone()),
            Segment::Index(index) => Some(index.to_string()),
        })
        .collect()
}

/// Any word may follow `on_`, so a misspelt one would quietly be a verdict that never comes. It is taken for a
/// mistake when the state cannot give it and it looks like one that every state knows.
fn misspelt(word: &str, state: &State) -> Option<String> {
    // The last two are keys of their own.
    const KNOWN: [&str; 14] = [
        "yes",
        "no",
        "error",
        "timeout",
        "blocked",
        "partial",
        "success",
        "pass",
        "met",
        "failure",
        "fail",
        "unmet",
        "retry_exhausted",
        "maintain",
    ];
    // A word of which the model may not be sure is right when the word before it is.
    let certain = Verdict::new(word).certain();
    let word = certain.as_ref().map_or(word, Verdict::as_str);
    let own = match state.action_type {
        Some(ActionType::Board) => {
            let operation =
                state.action.as_ref().and_then(|text| board::OperationKind::parse(text.source().trim()));
            operation.map(board::OperationKind::verdicts)
        }
        Some(ActionType::HumanApproval) => Some(action::ANSWERS),
        Some(ActionType::Shell | ActionType::Prompt | ActionType::SlashCommand | ActionType::McpTool)
        | None => None,
    };
    let possible = match (own, &state.evaluate) {
        (Some(words), _) => Verdicts::only(words),
        (None, Some(evaluate)) => evaluate.verdicts(),
        (None, None) => Verdicts::only(&["yes", "no"]),
    };
    let Verdicts::Only(possible) = possible else { return None };
    let words = || possible.iter().map(AsRef::as_ref).chain(KNOWN);
    if words().any(|known| known == word) {
        return None;
    }
    let of_others =
        // Only where the state can give our word, or else the advice would name a verdict that never comes.
        OF_OTHERS.iter().find(|(other, meant)| *other == word && possible.iter().any(|one| one == meant));
    of_others.map(|(_, meant)| *meant).or_else(|| nearest(word, words())).map(str::to_owned)
}

/// Words of other programs for a verdict, and ours.
const OF_OTHERS: [(&str, &str); 16] = [
    ("ok", "yes"),
    ("okay", "yes"),
    ("passed", "yes"),
    ("succeeded", "yes"),
    ("clean", "yes"),
    ("green", "yes"),
    ("done", "yes"),
    ("zero", "yes"),
    ("ko", "no"),
    ("nok", "no"),
    ("failed", "no"),
    ("fails", "no"),
    ("dirty", "no"),
    ("red", "no"),
    ("nonzero", "no"),
    ("else", "no"),
];

/// Tells what a terminal means by the words in its name.
fn inferred_meaning(name: &StateName) -> Meaning {
    const FAILURE: [&str; 18] = [
        "fail",
        "failed",
        "failing",
        "failure",
        "error",
        "errors",
        "errored",
        "abort",
        "aborted",
        "rejected",
        "broken",
        "crash",
        "crashed",
        "cancelled",
        "stuck",
        "exhausted",
        "denied",
        // Two words to those who write it, and one to those who read it.
        "timed out",
    ];
    const BLOCKED: [&str; 3] = ["blocked", "escalate", "escalated"];
    let lower = name.as_str().to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let pairs: Vec<String> = words.windows(2).map(|pair| pair.join(" ")).collect();
    let is_there = |known: &&str| words.contains(known) || pairs.iter().any(|pair| pair == known);
    let has = |known: &[&str]| known.iter().any(is_there);
    match (has(&FAILURE), has(&BLOCKED)) {
        (true, _) => Meaning::Failure,
        (false, true) => Meaning::Blocked,
        (false, false) => Meaning::Success,
    }
}

/// Tells whether a state asks an agent.
fn is_prompt(state: &State) -> bool {
    match state.action.as_ref().map(|text| kind(state, text)) {
        Some(ActionType::Prompt | ActionType::SlashCommand) => true,
        Some(ActionType::Shell | ActionType::McpTool | ActionType::Board | ActionType::HumanApproval)
        | None => false,
    }
}

/// Returns the keys that say something about an action of this kind and not about one of every other kind.
fn own_keys(kind: ActionType) -> &'static [&'static str] {
    match kind {
        ActionType::Shell => &["env", "shell"],
        ActionType::Prompt | ActionType::SlashCommand => {
            &["agent", "tools", "model", "context", "fallback_model", "answer", "session", "env"]
        }
        ActionType::McpTool => &["params", "env"],
        ActionType::Board => &["params"],
        ActionType::HumanApproval => &[],
    }
}

/// Tells what an action is, by what the state says or by the text.
fn kind(state: &State, text: &Template) -> ActionType {
    state.action_type.unwrap_or_else(|| ActionType::inferred(text.source()))
}

/// Returns what a loop says of its judges. Keys of the predecessor count where there is no `judges`. Where agents plan the
/// work and test it, the tests that they add have to prove something unless the loop says otherwise.
fn judges(definition: &Loop) -> Declared {
    let mut declared = definition.judges.clone().unwrap_or_else(|| of_predecessor(definition));
    let is_by_agents = definition.paradigm == Some(Paradigm::Agents);
    declared.rules.prove_added = declared.rules.prove_added.or(is_by_agents.then_some(true));
    declared
}

fn of_predecessor(definition: &Loop) -> Declared {
    let mut declared = Declared::default();
    match definition.tamper_guard {
        Some(TamperGuard::Warn | TamperGuard::Allow | TamperGuard::Off) => {
            declared.rules.may = MayChange::Change;
            declared.rules.suppressions = OnSuppression::Report;
        }
        Some(TamperGuard::Revert | TamperGuard::Fail) | None => {}
    }
    declared.rules.prove_added =
        definition.prepatch_check.map(|check| matches!(check, PrepatchCheck::Fail | PrepatchCheck::Warn));
    declared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_terminal_says_what_it_means() {
        for (name, expected) in [
            ("done", Meaning::Success),
            ("failed", Meaning::Failure),
            ("build_failed", Meaning::Failure),
            ("build-error-2", Meaning::Failure),
            ("failsafe", Meaning::Success),
            ("escalate", Meaning::Blocked),
            ("notify_fail", Meaning::Failure),
            ("too_many_errors", Meaning::Failure),
            ("tests-failing", Meaning::Failure),
            ("broken", Meaning::Failure),
            ("crash", Meaning::Failure),
            ("it_crashed", Meaning::Failure),
            ("timed_out", Meaning::Failure),
            ("build-timed-out", Meaning::Failure),
            ("TIMED__OUT", Meaning::Failure),
            ("cancelled", Meaning::Failure),
            ("got_stuck", Meaning::Failure),
            ("exhausted", Meaning::Failure),
            ("denied", Meaning::Failure),
            ("timed", Meaning::Success),
            ("out_timed", Meaning::Success),
            ("opt_out", Meaning::Success),
            ("unbroken", Meaning::Success),
            ("inexhaustible", Meaning::Success),
        ] {
            assert_eq!(inferred_meaning(&StateName::parse(name).unwrap()), expected, "{name}");
        }
    }

    #[test]
    fn prompts_and_tools_have_a_usual_time_and_command_lines_that_of_the_run() {
        let timeouts = |top: &str, state: &str| {
            let text = format!(
                "name: main\n{top}\ninitial: a\nstates:\n  a: {{{state}, next: done}}\n  done: {{terminal: true, {state}}}\n"
            );
            let loaded = crate::definition::load::decode("f", &text, String::new());
            let machine = compile(&loaded.map_err(|it| it.findings).unwrap().definition).0.unwrap();
            let timeout =
                |action: Option<&Action>| action.and_then(Action::timeout).map(|time| time.as_secs());
            let (step, end) = (machine.step(StepId(0)), machine.end(EndId(0)));
            (timeout(step.action.as_ref()), timeout(end.closing.as_ref()))
        };
        for (action, usual) in [
            ("action: make", None),
            ("action: Do it., action_type: prompt", Some(3600)),
            ("action: /do it", Some(3600)),
            ("action: a/b, action_type: mcp_tool", Some(30)),
        ] {
            // What a terminal does is bounded by the minute that all of them have.
            assert_eq!(timeouts("", action), (usual, None), "{action}");
            assert_eq!(timeouts("default_timeout: 7", action), (Some(7), Some(7)), "{action}");
            assert_eq!(timeouts("", &format!("{action}, timeout: 5")), (Some(5), Some(5)), "{action}");
        }
    }
}
