//! What every part of the page is made with: the run, sections, references, tables, and texts that fit.

use std::borrow::Cow;

use crate::base::text;
use crate::engine::event::LoopComplete;
use crate::engine::outcome::Outcome;
use crate::report::detail::Detail;
use crate::report::digest::{Digest, EndKind, SentencePart};
use crate::report::markup::Markup;
use crate::report::numbers::StepNumber;
use crate::report::why::Why;

/// Characters of a name that are shown.
pub(super) const NAME: usize = 120;

/// What the page is made of.
pub(super) struct HtmlPage<'d> {
    pub(super) digest: &'d Digest,
    pub(super) detail: Detail,
    pub(super) why: Option<Why>,
    /// The step that decided.
    pub(super) decided: Option<StepNumber>,
}

impl HtmlPage<'_> {
    /// Returns the word for the outcome.
    pub(super) fn outcome(&self) -> String {
        let is_unverified = |end: &LoopComplete| end.outcome == Outcome::Success && !end.verified;
        let word = self.digest.outcome_word().replace('_', " ");
        if self.digest.end().is_some_and(is_unverified) { format!("{word} (unverified)") } else { word }
    }

    /// Returns a sign for the outcome, which needs no colour.
    pub(super) fn mark(&self) -> &'static str {
        match self.kind() {
            "success" => "✓",
            "waits" => "⏸",
            "doubt" => "•",
            _ => "✗",
        }
    }

    /// Returns the class of the outcome.
    pub(super) fn kind(&self) -> &'static str {
        match self.digest.end_kind() {
            // A success that nothing verified is neither green nor red on the page.
            EndKind::Success if self.digest.end().is_some_and(|end| !end.verified) => "doubt",
            EndKind::Success => "success",
            EndKind::NotRun => "doubt",
            EndKind::HandedOff => "waits",
            EndKind::Failure | EndKind::Error => "failure",
        }
    }

    /// Says where everything is that actions printed.
    pub(super) fn log(&self) -> String {
        let directory = &self.digest.places.report_dir;
        if directory.is_empty() { "output.log".to_owned() } else { format!("{directory}/output.log") }
    }
}

/// A part of the page with a heading.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) markup: Markup,
}

/// The parts of the page, in order.
#[derive(Default)]
pub(super) struct PageSections {
    pub(super) all: Vec<Section>,
}

impl PageSections {
    /// Adds a part.
    pub(super) fn add(&mut self, id: &'static str, title: &'static str, content: impl FnOnce(&mut Markup)) {
        let mut markup = Markup::default();
        let heading = format!("{id}-title");
        markup.within("section", &[("id", id), ("aria-labelledby", &heading)], |out| {
            out.leaf("h2", &[("id", &heading)], title).ours("\n");
            content(out);
        });
        markup.ours("\n");
        self.all.push(Section { id, title, markup });
    }
}

/// Returns a text without escape sequences. What else cannot be seen is written out where the text is.
pub(super) fn stripped(text: &str) -> Cow<'_, str> {
    text::stripped(text)
}

/// Returns the first line of a text that is not blank, cut to so many characters.
pub(super) fn brief(text: &str, limit: usize) -> String {
    let text = stripped(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or("");
    if lines.next().is_none() && line.chars().count() <= limit {
        return line.to_owned();
    }
    let kept: String = line.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Writes a sentence; names in it are set apart.
pub(super) fn sentence(parts: &[SentencePart], out: &mut Markup) {
    for part in parts {
        match part {
            SentencePart::Words(words) => out.text(words),
            SentencePart::Name(name) => out.leaf("code", &[], &brief(name, NAME)),
        };
    }
}

/// Writes a reference to a step, which leads there if it is on the page.
pub(super) fn step_link(page: &HtmlPage<'_>, number: &StepNumber, text: &str, out: &mut Markup) {
    if page.detail.has(number) {
        out.leaf("a", &[("href", &format!("#step-{number}"))], text);
    } else {
        out.text(text);
    }
}

/// Returns the anchor of a name: bytes beyond letters, digits, `_` and `-` as `~` and two hex digits.
pub(super) fn anchor(of: &str, name: &str) -> String {
    let bytes = name.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => char::from(byte).to_string(),
        byte => format!("~{byte:02x}"),
    });
    format!("{of}-{}", bytes.collect::<String>())
}

/// Writes a table: its columns, of which those of numbers are named with `#`, and its rows.
pub(super) fn table(of: &str, columns: &[&str], out: &mut Markup, rows: impl FnOnce(&mut Markup)) {
    out.within(
        "div",
        &[
            ("class", "wide"),
            // It scrolls where it is too wide, and keys can do that only if it takes the focus.
            ("tabindex", "0"),
            ("role", "region"),
            ("aria-label", &format!("table of {of}")),
        ],
        |out| {
            out.within("table", &[], |out| {
                out.within("thead", &[], |out| {
                    out.within("tr", &[], |out| {
                        for column in columns {
                            let (name, class) =
                                column.strip_prefix('#').map_or((*column, ""), |name| (name, "n"));
                            out.leaf("th", &[("scope", "col"), ("class", class)], name);
                        }
                    });
                });
                out.within("tbody", &[], rows);
            });
        },
    );
    out.ours("\n");
}
