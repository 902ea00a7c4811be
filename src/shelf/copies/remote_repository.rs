//! Any git repository as the origin of a loop, read with git itself: a scratch repository fetches one commit without its
//! history, and files are taken out of it by their ids. Nothing is checked out, so no hook, filter or submodule of it has
//! anything to say; how much comes, and for how long, is bounded.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::gather::Files;
use super::git_address::GitAddress;
use super::origin::{Origin, OriginError};
use crate::base::object::ObjectId;
use crate::base::text::{is_hex, one_line};
use crate::context::Session;
use crate::context::error::Error;
use crate::forge::github::contents::{ContentsError, MeantCommit};
use crate::forge::github::workflow_event::is_sha;
use crate::git::call::Call;
use crate::git::error::{GitError, TreeError};
use crate::git::runner::Git;
use crate::repository::scratch::Scratch;
use crate::repository::workspace::Remote;

/// How long one call may take that reaches the repository.
const LONGEST: Duration = Duration::from_mins(2);

/// The most bytes that may come.
const MOST: u64 = 256 << 20;

/// How often is looked how much has come.
const LOOK: Duration = Duration::from_millis(100);

/// The most loop files that are named to somebody who named none.
const MOST_NAMED: usize = 10;

/// A branch, a tag, or what a tag is of.
struct AdvertisedRef {
    id: ObjectId,
    name: String,
}

/// A repository that git reaches.
pub(super) struct RemoteRepository<'s> {
    address: GitAddress,
    session: &'s Session<'s>,
    refs: Vec<AdvertisedRef>,
    is_sha256: bool,
    /// Where the commits are that were asked for, without their history.
    files: Scratch,
    /// Where the history is, once somebody asked about it.
    history: OnceCell<Scratch>,
}

impl<'s> RemoteRepository<'s> {
    /// Asks a repository for its branches and tags.
    pub(super) fn open(address: GitAddress, session: &'s Session<'s>) -> Result<Self, OriginError> {
        let asked = scratch(&address, false, session)?;
        let list = Call::refs_of(address.as_str()).with(&["--heads", "--tags"]);
        let listed = bounded(&asked, session, &list)?;
        let refs: Vec<AdvertisedRef> = listed
            .lines()
            .filter_map(|line| {
                let (id, name) = line.split_once('\t')?;
                Some(AdvertisedRef { id: ObjectId::parse(id).ok()?, name: name.to_owned() })
            })
            .collect();
        // A repository has one kind of ids, and cannot fetch from one with the other kind.
        let is_sha256 = refs.iter().any(|one| one.id.as_str().len() == 64);
        let files = if is_sha256 { scratch(&address, true, session)? } else { asked };
        Ok(Self { address, session, refs, is_sha256, files, history: OnceCell::new() })
    }

    /// Names loop files of the repository, for somebody who did not name one.
    pub(super) fn loop_files(&self, commit: &str) -> Result<Vec<String>, OriginError> {
        let commit = self.fetched(commit)?;
        let list = Call::new("ls-tree").with(&["-r", "-z", "--name-only"]).id(&commit);
        let all = self.files.git.bytes(&list, &[])?;
        let names = all.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
        let is_loop = |name: &String| {
            let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
            let is_of_loops = directory.split('/').any(|part| matches!(part, ".loops" | "loops"));
            let is_other = directory.split('/').any(|part| matches!(part, "tests" | "vendor" | "lib"));
            is_of_loops && !is_other && self.address.name(name).is_ok()
        };
        Ok(names.filter(is_loop).take(MOST_NAMED).collect())
    }

    /// Returns the branches that a person may mean who named none.
    pub(super) fn likely_branch(&self) -> Option<&str> {
        let names: Vec<&str> =
            self.refs.iter().filter_map(|one| one.name.strip_prefix("refs/heads/")).collect();
        ["main", "master"].into_iter().find(|usual| names.contains(usual)).or(names.first().copied())
    }

    /// Returns what a whole name leads to: of a tag with a message, the commit.
    fn reference(&self, name: &str) -> Option<MeantCommit> {
        let at = |name: &str| self.refs.iter().find(|one| one.name == name);
        let found = at(&format!("{name}^{{}}")).or_else(|| at(name))?;
        Some(MeantCommit { reference: name.to_owned(), commit: found.id.to_string() })
    }

    /// Makes sure that a branch or a tag leads to a commit: some servers give out the commits of forks as well.
    fn contains(&self, commit: &str) -> Result<(), OriginError> {
        if self.refs.iter().any(|one| one.id.as_str() == commit) {
            return Ok(());
        }
        let foreign = || ContentsError::Foreign {
            repository: self.address.as_str().to_owned(),
            commit: commit.to_owned(),
            among: String::new(),
        };
        let id = ObjectId::parse(commit).map_err(TreeError::from)?;
        let call = Call::new("for-each-ref").with(&["--count=1", "--format=%(refname)"]);
        // git fails here where no branch or tag has brought the commit along.
        let leads = self.history()?.line(&call.option_id("--contains", &id));
        if leads.is_ok_and(|leads| !leads.is_empty()) { Ok(()) } else { Err(foreign().into()) }
    }

    /// Returns the history of all branches and tags, which is fetched when it is first asked for: commits alone, where the
    /// server can leave out the rest.
    fn history(&self) -> Result<&Git, OriginError> {
        if let Some(there) = self.history.get() {
            return Ok(&there.git);
        }
        let made = scratch(&self.address, self.is_sha256, self.session)?;
        let fetch = Call::fetch_from(self.address.as_str())
            .with(&["--filter=tree:0"])
            .named("+refs/heads/*:refs/heads/*", "")
            .named("+refs/tags/*:refs/tags/*", "");
        bounded(&made, self.session, &fetch)?;
        Ok(&self.history.get_or_init(|| made).git)
    }

    /// Makes sure that a commit is here with its files, and returns its id.
    fn fetched(&self, commit: &str) -> Result<ObjectId, OriginError> {
        let id = ObjectId::parse(commit).map_err(TreeError::from)?;
        let fetch = |what: &str| {
            let call = Call::fetch_from(self.address.as_str())
                // All files of a loop together have at most 1 MiB, so that nothing larger is part of one.
                .with(&["--force", "--depth=1", "--filter=blob:limit=1m"])
                .named(what, ":refs/ll-loop/fetched");
            bounded(&self.files, self.session, &call)
        };
        // With this ending git lists what a tag is of; it is no ref that could be fetched.
        let of_name = self.refs.iter().find(|one| one.id == id && !one.name.ends_with("^{}"));
        // Some servers give out what has a name, and nothing by its id.
        match (fetch(id.as_str()), of_name) {
            // Only after a refusal: a call that took too long or brought too much would do so again.
            (Err(OriginError::Git(TreeError::Git(GitError::Failed(_)))), Some(named)) => fetch(&named.name)?,
            (fetched, _) => fetched?,
        };
        // The id may be that of a tree, or of a tag.
        let kind = self.files.git.line(&Call::new("cat-file").with(&["-t"]).id(&id))?;
        if kind == "commit" {
            return Ok(id);
        }
        let what = format!("a {}", one_line(&kind, 20));
        Err(ContentsError::NotACommit { name: one_line(commit, 200), what }.into())
    }
}

impl Origin for RemoteRepository<'_> {
    fn resolve(&self, name: &str) -> Result<MeantCommit, OriginError> {
        let lower = name.to_ascii_lowercase();
        if is_sha(&lower) {
            self.contains(&lower)?;
            return Ok(MeantCommit { reference: lower.clone(), commit: lower });
        }
        let no_ref = || ContentsError::NoRef {
            repository: self.address.as_str().to_owned(),
            name: one_line(name, 200),
        };
        if name.starts_with("refs/heads/") || name.starts_with("refs/tags/") {
            return self.reference(name).ok_or_else(|| no_ref().into());
        }
        let branch = self.reference(&format!("refs/heads/{name}"));
        match (branch, self.reference(&format!("refs/tags/{name}"))) {
            (Some(_), Some(_)) => Err(ContentsError::Ambiguous(one_line(name, 200)).into()),
            (Some(meant), None) | (None, Some(meant)) => Ok(meant),
            // git shortens ids to no less than four digits.
            (None, None) if name.len() >= 4 && lower.bytes().all(is_hex) => {
                Err(ContentsError::Short(name.to_owned()).into())
            }
            (None, None) => Err(no_ref().into()),
        }
    }

    fn is_before(&self, commit: &str, later: &str) -> Result<bool, OriginError> {
        let id = |text: &str| ObjectId::parse(text).map_err(TreeError::from);
        let ask = Call::new("merge-base").with(&["--is-ancestor"]).id(&id(commit)?).id(&id(later)?);
        // What is not there any more came before nothing.
        Ok(self.history()?.judged(&ask).is_ok_and(|judged| judged.is_yes))
    }

    fn at<'o>(&'o self, commit: &str) -> Result<Box<dyn Files + 'o>, OriginError> {
        let commit = self.fetched(commit)?;
        Ok(Box::new(FetchedFiles { git: &self.files.git, commit }))
    }
}

/// The files of a commit that was fetched.
struct FetchedFiles<'o> {
    git: &'o Git,
    commit: ObjectId,
}

impl FetchedFiles<'_> {
    /// Finds a file. Anything but a plain file in its place, or a link on the way to it, is an error.
    fn item(&self, path: &str) -> Result<Option<ObjectId>, OriginError> {
        let parts: Vec<&str> = path.split('/').collect();
        for end in 1..=parts.len() {
            let (walked, is_last) = (parts[..end].join("/"), end == parts.len());
            // A `*` in the name of a file is no pattern.
            let list = Call::new("ls-tree").with(&["-z"]).id(&self.commit).path(walked.as_str()).literal();
            let listed = self.git.bytes(&list, &[])?;
            let text = String::from_utf8_lossy(&listed);
            let found = text.split('\0').find_map(|row| {
                let (item, name) = row.split_once('\t')?;
                let mut words = item.split(' ');
                let (mode, _kind, id) = (words.next()?, words.next()?, words.next()?);
                (name == walked).then(|| (mode.to_owned(), ObjectId::parse(id).ok()))
            });
            let what = match found {
                None => return Ok(None),
                Some((mode, id)) => match mode.as_str() {
                    "040000" if !is_last => continue,
                    "100644" | "100755" | "100664" if is_last => return Ok(id),
                    // A name with an extension may be meant.
                    "040000" | "100644" | "100755" | "100664" => return Ok(None),
                    "120000" => "a link",
                    "160000" => "a submodule",
                    _ => "something unknown",
                },
            };
            return Err(ContentsError::NotAFile { path: one_line(&walked, 200), what }.into());
        }
        Ok(None)
    }

    fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, OriginError> {
        let Some(id) = self.item(path)? else { return Ok(None) };
        let too_large = || ContentsError::TooLarge { path: one_line(path, 200), limit };
        // What is larger than the filter did not come.
        let Ok(size) = self.git.line(&Call::new("cat-file").with(&["-s"]).id(&id)) else {
            return Err(too_large().into());
        };
        if size.parse::<u64>().map_or(true, |size| size > limit) {
            return Err(too_large().into());
        }
        Ok(Some(self.git.bytes(&Call::new("cat-file").with(&["blob"]).id(&id), &[])?))
    }
}

impl Files for FetchedFiles<'_> {
    fn has(&self, path: &str) -> Result<bool, Error> {
        self.item(path).map(|found| found.is_some()).map_err(|error| error.failed(COPY))
    }

    fn file(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        self.read(path, limit).map_err(|error| error.failed(COPY))
    }
}

/// What is being done while files are read.
const COPY: &str = "cannot copy the loop";

fn scratch(address: &GitAddress, is_sha256: bool, session: &Session<'_>) -> Result<Scratch, OriginError> {
    let remote = Remote { url: address.as_str().to_owned(), header: None };
    Ok(Scratch::new(&remote, is_sha256, session)?)
}

/// Makes a call that reaches the repository: nobody is asked anything, and it ends when it takes too long or too much comes.
fn bounded(scratch: &Scratch, session: &Session<'_>, call: &Call) -> Result<String, OriginError> {
    let (stop, is_over) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let mut git = scratch.connected.within(LONGEST, &stop);
    // Else ssh waits for somebody at a terminal that it may not read.
    if session.env.lookup()("SSH_ASKPASS").is_none() {
        git = git.with("SSH_ASKPASS", "false").with("SSH_ASKPASS_REQUIRE", "force");
    }
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if size(scratch.directory()) > MOST {
                    stop.store(true, Ordering::Relaxed);
                    return true;
                }
                thread::park_timeout(LOOK);
            }
            // A fast call may have brought too much between two looks.
            size(scratch.directory()) > MOST
        });
        let made = git.line(call);
        is_over.store(true, Ordering::Relaxed);
        // So that a call does not wait for the next look.
        watch.thread().unpark();
        let is_too_much = watch.join().unwrap_or(false);
        if is_too_much { Err(OriginError::TooMuch(MOST)) } else { Ok(made?) }
    })
}

/// Returns how many bytes the files below a directory have, as far as they can be seen.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs_err::read_dir(directory) else { return 0 };
    let of = |path: &Path| match path.symlink_metadata() {
        Ok(there) if there.is_dir() => size(path),
        Ok(there) => there.len(),
        Err(_) => 0,
    };
    entries.flatten().map(|entry| of(&entry.path())).sum()
}
