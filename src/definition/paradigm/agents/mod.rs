//! `paradigm: agents`: a goal becomes a plan, the plan tasks, and the tasks work that is tested and verified.
//!
//! What becomes of it is a plain loop. Its states ask agents and run tests; whatever is decided about tasks is decided
//! by the task board, in operations that are states as well. `compile` shows all of it, and it can be edited there.

use std::time::Duration;

use serde_json::{Value, json};

use super::{empty, to};
use crate::base::decode::{Decode, Definitions, Record, choice, record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::base::node::{Entry, FileId, Node, NodeValue, Span};
use crate::base::path::DocPath;
use crate::definition::schema::{AtMost, BoardLimits, Delay};
use crate::definition::tree::{entry, list, map, plain, text, value};

use call::{Call, Role};

mod call;

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
        /// The command that tests: 0 is passed, 1 is failed.
        check: Option<String>,
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
        /// How often a call that came to nothing is made again.
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
        approve: f64 = 70.0,
        /// The score from which on it needs a revision; below, it is rejected.
        revise: f64 = 50.0,
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

/// The variable by which a state says, to its children and to us, which call of an agent it makes.
pub const PHASE: &str = "LL_AGENT_PHASE";

/// Returns what stands in that variable, for each call.
pub fn phases() -> impl Iterator<Item = &'static str> {
    Call::ALL.into_iter().map(Call::phase)
}

/// The name of what was tested last, by a command or by an agent.
const TESTS: &str = "tests";

/// The longest time for the whole run, when the loop sets none.
const TIMEOUT: &str = "2h";

/// The board bounds the work; this is beyond everything that its limits allow.
const PASSES: &str = "1000000";

/// Writes the working tree, with files that git does not know yet, to objects of the run's own, and prints its name.
/// Fails outside of git.
const LOOK: &str = r#"look() {
  git rev-parse --git-dir > /dev/null 2>&1 && mkdir -p "$LL_RUN_DIR/objects" || return 1
  cp "$(git rev-parse --git-path index)" "$LL_RUN_DIR/index" 2> /dev/null
  GIT_ALTERNATE_OBJECT_DIRECTORIES=$(cd "$(git rev-parse --git-path objects)" && pwd)
  export GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_OBJECT_DIRECTORY="$LL_RUN_DIR/objects" GIT_INDEX_FILE="$LL_RUN_DIR/index"
  git add -A -- . ${LL_RECORDING:+":(exclude)$LL_RECORDING"} > /dev/null 2>&1 && git write-tree
}
"#;

pub(super) fn expand(own: &Node, out: &mut Diagnostics) -> Option<Node> {
    let read = Agents::decode(own, &DocPath::root(), out)?;
    let path = DocPath::root();
    if read.goal.trim().is_empty() {
        empty(&path.key("goal"), "word", out);
        return None;
    }
    let Agents { goal, constraints, roles, limits, review, .. } = read;
    let in_order = 0.0 <= review.revise && review.revise <= review.approve && review.approve <= 100.0;
    if !in_order {
        let Review { approve, revise, .. } = review;
        let message = format!("`revise: {revise}` and `approve: {approve}` are no thresholds");
        let place = Place::Value(path.key("review"));
        let help = "both are scores from 0 to 100, and `approve` is not below `revise`";
        out.push(Diagnostic::error("thresholds", place, message).help(help));
        return None;
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
        let constraints: Vec<_> = constraints.iter().map(|one| format!("- {one}")).collect();
        let constraints = if constraints.is_empty() { "- none".to_owned() } else { constraints.join("\n") };
        let goal = self.own.get("goal").cloned().unwrap_or_else(|| text(at, goal));
        let Review { approve, revise, .. } = self.review;
        let context = vec![
            entry("goal", goal),
            entry("constraints", text(at, constraints)),
            entry("approve", plain(at, approve.to_string())),
            entry("revise", plain(at, revise.to_string())),
        ];
        let mut keys = vec![
            to("initial", "begin", self.node()),
            to("on_resume", "recover", self.node()),
            to("input_key", "goal", self.node()),
            entry("required_inputs", list(at, vec![text(at, "goal")])),
            entry("timeout", plain(at, TIMEOUT)),
            entry("max_iterations", plain(at, PASSES)),
            entry("context", map(at, context)),
            entry("board", self.board()),
        ];
        keys.push(entry("states", map(at, self.states())));
        map(at, keys)
    }

    fn node(&self) -> &Node {
        self.own.get("goal").unwrap_or(self.own)
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
            ("abort_failed_ratio", limits.abort_failed_ratio.to_string()),
        ];
        let limits = standard
            .map(|(key, count)| entry(key, self.limit(key).unwrap_or_else(|| plain(&self.at, count))));
        map(&self.at, limits.into())
    }

    /// Returns a limit that the loop sets, at its place.
    fn limit(&self, key: &str) -> Option<Node> {
        self.own.get("limits")?.get(key).filter(|node| !node.is_null()).cloned()
    }

    fn states(&self) -> Vec<Entry> {
        let Review { plan: is_reviewed, steps: is_verified, on_plan_rejected, .. } = self.review;
        let judged = if is_reviewed { "review" } else { "approve_plan" };
        let mut states = vec![
            self.shell("begin", &mark(), &[("next", "plan")]),
            self.operation(
                "recover",
                "recover",
                &[],
                &[("plan", "begin"), ("review", judged), ("next", "next")],
            ),
            self.call(Call::Plan, "failed", &[("yes", "load")]),
            self.operation("load", "load", &[("answer", "${captured.plan.json}")], &[("loaded", judged)]),
        ];
        if is_reviewed {
            states.push(self.call(
                Call::VerifyPlan,
                "failed",
                &[("yes", "approve_plan"), ("partial", "review_round"), ("no", "review_round")],
            ));
            let rejected = match on_plan_rejected {
                OnPlanRejected::SkipAndContinue => "skip_review",
                OnPlanRejected::LowerThreshold => "lower_threshold",
                OnPlanRejected::Abort => "reject_plan",
            };
            states.push(self.operation(
                "review_round",
                "tick",
                &[REPORT_ANSWER, REPORT_FEEDBACK, REPORT_LEVEL],
                &[("again", "plan"), ("enough", rejected), ("abort", "aborted")],
            ));
            states.push(self.approval("approve_plan", "approved by the supervisor"));
            match on_plan_rejected {
                OnPlanRejected::SkipAndContinue => {
                    states.push(self.approval("skip_review", "not approved; the loop goes on all the same"));
                }
                OnPlanRejected::LowerThreshold => {
                    states.push(self.lowered());
                    states.push(self.approval("approve_lowered", "approved at the lower threshold"));
                }
                OnPlanRejected::Abort => {}
            }
            if on_plan_rejected != OnPlanRejected::SkipAndContinue {
                states.push(self.operation(
                    "reject_plan",
                    "give_up",
                    &[],
                    &[("given_up", "aborted"), ("abort", "aborted")],
                ));
            }
        } else {
            states.push(self.approval("approve_plan", "not reviewed"));
        }
        let tested = if is_verified { "facts" } else { "pass" };
        states.push(self.operation(
            "next",
            "next",
            &[],
            &[("task", "mark"), ("done", "goal_facts"), ("stuck", "failed")],
        ));
        states.push(self.shell("mark", &mark(), &[("next", "implement")]));
        states.push(self.call(Call::Implement, "fail", &[("yes", "test"), ("_", "fail")]));
        states.extend(self.tests(tested));
        states.push(self.operation(
            "fix_round",
            "tick",
            &[REPORT_ANSWER, REPORT_OUTPUT, ("fix", "${captured.fix.json.summary?}")],
            &[("again", "fix"), ("enough", "fail"), ("abort", "aborted")],
        ));
        states.push(self.call(
            Call::Fix,
            "fail",
            &[("yes", "test"), ("still_failing", "test"), ("_", "fail")],
        ));
        if is_verified {
            states.push(self.shell("facts", &facts("mark"), &[("next", "verify")]));
            states.push(self.call(
                Call::VerifyStep,
                "fail",
                &[("yes", "pass"), ("partial", "fail"), ("no", "fail")],
            ));
        }
        let summary = ("summary", "${captured.implement.json.summary?}");
        states.push(self.operation("pass", "pass", &[summary], &[("passed", "next")]));
        states.push(self.operation(
            "fail",
            "fail",
            &[
                REPORT_ANSWER,
                REPORT_OUTPUT,
                REPORT_FEEDBACK,
                REPORT_LEVEL,
                ("error", "${result.details.error?}"),
            ],
            &[
                ("retry", "next"),
                ("replan", "replan"),
                ("give_up", "give_up"),
                ("stuck", "failed"),
                ("abort", "aborted"),
            ],
        ));
        states.push(self.call(Call::Replan, "give_up", &[("yes", "split")]));
        states.push(self.operation(
            "split",
            "split",
            &[("answer", "${captured.replan.json}")],
            &[("split", "next"), ("error", "give_up")],
        ));
        states.push(self.operation("give_up", "give_up", &[], &[("given_up", "next"), ("abort", "aborted")]));
        states.push(self.shell("goal_facts", &facts("begin"), &[("next", "verify_goal")]));
        states.push(self.call(
            Call::VerifyGoal,
            "failed",
            &[("yes", "completed"), ("partial", "reject_goal"), ("no", "reject_goal")],
        ));
        let ends = [("retry", "failed"), ("replan", "failed"), ("give_up", "failed")];
        let ends: Vec<_> = ends.into_iter().chain([("stuck", "failed"), ("abort", "aborted")]).collect();
        states.push(self.operation(
            "reject_goal",
            "fail",
            &[REPORT_ANSWER, REPORT_FEEDBACK, REPORT_LEVEL],
            &ends,
        ));
        states.push(super::done("completed", self.node()));
        states.push(self.failure("failed", "the goal is not reached: work is left, or it did not verify"));
        states.push(
            self.failure(
                "aborted",
                "the work was given up: too much of it failed, or the supervisor said so",
            ),
        );
        states
    }

    /// The states that test a task.
    fn tests(&self, passed: &str) -> Vec<Entry> {
        let tester = &self.roles.tester;
        let by_agent = |this: &Self| {
            this.call(Call::Test, "fail", &[("yes", passed), ("no", "fix_round"), ("_", "fail")])
        };
        let Some(check) = &tester.check else { return vec![by_agent(self)] };
        match tester.check_is {
            CheckIs::Instead => vec![self.check(check, passed)],
            // Everything leads to `test`, so the command has that name and the agent the other one.
            CheckIs::InFront => {
                let asked = Entry { key: "test_by_agent".to_owned(), ..by_agent(self) };
                vec![self.check(check, "test_by_agent"), asked]
            }
        }
    }

    /// The command that tests.
    fn check(&self, check: &str, passed: &str) -> Entry {
        let at = &self.at;
        let written = self.own.get("roles").and_then(|roles| roles.get("tester")?.get("check"));
        let mut keys = vec![
            entry("role", text(at, Role::Tester.word())),
            entry("action", written.cloned().unwrap_or_else(|| text(at, check))),
            entry("action_type", text(at, "shell")),
            entry("capture", text(at, TESTS)),
            entry("timeout", self.timeout(Role::Tester)),
            entry("env", self.environment(Call::Test)),
        ];
        let routes = [("on_yes", passed), ("on_no", "fix_round"), ("on_error", "fail")];
        keys.extend(routes.map(|(key, state)| entry(key, text(at, state))));
        entry("test", map(at, keys))
    }

    /// A state that asks an agent. A call that came to nothing is made again, and then leads to `failed`.
    fn call(&self, call: Call, failed: &str, routes: &[(&str, &str)]) -> Entry {
        let at = &self.at;
        let role = call.role();
        let replaced = self.own.get("prompts").and_then(|prompts| prompts.get(call.phase()));
        let prompt = replaced.filter(|prompt| !prompt.is_null()).cloned();
        let mut keys = vec![
            entry("role", text(at, role.word())),
            entry("action", prompt.unwrap_or_else(|| text(at, call.prompt().trim_end()))),
            entry("action_type", text(at, "prompt")),
        ];
        if call == Call::Test {
            keys.push(entry("capture", text(at, TESTS)));
        }
        for key in ["model", "fallback_model"] {
            keys.extend(self.said(role, key).map(|node| entry(key, node)));
        }
        let session = match self.conversation(role) {
            Conversation::Task if call.is_of_task() => Some(format!("{}/${{board.id}}", role.word())),
            Conversation::Task => Some(format!("{}/{}", role.word(), call.phase())),
            Conversation::Run => Some(role.word().to_owned()),
            Conversation::Call => None,
        };
        keys.extend(session.map(|session| entry("session", text(at, session))));
        keys.push(entry("timeout", self.timeout(role)));
        keys.push(entry("env", self.environment(call)));
        keys.push(entry("answer", value(at, &call.form())));
        keys.push(entry("evaluate", self.evaluator(call)));
        let limits = &self.limits.calls;
        let retries = limits.call_retries.0;
        // Without a route for errors, so that a run that may ask nobody is handed off here, and does not fail.
        let has_rest = routes.iter().any(|(word, _)| *word == "_");
        let error = if retries > 0 { Some(("error", "$current")) } else { None };
        let error = error.or((!has_rest).then_some(("_", failed)));
        let routes = routes.iter().copied().chain(error);
        let routes = routes.map(|(word, state)| entry(word, text(at, state)));
        keys.push(entry("route", map(at, routes.collect())));
        if retries > 0 {
            keys.push(entry("max_retries", plain(at, retries.to_string())));
            let delay =
                self.limit("retry_base_delay").unwrap_or_else(|| seconds(at, limits.retry_base_delay.0));
            keys.push(entry("retry_delay", delay));
            keys.push(entry("on_retry_exhausted", text(at, failed)));
        }
        entry(call.state(), map(at, keys))
    }

    fn evaluator(&self, call: Call) -> Node {
        value(
            &self.at,
            &match call {
                Call::Plan | Call::Replan => json!({"type": "answer"}),
                Call::Implement => {
                    json!({"type": "answer", "field": "status", "yes": ["complete"], "no": ["blocked", "needs_clarification"]})
                }
                Call::Fix => {
                    json!({"type": "answer", "field": "status", "yes": ["fixed"], "no": ["blocked"]})
                }
                Call::Test => {
                    json!({"type": "answer", "field": "status", "yes": ["passed"], "no": ["failed"], "zero": ["testsFailed", "failures"]})
                }
                Call::VerifyPlan | Call::VerifyStep | Call::VerifyGoal => {
                    json!({"type": "score", "approve": APPROVE, "revise": REVISE})
                }
            },
        )
    }

    /// The last review judged once more, by what else would have led to a revision.
    fn lowered(&self) -> Entry {
        let at = &self.at;
        let evaluate = json!({
            "type": "score", "source": "${captured.review.output}", "approve": REVISE, "revise": REVISE
        });
        let routes = [
            ("on_yes", "approve_lowered"),
            ("on_partial", "reject_plan"),
            ("on_no", "reject_plan"),
            ("on_error", "reject_plan"),
        ];
        let keys = std::iter::once(entry("evaluate", value(at, &evaluate)));
        let keys = keys.chain(routes.map(|(key, state)| entry(key, text(at, state))));
        entry("lower_threshold", map(at, keys.collect()))
    }

    fn approval(&self, name: &str, because: &str) -> Entry {
        self.operation(name, "approve", &[("because", because)], &[("approved", "next")])
    }

    /// A state that works on the board. What cannot be done there fails the run, unless a route says otherwise.
    fn operation(&self, name: &str, word: &str, params: &[(&str, &str)], routes: &[(&str, &str)]) -> Entry {
        let at = &self.at;
        let texts = |pairs: &[(&str, &str)], prefix: &str| -> Vec<Entry> {
            pairs.iter().map(|(key, value)| entry(format!("{prefix}{key}"), text(at, *value))).collect()
        };
        let mut keys = texts(&[("action", word), ("action_type", "board")], "");
        if !params.is_empty() {
            keys.push(entry("params", map(at, texts(params, ""))));
        }
        keys.extend(texts(routes, "on_"));
        if !routes.iter().any(|(word, _)| *word == "error") {
            keys.extend(texts(&[("error", "failed")], "on_"));
        }
        entry(name, map(at, keys))
    }

    fn shell(&self, name: &str, action: &str, routes: &[(&str, &str)]) -> Entry {
        let at = &self.at;
        // Whatever shell the loop has for its own commands.
        let keys = [("action", action), ("action_type", "shell"), ("shell", "bash")];
        let keys = keys.iter().chain(routes).map(|(key, value)| entry(*key, text(at, *value)));
        entry(name, map(at, keys.collect()))
    }

    fn failure(&self, name: &str, description: &str) -> Entry {
        let at = &self.at;
        let keys = vec![
            entry("terminal", plain(at, "true")),
            entry("outcome", text(at, "failure")),
            entry("description", text(at, description)),
        ];
        entry(name, map(at, keys))
    }

    fn environment(&self, call: Call) -> Node {
        let mut variables = vec![entry(PHASE, text(&self.at, call.phase()))];
        if call.is_of_task() {
            variables.push(entry("LL_AGENT_TASK", text(&self.at, "${board.task}")));
        }
        map(&self.at, variables)
    }

    /// Returns what the loop says about a role, at its place.
    fn said(&self, role: Role, key: &str) -> Option<Node> {
        let said = self.own.get("roles")?.get(role.word())?.get(key)?;
        (!said.is_null()).then(|| said.clone())
    }

    fn timeout(&self, role: Role) -> Node {
        let said = self.said(role, "timeout").or_else(|| self.limit("call_timeout"));
        said.unwrap_or_else(|| seconds(&self.at, self.limits.calls.call_timeout))
    }

    fn conversation(&self, role: Role) -> Conversation {
        let Roles { planner, coder, tester, supervisor } = &self.roles;
        match role {
            Role::Planner => planner.session,
            Role::Coder => coder.session,
            Role::Tester => tester.session,
            Role::Supervisor => supervisor.session,
        }
    }
}

/// Writes a duration as a loop file has it.
fn seconds(at: &Span, duration: Duration) -> Node {
    plain(at, format!("{}s", duration.as_secs_f64()))
}

/// The thresholds, which prompts are told as well.
const APPROVE: &str = "${context.approve}";
const REVISE: &str = "${context.revise}";

/// What the board is told about work that was not good enough.
const REPORT_ANSWER: (&str, &str) = ("answer", "${prev.json?}");
const REPORT_OUTPUT: (&str, &str) = ("output", "${prev.output?}\n${prev.stderr?}");
const REPORT_FEEDBACK: (&str, &str) = ("feedback", "${result.details.feedback?}");
const REPORT_LEVEL: (&str, &str) = ("level", "${result.details.level?}");

/// The command that prints what changes are compared with; nothing outside of git.
fn mark() -> String {
    format!("{LOOK}look || true")
}

/// The command that prints which files changed since the state of this name.
fn facts(since: &str) -> String {
    format!(
        "{LOOK}since=${{captured.{since}.output?:shell}}\n\
         look > \"$LL_RUN_DIR/tree\" && [ -n \"$since\" ] || {{ echo 'not known: this is no git repository'; exit 0; }}\n\
         git diff --stat=100 \"$since\" \"$(cat \"$LL_RUN_DIR/tree\")\" | tail -n 60"
    )
}
