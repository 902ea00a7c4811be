//! A run in a container: what the container leaves is data, and this process, which is outside, hands it over to the job.
//!
//! The image may be anybody's. So no file that the runner reads is in the container: it writes its outputs and its summary
//! to files of its own. Known outputs alone go on, each checked by its kind, and how the run ended is what the exit code of
//! the container says, which nobody inside can write.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use crate::base::run_key::RunKey;
use crate::base::text::one_line;
use crate::ci::Provider;
use crate::ci::github::file_commands::MAX_SUMMARY;
use crate::ci::github::log_gate::LogGate;
use crate::context::Session;
use crate::context::error::Error;
use crate::engine::outcome::Outcome;
use crate::files::read;
use crate::forge::github::artifacts::PREFIX;
use crate::process::relayed;

/// The file with the outputs, in the directory that the container may write to.
const OUTPUTS: &str = "output";

/// The file with the summary.
const SUMMARY: &str = "summary";

/// The most bytes of the outputs that are read.
// GitHub takes at most 1 MB of outputs from a job, so nothing that counts is cut off.
const MAX_OUTPUTS: u64 = 1 << 20;

/// The most characters of a text.
const MAX_TEXT: usize = 16 * 1024;

/// The outputs that are known before the end, so that later steps find what is left of a run that is killed.
const EARLY: [&str; 5] = ["run-id", "key", "report-dir", "artifact-name", "upload-name"];

/// What an output may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputKind {
    /// The end of the run in a word.
    Ending,
    /// The exit code.
    Code,
    /// Whether the success is verified.
    Verified,
    /// Whether the run is saved for a later one.
    Saved,
    /// A number of something.
    Count,
    /// A number of dollars.
    Dollars,
    /// A name.
    Label,
    /// A text of one line.
    Line,
    /// A text.
    Text,
    /// The name of an artifact of this job.
    Artifact,
    /// Where a later job finds the run.
    Source,
    /// The directory with the reports.
    Reports,
    /// A file of the reports.
    Report,
}

/// The outputs of the action, in their order, and the one with which a later step uploads.
const KNOWN: [(&str, OutputKind); 23] = [
    ("outcome", OutputKind::Ending),
    ("exit-code", OutputKind::Code),
    ("verified", OutputKind::Verified),
    ("reused", OutputKind::Saved),
    ("reused-from", OutputKind::Label),
    ("final-state", OutputKind::Line),
    ("iterations", OutputKind::Count),
    ("steps", OutputKind::Count),
    ("duration-ms", OutputKind::Count),
    ("run-id", OutputKind::Label),
    ("handoff", OutputKind::Saved),
    ("awaiting", OutputKind::Label),
    ("continuation", OutputKind::Text),
    ("key", OutputKind::Label),
    ("artifact-name", OutputKind::Artifact),
    ("resume-from", OutputKind::Source),
    ("report-dir", OutputKind::Reports),
    ("junit", OutputKind::Report),
    ("summary", OutputKind::Report),
    ("cost-usd", OutputKind::Dollars),
    ("changed-files", OutputKind::Count),
    ("patch", OutputKind::Report),
    ("upload-name", OutputKind::Artifact),
];

/// An exit code above it names the signal that ended a process.
pub const SIGNALLED: u8 = 128;

/// What this process knows itself of a container and its job.
struct ContainerFacts {
    /// The exit code of the container; none while it runs.
    code: Option<u8>,
    /// Whether a later step says how a run ended that was killed.
    has_later_step: bool,
    workspace: PathBuf,
    /// The directory of the reports, where the job names one.
    wanted: Option<PathBuf>,
    /// How the names of artifacts of this job end.
    suffix: String,
}

impl Session<'_> {
    /// Runs the client of a container, and hands over what the container leaves in a directory. Returns its exit code.
    ///
    /// # Errors
    /// The client cannot be started.
    pub fn contain(&self, argv: &[String], left: &Path) -> Result<u8, Error> {
        let mut outside = ContainerFacts::of(self);
        let code = self.run_client(argv, left, &outside)?;
        outside.code = Some(code);
        self.hand_over(left, &outside);
        Ok(code)
    }

    /// The same for the container in which the reports are made of a run that was killed in another one with this exit
    /// code: it says how far the run came, and never how it ended.
    ///
    /// # Errors
    /// The client cannot be started.
    pub fn contain_rest(&self, argv: &[String], left: &Path, code: u8) -> Result<(), Error> {
        let outside = ContainerFacts { code: Some(code), has_later_step: false, ..ContainerFacts::of(self) };
        self.run_client(argv, left, &outside)?;
        self.hand_over(left, &outside);
        Ok(())
    }

    /// Runs the client of a container, whose log passes through our hands.
    fn run_client(&self, argv: &[String], left: &Path, outside: &ContainerFacts) -> Result<u8, Error> {
        let failed = |error| Error::failed("cannot start the container", &error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let is_known = |value: &str| !value.is_empty() && self.env.has_value(value);
        // An image could print commands of the runner; only values that the job has itself may be masked.
        let mut gate = LogGate::new(&is_known);
        let provider = Provider::detect(&self.env.lookup());
        let mut is_told = outside.code.is_some();
        let code = runtime.block_on(relayed::run(argv, &mut |line| {
            // With each line of the log, because nothing else says that the container has written its first outputs.
            is_told = is_told || self.announce_contained(left, outside);
            if let Some(line) = line.and_then(|line| gate.pass(line)) {
                self.talk.ci_line(&line, &provider);
            }
        }));
        code.map_err(failed)
    }

    /// Tells the job where the reports of a run are that goes on, once that is known.
    fn announce_contained(&self, left: &Path, outside: &ContainerFacts) -> bool {
        let Some(left) = left_text(&left.join(OUTPUTS), MAX_OUTPUTS).map(|text| blocks(&text)) else {
            return false;
        };
        let early: Vec<_> =
            outside.checked(&left).into_iter().filter(|(name, _)| EARLY.contains(name)).collect();
        let is_known = early.iter().any(|(name, _)| matches!(*name, "run-id" | "report-dir"));
        // The file may be half written; without one of both, there is nothing yet that a later step could look for.
        if is_known {
            self.announce_or_warn(&early);
        }
        is_known
    }

    /// Hands over what a container left that has ended.
    fn hand_over(&self, left: &Path, outside: &ContainerFacts) {
        let given = left_text(&left.join(OUTPUTS), MAX_OUTPUTS);
        let given: BTreeMap<_, _> = given.iter().flat_map(|text| blocks(text)).collect();
        let mut outputs: BTreeMap<_, _> = outside.checked(&given).into_iter().collect();
        let holds = |(name, value): &(&String, &String)| {
            outputs.get(name.as_str()).map_or("", String::as_str) == *value
        };
        let refused: Vec<&str> =
            given.iter().filter(|output| !holds(output)).map(|(name, _)| name.as_str()).collect();
        if !refused.is_empty() {
            let names = one_line(&refused.join("`, `"), 200);
            self.talk.warning(&format!("the container left outputs that are not handed over: `{names}`"));
        }
        let reports = outputs.get("report-dir").map(|directory| outside.workspace.join(directory));
        if let Some(Err(error)) = reports.map(|reports| self.clean_reports(&reports)) {
            self.talk.warning(&format!("{}; nothing of the reports is stored", error.message()));
            for name in ["upload-name", "artifact-name", "report-dir", "junit", "summary", "patch"] {
                outputs.insert(name, String::new());
            }
        }
        // What was told early, and does not hold any more, is taken back.
        let all: Vec<_> =
            KNOWN.iter().map(|(name, _)| (*name, outputs.remove(name).unwrap_or_default())).collect();
        self.announce_or_warn(&all);
        // More than fits, so that `summarize` sees that it is too long, cuts it at the end of a line and says so.
        let summary = left_text(&left.join(SUMMARY), 2 * MAX_SUMMARY).filter(|summary| !summary.is_empty());
        let told = summary.map(|summary| Provider::detect(&self.env.lookup()).summarize(&summary));
        if let Some(Err(error)) = told {
            self.talk.warning(&format!("cannot hand over the summary: {error}"));
        }
    }

    fn announce_or_warn(&self, outputs: &[(&'static str, String)]) {
        if let Err(error) = Provider::detect(&self.env.lookup()).announce(outputs) {
            self.talk.warning(&format!("cannot hand over the outputs: {error}"));
        }
    }

    /// Removes from a directory of reports, which a container could write to, whatever is neither a file nor a directory,
    /// and says so: the action that uploads follows links.
    ///
    /// # Errors
    /// The directory is not one of reports in the workspace, or something in it cannot be removed.
    pub fn clean_reports(&self, directory: &Path) -> Result<(), Error> {
        let outside = ContainerFacts::of(self);
        if !outside.is_reports(directory) {
            let path = directory.display();
            return Err(Error::refused(format!("`{path}` is not a directory of reports in the workspace")));
        }
        let failed = |error| Error::failed("cannot remove what a container left", &error);
        for path in removed_specials(directory).map_err(failed)? {
            let path = one_line(&path.to_string_lossy(), 200);
            self.talk
                .warning(&format!("removed `{path}` from the reports: it is neither a file nor a directory"));
        }
        Ok(())
    }
}

/// Removes links, pipes, sockets and devices below a directory.
fn removed_specials(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        // This follows no link, so a link to a directory is removed and not entered.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            removed.extend(removed_specials(&entry.path())?);
        } else if !kind.is_file() {
            fs_err::remove_file(entry.path())?;
            removed.push(entry.path());
        }
    }
    Ok(removed)
}

impl ContainerFacts {
    fn of(session: &Session<'_>) -> Self {
        let provider = Provider::detect(&session.env.lookup());
        let workspace = provider.job().workspace.unwrap_or_else(|| session.cwd.clone());
        let wanted = session.env.get("INPUT_REPORT_DIR").filter(|given| !given.is_empty());
        let anything = RunKey::new(Some("x"), "");
        let suffix = provider.job().id.map(|id| id.name_for(&anything).trim_start_matches('x').to_owned());
        // The name of an artifact is made for a key. What follows the key is the same for every run
        // of the job.
        Self {
            code: None,
            has_later_step: true,
            wanted: wanted.map(|given| workspace.join(given)),
            workspace,
            suffix: suffix.unwrap_or_default(),
        }
    }

    /// Returns what of the outputs holds.
    fn checked(&self, given: &BTreeMap<String, String>) -> Vec<(&'static str, String)> {
        let of = |name: &str| given.get(name).map_or("", String::as_str);
        let reports = self.workspace.join(of("report-dir"));
        let value = |(name, kind): (&'static str, OutputKind)| {
            let value = of(name);
            let ending = self.ending(kind, value);
            ending
                .or_else(|| self.holds(kind, value, &reports).then(|| value.to_owned()))
                .map(|value| (name, value))
        };
        KNOWN.into_iter().filter_map(value).collect()
    }

    /// Tells whether an output can be what it has to be.
    fn holds(&self, kind: OutputKind, value: &str, reports: &Path) -> bool {
        let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
        match kind {
            // These are known from the exit code alone.
            OutputKind::Ending | OutputKind::Code | OutputKind::Verified | OutputKind::Saved => false,
            OutputKind::Count => {
                // The largest count, a `u64`, has 20 digits.
                (1..=20).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit())
            }
            OutputKind::Dollars => value.parse::<f64>().is_ok_and(|cost| cost.is_finite() && cost >= 0.0),
            OutputKind::Label => is_label(value),
            OutputKind::Line => value.len() <= MAX_TEXT && !value.chars().any(char::is_control),
            OutputKind::Text => value.len() <= MAX_TEXT && value.chars().all(is_text),
            OutputKind::Artifact => self.is_artifact(value),
            OutputKind::Source => {
                let artifact = value.strip_prefix("artifact:");
                artifact.is_some_and(|name| self.is_artifact(name))
                    || value.strip_prefix("run:").is_some_and(is_label)
            }
            OutputKind::Reports => self.is_reports(reports),
            OutputKind::Report => self.is_reports(reports) && self.is_report(value, reports),
        }
    }

    /// Returns what is known of the end of the run: the exit code of the container, and of what the container says the
    /// part that the exit code bears out.
    fn ending(&self, kind: OutputKind, value: &str) -> Option<String> {
        let code = self.code?;
        match kind {
            // One that was killed had no time for a word, and the next step tells its end by the journal.
            OutputKind::Ending if self.has_later_step && value.is_empty() && code > SIGNALLED => {
                Some(String::new())
            }
            OutputKind::Ending => Some(outcome(code, value).to_owned()),
            OutputKind::Verified => Some((code == 0 && value == "true").to_string()),
            OutputKind::Saved => {
                let handed_off = Outcome::Handoff.exit_code(None);
                let is_resumable = Outcome::ALL.into_iter().any(|o| o.is_resumable() && has_code(o, code));
                Some((code == handed_off || (is_resumable && value == "true")).to_string())
            }
            OutputKind::Code => Some(code.to_string()),
            OutputKind::Count
            | OutputKind::Dollars
            | OutputKind::Label
            | OutputKind::Line
            | OutputKind::Text
            | OutputKind::Artifact
            | OutputKind::Source
            | OutputKind::Reports
            | OutputKind::Report => None,
        }
    }

    fn is_artifact(&self, name: &str) -> bool {
        // Otherwise a container could have the artifact of another job stored, or fetched, as its
        // own.
        name.starts_with(PREFIX) && is_label(name) && name.ends_with(&self.suffix)
    }

    /// Tells whether a directory is where a run in this workspace leaves reports, and no part of the way is a link.
    fn is_reports(&self, directory: &Path) -> bool {
        let Ok(below) = directory.strip_prefix(&self.workspace) else { return false };
        let parts: Vec<_> = below.components().collect();
        let is_of_runs = parts.windows(2).any(|pair| {
            pair[0].as_os_str() == ".loops"
                && [".running", ".history"].iter().any(|own| pair[1].as_os_str() == *own)
        });
        let is_wanted = match &self.wanted {
            Some(wanted) => wanted.components().eq(directory.components()) && !parts.is_empty(),
            None => is_of_runs,
        };
        is_wanted && self.is_there(below).is_some_and(|meta| meta.is_dir())
    }

    fn is_report(&self, file: &str, reports: &Path) -> bool {
        let path = self.workspace.join(file);
        let Ok(below) = path.strip_prefix(&self.workspace) else { return false };
        path.starts_with(reports) && self.is_there(below).is_some_and(|meta| meta.is_file())
    }

    /// Looks at what is in the workspace, unless a link leads there.
    fn is_there(&self, below: &Path) -> Option<std::fs::Metadata> {
        let mut path = self.workspace.clone();
        let mut last = None;
        for part in is_plain(below).then(|| below.components())? {
            path.push(part);
            last = Some(fs_err::symlink_metadata(&path).ok()?);
        }
        last
    }
}

fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Tells whether a text is a name as we make them.
fn is_label(text: &str) -> bool {
    let is_safe = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    !text.is_empty() && text.len() <= 250 && text.chars().all(is_safe)
}

fn has_code(outcome: Outcome, code: u8) -> bool {
    // An interrupted run has an exit code for each signal, and `exit_code` without one knows only that of SIGINT.
    outcome.exit_code(None) == code || (outcome == Outcome::Interrupted && code > SIGNALLED)
}

/// Returns the word for the end of a run with this exit code: the one that the container says, if it can be.
fn outcome(code: u8, said: &str) -> &'static str {
    let fits = |outcome: &&Outcome| has_code(**outcome, code);
    // Several outcomes share an exit code, so the container may choose among these, and only among these.
    let mut fitting = Outcome::ALL.iter().filter(fits);
    let said = Outcome::ALL.iter().filter(fits).find(|outcome| outcome.word() == said);
    said.or_else(|| fitting.next()).map_or(Outcome::Error.word(), |outcome| outcome.word())
}

/// Reads a text that a container left, and follows no link.
fn left_text(path: &Path, limit: u64) -> Option<String> {
    let file = read::unlinked(path).ok()?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads outputs as ll-loop writes them, in blocks between delimiters. Of two values, the later one counts; half a block
/// is none.
fn blocks(text: &str) -> BTreeMap<String, String> {
    let mut lines = text.lines();
    let mut blocks = BTreeMap::new();
    while let Some(line) = lines.next() {
        let Some((name, delimiter)) = line.split_once("<<") else { continue };
        let mut value: Vec<&str> = Vec::new();
        let is_whole = lines.by_ref().any(|line| {
            let is_end = line == delimiter;
            value.extend((!is_end).then_some(line));
            is_end
        });
        if is_whole {
            blocks.insert(name.to_owned(), value.join("\n"));
        }
    }
    blocks
}
