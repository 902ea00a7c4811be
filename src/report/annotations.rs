//! What is worth a mark on a line of code: the step that decided a failed run, the places in the tree that its output
//! names, and the states that come back night after night.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::digest::Digest;
use super::nights;
use super::reader::Reader;
use super::step::Step;
use super::unbegun::{Mistake, Unbegun};
use crate::base::text::{head, one_line, plain};
use crate::engine::outcome::Outcome;

/// GitHub keeps ten errors and ten warnings per step (`docs/problem-matchers.md` of actions/toolkit); two of each are
/// left to other tools in the same step.
pub const MAX_PER_LEVEL: usize = 8;

/// The runner cuts longer messages (`ExecutionContext.cs` of actions/runner).
pub const MAX_MESSAGE: usize = 4096;

const MAX_TITLE: usize = 200;

/// A longer line is data, not a message of a compiler.
const MAX_LINE: usize = 2000;

/// How bad an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It made something fail.
    Error,
    /// It is probably wrong.
    Warning,
    /// It is worth knowing.
    Notice,
}

/// A place in a file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, relative to the root of the repository.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// A remark, at a place where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// How bad it is.
    pub level: Level,
    /// A few words.
    pub title: String,
    /// The remark, of one or more lines.
    pub message: String,
    /// Where.
    pub location: Option<Location>,
}

/// The checkout, for finding the files that an output names.
pub struct Checkout<'a> {
    /// The absolute paths of the root of the repository, such as one with its links followed; paths below one of them
    /// are shortened.
    pub roots: &'a [&'a str],
    /// The directory in which actions run, from that root; empty for the root itself.
    pub home: &'a str,
    /// Tells whether a file exists, by its path relative to the root.
    pub exists: &'a dyn Fn(&str) -> bool,
}

impl Checkout<'_> {
    /// Returns the path relative to the root of a file that exists in the tree. Tools name a file from where they run,
    /// or from the root.
    fn find(&self, path: &str) -> Option<String> {
        if path.starts_with('/') {
            let below = |root: &&str| path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/');
            return self.roots.iter().find_map(below).and_then(|path| self.inside(path));
        }
        let from_home =
            Reader { home: self.home.to_owned(), ..Reader::default() }.in_repository(plain_way(path));
        self.inside(&from_home).or_else(|| self.inside(path))
    }

    fn inside(&self, path: &str) -> Option<String> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let relative = parts.join("/");
        let inside = !parts.is_empty() && !parts.contains(&"..") && !relative.contains('\\');
        (inside && (self.exists)(&relative)).then_some(relative)
    }
}

/// Returns a path without what leads nowhere at its beginning.
fn plain_way(path: &str) -> &str {
    path.strip_prefix("./").map_or(path, |rest| plain_way(rest.trim_start_matches('/')))
}

/// Returns the annotations of a run, the one about its end first, at most [`MAX_PER_LEVEL`] of each level.
pub fn annotations(digest: &Digest, tree: &Checkout<'_>) -> Vec<Annotation> {
    let mut kept: Vec<Annotation> = Vec::new();
    for annotation in all(digest, tree) {
        let same_level = kept.iter().filter(|other| other.level == annotation.level).count();
        if same_level < MAX_PER_LEVEL {
            kept.push(annotation);
        }
    }
    kept
}

/// Returns every annotation of a run, for readers without a limit: the one about its end first, and no duplicates.
pub fn all(digest: &Digest, tree: &Checkout<'_>) -> Vec<Annotation> {
    if let Some(unbegun) = digest.unbegun() {
        return not_begun(unbegun);
    }
    let step = digest.deciding_step();
    let mut all: Vec<Annotation> = outcome(digest, step).into_iter().collect();
    if let Some(step) = step {
        all.extend(places(&step.output(), &step.state.to_string(), tree));
    }
    all.extend(digest.warnings().iter().map(|warning| Annotation {
        level: Level::Warning,
        title: format!("{}: warning", one_line(digest.loop_name(), 120)),
        message: message(&warning.message),
        location: warning.state.as_ref().map(|state| at(digest, digest.line(state))),
    }));
    all.extend(recurring(digest));
    let mut different: Vec<Annotation> = Vec::new();
    for annotation in all {
        if !different.contains(&annotation) {
            different.push(annotation);
        }
    }
    different
}

/// Returns the annotation about the end of the run, on the loop file's line of the state that decided it.
fn outcome(digest: &Digest, step: Option<&Step>) -> Option<Annotation> {
    let level = match digest.end().map(|end| (end.outcome, end.verified)) {
        Some((Outcome::Success, true)) => return None,
        None if digest.not_run().is_some() => return None,
        Some((Outcome::Success, false)) => Level::Warning,
        Some((Outcome::Handoff, _)) => Level::Notice,
        Some(_) | None => Level::Error,
    };
    let state = step.map(|step| &step.state).or_else(|| digest.end().map(|end| &end.final_state));
    let mut text = digest.sentence();
    if let Some(step) = step {
        let output = step.output();
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in &lines[lines.len().saturating_sub(10)..] {
            text.push('\n');
            text.push_str(head(line, 300));
        }
    }
    Some(Annotation {
        level,
        title: one_line(&format!("{}: {}", digest.loop_name(), digest.outcome_word()), MAX_TITLE),
        message: message(&text),
        location: (!digest.file().is_empty()).then(|| at(digest, state.and_then(|state| digest.line(state)))),
    })
}

/// Returns a remark on each mistake that kept the run from beginning, or one on the loop file.
fn not_begun(unbegun: &Unbegun) -> Vec<Annotation> {
    let title = one_line(&format!("{}: {}", unbegun.loop_name, unbegun.hindrance.word()), MAX_TITLE);
    let remark = |text: &str, location| Annotation {
        level: Level::Error,
        title: title.clone(),
        message: message(text),
        location,
    };
    if unbegun.mistakes.is_empty() {
        let location = Location { file: unbegun.file.clone(), line: None, column: None };
        let text = format!("{}\n{}", unbegun.message, unbegun.details());
        return vec![remark(&text, (!unbegun.file.is_empty()).then_some(location))];
    }
    let of = |mistake: &Mistake| {
        let Mistake { file, line, column, .. } = mistake;
        let location = Location { file: file.clone(), line: *line, column: *column };
        remark(&mistake.text(), Some(location))
    };
    unbegun.mistakes.iter().map(of).collect()
}

/// Returns a notice for each state that comes back night after night.
fn recurring(digest: &Digest) -> Vec<Annotation> {
    let states = nights::of(digest).map(|history| history.recurring()).unwrap_or_default();
    let notice = |one: nights::Recurring| Annotation {
        level: Level::Notice,
        title: one_line(&format!("{}: recurring", digest.loop_name()), MAX_TITLE),
        message: message(&format!("`{}` {}", one.state, one.words())),
        location: Some(at(digest, digest.line(&one.state))),
    };
    states.into_iter().map(notice).collect()
}

fn at(digest: &Digest, line: Option<u32>) -> Location {
    Location { file: digest.file_in_repository(), line, column: None }
}

fn message(text: &str) -> String {
    let clean = plain(text);
    let mut end = clean.char_indices().nth(MAX_MESSAGE).map_or(clean.len(), |(index, _)| index);
    while clean[..end].ends_with(char::is_whitespace) {
        end -= clean[..end].chars().next_back().map_or(1, char::len_utf8);
    }
    clean[..end].to_owned()
}

/// `src/a.rs:3:5: error: …`, `a.py:3: error: …`, `./main.go:3:5: …`, `a.ts:3:5 - error …`.
static COLONS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*([^\s:()]+):([0-9]{1,7})(?::([0-9]{1,5}))?(?::|\s+-)\s+(\S.*)$").ok());

/// `a.ts(3,5): error TS2322: …`.
static PARENTHESES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*([^\s:()]+)\(([0-9]{1,7})(?:,([0-9]{1,5}))?\)\s*:\s+(\S.*)$").ok());

/// `  --> src/main.rs:3:5` under the line that holds the message.
static ARROW: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*-->\s+([^\s:()]+):([0-9]{1,7})(?::([0-9]{1,5}))?\s*$").ok());

/// Returns the places in the tree that a text names, with what it says about them.
fn places(text: &str, title: &str, tree: &Checkout<'_>) -> Vec<Annotation> {
    let mut found = Vec::new();
    let mut before = "";
    for line in text.lines().filter(|line| line.len() <= MAX_LINE && !line.trim().is_empty()) {
        let inline = || captures(&COLONS, line).or_else(|| captures(&PARENTHESES, line));
        let place = match captures(&ARROW, line) {
            Some(place) => Some((place, before)),
            None => inline().map(|place| (place, "")),
        };
        if let Some((place, above)) = place {
            let said = place.get(4).map_or(above, |said| said.as_str()).trim();
            found.extend(annotation(&place, &explained(said, before), title, tree));
        }
        before = line;
    }
    found
}

/// Returns what is said with the line before it, where pytest explains what `AssertionError` alone does not.
fn explained<'t>(said: &'t str, before: &'t str) -> Cow<'t, str> {
    match before.strip_prefix("E ") {
        Some(why) if said.ends_with("Error") => Cow::Owned(format!("{said}: {}", why.trim())),
        Some(_) | None => Cow::Borrowed(said),
    }
}

fn captures<'t>(pattern: &LazyLock<Option<Regex>>, line: &'t str) -> Option<Captures<'t>> {
    pattern.as_ref().and_then(|pattern| pattern.captures(line))
}

fn annotation(place: &Captures<'_>, said: &str, title: &str, tree: &Checkout<'_>) -> Option<Annotation> {
    let number =
        |index| place.get(index).and_then(|text| text.as_str().parse().ok()).filter(|n: &u32| *n > 0);
    let line = number(2)?;
    let file = tree.find(&place[1])?;
    let said = if said.is_empty() { "named in the output" } else { said };
    let location = Location { file, line: Some(line), column: number(3) };
    Some(Annotation {
        level: level(said),
        title: one_line(title, MAX_TITLE),
        message: message(said),
        location: Some(location),
    })
}

/// Returns how bad a message is by its own words; what says nothing stands in the output of a failed step.
fn level(said: &str) -> Level {
    let lower = said.to_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    if begins(&["warning", "warn"]) || lower.contains("[warning") {
        Level::Warning
    } else if begins(&["note", "info", "help", "hint"]) || lower.contains("[info") {
        Level::Notice
    } else {
        Level::Error
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::base::time::Timestamp;
    use crate::engine::event::Event;
    use crate::engine::night::Night;
    use crate::engine::outcome::TerminatedBy;
    use crate::report::testing::{Journal, failing, state, succeeding};

    const FILES: &[&str] =
        &["src/app.py", "src/main.rs", "main.go", "src/a.ts", "tests/test_a.py", "web/a.js", "a.c"];

    fn shown(digest: &Digest) -> String {
        let tree = Checkout { roots: &["/home/me/repo/"], home: "", exists: &|path| FILES.contains(&path) };
        annotations(digest, &tree).iter().map(line).collect()
    }

    fn line(annotation: &Annotation) -> String {
        let Annotation { level, title, message, location } = annotation;
        let place = location.as_ref().map_or_else(String::new, |at| {
            let numbers = [at.line, at.column].into_iter().flatten().map(|number| number.to_string());
            [at.file.clone()].into_iter().chain(numbers).collect::<Vec<_>>().join(":")
        });
        format!("{level:?} {place} [{title}] {}\n", message.replace('\n', " ⏎ "))
    }

    /// The annotations of a run that fails with this output, without the first one.
    fn found(output: &str) -> String {
        let mut journal = Journal::start();
        journal.step(("check", 1), "make", (1, output), "no", "failed");
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
        let shown = shown(&journal.digest());
        shown.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned())
    }

    #[test]
    fn the_deciding_failure_comes_first() {
        assert_snapshot!(shown(&failing().digest()), @r#"
        Error .loops/fix-types.yaml:6 [fix-types: failure] failure: `check` said no in 3 of 3 iterations ⏎ src/app.py:3: error: Name "foo" is not defined  [name-defined] ⏎ src/app.py:9:5: error: Missing return statement  [return] ⏎ Found 2 errors in 1 file (checked 4 source files)
        Error src/app.py:3 [check] error: Name "foo" is not defined  [name-defined]
        Error src/app.py:9:5 [check] error: Missing return statement  [return]
        "#);
        assert_eq!(shown(&succeeding().digest()), "");
        assert_eq!(shown(&crate::report::testing::not_run()), "");
    }

    #[test]
    fn what_comes_back_is_a_notice_and_a_clean_night_is_none() {
        let night = |day: i64, fixed: &[&str]| Night {
            run_id: day.to_string(),
            at: Timestamp::from_millis(day),
            outcome: Some(Outcome::Success),
            verified: true,
            unchanged: Some(true),
            cycles: 2,
            fixed: fixed.iter().map(|name| state(name)).collect(),
            flaky: Vec::new(),
            left: Vec::new(),
        };
        let mut journal = succeeding();
        journal.after(vec![night(1, &["check", "@all"]), night(2, &["@all"])]);
        assert_snapshot!(shown(&journal.digest()), @"
        Notice .loops/fix-types.yaml:6 [fix-types: recurring] `check` was fixed in 2 of the last 3 nights
        Notice .loops/fix-types.yaml [fix-types: recurring] `@all` was fixed in 2 of the last 3 nights
        ");
        assert_eq!(shown(&succeeding().after(vec![night(1, &[])]).digest()), "");
        // A run that is not a nightly one has no history.
        assert_eq!(shown(&succeeding().digest()), "");
    }

    #[test]
    fn every_compiler_names_places_in_its_own_way() {
        let output = "\
error[E0308]: mismatched types
  --> src/main.rs:3:5
warning: unused variable
 --> src/main.rs:9:1
a.c:3:5: warning: unused variable 'x' [-Wunused-variable]
a.c:7: note: declared here
src/app.py:3: error: Name \"foo\" is not defined  [name-defined]
src/app.py:1:8: F401 [*] `os` imported but unused
/home/me/repo/web/a.js:3:5: 'x' is not defined. [Error/no-undef]
/home/me/repo/web/a.js:4:5: Unexpected console statement. [Warning/no-console]
E       assert 1 == 2

tests/test_a.py:12: AssertionError
./main.go:3:5: undefined: x
src/a.ts(3,5): error TS2322: Type 'string' is not assignable
src/a.ts:8:1 - error TS2304: Cannot find name 'y'.
";
        assert_snapshot!(found(output), @r#"
        Error src/main.rs:3:5 [check] error[E0308]: mismatched types
        Warning src/main.rs:9:1 [check] warning: unused variable
        Warning a.c:3:5 [check] warning: unused variable 'x' [-Wunused-variable]
        Notice a.c:7 [check] note: declared here
        Error src/app.py:3 [check] error: Name "foo" is not defined  [name-defined]
        Error src/app.py:1:8 [check] F401 [*] `os` imported but unused
        Error web/a.js:3:5 [check] 'x' is not defined. [Error/no-undef]
        Warning web/a.js:4:5 [check] Unexpected console statement. [Warning/no-console]
        Error tests/test_a.py:12 [check] AssertionError: assert 1 == 2
        Error main.go:3:5 [check] undefined: x
        Error src/a.ts:3:5 [check] error TS2322: Type 'string' is not assignable
        "#);
    }

    #[test]
    fn only_files_of_the_tree_are_named() {
        for line in [
            "/etc/passwd:1: root",
            "../src/app.py:1: x",
            "src/../src/app.py:1: x",
            "/home/me/repo-2/src/app.py:1: x",
            "none.py:1: x",
            "src/app.py:0: x",
            "12:30:45 started",
            "http://src/app.py:80: x",
            "src/app.py:99999999999999999999: x",
        ] {
            assert_eq!(found(line), "", "{line}");
        }
    }

    #[test]
    fn there_are_at_most_eight_of_a_level_and_none_is_long() {
        let line = |index: u32| format!("src/app.py:{index}: error: {}", "x".repeat(1500));
        let lines: Vec<String> = (1..50).map(line).collect();
        let mut journal = Journal::start();
        journal.step(("check", 1), "make", (1, &lines.join("\n")), "no", "failed");
        for index in 0..20 {
            journal.push(Event::Warning {
                state: Some(state("fix")),
                message: format!("{index}{}", "é".repeat(5000)),
            });
        }
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
        let exists = |_: &str| true;
        let found = annotations(&journal.digest(), &Checkout { roots: &["/"], home: "", exists: &exists });
        assert!(found.iter().all(|annotation| annotation.message.chars().count() <= MAX_MESSAGE));
        assert_eq!(
            found.iter().filter(|annotation| annotation.level == Level::Warning).count(),
            MAX_PER_LEVEL
        );
        assert!(found.iter().filter(|annotation| annotation.level == Level::Error).count() <= MAX_PER_LEVEL);
    }
}
