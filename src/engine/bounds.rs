//! What a run keeps of what its states say: enough for every loop that is meant, and no more than a machine can hold.

use std::borrow::Cow;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::base::redact::MASK;
use crate::base::text::{head, hex, tail};

/// How many messages are kept, the last ones.
pub(super) const MOST_MESSAGES: usize = 10_000;

/// How much all messages that are kept may take, in bytes: half of what a text may become into which they are inserted.
pub(super) const ALL_MESSAGES: usize = 4 * 1024 * 1024;

/// How much of the captures and of the results of states is kept, in bytes.
pub(super) const ALL_CAPTURES: u64 = 256 * 1024 * 1024;

/// How much of one text stands in an event: of a message, and of an action.
const IN_EVENT: usize = 64 * 1024;

/// How much of all details of an evaluation stands in an event.
const DETAILS: usize = 1024 * 1024;

/// Something of which there was more than is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Overflow {
    Messages,
    Captures,
}

impl Overflow {
    /// Says what is not kept any more.
    pub(super) fn sentence(self) -> String {
        const MIB: usize = 1024 * 1024;
        match self {
            Self::Messages => format!(
                "the message log is full ({MOST_MESSAGES} messages or {} MiB): each new message drops the oldest",
                ALL_MESSAGES / MIB
            ),
            Self::Captures => format!(
                "the captures of this run take more than {} MiB: of the oldest ones the last 8 KiB are kept",
                ALL_CAPTURES / MIB as u64
            ),
        }
    }
}

/// Returns a text as it stands in an event: one that is long without its middle, which is known by its digest.
pub(super) fn in_event(text: &str) -> Cow<'_, str> {
    if text.len() <= IN_EVENT {
        return Cow::Borrowed(text);
    }
    // The digest tells two long texts apart whose ends are the same.
    let (length, digest) = (text.len(), hex(&Sha256::digest(text)));
    let (begin, end) = (head(text, IN_EVENT / 2), tail(text, IN_EVENT / 2));
    Cow::Owned(format!("{begin}\n… cut: {length} bytes, SHA-256 {digest} …\n{end}"))
}

/// Tells whether a text of an event is all of what it was: nothing was cut out, and no secret hidden.
pub(super) fn is_whole(text: &str) -> bool {
    // What was cut is longer than what may stand there, because of the words in the place of its middle.
    text.len() <= IN_EVENT && !text.contains(MASK)
}

/// Cuts the details of an evaluation to what an event holds.
pub(super) fn details(mut details: Map<String, Value>) -> Map<String, Value> {
    let mut room = DETAILS;
    details.values_mut().for_each(|value| fit(value, &mut room));
    details
}

fn fit(value: &mut Value, room: &mut usize) {
    match value {
        // Any scalar counts for a few bytes, so that a list of millions of them ends too.
        Value::Null | Value::Bool(_) | Value::Number(_) => *room = room.saturating_sub(8),
        Value::String(text) => {
            if text.len() > *room {
                let kept = head(text, *room).len();
                text.truncate(kept);
                text.push('…');
            }
            *room = room.saturating_sub(text.len() + 8);
        }
        Value::Array(items) => {
            items.retain_mut(|item| {
                let fits = *room > 0;
                if fits {
                    fit(item, room);
                }
                fits
            });
        }
        Value::Object(map) => {
            map.retain(|key, value| {
                let fits = *room > 0;
                *room = room.saturating_sub(key.len() + 8);
                if fits {
                    fit(value, room);
                }
                fits
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_text_is_told_from_another_by_its_middle() {
        let text = |middle: &str| format!("{}{middle}{}", "a".repeat(100_000), "é".repeat(100_000));
        let (one, other) = (text("1"), text("2"));
        let shown = in_event(&one);
        assert!(shown.len() < 70_000 && shown.contains("cut: 300001 bytes"));
        assert_ne!(shown, in_event(&other));
        assert_eq!(in_event("short"), "short");
        assert!(is_whole("short") && !is_whole(&shown) && !is_whole("curl -H ***"));
    }

    #[test]
    fn details_keep_their_form_and_lose_what_is_too_much() {
        let of = |value: Value| Value::Object(details(Map::from_iter([("value".to_owned(), value)])));
        let small = json!({"a": [1, "two", null], "b": {"c": true}});
        assert_eq!(of(small.clone()), json!({ "value": small }));
        for big in
            [json!("x".repeat(9_000_000)), json!(vec!["y"; 1_000_000]), json!({"deep": [vec![1; 1_000_000]]})]
        {
            let length = of(big).to_string().len();
            assert!((100_000..2 * DETAILS).contains(&length), "{length}");
        }
    }
}
