//! Outputs of actions for a page: colours become names of classes, other escape sequences go, and what cannot be seen is
//! written out.

use crate::base::text::sequences;
use crate::report::markup::push_seen;

/// What stands before and after the names of classes. No text has it: it is written out there.
const MARK: char = '\u{1b}';

/// The names of weights, in the order of [`Look::weights`].
const WEIGHTS: [&str; 6] = ["bold", "dim", "italic", "underlined", "struck", "inverse"];
const BOLD: usize = 0;
const DIM: usize = 1;
const ITALIC: usize = 2;
const UNDERLINED: usize = 3;
const STRUCK: usize = 4;
const INVERSE: usize = 5;

/// Colours and weights that are in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AnsiStyle {
    front: Option<u8>,
    back: Option<u8>,
    weights: [bool; 6],
}

/// Returns a text of which each change of colour is the names of classes between two marks. Each line begins without
/// colour, so that it can be read alone.
pub(super) fn classed(text: &str) -> String {
    let (mut out, mut look, mut shown) =
        (String::with_capacity(text.len()), AnsiStyle::default(), AnsiStyle::default());
    let mut last = None;
    for (part, is_sequence) in sequences(text) {
        if is_sequence {
            look.take(part);
            continue;
        }
        for c in part.chars() {
            let is_end = matches!(c, '\n' | '\r');
            // What a program wrote over stays: it is a line of its own.
            if is_end && !(c == '\n' && last == Some('\r')) {
                out.push('\n');
                shown = AnsiStyle::default();
            }
            last = Some(c);
            if is_end {
                continue;
            }
            if look != shown {
                out.extend([MARK]);
                out.push_str(&look.classes());
                out.extend([MARK]);
                shown = look;
            }
            push_seen(c, &mut out);
        }
    }
    out
}

impl AnsiStyle {
    fn take(&mut self, sequence: &str) {
        let Some(numbers) = sequence.strip_prefix("\u{1b}[").and_then(|rest| rest.strip_suffix('m')) else {
            return;
        };
        // What is left out is a zero: `ESC[m` resets like `ESC[0m`.
        let mut numbers = numbers.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.weights[BOLD] = true,
                2 => self.weights[DIM] = true,
                3 => self.weights[ITALIC] = true,
                4 => self.weights[UNDERLINED] = true,
                7 => self.weights[INVERSE] = true,
                9 => self.weights[STRUCK] = true,
                22 => (self.weights[BOLD], self.weights[DIM]) = (false, false),
                23 => self.weights[ITALIC] = false,
                24 => self.weights[UNDERLINED] = false,
                27 => self.weights[INVERSE] = false,
                29 => self.weights[STRUCK] = false,
                30..=37 => self.front = u8::try_from(number - 30).ok(),
                90..=97 => self.front = u8::try_from(number - 90 + 8).ok(),
                40..=47 => self.back = u8::try_from(number - 40).ok(),
                100..=107 => self.back = u8::try_from(number - 100 + 8).ok(),
                38 => self.front = extended(&mut numbers).or(self.front),
                48 => self.back = extended(&mut numbers).or(self.back),
                39 => self.front = None,
                49 => self.back = None,
                _ => {}
            }
        }
    }

    fn classes(self) -> String {
        let is_inverse = self.weights[INVERSE];
        let (front, back) = if is_inverse { (self.back, self.front) } else { (self.front, self.back) };
        let colour = |letter: char, colour: Option<u8>| colour.map(|colour| format!("{letter}{colour}"));
        // Colours that changed places need no more than that.
        let is_said = |weight: usize| weight != INVERSE || front.is_none() && back.is_none();
        let weights = (0..WEIGHTS.len()).filter(|weight| self.weights[*weight] && is_said(*weight));
        let weights = weights.map(|weight| WEIGHTS[weight].to_owned());
        colour('f', front).into_iter().chain(colour('b', back)).chain(weights).collect::<Vec<_>>().join(" ")
    }
}

/// Reads one of 256 colours, or one of 16 million, as the nearest of the 16 that a page has.
fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<u8> {
    let levels = match numbers.next()? {
        5 => match numbers.next()? {
            basic @ 0..=15 => return u8::try_from(basic).ok(),
            grey @ 232..=255 => [(grey - 232) * 10 + 8; 3],
            cube @ 16..=231 => {
                [(cube - 16) / 36, (cube - 16) / 6 % 6, (cube - 16) % 6].map(|level| level * 51)
            }
            _ => return None,
        },
        2 => [numbers.next()?, numbers.next()?, numbers.next()?],
        _ => return None,
    };
    let most = levels.into_iter().max().unwrap_or(0).min(255);
    if most < 64 {
        return Some(0);
    }
    let is_lit = |level: u16| u8::from(level > most / 2);
    let [red, green, blue] = levels.map(is_lit);
    let colour = red | green << 1 | blue << 2;
    Some(if most > 191 {
        colour + 8
    } else if colour == 7 && most < 128 {
        // A dark grey is the bright black of a terminal.
        8
    } else {
        colour
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_are_classes_and_begin_again_with_each_line() {
        let seen = |text: &str| classed(text).replace(MARK, "|");
        assert_eq!(seen("a\u{1b}[1;31mb\nc\u{1b}[0md"), "a|f1 bold|b\n|f1 bold|c||d");
        assert_eq!(seen("\u{1b}[38;5;196mx\u{1b}[48;2;0;0;255my"), "|f9|x|f9 b12|y");
        assert_eq!(seen("\u{1b}[7mx\u{1b}[32my"), "|inverse|x|b2|y");
        assert_eq!(seen("\u{1b}[4mu\u{1b}[24mv\u{1b}[2J\u{1b}]0;title\u{7}w"), "|underlined|u||vw");
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(classed("a\u{202e}b\u{0}\r\nc\rd\u{1b}"), "a⟨U+202E⟩b⟨U+0000⟩\nc\nd⟨U+001B⟩");
    }

    proptest! {
        #[test]
        fn between_marks_are_classes_alone(text in "([a-z<>&\u{1b}\\[\u{9b}0-9;m\r\n\u{202e}]|\u{1b}\\[[0-9;]{0,6}m){0,60}") {
            for line in classed(&text).split('\n') {
                let parts: Vec<&str> = line.split(MARK).collect();
                prop_assert!(parts.len() % 2 == 1);
                for classes in parts.iter().skip(1).step_by(2) {
                    prop_assert!(classes.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b' '));
                }
            }
        }
    }
}
