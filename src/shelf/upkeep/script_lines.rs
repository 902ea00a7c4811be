//! The lines of a script in a workflow: which of them can stand by themselves, and which commands they join.

use crate::base::text::{after_last, first_word};
use crate::tools::recognise_line;

/// What reads the script of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepShell {
    /// One whose words a loop's shell reads the same way.
    Posix,
    /// One that calls programs as others do, and has a language of its own.
    PowerShell,
    /// Python, `cmd` or whatever a step names.
    Other,
}

impl StepShell {
    /// Reads what a step names, `bash -eo pipefail {0}`; without a name it is the shell of the machine.
    pub(super) fn of(shell: Option<&str>) -> Self {
        let Some(shell) = shell else { return Self::Posix };
        // One program may start another: `nix develop --command bash -e {0}`.
        let has =
            |names: &[&str]| shell.split_whitespace().any(|word| names.contains(&after_last(word, &['/'])));
        match () {
            () if has(&["bash", "sh", "dash", "zsh"]) => Self::Posix,
            () if has(&["pwsh", "powershell"]) => Self::PowerShell,
            () => Self::Other,
        }
    }

    /// Tells whether a line of its script says the same to the shell of a loop: one of PowerShell does where it only calls programs that
    /// are known.
    pub(super) fn shares(self, commands: &[&str]) -> bool {
        let is_call = |command: &&str| command.starts_with("cd ") || recognise_line(command).is_some();
        match self {
            Self::Posix => true,
            Self::PowerShell => commands.iter().all(is_call),
            Self::Other => false,
        }
    }
}

/// Joins the lines of a script that go on in the next one, each with its number from 0.
pub(super) fn logical_lines(script: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in script.lines().enumerate() {
        let (text, goes_on) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
        match found.last_mut().filter(|_| is_open) {
            Some((_, open)) => *open = format!("{} {}", open.trim_end(), text.trim()),
            None => found.push((at, text.to_owned())),
        }
        is_open = goes_on;
    }
    found
}

/// Returns a line without the program that shows its output to people, or keeps it.
pub(super) fn without_reporter(line: &str) -> &str {
    let Some((command, behind)) = line.split_once('|') else { return line };
    let program = first_word(behind);
    let is_reporter = matches!(program, "cs2pr" | "tee" | "reviewdog" | "xcbeautify" | "xcpretty")
        && !behind.contains(['|', ';', '&']);
    if is_reporter { command.trim_end().trim_end_matches("2>&1").trim_end() } else { line }
}

/// Returns a command without the variables that are set before it, `NAME='a value' make`.
pub(super) fn without_assignments(command: &str) -> &str {
    let mut rest = command.trim_start();
    while let Some((name, value)) = rest.split_once('=') {
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let (quote, inner) = match value.chars().next() {
            Some(quote @ ('\'' | '"')) => (quote, &value[1..]),
            Some(_) | None => (' ', value),
        };
        match inner.split_once(quote).filter(|_| is_name) {
            Some((_, behind)) => rest = behind.trim_start(),
            None => break,
        }
    }
    rest
}

/// Returns the commands that a line joins by `&&`, if each needs nothing of the shell around it.
pub(super) fn understood_commands(line: &str) -> Option<Vec<&str>> {
    let bare = without_quoted(line)?;
    let joints: Vec<usize> = bare.match_indices("&&").map(|(at, _)| at).collect();
    let bounds = std::iter::once(0).chain(joints.iter().map(|at| at + 2));
    let ends = joints.iter().copied().chain(std::iter::once(line.len()));
    is_understood(line, &bare).then(|| bounds.zip(ends).map(|(from, to)| line[from..to].trim()).collect())
}

fn is_understood(line: &str, bare: &str) -> bool {
    // What the shell or a loop puts in is computed, in whatever quotes it stands.
    let is_computed = line.contains(['$', '`', '\\']);
    !is_computed
        && !bare.replace("&&", "").contains(['|', ';', '&', '>', '<', '#', '(', '{'])
        && !line.is_empty()
        && line.len() <= 300
        && !line.chars().any(char::is_control)
}

/// Returns the words of a command as they are written, with their quotes; nothing where a quote is not closed.
pub(super) fn raw_words(command: &str) -> Option<Vec<&str>> {
    let bare = without_quoted(command)?;
    let mut found = Vec::new();
    let mut start = None;
    for (at, byte) in bare.bytes().enumerate().chain(std::iter::once((command.len(), b' '))) {
        match (start, byte == b' ') {
            (None, false) => start = Some(at),
            (Some(from), true) => {
                found.push(&command[from..at]);
                start = None;
            }
            (None, true) | (Some(_), false) => {}
        }
    }
    Some(found)
}

/// Returns a line in which each byte between quotes is an `x`; nothing where a quote is not closed.
fn without_quoted(line: &str) -> Option<String> {
    let (mut bare, mut open) = (String::new(), None);
    for c in line.chars() {
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) => {
                // As many bytes as there were: places found in this line are used in the original.
                bare.push_str(&"x".repeat(c.len_utf8()));
                continue;
            }
            None if matches!(c, '\'' | '"') => open = Some(c),
            None => {}
        }
        bare.push(c);
    }
    open.is_none().then_some(bare)
}

/// Tells whether a value holds nothing that is computed.
pub(super) fn is_plain(value: &str) -> bool {
    !value.contains("${{")
        && !value.contains('$')
        && value.len() <= 200
        && !value.chars().any(char::is_control)
}

/// Tells whether an input of an action holds nothing that is computed; it may be a list, a line each.
pub(super) fn is_plain_input(value: &str) -> bool {
    value.lines().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_before_a_command_are_no_part_of_it() {
        for (command, expected) in [
            ("A=1 make", "make"),
            ("A='-D warnings' B_2=\"x y\" cargo test --x=1", "cargo test --x=1"),
            ("make A=1 b", "make A=1 b"),
            ("A=1", "A=1"),
            ("A= make", "make"),
        ] {
            assert_eq!(without_assignments(command), expected, "{command}");
        }
    }

    #[test]
    fn a_line_counts_that_every_shell_reads_the_same_way() {
        for (shell, command, expected) in [
            (None, "./check", true),
            (Some("bash -eo pipefail -l {0}"), "./check", true),
            (Some("nix develop --command bash {0}"), "./check", true),
            (Some("pwsh"), "dotnet test", true),
            (Some("pwsh"), "./check.ps1", false),
            (Some("python"), "dotnet test", false),
            (Some("cmd"), "dotnet test", false),
        ] {
            assert_eq!(StepShell::of(shell).shares(&[command]), expected, "{shell:?} and {command}");
        }
    }

    #[test]
    fn what_stands_in_quotes_is_no_sign_of_the_shell() {
        for (line, expected) in [
            ("yarn test-types --target '>=5.4 <6.0'", Some(vec!["yarn test-types --target '>=5.4 <6.0'"])),
            ("a 'b && c' && d \"e; f\"", Some(vec!["a 'b && c'", "d \"e; f\""])),
            ("a && b", Some(vec!["a", "b"])),
            ("a 'é && x' && b", Some(vec!["a 'é && x'", "b"])),
            ("a > b", None),
            ("a & b", None),
            ("a '$(b)'", None),
            ("a \"${b}\"", None),
            ("it's", None),
            ("", None),
        ] {
            assert_eq!(understood_commands(line), expected, "{line}");
        }
    }
}
