//! A review of a pull request, with suggestions: the only way to offer a fix to somebody whose branch is not ours.
//!
//! GitHub takes a review as a whole or not at all, so that it is made by one request. When the answer to that is lost,
//! the reviews are read before there is another.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::{Api, ApiError};
use super::pull_head::PullHead;
use super::repository::RepositoryName;
use crate::base::object::ObjectId;
use crate::forge::forge_trait::{ForgeError, ForgeErrorKind, PullState};
use crate::forge::marker::Marker;
use crate::forge::suggestion::{PullFile, Suggestion, hunks};

/// The permission that a review needs.
const NEEDS: &str = "pull-requests: write";

/// How often a review is posted whose answer is lost.
const TRIES: usize = 2;

/// The reviews of one pull request.
#[derive(Clone, Copy, Debug)]
pub struct Reviews<'r> {
    /// The server.
    pub api: &'r Api,
    /// The repository of the pull request.
    pub repository: &'r RepositoryName,
    /// The pull request, with the head that is reviewed.
    pub pull: &'r PullHead,
}

/// Whose reviews are ours.
enum Author {
    /// The user of the token.
    User(String),
    /// An app: its token may not ask which. No stranger can be one.
    Bot,
}

#[derive(Deserialize)]
struct WrittenReview {
    html_url: String,
    body: Option<String>,
    commit_id: Option<String>,
    user: Option<ReviewAuthor>,
}

#[derive(Deserialize)]
struct ReviewAuthor {
    login: String,
    #[serde(default)]
    r#type: String,
}

/// A comment as the API takes it.
#[derive(Serialize)]
struct ReviewComment<'c> {
    path: &'c str,
    line: usize,
    side: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_side: Option<&'static str>,
    body: String,
}

impl<'c> ReviewComment<'c> {
    /// The side of a diff that shows the head.
    const SIDE: &'static str = "RIGHT";

    fn new(suggestion: &'c Suggestion) -> Self {
        // GitHub refuses a range of one line.
        let start = (suggestion.first < suggestion.last).then_some(suggestion.first);
        Self {
            path: &suggestion.path,
            line: suggestion.last,
            side: Self::SIDE,
            start_line: start,
            start_side: start.map(|_| Self::SIDE),
            body: suggestion.body(),
        }
    }
}

impl Reviews<'_> {
    fn path(&self, below: &str) -> String {
        self.repository.path(&format!("/pulls/{}{below}", self.pull.number))
    }

    /// Refuses a pull request that takes no review, or has another head than `self.pull` says.
    ///
    /// # Errors
    /// It must not be reviewed, or the server does not answer.
    pub fn check(&self) -> Result<(), ForgeError> {
        let now = PullHead::get(self.api, self.repository, self.pull.number)?;
        let number = now.number;
        let what = match now.state {
            PullState::Merged => format!("the pull request #{number} is merged"),
            PullState::Closed => format!("the pull request #{number} is closed"),
            PullState::Open if now.is_locked => format!("the pull request #{number} is locked"),
            PullState::Open if now.sha != self.pull.sha => {
                let (new, old) = (&now.sha, &self.pull.sha);
                format!("the pull request #{number} has new commits: its head is {new}, the fix is for {old}")
            }
            PullState::Open => return Ok(()),
        };
        Err(ForgeError::new(ForgeErrorKind::Declined, what))
    }

    /// Returns the files of the pull request, with the lines that its diff shows.
    ///
    /// # Errors
    /// The token may not, or the server does not answer.
    pub fn files(&self) -> Result<Vec<PullFile>, ForgeError> {
        #[derive(Deserialize)]
        struct ChangedPullFile {
            filename: String,
            sha: Option<String>,
            status: String,
            /// Absent where a file is not text, or its diff is too long.
            patch: Option<String>,
        }
        let path = self.path("/files");
        let files = self.api.list::<Vec<ChangedPullFile>>(&path, &[]);
        // Lines of a removed file have no right side to comment on.
        let files = files.filter(|file| file.as_ref().map_or(true, |file| file.status != "removed"));
        let read = files.map(|file| {
            let ChangedPullFile { filename, sha, patch, .. } = file.map_err(|error| error.needing(NEEDS))?;
            let id = sha.and_then(|sha| ObjectId::parse(&sha).ok());
            let hunks = patch.map_or_else(Vec::new, |patch| hunks(patch.as_bytes()));
            Ok(PullFile { path: filename, id, hunks })
        });
        read.collect()
    }

    /// Returns the page of our review of this head with the changes of this marker, if there is one.
    ///
    /// # Errors
    /// The token may not, or the server does not answer.
    pub fn there(&self, marker: &Marker) -> Result<Option<String>, ForgeError> {
        let us = self.author()?;
        let is_ours = |user: &ReviewAuthor| match &us {
            Author::User(login) => user.login == *login,
            Author::Bot => user.r#type == "Bot",
        };
        for review in self.api.list::<Vec<WrittenReview>>(&self.path("/reviews"), &[]) {
            let WrittenReview { html_url, body, commit_id, user } =
                review.map_err(|error| error.needing(NEEDS))?;
            // A review of an earlier head says nothing about this one.
            let is_of_head = commit_id.is_some_and(|commit| commit == self.pull.sha.as_str());
            let there = body.and_then(|body| Marker::find(&body));
            let is_same = there.is_some_and(|there| there.patch == marker.patch);
            // Somebody else may have copied our mark.
            if is_of_head && is_same && user.as_ref().is_some_and(is_ours) {
                return Ok(Some(html_url));
            }
        }
        Ok(None)
    }

    /// Posts a review with all its comments, and returns its page. The text has the marker.
    ///
    /// # Errors
    /// The pull request has changed, the token may not, the server refuses a comment, or does not answer.
    pub fn post(
        &self,
        text: &str,
        suggestions: &[Suggestion],
        marker: &Marker,
    ) -> Result<String, ForgeError> {
        let comments: Vec<ReviewComment<'_>> = suggestions.iter().map(ReviewComment::new).collect();
        let head = &self.pull.sha;
        let review = json!({ "commit_id": head, "event": "COMMENT", "body": text, "comments": comments });
        let mut tried = 1;
        loop {
            // Looked at before each try, because a review of an old head is shown as outdated at
            // once.
            self.check()?;
            let error = match self.api.post::<Value>(&self.path("/reviews"), &review) {
                Ok(made) => {
                    let url = made.get("html_url").and_then(Value::as_str);
                    return Ok(url.unwrap_or(&self.pull.url).to_owned());
                }
                Err(error) => error,
            };
            if let ApiError::Refused { status: 422, message, server, .. } = &error {
                // The head may have moved in the meantime.
                self.check()?;
                let what = format!("{server} rejects the review, and nothing of it was posted: {message}");
                return Err(ForgeError::new(ForgeErrorKind::Failed, what));
            }
            if !matches!(error, ApiError::Unavailable { .. }) {
                return Err(error.needing(NEEDS).into());
            }
            // The answer was lost, and the review may be there.
            if let Some(url) = self.there(marker)? {
                return Ok(url);
            }
            if tried == TRIES {
                return Err(error.into());
            }
            tried += 1;
        }
    }

    fn author(&self) -> Result<Author, ForgeError> {
        match self.api.get::<ReviewAuthor>("/user", &[]) {
            Ok(user) => Ok(Author::User(user.login)),
            // An app's token belongs to no user. Reviews by any bot count then: a stranger cannot
            // be one.
            Err(ApiError::Denied { .. } | ApiError::NotFound { .. }) => Ok(Author::Bot),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::http::Transport;
    use super::super::testing::{Pauses, TestServer};
    use super::*;
    use crate::base::name::InstanceName;
    use crate::forge::message::PatchId;
    use crate::forge::standing::FixStanding;
    use crate::forge::suggestion::{FixedFile, Suggestions};

    const HEAD: &str = "2222222222222222222222222222222222222222";
    const OTHER: &str = "4444444444444444444444444444444444444444";
    const BLOB: &str = "5555555555555555555555555555555555555555";
    const PULL: &str = "/repos/octo/project/pulls/7";
    const REVIEWS: &str = "/repos/octo/project/pulls/7/reviews";
    const BOT: &str = "github-actions[bot]";

    fn answer(server: &TestServer, verb: &str, at: &str, answer: ResponseTemplate, times: u64) {
        server.mount(Mock::given(method(verb)).and(path(at)).respond_with(answer).up_to_n_times(times));
    }

    fn json_of(value: &Value) -> ResponseTemplate {
        ResponseTemplate::new(200).set_body_json(value)
    }

    fn pull(head: &str, state: &str, is_locked: bool) -> Value {
        json!({
            "number": 7,
            "html_url": "https://github.com/octo/project/pull/7",
            "state": state,
            "locked": is_locked,
            "head": {"ref": "fix", "sha": head, "repo": {"full_name": "mallory/project"}},
            "base": {"ref": "main", "sha": OTHER, "repo": {"full_name": "octo/project"}},
        })
    }

    fn marker(patch: &str) -> Marker {
        Marker {
            run: InstanceName::parse("fix-20260102T030405-0123ab").unwrap(),
            patch: PatchId::parse(&patch.repeat(40)).unwrap(),
            standing: FixStanding::Verified,
        }
    }

    fn ours() -> Marker {
        marker("7")
    }

    fn text(marker: &Marker) -> String {
        format!("A fix.\n\n{}\n", marker.text())
    }

    fn written(login: &str, kind: &str, commit: &str, body: &str) -> Value {
        json!({
            "html_url": format!("https://github.com/octo/project/pull/7#{login}"),
            "user": {"login": login, "type": kind},
            "commit_id": commit,
            "body": body,
        })
    }

    fn with<T>(server: &TestServer, ask: impl FnOnce(&Reviews<'_>) -> T) -> T {
        with_pauses(server, &Pauses::none(), ask)
    }

    fn with_pauses<T>(server: &TestServer, pauses: &Pauses, ask: impl FnOnce(&Reviews<'_>) -> T) -> T {
        let transport = Transport::default().pause(pauses.pause());
        let api = Api::new(&server.address(), Some("ghs_x".to_owned()), transport);
        let repository = RepositoryName::parse("octo/project").unwrap();
        let start = TestServer::start();
        answer(&start, "GET", PULL, json_of(&pull(HEAD, "open", false)), 9);
        let of_start = Api::new(&start.address(), None, Transport::default());
        let pull = PullHead::get(&of_start, &repository, 7).unwrap();
        ask(&Reviews { api: &api, repository: &repository, pull: &pull })
    }

    fn suggestions() -> Vec<Suggestion> {
        let id = ObjectId::parse(BLOB).unwrap();
        let (old, new) = (b"a\nb\nc\nd\n".to_vec(), b"A\nb\nC\nD\n".to_vec());
        let diff = b"@@ -1 +1 @@\n-a\n+A\n@@ -3,2 +3,2 @@\n-c\n-d\n+C\n+D\n";
        let fix = FixedFile::new("a.txt", &id, old, new, diff);
        let shown = PullFile {
            path: "a.txt".to_owned(),
            id: Some(id),
            hunks: hunks(b"@@ -0,0 +1,4 @@\n+a\n+b\n+c\n+d"),
        };
        Suggestions::new(&[fix], &[shown]).comments
    }

    #[test]
    fn all_comments_are_in_one_request() {
        let server = TestServer::start();
        answer(&server, "GET", PULL, json_of(&pull(HEAD, "open", false)), 9);
        answer(&server, "POST", REVIEWS, json_of(&json!({"id": 1, "html_url": "https://x/review"})), 1);
        let body = text(&ours());
        let url = with(&server, |reviews| reviews.post(&body, &suggestions(), &ours())).unwrap();
        assert_eq!(url, "https://x/review");
        let [(request, sent)] = &server.changes()[..] else { panic!("{:?}", server.changes()) };
        assert_eq!(request, &format!("POST {REVIEWS}"));
        let side = "RIGHT";
        let expected = json!({
            "commit_id": HEAD,
            "event": "COMMENT",
            "body": body,
            "comments": [
                {"path": "a.txt", "line": 1, "side": side, "body": "```suggestion\nA\n```"},
                {"path": "a.txt", "start_line": 3, "start_side": side, "line": 4, "side": side,
                    "body": "```suggestion\nC\nD\n```"},
            ],
        });
        assert_eq!(*sent, expected);
    }

    #[test]
    fn a_pull_request_that_has_changed_gets_no_review() {
        let refused = |now: &Value, text: &str| {
            let server = TestServer::start();
            answer(&server, "GET", PULL, json_of(now), 1);
            let error = with(&server, |reviews| reviews.post("x", &suggestions(), &ours())).unwrap_err();
            assert_eq!(error.kind, ForgeErrorKind::Declined);
            assert!(error.message.contains(text), "{}", error.message);
            assert!(server.changes().is_empty());
        };
        refused(&pull(OTHER, "open", false), "has new commits");
        refused(&pull(HEAD, "closed", false), "is closed");
        refused(&pull(HEAD, "open", true), "is locked");
        let mut merged = pull(HEAD, "closed", false);
        merged["merged_at"] = json!("2026-01-02T03:04:05Z");
        refused(&merged, "is merged");
    }

    #[test]
    fn what_is_rejected_is_said() {
        let failed = |answers: &[ResponseTemplate], after: &Value| {
            let server = TestServer::start();
            answer(&server, "GET", PULL, json_of(&pull(HEAD, "open", false)), 1);
            answer(&server, "GET", PULL, json_of(after), 9);
            for one in answers {
                answer(&server, "POST", REVIEWS, one.clone(), 1);
            }
            let error = with(&server, |reviews| reviews.post("x", &suggestions(), &ours())).unwrap_err();
            assert_eq!(server.changes().len(), 1);
            error
        };
        let invalid = ResponseTemplate::new(422).set_body_json(
            json!({"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}),
        );
        let open = pull(HEAD, "open", false);
        let error = failed(std::slice::from_ref(&invalid), &open);
        assert_eq!(error.kind, ForgeErrorKind::Failed);
        let expected = "GitHub rejects the review, and nothing of it was posted: Unprocessable Entity: Line could not be resolved";
        assert_eq!(error.message, expected);
        let moved = failed(&[invalid], &pull(OTHER, "open", false));
        assert_eq!(moved.kind, ForgeErrorKind::Declined, "{moved}");
        let denied = ResponseTemplate::new(403)
            .set_body_json(json!({"message": "Resource not accessible by integration"}));
        let error = failed(&[denied], &open);
        assert_eq!(error.kind, ForgeErrorKind::Failed);
        assert!(error.help.clone().unwrap().contains("pull-requests: write"), "{error:?}");
    }

    #[test]
    fn a_lost_answer_is_looked_for_before_a_second_request() {
        let posted = |reviews: &[Value]| {
            let server = TestServer::start();
            answer(&server, "GET", PULL, json_of(&pull(HEAD, "open", false)), 9);
            answer(&server, "GET", "/user", json_of(&json!({"login": "me"})), 9);
            answer(&server, "GET", REVIEWS, json_of(&json!(reviews)), 9);
            answer(&server, "POST", REVIEWS, ResponseTemplate::new(502), 1);
            answer(&server, "POST", REVIEWS, json_of(&json!({"html_url": "https://x/second"})), 1);
            let url = with(&server, |reviews| reviews.post("x", &suggestions(), &ours())).unwrap();
            (url, server.changes().len())
        };
        let there = written("me", "User", HEAD, &text(&ours()));
        assert_eq!(posted(std::slice::from_ref(&there)), (there["html_url"].as_str().unwrap().to_owned(), 1));
        assert_eq!(posted(&[]), ("https://x/second".to_owned(), 2));
    }

    #[test]
    fn a_review_is_ours_by_its_author_its_head_and_its_marker() {
        let found = |user: ResponseTemplate, review: &Value| {
            let server = TestServer::start();
            answer(&server, "GET", "/user", user, 9);
            answer(&server, "GET", REVIEWS, json_of(&json!([review])), 9);
            with(&server, |reviews| reviews.there(&ours())).unwrap().is_some()
        };
        let of_app = || ResponseTemplate::new(403);
        let of_user = || json_of(&json!({"login": "me"}));
        let same = text(&ours());
        assert!(found(of_app(), &written(BOT, "Bot", HEAD, &same)));
        assert!(found(of_user(), &written("me", "User", HEAD, &same)));
        assert!(!found(of_app(), &written("mallory", "User", HEAD, &same)), "a copied marker");
        assert!(!found(of_user(), &written("mallory", "User", HEAD, &same)), "a copied marker");
        assert!(!found(of_app(), &written(BOT, "Bot", OTHER, &same)));
        assert!(!found(of_app(), &written(BOT, "Bot", HEAD, &text(&marker("8")))));
        assert!(!found(of_app(), &written(BOT, "Bot", HEAD, "Nice.")));
    }

    #[test]
    fn the_files_show_what_the_diff_does() {
        let server = TestServer::start();
        let files = json!([
            {"filename": "a", "sha": BLOB, "status": "modified", "patch": "@@ -1 +1,2 @@\n a\n+b"},
            {"filename": "b.png", "sha": BLOB, "status": "added"},
            {"filename": "c", "sha": BLOB, "status": "removed", "patch": "@@ -1 +0,0 @@\n-a"},
            {"filename": "d", "sha": null, "status": "renamed", "previous_filename": "e"},
        ]);
        answer(&server, "GET", "/repos/octo/project/pulls/7/files", json_of(&files), 9);
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "the method alone has one lifetime only"
        )]
        let read = with(&server, |reviews| reviews.files()).unwrap();
        let file = |path: &str, id: Option<&str>, patch: &str| PullFile {
            path: path.to_owned(),
            id: id.map(|id| ObjectId::parse(id).unwrap()),
            hunks: hunks(patch.as_bytes()),
        };
        let expected = [
            file("a", Some(BLOB), "@@ -1 +1,2 @@\n a\n+b"),
            file("b.png", Some(BLOB), ""),
            file("d", None, ""),
        ];
        assert_eq!(read, expected);
    }
}
