//! `plan`: makes a plan of the loops here. Nothing is run but the commands that print values, and those by which loops that say
//! `reuse` know their tools.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::candidates::{Candidate, LoopHere, PlanOptions};
use super::since::{ChangesSinceCommit, SinceCommit};
use super::whole_tree::WholeTree;
use super::{reused_items, values};
use crate::base::name::VarName;
use crate::base::object::ObjectId;
use crate::base::relative::{Line, RelativePath};
use crate::base::run_key::RunKey;
use crate::base::sum::Sum;
use crate::base::territory::{ScopePath, Territory};
use crate::base::text::{listed, listed_in_part, one_line, plural};
use crate::bundle::earlier_report;
use crate::bundle::merged::RESULT;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::options::BeginOptions;
use crate::definition::load::DIRECTORY;
use crate::engine::changes::TreeEntry;
use crate::fanout::MOST_ITEMS;
use crate::fanout::item::Namer;
use crate::fanout::item_plan::{
    FanoutLoop, Item, MAX_PLAN, Plan, PlanParts, ReusedItem, Skipped, WeightFrom, stem,
};
use crate::fanout::partition::{groups, legs, widest};
use crate::fanout::spread::{Dimension, product};
use crate::fanout::weights::{Durations, weigh};
use crate::files::links;
use crate::files::read::{self, MIB};
use crate::files::replace::deliver;
use crate::forge::github::artifacts::RunsMeant;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;
use crate::process::clock::Clock;
use crate::repository::{self, changed};
use crate::session::prepare::claim;
use crate::session::prepare::prepared::Prepared;
use crate::session::prepare::variables::resolve;
use crate::session::read::fetch::{ArtifactRequest, artifact};
use crate::session::start::changed_since::{LoopRepository, uncommitted};

/// The most bytes of a file with weights.
const MAX_WEIGHTS: u64 = 64 * MIB;

/// The job that merges, in the workflow of this project.
const MERGE: &str = "merge";

impl Session<'_> {
    /// Plans the items of these loops, and their legs. Items that an earlier run stands for are on none. Writes nothing.
    pub(crate) fn plan(&self, options: &PlanOptions) -> Result<Plan, Error> {
        let loops = self.loops_of(options)?;
        let root = one_root(&loops)?;
        let git = repository::at(root, self);
        let commit = git.id(&repository::head()).map_err(|why| {
            Error::refused(format!(
                "a plan names the commit that its legs check out, and there is none: {why}"
            ))
            .with_hint("commit something first; `actions/checkout` makes a checkout in CI")
        })?;
        let written = options.written.iter().map(|file| self.path(file)).collect::<Vec<_>>();
        let differs = if options.dirty {
            differences(root, &written, self)?
        } else {
            refuse_changes(&git, &written)?;
            Vec::new()
        };
        let PlanOptions { each, per_path, .. } = options;
        let mut dimensions = Vec::new();
        for each in each {
            dimensions.push(values::each(each.clone(), root, self)?);
        }
        if let Some(pattern) = per_path {
            dimensions.push(values::per_path(pattern, &git, self)?);
        }
        check_names(&dimensions, &loops)?;
        let candidates = candidates(&loops, &dimensions, options, self)?;
        let (candidates, skipped) = match &options.changed_since {
            Some(base) => changed_only(candidates, base, &loops, self)?,
            None => (candidates, Vec::new()),
        };
        // After `--changed-since`, because the key of every item that remains is made by running the tools of its loop.
        let (candidates, reused) = reused_items::take_out(candidates, &loops, &commit, options, self)?;
        let is_nothing = candidates.is_empty();
        let reason = is_nothing.then(|| Line::of(&why_none(&skipped, &reused, &dimensions, options)));
        let mut items: Vec<Item> = candidates.into_iter().map(|candidate| candidate.item).collect();
        let planned: Vec<FanoutLoop> = loops.iter().map(|one| one.planned.clone()).collect();
        weigh(&mut items, &durations(options, &planned, self)?);
        let groups = groups(&items);
        warn_of_one_leg(&items, groups.len(), self);
        Ok(Plan::of(PlanParts {
            commit,
            differs,
            created: Clock::start().now(),
            loops: planned,
            legs: legs(&items, &groups, options.legs, options.partition),
            items,
            skipped,
            reused,
            reason,
        }))
    }

    /// Writes a plan to a file, whole or not at all.
    pub(crate) fn keep_plan(&self, plan: &Plan, path: &Path) -> Result<(), Error> {
        let path = self.path(path);
        deliver(&path, plan.to_text().as_bytes())
            .map_err(|error| Error::unwritten(format!("cannot write the plan to {}", path.display()), &error))
    }

    /// Writes the jobs of a plan to a file, whole or not at all.
    pub(crate) fn keep_jobs(&self, jobs: &str, path: &Path) -> Result<(), Error> {
        let path = self.path(path);
        deliver(&path, jobs.as_bytes())
            .map_err(|error| Error::unwritten(format!("cannot write the jobs to {}", path.display()), &error))
    }

    /// Returns the working directory as seen from the top of the repository: empty, or with a slash at its end.
    pub(crate) fn prefix(&self) -> Result<String, Error> {
        repository::at(&self.cwd, self)
            .line(&Call::new("rev-parse").with(&["--show-prefix"]))
            .map_err(|why| Error::refused(format!("cannot see where in the repository this is: {why}")))
    }

    /// Finds and checks the loops.
    fn loops_of(&self, options: &PlanOptions) -> Result<Vec<LoopHere>, Error> {
        let mut loops: Vec<LoopHere> = Vec::new();
        for name in &options.loops {
            let located = self.find(name, options.outside)?;
            let mut prepared = self.prepare(located.taking(options.copies))?;
            let (planned, untold) = (planned(&prepared)?, prepared.untold());
            if loops.iter().any(|one| one.planned.name == planned.name) {
                self.talk.note(&format!("the loop `{}` was named twice, and is planned once", planned.name));
                continue;
            }
            loops.push(LoopHere { prepared, planned, untold });
        }
        Ok(loops)
    }
}

fn planned(prepared: &Prepared) -> Result<FanoutLoop, Error> {
    let Prepared { located, loaded, machine, .. } = prepared;
    let below = || located.path.strip_prefix(&located.root).ok()?.to_str();
    let file = match &located.name {
        Some(_) => None,
        None => Some(below().and_then(|file| RelativePath::parse(file).ok()).ok_or_else(|| {
            Error::refused(format!("{} is outside of the repository, where no leg finds it", located.shown))
                .with_hint("put the loop into `.loops/`")
        })?),
    };
    let definition_sha256 =
        Sum::parse(&loaded.digest).map_err(|error| Error::failed("cannot name the loop", &error))?;
    Ok(FanoutLoop { name: machine.name.clone(), definition_sha256, file })
}

/// Returns the directory in which all of the loops run.
fn one_root(loops: &[LoopHere]) -> Result<&Path, Error> {
    let mut roots = loops.iter().map(|one| one.prepared.located.root.as_path());
    let first = roots.next().ok_or_else(|| Error::refused("no loop was named"))?;
    match roots.find(|root| *root != first) {
        None => Ok(first),
        Some(other) => Err(Error::refused(format!(
            "the loops of a plan run in one directory, and these run in {} and {}",
            first.display(),
            other.display()
        ))
        .with_hint("make a plan for each directory")),
    }
}

/// Returns how a checkout differs from its commit, without the files that planning writes.
fn differences(root: &Path, written: &[PathBuf], session: &Session<'_>) -> Result<Vec<TreeEntry>, Error> {
    let tree = WholeTree::look(root, &[], session)?;
    let written: Vec<PathBuf> = written.iter().map(|file| links::real(file)).collect();
    let is_own = |entry: &TreeEntry| {
        let path = tree.top.join(&entry.path);
        written.contains(&links::real(&path)) || !entry.tracked && is_plan(&path)
    };
    let differs: Vec<TreeEntry> = tree.start.entries.iter().filter(|entry| !is_own(entry)).cloned().collect();
    if differs.len() > MOST_DIFFERENCES {
        let count = differs.len();
        return Err(Error::refused(format!(
            "the checkout differs from its commit in {count} files, and a plan names at most {MOST_DIFFERENCES}"
        ))
        .with_hint("commit them, or name in `.gitignore` what no leg needs"));
    }
    Ok(differs)
}

/// Of a checkout that differs from its commit in more files than this, no plan is made.
// Each is written into the plan, and into the first event of every run.
const MOST_DIFFERENCES: usize = 1000;

/// Refuses a checkout that differs from its commit: no leg would see the difference.
fn refuse_changes(git: &Git, written: &[PathBuf]) -> Result<(), Error> {
    let status = git
        .line(&uncommitted())
        .map_err(|why| Error::refused(format!("cannot see whether the checkout is clean: {why}")))?;
    let top = git.line(&Call::new("rev-parse").with(&["--show-toplevel"]));
    let top = top.map_err(|why| Error::refused(format!("cannot find the top of the repository: {why}")))?;
    let written: Vec<PathBuf> = written.iter().map(|file| links::real(file)).collect();
    let is_own = |file: &&str| {
        let path = links::real(&Path::new(&top).join(file));
        written.contains(&path) || is_untracked(file, &status) && is_plan(&path)
    };
    let mut others = changed(&status).filter(|file| !is_own(file));
    let Some(first) = others.next() else { return Ok(()) };
    let more = others.count();
    let more = if more > 0 { format!(" and {}", plural(more as u64, "more file")) } else { String::new() };
    let hint = if is_untracked(first, &status) {
        "legs check out the commit: commit the file, or name it in `.gitignore` if no leg needs it; `--dirty` plans without it"
    } else {
        "legs check out the commit: commit the changes first, or plan without them with `--dirty`"
    };
    Err(Error::refused(format!("the checkout differs from its commit: `{first}`{more}")).with_hint(hint))
}

fn is_untracked(file: &str, status: &str) -> bool {
    status.split('\0').any(|change| change.strip_prefix("?? ") == Some(file))
}

/// Tells whether a file is a plan that was made earlier, which no leg needs.
fn is_plan(path: &Path) -> bool {
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    is_json && read::bytes(path, MAX_PLAN).is_ok_and(|text| Plan::parse(&text).is_ok())
}

/// Refuses parameters that no loop declares, or that were named twice.
fn check_names(dimensions: &[Dimension], loops: &[LoopHere]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for Dimension { name, .. } in dimensions {
        if !seen.insert(name) {
            return Err(Error::refused(format!("the values of `{name}` are given twice"))
                .with_hint("give all of them in one `--each`; `--per-path` gives those of `path`"));
        }
        if !loops.iter().any(|one| one.declares(name)) {
            let names = listed(loops.iter().map(|one| one.planned.name.as_str()), "and");
            return Err(Error::refused(format!("the parameter `{name}` is not declared in {names}"))
                .with_hint(format!("declare it in the loop: `parameters: {{{name}: {{type: string}}}}`")));
        }
    }
    Ok(())
}

/// Makes an item of each loop and each combination of the values that it takes.
fn candidates(
    loops: &[LoopHere],
    dimensions: &[Dimension],
    options: &PlanOptions,
    session: &Session<'_>,
) -> Result<Vec<Candidate>, Error> {
    let too_many = || {
        Error::refused(format!("the plan would have more than {MOST_ITEMS} items"))
            .with_hint("plan a part of them: fewer values, or `--changed-since`")
    };
    let mut namer = Namer::default();
    let mut all = Vec::new();
    for (place, one) in loops.iter().enumerate() {
        let own: Vec<&Dimension> =
            dimensions.iter().filter(|dimension| one.declares(&dimension.name)).collect();
        let files = RunFiles::fresh(
            &one.prepared.located.root.join(DIRECTORY),
            &one.planned.name,
            Clock::start().now(),
        );
        for params in product(&own).map_err(|_| too_many())? {
            if all.len() == MOST_ITEMS {
                return Err(too_many());
            }
            let item = item(one, &files, params, &mut namer, options, session)?;
            all.extend(item.map(|(item, territory)| Candidate { item, territory, place }));
        }
    }
    Ok(all)
}

fn item(
    one: &LoopHere,
    files: &RunFiles,
    params: BTreeMap<VarName, String>,
    namer: &mut Namer,
    options: &PlanOptions,
    session: &Session<'_>,
) -> Result<Option<(Item, Territory)>, Error> {
    if let Some((name, _)) = params.iter().find(|(_, value)| session.redactor.text(value) != value.as_str()) {
        return Err(Error::refused(format!(
            "a value of `{name}` holds a secret, and a plan is stored where others read it"
        ))
        .with_hint("let the loop read the secret from its environment"));
    }
    let given: Vec<(String, String)> =
        params.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let begin = BeginOptions { params: given, context: options.context.clone(), ..BeginOptions::default() };
    let context = resolve(&one.prepared, &begin, files, session)?;
    let territory = territory(one, &params, &context, options, session)?;
    let Some(id) = namer.name(&one.planned.name.file_stem(), &params) else { return Ok(None) };
    let item = Item {
        id,
        r#loop: one.planned.name.clone(),
        scope: territory.shown(),
        params,
        // Weighed when all items are known: those without runs take the median of the others.
        weight_ms: 0,
        weight_from: WeightFrom::Default,
        proves: None,
    };
    Ok(Some((item, territory)))
}

/// Returns what the run of an item claims: its directory where there is one for each item, or else what the loop says.
fn territory(
    one: &LoopHere,
    params: &BTreeMap<VarName, String>,
    context: &Map<String, Value>,
    options: &PlanOptions,
    session: &Session<'_>,
) -> Result<Territory, Error> {
    let path = params.iter().find(|(name, _)| options.per_path.is_some() && name.as_str() == values::PATH);
    match path {
        Some((_, path)) => Ok(claim::of_paths(&one.prepared, [path.clone()], &session.redactor)),
        None => claim::territory(&one.prepared, context, session, &session.redactor),
    }
}

/// Leaves out the items in whose scope nothing changed. In doubt, an item runs.
fn changed_only(
    candidates: Vec<Candidate>,
    base: &str,
    loops: &[LoopHere],
    session: &Session<'_>,
) -> Result<(Vec<Candidate>, Vec<Skipped>), Error> {
    // All loops of a plan have one root, so that any of them leads to the repository.
    let Some(first) = loops.first() else { return Ok((candidates, Vec::new())) };
    let repository = LoopRepository::of(&first.prepared, session)?;
    let found = match repository.find(base, &WorkflowEvent::read(&session.env.lookup()))? {
        Ok(found) => found,
        Err(why) => {
            session.talk.note(&format!("{why}, so every item runs"));
            return Ok((candidates, Vec::new()));
        }
    };
    let since = ChangesSinceCommit::look(&repository, found)?;
    // A change of the loop itself concerns all its items.
    let of_loop = |one: &LoopHere| -> Vec<ScopePath> {
        let files = one.prepared.files().into_iter();
        files.map(|(file, _)| links::real(&file).to_string_lossy().into_owned().into()).collect()
    };
    let of_loops: Vec<Vec<ScopePath>> = loops.iter().map(of_loop).collect();
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    let mut doubts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for candidate in candidates {
        let looked = match &loops[candidate.place].untold {
            Some(why) => SinceCommit::Unknown(why.clone()),
            None => since.look_at(&of_loops[candidate.place], &candidate.territory.paths),
        };
        match looked {
            SinceCommit::Changed => {}
            SinceCommit::Unknown(why) => doubts.entry(why).or_default().push(candidate.item.id.to_string()),
            SinceCommit::Quiet => {
                let scope = listed(&candidate.item.scope, "and");
                let reason = format!("nothing in {scope} changed since {}", since.shown);
                skipped.push(Skipped { id: candidate.item.id, reason: Line::of(&reason) });
                continue;
            }
        }
        kept.push(candidate);
    }
    // Thousands of items may have one reason.
    for (why, items) in doubts {
        let verb = if items.len() == 1 { "runs" } else { "run" };
        session.talk.note(&format!("{why}, so {} {verb}", listed_in_part(&items)));
    }
    Ok((kept, skipped))
}

/// Says why a plan has no items.
fn why_none(
    skipped: &[Skipped],
    reused: &[ReusedItem],
    dimensions: &[Dimension],
    options: &PlanOptions,
) -> String {
    if !reused.is_empty() {
        return format!("earlier runs have verified {}, same inputs", plural(reused.len() as u64, "item"));
    }
    let empty = dimensions.iter().find(|dimension| dimension.values.is_empty());
    match (skipped.first(), &options.per_path, empty) {
        (Some(_), ..) => {
            let base = options.changed_since.as_deref().unwrap_or("");
            format!("nothing in the scope of {} changed since `{base}`", plural(skipped.len() as u64, "item"))
        }
        (None, Some(pattern), Some(empty)) if empty.name.as_str() == values::PATH => {
            format!("no directory with tracked files matches `{pattern}`")
        }
        (None, _, Some(empty)) => format!("`{}` has no values", empty.name),
        (None, _, None) => "no item was left".to_owned(),
    }
}

/// Reads what items took before.
fn durations(
    options: &PlanOptions,
    loops: &[FanoutLoop],
    session: &Session<'_>,
) -> Result<Vec<Durations>, Error> {
    let mut all = Vec::new();
    for from in &options.weights {
        match artifact(from) {
            Some(what) => all.extend(fetched(what, loops, session)),
            None => all.push(of_file(from, session)?),
        }
    }
    Ok(all)
}

fn of_file(file: &str, session: &Session<'_>) -> Result<Durations, Error> {
    let wrong = |why: String| Error::refused(format!("cannot read weights from `{file}`: {why}"));
    let text =
        read::bytes(&session.path(Path::new(file)), MAX_WEIGHTS).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| {
        wrong(error.to_string()).with_hint(
            "weights are the `result.json` of `merge`, or `{\"items\": [{\"id\": …, \"runs\": [{\"duration_ms\": …, \"verified\": …}]}]}`",
        )
    })
}

/// Reads the durations of an earlier merge from its artifact. They only balance legs: without them, there is a plan all
/// the same.
fn fetched(what: &str, loops: &[FanoutLoop], session: &Session<'_>) -> Option<Durations> {
    let stem = stem(loops);
    let runs = RunsMeant::of_loop(Some(&stem), Some(RunKey::new(Some(MERGE), "")));
    let asked = ArtifactRequest { what, run: None, repository: None, runs, allow_untrusted: false, session };
    let local = match asked.local() {
        Ok(local) => local,
        // The first plan of a workflow finds nothing, which is nothing to be warned of.
        Err(error) if error.kind() == Kind::Absent => {
            session.talk.note(&format!("{}: nothing is known of how long items take", error.message()));
            return None;
        }
        Err(error) => {
            session.talk.warning(&format!("how long items took is not known: {}", error.message()));
            return None;
        }
    };
    let text = earlier_report::read(&local.path, RESULT, MAX_WEIGHTS).map_err(|error| error.to_string());
    let found = text.and_then(|text| text.ok_or_else(|| format!("it has no {RESULT}")));
    match found.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string())) {
        Ok(durations) => Some(durations),
        Err(why) => {
            let why = one_line(&why, 300);
            session.talk.warning(&format!("how long items took is not known: {}: {why}", local.shown));
            None
        }
    }
}

/// Warns where all items are on one leg because of what they claim, and says what to do.
fn warn_of_one_leg(items: &[Item], groups: usize, session: &Session<'_>) {
    if items.len() < 2 || groups != 1 {
        return;
    }
    let count = plural(items.len() as u64, "item");
    if items.iter().all(|item| item.scope == ["."]) {
        let parameter = items.iter().flat_map(|item| item.params.keys()).next();
        let advice = match parameter {
            Some(name) => {
                format!("write `scope: [src/${{context.{name}}}]` in the loop, or plan with `--per-path`")
            }
            None => "give each loop its own `scope`".to_owned(),
        };
        session.talk.warning(&format!(
            "all {count} claim the whole directory (`.`), so they run one after the other on one leg: {advice}"
        ));
    } else if let Some((widest, path)) = widest(items) {
        session.talk.warning(&format!(
            "all {count} run one after the other on one leg: `{}` claims `{path}`, and with it what the others work on; plan it alone, or give it a narrower `scope`",
            one_line(widest.id.as_str(), 100)
        ));
    }
}

/// The id of the commit that a checkout is at.
pub(super) fn head(root: &Path, session: &Session<'_>) -> Option<ObjectId> {
    repository::at(root, session).id(&repository::head()).ok()
}
