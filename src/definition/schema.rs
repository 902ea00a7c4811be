//! The keys of a loop file: which there are, what they hold and what they mean. The loader and the published JSON
//! Schema are both made from these records; there is no logic here
//! beyond what a value may be.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::early_values::Early;
use crate::base::decode::{
    self, Bounds, Decode, DecodeKey as _, Definitions, Least, NamedNull, Record as _, choice, ranged, record,
    wrong_type,
};
use crate::base::diagnostic::Diagnostics;
use crate::base::explanation::Explanation;
use crate::base::name::{LoopName, StateName, VarName};
use crate::base::node::{Node, NodeValue};
use crate::base::path::DocPath;
use crate::base::sandbox::SandboxRules;
use crate::base::template::Template;
use crate::base::text::first_word;
use crate::board::Limits;
use crate::evaluate::Evaluate;
use crate::evaluate::field::{Field, FromText};
use crate::evaluate::form::AnswerForm;
use crate::judges::declared::Declared;

record! {
    /// A loop: a finite-state machine whose states run commands and whose verdicts choose the next state.
    pub struct Loop {
        /// Identifies the loop in logs, state files and `list`.
        name: LoopName,
        /// What the loop is for, in a sentence.
        description: Option<String>,
        /// The state where a run starts.
        initial: Early<StateName>,
        /// The states, by name.
        states: IndexMap<StateName, State>,
        /// The authoring form; `fsm` is the only one that needs no translation.
        paradigm: Option<Paradigm>,
        /// Variables for `${context.…}`. Texts may refer to other values and to `${env.…}`.
        context: IndexMap<VarName, Value> = IndexMap::new(),
        /// Typed inputs of the loop.
        parameters: IndexMap<VarName, Parameter> = IndexMap::new(),
        /// The context key that takes the positional input of `run`.
        input_key: VarName = crate::definition::schema::default_input_key(),
        /// Context keys that must not be empty when a run starts.
        required_inputs: Vec<VarName> = Vec::new(),
        /// The paths that a run claims for itself.
        scope: Vec<Template> = vec![Template::literal(".")],
        /// The files that decide what a check says without being the work, besides those that ll-loop knows by itself.
        /// An empty list says that there are none.
        judges: Option<Declared>,
        /// How many passes a run may take.
        max_iterations: Early<Count> = Early::of(Count::of(crate::definition::schema::STANDARD_ITERATIONS)),
        /// How many state executions a run may take.
        max_steps: Option<Early<Count>>,
        /// The state that runs once when `max_iterations` is met.
        on_max_iterations: Option<Early<StateName>>,
        /// The state that runs once when `max_steps` is met.
        on_max_steps: Option<Early<StateName>>,
        /// How often one way from state to state may be taken.
        max_edge_revisits: Option<Early<Count>>,
        /// The longest time for the whole run.
        timeout: Option<Duration>,
        /// The longest time for an action whose state sets none.
        default_timeout: Option<Duration>,
        /// The longest silence of an action whose state sets none.
        default_idle_timeout or "idle_timeout": Option<Duration>,
        /// The wait before work is entered again; never before a terminal.
        backoff: Option<Delay>,
        /// When a run is given up because nothing changes any more.
        stall: Option<Stall>,
        /// Whether the loop starts again after a terminal.
        maintain: bool = false,
        /// The wait before it starts again.
        maintain_delay: Option<Delay>,
        /// Where an `error` goes that the state itself has no route for.
        on_error: Option<Early<StateName>>,
        /// Where a `timeout` goes that the state itself has no route for.
        on_timeout: Option<Early<StateName>>,
        /// Where a `blocked` goes that the state itself has no route for.
        on_blocked: Option<Early<StateName>>,
        /// What runs shell actions: `bash`, `sh`, or a command and its arguments, before the text.
        shell: Shell = Shell::Bash,
        /// Environment for every action.
        env: IndexMap<String, Template> = IndexMap::new(),
        /// How actions are confined whose state says nothing about that.
        sandbox: Option<SandboxRules>,
        /// A word to group loops by.
        category: Option<String>,
        /// Whom the loop is for, such as `public`, `internal` or `example`; `list --json` shows it.
        visibility: Option<String>,
        /// Words to find loops by.
        labels: Vec<String> = Vec::new(),
        /// Commands that `show` lists.
        commands: Vec<CommandHint> = Vec::new(),
        /// Settings for model calls.
        llm: Option<LlmSettings>,
        /// What a run may spend on models, over all its resumes.
        budget: Option<Budget>,
        /// Which signals in the output of actions the loop obeys.
        signals: Vec<SignalKind> = SignalKind::ALL.to_vec(),
        /// What happens at a hand-off signal.
        on_handoff: OnHandoff = OnHandoff::Pause,
        /// Whose settings, hooks and servers the CLIs of agents heed: the user's, or the repository's too.
        host_settings: HostSettings = HostSettings::User,
        /// Who holds the key of the service that agents ask: ll-loop, where it can, or their CLIs; in CI, ll-loop.
        broker: Option<BrokerUse>,
        /// Whether what actions leave running stays when the run has ended.
        leaves_running: bool = false,
        /// Whether a run may succeed that changed tracked files; the default depends on what the loop is for.
        on_change: Option<OnChange>,
        /// Whether checks whose verdict fell on another tree are run once more before a success.
        closing_pass: bool = true,
        /// When the result of a run stands for later ones: nothing that its checks read has changed since.
        reuse: Option<Reuse>,
        /// How often a run may hand off to a new session by itself.
        max_handoffs: Count = Count::of(10),
        /// Who may answer its questions for people, where those are answered on a server.
        approvers: Option<Approvers>,
        /// Who is told in CI when the outcome of the loop on a branch changes.
        notify: Option<Notify>,
        /// The limits of the task board, for a loop that plans its own work.
        board: Option<BoardLimits>,
        /// What a run that did not fail copies out of its directory into the working tree.
        artifact_output: Option<ArtifactOutput>,
        /// What that is; a template is not copied.
        artifact_mode: Option<ArtifactMode>,
        /// The state where a run goes on that was left; where it was left, when absent.
        on_resume: Option<Early<StateName>>,
        /// What the predecessor does about changed tests, read as `judges`, which says it better.
        tamper_guard: Option<TamperGuard>,
        /// Whether the predecessor tries added tests on the tree of the start, read as `prove_added` of `judges`.
        prepatch_check: Option<PrepatchCheck>,
        /// Settings of the predecessor; loads with a notice.
        config: Option<Value>,
    }
    ignored [
        "circuit",
        "targets",
        "host_guard",
        "prompt_size_guard",
        "pruning_profile",
        "session_mode",
        "effort",
        "singleton",
        "artifact_versioning",
        "throttle",
        "throttle_*",
        "rate_limit*",
        "max_rate_limit_*",
        "on_rate_limit_*",
        "on_throttle*",
        "request_path",
        "cost_ceiling",
        "*_ok",
    ]
}

record! {
    /// One state: an action, how its result is judged, and where each verdict leads.
    pub struct State {
        /// The text to run, after interpolation. Without one the state only evaluates.
        action: Option<Template>,
        /// How the action is run; inferred from the text when absent.
        action_type: Option<ActionType>,
        /// The loop that this state runs: its name, or a template for it.
        r#loop as "loop": Option<Template>,
        /// Values for the declared parameters of that loop.
        with: IndexMap<VarName, Value> = IndexMap::new(),
        /// Whether that loop sees the context and captures of this one, and gives its captures back.
        context_passthrough: bool = false,
        /// The branch on which that loop works, in a git worktree that is removed afterwards; empty for none.
        worktree: Option<Template>,
        /// How the result becomes a verdict. `exit_code` for shell actions when absent.
        evaluate or "condition": Option<Evaluate>,
        /// Where each verdict leads, with `_` for any other and `_error` for errors.
        route: IndexMap<String, Early<Target>> = IndexMap::new(),
        /// `on_<verdict>`: where that verdict leads.
        on as prefix "on_": IndexMap<String, Early<Target>>,
        /// Where to go whatever the result.
        next: Option<Early<Target>>,
        /// What kind of state it is: `learning` needs the key of that name. Other words have no effect.
        kind as "type": Option<String>,
        /// What has to be known before the run goes on, in a state of the type `learning`.
        learning: Option<Learning>,
        /// Whether the run ends here.
        terminal: bool = false,
        /// What ending here means; inferred from the state's name when absent.
        outcome: Option<TerminalOutcome>,
        /// The same as `outcome: failure`.
        failure: Option<bool>,
        /// The name under which the result is stored.
        capture: Option<VarName>,
        /// Whether the result is stored under the state's own name.
        capture_exit: bool = false,
        /// Text added to the message log after the state ran.
        append_to_messages: Option<Template>,
        /// The longest time for the action.
        timeout: Option<Duration>,
        /// The longest silence of the action.
        idle_timeout: Option<Duration>,
        /// How long a question for a person stays open where nobody is at a terminal; 7 days when absent.
        stays_open: Option<Duration>,
        /// Who may answer this question for a person, where it is answered on a server; whom the loop names, when absent.
        approvers: Option<Approvers>,
        /// Environment for the action.
        env: IndexMap<String, Template> = IndexMap::new(),
        /// What runs the action.
        shell: Option<Shell>,
        /// The directory of the action, inside the working tree.
        cwd: Option<Template>,
        /// How many times in a row the state may be entered again.
        max_retries: Option<Early<Count>>,
        /// Where to go when `max_retries` is used up.
        on_retry_exhausted: Option<Early<StateName>>,
        /// The wait before the first retry; it doubles with each further one, up to ten minutes.
        retry_delay: Option<Delay>,
        /// Whether its action may run twice where it should run once: a `rewind` runs it again without asking.
        idempotent: bool = false,
        /// Whether its observation may be made again without harm; told by the command when absent.
        check: Option<bool>,
        /// How often in a row the state has to pass before it is left.
        repeat: Option<Repeat>,
        /// How often a check is made again that fails and is known to waver.
        flaky: Option<Flaky>,
        /// The exit codes that are worth another try; another failing code counts as exhausted.
        retryable_exit_codes: Vec<FailureCode> = Vec::new(),
        /// What the state is for, for logs and reports.
        description: Option<String>,
        /// Where a maintain loop starts again after this terminal.
        on_maintain: Option<Early<StateName>>,
        /// Values for `${param.…}`, as a fragment gets them through `with`.
        param: IndexMap<VarName, Field<Value>> = IndexMap::new(),
        /// Extra values that a prompt is shown.
        context: IndexMap<VarName, Template> = IndexMap::new(),
        /// The agent of the host that takes a prompt.
        agent: Option<Template>,
        /// The tools that a prompt may use; the host's own choice when absent.
        tools: Vec<String> = Vec::new(),
        /// How the action is confined; as the loop says when absent.
        sandbox: Option<SandboxRules>,
        /// The model for a prompt; the host's own choice when absent.
        model: Option<Template>,
        /// The model in its place where that one cannot be asked, and for a call that is made again.
        fallback_model: Option<Template>,
        /// Who does the work of this state: a word for reports, and for the action.
        role: Option<VarName>,
        /// Which call this state makes for a task board: it bounds the calls of a run, and the action is told.
        phase: Option<Phase>,
        /// The JSON Schema of the answer to a prompt.
        answer: Option<AnswerForm>,
        /// The conversation that a prompt belongs to: prompts of one name continue each other.
        session: Option<Template>,
        /// The arguments of an MCP tool or of an operation on the board, with templates in their texts.
        params: IndexMap<String, Value> = IndexMap::new(),
        /// Where the predecessor goes when it gives up on a limit of rates; loads with a notice.
        on_rate_limit_exhausted: Option<Early<StateName>>,
        /// Where the predecessor goes when a state was entered too often in a row; loads with a notice.
        on_throttle_hard: Option<Early<StateName>>,
    }
    ignored [
        "host_guard",
        "prompt_size_guard",
        "pruning_profile",
        "session_mode",
        "effort",
        "model_hint",
        "throttle",
        "throttle_*",
        "rate_limit*",
        "max_rate_limit_*",
        "on_rate_limit_*",
        "on_throttle*",
        "request_path",
        "cost_ceiling",
        "prepatch_check",
        "tamper_guard",
        "*_ok",
    ]
    missed ["output" = "`capture` names what a state prints"]
    refused [
        "comparator" = "judge the output with `evaluate: {type: llm_structured}`",
        "contract" = "compare the files in a shell action, or judge them with `evaluate: {type: llm_structured}`",
        "advisor_consult" = "ask in a state of its own, with `action_type: prompt` and `answer`",
        "scopes" = "an action has the whole environment; pass the credentials to the one job or step that needs them",
    ]
}

record! {
    /// The keys by which a loop takes over what is written elsewhere. They are worked in before a [`Loop`] is read.
    pub struct Composition {
        /// The loop to inherit from: a name, or a path relative to this file.
        from: Option<String>,
        /// Libraries of fragments, relative to this file.
        import: Vec<String> = Vec::new(),
        /// Partial states that states can inherit from.
        fragments: Option<Fragments>,
        /// States in a line each: `name`, or `name?yes:no`.
        flow: Vec<String> = Vec::new(),
        /// The bodies of the states in `flow`.
        state_defs: IndexMap<StateName, State> = IndexMap::new(),
    }
}

record! {
    /// The keys of a state that are worked in before a [`State`] is read.
    pub struct Shorthand {
        /// The fragment to inherit from.
        fragment: Option<String>,
        /// Values for the parameters of the fragment.
        with: IndexMap<VarName, Value> = IndexMap::new(),
        /// A decision on the result of an earlier state, which `source` names.
        check_condition: Option<Evaluate>,
    }
}

/// Partial states by name; they are only ever read as parts of states.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragments;

impl Decode for Fragments {
    fn decode(_: &Node, _: &DocPath, _: &mut Diagnostics) -> Option<Self> {
        Some(Self)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let mut fragment = State::object_schema(definitions);
        fragment["description"] = "A partial state.".into();
        let shorthand = Shorthand::object_schema(definitions);
        // `fragment` is left out: a fragment cannot inherit from another one.
        for key in ["with", "check_condition"] {
            fragment["properties"][key] = shorthand["properties"][key].clone();
        }
        fragment["properties"]["parameters"] = IndexMap::<VarName, Parameter>::schema(definitions);
        json!({"type": ["object", "null"], "additionalProperties": fragment})
    }
}

choice! {
    /// The authoring form of a loop.
    pub enum Paradigm {
        Fsm = "fsm",
        Goal = "goal",
        Convergence = "convergence",
        Invariants = "invariants",
        Imperative = "imperative",
        Criteria = "criteria",
        Agents = "agents",
    }
}

choice! {
    /// How an action is run.
    pub enum ActionType {
        Shell = "shell",
        Prompt = "prompt",
        SlashCommand = "slash_command",
        McpTool = "mcp_tool",
        Board = "board",
        HumanApproval = "human_approval",
    }
    refused ["contract" = "compare the files in a shell action, or judge them with `evaluate: {type: llm_structured}`"]
}

impl ActionType {
    /// Tells what an action is by its first word: `/word` and `/word:word` are slash commands, `/usr/bin/x` is not.
    pub fn inferred(text: &str) -> Self {
        let first = first_word(text);
        let is_command = first.strip_prefix('/').is_some_and(|word| {
            !word.is_empty()
                && !word.contains('/')
                && word.chars().all(|c| c.is_alphanumeric() || "-_:.".contains(c))
        });
        if is_command { Self::SlashCommand } else { Self::Shell }
    }
}

choice! {
    /// A call of an agent in work that is planned on a task board.
    pub enum Phase {
        /// The goal becomes a plan.
        Plan = "plan",
        /// The plan is judged.
        VerifyPlan = "verify_plan",
        /// A task is done.
        Implement = "implement",
        /// It is tested.
        Test = "test",
        /// What the test found is mended.
        Fix = "fix",
        /// The task is judged.
        VerifyStep = "verify_step",
        /// A task is split.
        Replan = "replan",
        /// The goal is judged.
        VerifyGoal = "verify_goal",
    }
}

choice! {
    /// What ending in a terminal means.
    pub enum TerminalOutcome {
        Success = "success",
        Failure = "failure",
        Blocked = "blocked",
        Neutral = "neutral",
    }
}

choice! {
    /// Whose settings the CLIs of agents heed.
    pub enum HostSettings { User = "user", Project = "project" }
}

choice! {
    /// Who holds the key of the service that agents ask.
    pub enum BrokerUse {
        /// ll-loop, where it can.
        Auto = "auto",
        /// Their CLIs.
        Off = "off",
    }
}

choice! {
    /// What happens when an action asks for a hand-off.
    pub enum OnHandoff { Pause = "pause", Spawn = "spawn", Terminate = "terminate" }
}

choice! {
    /// What the predecessor does about tests that an action has changed.
    pub enum TamperGuard {
        /// They are put back; here, checks are asked again with the tests as they were.
        Revert = "revert",
        /// It fails.
        Fail = "fail",
        /// It is told.
        Warn = "warn",
        /// It is told.
        Allow = "allow",
        /// Nothing.
        Off = "off",
    }
}

choice! {
    /// What the predecessor does about added tests that pass without the change.
    pub enum PrepatchCheck {
        /// It fails; here, it is told.
        Fail = "fail",
        /// It is told.
        Warn = "warn",
        /// Nothing.
        Allow = "allow",
        /// Nothing.
        Off = "off",
    }
}

choice! {
    /// What it means when a run would succeed on a tree that the commit does not have.
    pub enum OnChange {
        /// It fails: the commit does not pass.
        Fail = "fail",
        /// It succeeds, and every report says what changed.
        Report = "report",
    }
}

choice! {
    /// A signal that an action can print at the start of a line; of several, the first in this order counts.
    pub enum SignalKind {
        /// `CONTEXT_HANDOFF:`: the work goes on in a fresh session.
        Handoff = "handoff",
        /// `FATAL_ERROR:`: the run is over as an error.
        Error = "error",
        /// `LOOP_STOP:`: the run is over in order.
        Stop = "stop",
    }
}

choice! {
    /// The type of a parameter.
    pub enum ParameterType {
        String = "string",
        Integer = "integer",
        Number = "number",
        Boolean = "boolean",
        Enum = "enum",
        Path = "path",
    }
}

record! {
    /// When visits of a state that change nothing are a stall, and what is done about it.
    pub struct Stall {
        /// How many visits of one state in a row have to bring the same verdict, the same number and the same working
        /// tree.
        window: Window = Window(3),
        /// What is done: `stop` ends the run as exhausted; the name of a state leads there once.
        action: StallAction = StallAction::Stop,
    }
}

/// What is done about a stall.
#[derive(Clone, Debug, PartialEq)]
pub enum StallAction {
    /// The run ends.
    Stop,
    /// The run goes on in this state.
    Go(Early<StateName>),
}

impl Decode for StallAction {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match node.as_scalar() {
            // The word wins over a state of this name, which a stall can then not lead to.
            Some(scalar) if scalar.text == "stop" => Some(Self::Stop),
            _ => Early::decode(node, path, out).map(Self::Go),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"const": "stop"}, Early::<StateName>::schema(definitions)]})
    }
}

record! {
    /// What the checks of a loop read, so that a run need not be made again while none of it changes.
    pub struct Reuse {
        /// Patterns of files, as in `.gitignore`, from the root of the repository. They may hold `${context.…}` and
        /// `${param.…}`.
        inputs: Vec<Template>,
        /// Commands whose output says which tools there are, such as `rustc -V`. No shell reads them. They may hold
        /// `${context.…}` and `${param.…}`, and a value several commands, one a line.
        tools: Vec<Template> = Vec::new(),
        /// Names of variables of the environment.
        env: Vec<String> = Vec::new(),
        /// How long the result of a run is used.
        max_age: Duration = crate::definition::schema::STANDARD_AGE,
        /// One run in so many is made although it could have been reused, to see whether it comes to the same.
        verify_every: Count = Count::of(50),
        /// Whether actions see nothing of the repository but the inputs and judges, so that a check that reads more fails. It
        /// needs a sandbox.
        hermetic: bool = false,
    }
}

/// How long the result of a run is used where the loop does not say it: 30 days.
const STANDARD_AGE: Duration = Duration::from_hours(30 * 24);

record! {
    /// How often a check is made again that fails, on the same tree. Where it passes then, it passes, and that it wavers is said.
    pub struct Flaky {
        /// The most times.
        again: Early<Count>,
        /// Whether it is made again also where it is not known to waver.
        always: bool = false,
    }
}

record! {
    /// How often in a row a state has to pass before it is left: it is entered again until then. A verdict that does not pass
    /// leaves it as ever.
    pub struct Repeat {
        /// How many times, at least 2.
        passes: Early<Count>,
    }
}

record! {
    /// A typed input.
    pub struct Parameter {
        /// The type that a given value is checked against and converted to.
        kind as "type": ParameterType,
        /// Whether a run needs it.
        required: bool = false,
        /// The value when none is given.
        default: Option<Value>,
        /// What it is for.
        description: Option<String>,
        /// The values of an `enum`.
        values: Vec<String> = Vec::new(),
    }
}

impl Parameter {
    /// Checks a value against a parameter's type and converts texts to it.
    pub fn convert(&self, name: &VarName, value: &Value) -> Result<Value, Explanation> {
        let wrong = |expected: &str| {
            Err(Explanation::new(format!("the parameter `{name}` must be {expected}, and `{value}` is not")))
        };
        // Texts come from command lines and from outputs, often with blanks or a line end around them.
        let text = value.as_str().map(str::trim);
        match self.kind {
            ParameterType::String | ParameterType::Path => match value {
                Value::String(_) => Ok(value.clone()),
                Value::Number(_) | Value::Bool(_) => Ok(json!(value.to_string())),
                // Among values that are handed over, `null` is an empty text, and an empty text is not a path.
                Value::Null if self.kind == ParameterType::String => Ok(json!("")),
                Value::Null | Value::Array(_) | Value::Object(_) => wrong("a text"),
            },
            ParameterType::Integer => match text.map(str::parse::<i64>) {
                Some(Ok(number)) => Ok(json!(number)),
                None if value.is_i64() || value.is_u64() => Ok(value.clone()),
                _ => wrong("an integer"),
            },
            ParameterType::Number => match text.map(str::parse::<f64>) {
                Some(Ok(number)) if number.is_finite() => Ok(json!(number)),
                None if value.is_number() => Ok(value.clone()),
                _ => wrong("a number"),
            },
            ParameterType::Boolean => match (text, value) {
                // A command line has only texts, in which people write a truth value in any of these ways.
                (Some("true" | "yes" | "1"), _) => Ok(json!(true)),
                (Some("false" | "no" | "0"), _) => Ok(json!(false)),
                (None, Value::Bool(_)) => Ok(value.clone()),
                _ => wrong("`true` or `false`"),
            },
            ParameterType::Enum => match text {
                Some(text) if self.values.iter().any(|allowed| allowed == text) => Ok(json!(text)),
                _ => wrong(&format!("one of {}", self.values.join(", "))),
            },
        }
    }
}

choice! {
    /// What an artifact is.
    pub enum ArtifactMode { File = "file", Template = "template" }
}

record! {
    /// A file that a run copies into the working tree at its end.
    pub struct Artifact {
        /// The file, below the directory of the run.
        from: Template,
        /// Where it is copied to, below the working tree.
        to: Option<Template>,
        /// The terminals at which it is copied; all that are not failures, when absent.
        on: Vec<StateName> = Vec::new(),
    }
}

/// An [`Artifact`], or only its `from`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactOutput(pub Artifact);

impl Decode for ArtifactOutput {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            NodeValue::Scalar(_) => {
                let from = Template::decode(node, path, out)?;
                Some(Self(Artifact { from, to: None, on: Vec::new() }))
            }
            NodeValue::Map(_) | NodeValue::List(_) => Artifact::decode(node, path, out).map(Self),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [Template::schema(definitions), Artifact::schema(definitions)]})
    }
}

record! {
    /// What has to be known before a run goes on: each target has a record, `.ll/learning-tests/<slug>.md`.
    pub struct Learning {
        /// What has to be known.
        targets: Vec<Template> = Vec::new(),
        /// The same as one text, with commas between them.
        targets_csv: Option<Template>,
        /// How often an agent is asked about a target whose record is missing or stale.
        max_retries: AtMost = AtMost(2),
        /// The same as a template.
        max_retries_expr: Option<Template>,
    }
}

record! {
    /// Who may answer questions for people. Without `users` and `teams`, it is whoever has write access.
    pub struct Approvers {
        /// Accounts of the server.
        users: Vec<String> = Vec::new(),
        /// Teams of the server, as `ORGANISATION/TEAM`.
        teams: Vec<String> = Vec::new(),
        /// How many different people have to approve.
        min: Count = Count::of(1),
        /// Whether neither the author of the pull request nor whoever started the run may answer.
        not_author: bool = true,
    }
}

choice! {
    /// What the document looks like that somebody is told.
    pub enum NotifyShape { Plain = "plain", Slack = "slack", Teams = "teams" }
}

record! {
    /// Who is told when the outcome of the loop changes: one of an address, a variable and a command.
    pub struct Notify {
        /// The address that a document is posted to.
        url: Option<String>,
        /// The variable of the environment that holds the address.
        url_from: Option<String>,
        /// The command line that reads the document from its standard input.
        command: Option<String>,
        /// What the document looks like; told by the host of the address when absent.
        shape: Option<NotifyShape>,
    }
}

record! {
    /// A command line that `show` lists.
    pub struct CommandHint {
        /// The command line.
        cmd: String,
        /// What it does.
        comment: String,
    }
}

record! {
    /// Settings for model calls.
    pub struct LlmSettings {
        /// Whether models may be called at all.
        enabled: bool = true,
        /// The model of the judge.
        model: Option<Template>,
        /// The longest answer of the judge.
        max_tokens: Option<Count>,
        /// The longest time for a call.
        timeout: Option<Duration>,
        /// What models cost, by name, in place of what is known of them.
        prices: IndexMap<String, TokenPrices> = IndexMap::new(),
    }
    ignored ["effort"]
}

record! {
    /// What a model costs, in US dollars for a million tokens.
    pub struct TokenPrices {
        /// Tokens that it reads.
        input: Rate,
        /// Tokens that it writes.
        output: Rate,
    }
}

record! {
    /// Hard caps on what models may cost.
    pub struct Budget {
        /// US dollars.
        cost_usd: Option<Money>,
        /// Tokens, in and out.
        tokens: Option<Count>,
        /// Calls of a host, judges included.
        llm_calls: Option<Count>,
        /// What to do with a cap on cost when a call has no known price.
        unpriced: Unpriced = Unpriced::Refuse,
    }
}

choice! {
    /// What a cap on cost means for calls without a known price.
    pub enum Unpriced { Refuse = "refuse", Allow = "allow" }
}

/// How many passes a run may take that says nothing else.
pub const STANDARD_ITERATIONS: u32 = 50;

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// To a state.
    State(StateName),
    /// Into the same state again: `$current`.
    Current,
}

/// What runs shell actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `bash -c TEXT`.
    Bash,
    /// `sh -c TEXT`.
    Sh,
    /// These words, then the text.
    Argv(Vec<String>),
}

record! {
    /// What the work on the task board may take at most.
    pub struct BoardLimits {
        /// How often the plan is reviewed.
        max_plan_revisions: Count = Count::of(Limits::STANDARD.plan_revisions),
        /// How often a failed test is followed by a fix, in one attempt at a task.
        max_fix_cycles: AtMost = AtMost(Limits::STANDARD.fix_cycles),
        /// How often a task is tried before it is split.
        attempts_before_replan: Count = Count::of(Limits::STANDARD.attempts),
        /// How deep tasks may be split.
        max_replan_depth: AtMost = AtMost(Limits::STANDARD.depth),
        /// How many passes in a row may complete no task.
        max_goal_iterations: Count = Count::of(Limits::STANDARD.idle_passes),
        /// The share of tasks that may fail for good, from 0 to 1.
        abort_failed_ratio: Ratio = Ratio(Limits::STANDARD.failed_ratio),
    }
}

ranged! {
    /// A count that may be zero.
    pub struct AtMost(pub u32) in Bounds::whole(0.0, MAX_COUNT, "a whole number from 0 to 1,000,000,000")
}

ranged! {
    /// A count of at least one.
    pub struct Count(u32) in Bounds::whole(1.0, MAX_COUNT, "a whole number from 1 to 1,000,000,000")
}

ranged! {
    /// A count of at least two: one alone cannot show that nothing changes.
    pub struct Window(u32) in Bounds::whole(2.0, MAX_COUNT, "a whole number from 2 to 1,000,000,000")
}

ranged! {
    /// The code of an action that failed.
    pub struct FailureCode(i32) in Bounds::whole(1.0, 255.0, "a whole number from 1 to 255")
}

ranged! {
    /// A share of a whole.
    pub struct Ratio(f64) in Bounds {
        expected: "a number from 0 to 1",
        is_whole: false,
        least: Least::At(0.0),
        most: Some(1.0),
    }
}

ranged! {
    /// A price, which may be nothing.
    pub struct Rate(f64) in Bounds {
        expected: "a number from 0 to 1,000,000",
        is_whole: false,
        least: Least::At(0.0),
        most: Some(1e6),
    }
}

ranged! {
    /// An amount of money.
    pub struct Money(f64) in Bounds {
        expected: "a number of more than 0",
        is_whole: false,
        least: Least::Above(0.0),
        most: None,
    }
}

/// A count above this is a typing mistake.
const MAX_COUNT: f64 = 1e9;

impl Count {
    /// Makes a count; zero becomes one.
    pub const fn of(count: u32) -> Self {
        Self(if count == 0 { 1 } else { count })
    }
}

/// A wait, which may be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay(pub Duration);

impl Decode for Delay {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        decode::duration(node, path, out).map(Self)
    }

    fn schema(_: &mut Definitions) -> Value {
        decode::duration_schema(true)
    }
}

impl Target {
    /// The word that leads into the same state again.
    pub const CURRENT: &'static str = "$current";
}

impl FromText for Target {
    const EXPECTED: &'static str = "the name of a state";

    fn from_text(text: &str) -> Option<Self> {
        if text == Self::CURRENT { Some(Self::Current) } else { StateName::from_text(text).map(Self::State) }
    }
}

impl Decode for Target {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match node.as_scalar() {
            Some(scalar) if scalar.text == Self::CURRENT => Some(Self::Current),
            _ => StateName::decode(node, path, out).map(Self::State),
        }
    }

    /// A verdict that leads nowhere has no route.
    fn named_null() -> NamedNull<Self> {
        NamedNull::NotGiven
    }

    fn schema(_: &mut Definitions) -> Value {
        let mut name = StateName::key_schema();
        name["type"] = json!(["string", "number", "boolean"]);
        json!({"anyOf": [name, {"const": Self::CURRENT}]})
    }
}

impl Decode for Shell {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match (&node.value, node.as_scalar().map(|scalar| scalar.text.as_str())) {
            (_, Some("bash")) => Some(Self::Bash),
            (_, Some("sh")) => Some(Self::Sh),
            (NodeValue::List(items), _) if !items.is_empty() => Vec::decode(node, path, out).map(Self::Argv),
            _ => {
                wrong_type(node, path, "`bash`, `sh` or a list of words", out);
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [
            {"enum": ["bash", "sh"]},
            {"type": "array", "items": String::schema(definitions), "minItems": 1},
        ]})
    }
}

fn default_input_key() -> VarName {
    VarName::parse("input").expect("`input` is a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_commands_are_told_from_paths() {
        for (text, expected) in [
            ("/ll:check_code types", ActionType::SlashCommand),
            ("/review", ActionType::SlashCommand),
            ("/usr/bin/true", ActionType::Shell),
            ("pytest /x", ActionType::Shell),
            ("/", ActionType::Shell),
        ] {
            assert_eq!(ActionType::inferred(text), expected, "{text}");
        }
    }
}
