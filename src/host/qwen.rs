//! Qwen Code: `qwen --output-format stream-json`, which works without a person when its input is no terminal, and reads
//! its prompt from there.
//!
//! What its documentation says and this relies on: its messages are those of Claude Code: `system` with the session and
//! the model, `assistant` with what is said, and a `result` that ends the call, with `subtype`, `is_error`, `result`,
//! `usage` and `permission_denials`; where it failed, with an `error` that has a `message`. Its exit codes are those of
//! Gemini CLI, from which it grew: 41 without an account, 44 without its sandbox and 52 with a wrong configuration.
//! `--yolo` asks nobody, `--model` names the model.
//!
//! `-p` takes the prompt in some versions and is a switch in others, so it is left out. Some versions take a schema for
//! an answer, so its form is asked for in the prompt, which all understand. There is no price.

use serde_json::Value;

use crate::evaluate::model::{Question, Usage};

use super::call::{asked, options, prompted, words};
use super::claude::Messages;
use super::interface::{Failure, Host, Invocation, Listener, Prompt, Terms};
use super::stream::StreamReader;

/// The host.
pub(super) struct Qwen;

/// The exit codes that say that it is not set up.
const NOT_SET_UP: &[i32] = &[41, 44, 52];

impl Host for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn prices(&self) -> bool {
        false
    }

    fn ignores(&self) -> &'static [&'static str] {
        &["agent", "tools", "max_tokens", "session", "fallback_model"]
    }

    fn prompt(&self, prompt: &Prompt<'_>, _: &Terms) -> Invocation {
        call("qwen --output-format stream-json --yolo", prompt.model, prompted(prompt))
    }

    fn listen(&self) -> Box<dyn Listener> {
        Box::new(reader())
    }

    fn judge(&self, question: &Question, _: Option<u32>, _: &Terms) -> Invocation {
        call("qwen --output-format stream-json", question.model.as_deref(), asked(question))
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        reader().reply(stdout, exit_code)
    }
}

fn call(command: &str, model: Option<&str>, text: String) -> Invocation {
    let mut argv = words(command);
    argv.extend(options(&[("--model", model)]));
    Invocation { argv, stdin: Some(text), env: Vec::new() }
}

fn reader() -> StreamReader<Messages> {
    StreamReader::new(Messages::default(), NOT_SET_UP)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::stream::tests::{assert_failed, play, play_answer};
    use super::*;

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

    #[test]
    fn a_prompt_goes_through_standard_input() {
        let full = Prompt {
            text: "--fix it",
            agent: Some("fixer"),
            tools: &[],
            model: Some("small"),
            ..Prompt::default()
        };
        let call = Qwen.prompt(&full, &Terms::default());
        assert_eq!(call.argv.join(" "), "qwen --output-format stream-json --yolo --model small");
        assert_eq!((call.stdin.as_deref(), call.env.len()), (Some("--fix it"), 0));
        let question = Question { prompt: "ok?".into(), schema: json!({"type": "object"}), model: None };
        let call = Qwen.judge(&question, None, &Terms::default());
        assert_eq!(call.argv.join(" "), "qwen --output-format stream-json");
        assert!(call.stdin.unwrap().contains(r#"{"type":"object"}"#));
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
        bad(&[], 53, "without a result (exit 53)");
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
