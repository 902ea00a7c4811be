//! What a state runs, as data. The layer `run` performs it.

use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::name::VarName;
use crate::base::sandbox::{SandboxMode, SandboxRules};
use crate::base::template::{RenderError, Template};
use crate::board;
use crate::evaluate::form::AnswerForm;
use crate::evaluate::observation::Observation;
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Answered, Evaluate, ExitCode, LlmStructured, McpResult};

/// What a state runs: data only.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A command line.
    Shell(ShellAction),
    /// Another loop.
    SubLoop(SubLoopAction),
    /// A prompt for an agent.
    Prompt(Box<PromptAction>),
    /// A call of an MCP tool.
    Tool(ToolAction),
    /// An operation on the task board.
    Board(BoardAction),
    /// A question for a person.
    Approval(ApprovalAction),
    /// A look at what is known, with an agent that finds out the rest.
    Learning(LearningAction),
}

/// Where and how long an action runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionSetting {
    /// Environment beyond the loop's.
    pub env: IndexMap<String, Template>,
    /// The directory, relative to the run's.
    pub cwd: Option<Template>,
    /// The longest time.
    pub timeout: Option<Duration>,
    /// The longest silence.
    pub idle_timeout: Option<Duration>,
    /// How it is confined, where the state or its loop says so.
    pub sandbox: Option<SandboxRules>,
}

/// A command line and how it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ShellAction {
    /// The text.
    pub text: Template,
    /// The words before the text, such as `bash -c`.
    pub shell: Vec<String>,
    /// Where and how long it runs.
    pub setting: ActionSetting,
}

/// A prompt and who takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptAction {
    /// The text.
    pub text: Template,
    /// Values that are shown below the text.
    pub context: IndexMap<VarName, Template>,
    /// The agent of the host.
    pub agent: Option<Template>,
    /// The tools that may be used; the host's own choice when empty.
    pub tools: Vec<String>,
    /// What the agent may change, where the loop says so.
    pub sandbox: Option<SandboxMode>,
    /// The model.
    pub model: Option<Template>,
    /// The model in its place where that one cannot be asked, and for a call that is made again.
    pub fallback_model: Option<Template>,
    /// The form that the answer has to have.
    pub answer: Option<AnswerForm>,
    /// The conversation that it belongs to.
    pub session: Option<Template>,
    /// Where and how long it runs.
    pub setting: ActionSetting,
}

/// A call of an MCP tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAction {
    /// The server and its tool, with a slash between them.
    pub tool: Template,
    /// The arguments.
    pub params: IndexMap<String, Params>,
    /// Where and how long it runs.
    pub setting: ActionSetting,
}

/// An operation on the task board.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardAction {
    /// Which operation, as it was written.
    pub text: Template,
    /// Which operation.
    pub kind: board::OperationKind,
    /// Its parameters.
    pub params: IndexMap<String, Template>,
}

/// A question for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalAction {
    /// What is shown.
    pub text: Template,
    /// How long an answer is waited for at a terminal.
    pub setting: ActionSetting,
    /// How long the question stays open elsewhere, where the state says so.
    pub stays_open: Option<Duration>,
    /// Who may answer it elsewhere, where the loop says so.
    pub approvers: Option<Approvers>,
}

/// Who may answer a question, by the names of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvers {
    /// Accounts.
    pub users: Vec<String>,
    /// Teams: `ORGANISATION/TEAM`.
    pub teams: Vec<String>,
    /// How many different people have to approve.
    pub min: u32,
    /// Whether neither the author of the change nor whoever started the run may.
    pub not_author: bool,
}

impl Approvers {
    /// Tells whether it names somebody: otherwise, whoever has write access may answer.
    pub fn names_somebody(&self) -> bool {
        !(self.users.is_empty() && self.teams.is_empty())
    }

    /// Tells whether an account is one of those it names.
    pub fn names_user(&self, account: &str) -> bool {
        self.users.iter().any(|user| user.eq_ignore_ascii_case(account))
    }
}

/// What has to be known before the run goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningAction {
    /// What people see.
    pub shown: Template,
    /// What has to be known.
    pub targets: Vec<Template>,
    /// The same as one text, with commas between them.
    pub listed: Option<Template>,
    /// How often an agent is asked about each.
    pub tries: u32,
    /// The same as a template.
    pub tries_by: Option<Template>,
    /// Where and how long the agent works.
    pub setting: ActionSetting,
}

/// A value whose texts are templates, at every depth.
#[derive(Clone, Debug, PartialEq)]
pub enum Params {
    /// A text.
    Text(Template),
    /// A number, a truth value or nothing.
    Plain(Value),
    /// A list.
    List(Vec<Self>),
    /// A mapping.
    Map(IndexMap<String, Self>),
}

/// Who says what the end of an action means.
#[derive(Clone, Debug, PartialEq)]
pub enum JudgedBy {
    /// An evaluator: this one, where the state names none.
    Evaluator(Box<Evaluate>),
    /// The action itself, with one of these words. An `evaluate` beside it has nothing to judge.
    Itself(&'static [&'static str]),
}

/// How a sub-loop ends for the state that runs it.
const ENDS_OF_SUB_LOOPS: &[&str] = &["success", "failure", "blocked"];

/// What a person can say.
pub(super) const ANSWERS: &[&str] = &["yes", "no", "edit"];

/// Whether everything is known.
const KNOWLEDGE: &[&str] = &["yes", "blocked"];

/// What the kinds of actions have in common and what they have not: every question names every kind, so that
/// another one is asked all of them.
impl Action {
    /// Returns who says what its end means.
    pub fn judged_by(&self) -> JudgedBy {
        let evaluator = |evaluate| JudgedBy::Evaluator(Box::new(evaluate));
        match self {
            Self::Shell(_) => evaluator(Evaluate::ExitCode(ExitCode::unix())),
            Self::Prompt(prompt) if prompt.answer.is_some() => {
                evaluator(Evaluate::Answer(Answered::standard()))
            }
            Self::Prompt(_) => evaluator(Evaluate::LlmStructured(LlmStructured::standard())),
            Self::Tool(_) => evaluator(Evaluate::McpResult(McpResult { source: None })),
            Self::SubLoop(_) => JudgedBy::Itself(ENDS_OF_SUB_LOOPS),
            Self::Board(board) => JudgedBy::Itself(board.kind.verdicts()),
            Self::Approval(_) => JudgedBy::Itself(ANSWERS),
            Self::Learning(_) => JudgedBy::Itself(KNOWLEDGE),
        }
    }

    /// Returns the verdict that it came to itself with this end, and the word for that in events.
    pub fn decided(&self, seen: &Observation) -> Option<(&'static str, Verdict)> {
        // A person who edits the text leaves the new one as output, and one who approves leaves none.
        let is_edited = !seen.stdout.without_line_end().is_empty();
        match self {
            Self::Approval(_) => Some((
                "human_approval",
                Verdict::new(match (seen.exit_code, is_edited) {
                    (0, false) => "yes",
                    (0, true) => "edit",
                    _ => "no",
                }),
            )),
            Self::Learning(_) => Some((
                "learning",
                if seen.exit_code == 0 { Verdict::yes_if(true) } else { Verdict::blocked() },
            )),
            Self::Shell(_) | Self::Prompt(_) | Self::Tool(_) | Self::SubLoop(_) | Self::Board(_) => None,
        }
    }

    /// Returns the verdict whose route one of its own verdicts takes that has none.
    pub fn alias(&self, verdict: &str) -> Option<&'static str> {
        match (self, verdict) {
            (Self::Approval(_), "edit") => Some("yes"),
            // A question that is not answered in time was not approved.
            (Self::Approval(_), "timeout") | (Self::Learning(_), "blocked") => Some("no"),
            (
                Self::Approval(_)
                | Self::Learning(_)
                | Self::Shell(_)
                | Self::Prompt(_)
                | Self::Tool(_)
                | Self::SubLoop(_)
                | Self::Board(_),
                _,
            ) => None,
        }
    }

    /// Tells whether an agent may be asked meanwhile, by an action that does without one if need be.
    pub fn can_ask_agent(&self) -> bool {
        match self {
            Self::Prompt(_) | Self::Learning(_) => true,
            Self::Shell(_) | Self::Tool(_) | Self::SubLoop(_) | Self::Board(_) | Self::Approval(_) => false,
        }
    }

    /// Tells whether an agent does it.
    pub fn asks_agent(&self) -> bool {
        match self {
            Self::Prompt(_) => true,
            Self::Shell(_)
            | Self::Tool(_)
            | Self::SubLoop(_)
            | Self::Board(_)
            | Self::Approval(_)
            | Self::Learning(_) => false,
        }
    }

    /// Tells whether a terminal may do it before the run ends. A sub-loop could end in ways that lead elsewhere.
    pub fn can_close(&self) -> bool {
        match self {
            Self::Shell(_) | Self::Prompt(_) | Self::Tool(_) | Self::Board(_) => true,
            Self::SubLoop(_) | Self::Approval(_) | Self::Learning(_) => false,
        }
    }

    /// Returns the other loop that it runs, where it runs one.
    pub fn sub_loop(&self) -> Option<&SubLoopAction> {
        match self {
            Self::SubLoop(sub) => Some(sub),
            Self::Shell(_)
            | Self::Prompt(_)
            | Self::Tool(_)
            | Self::Board(_)
            | Self::Approval(_)
            | Self::Learning(_) => None,
        }
    }

    /// Returns what its verdicts come from where no evaluator judges it, for messages.
    pub fn verdicts_of(&self) -> Option<&'static str> {
        match self {
            Self::Board(board) => Some(board.kind.word()),
            Self::Approval(_) => Some("human_approval"),
            Self::Learning(_) => Some("learning"),
            Self::Shell(_) | Self::Prompt(_) | Self::Tool(_) | Self::SubLoop(_) => None,
        }
    }

    /// Returns the form that its answer has to have, if it asks for one.
    pub fn form(&self) -> Option<&AnswerForm> {
        match self {
            Self::Prompt(prompt) => prompt.answer.as_ref(),
            Self::Shell(_)
            | Self::Tool(_)
            | Self::SubLoop(_)
            | Self::Board(_)
            | Self::Approval(_)
            | Self::Learning(_) => None,
        }
    }

    /// Returns the key of a state that says it.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Shell(_) | Self::Prompt(_) | Self::Tool(_) | Self::Board(_) | Self::Approval(_) => "action",
            Self::SubLoop(_) => "loop",
            Self::Learning(_) => "learning",
        }
    }

    /// Bounds it by the time that is usual for its kind, where nothing else does. A command line has the whole run.
    #[must_use]
    pub fn within_standard_time(mut self) -> Self {
        // An agent or a server that hangs would otherwise hold a job until its deadline.
        let (setting, usual) = match &mut self {
            Self::Prompt(prompt) => (&mut prompt.setting, Duration::from_hours(1)),
            Self::Tool(tool) => (&mut tool.setting, Duration::from_secs(30)),
            Self::Approval(approval) => (&mut approval.setting, Duration::from_mins(30)),
            Self::Learning(learning) => (&mut learning.setting, Duration::from_hours(1)),
            Self::Shell(_) | Self::SubLoop(_) | Self::Board(_) => return self,
        };
        setting.timeout.get_or_insert(usual);
        self
    }

    /// Returns the longest time that it may take, if it says so.
    pub fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Shell(shell) => shell.setting.timeout,
            Self::Prompt(prompt) => prompt.setting.timeout,
            Self::Tool(tool) => tool.setting.timeout,
            Self::SubLoop(sub) => sub.timeout,
            Self::Approval(approval) => approval.setting.timeout,
            Self::Learning(learning) => learning.setting.timeout,
            Self::Board(_) => None,
        }
    }
}

impl ActionSetting {
    fn templates(&self) -> impl Iterator<Item = (String, &Template)> {
        let env = self.env.iter().map(|(name, template)| (format!("env.{name}"), template));
        env.chain(self.cwd.iter().map(|cwd| ("cwd".to_owned(), cwd)))
    }
}

impl Params {
    /// Makes the value, with every text rendered.
    pub fn render(
        &self,
        render: &mut impl FnMut(&Template) -> Result<String, RenderError>,
    ) -> Result<Value, RenderError> {
        Ok(match self {
            Self::Text(text) => Value::String(render(text)?),
            Self::Plain(value) => value.clone(),
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.render(render)).collect::<Result<_, _>>()?)
            }
            Self::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), value.render(render)?)))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }

    fn templates<'p>(&'p self, key: &str, out: &mut Vec<(String, &'p Template)>) {
        match self {
            Self::Text(text) => out.push((key.to_owned(), text)),
            Self::Plain(_) => {}
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.templates(&format!("{key}.{index}"), out);
                }
            }
            Self::Map(entries) => {
                for (name, value) in entries {
                    value.templates(&format!("{key}.{name}"), out);
                }
            }
        }
    }
}

/// Another loop as the work of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLoopAction {
    /// Its name.
    pub name: Template,
    /// What it is given.
    pub given: SubLoopInput,
    /// The branch on which it works, in a worktree of its own; nothing where that is empty.
    pub worktree: Option<Template>,
    /// The longest time.
    pub timeout: Option<Duration>,
}

/// What a sub-loop is given.
#[derive(Clone, Debug, PartialEq)]
pub enum SubLoopInput {
    /// Nothing: it is on its own.
    Nothing,
    /// The context and the captures of the loop around it.
    Everything,
    /// Values for its parameters.
    Parameters(IndexMap<VarName, Binding>),
}

impl SubLoopInput {
    /// Tells whether the sub-loop sees the captures of the loop around it.
    pub fn sees_around(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing | Self::Parameters(_) => false,
        }
    }

    /// Tells whether the loop around it takes the captures of the sub-loop.
    pub fn gives_back(&self) -> bool {
        match self {
            Self::Everything | Self::Parameters(_) => true,
            Self::Nothing => false,
        }
    }
}

/// A value for a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// A text, resolved when the sub-loop starts.
    Text(Template),
    /// Anything else.
    Value(Value),
}

impl Action {
    /// Returns the text as it was written.
    pub fn text(&self) -> &Template {
        match self {
            Self::Shell(shell) => &shell.text,
            Self::SubLoop(sub) => &sub.name,
            Self::Prompt(prompt) => &prompt.text,
            Self::Tool(tool) => &tool.tool,
            Self::Board(board) => &board.text,
            Self::Approval(approval) => &approval.text,
            Self::Learning(learning) => &learning.shown,
        }
    }

    /// Tells whether its end can come too late.
    pub fn can_be_late(&self) -> bool {
        let setting = match self {
            Self::Shell(shell) => &shell.setting,
            Self::Prompt(prompt) => &prompt.setting,
            Self::Tool(tool) => &tool.setting,
            // `timeout` is one of the ways in which a sub-loop ends, and a person may always be late.
            Self::SubLoop(_) | Self::Approval(_) => return true,
            Self::Learning(learning) => &learning.setting,
            Self::Board(_) => return false,
        };
        setting.timeout.is_some() || setting.idle_timeout.is_some()
    }

    /// Returns every template in it, with its key.
    pub(super) fn templates(&self) -> Vec<(String, &Template)> {
        match self {
            Self::Shell(shell) => {
                let place = shell.setting.templates();
                std::iter::once(("action".to_owned(), &shell.text)).chain(place).collect()
            }
            Self::Prompt(prompt) => {
                let context =
                    prompt.context.iter().map(|(name, template)| (format!("context.{name}"), template));
                let host = [
                    ("agent", &prompt.agent),
                    ("model", &prompt.model),
                    ("fallback_model", &prompt.fallback_model),
                    ("session", &prompt.session),
                ];
                let host = host.into_iter().filter_map(|(key, word)| Some((key.to_owned(), word.as_ref()?)));
                let place = prompt.setting.templates();
                let text = std::iter::once(("action".to_owned(), &prompt.text));
                text.chain(context).chain(host).chain(place).collect()
            }
            Self::Tool(tool) => {
                let mut all = vec![("action".to_owned(), &tool.tool)];
                for (name, value) in &tool.params {
                    value.templates(&format!("params.{name}"), &mut all);
                }
                all.extend(tool.setting.templates());
                all
            }
            Self::Approval(approval) => vec![("action".to_owned(), &approval.text)],
            Self::Learning(learning) => {
                let targets = learning.targets.iter().enumerate();
                let targets = targets.map(|(at, target)| (format!("learning.targets.{at}"), target));
                let others = [("targets_csv", &learning.listed), ("max_retries_expr", &learning.tries_by)];
                let others = others
                    .into_iter()
                    .filter_map(|(key, text)| Some((format!("learning.{key}"), text.as_ref()?)));
                targets.chain(others).chain(learning.setting.templates()).collect()
            }
            // Which operation it is must be known when the loop is compiled, so its text is not a template.
            Self::Board(board) => {
                let params = board.params.iter();
                params.map(|(name, template)| (format!("params.{name}"), template)).collect()
            }
            Self::SubLoop(sub) => {
                let bindings = match &sub.given {
                    SubLoopInput::Parameters(bindings) => Some(bindings),
                    SubLoopInput::Nothing | SubLoopInput::Everything => None,
                };
                let texts = bindings.into_iter().flatten().filter_map(|(name, binding)| match binding {
                    Binding::Text(text) => Some((format!("with.{name}"), text)),
                    Binding::Value(_) => None,
                });
                let worktree = sub.worktree.iter().map(|branch| ("worktree".to_owned(), branch));
                std::iter::once(("loop".to_owned(), &sub.name)).chain(worktree).chain(texts).collect()
            }
        }
    }
}
