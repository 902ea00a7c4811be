//! The questions that runs have asked at one commit, as their statuses tell it, and which of them a comment means that
//! names no code.

use std::fmt;

use super::run_names::RunNames;
use crate::base::text::{listed, percent_decoded, percent_encoded};
use crate::base::time::Timestamp;

/// A question, as the status of its run tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionMark {
    /// Its code.
    pub code: String,
    /// When it is not open any more.
    pub until: Timestamp,
    /// The state that asks.
    pub state: String,
}

impl fmt::Display for QuestionMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, until, state } = self;
        write!(f, "{code}.{}.{}", until.as_millis(), percent_encoded(state))
    }
}

impl QuestionMark {
    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (code, rest) = text.split_once('.')?;
        let (until, state) = rest.split_once('.')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        Some(Self { code: code.to_owned(), until, state: percent_decoded(state) })
    }
}

/// A question at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedAtHead {
    /// Whose it is.
    pub names: RunNames,
    /// The question.
    pub question: QuestionMark,
    /// Whether it waits for an answer still.
    pub is_open: bool,
}

/// Why it is not known which question is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMeant {
    /// There is none.
    #[error("no question is open at this commit{}", of(.0.as_deref()))]
    NoneOpen(Option<String>),
    /// There is more than one.
    #[error("more than one question is open here: name the code, {}", listed(.0, "or"))]
    Several(Vec<String>),
    /// There was another one before.
    #[error("the loop has asked more than once at this commit: name the code, `{0}`")]
    AskedAgain(String),
}

fn of(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" that `{name}` is the name of"))
}

/// Finds the question that a comment without a code means: the only one that is open, of all or of those with this name,
/// and the only one that its loop has asked at this commit.
///
/// # Errors
/// There is none, or more than one.
pub fn meant<'a>(name: Option<&str>, asked: &'a [AskedAtHead]) -> Result<&'a AskedAtHead, NotMeant> {
    let bears = |asked: &&AskedAtHead| name.is_none_or(|name| asked.names.bear(name));
    let mut open: Vec<&AskedAtHead> = asked.iter().filter(|asked| asked.is_open).filter(bears).collect();
    open.dedup_by(|one, other| one.question.code == other.question.code);
    match open[..] {
        [] => Err(NotMeant::NoneOpen(name.map(str::to_owned))),
        [only] => {
            // Whoever wrote the comment may have had an earlier question of the same loop in mind.
            let is_of_same = |asked: &&AskedAtHead| {
                asked.names.loop_name == only.names.loop_name && asked.question.code != only.question.code
            };
            let code = || NotMeant::AskedAgain(only.question.code.clone());
            asked.iter().find(is_of_same).map_or(Ok(only), |_| Err(code()))
        }
        _ => Err(NotMeant::Several(open.iter().map(|asked| asked.question.code.clone()).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(loop_name: &str, code: &str, is_open: bool) -> AskedAtHead {
        let question =
            QuestionMark { code: code.to_owned(), until: Timestamp::from_millis(9), state: "ask".to_owned() };
        let instance = format!("{loop_name}-20251120T234847-1f2e");
        let names = RunNames { loop_name: loop_name.to_owned(), key: None, instance, run: 70 };
        AskedAtHead { names, question, is_open }
    }

    #[track_caller]
    fn check(name: Option<&str>, all: &[AskedAtHead], expected: &Result<&str, NotMeant>) {
        let found = meant(name, all).map(|asked| asked.question.code.as_str());
        assert_eq!(found, *expected);
    }

    #[test]
    fn a_comment_without_a_code_means_the_only_question() {
        let (a, b) = (asked("a", "0123abcd", true), asked("b", "89abcdef", true));
        let over = asked("a", "77777777", false);
        check(None, &[], &Err(NotMeant::NoneOpen(None)));
        check(None, std::slice::from_ref(&a), &Ok("0123abcd"));
        check(Some("a"), &[a.clone(), b.clone()], &Ok("0123abcd"));
        check(Some("70"), std::slice::from_ref(&a), &Ok("0123abcd"));
        check(Some("c"), &[a.clone(), b.clone()], &Err(NotMeant::NoneOpen(Some("c".to_owned()))));
        let codes = vec!["0123abcd".to_owned(), "89abcdef".to_owned()];
        check(None, &[a.clone(), b.clone()], &Err(NotMeant::Several(codes)));
        check(None, &[a.clone(), over.clone()], &Err(NotMeant::AskedAgain("0123abcd".to_owned())));
        check(Some("b"), &[a, over.clone(), b], &Ok("89abcdef"));
        check(None, &[over], &Err(NotMeant::NoneOpen(None)));
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for state in ["ask", "a b", "é:@/#)", ""] {
            let mark = QuestionMark {
                code: "0123abcd".to_owned(),
                until: Timestamp::from_millis(1_790_000_000_123),
                state: state.to_owned(),
            };
            assert_eq!(QuestionMark::parse(&mark.to_string()), Some(mark.clone()));
            assert!(!mark.to_string().contains([':', '@', '#', ')', ' ']), "{mark}");
        }
        assert_eq!(QuestionMark::parse("0123abcd"), None);
    }
}
