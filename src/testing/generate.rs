//! Begins test files: a case for each way that no test takes, on the shortest way that the model check knows, or on a walk at
//! random where that one needs more than a single visit.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::case_text::CaseText;
use super::choices::Choices;
use super::edges::{Coverage, EdgeId, LoopEdge};
use super::expected::path;
use super::fuzz::FuzzedLoop;
use super::play::{Played, PlayedEnd};
use super::test_file::GENERATED;
use super::tested_loop::LoopUnderTest;
use super::ways::over;
use crate::base::explanation::Explanation;
use crate::machine::Machine;
use crate::machine::routing::moves;

/// How many walks are taken to find what the shortest ways do not come to.
const WALKS: u64 = 3_000;

/// Cases for ways that no test takes.
#[derive(Debug, Default)]
pub(crate) struct GeneratedCases {
    /// The cases.
    pub(crate) cases: Vec<CaseText>,
    /// The ways that no case was found for.
    pub(crate) left: Vec<EdgeId>,
}

/// Makes a case for each way that these tests do not take.
pub(crate) fn generate(
    subject: &mut LoopUnderTest,
    coverage: &Coverage,
    names: &BTreeSet<String>,
) -> Result<GeneratedCases, Explanation> {
    let machine = Rc::clone(&subject.own.machine);
    let mut known =
        Coverage { taken: coverage.taken.clone(), ..Coverage::of(&machine, &subject.loaded.definition) };
    let mut made = CaseMaker { fuzzed: FuzzedLoop::of(subject)?, cases: Vec::new(), names: names.clone() };
    let open: Vec<LoopEdge> = known.uncovered().cloned().collect();
    for edge in open {
        // The case for another way may have taken this one.
        if known.count(&edge) > 0 {
            continue;
        }
        let Some(case) = on_shortest_way(&edge, &machine) else { continue };
        let Some(played) = made.fuzzed.play_case(&case, subject) else { continue };
        let mut with = known.clone();
        // The model may know ways that no run takes: only what the engine did counts.
        with.take(&machine, &played.events);
        if with.count(&edge) > 0 {
            made.keep(case, &played);
            known = with;
        }
    }
    for walk in 0..WALKS {
        if known.uncovered().next().is_none() {
            break;
        }
        // Always the same seed: who asks twice for the same loop gets the same cases.
        let mut choices = Choices::random(1, walk);
        // Without kills and signals: no way needs them, and a case is easier to read without.
        let (played, answers) = made.fuzzed.walk(&mut choices, false, subject);
        let mut with = known.clone();
        with.take(&machine, &played.events);
        let new = known.uncovered().find(|edge| with.count(edge) > 0).cloned();
        if let (Some(edge), PlayedEnd::Complete(_)) = (new, &played.end) {
            let given = super::case_text::given(&machine);
            let comment = Some(GENERATED.to_owned());
            let (mocks, closing) = (answers.visits, answers.closing);
            let case = CaseText { name: name(&edge), comment, given, mocks, closing, ..CaseText::default() };
            made.keep(case, &played);
            known = with;
        }
    }
    let left = known.uncovered().map(|edge| edge.id.clone()).collect();
    Ok(GeneratedCases { cases: made.cases, left })
}

/// Makes cases, each with a name of its own.
struct CaseMaker {
    fuzzed: FuzzedLoop,
    cases: Vec<CaseText>,
    names: BTreeSet<String>,
}

impl CaseMaker {
    /// Takes a case with what its run came to: that is what the loop does, and perhaps not what it should do.
    fn keep(&mut self, mut case: CaseText, played: &Played) {
        let PlayedEnd::Complete(end) = &played.end else { return };
        case.expect.insert("outcome".to_owned(), end.outcome.word().into());
        case.expect.insert("verified".to_owned(), end.verified.into());
        case.expect.insert("path".to_owned(), path(&played.events).into());
        let (name, mut number) = (case.name.clone(), 2);
        while !self.names.insert(case.name.clone()) {
            case.name = format!("{name} ({number})");
            number += 1;
        }
        self.cases.push(case);
    }
}

fn name(edge: &LoopEdge) -> String {
    let EdgeId { from, word } = &edge.id;
    if from.starts_with('(') { format!("{word} leads to {}", edge.to) } else { format!("{from} says {word}") }
}

fn on_shortest_way(edge: &LoopEdge, machine: &Machine) -> Option<CaseText> {
    let (id, step) = machine.steps().find(|(_, step)| step.name.as_str() == edge.id.from)?;
    let all = moves(machine, id);
    let word = |one: &&crate::machine::routing::Move| {
        let said = one.departure.verdict.as_str();
        !one.is_exhausted
            && (said == edge.id.word
                || (edge.id.word == "next"
                    && one.departure.ended == crate::machine::routing::ActionEnd::Well)
                || (edge.id.word == "_" && one.departure.is_any_other))
    };
    let one = all.iter().find(word)?;
    let way = over(machine, id, one)?;
    let name = if edge.id.word == "next" { format!("{} goes on", step.name) } else { name(edge) };
    CaseText::of_walk(name, &way, machine)
}

/// Adds cases to the text of a test file, or begins one.
pub(crate) fn added(text: Option<&str>, loop_name: &str, cases: &[CaseText]) -> String {
    let Some(text) = text else {
        let items: String = cases.iter().map(|case| case.write(2)).collect();
        return format!("loop: {}\ncases:\n{items}", super::case_text::scalar(loop_name));
    };
    let mut lines: Vec<&str> = text.lines().collect();
    // The items of a list may begin at the margin, so a hyphen there begins no key.
    let top = |line: &&str| !line.is_empty() && !line.starts_with([' ', '#', '-']);
    let Some(start) = lines.iter().position(|line| line.starts_with("cases:")) else {
        let items: String = cases.iter().map(|case| case.write(2)).collect();
        return format!("{}\ncases:\n{items}", text.trim_end());
    };
    let column = lines[start + 1..].iter().find_map(|line| {
        let trimmed = line.trim_start();
        trimmed.starts_with("- ").then(|| line.len() - trimmed.len())
    });
    let items: String = cases.iter().map(|case| case.write(column.unwrap_or(2))).collect();
    let end = lines[start + 1..].iter().position(top).map_or(lines.len(), |at| start + 1 + at);
    // Blank lines and comments in front of the next key belong to that.
    let end = lines[..end]
        .iter()
        .rposition(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map_or(end, |at| at + 1);
    // `cases: []` is closed, and would not take items below it.
    if lines[start].trim_end() != "cases:" {
        lines[start] = "cases:";
    }
    let rest = lines.split_off(end);
    let mut out = lines.join("\n") + "\n" + &items;
    if !rest.is_empty() {
        out.push_str(&rest.join("\n"));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_added_where_the_others_stand() {
        let case = CaseText { name: "new".to_owned(), ..CaseText::default() };
        let begun = added(None, "tidy", std::slice::from_ref(&case));
        assert_eq!(begun, "loop: tidy\ncases:\n  - name: new\n");
        let text = "loop: tidy\ncases:\n- name: old\n  mocks: {}\n\n# what holds\nalways:\n  - never a\n";
        let more = added(Some(text), "tidy", std::slice::from_ref(&case));
        assert_eq!(
            more,
            "loop: tidy\ncases:\n- name: old\n  mocks: {}\n- name: new\n\n# what holds\nalways:\n  - never a\n"
        );
        let last = added(Some("always: []\ncases:\n    - name: old\n"), "tidy", &[case]);
        assert_eq!(last, "always: []\ncases:\n    - name: old\n    - name: new\n");
    }
}
