//! How long nothing was heard, so that whoever watches a log, and the CI system that ends silent jobs, hears that the
//! run goes on. It knows no clock: ticks say how long the work has taken.

use std::time::Duration;

/// After so long without a line there is one.
const LONG: Duration = Duration::from_mins(1);

/// Measures how long something takes, and how long nothing was heard of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SilenceMeter {
    ticked: Duration,
    took: Duration,
    quiet: Duration,
}

impl SilenceMeter {
    /// Something else begins.
    pub(super) fn begin(&mut self) {
        self.took = Duration::ZERO;
    }

    /// Something was heard.
    pub(super) fn end(&mut self) {
        self.quiet = Duration::ZERO;
    }

    /// Takes the time that the current piece of work has taken, which begins at zero for each piece. Returns how long
    /// all of it has taken when it is time to say so.
    pub(super) fn tick(&mut self, running: Duration) -> Option<Duration> {
        // Less time than before means that another piece of work has begun at zero.
        let passed = running.checked_sub(self.ticked).unwrap_or(running);
        self.ticked = running;
        self.took += passed;
        self.quiet += passed;
        (self.quiet >= LONG).then(|| {
            self.end();
            self.took
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(silence: &mut SilenceMeter, seconds: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let said = |at| silence.tick(Duration::from_secs(at)).map(|took| took.as_secs());
        seconds.into_iter().filter_map(said).collect()
    }

    #[test]
    fn every_minute_of_silence_is_filled() {
        assert_eq!(ticks(&mut SilenceMeter::default(), 0..200), [60, 120, 180]);
        assert_eq!(ticks(&mut SilenceMeter::default(), [59]), [0; 0]);
        // A machine that slept says it once.
        assert_eq!(ticks(&mut SilenceMeter::default(), [1, 1000, 1001]), [1000]);
    }

    #[test]
    fn what_is_heard_begins_the_minute_anew() {
        let mut silence = SilenceMeter::default();
        assert_eq!(ticks(&mut silence, 0..60), [0; 0]);
        silence.end();
        assert_eq!(ticks(&mut silence, 60..121), [119]);
    }

    #[test]
    fn pieces_of_one_work_count_together() {
        let mut silence = SilenceMeter::default();
        assert_eq!(ticks(&mut silence, (0..=40).chain(0..=40)), [60]);
        silence.begin();
        silence.end();
        assert_eq!(ticks(&mut silence, 0..=60), [60]);
    }
}
