//! Finds what a repository would start when git reads its files, so that it can be turned off: the filters and hooks that
//! its configuration names, and those of the repositories inside of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::call::{Call, without_repository};
use super::error::GitError;
use super::tracked_files;
use crate::base::text::one_line;
use crate::files::gitdir;
use crate::process::filesystem;

/// Repositories in a repository whose filters are looked for. Each costs three calls before every call that reads files; a
/// tree with more of them was made to keep us busy.
const MOST_REPOSITORIES: usize = 256;

/// What the system says about directories that may be trusted, by what decides which system's file git reads: it says the
/// same to every call of this process, and each look costs a call.
static TRUSTED: Mutex<BTreeMap<SystemFile, Vec<String>>> = Mutex::new(BTreeMap::new());

/// Which file of the system git reads: `PATH` decides which git it is, and that knows where the file is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SystemFile {
    path: Option<String>,
    file: Option<String>,
}

impl SystemFile {
    fn of(env: &BTreeMap<String, String>) -> Self {
        Self { path: env.get("PATH").cloned(), file: env.get("GIT_CONFIG_SYSTEM").cloned() }
    }
}

/// What a repository adds to the settings of every call: every filter, and every hook, that it and the repositories inside
/// of it name in their configuration is turned off, directories are trusted as the system says, which is not read
/// otherwise, and modes count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Whether the file system holds modes and links, whatever the configuration says.
    holds_modes: bool,
    trusted: Vec<String>,
    names: BTreeSet<String>,
    /// Newer versions of git know hooks by their configuration, too.
    hooks: BTreeSet<String>,
}

impl Filters {
    /// Tells whether there are any.
    pub fn is_any(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns the names of the filters.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.names.iter()
    }

    /// Returns the settings.
    pub(super) fn settings(&self) -> impl Iterator<Item = String> {
        // A filter that is required and has no command makes git refuse every file that goes
        // through it.
        let off = ["clean=", "smudge=", "process=", "required=false"];
        let trusted = self.trusted.iter().map(|directory| format!("safe.directory={directory}"));
        let modes: &[&str] =
            if self.holds_modes { &["core.fileMode=true", "core.symlinks=true"] } else { &[] };
        let modes = modes.iter().map(|setting| (*setting).to_owned());
        let hooks = self.hooks.iter().map(|name| format!("hook.{name}.enabled=false"));
        let filters = self.names.iter().flat_map(move |name| off.map(|off| format!("filter.{name}.{off}")));
        modes.chain(trusted).chain(hooks).chain(filters)
    }
}

/// A walk through a repository and the repositories inside of it, that finds their filters. It asks, and whoever walks
/// makes the calls: at once, or while a run goes on.
#[derive(Debug)]
pub struct Walk {
    open: VecDeque<PathBuf>,
    seen: usize,
    /// The environment in which git looks at the directory that the walk has come to.
    env: BTreeMap<String, String>,
    step: FilterWalk,
    is_about_trust: bool,
    found: Filters,
    /// What [`tracked_files::call`] asks for, of the repository that the walk began in.
    tracked: Option<Vec<u8>>,
}

/// What a walk has come to.
#[derive(Debug)]
enum FilterWalk {
    /// The next directory.
    Next,
    /// The configuration of a directory.
    Configuration(PathBuf),
    /// The repositories inside of a directory.
    Inside(PathBuf),
    /// The directory that the paths of these repositories begin in.
    Top(PathBuf, Vec<u8>),
    /// The end.
    Over,
}

/// A call that a walk needs.
#[derive(Debug)]
pub struct WalkQuestion {
    /// Where it is made.
    pub directory: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// The call.
    pub call: Call,
    /// What is turned off for it.
    pub filters: Filters,
}

impl Walk {
    /// Begins in a directory of a repository, in the environment of the call that is to be made.
    pub fn new(directory: &Path, env: BTreeMap<String, String>) -> Self {
        let open = VecDeque::from([directory.to_owned()]);
        let found = Filters { holds_modes: filesystem::holds_modes(directory), ..Filters::default() };
        Self { open, seen: 0, env, step: FilterWalk::Next, is_about_trust: false, found, tracked: None }
    }

    /// Asks only which directories the system trusts, for calls that read no files.
    pub fn about_trust(directory: &Path, env: BTreeMap<String, String>) -> Self {
        Self { is_about_trust: true, ..Self::new(directory, env) }
    }

    /// Returns the call that comes next, whose answer [`Walk::answer`] wants. No directory is entered in which git would
    /// wait for somebody.
    pub fn question(&mut self) -> Result<Option<WalkQuestion>, GitError> {
        if matches!(self.step, FilterWalk::Next) {
            self.step = match self.enter()? {
                Some(directory) if !self.knows_trust() => FilterWalk::Configuration(directory),
                Some(_) | None => FilterWalk::Over,
            };
        }
        let ask = |directory: &PathBuf, env, call, filters| {
            Some(WalkQuestion { directory: directory.clone(), env, call, filters })
        };
        let env = self.env.clone();
        Ok(match &self.step {
            FilterWalk::Configuration(directory) => {
                let call = Call::new("config").with(&["--list", "-z", "--show-scope"]);
                // Only the scope tells what the system says from what a repository says about
                // itself.
                ask(directory, with_system(env), call, Filters::default())
            }
            // Of the whole repository, wherever in it the walk begins.
            FilterWalk::Inside(directory) => ask(directory, env, tracked_files::call(), self.trusted()),
            FilterWalk::Top(directory, _) => {
                let call = Call::new("rev-parse").with(&["--show-toplevel"]);
                ask(directory, env, call, self.trusted())
            }
            FilterWalk::Next | FilterWalk::Over => None,
        })
    }

    /// Tells whether nothing but the trust is asked for and that is known already. The directory is entered all the same:
    /// git may wait for somebody there.
    fn knows_trust(&mut self) -> bool {
        let known = TRUSTED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&SystemFile::of(&self.env)).filter(|_| self.is_about_trust);
        known.map(|trusted| self.found.trusted.clone_from(trusted)).is_some()
    }

    /// Remembers what the system said, for calls that ask for nothing else.
    fn know_trust(&self) {
        let mut known = TRUSTED.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(SystemFile::of(&self.env), self.found.trusted.clone());
    }

    /// Takes what git printed.
    pub fn answer(&mut self, printed: Result<Vec<u8>, GitError>) -> Result<(), GitError> {
        self.step = match std::mem::replace(&mut self.step, FilterWalk::Over) {
            FilterWalk::Configuration(_) if self.is_about_trust => {
                // The system comes first, and a filter that cannot be turned off matters to other calls.
                let _filter = self.configured(&printed?);
                self.know_trust();
                FilterWalk::Over
            }
            FilterWalk::Configuration(directory) => {
                self.configured(&printed?)?;
                if self.seen == 1 {
                    self.know_trust();
                }
                FilterWalk::Inside(directory)
            }
            FilterWalk::Inside(directory) => {
                // Where there is no repository, there is none inside; what is wrong with one is said by the call itself.
                // But a list that was broken off may lack a repository whose filters the call would start.
                let listed = match printed {
                    Ok(listed) => Some(listed),
                    Err(why) if why.failure().is_some() => None,
                    Err(why) => return Err(why),
                };
                if self.seen == 1 {
                    self.tracked.clone_from(&listed);
                }
                match listed {
                    Some(listed) if gitlinks(&listed).next().is_some() => FilterWalk::Top(directory, listed),
                    Some(_) | None => self.left(),
                }
            }
            FilterWalk::Top(_, listed) => {
                let top = printed?;
                self.listed(Path::new(OsStr::from_bytes(top.strip_suffix(b"\n").unwrap_or(&top))), &listed);
                self.left()
            }
            step @ (FilterWalk::Next | FilterWalk::Over) => step,
        };
        Ok(())
    }

    /// Hands over what git said to [`tracked_files::call`] in the repository that the walk began in, if it could be asked.
    pub(crate) fn take_tracked(&mut self) -> Option<Vec<u8>> {
        self.tracked.take()
    }

    /// Returns what was found.
    pub fn filters(self) -> Filters {
        if self.is_about_trust { self.trusted() } else { self.found }
    }

    fn enter(&mut self) -> Result<Option<PathBuf>, GitError> {
        self.seen += 1;
        if self.seen > MOST_REPOSITORIES && !self.open.is_empty() {
            return Err(GitError::Unsafe(format!(
                "there are more than {MOST_REPOSITORIES} repositories in it"
            )));
        }
        let next = self.open.pop_front();
        // Git opens these files without looking at what they are: before a pipe it waits for ever.
        match next.as_deref().and_then(gitdir::waited_for) {
            Some(path) => Err(GitError::Unsafe(format!(
                "git would wait for `{}`, which is not a file",
                one_line(&path.to_string_lossy(), 300)
            ))),
            None => Ok(next),
        }
    }

    /// Goes on to the repositories inside. Git itself looks at one by the index that it has there, and by its name, so
    /// that nobody asks whom it belongs to.
    fn left(&mut self) -> FilterWalk {
        self.env = without_repository(std::mem::take(&mut self.env));
        self.env.insert("GIT_DIR".to_owned(), ".git".to_owned());
        FilterWalk::Next
    }

    /// Takes the configuration of a directory.
    fn configured(&mut self, printed: &[u8]) -> Result<(), GitError> {
        let printed = String::from_utf8_lossy(printed);
        let mut fields = printed.split('\0');
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
            // A repository may call itself safe. Git does not believe it, and this must not either.
            if key == "safe.directory" && scope == "system" {
                self.found.trusted.push(value.to_owned());
            }
            for (section, what) in [("filter.", "filter"), ("hook.", "hook")] {
                let Some((name, _)) = key.strip_prefix(section).and_then(|rest| rest.rsplit_once('.')) else {
                    continue;
                };
                // `-c KEY=VALUE` ends the key at the first `=`; a name that is not UTF-8 was
                // replaced when it was read, so nothing that is written here would be its name.
                if name.contains(['=', '\n', char::REPLACEMENT_CHARACTER]) {
                    let name = one_line(name, 80);
                    return Err(GitError::Unsafe(format!(
                        "the {what} `{name}` of its configuration cannot be turned off"
                    )));
                }
                let names = if what == "hook" { &mut self.found.hooks } else { &mut self.found.names };
                names.insert(name.to_owned());
            }
        }
        Ok(())
    }

    /// Takes the files of a repository, whose paths begin in this directory.
    fn listed(&mut self, top: &Path, printed: &[u8]) {
        for path in gitlinks(printed) {
            let inside = top.join(OsStr::from_bytes(path));
            // A submodule that is not checked out has neither a configuration nor files.
            if inside.join(".git").exists() {
                self.open.push_back(inside);
            }
        }
    }

    /// Returns what the system says about directories that may be trusted.
    fn trusted(&self) -> Filters {
        Filters { names: BTreeSet::new(), hooks: BTreeSet::new(), ..self.found.clone() }
    }
}

/// Returns the environment in which the system's configuration is seen.
fn with_system(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    env.remove("GIT_CONFIG_NOSYSTEM");
    env
}

/// Returns the paths of the repositories among tracked files.
fn gitlinks(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    tracked_files::read(printed).filter(|file| file.mode() == b"160000").map(|file| file.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::error::GitFailure;

    #[test]
    fn every_filter_is_turned_off_and_trust_in_directories_stays() {
        let mut walk = Walk::new(Path::new("/r"), BTreeMap::new());
        let printed = "system\0safe.directory\n*\0global\0safe.directory\n/x\0local\0filter.a.b.clean\nrm x\0local\0filter.l.required\0";
        walk.configured(printed.as_bytes()).unwrap();
        let expected: Vec<String> = ["a.b", "l"]
            .iter()
            .flat_map(|name| {
                ["clean=", "smudge=", "process=", "required=false"].map(|off| format!("filter.{name}.{off}"))
            })
            .collect();
        let found: Vec<_> = walk.filters().settings().collect();
        assert_eq!(found[0], "safe.directory=*");
        assert_eq!(found[1..], expected);
        let mut odd = Walk::new(Path::new("/r"), BTreeMap::new());
        assert!(odd.configured(b"local\0filter.a=b.clean\nrm x\0").is_err());
    }

    #[test]
    fn repositories_inside_that_could_not_be_listed_are_not_none() {
        let directory = tempfile::tempdir().unwrap();
        let listed = |printed: Result<Vec<u8>, GitError>| {
            let mut walk = Walk::new(directory.path(), BTreeMap::new());
            walk.question().unwrap().unwrap();
            walk.answer(Ok(Vec::new())).unwrap();
            walk.question().unwrap().unwrap();
            walk.answer(printed)
        };
        let failure = GitFailure { command: "ls-files", code: Some(128), said: String::new() };
        listed(Err(GitError::of(failure))).unwrap();
        listed(Ok(Vec::new())).unwrap();
        let broken_off = GitError::Unreadable("too much has changed in it".to_owned());
        assert_eq!(listed(Err(broken_off.clone())), Err(broken_off));
    }
}
