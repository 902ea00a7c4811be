//! Words that every layer speaks: names, time, places in documents, templates, diagnostics, redaction.

pub mod command;
pub mod composed;
pub mod decode;
pub mod diagnostic;
mod dump;
pub mod escape;
pub mod format;
mod forms;
pub mod gitpath;
pub mod name;
pub mod node;
pub mod object;
pub mod own;
pub(crate) mod parsed;
pub mod path;
pub mod protected_paths;
pub mod reason;
pub mod redact;
pub mod relative;
pub mod sandbox;
mod signs;
pub mod slug;
pub mod sum;
pub mod template;
pub mod territory;
pub mod text;
pub mod time;
