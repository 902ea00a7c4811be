//! Qwen Code: `qwen --output-format stream-json`, which works without a person when its input is not a terminal, and reads
//! its prompt from there.
//!
//! What it was measured to do and this relies on: its messages are those of Claude Code: `system` with the session and
//! the model, `assistant` with what is said, and a `result` that ends the call, with `subtype`, `is_error`, `result`,
//! `usage` and `permission_denials`; where it failed, with an `error` that has a `message`. `usage` is that of the whole
//! session, and its input contains what came from a cache. The answer to a schema is `structured_result`. `--bare`
//! leaves out all that is found and not named: hooks, servers and extensions, and with the settings of the checkout those
//! of the user. `--safe-mode` goes on taking models, the address of the service and telemetry from the checkout, so that
//! the key goes where the checkout says. `--include-partial-messages` shows when the model begins to answer: a service
//! that cannot be reached is asked for a long time without a word. 53 and 55, too many turns and a spent budget, come
//! without a result.
//!
//! There is no price.

use serde_json::{Map, Value};

use super::claude::{ClaudeMessages, MessageDialect};
use super::host_call::{options, words};
use super::interface::{
    Access, Failure, Host, HostSettings, Invocation, Listener, Prompt, Release, Terms, Version,
};
use super::stream::{Kind, StreamReader, status_failure};
use crate::evaluate::model::{Question, Usage};

/// The host.
pub(super) struct Qwen;

/// The tools that edit, and those that run something.
const EDITS: &str = "edit,notebook_edit,write_file";
const ALL_BUT_READING: &str = "agent,edit,notebook_edit,run_shell_command,skill,write_file";

/// How it prints the messages of Claude Code.
const MANNER: MessageDialect = MessageDialect { failure_of, refusal };

/// Since when a second model can be named.
const TAKES_FALLBACK: Version = Version(0, 24, 4);

impl Host for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn prices(&self) -> bool {
        false
    }

    fn ignores(&self) -> &'static [&'static str] {
        &["agent", "tools", "max_tokens"]
    }

    fn enforces(&self, _: Access) -> bool {
        true
    }

    fn release(&self) -> Release {
        Release {
            around: ("", ""),
            oldest: Version(0, 15, 10),
            install: "npm install -g @qwen-code/qwen-code@latest",
        }
    }

    fn prompt(&self, prompt: &Prompt<'_>, terms: &Terms) -> Invocation {
        let schema = prompt.answer.map(Value::to_string);
        let denied = match prompt.access {
            Access::Write => None,
            Access::ReadShell => Some(EDITS),
            Access::ReadOnly => Some(ALL_BUT_READING),
        };
        // An unknown version is taken for the newest.
        let knows_fallback = terms.version.is_none_or(|version| version >= TAKES_FALLBACK);
        let more = [
            ("--model", prompt.model),
            ("--fallback-model", prompt.fallback.filter(|_| knows_fallback)),
            ("--resume", prompt.session),
            ("--exclude-tools", denied),
            ("--json-schema", schema.as_deref()),
        ];
        call("--yolo", terms.settings, &more, prompt.text)
    }

    fn listen(&self, _: &Terms) -> Box<dyn Listener> {
        Box::new(reader())
    }

    fn judge(&self, question: &Question, _: Option<u32>, _: &Terms) -> Invocation {
        let schema = question.schema.to_string();
        let more = [
            ("--exclude-tools", Some(ALL_BUT_READING)),
            ("--model", question.model.as_deref()),
            ("--json-schema", Some(schema.as_str())),
        ];
        // A verdict needs no tools that ask, and nobody goes on with the question, so nothing is
        // recorded.
        call("--chat-recording=false", HostSettings::User, &more, &question.prompt)
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        reader().reply(stdout, exit_code)
    }
}

fn call(rights: &str, settings: HostSettings, more: &[(&str, Option<&str>)], text: &str) -> Invocation {
    let mut argv = words("qwen --output-format stream-json --include-partial-messages");
    argv.extend((settings == HostSettings::User).then(|| "--bare".to_owned()));
    argv.push(rights.to_owned());
    argv.extend(options(more));
    Invocation { argv, stdin: Some(text.to_owned()), env: Vec::new(), file: None }
}

fn reader() -> StreamReader<ClaudeMessages> {
    StreamReader::new(ClaudeMessages::in_manner(&MANNER))
}

/// Returns what an exit code says.
fn failure_of(exit_code: i32) -> Option<Kind> {
    match exit_code {
        41 | 44 | 52 => Some(Failure::Unavailable),
        // These two come without a result, so the exit code is all there is.
        53 => Some(Failure::OutOfTurns),
        55 => Some(Failure::OverBudget),
        _ => None,
    }
}

/// Returns what a result is that says this of itself: a call of the service that failed, with the status, or one that
/// could not begin.
fn refusal(result: &Map<String, Value>, said: &str) -> Option<Failure> {
    let is_error = result.get("is_error").and_then(Value::as_bool) == Some(true);
    let status = said.strip_prefix("[API Error: ").and_then(|rest| rest.get(..3)?.parse().ok());
    // Without a single turn, the service was not even asked: no account, or a wrong key.
    let has_begun = result.get("num_turns").and_then(Value::as_u64) != Some(0);
    let unbegun = || (!has_begun).then_some(Failure::Unavailable as Kind);
    let failure = status.and_then(status_failure).or_else(unbegun).filter(|_| is_error)?;
    Some(failure(format!("it failed: {said}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::interface::{Counting, Pulse};
    use super::super::stream::tests::{assert_failed, play, play_answer};
    use super::*;
    use crate::evaluate::model::ConversationUsage;

    fn says(text: &str) -> Value {
        let usage = json!({"input_tokens": 100, "output_tokens": 7});
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}], "usage": usage}})
    }

    fn result(more: &Value) -> Value {
        let usage = json!({"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 0});
        let mut result = json!({
            "type": "result", "subtype": "success", "is_error": false, "result": "done", "usage": usage,
            "permission_denials": [],
        });
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        result
    }

    fn failed(message: &str) -> Value {
        let error = json!({"type": "Error", "message": message});
        let more = json!({"subtype": "error_during_execution", "is_error": true, "error": error});
        let mut failed = result(&more);
        failed.as_object_mut().unwrap().remove("result");
        failed
    }

    const START: &str = "qwen --output-format stream-json --include-partial-messages --bare";

    #[test]
    fn a_prompt_goes_through_standard_input() {
        let schema = json!({"type": "object"});
        let full = Prompt {
            text: "--fix it",
            agent: Some("fixer"),
            model: Some("large"),
            fallback: Some("small"),
            session: Some("s-1"),
            answer: Some(&schema),
            ..Prompt::default()
        };
        let line = |prompt: &Prompt<'_>, terms: Terms| Qwen.prompt(prompt, &terms).argv.join(" ");
        let more = r#"--resume s-1 --json-schema {"type":"object"}"#;
        assert_eq!(
            line(&full, Terms::default()),
            format!("{START} --yolo --model large --fallback-model small {more}")
        );
        assert_eq!(Qwen.prompt(&full, &Terms::default()).stdin.as_deref(), Some("--fix it"));
        let old = Terms { version: Some(Version(0, 15, 10)), ..Terms::default() };
        assert_eq!(line(&full, old), format!("{START} --yolo --model large {more}"));
        let project = Terms { settings: HostSettings::Project, ..Terms::default() };
        assert!(!line(&full, project).contains("--bare"));
        let reads = Prompt { access: Access::ReadShell, ..Prompt::default() };
        assert_eq!(line(&reads, Terms::default()), format!("{START} --yolo --exclude-tools {EDITS}"));
        let question = Question { prompt: "ok?".into(), schema, model: None };
        let call = Qwen.judge(&question, None, &Terms::default());
        let more = format!(r#"--exclude-tools {ALL_BUT_READING} --json-schema {{"type":"object"}}"#);
        assert_eq!(call.argv.join(" "), format!("{START} --chat-recording=false {more}"));
        assert_eq!(call.stdin.as_deref(), Some("ok?"));
    }

    /// Its input contains its cache, and its usage is that of the session.
    #[test]
    fn a_session_is_counted_as_a_whole_and_its_cache_once() {
        let usage =
            json!({"usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 90}});
        let mut listener = Qwen.listen(&Terms::default());
        listener.line(&result(&usage).to_string(), &mut |_| {});
        assert_eq!(listener.usage().tokens(), 120);
        let sum = ConversationUsage { input_tokens: 100, output_tokens: 20, cost_usd: 0.0 };
        assert_eq!(listener.counting(), Counting::Conversation(sum));
    }

    #[test]
    fn an_answer_has_a_name_of_its_own() {
        let line = result(&json!({"structured_result": {"a": 1}, "result": "done"}));
        assert_eq!(play_answer(&Qwen, &[line], 0).as_deref(), Ok("{\"a\":1}\n"));
    }

    /// No account and a wrong key both end in 1; a spent budget and too many turns have no result.
    #[test]
    fn failures_are_told_apart() {
        let end = |lines: &[Value], code| play(&Qwen, lines, code).1.unwrap_err();
        let with = |turns: u64, why: &str| {
            let mut line = failed(why);
            line["num_turns"] = turns.into();
            [line]
        };
        assert!(matches!(end(&with(0, "No auth type is selected."), 1), Failure::Unavailable(_)));
        assert!(matches!(end(&with(1, "[API Error: 401 bad key]"), 1), Failure::Unavailable(_)));
        assert!(matches!(end(&with(1, "[API Error: 503 busy]"), 1), Failure::Transient(_)));
        assert!(matches!(end(&with(1, "boom"), 1), Failure::Failed(_)));
        assert!(matches!(end(&[], 53), Failure::OutOfTurns(_)));
        assert!(matches!(end(&[], 55), Failure::OverBudget(_)));
        assert!(matches!(end(&[], 130), Failure::Failed(_)));
    }

    #[test]
    fn a_model_is_heard_of_when_it_begins_to_answer() {
        let mut listener = Qwen.listen(&Terms::default());
        let mut pulse = |line: Value| {
            listener.line(&line.to_string(), &mut |_| {});
            listener.pulse()
        };
        assert_eq!(pulse(json!({"type": "system", "subtype": "init"})), Pulse::Calling);
        assert_eq!(pulse(json!({"type": "stream_event", "event": {"type": "goal_state"}})), Pulse::Calling);
        assert_eq!(
            pulse(json!({"type": "stream_event", "event": {"type": "message_start"}})),
            Pulse::Thinking
        );
    }

    #[test]
    fn a_good_stream_is_what_was_said_and_what_it_took() {
        let start =
            json!({"type": "system", "subtype": "session_start", "session_id": "s1", "model": "large"});
        let (shown, text, usage) = play(&Qwen, &[start, says("one\ntwo"), result(&json!({}))], 0);
        assert_eq!((shown, text.as_deref()), (vec!["one".to_owned(), "two".to_owned()], Ok("one\ntwo\n")));
        let expected = Usage {
            calls: 1,
            input_tokens: 100,
            output_tokens: 20,
            model: Some("large".into()),
            session: Some("s1".into()),
            ..Usage::default()
        };
        assert_eq!(usage, expected);
    }

    #[test]
    fn nothing_but_a_good_result_is_a_success() {
        let bad = |lines: &[Value], code, why| assert_failed(&Qwen, lines, code, why);
        bad(&[], 3, "without a result (exit 3)");
        bad(&[json!("oops")], 0, "oops");
        bad(&[says("x"), failed("boom")], 1, "it failed: boom");
        bad(&[says("x"), failed("boom")], 0, "it failed: boom");
        bad(&[result(&json!({"result": ""}))], 0, "its result is empty");
        bad(&[result(&json!({"permission_denials": [{"tool_name": "edit"}]}))], 0, "use edit");
        bad(&[result(&json!({}))], 1, "after a good result");
        assert_eq!(
            play(&Qwen, &[failed("no account")], 41).1,
            Err(Failure::Unavailable("it failed: no account".into()))
        );
    }

    #[test]
    fn an_answer_is_the_result() {
        let lines = [says("hm"), result(&json!({"result": "{\"verdict\": \"yes\"}"}))];
        assert_eq!(play_answer(&Qwen, &lines, 0).as_deref(), Ok("{\"verdict\": \"yes\"}\n"));
        let stdout = format!("{}\n{}\n", lines[0], lines[1]);
        let (answer, usage) = Qwen.answer(&stdout, 0);
        assert_eq!((answer, usage.calls, usage.tokens()), (Ok(json!({"verdict": "yes"})), 1, 120));
        assert!(matches!(Qwen.answer(&stdout, 52).0, Err(Failure::Unavailable(_))));
        assert!(matches!(Qwen.answer("[]", 0).0, Err(Failure::Misunderstood(_))));
    }
}
