//! What was said to ll-loop on a pull request and what was done about it, so that nobody can have it work, or write, without
//! an end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::sum::Sum;
use crate::base::time::Timestamp;

/// So many commands are done within [`SPAN`].
const MOST_TAKEN: usize = 20;

/// How long a command that was done counts.
const SPAN: Duration = Duration::from_hours(1);

/// So many commands of an author that are refused get a reply.
const MOST_REPLIES: u32 = 5;

/// The most authors whose refused commands are counted; to further ones nothing is replied.
// Accounts cost nothing: without a bound, many of them could make the reply grow without end.
const MOST_AUTHORS: usize = 200;

/// The most commands that are kept.
// More than are done within the hour, so that none is forgotten that still counts.
const MOST_KEPT: usize = 40;

/// A command that was heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardCommand {
    /// The id of the comment.
    pub comment: u64,
    /// The id of its author.
    pub author: u64,
    /// The name of its author.
    pub who: String,
    /// Its first words, for people.
    pub said: String,
    /// The digest of its first line.
    pub digest: Sum,
    /// The head of the pull request at that moment.
    pub sha: String,
    /// When it was heard.
    pub at: Timestamp,
    /// Whether it was done.
    pub is_taken: bool,
    /// The result, for people.
    pub result: String,
}

/// What was heard on one pull request, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLog {
    /// The last ones.
    heard: Vec<HeardCommand>,
    /// How often a command of an author was refused with a reply.
    replies: BTreeMap<u64, u32>,
}

/// Why a command is not done that could be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAgain {
    /// This very comment was heard before.
    #[error("this comment was heard already: {0}")]
    SameComment(String),
    /// The last one said the same.
    #[error("the last command said the same, and was done: {0}")]
    Repeated(String),
    /// There were enough.
    #[error("{MOST_TAKEN} commands were done on this pull request within an hour, and no more are")]
    TooMany,
}

impl CommandLog {
    /// Returns what was heard, the oldest first.
    pub fn heard(&self) -> &[HeardCommand] {
        &self.heard
    }

    /// Tells whether a command may be done now.
    ///
    /// # Errors
    /// It was done, or there were too many.
    pub fn admits(&self, command: &HeardCommand) -> Result<(), NotAgain> {
        if let Some(same) = self.heard.iter().find(|heard| heard.comment == command.comment) {
            return Err(NotAgain::SameComment(same.result.clone()));
        }
        let mut taken = self.heard.iter().rev().filter(|heard| heard.is_taken);
        // Only the last one: after another command, the same words can be meant once more.
        if let Some(last) = taken.clone().next()
            && (last.digest, &last.sha) == (command.digest, &command.sha)
        {
            return Err(NotAgain::Repeated(last.result.clone()));
        }
        let recent = taken.by_ref().filter(|heard| command.at.since(heard.at) < SPAN).count();
        if recent >= MOST_TAKEN { Err(NotAgain::TooMany) } else { Ok(()) }
    }

    /// Tells whether a command of this author that is refused gets a reply.
    pub fn replies_to(&self, author: u64) -> bool {
        match self.replies.get(&author) {
            Some(replies) => *replies < MOST_REPLIES,
            None => self.replies.len() < MOST_AUTHORS,
        }
    }

    /// Adds a command, and forgets the oldest. Those that were done within the hour are kept before others.
    pub fn add(&mut self, command: HeardCommand) {
        if !command.is_taken {
            *self.replies.entry(command.author).or_default() += 1;
        }
        let now = command.at;
        self.heard.push(command);
        while self.heard.len() > MOST_KEPT {
            let counts = |heard: &HeardCommand| heard.is_taken && now.since(heard.at) < SPAN;
            let oldest = self.heard.iter().position(|heard| !counts(heard)).unwrap_or(0);
            self.heard.remove(oldest);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::people) fn heard(comment: u64, author: u64, line: &str, is_taken: bool) -> HeardCommand {
        HeardCommand {
            comment,
            author,
            who: "ada".to_owned(),
            said: "approve".to_owned(),
            digest: Sum::of(line.as_bytes()),
            sha: "1".repeat(40),
            at: Timestamp::from_millis(1_790_000_000_000 + i64::try_from(comment).unwrap() * 1000),
            is_taken,
            result: "it goes on in run 80".to_owned(),
        }
    }

    #[test]
    fn what_was_done_is_answered_and_not_done_again() {
        let mut log = CommandLog::default();
        log.add(heard(1, 7, "/ll-loop retry", true));
        let again = heard(2, 8, "/ll-loop retry", true);
        assert!(matches!(log.admits(&again), Err(NotAgain::Repeated(_))));
        assert!(matches!(log.admits(&heard(1, 7, "/ll-loop stop", true)), Err(NotAgain::SameComment(_))));
        // Another commit is another thing, and so is another command in between.
        assert_eq!(log.admits(&HeardCommand { sha: "2".repeat(40), ..again.clone() }), Ok(()));
        log.add(heard(3, 7, "/ll-loop stop", true));
        assert_eq!(log.admits(&again), Ok(()));
        // What was refused does not count as done.
        log.add(heard(4, 9, "/ll-loop retry", false));
        assert_eq!(log.admits(&again), Ok(()));
    }

    #[test]
    fn twenty_are_done_within_an_hour() {
        let mut log = CommandLog::default();
        for id in 0..20 {
            let command = heard(id, 7, &id.to_string(), true);
            assert_eq!(log.admits(&command), Ok(()), "{id}");
            log.add(command);
            // Refused ones push none of them out.
            (0..5).for_each(|more| log.add(heard(1000 + id * 5 + more, 9, "x", false)));
        }
        assert_eq!(log.admits(&heard(99, 7, "y", true)), Err(NotAgain::TooMany));
        assert_eq!(log.admits(&heard(3700, 7, "y", true)), Ok(()));
        assert!(log.heard().len() <= MOST_KEPT);
    }

    #[test]
    fn who_is_refused_gets_five_replies() {
        let mut log = CommandLog::default();
        for id in 0..5 {
            assert!(log.replies_to(9), "{id}");
            log.add(heard(id, 9, "x", false));
        }
        assert!(!log.replies_to(9));
        assert!(log.replies_to(10));
        (100..400).for_each(|author| log.add(heard(author, author, "x", false)));
        assert!(!log.replies_to(1000), "nobody makes room by many accounts");
    }
}
