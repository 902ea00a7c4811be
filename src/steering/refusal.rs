//! Why a command is not done.

use crate::base::text::listed;
use crate::forge::github::api::ApiError;
use crate::people::asked::NotMeant;
use crate::people::command::CommandFault;
use crate::people::command_log::NotAgain;
use crate::people::ruling::AnswerRefusal;

/// Why the words of somebody are not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SteeringRefusal {
    /// They say nothing that is known.
    #[error("{0}")]
    Command(#[from] CommandFault),
    /// Who wrote them may not, or they answer nothing.
    #[error("{0}")]
    Answer(#[from] AnswerRefusal),
    /// Which question is meant is not plain.
    #[error("{0}")]
    NotMeant(#[from] NotMeant),
    /// They were followed already, or there were too many.
    #[error("{0}")]
    NotAgain(#[from] NotAgain),
    /// The change is a stranger's, whose code would go on with a token that writes.
    #[error("the pull request is of a fork: `help`, `stop` and `retry` are followed there, and nothing else")]
    Fork,
    /// No open question has this code.
    #[error("no question with the code `{code}` is open at the head of the pull request{}", those(.open))]
    NoSuchQuestion {
        /// The code.
        code: String,
        /// Those that are.
        open: Vec<String>,
    },
    /// There is no run that this could be about.
    #[error("no run {what} at the head of the pull request{}", of(.name.as_deref()))]
    NoRun {
        /// What it would have to do.
        what: &'static str,
        /// The name that it would have to bear.
        name: Option<String>,
    },
    /// There is more than one.
    #[error("more than one run is meant: name {}", listed(.0, "or"))]
    SeveralRuns(Vec<String>),
    /// The server says that it ran other code than that of the repository.
    #[error("the run {0} is not one of this repository's own code")]
    ForeignRun(u64),
    /// The server does not say which workflow a run is of.
    #[error("the run {0} is of no workflow of this repository")]
    NoWorkflow(u64),
    /// The branch does not tell who may answer.
    #[error("`{file}` on the branch `{branch}` does not tell who may answer")]
    NobodyKnows {
        /// The loop file.
        file: String,
        /// The branch.
        branch: String,
    },
    /// The server does not start it.
    #[error("`{workflow}` is not started: {reason}. It needs `workflow_dispatch`{}", with(.inputs))]
    NotStarted {
        /// The workflow.
        workflow: String,
        /// The inputs that it is given.
        inputs: Vec<String>,
        /// What the server says.
        reason: ApiError,
    },
    /// The budget of the day was used up.
    #[error("{0} runs were started by a dispatch today, and no more may be: it is possible again tomorrow")]
    DayIsOver(u64),
    /// The server does not do it.
    #[error("{0}")]
    Server(ApiError),
}

fn with(inputs: &[String]) -> String {
    match inputs {
        [] => String::new(),
        [one] => format!(" with the input `{one}`"),
        several => format!(" with the inputs {}", listed(several, "and")),
    }
}

fn of(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" and bears the name `{name}`"))
}

fn those(codes: &[String]) -> String {
    match codes {
        [] => String::new(),
        codes => format!("; {} is", listed(codes, "or")),
    }
}

/// Why a command is not done: refused, or the server cannot be asked now, and it may be tried again.
#[derive(Debug)]
pub(super) enum NotDone {
    Refused(Box<SteeringRefusal>),
    Unavailable(Box<ApiError>),
}

impl<R: Into<SteeringRefusal>> From<R> for NotDone {
    fn from(refusal: R) -> Self {
        Self::Refused(Box::new(refusal.into()))
    }
}

impl From<ApiError> for NotDone {
    fn from(error: ApiError) -> Self {
        if error.is_unavailable() {
            Self::Unavailable(Box::new(error))
        } else {
            Self::Refused(Box::new(SteeringRefusal::Server(error)))
        }
    }
}
