//! GitHub's GraphQL API, for what REST cannot do: a commit that GitHub signs, refs that move together.
//!
//! Whatever is wrong, the status is that of a success and the errors are in the answer. They become the errors that
//! REST has for the same thing, and are waited for and tried again in the same way.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::{Api, ApiAnswer, ApiCall, ApiError, RetrySafety, limit, limited};
use super::github_server::GithubServer;
use super::http::{Again, Failed};
use crate::base::text::one_line;

/// A query or a mutation, with the name that messages call it by.
#[derive(Clone, Copy, Debug)]
pub(in crate::forge) struct Document {
    name: &'static str,
    text: &'static str,
    repeat: RetrySafety,
}

impl Document {
    /// Makes one that changes nothing; it is made again like a `GET`.
    pub(in crate::forge) const fn query(name: &'static str, text: &'static str) -> Self {
        Self { name, text, repeat: RetrySafety::Harmless }
    }

    /// Makes one that changes something; it is made again only when it surely did nothing, like [`Api::post`].
    pub(super) const fn mutation(name: &'static str, text: &'static str) -> Self {
        Self { name, text, repeat: RetrySafety::Doubles }
    }

    /// Returns the name that messages call it by.
    pub(super) fn name(self) -> &'static str {
        self.name
    }
}

impl Api {
    /// Sends a document, and returns its data. Errors beside data count as errors, even if the rest was done.
    pub(in crate::forge) fn graphql<T: DeserializeOwned>(
        &self,
        document: Document,
        variables: &(impl Serialize + ?Sized),
    ) -> Result<T, ApiError> {
        let body = json!({ "query": document.text, "variables": json!(variables) }).to_string();
        let call = ApiCall {
            method: "POST",
            body: Some(body.as_bytes()),
            repeat: document.repeat,
            ..ApiCall::get("/graphql", &[])
        };
        // On GitHub Enterprise Server the REST API is below `/api/v3`, on GitLab below `/api/v4`, and this one beside it.
        let beside = ["/v3", "/v4"].into_iter().find_map(|version| self.base().strip_suffix(version));
        let base = beside.unwrap_or(self.base());
        let data: Value = self.exchange_at(base, call, |answer| data(self.server(), &answer, document))?;
        serde_json::from_value(data).map_err(|error| unreadable(document, &error))
    }
}

#[derive(Deserialize)]
struct GraphqlReply {
    #[serde(default)]
    data: Value,
    #[serde(default)]
    errors: Vec<Wrong>,
}

#[derive(Deserialize)]
struct Wrong {
    #[serde(rename = "type")]
    kind: Option<Box<str>>,
    #[serde(default)]
    message: String,
}

/// Returns the data of an answer, or judges its errors.
fn data(server: &GithubServer, answer: &ApiAnswer, document: Document) -> Result<Value, Failed<ApiError>> {
    let GraphqlReply { data, errors } = serde_json::from_slice(&answer.body)
        .map_err(|error| Failed::for_good(unreadable(document, &error)))?;
    let Some(wrong) = errors.into_iter().next() else { return Ok(data) };
    let message = match one_line(&wrong.message, 300) {
        said if said.is_empty() => "it says nothing more".to_owned(),
        said => said,
    };
    let (server, request) = (server.clone(), document.name.to_owned());
    let error = match wrong.kind.as_deref() {
        // The status of such an answer in REST; what the limit is, the headers say in the same words.
        Some("RATE_LIMIT" | "RATE_LIMITED") => {
            return Err(match limit(429, &answer.headers, &message) {
                Some(wait) => limited(server, wait),
                None => Failed::for_good(ApiError::Rejected { server, request, kind: wrong.kind, message }),
            });
        }
        Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => {
            ApiError::Denied { server, request, message, needs: None }
        }
        Some("NOT_FOUND") => ApiError::NotFound { server, request, message },
        // GitHub says `Something went wrong while executing your query` in its own trouble, without
        // a type.
        kind if kind == Some("SERVICE_UNAVAILABLE") || message.starts_with("Something went wrong") => {
            let again = if document.repeat == RetrySafety::Harmless { Again::Soon } else { Again::Never };
            return Err(Failed { error: ApiError::Unavailable { request, reason: message }, again });
        }
        Some(_) | None => ApiError::Rejected { server, request, kind: wrong.kind, message },
    };
    Err(Failed::for_good(error))
}

fn unreadable(document: Document, error: &serde_json::Error) -> ApiError {
    ApiError::Unreadable { request: document.name.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::{body_json, header, method, path};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::http::Transport;
    use super::super::testing::{Answers, Pauses, TestServer};
    use super::*;

    const QUERY: Document =
        Document::query("the repository", "query($name: String!) { x(name: $name) { id } }");
    const MUTATION: Document =
        Document::mutation("updateRefs", "mutation { updateRefs { clientMutationId } }");

    fn answer(body: &Value) -> ResponseTemplate {
        ResponseTemplate::new(200).set_body_json(body)
    }

    fn error(kind: &str, message: &str) -> Value {
        json!({"data": {"a": null}, "errors": [
            {"type": kind, "path": ["a"], "locations": [{"line": 1, "column": 48}], "message": message},
        ]})
    }

    #[test]
    fn a_query_is_sent_with_its_variables_and_its_data_come_back() {
        let server = TestServer::start();
        let sent = Mock::given(method("POST"))
            .and(path("/graphql"))
            .and(header("authorization", "Bearer ghs_geheim"))
            .and(body_json(json!({"query": QUERY.text, "variables": {"name": "r"}})));
        server.mount(sent.respond_with(answer(&json!({"data": {"repository": {"id": "R_1"}}}))));
        let transport = Transport::default().pause(Pauses::none().pause());
        let api = Api::new(&server.address(), Some("ghs_geheim".into()), transport);
        let data: Value = api.graphql(QUERY, &json!({"name": "r"})).unwrap();
        assert_eq!(data, json!({"repository": {"id": "R_1"}}));
    }

    #[test]
    fn the_address_is_that_of_each_server() {
        let asked = |base: &str| {
            let server = TestServer::start();
            server.mount(Mock::given(method("POST")).respond_with(answer(&json!({"data": 1}))));
            let api = Api::new(&format!("{}{base}", server.address()), None, Transport::default());
            assert_eq!(api.graphql::<u8>(QUERY, &json!({})), Ok(1));
            server.received()[0].0.clone()
        };
        assert_eq!(asked(""), "POST /graphql");
        assert_eq!(asked("/api/v3"), "POST /api/graphql");
        assert_eq!(asked("/api/v3/"), "POST /api/graphql");
    }

    /// What a document comes to when the first answer is this one and the next is data: the number of requests, and the
    /// data or the error.
    #[track_caller]
    fn check(document: Document, first: ResponseTemplate, requests: usize, expect: Result<u8, &ApiError>) {
        let server = TestServer::start();
        let pauses = Pauses::default();
        server.mount(Mock::given(method("POST")).respond_with(first).up_to_n_times(1));
        server.mount(Mock::given(method("POST")).respond_with(answer(&json!({"data": 1}))));
        let api = Api::new(&server.address(), None, Transport::default().pause(pauses.pause()));
        let result = api.graphql::<u8>(document, &json!({}));
        assert_eq!(result.as_ref(), expect.as_ref().map_err(|error| *error));
        assert_eq!((server.requests(), pauses.seconds().len()), (requests, requests - 1));
    }

    fn rejected(document: Document, kind: Option<&str>, message: &str) -> ApiError {
        ApiError::Rejected {
            server: GithubServer::default(),
            request: document.name.to_owned(),
            kind: kind.map(Into::into),
            message: message.to_owned(),
        }
    }

    #[test]
    fn an_error_with_the_status_of_a_success_is_an_error() {
        let request = || "updateRefs".to_owned();
        let message = || "Resource not accessible by integration".to_owned();
        let server = GithubServer::default;
        for kind in ["FORBIDDEN", "INSUFFICIENT_SCOPES"] {
            let denied =
                ApiError::Denied { server: server(), request: request(), message: message(), needs: None };
            check(MUTATION, answer(&error(kind, &message())), 1, Err(&denied));
        }
        let absent =
            ApiError::NotFound { server: server(), request: request(), message: "no such ref".into() };
        check(MUTATION, answer(&error("NOT_FOUND", "no such ref")), 1, Err(&absent));
        let said = "Expected branch to point to \"abc\" but it did not.\n::error::x";
        let stale =
            rejected(MUTATION, Some("STALE_DATA"), "Expected branch to point to \"abc\" but it did not.…");
        check(MUTATION, answer(&error("STALE_DATA", said)), 1, Err(&stale));
        let mistake = rejected(QUERY, None, "no field `x`");
        check(QUERY, answer(&json!({"errors": [{"message": "no field `x`"}, {}]})), 1, Err(&mistake));
        let mute = rejected(QUERY, None, "it says nothing more");
        check(QUERY, answer(&json!({"errors": [{}], "data": 1})), 1, Err(&mute));
    }

    #[test]
    fn an_answer_that_is_none_is_told() {
        let server = TestServer::start();
        server.mount(Mock::given(method("POST")).respond_with(answer(&json!({"data": null}))));
        let api = Api::new(&server.address(), None, Transport::default());
        let error = api.graphql::<u8>(QUERY, &json!({})).unwrap_err().to_string();
        assert_eq!(error, "the answer to the repository cannot be read: invalid type: null, expected u8");
        let answers = Answers::start(&["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{"]);
        let api = Api::new(&answers.address(), None, Transport::default());
        let error = api.graphql::<u8>(QUERY, &json!({})).unwrap_err();
        assert!(matches!(error, ApiError::Unreadable { .. }), "{error:?}");
    }

    #[test]
    fn a_limit_is_waited_for_whatever_its_status() {
        let minute = |kind: &str| answer(&error(kind, "API rate limit already exceeded for user ID 1."));
        for document in [QUERY, MUTATION] {
            for kind in ["RATE_LIMIT", "RATE_LIMITED"] {
                check(document, minute(kind), 2, Ok(1));
            }
            check(document, ResponseTemplate::new(403).insert_header("retry-after", "7"), 2, Ok(1));
            let secondary = json!({"message": "You have exceeded a secondary rate limit."});
            check(document, ResponseTemplate::new(403).set_body_json(secondary), 2, Ok(1));
        }
        let long = minute("RATE_LIMITED").insert_header("retry-after", "3600");
        let limited =
            ApiError::Limited { server: GithubServer::default(), wait: std::time::Duration::from_hours(1) };
        check(QUERY, long, 1, Err(&limited));
    }

    #[test]
    fn a_mutation_that_may_have_been_made_is_not_made_again() {
        let trouble = error("SERVICE_UNAVAILABLE", "busy");
        let failed = |request: &str, reason: &str| ApiError::Unavailable {
            request: request.into(),
            reason: reason.into(),
        };
        check(QUERY, answer(&trouble), 2, Ok(1));
        check(MUTATION, answer(&trouble), 1, Err(&failed("updateRefs", "busy")));
        let timeout = "Something went wrong while executing your query.";
        let untyped = json!({"data": null, "errors": [{"message": timeout}]});
        check(QUERY, answer(&untyped), 2, Ok(1));
        check(MUTATION, answer(&untyped), 1, Err(&failed("updateRefs", timeout)));
        check(QUERY, ResponseTemplate::new(502), 2, Ok(1));
        check(MUTATION, ResponseTemplate::new(502), 1, Err(&failed("POST /graphql", "status 502")));
    }
}
