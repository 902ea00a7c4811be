//! Who has had a run started by a comment: for the server a program has started it, and for `not_author` whoever asked for it.

use super::command::{self, Verb};
use super::command_log::CommandLog;
use crate::base::text::up_to;

/// A comment on a pull request, as far as it may have started something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PossibleCommand<'c> {
    /// Its id.
    pub id: u64,
    /// The id of its author.
    pub author: u64,
    /// Its text.
    pub body: &'c str,
}

/// Returns the accounts that have asked for a run before this comment was written: by comments that are there still, or by
/// such as the reply of ll-loop tells, which may be gone.
pub fn askers<'c>(
    comments: impl IntoIterator<Item = PossibleCommand<'c>>,
    log: &CommandLog,
    before: u64,
) -> Vec<u64> {
    // Ids grow with time, so a smaller one is that of an earlier comment.
    let written = comments.into_iter().filter(|comment| comment.id < before).filter_map(|comment| {
        let written = command::read(comment.body).ok()?;
        starts(written.verb).then_some(comment.author)
    });
    let heard = log.heard().iter().filter(|heard| heard.comment < before && heard.is_taken);
    let heard = heard.filter(|heard| {
        let word = up_to(&heard.said, &[' ']);
        Verb::ALL.into_iter().any(|verb| starts(verb) && verb.word() == word)
    });
    let mut askers: Vec<u64> = written.chain(heard.map(|heard| heard.author)).collect();
    askers.sort_unstable();
    askers.dedup();
    askers
}

/// Tells whether a command starts a run because somebody wants it to. Who answers a question has not started what goes on by it.
fn starts(verb: Verb) -> bool {
    match verb {
        Verb::Retry | Verb::Resume | Verb::Fix => true,
        Verb::Answer(_) | Verb::Stop | Verb::Deliver | Verb::Help => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_log::tests::heard;
    use super::*;

    fn comment(id: u64, author: u64, body: &str) -> PossibleCommand<'_> {
        PossibleCommand { id, author, body }
    }

    #[test]
    fn whoever_asked_for_a_run_has_started_it() {
        let comments = [
            comment(1, 7, "/ll-loop fix tidy"),
            comment(2, 8, "please\n/ll-loop fix"),
            comment(3, 9, "/ll-loop approve 0123abcd"),
            comment(4, 10, "/ll-loop retry"),
            comment(5, 7, "/ll-loop resume"),
            comment(9, 11, "/ll-loop retry"),
        ];
        assert_eq!(askers(comments, &CommandLog::default(), 9), [7, 10]);
    }

    /// Whoever asked can take the comment away, and what was done about it stays in the reply.
    #[test]
    fn a_comment_that_is_gone_has_started_it_all_the_same() {
        let mut log = CommandLog::default();
        for (comment, author, said, is_taken) in
            [(1, 7, "retry main", true), (2, 8, "approve", true), (3, 9, "fix", false), (9, 10, "fix", true)]
        {
            let mut one = heard(comment, author, said, is_taken);
            said.clone_into(&mut one.said);
            log.add(one);
        }
        assert_eq!(askers([], &log, 9), [7]);
    }
}
