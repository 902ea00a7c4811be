//! Decides before a run starts what confines its actions, and refuses one whose sandbox cannot be had here.

use std::rc::Rc;

use crate::base::sandbox::{SandboxEngine, SandboxMode, SandboxNet, SandboxRules};
use crate::base::text::listed_in_part;
use crate::context::error::{Error, Kind};
use crate::context::{Session, binding};
use crate::definition::load::Located;
use crate::engine::event::Llm;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::host::Host;
use crate::machine::{Action, Machine, Step};
use crate::policy::Policy;
use crate::run::sandbox_setup::{SandboxDefault, may_be_left_to};
use crate::sandbox::capability::Lack;
use crate::sandbox::engines::Engines;

/// What a run is, as far as its sandbox depends on it.
pub(crate) struct ConfinedRun<'r> {
    /// What the command line asks for where the loop says nothing.
    pub(crate) asked: Option<SandboxMode>,
    /// Whether it is in CI.
    pub(crate) in_ci: bool,
    /// Whether agents are asked.
    pub(crate) llm: Llm,
    /// Who takes prompts.
    pub(crate) host: Option<&'static dyn Host>,
    /// Where the loop lies.
    pub(crate) located: &'r Located,
    /// What binds it from above.
    pub(crate) policy: &'r Policy,
}

/// What confines the actions of a run.
pub(crate) struct SandboxDecision {
    /// What confines actions of which the loop says nothing.
    pub(crate) default: SandboxDefault,
    /// What was tried on the way.
    pub(crate) engines: Engines,
    /// What stays open, for the log and the reports.
    pub(crate) open: Vec<String>,
}

/// Decides what confines the actions of a run, after what its loop says was found possible.
pub(crate) fn settle(
    run: &ConfinedRun<'_>,
    machine: &Machine,
    below: &[Rc<Machine>],
    session: &Session<'_>,
) -> Result<SandboxDecision, Error> {
    let mut decision = SandboxDecision {
        default: SandboxDefault::Nothing,
        engines: Engines::new(&run.located.root, &|name| session.env.get(name).map(str::to_owned)),
        open: Vec::new(),
    };
    decision.default = decide(run, machine, below, &mut decision, session)?;
    Ok(decision)
}

/// Decides what confines actions whose loop says nothing, after what the loop says was found possible.
fn decide(
    run: &ConfinedRun<'_>,
    machine: &Machine,
    below: &[Rc<Machine>],
    decision: &mut SandboxDecision,
    session: &Session<'_>,
) -> Result<SandboxDefault, Error> {
    let event = WorkflowEvent::read(&session.env.lookup());
    let is_of_strangers = event.has_texts_of_strangers();
    let mut needed = said_by_loops(run, machine, below, &event, &mut decision.open)?;
    let asks = run.llm == Llm::On
        && std::iter::once(machine).chain(below.iter().map(Rc::as_ref)).any(|machine| {
            !machine.llm.is_forbidden && machine.steps().any(|(_, step)| is_open_prompt(step, machine))
        });
    let default = match run.asked {
        Some(SandboxMode::Off) => {
            let is_open = asks && run.in_ci;
            if is_open {
                let what = "`--sandbox off` leaves agents unconfined";
                if is_of_strangers {
                    return Err(of_strangers(what, &event));
                }
                decision.open.push(what.to_owned());
            }
            SandboxDefault::Nothing
        }
        Some(mode @ (SandboxMode::Workspace | SandboxMode::Strict)) => {
            // Whoever asks on the command line means the system, and not the sandbox of a host.
            needed.push((SandboxEngine::Auto, false));
            SandboxDefault::Everything(SandboxRules::of(mode))
        }
        // Read-only is kept by hosts: for the engines of the system it says no more than nothing does.
        Some(SandboxMode::ReadOnly) | None if run.in_ci && asks => {
            SandboxDefault::Prompts(SandboxRules::of(SandboxMode::Workspace))
        }
        Some(SandboxMode::ReadOnly) | None => SandboxDefault::Nothing,
    };
    let floor = run.policy.sandbox_floor();
    let default = binding::raised(default, floor, run.asked, run.policy)?;
    if floor.is_some_and(|floor| asks || floor.of_everything) {
        needed.push((SandboxEngine::Auto, false));
    }
    for (engine, is_left_to_host) in needed {
        let Err(lack) = decision.engines.ready(engine) else { continue };
        // On events of strangers, and under a policy, the word of a host is not enough.
        if !is_left_to_host || is_of_strangers || floor.is_some() {
            return Err(unavailable(&lack));
        }
        let name = run.host.map_or("the host", Host::name);
        let remedy = lack.remedy();
        let said = format!(
            "`{name}` is left to its own sandbox, as nothing else confines it here: {lack}; {remedy}"
        );
        if !decision.open.contains(&said) {
            decision.open.push(said);
        }
    }
    if !matches!(default, SandboxDefault::Prompts(_)) {
        return Ok(default);
    }
    match decision.engines.ready(SandboxEngine::Auto) {
        Ok(_) => Ok(default),
        Err(lack) if is_of_strangers => Err(unavailable(&lack)),
        Err(lack) => {
            let remedy = lack.remedy();
            decision.open.push(format!(
                "agents are not confined here, because {lack}; {remedy}; `--sandbox workspace` refuses to run without"
            ));
            Ok(SandboxDefault::Nothing)
        }
    }
}

/// Returns what the loops themselves need, each with whether the host's own sandbox does in its place; refuses or tells what they
/// leave open.
fn said_by_loops(
    run: &ConfinedRun<'_>,
    machine: &Machine,
    below: &[Rc<Machine>],
    event: &WorkflowEvent,
    open: &mut Vec<String>,
) -> Result<Vec<(SandboxEngine, bool)>, Error> {
    let mut needed: Vec<(SandboxEngine, bool)> = Vec::new();
    for machine in std::iter::once(machine).chain(below.iter().map(Rc::as_ref)) {
        let mut unconfined = Vec::new();
        for (_, step) in machine.steps() {
            let Some(rules) = rules_of(step, machine) else { continue };
            if rules.mode == SandboxMode::Off {
                unconfined.push(step);
            }
            open.extend(permitted(rules, step, event)?);
            match engine_of(rules, step, run)? {
                NeededEngine::None => {}
                NeededEngine::System => needed.push((rules.engine, false)),
                NeededEngine::SystemOrHost => needed.push((rules.engine, true)),
            }
        }
        let Some(what) = unconfined_commands(&unconfined, run.asked) else { continue };
        if event.has_texts_of_strangers() {
            return Err(of_strangers(&what, event));
        }
        open.push(what);
    }
    Ok(needed)
}

/// Tells which steps without an agent run with `sandbox: off`, if any do. Agents are told of one by one.
fn unconfined_commands(unconfined: &[&Step], asked: Option<SandboxMode>) -> Option<String> {
    let asks = |step: &&&Step| step.action.as_ref().is_some_and(Action::can_ask_agent);
    let names: Vec<_> = unconfined.iter().filter(|step| !asks(step)).map(|step| step.name.as_str()).collect();
    let say = match names.len() {
        0 => return None,
        1 => "says",
        _ => "say",
    };
    let who = listed_in_part(names);
    let despite = asked.filter(|mode| *mode != SandboxMode::Off);
    let despite = despite.map_or_else(String::new, |mode| format!(", also with `--sandbox {}`", mode.word()));
    Some(format!("{who} {say} `sandbox: off`, so what runs there does whatever this user may{despite}"))
}

/// Returns what a loop says of the sandbox of a step.
fn rules_of<'m>(step: &'m Step, machine: &'m Machine) -> Option<&'m SandboxRules> {
    let own = match step.action.as_ref()? {
        Action::Shell(shell) => &shell.setting,
        Action::Prompt(prompt) => &prompt.setting,
        Action::Tool(tool) => &tool.setting,
        Action::Learning(learning) => &learning.setting,
        Action::SubLoop(_) => return machine.sandbox.as_ref(),
        Action::Board(_) | Action::Approval(_) => return None,
    };
    own.sandbox.as_ref()
}

/// Tells whether a step asks an agent whose sandbox the loop says nothing of.
fn is_open_prompt(step: &Step, machine: &Machine) -> bool {
    step.action.as_ref().is_some_and(Action::can_ask_agent) && rules_of(step, machine).is_none()
}

/// Refuses what strangers could make use of, and returns it elsewhere: it has to be said.
fn permitted(rules: &SandboxRules, step: &Step, event: &WorkflowEvent) -> Result<Option<String>, Error> {
    let asks = step.action.as_ref().is_some_and(Action::can_ask_agent);
    let what = if rules.mode == SandboxMode::Off && asks {
        format!("`{}` says `sandbox: off`, so its agent does whatever this user may", step.name)
    } else if rules.confines() && rules.net == Some(SandboxNet::Any) {
        format!(
            "`{}` says `net: any`, so it reaches everything that this machine reaches, abstract sockets too",
            step.name
        )
    } else {
        return Ok(None);
    };
    if event.has_texts_of_strangers() { Err(of_strangers(&what, event)) } else { Ok(Some(what)) }
}

fn of_strangers(what: &str, event: &WorkflowEvent) -> Error {
    Error::refused(format!("{what}; strangers can set off the event `{}`", event.name))
        .with_hint("confine it, or run the loop on another event")
}

/// What has to confine a step.
enum NeededEngine {
    None,
    /// An engine of the system.
    System,
    /// An engine of the system, or the host's own sandbox where there is none.
    SystemOrHost,
}

/// Tells what has to confine a step; refuses engines that cannot.
fn engine_of(rules: &SandboxRules, step: &Step, run: &ConfinedRun<'_>) -> Result<NeededEngine, Error> {
    let is_prompt = matches!(step.action, Some(Action::Prompt(_)));
    if !rules.confines() {
        return Ok(NeededEngine::None);
    }
    match rules.engine {
        SandboxEngine::Landlock if !rules.hide.is_empty() => {
            let message = format!("`{}` hides paths, which Landlock cannot do", step.name);
            Err(Error::refused(message)
                .with_hint("write `engine: auto`, or remove `hide`")
                .of_kind(Kind::Unavailable))
        }
        SandboxEngine::Auto if is_prompt && run.host.is_some_and(|host| may_be_left_to(host, rules)) => {
            Ok(NeededEngine::SystemOrHost)
        }
        // Where no model is asked, there is nothing to confine.
        SandboxEngine::Auto | SandboxEngine::Bwrap | SandboxEngine::Container | SandboxEngine::Landlock => {
            let is_asked = !is_prompt || run.llm == Llm::On;
            Ok(if is_asked { NeededEngine::System } else { NeededEngine::None })
        }
        SandboxEngine::Host => {
            if is_prompt && run.host.is_none_or(|host| may_be_left_to(host, rules)) {
                return Ok(NeededEngine::None);
            }
            let message = format!("`{}` leaves its sandbox to the host, which has none for that", step.name);
            Err(Error::refused(message)
                .with_hint("write `engine: auto`, or choose a host that has one, such as codex"))
        }
    }
}

fn unavailable(lack: &Lack) -> Error {
    Error::refused(format!("actions cannot be confined here: {lack}"))
        .with_hint(lack.remedy())
        .of_kind(Kind::Unavailable)
}
