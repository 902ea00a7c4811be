//! What a recorded call is known by: its words without what differs from one run to the next. The words of the author
//! stay as they are, but for the directories of the run; in what others printed, times, absolute paths, addresses and
//! numbers of processes are left out.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::world::World;
use crate::base::composed::{Composed, ComposedPart, is_cut};
use crate::base::text::{plain, tail};
use crate::broker::Wording;

/// A printed text up to this length counts as a whole.
const WHOLE: usize = 8 * 1024;

/// Of a longer one, or of one whose beginning was left out, only its end counts: where it was cut depends on how long
/// its times and paths were.
const END: usize = 1024;

/// What stands in front of what a judge is shown.
const SHOWN_TO_JUDGE: &str = "<action_output>\n";

/// Says of a judge's text that its beginning was left out.
const CUT_FOR_JUDGE: &str = "(the last ";

/// Knows the directories of a run, and makes the words of calls independent of them.
#[derive(Debug)]
pub(super) struct Normal {
    /// Texts and what stands for them, the longest first.
    known: Vec<(String, &'static str)>,
}

impl Normal {
    /// Knows the directories of this run.
    pub(super) fn of(world: &World) -> Self {
        let scratch = world.files.scratch();
        let paths = [(scratch.as_path(), "<run>"), (world.root.as_path(), "<root>")];
        let real = |path: &std::path::Path| fs_err::canonicalize(path).ok();
        let both = paths.into_iter().flat_map(|(path, name)| {
            [Some(path.to_owned()), real(path)].into_iter().flatten().map(move |path| (path, name))
        });
        // The name of the run stands in paths of its own files.
        let known = both.map(|(path, name)| (path.to_string_lossy().into_owned(), name));
        Self::new(known.chain([(world.files.instance().to_owned(), "<run>")]).collect())
    }

    fn new(mut known: Vec<(String, &'static str)>) -> Self {
        // A root such as `/` would take every slash away.
        known.retain(|(text, _)| text.len() > 1);
        // The longest first: the directory of a run lies in that of the loop.
        known.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { known }
    }

    /// Returns what a prompt is known by.
    pub(super) fn prompt(&self, composed: &Composed) -> String {
        let parts = composed.parts().iter().map(|part| match part {
            ComposedPart::Own(text) => self.own(text),
            ComposedPart::Printed { text, length } => self.printed(text, *length > text.len()),
        });
        parts.collect()
    }

    /// Returns what the question for a judge is known by.
    pub(super) fn question(&self, prompt: &str) -> String {
        match prompt.split_once(SHOWN_TO_JUDGE) {
            // What an action printed is shown to a judge behind this mark; the author's words are
            // in front of it.
            Some((own, shown)) => {
                let shown = self.printed(shown, own.contains(CUT_FOR_JUDGE));
                format!("{}{SHOWN_TO_JUDGE}{shown}", self.own(own))
            }
            None => self.own(prompt),
        }
    }

    fn own(&self, text: &str) -> String {
        let known = self.known.iter();
        known.fold(text.to_owned(), |text, (known, name)| text.replace(known.as_str(), name))
    }

    fn printed(&self, text: &str, is_end: bool) -> String {
        // Colours and control characters differ between terminals.
        let normal = normal(&self.own(&plain(text)));
        if is_end || is_cut(text) || normal.len() > WHOLE { tail(&normal, END).to_owned() } else { normal }
    }
}

impl Wording for Normal {
    fn normal(&self, text: &str) -> String {
        self.printed(text, false)
    }
}

/// What differs from one run to the next, in this order: the first that fits counts.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    const MONTH: &str = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
    const CLOCK: &str = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?";
    const ZONE: &str = r"(?:\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?";
    let alternatives = [
        // How much of a text was left out.
        r"(?P<note>\[only the last [^\]\n]* are shown\]\n?)".to_owned(),
        // Addresses, and ids that are made by chance.
        r"(?P<address>\b0x[0-9a-fA-F]+\b)".to_owned(),
        r"(?P<id>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)".to_owned(),
        // Times and dates.
        format!(
            r"(?P<time>\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?{ZONE})?|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+)?(?:\d{{1,2}}[ /]{MONTH}[ /]\d{{4}}|{MONTH} +\d{{1,2}}\b,?)(?:[ :]+{CLOCK}{ZONE})?(?:\s\d{{4}}\b)?|\b{CLOCK}{ZONE}|\b1[5-9]\d{{8}}(?:\.\d+)?\b|\b1[5-9]\d{{11}}\b)"
        ),
        r#"(?P<attribute>\b(?:time|duration|timestamp)(?:_ms|_s)?"?\s?[=:]\s?"?)\d+(?:\.\d+)?(?:e-?\d+)?"#.to_owned(),
        // Durations.
        r"(?P<took>\b\d+(?:\.\d+)?(?:e-\d+)?(?:(?:ns|us|µs|μs|ms|s|m|h)\b|\s?(?:nanoseconds?|microseconds?|milliseconds?|msecs?|ms|secs?|seconds?|mins?|minutes?|hrs?|hours?)\b|\ss\b))".to_owned(),
        // Processes and ports.
        r"(?P<process>(?i:\b(?:[pt]id|ppid|process id)\b\W{0,3})|\bprocess |\bthread )\d+\b".to_owned(),
        r"(?P<number>==\d+==|\(\d+\) panicked)".to_owned(),
        r"(?P<killed>: line \d+: +)\d+( +(?:Killed|Aborted|Terminated|Segmentation))".to_owned(),
        r"(?P<server>\b(?:localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0):)\d+".to_owned(),
        // Absolute paths.
        r"(?P<before>^|[^\w./<>~-])(?P<path>(?:file://)?(?:<(?:root|run)>(?:/[\w.+@%~-]+)+|(?:/[\w.+@%~-]+){2,})/?)".to_owned(),
    ];
    Regex::new(&format!("(?m){}", alternatives.join("|")))
        .expect("it is a valid expression, as the tests use it")
});

/// What is as long as a time beside it leaves room for, and times in a row: `65.1s (0:01:05)`, `1m 5s`.
static LAYOUT: LazyLock<Regex> = LazyLock::new(|| {
    let layout =
        r"(?P<times><time>(?:[ \t(\[]+<time>[)\]]?)+)|(?P<rule>=+|-{3,}|_{3,}|\*{3,})|(?P<blanks>[ \t]{2,})";
    Regex::new(layout).expect("it is a valid expression, as the tests use it")
});

/// Leaves out of a text what differs from one run to the next.
fn normal(text: &str) -> String {
    let varied = VARYING.replace_all(text, |found: &Captures<'_>| {
        let of = |name: &str| found.name(name).map(|part| part.as_str());
        if of("note").is_some() {
            return String::new();
        }
        if let Some(path) = of("path") {
            return format!("{}{}", of("before").unwrap_or(""), short(path));
        }
        if let Some(number) = of("number") {
            return number.replace(|c: char| c.is_ascii_digit(), "");
        }
        if of("address").or_else(|| of("id")).is_some() {
            return "<id>".to_owned();
        }
        match of("attribute").or_else(|| of("process")).or_else(|| of("server")).or_else(|| of("killed")) {
            Some(before) => format!("{before}<n>"),
            None => "<time>".to_owned(),
        }
    });
    let laid_out = LAYOUT.replace_all(&varied, |found: &Captures<'_>| {
        // After times, since what separates them depends on their widths.
        let of = |name: &str| found.name(name).map(|part| part.as_str());
        match (of("times"), of("rule")) {
            (Some(_), _) => Cow::Borrowed("<time>"),
            (None, Some(rule)) => Cow::Owned(rule.chars().take(1).collect()),
            (None, None) => Cow::Borrowed(" "),
        }
    });
    laid_out.into_owned()
}

/// Returns a path without where it leads from; of a temporary directory, even its name is made by chance.
fn short(path: &str) -> String {
    let mut parts = path.trim_end_matches('/').rsplit('/');
    let name = parts.next().unwrap_or("");
    let above: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    let is_temporary = matches!(above.as_slice(), ["tmp"] | ["tmp", "var" | "private"] | ["T", ..]);
    if is_temporary { "/…/<tmp>".to_owned() } else { format!("/…/{name}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two runs of the same tests print this.
    const SAME: [(&str, &str); 22] = [
        ("== 1 failed, 3 passed in 0.12s ==", "= 1 failed, 3 passed in 65.31s (0:01:05) ="),
        ("===== 1 failed in 0.12s =====", "==== 1 failed in 10.12s ===="),
        ("E  at /abs/path/x.py:3", "E  at /home/me/other/x.py:3"),
        ("File \"/tmp/a/sub/x.py\", line 3", "File \"/srv/ci/x.py\", line 3"),
        ("<Thing object at 0x7f3a>", "<Thing object at 0x55deadbeef>"),
        ("pid 123", "pid 4567890"),
        ("PID=12", "PID=3"),
        ("==123== Invalid read", "==9876543== Invalid read"),
        (
            "thread 'works' (12345) panicked at src/lib.rs:3:5:",
            "thread 'works' (9) panicked at src/lib.rs:3:5:",
        ),
        ("x.sh: line 3:   123 Killed  ./a", "x.sh: line 3: 45678 Killed ./a"),
        ("2026-11-22T23:05:38.123Z INFO begins", "2027-01-02 01:02:03,4 INFO begins"),
        ("Sun Nov 22 23:05:38 UTC 2026", "Mon Nov  2 03:05:00 UTC 2027"),
        ("[22/Nov/2026:23:05:38 +0000]", "[01/Dec/2026:00:00:01 +0100]"),
        ("finished in 1m 5s", "finished in 59s"),
        ("Ran 3 tests in 0.001s", "Ran 3 tests in 1.002s"),
        ("Time:        1.234 s", "Time: 22.4 s"),
        ("ok (12ms)", "ok (3.5 seconds)"),
        ("<testcase name=\"a\" time=\"0.012\"/>", "<testcase name=\"a\" time=\"1.5e-05\"/>"),
        ("listening on http://127.0.0.1:34567/x", "listening on http://127.0.0.1:1234/x"),
        ("at 1795388738", "at 1800000000.25"),
        ("id 67e55044-10b1-426f-9247-bb680e5fe0c8", "id 00000000-0000-4000-8000-000000000000"),
        ("see /tmp/tmp.aXy12/out", "see /tmp/tmp.bbb/out"),
    ];

    #[test]
    fn what_differs_only_by_when_and_where_it_ran_is_the_same() {
        for (one, other) in SAME {
            assert_eq!(normal(one), normal(other), "{one} | {other}");
        }
    }

    #[test]
    fn what_differs_otherwise_stays_different() {
        for (one, other) in [
            ("1 failed in 0.12s", "2 failed in 0.12s"),
            ("x.py:3: AssertionError", "x.py:4: AssertionError"),
            ("at /abs/path/x.py:3", "at /abs/path/y.py:3"),
            ("assert 3 == 4", "assert 3 == 5"),
            ("score 70", "score 71"),
            ("FAILED test_a[1000]", "FAILED test_a[2000]"),
            ("(3) left", "(4) left"),
            ("src/a/b.rs", "src/c/b.rs"),
            ("version 1.2.3", "version 1.2.4"),
            ("commit 1f3a", "commit 2f3a"),
            ("expected 5 items", "expected 6 items"),
        ] {
            assert_ne!(normal(one), normal(other), "{one} | {other}");
        }
    }

    #[test]
    fn the_words_of_the_author_stay_but_for_the_directories_of_the_run() {
        let normal = Normal::new(vec![("/tmp/a/run-1".to_owned(), "<run>"), ("/tmp/a".to_owned(), "<root>")]);
        let mut composed = Composed::own("within 5s, look at /tmp/a/x and /tmp/a/run-1/y, not at /usr/lib: ");
        composed.push_printed("took 5s in /tmp/a");
        let expected = "within 5s, look at <root>/x and <run>/y, not at /usr/lib: took <time> in <root>";
        assert_eq!(normal.prompt(&composed), expected);
        let question = "within 5s?\n\nIts output is data:\n<action_output>\ntook 5s\n</action_output>";
        let expected = question.replace("took 5s", "took <time>");
        assert_eq!(normal.question(question), expected);
    }

    /// Where a text is cut depends on how long its times are.
    #[test]
    fn a_long_text_is_known_by_its_end() {
        let normal = Normal::new(Vec::new());
        let text = |time: &str| format!("test x in {time} ok\n").repeat(10_000) + "3 failed\n";
        let of = |text: &str| {
            let mut composed = Composed::default();
            composed.push_printed(text);
            // What was bounded before, too.
            composed.push_printed(&crate::base::composed::shown_end(text, 4000));
            normal.prompt(&composed)
        };
        assert_eq!(of(&text("0.1s")), of(&text("123.45s")));
        assert_ne!(of(&text("0.1s")), of(&text("0.1s").replace("3 failed", "4 failed")));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in r"\PC{0,60}|([0-9a-f:./x <>=s-]{0,12}|in 0\.1s|/tmp/a b|pid 3|Nov 2 ){0,6}") {
            let once = normal(&text);
            // `0x1s` is no address.
            let mut words = once.split(|sign: char| !sign.is_alphanumeric());
            prop_assert!(!words.any(|word| word == "0x1"), "{once}");
        }

        #[test]
        fn times_paths_and_numbers_of_processes_do_not_matter(
            times in prop::collection::vec((0_u32..100, 1_u32..1000), 2), pids in prop::collection::vec(1_u32..4_000_000, 2),
            roots in prop::collection::vec("/[a-z]{1,8}(/[a-z0-9]{1,8}){1,3}", 2), addresses in prop::collection::vec(any::<u64>(), 2),
        ) {
            let printed = |run: usize| {
                let ((seconds, part), pid, root, address) = (times[run], pids[run], &roots[run], addresses[run]);
                let head = format!("rootdir: {root}/main\npid {pid}\n<C object at {address:#x}>\n{root}/src/x.py:3: in f\n");
                let last = format!(" 1 failed in {seconds}.{part:03}s ");
                head + &format!("{last:=^80}\n")
            };
            prop_assert_eq!(normal(&printed(0)), normal(&printed(1)));
        }
    }
}
