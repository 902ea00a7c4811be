//! Decides before a run starts who holds the key of the service that agents ask, and says so.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::broker::{
    GivenPrice, KeyHolder, NeededSetting, PriceList, Upstream, Wiring, as_of, holder, keyless,
};
use crate::context::error::Error;
use crate::context::options::LlmOptions;
use crate::context::{Session, binding};
use crate::files::read;
use crate::forge::github::http::Transport;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::host::Host;
use crate::machine::{BrokerUse, Machine};
use crate::policy::Policy;
use crate::run::brokerage::Brokerage;

/// The largest file of settings that is read.
const MOST_SETTINGS: u64 = read::MIB;

/// Takes the key of the host out of what everything else of the run sees, where we are to hold it. This comes before
/// anything is rendered.
///
/// # Errors
/// The variable that names the service names none.
pub(crate) fn withhold(
    options: &LlmOptions,
    machine: &Machine,
    policy: &Policy,
    host: Option<&'static dyn Host>,
    in_ci: bool,
    session: &Session<'_>,
) -> Result<Option<KeyHolder>, Error> {
    let Some(host) = host.filter(|_| is_wanted(options, machine, policy, in_ci)) else { return Ok(None) };
    let held = holder(host.name(), &session.env.lookup()).map_err(|why| {
        Error::refused(why.to_string()).with_hint(
            "write an `https://` address, or `broker: off`, with which the key is in the hands of the host",
        )
    })?;
    let KeyHolder::Broker(wiring) = &held else { return Ok(Some(held)) };
    if let Some(NeededSetting { file, pointer, value, .. }) = unsaid(wiring, session) {
        let key = pointer.trim_start_matches('/').replace('/', ".");
        return Ok(Some(KeyHolder::Host(format!(
            "`{}` takes another address only where `~/{file}` says `{key}: \"{value}\"`",
            host.name()
        ))));
    }
    session.env.withhold(wiring.credentials());
    Ok(Some(held))
}

/// Returns how a host is told to ask us where a recording answers at the wire, and takes its keys out of what everything
/// else of the run sees: nobody needs them. None where it cannot be told, or where the key is to be in its hands.
pub(crate) fn replayed(
    options: &LlmOptions,
    machine: &Machine,
    host: &'static dyn Host,
    session: &Session<'_>,
) -> Option<Wiring> {
    let is_off = options.broker.or(machine.broker) == Some(BrokerUse::Off);
    let wiring = keyless(host.name()).filter(|wiring| !is_off && unsaid(wiring, session).is_none())?;
    session.env.withhold(wiring.credentials());
    Some(wiring)
}

/// Makes a broker that answers from a recording, and says so.
pub(crate) fn settle_replayed(
    wiring: Wiring,
    machine: &Machine,
    policy: &Policy,
    host: &'static dyn Host,
    session: &Session<'_>,
) -> Brokerage {
    session.talk.note(&format!(
        "wire: what the recording has no answer to is asked of `{}`, whose service the recording plays; no network, no key",
        host.name()
    ));
    // Nobody is asked by it.
    opened(wiring, machine, policy, Upstream::new(&Transport::default()), session)
}

/// Makes a broker whose tokens are masked, by the CI system as well.
fn opened(
    wiring: Wiring,
    machine: &Machine,
    policy: &Policy,
    upstream: Upstream,
    session: &Session<'_>,
) -> Brokerage {
    let tokens = session.env.call_tokens().to_owned();
    // A session may hide what another environment holds.
    session.redactor.learn(&tokens);
    session.mask(std::slice::from_ref(&tokens));
    Brokerage::new(wiring, prices(machine), upstream, Arc::new(policy.clone()), tokens)
}

fn prices(machine: &Machine) -> PriceList {
    PriceList::new(
        machine
            .llm
            .prices
            .iter()
            .map(|(name, price)| (name.clone(), GivenPrice { input: price.input, output: price.output })),
    )
}

/// Returns what the settings of the user would have to say for a host to take another address, where they do not.
fn unsaid(wiring: &Wiring, session: &Session<'_>) -> Option<NeededSetting> {
    wiring.setting().filter(|setting| !is_said(setting, session))
}

/// Tells whether the settings of the user say something.
fn is_said(setting: &NeededSetting, session: &Session<'_>) -> bool {
    let said = || {
        let home = session.env.get(setting.home).or_else(|| session.env.get("HOME"))?;
        let text = read::text(&Path::new(home).join(setting.file), MOST_SETTINGS).ok()?;
        let settings: Value = serde_json::from_str(&text).ok()?;
        settings.pointer(setting.pointer)?.as_str().map(str::to_owned)
    };
    said().as_deref() == Some(setting.value)
}

/// Tells whether we are to hold the key: where the command line, the loop or a policy says so, and else in CI.
fn is_wanted(options: &LlmOptions, machine: &Machine, policy: &Policy, in_ci: bool) -> bool {
    match options.broker.or(machine.broker) {
        Some(BrokerUse::Auto) => true,
        Some(BrokerUse::Off) => false,
        None => in_ci || policy.broker_refusal("").is_some(),
    }
}

/// Says who holds the key, and makes the broker where we do.
///
/// # Errors
/// The key is in the hands of the host, and strangers can set off the run; or there is no way to the service.
pub(crate) fn settle(
    held: Option<KeyHolder>,
    machine: &Machine,
    policy: &Policy,
    host: &'static dyn Host,
    in_ci: bool,
    session: &Session<'_>,
) -> Result<Option<Brokerage>, Error> {
    let why = match held {
        Some(KeyHolder::Broker(wiring)) => {
            session.talk.note(&format!(
                "key: with the broker (`{}`); `{}` gets an address on this machine and a token of each call; prices of {}",
                wiring.variable,
                host.name(),
                as_of(),
            ));
            let transport = Transport::from_env(&session.env.lookup()).map_err(Error::refused)?;
            return Ok(Some(opened(*wiring, machine, policy, Upstream::new(&transport), session)));
        }
        Some(KeyHolder::Host(why)) => why,
        None if in_ci || policy.broker_refusal("").is_some() => "`broker: off`".to_owned(),
        None => return Ok(None),
    };
    let what = format!("key: in the host's hands ({why})");
    if let Some(refusal) = policy.broker_refusal(&format!("a key in the hands of `{}` ({why})", host.name()))
    {
        return Err(binding::refused(&refusal));
    }
    let event = WorkflowEvent::read(&session.env.lookup());
    if in_ci && event.has_texts_of_strangers() {
        let message = format!("{what}; strangers can set off the event `{}`", event.name);
        let advice = "give the key of an API in the environment, with which `broker: auto` keeps it from the agent, or run the \
                    loop on another event";
        return Err(Error::refused(message).with_hint(advice));
    }
    session.talk.note(&what);
    Ok(None)
}
