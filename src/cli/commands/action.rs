//! `ll-loop action`: runs the loop that the inputs of the GitHub Action name. The runner passes them as `INPUT_*`
//! variables.

use std::path::{Component, Path};

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::bundle::BundleArgs;
use super::go_on::ContinueArgs;
use super::resume::ResumeArgs;
use super::run::RunArgs;
use super::test::TestArgs;
use crate::base::text::one_line;
use crate::bundle::EXTENSION;
use crate::ci::Provider;
use crate::cli::flags::{self, Global, GoOn};
use crate::cli::inputs::{
    ActionPart, chain, commit, days, extra, input, inputs, on_change, on_handoff, pairs, told, words,
};
use crate::cli::output::Output;
use crate::cli::{exit, unbegun};
use crate::context::Session;
use crate::context::environment::Environment;
use crate::context::error::{Error, Kind};
use crate::context::options::Upload;
use crate::files::links;
use crate::session::end::contained::SIGNALLED;

/// The directory in which a container leaves its outputs and its summary.
const LEFT: &str = "LL_LEFT";

/// The exit code of a process that was killed (128 and SIGKILL).
const KILLED: u8 = 137;

/// The image that the run was in, if it was in one.
const IMAGE: &str = "LL_IMAGE";

/// Which step of the action this is.
#[derive(Debug, Args)]
pub(in crate::cli) struct ActionArgs {
    /// The step to perform
    #[arg(value_enum, default_value_t = ActionStep::Run)]
    pub(super) step: ActionStep,

    /// With `contain`, and with `save` after it: the command that runs the container
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

/// A step of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ActionStep {
    /// Run the loop; later steps upload its files and continue it
    Run,
    /// Run the loop in a container, and hand over what it leaves
    Contain,
    /// Run the loop, upload its files, and continue it
    All,
    /// Do what the step of the run could not: report and bundle a run that was killed, upload what a container left
    Save,
    /// Start another run of the workflow, which resumes the run
    Continue,
    /// Say that the step that uploads the reports failed
    Unstored,
    /// Say that nothing of a run was delivered
    Undelivered,
}

pub(in crate::cli) fn action(args: &ActionArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    match args.step {
        ActionStep::Run => run(ActionPart::Loop, session, output),
        ActionStep::Contain => session.contain(&args.command, left(session.env)?),
        ActionStep::All => run(ActionPart::All, session, output),
        ActionStep::Save => save(args, session, output),
        ActionStep::Continue => go_on(session),
        ActionStep::Unstored => unstored(session),
        ActionStep::Undelivered => {
            session.end_waiting(&needed(session.env, "run")?, "not delivered: the log of the job says why");
            Ok(0)
        }
    }
}

/// The command line that the inputs make.
#[derive(Parser)]
#[command(name = "ll-loop")]
struct ActionLine {
    // `args` may hold the options of every command as well.
    #[command(flatten)]
    _global: Global,
    #[command(subcommand)]
    command: ActionCommand,
}

#[derive(Subcommand)]
enum ActionCommand {
    Run(Box<RunArgs>),
    Resume(Box<ResumeArgs>),
    Test(Box<TestArgs>),
}

/// The file with the results of tests, where no input names a directory.
const TEST_REPORTS: &str = ".loops/.running/tests.report";

/// Runs tests instead of a loop, and leaves their results where later steps find them.
fn tests(session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let env = session.env;
    let session = &there(session)?;
    let directory = input(env, "report-dir").unwrap_or_else(|| TEST_REPORTS.to_owned());
    let junit = Path::new(&directory).join("junit.xml");
    let mut words = ["ll-loop", "test", "--ci", "--format", "github", "--junit"].map(str::to_owned).to_vec();
    words.push(junit.to_string_lossy().into_owned());
    words.extend(extra(env)?);
    words.extend(input(env, "loop").map(|name| ["--".to_owned(), name]).into_iter().flatten());
    let ActionCommand::Test(args) = parsed(words)? else {
        return Err(Error::refused("the input `args` names another command"));
    };
    let code = super::test::test(&args, session, output)?;
    let outcome = if code == 0 { "success" } else { "failure" };
    let outputs = [
        ("outcome", outcome.to_owned()),
        ("exit-code", code.to_string()),
        ("report-dir", directory),
        ("junit", junit.to_string_lossy().into_owned()),
    ];
    let announced = Provider::detect(&env.lookup()).announce(&outputs);
    announced.map_err(|error| Error::failed("cannot set the outputs of the step", &error))?;
    Ok(code)
}

fn run(part: ActionPart, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    match input(session.env, "command").as_deref() {
        None | Some("run") => {}
        Some("test") => return tests(session, output),
        Some(other) => {
            return Err(Error::refused(format!("the input `command` is `{other}`"))
                .with_hint("write `run` or `test`"));
        }
    }
    let (env, name) = (session.env, input(session.env, "loop"));
    // First, so that also a working directory that is not there is reported.
    let options = flags::told(&told(part, env), env);
    let session = &unbegun::told(there(session), name.as_deref(), &options, session)?;
    match unbegun::told(command(part, env), name.as_deref(), &options, session)? {
        ActionCommand::Run(args) => super::run::run(&args, session, output),
        ActionCommand::Resume(args) => super::resume::resume(&args, session, output),
        ActionCommand::Test(args) => super::test::test(&args, session, output),
    }
}

/// Makes the command that the inputs ask for.
fn command(part: ActionPart, env: &Environment) -> Result<ActionCommand, Error> {
    let from = input(env, "resume-from");
    let mut command = parsed(words(env, from.as_deref())?)?;
    match &mut command {
        ActionCommand::Run(_) if input(env, "answer").is_some() => {
            return Err(Error::refused("the input `answer` needs `resume-from`: the run that it answers"));
        }
        ActionCommand::Run(args) => {
            args.param.extend(pairs(env, "params")?);
            args.context.extend(pairs(env, "context")?);
            args.changed_since = input(env, "changed-since").or_else(|| args.changed_since.take());
            args.on_change = on_change(env)?.or_else(|| args.on_change.take());
            inputs(part, env, &mut args.run)?;
        }
        ActionCommand::Resume(args) => {
            // The journal keeps the inputs of the first run, except for secrets, which have to be given again.
            args.context.extend(pairs(env, "context")?);
            args.answers.extend(comments(env)?);
            inputs(part, env, &mut args.run)?;
        }
        // Its inputs are words of the command line.
        ActionCommand::Test(_) => {}
    }
    Ok(command)
}

/// Returns the comments of the input `answer`.
fn comments(env: &Environment) -> Result<Vec<u64>, Error> {
    let answer = input(env, "answer").unwrap_or_default();
    let id = |word: &str| {
        word.parse().map_err(|_| {
            Error::refused(format!("invalid comment `{}` in the input `answer`", one_line(word, 40)))
                .with_hint("write the numbers of comments, with blanks between them")
        })
    };
    answer.split_whitespace().map(id).collect()
}

fn parsed(words: Vec<String>) -> Result<ActionCommand, Error> {
    let parsed = ActionLine::try_parse_from(words).map_err(|error| {
        // The error is shown with a label of its own, which the parser has written as well.
        Error::refused(error.to_string().trim_start_matches("error: ").trim_end().to_owned())
            .with_hint("check the inputs of the action")
    })?;
    Ok(parsed.command)
}

/// Reports and bundles the run of an earlier step that was killed, and stores what that step could not.
fn save(args: &ActionArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let env = session.env;
    // A run names its outcome when it ends; one that was killed never did.
    let killed = input(env, "run").filter(|_| input(env, "outcome").is_none());
    let is_contained = env.get(IMAGE).is_some_and(|image| !image.is_empty());
    if let Some(name) = killed.as_deref().filter(|_| is_contained) {
        save_contained(&args.command, name, session)?;
    }
    let reports = needed(env, "report-dir")?;
    let workspace = Provider::detect(&env.lookup()).job().workspace;
    let reports = workspace.unwrap_or_default().join(reports);
    if is_contained {
        // Before anything is uploaded: the container could put links there, which the upload would follow.
        session.clean_reports(&reports)?;
        let is_clean = Provider::detect(&env.lookup()).announce(&[("clean", "true".to_owned())]);
        is_clean.map_err(|error| Error::failed("cannot set the outputs of the step", &error))?;
    }
    // A leg is not a run of its own: what it leaves is for the action that uploads.
    let Some(name) = input(env, "run") else { return Ok(0) };
    let session = &there(session)?;
    if killed.is_some() && !is_contained {
        make_up(&name, &reports, session, output)?;
    }
    if let Some(artifact) = input(env, "upload-name") {
        let upload = Upload { retention_days: days(env)? };
        session.store_reports(upload, &artifact, &name, &reports)?;
    }
    Ok(0)
}

/// Does for a run that was killed in its container what the run could not. Its files are read in another container, by
/// the command that starts that, and how it ended is what the job knows.
fn save_contained(command: &[String], name: &str, session: &Session<'_>) -> Result<(), Error> {
    let env = session.env;
    let said = input(env, "exit-code").and_then(|code| code.parse().ok());
    // A code that names no signal is not of the kill, which must have been SIGKILL then.
    let code = said.filter(|code| *code > SIGNALLED).unwrap_or(KILLED);
    let options = flags::told(&told(ActionPart::Loop, env), env);
    there(session)?.report_killed(input(env, "loop").as_deref(), name, code, &options);
    session.contain_rest(command, left(env)?, code)
}

/// Returns the directory in which a container leaves its outputs and its summary.
fn left(env: &Environment) -> Result<&Path, Error> {
    env.get(LEFT).map(Path::new).ok_or_else(|| Error::refused(format!("`{LEFT}` is missing")))
}

fn needed(env: &Environment, name: &str) -> Result<String, Error> {
    input(env, name).ok_or_else(|| Error::refused(format!("the input `{name}` is missing")))
}

fn make_up(name: &str, reports: &Path, session: &Session<'_>, output: &Output) -> Result<(), Error> {
    session.make_up(name, Some(reports))?;
    let target = reports.join(format!("{name}.{EXTENSION}"));
    // The run may have been killed after it had written its bundle.
    if target.exists() {
        output.data(&format!("{}\n", target.display()));
        return Ok(());
    }
    let args = BundleArgs { name: name.to_owned(), output: Some(target) };
    super::bundle::bundle(&args, session, output).map(drop)
}

/// Says that the reports were not stored. Where another job was to go on with the run, that is an error, and the status
/// of the commit says it, too.
fn unstored(session: &Session<'_>) -> Result<u8, Error> {
    let env = session.env;
    let artifact = needed(env, "upload-name")?;
    let is_handed_off = input(env, "handoff").is_some_and(|handoff| handoff == "true");
    session.say_unstored(&artifact, is_handed_off);
    if !is_handed_off {
        return Ok(0);
    }
    // Who starts the next run says it.
    if on_handoff(env)? == GoOn::None {
        go_on_or_say(needed(env, "run")?, String::new(), session)?;
    }
    Ok(exit::ERROR)
}

/// Continues the run that an earlier step of the action handed off.
fn go_on(session: &Session<'_>) -> Result<u8, Error> {
    let env = session.env;
    go_on_or_say(needed(env, "run")?, input(env, "upload-outcome").unwrap_or_default(), session)
}

/// Continues a run, or says that nothing does where its files were not uploaded.
fn go_on_or_say(name: String, upload: String, session: &Session<'_>) -> Result<u8, Error> {
    let env = session.env;
    let session = &there(session)?;
    let mut args = ContinueArgs { name, chain: chain(env)?, upload, ..ContinueArgs::default() };
    commit(env, &mut args.commit)?;
    args.key.key = input(env, "key");
    super::go_on::go_on(&args, session)
}

/// Returns the session in the directory that the input names.
fn there<'s>(session: &Session<'s>) -> Result<Session<'s>, Error> {
    let Some(directory) = input(session.env, "working-directory") else { return Ok(session.clone()) };
    let there = session.path(Path::new(&directory));
    fs_err::read_dir(&there).map_err(|error| {
        Error::failed(format!("cannot work in the input `working-directory` ({directory})"), &error)
            .of_kind(Kind::Refused)
    })?;
    // What lies around `a/..` is not what lies around `a`, where loops are looked for as well.
    let leads_up = there.components().any(|part| part == Component::ParentDir);
    Ok(session.at(&if leads_up { links::real(&there) } else { there }))
}
