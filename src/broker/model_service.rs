//! The services of models by their APIs: which paths are forwarded, where a key goes, and how each says that something is
//! wrong.

use std::fmt;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::key_mask::KeyMask;

/// The API of a service, which others than its vendor may offer too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceApi {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's responses and chat completions.
    OpenAi,
    /// Google's Gemini.
    Gemini,
}

/// What a request asks of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions.
    Chat,
    /// Gemini's content.
    Generate,
    /// Something that costs nothing: a count of tokens, a list of models.
    Free,
}

/// A path of an API, and what it asks for.
struct ApiPath {
    method: Method,
    /// The whole path, or what stands before a segment that may be any.
    start: &'static str,
    /// What stands behind that segment.
    end: Option<&'static str>,
    endpoint: Endpoint,
}

const fn post(path: &'static str, endpoint: Endpoint) -> ApiPath {
    ApiPath { method: Method::POST, start: path, end: None, endpoint }
}

const fn model(method: Method, before: &'static str, after: &'static str, endpoint: Endpoint) -> ApiPath {
    ApiPath { method, start: before, end: Some(after), endpoint }
}

const fn get(path: &'static str) -> ApiPath {
    ApiPath { method: Method::GET, start: path, end: None, endpoint: Endpoint::Free }
}

// Left out are batches, whose answers come later and elsewhere, and files, which the service keeps.
const ANTHROPIC: &[ApiPath] = &[
    post("/v1/messages", Endpoint::Messages),
    post("/v1/messages/count_tokens", Endpoint::Free),
    get("/v1/models"),
    model(Method::GET, "/v1/models/", "", Endpoint::Free),
];

/// Below the base address, which ends in `/v1` or what a service has in its place.
const OPENAI: &[ApiPath] = &[
    post("/responses", Endpoint::Responses),
    post("/responses/input_tokens", Endpoint::Free),
    post("/chat/completions", Endpoint::Chat),
    get("/models"),
    model(Method::GET, "/models/", "", Endpoint::Free),
];

const GEMINI: &[ApiPath] = &[
    model(Method::POST, "/models/", ":generateContent", Endpoint::Generate),
    model(Method::POST, "/models/", ":streamGenerateContent", Endpoint::Generate),
    model(Method::POST, "/models/", ":countTokens", Endpoint::Free),
    get("/models"),
    model(Method::GET, "/models/", "", Endpoint::Free),
];

/// What a path of Gemini begins with: its version.
const GEMINI_VERSIONS: [&str; 3] = ["/v1beta", "/v1alpha", "/v1"];

/// The headers that say who asks.
const CREDENTIALS: [&str; 5] =
    ["authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"];

/// The parameter of an address that says who asks.
const KEY_PARAMETER: &str = "key";

impl ServiceApi {
    /// Returns what a request asks for, and the model that its path names; none where it is not forwarded.
    pub fn endpoint(self, method: &Method, path: &str) -> Option<(Endpoint, Option<String>)> {
        if !is_plain(path) {
            return None;
        }
        let (paths, path) = match self {
            Self::Anthropic => (ANTHROPIC, path),
            Self::OpenAi => (OPENAI, path),
            Self::Gemini => {
                (GEMINI, GEMINI_VERSIONS.into_iter().find_map(|version| path.strip_prefix(version))?)
            }
        };
        paths.iter().filter(|of| of.method == *method).find_map(|of| of.take(path))
    }

    /// Returns the address below which the vendor offers it.
    pub fn vendor(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// Returns what the path of an address begins with by which a CLI is told the service.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Gemini => "",
            Self::OpenAi => "/v1",
        }
    }

    /// Returns an error as the service itself would say it.
    pub fn error(self, status: StatusCode, message: &str) -> Value {
        let kind = StatusKind::of(status);
        match self {
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": kind.anthropic, "message": message}})
            }
            Self::OpenAi => json!({
                "error": {"message": message, "type": kind.openai, "param": null, "code": kind.anthropic}
            }),
            Self::Gemini => {
                json!({"error": {"code": status.as_u16(), "message": message, "status": kind.gemini}})
            }
        }
    }
}

/// The status of a request whose service cannot be reached, or does not answer. Every CLI asks once more at one of 5xx, again
/// and again, though a request without an answer may be charged; none does at this one, and ll-loop makes the call again.
pub const UNREACHED: StatusCode = StatusCode::FAILED_DEPENDENCY;

/// How services call what is wrong.
struct StatusKind {
    anthropic: &'static str,
    openai: &'static str,
    gemini: &'static str,
}

impl StatusKind {
    fn of(status: StatusCode) -> Self {
        let kind = |anthropic, openai, gemini| Self { anthropic, openai, gemini };
        match status {
            StatusCode::UNAUTHORIZED => {
                kind("authentication_error", "authentication_error", "UNAUTHENTICATED")
            }
            StatusCode::NOT_FOUND => kind("not_found_error", "invalid_request_error", "NOT_FOUND"),
            StatusCode::PAYLOAD_TOO_LARGE => {
                kind("request_too_large", "invalid_request_error", "INVALID_ARGUMENT")
            }
            status if status.is_server_error() || status == UNREACHED => {
                kind("api_error", "server_error", "UNAVAILABLE")
            }
            _ => kind("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
        }
    }
}

impl ApiPath {
    /// Takes a path that is this one, with the segment that may be any.
    fn take(&self, path: &str) -> Option<(Endpoint, Option<String>)> {
        let Some(end) = self.end else { return (path == self.start).then_some((self.endpoint, None)) };
        let segment = path.strip_prefix(self.start)?.strip_suffix(end)?;
        // A colon would begin another method of Gemini, such as `:batchGenerateContent`.
        let is_one = !segment.is_empty() && !segment.contains(['/', ':']);
        is_one.then(|| (self.endpoint, Some(segment.to_owned())))
    }
}

/// Tells whether every reader of a path reads the same in it.
fn is_plain(path: &str) -> bool {
    // No percent sign: a service that decodes `%2e%2e` would leave the path that was looked at
    // here.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._:".contains(&byte);
    path.bytes().all(is_plain)
        && !path.contains("//")
        && !path.split('/').any(|part| part == ".." || part == ".")
}

/// The key of a service, and where a request has it. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceKey {
    header: KeyHeader,
    key: String,
}

/// Where a request has its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`, as Anthropic has it.
    XApiKey,
    /// `x-goog-api-key: KEY`, as Google has it.
    XGoogApiKey,
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?} ***", self.header)
    }
}

impl ServiceKey {
    /// Makes a key.
    pub fn new(header: KeyHeader, key: &str) -> Self {
        // A key that was read from a file often ends with a line break, which no header can hold.
        Self { header, key: key.trim().to_owned() }
    }

    /// Returns the header of a request that has it; none where the key cannot stand in one.
    pub fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self.header {
            KeyHeader::Bearer => (AUTHORIZATION, format!("Bearer {}", self.key)),
            KeyHeader::XApiKey => (HeaderName::from_static("x-api-key"), self.key.clone()),
            KeyHeader::XGoogApiKey => (HeaderName::from_static("x-goog-api-key"), self.key.clone()),
        };
        let mut value = HeaderValue::try_from(value).ok()?;
        // So that no debug output of the client shows it.
        value.set_sensitive(true);
        Some((name, value))
    }

    /// Returns what takes it out of answers.
    pub(super) fn mask(&self) -> KeyMask<'_> {
        KeyMask::new(&self.key)
    }
}

/// Returns the tokens that a request shows: a CLI may send the one that it was given in several places.
pub fn tokens<'r>(headers: &'r HeaderMap, query: Option<&'r str>) -> impl Iterator<Item = &'r str> {
    let of_headers = CREDENTIALS.into_iter().filter_map(|name| headers.get(name)?.to_str().ok());
    let of_query = parameters(query).filter(|(name, _)| *name == KEY_PARAMETER).map(|(_, value)| value);
    of_headers.map(|value| value.strip_prefix("Bearer ").unwrap_or(value)).chain(of_query)
}

/// Returns what of a query is handed on: all of it but a key.
pub fn without_key(query: Option<&str>) -> String {
    let kept = query.into_iter().flat_map(|query| query.split('&'));
    let is_key = |part: &&str| part.split('=').next() == Some(KEY_PARAMETER);
    kept.filter(|part| !is_key(part)).collect::<Vec<_>>().join("&")
}

fn parameters(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    query.into_iter().flat_map(|query| query.split('&')).filter_map(|part| part.split_once('='))
}

/// Headers that belong to one connection, and such as would change what is read of an answer.
const OF_CONNECTION: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
];

/// Headers of an answer that are for somebody who talks to the service itself.
const OF_SERVICE: [&str; 3] = ["set-cookie", "alt-svc", "strict-transport-security"];

/// Returns what of the headers of a request is handed on, with our key.
pub fn request_headers(of: &HeaderMap, key: &ServiceKey) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in of {
        if !CREDENTIALS.contains(&name.as_str())
            && !OF_CONNECTION.contains(&name.as_str())
            && !is_named(of, name)
        {
            headers.append(name.clone(), value.clone());
        }
    }
    // What is packed could not be read on the way.
    headers.insert("accept-encoding", HeaderValue::from_static("identity"));
    headers.extend(key.header());
    headers
}

/// Returns what of the headers of an answer is handed on. What the length of the body is, the server says itself.
pub fn answer_headers(of: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in of {
        let is_ours = OF_CONNECTION.contains(&name.as_str()) || OF_SERVICE.contains(&name.as_str());
        if !is_ours && !is_named(of, name) {
            headers.append(name.clone(), value.clone());
        }
    }
    headers
}

/// Tells whether a header is one of those that `Connection` names.
fn is_named(headers: &HeaderMap, name: &HeaderName) -> bool {
    let named = headers.get_all("connection").iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(api: ServiceApi, method: &Method, path: &str) -> Option<Endpoint> {
        api.endpoint(method, path).map(|(endpoint, _)| endpoint)
    }

    #[test]
    fn only_the_paths_of_the_api_are_forwarded() {
        use ServiceApi::{Anthropic, Gemini, OpenAi};
        for (api, path, expected) in [
            (Anthropic, "/v1/messages", Some(Endpoint::Messages)),
            (Anthropic, "/v1/messages/count_tokens", Some(Endpoint::Free)),
            (Anthropic, "/v1/messages/batches", None),
            (Anthropic, "/v1/messages/", None),
            (Anthropic, "//v1/messages", None),
            (Anthropic, "/v1/organizations/api_keys", None),
            (Anthropic, "/v1/files/../messages", None),
            (Anthropic, "/v1/%6dessages", None),
            (OpenAi, "/responses", Some(Endpoint::Responses)),
            (OpenAi, "/chat/completions", Some(Endpoint::Chat)),
            (OpenAi, "/files", None),
            (OpenAi, "/fine_tuning/jobs", None),
            (Gemini, "/v1beta/models/gemini-2.5-pro:generateContent", Some(Endpoint::Generate)),
            (Gemini, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", Some(Endpoint::Generate)),
            (Gemini, "/v1beta/models/a/b:generateContent", None),
            (Gemini, "/v1beta/models/:generateContent", None),
            (Gemini, "/models/gemini-2.5-pro:generateContent", None),
            (Gemini, "/v1beta/cachedContents", None),
        ] {
            assert_eq!(endpoint(api, &Method::POST, path), expected, "{path}");
        }
        assert_eq!(endpoint(Anthropic, &Method::GET, "/v1/messages"), None);
        assert_eq!(endpoint(Anthropic, &Method::DELETE, "/v1/models/x"), None);
        assert_eq!(endpoint(OpenAi, &Method::GET, "/models/gpt-5"), Some(Endpoint::Free));
        let (_, model) = Gemini.endpoint(&Method::POST, "/v1/models/gemini-2.5-pro:countTokens").unwrap();
        assert_eq!(model.as_deref(), Some("gemini-2.5-pro"));
    }

    #[test]
    fn credentials_of_a_cli_stay_here_and_ours_go_along() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer of-the-call"),
            ("x-api-key", "of-the-call"),
            ("x-goog-api-key", "other"),
            ("cookie", "a=b"),
            ("connection", "keep-alive, x-odd"),
            ("x-odd", "1"),
            ("host", "127.0.0.1:1"),
            ("accept-encoding", "gzip, br"),
            ("anthropic-beta", "one"),
            ("user-agent", "cli/1"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let shown: Vec<_> = tokens(&headers, Some("alt=sse&key=third")).collect();
        assert_eq!(shown, ["of-the-call", "of-the-call", "other", "a=b", "third"]);
        let key = ServiceKey::new(KeyHeader::XApiKey, " the-real-key\n");
        let sent = request_headers(&headers, &key);
        let mut sent: Vec<_> =
            sent.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        sent.sort();
        let expected = [
            "accept-encoding: identity",
            "anthropic-beta: one",
            "user-agent: cli/1",
            "x-api-key: the-real-key",
        ];
        assert_eq!(sent, expected);
        assert_eq!(without_key(Some("alt=sse&key=third&x")), "alt=sse&x");
        assert_eq!(format!("{key:?}"), "XApiKey ***");
        assert!(ServiceKey::new(KeyHeader::Bearer, "a\nb").header().is_none());
    }

    #[test]
    fn an_error_is_said_as_the_service_says_it() {
        let said = |api: ServiceApi| api.error(StatusCode::BAD_REQUEST, "too much").to_string();
        assert_eq!(
            said(ServiceApi::Anthropic),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"too much"}}"#
        );
        assert!(said(ServiceApi::OpenAi).contains(r#""type":"invalid_request_error""#));
        assert_eq!(
            said(ServiceApi::Gemini),
            r#"{"error":{"code":400,"message":"too much","status":"INVALID_ARGUMENT"}}"#
        );
    }
}
