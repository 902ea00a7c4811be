//! Asks agents and models: hands prompts and questions to the host, reads its answers, and tries again what is worth it.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::Value;

use crate::engine::request::{AskRequest, PromptRequest, Setting};
use crate::evaluate::model::{ModelAnswer, Question, Usage};
use crate::evaluate::observation::{Observation, Stop, Stream, Text};
use crate::host::{self, Access, Failure, Host, Invocation, Listener, Prompt, Terms};
use crate::machine::Budget;
use crate::process::signal::Request;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

use super::acp;
use super::assembly::Assembly;
use super::clock::Clock;
use super::kept::{Kept, Onlooker};
use super::lines::Lines;
use super::recorded;
use super::ticking::{show, tick, while_ticking};
use super::world::World;

/// How often a call is made in all before the service counts as down.
const ATTEMPTS: u32 = 4;

/// The longest wait for a quota where no deadline bounds it.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// How long a host may take to say its version.
const VERSION_TIME: Duration = Duration::from_secs(5);

/// What came of one call: what was seen of the process, and what it means.
struct CallResult<T> {
    seen: Observation,
    result: Result<T, Failure>,
    usage: Usage,
}

/// Hands a prompt to an agent and waits for its end, or gives what was recorded. The observation of one that failed
/// says why.
pub(super) async fn perform(request: &PromptRequest, world: &mut World) -> (Observation, Usage) {
    let Some(recording) = &world.agents.recording else { return watched(request, world).await };
    let replays = recording.replays();
    let call = match recorded::of_prompt(request, world).await {
        Ok(call) => call,
        Err(why) => return (not_asked(&why, replays, world), Usage::default()),
    };
    if replays {
        return recorded::replay_prompt(call, world).await;
    }
    let (seen, usage) = watched(request, world).await;
    match recorded::keep_prompt(call, &seen, &usage, world).await {
        Ok(()) => (seen, usage),
        Err(why) => {
            let (stop, why) = not_kept(&why, world);
            (Observation { stop: Some(stop), failure: Some(why), ..seen }, usage)
        }
    }
}

/// Asks a model and waits for its answer, or gives what was recorded.
pub(super) async fn ask(request: &AskRequest, world: &mut World) -> ModelAnswer {
    let Some(recording) = &world.agents.recording else { return question(request, world).await };
    let replays = recording.replays();
    let call = match recorded::of_question(request, world).await {
        Ok(call) => call,
        Err(why) => {
            let Observation { stop, failure, .. } = not_asked(&why, replays, world);
            return ModelAnswer { reply: Err(failure.unwrap_or_default()), stop, usage: Usage::default() };
        }
    };
    if replays {
        return recorded::replay_answer(&call, world);
    }
    let answer = question(request, world).await;
    match recorded::keep_answer(call, &answer, world) {
        Ok(()) => answer,
        Err(why) => {
            let (stop, why) = not_kept(&why, world);
            ModelAnswer { reply: Err(why), stop: Some(stop), ..answer }
        }
    }
}

/// The observation of a call that is not made, because it could not be recorded or looked up.
fn not_asked(why: &str, replays: bool, world: &mut World) -> Observation {
    if replays {
        return recorded::missed(why.to_owned());
    }
    let (stop, why) =
        not_recorded(&format!("the answer cannot be recorded, so nobody is asked: {why}"), world);
    Observation { stop: Some(stop), ..Observation::not_started(why) }
}

/// Says that an answer could not be kept. A replay would miss it, so the run does not go on.
fn not_kept(why: &str, world: &mut World) -> (Stop, String) {
    not_recorded(&format!("the answer was not recorded: {why}"), world)
}

/// Shows why something is not recorded, and returns what ends the run: that, or who asked for its end first.
fn not_recorded(why: &str, world: &mut World) -> (Stop, String) {
    let why = world.redactor.text(why).into_owned();
    show(&RefCell::new(&mut world.sinks), Stream::Stderr, &why);
    let stop = if world.cancel.signal().is_some() { Stop::Cancelled } else { Stop::NotRecorded };
    (stop, why)
}

/// Hands over a prompt; somebody who only looks changes nothing by it.
async fn watched(request: &PromptRequest, world: &mut World) -> (Observation, Usage) {
    let Some(onlooker) = Onlooker::of(request.role.as_deref()) else { return prompt(request, world).await };
    let kept = Kept::look(world).await;
    let (seen, usage) = prompt(request, world).await;
    match kept {
        Some(kept) => (kept.put_back(onlooker, seen, world).await, usage),
        None => (seen, usage),
    }
}

async fn prompt(request: &PromptRequest, world: &mut World) -> (Observation, Usage) {
    let prompt = Prompt {
        text: &request.text,
        agent: request.agent.as_deref(),
        tools: &request.tools,
        model: request.model.as_deref(),
        fallback: request.fallback_model.as_deref(),
        answer: request.answer.as_ref(),
        session: request.session.as_ref().and_then(|session| session.id.as_deref()),
        access: Access::Write,
    };
    let mut patience = Retries::new(world, &request.setting);
    let mut spent = Usage::default();
    loop {
        let host = match ready(world) {
            Ok(host) => host,
            Err(seen) => return (*seen, spent),
        };
        let setting = patience.left(&request.setting);
        let called = prompted(host, &prompt, &setting, (request.budget, &spent), world).await;
        spent.add(&called.usage);
        match settle(host, called, &mut patience, world).await {
            Settled::Again => {}
            Settled::Done(seen, Some(text)) => {
                return (Observation { stdout: Text::whole(text), ..seen }, spent);
            }
            Settled::Done(seen, None) => return (seen, spent),
        }
    }
}

async fn question(request: &AskRequest, world: &mut World) -> ModelAnswer {
    let mut patience = Retries::new(world, &request.setting);
    let mut usage = Usage::default();
    loop {
        let host = match ready(world) {
            Ok(host) => host,
            Err(seen) => {
                let reply = Err(seen.failure.unwrap_or_default());
                return ModelAnswer { reply, stop: seen.stop, usage };
            }
        };
        let invocation = host.judge(&request.question, request.max_tokens, &Terms::default());
        let setting = patience.left(&request.setting);
        let called = asked(host, (&request.question, invocation), &setting, world).await;
        usage.add(&called.usage);
        match settle(host, called, &mut patience, world).await {
            Settled::Again => {}
            Settled::Done(seen, result) => {
                let late = || format!("{} took too long to answer", host.name());
                let reply = result.ok_or_else(|| seen.failure.unwrap_or_else(late));
                return ModelAnswer { reply, stop: seen.stop, usage };
            }
        }
    }
}

/// Returns the host, or the observation of a call that cannot be made.
fn ready(world: &World) -> Result<&'static dyn Host, Box<Observation>> {
    if world.cancel.signal().is_some() {
        return Err(Box::new(Observation { stop: Some(Stop::Cancelled), ..Observation::exited(130, "") }));
    }
    world.agents.host.ok_or_else(|| {
        let names: Vec<_> = host::names().collect();
        let why = format!("there is no agent on PATH: none of {}", names.join(", "));
        Box::new(Observation { stop: Some(Stop::Missing), ..Observation::not_started(why) })
    })
}

/// What a call came to, or that it is to be made again.
enum Settled<T> {
    Done(Observation, Option<T>),
    Again,
}

/// Makes of a failure what it means for the run, and waits where waiting helps.
async fn settle<T>(
    host: &'static dyn Host,
    called: CallResult<T>,
    patience: &mut Retries,
    world: &mut World,
) -> Settled<T> {
    let CallResult { mut seen, result, usage: _ } = called;
    let failure = match result {
        Ok(result) => return Settled::Done(seen, Some(result)),
        Err(_) if seen.stop.is_some() => return Settled::Done(seen, None),
        Err(failure) => failure,
    };
    let name = host.name();
    let (why, stop) = match failure {
        Failure::Failed(why) | Failure::OutOfTurns(why) | Failure::WrongForm(why) => (why, None),
        Failure::OverBudget(why) => (why, Some(Stop::Budget)),
        Failure::Missing(why) => (why, Some(Stop::Missing)),
        Failure::Unavailable(why) => (why, Some(Stop::Unavailable)),
        Failure::Misunderstood(why) => {
            let version = version(host, world).await;
            (format!("{why} ({name} {version}; this version of ll-loop does not understand it)"), None)
        }
        Failure::Transient(why) => match patience.next_wait() {
            Some(wait) => return waited(wait, &why, name, seen, world).await,
            None => (format!("{why}; tried {ATTEMPTS} times"), Some(Stop::Unavailable)),
        },
        Failure::Quota(why, resets_at) => match patience.until(resets_at, world) {
            Some(wait) => return waited(wait, &why, name, seen, world).await,
            None => (why, Some(Stop::Quota)),
        },
    };
    seen.failure = Some(format!("{name}: {why}"));
    seen.stop = stop;
    if seen.exit_code == 0 {
        seen.exit_code = 1;
    }
    Settled::Done(seen, None)
}

/// Waits before the next call, unless somebody wants the run to end first.
async fn waited<T>(
    wait: Duration,
    why: &str,
    name: &str,
    seen: Observation,
    world: &mut World,
) -> Settled<T> {
    let line = format!("{name}: {why}; trying again in {}", crate::base::time::human(wait));
    let line = world.redactor.text(&line).into_owned();
    let sinks = RefCell::new(&mut world.sinks);
    show(&sinks, Stream::Stderr, &line);
    tokio::select! {
        () = tokio::time::sleep(wait) => Settled::Again,
        _ = world.cancel.differs_from(Request::None) => {
            Settled::Done(Observation { stop: Some(Stop::Cancelled), ..seen }, None)
        }
        never = tick(&sinks) => match never {},
    }
}

/// How long calls are made again, within the time that the request has.
struct Retries {
    clock: Clock,
    attempts: u32,
    wait: Duration,
    end: Option<Duration>,
}

impl Retries {
    fn new(world: &World, setting: &Setting) -> Self {
        let end = setting.end.map(|(end, _)| end);
        Self { clock: Clock::start(), attempts: 0, wait: world.agents.first_wait, end }
    }

    /// Returns the setting with what is left of its time.
    fn left(&mut self, setting: &Setting) -> Setting {
        self.attempts += 1;
        let passed = self.clock.elapsed();
        let end = setting.end.map(|(end, stop)| (end.saturating_sub(passed), stop));
        Setting { end, ..setting.clone() }
    }

    /// Returns the wait before the next call, with a part of chance so that many runs do not come back at once.
    fn next_wait(&mut self) -> Option<Duration> {
        let chance = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        let wait = self.wait.mul_f64(0.5 + chance);
        self.wait *= 2;
        (self.attempts < ATTEMPTS && self.fits(wait)).then_some(wait)
    }

    /// Returns the wait until a quota is there again, if the run has the time for it.
    fn until(&self, resets_at: Option<i64>, world: &World) -> Option<Duration> {
        let wait = until_reset(resets_at?, world.clock.now().as_millis() / 1000);
        let is_short = self.end.is_some() || wait <= LONGEST_WAIT;
        (self.attempts < ATTEMPTS && is_short && self.fits(wait)).then_some(wait)
    }

    fn fits(&self, wait: Duration) -> bool {
        self.end.is_none_or(|end| self.clock.elapsed() + wait < end)
    }
}

/// Returns the wait until a moment, both in seconds since 1970, and a moment more: clocks differ.
fn until_reset(resets_at: i64, now: i64) -> Duration {
    Duration::from_secs(u64::try_from(resets_at.saturating_sub(now)).unwrap_or_default() + 2)
}

/// Makes the process of a call.
fn program(invocation: Invocation, setting: &Setting, world: &World) -> Result<Program, String> {
    let mut env = world.env_of(setting);
    env.extend(invocation.env);
    Ok(Program {
        stdin: invocation.stdin.map(String::into_bytes),
        ..world.program(invocation.argv, env, setting)?
    })
}

async fn prompted(
    host: &'static dyn Host,
    prompt: &Prompt<'_>,
    setting: &Setting,
    (budget, spent): (Budget, &Usage),
    world: &mut World,
) -> CallResult<String> {
    let program = match program(host.prompt(prompt, &Terms::default()), setting, world) {
        Ok(program) => program,
        Err(why) => return not_called(why),
    };
    if let Some(agent) = host.talks() {
        let over = |usage: &Usage| is_over(budget, spent, usage);
        let conversation = agent.prompted(prompt, &directory(&program, world));
        let (seen, mut conversation) =
            Box::pin(acp::talk(conversation, &program, setting, &over, world)).await;
        return heard(seen, conversation.as_mut(), prompt.answer.is_some());
    }
    let limits = ProcessLimits { end: setting.end, idle: setting.idle };
    let (redactor, sinks) = (&world.redactor, RefCell::new(&mut world.sinks));
    let mut listener = host.listen();
    let mut assembly = Assembly::default();
    let (mut spoken, mut complaints) = (Lines::new(), Lines::new());
    let mut output = |stream: Stream, bytes: &[u8]| {
        match stream {
            Stream::Stdout => assembly.push(bytes, &mut |line| {
                listener.line(line, &mut |said| {
                    spoken.line(said, redactor, &mut |text| show(&sinks, stream, text));
                });
            }),
            Stream::Stderr => complaints.push(bytes, redactor, &mut |text| show(&sinks, stream, text)),
        }
        match listener.is_done() {
            true => Heard::Enough,
            false if is_over(budget, spent, listener.usage()) => Heard::Stop(Stop::Budget),
            false => Heard::More,
        }
    };
    let seen = while_ticking(&sinks, spawn::run(&program, limits, &mut world.cancel, &mut output)).await;
    assembly.finish(&mut |line| {
        let mut shown = |text: &str| show(&sinks, Stream::Stdout, text);
        listener.line(line, &mut |said| spoken.line(said, redactor, &mut shown));
    });
    spoken.finish(redactor, &mut |text| show(&sinks, Stream::Stdout, text));
    complaints.finish(redactor, &mut |text| show(&sinks, Stream::Stderr, text));
    heard(seen, listener.as_mut(), prompt.answer.is_some())
}

/// Makes of a process and what was heard from it the end of a call. Of one with an answer in a certain form, that
/// answer alone counts.
fn heard(seen: Observation, listener: &mut dyn Listener, is_answer: bool) -> CallResult<String> {
    if seen.failure.is_some() {
        return missing(seen);
    }
    let said = Text::whole(listener.said());
    let mut seen = Observation { stdout: said, ..seen };
    let code = seen.exit_code;
    let result = if is_answer { listener.answer(code) } else { listener.end(code) };
    let usage = listener.usage().clone();
    if seen.stop == Some(Stop::Budget) {
        seen.failure = Some(format!("the budget was met after {} tokens of this call", usage.tokens()));
    }
    CallResult { seen, result, usage }
}

async fn asked(
    host: &'static dyn Host,
    (question, invocation): (&Question, Invocation),
    setting: &Setting,
    world: &mut World,
) -> CallResult<Value> {
    let program = match program(invocation, setting, world) {
        Ok(program) => program,
        Err(why) => return not_called(why),
    };
    if let Some(agent) = host.talks() {
        let conversation = agent.asked(question, &directory(&program, world));
        let (seen, mut conversation) =
            Box::pin(acp::talk(conversation, &program, setting, &|_| false, world)).await;
        if seen.failure.is_some() {
            return missing(seen);
        }
        let result = conversation.reply(seen.exit_code);
        return CallResult { seen, result, usage: conversation.usage().clone() };
    }
    let limits = ProcessLimits { end: setting.end, idle: setting.idle };
    let sinks = RefCell::new(&mut world.sinks);
    let mut ignored = |_: Stream, _: &[u8]| Heard::More;
    let seen = while_ticking(&sinks, spawn::run(&program, limits, &mut world.cancel, &mut ignored)).await;
    if seen.failure.is_some() {
        return missing(seen);
    }
    let (result, usage) = host.answer(seen.stdout.as_str(), seen.exit_code);
    CallResult { seen, result, usage }
}

/// Returns the directory that a program is started in.
fn directory(program: &Program, world: &World) -> String {
    program.cwd.as_ref().unwrap_or(&world.root).to_string_lossy().into_owned()
}

/// The end of a call whose program could not be started.
fn missing<T>(mut seen: Observation) -> CallResult<T> {
    let why = seen.failure.take().unwrap_or_default();
    CallResult { seen, result: Err(Failure::Missing(why)), usage: Usage::default() }
}

/// The end of a call that could not be made, for a reason of the loop.
fn not_called<T>(why: String) -> CallResult<T> {
    let seen = Observation::not_started(why.clone());
    CallResult { seen, result: Err(Failure::Failed(why)), usage: Usage::default() }
}

/// Tells whether a call that is going on has met what is left of the budget.
fn is_over(left: Budget, before: &Usage, now: &Usage) -> bool {
    let tokens = before.tokens().saturating_add(now.tokens());
    let cost = before.cost_usd.unwrap_or_default() + now.cost_usd.unwrap_or_default();
    left.tokens.is_some_and(|left| tokens > left) || left.cost_usd.is_some_and(|left| cost > left)
}

/// Asks a host for its version.
async fn version(host: &'static dyn Host, world: &mut World) -> String {
    let argv = vec![host.name().to_owned(), "--version".to_owned()];
    let env = world.env.clone().into_iter().collect();
    let program =
        Program { argv, env, cwd: world.starts_in.clone(), stdin: None, guard: world.guard.clone() };
    let limits = ProcessLimits { end: Some((VERSION_TIME, Stop::Timeout)), idle: None };
    let mut ignored = |_: Stream, _: &[u8]| Heard::More;
    let seen = spawn::run(&program, limits, &mut world.cancel, &mut ignored).await;
    let said = crate::base::text::one_line(seen.stdout.as_str(), 60);
    if seen.succeeded() && !said.is_empty() { said } else { "of unknown version".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_without_end_meet_every_budget() {
        let usage = Usage { calls: 1, input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
        let budget = Budget { tokens: Some(1000), ..Budget::default() };
        assert!(is_over(budget, &usage, &usage));
        assert!(!is_over(Budget::default(), &usage, &usage));
    }

    #[test]
    fn a_quota_may_come_back_at_any_time() {
        for now in [0, 1_700_000_000] {
            assert_eq!(until_reset(i64::MIN, now), Duration::from_secs(2));
            assert_eq!(until_reset(now - 5, now), Duration::from_secs(2));
            assert_eq!(until_reset(now + 5, now), Duration::from_secs(7));
            assert!(until_reset(i64::MAX, now) > LONGEST_WAIT);
        }
    }
}
