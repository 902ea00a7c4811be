//! Makes a line of a journal light enough to be read: what no run writes of itself is cut, or refused, before any of it
//! is taken into memory as values, which cost up to a hundred times their length.

use std::borrow::Cow;

/// The most bytes of texts that are taken from a line; what is beyond is cut.
const TEXT: usize = 8 << 20;

/// How much of each text is left in any case: names of fields, ids and moments are shorter.
const NAME: usize = 128;

/// The most separators outside of texts.
const PARTS: usize = 300_000;

/// The same of the events that list the files of a working tree, about thirty for a file.
const PARTS_OF_A_TREE: usize = 3_000_000;

/// A line that may cost no more than this is as it is.
const SHORT: usize = 64 << 10;

/// What stands in place of the end of a text.
const CUT: &[u8] = "…".as_bytes();

/// The line holds more than any run writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overfull;

/// Returns the line, with texts that end early where there is more of them than a run writes. What is no JSON stays none.
pub(super) fn lightened(line: &[u8]) -> Result<Cow<'_, [u8]>, Overfull> {
    if line.len() <= SHORT {
        return Ok(Cow::Borrowed(line));
    }
    // The kind of an event is always written first; a line that begins with something else has the smaller limit.
    let lists_files = line.starts_with(br#"{"event":"loop_"#);
    let parts = if lists_files { PARTS_OF_A_TREE } else { PARTS };
    // A shorter line cannot have more text than that, so it is only counted.
    let out = (line.len() > TEXT).then(Vec::new);
    let light = Scan { rest: line, out, text: TEXT, parts, bare: TEXT }.all()?;
    Ok(light.map_or(Cow::Borrowed(line), Cow::Owned))
}

struct Scan<'l> {
    rest: &'l [u8],
    /// The lighter line, where the line may have to be cut.
    out: Option<Vec<u8>>,
    /// How much text may still come.
    text: usize,
    /// How many separators.
    parts: usize,
    /// How much of what is not text.
    bare: usize,
}

impl Scan<'_> {
    fn all(mut self) -> Result<Option<Vec<u8>>, Overfull> {
        while let [first, rest @ ..] = self.rest {
            self.rest = rest;
            self.bare(*first)?;
            if *first == b'"' {
                self.text();
            }
        }
        Ok(self.out)
    }

    /// Takes a byte outside of texts.
    fn bare(&mut self, byte: u8) -> Result<(), Overfull> {
        if matches!(byte, b',' | b':' | b'[' | b'{') {
            self.parts = self.parts.checked_sub(1).ok_or(Overfull)?;
        }
        if self.out.is_some() {
            self.bare = self.bare.checked_sub(1).ok_or(Overfull)?;
            self.keep(&[byte]);
        }
        Ok(())
    }

    /// Takes a text whose first quote was taken, with its last one. Stretches without an escape are taken at once.
    fn text(&mut self) {
        let mut room = Some(NAME);
        loop {
            let length = match self.rest {
                [] => return,
                [b'"', ..] => {
                    self.rest = &self.rest[1..];
                    self.keep(b"\"");
                    return;
                }
                [b'\\', b'u', ..] => 6,
                [b'\\', ..] => 2,
                plain => plain.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(plain.len()),
            };
            let (stretch, rest) = self.rest.split_at(length.min(self.rest.len()));
            self.rest = rest;
            room = room.and_then(|free| self.stretch(stretch, free));
        }
    }

    /// Keeps a part of a text of which so much is free, and returns how much is left of that; nothing if the text ends
    /// early here.
    fn stretch(&mut self, stretch: &[u8], free: usize) -> Option<usize> {
        let mut end = stretch.len();
        if end > free + self.text {
            // Neither an escape nor a character is cut in two.
            let is_within = |at: usize| stretch[0] == b'\\' || stretch[at] & 0b1100_0000 == 0b1000_0000;
            end = free + self.text;
            while end > 0 && is_within(end) {
                end -= 1;
            }
        }
        self.keep(&stretch[..end]);
        self.text -= end.saturating_sub(free);
        if end < stretch.len() {
            self.keep(CUT);
            return None;
        }
        Some(free.saturating_sub(end))
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out {
            out.extend(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn cut(line: &str) -> Value {
        serde_json::from_slice(&lightened(line.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_long_text_ends_early_and_the_rest_of_the_line_stays() {
        for unit in ["x", "é", "🦀", "\\n", "\\u001b", "\\\"", "\\\\"] {
            let text = unit.repeat((TEXT + 1000) / unit.len());
            let line = format!(r#"{{"a":"{text}","b":[1,"later"],"c":{{"d":"{text}"}}}}"#);
            let found = cut(&line);
            let a = found["a"].as_str().unwrap();
            assert!(a.ends_with('…') && a.len() <= TEXT + NAME + 3, "{unit}");
            assert_eq!(found["b"], json!([1, "later"]), "{unit}");
            let d = found["c"]["d"].as_str().unwrap();
            assert!(d.ends_with('…') && d.len() <= NAME + 3, "{unit}");
        }
    }

    #[test]
    fn more_parts_than_a_run_writes_are_refused() {
        let line =
            |event: &str, count: usize| format!(r#"{{"event":"{event}","x":[{}0]}}"#, "0,".repeat(count));
        assert_eq!(lightened(line("evaluate", PARTS).as_bytes()), Err(Overfull));
        assert!(lightened(line("evaluate", PARTS - 100).as_bytes()).is_ok());
        assert!(lightened(line("loop_complete", PARTS).as_bytes()).is_ok());
        assert_eq!(lightened(line("loop_complete", PARTS_OF_A_TREE).as_bytes()), Err(Overfull));
        assert_eq!(lightened("1".repeat(2 * TEXT).as_bytes()), Err(Overfull));
        // What stands in a text separates nothing.
        assert!(lightened(json!({"a": ",".repeat(PARTS * 2)}).to_string().as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn what_is_json_stays_json(texts in proptest::collection::vec(".{0,300}", 0..9), room in 0_usize..80) {
            let line = json!({"texts": texts, "last": [true]}).to_string();
            let scan = Scan { rest: line.as_bytes(), out: Some(Vec::new()), text: room, parts: 99, bare: 999 };
            let light = scan.all().unwrap().unwrap();
            let found: Vec<Value> = serde_json::from_slice::<IndexMap<String, Vec<Value>>>(&light)
                .unwrap()
                .into_values()
                .flatten()
                .collect();
            prop_assert_eq!(found.len(), texts.len() + 1);
        }

        #[test]
        fn whatever_comes_it_ends(line in proptest::collection::vec(any::<u8>(), 0..200), room in 0_usize..80) {
            let scan = Scan { rest: &line, out: Some(Vec::new()), text: room, parts: 9, bare: 99 };
            let _ends = scan.all();
        }
    }
}
