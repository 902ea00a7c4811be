//! Which run came out of which, as a tree: a run that was rewound from another stands below it.

use std::collections::BTreeMap;

/// A place in a tree: what is drawn in front of it, and in front of further lines about the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The index of the item.
    pub item: usize,
    /// In front of its own line.
    pub lead: String,
    /// In front of lines about it that stand above its children.
    pub inner: String,
}

/// Puts items that may name another one as their parent into the order of a tree: those without a parent in the order
/// given, the children of each below it. Whoever wrote the names: every item comes once, also where they form a circle.
pub fn tree(items: &[(&str, Option<&str>)]) -> Vec<Branch> {
    let by_name: BTreeMap<&str, usize> =
        items.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let parent = |at: usize| items[at].1.and_then(|name| by_name.get(name).copied()).filter(|up| *up != at);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    let mut roots = Vec::new();
    for at in 0..items.len() {
        match parent(at) {
            Some(up) => children[up].push(at),
            None => roots.push(at),
        }
    }
    let mut out = Vec::with_capacity(items.len());
    let mut is_out = vec![false; items.len()];
    // What no root leads to is in a circle, and begins where it is met first.
    for root in roots.into_iter().chain(0..items.len()) {
        let mut open = vec![(root, String::new(), String::new())];
        while let Some((at, lead, below)) = open.pop() {
            if std::mem::replace(&mut is_out[at], true) {
                continue;
            }
            let under: Vec<usize> = children[at].iter().copied().filter(|child| !is_out[*child]).collect();
            let bar = if under.is_empty() { "   " } else { "│  " };
            out.push(Branch { item: at, lead, inner: format!("{below}{bar}") });
            for (index, child) in under.iter().enumerate().rev() {
                let is_last = index + 1 == under.len();
                let (mark, bar) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                open.push((*child, format!("{below}{mark}"), format!("{below}{bar}")));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(items: &[(&str, Option<&str>)]) -> String {
        let lines = tree(items).into_iter().map(|branch| branch.lead + items[branch.item].0);
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_run_stands_below_the_one_that_it_came_out_of() {
        let items = [
            ("a", None),
            ("b", Some("a")),
            ("c", None),
            ("d", Some("b")),
            ("e", Some("a")),
            ("f", Some("gone")),
        ];
        assert_eq!(drawn(&items), "a\n├─ b\n│  └─ d\n└─ e\nc\nf");
    }

    #[test]
    fn a_circle_is_drawn_once() {
        assert_eq!(drawn(&[("a", Some("b")), ("b", Some("a")), ("c", Some("c"))]), "c\na\n└─ b");
    }

    proptest! {
        #[test]
        fn every_run_comes_once(parents in prop::collection::vec(prop::option::of(0_usize..12), 0..10)) {
            let names: Vec<String> = (0..12).map(|at: usize| at.to_string()).collect();
            let items: Vec<(&str, Option<&str>)> = parents
                .iter()
                .enumerate()
                .map(|(at, parent)| (names[at].as_str(), parent.map(|up| names[up].as_str())))
                .collect();
            let mut seen: Vec<usize> = tree(&items).into_iter().map(|branch| branch.item).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..items.len()).collect::<Vec<_>>());
        }
    }
}
