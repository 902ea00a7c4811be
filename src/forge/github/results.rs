//! The artifact service of the run that is going on: version 4 of GitHub's, which Gitea, Forgejo and act have as well.
//!
//! The runner gives its address and token to actions, not to `run:` steps. An artifact is created, its blob is stored
//! behind a signed address, and then it is finalized with size and digest; until then nobody sees it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, Uri};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::artifact_fault::ArtifactError;
use super::blob::{Blobs, Signed, failed, is_sha256};
use super::client::Client;
use super::github_server::is_of_github;
use super::http::{Again, Failed, RetryPolicy, Token, Transport, is_trouble, read, send, tries};
use crate::base::lookup::Lookup;
use crate::base::text::{hex, one_line};
use crate::base::time::Timestamp;

const SERVICE: &str = "twirp/github.actions.results.api.v1.ArtifactService";

/// The version of artifacts that every server has. Later ones demand a field that act and Gitea reject.
const VERSION: u32 = 4;

/// What is read, hashed and sent at once. Blocks go one after the other, because act appends them as they come.
const BLOCK: usize = 8 << 20;

// As the official client: five tries, from three seconds on, each pause half as long again.
const PATIENCE: RetryPolicy = RetryPolicy { tries: 5, first: Duration::from_secs(3), growth: 1.5 };

/// For what may go unanswered.
const GLANCE: RetryPolicy = RetryPolicy { tries: 2, first: Duration::from_secs(1), growth: 1.0 };

/// A longer wait than this that the server asks for is shortened; the tries are few.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How long a request may take altogether.
const WHOLE: Duration = Duration::from_mins(2);

/// The most bytes of an answer.
const MAX_BODY: u64 = 16 << 20;

// GitHub has no limit, and Forgejo takes no longer name.
const MAX_NAME: usize = 255;

/// The artifact service of this run.
#[derive(Clone, Debug)]
pub struct Results {
    origin: String,
    token: Token,
    ids: Ids,
    client: Client,
    blobs: Blobs,
    transport: Transport,
}

/// Which run and job of the service's own count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Ids {
    #[serde(rename = "workflow_run_backend_id", alias = "workflowRunBackendId")]
    run: String,
    #[serde(rename = "workflow_job_run_backend_id", alias = "workflowJobRunBackendId")]
    job: String,
}

/// An artifact that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// Its id, which the REST API knows it by as well.
    pub id: u64,
    /// The bytes of the zip file.
    pub size: u64,
    /// `sha256:` and the digest of the zip file.
    pub digest: String,
    /// What a log has to mask.
    pub secrets: Vec<String>,
}

/// An artifact that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// Its id.
    pub id: u64,
    /// The bytes that came.
    pub size: u64,
    /// `sha256:` and the digest of what came.
    pub digest: String,
    /// Whether the service has a digest too; what came was compared with it then.
    pub verified: bool,
    /// What a log has to mask.
    pub secrets: Vec<String>,
}

/// An artifact of this run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListedArtifact {
    #[serde(flatten)]
    ids: Ids,
    /// Its id.
    #[serde(alias = "databaseId", rename = "database_id", deserialize_with = "number")]
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The bytes of the zip file.
    #[serde(default, deserialize_with = "number")]
    pub size: u64,
    /// When it was created.
    #[serde(alias = "createdAt")]
    pub created_at: Option<String>,
    /// `sha256:` and the digest of the zip file.
    pub digest: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Created {
    #[serde(default)]
    ok: bool,
    #[serde(default, alias = "signedUploadUrl")]
    signed_upload_url: String,
}

#[derive(Debug, Deserialize)]
struct FinishedReply {
    #[serde(default)]
    ok: bool,
    #[serde(default, alias = "artifactId", deserialize_with = "number")]
    artifact_id: u64,
}

#[derive(Debug, Deserialize)]
struct ArtifactListing {
    #[serde(default)]
    artifacts: Vec<ListedArtifact>,
}

#[derive(Debug, Deserialize)]
struct LocatedArtifact {
    #[serde(alias = "signedUrl")]
    signed_url: String,
}

impl Results {
    /// Makes a client of the service that the runner names; none where it names none, see [`absent`].
    pub fn from_env(env: Lookup<'_>) -> Result<Option<Self>, ArtifactError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let (Some(address), Some(token)) = (set("ACTIONS_RESULTS_URL"), set("ACTIONS_RUNTIME_TOKEN")) else {
            return Ok(None);
        };
        let transport = Transport::from_env(env).map_err(|why| ArtifactError::Access(why.to_string()))?;
        Self::new(&address, token, transport).map(Some)
    }

    /// Makes a client of the service at this address, of which the origin counts. The token says which run and job it
    /// is for.
    pub fn new(address: &str, token: String, transport: Transport) -> Result<Self, ArtifactError> {
        let access = |reason: &str| ArtifactError::Access(reason.to_owned());
        let uri: Uri = address.parse().map_err(|_| access("`ACTIONS_RESULTS_URL` is not a URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(access("`ACTIONS_RESULTS_URL` is not a URL"));
        };
        // As the official client does: the path of that address is dropped.
        let origin = format!("{scheme}://{authority}");
        let ids = ids(&token)
            .ok_or_else(|| access("`ACTIONS_RUNTIME_TOKEN` does not name a run with artifacts"))?;
        let (client, blobs) = (transport.client(Some(WHOLE)), Blobs::new(transport.clone()));
        Ok(Self { origin, token: Token::new(token), ids, client, blobs, transport })
    }

    /// Stores a zip file as the artifact with this name, which has to be new. GitHub says when it is not; act and Gitea
    /// would replace what is there without a word, so they are asked before.
    pub fn upload(
        &self,
        name: &str,
        zip: &Path,
        expires_at: Option<Timestamp>,
    ) -> Result<Uploaded, ArtifactError> {
        check_name(name)?;
        // As long as act has stored nothing, it hangs up in place of an empty list. Any other trouble shows when the
        // artifact is created.
        if self.listed(Some(name), GLANCE).is_ok_and(|found| !found.is_empty()) {
            return Err(ArtifactError::Conflict { name: name.to_owned() });
        }
        self.replace(name, zip, expires_at)
    }

    /// The same in the place of an artifact that is there, where the service lets it be replaced.
    pub fn replace(
        &self,
        name: &str,
        zip: &Path,
        expires_at: Option<Timestamp>,
    ) -> Result<Uploaded, ArtifactError> {
        check_name(name)?;
        let mut file = crate::files::read::open(zip).map_err(std::io::Error::from)?;
        // No `mime_type`, which later versions of the protocol know: act and Gitea refuse unknown
        // fields.
        let mut create = request(&self.ids, json!({"name": name, "version": VERSION}));
        if let Some(time) = expires_at {
            // Only when it is wanted: without it, the setting of the repository holds.
            create["expires_at"] = json!(time);
        }
        let created: Created = self.call("CreateArtifact", "creating the artifact", name, &create)?;
        accepted(created.ok, "creating the artifact")?;
        let to = Signed::new(created.signed_upload_url);
        let (size, digest) = self.store(&mut file, &to)?;
        let id = self.finalize(name, size, &digest)?;
        self.check_stored(name, size, &digest)?;
        Ok(Uploaded { id, size, digest, secrets: to.secrets() })
    }

    /// Stores the blob, and returns its size and digest.
    fn store(&self, file: &mut File, to: &Signed) -> Result<(u64, String), ArtifactError> {
        let blob = Uuid::new_v4().simple();
        let mut ids: Vec<String> = Vec::new();
        let mut hash = Sha256::new();
        let mut size = 0;
        // As large as it gets: one that grew would be there twice for a moment.
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            file.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
            if block.is_empty() {
                break;
            }
            // Letters and digits in fours are Base64 as they are.
            let id = format!("{blob}{:032}", ids.len());
            self.blobs.put_block(to, &id, &block)?;
            hash.update(&block);
            size += block.len() as u64;
            ids.push(id);
        }
        // The list makes the blob; blocks alone are thrown away after a while.
        self.blobs.put_list(to, &ids)?;
        Ok((size, format!("sha256:{}", hex(&hash.finalize()))))
    }

    /// Looks whether what is there now is what was stored, where the service does not compare digests: there, two jobs
    /// that store under one name in the same moment are both let in.
    fn check_stored(&self, name: &str, size: u64, digest: &str) -> Result<(), ArtifactError> {
        let found = self.listed(Some(name), GLANCE).ok().and_then(|mut found| found.pop());
        if found.is_none_or(|listed| listed.digest.is_some()) {
            return Ok(());
        }
        let mut there = tempfile::tempfile()?;
        // No more than what was stored, as more would be something else.
        match self.download(name, &mut there, size) {
            Ok(there) if there.digest == digest => Ok(()),
            Ok(_) | Err(ArtifactError::TooLarge { .. }) => {
                Err(ArtifactError::Conflict { name: name.to_owned() })
            }
            // It was stored, as far as anybody knows.
            Err(_) => Ok(()),
        }
    }

    fn finalize(&self, name: &str, size: u64, digest: &str) -> Result<u64, ArtifactError> {
        const WHAT: &str = "finalizing the artifact";
        // 64-bit numbers are texts in the JSON of this protocol.
        let fields = json!({"name": name, "size": size.to_string(), "hash": digest});
        let result = self
            .call("FinalizeArtifact", WHAT, name, &request(&self.ids, fields))
            .and_then(|done: FinishedReply| accepted(done.ok, WHAT).map(|()| done.artifact_id));
        match result {
            Err(error) if !error.is_unavailable() => {
                // Where the answer to the first try was lost, the next one is refused, and the artifact is there.
                let ours =
                    |listed: &ListedArtifact| listed.digest.as_deref() == Some(digest) && listed.size == size;
                let found = self.list(Some(name)).ok().and_then(|all| all.into_iter().find(ours));
                found.map(|listed| listed.id).ok_or(error)
            }
            result => result,
        }
    }

    /// Returns the artifacts of this run, or those with this name. Of several with one name the newest counts.
    pub fn list(&self, name: Option<&str>) -> Result<Vec<ListedArtifact>, ArtifactError> {
        self.listed(name, PATIENCE)
    }

    fn listed(
        &self,
        name: Option<&str>,
        patience: RetryPolicy,
    ) -> Result<Vec<ListedArtifact>, ArtifactError> {
        let fields = name.map_or_else(|| json!({}), |name| json!({"name_filter": name}));
        let found: ArtifactListing = self.call_with(
            patience,
            "ListArtifacts",
            "listing the artifacts",
            name.unwrap_or(""),
            &request(&self.ids, fields),
        )?;
        let mut newest = BTreeMap::<String, ListedArtifact>::new();
        for listed in found.artifacts {
            // act and Gitea may have several of one name.
            let older = newest.get(&listed.name).is_none_or(|known| known.id < listed.id);
            // Not every server heeds the filter.
            if older && name.is_none_or(|name| name == listed.name) {
                newest.insert(listed.name.clone(), listed);
            }
        }
        Ok(newest.into_values().collect())
    }

    /// Fetches the zip file of an artifact of this run.
    pub fn download(&self, name: &str, into: &mut File, limit: u64) -> Result<Downloaded, ArtifactError> {
        let mut listed = self.list(Some(name))?;
        let listed = listed.pop().ok_or_else(|| ArtifactError::Absent(format!("`{name}` in this run")))?;
        let mut secrets = Vec::new();
        let fetched = self.blobs.fetch(into, limit, listed.digest.as_deref(), || {
            let request = request(&listed.ids, json!({"name": name}));
            let located: LocatedArtifact =
                self.call("GetSignedArtifactURL", "locating the artifact", name, &request)?;
            let signed = Signed::new(located.signed_url);
            secrets.extend(signed.secrets());
            Ok(signed)
        })?;
        Ok(Downloaded {
            id: listed.id,
            size: fetched.size,
            digest: fetched.digest,
            verified: listed.digest.as_deref().is_some_and(is_sha256),
            secrets,
        })
    }

    /// Calls a method. `name` is that of the artifact it is about.
    fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        what: &'static str,
        name: &str,
        request: &Value,
    ) -> Result<T, ArtifactError> {
        self.call_with(PATIENCE, method, what, name, request)
    }

    fn call_with<T: DeserializeOwned>(
        &self,
        patience: RetryPolicy,
        method: &str,
        what: &'static str,
        name: &str,
        request: &Value,
    ) -> Result<T, ArtifactError> {
        let address = format!("{}/{SERVICE}/{method}", self.origin);
        let authorization = self.token.bearer();
        let headers = [("Content-Type", "application/json"), ("Authorization", authorization.as_str())];
        let body = request.to_string();
        tries(patience, &self.transport, |_| {
            let failed = |lost| failed(what, lost);
            let mut answer =
                send(&self.client, "POST", &address, &headers, Some(body.as_bytes())).map_err(failed)?;
            let bytes = read(&mut answer, MAX_BODY).map_err(failed)?;
            match answer.status().as_u16() {
                // A page of a proxy in the place of an answer is trouble that passes.
                200..=299 => serde_json::from_slice(&bytes).map_err(|error| Failed {
                    error: ArtifactError::Unavailable { what, reason: format!("unreadable answer: {error}") },
                    again: Again::Soon,
                }),
                status => Err(refused(method, what, name, status, answer.headers(), &bytes)),
            }
        })
    }
}

/// Makes the request of a method: what it is about, and the run and job.
fn request(ids: &Ids, mut fields: Value) -> Value {
    fields["workflow_run_backend_id"] = json!(ids.run);
    fields["workflow_job_run_backend_id"] = json!(ids.job);
    fields
}

/// Tells whether the runner names a service, and gives a token for it.
pub fn is_offered(env: Lookup<'_>) -> bool {
    ["ACTIONS_RESULTS_URL", "ACTIONS_RUNTIME_TOKEN"]
        .iter()
        .all(|name| env(name).is_some_and(|value| !value.is_empty()))
}

/// Returns what tells the job from the others of its CI run, where the runner does not count attempts: then it is the same
/// when the job runs again.
pub fn uncounted_job(env: Lookup<'_>) -> Option<String> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let job = ids(&set("ACTIONS_RUNTIME_TOKEN")?)?.job;
    (set("GITHUB_RUN_ATTEMPT").is_none() && !job.is_empty()).then_some(job)
}

/// Says what to do where [`Results::from_env`] finds no service.
pub fn absent(env: Lookup<'_>) -> &'static str {
    if is_enterprise_server(env) {
        "GitHub Enterprise Server has artifacts of version 3 alone: upload the directory with actions/upload-artifact@v3"
    } else {
        "a runner gives the service to actions and container actions, not to `run:` steps: upload with actions/upload-artifact"
    }
}

/// Tells whether this is a server of GitHub's that somebody else runs.
fn is_enterprise_server(env: Lookup<'_>) -> bool {
    let imitates = ["GITEA_ACTIONS", "FORGEJO_ACTIONS"].iter().any(|name| env(name).is_some());
    // Their jobs set GitHub's variables with the address of another host.
    let host = env("GITHUB_SERVER_URL")
        .and_then(|address| address.parse::<Uri>().ok()?.host().map(str::to_ascii_lowercase))
        .unwrap_or_else(|| "github.com".to_owned());
    !imitates && !is_of_github(&host)
}

/// Returns when something expires that is kept for so many days, or as long as the repository keeps anything.
pub fn expiry(days: u32, env: Lookup<'_>, now: Timestamp) -> Timestamp {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    // The service refuses a longer time than the repository allows.
    let most = env("GITHUB_RETENTION_DAYS").and_then(|days| days.parse().ok()).unwrap_or(u32::MAX);
    Timestamp::from_millis(now.as_millis().saturating_add(i64::from(days.min(most)).saturating_mul(DAY)))
}

/// Checks a name as the service does (`path-and-artifact-name-validation.ts` of actions/toolkit).
pub fn check_name(name: &str) -> Result<(), ArtifactError> {
    let wrong = |reason| Err(ArtifactError::Name { name: one_line(name, 60), reason });
    match name {
        "" => wrong("it is empty"),
        _ if name.contains(['"', ':', '<', '>', '|', '*', '?', '\r', '\n', '\\', '/']) => {
            wrong("it holds a character that some file systems refuse in names")
        }
        _ if name.chars().count() > MAX_NAME => wrong("it is too long"),
        _ => Ok(()),
    }
}

/// Reads the scope of the token that is about results: `Actions.Results:<run>:<job>`. Nothing is verified; the service
/// does that.
fn ids(token: &str) -> Option<Ids> {
    let payload = base64(token.split('.').nth(1)?)?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    claims.get("scp")?.as_str()?.split(' ').find_map(|scope| {
        let parts: Vec<&str> = scope.split(':').collect();
        match parts[..] {
            ["Actions.Results", run, job] => Some(Ids { run: run.to_owned(), job: job.to_owned() }),
            _ => None,
        }
    })
}

/// Decodes Base64, in either alphabet, with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Reads a number that may be written as text, as 64 bits are in this JSON.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Digits(u64),
        Text(String),
    }
    match Number::deserialize(from)? {
        Number::Digits(number) => Ok(number),
        Number::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

fn accepted(ok: bool, what: &'static str) -> Result<(), ArtifactError> {
    let message = "the service reports that it failed".to_owned();
    if ok { Ok(()) } else { Err(ArtifactError::Refused { what, status: 200, message }) }
}

/// Judges an unsuccessful answer.
fn refused(
    method: &str,
    what: &'static str,
    name: &str,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
) -> Failed<ArtifactError> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or("");
    // Gitea answers in plain text, and a server in between with a page.
    let plain = String::from_utf8_lossy(body);
    let is_plain = answer.is_null() && !plain.trim_start().starts_with('<');
    let message = match one_line(if is_plain { plain.trim() } else { text("msg") }, 300) {
        said if said.is_empty() => "it says nothing more".to_owned(),
        said => said,
    };
    let name = || name.to_owned();
    let error = match status {
        // A quota comes with a status that says less than its words.
        _ if message.to_ascii_lowercase().contains("insufficient usage") => ArtifactError::Quota { message },
        429 => {
            let wait = headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            let again = wait
                .map_or(Again::Soon, |seconds| Again::After(Duration::from_secs(seconds).min(LONGEST_WAIT)));
            let reason = format!("status {status}: {message}");
            return Failed { error: ArtifactError::Unavailable { what, reason }, again };
        }
        status if is_trouble(status) => {
            let reason = format!("status {status}: {message}");
            return Failed { error: ArtifactError::Unavailable { what, reason }, again: Again::Soon };
        }
        409 => ArtifactError::Conflict { name: name() },
        401 | 403 => ArtifactError::Denied { message },
        // Any other 404 is of a server that has no such service.
        404 if text("code") != "not_found" => ArtifactError::Unsupported,
        // After a lost answer, `FinalizeArtifact` finds the artifact done, which is no absence.
        404 if method != "FinalizeArtifact" => ArtifactError::Absent(format!("`{}` in this run", name())),
        status => ArtifactError::Refused { what, status, message },
    };
    Failed::for_good(error)
}
