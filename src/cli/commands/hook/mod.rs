//! `ll-loop hook`: answers the hooks of an agent's session. Whatever happens, they get one JSON answer and exit
//! code 0, because a hook that fails either stops the session or is ignored by it.

mod settings;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufReader, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::advised_command::{self, CommandLine};
use crate::cli::output::Output;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::criteria::hook::HookDialect;
use crate::criteria::state::Invalid;
use crate::criteria::{CriteriaDecision, CriteriaState, resume_message};
use crate::files::gitdir;
use crate::files::read::MIB;
use crate::run::work_file::{self, WorkHolder};
use crate::run::{shared_file, stop_count};
use crate::session::criteria::project;

/// How long to wait for the caller's input. A busy one may take a while; one that says nothing leaves the pipe open.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most bytes of it that are read.
const MAX_WORDS: u64 = 64 * MIB;

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
            let words = words(env);
            let format = query.format.answer();
            match found(query, &words, env, cwd).map(|(path, found)| (path, found.map(understood))) {
                None | Some((_, Ok(None))) => format.to_stop(&CriteriaDecision::about(None), None),
                Some((_, Err(_) | Ok(Some(Err(_))))) => format.to_stop(&CriteriaDecision::invalid(), None),
                Some((path, Ok(Some(Ok(state))))) => {
                    let work = HookWork { path: &path, state: &state, is_named: query.state.is_some() };
                    work.answer(format, words.session_id.as_ref().and_then(Value::as_str), env)
                }
            }
        }
        HookArgs::SessionResume(query) => {
            let found = found(query, &words(env), env, cwd);
            let bytes = found.and_then(|(_, found)| found.ok().flatten());
            let state = bytes.and_then(|bytes| CriteriaState::read(&bytes).ok());
            // Work whose run is gone is not that of this session.
            let state = state.filter(|state| !matches!(WorkHolder::of(state), WorkHolder::Gone(_)));
            query.format.answer().to_resume(state.as_ref().and_then(resume_message))
        }
        HookArgs::Install(args) => {
            return settings::change(settings::SettingsChange::Install, args.print, output);
        }
        HookArgs::Uninstall(args) => {
            return settings::change(settings::SettingsChange::Uninstall, args.print, output);
        }
    };
    output.json_text(&text);
    Ok(0)
}

/// The work that a session is asked about when it wants to stop.
struct HookWork<'w> {
    path: &'w Path,
    state: &'w CriteriaState,
    /// Whether the command line names the file.
    is_named: bool,
}

impl HookWork<'_> {
    fn answer(&self, format: HookDialect, session: Option<&str>, env: &Environment) -> String {
        let decision = work_file::decide(self.state);
        if decision.stop {
            return format.to_stop(&decision, None);
        }
        let reason = decision.reason.as_deref().unwrap_or("");
        let first = decision.unmet.first().map_or(reason, String::as_str);
        // Without an id, it is not known whether it was the same session the last time.
        let session = session.filter(|id| !id.is_empty());
        let blocks = session.and_then(|session| {
            // With what is unmet first: where that changes there is progress, and the count begins anew.
            let spec = self.state.spec().unwrap_or("");
            let at = json!([self.path.to_string_lossy(), spec, first]).to_string();
            stop_count::count(&self.side_directories(env), session, &at)
        });
        match blocks {
            Some(blocks) if blocks > stop_count::PATIENCE => {
                let times = stop_count::PATIENCE;
                format.to_let_go(&format!(
                    "ll-loop kept the session from stopping {times} times, and lets it go now; {reason}"
                ))
            }
            Some(_) | None => format.to_stop(&decision, Some(&self.advice(&decision))),
        }
    }

    /// Returns where blocks are counted: in git's directory, or else in the user's.
    fn side_directories(&self, env: &Environment) -> Vec<PathBuf> {
        // In git's directory it is no change of the working tree, and no agent tidies it away.
        let git = self.path.parent().and_then(gitdir::around).map(|git| git.own);
        git.into_iter().chain(env.state_home()).map(|directory| directory.join("ll-loop/stops")).collect()
    }

    /// Says what the session can do.
    fn advice(&self, decision: &CriteriaDecision) -> String {
        if let WorkHolder::Run(run) = WorkHolder::of(self.state) {
            let follow = advised_command::follow(&run.instance);
            return format!("The run {} is at work on it; `{follow}` shows when it ends.", run.instance);
        }
        let call = |name: &str| {
            let command = CommandLine::of("criteria").arg(name);
            if self.is_named { command.option("--state", &self.path.to_string_lossy()) } else { command }
        };
        let (check, set) = (call("check"), call("set"));
        let with_command: HashSet<&str> = self.state.checks().map(|check| check.name).collect();
        match decision.unmet.iter().any(|name| !with_command.contains(name.as_str())) {
            _ if decision.unmet.is_empty() => {
                format!("Run `{}` when the work is done.", check.flag("--signal"))
            }
            false => format!("Run `{check}` when they are met."),
            true => {
                format!("Run `{check}` when they are met; `{set} NAME true` sets one that has no command.")
            }
        }
    }
}

fn understood(found: Option<Vec<u8>>) -> Option<Result<CriteriaState, Invalid>> {
    found.map(|bytes| CriteriaState::read(&bytes))
}

/// Answers a hook whose command line is wrong: the session goes on as if it had no hook.
pub(in crate::cli) fn misused(arguments: &[OsString]) -> Option<String> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let at = words.iter().position(|word| word == "hook")?;
    // The arguments could not be read, so the format is guessed from the words.
    let is_claude = words.iter().any(|word| word.ends_with("claude"));
    let answer = if is_claude { HookDialect::Claude } else { HookDialect::Seed };
    match words.get(at + 1)?.as_ref() {
        "stop-check" => {
            let reason = Some("the hook is called with wrong arguments".to_owned());
            Some(answer.to_stop(&CriteriaDecision { reason, ..CriteriaDecision::about(None) }, None))
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
fn found(
    query: &HookQuery,
    words: &HookInput,
    env: &Environment,
    cwd: &Path,
) -> Option<(PathBuf, io::Result<Option<Vec<u8>>>)> {
    if is_of_run(env) {
        return None;
    }
    if let Some(path) = &query.state {
        return Some((cwd.join(path), shared_file::read(path)));
    }
    let told = words.cwd.as_ref().and_then(Value::as_str).unwrap_or("");
    Some(work_file::find(&cwd.join(told), project(env)))
}

fn is_of_run(env: &Environment) -> bool {
    env.get("LL_LOOP_RUN").is_some()
}

/// The fields of the caller's input that matter here, whatever they are.
#[derive(Default, Deserialize)]
#[serde(default)]
struct HookInput {
    cwd: Option<Value>,
    session_id: Option<Value>,
}

/// Reads the caller's input; nothing when it is not there in time, or something else.
fn words(env: &Environment) -> HookInput {
    // A person types no input, and would only wait.
    if is_of_run(env) || io::stdin().is_terminal() {
        return HookInput::default();
    }
    let (sender, words) = mpsc::channel();
    // In a thread, because reading may block forever. The thread ends with the program.
    std::thread::spawn(move || {
        // Reads to the end of the JSON and not of the input, because a caller may leave the pipe open.
        let stdin = BufReader::with_capacity(64 * 1024, io::stdin().lock().take(MAX_WORDS));
        let words = HookInput::deserialize(&mut serde_json::Deserializer::from_reader(stdin));
        let _late = sender.send(words.unwrap_or_default());
    });
    words.recv_timeout(PATIENCE).unwrap_or_default()
}
