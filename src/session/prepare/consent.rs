//! Decides before a run starts whether it may ask agents and models, and which host it asks.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::confinement::{self, ConfinedRun, SandboxDecision};
use super::library::{self, Library};
use super::prepared::Prepared;
use super::{guidance, key_holder};
use crate::base::sandbox::SandboxMode;
use crate::base::sum::Sum;
use crate::base::text::{head, listed};
use crate::base::time::parse_duration;
use crate::broker::KeyHolder;
use crate::context::error::{Error, Kind};
use crate::context::options::LlmOptions;
use crate::context::{Session, binding};
use crate::definition::load::Loaded;
use crate::engine::event::Llm;
use crate::files::links;
use crate::files::replace::create;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::host::{self, Host};
use crate::machine::check::fate;
use crate::machine::{Action, Budget, Machine, OnHandoff, Step};
use crate::process::spawn;
use crate::run::host_patience::Patience;
use crate::run::recording::{Mode, Recording};
use crate::run::{AgentSetup, access};

/// The decisions about agents for a run.
pub(crate) struct Decided {
    /// Whether prompts may reach a model.
    pub(crate) llm: Llm,
    /// The host that takes them.
    pub(crate) agents: AgentSetup,
    /// The caps of the command line on their cost.
    pub(crate) budget: Budget,
    /// How the run continues after a hand-off; overrides the loop.
    pub(crate) on_handoff: Option<OnHandoff>,
    /// What confines actions where the loop says nothing.
    pub(crate) sandbox: SandboxDecision,
    /// Whether the run, as it is known now, can call a model.
    pub(crate) can_call_models: bool,
}

/// Up to so many states get a warning of their own; more of them share one.
const MOST_WARNINGS: usize = 3;

/// The digits that tell the contents of loops apart.
// That is 64 bits: a collision would cost no more than one warning, and the name of the file stays short.
const DIGITS: usize = 16;

/// Decides from the command line and the environment, and warns of the consequences for this loop and its sub-loops.
pub(crate) fn decide(
    options: &LlmOptions,
    prepared: &mut Prepared,
    in_ci: bool,
    session: &Session<'_>,
) -> Result<Decided, Error> {
    for (file, _) in prepared.files() {
        binding::check_source(&prepared.policy, &file).map_err(|refusal| binding::refused(&refusal))?;
    }
    let Prepared { located, loaded, machine, library, policy, .. } = prepared;
    let (located, loaded, machine, policy) = (&*located, &*loaded, &*machine, &*policy);
    let recording = recording(options, session)?;
    let llm = allowed(options, in_ci);
    let mut host = host_of(options, in_ci, session)?;
    let budget = binding::capped(options.budget, policy);
    let below = library.below(machine);
    let all = || std::iter::once(machine).chain(below.iter().map(Rc::as_ref));
    let wire = recording.as_ref().filter(|_| llm == Llm::Replay).and_then(Recording::wire);
    // `host_of` gives none for a replay; only here, the CLI itself does its work again on recorded answers.
    if wire.is_some() {
        let replaying = chosen(options.host.as_deref(), session)?;
        let may_replay = |host: &&'static dyn Host| {
            policy.host(host.name()).is_ok() && all().all(|one| may_replay(*host, one, session))
        };
        host = replaying.filter(may_replay);
    }
    let replayed = wire.and(host).and_then(|host| key_holder::replayed(options, machine, host, session));
    host = host.filter(|_| llm == Llm::On || replayed.is_some());
    let asked = host.filter(|_| replayed.is_none());
    let held = key_holder::withhold(options, machine, policy, asked, in_ci, session)?;
    // At the wire, every request has a price or none, whatever its host says.
    let is_metered = replayed.is_some() || matches!(held, Some(KeyHolder::Broker(_)));
    for one in all() {
        binding::check_machine(policy, one).map_err(|refusal| binding::refused(&refusal))?;
        if !is_metered {
            priced(host, one, machine, &budget)?;
        }
        limited(host, one)?;
        if llm == Llm::On && in_ci && !options.uncapped {
            capped(one, machine, &budget)?;
        }
        sheltered(host, one, session)?;
    }
    let asks = |one: &Machine| !one.llm.is_forbidden && one.steps().any(|(_, step)| may_ask(step));
    let can_call_models = llm == Llm::On && host.is_some() && all().any(asks);
    let mut broker = None;
    if let Some(host) = host.filter(|_| all().any(asks)) {
        policy.host(host.name()).map_err(|refusal| binding::refused(&refusal))?;
        // A replay asks no service, so no account pays for it.
        if replayed.is_none() {
            name_account(host, in_ci, session);
            broker = key_holder::settle(held, machine, policy, host, in_ci, session)?;
        }
    }
    // What is refused whatever the machine can do comes first.
    let starts = if host.is_some() { Llm::On } else { llm };
    let run = |llm, host| ConfinedRun { asked: options.sandbox, in_ci, llm, host, located, policy };
    let mut sandbox = confinement::settle(&run(starts, host), machine, &below, session);
    if let (Some(wiring), Some(replaying)) = (replayed, host) {
        if sandbox.is_ok() {
            broker = Some(key_holder::settle_replayed(wiring, machine, policy, replaying, session));
        } else {
            // Nothing is started for recorded answers, so nothing has to be confined.
            host = None;
            sandbox = confinement::settle(&run(llm, None), machine, &below, session);
        }
    }
    let sandbox = sandbox?;
    let subject = Consent { repository: links::repository(&located.root, None), loaded, library };
    for one in all() {
        if llm == Llm::On && !one.llm.is_forbidden {
            consent(options, one, &subject, in_ci, session);
            unheeded(host, one, session);
        // In a replay, the recorded answers take the place of agents.
        } else if llm != Llm::Replay {
            preflight(one, one.name != machine.name, session);
        }
    }
    let first_wait = duration("LL_RETRY_WAIT", session);
    let agents = AgentSetup {
        host,
        first_wait: first_wait.unwrap_or(Duration::from_secs(2)),
        recording,
        patience: patience(session),
        installed: None,
        guidance: guidance::of_run(&located.root, session),
        broker,
        policy: Arc::new(policy.clone()),
    };
    let on_handoff = on_handoff(options, machine, in_ci, session);
    Ok(Decided { llm, agents, budget, on_handoff, sandbox, can_call_models })
}

/// Tells whether models may be asked.
fn allowed(options: &LlmOptions, in_ci: bool) -> Llm {
    match (&options.recording, options.allowed) {
        (Some((_, Mode::Replay)), _) => Llm::Replay,
        // In CI only where it was asked for: there every push would spend money, with no person looking on.
        (_, allowed) if allowed.unwrap_or(!in_ci) => Llm::On,
        _ => Llm::Off,
    }
}

/// Returns the host that may be asked, if one may.
///
/// # Errors
/// There is none of the name that was asked for.
pub(crate) fn host_of(
    options: &LlmOptions,
    in_ci: bool,
    session: &Session<'_>,
) -> Result<Option<&'static dyn Host>, Error> {
    match allowed(options, in_ci) {
        Llm::Off | Llm::Replay => Ok(None),
        Llm::On => chosen(options.host.as_deref(), session),
    }
}

/// Reads a time from the environment.
fn duration(name: &str, session: &Session<'_>) -> Option<Duration> {
    session.env.get(name).and_then(|time| parse_duration(time).ok())
}

/// Returns how long a host may be silent.
fn patience(session: &Session<'_>) -> Patience {
    let usual = Patience::default();
    Patience {
        unreached: duration("LL_HOST_PATIENCE", session).unwrap_or(usual.unreached),
        silent: duration("LL_HOST_SILENCE", session).unwrap_or(usual.silent),
    }
}

/// Opens the directory that answers are recorded to or replayed from.
fn recording(options: &LlmOptions, session: &Session<'_>) -> Result<Option<Recording>, Error> {
    let Some((directory, mode)) = &options.recording else { return Ok(None) };
    let opened = Recording::open(&session.path(directory), *mode);
    let failed = |error| Error::failed("cannot use the recording", &error).of_kind(Kind::Refused);
    opened.map(Some).map_err(|error| match mode {
        Mode::Record => failed(error),
        Mode::Replay => failed(error).with_hint("`--record DIR` makes one"),
    })
}

/// Finds the host that is asked for, or else the first installed one. A loop may need no host, so a missing one is
/// no error.
fn chosen(name: Option<&str>, session: &Session<'_>) -> Result<Option<&'static dyn Host>, Error> {
    match name.or_else(|| session.env.get("LL_HOST_CLI")) {
        Some(name) => host::by_name(name).map(Some).ok_or_else(|| {
            let names: Vec<_> = host::names().collect();
            Error::refused(format!("unknown host `{name}`")).with_hint(format!(
                "write one of {}, or `acp:` and the command of an agent",
                names.join(", ")
            ))
        }),
        None => Ok(host::first(|name| spawn::find(name, session.env.get("PATH")).is_some())),
    }
}

/// Refuses a cap on cost with a host that does not report costs: from the command line, the loop, or the loop
/// around it.
fn priced(
    host: Option<&'static dyn Host>,
    machine: &Machine,
    around: &Machine,
    budget: &Budget,
) -> Result<(), Error> {
    let caps = [budget.cost_usd, around.budget.cost_usd, machine.budget.cost_usd];
    let is_capped = caps.iter().any(Option::is_some);
    let is_allowed = around.budget.allows_unpriced || machine.budget.allows_unpriced;
    let is_needed = machine.steps().any(|(_, step)| step.can_ask());
    match host.filter(|host| is_capped && is_needed && !host.prices() && !is_allowed) {
        Some(host) => {
            let message = format!("the cost is capped, and `{}` does not say what a call costs", host.name());
            let help = "cap `tokens` or `llm_calls`, or write `unpriced: allow` under `budget`";
            Err(Error::refused(message).with_hint(help))
        }
        None => Ok(()),
    }
}

/// Says which account pays: in CI always, where nobody is logged in, and elsewhere where there are several.
fn name_account(host: &'static dyn Host, in_ci: bool, session: &Session<'_>) {
    let account = host::account(host.name(), &|name| session.env.is_on(name));
    if in_ci || account.is_ambiguous {
        session.talk.note(&account.sentence);
    }
}

/// Refuses a loop in CI that may ask agents as often as it likes: nobody looks on there.
fn capped(machine: &Machine, around: &Machine, budget: &Budget) -> Result<(), Error> {
    if machine.llm.is_forbidden || [budget, &around.budget, &machine.budget].into_iter().any(Budget::is_cap) {
        return Ok(());
    }
    let Some((_, step)) = machine.steps().find(|(_, step)| may_ask(step)) else { return Ok(()) };
    let place =
        if machine.name == around.name { String::new() } else { format!(" of the loop `{}`", machine.name) };
    let message =
        format!("`{}`{place} may ask an agent or a model, and nothing caps what that costs", step.name);
    let help = "give `--max-cost USD`, `--max-tokens N` or `--max-llm-calls N` (inputs of the action have the same names), \
                or write one of `cost_usd`, `tokens` and `llm_calls` under `budget:` in the loop; `--no-budget` goes \
                without a cap";
    Err(Error::refused(message).with_hint(help))
}

/// Tells whether an agent or a model may be asked in a state, also by a loop whose name only the run knows.
fn may_ask(step: &Step) -> bool {
    let is_unknown =
        |action: &Action| matches!(action, Action::SubLoop(sub) if sub.name.as_literal().is_none());
    step.can_ask() || step.action.as_ref().is_some_and(is_unknown)
}

/// Warns of keys of the loop that the host does not support.
fn unheeded(host: Option<&'static dyn Host>, machine: &Machine, session: &Session<'_>) {
    let Some(host) = host else { return };
    let say = |places: &[String], keys: &[&str]| {
        let (name, keys) = (host.name(), listed(keys, "and"));
        let (places, say) = (listed(places, "and"), if places.len() == 1 { "says" } else { "say" });
        session
            .talk
            .warning(&format!("`{name}` does not support {keys}; what {places} {say} there has no effect"));
    };
    let states: Vec<_> = machine
        .steps()
        .filter_map(|(_, step)| {
            let keys: Vec<_> =
                asked_for(step).into_iter().filter(|key| host.ignores().contains(key)).collect();
            (!keys.is_empty()).then(|| (step.name.to_string(), keys))
        })
        .collect();
    if states.len() > MOST_WARNINGS {
        let mut keys: Vec<_> = states.iter().flat_map(|(_, keys)| keys).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let names: Vec<_> = states.into_iter().map(|(name, _)| name).collect();
        say(&names, &keys);
    } else {
        for (name, keys) in states {
            say(&[name], &keys);
        }
    }
    if host.talks().is_some() {
        let narrowed =
            |step: &&Step| matches!(&step.action, Some(Action::Prompt(prompt)) if !prompt.tools.is_empty());
        let names: Vec<_> = machine
            .steps()
            .map(|(_, step)| step)
            .filter(narrowed)
            .map(|step| step.name.to_string())
            .collect();
        if !names.is_empty() {
            session.talk.warning(&format!(
                "`tools` of {} decides what the agent is allowed where it asks; what it does without asking is not confined",
                listed(&names, "and"),
            ));
        }
    }
    let is_limited = machine.llm.max_tokens.is_some() && host.ignores().contains(&"max_tokens");
    if is_limited && machine.steps().any(|(_, step)| step.needs_model()) {
        say(&["llm".to_owned()], &["max_tokens"]);
    }
}

/// Returns the keys of a prompt that not every host supports.
fn asked_for(step: &Step) -> Vec<&'static str> {
    let Some(Action::Prompt(prompt)) = &step.action else { return Vec::new() };
    let keys = [
        ("agent", prompt.agent.is_some()),
        ("model", prompt.model.is_some()),
        ("session", prompt.session.is_some()),
        ("fallback_model", prompt.fallback_model.is_some()),
    ];
    keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
}

/// Refuses a host that would let an agent do more than the loop says.
fn limited(host: Option<&'static dyn Host>, machine: &Machine) -> Result<(), Error> {
    let Some(host) = host else { return Ok(()) };
    for (_, step) in machine.steps() {
        let Some(Action::Prompt(prompt)) = &step.action else { continue };
        let refused = |what: &str, help: &str| {
            let message = format!("`{}` {what}, and `{}` cannot do that", step.name, host.name());
            Err(Error::refused(message).with_hint(help))
        };
        if !prompt.tools.is_empty() && host.ignores().contains(&"tools") {
            let help =
                "choose another host with `--host`, or remove `tools`: the agent may then use all of them";
            return refused("narrows the `tools` of its agent", help);
        }
        let role = step.role.as_ref().map(ToString::to_string);
        let can = |sandbox| match sandbox {
            // The system keeps to these, or the run does not begin.
            SandboxMode::Off | SandboxMode::Workspace | SandboxMode::Strict => true,
            SandboxMode::ReadOnly => host.enforces(access(Some(sandbox), role.as_deref(), &prompt.tools)),
        };
        if let Some(sandbox) = prompt.sandbox.filter(|sandbox| !can(*sandbox)) {
            let help = "choose another host with `--host`, or remove `sandbox`: the agent may then do more";
            return refused(&format!("confines its agent (`sandbox: {}`)", sandbox.word()), help);
        }
    }
    Ok(())
}

/// Tells whether a host may do its work again where a recording plays its service: it must not be able to do more than the
/// loop says, and where it cannot be confined or sheltered, the recorded answers alone are given.
fn may_replay(host: &'static dyn Host, machine: &Machine, session: &Session<'_>) -> bool {
    let event = WorkflowEvent::read(&session.env.lookup());
    let is_sheltered = !event.has_texts_of_strangers() || !machine.heeds_project && host.heeds().is_none();
    is_sheltered && limited(Some(host), machine).is_ok()
}

/// Refuses that a host runs what it finds in the checkout, where strangers can set off the run; says it elsewhere.
fn sheltered(host: Option<&'static dyn Host>, machine: &Machine, session: &Session<'_>) -> Result<(), Error> {
    let is_needed = machine.steps().any(|(_, step)| step.can_ask());
    let Some(host) = host.filter(|_| is_needed) else { return Ok(()) };
    let (name, of) = (host.name(), &machine.name);
    let (what, help) = if machine.heeds_project {
        let what = format!(
            "`{of}` says `host_settings: project`, so `{name}` may run hooks and servers of the checkout, with its key in \
             their environment"
        );
        (what, "remove `host_settings`, or run the loop on another event")
    } else if let Some(heeded) = host.heeds() {
        let what = format!(
            "`{name}` cannot be told to leave {heeded} of the checkout alone: what stands there can run code, or send its key elsewhere"
        );
        (what, "choose another host with `--host`, or run the loop on another event")
    } else {
        return Ok(());
    };
    let event = WorkflowEvent::read(&session.env.lookup());
    if event.has_texts_of_strangers() {
        let message = format!("{what}; strangers can set off the event `{}`", event.name);
        return Err(Error::refused(message).with_hint(help));
    }
    session.talk.warning(&what);
    Ok(())
}

/// Warns of states that need an agent where agents may not be asked.
fn preflight(machine: &Machine, is_below: bool, session: &Session<'_>) {
    let place = if is_below { format!(" of the loop `{}`", machine.name) } else { String::new() };
    for (_, step) in machine.steps().filter(|(_, step)| step.needs_model()) {
        let fate = fate(machine, step);
        session
            .talk
            .warning(&format!("`{}`{place} needs an agent, and none may be asked here: {fate}", step.name));
    }
}

/// Takes a spawned session back to a pause in CI, where nobody would look after it, unless it was asked for.
fn on_handoff(
    options: &LlmOptions,
    machine: &Machine,
    in_ci: bool,
    session: &Session<'_>,
) -> Option<OnHandoff> {
    let asked = options.on_handoff;
    if asked.is_none() && in_ci && machine.on_handoff == OnHandoff::Spawn {
        session
            .talk
            .warning("`on_handoff: spawn` pauses in CI; `--on-handoff spawn` starts a session all the same");
        return Some(OnHandoff::Pause);
    }
    asked
}

/// What a user agrees to.
struct Consent<'c> {
    repository: PathBuf,
    loaded: &'c Loaded,
    library: &'c Library,
}

impl Consent<'_> {
    /// Names the file that says that the user knows what this loop does: in another repository, or with other content, it
    /// is another one.
    fn file(&self, machine: &Machine) -> String {
        let mut texts = library::texts(&self.loaded.sources);
        texts.extend(self.library.texts());
        // The library is a hash map: unsorted, the digest would be another one in each process.
        texts.sort();
        texts.dedup();
        let whole = format!("{}\0{}\0{texts:?}", self.repository.display(), machine.name);
        format!("{}-{}", machine.name.file_stem(), head(&Sum::of(whole.as_bytes()).to_string(), DIGITS))
    }
}

/// Warns once for each content of a loop and repository that agents run without asking for permission. Going on counts
/// as consent.
fn consent(
    options: &LlmOptions,
    machine: &Machine,
    subject: &Consent<'_>,
    in_ci: bool,
    session: &Session<'_>,
) {
    let acts = machine.steps().any(|(_, step)| step.action.as_ref().is_some_and(Action::can_ask_agent));
    // In CI, models are asked only with `--llm`, which is consent enough; and no person reads a warning in time.
    if !acts || options.agreed || in_ci {
        return;
    }
    // Without a place to remember it, the warning comes with each run.
    let Some(home) = session.env.state_home() else {
        say(machine, session);
        return;
    };
    let known = home.join("ll-loop/consent").join(subject.file(machine));
    if known.exists() {
        return;
    }
    say(machine, session);
    // If the note cannot be written, the next run warns again.
    let _said_again =
        fs_err::create_dir_all(known.parent().unwrap_or(&home)).and_then(|()| create(&known, ""));
}

fn say(machine: &Machine, session: &Session<'_>) {
    session.talk.warning(&format!(
        "`{}` hands prompts to an agent that runs without asking for permission: it can change and run whatever you \
         can in this directory and beyond; this is said once (`--no-llm` asks nobody, `--yes` agrees)",
        machine.name
    ));
}
