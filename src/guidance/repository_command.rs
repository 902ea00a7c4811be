//! A command of the repository: `/fixit BUG-1` is the text of a file, with the arguments where it asks for them.

/// Behind so many bytes no more arguments are put in: a text may ask thousands of times for long ones.
const LONGEST: usize = 4 * 1024 * 1024;

/// A call of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandCall<'p> {
    /// The command, without its slash.
    pub(super) name: &'p str,
    arguments: &'p str,
}

impl<'p> CommandCall<'p> {
    /// Reads a prompt that begins with a command. A path such as `/usr/bin/x` is not a command.
    pub(super) fn of(prompt: &'p str) -> Option<Self> {
        let rest = prompt.trim().strip_prefix('/')?;
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (name, arguments) = rest.split_at(end);
        let is_name = |c: char| c.is_alphanumeric() || "-_:.".contains(c);
        (!name.is_empty() && name.chars().all(is_name)).then_some(Self { name, arguments: arguments.trim() })
    }

    /// Returns the text of the command with the arguments in their places, and behind it where it has none. What the text would
    /// have its host run is not run. Arguments are put in last, so that none of them is read as a place.
    pub(super) fn filled_in(self, text: &str) -> String {
        let words = shlex::split(self.arguments)
            .unwrap_or_else(|| self.arguments.split_whitespace().map(str::to_owned).collect());
        let mut out = String::new();
        let (mut rest, mut has_place) = (text.trim(), false);
        while let Some(at) = rest.find(['$', '!', '{']).filter(|_| out.len() < LONGEST) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let (put, length) = match ArgumentPlace::of(rest) {
                Some((ArgumentPlace::All, length)) => (self.arguments.to_owned(), length),
                Some((ArgumentPlace::Word(number), length)) => {
                    (words.get(number).cloned().unwrap_or_default(), length)
                }
                None => match not_run(rest) {
                    Some(found) => found,
                    None => (rest[..1].to_owned(), 1),
                },
            };
            has_place |= ArgumentPlace::of(rest).is_some();
            out.push_str(&put);
            rest = &rest[length..];
        }
        out.push_str(rest);
        if !has_place && !self.arguments.is_empty() {
            out.push_str("\n\nARGUMENTS: ");
            out.push_str(self.arguments);
        }
        out
    }
}

/// A place for arguments in a text.
enum ArgumentPlace {
    /// `$ARGUMENTS`, and `{{args}}` as gemini has it.
    All,
    /// `$1`, or `$ARGUMENTS[0]`: one of them, from 0.
    Word(usize),
}

impl ArgumentPlace {
    /// Reads the place at the beginning of a text, with its length.
    fn of(text: &str) -> Option<(Self, usize)> {
        if let Some(rest) = text.strip_prefix("$ARGUMENTS") {
            let number = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let number = number.and_then(|(digits, _)| Some((digits.parse().ok()?, digits.len() + 2)));
            let begin = "$ARGUMENTS".len();
            return Some(match number {
                Some((number, length)) => (Self::Word(number), begin + length),
                None => (Self::All, begin),
            });
        }
        if text.starts_with("{{args}}") {
            return Some((Self::All, "{{args}}".len()));
        }
        let digit = text.strip_prefix('$')?.chars().next()?.to_digit(10)?;
        // `$10` and `$1st` are texts of their own.
        let is_longer = text[2..].starts_with(|c: char| c.is_ascii_alphanumeric());
        let number = usize::try_from(digit).ok()?.checked_sub(1)?;
        (!is_longer).then_some((Self::Word(number), 2))
    }
}

/// Returns a command that a host would run, `` !`git status` ``, as a text that says so, with its length.
fn not_run(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix("!`")?;
    let end = inner.find('`')?;
    Some((format!("(not run: `{}`)", &inner[..end]), end + 3))
}

/// Returns a text without the settings at its beginning, which are for the host that it was written for.
pub(super) fn body(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("---").and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest)
    else {
        return text;
    };
    rest.split_once("\n---").and_then(|(_, rest)| rest.split_once('\n')).map_or("", |(_, body)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_make_arguments_endless() {
        let prompt = format!("/x {}", "a".repeat(100_000));
        let text = "$ARGUMENTS ".repeat(5000);
        let filled = CommandCall::of(&prompt).unwrap().filled_in(&text);
        assert!(filled.starts_with("aaa") && filled.ends_with("$ARGUMENTS"));
        assert!(filled.len() < 2 * LONGEST, "{}", filled.len());
    }
}
