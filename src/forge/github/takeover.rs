//! Lets one job at most continue a run: the first that creates a git ref for it.
//!
//! Machines share no lock, but a ref can be made only once. It holds a record that names the job that made it. A job
//! that is over without having gone on gives way to the next number of the same ref. GitHub makes refs through its API;
//! other servers take them from `git push`.

use std::cell::OnceCell;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::api::{Api, ApiError};
use super::repository::RepositoryName;
use super::workflow_run;

/// More jobs than this have not died one after the other: somebody is playing.
const MOST: u32 = 50;

/// The permission that a ref needs.
const NEEDS: &str = "contents: write";

/// What is taken.
#[derive(Clone, Copy, Debug)]
pub struct Point<'p> {
    /// The repository.
    pub repository: &'p RepositoryName,
    /// The id of the run.
    pub instance: &'p str,
    /// The number of the last event before it goes on.
    pub seq: u64,
}

/// A job that takes a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakingJob {
    /// The id of its workflow run; empty outside of a job.
    pub run: String,
    /// The attempt.
    pub attempt: u32,
    /// Where people look it up.
    pub url: String,
    /// Tells this job apart from all others.
    #[serde(default)]
    mark: String,
}

impl TakingJob {
    /// Makes the holder that this job is.
    pub fn new(run: String, attempt: u32, url: String) -> Self {
        Self { run, attempt, url, mark: Uuid::new_v4().to_string() }
    }
}

/// Who goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeoverOutcome {
    /// This job.
    Ours,
    /// Another one.
    Theirs(TakingJob),
}

/// Why it is unknown who goes on.
#[derive(Debug, thiserror::Error)]
pub enum TakeoverError {
    /// The API.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// What git says.
    #[error("`git {command}` failed: {reason}")]
    Git {
        /// The command.
        command: &'static str,
        /// What it says.
        reason: String,
    },
    /// The refs of a run make no sense.
    #[error("`{name}` {reason}")]
    Odd {
        /// The last ref that was looked at.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl TakeoverError {
    /// Returns what to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Api(error) => error.help(),
            Self::Git { .. } => {
                Some(format!("it needs git 2.31, and `permissions: {{ {NEEDS} }}` of the job"))
            }
            Self::Odd { .. } => None,
        }
    }
}

/// The result of making a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefCreation {
    /// It is ours.
    Made,
    /// It was there before, with this record.
    There(String),
}

/// A server that keeps refs.
pub trait RefServer {
    /// Makes a ref with a record, if there is none of this name. The name begins with `refs/`.
    fn make(&self, name: &str, record: &str) -> Result<RefCreation, TakeoverError>;
}

/// Takes a run for this job, if no other one has it. Needs `contents: write`.
pub fn take(
    api: &Api,
    refs: &dyn RefServer,
    point: Point<'_>,
    us: &TakingJob,
) -> Result<TakeoverOutcome, TakeoverError> {
    let record = serde_json::to_string(us).expect("texts and numbers are JSON");
    let name = |number| format!("refs/ll-loop/{}/{}.{number}", point.instance, point.seq);
    for number in 1..=MOST {
        let name = name(number);
        let theirs = match refs.make(&name, &record)? {
            RefCreation::Made => return Ok(TakeoverOutcome::Ours),
            RefCreation::There(theirs) => theirs,
        };
        let Ok(holder) = serde_json::from_str::<TakingJob>(&theirs) else {
            return Err(TakeoverError::Odd { name, reason: "does not name a job" });
        };
        // The answer to the first try was lost, and the ref is ours.
        if holder == *us {
            return Ok(TakeoverOutcome::Ours);
        }
        if !is_over(api, point.repository, &holder, us) {
            return Ok(TakeoverOutcome::Theirs(holder));
        }
    }
    Err(TakeoverError::Odd {
        name: name(MOST),
        reason: "is the last of too many: all of these jobs took the run",
    })
}

/// Tells whether a job cannot go on with anything any more: its workflow run is over, or is in a later attempt. What
/// nobody can see is not over, or else two jobs would go on with one run.
fn is_over(api: &Api, repository: &RepositoryName, holder: &TakingJob, us: &TakingJob) -> bool {
    // A person at a terminal has no job whose end could be seen.
    let Ok(run) = holder.run.parse() else { return false };
    // Of one run of a workflow, a later attempt begins only when the earlier one is over.
    if holder.run == us.run {
        return holder.attempt < us.attempt;
    }
    // What the server does not say is not over.
    workflow_run::get(api, repository, run)
        .is_ok_and(|run| run.status.as_deref() == Some("completed") || holder.attempt < run.run_attempt)
}

/// Refs that the API makes. Each points at a tag object, whose message is the record.
pub struct ApiRefs<'a> {
    api: &'a Api,
    point: Point<'a>,
    /// A commit that the repository has.
    commit: &'a str,
    /// The tag object of this job. One that nothing points at does no harm.
    tag: OnceCell<String>,
}

#[derive(Deserialize)]
struct RefObject {
    sha: String,
}

#[derive(Deserialize)]
struct Ref {
    object: RefObject,
}

#[derive(Deserialize)]
struct TagMessage {
    message: String,
}

impl<'a> ApiRefs<'a> {
    /// Makes refs for a run that was about this commit.
    pub fn new(api: &'a Api, point: Point<'a>, commit: &'a str) -> Self {
        Self { api, point, commit, tag: OnceCell::new() }
    }

    fn tag(&self, record: &str) -> Result<&str, ApiError> {
        if let Some(sha) = self.tag.get() {
            return Ok(sha);
        }
        let tag = json!({
            "tag": format!("ll-loop-{}", self.point.instance),
            "message": record,
            "object": self.commit,
            "type": "commit",
        });
        let made: RefObject = self.api.post_again(&self.point.repository.path("/git/tags"), &tag)?;
        Ok(self.tag.get_or_init(|| made.sha))
    }
}

impl RefServer for ApiRefs<'_> {
    fn make(&self, name: &str, record: &str) -> Result<RefCreation, TakeoverError> {
        let (api, repository) = (self.api, self.point.repository);
        let needing = |error: ApiError| error.needing(NEEDS);
        let sha = self.tag(record).map_err(needing)?;
        let wanted = json!({ "ref": name, "sha": sha });
        // Where the answer is lost, the ref itself tells whose it is.
        match api.post_again::<Value>(&repository.path("/git/refs"), &wanted) {
            Ok(_) => return Ok(RefCreation::Made),
            Err(ApiError::Refused { status: 422, .. }) => {}
            Err(error) => return Err(needing(error).into()),
        }
        let short = name.strip_prefix("refs/").unwrap_or(name);
        // The reply to a ref that exists does not say what it points at.
        let there: Ref = api.get(&repository.path(&format!("/git/ref/{short}")), &[])?;
        if there.object.sha == sha {
            return Ok(RefCreation::Made);
        }
        let tag: TagMessage = api.get(&repository.path(&format!("/git/tags/{}", there.object.sha)), &[])?;
        Ok(RefCreation::There(tag.message))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    use wiremock::matchers::any;
    use wiremock::{Mock, Request, Respond, ResponseTemplate};

    use super::super::http::Transport;
    use super::super::testing::{Pauses, TestServer};
    use super::*;

    /// A repository that keeps tags and refs as GitHub does.
    #[derive(Clone, Default)]
    struct FakeRefServer(Arc<Mutex<FakeRefs>>);

    #[derive(Default)]
    struct FakeRefs {
        tags: Vec<Value>,
        refs: HashMap<String, String>,
        completed: Vec<String>,
        /// Whether the runs of workflows cannot be seen.
        hides_runs: bool,
        attempt: u32,
        /// How many answers to new refs get lost, though the refs are made.
        lose: u32,
        denied: bool,
    }

    impl Respond for FakeRefServer {
        fn respond(&self, request: &Request) -> ResponseTemplate {
            let mut content = self.0.lock().unwrap();
            let answer = |status: u16, body: Value| ResponseTemplate::new(status).set_body_json(body);
            let path = request.url.path().strip_prefix("/repos/o/r/").unwrap_or_default().to_owned();
            if content.denied {
                return answer(403, json!({"message": "Resource not accessible by integration"}));
            }
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            match (request.method.as_str(), path.as_str()) {
                ("POST", "git/tags") => {
                    content.tags.push(body);
                    answer(201, json!({"sha": format!("{:040x}", content.tags.len())}))
                }
                ("POST", "git/refs") => {
                    let name = body["ref"].as_str().unwrap().strip_prefix("refs/").unwrap().to_owned();
                    if content.refs.contains_key(&name) {
                        return answer(422, json!({"message": "Reference already exists"}));
                    }
                    content.refs.insert(name, body["sha"].as_str().unwrap().to_owned());
                    if content.lose > 0 {
                        content.lose -= 1;
                        return answer(502, json!({}));
                    }
                    answer(201, json!({"ref": body["ref"]}))
                }
                ("GET", path) => match path.split_once('/').and_then(|_| path.rsplit_once("git/tags/")) {
                    Some((_, sha)) => {
                        let index = usize::from_str_radix(sha, 16).unwrap() - 1;
                        answer(200, json!({"message": content.tags[index]["message"]}))
                    }
                    None => match (path.strip_prefix("git/ref/"), path.strip_prefix("actions/runs/")) {
                        (Some(name), _) => answer(200, json!({"object": {"sha": content.refs[name]}})),
                        (_, Some(_)) if content.hides_runs => answer(404, json!({})),
                        (_, Some(run)) => {
                            let done = content.completed.iter().any(|completed| completed == run);
                            let status = if done { "completed" } else { "in_progress" };
                            answer(200, json!({"status": status, "run_attempt": content.attempt}))
                        }
                        _ => answer(404, json!({})),
                    },
                },
                _ => answer(404, json!({})),
            }
        }
    }

    fn served(repository: &FakeRefServer) -> (TestServer, Api) {
        let server = TestServer::start();
        server.mount(Mock::given(any()).respond_with(repository.clone()));
        let transport = Transport::default().pause(Pauses::default().pause());
        let api = Api::new(&server.address(), Some("t".to_owned()), transport);
        (server, api)
    }

    fn taken(api: &Api, seq: u64, us: &TakingJob) -> Result<TakeoverOutcome, TakeoverError> {
        let repository = &RepositoryName::parse("o/r").unwrap();
        let point = Point { repository, instance: "main-1", seq };
        take(api, &ApiRefs::new(api, point, "c0ffee"), point, us)
    }

    fn holder(run: &str, attempt: u32) -> TakingJob {
        TakingJob::new(run.to_owned(), attempt, format!("https://github.com/o/r/actions/runs/{run}"))
    }

    #[test]
    fn the_first_job_has_the_run_and_the_second_is_told_who_it_is() {
        let (_server, api) = served(&FakeRefServer::default());
        let (first, second) = (holder("1", 1), holder("2", 1));
        assert_eq!(taken(&api, 7, &first).unwrap(), TakeoverOutcome::Ours);
        assert_eq!(taken(&api, 7, &second).unwrap(), TakeoverOutcome::Theirs(first.clone()));
        // Another job of the same workflow run is another one, too.
        assert_eq!(taken(&api, 7, &holder("1", 1)).unwrap(), TakeoverOutcome::Theirs(first));
        // Further on, nobody has it.
        assert_eq!(taken(&api, 8, &second).unwrap(), TakeoverOutcome::Ours);
    }

    #[test]
    fn a_job_that_is_over_gives_way() {
        let repository = FakeRefServer::default();
        let (_server, api) = served(&repository);
        assert_eq!(taken(&api, 7, &holder("1", 1)).unwrap(), TakeoverOutcome::Ours);
        let again = holder("1", 2);
        repository.0.lock().unwrap().attempt = 2;
        assert_eq!(taken(&api, 7, &again).unwrap(), TakeoverOutcome::Ours);
        assert_eq!(taken(&api, 7, &holder("2", 1)).unwrap(), TakeoverOutcome::Theirs(again));
        repository.0.lock().unwrap().completed.push("1".to_owned());
        assert_eq!(taken(&api, 7, &holder("2", 1)).unwrap(), TakeoverOutcome::Ours);
    }

    #[test]
    fn a_job_that_cannot_be_seen_keeps_the_run() {
        let repository = FakeRefServer::default();
        repository.0.lock().unwrap().hides_runs = true;
        let (_server, api) = served(&repository);
        let first = holder("1", 1);
        assert_eq!(taken(&api, 7, &first).unwrap(), TakeoverOutcome::Ours);
        assert_eq!(taken(&api, 7, &holder("2", 1)).unwrap(), TakeoverOutcome::Theirs(first));
    }

    #[test]
    fn a_lost_answer_is_not_taken_for_another_job() {
        let repository = FakeRefServer::default();
        repository.0.lock().unwrap().lose = 1;
        let (_server, api) = served(&repository);
        assert_eq!(taken(&api, 7, &holder("1", 1)).unwrap(), TakeoverOutcome::Ours);
    }

    #[test]
    fn of_many_at_once_one_has_the_run() {
        let repository = FakeRefServer::default();
        let (_server, api) = served(&repository);
        let ours = std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..8)
                .map(|run| {
                    let api = &api;
                    scope.spawn(move || taken(api, 7, &holder(&run.to_string(), 1)).unwrap())
                })
                .collect();
            jobs.into_iter()
                .map(|job| job.join().unwrap())
                .filter(|taken| *taken == TakeoverOutcome::Ours)
                .count()
        });
        assert_eq!(ours, 1);
    }

    #[test]
    fn a_token_that_may_not_is_told_apart() {
        let repository = FakeRefServer::default();
        repository.0.lock().unwrap().denied = true;
        let (_server, api) = served(&repository);
        let error = taken(&api, 7, &holder("1", 1)).unwrap_err();
        assert_eq!(
            error.help().unwrap(),
            "give the job `permissions: { contents: write }`, or use another token"
        );
    }
}
