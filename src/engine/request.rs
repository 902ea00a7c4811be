//! The seam between the engine and the world: facts that come in, work that goes out.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::budget;
use super::changes::{IgnoredFile, KnownStart, Measured, SeenTree, TreeIds};
use super::event::{Handoff, LoopComplete, SubLoopComplete};
use super::question::{AskedAbout, GivenAnswer};
use super::state_result::StateResult;
use crate::base::composed::Composed;
use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::base::sandbox::{SandboxMode, SandboxRules};
use crate::evaluate::FileRead;
use crate::evaluate::jq_question::{Queried, Query};
use crate::evaluate::model::{ConversationUsage, ModelAnswer, Question, Usage};
use crate::evaluate::observation::{Observation, Stop, Text};
use crate::evaluate::survey::Surveyed;
use crate::judges::declared::Declared;
use crate::judges::found_judges::PutBackInPart;
use crate::machine::{Budget, Step};

/// A fact from the world.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
pub enum Input {
    /// The run may begin.
    Begin,
    /// The action ended.
    ActionDone(Observation),
    /// The agent that took a prompt ended, and what it cost.
    PromptDone(Observation, Usage),
    /// A model answered, or did not.
    Answered(ModelAnswer),
    /// The continuation that an agent wrote to its file, if it did.
    Continuation(Option<String>),
    /// The sub-loop ended, or could not begin.
    SubLoopDone(Result<SubLoopEnd, Explanation>),
    /// The working tree was looked at, or why it could not be.
    Surveyed(Surveyed),
    /// What a question for a person is about.
    AskedAbout(AskedAbout),
    /// The file was read.
    FileRead(FileRead),
    /// The query was answered, or not.
    Queried(Queried),
    /// The tree on which the run ends was compared with those before it.
    Measured(Measured),
    /// The tree was looked at.
    Looked(SeenTree),
    /// The judges of a check stand as they stood when the run began, so the tree was not looked at.
    JudgesStand,
    /// The wait is over.
    WaitDone,
    /// The judges of the start are in their places, or why not.
    SetAside(Result<(), Explanation>),
    /// The tree is as it was before the closing pass, or why that is not known.
    Restored(Result<RestoredTree, Explanation>),
    /// The time was looked at.
    Yielded,
}

/// What a check is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckPurpose {
    /// The state of a loop that is a check.
    State,
    /// The closing pass.
    ClosingPass,
}

/// A tree that is again what it was before the closing pass.
#[derive(Clone, Debug, Default)]
pub struct RestoredTree {
    /// The files that had to be put back.
    pub put_back: Vec<String>,
    /// The judges of the start that were not as they had been placed any more when the checks had been made.
    pub replaced: Vec<String>,
    /// A judge that was written to while a check was made, beside something that an action had left running.
    pub written: Option<String>,
}

/// An answer to something that was not asked: the run waits for another one, or it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run does not wait for this input")]
pub struct UnexpectedInput;

/// What the world has to do.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// Say that the run may begin.
    Begin,
    /// Run this and report.
    Run(&'a ActionRequest),
    /// Hand this prompt to an agent and report.
    Prompt(&'a PromptRequest),
    /// Call this tool and report.
    Call(&'a ToolRequest),
    /// Ask a person this and report.
    Approve(&'a ApprovalRequest),
    /// Look at what is known, let an agent find out the rest, and report.
    Learn(&'a LearningRequest),
    /// Ask a model this and report.
    Ask(&'a AskRequest),
    /// Read the file in which an agent leaves a continuation, and report.
    ReadContinuation,
    /// Run this loop to its end and report.
    SubLoop(&'a SubLoopRequest),
    /// Look at the working tree and report.
    Survey(&'a SurveyRequest),
    /// Look at the time and at the working tree, which a question for a person is about, and report.
    LookForQuestion,
    /// Read this file, relative to the directory of the run, and report.
    Read(&'a str),
    /// Answer this query and report.
    Query(&'a QueryRequest),
    /// Wait this long and report.
    Wait(Duration),
    /// Look at the time, and whether somebody wants the run to end, and report: there was much to decide.
    Yield,
    /// Look at the working tree and report.
    Look,
    /// The same, unless the judges of this check, which is about to begin, stand as they stood when the run began.
    LookForJudges(&'a ActionRequest),
    /// Compare the working tree with the one on which the run began, and with others, and report.
    Measure(&'a MeasureRequest),
    /// Put the judges of the start in their places, and report.
    SetAside(&'a AsideRequest),
    /// Make the tree what it was before the closing pass, and report.
    Restore(&'a RestoreRequest),
    /// Nothing: the run is over.
    Done(&'a LoopComplete),
}

/// With what the tree is compared on which a run ends.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureRequest {
    /// The tree on which it began.
    pub start: KnownStart,
    /// The trees on which verdicts fell: which files changed since is asked where they are not the last one.
    pub verdicts: Vec<ObjectId>,
    /// What has to be known to tell the judges of the run, where it may succeed.
    pub judging: Option<JudgingRequest>,
    /// Whether the time of the job is over, so that what takes long is left.
    pub is_late: bool,
}

/// What has to be known of a loop to tell its judges.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgingRequest {
    /// What the loop says of them.
    pub declared: Declared,
    /// The commands of its states that observe.
    pub commands: Vec<ObservingCommand>,
    /// The files that the loop was read from, and those of the loops that it runs, relative to the directory of the run.
    pub loop_files: Vec<String>,
    /// Whether a state names the loop that it runs by a template: then every loop may be one of them.
    pub chooses_loops: bool,
}

/// The command of a state that observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservingCommand {
    /// The state.
    pub state: StateName,
    /// The text.
    pub text: String,
    /// The directory, relative to that of the run, where the state says one.
    pub cwd: Option<String>,
    /// The variables beyond those that actions inherit.
    pub env: Vec<(String, String)>,
    /// The words in front of the text.
    pub shell: Vec<String>,
}

/// Which files are put aside while checks are made once more.
#[derive(Clone, Debug, PartialEq)]
pub struct AsideRequest {
    /// The tree whose files take their place.
    pub start: TreeIds,
    /// The files whose start no tree has.
    pub ignored: Vec<IgnoredFile>,
    /// Those that are put as they were at the start.
    pub put_back: Vec<String>,
    /// Those that are taken out of the way.
    pub hide: Vec<String>,
    /// Those of which parts are as they were at the start.
    pub in_part: Vec<PutBackInPart>,
}

impl AsideRequest {
    /// Returns the paths that are not as the run left them.
    pub fn put_back(&self) -> impl Iterator<Item = &String> {
        self.put_back.iter().chain(self.in_part.iter().map(|file| &file.path))
    }
}

/// A check as it was made last, so that it can be made once more.
#[derive(Clone, Debug, PartialEq)]
pub struct Recheck {
    /// The state of the loop whose verdict it confirms.
    pub state: StateName,
    /// What people know it by: the state, with the states around it that run the loop that it is in.
    pub name: String,
    /// The check itself.
    pub step: Step,
    /// What it ran.
    pub request: ActionRequest,
    /// What its evaluator remembered.
    pub memory: Option<Value>,
}

/// What the tree has to be after the closing pass.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoreRequest {
    /// The tree on which the run ended.
    pub tree: TreeIds,
}

/// A sub-loop with every template resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLoopRequest {
    /// Its name.
    pub name: String,
    /// Values for its parameters.
    pub params: Map<String, Value>,
    /// The context and the captures that it sees, where it sees those of the loop around it.
    pub around: Option<Around>,
    /// The branch on which it works, in a worktree of its own.
    pub worktree: Option<String>,
    /// Whether the loop around it takes its captures.
    pub gives_back: bool,
    /// The longest time that the state gives it.
    pub timeout: Option<Duration>,
    /// The time that is left to the run around it.
    pub left: Option<Duration>,
    /// The time after which it hands itself over.
    pub deadline: Option<Duration>,
    /// What is left of the budget.
    pub budget: Budget,
    /// The key of the step that runs it.
    pub key: String,
    /// The answer to the question that it was saved with.
    pub answer: Option<GivenAnswer>,
}

impl SubLoopRequest {
    /// Returns the longest time of one that has taken so much already.
    pub fn limit(&self, taken: Duration) -> Option<Duration> {
        // The state's limit counts from the start of the sub-loop, what is left from now on.
        self.timeout.into_iter().chain(self.left.map(|left| taken + left)).min()
    }
}

/// What a sub-loop sees of the loop around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Around {
    /// The variables.
    pub context: Map<String, Value>,
    /// The captures.
    pub captured: IndexMap<String, StateResult>,
}

/// How a sub-loop ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLoopEnd {
    /// Its last event.
    pub complete: LoopComplete,
    /// Its captures.
    pub captured: IndexMap<String, StateResult>,
    /// How the sub-loops of its own states ended.
    pub sub_loops: IndexMap<StateName, SubLoopComplete>,
    /// What its last action printed.
    pub output: Text,
    /// How it was saved, if it was.
    pub handoff: Option<Handoff>,
    /// What models cost in it.
    pub usage: Usage,
    /// Its checks, so that they can be made once more; none where one of them cannot be.
    pub rechecks: Option<Vec<Recheck>>,
    /// Whether it had ended already when the run around it was left, so that nobody knows on which tree.
    pub had_ended: bool,
}

/// What part of the working tree is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyRequest {
    /// Files and directories, relative to the directory of the run; the whole repository when there are none.
    pub scope: Vec<String>,
    /// How much time the run has left, if it is bounded.
    pub limit: Option<Duration>,
}

/// Where and how long an action runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Environment beyond that of ll-loop itself.
    pub env: Vec<(String, String)>,
    /// The directory, relative to the run's.
    pub cwd: Option<String>,
    /// The time after which it is stopped, and what that means.
    pub end: Option<(Duration, Stop)>,
    /// The silence after which it is stopped.
    pub idle: Option<Duration>,
    /// How it is confined, where the loop says so.
    pub sandbox: Option<Box<SandboxRules>>,
}

/// A command line with every template resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRequest {
    /// The words before the text.
    pub shell: Vec<String>,
    /// The text.
    pub text: String,
    /// Who does it, in work that several do.
    pub role: Option<String>,
    /// Where and how long it runs.
    pub setting: Setting,
}

/// A prompt with every template resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptRequest {
    /// The whole text.
    pub text: String,
    /// What it is put together from.
    pub composed: Composed,
    /// The agent of the host.
    pub agent: Option<String>,
    /// The tools that may be used; the host's own choice when empty.
    pub tools: Vec<String>,
    /// What the agent may change, where the loop says so.
    pub sandbox: Option<SandboxMode>,
    /// The model.
    pub model: Option<String>,
    /// The model in its place where that one cannot be asked.
    pub fallback_model: Option<String>,
    /// The JSON Schema of the answer.
    pub answer: Option<Value>,
    /// The conversation that it belongs to.
    pub session: Option<AgentSession>,
    /// Who is asked, in work that several do.
    pub role: Option<String>,
    /// Whether the host heeds the settings of the repository.
    pub heeds_project: bool,
    /// Where and how long it runs.
    pub setting: Setting,
    /// What is left of the budget.
    pub budget: Budget,
}

/// A conversation with an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSession {
    /// What the loop calls it.
    pub name: String,
    /// What the host calls it, once it has begun.
    pub id: Option<String>,
    /// What the host says that it took so far.
    pub total: Option<ConversationUsage>,
}

/// A call of an MCP tool with every template resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    /// The server.
    pub server: String,
    /// Its tool.
    pub tool: String,
    /// The arguments.
    pub params: Map<String, Value>,
    /// Where and how long it runs.
    pub setting: Setting,
}

/// A question for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// What is shown.
    pub text: String,
    /// How long an answer is waited for.
    pub setting: Setting,
    /// What is known without asking; none where somebody has to be asked.
    pub reply: Option<Reply>,
}

/// How a question ends that is not asked any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It was answered.
    Given(GivenAnswer),
    /// It was not answered in time.
    Late,
    /// A person may not be asked, for this reason.
    Nobody(String),
}

/// What has to be known before the run goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningRequest {
    /// What has to be known.
    pub targets: Vec<String>,
    /// How often an agent is asked about each.
    pub tries: u32,
    /// Whether agents may be asked.
    pub may_ask: bool,
    /// Whether the host heeds the settings of the repository.
    pub heeds_project: bool,
    /// Where and how long the agent works.
    pub setting: Setting,
    /// What is left of the budget.
    pub budget: Budget,
}

impl LearningRequest {
    /// Returns what another call may cost after these, or why there may be none.
    pub fn left(&self, spent: &Usage, dearest: &Usage) -> Result<Budget, Explanation> {
        match budget::met(self.budget, spent, dearest) {
            Some(why) => Err(Explanation::new(why)),
            None => Ok(budget::left(self.budget, spent)),
        }
    }
}

/// A query and how long its answer may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRequest {
    /// The query.
    pub query: Query,
    /// The time after which it is stopped, and what that means.
    pub end: Option<(Duration, Stop)>,
}

/// A question for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct AskRequest {
    /// The question.
    pub question: Question,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// Where and how long it is asked.
    pub setting: Setting,
    /// What is left of the budget.
    pub budget: Budget,
}
