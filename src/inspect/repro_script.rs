//! A step of a run as a script: the tree as a patch, the environment, and the command. Everything that a journal says is
//! quoted, so that it is nothing but a word.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::step_again::Repro;
use crate::base::redact::MASK;
use crate::base::sum::Sum;
use crate::base::template::shell_quote;
use crate::base::text::{one_line, screen};
use crate::context::error::Error;
use crate::context::{Session, secrets};
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::git::runner::Git;

/// Tools whose versions are told where a command names them.
const TOOLS: [&str; 23] = [
    "bundle", "bun", "cargo", "clang", "cmake", "docker", "dotnet", "gcc", "gradle", "jq", "make", "mvn",
    "node", "npm", "php", "pip", "pnpm", "pytest", "python3", "ruby", "rustc", "uv", "yarn",
];

impl Repro {
    /// Writes a script that makes the step again in any clone that has the commit.
    ///
    /// # Errors
    /// The step runs no command, or its tree holds a secret.
    pub(crate) fn script(&self, session: &Session<'_>) -> Result<String, Error> {
        script(self, session)
    }
}

fn script(repro: &Repro, session: &Session<'_>) -> Result<String, Error> {
    let Repro { step, state, run, .. } = repro;
    let (shell, text) = repro.command().map_err(|what| {
        Error::refused(format!("step {step} (`{state}`) {what}, and a script can only run commands"))
            .with_hint("without `--script` there is a worktree of it")
    })?;
    let unread = |why: GitError| Error::refused(format!("the tree of step {step} cannot be read: {why}"));
    let parent = Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", &repro.commit, "^");
    let parent = repro.git.id(&parent).map_err(unread)?;
    let patch = Call::new("diff-tree").with(&[
        "-r",
        "-p",
        // Changes of binary files apply only with whole ids.
        "--binary",
        "--full-index",
        "--no-renames",
        "--no-color",
        "--unified=3",
        "--inter-hunk-context=0",
        "--diff-algorithm=default",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ]);
    let patch = repro.git.bytes(&patch.id(&parent).id(&repro.commit), &[]).map_err(unread)?;
    if session.redactor.finds(&patch) {
        return Err(Error::refused(format!(
            "the tree of step {step} holds a secret, which no script may carry"
        ))
        .with_hint("without `--script` there is a worktree of it"));
    }
    let exit = repro.exit.map_or_else(String::new, |code| format!(", which ended with exit code {code}"));
    let mut out = format!(
        "#!/bin/sh\n# Makes step {step} ({}) of the run {} again{exit}.\n# It needs a clone that has the commit {parent}, and leaves it as it is.\n",
        one_line(state, 120),
        one_line(run, 200),
    );
    for version in versions(text, &repro.git, session) {
        let _ = writeln!(out, "# Seen here: {version}");
    }
    // In a hook of git these name its repository, not the one where the script is started.
    out.push_str("set -eu\nunset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE\n");
    let mut given: BTreeSet<&str> = BTreeSet::new();
    let mut exports = String::new();
    let mut needed: BTreeSet<String> = BTreeSet::new();
    for (name, value) in repro.env.iter().filter(|(name, _)| is_name(name) && name != "LL_RUN_DIR") {
        let value = session.redactor.text(value);
        if value == MASK || is_secret(name) {
            needed.insert(name.clone());
            continue;
        }
        given.insert(name);
        let _ = writeln!(exports, "export {name}={}", shell_quote(&value));
    }
    needed.extend(names(text).filter(|name| !given.contains(name) && is_secret(name)).map(str::to_owned));
    for name in &needed {
        let _ = writeln!(out, ": \"${{{name}:?}}\"\nexport {name}");
    }
    let _ = write!(
        out,
        "top=$(git rev-parse --show-toplevel)\nplace=$(mktemp -d)\ntrap 'cd \"$top\"; git worktree remove --force \"$place/tree\"; rm -rf \"$place\"' EXIT\ngit -C \"$top\" worktree add --quiet --detach \"$place/tree\" {parent}\ncd \"$place/tree\"\n",
    );
    out.push_str(&applied(&patch));
    out.push_str("LL_RUN_DIR=\"$place/run\"\nexport LL_RUN_DIR\nmkdir \"$LL_RUN_DIR\"\n");
    // Only now, so that no variable of the step changes how git makes the tree.
    out.push_str(&exports);
    let within = repro.within.to_string_lossy();
    if !within.is_empty() {
        // With `./`, a directory whose name begins with a hyphen is no option.
        let within = shell_quote(&format!("./{within}"));
        let _ = writeln!(out, "mkdir -p {within}\ncd {within}");
    }
    let words = shell.iter().map(String::as_str).chain([text]);
    let words: Vec<String> = words.map(shell_quote).collect();
    let _ = write!(out, "status=0\n{} || status=$?\nexit \"$status\"\n", words.join(" "));
    Ok(out)
}

/// Writes how the patch is applied: as it is where it is plain text, so that people can read it.
fn applied(patch: &[u8]) -> String {
    const APPLY: &str = "git apply --whitespace=nowarn";
    if patch.is_empty() {
        return String::new();
    }
    let plain = std::str::from_utf8(patch).ok().filter(|text| screen(text) == *text && !text.contains('\r'));
    // Named by the digest of the patch, so that no patch can be written that ends its own text.
    let end = format!("PATCH_{}", &Sum::of(patch).to_string()[..16]);
    if let Some(text) = plain.filter(|text| text.ends_with('\n') && !text.contains(&end)) {
        return format!("{APPLY} <<'{end}'\n{text}{end}\n");
    }
    let encoded = STANDARD.encode(patch);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("base64 -d <<'{end}' | {APPLY}\n{}\n{end}\n", lines.join("\n"))
}

/// Tells whether a text can be the name of a variable in a shell.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the variables that a command names.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        Some(&rest[..end]).filter(|name| is_name(name))
    })
}

/// Tells whether a variable of this name is a secret, whatever it holds.
fn is_secret(name: &str) -> bool {
    !secrets::of(name, "a value that nobody could guess", false).is_empty()
}

/// Returns the first line of what the tools that a command names say of their versions.
fn versions(text: &str, git: &Git, session: &Session<'_>) -> Vec<String> {
    let words: BTreeSet<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').collect();
    let mut seen = vec![concat!("ll-loop ", env!("CARGO_PKG_VERSION")).to_owned()];
    seen.extend(git.line(&Call::new("version")));
    for tool in TOOLS.iter().filter(|tool| words.contains(*tool)) {
        let asked = std::process::Command::new(tool)
            .arg("--version")
            // What lies in a working tree may choose another version, or bring one.
            .current_dir("/")
            .env_clear()
            .envs(session.env.for_ourselves())
            .stdin(std::process::Stdio::null())
            .output();
        let said = asked.ok().filter(|said| said.status.success());
        let line =
            said.and_then(|said| String::from_utf8_lossy(&said.stdout).lines().next().map(str::to_owned));
        seen.extend(line.map(|line| one_line(&line, 120)));
    }
    seen
}
