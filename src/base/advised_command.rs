//! The commands that messages advise: whatever a name or a value holds, what is printed can be pasted into a shell.

use std::fmt;

use super::redact;
use super::text::{is_direction, is_line_end};

/// Bytes of a value that are printed; a longer one is left to the reader.
const MAX_VALUE: usize = 1000;

/// A command line of ll-loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    directory: String,
    environment: Vec<String>,
    words: Vec<String>,
}

impl CommandLine {
    /// Begins a command line, such as `resume` or `logs -f`.
    pub fn of(command: &str) -> Self {
        let words = vec![format!("ll-loop {command}")];
        Self { directory: String::new(), environment: Vec::new(), words }
    }

    /// Sets a variable for the command.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{name}={} ", quoted(value)));
        self
    }

    /// Changes to a directory first; nothing for an empty one.
    #[must_use]
    pub fn within(self, directory: &str) -> Self {
        Self { directory: directory.to_owned(), ..self }
    }

    /// Adds a word.
    #[must_use]
    pub fn arg(mut self, word: &str) -> Self {
        self.words.push(quoted(word));
        self
    }

    /// Adds a switch.
    #[must_use]
    pub fn flag(mut self, name: &str) -> Self {
        self.words.push(name.to_owned());
        self
    }

    /// Adds an option with its value.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        let word = quoted(value);
        // What begins with a hyphen would be read as an option of its own.
        self.words.push(if value.starts_with('-') {
            format!("{name}={word}")
        } else {
            format!("{name} {word}")
        });
        self
    }

    /// Adds a variable of a loop. A value that nobody can print is left to the reader.
    #[must_use]
    pub fn variable(self, option: &str, name: &str, value: &str) -> Self {
        self.option(option, &format!("{name}={}", shown(value)))
    }

    /// Adds the last words, none of which is an option whatever it begins with.
    #[must_use]
    pub fn last(self, word: &str) -> Self {
        let word = shown(word);
        let ends_options = word.starts_with('-');
        if ends_options { self.flag("--").arg(&word) } else { self.arg(&word) }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.directory.is_empty() {
            let ends_options = if self.directory.starts_with('-') { "-- " } else { "" };
            write!(f, "cd {ends_options}{} && ", quoted(&self.directory))?;
        }
        write!(f, "{}{}", self.environment.concat(), self.words.join(" "))
    }
}

/// Returns a value, or what says why it is not here.
fn shown(value: &str) -> String {
    if value.contains(redact::MASK) {
        "<secret>".to_owned()
    } else if value.len() > MAX_VALUE {
        format!("<a value of {} bytes>", value.len())
    } else {
        value.to_owned()
    }
}

/// Returns a word as a shell reads it, in one line. What a terminal would obey is written as a code, which needs bash,
/// zsh or ksh.
fn quoted(word: &str) -> String {
    let is_odd = |c: char| c.is_control() || is_line_end(c) || is_direction(c);
    // An equals sign is safe behind an option or a name, where every word of ours stands.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains(is_odd) {
        return shlex::try_quote(word).map_or_else(|_| String::new(), std::borrow::Cow::into_owned);
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_odd(c) => {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                // As bytes in octal digits: what `\u` comes to depends on the locale of the shell.
                out.extend(bytes.map(|byte| format!("\\{byte:03o}")));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Continues a run.
pub fn resume(instance: &str) -> CommandLine {
    CommandLine::of("resume").arg(instance)
}

/// Answers the question of a run.
pub fn answer(instance: &str) -> CommandLine {
    CommandLine::of("answer").arg(instance).arg("approve")
}

/// Begins a run of a loop, by its name or file.
pub fn run(name: &str) -> CommandLine {
    CommandLine::of("run").arg(name)
}

/// Ends a run.
pub fn stop(instance: &str) -> CommandLine {
    CommandLine::of("stop").arg(instance)
}

/// Shows how a run stands.
pub fn status(instance: &str) -> CommandLine {
    CommandLine::of("status").arg(instance)
}

/// Shows what the actions of a run printed.
pub fn logs(instance: &str) -> CommandLine {
    CommandLine::of("logs").arg(instance)
}

/// Shows what the actions of a run print, until it ends.
pub fn follow(instance: &str) -> CommandLine {
    CommandLine::of("logs -f").arg(instance)
}

/// Lists the runs of a loop, or shows one run.
pub fn history(name: &str) -> CommandLine {
    CommandLine::of("history").arg(name)
}

/// Shows a run, a bundle or what was downloaded of one.
pub fn report(what: &str) -> CommandLine {
    CommandLine::of("report").arg(what)
}

/// Checks a loop file.
pub fn validate(file: &str) -> CommandLine {
    CommandLine::of("validate").arg(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_one_word_each() {
        let line = CommandLine::of("run").arg("it's a; name").option("--param", "a=$(rm x)").flag("--strict");
        assert_eq!(line.to_string(), r#"ll-loop run "it's a; name" --param 'a=$(rm x)' --strict"#);
        assert_eq!(resume("main-1").within("a b").to_string(), "cd 'a b' && ll-loop resume main-1");
        assert_eq!(resume("main-1").within("-x").to_string(), "cd -- -x && ll-loop resume main-1");
        assert_eq!(resume("main-1").within("").to_string(), "ll-loop resume main-1");
        assert_eq!(run("main").last("-x").to_string(), "ll-loop run main -- -x");
        assert_eq!(run("main").option("--host", "-x").to_string(), "ll-loop run main --host=-x");
    }

    #[test]
    fn a_command_is_one_line_and_moves_no_cursor() {
        let line = run("main").last("a'b\\\n\t\u{1b}[2J\u{202e}é").to_string();
        assert_eq!(line, r"ll-loop run main $'a\'b\\\n\t\033[2J\342\200\256é'");
    }

    #[test]
    fn what_cannot_be_printed_is_left_to_the_reader() {
        let line = run("main").variable("--param", "token", "a***").variable("--context", "n", "3");
        assert_eq!(line.to_string(), "ll-loop run main --param 'token=<secret>' --context n=3");
        let line = run("main").variable("--param", "text", &"x".repeat(1001));
        assert_eq!(line.to_string(), "ll-loop run main --param 'text=<a value of 1001 bytes>'");
    }
}
