//! Keeps the key out of what a service says: a gateway may repeat in an error, or anywhere else, what it was asked with.

/// A shorter key could be a word that an answer needs.
const SHORTEST: usize = 8;

/// Writes stars over a key in bytes that come piece by piece.
#[derive(Debug)]
pub(super) struct KeyMask<'k> {
    key: &'k [u8],
    /// What came last, where the key may begin in it.
    held: Vec<u8>,
}

impl<'k> KeyMask<'k> {
    pub(super) fn new(key: &'k str) -> Self {
        let key = key.as_bytes();
        Self { key: if key.len() < SHORTEST { &[] } else { key }, held: Vec::new() }
    }

    /// Tells whether the key is in some bytes.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        !self.key.is_empty() && bytes.windows(self.key.len()).any(|part| part == self.key)
    }

    /// Takes a piece, and returns what can go on. The beginning of a key at its end waits for the next one.
    pub(super) fn pass(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        if self.key.is_empty() {
            return bytes;
        }
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(self.key.len()).position(|part| part == self.key) {
            let end = from + at + self.key.len();
            bytes[from + at..end].fill(b'*');
            from = end;
        }
        // A whole key was found above, so at most one byte less can wait, and none of what was starred.
        let longest = self.key.len().min(bytes.len() - from + 1) - 1;
        let begun = (1..=longest).rev().find(|length| bytes.ends_with(&self.key[..*length])).unwrap_or(0);
        self.held = bytes.split_off(bytes.len() - begun);
        bytes
    }

    /// Returns what waits, when no more comes.
    pub(super) fn end(self) -> Vec<u8> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(key: &str, text: &str, size: usize) -> String {
        let mut mask = KeyMask::new(key);
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            out.extend(mask.pass(piece));
        }
        out.extend(mask.end());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_key_is_written_over_wherever_an_answer_is_cut() {
        let key = "sk-sk-secret";
        let text = "sk-sk-sk-secret and sk-sk-secretsk-sk-secret, sk-sk-secre";
        for size in 1..=text.len() {
            let expected = "sk-************ and ************************, sk-sk-secre";
            assert_eq!(masked(key, text, size), expected, "{size}");
        }
    }

    #[test]
    fn nothing_else_waits_and_a_word_is_no_key() {
        let mut mask = KeyMask::new("sk-secret-1");
        assert_eq!(mask.pass(b"data: {\"text\": \"so it is\"}\n\n").len(), 28);
        assert!(!mask.is_in(b"sk-secret-2") && mask.is_in(b"not sk-secret-1!"));
        assert_eq!(masked("none", "none of it", 3), "none of it");
    }
}
