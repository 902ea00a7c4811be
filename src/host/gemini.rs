//! Gemini CLI: `gemini --output-format stream-json`, which works without a person when its input is not a terminal, and
//! reads its prompt from there.
//!
//! What it was measured to do and this relies on: every line of the output is an event with a `type`. `init` has the
//! `session_id` and the `model`; `message` has a `role` and a `content`, and `delta` where more of it follows; `tool_use` and
//! `tool_result` stand around what a tool does; `error` has a `severity`, `warning` or `error`, and a `message`; `result`
//! ends the call with a `status`, `success` or `error`, an `error` with a `message`, and `stats` with the tokens of the call.
//! The exit code is one of its own, or the status of the service modulo 256. An untrusted directory ends a call,
//! unless `--skip-trust` says that it is meant. Hooks and servers of a checkout run where `GEMINI_CLI_TRUST_WORKSPACE` is true,
//! or the settings of the user turn this trust off for all; `--allowed-mcp-server-names` admits no server even so. `--approval-mode yolo` asks nobody. A tool that a `--policy` denies is not
//! offered to the model at all.
//!
//! There is no price, and no schema for an answer, so its form is asked for in the prompt. A service that cannot be reached
//! is asked again and again, of which nothing but its error output tells.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::host_call::{asked, options, prompted, variable, words};
use super::host_output::excerpt;
use super::interface::{
    Access, Attachment, Failure, Host, HostSettings, Invocation, Listener, Prompt, Pulse, Release, Terms,
    Version,
};
use super::stream::{Kind, StreamFormat, StreamReader, StreamState, count, status_failure};
use crate::base::text::plain;
use crate::evaluate::model::{Question, Usage};

/// The host.
pub(super) struct Gemini;

/// A name that no server has.
const NO_SERVER: &str = "none";

/// Says whether the settings of the checkout count.
const TRUST: &str = "GEMINI_CLI_TRUST_WORKSPACE";

/// The tools that edit, and those that run commands.
const EDITS: &str = r#""replace", "write_file""#;
const COMMANDS: &str = r#""run_shell_command""#;

impl Host for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn prices(&self) -> bool {
        false
    }

    fn ignores(&self) -> &'static [&'static str] {
        &["agent", "tools", "max_tokens", "fallback_model"]
    }

    fn enforces(&self, _: Access) -> bool {
        true
    }

    /// It reads `.env` of any directory, trusted or not, and the address of its service with it.
    fn heeds(&self) -> Option<&'static str> {
        Some("the `.env` files")
    }

    fn release(&self) -> Release {
        Release {
            around: ("", ""),
            oldest: Version(0, 61, 0),
            install: "npm install -g @google/gemini-cli@latest",
        }
    }

    fn prompt(&self, prompt: &Prompt<'_>, terms: &Terms) -> Invocation {
        let denied = match prompt.access {
            Access::Write => None,
            Access::ReadShell => Some(format!("[{EDITS}]")),
            Access::ReadOnly => Some(format!("[{EDITS}, {COMMANDS}]")),
        };
        let more =
            [("--approval-mode", Some("yolo")), ("--model", prompt.model), ("--resume", prompt.session)];
        call(&more, terms.settings, denied, prompted(prompt))
    }

    fn listen(&self, _: &Terms) -> Box<dyn Listener> {
        Box::new(reader())
    }

    fn judge(&self, question: &Question, _: Option<u32>, _: &Terms) -> Invocation {
        let denied = Some(r#""*""#.to_owned());
        call(&[("--model", question.model.as_deref())], HostSettings::User, denied, asked(question))
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        reader().reply(stdout, exit_code)
    }
}

fn call(
    more: &[(&str, Option<&str>)],
    settings: HostSettings,
    denied: Option<String>,
    text: String,
) -> Invocation {
    let mut argv = words("gemini --output-format stream-json --skip-trust");
    // The environment of a job may say that its checkout is trusted.
    let trusts = match settings {
        HostSettings::User => {
            argv.extend(["--allowed-mcp-server-names", NO_SERVER].map(str::to_owned));
            "false"
        }
        HostSettings::Project => "true",
    };
    argv.extend(options(more));
    let file = denied.map(|tools| {
        argv.extend(["--policy".to_owned(), String::new()]);
        let text = format!("[[rule]]\ntoolName = {tools}\ndecision = \"deny\"\npriority = 999\n");
        Attachment { argument: argv.len() - 1, suffix: ".toml", text }
    });
    Invocation { argv, stdin: Some(text), env: vec![variable(TRUST, trusts)], file }
}

fn reader() -> StreamReader<GeminiSession> {
    StreamReader::new(GeminiSession::default())
}

/// Returns what an exit code says.
fn failure_of(exit_code: i32) -> Option<Kind> {
    match exit_code {
        // Its own codes: 41 and 44 are about login and sandbox, 52 and 55 about configuration and
        // trust.
        41 | 44 | 52 | 55 => Some(Failure::Unavailable),
        53 => Some(Failure::OutOfTurns),
        // A status of the service, modulo 256. 17 is 529, which says that the service is overloaded.
        17 => Some(Failure::Transient),
        144..=255 => status_failure(u16::try_from(exit_code + 256).ok()?),
        _ => None,
    }
}

/// The events of a session.
#[derive(Default)]
struct GeminiSession {
    /// What went wrong, as an event of its own.
    error: Option<String>,
    /// What the error output said of a call of the service that is made again.
    trouble: Option<String>,
    /// The tools that are at work.
    at_work: BTreeSet<String>,
    result: Option<Map<String, Value>>,
}

impl StreamFormat for GeminiSession {
    fn event(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let word = |key: &str| event.get(key).and_then(Value::as_str);
        let kind = word("type");
        let is_said = kind == Some("message") && word("role") == Some("assistant");
        let is_piece = is_said && event.get("delta").and_then(Value::as_bool) == Some(true);
        if is_said {
            so_far.said.add(word("content").unwrap_or(""), say);
        }
        if !is_piece {
            so_far.said.end_message(say);
        }
        if is_said || matches!(kind, Some("tool_use" | "tool_result")) {
            self.trouble = None;
        }
        match kind {
            Some("tool_use") => self.at_work.extend(word("tool_id").map(str::to_owned)),
            Some("tool_result") => {
                self.at_work.remove(word("tool_id").unwrap_or(""));
            }
            Some("init") => {
                so_far.usage.session = word("session_id").map(str::to_owned);
                so_far.usage.model = word("model").map(str::to_owned);
            }
            Some("error") => {
                let message = word("message").unwrap_or("");
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
        self.error.as_deref().or(self.trouble.as_deref())
    }

    fn heard_of_trouble(&mut self, line: &str) {
        let attempt = line.strip_prefix("Attempt ").and_then(|rest| rest.split_once(" failed"));
        if attempt.is_some_and(|(number, _)| number.parse::<u32>().is_ok()) {
            self.trouble = Some(excerpt(&plain(line)));
        }
    }

    fn failure_of(&self, exit_code: i32) -> Option<Kind> {
        failure_of(exit_code)
    }

    fn pulse(&self) -> Pulse {
        match (&self.trouble, self.at_work.is_empty()) {
            (Some(_), _) => Pulse::Retrying,
            (None, false) => Pulse::Working,
            (None, true) => Pulse::Thinking,
        }
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

    const START: &str = "gemini --output-format stream-json --skip-trust --allowed-mcp-server-names none";

    /// Without `--skip-trust`, every fresh checkout ended in 55.
    #[test]
    fn a_prompt_goes_through_standard_input() {
        let full = Prompt {
            text: "--fix it",
            agent: Some("fixer"),
            model: Some("small"),
            session: Some("s-1"),
            ..Prompt::default()
        };
        let call = Gemini.prompt(&full, &Terms::default());
        assert_eq!(call.argv.join(" "), format!("{START} --approval-mode yolo --model small --resume s-1"));
        assert_eq!((call.stdin.as_deref(), call.file), (Some("--fix it"), None));
        assert_eq!(call.env, [variable(TRUST, "false")]);
        let project = Terms { settings: HostSettings::Project, ..Terms::default() };
        let call = Gemini.prompt(&full, &project);
        assert!(!call.argv.contains(&"--allowed-mcp-server-names".to_owned()));
        assert_eq!(call.env, [variable(TRUST, "true")]);
    }

    #[test]
    fn what_an_agent_may_not_use_is_not_offered() {
        let policy = |call: Invocation| {
            let file = call.file.unwrap();
            assert_eq!(call.argv[file.argument - 1], "--policy");
            file.text
        };
        let of = |access| policy(Gemini.prompt(&Prompt { access, ..Prompt::default() }, &Terms::default()));
        assert!(of(Access::ReadShell).contains(r#"toolName = ["replace", "write_file"]"#));
        assert!(
            of(Access::ReadOnly).contains(r#"toolName = ["replace", "write_file", "run_shell_command"]"#)
        );
        let question = Question { prompt: "ok?".into(), schema: json!({"type": "object"}), model: None };
        let call = Gemini.judge(&question, None, &Terms::default());
        assert!(call.stdin.as_deref().unwrap().contains(r#"{"type":"object"}"#));
        assert!(policy(call).contains(r#"toolName = "*""#));
    }

    #[test]
    fn an_exit_code_is_its_own_or_a_status_of_the_service() {
        let end = |code| play(&Gemini, &[], code).1.unwrap_err();
        for code in [41, 44, 52, 55, 145, 147, 148] {
            assert!(matches!(end(code), Failure::Unavailable(_)), "{code}");
        }
        for code in [173, 244, 247, 17] {
            assert!(matches!(end(code), Failure::Transient(_)), "{code}");
        }
        for code in [1, 42, 130, 137, 144] {
            assert!(matches!(end(code), Failure::Failed(_)), "{code}");
        }
        assert!(matches!(end(53), Failure::OutOfTurns(_)));
    }

    #[test]
    fn its_error_output_tells_of_a_service_that_cannot_be_reached() {
        let mut listener = Gemini.listen(&Terms::default());
        listener.line(r#"{"type": "init", "session_id": "s"}"#, &mut |_| {});
        listener.complaint("Ripgrep is not available.");
        assert_eq!(listener.pulse(), Pulse::Thinking);
        listener.complaint("Attempt 1 failed. Retrying with backoff... Error: fetch failed");
        listener.complaint("    at async Models.generate");
        assert_eq!(listener.pulse(), Pulse::Retrying);
        assert!(listener.trouble().unwrap().contains("fetch failed"));
        listener.line(r#"{"type": "tool_use", "tool_id": "t"}"#, &mut |_| {});
        assert_eq!(listener.pulse(), Pulse::Working);
        listener.line(r#"{"type": "tool_result", "tool_id": "t"}"#, &mut |_| {});
        assert_eq!(listener.pulse(), Pulse::Thinking);
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
        bad(&[piece("half")], 3, "without a result (exit 3)");
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
        for code in [41, 44, 52, 55] {
            assert_eq!(
                play(&Gemini, std::slice::from_ref(&failed), code).1,
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
