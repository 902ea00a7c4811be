//! Begins a run: checks its inputs, claims its scope, and makes its files.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};

use super::entering::{assemble, open};
use super::{changed_since, day_spending, start_tree};
use crate::base::advised_command;
use crate::base::diagnostic::Severity;
use crate::base::territory::Territory;
use crate::base::text::plural;
use crate::ci::found_trace::trace_origin;
use crate::context::audience::Audience;
use crate::context::error::Error;
use crate::context::interrupts::Interrupts;
use crate::context::options::{BeginOptions, ReuseUse, RunOptions};
use crate::context::{Session, binding};
use crate::definition::load::DIRECTORY;
use crate::engine::changes::StartTree;
use crate::engine::event::{LoopStart, Overrides, SCHEMA};
use crate::engine::request::JudgingRequest;
use crate::engine::{Engine, Start};
use crate::journal::files::RunFiles;
use crate::lock;
use crate::lock::LeasedRun;
use crate::machine::most_calls;
use crate::process::clock::Clock;
use crate::process::signal::Cancel;
use crate::report::digest::{Digest, NotRun};
use crate::report::graph;
use crate::repository::worktree::{UnkeptWorktree, Worktree};
use crate::repository::{self};
use crate::reuse::input_patterns::InputPatterns;
use crate::reuse::key::KeyParts;
use crate::reuse::no_key::NoKey;
use crate::run::area::Area;
use crate::run::projection::Projection;
use crate::session::criteria;
use crate::session::end::kept_nights::EarlierNights;
use crate::session::end::publication::{Publication, ReportedEnd, Stage, publisher};
use crate::session::end::ready::{Launch, Ready, StartPosition, sinks};
use crate::session::end::{bundler, kept_nights};
use crate::session::prepare::consent::Decided;
use crate::session::prepare::prepared::Prepared;
use crate::session::prepare::reuse_decision::{self, BegunQuestion, ReusableRun, ReuseDecision};
use crate::session::prepare::reuse_key::{KeyQuestion, KeyedRun, no_key};
use crate::session::prepare::variables::resolve;
use crate::session::prepare::{check_quarantine, claim, consent, key_holder, left_behind, trust};
use crate::session::read::fetch::Local;
use crate::session::read::run_snapshots;

/// A loop with its input, variables and options.
pub struct BoundLoop<'s> {
    session: &'s Session<'s>,
    prepared: Prepared,
    options: BeginOptions,
    files: RunFiles,
    context: Map<String, Value>,
}

/// The result of beginning a run.
pub enum Begun<'s> {
    /// It can start.
    Ready(Box<Ready<'s>>),
    /// Nothing in its scope changed, so it need not run.
    Skipped(Box<SkippedRun<'s>>),
}

impl Prepared {
    /// Binds input, variables and options to the loop.
    ///
    /// # Errors
    /// A variable is missing, or unknown to the loop.
    pub fn bind<'s>(
        mut self,
        options: BeginOptions,
        session: &'s Session<'s>,
    ) -> Result<BoundLoop<'s>, Error> {
        let files =
            RunFiles::fresh(&self.located.root.join(DIRECTORY), &self.machine.name, Clock::start().now());
        self.scope.clone_from(&options.scope);
        let (llm, in_ci) = (&options.run.llm, options.run.audience.is_ci());
        let host = consent::host_of(llm, in_ci, session)?;
        // Before `resolve`: a variable that is made of the environment must not get the key of the service.
        key_holder::withhold(llm, &self.machine, &self.policy, host, in_ci, session)?;
        let context = resolve(&self, &options, &files, session)?;
        self.settle(&context, session)?;
        if let Some(limit) = options.max_iterations {
            let too_many =
                self.machine.steps().find(|(_, step)| step.repeat.is_some_and(|passes| passes > limit));
            if let Some((_, step)) = too_many {
                let passes = step.repeat.unwrap_or(limit);
                let message = format!(
                    "`passes: {passes}` of `{}` cannot be reached: `--max-iterations` allows {limit}",
                    step.name
                );
                return Err(
                    Error::refused(message).with_hint("each of them is a pass of its own; raise the option")
                );
            }
            self.machine.limits.iterations.limit = limit;
        }
        Ok(BoundLoop { session, prepared: self, options, files, context })
    }

    /// Begins a run: [`bind`](Self::bind) and [`begin`](Bound::begin).
    ///
    /// # Errors
    /// Those of both.
    pub fn begin<'s>(self, options: BeginOptions, session: &'s Session<'s>) -> Result<Begun<'s>, Error> {
        self.bind(options, session)?.begin()
    }
}

impl<'s> BoundLoop<'s> {
    /// Returns the audience of the run.
    pub fn audience(&self) -> &Audience {
        &self.options.run.audience
    }

    /// Describes what would be run.
    pub fn plan(&self) -> String {
        let Self { prepared, context, .. } = self;
        let machine = &prepared.machine;
        let mut out = format!(
            "would run {} ({}), at most {} iterations\n",
            machine.name, prepared.located.shown, machine.limits.iterations.limit
        );
        for (name, value) in context {
            let _ = writeln!(out, "  context.{name} = {value}");
        }
        if let Some(bound) = most_calls::bound(machine) {
            let _ = writeln!(out, "  {}", bound.sentence());
        }
        out.push('\n');
        out.push_str(&graph::text(&graph::Graph::of_machine(machine)));
        out.push_str("\nnothing was run\n");
        out
    }

    /// Returns which files the checks of the loop read, where it says so.
    ///
    /// # Errors
    /// What it says makes no patterns.
    pub(crate) fn inputs(&self) -> Result<Option<InputPatterns>, NoKey> {
        let context = Value::Object(self.context.clone());
        let reuse = self.prepared.machine.reuse.as_ref();
        reuse.map(|reuse| InputPatterns::of(&reuse.inputs, &context)).transpose()
    }

    /// Makes the key of the run, from everything that it would read.
    ///
    /// # Errors
    /// The loop does not say what it reads, or something of that is not known.
    pub(crate) fn reuse_key(self) -> Result<KeyParts, Error> {
        let session = self.session;
        let (mut run, territory, area) = self.configured()?;
        let Some(question) = run.key_question(&territory, &area, &Clock::start()) else {
            return Err(Error::refused(format!(
                "`{}` says nothing about `reuse`",
                run.prepared.machine.name
            ))
            .with_hint("`reuse: {inputs: […]}` names the files that its checks read"));
        };
        let interrupts = Interrupts::listen(&session.stop_by)?;
        let found = interrupts.block_on(question.ask(&interrupts.cancel()));
        found.map(|found| found.parts).map_err(|why| Error::refused(no_key(&why).to_string()))
    }

    /// Decides whether an earlier run stands for this one, which is only planned. `id` tells it from others of its plan.
    ///
    /// # Errors
    /// The run would be refused.
    pub(crate) fn foresee_reuse(self, id: &str, interrupts: &Interrupts) -> Result<ReuseDecision, Error> {
        let (mut run, territory, area) = self.configured()?;
        let in_ci = run.options.run.audience.is_ci();
        let session = run.session;
        let given = given(&run.options, &run.prepared, &run.context);
        // A plan is made of what would run: what the run would be refused for, the plan is refused for.
        trust::check(run.options.run.allow_untrusted, session, &mut run.prepared, &given)?;
        let Some(question) = run.key_question(&territory, &area, &Clock::start()) else {
            return Ok(ReuseDecision::None);
        };
        let planned = ReusableRun {
            id,
            machine: &run.prepared.machine,
            in_ci,
            wanted: run.options.reuse,
            store_at: &run.options.reuse_store,
        };
        interrupts.block_on(question.decide(&planned, &interrupts.cancel(), session))
    }

    /// Configures the run as far as its key depends on it.
    fn configured(self) -> Result<(ConfiguredRun<'s>, Territory, Area), Error> {
        let Self { session, mut prepared, options, files, context } = self;
        let in_ci = options.run.audience.is_ci();
        let decided = consent::decide(&options.run.llm, &mut prepared, in_ci, session)?;
        let run = ConfiguredRun { session, prepared, options, files, context, decided };
        let territory = claim::territory(&run.prepared, &run.context, session, &session.redactor)?;
        let area = start_tree::area(&territory, &run.options.run, session);
        Ok((run, territory, area))
    }

    /// Claims the scope of the run, and makes its files.
    ///
    /// # Errors
    /// The run is refused, another run has claimed its scope, it cannot be saved, or a signal came while it waited.
    pub fn begin(self) -> Result<Begun<'s>, Error> {
        let Self { session, mut prepared, options, files, context } = self;
        let given = given(&options, &prepared, &context);
        // Refusals come before the claim: a run that may not begin must neither wait for others nor keep them waiting.
        binding::check_options(&prepared.policy, &options.run, prepared.machine.notify.as_ref(), session)?;
        trust::check(options.run.allow_untrusted, session, &mut prepared, &given)?;
        warn(&prepared, session);
        if let Some(base) = &options.changed_since {
            let none = changed_since::none_since(base, &mut prepared, &context, session)?;
            if let Some(not_run) = none {
                let options = options.run.settled();
                return Ok(Begun::Skipped(Box::new(SkippedRun { session, prepared, options, not_run })));
            }
        }
        prepared.machine.limits.cycles = options.max_cycles;
        if options.max_cycles.is_some() && prepared.machine.maintain.is_none() {
            session.talk.warning("`--max-cycles` has no effect: the loop does not say `maintain: true`");
        }
        let in_ci = options.run.audience.is_ci();
        let night = if in_ci && prepared.machine.maintain.is_some() {
            Some(MaintainNight { previous: kept_nights::previous(&options, &prepared.machine.name, session) })
        } else {
            kept_nights::warn_of_no_effect(&options, session);
            None
        };
        let options = BeginOptions { run: options.run.settled(), ..options };
        // Only after `changed_since`: a run that is not needed asks for no agent, and must not be refused for one.
        let decided = consent::decide(&options.run.llm, &mut prepared, in_ci, session)?;
        prepared.check_models(decided.llm, &overrides(&options), &context, session.env)?;
        let interrupts = Interrupts::listen(&session.stop_by)?;
        let beginning = ConfiguredRun { session, prepared, options, files, context, decided };
        let launch = interrupts.block_on(beginning.launch(night, interrupts.cancel()))?;
        Ok(Begun::Ready(Box::new(Ready { interrupts, launch })))
    }
}

/// Returns the values of the context that the caller gave.
fn given(options: &BeginOptions, prepared: &Prepared, context: &Map<String, Value>) -> Map<String, Value> {
    let named = options.context.iter().chain(&options.params).map(|(name, _)| name.as_str());
    // An input that is a mapping can give several values at once.
    let input = options.input.as_deref();
    let keys = input.and_then(|input| serde_json::from_str::<Map<String, Value>>(input).ok());
    let keys = keys.iter().flat_map(Map::keys).map(String::as_str);
    let input = input.map(|_| prepared.machine.input_key.as_str());
    let all = named.chain(keys).chain(input);
    all.filter_map(|name| Some((name.to_owned(), context.get(name)?.clone()))).collect()
}

/// A night of a maintain loop, and the file of the earlier nights, if the caller named one.
struct MaintainNight {
    previous: Option<Local>,
}

/// A run that is fully configured, and whose scope is not claimed yet.
struct ConfiguredRun<'s> {
    session: &'s Session<'s>,
    prepared: Prepared,
    options: BeginOptions,
    files: RunFiles,
    context: Map<String, Value>,
    decided: Decided,
}

impl<'s> ConfiguredRun<'s> {
    async fn launch(mut self, night: Option<MaintainNight>, mut cancel: Cancel) -> Result<Launch<'s>, Error> {
        let Self { session, prepared, options, files, context, .. } = &mut self;
        let (session, files) = (*session, files.clone());
        let clock = Clock::start();
        run_snapshots::check(&options.run, &prepared.located.root, session)?;
        let worktree = if options.worktree {
            Some(Worktree::plan(&prepared.located.root, &files, session)?)
        } else {
            None
        };
        if let Some(worktree) = &worktree {
            // Before the scope is worked out: its paths lie in the worktree, which shares no file with the checkout.
            prepared.work_in(worktree.root().to_owned());
        }
        let territory = claim::territory(prepared, context, session, &session.redactor)?;
        let policy = binding::records(&prepared.policy);
        let wanted = claim::wanted(&files, &prepared.machine.name, &territory, policy, session, clock.now());
        // Asked before the claim is taken, which sweeps away the claims of dead runs.
        let unstarted = left_behind::unstarted(files.directory());
        let claim = claim::take(wanted, options.run.queue, &files, &mut cancel, session).await?;
        let home = worktree.as_ref().map_or(prepared.located.root.as_path(), Worktree::home);
        let run = LeasedRun { id: files.instance(), home, unstarted: &unstarted };
        let lock = lock::of_run(&options.run, run, &territory, &claim, &mut cancel, session).await?;
        // Made only now: a run that waits for its scope, or is refused it, leaves no worktree.
        let unkept = worktree.map(|worktree| UnkeptWorktree::create(worktree, session)).transpose()?;
        let area = start_tree::area(&territory, &options.run, session);
        let judging = self.judging(&files, &clock);
        let Self { prepared, options, .. } = &mut self;
        if let Some(start) = &options.run.item_start {
            let root = &prepared.located.root;
            let git = repository::at(root, session);
            start.set_programs_aside(&judging, &git, root, &session.env.for_ourselves()).map_err(|why| {
                Error::refused(format!("what another item left cannot be put aside: {why}"))
            })?;
        }
        let in_ci = self.options.run.audience.is_ci();
        let question = self.key_question(&territory, &area, &clock);
        let says_reuse = question.is_some();
        // In a worktree of its own, nothing stands for the run.
        let question = question.filter(|_| unkept.is_none()).map(|question| question.begin(in_ci, session));
        let Self { prepared, options, .. } = &mut self;
        let of = (&files, &*options, &judging);
        let (tree, warnings) =
            start_tree::start(prepared, &area, of, unkept.is_some(), &cancel, session).await?;
        let unfit = match &tree {
            StartTree::Known(_) => None,
            StartTree::Unknown { unknown } => Some(unknown.as_str()),
        };
        let reuse = if says_reuse {
            self.reuse(question, unfit, &cancel).await?
        } else if self.options.reuse == ReuseUse::Only {
            return Err(reuse_decision::unsaid(&self.prepared.machine.name));
        } else {
            ReuseDecision::None
        };
        let quarantined = check_quarantine::in_force(
            &self.prepared,
            self.options.run.audience.is_ci(),
            clock.now(),
            session,
        )?;
        let Self { prepared, context, .. } = &mut self;
        let projection = Projection::new(&prepared.located.root, files.instance());
        // Under the claim of the scope, and before money is promised: another run may hold the state file of its work.
        criteria::claim(&projection, &prepared.machine, context, session)?;
        // The last that can refuse the run: what is promised here counts, whatever becomes of this process.
        let is_reused = matches!(reuse, ReuseDecision::Hit(_));
        let Self { prepared, decided, .. } = &mut self;
        let reserved = day_spending::of_beginning(prepared, decided, &files, is_reused, session)?;
        if let Some(reserved) = &reserved {
            // The promise becomes the cap of the run, so that two runs of a day cannot spend the same dollar.
            decided.budget.cost_usd = Some(reserved.budget());
        }
        let Self { prepared, options, .. } = &mut self;
        let journal = match open(&files, &options.run, session) {
            Ok(journal) => journal,
            Err(error) => {
                if let Some(reserved) = reserved {
                    reserved.give_back(session);
                }
                return Err(error);
            }
        };
        // From here on the journal exists, and a resume finds the worktree: until now it was removed with each refusal.
        let worktree = unkept.and_then(UnkeptWorktree::keep);
        let before = night.map(|MaintainNight { previous }| {
            let kept = kept_nights::kept(&files, &options.run, session);
            let (every, name) = (kept_nights::due(options, session), &prepared.machine.name);
            kept_nights::before(previous.as_ref(), every, &kept, name, clock.now(), session)
        });
        let mut before = before.unwrap_or_default();
        before.warnings.extend(warnings);
        let sinks = sinks(prepared, &files, &options.run, &projection, session);
        let commit = self.commit(&tree);
        let mut start = self.start(&files, before, tree, &clock);
        start.event.commit = commit;
        start.event.checks.quarantined = quarantined;
        let reuse = match reuse {
            ReuseDecision::Hit(reused) => {
                start.reused = Some(reused);
                None
            }
            ReuseDecision::Make(pending) => {
                start.event.checks.histories.clone_from(&pending.histories);
                start.event.checks.proves = pending.verifies.as_ref().map(|record| record.run.run.clone());
                Some(pending)
            }
            ReuseDecision::None => None,
        };
        let Self { session, prepared, options, decided, .. } = self;
        let root = &prepared.located.root;
        let snapshots = run_snapshots::are_kept(&options.run, decided.llm, root, session);
        Ok(Launch {
            session,
            options: options.run,
            prepared,
            position: StartPosition::Start(Box::new(start)),
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
            reuse,
            reserved,
        })
    }

    /// Decides whether an earlier run stands for this one.
    async fn reuse(
        &self,
        question: Option<BegunQuestion>,
        unfit: Option<&str>,
        cancel: &Cancel,
    ) -> Result<ReuseDecision, Error> {
        let run = ReusableRun {
            id: self.files.instance(),
            machine: &self.prepared.machine,
            in_ci: self.options.run.audience.is_ci(),
            wanted: self.options.reuse,
            store_at: &self.options.reuse_store,
        };
        match (question, unfit) {
            (Some(question), None) => question.decide(&run, cancel, self.session).await,
            (None, _) => reuse_decision::unfit(&run, "it works in a worktree of its own", self.session),
            (Some(_), Some(why)) => reuse_decision::unfit(&run, why, self.session),
        }
    }

    /// Returns what the key of the run is made of; nothing where the loop does not say what it reads.
    fn key_question(&mut self, territory: &Territory, area: &Area, clock: &Clock) -> Option<KeyQuestion> {
        self.prepared.machine.reuse.as_ref()?;
        let judging = self.judging(&self.files, clock);
        let Self { session, prepared, options, context, .. } = self;
        KeyQuestion::of(prepared, KeyedRun { options, context, judging, territory, area }, session)
    }

    /// Returns what has to be known to tell which files judge the run, as far as it is known before it begins.
    fn judging(&self, files: &RunFiles, clock: &Clock) -> JudgingRequest {
        // It needs no tree: which commands judge follows from the machine and its values.
        let not_yet = StartTree::Unknown { unknown: "it was not looked at yet".to_owned() };
        let start = self.start(files, EarlierNights::default(), not_yet, clock);
        Engine::new(&self.prepared.machine, start).judges_asked_for()
    }

    /// Returns the commit on which the run begins. Only a run that is published can be gone on with elsewhere.
    fn commit(&self, tree: &StartTree) -> Option<String> {
        if !self.options.run.is_published() {
            return None;
        }
        match tree {
            StartTree::Known(start) => Some(start.ids.commit.to_string()),
            StartTree::Unknown { .. } => bundler::commit(&self.prepared, self.session),
        }
    }

    fn start(&self, files: &RunFiles, before: EarlierNights, tree: StartTree, clock: &Clock) -> Start {
        let Self { session, prepared, options, context, decided, .. } = self;
        let (machine, run) = (&prepared.machine, &options.run);
        let in_ci = run.audience.is_ci();
        let inputs = options.params.iter().chain(&options.context).map(|(name, _)| name.clone());
        let input = options.input.iter().map(|_| machine.input_key.to_string());
        let event = LoopStart {
            r#loop: machine.name.clone(),
            run_id: files.instance().to_owned(),
            definition_sha256: prepared.loaded.digest.clone(),
            max_iterations: machine.limits.iterations.limit,
            inputs: inputs.chain(input).collect(),
            llm: decided.llm,
            until_clean: in_ci && machine.maintain.is_some(),
            warnings: before.warnings,
            nights: before.nights,
            board: machine.has_board().then(|| Box::new(machine.board)),
            strict: run.strict.unwrap_or(in_ci),
            source: prepared.source(),
            parent: None,
            assignment: run.assignment.clone().map(Box::new),
            merges: None,
            place: Some(claim::place(&prepared.located.root)),
            trace: trace_origin(&session.env.lookup()).map(Box::new),
            commit: None,
            tree: Some(tree),
            on_change: start_tree::on_change(options, machine, decided.llm),
            no_closing_pass: options.no_closing_pass,
            policy: binding::records(&prepared.policy),
            checks: Box::default(),
            context: context.clone(),
            overrides: Box::new(overrides(options)),
            schema: SCHEMA,
        };
        assemble(event, clock.now(), Duration::ZERO, files, run, decided, session)
    }
}

/// Collects the options that still hold when the run is resumed.
fn overrides(options: &BeginOptions) -> Overrides {
    let llm = &options.run.llm;
    Overrides {
        max_iterations: options.max_iterations,
        max_cycles: options.max_cycles,
        // Only a resume can change it: a first part has the timeout that the loop says.
        timeout_ms: None,
        context: options.context.iter().cloned().collect(),
        param: options.params.iter().cloned().collect(),
        input: options.input.clone(),
        scope: options.scope.clone(),
        max_cost: llm.budget.cost_usd,
        max_tokens: llm.budget.tokens,
        max_llm_calls: llm.budget.calls,
        on_handoff: llm.on_handoff.map(|behavior| behavior.word().to_owned()),
        broker: llm.broker.map(|broker| broker.word().to_owned()),
        sandbox: llm.sandbox.map(|mode| mode.word().to_owned()),
        model: options.model.clone(),
        llm_model: options.llm_model.clone(),
    }
}

/// A run that was not needed, because nothing in its scope changed.
pub struct SkippedRun<'s> {
    session: &'s Session<'s>,
    prepared: Prepared,
    options: RunOptions,
    not_run: NotRun,
}

impl SkippedRun<'_> {
    /// Returns the loop.
    pub fn loop_name(&self) -> &str {
        self.prepared.machine.name.as_str()
    }

    /// Explains why nothing was run.
    pub fn sentence(&self) -> String {
        Digest::of_none(self.not_run.clone()).sentence()
    }

    /// Reports that nothing was run, in the same places as a run.
    pub fn report(self) {
        let Self { session, prepared, options, not_run } = self;
        let Some(provider) = publisher(&options) else { return };
        let name = &prepared.machine.name;
        let files = RunFiles::fresh(&prepared.located.root.join(DIRECTORY), name, Clock::start().now());
        if let Err(error) = files.make_directory() {
            session.talk.warning(&format!("cannot write reports: {error}"));
        }
        let root = prepared.located.root.as_path();
        let mut publication = Publication::new(&options, provider, root, name, &files, None, session);
        publication.begin(&options, name.as_str(), Stage::Beginning, session);
        publication.tell(ReportedEnd::NotNeeded(not_run), session);
    }
}

/// Shows the warning about the loop where there is one, and says in one line that there are several; `validate` shows them.
fn warn(prepared: &Prepared, session: &Session<'_>) {
    let warnings = prepared.findings.count(Severity::Warning);
    if warnings == 1 {
        let only = prepared.findings.clone().filtered(|finding| finding.severity == Severity::Warning);
        session.show(&only, &prepared.loaded);
    } else if warnings > 1 {
        let (count, file) = (plural(warnings as u64, "warning"), &prepared.located.shown);
        session.talk.warning(&format!("{file} has {count}, see `{}`", advised_command::validate(file)));
    }
}
