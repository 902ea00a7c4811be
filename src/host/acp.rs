//! The Agent Client Protocol, version 1: one side of a conversation with an agent, as a pure machine. It takes the lines
//! that the agent writes, and gives those that the agent is to read; who starts the process and moves the lines is the
//! business of the caller.
//!
//! Both sides number their requests from 0, so a request is told from an answer by its `method` and never by its id. The
//! types of the messages are those of the official schema; what an agent sends is taken apart by hand where a type would
//! refuse the whole message for a part that is not needed.

use std::collections::VecDeque;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES, CancelNotification, ContentBlock, ContentChunk, Implementation,
    InitializeRequest, InitializeResponse, LoadSessionRequest, NewSessionRequest, PermissionOptionKind,
    PromptRequest, SessionId, SessionModeState, SessionUpdate, SetSessionModeRequest, StopReason, ToolKind,
    UsageUpdate,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::host_call::{asked, prompted};
use super::host_output::{excerpt, object_in};
use super::interface::{
    Access, Failure, Host, HostConversation, Invocation, Listener, Prompt, Release, Talker, Terms, Version,
};
use super::stream::{Transcript, count};
use crate::base::text::listed;
use crate::evaluate::model::{self, Question, Usage};

/// The code of an error that asks for a login.
const LOGIN_REQUIRED: i64 = -32_000;

/// The code of an error for requests that we do not know.
const UNKNOWN_METHOD: i32 = -32_601;

/// The code of an error for requests that are not what they have to be.
const INVALID_PARAMS: i32 = -32_602;

/// The modes in which agents ask before they do something, the best one first. What a mode allows is never asked, and what
/// is asked is answered by us, so that a mode that asks fits every right.
const ASKING: &[&str] = &["default", "manual", "code", "agent", "auto"];

/// The same, for those who may do nothing, or not everything.
const CAREFUL: &[&str] = &["default", "manual", "read-only", "ask"];

/// What somebody may use who edits nothing, by the kinds of the protocol.
const READ_SHELL: &[&str] = &["read", "search", "fetch", "think", "execute"];

/// What somebody may use who only reads.
const READ_ONLY: &[&str] = &["read", "search", "fetch", "think"];

/// The kinds of tools whose calls are remembered until a permission is asked for that does not repeat them.
const REMEMBERED: usize = 256;

/// An agent that is started by a command and talked to.
pub(super) struct Acp {
    name: String,
    argv: Vec<String>,
}

impl Acp {
    /// Makes the host that a name such as `acp:gemini --acp` stands for. The command is split into words as a shell does
    /// it, and no shell sees it.
    pub(super) fn of(name: &str) -> Option<Self> {
        let argv = shlex::split(name.strip_prefix("acp:")?).filter(|argv| !argv.is_empty())?;
        Some(Self { name: name.to_owned(), argv })
    }

    /// Begins a conversation that hands over a prompt.
    fn prompt_in(&self, prompt: &Prompt<'_>, directory: &str) -> AcpTalk {
        let tools = |tools: &[&str]| Rights::Tools(tools.iter().map(|tool| (*tool).to_owned()).collect());
        let rights = match (prompt.tools, prompt.access) {
            ([], Access::Write) => Rights::All,
            ([], Access::ReadShell) => tools(READ_SHELL),
            ([], Access::ReadOnly) => tools(READ_ONLY),
            (tools, _) => Rights::Tools(tools.to_vec()),
        };
        AcpTalk::begin(
            &self.argv[0],
            ConversationTask { text: prompted(prompt), directory, session: prompt.session, rights },
        )
    }
}

impl Talker for Acp {
    fn prompted(&self, prompt: &Prompt<'_>, directory: &str) -> Box<dyn HostConversation> {
        Box::new(self.prompt_in(prompt, directory))
    }

    fn asked(&self, question: &Question, directory: &str) -> Box<dyn HostConversation> {
        let task =
            ConversationTask { text: asked(question), directory, session: None, rights: Rights::Nothing };
        Box::new(AcpTalk::begin(&self.argv[0], task))
    }
}

impl Host for Acp {
    fn name(&self) -> &str {
        &self.name
    }

    /// Whether a price comes is known after the first call; where a cap on the cost needs one, the run ends without it.
    fn prices(&self) -> bool {
        true
    }

    fn ignores(&self) -> &'static [&'static str] {
        &["agent", "model", "fallback_model", "max_tokens"]
    }

    /// What its mode allows is never asked.
    fn enforces(&self, _: Access) -> bool {
        false
    }

    fn heeds(&self) -> Option<&'static str> {
        Some("the settings, hooks and servers")
    }

    /// Its version is in its greeting, and none is known not to work.
    fn release(&self) -> Release {
        Release { around: ("", ""), oldest: Version(0, 0, 0), install: "" }
    }

    fn talks(&self) -> Option<&dyn Talker> {
        Some(self)
    }

    fn prompt(&self, _: &Prompt<'_>, _: &Terms) -> Invocation {
        Invocation { argv: self.argv.clone(), ..Invocation::default() }
    }

    fn listen(&self, _: &Terms) -> Box<dyn Listener> {
        Box::new(self.prompt_in(&Prompt::default(), "/"))
    }

    fn judge(&self, _: &Question, _: Option<u32>, terms: &Terms) -> Invocation {
        self.prompt(&Prompt::default(), terms)
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        let mut conversation = self.prompt_in(&Prompt::default(), "/");
        for line in stdout.lines() {
            conversation.line(line, &mut |_| {});
        }
        (conversation.reply(exit_code), conversation.usage)
    }
}

/// What an agent may do, where it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// Everything.
    All,
    /// To use these tools, named as in a loop.
    Tools(Vec<String>),
    /// Nothing.
    Nothing,
}

/// What a conversation is about.
pub(super) struct ConversationTask<'a> {
    /// The prompt.
    pub(super) text: String,
    /// The directory in which the agent works.
    pub(super) directory: &'a str,
    /// What the agent calls the conversation that goes on; a new one when absent.
    pub(super) session: Option<&'a str>,
    /// What it may do.
    pub(super) rights: Rights,
}

/// Tokens that chunks of an answer have counted so far.
#[derive(Clone, Copy, Debug, Default)]
struct TokenCount {
    input: u64,
    output: u64,
}

/// A conversation with an agent: one prompt, in a session that is new or goes on.
struct AcpTalk {
    text: String,
    directory: String,
    rights: Rights,
    phase: AcpPhase,
    /// The id of the request that an answer is awaited to.
    awaited: u64,
    /// What the agent is to read next.
    words: String,
    /// What the agent calls itself, or its program.
    name: String,
    /// The ways of the agent to log in.
    logins: Vec<String>,
    said: Transcript,
    message: Option<String>,
    usage: Usage,
    /// What the session had cost before the prompt, where that is known.
    cost_before: f64,
    /// The tokens of single calls, which some agents tell with what they say.
    chunks: TokenCount,
    kinds: VecDeque<(String, ToolKind)>,
    refused: Option<String>,
    is_leaving: bool,
    stray: Option<String>,
}

/// Where a conversation stands.
enum AcpPhase {
    /// The version of the protocol is agreed on.
    Greeting { session: Option<SessionId> },
    /// A session goes on; what comes is what was said before.
    Loading(SessionId),
    /// A session is made.
    Opening,
    /// Its mode is set.
    Choosing(SessionId),
    /// The agent works.
    Prompted(SessionId),
    /// The agent has answered.
    Answered(StopReason),
    /// The conversation is over.
    Broken(Failure),
}

impl AcpTalk {
    /// Begins a conversation with an agent whose program is called so.
    pub(super) fn begin(program: &str, task: ConversationTask<'_>) -> Self {
        let mut conversation = Self {
            text: task.text,
            directory: task.directory.to_owned(),
            rights: task.rights,
            phase: AcpPhase::Greeting { session: task.session.map(SessionId::new) },
            awaited: 0,
            words: String::new(),
            name: program.to_owned(),
            logins: Vec::new(),
            said: Transcript::default(),
            message: None,
            usage: Usage::default(),
            cost_before: 0.0,
            chunks: TokenCount::default(),
            kinds: VecDeque::new(),
            refused: None,
            is_leaving: false,
            stray: None,
        };
        let us = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let hello = InitializeRequest::new(ProtocolVersion::V1).client_info(us);
        conversation.send(Some(0), AGENT_METHOD_NAMES.initialize, &hello);
        conversation
    }

    fn finish(&mut self, exit_code: i32) -> Result<(), Failure> {
        self.said.end_message(&mut |_| {});
        let failed = |why: &str| Err(Failure::Failed(why.to_owned()));
        match &self.phase {
            AcpPhase::Answered(StopReason::EndTurn) if self.said.text().trim().is_empty() => {
                failed("its result is empty")
            }
            AcpPhase::Answered(StopReason::EndTurn) => Ok(()),
            AcpPhase::Answered(StopReason::MaxTokens) => failed("it reached its own limit of tokens"),
            AcpPhase::Answered(StopReason::MaxTurnRequests) => {
                Err(Failure::OutOfTurns("it reached its own limit of turns".to_owned()))
            }
            AcpPhase::Answered(StopReason::Refusal) => failed("it refused to go on"),
            AcpPhase::Answered(StopReason::Cancelled) => failed("it says that the prompt was cancelled"),
            AcpPhase::Answered(_) => failed("it ended for a reason that ll-loop does not know"),
            AcpPhase::Broken(failure) => Err(failure.clone()),
            AcpPhase::Greeting { .. } => {
                let why = format!("it ended before it answered `initialize` (exit {exit_code})");
                let stray = self.stray.as_ref().map(|line| format!("; it printed: {line}"));
                let help =
                    "; `acp:` takes the command that starts an agent in ACP mode, such as `gemini --acp`";
                Err(Failure::Unavailable(why + &stray.unwrap_or_default() + help))
            }
            AcpPhase::Loading(_) | AcpPhase::Opening | AcpPhase::Choosing(_) | AcpPhase::Prompted(_) => {
                Err(Failure::Failed(format!(
                    "it ended before it answered `{}` (exit {exit_code})",
                    self.awaits()
                )))
            }
        }
    }

    fn send(&mut self, id: Option<u64>, method: &str, params: &impl Serialize) {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": json!(params)});
        if let Some(id) = id {
            message["id"] = id.into();
        }
        self.write(&message);
    }

    fn ask(&mut self, phase: AcpPhase, params: &impl Serialize) {
        self.phase = phase;
        self.awaited += 1;
        self.send(Some(self.awaited), self.awaits(), params);
    }

    fn write(&mut self, message: &Value) {
        self.words.push_str(&message.to_string());
        self.words.push('\n');
    }

    // The id is given back as it came: agents number by text or by number.
    fn respond(&mut self, id: Value, key: &str, value: Value) {
        // JSON-RPC knows these ids; whoever sends another one gets it back all the same, and knows it again.
        let mut message = Map::from_iter([("jsonrpc".to_owned(), Value::from("2.0")), ("id".to_owned(), id)]);
        message.insert(key.to_owned(), value);
        self.write(&Value::Object(message));
    }

    /// Answers a request of the agent.
    fn request(&mut self, method: &str, id: Value, params: &Value, say: &mut dyn FnMut(&str)) {
        if method != CLIENT_METHOD_NAMES.session_request_permission {
            let message = format!("ll-loop does not know `{}`", excerpt(method));
            return self.respond(id, "error", json!({"code": UNKNOWN_METHOD, "message": message}));
        }
        let (Some(call), Some(Value::Array(options))) = (params.get("toolCall"), params.get("options"))
        else {
            let message = "a request for permission has a `toolCall` and a list of `options`";
            return self.respond(id, "error", json!({"code": INVALID_PARAMS, "message": message}));
        };
        // After a cancellation, the protocol wants every open request for permission answered with
        // `cancelled`.
        if self.is_leaving {
            return self.respond(id, "result", json!({"outcome": {"outcome": "cancelled"}}));
        }
        let is_allowed = self.allows(call);
        if !is_allowed {
            let title = call.get("title").and_then(Value::as_str).unwrap_or("a tool");
            let title = excerpt(title);
            say(&format!("not allowed: {title}"));
            self.refused.get_or_insert(title);
        }
        let kinds = if is_allowed {
            [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
        } else {
            [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
        };
        let of_kind = |kind: &PermissionOptionKind| {
            let kind = json!(kind);
            options.iter().find(|option| option.get("kind") == Some(&kind))?.get("optionId")
        };
        let outcome = match kinds.iter().find_map(of_kind) {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            // Nothing that can be chosen is what is meant; the agent goes on as if it were unattended.
            None => json!({"outcome": "cancelled"}),
        };
        self.respond(id, "result", json!({ "outcome": outcome }));
    }

    /// Tells whether the agent may do what it asks for.
    fn allows(&self, call: &Value) -> bool {
        let tools = match &self.rights {
            Rights::All => return true,
            Rights::Nothing => return false,
            Rights::Tools(tools) => tools,
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let name = text(call.get("name")).or_else(|| text(call.pointer("/_meta/claudeCode/toolName")));
        let told = call.get("kind").and_then(read::<ToolKind>);
        let id = call.get("toolCallId").and_then(Value::as_str);
        // A request may leave out the kind that an earlier message gave to the same call. The
        // latest word counts.
        let known =
            || self.kinds.iter().rev().find(|(known, _)| Some(known.as_str()) == id).map(|(_, kind)| *kind);
        let kind = told.or_else(known);
        tools.iter().any(|tool| Some(tool) == name.as_ref() || kind.is_some_and(|kind| is_of(tool, kind)))
    }

    /// Takes what the agent tells about its work.
    fn update(&mut self, params: &Value, say: &mut dyn FnMut(&str)) {
        let Some(update) = params.get("update") else { return };
        let is_replay = matches!(self.phase, AcpPhase::Loading(_));
        match read::<SessionUpdate>(update) {
            Some(SessionUpdate::UsageUpdate(update)) => self.costs(&update),
            Some(_) if is_replay => {}
            Some(SessionUpdate::AgentMessageChunk(chunk)) => self.speaks(chunk, say),
            Some(SessionUpdate::AgentThoughtChunk(_)) => self.said.end_message(say),
            Some(SessionUpdate::ToolCall(call)) => {
                self.said.end_message(say);
                self.remember(call.tool_call_id.0.to_string(), call.kind);
            }
            Some(SessionUpdate::ToolCallUpdate(call)) => {
                if let Some(kind) = call.fields.kind {
                    self.remember(call.tool_call_id.0.to_string(), kind);
                }
            }
            Some(_) | None => {}
        }
    }

    fn remember(&mut self, id: String, kind: ToolKind) {
        // A conversation of hours must not grow without end.
        if self.kinds.len() >= REMEMBERED {
            self.kinds.pop_front();
        }
        self.kinds.push_back((id, kind));
    }

    fn speaks(&mut self, chunk: ContentChunk, say: &mut dyn FnMut(&str)) {
        if let Some(usage) = chunk.meta.as_ref().and_then(|meta| meta.get("usage")) {
            let (input, output) = tokens(usage, "inputTokens", "outputTokens", Some("totalTokens"));
            let TokenCount { input: before, output: said } = self.chunks;
            self.chunks =
                TokenCount { input: before.saturating_add(input), output: said.saturating_add(output) };
            (self.usage.input_tokens, self.usage.output_tokens) = (self.chunks.input, self.chunks.output);
        }
        let message = chunk.message_id.map(|id| id.0.to_string());
        if message != self.message {
            self.said.end_message(say);
            self.message = message;
        }
        if let ContentBlock::Text(text) = chunk.content
            && !text.text.is_empty()
        {
            self.said.add(&text.text, say);
        }
    }

    /// Takes the sum of what the session has cost. How full its context is, which comes with it, is not a cost.
    fn costs(&mut self, update: &UsageUpdate) {
        // Only dollars can be held against `max_cost_usd`.
        let Some(cost) = update.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD")) else {
            return;
        };
        let Some(sum) = model::price(cost.amount) else { return };
        // Before the prompt, the sum is that of earlier calls in the same session.
        if self.usage.is_nothing() && matches!(self.phase, AcpPhase::Loading(_) | AcpPhase::Choosing(_)) {
            self.cost_before = sum;
        } else {
            // A sum that shrinks is the agent's mistake, not money that came back.
            self.usage.cost_usd = Some((sum - self.cost_before).max(0.0));
        }
    }

    /// Takes the answer to our request.
    fn answered(&mut self, mut message: Map<String, Value>, say: &mut dyn FnMut(&str)) {
        if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
            return self.failed(error, say);
        }
        let result = message.remove("result").unwrap_or_default();
        match std::mem::replace(&mut self.phase, AcpPhase::Opening) {
            AcpPhase::Greeting { session } => self.greeted(session, &result),
            AcpPhase::Loading(session) => self.opened(session, &result),
            AcpPhase::Opening => match result.get("sessionId").and_then(Value::as_str) {
                Some(session) => self.opened(SessionId::new(session), &result),
                None => self.broken(Failure::Failed(format!(
                    "its answer to `session/new` has no `sessionId`: {}",
                    excerpt(&result.to_string())
                ))),
            },
            AcpPhase::Choosing(session) => self.prompt(session),
            AcpPhase::Prompted(_) => self.ended(&result, say),
            over @ (AcpPhase::Answered(_) | AcpPhase::Broken(_)) => self.phase = over,
        }
    }

    fn greeted(&mut self, session: Option<SessionId>, result: &Value) {
        let version = result.get("protocolVersion").cloned().unwrap_or_default();
        if let Some(info) = result.get("agentInfo").and_then(Value::as_object) {
            let text = |key: &str| info.get(key).and_then(Value::as_str).map(excerpt);
            let words = [text("name"), text("version")].into_iter().flatten().collect::<Vec<_>>();
            if !words.is_empty() {
                self.name = words.join(" ");
            }
        }
        // The agent may answer with the version that it speaks; going on would be a guess at what
        // its messages mean.
        if version != json!(ProtocolVersion::V1) {
            let version = excerpt(&version.to_string());
            return self.broken(Failure::Unavailable(format!(
                "{} speaks version {version} of the Agent Client Protocol, and ll-loop speaks version {}; install a \
                 version of the agent that speaks it, too",
                self.name,
                ProtocolVersion::V1,
            )));
        }
        let can_load = match read::<InitializeResponse>(result) {
            Some(hello) => {
                self.logins = hello.auth_methods.iter().map(|method| excerpt(method.name())).collect();
                hello.agent_capabilities.load_session
            }
            None => false,
        };
        match session.filter(|_| can_load) {
            Some(session) => {
                let load = LoadSessionRequest::new(session.clone(), &self.directory);
                self.ask(AcpPhase::Loading(session), &load);
            }
            None => self.open(),
        }
    }

    fn open(&mut self) {
        let new = NewSessionRequest::new(&self.directory);
        self.ask(AcpPhase::Opening, &new);
    }

    /// Sets the mode of a session, where the agent has one in which it asks.
    fn opened(&mut self, session: SessionId, result: &Value) {
        self.usage.session = Some(session.0.to_string());
        let modes = result.get("modes").and_then(read::<SessionModeState>);
        let wanted = if self.rights == Rights::All { ASKING } else { CAREFUL };
        let mode = modes.and_then(|modes| {
            let has = |wanted: &&&str| modes.available_modes.iter().any(|mode| *mode.id.0 == ***wanted);
            wanted.iter().find(has).copied()
        });
        match mode {
            Some(mode) => {
                let set = SetSessionModeRequest::new(session.clone(), mode);
                self.ask(AcpPhase::Choosing(session), &set);
            }
            None => self.prompt(session),
        }
    }

    fn prompt(&mut self, session: SessionId) {
        self.usage.calls = 1;
        let text = std::mem::take(&mut self.text);
        let prompt = PromptRequest::new(session.clone(), vec![ContentBlock::from(text)]);
        self.ask(AcpPhase::Prompted(session), &prompt);
    }

    /// Takes the answer to the prompt.
    fn ended(&mut self, result: &Value, say: &mut dyn FnMut(&str)) {
        self.said.end_message(say);
        let told = result.get("usage").filter(|usage| usage.is_object());
        let told = told.map(|usage| tokens(usage, "inputTokens", "outputTokens", Some("totalTokens")));
        let quota = result.pointer("/_meta/quota/token_count").filter(|count| count.is_object());
        let quota = quota.map(|count| tokens(count, "input_tokens", "output_tokens", None));
        if let Some(tokens) = told.or(quota) {
            (self.usage.input_tokens, self.usage.output_tokens) = tokens;
        }
        let reason = result.get("stopReason").cloned().unwrap_or_default();
        match read::<StopReason>(&reason) {
            Some(reason) => self.phase = AcpPhase::Answered(reason),
            None => self.broken(Failure::Failed(format!(
                "it ended for a reason that ll-loop does not know: {}",
                excerpt(&reason.to_string())
            ))),
        }
    }

    /// Takes an error in the place of an answer.
    fn failed(&mut self, error: &Value, say: &mut dyn FnMut(&str)) {
        let method = self.awaits();
        let code = error.get("code").and_then(Value::as_i64);
        let mut why = excerpt(error.get("message").and_then(Value::as_str).unwrap_or("no message"));
        let data = error.get("data");
        let details = data.and_then(|data| {
            let text = |key: &str| data.get(key).and_then(Value::as_str);
            data.as_str().or_else(|| text("details")).or_else(|| text("message"))
        });
        if let Some(details) = details.map(excerpt).filter(|details| *details != why) {
            why = format!("{why}: {details}");
        }
        if code == Some(LOGIN_REQUIRED) {
            let ways = match self.logins.as_slice() {
                [] => String::new(),
                ways => format!(" (its ways to log in: {})", listed(ways, "and")),
            };
            return self.broken(Failure::Unavailable(format!(
                "{} is not logged in: {}; log in with its own program, or set the key that it reads{ways}",
                self.name,
                why.trim_end_matches('.'),
            )));
        }
        if matches!(self.phase, AcpPhase::Loading(_)) {
            say(&format!("the session cannot go on ({why}), so a new one begins"));
            // The sum that was told while the old session was loaded is of no use for a new one.
            self.cost_before = 0.0;
            return self.open();
        }
        if matches!(self.phase, AcpPhase::Answered(_) | AcpPhase::Broken(_)) {
            return;
        }
        let told = code.map_or_else(String::new, |code| format!(" ({code})"));
        let why = format!("`{method}` failed: {why}{told}");
        // Some agents hand on the status of their service.
        self.broken(match code {
            Some(401 | 403 | 404) => Failure::Unavailable(why),
            Some(429 | 500 | 502..=504 | 529) => Failure::Transient(why),
            _ => Failure::Failed(why),
        });
    }

    fn broken(&mut self, failure: Failure) {
        self.phase = AcpPhase::Broken(failure);
    }
}

impl HostConversation for AcpTalk {
    fn words(&mut self) -> String {
        std::mem::take(&mut self.words)
    }

    fn is_under_way(&self) -> bool {
        match self.phase {
            AcpPhase::Greeting { .. } | AcpPhase::Loading(_) | AcpPhase::Opening | AcpPhase::Choosing(_) => {
                false
            }
            AcpPhase::Prompted(_) | AcpPhase::Answered(_) | AcpPhase::Broken(_) => true,
        }
    }

    fn leave(&mut self) -> bool {
        self.is_leaving = true;
        let AcpPhase::Prompted(session) = &self.phase else { return false };
        let cancel = CancelNotification::new(session.clone());
        self.send(None, AGENT_METHOD_NAMES.session_cancel, &cancel);
        true
    }

    fn close(&mut self, say: &mut dyn FnMut(&str)) {
        self.said.end_message(say);
    }

    fn give_up(&mut self, failure: Failure) {
        if !self.is_done() {
            self.phase = AcpPhase::Broken(failure);
        }
    }

    fn reply(&mut self, exit_code: i32) -> Result<Value, Failure> {
        let answer = self.answer(exit_code)?;
        object_in(&answer).ok_or_else(|| {
            Failure::WrongForm(format!("its answer is not a JSON object: {}", excerpt(&answer)))
        })
    }

    fn awaits(&self) -> &'static str {
        match self.phase {
            AcpPhase::Greeting { .. } => AGENT_METHOD_NAMES.initialize,
            AcpPhase::Loading(_) => AGENT_METHOD_NAMES.session_load,
            AcpPhase::Opening => AGENT_METHOD_NAMES.session_new,
            AcpPhase::Choosing(_) => AGENT_METHOD_NAMES.session_set_mode,
            AcpPhase::Prompted(_) | AcpPhase::Answered(_) | AcpPhase::Broken(_) => {
                AGENT_METHOD_NAMES.session_prompt
            }
        }
    }
}

impl Listener for AcpTalk {
    fn line(&mut self, line: &str, say: &mut dyn FnMut(&str)) {
        if line.trim().is_empty() {
            return;
        }
        let Ok(Value::Object(mut message)) = serde_json::from_str(line) else {
            // What was started may not be an agent at all, and its first line says best what it is.
            self.stray.get_or_insert_with(|| excerpt(line));
            return say(&crate::base::text::plain(&crate::base::text::one_line(line, 2000)));
        };
        let params = message.remove("params").unwrap_or_default();
        match (message.remove("method"), message.remove("id")) {
            (Some(Value::String(method)), Some(id)) => self.request(&method, id, &params, say),
            (Some(Value::String(method)), None) if method == CLIENT_METHOD_NAMES.session_update => {
                self.update(&params, say);
            }
            // Anything with another id answers a request that is no longer awaited.
            (None, id) if id == Some(self.awaited.into()) => self.answered(message, say),
            (Some(_) | None, _) => {}
        }
    }

    fn end(&mut self, exit_code: i32) -> Result<String, Failure> {
        self.finish(exit_code)?;
        if let Some(title) = &self.refused {
            return Err(Failure::Failed(format!("it was not allowed to do all that it wanted to: {title}")));
        }
        Ok(self.said.take())
    }

    fn answer(&mut self, exit_code: i32) -> Result<String, Failure> {
        self.finish(exit_code)?;
        let answer = self.said.last().trim_end_matches('\n');
        Ok(format!("{answer}\n"))
    }

    fn is_done(&self) -> bool {
        matches!(self.phase, AcpPhase::Answered(_) | AcpPhase::Broken(_))
    }

    fn usage(&self) -> &Usage {
        &self.usage
    }

    fn said(&self) -> &str {
        self.said.text()
    }
}

/// Reads a part of a message, if it is what it should be.
fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// Reads how many tokens went in and out. Where there is a sum, what is in neither of them went in: a cache, thoughts.
fn tokens(counts: &Value, input: &str, output: &str, total: Option<&str>) -> (u64, u64) {
    let of = |key: &str| count(Some(counts), key);
    let out = of(output);
    let sum = total.map_or(0, of);
    (of(input).max(sum.saturating_sub(out)), out)
}

/// Tells whether a tool of a loop does things of this kind. The name of a kind stands for itself; a rule such as
/// `Bash(git *)` for nothing, because what it says cannot be checked here.
fn is_of(tool: &str, kind: ToolKind) -> bool {
    let kinds: &[ToolKind] = match tool {
        "Read" | "NotebookRead" => &[ToolKind::Read],
        "Glob" | "Grep" | "LS" => &[ToolKind::Search],
        "Edit" | "MultiEdit" | "NotebookEdit" => &[ToolKind::Edit],
        "Write" => &[ToolKind::Edit, ToolKind::Delete, ToolKind::Move],
        "Bash" => &[ToolKind::Execute],
        "WebFetch" | "WebSearch" => &[ToolKind::Fetch],
        "Agent" | "Task" | "TodoWrite" => &[ToolKind::Think],
        _ => return kind != ToolKind::Other && json!(kind) == tool,
    };
    kinds.contains(&kind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn begin(rights: Rights) -> AcpTalk {
        let task = ConversationTask { text: "fix it".into(), directory: "/work", session: None, rights };
        AcpTalk::begin("player", task)
    }

    /// Plays lines, and returns what the agent was told.
    fn play(conversation: &mut AcpTalk, lines: &[String]) -> Vec<Value> {
        let mut words = conversation.words();
        for line in lines {
            conversation.line(line, &mut |_| {});
            words += &conversation.words();
        }
        words.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn the_command_is_words_and_no_shell_sees_it() {
        let argv = |name: &str| Acp::of(name).map(|agent| agent.argv);
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(argv("acp:gemini --acp"), words(&["gemini", "--acp"]));
        assert_eq!(argv("acp: a 'b c' \"$HOME\" ; d"), words(&["a", "b c", "$HOME", ";", "d"]));
        assert_eq!(
            [argv("acp:"), argv("acp: "), argv("acp:'"), argv("acp"), argv("claude")],
            [const { None }; 5]
        );
    }

    #[test]
    fn tools_stand_for_the_kinds_of_what_they_do() {
        for (tool, kind, is) in [
            ("Read", ToolKind::Read, true),
            ("Read", ToolKind::Edit, false),
            ("Write", ToolKind::Delete, true),
            ("Edit", ToolKind::Delete, false),
            ("Bash", ToolKind::Execute, true),
            ("Bash(git *)", ToolKind::Execute, false),
            ("execute", ToolKind::Execute, true),
            ("switch_mode", ToolKind::SwitchMode, true),
            ("other", ToolKind::Other, false),
            ("mcp__x__y", ToolKind::Other, false),
        ] {
            assert_eq!(is_of(tool, kind), is, "{tool}");
        }
    }

    #[test]
    fn who_only_reads_may_not_edit() {
        let agent = Acp::of("acp:player").unwrap();
        let allows = |access, tools: &[String], kind: &str| {
            let talk = agent.prompt_in(&Prompt { tools, access, ..Prompt::default() }, "/");
            talk.allows(&json!({ "kind": kind }))
        };
        for (access, edits, runs, reads) in [
            (Access::Write, true, true, true),
            (Access::ReadShell, false, true, true),
            (Access::ReadOnly, false, false, true),
        ] {
            let found = ["edit", "execute", "read"].map(|kind| allows(access, &[], kind));
            assert_eq!(found, [edits, runs, reads], "{access:?}");
            assert!(allows(access, &["Edit".to_owned()], "edit"), "named tools say more");
        }
    }

    #[test]
    fn the_mode_that_asks_is_set_if_there_is_one() {
        for (modes, all, some) in [
            (&["yolo", "default"][..], Some("default"), Some("default")),
            (&["ask", "code"][..], Some("code"), Some("ask")),
            (&["read-only", "auto", "full-access"][..], Some("auto"), Some("read-only")),
            (&["plan"][..], None, None),
            (&[][..], None, None),
        ] {
            let modes: Vec<_> = modes.iter().map(|id| json!({"id": id, "name": id})).collect();
            let modes = json!({"currentModeId": "x", "availableModes": modes});
            for (rights, mode) in [(Rights::All, all), (Rights::Nothing, some)] {
                let told = play(
                    &mut begin(rights),
                    &[
                        json!({"id": 0, "result": {"protocolVersion": 1}}).to_string(),
                        json!({"id": 1, "result": {"sessionId": "s", "modes": modes}}).to_string(),
                    ],
                );
                let last = told.last().unwrap();
                match mode {
                    Some(mode) => assert_eq!(last["params"]["modeId"], mode),
                    None => assert_eq!(last["method"], "session/prompt"),
                }
            }
        }
    }

    /// A line of an agent: something of the protocol with odd values in it, whole or broken.
    fn line() -> impl Strategy<Value = String> {
        const MESSAGES: &[&str] = &[
            r#"{"id": #, "result": {"protocolVersion": @, "agentCapabilities": {"loadSession": @}, "authMethods": [{"id": @, "name": @}, @], "agentInfo": @}}"#,
            r#"{"id": #, "result": {"protocolVersion": 1}}"#,
            r#"{"id": #, "result": {"sessionId": "s", "modes": {"currentModeId": @, "availableModes": [@, {"id": "default", "name": @}]}}}"#,
            r#"{"id": #, "result": {"stopReason": "end_turn", "usage": {"inputTokens": @, "outputTokens": @, "totalTokens": @}}}"#,
            r#"{"id": #, "result": {"stopReason": @, "_meta": {"quota": {"token_count": {"input_tokens": @}}}}}"#,
            r#"{"id": #, "error": {"code": @, "message": @, "data": @}}"#,
            r#"{"id": #, "error": @, "result": @}"#,
            r#"{"id": #, "method": "session/request_permission", "params": {"toolCall": {"toolCallId": @, "kind": @, "title": @}, "options": [{"optionId": @, "kind": @}, @]}}"#,
            r#"{"id": #, "method": "session/request_permission", "params": @}"#,
            r#"{"id": @, "method": "_x", "params": @}"#,
            r#"{"id": @, "method": @}"#,
            r#"{"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "é\nx"}, "messageId": @, "_meta": {"usage": {"inputTokens": @}}}}}"#,
            r#"{"method": "session/update", "params": {"update": {"sessionUpdate": "usage_update", "used": 9, "size": 9, "cost": {"amount": @, "currency": "USD"}}}}"#,
            r#"{"method": "session/update", "params": {"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "kind": @}}}"#,
            r#"{"method": "session/update", "params": {"update": {"sessionUpdate": @}}}"#,
            "no message",
            "[]",
            "{",
            "",
        ];
        let odd = proptest::sample::select(vec![
            "0",
            "1",
            "-1",
            "1.5",
            "1e308",
            "-1e308",
            "18446744073709551615",
            "null",
            "true",
            "\"\"",
            "\"x\"",
            "\"read\"",
            "\"allow_once\"",
            "\"reject_once\"",
            "\"end_turn\"",
            "-32000",
            "[]",
            "{}",
            "[[{}]]",
        ]);
        let values = prop::collection::vec(odd, 9);
        (
            proptest::sample::select(MESSAGES.to_vec()),
            0..5_u8,
            values,
            prop::option::weighted(0.05, 0..60_usize),
        )
            .prop_map(|(message, id, values, cut)| {
                let message = message.replace('#', &id.to_string());
                let mut parts = message.split('@');
                let first = parts.next().unwrap_or_default().to_owned();
                let line = parts.zip(values).fold(first, |line, (part, value)| line + value + part);
                match cut {
                    Some(cut) => crate::base::text::head(&line, cut).to_owned(),
                    None => line,
                }
            })
    }

    proptest! {
        #[test]
        fn nothing_that_an_agent_says_is_too_odd(lines in prop::collection::vec(line(), 0..24), leaves in 0..48_usize) {
            let mut conversation = begin(Rights::Tools(vec!["Read".to_owned()]));
            let first = conversation.words();
            prop_assert!(first.contains("initialize"));
            for (index, line) in lines.iter().enumerate() {
                let was_done = conversation.is_done();
                conversation.line(line, &mut |_| {});
                if index == leaves {
                    conversation.leave();
                }
                let words = conversation.words();
                let told: Vec<Value> = words.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                let message = serde_json::from_str::<Value>(line).unwrap_or_default();
                let is_request = message["method"].is_string() && message.get("id").is_some();
                // Each request is answered once, with its own id, and nothing else is.
                let answers: Vec<_> = told.iter().filter(|message| message.get("method").is_none()).collect();
                prop_assert_eq!(answers.len(), usize::from(is_request));
                for answer in answers {
                    prop_assert_eq!(&answer["id"], &message["id"]);
                    prop_assert!(answer.get("result").is_some() != answer.get("error").is_some());
                }
                // Who has ended is told nothing more.
                prop_assert!(!was_done || told.iter().all(|message| message.get("method").is_none()));
            }
            let is_end = |line: &String| line.contains("\"end_turn\"");
            let end = conversation.end(0);
            prop_assert!(end.is_err() || lines.iter().any(is_end));
            if let Some(cost) = conversation.usage().cost_usd {
                prop_assert!(cost.is_finite() && cost >= 0.0, "{}", cost);
            }
        }
    }
}
