//! Checkpoints: a run that lasts long is saved elsewhere from time to time, for the case that its machine is lost.

use std::time::Duration;

/// When a run is saved, and by whom: files and networks are not the business of this layer.
#[derive(Default)]
pub struct Checkpoints(Option<Schedule>);

struct Schedule {
    every: Duration,
    next: Duration,
    save: Box<dyn FnMut()>,
}

impl Checkpoints {
    /// Saves the run when this much time has passed since the last time.
    pub fn every(every: Duration, save: impl FnMut() + 'static) -> Self {
        Self(Some(Schedule { every, next: every, save: Box::new(save) }))
    }

    /// Saves the run, if it is time. It has to be between two steps.
    pub(super) fn save_if_due(&mut self, now: Duration) {
        if let Some(schedule) = self.0.as_mut().filter(|schedule| now >= schedule.next) {
            (schedule.save)();
            // From now, not from when it was due: after a long step, one save is enough.
            schedule.next = now + schedule.every;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_run_is_saved_when_the_time_has_passed_and_not_before() {
        let saved = Rc::new(RefCell::new(0));
        let count = Rc::clone(&saved);
        let mut checkpoints = Checkpoints::every(Duration::from_secs(10), move || *count.borrow_mut() += 1);
        let mut seen = Vec::new();
        for now in [0, 9, 10, 11, 19, 25, 34, 36] {
            checkpoints.save_if_due(Duration::from_secs(now));
            seen.push(*saved.borrow());
        }
        // A long step delays one, and does not make up for it with two.
        assert_eq!(seen, [0, 0, 1, 1, 1, 2, 2, 3]);
        Checkpoints::default().save_if_due(Duration::MAX);
    }
}
