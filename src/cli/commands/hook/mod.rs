//! `ll-loop hook`: what the hooks of an agent's session ask. Whatever happens, they get one JSON answer and exit code 0,
//! because a hook that fails either stops the session or is ignored by it.

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

/// How long the words of the caller are waited for. It says them when it starts the hook, or not at all.
const PATIENCE: Duration = Duration::from_millis(25);

/// How much of them is read.
const MAX_WORDS: usize = 1024 * 1024;

/// What a hook asks.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum HookArgs {
    /// Say whether the session may stop, by the criteria in `.loop/state.json`
    StopCheck(HookQuery),
    /// Say how the work stands, to a session that begins
    SessionResume(HookQuery),
    /// Add both hooks to `.claude/settings.json`
    Install(HookSettings),
    /// Take them out again
    Uninstall(HookSettings),
}

/// What becomes of the settings.
#[derive(Debug, Args)]
pub(in crate::cli) struct HookSettings {
    /// Print the settings as they would be, and write nothing
    #[arg(long)]
    pub(super) print: bool,
}

/// About which file a hook asks, and how it is answered.
#[derive(Debug, Args)]
pub(in crate::cli) struct HookQuery {
    /// The state file; `.loop/state.json` of the session's directory or else of the project when absent
    #[arg(long, value_name = "PATH")]
    pub(super) state: Option<PathBuf>,
    /// Whose answers to give
    #[arg(long, value_enum, default_value_t = HookFormat::Seed)]
    pub(super) format: HookFormat,
}

/// Whose answers a hook gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum HookFormat {
    /// `{"ok": …}`
    Seed,
    /// Those of Claude Code
    Claude,
}

/// Answers a hook, or sets the hooks up.
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

/// Answers a hook whose command line is wrong, if it was one: the session goes on as if there were none.
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

/// Finds the state file that a hook is about. An agent that works for a run of ours is held by that run, and by nothing
/// else.
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

/// What the caller says about itself; there is more, which does not matter here.
#[derive(Deserialize)]
struct Words {
    cwd: PathBuf,
}

/// Returns the working directory that the caller names on standard input.
fn told_directory() -> Option<PathBuf> {
    if io::stdin().is_terminal() {
        return None;
    }
    let (sender, directory) = mpsc::channel();
    // Reading may last forever. The thread ends with the program.
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let (mut heard, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while let Ok(count @ 1..) = stdin.read(&mut buffer) {
            heard.extend_from_slice(&buffer[..count]);
            // A caller that has said everything may leave its end open.
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
