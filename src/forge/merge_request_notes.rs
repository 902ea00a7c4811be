//! What GitLab knows of a note on a merge request that answers a run: asked at this moment, by the ids of the note and its author.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::github::answers::FoundAnswer;
use super::github::api::{Api, ApiError};
use super::github::graphql::Document;
use super::gitlab::MergeRequests;
use crate::base::text::percent_encoded;
use crate::base::time::Timestamp;
use crate::people::ruling::{Account, CommentFacts, PermissionFacts, PullFacts};

/// When a note was edited, which REST does not say: its `updated_at` moves for other reasons as well.
const EDITED: Document = Document::query(
    "the time at which the note was edited",
    "query($id: NoteID!) { note(id: $id) { lastEditedAt } }",
);

/// Who may push to branches that are not protected: Developer. See <https://docs.gitlab.com/user/permissions/>.
const DEVELOPER: u32 = 30;

/// Who may read the code of a private project: Reporter.
const REPORTER: u32 = 20;

#[derive(Deserialize)]
struct AnsweringNote {
    id: u64,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    body: String,
    author: NoteAuthor,
    created_at: Timestamp,
    /// Whether GitLab wrote it about something that happened.
    #[serde(default)]
    system: bool,
    noteable_type: String,
    noteable_iid: Option<u64>,
}

#[derive(Deserialize)]
struct NoteAuthor {
    id: u64,
    username: String,
}

#[derive(Deserialize)]
struct NoteAuthorKind {
    /// A server that does not say it has not said that a person wrote it.
    #[serde(default = "unknown_is_bot")]
    bot: bool,
}

fn unknown_is_bot() -> bool {
    true
}

#[derive(Deserialize)]
struct ProjectMember {
    id: u64,
    #[serde(default)]
    state: String,
    access_level: u32,
}

#[derive(Deserialize)]
struct AnsweredRequest {
    iid: u64,
    state: String,
    sha: Option<String>,
    author: NoteAuthor,
    source_branch: String,
    target_branch: String,
    source_project_id: Option<u64>,
    target_project_id: u64,
}

#[derive(Deserialize)]
struct AskedProject {
    id: u64,
    default_branch: Option<String>,
}

#[derive(Deserialize)]
struct EditedNote {
    note: Option<EditedNoteNode>,
}

#[derive(Deserialize)]
struct EditedNoteNode {
    #[serde(rename = "lastEditedAt")]
    at: Option<String>,
}

#[derive(Deserialize)]
struct StartedPipeline {
    user: Option<PipelineUser>,
    sha: String,
}

#[derive(Deserialize)]
struct StartedJob {
    name: String,
    user: Option<PipelineUser>,
}

#[derive(Deserialize)]
struct PipelineUser {
    id: u64,
}

#[derive(Deserialize)]
struct RepositoryFile {
    content: String,
}

/// A job of a pipeline that is about a merge request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequestJob {
    /// The number of the merge request in its project.
    pub request: u64,
    /// The pipeline.
    pub pipeline: u64,
    /// The name of the job.
    pub name: String,
}

impl MergeRequests {
    /// Asks for a note, its merge request and its author, in six requests.
    ///
    /// # Errors
    /// The server does not answer, or the note is not one of this merge request.
    pub fn note(&self, request: u64, id: u64) -> Result<FoundAnswer, ApiError> {
        let Self { api, project } = self;
        let below = format!("{project}/merge_requests/{request}");
        let path = format!("{below}/notes/{id}");
        let note: AnsweringNote = api.get(&path, &[])?;
        let unreadable =
            |reason: &str| ApiError::Unreadable { request: format!("GET {path}"), reason: reason.to_owned() };
        let is_of_request = note.noteable_type == "MergeRequest" && note.noteable_iid == Some(request);
        if note.id != id || !is_of_request {
            return Err(unreadable("it is another note"));
        }
        let found: AnsweredRequest = api.get(&below, &[])?;
        let of: AskedProject = api.get(project, &[])?;
        if found.iid != request || found.target_project_id != of.id {
            return Err(unreadable("its merge request is another one"));
        }
        let permission = self.permission(note.author.id)?;
        let author: NoteAuthorKind = api.get(&format!("/users/{}", note.author.id), &[])?;
        let comment = CommentFacts {
            id,
            author: Account { id: note.author.id, name: note.author.username, is_bot: author.bot },
            is_by_app: note.system,
            // GitLab does not say it.
            is_by_mail: false,
            body: note.body,
            created: note.created_at,
            is_edited: is_edited(api, note.kind.as_deref(), id)?,
        };
        let pull = PullFacts {
            number: request,
            is_open: found.state == "opened",
            head: found.sha.unwrap_or_default(),
            is_of_fork: found.source_project_id != Some(found.target_project_id),
            author: found.author.id,
        };
        let default =
            of.default_branch.ok_or_else(|| unreadable("the server does not name the default branch"))?;
        let mut branches = vec![found.target_branch, default];
        branches.dedup();
        Ok(FoundAnswer { comment, permission, pull, head_branch: found.source_branch, branches })
    }

    /// Asks what an account may do in the project: by its id, which no other account gets.
    fn permission(&self, account: u64) -> Result<Option<PermissionFacts>, ApiError> {
        let path = format!("{}/members/all/{account}", self.project);
        let level = match self.api.get::<ProjectMember>(&path, &[]) {
            Ok(member) if member.id == account && member.state == "active" => member.access_level,
            Ok(_) | Err(ApiError::NotFound { .. }) => 0,
            Err(ApiError::Denied { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (may_write, is_collaborator) = (level >= DEVELOPER, level >= REPORTER);
        Ok(Some(PermissionFacts { account, may_write, is_collaborator }))
    }

    /// Returns who started the pipeline of a job, and who started another job of it, at first or again: whoever starts the job
    /// that answers has not started the one that asks.
    ///
    /// # Errors
    /// The server does not answer, or the pipeline is about another commit.
    pub fn pipeline_starters(&self, job: &MergeRequestJob, head: &str) -> Result<Vec<u64>, ApiError> {
        let path = format!("{}/pipelines/{}", self.project, job.pipeline);
        let pipeline: StartedPipeline = self.api.get(&path, &[])?;
        if pipeline.sha != head {
            let reason = "the pipeline is not of the head of the merge request".to_owned();
            return Err(ApiError::Unreadable { request: format!("GET {path}"), reason });
        }
        let mut starters: Vec<u64> = pipeline.user.into_iter().map(|user| user.id).collect();
        for page in self.api.list::<Vec<StartedJob>>(&format!("{path}/jobs"), &[("include_retried", "true")])
        {
            let StartedJob { name, user } = page?;
            starters.extend(user.filter(|_| name != job.name).map(|user| user.id));
        }
        starters.sort_unstable();
        starters.dedup();
        Ok(starters)
    }

    /// Returns the text of a file at a branch; nothing where it is not there.
    ///
    /// # Errors
    /// The server does not answer, or not with a text.
    pub fn file_at(&self, file: &str, branch: &str) -> Result<Option<String>, ApiError> {
        let path = format!("{}/repository/files/{}", self.project, percent_encoded(file));
        let found: RepositoryFile = match self.api.get(&path, &[("ref", branch)]) {
            Err(ApiError::NotFound { .. }) => return Ok(None),
            found => found?,
        };
        let text = STANDARD.decode(found.content).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let reason = "it is not a text in base64".to_owned();
        text.map(Some).ok_or(ApiError::Unreadable { request: format!("GET {path}"), reason })
    }
}

/// Asks whether a note was edited. One that the server does not know cannot be vouched for.
fn is_edited(api: &Api, kind: Option<&str>, id: u64) -> Result<bool, ApiError> {
    let kind = match kind {
        None => "Note",
        Some(kind @ ("DiffNote" | "DiscussionNote")) => kind,
        Some(_) => return Ok(true),
    };
    let edited: EditedNote = api.graphql(EDITED, &json!({ "id": format!("gid://gitlab/{kind}/{id}") }))?;
    Ok(edited.note.is_none_or(|note| note.at.is_some()))
}
