//! Whether a tool said no, or did not run at all. Exit codes cannot tell: `npx` without the package ends with 1, as the linter does that
//! it should have started.

use super::recognise::{Recognised, recognise};
use super::table::{Lack, NotRunLine, TOOLS};
use crate::base::text::{one_line, plain};

/// How many lines from the end may say it. What a program says before it does its work stands far above the result.
const LINES: usize = 60;

/// The longest line that is quoted.
const MAX_QUOTED: usize = 200;

/// What shows that a tool did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CouldNotRun {
    /// Who says so.
    pub by: &'static str,
    /// What is missing.
    pub lacks: Lack,
    /// What was printed, in one line.
    pub said: String,
}

impl Lack {
    /// Returns what to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Packages => "install what the repository depends on first",
            Self::Program => "install the program that is missing, or put it on PATH",
            Self::Configuration => "correct its configuration, or the command",
            Self::Network => "it needs the network, or a server that answers",
            Self::Version => "use the version that the repository asks for",
        }
    }
}

/// Tells whether a command did not run, by what it ended with and printed (the streams one behind the other, or the end of that).
/// Without the words of the command, every line of the table counts.
pub fn could_not_run(words: Option<&[String]>, exit: i32, output: &str) -> Option<CouldNotRun> {
    // A tool that ended well has looked, whatever its output quotes.
    if exit == 0 {
        return None;
    }
    let output = plain(output);
    let mut lines: Vec<&str> =
        output.lines().rev().map(str::trim_end).filter(|line| !line.is_empty()).take(LINES).collect();
    lines.reverse();
    let found = words.and_then(recognise);
    let direct = found.as_ref().filter(|found| !found.is_of_tasks());
    let mut rows = TOOLS.not_run.iter().filter(|row| may_say(row, exit, direct));
    let said = rows.find_map(|row| Some((row, row.find(&lines)?))).map(|(row, line)| CouldNotRun {
        by: &row.by,
        lacks: row.lacks,
        said: one_line(line, MAX_QUOTED),
    });
    said.or_else(|| by_code(found.as_ref()?, exit, &lines))
}

/// Tells the same of a whole text of shell. One that is more than a command, or a `cd` before it, is taken as unknown.
pub fn could_not_run_text(text: &str, exit: i32, output: &str) -> Option<CouldNotRun> {
    could_not_run(only_command(text).as_deref(), exit, output)
}

fn only_command(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    let text = match text.strip_prefix("cd ").and_then(|rest| rest.split_once("&&")) {
        Some((_, command)) => command,
        None => text,
    };
    // Where a shell joins commands, any of them may have printed the line or decided the code.
    let is_one = !text.contains([';', '|', '&', '\n', '`', '<', '>', '(', ')', '{', '$']);
    is_one.then(|| shlex::split(text)).flatten()
}

/// Tells whether a row counts: any where it is not known what ran, else those of the tool, of who started it and of its language.
fn may_say(row: &NotRunLine, exit: i32, direct: Option<&Recognised>) -> bool {
    // A code means something else in every tool, so that a row with codes needs to know which one ran.
    let Some(direct) = direct else { return row.exits.is_empty() };
    let is_caller = |caller: &str| match caller {
        "npx" => row.by == "npm",
        "uvx" => row.by == "uv",
        "bunx" => row.by == "bun",
        name => row.by == name,
    };
    let is_of = row.by == direct.tool.name
        || direct.callers.iter().any(|caller| is_caller(caller))
        || direct.tool.ecosystem().speak.contains(&row.by);
    is_of && (row.exits.is_empty() || row.exits.contains(&exit))
}

/// Tells whether the tool says it by its exit code.
fn by_code(found: &Recognised, exit: i32, lines: &[&str]) -> Option<CouldNotRun> {
    let codes = found.check.could_not_run.as_ref().unwrap_or(&found.tool.could_not_run);
    codes.contains(&exit).then(|| CouldNotRun {
        by: &found.tool.name,
        lacks: Lack::Configuration,
        said: lines.last().map_or_else(String::new, |line| one_line(line, MAX_QUOTED)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(command: &str, exit: i32, output: &str) -> Option<Lack> {
        could_not_run_text(command, exit, output).map(|found| found.lacks)
    }

    #[test]
    fn what_did_not_run_is_told_from_what_said_no() {
        use Lack::{Configuration, Network, Packages, Program};
        let npx = "npm error npx canceled due to missing packages and no YES option: [\"eslint@9\"]\nnpm error A complete log\n";
        for (command, exit, output, expected) in [
            ("npx --no-install eslint .", 1, npx, Some(Packages)),
            ("make lint", 2, npx, Some(Packages)),
            ("cd \"$LL_PATH\" && npm run lint", 1, npx, Some(Packages)),
            ("npx --no-install eslint .", 1, "a.js\n  1:1  error  x\n", None),
            ("npx --no-install eslint .", 2, "Oops! Something went wrong! :(\n", Some(Configuration)),
            ("python -m pytest", 1, "/usr/bin/python: No module named pytest\n", Some(Packages)),
            ("pytest", 1, "/usr/bin/python: No module named helper\nFAILED tests/a.py\n", None),
            ("pytest", 4, "ERROR: file or directory not found: x\n", Some(Packages)),
            ("pytest", 5, "no tests ran in 0.01s\n", Some(Configuration)),
            (
                "pytest",
                2,
                "E   ModuleNotFoundError: No module named 'yaml'\n!!! Interrupted: 1 error during collection !!!\n",
                Some(Packages),
            ),
            ("pytest", 1, "E   ModuleNotFoundError: No module named 'yaml'\n1 failed\n", None),
            ("make test", 2, "make: *** [Makefile:4: test] Error 127\n", Some(Program)),
            ("make test", 2, "make: *** [Makefile:4: test] Error 1\n", None),
            ("task lint", 201, "task: Failed to run task \"lint\": exit status 1\n", None),
            ("task lint", 200, "task: Task \"lint\" does not exist\n", Some(Program)),
            ("typos", 2, "error: `teh` should be `the`\n", None),
            ("typos", 78, "error: bad\n", Some(Configuration)),
            (
                "pre-commit run --all-files",
                1,
                "fix end of files....Failed\n- files were modified by this hook\n",
                None,
            ),
            (
                "pre-commit run --all-files",
                3,
                "An unexpected error has occurred: CalledProcessError\n",
                Some(Network),
            ),
            ("cargo test", 101, "error: test failed, to rerun pass `--lib`\n", None),
            (
                "cargo nextest run",
                101,
                "\u{1b}[31merror\u{1b}[0m: no such command: `nextest`\n",
                Some(Program),
            ),
            ("mypy .", 2, "a.py:1: error: invalid syntax\n", None),
            ("golangci-lint run", 3, "Error: can't load config: x\n", Some(Configuration)),
            ("./anything", 1, "npx canceled due to missing packages", Some(Packages)),
            ("./anything", 0, "npx canceled due to missing packages", None),
            ("./anything", 1, "", None),
        ] {
            assert_eq!(lacks(command, exit, output), expected, "{command}: {exit}: {output}");
        }
    }

    #[test]
    fn what_stands_far_above_the_end_is_not_the_reason() {
        let output = format!("npx canceled due to missing packages\n{}", "x\n".repeat(LINES));
        assert_eq!(could_not_run_text("make lint", 1, &output), None);
    }
}
