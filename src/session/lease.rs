//! Makes refs by `git push`, on servers whose API makes none: as a commit of its own, without files and parents, whose
//! message is the record. It is pushed only where there is no ref of that name, which the server decides.

use std::cell::OnceCell;

use tempfile::TempDir;

use crate::base::object::ObjectId;
use crate::ci::github::lease::{Attempt, GitRemote, LeaseError, Refs};
use crate::process::git::{Call, Git};

use super::context::Session;

/// Who makes the commits: nobody reads it.
const WHO: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "ll-loop"),
    ("GIT_AUTHOR_EMAIL", "ll-loop@localhost"),
    ("GIT_COMMITTER_NAME", "ll-loop"),
    ("GIT_COMMITTER_EMAIL", "ll-loop@localhost"),
];

/// Refs of a remote repository.
pub(crate) struct PushedRefs {
    remote: GitRemote,
    /// A repository apart from the checkout, whose configuration may name other servers and credentials.
    _scratch: TempDir,
    git: Git,
    /// The commit of this job.
    commit: OnceCell<ObjectId>,
}

impl PushedRefs {
    /// Makes refs of this remote repository.
    pub(crate) fn new(remote: GitRemote, session: &Session<'_>) -> Result<Self, LeaseError> {
        let scratch = TempDir::with_prefix("ll-lease-");
        let scratch = scratch.map_err(|error| failed("init")(error.to_string()))?;
        let mut env = session.env.all().clone();
        env.extend(WHO.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let git = Git::new(scratch.path(), env);
        let init = Call::new("init").with(&["--quiet", "--bare"]);
        git.line(&init).map_err(failed("init"))?;
        let git = git.connected(&remote.header);
        Ok(Self { remote, _scratch: scratch, git, commit: OnceCell::new() })
    }

    fn commit(&self, record: &str) -> Result<&ObjectId, LeaseError> {
        if let Some(commit) = self.commit.get() {
            return Ok(commit);
        }
        let tree = self.git.id(&Call::new("mktree")).map_err(failed("mktree"))?;
        let made = self.git.bytes(&Call::new("commit-tree").id(&tree), record.as_bytes());
        let made = made.map_err(failed("commit-tree"))?;
        let made = ObjectId::parse(String::from_utf8_lossy(&made).trim())
            .map_err(|error| failed("commit-tree")(error.to_string()))?;
        Ok(self.commit.get_or_init(|| made))
    }

    /// Returns the commit of a ref of the remote repository.
    fn find(&self, name: &str) -> Result<Option<ObjectId>, LeaseError> {
        let list = Call::new("ls-remote").with(&["--quiet"]).named(&self.remote.url, "").named(name, "");
        let printed = self.git.line(&list).map_err(failed("ls-remote"))?;
        let row = printed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix('\t'));
        row.map(|id| ObjectId::parse(id).map_err(|error| failed("ls-remote")(error.to_string()))).transpose()
    }
}

impl Refs for PushedRefs {
    fn make(&self, name: &str, record: &str) -> Result<Attempt, LeaseError> {
        let commit = self.commit(record)?;
        let push = Call::new("push")
            .with(&["--quiet", "--no-verify"])
            // Only where there is none.
            .option_value("--force-with-lease=", &format!("{name}:"))
            .named(&self.remote.url, "")
            .named(&format!("{commit}:{name}"), "");
        let Err(refused) = self.git.line(&push) else { return Ok(Attempt::Made) };
        let Some(there) = self.find(name)? else { return Err(failed("push")(refused)) };
        if there == *commit {
            return Ok(Attempt::Made);
        }
        let fetch = Call::new("fetch")
            .with(&["--quiet", "--no-tags", "--depth=1"])
            .named(&self.remote.url, "")
            .named(name, "");
        self.git.line(&fetch).map_err(failed("fetch"))?;
        let message = Call::new("log").with(&["-1", "--format=%B"]).id(&there);
        Ok(Attempt::There(self.git.line(&message).map_err(failed("log"))?))
    }
}

fn failed(command: &'static str) -> impl FnOnce(String) -> LeaseError {
    move |reason| LeaseError::Git { command, reason }
}
