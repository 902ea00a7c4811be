//! Compares what is asked with what was recorded: why a recording has no answer, in lines that people can read.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::text::{head, one_line};

/// How many lines of a difference are shown.
const SHOWN: usize = 40;

/// How much of a request is compared, in bytes: what it takes grows with the square of that.
const COMPARED: usize = 64 * 1024;

/// The recorded request that is most like one that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestRequest<'r, R> {
    /// What it was recorded as.
    pub recorded: &'r R,
    /// The lines that differ; none where the two are the same.
    pub lines: Vec<String>,
}

/// Finds the recorded request that is most like one that is asked, and shows how they differ; none where nothing is
/// recorded.
pub fn nearest<'r, R>(
    asked: &Value,
    recorded: &'r [R],
    request: impl Fn(&R) -> &Value,
) -> Option<NearestRequest<'r, R>> {
    let asked = pretty(asked);
    // By words: a prompt may be one long line, of which a single word differs.
    let likeness = |other: &R| TextDiff::from_words(&pretty(request(other)), &asked).ratio();
    let recorded = recorded.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    let then = pretty(request(recorded));
    let diff = TextDiff::from_lines(&then, &asked);
    let changes = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => "- recorded",
            ChangeTag::Insert => "+ asked   ",
        };
        Some(format!("{sign} {}", one_line(change.value(), 300)))
    });
    Some(NearestRequest { recorded, lines: changes.take(SHOWN).collect() })
}

/// Writes the beginning of a request with the lines of its texts as lines.
fn pretty(request: &Value) -> String {
    head(&whole(request), COMPARED).to_owned()
}

fn whole(request: &Value) -> String {
    let mut out = String::new();
    for (key, value) in request.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(text) => {
                out.extend(text.lines().flat_map(|line| [key.as_str(), ": ", line, "\n"]));
            }
            None => out.extend([key.as_str(), ": ", &value.to_string(), "\n"]),
        }
    }
    out
}
