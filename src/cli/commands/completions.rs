//! The arguments of `ll-loop completions` and `ll-loop complete-line`. What they do needs the whole command line, and is
//! in `cli::completions`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CompletionsArgs {
    /// The shell that loads the script
    #[arg(value_name = "SHELL", value_enum)]
    pub(in crate::cli) shell: CompletionShell,
}

/// The shells that can be completed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum CompletionShell {
    /// source <(ll-loop completions bash)
    Bash,
    /// source <(ll-loop completions zsh)
    Zsh,
    /// ll-loop completions fish | source
    Fish,
    /// ll-loop completions powershell | Out-String | Invoke-Expression
    #[value(name = "powershell", alias = "pwsh")]
    Power,
}

/// The arguments of `complete-line`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CompleteLineArgs {
    /// The place of the word that is completed, from 0
    pub(in crate::cli) at: usize,
    /// The words of the line, beginning with the name of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(in crate::cli) words: Vec<OsString>,
}
