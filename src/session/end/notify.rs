//! Tells others when the outcome of a loop on a branch has changed: after all reports, for a bounded time, and without a word
//! on how the run ended. Nobody is told of what strangers set off.

use std::path::Path;
use std::time::Duration;

use super::next_run::subject;
use crate::base::run_key::RunKey;
use crate::base::text::one_line;
use crate::ci::github::standing_runs::{LastOutcome, StandingRuns};
use crate::ci::job_page;
use crate::ci::strangers::why_nobody_is_asked;
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::options::RunOptions;
use crate::engine::outcome::Outcome;
use crate::evaluate::observation::Stop;
use crate::forge::github::api::ApiError;
use crate::forge::github::other_run::ancestors;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::forge::webhook::{self, WebhookFault};
use crate::machine::{NotifyRule, NotifyShape, NotifyTarget};
use crate::people::notice::{BranchOutcome, Notice, shape_for};
use crate::process::guard_pipe::Guard;
use crate::process::signal::Cancel;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::report::digest::{Digest, EndKind};
use crate::session::read::job_server::JobServer;

/// How long a command that is told may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many commits back an earlier outcome is looked for.
// Each commit is a request to the server.
const MOST_COMMITS: usize = 10;

/// What a notice says of the run.
pub(super) struct NoticeFacts {
    now: BranchOutcome,
    outcome: Outcome,
    is_verified: bool,
    sentence: String,
    code: Option<String>,
    name: String,
}

impl NoticeFacts {
    /// Takes them from a run that ended in a way that others may want to know.
    pub(super) fn of(digest: &Digest) -> Option<Self> {
        let end = digest.end()?;
        let now = match (digest.end_kind(), end.outcome) {
            (_, Outcome::OverBudget) => BranchOutcome::OverBudget,
            (_, Outcome::Interrupted | Outcome::LeaseLost) | (EndKind::NotRun, _) => return None,
            (EndKind::HandedOff, _) => digest.awaiting().map(|_| BranchOutcome::Waiting)?,
            (EndKind::Success, _) => BranchOutcome::Green,
            (EndKind::Failure | EndKind::Error, _) => BranchOutcome::Red,
        };
        Some(Self {
            now,
            outcome: end.outcome,
            is_verified: end.verified,
            sentence: digest.sentence(),
            code: digest.awaiting().map(|awaiting| awaiting.code.clone()),
            name: digest.loop_name().to_owned(),
        })
    }
}

/// Somebody who is told.
enum Receiver<'r> {
    Address(&'r str),
    Command(&'r str),
}

/// Who is told of a run, and which run that is.
pub(super) struct NoticeSender<'t> {
    pub(super) notify: Option<&'t NotifyRule>,
    pub(super) options: &'t RunOptions,
    pub(super) instance: &'t str,
    pub(super) key: Option<&'t RunKey>,
    pub(super) root: &'t Path,
}

impl NoticeSender<'_> {
    /// Tells whoever wants to know, if it is news. What goes wrong is a warning.
    pub(super) async fn tell(self, facts: NoticeFacts, cancel: &mut Cancel, session: &Session<'_>) {
        if !matches!(self.options.audience, Audience::Ci(_)) {
            return;
        }
        let variable = |name: &str| session.env.get(name).filter(|value| !value.is_empty());
        let of_loop = self.notify.and_then(|notify| match &notify.to {
            NotifyTarget::Url(url) => Some(Receiver::Address(url)),
            NotifyTarget::Variable(name) => variable(name).map(Receiver::Address),
            NotifyTarget::Command(command) => Some(Receiver::Command(command)),
        });
        let of_option = self.options.notify.as_deref().map(Receiver::Address);
        let receivers: Vec<Receiver<'_>> = of_loop.into_iter().chain(of_option).collect();
        if receivers.is_empty() || self.options.assignment.is_some() {
            return;
        }
        // Strangers could have their words sent to the receiver.
        if why_nobody_is_asked(&session.env.lookup()).is_some() {
            session.talk.note("nobody is notified: strangers can set off this event with what runs here");
            return;
        }
        let Some(notice) = self.notice(facts, session) else { return };
        for receiver in receivers {
            let told = match &receiver {
                Receiver::Address(address) => self.post(address, &notice, session),
                Receiver::Command(command) => self.run(command, &notice, cancel, session).await,
            };
            if let Err(why) = told {
                let why = one_line(&session.redactor.text(&why.to_string()), 300);
                session.talk.warning(&format!("the change of the outcome was not taken by `notify`: {why}"));
            }
        }
    }

    /// Returns what is told; nothing where it is no news.
    fn notice(&self, facts: NoticeFacts, session: &Session<'_>) -> Option<Notice> {
        let env = &session.env.lookup();
        let NoticeFacts { now, outcome, is_verified, sentence, code, name } = facts;
        let key = subject(&name, self.instance, self.key, session).key;
        let commit = self.options.commit.sha.clone().or_else(|| WorkflowEvent::read(env).sha);
        let of_run = LastOutcome { loop_name: &name, key: key.as_deref(), instance: self.instance };
        let found = commit.as_deref().map(|sha| before(&of_run, sha, code.as_deref(), session));
        let before = match found {
            Some(Ok(KnownBefore::Asked)) => return None,
            Some(Ok(KnownBefore::Outcome(before))) => before,
            // What cannot be found out is not known, and somebody is told rather once too often.
            Some(Err(_)) | None => None,
        };
        let head = WorkflowJob::read(env).git_ref;
        let branch =
            head.map(|name| name.trim_start_matches("refs/heads/").trim_start_matches("refs/").to_owned());
        now.is_news(before).then(|| Notice {
            loop_name: name,
            key,
            branch,
            before,
            now,
            outcome: outcome.word().to_owned(),
            is_verified,
            sentence: session.redactor.text(&sentence).into_owned(),
            code,
            run: self.instance.to_owned(),
            commit,
            page: job_page::of_job(env),
        })
    }

    fn post(&self, address: &str, notice: &Notice, session: &Session<'_>) -> Result<(), NotTold> {
        let host = webhook::host(address).unwrap_or_default();
        let shape = self.shape().unwrap_or_else(|| shape_for(&host));
        Ok(webhook::post(address, &notice.document(shape), &session.env.lookup())?)
    }

    /// Runs the command of the loop, which gets the document and is ended where it takes too long.
    async fn run(
        &self,
        command: &str,
        notice: &Notice,
        cancel: &mut Cancel,
        session: &Session<'_>,
    ) -> Result<(), NotTold> {
        let document = notice.document(self.shape().unwrap_or(NotifyShape::Plain));
        let program = Program {
            argv: ["bash", "-c", command].map(str::to_owned).to_vec(),
            env: session.env.for_actions(false).into_iter().collect(),
            cwd: Some(self.root.to_owned()),
            stdin: Some(format!("{document}\n").into_bytes()),
            guard: Guard::default(),
        };
        let limits = ProcessLimits { end: Some((PATIENCE, Stop::Timeout)), idle: None, first: None };
        // What it prints is for nobody.
        let seen = spawn::run(&program, limits, cancel, &mut |_, _| Heard::More).await;
        match (seen.failure, seen.stop, seen.exit_code) {
            (Some(why), ..) => Err(NotTold::NotStarted(why)),
            (None, Some(_), _) => Err(NotTold::Stopped),
            (None, None, 0) => Ok(()),
            (None, None, code) => Err(NotTold::Failed(code)),
        }
    }

    /// Returns the shape that the loop says.
    fn shape(&self) -> Option<NotifyShape> {
        self.notify.and_then(|notify| notify.shape)
    }
}

/// Why somebody was not told.
#[derive(Debug, thiserror::Error)]
enum NotTold {
    #[error("{0}")]
    Webhook(#[from] WebhookFault),
    #[error("its command cannot be started: {0}")]
    NotStarted(String),
    #[error("its command was stopped after {} s", PATIENCE.as_secs())]
    Stopped,
    #[error("its command ended with the exit code {0}")]
    Failed(i32),
}

/// What is known of the time before a run.
enum KnownBefore {
    /// How the loop stood, where that is known.
    Outcome(Option<BranchOutcome>),
    /// The same question was asked already.
    Asked,
}

/// Asks the server how the loop stood before: at the commit of the run, or at one of the last ones before it.
fn before(
    of: &LastOutcome<'_>,
    sha: &str,
    code: Option<&str>,
    session: &Session<'_>,
) -> Result<KnownBefore, ApiError> {
    let Ok(JobServer { api, repository, .. }) =
        JobServer::of_job(session, "others are told", "statuses: read")
    else {
        return Ok(KnownBefore::Outcome(None));
    };
    let at_commit = StandingRuns::at(&api, &repository, sha)?;
    if code.is_some_and(|code| at_commit.times_asked(code) > 1) {
        return Ok(KnownBefore::Asked);
    }
    if let Some(before) = at_commit.before(of) {
        return Ok(KnownBefore::Outcome(Some(before)));
    }
    for earlier in ancestors(&api, &repository, sha, MOST_COMMITS)? {
        if let Some(before) = StandingRuns::at(&api, &repository, &earlier)?.before(of) {
            return Ok(KnownBefore::Outcome(Some(before)));
        }
    }
    Ok(KnownBefore::Outcome(None))
}
