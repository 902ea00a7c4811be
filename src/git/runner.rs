//! Git in one directory: makes calls and waits for them, before and after a run. While a run goes on, its driver makes the
//! same calls ([`super::in_run`]).

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::call::{Call, SILENT, environment, without_repository};
use super::error::{GitError, GitFailure};
use super::filters::{Filters, Walk, WalkQuestion};
use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::process::{patience, spawn};

/// A directory of a repository, and the environment in which git looks at it.
#[derive(Clone, Debug)]
pub struct Git {
    directory: PathBuf,
    env: BTreeMap<String, String>,
    /// What the system says about directories that may be trusted, once it was asked.
    trusted: Arc<OnceLock<Result<Filters, GitError>>>,
    /// What is turned off, where it was looked for once and for all calls.
    looked: Option<Arc<Filters>>,
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
    fn over(&self, waited: Duration) -> Option<GitError> {
        let limit = match self {
            Self::Patience | Self::AtTerminal => patience::limit(),
            Self::Caller { stop, .. } if stop.load(Ordering::Relaxed) => {
                return Some(GitError::Cancelled);
            }
            Self::Caller { limit, .. } => *limit,
        };
        (waited >= limit).then(|| {
            if !matches!(self, Self::Caller { .. }) {
                // What hung once will hang again, so the next call gets less time.
                patience::spend();
            }
            GitError::TooLong(limit)
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
            looked: None,
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
            // Without `ext`, for which an address is a command line.
            ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
        ];
        env.extend(fixed.into_iter().chain(SILENT).map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self {
            directory: directory.to_owned(),
            env,
            trusted: Arc::default(),
            looked: None,
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

    /// Tells whether there may be a repository, without asking git.
    pub fn may_be_in_repository(&self) -> bool {
        let directory = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        directory.ancestors().any(|above| above.join(".git").symlink_metadata().is_ok())
    }

    /// Returns the same for another working tree, whose configuration may be another one.
    #[must_use]
    pub fn of(&self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), trusted: Arc::default(), looked: None, ..self.clone() }
    }

    /// Looks now for what is to be turned off, and returns the same that does not look again: for calls one after the
    /// other while no action runs. Each look costs at least two calls.
    ///
    /// # Errors
    /// It cannot be looked for, or something cannot be turned off.
    pub fn looked(&self) -> Result<Self, GitError> {
        Ok(Self { looked: Some(Arc::new(self.look()?)), ..self.clone() })
    }

    /// Returns the same that may reach a repository over HTTP, with this header. The header is a secret: git gets it
    /// through its environment, where no other user sees it, and sends it to this address alone. Nothing but what stands
    /// here is configured: a file could send git to another server.
    #[must_use]
    pub fn connected(&self, url: &str, header: &str) -> Self {
        let let_in = format!("http.{url}.extraHeader");
        let settings = [
            (let_in.as_str(), header),
            // The header would go with a redirect, to whatever server that names.
            ("http.followRedirects", "false"),
            // Git on its own waits for ever when a connection stalls.
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
            // curl looks for a `.netrc` there.
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
    pub fn line(&self, call: &Call) -> Result<String, GitError> {
        let printed = self.bytes(call, &[])?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }

    /// Returns the id that git prints.
    pub fn id(&self, call: &Call) -> Result<ObjectId, GitError> {
        Ok(ObjectId::parse(&self.line(call)?)?)
    }

    /// Asks git something to which it says yes, or, by its exit code 1, no.
    pub fn judged(&self, call: &Call) -> Result<YesOrNo, GitError> {
        self.judged_reading(call, &[])
    }

    /// The same for a call that is given something to read.
    pub fn judged_reading(&self, call: &Call, input: &[u8]) -> Result<YesOrNo, GitError> {
        let input = if input.is_empty() { GitInput::Nothing } else { GitInput::Bytes(input) };
        let ended = self.ended(call, input, Stdio::piped())?;
        match ended.output.status.code() {
            Some(0 | 1) => Ok(YesOrNo {
                is_yes: ended.output.status.success(),
                said: one_line(&String::from_utf8_lossy(&ended.output.stderr).replace('\n', " "), 500),
                printed: ended.output.stdout,
            }),
            _ => Err(ended.failed()),
        }
    }

    /// Gives git something to read, and returns everything it prints.
    pub fn bytes(&self, call: &Call, input: &[u8]) -> Result<Vec<u8>, GitError> {
        let input = if input.is_empty() { GitInput::Nothing } else { GitInput::Bytes(input) };
        self.call(call, input, Stdio::piped())
    }

    /// Gives git something to read, and lets it print into a file.
    pub fn write_to(&self, call: &Call, input: &[u8], file: std::fs::File) -> Result<(), GitError> {
        self.call(call, GitInput::Bytes(input), file.into()).map(drop)
    }

    /// Gives git the rest of a file to read, and returns everything it prints.
    pub fn read_from(&self, call: &Call, file: std::fs::File) -> Result<Vec<u8>, GitError> {
        self.call(call, GitInput::File(file), Stdio::piped())
    }

    /// Returns the filters that are turned off, and how many files here would go through them.
    pub fn filtered(&self) -> Result<(Vec<String>, usize), GitError> {
        let filters = self.look()?;
        // Other names cannot be asked for, and nobody gives them.
        let is_plain =
            |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let names: Vec<String> = filters.names().filter(is_plain).cloned().collect();
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

    fn call(&self, call: &Call, input: GitInput<'_>, output: Stdio) -> Result<Vec<u8>, GitError> {
        succeeded(self.ended(call, input, output)?)
    }

    fn ended(&self, call: &Call, input: GitInput<'_>, output: Stdio) -> Result<EndedCall, GitError> {
        let filters = if self.is_own { None } else { Some(self.filters_for(call)?) };
        let process = GitProcess {
            call,
            filters: filters.as_ref(),
            directory: &self.directory,
            env: &self.env,
            bound: &self.bound,
        };
        process.perform(input, output)
    }

    /// Returns what is to be turned off for a call, as it is now.
    fn filters_for(&self, call: &Call) -> Result<Filters, GitError> {
        if let Some(looked) = &self.looked {
            return Ok(looked.as_ref().clone());
        }
        if call.reads_files() {
            return self.look();
        }
        let ask = || self.walked(Walk::about_trust(&self.directory, self.env.clone()));
        self.trusted.get_or_init(ask).clone()
    }

    fn look(&self) -> Result<Filters, GitError> {
        self.walked(Walk::new(&self.directory, self.env.clone()))
    }

    fn walked(&self, mut walk: Walk) -> Result<Filters, GitError> {
        while let Some(question) = walk.question()? {
            let WalkQuestion { directory, env, call, filters } = question;
            let process = GitProcess {
                call: &call,
                filters: Some(&filters),
                directory: &directory,
                env: &env,
                bound: &self.bound,
            };
            walk.answer(process.perform(GitInput::Nothing, Stdio::piped()).and_then(succeeded))?;
        }
        Ok(walk.filters())
    }
}

/// What git answers to a question.
#[derive(Debug)]
pub struct YesOrNo {
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

/// A call as it is started.
struct GitProcess<'p> {
    call: &'p Call,
    /// What is turned off; none for a call that reaches a server as the user does.
    filters: Option<&'p Filters>,
    directory: &'p Path,
    env: &'p BTreeMap<String, String>,
    bound: &'p TimeBound,
}

/// How a call has ended.
struct EndedCall {
    command: &'static str,
    output: Output,
}

impl GitProcess<'_> {
    fn perform(&self, input: GitInput<'_>, output: Stdio) -> Result<EndedCall, GitError> {
        let (stdin, bytes) = match input {
            GitInput::Nothing => (Stdio::null(), &[][..]),
            GitInput::Bytes(bytes) => (Stdio::piped(), bytes),
            GitInput::File(file) => (file.into(), &[][..]),
        };
        // Looked up here, and with the directory as an argument: for a changed `PATH` or another working directory this
        // process would have to be forked, which costs as much as what git then does.
        let named = self.directory.to_str();
        let words = match self.filters {
            Some(filters) => self.call.words(named, filters.settings()),
            None => self.call.words_as_user(named),
        };
        let not_started =
            |error: std::io::Error| GitError::NotStarted(format!("git cannot be started: {error}"));
        let (name, arguments) = words.split_first().expect("words begin with the program");
        let path = self.env.get("PATH").map(String::as_str);
        let program =
            spawn::find(name, path).ok_or_else(|| not_started(std::io::ErrorKind::NotFound.into()))?;
        let mut command = Command::new(program);
        command.arg0(name).args(arguments).env_clear().envs(self.env);
        if named.is_none() {
            command.current_dir(self.directory);
        }
        command.stdin(stdin).stdout(output).stderr(Stdio::piped());
        // A group can be killed as a whole. But in a group of its own a call cannot read from the
        // terminal: the system stops it.
        if !matches!(self.bound, TimeBound::AtTerminal) {
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(not_started)?;
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            // Both ends at once: git may print before it has read everything. What it does not want to read is its
            // own matter, its exit code tells.
            if let Some(mut stdin) = stdin {
                scope.spawn(move || stdin.write_all(bytes));
            }
            let command = self.call.command();
            wait_within(child, self.bound).map(|output| EndedCall { command, output })
        })
    }
}

/// Waits for the end of a call and of all that it printed; ends it when its time is over, and waits for nothing then: what
/// it has started may hold its output open for ever.
fn wait_within(mut child: Child, bound: &TimeBound) -> Result<Output, GitError> {
    let failed = |error: std::io::Error| GitError::NotStarted(format!("git cannot be waited for: {error}"));
    let (sender, done) = channel::<()>();
    let out = reader(child.stdout.take(), sender.clone(), MOST_OUTPUT);
    let err = reader(child.stderr.take(), sender, MOST_OUTPUT);
    let mut waited = Duration::ZERO;
    loop {
        // Nothing is ever sent: it ends when both have read everything.
        if done.recv_timeout(TimeBound::LOOK) == Err(RecvTimeoutError::Timeout) {
            waited += TimeBound::LOOK;
        } else {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(Output { status, stdout: whole(out)?, stderr: whole(err)? });
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

/// A thread that reads what a call prints.
type OutputReader = std::thread::JoinHandle<std::io::Result<Vec<u8>>>;

/// The most that is read of what a call prints, in bytes. Some objects that a stranger made are enough for a list of
/// billions of files.
const MOST_OUTPUT: u64 = 1 << 30;

/// Reads everything in a thread of its own, which keeps the sender until then. Where there is more than is read, the pipe
/// is closed, and git ends when it writes on.
fn reader(
    pipe: Option<impl std::io::Read + Send + 'static>,
    sender: std::sync::mpsc::Sender<()>,
    most: u64,
) -> OutputReader {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let read = pipe.map_or(Ok(0), |pipe| pipe.take(most.saturating_add(1)).read_to_end(&mut all));
        drop(sender);
        if read? as u64 > most {
            return Err(std::io::Error::other(format!("it is more than {} MiB", most >> 20)));
        }
        Ok(all)
    })
}

/// Returns all that was read. A part of it could be taken for an answer.
fn whole(reader: OutputReader) -> Result<Vec<u8>, GitError> {
    let read = reader.join().unwrap_or_else(|_| Err(std::io::Error::other("its reader failed")));
    read.map_err(|error| GitError::Unreadable(format!("what git prints cannot be read: {error}")))
}

/// Returns what git printed, if it succeeded.
fn succeeded(ended: EndedCall) -> Result<Vec<u8>, GitError> {
    if ended.output.status.success() { Ok(ended.output.stdout) } else { Err(ended.failed()) }
}

impl EndedCall {
    fn failed(&self) -> GitError {
        let said = String::from_utf8_lossy(&self.output.stderr).into_owned();
        GitError::of(GitFailure { command: self.command, code: self.output.status.code(), said })
    }
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
        assert!(git().line(&Call::new("nonsense")).unwrap_err().to_string().contains("nonsense"));
        let hash = Call::new("hash-object").with(&["--stdin"]);
        assert_eq!(git().bytes(&hash, b"a\n").unwrap(), format!("{}\n", id()).as_bytes());
        assert_eq!(git().id(&hash).unwrap().as_str(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert!(git().id(&Call::new("version")).is_err());
        // More than a pipe holds, to a command that reads nothing.
        assert!(git().bytes(&Call::new("version"), &vec![b'x'; 1 << 20]).is_ok());
    }

    #[test]
    fn a_part_of_what_git_prints_is_no_answer() {
        struct CutOff;
        impl std::io::Read for CutOff {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("cut off"))
            }
        }
        let read = |pipe| whole(reader(pipe, channel().0, 1 << 20));
        let error = read(Some(std::io::Read::chain(&b"half"[..], CutOff))).unwrap_err();
        assert_eq!(error.to_string(), "what git prints cannot be read: cut off");
        assert_eq!(read(None).unwrap(), b"");
        let bounded = |size: u64| whole(reader(Some(std::io::repeat(b'x').take(size)), channel().0, 1 << 20));
        assert_eq!(bounded(1 << 20).unwrap().len(), 1 << 20);
        let error = bounded(u64::MAX).unwrap_err();
        assert_eq!(error.to_string(), "what git prints cannot be read: it is more than 1 MiB");
    }

    #[test]
    fn a_bounded_call_ends_in_time_with_what_it_has_started() {
        let place = tempfile::tempdir().unwrap();
        let git = Git::own(place.path(), env());
        git.line(&Call::new("init").with(&["--quiet", "--bare"])).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let quick = git.within(Duration::from_mins(1), &stop);
        assert!(quick.line(&Call::new("version")).unwrap().starts_with("git version"));
        assert!(quick.line(&Call::new("nonsense")).unwrap_err().to_string().contains("nonsense"));
        // A server that accepts and says nothing.
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x.git", server.local_addr().unwrap());
        let ask = Call::new("ls-remote").named(&url, "");
        let why = git.within(Duration::from_millis(300), &stop).line(&ask).unwrap_err();
        assert_eq!(why.to_string(), "there was no answer within 300ms");
        stop.store(true, Ordering::Relaxed);
        assert_eq!(quick.line(&ask).unwrap_err(), GitError::Cancelled);
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
        let words = push.words(None, std::iter::empty());
        assert!(!words.iter().any(|word| word.contains("geheim")), "{words:?}");
        assert!(words.contains(&"--force-with-lease=refs/x:".to_owned()), "{words:?}");
        let told = connected.line(&Call::new("config").with(&["--list", "--show-scope"])).unwrap();
        assert!(told.contains("http.http://localhost/o/r.git.extraheader=Authorization: geheim"), "{told}");
        assert!(!told.contains("evil") || !told.contains("global"), "{told}");
        assert!(!connected.env.values().any(|value| value.contains("evil")));
        let local = Call::new("ls-remote").named(&place.path().to_string_lossy(), "");
        assert!(connected.line(&local).unwrap_err().to_string().contains("not allowed"));
        assert!(git.line(&local).unwrap_err().to_string().contains("not allowed"));
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
        let mut given = env();
        // Whoever asks for the configuration would see this file alone.
        given.insert("GIT_CONFIG".to_owned(), "/dev/null".to_owned());
        let git = Git::new(&outer, given);
        let status = Call::new("status").with(&["--porcelain", "--ignore-submodules=none"]).paths([""; 0]);
        assert_eq!(git.line(&status).unwrap(), " M file\n M sub");
        git.line(&Call::new("add").with(&["--update"]).path(":/")).unwrap();
        assert_eq!(git.line(&Call::new("cat-file").with(&["-p"]).revision(":file")).unwrap(), "two");
        assert!(!mark.exists(), "{}", fs_err::read_to_string(&mark).unwrap_or_default());
    }
}
