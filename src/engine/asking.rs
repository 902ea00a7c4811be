//! How a person is asked: at the terminal, by saving the run with its question, or not at all.

use std::time::Duration;

use serde_json::json;

use super::Engine;
use super::event::{ActionKind, Event, Handoff, HandoffReason};
use super::question::{ANSWERED_ANOTHER, AnswerKind, AskedAbout, Awaiting, OpenQuestion, People};
use super::request::{ApprovalRequest, Reply};
use super::waiting::{Decision, MissingEvidence, TurnEvidence, WorkRequest};
use crate::base::name::StateName;
use crate::base::sum::Sum;
use crate::base::template::RenderError;
use crate::base::text::head;
use crate::machine::{ApprovalAction, OnHandoff, Target};

/// How long a question stays open whose state does not say it.
const STAYS_OPEN: Duration = Duration::from_hours(7 * 24);

/// The longest question that is kept, in bytes.
const LONGEST_QUESTION: usize = 16 * 1024;

impl Engine<'_> {
    /// Asks a person: at the terminal, or by saving the run, or not at all.
    pub(super) fn ask_person(
        &self,
        approval: &ApprovalAction,
        state: &StateName,
        evidence: &TurnEvidence,
    ) -> Result<Decision, RenderError> {
        let question = self.run.question();
        let is_answered = question.is_some_and(|question| question.answer.is_some());
        match &self.start.people {
            People::Here if !is_answered => return self.asked(approval, state, None),
            People::Nobody(why) => return self.asked(approval, state, Some(Reply::Nobody(why.clone()))),
            People::Here | People::Later => {}
        }
        let Some(Target::Step(id)) = self.machine.find(state) else {
            return self.asked(approval, state, None);
        };
        // What the question is about has to be seen before it is asked, or an answer could be given
        // for another tree.
        let Some(about) = &evidence.about else {
            return Ok(Decision::Lacks(id, MissingEvidence::AskedAbout));
        };
        let asking = self.awaiting(approval, state, about)?;
        // An answer to another question, or about another tree, does not answer this one.
        match question.filter(|question| question.awaiting.asks_as(&asking)) {
            Some(OpenQuestion { answer: Some(answer), .. }) => {
                self.asked(approval, state, Some(Reply::Given(answer.clone())))
            }
            Some(OpenQuestion { awaiting, .. }) if awaiting.until <= about.at => {
                self.asked(approval, state, Some(Reply::Late))
            }
            Some(OpenQuestion { awaiting, .. }) => {
                Ok(Decision::Happens(handed_off(state, awaiting.clone(), "")))
            }
            // Whoever has answered elsewhere may not sit here, so it is asked as it was: by saving the run.
            None => {
                let why = if asking.asked_anew { format!("{ANSWERED_ANOTHER}; ") } else { String::new() };
                Ok(Decision::Happens(handed_off(state, asking, &why)))
            }
        }
    }

    fn asked(
        &self,
        approval: &ApprovalAction,
        state: &StateName,
        reply: Option<Reply>,
    ) -> Result<Decision, RenderError> {
        let text = self.render(&approval.text)?;
        let event = self.announced(state, ActionKind::HumanApproval, &text, None);
        let setting = self.setting(&approval.setting)?;
        let request = ApprovalRequest { text, setting, reply };
        Ok(Decision::Begins(event, WorkRequest::Approval(Box::new(request))))
    }

    /// Makes the question of a state. It is the same one as long as it is about the same.
    fn awaiting(
        &self,
        approval: &ApprovalAction,
        state: &StateName,
        about: &AskedAbout,
    ) -> Result<Awaiting, RenderError> {
        // It stands in events, statuses and comments, so it is bounded once, here.
        let question = head(&self.render(&approval.text)?, LONGEST_QUESTION).to_owned();
        let AskedAbout { at, tree, .. } = about;
        let sha = about.sha.as_ref().map(|sha| self.start.commit_shown(sha));
        let asked =
            // Whatever an approval depends on. A change of any of it makes another question.
            json!(["ll-loop question", 1, question, self.start.key, state, self.run.step(), sha, tree]);
        let digest = Sum::of(asked.to_string().as_bytes());
        Ok(Awaiting {
            question,
            options: AnswerKind::OFFERED.to_vec(),
            asked_at: *at,
            state: state.clone(),
            tree: tree.clone(),
            sha: sha.cloned(),
            digest,
            // Short enough to type. Whoever takes an answer compares the whole digest.
            code: digest.to_string()[..8].to_owned(),
            approvers: approval.approvers.clone(),
            until: at.after(approval.stays_open.unwrap_or(STAYS_OPEN)),
            asked_in: self.start.job.clone(),
            asked_anew: self.run.question().is_some_and(|question| question.answer.is_some()),
        })
    }
}

/// Saves a run with its question, and says first why it is asked, where that is not plain.
fn handed_off(state: &StateName, awaiting: Awaiting, why: &str) -> Event {
    Event::Handoff(Handoff {
        state: state.clone(),
        reason: HandoffReason::Question,
        message: format!("{why}waiting for a person: {}", awaiting.shown()),
        continuation: None,
        behavior: OnHandoff::Pause,
        awaiting: Some(Box::new(awaiting)),
    })
}
