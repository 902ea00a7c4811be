//! People steer runs from a pull request: the first line of a comment approves, rejects, answers, repeats, resumes, stops,
//! delivers or fixes. See docs/people.md.
//!
//! Nothing is checked out and no input is believed: the comment is read from the server by its id, and the questions and
//! runs that it may mean from the statuses of the head. [`plan`] finds out what is meant and whether it may be, [`orders`]
//! does it, and one comment on the pull request reports the result.

mod desk;
mod orders;
mod plan;
mod refusal;
pub(crate) mod until_done;

use std::path::PathBuf;

use desk::Desk;
pub(crate) use desk::{DeliveryOrder, SteerOptions};
use orders::Followed;
use refusal::NotDone;
use serde_json::Value;

use crate::base::sum::Sum;
use crate::base::text::{first_line, one_line};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::job_server::{JobServer, unanswered};
use crate::engine::question::AnswerKind;
use crate::files::read;
use crate::forge::github::answers::{self, FoundAnswer};
use crate::forge::github::api::ApiError;
use crate::forge::github::pull_comments::{self, PullComment, Reaction};
use crate::forge::github::workflow_job::WorkflowJob;
use crate::people::command::{self, CommandFault, Verb, WrittenCommand};
use crate::people::command_log::{CommandLog, HeardCommand};
use crate::people::command_starts::askers;
use crate::people::reply;
use crate::process::clock::Clock;

/// The largest payload of an event that is read, in bytes.
// GitHub sends at most 25 MB.
const MAX_PAYLOAD: u64 = 32 * read::MIB;

/// The longest sentence of a result that is kept, in characters.
const LONGEST_RESULT: usize = 400;

/// The result of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steered {
    /// It is no command.
    Nothing(String),
    /// It is not followed.
    Refused(String),
    /// It was followed.
    Done {
        /// What was done, in a sentence.
        result: String,
        /// What a later job, which may write, has to deliver.
        delivery: Option<DeliveryOrder>,
    },
}

impl Session<'_> {
    /// Follows the command of a comment, or says in a reply why not.
    ///
    /// # Errors
    /// This is no job that could, or the server does not answer.
    pub fn steer(&self, options: &SteerOptions) -> Result<Steered, Error> {
        let id = match options.comment {
            Some(id) => id,
            None => match of_event(self)? {
                Some(id) => id,
                None => return Ok(nothing("the comment does not begin with `/ll-loop`")),
            },
        };
        let server = JobServer::of_job(self, "commands are followed", "pull-requests: write")?;
        let JobServer { api, repository, .. } = &server;
        let found = match answers::find(api, repository, id) {
            Ok(found) => found,
            Err(ApiError::NotFound { .. }) => {
                return Ok(nothing("the comment is gone, or is on no pull request"));
            }
            Err(error) => return Err(unanswered(&error)),
        };
        let written = command::read(&found.comment.body);
        // Looked at once more: it may have been edited since the event, and another comment may be named.
        if written == Err(CommandFault::NotACommand) {
            return Ok(nothing("the comment does not begin with `/ll-loop`"));
        }
        // At once, so that its author sees that it was heard: what follows takes many requests.
        self.react(&server, id, Reaction::Eyes);
        let listed = pull_comments::list(api, repository, found.pull.number);
        let comments = listed.map_err(|error| unanswered(&error))?;
        let sticky =
            pull_comments::own(api, &comments, reply::is_reply).map_err(|error| unanswered(&error))?;
        let mut log = sticky.map(|sticky| reply::log_of(sticky.body())).unwrap_or_default();
        let commands = comments.iter().filter_map(PullComment::possible_command);
        let askers = &askers(commands, &log, id);
        let desk = Desk { server: &server, found: &found, comments: &comments, askers, options };
        let mut heard = heard(&found, &written);
        let done = written.map_err(NotDone::from).and_then(|written| desk.follow(&written, &log, &heard));
        let (steered, is_help) = match done {
            // Nothing is written to the log of commands, so the job can run again.
            Err(NotDone::Unavailable(error)) => return Err(unanswered(&error)),
            Err(NotDone::Refused(refusal)) => {
                (Steered::Refused(one_line(&refusal.to_string(), LONGEST_RESULT)), false)
            }
            Ok(Followed { result, delivery, is_help }) => {
                (Steered::Done { result: one_line(&result, LONGEST_RESULT), delivery }, is_help)
            }
        };
        heard.is_taken = matches!(steered, Steered::Done { .. });
        if let Steered::Done { result, .. } | Steered::Refused(result) = &steered {
            heard.result.clone_from(result);
        }
        self.tell(&desk, sticky.map(|sticky| sticky.id), &mut log, heard, is_help);
        Ok(steered)
    }

    /// Reports the result of a comment: by a reaction, and in the one reply. Programs get none, lest two of them talk for ever.
    fn tell(
        &self,
        desk: &Desk<'_>,
        sticky: Option<u64>,
        log: &mut CommandLog,
        heard: HeardCommand,
        is_help: bool,
    ) {
        let reaction = if heard.is_taken { Reaction::Up } else { Reaction::Down };
        let is_silent =
            !heard.is_taken && (desk.found.comment.author.is_bot || !log.replies_to(heard.author));
        // A job that runs again must not add the same comment twice.
        if is_silent || log.heard().iter().any(|known| known.comment == heard.comment) {
            return;
        }
        self.react(desk.server, heard.comment, reaction);
        log.add(heard);
        let JobServer { api, repository, .. } = desk.server;
        let text = reply::render(log, is_help);
        if let Err(error) = pull_comments::write(api, repository, desk.found.pull.number, sticky, &text) {
            self.talk.warning(&format!("cannot write the reply: {error}"));
        }
    }

    fn react(&self, server: &JobServer, comment: u64, reaction: Reaction) {
        if let Err(error) = pull_comments::react(&server.api, &server.repository, comment, reaction) {
            self.talk.warning(&format!("cannot react to the comment: {error}"));
        }
    }
}

fn nothing(why: &str) -> Steered {
    Steered::Nothing(why.to_owned())
}

/// Returns the id of the comment that set off the job, if it looks like a command. Only a new one counts.
fn of_event(session: &Session<'_>) -> Result<Option<u64>, Error> {
    let job = WorkflowJob::read(&session.env.lookup());
    let is_comment = job.event_name.as_deref() == Some("issue_comment");
    let path: PathBuf = job.event_path.filter(|_| is_comment).ok_or_else(|| {
        Error::refused("no comment set off this job")
            .with_hint("run it in a workflow with `on: issue_comment`, or name a comment with `--comment`")
    })?;
    let text =
        read::text(&path, MAX_PAYLOAD).map_err(|error| Error::failed("cannot read the event", &error))?;
    let payload: Value = serde_json::from_str(&text)
        .map_err(|error| Error::failed("cannot read the event", &error).of_kind(Kind::Failed))?;
    let is_new = payload.get("action").and_then(Value::as_str) == Some("created");
    let body = payload.pointer("/comment/body").and_then(Value::as_str).unwrap_or("");
    let is_command = is_new && command::read(body) != Err(CommandFault::NotACommand);
    let id = payload.pointer("/comment/id").and_then(Value::as_u64).filter(|_| is_command);
    Ok(id)
}

/// Describes a command before it is known what comes of it.
fn heard(found: &FoundAnswer, written: &Result<WrittenCommand, CommandFault>) -> HeardCommand {
    let FoundAnswer { comment, pull, .. } = found;
    let line = first_line(&comment.body);
    let said = match written {
        Ok(written) => match written.name() {
            Some(name) => format!("{} {name}", written.verb.word()),
            None => written.verb.word().to_owned(),
        },
        // What is not understood is not repeated either.
        Err(_) => "?".to_owned(),
    };
    // The same answer of another person is another answer.
    let is_answer = matches!(
        written,
        Ok(WrittenCommand {
            verb: Verb::Answer(AnswerKind::Approve | AnswerKind::Reject | AnswerKind::Answer),
            ..
        })
    );
    let whose = if is_answer { comment.author.id } else { 0 };
    HeardCommand {
        comment: comment.id,
        author: comment.author.id,
        who: one_line(&comment.author.name, 60),
        said,
        digest: Sum::of(format!("{whose} {line}").as_bytes()),
        sha: pull.head.clone(),
        at: Clock::start().now(),
        is_taken: false,
        result: String::new(),
    }
}
