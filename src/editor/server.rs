//! The language server: answers a client until that says goodbye, and tells it what is found in its loops.
//!
//! One thread does everything. What takes its time, the look at a whole project, comes when no message waits, and is given up
//! when one arrives; so there is nothing to debounce, and no timer.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use ls_types::{
    Diagnostic, DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams,
    DocumentDiagnosticParams, InitializeParams, PublishDiagnosticsParams, Uri,
};
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::capabilities::{self, ClientAbilities};
use super::documents::file_of;
use super::editor_queries::{self, RequestRefusal, read};
use super::protocol::EditorClient;
use super::workspace::EditorWorkspace;
use crate::context::environment::Environment;

/// What the server reads of the environment; all the rest could change what is found from one editor to the next.
const VARIABLES: [&str; 1] = ["LL_LOOP_POLICY"];

/// Serves a client on standard input and output. Returns whether it said goodbye. Loops with names among `commands` get a
/// warning.
pub(crate) fn serve(commands: Vec<String>, env: &Environment) -> bool {
    let read = VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), env.get(name)?.to_owned())));
    let workspace = EditorWorkspace::new(Environment::of(read.collect()), commands);
    let client = EditorClient::new(std::io::stdin(), std::io::stdout());
    Server::new(client, workspace).run()
}

/// How far a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConversationPhase {
    /// The client has not said what it can.
    Greeting,
    Working,
    /// The client asked to shut down; only `exit` is to come.
    Leaving,
}

struct Server<W> {
    client: EditorClient<W>,
    workspace: EditorWorkspace,
    phase: ConversationPhase,
    abilities: ClientAbilities,
    /// What the client was told of each file.
    published: BTreeMap<PathBuf, Vec<Diagnostic>>,
    /// The document that was changed last, and is looked at first.
    changed: Option<PathBuf>,
}

impl<W: Write> Server<W> {
    fn new(client: EditorClient<W>, workspace: EditorWorkspace) -> Self {
        Self {
            client,
            workspace,
            phase: ConversationPhase::Greeting,
            abilities: ClientAbilities::default(),
            published: BTreeMap::new(),
            changed: None,
        }
    }

    /// Works until the client leaves. Returns whether it did so as agreed.
    fn run(mut self) -> bool {
        loop {
            if self.phase == ConversationPhase::Working && !self.client.is_waiting() {
                self.look();
            }
            match self.client.next() {
                Some(Message::Request(request)) => self.request(request),
                Some(Message::Notification(note)) if note.method == "exit" => {
                    return self.phase == ConversationPhase::Leaving;
                }
                Some(Message::Notification(note)) if self.phase == ConversationPhase::Working => {
                    self.notification(note);
                }
                // What we ask is answered with nothing that matters.
                Some(Message::Notification(_) | Message::Response(_)) => {}
                None => return false,
            }
        }
    }

    /// Looks at what has changed: at the document under the cursor, then at everything that could depend on it.
    fn look(&mut self) {
        if let Some(path) = self.changed.take().filter(|_| !self.abilities.pulls)
            && let Some(found) = self.workspace.check_first(&path)
        {
            for (path, diagnostics) in found {
                self.publish(path, diagnostics);
            }
        }
        if !self.workspace.is_stale() {
            return;
        }
        let Self { client, workspace, .. } = self;
        if workspace.check(&mut || !client.is_waiting()) {
            self.publish_all();
        }
    }

    fn publish_all(&mut self) {
        let found = self.workspace.found();
        let gone: Vec<PathBuf> =
            self.published.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        let before = self.published.clone();
        for (path, diagnostics) in found.into_iter().chain(gone.into_iter().map(|path| (path, Vec::new()))) {
            self.publish(path, diagnostics);
        }
        // A refresh makes the client ask for every file again, so that it takes news.
        if self.abilities.refreshes && self.published != before {
            self.client.ask("workspace/diagnostic/refresh", &Value::Null);
        }
    }

    /// Tells the client what is found in a file, if that is news. A client that asks by itself is not told.
    fn publish(&mut self, path: PathBuf, diagnostics: Vec<Diagnostic>) {
        let is_news = self.published.get(&path).is_none_or(|known| *known != diagnostics);
        // A file in which nothing was ever found needs no word, unless it is open and its editor waits for one.
        let is_empty_news = diagnostics.is_empty() && !self.published.contains_key(&path);
        let open = self.workspace.documents.get(&path);
        if is_news && !(is_empty_news && open.is_none()) && !self.abilities.pulls {
            let uri = open.map(|open| open.uri.clone()).or_else(|| Uri::from_file_path(&path));
            if let Some(uri) = uri {
                let (version, diagnostics) = (open.map(|open| open.version), diagnostics.clone());
                let params = PublishDiagnosticsParams { uri, diagnostics, version };
                self.client.notify("textDocument/publishDiagnostics", &params);
            }
        }
        // Also for a client that asks, whose answers are read from here.
        self.published.insert(path, diagnostics);
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        match (self.phase, method.as_str()) {
            (ConversationPhase::Greeting, "initialize") => self.initialize(id, params),
            (ConversationPhase::Greeting, _) => {
                self.client.refuse(id, ErrorCode::ServerNotInitialized, "`initialize` has to come first");
            }
            (ConversationPhase::Leaving, _) => {
                self.client.refuse(id, ErrorCode::InvalidRequest, "the server is shutting down");
            }
            (ConversationPhase::Working, "shutdown") => {
                self.phase = ConversationPhase::Leaving;
                self.client.answer(id, &Value::Null);
            }
            (ConversationPhase::Working, "initialize") => {
                self.client.refuse(id, ErrorCode::InvalidRequest, "`initialize` may come once");
            }
            (ConversationPhase::Working, method) => match self.asked(method, params) {
                Ok(answer) => self.client.answer(id, &answer),
                Err(why) => self.client.refuse(id, code_of(&why), why.to_string()),
            },
        }
    }

    fn initialize(&mut self, id: RequestId, params: Value) {
        let params: InitializeParams = match serde_json::from_value(params) {
            Ok(params) => params,
            Err(error) => {
                self.client.refuse(id, ErrorCode::InvalidParams, error.to_string());
                return;
            }
        };
        self.abilities = ClientAbilities::of(&params);
        self.workspace.unit = self.abilities.unit;
        self.workspace.mutes_schema = self.abilities.mutes_schema;
        self.workspace.renames_files = self.abilities.renames_files;
        self.workspace.runs_loops = self.abilities.runs_loops;
        for folder in capabilities::folders(&params) {
            self.workspace.open_folder(folder);
        }
        self.client.answer(id, &capabilities::answer(self.abilities));
        // The protocol forbids any other message before this answer, so the looks begin only now.
        self.phase = ConversationPhase::Working;
    }

    /// Answers what a client asks in the course of its work.
    fn asked(&mut self, method: &str, params: Value) -> Result<Value, RequestRefusal> {
        match method {
            "textDocument/diagnostic" => {
                let params: DocumentDiagnosticParams = read(params)?;
                Ok(self.diagnostics_of(&params.text_document.uri))
            }
            "workspace/diagnostic" => Ok(self.diagnostics_of_workspace()),
            method => editor_queries::answer(method, params, &self.workspace),
        }
    }

    /// Returns what is found in a document, for a client that asks.
    fn diagnostics_of(&mut self, uri: &Uri) -> Value {
        self.catch_up();
        // A file that nothing is found in has no entry.
        let found = file_of(uri).and_then(|path| self.published.get(&path));
        let items: Vec<_> = found.into_iter().flatten().collect();
        json!({"kind": "full", "items": items})
    }

    /// Returns what is found in every file, also in those that are not open, for a client that asks.
    fn diagnostics_of_workspace(&mut self) -> Value {
        self.catch_up();
        let report = |(path, items): (&PathBuf, &Vec<Diagnostic>)| {
            let open = self.workspace.documents.get(path);
            let uri = open.map(|open| open.uri.clone()).or_else(|| Uri::from_file_path(path))?;
            let version = open.map(|open| open.version);
            Some(json!({"kind": "full", "uri": uri, "version": version, "items": items}))
        };
        let items: Vec<Value> = self.published.iter().filter_map(report).collect();
        json!({"items": items})
    }

    /// Looks at everything that has changed.
    fn catch_up(&mut self) {
        if self.workspace.is_stale() {
            // Not given up for a message that waits, because the client waits for this very answer.
            self.workspace.check(&mut || true);
            self.publish_all();
        }
    }

    /// Takes in what a client says. What cannot be understood is left alone, as the protocol asks.
    fn notification(&mut self, note: Notification) {
        let Notification { method, params } = note;
        match method.as_str() {
            "initialized" if self.abilities.watches => {
                self.client.ask("client/registerCapability", &capabilities::watched_files());
            }
            "textDocument/didOpen" => self.with(params, |server, params: DidOpenTextDocumentParams| {
                let path = server.workspace.documents.open(params.text_document)?;
                // Whoever opens a document waits for a word on it, also that nothing is wrong.
                server.published.remove(&path);
                Some(path)
            }),
            "textDocument/didChange" => self.with(params, |server, params: DidChangeTextDocumentParams| {
                let (document, unit) = (params.text_document, server.workspace.unit);
                let EditorWorkspace { documents, .. } = &mut server.workspace;
                documents.change(&document.uri, document.version, params.content_changes, unit)
            }),
            "textDocument/didClose" => self.with(params, |server, params: DidCloseTextDocumentParams| {
                server.workspace.documents.close(&params.text_document.uri)
            }),
            "textDocument/didSave" => {
                self.with(params, |_, params: DidSaveTextDocumentParams| file_of(&params.text_document.uri));
            }
            "workspace/didChangeWatchedFiles" => {
                if let Ok(params) = read::<DidChangeWatchedFilesParams>(params) {
                    for path in params.changes.iter().filter_map(|change| file_of(&change.uri)) {
                        self.workspace.touch(&path);
                    }
                }
            }
            "workspace/didChangeWorkspaceFolders" => {
                if let Ok(params) = read::<DidChangeWorkspaceFoldersParams>(params) {
                    let folder = |folder: &ls_types::WorkspaceFolder| file_of(&folder.uri);
                    let (added, removed) = (&params.event.added, &params.event.removed);
                    added.iter().filter_map(folder).for_each(|folder| self.workspace.open_folder(folder));
                    removed.iter().filter_map(folder).for_each(|folder| self.workspace.close_folder(&folder));
                }
            }
            _ => {}
        }
    }

    /// Does something with a document, which is looked at again if it is one.
    fn with<P: DeserializeOwned>(
        &mut self,
        params: Value,
        act: impl FnOnce(&mut Self, P) -> Option<PathBuf>,
    ) {
        if let Some(path) = read(params).ok().and_then(|params| act(self, params)) {
            self.touch(&path);
        }
    }

    fn touch(&mut self, path: &Path) {
        self.workspace.touch(path);
        self.changed = Some(path.to_owned());
    }
}

fn code_of(refusal: &RequestRefusal) -> ErrorCode {
    match refusal {
        RequestRefusal::UnknownMethod(_) => ErrorCode::MethodNotFound,
        RequestRefusal::BadParameters(_) => ErrorCode::InvalidParams,
        RequestRefusal::Rename(_) => ErrorCode::RequestFailed,
    }
}
