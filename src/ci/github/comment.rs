//! The comment on the pull request: one for each loop and key, which every run writes anew.

use serde::Deserialize;
use serde_json::{Value, json};

use super::commit_status::{self, Other, state};
use super::cut::cut;
use super::reporter::Channel;
use super::shared::{Rank, ReportMark, if_known, marked, sentence, stands};
use super::target::ReportTarget;
use crate::ci::reported::FinalReport;
use crate::forge::github::api::ApiError;
use crate::forge::github::pull_comments;
use crate::report::digest::Digest;
use crate::report::formats::{markdown, summary};

/// GitHub refuses a comment of more than 65,536 characters.
const MAX_COMMENT: usize = 64_900;

const WHAT: &str = "comment";

/// How often a comment is looked at again because another run wrote it meanwhile, of which there may be many.
const TRIES: usize = 20;

const CUT: &str = "> The summary is longer than a comment can be; the rest is in the report of the run.";

/// Reports a run as a comment on its pull request.
pub(super) struct CommentChannel;

#[derive(Deserialize)]
struct WrittenComment {
    id: u64,
    body: Option<String>,
    user: Option<CommentAuthor>,
}

#[derive(Deserialize)]
struct CommentAuthor {
    login: String,
}

#[derive(Deserialize)]
struct CommentedPull {
    number: u64,
    state: String,
}

impl Channel for CommentChannel {
    fn name(&self) -> &'static str {
        "comment"
    }

    fn permission(&self) -> &'static str {
        "pull-requests: write"
    }

    fn begin(&mut self, _target: &ReportTarget) -> Result<(), ApiError> {
        Ok(())
    }

    fn end(&mut self, target: &ReportTarget, report: &FinalReport) -> Result<Option<String>, ApiError> {
        let Some(number) = pull_request(target)? else { return Ok(None) };
        let marker = marker(target);
        let own = state(&report.digest, target.sha());
        let ours = body(&marker, &told(&report.digest, target.sha()), &marked(target.url(), target, own));
        // What stands for a run that came out worse, and whose own comment may have been written over.
        let mut stand_in: Option<StandingText> = None;
        let mut another: Option<String> = None;
        let us = pull_comments::own_name(target.api())?;
        let mut there = find(target, number, &marker, &us)?;
        // Bounded, because each of many legs writes the same comment, and all of them look again.
        for _ in 0..TRIES {
            let theirs = there.as_ref().and_then(|(_, there)| worse(there, own, target));
            let theirs = theirs.or_else(|| stand_in.clone());
            another = theirs.as_ref().map(|theirs| theirs.why.clone());
            let text = theirs.map_or_else(|| ours.clone(), |theirs| theirs.text);
            let id = match there {
                Some((_, there)) if there == text => break,
                Some((id, there_then)) => {
                    // Between the look at all comments and this one, another run may have written it.
                    let now = read(target, id)?.unwrap_or_else(|| there_then.clone());
                    if now != there_then {
                        there = Some((id, now));
                        // The newer text may be one that must stay, so it is judged again.
                        continue;
                    }
                    let path = target.path(&format!("/issues/comments/{id}"));
                    target.api().patch::<Value>(&path, &json!({ "body": text }))?;
                    id
                }
                None => {
                    let path = target.path(&format!("/issues/{number}/comments"));
                    let made = target.api().post::<Value>(&path, &json!({ "body": text }))?;
                    let Some(id) = made.get("id").and_then(Value::as_u64) else { break };
                    // Another run may have made one since the list was read: the first stays.
                    match find(target, number, &marker, &us)? {
                        // Of two, every run keeps the first, so that all of them agree without a
                        // word to each other.
                        Some(first) if first.0 < id => {
                            target.api().delete(&target.path(&format!("/issues/comments/{id}")))?;
                            there = Some(first);
                            continue;
                        }
                        Some(_) | None => id,
                    }
                }
            };
            // Another run may have written it since it was read.
            let body = read(target, id)?.unwrap_or(text);
            if !is_better(&body, own, target) {
                if another.is_some() || stand_in.is_some() {
                    break;
                }
                // No server writes a comment on condition of what stands there. A run that came out worse may have written
                // its own between our last look and our write, and does not look again; its status came before, and stays.
                // Without an answer, the words of this run stand; they are true of it.
                let Some(other) = commit_status::worse_run(target, own).ok().flatten() else { break };
                stand_in = Some(in_place_of(&other, &marker, report.digest.loop_name()));
            }
            there = Some((id, body));
        }
        Ok(another.map(|why| format!("the comment on the pull request is that of another run: {why}")))
    }
}

/// Says how the run came out, of the commit that the comment is about: a success of something else is none of it.
fn told(digest: &Digest, sha: &str) -> String {
    let summary = summary::render(digest);
    let Some(caveat) = digest.caveat_at(sha) else { return summary };
    let summary = summary.replacen('✅', "⚠️", 1);
    let (heading, rest) = summary.split_once('\n').unwrap_or((&summary, ""));
    format!("{heading}\n\n> success {}\n{rest}", markdown::words(&caveat.words()))
}

/// Reads the text of a comment; nothing where that is not known.
fn read(target: &ReportTarget, id: u64) -> Result<Option<String>, ApiError> {
    let path = target.path(&format!("/issues/comments/{id}"));
    let written: Option<WrittenComment> = if_known(target.api().get(&path, &[]).map(Some))?;
    Ok(written.and_then(|written| written.body))
}

/// The comment of another run that has the last word.
#[derive(Clone)]
struct StandingText {
    text: String,
    /// Why it has.
    why: String,
}

/// Returns what a comment says if it is about another run that came out worse and has the last word.
fn worse(text: &str, own: &str, target: &ReportTarget) -> Option<StandingText> {
    let with = |why: String| StandingText { text: with_note(text, &why), why };
    let is_worse = |mark: &ReportMark<'_>| Rank::of(mark.own) > Rank::of(own);
    if mark_of_another(text, target).is_some_and(|mark| is_worse(&mark)) {
        return Some(with(sentence(WHAT)));
    }
    let link = link(text)?;
    let mark = ReportMark::of_elsewhere(link, target)?;
    let is_failure = is_worse(&mark) && Rank::of(mark.own) == Rank::Bad;
    // The comment has one report alone. Where statuses say that it was taken back since, it does not stand, or no comment
    // of a later job that passed would turn green again.
    let is_standing = is_failure && !commit_status::is_taken_back(link, target);
    is_standing.then(|| with(stands(WHAT)))
}

/// Tells whether a comment is about another run of this CI run, and looks better than this one came out.
fn is_better(text: &str, own: &str, target: &ReportTarget) -> bool {
    mark_of_another(text, target).is_some_and(|mark| Rank::of(mark.own) < Rank::of(own))
}

/// Returns the mark of the last link of a comment, if it is of another run of this CI run.
fn mark_of_another<'t>(text: &'t str, target: &ReportTarget) -> Option<ReportMark<'t>> {
    ReportMark::of_another(link(text)?, target)
}

/// Returns the last link of a comment.
fn link(text: &str) -> Option<&str> {
    let (_, link) = text.rsplit_once("](")?;
    Some(link.split_once(')')?.0)
}

/// Returns a comment for a run of which no more is known than its status.
fn in_place_of(other: &Other, marker: &str, loop_name: &str) -> StandingText {
    let heading = format!("## ❌ {}", markdown::code(loop_name, 120));
    let said = markdown::words(&other.description);
    let why = if other.is_elsewhere { stands(WHAT) } else { sentence(WHAT) };
    let text = format!("{marker}\n{heading}\n\n{said}\n\n> {why}\n\n[The run]({})\n", other.link);
    StandingText { text, why }
}

/// Adds why the comment is not this run's own, before its last line.
fn with_note(text: &str, why: &str) -> String {
    let note = format!("> {why}\n\n");
    match text.rfind("[The run](") {
        Some(at) if !text.contains(&note) => format!("{}{note}{}", &text[..at], &text[at..]),
        Some(_) | None => text.to_owned(),
    }
}

/// Returns the pull request of the event; a run that continues in a later job finds it by its commit (`--sha`).
fn pull_request(target: &ReportTarget) -> Result<Option<u64>, ApiError> {
    // An event without a pull request is about a branch. Only `--sha` says that another event began
    // the run.
    if target.pull_request().is_some() || !target.names_its_commit() {
        return Ok(target.pull_request());
    }
    let pulls: Vec<CommentedPull> =
        target.api().get(&target.path(&format!("/commits/{}/pulls", target.sha())), &[])?;
    Ok(pulls.into_iter().find(|pull| pull.state == "open").map(|pull| pull.number))
}

/// Returns the line that a comment of ours begins with, and no reader sees.
fn marker(target: &ReportTarget) -> String {
    // Two hyphens in a row, or an angle bracket, could end the comment of HTML.
    // Also at the end: the marker ends with a hyphen of its own.
    let name = target.subject_name().replace(['<', '>'], "-");
    let name = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    format!("<!-- {name} -->")
}

fn body(marker: &str, summary: &str, url: &str) -> String {
    let (start, end) = (format!("{marker}\n"), format!("\n\n[The run]({url})\n"));
    let room = MAX_COMMENT.saturating_sub(start.len() + end.len());
    let summary = cut(summary, room, CUT);
    // Cut before it is put together, because the end holds the link by which the next run knows
    // this one.
    format!("{start}{}{end}", summary.as_deref().unwrap_or(CUT).trim_end())
}

/// Finds the comment that an earlier run wrote. Somebody else may have copied its marker, so its author counts, too.
fn find(
    target: &ReportTarget,
    number: u64,
    marker: &str,
    us: &str,
) -> Result<Option<(u64, String)>, ApiError> {
    let path = target.path(&format!("/issues/{number}/comments"));
    // From the oldest on, so that of two the first is found.
    for comment in target.api().list::<Vec<WrittenComment>>(&path, &[]) {
        let WrittenComment { id, body, user } = comment?;
        let body = body.filter(|body| body.lines().next().is_some_and(|line| line.trim_end() == marker));
        if let (Some(body), true) = (body, user.is_some_and(|user| user.login == us)) {
            return Ok(Some((id, body)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::{method, path, query_param};
    use wiremock::{Mock, ResponseTemplate};

    use super::*;
    use crate::forge::github::api::Api;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::{Pauses, TestServer};
    use crate::report::testing::succeeding;

    const MARKER: &str = "<!-- ll-loop/fix-types -->";
    const BOT: &str = "github-actions[bot]";
    const COMMENTS: &str = "/repos/octo/project/issues/7/comments";

    fn target(server: &TestServer) -> ReportTarget {
        let transport = Transport::default().pause(Pauses::none().pause());
        ReportTarget::in_test(Api::new(&server.address(), Some("ghs_x".to_owned()), transport))
    }

    fn comment(id: u64, author: &str, body: &str) -> Value {
        json!({"id": id, "body": body, "user": {"login": author, "type": "Bot"}})
    }

    /// A server with these pages of comments, and an answer to the question who asks.
    fn github(pages: &[Vec<Value>], user: ResponseTemplate) -> TestServer {
        let server = TestServer::start();
        server.mount(Mock::given(method("GET")).and(path("/user")).respond_with(user));
        for (index, page) in pages.iter().enumerate() {
            let more = if index + 1 < pages.len() { r#"<x>; rel="next""# } else { r#"<x>; rel="first""# };
            let answer = ResponseTemplate::new(200).set_body_json(page).insert_header("link", more);
            let number = (index + 1).to_string();
            server.mount(
                Mock::given(method("GET"))
                    .and(path(COMMENTS))
                    .and(query_param("page", number))
                    .respond_with(answer),
            );
        }
        let written = ResponseTemplate::new(201).set_body_json(json!({"id": 1}));
        server.mount(Mock::given(method("POST")).and(path(COMMENTS)).respond_with(written.clone()));
        server.mount(Mock::given(method("PATCH")).respond_with(written));
        server
    }

    fn of_job() -> ResponseTemplate {
        let refused = json!({"message": "Resource not accessible by integration"});
        ResponseTemplate::new(403).set_body_json(refused)
    }

    fn of_user(login: &str) -> ResponseTemplate {
        ResponseTemplate::new(200).set_body_json(json!({"login": login}))
    }

    fn end(target: &ReportTarget) -> Result<Option<String>, ApiError> {
        CommentChannel.end(target, &FinalReport { digest: succeeding().digest(), annotations: vec![] })
    }

    /// Which request writes the comment.
    #[track_caller]
    fn check(pages: &[Vec<Value>], user: ResponseTemplate, expected: &str) {
        let server = github(pages, user);
        end(&target(&server)).unwrap();
        let (request, body) = server.changes().pop().unwrap();
        assert_eq!(request, expected);
        let summary = summary::render(&succeeding().digest());
        let text = format!(
            "{MARKER}\n{}\n\n[The run](https://github.com/octo/project/actions/runs/77#ll-loop:fix-types-20251120T234847-1f2e:1:success)\n",
            summary.trim_end()
        );
        assert_eq!(body, json!({"body": text}));
    }

    #[test]
    fn one_comment_is_written_and_then_changed() {
        let create = format!("POST {COMMENTS}");
        let change = |id: u64| format!("PATCH /repos/octo/project/issues/comments/{id}");
        let ours = format!("{MARKER}\n## old");
        check(&[vec![]], of_job(), &create);
        check(&[vec![comment(3, "ann", "hello"), comment(4, BOT, &ours)]], of_job(), &change(4));
        // On GitHub's second page.
        let many: Vec<Value> = (1..=100).map(|id| comment(id, "ann", "hello")).collect();
        check(&[many, vec![comment(104, BOT, &ours)]], of_job(), &change(104));
        // Written by the person whose token it is.
        check(&[vec![comment(5, "ann", &ours)]], of_user("ann"), &change(5));
    }

    #[test]
    fn a_comment_of_somebody_else_is_left_alone() {
        let create = format!("POST {COMMENTS}");
        let ours = format!("{MARKER}\n## old");
        check(&[vec![comment(3, "mallory", &ours)]], of_job(), &create);
        check(&[vec![comment(3, BOT, &ours)]], of_user("ann"), &create);
        check(&[vec![comment(3, BOT, &format!("see\n{MARKER}"))]], of_job(), &create);
        check(&[vec![comment(3, BOT, "<!-- ll-loop/fix-types (b) -->\nx")]], of_job(), &create);
        check(&[vec![json!({"id": 3, "body": null, "user": null})]], of_job(), &create);
    }

    #[test]
    fn the_comment_of_another_app_is_changed_by_its_token() {
        let ours = format!("{MARKER}\n## old");
        let server = github(&[vec![comment(3, BOT, &ours), comment(4, "fixer[bot]", &ours)]], of_job());
        let viewer = json!({"data": {"viewer": {"login": "fixer[bot]"}}});
        let answer = ResponseTemplate::new(200).set_body_json(viewer);
        server.mount(Mock::given(method("POST")).and(path("/graphql")).respond_with(answer));
        end(&target(&server)).unwrap();
        assert_eq!(server.changes().pop().unwrap().0, "PATCH /repos/octo/project/issues/comments/4");
    }

    #[test]
    fn a_run_that_goes_on_elsewhere_finds_its_pull_request() {
        let server = github(&[vec![]], of_job());
        let pulls = json!([{"number": 6, "state": "closed"}, {"number": 7, "state": "open"}]);
        let found = ResponseTemplate::new(200).set_body_json(pulls);
        let commit = format!("/repos/octo/project/commits/{}/pulls", "2".repeat(40));
        server.mount(Mock::given(method("GET")).and(path(commit)).respond_with(found));
        end(&target(&server).going_on()).unwrap();
        assert_eq!(server.changes().pop().unwrap().0, format!("POST {COMMENTS}"));
    }

    #[test]
    fn without_a_pull_request_there_is_nothing_to_write_on() {
        let server = github(&[vec![]], of_job());
        end(&target(&server).without_pull_request()).unwrap();
        assert_eq!(server.requests(), 0);
    }

    #[test]
    fn a_long_comment_is_cut() {
        let text = body(MARKER, &"é 🦀 words\n".repeat(10_000), "https://x");
        assert!(text.len() < 65_000 && text.len() > 60_000, "{}", text.len());
        assert!(text.starts_with(MARKER) && text.ends_with(&format!("{CUT}\n\n[The run](https://x)\n")));
    }

    #[test]
    fn no_name_ends_the_marker() {
        let server = TestServer::start();
        let named = marker(&target(&server).of("a --> <b>", Some("c--d")));
        assert_eq!(named, "<!-- ll-loop/a - -b- (c-d) -->");
    }
}
