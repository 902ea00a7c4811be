//! How long a loop may take: as long as the jobs may that make its checks, one behind the other.

use std::collections::BTreeSet;

use super::ci::CiContents;
use super::found_repository::Finding;

/// The most hours of a loop. A runner of GitHub ends every job after six.
const MOST: u32 = 5;

/// Returns the hours that a loop of these checks may take: one, unless the CI allows its jobs more by what it has written.
pub(super) fn hours(contents: &CiContents, checks: &[&Finding]) -> u32 {
    let minutes = |job: &str| contents.minutes.iter().find(|(known, _)| known == job);
    let of_check = |check: &&Finding| {
        let lines = contents.commands.iter().filter(|line| line.makes(check));
        // A check that several jobs make is made once.
        lines.filter_map(|line| minutes(&line.job)).min_by_key(|(_, minutes)| *minutes)
    };
    let jobs: BTreeSet<&(String, u32)> = checks.iter().filter_map(of_check).collect();
    let sum = jobs.iter().fold(0_u32, |sum, (_, minutes)| sum.saturating_add(*minutes));
    sum.div_ceil(60).clamp(1, MOST)
}
