//! The one reply on a pull request: what was heard and done, for people, and in a mark that they do not see the same for the
//! next command.

use std::fmt::Write as _;

use super::command_log::CommandLog;
use crate::report::formats::markdown::{code, with_code, words};

/// The first line of the reply, by which it is known again. No command begins like this.
pub const MARKER: &str = "<!-- ll-loop/commands -->";

const BEGIN: &str = "<!-- ll-loop:heard ";
const END: &str = " -->";

/// So many commands are shown.
const SHOWN: usize = 10;

/// What can be said.
const HELP: &str = "\
| | |
|---|---|
| `/ll-loop approve`, `reject` | answers the question of a run; the code of the question may follow |
| `/ll-loop answer CODE TEXT` | the same, with a text |
| `/ll-loop retry` | runs what failed again |
| `/ll-loop resume` | goes on with a run from where it ended |
| `/ll-loop stop` | ends a run, or its question |
| `/ll-loop deliver` | brings what a run has fixed to the base of this pull request |
| `/ll-loop fix` | runs the fix workflow of this repository on the head |

The name of a loop, the id of a run or its key may follow each, and then the commit that is meant. Only the first line counts.
";

/// Writes the reply. With `is_help`, it says what can be said.
pub fn render(log: &CommandLog, is_help: bool) -> String {
    let mut out = format!("{MARKER}\n**Commands**\n\n| who | command | what happened |\n|---|---|---|\n");
    for heard in log.heard().iter().rev().take(SHOWN) {
        let sign = if heard.is_taken { "✅" } else { "❌" };
        let (who, said) = (code(&heard.who, 60), code(&heard.said, 120));
        let _ = writeln!(out, "| {who} | {said} | {sign} {} |", in_cell(&heard.result));
    }
    if is_help {
        let _ = write!(out, "\n{HELP}");
    } else {
        out.push_str("\n`/ll-loop help` tells what can be said.\n");
    }
    let _ = write!(out, "\n{BEGIN}{}{END}\n", kept(log));
    out
}

/// Says on a pull request that was closed that nobody needs to answer a question any more.
pub fn cancelled(loop_name: &str, question: &str) -> String {
    format!(
        "The question {} of {} is cancelled: this pull request was closed before somebody answered it.\n",
        code(question, 8),
        code(loop_name, 100)
    )
}

/// Writes a sentence of ours into a cell of a table. An address in it stays one.
fn in_cell(text: &str) -> String {
    let piece =
        |word: &str| if word.starts_with("https://") { words_of_address(word) } else { with_code(word) };
    match text.rsplit_once(' ') {
        Some((before, last)) if last.starts_with("https://") => {
            format!("{} {}", with_code(before), piece(last))
        }
        Some(_) | None => with_code(text),
    }
}

/// Writes an address so that nothing in it ends the cell or the link.
fn words_of_address(address: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '.' | '-' | '_');
    if address.chars().all(is_plain) { format!("<{address}>") } else { words(address) }
}

/// Writes a log so that it can stand in a comment of HTML: nothing in it ends one.
fn kept(log: &CommandLog) -> String {
    let text = serde_json::to_string(log).expect("a log is JSON");
    // Escapes of JSON, so that the log is read back without a word about them.
    let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '-' | '<' | '>' | '&' | '@' | '`' => out.push_str(&escaped(c)),
            c => out.push(c),
        }
        out
    })
}

/// Reads the log of a reply; an empty one where somebody has spoiled it.
pub fn log_of(body: &str) -> CommandLog {
    // The last one is ours: what people said is shown before it, and may look like a mark.
    let said = body.rsplit_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
    // Whoever may write to the repository can change the reply, and with it the limits. Nothing else depends on it.
    said.and_then(|(said, _)| serde_json::from_str(said).ok()).unwrap_or_default()
}

/// Tells whether a comment is such a reply, whoever wrote it.
pub fn is_reply(body: &str) -> bool {
    body.lines().next().is_some_and(|line| line.trim_end() == MARKER)
}

#[cfg(test)]
mod tests {
    use super::super::command_log::tests::heard;
    use super::*;
    use crate::people::command::{CommandFault, read};

    #[test]
    fn a_reply_holds_its_log_and_is_no_command() {
        let mut log = CommandLog::default();
        let mut hostile = heard(1, 7, "x", false);
        "<!-- --> | `x` | @all #1 --> \"".clone_into(&mut hostile.who);
        "approve --> <script> | a".clone_into(&mut hostile.said);
        "no: --> | [x](http://y) `code` @all https://github.com/a/b|c".clone_into(&mut hostile.result);
        log.add(hostile);
        log.add(heard(2, 7, "y", true));
        for is_help in [false, true] {
            let text = render(&log, is_help);
            assert!(is_reply(&text));
            assert_eq!(log_of(&text), log);
            assert_eq!(read(&text), Err(CommandFault::NotACommand));
            assert_eq!(text.matches("-->").count(), 2 + text.matches("<!-- -->").count(), "{text}");
            assert!(!text.contains("<script") && !text.contains("@all"), "{text}");
            for row in text.lines().filter(|line| line.starts_with("| ") && line.contains(['✅', '❌'])) {
                assert_eq!(row.matches('|').count(), 4, "{row}");
            }
        }
        assert_eq!(log_of("nothing"), CommandLog::default());
        assert_eq!(log_of(&format!("{BEGIN}{{}}{END}")), CommandLog::default());
    }

    #[test]
    fn what_is_said_of_a_closed_pull_request_is_no_command_and_mentions_nobody() {
        let text = cancelled("deploy` @all", "0123abcd");
        assert!(text.starts_with("The question `0123abcd` of "), "{text}");
        assert_eq!(read(&text), Err(CommandFault::NotACommand));
    }

    #[test]
    fn a_reply_fits_into_a_comment() {
        let mut log = CommandLog::default();
        for id in 0..100 {
            let mut text = heard(id, id, &id.to_string(), true);
            text.result = "é".repeat(300);
            text.said = "x".repeat(200);
            log.add(text);
        }
        assert!(render(&log, true).chars().count() < 65_000);
    }
}
