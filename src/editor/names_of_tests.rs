//! The names in files that are about a loop without being one: its tests, and the workflows that run it.

use super::outline::{LoopOutline, NameKind, NameOwner, NameUse, entries, items, written_key, written_value};
use crate::base::diagnostic::Diagnostics;
use crate::base::node::{Entry, FileId, Node, NodeValue};
use crate::definition::yaml;

/// What separates a state from those of the sub-loop that it runs.
const INSIDE: char = '/';

/// Keys of an expectation whose keys are states.
const BY_STATE: [&str; 4] = ["visits", "commands", "prompts", "env"];

/// Reads the text of a test file. One that cannot be parsed has no outline.
pub(super) fn of_tests(text: &str) -> Option<LoopOutline> {
    let tree = parse(text)?;
    let subject = tree.get("loop").and_then(Node::as_scalar).map(|named| named.text.clone());
    let mut reader = TestReader { text, subject: subject.unwrap_or_default(), names: Vec::new() };
    if let Some(named) = tree.get("loop") {
        reader.add_loop(named, &["loop"]);
    }
    for case in tree.get("cases").into_iter().flat_map(items) {
        reader.of_case(case);
    }
    for sentence in tree.get("always").into_iter().flat_map(items) {
        reader.of_sentence(sentence);
    }
    let names = reader.names;
    Some(LoopOutline::from_names(tree, names))
}

/// Reads the text of a workflow: the loops that its steps and jobs run with an action of ours.
pub(super) fn of_workflow(text: &str) -> Option<LoopOutline> {
    let tree = parse(text)?;
    let mut reader = TestReader { text, subject: String::new(), names: Vec::new() };
    reader.of_step(&tree);
    let names = reader.names;
    Some(LoopOutline::from_names(tree, names))
}

fn parse(text: &str) -> Option<Node> {
    if text.starts_with('\u{feff}') {
        return None;
    }
    yaml::parse(text, FileId(0), &mut Diagnostics::default())
}

/// Collects the names of a test file.
struct TestReader<'t> {
    text: &'t str,
    /// The loop that is tested.
    subject: String,
    names: Vec<NameUse>,
}

impl TestReader<'_> {
    fn of_case(&mut self, case: &Node) {
        if let Some(given) = case.get("given") {
            given.get("state").into_iter().for_each(|state| self.state(state));
            for key in ["params", "context"] {
                given
                    .get(key)
                    .into_iter()
                    .flat_map(entries)
                    .for_each(|entry| self.key(NameKind::Variable, entry));
            }
            given
                .get("captures")
                .into_iter()
                .flat_map(entries)
                .for_each(|entry| self.key(NameKind::Capture, entry));
        }
        case.get("mocks").into_iter().flat_map(entries).for_each(|entry| self.state_key(entry));
        let Some(expected) = case.get("expect") else { return };
        expected.get("final_state").into_iter().for_each(|state| self.state(state));
        for key in ["path", "never"] {
            expected.get(key).into_iter().flat_map(items).for_each(|state| self.state(state));
        }
        for key in BY_STATE {
            expected.get(key).into_iter().flat_map(entries).for_each(|entry| self.state_key(entry));
        }
        expected
            .get("captures")
            .into_iter()
            .flat_map(entries)
            .for_each(|entry| self.key(NameKind::Capture, entry));
    }

    /// Reads a sentence of `always`: states stand behind some of its words, and in front of `before`.
    fn of_sentence(&mut self, sentence: &Node) {
        let Some((start, read)) = written_value(self.text, sentence) else { return };
        let words = sentence_words(read);
        let word = |index: Option<usize>| index.and_then(|index| words.get(index)).map(|word| word.text);
        for (index, found) in words.iter().enumerate() {
            let is_state = match word(index.checked_sub(1)) {
                Some("before") => true,
                Some("enter" | "leave" | "never" | "visits") => index == 1 && word(Some(1)) != Some("before"),
                Some("of") => word(index.checked_sub(2)) == Some("verdict"),
                _ => index == 0 && word(Some(1)) == Some("before"),
            };
            if is_state {
                self.push(NameKind::State, start + found.at, found.text, true);
            }
        }
    }

    /// Looks for steps and jobs that run a loop.
    fn of_step(&mut self, node: &Node) {
        let uses =
            node.get("uses").and_then(Node::as_scalar).is_some_and(|uses| uses.text.contains("ll-loop"));
        if let Some(named) = node.get("with").filter(|_| uses).and_then(|with| with.get("loop")) {
            self.add_loop(named, &["with", "loop"]);
        }
        let below: Vec<&Node> = match &node.value {
            NodeValue::Map(entries) => entries.iter().map(|entry| &entry.value).collect(),
            NodeValue::List(items) => items.iter().collect(),
            NodeValue::Scalar(_) => Vec::new(),
        };
        // At any depth: a job calls a workflow as a step calls an action.
        for below in below {
            self.of_step(below);
        }
    }

    fn add_loop(&mut self, named: &Node, keys: &[&str]) {
        let Some((start, name)) = written_value(self.text, named) else { return };
        // What a run or a job computes names nothing yet.
        if !name.is_empty() && !name.contains("${") {
            self.names.push(NameUse {
                range: start..start + name.len(),
                kind: NameKind::Loop,
                name: name.to_owned(),
                is_definition: false,
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
                owner: NameOwner::ThisFile,
                is_part: false,
            });
        }
    }

    fn state(&mut self, value: &Node) {
        if let Some((start, name)) = written_value(self.text, value) {
            self.push(NameKind::State, start, name, false);
        }
    }

    fn state_key(&mut self, entry: &Entry) {
        self.key(NameKind::State, entry);
    }

    fn key(&mut self, kind: NameKind, entry: &Entry) {
        if let Some((range, name)) = written_key(self.text, entry) {
            self.push(kind, range.start, &name, false);
        }
    }

    /// Adds a name of the loop; `state/inner` is one, and then one of the sub-loop that the state runs.
    fn push(&mut self, kind: NameKind, start: usize, name: &str, is_part: bool) {
        let mut through: Vec<String> = Vec::new();
        let mut at = start;
        for part in name.split(INSIDE) {
            if !part.is_empty() {
                self.names.push(NameUse {
                    range: at..at + part.len(),
                    kind,
                    name: part.to_owned(),
                    is_definition: false,
                    keys: Vec::new(),
                    owner: NameOwner::Loop { named: self.subject.clone(), through: through.clone() },
                    is_part: is_part || part != name,
                });
            }
            at += part.len() + INSIDE.len_utf8();
            through.push(part.to_owned());
        }
    }
}

/// A word of a sentence, and where it begins.
struct SentenceWord<'t> {
    at: usize,
    text: &'t str,
}

/// Cuts a sentence into words; what stands in backticks is one word, and parentheses and `<=` are not words.
fn sentence_words(text: &str) -> Vec<SentenceWord<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            words.push(SentenceWord { at, text: part });
        } else {
            let mut inner = at;
            for word in part.split([' ', '\t', '\n', '(', ')', '<', '=']) {
                words.extend((!word.is_empty()).then_some(SentenceWord { at: inner, text: word }));
                inner += word.len() + 1;
            }
        }
        at += part.len() + 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "loop: main
cases:
  - name: x
    given: {state: check, params: {limit: 3}, captures: {out: y}}
    mocks: {check: {exit: 1}, below/inner: {exit: 0}}
    expect: {path: [check, below, below/inner, done], visits: {check: 2}, final_state: 'done'}
always:
  - enter done implies verified and (verdict of check is yes)
  - check before done
  - visits `check` <= 3
";

    fn found(outline: &LoopOutline, wanted: &str) -> Vec<usize> {
        let names = outline.names.iter().filter(|name| name.name == wanted);
        names.map(|name| TESTS[..name.range.start].matches('\n').count() + 1).collect()
    }

    #[test]
    fn the_states_of_a_test_file_are_those_of_its_loop() {
        let outline = of_tests(TESTS).unwrap();
        assert_eq!(found(&outline, "check"), [4, 5, 6, 6, 8, 9, 10]);
        assert_eq!(found(&outline, "done"), [6, 6, 8, 9]);
        assert_eq!(found(&outline, "inner"), [5, 6]);
        assert_eq!((found(&outline, "limit"), found(&outline, "out")), (vec![4], vec![4]));
        let inner = outline.names.iter().find(|name| name.name == "inner").unwrap();
        let owner = NameOwner::Loop { named: "main".to_owned(), through: vec!["below".to_owned()] };
        assert_eq!(inner.owner, owner);
        assert!(outline.names.iter().all(|name| TESTS[name.range.clone()] == name.name));
    }

    #[test]
    fn a_workflow_names_the_loops_that_it_runs() {
        let text = "jobs:\n  a:\n    steps:\n      - uses: little-loops/ll-loop@v1\n        with: {loop: tidy}\n      - uses: other/action@v1\n        with: {loop: no}\n";
        let names = of_workflow(text).unwrap().names;
        assert_eq!(names.iter().map(|name| name.name.as_str()).collect::<Vec<_>>(), ["tidy"]);
    }
}
