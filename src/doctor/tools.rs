//! The programs that loops are run with: git, docker, the CLIs of agents, and the tokens that are set for them.

use super::here::Needs;
use super::program_answers::{self, ToolAnswer};
use super::row::{DoctorRow, RowState};
use crate::base::text::{first_word, listed, one_line};
use crate::context::Session;
use crate::git::call::{Call, PROGRAM};
use crate::host::{self, Host};
use crate::process::spawn;
use crate::repository;

/// The variables that hold tokens and keys. Their values are never read.
const TOKENS: [&str; 18] = [
    "LL_LOOP_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "CI_JOB_TOKEN",
    "GITLAB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "DASHSCOPE_API_KEY",
    "OPENROUTER_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
];

pub(super) fn rows(needs: &Needs, session: &Session<'_>) -> Vec<DoctorRow> {
    let [docker, claude, codex, gemini, qwen] = program_answers::all(
        [
            // The version of the server: without an engine that answers, the client alone is of no use.
            &["docker", "version", "--format", "{{.Server.Version}}"],
            &["claude", "--version"],
            &["codex", "--version"],
            &["gemini", "--version"],
            &["qwen", "--version"],
        ],
        session,
    );
    let version = repository::at(&session.cwd, session).line(&Call::new("version"));
    let git = version
        .map_or_else(|why| ToolAnswer::Failed(why.to_string()), |said| ToolAnswer::Said(one_line(&said, 80)));
    let mut rows = vec![
        program(PROGRAM, git, "install git, or see to it that it is on PATH").needed(needs.worktree.as_ref()),
        program("docker", docker, "install Docker, start its engine, and let this user reach it"),
        tokens(session),
    ];
    rows.extend(checks(needs, session));
    rows.extend(agents(
        [("claude", claude), ("codex", codex), ("gemini", gemini), ("qwen", qwen)],
        needs,
        session,
    ));
    rows
}

/// Looks for the tools that checks of the loops here call by themselves.
fn checks(needs: &Needs, session: &Session<'_>) -> impl Iterator<Item = DoctorRow> {
    needs.checks.iter().map(|(program, (tool, why))| {
        let row = |state, said: &str| DoctorRow::new("checks", program.clone(), state, said);
        let row = if spawn::find(program, session.env.get("PATH")).is_some() {
            row(RowState::Works, "on PATH")
        } else {
            let install = tool.install.clone();
            let fix = install.unwrap_or_else(|| format!("install `{program}`, or put it on PATH"));
            row(RowState::Absent, "not on PATH").fix(fix)
        };
        row.needed(Some(why))
    })
}

fn program(name: &'static str, answer: ToolAnswer, fix: &'static str) -> DoctorRow {
    let row = |state, said: String| DoctorRow::new("tools", name, state, said);
    match answer {
        ToolAnswer::Said(said) => row(RowState::Works, said),
        ToolAnswer::Failed(why) => row(RowState::Fails, why).fix(fix),
        ToolAnswer::Absent => row(RowState::Absent, "not on PATH".to_owned()).fix(fix),
    }
}

/// Looks at each agent. Only the one that a run would ask can be missed.
fn agents(answers: [(&str, ToolAnswer); 4], needs: &Needs, session: &Session<'_>) -> Vec<DoctorRow> {
    let is_there = |name: &str| spawn::find(name, session.env.get("PATH")).is_some();
    let wanted = session.env.get("LL_HOST_CLI");
    let asked = wanted.unwrap_or_else(|| host::first(is_there).map_or("claude", Host::name));
    let needed = |name: &str| needs.agent.clone().filter(|_| name == asked);
    let mut rows: Vec<DoctorRow> = Vec::new();
    for (name, answer) in answers {
        let Some(host) = host::by_name(name) else { continue };
        rows.push(agent(host, answer, session).needed(needed(name)));
    }
    // A command that `LL_HOST_CLI` names is none of those that were asked for their versions.
    if !rows.iter().any(|row| row.name == asked) {
        rows.push(other(asked, is_there).needed(needed(asked)));
    }
    rows
}

fn agent(host: &dyn Host, answer: ToolAnswer, session: &Session<'_>) -> DoctorRow {
    let row = |state, said: String| DoctorRow::new("agents", host.name(), state, said);
    let release = host.release();
    match answer {
        ToolAnswer::Absent => row(RowState::Absent, "not on PATH".to_owned()).fix(release.install),
        ToolAnswer::Failed(why) => row(RowState::Fails, why).fix(release.install),
        ToolAnswer::Said(said) => match release.read(&said) {
            Some(version) if version < release.oldest => row(
                RowState::Fails,
                format!("{version} is too old: {} is the oldest that works", release.oldest),
            )
            .fix(release.install),
            Some(version) => {
                let account = host::account(host.name(), &|name| session.env.is_on(name));
                row(RowState::Works, format!("{version}; {}", account.sentence))
            }
            // A version that cannot be read speaks neither for nor against the program.
            None => row(RowState::Works, format!("of unknown version: {said}")),
        },
    }
}

/// An agent that `LL_HOST_CLI` names by its command.
fn other(name: &str, is_there: impl Fn(&str) -> bool) -> DoctorRow {
    let row = |state, said: &str| DoctorRow::new("agents", name, state, said);
    let command = name.strip_prefix("acp:").map(first_word);
    match command {
        None => row(RowState::Fails, "LL_HOST_CLI names no agent that ll-loop knows")
            .fix(format!("set it to one of {}, or to `acp:` and a command", listed(host::names(), "or"))),
        Some(program) if is_there(program) => row(RowState::Works, "its program is on PATH"),
        Some(_) => row(RowState::Absent, "its program is not on PATH")
            .fix("install it, or set LL_HOST_CLI to another agent"),
    }
}

fn tokens(session: &Session<'_>) -> DoctorRow {
    let set: Vec<&str> = TOKENS.into_iter().filter(|name| session.env.get(name).is_some()).collect();
    let said = if set.is_empty() { "none is set".to_owned() } else { format!("set: {}", set.join(", ")) };
    DoctorRow::new("tools", "tokens", RowState::Fact, said)
}
