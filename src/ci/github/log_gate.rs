//! The log of a container that strangers may have made: what it prints may group lines and annotate, and nothing else.
//!
//! The runner obeys every command on the log of a step, and `::set-output` there would be an output of ours.

use super::commands::escape_data;
use crate::base::text::plain;
use crate::ci::line_marks::{is_skipped, without_markers};
use crate::ci::plain::one_clean_line;

/// The commands that change nothing but how the log looks.
const HARMLESS: &[&str] = &["group", "endgroup", "error", "warning", "notice", "debug"];

/// Lets the lines of a log through, one after the other.
pub struct LogGate<'g> {
    /// Tells whether a value is one of the environment, which may be masked.
    is_known: &'g dyn Fn(&str) -> bool,
    /// The token until which the program that prints wants no command obeyed.
    stopped: Option<String>,
}

impl<'g> LogGate<'g> {
    /// Makes one that lets values be masked that the environment has.
    pub fn new(is_known: &'g dyn Fn(&str) -> bool) -> Self {
        Self { is_known, stopped: None }
    }

    /// Returns a line as it may stand in the log, if it may.
    pub fn pass(&mut self, line: &str) -> Option<String> {
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(token) = &self.stopped {
            // Only the exact token ends it, as for the runner.
            if line.strip_prefix("::").and_then(|rest| rest.strip_suffix("::")) == Some(token) {
                self.stopped = None;
                return None;
            }
            return Some(harmless(line));
        }
        let Some((name, data)) = command(line) else { return Some(harmless(line)) };
        match name {
            "stop-commands" => {
                self.stopped = Some(data.to_owned());
                None
            }
            "add-mask" => self.is_mask(data).then(|| line.to_owned()),
            name if HARMLESS.contains(&name) => Some(without_markers(line, &[""]).into_owned()),
            _ => Some(harmless(line)),
        }
    }

    fn is_mask(&self, data: &str) -> bool {
        // The percent sign last, or `%250A` would become a line end.
        let decoded = data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%");
        // Escaped anew it has to be the same, so that nothing hides in another spelling.
        (self.is_known)(&decoded) && escape_data(&decoded) == data
    }
}

/// Returns the name and the data of a command.
fn command(line: &str) -> Option<(&str, &str)> {
    let is_one_line = !line.chars().any(char::is_control);
    // A control character could end the line for the runner, and begin another.
    let (info, data) = line.strip_prefix("::").filter(|_| is_one_line)?.split_once("::")?;
    Some((info.split(' ').next().unwrap_or(info), data))
}

/// Returns a line that no runner takes for a command, with its colours where it was none before.
fn harmless(line: &str) -> String {
    let is_command = |text: &str| {
        // The runner trims white space in front, and compares as its culture says.
        let mut visible = text.chars().filter(|c| !is_skipped(*c) && !c.is_whitespace());
        visible.next() == Some(':') && visible.next() == Some(':')
    };
    let clean = one_clean_line(line);
    let unmarked = without_markers(&clean, &[""]);
    if is_command(line) || is_command(&plain(line)) {
        return format!("> {unmarked}");
    }
    let has_marker = unmarked != clean || without_markers(line, &[""]) != line;
    let is_one_line = !line.contains('\r');
    if has_marker || !is_one_line { unmarked.into_owned() } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(lines: &[&str]) -> Vec<String> {
        let is_known = |value: &str| value == "hunter2\n100%";
        let mut gate = LogGate::new(&is_known);
        lines.iter().filter_map(|line| gate.pass(line)).collect()
    }

    #[test]
    fn groups_annotations_and_colours_stay() {
        let lines = [
            "::group::\u{1b}[1mcheck",
            "\u{1b}[32mfine\u{1b}[0m",
            "::endgroup::",
            "::error file=a,line=1::bad%0Aworse",
        ];
        assert_eq!(passed(&lines[1..]), lines[1..]);
        assert_eq!(passed(&["::group::check"]), ["::group::check"]);
    }

    #[test]
    fn nothing_else_is_a_command() {
        for name in [
            "set-output name=outcome",
            "save-state name=a",
            "set-env name=A",
            "add-path",
            "add-matcher",
            "echo",
        ] {
            for (before, line) in
                [("", "::"), ("  ", "::"), ("\u{200b}", "::"), ("\u{1b}[1m", "::"), (":\u{ad}", ":")]
            {
                let line = format!("{before}{line}{name}::value");
                let passed = passed(&[&line]).remove(0);
                assert!(passed.starts_with("> "), "{line:?}: {passed:?}");
            }
            assert!(!passed(&[&format!("text ##[{name}]value")])[0].contains("##["), "{name}");
        }
        assert_eq!(passed(&["x\r::set-output name=a::b"]), ["x ::set-output name=a::b"]);
        assert_eq!(passed(&["::GROUP::x"]), ["> ::GROUP::x"]);
        assert!(!passed(&["::error::##[set-output name=a]b"])[0].contains("##["));
    }

    #[test]
    fn what_the_program_prints_of_its_actions_is_no_command_and_nobody_turns_commands_off_for_good() {
        let lines = [
            "::stop-commands::t",
            "::error::x",
            "::set-output name=a::b",
            "::t::",
            "::notice::y",
            "::stop-commands::u",
        ];
        assert_eq!(passed(&lines), ["> ::error::x", "> ::set-output name=a::b", "::notice::y"]);
    }

    #[test]
    fn only_what_is_in_the_environment_is_masked() {
        assert_eq!(
            passed(&["::add-mask::hunter2%0A100%25", "::add-mask::true"]),
            ["::add-mask::hunter2%0A100%25"]
        );
    }
}
