//! A chain as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Link, Why};
use crate::base::text::{one_line, plain, plural};
use crate::engine::suppose::Course;
use crate::report::digest::SentencePart;
use crate::report::digest::flips::{Flip, Otherwise};

/// What stands in front of the state that would have been entered.
const OPEN: &str = "open: would have entered ";

/// How many other verdicts people are shown.
const SHOWN: usize = 10;

/// Writes the chain, and what would have been otherwise, for people.
pub fn text(why: &Why) -> String {
    let mut out = format!("run {}\n\n", one_line(&why.run, 200));
    out.push_str(&chain(why));
    out.push_str(&otherwise(&why.otherwise));
    out
}

/// Writes the chain alone. A place is said once for all links in a row that have it.
pub fn chain(why: &Why) -> String {
    let mut out = String::new();
    let mut before = None;
    for (index, link) in why.chain.iter().enumerate() {
        let arrow = if index == 0 { "" } else { "← " };
        let place = link.place();
        let shown = place.as_ref().filter(|place| before.as_ref() != Some(*place));
        let shown = shown.map_or_else(String::new, |place| format!(" ({})", one_line(place, 300)));
        let _ = writeln!(out, "{arrow}{}{shown} [{}]", sentence(link), link.code.word());
        for line in &link.lines {
            let _ = writeln!(out, "    {}", plain(line));
        }
        // A link without a place leaves the place before it as the one that was said last.
        before = place.or(before);
    }
    out
}

/// Returns what a link says, with names in backticks.
pub fn sentence(link: &Link) -> String {
    let part = |part: &SentencePart| match part {
        SentencePart::Words(words) => words.clone(),
        SentencePart::Name(name) => format!("`{name}`"),
    };
    link.says.iter().map(part).collect()
}

fn otherwise(otherwise: &Otherwise) -> String {
    let mut out = String::new();
    if !otherwise.flips.is_empty() {
        out.push_str("\nit would have ended otherwise if\n");
    }
    for flip in otherwise.flips.iter().take(SHOWN) {
        let Flip { step, state, verdict, instead, .. } = flip;
        let [state, verdict, instead] =
            [state.as_str(), verdict.as_str(), instead.as_str()].map(|word| one_line(word, 120));
        let _ = writeln!(
            out,
            "  step {step}: `{state}` had said {instead} instead of {verdict}: {}",
            course(flip)
        );
    }
    let more = otherwise.flips.len().saturating_sub(SHOWN) as u64;
    if more > 0 {
        let _ = writeln!(out, "  … and {} of earlier steps (`--json`)", plural(more, "other verdict"));
    }
    if otherwise.earlier > 0 {
        let _ = writeln!(out, "  {} before these were not looked at", plural(otherwise.earlier, "verdict"));
    }
    if let Some(unknown) = &otherwise.unknown {
        let _ = writeln!(
            out,
            "\nwhat another verdict would have led to is not known: {}",
            one_line(unknown, 300)
        );
    }
    out
}

/// Says where another verdict leads.
pub fn course(flip: &Flip) -> String {
    match &flip.course {
        Course::Ends(end) => {
            format!("{} in `{}`", end.outcome.word(), one_line(end.final_state.as_str(), 120))
        }
        Course::Enters(state) => format!("{OPEN}`{}`", one_line(state.as_str(), 120)),
    }
}

/// Writes it all as JSON. Where the world would have had to go on, there is no final state.
pub fn json(why: &Why) -> Value {
    let links = why.chain.iter().map(|link| {
        json!({
            "kind": link.code.kind(),
            "code": link.code.word(),
            "state": link.state,
            "step": link.step.as_ref().map(ToString::to_string),
            "file": link.file,
            "line": link.line,
            "verdict": link.verdict,
            "evaluator": link.evaluator,
            "numbers": link.numbers,
            "lines": link.lines,
        })
    });
    let flips = why.otherwise.flips.iter().map(|flip| {
        let (outcome, final_state) = match &flip.course {
            Course::Ends(end) => (end.outcome.word().to_owned(), Some(&end.final_state)),
            Course::Enters(state) => (format!("{OPEN}{state}"), None),
        };
        json!({
            "step": flip.step.to_string(),
            "state": flip.state,
            "verdict": flip.verdict,
            "instead": flip.instead,
            "outcome": outcome,
            "final_state": final_state,
        })
    });
    json!({
        "run": why.run,
        "outcome": why.outcome,
        "chain": links.collect::<Vec<_>>(),
        "otherwise": flips.collect::<Vec<_>>(),
    })
}
