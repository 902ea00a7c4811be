//! The branch on which a commit is made. It stands only while that takes. One that a broken-off delivery left is removed by
//! the next one that moves the refs: whoever is still under way then has lost the race for them anyway.

use uuid::Uuid;

use super::refs::Refs;
use crate::base::object::ObjectId;
use crate::forge::forge_trait::ForgeError;

/// The branch of one delivery.
pub(super) struct Temporary<'r> {
    refs: &'r Refs<'r>,
    branch: String,
}

impl<'r> Temporary<'r> {
    /// Makes a branch below a prefix.
    pub(super) fn create(refs: &'r Refs<'r>, prefix: &str, at: &ObjectId) -> Result<Self, ForgeError> {
        // A name of its own for each delivery, as many may be made at once.
        let random = Uuid::new_v4().simple().to_string();
        let this = Self { refs, branch: format!("{prefix}{}", &random[..12]) };
        match refs.create(&this.name(), at) {
            Ok(()) => Ok(this),
            Err(error) => {
                // It may be there all the same.
                this.remove();
                Err(error)
            }
        }
    }

    /// Returns the name of the branch.
    pub(super) fn branch(&self) -> &str {
        &self.branch
    }

    /// Returns the whole name of its ref.
    pub(super) fn name(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Tells whether it is gone: another delivery has moved the refs, and cleared what was under way.
    pub(super) fn is_gone(&self) -> bool {
        self.refs.find(&self.name()).is_ok_and(|found| found.is_none())
    }

    /// Deletes it.
    pub(super) fn remove(&self) {
        // If even this fails, the next delivery does it.
        let _left = self.refs.delete(&self.name());
    }
}

/// Deletes all branches below a prefix. One that stays is no reason to fail: the delivery is done.
pub(super) fn clear(refs: &Refs<'_>, prefix: &str) {
    for left in refs.below(&format!("refs/heads/{prefix}")).into_iter().flatten() {
        let _left = refs.delete(&left.name);
    }
}
