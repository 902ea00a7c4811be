//! What all requests to GitHub's API have in common: authentication, retries and errors. What GraphQL has of
//! its own is in [`graphql`](super::graphql).
//!
//! Errors tell apart what callers act on: a token without a permission, a thing that is not there, a limit, a service
//! that is down. A redirect is never followed, because the token would go with it.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::DateTime;
use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::{Client, LostAnswer};
use super::github_server::GithubServer;
use super::http::{Again, Failed, RetryPolicy, Token, Transport, is_trouble, read, send, tries};
use super::workflow_job::WorkflowJob;
use crate::base::lookup::Lookup;
use crate::base::text::{one_line, percent_encoded};
use crate::base::time::human;

const GITHUB: &str = "https://api.github.com";
const VERSION: &str = "2022-11-28";

const PATIENCE: RetryPolicy = RetryPolicy { tries: 4, first: Duration::from_secs(1), growth: 2.0 };

/// A limit that ends later than this is an error; until then it is waited for.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How long a request may take altogether.
const WHOLE: Duration = Duration::from_mins(2);

/// The most bytes of an answer.
const MAX_BODY: u64 = 16 << 20;

/// The most pages of a list, so that a server that always has another one ends too.
const MAX_PAGES: u32 = 100;

/// What to do where a service is not there.
pub(crate) const UNAVAILABLE: &str =
    "try again later; for github.com, https://www.githubstatus.com tells whether it has trouble";

/// Headers of every request.
type Headers = &'static [(&'static str, &'static str)];

/// GitHub wants these headers, and servers that imitate it ignore them.
const HEADERS: Headers = &[("Accept", "application/vnd.github+json"), ("X-GitHub-Api-Version", VERSION)];

/// A client of the API.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    server: GithubServer,
    headers: Headers,
    token: Option<Token>,
    client: Client,
    transport: Transport,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 401: the token is missing or not valid.
    #[error("{server} does not accept the token for {request}: {message}")]
    Unauthorized {
        /// The server that asked for it.
        server: GithubServer,
        /// Method and path.
        request: String,
        /// The reason that the server gives.
        message: String,
    },
    /// 403: the token may not do this.
    #[error("the token may not do {request}: {message}")]
    Denied {
        /// The server that refuses.
        server: GithubServer,
        /// Method and path.
        request: String,
        /// The reason that the server gives.
        message: String,
        /// The permission that is needed, where it is known: `actions: read`.
        needs: Option<String>,
    },
    /// 404: not there, or not for this token to see.
    #[error("{server} finds nothing for {request}: {message}")]
    NotFound {
        /// The server that was asked.
        server: GithubServer,
        /// Method and path.
        request: String,
        /// The reason that the server gives.
        message: String,
    },
    /// 410: it was there.
    #[error("what {request} asks for is gone: {message}")]
    Gone {
        /// Method and path.
        request: String,
        /// The reason that the server gives.
        message: String,
    },
    /// 403 or 429: too many requests, and the limit does not end soon.
    #[error("{server} limits the rate of requests: the next one is possible in {}", human(*.wait))]
    Limited {
        /// The server that sets the limit.
        server: GithubServer,
        /// How long the limit lasts.
        wait: Duration,
    },
    /// Any other unsuccessful status.
    #[error("{server} answers {request} with {status}: {message}")]
    Refused {
        /// The server that answers.
        server: GithubServer,
        /// Method and path.
        request: String,
        /// The status.
        status: u16,
        /// The reason that the server gives.
        message: String,
    },
    /// GraphQL refuses what it was asked, with the status of a success.
    #[error("{server} refuses {request}: {message}")]
    Rejected {
        /// The server that refuses.
        server: GithubServer,
        /// The query or the mutation.
        request: String,
        /// Its word for the reason, where it has one: `STALE_DATA`.
        kind: Option<Box<str>>,
        /// The reason that the server gives.
        message: String,
    },
    /// The service has trouble, or cannot be reached, also after several tries.
    #[error("no answer to {request}: {reason}")]
    Unavailable {
        /// Method and path.
        request: String,
        /// The result of the last try.
        reason: String,
    },
    /// The answer is not what the API documents.
    #[error("the answer to {request} cannot be read: {reason}")]
    Unreadable {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A list goes on behind the last page that is read.
    #[error("{server} has more for {request} than the {pages} pages that are read")]
    Endless {
        /// The server that was asked.
        server: GithubServer,
        /// Method and path.
        request: String,
        /// How many pages were read.
        pages: u32,
    },
    /// The environment says something about the network that cannot be.
    #[error("{0}")]
    Setup(String),
}

impl ApiError {
    /// Names the permission that is needed on GitHub, where the server did not.
    #[must_use]
    pub fn needing(mut self, permission: &str) -> Self {
        if let Self::Denied { server, needs: needs @ None, .. } = &mut self {
            *needs = Some(server.permission(permission).to_owned());
        }
        self
    }

    /// Returns what to do about it.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Unauthorized { .. } => {
                "set `GITHUB_TOKEN` or `GH_TOKEN` to a token that is valid for this repository"
            }
            Self::Denied { needs: Some(needs), .. } => {
                return Some(format!("give the job `permissions: {{ {needs} }}`, or use another token"));
            }
            Self::Denied { needs: None, .. } => "give the job the permission, or use another token",
            Self::NotFound { .. } => {
                "look whether the name is right, and whether the token may see the repository"
            }
            Self::Limited { .. } => "wait, or use the token of another app or person",
            Self::Refused { status: 300..=399, .. } => {
                "use the new name of the repository; redirects are not followed"
            }
            Self::Unavailable { .. } => UNAVAILABLE,
            Self::Gone { .. }
            | Self::Refused { .. }
            | Self::Rejected { .. }
            | Self::Unreadable { .. }
            | Self::Endless { .. }
            | Self::Setup(_) => return None,
        };
        Some(help.to_owned())
    }

    /// Tells whether what was asked for is not there, or not for this token.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Tells whether it is the service that is not there now, and nothing wrong with what was asked.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Limited { .. })
    }
}

/// One page of a list: the list itself, or an object that holds it.
pub trait Page: DeserializeOwned {
    /// What the list is of.
    type Item;
    /// Returns what is on the page.
    fn items(self) -> Vec<Self::Item>;
}

impl<T: DeserializeOwned> Page for Vec<T> {
    type Item = T;
    fn items(self) -> Self {
        self
    }
}

/// Whether a request may be made again after it may have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetrySafety {
    /// It does the same however often it is made.
    Harmless,
    /// A second one could make a second thing.
    Doubles,
}

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) struct ApiCall<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<&'a [u8]>,
    pub(crate) repeat: RetrySafety,
    /// The status of the answer that is wanted, but for 200 to 299.
    pub(crate) wanted: Option<u16>,
}

impl<'a> ApiCall<'a> {
    pub(crate) fn get(path: &'a str, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: "GET", path, query, body: None, repeat: RetrySafety::Harmless, wanted: None }
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Reads the value of the answer; an empty one is `null`.
    fn value<T: DeserializeOwned>(&self, answer: &ApiAnswer) -> Result<T, ApiError> {
        let body = answer.body.trim_ascii();
        serde_json::from_slice(if body.is_empty() { b"null" } else { body })
            .map_err(|error| ApiError::Unreadable { request: self.name(), reason: error.to_string() })
    }
}

/// What came back.
pub(crate) struct ApiAnswer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Api {
    /// Makes a client of the API at this address. The token goes with every request, and nowhere else.
    pub fn new(base: &str, token: Option<String>, transport: Transport) -> Self {
        // A request that trickles for ever would pass the limit for silence.
        let client = transport.client(Some(WHOLE));
        let (base, token) = (base.trim_end_matches('/').to_owned(), token.map(Token::new));
        Self { base, server: GithubServer::default(), headers: HEADERS, token, client, transport }
    }

    /// Makes a client of the API that the environment names, GitHub's own by default.
    pub fn from_env(env: Lookup<'_>, token: Option<String>) -> Result<Self, ApiError> {
        let base = WorkflowJob::read(env).api_url.unwrap_or_else(|| GITHUB.to_owned());
        let api = Self::new(
            &base,
            token,
            Transport::from_env(env).map_err(|why| ApiError::Setup(why.to_string()))?,
        );
        Ok(api.of(GithubServer::of(env)))
    }

    /// Returns the same for a server that may differ from GitHub.
    #[must_use]
    pub fn of(self, server: GithubServer) -> Self {
        Self { server, ..self }
    }

    /// Returns the same with other headers than those that GitHub wants.
    #[must_use]
    pub fn with_headers(self, headers: Headers) -> Self {
        Self { headers, ..self }
    }

    /// Returns the server that answers.
    pub fn server(&self) -> &GithubServer {
        &self.server
    }

    /// Returns the address below which the paths are.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the header by which git gets in with the token.
    pub(crate) fn basic(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Authorization: {}", token.basic("x-access-token")))
    }

    /// Returns how the server is reached: a client without the token reaches others in the same way.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Gets a value.
    pub fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, ApiError> {
        let call = ApiCall::get(path, query);
        call.value(&self.exchange(call)?)
    }

    /// Posts a value. An empty answer is read as `null`.
    ///
    /// The request is made again only when it surely did nothing: no connection was made, or a limit was hit. After a
    /// 5xx or a lost answer, the thing may have been made; see [`Api::post_again`].
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ApiError> {
        self.change("POST", path, body, RetrySafety::Doubles)
    }

    /// Posts a value of which a second one does no harm, such as a commit status: it is tried again like a `GET`.
    pub fn post_again<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ApiError> {
        self.change("POST", path, body, RetrySafety::Harmless)
    }

    /// Changes a value. An empty answer is read as `null`.
    pub fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ApiError> {
        self.change("PATCH", path, body, RetrySafety::Harmless)
    }

    /// Changes a value, on servers that want `PUT` for it. An empty answer is read as `null`.
    pub fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + ?Sized),
    ) -> Result<T, ApiError> {
        self.change("PUT", path, body, RetrySafety::Harmless)
    }

    /// Deletes something. What is gone already is deleted.
    pub fn delete(&self, path: &str) -> Result<(), ApiError> {
        // A second delete does nothing, so a lost answer is no reason to give up.
        let call = ApiCall { method: "DELETE", repeat: RetrySafety::Harmless, ..ApiCall::get(path, &[]) };
        // After a lost answer, the next try finds nothing to delete.
        match self.exchange(call) {
            Ok(_) | Err(ApiError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns where a redirect leads. What is there is for a client without the token.
    pub fn location(&self, path: &str) -> Result<String, ApiError> {
        // Any other client would follow, and so hand the token to the storage, which refuses a
        // request with two credentials.
        let call = ApiCall { wanted: Some(302), ..ApiCall::get(path, &[]) };
        let answer = self.exchange(call)?;
        let location = answer.headers.get("location").and_then(|location| location.to_str().ok());
        location.map(str::to_owned).ok_or_else(|| ApiError::Unreadable {
            request: call.name(),
            reason: "it redirects to no address".to_owned(),
        })
    }

    /// Gets what is on all pages of a list, each page when the one before is used up. A list with more pages than are read
    /// ends with an error, since nobody could tell it from a whole one.
    pub fn list<P: Page>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> impl Iterator<Item = Result<P::Item, ApiError>> {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Pages::<P> { api: self, path: path.to_owned(), query, next: Some(1), items: VecDeque::new(), seen: 0 }
    }

    fn change<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &(impl Serialize + ?Sized),
        repeat: RetrySafety,
    ) -> Result<T, ApiError> {
        let call = ApiCall { method, repeat, ..ApiCall::get(path, &[]) };
        let body = serde_json::to_vec(body)
            .map_err(|error| ApiError::Unreadable { request: call.name(), reason: error.to_string() })?;
        let call = ApiCall { body: Some(&body), ..call };
        call.value(&self.exchange(call)?)
    }

    fn exchange(&self, call: ApiCall<'_>) -> Result<ApiAnswer, ApiError> {
        self.exchange_at(&self.base, call, Ok)
    }

    /// Exchanges a request below a base for an answer, in as many tries as it takes. The last word on an answer whose
    /// status is that of a success has `judge`.
    pub(crate) fn exchange_at<T>(
        &self,
        base: &str,
        call: ApiCall<'_>,
        judge: impl Fn(ApiAnswer) -> Result<T, Failed<ApiError>>,
    ) -> Result<T, ApiError> {
        let pairs: Vec<String> = call
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", percent_encoded(name), percent_encoded(value)))
            .collect();
        let mark = if pairs.is_empty() { "" } else { "?" };
        let address = format!("{base}{}{mark}{}", call.path, pairs.join("&"));
        let authorization = self.token.as_ref().map(Token::bearer);
        let mut headers = self.headers.to_vec();
        headers.extend(call.body.map(|_| ("Content-Type", "application/json")));
        headers.extend(authorization.as_deref().map(|value| ("Authorization", value)));
        tries(PATIENCE, &self.transport, |_| {
            let lost = |lost| failed(lost, call);
            let mut response =
                send(&self.client, call.method, &address, &headers, call.body).map_err(lost)?;
            let body = read(&mut response, MAX_BODY).map_err(lost)?;
            let answer = ApiAnswer { headers: response.headers().clone(), body };
            match response.status().as_u16() {
                200..=299 => judge(answer),
                status if call.wanted == Some(status) => judge(answer),
                status => Err(refused(&self.server, status, &answer, call)),
            }
        })
    }
}

/// Judges a request without an answer.
fn failed(lost: LostAnswer, call: ApiCall<'_>) -> Failed<ApiError> {
    let again = match (&lost, call.repeat) {
        (LostAnswer::Unsent(_), _) | (LostAnswer::Unanswered(_), RetrySafety::Harmless) => Again::Soon,
        (LostAnswer::Unanswered(_), RetrySafety::Doubles) | (LostAnswer::Impossible(_), _) => Again::Never,
    };
    let request = call.name();
    let error = match lost {
        LostAnswer::Unsent(reason) | LostAnswer::Unanswered(reason) => {
            ApiError::Unavailable { request, reason }
        }
        LostAnswer::Impossible(reason) => ApiError::Unreadable { request, reason },
    };
    Failed { error, again }
}

/// Judges an unsuccessful answer.
fn refused(server: &GithubServer, status: u16, answer: &ApiAnswer, call: ApiCall<'_>) -> Failed<ApiError> {
    let (request, message, server) = (call.name(), message(&answer.body), server.clone());
    // Limits come with 403 as well, and are no missing permission.
    if let Some(wait) = limit(status, &answer.headers, &message) {
        return limited(server, wait);
    }
    let error = match status {
        401 => ApiError::Unauthorized { server, request, message },
        403 => ApiError::Denied { server, request, message, needs: needs(&answer.headers) },
        404 => ApiError::NotFound { server, request, message },
        410 => ApiError::Gone { request, message },
        status if is_trouble(status) => {
            let again = if call.repeat == RetrySafety::Harmless { Again::Soon } else { Again::Never };
            let reason = format!("status {status}");
            return Failed { error: ApiError::Unavailable { request, reason }, again };
        }
        // Redirects are among them: the token does not follow to another address.
        status => ApiError::Refused { server, request, status, message },
    };
    Failed::for_good(error)
}

/// Judges an answer that is about a limit.
pub(crate) fn limited(server: GithubServer, wait: Duration) -> Failed<ApiError> {
    let again = if wait <= LONGEST_WAIT { Again::After(wait) } else { Again::Never };
    // A run that waits for an hour on a status would hold up its job.
    Failed { error: ApiError::Limited { server, wait }, again }
}

/// Returns what the server says in an unsuccessful answer: a text, or a list of them, or an error of OAuth. Of a refused
/// value GitHub's message is only a title, and what is wrong with it stands beside that.
fn message(body: &[u8]) -> String {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return NO_WORDS.to_owned() };
    let said = ["message", "error_description", "error"].iter().find_map(|name| answer.get(name));
    let details = answer.get("errors").and_then(Value::as_array).into_iter().flatten();
    let parts = said.into_iter().flat_map(texts).chain(details.filter_map(detail));
    let parts: Vec<String> = parts.map(|part| one_line(&part, 300)).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { NO_WORDS.to_owned() } else { one_line(&parts.join(": "), 300) }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => vec![texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// Says what is wrong with one value.
fn detail(error: &Value) -> Option<String> {
    match error {
        Value::String(message) => Some(message.clone()),
        Value::Object(error) => match error.get("message") {
            Some(message) => message.as_str().map(str::to_owned),
            None => Some(format!("`{}` is {}", error.get("field")?.as_str()?, error.get("code")?.as_str()?)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

/// Stands for the reason where the server gives none.
const NO_WORDS: &str = "it says nothing more";

/// Returns how long a limit lasts, where this answer is about one.
pub(crate) fn limit(status: u16, headers: &HeaderMap, message: &str) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |name: &str| text(name).and_then(|value| value.parse::<u64>().ok());
    if !matches!(status, 403 | 429) {
        return None;
    }
    if let Some(seconds) = number("retry-after") {
        return Some(Duration::from_secs(seconds));
    }
    if number("x-ratelimit-remaining") == Some(0) {
        // The server's own clock, since that of the machine may be another.
        let wait =
            number("x-ratelimit-reset").zip(date(headers)).map(|(reset, now)| reset.saturating_sub(now) + 1);
        // One second more, as both times are cut to whole seconds.
        return Some(wait.map_or(LONGEST_WAIT, Duration::from_secs));
    }
    // Without these headers, the documentation asks for at least a minute ("Rate limits for the REST API").
    let secondary = message.to_ascii_lowercase().contains("secondary rate limit");
    (status == 429 || secondary).then_some(LONGEST_WAIT)
}

/// Returns when the server answered, in seconds since 1970.
fn date(headers: &HeaderMap) -> Option<u64> {
    let date = DateTime::parse_from_rfc2822(headers.get("date")?.to_str().ok()?.trim()).ok()?;
    u64::try_from(date.timestamp()).ok()
}

/// Returns the permission that GitHub names: `pull_requests=read` in the header, `pull-requests: read` in a workflow.
fn needs(headers: &HeaderMap) -> Option<String> {
    let permission = headers.get("x-accepted-github-permissions")?.to_str().ok()?;
    let first = permission.split(';').next()?.trim();
    (!first.is_empty()).then(|| one_line(&first.replace('_', "-").replace('=', ": ").replace(',', ", "), 100))
}

struct Pages<'a, P: Page> {
    api: &'a Api,
    path: String,
    query: Vec<(String, String)>,
    /// The number of the page that comes next.
    next: Option<u32>,
    items: VecDeque<P::Item>,
    /// How many there were so far.
    seen: usize,
}

/// Returns how many items a list has, where the server says it: in a header, or beside them.
fn total(answer: &ApiAnswer) -> Option<usize> {
    #[derive(Deserialize)]
    struct Counted {
        total_count: usize,
    }
    let header = answer.headers.get("x-total-count").and_then(|count| count.to_str().ok()?.parse().ok());
    header.or_else(|| Some(serde_json::from_slice::<Counted>(&answer.body).ok()?.total_count))
}

impl<P: Page> Pages<'_, P> {
    fn turn(&mut self, number: u32) -> Result<(), ApiError> {
        let server = &self.api.server;
        let (of_size, most) = server.page_size();
        let (size, page) = (most.to_string(), number.to_string());
        let mut query: Vec<(&str, &str)> =
            self.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        query.extend([(of_size, size.as_str()), ("page", page.as_str())]);
        let call = ApiCall::get(&self.path, &query);
        let answer = self.api.exchange(call)?;
        self.items = call.value::<P>(&answer)?.items().into();
        self.seen += self.items.len();
        // Some servers have shorter pages than they are asked for; a header says then whether there is more.
        let more = match answer.headers.get("link").and_then(|link| link.to_str().ok()) {
            Some(link) => link.contains(r#"rel="next""#),
            None if server.fills_pages() => self.items.len() >= most,
            None => !self.items.is_empty() && total(&answer).is_none_or(|total| self.seen < total),
        };
        self.next = more.then_some(number + 1);
        Ok(())
    }
}

impl<P: Page> Iterator for Pages<'_, P> {
    type Item = Result<P::Item, ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.items.is_empty() {
            let number = self.next.take()?;
            if number > MAX_PAGES {
                let (server, request) = (self.api.server.clone(), ApiCall::get(&self.path, &[]).name());
                return Some(Err(ApiError::Endless { server, request, pages: MAX_PAGES }));
            }
            if let Err(error) = self.turn(number) {
                return Some(Err(error));
            }
        }
        self.items.pop_front().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wiremock::matchers::{body_json, header, header_exists, method, path, query_param};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::testing::{Answers, Pauses, TestServer};
    use super::*;

    fn api(server: &TestServer, pauses: &Pauses) -> Api {
        Api::new(&server.address(), Some("ghs_geheim".into()), Transport::default().pause(pauses.pause()))
    }

    fn json(status: u16, body: &Value) -> ResponseTemplate {
        ResponseTemplate::new(status).set_body_json(body)
    }

    #[test]
    fn a_request_says_who_asks_and_what_it_understands() {
        let server = TestServer::start();
        let all = Mock::given(method("GET"))
            .and(path("/repos/o/r"))
            .and(query_param("name", "a b&c=d"))
            .and(header("authorization", "Bearer ghs_geheim"))
            .and(header("accept", "application/vnd.github+json"))
            .and(header("x-github-api-version", "2022-11-28"))
            .and(header("user-agent", concat!("ll-loop/", env!("CARGO_PKG_VERSION"))));
        server.mount(all.respond_with(json(200, &json!({"id": 7}))));
        let answer: Value = api(&server, &Pauses::none()).get("/repos/o/r", &[("name", "a b&c=d")]).unwrap();
        assert_eq!(answer, json!({"id": 7}));
    }

    #[test]
    fn without_a_token_there_is_no_header() {
        let server = TestServer::start();
        server.mount(Mock::given(header_exists("authorization")).respond_with(ResponseTemplate::new(400)));
        server.mount(Mock::given(method("GET")).respond_with(json(200, &json!(1))));
        let api = Api::new(&server.address(), None, Transport::default());
        assert_eq!(api.get::<u8>("/x", &[]), Ok(1));
    }

    #[test]
    fn values_are_sent_and_an_empty_answer_is_null() {
        let server = TestServer::start();
        let sent = || body_json(json!({"state": "success"}));
        let made = |verb: &str| Mock::given(method(verb)).and(path("/s")).and(sent());
        server.mount(made("POST").respond_with(json(201, &json!({"id": 1}))));
        server.mount(made("PATCH").respond_with(ResponseTemplate::new(204)));
        let api = api(&server, &Pauses::none());
        let body = json!({"state": "success"});
        assert_eq!(api.post::<Value>("/s", &body), Ok(json!({"id": 1})));
        assert_eq!(api.post_again::<Value>("/s", &body), Ok(json!({"id": 1})));
        assert_eq!(api.patch::<()>("/s", &body), Ok(()));
    }

    #[derive(Debug, Deserialize)]
    struct Things {
        things: Vec<u32>,
    }

    impl Page for Things {
        type Item = u32;
        fn items(self) -> Vec<u32> {
            self.things
        }
    }

    /// Lists of so many things at so many a page, with or without the header that says whether there is more.
    #[track_caller]
    fn check_pages(count: u32, size: u32, link: bool, expect_requests: usize) {
        let server = TestServer::start();
        server.mount(Mock::given(method("GET")).and(query_param("name", "x")).respond_with(
            move |request: &wiremock::Request| {
                let number = |name: &str| {
                    let mut pairs = request.url.query_pairs();
                    pairs.find(|(key, _)| key == name).unwrap().1.parse::<u32>().unwrap()
                };
                assert_eq!(number("per_page"), 100);
                let from = (number("page") - 1) * size;
                let things: Vec<u32> = (from..(from + size).min(count)).collect();
                let answer = json(200, &json!({"total_count": count, "things": things}));
                match link {
                    true if from + size < count => answer.insert_header("link", r#"<http://x>; rel="next""#),
                    true => answer.insert_header("link", r#"<http://x>; rel="first""#),
                    false => answer,
                }
            },
        ));
        let api = api(&server, &Pauses::none());
        let found: Vec<u32> = api.list::<Things>("/t", &[("name", "x")]).map(Result::unwrap).collect();
        assert_eq!(found, (0..count).collect::<Vec<_>>());
        assert_eq!(server.requests(), expect_requests);
    }

    #[test]
    fn a_list_is_read_to_its_last_page() {
        check_pages(0, 100, false, 1);
        check_pages(99, 100, false, 1);
        check_pages(100, 100, false, 2);
        check_pages(250, 100, false, 3);
        check_pages(100, 100, true, 1);
        check_pages(120, 50, true, 3);
    }

    fn gitea() -> GithubServer {
        GithubServer::of(&|name| (name == "GITEA_ACTIONS").then(|| "true".to_owned()))
    }

    /// Lists of 120 things on a server that gives at most so many a page and says no word about more, or a total.
    #[track_caller]
    fn check_short_pages(size: u32, total: Option<&'static str>, expect_requests: usize) {
        let server = TestServer::start();
        server.mount(Mock::given(query_param("limit", "50")).respond_with(
            move |request: &wiremock::Request| {
                let mut pairs = request.url.query_pairs();
                let page: u32 = pairs.find(|(key, _)| key == "page").unwrap().1.parse().unwrap();
                let things: Vec<u32> = ((page - 1) * size..(page * size).min(120)).collect();
                let answer = json(200, &json!(things));
                total.map_or_else(
                    || answer.clone(),
                    |total| answer.clone().insert_header("x-total-count", total),
                )
            },
        ));
        let api = api(&server, &Pauses::none()).of(gitea());
        assert_eq!(api.list::<Vec<u32>>("/t", &[]).map(Result::unwrap).count(), 120);
        assert_eq!(server.requests(), expect_requests);
    }

    #[test]
    fn a_page_that_is_shorter_than_asked_for_is_not_taken_for_the_last_one() {
        check_short_pages(50, None, 4);
        check_short_pages(30, None, 5);
        check_short_pages(30, Some("120"), 4);
    }

    #[test]
    fn a_message_names_the_server_that_answered_and_what_helps_there() {
        let server = TestServer::start();
        server.mount(Mock::given(method("GET")).respond_with(json(404, &json!({"message": "no"}))));
        server.mount(Mock::given(method("POST")).respond_with(json(403, &json!({"message": "no"}))));
        let api = api(&server, &Pauses::none()).of(gitea());
        let absent = api.get::<Value>("/x", &[]).unwrap_err();
        assert_eq!(absent.to_string(), "Gitea finds nothing for GET /x: no");
        let denied = api.post::<Value>("/x", &1).unwrap_err().needing("statuses: write");
        let help = "give the job `permissions: { contents: write }`, or use another token";
        assert_eq!(denied.help().as_deref(), Some(help));
    }

    #[test]
    fn a_list_that_never_ends_ends_with_an_error() {
        let server = TestServer::start();
        server.mount(Mock::given(method("GET")).respond_with(json(200, &json!(vec![1; 100]))));
        let api = api(&server, &Pauses::none());
        let found: Vec<_> = api.list::<Vec<u32>>("/t", &[]).collect();
        assert_eq!(found.iter().filter(|item| item.is_ok()).count(), 100 * 100);
        let cut = found.last().unwrap().clone().unwrap_err();
        assert_eq!(cut.to_string(), "GitHub has more for GET /t than the 100 pages that are read");
        assert_eq!(server.requests(), 100);
        // Whoever wants no more than that is not told of it.
        assert!(api.list::<Vec<u32>>("/t", &[]).take(100 * 100).all(|item| item.is_ok()));
    }

    #[test]
    fn an_error_in_the_middle_of_a_list_ends_it() {
        let server = TestServer::start();
        let first = Mock::given(query_param("page", "1"));
        server.mount(first.respond_with(json(200, &json!(vec![1; 100]))));
        server.mount(Mock::given(query_param("page", "2")).respond_with(json(403, &json!({}))));
        let found: Vec<_> = api(&server, &Pauses::none()).list::<Vec<u32>>("/t", &[]).collect();
        assert_eq!(found.len(), 101);
        assert!(matches!(found[100], Err(ApiError::Denied { .. })), "{:?}", found[100]);
    }

    /// One answer and what a `GET` makes of it, with the number of requests.
    #[track_caller]
    fn check(answer: ResponseTemplate, expect: &str, help: Option<&str>, requests: usize) {
        let server = TestServer::start();
        server.mount(Mock::given(method("GET")).respond_with(answer));
        let error = api(&server, &Pauses::default()).get::<Value>("/repos/o/r", &[]).unwrap_err();
        assert_eq!(error.to_string(), expect, "{error:?}");
        assert_eq!(error.help().as_deref(), help);
        assert_eq!(server.requests(), requests);
    }

    #[test]
    fn errors_say_what_happened_and_what_to_do() {
        let said = |status, message: &str| json(status, &json!({"message": message}));
        check(
            said(401, "Bad credentials"),
            "GitHub does not accept the token for GET /repos/o/r: Bad credentials",
            Some("set `GITHUB_TOKEN` or `GH_TOKEN` to a token that is valid for this repository"),
            1,
        );
        check(
            said(403, "Resource not accessible by integration"),
            "the token may not do GET /repos/o/r: Resource not accessible by integration",
            Some("give the job the permission, or use another token"),
            1,
        );
        check(
            said(403, "no").insert_header("x-accepted-github-permissions", "actions=read; contents=write"),
            "the token may not do GET /repos/o/r: no",
            Some("give the job `permissions: { actions: read }`, or use another token"),
            1,
        );
        check(
            said(404, "Not Found"),
            "GitHub finds nothing for GET /repos/o/r: Not Found",
            Some("look whether the name is right, and whether the token may see the repository"),
            1,
        );
        check(said(410, "Expired"), "what GET /repos/o/r asks for is gone: Expired", None, 1);
        check(
            said(422, "Validation\nFailed \u{1b}[31m::error::"),
            "GitHub answers GET /repos/o/r with 422: Validation…",
            None,
            1,
        );
        let already =
            json!([{"resource": "PullRequest", "code": "custom", "message": "A pull request exists."}]);
        check(
            json(422, &json!({"message": "Validation Failed", "errors": already})),
            "GitHub answers GET /repos/o/r with 422: Validation Failed: A pull request exists.",
            None,
            1,
        );
        let unfit =
            json!([{"resource": "PullRequest", "field": "head", "code": "invalid"}, "b\u{1b}[31m", 7, {}]);
        check(
            json(422, &json!({"message": "Validation Failed", "errors": unfit})),
            "GitHub answers GET /repos/o/r with 422: Validation Failed: `head` is invalid: b",
            None,
            1,
        );
        check(
            json(422, &json!({"message": "no", "errors": "nothing"})),
            "GitHub answers GET /repos/o/r with 422: no",
            None,
            1,
        );
        check(
            said(403, "no").insert_header("x-accepted-github-permissions", "pull_requests=write"),
            "the token may not do GET /repos/o/r: no",
            Some("give the job `permissions: { pull-requests: write }`, or use another token"),
            1,
        );
        check(
            said(301, "Moved").insert_header("location", "/repositories/1"),
            "GitHub answers GET /repos/o/r with 301: Moved",
            Some("use the new name of the repository; redirects are not followed"),
            1,
        );
        check(
            ResponseTemplate::new(400).set_body_string("<html>"),
            "GitHub answers GET /repos/o/r with 400: it says nothing more",
            None,
            1,
        );
        check(ResponseTemplate::new(502), "no answer to GET /repos/o/r: status 502", Some(UNAVAILABLE), 4);
        check(
            ResponseTemplate::new(200).set_body_string("{"),
            "the answer to GET /repos/o/r cannot be read: EOF while parsing an object at line 1 column 1",
            None,
            1,
        );
    }

    #[test]
    fn a_permission_is_named_by_the_caller_where_github_does_not() {
        let denied = |needs: Option<&str>| ApiError::Denied {
            server: GithubServer::default(),
            request: "GET /x".into(),
            message: String::new(),
            needs: needs.map(str::to_owned),
        };
        assert_eq!(denied(None).needing("actions: read"), denied(Some("actions: read")));
        assert_eq!(denied(Some("a: read")).needing("actions: read"), denied(Some("a: read")));
    }

    #[test]
    fn too_much_text_is_not_read() {
        let server = TestServer::start();
        let long = vec![b' '; usize::try_from(MAX_BODY).unwrap() + 1];
        server
            .mount(Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_bytes(long)));
        let error = api(&server, &Pauses::none()).get::<Value>("/x", &[]).unwrap_err();
        assert!(error.to_string().contains("more than 16777216 bytes"), "{error}");
    }

    /// A limit, and the pauses until the next try; none where it is an error at once.
    #[track_caller]
    fn check_limit(limited: ResponseTemplate, expect: &[u64], error: &str) {
        let server = TestServer::start();
        let pauses = Pauses::default();
        server.mount(Mock::given(method("POST")).respond_with(limited).up_to_n_times(1));
        server.mount(Mock::given(method("POST")).respond_with(json(200, &json!(1))));
        let result = api(&server, &pauses).post::<u8>("/x", &1).map_err(|error| error.to_string());
        let expect_result = if error.is_empty() { Ok(1) } else { Err(error.to_owned()) };
        assert_eq!(result, expect_result);
        assert_eq!(pauses.seconds(), expect);
    }

    #[test]
    fn a_short_limit_is_waited_for_and_a_long_one_is_an_error() {
        let at = |seconds: &str| {
            ResponseTemplate::new(403)
                .insert_header("date", "Fri, 20 Nov 2026 20:00:00 GMT")
                .insert_header("x-ratelimit-remaining", "0")
                .insert_header("x-ratelimit-reset", seconds)
        };
        check_limit(ResponseTemplate::new(429).insert_header("retry-after", "7"), &[7], "");
        check_limit(ResponseTemplate::new(403).insert_header("retry-after", "60"), &[60], "");
        check_limit(at("1795204809"), &[10], "");
        check_limit(at("1795204000"), &[1], "");
        check_limit(ResponseTemplate::new(429), &[60], "");
        check_limit(json(403, &json!({"message": "You have exceeded a secondary rate limit."})), &[60], "");
        check_limit(
            ResponseTemplate::new(429).insert_header("retry-after", "61"),
            &[],
            "GitHub limits the rate of requests: the next one is possible in 1m 1s",
        );
        check_limit(
            at("1795208399"),
            &[],
            "GitHub limits the rate of requests: the next one is possible in 1h 0m",
        );
    }

    #[test]
    fn trouble_is_tried_again_where_that_does_no_harm() {
        let after = |status: u16, ask: &dyn Fn(&Api) -> Result<u8, ApiError>| {
            let server = TestServer::start();
            let wrong = Mock::given(path("/x")).respond_with(ResponseTemplate::new(status)).up_to_n_times(2);
            server.mount(wrong);
            server.mount(Mock::given(path("/x")).respond_with(json(200, &json!(1))));
            let pauses = Pauses::default();
            let result = ask(&api(&server, &pauses));
            (result.map_err(|error| error.is_unavailable()), pauses.seconds().len())
        };
        assert_eq!(after(503, &|api| api.get("/x", &[])), (Ok(1), 2));
        assert_eq!(after(500, &|api| api.patch("/x", &1)), (Ok(1), 2));
        assert_eq!(after(502, &|api| api.post_again("/x", &1)), (Ok(1), 2));
        assert_eq!(after(502, &|api| api.post("/x", &1)), (Err(true), 0));
        assert_eq!(after(422, &|api| api.get("/x", &[])), (Err(false), 0));
    }

    #[test]
    fn a_lost_connection_is_tried_again_where_that_does_no_harm() {
        let ask = |ask: &dyn Fn(&Api) -> Result<u8, ApiError>| {
            let answers = Answers::start(&["", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1", OK]);
            let pauses = Pauses::default();
            let api = Api::new(&answers.address(), None, Transport::default().pause(pauses.pause()));
            (ask(&api).map_err(|error| error.is_unavailable()), pauses.seconds().len())
        };
        assert_eq!(ask(&|api| api.get("/x", &[])), (Ok(1), 2));
        assert_eq!(ask(&|api| api.post("/x", &1)), (Err(true), 0));
    }

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1";

    #[test]
    fn where_nobody_listens_every_request_is_tried_again() {
        let pauses = Pauses::default();
        let api = Api::new("http://127.0.0.1:9", None, Transport::default().pause(pauses.pause()));
        let error = api.post::<()>("/x", &1).unwrap_err();
        assert!(error.is_unavailable(), "{error:?}");
        assert_eq!(pauses.seconds().len(), 3);
    }

    #[test]
    fn an_answer_that_does_not_come_is_given_up() {
        let server = TestServer::start();
        let slow = json(200, &json!(1)).set_delay(Duration::from_secs(20));
        server.mount(Mock::given(method("GET")).respond_with(slow));
        let transport = Transport::default().pause(Pauses::default().pause()).idle(Duration::from_millis(50));
        let error = Api::new(&server.address(), None, transport).get::<Value>("/x", &[]).unwrap_err();
        assert_eq!(error.to_string(), "no answer to GET /x: no answer in time");
    }

    #[test]
    fn a_redirect_is_told_and_not_followed() {
        let server = TestServer::start();
        let there = format!("{}/blob?sig=a%2Bb%3D", server.address());
        let away = ResponseTemplate::new(302).insert_header("location", there.as_str());
        server.mount(Mock::given(path("/zip")).respond_with(away));
        server.mount(Mock::given(path("/plain")).respond_with(json(200, &json!(1))));
        let api = api(&server, &Pauses::none());
        assert_eq!(api.location("/zip"), Ok(there));
        let plain = api.location("/plain").unwrap_err().to_string();
        assert_eq!(plain, "the answer to GET /plain cannot be read: it redirects to no address");
        let got = api.get::<Value>("/zip", &[]).unwrap_err();
        assert!(matches!(got, ApiError::Refused { status: 302, .. }), "{got:?}");
        assert_eq!(server.requests(), 3);
    }

    #[test]
    fn the_environment_names_the_server_and_nothing_shows_the_token() {
        let env = |name: &str| (name == "GITHUB_API_URL").then(|| "https://ghes/api/v3/".to_owned());
        let api = Api::from_env(&env, Some("ghs_geheim".into())).unwrap();
        assert_eq!(api.base, "https://ghes/api/v3");
        assert!(!format!("{api:?}").contains("geheim"), "{api:?}");
        assert_eq!(Api::from_env(&|_| None, None).unwrap().base, GITHUB);
        let wrong = |name: &str| (name == "ALL_PROXY").then(|| "??".to_owned());
        assert!(matches!(Api::from_env(&wrong, None), Err(ApiError::Setup(_))));
    }
}
