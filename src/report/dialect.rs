//! How the log of a CI system is spoken to: groups, annotations, masks, and how text from actions is kept from
//! speaking to it.

use std::borrow::Cow;

use super::annotations::Annotation;

/// The language of one CI system's log. Its texts are whole lines without their line ends.
pub trait Dialect {
    /// Returns the name of the CI system.
    fn name(&self) -> &'static str;

    /// Returns the line that opens a group.
    fn group_start(&self, title: &str) -> String;

    /// Returns the line that closes the group, where one is needed.
    fn group_end(&self) -> Option<String>;

    /// Makes a piece of text from outside harmless in the middle of one of our lines: no line ends, no escapes, and
    /// nothing that the CI system would obey wherever it stands. What is obeyed at the beginning of a line is not
    /// its concern: every line of ours begins with a visible character of our own.
    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str>;

    /// Returns the line that turns commands off, for the block of text from outside that follows.
    fn block_start(&mut self) -> Option<String>;

    /// Returns the line that turns commands on again; nothing when they are on.
    fn block_end(&mut self) -> Option<String>;

    /// Returns the line that shows an annotation.
    fn annotation(&self, annotation: &Annotation) -> String;

    /// Returns the line that makes the CI system hide a value, where it can.
    fn mask(&self, value: &str) -> Option<String>;
}
