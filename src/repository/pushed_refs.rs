//! Makes refs by `git push`, on servers whose API makes none: as a commit of its own, without files and parents, whose
//! message is the record. It is pushed only where there is no ref of that name, which the server decides.

use std::cell::OnceCell;

use super::scratch::Scratch;
use crate::base::object::ObjectId;
use crate::context::Session;
use crate::forge::git_remote::GitRemote;
use crate::forge::github::takeover::{RefCreation, RefServer, TakeoverError};
use crate::git::call::Call;
use crate::git::ref_calls::ref_in;

/// How many digits an id has in a repository with SHA-256.
const SHA256_DIGITS: usize = 64;

/// Refs of a remote repository.
pub(crate) struct PushedRefs {
    url: String,
    scratch: Scratch,
    /// The commit of this job.
    commit: OnceCell<ObjectId>,
}

impl PushedRefs {
    /// Makes refs of this remote repository, which has this commit.
    pub(crate) fn new(remote: GitRemote, commit: &str, session: &Session<'_>) -> Result<Self, TakeoverError> {
        let remote = remote.into();
        // A repository has ids of one kind, and takes no others.
        let is_sha256 = commit.len() == SHA256_DIGITS;
        let scratch = Scratch::new(&remote, is_sha256, session).map_err(failed("init"))?;
        Ok(Self { url: remote.url, scratch, commit: OnceCell::new() })
    }

    fn commit(&self, record: &str) -> Result<&ObjectId, TakeoverError> {
        if let Some(commit) = self.commit.get() {
            return Ok(commit);
        }
        let made = self.scratch.commit(record).map_err(failed("commit-tree"))?;
        Ok(self.commit.get_or_init(|| made))
    }

    /// Returns the commit of a ref of the remote repository.
    fn find(&self, name: &str) -> Result<Option<ObjectId>, TakeoverError> {
        let list = Call::refs_of(&self.url).named(name, "");
        let printed = self.scratch.connected.line(&list).map_err(failed("ls-remote"))?;
        ref_in(&printed, name).map_err(failed("ls-remote"))
    }
}

impl RefServer for PushedRefs {
    fn make(&self, name: &str, record: &str) -> Result<RefCreation, TakeoverError> {
        let commit = self.commit(record)?;
        let push = Call::push_to(&self.url)
            // Only where there is none.
            .option_value("--force-with-lease=", &format!("{name}:"))
            .named(&format!("{commit}:{name}"), "");
        let Err(refused) = self.scratch.connected.line(&push) else { return Ok(RefCreation::Made) };
        let Some(there) = self.find(name)? else { return Err(failed("push")(refused)) };
        // The push got through, and only its answer did not.
        if there == *commit {
            return Ok(RefCreation::Made);
        }
        let fetch = Call::fetch_from(&self.url).with(&["--depth=1"]).named(name, "");
        self.scratch.connected.line(&fetch).map_err(failed("fetch"))?;
        let message = Call::new("log").with(&["-1", "--format=%B"]).id(&there);
        Ok(RefCreation::There(self.scratch.connected.line(&message).map_err(failed("log"))?))
    }
}

fn failed<E: std::fmt::Display>(command: &'static str) -> impl FnOnce(E) -> TakeoverError {
    move |error| TakeoverError::Git { command, reason: error.to_string() }
}
