//! Keeps the end of a stream in bounded memory, whatever the stream does.

use std::collections::VecDeque;

use crate::evaluate::observation::Text;

/// How much of each stream is kept in memory.
pub const KEPT: usize = 8 * 1024 * 1024;

/// The end of a stream, and how long the stream was.
#[derive(Debug)]
pub struct Capture {
    kept: VecDeque<u8>,
    limit: usize,
    total: u64,
}

impl Capture {
    /// Makes a capture that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { kept: VecDeque::new(), limit, total: 0 }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.kept.len() + bytes.len()).saturating_sub(self.limit);
        self.kept.drain(..excess);
        if self.kept.capacity() < self.kept.len() + bytes.len() {
            // Doubling would end at up to twice the limit; the last step goes to the limit and no further.
            let wanted =
                (self.kept.capacity() * 2).clamp(self.kept.len() + bytes.len(), self.limit.max(bytes.len()));
            self.kept.reserve_exact(wanted - self.kept.len());
        }
        self.kept.extend(bytes);
    }

    /// Returns what was kept as text; what is not UTF-8 is replaced.
    pub fn into_text(self) -> Text {
        let truncated = self.total > self.kept.len() as u64;
        let mut bytes = Vec::from(self.kept);
        if truncated {
            // The cut may go through a character. Up to three bytes of it can be left.
            let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            bytes.drain(..cut);
        }
        // Text that is valid, as it nearly always is, is taken over without a copy of its
        // megabytes.
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        if truncated { Text::end_of(text, self.total) } else { Text::whole(text) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(limit: usize, chunks: &[&[u8]]) -> Text {
        let mut capture = Capture::new(limit);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.into_text()
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        let text = captured(10, &[b"ab", b"cd"]);
        assert_eq!((text.as_str(), text.bytes(), text.is_truncated()), ("abcd", 4, false));
    }

    #[test]
    fn of_a_long_stream_the_end_is_kept() {
        let text = captured(4, &[b"abc", b"defg"]);
        assert_eq!((text.as_str(), text.bytes(), text.is_truncated()), ("defg", 7, true));
        assert_eq!(captured(4, &[b"abcdefgh"]).as_str(), "efgh");
    }

    #[test]
    fn invalid_utf8_is_replaced_and_a_cut_character_dropped() {
        assert_eq!(captured(9, &[b"\xff\xfeok"]).as_str(), "\u{fffd}\u{fffd}ok");
        assert_eq!(captured(3, &["aé!x".as_bytes()]).as_str(), "!x");
    }

    proptest! {
        #[test]
        fn the_end_is_the_end(limit in 1usize..40, chunks in prop::collection::vec("[a-z]{0,30}", 0..6)) {
            let whole = chunks.concat();
            let text = captured(limit, &chunks.iter().map(String::as_bytes).collect::<Vec<_>>());
            prop_assert_eq!(text.as_str(), &whole[whole.len().saturating_sub(limit)..]);
            prop_assert_eq!(text.bytes(), whole.len() as u64);
        }
    }
}
