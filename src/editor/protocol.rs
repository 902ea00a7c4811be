//! The wire of the language server: messages of a client as they come, and what is sent back.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read as _, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::Serialize;
use serde_json::{Value, json};

/// After so many messages in a row that cannot be read, there is no client at the other end.
const MOST_MALFORMED: usize = 100;

/// The longest message that is read. A document of a megabyte is not looked at any more, and a message may hold several.
const LONGEST: u64 = 256 << 20;

/// The longest line of a head.
const LONGEST_LINE: u64 = 8 * 1024;

/// A client: what it has said and was not answered yet, and the way to it.
pub(super) struct EditorClient<W> {
    incoming: Receiver<Message>,
    waiting: VecDeque<Message>,
    out: W,
    /// Whether nothing more can be said to it.
    is_gone: bool,
    /// How often it was asked something.
    asked: u32,
}

impl<W: Write> EditorClient<W> {
    /// Listens in a thread of its own, so that a message is seen while another one is worked at.
    pub(super) fn new(from: impl std::io::Read + Send + 'static, out: W) -> Self {
        let (sender, incoming) = channel();
        // Not waited for at the end: a read from the client cannot be broken off.
        thread::spawn(move || listen(&mut BufReader::new(from), &sender));
        Self { incoming, waiting: VecDeque::new(), out, is_gone: false, asked: 0 }
    }

    /// Waits for the next message. `None` means that there will be none.
    pub(super) fn next(&mut self) -> Option<Message> {
        self.take_in();
        self.waiting.pop_front().or_else(|| self.incoming.recv().ok()).filter(|_| !self.is_gone)
    }

    /// Tells whether a message waits.
    pub(super) fn is_waiting(&mut self) -> bool {
        self.take_in();
        !self.waiting.is_empty()
    }

    /// Takes in what has come. A request that was cancelled before its turn is answered with that.
    fn take_in(&mut self) {
        while let Ok(message) = self.incoming.try_recv() {
            match cancelled(&message) {
                Some(id) => self.cancel(&id),
                None => self.waiting.push_back(message),
            }
        }
    }

    fn cancel(&mut self, id: &RequestId) {
        let is_meant = |message: &Message| matches!(message, Message::Request(request) if request.id == *id);
        if let Some(at) = self.waiting.iter().position(is_meant) {
            self.waiting.remove(at);
            self.refuse(id.clone(), ErrorCode::RequestCanceled, "the request was cancelled");
        }
    }

    /// Answers a request.
    pub(super) fn answer(&mut self, id: RequestId, result: &impl Serialize) {
        let result = serde_json::to_value(result).unwrap_or(Value::Null);
        self.send(&Message::Response(Response::new_ok(id, result)));
    }

    /// Answers a request with why it has no answer.
    pub(super) fn refuse(&mut self, id: RequestId, code: ErrorCode, why: impl Into<String>) {
        self.send(&Message::Response(Response::new_err(id, code as i32, why.into())));
    }

    /// Says something that has no answer.
    pub(super) fn notify(&mut self, method: &str, params: &impl Serialize) {
        self.send(&Message::Notification(Notification::new(method.to_owned(), params)));
    }

    /// Asks for something of which the answer is not needed.
    pub(super) fn ask(&mut self, method: &str, params: &impl Serialize) {
        self.asked += 1;
        let id = RequestId::from(format!("ll-loop-{}", self.asked));
        self.send(&Message::Request(Request::new(id, method.to_owned(), params)));
    }

    fn send(&mut self, message: &Message) {
        self.is_gone |= message.write(&mut self.out).is_err();
    }
}

/// Reads messages until the client is gone.
fn listen(from: &mut impl BufRead, to: &Sender<Message>) {
    let mut malformed = 0;
    while malformed < MOST_MALFORMED {
        match message(from) {
            Ok(Some(message)) => {
                malformed = 0;
                if to.send(message).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => malformed += 1,
            Ok(None) | Err(_) => return,
        }
    }
}

/// Reads a message: a head with its length, and that many bytes. No room is made for what does not come.
fn message(from: &mut impl BufRead) -> std::io::Result<Option<Message>> {
    let malformed = |what: &str| std::io::Error::new(ErrorKind::InvalidData, what.to_owned());
    let mut length = None;
    loop {
        let mut line = Vec::new();
        // A line without an end must not fill the memory.
        from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        let Some(head) = line.strip_suffix(b"\r\n") else {
            return if line.is_empty() { Ok(None) } else { Err(malformed("a line of the head has no end")) };
        };
        if head.is_empty() {
            break;
        }
        let (name, value) = std::str::from_utf8(head)
            .ok()
            .and_then(|head| head.split_once(':'))
            .ok_or_else(|| malformed("a line of the head has no name"))?;
        if name.eq_ignore_ascii_case("Content-Length") {
            length = Some(value.trim().parse::<u64>().map_err(|_| malformed("the length is no number"))?);
        }
    }
    let length = length.ok_or_else(|| malformed("the head has no length"))?;
    let mut body = from.by_ref().take(length);
    if length > LONGEST {
        // Read all the same, because the next message stands behind it.
        std::io::copy(&mut body, &mut std::io::sink())?;
        return Err(malformed("the message is too long"));
    }
    let mut bytes = Vec::new();
    body.read_to_end(&mut bytes)?;
    // The client has ended within a message.
    if (bytes.len() as u64) < length {
        return Ok(None);
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|_| malformed("the message is not one of JSON-RPC"))
}

/// Returns which request a message takes back.
fn cancelled(message: &Message) -> Option<RequestId> {
    let Message::Notification(Notification { method, params }) = message else { return None };
    if method != "$/cancelRequest" {
        return None;
    }
    serde_json::from_value(params.get("id").unwrap_or(&json!(null)).clone()).ok()
}
