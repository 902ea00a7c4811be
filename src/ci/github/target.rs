//! What the reports of a run on GitHub have in common: which repository, which commit, under which name, for whom.

use crate::base::lookup::Lookup;
use crate::base::sum::Sum;
use crate::base::text::{head, one_line, up_to};
use crate::ci::reported::{ReportRequest, ReportedRun};
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::github_server::{Flavour, GithubServer};
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::people::run_wait::RunWait;

/// GitHub accepts longer names; the page of a commit shows less than this.
const MAX_CONTEXT: usize = 200;

/// Where a run is reported, and under which name.
#[derive(Clone, Debug)]
pub struct ReportTarget {
    api: Api,
    repository: RepositoryName,
    sha: String,
    names_its_commit: bool,
    pull_request: Option<u64>,
    run: String,
    attempt: String,
    url: String,
    workflow: Option<String>,
    dispatch_ref: Option<String>,
    subject: ReportedRun,
    context: String,
    delivers: bool,
    origin: Option<String>,
    waits: Option<String>,
}

/// Another run of a workflow, as far as its reports need it.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    /// Its number.
    pub(super) run: u64,
    /// Its attempt.
    pub(super) attempt: u32,
    /// Its page.
    pub(super) url: String,
    /// The commit.
    pub(super) sha: String,
    /// What tells its reports from those of other workflows and events.
    pub(super) origin: Option<String>,
}

/// Why nothing can be reported from here.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTarget {
    /// There is no token.
    #[error("there is no token: give it in `LL_TOKEN` or `GITHUB_TOKEN` (input `token`)")]
    Token,
    /// The environment does not name a repository.
    #[error("`GITHUB_REPOSITORY` does not name a repository")]
    Repository,
    /// The commit is not known.
    #[error("the event `{0}` does not name a commit: name the commit with `--sha`")]
    Commit(String),
    /// The environment says something about the network that cannot be.
    #[error("{0}")]
    Network(ApiError),
}

impl ReportTarget {
    /// Reads from the environment what is needed to report a run.
    pub(super) fn new(
        flavour: Flavour,
        ReportRequest { env, token, options, subject, .. }: ReportRequest<'_>,
    ) -> Result<Self, NoTarget> {
        let token = token.ok_or(NoTarget::Token)?;
        let job = WorkflowJob::read(env);
        let repository = job.repository.as_deref().and_then(RepositoryName::parse);
        let repository = repository.ok_or(NoTarget::Repository)?;
        let event = WorkflowEvent::read(env);
        let origin = origin_of_job(&job, &event);
        let sha = options.sha.clone().or(event.sha).ok_or(NoTarget::Commit(event.name))?;
        let server = job.server_url.as_deref().unwrap_or("https://github.com");
        let server = server.trim_end_matches('/');
        Ok(Self {
            api: Api::from_env(env, Some(token.to_owned())).map_err(NoTarget::Network)?,
            url: format!("{server}/{repository}/actions/runs/{}", run_of_page(flavour, &job)),
            run: job.run_id.unwrap_or_default(),
            // Gitea sets it to an empty text, and act always to 1.
            attempt: job.run_attempt.unwrap_or_else(|| "1".to_owned()),
            workflow: job.workflow_ref.and_then(|name| workflow(&name, &repository)),
            origin,
            dispatch_ref: event.dispatch_ref,
            repository,
            sha,
            names_its_commit: options.sha.is_some(),
            pull_request: event.pull_request,
            context: match &options.context {
                // Whoever names a status answers for its being unique.
                Some(context) => one_line(context, MAX_CONTEXT),
                None => subject_name(subject),
            },
            subject: subject.clone(),
            delivers: options.delivers,
            waits: None,
        })
    }

    /// Makes the place where a run of another workflow run is reported: its commit, under the name of its loop.
    pub(super) fn of_other(
        api: Api,
        repository: RepositoryName,
        run: Elsewhere,
        subject: ReportedRun,
    ) -> Self {
        let Elsewhere { run, attempt, url, sha, origin } = run;
        Self {
            run: run.to_string(),
            attempt: attempt.to_string(),
            url,
            workflow: None,
            dispatch_ref: None,
            sha,
            names_its_commit: false,
            pull_request: None,
            context: subject_name(&subject),
            subject,
            delivers: false,
            origin,
            waits: None,
            api,
            repository,
        }
    }

    /// Returns the same under another name.
    pub(super) fn named(&self, context: String) -> Self {
        Self { context, ..self.clone() }
    }

    /// Returns the same for another run of the repository, at its commit.
    pub(super) fn at(&self, run: Elsewhere) -> Self {
        let Elsewhere { run, attempt, url, sha, origin } = run;
        Self { run: run.to_string(), attempt: attempt.to_string(), url, sha, origin, ..self.clone() }
    }

    /// Returns the same for a run that waits for this, which its reports tell other programs.
    pub(super) fn waiting(&self, waits: Option<&RunWait>) -> Self {
        Self { waits: waits.map(ToString::to_string), ..self.clone() }
    }

    /// Returns what the run waits for, if it does.
    pub(super) fn waits(&self) -> Option<&str> {
        self.waits.as_deref()
    }

    /// Returns the same on a pull request.
    pub(super) fn on_pull_request(self, number: u64) -> Self {
        Self { pull_request: Some(number), ..self }
    }

    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    pub(super) fn server(&self) -> &GithubServer {
        self.api.server()
    }

    pub(super) fn repository(&self) -> &RepositoryName {
        &self.repository
    }

    /// Returns the path of something in the repository.
    pub(super) fn path(&self, below: &str) -> String {
        self.repository.path(below)
    }

    pub(super) fn sha(&self) -> &str {
        &self.sha
    }

    /// Tells whether the commit was given on the command line, as an earlier run hands it on.
    pub(super) fn names_its_commit(&self) -> bool {
        self.names_its_commit
    }

    pub(super) fn pull_request(&self) -> Option<u64> {
        self.pull_request
    }

    /// Returns the number of the workflow run.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// Tells whether its status has a name with its key, and not one that somebody gave to several runs.
    pub(super) fn has_own_name(&self) -> bool {
        self.subject.key.is_some() && self.context == subject_name(&self.subject)
    }

    /// Tells whether a later job delivers what the run changes.
    pub(super) fn delivers(&self) -> bool {
        self.delivers
    }

    /// Returns the attempt of the workflow run.
    pub(super) fn attempt(&self) -> &str {
        &self.attempt
    }

    /// Returns the place of the run in the workflow run, where attempts are not counted.
    pub(super) fn place(&self) -> Option<&str> {
        self.subject.place.as_deref()
    }

    /// Returns what is the same for each run of one job of one workflow by one event; none where the runner does not say it.
    pub(super) fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Returns the name of the workflow's file.
    pub(super) fn workflow(&self) -> Option<&str> {
        self.workflow.as_deref()
    }

    /// Returns the branch or tag on which the workflow can be dispatched.
    pub(super) fn dispatch_ref(&self) -> Option<&str> {
        self.dispatch_ref.as_deref()
    }

    /// Returns the page of the workflow run.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the page of another workflow run of the repository, where its address is that of this one but for the
    /// number.
    pub(super) fn url_of(&self, run: u64) -> String {
        // The number is the last part of the address on every one of these servers.
        let site = self.url.rsplit_once('/').map_or(self.url.as_str(), |(site, _)| site);
        format!("{site}/{run}")
    }

    /// Returns the name of what is reported, whatever the status was named.
    pub(super) fn subject_name(&self) -> String {
        subject_name(&self.subject)
    }

    pub(super) fn instance(&self) -> &str {
        &self.subject.instance
    }

    /// Returns the name under which statuses and check runs stand.
    pub(super) fn context(&self) -> &str {
        &self.context
    }
}

/// Returns the name under which a run stands that nobody named: that of its loop, and its key where it has one that
/// people have to see.
fn subject_name(subject: &ReportedRun) -> String {
    let name = format!("ll-loop/{}", subject.loop_name);
    match &subject.key {
        // Cut so that the keys stay apart.
        Some(key) => {
            format!("{} ({key})", one_line(&name, MAX_CONTEXT - key.chars().count().min(MAX_CONTEXT / 2) - 3))
        }
        None => one_line(&name, MAX_CONTEXT),
    }
}

/// Says which job of which workflow this is, and what kind of event set it off: the same in another CI run, and in another
/// attempt. Two pull requests with one head are merged with other commits, and are not the same.
fn origin_of_job(job: &WorkflowJob, event: &WorkflowEvent) -> Option<String> {
    let workflow = job.workflow_ref.as_ref().or(job.workflow.as_ref())?;
    // Behind the `@` stands the branch or tag, which must not make another origin of the same workflow.
    let file = up_to(workflow, &['@']);
    Some(origin(&[file, &event.name, job.job.as_ref()?], event.pull_request))
}

/// Makes a short name of what tells one origin of reports from others.
pub(super) fn origin(parts: &[&str], pull_request: Option<u64>) -> String {
    // As JSON, because joined texts could be joined in two ways to the same.
    let text = serde_json::to_string(&(parts, pull_request)).expect("texts and a number are JSON");
    head(&Sum::of(text.as_bytes()).to_string(), ORIGIN_DIGITS).to_owned()
}

/// The digits of such a name.
const ORIGIN_DIGITS: usize = 12;

/// Returns the page of the job's run: of its attempt, where the server counts attempts.
pub fn page(env: Lookup<'_>) -> Option<String> {
    let job = WorkflowJob::read(env);
    let (server, repository) =
        (job.server_url.as_ref().filter(|url| !url.is_empty())?, job.repository.as_ref()?);
    let flavour = GithubServer::of(env).flavour();
    job.run_id.as_ref()?;
    let page = format!("{server}/{repository}/actions/runs/{}", run_of_page(flavour, &job));
    Some(match (flavour, job.run_attempt) {
        // GitHub shows a later attempt otherwise.
        (Flavour::Github, attempt) => format!("{page}/attempts/{}", attempt.as_deref().unwrap_or("1")),
        (Flavour::Gitea | Flavour::Forgejo, _) => page,
    })
}

/// Returns what stands for the run in the address of its page: Forgejo counts the runs of each repository there.
pub(super) fn run_of_page(flavour: Flavour, job: &WorkflowJob) -> String {
    let run = match flavour {
        Flavour::Github | Flavour::Gitea => &job.run_id,
        Flavour::Forgejo => &job.run_number,
    };
    run.clone().unwrap_or_default()
}

/// Returns the file in `octo/project/.github/workflows/fix.yml@refs/heads/main`. A workflow of another repository
/// cannot be dispatched here.
fn workflow(name: &str, repository: &RepositoryName) -> Option<String> {
    let (file, _) = name.split_once('@')?;
    let (place, file) = file.rsplit_once('/')?;
    let is_ours = place
        .strip_suffix("/.github/workflows")
        // GitHub takes names in any case.
        .is_some_and(|of| of.eq_ignore_ascii_case(&repository.to_string()));
    (is_ours && !file.is_empty()).then(|| file.to_owned())
}

#[cfg(test)]
impl ReportTarget {
    /// Makes the job in which `fix-types` runs on the pull request 7.
    pub(super) fn in_test(api: Api) -> Self {
        Self {
            api,
            repository: RepositoryName::parse("octo/project").expect("it is a name"),
            sha: "2".repeat(40),
            names_its_commit: false,
            pull_request: Some(7),
            run: "77".to_owned(),
            attempt: "1".to_owned(),
            url: "https://github.com/octo/project/actions/runs/77".to_owned(),
            workflow: Some("fix.yml".to_owned()),
            dispatch_ref: Some("refs/heads/fix".to_owned()),
            subject: ReportedRun {
                loop_name: "fix-types".to_owned(),
                instance: "fix-types-20251120T234847-1f2e".to_owned(),
                key: None,
                place: None,
            },
            context: "ll-loop/fix-types".to_owned(),
            delivers: false,
            origin: None,
            waits: None,
        }
    }

    /// The same in a job of another CI run that this event has set off.
    pub(super) fn set_off_by(self, event: &str, run: u64) -> Self {
        let url = self.url_of(run);
        Self { run: run.to_string(), url, origin: Some(origin(&["fix.yml", event, "fix"], None)), ..self }
    }

    /// The same in another job of the workflow.
    pub(super) fn of_job(self, job: &str) -> Self {
        Self { origin: Some(origin(&["fix.yml", "push", job], None)), ..self }
    }

    /// The same about another commit.
    pub(super) fn at_commit(self, sha: &str) -> Self {
        Self { sha: sha.to_owned(), ..self }
    }

    pub(super) fn going_on(self) -> Self {
        Self { pull_request: None, names_its_commit: true, ..self }
    }

    pub(super) fn without_workflow(self) -> Self {
        Self { workflow: None, ..self }
    }

    pub(super) fn without_pull_request(self) -> Self {
        Self { pull_request: None, ..self }
    }

    pub(super) fn of_run(self, instance: &str) -> Self {
        Self { subject: ReportedRun { instance: instance.to_owned(), ..self.subject }, ..self }
    }

    pub(super) fn in_place(self, place: &str) -> Self {
        Self { subject: ReportedRun { place: Some(place.to_owned()), ..self.subject }, ..self }
    }

    pub(super) fn of_attempt(self, attempt: &str) -> Self {
        Self { attempt: attempt.to_owned(), ..self }
    }

    pub(super) fn of(self, loop_name: &str, key: Option<&str>) -> Self {
        let (loop_name, key) = (loop_name.to_owned(), key.map(str::to_owned));
        let subject = ReportedRun { loop_name, key, ..self.subject };
        Self { context: subject_name(&subject), subject, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::reported::ReportOptions;

    const SHA: &str = "1111111111111111111111111111111111111111";

    fn target(
        flavour: Flavour,
        more: &[(&str, &str)],
        options: &ReportOptions,
    ) -> Result<ReportTarget, NoTarget> {
        let usual = [
            ("GITHUB_REPOSITORY", "octo/project"),
            ("GITHUB_EVENT_NAME", "push"),
            ("GITHUB_SHA", SHA),
            ("GITHUB_SERVER_URL", "https://github.com/"),
            ("GITHUB_RUN_ID", "4711"),
            ("GITHUB_RUN_NUMBER", "12"),
            ("GITHUB_JOB", "check"),
        ];
        let env = |name: &str| {
            let mut all = more.iter().chain(&usual);
            all.find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let subject = ReportedRun { loop_name: "main".to_owned(), ..ReportedRun::default() };
        ReportTarget::new(
            flavour,
            ReportRequest { env: &env, token: Some("ghs_x"), options, subject: &subject, is_over: false },
        )
    }

    #[track_caller]
    fn check(
        flavour: Flavour,
        more: &[(&str, &str)],
        options: &ReportOptions,
        sha: &str,
        context: &str,
        url: &str,
    ) {
        let target = target(flavour, more, options).unwrap();
        assert_eq!((target.sha(), target.context(), target.url()), (sha, context, url));
        assert_eq!(target.url_of(99), "https://github.com/octo/project/actions/runs/99");
    }

    #[test]
    fn the_environment_says_what_is_reported_and_the_command_line_before_it() {
        let page = "https://github.com/octo/project/actions/runs/4711";
        let counted = "https://github.com/octo/project/actions/runs/12";
        check(Flavour::Github, &[], &ReportOptions::default(), SHA, "ll-loop/main", page);
        check(Flavour::Gitea, &[], &ReportOptions::default(), SHA, "ll-loop/main", page);
        check(Flavour::Forgejo, &[], &ReportOptions::default(), SHA, "ll-loop/main", counted);
        let other = "a".repeat(40);
        let options = ReportOptions {
            sha: Some(other.clone()),
            context: Some("quality/\u{1b}[1mtypes\nx".to_owned()),
            ..ReportOptions::default()
        };
        check(Flavour::Github, &[], &options, &other, "quality/types…", page);
    }

    #[test]
    fn the_page_of_a_run_is_one_that_the_server_has() {
        let of = |more: &[(&str, &str)]| {
            let usual = [
                ("GITHUB_SERVER_URL", "https://x"),
                ("GITHUB_REPOSITORY", "o/r"),
                ("GITHUB_RUN_ID", "9"),
                ("GITHUB_RUN_NUMBER", "2"),
                ("GITHUB_RUN_ATTEMPT", ""),
            ];
            page(&|name| {
                more.iter().chain(&usual).find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let of = |more: &[(&str, &str)]| of(more).unwrap();
        assert_eq!(of(&[("GITHUB_RUN_ATTEMPT", "3")]), "https://x/o/r/actions/runs/9/attempts/3");
        assert_eq!(of(&[]), "https://x/o/r/actions/runs/9/attempts/1");
        assert_eq!(of(&[("GITEA_ACTIONS", "true")]), "https://x/o/r/actions/runs/9");
        assert_eq!(of(&[("FORGEJO_ACTIONS", "true")]), "https://x/o/r/actions/runs/2");
    }

    #[test]
    fn the_same_job_of_the_same_workflow_and_event_has_one_origin() {
        let of = |more: &[(&str, &str)]| {
            let usual = [("GITHUB_WORKFLOW_REF", "octo/project/.github/workflows/a.yml@refs/heads/main")];
            let all: Vec<_> = more.iter().chain(&usual).copied().collect();
            target(Flavour::Github, &all, &ReportOptions::default()).unwrap().origin().map(str::to_owned)
        };
        let push = of(&[]);
        assert!(push.is_some());
        for same in [
            [("GITHUB_RUN_ID", "4712")],
            [("GITHUB_RUN_ATTEMPT", "2")],
            [("GITHUB_WORKFLOW_REF", "octo/project/.github/workflows/a.yml@refs/pull/7/merge")],
        ] {
            assert_eq!(of(&same), push, "{same:?}");
        }
        for other in [
            [("GITHUB_EVENT_NAME", "merge_group")],
            [("GITHUB_JOB", "lint")],
            [("GITHUB_WORKFLOW_REF", "octo/project/.github/workflows/b.yml@refs/heads/main")],
        ] {
            assert_ne!(of(&other), push, "{other:?}");
        }
        assert_eq!(of(&[("GITHUB_WORKFLOW_REF", "")]), None);
        assert_ne!(origin(&["a"], Some(1)), origin(&["a"], Some(2)));
    }

    #[test]
    fn the_workflow_is_one_of_this_repository() {
        let of = |name| workflow(name, &RepositoryName::parse("octo/project").unwrap());
        assert_eq!(of("Octo/project/.github/workflows/a b.yml@refs/heads/main").as_deref(), Some("a b.yml"));
        assert_eq!(of("other/project/.github/workflows/a.yml@refs/heads/main"), None);
        assert_eq!(of("octo/project/.github/workflows/@refs/heads/main"), None);
        assert_eq!(of("a.yml"), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let options = ReportOptions::default();
        let failed = |more: &[(&str, &str)]| target(Flavour::Github, more, &options).unwrap_err();
        assert_eq!(
            failed(&[("GITHUB_EVENT_NAME", "pull_request")]),
            NoTarget::Commit("pull_request".to_owned())
        );
        for name in ["", "project", "../../user", "octo/project/..", "octo/a b"] {
            assert_eq!(failed(&[("GITHUB_REPOSITORY", name)]), NoTarget::Repository, "{name}");
        }
        assert!(matches!(failed(&[("HTTPS_PROXY", "??")]), NoTarget::Network(_)));
        let subject = ReportedRun::default();
        let nobody = ReportRequest {
            env: &|_| None,
            token: None,
            options: &options,
            subject: &subject,
            is_over: false,
        };
        let without = ReportTarget::new(Flavour::Github, nobody);
        assert_eq!(without.unwrap_err(), NoTarget::Token);
    }
}
