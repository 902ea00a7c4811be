//! The recipes of a Makefile or a justfile.

use std::collections::BTreeSet;

/// The names of a Makefile, in the order in which make looks for one.
pub(super) const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// A recipe of a Makefile or a justfile.
pub(super) struct Recipe<'t> {
    pub(super) name: &'t str,
    /// What stands behind the colon: the recipes that run before it.
    pub(super) needs: &'t str,
    pub(super) body: String,
    pub(super) line: usize,
}

impl Recipe<'_> {
    /// Returns the names of the recipes that run right before it, among what else stands there.
    pub(super) fn needs(&self) -> impl Iterator<Item = &str> {
        self.needs.split(|c: char| c.is_whitespace() || "()".contains(c)).filter(|word| !word.is_empty())
    }

    /// Returns what the recipes do that run before it, each once.
    pub(super) fn needed(&self, all: &[Self]) -> String {
        let mut known = BTreeSet::from([self.name]);
        let (mut bodies, mut open) = (String::new(), vec![self]);
        while let Some(recipe) = open.pop() {
            let names: BTreeSet<&str> = recipe.needs().collect();
            for other in all.iter().filter(|other| names.contains(other.name)) {
                if known.insert(other.name) {
                    bodies.push_str(&other.body);
                    open.push(other);
                }
            }
        }
        bodies
    }
}

/// Reads what has recipes: names at the beginning of a line before a colon, and indented lines below.
pub(super) fn recipes(text: &str) -> Vec<Recipe<'_>> {
    let mut found: Vec<Recipe<'_>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.starts_with([' ', '\t']) {
            if let Some(recipe) = found.last_mut() {
                recipe.body.push_str(line.trim());
                recipe.body.push('\n');
            }
            continue;
        }
        let Some((head, needs)) = line.split_once(':').filter(|_| !line.starts_with('#')) else { continue };
        // An assignment is not a recipe.
        let mut words = head.split_whitespace();
        let is_assigned = words.next().is_some_and(|word| word.contains('='))
            || words.next().is_some_and(|word| word.starts_with('='));
        if line[head.len()..].starts_with(":=") || is_assigned {
            continue;
        }
        // Several targets before one colon have one recipe, and any of them calls it.
        found.extend(head.split_whitespace().take(1).map(|name| Recipe {
            name,
            needs,
            body: String::new(),
            line: at + 1,
        }));
    }
    found
}

/// Returns the recipe that make runs where none is named.
pub(super) fn first_recipe(makefile: &str) -> Option<String> {
    let named = makefile.lines().find_map(|line| {
        let (name, goal) = line.split_once('=')?;
        (name.trim_end_matches([':', '?', ' ']) == ".DEFAULT_GOAL").then(|| goal.trim().to_owned())
    });
    let is_one =
        |recipe: &&Recipe<'_>| !recipe.name.starts_with('.') && !recipe.name.contains(['%', '$', '=']);
    named.or_else(|| recipes(makefile).iter().find(is_one).map(|recipe| recipe.name.to_owned()))
}
