//! What a program that is talked to prints on its standard error: shown as it comes, and its end kept.

use std::cell::RefCell;

use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;
use tokio::time::Instant;

use super::lines::LineCollector;
use super::ticking::show;
use crate::base::redact::Redactor;
use crate::base::text::tail;
use crate::evaluate::observation::Stream;
use crate::report::Sinks;

/// How much of it is kept.
const COMPLAINTS: usize = 64 * 1024;

/// What a program complains about.
pub(super) struct Complaints {
    lines: LineCollector,
    /// The end of it.
    pub(super) kept: String,
    /// When there was something the last time.
    pub(super) last: Instant,
}

impl Complaints {
    /// Begins without any.
    pub(super) fn new() -> Self {
        Self { lines: LineCollector::new(), kept: String::new(), last: Instant::now() }
    }

    /// Reads what there is; tells whether there can be more.
    pub(super) async fn read(
        &mut self,
        stderr: &mut ChildStderr,
        redactor: &Redactor,
        sinks: &RefCell<&mut Sinks>,
    ) -> bool {
        let mut buffer = [0; 4096];
        let Ok(count @ 1..) = stderr.read(&mut buffer).await else { return false };
        self.last = Instant::now();
        self.keep(&String::from_utf8_lossy(&buffer[..count]));
        self.lines.push(&buffer[..count], redactor, &mut |text| show(sinks, Stream::Stderr, text));
        true
    }

    fn keep(&mut self, text: &str) {
        self.kept.push_str(text);
        // Cut at twice the size, so that not every read moves all of it.
        if self.kept.len() > 2 * COMPLAINTS {
            let cut = self.kept.len() - tail(&self.kept, COMPLAINTS).len();
            // In front of a line, as the rest of a secret would not be known for one.
            let cut = self.kept[cut..].find('\n').map_or(cut, |end| cut + end + 1);
            self.kept.drain(..cut);
        }
    }

    /// Shows what is left of the last line.
    pub(super) fn finish(&mut self, redactor: &Redactor, sinks: &RefCell<&mut Sinks>) {
        self.lines.finish(redactor, &mut |text| show(sinks, Stream::Stderr, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_begins_with_a_line() {
        let mut complaints = Complaints::new();
        for _ in 0..20_000 {
            complaints.keep("token=a-secret\n");
            assert!(complaints.kept.starts_with("token=") && complaints.kept.len() <= 2 * COMPLAINTS);
        }
        complaints.keep(&"x".repeat(3 * COMPLAINTS));
        assert_eq!(complaints.kept.len(), COMPLAINTS);
    }
}
