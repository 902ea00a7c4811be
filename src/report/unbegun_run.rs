//! A run that could not begin, for the reports that are made of runs: a job that only fails tells nobody why.

use crate::base::text::one_line;

/// Why a run could not begin, in the word that its reports have for its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// The loop, the options or the circumstances do not allow it.
    Invalid,
    /// Another run or process holds what it needs.
    Locked,
    /// A service did not answer.
    Unavailable,
    /// A signal came first.
    Interrupted,
    /// Something failed outside of the loop.
    Error,
}

impl Hindrance {
    /// Returns the word that is written everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Locked => "locked",
            Self::Unavailable => "unavailable",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }
}

/// A mistake in a loop file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The file, from the directory of the loop.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

impl Mistake {
    /// Returns what is wrong, and what to do about it.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.message, help(self.help.as_deref()))
    }
}

/// A run that could not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbegun {
    /// The loop, as far as its name is known.
    pub loop_name: String,
    /// The loop file; empty if there is none.
    pub file: String,
    /// Why.
    pub hindrance: Hindrance,
    /// The exit code.
    pub exit_code: u8,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The mistakes in the loop file that were found.
    pub mistakes: Vec<Mistake>,
}

impl Unbegun {
    /// Returns what to say in one sentence.
    pub(super) fn sentence(&self) -> String {
        format!("{}: {}", self.hindrance.word(), one_line(&self.message, 500))
    }

    /// Returns the line of the loop file that is to be looked at first.
    pub(super) fn line(&self) -> Option<u32> {
        // A mistake may stand in an imported file, and the line is shown as one of the loop file.
        let first = self.mistakes.iter().find(|mistake| mistake.file == self.file);
        first.and_then(|mistake| mistake.line)
    }

    /// Returns what there is to read beyond the sentence, one thing a line.
    pub(super) fn details(&self) -> String {
        let mistakes = self.mistakes.iter().map(|mistake| {
            let Mistake { file, line, column, .. } = mistake;
            let numbers = [*line, *column].into_iter().flatten().map(|number| format!(":{number}"));
            format!("\n{file}{}: {}", numbers.collect::<String>(), mistake.text())
        });
        let text = format!("{}{}", help(self.help.as_deref()), mistakes.collect::<String>());
        text.trim_start().to_owned()
    }
}

fn help(help: Option<&str>) -> String {
    help.map_or_else(String::new, |help| format!("\nhelp: {help}"))
}
