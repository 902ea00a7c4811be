//! Claude Code: `claude -p`, with a stream of JSON lines for prompts and for questions.
//!
//! What it was measured to do and this relies on: the settings, hooks and servers of a checkout count and run before the
//! first call of the model, unless `--setting-sources user` and `--strict-mcp-config` keep them out. `usage` of a result is
//! that of the main loop, while `modelUsage` has everything. From 2.1.290 on, a conversation that goes on is counted as a
//! whole, so `model_usage_since_last_result` is read where it is given. A result that is an error has its reasons in `errors`.
//! When its budget is spent it ends in an error although the last answer may be complete, which is then in the stream.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::host_call::{options, variable, words};
use super::host_output::{document, excerpt, object_in};
use super::interface::{
    Access, Counting, Failure, Host, HostSettings, Invocation, Listener, Prompt, Pulse, Release, Terms,
    Version,
};
use super::stream::{Kind, StreamFormat, StreamReader, StreamState, count};
use crate::base::text::{one_line, plain};
use crate::evaluate::model::{self, ConversationUsage, Question, Usage};

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

/// How often it makes a call of the service again by itself. By default it goes on for minutes.
const RETRIES: (&str, &str) = ("CLAUDE_CODE_MAX_RETRIES", "3");

/// Makes it say in the stream why it could not start.
const STARTUP_FAILURES: (&str, &str) = ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1");

/// Since when it can be told that its questions are not answered.
const ASKS_NOBODY: Version = Version(2, 1, 260);

/// Since when it surely counts a conversation as a whole, and until when it surely does not.
const COUNTS_CONVERSATIONS: Version = Version(2, 1, 290);
const COUNTED_CALLS: Version = Version(2, 1, 275);

/// The tool that takes an answer in a certain form: claude's, and that of who has its messages too.
const ANSWER_TOOLS: [&str; 2] = ["StructuredOutput", "structured_output"];

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

    fn enforces(&self, _: Access) -> bool {
        true
    }

    fn release(&self) -> Release {
        Release {
            around: ("", " (Claude Code)"),
            oldest: Version(2, 1, 197),
            install: "npm install -g @anthropic-ai/claude-code@latest",
        }
    }

    fn prompt(&self, prompt: &Prompt<'_>, terms: &Terms) -> Invocation {
        let mut argv = called(terms.settings);
        // Nobody is there to ask. What may be done is bounded by the tools, and by the sandbox of
        // the run.
        argv.push("--dangerously-skip-permissions".to_owned());
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
        if prompt.tools.is_empty() {
            argv.extend(limits(prompt.access).map(str::to_owned));
        }
        argv.extend(bounds(terms));
        let env = [(HOME, "1"), RETRIES, STARTUP_FAILURES];
        invocation(argv, prompt.text, env.into_iter().map(|(name, value)| variable(name, value)).collect())
    }

    fn listen(&self, terms: &Terms) -> Box<dyn Listener> {
        Box::new(StreamReader::new(ClaudeMessages { version: terms.version, ..ClaudeMessages::default() }))
    }

    fn judge(&self, question: &Question, max_tokens: Option<u32>, terms: &Terms) -> Invocation {
        let mut argv = called(HostSettings::User);
        // An empty list is no tools at all. Without the option, it would be all of them.
        let schema = question.schema.to_string();
        argv.extend(options(&[
            ("--tools", Some("")),
            ("--json-schema", Some(schema.as_str())),
            ("--model", question.model.as_deref()),
        ]));
        // A question is not gone on with, so nothing of it need be kept in the home of the user.
        argv.push("--no-session-persistence".to_owned());
        argv.extend(bounds(terms));
        let longest = max_tokens.map(|tokens| variable(LONGEST_ANSWER, &tokens.to_string()));
        let env = [RETRIES, STARTUP_FAILURES].into_iter().map(|(name, value)| variable(name, value));
        invocation(argv, &question.prompt, env.chain(longest).collect())
    }

    fn answer(&self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        let reader = StreamReader::new(ClaudeMessages::default());
        match document(stdout) {
            // Some versions and stand-ins print the answer alone, or a result that is not called one.
            Some(Value::Object(answer)) if !answer.contains_key("type") => {
                if exit_code == 0 && answer.contains_key("verdict") {
                    return (Ok(Value::Object(answer)), Usage { calls: 1, ..Usage::default() });
                }
                let mut result = answer;
                result.insert("type".to_owned(), "result".into());
                reader.reply(&Value::Object(result).to_string(), exit_code)
            }
            _ => reader.reply(stdout, exit_code),
        }
    }
}

/// Returns the call without what it is for.
fn called(settings: HostSettings) -> Vec<String> {
    // `stream-json` needs `--verbose` together with `-p`.
    let mut argv = words("claude -p --output-format stream-json --verbose");
    if settings == HostSettings::User {
        argv.extend(words("--setting-sources user --strict-mcp-config"));
    }
    argv
}

/// Returns the option that keeps an agent to what it may do.
fn limits(access: Access) -> Option<&'static str> {
    match access {
        Access::Write => None,
        Access::ReadShell => Some("--disallowedTools=Edit,MultiEdit,NotebookEdit,Write"),
        Access::ReadOnly => Some("--tools=Glob,Grep,Read"),
    }
}

/// Returns the options that bound a call from outside.
fn bounds(terms: &Terms) -> Vec<String> {
    let cost = terms.cost_usd.map(|cost| cost.to_string());
    // An unknown version is taken for the newest, which knows the option.
    let nobody = terms.version.is_none_or(|version| version >= ASKS_NOBODY).then_some("none");
    options(&[("--max-budget-usd", cost.as_deref()), ("--permission-prompts", nobody)]).collect()
}

fn invocation(argv: Vec<String>, text: &str, env: Vec<(String, String)>) -> Invocation {
    Invocation { argv, stdin: Some(text.to_owned()), env, file: None }
}

/// Returns why a result is a failure, by its fields: `class` is what the failed message of a stream was called, `quota` the
/// quota that was met.
fn refusal(result: &Map<String, Value>, class: Option<&str>, quota: Option<Met>) -> Result<(), Failure> {
    let word = |key: &str| result.get(key).and_then(Value::as_str);
    let subtype = word("subtype").unwrap_or("success");
    let is_error = result.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    if !is_error && subtype == "success" {
        return Ok(());
    }
    let named = if subtype.starts_with("error_max") { format!(" ({subtype})") } else { String::new() };
    let why = match said(result) {
        said if said.is_empty() => format!("it failed ({subtype})"),
        said => format!("it failed{named}: {said}"),
    };
    match subtype {
        "error_max_budget_usd" => return Err(Failure::OverBudget(why)),
        "error_max_turns" => return Err(Failure::OutOfTurns(why)),
        "error_max_structured_output_retries" => return Err(Failure::WrongForm(why)),
        _ => {}
    }
    match word("startup_failure_reason") {
        Some("org_config_required_unavailable" | "worktree_unverified") => {
            // These pass by themselves, so trying again can help.
            return Err(Failure::Transient(why));
        }
        Some(reason) => return Err(Failure::Unavailable(format!("{why}; {}", cure(reason)))),
        None => {}
    }
    let class = class.or_else(|| word("api_error"));
    let status = result.get("api_error_status").and_then(Value::as_u64);
    Err(match (status, class) {
        // A 429 is also what an overloaded service says. Only with a quota that was met is it
        // useless to try again soon.
        (Some(429), _) | (_, Some("rate_limit" | "usage_limit_reached")) => match quota {
            Some(Met { resets_at }) => Failure::Quota(why, resets_at),
            None => Failure::Transient(why),
        },
        (Some(500..=599), _) | (_, Some("overloaded" | "server_error" | "connection_failed")) => {
            Failure::Transient(why)
        }
        (Some(401..=404), _)
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

/// Says what to do about a reason for which it did not start.
fn cure(reason: &str) -> String {
    match reason {
        "bypass_root" => "run it as a user other than root, or set `IS_SANDBOX=1` in a container that is one",
        _ => "`claude -p hello` in the same place shows whether it is set up",
    }
    .to_owned()
        + &format!(" ({})", one_line(reason, 60))
}

/// Returns what a result says about itself.
fn said(result: &Map<String, Value>) -> String {
    let error = || result.get("error")?.get("message")?.as_str().map(str::to_owned);
    let errors = || {
        let errors = result.get("errors")?.as_array()?.iter().filter_map(Value::as_str);
        Some(errors.collect::<Vec<_>>().join("; ")).filter(|errors| !errors.is_empty())
    };
    let result = result.get("result").and_then(Value::as_str).map(str::to_owned);
    excerpt(&result.or_else(errors).or_else(error).unwrap_or_default())
}

/// Returns the price that a result names, or what it has in the place of one.
fn price(result: &Map<String, Value>) -> Result<Option<f64>, &Value> {
    match result.get("total_cost_usd") {
        None | Some(Value::Null) => Ok(None),
        Some(cost) => cost.as_f64().and_then(model::price).map(Some).ok_or(cost),
    }
}

/// Adds up what models took, subagents included; nothing where none is named.
fn by_models(models: Option<&Value>) -> Option<ConversationUsage> {
    let models = models?.as_object()?;
    Some(models.values().fold(ConversationUsage::default(), |sum, model| {
        let count = |key| count(Some(model), key);
        let inputs = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"];
        let cost = model.get("costUSD").and_then(Value::as_f64).and_then(model::price);
        ConversationUsage {
            input_tokens: inputs.into_iter().map(count).fold(sum.input_tokens, u64::saturating_add),
            output_tokens: sum.output_tokens.saturating_add(count("outputTokens")),
            cost_usd: (sum.cost_usd + cost.unwrap_or(0.0)).min(f64::MAX),
        }
    }))
}

/// What is different where another host prints these messages.
pub(super) struct MessageDialect {
    /// What an exit code says.
    pub(super) failure_of: fn(i32) -> Option<Kind>,
    /// What a result that says this of itself is, where that is said in a way of its own.
    pub(super) refusal: fn(&Map<String, Value>, &str) -> Option<Failure>,
}

/// The messages of a stream. Others print them too.
#[derive(Default)]
pub(super) struct ClaudeMessages {
    /// The version of claude; none for others, and for one that did not say.
    version: Option<Version>,
    /// How another host prints them, which also counts in another way.
    manner: Option<&'static MessageDialect>,
    class: Option<String>,
    quota: Option<Met>,
    result: Option<Map<String, Value>>,
    counting: Counting,
    /// What each message of a model took so far. One of them comes in several events.
    seen: BTreeMap<String, ConversationUsage>,
    /// Tools that are at work.
    at_work: BTreeSet<String>,
    is_retrying: bool,
    /// Whether the model was heard of.
    has_answered: bool,
    /// What the main agent said last, when it was its last word: an answer in a form, or a text without a call of a tool.
    last: Option<Value>,
    /// What the service said when a call of it failed.
    trouble: Option<String>,
}

impl StreamFormat for ClaudeMessages {
    fn event(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let word = |key: &str| event.get(key).and_then(Value::as_str);
        match (word("type"), word("subtype")) {
            (Some("system"), Some("api_retry")) => self.retried(event),
            (Some("system"), _) => {
                let usage = &mut so_far.usage;
                usage.model = word("model").map(str::to_owned).or(usage.model.take());
                usage.session = word("session_id").map(str::to_owned).or(usage.session.take());
                self.version = word("claude_code_version").and_then(Version::parse).or(self.version);
            }
            (Some("assistant"), _) => self.assistant(event, so_far, say),
            (Some("user"), _) => self.returned(event),
            (Some("stream_event"), _) => {
                let kind = event.get("event").and_then(|event| event.get("type")?.as_str());
                self.has_answered |= kind.is_some_and(|kind| kind.starts_with("message_"));
            }
            (Some("rate_limit_event"), _) => {
                let info = event.get("rate_limit_info");
                // Only `rejected` stops calls; other statuses warn that the limit is near.
                let is_met = info.and_then(|info| info.get("status")?.as_str()) == Some("rejected");
                let resets_at = info.and_then(|info| info.get("resetsAt")?.as_i64());
                self.quota = is_met.then_some(Met { resets_at });
            }
            (Some("result"), _) => {
                if let Err(cost) = price(event) {
                    // The price decides when the budget is spent, so one that is not used is said.
                    say(&plain(&format!(
                        "the price of the call is ignored: it was given as {}",
                        excerpt(&cost.to_string())
                    )));
                }
                if let Some(tool) = denied(event) {
                    say(&plain(&format!("warning: it was denied permission to use {tool}")));
                }
                self.count(event, so_far);
                so_far.is_done = true;
                self.result = Some(event.clone());
            }
            _ => {}
        }
    }

    fn last_words(&self, _: &StreamState) -> Result<String, Failure> {
        let Some(result) = &self.result else { return Err(no_text()) };
        if let Err(failure) = self.refused(result) {
            return self.finished(failure, Value::as_str).map(str::to_owned);
        }
        if let Some(tool) = denied(result) {
            return Err(Failure::Failed(format!("it was denied permission to use {tool}")));
        }
        result.get("result").and_then(Value::as_str).map(str::to_owned).ok_or_else(no_text)
    }

    fn answer(&self, so_far: &StreamState) -> Result<String, Failure> {
        let Some(result) = &self.result else { return Err(no_text()) };
        if let Err(failure) = self.refused(result) {
            return self.finished(failure, Some).map(|last| match last.as_str() {
                Some(text) => text.to_owned(),
                None => last.to_string(),
            });
        }
        let given = |key| result.get(key).filter(|answer: &&Value| !answer.is_null());
        let structured = given("structured_output").or_else(|| given("structured_result"));
        let written = result.get("result").filter(|answer| answer.is_object());
        if let Some(answer) = structured.or(written) {
            return Ok(answer.to_string());
        }
        // A complete answer beside a tool that was denied counts.
        let text = result.get("result").and_then(Value::as_str);
        match text.filter(|text| object_in(text).is_some()) {
            Some(text) => Ok(text.to_owned()),
            None => self.last_words(so_far),
        }
    }

    fn outranks_exit(&self) -> bool {
        self.result.as_ref().is_some_and(|result| self.refused(result).is_err())
    }

    fn complaint(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn failure_of(&self, exit_code: i32) -> Option<Kind> {
        (self.manner?.failure_of)(exit_code)
    }

    fn pulse(&self) -> Pulse {
        if self.is_retrying {
            Pulse::Retrying
        } else if !self.at_work.is_empty() {
            Pulse::Working
        } else if self.manner.is_some() && !self.has_answered {
            Pulse::Calling
        } else {
            Pulse::Thinking
        }
    }

    fn counting(&self) -> Counting {
        self.counting
    }
}

fn no_text() -> Failure {
    Failure::Misunderstood("its result has no text".to_owned())
}

/// Returns the tool that a result says was denied.
fn denied(result: &Map<String, Value>) -> Option<String> {
    let first = result.get("permission_denials")?.as_array()?.first()?;
    Some(excerpt(first.get("tool_name").and_then(Value::as_str).unwrap_or("a tool")))
}

impl ClaudeMessages {
    /// Makes the reader of the messages of another host.
    pub(super) fn in_manner(manner: &'static MessageDialect) -> Self {
        Self { manner: Some(manner), ..Self::default() }
    }

    /// Returns why a result is a failure.
    fn refused(&self, result: &Map<String, Value>) -> Result<(), Failure> {
        let own = self.manner.and_then(|manner| (manner.refusal)(result, &said(result)));
        if let Some(failure) = own {
            return Err(failure);
        }
        refusal(result, self.class.as_deref(), self.quota)
    }

    /// Returns the last word of an agent that had finished when its budget was found to be spent; else, why it failed.
    fn finished<'a, T: ?Sized>(
        &'a self,
        failure: Failure,
        wanted: impl Fn(&'a Value) -> Option<&'a T>,
    ) -> Result<&'a T, Failure> {
        match (failure, self.last.as_ref().and_then(wanted)) {
            (Failure::OverBudget(_), Some(last)) => Ok(last),
            (failure, _) => Err(failure),
        }
    }

    fn retried(&mut self, event: &Map<String, Value>) {
        let status = event.get("error_status").and_then(Value::as_u64);
        let class = event.get("error").and_then(Value::as_str).unwrap_or("unknown");
        self.trouble = Some(match status {
            Some(status) => format!("the service answers with {status} ({class})"),
            None => format!("the service does not answer ({class})"),
        });
        self.is_retrying = true;
    }

    /// Counts what a result says it took.
    fn count(&mut self, result: &Map<String, Value>, so_far: &mut StreamState) {
        let word = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
        let of_turn = result.get("usage").filter(|usage| usage.is_object());
        let mut usage = of_turn.map_or_else(
            || Usage {
                input_tokens: so_far.usage.input_tokens,
                output_tokens: so_far.usage.output_tokens,
                ..Usage::default()
            },
            |usage| self.tokens(usage),
        );
        usage.calls = 1;
        usage.cost_usd = price(result).ok().flatten();
        let models =
            // Where this has nothing but zeros, `usage` tells more.
            by_models(result.get("modelUsage")).filter(|sum| sum.input_tokens > 0 || sum.output_tokens > 0);
        if let Some(sum) = models {
            (usage.input_tokens, usage.output_tokens) = (sum.input_tokens, sum.output_tokens);
        }
        let cost_usd = usage.cost_usd.unwrap_or(0.0);
        let sum = ConversationUsage { cost_usd, ..models.unwrap_or_default() };
        self.counting = match (by_models(result.get("model_usage_since_last_result")), self.version) {
            (Some(since), _) => {
                (usage.input_tokens, usage.output_tokens) = (since.input_tokens, since.output_tokens);
                usage.cost_usd = usage.cost_usd.map(|_| since.cost_usd);
                Counting::Call
            }
            (None, _) if self.manner.is_some() => Counting::Conversation(ConversationUsage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cost_usd: 0.0,
            }),
            (None, Some(version)) if version >= COUNTS_CONVERSATIONS => Counting::Conversation(sum),
            (None, Some(version)) if version <= COUNTED_CALLS => Counting::Call,
            (None, _) => Counting::Unknown,
        };
        let named = result.get("modelUsage").and_then(Value::as_object);
        let first = || named.and_then(|models| models.keys().next().cloned());
        usage.model = so_far.usage.model.take().or_else(first);
        usage.session = word("session_id").or(so_far.usage.session.take());
        so_far.usage = usage;
    }

    fn tokens(&self, usage: &Value) -> Usage {
        let count = |key| count(Some(usage), key);
        // What others read from a cache is part of their input.
        let cached: &[&str] = if self.manner.is_some() {
            &[]
        } else {
            &["cache_read_input_tokens", "cache_creation_input_tokens"]
        };
        let input_tokens = cached.iter().copied().map(count).fold(count("input_tokens"), u64::saturating_add);
        Usage { input_tokens, output_tokens: count("output_tokens"), ..Usage::default() }
    }

    fn assistant(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str)) {
        let is_main = event.get("parent_tool_use_id").is_none_or(Value::is_null);
        (self.is_retrying, self.has_answered) = (false, true);
        if let Some(class) = event.get("error").and_then(Value::as_str).filter(|_| is_main) {
            self.class = Some(class.to_owned());
        }
        let Some(message) = event.get("message") else { return };
        let model = message.get("model").and_then(Value::as_str);
        // Messages that the CLI makes itself, such as those about errors, are by `<synthetic>`.
        if let Some(model) = model.filter(|model| is_main && *model != "<synthetic>") {
            so_far.usage.model = Some(model.to_owned());
        }
        self.watch(message, so_far);
        let blocks = message.get("content").and_then(Value::as_array);
        if is_main {
            // Whatever it said before is not its last word when it goes on.
            self.last = None;
        }
        for block in blocks.into_iter().flatten() {
            let word = |key: &str| block.get(key).and_then(Value::as_str);
            if let Some(text) = word("text") {
                so_far.said.message(text, say);
            }
            if word("type") == Some("tool_use") {
                self.at_work.extend(word("id").map(str::to_owned));
            }
            if is_main {
                self.last = match (word("type"), word("name")) {
                    (Some("tool_use"), Some(name)) if ANSWER_TOOLS.contains(&name) => {
                        block.get("input").cloned()
                    }
                    (Some("text"), _) => block.get("text").cloned(),
                    _ => None,
                };
            }
        }
    }

    /// Counts a message while the call is going on. Its output is given as it was at its start, so what it says is
    /// counted too: four bytes of it make a token or less.
    fn watch(&mut self, message: &Value, so_far: &mut StreamState) {
        let given = message.get("usage").map(|usage| self.tokens(usage)).unwrap_or_default();
        let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
        let said: usize = blocks.map(length).sum();
        let id = message.get("id").and_then(Value::as_str).map(str::to_owned);
        let known = self.seen.len();
        // Without an id no two messages can be told to be the same, so each counts for itself.
        let of = self.seen.entry(id.unwrap_or_else(|| format!("#{known}"))).or_default();
        let before = *of;
        // Events of one message repeat its counts and raise them; the sum takes only what is new.
        of.input_tokens = of.input_tokens.max(given.input_tokens);
        of.output_tokens = of.output_tokens.saturating_add(said as u64 / 4).max(given.output_tokens);
        let usage = &mut so_far.usage;
        usage.input_tokens = usage.input_tokens.saturating_add(of.input_tokens - before.input_tokens);
        usage.output_tokens = usage.output_tokens.saturating_add(of.output_tokens - before.output_tokens);
    }

    /// Takes what tools returned.
    fn returned(&mut self, event: &Map<String, Value>) {
        let content = event.get("message").and_then(|message| message.get("content")?.as_array());
        for block in content.into_iter().flatten() {
            if let Some(id) = block.get("tool_use_id").and_then(Value::as_str) {
                self.at_work.remove(id);
            }
        }
        self.is_retrying = false;
    }
}

/// Returns how long what a block says is.
fn length(block: &Value) -> usize {
    let text = ["text", "thinking"].iter().find_map(|key| block.get(*key)?.as_str());
    text.map_or_else(|| block.get("input").map_or(0, |input| input.to_string().len()), str::len)
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

    const SHELTERED: &str =
        "claude -p --output-format stream-json --verbose --setting-sources user --strict-mcp-config";

    fn line(call: &Invocation) -> String {
        call.argv.join(" ")
    }

    /// A prompt that begins with a dash was an unknown option.
    #[test]
    fn nothing_of_a_prompt_is_an_argument() {
        let schema = json!({"type": "object"});
        let tools = ["Read".to_owned(), "Edit".to_owned()];
        let full = Prompt {
            text: "- fix it",
            agent: Some("fixer"),
            tools: &tools,
            model: Some("large"),
            fallback: Some("small"),
            answer: Some(&schema),
            session: Some("s-1"),
            access: Access::ReadOnly,
        };
        let call = Claude.prompt(&full, &Terms::default());
        let options = r#"--json-schema {"type":"object"} --resume s-1 --agent fixer --tools Read,Edit --model large --fallback-model small"#;
        assert_eq!(
            line(&call),
            format!("{SHELTERED} --dangerously-skip-permissions {options} --permission-prompts none")
        );
        assert_eq!(call.stdin.as_deref(), Some("- fix it"));
        let env: Vec<_> = call.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR=1",
            "CLAUDE_CODE_MAX_RETRIES=3",
            "CLAUDE_CODE_STARTUP_FAILURE_RESULTS=1",
        ];
        assert_eq!(env, expected);
    }

    #[test]
    fn an_agent_is_kept_to_what_it_may_do() {
        let argv = |access| line(&Claude.prompt(&Prompt { access, ..prompt("x") }, &Terms::default()));
        assert!(!argv(Access::Write).contains("ools"));
        assert!(argv(Access::ReadShell).contains(" --disallowedTools=Edit,MultiEdit,NotebookEdit,Write"));
        assert!(argv(Access::ReadOnly).contains(" --tools=Glob,Grep,Read"));
    }

    #[test]
    fn terms_become_options_where_the_version_has_them() {
        let argv = |version, settings, cost_usd| {
            line(&Claude.prompt(&prompt("x"), &Terms { version, settings, cost_usd, is_confined: false }))
        };
        let user = HostSettings::User;
        assert!(argv(None, user, None).ends_with("--dangerously-skip-permissions --permission-prompts none"));
        assert!(
            argv(Some(Version(2, 1, 330)), user, Some(0.5))
                .contains("--max-budget-usd 0.5 --permission-prompts")
        );
        assert!(!argv(Some(Version(2, 1, 259)), user, None).contains("--permission-prompts"));
        let project = argv(None, HostSettings::Project, None);
        assert!(
            !project.contains("--setting-sources") && !project.contains("--strict-mcp-config"),
            "{project}"
        );
    }

    /// Judges had all tools, and ran the hooks of the checkout.
    #[test]
    fn a_question_comes_with_its_schema_and_without_tools() {
        let question =
            Question { prompt: "ok?".into(), schema: json!({"type": "object"}), model: Some("m".into()) };
        // Whatever a loop says, a judge needs nothing of the repository.
        let terms = Terms { settings: HostSettings::Project, ..Terms::default() };
        let call = Claude.judge(&question, Some(256), &terms);
        let options = r#"--tools  --json-schema {"type":"object"} --model m --no-session-persistence"#;
        assert_eq!(line(&call), format!("{SHELTERED} {options} --permission-prompts none"));
        assert_eq!(call.stdin.as_deref(), Some("ok?"));
        assert!(call.env.contains(&("CLAUDE_CODE_MAX_OUTPUT_TOKENS".to_owned(), "256".to_owned())));
        assert!(call.env.contains(&("CLAUDE_CODE_STARTUP_FAILURE_RESULTS".to_owned(), "1".to_owned())));
    }

    #[test]
    fn a_version_is_read_from_what_it_says_of_itself() {
        let read = |said: &str| Claude.release().read(said);
        assert_eq!(read("2.1.330 (Claude Code)\n"), Some(Version(2, 1, 330)));
        for said in ["", "9.9.9 (Claude Code fake)", "9.9 (fake)", "2.1 (Claude Code)", "v2"] {
            assert_eq!(read(said), None, "{said}");
        }
        assert!(Version(2, 1, 99) < Claude.release().oldest);
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
            model: Some("asked".into()),
            session: Some("s1".into()),
            ..Usage::default()
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
        failed(&[result(&json!({"subtype": "error_during_execution"}))], 0, "done");
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
            Failure::WrongForm(why) => format!("form: {why}"),
            Failure::Misunderstood(why) => format!("? {why}"),
            other @ (Failure::Transient(_)
            | Failure::Quota(..)
            | Failure::Missing(_)
            | Failure::Unavailable(_)
            | Failure::OverBudget(_)
            | Failure::OutOfTurns(_)) => {
                panic!("{other:?}")
            }
        };
        assert_eq!(why("", 0), "? it ended without a result (exit 0)");
        assert_eq!(why("oops", 2), "its output is not a stream of JSON lines (exit 2): oops");
        assert_eq!(why(r#"{"type": "result", "is_error": true, "result": "boom"}"#, 0), "it failed: boom");
        assert_eq!(
            why(r#"{"subtype": "error_max_structured_output_retries"}"#, 0),
            "form: it failed (error_max_structured_output_retries)"
        );
        assert_eq!(
            why(r#"{"type": "result", "result": "yes"}"#, 0),
            "form: its answer is not a JSON object: yes"
        );
        assert_eq!(
            why(r#"{"type": "result", "structured_output": {"verdict": "yes"}}"#, 1),
            "it exited with 1, after a good result"
        );
        assert_eq!(why(r#"{"type": "else"}"#, 0), "? it ended without a result (exit 0)");
    }

    fn main(content: &Value, more: &Value) -> Value {
        let mut message = json!({"content": content});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "assistant", "parent_tool_use_id": null, "message": message})
    }

    fn counted(lines: &[Value], version: Option<Version>) -> (Usage, Counting) {
        let mut listener = Claude.listen(&Terms { version, ..Terms::default() });
        for line in lines {
            listener.line(&line.to_string(), &mut |_| {});
        }
        (listener.usage().clone(), listener.counting())
    }

    /// `usage` is that of the main loop, and all zero in an error.
    #[test]
    fn subagents_count_and_errors_too() {
        let models = json!({
            "total_cost_usd": 0.5,
            "usage": {"input_tokens": 20, "output_tokens": 10},
            "modelUsage": {
                "sub": {"inputTokens": 500, "cacheReadInputTokens": 400, "cacheCreationInputTokens": 100, "outputTokens": 500},
                "main": {"inputTokens": 20, "outputTokens": 10},
            },
        });
        let (usage, _) = counted(&[result(&models)], None);
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (1020, 510, Some(0.5)));
        let mut failed = models;
        failed["usage"] = json!({"input_tokens": 0, "output_tokens": 0});
        failed["subtype"] = "error_max_budget_usd".into();
        failed["is_error"] = true.into();
        assert_eq!(counted(&[result(&failed)], None).0.tokens(), 1530);
    }

    /// Newer versions add up what a conversation took, older ones do not.
    #[test]
    fn a_conversation_is_counted_as_the_version_does_it() {
        let models = json!({"m": {"inputTokens": 200, "outputTokens": 40, "costUSD": 0.5}});
        let line = result(&json!({"total_cost_usd": 0.5, "modelUsage": models}));
        let init =
            |version: &str| json!({"type": "system", "subtype": "init", "claude_code_version": version});
        let whole =
            Counting::Conversation(ConversationUsage { input_tokens: 200, output_tokens: 40, cost_usd: 0.5 });
        for (version, expected) in [
            (Some("2.1.275"), Counting::Call),
            (Some("2.1.280"), Counting::Unknown),
            (Some("2.1.290"), whole),
            (Some("2.1.330"), whole),
            (None, Counting::Unknown),
        ] {
            let parsed = version.and_then(Version::parse);
            assert_eq!(counted(std::slice::from_ref(&line), parsed).1, expected);
            let lines: Vec<_> = version.map(init).into_iter().chain([line.clone()]).collect();
            assert_eq!(counted(&lines, None).1, expected, "{version:?}");
        }
        let mut since = line;
        since["model_usage_since_last_result"] =
            json!({"m": {"inputTokens": 100, "outputTokens": 20, "costUSD": 0.25}});
        let (usage, counting) = counted(&[since], Some(Version(2, 1, 330)));
        assert_eq!((usage.tokens(), usage.cost_usd, counting), (120, Some(0.25), Counting::Call));
    }

    /// A map has no order, and has the models of subagents and fallbacks too.
    #[test]
    fn the_model_is_that_of_the_last_message_of_the_main_agent() {
        let of = |model: &str| main(&json!([]), &json!({"model": model}));
        let mut sub = of("small");
        sub["parent_tool_use_id"] = "toolu_1".into();
        let end = result(&json!({"modelUsage": {"a-fallback": {}}}));
        let lines = [of("first"), of("large"), sub, of("<synthetic>"), end.clone()];
        assert_eq!(counted(&lines, None).0.model.as_deref(), Some("large"));
        assert_eq!(counted(&[end], None).0.model.as_deref(), Some("a-fallback"));
    }

    /// Messages of one call share an id, and their output is a start value.
    #[test]
    fn a_stream_counts_each_call_once_and_what_it_says() {
        let usage = json!({"id": "msg_1", "usage": {"input_tokens": 100, "output_tokens": 1}});
        let lines = [
            main(&json!([{"type": "text", "text": "x".repeat(400)}]), &usage),
            main(
                &json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "y".repeat(400)}}]),
                &usage,
            ),
            main(&json!([]), &json!({"id": "msg_2", "usage": {"input_tokens": 300, "output_tokens": 1}})),
        ];
        let (usage, _) = counted(&lines, None);
        assert_eq!(usage.input_tokens, 400);
        assert!((200..220).contains(&usage.output_tokens), "{usage:?}");
    }

    #[test]
    fn the_error_of_a_subagent_is_not_that_of_the_call() {
        let mut sub =
            json!({"type": "assistant", "error": "authentication_failed", "message": {"content": []}});
        let end = result(&json!({"is_error": true, "result": "r"}));
        assert!(matches!(play(&[sub.clone(), end.clone()], 1).1, Err(Failure::Unavailable(_))));
        sub["parent_tool_use_id"] = "toolu_1".into();
        assert!(matches!(play(&[sub, end], 1).1, Err(Failure::Failed(_))));
    }

    /// Results that are errors have their reasons in `errors`.
    #[test]
    fn an_error_says_why_and_is_called_by_its_name() {
        let error = |more: Value| {
            let mut line = json!({"type": "result", "subtype": "error_during_execution", "is_error": true});
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            play(&[line], 1).1.unwrap_err()
        };
        assert_eq!(
            error(
                json!({"subtype": "error_max_turns", "errors": ["Reached maximum", "number of turns (3)"]})
            ),
            Failure::OutOfTurns("it failed (error_max_turns): Reached maximum; number of turns (3)".into())
        );
        let budget =
            error(json!({"subtype": "error_max_budget_usd", "errors": ["Reached maximum budget ($1)"]}));
        assert!(matches!(budget, Failure::OverBudget(why) if why.contains("maximum budget ($1)")));
        let form = error(json!({"subtype": "error_max_structured_output_retries", "errors": ["5 attempts"]}));
        assert!(matches!(form, Failure::WrongForm(why) if why.contains("5 attempts")));
        let unknown = error(json!({"errors": ["No conversation found with session ID: x"]}));
        assert_eq!(unknown, Failure::Failed("it failed: No conversation found with session ID: x".into()));
        let root = error(json!({"errors": ["not as root"], "startup_failure_reason": "bypass_root"}));
        assert!(matches!(root, Failure::Unavailable(why) if why.contains("IS_SANDBOX")));
        let other = error(json!({"startup_failure_reason": "managed_settings_invalid"}));
        assert!(matches!(other, Failure::Unavailable(why) if why.contains("managed_settings_invalid")));
        let wait = error(json!({"startup_failure_reason": "worktree_unverified"}));
        assert!(matches!(wait, Failure::Transient(_)));
        assert!(matches!(error(json!({"api_error": "connection_failed"})), Failure::Transient(_)));
        assert!(matches!(error(json!({"api_error_status": 404})), Failure::Unavailable(_)));
    }

    /// A budget is checked after the call of the model, so the last answer may be complete.
    #[test]
    fn an_answer_that_was_complete_when_its_budget_was_spent_counts() {
        let spent = json!({
            "type": "result", "subtype": "error_max_budget_usd", "is_error": true, "errors": ["Reached maximum budget"],
        });
        let form = json!([{"type": "tool_use", "id": "t", "name": "StructuredOutput", "input": {"a": "x"}}]);
        let given = [main(&form, &json!({})), spent.clone()];
        assert_eq!(stream::play_answer(&Claude, &given, 1).as_deref(), Ok("{\"a\":\"x\"}\n"));
        let stdout = given.each_ref().map(Value::to_string).join("\n");
        assert_eq!(Claude.answer(&stdout, 1).0, Ok(json!({"a": "x"})));
        let text = json!([{"type": "text", "text": "all done"}]);
        assert_eq!(play(&[main(&text, &json!({})), spent.clone()], 1).1.as_deref(), Ok("all done\n"));
        let tool = json!([{"type": "text", "text": "I look"}, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]);
        assert!(matches!(play(&[main(&tool, &json!({})), spent], 1).1, Err(Failure::OverBudget(_))));
    }

    #[test]
    fn a_complete_answer_beside_a_denied_tool_counts_and_is_said() {
        let denied = json!({"permission_denials": [{"tool_name": "Bash"}], "structured_output": {"a": 1}});
        assert_eq!(stream::play_answer(&Claude, &[result(&denied)], 0).as_deref(), Ok("{\"a\":1}\n"));
        let shown = play(&[result(&denied)], 0).0;
        assert_eq!(shown, ["warning: it was denied permission to use Bash"]);
        let prose = json!({"permission_denials": [{"tool_name": "Bash"}], "result": "I could not"});
        let failure = stream::play_answer(&Claude, &[result(&prose)], 0).unwrap_err();
        assert_eq!(failure, Failure::Failed("it was denied permission to use Bash".into()));
    }

    #[test]
    fn how_a_call_is_getting_on() {
        let mut listener = Claude.listen(&Terms::default());
        let mut pulse = |line: Value| {
            listener.line(&line.to_string(), &mut |_| {});
            (listener.pulse(), listener.trouble().map(str::to_owned))
        };
        let retry =
            json!({"type": "system", "subtype": "api_retry", "error_status": null, "error": "unknown"});
        assert_eq!(pulse(json!({"type": "system", "subtype": "init"})).0, Pulse::Thinking);
        assert_eq!(pulse(retry), (Pulse::Retrying, Some("the service does not answer (unknown)".into())));
        let tool = json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]);
        assert_eq!(pulse(main(&tool, &json!({}))).0, Pulse::Working);
        let back =
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t"}]}});
        assert_eq!(pulse(back).0, Pulse::Thinking);
    }
}
