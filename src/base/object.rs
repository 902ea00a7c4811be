//! Ids of git objects, parsed once, so that a text from outside can never be an option or a path for git.

use super::parsed::parsed;
use super::text::is_hex;

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

#[cfg(test)]
mod tests {
    use super::*;

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
