//! How the log of a CI system is spoken to: groups, annotations, masks, and how text from actions is kept from
//! speaking to it.

use std::borrow::Cow;

use super::annotations::Annotation;
use crate::base::time::Timestamp;

/// The language of one CI system's log. Its texts are whole lines without their line ends.
pub trait Dialect: Send {
    /// Returns the line that opens a group at this time.
    fn group_start(&mut self, title: &str, at: Timestamp) -> String;

    /// Returns the line that closes the open group at this time, where one is needed.
    fn group_end(&mut self, at: Timestamp) -> Option<String>;

    /// Makes a line of ours seen that stands between groups. Where a group lasts until the next one begins, the line
    /// has to begin one itself.
    fn between_groups(&self, line: String) -> String {
        line
    }

    /// Makes everything from this line on seen without opening anything.
    fn in_the_open(&self, line: String) -> String {
        line
    }

    /// Makes a piece of text from outside harmless in the middle of one of our lines: no line ends, no escapes, and
    /// nothing that the CI system would obey wherever it stands. What is obeyed at the beginning of a line is not
    /// its concern: every line of ours begins with a visible character of our own.
    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str>;

    /// Breaks what the CI system would obey in a line that somebody else may have written, by what is put before a
    /// character. Nothing of the line goes.
    fn disarmed<'a>(&self, line: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(line)
    }

    /// Returns the line that turns commands off, for the block of text from outside that follows, where there is one.
    /// The block ends with a token that nobody can guess, or with the one that is given.
    fn block_start(&mut self, _token: Option<String>) -> Option<String> {
        None
    }

    /// Returns a token that nobody can guess, where blocks end with one.
    fn new_token(&self) -> Option<String> {
        None
    }

    /// Returns the token that ends the block that is open, where there is one.
    fn token(&self) -> Option<&str> {
        None
    }

    /// Returns the line that turns commands on again; nothing when they are on.
    fn block_end(&mut self) -> Option<String> {
        None
    }

    /// Returns the line that shows an annotation.
    fn annotation(&self, annotation: &Annotation) -> String;

    /// Returns the line that makes the CI system hide a value, where it can.
    fn mask(&self, _value: &str) -> Option<String> {
        None
    }
}
