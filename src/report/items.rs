//! The items of a plan, as the journal of a merge has them: a step each, those that are not verified first.

use super::digest::Digest;
use super::step::{Step, StepStanding};
use crate::base::text::{one_line, plain};

/// The most characters of a reason.
const MAX_WHY: usize = 500;

/// The items that a digest has kept.
pub struct Items<'d> {
    /// Those that are not verified, as they come in the journal.
    pub unverified: Vec<&'d Step>,
    /// The others.
    pub verified: Vec<&'d Step>,
    /// How many the digest has not kept.
    pub omitted: u64,
    digest: &'d Digest,
}

impl<'d> Items<'d> {
    /// Takes the steps of a merge for items.
    pub fn of(digest: &'d Digest) -> Self {
        let is_verified = |step: &&Step| step.standing() == StepStanding::Passing;
        let (verified, unverified) = digest.steps().partition(is_verified);
        Self { unverified, verified, omitted: digest.omitted(), digest }
    }

    /// Returns the page of an item, from the directory of the reports, if it has one.
    pub fn page(&self, item: &Step) -> Option<String> {
        page(self.digest, item.state.as_str())
    }
}

/// The directory of what is kept of each item, beside the reports of the merge.
pub const DIRECTORY: &str = "items";

/// Returns the page of the item of this name, from the directory of the reports, if it has one.
pub fn page(digest: &Digest, id: &str) -> Option<String> {
    digest.places.item_pages.contains(id).then(|| format!("{DIRECTORY}/{id}.html"))
}

/// Says how an item ended, or why nothing is known of that.
pub fn why(item: &Step) -> String {
    // A merge writes the sentence about an item as its standard output, and what it printed as standard error.
    reason(item.result.as_ref().map(|result| result.stdout.text.as_str()), item)
}

/// Says the same where what the step printed is kept elsewhere.
pub fn reason(printed: Option<&str>, item: &Step) -> String {
    let said = printed.filter(|said| !said.is_empty()).or(item.error.as_deref());
    one_line(&plain(said.unwrap_or("")), MAX_WHY)
}

/// Returns what an item printed last, if that is known.
pub fn printed(item: &Step) -> Option<String> {
    let printed = plain(&item.result.as_ref()?.stderr.text);
    let printed = printed.trim_end();
    (!printed.is_empty()).then(|| printed.to_owned())
}
