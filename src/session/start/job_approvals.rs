//! Reads who approved the job of a run as a reviewer of its environment, for the journal. Such an approval is about the job: it
//! answers no question, and where it cannot be read the run begins all the same.

use crate::base::object::ObjectId;
use crate::base::text::{head, one_line};
use crate::context::Session;
use crate::context::error::Error;
use crate::context::job_server::{JobServer, unanswered};
use crate::context::options::RunOptions;
use crate::engine::question::{AnswerKind, AnswerWay, GivenAnswer};
use crate::forge::github::environment_reviews::{self, EnvironmentReview};
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::process::clock::Clock;

/// The longest text of a reviewer that is kept, in bytes.
const LONGEST: usize = 4096;

/// Reads the approvals of the environment that the options name, if they do.
pub(super) fn read(options: &RunOptions, session: &Session<'_>) -> Vec<GivenAnswer> {
    let Some(environment) = &options.environment else { return Vec::new() };
    let shown = one_line(environment, 80);
    match asked(environment, options, session) {
        Ok(approvals) if approvals.is_empty() => {
            session.talk.warning(&format!("no reviewer of the environment `{shown}` has approved this job"));
            approvals
        }
        Ok(approvals) => approvals,
        Err(error) => {
            let why = one_line(&session.redactor.text(&error.to_string()), 300);
            session.talk.warning(&format!(
                "the journal does not say who approved this job for the environment `{shown}`: {why}"
            ));
            Vec::new()
        }
    }
}

fn asked(environment: &str, options: &RunOptions, session: &Session<'_>) -> Result<Vec<GivenAnswer>, Error> {
    let server = JobServer::of_job(session, "reviewers of an environment approve", "actions: read")?;
    let env = &session.env.lookup();
    let run = WorkflowJob::read(env).run_id.and_then(|run| run.parse().ok());
    let run: u64 = run.ok_or_else(|| Error::refused("the number of the run of the workflow is not known"))?;
    let JobServer { api, repository, .. } = &server;
    let reviews = environment_reviews::approved(api, repository, run, environment);
    let reviews = reviews.map_err(|error| unanswered(&error))?;
    let sha = options.commit.sha.clone().or_else(|| WorkflowEvent::read(env).sha);
    let sha = sha.and_then(|sha| ObjectId::parse(&sha).ok());
    let at = Clock::start().now();
    let approval = |EnvironmentReview { reviewer, comment }: EnvironmentReview| GivenAnswer {
        who: reviewer.name,
        id: Some(reviewer.id),
        comment: None,
        // The server does not say when it was.
        at,
        sha: sha.clone(),
        verdict: AnswerKind::Approve,
        text: comment.map(|comment| head(&session.redactor.text(&comment), LONGEST).to_owned()),
        digest: None,
        by: AnswerWay::Environment,
        environment: Some(environment.to_owned()),
    };
    Ok(reviews.into_iter().map(approval).collect())
}
