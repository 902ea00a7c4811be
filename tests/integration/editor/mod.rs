//! The language server, as a client of it sees it.

mod client;
mod diagnostics;
mod hostile_clients;
