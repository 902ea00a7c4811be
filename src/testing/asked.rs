//! What a run that is played asks for, and what it is answered: the seam between the run and whoever makes up the world.

use std::time::Duration;

use super::mock::{Interruption, MockedEnd};
use super::virtual_tree::TreeEffects;
use crate::base::name::{LoopName, StateName};
use crate::engine::request::{
    ActionRequest, ApprovalRequest, AskRequest, LearningRequest, PromptRequest, Setting, SubLoopRequest,
    ToolRequest,
};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::Observation;
use crate::machine::Machine;

/// Where in a run something is asked for.
#[derive(Clone, Copy, Debug)]
pub struct AskedPlace<'a> {
    /// The machine of the loop that asks.
    pub machine: &'a Machine,
    /// The states that run the loops around it, the outermost first.
    pub around: &'a [StateName],
    /// The loops around it and itself, the outermost first.
    pub loops: &'a [LoopName],
    /// The state, or the terminal.
    pub state: &'a StateName,
    /// Whether a check is made once more at the end.
    pub in_closing_pass: bool,
}

impl AskedPlace<'_> {
    /// Returns the name by which tests know the state: `state/inner` in a sub-loop.
    pub fn key(&self) -> String {
        self.around.iter().chain([self.state]).map(StateName::as_str).collect::<Vec<_>>().join("/")
    }

    /// Returns the other name by which tests may know it: with the loop in place of the state that runs it.
    pub fn key_by_loop(&self) -> Option<String> {
        // The outermost is the loop under test, which no key names.
        let inner = self.loops.get(1..).filter(|loops| !loops.is_empty())?;
        let loops = inner.iter().map(ToString::to_string);
        Some(loops.chain([self.state.to_string()]).collect::<Vec<_>>().join("/"))
    }
}

/// Work that a state asks for.
#[derive(Clone, Copy, Debug)]
pub enum AskedWork<'a> {
    /// A command line.
    Shell(&'a ActionRequest),
    /// A prompt.
    Prompt(&'a PromptRequest),
    /// A call of an MCP tool.
    Tool(&'a ToolRequest),
    /// A question for a person.
    Approval(&'a ApprovalRequest),
    /// A look at what is known.
    Learning(&'a LearningRequest),
}

impl AskedWork<'_> {
    /// Returns the text that would have been run, asked or shown.
    pub fn text(&self) -> String {
        match self {
            Self::Shell(request) => request.text.clone(),
            Self::Prompt(request) => request.text.clone(),
            Self::Tool(request) => {
                let params = serde_json::Value::Object(request.params.clone());
                format!("{}/{} {params}", request.server, request.tool)
            }
            Self::Approval(request) => request.text.clone(),
            Self::Learning(request) => request.targets.join(", "),
        }
    }

    /// Returns where and how long it would have run.
    pub fn setting(&self) -> &Setting {
        match self {
            Self::Shell(request) => &request.setting,
            Self::Prompt(request) => &request.setting,
            Self::Tool(request) => &request.setting,
            Self::Approval(request) => &request.setting,
            Self::Learning(request) => &request.setting,
        }
    }

    /// Returns what kind of work it is.
    pub fn kind(&self) -> AskedKind {
        match self {
            Self::Shell(_) => AskedKind::Command,
            Self::Prompt(_) => AskedKind::Prompt,
            Self::Tool(_) => AskedKind::Tool,
            Self::Approval(_) => AskedKind::Person,
            Self::Learning(_) => AskedKind::Learning,
        }
    }
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedKind {
    /// A command line.
    Command,
    /// A prompt for an agent.
    Prompt,
    /// A question for a judge.
    Judge,
    /// A call of an MCP tool.
    Tool,
    /// A question for a person.
    Person,
    /// A look at what is known.
    Learning,
}

/// What became of work.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkAnswer {
    /// What was observed.
    pub seen: Observation,
    /// What models cost.
    pub usage: Usage,
    /// What it did to the tree.
    pub effects: TreeEffects,
    /// How long it takes, unless it is stopped before.
    pub takes: Duration,
    /// Whether it runs into its timeout, however long that is.
    pub is_late: bool,
    /// What happens to the run meanwhile.
    pub interruption: Option<Interruption>,
}

/// How a sub-loop is played.
#[derive(Clone, Debug, PartialEq)]
pub enum SubLoopAnswer {
    /// Its states are played.
    Played,
    /// It ends like this, after so long, and does this to the tree.
    Ends(Box<MockedEnd>, Duration, TreeEffects),
    /// Something happens to the run while it goes on.
    Interrupted(Interruption),
}

/// Something was asked for that has no answer: the run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The state, as tests know it.
    pub state: String,
    /// What would have been run or asked.
    pub text: String,
    /// Why there is no answer.
    pub why: GapReason,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// There is no mock of the state.
    NoMock,
    /// There are mocks for so many visits.
    UsedUp(usize),
    /// There is a mock of its work, and none of the judge.
    NoJudgement,
    /// There is a mock of the judge, and none of its work.
    NoWork,
    /// The journal of a run does not tell.
    Unknown(String),
    /// The run has come elsewhere than the journal that it is compared with.
    Parted,
}

/// Whoever makes up the world.
pub trait Script {
    /// Says what became of work.
    ///
    /// # Errors
    /// It is unknown.
    fn work(&mut self, place: AskedPlace<'_>, work: AskedWork<'_>) -> Result<WorkAnswer, Gap>;

    /// Answers for a judge, after some time.
    ///
    /// # Errors
    /// It is unknown.
    fn judge(&mut self, place: AskedPlace<'_>, request: &AskRequest) -> Result<(ModelAnswer, Duration), Gap>;

    /// Says how a sub-loop is played.
    ///
    /// # Errors
    /// It is unknown.
    fn sub_loop(&mut self, place: AskedPlace<'_>, request: &SubLoopRequest) -> Result<SubLoopAnswer, Gap>;

    /// Tells whether a run that was interrupted in this state goes on.
    fn resumes(&mut self, state: &str) -> bool;
}
