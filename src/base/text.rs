//! Makes output of programs readable for people: strips escape sequences, and cuts long texts at the right place.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Deserializer, Value};

/// Splits a text in what is shown and the escape sequences between, each with whether it is one. A sequence that nothing ends,
/// such as a title without its bell, ends with its line: lines are shown one by one, and the next one is no part of it.
pub fn sequences(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split_inclusive(is_line_end).flat_map(|line| {
        let end = line.chars().next_back().filter(|c| is_line_end(*c)).map_or(0, char::len_utf8);
        let (line, end) = line.split_at(line.len() - end);
        console::AnsiCodeIterator::new(line).chain((!end.is_empty()).then_some((end, false)))
    })
}

/// Removes escape sequences.
pub fn stripped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\u{9b}']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(sequences(text).filter(|(_, is_sequence)| !is_sequence).map(|(part, _)| part).collect())
}

/// Removes escape sequences and the control characters that no report can show, keeping tabs and line ends.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(stripped(text).chars().filter(|c| is_printable(*c)).collect())
}

fn is_printable(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t' | '\r')
}

/// Returns a line with the colours that its writer gave it, and nothing else of its escape sequences; nothing when it
/// has none, or when it would not read as `clean`, which is what a reader may see of it. Whatever is broken in `clean`
/// because it would be obeyed is so without its colours, and no colour can put it together again.
pub fn coloured(line: &str, clean: &str) -> Option<String> {
    const RESET: &str = "\u{1b}[0m";
    if !line.contains(CSI) {
        return None;
    }
    let (mut out, mut seen) = (String::with_capacity(line.len()), String::with_capacity(clean.len()));
    for (part, is_sequence) in sequences(line) {
        if is_sequence {
            out.extend(is_colour(part).then_some(part));
            continue;
        }
        for c in part.chars().filter(|c| is_printable(*c) && !is_direction(*c)) {
            out.push(c);
            seen.push(c);
        }
    }
    let has_colour = out.len() > seen.len();
    // A colour without an end would go on in the lines that follow.
    (has_colour && seen == clean).then(|| if out.ends_with(RESET) { out } else { out + RESET })
}

/// What a colour begins with.
const CSI: &str = "\u{1b}[";

/// Tells whether an escape sequence chooses a colour or a weight (SGR), and is nothing that only ends like one.
fn is_colour(sequence: &str) -> bool {
    let numbers = sequence.strip_prefix(CSI).and_then(|rest| rest.strip_suffix('m'));
    numbers.is_some_and(|numbers| {
        // Two colours of 24 bits, the longest that programs write, take 33.
        numbers.len() <= 40 && numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
    })
}

/// Makes a text fit for a terminal, whoever wrote it: no escape sequences, no control characters but tabs and line
/// ends, and nothing that turns the direction of reading. A line that a carriage return would write over stays.
pub fn screen(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let stripped = stripped(text);
    let mut out = String::with_capacity(stripped.len());
    let mut chars = stripped.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() != Some(&'\n') => out.push('\n'),
            c if is_shown(c) => out.push(c),
            _ => {}
        }
    }
    Cow::Owned(out)
}

/// Does the same to a text that we have drawn, and leaves its colours: what is quoted in it must be fit already.
pub fn screen_drawn(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    for (start, _) in text.match_indices("\u{1b}[") {
        let code = &text[start + 2..];
        let length = code.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
        if code[length..].starts_with('m') {
            let end = start + 2 + length + 1;
            out.push_str(&screen(&text[rest..start]));
            out.push_str(&text[start..end]);
            rest = end;
        }
    }
    out.push_str(&screen(&text[rest..]));
    Cow::Owned(out)
}

fn is_shown(c: char) -> bool {
    (!c.is_control() || matches!(c, '\n' | '\t')) && !is_direction(c)
}

/// Writes what a terminal would obey, in the text of JSON, as JSON escapes it: the value stays the same.
pub fn screen_json(text: &str) -> Cow<'_, str> {
    use std::fmt::Write as _;
    let is_odd = |c: char| c != '\n' && !is_shown(c);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_odd(c) {
            // All of these are in the first plane of Unicode, so four digits do.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Reads JSON out of a text: the text itself, or what stands in its last code fence for it.
pub fn json_in(text: &str) -> Option<Value> {
    let text = text.trim();
    serde_json::from_str(text).ok().or_else(|| {
        // A text within JSON has no line ends, so that a fence at the start of a line is not part of one.
        let begins_line = |at: usize| text[..at].trim_end_matches([' ', '\t']).chars().next_back();
        let is_fence = |at: usize| begins_line(at).is_none_or(|before| before == '\n');
        let (at, mark) = text.rmatch_indices("```json").find(|(at, _)| is_fence(*at))?;
        let inside = &text[at + mark.len()..];
        let mut values = Deserializer::from_str(inside).into_iter();
        let value = values.next()?.ok()?;
        inside[values.byte_offset()..].trim_start().starts_with("```").then_some(value)
    })
}

/// Returns the last `limit` bytes, cut at a character.
pub fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Returns the first `limit` bytes, cut at a character.
pub fn head(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the first line, without its end; all of a text of one line.
pub fn first_line(text: &str) -> &str {
    match text.split_once('\n') {
        Some((line, _)) => line.strip_suffix('\r').unwrap_or(line),
        None => text,
    }
}

/// Returns the first word between blanks; a text without words begins with an empty one.
pub fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).map_or(text, |(word, _)| word)
}

/// Returns what stands before the first of some marks; all of a text that has none.
pub fn up_to<'t>(text: &'t str, marks: &[char]) -> &'t str {
    text.split_once(marks).map_or(text, |(before, _)| before)
}

/// Returns what stands behind the last of some marks; all of a text that has none.
pub fn after_last<'t>(text: &'t str, marks: &[char]) -> &'t str {
    text.rsplit_once(marks).map_or(text, |(_, behind)| behind)
}

/// Returns one line for a title: the first line that is not blank, cut to `limit` characters with an ellipsis.
/// Nothing in it ends a line, moves a cursor or turns the direction of reading.
pub fn one_line(text: &str, limit: usize) -> String {
    let clean = plain(text);
    let mut lines = clean.split(is_line_end).map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or("");
    let more = lines.next().is_some();
    let clean: String =
        line.chars().filter(|c| !is_direction(*c)).map(|c| if c == '\t' { ' ' } else { c }).collect();
    if clean.chars().count() <= limit && !more {
        return clean;
    }
    let kept: String = clean.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Tells whether a reader of lines ends one here, be it a runner, a terminal or an editor.
pub fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Tells whether a character turns the direction of reading, so that a line shows something else than it says.
pub fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns `count` with the word in singular or plural: `1 step`, `3 steps`.
pub fn plural(count: impl Into<u64>, word: &str) -> String {
    let count = count.into();
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Writes a price in US dollars. Only a journal that was made up has one that is longer than a line.
pub fn dollars(cost: f64) -> String {
    if cost < 1e9 { format!("${cost:.2}") } else { format!("${cost:.1e}") }
}

/// Lists names in backticks, with a word such as `and` before the last one.
pub fn listed(names: impl IntoIterator<Item = impl AsRef<str>>, before_last: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} {before_last} {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// Lists the first names in backticks, and says how many more there are.
pub fn listed_in_part(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    const SHOWN: usize = 20;
    let mut names = names.into_iter();
    let shown: Vec<String> = names.by_ref().take(SHOWN).map(|name| format!("`{}`", name.as_ref())).collect();
    match names.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Writes bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Tells whether a byte is a digit as [`hex`] writes them.
pub fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// What a text in an address keeps: the unreserved characters of RFC 3986, section 2.3.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Writes a text for an address: every byte but letters, digits and `-_.~` as `%XX`.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, &UNRESERVED).to_string()
}

/// Reads a text of an address: `%XX` as the byte that it stands for, and anything else as it is.
pub fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_controls_go_and_lines_stay() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\u{0}\tok\n"), "red\tok\n");
    }

    #[test]
    fn a_sequence_that_nothing_ends_ends_with_its_line() {
        for begun in ["\u{1b}]0;title", "\u{1b}P1$q", "\u{1b}[3"] {
            for end in ["\n", "\r\n", "\u{2028}"] {
                let text = format!("a{begun}{end}b\u{1b}[0Kc\u{1b}]0;x\u{7}d");
                let shown = plain(&text).into_owned();
                assert!(
                    shown.starts_with('a') && shown.ends_with(&format!("{end}bcd")),
                    "{text:?}: {shown:?}"
                );
                let parts = sequences(&text).fold(String::new(), |all, (part, _)| all + part);
                assert_eq!(parts, text);
            }
        }
    }

    #[test]
    fn of_escapes_only_colours_stay() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(coloured(line, &plain(line)).as_deref(), expected, "{line:?}");
        };
        check("plain", None);
        check("\u{1b}[31mred\u{1b}[0m", Some("\u{1b}[31mred\u{1b}[0m"));
        check("\u{1b}[1;38;5;9mred", Some("\u{1b}[1;38;5;9mred\u{1b}[0m"));
        check("a\u{1b}[mb", Some("a\u{1b}[mb\u{1b}[0m"));
        for other in [
            "\u{1b}[2J",
            "\u{1b}[?25l",
            "\u{1b}[>4m",
            "\u{1b}[31 m",
            "\u{1b}]8;;x\u{7}",
            "\u{1b}c",
            "\u{9b}31m",
            "\u{1b}[1A",
        ] {
            check(&format!("a{other}b"), None);
            let line = format!("{other}\u{1b}[31mb\u{1b}[0m{other}");
            let shown = coloured(&line, &plain(&line)).unwrap_or_default();
            assert!(
                !shown.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "").contains(['\u{1b}', '\u{9b}']),
                "{line:?}"
            );
        }
        // What is not to be seen as it is written has no colours.
        assert_eq!(coloured("#\u{1b}[31m#[error]x", "# #[error]x"), None);
    }

    #[test]
    fn nothing_on_a_screen_is_obeyed() {
        for (text, expected) in [
            ("a\tb\nc", "a\tb\nc"),
            ("a\u{1b}[2Jb\u{1b}]0;title\u{7}c\u{1b}[31md", "abcd"),
            ("a\u{9b}2Jb\u{7f}\u{8}c", "abc"),
            ("a\u{1b}Pq\u{1b}", "a"),
            ("one\r\ntwo\rthree\r", "one\ntwo\nthree\n"),
            ("a\u{202e}b\u{2066}c", "abc"),
        ] {
            assert_eq!(screen(text), expected, "{text:?}");
            assert_eq!(screen_drawn(&text.replace("\u{1b}[31m", "")), expected, "{text:?}");
        }
        assert_eq!(screen_drawn("\u{1b}[1;31ma\u{1b}[0m\u{1b}[2Jb"), "\u{1b}[1;31ma\u{1b}[0mb");
        assert_eq!(screen_json("{\"a\":\"\u{9b}é\u{202e}\"}\n"), "{\"a\":\"\\u009bé\\u202e\"}\n");
    }

    #[test]
    fn names_are_listed() {
        let list = |names: &[&str]| listed(names, "or");
        assert_eq!([list(&[]), list(&["a"]), list(&["a", "b"])], ["", "`a`", "`a` or `b`"]);
        assert_eq!(listed(["a", "b", "c"], "and"), "`a`, `b` and `c`");
        assert_eq!(listed_in_part(["a", "b"]), "`a`, `b`");
        assert!(listed_in_part(std::iter::repeat_n("a", 2_000)).ends_with(", `a` and 1980 more"));
    }

    #[test]
    fn json_is_the_text_or_what_its_last_fence_holds() {
        for (text, expected) in [
            (" [1, 2]\n", Some("[1,2]")),
            ("\"a\"", Some("\"a\"")),
            ("so:\n```json\n{\"a\": 1}\n```\n", Some(r#"{"a":1}"#)),
            ("```json\n1\n```\nno, this:\n  ```json\n2\n  ```", Some("2")),
            ("```json\n{\"a\": \"```json\\n```\"}\n```", Some(r#"{"a":"```json\n```"}"#)),
            ("```json\n1\n```\n```json\nbroken\n```", None),
            ("```json\n{\"a\": 1}\n", None),
            ("```json\n1 2\n```", None),
            ("done", None),
            ("{} {}", None),
            ("", None),
        ] {
            assert_eq!(json_in(text).map(|value| value.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(tail("aé", 1), "");
        assert_eq!(tail("aéb", 3), "éb");
        assert_eq!(head("éa", 1), "");
    }

    #[test]
    fn a_part_without_a_mark_is_the_whole_text() {
        for text in ["", "a", "a\r", "a\nb", "a\r\nb", "\nb", "a\r\r\n"] {
            assert_eq!(Some(first_line(text)), text.lines().next().or(Some("")), "{text:?}");
        }
        assert_eq!(["", " ", "a", " a b", "a\n"].map(first_word), ["", "", "a", "a", "a"]);
        assert_eq!(["", "a", "=a", "a:b=c"].map(|text| up_to(text, &['=', ':'])), ["", "a", "", "a"]);
        assert_eq!(["", "a", "a/", "a/b:c"].map(|text| after_last(text, &['/', ':'])), ["", "a", "", "c"]);
    }

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(one_line("\n  cargo test \n", 20), "cargo test");
        assert_eq!(one_line("cd x\nmake", 20), "cd x…");
        assert_eq!(one_line("abcdefgh", 5), "abcd…");
        assert_eq!(one_line("a\tb\rc", 20), "a b…");
        assert_eq!(one_line("a\u{202e}b\u{1b}[2Jc", 20), "abc");
    }
}
