//! Reports a run to GitHub from a thread of its own: the run does not wait for the network when it begins, and for a
//! bounded time when it ends. Reports that fail become warnings; the run does not change.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use super::target::ReportTarget;
use crate::base::time::human;
use crate::ci::reported::{FinalReport, Reporter, Unreported};
use crate::forge::github::api::ApiError;
use crate::forge::github::github_server::GithubServer;

/// One way in which a run is reported.
pub(super) trait Channel: Send {
    /// Returns what people call it.
    fn name(&self) -> &'static str;

    /// Returns the permission that the token needs.
    fn permission(&self) -> &'static str;

    /// Reports the start of the run.
    fn begin(&mut self, target: &ReportTarget) -> Result<(), ApiError>;

    /// Reports the end of the run. Returns a warning if another run has the last word about what both share.
    fn end(&mut self, target: &ReportTarget, report: &FinalReport) -> Result<Option<String>, ApiError>;
}

/// Reports one run.
#[derive(Debug)]
pub(super) struct GithubReporter {
    server: GithubServer,
    report: Sender<FinalReport>,
    unreported: Receiver<Unreported>,
}

impl GithubReporter {
    /// Reports the start of the run, in the background.
    pub(super) fn begin(target: ReportTarget, channels: Vec<Box<dyn Channel>>) -> io::Result<Self> {
        Self::start(target, channels, true)
    }

    /// Reports only the end of a run that is over.
    pub(super) fn of_end(target: ReportTarget, channels: Vec<Box<dyn Channel>>) -> io::Result<Self> {
        Self::start(target, channels, false)
    }

    fn start(target: ReportTarget, channels: Vec<Box<dyn Channel>>, begins: bool) -> io::Result<Self> {
        let (report, next) = channel();
        let (sender, unreported) = channel();
        let server = target.server().clone();
        thread::Builder::new().name("reporter".to_owned()).spawn(move || {
            // Dropped without a report, the run ended in a way that the next process tells.
            if let Some(found) = work(&target, channels, begins, &next) {
                // The receiver may have given up waiting.
                let _if_received = sender.send(found);
            }
        })?;
        Ok(Self { server, report, unreported })
    }
}

impl Reporter for GithubReporter {
    fn end(self: Box<Self>, report: FinalReport, limit: Duration) -> Unreported {
        let sent = self.report.send(report).is_ok();
        let late = || Unreported {
            warnings: vec![format!(
                "{} does not know how the run ended: no answer within {}",
                self.server,
                human(limit)
            )],
            ..Unreported::default()
        };
        self.unreported.recv_timeout(limit).ok().filter(|_| sent).unwrap_or_else(late)
    }
}

/// Reports the beginning, and the end when it comes. Returns nothing when the run was dropped before its end.
fn work(
    target: &ReportTarget,
    channels: Vec<Box<dyn Channel>>,
    begins: bool,
    next: &Receiver<FinalReport>,
) -> Option<Unreported> {
    let mut begun: Vec<(Box<dyn Channel>, Result<(), ApiError>)> = Vec::new();
    for mut channel in channels {
        // A run that is over has no beginning to report; a `pending` would stay if the end failed.
        let came = if begins { channel.begin(target) } else { Ok(()) };
        begun.push((channel, came));
    }
    let report = next.recv().ok()?;
    let mut denied = Vec::new();
    let mut unreported = Unreported::default();
    for (mut channel, came) in begun {
        let came = match came {
            // What the token may not at the start, it may not at the end.
            Err(error) if is_denied(&error) => Err(error),
            Ok(()) | Err(_) => channel.end(target, &report),
        };
        match came {
            Ok(shared) => unreported.warnings.extend(shared),
            Err(error) if is_denied(&error) => {
                let permission = target.server().permission(channel.permission());
                denied.push(format!("the {} (`{permission}`)", channel.name()));
            }
            Err(error) => {
                unreported.warnings.push(format!("the {} is not up to date: {error}", channel.name()));
            }
        }
    }
    unreported.notice = (!denied.is_empty()).then(|| {
        format!(
            "not reported, because the token may not: {}. Give the job these `permissions`, or do not ask for it; on a pull request from a fork nothing can give them",
            denied.join(", ")
        )
    });
    Some(unreported)
}

/// Without the permission, GitHub says that it is missing or that there is no such thing.
fn is_denied(error: &ApiError) -> bool {
    // So that nobody learns of a private repository, GitHub answers 404 in the place of 403.
    matches!(error, ApiError::Denied { .. } | ApiError::NotFound { .. })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wiremock::matchers::{method, path, path_regex};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::check::CheckChannel;
    use super::super::comment::CommentChannel;
    use super::super::commit_status::StatusChannel;
    use super::*;
    use crate::forge::github::api::Api;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::{Pauses, TestServer};
    use crate::report::testing::succeeding;

    fn reported(server: &TestServer) -> Unreported {
        let transport = Transport::default().pause(Pauses::default().pause());
        let target = ReportTarget::in_test(Api::new(&server.address(), Some("ghs_x".to_owned()), transport));
        let channels: Vec<Box<dyn Channel>> =
            vec![Box::new(StatusChannel), Box::<CheckChannel>::default(), Box::new(CommentChannel)];
        let reporter = GithubReporter::begin(target, channels).unwrap();
        Box::new(reporter)
            .end(FinalReport { digest: succeeding().digest(), annotations: vec![] }, Duration::from_secs(20))
    }

    fn denied() -> ResponseTemplate {
        ResponseTemplate::new(403).set_body_json(json!({"message": "Resource not accessible by integration"}))
    }

    fn requests(server: &TestServer) -> Vec<String> {
        let short = |(request, _): (String, _)| {
            request.replace("/repos/octo/project", "").replace(&"2".repeat(40), "SHA")
        };
        server.received().into_iter().map(short).collect()
    }

    #[test]
    fn the_beginning_is_told_before_the_end() {
        let server = TestServer::start();
        let fine = ResponseTemplate::new(200);
        server.mount(
            Mock::given(path("/user")).respond_with(fine.clone().set_body_json(json!({"login": "ann"}))),
        );
        server.mount(Mock::given(method("GET")).respond_with(fine.clone().set_body_json(json!([]))));
        server.mount(Mock::given(path_regex(".*")).respond_with(fine.set_body_json(json!({"id": 5}))));
        assert_eq!(reported(&server), Unreported::default());
        assert_eq!(
            requests(&server),
            [
                "POST /statuses/SHA",
                "POST /check-runs",
                "GET /commits/SHA/statuses?per_page=100&page=1",
                "POST /statuses/SHA",
                "GET /commits/SHA/statuses?per_page=100&page=1",
                "GET /commits/SHA/check-runs?check_name=ll-loop%2Ffix-types&filter=all&per_page=100&page=1",
                "PATCH /check-runs/5",
                "GET /commits/SHA/check-runs?check_name=ll-loop%2Ffix-types&filter=all&per_page=100&page=1",
                "GET /user",
                "GET /issues/7/comments?per_page=100&page=1",
                "POST /issues/7/comments",
                "GET /issues/7/comments?per_page=100&page=1",
                "GET /issues/comments/5",
                "GET /commits/SHA/statuses?per_page=100&page=1",
            ]
        );
        let states: Vec<_> =
            server.received().iter().filter_map(|(_, body)| Some(body.get("state")?.clone())).collect();
        assert_eq!(states, ["pending", "success"]);
    }

    #[test]
    fn what_the_token_may_not_do_is_asked_once_and_said_once() {
        let server = TestServer::start();
        server.mount(Mock::given(method("GET")).and(path("/user")).respond_with(denied()));
        server.mount(Mock::given(method("GET")).respond_with(ResponseTemplate::new(404)));
        server.mount(Mock::given(path_regex(".*")).respond_with(denied()));
        let unreported = reported(&server);
        assert_eq!(
            unreported.notice.unwrap(),
            "not reported, because the token may not: the commit status (`statuses: write`), the check run (`checks: write`), the comment (`pull-requests: write`). Give the job these `permissions`, or do not ask for it; on a pull request from a fork nothing can give them"
        );
        assert_eq!(unreported.warnings, Vec::<String>::new());
        // Who writes is a question, although GraphQL wants it posted.
        let is_written = |request: &&String| request.starts_with("POST") && *request != "POST /graphql";
        assert_eq!(requests(&server).iter().filter(is_written).count(), 2);
    }

    #[test]
    fn trouble_at_the_start_does_not_keep_the_end_from_being_told() {
        let server = TestServer::start();
        server.mount(Mock::given(path("/user")).respond_with(ResponseTemplate::new(500)));
        server.mount(Mock::given(method("GET")).respond_with(ResponseTemplate::new(404)));
        server.mount(
            Mock::given(path_regex("check-runs$")).respond_with(ResponseTemplate::new(500)).up_to_n_times(1),
        );
        let made = ResponseTemplate::new(201).set_body_json(json!({"id": 5}));
        server.mount(Mock::given(path_regex(".*")).respond_with(made));
        let unreported = reported(&server);
        assert_eq!(unreported.notice, None);
        assert_eq!(
            unreported.warnings,
            ["the comment is not up to date: no answer to GET /user: status 500"]
        );
        let made = requests(&server).iter().filter(|request| *request == "POST /check-runs").count();
        assert_eq!(made, 2);
    }

    #[test]
    fn the_end_waits_for_the_network_no_longer_than_it_may() {
        let server = TestServer::start();
        let late = ResponseTemplate::new(200).set_delay(Duration::from_mins(1));
        server.mount(Mock::given(path_regex(".*")).respond_with(late));
        let target = ReportTarget::in_test(Api::new(&server.address(), None, Transport::default()));
        let reporter = GithubReporter::begin(target, vec![Box::new(StatusChannel)]).unwrap();
        let report = FinalReport { digest: succeeding().digest(), annotations: vec![] };
        let unreported = Box::new(reporter).end(report, Duration::from_millis(200));
        assert_eq!(unreported.warnings, ["GitHub does not know how the run ended: no answer within 200ms"]);
    }
}
