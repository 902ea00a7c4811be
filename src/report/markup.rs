//! The one way of a text into HTML and SVG: it is a text there, whatever it holds, and what cannot be seen is written out.

use std::fmt::Write as _;

/// Markup that is being written. Only what this program says can be an element; everything else is a text in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup {
    written: String,
}

/// Attributes: their names, and their values as they are to be read.
pub type Attributes<'a> = [(&'static str, &'a str)];

impl Markup {
    /// Takes a text that is markup already, all of which this program wrote.
    pub(super) fn of_ours(written: String) -> Self {
        Self { written }
    }

    /// Returns what was written.
    pub fn into_text(self) -> String {
        self.written
    }

    /// Returns how many bytes were written.
    pub fn size(&self) -> usize {
        self.written.len()
    }

    /// Writes markup of this program.
    // No text of a run lives that long, so that none can get here by mistake.
    pub fn ours(&mut self, markup: &'static str) -> &mut Self {
        self.written.push_str(markup);
        self
    }

    /// Adds other markup.
    pub fn add(&mut self, other: &Self) -> &mut Self {
        self.written.push_str(&other.written);
        self
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        push_escaped(text, &mut self.written);
        self
    }

    /// Begins an element.
    pub fn open(&mut self, name: &'static str, attributes: &Attributes<'_>) -> &mut Self {
        self.written.push('<');
        self.written.push_str(name);
        for (name, value) in attributes {
            let _ = write!(self.written, " {name}=\"");
            push_escaped(value, &mut self.written);
            self.written.push('"');
        }
        self.written.push('>');
        self
    }

    /// Ends an element.
    pub fn close(&mut self, name: &'static str) -> &mut Self {
        let _ = write!(self.written, "</{name}>");
        self
    }

    /// Writes an element that holds a text.
    pub fn leaf(&mut self, name: &'static str, attributes: &Attributes<'_>, text: &str) -> &mut Self {
        self.open(name, attributes).text(text).close(name)
    }

    /// Writes an element around something.
    pub fn within(
        &mut self,
        name: &'static str,
        attributes: &Attributes<'_>,
        content: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.open(name, attributes);
        content(self);
        self.close(name)
    }
}

/// Returns a text as the content of an element, or as an attribute between double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_escaped(text, &mut out);
    out
}

fn push_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => push_seen(c, out),
        }
    }
}

/// Writes a character so that it is seen where it stands.
pub(super) fn push_seen(c: char, out: &mut String) {
    if is_unseen(c) {
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
    } else {
        out.push(c);
    }
}

/// Tells whether a character is not seen where it stands, turns the direction of reading, or is not allowed in XML at all. What
/// joins letters and signs is part of how people write.
fn is_unseen(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n'))
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fffe}'..='\u{ffff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_a_text_and_all_of_it_is_seen() {
        let mut markup = Markup::default();
        markup.leaf("p", &[("title", "\"><script>")], "a < b & 'c'\u{202e}\u{0}\u{7f}\n\tz\u{200d}w");
        let expected = "<p title=\"&quot;&gt;&lt;script&gt;\">a &lt; b &amp; &#39;c&#39;⟨U+202E⟩⟨U+0000⟩⟨U+007F⟩\n\tz\u{200d}w</p>";
        assert_eq!(markup.into_text(), expected);
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_element(text in any::<String>()) {
            let out = escaped(&text);
            prop_assert!(!out.contains(['<', '>', '"', '\'']));
            prop_assert!(out.chars().all(|c| !is_unseen(c)));
        }
    }
}
