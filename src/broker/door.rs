//! The server: takes the requests of CLIs on loopback, and hands on those that may be.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, thread};

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::{mpsc, oneshot};

use super::admitted::{AdmittedCall, CallTerms, OpenRequest};
use super::asked::AskedFor;
use super::cassette::{WireAnswer, WireCassette};
use super::conversation::WireRequest;
use super::count::CountRequest;
use super::meter::Meter;
use super::model_service::{Endpoint, ServiceApi, UNREACHED, tokens};
use super::upstream::{Passage, Upstream};
use super::wire_report::WireReport;

/// The longest request that is taken.
// A body is held in memory until it was looked at, and an agent may send any.
const LONGEST: usize = 64 << 20;

/// How many answers are read at once; more of them wait.
const THREADS: usize = 512;

/// The broker of a run. It ends when it is dropped.
#[derive(Debug)]
pub struct Broker {
    shared: Arc<Shared>,
    port: u16,
    /// What every token begins with.
    tokens: String,
    /// The server ends when this is gone.
    _open: oneshot::Sender<Infallible>,
}

/// A call that may ask. Its token is of no use once this is dropped.
#[derive(Debug)]
pub struct CallPass {
    shared: Arc<Shared>,
    call: Arc<AdmittedCall>,
    token: String,
}

#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    calls: Mutex<BTreeMap<String, Arc<AdmittedCall>>>,
    /// Requests with no token of a call.
    strangers: AtomicU32,
}

impl Broker {
    /// Begins to listen on loopback. The tokens of calls begin with a text that nobody can guess, by which they are known
    /// where secrets are masked.
    ///
    /// # Errors
    /// There is no port, or no thread.
    pub fn open(upstream: Upstream, tokens: String) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared { upstream, calls: Mutex::default(), strangers: AtomicU32::default() });
        let (open, closed) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .build()?;
        let serving = Arc::clone(&shared);
        thread::Builder::new().name("broker".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, serving) => {}
                    _ = closed => {}
                }
            });
            // Somebody who is asked may take a long time to answer.
            runtime.shutdown_background();
        })?;
        Ok(Self { shared, port, tokens, _open: open })
    }

    /// Returns the port of loopback that it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets a call ask, by a token of its own.
    pub fn admit(&self, terms: CallTerms) -> CallPass {
        let call = Arc::new(AdmittedCall::new(terms));
        let token = format!("{}{}", self.tokens, uuid::Uuid::new_v4().simple());
        self.shared.calls().insert(token.clone(), Arc::clone(&call));
        CallPass { shared: Arc::clone(&self.shared), call, token }
    }

    /// Returns how many requests had no token of a call since this was asked last.
    pub fn take_strangers(&self) -> u32 {
        self.shared.strangers.swap(0, Ordering::Relaxed)
    }
}

impl CallPass {
    /// Returns the token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Ends the call, and returns what it did.
    pub async fn end(self) -> WireReport {
        // The token goes first, so that nothing new begins while the last answers are settled.
        self.shared.calls().remove(&self.token);
        self.call.end().await
    }
}

// A call that is cancelled never comes to `end`, and its token must not outlive it.
impl Drop for CallPass {
    fn drop(&mut self) {
        self.shared.calls().remove(&self.token);
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AdmittedCall>>> {
        // A panic elsewhere leaves the map whole: each change of it is one insertion or removal.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the call that a request belongs to.
    fn call_of(&self, request: &Request<Incoming>) -> Option<Arc<AdmittedCall>> {
        let calls = self.calls();
        tokens(request.headers(), request.uri().query()).find_map(|token| calls.get(token).cloned())
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // There are too many open files for the moment.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        // Answers come in small pieces, which are not to wait for each other.
        let _slower = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(request, &shared).await) }
            });
            // Who hangs up does so.
            let _gone = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// Answers a request.
async fn answer(request: Request<Incoming>, shared: &Shared) -> Response<Answer> {
    // Before the body is read: any process of the machine can connect to loopback.
    let Some(call) = shared.call_of(&request) else {
        shared.strangers.fetch_add(1, Ordering::Relaxed);
        let api = guessed(request.uri().path());
        return refused(api, StatusCode::UNAUTHORIZED, "this is not the token of a call that is going on");
    };
    let api = call.terms.api;
    let path = request.uri().path().strip_prefix(api.prefix()).unwrap_or_default().to_owned();
    let Some((endpoint, model)) = api.endpoint(request.method(), &path) else {
        let what = format!("the broker of ll-loop forwards no `{} {path}`", request.method());
        return refused(api, StatusCode::NOT_FOUND, &what);
    };
    // What a packed request asks for is unknown.
    if request.headers().contains_key(CONTENT_ENCODING) {
        return refused(api, StatusCode::BAD_REQUEST, "the broker of ll-loop takes no packed body");
    }
    let (head, body) = request.into_parts();
    let Ok(body) = collected(body).await else {
        return refused(api, StatusCode::PAYLOAD_TOO_LARGE, "the request is too long, or has no end");
    };
    let asked = Asking { call, endpoint, path, query: head.uri.query().map(str::to_owned) };
    if let Some(cassette) = asked.call.terms.cassette.as_ref().filter(|cassette| cassette.replays()) {
        return asked.replayed(cassette, &head.method, model.as_deref(), &body).await;
    }
    if endpoint == Endpoint::Free {
        let body = Some(body).filter(|_| head.method == Method::POST);
        return asked.pass(None, &head, body, shared).await;
    }
    if let Some(failure) = asked.call.given_up() {
        // With a status at which no CLI asks again by itself.
        return refused(api, StatusCode::BAD_REQUEST, &format!("{failure}, too often to be asked once more"));
    }
    let (wanted, body) = match AskedFor::read(endpoint, model.as_deref(), &body) {
        Ok(read) => read,
        Err(why) => return refused(api, StatusCode::BAD_REQUEST, &why.to_string()),
    };
    match asked.admit(&wanted, &body, shared).await {
        Ok(open) => asked.pass(Some(open), &head, Some(body), shared).await,
        Err(why) => refused(api, StatusCode::BAD_REQUEST, &why),
    }
}

/// A request of a call.
struct Asking {
    call: Arc<AdmittedCall>,
    endpoint: Endpoint,
    path: String,
    query: Option<String>,
}

impl Asking {
    /// Lets it through, or says why it may not be.
    async fn admit(&self, wanted: &AskedFor, body: &[u8], shared: &Shared) -> Result<OpenRequest, String> {
        if let Err(refusal) = self.call.terms.policy.model(Some(&wanted.model)) {
            self.call.forbid();
            return Err(refusal.to_string());
        }
        let prices = &self.call.terms.prices;
        let worst = wanted.worst_case(prices);
        let shortage = match self.call.admit(&worst).await {
            Ok(open) => return Ok(open),
            Err(shortage) => shortage,
        };
        // Before it is refused because of its length, the service is asked how many tokens that is.
        let counted = self.counted(wanted, body, shared).await;
        let shortage = match counted {
            Some(counted) => match self.call.admit(&wanted.worst_case_counted(counted, prices)).await {
                Ok(open) => return Ok(open),
                Err(shortage) => shortage,
            },
            None => shortage,
        };
        let why = format!("the budget of this run refuses the request: {shortage}");
        self.call.refuse(shortage);
        Err(why)
    }

    async fn counted(&self, wanted: &AskedFor, body: &[u8], shared: &Shared) -> Option<u64> {
        if wanted.reaches_out() || !self.call.counts_tokens() {
            return None;
        }
        let count = CountRequest::of(self.endpoint, &self.path, body)?;
        let (upstream, call) = (shared.upstream.clone(), Arc::clone(&self.call));
        let counted = tokio::task::spawn_blocking(move || upstream.count(&count, &call.terms)).await;
        let counted = counted.ok().flatten();
        if counted.is_none() {
            // Remembered, or each further request would wait for the same answer.
            self.call.does_not_count();
        }
        counted
    }

    /// Answers it from a recording. Nothing is paid for that, so no cap is in its way.
    async fn replayed(
        &self,
        cassette: &WireCassette,
        method: &Method,
        model: Option<&str>,
        body: &[u8],
    ) -> Response<Answer> {
        let api = self.call.terms.api;
        let open = match AskedFor::read(self.endpoint, model, body) {
            _ if self.endpoint == Endpoint::Free => None,
            Ok((wanted, _)) => self.call.admit(&wanted.worst_case(&self.call.terms.prices)).await.ok(),
            Err(why) => return refused(api, StatusCode::BAD_REQUEST, &why.to_string()),
        };
        let request = WireRequest::read(api, method, &self.path, body, cassette.wording());
        let answer = match cassette.next(&request) {
            Ok(answer) => answer,
            // A CLI does without what costs nothing.
            Err(miss) if self.endpoint == Endpoint::Free => {
                return refused(api, StatusCode::NOT_FOUND, &miss.why);
            }
            Err(miss) => {
                let refusal = refused(api, StatusCode::BAD_REQUEST, &miss.why);
                self.call.missed(miss);
                if let Some(open) = open {
                    self.call.declined(open);
                }
                return refusal;
            }
        };
        let WireAnswer { status, content_type, body } = answer;
        // A recording is a file that anybody may have written, with any number in it.
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut meter = Meter::new(self.endpoint, content_type.as_deref());
        meter.push(body.as_bytes());
        match open {
            Some(open) if status.is_success() => self.call.answered(open, &meter.end(false)),
            Some(open) => self.call.declined(open),
            None => {}
        }
        let mut response = Response::new(Answer::Whole(Some(Bytes::from(body))));
        *response.status_mut() = status;
        let content_type = content_type.and_then(|of| HeaderValue::try_from(of).ok());
        response.headers_mut().extend(content_type.map(|of| (CONTENT_TYPE, of)));
        response
    }

    /// Hands it on, and its answer as it comes.
    async fn pass(
        self,
        open: Option<OpenRequest>,
        head: &http::request::Parts,
        body: Option<Vec<u8>>,
        shared: &Shared,
    ) -> Response<Answer> {
        let api = self.call.terms.api;
        let kept = self.call.terms.cassette.as_ref().map(|cassette| {
            let body = body.as_deref().unwrap_or_default();
            WireRequest::read(api, &head.method, &self.path, body, cassette.wording())
        });
        let (passage, answer) = Passage::new(self.call, open, self.endpoint, kept);
        let upstream = shared.upstream.clone();
        let request = passage.request(head, &self.path, self.query.as_deref(), body);
        let Some(request) = request else {
            passage.decline();
            return refused(api, StatusCode::BAD_REQUEST, "the request cannot be handed on");
        };
        tokio::task::spawn_blocking(move || passage.through(&upstream, request));
        match answer.head.await {
            Ok(Some((status, headers))) => {
                let mut response = Response::new(Answer::Stream(answer.pieces));
                (*response.status_mut(), *response.headers_mut()) = (status, headers);
                response
            }
            Ok(None) | Err(_) => refused(api, UNREACHED, "ll-loop had no answer of the service"),
        }
    }
}

/// Reads a body to its end.
async fn collected(mut body: Incoming) -> Result<Vec<u8>, UnreadBody> {
    let mut all = Vec::new();
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        match frame {
            None => return Ok(all),
            Some(Err(_)) => return Err(UnreadBody),
            Some(Ok(frame)) => {
                // Trailers are the only other kind of frame, and what a request asks for is not in them.
                let Ok(data) = frame.into_data() else { continue };
                if all.len() + data.len() > LONGEST {
                    return Err(UnreadBody);
                }
                all.extend_from_slice(&data);
            }
        }
    }
}

/// A body that was not read to its end.
struct UnreadBody;

/// Returns the API that somebody without a token probably means.
fn guessed(path: &str) -> ServiceApi {
    if path.contains("/messages") {
        ServiceApi::Anthropic
    } else if path.contains("/models/") {
        ServiceApi::Gemini
    } else {
        ServiceApi::OpenAi
    }
}

/// Refuses a request in the words of the service.
fn refused(api: ServiceApi, status: StatusCode, message: &str) -> Response<Answer> {
    let text = api.error(status, message).to_string();
    let mut response = Response::new(Answer::Whole(Some(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The body of an answer.
enum Answer {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<io::Result<Bytes>>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Stream(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }
}
