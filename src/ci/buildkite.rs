//! Buildkite: lines that begin with `---`, `+++` or `~~~` are the headings of groups, which last until the next one.
//!
//! Headings are known at the beginning of a line only, where every line of ours has a sign of its own. Its annotations
//! come from a program of the agent, `buildkite-agent annotate`; ll-loop starts no programs of CI systems, so that they
//! are lines of the log here, and `summary.md` can be given to that program by the step.

use std::borrow::Cow;

use super::job::{Job, Variables};
use super::line_marks::not_at_start;
use super::plain::{Plain, one_clean_line};
use super::service::{CiService, ProviderRow};
use crate::base::lookup::Lookup;
use crate::base::time::Timestamp;
use crate::report::annotations::Annotation;
use crate::report::dialect::Dialect;

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["buildkite"],
    detect,
    make: |_, env| Box::new(Buildkite::new(env)),
    withheld: WITHHELD,
    tokens: TOKENS,
};

/// Credentials of the agent itself, and the socket by which a job changes its own environment.
const WITHHELD: &[&str] = &["BUILDKITE_AGENT_TOKEN", "BUILDKITE_AGENT_JOB_API_"];

/// The token by which `buildkite-agent` speaks for the job.
const TOKENS: &[&str] = &["BUILDKITE_AGENT_ACCESS_TOKEN"];

/// What the heading of a group begins with, and `^^^ +++`, which opens the one before it.
const HEADINGS: &[&str] = &["---", "+++", "~~~", "^^^"];

const VARIABLES: Variables = Variables {
    workspace: "BUILDKITE_BUILD_CHECKOUT_PATH",
    name: "BUILDKITE_STEP_KEY",
    run: "BUILDKITE_BUILD_NUMBER",
    // A job that is run again, and each of several that run side by side, is another job.
    attempt: "BUILDKITE_JOB_ID",
};

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    env("BUILDKITE").is_some().then_some("buildkite")
}

/// A job of Buildkite.
#[derive(Debug)]
struct Buildkite {
    job: Job,
}

impl Buildkite {
    /// Reads from the environment what the agent says about the job.
    fn new(env: Lookup<'_>) -> Self {
        Self { job: Job::read(env, &VARIABLES) }
    }
}

impl CiService for Buildkite {
    fn name(&self) -> &'static str {
        "buildkite"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Headings)
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn shows_colours(&self) -> bool {
        true
    }
}

/// The dialect of headings.
#[derive(Clone, Copy, Debug, Default)]
struct Headings;

impl Dialect for Headings {
    fn group_start(&mut self, title: &str, _at: Timestamp) -> String {
        format!("--- {title}")
    }

    fn group_end(&mut self, _at: Timestamp) -> Option<String> {
        None
    }

    fn between_groups(&self, line: String) -> String {
        // A closed heading, which ends the group before it and folds what follows.
        format!("~~~ {line}")
    }

    fn in_the_open(&self, line: String) -> String {
        // An open heading, so that a reader sees what follows without a click.
        format!("+++ {line}")
    }

    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        one_clean_line(text)
    }

    fn disarmed<'a>(&self, line: &'a str) -> Cow<'a, str> {
        not_at_start(Cow::Borrowed(line), HEADINGS)
    }

    /// The name of a file is the beginning of the line, and not ours.
    fn annotation(&self, annotation: &Annotation) -> String {
        self.disarmed(&Plain.annotation(annotation)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ci::testing::{TestLog, hostile, show};
    use crate::report::annotations::{AnnotationLevel, Location};

    /// What Buildkite finds in a log: the sign of each heading, written from its documentation, stricter where it does
    /// not say: blanks before a sign do not hide it, and none is needed behind it.
    fn found(log: &str) -> Vec<&str> {
        let lines = log.split(['\r', '\n']).map(str::trim_start);
        let sign = |line: &str| ["---", "+++", "~~~", "^^^"].into_iter().find(|sign| line.starts_with(sign));
        assert!(!log.contains(['\u{1b}', '\u{9b}']), "{log:?}");
        lines.filter_map(sign).collect()
    }

    #[track_caller]
    fn check(action: &str, lines: &[&str]) {
        let TestLog { log, steps } = show::<Headings>(action, lines);
        let mut expected = vec!["~~~"];
        expected.extend(["---", "~~~"].repeat(steps));
        expected.push("+++");
        assert_eq!(found(&log), expected, "{log}");
    }

    #[test]
    fn no_output_is_a_heading() {
        let vectors = [
            "--- forged",
            "+++ forged",
            "~~~ forged",
            "^^^ +++",
            "x\r--- forged",
            "x\r\n^^^ +++",
            "\u{1b}[0m+++ forged",
            "\u{1b}_bk;t=1\u{7}--- forged",
            "\u{1b}]1338;url=http://x;alt=y\u{7}",
            "\u{2028}--- forged",
            "  --- forged",
        ];
        check("make", &vectors);
        for vector in vectors {
            check(vector, &[vector]);
        }
        let location = Some(Location { file: "---".into(), line: Some(1), column: None });
        let annotation =
            Annotation { level: AnnotationLevel::Error, title: String::new(), message: "x".into(), location };
        assert_eq!(Headings.annotation(&annotation), "· ---:1: error: x");
    }

    const PIECES: &[&str] =
        &["--- ", "+++ ", "~~~ ", "^^^ +++", "---", "-", "+", "~", "^", "\u{1b}_bk;t=1\u{7}", "\u{1b}]1338;"];

    proptest! {
        #[test]
        fn buildkite_finds_exactly_our_headings(
            lines in proptest::collection::vec(hostile(PIECES), 0..12),
            action in hostile(PIECES),
        ) {
            check(&action, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
