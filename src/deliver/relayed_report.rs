//! Reports what another run of a workflow left, for pull requests whose own jobs may not report: fetches the bundles of
//! that run, believes nothing of them, and sets the status of its commit.

use std::path::Path;

use serde_json::Value;

use crate::base::explanation::Explanation;
use crate::base::name::LoopName;
use crate::base::repository_address;
use crate::base::text::one_line;
use crate::bundle::manifest::Manifest;
use crate::bundle::names;
use crate::bundle::open::{Bundle, LIMITS};
use crate::bundle::opened::OpenedBundle;
use crate::ci::github::relay::RelayedRun;
use crate::ci::reported::ReportedRun;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::files::transient;
use crate::forge::github::api::Api;
use crate::forge::github::artifacts;
use crate::forge::github::artifacts::{
    FoundArtifact, PREFIX, RunsMeant, attempt, is_checkpoint, of_run, without_job,
};
use crate::forge::github::other_run::OtherRun;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::report::digest::Digest;
use crate::session::read::fetch::fault;

/// The most bytes of an artifact that is fetched.
const MAX_ZIP: u64 = 1 << 30;

/// The most bytes of the report that says the key of a run.
const MAX_RESULT: u64 = 64 << 20;

/// The most artifacts that are looked at: a matrix has 256 legs.
const MOST: usize = 300;

/// What is reported of another run.
#[derive(Clone, Debug, Default)]
pub struct RelayOptions {
    /// The loops whose status may be set.
    pub loops: Vec<String>,
    /// The number of the run; by default the one that set off this job.
    pub run: Option<u64>,
    /// Whether the pull request gets the comment, too.
    pub comment: bool,
}

impl Session<'_> {
    /// Sets the statuses of a commit from what another run of a workflow left. Returns a line for each.
    ///
    /// # Errors
    /// No such run set off this job, it is not over, or the server refuses something.
    pub fn relay(&self, options: &RelayOptions) -> Result<Vec<String>, Error> {
        let env = &self.env.lookup();
        let names = options.loops.iter().map(|name| {
            LoopName::parse(name).map_err(|error| Error::refused(format!("invalid loop `{name}`: {error}")))
        });
        let loops: Vec<LoopName> = names.collect::<Result<_, _>>()?;
        let here = WorkflowJob::read(env).repository.as_deref().and_then(RepositoryName::parse).ok_or_else(
            || {
                Error::refused("`GITHUB_REPOSITORY` does not name a repository")
                    .with_hint("this is for a job of GitHub Actions")
            },
        )?;
        let token = self.env.token().ok_or_else(|| {
            Error::refused("there is no token").with_hint("give it in `LL_TOKEN` or `GITHUB_TOKEN`")
        })?;
        let failed = |error| fault("cannot report the other run".to_owned(), &error);
        let api = Api::from_env(env, Some(token.to_owned())).map_err(|error| failed(error.into()))?;
        let run = match options.run {
            Some(id) => OtherRun::get(&api, &here, id).map_err(|error| failed(error.into()))?,
            None => OtherRun::of_event(env).ok_or_else(|| {
                Error::refused("no run of another workflow set off this job")
                    .with_hint("run it in a workflow with `on: workflow_run`, or name a run with `--run`")
            })?,
        };
        // Until then, its later jobs may leave further reports.
        if run.conclusion.is_none() {
            return Err(Error::refused(format!("the run {} is not over", run.id))
                .with_hint("let the workflow begin with `types: [completed]`"));
        }
        let found = of_run(&api, &here, run.id).map_err(failed)?;
        let relay = Relay { session: self, api, here, run };
        let mut lines = Vec::new();
        for name in &loops {
            lines.extend(relay.of_loop(name, &loops, &found, options.comment)?);
        }
        Ok(lines)
    }
}

/// The report of one run of a workflow.
struct Relay<'r> {
    session: &'r Session<'r>,
    api: Api,
    here: RepositoryName,
    run: OtherRun,
}

/// What a bundle holds of interest.
struct Opened {
    manifest: Manifest,
    digest: Digest,
    key: Option<String>,
}

impl Relay<'_> {
    fn of_loop(
        &self,
        name: &LoopName,
        all: &[LoopName],
        found: &[FoundArtifact],
        comments: bool,
    ) -> Result<Vec<String>, Error> {
        let prefix = |name: &LoopName| RunsMeant::of_loop(Some(&name.file_stem()), None).prefix;
        let ours = prefix(name);
        // The name of another loop may go on where this one ends.
        let is_longer = |other: &str| other.len() > ours.len() && other.starts_with(&ours);
        let longer: Vec<String> = all.iter().map(prefix).filter(|other| is_longer(other)).collect();
        let is_ours = |found: &&FoundArtifact| {
            found.name.starts_with(&ours)
                && !longer.iter().any(|other| found.name.starts_with(other.as_str()))
                // What earlier attempts stored stays with the run.
                && attempt(&found.name) == self.run.attempt()
                && !is_checkpoint(&found.name)
        };
        let meant: Vec<&FoundArtifact> = found.iter().filter(is_ours).take(MOST).collect();
        if meant.is_empty() {
            let why = "the run of the workflow left no report of this loop";
            return Ok(vec![self.tell(
                name,
                None,
                &self.run.id.to_string(),
                RelayedRun::Refused(why.to_owned()),
                false,
            )?]);
        }
        let told = meant.into_iter().map(|artifact| {
            let opened = self.fetch(artifact)?.and_then(|opened| self.believed(name, found, opened));
            let opened = match opened {
                // Last, because it asks the server.
                Ok(opened) => self.at_its_commit(opened)?,
                refused => refused,
            };
            match opened {
                Ok(Opened { digest, key, manifest }) => {
                    let claim = RelayedRun::Report(Box::new(digest));
                    self.tell(name, key, &manifest.instance.to_string(), claim, comments)
                }
                Err(why) => {
                    let why = format!("the report `{}` is refused: {why}", artifact.name);
                    self.tell(name, None, &artifact.id.to_string(), RelayedRun::Refused(why), false)
                }
            }
        });
        told.collect()
    }

    /// Fetches what an artifact holds, or says why it is refused.
    fn fetch(&self, artifact: &FoundArtifact) -> Result<Result<Opened, Explanation>, Error> {
        if artifact.expired {
            return Ok(Err(Explanation::new("it has expired")));
        }
        let mut zip = transient::file("", "")
            .map_err(|error| Error::failed("cannot create a temporary file", &error))?;
        let fetched = artifacts::download(&self.api, &self.here, artifact, zip.as_file_mut(), MAX_ZIP);
        match fetched {
            Ok(fetched) => {
                // An address that the storage has signed opens the artifact for everybody until it expires.
                self.session.mask(&fetched.secrets);
                Ok(opened(zip.path()))
            }
            // A server that is away says nothing about the report, so no status calls that refused.
            Err(error) if error.is_unavailable() => {
                Err(fault(format!("cannot fetch `{}`", artifact.name), &error).of_kind(Kind::Unavailable))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    /// Refuses what contradicts the server about where it comes from.
    fn believed(
        &self,
        name: &LoopName,
        stored: &[FoundArtifact],
        opened: Opened,
    ) -> Result<Opened, Explanation> {
        let Opened { manifest, digest, key } = &opened;
        if manifest.r#loop != *name || digest.loop_name() != name.as_str() {
            return Err(Explanation::new(format!(
                "it is about the loop `{}`",
                one_line(digest.loop_name(), 60)
            )));
        }
        // A run that was continued in another job keeps its key, under which its first part is stored.
        let is_stored = |key: &String| {
            let name = format!("{PREFIX}{}-{key}", name.file_stem());
            stored.iter().any(|stored| without_job(&stored.name) == name)
        };
        if !key.iter().all(is_stored) {
            return Err(Explanation::new("it names a key under which nothing is stored"));
        }
        match contradiction(manifest, &self.run, &self.here) {
            Some(why) => Err(Explanation::new(why)),
            None => Ok(opened),
        }
    }

    /// Refuses a run of another commit than that of the pull request.
    fn at_its_commit(&self, opened: Opened) -> Result<Result<Opened, Explanation>, Error> {
        let Some(commit) = opened.digest.commit() else {
            return Ok(Err(Explanation::new("it does not say at which commit it began")));
        };
        let is_it = self.run.is_of_commit(commit, &self.api, &self.here);
        let is_it = is_it.map_err(|error| fault("cannot look up a commit".to_owned(), &error.into()))?;
        let refused =
            (!is_it).then(|| Explanation::new(format!("it is of the commit {}", one_line(commit, 12))));
        Ok(refused.map_or(Ok(opened), Err))
    }

    fn tell(
        &self,
        name: &LoopName,
        key: Option<String>,
        instance: &str,
        claim: RelayedRun,
        comments: bool,
    ) -> Result<String, Error> {
        let instance = instance.to_owned();
        let subject = ReportedRun { loop_name: name.to_string(), instance, key, place: None };
        let shown = match &subject.key {
            Some(key) => format!("{name} ({key})"),
            None => name.to_string(),
        };
        let told = self.run.report(&self.api, &self.here, subject, claim, comments);
        let told = told.map_err(|error| fault(format!("cannot report `{shown}`"), &error.into()))?;
        Ok(format!("{shown}: {told}"))
    }
}

/// Opens what was fetched, or says why it is refused.
fn opened(path: &Path) -> Result<Opened, Explanation> {
    let OpenedBundle { manifest, digest, file, .. } = &OpenedBundle::open(path)?;
    let result = Bundle::open(file, LIMITS)
        .and_then(|bundle| bundle.read(&format!("{}result.json", names::REPORTS), MAX_RESULT));
    let key = result?.and_then(|result| key(&result));
    Ok(Opened { manifest: manifest.clone(), digest: digest.clone(), key })
}

/// Says how a bundle contradicts the server about the run of a workflow that it is of, if it does.
pub(super) fn contradiction(manifest: &Manifest, run: &OtherRun, here: &RepositoryName) -> Option<String> {
    let server = run.html_url.split("/actions/").next().unwrap_or("");
    let host = server.strip_suffix(&here.to_string()).unwrap_or("");
    let head = run.head_repository().map(|head| format!("{host}{head}"));
    // The run of a pull request from a fork may name either of the two.
    let known = [Some(server.to_owned()), head];
    let mut known = known.iter().flatten().filter_map(|url| repository_address::repository(url));
    if let Some(of) = manifest.repository.as_ref().map(ToString::to_string)
        && known.all(|known| known != of)
    {
        return Some(format!("it is of the repository {}", one_line(&of, 100)));
    }
    let job = manifest.job.as_ref().map_or_else(String::new, ToString::to_string);
    // The slash keeps the run 123 from passing for the run 12.
    let is_of_run =
        job.strip_prefix(&run.html_url).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    (!is_of_run).then(|| Explanation::new("it is of another run of a workflow")).map(|why| why.to_string())
}

/// Reads the key that a report names, if it could be one.
fn key(result: &[u8]) -> Option<String> {
    let result: Value = serde_json::from_slice(result).ok()?;
    let key = result.pointer("/outputs/key")?.as_str()?;
    // It becomes part of what people and the server are shown, and a stranger wrote it.
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    (!key.is_empty() && key.len() <= 80 && key.chars().all(is_safe)).then(|| key.to_owned())
}
