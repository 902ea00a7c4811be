//! Finds the line of an output that says why something failed. Tools begin with how they were called and end with
//! how many things failed; what went wrong stands in between.

use super::text::plain;

/// What a failed assertion says, in the words of the usual test runners and languages.
const ASSERTIONS: [&str; 8] = [
    "AssertionError",
    "AssertionFailedError",
    "ComparisonFailure",
    "assertion failed",
    "assertion `",
    "Assertion failed",
    "assert ",
    "panicked at",
];

/// What an error begins with, after the place that it is about.
const ERRORS: [&str; 10] = [
    "error:",
    "Error:",
    "ERROR:",
    "error[",
    "error TS",
    "Exception:",
    "fatal:",
    "FATAL:",
    "ERR!",
    "command not found",
];

/// How a test is named that failed.
const FAILED: [&str; 7] = ["FAILED", "FAIL ", "FAIL:", "--- FAIL", "not ok", "✗", "✕"];

/// What says only that something failed before.
const SUMMARIES: [&str; 9] = [
    "could not compile",
    "aborting due to",
    "test failed, to rerun",
    "target failed",
    "tests failed",
    "test(s) failed",
    "Command failed with exit code",
    "Process completed with exit code",
    "npm ERR! code",
];

/// The longest line that is looked through.
const LONGEST: usize = 2000;

/// Returns the line that says why: the last failed assertion, else the last error, else the last test that failed,
/// else the last line.
pub fn reason(output: &str) -> &str {
    let lines = || output.lines().rev().map(str::trim).filter(|line| !plain(head(line)).trim().is_empty());
    let first = |is_it: fn(&str) -> bool| lines().find(|line| is_it(head(line)));
    first(is_assertion)
        .or_else(|| first(is_error))
        .or_else(|| first(|line| has(line, &FAILED)))
        .or_else(|| lines().next())
        .unwrap_or("")
}

fn head(line: &str) -> &str {
    super::text::head(line, LONGEST)
}

fn has(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.contains(word))
}

fn is_assertion(line: &str) -> bool {
    // pytest shows the code around an assertion, with `>` at the line and `E` where it says what was wrong.
    let compares = line.starts_with("expected") || line.starts_with("Expected");
    !line.starts_with('>') && !line.starts_with('#') && (compares || has(line, &ASSERTIONS)) && !is_code(line)
}

fn is_error(line: &str) -> bool {
    has(line, &ERRORS) && !has(line, &SUMMARIES)
}

/// Tells whether a line is the source of an assertion, and not what it said.
fn is_code(line: &str) -> bool {
    line.starts_with("assert ") || line.starts_with("expect(") || line.ends_with(';') || line.ends_with('{')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_that_says_why_is_found() {
        for (output, expected) in [
            (
                "============ test session starts ============\nplatform linux\ncollected 2 items\n\ntest_a.py .F\n\n\
                 >       assert add(1, 2) == 4\nE       assert 3 == 4\nE        +  where 3 = add(1, 2)\n\n\
                 test_a.py:5: AssertionError\n==== short test summary info ====\nFAILED test_a.py::test_add - assert 3 == 4\n\
                 ==== 1 failed, 1 passed in 0.12s ====\n",
                "FAILED test_a.py::test_add - assert 3 == 4",
            ),
            (
                "running 1 test\n\nthread 'works' panicked at src/lib.rs:3:9:\nassertion `left == right` failed: the sum\n  \
                 left: 3\n right: 4\nnote: run with `RUST_BACKTRACE=1`\n\nfailures:\n    works\n\ntest result: FAILED. 0 passed; 1 failed\n\n\
                 error: test failed, to rerun pass `--lib`\n",
                "assertion `left == right` failed: the sum",
            ),
            (
                "   Compiling x v0.1.0\nerror[E0308]: mismatched types\n --> src/lib.rs:2:5\n  |\n2 |     a\n  |     ^ expected `i32`, found `&str`\n\
                 error: could not compile `x` (lib) due to 1 previous error\n",
                "error[E0308]: mismatched types",
            ),
            (
                "cc -c main.c\nmain.c:3:5: error: expected ';' before 'return'\nmake: *** [Makefile:2: main.o] Error 1\n",
                "main.c:3:5: error: expected ';' before 'return'",
            ),
            ("$ ./check\nlooking at a\nlooking at b\nb is too old\n", "b is too old"),
            (
                "=== RUN   TestAdd\n    add_test.go:8: got 3\n--- FAIL: TestAdd (0.00s)\nFAIL\nexit status 1\n",
                "--- FAIL: TestAdd (0.00s)",
            ),
            (
                "  ● adds\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 4\n    Received: 3\n\n\
                 Tests:       1 failed, 1 total\n",
                "Expected: 4",
            ),
            ("ok 1 - a\nnot ok 2 - b\n1..2\n", "not ok 2 - b"),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1\nNameError: name 'x' is not defined\n",
                "NameError: name 'x' is not defined",
            ),
            ("\u{1b}[31merror:\u{1b}[0m red\n", "\u{1b}[31merror:\u{1b}[0m red"),
            (
                "sh: 1: pytest: command not found\nmake: *** [test] Error 127\n",
                "sh: 1: pytest: command not found",
            ),
            (" \n\n", ""),
            ("", ""),
        ] {
            assert_eq!(reason(output), expected, "{output}");
        }
    }

    proptest! {
        #[test]
        fn the_reason_is_a_line_of_the_output(output in "[a-z :\nE>!]{0,200}|(error: [a-z]{0,9}\n|assert 1\n| \n){0,9}") {
            let found = reason(&output);
            prop_assert!(output.lines().any(|line| line.trim() == found) || found.is_empty());
            prop_assert_eq!(found.is_empty(), output.trim().is_empty());
        }
    }
}
