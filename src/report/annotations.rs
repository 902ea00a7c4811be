//! What is worth a mark on a line of code: the step that decided a failed run, the places in the tree that its output
//! names, and the states that come back night after night.

use super::digest::Digest;
use super::items::{Items, printed, why};
use super::nights;
use super::places::{NamedPlace, places};
use super::reading_place::Reader;
use super::step::Step;
use super::unbegun_run::{Mistake, Unbegun};
use crate::base::text::{head, one_line, plain};
use crate::engine::outcome::Outcome;

/// GitHub keeps ten errors and ten warnings per step (`docs/problem-matchers.md` of actions/toolkit); two of each are
/// left to other tools in the same step.
pub const MAX_PER_LEVEL: usize = 8;

/// The runner cuts longer messages (`ExecutionContext.cs` of actions/runner).
pub const MAX_MESSAGE: usize = 4096;

const MAX_TITLE: usize = 200;

/// How bad an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationLevel {
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
    pub level: AnnotationLevel,
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
        // A place outside of the checkout is nothing that a server could mark.
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
    // No item of a merge decides for the others.
    let step = digest.deciding_step().filter(|_| !digest.is_merge());
    let mut all: Vec<Annotation> = outcome(digest, step).into_iter().collect();
    if let Some(step) = step {
        all.extend(of_output(&step.output(), &step.state.to_string(), tree));
    }
    if digest.is_merge() {
        let items = Items::of(digest).unverified;
        all.extend(items.into_iter().flat_map(|item| of_item(item, tree)));
    }
    // After the places in the output: where a level is full, what comes last is left out.
    all.extend(digest.warnings().iter().map(|warning| Annotation {
        level: AnnotationLevel::Warning,
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
        Some((Outcome::Success, false)) => AnnotationLevel::Warning,
        Some((Outcome::Handoff, _)) => AnnotationLevel::Notice,
        Some(_) | None => AnnotationLevel::Error,
    };
    let state = step.map(|step| &step.state).or_else(|| digest.end().map(|end| &end.final_state));
    let mut text = digest.sentence();
    if let Some(step) = step {
        text = format!("{text}\n{}", last_lines(&step.output()));
    }
    Some(Annotation {
        level,
        title: one_line(&format!("{}: {}", digest.loop_name(), digest.outcome_word()), MAX_TITLE),
        message: message(&text),
        location: (!digest.file().is_empty()).then(|| at(digest, state.and_then(|state| digest.line(state)))),
    })
}

/// Returns a remark on each place that an item of a merge named, or on the item itself. One that is missing is named at
/// the end of the merge.
fn of_item(item: &Step, tree: &Checkout<'_>) -> Vec<Annotation> {
    let Some(result) = &item.result else { return Vec::new() };
    let printed = printed(item).unwrap_or_default();
    let places = of_output(&printed, item.state.as_str(), tree);
    if !places.is_empty() {
        return places;
    }
    let level = if result.exit_code == i32::from(Outcome::Handoff.exit_code(None)) {
        AnnotationLevel::Notice
    } else {
        AnnotationLevel::Error
    };
    let text = format!("{}\n{}", why(item), last_lines(&printed));
    vec![Annotation {
        level,
        title: one_line(item.state.as_str(), MAX_TITLE),
        message: message(&text),
        location: None,
    }]
}

/// Returns the last lines of what was printed.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    // Ten lines of 300 bytes fit into a message together with the sentence about the run.
    let last = lines[lines.len().saturating_sub(10)..].iter();
    last.map(|line| head(line, 300)).collect::<Vec<_>>().join("\n")
}

/// Returns a remark on each mistake that kept the run from beginning, or one on the loop file.
fn not_begun(unbegun: &Unbegun) -> Vec<Annotation> {
    let title = one_line(&format!("{}: {}", unbegun.loop_name, unbegun.hindrance.word()), MAX_TITLE);
    let remark = |text: &str, location| Annotation {
        level: AnnotationLevel::Error,
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
    let states = nights::of(digest).map_or_else(Vec::new, |history| history.recurring());
    let notice = |one: nights::Recurring| Annotation {
        level: AnnotationLevel::Notice,
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

/// Returns a remark on each place in the tree that a text names.
fn of_output(text: &str, title: &str, tree: &Checkout<'_>) -> Vec<Annotation> {
    let remark = |NamedPlace { file, line, column, said }: NamedPlace| {
        let said = if said.is_empty() { "named in the output" } else { said.as_str() };
        Annotation {
            level: level(said),
            title: one_line(title, MAX_TITLE),
            message: message(said),
            location: Some(Location { file, line, column }),
        }
    };
    places(text, |path| tree.find(path)).into_iter().map(remark).collect()
}

/// Returns how bad a message is by its own words; what says nothing stands in the output of a failed step.
fn level(said: &str) -> AnnotationLevel {
    let lower = said.to_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    if begins(&["warning", "warn"]) || lower.contains("[warning") {
        AnnotationLevel::Warning
    } else if begins(&["note", "info", "help", "hint"]) || lower.contains("[info") {
        AnnotationLevel::Notice
    } else {
        AnnotationLevel::Error
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

    /// What is said about places by an output, each as `place: message`.
    fn said(output: &str) -> String {
        found(output).lines().map(|line| line.replacen(" [check]", ":", 1) + "\n").collect()
    }

    #[test]
    fn a_traceback_of_python_is_marked_at_its_innermost_frame_in_the_tree() {
        let output = "\
Traceback (most recent call last):
  File \"/home/me/repo/src/app.py\", line 2, in top
    div()
  File \"src/app.py\", line 5, in div
    return loads(b)
           ^^^^^^^^
  File \"/usr/lib/python3.12/json/__init__.py\", line 346, in loads
    return _default_decoder.decode(s)
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"src/app.py\", line 9, in <module>
    top()
ValueError: bad value 77
  File \"src/app.py\", line 3
    def f(:
          ^
SyntaxError: invalid syntax
  + Exception Group Traceback (most recent call last):
  |   File \"src/app.py\", line 4, in g
  |     raise ExceptionGroup('two', [a, b])
  | ExceptionGroup: two (2 sub-exceptions)
Traceback (most recent call last):
  File \"/usr/lib/python3.12/runpy.py\", line 1, in run
KeyError: 'none of ours'
";
        assert_snapshot!(said(output), @"
        Error src/app.py:5: json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
        Error src/app.py:9: ValueError: bad value 77
        Error src/app.py:3: SyntaxError: invalid syntax
        Error src/app.py:4: ExceptionGroup: two (2 sub-exceptions)
        ");
    }

    #[test]
    fn a_panic_of_rust_is_marked_where_it_is_or_where_it_was_called() {
        let output = "\
thread 'tests::adds' panicked at src/main.rs:3:5:
assertion `left == right` failed
  left: 1
 right: 2
stack backtrace:
   0: rust_begin_unwind
             at /rustc/abc/library/std/src/panicking.rs:645:5
   1: demo::tests::adds
             at ./src/main.rs:8:9
thread 'main' (4711) panicked at /rustc/abc/library/core/src/option.rs:9:9:
called `Option::unwrap()` on a `None` value
stack backtrace:
   0: core::option::unwrap_failed
             at /rustc/abc/library/core/src/option.rs:9:9
   1: demo::main
             at ./src/main.rs:6:14
   2: demo::start
             at ./src/main.rs:1:1
thread 'main' panicked at 'index 3, of 2', src/main.rs:7:2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
thread 'main' panicked at /rustc/abc/library/core/src/option.rs:9:9:
nothing of ours
";
        assert_snapshot!(said(output), @"
        Error src/main.rs:3:5: assertion `left == right` failed
        Error src/main.rs:6:14: called `Option::unwrap()` on a `None` value
        Error src/main.rs:7:2: index 3, of 2
        ");
    }

    #[test]
    fn a_stack_of_node_is_marked_at_its_first_frame_in_the_tree() {
        let output = "\
file:///home/me/repo/web/a.js:2
  throw new Error('x')
  ^

Error: not a number 55
    at sum (node:internal/x:1:1)
    at check (/home/me/repo/node_modules/web/a.js:2:11)
    at sum (file:///home/me/repo/web/a.js:2:11)
    at Object.<anonymous> (web/a.js:3:1)
    at Module._compile (node:internal/modules/cjs/loader:1554:14)
TypeError: x is undefined
    at async src/a.ts:1:7
    at node:internal/main/run_main_module:36:49
AssertionError [ERR_ASSERTION]: expected

1 !== 2

    at new Foo (web/a.js:7:3) {
  generatedMessage: false
  \u{25cf} sums \u{203a} adds

    expect(received).toBe(expected)

      at Object.<anonymous> (src/a.ts:5:17)
RangeError: none of ours
    at node:internal/main/run_main_module:36:49
";
        assert_snapshot!(said(output), @"
        Error web/a.js:2:11: Error: not a number 55
        Error src/a.ts:1:7: TypeError: x is undefined
        Error web/a.js:7:3: AssertionError [ERR_ASSERTION]: expected
        Error src/a.ts:5:17: ● sums › adds
        ");
    }

    #[test]
    fn the_summary_of_pytest_is_marked_with_a_line_where_there_is_one() {
        let summary = "\
=========================== short test summary info ============================
FAILED tests/test_a.py::test_one - assert 1 == 2
FAILED tests/test_a.py::TestX::test_two[a b - c] - ZeroDivisionError: division by zero
ERROR tests/test_a.py::test_three - fixture 'x' not found
FAILED none.py::test_four - assert 0
FAILED ../src/app.py::test_five
========================= 3 failed, 1 error in 0.02s ==========================
";
        assert_snapshot!(said(summary), @"
        Error tests/test_a.py: test_one: assert 1 == 2
        Error tests/test_a.py: TestX.test_two[a b - c]: ZeroDivisionError: division by zero
        Error tests/test_a.py: test_three: fixture 'x' not found
        ");
        let long = "\
=================================== FAILURES ===================================
___________________________________ test_one ___________________________________

    def test_one():
>       assert 1 == 2
E       assert 1 == 2

tests/test_a.py:12: AssertionError
_____________________________ TestX.test_two[a b - c] _____________________________

    def test_two(self, x):
>       div()

tests/test_a.py:20: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
>       return 1 / 0
E       ZeroDivisionError: division by zero

/usr/lib/python3/site-packages/calc.py:3: ZeroDivisionError
";
        assert_snapshot!(said(&format!("{long}{summary}")), @"
        Error tests/test_a.py:12: AssertionError: assert 1 == 2
        Error tests/test_a.py:20: ZeroDivisionError: division by zero
        Error tests/test_a.py: test_three: fixture 'x' not found
        ");
        let short = "\
___________________________________ test_one ___________________________________
tests/test_a.py:12: in test_one
    top()
src/app.py:3: in top
    return 1 / 0
E   ZeroDivisionError: division by zero
";
        assert_snapshot!(said(short), @"Error src/app.py:3: ZeroDivisionError: division by zero");
        assert_snapshot!(said("/home/me/repo/tests/test_a.py:12: assert 1 == 2\nFAILED tests/test_a.py::test_one - assert 1 == 2\n"), @"Error tests/test_a.py:12: assert 1 == 2");
    }

    #[test]
    fn hostile_frames_name_nothing_outside_and_stay_text() {
        for output in [
            "  File \"/etc/passwd\", line 1, in x\nE: y",
            "  File \"../src/app.py\", line 1, in x\nE: y",
            "  File \"src/app.py\", line 0, in x\nE: y",
            "    at x (file:///etc/passwd:1:1)",
            "    at x (file:///home/me/repo/%2e%2e/src/app.py:1:1)",
            "    at x (file://evil.example/src/app.py:1:1)",
            "thread 'x' panicked at ../src/main.rs:1:1:\nx",
            "FAILED /etc/passwd.py::test_x - y",
        ] {
            assert_eq!(found(output), "", "{output}");
        }
        let hostile = "  File \"src/app.py\", line 4, in x\nValueError: x%0A::error file=a::b\u{1b}[31m\n";
        assert_eq!(said(hostile), "Error src/app.py:4: ValueError: x%0A::error file=a::b\n");
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
            found.iter().filter(|annotation| annotation.level == AnnotationLevel::Warning).count(),
            MAX_PER_LEVEL
        );
        assert!(
            found.iter().filter(|annotation| annotation.level == AnnotationLevel::Error).count()
                <= MAX_PER_LEVEL
        );
    }
}
