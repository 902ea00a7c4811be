//! Words that every layer speaks: names, time, places in documents, templates, diagnostics, redaction.

pub mod decode;
pub mod diagnostic;
pub mod escape;
pub mod format;
pub mod name;
pub mod node;
pub mod path;
pub mod redact;
pub mod template;
pub mod territory;
pub mod text;
pub mod time;
