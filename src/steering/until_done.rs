//! Goes on with runs that are unattended: what was handed off by a deadline or a quota is started again until it is over,
//! questions without an answer in time take their verdict, and those of closed pull requests end.

use serde_json::json;

use crate::base::time::Timestamp;
use crate::ci::github::standing_runs::{StandingRun, StandingRuns};
use crate::context::Session;
use crate::context::error::Error;
use crate::context::job_server::{JobServer, unanswered};
use crate::forge::github::api::ApiError;
use crate::forge::github::code_origin::{self, CodeOrigin};
use crate::forge::github::pull_list::{self, WatchedPull};
use crate::forge::github::workflow_control::{self, DispatchedRun};
use crate::forge::github::workflow_job::WorkflowJob;
use crate::forge::github::{pull_comments, workflow_run};
use crate::people::next_step::{NextStep, WaitingFacts, next_step};
use crate::people::reply;
use crate::people::run_wait::RunWait;
use crate::process::clock::Clock;

/// The most open pull requests that are looked at, the last that were updated.
// The statuses of each are a request of their own, and a token of a job has 1,000 requests an hour.
const MOST_OPEN: usize = 100;

/// The most closed pull requests that are looked at, the last ones.
const MOST_CLOSED: usize = 30;

/// How runs are gone on with.
#[derive(Clone, Debug)]
pub struct UntilDoneOptions {
    /// The loops that are meant; without any, all.
    pub loops: Vec<String>,
    /// How many runs of workflows may continue the first one of a run.
    pub max_chain: u32,
    /// How many are started at most, by this call.
    pub max_starts: u32,
    /// How many runs of the repository a day may start by dispatch, whoever asks for them.
    pub max_day: Option<u64>,
}

/// A commit at which runs may wait.
struct WatchedHead {
    /// How people know it.
    shown: String,
    /// The branch on which a workflow is started.
    git_ref: String,
    sha: String,
    /// Its pull request, where that is closed.
    closed: Option<u64>,
}

/// Why the workflow of a run is not started.
#[derive(Debug, thiserror::Error)]
enum NotStarted {
    #[error("as many runs were started as may be")]
    Enough,
    #[error("its workflow does not run this repository's own code")]
    NotOurs,
    #[error("`{workflow}` is not started: {reason}")]
    Refused { workflow: String, reason: ApiError },
}

/// One walk through the commits.
struct Round<'r> {
    server: JobServer,
    options: &'r UntilDoneOptions,
    now: Timestamp,
    /// How many may be started still.
    left: u32,
    /// What was done, a line for each.
    lines: Vec<String>,
}

impl Session<'_> {
    /// Goes on with what waits at the heads of pull requests and of the branch of this job. Returns what was done, a line for
    /// each.
    ///
    /// # Errors
    /// This is no job that could, or the server does not answer.
    pub fn until_done(&self, options: &UntilDoneOptions) -> Result<Vec<String>, Error> {
        let server = JobServer::of_job(self, "runs are gone on with", "actions: write")?;
        let now = Clock::start().now();
        let mut left = options.max_starts;
        if let Some(max) = options.max_day {
            let JobServer { api, repository, .. } = &server;
            let started = pull_list::dispatched_since(api, repository, &now.day())
                .map_err(|error| unanswered(&error))?;
            left = left.min(u32::try_from(max.saturating_sub(started)).unwrap_or(u32::MAX));
        }
        let Heads { heads, are_cut } =
            heads(&server, &WorkflowJob::read(&self.env.lookup())).map_err(|error| unanswered(&error))?;
        let mut round = Round { server, options, now, left, lines: Vec::new() };
        if are_cut {
            round.lines.push(format!(
                "of more than {MOST_OPEN} open pull requests, the {MOST_OPEN} that were updated last are looked at"
            ));
        }
        for head in &heads {
            round.at(head).map_err(|error| unanswered(&error))?;
        }
        Ok(round.lines)
    }
}

/// The commits at which runs may wait.
struct Heads {
    heads: Vec<WatchedHead>,
    /// Whether there are further open pull requests, which were not looked at.
    are_cut: bool,
}

/// Returns the commits at which runs may wait: of the branch of the job, of open pull requests, and of those closed lately.
/// What a fork proposes goes on nowhere.
fn heads(server: &JobServer, job: &WorkflowJob) -> Result<Heads, ApiError> {
    let JobServer { api, repository, .. } = server;
    let of_branch =
        job.git_ref.clone().zip(job.sha.clone()).filter(|(name, _)| name.starts_with("refs/heads/"));
    let mut heads: Vec<WatchedHead> = of_branch
        .map(|(git_ref, sha)| WatchedHead { shown: git_ref.clone(), git_ref, sha, closed: None })
        .into_iter()
        .collect();
    // All of them: a commit that was proposed again must not count as one of a closed pull request.
    let open = pull_list::list(api, repository, true, usize::MAX)?;
    let are_cut = open.len() > MOST_OPEN;
    let (looked_at, others) = open.split_at(open.len().min(MOST_OPEN));
    let closed = pull_list::list(api, repository, false, MOST_CLOSED)?;
    let is_open_elsewhere = |sha: &String| others.iter().any(|pull| pull.is_own && pull.sha == *sha);
    let open = looked_at.iter().map(|pull| (pull, true));
    for (pull, is_open) in open.chain(closed.iter().map(|pull| (pull, false))) {
        let WatchedPull { number, branch, sha, is_own } = pull;
        // A branch may be proposed twice, and one that is merged be that of the job.
        let is_known = heads.iter().any(|known| known.sha == *sha) || (!is_open && is_open_elsewhere(sha));
        if *is_own && !is_known {
            let (shown, git_ref) = (format!("#{number}"), format!("refs/heads/{branch}"));
            let closed = (!is_open).then_some(*number);
            heads.push(WatchedHead { shown, git_ref, sha: sha.clone(), closed });
        }
    }
    Ok(Heads { heads, are_cut })
}

impl Round<'_> {
    fn at(&mut self, head: &WatchedHead) -> Result<(), ApiError> {
        let standing = StandingRuns::at(&self.server.api, &self.server.repository, &head.sha)?;
        for run in standing.last() {
            let Some(wait) = run.wait.as_ref().filter(|_| self.is_meant(run)) else { continue };
            let counted =
                if *wait == RunWait::Legs { standing.attempts_of(run) } else { standing.links_of(run) };
            let facts = WaitingFacts {
                is_closed: head.closed.is_some(),
                // Where the number is not known, nothing goes on that it could keep from it.
                links: *counted.as_ref().unwrap_or(&u32::MAX),
                max_chain: self.options.max_chain,
                now: self.now,
            };
            match next_step(wait, facts) {
                NextStep::Wait => {}
                NextStep::GoOn => self.start(head, run, facts.links, "goes on")?,
                NextStep::Repeat => self.repeat(head, run)?,
                NextStep::TakeTimeout => self.start(head, run, 0, "takes `timeout`, as nobody answered")?,
                NextStep::EndChain => {
                    if let Err(unknown) = counted {
                        self.say(head, run, &format!("waits: {unknown}"));
                        continue;
                    }
                    let why = format!(
                        "handed off, and nothing goes on: the chain had its {} further runs",
                        facts.max_chain
                    );
                    self.end(head, run, &why)?;
                }
                NextStep::Cancel => self.cancel(head, run, wait)?,
            }
        }
        Ok(())
    }

    fn is_meant(&self, run: &StandingRun) -> bool {
        let loops = &self.options.loops;
        loops.is_empty() || loops.contains(&run.names.loop_name)
    }

    /// Starts the workflow of a run again, and says so in its status, so that nobody starts it twice.
    fn start(
        &mut self,
        head: &WatchedHead,
        run: &StandingRun,
        depth: u32,
        what: &str,
    ) -> Result<(), ApiError> {
        match self.started(head, run, depth)? {
            Ok(page) => self.say(head, run, &format!("{what}{page}")),
            Err(why) => self.say(head, run, &format!("waits: {why}")),
        }
        Ok(())
    }

    /// Starts the workflow of a run again, and returns what leads to its page, or why it was not started.
    fn started(
        &mut self,
        head: &WatchedHead,
        run: &StandingRun,
        depth: u32,
    ) -> Result<Result<String, NotStarted>, ApiError> {
        let JobServer { api, repository, .. } = &self.server;
        if self.left == 0 {
            return Ok(Err(NotStarted::Enough));
        }
        let number = run.names.run;
        let of = workflow_run::get(api, repository, number)?;
        let is_own = code_origin::of_run(api, repository, None, &of, None)? == CodeOrigin::Own;
        let Some(workflow) = of.workflow().filter(|_| is_own) else { return Ok(Err(NotStarted::NotOurs)) };
        let mut inputs = json!({"resume-from": format!("run:{number}"), "sha": head.sha});
        // GitHub refuses an input that a workflow does not declare, and only those that chain need this one.
        if depth > 0 {
            inputs["chain-depth"] = json!(depth.to_string());
        }
        match workflow_control::dispatch(api, repository, workflow, &head.git_ref, &inputs) {
            Ok(DispatchedRun { number: next, page }) => {
                run.hand_on(api, repository, &head.sha, page.as_deref(), next)?;
                self.left -= 1;
                Ok(Ok(page.map_or_else(String::new, |page| format!(": {page}"))))
            }
            // Everything else would fail as well: the round ends here, and the next one begins where it stopped.
            Err(error) if error.is_unavailable() => Err(error),
            Err(reason) => Ok(Err(NotStarted::Refused { workflow: workflow.to_owned(), reason })),
        }
    }

    /// Runs the failed legs of a run again, each of which goes on with what it has handed off.
    fn repeat(&mut self, head: &WatchedHead, run: &StandingRun) -> Result<(), ApiError> {
        let JobServer { api, repository, .. } = &self.server;
        if self.left == 0 {
            self.say(head, run, &format!("waits: {}", NotStarted::Enough));
            return Ok(());
        }
        match workflow_control::rerun_failed(api, repository, run.names.run) {
            Ok(()) => {
                run.hand_on(api, repository, &head.sha, None, Some(run.names.run))?;
                self.left -= 1;
                self.say(head, run, "its legs go on in the same run");
            }
            Err(error) if error.is_unavailable() => return Err(error),
            Err(error) => self.say(head, run, &format!("waits: its legs do not run again: {error}")),
        }
        Ok(())
    }

    /// Ends what waits on a closed pull request. A run that asks ends itself, in a job that finds the pull request closed, so that
    /// its journal says so; where none can be started, its status does, and a comment.
    fn cancel(&mut self, head: &WatchedHead, run: &StandingRun, wait: &RunWait) -> Result<(), ApiError> {
        const CANCELLED: &str = "cancelled: the pull request is closed";
        let (RunWait::Answer(question), Some(number)) = (wait, head.closed) else {
            return self.end(head, run, CANCELLED);
        };
        match self.started(head, run, 0)? {
            Ok(page) => self.say(head, run, &format!("ends, as the pull request is closed{page}")),
            // Not ended by its status alone: the next round may start it, and then its journal says so, too.
            Err(NotStarted::Enough) => self.say(head, run, &format!("waits: {}", NotStarted::Enough)),
            Err(why @ (NotStarted::NotOurs | NotStarted::Refused { .. })) => {
                self.end(head, run, CANCELLED)?;
                self.say(head, run, &format!("its journal does not say so: {why}"));
                let JobServer { api, repository, .. } = &self.server;
                let text = reply::cancelled(&run.names.loop_name, &question.code);
                if let Err(error) = pull_comments::write(api, repository, number, None, &text) {
                    // Its status says it as well.
                    self.say(head, run, &format!("that is not said on the pull request: {error}"));
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, head: &WatchedHead, run: &StandingRun, why: &str) -> Result<(), ApiError> {
        run.end(&self.server.api, &self.server.repository, &head.sha, why)?;
        self.say(head, run, why);
        Ok(())
    }

    fn say(&mut self, head: &WatchedHead, run: &StandingRun, what: &str) {
        self.lines.push(format!("{}: {} ({}): {what}", head.shown, run.names.loop_name, run.names.instance));
    }
}
