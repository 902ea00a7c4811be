//! Looks at all of a working tree, whatever part of it runs claim: what differs from its commit, with the contents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::base::file_mode::FileMode;
use crate::base::gitpath;
use crate::base::name::LoopName;
use crate::base::territory::{ScopePath, Territory};
use crate::context::Session;
use crate::context::error::Error;
use crate::context::interrupts::{Interrupts, StopBy};
use crate::definition::load::DIRECTORY;
use crate::engine::changes::{EntryContent, KnownStart, StartTree};
use crate::files::{links, transient};
use crate::git::call::{Call, alternate};
use crate::git::runner::Git;
use crate::git::tree_list::{self, ListedEntry};
use crate::journal::files::RunFiles;
use crate::process::clock::Clock;
use crate::repository;
use crate::run::area::Area;
use crate::run::measure;

/// A working tree as it was at one moment.
pub(crate) struct WholeTree {
    /// Its ids, and what differs from the commit: untracked files that nothing ignores are among it.
    pub(crate) start: KnownStart,
    /// The top of it.
    pub(crate) top: PathBuf,
    /// Reads the objects of the repository, and those of files that only lie in the tree.
    git: Git,
    /// Where the latter are.
    _objects: TempDir,
}

impl WholeTree {
    /// Looks at the tree around a directory. What lies below `own` does not belong to it.
    pub(crate) fn look(root: &Path, own: &[PathBuf], session: &Session<'_>) -> Result<Self, Error> {
        let unknown = |why: String| Error::refused(format!("the working tree is not known: {why}"));
        let git = repository::at(root, session);
        let ask = |option: &'static [&'static str]| {
            git.line(&Call::new("rev-parse").with(option)).map_err(|error| unknown(error.to_string()))
        };
        let top = links::real(Path::new(&ask(&["--show-toplevel"])?));
        // In a linked worktree, the objects lie in the main repository.
        let known = root.join(ask(&["--git-path", "objects"])?);
        let place = |path: &Path| ScopePath::from(path.to_string_lossy().into_owned());
        let territory = Territory { tree: place(&links::real(root)), paths: vec![place(&top)] };
        let own = own.iter().map(|path| links::real(path)).collect();
        let scratch = transient::directory("ll-tree-")
            .map_err(|error| Error::failed("cannot look at the working tree", &error))?;
        let name = LoopName::parse("tree").expect("it is a name");
        let files = RunFiles::new(&scratch.path().join(DIRECTORY), &name, Clock::start().now(), 0);
        let made = files.make_directory().and_then(|()| fs_err::create_dir_all(files.objects()));
        // Git takes no directory for that of a repository whose objects are not there.
        made.map_err(|error| Error::failed("cannot look at the working tree", &error))?;
        // Whoever ends the job is heard before and after: it takes no longer than a `git status`.
        let interrupts = Interrupts::listen(&StopBy::Nobody)?;
        let (area, env) = (Area { territory, own }, session.env.for_ourselves());
        let looked = measure::start(root, &area, &files, None, env, interrupts.cancel());
        let looked = interrupts.block_on(looked);
        let start = match looked {
            StartTree::Known(start) => *start,
            StartTree::Unknown { unknown: why } => return Err(unknown(why)),
        };
        let git = git
            .with("GIT_OBJECT_DIRECTORY", files.objects())
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&known.to_string_lossy()));
        Ok(Self { start, top, git, _objects: scratch })
    }

    /// Makes the index what it was.
    pub(crate) fn restore_index(&self) -> Result<(), Error> {
        let Some(index) = &self.start.ids.index else { return Ok(()) };
        // Its tree may be among the objects that only lie here.
        self.git
            .line(&Call::new("read-tree").id(index))
            .map(drop)
            .map_err(|why| Error::refused(format!("the index cannot be made what it was: {why}")))
    }

    /// Lists the files of its commit.
    pub(crate) fn committed(&self) -> Result<BTreeMap<String, EntryContent>, Error> {
        let list = Call::new("ls-tree").with(&["-r", "-z", "--full-tree"]).id(&self.start.ids.commit);
        let printed = self
            .git
            .bytes(&list, &[])
            .map_err(|why| Error::refused(format!("the files of the commit are not known: {why}")))?;
        let content = |entry: ListedEntry<'_>| {
            let content = EntryContent::Object { mode: FileMode::parse(entry.mode)?, id: entry.id };
            Some((gitpath::to_text(entry.path), content))
        };
        Ok(tree_list::entries(&printed).flatten().filter_map(content).collect())
    }

    /// Reads what stands at a path with this content; nothing for a path at which nothing stands.
    ///
    /// # Errors
    /// No file holds it, such as a repository of its own.
    pub(crate) fn read(
        &self,
        path: &str,
        content: &EntryContent,
    ) -> Result<Option<(FileMode, Vec<u8>)>, Error> {
        let cannot =
            |why: &dyn std::fmt::Display| Error::refused(format!("`{path}` cannot be read as it was: {why}"));
        match content {
            EntryContent::Gone => Ok(None),
            EntryContent::Digest(_) => Err(cannot(&"no tree of git holds it")),
            EntryContent::Object { mode: FileMode::Repository, .. } => {
                Err(cannot(&"it is a repository of its own"))
            }
            EntryContent::Object {
                mode: mode @ (FileMode::File | FileMode::Executable | FileMode::Link),
                id,
            } => {
                let bytes = self.git.bytes(&Call::new("cat-file").with(&["blob"]).id(id), &[]);
                let bytes = bytes.map_err(|error| cannot(&error))?;
                Ok(Some((*mode, bytes)))
            }
        }
    }
}
