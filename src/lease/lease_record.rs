//! What a lease says about its holder, and how the lease of somebody else is read: as claims of a stranger, who may have
//! written anything.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lease_scope::{Scopes, scope_hash};
use crate::base::object::ObjectId;
use crate::base::parsed::parsed;
use crate::base::text::{is_hex, listed_in_part, one_line};

/// What the names of all leases begin with.
pub const PREFIX: &str = "refs/ll-loop/lease/";

/// The largest record that is read, in bytes.
pub const MAX_RECORD: usize = 64 << 10;

/// The most paths of one lease.
pub const MAX_SCOPES: usize = 256;

/// For how long a lease holds at least and at most, whatever it says: a stranger's must end some day.
pub const SHORTEST: Duration = Duration::from_secs(1);
/// See [`SHORTEST`].
pub const LONGEST: Duration = Duration::from_hours(24);

/// The most characters of a text of somebody else that are shown.
const SHOWN: usize = 120;

/// The error for a text that names no lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the name of a lease")]
pub struct LeaseNameError;

parsed!(
    /// The full name of the ref of a lease: [`PREFIX`] and a scope hash, so never an option or a pattern.
    LeaseName, LeaseNameError, |text| {
        let hash = text.strip_prefix(PREFIX).ok_or(LeaseNameError)?;
        if hash.len() == 16 && hash.bytes().all(is_hex) { Ok(()) } else { Err(LeaseNameError) }
    }
);

impl LeaseName {
    /// Returns the name of the lease of these scopes.
    pub fn of(scopes: &Scopes) -> Self {
        Self(format!("{PREFIX}{}", scope_hash(scopes.paths())))
    }
}

/// The message of the commit that the ref points at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// The id of the run.
    pub run: String,
    /// Where it runs, for people, and a mark that no other process has: two records are never the same.
    pub holder: String,
    /// What it locks.
    pub scopes: Scopes,
    /// How often it was renewed. At 0 its maker does not know yet whether it may stay.
    pub n: u64,
    /// For how many seconds it holds without being renewed.
    pub ttl_s: u64,
}

/// Why a record is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is too large.
    #[error("it has more than {MAX_RECORD} bytes")]
    TooLarge,
    /// It has too many paths.
    #[error("it has more than {MAX_SCOPES} paths")]
    TooManyScopes,
    /// It is another text.
    #[error("it is not a lease record")]
    Unreadable,
}

impl LeaseRecord {
    /// Reads a record of a stranger.
    ///
    /// # Errors
    /// It is too large, or something else.
    pub fn parse(message: &[u8]) -> Result<Self, RecordError> {
        if message.len() > MAX_RECORD {
            return Err(RecordError::TooLarge);
        }
        let record: Self = serde_json::from_slice(message).map_err(|_| RecordError::Unreadable)?;
        if record.scopes.paths().len() > MAX_SCOPES {
            return Err(RecordError::TooManyScopes);
        }
        Ok(record)
    }

    /// Writes it.
    ///
    /// # Errors
    /// Others would not read it.
    // A record that others would refuse locks nothing, so it is never written.
    pub fn to_text(&self) -> Result<String, RecordError> {
        let text = serde_json::to_string(self).expect("texts and numbers are JSON");
        Self::parse(text.as_bytes()).map(|_| text)
    }

    /// Returns for how long it holds without being renewed.
    pub fn ttl(&self) -> Duration {
        // A stranger could write zero, and be taken for gone at once, or a century.
        Duration::from_secs(self.ttl_s).clamp(SHORTEST, LONGEST)
    }

    /// Tells whether its maker does not know yet whether it may stay.
    pub fn is_new(&self) -> bool {
        self.n == 0
    }
}

/// A lease as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLease {
    /// Its ref.
    pub name: LeaseName,
    /// What the ref points at.
    pub oid: ObjectId,
    /// What that says; nothing if it cannot be read, so that what it locks is unknown.
    pub record: Option<LeaseRecord>,
}

impl FoundLease {
    /// Says for a person who is in the way of these scopes.
    pub fn sentence(&self, scopes: &Scopes) -> String {
        let Some(record) = &self.record else {
            return format!("the lease `{}`, which cannot be read, may be for the same paths", self.name);
        };
        let (run, holder) = (one_line(&record.run, SHOWN), one_line(&record.holder, SHOWN));
        let what = match record.scopes.meets(scopes) {
            Some((theirs, ours)) if theirs == ours => format!("`{}`", one_line(ours, SHOWN)),
            Some((theirs, ours)) => {
                format!("`{}`, which overlaps `{}`", one_line(theirs, SHOWN), one_line(ours, SHOWN))
            }
            None => listed_in_part(record.scopes.paths().iter().take(3).map(|path| one_line(path, SHOWN))),
        };
        format!("the run {run} has locked {what} ({holder})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(scopes: &[&str]) -> LeaseRecord {
        LeaseRecord {
            run: "main-1".to_owned(),
            holder: "here".to_owned(),
            scopes: Scopes::new(scopes.iter().copied()),
            n: 3,
            ttl_s: 60,
        }
    }

    #[test]
    fn a_record_is_json_that_says_five_things() {
        let text = record(&["src", "docs"]).to_text().unwrap();
        assert_eq!(text, r#"{"run":"main-1","holder":"here","scopes":["docs","src"],"n":3,"ttl_s":60}"#);
        assert_eq!(LeaseRecord::parse(text.as_bytes()).unwrap(), record(&["docs", "src"]));
        // A later version may say more, and git ends a message with a line end.
        let more = text.replace("\"n\"", "\"more\":{\"x\":[1]},\"n\"") + "\n";
        assert_eq!(LeaseRecord::parse(more.as_bytes()).unwrap(), record(&["docs", "src"]));
    }

    #[test]
    fn what_a_stranger_wrote_is_read_within_bounds() {
        let bomb = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
        let nested = format!(r#"{{"run":"a","holder":"b","scopes":[],"n":0,"ttl_s":1,"x":{bomb}}}"#);
        for text in ["", "{}", "null", "fix: a typo", "{\"run\":1}", &bomb, "\u{0}"] {
            assert_eq!(LeaseRecord::parse(text.as_bytes()), Err(RecordError::Unreadable), "{text:.40}");
        }
        assert!(LeaseRecord::parse(nested.as_bytes()).is_ok(), "what a later version adds is passed over");
        assert_eq!(LeaseRecord::parse(&[0xff; 9]), Err(RecordError::Unreadable));
        assert_eq!(LeaseRecord::parse(&vec![b' '; MAX_RECORD + 1]), Err(RecordError::TooLarge));
        let many: Vec<String> = (0..=MAX_SCOPES).map(|n| format!("p{n}")).collect();
        let many = LeaseRecord { scopes: many.into(), ..record(&[]) };
        assert_eq!(many.to_text(), Err(RecordError::TooManyScopes));
        for (says, holds) in [(0, 1), (60, 60), (86_400, 86_400), (86_401, 86_400), (u64::MAX, 86_400)] {
            assert_eq!(LeaseRecord { ttl_s: says, ..record(&[]) }.ttl(), Duration::from_secs(holds));
        }
    }

    #[test]
    fn a_name_is_a_hash_below_the_prefix_and_nothing_else() {
        let name = LeaseName::of(&Scopes::new(["."]));
        assert_eq!(name.as_str(), "refs/ll-loop/lease/19a3f6872c351832");
        assert!(LeaseName::parse(name.as_str()).is_ok());
        for text in [
            "19a3f6872c351832",
            "refs/ll-loop/lease/",
            "refs/ll-loop/lease/*",
            "refs/ll-loop/lease/19A3F6872C351832",
        ] {
            assert!(LeaseName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_said_of_a_stranger_stays_one_line() {
        let hostile = "\u{1b}[2J\u{202e}x\n::error::y".to_owned() + &"z".repeat(10_000);
        let record = LeaseRecord { run: hostile.clone(), holder: hostile.clone(), ..record(&[]) };
        let scopes = Scopes::new([hostile.as_str()]);
        let name = LeaseName::of(&scopes);
        let oid = ObjectId::parse(&"a".repeat(40)).unwrap();
        let found = FoundLease { name, oid, record: Some(LeaseRecord { scopes, ..record }) };
        for ours in [Scopes::new(["."]), Scopes::new(["other"])] {
            let sentence = found.sentence(&ours);
            assert!(!sentence.contains(['\n', '\u{1b}', '\u{202e}']), "{sentence:?}");
            assert!(sentence.len() < 1000, "{sentence}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_read_breaks_anything(message in prop::collection::vec(any::<u8>(), 0..200)) {
            let _any = LeaseRecord::parse(&message);
        }
    }
}
