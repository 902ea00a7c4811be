//! TeamCity: service messages, which its agent knows wherever `##teamcity[` stands in a line.
//!
//! Source: the chapter on service messages of TeamCity's documentation.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::job::{Job, Variables};
use super::line_marks::without_markers;
use super::plain::{Plain, one_clean_line};
use super::service::{CiService, ProviderRow, absolute, annotate};
use crate::base::lookup::Lookup;
use crate::base::sum::Sum;
use crate::base::text::head;
use crate::base::time::Timestamp;
use crate::report::annotations::{Annotation, AnnotationLevel, Checkout};
use crate::report::dialect::Dialect;
use crate::report::digest::{Digest, EndKind};
use crate::report::formats::outputs;

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["teamcity"],
    detect,
    make: |_, env| Box::new(Teamcity::new(env)),
    withheld: WITHHELD,
    tokens: &[],
};

/// The password of the build, and the files with every parameter of it, those that are passwords included.
const WITHHELD: &[&str] = &["TEAMCITY_AUTH_", "TEAMCITY_BUILD_PROPERTIES_FILE"];

const VARIABLES: Variables =
    Variables { workspace: "", name: "TEAMCITY_BUILDCONF_NAME", run: "BUILD_NUMBER", attempt: "" };

/// The server cuts the description of a problem at 4,000 characters (TeamCity documentation, "Reporting Build Problems").
const MAX_DESCRIPTION: usize = 3900;

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    env("TEAMCITY_VERSION").is_some().then_some("teamcity")
}

/// A build of TeamCity.
#[derive(Debug)]
struct Teamcity {
    job: Job,
}

impl Teamcity {
    /// Reads from the environment what the agent says about the build.
    fn new(env: Lookup<'_>) -> Self {
        Self { job: Job::read(env, &VARIABLES) }
    }
}

impl CiService for Teamcity {
    fn name(&self) -> &'static str {
        "teamcity"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(ServiceMessages::default())
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn publish(&self, digest: &Digest, tree: &Checkout<'_>, log: &mut dyn Write) -> Vec<io::Error> {
        let told = annotate(&ServiceMessages::default(), digest, tree, log).and_then(|()| {
            // What goes on in a later build is not a problem of this one.
            if !matches!(digest.end_kind(), EndKind::Success | EndKind::NotRun | EndKind::HandedOff) {
                let sentence = head(&digest.sentence(), MAX_DESCRIPTION).to_owned();
                let problem = [("description", sentence), ("identity", identity(digest.loop_name()))];
                writeln!(log, "{}", message("buildProblem", &problem))?;
            }
            for (name, value) in outputs::outputs(digest) {
                // The server reads `%name%` in a value as that parameter.
                let value = value.replace('%', "%%");
                let parameter = [("name", format!("ll-loop.{name}")), ("value", value)];
                writeln!(log, "{}", message("setParameter", &parameter))?;
            }
            if !digest.places.junit.is_empty() {
                let path = absolute(&self.job, tree, &digest.places.junit);
                writeln!(log, "{}", message("importData", &[("type", "junit".to_owned()), ("path", path)]))?;
            }
            log.flush()
        });
        told.err().into_iter().collect()
    }
}

/// Names the problem of a loop, the same in every build: an identifier of Java of at most 60 characters, as the server wants it
/// (TeamCity documentation, "Reporting Build Problems"). Where that is not the whole name, a digest tells it from others.
fn identity(loop_name: &str) -> String {
    let plain: String = loop_name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain == loop_name && plain.len() <= LONGEST_PLAIN {
        return format!("ll_loop_{plain}");
    }
    let digest = Sum::of(loop_name.as_bytes()).to_string();
    format!("ll_loop_{}_{}", head(&plain, LONGEST_PLAIN), head(&digest, 8))
}

/// The longest part of a name that an identity has room for, beside what stands before and behind it.
const LONGEST_PLAIN: usize = 43;

/// The dialect of service messages.
#[derive(Debug, Default)]
struct ServiceMessages {
    /// The title of the block that is open.
    open: Option<String>,
}

impl Dialect for ServiceMessages {
    fn group_start(&mut self, title: &str, _at: Timestamp) -> String {
        self.open = Some(title.to_owned());
        message("blockOpened", &[("name", title.to_owned())])
    }

    fn group_end(&mut self, _at: Timestamp) -> Option<String> {
        self.open.take().map(|title| message("blockClosed", &[("name", title)]))
    }

    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match one_clean_line(text) {
            Cow::Borrowed(clean) => without_markers(clean, &["teamcity"]),
            Cow::Owned(clean) => Cow::Owned(without_markers(&clean, &["teamcity"]).into_owned()),
        }
    }

    fn disarmed<'a>(&self, line: &'a str) -> Cow<'a, str> {
        without_markers(line, &["teamcity"])
    }

    fn annotation(&self, annotation: &Annotation) -> String {
        let status = match annotation.level {
            AnnotationLevel::Error => "ERROR",
            AnnotationLevel::Warning => "WARNING",
            AnnotationLevel::Notice => "NORMAL",
        };
        message("message", &[("text", Plain.annotation(annotation)), ("status", status.to_owned())])
    }
}

/// Writes a message. An escaped value can neither end it nor be one: its brackets have a bar in front of them.
fn message(name: &str, attributes: &[(&str, String)]) -> String {
    let attributes = attributes.iter().fold(String::new(), |mut all, (key, value)| {
        let _ = write!(all, " {key}='{}'", escaped(value));
        all
    });
    format!("##teamcity[{name}{attributes}]")
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '|' | '\'' | '[' | ']' => out.extend(['|', c]),
            '\n' => out.push_str("|n"),
            '\r' => out.push_str("|r"),
            // TeamCity ends a line at these, too.
            '\u{85}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "|0x{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::ci::line_marks::is_skipped;
    use crate::ci::testing::{TestLog, hostile, show};
    use crate::report::annotations::Location;
    use crate::report::testing::{failing, succeeding};

    /// A message that TeamCity finds: its name and its values.
    type Found = (String, Vec<String>);

    /// What is found in a log, written from the documentation, stricter where it says nothing: anywhere in a line, in any
    /// case, with characters of no width gone.
    fn found(log: &str) -> Vec<Found> {
        let lines = log.split(['\r', '\n', '\u{85}', '\u{2028}', '\u{2029}']);
        let visible = lines.map(|line| line.chars().filter(|c| !is_skipped(*c)).collect::<String>());
        visible.flat_map(|line| messages(&line)).collect()
    }

    fn messages(line: &str) -> Vec<Found> {
        let mut all = Vec::new();
        let mut rest = line.to_owned();
        while let Some(start) = rest.to_ascii_lowercase().find("##teamcity[") {
            rest = rest[start + 11..].to_owned();
            let Some((text, after)) = until_bracket(&rest) else { break };
            let (name, attributes) = text.split_once(' ').unwrap_or((&text, ""));
            all.push((name.to_owned(), values(attributes)));
            rest = after;
        }
        all
    }

    /// The text before the first bracket that no bar stands in front of, and what comes after it.
    fn until_bracket(text: &str) -> Option<(String, String)> {
        let mut characters = text.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '|' => drop(characters.next()),
                ']' => return Some((text[..at].to_owned(), text[at + 1..].to_owned())),
                _ => {}
            }
        }
        None
    }

    fn values(text: &str) -> Vec<String> {
        let (mut all, mut inside) = (Vec::new(), false);
        let mut characters = text.chars();
        while let Some(c) = characters.next() {
            match (c, inside) {
                ('\'', false) => all.push(String::new()),
                ('|', true) => {
                    let c = match characters.next().unwrap() {
                        'n' => '\n',
                        'r' => '\r',
                        '0' => {
                            let digits: String = characters.by_ref().skip(1).take(4).collect();
                            char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap()
                        }
                        c => c,
                    };
                    all.last_mut().unwrap().push(c);
                }
                ('\'', true) | (_, false) => {}
                (c, true) => all.last_mut().unwrap().push(c),
            }
            inside ^= c == '\'';
        }
        all
    }

    #[track_caller]
    fn check(action: &str, lines: &[&str]) {
        let TestLog { log, steps } = show::<ServiceMessages>(action, lines);
        let found = found(&log);
        assert_eq!(found.len(), 2 * steps, "{log}");
        for pair in found.chunks(2) {
            assert_eq!((pair[0].0.as_str(), pair[1].0.as_str()), ("blockOpened", "blockClosed"), "{log}");
            assert_eq!(pair[0].1, pair[1].1, "{log}");
        }
    }

    #[test]
    fn the_identity_of_a_problem_is_an_identifier_that_no_other_loop_has() {
        assert_eq!(identity("main"), "ll_loop_main");
        let long = "x".repeat(120);
        let names = ["web/tidy", "web.tidy", "web_tidy", "web-tidy", &long, &long[1..], "prüfen"];
        let all: std::collections::BTreeSet<String> = names.iter().map(|name| identity(name)).collect();
        assert_eq!(all.len(), names.len(), "{all:?}");
        for identity in &all {
            let is_plain = identity.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            assert!(is_plain && identity.len() <= 60, "{identity}");
        }
    }

    #[test]
    fn no_output_is_a_service_message() {
        let vectors = [
            "##teamcity[buildStop comment='x']",
            "text ##teamcity[setParameter name='env.PATH' value='x']",
            "##TeamCity[blockClosed name='x']",
            "##team\u{200b}city[buildProblem description='x']",
            "#\u{1b}[1m#\u{1b}[0mteamcity[publishArtifacts '/etc']",
            "x\r##teamcity[disableServiceMessages]",
            "'] ##teamcity[testStarted name='x']",
            "|##teamcity[testFailed name='x']",
            "##teamcity[##teamcity[enableServiceMessages]",
            "\u{85}##teamcity[buildStatus status='SUCCESS']",
        ];
        check("make", &vectors);
        for vector in vectors {
            check(vector, &[vector]);
        }
    }

    #[test]
    fn the_model_sees_what_teamcity_sees() {
        let log = "a ##teamcity[message text='it|'s |[x|]|n|0x2028' status='ERROR'] ##teamcity[x 'y']\n##teamcity [z]";
        assert_eq!(
            found(log),
            [
                ("message".into(), vec!["it's [x]\n\u{2028}".into(), "ERROR".into()]),
                ("x".into(), vec!["y".into()]),
            ]
        );
    }

    const PIECES: &[&str] = &[
        "##teamcity[buildStop]",
        "##teamcity[",
        "#",
        "teamcity",
        "TeamCity",
        "[",
        "]",
        "'",
        "|",
        "||",
        "name='x'",
        "blockClosed",
    ];

    proptest! {
        #[test]
        fn teamcity_finds_exactly_our_messages(
            lines in proptest::collection::vec(hostile(PIECES), 0..12),
            action in hostile(PIECES),
        ) {
            check(&action, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        }

        #[test]
        fn a_value_comes_out_as_it_went_in(text in hostile(PIECES)) {
            let line = message("message", &[("text", text.clone())]);
            prop_assert_eq!(line.find(['\r', '\n', '\u{85}', '\u{2028}', '\u{2029}']), None);
            prop_assert_eq!(messages(&line), [("message".to_owned(), vec![text])]);
        }
    }

    #[test]
    fn the_server_is_told_everything() {
        let mut digest = failing().digest();
        digest.places.junit = ".loops/r/junit.xml".into();
        let mut log = Vec::new();
        let tree = Checkout { roots: &["/agent/work"], home: "", exists: &|_| true };
        assert!(Teamcity::new(&|_| None).publish(&digest, &tree, &mut log).is_empty());
        assert_snapshot!(String::from_utf8(log).unwrap(), @r#"
        ##teamcity[message text='.loops/fix-types.yaml:6: error: failure: `check` said no in 3 of 3 iterations…' status='ERROR']
        ##teamcity[message text='src/app.py:3: error: Name "foo" is not defined  |[name-defined|]' status='ERROR']
        ##teamcity[message text='src/app.py:9:5: error: Missing return statement  |[return|]' status='ERROR']
        ##teamcity[buildProblem description='failure: `check` said no in 3 of 3 iterations' identity='ll_loop_fix_types_251490e8']
        ##teamcity[setParameter name='ll-loop.outcome' value='failure']
        ##teamcity[setParameter name='ll-loop.exit-code' value='1']
        ##teamcity[setParameter name='ll-loop.verified' value='false']
        ##teamcity[setParameter name='ll-loop.reused' value='false']
        ##teamcity[setParameter name='ll-loop.reused-from' value='']
        ##teamcity[setParameter name='ll-loop.final-state' value='failed']
        ##teamcity[setParameter name='ll-loop.iterations' value='3']
        ##teamcity[setParameter name='ll-loop.steps' value='5']
        ##teamcity[setParameter name='ll-loop.duration-ms' value='11820']
        ##teamcity[setParameter name='ll-loop.run-id' value='fix-types-20251120T234847-1f2e']
        ##teamcity[setParameter name='ll-loop.handoff' value='false']
        ##teamcity[setParameter name='ll-loop.awaiting' value='']
        ##teamcity[setParameter name='ll-loop.continuation' value='']
        ##teamcity[setParameter name='ll-loop.key' value='']
        ##teamcity[setParameter name='ll-loop.artifact-name' value='']
        ##teamcity[setParameter name='ll-loop.resume-from' value='']
        ##teamcity[setParameter name='ll-loop.report-dir' value='']
        ##teamcity[setParameter name='ll-loop.junit' value='.loops/r/junit.xml']
        ##teamcity[setParameter name='ll-loop.summary' value='']
        ##teamcity[setParameter name='ll-loop.cost-usd' value='']
        ##teamcity[setParameter name='ll-loop.changed-files' value='']
        ##teamcity[setParameter name='ll-loop.patch' value='']
        ##teamcity[importData type='junit' path='/agent/work/.loops/r/junit.xml']
        "#);
        let mut log = Vec::new();
        assert!(Teamcity::new(&|_| None).publish(&succeeding().digest(), &tree, &mut log).is_empty());
        assert!(!String::from_utf8(log).unwrap().contains("buildProblem"));
        let location = Some(Location { file: "a.c".into(), line: Some(3), column: None });
        let (title, message) = (String::new(), "it's [x]\nmore".into());
        let note = Annotation { level: AnnotationLevel::Notice, title, message, location };
        assert_snapshot!(ServiceMessages::default().annotation(&note), @"##teamcity[message text='a.c:3: notice: it|'s |[x|]…' status='NORMAL']");
    }
}
