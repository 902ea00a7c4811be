//! Where a ledger is kept: it is read with a version, and added to only if it still has that version.

use std::path::Path;

use super::day_ledger::{Appended, DayLedger, LedgerFault};
use super::git_ledger::GitLedger;
use super::seen_lines;
use super::web_ledger::WebLedger;
use crate::base::explanation::Explanation;
use crate::context::Session;
use crate::context::error::Error;
use crate::policy::LedgerPlace;

/// A place of a ledger.
pub(crate) enum LedgerStore {
    Git(Box<GitLedger>),
    Web(WebLedger),
}

/// A ledger as it was read.
pub(crate) struct StoredLedger {
    pub(crate) ledger: DayLedger,
    /// What the place calls this state: the id of a commit, or an entity tag.
    pub(crate) version: String,
}

/// Why a ledger cannot be counted on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LedgerFailure {
    /// There is none.
    #[error("it is missing")]
    Missing,
    /// It cannot be counted on.
    #[error(transparent)]
    Fault(#[from] LedgerFault),
    /// It cannot be read or written.
    #[error("{0}")]
    Unreached(Explanation),
    /// It can be read, and takes nothing that is added.
    #[error("it takes nothing that is added: {0}")]
    Refused(Explanation),
    /// Others were faster each time.
    #[error("others added to it each time, and this run could not")]
    Crowded,
}

impl LedgerStore {
    /// Finds the place that a policy names.
    ///
    /// # Errors
    /// There is no such remote.
    pub(crate) fn at(place: &LedgerPlace, checkout: &Path, session: &Session<'_>) -> Result<Self, Error> {
        match place {
            LedgerPlace::Git(remote) => GitLedger::find(remote.as_deref(), checkout, session)
                .map(|ledger| Self::Git(Box::new(ledger))),
            LedgerPlace::Web(address) => Ok(Self::Web(WebLedger::new(address, session))),
        }
    }

    /// Returns how people know it: without a credential.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Git(ledger) => ledger.shown(),
            Self::Web(ledger) => ledger.shown(),
        }
    }

    /// Reads the ledger, and looks whether it still has what this machine has seen of it.
    ///
    /// # Errors
    /// There is none, it cannot be read, or it cannot be counted on.
    pub(crate) fn read(&self) -> Result<StoredLedger, LedgerFailure> {
        // Before the ledger: while it is read, another process of this machine may add to it and remember that.
        let seen = seen_lines::last(self.shown());
        let found = match self {
            Self::Git(ledger) => ledger.read(),
            Self::Web(ledger) => ledger.read(),
        };
        let (text, version) = found.map_err(LedgerFailure::Unreached)?.ok_or(LedgerFailure::Missing)?;
        let ledger = DayLedger::parse(&text)?;
        // Before it is remembered: a ledger that has shrunk must not become what was seen.
        seen.map_or(Ok(()), |seen| ledger.still_has(&seen))?;
        seen_lines::remember(self.shown(), &ledger);
        Ok(StoredLedger { ledger, version })
    }

    /// Adds the lines of `after`, all of them of `day` from some line on, that `before` has not.
    ///
    /// # Errors
    /// It is unknown whether they were added.
    pub(crate) fn append(
        &self,
        before: &StoredLedger,
        after: &DayLedger,
        day: &str,
    ) -> Result<Appended, LedgerFailure> {
        let appended = match self {
            // A commit has the whole file, so earlier days are left out of it; a service is only given the new lines.
            Self::Git(ledger) => ledger.follow(&before.version, &after.of_day(day)),
            Self::Web(ledger) => {
                ledger.append(&before.version, &after.added_after(&before.ledger.last_seen()))
            }
        };
        let appended = appended.map_err(LedgerFailure::Unreached)?;
        if appended == Appended::Done {
            seen_lines::remember(self.shown(), after);
        }
        Ok(appended)
    }

    /// Puts a new ledger there, if there is none.
    ///
    /// # Errors
    /// It is unknown whether it was put there.
    pub(crate) fn open(&self, ledger: &DayLedger, day: &str) -> Result<Appended, Explanation> {
        match self {
            Self::Git(place) => place.begin(&ledger.of_day(day)),
            Self::Web(place) => place.begin(&ledger.of_day(day)),
        }
    }
}
