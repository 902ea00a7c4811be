//! What is offered for delivery: the fix of a run, out of its bundle, and whether it may be delivered at all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::locked::LockedForge;
use super::policy::{self, Accepted};
use super::secrecy::{self, Secrecy};
use super::servers::DeliveryServer;
use super::way::DeliverOptions;
use crate::base::object::ObjectId;
use crate::bundle::names;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::{self, DIRECTORY};
use crate::forge::change::FileChange;
use crate::forge::forge_trait::Forge;
use crate::forge::message::PatchId;
use crate::forge::names::BranchName;
use crate::forge::standing::{FixStanding, Refusal};
use crate::journal::files::RunFiles;
use crate::lock::Lock;
use crate::policy::DeliveryMode;
use crate::repository;
use crate::repository::delivery_stop::DeliveryStop;
use crate::repository::workspace::{Fix, Workspace};

/// A fix on top of a commit of the server.
pub(super) struct Applied {
    /// The files that come of it.
    pub(super) tree: ObjectId,
    /// What differs from the commit.
    pub(super) changes: Vec<FileChange>,
    /// The id of that difference.
    pub(super) patch: PatchId,
}

/// The fix of a run.
pub(super) struct Offered<'b> {
    pub(super) bundle: &'b OpenedBundle,
    pub(super) workspace: Workspace,
    pub(super) fix: Fix,
    /// What it changes since the run began.
    pub(super) changes: Vec<FileChange>,
    secrecy: Secrecy,
    is_elsewhere: Option<String>,
    /// The lock of what it changes, where there is one.
    pub(super) lock: Option<Lock>,
}

impl<'b> Offered<'b> {
    /// Takes the fix out of a bundle.
    pub(super) fn new(
        bundle: &'b OpenedBundle,
        server: &DeliveryServer,
        options: &DeliverOptions,
        session: &Session<'_>,
    ) -> Result<Self, DeliveryStop> {
        let Some(saved) = &bundle.manifest.tree else {
            return Err(DeliveryStop::refused(
                "the bundle holds no working tree: the run was in no git repository",
            ));
        };
        if let Some(why) = &saved.missing {
            return Err(DeliveryStop::refused(format!(
                "the bundle does not hold what the run changed: {why}"
            )));
        }
        let checkout = repository::at(&session.cwd, session);
        // Apart from the checkout, whose configuration, filters and hooks the job of the run could write.
        let workspace = Workspace::new(&saved.base, &checkout, server.remote(), session)?;
        let fix = workspace.take(saved, bundle.objects().as_deref())?;
        let changes = workspace.changes(&fix.base_tree, &fix.tree)?;
        let allowed = options.allow_secrets.iter().cloned().collect();
        // Looked for here and not in `check`, because the patch of a delivery that is refused is
        // kept as well.
        let secrecy = secrecy::of_changes(&workspace, &changes, &allowed, session)?;
        let is_elsewhere = elsewhere(bundle, server);
        Ok(Self { bundle, workspace, fix, changes, secrecy, is_elsewhere, lock: None })
    }

    /// Returns what takes it, as long as it is locked.
    pub(super) fn forge<'f>(
        &'f self,
        server: &'f DeliveryServer,
        session: &Session<'_>,
    ) -> Result<Box<dyn Forge + 'f>, DeliveryStop> {
        let forge = server.forge(&self.workspace, session)?;
        Ok(match &self.lock {
            Some(lock) => Box::new(LockedForge { forge, lock }),
            None => forge,
        })
    }

    /// Refuses what must not be delivered, whatever stands on the server.
    pub(super) fn check(&self, options: &DeliverOptions) -> Result<FixStanding, DeliveryStop> {
        let manifest = &self.bundle.manifest;
        if options.unverified && options.way != DeliveryMode::Pr {
            return Err(DeliveryStop::refused(
                "`--unverified` is for a pull request alone (`--to pr`), which can be a draft that says so",
            ));
        }
        // Suggestions are for pull requests from other repositories too, and look at that themselves.
        if options.way != DeliveryMode::Suggest {
            self.check_repository()?;
        }
        let accepted = Accepted { unverified: options.unverified, judges: options.allow_judges };
        let standing = policy::of_run(&self.bundle.digest, accepted);
        let standing = standing.map_err(|refusal| DeliveryStop::Refused(vec![refusal]))?;
        let left_out: Vec<String> = manifest
            .left_out
            .iter()
            .filter(|left| left.is_of_tree())
            .map(|left| format!("{}: {}", left.path, left.why))
            .collect();
        if !left_out.is_empty() {
            return Err(DeliveryStop::about(
                "the bundle does not hold the whole tree that was verified",
                left_out,
            ));
        }
        let ended = self.bundle.digest.changes().map(|changes| changes.end.tree.as_str());
        // Where it is not known what the run changed, the policy has refused it already.
        if ended.is_some_and(|tree| tree != self.fix.tree.as_str()) {
            return Err(DeliveryStop::refused(
                "the bundle holds other files than those that the run left: they were changed since",
            ));
        }
        // Compared with another commit, a part of the fix would be missing, or all of it.
        let began = self.bundle.digest.changes().map(|changes| &changes.start.commit);
        if let Some(began) = began.filter(|began| **began != self.fix.base) {
            return Err(DeliveryStop::refused(format!(
                "the run began at the commit {began}, and the bundle holds what differs from {}",
                self.fix.base
            )));
        }
        if self.changes.is_empty() {
            return Err(DeliveryStop::Unchanged("the run changed nothing".to_owned()));
        }
        if let Secrecy::Held(found) = &self.secrecy {
            return Err(DeliveryStop::Refused(found.clone()));
        }
        check_changes(&self.changes, options)?;
        let names = self.workspace.names(&self.fix.tree)?;
        let allowed: BTreeSet<String> = options.allow_paths.iter().cloned().collect();
        policy::of_names(&self.changes, &names, &allowed)
            .map_err(|refusal| DeliveryStop::Refused(vec![refusal]))?;
        Ok(standing)
    }

    /// Refuses the fix of another repository.
    pub(super) fn check_repository(&self) -> Result<(), DeliveryStop> {
        match &self.is_elsewhere {
            Some(theirs) => {
                Err(DeliveryStop::refused(format!("the run was in another repository: {theirs}")))
            }
            None => Ok(()),
        }
    }

    /// Applies the fix to a commit of a branch that goes on from where the run began.
    pub(super) fn onto(&self, commit: &ObjectId, branch: &BranchName) -> Result<Applied, DeliveryStop> {
        let Self { workspace, fix, .. } = self;
        workspace.need(commit)?;
        if !self.goes_on_from(commit)? {
            return Err(DeliveryStop::refused(format!(
                "the run began at the commit {}, which is not in the history of `{branch}` (any more)",
                fix.base
            )));
        }
        self.applied(commit)
    }

    /// Applies the fix to any commit that is there.
    pub(super) fn applied(&self, commit: &ObjectId) -> Result<Applied, DeliveryStop> {
        let Self { workspace, fix, .. } = self;
        let tree = workspace.apply(fix, commit)?;
        let onto = workspace.tree_of(commit)?;
        let changes = workspace.changes(&onto, &tree)?;
        // Of an empty diff, git prints no patch id.
        let patch = if changes.is_empty() {
            workspace.patch_id(&fix.base_tree, &fix.tree)?
        } else {
            workspace.patch_id(&onto, &tree)?
        };
        Ok(Applied { tree, changes, patch })
    }

    /// Tells whether a commit goes on from where the run began: from the commit itself, or, where the server had made that
    /// to merge a pull request, from what it merged.
    fn goes_on_from(&self, commit: &ObjectId) -> Result<bool, DeliveryStop> {
        let Self { workspace, fix, .. } = self;
        if workspace.is_ancestor(&fix.base, commit)? {
            return Ok(true);
        }
        let base = workspace.commit(&fix.base).map_err(|why| DeliveryStop::refused(why.to_string()))?;
        if base.parents.len() < 2 {
            return Ok(false);
        }
        for parent in &base.parents {
            if parent == commit || (workspace.has(parent) && workspace.is_ancestor(parent, commit)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps the patch of the run, if nothing in it is secret. Returns its path.
    pub(super) fn keep_patch(
        &self,
        options: &DeliverOptions,
        session: &Session<'_>,
    ) -> Result<Option<PathBuf>, Error> {
        let directory = match &options.report_dir {
            Some(directory) => session.path(directory),
            None => directory(self.bundle.manifest.instance.as_str(), session),
        };
        let path = directory.join(names::PATCH);
        let failed = |error: &dyn std::error::Error| Error::failed("cannot keep the patch", error);
        match &self.secrecy {
            // An earlier delivery, or the run itself, may have kept it for people to read.
            Secrecy::Held(_) if path.symlink_metadata().is_ok() => {
                fs::remove_file(&path).map_err(|error| failed(&error))?;
                let removed = format!("{} was removed, because it held the same", path.display());
                session.talk.warning(&removed);
                return Ok(None);
            }
            Secrecy::Held(_) | Secrecy::Unknown => return Ok(None),
            Secrecy::Clean if self.changes.is_empty() => return Ok(None),
            Secrecy::Clean => {}
        }
        fs::create_dir_all(&directory).map_err(|error| failed(&error))?;
        self.workspace.write_patch(&self.fix.base_tree, &self.fix.tree, &path)?;
        Ok(Some(path))
    }
}

/// Refuses changes of files that may never be delivered.
pub(super) fn check_changes(changes: &[FileChange], options: &DeliverOptions) -> Result<(), DeliveryStop> {
    let allowed: BTreeSet<String> = options.allow_paths.iter().cloned().collect();
    let refused: Vec<Refusal> = policy::of_changes(changes, &allowed);
    if refused.is_empty() { Ok(()) } else { Err(DeliveryStop::Refused(refused)) }
}

/// Returns where the patch is kept by default: among the files of the run where this is a directory of loops, and
/// else in the job's directory for such files, or here.
fn directory(instance: &str, session: &Session<'_>) -> PathBuf {
    let mut homes = load::ancestors(&session.cwd).into_iter().map(|root| root.join(DIRECTORY));
    let of_run = homes.find(|loops| loops.is_dir()).and_then(|loops| RunFiles::of(&loops, instance));
    let temporary = || Some(Path::new(session.env.get("RUNNER_TEMP")?).join(format!("ll-loop-{instance}")));
    of_run
        .map(|files| files.report())
        .or_else(temporary)
        .unwrap_or_else(|| session.cwd.join("ll-loop-report"))
}

/// Returns the repository of a run, if it is not that of the server.
fn elsewhere(bundle: &OpenedBundle, server: &DeliveryServer) -> Option<String> {
    // What is unknown on either side contradicts nothing.
    let theirs = bundle.manifest.repository.as_ref()?.to_string();
    let ours = server.repository()?;
    (theirs != ours).then_some(theirs)
}
