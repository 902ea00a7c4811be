//! A client of the language server: it says what a test tells it to, and remembers what it is told.

use std::io::{BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Project;

/// So long a test waits before it fails instead.
const PATIENCE: Duration = Duration::from_mins(5);

/// A conversation with the server.
pub(super) struct Client {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    /// What was not waited for yet.
    heard: Vec<Value>,
    asked: u64,
}

impl Client {
    /// Starts the server in a project, and says nothing.
    pub(super) fn silent(project: &Project) -> Self {
        let mut command = project.command(&["lsp", "--stdio"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, mut out) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, from) = channel();
        thread::spawn(move || {
            while let Some(message) = message(&mut out) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self { child, to, from, heard: Vec::new(), asked: 0 }
    }

    /// Starts the server with a project open in the editor.
    pub(super) fn open_in(project: &Project, capabilities: &Value) -> Self {
        let mut client = Self::silent(project);
        let folder = json!({"uri": uri(project.path()), "name": "project"});
        let params = json!({"processId": null, "capabilities": capabilities, "workspaceFolders": [folder]});
        client.ask("initialize", &params);
        client.say("initialized", &json!({}));
        client
    }

    /// Sends bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).unwrap();
        self.to.flush().unwrap();
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        self.raw(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    /// Says something that has no answer.
    pub(super) fn say(&mut self, method: &str, params: &Value) {
        self.send(json!({"method": method, "params": params}));
    }

    /// Sends a request, and returns its id.
    pub(super) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        self.send(json!({"id": self.asked, "method": method, "params": params}));
        self.asked
    }

    /// Sends a request, and returns the whole answer.
    pub(super) fn answer(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer_to(id)
    }

    /// Waits for the answer to a request.
    pub(super) fn answer_to(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Sends a request, and returns what comes of it.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Waits for a message.
    #[track_caller]
    pub(super) fn wait(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&is_meant) {
            return self.heard.remove(at);
        }
        loop {
            let message = self.from.recv_timeout(PATIENCE).expect("the server says no more");
            if is_meant(&message) {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Waits until the diagnostics of a file are published.
    #[track_caller]
    pub(super) fn published(&mut self, file: &Path) -> Vec<Value> {
        let uri = uri(file);
        let is_meant = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri
        };
        self.wait(is_meant)["params"]["diagnostics"].as_array().unwrap().clone()
    }

    /// Waits until a finding with a code is published for a file.
    #[track_caller]
    pub(super) fn published_with(&mut self, file: &Path, code: &str) {
        while !self.published(file).iter().any(|finding| finding["code"] == code) {}
    }

    /// Waits until nothing but findings with these codes is published for a file.
    #[track_caller]
    pub(super) fn published_only(&mut self, file: &Path, codes: &[&str]) {
        while !self
            .published(file)
            .iter()
            .map(|finding| finding["code"].as_str())
            .eq(codes.iter().map(|code| Some(*code)))
        {}
    }

    /// Tells whether something of this method was heard and not waited for.
    pub(super) fn has_heard(&self, method: &str) -> bool {
        self.heard.iter().any(|message| message["method"] == method)
    }

    /// Opens a document.
    pub(super) fn open(&mut self, file: &Path, text: &str) {
        let document = json!({"uri": uri(file), "languageId": "yaml", "version": 1, "text": text});
        self.say("textDocument/didOpen", &json!({"textDocument": document}));
    }

    /// Changes a document.
    pub(super) fn change(&mut self, file: &Path, version: i32, changes: &Value) {
        let document = json!({"uri": uri(file), "version": version});
        self.say("textDocument/didChange", &json!({"textDocument": document, "contentChanges": changes}));
    }

    /// Leaves as the protocol asks.
    pub(super) fn leave(mut self) {
        self.ask("shutdown", &Value::Null);
        self.say("exit", &Value::Null);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    /// Ends the input, and returns the exit code.
    pub(super) fn hang_up(self) -> Option<i32> {
        let Self { mut child, to, .. } = self;
        drop(to);
        child.wait().unwrap().code()
    }
}

fn message(out: &mut impl std::io::BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if out.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut bytes = vec![0; length?];
    out.read_exact(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns the address of a file; names of test files need no escaping.
pub(super) fn uri(file: &Path) -> String {
    format!("file://{}", file.display())
}
