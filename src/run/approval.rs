//! Asks a person on the terminal whether the run may go on, or takes what was answered elsewhere. Where there is no
//! terminal, nobody is waited for.

use std::cell::RefCell;
use std::time::Duration;

use super::ticking::{show, tick};
use super::world::World;
use crate::engine::question::{AnswerKind, GivenAnswer};
use crate::engine::request::{ApprovalRequest, Reply};
use crate::evaluate::observation::{Observation, Stop, Stream, TIMEOUT_CODE, Text};
use crate::process::asking_terminal;
use crate::process::clock::Clock;
use crate::process::signal::EndRequest;
use crate::report::Sinks;

/// How often is looked whether something was typed.
const LOOK: Duration = Duration::from_millis(50);

const CHOICE: &str = "approve (y), reject (n) or edit (e)? ";

const EDIT: &str = "write the text; a line with a dot alone ends it";

/// What a person said.
#[derive(Debug, PartialEq, Eq)]
enum ApprovalAnswer {
    Approved,
    Rejected(String),
    Edited(String),
}

/// Somebody who answers line by line.
#[derive(Default)]
struct Dialog {
    /// The lines of a text that is being written.
    edit: Option<Vec<String>>,
}

impl Dialog {
    /// Takes a line, and returns the answer when it is complete, or what to ask next.
    fn line(&mut self, line: &str) -> Result<ApprovalAnswer, Option<&'static str>> {
        let line = line.trim_end_matches(['\n', '\r']);
        if let Some(lines) = &mut self.edit {
            if line != "." {
                lines.push(line.to_owned());
                return Err(None);
            }
            let text = lines.join("\n");
            // Who opens the editor and leaves it empty has nothing to change.
            return Ok(if text.trim().is_empty() {
                ApprovalAnswer::Approved
            } else {
                ApprovalAnswer::Edited(text)
            });
        }
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        match word.trim_end_matches([':', ',']).to_lowercase().as_str() {
            "y" | "yes" | "approve" | "approved" => Ok(ApprovalAnswer::Approved),
            "n" | "no" | "reject" | "rejected" => Ok(ApprovalAnswer::Rejected(rest.trim().to_owned())),
            "e" | "edit" => {
                self.edit = Some(Vec::new());
                Err(Some(EDIT))
            }
            _ => Err(Some(CHOICE)),
        }
    }
}

/// Asks, and waits as long as the request says.
pub(super) async fn perform(request: &ApprovalRequest, world: &mut World) -> Observation {
    let clock = Clock::start();
    let late = |stop: Stop, reason: &str| Observation {
        stop: Some(stop),
        stderr: Text::whole(reason),
        duration: clock.elapsed(),
        ..Observation::exited(TIMEOUT_CODE, "")
    };
    let cancelled = || Observation { stop: Some(Stop::Cancelled), ..Observation::exited(130, "") };
    if world.cancel.is_asked() {
        return cancelled();
    }
    match &request.reply {
        None => {}
        Some(Reply::Given(approval)) => return given(approval),
        Some(Reply::Late) => return late(Stop::Timeout, "nobody answered in time"),
        Some(Reply::Nobody(why)) => return late(Stop::Timeout, why),
    }
    if !asking_terminal::is_there() {
        return late(Stop::Timeout, "headless");
    }
    // Through the sinks, so that the question has its place among the lines of the run.
    let sinks = RefCell::new(&mut world.sinks);
    show(&sinks, Stream::Stdout, &request.text);
    show(&sinks, Stream::Stdout, CHOICE);
    let asking = tokio::select! {
        answer = answer(&sinks) => answer,
        () = at_the_end(request) => {
            let stop = request.setting.end.map_or(Stop::Timeout, |(_, stop)| stop);
            return late(stop, "no answer");
        }
        _ = world.cancel.differs_from(EndRequest::None) => return cancelled(),
        never = tick(&sinks) => match never {},
    };
    let seen = match asking {
        None => return late(Stop::Timeout, "the terminal was closed"),
        Some(ApprovalAnswer::Approved) => Observation::exited(0, ""),
        Some(ApprovalAnswer::Edited(text)) => Observation::exited(0, text),
        Some(ApprovalAnswer::Rejected(reason)) => {
            Observation { stderr: Text::whole(reason), ..Observation::exited(1, "") }
        }
    };
    Observation { duration: clock.elapsed(), ..seen }
}

/// Returns what an answer that was given elsewhere comes to.
fn given(approval: &GivenAnswer) -> Observation {
    let text = approval.text.as_deref().unwrap_or_default();
    match approval.verdict {
        AnswerKind::Approve => Observation::exited(0, ""),
        AnswerKind::Answer => Observation::exited(0, text),
        // A run that was stopped comes to no question; it is a no wherever it would.
        AnswerKind::Reject | AnswerKind::Stop => {
            Observation { stderr: Text::whole(text), ..Observation::exited(1, "") }
        }
    }
}

async fn at_the_end(request: &ApprovalRequest) {
    match request.setting.end {
        Some((after, _)) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}

/// Waits for the answer; none when nobody can type any more.
async fn answer(sinks: &RefCell<&mut Sinks>) -> Option<ApprovalAnswer> {
    let mut dialog = Dialog::default();
    loop {
        match asking_terminal::typed() {
            // An empty line of the terminal has its end in it; without one, the terminal was
            // closed.
            Ok(Some(line)) if line.is_empty() => return None,
            Err(_) => return None,
            Ok(None) => tokio::time::sleep(LOOK).await,
            Ok(Some(line)) => match dialog.line(&line) {
                Ok(answer) => return Some(answer),
                Err(next) => next.into_iter().for_each(|next| show(sinks, Stream::Stdout, next)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_word_or_a_text() {
        let rejected = |reason: &str| Some(ApprovalAnswer::Rejected(reason.to_owned()));
        let edited = |text: &str| Some(ApprovalAnswer::Edited(text.to_owned()));
        for (typed, expected) in [
            ("y\n", Some(ApprovalAnswer::Approved)),
            ("  YES \r\n", Some(ApprovalAnswer::Approved)),
            ("what?\n\napprove\n", Some(ApprovalAnswer::Approved)),
            ("n\n", rejected("")),
            ("reject: not on a $(friday)\n", rejected("not on a $(friday)")),
            ("e\none\n\ny\n.\n", edited("one\n\ny")),
            ("edit\n.\n", Some(ApprovalAnswer::Approved)),
            ("e\ny\n", None),
            ("\n", None),
        ] {
            let mut dialog = Dialog::default();
            let found = typed.split_inclusive('\n').find_map(|line| dialog.line(line).ok());
            assert_eq!(found, expected, "{typed:?}");
        }
    }
}
