//! Workflow commands: how they are written, and how text from outside is kept from being one.
//!
//! The runner obeys two grammars: `::name key=value::data` at the beginning of a line, behind any white space, and
//! `##[name key=value]data` anywhere in a line. Every line of ours begins with a visible character, which breaks the
//! first; the second is broken here. Blocks of output stand between `::stop-commands::` and a token nobody can guess
//! as well. Sources: `Runner.Common/ActionCommand.cs` and `Runner.Worker/ActionCommandManager.cs` of actions/runner.

use std::borrow::Cow;
use std::fmt::Write as _;

use uuid::Uuid;

use crate::base::time::Timestamp;
use crate::ci::line_marks::{not_at_start, without_markers};
use crate::ci::plain::one_clean_line;
use crate::report::annotations::{Annotation, AnnotationLevel};
use crate::report::dialect::Dialect;

/// What the older grammar begins with: `##[`.
const MARKERS: &[&str] = &[""];

/// The dialect of workflow commands.
#[derive(Debug, Default)]
pub struct WorkflowCommands {
    /// The token that ends the block that is open.
    token: Option<String>,
}

fn random() -> String {
    Uuid::new_v4().simple().to_string()
}

impl Dialect for WorkflowCommands {
    fn group_start(&mut self, title: &str, _at: Timestamp) -> String {
        format!("::group::{}", escape_data(title))
    }

    fn group_end(&mut self, _at: Timestamp) -> Option<String> {
        Some("::endgroup::".to_owned())
    }

    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match one_clean_line(text) {
            Cow::Borrowed(clean) => without_markers(clean, MARKERS),
            Cow::Owned(clean) => Cow::Owned(without_markers(&clean, MARKERS).into_owned()),
        }
    }

    fn disarmed<'a>(&self, line: &'a str) -> Cow<'a, str> {
        // A line of ours may begin with text from outside, such as the name of a file.
        not_at_start(without_markers(line, MARKERS), &["::"])
    }

    fn block_start(&mut self, token: Option<String>) -> Option<String> {
        // A replay prints the tokens of the log that it repeats; a run takes one that no action
        // could know.
        let token = token.unwrap_or_else(random);
        let line = format!("::stop-commands::{token}");
        self.token = Some(token);
        Some(line)
    }

    fn new_token(&self) -> Option<String> {
        Some(random())
    }

    fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    fn block_end(&mut self) -> Option<String> {
        self.token.take().map(|token| format!("::{token}::"))
    }

    fn annotation(&self, annotation: &Annotation) -> String {
        let command = match annotation.level {
            AnnotationLevel::Error => "error",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Notice => "notice",
        };
        let mut properties = Vec::new();
        if let Some(location) = &annotation.location {
            properties.push(("file", location.file.clone()));
            // Without a line, GitHub drops the columns.
            if let Some(line) = location.line {
                properties.push(("line", line.to_string()));
                properties.extend(location.column.map(|column| ("col", column.to_string())));
            }
        }
        properties.push(("title", annotation.title.clone()));
        // Properties first lose the marks of the older grammar: escapes do not hide `##[`.
        let properties: Vec<String> = properties
            .iter()
            .map(|(key, value)| format!("{key}={}", escape_property(&without_markers(value, MARKERS))))
            .collect();
        format!(
            "::{command} {}::{}",
            properties.join(","),
            escape_data(&without_markers(&annotation.message, MARKERS))
        )
    }

    fn mask(&self, value: &str) -> Option<String> {
        // GitHub warns of an empty mask, and one blank would mask every blank of the log.
        (!value.trim().is_empty()).then(|| format!("::add-mask::{}", escape_data(value)))
    }
}

/// Escapes the data of a command.
pub fn escape_data(text: &str) -> String {
    // The percent sign as well, since the runner decodes what it reads.
    escaped(text, &['%', '\r', '\n'])
}

/// Escapes the value of a property; what the older grammar needs is escaped as well.
pub fn escape_property(text: &str) -> String {
    // The comma and the colon end a property; the older grammar also knows the semicolon and the
    // bracket.
    escaped(text, &['%', '\r', '\n', ':', ',', ';', ']'])
}

fn escaped(text: &str, special: &[char]) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if special.contains(&c) {
            let _ = write!(out, "%{:02X}", u32::from(c));
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::{self, Write};
    use std::rc::Rc;

    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::ci::line_marks::is_skipped;
    use crate::ci::testing::COLOUR;
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::report::annotations::Location;
    use crate::report::ci_log::CiLog;
    use crate::report::testing::Journal;
    use crate::report::{OutputLine, Sink, Stream};

    /// The runner's parser, written from `ActionCommand.cs`, stricter where cultures differ: characters of no width
    /// are gone before it looks.
    #[derive(Default)]
    struct Runner {
        stopped: Option<String>,
        found: Vec<(String, String)>,
    }

    const REGISTERED: &[&str] = &[
        "group",
        "endgroup",
        "error",
        "warning",
        "notice",
        "debug",
        "add-mask",
        "add-matcher",
        "remove-matcher",
        "stop-commands",
        "echo",
        "set-output",
        "save-state",
        "set-env",
        "add-path",
    ];

    impl Runner {
        fn read(log: &str) -> Vec<(String, String)> {
            let mut runner = Self::default();
            for line in log.replace("\r\n", "\n").split(['\r', '\n']) {
                runner.line(line);
            }
            assert_eq!(runner.stopped, None, "the log ends with commands turned off");
            runner.found
        }

        fn line(&mut self, line: &str) {
            let visible: String = line.chars().filter(|c| !is_skipped(*c)).collect();
            for line in [line, &visible] {
                if let Some((name, data)) = self.version_2(line).or_else(|| self.version_1(line)) {
                    return self.obey(name, data);
                }
            }
        }

        fn is_command(&self, name: &str) -> bool {
            match &self.stopped {
                Some(token) => name.eq_ignore_ascii_case(token),
                None => REGISTERED.iter().any(|registered| name.eq_ignore_ascii_case(registered)),
            }
        }

        fn version_2(&self, line: &str) -> Option<(String, String)> {
            let rest = line.trim_start().strip_prefix("::")?;
            let (info, data) = rest.split_once("::")?;
            let name = info.split(' ').next()?;
            self.is_command(name).then(|| (name.to_lowercase(), data.to_owned()))
        }

        fn version_1(&self, line: &str) -> Option<(String, String)> {
            let (_, rest) = line.split_once("##[")?;
            let (info, data) = rest.split_once(']')?;
            let name = info.split(' ').next()?;
            self.is_command(name).then(|| (name.to_lowercase(), data.to_owned()))
        }

        fn obey(&mut self, name: String, data: String) {
            match (&self.stopped, name.as_str()) {
                (Some(_), _) => {
                    self.stopped = None;
                    self.found.push(("resume".into(), String::new()));
                }
                (None, "stop-commands") => {
                    self.stopped = Some(data);
                    self.found.push((name, String::new()));
                }
                (None, _) => self.found.push((name, data)),
            }
        }
    }

    #[derive(Clone, Default)]
    struct LogBuffer(Rc<RefCell<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LogBuffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).unwrap()
        }
    }

    /// The log of a failing run whose action is called `action` and prints `lines`.
    fn log(action: &str, lines: &[&str], colour: bool) -> String {
        let buffer = LogBuffer::default();
        let mut log = CiLog::new(Box::new(buffer.clone()), Box::new(WorkflowCommands::default()), colour);
        let mut journal = Journal::start();
        journal.enter("check", 1).act(action);
        journal.events.drain(..).for_each(|event| log.event(&event).unwrap());
        for text in lines {
            log.output(OutputLine { stream: Stream::Stderr, text }).unwrap();
        }
        journal.done(1, &lines.join("\n"), "").judge("no").route(Some("no"), "failed");
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
        journal.events.drain(..).for_each(|event| log.event(&event).unwrap());
        drop(log);
        buffer.text()
    }

    #[track_caller]
    fn check(action: &str, lines: &[&str]) {
        issues_no_command(&log(action, lines, false), lines);
        let coloured = log(action, lines, true);
        issues_no_command(&coloured, lines);
        // Nor as it looks without the colours that are left in it.
        issues_no_command(&COLOUR.replace_all(&coloured, ""), lines);
    }

    #[track_caller]
    fn issues_no_command(log: &str, lines: &[&str]) {
        let found = Runner::read(log);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        let block = ["stop-commands", "resume"];
        let some = |block: &[&'static str]| if lines.is_empty() { vec![] } else { block.to_vec() };
        let group = [vec!["group"], some(&block), vec!["endgroup"], some(&block)].concat();
        assert_eq!(names, group, "{log}");
        assert!(!log.contains("##["), "{log}");

        // Neither guard needs the other: with the tokens taken away, the marks in front still hold.
        let is_token = |line: &str| {
            let token = line.strip_prefix("::").and_then(|rest| rest.strip_suffix("::"));
            token.is_some_and(|token| token.len() == 32 && token.chars().all(|c| c.is_ascii_hexdigit()))
        };
        let is_guard = |line: &&str| line.starts_with("::stop-commands::") || is_token(line);
        let unguarded: Vec<&str> = log.split('\n').filter(|line| !is_guard(line)).collect();
        let found = Runner::read(&unguarded.join("\n"));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["group", "endgroup"], "{log}");
    }

    #[test]
    fn no_output_can_issue_a_command() {
        let vectors = [
            "::error::forged",
            "  ::error file=a,line=1::forged",
            "\u{a0}\u{2003}\u{3000}\u{2028}\u{85}::error::forged",
            "progress\r::error::forged",
            "progress\r\n::error::forged",
            "text ##[group]forged",
            "##[error]forged",
            "##[add-mask]a",
            "::add-mask::a",
            "::set-output name=x::y",
            "##[set-env name=PATH]x",
            "::add-matcher::evil.json",
            "::stop-commands::token",
            "##[stop-commands]token",
            "::00000000000000000000000000000000::",
            "##[00000000000000000000000000000000]",
            "::TOKEN::",
            "##[TOKEN]",
            "::endgroup::",
            "##[endgroup]",
            "::ERROR::forged",
            "##[ErRoR]forged",
            "\u{1b}[31m::error::forged\u{1b}[0m",
            "#\u{1b}[1m#\u{1b}[0m[error]forged",
            "\u{1b}]8;;https://x\u{7}::error::forged",
            "\u{1b}]8;;##[error]x\u{1b}\\##[error]forged",
            "\u{9b}31m::error::forged",
            "\0::error::forged",
            "#\0#\0[error]forged",
            "#\r#[error]forged",
            "\u{feff}::error::forged",
            "\u{feff}##[error]forged",
            "\u{200b}::error::forged",
            "#\u{200b}#[error]forged",
            "##\u{200d}[error]forged",
            "##\u{ad}[error]forged",
            "#\u{301}#[error]forged",
            "####[error]forged",
            "\u{202e}::error::forged",
            "##[start-action display=x]",
            "::group::%0A::error::x",
            "",
        ];
        check("make", &vectors);
        for vector in vectors {
            check("make", &[vector]);
            check(vector, &["fine"]);
            check(vector, &[]);
        }
        let long = "x".repeat(100_000) + "##[error]forged";
        check("make", &[&long]);
    }

    #[test]
    fn the_parser_of_these_tests_sees_what_the_runner_sees() {
        let found = |log: &str| Runner::read(log).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(
            found("\u{3000}::Error file=a::x\rtext ##[warning]y\r\n::nothing::z"),
            ["error", "warning"]
        );
        assert_eq!(
            found("::stop-commands::t0\n::error::x\n a ##[t0]\n::error::y"),
            ["stop-commands", "resume", "error"]
        );
        assert_eq!(found("│ ::error::x\n# #[error]x"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn the_runner_finds_exactly_our_commands(
            lines in proptest::collection::vec(hostile(), 0..12),
            action in hostile(),
        ) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            check(&action, &lines);
        }

        #[test]
        fn escaped_text_stays_in_its_place(text in hostile()) {
            let annotation = Annotation {
                level: AnnotationLevel::Error,
                title: text.clone(),
                message: text.clone(),
                location: Some(Location { file: text.clone(), line: Some(1), column: None }),
            };
            let line = WorkflowCommands::default().annotation(&annotation);
            prop_assert!(!line.contains(['\r', '\n']));
            let found = Runner::read(&line);
            prop_assert_eq!(found.len(), 1);
            let data = found[0].1.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
            prop_assert_eq!(data, without_markers(&text, MARKERS));
            prop_assert!(!line.contains("##["));
        }
    }

    /// Lines made of the pieces that commands are made of, and of anything else.
    fn hostile() -> impl Strategy<Value = String> {
        let pieces: Vec<&'static str> = vec![
            "::error::x",
            "##[error]x",
            "::",
            "##[",
            "#",
            "[",
            "]",
            "error",
            "group",
            "add-mask",
            "stop-commands",
            "endgroup",
            " ",
            "\r",
            "\n",
            "\u{200b}",
            "\u{feff}",
            "\u{1b}[31m",
            "\u{1b}",
            "\u{7}",
            "\0",
            "\u{2028}",
            "\u{a0}",
            "%0A",
            "%",
            "│ ",
            "x",
        ];
        let piece = prop_oneof![4 => proptest::sample::select(pieces).prop_map(str::to_owned), 1 => ".{0,4}"];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn tokens_are_fresh_and_long() {
        let mut commands = WorkflowCommands::default();
        let (one, two) = (commands.block_start(None).unwrap(), commands.block_start(None).unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), "::stop-commands::".len() + 32);
        assert!(commands.block_end().is_some());
        assert_eq!(commands.block_end(), None);
    }

    #[test]
    fn commands_are_written_as_the_runner_reads_them() {
        let mut commands = WorkflowCommands::default();
        let location = Some(Location { file: "a,b:c.py".into(), line: Some(3), column: Some(7) });
        let annotation = Annotation {
            level: AnnotationLevel::Warning,
            title: "t: 50%".into(),
            message: "one\ntwo 100%".into(),
            location,
        };
        let lines = [
            commands.annotation(&annotation),
            commands.mask("a\nb").unwrap(),
            commands.group_start("50%\n::error::x", Timestamp::from_millis(0)),
        ];
        assert_snapshot!(lines.join("\n"), @r"
        ::warning file=a%2Cb%3Ac.py,line=3,col=7,title=t%3A 50%25::one%0Atwo 100%25
        ::add-mask::a%0Ab
        ::group::50%25%0A::error::x
        ");
        assert_eq!(commands.mask(" "), None);
    }
}
