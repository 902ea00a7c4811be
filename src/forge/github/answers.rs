//! What the server knows of a comment that answers a run: asked at this moment, by the ids of the comment and its author.

use serde::Deserialize;
use serde_json::json;

use super::api::{Api, ApiError};
use super::code_origin::is_pushed_for_review;
use super::contents::decoded;
use super::github_server::Flavour;
use super::graphql::Document;
use super::repository::RepositoryName;
use super::workflow_run::{self, RunStarters};
use crate::base::text::percent_encoded;
use crate::base::time::Timestamp;
use crate::people::ruling::{Account, CommentFacts, PermissionFacts, PullFacts};

/// When a comment was edited and whether it came by mail, which REST does not say.
const EDITED: Document = Document::query(
    "the time at which the comment was edited",
    "query($id: ID!) { node(id: $id) { ... on IssueComment { lastEditedAt createdViaEmail } } }",
);

/// The most runs of workflows that are asked about who started them, each by a request. A chain has eleven by default.
const MOST_LINKS: usize = 100;

/// A comment with what is around it.
#[derive(Clone, Debug)]
pub struct FoundAnswer {
    /// The comment.
    pub comment: CommentFacts,
    /// What its author may do; nothing where the token may not ask that.
    pub permission: Option<PermissionFacts>,
    /// The pull request that it is on.
    pub pull: PullFacts,
    /// The branch that it proposes.
    pub head_branch: String,
    /// The branches whose loop files say who may answer: that which the pull request is for, and the default one. Whoever
    /// opens another pull request chooses its base, and not the default branch.
    pub branches: Vec<String>,
}

#[derive(Deserialize)]
struct AnsweringComment {
    id: u64,
    node_id: Option<String>,
    body: Option<String>,
    user: Option<AnsweringUser>,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(default)]
    issue_url: String,
    /// Where Gitea and Forgejo have the pull request; the other one is empty then.
    #[serde(default)]
    pull_request_url: String,
    performed_via_github_app: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct AnsweringUser {
    id: u64,
    login: String,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct AnsweredPull {
    number: u64,
    state: String,
    user: Option<AnsweringUser>,
    head: PullSide,
    base: PullSide,
}

#[derive(Deserialize)]
struct PullSide {
    sha: String,
    #[serde(rename = "ref")]
    name: String,
    repo: Option<PullSideRepository>,
}

#[derive(Deserialize)]
struct PullSideRepository {
    full_name: String,
    default_branch: Option<String>,
}

#[derive(Deserialize)]
struct AuthorPermission {
    permission: String,
    user: Option<AnsweringUser>,
}

#[derive(Deserialize)]
struct EditedComment {
    node: Option<EditedCommentNode>,
}

#[derive(Deserialize)]
struct EditedCommentNode {
    #[serde(rename = "lastEditedAt")]
    at: Option<String>,
    #[serde(default, rename = "createdViaEmail")]
    is_by_mail: bool,
}

/// What REST does not say about a comment.
struct Provenance {
    is_edited: bool,
    is_by_mail: bool,
}

#[derive(Deserialize)]
struct BranchFile {
    content: String,
}

/// Asks for a comment, its pull request and its author, in four requests.
///
/// # Errors
/// The server does not answer, or the comment is on no pull request of this repository.
pub fn find(api: &Api, repository: &RepositoryName, id: u64) -> Result<FoundAnswer, ApiError> {
    let path = repository.path(&format!("/issues/comments/{id}"));
    let found: AnsweringComment = api.get(&path, &[])?;
    let unreadable =
        |reason: &str| ApiError::Unreadable { request: format!("GET {path}"), reason: reason.to_owned() };
    let place = if found.issue_url.is_empty() { &found.pull_request_url } else { &found.issue_url };
    let number = of_this_repository(place, repository);
    let number = number.ok_or_else(|| unreadable("the comment is not one of this repository"))?;
    let user = found.user.ok_or_else(|| unreadable("the comment has no author"))?;
    // A server that answers about another comment would have a stranger's words taken for an
    // answer.
    if found.id != id {
        return Err(unreadable("it is another comment"));
    }
    let pull: AnsweredPull = api.get(&repository.path(&format!("/pulls/{number}")), &[])?;
    let login = percent_encoded(&user.login);
    let permission = permission(api, repository, &login)?;
    let Provenance { is_edited, is_by_mail } = provenance(api, found.node_id.as_deref())?;
    let is_edited = is_edited || found.updated_at != found.created_at;
    let comment = CommentFacts {
        id,
        author: Account { id: user.id, is_bot: user.kind == "Bot", name: user.login },
        is_by_app: found.performed_via_github_app.is_some(),
        is_by_mail,
        body: found.body.unwrap_or_default(),
        created: found.created_at,
        is_edited,
    };
    let home = repository.to_string();
    let is_own =
        |side: &PullSide| side.repo.as_ref().is_some_and(|repo| repo.full_name.eq_ignore_ascii_case(&home));
    let facts = PullFacts {
        number: pull.number,
        is_open: pull.state == "open",
        // A pull request whose repository is gone counts as a fork's, since nobody can say that it
        // was not.
        is_of_fork: !is_own(&pull.head) || is_pushed_for_review(&pull.head.name),
        author: pull.user.map_or(0, |user| user.id),
        head: pull.head.sha,
    };
    let head_branch = pull.head.name;
    let default = pull.base.repo.and_then(|repo| repo.default_branch);
    let default = default.ok_or_else(|| unreadable("the server does not name the default branch"))?;
    let mut branches = vec![pull.base.name, default];
    // The base often is the default branch, and need not be read twice.
    branches.dedup();
    Ok(FoundAnswer { comment, permission, pull: facts, head_branch, branches })
}

/// Asks what an account may do. The token of a job of Gitea may not ask that.
fn permission(
    api: &Api,
    repository: &RepositoryName,
    login: &str,
) -> Result<Option<PermissionFacts>, ApiError> {
    let path = repository.path(&format!("/collaborators/{login}/permission"));
    let found: AuthorPermission = match api.get(&path, &[]) {
        Err(ApiError::Denied { .. }) => return Ok(None),
        found => found?,
    };
    // `maintain` is told as `write`, and `triage` as `read`, by GitHub; Gitea has `owner` as well.
    let may_write = matches!(found.permission.as_str(), "admin" | "write" | "owner");
    Ok(Some(PermissionFacts {
        // Compared with the author later: a login can be given up and taken by somebody else
        // meanwhile, an id cannot.
        account: found.user.map_or(0, |user| user.id),
        may_write,
        is_collaborator: may_write || is_collaborator(api, repository, login)?,
    }))
}

/// Tells whether an account is a collaborator, which is not said to every token.
fn is_collaborator(api: &Api, repository: &RepositoryName, login: &str) -> Result<bool, ApiError> {
    match api.get::<serde_json::Value>(&repository.path(&format!("/collaborators/{login}")), &[]) {
        Ok(_) => Ok(true),
        // Not to know is not to be one: the other answer would let somebody in.
        Err(ApiError::NotFound { .. } | ApiError::Denied { .. } | ApiError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns who started any of these runs of workflows, at first and again.
///
/// # Errors
/// The server does not answer, there are too many to ask about all of them, or one of them was deleted.
pub fn starters(api: &Api, repository: &RepositoryName, runs: &[u64]) -> Result<RunStarters, ApiError> {
    // Whoever started one that is left out could answer what the own run asks.
    let unknown = |reason| ApiError::Unreadable { request: "who started the run".to_owned(), reason };
    if runs.len() > MOST_LINKS {
        return Err(unknown(format!("it was in {} runs of workflows, more than {MOST_LINKS}", runs.len())));
    }
    let mut starters = RunStarters::default();
    for run in runs {
        match workflow_run::get(api, repository, *run) {
            Ok(run) => starters.add(run.starters()),
            // Whoever may write may delete it, and could be the one who started it.
            Err(ApiError::NotFound { .. }) => {
                return Err(unknown(format!(
                    "the server does not know the run of a workflow {run} any more"
                )));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(starters)
}

/// Returns the text of a file at a branch; nothing where it is not there.
///
/// # Errors
/// The server does not answer, or not with a text.
pub fn file_at(
    api: &Api,
    repository: &RepositoryName,
    file: &str,
    branch: &str,
) -> Result<Option<String>, ApiError> {
    let encoded: Vec<String> = file.split('/').map(percent_encoded).collect();
    let path = repository.path(&format!("/contents/{}", encoded.join("/")));
    let found: BranchFile = match api.get(&path, &[("ref", branch)]) {
        Err(ApiError::NotFound { .. }) => return Ok(None),
        found => found?,
    };
    let text = decoded(&found.content).and_then(|bytes| String::from_utf8(bytes).ok());
    let reason = "it is not a text in base64".to_owned();
    text.map(Some).ok_or(ApiError::Unreadable { request: format!("GET {path}"), reason })
}

/// Asks GitHub whether a comment was edited, as one that was edited in the second in which it was written has the same times, and
/// whether it came by mail. Gitea and Forgejo have nothing but the times.
fn provenance(api: &Api, node: Option<&str>) -> Result<Provenance, ApiError> {
    // A comment that GraphQL does not know cannot be vouched for.
    let unknown = Provenance { is_edited: true, is_by_mail: false };
    match (api.server().flavour(), node) {
        (Flavour::Github, Some(node)) => {
            let edited: EditedComment = api.graphql(EDITED, &json!({ "id": node }))?;
            Ok(edited.node.map_or(unknown, |node| Provenance {
                is_edited: node.at.is_some(),
                is_by_mail: node.is_by_mail,
            }))
        }
        (Flavour::Github, None) => Ok(unknown),
        (Flavour::Gitea | Flavour::Forgejo, _) => Ok(Provenance { is_edited: false, is_by_mail: false }),
    }
}

/// Returns the number of the issue that an address names, if it is one of this repository.
fn of_this_repository(issue: &str, repository: &RepositoryName) -> Option<u64> {
    let (before, number) = issue.rsplit_once('/')?;
    // Gitea names the pull request, GitHub the issue that it is.
    let before = before.strip_suffix("/issues").or_else(|| before.strip_suffix("/pulls"))?;
    let name = format!("/{repository}");
    let is_own = before.to_lowercase().ends_with(&name.to_lowercase());
    number.parse().ok().filter(|_| is_own)
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::{method, path_regex};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::http::Transport;
    use super::super::testing::TestServer;
    use super::*;

    #[test]
    fn whoever_started_any_run_of_a_chain_is_known_or_nobody_is() {
        let server = TestServer::start();
        let started = ResponseTemplate::new(200).set_body_json(json!({"actor": {"id": 7}}));
        let run = Mock::given(method("GET")).and(path_regex("^/repos/o/r/actions/runs/[0-9]+$"));
        server.mount(run.respond_with(started));
        let api = Api::new(&server.address(), None, Transport::default());
        let repository = RepositoryName::parse("o/r").unwrap();
        let of = |runs: std::ops::RangeInclusive<u64>| {
            starters(&api, &repository, &runs.collect::<Vec<u64>>()).map(|found| found.accounts.len())
        };
        assert_eq!(of(1..=12), Ok(12));
        assert_eq!(of(1..=100), Ok(100));
        let refused = of(1..=101).unwrap_err().to_string();
        assert!(refused.contains("it was in 101 runs of workflows, more than 100"), "{refused}");
    }
}
