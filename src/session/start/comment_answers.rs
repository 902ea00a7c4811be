//! Reads the comments that answer a run, by their ids: no input is believed but these.

use std::path::Path;

use super::answer_server::AnswerServer;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::{AnswerOptions, CommentOptions};
use crate::engine::question::{AnswerKind, AnswerWay, Awaiting, OpenQuestion};
use crate::forge::github::answers::FoundAnswer;
use crate::git::call::Call;
use crate::machine::Approvers;
use crate::people::command::{self, Verb};
use crate::people::ruling::{AnswerFacts, QuestionFacts, TeamMembership, are_enough, decide};
use crate::repository;
use crate::session::read::approver_facts::BranchApprovers;

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
    let asked = AnswerServer::of_job(session)?;
    // The server names files from the top of the repository, a run from the directory of its `.loops`.
    let prefix = repository::at(root, session).line(&Call::new("rev-parse").with(&["--show-prefix"]));
    let prefix =
        prefix.map_err(|error| Error::failed("cannot tell where the loop is in its repository", &error))?;
    let file = format!("{}{file}", prefix.trim());
    let mut given = Vec::new();
    let mut min = 1;
    for id in &comments.ids {
        let found = asked.find(*id).map_err(|error| asked.unanswered(&error))?;
        let FoundAnswer { comment, permission, pull, branches, .. } = found;
        let written = command::read(&comment.body);
        // Who may answer is of no concern to whoever stops a question.
        let is_stop = written.as_ref().is_ok_and(|written| written.verb == Verb::Stop);
        let standing = asked.standing(&pull.head).map_err(|error| asked.unanswered(&error))?;
        if standing.is_none() && !is_stop && written.is_ok_and(|written| written.code().is_none()) {
            let message =
                format!("the comment {id} names no question, and this server does not tell which are open");
            return Err(Error::refused(message).with_hint(format!("name the code, `{}`", awaiting.code)));
        }
        let standing = standing.unwrap_or_default();
        let branches = if is_stop { Vec::new() } else { branches };
        let named = branches.iter().map(|branch| asked.approvers(&file, branch, awaiting));
        let named: Vec<Option<Approvers>> = named.collect::<Result<_, _>>()?;
        let excludes_starters = named.iter().flatten().any(|approvers| approvers.not_author);
        // Programs start the later runs of a chain, so only the earlier ones tell which person began it.
        let chain = excludes_starters.then(|| standing.whole_chain_of(instance)).transpose();
        let mut runs = chain.map_err(|error| asked.unanswered(&error))?.unwrap_or_default();
        // Elsewhere nobody has to know it, and it may be gone.
        runs.extend(comments.run.filter(|_| excludes_starters));
        runs.sort_unstable();
        runs.dedup();
        let starters = asked.starters(&runs, &pull, *id).map_err(|error| asked.unanswered(&error))?;
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
            facts.membership = membership.map_err(|error| asked.unanswered(&error))?;
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
    // A comment is ruled once for each branch that has a say, and each time stands here.
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

impl AnswerServer {
    /// Returns who may answer, as the loop file of a branch says it: the change itself does not.
    fn approvers(&self, file: &str, branch: &str, awaiting: &Awaiting) -> Result<Option<Approvers>, Error> {
        let help =
            "answer with `ll-loop answer RUN TEXT` on a machine, or bring the loop to that branch first";
        let said = self.on_branch(file, branch, &awaiting.state);
        match said.map_err(|error| self.unanswered(&error))? {
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
