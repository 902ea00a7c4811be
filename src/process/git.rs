//! Calls `git` and waits for it: for the moments before and after a run, when nothing else happens.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::base::text::one_line;

/// No helpers are started, and files of more than 8 MiB go through in pieces.
const SETTINGS: [&str; 4] = ["-c", "core.fsmonitor=false", "-c", "core.bigFileThreshold=8m"];

/// A directory of a repository, and the environment in which git looks at it.
#[derive(Clone, Debug)]
pub struct Git {
    directory: PathBuf,
    env: BTreeMap<String, String>,
}

impl Git {
    /// Calls git in a directory, with this environment and no other.
    pub fn new(directory: &Path, mut env: BTreeMap<String, String>) -> Self {
        // What it says is for us, and nobody is there to answer.
        env.insert("LC_ALL".to_owned(), "C".to_owned());
        env.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
        Self { directory: directory.to_owned(), env }
    }

    /// Returns the same with one more variable.
    #[must_use]
    pub fn with(&self, name: &str, value: impl AsRef<Path>) -> Self {
        let mut env = self.env.clone();
        env.insert(name.to_owned(), value.as_ref().to_string_lossy().into_owned());
        Self { directory: self.directory.clone(), env }
    }

    /// Returns the same in another directory.
    #[must_use]
    pub fn at(&self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), env: self.env.clone() }
    }

    /// Returns what git prints, without the end of the last line; or in one line why it failed.
    pub fn line(&self, arguments: &[&str]) -> Result<String, String> {
        let printed = self.bytes(arguments, &[])?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }

    /// Gives git something to read, and returns everything it prints.
    pub fn bytes(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        self.call(arguments, input, Stdio::piped())
    }

    /// Gives git something to read, and lets it print into a file.
    pub fn into_file(&self, arguments: &[&str], input: &[u8], file: std::fs::File) -> Result<(), String> {
        self.call(arguments, input, file.into()).map(drop)
    }

    fn call(&self, arguments: &[&str], input: &[u8], output: Stdio) -> Result<Vec<u8>, String> {
        let not_started = |error| format!("git cannot be started: {error}");
        let mut child = Command::new("git")
            .args(SETTINGS.iter().chain(arguments).map(OsStr::new))
            .current_dir(&self.directory)
            .env_clear()
            .envs(&self.env)
            .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(not_started)?;
        let stdin = child.stdin.take();
        let ended = std::thread::scope(|scope| {
            // Both ends at once: git may print before it has read everything. What it does not want to read is its
            // own matter, its exit code tells.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let ended = ended.map_err(not_started)?;
        if ended.status.success() {
            Ok(ended.stdout)
        } else {
            let said = one_line(&String::from_utf8_lossy(&ended.stderr), 300);
            Err(if said.is_empty() { format!("it ended with {}", ended.status) } else { said })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git() -> Git {
        let path = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin".to_owned();
        Git::new(Path::new("/"), BTreeMap::from([("PATH".to_owned(), path)]))
    }

    #[test]
    fn what_git_prints_or_says_comes_back() {
        assert!(git().line(&["--version"]).unwrap().starts_with("git version"));
        assert!(git().line(&["nonsense"]).unwrap_err().contains("nonsense"));
        let hash = git().bytes(&["hash-object", "--stdin"], b"a\n").unwrap();
        assert_eq!(hash, b"78981922613b2afb6025042ff6bd878ac1994e85\n");
        // More than a pipe holds, to a command that reads nothing.
        assert!(git().bytes(&["--version"], &vec![b'x'; 1 << 20]).is_ok());
    }
}
