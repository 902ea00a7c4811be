//! Binds runs to the policy from above: finds it, asks it of loops and options, and keeps it on the record of a run.

use std::path::Path;

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::path::DocPath;
use crate::base::sandbox::{SandboxMode, SandboxRules};
use crate::base::template::Template;
use crate::base::text::one_line;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::RunOptions;
use crate::definition::load::DIRECTORY;
use crate::engine::event::PolicyRecord;
use crate::journal::claim;
use crate::journal::files::RunFiles;
use crate::machine::{Action, Budget, Machine, NotifyRule, NotifyTarget, Step};
use crate::policy::process_record::{self, KeptRecord, RecordedDocument};
use crate::policy::sandbox_floor::reaches;
use crate::policy::{
    NoticeAddress, Policy, PolicyDocument, PolicyRefusal, SandboxFloor, Switch, UnreadablePolicy,
    policy_source,
};
use crate::run::sandbox_setup::SandboxDefault;

/// The directory of copies of loops from other repositories, below that of loops.
const VENDOR: &str = "vendor";

/// Returns what binds runs that begin here, also where an action of another run begins them, whose environment says what that action
/// made of it.
///
/// # Errors
/// A policy is there, and cannot be read.
pub(crate) fn here(session: &Session<'_>) -> Result<Policy, Error> {
    let variable = session.env.get(policy_source::VARIABLE);
    let mut policy = policy_source::here(variable, &session.cwd).map_err(|why| unreadable(&why))?;
    for RecordedDocument { origin, text } in process_record::around() {
        policy.add_recorded([(origin.as_str(), text.as_str())]).map_err(|why| unreadable(&why))?;
    }
    Ok(policy)
}

/// Returns what binds somebody who does anything else than to look.
///
/// # Errors
/// A policy is there and cannot be read, or it does not allow this version.
pub(crate) fn acting(session: &Session<'_>) -> Result<Policy, Error> {
    let policy = here(session)?;
    policy.version(env!("CARGO_PKG_VERSION")).map_err(|refusal| refused(&refusal))?;
    Ok(policy)
}

/// Returns what binds runs of a checkout: what binds here, and what binds the runs that are live there. One of them may have
/// started this process, whose environment says what an action made of it.
///
/// # Errors
/// A policy is there, and cannot be read.
pub(crate) fn in_checkout(root: &Path, session: &Session<'_>) -> Result<Policy, Error> {
    let mut policy = acting(session)?;
    let running = RunFiles::running(&root.join(DIRECTORY));
    // Where claims cannot be read, no run begins either.
    let live = claim::live(&running).ok();
    let records =
        live.iter().flatten().filter_map(|run| run.record.as_ref()).flat_map(|record| &record.policy);
    let pairs = records.map(|record| (record.origin.as_str(), record.text.as_str()));
    policy.add_recorded(pairs).map_err(|why| unreadable(&why))?;
    Ok(policy)
}

/// Returns what binds somebody who starts a program beside runs, where nothing confines it.
///
/// # Errors
/// A policy is there and cannot be read, or it asks for every action to be confined.
pub(crate) fn starting(what: &str, root: &Path, session: &Session<'_>) -> Result<Policy, Error> {
    let policy = in_checkout(root, session)?;
    let is_confined = policy.sandbox_floor().is_some_and(|floor| floor.of_everything);
    match policy.sandbox_refusal(what).filter(|_| is_confined) {
        Some(refusal) => Err(refused(&refusal)),
        None => Ok(policy),
    }
}

/// Lets whatever the actions of a run start be bound by what binds the run.
pub(crate) fn keep_record(policy: &Policy, session: &Session<'_>) -> Option<KeptRecord> {
    if policy.is_empty() {
        return None;
    }
    let documents =
        records(policy).into_iter().map(|PolicyRecord { origin, text }| RecordedDocument { origin, text });
    let kept = process_record::keep(documents.collect());
    // No refusal: the run itself is bound, and what its actions start in this checkout finds its claim.
    kept.map_err(|error| {
        session.talk.warning(&format!(
            "runs that actions start outside of this checkout are not bound by the policy: {error}"
        ));
    })
    .ok()
}

/// Adds what a run has on record to what binds here.
pub(crate) fn add_records(policy: &mut Policy, recorded: &[PolicyRecord]) -> Result<(), Error> {
    let pairs = recorded.iter().map(|record| (record.origin.as_str(), record.text.as_str()));
    policy.add_recorded(pairs).map_err(|why| unreadable(&why))
}

/// A rule that is in force, for people.
pub(crate) struct ShownRule {
    /// Its name.
    pub(crate) rule: String,
    /// What it says.
    pub(crate) value: String,
    /// The file or variable, and the line.
    pub(crate) place: String,
}

/// Returns every rule that is in force. Where a rule is there twice, both hold.
pub(crate) fn shown(policy: &Policy) -> Vec<ShownRule> {
    let of = |document: &PolicyDocument| {
        let rule = |(rule, value): (String, String)| {
            let place = document.place(&rule);
            ShownRule { rule, value: one_line(&value, 200), place }
        };
        document.written().into_iter().map(rule).collect::<Vec<_>>()
    };
    policy.documents().iter().flat_map(of).collect()
}

/// Returns a policy as a run records it.
pub(crate) fn records(policy: &Policy) -> Vec<PolicyRecord> {
    let record = |document: &PolicyDocument| PolicyRecord {
        origin: document.origin().to_owned(),
        text: document.text().to_owned(),
    };
    policy.documents().iter().map(record).collect()
}

/// Returns the error of a run that a policy refuses.
pub(crate) fn refused(refusal: &PolicyRefusal) -> Error {
    Error::refused(refusal.to_string()).with_hint(refusal.help())
}

fn unreadable(why: &UnreadablePolicy) -> Error {
    let help = why
        .help
        .clone()
        .unwrap_or_else(|| "mend it; nothing is run under rules that are not known".to_owned());
    Error::refused(why.to_string()).with_hint(help)
}

/// Looks whether everything that a loop says of itself is allowed.
///
/// # Errors
/// A document does not allow it.
pub(crate) fn check_machine(policy: &Policy, machine: &Machine) -> Result<(), PolicyRefusal> {
    violations(policy, machine).into_iter().next().map_or(Ok(()), |(_, refusal)| Err(refusal))
}

/// Looks whether a run may have its options.
///
/// # Errors
/// A document does not allow one.
pub(crate) fn check_options(
    policy: &Policy,
    options: &RunOptions,
    notify: Option<&NotifyRule>,
    session: &Session<'_>,
) -> Result<(), Error> {
    let switches =
        [(Switch::AllowUntrusted, options.allow_untrusted), (Switch::PassToken, options.pass_token)];
    let given = switches.into_iter().filter(|(_, is_given)| *is_given);
    let asked = given.map(|(switch, _)| policy.switch(switch));
    let of_option = options.notify.iter().map(|address| notified(policy, address));
    let of_loop = notify.into_iter().map(|notify| match &notify.to {
        NotifyTarget::Url(address) => notified(policy, address),
        // Without a value, nobody is told.
        NotifyTarget::Variable(name) => {
            session.env.get(name).map_or(Ok(()), |address| notified(policy, address))
        }
        NotifyTarget::Command(_) => policy.notify(None),
    });
    asked
        .chain(of_option)
        .chain(of_loop)
        .collect::<Result<(), PolicyRefusal>>()
        .map_err(|refusal| refused(&refusal))
}

/// Says whether an address may be notified.
fn notified(policy: &Policy, address: &str) -> Result<(), PolicyRefusal> {
    let parsed = address.parse::<http::Uri>().ok().filter(|parsed| parsed.scheme_str() == Some("https"));
    let to = parsed.as_ref().and_then(|parsed| {
        // An address with a user in front may look like one of another host.
        let has_user = parsed.authority()?.as_str().contains('@');
        let host = parsed.host().filter(|_| !has_user)?;
        Some(NoticeAddress { host, port: parsed.port_u16().unwrap_or(443) })
    });
    policy.notify(to.as_ref())
}

/// Looks whether the files of a loop come from repositories that are allowed.
///
/// # Errors
/// A document does not allow one.
pub(crate) fn check_source(policy: &Policy, file: &Path) -> Result<(), PolicyRefusal> {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let copied = parts.windows(4).find_map(|window| match window {
        [DIRECTORY, VENDOR, owner, name] => Some(format!("{owner}/{name}")),
        _ => None,
    });
    copied.map_or(Ok(()), |repository| policy.source(&repository))
}

/// Returns what a loop says of itself that is not allowed, as findings of its file.
pub(crate) fn findings(policy: &Policy, machine: &Machine) -> Diagnostics {
    let mut found = Diagnostics::default();
    for (place, refusal) in violations(policy, machine) {
        let finding = Diagnostic::error("policy", FindingPlace::Value(place), refusal.to_string());
        found.push(finding.help(refusal.help()));
    }
    found
}

/// Returns what a loop says of itself that is not allowed, and where it does.
fn violations(policy: &Policy, machine: &Machine) -> Vec<(DocPath, PolicyRefusal)> {
    if policy.is_empty() {
        return Vec::new();
    }
    let (root, name) = (DocPath::root(), &machine.name);
    let of_loop = machine
        .sandbox
        .iter()
        .map(|rules| (root.key("sandbox"), policy.sandbox(rules, &format!("the loop `{name}`"))));
    let of_steps = machine.steps().flat_map(|(_, step)| {
        let place = root.key("states").key(step.name.as_str()).key("sandbox");
        let whose = format!("`{}` in the loop `{name}`", step.name);
        let said = said_sandboxes(step).into_iter();
        said.map(move |rules| (place.clone(), policy.sandbox(&rules, &whose)))
    });
    let of_prices = [
        (root.key("budget").key("unpriced"), machine.budget.allows_unpriced, "unpriced: allow"),
        (root.key("llm").key("prices"), !machine.llm.prices.is_empty(), "llm.prices"),
    ];
    let of_models = models(machine).map(|(place, name)| (place, policy.model(Some(&name))));
    // By these, a loop would take a cap on cost its meaning.
    let of_prices = of_prices.into_iter().filter(|(_, is_said, _)| *is_said).map(|(place, _, what)| {
        let refusal = policy.cost_refusal(&format!("`{what}` of the loop `{name}`"));
        (place, refusal.map_or(Ok(()), Err))
    });
    let all = of_loop.chain(of_steps).chain(of_models).chain(of_prices);
    all.filter_map(|(place, asked)| Some((place, asked.err()?))).collect()
}

/// Returns the models that a loop names, as far as they are known before it runs.
fn models(machine: &Machine) -> impl Iterator<Item = (DocPath, String)> {
    written_models(machine).filter_map(|(place, model)| Some((place, model.as_literal()?.into_owned())))
}

/// Returns the models that a loop names, as it writes them.
pub(crate) fn model_templates(machine: &Machine) -> impl Iterator<Item = &Template> {
    written_models(machine).map(|(_, model)| model)
}

fn written_models(machine: &Machine) -> impl Iterator<Item = (DocPath, &Template)> {
    let of_steps = machine.steps().flat_map(|(_, step)| {
        let place = DocPath::root().key("states").key(step.name.as_str());
        let prompt = match &step.action {
            Some(Action::Prompt(prompt)) => Some(prompt),
            Some(_) | None => None,
        };
        let named = prompt.into_iter().flat_map(|prompt| {
            [("model", prompt.model.as_ref()), ("fallback_model", prompt.fallback_model.as_ref())]
        });
        named.filter_map(move |(key, model)| Some((place.key(key), model?)))
    });
    let of_judges = machine.llm.model.iter().map(|model| (DocPath::root().key("llm").key("model"), model));
    of_steps.chain(of_judges)
}

/// Returns what a step says of its sandbox, in whichever way it does.
fn said_sandboxes(step: &Step) -> Vec<SandboxRules> {
    let (setting, of_prompt) = match &step.action {
        Some(Action::Shell(shell)) => (Some(&shell.setting), None),
        Some(Action::Prompt(prompt)) => (Some(&prompt.setting), prompt.sandbox),
        Some(Action::Tool(tool)) => (Some(&tool.setting), None),
        Some(Action::Learning(learning)) => (Some(&learning.setting), None),
        Some(Action::SubLoop(_) | Action::Board(_) | Action::Approval(_)) | None => (None, None),
    };
    let said = setting.and_then(|setting| setting.sandbox.clone());
    // A host may be told to keep its agent from writing beside what confines it.
    let of_prompt = of_prompt.filter(|_| said.is_none()).map(SandboxRules::of);
    said.into_iter().chain(of_prompt).collect()
}

/// Caps what somebody asks for by what the policy allows a run.
pub(crate) fn capped(asked: Budget, policy: &Policy) -> Budget {
    let caps = policy.run_caps();
    let is_capped = caps.cost_usd.is_some();
    let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
    Budget {
        cost_usd: least(asked.cost_usd, caps.cost_usd),
        tokens: asked.tokens.into_iter().chain(caps.tokens.map(u64::from)).min(),
        calls: asked.calls.into_iter().chain(caps.calls).min(),
        // What has no price would not count against the cap.
        allows_unpriced: asked.allows_unpriced && !is_capped,
    }
}

/// Raises what confines actions whose loop says nothing to what the policy asks for.
///
/// # Errors
/// The command line asks for less.
pub(crate) fn raised(
    default: SandboxDefault,
    floor: Option<SandboxFloor>,
    asked: Option<SandboxMode>,
    policy: &Policy,
) -> Result<SandboxDefault, Error> {
    let Some(floor) = floor else { return Ok(default) };
    if let Some(asked) = asked.filter(|asked| !reaches(*asked, floor.mode)) {
        let refusal = policy.sandbox_refusal(&format!("`--sandbox {}`", asked.word()));
        if let Some(refusal) = refusal {
            return Err(refused(&refusal));
        }
    }
    let rules = |rules: SandboxRules| {
        if reaches(rules.mode, floor.mode) { rules } else { SandboxRules::of(floor.mode) }
    };
    Ok(match default {
        SandboxDefault::Everything(said) => SandboxDefault::Everything(rules(said)),
        SandboxDefault::Prompts(said) if floor.of_everything => SandboxDefault::Everything(rules(said)),
        SandboxDefault::Prompts(said) => SandboxDefault::Prompts(rules(said)),
        SandboxDefault::Nothing if floor.of_everything => {
            SandboxDefault::Everything(SandboxRules::of(floor.mode))
        }
        SandboxDefault::Nothing => SandboxDefault::Prompts(SandboxRules::of(floor.mode)),
    })
}
