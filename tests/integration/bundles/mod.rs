//! Runs that go to another machine in a file.

pub(crate) mod bundle;
pub(crate) mod hostile_bundles;
