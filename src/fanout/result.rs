//! `merge`: makes one result of what the legs of a plan have left, and one set of reports.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use serde_json::{Value, json};

use super::collect::{Collected, Facts, collect};
use super::confirm::{self, AskedItem, ConfirmOptions, Confirmation};
use super::leg::ci_run;
use super::merged_tree::{MergedTree, Untaken};
use super::story::{self, StoryEnding, ToldItem};
use super::verified::{self, CountedItem};
use super::{ITEMS, PLAN};
use crate::base::advised_command::CommandLine;
use crate::base::relative::Line;
use crate::base::text::{head, listed_in_part, one_line, plural, tail};
use crate::bundle::merged::{RESULT, bundle_of};
use crate::bundle::opened::OpenedBundle;
use crate::bundle::tree::MadeTree;
use crate::ci::Provider;
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::error::Error;
use crate::context::options::{RunOptions, Storing};
use crate::definition::load::DIRECTORY;
use crate::engine::changes::{ChangeKind, ChangedFile, Changes, KnownStart, TreeChanges, TreeIds};
use crate::engine::outcome::GOES_ON;
use crate::engine::reused::ReusedRun;
use crate::engine::verification::{Confirmed, Reason, Verification, VerifiedExtent};
use crate::fanout::item::{ItemId, LegKey};
use crate::fanout::item_plan::{Plan, ReusedItem};
use crate::fanout::matrix::{FORMATS, Fleet, JobSite};
use crate::fanout::merged_runs::{Absence, BundledRun, ItemStanding, MergeContent, Merged, MergedItem};
use crate::fanout::severity::{severity, worst};
use crate::files::replace::replace;
use crate::files::{read, transient};
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::writer::{EventTime, Journal};
use crate::process::clock::Clock;
use crate::report::closing::{CONFLICTING, REFUSING, UNREADABLE};
use crate::report::digest::green::EACH_ALONE;
use crate::report::formats::junit;
use crate::report::reading_place::RunDownload;
use crate::report::{self, html};
use crate::session::end::bundler::{Bundler, file_name};
use crate::session::end::notify::tell_of_merge;
use crate::session::end::publication::{Publication, ReportedEnd, Stage, publisher};
use crate::session::read::page_detail;

/// Of how many items there are pages, and how many bytes of them.
// For each, a bundle is opened once more. The worst items come first, so those without a page are the better ones.
const MOST_PAGES: usize = 100;
const MAX_PAGES: usize = 100 << 20;

/// The exit code of changes that do not fit each other.
// The exit code of a blocked run: here, too, a person has to decide.
const CONFLICT: u8 = 5;

/// Of how many items it is told what they printed, and how many bytes at most.
// The worst come first, and each takes another reading of its bundle.
const MOST_PRINTED: usize = 50;
const MAX_PRINTED: usize = 3 * 1024;

/// What is merged.
#[derive(Clone, Debug)]
pub(crate) struct MergeOptions {
    /// The file with the plan.
    pub(crate) plan: PathBuf,
    /// Where the runs are.
    pub(crate) from: Vec<PathBuf>,
    /// Whether checks are made once more where the changes of all items are together.
    pub(crate) confirm: bool,
    /// Values of the context of the loops, for these checks.
    pub(crate) context: Vec<(String, String)>,
    /// How the result is reported.
    pub(crate) run: RunOptions,
}

impl Session<'_> {
    /// Merges the runs of a plan. Returns the exit code.
    pub(crate) fn merge(&self, options: &MergeOptions) -> Result<u8, Error> {
        let plan = self.read_plan(&options.plan)?;
        let collected = collect(&options.from, &plan, self)?;
        let ci_run = ci_run(&options.run);
        let ci_run = ci_run.as_ref().map(Line::as_str);
        let merged = Merged::of(&plan, &collected.readings, ci_run).map_err(|refusal| {
            Error::refused(refusal.to_string()).with_hint(
                "merge what the legs of this plan left, and nothing else; other archives are ignored",
            )
        })?;
        let merged = merged.with_put_off(&collected.put_off, &plan, &collected.readings);
        let together = Together::of(&plan, &merged, &collected, self);
        let (plan, merged, collected, together) = (&plan, &merged, &collected, &together);
        let mut result = MergeResult { plan, merged, collected, together, confirmation: None };
        if options.confirm {
            result.confirmation = result.confirm(options, self)?;
        }
        result.report(options, self)
    }
}

/// What the items changed, brought together.
#[derive(Default)]
struct Together {
    /// None where the commit of the plan is not at hand.
    tree: Option<MergedTree>,
    /// The commit as a run found and left it.
    unchanged: Option<TreeIds>,
    /// Items whose changes do not fit those of others: which, with which, and in which files.
    conflicts: Vec<(ItemId, Vec<ItemId>, Vec<String>)>,
    /// Why the changes of an item are not among them.
    unknown: Vec<(ItemId, String)>,
}

impl Together {
    /// Applies the changes of verified items, leg by leg.
    fn of(plan: &Plan, merged: &Merged, collected: &Collected, session: &Session<'_>) -> Self {
        let mut together = Self::default();
        let mut absent = None;
        match MergedTree::new(plan, session) {
            Ok(tree) => together.tree = Some(tree),
            Err(error) => absent = Some(error.message().to_owned()),
        }
        let standing: BTreeMap<&ItemId, &ItemStanding> =
            merged.items.iter().map(|item| (&item.id, &item.standing)).collect();
        // In the order of the plan, not of arrival: merging the same bundles again has to make the same tree.
        for id in plan.legs.iter().flat_map(|leg| &leg.items) {
            // Changes of an item that is not verified would be delivered without a check.
            let Some(ItemStanding::Ran { reading, verified: true, .. }) = standing.get(id) else { continue };
            let (Some(item), Some(facts)) = (plan.item(id), &collected.facts[*reading]) else { continue };
            together.unchanged = together.unchanged.or_else(|| facts.unchanged.clone());
            if !facts.is_changed {
                continue;
            }
            let taken = match (&mut together.tree, facts.source.open()) {
                (Some(tree), Ok(bundle)) => tree.take(item, &bundle),
                (None, _) => Err(Untaken::Unknown(absent.clone().unwrap_or_default())),
                (Some(_), Err(why)) => Err(Untaken::Unknown(why.into())),
            };
            match taken {
                Ok(()) => {}
                Err(Untaken::Conflict { with, files }) => together.conflicts.push((id.clone(), with, files)),
                Err(Untaken::Unknown(why)) => together.unknown.push((id.clone(), why)),
            }
        }
        together
    }

    /// Says why there is no one tree with all changes.
    fn missing(&self, plan: &Plan) -> Option<String> {
        if let Some((id, with, files)) = self.conflicts.first() {
            return Some(conflict(plan, id, with, files));
        }
        let (id, why) = self.unknown.first()?;
        Some(format!("the changes of `{id}` are not known: {why}"))
    }
}

/// Says which legs contradict each other, and where.
fn conflict(plan: &Plan, id: &ItemId, with: &[ItemId], files: &[String]) -> String {
    let leg = |id: &ItemId| plan.leg_of(id).map_or_else(String::new, |leg| format!("{} ({id})", leg.key));
    let others = if with.is_empty() {
        "another leg".to_owned()
    } else {
        with.iter().map(leg).collect::<Vec<_>>().join(", ")
    };
    format!("the changes of {} conflict with those of {others} in {}", leg(id), listed_in_part(files))
}

/// What the runs of a plan are worth, with everything that is told of it.
struct MergeResult<'m> {
    plan: &'m Plan,
    merged: &'m Merged,
    collected: &'m Collected,
    together: &'m Together,
    /// What checks said of the merged tree, if somebody wanted them.
    confirmation: Option<Confirmation>,
}

impl MergeResult<'_> {
    fn exit_code(&self) -> u8 {
        let conflict = (!self.together.conflicts.is_empty()).then_some(CONFLICT);
        let refused = match &self.confirmation {
            Some(Confirmation::Refused { exit_code, .. }) => Some(*exit_code),
            Some(Confirmation::Whole(_) | Confirmation::None { .. }) | None => None,
        };
        worst([self.merged.exit_code].into_iter().chain(conflict).chain(refused))
    }

    /// Makes the checks of the items once more that changes of others concern, where all changes are together.
    fn confirm(&self, options: &MergeOptions, session: &Session<'_>) -> Result<Option<Confirmation>, Error> {
        // A merge that is red stays red whatever the checks say.
        if self.exit_code() != 0 || self.extent() == VerifiedExtent::Whole {
            return Ok(None);
        }
        let none = |why: String| Ok(Some(Confirmation::None { why }));
        let Some(tree) = &self.together.tree else {
            return none("the commit of the plan is not at hand".to_owned());
        };
        if let Some(why) = self.together.missing(self.plan) {
            return none(why);
        }
        let asked = self.merged.items.iter().filter_map(|merged| {
            // Its earlier run knew nothing of what other items change now.
            if let Some(ReusedItem { item, proof }) = self.plan.reused(&merged.id) {
                return Some(AskedItem { item, checks: &proof.checks });
            }
            let (_, facts) = self.of(merged)?;
            let checks = &facts.verification.as_ref()?.checks;
            Some(AskedItem { item: self.plan.item(&merged.id)?, checks })
        });
        let directory = self.directory(options, session);
        let own = options.from.iter().chain([&options.plan]).map(|path| session.path(path)).collect();
        let how = ConfirmOptions { context: &options.context, run: &options.run, directory: &directory, own };
        let mut concerned = Vec::new();
        for one in asked {
            if confirm::is_concerned(self.plan, tree, one.item, &how, session)? {
                concerned.push(one);
            }
        }
        confirm::confirm(self.plan, tree, &concerned, &how, session).map(Some)
    }

    /// Returns the directory of the reports.
    fn directory(&self, options: &MergeOptions, session: &Session<'_>) -> PathBuf {
        match &options.run.report_dir {
            Some(directory) => session.path(directory),
            None => session.path(Path::new(&format!("ll-merge-{}", head(&self.plan.plan_id.to_string(), 8)))),
        }
    }

    /// Tells what of the merged tree was verified. Where the items changed nothing, each was verified on the tree of the plan,
    /// and so was all of it.
    fn extent(&self) -> VerifiedExtent {
        // The run of a single item has seen all the changes that there are.
        let is_alone = self.merged.items.len() < 2;
        let is_changed = |item: &MergedItem| {
            matches!(item.standing, ItemStanding::Ran { verified: true, .. })
                && self.of(item).is_some_and(|(_, facts)| facts.is_changed)
        };
        let is_confirmed = matches!(self.confirmation, Some(Confirmation::Whole(_)));
        if self.merged.items.iter().any(is_changed) && !is_alone && !is_confirmed {
            VerifiedExtent::EachAlone
        } else {
            VerifiedExtent::Whole
        }
    }

    /// Says what verified all of it.
    fn verification(&self) -> Verification {
        let items = self.merged.items.iter().filter_map(|item| self.counted(item));
        let items: Vec<CountedItem<'_>> = items.collect();
        let tree = self.together.tree.as_ref().map(|tree| tree.tree.clone());
        let tree = tree.or_else(|| self.together.unchanged.as_ref().map(|ids| ids.tree.clone()));
        let reasons = match (&self.confirmation, self.exit_code()) {
            (_, 0) => Vec::new(),
            (Some(Confirmation::Refused { .. }), _) => vec![Reason::NotConfirmed],
            (Some(Confirmation::Whole(_) | Confirmation::None { .. }) | None, _) => vec![Reason::Unobserved],
        };
        verified::of_merge(&items, tree, self.extent(), reasons)
    }

    /// Returns what counts of an item that was to be verified.
    fn counted<'i>(&'i self, item: &'i MergedItem) -> Option<CountedItem<'i>> {
        let is_once_more = match &self.confirmation {
            Some(Confirmation::Whole(items)) => items.contains(&item.id),
            Some(Confirmation::None { .. } | Confirmation::Refused { .. }) | None => false,
        };
        let earlier = self.plan.reused(&item.id);
        let confirmed = match (item.standing.is_verified(), is_once_more, earlier) {
            (false, ..) => Confirmed::No,
            (true, true, _) => Confirmed::ClosingPass,
            (true, false, Some(_)) => Confirmed::Reused,
            (true, false, None) => Confirmed::InRun,
        };
        if let Some(ReusedItem { proof, .. }) = earlier {
            let tree = Some(proof.tree.clone());
            return Some(CountedItem { id: &item.id, verification: None, tree, confirmed });
        }
        let verification = self.of(item)?.1.verification.as_ref();
        let tree = verification.and_then(|verification| verification.tree.clone());
        Some(CountedItem { id: &item.id, verification, tree, confirmed })
    }

    /// Returns what the word `verified` says of all of it.
    fn verified(&self) -> Value {
        match (self.exit_code(), self.extent()) {
            (0, VerifiedExtent::Whole) => json!(true),
            (0, VerifiedExtent::EachAlone) => json!(EACH_ALONE),
            (1.., _) => json!(false),
        }
    }

    /// Returns the run that counts for an item, and what is known of it.
    fn of(&self, item: &MergedItem) -> Option<(&BundledRun, &Facts)> {
        let ItemStanding::Ran { reading, .. } = &item.standing else { return None };
        match (&self.collected.readings[*reading].found, &self.collected.facts[*reading]) {
            (MergeContent::Run(run), Some(facts)) => Some((run, facts)),
            (MergeContent::Run(_) | MergeContent::Unreadable { .. } | MergeContent::Foreign { .. }, _) => {
                None
            }
        }
    }

    /// Makes the reports, and tells the CI system.
    fn report(&self, options: &MergeOptions, session: &Session<'_>) -> Result<u8, Error> {
        let failed = |error: std::io::Error| Error::failed("cannot write the reports", &error);
        let directory = self.directory(options, session);
        fs::create_dir_all(&directory).map_err(failed)?;
        // Another merge into this directory would change reports while they are packed. Where directories cannot be locked,
        // the bundle that is packed then is refused as damaged.
        let turn = read::directory(&directory).map_err(failed)?;
        let _best_effort = turn.lock();
        remove_earlier(&directory);
        // Not in `.loops`: the checkout stays as it is, so that a merge can run anywhere and twice.
        let scratch = transient::directory("ll-merge-").map_err(failed)?;
        let name = story::name(self.plan);
        let random = uuid::Uuid::new_v4().as_fields().0;
        let files = RunFiles::new(&scratch.path().join(DIRECTORY), &name, Clock::start().now(), random);
        self.write_journal(&files, session).map_err(failed)?;
        let pages = self.write_pages(&directory, session).map_err(failed)?;
        let mut run = options.run.clone();
        run.report_dir = Some(directory.clone());
        // What is stored has to have the files that are written last.
        run.storing = match options.run.storing {
            Storing::LaterStep => Storing::LaterStep,
            Storing::Ours(_) | Storing::Nobody => Storing::Nobody,
        };
        let provider = publisher(&run).unwrap_or_else(|| Provider::detect(&|_| None));
        let bundler = Bundler::of_merge(self.made(), scratch.path().join(DIRECTORY), session);
        let root = session.cwd.clone();
        let mut publication = Publication::new(&run, provider, &root, &name, &files, Some(bundler), session);
        publication.has_pages_of(pages);
        let artifact = publication.artifact_name().to_owned();
        publication.begin(&run, name.as_str(), Stage::Over, session);
        let published = publication.tell(ReportedEnd::Journaled { files: &files, unwritten: None }, session);
        // After the reports of the run, because `result.json` is that of the run with more fields.
        self.write_rest(&directory, &files, session);
        let code = self.tell(options, &directory, &artifact, session);
        // After everything else: it takes time and decides nothing.
        tell_of_merge(published.news, &run, &files, session);
        code
    }

    /// Writes what happened as the journal of a run.
    fn write_journal(&self, files: &RunFiles, session: &Session<'_>) -> std::io::Result<()> {
        files.make_scratch()?;
        let start = self.tree_at_start();
        let changes = self.changes(files);
        let items = self.all_told();
        let (exit_code, verification) = (self.exit_code(), self.verification());
        let ending = StoryEnding { exit_code, reason: self.reason(), changes, verification };
        let events = story::events(self.plan, files.instance(), start, &items, self.remarks(), ending);
        let mut journal = Journal::create(files, session.redactor.clone())?;
        let now = Clock::start().now();
        // A batch has one time, and each event has its own here.
        for (at, event) in events {
            journal.append(vec![event], EventTime { now, elapsed: at }, &[])?;
        }
        Ok(())
    }

    /// Returns the items, the worst first: that is what people look for, and of a long journal reports keep the beginning.
    fn worst_first(&self) -> Vec<&MergedItem> {
        let mut items: Vec<&MergedItem> = self.merged.items.iter().collect();
        items.sort_by_key(|item| {
            let is_missing = matches!(item.standing, ItemStanding::Missing { .. });
            Reverse((is_missing, severity(item.standing.exit_code())))
        });
        items
    }

    /// Writes a page for each item of which there is a run, as far as there is room, and returns which have one. Pages that an
    /// earlier merge left are not pages of these runs.
    fn write_pages(&self, directory: &Path, session: &Session<'_>) -> std::io::Result<BTreeSet<String>> {
        let directory = directory.join(ITEMS);
        fs::create_dir_all(&directory)?;
        let (mut pages, mut room) = (BTreeSet::new(), MAX_PAGES);
        for item in self.worst_first() {
            let target = directory.join(format!("{}.html", item.id));
            let page = (pages.len() < MOST_PAGES).then(|| self.page(item, session)).flatten();
            match page.filter(|page| page.len() <= room) {
                Some(page) => {
                    room -= page.len();
                    replace(&target, page)?;
                    pages.insert(item.id.to_string());
                }
                None => drop(fs::remove_file(&target)),
            }
        }
        Ok(pages)
    }

    /// Makes the page of an item from its journal. What its bundle calls a report is anybody's.
    fn page(&self, item: &MergedItem, session: &Session<'_>) -> Option<String> {
        let (_, facts) = self.of(item)?;
        // It was read before; a file that is gone by now is no reason to know less of the others.
        let mut opened = facts.source.open().ok()?;
        let mut digest = std::mem::take(&mut opened.digest);
        digest.reader.remote = Some(RunDownload::Bundle(format!("{ITEMS}/{}.zip", item.id)));
        let detail = page_detail::of_bundle(&opened, &digest, session);
        let page = html::render(&digest, detail);
        // The job of the leg has hidden the secrets that it knew; this one may know others.
        Some(session.redactor.text(&page).into_owned())
    }

    /// Tells of every item that was not skipped.
    fn all_told(&self) -> Vec<ToldItem> {
        let mut looks = MOST_PRINTED;
        let tell = |item: &MergedItem| {
            let mut told = self.told(item)?;
            if told.is_there && told.exit_code != 0 && looks > 0 {
                looks -= 1;
                told.printed = self.printed(item).unwrap_or_default();
            }
            Some(told)
        };
        let told: Vec<ToldItem> = self.worst_first().into_iter().filter_map(tell).collect();
        self.apart_from_items().into_iter().map(|(_, told)| told).chain(told).collect()
    }

    /// Tells of what makes the merge red besides items: it has a step of its own, so that no report is without it. Each has the
    /// name of the file or the item that it is about.
    fn apart_from_items(&self) -> Vec<(&str, ToldItem)> {
        let told = |state: &str, sentence: String, exit_code| ToldItem {
            id: state.to_owned(),
            place: String::new(),
            sentence,
            printed: String::new(),
            exit_code,
            is_there: false,
            took: Duration::ZERO,
            usage: crate::evaluate::model::Usage::default(),
        };
        let lost = self.merged.lost.iter().take(MOST_PRINTED).map(|(shown, why)| {
            let says = format!("{shown} cannot be read, and nothing says of which item it is: {why}");
            (shown.as_str(), told(UNREADABLE, says, 4))
        });
        let conflicts = self.together.conflicts.iter().take(MOST_PRINTED).map(|(id, with, files)| {
            (id.as_str(), told(CONFLICTING, conflict(self.plan, id, with, files), CONFLICT))
        });
        let refusal = self.refusal().map(|(id, says, code)| (id.as_str(), told(REFUSING, says, code)));
        lost.chain(conflicts).chain(refusal).collect()
    }

    /// Returns what a check says of all changes together, if it says no: its item, a sentence, and the exit code.
    fn refusal(&self) -> Option<(&ItemId, String, u8)> {
        match &self.confirmation {
            Some(Confirmation::Refused { item, exit_code, .. }) => {
                Some((item, self.words_on_the_whole().unwrap_or_default(), *exit_code))
            }
            Some(Confirmation::Whole(_) | Confirmation::None { .. }) | None => None,
        }
    }

    /// Returns suites for what makes the merge red besides runs that failed.
    fn red_suites(&self) -> Vec<junit::Suite> {
        let apart = self.apart_from_items().into_iter();
        apart.map(|(name, told)| junit::red(name, &told.id, &told.sentence)).collect()
    }

    /// Looks up what the step of an item printed that decided how it ended.
    fn printed(&self, item: &MergedItem) -> Option<String> {
        let (_, facts) = self.of(item)?;
        // It was read before; a file that is gone by now is no reason to know less of the others.
        let OpenedBundle { digest, .. } = facts.source.open().ok()?;
        let step = digest.deciding_step().or_else(|| digest.last_failing())?;
        let (output, said) = (step.output(), step.verdict_line());
        Some(format!("{}, step {}: {said}\n{}", step.state, step.number, tail(&output, MAX_PRINTED)))
    }

    fn told(&self, item: &MergedItem) -> Option<ToldItem> {
        let id = item.id.to_string();
        if let Some(ReusedItem { proof, .. }) = self.plan.reused(&item.id) {
            return Some(ToldItem {
                id,
                place: format!("reused: {}, key {}", proof.words_by_run(), head(&proof.key.to_string(), 12)),
                sentence: proof.words_by_run(),
                printed: String::new(),
                exit_code: item.standing.exit_code(),
                is_there: true,
                took: Duration::ZERO,
                usage: crate::evaluate::model::Usage::default(),
            });
        }
        let leg = item.leg.as_ref().map(LegKey::to_string).unwrap_or_default();
        let exit_code = item.standing.exit_code();
        match (&item.standing, self.of(item)) {
            (ItemStanding::Ran { attempt, .. }, Some((run, facts))) => Some(ToldItem {
                id,
                place: format!("leg {leg}, attempt {attempt}: the run {}", run.run),
                sentence: facts.sentence.clone(),
                printed: String::new(),
                exit_code,
                is_there: true,
                took: Duration::from_millis(run.duration_ms),
                usage: facts.usage.clone(),
            }),
            (ItemStanding::Ran { .. } | ItemStanding::Reused | ItemStanding::Skipped { .. }, _) => None,
            (ItemStanding::Missing { why, .. }, _) => Some(ToldItem {
                id,
                place: format!("leg {leg}"),
                sentence: format!("leg {leg}: {why}"),
                printed: String::new(),
                exit_code,
                is_there: false,
                took: Duration::ZERO,
                usage: crate::evaluate::model::Usage::default(),
            }),
        }
    }

    /// Says in one sentence what all of it is worth; what is missing comes first.
    fn reason(&self) -> String {
        let missing: Vec<String> = self
            .merged
            .missing(self.plan)
            .iter()
            .map(|(leg, items)| {
                let labels = items.iter().filter_map(|item| Some(self.plan.item(&item.id)?.label()));
                format!("{} ({})", leg.key, one_line(&labels.collect::<Vec<_>>().join(", "), 120))
            })
            .collect();
        let mut parts = Vec::new();
        if !missing.is_empty() {
            let shown: Vec<&str> = missing.iter().take(20).map(String::as_str).collect();
            let more =
                if missing.len() > 20 { format!(" and {} more", missing.len() - 20) } else { String::new() };
            parts.push(format!("leg_missing: {}{more}", shown.join(", ")));
        }
        let put_off =
            self.merged.items.iter().filter(|item| {
                matches!(&item.standing, ItemStanding::Missing { absence: Absence::PutOff, .. })
            });
        let put_off: Vec<&str> = put_off.map(|item| item.id.as_str()).collect();
        if !put_off.is_empty() {
            parts.push(format!("not begun before the deadline: {}", listed_in_part(&put_off)));
        }
        parts.extend(self.merged.lost.iter().take(3).map(|(shown, why)| {
            format!("{shown} cannot be read, and nothing says of which item it is: {}", one_line(why, 100))
        }));
        parts.extend(
            self.together.conflicts.iter().map(|(id, with, files)| conflict(self.plan, id, with, files)),
        );
        if self.plan.verifiable().next().is_none() {
            let reason = self.plan.reason.as_ref().map_or("every item was skipped", Line::as_str);
            parts.push(reason.to_owned());
        }
        parts.push(self.counts());
        parts.extend(self.words_on_the_whole());
        parts.join("; ")
    }

    /// Says what is known of all changes together.
    fn words_on_the_whole(&self) -> Option<String> {
        match &self.confirmation {
            Some(Confirmation::Refused { item, says, .. }) => Some(format!(
                "not confirmed: with the changes of all items, the checks of `{item}` say no: {says}"
            )),
            Some(Confirmation::None { why }) => {
                Some(format!("verified: {EACH_ALONE}: nobody can check their changes together: {why}"))
            }
            Some(Confirmation::Whole(items)) if self.exit_code() == 0 && items.is_empty() => {
                Some("verified as a whole: no item works on what another one changed".to_owned())
            }
            Some(Confirmation::Whole(items)) if self.exit_code() == 0 => {
                let count = plural(items.len() as u64, "item");
                Some(format!(
                    "verified as a whole: the checks of {count} passed once more on the merged tree"
                ))
            }
            None if self.exit_code() == 0 && self.extent() == VerifiedExtent::EachAlone => Some(format!(
                "verified: {EACH_ALONE}: nobody has checked their changes together; `merge --confirm` does"
            )),
            Some(Confirmation::Whole(_)) | None => None,
        }
    }

    fn counts(&self) -> String {
        let count = |is: &dyn Fn(&ItemStanding) -> bool| {
            self.merged.items.iter().filter(|item| is(&item.standing)).count()
        };
        let verified = count(&ItemStanding::is_verified);
        let (reused, all) = (self.plan.reused.len(), self.plan.verifiable().count());
        let reused = if reused > 0 { format!(", {reused} of them by earlier runs") } else { String::new() };
        let skipped = count(&|one| matches!(one, ItemStanding::Skipped { .. }));
        let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        match all {
            0 => format!("nothing to run{skipped}"),
            _ => format!("{verified} of {} verified{reused}{skipped}", plural(all as u64, "item")),
        }
    }

    /// Returns what is to be said beside the result.
    fn remarks(&self) -> Vec<String> {
        let unknown = self
            .together
            .unknown
            .iter()
            .map(|(id, why)| format!("the changes of `{id}` cannot be delivered: {why}"));
        let ignored = self.merged.ignored.iter().map(|(shown, why)| format!("{shown} was ignored: {why}"));
        let outside = self.outside().into_iter().map(|(id, paths)| {
            format!("`{id}` changed files outside of its scope: {}", listed_in_part(paths))
        });
        let superseded = (!self.merged.superseded.is_empty())
            .then(|| format!("replaced by later attempts: {}", listed_in_part(&self.merged.superseded)));
        unknown.chain(outside).chain(ignored).chain(superseded).collect()
    }

    fn outside(&self) -> BTreeMap<&ItemId, Vec<&str>> {
        let mut outside: BTreeMap<&ItemId, Vec<&str>> = BTreeMap::new();
        for (id, path) in self.together.tree.iter().flat_map(|tree| &tree.outside) {
            outside.entry(id).or_default().push(path);
        }
        outside
    }

    /// Returns the commit of the plan as a tree.
    fn tree_at_start(&self) -> Option<KnownStart> {
        let of_tree = |tree: &MergedTree| TreeIds {
            commit: tree.base.clone(),
            tree: tree.base_tree.clone(),
            // Nothing is staged in a tree that was never checked out.
            index: Some(tree.base_tree.clone()),
            rest: None,
        };
        let ids = self.together.tree.as_ref().map(of_tree).or_else(|| self.together.unchanged.clone())?;
        Some(KnownStart {
            ids,
            stands_for: None,
            entries: Vec::new(),
            before: Vec::new(),
            unseen: Vec::new(),
            ignored: Vec::new(),
            place: None,
            known_index: None,
        })
    }

    /// Returns what the items changed together.
    fn changes(&self, files: &RunFiles) -> Changes {
        let Some(tree) = &self.together.tree else {
            return match (self.together.missing(self.plan), &self.together.unchanged) {
                (Some(unknown), _) => Changes::Unknown { unknown },
                (None, Some(ids)) => Changes::Known(Box::new(TreeChanges::none(ids.clone()))),
                (None, None) => {
                    Changes::Unknown { unknown: "no run that counts says on which tree it was".to_owned() }
                }
            };
        };
        let found = match tree.workspace.changes(&tree.base_tree, &tree.tree) {
            Ok(found) => found,
            Err(stop) => return Changes::Unknown { unknown: stop.to_string() },
        };
        let (patch, no_patch) = match tree.patch(&files.patch()) {
            Ok(bytes) => (Some(bytes).filter(|_| tree.is_changed()), None),
            Err(why) => (None, Some(why.to_string())),
        };
        // Counts of lines are for people: without them, the files are still named.
        let mut lines = tree.lines().unwrap_or_default();
        let changed = |change: crate::forge::change::FileChange| ChangedFile {
            lines: lines.remove(&change.path),
            kind: match (&change.old, &change.new) {
                (None, _) => ChangeKind::Added,
                (Some(_), None) => ChangeKind::Deleted,
                (Some(_), Some(_)) => ChangeKind::Modified,
            },
            size: change.new.as_ref().map(|new| new.size),
            path: change.path,
            from: None,
            tracked: true,
            run: None,
            not_in_patch: None,
        };
        let ids = |tree_id: &crate::base::object::ObjectId| TreeIds {
            commit: tree.base.clone(),
            tree: tree_id.clone(),
            index: Some(tree.base_tree.clone()),
            rest: None,
        };
        Changes::Known(Box::new(TreeChanges {
            start: ids(&tree.base_tree),
            end: ids(&tree.tree),
            files: found.into_iter().map(changed).collect(),
            more: 0,
            commits: Vec::new(),
            before: Vec::new(),
            as_committed: !tree.is_changed(),
            patch,
            no_patch,
            unseen: Vec::new(),
        }))
    }

    /// Returns the tree for the bundle that a delivery takes.
    fn made(&self) -> Option<MadeTree> {
        let tree = self.together.tree.as_ref()?;
        let missing = self.together.missing(self.plan).map(|why| Line::of(&why));
        Some(MadeTree {
            git: tree.workspace.git().clone(),
            base: tree.base.clone(),
            tree: tree.tree.clone(),
            missing,
        })
    }

    /// Writes what only a merge has, as far as there is room for it. What is not there is said, and decides nothing.
    fn write_rest(&self, directory: &Path, files: &RunFiles, session: &Session<'_>) {
        if let Err(error) = self.write_beside(directory, files) {
            session
                .talk
                .warning(&format!("not every report was written: {error}; merge again when there is room"));
        }
    }

    /// Writes what only a merge has: the items, their suites, the plan, and their bundles.
    fn write_beside(&self, directory: &Path, files: &RunFiles) -> std::io::Result<()> {
        write(&directory.join(PLAN), &self.plan.to_text())?;
        let suites = self.merged.items.iter().filter_map(|item| match (&item.standing, self.of(item)) {
            (standing, Some((_, facts))) => {
                let mut suite = facts.suite.clone();
                suite.name = item.id.to_string().into();
                // Such as a success that nothing verified, which is green in the suite of its run. What goes on later is
                // skipped there.
                if ![0, GOES_ON].contains(&standing.exit_code()) && suite.failures + suite.errors == 0 {
                    junit::add_red(&mut suite, "not verified", &facts.sentence);
                }
                Some(suite)
            }
            (standing @ ItemStanding::Missing { why, .. }, None) => {
                Some(junit::absent(item.id.as_str(), why, standing.exit_code() == GOES_ON))
            }
            (ItemStanding::Reused, None) => {
                let reused = self.plan.reused(&item.id)?;
                Some(junit::reused(item.id.as_str(), &reused.proof))
            }
            (ItemStanding::Ran { .. } | ItemStanding::Skipped { .. }, None) => None,
        });
        write(&directory.join("junit.xml"), &junit::file(suites.chain(self.red_suites())))?;
        let items = directory.join(ITEMS);
        for item in &self.merged.items {
            let Some((_, facts)) = self.of(item) else { continue };
            let target = items.join(format!("{}.zip", item.id));
            // Renamed when it is whole: a merge that is killed must not leave half a bundle under the name of an item.
            let part = items.join(format!(".ll-loop-{}-{}", files.instance(), item.id));
            // The bundles may be those of an earlier merge into this directory.
            if facts.source.file != target {
                facts.source.copy(&part).map_err(|why| std::io::Error::other(why.to_string()))?;
                fs::rename(&part, &target)?;
            }
        }
        let text =
            serde_json::to_string_pretty(&self.result(directory, files)).expect("a JSON value has a text");
        write(&directory.join(RESULT), &(text + "\n"))
    }

    /// Returns the result: that of a run, and what is known of each item.
    fn result(&self, directory: &Path, files: &RunFiles) -> Value {
        // On a full disk, that report may be missing; the fields of the merge stand by themselves.
        let written = read::bytes(&directory.join(RESULT), 64 << 20).ok();
        let mut result: Value =
            written.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_else(|| json!({}));
        let bundle = file_name(files);
        let fields = json!({
            "plan_id": self.plan.plan_id,
            "commit": self.plan.commit,
            "verified": self.verified(),
            "exit_code": self.exit_code(),
            "bundle": directory.join(&bundle).is_file().then_some(bundle),
            "items": self.merged.items.iter().map(|item| self.item(item)).collect::<Vec<_>>(),
            "missing": self.merged.missing(self.plan).iter().map(|(leg, _)| leg.key.to_string()).collect::<Vec<_>>(),
            "superseded": self.merged.superseded,
            "ignored": self.merged.ignored.iter().map(|(shown, why)| json!({"file": shown, "why": why})).collect::<Vec<_>>(),
            "unreadable": self.merged.lost.iter().map(|(shown, why)| json!({"file": shown, "why": why})).collect::<Vec<_>>(),
            "conflicts": self.together.conflicts.iter()
                .map(|(id, with, files)| json!({"item": id, "with": with, "files": files})).collect::<Vec<_>>(),
            "outside": self.outside().iter().map(|(id, paths)| json!({"item": id, "files": paths})).collect::<Vec<_>>(),
            "resume": self.merged.handed_off(),
            "rerun": self.merged.unsettled(),
        });
        if let (Some(result), Value::Object(fields)) = (result.as_object_mut(), fields) {
            result.extend(fields);
        }
        result
    }

    fn item(&self, item: &MergedItem) -> Value {
        let run = self.of(item).map(|(run, facts)| (run, &facts.sentence));
        let proof = self.plan.reused(&item.id).map(|reused| &reused.proof);
        let attempt = match &item.standing {
            ItemStanding::Ran { attempt, .. } => Some(*attempt),
            ItemStanding::Missing { .. } | ItemStanding::Reused | ItemStanding::Skipped { .. } => None,
        };
        let verified = item.standing.is_verified();
        let reason = match &item.standing {
            ItemStanding::Ran { .. } => run.map(|(_, sentence)| sentence.clone()),
            ItemStanding::Reused => proof.map(ReusedRun::words_by_run),
            ItemStanding::Missing { why, .. } => Some(why.clone()),
            ItemStanding::Skipped { reason } => Some(reason.clone()),
        };
        let took = run.map(|(run, _)| run.duration_ms).or_else(|| proof.map(|proof| proof.duration_ms));
        let mut value = json!({
            "id": item.id,
            "leg": item.leg,
            "loop": self.plan.verifiable().find(|one| one.id == item.id).map(|planned| &planned.r#loop),
            "standing": match &item.standing {
                ItemStanding::Ran { .. } => "ran",
                ItemStanding::Missing { absence: Absence::PutOff, .. } => "put_off",
                ItemStanding::Missing { absence: Absence::Lost | Absence::Unusable, .. } => "missing",
                ItemStanding::Reused => "reused",
                ItemStanding::Skipped { .. } => "skipped",
            },
            "attempt": attempt,
            "run_id": run.map(|(run, _)| &run.run),
            "outcome": run.and_then(|(run, _)| run.outcome),
            "exit_code": item.standing.exit_code(),
            "verified": verified,
            "reason": reason,
            "runs": took.map(|took| json!({"duration_ms": took, "verified": verified})).into_iter().collect::<Vec<_>>(),
        });
        if let Some(proof) = proof {
            value["reused"] = json!(proof);
        }
        value
    }

    /// Sets the outputs that only a merge has, stores the reports, and says how it ended.
    fn tell(
        &self,
        options: &MergeOptions,
        directory: &Path,
        artifact: &str,
        session: &Session<'_>,
    ) -> Result<u8, Error> {
        let code = self.exit_code();
        session.talk.note(&format!("{} (exit {code}); reports in {}", self.reason(), directory.display()));
        let unsettled = self.merged.unsettled();
        if !self.merged.lost.is_empty() {
            session.talk.note("take away what cannot be read, or get it again, and merge once more");
        }
        if !unsettled.is_empty() {
            let legs = listed_in_part(unsettled.iter().map(LegKey::as_str));
            let again = CommandLine::of("run")
                .option("--plan", &options.plan.to_string_lossy())
                .option("--rerun", &directory.to_string_lossy());
            session.talk.note(&format!("what is not verified is run again with `{again}`: {legs}"));
        }
        let Audience::Ci(provider) = &options.run.audience else { return Ok(code) };
        let matrix = |wanted: &BTreeSet<LegKey>| {
            let fleet = Fleet::of(self.plan, JobSite::default(), |leg| wanted.contains(&leg.key));
            let format = FORMATS.iter().find(|format| format.name() == "github");
            format.and_then(|format| format.text(&fleet).ok().flatten()).unwrap_or_default()
        };
        let outputs = [("resume", matrix(&self.merged.handed_off())), ("rerun", matrix(&unsettled))];
        provider
            .announce(&outputs)
            .map_err(|error| Error::failed("cannot set the outputs of the job", &error))?;
        if let Storing::Ours(upload) = options.run.storing {
            let stored = session.store_reports(upload, artifact, "merge", directory)?;
            if stored {
                provider
                    .announce(&[("artifact-name", artifact.to_owned())])
                    .map_err(|error| Error::failed("cannot set the outputs of the job", &error))?;
            }
        }
        Ok(code)
    }
}

/// Removes what an earlier merge into this directory says of itself, and its bundle: where this one cannot be written, nothing
/// is left that says something else than its exit code.
fn remove_earlier(directory: &Path) {
    let bundle = bundle_of(directory);
    let reports = report::formats::FORMATS.iter().map(|format| format.file_name.to_owned());
    for name in reports.chain(bundle) {
        let _best_effort = fs::remove_file(directory.join(name));
    }
}

/// Writes a report, whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    fault::write(text.len() as u64)?;
    replace(path, text)
}
