//! The digest of a file, as other files record it: SHA-256 in hexadecimal digits.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use super::text::hex;

/// The error for a text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a SHA-256 digest of 64 lower-case hexadecimal digits")]
pub struct SumError;

/// A digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sum([u8; 32]);

impl Sum {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Ends a digest that was fed in pieces.
    pub fn end(digest: Sha256) -> Self {
        Self(digest.finalize().into())
    }

    /// Reads what [`Display`](fmt::Display) wrote: 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, SumError> {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            // Capital letters are refused, so that one digest has one text.
            _ => Err(SumError),
        };
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(SumError);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_as_it_was_written_and_nothing_else_does() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sum::of(b"abc").to_string(), text);
        assert_eq!(Sum::parse(text), Ok(Sum::of(b"abc")));
        for wrong in ["", "ba78", &text[1..], &text.to_uppercase(), &text.replace('b', "g"), &"é".repeat(32)]
        {
            assert_eq!(Sum::parse(wrong), Err(SumError), "{wrong}");
        }
    }
}
