//! Reads the comments that answer a run, by their ids: no input is believed but these.

use std::path::Path;

use crate::definition::load;
use crate::engine::question::{AnswerKind, AnswerWay, Awaiting, OpenQuestion};
use crate::forge::github::answers::{self, FoundAnswer};
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::git::call::Call;
use crate::machine::{Approvers, answerers};
use crate::people::ruling::{AnswerFacts, are_enough, decide};
use crate::session::context::Session;
use crate::session::error::{Error, Kind};
use crate::session::git;
use crate::session::options::{AnswerOptions, CommentOptions};

/// A server and the repository that the job is of.
struct AnswerServer {
    api: Api,
    repository: RepositoryName,
}

/// Makes answers of comments, or says why one of them is none. `file` is the loop file below `root`.
pub(crate) fn read(
    comments: &CommentOptions,
    question: Option<&OpenQuestion>,
    (root, file): (&Path, &str),
    session: &Session<'_>,
) -> Result<Vec<AnswerOptions>, Error> {
    let Some(OpenQuestion { awaiting, .. }) = question else {
        return Err(Error::refused("the run does not wait for an answer"));
    };
    let asked = AnswerServer::of_job(session)?;
    let prefix = git::at(root, session).line(&Call::new("rev-parse").with(&["--show-prefix"]));
    let prefix =
        prefix.map_err(|error| Error::failed("cannot tell where the loop is in its repository", &error))?;
    let file = format!("{}{file}", prefix.trim());
    let started_by = comments.run.map(|run| answers::started_by(&asked.api, &asked.repository, run));
    let started_by = started_by.transpose().map_err(|error| unanswered(&error))?.flatten();
    let mut given = Vec::new();
    let mut min = 1;
    for id in &comments.ids {
        let found = answers::find(&asked.api, &asked.repository, *id).map_err(|error| unanswered(&error))?;
        let FoundAnswer { comment, permission, pull, branches } = found;
        let mut facts = AnswerFacts { comment, permission, pull, started_by, approvers: None };
        for branch in &branches {
            facts.approvers = asked.approvers((&file, branch), awaiting)?;
            min = min.max(facts.approvers.as_ref().map_or(1, |approvers| approvers.min));
            given.push(answer(&facts, awaiting)?);
        }
    }
    enough(given, min)
}

/// Returns what a comment says, or why that counts for nothing.
fn answer(facts: &AnswerFacts, awaiting: &Awaiting) -> Result<AnswerOptions, Error> {
    let id = facts.comment.id;
    let written = decide(facts, awaiting).map_err(|refusal| {
        Error::refused(format!(
            "the comment {id} does not answer the question `{}`: {refusal}",
            awaiting.code
        ))
    })?;
    Ok(AnswerOptions {
        who: facts.comment.author.name.clone(),
        id: Some(facts.comment.author.id),
        comment: Some(id),
        verdict: written.kind,
        text: written.text,
        code: Some(written.code),
        by: AnswerWay::Comment,
    })
}

/// Returns the answers where they decide: one that rejects does, and else so many different people as the loop wants, who
/// say the same.
fn enough(mut given: Vec<AnswerOptions>, min: u32) -> Result<Vec<AnswerOptions>, Error> {
    given.dedup_by_key(|answer| answer.comment);
    if given.iter().any(|answer| answer.verdict == AnswerKind::Reject) {
        return Ok(given.into_iter().filter(|answer| answer.verdict == AnswerKind::Reject).collect());
    }
    let same = given.windows(2).all(|two| (two[0].verdict, &two[0].text) == (two[1].verdict, &two[1].text));
    if !same {
        return Err(Error::refused("the comments answer the question in different ways"));
    }
    let authors: Vec<u64> = given.iter().filter_map(|answer| answer.id).collect();
    if !are_enough(&authors, min) {
        let message = format!("{min} different people have to answer");
        return Err(Error::refused(message).with_hint("name the comment of each of them"));
    }
    Ok(given)
}

impl AnswerServer {
    fn of_job(session: &Session<'_>) -> Result<Self, Error> {
        let env = &session.env.lookup();
        let repository = WorkflowJob::read(env).repository.as_deref().and_then(RepositoryName::parse);
        let repository = repository.ok_or_else(|| {
            Error::refused("a comment answers in a job of GitHub Actions, Gitea or Forgejo alone")
                .with_hint("elsewhere, `ll-loop answer RUN TEXT` does")
        })?;
        let token = session.env.token().ok_or_else(|| {
            Error::refused("there is no token to read the comment with")
                .with_hint("give it in `LL_TOKEN` or `GITHUB_TOKEN`; it needs `pull-requests: read`")
        })?;
        let api = Api::from_env(env, Some(token.to_owned())).map_err(|error| unanswered(&error))?;
        Ok(Self { api, repository })
    }

    /// Returns who may answer, as the loop file of a branch says it: the change itself does not.
    fn approvers(
        &self,
        (file, branch): (&str, &str),
        awaiting: &Awaiting,
    ) -> Result<Option<Approvers>, Error> {
        let text = answers::file_at(&self.api, &self.repository, file, branch)
            .map_err(|error| unanswered(&error))?;
        let help =
            "answer with `ll-loop answer RUN TEXT` on a machine, or bring the loop to that branch first";
        let text = text.ok_or_else(|| {
            let message = format!("the branch `{branch}` has no {file}, which would say who may answer");
            Error::refused(message).with_hint(help)
        })?;
        let loaded = load::decode(file, &text, String::new()).map_err(|_| {
            let message =
                format!("{file} on the branch `{branch}` cannot be read alone, and would say who may answer");
            Error::refused(message).with_hint(
                "a loop with `from` or `import` is answered with `ll-loop answer RUN TEXT` on a machine",
            )
        })?;
        let answerers = answerers::of_state(&loaded.definition, &awaiting.state).ok_or_else(|| {
            let state = &awaiting.state;
            let message = format!(
                "no state `{state}` asks in {file} on the branch `{branch}`, which would say who may answer"
            );
            Error::refused(message).with_hint(help)
        })?;
        Ok(answerers.named)
    }
}

fn unanswered(error: &ApiError) -> Error {
    let failed = Error::failed("cannot ask the server about the answer", error).of_kind(Kind::Unavailable);
    match error.help() {
        Some(help) => failed.with_hint(help),
        None => failed,
    }
}
