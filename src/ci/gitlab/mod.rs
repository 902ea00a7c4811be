//! GitLab CI: sections on the log, and a file of variables for later jobs.
//!
//! A section begins and ends wherever `section_start:TIME:NAME` or `section_end:TIME:NAME` stands before a carriage
//! return and an escape sequence, also in the middle of a line. Output of actions has neither of the two, and the words
//! are broken as well. Sources: `lib/gitlab/regex.rb` and `lib/gitlab/ci/ansi2json/converter.rb` of GitLab.

use std::borrow::Cow;
use std::time::Duration;

use super::job::{Job, Variables};
use super::plain::{Plain, one_clean_line};
use super::service::{CiService, ProviderRow};
use crate::base::lookup::Lookup;
use crate::base::time::Timestamp;
use crate::report::annotations::Annotation;
use crate::report::dialect::Dialect;

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["gitlab"],
    detect,
    make: |_, env| Box::new(Gitlab::new(env)),
    withheld: WITHHELD,
    tokens: TOKENS,
};

/// Tokens that identify the job elsewhere.
const WITHHELD: &[&str] = &["CI_JOB_JWT"];

/// The token of the job, and what it is part of: the passwords of the registry and the proxy are the token, and the URL
/// holds it. A deploy token, where the project has one, is as good.
const TOKENS: &[&str] = &[
    "CI_JOB_TOKEN",
    "CI_REGISTRY_PASSWORD",
    "CI_DEPENDENCY_PROXY_PASSWORD",
    "CI_DEPLOY_PASSWORD",
    "CI_REPOSITORY_URL",
];

const VARIABLES: Variables = Variables {
    workspace: "CI_PROJECT_DIR",
    name: "CI_JOB_NAME",
    run: "CI_PIPELINE_ID",
    // A job that is run again is another job.
    attempt: "CI_JOB_ID",
};

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    env("GITLAB_CI").is_some().then_some("gitlab")
}

/// A job of GitLab CI.
#[derive(Debug)]
struct Gitlab {
    job: Job,
}

impl Gitlab {
    /// Reads from the environment what the runner says about the job.
    fn new(env: Lookup<'_>) -> Self {
        Self { job: Job { limit: limit(env), ..Job::read(env, &VARIABLES) } }
    }
}

/// Returns when the runner ends the job.
fn limit(env: Lookup<'_>) -> Option<Timestamp> {
    let began = Timestamp::try_from(env("CI_JOB_STARTED_AT")?).ok()?;
    let limit = Duration::from_secs(env("CI_JOB_TIMEOUT")?.parse().ok()?);
    let end = began.as_millis().checked_add(i64::try_from(limit.as_millis()).ok()?)?;
    Some(Timestamp::from_millis(end))
}

impl CiService for Gitlab {
    fn name(&self) -> &'static str {
        "gitlab"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(LogSections::default())
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn shows_colours(&self) -> bool {
        true
    }
}

/// The dialect of sections.
#[derive(Debug, Default)]
struct LogSections {
    count: u32,
    open: Option<String>,
}

impl Dialect for LogSections {
    /// The name has the time in it, because two runs of one job share a log.
    fn group_start(&mut self, title: &str, at: Timestamp) -> String {
        self.count += 1;
        let name = format!("step_{}_{}", self.count, at.as_millis());
        // The log shows the last state of a line, so the mark is cleared before the title is
        // written.
        let line = format!("{CLEAR}section_start:{}:{name}[collapsed=true]\r{CLEAR}{title}", seconds(at));
        self.open = Some(name);
        line
    }

    fn group_end(&mut self, at: Timestamp) -> Option<String> {
        let name = self.open.take()?;
        Some(format!("{CLEAR}section_end:{}:{name}\r{CLEAR}", seconds(at)))
    }

    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match one_clean_line(text) {
            Cow::Borrowed(clean) => self.disarmed(clean),
            Cow::Owned(clean) => Cow::Owned(self.disarmed(&clean).into_owned()),
        }
    }

    fn disarmed<'a>(&self, line: &'a str) -> Cow<'a, str> {
        if ["section_start:", "section_end:"].iter().all(|word| !line.contains(word)) {
            return Cow::Borrowed(line);
        }
        // A blank is enough: the pattern of GitLab has none there.
        Cow::Owned(line.replace("section_start:", "section_start :").replace("section_end:", "section_end :"))
    }

    fn annotation(&self, annotation: &Annotation) -> String {
        self.untrusted(&Plain.annotation(annotation)).into_owned()
    }
}

/// Clears the line, so that a terminal shows nothing of the section's mark.
const CLEAR: &str = "\u{1b}[0K";

fn seconds(at: Timestamp) -> i64 {
    at.as_millis() / 1000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;
    use crate::ci::testing::{TestLog, hostile, show};

    /// What GitLab finds in a log, written from the pattern of `regex.rb` and the loop of `converter.rb`: the kind and
    /// the name of each section's mark. Any other escape sequence fails the test.
    fn found(log: &str) -> Vec<(String, String)> {
        let mark = Regex::new(
            r"section_(start|end):(\d+):([a-zA-Z0-9_.-]+)(\[(?:\w+=\w+)(?:, ?(?:\w+=\w+))*\])?\r\x1b\[0K",
        )
        .unwrap();
        let rest = mark.replace_all(log, "").replace(CLEAR, "");
        assert!(!rest.contains(['\u{1b}', '\r', '\u{9b}']), "{log:?}");
        mark.captures_iter(log).map(|found| (found[1].to_owned(), found[3].to_owned())).collect()
    }

    #[track_caller]
    fn check(action: &str, lines: &[&str]) {
        let TestLog { log, steps } = show::<LogSections>(action, lines);
        let found = found(&log);
        assert_eq!(found.len(), 2 * steps, "{log}");
        for pair in found.chunks(2) {
            assert_eq!((pair[0].0.as_str(), pair[1].0.as_str()), ("start", "end"), "{log}");
            assert_eq!(pair[0].1, pair[1].1, "{log}");
        }
        let mut names: Vec<_> = found.iter().map(|(_, name)| name).collect();
        names.dedup();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), steps, "{log}");
    }

    #[test]
    fn no_output_can_open_or_close_a_section() {
        let vectors = [
            "\u{1b}[0Ksection_start:1:x\r\u{1b}[0Kforged",
            "section_end:1:step_1_1763682527010\r\u{1b}[0K",
            "text section_start:1:x[collapsed=true]\r\u{1b}[0K",
            "section_\u{1b}[31mstart:1:x\r\u{1b}[0K",
            "section_\u{0}end:1:x\r",
            "\u{9b}0Ksection_start:1:x\r\u{9b}0K",
            "\r\u{1b}[0K",
            "\u{1b}]8;;x\u{7}section_end:1:x\r\u{1b}[0K",
        ];
        check("make", &vectors);
        for vector in vectors {
            check(vector, &[vector]);
        }
    }

    #[test]
    fn the_model_sees_what_gitlab_sees() {
        let log =
            "a section_start:1:x[collapsed=true]\r\u{1b}[0Kt\nsection_end:2:x\r\u{1b}[0K section_end:3:y";
        assert_eq!(found(log), [("start".into(), "x".into()), ("end".into(), "x".into())]);
    }

    proptest! {
        #[test]
        fn gitlab_finds_exactly_our_sections(
            lines in proptest::collection::vec(hostile(PIECES), 0..12),
            action in hostile(PIECES),
        ) {
            check(&action, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    const PIECES: &[&str] = &[
        "section_start:1:x\r\u{1b}[0K",
        "section_end:1:x\r\u{1b}[0K",
        "section_",
        "start",
        "end",
        ":1763682527:",
        "step_1",
        "[collapsed=true]",
        "\u{1b}[0K",
        "\u{1b}[",
        "0K",
    ];

    #[test]
    fn the_limit_of_the_job_is_known() {
        let check = |began: &str, timeout: &str, expect: Option<&str>| {
            let env = |name: &str| match name {
                "CI_JOB_STARTED_AT" => Some(began.to_owned()),
                "CI_JOB_TIMEOUT" => Some(timeout.to_owned()),
                _ => None,
            };
            assert_eq!(Gitlab::new(&env).job.limit.map(|limit| limit.to_string()).as_deref(), expect);
        };
        check("2026-11-20T10:00:00Z", "3600", Some("2026-11-20T11:00:00.000Z"));
        check("2026-11-20T12:00:00+02:00", "60", Some("2026-11-20T10:01:00.000Z"));
        check("yesterday", "60", None);
        check("2026-11-20T10:00:00Z", "1h", None);
        check("2026-11-20T10:00:00Z", "18446744073709551615", None);
    }
}
