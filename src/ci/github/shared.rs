//! The worst stands: several runs of one CI run that nothing tells apart report under one name, and the name is never
//! better than the worst of them, whoever reports last.
//!
//! Of different CI runs at one commit, a failure stands until the same job of the same workflow and event says otherwise:
//! a push that is green takes nothing back of the pull request that is red.
//!
//! Each report carries a mark in the fragment of its link: which run made it, in which attempt of the CI run (or at which
//! place in it, where attempts are not counted), from which job at which commit, and how that run itself came out. A run
//! looks at the reports of the others before it reports its end, and once more after, so that of two that report at the
//! same time one sees the other.

use std::collections::BTreeMap;

use super::target::ReportTarget;
use crate::base::text::{head, one_line};
use crate::forge::github::api::ApiError;
use crate::forge::github::github_server::Flavour;

/// How often a report is made again because another run reported meanwhile.
pub(super) const MOST: usize = 5;

/// What comes before the parts of a mark.
const MARK: &str = "#ll-loop:";

/// How good a state or a conclusion is. What is better comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// `success`, `skipped`.
    Good,
    /// `neutral`.
    Neutral,
    /// Not decided.
    Open,
    /// Everything else.
    Bad,
}

impl Rank {
    /// Returns the rank of a state of a status, or of a conclusion of a check run.
    pub(super) fn of(word: &str) -> Self {
        match word {
            "success" | "skipped" => Self::Good,
            "neutral" => Self::Neutral,
            "pending" | "queued" | "in_progress" => Self::Open,
            // A word that is not known may be of a later version of the server, and must not look
            // green.
            _ => Self::Bad,
        }
    }
}

/// A report as its mark says it: by which run, and how that came out, which is not always what the report shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportMark<'m> {
    page: &'m str,
    instance: &'m str,
    attempt: &'m str,
    /// Where it comes from, where the runner said it.
    origin: Option<MarkOrigin<'m>>,
    /// What the run waits for, if it does.
    waits: Option<&'m str>,
    /// How the run itself came out.
    pub(super) own: &'m str,
}

/// Which job of which workflow and event made a report, and about which commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MarkOrigin<'m> {
    job: &'m str,
    commit: &'m str,
}

impl<'m> MarkOrigin<'m> {
    fn of(target: &'m ReportTarget) -> Option<Self> {
        // A prefix is enough: it only has to differ among the commits of one page.
        Some(Self { job: target.origin()?, commit: head(target.sha(), COMMIT_DIGITS) })
    }
}

/// How many digits of a commit stand in a mark.
const COMMIT_DIGITS: usize = 12;

impl<'m> ReportMark<'m> {
    fn of(target: &'m ReportTarget, page: &'m str, own: &'m str) -> Self {
        // Gitea does not count attempts.
        let attempt = target.place().unwrap_or(target.attempt());
        let (instance, origin) = (target.instance(), MarkOrigin::of(target));
        Self { page, instance, attempt, origin, waits: target.waits(), own }
    }

    /// Returns the page of the run of the workflow.
    pub(super) fn page(&self) -> &'m str {
        self.page
    }

    /// Returns the id of the run.
    pub(super) fn instance(&self) -> &'m str {
        self.instance
    }

    /// Returns what the run waits for, if it does.
    pub(super) fn waits(&self) -> Option<&'m str> {
        self.waits
    }

    /// Returns the link without how the run came out and what it waits for.
    pub(super) fn without_end(&self) -> String {
        let Self { page, instance, attempt, origin, .. } = self;
        let origin = origin.map_or_else(String::new, |MarkOrigin { job, commit }| format!("@{job}@{commit}"));
        format!("{page}{MARK}{instance}:{attempt}{origin}")
    }

    /// Reads the link of a report.
    pub(super) fn parse(link: &'m str) -> Option<Self> {
        let (page, rest) = link.split_once(MARK)?;
        let mut parts = rest.rsplitn(3, ':');
        let (own, place, instance) = (parts.next()?, parts.next()?, parts.next()?);
        // Parts were added over time, so an older mark has fewer.
        let mut places = place.split('@');
        let attempt = places.next()?;
        let origin = places.next().zip(places.next()).map(|(job, commit)| MarkOrigin { job, commit });
        Some(Self { page, instance, attempt, origin, waits: places.next(), own })
    }

    /// Reads the link of a report, if that is of this attempt of the CI run.
    pub(super) fn of_this_attempt(link: &'m str, target: &ReportTarget) -> Option<Self> {
        Self::parse(link).filter(|mark| mark.is_of_this_attempt(target))
    }

    /// Reads the link of a report, if the same run made it, in whatever attempt of the CI run.
    pub(super) fn of_same_run(link: &'m str, target: &ReportTarget) -> Option<Self> {
        Self::parse(link).filter(|mark| mark.page == target.url() && mark.instance == target.instance())
    }

    /// Reads the link of a report, if any run of this CI run made it.
    pub(super) fn of_this_page(link: &'m str, target: &ReportTarget) -> Option<Self> {
        Self::parse(link).filter(|mark| mark.page == target.url())
    }

    /// Reads the link of a report, if another run of this attempt of the CI run made it.
    pub(super) fn of_another(link: &'m str, target: &ReportTarget) -> Option<Self> {
        let ours = ReportMark::of(target, target.url(), "");
        Self::of_this_attempt(link, target).filter(|mark| !mark.is_followed_by(&ours))
    }

    /// Reads the link of a report, if another job made it, or one of another workflow or event, about the same commit.
    pub(super) fn of_elsewhere(link: &'m str, target: &ReportTarget) -> Option<Self> {
        Self::parse(link).filter(|mark| mark.is_elsewhere(target))
    }

    fn is_elsewhere(&self, target: &ReportTarget) -> bool {
        let Some((theirs, ours)) = self.origin.zip(MarkOrigin::of(target)) else { return false };
        // Another commit says nothing about this one.
        theirs.commit == ours.commit
            && theirs.job != ours.job
            && self.instance != target.instance()
            && !self.is_of_this_attempt(target)
    }

    fn is_of_this_attempt(&self, target: &ReportTarget) -> bool {
        let is_uncounted = target.place().is_some() || is_place(self.attempt);
        self.page == target.url() && (is_uncounted || self.attempt == target.attempt())
    }

    /// Tells whether what the later one says takes the place of this: of the same run, which may have been continued, or
    /// of the same place in a CI run that runs again.
    pub(super) fn is_followed_by(&self, later: &ReportMark<'_>) -> bool {
        // The same run may report again after a resume, and a job that is run again replaces what
        // it said.
        self.instance == later.instance || is_place(self.attempt) && self.attempt == later.attempt
    }
}

/// Tells whether the part of a mark for the attempt has a place instead.
fn is_place(attempt: &str) -> bool {
    attempt.starts_with("job")
}

/// Returns a link with the mark of the run of this job.
pub(super) fn marked(page: &str, target: &ReportTarget, own: &str) -> String {
    let ReportMark { instance, attempt, origin, waits, .. } = ReportMark::of(target, page, own);
    // What a run waits for has its place behind the origin, known or not.
    let unknown = waits.map(|_| MarkOrigin { job: "", commit: "" });
    let origin =
        origin.or(unknown).map_or_else(String::new, |MarkOrigin { job, commit }| format!("@{job}@{commit}"));
    let waits = waits.map_or_else(String::new, |waits| format!("@{waits}"));
    format!("{page}{MARK}{instance}:{attempt}{origin}{waits}:{own}")
}

/// Returns the reports of other jobs, workflows and events about this commit that stand, of all reports under one name, the
/// newest first: what each of them said last, if it was a failure. A run that goes on elsewhere still speaks for the job
/// that began it.
pub(super) fn standing_elsewhere<'m>(
    links: &[&'m str],
    target: &ReportTarget,
) -> Vec<(usize, ReportMark<'m>)> {
    let all: Vec<Option<ReportMark<'m>>> = links.iter().map(|link| ReportMark::parse(link)).collect();
    let began = |mark: &ReportMark<'m>| {
        // The list is the newest first, so the oldest comes last.
        let oldest = all.iter().rev().flatten().find(|other| other.instance == mark.instance);
        oldest.and_then(|oldest| oldest.origin).map(|origin| origin.job)
    };
    let mut last: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut seen: Vec<&ReportMark<'m>> = Vec::new();
    let mut standing = Vec::new();
    // One that is not over has taken nothing back.
    let is_over = |mark: &ReportMark<'_>| Rank::of(mark.own) != Rank::Open;
    for (place, mark) in all.iter().enumerate().filter_map(|(place, mark)| Some((place, mark.as_ref()?))) {
        let is_followed = |later: &&ReportMark<'m>| {
            mark.instance == later.instance || (mark.page == later.page && mark.is_followed_by(later))
        };
        if !is_over(mark) || seen.iter().any(is_followed) {
            continue;
        }
        seen.push(mark);
        let job = began(mark).filter(|job| mark.is_elsewhere(target) && Some(*job) != target.origin());
        let Some(job) = job else { continue };
        let attempt = if is_place(mark.attempt) { "" } else { mark.attempt };
        // The first one seen of a job is its last attempt; earlier attempts are history.
        let is_last = *last.entry(job).or_insert((mark.page, attempt)) == (mark.page, attempt);
        if is_last && Rank::of(mark.own) == Rank::Bad {
            standing.push((place, mark.clone()));
        }
    }
    standing
}

/// Says that a report of another job stands.
pub(super) fn stands(what: &str) -> String {
    format!("another job's {what} of this commit: it stands until that job runs again")
}

/// Says that several runs share a name.
pub(super) fn sentence(what: &str) -> String {
    format!("2 runs of this workflow share this {what}: pass `key`")
}

/// Says that a report was made without a look at those of other runs.
pub(super) fn unseen(what: &str, error: &ApiError) -> String {
    format!("whether other runs share the {what} is not known: {error}")
}

/// Adds a sentence about others to a description of at most so many characters.
pub(super) fn described(description: &str, sentence: &str, most: usize) -> String {
    let room = most.saturating_sub(sentence.chars().count() + 3);
    format!("{} ({sentence})", one_line(description, room))
}

/// Returns what was read, where the server has it: not every server has every list, and what it does not have no run
/// could have been reported by.
pub(super) fn if_known<T: Default>(read: Result<T, ApiError>) -> Result<T, ApiError> {
    match read {
        Err(ApiError::NotFound { .. } | ApiError::Unreadable { .. }) => Ok(T::default()),
        read => read,
    }
}

/// Returns what was read of a list that GitHub has: there, an answer that cannot be read is no empty list.
pub(super) fn if_listed<T: Default>(read: Result<T, ApiError>, target: &ReportTarget) -> Result<T, ApiError> {
    let has_list = target.server().flavour() == Flavour::Github;
    match read {
        Err(error @ ApiError::Unreadable { .. }) if has_list => Err(error),
        read => if_known(read),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;
    use serde_json::{Value, json};
    use wiremock::matchers::any;
    use wiremock::{Mock, Request, Respond, ResponseTemplate};

    use super::super::check::CheckChannel;
    use super::super::comment::CommentChannel;
    use super::super::commit_status::StatusChannel;
    use super::super::reporter::Channel;
    use super::*;
    use crate::ci::reported::FinalReport;
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::forge::github::api::Api;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::{Pauses, TestServer};
    use crate::report::digest::Digest;
    use crate::report::testing::Journal;

    /// What a server keeps of reports.
    #[derive(Default)]
    struct StoredReports {
        statuses: Vec<Value>,
        checks: Vec<Value>,
        comments: Vec<Value>,
        /// Whether statuses are listed as Gitea does: the oldest first unless asked, and with another name for the state.
        is_gitea: bool,
        /// What another run reports before this many further requests are answered.
        meanwhile: Option<(usize, &'static str, Value)>,
    }

    /// A server that keeps statuses, check runs and comments as GitHub does.
    #[derive(Clone, Default)]
    struct FakeReportServer(Arc<Mutex<StoredReports>>);

    impl Respond for FakeReportServer {
        fn respond(&self, request: &Request) -> ResponseTemplate {
            let mut kept = self.0.lock().unwrap();
            match kept.meanwhile.take() {
                Some((0, "status", report)) => kept.statuses.insert(0, report),
                Some((0, _, report)) => kept.comments[0]["body"] = report,
                later => kept.meanwhile = later.map(|(count, what, report)| (count - 1, what, report)),
            }
            let mut body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let path = request.url.path().to_owned();
            let id: usize = path.rsplit('/').next().unwrap().parse().unwrap_or(0);
            let answer = |body: &Value| ResponseTemplate::new(200).set_body_json(body);
            match (request.method.as_str(), path.as_str()) {
                ("POST", path) if path.contains("/statuses/") => {
                    kept.statuses.insert(0, body);
                    answer(&json!({}))
                }
                ("GET", path) if path.ends_with("/statuses") => {
                    let page = request.url.query_pairs().find(|(name, _)| name == "page");
                    let page: usize = page.map_or(1, |(_, page)| page.parse().unwrap());
                    let is_sorted =
                        request.url.query_pairs().any(|pair| pair == ("sort".into(), "highestindex".into()));
                    let count = kept.statuses.len();
                    let mut all: Vec<Value> = kept.statuses.clone();
                    for (index, status) in all.iter_mut().enumerate().filter(|_| kept.is_gitea) {
                        status["id"] = json!(count - index);
                        let state = status.as_object_mut().unwrap().remove("state").unwrap();
                        status["status"] = state;
                    }
                    if kept.is_gitea && !is_sorted {
                        all.reverse();
                    }
                    let shown: Vec<&Value> = all.iter().skip((page - 1) * 100).take(100).collect();
                    let more = if kept.statuses.len() > page * 100 { "<x>; rel=\"next\"" } else { "" };
                    answer(&json!(shown)).insert_header("link", more)
                }
                ("POST", path) if path.ends_with("/check-runs") => {
                    body["id"] = json!(kept.checks.len());
                    kept.checks.push(body.clone());
                    answer(&body)
                }
                ("GET", path) if path.ends_with("/check-runs") => answer(&json!({"check_runs": kept.checks})),
                ("PATCH", path) if path.contains("/check-runs/") => {
                    let changed = body.as_object().unwrap().clone();
                    kept.checks[id].as_object_mut().unwrap().extend(changed);
                    answer(&kept.checks[id])
                }
                ("POST", path) if path.ends_with("/comments") => {
                    (body["id"], body["user"]) = (json!(kept.comments.len()), json!({"login": "ann"}));
                    kept.comments.push(body.clone());
                    answer(&body)
                }
                ("PATCH", path) if path.contains("/issues/comments/") => {
                    kept.comments[id]["body"] = body["body"].clone();
                    answer(&kept.comments[id])
                }
                ("GET", path) if path.contains("/issues/comments/") => answer(&kept.comments[id]),
                ("GET", path) if path.ends_with("/comments") => answer(&json!(kept.comments)),
                ("GET", "/user") => answer(&json!({"login": "ann"})),
                _ => ResponseTemplate::new(404),
            }
        }
    }

    impl FakeReportServer {
        fn served(&self) -> TestServer {
            let server = TestServer::start();
            server.mount(Mock::given(any()).respond_with(self.clone()));
            server
        }

        /// Returns what the page of the commit shows.
        fn status(&self) -> (String, String) {
            let kept = self.0.lock().unwrap();
            let text = |name: &str| kept.statuses[0][name].as_str().unwrap().to_owned();
            (text("state"), text("description"))
        }
    }

    /// A run of the workflow run 77, reported at its end.
    fn report(server: &TestServer, run: &str, digest: &Digest, channel: &mut dyn Channel) -> Option<String> {
        let transport = Transport::default().pause(Pauses::default().pause());
        let target = ReportTarget::in_test(Api::new(&server.address(), None, transport)).of_run(run);
        channel.begin(&target).unwrap();
        channel.end(&target, &FinalReport { digest: digest.clone(), annotations: vec![] }).unwrap()
    }

    fn ending(outcome: Outcome) -> Digest {
        let mut journal = Journal::start();
        let (code, verdict) = if outcome == Outcome::Success { (0, "yes") } else { (1, "no") };
        journal.step(("check", 1), "mypy", (code, ""), verdict, "fix");
        journal.end(outcome, TerminatedBy::Terminal, "done", outcome == Outcome::Success);
        journal.digest()
    }

    #[test]
    fn a_green_run_does_not_cover_a_red_one_whoever_is_last() {
        let (green, red) = (ending(Outcome::Success), ending(Outcome::Failure));
        for order in [[("a", &red), ("b", &green)], [("b", &green), ("a", &red)]] {
            let forge = FakeReportServer::default();
            let server = forge.served();
            let said = order.map(|(run, digest)| report(&server, run, digest, &mut StatusChannel));
            let (state, description) = forge.status();
            assert_eq!(state, "failure");
            assert!(description.starts_with("failure: `check` said no"), "{description}");
            if order[0].0 == "a" {
                let shared =
                    "failure: `check` said no (2 runs of this workflow share this status: pass `key`)";
                assert_eq!(description, shared);
                assert!(said[1].as_ref().unwrap().contains("pass `key`"), "{said:?}");
            } else {
                assert_eq!(said, [None, None]);
            }
        }
    }

    #[test]
    fn gitea_lists_statuses_in_its_own_way() {
        let forge = FakeReportServer::default();
        forge.0.lock().unwrap().is_gitea = true;
        let server = forge.served();
        let address = server.address();
        let env = |name: &str| match name {
            "GITEA_ACTIONS" => Some("true".to_owned()),
            "GITHUB_API_URL" => Some(address.clone()),
            _ => None,
        };
        let mut said = Vec::new();
        // Another run is told of its own earlier state last, if the order is not seen through.
        for (run, outcome) in [
            ("a", Outcome::Failure),
            ("b", Outcome::Success),
            ("a", Outcome::Success),
            ("b", Outcome::Success),
        ] {
            let target = ReportTarget::in_test(Api::from_env(&env, None).unwrap()).of_run(run);
            StatusChannel.begin(&target).unwrap();
            StatusChannel
                .end(&target, &FinalReport { digest: ending(outcome), annotations: vec![] })
                .unwrap();
            said.push(forge.status().0);
        }
        assert_eq!(said, ["failure", "failure", "success", "success"]);
    }

    #[test]
    fn a_run_that_is_not_over_leaves_the_name_undecided() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        let transport = Transport::default();
        let open = ReportTarget::in_test(Api::new(&server.address(), None, transport)).of_run("a");
        StatusChannel.begin(&open).unwrap();
        report(&server, "b", &ending(Outcome::Success), &mut StatusChannel);
        let undecided = "another run is not over (2 runs of this workflow share this status: pass `key`)";
        assert_eq!(forge.status(), ("pending".to_owned(), undecided.to_owned()));
        report(&server, "a", &ending(Outcome::Success), &mut StatusChannel);
        assert_eq!(forge.status().0, "success");
    }

    #[test]
    fn a_run_that_goes_on_and_a_later_attempt_start_afresh() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        report(&server, "a", &ending(Outcome::Interrupted), &mut StatusChannel);
        assert_eq!(forge.status().0, "error");
        report(&server, "a", &ending(Outcome::Success), &mut StatusChannel);
        assert_eq!(forge.status().0, "success");

        report(&server, "a", &ending(Outcome::Failure), &mut StatusChannel);
        let transport = Transport::default();
        let target = ReportTarget::in_test(Api::new(&server.address(), None, transport)).of_run("b");
        let report = FinalReport { digest: ending(Outcome::Success), annotations: vec![] };
        StatusChannel.end(&target.clone().of_attempt("2"), &report).unwrap();
        assert_eq!(forge.status().0, "success");
        // Another name is another thing.
        StatusChannel.end(&target.of("fix-types", Some("leg")), &report).unwrap();
        assert_eq!(forge.status().0, "success");
    }

    /// Reports the end of a run of another CI run, which this event has set off.
    fn reported_by(
        server: &TestServer,
        event: &str,
        ci_run: u64,
        run: &str,
        outcome: Outcome,
        channel: &mut dyn Channel,
    ) -> Option<String> {
        let target = ReportTarget::in_test(Api::new(&server.address(), None, Transport::default()));
        let target = target.of_run(run).set_off_by(event, ci_run);
        channel.begin(&target).unwrap();
        channel.end(&target, &FinalReport { digest: ending(outcome), annotations: vec![] }).unwrap()
    }

    #[test]
    fn a_failure_of_another_event_stands_until_the_same_job_says_otherwise() {
        use Outcome::{Failure, Success};
        let forge = FakeReportServer::default();
        let server = forge.served();
        let says = |event: &str, ci_run: u64, run: &str, outcome: Outcome| {
            let said = reported_by(&server, event, ci_run, run, outcome, &mut StatusChannel);
            (forge.status().0, said)
        };
        assert_eq!(says("pull_request", 1, "a", Failure), ("failure".to_owned(), None));
        // The push of the same commit is green, also in a later CI run, and takes nothing back.
        for (ci_run, run) in [(2, "b"), (3, "c")] {
            let (state, said) = says("push", ci_run, run, Success);
            assert_eq!(state, "failure");
            let said = said.unwrap();
            assert!(said.contains("it stands until that job runs again"), "{said}");
            assert!(said.contains("/actions/runs/1#"), "{said}");
        }
        assert!(forge.status().1.starts_with("failure: `check` said no ("), "{:?}", forge.status());
        // The same job in a later CI run does, whatever the others said.
        assert_eq!(says("pull_request", 4, "d", Success).0, "success");
        assert_eq!(says("push", 5, "e", Success).0, "success");
        // Of its own reports, the last one counts.
        assert_eq!(says("push", 6, "f", Failure).0, "failure");
        assert_eq!(says("pull_request", 7, "g", Success).0, "failure");
        assert_eq!(says("push", 8, "h", Success).0, "success");
    }

    #[test]
    fn what_is_not_over_takes_no_failure_back_and_a_run_that_goes_on_elsewhere_speaks_for_its_job() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        let target = || ReportTarget::in_test(Api::new(&server.address(), None, Transport::default()));
        reported_by(&server, "pull_request", 1, "a", Outcome::Failure, &mut StatusChannel);
        // The job runs again, and is not over.
        StatusChannel.begin(&target().of_run("b").set_off_by("pull_request", 2)).unwrap();
        reported_by(&server, "push", 3, "c", Outcome::Success, &mut StatusChannel);
        assert_eq!(forge.status().0, "failure");
        // It goes on in a job that another event set off, and fails there.
        reported_by(&server, "workflow_dispatch", 4, "b", Outcome::Failure, &mut StatusChannel);
        reported_by(&server, "pull_request", 5, "d", Outcome::Success, &mut StatusChannel);
        assert_eq!(forge.status().0, "success", "the job that began it has said otherwise");
    }

    #[test]
    fn an_attempt_of_another_job_takes_no_failure_back() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        let report = FinalReport { digest: ending(Outcome::Success), annotations: vec![] };
        reported_by(&server, "push", 1, "a", Outcome::Failure, &mut StatusChannel);
        let again = ReportTarget::in_test(Api::new(&server.address(), None, Transport::default()));
        let again = again.of_run("b").set_off_by("push", 1).of_attempt("2");
        StatusChannel.end(&again.clone().of_job("other"), &report).unwrap();
        assert_eq!(forge.status().0, "failure");
        StatusChannel.end(&again, &report).unwrap();
        assert_eq!(forge.status().0, "success");
    }

    #[test]
    fn check_runs_and_comments_of_another_event_stand_as_well() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        let check = |event: &str, ci_run: u64, outcome: Outcome| {
            let run = format!("{event}-{ci_run}");
            let said = reported_by(&server, event, ci_run, &run, outcome, &mut CheckChannel::default());
            let newest = forge.0.lock().unwrap().checks.last().unwrap()["conclusion"].clone();
            (newest.as_str().unwrap().to_owned(), said.is_some())
        };
        assert_eq!(check("pull_request", 1, Outcome::Failure), ("failure".to_owned(), false));
        assert_eq!(check("push", 2, Outcome::Success), ("failure".to_owned(), true));
        assert_eq!(check("pull_request", 3, Outcome::Success), ("success".to_owned(), false));
        assert_eq!(check("push", 4, Outcome::Success), ("success".to_owned(), false));

        let comment = |event: &str, ci_run: u64, outcome: Outcome| {
            let run = format!("{event}-{ci_run}");
            reported_by(&server, event, ci_run, &run, outcome, &mut CommentChannel);
            let kept = forge.0.lock().unwrap();
            kept.comments[0]["body"].as_str().unwrap().contains("❌ `fix-types`")
        };
        assert!(comment("pull_request", 1, Outcome::Failure));
        assert!(comment("push", 2, Outcome::Success));
        assert!(!comment("pull_request", 3, Outcome::Success));
        // What another commit said says nothing of this one.
        assert!(comment("pull_request", 4, Outcome::Failure));
        let later = ReportTarget::in_test(Api::new(&server.address(), None, Transport::default()));
        let later = later.of_run("later").set_off_by("push", 5).at_commit(&"3".repeat(40));
        let report = FinalReport { digest: ending(Outcome::Success), annotations: vec![] };
        CommentChannel.end(&later, &report).unwrap();
        let kept = forge.0.lock().unwrap();
        assert!(!kept.comments[0]["body"].as_str().unwrap().contains("❌ `fix-types`"));
    }

    #[test]
    fn a_job_that_runs_again_starts_afresh_where_attempts_are_not_counted() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        let said = |run: &str, place: &str, outcome: Outcome| {
            let target = ReportTarget::in_test(Api::new(&server.address(), None, Transport::default()));
            let target = target.of_run(run).in_place(place);
            StatusChannel.begin(&target).unwrap();
            StatusChannel
                .end(&target, &FinalReport { digest: ending(outcome), annotations: vec![] })
                .unwrap();
            forge.status().0
        };
        assert_eq!(said("a", "job5.1", Outcome::Failure), "failure");
        // Another job, and another step of the same one.
        assert_eq!(said("b", "job6.1", Outcome::Success), "failure");
        assert_eq!(said("c", "job5.2", Outcome::Success), "failure");
        // The first job again: of what it says, the last counts.
        assert_eq!(said("d", "job5.1", Outcome::Success), "success");
        assert_eq!(said("e", "job6.1", Outcome::Success), "success");
    }

    #[test]
    fn two_runs_that_report_at_the_same_time_see_each_other() {
        let red = json!({
            "state": "failure", "context": "LL-loop/fix-types", "description": "failure: no",
            "target_url": "https://github.com/octo/project/actions/runs/77#ll-loop:a:1:failure",
        });
        for requests in 0..4 {
            let forge = FakeReportServer::default();
            let server = forge.served();
            forge.0.lock().unwrap().meanwhile = Some((requests, "status", red.clone()));
            report(&server, "b", &ending(Outcome::Success), &mut StatusChannel);
            assert_eq!(forge.status().0, "failure", "after {requests} requests");
        }
        // The red one is the first to report, and its look at the others comes after the green report.
        let mut green = red;
        green["state"] = json!("success");
        green["target_url"] = json!("https://github.com/octo/project/actions/runs/77#ll-loop:b:1:success");
        for requests in 0..3 {
            let forge = FakeReportServer::default();
            let server = forge.served();
            forge.0.lock().unwrap().meanwhile = Some((requests, "status", green.clone()));
            report(&server, "a", &ending(Outcome::Failure), &mut StatusChannel);
            assert_eq!(forge.status().0, "failure", "after {requests} requests");
        }
    }

    #[test]
    fn of_256_legs_with_one_name_the_red_one_counts() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        std::thread::scope(|scope| {
            for group in 0..8 {
                let (server, first) = (&server, group * 32);
                scope.spawn(move || {
                    for leg in first..first + 32 {
                        let outcome = if leg == 77 { Outcome::Failure } else { Outcome::Success };
                        report(server, &format!("leg-{leg}"), &ending(outcome), &mut StatusChannel);
                    }
                });
            }
        });
        assert_eq!(forge.status().0, "failure");
    }

    #[test]
    fn check_runs_with_one_name_are_as_red_as_the_worst() {
        let (green, red) = (ending(Outcome::Success), ending(Outcome::Failure));
        for order in [[("a", &red), ("b", &green)], [("b", &green), ("a", &red)]] {
            let forge = FakeReportServer::default();
            let server = forge.served();
            for (run, digest) in order {
                report(&server, run, digest, &mut CheckChannel::default());
            }
            let kept = forge.0.lock().unwrap();
            let conclusions: Vec<&Value> = kept.checks.iter().map(|check| &check["conclusion"]).collect();
            assert_eq!(conclusions, ["failure", "failure"]);
            let titles: Vec<&str> =
                kept.checks.iter().filter_map(|check| check["output"]["title"].as_str()).collect();
            assert!(titles.iter().any(|title| title.contains("pass `key`")), "{titles:?}");
            assert!(kept.checks.iter().all(|check| check["output"]["summary"].as_str().unwrap().len() > 100));
        }
    }

    #[test]
    fn a_comment_of_several_runs_is_that_of_the_worst() {
        let (green, red) = (ending(Outcome::Success), ending(Outcome::Failure));
        for order in [[("a", &red), ("b", &green)], [("b", &green), ("a", &red)]] {
            let forge = FakeReportServer::default();
            let server = forge.served();
            for (run, digest) in order.iter().chain(&order[1..]) {
                report(&server, run, digest, &mut CommentChannel);
            }
            let kept = forge.0.lock().unwrap();
            assert_eq!(kept.comments.len(), 1);
            let body = kept.comments[0]["body"].as_str().unwrap();
            assert!(body.contains("❌ `fix-types`"), "{body}");
            assert_eq!(body.matches("pass `key`").count(), usize::from(order[0].0 == "a"), "{body}");
        }
    }

    #[test]
    fn a_comment_that_another_run_writes_at_the_same_time_is_written_again() {
        let forge = FakeReportServer::default();
        let server = forge.served();
        report(&server, "b", &ending(Outcome::Success), &mut CommentChannel);
        let green = forge.0.lock().unwrap().comments[0]["body"].clone();
        // Before it is read again: GET user, GET comments, PATCH, GET.
        forge.0.lock().unwrap().meanwhile = Some((3, "comment", green));
        report(&server, "a", &ending(Outcome::Failure), &mut CommentChannel);
        let kept = forge.0.lock().unwrap();
        assert!(kept.comments[0]["body"].as_str().unwrap().contains("❌ `fix-types`"));
    }

    #[test]
    fn a_comment_that_was_written_over_stands_again() {
        let (green, red) = (ending(Outcome::Success), ending(Outcome::Failure));
        let forge = FakeReportServer::default();
        let server = forge.served();
        // The red run has reported its end before the green one writes, and does not look again.
        report(&server, "a", &red, &mut StatusChannel);
        report(&server, "b", &green, &mut CommentChannel);
        let body = forge.0.lock().unwrap().comments[0]["body"].as_str().unwrap().to_owned();
        assert!(body.contains("❌ `fix-types`") && body.contains("said no"), "{body}");
        assert!(body.ends_with("#ll-loop:a:1:failure)\n"), "{body}");
        // A third one leaves it, and the red one has its own words in it where it comes later.
        report(&server, "c", &green, &mut CommentChannel);
        assert!(forge.0.lock().unwrap().comments[0]["body"].as_str().unwrap().contains("❌ `fix-types`"));
        report(&server, "a", &red, &mut CommentChannel);
        let body = forge.0.lock().unwrap().comments[0]["body"].as_str().unwrap().to_owned();
        assert!(body.contains("### Reproduce") || body.contains("mypy"), "{body}");
    }

    proptest! {
        #[test]
        fn a_mark_is_read_as_it_was_written(instance in "[a-z:-]{1,20}", own in "[a-z_]{1,10}") {
            let target = ReportTarget::in_test(Api::new("http://127.0.0.1:1", None, Transport::default()));
            for target in [target.clone().of_run(&instance), target.of_run(&instance).set_off_by("push", 77)] {
                let link = marked(target.url(), &target, &own);
                let mark = ReportMark::of_this_attempt(&link, &target).unwrap();
                prop_assert_eq!((mark.instance, mark.attempt, mark.own), (instance.as_str(), "1", own.as_str()));
                prop_assert_eq!(mark.origin, MarkOrigin::of(&target));
                prop_assert_eq!(ReportMark::of_another(&link, &target), None);
                prop_assert_eq!(ReportMark::of_elsewhere(&link, &target), None);
            }
        }
    }
}
