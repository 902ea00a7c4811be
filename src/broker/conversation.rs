//! What a request to a service is known by in a recording: whom it asks, for what model, and what was said so far.
//!
//! What a CLI tells its model of itself (instructions, tools, where and when it runs) does not count: it differs between
//! versions and machines, and no answer is about it.

use std::collections::BTreeMap;
use std::fmt;

use http::Method;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::model_service::ServiceApi;
use crate::base::text::hex;

/// Makes texts independent of when and where they were written.
pub trait Wording: fmt::Debug + Send + Sync {
    /// Returns a text without what differs from one run to the next.
    fn normal(&self, text: &str) -> String;
}

/// What a request is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRequest(Value);

/// Where the services have what was said.
const SAID: [&str; 3] = ["messages", "input", "contents"];

/// Who speaks for the CLI alone.
const INSTRUCTING: [&str; 2] = ["system", "developer"];

/// Keys of a part that are made by chance, or say how it is to be handled.
const OF_CHANCE: [&str; 10] = [
    "cache_control",
    "call_id",
    "encrypted_content",
    "id",
    "signature",
    "status",
    "thoughtSignature",
    "thought_signature",
    "tool_call_id",
    "tool_use_id",
];

/// Keys by which a part says what it is, in the order in which the first one counts.
const KINDS: [&str; 2] = ["role", "type"];

/// What CLIs put around that which they tell of their own: of the day, the machine and the directory.
const ASIDES: [&str; 6] =
    ["system-reminder", "environment_context", "session_context", "environment_details", "context", "env"];

/// What CLIs write at the beginning of a line of their own beside what a tool printed: numbers of processes, names made by
/// chance, counts of what differs with the paths of a machine, and advice that only a slow machine is given.
const NOTES: [&str; 5] = [
    "Chunk ID: ",
    "Note: this foreground command ran for ",
    "Original token count: ",
    "Process Group PGID: ",
    "Wall time: ",
];

impl WireRequest {
    /// Reads a request. One without a body, or with one that says nothing, is known by its path.
    pub fn read(api: ServiceApi, method: &Method, path: &str, body: &[u8], wording: &dyn Wording) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut request = json!({"service": service(api), "request": format!("{method} {path}")});
        if let Some(model) = body.get("model") {
            request["model"] = model.clone();
        }
        let said = SAID.into_iter().find_map(|key| body.get(key));
        if let Some(said) = said {
            request["said"] = transcript(said, wording).into();
        }
        Self(request)
    }

    /// Returns what is written down.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Changes what is written down, such as to hide secrets.
    #[must_use]
    pub fn edited(mut self, edit: impl FnOnce(&mut Value)) -> Self {
        edit(&mut self.0);
        self
    }

    /// Returns its name, which is a digest of what it is known by.
    pub fn key(&self) -> String {
        // 96 bits: enough that no two requests of a recording share a file.
        hex(&Sha256::digest(self.0.to_string().as_bytes()))[..24].to_owned()
    }
}

/// Returns how a recording calls a service.
fn service(api: ServiceApi) -> &'static str {
    match api {
        ServiceApi::Anthropic => "anthropic",
        ServiceApi::OpenAi => "openai",
        ServiceApi::Gemini => "gemini",
    }
}

/// Writes what was said, a line or more for each part of it.
fn transcript(said: &Value, wording: &dyn Wording) -> String {
    let Value::Array(turns) = said else { return plain_text(said, wording) };
    let lines = turns.iter().filter_map(|turn| {
        let speaker = KINDS.into_iter().find_map(|key| turn.get(key)?.as_str()).unwrap_or("user");
        if INSTRUCTING.contains(&speaker) {
            return None;
        }
        let content = ["content", "parts"].into_iter().find_map(|key| turn.get(key));
        let text: String = match content {
            // Beside its words, a turn of chat completions has the calls that it makes.
            Some(content) => {
                let calls = turn.get("tool_calls").map(|calls| parts(calls, wording));
                [parts(content, wording)].into_iter().chain(calls).flatten().collect()
            }
            None => parts(turn, wording).into_iter().collect(),
        };
        (!text.is_empty()).then(|| format!("{speaker}: {text}\n"))
    });
    lines.collect()
}

/// Writes a part, or several of them; none where nothing in it counts.
fn parts(content: &Value, wording: &dyn Wording) -> Option<String> {
    let text = match content {
        Value::Null => return None,
        Value::Array(all) => {
            all.iter().filter_map(|part| parts(part, wording)).collect::<Vec<_>>().join("\n")
        }
        Value::Object(part) => match (part.get("text"), part.get("type").and_then(Value::as_str)) {
            (Some(text), _) => plain_text(text, wording),
            // What a model thought is in its answer, and given back as it was.
            (None, Some("reasoning" | "thinking" | "redacted_thinking")) => return None,
            (None, _) => tidied(part, wording).to_string(),
        },
        Value::String(_) | Value::Bool(_) | Value::Number(_) => plain_text(content, wording),
    };
    (!text.trim().is_empty()).then_some(text)
}

/// Returns a part without what is made by chance.
fn tidied(part: &Map<String, Value>, wording: &dyn Wording) -> Value {
    let kept = part.iter().filter(|(key, _)| !OF_CHANCE.contains(&key.as_str()));
    // Whatever their order is.
    let sorted: BTreeMap<_, _> =
        kept.map(|(key, value)| (key.clone(), tidied_value(value, wording))).collect();
    sorted.into_iter().collect::<Map<_, _>>().into()
}

fn tidied_value(value: &Value, wording: &dyn Wording) -> Value {
    match value {
        Value::Object(part) => tidied(part, wording),
        Value::Array(all) => all.iter().map(|one| tidied_value(one, wording)).collect(),
        Value::String(_) => plain_text(value, wording).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn plain_text(text: &Value, wording: &dyn Wording) -> String {
    match text {
        Value::String(text) => wording.normal(&without_asides(text)).trim().to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            text.to_string()
        }
    }
}

/// Returns a text without what a CLI tells of its own.
fn without_asides(text: &str) -> String {
    let is_note = |line: &&str| NOTES.iter().any(|note| line.starts_with(note));
    let noted: String = text.split_inclusive('\n').filter(|line| !is_note(line)).collect();
    ASIDES.iter().fold(noted, |text, name| {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let mut kept = String::new();
        let mut rest = text.as_str();
        while let Some((before, behind)) = rest.split_once(&open) {
            // Without an end, it may be words about such a tag, so it stays.
            let Some((_, after)) = behind.split_once(&close) else { break };
            kept.push_str(before);
            rest = after;
        }
        kept + rest
    })
}

#[cfg(test)]
pub(super) mod testing {
    use super::Wording;

    /// Wording that leaves every text as it is.
    #[derive(Debug)]
    pub(in crate::broker) struct AsItIs;

    impl Wording for AsItIs {
        fn normal(&self, text: &str) -> String {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::AsItIs;
    use super::*;

    fn request(api: ServiceApi, body: &Value) -> WireRequest {
        WireRequest::read(api, &Method::POST, "/x", body.to_string().as_bytes(), &AsItIs)
    }

    fn said(api: ServiceApi, body: &Value) -> String {
        request(api, body).value()["said"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn every_api_says_what_was_said() {
        let anthropic = json!({"system": "of the CLI", "tools": [{"name": "Bash"}], "messages": [
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>today</system-reminder>"},
                {"type": "text", "text": "fix it", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]},
        ]});
        let expected = "user: fix it\n\
             assistant: {\"input\":{\"command\":\"make\"},\"name\":\"Bash\",\"type\":\"tool_use\"}\n\
             user: {\"content\":\"ok\",\"type\":\"tool_result\"}\n";
        assert_eq!(said(ServiceApi::Anthropic, &anthropic), expected);
        let responses = json!({"instructions": "of the CLI", "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "of the CLI"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix it"}]},
            {"type": "reasoning", "encrypted_content": "x", "summary": []},
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1"},
        ]});
        let expected = "user: fix it\nfunction_call: {\"arguments\":\"{}\",\"name\":\"shell\",\"type\":\"function_call\"}\n";
        assert_eq!(said(ServiceApi::OpenAi, &responses), expected);
        let chat = json!({"messages": [{"role": "system", "content": "of the CLI"}, {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "function": {"name": "f"}}]}]});
        let expected = "user: fix it\nassistant: {\"function\":{\"name\":\"f\"}}\n";
        assert_eq!(said(ServiceApi::OpenAi, &chat), expected);
        let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "fix it"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f"}, "thoughtSignature": "x"}]}]});
        let expected = "user: fix it\nmodel: {\"functionCall\":{\"name\":\"f\"}}\n";
        assert_eq!(said(ServiceApi::Gemini, &gemini), expected);
        assert_eq!(said(ServiceApi::OpenAi, &json!({"input": "fix it"})), "fix it");
    }

    #[test]
    fn a_request_is_known_by_whom_it_asks_and_what_was_said() {
        let body = |model: &str, text: &str| json!({"model": model, "messages": [{"role": "user", "content": text}]});
        let one = request(ServiceApi::Anthropic, &body("m", "one"));
        assert_eq!(one.key(), request(ServiceApi::Anthropic, &body("m", "one")).key());
        for other in [
            request(ServiceApi::Anthropic, &body("m", "two")),
            request(ServiceApi::Anthropic, &body("n", "one")),
            request(ServiceApi::OpenAi, &body("m", "one")),
            WireRequest::read(ServiceApi::Anthropic, &Method::GET, "/x", b"", &AsItIs),
        ] {
            assert_ne!(one.key(), other.key(), "{other:?}");
        }
    }

    #[test]
    fn what_a_cli_notes_beside_the_output_of_a_tool_does_not_count() {
        let output = |chunk: &str, group: u32| {
            format!(
                "Chunk ID: {chunk}\nWall time: 0.{group} seconds\nProcess exited with code 1\nOriginal token count: {group}\nOutput:\nProcess Group PGID: {group}"
            )
        };
        assert_eq!(without_asides(&output("bbf932", 1)), without_asides(&output("0", 22)));
        assert_eq!(without_asides(&output("0", 1)), "Process exited with code 1\nOutput:\n");
        assert_eq!(without_asides("no Chunk ID: 1"), "no Chunk ID: 1");
    }

    #[test]
    fn advice_on_a_slow_command_does_not_count() {
        let output = |content: &str| json!({"messages": [{"role": "tool", "content": content}]});
        let slow =
            "made\n\nNote: this foreground command ran for 61s. Next time, pass `is_background: true`.";
        assert_eq!(said(ServiceApi::OpenAi, &output(slow)), said(ServiceApi::OpenAi, &output("made")));
    }

    #[test]
    fn an_aside_without_an_end_is_a_text() {
        assert_eq!(without_asides("a <env>b</env> c <env>d"), "a  c <env>d");
    }
}
