//! Fetches artifacts of loops: those of this run from the runner's own service, others from GitHub's REST API,
//! and only those that the repository's own code made.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::NamedTempFile;

use crate::base::time::Timestamp;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::files::transient;
use crate::forge::github::api::Api;
use crate::forge::github::artifact_fault::ArtifactError;
use crate::forge::github::artifacts;
use crate::forge::github::artifacts::{
    FoundArtifact, Origins, RunsMeant, named, newest, of_run, repository_id,
};
use crate::forge::github::code_origin::CodeOrigin;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::results::{Downloaded, Results, check_name};
use crate::forge::github::workflow_job::WorkflowJob;

/// The most bytes of a zip file that are fetched.
const MAX_ZIP: u64 = 4 << 30;

/// A request for an artifact.
pub(crate) struct ArtifactRequest<'a> {
    /// The name of an artifact, `run:ID`, or `run:latest`.
    pub(crate) what: &'a str,
    /// The run of the workflow that made the artifact.
    pub(crate) run: Option<u64>,
    /// A repository other than that of the job.
    pub(crate) repository: Option<&'a str>,
    /// Which of its runs of loops is meant, where the request names only a run of the workflow.
    pub(crate) runs: RunsMeant,
    /// Whether the code of strangers may have made it.
    pub(crate) allow_untrusted: bool,
    pub(crate) session: &'a Session<'a>,
}

/// A file or directory on this machine, which was named by a path or fetched as an artifact.
pub(crate) struct Local {
    pub(crate) path: PathBuf,
    /// Its name in messages.
    pub(crate) shown: String,
    /// The name of the artifact that it was.
    pub(crate) artifact: Option<String>,
    /// Keeps a fetched file until this value is dropped.
    _zip: Option<NamedTempFile>,
}

impl Local {
    /// Takes a path as it is.
    pub(crate) fn path(text: &str, session: &Session<'_>) -> Self {
        Self { path: session.path(Path::new(text)), shown: text.to_owned(), artifact: None, _zip: None }
    }
}

/// Returns the artifact that a text names in place of a path: `run:ID`, `run:latest`, or the name after `artifact:`.
pub(crate) fn artifact(text: &str) -> Option<&str> {
    let name = text.strip_prefix("artifact:").filter(|name| !name.is_empty());
    name.or(Some(text).filter(|text| text.starts_with("run:")))
}

/// What is asked for.
enum WantedArtifact<'a> {
    Name(&'a str),
    Run(u64),
    Latest,
}

impl<'a> WantedArtifact<'a> {
    fn parse(text: &'a str) -> Result<Self, Error> {
        match text.strip_prefix("run:") {
            Some("latest") => Ok(Self::Latest),
            Some(run) => run.parse().map(Self::Run).map_err(|_| {
                Error::refused(format!("invalid run `{text}`"))
                    .with_hint("write `run:` and the number of a run, or `run:latest`")
            }),
            None => check_name(text)
                .map(|()| Self::Name(text))
                .map_err(|error| fault("cannot fetch an artifact".to_owned(), &error)),
        }
    }
}

/// Warns of artifacts that were fetched and have no digest: once for all, for Gitea and act have none of any.
pub(crate) fn say_undigested(names: &[&str], session: &Session<'_>) {
    let warning = match names {
        [] => return,
        [name] => format!("`{name}` has no digest that it could be compared with"),
        [name, ..] => {
            format!(
                "{} artifacts have no digest that they could be compared with: `{name}` and the others",
                names.len()
            )
        }
    };
    session.talk.warning(&warning);
}

/// What was fetched of a repository.
pub(crate) struct FetchedSince {
    /// The repository.
    pub(crate) repository: RepositoryName,
    /// How many artifacts were fetched.
    pub(crate) fetched: u64,
    /// How many were there.
    pub(crate) known: u64,
}

impl ArtifactRequest<'_> {
    /// Fetches the zip file, and returns the name of the artifact. What has no digest is said by [`say_undigested`].
    pub(crate) fn fetch(&self, zip: &mut File) -> Result<(String, Downloaded), Error> {
        let wanted = WantedArtifact::parse(self.what)?;
        if self.run.is_some() && !matches!(wanted, WantedArtifact::Name(_)) {
            let message = format!("`{}` and `--run` both name a run", self.what);
            return Err(Error::refused(message).with_hint("give the name of an artifact with `--run`"));
        }
        let (name, fetched) = match self.of_this_run(&wanted, zip).map_err(|error| self.failed(&error))? {
            Some(fetched) => fetched,
            None => self.elsewhere(&wanted, zip)?,
        };
        // The address of a download is signed: with it, every reader of the log could fetch the file.
        self.session.mask(&fetched.secrets);
        Ok((name, fetched))
    }

    /// Fetches the artifact into a temporary file, which the returned value keeps.
    pub(crate) fn local(&self) -> Result<Local, Error> {
        let mut zip = transient::file("", "")
            .map_err(|error| Error::failed("cannot create a temporary file", &error))?;
        let (name, fetched) = self.fetch(zip.as_file_mut())?;
        if !fetched.verified {
            say_undigested(&[&name], self.session);
        }
        let path = zip.path().to_owned();
        Ok(Local { path, shown: format!("the artifact {name}"), artifact: Some(name), _zip: Some(zip) })
    }

    /// Returns the repository that is asked, and a client for it.
    pub(crate) fn remote(&self) -> Result<(Api, RepositoryName), Error> {
        let repository = self.repository.map(str::to_owned).or_else(|| self.job().repository);
        let repository = &repository.ok_or_else(|| {
            Error::refused("no repository was given")
                .with_hint("give `--repo OWNER/NAME`, or set `GITHUB_REPOSITORY`")
        })?;
        let repository = RepositoryName::parse(repository).ok_or_else(|| {
            Error::refused(format!("invalid repository `{repository}`")).with_hint("write `OWNER/NAME`")
        })?;
        let api = Api::from_env(&self.session.env.lookup(), self.session.env.token().map(str::to_owned));
        Ok((api.map_err(|error| self.failed(&error.into()))?, repository))
    }

    fn failed(&self, error: &ArtifactError) -> Error {
        fault(format!("cannot fetch `{}`", self.what), error)
    }

    /// Fetches an artifact of the running workflow from the runner's service, if it has one of that name.
    fn of_this_run(
        &self,
        wanted: &WantedArtifact<'_>,
        zip: &mut File,
    ) -> Result<Option<(String, Downloaded)>, ArtifactError> {
        let (env, job) = (self.session.env, self.job());
        let is_this_run = |run: u64| job.run_id == Some(run.to_string());
        let is_here = self.repository.is_none_or(|repo| job.repository.as_deref() == Some(repo));
        let run = match wanted {
            WantedArtifact::Name(_) => self.run,
            WantedArtifact::Run(run) => Some(*run),
            // The service of the runner knows the artifacts of this run alone.
            WantedArtifact::Latest => return Ok(None),
        };
        if !is_here || !run.is_none_or(is_this_run) {
            return Ok(None);
        }
        let Some(results) = Results::from_env(&env.lookup())? else { return Ok(None) };
        let name = match wanted {
            WantedArtifact::Name(name) => (*name).to_owned(),
            WantedArtifact::Run(_) | WantedArtifact::Latest => {
                let found: Vec<FoundArtifact> =
                    results.list(None)?.into_iter().map(FoundArtifact::from).collect();
                self.runs.choose(&found, true)?.name
            }
        };
        match results.download(&name, zip, MAX_ZIP) {
            Ok(fetched) => Ok(Some((name, fetched))),
            // Without `--run`, another run may have it.
            Err(ArtifactError::Absent(_)) if run.is_none() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fetches an artifact through the REST API.
    fn elsewhere(&self, wanted: &WantedArtifact<'_>, zip: &mut File) -> Result<(String, Downloaded), Error> {
        let (api, repository) = self.remote()?;
        let WorkflowJob { repository: here, repository_id: own, .. } = self.job();
        // The job knows the id of its own repository, which saves a request.
        let own = own.filter(|_| here == Some(repository.to_string()));
        let own = match own.and_then(|id| id.parse().ok()) {
            Some(id) => id,
            None => repository_id(&api, &repository).map_err(|error| self.failed(&error))?,
        };
        let origins = Origins::new(&api, &repository, own);
        let found = self.find(wanted, &api, &repository, &origins).map_err(|error| self.failed(&error))?;
        // An artifact of this very run is as trustworthy as the run.
        let is_of_this_run = found.run_id.is_some() && found.run_id == self.this_run();
        match origins.of(&found).map_err(|error| self.failed(&error))? {
            CodeOrigin::Own => {}
            CodeOrigin::Foreign | CodeOrigin::Unknown if is_of_this_run || self.allow_untrusted => {}
            CodeOrigin::Unknown => {
                let message = format!("{} does not say whose code made `{}`", api.server(), found.name);
                let help = "a pull request from a fork stores its artifacts here too; look at the run first; a resume takes it with `--allow-untrusted`";
                return Err(Error::refused(message).with_hint(help));
            }
            CodeOrigin::Foreign => {
                let message = format!("`{}` was made by code that is not that of `{repository}`", found.name);
                let help = "a pull request from a fork stores its artifacts here too; look at the run before you use them";
                return Err(Error::refused(message).with_hint(help));
            }
        }
        let fetched = artifacts::download(&api, &repository, &found, zip, MAX_ZIP);
        Ok((found.name, fetched.map_err(|error| self.failed(&error))?))
    }

    /// Fetches the artifacts of all runs whose names fit and that were stored since a moment, each as the zip file that it is, named after
    /// its id. Those that are there already are not fetched again.
    pub(crate) fn fetch_since(
        &self,
        fits: impl Fn(&str) -> bool,
        since: Timestamp,
        to: &Path,
    ) -> Result<FetchedSince, Error> {
        let (api, repository) = self.remote()?;
        let own = repository_id(&api, &repository).map_err(|error| self.failed(&error))?;
        let origins = Origins::new(&api, &repository, own);
        let found = artifacts::since(&origins, fits, since).map_err(|error| self.failed(&error))?;
        let unwritten = |error: io::Error| Error::unwritten("the artifacts", &error);
        fs::create_dir_all(to).map_err(unwritten)?;
        let mut all = FetchedSince { repository, fetched: 0, known: 0 };
        for found in found {
            let file = to.join(format!("{}.zip", found.id));
            if file.exists() {
                all.known += 1;
                continue;
            }
            let mut zip = transient::file_in(0o644, to).map_err(unwritten)?;
            match artifacts::download(&api, &all.repository, &found, zip.as_file_mut(), MAX_ZIP) {
                Ok(fetched) => self.session.mask(&fetched.secrets),
                // It is gone for good, and the others are still there.
                Err(ArtifactError::Expired { .. }) => continue,
                Err(error) => return Err(self.failed(&error)),
            }
            // Under its name only when it is whole, because what has the name is not fetched again.
            zip.persist(&file).map_err(|error| unwritten(error.error))?;
            all.fetched += 1;
        }
        Ok(all)
    }

    /// Finds the artifact. Those that the repository's own code made and that have not expired come first.
    fn find(
        &self,
        wanted: &WantedArtifact<'_>,
        api: &Api,
        repository: &RepositoryName,
        origins: &Origins<'_>,
    ) -> Result<FoundArtifact, ArtifactError> {
        let run = match wanted {
            WantedArtifact::Name(name) => {
                let mut found = match self.run {
                    Some(run) => of_run(api, repository, run)?,
                    None => named(api, repository, name)?,
                };
                found.retain(|found| found.name == *name);
                let this = self.this_run();
                let ranked = found.into_iter().map(|found| {
                    let is_of_this = this.is_some() && found.run_id == this;
                    Ok((
                        (origins.of(&found)? == CodeOrigin::Own, !found.expired, is_of_this, found.id),
                        found,
                    ))
                });
                let ranked = ranked.collect::<Result<Vec<_>, ArtifactError>>()?;
                let place = self.run.map_or_else(String::new, |run| format!(" in run {run}"));
                // Ids grow, so the largest one is the newest among equals.
                let best = ranked.into_iter().max_by_key(|(rank, _)| *rank).map(|(_, found)| found);
                return best.ok_or_else(|| ArtifactError::Absent(format!("`{name}`{place}")));
            }
            WantedArtifact::Run(run) => *run,
            WantedArtifact::Latest => {
                let newest = newest(origins, &self.runs)?;
                let newest = newest.ok_or_else(|| self.runs.nothing())?;
                let Some(run) = newest.run_id else { return Ok(newest) };
                run
            }
        };
        self.runs.choose(&of_run(api, repository, run)?, self.this_run() == Some(run))
    }

    fn this_run(&self) -> Option<u64> {
        self.job().run_id?.parse().ok()
    }

    fn job(&self) -> WorkflowJob {
        WorkflowJob::read(&self.session.env.lookup())
    }
}

/// Returns the error of an operation on artifacts.
pub(crate) fn fault(what: String, error: &ArtifactError) -> Error {
    let kind = if matches!(error, ArtifactError::Name { .. }) {
        Kind::Refused
    } else if error.is_unavailable() {
        Kind::Unavailable
    } else if error.is_absent() {
        Kind::Absent
    } else {
        Kind::Failed
    };
    let failed = Error::failed(what, error).of_kind(kind);
    match error.help() {
        Some(help) => failed.with_hint(help),
        None => failed,
    }
}
