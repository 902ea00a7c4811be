//! Ids of git objects, parsed once, so that a text from outside can never be an option or a path for git.

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::parsed::parsed;
use super::text::{hex, is_hex};

/// The digits of an id in repositories with SHA-256; in all others there are 40.
const DIGITS_OF_SHA256: usize = 64;

/// The error for a text that is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the id of a git object")]
pub struct IdError;

parsed!(
    /// The whole id of a git object: 40 or 64 lower-case hexadecimal digits, so never an option, a path or a name.
    ObjectId, IdError, |text| {
        if matches!(text.len(), 40 | 64) && text.bytes().all(is_hex) { Ok(()) } else { Err(IdError) }
    }
);

/// Returns the id that git gives to an object of a kind, such as `blob`, in a repository whose ids have so many digits.
pub fn id_of(kind: &str, content: &[u8], digits: usize) -> String {
    // Git hashes a header with the length in front of the content.
    let header = format!("{kind} {}\0", content.len());
    if digits == DIGITS_OF_SHA256 {
        hex(&Sha256::new().chain_update(header).chain_update(content).finalize())
    } else {
        hex(&Sha1::new().chain_update(header).chain_update(content).finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_id_that_git_gives_it() {
        assert_eq!(id_of("blob", b"hello\n", 40), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(
            id_of("blob", b"", 64),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
    }

    #[test]
    fn an_id_is_whole_and_nothing_but_digits() {
        let sha1 = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(ObjectId::parse(sha1).unwrap().as_str(), sha1);
        assert!(ObjectId::parse(&"a".repeat(64)).is_ok());
        for text in ["", "HEAD", "-h", "--output=x", &sha1[1..], &sha1.to_uppercase(), &format!("{sha1}\n")] {
            assert!(ObjectId::parse(text).is_err(), "{text:?}");
        }
        assert!(ObjectId::parse(&format!("{}é", "a".repeat(38))).is_err());
        assert!(serde_json::from_str::<ObjectId>("\"--output=x\"").is_err());
    }
}
