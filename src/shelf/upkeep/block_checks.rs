//! Lines of one script of a step, of which an earlier one makes what a later one checks: together they are one check.

use super::ci::{CiCommand, CiContents};
use super::ci_checks::ComposedCheck;
use super::found_repository::{Finding, Repository};
use super::install_lines::makes_ready;
use super::line_purpose::{check_of, has_makefile, script_of};
use super::no_checks::is_plainly_none;
use super::script_lines::asks_git;

/// The most lines of one check.
const MOST: usize = 6;

/// Returns these checks, other than those that a question to git ends.
pub(super) fn block_checks(repository: &Repository, contents: &CiContents) -> Vec<ComposedCheck> {
    let lines = &contents.commands;
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(first) = lines.get(start) {
        let is_same = |line: &&CiCommand| line.job == first.job && line.step == first.step;
        let length = lines[start..].iter().take_while(is_same).count();
        found.extend(of_block(repository, contents, start, start + length));
        start += length.max(1);
    }
    found
}

fn of_block(
    repository: &Repository,
    contents: &CiContents,
    start: usize,
    end: usize,
) -> Option<ComposedCheck> {
    let lines = &contents.commands;
    let is_plain = |at: &usize| makes_ready(&lines[*at].command) || is_plainly_none(&lines[*at].command);
    let all: Vec<usize> = (start..end).filter(|at| !is_plain(at)).collect();
    let first = *all.iter().find(|at| makes(repository, &lines[**at]))?;
    let last = *all.iter().rev().find(|at| is_check(repository, &lines[**at]))?;
    let own: Vec<usize> = all.into_iter().filter(|at| (first..=last).contains(at)).collect();
    let is_whole = own.iter().all(|at| {
        let line = &lines[*at];
        line.stands_by_itself()
            && line.directory == lines[first].directory
            && !asks_git(&line.command)
            && (makes(repository, line) || is_check(repository, line))
    });
    let (from, to) = (lines[first].evidence.line, lines[last].evidence.line);
    let is_torn = contents.unused.iter().any(|one| {
        one.evidence.file == lines[first].evidence.file
            && (from..=to).contains(&one.evidence.line)
            && !is_plainly_none(&one.command)
    });
    // What a matrix makes of one line are several jobs.
    let is_in_order = own.windows(2).all(|pair| lines[pair[0]].evidence.line < lines[pair[1]].evidence.line);
    if first >= last || !is_in_order || own.len() > MOST || !is_whole || is_torn {
        return None;
    }
    let commands: Vec<&str> = own.iter().map(|at| lines[*at].command.as_str()).collect();
    let check = check_of(repository, &lines[last]).ok()?;
    let finding =
        Finding { command: commands.join(" && "), evidence: lines[first].evidence.clone(), ..check };
    Some(ComposedCheck { finding, lines: own })
}

fn is_check(repository: &Repository, line: &CiCommand) -> bool {
    check_of(repository, line).is_ok_and(|finding| !finding.is_fix)
}

/// Tells whether a line makes something by a program of the repository itself, and checks nothing.
fn makes(repository: &Repository, line: &CiCommand) -> bool {
    let words: Vec<&str> = line.command.split_whitespace().collect();
    let generates = |name: &&str| {
        name.split([':', '-', '_', '.', '/'])
            .any(|word| matches!(word, "gen" | "generate" | "codegen" | "generated"))
    };
    let is_maker = match words.as_slice() {
        ["cargo", "run", ..] | ["go", "run" | "generate", ..] => true,
        ["make" | "just" | "task" | "yarn" | "pnpm", name]
        | ["npm" | "pnpm" | "yarn" | "bun", "run", name] => generates(name),
        _ => script_of(repository, &line.directory, &line.command).is_some(),
    };
    let is_there = words.first() != Some(&"make") || has_makefile(repository, line);
    is_maker && is_there && check_of(repository, line).is_err()
}
