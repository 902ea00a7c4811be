//! Looks whether what a run builds on is known: each target has a record with a status. Where the record is missing or
//! stale, an agent is asked to find out, and the record is looked at again: what the agent says of itself does not count.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::agent;
use super::world::World;
use crate::base::composed::{Composed, ONE, shown_beginning};
use crate::base::text::one_line;
use crate::engine::request::{LearningRequest, PromptRequest};
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Observation, Stop, Text};
use crate::files::read;
use crate::process::clock::Clock;

/// Where the records are, below the directory of the run.
const RECORDS: &str = ".ll/learning-tests";

/// A record larger than this is ignored.
const LARGEST: u64 = 1024 * 1024;

/// A target is shown with at most so many characters.
const SHOWN: usize = 200;

/// What is known of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetStatus {
    Proven,
    Refuted,
    /// There is no record, or one that says something else.
    Unknown,
}

/// Looks at each target, and asks an agent where that helps.
pub(super) async fn perform(request: &LearningRequest, world: &mut World) -> (Observation, Usage) {
    let clock = Clock::start();
    let (mut spent, mut dearest) = (Usage::default(), Usage::default());
    let mut told = String::new();
    let blocked = |told: String, reason: String, duration| Observation {
        stderr: Text::whole(reason),
        duration,
        ..Observation::exited(1, told)
    };
    for target in &request.targets {
        let shown = one_line(target, SHOWN);
        let Some(record) = record(&world.root, target) else {
            let reason = format!("`{shown}` has no letter or digit, so it can have no record");
            return (blocked(told, reason, clock.elapsed()), spent);
        };
        let mut tries = 0;
        loop {
            match status(&record) {
                TargetStatus::Proven => {
                    let _ = writeln!(told, "{shown}: proven");
                    break;
                }
                TargetStatus::Refuted => {
                    let _ = writeln!(told, "{shown}: refuted");
                    return (blocked(told, format!("`{shown}` is refuted"), clock.elapsed()), spent);
                }
                TargetStatus::Unknown => {}
            }
            // Asked after the record was looked at: what is known needs no agent.
            if let Some(why) = hindrance(request, tries, world) {
                let _ = writeln!(told, "{shown}: unknown");
                let reason = format!("`{shown}` is not known: {why}");
                return (blocked(told, reason, clock.elapsed()), spent);
            }
            tries += 1;
            let budget = match request.left(&spent, &dearest) {
                Ok(budget) => budget,
                Err(why) => {
                    let seen = Observation { stop: Some(Stop::Budget), ..Observation::not_started(why) };
                    return (seen, spent);
                }
            };
            world.lets_an_agent_work();
            let (seen, usage) = agent::perform(&question(request, &shown, budget), world).await;
            spent.add(&usage);
            dearest.raise_to(&usage);
            if seen.stop.is_some() {
                // Whatever ended the call ends the rest, too.
                return (seen, spent);
            }
        }
    }
    let seen = Observation { duration: clock.elapsed(), ..Observation::exited(0, told) };
    (seen, spent)
}

/// Returns why no agent is asked about a target, if none is.
fn hindrance(request: &LearningRequest, tries: u32, world: &World) -> Option<&'static str> {
    let is_there = world.agents.host.is_some() || world.agents.recording.is_some();
    if !request.may_ask {
        Some("no agent may be asked here")
    } else if !is_there {
        Some("there is no agent on PATH")
    } else if tries >= request.tries {
        Some("its record is still missing or stale")
    } else {
        None
    }
}

fn question(request: &LearningRequest, target: &str, budget: crate::machine::Budget) -> PromptRequest {
    let text = format!("/ll:explore-api {}", shown_beginning(target, ONE));
    PromptRequest {
        composed: Composed::own(&text),
        text,
        agent: None,
        tools: Vec::new(),
        sandbox: None,
        model: None,
        fallback_model: None,
        answer: None,
        session: None,
        role: None,
        heeds_project: request.heeds_project,
        setting: request.setting.clone(),
        budget,
    }
}

/// Returns where the record of a target is; nothing if its name has no letter or digit.
fn record(root: &Path, target: &str) -> Option<PathBuf> {
    // A name of hyphens alone would make the same file for several targets.
    let slug = slug(target);
    slug.contains(char::is_alphanumeric).then(|| root.join(RECORDS).join(format!("{slug}.md")))
}

/// Makes the name of a file out of that of a target.
fn slug(target: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || c.is_whitespace() || matches!(c, '_' | '-');
    let kept: String = target.trim().to_lowercase().chars().filter(kept).collect();
    kept.split_whitespace().collect::<Vec<_>>().join("-")
}

fn status(record: &Path) -> TargetStatus {
    let Ok(text) = read::text(record, LARGEST) else { return TargetStatus::Unknown };
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return TargetStatus::Unknown;
    }
    let matter = lines.take_while(|line| line.trim_end() != "---");
    // Of a key that is given twice, YAML readers mostly keep the last.
    let said = matter.filter_map(|line| line.strip_prefix("status:")).last().unwrap_or("");
    // A comment may stand behind the value.
    let said = said.split(" #").next().unwrap_or("").trim().trim_matches(['"', '\'']);
    match said.to_lowercase().as_str() {
        "proven" => TargetStatus::Proven,
        "refuted" => TargetStatus::Refuted,
        _ => TargetStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_record_stays_in_its_directory() {
        for (target, expected) in [
            ("Some API", "some-api"),
            (" Stripe: v2/Charges_x-1 ", "stripe-v2charges_x-1"),
            ("../../etc/passwd", "etcpasswd"),
            ("$(touch pwned)", "touch-pwned"),
            ("Grün\nund  blau", "grün-und-blau"),
            ("../..", ""),
            ("\u{0}", ""),
        ] {
            assert_eq!(slug(target), expected, "{target}");
        }
        assert_eq!(record(Path::new("r"), "- _"), None);
        assert_eq!(record(Path::new("r"), "A b"), Some(PathBuf::from("r/.ll/learning-tests/a-b.md")));
    }

    #[test]
    fn only_the_frontmatter_of_a_record_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.md");
        assert_eq!(status(&path), TargetStatus::Unknown);
        assert_eq!(status(directory.path()), TargetStatus::Unknown);
        for (text, expected) in [
            ("---\nstatus: proven\n---\n", TargetStatus::Proven),
            ("---\r\na: b\r\nstatus: \"Refuted\" # why\r\n---\r\n", TargetStatus::Refuted),
            ("---\nstatus: stale\n---\nstatus: proven\n", TargetStatus::Unknown),
            ("status: proven\n", TargetStatus::Unknown),
            ("---\nold_status: proven\n  status: proven\n---\n", TargetStatus::Unknown),
            ("", TargetStatus::Unknown),
        ] {
            fs_err::write(&path, text).unwrap();
            assert_eq!(status(&path), expected, "{text}");
        }
    }
}
