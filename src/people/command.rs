//! What a comment says to ll-loop: the words of its first line, and nothing else of it.

use crate::base::text::up_to;
use crate::engine::question::AnswerKind;

/// The word that a command begins with.
const WORD: &str = "/ll-loop";

/// The longest line that is read, in bytes.
const LONGEST: usize = 4096;

/// The digits of a code.
const CODE: usize = 8;

/// The longest name of a loop, a run or a key, in bytes.
const LONGEST_NAME: usize = 200;

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A question is answered.
    Answer(AnswerKind),
    /// A run that failed is to run again.
    Retry,
    /// A run that failed is to go on from where it ended.
    Resume,
    /// A run is to end, or its question.
    Stop,
    /// What a run fixed is to be brought to people.
    Deliver,
    /// The fix workflow of the repository is to run.
    Fix,
    /// What can be said is to be told.
    Help,
}

impl Verb {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 9] = [
        Self::Answer(AnswerKind::Approve),
        Self::Answer(AnswerKind::Reject),
        Self::Answer(AnswerKind::Answer),
        Self::Retry,
        Self::Resume,
        Self::Stop,
        Self::Deliver,
        Self::Fix,
        Self::Help,
    ];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answer(kind) => kind.word(),
            Self::Retry => "retry",
            Self::Resume => "resume",
            Self::Stop => "stop",
            Self::Deliver => "deliver",
            Self::Fix => "fix",
            Self::Help => "help",
        }
    }
}

/// Which question or run a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandSubject {
    /// The question with this code.
    Code(String),
    /// The loop, the run or the key with this name.
    Name(String),
}

/// A command, as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCommand {
    /// What is wanted.
    pub verb: Verb,
    /// What it is about, where it says so.
    pub subject: Option<CommandSubject>,
    /// The commit that it is about, or the beginning of its name.
    pub sha: Option<String>,
    /// With which words an answer is given.
    pub text: Option<String>,
}

impl WrittenCommand {
    /// Returns the code of the question, where it names one.
    pub fn code(&self) -> Option<&str> {
        match &self.subject {
            Some(CommandSubject::Code(code)) => Some(code),
            Some(CommandSubject::Name(_)) | None => None,
        }
    }

    /// Returns the name of what it is about. A name may look like a code.
    pub fn name(&self) -> Option<&str> {
        let (CommandSubject::Code(name) | CommandSubject::Name(name)) = self.subject.as_ref()?;
        Some(name)
    }

    /// Tells whether it is about this commit, as far as it says.
    pub fn is_about(&self, sha: &str) -> bool {
        self.sha.as_ref().is_none_or(|named| sha.starts_with(named.as_str()))
    }
}

/// Why a comment is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandFault {
    /// It is about something else.
    #[error("its first line does not begin with `/ll-loop`")]
    NotACommand,
    /// The line is too long to be one.
    #[error("its first line is longer than {LONGEST} bytes")]
    TooLong,
    /// The word is not one that means something.
    #[error("it begins with no word that is known: `/ll-loop help` tells which there are")]
    UnknownVerb,
    /// It says something, and is no answer.
    #[error("it says neither `approve` nor `reject` nor `answer`, and stops nothing")]
    NotAnAnswer,
    /// What it is about can be no name.
    #[error("what follows the first word is neither a code nor the name of a loop, a run or a key")]
    NoName,
    /// Something follows that means nothing.
    #[error("after the code or the name there may be a commit, and nothing else")]
    TooManyWords,
    /// An answer without an answer.
    #[error("it answers without a text")]
    NoText,
}

/// Reads the first line of a comment. A line that begins with anything else, such as a blank or a `>`, is a quotation or code.
pub fn read(body: &str) -> Result<WrittenCommand, CommandFault> {
    let line = up_to(body, &['\n', '\r']);
    let rest = line.strip_prefix(WORD).ok_or(CommandFault::NotACommand)?;
    // `/ll-loops` is another word.
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return Err(CommandFault::NotACommand);
    }
    if line.len() > LONGEST {
        return Err(CommandFault::TooLong);
    }
    let (word, rest) = first(rest);
    let verb = Verb::ALL.into_iter().find(|verb| verb.word() == word).ok_or(CommandFault::UnknownVerb)?;
    if verb == Verb::Answer(AnswerKind::Answer) { answer(verb, rest) } else { plain(verb, rest) }
}

/// Reads what follows `answer`: a code, if the first word is one, and a text.
fn answer(verb: Verb, rest: &str) -> Result<WrittenCommand, CommandFault> {
    let (code, text) = first(rest);
    let (subject, text) =
        if is_code(code) { (Some(CommandSubject::Code(code.to_owned())), text) } else { (None, rest) };
    let text = text.trim();
    let text = if text.is_empty() { Err(CommandFault::NoText) } else { Ok(text.to_owned()) };
    Ok(WrittenCommand { verb, subject, sha: None, text: Some(text?) })
}

/// Reads what follows the other words: what it is about, and a commit.
fn plain(verb: Verb, rest: &str) -> Result<WrittenCommand, CommandFault> {
    let (named, rest) = first(rest);
    // Only a whole one may come without a name before it: fewer digits could be the name of a loop, or a code.
    let (sha, rest) = if is_whole_sha(named) { (named, rest) } else { first(rest) };
    let subject = match named {
        "" => None,
        _ if is_whole_sha(named) => None,
        code if is_code(code) => Some(CommandSubject::Code(code.to_owned())),
        name if is_name(name) => Some(CommandSubject::Name(name.to_owned())),
        _ => return Err(CommandFault::NoName),
    };
    if !(sha.is_empty() || is_sha(sha)) || !rest.trim().is_empty() {
        return Err(CommandFault::TooManyWords);
    }
    let sha = Some(sha.to_owned()).filter(|sha| !sha.is_empty());
    Ok(WrittenCommand { verb, subject, sha, text: None })
}

/// Splits off the first word.
fn first(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    text.split_at(text.find([' ', '\t']).unwrap_or(text.len()))
}

fn is_code(word: &str) -> bool {
    word.len() == CODE && is_hex(word)
}

fn is_sha(word: &str) -> bool {
    // Git shortens the name of a commit to seven digits, and one of SHA-256 has 64.
    (7..=64).contains(&word.len()) && is_hex(word)
}

/// Tells whether a word is the full name of a commit, which no loop has.
fn is_whole_sha(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && is_hex(word)
}

/// Tells whether a word could be the name of a loop, a run or a key. It is compared with those, and shown to people.
fn is_name(word: &str) -> bool {
    let is_of_name =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'+');
    word.len() <= LONGEST_NAME
        && word.bytes().all(is_of_name)
        && word.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_hex(word: &str) -> bool {
    // Small letters only, as git and our codes have them: anything else can still be a name.
    word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(kind: AnswerKind, sha: Option<&str>, text: Option<&str>) -> WrittenCommand {
        let subject = Some(CommandSubject::Code("0123abcd".to_owned()));
        let (sha, text) = (sha.map(str::to_owned), text.map(str::to_owned));
        WrittenCommand { verb: Verb::Answer(kind), subject, sha, text }
    }

    fn named(verb: Verb, name: Option<&str>) -> WrittenCommand {
        let subject = name.map(|name| CommandSubject::Name(name.to_owned()));
        WrittenCommand { verb, subject, sha: None, text: None }
    }

    #[test]
    fn the_first_line_is_the_command() {
        use AnswerKind::{Answer, Approve, Reject};
        for (body, expected) in [
            ("/ll-loop approve 0123abcd", Ok(written(Approve, None, None))),
            ("/ll-loop\tapprove  0123abcd \r\n/ll-loop reject 0123abcd", Ok(written(Approve, None, None))),
            ("/ll-loop reject 0123abcd 89abcdef01\nbecause", Ok(written(Reject, Some("89abcdef01"), None))),
            ("/ll-loop approve 0123abcd 0123abcd", Ok(written(Approve, Some("0123abcd"), None))),
            ("/ll-loop answer 0123abcd  use $(b) `x` ", Ok(written(Answer, None, Some("use $(b) `x`")))),
            ("/ll-loop approve", Ok(named(Verb::Answer(Approve), None))),
            ("/ll-loop approve deploy", Ok(named(Verb::Answer(Approve), Some("deploy")))),
            ("/ll-loop retry team/deploy", Ok(named(Verb::Retry, Some("team/deploy")))),
            ("/ll-loop fix", Ok(named(Verb::Fix, None))),
            ("/ll-loop deliver 77", Ok(named(Verb::Deliver, Some("77")))),
            ("/ll-loop stop ../../etc", Err(CommandFault::NoName)),
            ("/ll-loop resume $(true)", Err(CommandFault::NoName)),
            ("/ll-loop approve 0123abcd please", Err(CommandFault::TooManyWords)),
            ("/ll-loop approve 0123abcd 89abcdef extra", Err(CommandFault::TooManyWords)),
            ("/ll-loop answer 0123abcd", Err(CommandFault::NoText)),
            ("/ll-loop help", Ok(named(Verb::Help, None))),
            ("/ll-loop", Err(CommandFault::UnknownVerb)),
        ] {
            assert_eq!(read(body), expected, "{body:?}");
        }
    }

    /// What looks like a command and is not one, whoever wrote it.
    #[test]
    fn forged_lines_say_nothing() {
        let good = "/ll-loop approve 0123abcd";
        let before = [
            " ",
            "\t",
            "    ",
            "> ",
            ">",
            "- ",
            "* ",
            "1. ",
            "`",
            "```\n",
            "~~~\n",
            "\n",
            "\r\n",
            "x ",
            "@bot ",
            "#",
            "\u{feff}",
            "\u{200b}",
            "\u{a0}",
            "\u{202e}",
            "\u{2028}",
            "\0",
            "\\",
            "<!-- ",
            "<p>",
            "<code>",
            "\"",
            "'",
            "(",
            "[",
            "//",
            ".",
            "LGTM\n",
            "Hello,\n\n",
            "On Monday, ada wrote:\n> ",
            "<details>\n",
            "| ",
            "> > ",
            "\u{b}",
            "\u{c}",
        ];
        for before in before {
            assert!(read(&format!("{before}{good}")).is_err(), "{before:?}");
        }
        for look_alike in [
            "/LL-loop",
            "/ll-Loop",
            "/ll_loop",
            "/ll\u{2010}loop",
            "/ll\u{2011}loop",
            "/ll\u{2013}loop",
            "/II-loop",
            "/l1-loop",
            "/\u{217c}l-loop",
            "\u{2215}ll-loop",
            "\u{ff0f}ll-loop",
            "/ll-l\u{3bf}op",
            "/ll-lo\u{43e}p",
            "/ll-loop:",
            "/ll-loop/",
            "/ll-loopapprove",
            "/ll-loop\u{a0}",
            "/ll-loop\u{200b}",
            "/ll-loop,",
            "/ll-loop-",
            "ll-loop",
            "/ll loop",
            "/ll-loo",
            "/ll--loop",
            "\u{2f}\u{338}ll-loop",
        ] {
            assert!(read(&format!("{look_alike} approve 0123abcd")).is_err(), "{look_alike:?}");
        }
        for verb in [
            "Approve",
            "APPROVE",
            "aprove",
            "approved",
            "approve:",
            "appro\u{2060}ve",
            "\u{430}pprove",
            "yes",
            "ok",
            "approve;reject",
            "$(approve)",
            "`approve`",
            "approve\u{a0}",
            "-approve",
            "--approve",
            "approve/",
            "run",
            "merge",
            "Stop",
            "retry;",
            "help\u{200b}",
        ] {
            assert!(read(&format!("/ll-loop {verb} 0123abcd")).is_err(), "{verb:?}");
        }
        for code in [
            "$(true)",
            "`0123ab`",
            "0123abc\u{ff44}",
            "0123 abcd",
            "-f",
            "--all",
            "a:b",
            "a@b",
            "@ada",
            "*",
            "../../..",
            "0123abcd;",
            "\"0123abcd\"",
            "#123abcd",
            "0123abc\0",
            "\u{0660}123abcd",
        ] {
            assert!(read(&format!("/ll-loop approve {code}")).is_err(), "{code:?}");
        }
        let long = format!("/ll-loop answer 0123abcd {}", "x".repeat(10 << 20));
        assert_eq!(read(&long), Err(CommandFault::TooLong));
        let far = format!("{}\n{good}", "x".repeat(10 << 20));
        assert_eq!(read(&far), Err(CommandFault::NotACommand));
    }

    proptest! {
        #[test]
        fn only_the_first_line_is_read(first in "[^\r\n]{0,80}", rest in ".{0,200}") {
            prop_assert_eq!(read(&format!("{first}\n{rest}")), read(&first));
        }

        #[test]
        fn whatever_is_read_is_plain(body in "/ll-loop (approve|reject|answer|stop|fix)[ \\t]?\\PC{0,60}") {
            if let Ok(written) = read(&body) {
                prop_assert!(written.name().is_none_or(is_name));
                prop_assert!(written.sha.is_none_or(|sha| is_sha(&sha)));
            }
        }
    }
}
