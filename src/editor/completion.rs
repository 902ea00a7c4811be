//! What may be written at a cursor: keys, words, and the names of states, captures, variables, fragments and loops.

use std::collections::BTreeSet;

use ls_types::{CompletionItem, CompletionItemKind, CompletionTextEdit, Documentation, TextEdit};

use super::cursor_place::{self, CursorPlace, CursorWish};
use super::key_meanings::KeyMeanings;
use super::outline::{LoopOutline, NameKind};
use super::text_document::{ColumnUnit, TextDocument};
use crate::base::template::{Namespace, RESULT_FIELDS};

/// The verdicts that a route is mostly written for, with what else may stand in their place.
const VERDICTS: [&str; 7] = ["yes", "no", "error", "timeout", "blocked", "_", "_error"];

/// Something that may be written.
struct CompletionOffer {
    label: String,
    kind: CompletionItemKind,
    /// What is written behind it.
    tail: &'static str,
    meaning: Option<String>,
}

impl CompletionOffer {
    fn new(label: impl Into<String>, kind: CompletionItemKind) -> Self {
        Self { label: label.into(), kind, tail: "", meaning: None }
    }

    fn all(labels: impl IntoIterator<Item = impl Into<String>>, kind: CompletionItemKind) -> Vec<Self> {
        labels.into_iter().map(|label| Self::new(label, kind)).collect()
    }
}

/// Returns what may be written at a byte of a document. `loops` are the names of the loops of the project.
pub(super) fn at(
    document: &TextDocument,
    byte: usize,
    unit: ColumnUnit,
    meanings: KeyMeanings<'static>,
    loops: &dyn Fn() -> Vec<String>,
) -> Vec<CompletionItem> {
    let Some(place) = cursor_place::at(document.text(), byte) else { return Vec::new() };
    let names = NamesInText::read(document.text());
    let offers = match &place.wanted {
        CursorWish::Template => in_template(&document.text()[place.written.clone()], &names),
        CursorWish::Key { present } => keys(&place, present, &names, meanings),
        CursorWish::Value => values(&place, &names, meanings, loops),
    };
    let written = match place.wanted {
        // Only what follows the last dot is replaced.
        CursorWish::Template => {
            let text = &document.text()[place.written.clone()];
            place.written.start + text.rfind('.').map_or(0, |dot| dot + 1)..place.written.end
        }
        CursorWish::Key { .. } | CursorWish::Value => place.written,
    };
    let range = document.range(&written, unit);
    let item = |(index, offer): (usize, CompletionOffer)| CompletionItem {
        kind: Some(offer.kind),
        documentation: offer.meaning.map(Documentation::String),
        // The order is that of the language, and not of the alphabet.
        sort_text: Some(format!("{index:04}")),
        filter_text: Some(offer.label.clone()),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit {
            range,
            new_text: format!("{}{}", offer.label, offer.tail),
        })),
        label: offer.label,
        ..CompletionItem::default()
    };
    offers.into_iter().enumerate().map(item).collect()
}

fn keys(
    place: &CursorPlace,
    present: &[String],
    names: &NamesInText<'_>,
    meanings: KeyMeanings<'static>,
) -> Vec<CompletionOffer> {
    let keys: Vec<&str> = place.keys.iter().map(String::as_str).collect();
    let mut offers: Vec<CompletionOffer> = match keys.as_slice() {
        // States that others lead to, and that nobody has written.
        ["states"] => CompletionOffer::all(names.missing_states(), CompletionItemKind::CLASS),
        [.., "route"] => CompletionOffer::all(VERDICTS, CompletionItemKind::ENUM_MEMBER),
        _ => Vec::new(),
    };
    let known = meanings.keys(&keys, place.kind.as_deref()).into_iter();
    offers.extend(known.map(|key| CompletionOffer {
        meaning: key.meaning,
        ..CompletionOffer::new(key.name, CompletionItemKind::PROPERTY)
    }));
    // A mapping with a key twice is an error.
    offers.retain(|offer| !present.contains(&offer.label));
    for offer in &mut offers {
        offer.tail = ": ";
    }
    offers
}

fn values(
    place: &CursorPlace,
    names: &NamesInText<'_>,
    meanings: KeyMeanings<'static>,
    loops: &dyn Fn() -> Vec<String>,
) -> Vec<CompletionOffer> {
    let keys: Vec<&str> = place.keys.iter().map(String::as_str).collect();
    let words = meanings.words(&keys);
    let mut offers = match keys.as_slice() {
        ["fragments" | "states" | "state_defs", _, "fragment"] => {
            CompletionOffer::all(names.of(NameKind::Fragment), CompletionItemKind::MODULE)
        }
        ["fragments" | "states" | "state_defs", _, "loop"] | ["from"] => {
            CompletionOffer::all(loops(), CompletionItemKind::FILE)
        }
        keys if is_target(keys) => CompletionOffer::all(names.of(NameKind::State), CompletionItemKind::CLASS),
        _ => Vec::new(),
    };
    let is_evaluator = matches!(keys.as_slice(), [.., "evaluate" | "condition" | "check_condition", "type"]);
    offers.extend(words.into_iter().map(|word| CompletionOffer {
        meaning: meanings.of_evaluator(word).filter(|_| is_evaluator).map(str::to_owned),
        ..CompletionOffer::new(word, CompletionItemKind::ENUM_MEMBER)
    }));
    offers
}

/// Tells whether a value under these keys is the name of a state.
fn is_target(keys: &[&str]) -> bool {
    match keys {
        [key] => *key == "initial" || (key.starts_with("on_") && !matches!(*key, "on_handoff" | "on_change")),
        ["stall", "action"] | [.., "route", _] => true,
        ["fragments" | "states" | "state_defs", _, key] => *key == "next" || key.starts_with("on_"),
        _ => false,
    }
}

fn in_template(written: &str, names: &NamesInText) -> Vec<CompletionOffer> {
    let parts: Vec<&str> = written.split('.').collect();
    match parts.as_slice() {
        [_] => {
            let namespace = |namespace: Namespace| CompletionOffer {
                tail: if namespace == Namespace::Messages { "" } else { "." },
                ..CompletionOffer::new(namespace.word(), CompletionItemKind::MODULE)
            };
            Namespace::ALL.into_iter().map(namespace).collect()
        }
        ["captured", _] => {
            // A result that no capture names is kept under the name of its state.
            let all = names.of(NameKind::Capture).into_iter().chain(names.of(NameKind::State));
            let all: BTreeSet<String> = all.collect();
            CompletionOffer::all(all, CompletionItemKind::VARIABLE)
        }
        ["captured", _, _] => CompletionOffer::all(RESULT_FIELDS, CompletionItemKind::FIELD),
        ["context", _] => CompletionOffer::all(names.of(NameKind::Variable), CompletionItemKind::VARIABLE),
        [namespace, _] => {
            let known = Namespace::ALL.into_iter().find(|known| known.word() == *namespace);
            let fields = known.and_then(Namespace::fields).into_iter().flatten();
            CompletionOffer::all(fields.copied(), CompletionItemKind::FIELD)
        }
        _ => Vec::new(),
    }
}

/// The names that a text makes, also where it cannot be parsed just now.
enum NamesInText<'t> {
    Read(LoopOutline),
    Broken(&'t str),
}

impl<'t> NamesInText<'t> {
    fn read(text: &'t str) -> Self {
        LoopOutline::of(text).map_or(Self::Broken(text), Self::Read)
    }

    fn of_text(text: &str, kind: NameKind) -> Vec<String> {
        match kind {
            NameKind::State => below(text, &["states", "state_defs"]),
            NameKind::Variable => below(text, &["context", "parameters"]),
            NameKind::Fragment => below(text, &["fragments"]),
            NameKind::Capture => {
                let named = text.lines().filter_map(|line| line.trim_start().strip_prefix("capture: "));
                named.map(|name| name.trim().to_owned()).collect()
            }
            NameKind::Loop | NameKind::Library => Vec::new(),
        }
    }

    /// Returns the names of a kind, in the order of the text.
    fn of(&self, kind: NameKind) -> Vec<String> {
        match self {
            Self::Read(outline) => {
                let mut seen = BTreeSet::new();
                let names = outline.definitions(kind).map(|name| name.name.clone());
                names.filter(|name| seen.insert(name.clone())).collect()
            }
            Self::Broken(text) => Self::of_text(text, kind),
        }
    }

    fn missing_states(&self) -> Vec<String> {
        // By lines alone, the name of a state cannot be told from any other text.
        let Self::Read(outline) = self else { return Vec::new() };
        let known = self.of(NameKind::State);
        let used = outline.names.iter().filter(|name| name.kind == NameKind::State && !name.is_definition);
        let missing: BTreeSet<String> =
            used.map(|name| name.name.clone()).filter(|name| !known.contains(name)).collect();
        missing.into_iter().collect()
    }
}

/// Returns the keys one level below some of the top, by their indentation.
fn below(text: &str, tops: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut indent = None;
    let mut is_inside = false;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
        let depth = line.len() - line.trim_start().len();
        if depth == 0 {
            is_inside = line.split_once(':').is_some_and(|(key, _)| tops.contains(&key.trim()));
            indent = None;
        } else if is_inside && *indent.get_or_insert(depth) == depth {
            let key = line.split_once(':').map(|(key, _)| key.trim().trim_matches(['"', '\'']).to_owned());
            found.extend(key);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(text: &str) -> Vec<String> {
        let byte = text.find('‸').unwrap();
        let document = TextDocument::new(text.replacen('‸', "", 1));
        let items = at(&document, byte, ColumnUnit::Utf8, KeyMeanings::of_loops(), &|| {
            vec!["tidy".to_owned(), "web/tidy".to_owned()]
        });
        items.into_iter().map(|item| item.label).collect()
    }

    const BROKEN: &str = "name: x\ncontext:\n  limit: 3\ninitial: ‸\nstates:\n  check:\n    action: make\n    capture: out\n    on_yes: [\n  fix:\n    next: check\n";

    #[test]
    fn states_are_offered_where_states_belong_also_in_a_broken_text() {
        assert_eq!(offered(BROKEN), ["check", "fix"]);
        let state = BROKEN.replace('‸', "check").replace("on_yes: [", "on_yes: ‸");
        assert_eq!(offered(&state), ["check", "fix", "$current"]);
        assert_eq!(
            offered(&BROKEN.replace('‸', "x").replace("on_yes: [", "route: {yes: fi‸")),
            ["check", "fix", "$current"]
        );
    }

    #[test]
    fn names_are_offered_in_templates() {
        let text = BROKEN.replace('‸', "check");
        let within = |template: &str| offered(&text.replace("make", template));
        assert!(within("${‸").contains(&"captured".to_owned()));
        assert_eq!(within("${captured.‸"), ["check", "fix", "out"]);
        assert_eq!(within("${context.li‸}"), ["limit"]);
        assert!(within("${captured.out.‸}").contains(&"exit_code".to_owned()));
        assert!(within("${state.‸").contains(&"attempt".to_owned()));
    }

    #[test]
    fn loops_fragments_words_and_missing_states_are_offered() {
        let text = "name: x\nfragments:\n  f: {action: a}\nstates:\n  a: {fragment: f, on_yes: gone}\n";
        assert_eq!(offered(&text.replace("fragment: f", "fragment: ‸")), ["f"]);
        assert_eq!(offered(&text.replace("fragment: f", "loop: ‸")), ["tidy", "web/tidy"]);
        assert_eq!(offered(&text.replace("fragment: f", "terminal: ‸")), ["true", "false"]);
        assert_eq!(offered(&format!("{text}  ‸\n"))[..1], ["gone".to_owned()]);
        let keys = offered(&text.replace("fragment: f", "fragment: f, ‸"));
        assert!(keys.contains(&"action".to_owned()) && !keys.contains(&"fragment".to_owned()), "{keys:?}");
    }
}
