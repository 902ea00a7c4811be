//! GitHub Actions, and Gitea and Forgejo, whose runners speak the same protocol on the log and in files.

mod abandoned;
mod check;
pub mod commands;
mod comment;
mod commit_status;
mod cut;
mod dispatch;
pub mod file_commands;
pub mod log_gate;
pub mod relay;
pub mod reporter;
mod shared;
pub mod standing_runs;
pub mod target;

use std::io::{self, Write};
use std::path::PathBuf;

use abandoned::AbandonedChannel;
use check::CheckChannel;
use commands::WorkflowCommands;
use comment::CommentChannel;
use commit_status::StatusChannel;
use reporter::{Channel, GithubReporter};
use target::{NoTarget, ReportTarget};

use super::chain::{ChainLink, NextRun};
use super::job::{Job, Variables};
use super::reported::{ReportRequest, Reporter};
use super::service::{CiService, LastWord, ProviderRow, annotate};
use crate::base::explanation::Explanation;
use crate::base::lookup::Lookup;
use crate::forge::github::github_server::Flavour;
use crate::forge::github::other_run::OtherRun;
use crate::report::annotations::Checkout;
use crate::report::dialect::Dialect;
use crate::report::digest::Digest;
use crate::report::formats::{outputs, summary};

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["github", "gitea", "forgejo"],
    detect,
    make: |name, env| Box::new(Github::new(name, env)),
    withheld: WITHHELD,
    tokens: TOKENS,
};

/// Credentials of the runner, and the files by which a step speaks to it. The files stay where they are, so that
/// keeping their names prevents accidents and not a determined action of the same user.
const WITHHELD: &[&str] = &[
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_RUNTIME_URL",
    "ACTIONS_RESULTS_URL",
    "ACTIONS_ORCHESTRATION_ID",
    "ACTIONS_CACHE_",
    // `ACTIONS_ID_TOKEN_REQUEST_TOKEN` is the same token as that of the runtime.
    "ACTIONS_ID_TOKEN_REQUEST_",
    "INPUT_",
    "STATE_",
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_ARTIFACTS",
    // Gitea and Forgejo name the same files in variables of their own as well.
    "GITEA_ENV",
    "FORGEJO_ENV",
    "FORGEJO_PATH",
    "FORGEJO_OUTPUT",
    "FORGEJO_STATE",
    "FORGEJO_STEP_SUMMARY",
];

/// The token of the job.
const TOKENS: &[&str] = &["GITHUB_TOKEN", "GH_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN"];

const VARIABLES: Variables = Variables {
    workspace: "GITHUB_WORKSPACE",
    name: "GITHUB_JOB",
    run: "GITHUB_RUN_ID",
    attempt: "GITHUB_RUN_ATTEMPT",
};

/// The ones that imitate GitHub set its variable as well as their own.
fn detect(env: Lookup<'_>) -> Option<&'static str> {
    let known = [("FORGEJO_ACTIONS", "forgejo"), ("GITEA_ACTIONS", "gitea"), ("GITHUB_ACTIONS", "github")];
    known.iter().find(|(variable, _)| is_true(env, variable)).map(|(_, name)| *name)
}

/// A job of GitHub Actions.
#[derive(Debug)]
struct Github {
    flavour: Flavour,
    job: Job,
    output: Option<PathBuf>,
    summary: Option<PathBuf>,
}

impl Github {
    /// Reads from the environment what the runner with this name says about the step.
    fn new(name: &str, env: Lookup<'_>) -> Self {
        let flavour = match name {
            "forgejo" => Flavour::Forgejo,
            "gitea" => Flavour::Gitea,
            _ => Flavour::Github,
        };
        let file = |name| env(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let job = Job::read(env, &VARIABLES);
        Self { flavour, job, output: file("GITHUB_OUTPUT"), summary: file("GITHUB_STEP_SUMMARY") }
    }
}

impl CiService for Github {
    fn name(&self) -> &'static str {
        match self.flavour {
            Flavour::Github => "github",
            Flavour::Gitea => "gitea",
            Flavour::Forgejo => "forgejo",
        }
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(WorkflowCommands::default())
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn shows_colours(&self) -> bool {
        true
    }

    /// With that variable set, a line on the log can change the environment of later steps.
    fn refusal(&self, env: Lookup<'_>) -> Option<String> {
        let name = "ACTIONS_ALLOW_UNSECURE_COMMANDS";
        is_true(env, name)
            .then(|| format!("`{name}` is set, which lets a line of output change the job; unset it"))
    }

    /// The runner reads the file after the step however it ended, and of two values the later one counts.
    fn announce(&self, outputs: &[(&'static str, String)]) -> io::Result<()> {
        self.output.as_deref().map_or(Ok(()), |path| file_commands::append_outputs(path, outputs))
    }

    fn summarize(&self, markdown: &str) -> io::Result<()> {
        self.summary.as_deref().map_or(Ok(()), |path| file_commands::append_summary(path, markdown))
    }

    fn summarized(&self) -> u64 {
        self.summary.as_deref().map_or(0, |path| fs_err::metadata(path).map_or(0, |found| found.len()))
    }

    fn summarize_before(&self, since: u64, markdown: &str) -> io::Result<()> {
        let summary = self.summary.as_deref();
        summary.map_or(Ok(()), |path| file_commands::insert_in_summary(path, since, markdown))
    }

    fn stores_artifacts(&self) -> bool {
        true
    }

    fn publish(&self, digest: &Digest, tree: &Checkout<'_>, log: &mut dyn Write) -> Vec<io::Error> {
        let annotated = annotate(&WorkflowCommands::default(), digest, tree, log);
        let output =
            self.output.as_deref().map(|path| file_commands::append_outputs(path, &outputs::outputs(digest)));
        let summary =
            self.summary.as_deref().map(|path| file_commands::append_summary(path, &summary::render(digest)));
        // One that fails does not keep the others from being written.
        [Some(annotated), output, summary].into_iter().flatten().filter_map(Result::err).collect()
    }

    /// A status goes without saying where there is a token and somebody waits for it. Everything else has to be asked for, and is missed when it
    /// cannot be.
    fn report(&self, request: ReportRequest<'_>) -> (Option<Box<dyn Reporter>>, Vec<String>) {
        let options = request.options;
        let mut warnings = Vec::new();
        let mut channels: Vec<Box<dyn Channel>> = Vec::new();
        if has_status(request) {
            channels.push(Box::new(StatusChannel));
        }
        if options.check && self.flavour == Flavour::Github {
            channels.push(Box::<CheckChannel>::default());
        } else if options.check {
            warnings.push(format!("there will be no check run: {} does not support them", self.name()));
        }
        if options.comment {
            channels.push(Box::new(CommentChannel));
        }
        let is_reported = !channels.is_empty();
        // Only those take the token of a job away when it is cancelled.
        if self.flavour != Flavour::Github && !request.is_over {
            channels.push(Box::new(AbandonedChannel));
        }
        if channels.is_empty() {
            return (None, warnings);
        }
        let begun = match ReportTarget::new(self.flavour, request) {
            Ok(target) if request.is_over => {
                GithubReporter::of_end(target, channels).map_err(Explanation::from)
            }
            Ok(target) => GithubReporter::begin(target, channels).map_err(Explanation::from),
            // Nobody asked for a report, so a laptop without a token gets no warning.
            Err(NoTarget::Token) if !options.is_asked() => return (None, warnings),
            Err(_) if !is_reported => return (None, warnings),
            Err(error) => Err(error.into()),
        };
        match begun {
            Ok(reporter) => (Some(Box::new(reporter)), warnings),
            Err(why) => {
                warnings.push(format!("{} gets no report of the run: {why}", self.name()));
                (None, warnings)
            }
        }
    }

    fn last_word(&self, request: ReportRequest<'_>) -> Option<LastWord> {
        // A run that sets no status by itself has none that could be left pending.
        let target = has_status(request).then(|| ReportTarget::new(self.flavour, request));
        let target = target?.ok()?;
        Some(Box::new(move |text| {
            commit_status::set(&target, "error", text, target.url()).map_err(Explanation::from)
        }))
    }

    fn end_waiting(&self, request: ReportRequest<'_>, text: &str) -> Result<(), Explanation> {
        let here = match ReportTarget::new(self.flavour, request) {
            Ok(here) => here,
            // Without a token, no run has set a status.
            Err(NoTarget::Token) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // A job of `workflow_run` delivers for another run, whose commit waits.
        let target = match OtherRun::of_event(request.env) {
            Some(run) => run.target(here.api(), here.repository(), request.subject.clone()),
            None => here,
        };
        let permission = target.server().permission("statuses: write").to_owned();
        commit_status::end_waiting(&target, text)
            .map_err(|error| Explanation::new(error.needing(&permission).to_string()))
    }

    fn go_on(&self, request: ReportRequest<'_>, link: Option<ChainLink>) -> (NextRun, Option<String>) {
        let unstored = || NextRun::NotStarted("its files were not uploaded".to_owned());
        let target = match ReportTarget::new(self.flavour, request) {
            Ok(target) => target,
            Err(_) if link.is_none() => return (unstored(), None),
            Err(error) => return (NextRun::NotStarted(error.to_string()), None),
        };
        let next = link.map_or_else(unstored, |link| dispatch::go_on(&target, link));
        let told = if has_status(request) { dispatch::tell(&target, &next) } else { Ok(()) };
        (next, told.err().map(|error| format!("the commit status is not up to date: {error}")))
    }
}

/// Tells whether a run sets the status of its commit. Where the clock or a person sets off the job, nobody waits for a
/// verdict about the commit; who names a commit does.
fn has_status(request: ReportRequest<'_>) -> bool {
    request.options.status.unwrap_or(is_about_a_commit(request.env) || request.options.sha.is_some())
}

/// Tells whether a job is about one commit. Those that a clock or a person sets off are about the repository.
pub(crate) fn is_about_a_commit(env: Lookup<'_>) -> bool {
    !matches!(env("GITHUB_EVENT_NAME").as_deref(), Some("schedule" | "workflow_dispatch"))
}

fn is_true(env: Lookup<'_>, name: &str) -> bool {
    env(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
