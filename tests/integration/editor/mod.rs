//! The language server, as a client of it sees it.

mod across_files;
mod client;
mod diagnostics;
mod fixes;
mod formatting;
mod hostile_clients;
mod navigation;
