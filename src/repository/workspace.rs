//! The repository in which a delivery is prepared: a scratch one beside the checkout, so that nothing of the checkout is
//! changed, and none of its configuration, hooks, filters or attributes is obeyed.
//!
//! The objects of the checkout are looked at where they lie, unless it is a partial clone; what is missing is fetched.

use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::TempDir;

use super::delivery_stop::DeliveryStop;
use crate::base::explanation::Explanation;
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::text::first_word;
use crate::bundle::manifest::SavedTree;
use crate::bundle::tree::{self, RestoreError};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::engine::changes::FileMode;
use crate::files::{read, transient};
use crate::forge::change::{FileChange, FileSide};
use crate::forge::forge_trait::{Commit, FileContents};
use crate::forge::git_remote::GitRemote;
use crate::forge::message::PatchId;
use crate::git::blobs;
use crate::git::call::Call;
use crate::git::error::{Absent, GitError, TreeError};
use crate::git::raw_diff;
use crate::git::raw_diff::Difference;
use crate::git::runner::Git;
use crate::git::tree_list;

/// The author of commits that are not shown.
const WHO: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "ll-loop"),
    ("GIT_AUTHOR_EMAIL", "ll-loop@localhost"),
    ("GIT_AUTHOR_DATE", "@0 +0000"),
    ("GIT_COMMITTER_NAME", "ll-loop"),
    ("GIT_COMMITTER_EMAIL", "ll-loop@localhost"),
    ("GIT_COMMITTER_DATE", "@0 +0000"),
];

/// Where git reaches a server.
#[derive(Clone)]
pub(crate) struct Remote {
    /// Its address, without a credential.
    pub(crate) url: String,
    /// The header by which it lets us in, which is a secret; without one, git gets in as it does for the user.
    pub(crate) header: Option<String>,
}

impl From<GitRemote> for Remote {
    fn from(GitRemote { url, header }: GitRemote) -> Self {
        Self { url, header: Some(header) }
    }
}

/// What a run has fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fix {
    /// The commit on which the run began.
    pub(crate) base: ObjectId,
    /// Its files.
    pub(crate) base_tree: ObjectId,
    /// A commit of the files that the run left.
    pub(crate) commit: ObjectId,
    /// These files.
    pub(crate) tree: ObjectId,
}

/// A scratch repository.
pub(crate) struct Workspace {
    directory: TempDir,
    git: Git,
    /// Git as the user has it, for remotes of theirs.
    own: Git,
    remote: Option<Remote>,
    /// Whether ids are of the longer kind.
    is_sha256: bool,
}

impl Workspace {
    /// Makes a repository for objects with ids like this one, beside a checkout.
    pub(crate) fn new(
        like: &ObjectId,
        checkout: &Git,
        remote: Option<Remote>,
        session: &Session<'_>,
    ) -> Result<Self, Error> {
        let failed = |what: String| Error::refused(what).of_kind(Kind::Failed);
        let directory = transient::directory("ll-deliver-")
            .map_err(|error| Error::failed("cannot make a scratch repository", &error))?;
        let mut env = session.env.for_ourselves();
        env.extend(WHO.map(|(name, value)| (name.to_owned(), value.to_owned())));
        // The user's own configuration may name programs, and their attributes say how files are merged and compared.
        env.retain(|name, _| !name.starts_with("GIT_CONFIG"));
        let nowhere = directory.path().to_string_lossy().into_owned();
        let nobodys = [
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("HOME", nowhere.clone()),
            ("XDG_CONFIG_HOME", nowhere),
        ];
        env.extend(nobodys.map(|(name, value)| (name.to_owned(), value)));
        // By its name: `safe.bareRepository` may say that no bare repository counts that is only stood in.
        let git = Git::new(directory.path(), env).with("GIT_DIR", ".");
        let is_sha256 = like.as_str().len() == 64;
        let format = if is_sha256 { "--object-format=sha256" } else { "--object-format=sha1" };
        let init = Call::new("init").with(&["--quiet", "--bare", "--template=", format]);
        git.line(&init).map_err(|why| failed(format!("cannot make a scratch repository: {why}")))?;
        let own = Git::own(directory.path(), session.env.for_users_git()).with("GIT_DIR", ".");
        let workspace = Self { directory, git, own, remote, is_sha256 };
        workspace
            .look_into(checkout, session)
            .map_err(|error| Error::failed("cannot use the objects of the checkout", &error))?;
        Ok(workspace)
    }

    /// Lets the objects of a checkout be found.
    fn look_into(&self, checkout: &Git, session: &Session<'_>) -> std::io::Result<()> {
        let path = |name: &'static str| {
            let printed = checkout.line(&Call::new("rev-parse").with(&["--git-path", name])).ok()?;
            Some(session.cwd.join(printed))
        };
        let Some(objects) = path("objects").filter(|objects| is_whole(objects)) else { return Ok(()) };
        // The file has one path a line, and git reads one that begins with a quote as quoted.
        let Some(line) = objects.to_str().filter(|line| !line.contains('\n') && !line.starts_with('"'))
        else {
            return Ok(());
        };
        fs::create_dir_all(self.file("objects/info"))?;
        fs::write(self.file("objects/info/alternates"), format!("{line}\n"))?;
        // Where its history ends.
        if let Some(shallow) = path("shallow").filter(|path| path.is_file()) {
            read::copy(&shallow, &self.file("shallow"))?;
        }
        Ok(())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns git in this repository.
    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Makes sure that a commit is there with its files.
    pub(crate) fn need(&self, commit: &ObjectId) -> Result<(), DeliveryStop> {
        if self.has(commit) {
            return Ok(());
        }
        let Some(remote) = &self.remote else {
            return Err(DeliveryStop::Failed(
                Error::refused(format!("the commit {commit} is not in this repository"))
                    .with_hint("fetch it first, or deliver in a checkout that has it"),
            ));
        };
        let fetch = |options: &[&'static str], what: &str| {
            let call =
                Call::new("fetch").with(&["--quiet", "--no-tags", "--no-write-fetch-head"]).with(options);
            self.connected(remote).line(&call.named(&remote.url, "").named(what, ""))
        };
        let fetched = fetch(&["--depth=1"], commit.as_str());
        // Some servers give out branches alone.
        let fetched =
            fetched.or_else(|why| fetch(&[], "+refs/heads/*:refs/remotes/server/*").map_err(|_| why));
        match fetched {
            Ok(_) if self.has(commit) => Ok(()),
            Ok(_) => Err(DeliveryStop::refused(format!("the server has no commit {commit} (any more)"))),
            Err(why @ GitError::NotThere(Absent::AtServer, _)) => {
                Err(DeliveryStop::refused(format!("the server has no commit {commit} (any more): {why}")))
            }
            Err(why) => Err(DeliveryStop::Failed(
                Error::refused(format!("cannot fetch the commit {commit}: {why}")).of_kind(Kind::Unavailable),
            )),
        }
    }

    /// Returns git as it reaches a server.
    pub(crate) fn connected(&self, remote: &Remote) -> Git {
        match &remote.header {
            Some(header) => self.git.connected(&remote.url, header),
            None => self.own.clone(),
        }
    }

    /// Tells whether a commit is there with its files.
    pub(crate) fn has(&self, commit: &ObjectId) -> bool {
        self.git.line(&Call::new("cat-file").with(&["-e"]).ids("", commit, "^{tree}")).is_ok()
    }

    /// Takes the fix out of a bundle, once everything in it was looked at.
    pub(crate) fn take(&self, saved: &SavedTree, objects: Option<&Path>) -> Result<Fix, DeliveryStop> {
        self.need(&saved.base)?;
        tree::take(&self.git, self.directory.path(), saved, objects).map_err(|error| {
            if matches!(error, RestoreError::Unfit(_)) {
                return DeliveryStop::refused(error.to_string());
            }
            let help = "fetch the bundle again from the job that wrote it";
            DeliveryStop::Failed(Error::refused(error.to_string()).with_hint(help))
        })?;
        let (base, base_tree) = (saved.base.clone(), self.tree_of(&saved.base)?);
        if saved.changed {
            return Ok(Fix { base, base_tree, commit: saved.commit.clone(), tree: saved.tree.clone() });
        }
        // Other files were not looked at, and the commit is not there.
        if saved.tree != base_tree {
            return Err(DeliveryStop::Failed(
                Error::refused("the bundle says that nothing was changed, and names other files")
                    .with_hint("fetch the bundle again from the job that wrote it"),
            ));
        }
        Ok(Fix { commit: base.clone(), tree: base_tree.clone(), base, base_tree })
    }

    /// Returns the files of a commit.
    pub(crate) fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, DeliveryStop> {
        let call = Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", commit, "^{tree}");
        self.git.id(&call).map_err(broken)
    }

    /// Returns a commit that is there. It is read as it was made: where a history ends, git shows no parents.
    pub(crate) fn commit(&self, id: &ObjectId) -> Result<Commit, TreeError> {
        let raw = self.git.bytes(&Call::new("cat-file").with(&["commit"]).id(id), &[])?;
        let text = String::from_utf8_lossy(&raw);
        let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let ids = |key: &'static str| {
            let lines = head.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '));
            lines.map(|id| ObjectId::parse(id).map_err(TreeError::from))
        };
        let tree = ids("tree").next().ok_or_else(|| TreeError::unfit("the commit has no files"))??;
        let parents = ids("parent").collect::<Result<_, _>>()?;
        Ok(Commit { id: id.clone(), tree, parents, message: message.to_owned() })
    }

    /// Tells whether one commit is in the history of another. Both have to be there.
    pub(crate) fn is_ancestor(&self, commit: &ObjectId, of: &ObjectId) -> Result<bool, DeliveryStop> {
        if commit == of {
            return Ok(true);
        }
        let ask = |git: &Git| git.judged(&Call::new("merge-base").with(&["--is-ancestor"]).id(commit).id(of));
        let is_ancestor = ask(&self.git).map_err(broken)?.is_yes;
        if is_ancestor || !self.file("shallow").exists() {
            return Ok(is_ancestor);
        }
        let Some(remote) = &self.remote else { return Ok(false) };
        // The history alone, in a repository of its own: here its commits would lack their files.
        let history = transient::directory("ll-history-").map_err(broken)?;
        let git = self.connected(remote).of(history.path());
        let format = if self.is_sha256 { "--object-format=sha256" } else { "--object-format=sha1" };
        git.line(&Call::new("init").with(&["--quiet", "--bare", "--template=", format])).map_err(broken)?;
        let fetch = |options: &[&'static str]| {
            let call =
                Call::new("fetch").with(&["--quiet", "--no-tags", "--no-write-fetch-head"]).with(options);
            git.line(&call.named(&remote.url, "").named(of.as_str(), "").named(commit.as_str(), ""))
        };
        // Not every server leaves the files out.
        fetch(&["--filter=tree:0"]).or_else(|_| fetch(&[])).map_err(|why| {
            DeliveryStop::Failed(
                Error::refused(format!("cannot fetch the history of {of}: {why}")).of_kind(Kind::Unavailable),
            )
        })?;
        ask(&git).map(|judged| judged.is_yes).map_err(broken)
    }

    /// Applies a fix to another commit, and returns the files that come of it.
    pub(crate) fn apply(&self, fix: &Fix, onto: &ObjectId) -> Result<ObjectId, DeliveryStop> {
        if fix.base == *onto {
            return Ok(fix.tree.clone());
        }
        // A commit with the files of the other one on top of the base: so the base is what both go on from, whatever
        // their history is.
        let files = self.tree_of(onto)?;
        let ours = Call::new("commit-tree").option_id("-p", &fix.base).with(&["-m", "onto"]).id(&files);
        let ours = self.git.id(&ours).map_err(broken)?;
        let merge = Call::new("merge-tree").with(&["--write-tree", "-z", "--name-only", "--no-messages"]);
        let merged = self.git.judged(&merge.id(&ours).id(&fix.commit)).map_err(|why| {
            DeliveryStop::Failed(
                Error::refused(format!("cannot apply the fix to the commit {onto}: {why}"))
                    .of_kind(Kind::Failed)
                    .with_hint("it needs git 2.38 or newer"),
            )
        })?;
        // The tree comes first, and then the names of files in conflict.
        let end = merged.printed.iter().position(|byte| *byte == 0).unwrap_or(merged.printed.len());
        let (tree, conflicts) = merged.printed.split_at(end);
        if !merged.is_yes {
            let paths = conflicts.split(|byte| *byte == 0).filter(|path| !path.is_empty());
            let paths = paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect();
            return Err(DeliveryStop::about("the fix conflicts with what the base has now", paths));
        }
        ObjectId::parse(String::from_utf8_lossy(tree).trim_end()).map_err(broken)
    }

    /// Returns the files in which two trees differ.
    pub(crate) fn changes(&self, from: &ObjectId, to: &ObjectId) -> Result<Vec<FileChange>, DeliveryStop> {
        let raw = Call::new("diff-tree").with(&["-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let printed = self.git.bytes(&raw.id(from).id(to), &[]).map_err(broken)?;
        let differences = raw_diff::read(&printed).map_err(broken)?;
        let sizes = self.sizes(&differences).map_err(broken)?;
        let mut sizes = sizes.into_iter();
        let mut changes = Vec::new();
        for Difference { path, old, new, .. } in differences {
            let path = String::from_utf8(path).map_err(|error| {
                let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
                DeliveryStop::about("names of files that are not UTF-8 cannot be delivered", vec![shown])
            })?;
            let mut side = |side: Option<(FileMode, ObjectId)>| {
                side.map(|(mode, id)| {
                    let size = if mode == FileMode::Repository { 0 } else { sizes.next().unwrap_or(0) };
                    FileSide { mode, id, size }
                })
            };
            let (old, new) = (side(old), side(new));
            changes.push(FileChange { path, old, new });
        }
        Ok(changes)
    }

    /// Returns the paths of all files of a tree.
    pub(crate) fn names(&self, tree: &ObjectId) -> Result<Vec<String>, DeliveryStop> {
        let printed = self.git.bytes(&tree_list::names(tree), &[]).map_err(broken)?;
        let paths = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(gitpath::to_text).collect())
    }

    /// Returns the sizes of all files of these differences, in their order.
    fn sizes(&self, differences: &[Difference]) -> Result<Vec<u64>, TreeError> {
        let sides = differences.iter().flat_map(|difference| [&difference.old, &difference.new]).flatten();
        let files = sides.filter(|(mode, _)| *mode != FileMode::Repository);
        let asked: String = files.flat_map(|(_, id)| [id.as_str(), "\n"]).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let check = Call::new("cat-file").with(&["--batch-check=%(objectsize)"]);
        let printed = self.git.bytes(&check, asked.as_bytes())?;
        let lines = String::from_utf8_lossy(&printed).into_owned();
        lines
            .lines()
            .map(|size| size.parse().map_err(|_| TreeError::unfit(format!("git printed no size: {size}"))))
            .collect()
    }

    /// Returns the id of the difference between two trees.
    pub(crate) fn patch_id(&self, from: &ObjectId, to: &ObjectId) -> Result<PatchId, DeliveryStop> {
        let patch = self.git.bytes(&patch(from, to), &[]).map_err(broken)?;
        // Blanks count: in some languages they are the change.
        let call = Call::new("patch-id").with(&["--verbatim"]);
        let printed = self.git.bytes(&call, &patch).map_err(|why| {
            DeliveryStop::Failed(
                Error::refused(format!("cannot name the patch: {why}"))
                    .of_kind(Kind::Failed)
                    .with_hint("it needs git 2.39 or newer"),
            )
        })?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let id = first_word(&printed);
        PatchId::parse(id).map_err(broken)
    }

    /// Returns the difference between two contents, without lines around what differs, whatever they are.
    pub(crate) fn plain_diff(&self, old: &ObjectId, new: &ObjectId) -> Result<Vec<u8>, TreeError> {
        let form =
            ["--unified=0", "--inter-hunk-context=0", "--text", "--no-color", "--diff-algorithm=myers"];
        Ok(self.git.bytes(&Call::new("diff").with(&form).id(old).id(new), &[])?)
    }

    /// Reads contents in one call; in their order.
    pub(crate) fn blobs(&self, ids: &[&ObjectId]) -> Result<Vec<Vec<u8>>, TreeError> {
        blobs::contents(&self.git, ids)
    }

    /// Writes the difference between two trees, for `git apply`.
    pub(crate) fn write_patch(&self, from: &ObjectId, to: &ObjectId, path: &Path) -> Result<(), Error> {
        let failed = |error: &std::io::Error| Error::failed("cannot keep the patch", error);
        let file = fs::File::create(path).map_err(|error| failed(&error))?.into_parts().0;
        self.git
            .write_to(&patch(from, to), &[], file)
            .map_err(|why| Error::refused(format!("cannot keep the patch: {why}")).of_kind(Kind::Failed))
    }
}

impl FileContents for Workspace {
    fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Explanation> {
        Ok(self.git.bytes(&Call::new("cat-file").with(&["blob"]).id(id), &[])?)
    }
}

/// Prints a difference that depends on no settings.
fn patch(from: &ObjectId, to: &ObjectId) -> Call {
    let form = [
        "-r",
        "-p",
        "--binary",
        "--full-index",
        "--no-renames",
        "--no-color",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ];
    let form = Call::new("diff-tree").with(&form);
    form.with(&["--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--no-indent-heuristic"])
        .id(from)
        .id(to)
}

/// Tells whether a store has all objects of its commits: a partial clone marks the packs that lack some.
fn is_whole(objects: &Path) -> bool {
    let Ok(packs) = fs::read_dir(objects.join("pack")) else { return objects.is_dir() };
    !packs
        .flatten()
        .any(|pack| Path::new(&pack.file_name()).extension().is_some_and(|ending| ending == "promisor"))
}

pub(crate) fn broken(why: impl std::fmt::Display) -> DeliveryStop {
    DeliveryStop::Failed(
        Error::refused(format!("git in the scratch repository: {why}")).of_kind(Kind::Failed),
    )
}
