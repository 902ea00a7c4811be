//! Lets one job at most continue a run: the first that creates a git ref for it.
//!
//! Machines share no lock, but a ref can be made only once. It points at a tag object whose message names the job that
//! made it. A job that is over without having gone on gives way to the next number of the same ref.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::api::{Api, ApiError};
use super::repository::Repository;

/// More jobs than this have not died one after the other: somebody is playing.
const MOST: u32 = 50;

/// What is taken.
#[derive(Clone, Debug)]
pub struct Point<'p> {
    /// The repository.
    pub repository: &'p Repository,
    /// The id of the run.
    pub instance: &'p str,
    /// The number of the last event before it goes on.
    pub seq: u64,
    /// A commit that the repository has.
    pub commit: &'p str,
}

/// A job that takes a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
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

impl Holder {
    /// Makes the holder that this job is.
    pub fn new(run: String, attempt: u32, url: String) -> Self {
        Self { run, attempt, url, mark: Uuid::new_v4().to_string() }
    }
}

/// Who goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// This job.
    Ours,
    /// Another one.
    Theirs(Holder),
}

#[derive(Deserialize)]
struct Object {
    sha: String,
}

#[derive(Deserialize)]
struct Ref {
    object: Object,
}

#[derive(Deserialize)]
struct Tag {
    message: String,
}

#[derive(Deserialize)]
struct Run {
    status: Option<String>,
    #[serde(default)]
    run_attempt: u32,
}

/// Takes a run for this job, if no other one has it. Needs `contents: write`.
pub fn take(api: &Api, point: &Point<'_>, us: &Holder) -> Result<Taken, ApiError> {
    let repository = point.repository;
    let message = serde_json::to_string(us).unwrap_or_default();
    let tag = json!({
        "tag": format!("ll-loop-{}", point.instance),
        "message": message,
        "object": point.commit,
        "type": "commit",
    });
    let needing = |error: ApiError| error.needing("contents: write");
    // A tag object that nothing points at does no harm, so one more may be made.
    let made: Object = api.post_again(&repository.path("/git/tags"), &tag).map_err(needing)?;
    for number in 1..=MOST {
        let name = format!("ll-loop/{}/{}.{number}", point.instance, point.seq);
        let wanted = json!({ "ref": format!("refs/{name}"), "sha": made.sha });
        // Where the answer is lost, the ref itself tells whose it is.
        match api.post_again::<Value>(&repository.path("/git/refs"), &wanted) {
            Ok(_) => return Ok(Taken::Ours),
            Err(ApiError::Refused { status: 422, .. }) => {}
            Err(error) => return Err(needing(error)),
        }
        let there: Ref = api.get(&repository.path(&format!("/git/ref/{name}")), &[])?;
        if there.object.sha == made.sha {
            return Ok(Taken::Ours);
        }
        let tag: Tag = api.get(&repository.path(&format!("/git/tags/{}", there.object.sha)), &[])?;
        let Ok(holder) = serde_json::from_str::<Holder>(&tag.message) else {
            let reason = "the tag does not name a job".to_owned();
            return Err(ApiError::Unreadable { request: format!("GET git/ref/{name}"), reason });
        };
        if holder == *us {
            return Ok(Taken::Ours);
        }
        if !is_over(api, repository, &holder, us)? {
            return Ok(Taken::Theirs(holder));
        }
    }
    let reason = format!("{MOST} jobs took the run before");
    Err(ApiError::Unreadable { request: "POST git/refs".to_owned(), reason })
}

/// Tells whether a job cannot go on with anything any more: its workflow run is over, or is in a later attempt.
fn is_over(api: &Api, repository: &Repository, holder: &Holder, us: &Holder) -> Result<bool, ApiError> {
    if holder.run.is_empty() {
        // A person at a terminal: there is no job whose end could be seen.
        return Ok(false);
    }
    if holder.run == us.run {
        return Ok(holder.attempt < us.attempt);
    }
    let run: Run = api
        .get(&repository.path(&format!("/actions/runs/{}", holder.run)), &[])
        .map_err(|error| error.needing("actions: read"))?;
    Ok(run.status.as_deref() == Some("completed") || holder.attempt < run.run_attempt)
}

#[cfg(test)]
#[cfg(feature = "github")]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    use wiremock::matchers::any;
    use wiremock::{Mock, Request, Respond, ResponseTemplate};

    use super::super::http::Transport;
    use super::super::testing::{Pauses, Server};
    use super::*;

    /// A repository that keeps tags and refs as GitHub does.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Content>>);

    #[derive(Default)]
    struct Content {
        tags: Vec<Value>,
        refs: HashMap<String, String>,
        completed: Vec<String>,
        attempt: u32,
        /// How many answers to new refs get lost, though the refs are made.
        lose: u32,
        denied: bool,
    }

    impl Respond for Kept {
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

    fn served(repository: &Kept) -> (Server, Api) {
        let server = Server::start();
        server.mount(Mock::given(any()).respond_with(repository.clone()));
        let transport = Transport::default().pause(Pauses::default().pause());
        let api = Api::new(&server.address(), Some("t".to_owned()), transport);
        (server, api)
    }

    fn taken(api: &Api, seq: u64, us: &Holder) -> Result<Taken, ApiError> {
        let repository = &Repository::parse("o/r").unwrap();
        take(api, &Point { repository, instance: "main-1", seq, commit: "c0ffee" }, us)
    }

    fn holder(run: &str, attempt: u32) -> Holder {
        Holder::new(run.to_owned(), attempt, format!("https://github.com/o/r/actions/runs/{run}"))
    }

    #[test]
    fn the_first_job_has_the_run_and_the_second_is_told_who_it_is() {
        let (_server, api) = served(&Kept::default());
        let (first, second) = (holder("1", 1), holder("2", 1));
        assert_eq!(taken(&api, 7, &first).unwrap(), Taken::Ours);
        assert_eq!(taken(&api, 7, &second).unwrap(), Taken::Theirs(first.clone()));
        // Another job of the same workflow run is another one, too.
        assert_eq!(taken(&api, 7, &holder("1", 1)).unwrap(), Taken::Theirs(first));
        // Further on, nobody has it.
        assert_eq!(taken(&api, 8, &second).unwrap(), Taken::Ours);
    }

    #[test]
    fn a_job_that_is_over_gives_way() {
        let repository = Kept::default();
        let (_server, api) = served(&repository);
        assert_eq!(taken(&api, 7, &holder("1", 1)).unwrap(), Taken::Ours);
        let again = holder("1", 2);
        repository.0.lock().unwrap().attempt = 2;
        assert_eq!(taken(&api, 7, &again).unwrap(), Taken::Ours);
        assert_eq!(taken(&api, 7, &holder("2", 1)).unwrap(), Taken::Theirs(again));
        repository.0.lock().unwrap().completed.push("1".to_owned());
        assert_eq!(taken(&api, 7, &holder("2", 1)).unwrap(), Taken::Ours);
    }

    #[test]
    fn a_lost_answer_is_not_taken_for_another_job() {
        let repository = Kept::default();
        repository.0.lock().unwrap().lose = 1;
        let (_server, api) = served(&repository);
        assert_eq!(taken(&api, 7, &holder("1", 1)).unwrap(), Taken::Ours);
    }

    #[test]
    fn of_many_at_once_one_has_the_run() {
        let repository = Kept::default();
        let (_server, api) = served(&repository);
        let ours = std::thread::scope(|scope| {
            let jobs: Vec<_> = (0..8)
                .map(|run| {
                    let api = &api;
                    scope.spawn(move || taken(api, 7, &holder(&run.to_string(), 1)).unwrap())
                })
                .collect();
            jobs.into_iter().map(|job| job.join().unwrap()).filter(|taken| *taken == Taken::Ours).count()
        });
        assert_eq!(ours, 1);
    }

    #[test]
    fn a_token_that_may_not_is_told_apart() {
        let repository = Kept::default();
        repository.0.lock().unwrap().denied = true;
        let (_server, api) = served(&repository);
        let error = taken(&api, 7, &holder("1", 1)).unwrap_err();
        assert_eq!(
            error.help().unwrap(),
            "give the job `permissions: { contents: write }`, or use another token"
        );
    }
}
