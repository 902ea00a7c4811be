//! A ledger on a branch of its own. Each state is a commit that follows the one before it, and a push that is made only if the branch
//! is where it was when it was read. The branch, not the checkout, is what a ruleset of the server protects from being moved back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::day_ledger::{Appended, MOST_BYTES};
use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::git::call::Call;
use crate::git::ref_calls::ref_in;
use crate::git::runner::Git;
use crate::lock::RefRemote;
use crate::repository;
use crate::repository::scratch::Scratch;

/// The branch. It is one, and no other ref, because servers protect branches.
const BRANCH: &str = "refs/heads/ll-loop-ledger";

/// The only file of its commits.
const FILE: &str = "ledger.jsonl";

/// How long a call of git may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The remote with the branch, and a scratch repository beside it.
pub(crate) struct GitLedger {
    remote: RefRemote,
    scratch: Scratch,
}

impl GitLedger {
    /// Finds a remote of a checkout, or the repository at an address.
    ///
    /// # Errors
    /// There is no such remote.
    pub(crate) fn find(asked: Option<&str>, checkout: &Path, session: &Session<'_>) -> Result<Self, Error> {
        let checkout = repository::at(checkout, session);
        let remote = RefRemote::find(asked, "ledger:", &checkout, session)?;
        let scratch = Scratch::new(&remote.remote, remote.is_sha256, session).map_err(|why| {
            Error::refused(format!("cannot make a scratch repository: {why}")).of_kind(Kind::Failed)
        })?;
        Ok(Self { remote, scratch })
    }

    /// Returns how people know it.
    pub(crate) fn shown(&self) -> &str {
        &self.remote.shown
    }

    fn url(&self) -> &str {
        &self.remote.remote.url
    }

    fn connected(&self) -> Git {
        self.scratch.connected.within(PATIENCE, &Arc::default())
    }

    /// Returns what the branch points at.
    fn at(&self) -> Result<Option<ObjectId>, Explanation> {
        let list = Call::refs_of(self.url()).named(BRANCH, "");
        let printed = self.connected().line(&list).map_err(|why| self.remote.wiped(&why))?;
        ref_in(&printed, BRANCH).map_err(Explanation::from)
    }

    /// Fetches the branch, with so much of its history.
    fn fetch(&self, depth: &'static str) -> Result<(), Explanation> {
        // Also where the branch was moved back: the digests of its lines tell that, and git would only fail.
        let fetch = Call::fetch_from(self.url()).with(&["--force", depth]);
        let fetch = fetch.named(&format!("+{BRANCH}:{BRANCH}"), "");
        self.connected().line(&fetch).map(drop).map_err(|why| self.remote.wiped(&why))
    }

    /// Returns the text and its commit; nothing where there is no such branch.
    pub(crate) fn read(&self) -> Result<Option<(String, String)>, Explanation> {
        self.refuse_rewritten()?;
        if self.at()?.is_none() {
            return Ok(None);
        }
        // The history is not needed: the lines are a chain themselves.
        self.fetch("--depth=1")?;
        let git = &self.scratch.git;
        let commit = git
            .id(&Call::new("rev-parse").with(&["--verify"]).revision(BRANCH))
            .map_err(Explanation::from)?;
        // Asked before the text is read, since the branch may hold a file of any size.
        let size = Call::new("cat-file").with(&["-s"]).ids("", &commit, ":ledger.jsonl");
        let size: usize = git
            .line(&size)
            .map_err(Explanation::from)?
            .parse()
            .map_err(|_| Explanation::new(format!("the branch has no file `{FILE}`")))?;
        if size > MOST_BYTES {
            return Err(Explanation::new(format!("`{FILE}` is larger than {} MiB", MOST_BYTES >> 20)));
        }
        let blob = Call::new("cat-file").with(&["blob"]).ids("", &commit, ":ledger.jsonl");
        let text = String::from_utf8(git.bytes(&blob, &[]).map_err(Explanation::from)?)
            .map_err(|_| Explanation::new(format!("`{FILE}` is not UTF-8")))?;
        Ok(Some((text, commit.as_str().to_owned())))
    }

    /// Puts a text in the place of the one of a commit.
    pub(crate) fn follow(&self, version: &str, text: &str) -> Result<Appended, Explanation> {
        let from = ObjectId::parse(version).map_err(Explanation::from)?;
        self.push(Some(&from), text)
    }

    /// Puts a text there, if there is no such branch.
    pub(crate) fn begin(&self, text: &str) -> Result<Appended, Explanation> {
        self.refuse_rewritten()?;
        self.push(None, text)
    }

    fn push(&self, from: Option<&ObjectId>, text: &str) -> Result<Appended, Explanation> {
        let commit = self.scratch.commit_file(FILE, text, from).map_err(Explanation::from)?;
        // Without a commit, git pushes only where there is no such branch.
        let expected = format!("{BRANCH}:{}", from.map_or("", ObjectId::as_str));
        let push = Call::push_to(self.url())
            .option_value("--force-with-lease=", &expected)
            .named(&format!("{commit}:{BRANCH}"), "");
        let pushed = self.connected().judged(&push);
        // It may have been taken where git failed, and a setting can send pushes elsewhere than fetches: the branch tells.
        let at = self.at()?;
        // Others may have added to it in the meantime.
        if at.as_ref() == Some(&commit) || at.is_some() && self.follows(&commit)? {
            return Ok(Appended::Done);
        }
        match pushed {
            Ok(answer) if answer.is_yes => Err(Explanation::new("what was pushed is not there")),
            Ok(_) | Err(_) if at.as_ref() != from => Ok(Appended::Outrun),
            // With 1, git says that the server took it not; while somebody else writes the branch, servers do not wait for long.
            Ok(refused) => Ok(Appended::Refused(self.remote.wiped(&one_line(&refused.said, 300)))),
            Err(why) => Err(self.remote.wiped(&why)),
        }
    }

    /// Tells whether the branch has a commit in its history.
    fn follows(&self, commit: &ObjectId) -> Result<bool, Explanation> {
        // So many others do not add to it during one push. With more, the lines count as not written, and are written again.
        self.fetch("--depth=50")?;
        let ask = Call::new("merge-base").with(&["--is-ancestor"]).id(commit).revision(BRANCH);
        self.scratch.git.judged(&ask).map(|answer| answer.is_yes).map_err(Explanation::from)
    }

    /// Refuses an address that the configuration of the user leads elsewhere, where a ledger could be that no other run sees.
    fn refuse_rewritten(&self) -> Result<(), Explanation> {
        let ask = Call::new("ls-remote").with(&["--get-url"]).named(self.url(), "");
        let asked = self.connected().line(&ask).map_err(|why| self.remote.wiped(&why))?;
        if asked == self.url() {
            return Ok(());
        }
        Err(Explanation::new(format!(
            "the configuration of git (`insteadOf`) leads {} to another address",
            one_line(&self.remote.shown, 200)
        )))
    }
}
