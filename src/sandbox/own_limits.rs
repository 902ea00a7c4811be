//! What a process takes from itself before it starts an action: system calls, and what Landlock does not allow it.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};

use super::filter::filters;
use super::landlock_rules::LandlockRules;

/// The interface that is needed: it knows of renames, truncation and ports.
const NEEDED: ABI = ABI::V4;

/// The first one that keeps signals and abstract sockets in.
const SCOPED: ABI = ABI::V6;

/// Tells whether Landlock works here, and whether it keeps signals and abstract sockets in, by making a set of rules that
/// nobody is bound to.
///
/// # Errors
/// It does not.
pub(super) fn landlock_is_scoped() -> io::Result<bool> {
    let made = ruleset(true, false).and_then(Ruleset::create);
    made.map_err(io::Error::other)?;
    Ok(ruleset(true, true).and_then(Ruleset::create).is_ok())
}

/// Hands the filters of system calls to the kernel, for this thread and what it starts from now on.
///
/// # Errors
/// The kernel does not take them.
pub(super) fn filter_calls() -> io::Result<()> {
    filters().map_err(io::Error::other)?.apply().map_err(io::Error::other)
}

/// Keeps this thread, and what it starts from now on, to what Landlock allows.
///
/// # Errors
/// Landlock cannot do all of it.
pub(super) fn keep_to(rules: &LandlockRules) -> io::Result<()> {
    let kept = || -> Result<(), RulesetError> {
        let made = ruleset(rules.connect.is_some(), rules.is_scoped)?.create()?;
        let made = made
            .add_rules(path_beneath_rules(&rules.read, AccessFs::from_read(NEEDED)))?
            .add_rules(path_beneath_rules(&rules.write, AccessFs::from_all(NEEDED)))?;
        let ports = rules.connect.iter().flatten();
        made.add_rules(ports.map(|port| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp))))?
            .restrict_self()?;
        Ok(())
    };
    kept().map_err(io::Error::other)
}

/// Begins a set of rules. What the kernel does not know of it is an error.
fn ruleset(has_ports: bool, is_scoped: bool) -> Result<Ruleset, RulesetError> {
    let mut made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?;
    if has_ports {
        made = made.handle_access(AccessNet::ConnectTcp)?;
    }
    if is_scoped {
        made = made.scope(Scope::from_all(SCOPED))?;
    }
    Ok(made)
}
