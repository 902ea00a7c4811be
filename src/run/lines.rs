//! Chunks of output as lines: the form in which people and logs take them, with secrets hidden.

use crate::base::redact::Redactor;
use crate::base::text;

/// A line longer than this is handed on in pieces.
const PIECE: usize = 16 * 1024;

/// Collects the bytes of one stream into lines.
pub(super) struct Lines {
    buffer: Vec<u8>,
    after_return: bool,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { buffer: Vec::new(), after_return: false }
    }

    /// Takes the next bytes and hands on every line that is complete now. `\n`, `\r\n` and a lone `\r` end a line.
    pub(super) fn push(&mut self, bytes: &[u8], redactor: &Redactor, line: &mut dyn FnMut(&str)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            if let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                self.buffer.extend_from_slice(&rest[..end]);
                self.after_return = rest[end] == b'\r';
                rest = &rest[end + 1..];
                emit(&self.buffer, redactor, line);
                self.buffer.clear();
            } else {
                self.buffer.extend_from_slice(rest);
                rest = &[];
            }
            self.cut(redactor, line);
        }
    }

    /// Hands on what has no line end.
    pub(super) fn finish(&mut self, redactor: &Redactor, line: &mut dyn FnMut(&str)) {
        if !self.buffer.is_empty() {
            emit(&self.buffer, redactor, line);
            self.buffer.clear();
        }
    }

    /// Hands on a piece of a line that does not end, holding back what may be the beginning of a secret.
    fn cut(&mut self, redactor: &Redactor, line: &mut dyn FnMut(&str)) {
        if self.buffer.len() < PIECE + redactor.longest() {
            return;
        }
        let clean = String::from_utf8_lossy(&self.buffer);
        let clean = redactor.text(&clean);
        let piece = text::head(&clean, clean.len().saturating_sub(redactor.longest()).saturating_sub(4));
        line(piece);
        let held_back = clean.as_bytes()[piece.len()..].to_vec();
        self.buffer = held_back;
    }
}

fn emit(bytes: &[u8], redactor: &Redactor, line: &mut dyn FnMut(&str)) {
    let text = String::from_utf8_lossy(bytes);
    line(&redactor.text(&text));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(chunks: &[&[u8]], secret: &str) -> Vec<String> {
        let redactor = Redactor::new([secret]);
        let mut all = Vec::new();
        let mut lines = Lines::new();
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
