//! Reads the comments that answer a run, by their ids: no input is believed but these.

use std::path::Path;

use crate::ci::github::standing_runs::StandingRuns;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::job_server::{JobServer, unanswered};
use crate::context::options::{AnswerOptions, CommentOptions};
use crate::engine::question::{AnswerKind, AnswerWay, Awaiting, OpenQuestion};
use crate::forge::github::answers::{self, FoundAnswer};
use crate::forge::github::api::ApiError;
use crate::forge::github::pull_comments::{self, PullComment};
use crate::forge::github::workflow_run::RunStarters;
use crate::git::call::Call;
use crate::machine::Approvers;
use crate::people::command::{self, Verb};
use crate::people::command_starts::askers;
use crate::people::reply;
use crate::people::ruling::{AnswerFacts, PullFacts, QuestionFacts, TeamMembership, are_enough, decide};
use crate::repository;
use crate::session::read::approver_facts::{BranchApprovers, on_branch};

/// The run that comments answer.
#[derive(Clone, Copy)]
pub(crate) struct AnsweredRun<'a> {
    /// Its question.
    pub(crate) question: Option<&'a OpenQuestion>,
    /// The directory with its `.loops`.
    pub(crate) root: &'a Path,
    /// The loop file below that.
    pub(crate) file: &'a str,
    /// Its id.
    pub(crate) instance: &'a str,
}

/// Makes answers of comments, or says why one of them does not answer.
pub(crate) fn read(
    comments: &CommentOptions,
    run: AnsweredRun<'_>,
    session: &Session<'_>,
) -> Result<Vec<AnswerOptions>, Error> {
    let AnsweredRun { question, root, file, instance } = run;
    let Some(OpenQuestion { awaiting, .. }) = question else {
        return Err(Error::refused("the run does not wait for an answer"));
    };
    let asked = JobServer::of_job(session, "a comment answers", "pull-requests: read")?;
    let prefix = repository::at(root, session).line(&Call::new("rev-parse").with(&["--show-prefix"]));
    let prefix =
        prefix.map_err(|error| Error::failed("cannot tell where the loop is in its repository", &error))?;
    let file = format!("{}{file}", prefix.trim());
    let mut given = Vec::new();
    let mut min = 1;
    for id in &comments.ids {
        let found = answers::find(&asked.api, &asked.repository, *id).map_err(|error| unanswered(&error))?;
        let FoundAnswer { comment, permission, pull, branches, .. } = found;
        let standing = StandingRuns::at(&asked.api, &asked.repository, &pull.head);
        let standing = standing.map_err(|error| unanswered(&error))?;
        // Who may answer is of no concern to whoever stops a question.
        let is_stop = command::read(&comment.body).is_ok_and(|written| written.verb == Verb::Stop);
        let branches = if is_stop { Vec::new() } else { branches };
        let named = branches.iter().map(|branch| asked.approvers(&file, branch, awaiting));
        let named: Vec<Option<Approvers>> = named.collect::<Result<_, _>>()?;
        let excludes_starters = named.iter().flatten().any(|approvers| approvers.not_author);
        let mut runs = if excludes_starters { standing.chain_of(instance) } else { Vec::new() };
        runs.extend(comments.run);
        runs.sort_unstable();
        runs.dedup();
        let starters = asked.starters(&runs, &pull, *id).map_err(|error| unanswered(&error))?;
        let mut facts = AnswerFacts {
            comment,
            permission,
            pull,
            starters,
            approvers: None,
            membership: TeamMembership::Outsider,
            asked: standing.asked(),
            is_over: standing.is_over(instance),
        };
        if is_stop {
            given.push(answer(&facts, awaiting)?);
        }
        for approvers in named {
            facts.approvers = approvers;
            let membership =
                asked.membership(&facts.comment, facts.permission.as_ref(), facts.approvers.as_ref());
            facts.membership = membership.map_err(|error| unanswered(&error))?;
            min = min.max(facts.approvers.as_ref().map_or(1, |approvers| approvers.min));
            given.push(answer(&facts, awaiting)?);
        }
    }
    enough(given, min)
}

/// Returns what a comment says, or why that counts for nothing.
fn answer(facts: &AnswerFacts, awaiting: &Awaiting) -> Result<AnswerOptions, Error> {
    let id = facts.comment.id;
    let ruled = decide(facts, QuestionFacts::of(awaiting)).map_err(|refusal| {
        Error::refused(format!(
            "the comment {id} does not answer the question `{}`: {refusal}",
            awaiting.code
        ))
    })?;
    Ok(AnswerOptions {
        who: facts.comment.author.name.clone(),
        id: Some(facts.comment.author.id),
        comment: Some(id),
        verdict: ruled.kind,
        text: ruled.text,
        code: Some(awaiting.code.clone()),
        by: AnswerWay::Comment,
    })
}

/// Returns the answers where they decide: one that stops or rejects does, and else so many different people as the loop wants, who
/// say the same.
fn enough(mut given: Vec<AnswerOptions>, min: u32) -> Result<Vec<AnswerOptions>, Error> {
    given.dedup_by_key(|answer| answer.comment);
    for decides in [AnswerKind::Stop, AnswerKind::Reject] {
        if given.iter().any(|answer| answer.verdict == decides) {
            return Ok(given.into_iter().filter(|answer| answer.verdict == decides).collect());
        }
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

impl JobServer {
    /// Returns who started these runs: whom the server names, and who asked for one by a comment before this one.
    fn starters(&self, runs: &[u64], pull: &PullFacts, comment: u64) -> Result<Vec<u64>, ApiError> {
        let Self { api, repository, .. } = self;
        let RunStarters { mut accounts, is_by_request } = answers::starters(api, repository, runs)?;
        if is_by_request {
            let comments = pull_comments::list(api, repository, pull.number)?;
            let reply = pull_comments::own(api, &comments, reply::is_reply)?;
            let log = reply.map(|reply| reply::log_of(reply.body())).unwrap_or_default();
            let commands = comments.iter().filter_map(PullComment::possible_command);
            accounts.extend(askers(commands, &log, comment));
        }
        Ok(accounts)
    }

    /// Returns who may answer, as the loop file of a branch says it: the change itself does not.
    fn approvers(&self, file: &str, branch: &str, awaiting: &Awaiting) -> Result<Option<Approvers>, Error> {
        let help =
            "answer with `ll-loop answer RUN TEXT` on a machine, or bring the loop to that branch first";
        let said = on_branch(&self.api, &self.repository, file, branch, &awaiting.state);
        match said.map_err(|error| unanswered(&error))? {
            BranchApprovers::Named(named) => Ok(named),
            BranchApprovers::NoFile => {
                let message = format!("the branch `{branch}` has no {file}, which would say who may answer");
                Err(Error::refused(message).with_hint(help))
            }
            BranchApprovers::NotAlone => {
                let message = format!(
                    "{file} on the branch `{branch}` cannot be read alone, and would say who may answer"
                );
                Err(Error::refused(message).with_hint(
                    "a loop with `from` or `import` is answered with `ll-loop answer RUN TEXT` on a machine",
                ))
            }
            BranchApprovers::AsksNobody => {
                let state = &awaiting.state;
                let message = format!(
                    "no state `{state}` asks in {file} on the branch `{branch}`, which would say who may answer"
                );
                Err(Error::refused(message).with_hint(help))
            }
        }
    }
}
