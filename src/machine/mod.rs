//! A loop compiled and checked: every name resolved, every place a state can lead to known to exist.
//!
//! Nothing downstream knows which dialect a file was written in, and nothing downstream meets a dangling name.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

use crate::base::name::{LoopName, StateName, VarName};
use crate::base::sandbox::SandboxRules;
use crate::base::template::Template;
use crate::base::text::one_line;
use crate::board;
use crate::definition::schema::Parameter;
pub use crate::definition::schema::{BrokerUse, NotifyShape, OnChange, OnHandoff, Phase, Reuse, SignalKind};
use crate::evaluate::Evaluate;
use crate::evaluate::field::Field;
use crate::evaluate::verdict::{Observes, Verdict};
use crate::judges::declared::Declared;

pub mod abilities;
pub(crate) mod action;
pub mod answerers;
mod asking_states;
pub mod check;
mod checks_alone;
pub mod compile;
pub mod early;
pub mod explore;
pub mod graph;
pub mod known_checks;
pub mod most_calls;
pub mod notified;
pub mod observations;
pub mod provided;
pub mod reusable;
pub mod routing;
pub mod run_variables;

pub use action::{
    Action, ActionSetting, ApprovalAction, Approvers, Binding, BoardAction, JudgedBy, LearningAction, Params,
    PromptAction, ShellAction, SubLoopAction, SubLoopInput, ToolAction,
};
pub use notified::{NotifyRule, NotifyTarget};

/// A file that a run copies into the working tree at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// The file, below the directory of the run.
    pub from: Template,
    /// Where it is copied to, below the working tree.
    pub to: Option<Template>,
    /// The terminals at which it is copied; all that are not failures, when empty.
    pub on: Vec<StateName>,
    /// Whether it is a template, which is not copied.
    pub is_template: bool,
}

/// A step, as an index into its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(usize);

/// An end, as an index into its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndId(usize);

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// To more work.
    Step(StepId),
    /// To an end of the run.
    End(EndId),
}

/// A loop, ready to run.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the loop about something else")]
pub struct Machine {
    /// The loop's name.
    pub name: LoopName,
    /// What it is for.
    pub description: Option<String>,
    /// Where a run starts.
    pub initial: Target,
    /// Its caps.
    pub limits: LoopLimits,
    /// The variables as written, with templates in their texts.
    pub context: IndexMap<VarName, Value>,
    /// The typed inputs.
    pub parameters: IndexMap<VarName, Parameter>,
    /// The variable that takes the positional input.
    pub input_key: VarName,
    /// Variables that must not be empty at the start.
    pub required_inputs: Vec<VarName>,
    /// The environment of every action.
    pub env: IndexMap<String, Template>,
    /// Whether, and after which wait, the loop starts again after an end.
    pub maintain: Option<Maintain>,
    /// Routes for verdicts that a state has no route for.
    pub fallback: Fallback,
    /// When visits of a state that change nothing are a stall.
    pub stall: Option<Stall>,
    /// How models are asked.
    pub llm: Llm,
    /// What models may cost.
    pub budget: Budget,
    /// Which signals in the output of actions count.
    pub signals: Vec<SignalKind>,
    /// What happens at a hand-off signal.
    pub on_handoff: OnHandoff,
    /// Whether hosts heed the settings of the repository.
    pub heeds_project: bool,
    /// Who holds the key of the service that agents ask, where the loop says so.
    pub broker: Option<BrokerUse>,
    /// Whether what actions leave running stays when the run has ended.
    pub leaves_running: bool,
    /// Whether a run may succeed that changed tracked files, where the loop says so.
    pub on_change: Option<OnChange>,
    /// What the loop says of its judges.
    pub judges: Declared,
    /// Whether checks whose verdict fell on another tree are run once more before a success.
    pub makes_closing_pass: bool,
    /// What its checks read, where its results stand for later runs.
    pub reuse: Option<Reuse>,
    /// How actions are confined, where the loop says so for all of them.
    pub sandbox: Option<SandboxRules>,
    /// How often a run may hand off to a new session by itself.
    pub max_handoffs: u32,
    /// Who is told when the outcome of the loop changes.
    pub notify: Option<NotifyRule>,
    /// What a run copies into the working tree at its end.
    pub artifact: Option<Artifact>,
    /// The limits of the task board.
    pub board: board::Limits,
    /// Where an unfinished run is resumed; without it, in the state in which it stopped.
    pub on_resume: Option<Target>,
    /// Whether some target or count is made of the variables of a run.
    depends: bool,
    /// Stand for targets that are known only when a run begins. A machine that runs has none.
    undecided: BTreeSet<EndId>,
    steps: Vec<Step>,
    ends: Vec<End>,
    referred: BTreeSet<String>,
    /// The steps that may come again without another one acting in between.
    repeating: BTreeSet<StepId>,
}

/// How models are asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Llm {
    /// Whether the loop itself forbids it.
    pub is_forbidden: bool,
    /// The model of judges that name none.
    pub model: Option<Template>,
    /// The longest answer of a judge, in tokens.
    pub max_tokens: Option<u32>,
    /// The longest time for a call.
    pub timeout: Option<Duration>,
    /// What models cost, by name, in place of what is known of them.
    pub prices: BTreeMap<String, TokenPrice>,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPrice {
    /// Tokens that it reads.
    pub input: f64,
    /// Tokens that it writes.
    pub output: f64,
}

/// What models may cost. Nothing is capped that has no number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Calls.
    pub calls: Option<u32>,
    /// Whether calls without a known price may be made although their cost is capped.
    pub allows_unpriced: bool,
}

impl Budget {
    /// Tells whether anything is capped.
    pub fn is_cap(&self) -> bool {
        self.cost_usd.is_some() || self.tokens.is_some() || self.calls.is_some()
    }
}

/// Starting again after an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Maintain {
    /// The wait before it.
    pub delay: Duration,
}

/// When visits of a state that change nothing are a stall, and what is done about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// How many visits in a row.
    pub window: u32,
    /// Where to go once; without it, and the second time, the run ends.
    pub to: Option<Target>,
}

/// What a run may take at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopLimits {
    /// Passes.
    pub iterations: Cap,
    /// State executions.
    pub steps: Option<Cap>,
    /// Rounds of a maintain loop. The last one ends like a loop that does not start again.
    pub cycles: Option<u32>,
    /// Uses of one way from state to state.
    pub edge_revisits: Option<u32>,
    /// Time for the whole run.
    pub timeout: Option<Duration>,
    /// The wait before work is entered again.
    pub backoff: Option<Duration>,
}

/// A number that may not be exceeded, and where to go once when it would be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cap {
    /// The number.
    pub limit: u32,
    /// What runs once when it is met.
    pub handler: Option<Target>,
}

/// Loop-level routes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_field_names, reason = "fields are named like the keys of a file")]
pub struct Fallback {
    /// For errors.
    pub on_error: Option<Target>,
    /// For timeouts.
    pub on_timeout: Option<Target>,
    /// For `blocked`.
    pub on_blocked: Option<Target>,
}

/// A state that does something.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its name.
    pub name: StateName,
    /// What it is for.
    pub description: Option<String>,
    /// Who does its work.
    pub role: Option<VarName>,
    /// Which call it makes for the task board.
    pub phase: Option<Phase>,
    /// What it runs.
    pub action: Option<Action>,
    /// How the result is judged; absent for an unconditional `next` and for a state with nothing to judge.
    pub evaluate: Option<Evaluate>,
    /// Where verdicts lead.
    pub routes: Routes,
    /// The name under which its result is stored besides its own.
    pub capture: Option<VarName>,
    /// Text for the message log.
    pub message: Option<Template>,
    /// How often it may be entered again in a row.
    pub retry: Option<Retry>,
    /// How often in a row it has to pass before it is left.
    pub repeat: Option<u32>,
    /// How often it is made again where it fails and is known to waver.
    pub flaky: Option<FlakyRule>,
    /// Whether its work may be done twice where it should be done once.
    pub is_idempotent: bool,
    /// Whether its observation may be made again without harm.
    pub is_check: bool,
    /// What `${param.…}` stands for in its texts.
    pub params: IndexMap<VarName, Field<Value>>,
    /// Where it leads for reasons that do not come up in a run. Whoever wrote that meant those states to be there.
    pub unused: Vec<Target>,
}

/// How often a check is made again that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlakyRule {
    /// The most times.
    pub again: u32,
    /// Whether it need not be known to waver.
    pub always: bool,
}

/// A bound on consecutive entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Entries after the first one.
    pub max: u32,
    /// Where to go when they are used up.
    pub exhausted: Target,
    /// The codes that are worth another try; empty means every one.
    pub codes: Vec<i32>,
    /// The wait before the first of them; it doubles with each further one.
    pub delay: Duration,
}

/// Where the verdicts of a state lead. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub enum Routes {
    /// The same way whatever happened, but for an action that failed.
    Always {
        /// The way.
        next: Target,
        /// The way after a failing action.
        on_error: Option<Target>,
        /// The way after an action that took too long.
        on_timeout: Option<Target>,
        /// The way if a model is needed but may not be asked.
        on_blocked: Option<Target>,
    },
    /// By verdict.
    ByVerdict {
        /// Each verdict's way.
        table: BTreeMap<Verdict, Target>,
        /// The way of errors that the table does not name: `_error`.
        error: Option<Target>,
        /// The way of every other verdict: `_`.
        otherwise: Option<Target>,
    },
}

impl Routes {
    /// Returns every way out with the word that people know it by.
    pub fn ways(&self) -> Vec<(String, Target)> {
        match self {
            Self::Always { next, on_error, on_timeout, on_blocked } => {
                let named =
                    |word: &str, target: &Option<Target>| target.map(|target| (word.to_owned(), target));
                std::iter::once(("next".to_owned(), *next))
                    .chain(named("error", on_error))
                    .chain(named("timeout", on_timeout))
                    .chain(named("blocked", on_blocked))
                    .collect()
            }
            Self::ByVerdict { table, error, otherwise } => {
                let table = table.iter().map(|(verdict, target)| (verdict.to_string(), *target));
                let error = error.map(|target| ("_error".to_owned(), target));
                let otherwise = otherwise.map(|target| ("_".to_owned(), target));
                table.chain(error).chain(otherwise).collect()
            }
        }
    }
}

/// A state in which a run ends.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Its name.
    pub name: StateName,
    /// What it is for.
    pub description: Option<String>,
    /// What ending here means.
    pub meaning: Meaning,
    /// Runs once before the end and changes nothing.
    pub closing: Option<Action>,
    /// Where a maintain loop starts again.
    pub on_maintain: Option<Target>,
    /// Whether what it runs may be run twice.
    pub is_idempotent: bool,
}

/// What ending in a terminal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The work is done, as far as it was verified.
    Success,
    /// The author said that ending here is a success, verified or not.
    DeclaredSuccess,
    /// The work failed.
    Failure,
    /// A person is needed.
    Blocked,
}

impl End {
    /// Returns what stands for a target that is known only when a run begins.
    fn open(made: &str) -> Self {
        // Braces in the name would be read as a template where it is printed.
        let name = one_line(&made.replace("${", "‹").replace('}', "›"), 60);
        let unnamed = || StateName::parse("‹open›").expect("it is a name");
        Self {
            name: StateName::parse(&name).unwrap_or_else(|_| unnamed()),
            description: None,
            // Declared, so that no rule complains about an end that may turn out to be anything.
            meaning: Meaning::DeclaredSuccess,
            closing: None,
            on_maintain: None,
            is_idempotent: false,
        }
    }
}

impl Machine {
    /// Tells whether a step may come again without another one acting in between.
    pub fn repeats(&self, id: StepId) -> bool {
        self.repeating.contains(&id)
    }

    /// Tells whether another context may make another machine.
    pub fn depends_on_context(&self) -> bool {
        self.depends
    }

    /// Tells whether every target is known.
    pub fn is_decided(&self) -> bool {
        self.undecided.is_empty()
    }

    /// Returns a step.
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0]
    }

    /// Returns an end.
    pub fn end(&self, id: EndId) -> &End {
        &self.ends[id.0]
    }

    /// Returns the name of what a target is.
    pub fn name_of(&self, target: Target) -> &StateName {
        match target {
            Target::Step(id) => &self.step(id).name,
            Target::End(id) => &self.end(id).name,
        }
    }

    /// Returns every step in the order of the file.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = (StepId, &Step)> {
        self.steps.iter().enumerate().map(|(index, step)| (StepId(index), step))
    }

    /// Returns every end in the order of the file.
    pub fn ends(&self) -> impl ExactSizeIterator<Item = (EndId, &End)> {
        self.ends.iter().enumerate().map(|(index, end)| (EndId(index), end))
    }

    /// Finds a state by its name.
    pub fn find(&self, name: &StateName) -> Option<Target> {
        let step = self.steps().find(|(_, step)| step.name == *name).map(|(id, _)| Target::Step(id));
        step.or_else(|| self.ends().find(|(_, end)| end.name == *name).map(|(id, _)| Target::End(id)))
    }

    /// Tells whether the loop works on a task board.
    pub fn has_board(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Some(Action::Board(_))))
    }

    /// Tells whether some template of the loop names this capture or state under `captured`.
    pub fn refers_to(&self, name: &str) -> bool {
        self.referred.contains(name)
    }

    /// Returns every template of the loop, with its state and key; loop-wide ones have no state.
    pub fn templates(&self) -> Vec<(Option<&StateName>, String, &Template)> {
        let env = self.env.iter().map(|(name, template)| (None, format!("env.{name}"), template));
        let model = self.llm.model.iter().map(|model| (None, "llm.model".to_owned(), model));
        let steps = self
            .steps
            .iter()
            .flat_map(|step| step.templates().into_iter().map(|(key, t)| (Some(&step.name), key, t)));
        let ends = self.ends.iter().flat_map(|end| {
            let closing = end.closing.iter().flat_map(Action::templates);
            closing.map(|(key, template)| (Some(&end.name), key, template))
        });
        let artifact = self.artifact.iter().flat_map(|artifact| {
            let to = artifact.to.iter().map(|to| (None, "artifact_output.to".to_owned(), to));
            std::iter::once((None, "artifact_output.from".to_owned(), &artifact.from)).chain(to)
        });
        env.chain(model).chain(artifact).chain(steps).chain(ends).collect()
    }
}

/// A call of an agent, by who is asked for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCall<'s> {
    /// Who is asked.
    pub role: &'s str,
    /// What for.
    pub phase: Phase,
}

impl Step {
    /// Returns the call of an agent that this state makes for planned work; none for any other prompt.
    pub fn call(&self) -> Option<AgentCall<'_>> {
        let is_prompt = matches!(self.action, Some(Action::Prompt(_)));
        // A command that tests has a role and a phase as well, and asks no agent.
        let role = self.role.as_ref().filter(|_| is_prompt)?;
        Some(AgentCall { role: role.as_str(), phase: self.phase? })
    }

    /// Tells whether this state cannot do its work without a model.
    pub fn needs_model(&self) -> bool {
        let judged = self.evaluate.as_ref().is_some_and(|evaluate| evaluate.asks());
        judged || self.action.as_ref().is_some_and(Action::asks_agent)
    }

    /// Tells whether an agent or a model may be asked in this state, also where it could do without.
    pub fn can_ask(&self) -> bool {
        self.needs_model() || self.action.as_ref().is_some_and(Action::can_ask_agent)
    }

    /// Returns what a verdict of this state says about the work. The success of a sub-loop says something only when
    /// something passed in it.
    pub fn observes(&self, verdict: &Verdict) -> Observes {
        let unless_failing = |said| if verdict.is_failing() { Observes::Failing } else { said };
        match &self.action {
            Some(Action::SubLoop(_)) => unless_failing(Observes::Passing),
            // The board answers for itself: its word is about the plan, unless it could not do what it was asked.
            Some(Action::Board(_)) if !verdict.is_error() => Observes::Nothing,
            Some(Action::Board(_)) => unless_failing(Observes::Nothing),
            Some(Action::Approval(_) | Action::Learning(_)) => verdict.observes(),
            Some(Action::Shell(_) | Action::Prompt(_) | Action::Tool(_)) | None => match &self.evaluate {
                None => unless_failing(Observes::Nothing),
                Some(evaluate) => evaluate.observes(verdict, self.action.is_some()),
            },
        }
    }

    fn templates(&self) -> Vec<(String, &Template)> {
        let action = self.action.iter().flat_map(Action::templates);
        let evaluate = self.evaluate.iter().flat_map(|evaluate| evaluate.templates());
        let evaluate = evaluate.map(|(key, template)| (format!("evaluate.{key}"), template));
        let message = self.message.iter().map(|message| ("append_to_messages".to_owned(), message));
        let params = self.params.iter().filter_map(|(name, value)| {
            value.as_template().map(|template| (format!("param.{name}"), template))
        });
        action.chain(evaluate).chain(message).chain(params).collect()
    }
}
