//! Lines that are put together from what a program prints, for those who read every line as a whole.

/// A line longer than this is not an event of any host.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Puts lines together from chunks, without a bound on what is printed and with one on what is kept.
#[derive(Default)]
pub(super) struct Assembly {
    line: Vec<u8>,
    is_too_long: bool,
}

impl Assembly {
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > LONGEST_LINE {
                // The rest of the line is passed over, too: half an event may mean something else.
                self.is_too_long = true;
                self.line.clear();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                self.finish(take);
            }
        }
    }

    pub(super) fn finish(&mut self, take: &mut dyn FnMut(&str)) {
        if !std::mem::take(&mut self.is_too_long) && !self.line.is_empty() {
            let line = String::from_utf8_lossy(&self.line);
            take(line.trim_end_matches(['\n', '\r']));
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_and_the_longest_are_left_out() {
        let mut assembly = Assembly::default();
        let mut lines = Vec::new();
        let mut take = |line: &str| lines.push(line.to_owned());
        assembly.push(b"one\r\ntw", &mut take);
        assembly.push(b"o\n", &mut take);
        for _ in 0..5 {
            assembly.push(&vec![b'x'; LONGEST_LINE / 4], &mut take);
        }
        assembly.push(b"x\nthree", &mut take);
        assembly.finish(&mut take);
        assert_eq!(lines, ["one", "two", "three"]);
        assert!(assembly.line.capacity() <= 2 * LONGEST_LINE);
    }
}
