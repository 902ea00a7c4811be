//! Codex: `codex exec --json`, which reads its prompt from standard input when that is called `-`.
//!
//! What it was measured to do and this relies on: every line of the output is an event with a `type`. `thread.started`
//! has the `thread_id`; `item.completed` has an `item`, of which those of the type `agent_message` have the `text` of
//! the agent, and those of the type `error` a `message` about something that is not fatal; the turn ends with
//! `turn.completed` and its `usage`, which is that of the whole thread, or with `turn.failed` and an `error`. An `error`
//! event also tells of a connection that is made again, which goes on for ever without a network. The options of `exec`
//! stand before `resume`. `--ignore-user-config` keeps the configuration of the user out, where checkouts are trusted, and
//! with it that of the checkout; `--ignore-rules` keeps rules out that let commands leave the sandbox.
//!
//! There is no code in an error: the status of the service stands at the start of the message. There is no price, and no
//! name of the model. What its sandbox denies an agent gives no event of its own.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::host_call::{options, words};
use super::host_output::excerpt;
use super::interface::{
    Access, Attachment, Counting, Failure, Host, HostSettings, Invocation, Listener, Preflight, Prompt,
    Pulse, Release, Terms, Version,
};
use super::stream::{StreamFormat, StreamReader, StreamState, count, status_failure};
use crate::base::text::plain;
use crate::evaluate::model::{ConversationUsage, Question, Usage};

/// The host.
pub(super) struct Codex;

/// What it reads its prompt from.
const STDIN: &str = "-";

/// What the message of an error begins with when the status of the service follows.
const STATUS: [&str; 2] = ["unexpected status ", "exceeded retry limit, last status: "];

/// The keys, with one of which no login is needed.
const KEYS: [&str; 2] = ["CODEX_API_KEY", "OPENAI_API_KEY"];

impl Host for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn prices(&self) -> bool {
        false
    }

    fn ignores(&self) -> &'static [&'static str] {
        &["agent", "tools", "max_tokens", "fallback_model"]
    }

    fn enforces(&self, access: Access) -> bool {
        // With a shell that writes, as builds need it, it can edit too.
        access != Access::ReadShell
    }

    fn keeps_inside(&self) -> bool {
        true
    }

    fn release(&self) -> Release {
        Release {
            around: ("codex-cli ", ""),
            oldest: Version(0, 163, 0),
            install: "npm install -g @openai/codex@latest",
        }
    }

    fn preflight(&self, is_set: &dyn Fn(&str) -> bool) -> Option<Preflight> {
        let is_needed = !KEYS.into_iter().any(is_set);
        let advice = "it is not logged in: set `CODEX_API_KEY`, or log in with `codex login`";
        is_needed.then_some(Preflight { arguments: &["login", "status"], denial: "Not logged in", advice })
    }

    fn prompt(&self, prompt: &Prompt<'_>, terms: &Terms) -> Invocation {
        let rights = match prompt.access {
            // Its own sandbox is made of namespaces, which ours forbids: no command would start in it.
            _ if terms.is_confined => "-s danger-full-access",
            Access::Write | Access::ReadShell => {
                "-s workspace-write -c sandbox_workspace_write.network_access=true"
            }
            Access::ReadOnly => "-s read-only",
        };
        call(rights, terms.settings, prompt.model, prompt.answer, prompt.session, prompt.text)
    }

    fn listen(&self, _: &Terms) -> Box<dyn Listener> {
        Box::new(reader())
    }

    fn judge(&self, question: &Question, _: Option<u32>, _: &Terms) -> Invocation {
        let (rights, model) = ("-s read-only --ephemeral", question.model.as_deref());
        call(rights, HostSettings::User, model, Some(&question.schema), None, &question.prompt)
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        reader().reply(stdout, exit_code)
    }
}

fn call(
    rights: &str,
    settings: HostSettings,
    model: Option<&str>,
    schema: Option<&Value>,
    session: Option<&str>,
    text: &str,
) -> Invocation {
    // Outside of a git repository it would end with 1.
    let mut argv = words("codex exec --json --skip-git-repo-check");
    if settings == HostSettings::User {
        // `AGENTS.md` is handed over by ll-loop, the same for every host; the document that codex
        // finds itself would come twice. Plugins are the user's; without, codex fetches a list of
        // them at each call.
        argv.extend(words(
            "--ignore-user-config --ignore-rules -c project_doc_max_bytes=0 -c features.plugins=false",
        ));
    }
    argv.extend(words(rights));
    argv.extend(options(&[("--model", model)]));
    let strict = schema.filter(|schema| is_strict(schema));
    let file = strict.map(|schema| {
        argv.push("--output-schema".to_owned());
        argv.push(String::new());
        Attachment { argument: argv.len() - 1, suffix: ".json", text: schema.to_string() }
    });
    // The options of `exec` have to stand before `resume`.
    if let Some(session) = session {
        argv.push("resume".to_owned());
        // It has no option of its own, and may be what an action printed.
        argv.extend(Some("--".to_owned()).filter(|_| session.starts_with('-')));
        argv.push(session.to_owned());
    }
    argv.push(STDIN.to_owned());
    let text = match schema {
        // A schema that the service would refuse is asked for in the prompt instead.
        Some(schema) if file.is_none() => super::host_call::with_form(text, schema),
        Some(_) | None => text.to_owned(),
    };
    Invocation { argv, stdin: Some(text), env: Vec::new(), file }
}

/// Tells whether its service takes a schema: every property has to be required, and no other allowed.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(of) => {
            let is_object = of.get("type").and_then(Value::as_str) == Some("object");
            let properties = of.get("properties").and_then(Value::as_object);
            let required = of.get("required").and_then(Value::as_array);
            let names = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name));
            let is_closed = of.get("additionalProperties") == Some(&Value::Bool(false))
                && properties.is_some_and(|properties| properties.keys().all(names));
            (!is_object || is_closed) && of.values().all(is_strict)
        }
        Value::Array(of) => of.iter().all(is_strict),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn reader() -> StreamReader<CodexTurn> {
    StreamReader::new(CodexTurn::default())
}

/// The events of a turn.
#[derive(Default)]
struct CodexTurn {
    /// What was said to go wrong last.
    error: Option<String>,
    has_failed: bool,
    is_retrying: bool,
    /// The items that are being worked on.
    at_work: BTreeSet<String>,
    counting: Counting,
}

impl StreamFormat for CodexTurn {
    fn event(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let message = |of: Option<&Value>| Some(of?.get("message")?.as_str()?.to_owned());
        let kind = event.get("type").and_then(Value::as_str);
        match kind {
            Some("thread.started") => {
                so_far.usage.session = event.get("thread_id").and_then(Value::as_str).map(str::to_owned);
            }
            Some("item.started" | "item.updated" | "item.completed") => {
                // An item that is an error tells of the connection too, and of no progress.
                let kind_of_item = event.get("item").and_then(|item| item.get("type")?.as_str());
                self.is_retrying &= kind_of_item == Some("error");
                self.work(event.get("item"), kind != Some("item.completed"));
                if kind == Some("item.completed") {
                    item(event.get("item"), so_far, say);
                }
            }
            Some("error") => {
                self.is_retrying = true;
                self.error = event.get("message").and_then(Value::as_str).map(str::to_owned);
                say(&plain(self.error.as_deref().unwrap_or("")));
            }
            Some("turn.failed") => {
                // A `turn.failed` without a message comes after an `error` event that has one.
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
                self.counting = Counting::Conversation(ConversationUsage {
                    input_tokens: so_far.usage.input_tokens,
                    output_tokens: so_far.usage.output_tokens,
                    cost_usd: 0.0,
                });
                so_far.is_done = true;
            }
            _ => {}
        }
    }

    fn last_words(&self, so_far: &StreamState) -> Result<String, Failure> {
        if !self.has_failed {
            return Ok(so_far.said.last().to_owned());
        }
        let why = self.error.as_deref().unwrap_or("it does not say why");
        let status = STATUS.iter().find_map(|start| why.strip_prefix(start)?.get(..3)?.parse().ok());
        let failure = status.and_then(status_failure).unwrap_or(Failure::Failed);
        Err(failure(format!("it failed: {}", excerpt(why))))
    }

    fn complaint(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn pulse(&self) -> Pulse {
        match (self.is_retrying, self.at_work.is_empty()) {
            (true, _) => Pulse::Retrying,
            (false, false) => Pulse::Working,
            (false, true) => Pulse::Thinking,
        }
    }

    fn counting(&self) -> Counting {
        self.counting
    }
}

impl CodexTurn {
    /// Keeps in mind what is being worked on.
    fn work(&mut self, item: Option<&Value>, is_open: bool) {
        let word = |key: &str| item.and_then(|item| item.get(key)?.as_str());
        let Some(id) = word("id") else { return };
        if is_open && matches!(word("type"), Some("command_execution" | "mcp_tool_call" | "web_search")) {
            self.at_work.insert(id.to_owned());
        } else {
            self.at_work.remove(id);
        }
    }
}

fn item(item: Option<&Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
    let word = |key: &str| item.and_then(|item| item.get(key)?.as_str());
    match (word("type"), word("text"), word("message")) {
        (Some("agent_message"), Some(text), _) => so_far.said.message(text, say),
        (Some("error"), _, Some(message)) => say(&plain(message)),
        _ => {}
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

    const START: &str = "codex exec --json --skip-git-repo-check --ignore-user-config --ignore-rules -c project_doc_max_bytes=0 -c features.plugins=false";
    const WRITES: &str = "-s workspace-write -c sandbox_workspace_write.network_access=true";

    fn argv(prompt: &Prompt<'_>, settings: HostSettings) -> String {
        Codex.prompt(prompt, &Terms { settings, ..Terms::default() }).argv.join(" ")
    }

    #[test]
    fn a_prompt_goes_through_standard_input() {
        let prompt =
            Prompt { text: "- fix it", agent: Some("fixer"), model: Some("small"), ..Prompt::default() };
        let call = Codex.prompt(&prompt, &Terms::default());
        assert_eq!(call.argv.join(" "), format!("{START} {WRITES} --model small -"));
        assert_eq!((call.stdin.as_deref(), call.env.len()), (Some("- fix it"), 0));
        let project = argv(&prompt, HostSettings::Project);
        assert!(!project.contains("--ignore"), "{project}");
        let reads = Prompt { access: Access::ReadOnly, ..prompt };
        assert_eq!(argv(&reads, HostSettings::User), format!("{START} -s read-only --model small -"));
        // A sandbox in ours cannot start, and ours shows who only looks a tree that cannot be written.
        for prompt in [prompt, reads] {
            let confined = Codex.prompt(&prompt, &Terms { is_confined: true, ..Terms::default() });
            assert_eq!(confined.argv.join(" "), format!("{START} -s danger-full-access --model small -"));
        }
    }

    /// The options of `exec` stand before `resume`; behind it, some of them are an error.
    #[test]
    fn a_conversation_goes_on() {
        let prompt = Prompt { text: "go on", session: Some("t-1"), ..Prompt::default() };
        assert_eq!(argv(&prompt, HostSettings::User), format!("{START} {WRITES} resume t-1 -"));
        let prompt = Prompt { session: Some("--yolo"), ..prompt };
        assert_eq!(argv(&prompt, HostSettings::User), format!("{START} {WRITES} resume -- --yolo -"));
    }

    #[test]
    fn a_schema_is_a_file_where_the_service_takes_it() {
        let strict = json!({
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false,
        });
        let prompt = Prompt { text: "fix it", answer: Some(&strict), ..Prompt::default() };
        let call = Codex.prompt(&prompt, &Terms::default());
        let file = call.file.unwrap();
        assert_eq!(call.argv[file.argument - 1], "--output-schema");
        assert_eq!((call.stdin.as_deref(), file.text), (Some("fix it"), strict.to_string()));
        for loose in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ] {
            let call = Codex.prompt(&Prompt { answer: Some(&loose), ..prompt }, &Terms::default());
            assert!(call.file.is_none() && call.stdin.unwrap().contains(&loose.to_string()));
        }
    }

    #[test]
    fn a_question_changes_nothing_and_has_its_form() {
        let question = Question { prompt: "ok?".into(), schema: json!({"type": "object"}), model: None };
        let call = Codex.judge(&question, Some(256), &Terms::default());
        assert_eq!(call.argv.join(" "), format!("{START} -s read-only --ephemeral -"));
        let text = call.stdin.unwrap();
        assert!(text.starts_with("ok?\n\n") && text.contains(r#"{"type":"object"}"#), "{text}");
    }

    #[test]
    fn a_login_is_asked_for_where_there_is_no_key() {
        assert!(Codex.preflight(&|_| false).is_some());
        assert_eq!(Codex.preflight(&|name| name == "OPENAI_API_KEY"), None);
        assert_eq!(Codex.preflight(&|name| name == "CODEX_API_KEY"), None);
        assert_eq!(Codex.release().read("codex-cli 0.169.0\n"), Some(Version(0, 169, 0)));
    }

    /// The usage of a turn is that of its thread.
    #[test]
    fn a_thread_is_counted_as_a_whole() {
        let mut listener = Codex.listen(&Terms::default());
        listener.line(&completed().to_string(), &mut |_| {});
        let sum = ConversationUsage { input_tokens: 100, output_tokens: 7, cost_usd: 0.0 };
        assert_eq!(listener.counting(), Counting::Conversation(sum));
    }

    #[test]
    fn the_status_of_the_service_stands_at_the_start_of_a_message() {
        let end = |why: &str| play(&Codex, &[failed(why)], 1).1.unwrap_err();
        let denied = "unexpected status 401 Unauthorized: bad key, url: http://localhost/v1/responses";
        assert!(matches!(end(denied), Failure::Unavailable(_)));
        assert!(matches!(
            end("exceeded retry limit, last status: 429 Too Many Requests"),
            Failure::Transient(_)
        ));
        assert!(matches!(end("unexpected status 503 x"), Failure::Transient(_)));
        assert!(matches!(end("unexpected status 400 x"), Failure::Failed(_)));
        assert!(matches!(end("unexpected status \u{e9}\u{e9}"), Failure::Failed(_)));
    }

    /// Without a network it waits for ever, and says so.
    #[test]
    fn how_a_call_is_getting_on() {
        let mut listener = Codex.listen(&Terms::default());
        let mut pulse = |line: Value| {
            listener.line(&line.to_string(), &mut |_| {});
            listener.pulse()
        };
        let command = |kind: &str| json!({"type": kind, "item": {"id": "i", "type": "command_execution", "command": "make"}});
        assert_eq!(pulse(json!({"type": "thread.started"})), Pulse::Thinking);
        assert_eq!(pulse(error("Reconnecting... waiting for network")), Pulse::Retrying);
        assert_eq!(pulse(command("item.started")), Pulse::Working);
        assert_eq!(pulse(command("item.completed")), Pulse::Thinking);
        assert_eq!(pulse(error("x")), Pulse::Retrying);
        assert_eq!(listener.trouble(), Some("x"));
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
    }

    #[test]
    fn words_in_a_text_decide_nothing() {
        let (_, end, _) = play(&Codex, &[failed("it said: 429 Too Many Requests, quota used up, 401")], 1);
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
            Failure::WrongForm("its answer is not a JSON object: perhaps".into())
        );
        assert!(matches!(why("", 0), Failure::Misunderstood(_)));
        assert!(matches!(why("", 2), Failure::Failed(_)));
        assert_eq!(Codex.answer("", 2).1.calls, 1);
    }
}
