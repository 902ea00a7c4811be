//! What a process takes from itself, where the system has nothing for that.

use std::io;

use super::landlock_rules::LandlockRules;

/// Says that there is no Landlock.
///
/// # Errors
/// Always.
pub(super) fn landlock_is_scoped() -> io::Result<bool> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has it"))
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
