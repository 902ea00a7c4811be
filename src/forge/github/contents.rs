//! Files of a repository at one commit, read through GitHub's API for whoever copies them: which commit a name means,
//! whether the repository itself has that commit, and what a file of it holds.
//!
//! GitHub serves the commits of every fork under the name of the repository that it was forked from. A commit counts
//! only when a branch or a tag of the repository leads to it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde::Deserialize;

use super::api::{Api, ApiError};
use super::github_server::{GithubServer, is_of_github};
use super::http::Transport;
use super::repository::RepositoryName;
use super::workflow_event::is_sha;
use super::workflow_job::WorkflowJob;
use crate::base::lookup::Lookup;
use crate::base::object::id_of;
use crate::base::text::{is_hex, one_line, percent_encoded};

const GITHUB: &str = "https://github.com";

/// A tag may be one of a tag, and that again.
const DEEPEST_TAG: u32 = 5;

/// The most branches and tags that a commit is looked for in.
const MOST_REFS: usize = 300;

/// The most of them that it is compared with.
const MOST_COMPARED: usize = 30;

/// The most directories that are looked at for one loop.
const MOST_DIRECTORIES: usize = 100;

/// Why a file of a repository cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    /// The API.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The repository has another name now.
    #[error("`{asked}` is `{now}` on {server}")]
    Renamed {
        /// What was asked for.
        asked: String,
        /// What it is called.
        now: String,
        /// Who says so.
        server: GithubServer,
    },
    /// There is no such branch, tag or commit.
    #[error("`{repository}` has no branch, tag or commit `{name}`")]
    NoRef {
        /// The repository.
        repository: String,
        /// What was asked for.
        name: String,
    },
    /// It is a branch and a tag.
    #[error("`{0}` is both a branch and a tag")]
    Ambiguous(String),
    /// It is a part of a commit's id, which may mean another one tomorrow.
    #[error("`{0}` is a part of the id of a commit, and may mean another commit tomorrow")]
    Short(String),
    /// It is a commit of somebody else's.
    #[error("no branch or tag of `{repository}` leads to the commit {commit}{among}")]
    Foreign {
        /// The repository.
        repository: String,
        /// The commit.
        commit: String,
        /// How many of them were looked at, where that were not all.
        among: String,
    },
    /// A tag leads to something else than a commit.
    #[error("`{name}` leads to {what}, not to a commit")]
    NotACommit {
        /// The name.
        name: String,
        /// What it leads to.
        what: String,
    },
    /// There is something else in the place of a file.
    #[error("`{path}` is {what}, not a file")]
    NotAFile {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// The file is too large.
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge {
        /// The path.
        path: String,
        /// The most bytes that are left.
        limit: u64,
    },
    /// What came is not what was announced, or nothing that can be.
    #[error("{0}")]
    Odd(String),
}

impl ContentsError {
    /// Returns what to do about it.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Api(error) => return error.help(),
            Self::Renamed { now, .. } => {
                return Some(format!("look whether you trust `{now}`, and write that"));
            }
            Self::NoRef { .. } => "write a branch, a tag, or the 40 digits of a commit",
            Self::Ambiguous(name) => return Some(format!("write `refs/tags/{name}` or `refs/heads/{name}`")),
            Self::Short(_) => "write all 40 digits",
            Self::Foreign { .. } => {
                "it may be a commit of a fork, which anybody can make; name a branch or tag that you trust, or the fork"
            }
            Self::NotAFile { .. } => "a shared loop is made of plain files",
            Self::NotACommit { .. } | Self::TooLarge { .. } | Self::Odd(_) => return None,
        };
        Some(help.to_owned())
    }

    /// Tells whether it is the service that is not there now.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_unavailable())
    }
}

/// A name, and the commit that it means now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeantCommit {
    /// `refs/heads/…`, `refs/tags/…`, or the commit itself.
    pub reference: String,
    /// The commit.
    pub commit: String,
}

/// A repository on a server.
pub struct ServerRepository<'a> {
    api: &'a Api,
    repository: RepositoryName,
    default_branch: String,
}

/// Returns a client of the server that the environment names, and the server's address.
pub fn server(env: Lookup<'_>, token: Option<String>) -> Result<(Api, String), ApiError> {
    let plain = |address: Option<String>| {
        address.map(|address| address.trim_end_matches('/').to_owned()).filter(|address| !address.is_empty())
    };
    let job = WorkflowJob::read(env);
    let (api, server) = (plain(job.api_url), plain(job.server_url));
    let host = |address: &String| address.parse::<Uri>().ok()?.host().map(str::to_ascii_lowercase);
    let origin = |address: &String| {
        let uri = address.parse::<Uri>().ok()?;
        Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
    };
    let of_server = server.as_ref().filter(|server| host(server).is_none_or(|host| !is_of_github(&host)));
    // GitHub Enterprise Server has its API below `/api/v3` of the same host.
    let Some(base) = api.clone().or_else(|| of_server.map(|server| format!("{server}/api/v3"))) else {
        return Ok((Api::from_env(env, token)?, server.unwrap_or_else(|| GITHUB.to_owned())));
    };
    let of_api = api.as_ref().filter(|api| host(api).is_none_or(|host| !is_of_github(&host)));
    let server = server.or_else(|| of_api.and_then(origin)).unwrap_or_else(|| GITHUB.to_owned());
    let api =
        Api::new(&base, token, Transport::from_env(env).map_err(|why| ApiError::Setup(why.to_string()))?);
    Ok((api.of(GithubServer::of(env)), server))
}

#[derive(Deserialize)]
struct RepositoryAnswer {
    full_name: String,
    default_branch: String,
}

#[derive(Deserialize)]
struct RefAnswer {
    #[serde(rename = "ref")]
    name: String,
    object: ObjectAnswer,
}

#[derive(Deserialize)]
struct ObjectAnswer {
    #[serde(rename = "type")]
    kind: String,
    sha: String,
}

#[derive(Deserialize)]
struct TagAnswer {
    object: ObjectAnswer,
}

#[derive(Deserialize)]
struct CommitAnswer {
    sha: String,
    tree: TreeName,
}

#[derive(Deserialize)]
struct TreeName {
    sha: String,
}

#[derive(Deserialize)]
struct NamedCommit {
    name: String,
    commit: TreeName,
}

#[derive(Deserialize)]
struct CommitComparison {
    status: String,
}

#[derive(Deserialize)]
struct TreeAnswer {
    tree: Vec<DirectoryItem>,
    #[serde(default)]
    truncated: bool,
}

/// Something in a directory.
#[derive(Clone, Deserialize)]
struct DirectoryItem {
    path: String,
    mode: String,
    sha: String,
    size: Option<u64>,
}

#[derive(Deserialize)]
struct BlobAnswer {
    content: String,
    encoding: String,
}

impl<'a> ServerRepository<'a> {
    /// Finds a repository.
    pub fn open(api: &'a Api, name: &str) -> Result<Self, ContentsError> {
        let parsed = |name: &str| {
            RepositoryName::parse(name)
                .ok_or_else(|| ContentsError::Odd(format!("`{}` is not a repository", one_line(name, 100))))
        };
        let repository = parsed(name)?;
        let found: RepositoryAnswer = api.get(&repository.path(""), &[])?;
        // Whoever trusted the old name has not trusted the new one, and a name that was given up
        // can be taken by somebody else.
        if !found.full_name.eq_ignore_ascii_case(name) {
            let (asked, now) = (name.to_owned(), one_line(&found.full_name, 200));
            return Err(ContentsError::Renamed { asked, now, server: api.server().clone() });
        }
        // The server's own letters: a loop otherwise had several names.
        Ok(Self { api, repository: parsed(&found.full_name)?, default_branch: found.default_branch })
    }

    /// Returns the name of the repository as the server writes it.
    pub fn name(&self) -> String {
        self.repository.to_string()
    }

    /// Finds the commit that a name means, and makes sure that it is one of this repository.
    pub fn resolve(&self, name: &str) -> Result<MeantCommit, ContentsError> {
        let lower = name.to_ascii_lowercase();
        if is_sha(&lower) {
            self.contains(&lower)?;
            return Ok(MeantCommit { reference: lower.clone(), commit: lower });
        }
        let no_ref = || ContentsError::NoRef { repository: self.name(), name: one_line(name, 200) };
        if name.starts_with("refs/heads/") || name.starts_with("refs/tags/") {
            return self.reference(name)?.ok_or_else(no_ref);
        }
        let branch = self.reference(&format!("refs/heads/{name}"))?;
        let tag = self.reference(&format!("refs/tags/{name}"))?;
        match (branch, tag) {
            (Some(_), Some(_)) => Err(ContentsError::Ambiguous(one_line(name, 200))),
            (Some(meant), None) | (None, Some(meant)) => Ok(meant),
            // A branch or a tag with such a name was looked for first.
            (None, None) if name.len() >= 4 && lower.bytes().all(is_hex) => {
                Err(ContentsError::Short(name.to_owned()))
            }
            (None, None) => Err(no_ref()),
        }
    }

    /// Returns the commit that a ref leads to, if there is such a ref.
    fn reference(&self, name: &str) -> Result<Option<MeantCommit>, ContentsError> {
        let below = name.strip_prefix("refs/").unwrap_or(name);
        let path: Vec<String> = below.split('/').map(percent_encoded).collect();
        let path = self.repository.path(&format!("/git/ref/{}", path.join("/")));
        let found: RefAnswer = match self.api.get(&path, &[]) {
            Err(ApiError::NotFound { .. }) => return Ok(None),
            found => found?,
        };
        if found.name != name {
            return Ok(None);
        }
        // An annotated tag is an object of its own, which names another.
        let mut object = found.object;
        for _ in 0..DEEPEST_TAG {
            if object.kind != "tag" {
                break;
            }
            // The id becomes part of an address, and comes from the server.
            let id = checked(&object.sha)?;
            object =
                self.api.get::<TagAnswer>(&self.repository.path(&format!("/git/tags/{id}")), &[])?.object;
        }
        if object.kind != "commit" {
            let what = format!("a {}", one_line(&object.kind, 20));
            return Err(ContentsError::NotACommit { name: one_line(name, 200), what });
        }
        Ok(Some(MeantCommit { reference: name.to_owned(), commit: checked(&object.sha)?.to_owned() }))
    }

    /// Makes sure that a branch or a tag leads to a commit.
    fn contains(&self, commit: &str) -> Result<(), ContentsError> {
        let mut heads: Vec<String> = Vec::new();
        let mut all = true;
        for kind in ["branches", "tags"] {
            let path = self.repository.path(&format!("/{kind}"));
            let mut listed = self.api.list::<Vec<NamedCommit>>(&path, &[("per_page", "100")]);
            let room = heads.len() + MOST_REFS;
            for named in listed.by_ref() {
                let named = named?;
                let head = checked(&named.commit.sha)?.to_owned();
                if head == commit {
                    return Ok(());
                }
                if heads.len() == room {
                    all = false;
                    break;
                }
                // What most people work on most likely leads to it.
                let at =
                    if kind == "branches" && named.name == self.default_branch { 0 } else { heads.len() };
                if !heads.contains(&head) {
                    heads.insert(at, head);
                }
            }
        }
        all &= heads.len() <= MOST_COMPARED;
        let compared = heads.len().min(MOST_COMPARED);
        for head in &heads[..compared] {
            if self.is_before(commit, head)? {
                return Ok(());
            }
        }
        let among =
            if all { String::new() } else { format!(", among the {compared} that were compared with it") };
        Err(ContentsError::Foreign { repository: self.name(), commit: commit.to_owned(), among })
    }

    /// Tells whether a commit is another one, or came before it.
    pub fn is_before(&self, commit: &str, later: &str) -> Result<bool, ContentsError> {
        // What is compared with a commit that has it is behind that.
        let path = self.repository.path(&format!("/compare/{}...{}", checked(later)?, checked(commit)?));
        match self.api.get::<CommitComparison>(&path, &[("per_page", "1")]) {
            Ok(compared) => Ok(matches!(compared.status.as_str(), "identical" | "behind")),
            // There is no such commit, or the two have none in common, and then no comparison either.
            Err(ApiError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the files at a commit.
    pub fn at(&self, commit: &str) -> Result<CommitFiles<'_>, ContentsError> {
        let path = self.repository.path(&format!("/git/commits/{}", checked(commit)?));
        let found: CommitAnswer = self.api.get(&path, &[])?;
        if found.sha != commit {
            return Err(ContentsError::Odd(format!(
                "the answer for the commit {commit} is about another one"
            )));
        }
        let root = checked(&found.tree.sha)?.to_owned();
        Ok(CommitFiles { origin: self, root, directories: RefCell::default() })
    }
}

/// The files of a repository at a commit.
pub struct CommitFiles<'a> {
    origin: &'a ServerRepository<'a>,
    root: String,
    /// What is in the directories that were looked at, by the ids of these.
    directories: RefCell<BTreeMap<String, Vec<DirectoryItem>>>,
}

impl CommitFiles<'_> {
    /// Tells whether there is a file.
    pub fn has(&self, path: &str) -> Result<bool, ContentsError> {
        Ok(self.item(path)?.is_some())
    }

    /// Reads a file, if there is one. It may have so many bytes.
    pub fn file(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, ContentsError> {
        let Some(item) = self.item(path)? else { return Ok(None) };
        let too_large = || ContentsError::TooLarge { path: one_line(path, 200), limit };
        // Said before the content is fetched.
        if item.size.is_some_and(|size| size > limit) {
            return Err(too_large());
        }
        let id = checked(&item.sha)?;
        let blob = self.origin.repository.path(&format!("/git/blobs/{id}"));
        let blob: BlobAnswer = self.origin.api.get(&blob, &[])?;
        let odd = |why: &str| ContentsError::Odd(format!("`{}` cannot be read: {why}", one_line(path, 200)));
        let bytes = match blob.encoding.as_str() {
            "base64" => {
                decoded(&blob.content).ok_or_else(|| odd("it is not the base64 that the server says"))?
            }
            "utf-8" => blob.content.into_bytes(),
            _ => return Err(odd("the server writes it in a way that is unknown")),
        };
        if bytes.len() as u64 > limit {
            return Err(too_large());
        }
        // The id vouches for the content, whoever sent it.
        if id_of("blob", &bytes, id.len()) != id {
            return Err(odd("what came is not what its id says"));
        }
        Ok(Some(bytes))
    }

    /// Finds a file. Anything but a plain file in its place, or a link on the way to it, is an error.
    fn item(&self, path: &str) -> Result<Option<DirectoryItem>, ContentsError> {
        let mut tree = self.root.clone();
        let mut parts = path.split('/').peekable();
        let mut walked = String::new();
        while let Some(part) = parts.next() {
            let Some(item) = self.find(&tree, part)? else { return Ok(None) };
            walked = if walked.is_empty() { part.to_owned() } else { format!("{walked}/{part}") };
            let what = match (item.mode.as_str(), parts.peek()) {
                ("040000" | "40000", Some(_)) => {
                    checked(&item.sha)?.clone_into(&mut tree);
                    continue;
                }
                ("100644" | "100755" | "100664", None) => return Ok(Some(item)),
                // A name with an extension may be meant.
                ("040000" | "40000", None) | ("100644" | "100755" | "100664", Some(_)) => return Ok(None),
                ("120000", _) => "a link",
                ("160000", _) => "a submodule",
                _ => "something unknown",
            };
            return Err(ContentsError::NotAFile { path: one_line(&walked, 200), what });
        }
        Ok(None)
    }

    /// Finds something in a directory.
    fn find(&self, tree: &str, name: &str) -> Result<Option<DirectoryItem>, ContentsError> {
        let mut directories = self.directories.borrow_mut();
        if !directories.contains_key(tree) {
            if directories.len() == MOST_DIRECTORIES {
                let why = format!("the loop looks into more than {MOST_DIRECTORIES} directories");
                return Err(ContentsError::Odd(why));
            }
            let path = self.origin.repository.path(&format!("/git/trees/{tree}"));
            let answer: TreeAnswer = self.origin.api.get(&path, &[])?;
            // A part of a listing would make a file that is there look absent.
            if answer.truncated {
                let why =
                    "the server does not list all files of a directory that the loop is in, or looks into";
                return Err(ContentsError::Odd(why.to_owned()));
            }
            directories.insert(tree.to_owned(), answer.tree);
        }
        let items = directories.get(tree).into_iter().flatten();
        let mut found = items.filter(|item| item.path == name);
        Ok(found.next().cloned())
    }
}

/// Reads the base64 in which a server writes a file, with its line breaks.
pub(super) fn decoded(content: &str) -> Option<Vec<u8>> {
    let text: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok()
}

/// Takes an id of the server's, which becomes part of an address.
fn checked(id: &str) -> Result<&str, ContentsError> {
    if is_sha(id) {
        return Ok(id);
    }
    Err(ContentsError::Odd(format!("the server names `{}`, which is not a git object id", one_line(id, 80))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_that_of_the_environment() {
        let of = |env: &[(&str, &str)]| {
            let lookup =
                |key: &str| env.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned());
            let (api, server) = server(&lookup, None).unwrap();
            (api.base().to_owned(), server)
        };
        let pair = |api: &str, server: &str| (api.to_owned(), server.to_owned());
        let (api, url) = ("GITHUB_API_URL", "GITHUB_SERVER_URL");
        assert_eq!(of(&[]), pair("https://api.github.com", GITHUB));
        assert_eq!(of(&[(url, "https://github.com/")]), pair("https://api.github.com", GITHUB));
        assert_eq!(
            of(&[(url, "https://ghes.example/")]),
            pair("https://ghes.example/api/v3", "https://ghes.example")
        );
        assert_eq!(
            of(&[(api, "https://ghes.example:8/api/v3/")]),
            pair("https://ghes.example:8/api/v3", "https://ghes.example:8")
        );
        assert_eq!(of(&[(api, "https://api.github.com")]), pair("https://api.github.com", GITHUB));
    }
}
