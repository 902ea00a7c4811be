//! Signals that actions print: which there are, and how they are found. What follows from one is decided elsewhere.

use crate::machine::SignalKind;

/// The text before the payload of each signal. The first kind that an output holds counts.
// In the order of little-loops, so that its loops come to the same ends.
const PATTERNS: [(SignalKind, &str); 3] = [
    (SignalKind::Handoff, "CONTEXT_HANDOFF:"),
    (SignalKind::Error, "FATAL_ERROR:"),
    (SignalKind::Stop, "LOOP_STOP:"),
];

/// What a hand-off says that leaves its reason to the file that goes with it.
const STANDARD: &str = "Ready for fresh session";

/// A signal and what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrintedSignal {
    pub(super) signal: SignalKind,
    pub(super) text: String,
}

/// Finds the signal in an output that the loop obeys. A signal stands at the start of a line, in capitals; what stands
/// behind it, up to the end of the line, is its text. Of one kind, the first one that says something counts.
pub(super) fn find(output: &str, obeyed: &[SignalKind]) -> Option<PrintedSignal> {
    PATTERNS.iter().filter(|(signal, _)| obeyed.contains(signal)).find_map(|(signal, marker)| {
        // Only at the start of a line: a mention in the middle of a text asks for nothing.
        let mut texts = output.lines().filter_map(|line| line.strip_prefix(marker)).map(str::trim);
        let first = texts.next()?;
        // A script may print the bare word first and the reason later.
        let text = if first.is_empty() { texts.find(|text| !text.is_empty()).unwrap_or("") } else { first };
        Some(PrintedSignal { signal: *signal, text: text.to_owned() })
    })
}

/// Tells whether the text of a hand-off says nothing of its own.
pub(super) fn is_standard(text: &str) -> bool {
    text.is_empty() || text.trim_end_matches('.') == STANDARD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, obeyed: &[SignalKind], expected: Option<(SignalKind, &str)>) {
        let found = find(output, obeyed);
        assert_eq!(found.as_ref().map(|found| (found.signal, found.text.as_str())), expected, "{output:?}");
    }

    #[test]
    fn a_signal_stands_at_the_start_of_a_line() {
        let all = SignalKind::ALL;
        check("working\nCONTEXT_HANDOFF: item 7\nmore\n", all, Some((SignalKind::Handoff, "item 7")));
        check("CONTEXT_HANDOFF:\r\n", all, Some((SignalKind::Handoff, "")));
        check("LOOP_STOP:enough", all, Some((SignalKind::Stop, "enough")));
        check("CONTEXT_HANDOFF:  \nCONTEXT_HANDOFF: item 7", all, Some((SignalKind::Handoff, "item 7")));
        check("see CONTEXT_HANDOFF: x", all, None);
        check(" FATAL_ERROR: x", all, None);
        check("context_handoff: x\nFatal_Error: x\nLOOP_STOP x", all, None);
        check("", all, None);
    }

    #[test]
    fn one_kind_comes_before_another_and_the_first_of_a_kind_counts() {
        let all = SignalKind::ALL;
        let mixed = "LOOP_STOP: c\nFATAL_ERROR: b\nCONTEXT_HANDOFF: a\nFATAL_ERROR: d";
        check(mixed, all, Some((SignalKind::Handoff, "a")));
        check(mixed, &[SignalKind::Stop, SignalKind::Error], Some((SignalKind::Error, "b")));
        check(mixed, &[SignalKind::Stop], Some((SignalKind::Stop, "c")));
        check(mixed, &[], None);
    }

    #[test]
    fn the_standard_sentence_says_nothing() {
        assert!(["", "Ready for fresh session", "Ready for fresh session."].into_iter().all(is_standard));
        assert!(!is_standard("Ready for fresh session, item 7"));
    }
}
