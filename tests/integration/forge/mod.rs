//! Servers that are not GitHub, and what plays them.

pub(crate) mod git_server;
pub(crate) mod servers;
pub(crate) mod web;
