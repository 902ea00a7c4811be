//! Servers for the tests of clients: one that answers as it is told, one that says bytes and hangs up; and pauses that
//! take no time.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use wiremock::{Mock, MockServer};

use super::http::Pause;

/// A server of mocks that runs on a thread of its own, so that tests may block.
pub(crate) struct TestServer {
    runtime: Runtime,
    server: MockServer,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(MockServer::start());
        Self { runtime, server }
    }

    pub(crate) fn address(&self) -> String {
        self.server.uri()
    }

    pub(crate) fn mount(&self, mock: Mock) {
        self.runtime.block_on(mock.mount(&self.server));
    }

    /// Returns the requests there were, each as its method and path with query, and its body.
    pub(crate) fn received(&self) -> Vec<(String, Value)> {
        let requests = self.runtime.block_on(self.server.received_requests()).unwrap();
        let target = |url: &wiremock::http::Url| match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        requests
            .iter()
            .map(|request| {
                let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
                (format!("{} {}", request.method, target(&request.url)), body)
            })
            .collect()
    }

    /// Returns those that were to change something.
    pub(crate) fn changes(&self) -> Vec<(String, Value)> {
        self.received().into_iter().filter(|(request, _)| !request.starts_with("GET ")).collect()
    }

    /// Returns how many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.runtime.block_on(self.server.received_requests()).unwrap().len()
    }
}

/// A server that gives each connection one of these texts, as it is, and hangs up.
pub(crate) struct Answers(SocketAddr);

impl Answers {
    pub(crate) fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                // A request is read first: a connection that is closed with unread bytes is reset.
                let _read = stream.read(&mut [0; 16 << 10]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self(address)
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.0)
    }
}

/// What a client would have waited for.
#[derive(Clone, Default)]
pub(crate) struct Pauses {
    waited: Arc<Mutex<Vec<Duration>>>,
    forbidden: bool,
}

impl Pauses {
    /// A client that pauses here has failed.
    pub(crate) fn none() -> Self {
        Self { forbidden: true, ..Self::default() }
    }

    pub(crate) fn pause(&self) -> Pause {
        let this = self.clone();
        Pause::with(move |time| {
            assert!(!this.forbidden, "waited for {time:?}");
            this.waited.lock().unwrap().push(time);
        })
    }

    /// Returns the pauses there were, in whole seconds.
    pub(crate) fn seconds(&self) -> Vec<u64> {
        self.waited.lock().unwrap().iter().map(Duration::as_secs).collect()
    }
}
