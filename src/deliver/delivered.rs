//! The result of a delivery, as people and later steps of a job are told.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::context::error::Error;
use crate::forge::forge_trait::Checks;
use crate::forge::standing::Refusal;

/// The most files that are named.
const MOST_NAMED: usize = 20;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Something new is there: a pull request, a branch, a commit, a review, a patch.
    Created,
    /// What was there is as it should be again.
    Updated,
    /// Everything was there, or there is nothing to deliver: nothing was written.
    Unchanged {
        /// Why.
        why: String,
    },
    /// It is not delivered.
    Refused {
        /// Why, in the order in which it was found.
        why: Vec<Refusal>,
    },
}

impl Done {
    /// Tells whether anything was written that people get.
    pub(crate) fn is_delivered(&self) -> bool {
        matches!(self, Self::Created | Self::Updated)
    }

    /// Returns the word of the output `delivered`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged { .. } => "unchanged",
            Self::Refused { .. } => "refused",
        }
    }
}

/// A delivery that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What was done.
    pub done: Done,
    /// Whether nothing was written because it was only a rehearsal.
    pub is_rehearsal: bool,
    /// The page of the pull request, or of the review.
    pub url: Option<String>,
    /// The commit that was made, or that stands there.
    pub commit: Option<ObjectId>,
    /// Whether the server vouches for its signature.
    pub signed: Option<bool>,
    /// What becomes of checks.
    pub checks: Checks,
    /// The patch, where it was kept.
    pub patch: Option<PathBuf>,
    /// The digest of the bundle.
    pub bundle: Sum,
    /// What is to be said besides.
    pub notes: Vec<String>,
}

impl Delivery {
    /// Returns the outputs in their order.
    pub fn outputs(&self) -> Vec<(&'static str, String)> {
        let patch = self.patch.as_ref().map(|path| path.display().to_string());
        vec![
            ("delivered", self.done.word().to_owned()),
            ("pr-url", self.url.clone().unwrap_or_default()),
            ("commit", self.commit.as_ref().map_or_else(String::new, ToString::to_string)),
            ("signed", self.signed.map_or_else(String::new, |signed| signed.to_string())),
            ("checks", self.checks.word().to_owned()),
            ("patch", patch.unwrap_or_default()),
            ("bundle-digest", format!("sha256:{}", self.bundle)),
        ]
    }

    /// Returns what happened, a line each.
    pub fn lines(&self) -> Vec<String> {
        let would = if self.is_rehearsal { " (a rehearsal: nothing was written)" } else { "" };
        let mut lines = vec![format!("delivered: {}{would}", self.done.word())];
        match &self.done {
            Done::Created | Done::Updated => {}
            Done::Unchanged { why } => lines.push(why.clone()),
            Done::Refused { why } => {
                for refusal in why {
                    lines.push(refusal.why.clone());
                    lines.extend(named(&refusal.paths).map(|path| format!("  {path}")));
                }
            }
        }
        lines.extend(self.url.as_ref().map(|url| format!("see {url}")));
        lines.extend(self.commit.as_ref().map(|commit| match self.signed {
            Some(true) => format!("commit {commit}, signed"),
            Some(false) => format!("commit {commit}, not signed"),
            None => format!("commit {commit}"),
        }));
        lines.extend(self.notes.iter().cloned());
        lines.extend(self.patch.as_ref().map(|path| format!("patch: {}", path.display())));
        lines.push(format!("bundle: sha256:{}", self.bundle));
        lines
    }

    /// Returns the part of the job's summary.
    pub fn summary(&self, loop_name: &str) -> String {
        let mut text = format!("### Delivery of `{}`: {}\n\n", name(loop_name), self.done.word());
        // Indented by four, Markdown shows the lines as they are, whatever stands in them.
        for line in self.lines().iter().skip(1) {
            let _ = writeln!(text, "    {}", one_line(line, 300));
        }
        text.push('\n');
        text
    }
}

/// Returns the outputs of a delivery that failed: its results are empty, and the patch is there all the same.
pub(crate) fn outputs_of_failure(patch: Option<&Path>, bundle: Sum) -> Vec<(&'static str, String)> {
    let patch = patch.map(|path| path.display().to_string());
    let empty = ["delivered", "pr-url", "commit", "signed", "checks"].map(|name| (name, String::new()));
    let rest = [("patch", patch.unwrap_or_default()), ("bundle-digest", format!("sha256:{bundle}"))];
    empty.into_iter().chain(rest).collect()
}

/// Returns the part of the job's summary about a delivery that failed; which loop it is about is not known before its
/// bundle is open.
pub(crate) fn failure(loop_name: Option<&str>, error: &Error) -> String {
    let of_loop = loop_name.map_or_else(String::new, |loop_name| format!(" of `{}`", name(loop_name)));
    let mut text = format!("### Delivery{of_loop} failed\n\n");
    for line in std::iter::once(error.message()).chain(error.hint()) {
        let _ = writeln!(text, "    {}", one_line(line, 1000));
    }
    text.push('\n');
    text
}

/// Returns a name as it can stand in a code span.
fn name(loop_name: &str) -> String {
    one_line(loop_name, 100).replace('`', "")
}

fn named(paths: &[String]) -> impl Iterator<Item = String> {
    let more = paths.len().saturating_sub(MOST_NAMED);
    let shown = paths.iter().take(MOST_NAMED).map(|path| one_line(path, 200));
    shown.chain((more > 0).then(|| format!("and {more} more")))
}
