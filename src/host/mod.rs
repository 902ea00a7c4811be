//! The CLIs of agents: how each is called and how its output is read. One file a host; nothing here starts a process.

use serde_json::Value;

use crate::base::text::{json_in, one_line};
use crate::evaluate::model::{Question, Usage};

mod claude;
mod codex;
mod gemini;
mod qwen;
mod stream;

/// A prompt for an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prompt<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The agent, where the host has several.
    pub agent: Option<&'a str>,
    /// The tools that may be used; the host's own choice when empty.
    pub tools: &'a [String],
    /// The model.
    pub model: Option<&'a str>,
    /// The model in its place where that one cannot be asked.
    pub fallback: Option<&'a str>,
    /// The JSON Schema of the answer, where one in a certain form is wanted.
    pub answer: Option<&'a Value>,
    /// What the host calls the conversation that goes on; a new one when absent.
    pub session: Option<&'a str>,
}

/// How a host is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What it reads from standard input.
    pub stdin: Option<String>,
    /// Environment that it needs.
    pub env: Vec<(String, String)>,
}

/// Why a call came to nothing. Told by fields and codes, never by searching texts for words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The call failed; another one may not.
    Failed(String),
    /// The service is overloaded or cannot be reached for now.
    Transient(String),
    /// The quota is used up until then, in seconds since 1970, where that is known.
    Quota(String, Option<i64>),
    /// The host is not set up: no account, no right, no such model.
    Unavailable(String),
    /// The output has another shape than that of any version we know.
    Misunderstood(String),
}

/// Reads the output of an agent while it works.
pub trait Listener {
    /// Takes a line and hands on what people should see of it.
    fn line(&mut self, line: &str, say: &mut dyn FnMut(&str));

    /// Tells whether the agent has said its last word, whether or not its process ends.
    fn is_done(&self) -> bool;

    /// Returns what it cost so far.
    fn usage(&self) -> &Usage;

    /// Returns what the agent said so far.
    fn said(&self) -> &str;

    /// Returns what the agent said, once its process has ended with this code.
    fn end(&mut self, exit_code: i32) -> Result<String, Failure>;

    /// Returns the answer to a prompt that asks for one in a certain form, once the process has ended with this code:
    /// the last words alone. Whether they have that form is not looked at.
    fn answer(&mut self, exit_code: i32) -> Result<String, Failure>;
}

/// A CLI that takes prompts.
pub trait Host {
    /// Returns its name, which is also that of its program.
    fn name(&self) -> &'static str;

    /// Tells whether it says what a call cost.
    fn prices(&self) -> bool;

    /// Returns the keys of a loop that it cannot be told.
    fn ignores(&self) -> &'static [&'static str];

    /// Returns the call that hands a prompt to an agent, which may then do what it wants.
    fn prompt(&self, prompt: &Prompt<'_>) -> Invocation;

    /// Returns the reader for the output of such a call.
    fn listen(&self) -> Box<dyn Listener>;

    /// Returns the call that asks a question.
    fn judge(&self, question: &Question, max_tokens: Option<u32>) -> Invocation;

    /// Reads the answer to a question from what such a call printed, and what it cost.
    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage);
}

/// Every host, in the order in which they are looked for.
const HOSTS: [&dyn Host; 4] = [&claude::Claude, &codex::Codex, &gemini::Gemini, &qwen::Qwen];

/// Returns the names of all hosts.
pub fn names() -> impl Iterator<Item = &'static str> {
    HOSTS.iter().map(|host| host.name())
}

/// Finds a host by its name.
pub fn by_name(name: &str) -> Option<&'static dyn Host> {
    HOSTS.iter().copied().find(|host| host.name() == name)
}

/// Returns the first host whose program is there.
pub fn first(is_there: impl Fn(&str) -> bool) -> Option<&'static dyn Host> {
    HOSTS.iter().copied().find(|host| is_there(host.name()))
}

/// Prompts up to this length are an argument; the system bounds arguments at 128 KiB.
const ARGUMENT: usize = 100_000;

/// Returns the prompt as an argument, or as standard input where it is too long for one.
fn passed(text: &str) -> (Option<String>, Option<String>) {
    let text = text.to_owned();
    if text.len() > ARGUMENT { (None, Some(text)) } else { (Some(text), None) }
}

/// Reads the JSON document that a whole output is, or else its last line that is not blank.
fn document(stdout: &str) -> Option<Value> {
    let whole = serde_json::from_str(stdout.trim()).ok();
    whole.or_else(|| serde_json::from_str(stdout.lines().rev().find(|line| !line.trim().is_empty())?).ok())
}

/// Reads an object out of the text of a model.
fn object_in(text: &str) -> Option<Value> {
    json_in(text).filter(Value::is_object)
}

/// Returns the start of a text for a message.
fn excerpt(text: &str) -> String {
    one_line(text, 200)
}

/// Returns an environment variable of a call.
fn variable(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Returns words as arguments.
fn words(words: &str) -> Vec<String> {
    words.split(' ').map(str::to_owned).collect()
}

/// Returns the options that have a value, as arguments.
fn options<'a>(options: &'a [(&'a str, Option<&'a str>)]) -> impl Iterator<Item = String> + 'a {
    let given = options.iter().filter_map(|(flag, value)| Some([*flag, (*value)?]));
    given.flatten().map(str::to_owned)
}

/// Returns a text with the form that the answer to it must have, for a host that takes no schema.
fn with_form(text: &str, schema: &Value) -> String {
    format!(
        "{text}\n\nAnswer with one JSON object and nothing else: no other text, no code fence. It must satisfy this JSON \
         Schema:\n{schema}\n"
    )
}

/// Returns the text of a question for a host that takes no schema.
fn asked(question: &Question) -> String {
    with_form(&question.prompt, &question.schema)
}

/// Returns the text of a prompt for a host that takes no schema.
fn prompted(prompt: &Prompt<'_>) -> String {
    prompt.answer.map_or_else(|| prompt.text.to_owned(), |schema| with_form(prompt.text, schema))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A value that somebody may put where a number, a text or a list belongs.
    fn odd() -> impl Strategy<Value = String> {
        let words = [
            "0",
            "1",
            "-1",
            "1.5",
            "-0.5",
            "1e3",
            "1e308",
            "-1e308",
            "1e400",
            "18446744073709551615",
            "9223372036854775807",
            "-9223372036854775808",
            "99999999999999999999999",
            "NaN",
            "null",
            "true",
            "\"\"",
            "\"é\\n\\r\\nx\"",
            "\"\\ud83d\"",
            "[]",
            "{}",
            "[[[[[[{}]]]]]]",
            "{\"text\": \"a\\nb\"}",
            "[{\"type\": \"text\", \"text\": \"a\\nb\"}, 7, {\"text\": 3, \"index\": -1}]",
            "\"assistant\"",
            "\"success\"",
            "\"error\"",
        ];
        prop_oneof![
            9 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
            1 => (1..200_usize).prop_map(|depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth))),
        ]
    }

    /// A line of a stream: an event of some host with odd values in it, whole or broken, or something else.
    fn line() -> impl Strategy<Value = String> {
        const EVENTS: &[&str] = &[
            r#"{"type": "system", "session_id": @, "model": @}"#,
            r#"{"type": "assistant", "error": @, "message": {"content": [{"type": "text", "text": "é\nx"}, @], "usage": {"input_tokens": @, "output_tokens": @, "cache_read_input_tokens": @, "cache_creation_input_tokens": @}}}"#,
            r#"{"type": "assistant", "message": @}"#,
            r#"{"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": @}}"#,
            r#"{"type": "result", "subtype": @, "is_error": @, "result": @, "total_cost_usd": @, "api_error_status": @, "usage": {"input_tokens": @, "output_tokens": @, "cache_read_input_tokens": @}, "permission_denials": @}"#,
            r#"{"type": "result", "usage": @, "modelUsage": @}"#,
            r#"{"type": "thread.started", "thread_id": @}"#,
            r#"{"type": "item.completed", "item": {"type": "agent_message", "text": @}}"#,
            r#"{"type": "item.completed", "item": @}"#,
            r#"{"type": "turn.completed", "usage": {"input_tokens": @, "output_tokens": @}}"#,
            r#"{"type": "turn.failed", "error": {"message": @}}"#,
            r#"{"type": "error", "message": @, "severity": @}"#,
            r#"{"type": "init", "session_id": @, "model": @}"#,
            r#"{"type": "message", "role": "assistant", "content": "é\nx", "delta": @}"#,
            r#"{"type": "message", "role": @, "content": @}"#,
            r#"{"type": "result", "status": @, "error": @, "stats": {"input_tokens": @, "output_tokens": @, "total_tokens": @}}"#,
            "no event \u{1b}[1m",
            "{",
            "",
        ];
        let filled = (proptest::sample::select(EVENTS.to_vec()), prop::collection::vec(odd(), 12)).prop_map(
            |(event, values)| {
                let parts = event.split('@').zip(std::iter::once(String::new()).chain(values));
                parts.fold(String::new(), |line, (part, value)| line + &value + part)
            },
        );
        (filled, prop::option::weighted(0.1, 0..60_usize)).prop_map(|(line, cut)| match cut {
            Some(cut) => crate::base::text::head(&line, cut).to_owned(),
            None => line,
        })
    }

    proptest! {
        #[test]
        fn no_stream_of_a_host_is_too_odd(
            lines in prop::collection::vec(line(), 0..12), exit_code in -1..60, more in prop::collection::vec(line(), 0..3),
        ) {
            for host in HOSTS {
                let mut listener = host.listen();
                for line in &lines {
                    listener.line(line, &mut |_| {});
                }
                let (_, _) = (listener.end(exit_code), listener.answer(exit_code));
                for line in &more {
                    listener.line(line, &mut |_| {});
                }
                let (_, _) = (listener.end(exit_code), listener.said().len());
                let mut sum = listener.usage().clone();
                sum.add(&host.answer(&lines.join("\n"), exit_code).1);
                sum.add(&sum.clone());
                for cost in [listener.usage().cost_usd, sum.cost_usd].into_iter().flatten() {
                    prop_assert!(cost.is_finite() && cost >= 0.0, "{cost}");
                }
            }
        }
    }

    #[test]
    fn who_takes_no_schema_reads_the_form_in_the_prompt() {
        let schema = json!({"type": "object"});
        let plain = Prompt { text: "fix it", ..Prompt::default() };
        let full = Prompt { answer: Some(&schema), session: Some("s-1"), fallback: Some("small"), ..plain };
        for host in HOSTS.iter().filter(|host| host.ignores().contains(&"session")) {
            assert!(host.ignores().contains(&"fallback_model"));
            let (without, with) = (host.prompt(&plain), host.prompt(&full));
            assert_eq!((&with.argv, &with.env), (&without.argv, &without.env), "{}", host.name());
            assert_eq!(without.stdin.as_deref(), Some("fix it"));
            let text = with.stdin.unwrap_or_default();
            assert!(text.starts_with("fix it\n\n") && text.contains(r#"{"type":"object"}"#), "{text}");
        }
    }
}
