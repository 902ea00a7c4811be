//! Makes inputs from others: bits and bytes, lines, words of the format, values of JSON and numbers.

/// A source of numbers that is the same for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins a sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `bound`, or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.below(from.len()))
    }

    /// Returns a range of at most `most` within `length`.
    fn range(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(most) + 1)
    }
}

/// Longer inputs find nothing that shorter ones do not, and take longer.
pub const LONGEST: usize = 48 * 1024;

/// Values that are often forgotten.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0.1",
    "1e308",
    "1e309",
    "1e-400",
    "NaN",
    "inf",
    "007",
    "0x10",
    "99999999999999999999999999999999",
];

const VALUES: &[&str] =
    &["null", "true", "false", "0", "-1", "1.5", "\"\"", "\"x\"", "[]", "{}", "[[]]", "{\"\":{}}"];

/// Returns another input.
pub fn mutate(corpus: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut data = random.pick(corpus).cloned().unwrap_or_default();
    for _ in 0..=random.below(6) {
        step(&mut data, corpus, words, random);
    }
    data.truncate(LONGEST);
    data
}

fn step(data: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], random: &mut Random) {
    match random.below(16) {
        0 => flip(data, random),
        1 => {
            let at = random.range(data.len(), 16);
            drop(data.drain(at));
        }
        2 => {
            let from = random.range(data.len(), 64);
            let piece = data[from].repeat(1 + random.below(4));
            insert(data, &piece, random);
        }
        3 => {
            let byte =
                random.pick(b"\0\n\r\t \"'\\{}[]:,#&*!|>%@`-$\x1b\x7f\x80\xc3\xe2\xff").copied().unwrap_or(0);
            insert(data, &vec![byte; 1 + random.below(3)], random);
        }
        4..=6 => {
            if let Some(word) = random.pick(words) {
                if random.below(2) == 0 {
                    insert(data, word.as_bytes(), random);
                } else {
                    let at = random.range(data.len(), 12);
                    data.splice(at, word.bytes());
                }
            }
        }
        7 => {
            let Some(other) = random.pick(corpus) else { return };
            let (from, at) = (random.range(other.len(), 256), random.range(data.len(), 256));
            data.splice(at, other[from].iter().copied());
        }
        8 => {
            let Some(other) = random.pick(corpus) else { return };
            let (keep, from) = (random.below(data.len() + 1), random.below(other.len() + 1));
            data.truncate(keep);
            data.extend_from_slice(&other[from..]);
        }
        9 | 10 => lines(data, corpus, random),
        11 => indent(data, random),
        12 => number(data, random),
        13 | 14 => value(data, corpus, random),
        _ => nest(data, random),
    }
}

fn flip(data: &mut [u8], random: &mut Random) {
    let (at, bit) = (random.below(data.len()), random.below(8));
    if let Some(byte) = data.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

fn insert(data: &mut Vec<u8>, piece: &[u8], random: &mut Random) {
    let at = random.below(data.len() + 1);
    data.splice(at..at, piece.iter().copied());
}

/// Takes a line out, doubles it, moves it, or brings one from elsewhere.
fn lines(data: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = data.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (from, to) = (random.below(lines.len()), random.below(lines.len() + 1));
    if lines.is_empty() {
        return;
    }
    match random.below(4) {
        0 => drop(lines.remove(from)),
        1 => lines.insert(to, lines[from].clone()),
        2 => {
            let line = lines.remove(from);
            lines.insert(to.min(lines.len()), line);
        }
        _ => {
            let Some(other) = random.pick(corpus) else { return };
            let others: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            if let Some(line) = random.pick(&others) {
                lines.insert(to, line.to_vec());
            }
        }
    }
    *data = lines.concat();
}

/// Moves a line in or out, which means something in YAML.
fn indent(data: &mut Vec<u8>, random: &mut Random) {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(data.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    let Some(start) = random.pick(&starts).copied() else { return };
    let spaces = data[start..].iter().take_while(|byte| **byte == b' ').count();
    let wanted = [0, 1, 2, 4, spaces + 2, spaces.saturating_sub(2)][random.below(6)];
    data.splice(start..start + spaces, std::iter::repeat_n(b' ', wanted));
}

/// Puts another number in the place of one.
fn number(data: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(data.len());
    let Some(start) = data.iter().skip(from).position(u8::is_ascii_digit).map(|at| at + from) else { return };
    let length = data[start..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    if let Some(number) = random.pick(NUMBERS) {
        data.splice(start..start + length, number.bytes());
    }
}

/// Returns where the value of JSON ends that begins there.
fn end_of_value(data: &[u8], start: usize) -> usize {
    let (mut depth, mut in_text, mut at) = (0_usize, false, start);
    while at < data.len() {
        match (in_text, data[at]) {
            (true, b'\\') => at += 1,
            (true, b'"') => in_text = false,
            (false, b'"') => in_text = true,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']' | b',' | b'\n') if depth == 0 => return at,
            (false, b'}' | b']') => depth -= 1,
            (true | false, _) => {}
        }
        at += 1;
        if depth == 0 && !in_text && matches!(data[at - 1], b'"' | b'}' | b']') {
            return at.min(data.len());
        }
    }
    data.len()
}

/// Returns a value of JSON somewhere.
fn a_value(data: &[u8], random: &mut Random) -> Option<std::ops::Range<usize>> {
    let from = random.below(data.len());
    let begins = |(_, byte): &(usize, &u8)| matches!(byte, b':' | b',' | b'[' | b'{');
    let (sign, _) = data.iter().enumerate().skip(from).find(begins)?;
    let start = sign + 1 + data[sign + 1..].iter().take_while(|byte| **byte == b' ').count();
    Some(start..end_of_value(data, start).max(start))
}

/// Puts another value in the place of one, from the same text, from another one, or one that is often forgotten.
fn value(data: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let Some(at) = a_value(data, random) else { return };
    let new: Vec<u8> = match random.below(3) {
        0 => random.pick(VALUES).map(|value| value.as_bytes().to_vec()).unwrap_or_default(),
        1 => a_value(data, random).map(|other| data[other].to_vec()).unwrap_or_default(),
        _ => {
            let Some(other) = random.pick(corpus) else { return };
            a_value(other, random).map(|found| other[found].to_vec()).unwrap_or_default()
        }
    };
    data.splice(at, new);
}

/// Puts something inside of itself, rarely very deep.
fn nest(data: &mut Vec<u8>, random: &mut Random) {
    let (open, close) =
        [("[", "]"), ("{\"a\":", "}"), ("- ", ""), ("{a: ", "}"), ("(", ")")][random.below(5)];
    let depth = if random.below(50) == 0 { 1 + random.below(4000) } else { 1 + random.below(12) };
    let at = random.range(data.len(), 64);
    let piece =
        [open.repeat(depth).into_bytes(), data[at.clone()].to_vec(), close.repeat(depth).into_bytes()]
            .concat();
    data.splice(at, piece);
}

/// Makes an input shorter for as long as it still does what it did.
pub fn minimise(mut data: Vec<u8>, mut still: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut size = data.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < data.len() {
            let mut shorter = data.clone();
            drop(shorter.drain(at..(at + size).min(data.len())));
            if still(&shorter) {
                data = shorter;
            } else {
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2).min(size - 1) };
    }
    data
}
