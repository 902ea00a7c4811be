//! The rules of a Makefile that some targets need, and what else in it has a say in them.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::text::{head, up_to};

/// A rule: what it makes, of what, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MakeRule {
    pub(super) targets: Vec<String>,
    pub(super) needs: Vec<String>,
    pub(super) recipe: Vec<String>,
}

/// A Makefile: its rules, and the lines around them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Makefile {
    pub(super) rules: Vec<MakeRule>,
    /// Variables by name, with every line that sets them.
    variables: BTreeMap<String, Vec<String>>,
    /// What they are in the end, as far as they are plain.
    values: BTreeMap<String, String>,
    /// Lines of recipes within the variables of many lines, of which `$(eval …)` makes rules.
    defined_recipes: Vec<String>,
    /// Lines that have a say in all rules: what is included, conditions, exports.
    others: Vec<String>,
}

/// What stands behind the name of a variable among targets: no target ends so.
const KEY: &str = "=";

/// The key of all variables of a file: what a Makefile exports is read by whatever its recipes start.
const ALL: &str = "*";

/// The target that exports all variables.
const EXPORTS: &str = ".EXPORT_ALL_VARIABLES";

/// The most variables of a key each: a hostile Makefile has no end of them.
const MOST_KEYS: usize = 2000;

/// The longest text into which variables are filled, and the longest name of one.
const LONGEST: usize = 16 * 1024;
const LONGEST_NAME: usize = 256;

/// How deep variables are filled into each other, and how many words the rules of a file get in this way.
const DEEPEST: usize = 5;
const MOST_WORDS: usize = 10_000;

/// Variables that change how every recipe is run.
const OF_ALL: [&str; 6] = ["SHELL", ".SHELLFLAGS", "MAKEFLAGS", "MAKE", ".RECIPEPREFIX", "PATH"];

/// The target whose needs are no files.
const PHONY: &str = ".PHONY";

/// Targets that are not files, and change how every recipe is run.
const SPECIAL: [&str; 6] = [".IGNORE", ".ONESHELL", ".POSIX", ".DEFAULT", ".DELETE_ON_ERROR", ".SILENT"];

impl Makefile {
    /// Reads one. A line that goes on below is one line.
    pub(super) fn parse(text: &str) -> Self {
        // A backslash at the end joins lines before anything else is read.
        let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
        let mut file = Self::default();
        let mut prefix = '\t';
        // The variable of many lines that is open, and how many of them are open within it.
        let mut open: Option<(String, usize)> = None;
        for line in joined.lines() {
            open = match open.take() {
                Some((name, depth)) => file.take_defined(line, name, depth),
                None => defined(line, prefix).map(|name| {
                    // Also one without lines takes the place of what was set before.
                    file.variables.entry(name.to_owned()).or_default().push(line.trim().to_owned());
                    (name.to_owned(), 1)
                }),
            };
            if open.is_none() && line.split_whitespace().next() != Some("endef") {
                file.take(line, prefix);
                prefix = new_prefix(line).unwrap_or(prefix);
            }
        }
        let values = file.variables.iter().filter_map(|(name, lines)| Some((name.clone(), value(lines)?)));
        file.values = values.collect();
        file.fill_in();
        file
    }

    /// Adds to the words of rules what their variables stand for: `test: $(PARTS)` needs the parts.
    fn fill_in(&mut self) {
        let mut rules = std::mem::take(&mut self.rules);
        let mut left = MOST_WORDS;
        for words in rules.iter_mut().flat_map(|rule| [&mut rule.targets, &mut rule.needs]) {
            let named: Vec<String> =
                words.iter().filter(|word| word.contains('$')).take(left).cloned().collect();
            for word in named {
                let filled = self.filled_in(&word);
                let more = filled.split_whitespace().filter(|part| !part.contains('$')).take(left);
                let known = words.len();
                words.extend(more.map(str::to_owned));
                left = left.saturating_sub(1 + words.len() - known);
            }
        }
        self.rules = rules;
    }

    /// Returns a text with the variables filled in that the file sets, as far as they are plain.
    pub(super) fn filled_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..DEEPEST {
            match self.filled_in_once(&text) {
                Some(next) if next.len() <= LONGEST => text = next,
                Some(_) | None => break,
            }
        }
        text
    }

    fn filled_in_once(&self, text: &str) -> Option<String> {
        let (mut out, mut rest, mut is_changed) = (String::new(), text, false);
        while let Some(at) = rest.find('$').filter(|_| out.len() + rest.len() <= 2 * LONGEST) {
            let (before, behind) = rest.split_at(at);
            out.push_str(before);
            if let Some((value, length)) = self.reference(behind) {
                out.push_str(value);
                (rest, is_changed) = (&behind[length..], true);
            } else {
                // `$$` is a dollar of the shell, so its second sign begins nothing.
                let length = if behind.starts_with("$$") { 2 } else { 1 };
                out.push_str(&behind[..length]);
                rest = &behind[length..];
            }
        }
        out.push_str(rest);
        is_changed.then_some(out)
    }

    /// Returns what a reference at the beginning of a text stands for, and its length.
    fn reference(&self, text: &str) -> Option<(&str, usize)> {
        let close = match text.as_bytes().get(1)? {
            b'(' => ')',
            b'{' => '}',
            _ => return None,
        };
        let end = text.find(close)?;
        let inside = &text[2..end];
        let name = inside.strip_prefix("call ").map_or(inside, |call| up_to(call, &[',']).trim());
        Some((self.values.get(name)?.as_str(), end + 1))
    }

    /// Takes a line of a variable of many lines; returns the variable as long as it goes on.
    fn take_defined(&mut self, line: &str, name: String, depth: usize) -> Option<(String, usize)> {
        let depth = match line.split_whitespace().next() {
            Some("define") => depth + 1,
            Some("endef") => depth - 1,
            Some(_) | None => depth,
        };
        if depth == 0 {
            return None;
        }
        if line.starts_with('\t') {
            self.defined_recipes.push(line.trim().to_owned());
        }
        self.variables.entry(name.clone()).or_default().push(line.trim().to_owned());
        Some((name, depth))
    }

    fn take(&mut self, line: &str, prefix: char) {
        // Without a rule above it, make refuses the line, so it belongs to no rule.
        if let Some(command) = line.strip_prefix(prefix) {
            if let Some(rule) = self.rules.last_mut() {
                rule.recipe.push(command.trim().to_owned());
            }
            return;
        }
        let plain = up_to(line, &['#']).trim();
        if plain.is_empty() {
            return;
        }
        match kind(plain) {
            LineKind::Variable(name) => {
                self.variables.entry(name.to_owned()).or_default().push(plain.to_owned());
                // It has a say also where nobody reads the variable: `X := $(eval SHELL := /bin/true)`, and `export X = 1`.
                if is_export(plain)
                    || ["eval ", "shell ", "file "].iter().any(|function| calls(plain, function))
                {
                    self.others.push(plain.to_owned());
                }
            }
            LineKind::Rule(targets, rest) => {
                // What stands behind a semicolon is the first line of the recipe.
                let (needs, recipe) = rest.split_once(';').unwrap_or((rest, ""));
                let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                let recipe = Some(recipe.trim()).filter(|recipe| !recipe.is_empty());
                let recipe = recipe.map(str::to_owned).into_iter().collect();
                self.rules.push(MakeRule { targets: words(targets), needs: words(needs), recipe });
            }
            LineKind::Other => self.others.push(plain.to_owned()),
        }
    }

    /// Returns the lines of recipes of which `$(eval …)` makes rules: which, is known to make alone.
    pub(super) fn defined_recipes(&self) -> Vec<String> {
        let makes_rules = self.others.iter().any(|line| calls(line, "eval "));
        let words: Vec<&str> = self.others.iter().flat_map(|line| given(line)).take(MOST_WORDS).collect();
        let filled_in = |line: &String| -> Vec<String> {
            if line.contains("$(1)") {
                words.iter().map(|word| line.replace("$(1)", word)).collect()
            } else {
                vec![line.clone()]
            }
        };
        self.defined_recipes.iter().filter(|_| makes_rules).flat_map(filled_in).take(MOST_WORDS).collect()
    }

    /// Returns the rules that some targets need, themselves included; those of the first target where none is named.
    pub(super) fn needed(&self, targets: &[String]) -> Vec<&MakeRule> {
        // A target that begins with a dot is never the default one.
        let first = self.rules.iter().flat_map(|rule| &rule.targets).find(|target| !target.starts_with('.'));
        let mut waiting: Vec<&str> = match targets {
            [] => first.map(String::as_str).into_iter().collect(),
            _ => targets.iter().map(String::as_str).collect(),
        };
        let (mut known, mut asked) = (BTreeSet::new(), BTreeSet::new());
        while let Some(target) = waiting.pop() {
            if !asked.insert(target) {
                continue;
            }
            for (at, rule) in self.rules.iter().enumerate() {
                if rule.makes(target) && known.insert(at) {
                    waiting.extend(rule.needs.iter().map(String::as_str));
                    // A recipe may call make again for other targets of the same file.
                    waiting.extend(rule.recipe.iter().flat_map(|line| made_by(line)));
                }
            }
        }
        self.rules.iter().enumerate().filter(|(at, _)| known.contains(at)).map(|(_, rule)| rule).collect()
    }

    /// Tells whether every variable reaches what the recipes start.
    fn exports_all(&self) -> bool {
        let is_of_all = |line: &String| {
            // Which names a function yields is not known: `export $(shell sed 's/=.*//' .env)`.
            let rest = line.strip_prefix("export").filter(|_| is_export(line)).map(str::trim);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('$'))
        };
        self.others.iter().any(is_of_all)
            || self.rules.iter().any(|rule| rule.targets.iter().any(|target| target == EXPORTS))
    }

    /// Returns what the variable `PATH` is made by the file, for some of its rules.
    pub(super) fn search_paths(&self, rules: &[&MakeRule]) -> Vec<String> {
        let of_rule = |rule: &&MakeRule| {
            // `test: PATH := bin:$(PATH)`
            let needs = rule.needs.join(" ");
            let (name, value) = needs.split_once('=')?;
            let name = name.trim_end_matches([':', '?', '+', '!', ' ']).trim_start_matches("export ");
            (name.trim() == "PATH").then(|| value.trim().to_owned())
        };
        let of_all = self.values.get("PATH").cloned();
        let all = of_all.into_iter().chain(rules.iter().filter_map(of_rule));
        // What it was before is not what the file makes it.
        let before = |value: String| value.replace("$(PATH)", "$PATH").replace("${PATH}", "$PATH");
        all.map(|value| self.filled_in(&before(value))).collect()
    }

    /// Returns the files that rules make by a recipe, as far as their names are known. What is phony is made whatever is there.
    pub(super) fn made(&self, rules: &[&MakeRule]) -> Vec<String> {
        let phony = self.rules.iter().filter(|rule| rule.targets.iter().any(|target| target == PHONY));
        let phony: BTreeSet<&String> = phony.flat_map(|rule| &rule.needs).collect();
        let made = rules.iter().filter(|rule| !rule.recipe.is_empty()).flat_map(|rule| &rule.targets);
        let is_file = |target: &&String| {
            // `.PHONY` and its like are no files.
            let is_word = target.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_uppercase));
            !phony.contains(target) && !is_word && !target.contains(['%', '$'])
        };
        made.filter(is_file).cloned().collect()
    }

    /// Returns the lines by which some targets are made, with the names that each of them has in its recipe: `$@`, `$<`,
    /// `$^` and `$*`.
    pub(super) fn recipes(&self, targets: &[String]) -> Vec<String> {
        let first = self.rules.iter().flat_map(|rule| &rule.targets).find(|target| !target.starts_with('.'));
        let mut waiting: Vec<String> =
            if targets.is_empty() { first.cloned().into_iter().collect() } else { targets.to_vec() };
        let mut asked = BTreeSet::new();
        let mut lines = Vec::new();
        while let Some(target) = waiting.pop().filter(|_| lines.len() < MOST_WORDS) {
            if !asked.insert(target.clone()) {
                continue;
            }
            for rule in &self.rules {
                let Some(stem) = rule.stem(&target) else { continue };
                let needs: Vec<String> = rule.needs.iter().map(|need| need.replacen('%', stem, 1)).collect();
                // A recipe may call make again for other targets of the same file.
                let called = rule.recipe.iter().flat_map(|line| made_by(line)).map(str::to_owned);
                waiting.extend(called.chain(needs.iter().cloned()));
                let (one, all) = (needs.first().map_or("", String::as_str), needs.join(" "));
                lines.extend(rule.recipe.iter().map(|line| {
                    let line = line.replace("$@", &target).replace("$<", one);
                    line.replace("$^", &all).replace("$+", &all).replace("$*", stem)
                }));
            }
        }
        lines
    }

    /// Returns the keys of the variables that rules read, set in this file or not.
    pub(super) fn keys(&self, rules: &[&MakeRule]) -> Vec<String> {
        let lines: Vec<String> = rules.iter().flat_map(|rule| rule.lines()).collect();
        let read = self.read(lines.iter().map(String::as_str));
        // Those that change every recipe are read in each file.
        let read = read.into_iter().filter(|name| !OF_ALL.contains(&name.as_str()));
        let all = self.exports_all().then(|| ALL.to_owned());
        all.into_iter().chain(read.take(MOST_KEYS)).map(|name| name + KEY).collect()
    }

    /// Returns the variables that texts read, set here or not, and those that these read in turn.
    fn read<'t>(&self, texts: impl Iterator<Item = &'t str>) -> BTreeSet<String> {
        let mut waiting: Vec<String> = texts.flat_map(names).collect();
        // Nobody has to name these for them to count.
        waiting.extend(OF_ALL.map(str::to_owned));
        // What is asked in a condition decides which of the rules hold.
        waiting.extend(self.others.iter().flat_map(|line| names(line)));
        waiting.extend(self.others.iter().filter_map(|line| asked(line)).map(str::to_owned));
        // What recipes start reads it from its environment: `export EXPECTED`, `"$$EXPECTED"`.
        let exports = self.others.iter().filter(|line| is_export(line));
        waiting.extend(exports.flat_map(|line| line.split_whitespace().skip(1)).map(str::to_owned));
        let mut are_all = self.exports_all();
        if are_all {
            waiting.extend(self.variables.keys().cloned());
        }
        let mut known = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            // A name that is put together may be that of any variable.
            if name.contains('$') && !std::mem::replace(&mut are_all, true) {
                waiting.extend(self.variables.keys().cloned());
            }
            if !known.contains(&name) {
                let lines = self.variables.get(&name).into_iter().flatten();
                waiting.extend(lines.flat_map(|line| names(line)));
                known.insert(name);
            }
        }
        known
    }
}

impl MakeRule {
    /// Returns it line by line.
    fn lines(&self) -> Vec<String> {
        let head = format!("{}: {}", self.targets.join(" "), self.needs.join(" "));
        std::iter::once(head).chain(self.recipe.iter().map(|line| format!("\t{line}"))).collect()
    }

    fn makes(&self, target: &str) -> bool {
        self.stem(target).is_some()
    }

    /// Returns what stands for the sign of a pattern where the rule makes a target; nothing, where it has no such sign.
    fn stem<'t>(&self, target: &'t str) -> Option<&'t str> {
        let fits = |made: &String| match made.split_once('%') {
            // The stem of a pattern has at least one character.
            Some((start, end)) => {
                target.strip_prefix(start)?.strip_suffix(end).filter(|stem| !stem.is_empty())
            }
            None => (made == target || SPECIAL.contains(&made.as_str())).then_some(""),
        };
        self.targets.iter().find_map(fits)
    }
}

/// Returns what a line gives to the texts that it calls: the first word behind the name in `$(call NAME,WORD)`.
fn given(line: &str) -> impl Iterator<Item = &str> {
    let behind = line.split("call ").skip(1).filter_map(|rest| rest.split_once(','));
    behind.filter_map(|(_, given)| given.split([',', ')']).next()).map(str::trim)
}

/// Returns the variable that a line begins to define, with all the lines up to `endef`.
fn defined(line: &str, prefix: char) -> Option<&str> {
    let plain = up_to(line, &['#']).trim();
    let plain = plain.strip_prefix("override ").or_else(|| plain.strip_prefix("export ")).unwrap_or(plain);
    let name = plain.strip_prefix("define").filter(|rest| rest.starts_with([' ', '\t']))?;
    // A line that begins like a recipe is one.
    (!line.starts_with(prefix)).then(|| name.trim_end_matches(['=', ':', '?', '+', '!', ' ', '\t']).trim())
}

/// Returns what lines that set a variable make of it.
fn value(lines: &[String]) -> Option<String> {
    if let Some(begin) = lines.iter().rposition(|line| defined(line, '\t').is_some()) {
        return Some(lines[begin + 1..].join("\n")).filter(|value| value.len() <= LONGEST);
    }
    let mut value: Option<String> = None;
    for line in lines {
        let Some((head, set)) = line.split_once('=') else { continue };
        value = match (value, head.chars().next_back()) {
            (Some(known), Some('?')) => Some(known),
            (Some(known), Some('+')) if known.len() <= LONGEST => Some(format!("{known} {}", set.trim())),
            (Some(_) | None, _) => Some(set.trim().to_owned()),
        };
    }
    value.filter(|value| value.len() <= LONGEST)
}

/// Returns the sign with which recipes begin from here on, where a line sets another one than the tab.
fn new_prefix(line: &str) -> Option<char> {
    let (name, value) = line.split_once('=')?;
    (name.trim_end_matches(':').trim() == ".RECIPEPREFIX")
        .then(|| value.trim().chars().next().unwrap_or('\t'))
}

enum LineKind<'l> {
    Variable(&'l str),
    Rule(&'l str, &'l str),
    Other,
}

/// Words with which lines begin that are neither rules nor variables, whatever signs they hold.
const DIRECTIVES: [&str; 10] =
    ["ifeq", "ifneq", "ifdef", "ifndef", "else", "endif", "include", "-include", "sinclude", "undefine"];

fn kind(line: &str) -> LineKind<'_> {
    let first = line.split([' ', '\t', '(']).next().unwrap_or(line);
    // A function at the beginning of a line may set variables and make rules.
    if DIRECTIVES.contains(&first) || is_call(line) {
        return LineKind::Other;
    }
    let words = line.strip_prefix("override ").or_else(|| line.strip_prefix("export ")).unwrap_or(line);
    let colon = words.find(':');
    let equals = words.find('=');
    match (colon, equals) {
        (colon, Some(equals))
            // `a: b = c` sets a variable for one target; `a := b` sets one for all.
            if colon.is_none_or(|colon| equals <= colon + 3 && is_assigned(&words[colon..]))
                || colon > Some(equals) =>
        {
            let name = words[..equals].trim_end_matches([':', '?', '+', '!']).trim();
            LineKind::Variable(name)
        }
        (Some(colon), _) => LineKind::Rule(&words[..colon], words[colon + 1..].trim_start_matches(':')),
        (None, _) => LineKind::Other,
    }
}

/// Tells whether a line hands variables to what recipes start.
fn is_export(line: &str) -> bool {
    line.strip_prefix("export").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Tells whether a text that begins with a colon is `:=`, `::=` or `:::=`.
fn is_assigned(text: &str) -> bool {
    text.trim_start_matches(':').starts_with('=')
}

/// Tells whether a text begins with a call of a function, `$(eval X = 1)`. `$(NAME): needs` is a rule.
fn is_call(text: &str) -> bool {
    let inside = text.strip_prefix("$(").or_else(|| text.strip_prefix("${"));
    inside.is_some_and(|inside| {
        inside.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '-').starts_with(' ')
    })
}

/// Tells whether a function is called in a text.
fn calls(text: &str, function: &str) -> bool {
    text.match_indices('$').any(|(at, _)| {
        text[at + 1..]
            .strip_prefix(['(', '{'])
            .is_some_and(|inside| inside.trim_start().starts_with(function))
    })
}

/// Returns the variable that a condition asks for without a sign in front of it: `ifdef NAME`.
fn asked(line: &str) -> Option<&str> {
    let line = line.strip_prefix("else ").unwrap_or(line).trim_start();
    line.strip_prefix("ifdef ").or_else(|| line.strip_prefix("ifndef ")).map(str::trim)
}

/// Returns the names in `$(NAME)`, `${NAME}` and `$(call NAME,…)`.
fn names(text: &str) -> Vec<String> {
    let begins = text.match_indices('$').filter_map(|(at, _)| text[at + 1..].strip_prefix(['(', '{']));
    let name = |rest: &str| {
        let function = ["call ", "value "].iter().find_map(|function| rest.strip_prefix(function));
        let rest = head(function.unwrap_or(rest).trim_start(), LONGEST_NAME);
        let end = rest.find([')', '}', ':', ' ', ',']).unwrap_or(rest.len());
        rest[..end].to_owned()
    };
    begins.map(name).collect()
}

/// Returns the targets of a recipe's line that calls make again.
fn made_by(line: &str) -> Vec<&str> {
    let words: Vec<&str> = line.trim_start_matches(['@', '-', '+']).split_whitespace().collect();
    let make = words.iter().position(|word| matches!(*word, "$(MAKE)" | "${MAKE}" | "make" | "gmake"));
    let Some(make) = make else { return Vec::new() };
    let ends = |word: &&&str| !matches!(**word, "&&" | "||" | ";" | "|");
    words[make + 1..].iter().take_while(ends).copied().filter(|word| !word.starts_with('-')).collect()
}

/// Returns the files that a line includes, if it is one that does. Which ones they are may depend on something.
pub(super) fn included(line: &str) -> impl Iterator<Item = &str> {
    let plain = up_to(line, &['#']);
    let mut words = plain.split_whitespace();
    let includes = matches!(words.next(), Some("include" | "-include" | "sinclude"));
    // A line that begins with a tab is a recipe.
    words.filter(move |_| includes && !line.starts_with('\t'))
}

/// Returns what some targets are made by, line by line, with what sets the variables that have a key among them.
pub(super) fn rules(text: &str, targets: &[String]) -> Vec<String> {
    let file = Makefile::parse(text);
    let (keys, targets): (Vec<String>, Vec<String>) =
        targets.iter().cloned().partition(|target| target.ends_with(KEY));
    let mut lines: Vec<String> = file.needed(&targets).iter().flat_map(|rule| rule.lines()).collect();
    let mut variables = file.read(lines.iter().map(String::as_str));
    variables.extend(keys.iter().filter_map(|key| key.strip_suffix(KEY)).map(str::to_owned));
    if variables.contains(ALL) {
        variables.extend(file.variables.keys().cloned());
    }
    let set = variables.iter().filter_map(|name| file.variables.get(name)).flatten().cloned();
    let all: Vec<String> = set.chain(file.others.iter().cloned()).collect();
    lines.extend(all);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, targets: &[&str]) -> Vec<String> {
        let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
        rules(text, &targets)
    }

    #[test]
    fn recipes_of_which_rules_are_made_have_the_words_that_they_are_given() {
        let text = "define T\n$(1):\n\tsh $(1).sh\n\techo $(2)\nendef\n$(eval $(call T,check))\n$(eval $(call T, lint ,x))\n";
        let recipes = Makefile::parse(text).defined_recipes();
        assert_eq!(recipes, ["sh check.sh", "sh lint.sh", "echo $(2)"]);
        let unused = text.replace("eval", "info");
        assert!(Makefile::parse(&unused).defined_recipes().is_empty());
    }

    #[test]
    fn only_what_a_target_needs_counts() {
        let text = "V = 1\nX := $(Y)\nY = 2\nall: build\ntest: build ; echo $(X)\n\tpytest \\\n\t-q\nbuild:\n\tcc\nclean:\n\trm $(V)\n";
        assert_eq!(
            lines(text, &["test"]),
            ["test: build", "\techo $(X)", "\tpytest  \t-q", "build: ", "\tcc", "X := $(Y)", "Y = 2"]
        );
        assert_eq!(lines(text, &[]), ["all: build", "build: ", "\tcc"]);
    }

    #[test]
    fn what_changes_every_recipe_counts_for_each() {
        let text = "SHELL = /bin/true\n.IGNORE:\ninclude other.mk\ntest:\n\tpytest\n";
        assert_eq!(
            lines(text, &["test"]),
            [".IGNORE: ", "test: ", "\tpytest", "SHELL = /bin/true", "include other.mk"]
        );
    }

    #[test]
    fn what_is_exported_counts_for_each_rule() {
        let rules = "A = 1\ntest:\n\tpytest\n";
        let plain = lines(rules, &["test"]);
        assert!(!plain.contains(&"A = 1".to_owned()), "{plain:?}");
        for more in ["export\n", ".EXPORT_ALL_VARIABLES:\n", "export $(shell sed 's/=.*//' .env)\n"] {
            let text = format!("{more}{rules}");
            assert!(lines(&text, &["test"]).contains(&"A = 1".to_owned()), "{more}");
            let file = Makefile::parse(&text);
            let keys = file.keys(&file.needed(&["test".to_owned()]));
            assert!(
                lines("B = 2\n", &keys.iter().map(String::as_str).collect::<Vec<_>>()) == ["B = 2"],
                "{more}"
            );
        }
        assert!(lines(&format!("export B = 2\n{rules}"), &["test"]).contains(&"export B = 2".to_owned()));
    }

    #[test]
    fn a_text_that_is_exported_by_its_name_counts() {
        let text =
            "define EXPECTED\n# a\nendef\nexport EXPECTED\ntest:\n\techo \"$$EXPECTED\" | diff - out\n";
        let found = lines(text, &["test"]);
        assert!(found.contains(&"# a".to_owned()), "{found:?}");
    }

    #[test]
    fn the_search_path_of_recipes_is_known() {
        for (text, expected) in [
            (
                "V = .venv\nexport PATH := $(CURDIR)/$(V)/bin:$(PATH)\ntest:\n\tx\n",
                "$(CURDIR)/.venv/bin:$PATH",
            ),
            ("test: PATH := bin:$(X)\ntest:\n\tx\n", "bin:$(X)"),
            ("other: PATH = bin\ntest:\n\tx\n", ""),
        ] {
            let file = Makefile::parse(text);
            let needed = file.needed(&["test".to_owned()]);
            assert_eq!(file.search_paths(&needed).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn what_decides_which_rules_hold_counts() {
        let with = |more: &str| {
            let rules = "ifdef SKIP\ntest:\n\ttrue\nelse ifeq ($(A:b=c),1)\ntest:\n\tx\nendif\n";
            lines(&format!("{more}{rules}"), &["test"])
        };
        let plain = with("");
        assert_eq!(with("OTHER = 1\n"), plain);
        for more in [
            "SKIP = 1\n",
            "A = 1\n",
            "X := $(eval SHELL := /bin/true)\n",
            "$(eval SKIP := 1)\n",
            "X = $(shell rm x)\n",
        ] {
            assert_ne!(with(more), plain, "{more}");
        }
    }

    #[test]
    fn a_variable_is_read_by_a_call_and_by_a_name_that_is_put_together() {
        let text =
            "run = pytest $(1)\nFAST_1 = x\nother:\n\tx\ntest:\n\t$(call run,a)\nslow:\n\t$(FAST_$(N))\n";
        assert_eq!(lines(text, &["test"]), ["test: ", "\t$(call run,a)", "run = pytest $(1)"]);
        assert_eq!(lines(text, &["slow"]), ["slow: ", "\t$(FAST_$(N))", "FAST_1 = x", "run = pytest $(1)"]);
        assert_eq!(lines("$(NAME): a\n\tx\n", &["$(NAME)"]), ["$(NAME): a", "\tx"]);
    }

    #[test]
    fn what_another_file_reads_has_a_key() {
        let text = "A = $(B)\nB = 1\nC = 1\ntest:\n\tpytest $(A) $(D)\n";
        let file = Makefile::parse(text);
        let keys = file.keys(&file.needed(&["test".to_owned()]));
        for (key, is_read) in [("A=", true), ("B=", true), ("C=", false), ("D=", true), ("SHELL=", false)] {
            assert_eq!(keys.contains(&key.to_owned()), is_read, "{key}");
        }
        assert_eq!(lines("D = 1\nE = 1\nother:\n\tx\n", &["test", "D="]), ["D = 1"]);
    }

    #[test]
    fn variables_are_filled_in() {
        let text = "A = 1\nA += 2\nA ?= 3\nB = $(B)$(B)\ndefine C\nx\ny\nendef\ntest: $(A)\n2:\n\tz\n";
        let file = Makefile::parse(text);
        assert_eq!(file.filled_in("$(A) $$(A) ${C} $(call C,1) $(D) $("), "1 2 $$(A) x\ny x\ny $(D) $(");
        assert!(file.filled_in(&"$(B)".repeat(4000)).len() <= LONGEST);
        let needed = file.needed(&["test".to_owned()]);
        assert_eq!(needed.iter().map(|rule| rule.targets.join(" ")).collect::<Vec<_>>(), ["test", "2"]);
    }

    #[test]
    fn a_variable_of_many_lines_is_one() {
        let text =
            "define RUN\n\tpytest -q\nendef\nother:\n\tx\ndefine MORE =\n\ty\nendef\ntest:\n\t$(RUN)\n";
        assert_eq!(lines(text, &["test"]), ["test: ", "\t$(RUN)", "define RUN", "pytest -q"]);
        assert_eq!(lines(text, &["other"]), ["other: ", "\tx"]);
    }

    #[test]
    fn recipes_begin_with_the_sign_that_is_set() {
        let text = ".RECIPEPREFIX = >\ntest:\n> A=1 pytest\n";
        assert_eq!(lines(text, &["test"]), ["test: ", "\tA=1 pytest", ".RECIPEPREFIX = >"]);
    }

    #[test]
    fn a_recipe_has_the_names_of_its_target() {
        let text = "test: a.ok ci/b.sh\n\tsh $(X) $^\n%.ok: ci/%.sh\n\tsh $< > $@; echo $*\n.PHONY: test\n";
        let file = Makefile::parse(text);
        let targets = ["test".to_owned()];
        let mut lines = file.recipes(&targets);
        lines.sort();
        assert_eq!(lines, ["sh $(X) a.ok ci/b.sh", "sh ci/a.sh > a.ok; echo a"]);
        assert!(file.made(&file.needed(&targets)).is_empty());
        let file = Makefile::parse("check: .stamp\n\tx\n.stamp: a\n\ttouch .stamp\n.IGNORE:\n\tx\n");
        assert_eq!(file.made(&file.needed(&["check".to_owned()])), ["check", ".stamp"]);
    }

    #[test]
    fn make_is_followed_into_itself() {
        let text = "test:\n\t@$(MAKE) -s unit && echo\nunit:\n\tpytest\nother:\n\tx\n";
        assert_eq!(lines(text, &["test"]), ["test: ", "\t@$(MAKE) -s unit && echo", "unit: ", "\tpytest"]);
    }

    #[test]
    fn assignments_and_rules_are_told_apart() {
        let text = "A ?= 1\nB::=2\nC += a:b\nt: D = 3\nt: a=b\n\tx $(A) $(B) $(C)\n";
        let found = lines(text, &["t"]);
        assert!(found.contains(&"A ?= 1".to_owned()) && found.contains(&"B::=2".to_owned()), "{found:?}");
        assert!(
            found.contains(&"C += a:b".to_owned()) && found.contains(&"t: D = 3".to_owned()),
            "{found:?}"
        );
    }
}
