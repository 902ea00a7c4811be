//! Decides whether a loop may run in this job. A loop file is code, and some events let strangers choose what is
//! checked out in a job that has the secrets of the repository. In doubt, the loop is refused.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::library::{ForeignTexts, can_write};
use super::prepared::Prepared;
use crate::base::object::ObjectId;
use crate::base::own::is_of_runs;
use crate::base::text::plural;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::mistakes::mistakes;
use crate::context::talk::Findings;
use crate::definition::load::{self, DIRECTORY};
use crate::files::links::real;
use crate::forge::github::workflow_event::{WorkflowEvent, short};
use crate::git::call::Call;
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::machine::check::injection;
use crate::repository;
use crate::repository::changed;

const ADVICE: &str = "leave `ref` and `repository` out of actions/checkout, so that the repository's own branch is \
    run; or, when you know what is run, agree with `--allow-untrusted` (input `allow-untrusted: true`)";

/// Refuses a loop that may come from a stranger, and one that pastes what strangers write into its commands. `given`
/// are the values that the run got besides its file.
pub(crate) fn check(
    allowed: bool,
    session: &Session<'_>,
    prepared: &mut Prepared,
    given: &Map<String, Value>,
) -> Result<(), Error> {
    let event = WorkflowEvent::read(&session.env.lookup());
    check_origin(allowed, &event, session, prepared)?;
    check_commands(&event, session, prepared, given)
}

/// Refuses a loop that pastes what strangers write into its commands. Whoever agrees to run a stranger's code did not
/// agree to run a stranger's title.
fn check_commands(
    event: &WorkflowEvent,
    session: &Session<'_>,
    prepared: &mut Prepared,
    given: &Map<String, Value>,
) -> Result<(), Error> {
    if !event.has_texts_of_strangers() {
        return Ok(());
    }
    let outside = given.iter().filter(|(_, value)| can_write(value)).map(|(name, _)| name.clone()).collect();
    let Prepared { machine, library, loaded, located, .. } = prepared;
    // Names that only the run knows cannot be followed here: such loops are looked at when they start.
    library.guard();
    let mut found = injection::injections(machine, &outside);
    found.extend(library.injections(machine, &outside, ForeignTexts::All));
    let found = found.raised(injection::CODE);
    if !found.has_errors() {
        return Ok(());
    }
    let places = plural(found.total() as u64, "place");
    let found = Findings::of(&found, loaded);
    session.talk.findings(&found);
    let message = format!(
        "{} is not run: strangers can set off the event `{}`, and in {places} a text that they may have written \
         becomes a part of a command",
        located.shown, event.name
    );
    let error = Error::refused(message).with_hint("mend each place as it says; nothing else lifts this");
    Err(error.with_mistakes(mistakes(located, &found, &session.cwd)))
}

fn check_origin(
    allowed: bool,
    event: &WorkflowEvent,
    session: &Session<'_>,
    prepared: &Prepared,
) -> Result<(), Error> {
    if allowed || !event.is_open_to_outsiders() {
        return Ok(());
    }
    doubt(event, session, prepared).map_or(Ok(()), |why| {
        let file = &prepared.located.shown;
        let message = format!(
            "{file} is not run: the event `{}` is open to people without write access, and {why}",
            event.name
        );
        Err(Error::refused(message).with_hint(ADVICE))
    })
}

fn doubt(event: &WorkflowEvent, session: &Session<'_>, prepared: &Prepared) -> Option<String> {
    let root = &prepared.located.root;
    let git = repository::at(root, session);
    let top_level = Call::new("rev-parse").with(&["--show-toplevel"]);
    let (head, top) = match git.id(&repository::head()).and_then(|head| Ok((head, git.line(&top_level)?))) {
        Ok(found) => found,
        Err(why) => return Some(format!("cannot find out what is checked out in {}: {why}", root.display())),
    };
    if let Some(doubt) = event.doubt(head.as_str()) {
        return Some(doubt);
    }
    // The commit is trusted; a later step may have put other files in the place of its own.
    let read = prepared.files();
    let paths = read.iter().map(|(file, _)| file.to_string_lossy().into_owned());
    let paths: Vec<String> = paths.collect();
    let tracked = Call::new("ls-files").with(&["--error-unmatch"]).paths(&paths).literal();
    if let Err(why) = git.line(&tracked) {
        return Some(format!("the loop is not all of the commit {}: {why}", short(head.as_str())));
    }
    let directories = load::ancestors(root).into_iter().map(|above| above.join(DIRECTORY));
    let directories: Vec<PathBuf> = directories.filter(|directory| directory.is_dir()).collect();
    let trusted = Trusted { git: git.at(Path::new(&top)), head, top: PathBuf::from(top) };
    let doubt = trusted.doubt(&read, &directories).map(|why| why.to_string());
    doubt.or_else(|| {
        // Ignored files are asked for as well, because a loop can name one of them as its sub-loop.
        let status =
            ["--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching"].as_slice();
        let directories = directories.iter().map(|directory| directory.to_string_lossy().into_owned());
        let status = Call::new("status").with(status).paths(directories).paths(paths).literal();
        match git.line(&status) {
            Err(why) => Some(format!("cannot find out what changed in {}: {why}", root.display())),
            Ok(changes) => changed(&changes).next().map(|file| trusted.other(file).to_string()),
        }
    })
}

/// The commit whose loops may run. Files are compared with it by content, because the index and the configuration of
/// the checkout can hide changes from git (`assume-unchanged`, `core.fileMode`).
struct Trusted {
    git: Git,
    head: ObjectId,
    top: PathBuf,
}

/// The most symbolic links that are followed to one file, as in Linux.
const MOST_LINKS: usize = 40;

/// The most files in the directories of loops that are compared.
// Each of them is hashed before the run begins. With more the run is refused: what is not compared is not trusted.
const MOST_FILES: usize = 10_000;

impl Trusted {
    /// Compares the files that were read, and all files in the directories of loops, which a run could still read.
    fn doubt(&self, read: &[(PathBuf, String)], directories: &[PathBuf]) -> Option<TreeError> {
        // Loop files are read without the mark at their beginning.
        let as_read = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let of_files = read.iter().find_map(|(file, text)| {
            // The mode of a regular file begins so, whether it is executable or not.
            let found = self.follow(file).and_then(|path| self.content(&path, "100"));
            match found {
                Err(why) => Some(why),
                Ok(found) => {
                    let is_same =
                        String::from_utf8(found).is_ok_and(|found| as_read(&found) == as_read(text));
                    (!is_same).then(|| self.other(&self.below(file)))
                }
            }
        });
        of_files.or_else(|| directories.iter().find_map(|directory| self.other_below(directory).err()))
    }

    /// Says that a file differs from the commit.
    fn other(&self, file: &str) -> TreeError {
        TreeError::unfit(format!("{file} is not what it is in the commit {}", short(self.head.as_str())))
    }

    /// Returns a path relative to the top of the checkout.
    fn below(&self, file: &Path) -> String {
        // Only its directory is resolved: the file itself may be a link, which is compared as a link.
        let plain = real(file.parent().unwrap_or(file)).join(file.file_name().unwrap_or_default());
        let below = plain.strip_prefix(real(&self.top)).unwrap_or(&plain);
        below.to_string_lossy().into_owned()
    }

    /// Returns the path that a path leads to through symbolic links, each of which has to be in the commit.
    fn follow(&self, file: &Path) -> Result<String, TreeError> {
        let outside = || TreeError::unfit(format!("{} is outside of the repository", file.display()));
        let start = file.strip_prefix(&self.top).map(Path::to_owned);
        let start = start.or_else(|_| real(file).strip_prefix(real(&self.top)).map(Path::to_owned));
        let parts = |path: &Path| -> Vec<String> {
            path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).rev().collect()
        };
        let mut open = parts(&start.map_err(|_| outside())?);
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = open.pop() {
            if part == "." {
                continue;
            }
            if part == ".." {
                done.pop().ok_or_else(outside)?;
                continue;
            }
            done.push(part);
            let path = done.join("/");
            if let Ok(target) = fs_err::read_link(self.top.join(&path)) {
                links += 1;
                let kept = self.content(&path, "120000")?;
                // An absolute target leads out of the commit, to whatever lies there on this machine.
                if kept != target.as_os_str().as_bytes() || target.is_absolute() || links > MOST_LINKS {
                    return Err(self.other(&path));
                }
                done.pop();
                open.extend(parts(&target));
            }
        }
        Ok(done.join("/"))
    }

    /// Returns the content that the commit has at a path, if its mode begins with `mode`.
    fn content(&self, path: &str, mode: &str) -> Result<Vec<u8>, TreeError> {
        let list = Call::new("ls-tree").with(&["--full-tree", "-z"]).id(&self.head).path(path).literal();
        let listed = self.git.line(&list)?;
        let entry =
            listed.strip_prefix(mode).and_then(|entry| entry.split_once('\t')).map(|(entry, _)| entry);
        let id = entry.and_then(|entry| ObjectId::parse(entry.rsplit(' ').next()?).ok());
        let id = id.ok_or_else(|| self.other(path))?;
        Ok(self.git.bytes(&Call::new("cat-file").with(&["blob"]).id(&id), &[])?)
    }

    /// Compares every file below a directory with the commit, for a running loop may name any of them as a sub-loop.
    fn other_below(&self, directory: &Path) -> Result<(), TreeError> {
        let unknown = |why: TreeError| {
            TreeError::unfit(format!("cannot find out what is in {}: {why}", directory.display()))
        };
        let home = self.below(directory);
        let mut paths = Vec::new();
        let mut open = vec![directory.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs_err::read_dir(&directory).map_err(|error| unknown(error.into()))? {
                let entry = entry.map_err(|error| unknown(error.into()))?;
                let kind = entry.file_type().map_err(|error| unknown(error.into()))?;
                let path = self.below(&entry.path());
                if is_of_runs(path.as_bytes()) {
                    continue;
                }
                if kind.is_dir() {
                    open.push(entry.path());
                } else if kind.is_symlink() {
                    self.follow(&entry.path()).map(drop)?;
                } else if kind.is_file() && !path.contains('\n') {
                    paths.push(path);
                } else {
                    return Err(self.other(&path));
                }
                if paths.len() > MOST_FILES {
                    let many = format!("there are more than {MOST_FILES} files");
                    return Err(unknown(TreeError::unfit(many)));
                }
            }
        }
        let list =
            Call::new("ls-tree").with(&["--full-tree", "-r", "-z"]).id(&self.head).path(home).literal();
        let listed = self.git.bytes(&list, &[]).map_err(|why| unknown(why.into()))?;
        let listed = String::from_utf8_lossy(&listed);
        let listed: HashMap<&str, &str> = listed
            .split('\0')
            .filter_map(|entry| {
                let (entry, path) = entry.split_once('\t')?;
                entry.starts_with("100").then_some((path, entry.rsplit(' ').next()?))
            })
            .collect();
        // `hash-object` reads one path a line; a path with a line break was refused above.
        let input: String = paths.iter().flat_map(|path| [path.as_str(), "\n"]).collect();
        // A filter that the checkout names could make any content that of the commit.
        let hash = Call::new("hash-object").with(&["--no-filters", "--stdin-paths"]);
        let hashes = self.git.bytes(&hash, input.as_bytes()).map_err(|why| unknown(why.into()))?;
        let hashes = String::from_utf8_lossy(&hashes);
        // Were there fewer hashes than paths, `zip` alone would end early and trust the rest.
        for (path, hash) in paths.iter().zip(hashes.lines().chain(std::iter::repeat(""))) {
            if listed.get(path.as_str()) != Some(&hash) {
                return Err(self.other(path));
            }
        }
        Ok(())
    }
}
