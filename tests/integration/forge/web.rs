//! A small web server for tests: every connection has a thread of its own, so that requests really come at once, and a
//! connection can be lost on purpose.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// The path, percent-encoded as it came.
    pub(crate) path: String,
    pub(crate) query: String,
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the body, where it is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the parameters of the query, decoded.
    pub(crate) fn parameters(&self) -> BTreeMap<String, String> {
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
        };
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
    }

    fn line(&self) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{} {}{mark}{}", self.method, self.path, self.query)
    }
}

/// What comes of a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, body.to_string()).with("content-type", "application/json; charset=utf-8")
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// How a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 500 in place of the answer.
    Error,
    /// The connection is lost.
    Lost,
}

/// When it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Nothing has been done yet.
    Before,
    /// All has been done, and only the answer is missing.
    After,
}

/// A request that goes wrong, and how many of those after it do so too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    /// The first one; the requests are counted from 0.
    pub(crate) at: usize,
    pub(crate) count: usize,
    pub(crate) fault: Fault,
    pub(crate) when: When,
}

/// A request there was, and its result.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// `GET /path?query`
    pub(crate) line: String,
    pub(crate) asked: Asked,
    /// Nothing where the connection was lost.
    pub(crate) status: Option<u16>,
}

#[derive(Default)]
struct State {
    begun: usize,
    planned: Option<Planned>,
    served: Vec<Served>,
}

/// The server.
pub(crate) struct Web {
    address: String,
    state: Arc<Mutex<State>>,
    is_over: Arc<AtomicBool>,
}

/// Answers requests, several at once.
pub(crate) trait Serves: Send + Sync + 'static {
    fn serve(&self, asked: &Asked) -> Answer;
}

impl Web {
    pub(crate) fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    /// Serves whoever connects. The address is known before, because answers name it.
    pub(crate) fn start(listener: TcpListener, site: Arc<dyn Serves>) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (of_thread, ends) = (Arc::clone(&state), Arc::clone(&is_over));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let (site, state) = (Arc::clone(&site), Arc::clone(&of_thread));
                let Ok(stream) = stream else { continue };
                std::thread::spawn(move || {
                    // A client that goes away is not a failure of the server.
                    let _gone = connection(stream, site.as_ref(), &state);
                });
            }
        });
        Self { address, state, is_over }
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Forgets the requests there were, and counts from 0 again.
    pub(crate) fn begin(&self, planned: Option<Planned>) {
        *self.state() = State { planned, ..State::default() };
    }

    /// Returns the requests there were, in the order of their answers.
    pub(crate) fn served(&self) -> Vec<Served> {
        self.state().served.clone()
    }

    /// Returns them as `METHOD path?query status`.
    pub(crate) fn log(&self) -> Vec<String> {
        let line = |served: &Served| match served.status {
            Some(status) => format!("{} {status}", served.line),
            None => format!("{} lost", served.line),
        };
        self.state().served.iter().map(line).collect()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(&self.address));
    }
}

#[expect(clippy::disallowed_methods, reason = "a server tells the time")]
fn connection(stream: TcpStream, site: &dyn Serves, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(asked) = request(&mut reader, &mut stream)? {
        let number = {
            let mut state = state.lock().unwrap();
            state.begun += 1;
            state.begun - 1
        };
        let planned = state.lock().unwrap().planned;
        let fault = planned.filter(|plan| (plan.at..plan.at.saturating_add(plan.count)).contains(&number));
        let answer = match fault {
            None => Some(site.serve(&asked)),
            Some(plan) => {
                if plan.when == When::After {
                    let _unheard = site.serve(&asked);
                }
                (plan.fault == Fault::Error).then(|| Answer::new(500, "{\"message\": \"Server Error\"}"))
            }
        };
        let status = answer.as_ref().map(|answer| answer.status);
        let (line, is_head) = (asked.line(), asked.method == "HEAD");
        state.lock().unwrap().served.push(Served { line, asked, status });
        let Some(answer) = answer else { return stream.shutdown(Shutdown::Both) };
        // Clients reckon with the clock of the server.
        let now = chrono::Utc::now().format("%a, %d %b %Y %H:%M:%S GMT");
        let mut bytes = format!("HTTP/1.1 {} -\r\ndate: {now}\r\n", answer.status).into_bytes();
        for (name, value) in &answer.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        if answer.status != 204 {
            bytes.extend(format!("content-length: {}\r\n", answer.body.len()).bytes());
        }
        bytes.extend(b"\r\n");
        if !is_head {
            bytes.extend(answer.body);
        }
        stream.write_all(&bytes)?;
    }
    Ok(())
}

/// Reads one request; nothing where the client has gone.
fn request(reader: &mut BufReader<TcpStream>, stream: &mut TcpStream) -> std::io::Result<Option<Asked>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut asked = Asked {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: BTreeMap::new(),
        body: Vec::new(),
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        asked.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    if asked.header("expect").eq_ignore_ascii_case("100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if asked.header("transfer-encoding").eq_ignore_ascii_case("chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = u64::from_str_radix(size.trim(), 16).map_err(std::io::Error::other)?;
            reader.by_ref().take(size).read_to_end(&mut asked.body)?;
            reader.read_line(&mut String::new())?;
            if size == 0 {
                break;
            }
        }
    } else {
        let size: u64 = asked.header("content-length").parse().unwrap_or(0);
        reader.by_ref().take(size).read_to_end(&mut asked.body)?;
    }
    Ok(Some(asked))
}
