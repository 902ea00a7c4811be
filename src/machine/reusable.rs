//! Which loops may be reused: those whose checks come to the same wherever they find the same. An agent, a person or a server
//! may answer otherwise the next time, so a loop that asks one is refused.

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::name::StateName;
use crate::base::path::{DocPath, Segment};
use crate::base::sandbox::{SandboxEngine, SandboxRules};
use crate::base::template::{Expression, Namespace, Template};
use crate::base::text::one_line;
use crate::evaluate::Evaluate;
use crate::machine::{Action, Machine};

/// What keeps a loop from being reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The state.
    pub state: StateName,
    /// What it does, after its name.
    pub does: &'static str,
}

/// Returns what keeps a loop from being reused, if something does. What the loops do that it runs is asked of them.
pub fn obstacle(machine: &Machine) -> Option<Obstacle> {
    let of_steps =
        machine.steps().map(|(_, step)| (&step.name, step.action.as_ref(), step.evaluate.as_ref()));
    let of_ends = machine.ends().map(|(_, end)| (&end.name, end.closing.as_ref(), None));
    of_steps.chain(of_ends).find_map(|(state, action, evaluate)| {
        let does = action.and_then(by_action).or_else(|| evaluate.and_then(by_evaluator))?;
        Some(Obstacle { state: state.clone(), does })
    })
}

fn by_action(action: &Action) -> Option<&'static str> {
    match action {
        Action::Prompt(_) | Action::Learning(_) => Some("asks an agent"),
        Action::Tool(_) => Some("calls a tool of a server"),
        Action::Approval(_) => Some("asks a person, whose answer is for one commit"),
        Action::Board(_) => Some("plans its own work"),
        Action::Shell(_) | Action::SubLoop(_) => None,
    }
}

fn by_evaluator(evaluate: &Evaluate) -> Option<&'static str> {
    if evaluate.asks() {
        return Some("is judged by a model");
    }
    matches!(evaluate, Evaluate::Criteria(_)).then_some("reads the state of a piece of work")
}

/// Refuses a loop that cannot be reused, and what is made of values that are not known before a run.
pub fn check(machine: &Machine, problems: &mut Diagnostics) {
    let Some(reuse) = &machine.reuse else { return };
    let path = DocPath::root().key("reuse");
    if let Some(Obstacle { state, does }) = obstacle(machine) {
        let message = format!("the loop cannot be reused: `{state}` {does}");
        let help = "leave `reuse` out, or move the checks into a loop of their own";
        let place = FindingPlace::Value(DocPath::root().key("states").key(state.as_str()));
        let finding = Diagnostic::error("reuse", FindingPlace::Key(path.clone()), message).help(help);
        problems.push(finding.related(place, "this state"));
    }
    if reuse.inputs.is_empty() {
        let message = "without inputs, every run would be the same as the first one";
        let help = "name the files that the checks read: `inputs: [src/, tests/, pyproject.toml]`";
        let place = FindingPlace::Value(path.key("inputs"));
        problems.push(Diagnostic::error("reuse", place, message).help(help));
    }
    known_before(machine, &reuse.inputs, &path.key("inputs"), problems);
    known_before(machine, &reuse.tools, &path.key("tools"), problems);
    if reuse.hermetic && !is_hermetic(machine) {
        let message = "`hermetic` hides files from every action, and not every action of this loop is in a sandbox that can";
        let help = "say `sandbox: workspace` or `strict` for the loop, with bubblewrap or a container, and nothing else in states and sub-loops";
        let place = FindingPlace::Key(path.key("hermetic"));
        problems.push(Diagnostic::error("reuse", place, message).help(help));
    }
    let is_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = reuse.env.iter().find(is_name) {
        let message = format!("`{}` is not a name of a variable", one_line(name, 60));
        problems.push(Diagnostic::error("reuse", FindingPlace::Value(path.key("env")), message));
    }
}

/// Tells whether every action of a loop is in a sandbox that can hide files. A loop that it runs may say otherwise.
fn is_hermetic(machine: &Machine) -> bool {
    let hides = |rules: &SandboxRules| {
        let is_able = match rules.engine {
            SandboxEngine::Auto | SandboxEngine::Bwrap | SandboxEngine::Container => true,
            SandboxEngine::Landlock | SandboxEngine::Host => false,
        };
        rules.confines() && is_able
    };
    let is_confined = |action: &Action| match action {
        Action::Shell(shell) => shell.setting.sandbox.as_ref().is_some_and(hides),
        Action::SubLoop(_) | Action::Prompt(_) | Action::Learning(_) | Action::Tool(_) => false,
        // They start no process that could read a file.
        Action::Board(_) | Action::Approval(_) => true,
    };
    let closing = machine.ends().filter_map(|(_, end)| end.closing.as_ref());
    let actions = machine.steps().filter_map(|(_, step)| step.action.as_ref()).chain(closing);
    machine.sandbox.as_ref().is_some_and(hides) && actions.into_iter().all(is_confined)
}

/// Refuses templates that are made of what is not known before a run.
fn known_before(machine: &Machine, templates: &[Template], path: &DocPath, problems: &mut Diagnostics) {
    for (at, template) in templates.iter().enumerate() {
        let unknown = template.expressions().find(|expression| !is_known_before(machine, expression));
        if let Some(expression) = unknown {
            let place = FindingPlace::Within(path.index(at), expression.span.clone());
            let message = format!("`${{{expression}}}` is not known before a run");
            let help = "inputs and tools can be made of `${context.…}` and of `${param.…}`";
            problems.push(Diagnostic::error("reuse", place, message).help(help));
        }
    }
}

fn is_known_before(machine: &Machine, expression: &Expression) -> bool {
    let first = match expression.path.first() {
        Some(Segment::Key(name)) => name.as_str(),
        Some(Segment::Index(_)) | None => return false,
    };
    match expression.namespace {
        Namespace::Context => true,
        Namespace::Param => machine.parameters.keys().any(|name| name.as_str() == first),
        Namespace::Captured
        | Namespace::Prev
        | Namespace::Result
        | Namespace::State
        | Namespace::Loop
        | Namespace::Env
        | Namespace::Messages
        | Namespace::Criteria
        | Namespace::Board => false,
    }
}
