//! What people read of a delivery: the message of the commit, and the pull request.

use super::body::BodyFacts;
use super::caveats::Caveats;
use super::offer::{Applied, Offered};
use crate::base::relative::Line;
use crate::forge::forge_trait::{Checks, NewPull};
use crate::forge::message;
use crate::forge::message::MessageFacts;
use crate::forge::names::{BranchName, StickyNames};
use crate::forge::standing::FixStanding;

/// What the texts are made of.
pub(super) struct Texts<'t> {
    pub(super) offered: &'t Offered<'t>,
    pub(super) standing: FixStanding,
    pub(super) applied: &'t Applied,
}

impl Texts<'_> {
    /// Writes the message of the commit.
    pub(super) fn message(&self) -> String {
        let bundle = self.offered.bundle;
        let manifest = &bundle.manifest;
        let run = manifest.job.as_ref().map_or_else(|| manifest.instance.to_string(), ToString::to_string);
        message::commit_message(&MessageFacts {
            loop_name: manifest.r#loop.as_str(),
            definition: &manifest.definition_sha256.to_string(),
            run: &run,
            patch: &self.applied.patch,
            files: self.applied.changes.len(),
            is_verified: self.standing != FixStanding::Unverified,
            caveats: &Caveats::of(&bundle.digest).lines(),
            agent: message::agent(&bundle.digest),
        })
    }

    /// Writes the pull request.
    pub(super) fn pull(&self, names: &StickyNames, base: &BranchName, checks: Checks) -> NewPull {
        let bundle = self.offered.bundle;
        let facts = BodyFacts {
            loop_name: &bundle.manifest.r#loop,
            run: &bundle.manifest.instance,
            digest: &bundle.digest,
            standing: self.standing,
            changes: &self.applied.changes,
            patch: &self.applied.patch,
            checks,
            job: bundle.manifest.job.as_ref().map(Line::as_str),
            bundle: &bundle.sum,
        };
        NewPull {
            branch: names.branch.clone(),
            base: base.clone(),
            title: facts.title(),
            body: facts.body(),
            is_draft: self.standing.needs_draft(),
        }
    }
}
