//! Claude Code: `claude -p`, with a stream of JSON lines for prompts and one JSON document for questions.

use serde_json::{Map, Value};

use crate::base::text::plain;
use crate::evaluate::model::{self, Question, Usage};

use super::call::{options, passed, variable, words};
use super::interface::{Failure, Host, Invocation, Listener, Prompt, Terms};
use super::output::{document, excerpt, object_in};
use super::stream::{StreamFormat, StreamReader, StreamState, count};

/// The host.
pub(super) struct Claude;

/// A quota that is used up, and when it is there again, in seconds since 1970, where that is known.
#[derive(Clone, Copy)]
struct Met {
    resets_at: Option<i64>,
}

/// Makes the agent's shell come back to the directory of the action after every command.
const HOME: &str = "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR";

const LONGEST_ANSWER: &str = "CLAUDE_CODE_MAX_OUTPUT_TOKENS";

impl Host for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn prices(&self) -> bool {
        true
    }

    fn ignores(&self) -> &'static [&'static str] {
        &[]
    }

    fn prompt(&self, prompt: &Prompt<'_>, _: &Terms) -> Invocation {
        // What stands behind `-p` is the prompt, unless it begins with a dash.
        let (argument, stdin) = match prompt.answer {
            Some(_) => (None, Some(prompt.text.to_owned())),
            None => passed(prompt.text),
        };
        let mut argv =
            words("claude --dangerously-skip-permissions --verbose --output-format stream-json -p");
        argv.extend(argument);
        let schema = prompt.answer.map(Value::to_string);
        let tools = prompt.tools.join(",");
        argv.extend(options(&[
            ("--json-schema", schema.as_deref()),
            ("--resume", prompt.session),
            ("--agent", prompt.agent),
            ("--tools", Some(tools.as_str()).filter(|tools| !tools.is_empty())),
            ("--model", prompt.model),
            ("--fallback-model", prompt.fallback),
        ]));
        Invocation { argv, stdin, env: vec![variable(HOME, "1")] }
    }

    fn listen(&self) -> Box<dyn Listener> {
        Box::new(StreamReader::new(Messages::default(), &[]))
    }

    fn judge(&self, question: &Question, max_tokens: Option<u32>, _: &Terms) -> Invocation {
        let (argument, stdin) = passed(&question.prompt);
        let mut argv = words("claude --output-format json -p");
        argv.extend(argument);
        argv.extend(["--json-schema".to_owned(), question.schema.to_string()]);
        argv.push("--no-session-persistence".to_owned());
        argv.extend(options(&[("--model", question.model.as_deref())]));
        let longest = max_tokens.map(|tokens| variable(LONGEST_ANSWER, &tokens.to_string()));
        Invocation { argv, stdin, env: longest.into_iter().collect() }
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        let Some(Value::Object(envelope)) = document(stdout) else {
            let why = if stdout.trim().is_empty() {
                format!("it printed nothing (exit {exit_code})")
            } else {
                format!("its output is not JSON: {}", excerpt(stdout))
            };
            let failure = if exit_code == 0 { Failure::Misunderstood(why) } else { Failure::Failed(why) };
            return (Err(failure), Usage { calls: 1, ..Usage::default() });
        };
        let usage = usage(&envelope);
        (answer(&envelope, exit_code), usage)
    }
}

fn answer(envelope: &Map<String, Value>, exit_code: i32) -> Result<Value, Failure> {
    refusal(envelope, None, None)?;
    if exit_code != 0 {
        return Err(Failure::Failed(format!("it exited with {exit_code}: {}", said(envelope))));
    }
    if let Some(answer) = envelope.get("structured_output").filter(|answer| answer.is_object()) {
        return Ok(answer.clone());
    }
    match envelope.get("result") {
        Some(answer @ Value::Object(_)) => Ok(answer.clone()),
        Some(Value::String(text)) => object_in(text)
            .ok_or_else(|| Failure::Failed(format!("its answer is not a JSON object: {}", excerpt(text)))),
        _ if envelope.contains_key("verdict") => Ok(Value::Object(envelope.clone())),
        _ => {
            Err(Failure::Misunderstood("its output has neither `structured_output` nor `result`".to_owned()))
        }
    }
}

/// Returns why a result is a failure, by its fields: `class` is what the failed message of a stream was called, `quota` the
/// quota that was met.
fn refusal(result: &Map<String, Value>, class: Option<&str>, quota: Option<Met>) -> Result<(), Failure> {
    let subtype = result.get("subtype").and_then(Value::as_str).unwrap_or("success");
    let is_error = result.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    if !is_error && subtype == "success" {
        let denied = result.get("permission_denials").and_then(Value::as_array);
        let Some(first) = denied.and_then(|denied| denied.first()) else { return Ok(()) };
        let tool = first.get("tool_name").and_then(Value::as_str).unwrap_or("a tool");
        return Err(Failure::Failed(format!("it was denied permission to use {}", excerpt(tool))));
    }
    let why = match said(result) {
        said if said.is_empty() => format!("it failed ({subtype})"),
        said => format!("it failed: {said}"),
    };
    let status = result.get("api_error_status").and_then(Value::as_u64);
    Err(match (status, class) {
        (Some(429), _) | (_, Some("rate_limit")) => match quota {
            Some(Met { resets_at }) => Failure::Quota(why, resets_at),
            None => Failure::Transient(why),
        },
        (Some(502 | 503 | 504 | 529), _) | (_, Some("overloaded" | "server_error")) => {
            Failure::Transient(why)
        }
        (Some(401..=403), _)
        | (
            _,
            Some(
                "authentication_failed"
                | "oauth_org_not_allowed"
                | "cloud_credential_error"
                | "account_on_hold"
                | "verification_required"
                | "billing_error"
                | "model_not_found",
            ),
        ) => Failure::Unavailable(why),
        _ => Failure::Failed(why),
    })
}

fn said(result: &Map<String, Value>) -> String {
    let error = || result.get("error")?.get("message")?.as_str();
    excerpt(result.get("result").and_then(Value::as_str).or_else(error).unwrap_or_default())
}

/// Returns the price that a result names, or what it has in the place of one.
fn price(result: &Map<String, Value>) -> Result<Option<f64>, &Value> {
    match result.get("total_cost_usd") {
        None | Some(Value::Null) => Ok(None),
        Some(cost) => cost.as_f64().and_then(model::price).map(Some).ok_or(cost),
    }
}

/// Reads what a result says it cost.
fn usage(result: &Map<String, Value>) -> Usage {
    let mut usage = tokens(result.get("usage"));
    usage.calls = 1;
    usage.cost_usd = price(result).ok().flatten();
    // The model that was asked for need not be the one that answered.
    let models = result.get("modelUsage").and_then(Value::as_object);
    usage.model = models.and_then(|models| models.keys().next().cloned());
    usage.session = result.get("session_id").and_then(Value::as_str).map(str::to_owned);
    usage
}

fn tokens(usage: Option<&Value>) -> Usage {
    let count = |key| count(usage, key);
    let inputs = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let input_tokens = inputs.into_iter().map(count).fold(0, u64::saturating_add);
    Usage { input_tokens, output_tokens: count("output_tokens"), ..Usage::default() }
}

/// The messages of a stream. Others print them too.
#[derive(Default)]
pub(super) struct Messages {
    class: Option<String>,
    quota: Option<Met>,
    result: Option<Map<String, Value>>,
}

impl StreamFormat for Messages {
    fn event(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let word = |key: &str| event.get(key).and_then(Value::as_str);
        match word("type") {
            Some("system") => {
                let usage = &mut so_far.usage;
                usage.model = word("model").map(str::to_owned).or(usage.model.take());
                usage.session = word("session_id").map(str::to_owned).or(usage.session.take());
            }
            Some("assistant") => self.assistant(event, so_far, say),
            Some("rate_limit_event") => {
                let info = event.get("rate_limit_info");
                let is_met = info.and_then(|info| info.get("status")?.as_str()) == Some("rejected");
                let resets_at = info.and_then(|info| info.get("resetsAt")?.as_i64());
                self.quota = is_met.then_some(Met { resets_at });
            }
            Some("result") => {
                if let Err(cost) = price(event) {
                    say(&plain(&format!(
                        "the price of the call is ignored: it was given as {}",
                        excerpt(&cost.to_string())
                    )));
                }
                let mut usage = usage(event);
                if event.get("usage").is_none_or(|usage| !usage.is_object()) {
                    (usage.input_tokens, usage.output_tokens) =
                        (so_far.usage.input_tokens, so_far.usage.output_tokens);
                }
                usage.model = usage.model.or(so_far.usage.model.take());
                usage.session = usage.session.or(so_far.usage.session.take());
                so_far.usage = usage;
                so_far.is_done = true;
                self.result = Some(event.clone());
            }
            _ => {}
        }
    }

    fn last_words(&self, _: &StreamState) -> Result<String, Failure> {
        let last = self.good()?.and_then(|result| result.get("result")?.as_str());
        last.map(str::to_owned).ok_or_else(|| Failure::Misunderstood("its result has no text".to_owned()))
    }

    fn answer(&self, so_far: &StreamState) -> Result<String, Failure> {
        let result = self.good()?;
        let structured = result.and_then(|result| result.get("structured_output"));
        let structured = structured.filter(|answer| !answer.is_null());
        let written = result.and_then(|result| result.get("result")).filter(|answer| answer.is_object());
        structured.or(written).map_or_else(|| self.last_words(so_far), |answer| Ok(answer.to_string()))
    }
}

impl Messages {
    /// Returns the result, unless it says that the call failed.
    fn good(&self) -> Result<Option<&Map<String, Value>>, Failure> {
        if let Some(result) = &self.result {
            refusal(result, self.class.as_deref(), self.quota)?;
        }
        Ok(self.result.as_ref())
    }

    fn assistant(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        if let Some(class) = event.get("error").and_then(Value::as_str) {
            self.class = Some(class.to_owned());
        }
        let Some(message) = event.get("message") else { return };
        let spent = tokens(message.get("usage"));
        // A message counts everything before it as its input.
        so_far.usage.input_tokens = so_far.usage.input_tokens.max(spent.input_tokens);
        so_far.usage.output_tokens = so_far.usage.output_tokens.saturating_add(spent.output_tokens);
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            if let Some(text) = block.get("text").and_then(Value::as_str) {
                so_far.said.message(text, say);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::stream::tests as stream;
    use super::*;

    fn prompt(text: &str) -> Prompt<'_> {
        Prompt { text, ..Prompt::default() }
    }

    fn play(lines: &[Value], exit_code: i32) -> (Vec<String>, Result<String, Failure>, Usage) {
        stream::play(&Claude, lines, exit_code)
    }

    fn says(text: &str) -> Value {
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})
    }

    fn result(more: &Value) -> Value {
        let mut result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done"});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        result
    }

    #[test]
    fn a_prompt_is_an_argument_while_it_is_short() {
        let tools = ["Read".to_owned(), "Edit".to_owned()];
        let full = Prompt {
            text: "/fix it",
            agent: Some("fixer"),
            tools: &tools,
            model: Some("small"),
            ..Prompt::default()
        };
        let call = Claude.prompt(&full, &Terms::default());
        let expected = "claude --dangerously-skip-permissions --verbose --output-format stream-json -p|/fix it|--agent fixer --tools Read,Edit --model small";
        assert_eq!(
            call.argv,
            expected
                .split('|')
                .flat_map(|part| if part == "/fix it" { vec![part] } else { part.split(' ').collect() })
                .collect::<Vec<_>>()
        );
        assert_eq!((call.stdin, &call.env[0].1[..]), (None, "1"));
        let long = "x".repeat(ARGUMENT_AND_MORE);
        let call = Claude.prompt(&prompt(&long), &Terms::default());
        assert_eq!(call.argv.last().unwrap(), "-p");
        assert_eq!(call.stdin.as_deref(), Some(long.as_str()));
    }

    #[test]
    fn a_prompt_with_a_form_goes_through_standard_input() {
        let schema = json!({"type": "object"});
        let full = Prompt {
            text: "/fix it",
            agent: Some("fixer"),
            model: Some("large"),
            fallback: Some("small"),
            answer: Some(&schema),
            session: Some("s-1"),
            ..Prompt::default()
        };
        let start = "claude --dangerously-skip-permissions --verbose --output-format stream-json -p";
        for (prompt, argument, options, stdin) in [
            (
                full,
                None,
                r#"--json-schema {"type":"object"} --resume s-1 --agent fixer --model large --fallback-model small"#,
                Some("/fix it"),
            ),
            (
                Prompt { answer: None, ..full },
                Some("/fix it"),
                "--resume s-1 --agent fixer --model large --fallback-model small",
                None,
            ),
            (
                Prompt { text: "-x", answer: Some(&schema), ..Prompt::default() },
                None,
                r#"--json-schema {"type":"object"}"#,
                Some("-x"),
            ),
        ] {
            let call = Claude.prompt(&prompt, &Terms::default());
            let expected = start.split(' ').chain(argument).chain(options.split(' ')).collect::<Vec<_>>();
            assert_eq!(call.argv, expected);
            assert_eq!((call.stdin.as_deref(), call.env.len()), (stdin, 1));
        }
    }

    const ARGUMENT_AND_MORE: usize = super::super::call::ARGUMENT + 1;

    #[test]
    fn a_question_comes_with_its_schema() {
        let question =
            Question { prompt: "ok?".into(), schema: json!({"type": "object"}), model: Some("m".into()) };
        let call = Claude.judge(&question, Some(256), &Terms::default());
        let expected = [
            "claude",
            "--output-format",
            "json",
            "-p",
            "ok?",
            "--json-schema",
            r#"{"type":"object"}"#,
            "--no-session-persistence",
            "--model",
            "m",
        ];
        assert_eq!(call.argv, expected);
        assert_eq!(call.env, [("CLAUDE_CODE_MAX_OUTPUT_TOKENS".to_owned(), "256".to_owned())]);
    }

    #[test]
    fn a_good_stream_is_what_was_said_and_what_it_cost() {
        let init = json!({"type": "system", "subtype": "init", "session_id": "s1", "model": "asked"});
        let cost = json!({
            "total_cost_usd": 0.25,
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7},
            "modelUsage": {"answered": {}},
        });
        let (said, text, usage) =
            play(&[init, says("one\ntwo"), json!({"type": "user"}), says("three"), result(&cost)], 0);
        assert_eq!(said, ["one", "two", "three"]);
        assert_eq!(text.as_deref(), Ok("one\ntwo\nthree\n"));
        let expected = Usage {
            calls: 1,
            input_tokens: 100,
            output_tokens: 7,
            cost_usd: Some(0.25),
            model: Some("answered".into()),
            session: Some("s1".into()),
        };
        assert_eq!(usage, expected);
        assert_eq!(play(&[result(&json!({}))], 0).1.as_deref(), Ok("done\n"));
    }

    #[test]
    fn counts_that_no_call_has_stay_counts() {
        let spent = |input: &str, output: &str| {
            let usage = format!(
                r#"{{"input_tokens": {input}, "cache_read_input_tokens": {input}, "cache_creation_input_tokens": 1, "output_tokens": {output}}}"#
            );
            json!({"type": "assistant", "message": {"usage": serde_json::from_str::<Value>(&usage).unwrap()}})
        };
        let most = "18446744073709551615";
        let tokens = |lines: &[Value]| {
            let usage = play(lines, 0).2;
            (usage.input_tokens, usage.output_tokens)
        };
        assert_eq!(tokens(&[spent(most, most), spent(most, most)]), (u64::MAX, u64::MAX));
        assert_eq!(tokens(&[spent("1e30", "7.0"), spent("-5", "-7")]), (u64::MAX, 7));
        // A result that counts nothing takes nothing back.
        assert_eq!(tokens(&[spent("10", "5"), result(&json!({}))]), (21, 5));
    }

    #[test]
    fn a_price_below_nothing_is_none_and_is_said() {
        let (shown, end, usage) = play(&[result(&json!({"total_cost_usd": -5.0}))], 0);
        assert_eq!((end.as_deref(), usage.cost_usd), (Ok("done\n"), None));
        assert_eq!(shown, ["the price of the call is ignored: it was given as -5.0"]);
        assert_eq!(play(&[result(&json!({"total_cost_usd": null}))], 0).0, [""; 0]);
    }

    #[test]
    fn nothing_but_a_good_result_is_a_success() {
        let failed = |lines: &[Value], code, why| stream::assert_failed(&Claude, lines, code, why);
        failed(&[], 0, "without a result");
        failed(&[], 3, "exit 3");
        failed(&[json!("not json at all")], 0, "not json at all");
        failed(&[says("half"), json!("{\"type\": \"resu")], 0, "resu");
        failed(&[says("x"), result(&json!({}))], 1, "after a good result");
        failed(&[result(&json!({"result": " "}))], 0, "empty");
        failed(&[result(&json!({"result": null}))], 0, "no text");
        failed(&[result(&json!({"is_error": true, "result": "boom"}))], 0, "boom");
        failed(&[result(&json!({"subtype": "error_max_turns"}))], 0, "done");
        failed(&[result(&json!({"permission_denials": [{"tool_name": "Bash"}]}))], 0, "use Bash");
    }

    #[test]
    fn an_answer_is_the_end_alone() {
        let answer = |lines: &[Value]| stream::play_answer(&Claude, lines, 0);
        let structured = json!({"structured_output": {"status": "done"}});
        let only = json!({"type": "result", "structured_output": {"status": "done"}});
        let form = "{\"status\":\"done\"}\n";
        let pretty: Vec<Value> =
            format!("{:#}", result(&structured)).lines().map(|line| json!(line)).collect();
        for (lines, expected) in [
            (vec![says("I look."), result(&structured)], form),
            (vec![result(&json!({"result": "", "structured_output": {"status": "done"}}))], form),
            (vec![result(&json!({"result": {"status": "done"}}))], form),
            (vec![only], form),
            (pretty, form),
            (vec![says("I look."), result(&json!({"structured_output": null}))], "done\n"),
            (vec![says("I look."), says("and"), result(&json!({"result": "prose\n"}))], "prose\n"),
        ] {
            assert_eq!(answer(&lines).as_deref(), Ok(expected), "{lines:?}");
        }
        let (shown, end, _) = play(&[says("I look."), result(&structured)], 0);
        assert_eq!((shown, end.as_deref()), (vec!["I look.".to_owned()], Ok("I look.\n")));
        for (lines, code, why) in [
            (vec![says("{}")], 0, "without a result"),
            (vec![json!("{"), json!("\"type\": \"result\"")], 0, "not a stream"),
            (vec![json!("["), json!("]")], 0, "not a stream"),
            (vec![result(&json!({"result": " "}))], 0, "empty"),
            (vec![result(&json!({"result": null}))], 0, "no text"),
            (vec![result(&structured)], 1, "after a good result"),
            (
                vec![result(&json!({"is_error": true, "structured_output": {"status": "done"}}))],
                0,
                "it failed",
            ),
        ] {
            let failure = stream::play_answer(&Claude, &lines, code).unwrap_err();
            assert!(format!("{failure:?}").contains(why), "{lines:?}: {failure:?}");
        }
    }

    #[test]
    fn a_document_on_several_lines_is_a_result() {
        let document = result(&json!({"total_cost_usd": 0.5, "usage": {"output_tokens": 7}}));
        let lines: Vec<Value> = format!("{document:#}").lines().map(|line| json!(line)).collect();
        let (_, end, usage) = play(&lines, 0);
        assert_eq!((end.as_deref(), usage.calls, usage.tokens()), (Ok("done\n"), 1, 7));
        assert_eq!(usage.cost_usd, Some(0.5));
    }

    #[test]
    fn failures_are_told_apart_by_fields() {
        let failure = |before: &[Value], more: Value| {
            let mut lines = before.to_vec();
            lines.push(result(&json!({"is_error": true, "result": "r"})));
            lines.last_mut().unwrap().as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            play(&lines, 1).1.unwrap_err()
        };
        let class = |class: &str| json!({"type": "assistant", "error": class, "message": {"content": []}});
        let quota =
            json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 99}});
        let allowed =
            json!({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "resetsAt": 99}});
        let why = || "it failed: r".to_owned();
        for status in [502, 503, 504, 529] {
            assert_eq!(failure(&[], json!({"api_error_status": status})), Failure::Transient(why()));
        }
        assert_eq!(failure(&[class("overloaded")], json!({})), Failure::Transient(why()));
        assert_eq!(failure(&[class("rate_limit"), allowed], json!({})), Failure::Transient(why()));
        assert_eq!(failure(&[class("rate_limit"), quota], json!({})), Failure::Quota(why(), Some(99)));
        assert_eq!(failure(&[class("authentication_failed")], json!({})), Failure::Unavailable(why()));
        assert_eq!(failure(&[], json!({"api_error_status": 401})), Failure::Unavailable(why()));
        // Words in a text decide nothing.
        assert_eq!(
            failure(&[], json!({"result": "API Error: 529 overloaded"})),
            Failure::Failed("it failed: API Error: 529 overloaded".into())
        );
    }

    #[test]
    fn an_answer_is_found_where_versions_put_it() {
        let yes = json!({"verdict": "yes"});
        for envelope in [
            json!({"type": "result", "is_error": false, "structured_output": yes}),
            json!({"type": "result", "result": yes}),
            json!({"type": "result", "result": "{\"verdict\": \"yes\"}"}),
            json!({"type": "result", "result": "so:\n```json\n{\"verdict\": \"yes\"}\n```\n"}),
            yes.clone(),
        ] {
            assert_eq!(
                Claude.answer(&format!("a warning\n{envelope}\n"), 0).0,
                Ok(yes.clone()),
                "{envelope}"
            );
        }
        let cost =
            json!({"result": "{}", "total_cost_usd": 0.5, "usage": {"input_tokens": 3, "output_tokens": 4}});
        let usage = Claude.answer(&cost.to_string(), 0).1;
        assert_eq!((usage.calls, usage.tokens(), usage.cost_usd), (1, 7, Some(0.5)));
    }

    #[test]
    fn an_answer_that_is_none_says_why() {
        let why = |stdout: &str, code: i32| match Claude.answer(stdout, code).0.unwrap_err() {
            Failure::Failed(why) => why,
            Failure::Misunderstood(why) => format!("? {why}"),
            other @ (Failure::Transient(_)
            | Failure::Quota(..)
            | Failure::Missing(_)
            | Failure::Unavailable(_)
            | Failure::OverBudget(_)
            | Failure::OutOfTurns(_)
            | Failure::WrongForm(_)) => {
                panic!("{other:?}")
            }
        };
        assert_eq!(why("", 0), "? it printed nothing (exit 0)");
        assert_eq!(why("oops", 2), "its output is not JSON: oops");
        assert_eq!(why(r#"{"type": "result", "is_error": true, "result": "boom"}"#, 0), "it failed: boom");
        assert_eq!(
            why(r#"{"subtype": "error_max_structured_output_retries"}"#, 0),
            "it failed (error_max_structured_output_retries)"
        );
        assert_eq!(why(r#"{"type": "result", "result": "yes"}"#, 0), "its answer is not a JSON object: yes");
        assert_eq!(
            why(r#"{"type": "result", "structured_output": {"verdict": "yes"}}"#, 1),
            "it exited with 1: "
        );
        assert!(why(r#"{"type": "else"}"#, 0).starts_with("? its output has neither"));
    }
}
