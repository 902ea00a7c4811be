//! Reads an input as a plan: numbers and texts from the front, whatever is left at the end.

use std::borrow::Cow;

/// An input that is used up from the front. There is always something: nothing is zeros.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'d>(&'d [u8]);

impl<'d> Plan<'d> {
    /// Begins at the front.
    pub fn new(data: &'d [u8]) -> Self {
        Self(data)
    }

    /// Takes a byte.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    /// Takes a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % bound.max(1)
    }

    /// Takes what stands before the next line end.
    pub fn line(&mut self) -> &'d [u8] {
        let end = self.0.iter().position(|byte| *byte == b'\n');
        let (line, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        line
    }

    /// Returns everything that is left.
    pub fn rest(self) -> &'d [u8] {
        self.0
    }

    /// Returns everything that is left as text.
    pub fn text(self) -> Cow<'d, str> {
        String::from_utf8_lossy(self.0)
    }
}
