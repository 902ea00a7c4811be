//! The one place where calls of git are put together: their words, their settings and their environment; and the way
//! to make one and wait for it, for the moments before and after a run. While a run goes on, its driver makes the same
//! calls.
//!
//! Nothing is started by what we ask git: no hook, filter, pager, editor, helper or other program that a repository or
//! its configuration names; and no server is reached but through [`Git::connected`]. And nothing that comes from data can
//! become an option: a word of ours is `'static`, an id is an [`ObjectId`], a path stands behind `--`, and any other text
//! behind `--end-of-options`.
//!
//! Most of that is turned off for every repository alike. Filters can only be turned off by their names, so each call
//! that may read files of a working tree ([`Call::reads_files`]) is preceded by a look at the names that are configured
//! at that moment: an action may have configured another one since the last call. A process that an action left behind
//! may do so between the look and the call, which nothing prevents. That is why the environment of these calls holds
//! neither a token nor a file of the runner: such a filter gets nothing that the action did not have, and what it prints
//! is a tree that the process could have written itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::base::time::human;
use crate::files::gitdir;
use crate::process::{filesystem, patience};

/// Options of every call, which take precedence over the configuration.
const SETTINGS: [&str; 25] = [
    "core.hooksPath=/dev/null",
    // Empty means none, for every version: an old one would start a program called `false`.
    "core.fsmonitor=",
    "core.untrackedCache=keep",
    // These would let a file change unseen: with its time put back, or beside one whose name differs in case alone.
    "core.checkStat=default",
    "core.trustctime=true",
    "core.ignoreCase=false",
    // It may name other parents and trees than the commits themselves, and nobody compares them.
    "core.commitGraph=false",
    // Files of more than 8 MiB go through in pieces.
    "core.bigFileThreshold=8m",
    "core.pager=cat",
    "core.editor=:",
    "core.askPass=",
    "core.sshCommand=",
    "core.gitProxy=",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "credential.helper=",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.alternateRefsCommand=",
    // What it says about `GIT_GRAFT_FILE` would stand before every reason.
    "advice.graftFileDeprecated=false",
];

/// Options of calls that reach a server as the user does: their hooks have nothing to do with a scratch repository, and
/// nobody answers a question.
const OWN_SETTINGS: [&str; 3] =
    ["core.hooksPath=/dev/null", "push.gpgSign=false", "core.alternateRefsCommand="];

/// Variables that would start a program, hide what is there, or change how words are read.
const UNSET: [&str; 22] = [
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "PAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_PROXY_COMMAND",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_ATTR_SOURCE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
];

/// Commands that neither read nor write files of the working tree, as we use them: no filter has to do with them. Those
/// that write the index are not among them: git then looks into files that changed in the same moment.
const WITHOUT_FILES: [&str; 26] = [
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "commit-tree",
    "config",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "index-pack",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "mktree",
    "pack-objects",
    "patch-id",
    "push",
    "remote",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
    "update-ref",
    "version",
];

/// Variables that keep git from writing down what it does and which variables it has: they win over `trace2.*` of the
/// user's configuration.
const SILENT: [(&str, &str); 3] = [("GIT_TRACE2", "0"), ("GIT_TRACE2_EVENT", "0"), ("GIT_TRACE2_PERF", "0")];

/// Variables that every call has.
const SET: [(&str, &str); 9] = [
    // Git must not translate its messages, nor prompt for a password.
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Wins over `protocol.<name>.allow`, which wins over `protocol.allow`.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // What an id names is what it was made of.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
];

/// The name of the program.
pub const PROGRAM: &str = "git";

/// Variables that name a repository. A hook of git sets them, and everything would work in the checkout again.
pub const REPOSITORY: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
];

/// Who our own commits of working trees are by: their ids depend on nothing but the tree and the commit that they stand
/// on.
pub const AUTHOR: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "ll-loop"),
    ("GIT_COMMITTER_NAME", "ll-loop"),
    ("GIT_AUTHOR_EMAIL", "ll-loop@localhost"),
    ("GIT_COMMITTER_EMAIL", "ll-loop@localhost"),
    ("GIT_AUTHOR_DATE", "@0 +0000"),
    ("GIT_COMMITTER_DATE", "@0 +0000"),
];

/// Returns an environment in which git finds the repository by its directory alone.
pub fn without_repository(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    env.retain(|name, _| !REPOSITORY.contains(&name.as_str()));
    env
}

/// Repositories in a repository whose filters are looked for.
const MOST_REPOSITORIES: usize = 256;

/// One call of git.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Call {
    command: &'static str,
    options: Vec<String>,
    revisions: Vec<String>,
    paths: Option<Vec<String>>,
    is_literal: bool,
}

impl Call {
    /// Begins with a command of git.
    pub fn new(command: &'static str) -> Self {
        Self { command, options: Vec::new(), revisions: Vec::new(), paths: None, is_literal: false }
    }

    /// Returns the word that people know the call by.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// Tells whether git may read or write files of the working tree for it, and so might start a filter.
    pub fn reads_files(&self) -> bool {
        !WITHOUT_FILES.contains(&self.command)
    }

    /// Adds options, or the word for what a command does: words of this program.
    pub fn with(mut self, options: &[&'static str]) -> Self {
        self.options.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// Adds an option, and an id as its value.
    pub fn option_id(mut self, option: &'static str, id: &ObjectId) -> Self {
        self.options.extend([option.to_owned(), id.to_string()]);
        self
    }

    /// Adds an option, and a value for it that begins with a word of ours.
    pub fn option_name(mut self, option: &'static str, begin: &'static str, rest: &str) -> Self {
        debug_assert!(!begin.is_empty() && !begin.starts_with('-'), "{begin}");
        self.options.extend([option.to_owned(), format!("{begin}{rest}")]);
        self
    }

    /// Adds an option of ours together with a value: one word.
    pub fn option_value(mut self, option: &'static str, value: &str) -> Self {
        debug_assert!(option.starts_with("--") && option.ends_with('='), "{option}");
        self.options.push(format!("{option}{value}"));
        self
    }

    /// Adds an object.
    pub fn id(self, id: &ObjectId) -> Self {
        self.ids("", id, "")
    }

    /// Adds an object with something of ours before and after its id, such as `^` or `^{tree}`.
    pub fn ids(mut self, before: &'static str, id: &ObjectId, after: &'static str) -> Self {
        self.revisions.push(format!("{before}{id}{after}"));
        self
    }

    /// Adds a revision that stands in this program.
    pub fn revision(mut self, revision: &'static str) -> Self {
        self.revisions.push(revision.to_owned());
        self
    }

    /// Adds a revision, or another name, that somebody else chose.
    pub fn named(mut self, name: &str, after: &'static str) -> Self {
        self.revisions.push(format!("{name}{after}"));
        self
    }

    /// Adds a path, or a pattern for paths.
    pub fn path(self, path: impl Into<String>) -> Self {
        self.paths([path])
    }

    /// Adds paths, or patterns for paths. The list is ended even when it is empty, so that nothing behind it becomes a
    /// path.
    pub fn paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.paths.get_or_insert_default().extend(paths.into_iter().map(Into::into));
        self
    }

    /// Takes every path as it is, and none as a pattern.
    pub fn literal(mut self) -> Self {
        self.is_literal = true;
        self
    }

    /// Returns the whole command line, for a repository with these filters.
    pub fn words(&self, directory: Option<&str>, filters: &Filters) -> Vec<String> {
        let settings = SETTINGS.iter().map(|setting| (*setting).to_owned());
        self.words_with(directory, settings.chain(filters.settings()))
    }

    fn words_with(&self, directory: Option<&str>, settings: impl Iterator<Item = String>) -> Vec<String> {
        let mut words = vec![PROGRAM.to_owned()];
        let mut add = |some: &[&str]| words.extend(some.iter().map(|word| (*word).to_owned()));
        if let Some(directory) = directory {
            add(&["-C", directory]);
        }
        add(&["--no-pager"]);
        if self.is_literal {
            add(&["--literal-pathspecs"]);
        }
        for setting in settings {
            add(&["-c", &setting]);
        }
        add(&[self.command]);
        if self.command.starts_with("diff") {
            // What the repository says of its submodules hides none that moved, also where two trees are compared.
            add(&["--no-ext-diff", "--no-textconv", "--ignore-submodules=none"]);
        }
        words.extend(self.options.iter().cloned());
        if !self.revisions.is_empty() {
            words.push("--end-of-options".to_owned());
            words.extend(self.revisions.iter().cloned());
        }
        if let Some(paths) = &self.paths {
            words.push("--".to_owned());
            words.extend(paths.iter().cloned());
        }
        words
    }
}

/// Returns the environment of every call, made from that of this process.
pub fn environment(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    env.retain(|name, _| !UNSET.contains(&name.as_str()) && !name.starts_with("GIT_TRACE"));
    env.extend(SET.into_iter().chain(SILENT).map(|(name, value)| (name.to_owned(), value.to_owned())));
    env
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

    /// Returns the settings.
    fn settings(&self) -> impl Iterator<Item = String> {
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

/// A walk through a repository and the repositories inside of it, that finds their filters. Who walks makes the calls.
#[derive(Debug)]
pub struct Walk {
    open: VecDeque<PathBuf>,
    seen: usize,
    found: Filters,
}

impl Walk {
    /// Begins in a directory of a repository.
    pub fn new(directory: &Path) -> Self {
        let open = VecDeque::from([directory.to_owned()]);
        let found = Filters { holds_modes: filesystem::holds_modes(directory), ..Filters::default() };
        Self { open, seen: 0, found }
    }

    /// Returns the directory that comes next. None is entered in which git would wait for somebody.
    pub fn step(&mut self) -> Result<Option<PathBuf>, String> {
        self.seen += 1;
        if self.seen > MOST_REPOSITORIES && !self.open.is_empty() {
            return Err(format!("there are more than {MOST_REPOSITORIES} repositories in it"));
        }
        let next = self.open.pop_front();
        match next.as_deref().and_then(gitdir::waited_for) {
            Some(path) => Err(format!(
                "git would wait for `{}`, which is no file",
                one_line(&path.to_string_lossy(), 300)
            )),
            None => Ok(next),
        }
    }

    /// The call that tells the configuration. It needs [`Walk::environment`].
    pub fn configuration() -> Call {
        Call::new("config").with(&["--list", "-z", "--show-scope"])
    }

    /// Returns the environment in which the system's configuration is seen.
    pub fn environment(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
        env.remove("GIT_CONFIG_NOSYSTEM");
        env
    }

    /// Returns the environment in which git itself looks at a repository inside of another one: by the index that it has
    /// there, and by its name, so that nobody asks whom it belongs to.
    pub fn environment_inside(env: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env = without_repository(env);
        env.insert("GIT_DIR".to_owned(), ".git".to_owned());
        env
    }

    /// The call that tells the repositories inside: of the whole repository, wherever in it the walk begins. It needs
    /// the index of the call that is to be made.
    pub fn inside() -> Call {
        Call::new("ls-files").with(&["--stage", "-z", "--full-name"]).path(":/")
    }

    /// The call that tells the directory which the paths of [`Walk::inside`] begin in.
    pub fn top() -> Call {
        Call::new("rev-parse").with(&["--show-toplevel"])
    }

    /// Tells whether [`Walk::inside`] printed any repository.
    pub fn is_any(printed: &[u8]) -> bool {
        gitlinks(printed).next().is_some()
    }

    /// Takes the configuration of a directory.
    pub fn configured(&mut self, printed: &[u8]) -> Result<(), String> {
        let printed = String::from_utf8_lossy(printed);
        let mut fields = printed.split('\0');
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
            if key == "safe.directory" && scope == "system" {
                self.found.trusted.push(value.to_owned());
            }
            for (section, what) in [("filter.", "filter"), ("hook.", "hook")] {
                let Some((name, _)) = key.strip_prefix(section).and_then(|rest| rest.rsplit_once('.')) else {
                    continue;
                };
                if name.contains(['=', '\n', char::REPLACEMENT_CHARACTER]) {
                    let name = one_line(name, 80);
                    return Err(format!("the {what} `{name}` of its configuration cannot be turned off"));
                }
                let names = if what == "hook" { &mut self.found.hooks } else { &mut self.found.names };
                names.insert(name.to_owned());
            }
        }
        Ok(())
    }

    /// Takes the files of a repository, whose paths begin in this directory.
    pub fn listed(&mut self, top: &Path, printed: &[u8]) {
        for path in gitlinks(printed) {
            let inside = top.join(OsStr::from_bytes(path));
            if inside.join(".git").exists() {
                self.open.push_back(inside);
            }
        }
    }

    /// Returns what the system says about directories that may be trusted.
    pub fn trusted(&self) -> Filters {
        Filters { names: BTreeSet::new(), hooks: BTreeSet::new(), ..self.found.clone() }
    }

    /// Returns what was found.
    pub fn filters(self) -> Filters {
        self.found
    }
}

/// Returns the paths of the repositories among the files that [`Walk::inside`] printed.
fn gitlinks(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    let links = printed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
    links.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1))
}

/// A directory of a repository, and the environment in which git looks at it.
#[derive(Clone, Debug)]
pub struct Git {
    directory: PathBuf,
    env: BTreeMap<String, String>,
    /// What the system says about directories that may be trusted, once it was asked.
    trusted: Arc<OnceLock<Result<Filters, String>>>,
    /// Whether the user's own configuration counts.
    is_own: bool,
    bound: TimeBound,
}

/// How long a call may take.
#[derive(Clone, Debug, Default)]
enum TimeBound {
    /// As long as this process waits for anything.
    #[default]
    Patience,
    /// The same for a call that may ask something at the terminal: it stays in the group that the terminal listens to.
    AtTerminal,
    /// As long as its caller says.
    Caller { limit: Duration, stop: Arc<AtomicBool> },
}

impl TimeBound {
    /// How often is looked whether a call has to end.
    const LOOK: Duration = Duration::from_millis(20);

    /// Says why a call that was waited for so long has to end, if it has.
    fn over(&self, waited: Duration) -> Option<String> {
        let limit = match self {
            Self::Patience | Self::AtTerminal => patience::limit(),
            Self::Caller { stop, .. } if stop.load(Ordering::Relaxed) => {
                return Some("it was stopped".to_owned());
            }
            Self::Caller { limit, .. } => *limit,
        };
        (waited >= limit).then(|| {
            if !matches!(self, Self::Caller { .. }) {
                patience::spend();
            }
            format!("there was no answer within {}", human(limit))
        })
    }
}

impl Git {
    /// Calls git in a directory, with this environment and no other: about the repository that the directory is in.
    pub fn new(directory: &Path, env: BTreeMap<String, String>) -> Self {
        let env = environment(without_repository(env));
        Self {
            directory: directory.to_owned(),
            env,
            trusted: Arc::default(),
            is_own: false,
            bound: TimeBound::Patience,
        }
    }

    /// Calls git in a directory as a user at a terminal does: with their configuration, credentials and ssh. Only for a
    /// repository of our own, whose configuration nobody else has written.
    pub fn own(directory: &Path, env: BTreeMap<String, String>) -> Self {
        let mut env = without_repository(env);
        env.retain(|name, _| !name.starts_with("GIT_TRACE") && name != "GIT_CURL_VERBOSE");
        let fixed = [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
        ];
        env.extend(fixed.into_iter().chain(SILENT).map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self {
            directory: directory.to_owned(),
            env,
            trusted: Arc::default(),
            is_own: true,
            bound: TimeBound::AtTerminal,
        }
    }

    /// Returns the same with one more variable.
    #[must_use]
    pub fn with(&self, name: &'static str, value: impl AsRef<Path>) -> Self {
        let mut env = self.env.clone();
        env.insert(name.to_owned(), value.as_ref().to_string_lossy().into_owned());
        Self { env, ..self.clone() }
    }

    /// Returns the same in another directory of the repository.
    #[must_use]
    pub fn at(&self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ..self.clone() }
    }

    /// Returns the same for another working tree, whose configuration may be another one.
    #[must_use]
    pub fn of(&self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), trusted: Arc::default(), ..self.clone() }
    }

    /// Returns the same that may reach a repository over HTTP, with this header. The header is a secret: git gets it
    /// through its environment, where no other user sees it, and sends it to this address alone. Nothing but what stands
    /// here is configured: a file could send git to another server.
    #[must_use]
    pub fn connected(&self, url: &str, header: &str) -> Self {
        let let_in = format!("http.{url}.extraHeader");
        let settings = [
            (let_in.as_str(), header),
            ("http.followRedirects", "false"),
            ("http.lowSpeedLimit", "1"),
            ("http.lowSpeedTime", "60"),
        ];
        let mut env = self.env.clone();
        // The last would print the header.
        env.retain(|name, _| !name.starts_with("GIT_CONFIG") && name != "GIT_CURL_VERBOSE");
        for (number, (key, value)) in settings.into_iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{number}"), key.to_owned());
            env.insert(format!("GIT_CONFIG_VALUE_{number}"), value.to_owned());
        }
        let nowhere = self.directory.to_string_lossy().into_owned();
        let others = [
            ("GIT_CONFIG_COUNT", settings.len().to_string()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("HOME", nowhere.clone()),
            ("XDG_CONFIG_HOME", nowhere),
            ("GIT_ALLOW_PROTOCOL", "http:https".to_owned()),
        ];
        env.extend(others.map(|(name, value)| (name.to_owned(), value)));
        Self { env, trusted: Arc::default(), ..self.clone() }
    }

    /// Returns the same whose calls end after so much time, or as soon as they are to stop: with everything that git
    /// has started. Nothing that comes from the terminal ends them.
    #[must_use]
    pub fn within(&self, limit: Duration, stop: &Arc<AtomicBool>) -> Self {
        Self { bound: TimeBound::Caller { limit, stop: Arc::clone(stop) }, ..self.clone() }
    }

    /// Returns what git prints, without the end of the last line; or in one line why it failed.
    pub fn line(&self, call: &Call) -> Result<String, String> {
        let printed = self.bytes(call, &[])?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }

    /// Returns the id that git prints.
    pub fn id(&self, call: &Call) -> Result<ObjectId, String> {
        ObjectId::parse(&self.line(call)?).map_err(|error| error.to_string())
    }

    /// Asks git something to which it says yes, or, by its exit code 1, no.
    pub fn judged(&self, call: &Call) -> Result<Judged, String> {
        let ended = self.ended(call, GitInput::Nothing, Stdio::piped())?;
        match ended.status.code() {
            Some(0 | 1) => Ok(Judged {
                is_yes: ended.status.success(),
                said: one_line(&String::from_utf8_lossy(&ended.stderr).replace('\n', " "), 500),
                printed: ended.stdout,
            }),
            _ => Err(said(&ended)),
        }
    }

    /// Gives git something to read, and returns everything it prints.
    pub fn bytes(&self, call: &Call, input: &[u8]) -> Result<Vec<u8>, String> {
        let input = if input.is_empty() { GitInput::Nothing } else { GitInput::Bytes(input) };
        self.call(call, input, Stdio::piped())
    }

    /// Gives git something to read, and lets it print into a file.
    pub fn write_to(&self, call: &Call, input: &[u8], file: std::fs::File) -> Result<(), String> {
        self.call(call, GitInput::Bytes(input), file.into()).map(drop)
    }

    /// Gives git the rest of a file to read, and returns everything it prints.
    pub fn read_from(&self, call: &Call, file: std::fs::File) -> Result<Vec<u8>, String> {
        self.call(call, GitInput::File(file), Stdio::piped())
    }

    /// Returns the filters that are turned off, and how many files here would go through them.
    pub fn filtered(&self) -> Result<(Vec<String>, usize), String> {
        let filters = self.look()?;
        // Other names cannot be asked for, and nobody gives them.
        let is_plain =
            |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let names: Vec<String> = filters.names.iter().filter(is_plain).cloned().collect();
        let mut used = Vec::new();
        let mut count = 0;
        for name in names {
            let list = Call::new("ls-files").with(&["-z"]).path(format!(":(top,attr:filter={name})"));
            let files =
                self.bytes(&list, &[])?.split(|byte| *byte == 0).filter(|path| !path.is_empty()).count();
            if files > 0 {
                used.push(name);
                count += files;
            }
        }
        Ok((used, count))
    }

    fn call(&self, call: &Call, input: GitInput<'_>, output: Stdio) -> Result<Vec<u8>, String> {
        succeeded(self.ended(call, input, output)?)
    }

    fn ended(&self, call: &Call, input: GitInput<'_>, output: Stdio) -> Result<Output, String> {
        let words = if self.is_own {
            call.words_with(None, OWN_SETTINGS.iter().map(|setting| (*setting).to_owned()))
        } else {
            call.words(None, &self.filters_for(call)?)
        };
        perform(&words, (&self.directory, &self.env), (input, output), &self.bound)
    }

    /// Returns what is to be turned off for a call, as it is now.
    fn filters_for(&self, call: &Call) -> Result<Filters, String> {
        if call.reads_files() { self.look() } else { self.trusted.get_or_init(|| self.trust()).clone() }
    }

    fn trust(&self) -> Result<Filters, String> {
        let mut walk = Walk::new(&self.directory);
        walk.step()?;
        // The system comes first, and a filter that cannot be turned off matters to other calls.
        let _filter = walk.configured(&self.configuration(&self.directory, &self.env)?);
        Ok(walk.trusted())
    }

    fn look(&self) -> Result<Filters, String> {
        let mut walk = Walk::new(&self.directory);
        let mut env = self.env.clone();
        while let Some(directory) = walk.step()? {
            walk.configured(&self.configuration(&directory, &env)?)?;
            let ask = |call: &Call| self.ask(&directory, call, &env, &walk.trusted());
            // Where there is no repository, there is none inside.
            let listed = ask(&Walk::inside()).unwrap_or_default();
            if Walk::is_any(&listed) {
                let top = ask(&Walk::top())?;
                walk.listed(Path::new(OsStr::from_bytes(top.strip_suffix(b"\n").unwrap_or(&top))), &listed);
            }
            env = Walk::environment_inside(env);
        }
        Ok(walk.filters())
    }

    fn configuration(&self, directory: &Path, env: &BTreeMap<String, String>) -> Result<Vec<u8>, String> {
        let env = Walk::environment(env.clone());
        self.ask(directory, &Walk::configuration(), &env, &Filters::default())
    }

    fn ask(
        &self,
        directory: &Path,
        call: &Call,
        env: &BTreeMap<String, String>,
        filters: &Filters,
    ) -> Result<Vec<u8>, String> {
        let streams = (GitInput::Nothing, Stdio::piped());
        perform(&call.words(None, filters), (directory, env), streams, &self.bound).and_then(succeeded)
    }
}

/// What git answers to a question.
#[derive(Debug)]
pub struct Judged {
    /// Whether it says yes.
    pub is_yes: bool,
    /// Everything that it prints.
    pub printed: Vec<u8>,
    /// What it says besides, in one line.
    pub said: String,
}

/// What git reads.
enum GitInput<'i> {
    Nothing,
    Bytes(&'i [u8]),
    File(std::fs::File),
}

fn perform(
    words: &[String],
    (directory, env): (&Path, &BTreeMap<String, String>),
    (input, output): (GitInput<'_>, Stdio),
    bound: &TimeBound,
) -> Result<Output, String> {
    let not_started = |error| format!("git cannot be started: {error}");
    let (stdin, bytes) = match input {
        GitInput::Nothing => (Stdio::null(), &[][..]),
        GitInput::Bytes(bytes) => (Stdio::piped(), bytes),
        GitInput::File(file) => (file.into(), &[][..]),
    };
    let [program, arguments @ ..] = words else { return Err("nothing is to be called".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear().envs(env);
    command.stdin(stdin).stdout(output).stderr(Stdio::piped());
    if !matches!(bound, TimeBound::AtTerminal) {
        command.process_group(0);
    }
    let mut child = command.spawn().map_err(not_started)?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        // Both ends at once: git may print before it has read everything. What it does not want to read is its
        // own matter, its exit code tells.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(bytes)));
        wait_within(child, bound)
    })
}

/// Waits for the end of a call and of all that it printed; ends it when its time is over, and waits for nothing then: what
/// it has started may hold its output open for ever.
fn wait_within(mut child: Child, bound: &TimeBound) -> Result<Output, String> {
    let failed = |error: std::io::Error| format!("git cannot be waited for: {error}");
    let (sender, done) = channel::<()>();
    let out = reader(child.stdout.take(), sender.clone());
    let err = reader(child.stderr.take(), sender);
    let mut waited = Duration::ZERO;
    loop {
        // Nothing is ever sent: it ends when both have read everything.
        if done.recv_timeout(TimeBound::LOOK) == Err(RecvTimeoutError::Timeout) {
            waited += TimeBound::LOOK;
        } else {
            if let Some(status) = child.try_wait().map_err(failed)? {
                let (stdout, stderr) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
                return Ok(Output { status, stdout, stderr });
            }
            // It has nothing more to say, and ends in a moment.
            std::thread::sleep(MOMENT);
            waited += MOMENT;
        }
        if let Some(why) = bound.over(waited) {
            kill(&mut child);
            let _reaped = child.wait();
            return Err(why);
        }
    }
}

/// The time between two looks at a call that has said its last word.
const MOMENT: Duration = Duration::from_micros(100);

/// Kills a call with everything that it has started, where it leads a group.
fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _leads_none = kill_process_group(group, Signal::KILL);
    }
    let _gone = child.kill();
}

/// Reads everything in a thread of its own, which keeps the sender until then.
fn reader(
    pipe: Option<impl std::io::Read + Send + 'static>,
    sender: std::sync::mpsc::Sender<()>,
) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _cut_off = pipe.map(|mut pipe| pipe.read_to_end(&mut all));
        drop(sender);
        all
    })
}

/// Returns what git printed, if it succeeded.
fn succeeded(ended: Output) -> Result<Vec<u8>, String> {
    if ended.status.success() { Ok(ended.stdout) } else { Err(said(&ended)) }
}

/// Returns in one line why git failed.
fn said(ended: &Output) -> String {
    let said = one_line(&String::from_utf8_lossy(&ended.stderr), 300);
    if said.is_empty() { format!("it ended with {}", ended.status) } else { said }
}

/// Copies an index together with its time. By that time git knows which files it may take for unchanged: a file that
/// was written later than the index, or in the same moment, is read.
pub fn copy_index(index: &Path, copy: &Path) -> std::io::Result<()> {
    let written = match fs_err::metadata(index) {
        Ok(metadata) => metadata.modified()?,
        // A repository without files has none.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    crate::files::read::copy(index, copy)?;
    fs_err::OpenOptions::new().write(true).open(copy)?.file().set_modified(written)
}

/// Writes a directory for `GIT_ALTERNATE_OBJECT_DIRECTORIES`, in which a colon separates two.
pub fn alternate(path: &str) -> String {
    if !path.contains([':', '"', '\\']) {
        return path.to_owned();
    }
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> BTreeMap<String, String> {
        let path = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin".to_owned();
        BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), "/nonexistent".to_owned())])
    }

    fn git() -> Git {
        Git::new(Path::new("/"), env())
    }

    fn id() -> ObjectId {
        ObjectId::parse("78981922613b2afb6025042ff6bd878ac1994e85").unwrap()
    }

    #[test]
    fn what_git_prints_or_says_comes_back() {
        assert!(git().line(&Call::new("version")).unwrap().starts_with("git version"));
        assert!(git().line(&Call::new("nonsense")).unwrap_err().contains("nonsense"));
        let hash = Call::new("hash-object").with(&["--stdin"]);
        assert_eq!(git().bytes(&hash, b"a\n").unwrap(), format!("{}\n", id()).as_bytes());
        assert_eq!(git().id(&hash).unwrap().as_str(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert!(git().id(&Call::new("version")).is_err());
        // More than a pipe holds, to a command that reads nothing.
        assert!(git().bytes(&Call::new("version"), &vec![b'x'; 1 << 20]).is_ok());
    }

    #[test]
    fn a_bounded_call_ends_in_time_with_what_it_has_started() {
        let place = tempfile::tempdir().unwrap();
        let git = Git::own(place.path(), env());
        git.line(&Call::new("init").with(&["--quiet", "--bare"])).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let quick = git.within(Duration::from_mins(1), &stop);
        assert!(quick.line(&Call::new("version")).unwrap().starts_with("git version"));
        assert!(quick.line(&Call::new("nonsense")).unwrap_err().contains("nonsense"));
        // A server that accepts and says nothing.
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x.git", server.local_addr().unwrap());
        let ask = Call::new("ls-remote").named(&url, "");
        let why = git.within(Duration::from_millis(300), &stop).line(&ask).unwrap_err();
        assert_eq!(why, "there was no answer within 300ms");
        stop.store(true, Ordering::Relaxed);
        assert_eq!(quick.line(&ask).unwrap_err(), "it was stopped");
    }

    #[test]
    fn what_is_no_word_of_ours_stands_where_options_have_ended() {
        let call = Call::new("diff")
            .with(&["--quiet"])
            .id(&id())
            .named("--output=x", "^{commit}")
            .path("-p")
            .literal();
        let words = call.words(Some("/x"), &Filters::default());
        assert_eq!(&words[..5], ["git", "-C", "/x", "--no-pager", "--literal-pathspecs"]);
        let at = words.iter().position(|word| word == "diff").unwrap();
        assert_eq!(
            words[at..],
            [
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=none",
                "--quiet",
                "--end-of-options",
                id().as_str(),
                "--output=x^{commit}",
                "--",
                "-p"
            ]
        );
        assert_eq!(words[5..at].len(), 2 * SETTINGS.len());
    }

    #[test]
    fn a_header_for_a_server_is_in_no_command_line_and_no_file_redirects_it() {
        let place = tempfile::tempdir().unwrap();
        fs_err::write(place.path().join(".gitconfig"), "[url \"http://evil/\"]\ninsteadOf = http://\n")
            .unwrap();
        let mut given = env();
        given.insert("HOME".to_owned(), "/nonexistent".to_owned());
        given.insert("GIT_CONFIG_PARAMETERS".to_owned(), "'http.proxy=evil'".to_owned());
        given.insert("GIT_CURL_VERBOSE".to_owned(), "evil".to_owned());
        let git = Git::new(place.path(), given);
        git.line(&Call::new("init").with(&["--quiet", "--bare"])).unwrap();
        let connected = git.connected("http://localhost/o/r.git", "Authorization: geheim");
        let push = Call::new("push").option_value("--force-with-lease=", "refs/x:").named("http://x", "");
        let words = push.words(None, &Filters::default());
        assert!(!words.iter().any(|word| word.contains("geheim")), "{words:?}");
        assert!(words.contains(&"--force-with-lease=refs/x:".to_owned()), "{words:?}");
        let told = connected.line(&Call::new("config").with(&["--list", "--show-scope"])).unwrap();
        assert!(told.contains("http.http://localhost/o/r.git.extraheader=Authorization: geheim"), "{told}");
        assert!(!told.contains("evil") || !told.contains("global"), "{told}");
        assert!(!connected.env.values().any(|value| value.contains("evil")));
        let local = Call::new("ls-remote").named(&place.path().to_string_lossy(), "");
        assert!(connected.line(&local).unwrap_err().contains("not allowed"));
        assert!(git.line(&local).unwrap_err().contains("not allowed"));
    }

    #[test]
    fn a_directory_with_a_colon_is_one_directory() {
        assert_eq!(alternate("/a b/objects"), "/a b/objects");
        assert_eq!(alternate("/a:b/\"c\"\\d"), r#""/a:b/\"c\"\\d""#);
    }

    #[test]
    fn every_filter_is_turned_off_and_trust_in_directories_stays() {
        let mut walk = Walk::new(Path::new("/r"));
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
        assert!(Walk::new(Path::new("/r")).configured(b"local\0filter.a=b.clean\nrm x\0").is_err());
    }

    #[test]
    fn the_environment_starts_nothing() {
        let mut given = env();
        for name in ["GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_TRACE2_EVENT", "GIT_GRAFT_FILE", "PAGER"] {
            given.insert(name.to_owned(), "evil".to_owned());
        }
        given.insert("GIT_CONFIG_COUNT".to_owned(), "1".to_owned());
        let made = environment(given);
        assert!(!made.values().any(|value| value == "evil"), "{made:?}");
        assert_eq!(made["GIT_CONFIG_NOSYSTEM"], "1");
        assert_eq!(made["GIT_CONFIG_COUNT"], "1", "a container trusts its workspace in this way");
    }

    #[test]
    fn no_filter_hook_or_monitor_of_a_repository_or_its_submodule_is_started() {
        use std::os::unix::fs::PermissionsExt as _;

        let place = tempfile::tempdir().unwrap();
        let mark = place.path().join("mark");
        let evil = place.path().join("evil");
        fs_err::write(&evil, format!("#!/bin/sh\necho started >> {}\ncat\n", mark.display())).unwrap();
        fs_err::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
        let plain = |directory: &Path, words: &[&str]| {
            let who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"];
            let ended = Command::new("git").args(who).args(words).current_dir(directory).output().unwrap();
            assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
        };
        let repository = |name: &str| {
            let path = place.path().join(name);
            fs_err::create_dir(&path).unwrap();
            plain(&path, &["init", "-q"]);
            fs_err::write(path.join("file"), "one\n").unwrap();
            fs_err::write(path.join(".gitattributes"), format!("* filter={name}\n")).unwrap();
            plain(&path, &["add", "-A"]);
            plain(&path, &["commit", "-q", "-m", "first"]);
            path
        };
        let (outer, inner) = (repository("outer"), repository("inner"));
        plain(&outer, &["submodule", "add", "-q", &inner.to_string_lossy(), "sub"]);
        plain(&outer, &["commit", "-q", "-m", "second"]);
        for (directory, name) in [(outer.clone(), "outer"), (outer.join("sub"), "inner")] {
            for key in ["clean", "smudge"] {
                plain(&directory, &["config", &format!("filter.{name}.{key}"), &evil.to_string_lossy()]);
            }
            plain(&directory, &["config", &format!("filter.{name}.required"), "true"]);
            plain(&directory, &["config", "core.fsmonitor", &evil.to_string_lossy()]);
            fs_err::write(directory.join("file"), "two\n").unwrap();
        }
        let git = Git::new(&outer, env());
        let status = Call::new("status").with(&["--porcelain", "--ignore-submodules=none"]).paths([""; 0]);
        assert_eq!(git.line(&status).unwrap(), " M file\n M sub");
        git.line(&Call::new("add").with(&["--update"]).path(":/")).unwrap();
        assert_eq!(git.line(&Call::new("cat-file").with(&["-p"]).revision(":file")).unwrap(), "two");
        assert!(!mark.exists(), "{}", fs_err::read_to_string(&mark).unwrap_or_default());
    }
}
