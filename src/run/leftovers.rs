//! What actions leave running when they have ended: it is named once, and ended with the run unless the loop says that it
//! stays.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::base::text::listed;
use crate::process::guard_pipe::Guard;
use crate::process::orphans::{LeftProcess, Orphans};

/// How often those are buried that have ended while an action goes on.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Processes that a warning names.
const MOST_NAMED: usize = 8;

/// What the actions of a run have left running.
#[derive(Debug, Default)]
pub struct Leftovers {
    orphans: Orphans,
    /// Whether it stays when the run has ended.
    pub(super) stays: bool,
}

impl Leftovers {
    /// Lets processes come here that lose their parent.
    pub fn new() -> Self {
        Self { orphans: Orphans::adopted(), stays: false }
    }

    /// Says what an action of a run has left running, once.
    pub(super) fn look(&mut self, guard: &Guard, run: &str) -> Option<String> {
        said(&self.orphans.come(guard, run), self.stays)
    }

    /// Waits for the end of an action, and buries meanwhile what it has left behind and what has ended.
    pub(super) async fn while_it_works<T>(
        &mut self,
        work: impl Future<Output = T>,
        guard: &Guard,
        run: &str,
    ) -> T {
        let mut work = std::pin::pin!(work);
        let mut looks = tokio::time::interval(BETWEEN_LOOKS);
        // An action may hold up the thread; missed looks are not made up for.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = looks.tick() => {
                    // Other children that have ended are waited for by whoever started them.
                    let _waited_for_by_others = self.orphans.notice(guard, run);
                }
            }
        }
    }

    /// Tells whether some of it may live.
    pub(super) fn are_any(&mut self, guard: &Guard, run: &str) -> bool {
        self.orphans.are_any(guard, run)
    }

    /// Ends what is left of a run, unless it stays.
    pub(super) fn end(&mut self, guard: &Guard, run: &str) {
        if !self.stays {
            self.orphans.end(guard, run);
        }
    }
}

fn said(found: &[LeftProcess], stays: bool) -> Option<String> {
    let names: Vec<String> =
        found.iter().take(MOST_NAMED).map(|left| format!("{} ({})", left.name, left.id)).collect();
    let what = match found.len() {
        0 => return None,
        1 => "a process".to_owned(),
        count => format!("{count} processes"),
    };
    let becomes = if stays {
        "left running when the run has ended, as the loop says `leaves_running`"
    } else {
        "ended with the run; `leaves_running: true` in the loop leaves it"
    };
    Some(format!("the action left {what} running: {}; {becomes}", listed(&names, "and")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named_with_what_becomes_of_it() {
        let left = |id| LeftProcess { id, name: "sleep".to_owned() };
        assert_eq!(said(&[], false), None);
        let one = said(&[left(7)], false).unwrap();
        assert_eq!(
            one,
            "the action left a process running: `sleep (7)`; ended with the run; `leaves_running: true` in the loop leaves it"
        );
        let two = said(&[left(7), left(8)], true).unwrap();
        assert!(two.contains("left 2 processes running: `sleep (7)` and `sleep (8)`"), "{two}");
    }
}
