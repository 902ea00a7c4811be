//! The statement for whoever asks only whether: a Simple Verification Result, which any tool for in-toto reads.

use serde::{Deserialize, Serialize};

use super::in_toto::{Statement, Subject};
use super::property::Property;
use super::subjects::{self, BundleFile};
use crate::base::time::Timestamp;
use crate::report::digest::Digest;

/// The type of the predicate.
pub(crate) const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/svr/v0.2";

/// Who has verified. Its last part grows when a property gets another meaning.
pub(crate) const VERIFIER: &str = "https://little-loops.github.io/ll-loop/verifier/v1";

/// What is verified of the subjects, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimpleVerdict {
    /// Who has verified it.
    pub(crate) verifier: Verifier,
    /// When the run ended.
    #[serde(rename = "timeCreated")]
    pub(crate) time_created: Timestamp,
    /// What is so.
    pub(crate) properties: Vec<Property>,
}

/// Who has verified something, and by what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verifier {
    /// [`VERIFIER`].
    pub(crate) id: String,
    /// The loop, which is the policy that the subjects satisfy.
    pub(crate) policies: Vec<Subject>,
}

/// Says what a verified success has verified; nothing of any other run.
pub(crate) fn of(digest: &Digest, bundle: Option<&BundleFile>) -> Option<Statement<SimpleVerdict>> {
    let properties = Property::of(digest);
    let subjects = subjects::of(digest, bundle);
    if properties.is_empty() || subjects.is_empty() {
        return None;
    }
    let start = digest.start()?;
    let policy = Subject::new(start.r#loop.as_str(), subjects::FILE, &start.definition_sha256);
    let verifier = Verifier { id: VERIFIER.to_owned(), policies: vec![policy] };
    // The time of the last event and not of the clock: a statement made anew has to be the same.
    let predicate = SimpleVerdict { verifier, time_created: digest.seen_until()?, properties };
    Some(Statement::of(subjects, PREDICATE_TYPE, predicate))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUNDLE, verified};
    use super::*;
    use crate::report::testing::failing;

    #[test]
    fn a_verified_success_is_said_in_the_words_of_the_predicate() {
        let statement = of(&verified().digest(), Some(&BUNDLE)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&statement.text()).unwrap();
        assert_eq!(value["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(value["predicateType"], "https://in-toto.io/attestation/svr/v0.2");
        assert_eq!(
            value["predicate"]["properties"],
            serde_json::json!(["LL_LOOP_VERIFIED", "LL_LOOP_JUDGES_UNCHANGED"])
        );
        assert_eq!(value["predicate"]["verifier"]["policies"][0]["name"], "fix-types");
        assert_eq!(value["predicate"]["timeCreated"].as_str().unwrap().len(), 24);
        assert_eq!(serde_json::from_str::<Statement<SimpleVerdict>>(&statement.text()).unwrap(), statement);
    }

    #[test]
    fn no_other_run_has_one() {
        assert_eq!(of(&failing().digest(), Some(&BUNDLE)), None);
        let mut journal = verified();
        journal.events.pop();
        assert_eq!(of(&journal.digest(), Some(&BUNDLE)), None);
    }
}
