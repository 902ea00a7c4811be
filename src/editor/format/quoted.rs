//! Texts in quotes, with the quotes that Prettier chooses: double ones, unless that would cost an escape.

/// Returns the end of a text in quotes at the beginning of `text`, behind its last quote.
pub(super) fn end(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => {
                chars.next();
            }
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
            }
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Writes a text in quotes with the quotes of its content.
pub(super) fn chosen(written: &str) -> String {
    let is_double = written.starts_with('"');
    let raw = &written[1..written.len() - 1];
    // What follows a backslash, but a quote, can be written in one kind of quotes alone.
    let needs_its_own = if is_double { has_other_escapes(raw) } else { raw.contains('\\') };
    if needs_its_own {
        return written.to_owned();
    }
    let (content, has_double) = if is_double {
        (raw.replace("\\\"", "\""), raw.contains("\\\""))
    } else {
        (raw.replace("''", "'"), raw.contains('"'))
    };
    if has_double { format!("'{}'", content.replace('\'', "''")) } else { format!("\"{content}\"") }
}

/// Tells whether a backslash stands before anything but a double quote.
fn has_other_escapes(raw: &str) -> bool {
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next() != Some('"') {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_the_quote_that_is_no_part_of_the_text() {
        assert_eq!(end("'it''s' x"), Some(7));
        assert_eq!(end(r#""a\"b" x"#), Some(6));
        assert_eq!(end("'open"), None);
        assert_eq!(end("plain"), None);
    }

    #[test]
    fn quotes_are_double_unless_that_costs_an_escape() {
        assert_eq!(chosen("'a'"), "\"a\"");
        assert_eq!(chosen("'it''s'"), "\"it's\"");
        assert_eq!(chosen("'say \"hi\"'"), "'say \"hi\"'");
        assert_eq!(chosen(r#""say \"it's\"""#), "'say \"it''s\"'");
        assert_eq!(chosen(r#""a\nb""#), r#""a\nb""#);
        assert_eq!(chosen(r"'a\b'"), r"'a\b'");
        assert_eq!(chosen("''"), "\"\"");
    }
}
