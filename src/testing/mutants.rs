//! Makes mutants of a loop: the same file with one place that says something else. Tests that do not tell them from the loop
//! leave something open.

use std::collections::BTreeMap;

use similar::TextDiff;

use crate::base::decode::Decode as _;
use crate::base::diagnostic::{Diagnostics, FindingPlace};
use crate::base::name::LoopName;
use crate::base::node::{Entry, FileId, Node, NodeValue, Scalar, ScalarStyle, ScalarValue, Span};
use crate::base::path::{DocPath, Segment};
use crate::definition::schema::Loop;
use crate::definition::source_text::Sources;
use crate::machine::Machine;

/// The mark in a comment of the loop file that takes a line out of mutation, with the reason behind it.
const SKIP: &str = "ll-mutants: skip";

/// The keys that lead somewhere and are not called `on_…`.
const NEXT: &str = "next";

/// The keys of states and loops with `on_` that lead somewhere and are not verdicts.
const HANDLERS: [&str; 3] = ["on_retry_exhausted", "on_max_iterations", "on_max_steps"];

/// The keys of a loop that are caps.
const CAPS: [&str; 5] = ["max_iterations", "max_steps", "max_edge_revisits", "timeout", "stall"];

/// What was done to a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopMutant {
    /// What was done, in a few words.
    pub what: String,
    /// Where.
    pub place: DocPath,
    edits: Vec<TreeEdit>,
}

/// A change of a tree.
#[derive(Clone, Debug, PartialEq)]
enum TreeEdit {
    /// The value at this place becomes this text.
    Set(DocPath, String),
    /// The key at this place goes.
    Remove(DocPath),
    /// The mapping at this place gets another key.
    Add(DocPath, &'static str, String),
}

/// A line that its author took out of mutation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkippedLine {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Why.
    pub reason: String,
}

/// Makes every mutant of a loop whose tree and machine these are.
pub fn mutants(tree: &Node, machine: &Machine) -> Vec<LoopMutant> {
    let ends: Vec<&str> = machine.ends().map(|(_, end)| end.name.as_str()).collect();
    let mut breeder = Breeder { ends, all: Vec::new() };
    let root = DocPath::root();
    breeder.of_loop(tree, &root);
    let states = root.key("states");
    for entry in entries(tree.get("states")) {
        breeder.of_state(entry, &states.key(entry.key.as_str()));
    }
    breeder.all
}

fn entries(node: Option<&Node>) -> &[Entry] {
    match node.map(|node| &node.value) {
        Some(NodeValue::Map(entries)) => entries,
        Some(NodeValue::Scalar(_) | NodeValue::List(_)) | None => &[],
    }
}

fn text(node: &Node) -> Option<&str> {
    node.as_scalar().filter(|scalar| scalar.value != ScalarValue::Null).map(|scalar| scalar.text.as_str())
}

/// Collects mutants.
struct Breeder<'m> {
    ends: Vec<&'m str>,
    all: Vec<LoopMutant>,
}

impl Breeder<'_> {
    fn add(&mut self, what: String, place: DocPath, edits: Vec<TreeEdit>) {
        self.all.push(LoopMutant { what, place, edits });
    }

    fn drop_key(&mut self, of: &str, path: &DocPath) {
        let key = last(path);
        self.add(format!("`{key}` of {of} is dropped"), path.clone(), vec![TreeEdit::Remove(path.clone())]);
    }

    /// Lets a way lead to each terminal in turn.
    fn redirect(&mut self, of: &str, path: &DocPath, to: &str) {
        let key = last(path);
        let others: Vec<String> =
            self.ends.iter().filter(|end| **end != to).map(|end| (*end).to_owned()).collect();
        for end in others {
            let what = format!("`{key}` of {of} leads to `{end}`");
            self.add(what, path.clone(), vec![TreeEdit::Set(path.clone(), end)]);
        }
    }

    fn of_loop(&mut self, tree: &Node, root: &DocPath) {
        let of = "the loop";
        for entry in entries(Some(tree)) {
            let (key, path) = (entry.key.as_str(), root.key(entry.key.as_str()));
            let is_route =
                key.starts_with("on_") && key != "on_handoff" && key != "on_change" && key != "on_resume";
            if let (true, Some(to)) = (is_route, text(&entry.value)) {
                self.redirect(of, &path, to);
                self.drop_key(of, &path);
            }
            if CAPS.contains(&key) {
                self.drop_key(of, &path);
            }
            if key == "budget" {
                // `unpriced` says what a call without a price means; it is no cap.
                for cap in entries(Some(&entry.value)).iter().filter(|cap| cap.key != "unpriced") {
                    self.drop_key("the budget", &path.key(cap.key.as_str()));
                }
            }
        }
    }

    fn of_state(&mut self, state: &Entry, path: &DocPath) {
        let name = state.key.as_str();
        let of = format!("`{name}`");
        let is_terminal = state.value.get("terminal").and_then(text) == Some("true");
        if is_terminal {
            return;
        }
        let routes = routes(&state.value, path);
        for (route, to) in &routes {
            self.redirect(&of, route, to);
        }
        self.swaps(&of, &routes);
        for entry in entries(Some(&state.value)) {
            let (key, path) = (entry.key.as_str(), path.key(entry.key.as_str()));
            match key {
                "on_error" | "on_timeout" | "evaluate" | "condition" | "timeout" | "repeat" => {
                    self.drop_key(&of, &path);
                }
                // What a paradigm puts there lies where the state does, and no author can leave it out.
                "check" if text(&entry.value) == Some("true") && entry.value.span != state.value.span => {
                    self.drop_key(&of, &path);
                }
                _ => {}
            }
            if key == "evaluate" || key == "condition" {
                self.of_evaluator(&of, &entry.value, &path);
            }
            if key == "route" && entry.value.get("_error").is_some() {
                self.drop_key(&of, &path.key("_error"));
            }
        }
        self.retry(&of, &state.value, path);
    }

    /// Swaps the ways of verdicts that stand beside each other.
    fn swaps(&mut self, of: &str, routes: &[(DocPath, String)]) {
        let verdicts: Vec<_> = routes
            .iter()
            .filter(|(path, _)| last(path) != NEXT && !HANDLERS.contains(&last(path).as_str()))
            .collect();
        // Neighbours only: each way is part of a swap, and many verdicts do not make a mutant for each pair.
        for pair in verdicts.windows(2) {
            let [(one, to_one), (other, to_other)] = pair else { continue };
            if to_one == to_other {
                continue;
            }
            let what = format!("`{}` and `{}` of {of} are swapped", last(one), last(other));
            let edits = vec![
                TreeEdit::Set((*one).clone(), to_other.clone()),
                TreeEdit::Set((*other).clone(), to_one.clone()),
            ];
            self.add(what, one.clone(), edits);
        }
    }

    fn retry(&mut self, of: &str, state: &Node, path: &DocPath) {
        // All of them together: one of the first two without the other is an error of the file, and would be no mutant.
        let keys = ["max_retries", "on_retry_exhausted", "retryable_exit_codes", "retry_delay"];
        let given = keys.into_iter().filter(|key| state.get(key).is_some());
        let edits: Vec<TreeEdit> = given.map(|key| TreeEdit::Remove(path.key(key))).collect();
        if state.get("max_retries").is_some() {
            self.add(format!("`max_retries` of {of} is dropped"), path.key("max_retries"), edits);
        }
    }

    fn of_evaluator(&mut self, of: &str, evaluate: &Node, path: &DocPath) {
        let of = format!("the evaluator of {of}");
        let kind = evaluate.get("type").and_then(text);
        if kind == Some("output_contains") {
            let is_negated = evaluate.get("negate").and_then(text) == Some("true");
            let edit = match evaluate.get("negate") {
                Some(_) => TreeEdit::Set(path.key("negate"), (!is_negated).to_string()),
                None => TreeEdit::Add(path.clone(), "negate", "true".to_owned()),
            };
            // A key that is not written has no place; that of the type is where a person would add it.
            let place = if evaluate.get("negate").is_some() { path.key("negate") } else { path.key("type") };
            self.add(format!("{of} is negated"), place, vec![edit]);
        }
        for other in evaluate.get("operator").and_then(text).map_or(&[][..], shifted) {
            let place = path.key("operator");
            let what = format!("`operator` of {of} is `{other}`");
            self.add(what, place.clone(), vec![TreeEdit::Set(place, (*other).to_owned())]);
        }
        if let (None, Some("output_numeric" | "output_json")) = (evaluate.get("operator"), kind) {
            let edit = TreeEdit::Add(path.clone(), "operator", "ne".to_owned());
            self.add(format!("`operator` of {of} is `ne`"), path.key("type"), vec![edit]);
        }
        let target = evaluate.get("target").and_then(text).and_then(|text| text.parse::<f64>().ok());
        if let Some(target) = target {
            for by in [1.0, -1.0] {
                let place = path.key("target");
                let shifted = (target + by).to_string();
                let what = format!("`target` of {of} is {shifted}");
                self.add(what, place.clone(), vec![TreeEdit::Set(place, shifted)]);
            }
        }
    }
}

/// Returns the comparisons next to this one.
fn shifted(operator: &str) -> &'static [&'static str] {
    match operator {
        "eq" => &["ne"],
        "ne" => &["eq"],
        // Each gets one that differs only at the bound, and one that differs on both sides of it.
        "lt" => &["le", "gt"],
        "le" => &["lt", "gt"],
        "gt" => &["ge", "lt"],
        "ge" => &["gt", "lt"],
        _ => &[],
    }
}

/// Returns every way of a state, with where it leads.
fn routes(state: &Node, path: &DocPath) -> Vec<(DocPath, String)> {
    let own = entries(Some(state)).iter().filter(|entry| entry.key.starts_with("on_") || entry.key == NEXT);
    let own = own.filter_map(|entry| Some((path.key(entry.key.as_str()), text(&entry.value)?.to_owned())));
    let table = entries(state.get("route")).iter();
    let route = path.key("route");
    let table =
        table.filter_map(|entry| Some((route.key(entry.key.as_str()), text(&entry.value)?.to_owned())));
    own.chain(table).collect()
}

fn last(path: &DocPath) -> String {
    match path.segments().last() {
        Some(Segment::Key(key)) => key.clone(),
        Some(Segment::Index(index)) => index.to_string(),
        None => String::new(),
    }
}

impl LoopMutant {
    /// Makes the definition, if the mutant can be read as a loop.
    pub fn definition(&self, tree: &Node, name: &LoopName) -> Option<Loop> {
        let mut tree = tree.clone();
        for edit in &self.edits {
            apply(&mut tree, edit)?;
        }
        let mut found = Diagnostics::default();
        let mut definition = Loop::decode(&tree, &DocPath::root(), &mut found)?;
        // A loop is known by its path; what was decoded has the name that the file gives itself.
        definition.name = name.clone();
        (!found.has_errors()).then_some(definition)
    }

    /// Returns the file and the line that were changed.
    pub fn line(&self, tree: &Node, sources: &Sources) -> Option<(String, usize)> {
        let span = sources.locate(&FindingPlace::Key(self.place.clone()), Some(tree))?;
        let source = sources.get(span.file)?;
        Some((source.name().to_owned(), source.position(span.range.start).line))
    }

    /// Shows what was done as a difference of the loop file, where it is written there.
    pub fn difference(&self, tree: &Node, sources: &Sources) -> Option<String> {
        if !is_written(&self.place, tree, sources) {
            return None;
        }
        let mut cuts: BTreeMap<FileId, Vec<(std::ops::Range<usize>, String)>> = BTreeMap::new();
        for edit in &self.edits {
            let (span, text) = cut(edit, tree, sources)?;
            cuts.entry(span.file).or_default().push((span.range, text));
        }
        let mut out = String::new();
        for (file, mut cuts) in cuts {
            let source = sources.get(file)?;
            // From the end, so that what stands in front keeps its place.
            cuts.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
            let mut text = source.text().to_owned();
            for (range, with) in cuts {
                // Asked first, as `replace_range` panics outside of the text and within a character.
                text.get(range.clone())?;
                text.replace_range(range, &with);
            }
            let diff = TextDiff::from_lines(source.text(), &text);
            let diff = diff.unified_diff().context_radius(1).header(source.name(), "mutant").to_string();
            out.push_str(&diff);
        }
        Some(out)
    }
}

/// Tells whether a file itself says this key and its value. What a paradigm, `flow` or a parameter of a fragment stands for
/// has the place of something else.
fn is_written(path: &DocPath, tree: &Node, sources: &Sources) -> bool {
    let (Some(key), Some(node)) = (tree.key_span(path), tree.at(path)) else { return false };
    let says = |span: &Span, text: &str| {
        let written = sources.get(span.file).and_then(|source| source.text().get(span.range.clone()));
        written.is_some_and(|written| written.trim_matches(['"', '\'']) == text)
    };
    let name = last(path);
    // The classic dialect has another word for it.
    let is_key = says(key, &name) || (name == "evaluate" && says(key, "check_condition"));
    is_key && node.as_scalar().is_none_or(|scalar| says(&node.span, &scalar.text))
}

/// Finds what of a file a change takes away, and what comes in its place.
fn cut(edit: &TreeEdit, tree: &Node, sources: &Sources) -> Option<(Span, String)> {
    match edit {
        TreeEdit::Set(path, text) => Some((tree.at(path)?.span.clone(), text.clone())),
        TreeEdit::Add(path, key, value) => {
            let span = entries(tree.at(path)).first()?.key_span.clone();
            let source = sources.get(span.file)?.text();
            let line = source[..span.range.start].rfind('\n').map_or(0, |at| at + 1);
            let before = &source[line..span.range.start];
            // In `{type: ...}` a key needs a comma behind it; in a block it needs a line with the same indentation.
            let is_flow = !before.trim().is_empty();
            let text =
                if is_flow { format!("{key}: {value}, ") } else { format!("{key}: {value}\n{before}") };
            Some((Span { file: span.file, range: span.range.start..span.range.start }, text))
        }
        TreeEdit::Remove(path) => {
            let (key, value) = (tree.key_span(path)?.clone(), tree.at(path)?.span.clone());
            // A parent or a fragment gives the value: no cut in a single file takes away both.
            if key.file != value.file {
                return None;
            }
            let text = sources.get(key.file)?.text();
            let range = removed(text, key.range.start, value.range.end.max(key.range.end));
            Some((Span { file: key.file, range }, String::new()))
        }
    }
}

/// Returns what goes with a key: its lines, or its part of a line with the comma.
fn removed(text: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let is_alone = text[line_start..start].trim().is_empty()
        && text[end..line_end].split('#').next().is_none_or(|rest| rest.trim().is_empty());
    if is_alone {
        return line_start..line_end;
    }
    let behind = &text[end..line_end];
    // Within braces the comma goes with the key: that behind it, or for the last key that in front.
    let comma = behind.find(|c: char| !c.is_whitespace()).filter(|at| behind[*at..].starts_with(','));
    if let Some(at) = comma {
        let rest = &text[end + at + 1..];
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        start..end + at + 1 + blanks
    } else {
        let before = text[..start].trim_end();
        if before.ends_with(',') { before.len() - 1..end } else { start..end }
    }
}

/// Makes a change; none where the place is not there.
fn apply(tree: &mut Node, edit: &TreeEdit) -> Option<()> {
    match edit {
        TreeEdit::Set(path, text) => {
            let node = at_mut(tree, path.segments())?;
            let value = ScalarValue::of_plain(text);
            node.value = NodeValue::Scalar(Scalar { text: text.clone(), value, style: ScalarStyle::Plain });
        }
        TreeEdit::Remove(path) => {
            let (last, parent) = path.segments().split_last()?;
            let Segment::Key(key) = last else { return None };
            let NodeValue::Map(entries) = &mut at_mut(tree, parent)?.value else { return None };
            let before = entries.len();
            entries.retain(|entry| entry.key != *key);
            (entries.len() < before).then_some(())?;
        }
        TreeEdit::Add(path, key, text) => {
            let node = at_mut(tree, path.segments())?;
            let span = node.span.clone();
            let NodeValue::Map(entries) = &mut node.value else { return None };
            let scalar =
                Scalar { text: text.clone(), value: ScalarValue::of_plain(text), style: ScalarStyle::Plain };
            // The key stands in no file, so what is wrong with it is shown at the mapping.
            let value = Node { value: NodeValue::Scalar(scalar), span: span.clone() };
            entries.push(Entry { key: (*key).to_owned(), key_span: span, value });
        }
    }
    Some(())
}

fn at_mut<'n>(node: &'n mut Node, path: &[Segment]) -> Option<&'n mut Node> {
    let Some((first, rest)) = path.split_first() else { return Some(node) };
    let inner = match (&mut node.value, first) {
        (NodeValue::Map(entries), Segment::Key(key)) => {
            &mut entries.iter_mut().find(|entry| entry.key == *key)?.value
        }
        (NodeValue::List(items), Segment::Index(index)) => items.get_mut(*index)?,
        (NodeValue::Map(_) | NodeValue::List(_) | NodeValue::Scalar(_), _) => return None,
    };
    at_mut(inner, rest)
}

/// Returns the lines of the files of a loop that their authors took out of mutation: the line of the comment, or the one
/// below where it stands alone.
pub fn skipped(sources: &Sources) -> Vec<SkippedLine> {
    let mut all = Vec::new();
    for source in sources.iter() {
        for (index, line) in source.text().lines().enumerate() {
            let Some((before, comment)) = line.split_once('#') else { continue };
            let Some((_, reason)) = comment.split_once(SKIP) else { continue };
            let is_alone = before.trim().is_empty();
            all.push(SkippedLine {
                file: source.name().to_owned(),
                line: index + 1 + usize::from(is_alone),
                reason: reason.trim().to_owned(),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile::compile;

    const LOOP: &str = "\
name: demo
initial: check
max_iterations: 3
on_error: failed
states:
  check:
    action: test
    check: true
    on_yes: done
    on_no: fix
  fix: { action: repair, max_retries: 1, on_retry_exhausted: failed, next: check }
  measure:
    action: count
    evaluate: { type: output_numeric, operator: lt, target: 5 }
    route: { yes: done, no: fix, _error: failed }
  done: { terminal: true }
  failed: { terminal: true, outcome: failure }
";

    #[test]
    fn every_kind_of_mutant_is_made_and_shown() {
        let loaded = load::decode("demo.yaml", LOOP, String::new()).unwrap();
        let machine = compile(&loaded.definition).0.unwrap();
        let all = mutants(&loaded.tree, &machine);
        let whats: Vec<&str> = all.iter().map(|mutant| mutant.what.as_str()).collect();
        for what in [
            "`max_iterations` of the loop is dropped",
            "`on_error` of the loop leads to `done`",
            "`on_error` of the loop is dropped",
            "`on_yes` of `check` leads to `failed`",
            "`on_yes` and `on_no` of `check` are swapped",
            "`check` of `check` is dropped",
            "`next` of `fix` leads to `done`",
            "`max_retries` of `fix` is dropped",
            "`evaluate` of `measure` is dropped",
            "`operator` of the evaluator of `measure` is `le`",
            "`target` of the evaluator of `measure` is 6",
            "`target` of the evaluator of `measure` is 4",
            "`_error` of `measure` is dropped",
            "`yes` and `no` of `measure` are swapped",
        ] {
            assert!(whats.contains(&what), "{what}: {whats:#?}");
        }
        for mutant in &all {
            let definition = mutant.definition(&loaded.tree, &loaded.definition.name).unwrap();
            assert_ne!(definition, loaded.definition, "{}", mutant.what);
            let diff = mutant.difference(&loaded.tree, &loaded.sources).unwrap();
            // What is shown is what was made.
            let text = patched(&diff);
            let shown = load::decode("demo.yaml", &text, String::new()).unwrap_or_else(|_| panic!("{diff}"));
            assert_eq!(shown.definition, definition, "{diff}");
        }
    }

    #[test]
    fn what_a_paradigm_stands_for_is_no_change_of_what_is_written() {
        let text = "paradigm: invariants\nname: clean\nmax_iterations: 5\n\
                    constraints: [{ name: lint, check: lint, fix: mend }]\n";
        let loaded = load::decode("clean.yaml", text, String::new()).unwrap();
        let machine = compile(&loaded.definition).0.unwrap();
        let all = mutants(&loaded.tree, &machine);
        let shown = all.iter().filter(|mutant| mutant.difference(&loaded.tree, &loaded.sources).is_some());
        let shown: Vec<&str> = shown.map(|mutant| mutant.what.as_str()).collect();
        assert_eq!(shown, ["`max_iterations` of the loop is dropped"]);
        assert!(all.len() > 3, "{all:?}");
    }

    /// Applies a difference to the loop.
    fn patched(diff: &str) -> String {
        let hunks: Vec<&str> =
            diff.lines().filter(|line| !line.starts_with("---") && !line.starts_with("+++")).collect();
        let mut lines: Vec<String> = Vec::new();
        let mut old = LOOP.lines().enumerate().peekable();
        for line in hunks {
            if let Some(head) = line.strip_prefix("@@ -") {
                let start: usize = head.split([',', ' ']).next().unwrap().parse().unwrap();
                while old.peek().is_some_and(|(index, _)| index + 1 < start) {
                    lines.push(old.next().unwrap().1.to_owned());
                }
            } else if let Some(new) = line.strip_prefix('+') {
                lines.push(new.to_owned());
            } else if line.starts_with('-') {
                old.next();
            } else if line.starts_with(' ') {
                lines.push(old.next().unwrap().1.to_owned());
            }
        }
        lines.extend(old.map(|(_, line)| line.to_owned()));
        lines.join("\n") + "\n"
    }

    #[test]
    fn a_comment_takes_a_line_out() {
        let mut sources = Sources::default();
        sources.add("a.yaml", "a: 1 # ll-mutants: skip it is shown to people\n# ll-mutants: skip\nb: 2\n");
        let skipped = skipped(&sources);
        assert_eq!(skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(skipped[0].reason, "it is shown to people");
    }
}
