//! A directory with a loop in it, and the program run there with an environment of nothing but what a test says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::signal::unix::SignalKind;

/// The program that is tried: the one that cargo built for the tests, or the one that `LL_LOOP_BIN` names.
pub(crate) static LL_LOOP: LazyLock<String> = LazyLock::new(named_program);

#[expect(clippy::disallowed_methods, reason = "it is asked for by who starts the tests")]
fn named_program() -> String {
    std::env::var("LL_LOOP_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_ll-loop").to_owned())
}

/// Returns a `PATH` on which actions find it.
pub(crate) fn path_with_ll_loop() -> String {
    let directory = Path::new(LL_LOOP.as_str()).parent().unwrap();
    format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display())
}

/// A test project.
pub(crate) struct Project {
    directory: TempDir,
    env: BTreeMap<String, String>,
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Project {
    /// Makes an empty project.
    pub(crate) fn new() -> Self {
        let directory = TempDir::with_prefix("ll-test-").unwrap();
        fs::create_dir(directory.path().join(".loops")).unwrap();
        let env = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), directory.path().to_string_lossy().into_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        Self { directory, env }
    }

    /// Makes a project with the loop `main`.
    pub(crate) fn with_loop(text: &str) -> Self {
        Self::new().file(".loops/main.yaml", text)
    }

    /// Adds a file.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    /// Sets a variable for every run.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// Puts the project into a job of GitHub Actions, whose outputs are in `out` and whose summary is in `summary`.
    pub(crate) fn in_github_job(self) -> Self {
        let root = self.path().to_string_lossy().into_owned();
        self.file("out", "")
            .file("summary", "")
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_OUTPUT", format!("{root}/out"))
            .env("GITHUB_STEP_SUMMARY", format!("{root}/summary"))
            .env("GITHUB_WORKSPACE", root)
            .env("GITHUB_JOB", "check")
            .env("NO_COLOR", "1")
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Makes our program, ready to run in the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(&LL_LOOP, arguments)
    }

    /// Makes any program, ready to run in the project.
    pub(crate) fn program(&self, name: &str, arguments: &[&str]) -> Command {
        ignore_nothing();
        let mut command = Command::new(name);
        command.args(arguments).current_dir(self.path()).env_clear().envs(&self.env).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end. The exit code has to be looked at.
    #[must_use]
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    /// Starts the program and comes back when the file `sign` is there.
    pub(crate) fn start_until(&self, arguments: &[&str], sign: &str) -> Child {
        let mut child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(|| self.exists(sign) || child.try_wait().unwrap().is_some());
        if !self.exists(sign) {
            let ended = Ran::of(&child.wait_with_output().unwrap());
            panic!("the run ended before `{sign}` was there: {}", ended.all());
        }
        child
    }

    /// Returns every file of finished and unfinished runs that has this ending.
    pub(crate) fn run_files(&self, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.at(".loops/.running"), self.at(".loops/.history")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
                let path = entry.path();
                let is_report = path.extension().is_some_and(|extension| extension == "report");
                if path.is_dir() && !is_report {
                    open.push(path);
                } else if path.to_string_lossy().ends_with(ending) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Returns the events of the one run there was.
    pub(crate) fn events(&self) -> Vec<Value> {
        let journals = self.run_files(".events.jsonl");
        assert_eq!(journals.len(), 1, "{journals:?}");
        events(&journals[0])
    }

    /// Returns the state of the one run there was.
    pub(crate) fn state(&self) -> Value {
        let states = self.run_files(".state.json");
        assert_eq!(states.len(), 1, "{states:?}");
        serde_json::from_str(&fs::read_to_string(&states[0]).unwrap()).unwrap()
    }

    /// Returns the last event of the one run there was.
    pub(crate) fn end(&self) -> Value {
        self.events().pop().unwrap()
    }
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Asserts the exit code and that nothing panicked.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{}", self.all());
        assert!(!self.stderr.contains("panicked"), "{}", self.all());
        self
    }

    /// Asserts that both streams together hold a text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.all().contains(text), "no {text:?} in\n{}", self.all());
        self
    }

    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Lets what tests start hear every signal. Where these are ignored, as they are in the background of a script or under `nohup`,
/// children would inherit that; a signal with a handler, which this makes of it, they hear again.
fn ignore_nothing() {
    static HEARD: LazyLock<()> = LazyLock::new(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        for signal in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit()] {
            if ignored & (1 << (signal.as_raw_value() - 1)) != 0 {
                let _handler_stays = tokio::signal::unix::signal(signal).unwrap();
            }
        }
    });
    LazyLock::force(&HEARD);
}

/// Reads a journal; every line has to be one.
pub(crate) fn events(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asks git in a project, as somebody with a name.
#[track_caller]
pub(crate) fn git(project: &Project, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let ended = Command::new("git").args(who).args(arguments).current_dir(project.path()).output().unwrap();
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8_lossy(&ended.stdout).trim().to_owned()
}

/// Waits until something holds; a test that waits for half a minute has failed.
#[track_caller]
pub(crate) fn wait_for(mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain");
}

/// Sends a signal to the program alone.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A loop that fails once and is then fixed.
pub(crate) const CHECK_FIX: &str = "\
name: main
description: fixes a flag
initial: check
max_iterations: 20
states:
  check: {action: 'echo looking; test -f flag', on_yes: done, on_no: fix}
  fix: {action: touch flag, next: check}
  done: {terminal: true}
";
