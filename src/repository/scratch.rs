//! A scratch repository for refs that hold a record: commits without files and parents, whose message is the record. It
//! stands apart from the checkout, whose configuration may name other servers, credentials and programs.

use std::path::Path;

use tempfile::TempDir;

use super::workspace::Remote;
use crate::base::object::ObjectId;
use crate::context::Session;
use crate::files::transient;
use crate::git::call::{AUTHOR, Call};
use crate::git::error::TreeError;
use crate::git::runner::Git;

/// A repository that is removed when it is dropped.
pub(crate) struct Scratch {
    directory: TempDir,
    /// Git in it, which reaches no server.
    pub(crate) git: Git,
    /// Git as it reaches the server.
    pub(crate) connected: Git,
}

impl Scratch {
    /// Makes a repository for objects as the remote repository has them: `sha1` or `sha256`.
    pub(crate) fn new(remote: &Remote, is_sha256: bool, session: &Session<'_>) -> Result<Self, TreeError> {
        let directory = transient::directory("ll-scratch-")?;
        let mut env = session.env.for_ourselves();
        env.extend(AUTHOR.map(|(name, value)| (name.to_owned(), value.to_owned())));
        // By its name: `safe.bareRepository` may say that no bare repository counts that is only stood in.
        let git = Git::new(directory.path(), env).with("GIT_DIR", ".");
        let format = if is_sha256 { "--object-format=sha256" } else { "--object-format=sha1" };
        // Without a template, no hook of the user comes into it.
        git.line(&Call::new("init").with(&["--quiet", "--bare", "--template=", format]))?;
        let connected = match &remote.header {
            Some(header) => git.connected(&remote.url, header),
            None => Git::own(directory.path(), session.env.for_users_git()).with("GIT_DIR", "."),
        };
        Ok(Self { directory, git, connected })
    }

    /// Returns where it lies.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a commit of one file, which follows another one.
    pub(crate) fn commit_file(
        &self,
        name: &'static str,
        text: &str,
        parent: Option<&ObjectId>,
    ) -> Result<ObjectId, TreeError> {
        let blob = self.made(&Call::new("hash-object").with(&["-w", "--stdin"]), text)?;
        let tree = self.made(&Call::new("mktree"), &format!("100644 blob {blob}\t{name}\n"))?;
        let commit = Call::new("commit-tree");
        let commit = parent.into_iter().fold(commit, |call, parent| call.option_id("-p", parent));
        self.made(&commit.id(&tree), name)
    }

    /// Makes the commit of a record.
    pub(crate) fn commit(&self, record: &str) -> Result<ObjectId, TreeError> {
        let tree = self.made(&Call::new("mktree"), "")?;
        self.made(&Call::new("commit-tree").id(&tree), record)
    }

    /// Returns the message of a commit; nothing where it cannot be read.
    pub(crate) fn message(&self, commit: &ObjectId) -> Option<Vec<u8>> {
        let raw = self.git.bytes(&Call::new("cat-file").with(&["commit"]).id(commit), &[]).ok()?;
        raw.windows(2).position(|two| two == b"\n\n").map(|end| raw[end + 2..].to_vec())
    }

    /// Returns the object that a call makes of an input.
    fn made(&self, call: &Call, input: &str) -> Result<ObjectId, TreeError> {
        let id = self.git.bytes(call, input.as_bytes())?;
        ObjectId::parse(String::from_utf8_lossy(&id).trim()).map_err(TreeError::from)
    }
}
