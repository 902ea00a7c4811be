//! Artifacts of other runs, through the REST API: found by run, by name or as the newest, and fetched.
//!
//! What another run left is input from outside. A run for a pull request from a fork stores its artifacts in this
//! repository too, so whose code made one is asked first: GitHub says it beside the artifact, Gitea of the run alone,
//! and of a run for a pull request only the pull request.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;

use serde::{Deserialize, Deserializer};

use super::api::{Api, ApiError, Page};
use super::artifact_fault::ArtifactError;
use super::blob::{Blobs, Signed, is_sha256};
use super::code_origin::{self, CodeOrigin};
use super::repository::RepositoryName;
use super::results::{Downloaded, ListedArtifact};
pub use super::workflow_run::HeadRepository;
use super::workflow_run::{self, WorkflowRun};
use crate::base::run_key::RunKey;
use crate::base::time::Timestamp;

/// How the names of artifacts begin that hold a run of a loop.
pub const PREFIX: &str = "ll-loop-";

/// The permission that every function here needs.
const NEEDS: &str = "actions: read";

/// An artifact that was found. It may have expired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundArtifact {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The bytes of the zip file.
    pub size: u64,
    /// `sha256:` and the digest of the zip file; older ones have none.
    pub digest: Option<String>,
    /// When it was created.
    pub created_at: Option<String>,
    /// Whether it can no longer be fetched.
    pub expired: bool,
    /// The run that made it.
    pub run_id: Option<u64>,
    /// The repository of that run.
    pub repository_id: Option<u64>,
    /// The repository of the code that ran.
    pub head: HeadRepository,
    /// The branch of the code that ran.
    pub head_branch: Option<String>,
    /// The commit of the code that ran.
    pub head_sha: Option<String>,
}

/// Reads the id of a repository, where `null` means that it is gone.
fn head<'de, D: Deserializer<'de>>(from: D) -> Result<HeadRepository, D::Error> {
    Ok(Option::deserialize(from)?.map_or(HeadRepository::Gone, HeadRepository::Is))
}

impl From<ListedArtifact> for FoundArtifact {
    fn from(listed: ListedArtifact) -> Self {
        let ListedArtifact { id, name, size, created_at, digest, .. } = listed;
        Self { id, name, size, digest, created_at, ..Self::default() }
    }
}

impl<'de> Deserialize<'de> for FoundArtifact {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RunArtifact {
            id: u64,
            name: String,
            #[serde(default)]
            size_in_bytes: u64,
            digest: Option<String>,
            created_at: Option<String>,
            #[serde(default)]
            expired: bool,
            workflow_run: Option<ProducingRun>,
        }
        #[derive(Default, Deserialize)]
        struct ProducingRun {
            id: Option<u64>,
            repository_id: Option<u64>,
            #[serde(default, deserialize_with = "head", rename = "head_repository_id")]
            head: HeadRepository,
            head_branch: Option<String>,
            head_sha: Option<String>,
        }
        let artifact = RunArtifact::deserialize(from)?;
        let run = artifact.workflow_run.unwrap_or_default();
        Ok(Self {
            id: artifact.id,
            name: artifact.name,
            size: artifact.size_in_bytes,
            digest: artifact.digest,
            created_at: artifact.created_at,
            expired: artifact.expired,
            run_id: run.id,
            repository_id: run.repository_id,
            head: run.head,
            head_branch: run.head_branch,
            head_sha: run.head_sha,
        })
    }
}

#[derive(Deserialize)]
struct ArtifactList {
    artifacts: Vec<FoundArtifact>,
}

impl Page for ArtifactList {
    type Item = FoundArtifact;
    fn items(self) -> Vec<FoundArtifact> {
        self.artifacts
    }
}

/// Returns whose code made an artifact, for the repository with this id, where that stands beside it. Code of a fork
/// that was deleted since is foreign.
pub fn origin(found: &FoundArtifact, own: Option<u64>) -> CodeOrigin {
    match (found.repository_id, found.head) {
        // Untold is not foreign: Gitea says it of the run, which is asked next.
        (_, HeadRepository::Untold) => CodeOrigin::Unknown,
        (Some(of), HeadRepository::Is(head)) if of == head && own.is_none_or(|own| own == of) => {
            CodeOrigin::Own
        }
        (None, HeadRepository::Is(head)) if own == Some(head) => CodeOrigin::Own,
        (_, HeadRepository::Is(_) | HeadRepository::Gone) => CodeOrigin::Foreign,
    }
}

/// Finds out whose code made artifacts of a repository, each run once.
pub struct Origins<'a> {
    api: &'a Api,
    repository: &'a RepositoryName,
    own: u64,
    runs: RefCell<HashMap<u64, CodeOrigin>>,
}

impl<'a> Origins<'a> {
    /// Asks about artifacts of the repository with this id.
    pub fn new(api: &'a Api, repository: &'a RepositoryName, own: u64) -> Self {
        Self { api, repository, own, runs: RefCell::default() }
    }

    /// Returns whose code made an artifact.
    pub fn of(&self, found: &FoundArtifact) -> Result<CodeOrigin, ArtifactError> {
        let told = origin(found, Some(self.own));
        let Some(run) = found.run_id.filter(|_| told == CodeOrigin::Unknown) else { return Ok(told) };
        let known = self.runs.borrow().get(&run).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        // A run that is gone can say nothing about its artifacts.
        let asked = match self.of_run(run) {
            Err(ApiError::NotFound { .. }) => Ok(CodeOrigin::Unknown),
            asked => asked.map_err(needing),
        }?;
        self.runs.borrow_mut().insert(run, asked);
        Ok(asked)
    }

    fn of_run(&self, run: u64) -> Result<CodeOrigin, ApiError> {
        let run = workflow_run::get(self.api, self.repository, run)?;
        code_origin::of_run(self.api, self.repository, Some(self.own), &run, None)
    }
}

/// The runs whose artifacts are meant.
#[derive(Clone, Debug)]
pub struct RunsMeant {
    /// How the names of their artifacts begin.
    pub prefix: String,
    /// Their key; without one, they have to have one in common.
    pub key: Option<RunKey>,
    /// Where only runs of one workflow are meant that one kind of event set off: how these are.
    pub series: Option<Series>,
}

/// The runs of one workflow that one kind of event set off, such as the nights of a loop: a check of a pull request is not
/// among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The name of the workflow's file, if it is known.
    pub workflow: Option<String>,
    /// The kind of event.
    pub occasion: String,
}

impl Series {
    /// Returns the series of a run.
    pub fn new(workflow: Option<&str>, event: &str) -> Self {
        Self { workflow: workflow.map(str::to_owned), occasion: occasion(event).to_owned() }
    }

    /// Tells whether a run is one of these. What the server does not say is no difference.
    fn include(&self, run: &WorkflowRun) -> bool {
        let is_same =
            |one: Option<&str>, other: Option<&str>| one.zip(other).is_none_or(|(one, other)| one == other);
        is_same(self.workflow.as_deref(), run.workflow())
            && is_same(Some(&self.occasion), run.event.as_deref().map(occasion))
    }
}

/// Returns the kind of an event. A night begins by the clock or by hand, and goes on by a dispatch.
fn occasion(event: &str) -> &str {
    match event {
        "schedule" | "workflow_dispatch" | "repository_dispatch" => "schedule",
        other => other,
    }
}

impl RunsMeant {
    /// Makes the runs of a loop, which stands so in file names; without one, those of all loops.
    pub fn of_loop(stem: Option<&str>, key: Option<RunKey>) -> Self {
        let prefix = stem.map_or_else(|| PREFIX.to_owned(), |stem| format!("{PREFIX}{stem}-"));
        Self { prefix, key, series: None }
    }

    /// Tells whether an artifact is of one of these runs, by its name.
    pub fn include(&self, name: &str) -> bool {
        self.key.as_ref().map_or_else(|| name.starts_with(&self.prefix), |key| self.has_key(name, key))
    }

    fn has_key(&self, name: &str, key: &RunKey) -> bool {
        let (rest, key) = (name.strip_prefix(&self.prefix).map(without_job), key.to_string());
        match rest {
            // Without a loop, what is left begins with one.
            // The name of a loop may hold hyphens, so the key is looked for from the end.
            Some(rest) if self.prefix == PREFIX => {
                rest.strip_suffix(&key).is_some_and(|of_loop| of_loop.ends_with('-'))
            }
            Some(rest) => rest == key,
            None => false,
        }
    }

    /// Returns the key in the name of an artifact, if it is that of the same leg of a matrix in another job.
    fn of_same_leg<'n>(&self, name: &'n str) -> Option<&'n str> {
        let other = name.strip_prefix(&self.prefix).map(without_job).filter(|_| self.prefix != PREFIX)?;
        self.key.as_ref().is_some_and(|key| key.is_of_same_leg(other)).then_some(other)
    }

    /// Returns the artifact to go on from: of those of these runs that can still be fetched, the one of the last attempt,
    /// and of several the newest. In the job that made them, a run goes on with what an earlier one of the job left. A job
    /// that has nothing but its name takes the run of another job, and a leg of a matrix that of the same leg of another
    /// job, if no third one could be meant: later jobs of one workflow never have the same name.
    ///
    /// # Errors
    /// There is none, or nothing says which key is meant.
    pub fn choose(&self, found: &[FoundArtifact], is_this_job: bool) -> Result<FoundArtifact, ArtifactError> {
        let stored: Vec<&FoundArtifact> =
            found.iter().filter(|found| found.name.starts_with(&self.prefix) && !found.expired).collect();
        let latest = |is_meant: &dyn Fn(&str) -> bool| {
            let meant = stored.iter().filter(|found| is_meant(&found.name));
            meant.max_by_key(|found| (attempt(&found.name), found.id)).map(|found| (*found).clone())
        };
        let names = || {
            let names: BTreeSet<String> = stored.iter().map(|found| found.name.clone()).collect();
            names.into_iter().collect()
        };
        if let Some(key) = &self.key {
            // In the same job, earlier steps count up from one; in another job, only the same place
            // can be meant.
            let earlier = if is_this_job { 1 } else { key.number() };
            let meant = (earlier..=key.number()).rev().map(|number| key.clone().nth(number));
            let mut of_key = meant.map(|key| latest(&|name| self.has_key(name, &key)));
            if let Some(found) = of_key.find_map(|found| found) {
                return Ok(found);
            }
        }
        let same_leg: BTreeSet<&str> =
            stored.iter().filter_map(|found| self.of_same_leg(&found.name)).collect();
        if same_leg.len() == 1 {
            return latest(&|name| self.of_same_leg(name).is_some()).ok_or_else(|| self.nothing());
        }
        let keys: BTreeSet<&str> = stored.iter().map(|found| without_job(&found.name)).collect();
        match (&self.key, keys.len()) {
            (_, 0) => Err(self.nothing()),
            (Some(key), _) if key.is_special() => {
                Err(ArtifactError::OtherKey { key: key.to_string(), names: names() })
            }
            (_, 1) => latest(&|_| true).ok_or_else(|| self.nothing()),
            _ => Err(ArtifactError::SeveralKeys { names: names() }),
        }
    }

    /// Returns the error for a search that found nothing.
    pub fn nothing(&self) -> ArtifactError {
        let key = self.key.as_ref().filter(|key| key.is_special());
        let of_key = key.map_or_else(String::new, |key| format!(" with the key `{key}`"));
        ArtifactError::Absent(format!("that begins with `{}`{of_key} and has not expired", self.prefix))
    }
}

/// Returns the key in the name of an artifact of a loop, which stands so in file names.
pub fn key_of<'n>(name: &'n str, stem: &str) -> Option<&'n str> {
    name.strip_prefix(PREFIX)?.strip_prefix(stem)?.strip_prefix('-').map(without_job)
}

/// Returns a name without what names the job at its end: `ll-loop-tidy-check` of `ll-loop-tidy-check-r42-c1-a2`.
pub fn without_job(name: &str) -> &str {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((rest, _)) = name.rsplit_once("-a") else { return name };
    let rest = rest.rsplit_once("-c").filter(|(_, count)| digits(count)).map_or(rest, |(rest, _)| rest);
    rest.rsplit_once("-r").map_or(name, |(rest, _)| rest)
}

/// Reads the attempt at the end of a name: `…-r42-a2` is of the second.
pub fn attempt(name: &str) -> u32 {
    name.rsplit_once("-a").and_then(|(_, digits)| digits.parse().ok()).unwrap_or(0)
}

/// Tells whether an artifact holds a run as it was on the way, by its name.
pub fn is_checkpoint(name: &str) -> bool {
    let Some((rest, _)) = name.rsplit_once("-a") else { return false };
    let count = rest.rsplit_once("-c").map_or("", |(_, count)| count);
    !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the id of a repository.
pub fn repository_id(api: &Api, repository: &RepositoryName) -> Result<u64, ArtifactError> {
    Ok(api.get::<workflow_run::Id>(&repository.path(""), &[])?.id)
}

/// Returns the artifacts of a run.
pub fn of_run(api: &Api, repository: &RepositoryName, run: u64) -> Result<Vec<FoundArtifact>, ArtifactError> {
    collect(api.list::<ArtifactList>(&repository.path(&format!("/actions/runs/{run}/artifacts")), &[]))
}

/// Returns the artifacts with this name, of all runs, the newest first.
pub fn named(
    api: &Api,
    repository: &RepositoryName,
    name: &str,
) -> Result<Vec<FoundArtifact>, ArtifactError> {
    let mut found =
        collect(api.list::<ArtifactList>(&repository.path("/actions/artifacts"), &[("name", name)]))?;
    // A server that does not know the parameter gives everything.
    found.retain(|found| found.name == name);
    // Ids grow with every artifact.
    found.sort_by_key(|found| std::cmp::Reverse(found.id));
    Ok(found)
}

/// Returns the newest artifact of these runs that can still be fetched, and that code of the repository itself made; for a
/// job that has nothing but its name, that of another job if it has none. The list begins with the newest, and no more
/// of it is read than needed; what stands behind the last page that is read counts as not there.
pub fn newest(origins: &Origins<'_>, runs: &RunsMeant) -> Result<Option<FoundArtifact>, ArtifactError> {
    let Origins { api, repository, .. } = origins;
    let mut of_another_key = None;
    // The list is lazy, so no page is asked for beyond the one that has the answer.
    for found in api.list::<ArtifactList>(&repository.path("/actions/artifacts"), &[]) {
        let found = match found {
            // Of a repository with more artifacts than are read, the newest ones have the answer: the others are long over, and
            // an error would keep a series from ever beginning.
            Err(ApiError::Endless { .. }) => break,
            found => found.map_err(needing)?,
        };
        let may_be_meant = found.name.starts_with(&runs.prefix) && !found.expired;
        if !may_be_meant || origins.of(&found)? != CodeOrigin::Own {
            continue;
        }
        if runs.include(&found.name) && is_of_series(&found, runs, origins)? {
            return Ok(Some(found));
        }
        let may_be_of_another =
            runs.key.as_ref().is_some_and(|key| !key.is_special()) || runs.of_same_leg(&found.name).is_some();
        if runs.series.is_none() && may_be_of_another {
            of_another_key.get_or_insert(found);
        }
    }
    Ok(of_another_key)
}

/// Returns the artifacts whose names fit and that were stored since a moment, which can still be fetched and which code of the
/// repository itself made. The list begins with the newest, and no more of it is read than needed.
pub fn since(
    origins: &Origins<'_>,
    fits: impl Fn(&str) -> bool,
    since: Timestamp,
) -> Result<Vec<FoundArtifact>, ArtifactError> {
    let Origins { api, repository, .. } = origins;
    let is_older = |found: &FoundArtifact| {
        let created = found.created_at.clone().and_then(|at| Timestamp::try_from(at).ok());
        created.is_some_and(|created| created < since)
    };
    let mut all = Vec::new();
    for found in api.list::<ArtifactList>(&repository.path("/actions/artifacts"), &[]) {
        let found = found.map_err(needing)?;
        if is_older(&found) {
            break;
        }
        if fits(&found.name) && !found.expired && origins.of(&found)? == CodeOrigin::Own {
            all.push(found);
        }
    }
    Ok(all)
}

/// Tells whether the run that made an artifact is of the series that is meant.
fn is_of_series(
    found: &FoundArtifact,
    runs: &RunsMeant,
    Origins { api, repository, .. }: &Origins<'_>,
) -> Result<bool, ArtifactError> {
    let (Some(series), Some(run)) = (&runs.series, found.run_id) else { return Ok(true) };
    match workflow_run::get(api, repository, run) {
        Ok(run) => Ok(series.include(&run)),
        // What the server does not say is no difference.
        Err(ApiError::NotFound { .. }) => Ok(true),
        Err(error) => Err(needing(error)),
    }
}

/// Fetches the zip file of an artifact, and compares it with its digest.
pub fn download(
    api: &Api,
    repository: &RepositoryName,
    found: &FoundArtifact,
    into: &mut File,
    limit: u64,
) -> Result<Downloaded, ArtifactError> {
    let expired = || ArtifactError::Expired { name: found.name.clone() };
    if found.expired {
        return Err(expired());
    }
    let path = repository.path(&format!("/actions/artifacts/{}/zip", found.id));
    let mut secrets = Vec::new();
    let blobs = Blobs::new(api.transport().clone());
    let fetched = blobs.fetch(into, limit, found.digest.as_deref(), || {
        let location = api.location(&path).map_err(|error| {
            let gone = matches!(error, ApiError::Gone { .. });
            if gone { expired() } else { needing(error) }
        })?;
        let signed = Signed::new(location);
        secrets.extend(signed.secrets());
        Ok(signed)
    })?;
    Ok(Downloaded {
        id: found.id,
        size: fetched.size,
        digest: fetched.digest,
        verified: found.digest.as_deref().is_some_and(is_sha256),
        secrets,
    })
}

fn collect(
    found: impl Iterator<Item = Result<FoundArtifact, ApiError>>,
) -> Result<Vec<FoundArtifact>, ArtifactError> {
    found.collect::<Result<_, _>>().map_err(needing)
}

fn needing(error: ApiError) -> ArtifactError {
    error.needing(NEEDS).into()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use serde_json::{Value, json};
    use wiremock::matchers::{method, path, query_param};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::fake::{FakeService, Fault, Style};
    use super::super::github_server::GithubServer;
    use super::super::http::Transport;
    use super::super::testing::{Pauses, TestServer};
    use super::*;

    fn repository() -> RepositoryName {
        RepositoryName::parse("o/r").unwrap()
    }

    fn api(address: &str, pauses: &Pauses) -> Api {
        Api::new(address, Some("ghs_geheim".into()), Transport::default().pause(pauses.pause()))
    }

    fn gitea(address: &str) -> Api {
        let is_gitea = |name: &str| (name == "GITEA_ACTIONS").then(|| "true".to_owned());
        api(address, &Pauses::none()).of(GithubServer::of(&is_gitea))
    }

    /// A row as GitHub writes it.
    fn row(id: u64, name: &str, head: Option<u64>) -> Value {
        json!({
            "id": id, "node_id": "x", "name": name, "size_in_bytes": 284, "expired": false,
            "created_at": "2026-11-20T20:24:38Z", "expires_at": null, "digest": "sha256:00",
            "workflow_run": {"id": 42, "repository_id": 1, "head_repository_id": head, "head_branch": "main",
                             "head_sha": "abc"},
        })
    }

    fn page(rows: &[Value]) -> ResponseTemplate {
        ResponseTemplate::new(200).set_body_json(json!({"total_count": rows.len(), "artifacts": rows}))
    }

    #[test]
    fn the_artifacts_of_a_run_are_read_from_all_pages() {
        let server = TestServer::start();
        let at = |number: &str| {
            let list = Mock::given(method("GET")).and(path("/repos/o/r/actions/runs/42/artifacts"));
            list.and(query_param("page", number)).and(query_param("per_page", "100"))
        };
        let rows: Vec<Value> = (1..=100).map(|id| row(id, "a", Some(1))).collect();
        server.mount(at("1").respond_with(page(&rows)));
        server.mount(at("2").respond_with(page(&[row(101, "b", Some(1))])));
        let found = of_run(&api(&server.address(), &Pauses::none()), &repository(), 42).unwrap();
        assert_eq!(found.len(), 101);
        let expected = FoundArtifact {
            id: 101,
            name: "b".into(),
            size: 284,
            digest: Some("sha256:00".into()),
            created_at: Some("2026-11-20T20:24:38Z".into()),
            expired: false,
            run_id: Some(42),
            repository_id: Some(1),
            head: HeadRepository::Is(1),
            head_branch: Some("main".into()),
            head_sha: Some("abc".into()),
        };
        assert_eq!(found[100], expected);
    }

    #[test]
    fn those_with_a_name_are_found_the_newest_first() {
        let server = TestServer::start();
        let list = Mock::given(path("/repos/o/r/actions/artifacts")).and(query_param("name", "a"));
        let rows = [row(1, "a", Some(1)), row(3, "a", Some(1)), row(9, "b", Some(1)), row(2, "a", None)];
        server.mount(list.respond_with(page(&rows)));
        let found = named(&api(&server.address(), &Pauses::none()), &repository(), "a").unwrap();
        assert_eq!(found.iter().map(|found| found.id).collect::<Vec<_>>(), [3, 2, 1]);
    }

    #[test]
    fn the_newest_is_one_of_this_repository_and_no_more_is_read_than_needed() {
        let server = TestServer::start();
        let mut expired = row(203, "ll-loop-a", Some(1));
        expired["expired"] = json!(true);
        let mut rows = vec![row(205, "other", Some(1)), row(204, "ll-loop-a", Some(6)), expired];
        rows.push(row(202, "ll-loop-a", None));
        rows.push(row(201, "ll-loop-a", Some(1)));
        rows.extend((0..95).map(|id| row(id, "ll-loop-a", Some(1))));
        let first = Mock::given(path("/repos/o/r/actions/artifacts")).and(query_param("page", "1"));
        server.mount(first.respond_with(page(&rows)));
        let api = api(&server.address(), &Pauses::none());
        let repository = repository();
        let runs = RunsMeant::of_loop(None, None);
        let found = newest(&Origins::new(&api, &repository, 1), &runs).unwrap().unwrap();
        assert_eq!((found.id, server.requests()), (201, 1));
        server.mount(Mock::given(query_param("page", "2")).respond_with(page(&[])));
        assert_eq!(newest(&Origins::new(&api, &repository, 2), &runs).unwrap(), None);
    }

    #[test]
    fn a_refusal_names_the_permission() {
        let server = TestServer::start();
        let refusal = ResponseTemplate::new(403).set_body_json(json!({"message": "no"}));
        server.mount(Mock::given(method("GET")).respond_with(refusal));
        let error = of_run(&api(&server.address(), &Pauses::none()), &repository(), 42).unwrap_err();
        let help = "give the job `permissions: { actions: read }`, or use another token";
        assert_eq!(error.help().as_deref(), Some(help));
    }

    #[track_caller]
    fn check_origin(of: Option<u64>, head: HeadRepository, own: Option<u64>, expect: CodeOrigin) {
        let found = FoundArtifact { repository_id: of, head, ..FoundArtifact::default() };
        assert_eq!(origin(&found, own), expect);
    }

    #[test]
    fn code_of_a_fork_is_foreign() {
        use HeadRepository::{Gone, Is, Untold};
        check_origin(Some(1), Is(1), Some(1), CodeOrigin::Own);
        check_origin(Some(1), Is(1), None, CodeOrigin::Own);
        check_origin(None, Is(1), Some(1), CodeOrigin::Own);
        check_origin(Some(1), Is(2), Some(1), CodeOrigin::Foreign);
        check_origin(Some(1), Is(2), None, CodeOrigin::Foreign);
        check_origin(Some(2), Is(2), Some(1), CodeOrigin::Foreign);
        check_origin(Some(1), Gone, Some(1), CodeOrigin::Foreign);
        check_origin(None, Gone, Some(1), CodeOrigin::Foreign);
        check_origin(None, Is(2), Some(1), CodeOrigin::Foreign);
        check_origin(None, Is(2), None, CodeOrigin::Foreign);
        check_origin(None, Untold, Some(1), CodeOrigin::Unknown);
        check_origin(Some(1), Untold, Some(1), CodeOrigin::Unknown);
        check_origin(None, Untold, None, CodeOrigin::Unknown);
    }

    /// Whose code made an artifact of which the server says no more than its run, as Gitea does.
    #[track_caller]
    fn check_asked(run: &ResponseTemplate, pull: Value, expect: Result<CodeOrigin, ()>) {
        let server = TestServer::start();
        let of_run = Mock::given(path("/repos/o/r/actions/runs/42"));
        server.mount(of_run.respond_with(run.clone()));
        let of_pull = Mock::given(path("/repos/o/r/pulls/2"));
        server.mount(of_pull.respond_with(ResponseTemplate::new(200).set_body_json(pull)));
        let mut row = row(5, "ll-loop-a", None);
        row["workflow_run"] = json!({"id": 42, "repository_id": 1, "head_sha": "abc"});
        let found: FoundArtifact = serde_json::from_value(row).unwrap();
        let (api, repository) = (gitea(&server.address()), repository());
        let origins = Origins::new(&api, &repository, 1);
        assert_eq!(origins.of(&found).map_err(drop), expect, "{run:?}");
        let asked = server.requests();
        assert_eq!(origins.of(&found).map_err(drop), expect, "{run:?}");
        assert!(expect.is_err() || server.requests() == asked.max(1), "a run is asked about once");
    }

    #[test]
    fn where_the_server_names_no_head_repository_event_and_pull_request_decide() {
        let answer = |status: u16, body: Value| ResponseTemplate::new(status).set_body_json(body);
        let run = |event: &str, at: &str| {
            let path = format!("fix.yml@{at}");
            answer(200, json!({"id": 42, "event": event, "path": path, "repository": {"id": 1}}))
        };
        let main = "refs/heads/main";
        let nothing = || json!({});
        for event in ["push", "schedule", "workflow_dispatch"] {
            check_asked(&run(event, main), nothing(), Ok(CodeOrigin::Own));
        }
        for event in ["issue_comment", "pull_request_target", "release", "repository_dispatch", ""] {
            check_asked(&run(event, main), nothing(), Ok(CodeOrigin::Unknown));
        }
        let pull = |repo: Value| json!({"head": {"ref": "fix", "repo": repo}});
        let of_pull = || run("pull_request", "refs/pull/2/head");
        check_asked(&of_pull(), pull(json!({"id": 1})), Ok(CodeOrigin::Own));
        check_asked(&of_pull(), pull(json!({"id": 7})), Ok(CodeOrigin::Foreign));
        check_asked(&of_pull(), pull(Value::Null), Ok(CodeOrigin::Foreign));
        // Pushed to `refs/for/main` by somebody who may only read.
        let for_review = json!({"head": {"ref": "refs/pull/2/head", "label": "", "repo": {"id": 1}}});
        check_asked(&of_pull(), for_review, Ok(CodeOrigin::Foreign));
        // A branch can have a name like that, and the ref of a pull request cannot be another one.
        check_asked(&run("pull_request", main), pull(json!({"id": 1})), Ok(CodeOrigin::Unknown));
        check_asked(&run("push", "refs/heads/a@refs/pull/2/head"), nothing(), Ok(CodeOrigin::Own));
        check_asked(&answer(404, nothing()), nothing(), Ok(CodeOrigin::Unknown));
        check_asked(&answer(403, nothing()), nothing(), Err(()));
        let forked = json!({"id": 42, "event": "push", "head_repository": {"id": 9}});
        check_asked(&answer(200, forked), nothing(), Ok(CodeOrigin::Foreign));
        let gone = json!({"id": 42, "event": "pull_request", "head_repository": null});
        check_asked(&answer(200, gone), nothing(), Ok(CodeOrigin::Foreign));
    }

    fn stored(names: &[&str]) -> Vec<FoundArtifact> {
        names
            .iter()
            .zip(1..)
            .map(|(name, id)| FoundArtifact {
                id,
                name: name.trim_start_matches('!').to_owned(),
                expired: name.starts_with('!'),
                ..FoundArtifact::default()
            })
            .collect()
    }

    #[track_caller]
    fn check_latest(names: &[&str], expect: Option<usize>) {
        let found = stored(names);
        let runs = RunsMeant::of_loop(None, None);
        assert_eq!(runs.choose(&found, false).ok().as_ref(), expect.map(|at| &found[at]));
    }

    #[test]
    fn the_last_attempt_counts_and_then_the_newest() {
        check_latest(&[], None);
        check_latest(&["logs", "coverage-a9"], None);
        check_latest(&["ll-loop-t-r1-a2", "ll-loop-t-r1-a1"], Some(0));
        check_latest(&["ll-loop-t-r1-a9", "ll-loop-t-r1-a10"], Some(1));
        check_latest(&["ll-loop-t-r1-a1", "ll-loop-t-r1-a1", "logs"], Some(1));
        check_latest(&["ll-loop-t-r1-c1-a1", "ll-loop-t-r1-c2-a1"], Some(1));
        check_latest(&["ll-loop-t-r1-a1", "!ll-loop-t-r1-a2"], Some(0));
    }

    /// What a job with this key goes on with.
    #[track_caller]
    fn check_chosen(names: &[&str], (stem, key): (Option<&str>, Option<RunKey>), expect: Result<&str, &str>) {
        let chosen = RunsMeant::of_loop(stem, key).choose(&stored(names), true);
        let chosen = chosen.map(|found| found.name).map_err(|error| error.to_string());
        match expect {
            Ok(name) => assert_eq!(chosen.as_deref(), Ok(name)),
            Err(why) => assert!(chosen.as_ref().is_err_and(|error| error.contains(why)), "{chosen:?}"),
        }
    }

    #[test]
    fn a_run_goes_on_with_what_has_its_own_key() {
        let job = |job: &str| Some(RunKey::new(None, job));
        let leg = |os: &str| Some(RunKey::new(Some(&json!({"os": os}).to_string()), "test"));
        let legs = ["ll-loop-t-test.mac-r1-a1", "ll-loop-t-test.win-r1-a1", "ll-loop-t-test.win-r1-a2"];
        check_chosen(&legs, (Some("t"), leg("mac")), Ok("ll-loop-t-test.mac-r1-a1"));
        check_chosen(&legs, (Some("t"), leg("win")), Ok("ll-loop-t-test.win-r1-a2"));
        check_chosen(&legs, (None, leg("win")), Ok("ll-loop-t-test.win-r1-a2"));
        let none =
            "no run with the key `test.bsd`, but `ll-loop-t-test.mac-r1-a1`, `ll-loop-t-test.win-r1-a1`";
        check_chosen(&legs, (Some("t"), leg("bsd")), Err(none));
        // Nobody says which leg a job without a matrix means; a single run of another job is meant.
        check_chosen(&legs, (Some("t"), job("test")), Err("several keys"));
        check_chosen(&legs, (Some("t"), None), Err("several keys"));
        check_chosen(&legs[1..], (Some("t"), job("later")), Ok("ll-loop-t-test.win-r1-a2"));
        check_chosen(&legs[1..], (Some("t"), leg("mac")), Err("no run with the key `test.mac`"));
        check_chosen(&legs, (Some("u"), leg("mac")), Err("begins with `ll-loop-u-` with the key `test.mac`"));
        // Of another loop whose name goes on where ours ends, and of one that has a key in its name.
        let alike = ["ll-loop-tidy-all-test-r1-a1", "ll-loop-tidy-test-r1-a1"];
        check_chosen(&alike, (Some("tidy"), job("test")), Ok("ll-loop-tidy-test-r1-a1"));
        check_chosen(&alike, (Some("tidy-all"), job("test")), Ok("ll-loop-tidy-all-test-r1-a1"));
        check_chosen(
            &["ll-loop-t-r-r7-a1-r1-a1"],
            (Some("t"), job("r-r7-a1")),
            Ok("ll-loop-t-r-r7-a1-r1-a1"),
        );
    }

    #[test]
    fn a_later_step_of_the_job_goes_on_with_an_earlier_run() {
        let nth = |number| (Some("t"), Some(RunKey::new(None, "test").nth(number)));
        let names = ["ll-loop-t-test-r1-a1", "ll-loop-t-test+2-r1-a1"];
        check_chosen(&names, nth(1), Ok(names[0]));
        check_chosen(&names, nth(2), Ok(names[1]));
        check_chosen(&names, nth(3), Ok(names[1]));
        let elsewhere = RunsMeant::of_loop(Some("t"), nth(3).1).choose(&stored(&names), false);
        assert!(elsewhere.is_err());
    }

    #[track_caller]
    fn check_repository(text: &str, expect: bool) {
        assert_eq!(RepositoryName::parse(text).is_some(), expect, "{text}");
    }

    #[test]
    fn a_repository_is_an_owner_and_a_name() {
        check_repository("little-loops/ll-loop", true);
        check_repository("o/.github", true);
        for wrong in ["", "o", "/r", "o/", "o/r/x", "o/..", "../r", "o/r?x", "o/r#x", "o r/x", "o/%2e%2e"] {
            check_repository(wrong, false);
        }
    }

    /// What fetching a small artifact comes to while something goes wrong so many times.
    #[track_caller]
    fn check(on: &'static str, times: u32, fault: Fault, expect: Result<usize, (&str, Option<&str>)>) {
        let service = FakeService::start(Style::Azure);
        service.store("state", b"zip", Value::Null);
        service.fault(on, times, fault);
        let pauses = Pauses::default();
        let found = FoundArtifact { id: 1001, name: "state".into(), ..FoundArtifact::default() };
        let mut into = tempfile::tempfile().unwrap();
        let api = api(&service.address(), &pauses);
        let result = download(&api, &repository(), &found, &mut into, 10);
        let mut content = String::new();
        into.rewind().unwrap();
        into.read_to_string(&mut content).unwrap();
        match (result, expect) {
            (Ok(downloaded), Ok(expect)) => {
                assert_eq!((content.as_str(), downloaded.size, downloaded.verified), ("zip", 3, false));
                // Each try had an address of its own.
                assert_eq!(downloaded.secrets.len(), 2 * service.count("GET /blob/"));
                assert_eq!(pauses.seconds().len(), expect);
            }
            (Err(error), Err((message, help))) => {
                assert_eq!((error.to_string().as_str(), error.help().as_deref()), (message, help));
                assert!(!format!("{error:?}").contains("c2VjcmV0"), "{error:?}");
            }
            (result, expect) => panic!("{on}: {result:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn an_artifact_is_fetched_without_the_token_and_with_patience() {
        let zip = "/actions/artifacts/1001/zip";
        check("nothing", 0, Fault::Drop, Ok(0));
        check(zip, 2, Fault::Answer(502, ""), Ok(2));
        check(zip, 1, Fault::Drop, Ok(1));
        check("GET /blob/", 2, Fault::Cut, Ok(2));
        check("GET /blob/", 1, Fault::Answer(503, ""), Ok(1));
        let expired = "artifacts are kept for `retention-days`: run it again, or keep them longer";
        check(
            zip,
            1,
            Fault::Answer(410, r#"{"message":"Artifact has expired"}"#),
            Err(("the artifact `state` has expired", Some(expired))),
        );
        check(
            "GET /blob/",
            1,
            Fault::Answer(404, "<Error><Code>BlobNotFound</Code></Error>"),
            Err(("fetching the artifact was refused with status 404: BlobNotFound", None)),
        );
        check(
            "GET /blob/",
            1,
            Fault::Answer(200, "more than that"),
            Err(("the artifact has more than 10 bytes", None)),
        );
    }

    #[test]
    fn what_has_expired_is_not_asked_for() {
        let found = FoundArtifact { name: "old".into(), expired: true, ..FoundArtifact::default() };
        let mut into = tempfile::tempfile().unwrap();
        let api = api("http://127.0.0.1:9", &Pauses::none());
        let error = download(&api, &repository(), &found, &mut into, 10).unwrap_err();
        assert!(matches!(&error, ArtifactError::Expired { name } if name == "old"), "{error:?}");
        assert!(error.is_absent() && !error.is_unavailable());
    }
}
