//! Travis CI: folds on the log.
//!
//! A fold begins and ends where a line begins with `travis_fold:start:NAME` or `travis_fold:end:NAME`, and a carriage
//! return and an escape sequence hide the mark. Every line of ours begins with something else, and output of actions has
//! neither of the two; the words are broken as well.

use std::borrow::Cow;

use super::job::{Job, Variables};
use super::plain::{Plain, one_clean_line};
use super::service::{CiService, ProviderRow};
use crate::base::lookup::Lookup;
use crate::base::time::Timestamp;
use crate::report::annotations::Annotation;
use crate::report::dialect::Dialect;

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["travis"],
    detect,
    make: |_, env| Box::new(Travis { job: Job::read(env, &VARIABLES) }),
    withheld: WITHHELD,
    tokens: &[],
};

/// Credentials with which the worker stores artifacts and caches.
const WITHHELD: &[&str] = &["ARTIFACTS_KEY", "ARTIFACTS_SECRET", "CASHER_", "TRAVIS_JWT"];

const VARIABLES: Variables = Variables {
    workspace: "TRAVIS_BUILD_DIR",
    name: "TRAVIS_JOB_NAME",
    run: "TRAVIS_BUILD_NUMBER",
    // Each entry of the matrix is a job of its own, and so is one that is run again.
    attempt: "TRAVIS_JOB_ID",
};

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    env("TRAVIS").is_some_and(|value| value.eq_ignore_ascii_case("true")).then_some("travis")
}

/// A job of Travis CI.
#[derive(Debug)]
struct Travis {
    job: Job,
}

impl CiService for Travis {
    fn name(&self) -> &'static str {
        "travis"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Folds::default())
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn shows_colours(&self) -> bool {
        true
    }
}

/// The dialect of folds.
#[derive(Debug, Default)]
struct Folds {
    count: u32,
    open: Option<String>,
}

/// Hides what stands before it on the line.
const HIDDEN: &str = "\r\u{1b}[0K";

impl Dialect for Folds {
    /// The name has the time in it, because two runs of one job share a log.
    fn group_start(&mut self, title: &str, at: Timestamp) -> String {
        self.count += 1;
        let name = format!("step-{}-{}", self.count, at.as_millis());
        let line = format!("travis_fold:start:{name}{HIDDEN}{title}");
        self.open = Some(name);
        line
    }

    fn group_end(&mut self, _at: Timestamp) -> Option<String> {
        self.open.take().map(|name| format!("travis_fold:end:{name}{HIDDEN}"))
    }

    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match one_clean_line(text) {
            Cow::Borrowed(clean) => self.disarmed(clean),
            Cow::Owned(clean) => Cow::Owned(self.disarmed(&clean).into_owned()),
        }
    }

    fn disarmed<'a>(&self, line: &'a str) -> Cow<'a, str> {
        if !line.contains("travis_") {
            return Cow::Borrowed(line);
        }
        Cow::Owned(line.replace("travis_fold:", "travis_fold :").replace("travis_time:", "travis_time :"))
    }

    fn annotation(&self, annotation: &Annotation) -> String {
        self.untrusted(&Plain.annotation(annotation)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;
    use crate::ci::testing::{TestLog, hostile, show};

    const MARKS: &[&str] = &["travis_fold:", "travis_time:", "start:", "end:", "step-1", "\r", "\u{1b}[0K"];

    #[track_caller]
    fn check(action: &str, lines: &[&str]) {
        let TestLog { log, steps } = show::<Folds>(action, lines);
        let mark = Regex::new(r"travis_(fold|time):(start|end):([^\r\n]*)\r\x1b\[0K").unwrap();
        let found: Vec<_> = mark.captures_iter(&log).map(|of| (of[2].to_owned(), of[3].to_owned())).collect();
        assert_eq!(found.len(), 2 * steps, "{log}");
        for pair in found.chunks(2) {
            assert_eq!((pair[0].0.as_str(), pair[1].0.as_str()), ("start", "end"), "{log}");
            assert_eq!(pair[0].1, pair[1].1, "{log}");
        }
        assert!(!mark.replace_all(&log, "").contains("travis_fold:"), "{log}");
    }

    #[test]
    fn no_output_is_a_fold() {
        check(
            "make",
            &["travis_fold:start:x\r\u{1b}[0Kx", "a travis_time:end:1:start=1\r", "travis_fold:end:step-1"],
        );
    }

    proptest! {
        #[test]
        fn travis_finds_exactly_our_folds(action in hostile(MARKS), line in hostile(MARKS)) {
            check(&action, &[&line]);
        }
    }
}
