//! Codex: `codex exec --json`, which reads its prompt from standard input when that is called `-`.
//!
//! What its documentation says and this relies on: every line of the output is an event with a `type`. `thread.started`
//! has the `thread_id`; `item.completed` has an `item`, of which those of the type `agent_message` have the `text` of
//! the agent, and those of the type `error` a `message` about something that is not fatal; the turn ends with
//! `turn.completed` and its `usage`, or with `turn.failed` and an `error`. `--model` names the model,
//! `--dangerously-bypass-approvals-and-sandbox` asks nobody and confines nothing, `--sandbox read-only` lets nothing be
//! changed, `--skip-git-repo-check` works outside of a repository, `--ephemeral` keeps no session.
//!
//! What it does not say: an `error` event also tells of a connection that is made again, so what follows it counts.
//! There is no code in an error that would tell one that passes from one that stays, no price, and no name of the
//! model. `--output-schema` takes a file, so the form of an answer is asked for in the prompt.

use serde_json::{Map, Value};

use crate::base::text::plain;
use crate::evaluate::model::{Question, Usage};

use super::call::{asked, options, prompted, words};
use super::interface::{Failure, Host, Invocation, Listener, Prompt, Terms};
use super::output::excerpt;
use super::stream::{StreamFormat, StreamReader, StreamState, count};

/// The host.
pub(super) struct Codex;

/// What it reads its prompt from.
const STDIN: &str = "-";

impl Host for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn prices(&self) -> bool {
        false
    }

    fn ignores(&self) -> &'static [&'static str] {
        &["agent", "tools", "max_tokens", "session", "fallback_model"]
    }

    fn prompt(&self, prompt: &Prompt<'_>, _: &Terms) -> Invocation {
        call("--dangerously-bypass-approvals-and-sandbox", prompt.model, prompted(prompt))
    }

    fn listen(&self) -> Box<dyn Listener> {
        Box::new(reader())
    }

    fn judge(&self, question: &Question, _: Option<u32>, _: &Terms) -> Invocation {
        call("--sandbox read-only --ephemeral", question.model.as_deref(), asked(question))
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        reader().reply(stdout, exit_code)
    }
}

fn call(rights: &str, model: Option<&str>, text: String) -> Invocation {
    let mut argv = words("codex exec --json --skip-git-repo-check");
    argv.extend(words(rights));
    argv.extend(options(&[("--model", model)]));
    argv.push(STDIN.to_owned());
    Invocation { argv, stdin: Some(text), env: Vec::new() }
}

fn reader() -> StreamReader<Turn> {
    StreamReader::new(Turn::default(), &[])
}

/// The events of a turn.
#[derive(Default)]
struct Turn {
    /// What was said to go wrong last.
    error: Option<String>,
    has_failed: bool,
    /// The command that it was not allowed to run.
    declined: Option<String>,
}

impl StreamFormat for Turn {
    fn event(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let message = |of: Option<&Value>| Some(of?.get("message")?.as_str()?.to_owned());
        match event.get("type").and_then(Value::as_str) {
            Some("thread.started") => {
                so_far.usage.session = event.get("thread_id").and_then(Value::as_str).map(str::to_owned);
            }
            Some("item.completed") => self.item(event.get("item"), so_far, say),
            Some("error") => {
                self.error = event.get("message").and_then(Value::as_str).map(str::to_owned);
                say(&plain(self.error.as_deref().unwrap_or_default()));
            }
            Some("turn.failed") => {
                self.error = message(event.get("error")).or(self.error.take());
                self.has_failed = true;
                so_far.is_done = true;
            }
            Some("turn.completed") => {
                let usage = event.get("usage");
                let count = |key| count(usage, key);
                // What came from a cache is part of the input.
                so_far.usage.input_tokens = count("input_tokens");
                so_far.usage.output_tokens = count("output_tokens");
                so_far.is_done = true;
            }
            _ => {}
        }
    }

    fn last_words(&self, so_far: &StreamState) -> Result<String, Failure> {
        if self.has_failed {
            let why = self.error.as_deref().unwrap_or("it does not say why");
            return Err(Failure::Failed(format!("it failed: {}", excerpt(why))));
        }
        match &self.declined {
            Some(command) => {
                Err(Failure::Failed(format!("it was denied permission to run `{}`", excerpt(command))))
            }
            None => Ok(so_far.said.last().to_owned()),
        }
    }

    fn complaint(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

impl Turn {
    fn item(&mut self, item: Option<&Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let word = |key: &str| item.and_then(|item| item.get(key)?.as_str());
        match (word("type"), word("text"), word("message")) {
            (Some("agent_message"), Some(text), _) => so_far.said.message(text, say),
            (Some("error"), _, Some(message)) => say(&plain(message)),
            (Some("command_execution"), ..) if word("status") == Some("declined") => {
                self.declined = word("command").map(str::to_owned).or(self.declined.take());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::stream::tests::{assert_failed, play, play_answer};
    use super::*;

    fn says(text: &str) -> Value {
        item(&json!({"id": "item_1", "type": "agent_message", "text": text}))
    }

    fn item(item: &Value) -> Value {
        json!({"type": "item.completed", "item": item})
    }

    fn completed() -> Value {
        let usage = json!({"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7});
        json!({"type": "turn.completed", "usage": usage})
    }

    fn failed(why: &str) -> Value {
        json!({"type": "turn.failed", "error": {"message": why}})
    }

    fn error(why: &str) -> Value {
        json!({"type": "error", "message": why})
    }

    #[test]
    fn a_prompt_goes_through_standard_input() {
        let tools = ["Read".to_owned()];
        let full = Prompt {
            text: "- fix it",
            agent: Some("fixer"),
            tools: &tools,
            model: Some("small"),
            ..Prompt::default()
        };
        let call = Codex.prompt(&full, &Terms::default());
        let expected = "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --model small -";
        assert_eq!(call.argv.join(" "), expected);
        assert_eq!((call.stdin.as_deref(), call.env.len()), (Some("- fix it"), 0));
    }

    #[test]
    fn a_question_changes_nothing_and_has_its_form_in_its_text() {
        let question = Question { prompt: "ok?".into(), schema: json!({"type": "object"}), model: None };
        let call = Codex.judge(&question, Some(256), &Terms::default());
        let expected = "codex exec --json --skip-git-repo-check --sandbox read-only --ephemeral -";
        assert_eq!(call.argv.join(" "), expected);
        let text = call.stdin.unwrap();
        assert!(text.starts_with("ok?\n\n") && text.contains(r#"{"type":"object"}"#), "{text}");
    }

    #[test]
    fn a_good_turn_is_what_was_said_and_what_it_took() {
        let lines = [
            json!({"type": "thread.started", "thread_id": "t1"}),
            json!({"type": "turn.started"}),
            item(&json!({"type": "error", "message": "a warning"})),
            says("one\ntwo"),
            item(&json!({"type": "command_execution", "command": "ls", "exit_code": 2, "status": "failed"})),
            error("Reconnecting... 1/5"),
            says("three"),
            completed(),
        ];
        let (shown, text, usage) = play(&Codex, &lines, 0);
        assert_eq!(shown, ["a warning", "one", "two", "Reconnecting... 1/5", "three"]);
        assert_eq!(text.as_deref(), Ok("one\ntwo\nthree\n"));
        let expected = Usage {
            calls: 1,
            input_tokens: 100,
            output_tokens: 7,
            session: Some("t1".into()),
            ..Usage::default()
        };
        assert_eq!(usage, expected);
    }

    #[test]
    fn nothing_but_a_completed_turn_is_a_success() {
        let bad = |lines: &[Value], code, why| assert_failed(&Codex, lines, code, why);
        bad(&[], 0, "without a result (exit 0)");
        bad(&[says("half")], 137, "without a result (exit 137)");
        bad(&[says("half"), error("stream lost")], 1, "(exit 1): stream lost");
        bad(&[json!("no agent at all")], 0, "no agent at all");
        bad(&[says("x"), json!("{\"type\": \"turn.comp")], 0, "turn.comp");
        bad(&[json!({"kind": "finished"})], 0, "without a result");
        bad(&[completed()], 0, "its result is empty");
        bad(&[says(" "), completed()], 0, "its result is empty");
        bad(&[says("x"), completed()], 1, "exited with 1, after a good result");
        bad(&[says("x"), failed("no such model")], 0, "it failed: no such model");
        bad(&[error("first"), json!({"type": "turn.failed"})], 1, "it failed: first");
        bad(&[json!({"type": "turn.failed"})], 1, "does not say why");
        let declined = json!({"type": "command_execution", "command": "rm -r /", "status": "declined"});
        bad(&[item(&declined), says("x"), completed()], 0, "denied permission to run `rm -r /`");
    }

    #[test]
    fn words_in_a_text_decide_nothing() {
        let (_, end, _) = play(&Codex, &[failed("429 Too Many Requests, quota used up, 401")], 1);
        assert!(matches!(end, Err(Failure::Failed(_))), "{end:?}");
    }

    #[test]
    fn an_answer_is_the_last_message() {
        let stream = |messages: &[&str]| {
            let lines = messages.iter().map(|text| says(text)).chain([completed()]);
            lines.flat_map(|line| [line.to_string(), "\n".to_owned()]).collect::<String>()
        };
        let lines = [says("I look."), says("{}"), completed()];
        assert_eq!(play_answer(&Codex, &lines, 0).as_deref(), Ok("{}\n"));
        let yes = json!({"verdict": "yes"});
        for last in ["{\"verdict\": \"yes\"}", "so:\n```json\n{\"verdict\": \"yes\"}\n```\n"] {
            let (answer, usage) = Codex.answer(&stream(&["I look at {it}.", last]), 0);
            assert_eq!((answer, usage.calls, usage.tokens()), (Ok(yes.clone()), 1, 107));
        }
        let why = |stdout: &str, code| Codex.answer(stdout, code).0.unwrap_err();
        assert_eq!(
            why(&stream(&["perhaps"]), 0),
            Failure::Failed("its answer is not a JSON object: perhaps".into())
        );
        assert!(matches!(why("", 0), Failure::Misunderstood(_)));
        assert!(matches!(why("", 2), Failure::Failed(_)));
        assert_eq!(Codex.answer("", 2).1.calls, 1);
    }
}
