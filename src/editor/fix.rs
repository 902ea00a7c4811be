//! Repairs of findings, tried before they are made: a change stays only if its finding is gone with it, and unless one asks for
//! more, only if a run does the same afterwards.

use std::path::Path;
use std::sync::Arc;

use super::checked_file::CheckedFile;
use super::project_check::{self, CheckOptions};
use super::repair_edit::{self, RepairEdit};
use super::write_back;
use crate::base::diagnostic::{Diagnostic, Repair};
use crate::base::node::FileId;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load;
use crate::definition::render::{self, PlacedFinding};
use crate::definition::vendored::CopiedFile;
use crate::definition::yaml::MAX_SIZE;
use crate::files::unsaved::UnsavedTexts;
use crate::machine::{Machine, compile};
use crate::session::prepare::loop_check::Checked;

/// More repairs than this are not made in one file.
const MOST: usize = 1_000;

/// Which repairs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixScope {
    /// Those after which a run does the same. A file that cannot be loaded is not run, so all of its repairs are among them.
    Same,
    /// All that have one answer.
    All,
}

/// A repair that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeRepair {
    /// The file as people know it.
    pub(crate) file: String,
    /// The line, from 1, as it was when the repair was made.
    pub(crate) line: u64,
    /// What was found.
    pub(crate) message: String,
    /// The code of the finding.
    pub(crate) code: String,
}

/// A file that may be repaired, with its text as it is by now.
struct RepairedText<'f, 's> {
    path: &'f Path,
    text: String,
    session: &'f Session<'s>,
    options: &'f CheckOptions<'f>,
}

/// Repairs the loops and tests that are named, or those of a project, and writes them. Copies of other repositories are left as
/// they are.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn fix(
    options: &CheckOptions<'_>,
    scope: FixScope,
    session: &Session<'_>,
) -> Result<Vec<MadeRepair>, Error> {
    let project = project_check::check(options, session);
    let mut made = Vec::new();
    for CheckedFile { path, checked } in &project.files {
        let is_ours = CopiedFile::at(path).is_none() && path.is_file();
        if !is_ours || !has_repairs(checked) {
            continue;
        }
        let Ok(text) = session.unsaved.text(path, MAX_SIZE as u64) else { continue };
        let mut file = RepairedText { path, text: text.clone(), session, options };
        let of_file = file.repair(scope);
        if file.text != text {
            write_back::write(path, &file.text)?;
        }
        made.extend(of_file);
    }
    Ok(made)
}

fn has_repairs(checked: &Checked) -> bool {
    checked.findings.iter().any(|finding| finding.repair.is_some())
}

/// Returns the change that takes a finding in the checked file itself away.
pub(crate) fn change(finding: &PlacedFinding, checked: &Checked) -> Option<RepairEdit> {
    change_of(finding, finding.repair.as_ref()?, checked)
}

/// Returns the changes that take a finding away, of which somebody has to choose one.
pub(crate) fn choices(finding: &PlacedFinding, checked: &Checked) -> Vec<RepairEdit> {
    finding.choices.iter().filter_map(|repair| change_of(finding, repair, checked)).collect()
}

fn change_of(finding: &PlacedFinding, repair: &Repair, checked: &Checked) -> Option<RepairEdit> {
    let source = checked.sources.get(FileId(0)).filter(|_| finding.span.file == FileId(0))?;
    repair_edit::change(source.text(), &finding.span.range, repair)
}

/// What a check says that decides about a repair.
struct CheckedText {
    checked: Checked,
    /// What a run would do, if the file can be run.
    machine: Option<Machine>,
}

impl RepairedText<'_, '_> {
    /// Makes the repairs one after the other; each is tried on what those before it have left.
    fn repair(&mut self, scope: FixScope) -> Vec<MadeRepair> {
        let mut made = Vec::new();
        let mut refused: Vec<(String, Repair)> = Vec::new();
        let Some(mut before) = self.checked(&self.text) else { return made };
        while made.len() < MOST {
            let found = render::placed(
                &before.checked.findings,
                &before.checked.sources,
                before.checked.tree.as_ref(),
            );
            let next = found.iter().find_map(|finding| {
                let key = (identity(finding), finding.repair.clone()?);
                (!refused.contains(&key)).then_some(())?;
                Some((finding, key, change(finding, &before.checked)))
            });
            let Some((finding, key, change)) = next else { break };
            let changed = change.map(|change| self.with_mark(&change));
            let after = changed.and_then(|text| Some((self.checked(&text)?, text)));
            match after
                .filter(|(after, _)| is_gone(finding, &before, after) && is_allowed(&before, after, scope))
            {
                Some((after, text)) => {
                    made.push(MadeRepair {
                        file: before.checked.shown.clone(),
                        line: finding.object["line"].as_u64().unwrap_or(1),
                        message: finding.message.clone(),
                        code: finding.code.to_owned(),
                    });
                    self.text = text;
                    before = after;
                }
                // It would be found again, and tried without end.
                None => refused.push(key),
            }
        }
        made
    }

    /// Returns the text with a change, which counts from behind a byte order mark.
    fn with_mark(&self, change: &RepairEdit) -> String {
        match self.text.strip_prefix('\u{feff}') {
            Some(text) => format!("\u{feff}{}", change.apply(text)),
            None => change.apply(&self.text),
        }
    }

    fn checked(&self, text: &str) -> Option<CheckedText> {
        let unsaved = UnsavedTexts::of([(self.path.to_owned(), Arc::from(text))]);
        let session = self.session.clone().beneath(unsaved.clone());
        let facts = project_check::ProjectFacts::default();
        let file = project_check::check_again(self.path, &facts, self.options, &session).ok()?;
        let located = load::unsaved(&self.path.display().to_string(), self.path, &session.cwd).ok()?;
        let loaded = load::load(&located.beneath(unsaved)).ok();
        let machine = loaded.and_then(|loaded| compile::compile(&loaded.definition).0);
        Some(CheckedText { checked: file.checked, machine })
    }
}

/// Returns what makes a finding the same one in another text.
fn identity(finding: &PlacedFinding) -> String {
    // Without its place, which moves with every repair above it.
    format!("{} {}", finding.object["code"], finding.object["message"])
}

/// Tells whether a finding is there less often than before.
fn is_gone(finding: &PlacedFinding, before: &CheckedText, after: &CheckedText) -> bool {
    let count = |verdict: &CheckedText| {
        let is_same = |found: &&Diagnostic| found.code == finding.code && found.message == finding.message;
        verdict.checked.findings.iter().filter(is_same).count()
    };
    count(after) < count(before)
}

/// Tells whether a run does the same afterwards, or need not.
fn is_allowed(before: &CheckedText, after: &CheckedText, scope: FixScope) -> bool {
    let could_run = before.machine.is_some() && !before.checked.findings.has_errors();
    // A file that loads stays one that loads, whatever else may change.
    let stays_whole = !could_run || !after.checked.findings.has_errors();
    stays_whole && (scope == FixScope::All || !could_run || before.machine == after.machine)
}
