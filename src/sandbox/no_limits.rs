//! What a process takes from itself, where the system has nothing for that.

use std::io;

use super::landlock_rules::LandlockRules;

/// Says that there is no Landlock.
///
/// # Errors
/// Always.
pub(super) fn landlock_is_scoped() -> Result<bool, String> {
    Err("only Linux has it".to_owned())
}

/// Refuses: there is nothing to hand filters to.
///
/// # Errors
/// Always.
pub(super) fn filter_calls() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Refuses: there is nothing that would keep to it.
///
/// # Errors
/// Always.
pub(super) fn keep_to(_: &LandlockRules) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
