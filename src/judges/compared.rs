//! Tells whether a check compares what a command prints with what it ought to print. Then the command is the work: a test
//! of a script runs it for its output, `[ "$(sh greet.sh)" = hello ]`. One that counts faults, or whose answer is a verdict,
//! is a part of the check, however it is called.

use crate::shell::command::{CommandOutput, SimpleCommand};
use crate::shell::token::ShellOperator;

/// Programs that compare what they read, or are given, with something.
const COMPARERS: [&str; 11] = ["[", "[[", "test", "cmp", "diff", "egrep", "fgrep", "grep", "is", "jq", "rg"];

/// How functions begin that compare, in tests of shell.
const COMPARING: [&str; 4] = ["assert", "expect", "should", "same"];

/// What a check answers, and not the work.
const VERDICTS: [&str; 32] = [
    "100",
    "bad",
    "clean",
    "done",
    "error",
    "errors",
    "fail",
    "failed",
    "failing",
    "failure",
    "failures",
    "fault",
    "faults",
    "fine",
    "fixme",
    "good",
    "green",
    "invalid",
    "none",
    "ok",
    "okay",
    "pass",
    "passed",
    "passing",
    "succeeded",
    "success",
    "todo",
    "true",
    "valid",
    "violation",
    "violations",
    "warning",
];

/// Tells whether what a command of a text prints is compared with what it ought to be.
pub(super) fn is_compared(command: &SimpleCommand, all: &[SimpleCommand], text: &str) -> bool {
    let Some(last) = last_of_pipeline(command, all) else { return false };
    let is_piped = last.range != command.range;
    if is_piped && counts(last) {
        // `… | grep -c x` asks how much there is of something, and not what it ought to be.
        return false;
    }
    match &command.output {
        CommandOutput::Shown => is_piped && compares(last),
        CommandOutput::Written(file) => {
            let behind = all.iter().filter(|other| other.range.start > command.range.end);
            // All that reads the file has to compare it. One `cat` more, and it may be anything.
            let mut reading = behind.filter(|other| other.values().contains(&Some(file))).peekable();
            reading.peek().is_some() && reading.all(compares)
        }
        CommandOutput::Substituted => match around(command, all) {
            Some(around) => compares(around),
            // What is printed becomes part of a word; only the command around that word can compare
            // it.
            None => variable(command, text).is_some_and(|name| is_variable_compared(name, all, text)),
        },
    }
}

/// Returns the last command of the pipeline that a command is in.
pub(super) fn last_of_pipeline<'c>(
    command: &'c SimpleCommand,
    all: &'c [SimpleCommand],
) -> Option<&'c SimpleCommand> {
    let mut last = command;
    while last.after == Some(ShellOperator::Pipe) {
        last = all.iter().find(|next| next.range.start >= last.range.end)?;
    }
    Some(last)
}

/// Returns the command that a command is a part of.
pub(super) fn around<'c>(command: &SimpleCommand, all: &'c [SimpleCommand]) -> Option<&'c SimpleCommand> {
    let (start, end) = (command.range.start, command.range.end);
    let holds = |other: &&SimpleCommand| other.range.start < start && other.range.end > end;
    all.iter().filter(holds).min_by_key(|other| other.range.len())
}

/// Returns the variable that is set to what a command prints: `NAME=$(…)`.
pub(super) fn variable<'t>(command: &SimpleCommand, text: &'t str) -> Option<&'t str> {
    let before = text.get(..command.range.start)?.trim_end();
    let before = before.strip_suffix("$(").or_else(|| before.strip_suffix('`'))?;
    let before = before.strip_suffix('"').unwrap_or(before).strip_suffix('=')?;
    let start =
        before.rfind(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').map_or(0, |at| at + 1);
    before.get(start..).filter(|name| !name.is_empty())
}

/// Tells whether a text asks for a variable.
pub(super) fn names_variable(text: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '_');
    let mut forms = [format!("${name}"), format!("${{{name}")].into_iter();
    forms.any(|form| text.match_indices(&form).any(|(at, _)| ends(&text[at + form.len()..])))
}

/// Tells whether all that asks for a variable compares it.
fn is_variable_compared(name: &str, all: &[SimpleCommand], text: &str) -> bool {
    let is_shown = |command: &SimpleCommand| {
        matches!(command.values().first(), Some(Some("echo" | "printf" | "cat")))
            // Printed to the log, for people, says nothing about the check.
            && command.after != Some(ShellOperator::Pipe)
    };
    let asking = all
        .iter()
        .filter(|command| text.get(command.range.clone()).is_some_and(|text| names_variable(text, name)));
    let mut asking = asking.filter(|command| !is_shown(command)).peekable();
    asking.peek().is_some() && asking.all(|command| last_of_pipeline(command, all).is_some_and(compares))
}

/// Tells whether a command compares something with what the work would say.
fn compares(command: &SimpleCommand) -> bool {
    let values = command.values();
    let Some(Some(program)) = values.first() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    let is_comparer =
        COMPARERS.contains(&program) || COMPARING.iter().any(|begin| program.starts_with(begin));
    // Compared with nothing, or with a word for success, the output is a verdict and its command a
    // judge.
    is_comparer && !counts(command) && !values[1..].iter().flatten().any(|word| is_verdict(word))
}

/// Tells whether a word says of something that it is right or wrong, or how often: `""`, `0`, `-z`, `OK`, `0 errors`.
fn is_verdict(word: &str) -> bool {
    if matches!(word, "" | "0" | "." | "^" | "-z" | "-n") {
        return true;
    }
    let mut words = word.split(|sign: char| !sign.is_alphanumeric());
    words.any(|word| VERDICTS.contains(&word.to_lowercase().as_str()))
}

/// Tells whether a command counts what it reads.
fn counts(command: &SimpleCommand) -> bool {
    let values = command.values();
    let is_counting = |word: &&str| {
        // Short options may come together, as in `-qv`.
        matches!(*word, "--count" | "--invert-match")
            || word
                .strip_prefix('-')
                .is_some_and(|signs| !signs.starts_with('-') && signs.contains(['c', 'v']))
    };
    match values.first() {
        Some(Some("wc" | "uniq")) => true,
        Some(Some("egrep" | "fgrep" | "grep" | "rg")) => values[1..].iter().flatten().any(is_counting),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::command::commands;

    #[test]
    fn a_script_whose_output_is_compared_is_the_work() {
        for (text, expected) in [
            ("[ \"$(sh x)\" = hello ]", true),
            ("test `sh x` = hello", true),
            ("[[ $(sh x 2 2) -eq 4 ]]", true),
            ("[ \"$(sh x | head -n 1)\" = \"$(cat expected)\" ]", true),
            ("sh x | cmp -s - expected", true),
            ("sh x | sort | diff - expected", true),
            ("sh x | grep -q hello", true),
            ("sh x > out; diff out expected", true),
            ("out=$(sh x); [ \"$out\" = hello ] || echo \"$out\"", true),
            ("out=\"$(sh x)\"\nassert_equal \"${out}\" hello", true),
            ("out=$(sh x); echo \"$out\" | grep -q hello", true),
            ("assert_equals \"$(sh x)\" hello", true),
            // What a check says.
            ("sh x", false),
            ("sh x | tee log", false),
            ("sh x | tail -n 5", false),
            ("sh x > log || { cat log; exit 1; }", false),
            ("sh x > /dev/null", false),
            ("[ \"$(sh x)\" = 0 ]", false),
            ("[ \"$(sh x)\" = OK ]", false),
            ("[ -z \"$(sh x)\" ]", false),
            ("[ \"$(sh x | wc -l)\" -eq 3 ]", false),
            ("[ \"$(sh x | grep -c error)\" -eq 3 ]", false),
            ("! sh x | grep -q .", false),
            ("sh x | grep -q '0 failures'", false),
            ("sh x | grep -q PASSED", false),
            ("n=$(sh x); [ \"$n\" -eq 0 ]", false),
            ("n=$(sh x); exit \"$n\"", false),
            ("n=$(sh x); [ \"$name\" = hello ]", false),
            ("exit $(sh x)", false),
            ("$(sh x)", false),
            ("eval \"$(sh x)\"", false),
            ("for file in $(sh x); do cat $file; done", false),
        ] {
            let all = commands(text);
            let of_script = |command: &&SimpleCommand| command.values().first() == Some(&Some("sh"));
            let command = all.iter().find(of_script).unwrap();
            assert_eq!(is_compared(command, &all, text), expected, "{text}");
        }
    }
}
