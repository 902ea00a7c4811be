//! What a command means, and whether it may be done: asks the server, and changes nothing.

use serde_json::{Value, json};

use super::desk::Desk;
use super::orders::{Order, WorkflowStart};
use super::refusal::{NotDone, SteeringRefusal};
use crate::base::name::StateName;
use crate::base::time::Timestamp;
use crate::ci::github::standing_runs::{StandingRun, StandingRuns};
use crate::context::job_server::JobServer;
use crate::engine::question::AnswerKind;
use crate::forge::github::answers::{self, FoundAnswer};
use crate::forge::github::api::ApiError;
use crate::forge::github::code_origin::{self, CodeOrigin};
use crate::forge::github::workflow_run::{self, WorkflowRun};
use crate::machine::Approvers;
use crate::people::asked::{AskedAtHead, meant};
use crate::people::command::{self, Verb, WrittenCommand};
use crate::people::ruling::{AnswerFacts, AnswerRefusal, QuestionFacts, are_enough, decide, may_steer};
use crate::people::run_wait::RunWait;
use crate::session::read::approver_facts::{BranchApprovers, on_branch};

/// The most comments of others that are asked about where several people have to approve.
// Each of them takes several requests to the server, and comments can be written in any number.
const MOST_OTHERS: usize = 10;

/// A question with what the server says of it.
struct FoundQuestion {
    asked: AskedAtHead,
    all: Vec<AskedAtHead>,
    run: WorkflowRun,
    /// Who started it, in any run of a workflow.
    starters: Vec<u64>,
    /// Who may answer, as each branch says it that has the loop file.
    named: Vec<Option<Approvers>>,
}

impl Desk<'_> {
    /// Finds out what a command means.
    pub(super) fn plan(&self, written: &WrittenCommand) -> Result<Order, NotDone> {
        let FoundAnswer { comment, permission, pull, .. } = self.found;
        if let Verb::Answer(kind) = written.verb {
            return if pull.is_of_fork {
                Err(SteeringRefusal::Fork.into())
            } else {
                self.answer(kind, written)
            };
        }
        may_steer(comment, permission.as_ref())?;
        if comment.is_edited {
            return Err(AnswerRefusal::Edited.into());
        }
        // Before the pull request is looked at: help starts nothing, so it is given on a closed one as well.
        if written.verb == Verb::Help {
            return Ok(Order::Help);
        }
        if !pull.is_open {
            return Err(AnswerRefusal::Closed.into());
        }
        if !written.is_about(&pull.head) {
            return Err(AnswerRefusal::OtherCommit.into());
        }
        match written.verb {
            Verb::Retry => self.retry(written),
            Verb::Stop => self.stop(written),
            // What follows starts a workflow that has the rights of this repository.
            _ if pull.is_of_fork => Err(SteeringRefusal::Fork.into()),
            Verb::Resume => self.resume(written),
            Verb::Deliver => self.deliver(written),
            Verb::Fix => Ok(self.fix(written)),
            // Both were dealt with above.
            Verb::Help | Verb::Answer(_) => Ok(Order::Help),
        }
    }

    /// Goes on with the run that asks, if the comment answers its question and enough people agree.
    fn answer(&self, kind: AnswerKind, written: &WrittenCommand) -> Result<Order, NotDone> {
        let question = self.question(written)?;
        self.counts(self.found, &question)?;
        let mut ids = vec![self.found.comment.id];
        let min = question.named.iter().flatten().map(|approvers| approvers.min).max().unwrap_or(1);
        // One who rejects is enough.
        if min > 1 && kind != AnswerKind::Reject {
            let mut authors = vec![self.found.comment.author.id];
            for other in self.agreeing(written, &question)? {
                authors.push(other.comment.author.id);
                ids.push(other.comment.id);
            }
            if !are_enough(&authors, min) {
                let (given, code) = (authors.len(), &question.asked.question.code);
                return Ok(Order::Tell(format!(
                    "{given} of {min} people: others have to say the same, `/ll-loop {} {code}`",
                    kind.word()
                )));
            }
        }
        // Only ids are handed on: the job reads each comment again, and believes no text of an input.
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        let number = question.asked.names.run;
        let inputs = json!({
            "resume-from": format!("run:{number}"), "answer": ids.join(" "), "sha": self.found.pull.head,
        });
        start(&question.run, number, inputs)
    }

    /// Finds the question that is answered, the run that asks it, and who may answer.
    fn question(&self, written: &WrittenCommand) -> Result<FoundQuestion, NotDone> {
        let JobServer { api, repository, .. } = self.server;
        let standing = self.standing()?;
        let all = standing.asked();
        let open = || all.iter().filter(|asked| asked.is_open);
        let asked = match written.code() {
            Some(code) => open().find(|asked| asked.question.code == code).ok_or_else(|| {
                let open = open().map(|asked| asked.question.code.clone()).collect();
                SteeringRefusal::NoSuchQuestion { code: code.to_owned(), open }
            })?,
            None => meant(written.name(), &all)?,
        }
        .clone();
        let file = format!(".loops/{}.yaml", asked.names.loop_name);
        let nobody_knows = |branch: &str| {
            let (file, branch) = (file.clone(), branch.to_owned());
            SteeringRefusal::NobodyKnows { file, branch }
        };
        let run = workflow_run::get(api, repository, asked.names.run)?;
        // What goes on has the rights of this repository, whatever code its workflow checks out.
        self.require_own_code(&run, asked.names.run)?;
        let mut named = Vec::new();
        for branch in &self.found.branches {
            let state = StateName::parse(&asked.question.state).map_err(|_| nobody_knows(branch))?;
            match on_branch(api, repository, &file, branch, &state)? {
                BranchApprovers::Named(approvers) => named.push(approvers),
                // A loop file elsewhere is known to the job that goes on, which asks again.
                BranchApprovers::NoFile => {}
                BranchApprovers::NotAlone | BranchApprovers::AsksNobody => {
                    return Err(nobody_knows(branch).into());
                }
            }
        }
        if named.is_empty() {
            named.push(None);
        }
        let mut starters = run.starters();
        if named.iter().flatten().any(|approvers| approvers.not_author) {
            // A run that another job goes on with is started by a program, and the first one was by somebody.
            let mut earlier = standing.whole_chain_of(&asked.names.instance)?;
            earlier.retain(|number| *number != asked.names.run);
            starters.add(answers::starters(api, repository, &earlier)?);
            if starters.is_by_request {
                starters.accounts.extend(self.askers);
            }
        }
        Ok(FoundQuestion { asked, all, run, starters: starters.accounts, named })
    }

    /// Tells whether a comment answers the question, by what each branch says.
    fn counts(&self, found: &FoundAnswer, question: &FoundQuestion) -> Result<(), NotDone> {
        let FoundAnswer { comment, permission, pull, .. } = found;
        let mark = &question.asked.question;
        let facts = QuestionFacts {
            code: &mark.code,
            // When it was asked, the run knows, which looks again; its status was set a little later.
            asked_at: Timestamp::from_millis(0),
            until: mark.until,
            sha: Some(&self.found.pull.head),
        };
        for approvers in &question.named {
            let known = AnswerFacts {
                comment: comment.clone(),
                permission: permission.clone(),
                pull: pull.clone(),
                starters: question.starters.clone(),
                approvers: approvers.clone(),
                membership: self.server.membership(comment, permission.as_ref(), approvers.as_ref())?,
                asked: question.all.clone(),
                // A question of a run that is over is not open.
                is_over: false,
            };
            decide(&known, facts)?;
        }
        Ok(())
    }

    /// Returns the comments of other people that say the same of the same question, and count.
    fn agreeing(
        &self,
        written: &WrittenCommand,
        question: &FoundQuestion,
    ) -> Result<Vec<FoundAnswer>, NotDone> {
        let JobServer { api, repository, .. } = self.server;
        let mut authors = vec![self.found.comment.author.id];
        let mut agreeing = Vec::new();
        // Others than its author can edit a comment.
        for comment in self.comments.iter().filter(|comment| !comment.was_edited()) {
            let Some(author) = comment.author().filter(|author| !authors.contains(author)) else { continue };
            let Ok(other) = command::read(comment.body()) else { continue };
            let is_same = other.code() == Some(&question.asked.question.code)
                && (other.verb, &other.text) == (written.verb, &written.text);
            if !is_same || authors.len() > MOST_OTHERS {
                continue;
            }
            let found = answers::find(api, repository, comment.id)?;
            match self.counts(&found, question) {
                Ok(()) => {
                    authors.push(author);
                    agreeing.push(found);
                }
                Err(NotDone::Refused(_)) => {}
                // Not known is not refused: the command may be tried again.
                Err(unavailable @ NotDone::Unavailable(_)) => return Err(unavailable),
            }
        }
        Ok(agreeing)
    }

    /// Runs again what failed: with the rights that it had, where that is possible.
    fn retry(&self, written: &WrittenCommand) -> Result<Order, NotDone> {
        let (number, _) = self.one(written, "failed", can_repeat)?;
        let JobServer { api, repository, .. } = self.server;
        let run = workflow_run::get(api, repository, number)?;
        // Jobs that run again check the commit that they checked before, so only a run of the head is repeated.
        let is_at_head = run.head_sha.as_ref().is_none_or(|sha| *sha == self.found.pull.head);
        // What a fork may, its own event says alone.
        let may_start = !self.found.pull.is_of_fork && self.is_of_own_code(&run)?;
        let workflow = run.workflow().filter(|_| may_start).map(str::to_owned);
        match (is_at_head, workflow) {
            (true, or_start) => Ok(Order::Repeat { run: number, or_start }),
            (false, Some(workflow)) => {
                Ok(Order::Start { workflow, inputs: json!({}), says: "it runs again" })
            }
            (false, None) => Err(SteeringRefusal::ForeignRun(number).into()),
        }
    }

    fn resume(&self, written: &WrittenCommand) -> Result<Order, NotDone> {
        let can_go_on = |run: &StandingRun| {
            matches!(run.state.as_str(), "failure" | "error") || matches!(run.wait, Some(RunWait::Resume(_)))
        };
        let (number, _) = self.one(written, "failed or was handed off", can_go_on)?;
        let JobServer { api, repository, .. } = self.server;
        let run = workflow_run::get(api, repository, number)?;
        self.require_own_code(&run, number)?;
        let inputs = json!({"resume-from": format!("run:{number}"), "sha": self.found.pull.head});
        start(&run, number, inputs)
    }

    fn stop(&self, written: &WrittenCommand) -> Result<Order, NotDone> {
        let (run, statuses) = self.one(written, "goes on or waits", |run| run.state == "pending")?;
        let asks = statuses.iter().any(|status| matches!(status.wait, Some(RunWait::Answer(_))));
        let ending = if asks && !self.found.pull.is_of_fork { self.ending(run)? } else { None };
        Ok(Order::Stop { run, statuses, ending })
    }

    /// Finds the workflow that ends a run which asks, in its journal: the comment that stops it is what it goes on with.
    fn ending(&self, number: u64) -> Result<Option<WorkflowStart>, NotDone> {
        let JobServer { api, repository, .. } = self.server;
        let run = workflow_run::get(api, repository, number)?;
        let is_own = self.is_of_own_code(&run)?;
        let inputs = json!({
            "resume-from": format!("run:{number}"),
            "answer": self.found.comment.id.to_string(),
            "sha": self.found.pull.head,
        });
        let workflow = run.workflow().filter(|_| is_own);
        Ok(workflow.map(|workflow| WorkflowStart { workflow: workflow.to_owned(), inputs }))
    }

    fn deliver(&self, written: &WrittenCommand) -> Result<Order, NotDone> {
        let is_over = |run: &StandingRun| run.state != "pending";
        let (run, statuses) = self.one(written, "is over", is_over)?;
        let [status] = &statuses[..] else { return Err(several(&statuses).into()) };
        Ok(Order::Deliver { run, instance: status.names.instance.clone() })
    }

    fn fix(&self, written: &WrittenCommand) -> Order {
        let inputs = written.name().map_or_else(|| json!({}), |name| json!({ "loop": name }));
        Order::Start { workflow: self.options.fix_workflow.clone(), inputs, says: "the fix runs" }
    }

    /// Tells whether a run ran the code of the repository itself, and no fork's.
    fn is_of_own_code(&self, run: &WorkflowRun) -> Result<bool, ApiError> {
        let JobServer { api, repository, .. } = self.server;
        Ok(code_origin::of_run(api, repository, None, run, Some(&self.found.pull))? == CodeOrigin::Own)
    }

    fn require_own_code(&self, run: &WorkflowRun, number: u64) -> Result<(), NotDone> {
        if self.is_of_own_code(run)? { Ok(()) } else { Err(SteeringRefusal::ForeignRun(number).into()) }
    }

    fn standing(&self) -> Result<StandingRuns, NotDone> {
        let JobServer { api, repository, .. } = self.server;
        Ok(StandingRuns::at(api, repository, &self.found.pull.head)?)
    }

    /// Finds the run of a workflow that is meant: the only one at the head, of all or of those with this name.
    fn one(
        &self,
        written: &WrittenCommand,
        what: &'static str,
        is_meant: impl Fn(&StandingRun) -> bool,
    ) -> Result<(u64, Vec<StandingRun>), NotDone> {
        let standing = self.standing()?;
        let name = written.name();
        let bears = |run: &&StandingRun| {
            let is_code =
                |name: &str| matches!(&run.wait, Some(RunWait::Answer(asked)) if asked.code == name);
            name.is_none_or(|name| run.names.bear(name) || is_code(name))
        };
        let found: Vec<StandingRun> =
            standing.last().filter(|run| is_meant(run)).filter(bears).cloned().collect();
        let Some(first) = found.first() else {
            return Err(SteeringRefusal::NoRun { what, name: name.map(str::to_owned) }.into());
        };
        let number = first.names.run;
        if found.iter().any(|run| run.names.run != number) {
            return Err(several(&found).into());
        }
        Ok((number, found))
    }
}

/// Tells whether jobs of the run of a workflow have failed: it has, or legs of it were handed off.
fn can_repeat(run: &StandingRun) -> bool {
    matches!(run.state.as_str(), "failure" | "error") || run.wait == Some(RunWait::Legs)
}

fn several(runs: &[StandingRun]) -> SteeringRefusal {
    SteeringRefusal::SeveralRuns(runs.iter().map(|run| run.names.instance.clone()).collect())
}

/// Starts the workflow of a run on the head of the pull request, to go on with the run.
fn start(run: &WorkflowRun, number: u64, inputs: Value) -> Result<Order, NotDone> {
    let workflow = run.workflow().ok_or(SteeringRefusal::NoWorkflow(number))?.to_owned();
    Ok(Order::Start { workflow, inputs, says: "the run goes on" })
}
