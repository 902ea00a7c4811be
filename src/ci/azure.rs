//! Azure Pipelines: logging commands, which the agent knows anywhere in a line.
//!
//! The agent obeys `##vso[area.event key=value;]data`, its web page draws `##[name]text`. Both are broken in output of
//! actions. Sources: `Command.cs` of microsoft/azure-pipelines-agent, `taskcommand.ts` of azure-pipelines-task-lib.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::job::{Job, Variables};
use super::line_marks::without_markers;
use super::plain::{Plain, one_clean_line};
use super::service::{CiService, ProviderRow, absolute, annotate};
use crate::base::lookup::Lookup;
use crate::base::time::Timestamp;
use crate::report::annotations::{Annotation, AnnotationLevel, Checkout};
use crate::report::dialect::Dialect;
use crate::report::digest::Digest;
use crate::report::formats::outputs;

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["azure"],
    detect,
    make: |_, env| Box::new(Azure::new(env)),
    withheld: WITHHELD,
    tokens: TOKENS,
};

/// Credentials of the agent and of service connections.
// An entry is the beginning of a name: the agent puts each credential into a variable of its own.
const WITHHELD: &[&str] = &[
    "ENDPOINT_",
    "SECUREFILE_",
    "SYSTEM_OIDCREQUESTURI",
    "VSTS_SECRET_VARIABLES",
    // `--token` of the agent, as its container images take it.
    "AZP_TOKEN",
    "VSTS_AGENT_INPUT_",
];

/// The token of the job.
const TOKENS: &[&str] = &["SYSTEM_ACCESSTOKEN"];

const VARIABLES: Variables = Variables {
    workspace: "BUILD_SOURCESDIRECTORY",
    name: "SYSTEM_JOBNAME",
    run: "BUILD_BUILDID",
    attempt: "SYSTEM_JOBATTEMPT",
};

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    env("TF_BUILD").is_some().then_some("azure")
}

/// A job of Azure Pipelines.
#[derive(Debug)]
struct Azure {
    job: Job,
}

impl Azure {
    /// Reads from the environment what the agent says about the job.
    fn new(env: Lookup<'_>) -> Self {
        Self { job: Job::read(env, &VARIABLES) }
    }
}

impl CiService for Azure {
    fn name(&self) -> &'static str {
        "azure"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(LoggingCommands)
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn shows_colours(&self) -> bool {
        true
    }

    fn publish(&self, digest: &Digest, tree: &Checkout<'_>, log: &mut dyn Write) -> Vec<io::Error> {
        let told = annotate(&LoggingCommands, digest, tree, log).and_then(|()| {
            for (name, value) in outputs::outputs(digest) {
                // A name of a variable has no hyphen.
                let properties = [("variable", name.replace('-', "_")), ("isOutput", "true".to_owned())];
                writeln!(log, "{}", command("task.setvariable", &properties, &value))?;
            }
            // Whether there is a summary is known by its place: the file was written before.
            if !digest.places.summary.is_empty() {
                let path = absolute(&self.job, tree, &digest.places.summary);
                writeln!(log, "{}", command("task.uploadsummary", &[], &path))?;
            }
            log.flush()
        });
        told.err().into_iter().collect()
    }
}

/// The dialect of logging commands.
#[derive(Clone, Copy, Debug, Default)]
struct LoggingCommands;

const MARKERS: &[&str] = &["", "vso"];

impl Dialect for LoggingCommands {
    fn group_start(&mut self, title: &str, _at: Timestamp) -> String {
        format!("##[group]{title}")
    }

    fn group_end(&mut self, _at: Timestamp) -> Option<String> {
        Some("##[endgroup]".to_owned())
    }

    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match one_clean_line(text) {
            Cow::Borrowed(clean) => without_markers(clean, MARKERS),
            Cow::Owned(clean) => Cow::Owned(without_markers(&clean, MARKERS).into_owned()),
        }
    }

    fn disarmed<'a>(&self, line: &'a str) -> Cow<'a, str> {
        without_markers(line, MARKERS)
    }

    /// A notice is a line: the agent knows errors and warnings.
    fn annotation(&self, annotation: &Annotation) -> String {
        let level = match annotation.level {
            AnnotationLevel::Error => "error",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Notice => return self.untrusted(&Plain.annotation(annotation)).into_owned(),
        };
        let mut properties = vec![("type", level.to_owned())];
        if let Some(location) = &annotation.location {
            properties.push(("sourcepath", location.file.clone()));
            properties.extend(location.line.map(|line| ("linenumber", line.to_string())));
            properties.extend(location.column.map(|column| ("columnnumber", column.to_string())));
        }
        command("task.logissue", &properties, &annotation.message)
    }

    fn mask(&self, value: &str) -> Option<String> {
        (!value.trim().is_empty()).then(|| command("task.setsecret", &[], value))
    }
}

/// Writes a command. What is in it can be no other one.
fn command(name: &str, properties: &[(&str, String)], data: &str) -> String {
    let properties = properties.iter().fold(String::new(), |mut all, (key, value)| {
        let _ = write!(all, "{key}={};", escaped(&without_markers(value, MARKERS), &['\r', '\n', ';', ']']));
        all
    });
    let blank = if properties.is_empty() { "" } else { " " };
    format!("##vso[{name}{blank}{properties}]{}", escaped(&without_markers(data, MARKERS), &['\r', '\n']))
}

/// Escapes these characters. A percent sign is escaped only where the agent would read an escape: not every agent
/// reads that of the sign itself.
fn escaped(text: &str, special: &[char]) -> String {
    let is_escape = |rest: &str| ["3B", "0D", "0A", "5D", "AZP25"].iter().any(|code| rest.starts_with(code));
    text.char_indices().fold(String::with_capacity(text.len()), |mut out, (at, c)| {
        match c {
            '\r' if special.contains(&c) => out.push_str("%0D"),
            '\n' if special.contains(&c) => out.push_str("%0A"),
            ';' if special.contains(&c) => out.push_str("%3B"),
            ']' if special.contains(&c) => out.push_str("%5D"),
            '%' if is_escape(&text[at + 1..]) => out.push_str("%AZP25"),
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
    use crate::report::testing::failing;

    /// A command that the agent or its web page finds: name, properties, data.
    type Found = (String, Vec<(String, String)>, String);

    /// What is found in a log, written from `Command.cs`, stricter where cultures and cases differ: characters of no
    /// width are gone before it looks.
    fn found(log: &str) -> Vec<Found> {
        let command = |line: &str| vso(line).or_else(|| drawn(line));
        let visible = |line: &str| line.chars().filter(|c| !is_skipped(*c)).collect::<String>();
        log.split(['\r', '\n']).filter_map(|line| command(line).or_else(|| command(&visible(line)))).collect()
    }

    fn vso(line: &str) -> Option<Found> {
        let start = line.to_ascii_lowercase().find("##vso[")?;
        let (info, data) = line[start + 6..].split_once(']')?;
        let (name, properties) = info.split_once(' ').unwrap_or((info, ""));
        let is_command = name.split('.').filter(|part| !part.is_empty()).count() == 2;
        let pairs = properties.split(';').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(key, value)| (key.to_owned(), unescaped(value))).collect();
        is_command.then(|| (name.to_owned(), pairs, unescaped(data)))
    }

    fn drawn(line: &str) -> Option<Found> {
        let (_, rest) = line.split_once("##[")?;
        let (name, data) = rest.split_once(']')?;
        Some((name.to_owned(), Vec::new(), data.to_owned()))
    }

    fn unescaped(text: &str) -> String {
        let pairs = [("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%AZP25", "%")];
        pairs.iter().fold(text.to_owned(), |text, (code, sign)| text.replace(code, sign))
    }

    #[track_caller]
    fn check(action: &str, lines: &[&str]) {
        let TestLog { log, steps } = show::<LoggingCommands>(action, lines);
        let names: Vec<String> = found(&log).into_iter().map(|(name, _, _)| name).collect();
        assert_eq!(names, ["group", "endgroup"].repeat(steps), "{log}");
    }

    #[test]
    fn no_output_can_issue_a_command() {
        let vectors = [
            "##vso[task.setvariable variable=PATH]x",
            "text ##vso[task.complete result=Succeeded;]",
            "##VSO[task.logissue type=error]forged",
            "##[group]forged",
            "##[endgroup]",
            "#\u{200b}#vso[task.setsecret]a",
            "##v\u{ad}so[build.addbuildtag]x",
            "#\u{1b}[1m#\u{1b}[0mvso[task.uploadfile]/etc/passwd",
            "progress\r##vso[artifact.upload artifactname=x]/etc",
            "###vso[task.prependpath]/tmp",
            "##\u{0}vso[task.prependpath]/tmp",
        ];
        check("make", &vectors);
        for vector in vectors {
            check(vector, &[vector]);
        }
    }

    #[test]
    fn the_model_sees_what_the_agent_sees() {
        let names = |log: &str| found(log).into_iter().map(|(name, _, _)| name).collect::<Vec<_>>();
        assert_eq!(
            names("a ##vso[task.x a=b;]y\r##[error]z\n##vso[nothing]\n##v\u{200b}so[a.b]"),
            ["task.x", "error", "a.b"]
        );
        assert_eq!(names("## vso[task.x]\n##vso [task.x]\n## [group]"), Vec::<String>::new());
    }

    const PIECES: &[&str] = &[
        "##vso[task.setvariable variable=x]y",
        "##vso[",
        "##[",
        "#",
        "vso",
        "VSO",
        "[",
        "]",
        "task.complete",
        "group",
        "endgroup",
        "%3B",
        "%5D",
        ";",
        "%AZP25",
    ];

    proptest! {
        #[test]
        fn the_agent_finds_exactly_our_commands(
            lines in proptest::collection::vec(hostile(PIECES), 0..12),
            action in hostile(PIECES),
        ) {
            check(&action, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        }

        #[test]
        fn what_is_in_a_command_comes_out_as_it_went_in(text in hostile(PIECES)) {
            let location = Some(Location { file: text.clone(), line: Some(1), column: Some(2) });
            let (title, message) = (text.clone(), text.clone());
            let line = LoggingCommands.annotation(&Annotation { level: AnnotationLevel::Error, title, message, location });
            prop_assert!(!line.contains(['\r', '\n']));
            let (name, properties, data) = vso(&line).unwrap();
            let broken = without_markers(&text, MARKERS).into_owned();
            prop_assert_eq!(name, "task.logissue");
            prop_assert_eq!(properties.len(), 4);
            prop_assert_eq!(&properties[1].1, &broken);
            prop_assert_eq!(data, broken);
        }
    }

    #[test]
    fn the_agent_is_told_everything() {
        let mut digest = failing().digest();
        digest.places.summary = ".loops/r/summary.md".into();
        let env = |name: &str| (name == "BUILD_SOURCESDIRECTORY").then(|| "/agent/s".to_owned());
        let mut log = Vec::new();
        let tree = Checkout { roots: &["/elsewhere"], home: "", exists: &|_| true };
        assert!(Azure::new(&env).publish(&digest, &tree, &mut log).is_empty());
        assert_snapshot!(String::from_utf8(log).unwrap(), @r#"
        ##vso[task.logissue type=error;sourcepath=.loops/fix-types.yaml;linenumber=6;]failure: `check` said no in 3 of 3 iterations%0Asrc/app.py:3: error: Name "foo" is not defined  [name-defined]%0Asrc/app.py:9:5: error: Missing return statement  [return]%0AFound 2 errors in 1 file (checked 4 source files)
        ##vso[task.logissue type=error;sourcepath=src/app.py;linenumber=3;]error: Name "foo" is not defined  [name-defined]
        ##vso[task.logissue type=error;sourcepath=src/app.py;linenumber=9;columnnumber=5;]error: Missing return statement  [return]
        ##vso[task.setvariable variable=outcome;isOutput=true;]failure
        ##vso[task.setvariable variable=exit_code;isOutput=true;]1
        ##vso[task.setvariable variable=verified;isOutput=true;]false
        ##vso[task.setvariable variable=reused;isOutput=true;]false
        ##vso[task.setvariable variable=reused_from;isOutput=true;]
        ##vso[task.setvariable variable=final_state;isOutput=true;]failed
        ##vso[task.setvariable variable=iterations;isOutput=true;]3
        ##vso[task.setvariable variable=steps;isOutput=true;]5
        ##vso[task.setvariable variable=duration_ms;isOutput=true;]11820
        ##vso[task.setvariable variable=run_id;isOutput=true;]fix-types-20251120T234847-1f2e
        ##vso[task.setvariable variable=handoff;isOutput=true;]false
        ##vso[task.setvariable variable=awaiting;isOutput=true;]
        ##vso[task.setvariable variable=continuation;isOutput=true;]
        ##vso[task.setvariable variable=key;isOutput=true;]
        ##vso[task.setvariable variable=artifact_name;isOutput=true;]
        ##vso[task.setvariable variable=resume_from;isOutput=true;]
        ##vso[task.setvariable variable=report_dir;isOutput=true;]
        ##vso[task.setvariable variable=junit;isOutput=true;]
        ##vso[task.setvariable variable=summary;isOutput=true;].loops/r/summary.md
        ##vso[task.setvariable variable=cost_usd;isOutput=true;]
        ##vso[task.setvariable variable=changed_files;isOutput=true;]
        ##vso[task.setvariable variable=patch;isOutput=true;]
        ##vso[task.uploadsummary]/agent/s/.loops/r/summary.md
        "#);
        assert_snapshot!(LoggingCommands.mask("a;b]\nc 5%5D").unwrap(), @"##vso[task.setsecret]a;b]%0Ac 5%AZP255D");
        assert_eq!(LoggingCommands.mask(" "), None);
    }
}
