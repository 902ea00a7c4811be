//! `ll-loop hook`: answers the hooks of an agent's session. Whatever happens, they get one JSON answer and exit
//! code 0, because a hook that fails either stops the session or is ignored by it.

mod settings;

use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;

use crate::cli::output::Output;
use crate::criteria::hook::HookDialect;
use crate::criteria::{Decision, State, resume_message};
use crate::run::shared_file::{self, STATE};
use crate::session::environment::Environment;
use crate::session::error::Error;

/// How long to wait for the caller's input. A caller writes it when it starts the hook, or not at all.
const PATIENCE: Duration = Duration::from_millis(25);

/// The most bytes of it that are read.
const MAX_WORDS: usize = 1024 * 1024;

/// The commands for hooks.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum HookArgs {
    /// Decide whether the session may stop, by the criteria in `.loop/state.json`
    StopCheck(HookQuery),
    /// Describe the progress of the work to a session that begins
    SessionResume(HookQuery),
    /// Add both hooks to `.claude/settings.json`
    Install(HookSettings),
    /// Remove both hooks from `.claude/settings.json`
    Uninstall(HookSettings),
}

/// The arguments of `hook install` and `hook uninstall`.
#[derive(Debug, Args)]
pub(in crate::cli) struct HookSettings {
    /// Print the new settings instead of writing them
    #[arg(long)]
    pub(super) print: bool,
}

/// The arguments of the hooks.
#[derive(Debug, Args)]
pub(in crate::cli) struct HookQuery {
    /// The state file. The default is `.loop/state.json` in the session's directory, or else in the project's
    #[arg(long, value_name = "PATH")]
    pub(super) state: Option<PathBuf>,
    /// The format of the answers
    #[arg(long, value_enum, default_value_t = HookFormat::Seed)]
    pub(super) format: HookFormat,
}

/// The formats of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum HookFormat {
    /// `{"ok": …}`
    Seed,
    /// The format of Claude Code
    Claude,
}

/// Answers a hook, or installs or removes the hooks.
pub(in crate::cli) fn hook(
    args: &HookArgs,
    env: &Environment,
    cwd: &Path,
    output: &Output,
) -> Result<u8, Error> {
    let text = match args {
        HookArgs::StopCheck(query) => {
            let decision = match found(query, env, cwd) {
                Ok(bytes) => Decision::about(bytes.as_deref()),
                Err(_) => Decision::invalid(),
            };
            query.format.answer().to_stop(&decision)
        }
        HookArgs::SessionResume(query) => {
            let bytes = found(query, env, cwd).ok().flatten();
            let state = bytes.and_then(|bytes| State::read(&bytes).ok());
            query.format.answer().to_resume(state.as_ref().and_then(resume_message))
        }
        HookArgs::Install(args) => return settings::change(settings::Change::Install, args.print, output),
        HookArgs::Uninstall(args) => {
            return settings::change(settings::Change::Uninstall, args.print, output);
        }
    };
    output.json_text(&text);
    Ok(0)
}

/// Answers a hook whose command line is wrong: the session goes on as if it had no hook.
pub(in crate::cli) fn misused(arguments: &[OsString]) -> Option<String> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let at = words.iter().position(|word| word == "hook")?;
    let is_claude = words.iter().any(|word| word.ends_with("claude"));
    let answer = if is_claude { HookDialect::Claude } else { HookDialect::Seed };
    match words.get(at + 1)?.as_ref() {
        "stop-check" => {
            let reason = Some("the hook is called with wrong arguments".to_owned());
            Some(answer.to_stop(&Decision { reason, ..Decision::about(None) }))
        }
        "session-resume" => Some(answer.to_resume(None)),
        _ => None,
    }
}

impl HookFormat {
    fn answer(self) -> HookDialect {
        match self {
            Self::Seed => HookDialect::Seed,
            Self::Claude => HookDialect::Claude,
        }
    }
}

/// Finds the state file for a hook. An agent that works for a run of ll-loop has none: its run alone decides when it
/// stops.
fn found(query: &HookQuery, env: &Environment, cwd: &Path) -> io::Result<Option<Vec<u8>>> {
    if env.get("LL_LOOP_RUN").is_some() {
        return Ok(None);
    }
    if let Some(path) = &query.state {
        return shared_file::read(path);
    }
    let here = cwd.to_owned();
    let directory = told_directory().map_or_else(|| here.clone(), |told| here.join(told));
    match (shared_file::read(&directory.join(STATE)), env.get("CLAUDE_PROJECT_DIR")) {
        (Ok(None), Some(project)) => shared_file::read(&Path::new(project).join(STATE)),
        (content, _) => content,
    }
}

/// The fields of the caller's input that matter here.
#[derive(Deserialize)]
struct Words {
    cwd: PathBuf,
}

/// Returns the working directory from the caller's input.
fn told_directory() -> Option<PathBuf> {
    if io::stdin().is_terminal() {
        return None;
    }
    let (sender, directory) = mpsc::channel();
    // In a thread, because reading may block forever. The thread ends with the program.
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let (mut heard, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while let Ok(count @ 1..) = stdin.read(&mut buffer) {
            heard.extend_from_slice(&buffer[..count]);
            // Stops at the end of the JSON, because a caller may leave the pipe open.
            if let Ok(words) = serde_json::from_slice::<Words>(&heard) {
                let _late = sender.send(words.cwd);
                break;
            }
            if heard.len() > MAX_WORDS {
                break;
            }
        }
    });
    directory.recv_timeout(PATIENCE).ok()
}
