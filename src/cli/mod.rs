//! The composition root: arguments and environment come in, one exit code goes out. Nobody imports this layer.

#[cfg(test)]
mod advised;
mod args;
mod background;
mod commands;
mod completions;
mod exit;
mod flags;
mod follow;
mod inputs;
mod misread;
mod misuse;
mod next_words;
mod output;
mod predecessor;
mod shorthand;
mod terminal;
mod unbegun;
mod work;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use args::{Args, Command};
use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use output::Output;

use crate::context::Session;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::context::interrupts::StopBy;
use crate::files::transient;

/// Runs the program: arguments without the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Before all else: these two start with every confined action, and need nothing of what follows.
    if let Some(code) = commands::sandbox::beside(&arguments) {
        return code;
    }
    let env = environment();
    // If the system refuses, they stay where root alone can read them.
    let _shown = crate::process::private::hide(env.secret_variables());
    // If the system refuses, the process stays readable for the user's other processes, as processes usually are.
    let _open = crate::process::private::keep();
    // If the system refuses, it is as it was.
    let _deaf = crate::process::signal::hear_of_children();
    // Process 1 only starts the same command line again, as the owner of the workspace, and reaps what is left.
    if env.is_container_init() {
        return commands::supervise::supervise(&arguments, &env);
    }
    let arguments = match written_out(arguments, &env) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let parsed = match args::parse(&arguments) {
        Ok(parsed) => parsed,
        Err(mut message) => {
            let output = Output::new(flags::Color::Auto, &env);
            // To write `-- --timeout` would hand it to the loop as its input.
            if message.kind() == ErrorKind::UnknownArgument {
                message.remove(ContextKind::Suggested);
            }
            output.parsed(&message);
            if let Some(hint) = of_predecessor(&arguments, &message) {
                output.help(hint);
            } else if let Some(hint) = next_words::advice(&arguments, &message) {
                output.help(&hint);
            }
            let code = exit::of_clap(&message);
            // A job with a wrong command line would otherwise have no status and no report at all.
            tell_misused(&arguments, &message, &env);
            // A hook that fails stops the session or is ignored by it, so it answers even now.
            let answer = commands::hook::misused(&arguments).filter(|_| message.use_stderr());
            return answer.map_or(code, |answer| {
                Output::new(flags::Color::Auto, &env).json_text(&answer);
                ExitCode::SUCCESS
            });
        }
    };
    env.arm_fault();
    let _leaving = Leaving::begin(&parsed.command);
    let output = Output::new(parsed.global.color, &env);
    // An action may remove the directory of its run, which is reported by itself.
    let is_nowhere = std::env::current_dir().is_err();
    match execute(&parsed.command, &env, &output) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(&error, is_nowhere.then_some(&parsed.command), &env, &output),
    }
}

/// Says what went wrong, and returns the exit code. A command that began without a directory is named.
fn failed(error: &Error, nowhere: Option<&Command>, env: &Environment, output: &Output) -> ExitCode {
    output.failure(error);
    if let Some(command) = nowhere {
        tell_without_directory(command, error, env, output);
    }
    ExitCode::from(exit::of(error))
}

/// Reports a run that cannot begin because the working directory is gone: what is written for it lies in a place of its own.
fn tell_without_directory(command: &Command, error: &Error, env: &Environment, output: &Output) {
    let Command::Run(args) = command else { return };
    let Ok(place) = transient::directory("ll-nowhere-") else { return };
    if let Ok(session) = Session::new(env, place.path(), output) {
        session.report_unbegun(error, exit::of(error), Some(&args.name), &flags::told(&args.run, env));
    }
}

/// Writes `run` where it may be left out. A word that cannot be understood is reported like a run that cannot begin.
fn written_out(arguments: Vec<OsString>, env: &Environment) -> Result<Vec<OsString>, ExitCode> {
    // Without a directory there are no loops to tell from commands.
    let Ok(cwd) = std::env::current_dir() else { return Ok(arguments) };
    shorthand::expanded(arguments.clone(), &cwd).map_err(|unknown| {
        let output = Output::new(flags::Color::Auto, env);
        output.failure(&unknown.error);
        // A mistyped command is no run whose report anything waits for.
        if let (Ok(session), false) = (Session::new(env, &cwd, &output), unknown.is_command) {
            misuse::tell_unknown(&arguments[unknown.at..], &unknown.error, &session);
        }
        ExitCode::from(exit::of(&unknown.error))
    })
}

/// Returns what an unknown option is here, if it is one of little-loops.
fn of_predecessor(arguments: &[OsString], message: &clap::Error) -> Option<&'static str> {
    let ContextValue::String(option) = message.get(ContextKind::InvalidArg)? else { return None };
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let command = words.find(|word| !word.starts_with('-'))?;
    predecessor::option(command, option)
}

/// Reports a command line that cannot be read where runs are reported.
fn tell_misused(arguments: &[OsString], message: &clap::Error, env: &Environment) {
    let output = Output::new(flags::Color::Auto, env);
    let session = std::env::current_dir().and_then(|cwd| Session::new(env, &cwd, &output));
    if let (Ok(session), true) = (session, message.use_stderr()) {
        misuse::tell(arguments, message, &session);
    }
}

/// Reads the environment of the process, and replaces what is not UTF-8.
#[expect(clippy::disallowed_methods, reason = "this is the place it is allowed in")]
fn environment() -> Environment {
    let text = |os: OsString| os.to_string_lossy().into_owned();
    Environment::of(std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect())
}

/// Removes the temporary files of this process at its end, and at its beginning those of processes that were killed.
struct Leaving;

impl Leaving {
    fn begin(command: &Command) -> Self {
        // What we start for ourselves has no time for it.
        if !matches!(command, Command::Guard | Command::AnswerQuery | Command::CompleteLine(_)) {
            transient::sweep();
        }
        Self
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        transient::leave();
    }
}

fn execute(command: &Command, env: &Environment, output: &Output) -> Result<u8, Error> {
    let cwd = std::env::current_dir();
    // Made when it is needed: some commands work also where the directory is gone.
    let session = || {
        let cwd = cwd
            .as_deref()
            .map_err(|error| Error::failed("cannot tell the working directory, which may be gone", error))?;
        let session = Session::new(env, cwd, output)
            .map_err(|error| Error::failed("cannot tell the working directory", &error))?;
        Ok(session
            .with_helper(commands::query::helper())
            .with_guard(commands::guard::argv())
            .stopped_by(StopBy::Signals))
    };
    match command {
        Command::Run(args) => commands::run::run(args, &session()?, output),
        Command::Resume(args) => commands::resume::resume(args, &session()?, output),
        Command::Answer(args) => commands::answer::answer(args, &session()?, output),
        Command::Bundle(args) => commands::bundle::bundle(args, &session()?, output),
        Command::Validate(args) => commands::validate::validate(args, &args::commands(), &session()?, output),
        Command::Fmt(args) => commands::fmt::fmt(args, &session()?, output),
        Command::Test(args) => commands::test::test(args, &session()?, output),
        Command::Explain(args) => commands::explain::explain(args, output),
        Command::Show(args) => commands::show::show(args, &session()?, output),
        Command::Compile(args) => commands::compile::compile(args, &session()?, output),
        Command::List(args) => commands::list::list(args, &session()?, output),
        Command::Merge(args) => commands::merge::merge(args, &session()?, output),
        Command::Ledger(args) => commands::ledger::ledger(args, &session()?, output),
        Command::Quarantine(args) => commands::quarantine::quarantine(args, &session()?, output),
        Command::Reuse(args) => commands::reuse::reuse(args, &session()?, output),
        Command::Plan(args) => commands::plan::plan(args, &session()?, output),
        Command::Init(args) => commands::init::init(args, &session()?, output),
        Command::Catalog(args) => commands::catalog::catalog(args, &session()?, output),
        Command::Add(args) => commands::add::add(args, &session()?, output),
        Command::Update(args) => commands::update::update(args, &session()?, output),
        Command::Status(args) => commands::status::status(args, &session()?, output),
        Command::Stop(args) => commands::stop::stop(args, &session()?, output),
        Command::History(args) => commands::history::history(args, &session()?, output),
        Command::Stats(args) => commands::stats::stats(args, &session()?, output),
        Command::Deliveries(args) => commands::deliveries::deliveries(args, &session()?, output),
        Command::Diff(args) => commands::diff::diff(args, &session()?, output),
        Command::Logs(args) => commands::logs::logs(args, &session()?, output),
        Command::Steer(args) => commands::steer::steer(args, &session()?, output),
        Command::UntilDone(args) => commands::until_done::until_done(args, &session()?, output),
        Command::Publish(args) => commands::publish::publish(args, &session()?, output),
        Command::Deliver(args) => commands::deliver::deliver(args, &session()?, output),
        Command::Verify(args) => commands::verify::verify(args, &session()?, output),
        Command::Report(args) => commands::report::report(args, &session()?, output),
        Command::Why(args) => commands::why::why(args, &session()?, output),
        Command::Board(args) => commands::board::board(args, &session()?, output),
        Command::Export(args) => commands::export::export(args, &session()?, output),
        Command::Replay(args) => commands::replay::replay(args, &session()?, output),
        Command::Repro(args) => commands::repro::repro(args, &session()?, output),
        Command::Rewind(args) => commands::rewind::rewind(args, &session()?, output),
        Command::Artifact(args) => commands::artifact::artifact(args, &session()?, output),
        Command::Criteria(args) => commands::criteria::criteria(args, &session()?, output),
        // A hook has to answer in any case, also without a directory.
        Command::Hook(args) => {
            commands::hook::hook(args, env, cwd.as_deref().unwrap_or(Path::new("")), output)
        }
        Command::Doctor(args) => commands::doctor::doctor(args, &session()?, output),
        Command::Schema(args) => Ok(commands::schema::schema(args, output)),
        Command::Completions(args) => Ok(completions::completions(args, output)),
        Command::Man(args) => commands::man::man(args, Args::command(), env, output),
        Command::CompleteLine(args) => {
            Ok(completions::complete_line(args, Args::command(), &session()?, output))
        }
        Command::Lsp(args) => Ok(commands::lsp::lsp(args, args::commands(), &session()?)),
        Command::Version => Ok(commands::version::version(output)),
        Command::Continue(args) => commands::go_on::go_on(args, &session()?),
        Command::Action(args) => commands::action::action(args, &session()?, output),
        Command::Guard => commands::guard::guard(&session()?),
        Command::AnswerQuery => commands::query::answer(),
    }
}
