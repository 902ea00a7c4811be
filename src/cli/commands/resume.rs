//! `ll-loop resume`: finds a run that was left, folds its journal, and lets it go on.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::base::diagnostic::nearest;
use crate::base::name::StateName;
use crate::base::redact;
use crate::base::text::one_line;
use crate::base::time::{Timestamp, human, millis};
use crate::cli::args::{LlmArgs, ResumeArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::definition::load::{self, DIRECTORY};
use crate::engine::event::{Changes, LoopComplete, LoopResume, LoopStart, Overrides};
use crate::engine::past::{Past, Standing};
use crate::engine::{Engine, Start};
use crate::journal::files::RunFiles;
use crate::journal::known::{self, KnownRun, Status};
use crate::journal::reader::{ReadError, Whole, read_whole};
use crate::journal::streams::Streams;
use crate::journal::writer::Journal;
use crate::machine::Machine;
use crate::machine::context::{self, Given};
use crate::report::Sinks;
use crate::run::clock::Clock;
use crate::run::replay::{Known, Left, Level, Replay, ReplayError};

use super::agents::{self, Decided};
use super::claim;
use super::finish;
use super::incoming::Incoming;
use super::prepare::{Prepared, cwd, prepare, reaching, refused};
use super::run::{self, Cancelling, Face, Launch, Scene};
use super::trust;
use super::worktree::Worktree;

pub(in crate::cli) fn resume(args: &ResumeArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let face = run::face(&args.manner, env)?;
    let incoming = args.from.as_ref().map(|from| Incoming::get(from, args, env, output)).transpose()?;
    let (root, files, began) = match &incoming {
        Some(incoming) => (incoming.root.clone(), incoming.files.clone(), incoming.began.clone()),
        None => match choose(args.name.as_deref().unwrap_or_default(), output)? {
            Chosen::Left(root, run) => {
                let KnownRun { files, ends, .. } = *run;
                let began = ends.start.map(|(_, began)| began);
                let began = began.ok_or_else(|| never_began(files.instance(), files.stem()))?;
                (root, files, began)
            }
            Chosen::Unfinished(run) => {
                let finished = finish::finish(&run, Some((&args.manner, &face)), env, output)?;
                return Ok(finished.complete.exit_code);
            }
        },
    };
    let located = load::find(&began.source.file, &root).map_err(|error| refused(&error))?;
    let mut prepared = prepare(reaching(located, &args.manner.reach), |_| {}, output)?;
    trust::check(args.manner.allow_untrusted, env, &prepared, &root)?;
    if let Some(incoming) = &incoming {
        incoming.check(&prepared, env, args)?;
    }
    let worktree = if files.worktree().is_dir() {
        let worktree = Worktree::plan(&prepared.located.root, &files, env)?;
        worktree.root().clone_into(&mut prepared.located.root);
        Some(worktree)
    } else {
        None
    };
    let manner = run::at_home(&args.manner, &face, &prepared)?;
    let cancelling = Cancelling::listen()?;
    cancelling.block_on(async |mut cancel| {
        let clock = Clock::start();
        let mut context = began.context;
        context.extend(args.context.iter().map(|(name, value)| (name.clone(), json!(value))));
        let redactor = output.redactor.clone();
        let territory = claim::territory(&prepared, &context, env, &redactor)?;
        let wanted = claim::wanted(&files, &prepared.machine.name, &territory, env, clock.now());
        // From here on nobody else can go on with it, nor see it as left.
        let claim = claim::take(wanted, args.manner.queue, &files, &mut cancel, output).await?;
        let mut scene = Scene { manner: &manner, env, output, face, prepared, redactor };
        let mut decided = None;
        if let Some(incoming) = incoming {
            let definition = scene.prepared.definition(&root);
            let rehearse = |files: &RunFiles| rehearse(args, &mut scene, files);
            decided = incoming.settle(&definition, (env, output), args.accept_changes, rehearse)?;
        }
        let Open { mut scene, start, how, past, left, sinks, whole, told, decided } =
            open(args, scene, &files, decided)?;
        adjust(&mut scene.prepared.machine, &start.event);
        let after = (scene.manner, &scene.face);
        let journal = run::begin_files(&files, after)
            .and_then(|()| Journal::go_on(&files, scene.redactor.clone(), whole));
        let journal = journal.map_err(|error| {
            files.release();
            claim::cannot_save(&error)
        })?;
        say(files.instance(), &how, output);
        let rested = told.last.map(|last| clock.now().since(last)).unwrap_or_default();
        let agents = decided.agents;
        let launch = Launch { scene, files, journal, sinks, clock, agents, territory, claim, worktree };
        let driven = launch
            .drive(cancel, told.elapsed, left, |machine| Engine::resume(machine, start, past, how, rested));
        Box::pin(driven).await
    })
}

/// A run that can go on, and everything that it goes on with.
struct Open<'l> {
    scene: Scene<'l>,
    start: Start,
    how: Box<LoopResume>,
    past: Past,
    left: Left,
    sinks: Sinks,
    whole: Whole,
    told: Told,
    decided: Decided,
}

/// Folds the journal of a run that is not yet here, and finds out whether it can go on. Nothing is written.
fn rehearse(args: &ResumeArgs, scene: &mut Scene<'_>, files: &RunFiles) -> Result<Decided, CliError> {
    let (_, left, _) = fold(files, scene, args.accept_changes, &mut Sinks::default())?;
    continued(args, scene, files, left, None).map(|continued| continued.decided)
}

/// Folds the journal, and finds out whether and how the run can go on. Nothing is written before that is known.
fn open<'l>(
    args: &ResumeArgs,
    mut scene: Scene<'l>,
    files: &RunFiles,
    decided: Option<Decided>,
) -> Result<Open<'l>, CliError> {
    let Scene { manner, env, .. } = scene;
    let mut sinks = run::sinks(&scene, false, files);
    let (whole, left, told) = fold(files, &mut scene, args.accept_changes, &mut sinks)?;
    let Continued { level, left, how, event, decided } = continued(args, &mut scene, files, left, decided)?;
    let start = Start {
        context: event.context.clone(),
        event,
        at: level.at,
        key: files.instance().to_owned(),
        env: env.all().clone(),
        run_dir: run::absolute(&files.scratch()).to_string_lossy().into_owned(),
        deadline: manner.deadline.map(|deadline| level.past.elapsed() + run::before_the_end(deadline)),
        timeout: None,
        budget: decided.budget,
        on_handoff: decided.on_handoff,
        captured: indexmap::IndexMap::new(),
    };
    Ok(Open { scene, start, how, past: level.past, left, sinks, whole, told, decided })
}

/// How a run goes on.
struct Continued {
    level: Level,
    left: Left,
    how: Box<LoopResume>,
    event: LoopStart,
    decided: Decided,
}

/// Finds out whether and how a run whose journal was folded can go on.
fn continued(
    args: &ResumeArgs,
    scene: &mut Scene<'_>,
    files: &RunFiles,
    mut left: Left,
    decided: Option<Decided>,
) -> Result<Continued, CliError> {
    let Scene { env, output, .. } = *scene;
    let level = left.take_outermost().ok_or_else(|| never_began(files.instance(), files.stem()))?;
    let mut how = standing(files.instance(), level.standing())?;
    for inner in left.iter() {
        if let Standing::Lost(state) = inner.standing() {
            return Err(lost(&state));
        }
    }
    let Prepared { machine, library, .. } = &mut scene.prepared;
    let mut event = level.past.start().clone();
    let in_ci = matches!(scene.face, Face::Ci(_));
    let asked = with_overrides(&args.manner.llm, &event.overrides);
    let decided = match decided {
        Some(decided) => decided,
        None => agents::decide(&asked, machine, library, in_ci, env, output)?,
    };
    how.changes = changes(args, env, &scene.prepared, &event)?;
    how.changes.llm = Some(decided.llm).filter(|llm| *llm != event.llm);
    event.change(&how);
    in_time(&scene.prepared.machine, &event, level.past.elapsed())?;
    Ok(Continued { level, left, how, event, decided })
}

/// What the first command line said about models holds where this one says nothing.
fn with_overrides(args: &LlmArgs, overrides: &Overrides) -> LlmArgs {
    LlmArgs {
        max_cost: args.max_cost.or(overrides.max_cost),
        max_tokens: args.max_tokens.or(overrides.max_tokens),
        max_llm_calls: args.max_llm_calls.or(overrides.max_llm_calls),
        on_handoff: args.on_handoff.clone().or_else(|| overrides.on_handoff.clone()),
        ..args.clone()
    }
}

/// A run that was left, or one that only has to be finished.
pub(super) enum Chosen {
    /// It can go on; below this directory.
    Left(PathBuf, Box<KnownRun>),
    /// It ended, and not everything that follows was done.
    Unfinished(Box<KnownRun>),
}

/// Finds the run that is meant: by its id, by its loop or the file of it, or by the beginning of its id.
pub(super) fn choose(name: &str, output: &Output) -> Result<Chosen, CliError> {
    let cwd = cwd()?;
    let file = load::find(name, &cwd).ok().and_then(|located| located.path.canonicalize().ok());
    let unreadable = |error| CliError::failed("cannot look for runs", &error).before_the_run();
    let mut others = Vec::new();
    for root in load::ancestors(&cwd) {
        let loops = root.join(DIRECTORY);
        let is_meant =
            |run: &KnownRun| run.files.instance() == name || of_loop(run, name, (&root, file.as_deref()));
        let open = known::open(&loops).map_err(unreadable)?;
        let mut meant: Vec<KnownRun> = open.iter().filter(|run| is_meant(run)).cloned().collect();
        if meant.is_empty() {
            meant = open.iter().filter(|run| run.files.instance().starts_with(name)).cloned().collect();
            if let [one, other, ..] = meant.as_slice() {
                let (one, other) = (one.files.instance(), other.files.instance());
                return Err(CliError::invalid(format!("`{name}` can be {one} or {other}"))
                    .help("write more of the id of the run"));
            }
        }
        let can_go_on = |run: &KnownRun| run.status.is_resumable() && run.ends.start.is_some();
        let unfinished = |run: &KnownRun| !run.status.is_resumable() && finish::is_due(run);
        let newest = meant.iter().rposition(|run| can_go_on(run) || unfinished(run));
        if let Some(newest) = newest.map(|newest| meant.swap_remove(newest)) {
            if unfinished(&newest) {
                return Ok(Chosen::Unfinished(Box::new(newest)));
            }
            meant.retain(can_go_on);
            let others = known::in_order(meant);
            say_others(&newest, &others, output);
            return Ok(Chosen::Left(root, Box::new(newest)));
        }
        let last = match meant.pop() {
            Some(last) => Some(last),
            None => known::archived(&loops).map_err(unreadable)?.into_iter().rfind(is_meant),
        };
        if let Some(last) = last {
            return if unfinished(&last) {
                Ok(Chosen::Unfinished(Box::new(last)))
            } else {
                Err(cannot_go_on(&last, name))
            };
        }
        others.extend(open);
    }
    Err(nothing_there(name, file.is_some(), &others))
}

fn of_loop(run: &KnownRun, name: &str, (root, file): (&Path, Option<&Path>)) -> bool {
    let Some((_, start)) = &run.ends.start else { return run.name == name };
    let is_of_file = |file: &Path| root.join(&start.source.file).canonicalize().is_ok_and(|of| of == file);
    start.r#loop.as_str() == name || file.is_some_and(is_of_file)
}

fn say_others(newest: &KnownRun, others: &[KnownRun], output: &Output) {
    if others.is_empty() {
        return;
    }
    let names: Vec<_> = others.iter().rev().map(|run| run.files.instance()).collect();
    output.talk(&format!(
        "{} runs can go on; taking the newest, {}\n  to continue another one, name it: {}\n",
        others.len() + 1,
        newest.files.instance(),
        names.join(", ")
    ));
}

/// Folds the journal, and shows it to the sinks, which have to know what was before.
fn fold(
    files: &RunFiles,
    scene: &mut Scene<'_>,
    accept_changes: bool,
    sinks: &mut Sinks,
) -> Result<(Whole, Left, Told), CliError> {
    let Prepared { machine, loaded, library, .. } = &mut scene.prepared;
    let name = machine.name.clone();
    let outermost = Known { machine: Rc::new(machine.clone()), digest: loaded.digest.clone() };
    let mut find = |name: &str| library.find(name);
    let mut replay = Replay::new(outermost, &mut find);
    let (mut told, mut failed) = (Told { last: None, elapsed: Duration::ZERO }, None);
    let whole = read_whole(&files.journal(), |stamped| {
        sinks.past(&stamped);
        told = Told { last: Some(stamped.ts), elapsed: told.elapsed.max(stamped.at) };
        if failed.is_none() {
            failed = replay.event(stamped).err();
        }
    });
    let whole = whole.map_err(|error| broken(&error))?;
    if let Some(error) = failed {
        return Err(unfit(files, &error));
    }
    if !accept_changes && !replay.changed().is_empty() {
        return Err(changed(&replay.changed().join("`, `")));
    }
    let mut streams = Streams::new(files.streams());
    let left = replay.finish(|stored, stream| streams.read(stored, stream));
    let left = left.map_err(|error| {
        CliError::failed("what a state printed, and a later one may ask for, cannot be read", &error)
            .help(format!("put the file back as it was, or start a new run with `ll-loop run {name}`"))
            .before_the_run()
    })?;
    Ok((whole, left, told))
}

/// When the last event was, and how long the run had taken by then.
struct Told {
    last: Option<Timestamp>,
    elapsed: Duration,
}

fn standing(instance: &str, standing: Standing) -> Result<Box<LoopResume>, CliError> {
    match standing {
        Standing::Open(how) => Ok(how),
        Standing::Over(end) => Err(over(instance, &end)),
        Standing::Lost(state) => Err(lost(&state)),
    }
}

/// Works out what is different from now on.
fn changes(
    args: &ResumeArgs,
    env: &Env,
    prepared: &Prepared,
    start: &LoopStart,
) -> Result<Changes, CliError> {
    let is_changed = prepared.loaded.digest != start.definition_sha256;
    if is_changed && !args.accept_changes {
        return Err(changed(start.r#loop.as_str()));
    }
    let strict = match (args.manner.strict, args.manner.no_strict) {
        (false, false) => None,
        (strict, _) => Some(strict),
    };
    Ok(Changes {
        // A cap that the first command line set holds; one of the file may have changed with it.
        max_iterations: args.max_iterations.or_else(|| {
            let of_file = prepared.machine.limits.iterations.limit;
            (is_changed && start.overrides.max_iterations.is_none()).then_some(of_file)
        }),
        timeout_ms: args.timeout.map(millis),
        strict,
        llm: None,
        definition_sha256: is_changed.then(|| prepared.loaded.digest.clone()),
        source: is_changed.then(|| run::source(prepared)),
        context: variables(args, env, prepared, start, is_changed)?,
    })
}

/// Returns the variables when they are not what they were: with a changed loop file, with values of this command line,
/// and with secrets, which are not kept.
fn variables(
    args: &ResumeArgs,
    env: &Env,
    prepared: &Prepared,
    start: &LoopStart,
    is_changed: bool,
) -> Result<Option<Map<String, Value>>, CliError> {
    let is_masked = start.context.values().any(redact::is_masked);
    if !is_changed && !is_masked && args.context.is_empty() {
        return Ok(None);
    }
    let overrides = &start.overrides;
    let mut context = overrides.context.clone();
    context.extend(args.context.iter().cloned());
    let hidden = |value: &String| value.contains(redact::MASK);
    let missing = context
        .iter()
        .chain(&overrides.param)
        .find(|(name, value)| hidden(value) && !args.context.iter().any(|(given, _)| given == *name));
    let input_key = prepared.machine.input_key.as_str();
    let input = overrides.input.as_ref().filter(|_| !context.contains_key(input_key));
    if let Some(name) =
        missing.map(|(name, _)| name.as_str()).or(input.filter(|input| hidden(input)).map(|_| input_key))
    {
        return Err(CliError::invalid(format!(
            "the value of `{name}` was a secret, and secrets are not kept"
        ))
        .help(format!("give it again: `--context {name}=…`")));
    }
    let params = overrides.param.iter().filter(|(name, _)| !context.contains_key(*name));
    let params = params.map(|(name, value)| (name.clone(), json!(value))).collect();
    let given = Given {
        input: input.cloned(),
        context: context.clone().into_iter().collect(),
        params,
        ..Given::default()
    };
    let now = context::resolve(&prepared.machine, &given, env.all()).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        CliError::invalid(errors.join("; "))
    })?;
    if is_changed {
        return Ok(Some(now));
    }
    let mut kept = redact::filled(&start.context, &now);
    kept.extend(args.context.iter().map(|(name, value)| (name.clone(), json!(value))));
    Ok(Some(kept))
}

/// Sets the limits that are in force.
fn adjust(machine: &mut Machine, start: &LoopStart) {
    machine.limits.iterations.limit = start.max_iterations;
    if start.overrides.max_cycles.is_some() {
        machine.limits.cycles = start.overrides.max_cycles;
    }
    if let Some(timeout) = start.overrides.timeout_ms {
        machine.limits.timeout = Some(Duration::from_millis(timeout));
    }
}

/// A run whose time is over would end at once.
fn in_time(machine: &Machine, start: &LoopStart, elapsed: Duration) -> Result<(), CliError> {
    match start.overrides.timeout_ms.map(Duration::from_millis).or(machine.limits.timeout) {
        Some(timeout) if elapsed >= timeout => {
            let message = format!(
                "the timeout of the loop ({}) is used up: the run has taken {}",
                human(timeout),
                human(elapsed)
            );
            let help = "give it more with `--timeout DURATION`, which counts from the start of the run";
            Err(CliError::invalid(message).help(help))
        }
        Some(_) | None => Ok(()),
    }
}

fn say(instance: &str, how: &LoopResume, output: &Output) {
    let LoopResume { from_state, iteration, step, reason, continuation, .. } = how;
    let why = reason.words();
    output.talk(&format!(
        "resuming {instance}, which {why}, in {from_state} (iteration {iteration}, step {step})\n"
    ));
    if let Some(continuation) = continuation {
        output.talk(&format!("{}\n", plain_lines(continuation)));
    }
}

/// Returns a text of an action as lines that a terminal can show.
fn plain_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {}", one_line(line, 2000))).collect();
    lines.join("\n")
}

fn cannot_go_on(run: &KnownRun, name: &str) -> CliError {
    let instance = run.files.instance();
    match (run.status, &run.ends.complete) {
        (Status::Running | Status::Queued, _) => {
            CliError::invalid(format!("the run {instance} is running")).code(exit::LOCKED).help(format!(
                "follow it with `ll-loop logs -f {instance}`, or end it with `ll-loop stop {instance}`"
            ))
        }
        (Status::Ended(_), Some(end)) => over(instance, end),
        (Status::Ended(_) | Status::Unsaved | Status::Crashed, _) => never_began(instance, name),
    }
}

fn over(instance: &str, end: &LoopComplete) -> CliError {
    let (outcome, state) = (end.outcome.word(), &end.final_state);
    let message = format!("the run {instance} has ended ({outcome} in {state}), and nothing is left to do");
    CliError::invalid(message).help("start a new one with `ll-loop run`")
}

pub(super) fn never_began(instance: &str, name: &str) -> CliError {
    CliError::invalid(format!("the run {instance} ended before its first step, and nothing was done"))
        .help(format!("start a new one with `ll-loop run {name}`"))
}

fn lost(state: &StateName) -> CliError {
    CliError::invalid(format!("the run stands in `{state}`, which the loop does not have any more"))
        .help("give the loop this state back, or start a new run")
}

pub(super) fn changed(names: &str) -> CliError {
    CliError::invalid(format!("the definition of `{names}` is not what it was when the run began"))
        .help("with `--accept-changes` the run goes on with the definition as it is now")
}

fn broken(error: &ReadError) -> CliError {
    let refused = CliError::failed("the run cannot be resumed", error).before_the_run();
    match error {
        ReadError::Newer { .. } => {
            refused.help("use the version of ll-loop that began the run, or a newer one")
        }
        ReadError::Line { .. } | ReadError::Long { .. } | ReadError::Order { .. } => {
            refused.help("the journal was changed by hand or damaged; put it back, or start a new run")
        }
        ReadError::Io { .. } => refused,
    }
}

fn unfit(files: &RunFiles, error: &ReplayError) -> CliError {
    CliError::failed(format!("the run {} cannot be resumed", files.instance()), error).before_the_run()
}

fn nothing_there(name: &str, is_loop: bool, others: &[KnownRun]) -> CliError {
    if is_loop {
        return CliError::invalid(format!("there is no run of `{name}` to resume"))
            .help(format!("start one with `ll-loop run {name}`"));
    }
    let loops = others.iter().map(|run| run.name.as_str());
    let names: Vec<&str> = loops.chain(others.iter().map(|run| run.files.instance())).collect();
    let refused = CliError::invalid(format!("there is no run and no loop `{name}`"));
    match nearest(name, names.iter().copied()) {
        Some(near) => refused.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => refused.help("nothing here was interrupted, handed off or killed"),
        None => refused.help(format!("these can be resumed: {}", names.join(", "))),
    }
}
