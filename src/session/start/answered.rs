//! Whether an answer is one to the question that a run waits with: to this question, about this tree, in time.

use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::ci::is_ci;
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::environment::PARENT;
use crate::context::error::Error;
use crate::context::options::AnswerOptions;
use crate::engine::question::{AnswerKind, AnswerWay, Awaiting, GivenAnswer, OpenQuestion};
use crate::forge::github::workflow_event::short;
use crate::journal::files::RunFiles;
use crate::machine::Approvers;
use crate::session::prepare::claim::place;

/// The command line that an answer comes from.
pub(crate) struct CommandLine {
    /// Whether a CI system or an action of a run wrote it, as far as its environment says.
    is_of_a_job: bool,
    /// The machine, and the directory with the run.
    place: String,
}

impl CommandLine {
    /// Describes the one of this process.
    pub(crate) fn of(audience: &Audience, files: &RunFiles, session: &Session<'_>) -> Self {
        let is_of_a_job =
            audience.is_ci() || is_ci(&session.env.lookup()) || session.env.get(PARENT).is_some();
        Self { is_of_a_job, place: place(files.loops()) }
    }

    /// Tells whether it is that of somebody at a machine, who answers there. In a job it is made of inputs, which do not say who gave
    /// them. Where a job asked, what runs in it can leave out of the environment that it does.
    fn is_of_its_user(&self, awaiting: &Awaiting) -> bool {
        !self.is_of_a_job && awaiting.asked_in.as_ref() != Some(&self.place)
    }
}

/// Makes answers of what people said, or says why they answer nothing.
pub(crate) fn given(
    question: Option<&OpenQuestion>,
    options: &[AnswerOptions],
    now: Timestamp,
    here: &CommandLine,
) -> Result<Vec<GivenAnswer>, Error> {
    if options.is_empty() {
        return Ok(Vec::new());
    }
    let Some(OpenQuestion { awaiting, .. }) = question else {
        let help = "`ll-loop list --awaiting` lists the runs that do";
        return Err(Error::refused("the run does not wait for an answer").with_hint(help));
    };
    options.iter().map(|option| answer(option, awaiting, now, here)).collect()
}

fn answer(
    option: &AnswerOptions,
    awaiting: &Awaiting,
    now: Timestamp,
    here: &CommandLine,
) -> Result<GivenAnswer, Error> {
    let AnswerOptions { who, id, comment, verdict, text, code, by } = option.clone();
    if let Some(code) = code.filter(|code| *code != awaiting.code) {
        let code = one_line(&code, 40);
        let message = format!("`{code}` is not the question that the run waits with");
        let help = format!("that one is `{}`: {}", awaiting.code, awaiting.shown());
        return Err(Error::refused(message).with_hint(help));
    }
    // A question may be stopped at any time: that decides nothing.
    if verdict != AnswerKind::Stop && awaiting.until <= now {
        let message = format!("the question was open until {}, and counts as not answered", awaiting.until);
        let help = "resume the run without an answer: it goes on by its route for `timeout`";
        return Err(Error::refused(message).with_hint(help));
    }
    let is_checked = match by {
        AnswerWay::Comment => true,
        AnswerWay::CommandLine => here.is_of_its_user(awaiting),
        // Whoever approved a job was not asked the question of the run.
        AnswerWay::Environment => false,
    };
    if awaiting.approvers.as_ref().is_some_and(Approvers::names_somebody) && !is_checked {
        let message = "the loop names who may answer, and nobody checks who does so in this job";
        let help = "answer with a comment, where the server names the author";
        return Err(Error::refused(message).with_hint(help));
    }
    if verdict == AnswerKind::Answer && text.as_deref().is_none_or(|text| text.trim().is_empty()) {
        let help = "say `approve` to go on without one";
        return Err(Error::refused("the answer has no text").with_hint(help));
    }
    let (digest, sha) = (Some(awaiting.digest), awaiting.sha.clone());
    Ok(GivenAnswer { who, id, comment, at: now, sha, verdict, text, digest, by, environment: None })
}

/// Refuses answers where the tree is not the one that was asked about.
pub(crate) fn check_place(
    question: Option<&OpenQuestion>,
    tree: Option<&ObjectId>,
    sha: Option<&ObjectId>,
) -> Result<(), Error> {
    let Some(OpenQuestion { awaiting, .. }) = question else { return Ok(()) };
    if awaiting.is_about(tree, sha) {
        return Ok(());
    }
    let named = |sha: Option<&ObjectId>| sha.map_or("no commit", |sha| short(sha.as_str())).to_owned();
    let (then, now) = (named(awaiting.sha.as_ref()), named(sha));
    let message = if then == now {
        "the working tree is not the one that the question is about".to_owned()
    } else {
        format!("the question is about {then}, and {now} is checked out")
    };
    let help = "resume the run without an answer: it asks again, about what is there now";
    Err(Error::refused(message).with_hint(help))
}
