//! Chunks of output as lines: the form in which people and logs take them, with secrets hidden.

use std::borrow::Cow;

use crate::base::redact::{Flow, Redactor};

/// Collects the bytes of one stream into lines.
pub(super) struct LineCollector {
    /// The beginning of a character that is not whole.
    begun: Vec<u8>,
    after_return: bool,
    flow: Flow,
}

impl LineCollector {
    pub(super) fn new() -> Self {
        Self { begun: Vec::new(), after_return: false, flow: Flow::default() }
    }

    /// Takes the next bytes and hands on every line that can be shown now. `\n`, `\r\n` and a lone `\r` end a line.
    pub(super) fn push(&mut self, bytes: &[u8], redactor: &Redactor, line: &mut dyn FnMut(&str)) {
        self.begun.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.begun);
        let mut rest = bytes.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return self.text(text, redactor, line),
                Err(error) => {
                    let (valid, behind) = rest.split_at(error.valid_up_to());
                    self.text(&String::from_utf8_lossy(valid), redactor, line);
                    // A character may be cut by the end of a chunk; its rest comes with the next
                    // one.
                    let Some(length) = error.error_len() else {
                        self.begun = behind.to_vec();
                        return;
                    };
                    self.text("\u{fffd}", redactor, line);
                    rest = &behind[length..];
                }
            }
        }
    }

    /// Takes a whole line.
    pub(super) fn line(&mut self, text: &str, redactor: &Redactor, line: &mut dyn FnMut(&str)) {
        self.text(text, redactor, line);
        self.text("\n", redactor, line);
    }

    /// Hands on what has no line end, or waited for what would come.
    pub(super) fn finish(&mut self, redactor: &Redactor, line: &mut dyn FnMut(&str)) {
        // The beginning of a character that never came.
        if !std::mem::take(&mut self.begun).is_empty() {
            self.text("\u{fffd}", redactor, line);
        }
        self.flow.finish(redactor, &mut |text| text.lines().for_each(&mut *line));
        self.after_return = false;
    }

    fn text(&mut self, text: &str, redactor: &Redactor, line: &mut dyn FnMut(&str)) {
        let text = self.with_one_line_end(text);
        self.flow.push(&text, redactor, &mut |text| text.lines().for_each(&mut *line));
    }

    /// Writes every line end as `\n`.
    fn with_one_line_end<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut rest = text;
        // A `\r` at the end of a chunk ended the line already, and this `\n` belongs to it.
        if !rest.is_empty() && std::mem::take(&mut self.after_return) {
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        }
        if !rest.contains('\r') {
            return Cow::Borrowed(rest);
        }
        self.after_return = rest.ends_with('\r');
        Cow::Owned(rest.replace("\r\n", "\n").replace('\r', "\n"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(chunks: &[&[u8]], secret: &str) -> Vec<String> {
        let redactor = Redactor::new([secret]);
        let mut all = Vec::new();
        let mut lines = LineCollector::new();
        for chunk in chunks {
            lines.push(chunk, &redactor, &mut |line| all.push(line.to_owned()));
        }
        lines.finish(&redactor, &mut |line| all.push(line.to_owned()));
        all
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        assert_eq!(lines(&[b"a\nb\r\nc\rd\r", b"\ne"], ""), ["a", "b", "c", "d", "e"]);
        assert_eq!(lines(&[b"\n\n"], ""), ["", ""]);
    }

    #[test]
    fn invalid_bytes_are_replaced() {
        assert_eq!(lines(&[b"\xff ok\n"], ""), ["\u{fffd} ok"]);
    }

    #[test]
    fn a_secret_across_two_reads_is_hidden() {
        assert_eq!(lines(&[b"x sec", b"ret-1 y\n"], "secret-1"), ["x *** y"]);
    }

    proptest! {
        #[test]
        fn no_cut_lets_a_secret_through(before in 0usize..40_000, at in 0usize..40_000) {
            let secret = "s3cr3t-t0k3n-value";
            let text = format!("{}{secret}{}", "a".repeat(before), "b".repeat(20_000));
            let (one, two) = text.as_bytes().split_at(at.min(text.len()));
            let shown = lines(&[one, two], secret).concat();
            prop_assert!(!shown.contains(secret));
            prop_assert!(shown.contains("***"));
            prop_assert_eq!(shown.len(), text.len() - secret.len() + 3);
        }
    }
}
