//! Finds, opens and edits the pull request of a delivery. There is never a second one for the same branch.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::api::ApiError;
use super::super::graphql::Document;
use super::access::{Permission, RepositoryAccess};
use super::refs::TRIES;
use crate::forge::forge_trait::{ForgeError, ForgeErrorKind, NewPull, Pull, PullState, Pulls};
use crate::forge::names::BranchName;

const READY: Document = Document::mutation(
    "markPullRequestReadyForReview",
    "mutation($input: MarkPullRequestReadyForReviewInput!) { \
     markPullRequestReadyForReview(input: $input) { clientMutationId } }",
);

/// What GitHub says when the setting of a repository or an organization forbids it.
const FORBIDDEN_TO_ACTIONS: &str = "not permitted to create or approve pull requests";

/// The pull requests of a repository on GitHub.
#[derive(Debug)]
pub(super) struct GithubPulls<'a> {
    access: RepositoryAccess<'a>,
}

#[derive(Deserialize)]
struct ListedPull {
    number: u64,
    html_url: String,
    node_id: String,
    state: String,
    title: String,
    body: Option<String>,
    #[serde(default)]
    draft: bool,
    merged_at: Option<String>,
    auto_merge: Option<AutoMerge>,
    head: PullBranch,
    base: PullBranch,
}

/// Who merges it, and how; what counts is that it is there.
#[derive(Deserialize)]
struct AutoMerge {}

#[derive(Deserialize)]
struct PullBranch {
    #[serde(rename = "ref")]
    branch: String,
    /// Nothing for a fork that was deleted.
    repo: Option<Repo>,
}

#[derive(Deserialize)]
struct Repo {
    id: u64,
}

impl ListedPull {
    fn is_from(&self, branch: &BranchName, base: &BranchName) -> bool {
        // The name of the branch says nothing about whose it is.
        let id = |side: &PullBranch| side.repo.as_ref().map(|repo| repo.id);
        // A fork can belong to the same owner.
        self.head.branch == branch.as_str()
            && self.base.branch == base.as_str()
            && id(&self.head) == id(&self.base)
    }

    fn pull(self) -> Pull {
        let state = match (self.merged_at.is_some(), self.state.as_str()) {
            (true, _) => PullState::Merged,
            (false, "open") => PullState::Open,
            (false, _) => PullState::Closed,
        };
        Pull {
            number: self.number,
            url: self.html_url,
            state,
            is_draft: self.draft,
            merges_itself: self.auto_merge.is_some(),
            title: self.title,
            body: self.body.unwrap_or_default(),
        }
    }
}

impl<'a> GithubPulls<'a> {
    pub(super) fn new(access: RepositoryAccess<'a>) -> Self {
        Self { access }
    }

    fn failed(&self, error: ApiError) -> ForgeError {
        self.access.failed(error, Permission::Pulls)
    }

    /// Says what it means that one was not opened.
    fn not_opened(&self, new: &NewPull, error: ApiError) -> ForgeError {
        let (ApiError::Denied { message, .. } | ApiError::Refused { status: 422, message, .. }) = &error
        else {
            return self.failed(error);
        };
        let message = message.to_ascii_lowercase();
        let is_denied = matches!(error, ApiError::Denied { .. });
        let said = |kind| ForgeError::new(kind, error.to_string());
        if message.contains(FORBIDDEN_TO_ACTIONS) {
            return said(ForgeErrorKind::Failed).with_help(
                "turn on \"Allow GitHub Actions to create and approve pull requests\" (Settings → Actions → \
                 General → Workflow permissions; where it is grey, the organization has it), or use the token of an \
                 app or a person",
            );
        }
        if is_denied {
            return self.failed(error);
        }
        if message.contains("already exists") {
            return said(ForgeErrorKind::Raced);
        }
        if message.contains("draft pull requests are not supported") {
            return said(ForgeErrorKind::Declined)
                .with_help("this repository has no drafts: deliver without `--unverified`");
        }
        // The branch was deleted since it was written.
        if message.contains("`head` is invalid") {
            return said(ForgeErrorKind::Raced);
        }
        if message.contains("no commits between") {
            let (branch, base) = (&new.branch, &new.base);
            return ForgeError::new(
                ForgeErrorKind::Failed,
                format!("`{branch}` has no commit that `{base}` lacks: {error}"),
            );
        }
        self.failed(error)
    }

    /// Makes a draft ready. Whatever the server answers, the pull request itself tells the result.
    fn make_ready(&self, number: u64) -> Result<(), ForgeError> {
        let path = self.access.path(&format!("/pulls/{number}"));
        let mut last = None;
        // A lost answer may have done the work, so the draft itself is asked.
        for _ in 0..=TRIES {
            let pull: ListedPull = self.access.api.get(&path, &[]).map_err(|error| self.failed(error))?;
            if !pull.draft {
                return Ok(());
            }
            match last.take() {
                // Trouble of the service is tried again; anything else will not change.
                None | Some(ApiError::Unavailable { .. }) => {}
                Some(error) => return Err(self.failed(error)),
            }
            let input = json!({ "input": { "pullRequestId": pull.node_id } });
            match self.access.api.graphql::<Value>(READY, &input) {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        let unsure = || ForgeError::new(ForgeErrorKind::Unavailable, "the draft could not be made ready");
        Err(last.map_or_else(unsure, |error| self.failed(error)))
    }
}

impl Pulls for GithubPulls<'_> {
    fn of_branch(&self, branch: &BranchName, base: &BranchName) -> Result<Vec<Pull>, ForgeError> {
        let (path, head) =
            (self.access.path("/pulls"), format!("{}:{branch}", self.access.repository.owner()));
        let query = [
            ("state", "all"),
            // `head` wants the owner in front of the branch, or the server takes the filter for
            // none.
            ("head", head.as_str()),
            ("base", base.as_str()),
            ("sort", "created"),
            ("direction", "desc"),
        ];
        let listed = self.access.api.list::<Vec<ListedPull>>(&path, &query);
        let ours =
            listed.filter(|listed| listed.as_ref().map_or(true, |listed| listed.is_from(branch, base)));
        let ours: Result<Vec<ListedPull>, ApiError> = ours.collect();
        Ok(ours.map_err(|error| self.failed(error))?.into_iter().map(ListedPull::pull).collect())
    }

    fn open(&self, new: &NewPull) -> Result<Pull, ForgeError> {
        let body = json!({
            "title": new.title, "body": new.body, "head": new.branch, "base": new.base, "draft": new.is_draft,
        });
        let mut tried = 0;
        loop {
            tried += 1;
            // Not again by itself: a second request could open a second pull request.
            let error = match self.access.api.post::<ListedPull>(&self.access.path("/pulls"), &body) {
                Ok(opened) => return Ok(opened.pull()),
                Err(error) => error,
            };
            if !matches!(error, ApiError::Unavailable { .. } | ApiError::Unreadable { .. }) {
                return Err(self.not_opened(new, error));
            }
            // It is unknown whether there is one now: a second look, and not a second pull request.
            let there = self.of_branch(&new.branch, &new.base)?;
            if let Some(there) = there.into_iter().find(|pull| pull.state == PullState::Open) {
                if there.title == new.title && there.body == new.body {
                    return Ok(there);
                }
                return Err(ForgeError::new(
                    ForgeErrorKind::Raced,
                    format!("somebody else opened {} meanwhile", there.url),
                ));
            }
            if tried >= TRIES {
                return Err(self.failed(error));
            }
        }
    }

    fn edit(&self, pull: &Pull, wanted: &NewPull, makes_ready: bool) -> Result<(), ForgeError> {
        if pull.title != wanted.title || pull.body != wanted.body {
            let path = self.access.path(&format!("/pulls/{}", pull.number));
            let text = json!({ "title": wanted.title, "body": wanted.body });
            match self.access.api.patch::<Value>(&path, &text) {
                // Where nobody may change a locked conversation, its old text stays.
                Err(ApiError::Denied { message, .. }) if message.to_ascii_lowercase().contains("locked") => {}
                edited => drop(edited.map_err(|error| self.failed(error))?),
            }
        }
        if pull.is_draft && !wanted.is_draft && makes_ready {
            self.make_ready(pull.number)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wiremock::ResponseTemplate;

    use super::super::super::api::Api;
    use super::super::super::repository::RepositoryName;
    use super::super::super::testing::TestServer;
    use super::super::fake_repository::{Fake, Files, When, pull, said, unfit, wrong};
    use super::*;

    fn served() -> (Fake, TestServer, Api) {
        let fake = Fake::new(&Files::new());
        let (server, api, _) = fake.serve();
        (fake, server, api)
    }

    fn on<T>(api: &Api, ask: impl FnOnce(&GithubPulls<'_>) -> T) -> T {
        let repository = RepositoryName::parse("o/r").unwrap();
        ask(&GithubPulls::new(RepositoryAccess { api, repository: &repository }))
    }

    fn wanted(is_draft: bool) -> NewPull {
        NewPull {
            branch: BranchName::parse("ll-loop/fix/main").unwrap(),
            base: BranchName::parse("main").unwrap(),
            title: "fix: types".to_owned(),
            body: "What was verified.\n\n<!-- ll-loop -->".to_owned(),
            is_draft,
        }
    }

    fn of_branch(api: &Api) -> Result<Vec<Pull>, ForgeError> {
        on(api, |pulls| pulls.of_branch(&wanted(false).branch, &wanted(false).base))
    }

    #[test]
    fn those_of_a_branch_are_of_this_repository_and_the_newest_is_first() {
        let (fake, server, api) = served();
        assert_eq!(of_branch(&api), Ok(vec![]));
        assert_eq!(
            server.received()[0].0,
            "GET /repos/o/r/pulls?state=all&head=o%3All-loop%2Ffix%2Fmain&base=main&sort=created&direction=desc\
             &per_page=100&page=1"
        );
        let make = |number, change: &dyn Fn(&mut Value)| {
            let mut made = pull(number, "ll-loop/fix/main", "main");
            change(&mut made);
            fake.content().pulls.push(made);
        };
        make(1, &|pull| pull["state"] = json!("closed"));
        make(2, &|pull| {
            (pull["state"], pull["merged_at"]) = (json!("closed"), json!("2026-11-20T20:24:38Z"));
        });
        make(3, &|pull| pull["head"]["repo"]["id"] = json!(2));
        make(4, &|pull| pull["head"]["repo"] = json!(null));
        make(5, &|pull| pull["base"]["ref"] = json!("other"));
        make(6, &|pull| {
            (pull["draft"], pull["auto_merge"]) = (json!(true), json!({"merge_method": "squash"}));
            (pull["locked"], pull["body"]) = (json!(true), json!("text"));
        });
        let found = of_branch(&api).unwrap();
        let shown: Vec<_> = found.iter().map(|pull| (pull.number, pull.state)).collect();
        assert_eq!(shown, [(6, PullState::Open), (2, PullState::Merged), (1, PullState::Closed)]);
        assert!(found[0].is_draft && found[0].merges_itself && !found[1].is_draft && !found[1].merges_itself);
        assert_eq!((found[0].body.as_str(), found[1].body.as_str()), ("text", ""));
        assert_eq!(found[0].url, "https://github.com/o/r/pull/6");
    }

    #[test]
    fn one_is_opened_as_it_is_wanted() {
        for is_draft in [false, true] {
            let (fake, server, api) = served();
            let opened = on(&api, |pulls| pulls.open(&wanted(is_draft))).unwrap();
            assert_eq!((opened.number, opened.is_draft, opened.state), (1, is_draft, PullState::Open));
            assert_eq!(
                server.changes(),
                [(
                    "POST /repos/o/r/pulls".to_owned(),
                    json!({
                        "title": "fix: types", "body": "What was verified.\n\n<!-- ll-loop -->",
                        "head": "ll-loop/fix/main", "base": "main", "draft": is_draft,
                    })
                )]
            );
            assert_eq!(of_branch(&api).unwrap(), [opened]);
            let again = on(&api, |pulls| pulls.open(&wanted(is_draft))).unwrap_err();
            assert_eq!(again.kind, ForgeErrorKind::Raced);
            assert_eq!(fake.content().pulls.len(), 1);
        }
    }

    #[test]
    fn no_trouble_of_the_server_opens_two() {
        for when in [When::Before, When::After] {
            for (from, to) in [(0, 1), (0, 2), (1, 2), (0, 6)] {
                let (fake, _server, api) = served();
                fake.content().trouble = Some((from, to, when));
                let opened = on(&api, |pulls| pulls.open(&wanted(true)));
                if let Err(error) = &opened {
                    assert_eq!(error.kind, ForgeErrorKind::Unavailable, "{from} {to} {when:?}");
                    assert!(to > 4, "{from} {to} {when:?}: {error}");
                }
                assert!(fake.content().pulls.len() <= 1);
                assert!(opened.is_err() || fake.content().pulls.len() == 1);
            }
        }
    }

    #[test]
    fn an_answer_that_was_lost_is_not_taken_for_somebody_elses() {
        let (fake, _server, api) = served();
        fake.content().pulls.push(pull(1, "ll-loop/fix/main", "main"));
        fake.content().trouble = Some((0, 1, When::Before));
        let error = on(&api, |pulls| pulls.open(&wanted(false))).unwrap_err();
        assert_eq!(error.kind, ForgeErrorKind::Raced);
        assert_eq!(error.message, "somebody else opened https://github.com/o/r/pull/1 meanwhile");
    }

    #[track_caller]
    fn check_refused(answer: ResponseTemplate, kind: ForgeErrorKind, message: &str, help: Option<&str>) {
        let (fake, _server, api) = served();
        fake.content().answers.push(("POST /repos/o/r/pulls", answer));
        let error = on(&api, |pulls| pulls.open(&wanted(true))).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
        assert!(error.help.as_deref().unwrap_or_default().contains(help.unwrap_or_default()), "{error:?}");
        assert_eq!(error.help.is_some(), help.is_some(), "{error:?}");
    }

    #[test]
    fn why_none_is_opened_is_said_with_what_to_do() {
        use ForgeErrorKind::{Declined, Failed, Raced, Unavailable};
        let custom = |message: &str| {
            unfit(&json!([{"resource": "PullRequest", "code": "custom", "message": message}]))
        };
        let field =
            |name: &str| unfit(&json!([{"resource": "PullRequest", "field": name, "code": "invalid"}]));
        let said_422 = |message: &str| format!("GitHub answers POST /repos/o/r/pulls with 422: {message}");
        let setting = "GitHub Actions is not permitted to create or approve pull requests.";
        check_refused(
            said(403, setting),
            Failed,
            &format!("the token may not do POST /repos/o/r/pulls: {setting}"),
            Some(
                "\"Allow GitHub Actions to create and approve pull requests\" (Settings → Actions → General",
            ),
        );
        check_refused(
            said(403, "Resource not accessible by integration"),
            Failed,
            "the token may not do POST /repos/o/r/pulls: Resource not accessible by integration",
            Some("give the job `permissions: { pull-requests: write }`"),
        );
        check_refused(
            said(404, "Not Found"),
            Failed,
            "GitHub finds nothing for POST /repos/o/r/pulls: Not Found",
            Some("has `pull-requests: write`"),
        );
        let drafts = "Draft pull requests are not supported in this repository.";
        check_refused(said(422, drafts), Declined, &said_422(drafts), Some("this repository has no drafts"));
        let commits = "No commits between main and ll-loop/fix/main";
        check_refused(
            custom(commits),
            Failed,
            &format!(
                "`ll-loop/fix/main` has no commit that `main` lacks: {}",
                said_422(&format!("Validation Failed: {commits}"))
            ),
            None,
        );
        let gone = said_422("Validation Failed: `head` is invalid");
        check_refused(field("head"), Raced, &gone, None);
        let gone = said_422("Validation Failed: `base` is invalid");
        check_refused(field("base"), Failed, &gone, None);
        let long = "body is too long (maximum is 65536 characters)";
        let message = said_422(&format!("Validation Failed: {long}"));
        check_refused(custom(long), Failed, &message, None);
        let limit = said(403, "too fast").insert_header("retry-after", "3600");
        let message = "GitHub limits the rate of requests: the next one is possible in 1h 0m";
        check_refused(limit, Unavailable, message, Some("wait"));
    }

    /// Edits the draft that is there: what it says then, and what was asked for.
    fn edited(fake: &Fake, server: &TestServer, api: &Api, is_draft: bool, makes_ready: bool) -> Vec<String> {
        let mut draft = pull(1, "ll-loop/fix/main", "main");
        draft["draft"] = json!(true);
        fake.content().pulls = vec![draft];
        let there = of_branch(api).unwrap().remove(0);
        let before = server.changes().len();
        on(api, |pulls| pulls.edit(&there, &wanted(is_draft), makes_ready)).unwrap();
        server.changes().into_iter().skip(before).map(|(request, _)| request).collect()
    }

    #[test]
    fn title_and_text_are_changed_and_a_draft_is_made_ready_where_it_is_ours() {
        let (fake, server, api) = served();
        for (is_draft, makes_ready, expect) in
            [(false, true, false), (false, false, true), (true, true, true), (true, false, true)]
        {
            let requests = edited(&fake, &server, &api, is_draft, makes_ready);
            let there = fake.content().pulls[0].clone();
            assert_eq!((&there["title"], &there["draft"]), (&json!("fix: types"), &json!(expect)));
            assert_eq!(there["body"], wanted(false).body);
            assert_eq!(requests[0], "PATCH /repos/o/r/pulls/1");
            assert_eq!(requests.len(), if expect { 1 } else { 2 });
        }
        let ready = server.changes().into_iter().find(|(request, _)| request == "POST /graphql").unwrap();
        assert_eq!(ready.1["variables"], json!({"input": {"pullRequestId": "PR_1"}}));
        // What is as it is to be is left alone.
        let there = of_branch(&api).unwrap().remove(0);
        let before = server.changes().len();
        on(&api, |pulls| pulls.edit(&there, &wanted(true), true)).unwrap();
        assert_eq!(server.changes().len(), before);
    }

    #[test]
    fn an_edit_survives_trouble_and_a_locked_conversation() {
        for when in [When::Before, When::After] {
            for at in 0..3 {
                let (fake, server, api) = served();
                // The first request is the list.
                fake.content().trouble = Some((at + 1, at + 2, when));
                edited(&fake, &server, &api, false, true);
                assert_eq!(fake.content().pulls[0]["draft"], false, "{at} {when:?}");
            }
        }
        let (fake, server, api) = served();
        fake.content().answers.push(("PATCH", said(403, "Lock prevents edits: the conversation is locked")));
        edited(&fake, &server, &api, false, true);
        assert_eq!(fake.content().pulls[0]["draft"], false);
    }

    #[test]
    fn why_a_draft_stays_one_is_said() {
        let (fake, _server, api) = served();
        let mut draft = pull(1, "ll-loop/fix/main", "main");
        draft["draft"] = json!(true);
        fake.content().pulls.push(draft);
        let there = of_branch(&api).unwrap().remove(0);
        let edit = || on(&api, |pulls| pulls.edit(&there, &wanted(false), true)).unwrap_err();
        let answer = |answer| fake.content().answers = vec![answer];
        answer(("markPull", wrong("FORBIDDEN", "Resource not accessible by integration")));
        let error = edit();
        assert_eq!(error.kind, ForgeErrorKind::Failed);
        assert!(error.help.unwrap().contains("pull-requests: write"));
        answer(("markPull", wrong("SERVICE_UNAVAILABLE", "busy")));
        assert_eq!(edit().kind, ForgeErrorKind::Unavailable);
        answer(("PATCH", said(403, "Resource not accessible by integration")));
        assert!(edit().help.unwrap().contains("pull-requests: write"));
    }
}
