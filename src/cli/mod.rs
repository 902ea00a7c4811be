//! The composition root: arguments and environment come in, one exit code goes out. Nobody imports this layer.

mod args;
mod commands;
mod env;
mod error;
mod exit;
mod output;
mod secrets;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use env::Env;
use error::CliError;
use output::Output;

/// Runs the program: arguments without the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let env = Env::read();
    // Where the system refuses, the process is as open as any other.
    let _open = crate::process::private::keep();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if env.is_container_init() {
        return commands::init::supervise(&arguments, &env);
    }
    let parsed =
        match Args::try_parse_from(std::iter::once("ll-loop".into()).chain(arguments.iter().cloned())) {
            Ok(parsed) => parsed,
            Err(message) => {
                let code = exit::of_clap(&message);
                let answer = commands::hook::misused(&arguments).filter(|_| message.use_stderr());
                return answer.map_or(code, |answer| {
                    Output::new(args::Color::Auto, &env).json_text(&answer);
                    ExitCode::SUCCESS
                });
            }
        };
    env.arm_fault();
    let output = Output::new(parsed.global.color, &env);
    match execute(&parsed.command, &env, &output) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            error.print(&output);
            ExitCode::from(error.exit_code())
        }
    }
}

fn execute(command: &Command, env: &Env, output: &Output) -> Result<u8, CliError> {
    match command {
        Command::Run(args) => commands::run::run(args, env, output),
        Command::Resume(args) => commands::resume::resume(args, env, output),
        Command::Bundle(args) => commands::bundle::bundle(args, env, output),
        Command::Validate(args) => commands::validate::validate(args, env, output),
        Command::Explain(args) => commands::explain::explain(args, output),
        Command::Show(args) => commands::show::show(args, env, output),
        Command::Compile(args) => commands::compile::compile(args, output),
        Command::List(args) => commands::list::list(args, output),
        Command::Status(args) => commands::status::status(args, output),
        Command::Stop(args) => commands::stop::stop(args, output),
        Command::History(args) => commands::history::history(args, output),
        Command::Logs(args) => commands::logs::logs(args, output),
        Command::Report(args) => commands::report::report(args, env, output),
        Command::Artifact(args) => commands::artifact::artifact(args, env, output),
        Command::Criteria(args) => commands::criteria::criteria(args, env, output),
        Command::Hook(args) => commands::hook::hook(args, env, output),
        Command::Schema => Ok(commands::schema::schema(output)),
        Command::Version => Ok(commands::version::version(output)),
        Command::Continue(args) => commands::go_on::go_on(args, env, output),
        Command::Action(args) => commands::action::action(args.step, env, output),
        Command::AnswerQuery => commands::query::answer(),
    }
}
