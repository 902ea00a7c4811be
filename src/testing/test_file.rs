//! Reads a test file: its text becomes cases, each with its place, and every mistake is found at once.

use std::collections::BTreeSet;

use super::always::Always;
use super::virtual_tree::{leads_out, outside};
use super::written::{CaseExpectation, LoopCase, TestFile};
use crate::base::decode::Decode as _;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, nearest};
use crate::base::name::StateName;
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::definition::source_text::Sources;
use crate::definition::yaml;
use crate::engine::outcome::Outcome;
use crate::host;
use crate::machine::Machine;

/// The mark of cases that `--generate` wrote and no person has looked at, in a comment.
pub const GENERATED: &str = "generated: look at it";

/// A test file that was read.
#[derive(Clone, Debug)]
pub struct LoadedTests {
    /// What it says, if it can be read.
    pub file: Option<TestFile>,
    /// The same with places.
    pub tree: Option<Node>,
    /// The text, to draw findings.
    pub sources: Sources,
    /// What is wrong with it.
    pub findings: Diagnostics,
}

impl LoadedTests {
    /// Reads the text of a test file that people know by this name.
    pub fn read(shown: &str, text: &str) -> Self {
        // A byte order mark, which some editors write, is no part of the text: places count from behind it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut sources = Sources::default();
        let id = sources.add(shown, text);
        let mut findings = Diagnostics::default();
        let tree = yaml::parse(text, id, &mut findings);
        let file = tree.as_ref().and_then(|tree| TestFile::decode(tree, &DocPath::root(), &mut findings));
        if let Some(file) = &file {
            names(file, &mut findings);
        }
        Self { file, tree, sources, findings }
    }

    /// Returns the line of a place, from 1.
    pub fn line(&self, place: &DocPath) -> usize {
        let span = self.sources.locate(&FindingPlace::Key(place.clone()), self.tree.as_ref());
        let source = span.as_ref().and_then(|span| self.sources.get(span.file));
        source.zip(span.as_ref()).map_or(1, |(source, span)| source.position(span.range.start).line)
    }

    /// Tells whether a case was made by the program, and no person has looked at it since.
    pub fn is_generated(&self, index: usize) -> bool {
        let line = self.line(&DocPath::root().key("cases").index(index));
        let Some(source) = self.sources.iter().next() else { return false };
        let before: Vec<&str> = source.text().lines().take(line).collect();
        let marked =
            |line: &str| line.split_once('#').is_some_and(|(_, comment)| comment.contains(GENERATED));
        let own = before.last().is_some_and(|line| marked(line));
        // The comment may stand on the lines above.
        let above = before.iter().rev().skip(1).take_while(|line| line.trim_start().starts_with('#'));
        own || above.into_iter().any(|line| marked(line))
    }
}

fn names(file: &TestFile, findings: &mut Diagnostics) {
    let mut seen = BTreeSet::new();
    for (index, case) in file.cases.iter().enumerate() {
        if !seen.insert(case.name.as_str()) {
            let place = FindingPlace::Value(DocPath::root().key("cases").index(index).key("name"));
            let message = format!("another case has the name `{}`", case.name);
            findings.push(Diagnostic::error("test-case", place, message).help("give each case its own"));
        }
    }
    if file.cases.is_empty() && file.always.is_empty() {
        let message = "there is nothing to test in the file";
        let help = "add `cases`, or what `always` holds";
        findings.push(Diagnostic::error("test-case", FindingPlace::File, message).help(help));
    }
}

/// Who is asked, besides the hosts of agents.
const ASKED: [&str; 6] = ["agents", "judges", "models", "tools", "people", "commands"];

/// Looks whether what a file names is in the loop that it tests.
pub fn check(file: &TestFile, machine: &Machine, findings: &mut Diagnostics) {
    let mut names = KnownNames { machine, findings };
    for (index, always) in file.always.iter().enumerate() {
        names.claim(always, &DocPath::root().key("always").index(index));
    }
    for (index, case) in file.cases.iter().enumerate() {
        names.case(case, &DocPath::root().key("cases").index(index));
    }
}

struct KnownNames<'k> {
    machine: &'k Machine,
    findings: &'k mut Diagnostics,
}

impl KnownNames<'_> {
    fn state(&mut self, name: &str, place: FindingPlace) {
        let is_known = StateName::parse(name).is_ok_and(|name| self.machine.find(&name).is_some());
        if is_known {
            return;
        }
        let known = self.machine.steps().map(|(_, step)| step.name.as_str());
        let known = known.chain(self.machine.ends().map(|(_, end)| end.name.as_str()));
        let near = nearest(name, known);
        let message = format!("the loop `{}` has no state `{name}`", self.machine.name);
        let finding = Diagnostic::error("test-case", place, message);
        self.findings.push(match near {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None => finding,
        });
    }

    fn claim(&mut self, always: &Always, place: &DocPath) {
        for state in always.claim.states() {
            self.state(state.as_str(), FindingPlace::Value(place.clone()));
        }
    }

    fn case(&mut self, case: &LoopCase, place: &DocPath) {
        self.asked(case, place);
        let given = case.given.iter().flat_map(|given| given.files.keys());
        for path in given.filter(|path| leads_out(path)) {
            let place = FindingPlace::Key(place.key("given").key("files").key(path.as_str()));
            self.findings.push(Diagnostic::error("test-case", place, outside(path)));
        }
        let Some(expected) = &case.expect else { return };
        let place = place.key("expect");
        self.ending(expected, &place);
        for (at, state) in expected.path.iter().flatten().enumerate() {
            self.state(state, FindingPlace::Value(place.key("path").index(at)));
        }
        for (at, state) in expected.never.iter().enumerate() {
            self.state(state.as_str(), FindingPlace::Value(place.key("never").index(at)));
        }
        for state in expected.visits.keys() {
            self.state(state.as_str(), FindingPlace::Key(place.key("visits").key(state.as_str())));
        }
        let maps = [("commands", &expected.commands), ("prompts", &expected.prompts)];
        for (key, rules) in maps {
            // A state of a sub-loop is not one of this machine.
            for state in rules.keys().filter(|state| !state.contains('/')) {
                self.state(state, FindingPlace::Key(place.key(key).key(state.as_str())));
            }
        }
    }

    fn asked(&mut self, case: &LoopCase, place: &DocPath) {
        let given = case.given.as_ref().and_then(|given| given.host.as_deref());
        let given = given.map(|host| (host, FindingPlace::Value(place.key("given").key("host"))));
        let calls = place.key("expect").key("calls");
        let counted = case.expect.iter().flat_map(|expected| expected.calls.keys());
        let counted = counted.filter(|who| !ASKED.contains(&who.as_str()));
        let counted = counted.map(|who| (who.as_str(), FindingPlace::Key(calls.key(who.as_str()))));
        for (name, place) in given.into_iter().chain(counted) {
            if host::by_name(name).is_some() {
                continue;
            }
            let known: Vec<&str> = ASKED.into_iter().chain(host::names()).collect();
            let help = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the names are {}", known.join(", ")),
            };
            let message = format!("nobody is called `{name}`");
            self.findings.push(Diagnostic::error("test-case", place, message).help(help));
        }
    }

    fn ending(&mut self, expected: &CaseExpectation, place: &DocPath) {
        if let Some(state) = &expected.final_state {
            self.state(state.as_str(), FindingPlace::Value(place.key("final_state")));
        }
        let Some(word) = &expected.outcome else { return };
        let words: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.word()).collect();
        if !words.contains(&word.as_str()) {
            let message = format!("no run ends as `{word}`");
            let near = nearest(word, words.iter().copied());
            let help = near.map_or_else(
                || format!("the outcomes are {}", words.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            let place = FindingPlace::Value(place.key("outcome"));
            self.findings.push(Diagnostic::error("test-case", place, message).help(help));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_above_a_case_or_beside_it_is_seen() {
        let text = "loop: a\ncases:\n  - name: one\n  # generated: look at it\n  - name: two\n  - name: three # generated: look at it\n";
        let tests = LoadedTests::read("a.test.yaml", text);
        assert!(tests.findings.is_empty(), "{:?}", tests.findings);
        assert_eq!([0, 1, 2].map(|index| tests.is_generated(index)), [false, true, true]);
    }
}
