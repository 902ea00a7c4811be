//! `ll-loop plan`: makes a plan of items and legs, for the jobs of a CI system.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::{ArgAction, Args, ValueEnum};

use crate::base::run_key::RunKey;
use crate::base::text::{head, plural};
use crate::base::time::human;
use crate::ci::{Provider, is_ci};
use crate::cli::flags::{self, ReachFlags, pair};
use crate::cli::misread::Misread;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::error::Error;
use crate::context::options::{ReuseStoreAt, ReuseUse};
use crate::definition::vendored::Copies;
use crate::fanout::candidates::PlanOptions;
use crate::fanout::each::{Each, words as split};
use crate::fanout::item_plan::{Plan, ReusedItem, WeightFrom};
use crate::fanout::lock::concurrency;
use crate::fanout::matrix::{FORMATS, Fleet, JobSite, MatrixFormat};
use crate::fanout::partition::Partition;

/// Beyond so many, the rest of the items that need not run is counted.
const SHOWN: usize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PartitionName {
    /// The longest first, each onto the leg with the least work
    #[default]
    Lpt,
    /// By the id of the item alone, so that an item that comes or goes moves no other one
    Hash,
}

/// What keeps two fan-outs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LockName {
    /// `concurrency` of a job on GitHub
    Github,
}

/// What the jobs find where they run.
#[derive(Debug, Args)]
struct PlaceFlags {
    /// The image of the jobs, with `gitlab` or `k8s`. On Kubernetes, the default is the image of this version
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    image: Option<String>,
    /// With `k8s`: the volume claim that holds the checkout. Each pod works on a clone
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), required_if_eq("matrix", "k8s"))]
    repo_claim: Option<String>,
    /// With `k8s`: the volume claim that keeps the reports of the legs
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), required_if_eq("matrix", "k8s"))]
    claim: Option<String>,
    /// With `gitlab`, `buildkite` or `k8s`: more arguments for `run`, in every leg. Quotes keep words together
    #[arg(long, value_name = "ARGUMENTS", value_parser = words, allow_hyphen_values = true)]
    run_args: Option<ArgumentWords>,
}

/// The arguments of `plan`.
#[derive(Debug, Args)]
pub(in crate::cli) struct PlanArgs {
    /// The names of loops in `.loops/`, or the paths of loop files
    #[arg(value_name = "LOOP", required = true)]
    loops: Vec<String>,
    /// Make an item of each value of a parameter: `P=a,b`, `P=@FILE` (lines, or a JSON list), or `P=cmd:ARGV` (the lines
    /// that a command prints; no shell reads it). Two of them make the product
    #[arg(long, value_name = "P=VALUES", value_parser = Each::parse, action = ArgAction::Append)]
    each: Vec<Each>,
    /// Make an item of each directory with tracked files that matches, such as `packages/*`: the directory is the scope,
    /// and the parameter `path`. Where no directory matches, `**/go.mod` stands for the directories with such a file
    #[arg(long, value_name = "GLOB", value_parser = NonEmptyStringValueParser::new())]
    per_path: Option<String>,
    /// Leave out the items in whose scope nothing changed since this commit; `auto`: since the base of the event
    #[arg(long, value_name = "BASE", value_parser = NonEmptyStringValueParser::new())]
    changed_since: Option<String>,
    /// Set a context value, for a scope that uses it
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    context: Vec<(String, String)>,
    /// How many jobs there may be; `auto`: 20
    #[arg(long, value_name = "N", value_parser = legs, default_value = "auto")]
    legs: Legs,
    /// How long items took before: the `result.json` of a merge, or a file of the same form; several are read in order,
    /// the oldest first. `run:latest` is that of the last merge on GitHub
    #[arg(long, value_name = "FILE", action = ArgAction::Append)]
    weights: Vec<String>,
    /// How items come to their legs
    #[arg(long, value_enum, default_value_t = PartitionName::Lpt)]
    partition: PartitionName,
    /// Print the jobs in the form of a CI system. On GitHub, the default is `github`
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|format| format.name())))]
    matrix: Option<String>,
    /// Write the jobs to this file, and not to the standard output
    #[arg(long, value_name = "FILE", requires = "matrix")]
    jobs: Option<PathBuf>,
    /// Print the lines of a workflow that keep two runs of the plan apart. It locks what all items work on, so that the
    /// plan has to have them all
    #[arg(long, value_name = "HOW", value_enum, conflicts_with_all = ["matrix", "changed_since"])]
    lock: Option<LockName>,
    #[command(flatten)]
    place: PlaceFlags,
    /// Plan also the items that an earlier run has verified with the same inputs
    #[arg(long)]
    no_reuse: bool,
    /// Look for results of earlier runs in refs of a git remote, too. The default REMOTE is `origin`
    #[arg(long, value_name = "git[=REMOTE]", value_parser = flags::reuse_store, conflicts_with = "no_reuse")]
    reuse_store: Option<ReuseStoreAt>,
    /// Plan although the checkout differs from its commit
    #[arg(long)]
    dirty: bool,
    /// Where the plan is written
    #[arg(long, short, value_name = "FILE", default_value = "plan.json")]
    output: PathBuf,
    /// Plan copies of loops from other repositories as they are
    #[arg(long)]
    accept_changes: bool,
    #[command(flatten)]
    reach: ReachFlags,
}

/// Several arguments in one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ArgumentWords(Vec<String>);

fn words(text: &str) -> Result<ArgumentWords, Misread> {
    split(text)
        .map(ArgumentWords)
        .map_err(|_| Misread("it is empty, a quote has no end, or an unquoted `#` would begin a comment"))
}

/// How many jobs there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Legs(Option<usize>);

fn legs(text: &str) -> Result<Legs, Misread> {
    match text {
        "auto" => Ok(Legs(None)),
        number => match number.parse() {
            Ok(0) | Err(_) => Err(Misread("write a number from 1, or `auto`")),
            Ok(number) => Ok(Legs(Some(number))),
        },
    }
}

pub(in crate::cli) fn plan(args: &PlanArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let provider = Provider::detect(&session.env.lookup());
    let format = format(args.matrix.as_deref(), &provider);
    let place = place(args, format, session)?;
    let plan = session.plan(&PlanOptions {
        loops: args.loops.clone(),
        each: args.each.clone(),
        per_path: args.per_path.clone(),
        changed_since: args.changed_since.clone(),
        context: args.context.clone(),
        legs: args.legs.0,
        weights: args.weights.clone(),
        partition: match args.partition {
            PartitionName::Lpt => Partition::Lpt,
            PartitionName::Hash => Partition::Hash,
        },
        reuse: if args.no_reuse { ReuseUse::Never } else { ReuseUse::Allowed },
        reuse_store: args.reuse_store.clone().unwrap_or_default(),
        audience: audience(&provider, session),
        dirty: args.dirty,
        written: [Some(&args.output), args.jobs.as_ref()].into_iter().flatten().cloned().collect(),
        outside: args.reach.allow_outside,
        copies: Copies::accepted_if(args.accept_changes),
    })?;
    let fleet = Fleet::of(&plan, place, |_| true);
    let jobs = format.map(|format| format.text(&fleet)).transpose().map_err(|too_much| {
        Error::refused(format!("the plan is too large: {too_much}")).with_hint(too_much.advice)
    })?;
    // Only what can be started is written.
    session.keep_plan(&plan, &args.output)?;
    let text = jobs.as_ref().and_then(Option::as_deref);
    announce(&plan, text, &provider)?;
    if let Some(LockName::Github) = args.lock {
        // Without items there are no jobs that could be kept apart.
        if !plan.items.is_empty() {
            output.data(&concurrency(&plan));
        }
        session.talk.note(&first_line(&plan, args));
    } else if jobs.is_some() {
        let text = text.map_or_else(String::new, |text| format!("{text}\n"));
        match &args.jobs {
            Some(file) => session.keep_jobs(&text, file)?,
            None => output.data(&text),
        }
        session.talk.note(&first_line(&plan, args));
    } else {
        output.data(&overview(&plan, args));
    }
    Ok(0)
}

/// Returns whom the jobs of the plan are shown to.
fn audience(provider: &Provider, session: &Session<'_>) -> Audience {
    if is_ci(&session.env.lookup()) { Audience::Ci(provider.clone()) } else { Audience::Person }
}

/// Returns what the jobs find where they run. What the format has no place for is refused.
fn place(
    args: &PlanArgs,
    format: Option<&dyn MatrixFormat>,
    session: &Session<'_>,
) -> Result<JobSite, Error> {
    let PlaceFlags { image, repo_claim, claim, run_args } = &args.place;
    let has = |takes: fn(&dyn MatrixFormat) -> bool| format.is_some_and(takes);
    for (is_given, is_taken, what, with) in [
        (image.is_some(), has(|format| format.has_image()), "`--image`", "`gitlab` or `k8s`"),
        (repo_claim.is_some(), has(|format| format.has_volumes()), "`--repo-claim`", "`k8s`"),
        (claim.is_some(), has(|format| format.has_volumes()), "`--claim`", "`k8s`"),
        (
            run_args.is_some(),
            has(|format| format.has_commands()),
            "`--run-args`",
            "`gitlab`, `buildkite` or `k8s`",
        ),
    ] {
        if is_given && !is_taken {
            return Err(Error::refused(format!("nothing that is printed has {what}"))
                .with_hint(format!("`--matrix` with {with} says what jobs do")));
        }
    }
    let env = session.env.lookup();
    let known = |name: &str| env(name).filter(|value| !value.is_empty());
    Ok(JobSite {
        image: image.clone(),
        repo_claim: repo_claim.clone(),
        claim: claim.clone(),
        directory: if has(|format| format.has_commands()) { session.prefix()? } else { String::new() },
        plan: args.output.to_string_lossy().into_owned(),
        pipeline: known("CI_PIPELINE_ID"),
        planner: known("CI_JOB_NAME").or_else(|| known("BUILDKITE_JOB_ID")),
        arguments: run_args.as_ref().map_or_else(Vec::new, |words| words.0.clone()),
    })
}

/// Returns the format that was asked for, or the one of the CI system that reads outputs.
fn format(asked: Option<&str>, provider: &Provider) -> Option<&'static dyn MatrixFormat> {
    let name = asked.or_else(|| provider.stores_artifacts().then_some("github"))?;
    FORMATS.iter().find(|format| format.name() == name).copied()
}

/// Sets the outputs of the job. Without items there is no matrix, because an empty one is an error on GitHub.
fn announce(plan: &Plan, jobs: Option<&str>, provider: &Provider) -> Result<(), Error> {
    let any = !plan.items.is_empty();
    let mut outputs = vec![
        ("any", any.to_string()),
        ("count", plan.legs.len().to_string()),
        ("plan-artifact", artifact(plan, provider)),
    ];
    outputs.extend(jobs.filter(|_| any).map(|jobs| ("matrix", jobs.to_owned())));
    provider.announce(&outputs).map_err(|error| Error::failed("cannot set the outputs of the job", &error))
}

/// Names the artifact that holds the plan.
fn artifact(plan: &Plan, provider: &Provider) -> String {
    let key = RunKey::new(Some(&plan.stem()), "");
    match provider.job().id {
        Some(job) => format!("ll-plan-{}", job.name_for(&key)),
        None => format!("ll-plan-{key}"),
    }
}

fn first_line(plan: &Plan, args: &PlanArgs) -> String {
    let written = args.output.display();
    let saved = human(Duration::from_millis(plan.saved_ms()));
    if let Some(reason) = &plan.reason {
        let saved = if plan.reused.is_empty() { String::new() } else { format!(", which saves {saved}") };
        return format!("nothing to run: {reason}{saved} (plan in {written})");
    }
    let saved = match plan.reused.len() {
        0 => String::new(),
        count => format!(", {count} reused, which saves {saved}"),
    };
    let (items, legs) = (plural(plan.items.len() as u64, "item"), plural(plan.legs.len() as u64, "leg"));
    let commit = head(plan.commit.as_str(), 8);
    let skipped = match plan.skipped.len() {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    format!("{items} on {legs} at {commit}{skipped}{saved} (plan in {written})")
}

fn overview(plan: &Plan, args: &PlanArgs) -> String {
    let mut out = format!("{}\n", first_line(plan, args));
    for leg in &plan.legs {
        let estimate = Duration::from_millis(leg.estimate_ms);
        let _ = writeln!(out, "  {}  {:>7}  {}", leg.key, human(estimate), plan.title(leg));
    }
    let guessed = plan.items.iter().filter(|item| item.weight_from != WeightFrom::Runs).count();
    if guessed > 0 && !plan.items.is_empty() {
        let of = plural(guessed as u64, "item");
        let _ = writeln!(out, "how long {of} may take is a guess: `--weights` reads what earlier runs took");
    }
    for skipped in plan.skipped.iter().take(SHOWN) {
        let _ = writeln!(out, "  skipped {}: {}", skipped.id, skipped.reason);
    }
    more_of(plan.skipped.len(), "skipped", &mut out);
    for ReusedItem { item, proof } in plan.reused.iter().take(SHOWN) {
        let _ = writeln!(out, "  reused {}: {}", item.id, proof.words_by_run());
    }
    more_of(plan.reused.len(), "reused", &mut out);
    out
}

fn more_of(all: usize, what: &str, out: &mut String) {
    let more = all.saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(out, "  {what} {more} more");
    }
}
