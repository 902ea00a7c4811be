//! The ids of traces and spans, and the header by which one program hands them to the next: W3C Trace Context.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use super::text::hex;

/// A text that is no id, or no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a trace context, which looks like `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`"
)]
pub struct NoTraceContext;

/// An id of so many bytes, not all of which are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HexId<const BYTES: usize>([u8; BYTES]);

/// The id of a trace.
pub type TraceId = HexId<16>;

/// The id of a span.
pub type SpanId = HexId<8>;

impl<const BYTES: usize> HexId<BYTES> {
    /// Makes the id that these words always have.
    pub fn of(words: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for word in words {
            // Its length first: no two lists of words are the same bytes.
            digest.update((word.len() as u64).to_be_bytes());
            digest.update(word.as_bytes());
        }
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&digest.finalize()[..BYTES]);
        // An id of zeros means that there is none.
        if bytes == [0; BYTES] {
            bytes[0] = 1;
        }
        Self(bytes)
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<const BYTES: usize> FromStr for HexId<BYTES> {
    type Err = NoTraceContext;

    fn from_str(text: &str) -> Result<Self, NoTraceContext> {
        // The standard has lower-case digits only, and a header with others has to be ignored.
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 2 * BYTES || !text.bytes().all(is_digit) {
            return Err(NoTraceContext);
        }
        let mut bytes = [0; BYTES];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte =
                u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_digits| NoTraceContext)?;
        }
        if bytes == [0; BYTES] { Err(NoTraceContext) } else { Ok(Self(bytes)) }
    }
}

impl<const BYTES: usize> fmt::Display for HexId<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl<const BYTES: usize> fmt::Debug for HexId<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a program stands in a trace, as the header `traceparent` and the variable `TRACEPARENT` say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: TraceId,
    /// The span that is around what comes.
    pub span: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl FromStr for TraceParent {
    type Err = NoTraceContext;

    /// Reads the header. That of a later version may have more behind it, of unknown meaning.
    fn from_str(text: &str) -> Result<Self, NoTraceContext> {
        let mut parts = text.split('-');
        let mut part = || parts.next().ok_or(NoTraceContext);
        let (version, trace, span, flags) = (part()?, part()?.parse()?, part()?.parse()?, part()?);
        let byte = |digits: &str| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let is_byte = digits.len() == 2 && digits.bytes().all(is_digit);
            is_byte.then(|| u8::from_str_radix(digits, 16).ok()).flatten().ok_or(NoTraceContext)
        };
        let (version, flags) = (byte(version)?, byte(flags)?);
        let has_more = parts.next().is_some();
        if version == 0xff || (version == 0 && has_more) {
            return Err(NoTraceContext);
        }
        Ok(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl<const BYTES: usize> Serialize for HexId<BYTES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const BYTES: usize> Deserialize<'de> for HexId<BYTES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_reads_back_as_it_was_written() {
        let read: TraceParent = GIVEN.parse().unwrap();
        assert!(read.is_sampled);
        assert_eq!(read.to_string(), GIVEN);
        let unsampled: TraceParent = GIVEN.replace("-01", "-00").parse().unwrap();
        assert!(!unsampled.is_sampled);
    }

    #[test]
    fn only_a_header_is_read() {
        let other = [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01",
        ];
        for text in other {
            assert_eq!(text.parse::<TraceParent>(), Err(NoTraceContext), "{text}");
        }
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
        assert!(later.parse::<TraceParent>().is_ok(), "a later version may say more");
    }

    #[test]
    fn words_are_told_apart() {
        assert_eq!(SpanId::of(&["a", "b"]), SpanId::of(&["a", "b"]));
        assert_ne!(SpanId::of(&["a", "b"]), SpanId::of(&["ab"]));
        assert_ne!(SpanId::of(&["a", "b"]), SpanId::of(&["ab", ""]));
    }
}
