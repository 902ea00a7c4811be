//! Steps whose shell gives them a terminal, because what they call asks for one: `shell: script -q -e -c "bash {0}"`.

use crate::base::text::{after_last, first_word};

const BEGIN: &str = "script -q -e -c \"";
const END: &str = "\" /dev/null";

/// A command that a step gives a terminal.
#[derive(Clone, Debug)]
pub(super) struct TerminalCall {
    pub(super) command: String,
    /// The directory in which it is called; empty for the top.
    pub(super) directory: String,
    /// The kind of the terminal, `TERM`, where the file says it.
    pub(super) kind: Option<String>,
}

/// Tells whether a shell gives what it runs a terminal.
pub(super) fn is_terminal(shell: Option<&str>) -> bool {
    shell.is_some_and(|shell| {
        let words = shell.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
        let mut names = words.map(|word| after_last(word, &['/']));
        matches!(first_word(shell), "script" | "unbuffer")
            && shell.contains("{0}")
            && names.any(|name| matches!(name, "bash" | "sh"))
    })
}

impl TerminalCall {
    /// Returns a command as it is called on this terminal; nothing where its words could not stand between quotes as they are.
    pub(super) fn with(&self, command: &str) -> Option<String> {
        let is_plain = !command.contains(['"', '$', '`', '\\', '!']);
        let kind = self.kind.as_deref().map_or_else(String::new, |kind| format!("TERM={kind} "));
        is_plain.then(|| format!("{kind}{BEGIN}{command}{END}"))
    }
}

/// Returns what is called on a terminal, or the command itself where it is called on none.
pub(super) fn without_terminal(command: &str) -> &str {
    command.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)).unwrap_or(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_again_on_its_terminal() {
        let call = |kind: Option<&str>| TerminalCall {
            command: "npm test".to_owned(),
            directory: String::new(),
            kind: kind.map(str::to_owned),
        };
        let called = call(Some("linux")).with("npm test").unwrap();
        assert_eq!(called, "TERM=linux script -q -e -c \"npm test\" /dev/null");
        assert_eq!(without_terminal(called.trim_start_matches("TERM=linux ")), "npm test");
        assert_eq!(call(None).with("test \"$X\""), None);
        assert_eq!(without_terminal("npm test"), "npm test");
    }

    #[test]
    fn a_shell_gives_a_terminal_that_is_started_by_a_program_for_that() {
        for (shell, expected) in [
            (Some("script -q -e -c \"bash {0}\""), true),
            (Some("unbuffer /bin/bash {0}"), true),
            (Some("bash -e {0}"), false),
            (Some("script -q x"), false),
            (None, false),
        ] {
            assert_eq!(is_terminal(shell), expected, "{shell:?}");
        }
    }
}
