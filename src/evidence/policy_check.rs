//! Holds verdicts against a policy, and says of every rule that is not kept how.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::claimed_statement::{Claim, VerifiedSignature};
use super::verdict_policy::{AcceptedJudges, RequiredSigner, VerdictPolicy};
use crate::base::object::ObjectId;
use crate::base::text::plural;
use crate::base::time::{Timestamp, human};
use crate::engine::verification::JudgesStanding;
use crate::statement::property::Property;
use crate::statement::verdict_details::VerdictDetails;

/// How far the clock of another machine may be ahead.
const AHEAD: Duration = Duration::from_mins(5);

/// What is asked of verdicts, and when.
#[derive(Clone, Debug)]
pub(crate) struct PolicyQuestion<'p> {
    /// The policy.
    pub(crate) policy: &'p VerdictPolicy,
    /// The commit or tree that all of them have to be about.
    pub(crate) object: Option<&'p ObjectId>,
    /// The one loop that is asked about.
    pub(crate) only: Option<&'p str>,
    /// Whether unsigned verdicts are taken.
    pub(crate) unsigned: bool,
    /// The time.
    pub(crate) now: Timestamp,
}

/// A rule that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// The rule, by its key in the policy where it has one.
    pub(crate) rule: &'static str,
    /// The run that does not keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// How.
    pub(crate) message: String,
}

impl PolicyQuestion<'_> {
    /// Returns everything that is not as it is asked; nothing where it holds.
    pub(crate) fn violations(&self, claims: &[Claim]) -> Vec<Violation> {
        let asked: Vec<&Claim> = claims
            .iter()
            .filter(|claim| self.only.is_none_or(|only| claim.details.r#loop.goes_by(only)))
            .collect();
        let each = asked.iter().flat_map(|claim| {
            let run = Some(claim.details.run.id.clone());
            self.of_claim(claim).into_iter().map(move |(rule, message)| Violation {
                rule,
                run: run.clone(),
                message,
            })
        });
        let mut all: Vec<Violation> = each.collect();
        all.extend(self.of_all(&asked));
        all
    }

    /// Looks at what all of them have to be together.
    fn of_all(&self, claims: &[&Claim]) -> Vec<Violation> {
        let mut all = Vec::new();
        let mut say = |rule, message: String| all.push(Violation { rule, run: None, message });
        // The rules are asked of each verdict: without any verdict, none of them would be broken.
        if claims.is_empty() {
            say("loops", "there is no verdict".to_owned());
        }
        let wanted = self.policy.loops.iter().map(String::as_str).chain(self.only);
        for name in wanted.collect::<BTreeSet<_>>() {
            if !claims.iter().any(|claim| claim.details.r#loop.goes_by(name)) {
                say("loops", format!("`{name}` has not verified it"));
            }
        }
        let trees: BTreeSet<Option<&ObjectId>> =
            claims.iter().map(|claim| claim.details.tree.as_ref()).collect();
        if trees.len() > 1 {
            say("tree", "the verdicts are about different trees".to_owned());
        }
        all
    }

    fn of_claim(&self, claim: &Claim) -> Vec<(&'static str, String)> {
        let (policy, details) = (self.policy, &claim.details);
        let mut all: Vec<(&'static str, String)> =
            claim.faults.iter().map(|fault| ("statement", fault.clone())).collect();
        let mut say = |rule, message: Option<String>| all.extend(message.map(|message| (rule, message)));
        say("verified", lacks(details, Property::Verified));
        if let Some(object) = self.object {
            let other = (!claim.is_about(object)).then(|| format!("it is not about {object}"));
            say("subject", other);
        }
        say("judges", judges(policy, details));
        say("sandbox", sandbox(policy, details));
        say("no_key", if policy.no_key { keys(details) } else { None });
        say("approvals", approvals(policy, details));
        say("max_age", policy.max_age.and_then(|most| age(most, details, self.now)));
        match (&policy.signer, claim.signatures.as_slice()) {
            (None, []) if self.unsigned => {}
            (_, []) => {
                let why = claim.unsigned.clone().unwrap_or_else(|| "it is not signed".to_owned());
                say("signer", Some(format!("unsigned: {why}")));
            }
            // Any workflow of the repository may have signed, because the policy names none.
            (None, _) => {}
            (Some(signer), signatures) => say("signer", signed_by(signer, signatures)),
        }
        all
    }
}

fn lacks(details: &VerdictDetails, property: Property) -> Option<String> {
    let has = details.properties.contains(&property);
    (!has).then(|| {
        let why = details.shortfalls.get(property.word());
        why.cloned().unwrap_or_else(|| format!("it lacks {}", property.word()))
    })
}

fn judges(policy: &VerdictPolicy, details: &VerdictDetails) -> Option<String> {
    let accepted = policy.judges.as_ref()?;
    let standing = details.verification.as_ref().map(|verification| verification.judges.state);
    let as_accepted = match standing {
        Some(JudgesStanding::Unchanged) => Some(AcceptedJudges::Unchanged),
        Some(JudgesStanding::Added) => Some(AcceptedJudges::Added),
        Some(JudgesStanding::Confirmed) => Some(AcceptedJudges::Confirmed),
        Some(JudgesStanding::Changed | JudgesStanding::Unknown) | None => None,
    };
    // A suppression keeps a check from looking even where every judge is as it was.
    let suppressed = details.verification.as_ref().is_some_and(|found| !found.suppressions.is_empty());
    let is_fine = as_accepted.is_some_and(|standing| accepted.contains(&standing)) && !suppressed;
    (!is_fine).then(|| {
        let word = as_accepted.map_or("changed, or not known", AcceptedJudges::word);
        let word = if suppressed { "weakened by suppressions" } else { word };
        format!("the judges are {word}")
    })
}

fn sandbox(policy: &VerdictPolicy, details: &VerdictDetails) -> Option<String> {
    let accepted = policy.sandbox.as_ref()?;
    if let Some(why) = lacks(details, Property::Sandboxed) {
        return Some(why);
    }
    let words: Vec<&str> = accepted.iter().map(|mode| mode.word()).collect();
    let modes = details.actions.iter().flat_map(|row| &row.modes);
    let other = modes.into_iter().find(|mode| !words.contains(&mode.as_str()))?;
    Some(format!("an action was sandboxed in the mode `{other}` alone"))
}

/// Where no agent was asked, none had a key. Of the items of a merge, that is unknown.
fn keys(details: &VerdictDetails) -> Option<String> {
    let asked: u64 = details.actions.iter().map(|row| row.asked).sum();
    let nobody_asked = asked == 0 && details.cost.calls == 0 && !details.run.merge;
    if nobody_asked { None } else { lacks(details, Property::NoKey) }
}

fn approvals(policy: &VerdictPolicy, details: &VerdictDetails) -> Option<String> {
    let of_tree = details.approvals.iter().filter(|one| one.of_final_tree);
    // An answer given on the command line has no account that a server named, and does not count.
    let people: BTreeSet<u64> = of_tree.filter_map(|one| one.answer.id).collect();
    let (there, wanted) = (people.len() as u64, u64::from(policy.approvals.0));
    (there < wanted).then(|| {
        let approved = if there == 1 { "has" } else { "have" };
        format!("{} whom a server knows {approved} approved this tree, of {wanted}", plural(there, "person"))
    })
}

fn age(most: Duration, details: &VerdictDetails, now: Timestamp) -> Option<String> {
    // What stands for a run is as old as the run that found it.
    let when = details.reused.as_ref().map(|reused| reused.when).or(details.run.ended);
    let Some(when) = when else { return Some("it is unknown when it ended".to_owned()) };
    // A date in the future would keep a verdict young for as long as its author likes.
    if when > now.after(AHEAD) {
        return Some(format!("it is of the future: {when}"));
    }
    let age = now.since(when);
    (age > most).then(|| format!("it is {} old, and may be {}", human(age), human(most)))
}

fn signed_by(signer: &RequiredSigner, signatures: &[VerifiedSignature]) -> Option<String> {
    let is_it = |signature: &VerifiedSignature| {
        signature.workflow == signer.workflow
            && signer.git_ref.as_ref().is_none_or(|wanted| *wanted == signature.r#ref)
    };
    if signatures.iter().any(is_it) {
        return None;
    }
    let others: Vec<String> =
        signatures.iter().map(|signature| format!("{}@{}", signature.workflow, signature.r#ref)).collect();
    Some(format!("signed by {}, not by {}", others.join(", "), signer.workflow))
}
