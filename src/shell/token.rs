//! The parts of a shell text.

use std::ops::Range;

/// A part of a shell text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellToken {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub range: Range<usize>,
    /// What a word in it reads.
    pub reads: Reads,
    /// The texts in it that are commands themselves: what stands in `$(…)`, `<(…)` and backticks.
    pub bodies: Vec<Range<usize>>,
}

/// What a part of a shell text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word with nothing in it that is quoted or substituted, which can be a keyword.
    Plain,
    /// Any other word.
    Word,
    /// `((…))`, as one piece.
    Arithmetic,
    /// A redirection, with its target.
    Redirection {
        /// Whether it opens a file that need not be there.
        opens: bool,
    },
    /// What stands between commands.
    Operator(ShellOperator),
}

/// What stands between commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellOperator {
    /// The end of a line, or `;`.
    End,
    /// `&`
    Background,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|` or `|&`
    Pipe,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `;;`, `;&` or `;;&`
    CaseEnd,
}

/// What a word looks at besides its own letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The output of commands.
    pub commands: bool,
    /// How the command before it ended.
    pub end: CommandEnd,
    /// `$!`: the command in the background before it.
    pub background: bool,
}

/// What a word says about the end of the command before it, the most last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandEnd {
    /// Nothing.
    #[default]
    Nothing,
    /// Its exit code, `$?`.
    Code,
    /// That of each part of a pipeline, `PIPESTATUS`.
    EachCode,
}

/// What stands around a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateQuotes {
    /// Nothing: a word can stand there.
    Nothing,
    /// `"…"`
    DoubleQuotes,
    /// `'…'` or `$'…'`
    SingleQuotes,
    /// `` `…` ``
    Backticks,
    /// `$((…))` or `((…))`
    Arithmetic,
    /// The lines below `<<EOF`.
    HereDocument,
    /// `# …`
    Comment,
    /// The words of `eval`, which are read a second time.
    Eval,
    /// A backslash, which takes the quote that the value begins with.
    Backslash,
}

impl TemplateQuotes {
    /// Says where the template stands.
    pub fn words(self) -> &'static str {
        match self {
            Self::Nothing => "as a word of a command",
            Self::DoubleQuotes => "within double quotes",
            Self::SingleQuotes => "within single quotes",
            Self::Backticks => "within backticks",
            Self::Arithmetic => "within arithmetic",
            Self::HereDocument => "within a here-document",
            Self::Comment => "within a comment",
            Self::Eval => "behind `eval`",
            Self::Backslash => "behind a backslash",
        }
    }
}
