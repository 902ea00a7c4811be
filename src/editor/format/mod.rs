//! One form for loop files, with the spacing that Prettier has. Only blanks, line ends, quotes and brackets are written anew;
//! comments, anchors, the order of keys and every text stay, and what is made is compared with what was there.

mod brackets;
mod indented_lines;
mod long_text;
mod quoted;

use indented_lines::LineFormatter;
use long_text::long_texts;

use crate::base::diagnostic::Diagnostics;
use crate::base::node::{FileId, Node, NodeValue};
use crate::definition::yaml;

/// Why a text is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unformatted {
    #[error("it cannot be read")]
    Unreadable,
    /// It would say something else, or its comments would not stay.
    #[error("it is written in a way that cannot be formatted")]
    Unusual,
}

/// Writes a loop, a library or a test file in its one form.
///
/// # Errors
/// The text is not YAML, or has a form that cannot be kept.
pub(crate) fn formatted(text: &str) -> Result<String, Unformatted> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let tree = parse(&text).ok_or(Unformatted::Unreadable)?;
    let made = LineFormatter::new(&text, long_texts(&text, &tree)).formatted().ok_or(Unformatted::Unusual)?;
    // The trees do not have the comments, and the letters do not have the structure.
    let stays = parse(&made).is_some_and(|now| is_alike(&tree, &now)) && letters(&text).eq(letters(&made));
    if stays { Ok(made) } else { Err(Unformatted::Unusual) }
}

fn parse(text: &str) -> Option<Node> {
    let mut findings = Diagnostics::default();
    yaml::parse(text, FileId(0), &mut findings)
}

/// Tells whether two trees say the same, to the letter of every text.
fn is_alike(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (NodeValue::Scalar(one), NodeValue::Scalar(other)) => {
            one.text == other.text && one.value == other.value
        }
        (NodeValue::List(one), NodeValue::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_alike(one, other))
        }
        (NodeValue::Map(one), NodeValue::Map(other)) => {
            let pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs
                    .into_iter()
                    .all(|(one, other)| one.key == other.key && is_alike(&one.value, &other.value))
        }
        _ => false,
    }
}

/// Returns what no formatting may change, the comments among it.
fn letters(text: &str) -> impl Iterator<Item = char> {
    // Other quotes need other escapes, and brackets over several lines a comma more.
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\' | ','))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(formatted(text).as_deref(), Ok(expected), "{text}");
        assert_eq!(formatted(expected).as_deref(), Ok(expected), "again: {text}");
    }

    #[test]
    fn blanks_have_one_form() {
        check("name:   x   # why\n\n\n\ninitial: a", "name: x # why\n\ninitial: a\n");
        check("\n\n# first\r\nname: x\r\n", "# first\nname: x\n");
        check("a:\n    b:\n        c: 1\n    # of d\n    d: 2\n", "a:\n  b:\n    c: 1\n  # of d\n  d: 2\n");
        check("a:\n\n\n  # of b\n\n  b:\n\n    - c\n", "a:\n  # of b\n\n  b:\n    - c\n");
        check("a:\n- b\n-   c: 1\n    d: 2\ne: f\n", "a:\n  - b\n  - c: 1\n    d: 2\ne: f\n");
        check("a: {b: [c,d], e: 'f'} # g\n", "a: { b: [c, d], e: \"f\" } # g\n");
        assert_eq!(formatted("? a\n: b\n"), Err(Unformatted::Unusual));
    }

    #[test]
    fn texts_keep_their_lines() {
        check(
            "a:\n    b: |\n        one\n          two\n\n\n        three\n\n\n    c: 1\n",
            "a:\n  b: |\n    one\n      two\n\n\n    three\n\n  c: 1\n",
        );
        check(
            "a: >-   # folded\n\n    # no comment\n    x\nb: 1\n",
            "a: >- # folded\n\n  # no comment\n  x\nb: 1\n",
        );
        check("a: |+\n   x\n\n\nb: 1\n", "a: |+\n  x\n\n\nb: 1\n");
        check("a:\n   b: |2\n        x\n", "a:\n  b: |2\n       x\n");
    }

    #[test]
    fn what_is_folded_begins_on_a_line_of_its_own() {
        check("a: one\n   two\nb: \"x\n  y\"\n", "a:\n  one\n  two\nb:\n  \"x\n  y\"\n");
    }

    #[test]
    fn anchors_merges_and_comments_stay() {
        let text =
            "a:   &x\n    # of b\n    b: 1\nc:\n    <<:   *x\n    d: 2 # of d\n    # last\n# of e\ne: *x\n";
        check(text, "a: &x\n  # of b\n  b: 1\nc:\n  <<: *x\n  d: 2 # of d\n  # last\n# of e\ne: *x\n");
    }

    #[test]
    fn brackets_over_several_lines_become_one_where_they_fit() {
        check("a: [\n  b,\n  c\n]\nd: 1\n", "a: [b, c]\nd: 1\n");
        let long = format!("a: [{}, {}]\n", "x".repeat(60), "y".repeat(60));
        check(&long, &format!("a:\n  [\n    {},\n    {},\n  ]\n", "x".repeat(60), "y".repeat(60)));
        let comma = format!("a: {{ b: {{ c: {} }}, d: {} }}\n", "x".repeat(86), "y".repeat(20));
        let lines = format!(
            "a:\n  {{\n    b:\n      {{ c: {} }},\n    d: {},\n  }}\n",
            "x".repeat(86),
            "y".repeat(20)
        );
        check(&comma, &lines);
        // Columns are counted as they are seen.
        let wide = format!("a: [{}]\n", ["\"🐎🐎🐎🐎🐎🐎🐎🐎🐎🐎\""; 5].join(", "));
        let lines = format!("a:\n  [\n{}  ]\n", "    \"🐎🐎🐎🐎🐎🐎🐎🐎🐎🐎\",\n".repeat(5));
        check(&wide, &lines);
        check("a: [\n    b, # why\n    c\n    ]\n", "a: [\n    b, # why\n    c\n    ]\n");
    }

    #[test]
    fn what_cannot_be_read_is_left() {
        assert_eq!(formatted("a: ["), Err(Unformatted::Unreadable));
        assert_eq!(formatted("a: 1\na: 2\n").as_deref(), Ok("a: 1\na: 2\n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn whatever_is_formatted_says_the_same_and_stays(text in "(([ ]{0,5}(- )?[ab]{1,2}:( |  |\n)('x'|\"y\"|\\{a: 1,b: [c]\\}|\\[d , e\\]|\\||f # g|h)?\n)|( {0,6}# c\n)|\n){0,7}") {
            if let Ok(made) = formatted(&text) {
                prop_assert!(is_alike(&parse(&text).unwrap(), &parse(&made).unwrap()), "{}\n---\n{}", text, made);
                let again = formatted(&made);
                prop_assert_eq!(again.as_deref(), Ok(made.as_str()), "{}", text);
            }
        }
    }
}
