//! The keys of a test file: which there are, what they hold and what they mean. The loader and the published JSON Schema are
//! both made from these records.

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::always::Always;
use crate::base::decode::{Decode, Definitions, choice, record};
use crate::base::diagnostic::Diagnostics;
use crate::base::name::{StateName, VarName};
use crate::base::node::{Node, NodeValue};
use crate::base::path::DocPath;
use crate::definition::schema::{AtMost, Count, Delay, OnChange};
use crate::evaluate::number_bounds::ExitStatus;
use crate::host;

record! {
    /// Tests of a loop: runs of the real engine in which no action is run.
    pub struct TestFile {
        /// The loop: its name, or the path of its file, as it is run by.
        subject as "loop": String,
        /// The runs that are played.
        cases: Vec<LoopCase> = Vec::new(),
        /// What holds in every case, and on every way that the model check and the fuzzer take.
        always: Vec<Always> = Vec::new(),
    }
}

record! {
    /// A run that is played, and what is expected of it.
    pub struct LoopCase {
        /// What the case shows, in a few words.
        name: String,
        /// What is there when the run begins.
        given: Option<CaseStart>,
        /// What each state comes to in place of its work; a state of a sub-loop is `state/inner`.
        mocks: IndexMap<String, MockedVisits> = IndexMap::new(),
        /// What is expected; a case without expectations only has to come to its end.
        expect: Option<CaseExpectation>,
    }
}

impl LoopCase {
    /// Returns the host that is asked.
    pub fn host(&self) -> &str {
        let given = self.given.as_ref().and_then(|given| given.host.as_deref());
        given.unwrap_or_else(|| host::names().next().unwrap_or_default())
    }
}

record! {
    /// What is there when a run begins.
    pub struct CaseStart {
        /// Values for the parameters of the loop.
        params: IndexMap<String, Value> = IndexMap::new(),
        /// Values for its variables, as `--context` gives them.
        context: IndexMap<String, String> = IndexMap::new(),
        /// The positional input.
        input: Option<String>,
        /// The files of the commit, by path. There are no others.
        files: IndexMap<String, String> = IndexMap::new(),
        /// The environment that templates see. There is no other.
        env: IndexMap<String, String> = IndexMap::new(),
        /// When the run begins, as `2026-01-01T00:00:00Z`.
        now: Option<String>,
        /// The state in which it begins, in place of the initial one.
        state: Option<StateName>,
        /// What earlier states captured.
        captures: IndexMap<String, String> = IndexMap::new(),
        /// What the state before printed, and with which code it ended.
        prev: Option<PrevResult>,
        /// How often things happened before.
        counts: Option<Counts>,
        /// Changes of the task board, as the journal of a run writes them.
        board: Vec<Value> = Vec::new(),
        /// Whether the work was verified last.
        verified: bool = false,
        /// Whether agents and models may be asked.
        llm: bool = true,
        /// The host that is asked; `claude` when absent.
        host: Option<String>,
        /// Whether a success that nothing verified is a failure.
        strict: bool = false,
        /// What it means if the run would succeed, but changed tracked files; what the loop says, when absent.
        on_change: Option<OnChange>,
        /// The time after which the run hands itself over.
        deadline: Option<Delay>,
        /// Whether the case may begin where no run can come.
        unreachable: bool = false,
    }
}

record! {
    /// The result of the state before.
    pub struct PrevResult {
        /// What it printed.
        output: String = String::new(),
        /// Its exit code.
        exit_code: Option<ExitStatus>,
    }
}

record! {
    /// How often things happened before.
    pub struct Counts {
        /// The pass, from 1.
        iteration: Count = Count::of(1),
        /// How often the state was entered in a row.
        retries: AtMost = AtMost(0),
        /// How many states ran.
        steps: AtMost = AtMost(0),
    }
}

record! {
    /// What a state comes to in place of its work. Which keys fit depends on what the state does.
    pub struct WrittenMock {
        /// The exit code of a command or of the CLI of an agent; 0 when absent.
        exit: Option<ExitStatus>,
        /// The signal that ends a command, such as `SIGKILL`; for a prompt the line that it ends with, such as `handoff: item 7`.
        signal: Option<String>,
        /// What a command prints.
        stdout: Option<String>,
        /// What it complains of.
        stderr: Option<String>,
        /// How long the work takes; longer than its timeout is a timeout.
        takes: Option<Delay>,
        /// Whether it runs into its timeout.
        timed_out: bool = false,
        /// Why it cannot even be started.
        not_started: Option<String>,
        /// Whether the host of the agent or of the judge is down.
        unavailable: bool = false,
        /// The files that it writes, by path.
        writes: IndexMap<String, String> = IndexMap::new(),
        /// The files that it deletes.
        deletes: Vec<String> = Vec::new(),
        /// The message of the commit that it makes of everything.
        commits: Option<String>,
        /// What an agent says.
        says: Option<String>,
        /// The tokens of the call.
        tokens: Option<AtMost>,
        /// The price of the call, in US dollars.
        cost: Option<f64>,
        /// The answer in the form that the prompt or the judge asks for.
        answers: Option<Value>,
        /// What a judge or a person says.
        verdict: Option<String>,
        /// How sure the judge is, from 0 to 1.
        confidence: Option<f64>,
        /// Why the judge says so.
        reason: Option<String>,
        /// What an MCP tool answers.
        result: Option<Value>,
        /// The error that it answers.
        is_error: Option<String>,
        /// Whether there is no such tool or server.
        not_found: bool = false,
        /// What a person writes: the reason of a `reject`, the text of an `edit`.
        text: Option<String>,
        /// Who says it; for people who read the test.
        by: Option<String>,
        /// Whether no answer comes in time.
        unanswered: bool = false,
        /// How a sub-loop ends, in place of mocks of its states.
        outcome: Option<MockedOutcome>,
        /// The terminal in which it ends.
        final_state: Option<StateName>,
        /// Whether something passed in a sub-loop that succeeds.
        verified: Option<bool>,
        /// What a sub-loop gives back.
        captures: IndexMap<VarName, String> = IndexMap::new(),
        /// The signal that asks the run to end while this goes on.
        cancel: Option<CancelSignal>,
        /// Whether the process of the run is killed while this goes on.
        killed: bool = false,
        /// Whether the run is resumed in front of this visit.
        resume: bool = false,
        /// Where the mock comes from.
        from: Option<MockOrigin>,
    }
}

record! {
    /// Where a mock comes from.
    pub struct MockOrigin {
        /// The run.
        run: String,
        /// When the action ran.
        at: Option<String>,
        /// The digest of what it ran.
        digest: Option<String>,
    }
}

record! {
    /// The visits of a state one by one, with what its check comes to in the closing pass.
    pub struct ListedVisits {
        /// A mock for each visit.
        visits: Vec<WrittenMock>,
        /// What the check comes to in the closing pass.
        closing_pass: Option<WrittenMock>,
    }
}

choice! {
    /// How a sub-loop ends.
    pub enum MockedOutcome {
        Success = "success",
        Failure = "failure",
        Exhausted = "exhausted",
        Stopped = "stopped",
        Error = "error",
        Blocked = "blocked",
        Timeout = "timeout",
        Handoff = "handoff",
        OverBudget = "over_budget",
        Unavailable = "unavailable",
    }
}

choice! {
    /// A signal that asks a run to end.
    pub enum CancelSignal { Int = "SIGINT", Term = "SIGTERM", Hup = "SIGHUP", Quit = "SIGQUIT" }
}

choice! {
    /// What would be done with the work.
    pub enum Delivery { Pr = "pr", Refused = "refused" }
}

/// What a state comes to: the same whenever it is visited, or one thing after the other.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are few, and each lives as long as its file")]
pub enum MockedVisits {
    /// At every visit.
    Every(Box<WrittenMock>),
    /// One visit each.
    Listed(ListedVisits),
}

impl Decode for MockedVisits {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            NodeValue::List(_) => {
                let visits = Vec::decode(node, path, out)?;
                Some(Self::Listed(ListedVisits { visits, closing_pass: None }))
            }
            // No mock has a key `visits`, so it tells the two forms apart.
            NodeValue::Map(_) if node.get("visits").is_some() => {
                ListedVisits::decode(node, path, out).map(Self::Listed)
            }
            NodeValue::Map(_) | NodeValue::Scalar(_) => {
                WrittenMock::decode(node, path, out).map(|mock| Self::Every(Box::new(mock)))
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let mock = WrittenMock::schema(definitions);
        let visits = ListedVisits::schema(definitions);
        json!({"anyOf": [mock, {"type": "array", "items": mock}, visits]})
    }
}

record! {
    /// What is expected of a run.
    pub struct CaseExpectation {
        /// How it ends, in one word.
        outcome: Option<String>,
        /// What ended it, more exactly: the `terminated_by` of its result.
        terminated_by: Option<String>,
        /// The terminal, or the state in which it ends.
        final_state: Option<StateName>,
        /// Whether it is verified.
        verified: Option<bool>,
        /// The exit code.
        exit_code: Option<ExitStatus>,
        /// The states that it enters, in their order, with the terminal.
        path: Option<Vec<String>>,
        /// States that it never enters.
        never: Vec<StateName> = Vec::new(),
        /// How often it enters states.
        visits: IndexMap<StateName, AtMost> = IndexMap::new(),
        /// Passes.
        iterations: Option<AtMost>,
        /// State executions.
        steps: Option<AtMost>,
        /// What states would run, after interpolation.
        commands: IndexMap<String, TextRules> = IndexMap::new(),
        /// What agents and judges would be asked.
        prompts: IndexMap<String, TextRules> = IndexMap::new(),
        /// The environment of what states would run.
        env: IndexMap<String, IndexMap<String, String>> = IndexMap::new(),
        /// What models cost, in US dollars.
        cost: Option<f64>,
        /// How often somebody is asked: `agents`, `judges`, `models` for both, `tools`, `people`, `commands`, or the agents of a host by its name.
        calls: IndexMap<String, AtMost> = IndexMap::new(),
        /// What states captured.
        captures: IndexMap<String, TextRules> = IndexMap::new(),
        /// The outputs of the run for later steps of a job, such as `changed-files`.
        outputs: IndexMap<String, TextRules> = IndexMap::new(),
        /// The files that it changed.
        changed: Option<Vec<String>>,
        /// Parts of what verified it, as `verification` of its result has them.
        verification: Option<Value>,
        /// Whether `deliver` would make a pull request of it.
        deliver: Option<Delivery>,
        /// What its log says.
        log: Option<TextRules>,
        /// Why it ended, in a sentence.
        reason: Option<TextRules>,
    }
}

record! {
    /// What a text has to be like.
    pub struct TextParts {
        /// The whole text.
        is as "is": Option<String>,
        /// What stands in it.
        contains: Option<OneOrMore>,
        /// What does not stand in it.
        lacks: Option<OneOrMore>,
        /// Whether it is compared with a file beside the test file, which `--update` writes.
        snapshot: bool = false,
    }
}

/// A text, or several.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOrMore(pub Vec<String>);

impl Decode for OneOrMore {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            NodeValue::List(_) => Vec::decode(node, path, out).map(Self),
            NodeValue::Scalar(_) | NodeValue::Map(_) => {
                String::decode(node, path, out).map(|text| Self(vec![text]))
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let text = String::schema(definitions);
        json!({"anyOf": [text, {"type": "array", "items": text}]})
    }
}

/// What the texts of a state have to be like: all of them alike, or one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum TextRules {
    /// Every one.
    Every(TextParts),
    /// One visit each.
    Listed(Vec<TextParts>),
}

impl TextRules {
    /// Returns the rules for the text with this number, from 0.
    pub fn of(&self, index: usize) -> Option<&TextParts> {
        match self {
            Self::Every(parts) => Some(parts),
            Self::Listed(listed) => listed.get(index),
        }
    }
}

fn text_parts(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<TextParts> {
    match &node.value {
        NodeValue::Scalar(_) => {
            let is = Some(String::decode(node, path, out)?);
            Some(TextParts { is, contains: None, lacks: None, snapshot: false })
        }
        NodeValue::Map(_) | NodeValue::List(_) => TextParts::decode(node, path, out),
    }
}

impl Decode for TextRules {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let NodeValue::List(items) = &node.value else {
            return text_parts(node, path, out).map(Self::Every);
        };
        let read = items.iter().enumerate().map(|(at, item)| text_parts(item, &path.index(at), out));
        read.collect::<Option<Vec<_>>>().map(Self::Listed)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let one = json!({"anyOf": [String::schema(definitions), TextParts::schema(definitions)]});
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}
