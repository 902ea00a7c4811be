//! The status of the commit: one line that stays under one name however many runs it takes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::reporter::Channel;
use super::shared::{
    MOST, Rank, ReportMark, described, if_listed, marked, sentence, standing_elsewhere, stands, unseen,
};
use super::target::ReportTarget;
use crate::base::text::one_line;
use crate::ci::reported::FinalReport;
use crate::engine::outcome::TerminatedBy;
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::repository::RepositoryName;
use crate::people::run_wait::RunWait;
use crate::report::Outcome;
use crate::report::digest::changed_tree::Caveat;
use crate::report::digest::{Digest, EndKind};

/// GitHub answers 422 to a longer description.
pub(super) const MAX_DESCRIPTION: usize = 140;

/// The most statuses of a commit that are read. GitHub keeps 1,000 of a name.
const MAX_READ: usize = 2000;

/// The same where no other run should have the name.
const MAX_READ_OF_OWN: usize = 100;

const WHAT: &str = "status";

/// What a description begins with whose run waits for its delivery.
const WAITS: &str = "waits for the delivery of ";

/// What a description begins with whose run was not delivered.
const NOT_DELIVERED: &str = "not delivered";

/// Reports a run as a status of its commit.
pub(super) struct StatusChannel;

impl Channel for StatusChannel {
    fn name(&self) -> &'static str {
        "commit status"
    }

    fn permission(&self) -> &'static str {
        "statuses: write"
    }

    fn begin(&mut self, target: &ReportTarget) -> Result<(), ApiError> {
        set(target, "pending", "running", target.url())
    }

    fn end(&mut self, target: &ReportTarget, report: &FinalReport) -> Result<Option<String>, ApiError> {
        let (digest, sha) = (&report.digest, target.sha());
        let target = &target.waiting(wait(digest).as_ref());
        match awaited(digest, sha).filter(|_| target.delivers()) {
            Some(what) => settle(target, "pending", &format!("{WAITS}{what}"), target.url()),
            None => settle(target, state(digest, sha), &description(digest, sha), target.url()),
        }
    }
}

/// Returns what a run waits for that was handed off.
fn wait(digest: &Digest) -> Option<RunWait> {
    if digest.end().is_some_and(|end| end.outcome == Outcome::OverBudget) {
        return Some(RunWait::Budget);
    }
    if digest.is_merge() && digest.end_kind() == EndKind::HandedOff {
        return Some(RunWait::Legs);
    }
    let reason = digest.handoff_reason().filter(|_| digest.end_kind() == EndKind::HandedOff)?;
    Some(RunWait::of(digest.awaiting(), reason))
}

/// Returns what a later job can deliver of a success that is not one of the commit.
fn awaited(digest: &Digest, sha: &str) -> Option<String> {
    let has_files = digest.changes().is_some_and(|changes| changes.count() > 0);
    match digest.caveat_at(sha).filter(|_| has_files)? {
        Caveat::Changes(what) => Some(format!("changes to {what}")),
        Caveat::Before(_) | Caveat::Another(_) | Caveat::Elsewhere(_) | Caveat::Unknown(_) => None,
    }
}

/// Ends the status of a run that waits for its delivery, if there is one. The commit is not what was verified, whatever came
/// of the delivery; but one that came to nothing may come to something later.
pub(super) fn end_waiting(target: &ReportTarget, text: &str) -> Result<(), ApiError> {
    let waits = |status: &ListedStatus| {
        let description = status.description.as_deref().unwrap_or("");
        let failed = description.starts_with(NOT_DELIVERED) && !text.starts_with(NOT_DELIVERED);
        failed || (status.state == "pending" && description.starts_with(WAITS))
    };
    let mut newest: BTreeMap<String, ListedStatus> = BTreeMap::new();
    for status in listed(target, MAX_READ)? {
        // The newest under each name tells how the run stands; earlier ones are its history.
        if ReportMark::of_same_run(status.link(), target).is_some()
            && newest.get(&status.context).is_none_or(|known| known.id < status.id)
        {
            newest.insert(status.context.clone(), status);
        }
    }
    for (context, _) in newest.into_iter().filter(|(_, status)| waits(status)) {
        set(&target.named(context), "failure", text, target.url())?;
    }
    Ok(())
}

/// Ends the status of a run that is over and could not do it itself, if its status is still what the run began with.
pub(super) fn end_pending(target: &ReportTarget, text: &str) -> Result<(), ApiError> {
    let there = listed(target, MAX_READ_OF_OWN)?;
    // GitHub takes names that differ in case alone for one.
    let ours = there.iter().filter(|listed| listed.context.eq_ignore_ascii_case(target.context()));
    let Some(newest) = ours.max_by_key(|listed| listed.id) else { return Ok(()) };
    // A status that says anything else was ended by the run itself, or by somebody who knew more.
    if newest.state == "pending" && ReportMark::of_this_page(newest.link(), target).is_some() {
        set(target, "error", text, target.url())?;
    }
    Ok(())
}

/// Reads the statuses of the commit, the newest first where the server knows that order.
fn listed(target: &ReportTarget, most: usize) -> Result<Vec<ListedStatus>, ApiError> {
    let mut all = Vec::new();
    for listed in statuses(target.api(), target.repository(), target.sha(), most) {
        let Some(listed) = if_listed(listed.map(Some), target)? else { break };
        all.push(listed);
    }
    Ok(all)
}

/// Asks for so many statuses of a commit.
pub(super) fn statuses(
    api: &Api,
    repository: &RepositoryName,
    sha: &str,
    most: usize,
) -> Vec<Result<ListedStatus, ApiError>> {
    // Gitea begins with the oldest unless it is asked for the highest index first.
    let path = repository.path(&format!("/commits/{sha}/statuses"));
    // GitHub begins with the newest without being asked.
    let query: &[_] = if api.server().lists_newest_first() { &[] } else { &[("sort", "highestindex")] };
    // Asked for page by page, so that no more are read than are wanted.
    api.list::<Vec<ListedStatus>>(&path, query).take(most).collect()
}

/// Sets the status of the commit of a job, whatever other runs reported.
pub(super) fn set(target: &ReportTarget, state: &str, description: &str, url: &str) -> Result<(), ApiError> {
    ShownStatus::own(state, description).send(target, url)
}

/// Sets the status to how the run came out, unless another run of this CI run that shares the status came out worse.
/// Returns that they share it, if that made a difference.
pub(super) fn settle(
    target: &ReportTarget,
    state: &str,
    description: &str,
    url: &str,
) -> Result<Option<String>, ApiError> {
    let own = ShownStatus::own(state, description);
    let mut sent = None;
    let mut from_elsewhere = None;
    // A status that is bad cannot become better by what others say, so it is set before the look at them, which may fail.
    if Rank::of(state) == Rank::Bad {
        own.send(target, url)?;
        sent = Some(own.clone());
    }
    // Each round may find that another run has written since; after so many, that run sees ours.
    for _ in 0..MOST {
        let there = match OtherStatuses::read(target) {
            Ok(there) => there,
            Err(error) => {
                if sent.is_none() {
                    own.unsure(target).send(target, url)?;
                }
                return Ok(Some(unseen(WHAT, &error)));
            }
        };
        let shown = own.beside(&there.runs);
        from_elsewhere =
            worst(&there.runs).filter(|other| other.is_elsewhere).map(|other| other.link.clone());
        // Another run may have reported after our look at the others, or before it and be listed only now.
        let stands = there.shown.as_ref().is_none_or(|there| Rank::of(there) == Rank::of(&shown.state));
        if sent.as_ref() == Some(&shown) && stands {
            break;
        }
        shown.send(target, url)?;
        sent = Some(shown);
    }
    let is_another = sent.is_some_and(|sent| sent != own);
    Ok(is_another.then(|| match from_elsewhere {
        Some(link) => format!("the status `{}` is {}: {link}", target.context(), stands(WHAT)),
        None => format!("the status `{}` is that of another run: {}", target.context(), sentence(WHAT)),
    }))
}

/// Returns the run that came out worst.
fn worst(others: &[Other]) -> Option<&Other> {
    others.iter().max_by_key(|other| Rank::of(&other.own))
}

/// What a status shows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ShownStatus {
    state: String,
    description: String,
    /// How the run itself came out.
    own: String,
}

impl ShownStatus {
    fn own(state: &str, description: &str) -> Self {
        let description = one_line(description, MAX_DESCRIPTION);
        Self { state: state.to_owned(), description, own: state.to_owned() }
    }

    /// Returns what is shown beside other runs, of which the worst counts.
    fn beside(&self, others: &[Other]) -> Self {
        let Some(worst) = worst(others).filter(|worst| Rank::of(&worst.own) > Rank::of(&self.own)) else {
            return self.clone();
        };
        let description = match Rank::of(&worst.own) {
            // The words of a run that goes on are about itself.
            Rank::Open => "another run is not over",
            Rank::Good | Rank::Neutral | Rank::Bad => &worst.description,
        };
        let why = if worst.is_elsewhere { stands(WHAT) } else { sentence(WHAT) };
        let description = described(description, &why, MAX_DESCRIPTION);
        Self { state: worst.own.clone(), description, own: self.own.clone() }
    }

    /// Returns what is shown where the others cannot be read. A name that only mistakes share is the run's own.
    fn unsure(&self, target: &ReportTarget) -> Self {
        if target.has_own_name() {
            return self.clone();
        }
        let description =
            format!("{}, but runs that may share this status cannot be read: pass `key`", self.own);
        Self { state: "pending".to_owned(), description, own: self.own.clone() }
    }

    fn send(&self, target: &ReportTarget, url: &str) -> Result<(), ApiError> {
        let body = json!({
            "state": self.state,
            "context": target.context(),
            "description": self.description,
            "target_url": marked(url, target, &self.own),
        });
        // A second one with the same words takes the place of the first.
        // So a request that may have arrived is simply made again.
        target
            .api()
            .post_again::<Value>(&target.path(&format!("/statuses/{}", target.sha())), &body)
            .map(drop)
    }
}

/// The last status that another run set, of this CI run or of another one at this commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Other {
    /// How that run came out.
    own: String,
    /// Whether it is another job's, or that of another workflow or event.
    pub(super) is_elsewhere: bool,
    pub(super) description: String,
    /// The page of the run, with its mark.
    pub(super) link: String,
}

/// Returns the run that shares the status and came out worse, if one did.
pub(super) fn worse_run(target: &ReportTarget, own: &str) -> Result<Option<Other>, ApiError> {
    // A run that is itself bad stands for itself.
    let runs = OtherStatuses::read(target)?.runs;
    Ok(worst(&runs).cloned().filter(|worst| Rank::of(&worst.own) == Rank::Bad && Rank::of(own) != Rank::Bad))
}

impl Other {
    fn of(listed: &ListedStatus, own: &str, is_elsewhere: bool) -> Self {
        let description = listed.description.clone().unwrap_or_default();
        Self { own: own.to_owned(), is_elsewhere, description, link: listed.link().to_owned() }
    }
}

/// Tells whether statuses say that what another job reported with this link does not stand any more.
pub(super) fn is_taken_back(link: &str, target: &ReportTarget) -> bool {
    let Ok(mut listed) = listed(target, MAX_READ) else { return false };
    listed.retain(|status| status.context.eq_ignore_ascii_case(target.context()));
    listed.sort_by_key(|status| std::cmp::Reverse(status.id));
    let links: Vec<&str> = listed.iter().map(ListedStatus::link).collect();
    let stands = standing_elsewhere(&links, target).iter().any(|(place, _)| links[*place] == link);
    links.contains(&link) && !stands
}

/// What stands under the name of the status.
#[derive(Debug, Default)]
struct OtherStatuses {
    runs: Vec<Other>,
    /// The state that is shown now, if this CI run set it.
    shown: Option<String>,
}

impl OtherStatuses {
    /// Reads the statuses of the commit.
    fn read(target: &ReportTarget) -> Result<Self, ApiError> {
        let mut others = Self::default();
        // A name with a key is shared by mistake alone, and a matrix of 256 has to stay below the rate limit.
        // Each page is a request, and a job token of GitHub has 1,000 an hour for the whole
        // repository.
        let most = if target.has_own_name() { MAX_READ_OF_OWN } else { MAX_READ };
        let mut ours = listed(target, most)?;
        ours.retain(|listed| listed.context.eq_ignore_ascii_case(target.context()));
        ours.sort_by_key(|listed| std::cmp::Reverse(listed.id));
        others.shown = ours.first().and_then(|newest| {
            ReportMark::of_this_attempt(newest.link(), target).map(|_| newest.state.clone())
        });
        let mut seen: Vec<ReportMark<'_>> = Vec::new();
        for listed in &ours {
            // What is not ours or has no mark was set by people or other programs, and is left
            // alone.
            let Some(mark) = ReportMark::of_another(listed.link(), target) else { continue };
            if !seen.iter().any(|later| mark.is_followed_by(later)) {
                others.runs.push(Other::of(listed, mark.own, false));
            }
            seen.push(mark);
        }
        let links: Vec<&str> = ours.iter().map(ListedStatus::link).collect();
        let standing = standing_elsewhere(&links, target).into_iter();
        others.runs.extend(standing.map(|(place, mark)| Other::of(&ours[place], mark.own, true)));
        Ok(others)
    }
}

/// A status, as the list has it.
#[derive(Debug, Deserialize)]
pub(super) struct ListedStatus {
    #[serde(default)]
    pub(super) id: u64,
    pub(super) context: String,
    /// Gitea calls it `status` here.
    #[serde(alias = "status")]
    pub(super) state: String,
    description: Option<String>,
    target_url: Option<String>,
    pub(super) created_at: Option<String>,
}

impl ListedStatus {
    pub(super) fn link(&self) -> &str {
        self.target_url.as_deref().unwrap_or("")
    }
}

/// Returns the state that a run comes to.
pub(super) fn state(digest: &Digest, sha: &str) -> &'static str {
    match digest.caveat_at(sha).map(|caveat| caveat.is_certain()) {
        // The commit itself has not passed.
        Some(true) => return "failure",
        Some(false) => return "error",
        None => {}
    }
    match digest.end_kind() {
        EndKind::Success | EndKind::NotRun => "success",
        EndKind::Failure => "failure",
        // Not decided: a later run will.
        EndKind::HandedOff => "pending",
        EndKind::Error => "error",
    }
}

/// Says how the run ended, and whether anything was verified.
pub(super) fn description(digest: &Digest, sha: &str) -> String {
    if let Some(caveat) = digest.caveat_at(sha) {
        return format!("success {}", caveat.words());
    }
    match digest.end() {
        Some(_) if let Some(awaiting) = digest.awaiting() => {
            format!("waiting for a person ({}): {}", awaiting.code, awaiting.shown())
        }
        Some(end) if end.outcome == Outcome::Handoff => {
            format!("handed off: saved in `{}`, to be resumed", end.final_state)
        }
        Some(end) if end.terminated_by == TerminatedBy::Killed => {
            // The state of the status says that much.
            digest.sentence().trim_start_matches("interrupted: ").to_owned()
        }
        Some(_) | None => digest.sentence(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    use super::*;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::{Pauses, TestServer};
    use crate::report::testing::{Journal, not_run, succeeding};

    const PATH: &str = "/repos/octo/project/statuses/2222222222222222222222222222222222222222";

    fn target(server: &TestServer, pauses: &Pauses) -> ReportTarget {
        let transport = Transport::default().pause(pauses.pause());
        ReportTarget::in_test(Api::new(&server.address(), Some("ghs_x".to_owned()), transport))
    }

    fn answer(status: u16) -> Mock {
        Mock::given(method("POST")).and(path(PATH)).respond_with(ResponseTemplate::new(status))
    }

    fn report(digest: Digest) -> FinalReport {
        FinalReport { digest, annotations: vec![] }
    }

    /// A run that ends like this after a check that passed or not.
    fn ending(outcome: Outcome, terminated_by: TerminatedBy, verified: bool) -> Digest {
        let mut journal = Journal::start();
        let (code, verdict) = if verified { (0, "yes") } else { (1, "no") };
        journal.step(("check", 1), "mypy", (code, ""), verdict, "fix");
        journal.end(outcome, terminated_by, "fix", verified);
        journal.digest()
    }

    #[track_caller]
    fn check(digest: Digest, state: &str, description: &str) {
        check_with(digest, state, description, "");
    }

    /// The mark of the link says what the run waits for, too.
    #[track_caller]
    fn check_with(digest: Digest, state: &str, description: &str, waits: &str) {
        let server = TestServer::start();
        server.mount(answer(201));
        assert_eq!(StatusChannel.end(&target(&server, &Pauses::none()), &report(digest)), Ok(None));
        let body = json!({
            "state": state,
            "context": "ll-loop/fix-types",
            "description": description,
            "target_url": format!("https://github.com/octo/project/actions/runs/77#ll-loop:fix-types-20251120T234847-1f2e:1{waits}:{state}"),
        });
        assert_eq!(server.changes(), [(format!("POST {PATH}"), body)]);
    }

    #[test]
    fn every_outcome_has_a_state_and_says_no_more_than_was_seen() {
        use TerminatedBy as By;
        check(succeeding().digest(), "success", "success: `check` said yes");
        let none = "success (not in scope): nothing was run or verified, because nothing changed in `src`, `tests/*_x` since 1a2b3c4";
        check(not_run(), "success", none);
        check(
            ending(Outcome::Success, By::Terminal, false),
            "success",
            "success (unverified): `check` said no and nothing passed after it",
        );
        check(ending(Outcome::Failure, By::Terminal, false), "failure", "failure: `check` said no");
        check(
            ending(Outcome::Exhausted, By::MaxIterations, false),
            "failure",
            "exhausted: met the cap of 20 iterations; `check` said no",
        );
        check(ending(Outcome::Stopped, By::LoopStop, false), "failure", "stopped: in `fix`");
        check(ending(Outcome::Blocked, By::Blocked, false), "failure", "blocked: `check` said no");
        check(ending(Outcome::Error, By::FatalError, false), "error", "error: `fix`:");
        let over = ending(Outcome::OverBudget, By::Budget, false);
        check_with(over, "error", "over_budget: in `fix`", "@@@b-over");
        check(ending(Outcome::Unavailable, By::Unavailable, false), "error", "unavailable: in `fix`");
        check(ending(Outcome::Timeout, By::Timeout, false), "error", "timeout: in `fix` after 2.3s");
        check(ending(Outcome::Interrupted, By::Interrupted, false), "error", "interrupted: SIGTERM in `fix`");
        check(
            ending(Outcome::Handoff, By::Handoff, true),
            "pending",
            "handed off: saved in `fix`, to be resumed",
        );
        let mut killed = Journal::start();
        killed.step(("check", 1), "mypy", (0, ""), "yes", "fix").enter("fix", 1).act("ruff");
        let mut killed = killed.digest();
        killed.was_killed();
        check(killed, "error", "killed in state `fix`");
        let cut_off =
            "incomplete: the journal ends before the first step, so the run was killed or is still running";
        check(Journal::start().digest(), "error", cut_off);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_empty() {
        let server = TestServer::start();
        server.mount(answer(201));
        let page = ResponseTemplate::new(200).set_body_string("<html>");
        server.mount(Mock::given(method("GET")).respond_with(page));
        let ended = StatusChannel.end(&target(&server, &Pauses::none()), &report(succeeding().digest()));
        let said = ended.unwrap().unwrap();
        assert!(said.starts_with("whether other runs share the status is not known"), "{said}");
        assert_eq!(server.changes().pop().unwrap().1["state"], "pending");
    }

    #[test]
    fn the_description_is_cut_to_what_github_takes() {
        let server = TestServer::start();
        server.mount(answer(201));
        let text = format!("failure: {}", "é🦀".repeat(100));
        set(&target(&server, &Pauses::none()), "failure", &text, "https://x").unwrap();
        let sent = server.received()[0].1["description"].as_str().unwrap().to_owned();
        assert_eq!(sent.chars().count(), MAX_DESCRIPTION);
        assert!(text.starts_with(sent.trim_end_matches('…')), "{sent}");
    }

    #[test]
    fn trouble_of_the_service_is_waited_for_and_a_refusal_is_not() {
        let (server, pauses) = (TestServer::start(), Pauses::default());
        server.mount(answer(502).up_to_n_times(1));
        let limited = ResponseTemplate::new(403).insert_header("retry-after", "2");
        server.mount(Mock::given(method("POST")).respond_with(limited).up_to_n_times(1));
        server.mount(answer(201));
        assert_eq!(StatusChannel.begin(&target(&server, &pauses)), Ok(()));
        assert_eq!(server.requests(), 3);
        assert!(pauses.seconds().contains(&Duration::from_secs(2).as_secs()), "{:?}", pauses.seconds());

        let server = TestServer::start();
        server.mount(answer(403));
        let error = StatusChannel.begin(&target(&server, &Pauses::none())).unwrap_err();
        assert!(matches!(error, ApiError::Denied { .. }), "{error}");
        assert_eq!(server.requests(), 1);
    }
}
