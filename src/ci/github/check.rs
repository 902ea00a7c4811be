//! The check run: the summary beside the commit, and annotations in the changed files, as many as there are.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cut::cut;
use super::reporter::Channel;
use super::shared::{
    Rank, ReportMark, described, if_listed, marked, sentence, standing_elsewhere, stands, unseen,
};
use super::target::ReportTarget;
use crate::base::text::{head, one_line};
use crate::ci::reported::FinalReport;
use crate::forge::github::api::{ApiError, Page};
use crate::report::Outcome;
use crate::report::annotations::{Annotation, AnnotationLevel};
use crate::report::digest::Digest;
use crate::report::formats::summary;

/// The most bytes of a summary.
const MAX_SUMMARY: usize = 65_535;

/// The most characters of a title.
const MAX_TITLE: usize = 255;

/// The most bytes of a message.
const MAX_MESSAGE: usize = 64_000;

/// The most annotations of a request; those of further requests come in addition.
const BATCH: usize = 50;

/// The most check runs of one name that are read. GitHub keeps 1,000 of a commit's newest.
const MAX_READ: usize = 1000;

const WHAT: &str = "check run";

const CUT: &str = "> The summary is longer than GitHub keeps; the rest is in the report of the run.";

/// Reports a run as a check run.
#[derive(Default)]
pub(super) struct CheckChannel {
    /// Its number, when it was made.
    id: Option<u64>,
}

#[derive(Deserialize)]
struct CreatedCheck {
    id: u64,
}

impl Channel for CheckChannel {
    fn name(&self) -> &'static str {
        "check run"
    }

    fn permission(&self) -> &'static str {
        "checks: write"
    }

    fn begin(&mut self, target: &ReportTarget) -> Result<(), ApiError> {
        let made: CreatedCheck =
            target.api().post(&target.path("/check-runs"), &created(target, "in_progress"))?;
        self.id = Some(made.id);
        Ok(())
    }

    fn end(&mut self, target: &ReportTarget, report: &FinalReport) -> Result<Option<String>, ApiError> {
        // GitHub refuses a request with more annotations than a batch.
        let annotations: Vec<Value> = report.annotations.iter().filter_map(annotated).collect();
        let mut batches = annotations.chunks(BATCH);
        let output = CheckOutput::of(&report.digest, target.sha());
        let own = conclusion(&report.digest, target.sha());
        // Nothing is worse, so the others need not be asked before.
        let is_worst = Rank::of(own) == Rank::Bad;
        let before =
            if is_worst { Ok(NeighbourCheck::nobody(own)) } else { NeighbourCheck::read(target, own) };
        let before = match before {
            // A name that only mistakes share is the run's own.
            Err(_) if target.has_own_name() => NeighbourCheck::nobody(own),
            before => before?,
        };
        let ended = json!({
            "status": "completed",
            "conclusion": before.conclusion,
            "details_url": marked(target.url(), target, own),
            "output": before.worded(&output).with(batches.next().unwrap_or(&[])),
        });
        let id = if let Some(id) = self.id {
            target.api().patch::<Value>(&target.path(&format!("/check-runs/{id}")), &ended)?;
            id
        } else {
            // It could not be made at the start; now it is made as it ended.
            let mut body = created(target, "completed");
            body.extend(
                ended.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())),
            );
            target.api().post::<CreatedCheck>(&target.path("/check-runs"), &body)?.id
        };
        // The second look at others comes even if an annotation is refused: the conclusion counts for more.
        let annotated = batches.try_for_each(|batch| {
            let more = json!({"output": before.worded(&output).with(batch)});
            target.api().patch::<Value>(&target.path(&format!("/check-runs/{id}")), &more).map(drop)
        });
        let beside = match NeighbourCheck::read(target, own) {
            Ok(beside) => beside,
            Err(error) => return annotated.map(|()| Some(unseen(WHAT, &error))),
        };
        if beside.conclusion != before.conclusion {
            beside.correct(id, beside.worded(&output), target)?;
        }
        // Of several check runs with one name, people see the newest.
        // One of this CI run sees that by itself, as the later of two looks after it has written.
        for better in beside.better.iter().filter(|better| !better.is_elsewhere || better.id > id) {
            let output = CheckOutput { title: beside.sentence(), summary: better.summary.clone() };
            beside.correct(better.id, output, target)?;
        }
        annotated?;
        let (is_another, name) = (beside.conclusion != own, target.context());
        Ok(is_another.then(|| {
            if beside.is_elsewhere {
                format!("the check run `{name}` is {}", beside.sentence())
            } else {
                format!("the check run `{name}` is that of another run: {}", beside.sentence())
            }
        }))
    }
}

/// A check run beside those of the same name that other runs made.
struct NeighbourCheck {
    /// The worst conclusion, this run's own included.
    conclusion: String,
    /// Whether another job has it, or one of another workflow or event.
    is_elsewhere: bool,
    /// What the other one says that has it.
    title: Option<String>,
    /// Those that are over and look better.
    better: Vec<BetterCheck>,
}

/// A check run that is over and looks better than it should.
struct BetterCheck {
    id: u64,
    summary: String,
    /// Whether it is of another job, or of another workflow or event.
    is_elsewhere: bool,
}

impl NeighbourCheck {
    fn nobody(own: &str) -> Self {
        Self { conclusion: own.to_owned(), is_elsewhere: false, title: None, better: Vec::new() }
    }

    fn read(target: &ReportTarget, own: &str) -> Result<Self, ApiError> {
        let path = target.path(&format!("/commits/{}/check-runs", target.sha()));
        let query = [("check_name", target.context()), ("filter", "all")];
        let mut beside = Self::nobody(own);
        let mut checks: Vec<ListedCheck> = Vec::new();
        for listed in target.api().list::<CheckList>(&path, &query).take(MAX_READ) {
            // A server without check runs has none that could be better.
            let Some(check) = if_listed(listed.map(Some), target)? else { break };
            // One that is not over corrects this one, where it has to.
            checks.extend(Some(check).filter(|check| check.conclusion.is_some()));
        }
        checks.sort_by_key(|check| std::cmp::Reverse(check.id));
        let links: Vec<&str> = checks.iter().map(ListedCheck::link).collect();
        let here = links.iter().enumerate();
        let here = here.filter_map(|(place, link)| Some((place, ReportMark::of_another(link, target)?)));
        let here: Vec<_> = here.map(|(place, mark)| (place, mark, false)).collect();
        let elsewhere = standing_elsewhere(&links, target).into_iter();
        for (place, mark, is_elsewhere) in
            here.iter().cloned().chain(elsewhere.map(|(place, mark)| (place, mark, true)))
        {
            if Rank::of(mark.own) > Rank::of(&beside.conclusion) {
                beside.title = checks[place].output.as_ref().and_then(|output| output.title.clone());
                beside.is_elsewhere = is_elsewhere;
                mark.own.clone_into(&mut beside.conclusion);
            }
        }
        let worst = Rank::of(&beside.conclusion);
        let is_better = |check: &&ListedCheck| Rank::of(check.conclusion.as_deref().unwrap_or("")) < worst;
        let others = checks.iter().filter(is_better).filter_map(|check| {
            let is_elsewhere = ReportMark::of_elsewhere(check.link(), target).is_some();
            let is_other = is_elsewhere || ReportMark::of_another(check.link(), target).is_some();
            let summary = check.output.as_ref().and_then(|output| output.summary.clone()).unwrap_or_default();
            is_other.then_some(BetterCheck { id: check.id, summary, is_elsewhere })
        });
        beside.better = others.collect();
        Ok(beside)
    }

    /// Says why the check run is not this run's own.
    fn sentence(&self) -> String {
        if self.is_elsewhere { stands(WHAT) } else { sentence(WHAT) }
    }

    /// Returns the output with the words of the run that came out worst.
    fn worded(&self, output: &CheckOutput) -> CheckOutput {
        let title = match &self.title {
            Some(title) => described(title, &self.sentence(), MAX_TITLE),
            None => output.title.clone(),
        };
        CheckOutput { title, summary: output.summary.clone() }
    }

    /// Gives a check run that is over the worst conclusion.
    fn correct(
        &self,
        id: u64,
        CheckOutput { title, summary }: CheckOutput,
        target: &ReportTarget,
    ) -> Result<(), ApiError> {
        let body = json!({
            "conclusion": self.conclusion,
            "output": {"title": title, "summary": summary},
        });
        target.api().patch::<Value>(&target.path(&format!("/check-runs/{id}")), &body).map(drop)
    }
}

/// The check runs of a commit with one name.
#[derive(Deserialize)]
struct CheckList {
    #[serde(default)]
    check_runs: Vec<ListedCheck>,
}

impl Page for CheckList {
    type Item = ListedCheck;
    fn items(self) -> Vec<ListedCheck> {
        self.check_runs
    }
}

#[derive(Deserialize)]
struct ListedCheck {
    id: u64,
    conclusion: Option<String>,
    details_url: Option<String>,
    output: Option<ListedOutput>,
}

impl ListedCheck {
    fn link(&self) -> &str {
        self.details_url.as_deref().unwrap_or("")
    }
}

#[derive(Default, Deserialize)]
struct ListedOutput {
    title: Option<String>,
    summary: Option<String>,
}

fn created(target: &ReportTarget, status: &str) -> Map<String, Value> {
    let fields = [
        ("name", target.context()),
        ("head_sha", target.sha()),
        ("status", status),
        ("details_url", &marked(target.url(), target, status)),
        ("external_id", target.instance()),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// What a check run shows.
struct CheckOutput {
    title: String,
    summary: String,
}

impl CheckOutput {
    fn of(digest: &Digest, sha: &str) -> Self {
        let title = match digest.caveat_at(sha) {
            Some(caveat) => format!("success {}", caveat.words()),
            None => digest.sentence(),
        };
        let summary = summary::render(digest);
        let summary = cut(&summary, MAX_SUMMARY, CUT).map_or_else(|| CUT.to_owned(), Cow::into_owned);
        Self { title: one_line(&title, MAX_TITLE), summary }
    }

    fn with(&self, annotations: &[Value]) -> Value {
        json!({"title": self.title, "summary": self.summary, "annotations": annotations})
    }
}

/// Returns how the check came out.
fn conclusion(digest: &Digest, sha: &str) -> &'static str {
    if digest.caveat_at(sha).is_some() {
        return "neutral";
    }
    match digest.end().map(|end| (end.outcome, end.verified)) {
        Some((Outcome::Success, true)) => "success",
        None if digest.not_run().is_some() => "success",
        Some((Outcome::Success, false)) => "neutral",
        Some((Outcome::Blocked | Outcome::Handoff, _)) => "action_required",
        Some((Outcome::Timeout, _)) => "timed_out",
        Some((Outcome::Interrupted | Outcome::LeaseLost | Outcome::Cancelled, _)) => "cancelled",
        Some((
            Outcome::Failure
            | Outcome::Exhausted
            | Outcome::Stopped
            | Outcome::Error
            | Outcome::OverBudget
            | Outcome::Unavailable,
            _,
        ))
        | None => "failure",
    }
}

/// Returns an annotation as GitHub takes it; nothing for one without a place, which it does not.
fn annotated(annotation: &Annotation) -> Option<Value> {
    let location = annotation.location.as_ref()?;
    let line = location.line.unwrap_or(1);
    let mut value = json!({
        "path": location.file,
        "start_line": line,
        "end_line": line,
        "annotation_level": match annotation.level {
            AnnotationLevel::Error => "failure",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Notice => "notice",
        },
        "title": one_line(&annotation.title, MAX_TITLE),
        "message": head(&annotation.message, MAX_MESSAGE),
    });
    if let (Some(column), Some(fields)) = (location.column, value.as_object_mut()) {
        // An annotation with columns has to begin and end on one line.
        fields.insert("start_column".to_owned(), json!(column));
        fields.insert("end_column".to_owned(), json!(column));
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    use super::*;
    use crate::engine::outcome::TerminatedBy;
    use crate::forge::github::api::Api;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::{Pauses, TestServer};
    use crate::report::annotations::Location;
    use crate::report::testing::{Journal, failing, succeeding};

    const RUNS: &str = "/repos/octo/project/check-runs";

    fn target(server: &TestServer) -> ReportTarget {
        let transport = Transport::default().pause(Pauses::none().pause());
        ReportTarget::in_test(Api::new(&server.address(), Some("ghs_x".to_owned()), transport))
    }

    /// A server that makes the check run 5, and takes changes to it.
    fn github() -> TestServer {
        let server = TestServer::start();
        let made = ResponseTemplate::new(201).set_body_json(json!({"id": 5, "status": "in_progress"}));
        server.mount(Mock::given(method("POST")).and(path(RUNS)).respond_with(made));
        let one = ResponseTemplate::new(200).set_body_json(json!({"id": 5}));
        server.mount(Mock::given(method("PATCH")).and(path(format!("{RUNS}/5"))).respond_with(one));
        server
    }

    fn annotation(line: u32, column: Option<u32>) -> Annotation {
        Annotation {
            level: AnnotationLevel::Error,
            title: "check".to_owned(),
            message: "error: bad".to_owned(),
            location: Some(Location { file: "src/a.py".to_owned(), line: Some(line), column }),
        }
    }

    #[test]
    fn a_check_run_is_made_and_completed() {
        let server = github();
        let mut run = CheckChannel::default();
        let target = target(&server);
        run.begin(&target).unwrap();
        let nowhere = Annotation { location: None, ..annotation(1, None) };
        let warning = Annotation { level: AnnotationLevel::Warning, ..annotation(9, None) };
        let annotations = vec![annotation(3, Some(7)), nowhere, warning];
        run.end(&target, &FinalReport { digest: failing().digest(), annotations }).unwrap();
        let received = server.changes();
        assert_eq!(
            received[0],
            (
                format!("POST {RUNS}"),
                json!({
                    "name": "ll-loop/fix-types",
                    "head_sha": "2222222222222222222222222222222222222222",
                    "status": "in_progress",
                    "details_url": "https://github.com/octo/project/actions/runs/77#ll-loop:fix-types-20251120T234847-1f2e:1:in_progress",
                    "external_id": "fix-types-20251120T234847-1f2e",
                })
            )
        );
        let of = |line: u32, level: &str| {
            json!({
                "path": "src/a.py", "start_line": line, "end_line": line, "annotation_level": level,
                "title": "check", "message": "error: bad",
            })
        };
        let mut first = of(3, "failure");
        (first["start_column"], first["end_column"]) = (json!(7), json!(7));
        assert_eq!(
            received[1],
            (
                format!("PATCH {RUNS}/5"),
                json!({
                    "status": "completed",
                    "conclusion": "failure",
                    "details_url": "https://github.com/octo/project/actions/runs/77#ll-loop:fix-types-20251120T234847-1f2e:1:failure",
                    "output": {
                        "title": "failure: `check` said no in 3 of 3 iterations",
                        "summary": summary::render(&failing().digest()),
                        "annotations": [first, of(9, "warning")],
                    },
                })
            )
        );
        assert_eq!(received.len(), 2);
    }

    #[track_caller]
    fn batches(count: u32, expected: &[usize]) {
        let server = github();
        let mut run = CheckChannel::default();
        run.begin(&target(&server)).unwrap();
        let annotations = (1..=count).map(|line| annotation(line, None)).collect();
        run.end(&target(&server), &FinalReport { digest: failing().digest(), annotations }).unwrap();
        let changes = &server.changes()[1..];
        let lines = |change: &(String, Value)| change.1["output"]["annotations"].as_array().unwrap().len();
        assert_eq!(changes.iter().map(lines).collect::<Vec<_>>(), expected);
        assert!(changes.iter().all(|(_, body)| body["output"]["title"].is_string()));
        let completed = |change: &&(String, Value)| change.1["status"] == "completed";
        assert_eq!(changes.iter().filter(completed).count(), 1, "it is completed once");
        let all = changes.iter().flat_map(|(_, body)| body["output"]["annotations"].as_array().unwrap());
        assert!(all.map(|one| one["start_line"].as_u64().unwrap()).eq(1..=u64::from(count)));
    }

    #[test]
    fn annotations_come_in_batches() {
        batches(0, &[0]);
        batches(50, &[50]);
        batches(51, &[50, 1]);
        batches(120, &[50, 50, 20]);
    }

    /// Another run that shares the name fails meanwhile, and GitHub refuses an annotation of a further request.
    #[test]
    fn a_refused_annotation_leaves_no_check_better_than_the_others() {
        let server = TestServer::start();
        let one = ResponseTemplate::new(200).set_body_json(json!({"id": 5}));
        server.mount(Mock::given(method("POST")).and(path(RUNS)).respond_with(one.clone()));
        let patch = || Mock::given(method("PATCH")).and(path(format!("{RUNS}/5")));
        server.mount(patch().respond_with(one.clone()).up_to_n_times(1));
        server.mount(patch().respond_with(ResponseTemplate::new(422)).up_to_n_times(1));
        server.mount(patch().respond_with(one));
        let list = || {
            let at = format!("/repos/octo/project/commits/{}/check-runs", "2".repeat(40));
            Mock::given(method("GET")).and(path(at))
        };
        let listed = |checks: Value| ResponseTemplate::new(200).set_body_json(json!({"check_runs": checks}));
        server.mount(list().respond_with(listed(json!([]))).up_to_n_times(1));
        let link = "https://github.com/octo/project/actions/runs/77#ll-loop:fix-types-20251120T234847-0a0b:1:failure";
        let other =
            json!({"id": 4, "conclusion": "failure", "details_url": link, "output": {"title": "failure: x"}});
        server.mount(list().respond_with(listed(json!([other]))));
        let mut run = CheckChannel::default();
        run.begin(&target(&server)).unwrap();
        let annotations = (1..=51).map(|line| annotation(line, None)).collect();
        let ended = run.end(&target(&server), &FinalReport { digest: succeeding().digest(), annotations });
        assert!(matches!(ended, Err(ApiError::Refused { status: 422, .. })), "{ended:?}");
        let conclusions: Vec<Value> =
            server.changes().iter().filter_map(|(_, body)| body.get("conclusion").cloned()).collect();
        assert_eq!(conclusions, ["success", "failure"]);
    }

    #[test]
    fn a_run_with_a_key_gets_its_conclusion_where_others_cannot_be_read() {
        let server = github();
        let refused = ResponseTemplate::new(403).set_body_json(json!({"message": "no"}));
        server.mount(Mock::given(method("GET")).respond_with(refused));
        let ended = |target: &ReportTarget| {
            let mut run = CheckChannel::default();
            run.begin(target).unwrap();
            run.end(target, &FinalReport { digest: succeeding().digest(), annotations: Vec::new() })
        };
        assert!(matches!(ended(&target(&server)), Err(ApiError::Denied { .. })));
        assert_eq!(server.changes().len(), 1, "it may be shared with one that failed");
        let said = ended(&target(&server).of("fix-types", Some("a"))).unwrap().unwrap();
        assert!(said.starts_with("whether other runs share the check run is not known"), "{said}");
        assert_eq!(server.changes().pop().unwrap().1["conclusion"], "success");
    }

    #[test]
    fn what_could_not_be_made_at_the_start_is_made_at_the_end() {
        let server = github();
        let annotations = (1..=51).map(|line| annotation(line, None)).collect();
        CheckChannel::default()
            .end(&target(&server), &FinalReport { digest: succeeding().digest(), annotations })
            .unwrap();
        let received = server.changes();
        assert_eq!(received[0].0, format!("POST {RUNS}"));
        assert_eq!(received[0].1["status"], "completed");
        assert_eq!(received[0].1["conclusion"], "success");
        assert_eq!(received[0].1["head_sha"], "2".repeat(40));
        assert_eq!(received[1].0, format!("PATCH {RUNS}/5"));
        assert_eq!(received.len(), 2);
    }

    #[track_caller]
    fn concluded(outcome: Outcome, verified: bool, expected: &str) {
        let is_interrupted = outcome == Outcome::Interrupted;
        let by = if is_interrupted { TerminatedBy::Interrupted } else { TerminatedBy::Terminal };
        let digest = Journal::start().end(outcome, by, "done", verified).digest();
        assert_eq!(conclusion(&digest, "x"), expected, "{outcome:?}");
    }

    #[test]
    fn every_outcome_has_a_conclusion() {
        concluded(Outcome::Success, true, "success");
        concluded(Outcome::Success, false, "neutral");
        concluded(Outcome::Failure, false, "failure");
        concluded(Outcome::Exhausted, false, "failure");
        concluded(Outcome::Stopped, false, "failure");
        concluded(Outcome::Error, false, "failure");
        concluded(Outcome::OverBudget, false, "failure");
        concluded(Outcome::Unavailable, false, "failure");
        concluded(Outcome::Blocked, false, "action_required");
        concluded(Outcome::Handoff, true, "action_required");
        concluded(Outcome::Timeout, true, "timed_out");
        concluded(Outcome::Interrupted, true, "cancelled");
        assert_eq!(conclusion(&Journal::start().digest(), "x"), "failure");
        assert_eq!(conclusion(&crate::report::testing::not_run(), "x"), "success");
    }

    #[test]
    fn a_long_summary_is_cut() {
        let mut journal = Journal::start();
        let name = "é".repeat(50);
        for iteration in 1..=200 {
            let action = "🦀".repeat(60);
            journal.step((&name, iteration), &action, (1, ""), "no", &format!("{name}{iteration}"));
        }
        let digest = journal.digest();
        assert!(summary::render(&digest).len() > MAX_SUMMARY);
        let output = CheckOutput::of(&digest, "x");
        assert!(output.summary.len() <= MAX_SUMMARY && output.summary.ends_with(CUT));
        assert!(output.summary.len() > MAX_SUMMARY / 2);
    }
}
