//! `ll-loop lsp`: the language server for editors, on standard input and output.

use clap::Args;

use crate::context::Session;
use crate::editor::server;

/// The arguments of `lsp`.
#[derive(Debug, Args)]
pub(in crate::cli) struct LspArgs {
    /// Talk on standard input and output, which is what happens anyway: many editors say so
    #[arg(long)]
    stdio: bool,
}

/// Serves an editor. Loops with names among the words for `commands` get a warning.
pub(in crate::cli) fn lsp(_: &LspArgs, commands: Vec<String>, session: &Session<'_>) -> u8 {
    // The protocol has a server that leaves without being asked end with 1.
    u8::from(!server::serve(commands, session.env))
}
