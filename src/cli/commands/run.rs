//! `ll-loop run`: puts a run together and lets it go.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::base::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::base::name::LoopName;
use crate::base::path::{DocPath, Segment};
use crate::base::redact::Redactor;
use crate::base::template::{Fallback, Namespace, walk};
use crate::base::territory::Territory;
use crate::base::text::plural;
use crate::ci::Provider;
use crate::cli::args::{GoOn, Manner, RunArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::definition::load::{DIRECTORY, Located};
use crate::definition::schema::Count;
use crate::engine::event::{LoopComplete, LoopStart, Overrides, SCHEMA, Source};
use crate::engine::outcome::Outcome;
use crate::engine::{Engine, Start};
use crate::journal::claim::Claim;
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::snapshot::Surroundings;
use crate::journal::writer::Journal;
use crate::machine::context::{self, Given};
use crate::machine::{Machine, calls, graph};
use crate::process::signal::{self, Cancel};
use crate::report::Sinks;
use crate::report::ci_log::CiLog;
use crate::report::console::{Console, ConsoleOptions, Verbosity};
use crate::report::digest::{Digest, NotRun};
use crate::report::log_file::LogFile;
use crate::run::agent::Agents;
use crate::run::checkpoint::Checkpoints;
use crate::run::clock::Clock;
use crate::run::projection::Projection;
use crate::run::replay::Left;
use crate::run::{Ended, Lost, World, conduct};

use super::agents::{self, Decided};
use super::background;
use super::bundle::{self, Bundler};
use super::changes;
use super::claim;
use super::finish;
use super::go_on;
use super::nights::{self, Before};
use super::prepare::{Prepared, cwd, drawn, find, lines, prepare, unusable};
use super::publish::{self, Publication};
use super::query;
use super::session;
use super::trust;
use super::worktree::Worktree;

/// Where a run shows itself.
pub(super) enum Face {
    /// A person's terminal, or a pipe.
    Person,
    /// A CI system.
    Ci(Provider),
}

pub(in crate::cli) fn run(args: &RunArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let in_background = args.background && !args.dry_run;
    if in_background && !background::is_here(env) {
        return Cancelling::listen()?.block_on(async |_| background::start(output).await);
    }
    if in_background {
        background::leave_session();
    }
    let face = face(&args.manner, env)?;
    let mut prepared =
        prepare(find(&args.name, &args.manner.reach)?, |definition| adjust(definition, args), output)?;
    let context = resolve(&prepared, args, env, output)?;
    if args.dry_run {
        output.data(&output.redactor.text(&plan(&prepared, &context)));
        return Ok(0);
    }
    trust::check(args.manner.allow_untrusted, env, &prepared, &cwd()?)?;
    warn(&prepared, output);
    if let Some(base) = &args.changed_since {
        let none = changes::none_since(base, &prepared, &context, env, &cwd()?, output)?;
        if let Some(not_run) = none {
            return skip(args, env, output, &face, &prepared, not_run);
        }
    }
    prepared.machine.limits.cycles = args.max_cycles;
    if args.max_cycles.is_some() && prepared.machine.maintain.is_none() {
        output.warning("`--max-cycles` has no effect: the loop does not say `maintain: true`");
    }
    let in_ci = matches!(face, Face::Ci(_));
    let is_night = in_ci && prepared.machine.maintain.is_some();
    let previous = if is_night {
        nights::previous(args, &prepared.machine.name, env, output)
    } else {
        nights::warn_of_no_effect(args, output);
        None
    };
    let manner = at_home(&args.manner, &face, &prepared)?;
    let Prepared { machine, library, .. } = &mut prepared;
    let decided = agents::decide(&args.manner.llm, machine, library, in_ci, env, output)?;
    let cancelling = Cancelling::listen()?;
    cancelling.block_on(async |mut cancel| {
        let clock = Clock::start();
        let loops = prepared.located.root.join(DIRECTORY);
        let random = uuid::Uuid::new_v4().as_fields().0;
        let files = RunFiles::new(&loops, &prepared.machine.name, clock.now(), random);
        let redactor = output.redactor.clone();
        let worktree = if args.worktree {
            let worktree = Worktree::plan(&prepared.located.root, &files, env)?;
            worktree.root().clone_into(&mut prepared.located.root);
            Some(worktree)
        } else {
            None
        };
        let territory = claim::territory(&prepared, &context, env, &redactor)?;
        let wanted = claim::wanted(&files, &prepared.machine.name, &territory, env, clock.now());
        let claim = claim::take(wanted, args.manner.queue, &files, &mut cancel, output).await?;
        if let Some(worktree) = &worktree {
            worktree.create(output)?;
        }
        let journal = open(&files, redactor.clone(), (&manner, &face)).inspect_err(|_| {
            if let Some(worktree) = &worktree {
                worktree.close(true, output);
            }
        })?;
        let before = if is_night {
            let (every, of) = (nights::due(args, env), (&files, &prepared.machine.name));
            nights::before(previous.as_ref(), every, of, clock.now(), output)
        } else {
            Before::default()
        };
        let scene = Scene { manner: &manner, env, output, face, prepared, redactor };
        let sinks = sinks(&scene, args.background, &files);
        let start = start(args, &scene, &decided, &files, context, (before, &clock));
        let agents = decided.agents;
        let launch = Launch { scene, files, journal, sinks, clock, agents, territory, claim, worktree };
        let driven =
            launch.drive(cancel, Duration::ZERO, Left::default(), |machine| Engine::new(machine, start));
        Box::pin(driven).await
    })
}

/// Reports that there was no reason to run.
fn skip(
    args: &RunArgs,
    env: &Env,
    output: &Output,
    face: &Face,
    prepared: &Prepared,
    not_run: NotRun,
) -> Result<u8, CliError> {
    let manner = at_home(&args.manner, face, prepared)?;
    let name = &prepared.machine.name;
    let said = format!("✓ {name}: {}", Digest::of_none(not_run.clone()).sentence());
    let said = match face {
        Face::Ci(provider) => provider.dialect().untrusted(&said).into_owned(),
        Face::Person => said,
    };
    output.data(&format!("{said}\n"));
    let Some(provider) = publisher(face, &manner) else { return Ok(0) };
    let loops = prepared.located.root.join(DIRECTORY);
    let random = uuid::Uuid::new_v4().as_fields().0;
    let files = RunFiles::new(&loops, name, Clock::start().now(), random);
    if let Err(error) = files.make_directory() {
        output.warning(&format!("there will be no reports: {error}"));
    }
    let of = (prepared.located.root.as_path(), name);
    let mut publication = Publication::new(&manner, provider, of, &files, None, (env, output));
    publication.begin(&manner.report, env, name.as_str(), output);
    for warning in publication.publish_none(not_run) {
        output.warning(&warning);
    }
    Ok(0)
}

/// Returns who is told about a run, if anybody is.
pub(super) fn publisher(face: &Face, manner: &Manner) -> Option<Provider> {
    match face {
        Face::Ci(provider) => Some(provider.clone()),
        Face::Person => manner.report_dir.as_ref().map(|_| Provider::detect(&|_| None)),
    }
}

/// Listens for requests to end from the moment it is made.
pub(super) struct Cancelling {
    runtime: tokio::runtime::Runtime,
    cancel: Cancel,
}

impl Cancelling {
    pub(super) fn listen() -> Result<Self, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CliError::failed("cannot start", &error))?;
        let cancel = runtime.block_on(async { signal::listen() });
        let cancel = cancel.map_err(|error| CliError::failed("cannot listen for signals", &error))?;
        Ok(Self { runtime, cancel })
    }

    pub(super) fn block_on<W>(self, work: impl AsyncFnOnce(Cancel) -> W) -> W {
        let Self { runtime, cancel } = self;
        runtime.block_on(work(cancel))
    }
}

pub(super) fn face(args: &Manner, env: &Env) -> Result<Face, CliError> {
    let lookup = env.lookup();
    let provider = match args.ci.as_deref() {
        Some("auto") => Provider::detect(&lookup),
        Some(name) => Provider::by_name(name, &lookup).ok_or_else(|| {
            let names: Vec<_> = Provider::names().collect();
            CliError::invalid(format!("unknown CI provider `{name}`"))
                .help(format!("write one of {}", names.join(", ")))
        })?,
        None if env.is_on("CI") && !args.no_ci => Provider::detect(&lookup),
        None => return Ok(Face::Person),
    };
    match provider.refusal(&lookup) {
        Some(why) => Err(CliError::invalid(why)),
        None => Ok(Face::Ci(provider)),
    }
}

/// Tells whether there will be reports.
pub(super) fn is_published(manner: &Manner, face: &Face) -> bool {
    matches!(face, Face::Ci(_)) || manner.report_dir.is_some()
}

fn adjust(definition: &mut crate::definition::schema::Loop, args: &RunArgs) {
    if let Some(limit) = args.max_iterations {
        definition.max_iterations = Count::of(limit);
    }
}

/// Makes the variables of the run, and refuses a loop that needs one that is not there.
fn resolve(
    prepared: &Prepared,
    args: &RunArgs,
    env: &Env,
    output: &Output,
) -> Result<Map<String, Value>, CliError> {
    let params = args.param.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let given =
        Given { input: args.input.clone(), context: args.context.clone(), params, ..Given::default() };
    let context = context::resolve(&prepared.machine, &given, env.all()).map_err(|errors| {
        let (last, before) =
            errors.split_last().map_or((None, &[][..]), |(last, before)| (Some(last), before));
        for error in before {
            output.error(&error.to_string());
        }
        CliError::invalid(last.map(ToString::to_string).unwrap_or_default())
    })?;
    let missing = missing_context(&prepared.machine, &context);
    if missing.is_empty() {
        return Ok(context);
    }
    output.talk(&drawn(&missing, &prepared.loaded, output));
    Err(unusable(&prepared.located.shown, &missing))
}

fn missing_context(machine: &Machine, context: &Map<String, Value>) -> Diagnostics {
    let values = Value::Object(context.clone());
    let mut missing = Diagnostics::default();
    for (state, key, template) in machine.templates() {
        let root =
            state.map_or_else(DocPath::root, |state| DocPath::root().key("states").key(state.as_str()));
        let path = key.split('.').fold(root, |path, key| path.key(key));
        for expression in template.expressions() {
            let needed =
                expression.namespace == Namespace::Context && expression.fallback == Fallback::Required;
            let Some(Segment::Key(name)) = expression.path.first().filter(|_| needed) else { continue };
            if let Err(absent) = walk("context", &values, &expression.path) {
                let message = format!("`${{{expression}}}` has no value");
                let near =
                    absent.nearest.map(|near| format!("; the nearest is `{near}`")).unwrap_or_default();
                let help = format!("give it with `--context {name}=…`, or add it to `context`{near}");
                let place = Place::Within(path.clone(), expression.span.clone());
                missing.push(Diagnostic::error("undefined-context", place, message).help(help));
            }
        }
    }
    missing
}

/// Says in one line that there is something to look at; `validate` shows it.
fn warn(prepared: &Prepared, output: &Output) {
    let warnings = prepared.findings.count(Severity::Warning);
    if warnings > 0 {
        let (count, file) = (plural(warnings as u64, "warning"), &prepared.located.shown);
        output.warning(&format!("{file} has {count}, see `ll-loop validate {file}`"));
    }
}

fn plan(prepared: &Prepared, context: &Map<String, Value>) -> String {
    use std::fmt::Write as _;
    let machine = &prepared.machine;
    let mut out = format!(
        "would run {} ({}), at most {} iterations\n",
        machine.name, prepared.located.shown, machine.limits.iterations.limit
    );
    for (name, value) in context {
        let _ = writeln!(out, "  context.{name} = {value}");
    }
    if let Some(bound) = calls::bound(machine) {
        let _ = writeln!(out, "  {}", bound.sentence());
    }
    out.push('\n');
    out.push_str(&graph::text(machine));
    out.push_str("\nnothing was run\n");
    out
}

/// What a run is put together from.
pub(super) struct Scene<'l> {
    pub(super) manner: &'l Manner,
    pub(super) env: &'l Env,
    pub(super) output: &'l Output,
    pub(super) face: Face,
    pub(super) prepared: Prepared,
    /// Hides the secrets of the environment.
    pub(super) redactor: Redactor,
}

/// A run that has its scope and its journal, and can be let go.
pub(super) struct Launch<'l> {
    pub(super) scene: Scene<'l>,
    pub(super) files: RunFiles,
    pub(super) journal: Journal,
    pub(super) sinks: Sinks,
    pub(super) clock: Clock,
    pub(super) agents: Agents,
    pub(super) territory: Territory,
    pub(super) claim: Claim,
    pub(super) worktree: Option<Worktree>,
}

impl Launch<'_> {
    /// Drives a run to its end, reports it, and returns its exit code. `before` is the time that it took before this
    /// process, `left` are the loops in which it was left.
    pub(super) async fn drive<E>(
        self,
        cancel: Cancel,
        before: Duration,
        left: Left,
        engine: E,
    ) -> Result<u8, CliError>
    where
        E: for<'m> FnOnce(&'m Machine) -> Engine<'m>,
    {
        let Self { scene, files, journal, sinks, clock, agents, territory, claim, worktree } = self;
        let Scene { manner, env, output, face, prepared, redactor } = scene;
        let mut publication = publisher(&face, manner).map(|provider| {
            let bundler = Bundler::new(env, &prepared, &territory, &redactor);
            let of = (prepared.located.root.as_path(), &prepared.machine.name);
            Publication::new(manner, provider, of, &files, Some(bundler), (env, output))
        });
        if let Some(publication) = &mut publication {
            publication.announce(output);
            publication.begin(&manner.report, env, prepared.machine.name.as_str(), output);
        } else if manner.report.is_asked() {
            output.warning("nobody will be told about the run: that needs `--ci` and GitHub");
        }
        let mut world = World {
            checkpoints: checkpoints(manner, publication.as_ref(), output),
            journal,
            sinks,
            cancel,
            agents,
            clock,
            before,
            left,
            env: claim::passed_on(env_of_actions(manner, worktree.is_some(), env), &claim),
            root: prepared.located.root.clone(),
            redactor,
            surroundings: surroundings(&territory),
            state_failure: None,
            files: files.clone(),
            path: vec![prepared.machine.name.clone()],
            helper: query::helper(),
            sub_loops: {
                let mut library = prepared.library;
                Box::new(move |request, around| library.start(request, around))
            },
        };
        let mut engine = engine(&prepared.machine);
        for warning in publication.iter().flat_map(|publication| publication.remember(engine.start())) {
            output.warning(&warning);
        }
        let Ended { complete, lost } = conduct(&mut engine, &mut world).await;
        for failure in world.sinks.take_failures() {
            output.warning(&failure);
        }
        if let Some(error) = world.drop_stale_state() {
            let instance = files.instance();
            output.warning(&format!(
                "`state.json` was removed, because it could not be kept up to date: {error}; `ll-loop status {instance}` shows how the run stands"
            ));
        }
        let host = world.agents.host;
        let handoff = engine.run().handoff().cloned();
        drop(world);
        files.release();
        let files = archived(&files, &complete, output);
        // Also when the journal was lost: what is in it is reported, as far as the run got.
        let unwritten = lost.as_ref().and_then(|lost| lost.unwritten.as_ref());
        let published = publication.map(|publication| publication.publish(&files, unwritten));
        for warning in published.iter().flat_map(|published| &published.warnings) {
            output.warning(warning);
        }
        if published.as_ref().is_none_or(|published| published.is_whole) {
            finish::end(&files);
        }
        let uploaded = published.and_then(|published| published.uploaded);
        if let Some(worktree) = &worktree {
            worktree.close(!complete.is_resumable(), output);
        }
        // Not before the last file is written: until then the run is not for others to continue.
        drop(claim);
        if complete.outcome == Outcome::Handoff {
            if let (Face::Ci(provider), GoOn::Dispatch) = (&face, manner.report.go_on) {
                let wanted = publish::wanted(&manner.report.commit, env);
                let subject = go_on::subject(prepared.machine.name.as_str(), files.instance());
                // What was not uploaded is where the next run finds it without that, or nowhere.
                let link = uploaded.unwrap_or(true).then(|| go_on::link(&manner.report.chain));
                go_on::start(provider, env, &wanted, &subject, link, output);
            }
            session::spawn(handoff.as_ref(), host, &files, env, output);
        }
        match lost {
            None => Ok(complete.exit_code),
            Some(lost) => Err(journal_lost(&lost, &files, &prepared.machine.name)),
        }
    }
}

fn checkpoints(manner: &Manner, publication: Option<&Publication>, output: &Output) -> Checkpoints {
    let Some(every) = manner.checkpoint_every else { return Checkpoints::default() };
    if let Some(saver) = publication.and_then(Publication::saver) {
        return Checkpoints::every(every, move || saver.checkpoint());
    }
    output.warning("`--checkpoint-every` has no effect without `--ci` or `--report-dir`");
    Checkpoints::default()
}

/// Moves to the directory where the loop is at home, so that actions start there; paths of the command line stay what
/// they were. A run without a deadline gets that of its job, where the CI system tells it.
pub(super) fn at_home(args: &Manner, face: &Face, prepared: &Prepared) -> Result<Manner, CliError> {
    let mut args = args.clone();
    if let Face::Ci(provider) = face {
        args.deadline = args.deadline.or_else(|| provider.job().time_left(Clock::start().now()));
    }
    args.report_dir = args.report_dir.map(|directory| absolute(&directory));
    let root = &prepared.located.root;
    std::env::set_current_dir(root).map_err(|error| {
        CliError::failed(format!("cannot work in {}", root.display()), &error).before_the_run()
    })?;
    Ok(args)
}

fn env_of_actions(manner: &Manner, in_worktree: bool, env: &Env) -> BTreeMap<String, String> {
    let env = env.for_actions(manner.pass_token);
    if in_worktree { Worktree::env(env) } else { env }
}

/// Makes the files of a new run, or none of them.
fn open(files: &RunFiles, redactor: Redactor, after: (&Manner, &Face)) -> Result<Journal, CliError> {
    let journal = begin_files(files, after).and_then(|()| Journal::create(files, redactor));
    journal.map_err(|error| {
        finish::end(files);
        files.release();
        claim::cannot_save(&error)
    })
}

/// Makes what a run has beside its journal.
pub(super) fn begin_files(files: &RunFiles, (manner, face): (&Manner, &Face)) -> io::Result<()> {
    files.make_scratch()?;
    fault::write(1)?;
    fs_err::write(files.pid(), format!("{}\n", std::process::id()))?;
    finish::begin(files, manner, face)
}

fn journal_lost(lost: &Lost, files: &RunFiles, name: &LoopName) -> CliError {
    let what = format!("run {}", files.instance());
    let help = if lost.has_begun {
        format!("free some space, and go on with `ll-loop resume {}`", files.instance())
    } else {
        format!("free some space, and start it again with `ll-loop run {name}`")
    };
    CliError::failed(what, &lost.error).help(help)
}

/// Moves the files of a finished run to the history. A failure leaves them where they are.
fn archived(files: &RunFiles, complete: &LoopComplete, output: &Output) -> RunFiles {
    if complete.is_resumable() {
        return files.clone();
    }
    files.archive().unwrap_or_else(|error| {
        output.warning(&format!("the files of the run stay in .running: {error}"));
        files.clone()
    })
}

pub(super) fn sinks(scene: &Scene<'_>, in_background: bool, files: &RunFiles) -> Sinks {
    let Scene { manner, output, face, .. } = scene;
    let mut sinks = Sinks::default();
    match LogFile::open(&files.log()) {
        Ok(log) => sinks.add(log),
        Err(error) => output.warning(&format!("there will be no log file: {error}")),
    }
    sinks.add(Projection::new(&scene.prepared.located.root));
    match face {
        // Nobody looks; the log has what the actions print.
        _ if in_background => sinks.add(background::Announcement::new(files)),
        Face::Ci(provider) => sinks.add(CiLog::new(Box::new(io::stdout()), provider.dialect(), output.color)),
        Face::Person => {
            let verbosity = match (manner.quiet, manner.verbose) {
                (true, _) => Verbosity::Quiet,
                (false, true) => Verbosity::Verbose,
                (false, false) => Verbosity::Normal,
            };
            let look = ConsoleOptions {
                verbosity,
                colour: output.color,
                width: output.width,
                interactive: output.is_terminal,
            };
            sinks.add(Console::new(Box::new(io::stdout()), look));
        }
    }
    sinks
}

fn start(
    args: &RunArgs,
    scene: &Scene<'_>,
    decided: &Decided,
    files: &RunFiles,
    context: Map<String, Value>,
    (before, clock): (Before, &Clock),
) -> Start {
    let Scene { manner, env, face, prepared, .. } = scene;
    let machine = &prepared.machine;
    let in_ci = matches!(face, Face::Ci(_));
    let inputs = args.param.iter().chain(&args.context).map(|(name, _)| name.clone());
    let input = args.input.iter().map(|_| machine.input_key.to_string());
    Start {
        event: LoopStart {
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
            strict: manner.strict || (in_ci && !manner.no_strict),
            source: source(prepared),
            commit: is_published(manner, face).then(|| bundle::commit(prepared, env)).flatten(),
            context: context.clone(),
            overrides: Overrides {
                max_iterations: args.max_iterations,
                max_cycles: args.max_cycles,
                timeout_ms: None,
                context: args.context.iter().cloned().collect(),
                param: args.param.iter().cloned().collect(),
                input: args.input.clone(),
                max_cost: args.manner.llm.max_cost,
                max_tokens: args.manner.llm.max_tokens,
                max_llm_calls: args.manner.llm.max_llm_calls,
                on_handoff: args.manner.llm.on_handoff.clone(),
            },
            schema: SCHEMA,
        },
        at: clock.now(),
        context,
        key: files.instance().to_owned(),
        env: env.all().clone(),
        run_dir: absolute(&files.scratch()).to_string_lossy().into_owned(),
        deadline: manner.deadline.map(before_the_end),
        timeout: None,
        budget: decided.budget,
        on_handoff: decided.on_handoff,
        captured: IndexMap::new(),
    }
}

/// Returns where a loop is written down, as a later run of ll-loop finds it.
pub(super) fn source(prepared: &Prepared) -> Source {
    let Located { path, root, shown, .. } = &prepared.located;
    let file = path.strip_prefix(root).map_or_else(|_| shown.clone(), |file| file.display().to_string());
    Source { file, lines: lines(&prepared.loaded) }
}

/// Leaves time to stop an action and to write the reports before the deadline itself.
pub(super) fn before_the_end(deadline: Duration) -> Duration {
    const ROOM: Duration = Duration::from_secs(15);
    if deadline > 4 * ROOM { deadline.saturating_sub(ROOM) } else { deadline * 3 / 4 }
}

pub(super) fn surroundings(territory: &Territory) -> Surroundings {
    Surroundings { scope: territory.shown(), pid: std::process::id(), host: host() }
}

/// Returns the name of this machine.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
