//! Markdown that is too long for where it goes: cut at the end of a line, and never inside of a block of code, which
//! would take in what comes after it.

use std::borrow::Cow;

/// Returns the text, or as many of its first lines as fit together with a note that says so. Nothing, where not even
/// the first line fits.
pub(super) fn cut<'t>(markdown: &'t str, limit: usize, note: &str) -> Option<Cow<'t, str>> {
    if markdown.len() <= limit {
        return Some(Cow::Borrowed(markdown));
    }
    let room = limit.saturating_sub(note.len() + PART.len());
    let (mut end, mut fence, mut kept) = (0, None, 0);
    for line in markdown.split_inclusive('\n') {
        end += line.len();
        if end > room {
            break;
        }
        // The fence of CommonMark: at least three backquotes, closed by at least as many.
        let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
        fence = match fence {
            None if ticks >= 3 => Some(ticks),
            Some(open) if ticks >= open && line.trim_end().len() == ticks => None,
            open => open,
        };
        // A place to cut is only where no block of code is open.
        if fence.is_none() {
            kept = end;
        }
    }
    let start = markdown[..kept].trim_end();
    (!start.is_empty()).then(|| Cow::Owned(format!("{start}{PART}{note}")))
}

/// What is between the text and the note.
const PART: &str = "\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, limit: usize, expected: Option<&str>) {
        let found = cut(markdown, limit, "> cut");
        assert_eq!(found.as_deref(), expected);
        assert!(found.is_none_or(|text| text.len() <= limit));
    }

    #[test]
    fn a_text_is_cut_between_lines_and_outside_of_code() {
        check("# a\n\nb\n", 8, Some("# a\n\nb\n"));
        check("# a\n\nb\n\nc\nd\n", 11, Some("# a\n\n> cut"));
        check("# a\n\nb\n\nc\nd\n", 10, None);
        check("éé\nüü\n", 12, Some("éé\nüü\n"));
        check("éé\nüü\nöö\n", 14, Some("éé\n\n> cut"));
        let code = "a\n```text\nb\nc\n```\nd\n";
        check(code, 19, Some("a\n\n> cut"));
        let long = format!("a\n````text\n```\nc\n````\nd\n{}", "e".repeat(50));
        check(&long, 26, Some("a\n\n> cut"));
        check(&long, 40, Some("a\n````text\n```\nc\n````\nd\n\n> cut"));
        check("a line that is too long", 12, None);
    }
}
