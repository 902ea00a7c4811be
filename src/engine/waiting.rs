//! What a run waits for, with everything that it asked for: one value, so that nothing is asked for without somebody who
//! waits for it, and the other way round.

use std::time::Duration;

use super::changes::SeenTree;
use super::event::{Event, LoopComplete, LoopResume};
use super::question::AskedAbout;
use super::request::{
    ActionRequest, ApprovalRequest, AsideRequest, AskRequest, LearningRequest, MeasureRequest, Next,
    PromptRequest, QueryRequest, Recheck, RestoreRequest, SubLoopRequest, SurveyRequest, ToolRequest,
};
use crate::base::name::StateName;
use crate::evaluate::FileRead;
use crate::evaluate::jq_question::Queried;
use crate::evaluate::model::ModelAnswer;
use crate::evaluate::survey::Surveyed;
use crate::machine::StepId;

/// What a run waits for.
pub(super) enum Waiting {
    /// Its start.
    Start,
    /// The start of another part of it.
    Resume(Box<LoopResume>),
    /// The end of work.
    Work(WorkRequest),
    /// What was written down for a fresh session, after a state asked for one with this text.
    Continuation(StateName, String),
    /// The end of a wait.
    Backoff(Duration),
    /// What the judgement of a state lacks.
    Judging(StepId, MissingEvidence, TurnEvidence),
    /// That the world looks at the time and at requests to end: there was much to decide.
    Turn(TurnEvidence),
    /// A look at the tree on which a verdict fell, or a sub-loop ended.
    Looking(LookFor),
    /// A comparison of the tree on which it ends.
    Measuring(Box<MeasureRequest>, Box<LoopComplete>),
    /// A part of the closing pass.
    Closing(PassWork),
    /// Nothing: it is over.
    Nothing(LoopComplete),
}

/// A part of the closing pass.
pub(super) enum PassWork {
    /// The judges of the start are put in their places.
    SetAside(AsideRequest),
    /// A check is made once more.
    Check(Box<Recheck>, ActionRequest),
    /// The tree is made what it was before.
    Restore(RestoreRequest),
}

/// What the tree is looked at for.
pub(super) enum LookFor {
    /// The verdict of this state, which an action follows.
    Verdict(StateName),
    /// The check of this state, which says that it writes: what it will say is about the tree that it finds.
    Check(StateName),
    /// The check of this state, which comes after an action that may have written to its judges.
    Judges(StateName, ActionRequest),
    /// The end of a sub-loop, which no comparison follows.
    End(Box<LoopComplete>),
}

/// What a check has found as it began.
pub(super) enum FoundTree {
    /// This tree.
    Seen(SeenTree),
    /// Its judges as they were when the run began. What its verdict is about is then seen at the end.
    WithItsJudges,
}

/// Work that was announced and not yet done.
pub(super) enum WorkRequest {
    /// A command line.
    Action(ActionRequest),
    /// A prompt.
    Prompt(Box<PromptRequest>),
    /// A call of a tool.
    Tool(Box<ToolRequest>),
    /// A question for a person.
    Approval(Box<ApprovalRequest>),
    /// What has to be known.
    Learning(Box<LearningRequest>),
    /// A sub-loop, and the state that runs it.
    SubLoop(StateName, Box<SubLoopRequest>),
}

/// What a judgement lacks.
pub(super) enum MissingEvidence {
    /// A look at the working tree.
    Survey(SurveyRequest),
    /// What a question for a person is about.
    AskedAbout,
    /// A file.
    File(String),
    /// Whether something was written down for a fresh session.
    Continuation,
    /// The answer to a query.
    Query(Box<QueryRequest>),
    /// The answer of a model.
    Answer(Box<AskRequest>),
}

/// What the world has given to the judgement of a state.
#[derive(Default)]
pub(super) struct TurnEvidence {
    /// Looks at the working tree, by their scopes.
    pub(super) surveys: Vec<(Vec<String>, Surveyed)>,
    /// What a question for a person is about.
    pub(super) about: Option<AskedAbout>,
    /// The file that was read.
    pub(super) file: Option<FileRead>,
    /// Whether something was written down for a fresh session.
    pub(super) is_continued: Option<bool>,
    /// The answer to the query.
    pub(super) queried: Option<Queried>,
    /// The answer of the model.
    pub(super) answer: Option<ModelAnswer>,
}

/// What comes next in a run.
pub(super) enum Decision {
    /// Something happens.
    Happens(Event),
    /// Work begins, which this event announces.
    Begins(Event, WorkRequest),
    /// A state cannot be judged before the world gives this.
    Lacks(StepId, MissingEvidence),
}

impl TurnEvidence {
    /// Returns the look at the working tree with this scope, if there was one.
    pub(super) fn survey(&self, scope: &[String]) -> Option<&Surveyed> {
        self.surveys.iter().find(|(of, _)| of == scope).map(|(_, surveyed)| surveyed)
    }
}

impl Waiting {
    /// Says what the world has to do.
    pub(super) fn next(&self) -> Next<'_> {
        match self {
            Self::Start | Self::Resume(_) => Next::Begin,
            Self::Work(WorkRequest::Action(request)) | Self::Closing(PassWork::Check(_, request)) => {
                Next::Run(request)
            }
            Self::Work(WorkRequest::Prompt(request)) => Next::Prompt(request),
            Self::Work(WorkRequest::Tool(request)) => Next::Call(request),
            Self::Work(WorkRequest::Approval(request)) => Next::Approve(request),
            Self::Work(WorkRequest::Learning(request)) => Next::Learn(request),
            Self::Work(WorkRequest::SubLoop(_, request)) => Next::SubLoop(request),
            Self::Continuation(..) | Self::Judging(_, MissingEvidence::Continuation, _) => {
                Next::ReadContinuation
            }
            Self::Backoff(wait) => Next::Wait(*wait),
            Self::Judging(_, MissingEvidence::Survey(request), _) => Next::Survey(request),
            Self::Judging(_, MissingEvidence::AskedAbout, _) => Next::LookForQuestion,
            Self::Judging(_, MissingEvidence::File(path), _) => Next::Read(path),
            Self::Judging(_, MissingEvidence::Query(request), _) => Next::Query(request),
            Self::Judging(_, MissingEvidence::Answer(request), _) => Next::Ask(request),
            Self::Turn(_) => Next::Yield,
            Self::Looking(LookFor::Judges(_, request)) => Next::LookForJudges(request),
            Self::Looking(LookFor::Verdict(_) | LookFor::Check(_) | LookFor::End(_)) => Next::Look,
            Self::Measuring(request, _) => Next::Measure(request),
            Self::Closing(PassWork::SetAside(request)) => Next::SetAside(request),
            Self::Closing(PassWork::Restore(request)) => Next::Restore(request),
            Self::Nothing(end) => Next::Done(end),
        }
    }
}

impl Default for Waiting {
    /// What is waited for while a fact is worked in.
    fn default() -> Self {
        Self::Turn(TurnEvidence::default())
    }
}
