//! Asks agents and models: hands prompts and questions to the host, reads its answers, and tries again what is worth it.

use std::cell::RefCell;
use std::io::Write as _;
use std::time::Duration;

use serde_json::Value;
use tempfile::NamedTempFile;

use super::assembly::Assembly;
use super::brokerage::{self, AdmittedAgent, Brokerage};
use super::host_patience::{CallWatch, Patience};
use super::lines::LineCollector;
use super::put_back::{Onlooker, RepositoryBefore};
use super::sandbox_setup::Confinable;
use super::ticking::{show, tick, while_ticking};
use super::world::World;
use super::{acp_lines, installed, recorded};
use crate::base::explanation::Explanation;
use crate::base::sandbox::SandboxMode;
use crate::broker::{self, CallPass};
use crate::engine::request::{AskRequest, PromptRequest, Setting};
use crate::evaluate::model::{ConversationUsage, ModelAnswer, Question, Usage};
use crate::evaluate::observation::{Cause, Observation, Stop, Stream, Text};
use crate::files::transient;
use crate::host::{
    self, Access, Attachment, Counting, Failure, Host, HostSettings, Invocation, Listener, Prompt, Pulse,
    Terms,
};
use crate::machine::Budget;
use crate::process::clock::Clock;
use crate::process::signal::EndRequest;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::sandbox::confine::Confined;

/// How often a call is made in all before the service counts as down.
const ATTEMPTS: u32 = 4;

/// The longest wait for a quota where no deadline bounds it.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// The least cap on the cost of a call: a host refuses none at all.
const SMALLEST_CAP: f64 = 0.000_1;

/// The result of one call: what was seen of the process, and what it means.
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
    // Looked up before the call is made: afterwards the files that are part of its key may be
    // others.
    let call = match recorded::of_prompt(request, world).await {
        Ok(call) => call,
        Err(why) => return (not_asked(why.as_str(), replays, world), Usage::default()),
    };
    // A replay asks no service, also where the recording has no answer.
    if replays {
        // What is not answered as a whole may be at the wire, where the agent does its work again.
        return if world.agents.broker.is_none() || recorded::is_kept(&call, world) {
            recorded::replay_prompt(call, world).await
        } else {
            watched(request, world).await
        };
    }
    let (seen, usage) = watched(request, world).await;
    match recorded::keep_prompt(call, &seen, &usage, world).await {
        Ok(()) => (seen, usage),
        Err(why) => {
            let (stop, why) = not_kept(why.as_str(), world);
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
            let seen = not_asked(why.as_str(), replays, world);
            return ModelAnswer {
                reply: Err(Explanation::new(seen.why_not_started())),
                stop: seen.stop,
                usage: Usage::default(),
            };
        }
    };
    if replays {
        return if world.agents.broker.is_none() || recorded::is_kept(&call, world) {
            recorded::replay_answer(&call, world)
        } else {
            question(request, world).await
        };
    }
    let answer = question(request, world).await;
    match recorded::keep_answer(call, &answer, world) {
        Ok(()) => answer,
        Err(why) => {
            let (stop, why) = not_kept(why.as_str(), world);
            ModelAnswer { reply: Err(Explanation::new(why)), stop: Some(stop), ..answer }
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
    // A run that is to end anyway is not told to be faulty.
    let stop = if world.cancel.is_asked() { Stop::Cancelled } else { Stop::NotRecorded };
    (stop, why)
}

/// Hands over a prompt; somebody who only looks changes nothing by it.
async fn watched(request: &PromptRequest, world: &mut World) -> (Observation, Usage) {
    let Some(onlooker) = Onlooker::of(request.role.as_deref()) else { return prompt(request, world).await };
    let kept = RepositoryBefore::look(world).await;
    let told = world.rules.told().filter(|_| onlooker == Onlooker::Supervisor);
    let told = told.map(|told| PromptRequest { text: format!("{}{told}", request.text), ..request.clone() });
    let (seen, usage) = prompt(told.as_ref().unwrap_or(request), world).await;
    match kept {
        Some(kept) => (kept.put_back(onlooker, seen, world).await, usage),
        None => (seen, usage),
    }
}

/// Tells what the agent of a prompt may do to files, as far as its host can keep it to that: what the loop says, and else
/// nothing for those who only look. Tools that are named say more, and a tester needs a shell.
pub fn access(sandbox: Option<SandboxMode>, role: Option<&str>, tools: &[String]) -> Access {
    match (sandbox, Onlooker::of(role)) {
        (Some(SandboxMode::Off | SandboxMode::Workspace | SandboxMode::Strict), _) | (None, None) => {
            Access::Write
        }
        (None, Some(_)) if !tools.is_empty() => Access::Write,
        (Some(SandboxMode::ReadOnly) | None, Some(Onlooker::Tester)) => Access::ReadShell,
        (Some(SandboxMode::ReadOnly), None | Some(Onlooker::Supervisor))
        | (None, Some(Onlooker::Supervisor)) => Access::ReadOnly,
    }
}

/// Puts what the repository says to agents into a prompt. A conversation that goes on has heard it.
fn guided(request: &PromptRequest, world: &mut World) -> String {
    if request.heeds_project {
        // Then the host reads it by itself.
        return request.text.clone();
    }
    let is_new = request.session.as_ref().is_none_or(|session| session.id.is_none());
    let guided = world.agents.guidance.prompt(&request.text, is_new);
    // Where the repository has commands, one that it does not have may be misspelt.
    let is_odd = world.agents.guidance.has_commands();
    if let Some(name) =
        guided.unknown.filter(|_| is_odd && !std::mem::replace(&mut world.surprises.command, true))
    {
        world
            .remarks
            .push(format!("`/{name}` is not a command of the repository, so the host was given it as it is"));
    }
    guided.text
}

/// Says which model may not be asked, of those that a call names.
fn forbidden(models: &[Option<&str>], world: &World) -> Option<Observation> {
    let refusal = models.iter().find_map(|model| world.agents.policy.model(*model).err())?;
    Some(Observation::not_started(refusal.to_string()))
}

async fn prompt(request: &PromptRequest, world: &mut World) -> (Observation, Usage) {
    let fallback = request.fallback_model.as_deref().into_iter().map(Some);
    let models: Vec<_> = std::iter::once(request.model.as_deref()).chain(fallback).collect();
    if let Some(seen) = forbidden(&models, world) {
        return (seen, Usage::default());
    }
    let text = guided(request, world);
    let prompt = Prompt {
        text: &text,
        agent: request.agent.as_deref(),
        tools: &request.tools,
        model: request.model.as_deref(),
        fallback: request.fallback_model.as_deref(),
        answer: request.answer.as_ref(),
        session: request.session.as_ref().and_then(|session| session.id.as_deref()),
        access: access(request.sandbox, request.role.as_deref(), &request.tools),
    };
    let mut tally = Tally::new(request);
    let mut patience = Retries::new(world, &request.setting);
    let mut spent = Usage::default();
    loop {
        let host = match ready(world) {
            Ok(host) => host,
            Err(seen) => return (*seen, spent),
        };
        let settings = if request.heeds_project { HostSettings::Project } else { HostSettings::User };
        let terms = match terms(host, settings, request.budget, &spent, world).await {
            Ok(terms) => terms,
            Err(seen) => return (*seen, spent),
        };
        let setting = patience.left(&request.setting);
        let call = Confinable::Prompt { host, access: prompt.access, read: Vec::new() };
        let terms = Terms { is_confined: world.confines(&setting, &call), ..terms };
        let invocation = host.prompt(&prompt, &terms);
        let limit = (request.budget, &spent);
        let (mut called, counting, pass) = match program(invocation, &setting, limit, world) {
            Ok(call) => {
                let (called, counting) =
                    prompted(host, (&prompt, &terms), (&call, &setting), limit, world).await;
                (called, counting, call.pass)
            }
            Err(why) => (not_called(why.into()), Counting::Call, None),
        };
        // Hosts count in their own ways, so what each says is brought to one meaning first.
        let (usage, warning) = tally.count(called.usage.clone(), counting);
        let usage = at_the_wire(pass, &mut called, usage, world).await;
        if let Some(warning) = warning {
            show(&RefCell::new(&mut world.sinks), Stream::Stderr, &format!("{}: {warning}", host.name()));
        }
        spent.add(&usage);
        spent.session_total = tally.total();
        match settle(host, called, &mut patience, world).await {
            SettledCall::Again => {}
            SettledCall::Done(seen, Some(text)) => {
                return (Observation { stdout: Text::whole(text), ..seen }, spent);
            }
            SettledCall::Done(seen, None) => return (seen, spent),
        }
    }
}

async fn question(request: &AskRequest, world: &mut World) -> ModelAnswer {
    let mut patience = Retries::new(world, &request.setting);
    let mut usage = Usage::default();
    let not_made = |seen: Observation, usage| {
        let reply = Err(Explanation::new(seen.why_not_started()));
        ModelAnswer { reply, stop: seen.stop, usage }
    };
    if let Some(seen) = forbidden(&[request.question.model.as_deref()], world) {
        return not_made(seen, usage);
    }
    loop {
        let host = match ready(world) {
            Ok(host) => host,
            Err(seen) => return not_made(*seen, usage),
        };
        // A question is about what it contains, so nothing of the checkout belongs to it.
        let terms = match terms(host, HostSettings::User, request.budget, &usage, world).await {
            Ok(terms) => terms,
            Err(seen) => return not_made(*seen, usage),
        };
        let invocation = host.judge(&request.question, request.max_tokens, &terms);
        let setting = patience.left(&request.setting);
        let limit = (request.budget, &usage);
        let (mut called, pass) = match program(invocation, &setting, limit, world) {
            Ok(call) => {
                let question = &request.question;
                (asked(host, question, &terms, &call.program, &setting, world).await, call.pass)
            }
            Err(why) => (not_called(why.into()), None),
        };
        let said = std::mem::take(&mut called.usage);
        called.usage = at_the_wire(pass, &mut called, said, world).await;
        usage.add(&called.usage);
        match settle(host, called, &mut patience, world).await {
            SettledCall::Again => {}
            SettledCall::Done(seen, result) => {
                let late = || format!("{} took too long to answer", host.name());
                let reply = result.ok_or_else(|| Explanation::new(seen.failure.unwrap_or_else(late)));
                return ModelAnswer { reply, stop: seen.stop, usage };
            }
        }
    }
}

/// Finds out under what terms a host is called; returns the observation of a call that is not worth making.
async fn terms(
    host: &'static dyn Host,
    settings: HostSettings,
    left: Budget,
    spent: &Usage,
    world: &mut World,
) -> Result<Terms, Box<Observation>> {
    let unavailable = |why: String| {
        let why = format!("{}: {why}", host.name());
        Box::new(Observation { stop: Some(Stop::Unavailable), ..Observation::not_started(why) })
    };
    let version = installed::version(host, world).await.map_err(|why| unavailable(why.to_string()))?;
    // With its own settings, a host may have a service that needs no account.
    if settings == HostSettings::User {
        installed::account(host, world).await.map_err(|why| unavailable(why.to_string()))?;
    }
    // Not negative, and not zero: a host refuses a budget of nothing.
    let left = left.cost_usd.map(|left| (left - spent.least_cost()).max(SMALLEST_CAP));
    Ok(Terms { version, settings, cost_usd: left.filter(|_| host.prices()), is_confined: false })
}

/// Returns the host, or the observation of a call that cannot be made.
fn ready(world: &World) -> Result<&'static dyn Host, Box<Observation>> {
    if world.cancel.is_asked() {
        return Err(Box::new(Observation { stop: Some(Stop::Cancelled), ..Observation::exited(130, "") }));
    }
    world.agents.host.ok_or_else(|| {
        let names: Vec<_> = host::names().collect();
        let why = format!("there is no agent on PATH: none of {}", names.join(", "));
        Box::new(Observation { stop: Some(Stop::Missing), ..Observation::not_started(why) })
    })
}

/// What a call came to, or that it is to be made again.
enum SettledCall<T> {
    Done(Observation, Option<T>),
    Again,
}

/// Makes of a failure what it means for the run, and waits where waiting helps.
async fn settle<T>(
    host: &'static dyn Host,
    called: CallResult<T>,
    patience: &mut Retries,
    world: &mut World,
) -> SettledCall<T> {
    let CallResult { mut seen, result, usage } = called;
    let failure = match result {
        Ok(result) => return SettledCall::Done(seen, Some(result)),
        // It was ended from outside, and says nothing about the service.
        Err(_) if seen.stop.is_some() => return SettledCall::Done(seen, None),
        Err(failure) => failure,
    };
    let name = host.name();
    let (why, cause, stop) = match failure {
        Failure::Failed(why) => (why, Cause::Failed, None),
        Failure::OutOfTurns(why) => (why, Cause::OutOfTurns, None),
        Failure::WrongForm(why) => (why, Cause::Form, None),
        Failure::OverBudget(why) => (why, Cause::OverBudget, Some(Stop::Budget)),
        Failure::Missing(why) => (why, Cause::Missing, Some(Stop::Missing)),
        Failure::Unavailable(why) => (why, Cause::Unavailable, Some(Stop::Unavailable)),
        Failure::Misunderstood(why) => {
            let version = installed::described(host, world).await;
            let why = format!("{why} ({name} {version}; this version of ll-loop does not understand it)");
            (why, Cause::Misunderstood, None)
        }
        Failure::Transient(why) => {
            // Without a token, the service was not even reached.
            let futile = if usage.tokens() == 0 { seen.duration } else { Duration::ZERO };
            if let Some(wait) = patience.next_wait(futile) {
                return waited(wait, &why, name, seen, world).await;
            }
            (format!("{why}; tried {}", patience.tried()), Cause::Transient, Some(Stop::Unavailable))
        }
        Failure::Quota(why, resets_at) => match patience.until(resets_at, world) {
            // A quota that is back in time is waited for; the run is saved for any other.
            Some(wait) => return waited(wait, &why, name, seen, world).await,
            None => (why, Cause::Quota, Some(Stop::Quota)),
        },
    };
    seen.failure = Some(format!("{name}: {why}"));
    seen.cause = Some(cause);
    seen.stop = stop;
    // Some hosts end well and say in their output that they failed.
    if seen.exit_code == 0 {
        seen.exit_code = 1;
    }
    SettledCall::Done(seen, None)
}

/// Waits before the next call, unless somebody wants the run to end first.
async fn waited<T>(
    wait: Duration,
    why: &str,
    name: &str,
    seen: Observation,
    world: &mut World,
) -> SettledCall<T> {
    let line = format!("{name}: {why}; trying again in {}", crate::base::time::human(wait));
    let line = world.redactor.text(&line).into_owned();
    let sinks = RefCell::new(&mut world.sinks);
    show(&sinks, Stream::Stderr, &line);
    tokio::select! {
        () = tokio::time::sleep(wait) => SettledCall::Again,
        _ = world.cancel.differs_from(EndRequest::None) => {
            SettledCall::Done(Observation { stop: Some(Stop::Cancelled), ..seen }, None)
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
    /// The time of calls in which nothing was heard of the model, and how long that may be.
    futile: Duration,
    unreached: Duration,
}

impl Retries {
    fn new(world: &World, setting: &Setting) -> Self {
        Self {
            clock: Clock::start(),
            attempts: 0,
            wait: world.agents.first_wait,
            end: setting.end.map(|(end, _)| end),
            futile: Duration::ZERO,
            unreached: world.agents.patience.unreached,
        }
    }

    fn tried(&self) -> String {
        match self.attempts {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        }
    }

    /// Returns the setting with what is left of its time.
    fn left(&mut self, setting: &Setting) -> Setting {
        self.attempts += 1;
        let passed = self.clock.elapsed();
        let end = setting.end.map(|(end, stop)| (end.saturating_sub(passed), stop));
        Setting { end, ..setting.clone() }
    }

    /// Returns the wait before the next call, with a part of chance so that many runs do not come back at once. Hosts try
    /// again by themselves, so a call can be as long as a dead network may be waited for; another one like it has to fit.
    fn next_wait(&mut self, futile: Duration) -> Option<Duration> {
        self.futile += futile;
        if self.futile + futile > self.unreached {
            return None;
        }
        let chance = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        // From half to one and a half of the wait.
        let wait = self.wait.mul_f64(0.5 + chance);
        self.wait *= 2;
        (self.attempts < ATTEMPTS && self.fits(wait)).then_some(wait)
    }

    /// Returns the wait until a quota is there again, if the run has the time for it.
    fn until(&self, resets_at: Option<i64>, world: &World) -> Option<Duration> {
        let wait = until_reset(resets_at?, world.clock.now().as_millis() / 1000);
        // Without an end of its own, a run must not sleep for a night.
        let is_short = self.end.is_some() || wait <= LONGEST_WAIT;
        (self.attempts < ATTEMPTS && is_short && self.fits(wait)).then_some(wait)
    }

    fn fits(&self, wait: Duration) -> bool {
        self.end.is_none_or(|end| self.clock.elapsed() + wait < end)
    }
}

/// Returns the wait until a moment, both in seconds since 1970, and a moment more: clocks differ.
fn until_reset(resets_at: i64, now: i64) -> Duration {
    Duration::from_secs(resets_at.saturating_sub(now).max(0).unsigned_abs() + 2)
}

/// A call that can be made. What belongs to it is gone when it is dropped.
struct PreparedCall {
    program: Program,
    /// Files that it reads.
    files: Vec<NamedTempFile>,
    /// What it may ask of the service, where we hold the key.
    pass: Option<CallPass>,
}

/// Makes the process of a call, which may take what is left of a budget.
fn program(
    mut invocation: Invocation,
    setting: &Setting,
    (left, spent): (Budget, &Usage),
    world: &mut World,
) -> Result<PreparedCall, Explanation> {
    let mut files = Vec::new();
    if let Some(Attachment { argument, suffix, text }) = invocation.file.take() {
        let file = file_of_call(suffix, &text)?;
        // The path is known only now, and stands in the arguments where the host expects it.
        if let Some(place) = invocation.argv.get_mut(argument) {
            *place = file.path().to_string_lossy().into_owned();
        }
        files.push(file);
    }
    let mut env = world.env_of(setting);
    env.extend(invocation.env);
    let mut argv = invocation.argv;
    let mut pass = None;
    if world.agents.broker.as_ref().is_some_and(Brokerage::lacks_cassette)
        && let Some(cassette) = recorded::cassette(world)
        && let Some(broker) = &mut world.agents.broker
    {
        broker.insert(cassette);
    }
    if let Some(broker) = &mut world.agents.broker {
        let admitted = broker.admit(brokerage::caps(left, spent));
        let AdmittedAgent { pass: admitted, settings } =
            admitted.map_err(|error| Explanation::new(format!("the broker cannot be opened: {error}")))?;
        // The CLI gets a token of its call alone; the key stays here, and so does the way to its service.
        env.retain(|name, _| broker::credentials().chain(broker::services()).all(|kept| kept != name));
        env.extend(settings.variables);
        // Some hosts take options only in front of a subcommand, so the place is theirs to say.
        let at = settings.after.min(argv.len());
        argv.splice(at..at, settings.arguments);
        pass = Some(admitted);
    }
    let program = world.program(argv, env, setting)?;
    let program = Program { stdin: invocation.stdin.map(String::into_bytes), ..program };
    Ok(PreparedCall { program, files, pass })
}

/// Makes a file that a call reads, and that is gone with it.
fn file_of_call(suffix: &str, text: &str) -> Result<NamedTempFile, Explanation> {
    let made = transient::file("ll-", suffix);
    let file = made.and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
    file.map_err(|error| Explanation::new(format!("cannot write a temporary file for the host: {error}")))
}

/// Ends what a call may ask at the wire, and puts what it did there together with what its host says.
async fn at_the_wire<T>(
    pass: Option<CallPass>,
    called: &mut CallResult<T>,
    said: Usage,
    world: &mut World,
) -> Usage {
    let Some(pass) = pass else { return said };
    // Ended before it is read, or a process that lives on could still ask.
    let wire = pass.end().await;
    world.remarks.extend(wire.warnings());
    let difference = world.agents.broker.as_mut().and_then(|broker| broker.difference(&said, &wire));
    world.remarks.extend(difference);
    // What happened at the wire explains more than what the host makes of it.
    if let Some(miss) = &wire.missed {
        let sinks = RefCell::new(&mut world.sinks);
        miss.lines.iter().for_each(|line| show(&sinks, Stream::Stderr, line));
        called.result = Err(Failure::Unavailable(miss.why.clone()));
    } else if let Err(failure) = &mut called.result {
        *failure = brokerage::why(failure.clone(), &wire);
    }
    if let Some(why) = wire.not_kept.as_ref().filter(|_| called.seen.stop.is_none()) {
        let (stop, why) = not_kept(&why.to_string(), world);
        (called.seen.stop, called.seen.failure) = (Some(stop), Some(why));
    }
    brokerage::together(said, &wire)
}

/// Reads the lines of a host, and watches how long it is silent.
struct Ear {
    listener: Box<dyn Listener>,
    watch: CallWatch,
    out: Assembly,
    err: Assembly,
}

impl Ear {
    fn new(listener: Box<dyn Listener>, patience: Patience) -> Self {
        let (out, err) = (Assembly::default(), Assembly::default());
        Self { listener, watch: CallWatch::new(patience), out, err }
    }

    /// Takes what was printed, and hands on what people should see of it. Returns until when more has to come.
    fn hear(&mut self, stream: Stream, bytes: &[u8], say: &mut dyn FnMut(&str)) -> Heard {
        let Self { listener, watch, out, err } = self;
        match stream {
            Stream::Stdout => out.push(bytes, &mut |line| listener.line(line, say)),
            // Error output is not part of the stream, but some hosts tell of trouble nowhere else.
            Stream::Stderr => err.push(bytes, &mut |line| listener.complaint(line)),
        }
        match (stream, listener.pulse()) {
            (Stream::Stdout, pulse) | (Stream::Stderr, pulse @ Pulse::Retrying) => {
                Heard::Before(watch.heard(pulse))
            }
            // What is printed there while it works says nothing about the service.
            (Stream::Stderr, Pulse::Calling | Pulse::Thinking | Pulse::Working) => Heard::More,
        }
    }

    /// Takes a last line that has no end.
    fn finish(&mut self, say: &mut dyn FnMut(&str)) {
        let Self { listener, out, err, .. } = self;
        out.finish(&mut |line| listener.line(line, say));
        err.finish(&mut |line| listener.complaint(line));
    }

    /// Returns the result of a call, or what is known of one that was stopped because it was silent.
    fn unless_silent<T>(&self, seen: &mut Observation, result: Result<T, Failure>) -> Result<T, Failure> {
        // Its other ends were seen by the process, and not by this watch.
        if seen.stop != Some(Stop::Unavailable) {
            return result;
        }
        seen.stop = None;
        Err(self.watch.verdict(self.listener.as_ref()))
    }
}

/// Keeps apart what a call took and what its conversation took before.
struct Tally {
    /// What the host said last that the conversation took.
    last: Option<ConversationUsage>,
    goes_on: bool,
    is_kept: bool,
}

impl Tally {
    fn new(request: &PromptRequest) -> Self {
        let session = request.session.as_ref();
        let goes_on = session.is_some_and(|session| session.id.is_some());
        Self { last: session.and_then(|session| session.total), goes_on, is_kept: session.is_some() }
    }

    /// Returns what a call took, and what is to be said about it.
    fn count(&mut self, said: Usage, counting: Counting) -> (Usage, Option<&'static str>) {
        let unsure =
            "what this call took cannot be told from what its conversation took before; all of it counts";
        match counting {
            Counting::Call => (said, None),
            Counting::Unknown => (said, self.goes_on.then_some(unsure)),
            Counting::Conversation(total) => {
                let before = self.last.replace(total);
                match before {
                    // The first total of a conversation that this run did not begin holds what came
                    // before it, too.
                    Some(before) => (since(before, said), None),
                    None => (said, self.goes_on.then_some(unsure)),
                }
            }
        }
    }

    /// Returns what is to be known when the conversation goes on.
    fn total(&self) -> Option<ConversationUsage> {
        self.last.filter(|_| self.is_kept)
    }
}

/// Returns what a call took of a conversation that took so much before. A count that went down has begun anew.
fn since(before: ConversationUsage, said: Usage) -> Usage {
    // Another process of the host may have begun to count anew.
    let tokens = |before: u64, now: u64| now.checked_sub(before).unwrap_or(now);
    let cost_usd = said.cost_usd.map(|now| if now < before.cost_usd { now } else { now - before.cost_usd });
    Usage {
        input_tokens: tokens(before.input_tokens, said.input_tokens),
        output_tokens: tokens(before.output_tokens, said.output_tokens),
        cost_usd,
        ..said
    }
}

async fn prompted(
    host: &'static dyn Host,
    (prompt, terms): (&Prompt<'_>, &Terms),
    (call, setting): (&PreparedCall, &Setting),
    (budget, spent): (Budget, &Usage),
    world: &mut World,
) -> (CallResult<String>, Counting) {
    let place = directory(&call.program, world);
    // A sandbox shows the agent only what is named to it, and these files lie in a place of their
    // own.
    let read = call.files.iter().map(|file| file.path().to_owned()).collect();
    let what = Confinable::Prompt { host, access: prompt.access, read };
    let (program, confined) = match world.confine(call.program.clone(), setting, what) {
        Ok(confined) => confined,
        Err(seen) => return (not_confined(*seen), Counting::Call),
    };
    if let Some(agent) = host.talks() {
        let over = |usage: &Usage| is_over(budget, spent, usage);
        let conversation = agent.prompted(prompt, &place);
        let (seen, mut conversation) =
            // Boxed, as the future of a conversation is large and would make every caller's as
            // large.
            Box::pin(acp_lines::talk(conversation, &program, setting, &over, world)).await;
        let seen = match released(confined, seen, world) {
            Ok(seen) => seen,
            Err(why) => return (broken(*why, conversation.usage().clone()), Counting::Call),
        };
        return (heard(seen, conversation.as_mut(), prompt.answer.is_some()), Counting::Call);
    }
    let patience = world.agents.patience;
    // Silence before the first word is a service that is not reached, not an agent that thinks.
    let limits = ProcessLimits { end: setting.end, idle: setting.idle, first: Some(patience.unreached) };
    let (redactor, sinks) = (&world.redactor, RefCell::new(&mut world.sinks));
    let mut ear = Ear::new(host.listen(terms), patience);
    let (mut spoken, mut complaints) = (LineCollector::new(), LineCollector::new());
    let mut output = |stream: Stream, bytes: &[u8]| {
        if stream == Stream::Stderr {
            complaints.push(bytes, redactor, &mut |text| show(&sinks, stream, text));
        }
        let mut said = |said: &str| spoken.line(said, redactor, &mut |text| show(&sinks, stream, text));
        let until = ear.hear(stream, bytes, &mut said);
        match ear.listener.is_done() {
            // The process may go on although the agent is done.
            true => Heard::Enough,
            false if is_over(budget, spent, ear.listener.usage()) => Heard::Stop(Stop::Budget),
            false => until,
        }
    };
    let seen = while_ticking(&sinks, spawn::run(&program, limits, &mut world.cancel, &mut output)).await;
    let mut shown = |text: &str| show(&sinks, Stream::Stdout, text);
    ear.finish(&mut |said| spoken.line(said, redactor, &mut shown));
    spoken.finish(redactor, &mut |text| show(&sinks, Stream::Stdout, text));
    complaints.finish(redactor, &mut |text| show(&sinks, Stream::Stderr, text));
    let counting = ear.listener.counting();
    let seen = match released(confined, seen, world) {
        Ok(seen) => seen,
        Err(why) => return (broken(*why, ear.listener.usage().clone()), counting),
    };
    let CallResult { mut seen, result, usage } = heard(seen, ear.listener.as_mut(), prompt.answer.is_some());
    let result = ear.unless_silent(&mut seen, result);
    if result.is_ok() && seen.stop.is_none() {
        // An answer that counts although its host ended badly is a good end.
        seen.exit_code = 0;
    }
    (CallResult { seen, result, usage }, counting)
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
    question: &Question,
    terms: &Terms,
    program: &Program,
    setting: &Setting,
    world: &mut World,
) -> CallResult<Value> {
    if let Some(agent) = host.talks() {
        let conversation = agent.asked(question, &directory(program, world));
        let (seen, mut conversation) =
            Box::pin(acp_lines::talk(conversation, program, setting, &|_| false, world)).await;
        if seen.failure.is_some() {
            return missing(seen);
        }
        let result = conversation.reply(seen.exit_code);
        return CallResult { seen, result, usage: conversation.usage().clone() };
    }
    let patience = world.agents.patience;
    let limits = ProcessLimits { end: setting.end, idle: setting.idle, first: Some(patience.unreached) };
    let sinks = RefCell::new(&mut world.sinks);
    let mut ear = Ear::new(host.listen(terms), patience);
    let mut output = |stream: Stream, bytes: &[u8]| ear.hear(stream, bytes, &mut |_| {});
    let mut seen = while_ticking(&sinks, spawn::run(program, limits, &mut world.cancel, &mut output)).await;
    if seen.failure.is_some() {
        return missing(seen);
    }
    let (result, usage) = host.answer(seen.stdout.as_str(), seen.exit_code);
    let result = ear.unless_silent(&mut seen, result);
    CallResult { seen, result, usage }
}

/// Returns the directory that a program is started in.
fn directory(program: &Program, world: &World) -> String {
    program.cwd.as_ref().unwrap_or(&world.root).to_string_lossy().into_owned()
}

/// The end of a call whose program could not be started.
fn missing<T>(seen: Observation) -> CallResult<T> {
    let why = seen.why_not_started();
    let seen = Observation { failure: None, ..seen };
    CallResult { seen, result: Err(Failure::Missing(why)), usage: Usage::default() }
}

/// Looks at what a confined call left. The error is the observation of one that changed what it must not, or that never began.
fn released(
    confined: Option<Confined>,
    seen: Observation,
    world: &mut World,
) -> Result<Observation, Box<Observation>> {
    let was_fine = seen.failure.is_none();
    let seen = world.release(confined, seen);
    if was_fine && seen.failure.is_some() { Err(Box::new(seen)) } else { Ok(seen) }
}

/// The end of a call whose sandbox says that it does not count.
fn broken<T>(seen: Observation, usage: Usage) -> CallResult<T> {
    let why = seen.why_not_started();
    CallResult { seen, result: Err(Failure::Failed(why)), usage }
}

/// The end of a call that is not made, because it cannot be confined.
fn not_confined<T>(seen: Observation) -> CallResult<T> {
    let why = seen.why_not_started();
    CallResult { seen, result: Err(Failure::Unavailable(why)), usage: Usage::default() }
}

/// The end of a call that could not be made, for a reason of the loop.
fn not_called<T>(why: String) -> CallResult<T> {
    let seen = Observation::not_started(why.clone());
    CallResult { seen, result: Err(Failure::Failed(why)), usage: Usage::default() }
}

/// Tells whether a call that is going on has met what is left of the budget.
fn is_over(left: Budget, before: &Usage, now: &Usage) -> bool {
    let tokens = before.tokens().saturating_add(now.tokens());
    let cost = before.least_cost() + now.least_cost();
    left.tokens.is_some_and(|left| tokens > left) || left.cost_usd.is_some_and(|left| cost > left)
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
