//! A verdict that somebody brings: what it says, what it is about, and who signed it.

use serde::{Deserialize, Serialize};

use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::statement::in_toto::{STATEMENT_TYPE, Statement};
use crate::statement::subjects;
use crate::statement::verdict_details::{PREDICATE_TYPE, VerdictDetails};

/// A verdict on a run, as its bundle tells it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// How people know where it comes from.
    pub(crate) shown: String,
    /// What it says.
    pub(crate) details: VerdictDetails,
    /// The statements that a run of it leaves beside its bundle, to the byte.
    pub(crate) stated: Vec<String>,
    /// The digest of the bundle.
    pub(crate) bundle: Sum,
    /// Who signed the same.
    pub(crate) signatures: Vec<VerifiedSignature>,
    /// Why there is no signature, or none of the wanted kind.
    pub(crate) unsigned: Option<String>,
    /// What speaks against it, whatever the policy.
    pub(crate) faults: Vec<String>,
}

/// A signature that a tool has checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct VerifiedSignature {
    /// The tool.
    pub(crate) by: &'static str,
    /// The workflow that signed: `OWNER/NAME/.github/workflows/FILE.yml`.
    pub(crate) workflow: String,
    /// The ref from which that workflow came.
    pub(crate) r#ref: String,
    /// The repository in which it ran, where the tool says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repository: Option<String>,
    /// The page of the run in which it signed, where the tool says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
}

/// A statement as a stranger wrote it, of which nothing but its form is known.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct LooseStatement(pub(crate) Statement<serde_json::Value>);

impl Claim {
    /// Tells whether it is about this commit or this tree.
    pub(crate) fn is_about(&self, object: &ObjectId) -> bool {
        [self.details.commit.as_ref(), self.details.tree.as_ref()].contains(&Some(object))
    }
}

impl LooseStatement {
    /// Returns the digest of the bundle that it is about, if it names exactly one.
    pub(crate) fn bundle(&self) -> Option<Sum> {
        let mut sums = self.0.subject.iter().filter_map(|subject| subject.digest.get(subjects::FILE));
        let sum = Sum::parse(sums.next()?).ok()?;
        // With two digests, a gate could take the statement for one about the other file.
        sums.next().is_none().then_some(sum)
    }

    /// Says how it, as something that was signed, differs from what the bundle itself says; nothing where it does not.
    pub(crate) fn departs_from(&self, claim: &Claim) -> Option<String> {
        if self.0.kind != STATEMENT_TYPE {
            return Some(format!("it is not an in-toto statement of version 1, but `{}`", self.0.kind));
        }
        let digest = claim.bundle.to_string();
        if self.bundle().map(|sum| sum.to_string()) != Some(digest) {
            return Some("it is about another file".to_owned());
        }
        if self.0.predicate_type != PREDICATE_TYPE {
            return Some(format!("it says something else: `{}`", self.0.predicate_type));
        }
        self.details_depart_from(claim)
    }

    fn details_depart_from(&self, claim: &Claim) -> Option<String> {
        let said: VerdictDetails = match serde_json::from_value(self.0.predicate.clone()) {
            Ok(said) => said,
            Err(error) => return Some(format!("its predicate cannot be read: {error}")),
        };
        let objects = objects_of(&self.0);
        // Each of them: a gate may look for any one of the subjects that were signed.
        if !objects.iter().all(|(kind, id)| claim_has(claim, kind, id)) {
            return Some("it is about another commit or tree".to_owned());
        }
        // Another version may say more, or in other words, about the same run; what is relied on is the same.
        let same_version = said.versions == claim.details.versions;
        let is_same = if same_version {
            // As JSON, so that a key that this version does not read is a difference as well.
            serde_json::to_value(&claim.details).is_ok_and(|ours| ours == self.0.predicate)
        } else {
            core(&said) == core(&claim.details)
        };
        (!is_same).then(|| "it says something else of the run than the bundle does".to_owned())
    }
}

/// Returns what of two details has to be the same, whichever versions wrote them.
fn core(details: &VerdictDetails) -> serde_json::Value {
    serde_json::json!([
        details.r#loop,
        details.run,
        details.commit,
        details.tree,
        details.properties,
        details.verification.as_ref().map(|verification| &verification.judges.state),
    ])
}

/// Returns every digest of a statement but that of the bundle.
fn objects_of(statement: &Statement<serde_json::Value>) -> Vec<(&str, &str)> {
    let digests = statement.subject.iter().flat_map(|subject| &subject.digest);
    let all = digests.map(|(kind, id)| (kind.as_str(), id.as_str()));
    all.filter(|(kind, _)| *kind != subjects::FILE).collect()
}

fn claim_has(claim: &Claim, kind: &str, id: &str) -> bool {
    let known = match kind {
        subjects::COMMIT => claim.details.commit.as_ref(),
        subjects::TREE => claim.details.tree.as_ref(),
        _ => None,
    };
    known.is_some_and(|known| known.as_str() == id)
}
