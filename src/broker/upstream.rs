//! The way to a service: a request goes there with its key, and what comes back is handed on as it comes, and read on the
//! way.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::admitted::{AdmittedCall, CallTerms, OpenRequest};
use super::cassette::WireAnswer;
use super::conversation::WireRequest;
use super::count::CountRequest;
use super::host_row::is_loopback;
use super::meter::Meter;
use super::model_service::{Endpoint, answer_headers, request_headers, without_key};
use super::wire_report::ServiceFailure;
use crate::forge::github::client::{Body, Client, LostAnswer};
use crate::forge::github::http::Transport;

/// How long a service may say nothing while it thinks.
const IDLE: Duration = Duration::from_mins(15);

/// How long a service that cannot be reached is waited for, before it is tried each further time.
const WAITS: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];

/// How much is read at once.
// As much as a record of TLS can hold.
const READ: usize = 16 * 1024;

/// How many pieces of an answer wait for a CLI that reads slowly.
// With pieces of 16 KiB, 1 MiB for each answer: a CLI that does not read must not fill the memory.
const AHEAD: usize = 64;

/// The longest answer that counts tokens.
const LONGEST_COUNT: u64 = 1 << 20;

/// The client of services.
#[derive(Clone, Debug)]
pub struct Upstream {
    client: Client,
    /// For what is on this machine, where no proxy leads.
    near: Client,
}

impl Upstream {
    /// Makes a client that takes the proxy of a transport.
    pub fn new(transport: &Transport) -> Self {
        Self { client: transport.patient_client(IDLE), near: Transport::default().patient_client(IDLE) }
    }

    fn send(&self, request: Request<Option<&[u8]>>) -> Result<Response<Body>, LostAnswer> {
        // What is on this machine is not asked through a proxy.
        let is_near = request.uri().host().is_some_and(is_loopback);
        let client = if is_near { &self.near } else { &self.client };
        client.send(request)
    }

    /// Asks a service how many tokens a request has; none where it does not say.
    pub(super) fn count(&self, count: &CountRequest, terms: &CallTerms) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Anthropic refuses a request that names no version; the others pass over the header.
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        let body = count.body.to_string();
        let mut request = Request::new(Some(body.as_bytes()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = address(&terms.base, &count.path, None)?;
        *request.headers_mut() = request_headers(&headers, &terms.key);
        let mut answer = self.send(request).ok().filter(|answer| answer.status().is_success())?;
        count.read(&answer.body_mut().read_up_to(LONGEST_COUNT).ok()?)
    }
}

/// Returns the address of a path of a service.
fn address(base: &Uri, path: &str, query: Option<&str>) -> Option<Uri> {
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let below = base.path().trim_end_matches('/');
    let query = without_key(query);
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{authority}{below}{path}{mark}{query}").parse().ok()
}

/// The head of an answer; none where there is no answer.
type AnswerHead = Option<(StatusCode, HeaderMap)>;

/// What the server gets of an answer.
pub(super) struct ComingAnswer {
    pub(super) head: oneshot::Receiver<AnswerHead>,
    pub(super) pieces: mpsc::Receiver<io::Result<Bytes>>,
}

/// A request on its way.
pub(super) struct Passage {
    call: Arc<AdmittedCall>,
    open: Option<OpenRequest>,
    endpoint: Endpoint,
    /// What it is known by, where its answer is to be kept.
    kept: Option<WireRequest>,
    head: oneshot::Sender<AnswerHead>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

impl Passage {
    /// Makes a way for a request, and what comes out of it.
    pub(super) fn new(
        call: Arc<AdmittedCall>,
        open: Option<OpenRequest>,
        endpoint: Endpoint,
        kept: Option<WireRequest>,
    ) -> (Self, ComingAnswer) {
        let (head, coming_head) = oneshot::channel();
        let (pieces, coming_pieces) = mpsc::channel(AHEAD);
        let coming = ComingAnswer { head: coming_head, pieces: coming_pieces };
        (Self { call, open, endpoint, kept, head, pieces }, coming)
    }

    /// Makes the request to the service of one that came.
    pub(super) fn request(
        &self,
        of: &http::request::Parts,
        path: &str,
        query: Option<&str>,
        body: Option<Vec<u8>>,
    ) -> Option<Request<Option<Vec<u8>>>> {
        let terms = &self.call.terms;
        let mut request = Request::new(body);
        *request.method_mut() = of.method.clone();
        *request.uri_mut() = address(&terms.base, path, query)?;
        *request.headers_mut() = request_headers(&of.headers, &terms.key);
        Some(request)
    }

    /// Ends a request that is not made.
    pub(super) fn decline(self) {
        if let Some(open) = self.open {
            self.call.declined(open);
        }
    }

    /// Makes a request and hands on its answer. This takes as long as it takes.
    pub(super) fn through(self, upstream: &Upstream, request: Request<Option<Vec<u8>>>) {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, body.as_deref());
        let mut answer = upstream.send(request.clone());
        for wait in WAITS {
            // What was never sent costs nothing, however often that is tried.
            if !matches!(answer, Err(LostAnswer::Unsent(_))) || self.head.is_closed() {
                break;
            }
            thread::sleep(wait);
            answer = upstream.send(request.clone());
        }
        match answer {
            Ok(answer) => self.hand_on(answer),
            Err(lost) => {
                let failure = match lost {
                    LostAnswer::Unsent(_) | LostAnswer::Impossible(_) => ServiceFailure::Unreached,
                    LostAnswer::Unanswered(_) => ServiceFailure::Unanswered,
                };
                self.call.failed(self.open, failure);
                let _gone = self.head.send(None);
            }
        }
    }

    fn hand_on(self, answer: Response<Body>) {
        let Self { call, open, endpoint, kept, head, pieces } = self;
        let (parts, body) = answer.into_parts();
        let status = parts.status;
        // Without either, an answer ends where its connection does, and nobody can tell one that
        // was cut.
        let has_end = [CONTENT_LENGTH, TRANSFER_ENCODING].iter().any(|name| parts.headers.contains_key(name));
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let mut meter = Meter::new(endpoint, content_type);
        // These say that the service is in trouble. Any other refusal is about this one request,
        // and the next may well pass.
        let is_failure = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
        if is_failure {
            call.failed(open, ServiceFailure::Status(status));
        } else if let Some(open) = open.filter(|_| !status.is_success()) {
            call.declined(open);
        }
        // Who asks once more after a failure is given the answer to that.
        let mut copy = kept.filter(|_| !is_failure).map(|request| (request, Vec::new()));
        let mut mask = call.terms.key.mask();
        let mut headers = answer_headers(&parts.headers);
        for value in headers.values_mut().filter(|value| mask.is_in(value.as_bytes())) {
            *value = HeaderValue::from_static("***");
        }
        let mut is_wanted = head.send(Some((status, headers))).is_ok();
        let mut pass_on = |piece: Vec<u8>| {
            meter.push(&piece);
            if let Some((_, copy)) = &mut copy {
                copy.extend_from_slice(&piece);
            }
            pieces.blocking_send(Ok(Bytes::from(piece))).is_ok()
        };
        let mut reader = body.into_reader();
        let mut room = vec![0; READ];
        let mut is_cut = !has_end;
        while is_wanted {
            match reader.read(&mut room) {
                Ok(0) => break,
                Ok(length) => is_wanted = pass_on(mask.pass(&room[..length])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    is_cut = true;
                    // The CLI sees what we have seen: an answer without its end.
                    let _gone = pieces.blocking_send(Err(error));
                    break;
                }
            }
        }
        let rest = mask.end();
        if is_wanted && !rest.is_empty() {
            is_wanted = pass_on(rest);
        }
        // A CLI that hung up left an answer unread, and what the rest of it took is as unknown as
        // that of a broken one.
        let is_cut = is_cut || !is_wanted;
        let reading = meter.end(is_cut);
        if let Some((request, copy)) = copy.filter(|_| !is_cut || reading.is_final) {
            keep(&call, &request, status, content_type, &copy);
        }
        if let Some(open) = open.filter(|_| status.is_success()) {
            call.answered(open, &reading);
        }
    }
}

/// Keeps an answer that is whole.
fn keep(
    call: &AdmittedCall,
    request: &WireRequest,
    status: StatusCode,
    content_type: Option<&str>,
    body: &[u8],
) {
    let Some(cassette) = &call.terms.cassette else { return };
    let content_type = content_type.map(str::to_owned);
    let body = String::from_utf8_lossy(body).into_owned();
    if let Err(why) = cassette.keep(request, WireAnswer { status: status.as_u16(), content_type, body }) {
        call.not_kept(why);
    }
}
