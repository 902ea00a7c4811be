//! Reads a specification in Markdown: what is to be done, by which criteria it is done, and in which steps.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The headings above criteria, and those above steps.
const CRITERIA: [&str; 3] = ["criteria", "acceptance", "acceptance criteria"];
const STEPS: [&str; 3] = ["steps", "plan", "tasks"];

/// A specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The first heading.
    pub title: Option<String>,
    /// The criteria. A ticked one has to be checked as well.
    pub criteria: Vec<String>,
    /// The steps, and whether each is ticked.
    pub steps: Vec<(String, bool)>,
}

/// What the items of a list are.
#[derive(Clone, Copy)]
enum SpecItems {
    Criteria,
    Steps,
}

/// A text that is being read.
enum SpecReading {
    Heading(HeadingLevel, String),
    Item { is_ticked: bool, text: String },
}

impl Spec {
    /// Reads it.
    pub fn read(text: &str) -> Self {
        // Without the second, the end of front matter would make a heading of the line above it.
        let options = Options::ENABLE_TASKLISTS | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
        let mut spec = Self::default();
        let mut section: Option<(HeadingLevel, SpecItems)> = None;
        let mut reading: Option<SpecReading> = None;
        // How deep in lists and quotations; only the outermost items count, and what is nested explains them.
        let mut depth = 0_u32;
        for event in Parser::new_ext(text, options) {
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    reading = Some(SpecReading::Heading(level, String::new()));
                }
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(SpecReading::Heading(level, text)) = reading.take() {
                        section = section.filter(|(above, _)| level > *above);
                        section = of_heading(&text).map(|items| (level, items)).or(section);
                        spec.title.get_or_insert_with(|| clean(&text));
                    }
                }
                Event::Start(Tag::List(_) | Tag::BlockQuote(_)) => depth += 1,
                Event::End(TagEnd::List(_) | TagEnd::BlockQuote(_)) => depth = depth.saturating_sub(1),
                Event::Start(Tag::Item) if depth == 1 => {
                    reading = Some(SpecReading::Item { is_ticked: false, text: String::new() });
                }
                Event::TaskListMarker(is) if depth == 1 => {
                    if let Some(SpecReading::Item { is_ticked, .. }) = &mut reading {
                        *is_ticked = is;
                    }
                }
                Event::End(TagEnd::Item) if depth == 1 => {
                    if let Some(SpecReading::Item { is_ticked, text }) = reading.take() {
                        spec.add(section.map(|(_, items)| items), &text, is_ticked);
                    }
                }
                Event::Text(piece) | Event::Code(piece) => add(&mut reading, depth, &piece),
                Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::Paragraph) => {
                    add(&mut reading, depth, " ");
                }
                Event::Start(_)
                | Event::End(_)
                | Event::InlineMath(_)
                | Event::DisplayMath(_)
                | Event::Html(_)
                | Event::InlineHtml(_)
                | Event::FootnoteReference(_)
                | Event::Rule
                | Event::TaskListMarker(_) => {}
            }
        }
        spec
    }

    fn add(&mut self, items: Option<SpecItems>, text: &str, is_ticked: bool) {
        let text = clean(text);
        match items {
            Some(_) if text.is_empty() => {}
            Some(SpecItems::Criteria) => self.criteria.push(text),
            Some(SpecItems::Steps) => self.steps.push((text, is_ticked)),
            None => {}
        }
    }
}

fn add(reading: &mut Option<SpecReading>, depth: u32, piece: &str) {
    match reading {
        Some(SpecReading::Heading(_, text)) => text.push_str(piece),
        Some(SpecReading::Item { text, .. }) if depth == 1 => text.push_str(piece),
        Some(SpecReading::Item { .. }) | None => {}
    }
}

/// Tells by its heading what the items of a section are.
fn of_heading(text: &str) -> Option<SpecItems> {
    let text = clean(text).to_lowercase();
    // Headings have numbers in front, and colons behind.
    let name = text.trim_matches(|c: char| !c.is_alphabetic());
    match () {
        () if CRITERIA.contains(&name) => Some(SpecItems::Criteria),
        () if STEPS.contains(&name) => Some(SpecItems::Steps),
        () => None,
    }
}

/// Returns a text with single spaces.
fn clean(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, title: &str, criteria: &[&str], steps: &[(&str, bool)]) {
        let spec = Spec::read(text);
        assert_eq!(spec.title.as_deref().unwrap_or_default(), title, "{text}");
        assert_eq!(spec.criteria, criteria, "{text}");
        let read: Vec<_> = spec.steps.iter().map(|(step, is_done)| (step.as_str(), *is_done)).collect();
        assert_eq!(read, steps, "{text}");
    }

    #[test]
    fn headings_say_what_the_items_below_them_are() {
        check(
            "# Add `login`\n\nWhy.\n\n- an aside\n\n## Acceptance Criteria\n\n- [ ] tests pass\n- [x] *docs* say how\n\n### On phones\n\n1. it\n   fits\n\n## Notes\n\n- none\n\n## Plan\n\n1. [x] users form\n2. [ ] orders form\n3. the rest\n",
            "Add login",
            &["tests pass", "docs say how", "it fits"],
            &[("users form", true), ("orders form", false), ("the rest", false)],
        );
        for heading in ["Criteria", "ACCEPTANCE:", "✅ acceptance criteria", "2. Criteria", "**Criteria**"] {
            check(&format!("# T\n## {heading}\n* one\n+ two\n"), "T", &["one", "two"], &[]);
        }
        for heading in ["Steps", "plan", "Tasks"] {
            check(&format!("# T\n## {heading}\n- one\n"), "T", &[], &[("one", false)]);
        }
        check("Title\n=====\n\nCriteria\n--------\n- a\n", "Title", &["a"], &[]);
    }

    #[test]
    fn what_is_nested_quoted_or_code_is_no_item() {
        check(
            "# T\n## Criteria\n- outer `x --y`\n\n  more of it\n  - [x] inner\n    - deep\n- next\n> - quoted\n\n```\n- code\n```\n\n    - code, too\n",
            "T",
            &["outer x --y more of it", "next"],
            &[],
        );
        check("# T\n## Criteria\n- \n- [ ]\n", "T", &[], &[]);
    }

    #[test]
    fn what_stands_in_front_of_a_document_is_no_heading() {
        check("---\ntitle: x\nid: 1\n---\n\n# T\n\n## Steps\n- a\n", "T", &[], &[("a", false)]);
        check("", "", &[], &[]);
        check("- a\n- b\n", "", &[], &[]);
        check("# Criteria\n- a\n# Other\n- b\n", "Criteria", &["a"], &[]);
    }
}
