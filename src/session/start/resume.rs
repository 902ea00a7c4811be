//! Resumes a run: finds or fetches it, folds its journal, and claims its scope again.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answered::CommandLine;
use super::changes_on_resume::changes;
use super::comment_answers::AnsweredRun;
use super::day_spending::ResumedSpending;
use super::entering::{assemble, begin_files};
use super::incoming::Incoming;
use super::rewind_origin::{Made, Rewound};
use super::{answer_server, answered, comment_answers, day_spending, start_tree};
use crate::base::name::StateName;
use crate::base::sandbox::SandboxMode;
use crate::base::text::one_line;
use crate::base::time::human;
use crate::context::error::{Error, Kind};
use crate::context::interrupts::Interrupts;
use crate::context::options::{LlmOptions, ResumeOptions, Which};
use crate::context::{Session, binding, key_of_run};
use crate::definition::load;
use crate::definition::vendored::Copies;
use crate::engine::event::{LoopComplete, LoopResume, LoopStart, Overrides};
use crate::engine::outcome::Asker;
use crate::engine::past::Standing;
use crate::engine::question::{AnswerKind, GivenAnswer, OpenQuestion};
use crate::journal::files::RunFiles;
use crate::journal::known::KnownRun;
use crate::journal::reader::Whole;
use crate::journal::writer::Journal;
use crate::lock;
use crate::lock::LeasedRun;
use crate::machine::{BrokerUse, Budget, Machine, OnHandoff};
use crate::process::clock::Clock;
use crate::process::signal::Cancel;
use crate::report::Sinks;
use crate::report::advice::loop_of;
use crate::repository::worktree::Worktree;
use crate::run::area::Area;
use crate::run::other_verdicts::adjust;
use crate::run::projection::Projection;
use crate::run::replay::{Left, LeftLoop};
use crate::session::criteria;
use crate::session::end::killed::Telling;
use crate::session::end::ready::{Launch, Ready, Resumed, StartPosition, sinks};
use crate::session::end::{finish, killed};
use crate::session::prepare::consent::Decided;
use crate::session::prepare::prepared::{Prepared, reaching, refused};
use crate::session::prepare::{claim, consent, key_holder, left_behind, trust};
use crate::session::read::choose::{Chosen, choose, never_began, over};
use crate::session::read::refolded::{Folded, fold};
use crate::session::read::run_snapshots;
use crate::spending::day_reservation::DayReservation;

/// The result of resuming a run.
pub enum Resumption<'s> {
    /// It can start.
    Ready(Box<Ready<'s>>),
    /// It had ended, but its process died before it was reported; now it is.
    Finished(Box<LoopComplete>),
}

/// A run that was found, on this machine or in a bundle.
pub(crate) struct FoundRun {
    /// The directory with the `.loops` that it belongs to.
    pub(crate) root: PathBuf,
    pub(crate) files: RunFiles,
    pub(crate) began: LoopStart,
    pub(crate) incoming: Option<Incoming>,
}

/// Completes a loop with what the run began with and what the caller gives, and refuses one that may not run here.
pub(crate) fn settle(
    began: &LoopStart,
    options: &ResumeOptions,
    prepared: &mut Prepared,
    session: &Session<'_>,
) -> Result<(), Error> {
    // This machine may know fewer policies than the one on which the run began.
    prepared.bind_again(&began.policy)?;
    let mut context = began.context.clone();
    context.extend(options.context.iter().map(|(name, value)| (name.clone(), json!(value))));
    prepared.settle(&context, session)?;
    prepared.scope.clone_from(&began.overrides.scope);
    binding::check_options(&prepared.policy, &options.run, prepared.machine.notify.as_ref(), session)?;
    // Asked again: strangers may have set off this job, even where they did not set off the one that began the run.
    trust::check(options.run.allow_untrusted, session, prepared, &given(options, began))
}

/// Returns the values of the context that the caller gave, now or when the run began.
fn given(options: &ResumeOptions, began: &LoopStart) -> Map<String, Value> {
    let then = began.inputs.iter().filter_map(|name| Some((name.clone(), began.context.get(name)?.clone())));
    let now = options.context.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    then.chain(now).collect()
}

impl<'s> Session<'s> {
    /// Finds a run that was interrupted, handed off or killed, and claims its scope again. With `outside`, its loop
    /// file may lie outside of the repository.
    ///
    /// # Errors
    /// No such run exists, it cannot go on, or another run has claimed its scope.
    pub fn resume(
        &'s self,
        which: &Which,
        options: ResumeOptions,
        outside: bool,
    ) -> Result<Resumption<'s>, Error> {
        let found = match self.look_for(which, &options)? {
            Ok(found) => found,
            Err(run) => {
                let finished = finish::finish(&run, Some(&options.run), None, self)?;
                return Ok(Resumption::Finished(Box::new(finished.complete)));
            }
        };
        let bundled = found.incoming.as_ref().map(Incoming::bundled);
        let ready = self.take_up(found, which, options, outside);
        let ready = ready.map_err(|error| match bundled {
            Some(bundled) => error.of_bundled(bundled),
            None => error,
        })?;
        Ok(Resumption::Ready(Box::new(ready)))
    }

    /// Prepares the loop of a run that was found, and claims its scope.
    fn take_up(
        &'s self,
        found: FoundRun,
        which: &Which,
        options: ResumeOptions,
        outside: bool,
    ) -> Result<Ready<'s>, Error> {
        let located = load::find(&found.began.source.file, &found.root).map_err(|error| refused(&error))?;
        let located = located.taking(Copies::accepted_if(options.accept_changes));
        let mut prepared = self.at(&found.root).prepare(reaching(located, outside))?;
        settle(&found.began, &options, &mut prepared, self)?;
        if let (Some(incoming), Which::From { name, source, .. }) = (&found.incoming, which) {
            incoming.check(&prepared, source, name.as_deref(), options.accept_changes, self)?;
        }
        // By its directory and not by an option: where the run works is part of what it left.
        let worktree = if found.files.worktree().is_dir() {
            let worktree = Worktree::plan(&prepared.located.root, &found.files, self)?;
            prepared.work_in(worktree.root().to_owned());
            Some(worktree)
        } else {
            None
        };
        let mut options = ResumeOptions { run: options.run.settled(), ..options };
        if let Some(artifact) = found.incoming.as_ref().and_then(|incoming| incoming.artifact.as_deref()) {
            options.run.key = key_of_run::continuing(&options.run, found.files.stem(), artifact, self);
        }
        let going = UnclaimedRun { session: self, options, prepared, worktree, rewound: None };
        going.ready(found)
    }

    /// Finds the run. If it ended and only has to be finished, finishes it.
    fn look_for(
        &self,
        which: &Which,
        options: &ResumeOptions,
    ) -> Result<Result<FoundRun, Box<KnownRun>>, Error> {
        match which {
            Which::From { source, name, repository } => {
                let (name, repository) = (name.as_deref(), repository.as_deref());
                let incoming = Incoming::get(source, name, repository, &options.run, self)?;
                let Incoming { root, files, began, .. } = &incoming;
                let (root, files, began) = (root.clone(), files.clone(), began.clone());
                Ok(Ok(FoundRun { root, files, began, incoming: Some(incoming) }))
            }
            Which::Here(name) => match choose(name, self)? {
                Chosen::Left(root, run) => {
                    // It goes on with other options, perhaps to another place. If it cannot, there is what was.
                    killed::report(&run, None, Telling::Files, self)?;
                    let KnownRun { files, ends, .. } = *run;
                    let began = ends.start.map(|(_, began)| began);
                    let began = began.ok_or_else(|| never_began(files.instance(), files.stem()))?;
                    Ok(Ok(FoundRun { root, files, began, incoming: None }))
                }
                Chosen::Unfinished(run) => Ok(Err(run)),
            },
        }
    }
}

/// A run that was found, with its loop, and whose scope is not claimed yet.
pub(crate) struct UnclaimedRun<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) options: ResumeOptions,
    pub(crate) prepared: Prepared,
    pub(crate) worktree: Option<Worktree>,
    /// What it has of another run, if it is rewound from one: then none of its files are there yet.
    pub(crate) rewound: Option<Rewound>,
}

impl<'s> UnclaimedRun<'s> {
    /// Claims its scope, and opens its files.
    pub(crate) fn ready(self, found: FoundRun) -> Result<Ready<'s>, Error> {
        let interrupts = Interrupts::listen(&self.session.stop_by)?;
        let launch = interrupts.block_on(self.launch(found, interrupts.cancel()))?;
        Ok(Ready { interrupts, launch })
    }

    async fn launch(mut self, found: FoundRun, mut cancel: Cancel) -> Result<Launch<'s>, Error> {
        let FoundRun { files, began, incoming, .. } = found;
        let session = self.session;
        let is_archived = files.is_archived();
        let clock = Clock::start();
        run_snapshots::check(&self.options.run, &self.prepared.located.root, session)?;
        let mut context = began.context;
        context.extend(self.options.context.iter().map(|(name, value)| (name.clone(), json!(value))));
        let territory = claim::territory(&self.prepared, &context, session, &session.redactor)?;
        let policy = binding::records(&self.prepared.policy);
        let wanted =
            claim::wanted(&files, &self.prepared.machine.name, &territory, policy, session, clock.now());
        // Asked before the claim is taken, which sweeps away the claims of dead runs.
        let unstarted = left_behind::unstarted(files.directory());
        // From here on, other processes see the run as running, and cannot resume it.
        let claim =
            // Under the names that its files will have: an archived run is moved back only once its scope is claimed.
            claim::take(wanted, self.options.run.queue, &files.taken_back(), &mut cancel, session).await?;
        let home = self.worktree.as_ref().map_or(self.prepared.located.root.as_path(), Worktree::home);
        let run = LeasedRun { id: files.instance(), home, unstarted: &unstarted };
        let lock = lock::of_run(&self.options.run, run, &territory, &claim, &mut cancel, session).await?;
        let files = if is_archived { taken_back(&files)? } else { files };
        let (mut decided, mut not_carried) = (None, Vec::new());
        if let Some(incoming) = incoming {
            not_carried = incoming.not_carried();
            let definition = self.prepared.definition();
            let accept = self.options.accept_changes;
            decided = incoming.settle(&definition, session, accept, |files| self.rehearse(files))?;
            if decided.is_none() {
                // The run is here already, with its tree.
                not_carried.clear();
            }
        }
        let (rewound, worktree) = (self.rewound.take(), self.worktree.take());
        let of_another = rewound.as_ref().zip(worktree.as_ref());
        let made = match of_another {
            Some((rewound, worktree)) => Some(rewound.make(&files, clock.now(), worktree)?),
            None => None,
        };
        let projection = Projection::new(&self.prepared.located.root, files.instance());
        let area = start_tree::area(&territory, &self.options.run, session);
        let begun = async {
            let mut opened = self.open(&files, of_another, decided, &projection, &clock)?;
            opened.resumed.how.changes.not_carried.clone_from(&not_carried);
            adjust(&mut self.prepared.machine, &opened.resumed.start.event);
            criteria::claim(&projection, &self.prepared.machine, &context, session)?;
            self.look_at_tree(&mut opened.resumed, &area, &files, worktree.is_some(), &cancel).await?;
            self.go_on(opened, &files)
        };
        let begun = begun.await.inspect_err(|_| {
            if is_archived {
                // Nothing was done, so it stays what it was; otherwise the next command moves it.
                let _best_effort = files.archive();
            }
        });
        let GoingRun { resumed, sinks, decided, journal, reserved } = begun?;
        if made.is_none() {
            say(files.instance(), &resumed.how, session);
        }
        let Self { session, options, prepared, .. } = self;
        // It comes from a run that has some.
        let snapshots = if made.is_some() {
            options.run.snapshots.unwrap_or(true)
        } else {
            let root = prepared.located.root.as_path();
            run_snapshots::are_kept_again(&options.run, decided.llm, root, &files, session)
        };
        Made::keep(made, session);
        Ok(Launch {
            session,
            options: options.run,
            prepared,
            position: StartPosition::Left(Box::new(resumed)),
            files,
            journal,
            sinks,
            clock,
            agents: decided.agents,
            sandbox: decided.sandbox,
            territory,
            area,
            claim,
            lock,
            worktree,
            snapshots,
            // What its first part has found may have changed since.
            reuse: None,
            reserved,
        })
    }

    /// Looks whether the tree is the one that the run was left with, and refuses answers about another one.
    async fn look_at_tree(
        &self,
        resumed: &mut Resumed,
        area: &Area,
        files: &RunFiles,
        is_apart: bool,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let now = || start_tree::now(&self.prepared, area, files, is_apart, cancel, self.session);
        if let Some(ended) = resumed.past.end_tree() {
            // A tree that cannot be seen any more may be another one.
            resumed.how.tree_changed = now().await.is_none_or(|found| !found.holds_same_files(ended));
        }
        if resumed.answers.is_empty() || resumed.cancelled_by.is_some() {
            return Ok(());
        }
        let found = now().await;
        let sha = found.as_ref().map(|found| resumed.start.commit_shown(&found.commit));
        let tree = found.as_ref().map(|found| &found.tree);
        answered::check_place(resumed.past.run().question(), tree, sha)
    }

    /// Has a part of the day promised to the run, and opens its journal. Where that fails, the promise is given back.
    fn go_on(&self, opened: OpenedRun, files: &RunFiles) -> Result<GoingRun, Error> {
        let session = self.session;
        let OpenedRun { mut resumed, sinks, whole, decided } = opened;
        // The last that can refuse the run: what is promised here counts, whatever becomes of this process.
        let run = ResumedSpending { files, resumed: &resumed, decided: &decided };
        let reserved = day_spending::of_resumed(&self.prepared, &run, session)?;
        if let Some(reserved) = &reserved {
            resumed.start.budget.cost_usd = Some(reserved.budget());
        }
        let journal = begin_files(files, &self.options.run, session)
            .and_then(|()| Journal::go_on(files, session.redactor.clone(), whole));
        match journal {
            Ok(journal) => Ok(GoingRun { resumed, sinks, decided, journal, reserved }),
            Err(error) => {
                files.release();
                if let Some(reserved) = reserved {
                    reserved.give_back(session);
                }
                Err(claim::cannot_save(&error))
            }
        }
    }

    /// Folds the journal of a run that is still in its bundle, and checks that it can go on. Writes nothing.
    fn rehearse(&mut self, files: &RunFiles) -> Result<Decided, Error> {
        let accept = self.options.accept_changes;
        let folded = fold(files, &mut self.prepared, accept, &mut Sinks::default())?;
        self.continued(files, None, folded.left, None).map(|continued| continued.decided)
    }

    /// Folds the journal and checks that the run can go on, before it writes anything.
    fn open(
        &mut self,
        files: &RunFiles,
        of_another: Option<(&Rewound, &Worktree)>,
        decided: Option<Decided>,
        projection: &Projection,
        clock: &Clock,
    ) -> Result<OpenedRun, Error> {
        let mut sinks = sinks(&self.prepared, files, &self.options.run, projection, self.session);
        let accept = self.options.accept_changes;
        let Folded { whole, left, last, elapsed } = fold(files, &mut self.prepared, accept, &mut sinks)?;
        let Continued { level, left, how, answers, event, decided } =
            self.continued(files, of_another, left, decided)?;
        let taken = level.past.elapsed();
        let start = assemble(event, level.at, taken, files, &self.options.run, &decided, self.session);
        let rested = last.map(|last| clock.now().since(last)).unwrap_or_default();
        let cancelled_by =
            cancelled_by(level.past.run().question(), &answers, files.instance(), self.session);
        let resumed = Resumed { start, past: level.past, how, answers, cancelled_by, rested, elapsed, left };
        Ok(OpenedRun { resumed, sinks, whole, decided })
    }

    /// Works out how a run whose journal was folded goes on, or why it cannot.
    fn continued(
        &mut self,
        files: &RunFiles,
        of_another: Option<(&Rewound, &Worktree)>,
        mut left: Left,
        decided: Option<Decided>,
    ) -> Result<Continued, Error> {
        let level = left.take_outermost().ok_or_else(|| never_began(files.instance(), files.stem()))?;
        let stands = if of_another.is_some() { level.rewound() } else { level.reopened() };
        let mut how = standing(files.instance(), loop_of(level.past.start()), stands)?;
        // Looked at now, because a sub-loop that cannot go on would be found only after the journal says that the run does.
        for inner in left.iter() {
            if let Standing::Lost(state) = inner.standing() {
                return Err(lost(&state));
            }
        }
        let mut event = level.past.start().clone();
        // What bound later parts of it is not in its first event.
        self.prepared.bind_again(&event.policy)?;
        let in_ci = self.options.run.audience.is_ci();
        let now = Clock::start().now();
        if !self.options.comments.ids.is_empty() {
            // Read once, although a bundle is folded twice.
            let comments = std::mem::take(&mut self.options.comments);
            let root = self.prepared.located.root.as_path();
            let question = level.past.run().question();
            let of = AnsweredRun { question, root, file: &event.source.file, instance: files.instance() };
            let read = comment_answers::read(&comments, of, self.session)?;
            self.options.answers.extend(read);
        }
        let here = CommandLine::of(&self.options.run.audience, files, self.session);
        let answers = answered::given(level.past.run().question(), &self.options.answers, now, &here)?;
        let asked = with_overrides(&self.options.run.llm, &event.overrides);
        let host = consent::host_of(&asked, in_ci, self.session)?;
        key_holder::withhold(
            &asked,
            &self.prepared.machine,
            &self.prepared.policy,
            host,
            in_ci,
            self.session,
        )?;
        how.changes = changes(&self.options, files, self.session, &self.prepared, &event)?;
        // Hosts keep conversations on their machine, by the directory in which they were led.
        how.keeps_sessions = how.changes.place.is_none();
        if let Some((rewound, worktree)) = of_another {
            rewound.check(level.past.run(), &self.prepared.machine)?;
            how.changes.captured.clone_from(&rewound.captured);
            // A conversation goes on where it was left, and not in front of what was said last; and not in this directory.
            how.keeps_sessions = false;
            self.session.talk.note(&rewound.sentence(files, worktree));
        }
        let decided = match decided {
            // A run from a bundle was rehearsed: it was decided then, and its warnings were given.
            Some(decided) => decided,
            None => consent::decide(&asked, &mut self.prepared, in_ci, self.session)?,
        };
        let env = self.session.env;
        self.prepared.check_models(decided.llm, &event.overrides, &event.context, env)?;
        how.changes.llm = Some(decided.llm).filter(|llm| *llm != event.llm);
        event.change(&how);
        // After `change`, which takes over the timeout of this command line.
        in_time(&self.prepared.machine, &event, level.past.elapsed())?;
        Ok(Continued { level, left, how, answers, event, decided })
    }
}

/// Tells what has ended the question of a run before it was answered, if something has.
fn cancelled_by(
    question: Option<&OpenQuestion>,
    answers: &[GivenAnswer],
    instance: &str,
    session: &Session<'_>,
) -> Option<Asker> {
    let is_stopped = answers.iter().any(|answer| answer.verdict == AnswerKind::Stop)
        // Its process died before it could end.
        || question.is_some_and(OpenQuestion::is_stopped);
    if is_stopped {
        return Some(Asker::StoppedQuestion);
    }
    // The server is asked only where no answer decides already: it takes several requests.
    let is_closed = answers.is_empty() && answer_server::has_ended(question, instance, session);
    is_closed.then_some(Asker::ClosedPull)
}

/// A run that can go on, with its opened journal.
struct OpenedRun {
    resumed: Resumed,
    sinks: Sinks,
    whole: Whole,
    decided: Decided,
}

/// A run that goes on, with all that it needs for that.
struct GoingRun {
    resumed: Resumed,
    sinks: Sinks,
    decided: Decided,
    journal: Journal,
    reserved: Option<DayReservation>,
}

/// How a run goes on.
struct Continued {
    level: LeftLoop,
    left: Left,
    how: Box<LoopResume>,
    answers: Vec<GivenAnswer>,
    event: LoopStart,
    decided: Decided,
}

/// Moves the files of a run that had ended back from the history.
fn taken_back(files: &RunFiles) -> Result<RunFiles, Error> {
    files.take_back().map_err(|error| {
        let what = format!("the files of the run {} cannot be taken back from the history", files.instance());
        Error::failed(what, &error).of_kind(Kind::Refused)
    })
}

/// Completes the options for models with those that the run began with.
fn with_overrides(options: &LlmOptions, overrides: &Overrides) -> LlmOptions {
    let Budget { cost_usd, tokens, calls, allows_unpriced } = options.budget;
    LlmOptions {
        budget: Budget {
            cost_usd: cost_usd.or(overrides.max_cost),
            tokens: tokens.or(overrides.max_tokens),
            calls: calls.or(overrides.max_llm_calls),
            allows_unpriced,
        },
        on_handoff: options.on_handoff.or_else(|| OnHandoff::by_word(overrides.on_handoff.as_deref()?)),
        // What kept its agents in, and the key from them, does so in every part of a run.
        broker: options.broker.or_else(|| BrokerUse::by_word(overrides.broker.as_deref()?)),
        sandbox: options.sandbox.or_else(|| SandboxMode::by_word(overrides.sandbox.as_deref()?)),
        ..options.clone()
    }
}

fn standing(instance: &str, name: &str, standing: Standing) -> Result<Box<LoopResume>, Error> {
    match standing {
        Standing::Open(how) => Ok(how),
        Standing::Over(end) => Err(over(instance, name, &end)),
        Standing::Lost(state) => Err(lost(&state)),
    }
}

/// Refuses a run whose timeout has passed, which would end at once.
fn in_time(machine: &Machine, start: &LoopStart, elapsed: Duration) -> Result<(), Error> {
    match start.overrides.timeout_ms.map(Duration::from_millis).or(machine.limits.timeout) {
        Some(timeout) if elapsed >= timeout => {
            let message = format!(
                "the timeout of the loop ({}) is used up: the run has taken {}",
                human(timeout),
                human(elapsed)
            );
            let help = "give it more with `--timeout DURATION`, which counts from the start of the run";
            Err(Error::refused(message).with_hint(help))
        }
        Some(_) | None => Ok(()),
    }
}

fn say(instance: &str, how: &LoopResume, session: &Session<'_>) {
    let LoopResume { from_state, iteration, step, reason, continuation, .. } = how;
    let why = reason.words();
    session.talk.note(&format!(
        "resuming {instance}, which {why}, in {from_state} (iteration {iteration}, step {step})"
    ));
    if let Some(continuation) = continuation {
        session.talk.note(&plain_lines(continuation));
    }
}

/// Returns a text that an action printed as indented lines without terminal control sequences.
fn plain_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {}", one_line(line, 2000))).collect();
    lines.join("\n")
}

fn lost(state: &StateName) -> Error {
    Error::refused(format!("the run is in the state `{state}`, which the loop no longer has"))
        .with_hint("add the state to the loop again, or start a new run")
}
