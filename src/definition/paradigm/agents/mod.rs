//! `paradigm: agents`: a goal becomes a plan, the plan tasks, and the tasks work that is tested and verified.
//!
//! What becomes of it is a plain loop. Its states ask agents and run tests; whatever is decided about tasks is decided
//! by the task board, in operations that are states as well. `compile` shows all of it, and it can be edited there.

use std::time::Duration;

use serde_json::Value;

use super::paradigm_parts::{by_exit_code, empty};
use crate::base::decode::{Decode, Definitions, Record, choice, record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::{Entry, FileId, Node, NodeValue, Span};
use crate::base::path::DocPath;
use crate::base::sandbox::SandboxRules;
use crate::definition::assembled_tree::{
    MergeLevel, entries_mut, entry, map, merge, plain, put, take, text, value,
};
use crate::definition::schema::{AtMost, BoardLimits, Delay, Phase};
use crate::definition::yaml;
use crate::evaluate::exit_codes::ExitCodes;
use crate::evaluate::number_bounds::Points;

mod agent_call;

record! {
    /// A goal, and who works towards it.
    pub struct Agents {
        /// What is to be reached.
        goal: String,
        /// What has to be kept to on the way.
        constraints: Vec<String> = Vec::new(),
        /// Who is asked, and how.
        roles: Roles = standard(),
        /// What the work may take at most.
        limits: WorkLimits = WorkLimits { board: standard(), calls: standard() },
        /// What is reviewed, and what is good enough.
        review: Review = standard(),
        /// Files with prompts in place of the built-in ones, relative to this file.
        prompts: Option<Prompts>,
    }
}

record! {
    /// Who is asked, and how.
    pub struct Roles {
        /// Who makes plans.
        planner: Agent = standard(),
        /// Who does tasks, and mends them.
        coder: Agent = standard(),
        /// Who tests tasks.
        tester: Tester = standard(),
        /// Who judges plans, tasks and the goal.
        supervisor: Agent = standard(),
    }
}

record! {
    /// How somebody is asked.
    pub struct Agent {
        /// The model.
        model: Option<String>,
        /// The model in its place where that one cannot be asked, and for a call that is made again.
        fallback_model: Option<String>,
        /// The longest time for a call.
        timeout: Option<Duration>,
        /// How long one conversation lasts.
        session: Conversation = Conversation::Task,
        /// The tools that the agent may use; the host's own choice when absent.
        tools: Vec<String> = Vec::new(),
        /// How the agent is confined; when absent, the host lets those who only look change nothing.
        sandbox: Option<SandboxRules>,
    }
}

record! {
    /// How tasks are tested.
    pub struct Tester {
        /// The model.
        model: Option<String>,
        /// The model in its place where that one cannot be asked, and for a call that is made again.
        fallback_model: Option<String>,
        /// The longest time for a test.
        timeout: Option<Duration>,
        /// How long one conversation lasts.
        session: Conversation = Conversation::Task,
        /// The tools that the agent may use; the host's own choice when absent.
        tools: Vec<String> = Vec::new(),
        /// How the agent is confined; when absent, the host lets those who only look change nothing.
        sandbox: Option<SandboxRules>,
        /// The command that tests: 0 is passed, and what `no` says is failed.
        check: Option<String>,
        /// The exit codes of the command that mean failed; without, 1 to 125. With any other one it did not test.
        no: Option<ExitCodes>,
        /// Whether the command tests instead of the agent, or before it.
        check_is: CheckIs = CheckIs::Instead,
    }
}

choice! {
    /// How long one conversation lasts.
    pub enum Conversation { Task = "task", Run = "run", Call = "call" }
}

choice! {
    /// What the command of the tester is to the agent.
    pub enum CheckIs { Instead = "instead", InFront = "in_front" }
}

record! {
    /// What calls may take at most.
    pub struct CallLimits {
        /// How often a call that came to nothing is made again; at least twice, and not after the third failure in a row
        /// with the same cause.
        call_retries: AtMost = AtMost(3),
        /// The wait before the first of them; it doubles with each further one.
        retry_base_delay: Delay = Delay(Duration::from_secs(1)),
        /// The longest time for a call of a role that has none of its own.
        call_timeout: Duration = Duration::from_mins(15),
    }
}

/// What the work may take at most: the limits of the board, and beside them those of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkLimits {
    /// Those of the board.
    pub board: BoardLimits,
    /// Those of calls.
    pub calls: CallLimits,
}

impl Decode for WorkLimits {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let NodeValue::Map(all) = &node.value else {
            return BoardLimits::decode(node, path, out).map(|board| Self { board, calls: standard() });
        };
        let is_of_calls = |entry: &Entry| CallLimits::KEYS.contains(&entry.key.as_str());
        // A key that is neither goes to the board, which reports it.
        let (calls, board) = all.iter().cloned().partition(is_of_calls);
        let calls = CallLimits::decode(&map(&node.span, calls), path, out);
        let board = BoardLimits::decode(&map(&node.span, board), path, out);
        Some(Self { board: board?, calls: calls? })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let mut schema = BoardLimits::object_schema(definitions);
        let calls = CallLimits::object_schema(definitions);
        if let (Some(all), Some(calls)) =
            (schema["properties"].as_object_mut(), calls["properties"].as_object())
        {
            all.extend(calls.clone());
        }
        schema
    }
}

record! {
    /// What is reviewed, and what is good enough.
    pub struct Review {
        /// Whether the plan is.
        plan: bool = true,
        /// Whether each task is.
        steps: bool = true,
        /// The score from which on something is approved.
        approve: Points = Points::APPROVED,
        /// The score from which on it needs a revision; below, it is rejected.
        revise: Points = Points::REVISED,
        /// What becomes of a plan that no review approved.
        on_plan_rejected: OnPlanRejected = OnPlanRejected::SkipAndContinue,
    }
}

choice! {
    /// What becomes of a plan that no review approved.
    pub enum OnPlanRejected {
        SkipAndContinue = "skip_and_continue",
        LowerThreshold = "lower_threshold",
        Abort = "abort",
    }
}

record! {
    /// The text of each prompt that is replaced.
    pub struct Prompts {
        /// The goal becomes a plan.
        plan: Option<String>,
        /// The plan is judged.
        verify_plan: Option<String>,
        /// A task is done.
        implement: Option<String>,
        /// It is tested.
        test: Option<String>,
        /// What the test found is mended.
        fix: Option<String>,
        /// The task is judged.
        verify_step: Option<String>,
        /// A task is split.
        replan: Option<String>,
        /// The goal is judged.
        verify_goal: Option<String>,
    }
}

/// Returns a record of which nothing is written down.
fn standard<T: Record>() -> T {
    let nothing = map(&Span { file: FileId(0), range: 0..0 }, Vec::new());
    let read = T::decode(&nothing, &DocPath::root(), &mut Diagnostics::default());
    read.expect("every key of these records may be absent")
}

/// The loop with everything in it.
const LOOP: &str = include_str!("loop.yaml");

/// What is laid over it where a loop says otherwise.
const VARIANTS: &str = include_str!("variants.yaml");

/// The line that stands for [`LOOK`] in the actions of the loop.
const LOOK_LINE: &str = "{{look}}\n";

/// Writes the working tree, with files that git does not know yet, to objects of the run's own, and prints its name.
/// Fails outside of git.
const LOOK: &str = include_str!("look.sh");

/// A call is made again at least so often: only the third failure in a row says that nobody answers.
const FEWEST_RETRIES: u32 = 2;

pub(super) fn expand(own: &Node, out: &mut Diagnostics) -> Option<Node> {
    let read = Agents::decode(own, &DocPath::root(), out)?;
    let path = DocPath::root();
    if read.goal.trim().is_empty() {
        empty(&path.key("goal"), "word", out);
        return None;
    }
    let Agents { goal, constraints, roles, limits, review, .. } = read;
    let (approve, revise) = (review.approve.get(), review.revise.get());
    if revise > approve {
        let message = format!("`revise: {revise}` and `approve: {approve}` are not thresholds");
        let place = FindingPlace::Value(path.key("review"));
        let help = "`approve` is not below `revise`";
        out.push(Diagnostic::error("thresholds", place, message).help(help));
        return None;
    }
    if roles.tester.no.is_some() && roles.tester.check.is_none() {
        let place = FindingPlace::Key(path.key("roles").key("tester").key("no"));
        let finding = Diagnostic::warning("no-effect", place, "`no` has no effect without `check`");
        out.push(finding.help("it lists the exit codes of that command which mean failed"));
    }
    let is_command = roles.tester.check.is_some() && roles.tester.check_is == CheckIs::Instead;
    let for_agent = [("tools", !roles.tester.tools.is_empty()), ("sandbox", roles.tester.sandbox.is_some())];
    for (key, _) in for_agent.into_iter().filter(|(_, is_set)| *is_set && is_command) {
        let place = FindingPlace::Key(path.key("roles").key("tester").key(key));
        let message = format!("`{key}` has no effect beside `check`");
        let help = "it is for an agent that tests: remove it, or add `check_is: in_front`";
        out.push(Diagnostic::warning("no-effect", place, message).help(help));
    }
    let form = Form { at: own.get("goal")?.span.clone(), own, roles, limits, review };
    Some(form.written(&goal, &constraints))
}

/// What a loop of this form says, read.
struct Form<'n> {
    /// The place of the goal, which everything stands for that is written down nowhere else.
    at: Span,
    own: &'n Node,
    roles: Roles,
    limits: WorkLimits,
    review: Review,
}

impl Form<'_> {
    fn written(&self, goal: &str, constraints: &[String]) -> Node {
        let at = &self.at;
        let variants = self.read(VARIANTS);
        let variants = self.variants().into_iter().filter_map(|name| variants.get(name).cloned());
        let mut written = variants.fold(self.read(LOOP), |below, over| merge(below, over, MergeLevel::Loop));
        if let Some(mut states) = take(&mut written, "states") {
            for state in entries_mut(&mut states.value) {
                self.fill_in(&mut state.value);
            }
            put(&mut written, states);
        }
        let constraints: Vec<_> = constraints.iter().map(|one| format!("- {one}")).collect();
        let constraints = if constraints.is_empty() { "- none".to_owned() } else { constraints.join("\n") };
        let goal = self.own.get("goal").cloned().unwrap_or_else(|| text(at, goal));
        let (approve, revise) = (self.review.approve.get(), self.review.revise.get());
        let context = vec![
            entry("goal", goal),
            entry("constraints", text(at, constraints)),
            entry("approve", plain(at, approve.to_string())),
            entry("revise", plain(at, revise.to_string())),
        ];
        put(&mut written, entry("context", map(at, context)));
        put(&mut written, entry("board", self.board()));
        written
    }

    /// Reads a part of this program; everything in it stands for the goal.
    fn read(&self, part: &str) -> Node {
        let mut tree = yaml::parse(part, self.at.file, &mut Diagnostics::default())
            .expect("the parts of this form are valid, as its tests load them");
        place(&mut tree, &self.at);
        tree
    }

    /// Returns what is laid over the loop, in this order.
    fn variants(&self) -> Vec<&'static str> {
        let Review { plan, steps, on_plan_rejected, .. } = self.review;
        let mut names = match (plan, on_plan_rejected) {
            (false, _) => vec!["plan_not_reviewed"],
            (true, OnPlanRejected::SkipAndContinue) => Vec::new(),
            (true, OnPlanRejected::LowerThreshold) => vec!["plan_lowered"],
            (true, OnPlanRejected::Abort) => vec!["plan_rejected"],
        };
        if !steps {
            names.push("steps_not_verified");
        }
        match (&self.roles.tester.check, self.roles.tester.check_is) {
            (None, _) => {}
            (Some(_), CheckIs::Instead) => names.push("tested_by_command"),
            (Some(_), CheckIs::InFront) => {
                names.extend(["tested_by_command", "tested_by_command_first"]);
                if !steps {
                    names.push("second_test_not_verified");
                }
            }
        }
        names
    }

    /// Gives a state what its role and the limits say.
    fn fill_in(&self, state: &mut Node) {
        if let Some(action) = word(state, "action").filter(|action| action.contains(LOOK_LINE)) {
            put(state, entry("action", text(&self.at, action.replace(LOOK_LINE, LOOK))));
        }
        let Some(role) = word(state, "role") else { return };
        let phase = state
            .get("phase")
            .and_then(|phase| Phase::decode(phase, &DocPath::root(), &mut Diagnostics::default()));
        match phase {
            Some(phase) if word(state, "action_type").as_deref() == Some("prompt") => {
                self.ask(state, &role, phase);
            }
            Some(_) | None => {
                if let Some(check) = self.said(&role, "check") {
                    put(state, by_exit_code(self.said(&role, "no").as_ref(), &check));
                    // A command that tests only looks, so a closing pass may make it once more.
                    put(state, entry("check", plain(&check.span, "true")));
                    put(state, entry("action", check));
                }
            }
        }
        put(state, entry("timeout", self.timeout(&role)));
    }

    /// Makes a state ask an agent. A call that came to nothing is made again, up to the limit.
    fn ask(&self, state: &mut Node, role: &str, phase: Phase) {
        let at = &self.at;
        let replaced = self.own.get("prompts").and_then(|prompts| prompts.get(phase.word()));
        let prompt = replaced.filter(|prompt| !prompt.is_null()).cloned();
        let standard = || {
            let tested = self.said("tester", "check").filter(|_| phase == Phase::VerifyGoal);
            let more = tested.map_or("", |_| agent_call::LAST_TEST);
            text(at, format!("{}{more}", agent_call::prompt(phase).trim_end()))
        };
        put(state, entry("action", prompt.unwrap_or_else(standard)));
        put(state, entry("answer", value(at, &agent_call::form(phase))));
        for key in ["model", "fallback_model", "tools", "sandbox"] {
            if let Some(said) = self.said(role, key) {
                put(state, entry(key, said));
            }
        }
        match self.conversation(role) {
            Conversation::Task => {}
            Conversation::Run => put(state, entry("session", text(at, role))),
            Conversation::Call => drop(take(state, "session")),
        }
        self.retry(state);
    }

    fn retry(&self, state: &mut Node) {
        let (at, limits) = (&self.at, &self.limits.calls);
        let Some(mut route) = take(state, "route") else { return };
        // No other route for errors: a failed call is not a failed attempt at the task. One that fails too often ends the
        // run as unavailable before its tries are used up, and a run that may ask nobody is handed off here.
        put(&mut route.value, entry("error", text(at, "$current")));
        put(state, route);
        let retries = limits.call_retries.0.max(FEWEST_RETRIES);
        put(state, entry("max_retries", plain(at, retries.to_string())));
        let delay = self.limit("retry_base_delay").unwrap_or_else(|| seconds(at, limits.retry_base_delay.0));
        put(state, entry("retry_delay", delay));
        put(state, entry("on_retry_exhausted", text(at, "failed")));
    }

    /// The limits of the board, at the places where they are written down.
    fn board(&self) -> Node {
        let limits = &self.limits.board;
        let standard = [
            ("max_plan_revisions", limits.max_plan_revisions.get().to_string()),
            ("max_fix_cycles", limits.max_fix_cycles.0.to_string()),
            ("attempts_before_replan", limits.attempts_before_replan.get().to_string()),
            ("max_replan_depth", limits.max_replan_depth.0.to_string()),
            ("max_goal_iterations", limits.max_goal_iterations.get().to_string()),
            ("abort_failed_ratio", limits.abort_failed_ratio.get().to_string()),
        ];
        let limits = standard
            .map(|(key, count)| entry(key, self.limit(key).unwrap_or_else(|| plain(&self.at, count))));
        map(&self.at, limits.into())
    }

    /// Returns a limit that the loop sets, at its place.
    fn limit(&self, key: &str) -> Option<Node> {
        self.own.get("limits")?.get(key).filter(|node| !node.is_null()).cloned()
    }

    /// Returns what the loop says about a role, at its place.
    fn said(&self, role: &str, key: &str) -> Option<Node> {
        let said = self.own.get("roles")?.get(role)?.get(key)?;
        (!said.is_null()).then(|| said.clone())
    }

    fn timeout(&self, role: &str) -> Node {
        let said = self.said(role, "timeout").or_else(|| self.limit("call_timeout"));
        said.unwrap_or_else(|| seconds(&self.at, self.limits.calls.call_timeout))
    }

    fn conversation(&self, role: &str) -> Conversation {
        let Roles { planner, coder, tester, supervisor } = &self.roles;
        match role {
            "planner" => planner.session,
            "coder" => coder.session,
            "tester" => tester.session,
            // The roles are those that loop.yaml names, and this is the last of them.
            _ => supervisor.session,
        }
    }
}

/// Returns the text of a key.
fn word(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::as_scalar).map(|scalar| scalar.text.clone())
}

/// Moves a tree to a place.
fn place(tree: &mut Node, at: &Span) {
    tree.span = at.clone();
    match &mut tree.value {
        NodeValue::Scalar(_) => {}
        NodeValue::List(items) => items.iter_mut().for_each(|item| place(item, at)),
        NodeValue::Map(entries) => entries.iter_mut().for_each(|entry| {
            entry.key_span = at.clone();
            place(&mut entry.value, at);
        }),
    }
}

/// Writes a duration as a loop file has it.
fn seconds(at: &Span, duration: Duration) -> Node {
    plain(at, format!("{}s", duration.as_secs_f64()))
}
