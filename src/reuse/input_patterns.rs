//! Which files a loop names as its inputs: patterns as in `.gitignore`, with the values of the run in them.

use std::borrow::Cow;

use serde_json::Value;

use super::no_key::NoKey;
use super::run_values::rendered;
use crate::base::gitpath;
use crate::base::template::Template;
use crate::judges::pattern::{PathPattern, PathSet};

/// The signs that mean more than themselves in a pattern.
const SIGNS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// The patterns of the inputs of a run.
pub struct InputPatterns {
    all: PathSet,
    each: Vec<InputPattern>,
}

struct InputPattern {
    /// With the values of the run, as people read it.
    source: String,
    set: PathSet,
    /// What every path begins with that it can hold, without a slash at the end; none for one that can hold a path anywhere.
    reach: Option<String>,
    /// The path itself, where no sign stands for anything else.
    literal: Option<String>,
}

impl InputPatterns {
    /// Inserts the values of a run into patterns. A value stands for itself: its stars and brackets match nothing else.
    ///
    /// # Errors
    /// A value is missing, or makes no pattern.
    pub fn of(inputs: &[Template], context: &Value) -> Result<Self, NoKey> {
        Self::parse(&rendered(inputs, context, escaped)?)
    }

    /// Reads patterns.
    ///
    /// # Errors
    /// One of them is invalid.
    pub fn parse(inputs: &[String]) -> Result<Self, NoKey> {
        let parse = |input: &String| {
            PathPattern::parse(input).map_err(|error| NoKey::Pattern { input: input.clone(), error })
        };
        let patterns: Vec<PathPattern> = inputs.iter().map(parse).collect::<Result<_, _>>()?;
        let each = inputs.iter().zip(&patterns).map(|(input, pattern)| InputPattern {
            source: input.clone(),
            set: PathSet::of([pattern]),
            reach: reach(input),
            literal: literal(input),
        });
        // One set of all patterns, for it is asked of every file of the tree.
        Ok(Self { each: each.collect(), all: PathSet::of(&patterns) })
    }

    /// Tells whether the file at a path is an input.
    pub fn hold(&self, path: &str) -> bool {
        let path = &*as_read(path);
        // A file or a link may stand in the place of a folder.
        self.all.matches(path) || self.literals().any(|literal| literal == path)
    }

    /// Tells whether some file at or below a path can be an input.
    pub fn may_reach(&self, folder: &str) -> bool {
        let folder = &*as_read(folder);
        let meets = |reach: &str| is_within(folder, reach) || is_within(reach, folder);
        self.each.iter().any(|pattern| pattern.reach.as_deref().is_none_or(meets))
    }

    /// Returns the paths that are named by themselves: they count although git ignores them.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.each.iter().filter_map(|pattern| pattern.literal.as_deref())
    }

    /// Tells whether a path is named by itself, or by a folder that it lies in.
    pub fn name(&self, path: &str) -> bool {
        let path = &*as_read(path);
        self.literals().any(|literal| is_within(path, literal))
    }

    /// Returns the patterns that hold none of these files.
    pub fn without_files<'p>(&self, paths: &(impl Iterator<Item = &'p str> + Clone)) -> Vec<String> {
        let holds_none =
            |pattern: &&InputPattern| !paths.clone().any(|path| pattern.set.matches(&as_read(path)));
        let without = self.each.iter().filter(holds_none);
        without.map(|pattern| pattern.source.clone()).collect()
    }
}

/// Returns a path as people read it, for patterns: one that is not UTF-8 stands in quotes, and lies in its folder all the same.
pub(super) fn as_read(path: &str) -> Cow<'_, str> {
    if path.starts_with('"') {
        Cow::Owned(String::from_utf8_lossy(&gitpath::to_bytes(path)).into_owned())
    } else {
        Cow::Borrowed(path)
    }
}

/// Tells whether a path is a folder or lies in it; an empty folder is the whole tree.
pub(super) fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || folder.is_empty())
}

/// Returns what every path begins with that a pattern can hold.
fn reach(input: &str) -> Option<String> {
    let is_local = input.starts_with("./");
    let plain = input.trim_start_matches("./").trim_end_matches('/');
    if !is_local && !plain.contains('/') {
        // It holds in every folder.
        return None;
    }
    let plain = plain.trim_start_matches('/');
    let mut fixed: Vec<String> = Vec::new();
    for part in plain.split('/') {
        match unescaped(part) {
            Some(part) => fixed.push(part),
            None => break,
        }
    }
    (!fixed.is_empty()).then(|| fixed.join("/"))
}

/// Returns the path that a pattern is, where no sign stands for anything else.
fn literal(input: &str) -> Option<String> {
    let plain = input.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/');
    unescaped(plain)
}

/// Returns a text without the backslashes in front of its signs; none where a sign means more than itself.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => plain.push(signs.next()?),
            sign if SIGNS.contains(&sign) => return None,
            sign => plain.push(sign),
        }
    }
    Some(plain)
}

fn escaped(text: &str) -> String {
    text.chars().flat_map(|sign| SIGNS.contains(&sign).then_some('\\').into_iter().chain([sign])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patterns(inputs: &[&str]) -> InputPatterns {
        let inputs: Vec<String> = inputs.iter().map(|input| (*input).to_owned()).collect();
        InputPatterns::parse(&inputs).unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn a_value_stands_for_itself() {
        let input = Template::parse("${param.path}/src/*.ts").unwrap();
        let of = |path: &str| InputPatterns::of(std::slice::from_ref(&input), &json!({"path": path}));
        let page = of("app/[id]").unwrap_or_else(|why| panic!("{why}"));
        assert!(page.hold("app/[id]/src/a.ts"));
        assert!(!page.hold("app/i/src/a.ts"));
        assert!(!of("*").unwrap_or_else(|why| panic!("{why}")).hold("app/src/a.ts"));
        assert!(of("../elsewhere").is_err());
        let absent = InputPatterns::of(&[input], &json!({}));
        assert!(matches!(absent, Err(NoKey::Value { .. })));
    }

    #[test]
    fn a_pattern_reaches_what_it_can_hold() {
        let here = patterns(&["src/api/**", "/docs/*.md"]);
        for folder in ["src", "src/api", "src/api/deep", "docs"] {
            assert!(here.may_reach(folder), "{folder}");
        }
        for folder in ["src/app", "srcs", "vendor", "docs2"] {
            assert!(!here.may_reach(folder), "{folder}");
        }
        assert!(patterns(&["*.rs"]).may_reach("vendor"));
        assert!(patterns(&["**/x/y"]).may_reach("vendor"));
    }

    #[test]
    fn a_name_that_is_not_utf8_lies_in_its_folder() {
        let here = patterns(&["src/*.c", "./gen/"]);
        let path = |bytes: &[u8]| gitpath::to_text(bytes);
        assert!(here.hold(&path(b"src/caf\xe9.c")) && !here.hold(&path(b"lib/caf\xe9.c")));
        assert!(here.may_reach(&path(b"gen/caf\xe9")) && !here.may_reach(&path(b"lib/caf\xe9")));
        assert!(here.name(&path(b"gen/caf\xe9")) && !here.name(&path(b"src/caf\xe9.c")));
        assert!(here.hold(&path(b"gen/\"quoted\"")));
        assert!(here.hold("gen") && !here.hold("src"));
        let files = [path(b"src/caf\xe9.c")];
        assert_eq!(here.without_files(&files.iter().map(String::as_str)), ["./gen/"]);
    }

    #[test]
    fn what_is_named_by_itself_and_what_names_nothing() {
        let some = patterns(&[".env", "src/*.rs", "a/b\\*", "gen/"]);
        assert_eq!(some.literals().collect::<Vec<_>>(), [".env", "a/b*", "gen"]);
        let files = ["src/a.rs", "gen/x"];
        assert_eq!(some.without_files(&files.into_iter()), [".env", "a/b\\*"]);
    }
}
