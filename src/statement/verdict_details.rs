//! The statement for whoever asks how: what the run was, what it rests on, what held its actions, who approved it, what it
//! cost, and where it comes from. `schema/verdict.schema.json` is its published form.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::in_toto::Statement;
use super::property::{Property, Shortfall};
use super::subjects::{self, BundleFile};
use crate::base::object::ObjectId;
use crate::base::text;
use crate::base::time::Timestamp;
use crate::engine::changes::StartTree;
use crate::engine::event::{Assignment, Parent};
use crate::engine::outcome::Outcome;
use crate::engine::question::GivenAnswer;
use crate::engine::reused::ReusedRun;
use crate::engine::verification::Verification;
use crate::evaluate::model::Usage;
use crate::report::digest::Digest;
use crate::report::guarded_work::{GuardedState, RunPart};

/// The type of the predicate.
pub(crate) const PREDICATE_TYPE: &str = "https://little-loops.github.io/ll-loop/verdict/v1";

/// The longest value of a parameter that is kept, in bytes.
const LONGEST: usize = 1024;

/// A run, as far as others may rely on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VerdictDetails {
    /// The loop.
    pub(crate) r#loop: AttestedLoop,
    /// The run.
    pub(crate) run: AttestedRun,
    /// The commit, where its tree is the one on which the run ended, and holds the loop.
    pub(crate) commit: Option<ObjectId>,
    /// The tree on which it ended; none where it is unknown or does not hold the loop.
    pub(crate) tree: Option<ObjectId>,
    /// What is so of it; empty where it is not a verified success.
    pub(crate) properties: Vec<Property>,
    /// Why the others are not so, by their names.
    pub(crate) shortfalls: IndexMap<String, String>,
    /// What it was given: parameters and variables. Secrets are hidden.
    pub(crate) parameters: IndexMap<String, String>,
    /// What verified it, and what did not.
    pub(crate) verification: Option<Verification>,
    /// What guarded its actions, by state.
    pub(crate) actions: Vec<GuardedState>,
    /// How people answered its questions.
    pub(crate) approvals: Vec<AttestedAnswer>,
    /// The earlier run that stands for it, with the key that both have.
    pub(crate) reused: Option<ReusedRun>,
    /// What agents and models cost.
    pub(crate) cost: Usage,
    /// What wrote this.
    pub(crate) versions: AttestedVersions,
}

/// The loop of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttestedLoop {
    /// Its name.
    pub(crate) name: String,
    /// The file, from the directory of the run.
    pub(crate) file: String,
    /// The directory of the run, from the top of the repository; none for the top itself, and where that is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) directory: Option<String>,
    /// The digest of the file and of everything that it pulls in.
    pub sha256: String,
}

impl AttestedLoop {
    /// Tells whether somebody who asks for a loop by a name means this one. A bare name is that of a loop at the top of the
    /// repository: two packages may have loops of one name, and each is named by its file, from the top.
    pub(crate) fn goes_by(&self, asked: &str) -> bool {
        match &self.directory {
            None => asked == self.name || asked == self.file,
            Some(directory) => {
                asked.strip_prefix(directory.as_str()).and_then(|rest| rest.strip_prefix('/'))
                    == Some(&self.file)
            }
        }
    }
}

/// A run by its beginning, its parts and its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttestedRun {
    /// Its id.
    pub(crate) id: String,
    /// How it ended; none where its journal stops before that.
    pub(crate) outcome: Option<Outcome>,
    /// Whether it is verified.
    pub(crate) verified: bool,
    /// When it began.
    pub(crate) began: Option<Timestamp>,
    /// When its last event was.
    pub(crate) ended: Option<Timestamp>,
    /// The commit that was checked out when it began.
    pub(crate) commit: Option<String>,
    /// The head of the pull request for which that commit stands, because it merges it.
    pub(crate) stands_for: Option<ObjectId>,
    /// The parts after the first in which it ran.
    pub(crate) parts: Vec<RunPart>,
    /// The run that it was rewound from.
    pub(crate) rewound_from: Option<Parent>,
    /// The item of a plan that it worked on.
    pub(crate) assignment: Option<Assignment>,
    /// Whether it is what the runs of a plan are worth together.
    pub(crate) merge: bool,
}

/// How a person answered a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttestedAnswer {
    /// The answer.
    #[serde(flatten)]
    pub(crate) answer: GivenAnswer,
    /// Whether it is the approval of the tree on which the run ended.
    pub(crate) of_final_tree: bool,
}

/// What wrote a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttestedVersions {
    /// The version of ll-loop.
    pub(crate) ll_loop: String,
    /// The version of the journal.
    pub(crate) journal: u32,
}

/// Says everything that others may rely on of a run that began.
pub(crate) fn of(digest: &Digest, bundle: Option<&BundleFile>) -> Option<Statement<VerdictDetails>> {
    let subjects = subjects::of(digest, bundle);
    // In-toto knows no statement without a subject.
    if subjects.is_empty() {
        return None;
    }
    Some(Statement::of(subjects, PREDICATE_TYPE, predicate(digest)?))
}

/// Returns what is said of a run; nothing where it did not begin.
pub(crate) fn predicate(digest: &Digest) -> Option<VerdictDetails> {
    let start = digest.start()?;
    let properties = Property::of(digest);
    Some(VerdictDetails {
        r#loop: attested_loop(digest)?,
        run: run(digest)?,
        commit: subjects::commit(digest).cloned(),
        tree: subjects::attested_tree(digest).cloned(),
        shortfalls: shortfalls(&properties, digest),
        properties,
        parameters: parameters(digest),
        verification: digest.verification().cloned(),
        actions: digest.guarded().rows().cloned().collect(),
        approvals: approvals(digest),
        reused: digest.reused().cloned(),
        cost: digest.usage().clone(),
        versions: AttestedVersions { ll_loop: env!("CARGO_PKG_VERSION").to_owned(), journal: start.schema },
    })
}

fn attested_loop(digest: &Digest) -> Option<AttestedLoop> {
    let start = digest.start()?;
    let directory = subjects::directory(digest).filter(|directory| !directory.is_empty());
    Some(AttestedLoop {
        name: start.r#loop.to_string(),
        file: digest.file().to_owned(),
        directory: directory.map(str::to_owned),
        sha256: start.definition_sha256.clone(),
    })
}

fn run(digest: &Digest) -> Option<AttestedRun> {
    let start = digest.start()?;
    let stands_for = match &start.tree {
        Some(StartTree::Known(tree)) => tree.stands_for.clone(),
        Some(StartTree::Unknown { .. }) | None => None,
    };
    Some(AttestedRun {
        id: start.run_id.clone(),
        outcome: digest.end().map(|end| end.outcome),
        // The property asks for more than the end of the run says: that all of the journal could be read and understood.
        verified: Property::Verified.check(digest).is_ok(),
        began: digest.began(),
        ended: digest.seen_until(),
        commit: digest.commit().map(str::to_owned),
        stands_for,
        parts: digest.guarded().parts().to_vec(),
        rewound_from: start.parent.clone(),
        assignment: start.assignment.as_deref().cloned(),
        merge: digest.is_merge(),
    })
}

/// Says why a run lacks properties.
fn shortfalls(has: &[Property], digest: &Digest) -> IndexMap<String, String> {
    let lacked = Property::ALL.into_iter().filter(|property| !has.contains(property));
    let why = |property: Property| {
        // What would hold by itself is not listed either where the run is not a verified success.
        let shortfall = property.check(digest).err().unwrap_or(Shortfall::NotVerified);
        (property.word().to_owned(), shortfall.words().to_owned())
    };
    lacked.map(why).collect()
}

/// Returns what the command line gave the loop. The journal has it without secrets.
fn parameters(digest: &Digest) -> IndexMap<String, String> {
    let Some(start) = digest.start() else { return IndexMap::new() };
    let given = start.overrides.param.iter().chain(&start.overrides.context);
    let input = start.overrides.input.iter().map(|input| ("input".to_owned(), input.clone()));
    let all = given.map(|(name, value)| (name.clone(), value.clone())).chain(input);
    all.map(|(name, value)| (name, text::head(&value, LONGEST).to_owned())).collect()
}

fn approvals(digest: &Digest) -> Vec<AttestedAnswer> {
    let guarded = digest.guarded();
    let of_tree: Vec<&GivenAnswer> =
        subjects::tree(digest).into_iter().flat_map(|tree| guarded.approvals_of(tree)).collect();
    let attested = |answer: &GivenAnswer| AttestedAnswer {
        of_final_tree: of_tree.contains(&answer),
        answer: answer.clone(),
    };
    guarded.answers().iter().map(attested).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{Journal, failing};
    use crate::statement::testing::{BUNDLE, verified};

    #[test]
    fn every_run_that_began_has_details_and_reads_them_back() {
        for digest in [verified().digest(), failing().digest(), Journal::start().digest()] {
            let statement = of(&digest, Some(&BUNDLE)).unwrap();
            let back: Statement<VerdictDetails> = serde_json::from_str(&statement.text()).unwrap();
            assert_eq!(back, statement);
        }
        assert!(of(&Digest::default(), Some(&BUNDLE)).is_none());
    }

    #[test]
    fn what_a_run_lacks_is_explained() {
        let details = predicate(&failing().digest()).unwrap();
        assert_eq!(details.properties, []);
        assert_eq!(details.shortfalls["LL_LOOP_VERIFIED"], "it is not a verified success");
        let details = predicate(&verified().digest()).unwrap();
        assert_eq!(details.shortfalls["LL_LOOP_NO_KEY"], "no agent was asked");
        assert!(!details.shortfalls.contains_key("LL_LOOP_VERIFIED"));
    }

    #[test]
    fn parameters_are_cut_and_named() {
        let mut journal = verified();
        let long = "x".repeat(2 * LONGEST);
        journal.given(&[("--param", "crate", "api"), ("--context", "long", &long)], Some("all"));
        let details = predicate(&journal.digest()).unwrap();
        assert_eq!(details.parameters["crate"], "api");
        assert_eq!(details.parameters["long"].len(), LONGEST);
        assert_eq!(details.parameters["input"], "all");
    }
}
