//! The marks by which several CI systems know a command anywhere in a line, and how text from outside loses them:
//! `##[error]`, `##vso[task.setvariable]`, `##teamcity[buildStop]`.

use std::borrow::Cow;

/// Breaks every `##name[` with one of these names by a blank, also one with characters of no width in it: runners
/// compare as their culture says, and in most cultures such characters do not count.
pub(super) fn without_markers<'a>(text: &'a str, names: &[&str]) -> Cow<'a, str> {
    // Nearly every line of output takes this way.
    if !text.contains('[') || !text.contains('#') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut hashes = 0;
    let mut name = String::new();
    for c in text.chars() {
        match c {
            '#' => {
                // `#` within a name begins another mark.
                hashes = if name.is_empty() { hashes + 1 } else { 1 };
                name.clear();
            }
            '[' if hashes >= 2 && names.contains(&name.as_str()) => {
                out.push(' ');
                hashes = 0;
                name.clear();
            }
            // Kept in the text, and not counted in the name.
            c if is_skipped(c) => {}
            // Names of commands are compared without regard to case.
            c if hashes >= 2 && name.len() < MAX_NAME => name.extend(c.to_lowercase()),
            _ => {
                hashes = 0;
                name.clear();
            }
        }
        out.push(c);
    }
    Cow::Owned(out)
}

/// Puts a sign of ours before what a line must not begin with, be it behind blanks, or characters of no width.
pub(super) fn not_at_start<'a>(line: Cow<'a, str>, signs: &[&str]) -> Cow<'a, str> {
    let is_before = |c: char| c.is_whitespace() || is_skipped(c);
    let rest = line.trim_start_matches(is_before);
    let mut seen = rest.chars().filter(|c| !is_skipped(*c));
    let start: String = seen.by_ref().take(LONGEST_SIGN).collect();
    if !signs.iter().any(|sign| start.starts_with(sign)) {
        return line;
    }
    let before = &line[..line.len() - rest.len()];
    Cow::Owned(format!("{before}· {rest}"))
}

/// No sign is longer.
const LONGEST_SIGN: usize = 3;

/// No name is longer.
const MAX_NAME: usize = 16;

/// Tells whether a comparison of texts may skip a character (`Default_Ignorable_Code_Point`, and combining marks).
pub(super) fn is_skipped(c: char) -> bool {
    // The width alone misses what a culture skips and a terminal draws.
    console::measure_text_width(c.encode_utf8(&mut [0; 4])) == 0
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], text: &str, expect: &str) {
        assert_eq!(without_markers(text, names), expect);
    }

    #[test]
    fn a_mark_is_broken_wherever_it_stands_and_whatever_hides_in_it() {
        check(&[""], "a ##[error]b ##[x]", "a ## [error]b ## [x]");
        check(&[""], "####[error]", "#### [error]");
        check(&[""], "#\u{200b}#\u{ad}[error]", "#\u{200b}#\u{ad} [error]");
        check(&["", "vso"], "x##VsO[a]##[b]", "x##VsO [a]## [b]");
        check(&["vso"], "##v##vso[a]", "##v##vso [a]");
        check(&["vso"], "##v#vso[a]", "##v#vso[a]");
        check(&["teamcity"], "##team\u{feff}city[a]", "##team\u{feff}city [a]");
    }

    #[test]
    fn what_is_no_mark_stays() {
        check(&[""], "#[derive] ##a[0] # #[x]", "#[derive] ##a[0] # #[x]");
        check(&["teamcity"], "##[error] ##a-very-long-name-indeed[", "##[error] ##a-very-long-name-indeed[");
    }
}
