//! What went wrong, for a person: what happened, and what to do.

use std::error::Error;

use super::exit;
use super::output::Output;

/// An error that ends the program.
#[derive(Debug)]
pub(super) struct CliError {
    message: String,
    help: Option<String>,
    code: u8,
}

impl CliError {
    /// Makes the error of a run that never began: usage, loop file, refusal.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, code: exit::INVALID }
    }

    /// Makes an error that no loop is to blame for, with everything that led to it.
    pub(super) fn failed(what: impl Into<String>, error: &dyn Error) -> Self {
        let mut message = format!("{}: {error}", what.into());
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !message.contains(&cause_text) {
                message.push_str(": ");
                message.push_str(&cause_text);
            }
            source = cause.source();
        }
        Self { message, help: None, code: exit::ERROR }
    }

    /// Adds an advice.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Makes it an error of a run that never began.
    pub(super) fn before_the_run(mut self) -> Self {
        self.code = exit::INVALID;
        self
    }

    /// Makes it end with another code.
    pub(super) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Returns what went wrong.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the exit code.
    pub(super) fn exit_code(&self) -> u8 {
        self.code
    }

    /// Says it.
    pub(super) fn print(&self, output: &Output) {
        output.error(&self.message);
        if let Some(help) = &self.help {
            output.help(help);
        }
    }
}
