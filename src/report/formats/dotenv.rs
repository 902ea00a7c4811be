//! The outputs of a run as variables of later jobs of GitLab (`artifacts:reports:dotenv`): names without hyphens, one
//! line each, and nothing that GitLab would expand. A file that is too long or has too many variables fails there as a
//! whole, so that what does not fit is left out.

use std::fmt::Write as _;

use super::outputs::outputs;
use crate::base::text::{head, is_line_end};
use crate::report::digest::Digest;

/// GitLab takes less than 5 KB.
const MAX_BYTES: usize = 5000;

/// The longest value; only the words of a hand-off are ever that long.
const MAX_VALUE: usize = 1000;

/// Writes the variables that are not empty, as `LL_LOOP_NAME=value`.
pub fn render(digest: &Digest) -> String {
    let mut out = String::new();
    for (name, value) in outputs(digest) {
        // `$` and `%` would be read as the names of other variables, of which some are secrets.
        let kept: String = value
            .chars()
            .filter(|c| !matches!(c, '$' | '%'))
            .map(|c| if is_line_end(c) || c.is_control() { ' ' } else { c })
            .collect();
        let value = head(kept.trim(), MAX_VALUE);
        let mut line = String::new();
        let _ = writeln!(line, "LL_LOOP_{}={value}", name.replace('-', "_").to_uppercase());
        // GitLab takes 20 variables, and this one says nothing then.
        let is_said = !value.is_empty() && (name, value) != ("reused", "false");
        if is_said && out.len() + line.len() <= MAX_BYTES {
            out.push_str(&line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::event::{Event, Handoff, HandoffReason};
    use crate::machine::OnHandoff;
    use crate::report::testing::{Journal, failing, state};

    /// What GitLab reads, written from its `parse_dotenv_artifact_service.rb`.
    fn read(text: &str) -> Vec<(String, String)> {
        assert!(text.len() < 5 * 1024 && text.lines().count() <= 20);
        let pair = |line: &str| {
            let (key, value) = line.split_once('=').expect("every line is a variable");
            assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{key}");
            (key.to_owned(), value.trim().to_owned())
        };
        text.lines().map(pair).collect()
    }

    #[test]
    fn every_output_is_a_variable() {
        assert_snapshot!(render(&failing().digest()), @"
        LL_LOOP_OUTCOME=failure
        LL_LOOP_EXIT_CODE=1
        LL_LOOP_VERIFIED=false
        LL_LOOP_FINAL_STATE=failed
        LL_LOOP_ITERATIONS=3
        LL_LOOP_STEPS=5
        LL_LOOP_DURATION_MS=11820
        LL_LOOP_RUN_ID=fix-types-20251120T234847-1f2e
        LL_LOOP_HANDOFF=false
        ");
    }

    #[test]
    fn what_a_run_leaves_to_say_is_one_line_that_expands_to_nothing() {
        let mut journal = Journal::start();
        journal.enter("check", 1);
        let continuation = Some(format!("go on\r\nEVIL=1\u{2028}$CI_JOB_TOKEN %PATH%{}", "é".repeat(3000)));
        journal.push(Event::Handoff(Handoff {
            state: state("check"),
            reason: HandoffReason::Signal,
            message: "x".to_owned(),
            continuation,
            behavior: OnHandoff::Pause,
            awaiting: None,
        }));
        let mut digest = journal.digest();
        digest.places.report_dir = "r".repeat(4000);
        let read = read(&render(&digest));
        let value = |name: &str| read.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        assert!(value("LL_LOOP_CONTINUATION").unwrap().starts_with("go on  EVIL=1 CI_JOB_TOKEN PATHéé"));
        assert_eq!(value("EVIL"), None);
    }
}
