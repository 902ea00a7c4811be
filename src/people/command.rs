//! What a comment says to ll-loop: the words of its first line, and nothing else of it.

use crate::engine::question::AnswerKind;

/// The word that a command begins with.
const WORD: &str = "/ll-loop";

/// The longest line that is read, in bytes.
const LONGEST: usize = 4096;

/// The digits of a code.
const CODE: usize = 8;

/// An answer, as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAnswer {
    /// What it says.
    pub kind: AnswerKind,
    /// The code of the question.
    pub code: String,
    /// The commit that it is about, or the beginning of its name.
    pub sha: Option<String>,
    /// With which words.
    pub text: Option<String>,
}

/// Why a comment is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandFault {
    /// It is about something else.
    #[error("its first line does not begin with `/ll-loop`")]
    NotACommand,
    /// The line is too long to be one.
    #[error("its first line is longer than {LONGEST} bytes")]
    TooLong,
    /// The word is not one that answers.
    #[error("it says neither `approve` nor `reject` nor `answer`")]
    NotAnAnswer,
    /// It does not say which question is meant.
    #[error("it does not name the code of the question, eight digits and letters")]
    NoCode,
    /// Something follows that means nothing.
    #[error("after the code there may be a commit, and nothing else")]
    TooManyWords,
    /// An answer without an answer.
    #[error("it answers without a text")]
    NoText,
}

/// Reads the first line of a comment. A line that begins with anything else, such as a blank or a `>`, is a quotation or code.
pub fn read(body: &str) -> Result<WrittenAnswer, CommandFault> {
    let line = body.split(['\n', '\r']).next().unwrap_or_default();
    let rest = line.strip_prefix(WORD).ok_or(CommandFault::NotACommand)?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return Err(CommandFault::NotACommand);
    }
    if line.len() > LONGEST {
        return Err(CommandFault::TooLong);
    }
    let (verb, rest) = first(rest);
    let kind =
        AnswerKind::ALL.into_iter().find(|kind| kind.word() == verb).ok_or(CommandFault::NotAnAnswer)?;
    let (code, rest) = first(rest);
    if !is_code(code) {
        return Err(CommandFault::NoCode);
    }
    let code = code.to_owned();
    if kind == AnswerKind::Answer {
        let text = rest.trim();
        let text = if text.is_empty() { Err(CommandFault::NoText) } else { Ok(text.to_owned()) };
        return Ok(WrittenAnswer { kind, code, sha: None, text: Some(text?) });
    }
    let (sha, rest) = first(rest);
    if !(sha.is_empty() || is_sha(sha)) || !rest.trim().is_empty() {
        return Err(CommandFault::TooManyWords);
    }
    let sha = Some(sha.to_owned()).filter(|sha| !sha.is_empty());
    Ok(WrittenAnswer { kind, code, sha, text: None })
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
    (7..=64).contains(&word.len()) && is_hex(word)
}

fn is_hex(word: &str) -> bool {
    word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(kind: AnswerKind, sha: Option<&str>, text: Option<&str>) -> WrittenAnswer {
        let (sha, text) = (sha.map(str::to_owned), text.map(str::to_owned));
        WrittenAnswer { kind, code: "0123abcd".to_owned(), sha, text }
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
            ("/ll-loop approve", Err(CommandFault::NoCode)),
            ("/ll-loop approve 0123ABCD", Err(CommandFault::NoCode)),
            ("/ll-loop approve 0123abc", Err(CommandFault::NoCode)),
            ("/ll-loop approve 0123abcd please", Err(CommandFault::TooManyWords)),
            ("/ll-loop approve 0123abcd 89abcdef extra", Err(CommandFault::TooManyWords)),
            ("/ll-loop answer 0123abcd", Err(CommandFault::NoText)),
            ("/ll-loop help", Err(CommandFault::NotAnAnswer)),
            ("/ll-loop", Err(CommandFault::NotAnAnswer)),
        ] {
            assert_eq!(read(body), expected, "{body:?}");
        }
    }

    /// What looks like a command and is none, whoever wrote it.
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
            "deliver",
            "stop",
        ] {
            assert!(read(&format!("/ll-loop {verb} 0123abcd")).is_err(), "{verb:?}");
        }
        for code in [
            "",
            "0",
            "0123abc",
            "0123abcde",
            "0123abcg",
            "0123ABCD",
            "$(true)",
            "`0123ab`",
            "0123abc\u{ff44}",
            "0123 abcd",
            "*",
            "../../..",
            "0123abcd;",
            "\"0123abcd\"",
            "#123abcd",
            "0123abc\0",
            "\u{0660}123abcd",
            "all",
            "latest",
            "main",
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
        fn whatever_is_read_has_a_plain_code(body in "/ll-loop (approve|reject|answer)[ \\t]?\\PC{0,60}") {
            if let Ok(written) = read(&body) {
                prop_assert!(is_code(&written.code));
                prop_assert!(written.sha.is_none_or(|sha| is_sha(&sha)));
            }
        }
    }
}
