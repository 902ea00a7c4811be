//! A server to which nothing is pushed but while the lock of the delivery is held: before every push the lease is looked
//! at again.

use std::collections::BTreeMap;

use super::servers::DeliveryServer;
use super::way::DeliverOptions;
use crate::base::object::ObjectId;
use crate::context::Session;
use crate::context::error::Error;
use crate::forge::change::FileChange;
use crate::forge::forge_trait::{
    Commit, FileContents, Forge, ForgeError, ForgeErrorKind, NewCommit, Pulls, RefMove, WrittenCommit,
};
use crate::lease::lease_record::MAX_SCOPES;
use crate::lease::lease_scope::Scopes;
use crate::lock::{Lock, LockRequest};
use crate::policy::DeliveryMode;

/// Locks what a delivery changes, if it is to be locked and anything is to be written.
pub(super) fn lock(
    changes: &[FileChange],
    run: &str,
    server: &DeliveryServer,
    options: &DeliverOptions,
    session: &Session<'_>,
) -> Result<Option<Lock>, Error> {
    let Some(lock) = options.lock.as_ref().filter(|_| options.way != DeliveryMode::Patch && !options.dry_run)
    else {
        return Ok(None);
    };
    let wanted = LockRequest {
        scopes: scopes(changes),
        run,
        ancestors: &[],
        unstarted: &[],
        queue: options.queue,
        checkout: &session.cwd,
        otherwise: server.remote(),
    };
    Lock::take_now(lock, wanted, session)
}

/// Returns the files that are changed, or the whole repository where they are many.
fn scopes(changes: &[FileChange]) -> Scopes {
    if changes.len() > MAX_SCOPES {
        return Scopes::new(["."]);
    }
    Scopes::new(changes.iter().map(|change| change.path.as_str()))
}

/// A server behind a lock.
pub(super) struct LockedForge<'l> {
    pub(super) forge: Box<dyn Forge + 'l>,
    pub(super) lock: &'l Lock,
}

impl LockedForge<'_> {
    fn check(&self) -> Result<(), ForgeError> {
        self.lock.check().map_err(|why| {
            ForgeError::new(
                ForgeErrorKind::Locked,
                format!("lease_lost: the lock of the delivery was lost: {why}"),
            )
            .with_help("deliver it again; what was pushed before stays")
        })
    }
}

impl Forge for LockedForge<'_> {
    fn name(&self) -> String {
        self.forge.name()
    }

    fn refs(&self, names: &[&str]) -> Result<BTreeMap<String, ObjectId>, ForgeError> {
        // Reading needs no lock.
        self.forge.refs(names)
    }

    fn commit(&self, id: &ObjectId) -> Result<Commit, ForgeError> {
        self.forge.commit(id)
    }

    fn write(
        &self,
        commit: &NewCommit<'_>,
        moves: &[RefMove],
        temporary: &str,
        contents: &dyn FileContents,
    ) -> Result<WrittenCommit, ForgeError> {
        self.check()?;
        self.forge.write(commit, moves, temporary, contents)
    }

    fn take_back(&self, written: &ObjectId, moves: &[RefMove]) -> Result<(), ForgeError> {
        self.check()?;
        self.forge.take_back(written, moves)
    }

    fn starts_checks(&self) -> Result<bool, ForgeError> {
        self.forge.starts_checks()
    }

    fn waits_for_approval(&self) -> bool {
        self.forge.waits_for_approval()
    }

    fn pulls(&self) -> Option<&dyn Pulls> {
        self.forge.pulls()
    }

    fn takes_pulls_with_pushes(&self) -> bool {
        self.forge.takes_pulls_with_pushes()
    }
}
