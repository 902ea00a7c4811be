//! `run --plan`: runs the items of a leg one after the other, each as a run of its own. One that fails does not stop the
//! next.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::ITEMS;
use super::collect::collect;
use super::leg_tree::LegTree;
use super::planning::head as commit_here;
use crate::base::relative::Line;
use crate::base::run_key::RunKey;
use crate::base::sum::Sum;
use crate::base::text::{head, listed, one_line, plural};
use crate::base::time::human;
use crate::bundle::EXTENSION;
use crate::bundle::merged::RESULT;
use crate::bundle::open::{Bundle, LIMITS};
use crate::ci::Provider;
use crate::ci::job::attempt;
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::error::{Error, Kind};
use crate::context::options::{BeginOptions, KeyOption, ResumeOptions, ReuseUse, RunOptions, Storing, Which};
use crate::definition::load::DIRECTORY;
use crate::definition::vendored::Copies;
use crate::engine::event::Assignment;
use crate::engine::outcome::{GOES_ON, Outcome};
use crate::fanout::item::ItemId;
use crate::fanout::item_plan::{FanoutLoop, Item, Leg, MAX_PLAN, Plan};
use crate::fanout::merged_runs::{ItemStanding, Merged, MergedItem};
use crate::fanout::put_off::{self, PutOff};
use crate::fanout::severity::{word_of, worst};
use crate::files::read;
use crate::files::replace::replace;
use crate::forge::github::artifacts::PREFIX;
use crate::journal::files::RunFiles;
use crate::process::clock::Clock;
use crate::report::formats::markdown::{self, words};
use crate::report::leg_annotations::LegAnnotations;
use crate::session::end::ready::EndedRun;
use crate::session::prepare::prepared::Prepared;
use crate::session::start::begin::Begun;
use crate::session::start::resume::Resumption;

/// The outputs that one run has, and a leg has not.
const OF_ONE: [&str; 15] = [
    "reused",
    "reused-from",
    "final-state",
    "iterations",
    "steps",
    "duration-ms",
    "run-id",
    "awaiting",
    "continuation",
    "resume-from",
    "junit",
    "summary",
    "cost-usd",
    "changed-files",
    "patch",
];

/// How many red items the summary of a leg lists.
const MOST_RED: usize = 500;

/// Why no more items are begun.
const DEADLINE: &str = "the deadline has come";

/// What of a plan is run.
#[derive(Clone, Debug)]
pub(crate) struct LegOptions {
    /// The file with the plan.
    pub(crate) plan: PathBuf,
    /// The leg: its key, or `index:` and its place from 0, with `/` and the number of jobs that were listed for legs.
    pub(crate) leg: Option<String>,
    /// What a merge left: only what is not verified there is run.
    pub(crate) rerun: Option<PathBuf>,
    /// Which attempt this is, where the caller counts.
    pub(crate) attempt: Option<u32>,
    /// How each run begins; its parameters and its scope come from the item.
    pub(crate) begin: BeginOptions,
    /// Which loop files may be run.
    pub(crate) reach: LoopReach,
    /// The exit code of an error.
    pub(crate) code_of: fn(&Error) -> u8,
}

/// Which loop files may be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopReach {
    /// Whether they may lie outside of the repository.
    pub(crate) outside: bool,
    /// Whether copies of loops from other repositories may have been edited.
    pub(crate) copies: Copies,
}

impl Session<'_> {
    /// Reads a plan from a file.
    pub(crate) fn read_plan(&self, path: &Path) -> Result<Plan, Error> {
        let refused = |why: String| Error::refused(format!("{}: {why}", path.display()));
        let text = read::bytes(&self.path(path), MAX_PLAN).map_err(|error| refused(error.to_string()))?;
        Plan::parse(&text).map_err(|error| {
            refused(error.to_string())
                .with_hint("take the file that `plan` wrote, with the same version of ll-loop")
        })
    }

    /// Runs the items of a leg, and returns the exit code that stands for all of them.
    pub(crate) fn run_leg(&self, options: &LegOptions) -> Result<u8, Error> {
        let plan = self.read_plan(&options.plan)?;
        if plan.items.is_empty() {
            let reason = plan.reason.as_ref().map_or("every item was skipped", Line::as_str);
            self.talk.note(&format!("the plan has nothing to run: {reason}"));
            return Ok(0);
        }
        let earlier =
            options.rerun.as_deref().map(|directory| Earlier::read(directory, &plan, self)).transpose()?;
        let legs: Vec<&Leg> = match (&options.leg, &earlier) {
            (None, Some(_)) => plan.legs.iter().collect(),
            (asked, _) => leg(&plan, asked.as_deref())?.into_iter().collect(),
        };
        if legs.is_empty() {
            let count = plural(plan.legs.len() as u64, "leg");
            self.talk.note(&format!("the plan has {count}, so that this job has nothing to run"));
            return Ok(0);
        }
        let is_left =
            |id: &&ItemId| earlier.as_ref().is_none_or(|earlier| !earlier.settled.contains(id.as_str()));
        let items: Vec<&ItemId> = legs.iter().flat_map(|leg| &leg.items).filter(is_left).collect();
        if items.is_empty() {
            self.talk.note("everything that was asked for is verified already");
            return Ok(0);
        }
        let name = match legs.as_slice() {
            [leg] => leg.key.to_string(),
            _ => "rerun".to_owned(),
        };
        let run = LegRun::new(&plan, name, items, earlier, options, self)?;
        let ends = run.items()?;
        run.tell(&ends)
    }
}

/// Finds the leg. A job that was listed before there was a plan, `index:5/8`, may have none; a plan with more legs than jobs
/// would never be whole.
fn leg<'p>(plan: &'p Plan, asked: Option<&str>) -> Result<Option<&'p Leg>, Error> {
    let keys = || listed(plan.legs.iter().take(20).map(|leg| leg.key.as_str()), "and");
    let Some(asked) = asked else {
        return match plan.legs.as_slice() {
            [only] => Ok(Some(only)),
            _ => Err(Error::refused(format!("the plan has {}", plural(plan.legs.len() as u64, "leg")))
                .with_hint(format!("say which one with `--leg`: {}", keys()))),
        };
    };
    if let Some((index, jobs)) = asked.strip_prefix("index:").and_then(|listed| listed.split_once('/'))
        && let (Ok(index), Ok(jobs)) = (index.parse::<usize>(), jobs.parse::<usize>())
        && index < jobs
    {
        if plan.legs.len() > jobs {
            let (legs, jobs) = (plural(plan.legs.len() as u64, "leg"), plural(jobs as u64, "job"));
            return Err(Error::refused(format!("the plan has {legs} for {jobs}"))
                .with_hint("list more jobs, or plan with fewer `--legs`"));
        }
        return Ok(plan.legs.get(index));
    }
    let found = match asked.strip_prefix("index:") {
        Some(index) => index.parse().ok().and_then(|index: usize| plan.legs.get(index)),
        None => plan.leg(asked),
    };
    found.map(Some).ok_or_else(|| {
        Error::refused(format!("the plan has no leg `{}`", one_line(asked, 60)))
            .with_hint(format!("it has {}", keys()))
    })
}

/// What a merge knows of earlier attempts.
struct Earlier {
    /// The items that are verified, or need not run.
    settled: BTreeSet<String>,
    /// The highest attempt of all items.
    attempt: u32,
    /// The directory with the bundles of the items.
    items: PathBuf,
}

impl Earlier {
    fn read(directory: &Path, plan: &Plan, session: &Session<'_>) -> Result<Self, Error> {
        /// As far as it is needed.
        #[derive(Deserialize)]
        struct Result {
            plan_id: Sum,
        }
        let directory = session.path(directory);
        let path = directory.join(RESULT);
        let refused = |why: String| {
            Error::refused(format!("cannot read what was merged from {}: {why}", path.display()))
                .with_hint("`--rerun` takes the report directory of `ll-loop merge`")
        };
        let text = read::bytes(&path, MAX_PLAN).map_err(|error| refused(error.to_string()))?;
        let result: Result = serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))?;
        if result.plan_id != plan.plan_id {
            return Err(Error::refused(format!(
                "{} is the result of the plan {}, and this is the plan {}",
                directory.display(),
                head(&result.plan_id.to_string(), 12),
                head(&plan.plan_id.to_string(), 12)
            )));
        }
        // What the result says of an item is worth what its bundle proves: that it was verified on the tree of this plan.
        let collected = collect(std::slice::from_ref(&directory), plan, session)?;
        let merged = Merged::of(plan, &collected.readings, None).map_err(|why| refused(why.to_string()))?;
        let attempts = merged.items.iter().filter_map(|item| match &item.standing {
            ItemStanding::Ran { attempt, .. } => Some(*attempt),
            ItemStanding::Missing { .. } | ItemStanding::Reused | ItemStanding::Skipped { .. } => None,
        });
        let settled = merged.items.iter().filter(|item| item.standing.is_settled());
        Ok(Self {
            settled: settled.map(|item| item.id.to_string()).collect(),
            attempt: attempts.max().unwrap_or(0),
            items: directory.join(ITEMS),
        })
    }
}

/// A leg that is run here, or what is left of several.
struct LegRun<'r> {
    session: &'r Session<'r>,
    plan: &'r Plan,
    /// The key of the leg.
    name: String,
    items: Vec<&'r ItemId>,
    earlier: Option<Earlier>,
    options: &'r LegOptions,
    /// The directory of the loops.
    root: PathBuf,
    /// Where each item has a directory for its reports.
    directory: PathBuf,
    attempt: u32,
    clock: Clock,
    /// What its items have to say on lines of code.
    annotations: LegAnnotations,
    /// How long the summary of the job was before.
    summarized: u64,
}

/// What became of an item.
#[derive(Clone, Copy)]
struct ItemEnd {
    /// None if it was not begun.
    code: Option<u8>,
    outcome: Option<Outcome>,
    is_verified: bool,
    /// Whether the deadline left no time for it.
    is_put_off: bool,
}

impl ItemEnd {
    /// Of an item that an earlier attempt verified.
    const STANDING: Self =
        Self { code: Some(0), outcome: Some(Outcome::Success), is_verified: true, is_put_off: false };
}

impl<'r> LegRun<'r> {
    fn new(
        plan: &'r Plan,
        name: String,
        items: Vec<&'r ItemId>,
        earlier: Option<Earlier>,
        options: &'r LegOptions,
        session: &'r Session<'r>,
    ) -> Result<Self, Error> {
        let root = check(plan, &items, options, session)?;
        let directory = match &options.begin.run.report_dir {
            Some(directory) => session.path(directory),
            None => RunFiles::running(&root.join(DIRECTORY)).join(format!("leg-{name}.report")),
        };
        let here = items.iter().filter_map(|id| last_attempt(&directory.join(id.as_str()), plan, id)).max();
        let before = here.max(earlier.as_ref().map(|earlier| earlier.attempt)).unwrap_or(0);
        let counted = options.attempt.or_else(|| attempt_of_job(&options.begin.run, session));
        let attempt = match counted {
            // A job that runs again what a merge has seen has the attempt of the workflow, which is that of the merge.
            Some(counted) if options.attempt.is_none() && earlier.is_some() => {
                counted.max(before.saturating_add(1))
            }
            Some(counted) => counted,
            None => before.saturating_add(1),
        };
        let clock = Clock::start();
        let annotations = LegAnnotations::default();
        let summarized = match &options.begin.run.audience {
            Audience::Ci(provider) => provider.summarized(),
            Audience::Person => 0,
        };
        Ok(Self {
            session,
            plan,
            name,
            items,
            earlier,
            options,
            root,
            directory,
            attempt,
            clock,
            annotations,
            summarized,
        })
    }

    /// Runs the items, in order. Returns what became of each.
    fn items(&self) -> Result<Vec<ItemEnd>, Error> {
        let mut ends = vec![ItemEnd::STANDING; self.standing()];
        let mut stopped = None;
        let mut tree = self.tree();
        while let Some(&id) = self.items.get(ends.len()) {
            let none = ItemEnd { code: None, outcome: None, is_verified: false, is_put_off: false };
            let left =
                self.options.begin.run.deadline.map(|deadline| deadline.saturating_sub(self.clock.elapsed()));
            // The first reason stays: after an interruption, it is not the deadline that keeps items from beginning.
            if stopped.is_none() && left == Some(Duration::ZERO) {
                stopped = Some(DEADLINE);
            }
            if let Some(why) = stopped {
                self.session.talk.warning(&format!("the item {id} was not begun: {why}"));
                ends.push(ItemEnd { is_put_off: why == DEADLINE, ..none });
                continue;
            }
            self.session.talk.note(&format!("item {} of {}: {id}", ends.len() + 1, self.items.len()));
            self.announce()?;
            let end = match self.item(id, left, tree.as_mut()) {
                Ok(ended) => ItemEnd {
                    code: Some(ended.exit_code()),
                    outcome: Some(ended.complete.outcome),
                    is_verified: ended.complete.is_verified_success(),
                    is_put_off: false,
                },
                Err(error) => {
                    let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
                    self.session
                        .talk
                        .warning(&format!("the item {id} could not be run: {}{hint}", error.message()));
                    if let Kind::Interrupted(_) = error.kind() {
                        stopped = Some("somebody ended the job");
                    }
                    ItemEnd { code: Some((self.options.code_of)(&error)), ..none }
                }
            };
            match end.outcome {
                Some(Outcome::Interrupted) => stopped = Some("somebody ended the job"),
                // A hand-off before the deadline, such as one with a question, concerns this item alone.
                Some(Outcome::Handoff) if left.is_some_and(|left| self.clock.elapsed() >= left) => {
                    stopped = Some(DEADLINE);
                }
                Some(_) | None => {}
            }
            ends.push(end);
            if let Some(tree) = &mut tree {
                let is_last = ends.len() == self.items.len();
                // Only a warning: the next run looks at its tree itself, and is verified on none but the plan's.
                if let Err(error) = tree.after(id, is_last) {
                    self.session.talk.warning(&format!(
                        "what the item {id} left stays in the checkout, and the next one begins on it: {}",
                        error.message()
                    ));
                }
            }
        }
        if let Some(tree) = tree {
            tree.end();
        }
        Ok(ends)
    }

    /// Looks at the checkout; nothing where each item has a working tree of its own. Without that look, an item that begins
    /// on what another one left is not verified.
    fn tree(&self) -> Option<LegTree<'r>> {
        if self.options.begin.worktree {
            return None;
        }
        let recording = self.options.begin.run.llm.recording.as_ref();
        let recording = recording.map(|(directory, _)| self.session.path(directory));
        let plan = self.session.path(&self.options.plan);
        let own: Vec<PathBuf> = [self.directory.clone(), plan].into_iter().chain(recording).collect();
        let begun = LegTree::begin(self.plan, &self.root, &own, self.session);
        begun.inspect_err(|error| self.session.talk.warning(error.message())).ok()
    }

    /// Counts the items at the beginning of the leg that need not run again: an earlier attempt verified them, and was ended
    /// in a later item.
    fn standing(&self) -> usize {
        let place = |id: &ItemId| self.directory.join(id.as_str());
        let left = self.items.iter().enumerate().find_map(|(index, id)| {
            handed_off(bundles(&place(id)), self.plan, id).map(|(_, attempt)| (index, attempt))
        });
        let Some((index @ 1.., ended_in)) = left else { return 0 };
        let before = &self.items[..index];
        // Whoever wrote them, it is the merge that says what they are worth.
        let places: Vec<PathBuf> = before.iter().map(|id| place(id)).collect();
        // In doubt, all of them run again.
        let Ok(collected) = collect(&places, self.plan, self.session) else { return 0 };
        let ci_run = ci_run(&self.options.begin.run);
        let ci_run = ci_run.as_ref().map(Line::as_str);
        let Ok(merged) = Merged::of(self.plan, &collected.readings, ci_run) else { return 0 };
        let is_before = |item: &&MergedItem| before.contains(&&item.id);
        let stands = |item: &MergedItem| match item.standing {
            ItemStanding::Ran { verified, attempt, .. } => verified && attempt <= ended_in,
            ItemStanding::Missing { .. } | ItemStanding::Reused | ItemStanding::Skipped { .. } => false,
        };
        if !merged.items.iter().filter(is_before).all(stands) {
            return 0;
        }
        let count = plural(index as u64, "item");
        let are = if index == 1 { "is" } else { "are" };
        self.session.talk.note(&format!("{count} of an earlier attempt {are} verified, and not run again"));
        index
    }

    /// Runs one item, or goes on with what an earlier attempt handed off.
    fn item(
        &self,
        id: &ItemId,
        left: Option<Duration>,
        mut tree: Option<&mut LegTree<'_>>,
    ) -> Result<EndedRun, Error> {
        let Some(item) = self.plan.item(id) else {
            return Err(Error::refused(format!("the plan has no item `{id}`")));
        };
        let directory = self.directory.join(id.as_str());
        let merged = self.earlier.as_ref().map(|earlier| earlier.items.join(format!("{id}.zip")));
        let earlier = bundles(&directory).chain(merged);
        let mut number = self.attempt;
        if let Some((bundle, attempt)) = handed_off(earlier, self.plan, id) {
            // Of two bundles of one attempt the worse one counts, and that would be the hand-off.
            number = number.max(attempt.saturating_add(1));
            let run = self.run_options(id, &directory, left, number);
            match &mut tree {
                // Its run goes on in this checkout, with what it left there.
                Some(tree) if self.is_here(&bundle) => tree.before_resuming(id)?,
                Some(tree) => tree.before_beginning(id),
                None => {}
            }
            match self.resumed(&bundle, item, &run) {
                Ok(ended) => return Ok(ended),
                // After any other error, such as an interruption, or where another process goes on with it now, the item
                // must not begin from the start.
                Err(error) if matches!(error.kind(), Kind::Refused | Kind::GoneOn | Kind::Over) => {
                    self.session.talk.warning(&format!(
                        "the item {id} begins anew, because its hand-off cannot go on: {}",
                        error.message()
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        let start = tree.map(|tree| {
            tree.before_beginning(id);
            tree.start_of(id)
        });
        let mut run = self.run_options(id, &directory, left, number);
        run.item_start = start;
        let name = self.plan.planned(&item.r#loop).map(name_of);
        self.begun(item, &run).inspect_err(|error| {
            self.session.report_unbegun(error, (self.options.code_of)(error), name.as_deref(), &run);
        })
    }

    /// Tells whether the run of a bundle is one that was left unfinished in this checkout.
    fn is_here(&self, bundle: &Path) -> bool {
        let instance = Bundle::open(bundle, LIMITS).ok().map(|bundle| bundle.manifest.instance);
        let files = instance.and_then(|instance| RunFiles::of(&self.root.join(DIRECTORY), instance.as_str()));
        files.is_some_and(|files| files.journal().is_file())
    }

    fn begun(&self, item: &Item, run: &RunOptions) -> Result<EndedRun, Error> {
        let session = self.session;
        let prepared = prepared(self.plan, item, self.options.reach, session)?;
        let mut params = self.options.begin.params.clone();
        params.extend(item.params.iter().map(|(name, value)| (name.to_string(), value.clone())));
        let begin = BeginOptions {
            params,
            scope: Some(item.scope.clone()),
            // The plan has decided that it runs.
            changed_since: None,
            reuse: self.reuse_of(item),
            run: run.clone(),
            ..self.options.begin.clone()
        };
        match prepared.begin(begin, session)? {
            Begun::Ready(ready) => ready.run(),
            Begun::Skipped(_) => Err(Error::refused("nothing changed, and the plan wants it run")),
        }
    }

    /// Tells whether an earlier run may stand for this one. Where the plan wants one proved, chance does not decide again.
    fn reuse_of(&self, item: &Item) -> ReuseUse {
        match (self.options.begin.reuse, &item.proves) {
            (ReuseUse::Allowed, Some(_)) => ReuseUse::Proved,
            (wanted, _) => wanted,
        }
    }

    fn resumed(&self, bundle: &Path, item: &Item, run: &RunOptions) -> Result<EndedRun, Error> {
        let session = self.session;
        session.talk.note(&format!("the item {} goes on from {}", item.id, bundle.display()));
        let which =
            Which::From { source: bundle.to_string_lossy().into_owned(), name: None, repository: None };
        let options = ResumeOptions {
            context: self.options.begin.context.clone(),
            run: run.clone(),
            ..ResumeOptions::default()
        };
        match session.resume(&which, options, self.options.reach.outside)? {
            Resumption::Ready(ready) => ready.run(),
            Resumption::Finished(_) => Err(Error::refused("its run is over")),
        }
    }

    /// Returns how the run of an item behaves: it is reported in a directory and under a key of its own.
    fn run_options(&self, id: &ItemId, directory: &Path, left: Option<Duration>, attempt: u32) -> RunOptions {
        let mut run = self.options.begin.run.clone();
        run.report_dir = Some(directory.to_owned());
        run.deadline = left;
        run.key = KeyOption::Given(Some(id.to_string()));
        // The job stores the files of all items in one artifact, and the merge says what the commit is worth.
        run.storing = Storing::Nobody;
        run.commit.status = run.commit.status.or(Some(false));
        run.chain = None;
        run.annotations = Some(self.annotations.of(id.as_str()));
        run.assignment = Some(Assignment {
            plan_id: self.plan.plan_id,
            leg: Line::of(self.plan.leg_of(id).map_or("", |leg| leg.key.as_str())),
            item: Line::of(id.as_str()),
            attempt,
            ci_run: ci_run(&run),
            differs: self.plan.differs.clone(),
        });
        // The plan lies in the checkout, often untracked, and would count as a change of the item.
        run.beside = vec![self.session.path(&self.options.plan)];
        run
    }

    /// Says what became of the leg, sets the outputs of the job, and stores the reports.
    fn tell(&self, ends: &[ItemEnd]) -> Result<u8, Error> {
        let session = self.session;
        let put_off = ends.iter().filter(|end| end.is_put_off).map(|_| GOES_ON);
        let code = worst(ends.iter().filter_map(|end| end.code).chain(put_off));
        // The leg is not green by what was not begun, even if all that was begun is.
        let is_cut_off = code == 0 && ends.iter().any(|end| end.code.is_none());
        let code = if is_cut_off { crate::fanout::NOT_BEGUN } else { code };
        let verified = ends.iter().filter(|end| end.is_verified).count();
        let unbegun = ends.iter().filter(|end| end.code.is_none()).count();
        let handed_off = ends.iter().filter(|end| end.outcome == Some(Outcome::Handoff)).count();
        let parts = [(verified, "verified"), (handed_off, "handed off"), (unbegun, "not begun")];
        let rest = ends.len() - parts.iter().map(|(count, _)| count).sum::<usize>();
        let parts = parts.into_iter().chain([(rest, "not verified")]).filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        let took = human(self.clock.elapsed());
        let count = plural(ends.len() as u64, "item");
        let came_to = format!(
            "leg {} of the plan {}: {count} in {took}: {} (exit {code})",
            self.name,
            head(&self.plan.plan_id.to_string(), 8),
            parts.join(", "),
        );
        session.talk.note(&format!("{came_to}; reports in {}", self.directory.display()));
        self.note_put_off(ends)?;
        let Audience::Ci(provider) = &self.options.begin.run.audience else { return Ok(code) };
        for annotation in self.annotations.rest() {
            session.talk.ci_line(&provider.dialect().annotation(&annotation), provider);
        }
        self.summarize(&came_to, ends, provider);
        let is_resumable =
            ends.iter().any(|end| end.is_put_off || end.outcome.is_some_and(Outcome::is_resumable));
        let outcome = ends.iter().filter(|end| end.code == Some(code)).find_map(|end| end.outcome);
        let outputs = [
            ("outcome", outcome.map_or_else(|| word_of(code), Outcome::word).to_owned()),
            ("exit-code", code.to_string()),
            ("verified", (verified == ends.len()).to_string()),
            ("handoff", (code == GOES_ON).to_string()),
        ];
        self.stored(provider, code, is_resumable, outputs)
    }

    /// Puts the list of the items that are red before what they have added to the summary of the job, which may be cut.
    fn summarize(&self, came_to: &str, ends: &[ItemEnd], provider: &Provider) {
        let is_red = |end: &ItemEnd| end.code.is_some_and(|code| ![0, GOES_ON].contains(&code));
        let red: Vec<(&&ItemId, &ItemEnd)> =
            self.items.iter().zip(ends).filter(|(_, end)| is_red(end)).collect();
        if red.is_empty() {
            return;
        }
        let mut text = format!("## {}\n\n| red item | outcome | exit |\n|---|---|--:|\n", words(came_to));
        for (id, end) in red.iter().take(MOST_RED) {
            let code = end.code.unwrap_or(crate::fanout::NOT_BEGUN);
            let outcome = end.outcome.map_or_else(|| word_of(code), Outcome::word);
            let _ = writeln!(text, "| {} | {outcome} | {code} |", markdown::code(id.as_str(), 200));
        }
        if red.len() > MOST_RED {
            let _ = writeln!(text, "\n… and {}", plural((red.len() - MOST_RED) as u64, "more red item"));
        }
        if let Err(error) = provider.summarize_before(self.summarized, &text) {
            let name = provider.name();
            self.session.talk.warning(&format!("cannot give {name} the list of the items: {error}"));
        }
    }

    /// Leaves a note of the items for which the deadline left no time, so that a merge does not take them for lost.
    fn note_put_off(&self, ends: &[ItemEnd]) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::failed("cannot write the reports of the leg", &error);
        let path = self.directory.join(put_off::FILE);
        let items = self.items.iter().zip(ends).filter(|(_, end)| end.is_put_off);
        let items: BTreeSet<String> = items.map(|(id, _)| id.to_string()).collect();
        if items.is_empty() {
            // An earlier attempt may have left one.
            return match fs_err::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let note = PutOff { plan_id: self.plan.plan_id, attempt: self.attempt, items };
        let text = serde_json::to_string(&note).map_err(|error| failed(error.into()))?;
        fs_err::create_dir_all(&self.directory).map_err(failed)?;
        replace(&path, text + "\n").map_err(failed)
    }

    /// Tells the job where the reports are, and nothing of a run that is over: if this process is killed, a later step
    /// reports the run that goes on, and stores what all have left.
    fn announce(&self) -> Result<(), Error> {
        let Audience::Ci(provider) = &self.options.begin.run.audience else { return Ok(()) };
        let mut outputs = self.places(provider);
        outputs.extend(OF_ONE.map(|name| (name, String::new())));
        outputs.extend(["outcome", "exit-code", "verified", "handoff"].map(|name| (name, String::new())));
        provider
            .announce(&outputs)
            .map_err(|error| Error::failed("cannot set the outputs of the job", &error))
    }

    /// Returns the outputs that say where the reports are.
    fn places(&self, provider: &Provider) -> Vec<(&'static str, String)> {
        let workspace = provider.job().workspace;
        let below = workspace.as_deref().and_then(|workspace| self.directory.strip_prefix(workspace).ok());
        let directory = below.unwrap_or(&self.directory).to_string_lossy().into_owned();
        let artifact = self.artifact(provider);
        let stores = matches!(self.options.begin.run.storing, Storing::LaterStep);
        let mut outputs = vec![("report-dir", directory), ("key", self.name.clone())];
        outputs.push(("artifact-name", if stores { artifact.clone() } else { String::new() }));
        outputs.extend(stores.then_some(("upload-name", artifact)));
        outputs
    }

    /// Sets the outputs, and stores the reports. An upload that fails is a failure where something has to go on from it.
    fn stored(
        &self,
        provider: &Provider,
        code: u8,
        is_resumable: bool,
        said: [(&'static str, String); 4],
    ) -> Result<u8, Error> {
        let session = self.session;
        let announce = |outputs: &[(&'static str, String)]| {
            provider
                .announce(outputs)
                .map_err(|error| Error::failed("cannot set the outputs of the job", &error))
        };
        let mut outputs = self.places(provider);
        outputs.extend(said);
        outputs.extend(OF_ONE.map(|name| (name, String::new())));
        announce(&outputs)?;
        let Storing::Ours(upload) = self.options.begin.run.storing else { return Ok(code) };
        let (artifact, mark) =
            (self.artifact(provider), format!("{}/{}", head(&self.plan.plan_id.to_string(), 8), self.name));
        match session.store_reports(upload, &artifact, &mark, &self.directory) {
            // Not announced before: a name without an artifact would be looked for in vain.
            Ok(true) => announce(&[("artifact-name", artifact)]).map(|()| code),
            Ok(false) => Ok(code),
            Err(error) if is_resumable => Err(error),
            Err(error) => {
                session.talk.warning(error.message());
                Ok(code)
            }
        }
    }

    /// Names the artifact with the reports of the leg.
    fn artifact(&self, provider: &Provider) -> String {
        let stem = self.plan.stem();
        let key = RunKey::new(Some(&self.name), "");
        match provider.job().id {
            Some(job) => format!("{PREFIX}{stem}-{}", job.name_for(&key)),
            None => format!("{PREFIX}{stem}-{key}"),
        }
    }
}

/// Checks that this checkout is the one that was planned. Returns the directory of its loops.
fn check(
    plan: &Plan,
    items: &[&ItemId],
    options: &LegOptions,
    session: &Session<'_>,
) -> Result<PathBuf, Error> {
    let mut root = None;
    for planned in &plan.loops {
        let mut items = items.iter().filter_map(|id| plan.item(id));
        let Some(item) = items.find(|item| item.r#loop == planned.name) else { continue };
        root = Some(prepared(plan, item, options.reach, session)?.located.root);
    }
    let root = root.ok_or_else(|| Error::refused("the items of the plan run no loop"))?;
    match commit_here(&root, session) {
        Some(here) if here == plan.commit => Ok(root),
        Some(here) => Err(Error::refused(format!(
            "the plan is about the commit {}, and the checkout is at {}",
            head(plan.commit.as_str(), 12),
            head(here.as_str(), 12)
        ))
        .with_hint("check out the commit of the plan, or make a plan of this one")),
        None => Err(Error::refused(
            "a leg runs in a checkout of the commit that was planned, and there is none here",
        )),
    }
}

/// Finds and checks the loop of an item, which has to be the one that was planned.
pub(super) fn prepared(
    plan: &Plan,
    item: &Item,
    reach: LoopReach,
    session: &Session<'_>,
) -> Result<Prepared, Error> {
    let planned = plan.planned(&item.r#loop);
    let planned = planned.ok_or_else(|| Error::refused(format!("the plan has no loop `{}`", item.r#loop)))?;
    let located = session.find(&name_of(planned), reach.outside)?;
    let prepared = session.prepare(located.taking(reach.copies))?;
    if prepared.loaded.digest != planned.definition_sha256.to_string() {
        return Err(Error::refused(format!(
            "the loop `{}` is not what it was when it was planned",
            planned.name
        ))
        .with_hint("run the plan in a clean checkout of its commit, or make a new one"));
    }
    Ok(prepared)
}

/// Returns by what a loop is found.
fn name_of(planned: &FanoutLoop) -> String {
    planned.file.as_ref().map_or_else(|| planned.name.to_string(), ToString::to_string)
}

/// Returns the number of the job's attempt, if the CI system counts them.
fn attempt_of_job(run: &RunOptions, session: &Session<'_>) -> Option<u32> {
    if run.audience.is_ci() { attempt(&session.env.lookup()) } else { None }
}

/// Names the CI run, if the CI system does.
pub(super) fn ci_run(run: &RunOptions) -> Option<Line> {
    let Audience::Ci(provider) = &run.audience else { return None };
    provider.job().id.map(|id| Line::of(id.run()))
}

/// Returns the highest attempt at an item whose bundle lies in a directory.
fn last_attempt(directory: &Path, plan: &Plan, id: &ItemId) -> Option<u32> {
    bundles(directory).filter_map(|bundle| look(&bundle, plan, id)).map(|look| look.attempt).max()
}

/// Returns the bundle of an item that an earlier attempt handed off, with its attempt.
fn handed_off(left: impl Iterator<Item = PathBuf>, plan: &Plan, id: &ItemId) -> Option<(PathBuf, u32)> {
    let found = left.filter_map(|bundle| Some((look(&bundle, plan, id)?, bundle)));
    let (last, bundle) = found.max_by_key(|(look, _)| look.attempt)?;
    // Only of the last attempt: an older hand-off has been resumed already.
    last.is_resumable.then_some((bundle, last.attempt))
}

fn bundles(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs_err::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == EXTENSION))
}

/// What a bundle says about the attempt that it is of.
struct BundleAttempt {
    attempt: u32,
    is_resumable: bool,
}

/// Looks at a bundle, which somebody else may have written. Returns nothing if it is not one of this item.
fn look(path: &Path, plan: &Plan, id: &ItemId) -> Option<BundleAttempt> {
    let manifest = Bundle::open(path, LIMITS).ok()?.manifest;
    let assignment = manifest.assignment?;
    let is_ours = assignment.plan_id == plan.plan_id && assignment.item.as_str() == id.as_str();
    is_ours.then_some(BundleAttempt { attempt: assignment.attempt, is_resumable: manifest.resumable })
}
