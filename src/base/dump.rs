//! Dumps with addresses, as `xxd`, `hexdump -C`, `od` and their like print them, as the bytes that they show.
//!
//! A line of a dump begins with an address. What follows are columns of one width, and perhaps the same as text behind
//! them. What is found in the bytes of several lines stands for all of these lines, with their text columns.

use super::escape::{UnescapedText, is_quoting};

/// The longest address.
const ADDRESS: usize = 16;

/// No address is shorter.
// With fewer digits, many a line that begins with a number would be taken for one of a dump.
const LEAST_ADDRESS: usize = 4;

/// A byte that is in no text: what stands before and behind it does not belong together.
const BREAK: u8 = 0xFF;

/// How the columns of a line are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// `68 75`, `6875`, `68756e74`: the bytes in their order.
    Hex,
    /// `7568`: words of a machine that has their last byte first.
    Words,
    /// `150 165`.
    Octal,
    /// `072550`: as words, in octal digits.
    OctalWords,
    /// `104 117`.
    Decimal,
    /// `h   u  \n 303 251`.
    Characters,
}

impl Columns {
    const ALL: [Self; 6] =
        [Self::Hex, Self::Words, Self::Octal, Self::OctalWords, Self::Decimal, Self::Characters];

    /// Reads one column.
    fn read(self, word: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let number = |radix: u32| {
            let add = |sum: u32, byte: &u8| Some(sum * radix + char::from(*byte).to_digit(radix)?);
            // No column has more digits than the words of `od`, so the sum cannot overflow.
            if word.len() > 6 { None } else { word.iter().try_fold(0, add) }
        };
        match self {
            Self::Hex | Self::Words => {
                if !word.len().is_multiple_of(2) || word.len() > 16 || (self == Self::Words && word.len() < 4)
                {
                    return None;
                }
                let at = out.len();
                for pair in word.chunks(2) {
                    let digit = |byte: u8| char::from(byte).to_digit(16);
                    out.push(u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?);
                }
                if self == Self::Words {
                    out[at..].reverse();
                }
            }
            Self::Octal if word.len() == 3 => out.push(u8::try_from(number(8)?).ok()?),
            Self::OctalWords if word.len() == 6 => out.extend(u16::try_from(number(8)?).ok()?.to_le_bytes()),
            Self::Decimal if word.len() <= 3 => out.push(u8::try_from(number(10)?).ok()?),
            Self::Characters => match word {
                // Which of them it is does not matter, since secrets are looked for by their letters and digits.
                [b'\\', b'n' | b't' | b'r' | b'v' | b'f' | b'a' | b'b' | b'0'] => out.push(b'\n'),
                word if word.len() > 3 && !word.iter().any(|byte| is_quoting(*byte)) => return None,
                // Somebody may have quoted the dump; what quotes is left out of what is looked for.
                word => match bare(word)[..] {
                    [] => {}
                    [byte] => out.push(byte),
                    [high, middle, low] => out.push(octal([high, middle, low])?),
                    _ => return None,
                },
            },
            Self::Octal | Self::OctalWords | Self::Decimal => return None,
        }
        Some(())
    }
}

fn bare(word: &[u8]) -> Vec<u8> {
    word.iter().copied().filter(|byte| !is_quoting(*byte)).collect()
}

/// Reads three octal digits.
fn octal(digits: [u8; 3]) -> Option<u8> {
    let add = |sum: u32, digit: u8| Some(sum * 8 + char::from(digit).to_digit(8)?);
    u8::try_from(digits.into_iter().try_fold(0, add)?).ok()
}

/// The bytes of the dumps in a text, read in one way.
pub(super) struct View {
    /// What they show, with where it stands.
    pub(super) bare: UnescapedText,
    /// Whether the text ends in a dump.
    pub(super) is_open: bool,
}

/// Reads the dumps in a text in every way in which they may be meant.
pub(super) fn views(text: &[u8]) -> Vec<View> {
    let mut views: Vec<(Columns, View)> = Vec::new();
    let (mut at, mut was_dump) = (0, false);
    let mut bytes = Vec::new();
    while at < text.len() {
        let end = text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length);
        let data =
            address(&text[at..end]).map(|(length, style)| (at + length, &text[at + length..end], style));
        if data.is_some() || was_dump {
            for columns in Columns::ALL {
                bytes.clear();
                let is_read = data.is_some_and(|(_, data, ends)| line(columns, data, ends, &mut bytes));
                let known = views.iter_mut().find(|(known, _)| *known == columns);
                match (known, data) {
                    (Some((_, view)), Some((from, data, _))) if is_read => {
                        view.bare.push(from, data.len(), &bytes);
                        view.is_open = true;
                    }
                    (None, Some((from, data, _))) if is_read => {
                        let mut view = View { bare: UnescapedText::empty(), is_open: true };
                        view.bare.push(from, data.len(), &bytes);
                        views.push((columns, view));
                    }
                    (Some((_, view)), _) if view.is_open => {
                        view.bare.push(at, end - at, &[BREAK]);
                        view.is_open = false;
                    }
                    _ => {}
                }
            }
        }
        was_dump = data.is_some();
        at = end + 1;
    }
    views.into_iter().map(|(_, view)| view).collect()
}

/// Returns where the columns begin in a line that begins with an address, and whether two blanks end them.
fn address(line: &[u8]) -> Option<(usize, bool)> {
    let begin = line.iter().position(|byte| *byte != b' ')?;
    let begin = if line[begin..].starts_with(b"0x") { begin + 2 } else { begin };
    let digits = line[begin..].iter().take(ADDRESS + 1).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let end = begin + digits;
    let is_end = match line.get(end)? {
        b':' => line.get(end + 1).is_some_and(u8::is_ascii_whitespace),
        byte => matches!(byte, b' ' | b'\t'),
    };
    ((LEAST_ADDRESS..=ADDRESS).contains(&digits) && is_end).then_some((end + 1, line[end] == b':'))
}

/// Reads the columns of a line, up to the text behind them.
fn line(columns: Columns, data: &[u8], blanks_end: bool, out: &mut Vec<u8>) -> bool {
    let is_hex = matches!(columns, Columns::Hex | Columns::Words);
    let mut at = 0;
    let mut width = None;
    while at < data.len() {
        let blanks = data[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        at += blanks;
        let length = data[at..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let word = &data[at..at + length];
        let is_text = matches!(word, [b'|' | b'>', ..]) && columns != Columns::Characters;
        // Without a mark behind the address, only a whole line of sixteen bytes says that a text follows.
        let is_behind = width.is_some() && blanks > 1 && is_hex && (blanks_end || out.len() >= 16);
        if length == 0 || is_text || is_behind {
            break;
        }
        let before = out.len();
        // The last column of a line may be narrower than the others and is never wider.
        let fits = !is_hex || width.is_none_or(|width| length <= width);
        if !fits || columns.read(word, out).is_none() {
            out.truncate(before);
            // The text behind the columns of one that does not say where it begins.
            if width.is_none() || blanks < 2 {
                return false;
            }
            break;
        }
        width = width.or(Some(length));
        at += length;
    }
    !out.is_empty()
}
