//! The CLIs of agents: how each is called and how its output is read. One file a host; nothing here starts a process.

pub(crate) mod account;
mod acp;
mod claude;
mod codex;
mod gemini;
mod host_call;
mod host_output;
pub(crate) mod interface;
mod qwen;
mod stream;

pub use account::account;
pub use interface::{
    Access, Attachment, Counting, Failure, Host, HostConversation, HostSettings, Invocation, Listener,
    Prompt, Pulse, Terms, Version,
};

/// Every host, in the order in which they are looked for.
const HOSTS: [&dyn Host; 4] = [&claude::Claude, &codex::Codex, &gemini::Gemini, &qwen::Qwen];

/// Returns the names of all hosts.
pub fn names() -> impl Iterator<Item = &'static str> {
    HOSTS.iter().map(|host| host.name())
}

/// Finds a host by its name: one of [`names`], or `acp:` and the command that starts an agent.
pub fn by_name(name: &str) -> Option<&'static dyn Host> {
    let agent = || -> Option<&'static dyn Host> {
        // It is asked for once, and goes on as long as the process, as the others do.
        Some(Box::leak(Box::new(acp::Acp::of(name)?)))
    };
    HOSTS.iter().copied().find(|host| host.name() == name).or_else(agent)
}

/// Returns the first host whose program is there.
pub fn first(is_there: impl Fn(&str) -> bool) -> Option<&'static dyn Host> {
    HOSTS.iter().copied().find(|host| is_there(host.name()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::evaluate::model::Question;

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
            r#"{"type": "result", "total_cost_usd": @, "modelUsage": {"m": {"inputTokens": @, "outputTokens": @, "costUSD": @}, "n": {"inputTokens": @, "outputTokens": @}}, "model_usage_since_last_result": {"m": {"outputTokens": @, "costUSD": @}}}"#,
            r#"{"type": "result", "subtype": "error_max_budget_usd", "is_error": true, "errors": @, "api_error": @, "num_turns": @}"#,
            r#"{"type": "result", "is_error": true, "error": {"message": "[API Error: é"}, "startup_failure_reason": @}"#,
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
                let mut listener = host.listen(&Terms::default());
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
    fn a_prompt_is_in_no_argument_of_any_host() {
        let schema = json!({"type": "object"});
        for text in ["- fix it", "--version", "fix it"] {
            for answer in [None, Some(&schema)] {
                for host in HOSTS {
                    let call = host.prompt(&Prompt { text, answer, ..Prompt::default() }, &Terms::default());
                    assert!(call.argv.iter().all(|argument| !argument.contains(text)), "{:?}", call.argv);
                    assert!(call.stdin.unwrap_or_default().starts_with(text));
                    let question = Question { prompt: text.to_owned(), schema: schema.clone(), model: None };
                    let call = host.judge(&question, None, &Terms::default());
                    assert!(call.argv.iter().all(|argument| !argument.contains(text)), "{:?}", call.argv);
                    assert!(call.stdin.unwrap_or_default().starts_with(text));
                }
            }
        }
    }
}
