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
        let git = Git::new(directory.path(), env);
        let format = if is_sha256 { "--object-format=sha256" } else { "--object-format=sha1" };
        // Without a template, no hook of the user comes into it.
        git.line(&Call::new("init").with(&["--quiet", "--bare", "--template=", format]))?;
        let connected = match &remote.header {
            Some(header) => git.connected(&remote.url, header),
            None => Git::own(directory.path(), session.env.for_users_git()),
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
        let store = Call::new("hash-object").with(&["-w", "--stdin"]);
        let blob =
            ObjectId::parse(String::from_utf8_lossy(&self.git.bytes(&store, text.as_bytes())?).trim())?;
        let row = format!("100644 blob {blob}\t{name}\n");
        let tree = self.git.bytes(&Call::new("mktree"), row.as_bytes())?;
        let tree = ObjectId::parse(String::from_utf8_lossy(&tree).trim())?;
        let made = match parent {
            Some(parent) => Call::new("commit-tree").option_id("-p", parent).id(&tree),
            None => Call::new("commit-tree").id(&tree),
        };
        let made = self.git.bytes(&made, name.as_bytes())?;
        ObjectId::parse(String::from_utf8_lossy(&made).trim()).map_err(TreeError::from)
    }

    /// Makes the commit of a record.
    pub(crate) fn commit(&self, record: &str) -> Result<ObjectId, TreeError> {
        let tree = self.git.id(&Call::new("mktree"))?;
        let made = self.git.bytes(&Call::new("commit-tree").id(&tree), record.as_bytes())?;
        ObjectId::parse(String::from_utf8_lossy(&made).trim()).map_err(TreeError::from)
    }
}
