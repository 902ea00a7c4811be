//! Gemini CLI: `gemini --output-format stream-json`, which works without a person when its input is no terminal, and
//! reads its prompt from there.
//!
//! What its documentation says and this relies on: every line of the output is an event with a `type`. `init` has the
//! `session_id` and the `model`; `message` has a `role` and a `content`, and `delta` where more of it follows; `error`
//! has a `severity`, `warning` or `error`, and a `message`; `result` ends the call with a `status`, `success` or
//! `error`, an `error` with a `message`, and `stats` with the tokens. The exit code is 41 without an account, 44 without
//! its sandbox and 52 with a wrong configuration. `--approval-mode yolo` asks nobody, `--model` names the model. Without
//! the former, what would need an approval is refused.
//!
//! What it does not say: 55 is the code of a directory that is not trusted. There is no price, no schema for an answer,
//! so its form is asked for in the prompt, and no code of the service in an error that would tell one that passes from
//! one that stays.

use serde_json::{Map, Value};

use crate::base::text::plain;
use crate::evaluate::model::{Question, Usage};

use super::call::{asked, options, prompted, words};
use super::interface::{Failure, Host, Invocation, Listener, Prompt, Terms};
use super::output::excerpt;
use super::stream::{StreamFormat, StreamReader, StreamState, count};

/// The host.
pub(super) struct Gemini;

/// The exit codes that say that it is not set up.
const NOT_SET_UP: &[i32] = &[41, 44, 52, 55];

impl Host for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn prices(&self) -> bool {
        false
    }

    fn ignores(&self) -> &'static [&'static str] {
        &["agent", "tools", "max_tokens", "session", "fallback_model"]
    }

    fn prompt(&self, prompt: &Prompt<'_>, _: &Terms) -> Invocation {
        let rights = Some("yolo");
        call(&[("--approval-mode", rights), ("--model", prompt.model)], prompted(prompt))
    }

    fn listen(&self) -> Box<dyn Listener> {
        Box::new(reader())
    }

    fn judge(&self, question: &Question, _: Option<u32>, _: &Terms) -> Invocation {
        call(&[("--model", question.model.as_deref())], asked(question))
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        reader().reply(stdout, exit_code)
    }
}

fn call(more: &[(&str, Option<&str>)], text: String) -> Invocation {
    let mut argv = words("gemini --output-format stream-json");
    argv.extend(options(more));
    Invocation { argv, stdin: Some(text), env: Vec::new() }
}

fn reader() -> StreamReader<Session> {
    StreamReader::new(Session::default(), NOT_SET_UP)
}

/// The events of a session.
#[derive(Default)]
struct Session {
    /// What went wrong, as an event of its own.
    error: Option<String>,
    result: Option<Map<String, Value>>,
}

impl StreamFormat for Session {
    fn event(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let word = |key: &str| event.get(key).and_then(Value::as_str);
        let kind = word("type");
        let is_said = kind == Some("message") && word("role") == Some("assistant");
        let is_piece = is_said && event.get("delta").and_then(Value::as_bool) == Some(true);
        if is_said {
            so_far.said.add(word("content").unwrap_or_default(), say);
        }
        if !is_piece {
            so_far.said.end_message(say);
        }
        match kind {
            Some("init") => {
                so_far.usage.session = word("session_id").map(str::to_owned);
                so_far.usage.model = word("model").map(str::to_owned);
            }
            Some("error") => {
                let message = word("message").unwrap_or_default();
                say(&plain(message));
                if word("severity") != Some("warning") {
                    self.error = Some(message.to_owned());
                }
            }
            Some("result") => {
                let stats = event.get("stats");
                let count = |key| count(stats, key);
                so_far.usage.input_tokens = count("input_tokens");
                // What it thinks is part of the sum alone.
                let rest = count("total_tokens").saturating_sub(count("input_tokens"));
                so_far.usage.output_tokens = count("output_tokens").max(rest);
                so_far.is_done = true;
                self.result = Some(event.clone());
            }
            _ => {}
        }
    }

    fn last_words(&self, so_far: &StreamState) -> Result<String, Failure> {
        let result = self.result.as_ref();
        let error = result.and_then(|result| result.get("error")?.get("message")?.as_str());
        let status = result.and_then(|result| result.get("status")?.as_str());
        match (error.or(self.error.as_deref()), status) {
            (None, Some("success")) => Ok(so_far.said.last().to_owned()),
            (Some(why), _) => Err(Failure::Failed(format!("it failed: {}", excerpt(why)))),
            (None, Some(status)) => Err(Failure::Failed(format!("it ended with `{}`", excerpt(status)))),
            (None, None) => Err(Failure::Misunderstood("its result has no `status`".to_owned())),
        }
    }

    fn complaint(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::stream::tests::{assert_failed, play, play_answer};
    use super::*;

    fn piece(text: &str) -> Value {
        json!({"type": "message", "role": "assistant", "content": text, "delta": true})
    }

    fn result(more: &Value) -> Value {
        let stats = json!({"total_tokens": 130, "input_tokens": 100, "output_tokens": 20, "tool_calls": 1});
        let mut result = json!({"type": "result", "status": "success", "stats": stats});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        result
    }

    fn error(severity: &str, message: &str) -> Value {
        json!({"type": "error", "severity": severity, "message": message})
    }

    #[test]
    fn a_prompt_goes_through_standard_input() {
        let tools = ["Read".to_owned()];
        let full = Prompt {
            text: "--fix it",
            agent: Some("fixer"),
            tools: &tools,
            model: Some("small"),
            ..Prompt::default()
        };
        let call = Gemini.prompt(&full, &Terms::default());
        let expected = "gemini --output-format stream-json --approval-mode yolo --model small";
        assert_eq!(call.argv.join(" "), expected);
        assert_eq!((call.stdin.as_deref(), call.env.len()), (Some("--fix it"), 0));
    }

    #[test]
    fn a_question_is_asked_without_rights() {
        let question =
            Question { prompt: "ok?".into(), schema: json!({"type": "object"}), model: Some("m".into()) };
        let call = Gemini.judge(&question, None, &Terms::default());
        assert_eq!(call.argv.join(" "), "gemini --output-format stream-json --model m");
        assert!(call.stdin.unwrap().contains(r#"{"type":"object"}"#));
    }

    #[test]
    fn a_good_session_is_what_was_said_and_what_it_took() {
        let lines = [
            json!({"type": "init", "session_id": "s1", "model": "large"}),
            json!({"type": "message", "role": "user", "content": "fix it"}),
            piece("on"),
            piece("e\ntw"),
            piece("o"),
            json!({"type": "tool_use", "tool_name": "read_file", "tool_id": "1", "parameters": {}}),
            json!({"type": "tool_result", "tool_id": "1", "status": "error", "error": {"message": "no file"}}),
            error("warning", "a loop"),
            json!({"type": "message", "role": "assistant", "content": "three"}),
            result(&json!({})),
        ];
        let (shown, text, usage) = play(&Gemini, &lines, 0);
        assert_eq!(shown, ["one", "two", "a loop", "three"]);
        assert_eq!(text.as_deref(), Ok("one\ntwo\nthree\n"));
        let expected = Usage {
            calls: 1,
            input_tokens: 100,
            output_tokens: 30,
            model: Some("large".into()),
            session: Some("s1".into()),
            ..Usage::default()
        };
        assert_eq!(usage, expected);
    }

    #[test]
    fn nothing_but_a_good_result_is_a_success() {
        let bad = |lines: &[Value], code, why| assert_failed(&Gemini, lines, code, why);
        let good = || result(&json!({}));
        bad(&[], 0, "without a result (exit 0)");
        bad(&[piece("half")], 53, "without a result (exit 53)");
        bad(&[json!("Error: no key")], 1, "Error: no key");
        bad(&[piece("x"), json!("{\"type\": \"resu")], 0, "resu");
        bad(&[json!({"kind": "finished"})], 0, "without a result");
        bad(&[good()], 0, "its result is empty");
        bad(&[piece("x"), good()], 1, "exited with 1, after a good result");
        bad(&[piece("x"), json!({"type": "result"})], 0, "no `status`");
        bad(&[piece("x"), result(&json!({"status": "error"}))], 1, "it ended with `error`");
        let failed = json!({"status": "error", "error": {"type": "Error", "message": "boom"}});
        bad(&[piece("x"), result(&failed)], 1, "it failed: boom");
        bad(&[piece("x"), error("error", "too many turns"), good()], 0, "it failed: too many turns");
        bad(&[error("error", "lost")], 0, "(exit 0): lost");
    }

    #[test]
    fn failures_are_told_apart_by_codes() {
        let failed =
            result(&json!({"status": "error", "error": {"type": "ApiError", "message": "429 quota 401"}}));
        let why = || "it failed: 429 quota 401".to_owned();
        for code in NOT_SET_UP {
            assert_eq!(
                play(&Gemini, std::slice::from_ref(&failed), *code).1,
                Err(Failure::Unavailable(why()))
            );
        }
        assert_eq!(play(&Gemini, std::slice::from_ref(&failed), 1).1, Err(Failure::Failed(why())));
        let silent = play(&Gemini, &[], 41).1;
        assert_eq!(silent, Err(Failure::Unavailable("it ended without a result (exit 41)".into())));
        assert!(matches!(Gemini.answer("", 41).0, Err(Failure::Unavailable(_))));
    }

    #[test]
    fn an_answer_is_the_last_message() {
        let lines = [
            piece("I look."),
            json!({"type": "tool_use"}),
            piece("{\"verdict\": "),
            piece("\"yes\"}"),
            result(&json!({})),
        ];
        let stdout: String = lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
        assert_eq!(play_answer(&Gemini, &lines, 0).as_deref(), Ok("{\"verdict\": \"yes\"}\n"));
        let (answer, usage) = Gemini.answer(&stdout, 0);
        assert_eq!((answer, usage.calls, usage.tokens()), (Ok(json!({"verdict": "yes"})), 1, 130));
    }
}
