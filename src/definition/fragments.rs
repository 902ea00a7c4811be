//! Partial states without a state around them: what can be said about a fragment that no state uses, and about a library
//! by itself.

use indexmap::IndexMap;

use super::assembled_tree::{entries, entry, map, take};
use super::classic;
use super::promises::{self, is_promise};
use super::schema::{Composition, Loop, Parameter, State};
use super::source_text::Sources;
use crate::base::decode::{Decode as _, Record as _};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, nearest};
use crate::base::name::VarName;
use crate::base::node::{Entry, Node, NodeValue};
use crate::base::path::{DocPath, Segment};
use crate::base::template::{Namespace, Template, TemplateFallback};

/// The keys of which a loop has at least one at its top.
pub(super) const KEYS_OF_LOOPS: [&str; 6] = ["name", "states", "initial", "paradigm", "flow", "from"];

/// The keys of a library.
const OF_LIBRARIES: [&str; 2] = ["description", "fragments"];

/// Tells whether a file is a library of fragments, and not a loop.
pub(super) fn is_library(tree: &Node) -> bool {
    tree.get("fragments").is_some() && KEYS_OF_LOOPS.iter().all(|key| tree.get(key).is_none())
}

/// Checks a library.
pub(super) fn check_library(tree: &Node, sources: &Sources) -> Diagnostics {
    let mut out = Diagnostics::default();
    promises::in_vain(tree, &mut out);
    for Entry { key, key_span, .. } in entries(tree) {
        if OF_LIBRARIES.contains(&key.as_str()) {
            continue;
        }
        let place = FindingPlace::At(key_span.clone());
        let known = || Loop::KEYS.iter().chain(Composition::KEYS).copied();
        if known().any(|known| known == key) {
            let message = format!("`{key}` has no effect in a library of fragments");
            let help = "only its `fragments` are read; write it in the loop";
            let finding = if is_promise(key) {
                Diagnostic::error("no-effect", place, message)
            } else {
                Diagnostic::warning("no-effect", place, message)
            };
            out.push(finding.help(help));
        } else {
            let finding = Diagnostic::error("unknown-key", place, format!("unknown key `{key}`"));
            out.push(match nearest(key, OF_LIBRARIES) {
                Some(near) => finding.meant(key, near),
                None => finding.help("a library has `description` and `fragments`"),
            });
        }
    }
    let Some(fragments) = tree.get("fragments").filter(|fragments| !fragments.is_null()) else { return out };
    if !matches!(fragments.value, NodeValue::Map(_)) {
        let place = FindingPlace::At(fragments.span.clone());
        out.push(Diagnostic::error("wrong-type", place, "`fragments` must be a mapping"));
    }
    for Entry { key, value, .. } in entries(fragments) {
        out.extend(check(key, value, sources));
    }
    out
}

/// Checks a fragment as far as that is possible without the state that completes it. The findings know their places.
pub(super) fn check(name: &str, fragment: &Node, sources: &Sources) -> Diagnostics {
    let mut out = Diagnostics::default();
    if let Some(not_a_mapping) = not_a_mapping(name, fragment) {
        out.push(not_a_mapping);
        return out;
    }
    let mut state = fragment.clone();
    take(&mut state, "description");
    let parameters = take(&mut state, "parameters");
    if let Some(nested) = take(&mut state, "fragment") {
        out.push(self::nested(name, &nested));
    }
    let whole = |key: &str, value: Node| map(&fragment.span, vec![entry(key, value)]);
    let mut found = Diagnostics::default();
    let known: Option<IndexMap<VarName, Parameter>> = parameters.and_then(|parameters| {
        let tree = whole("parameters", parameters.value);
        let path = DocPath::root().key("parameters");
        let known = tree.get("parameters").and_then(|node| IndexMap::decode(node, &path, &mut found));
        out.extend(sources.placed(&found, &tree));
        known
    });
    // As the only state of a loop, under its own name, by which the findings call it.
    let mut tree = whole("states", map(&fragment.span, vec![entry(name, state)]));
    classic::translate(&mut tree, &mut out);
    let path = DocPath::root().key("states").key(name);
    let Some(node) = tree.at(&path) else { return out };
    let mut found = Diagnostics::default();
    let state = State::decode(node, &path, &mut found);
    // What is missing is for the state to add.
    let mut found = found.filtered(|finding| finding.code != "missing-key");
    let own = state.iter().flat_map(|state| state.param.keys());
    let names: Vec<&str> = known.iter().flat_map(IndexMap::keys).chain(own).map(VarName::as_str).collect();
    parameters_in(node, &path, &names, &mut found);
    out.extend(sources.placed(&found, &tree));
    out
}

/// Looks for parameters that the fragment does not declare.
fn parameters_in(node: &Node, path: &DocPath, known: &[&str], out: &mut Diagnostics) {
    match &node.value {
        NodeValue::Map(entries) => {
            for entry in entries {
                parameters_in(&entry.value, &path.key(entry.key.clone()), known, out);
            }
        }
        NodeValue::List(items) => {
            for (at, item) in items.iter().enumerate() {
                parameters_in(item, &path.index(at), known, out);
            }
        }
        NodeValue::Scalar(scalar) => {
            // A text that is not a template was reported when the state was decoded.
            let Some(template) = Template::parse(&scalar.text).ok() else { return };
            for expression in template.expressions().filter(|e| e.namespace == Namespace::Param) {
                let Some(Segment::Key(wanted)) = expression.path.first() else { continue };
                if known.contains(&wanted.as_str()) || expression.fallback != TemplateFallback::Required {
                    continue;
                }
                let place = FindingPlace::Within(path.clone(), expression.span.clone());
                let message = format!("the fragment declares no parameter `{wanted}`");
                let finding = Diagnostic::error("unknown-param", place, message);
                out.push(match nearest(wanted, known.iter().copied()) {
                    Some(near) => finding.meant(&format!("param.{wanted}"), &format!("param.{near}")),
                    None => finding.help(format!(
                        "declare it: `parameters: {{{wanted}: {{type: string, required: true}}}}`"
                    )),
                });
            }
        }
    }
}

/// Reports a fragment that is not a mapping.
pub(super) fn not_a_mapping(name: &str, fragment: &Node) -> Option<Diagnostic> {
    let message = || format!("the fragment `{name}` must be a mapping");
    let is_mapping = matches!(fragment.value, NodeValue::Map(_));
    (!is_mapping).then(|| Diagnostic::error("wrong-type", FindingPlace::At(fragment.span.clone()), message()))
}

/// Says that a fragment inherits from another one.
pub(super) fn nested(name: &str, nested: &Entry) -> Diagnostic {
    let message = format!("the fragment `{name}` inherits from another one");
    Diagnostic::error("nested-fragment", FindingPlace::At(nested.key_span.clone()), message)
        .help("fragments cannot be nested; write the keys out here")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::base::node::FileId;
    use crate::definition::{render, yaml};

    /// Checks a library and shows every finding as `line:column code: message (help)`; nothing if it is not one.
    fn check(text: &str) -> Option<String> {
        let mut sources = Sources::default();
        sources.add("lib", text);
        let tree = yaml::parse(text, FileId(0), &mut Diagnostics::default()).unwrap();
        let found = is_library(&tree).then(|| check_library(&tree, &sources))?;
        let shown = |object: &serde_json::Value| {
            let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            let place = format!("{}:{}", object["line"], object["column"]);
            format!("{place} {} {}: {} ({})\n", word("severity"), word("code"), word("message"), word("help"))
        };
        Some(render::to_json(&found, &sources, Some(&tree)).iter().map(shown).collect())
    }

    #[test]
    fn a_library_has_fragments_and_nothing_of_a_loop() {
        for loops in
            ["name: x\nfragments: {}", "from: x\nfragments: {}", "flow: [a]\nfragments: {}", "description: x"]
        {
            assert_eq!(check(loops), None, "{loops}");
        }
        for good in [
            "fragments:\n",
            "description: d\nfragments: {}",
            "fragments:\n  partial: {evaluate: {operator: lt}, on_yes: x}\n  typed: {parameters: {p: {type: integer}}, action: 'echo ${param.p}'}\n",
            "fragments:\n  classic: {check_condition: {type: exit_code, source: '${context.x}'}, with: {a: b}}\n",
        ] {
            assert_eq!(check(good).as_deref(), Some(""), "{good}");
        }
    }

    #[test]
    fn every_fragment_of_a_library_is_read() {
        let wrong = "descripton: d\ntimeout: 5\nwhatever: 1\nfragments:\n  a: {acton: x, evaluate: {type: exit_cod}}\n  b: text\n  c: {fragment: a, parameters: {p: {type: strin}}}\n  d:\n    action: |\n      echo ${param.who}\n      echo ${param.whoo} ${param.other?} ${contxt.x}\n    parameters: {who: {type: string}}\n    env: {A: '${param.woh}'}\n";
        assert_snapshot!(check(wrong).unwrap(), @"
        1:1 error unknown-key: unknown key `descripton` (did you mean `description`?)
        2:1 warning no-effect: `timeout` has no effect in a library of fragments (only its `fragments` are read; write it in the loop)
        3:1 error unknown-key: unknown key `whatever` (a library has `description` and `fragments`)
        5:7 error unknown-key: unknown key `acton` (did you mean `action`?)
        5:34 error unknown-word: `type` cannot be `exit_cod` (did you mean `exit_code`?)
        6:6 error wrong-type: the fragment `b` must be a mapping ()
        7:7 error nested-fragment: the fragment `c` inherits from another one (fragments cannot be nested; write the keys out here)
        7:43 error unknown-word: `type` cannot be `strin` (did you mean `string`?)
        11:42 error template: unknown namespace `contxt` (did you mean `context`?)
        13:15 error unknown-param: the fragment declares no parameter `woh` (did you mean `param.who`?)
        ");
        assert_snapshot!(check("fragments: [a]").unwrap(), @"1:12 error wrong-type: `fragments` must be a mapping ()");
    }
}
