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
    kept: Vec<u8>,
    /// When there was something the last time.
    pub(super) last: Instant,
}

impl Complaints {
    /// Begins without any.
    pub(super) fn new() -> Self {
        Self { lines: LineCollector::new(), kept: Vec::new(), last: Instant::now() }
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
        self.keep(&buffer[..count], redactor);
        self.lines.push(&buffer[..count], redactor, &mut |text| show(sinks, Stream::Stderr, text));
        true
    }

    /// Keeps bytes as they came: a letter that a read has cut, or a secret with one, would not be known any more.
    fn keep(&mut self, bytes: &[u8], redactor: &Redactor) {
        self.kept.extend_from_slice(bytes);
        // Cut at twice the size, so that not every read moves all of it.
        if self.kept.len() > 2 * COMPLAINTS {
            let cut = self.kept.len() - COMPLAINTS;
            // In front of a line, as the rest of a secret would not be known for one.
            match self.kept[cut..].iter().position(|byte| *byte == b'\n') {
                Some(end) => drop(self.kept.drain(..=cut + end)),
                // Without a line, what is known for a secret goes before the cut may halve it.
                None => self.kept = tail(&redactor.text(&self.kept()), COMPLAINTS).as_bytes().to_vec(),
            }
        }
    }

    /// Returns the end of it.
    pub(super) fn kept(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
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
            complaints.keep(b"token=a-secret\n", &Redactor::new([""]));
            assert!(complaints.kept().starts_with("token=") && complaints.kept.len() <= 2 * COMPLAINTS);
        }
        complaints.keep("x".repeat(3 * COMPLAINTS).as_bytes(), &Redactor::new([""]));
        assert_eq!(complaints.kept.len(), COMPLAINTS);
    }

    #[test]
    fn no_piece_and_no_cut_lets_a_secret_through() {
        let secret = "s3cr3t-mit-Ümläut-4711";
        let redactor = Redactor::new([secret]);
        for before in 4070..4100 {
            let mut complaints = Complaints::new();
            let text = format!("{}{secret}\n", "x".repeat(before));
            for piece in text.as_bytes().chunks(4096) {
                complaints.keep(piece, &redactor);
            }
            let kept = complaints.kept();
            assert_eq!(redactor.text(&kept), format!("{}***\n", "x".repeat(before)));
        }
        let mut complaints = Complaints::new();
        let long = secret.repeat(3 * COMPLAINTS / secret.len());
        complaints.keep(long.as_bytes(), &redactor);
        assert!(complaints.kept().chars().all(|sign| sign == '*'), "{}", complaints.kept().len());
    }
}
