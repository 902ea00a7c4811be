//! Tells others when the outcome of a loop on a branch has changed: after all reports, for a bounded time, and without a word
//! on how the run ended. Nobody is told of what strangers set off.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::next_run::subject;
use crate::base::lookup::Lookup;
use crate::base::run_key::RunKey;
use crate::base::text::one_line;
use crate::ci::github::standing_runs::{LastOutcome, StandingRuns};
use crate::ci::job_page;
use crate::ci::strangers::why_nobody_is_asked;
use crate::context::audience::Audience;
use crate::context::job_server::JobServer;
use crate::context::options::RunOptions;
use crate::context::{Session, key_of_run};
use crate::engine::outcome::Outcome;
use crate::evaluate::observation::Stop;
use crate::forge::github::api::ApiError;
use crate::forge::github::other_run::ancestors;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::forge::webhook::{self, WebhookFault};
use crate::journal::files::RunFiles;
use crate::machine::{NotifyRule, NotifyShape, NotifyTarget};
use crate::people::notice::{BranchOutcome, Notice, shape_for};
use crate::process::guard_pipe::Guard;
use crate::process::signal::Cancel;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::report::digest::{Digest, EndKind};

/// How long a command that is told may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many commits back an earlier outcome is looked for.
// Each commit is a request to the server.
const MOST_COMMITS: usize = 10;

/// What a notice says of the run.
pub(crate) struct NoticeFacts {
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
            // First, since its end kind is that of an error, and a spent budget says nothing against the branch.
            (_, Outcome::OverBudget) => BranchOutcome::OverBudget,
            // A run that was stopped from outside, or not made, has found nothing out about the branch.
            (_, Outcome::Interrupted | Outcome::LeaseLost | Outcome::Cancelled) | (EndKind::NotRun, _) => {
                return None;
            }
            // Without a question it goes on elsewhere, and the part that ends it tells the outcome.
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
        let command = self.notify.and_then(|notify| match &notify.to {
            NotifyTarget::Command(command) => Some(command),
            NotifyTarget::Url(_) | NotifyTarget::Variable(_) => None,
        });
        let addresses = self.addresses(session);
        if addresses.is_empty() && command.is_none() || !self.is_of_interest() {
            return;
        }
        if is_of_strangers(session) {
            session.talk.note("nobody is notified: strangers can set off this event with what runs here");
            return;
        }
        let Some(notice) = self.notice(facts, session) else { return };
        for address in &addresses {
            complain(post(address, self.shape(), &notice, &session.env.lookup()).err(), session);
        }
        if let Some(command) = command {
            complain(self.run(command, &notice, cancel, session).await.err(), session);
        }
    }

    /// Returns the addresses that are told.
    fn addresses(&self, session: &Session<'_>) -> Vec<String> {
        let variable = |name: &str| session.env.get(name).map(str::to_owned);
        let of_loop = self.notify.and_then(|notify| match &notify.to {
            NotifyTarget::Url(url) => Some(url.clone()),
            NotifyTarget::Variable(name) => variable(name),
            NotifyTarget::Command(_) => None,
        });
        of_loop.into_iter().chain(self.options.notify.clone()).collect()
    }

    /// Tells whether others are told of such a run: not at home, and not of a leg, whose merge tells it.
    fn is_of_interest(&self) -> bool {
        matches!(self.options.audience, Audience::Ci(_)) && self.options.assignment.is_none()
    }

    /// Returns what is left to tell in case that the process of the run is killed: the address that the run names, because the
    /// command of a loop needs what is gone then.
    pub(super) fn if_killed(&self, loop_name: &str, session: &Session<'_>) -> Option<KilledNotice> {
        let addresses = self.addresses(session);
        if addresses.is_empty() || !self.is_of_interest() || is_of_strangers(session) {
            return None;
        }
        let notice = self.unsent(loop_name.to_owned(), session);
        Some(KilledNotice { addresses, shape: self.shape(), notice })
    }

    /// Returns what is told; nothing where it is no news.
    fn notice(&self, facts: NoticeFacts, session: &Session<'_>) -> Option<Notice> {
        let NoticeFacts { now, outcome, is_verified, sentence, code, name } = facts;
        let notice = Notice {
            now,
            outcome: outcome.word().to_owned(),
            is_verified,
            sentence: session.redactor.text(&sentence).into_owned(),
            code,
            ..self.unsent(name, session)
        };
        let server = JobServer::of_job(session, "others are told", "statuses: read").ok();
        news(notice, server.as_ref())
    }

    /// Returns what is known of the run before its end: it was killed.
    fn unsent(&self, loop_name: String, session: &Session<'_>) -> Notice {
        let env = &session.env.lookup();
        let head = WorkflowJob::read(env).git_ref;
        let branch =
            // Only branches have short names: `pull/5/merge` and `tags/v1` keep what tells them from a branch.
            head.map(|name| name.trim_start_matches("refs/heads/").trim_start_matches("refs/").to_owned());
        Notice {
            key: subject(&loop_name, self.instance, self.key, session).key,
            loop_name,
            branch,
            before: None,
            now: BranchOutcome::Red,
            outcome: Outcome::Interrupted.word().to_owned(),
            is_verified: false,
            sentence: String::new(),
            code: None,
            run: self.instance.to_owned(),
            commit: self.options.commit.sha.clone().or_else(|| WorkflowEvent::read(env).sha),
            page: job_page::of_job(env),
        }
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
            // Without tokens: the command is a part of the loop, and gets no more than its actions do.
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

/// Tells the address of a merge, which has no loop file, if its outcome is news.
pub(crate) fn tell_of_merge(
    facts: Option<NoticeFacts>,
    options: &RunOptions,
    files: &RunFiles,
    session: &Session<'_>,
) {
    let Some(facts) = facts else { return };
    let key = key_of_run::of_run(options, files.stem(), session);
    let sender = NoticeSender {
        notify: None,
        options,
        instance: files.instance(),
        key: key.as_ref(),
        root: files.loops(),
    };
    let addresses = sender.addresses(session);
    if addresses.is_empty() || !sender.is_of_interest() || is_of_strangers(session) {
        return;
    }
    let Some(notice) = sender.notice(facts, session) else { return };
    for address in &addresses {
        complain(post(address, None, &notice, &session.env.lookup()).err(), session);
    }
}

/// What the guard of a run tells if the process of the run is killed. It goes through the pipe of the guard, as the address may be
/// a secret.
#[derive(Serialize, Deserialize)]
pub(super) struct KilledNotice {
    addresses: Vec<String>,
    shape: Option<NotifyShape>,
    notice: Notice,
}

impl KilledNotice {
    /// Tells it, if it is news. Failures are dropped: no one is there to read them.
    pub(super) fn tell(self, sentence: &str, token: Option<&str>, env: Lookup<'_>) {
        let notice = Notice { sentence: sentence.to_owned(), ..self.notice };
        let server = JobServer::with_token(env, token);
        let Some(notice) = news(notice, server.as_ref()) else { return };
        for address in &self.addresses {
            let _untold = post(address, self.shape, &notice, env);
        }
    }
}

fn post(address: &str, shape: Option<NotifyShape>, notice: &Notice, env: Lookup<'_>) -> Result<(), NotTold> {
    let shape = shape.unwrap_or_else(|| shape_for(&webhook::host(address).unwrap_or_default()));
    Ok(webhook::post(address, &notice.document(shape), env)?)
}

fn is_of_strangers(session: &Session<'_>) -> bool {
    why_nobody_is_asked(&session.env.lookup()).is_some()
}

/// Warns of what was not told.
fn complain(why: Option<NotTold>, session: &Session<'_>) {
    let Some(why) = why else { return };
    let why = one_line(&session.redactor.text(&why.to_string()), 300);
    session.talk.warning(&format!("the change of the outcome was not taken by `notify`: {why}"));
}

/// Returns a notice with how the loop stood before, if there is something new in it.
fn news(notice: Notice, server: Option<&JobServer>) -> Option<Notice> {
    let of_run =
        LastOutcome { loop_name: &notice.loop_name, key: notice.key.as_deref(), instance: &notice.run };
    let asked = server.zip(notice.commit.as_deref());
    let found = asked.map(|(server, sha)| before(&of_run, sha, notice.code.as_deref(), server));
    let before = match found {
        Some(Ok(KnownBefore::Asked)) => return None,
        Some(Ok(KnownBefore::Outcome(before))) => before,
        // What cannot be found out is not known, and somebody is told rather once too often.
        Some(Err(_)) | None => None,
    };
    notice.now.is_news(before).then_some(Notice { before, ..notice })
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
    server: &JobServer,
) -> Result<KnownBefore, ApiError> {
    let JobServer { api, repository, .. } = server;
    let at_commit = StandingRuns::at(api, repository, sha)?;
    // The status of this very run is there already, since notices come after the reports: it counts once.
    if code.is_some_and(|code| at_commit.times_asked(code) > 1) {
        return Ok(KnownBefore::Asked);
    }
    if let Some(before) = at_commit.before(of) {
        return Ok(KnownBefore::Outcome(Some(before)));
    }
    for earlier in ancestors(api, repository, sha, MOST_COMMITS)? {
        if let Some(before) = StandingRuns::at(api, repository, &earlier)?.before(of) {
            return Ok(KnownBefore::Outcome(Some(before)));
        }
    }
    Ok(KnownBefore::Outcome(None))
}
