//! Counts that are printed twice: `grep -c … || echo 0` looks like one number and prints two lines.

use std::ops::Range;

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair};
use crate::base::text::one_line;
use crate::machine::Action;
use crate::shell::command::{SimpleCommand, commands};
use crate::shell::token::ShellOperator;

pub(super) fn doubled(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step) in subject.machine.steps() {
        let Some(Action::Shell(shell)) = &step.action else { continue };
        let text = &shell.text;
        let Some(range) = doubled_in(text.source()) else { continue };
        let doubled = text.source().get(range.clone()).unwrap_or("");
        let shown = one_line(doubled, 60);
        let message = format!("`{shown}` prints 0 twice where nothing matches: `grep -c` prints it, too");
        let help = "write `|| true`; lines that are all the same number are read as that number";
        let meant = doubled.rfind("||").map(|or| format!("{}|| true", &doubled[..or]));
        let repair = meant.map(|new| Repair::Replace { old: doubled.to_owned(), new });
        let place = FindingPlace::Within(state(&step.name).key("action"), range);
        findings.push(Diagnostic::note("doubled-count", place, message).help(help).repair(repair));
    }
}

/// Finds the first count of lines after which a failure prints another 0.
fn doubled_in(text: &str) -> Option<Range<usize>> {
    let commands = commands(text);
    commands.iter().enumerate().find_map(|(at, count)| {
        // A command in a substitution begins within the count and is not what follows it.
        let instead = commands[at + 1..].iter().find(|next| next.range.start >= count.range.end)?;
        let is_doubled = count.after == Some(ShellOperator::Or)
            && is_count(count)
            && instead.values() == [Some("echo"), Some("0")];
        let range = count.range.start..instead.range.end;
        is_doubled.then_some(range)
    })
}

/// Tells whether a command prints how many lines it has found.
fn is_count(command: &SimpleCommand) -> bool {
    let counts = |word: &str| word == "--count" || (is_short_option(word) && word.contains('c'));
    match command.values().as_slice() {
        [Some(program), words @ ..] => {
            let program = program.rsplit('/').next().unwrap_or(program);
            matches!(program, "grep" | "egrep" | "fgrep" | "zgrep")
                && words.iter().flatten().any(|word| counts(word))
        }
        _ => false,
    }
}

fn is_short_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::doubled_in;

    #[test]
    fn a_count_with_a_zero_in_its_place_is_found() {
        for text in [
            "grep -c zzz list || echo 0",
            "grep -c 'a|b; c' list 2>/dev/null || echo \"0\"",
            "n=$(grep -ic x list 2>&1 || echo 0)\necho $n",
            "echo \"$(grep --count x \"my list\" || echo '0')\"",
            "cd a; egrep -rc x . || echo 0 | head",
            "/usr/bin/grep -c \\\n x list ||\n echo 0; true",
        ] {
            assert!(doubled_in(text).is_some(), "{text}");
        }
        let text = "cat list | grep -c x || echo 0; date";
        assert_eq!(&text[doubled_in(text).unwrap()], "grep -c x || echo 0");
    }

    #[test]
    fn one_number_is_fine() {
        for text in [
            "grep -c x list",
            "grep -c x list || true",
            "grep x list || echo 0",
            "grep -c x list | sort || echo 0",
            "grep -c x list; false || echo 0",
            "grep -c x list || echo 01",
            "grep -q c list || echo 0",
            "pgrep -c x || echo 0",
            "my-grep -c x || echo 0",
            "grep -c 'x || echo 0",
            "grep",
            "",
        ] {
            assert_eq!(doubled_in(text), None, "{text}");
        }
    }
}
