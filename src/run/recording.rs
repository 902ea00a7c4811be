//! Recorded answers: what agents and models said and changed is kept, and given again where none may be asked.
//!
//! A call is known by what is asked, whoever is asked, and by the files that it could look at; not by when and where it
//! is asked, as far as that shows in what others printed. What was not recorded is not answered: a replay is a test, and a guess would make it pass.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::base::explanation::Explanation;
use crate::base::nearest::nearest;
use crate::base::text::hex;
use crate::evaluate::model::Usage;
use crate::evaluate::observation::Stop;
use crate::files::file_name::file_name;
use crate::files::read::{self, MIB};
use crate::files::replace::replace;

/// The largest file of a recording that is read, in bytes.
const MAX_FILE: u64 = 256 * MIB;

/// The version of the format.
const SCHEMA: u32 = 2;

/// The version in which a call was known by every character of its prompt.
const EXACT: u32 = 1;

/// The directory of a recording in which lies what went over the wire.
const WIRE: &str = "wire";

/// Whether answers are kept or given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are kept.
    Record,
    /// They are given.
    Replay,
}

/// What is asked, and of which files.
pub(super) struct RecordedRequest {
    request: Value,
    /// The digest of the files that can be looked at.
    tree: String,
    /// The name of the call, which is a digest of both.
    key: String,
    /// Its name in recordings of the version before.
    exact: String,
}

impl RecordedRequest {
    /// Names a call by its parts, with what its prompt is [known by](super::normal) in place of the prompt itself.
    pub(super) fn new(mut request: Value, prompt: String, tree: String) -> Self {
        let exact = name(&request, &tree);
        request["prompt"] = prompt.into();
        Self { key: name(&request, &tree), exact, request, tree }
    }
}

fn name(request: &Value, tree: &str) -> String {
    let whole = json!([request, tree]).to_string();
    // 96 bits, short enough for the name of a file.
    hex(&Sha256::digest(whole.as_bytes()))[..24].to_owned()
}

/// A directory of recorded answers.
pub struct Recording {
    directory: PathBuf,
    mode: Mode,
    /// How often each call was made in this run.
    made: HashMap<String, usize>,
}

impl Recording {
    /// Opens a directory. It is made where answers are to be kept, and has to be there where they are to be given.
    pub fn open(directory: &Path, mode: Mode) -> std::io::Result<Self> {
        if mode == Mode::Record {
            fs_err::create_dir_all(directory)?;
        }
        // Made absolute, because it is compared with paths of the working tree.
        let directory = fs_err::canonicalize(directory)?;
        fs_err::read_dir(&directory)?;
        Ok(Self { directory, mode, made: HashMap::new() })
    }

    /// Returns the directory, if it lies below another one.
    pub(super) fn below(&self, root: &Path) -> Option<String> {
        let root = fs_err::canonicalize(root).ok()?;
        self.directory.starts_with(root).then(|| self.directory.to_string_lossy().into_owned())
    }

    /// Tells whether answers are given from here.
    pub(super) fn replays(&self) -> bool {
        self.mode == Mode::Replay
    }

    /// Returns where the recording keeps what went over the wire; none where answers are given and it has nothing of the
    /// kind. A directory that is named like it is one by itself.
    pub fn wire(&self) -> Option<PathBuf> {
        let below = self.directory.join(WIRE);
        match self.mode {
            Mode::Record => Some(below),
            Mode::Replay if below.is_dir() => Some(below),
            Mode::Replay => self.directory.ends_with(WIRE).then(|| self.directory.clone()),
        }
    }

    /// Tells whether the next call like this has an answer.
    pub(super) fn has(&self, asked: &RecordedRequest) -> bool {
        let keys = [&asked.key, &asked.exact];
        let made = |key: &str| self.made.get(key).copied().unwrap_or_default();
        let is_there = |key: &&String| self.file(key).exists();
        let key = keys.into_iter().find(is_there);
        key.is_some_and(|key| read(&self.file(key)).is_ok_and(|file| file.answers.len() > made(key)))
    }

    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }

    /// Returns the directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds the next answer to a call of a run, with what the agent changed. An earlier run's answers are replaced; those of an
    /// earlier part of the same run come before.
    pub(super) fn add(
        &mut self,
        asked: RecordedRequest,
        mut answer: RecordedAnswer,
        patch: &[u8],
        run: &str,
    ) -> Result<(), Explanation> {
        let RecordedRequest { request, tree, key, exact: _ } = asked;
        let file = self.file(&key);
        let mut answers = match self.made.get(&key) {
            Some(_) => read(&file)?.answers,
            None => {
                // A run that goes on adds to its answers; another run replaces them.
                read(&file).ok().filter(|before| before.run == run).map_or_else(Vec::new, |one| one.answers)
            }
        };
        let made = self.made.entry(key.clone()).or_insert(answers.len());
        let turn = *made;
        *made += 1;
        if !patch.is_empty() {
            let name = format!("{key}-{}.patch", turn + 1);
            replace(&self.directory.join(&name), patch)?;
            answer.patch = Some(name);
        }
        // What an earlier attempt of this turn left does not count.
        answers.truncate(turn);
        answers.push(answer);
        let content = RecordingFile { schema: SCHEMA, run: run.to_owned(), request, tree, answers };
        let text = serde_json::to_string_pretty(&content)?;
        replace(&file, text + "\n").map_err(Explanation::from)
    }

    /// Returns the next answer to a call, or `None` where no such call was recorded.
    pub(super) fn next(&mut self, asked: &RecordedRequest) -> Result<Option<RecordedAnswer>, Explanation> {
        let keys = [&asked.key, &asked.exact];
        let Some(key) = keys.into_iter().find(|key| self.file(key).exists()) else { return Ok(None) };
        let answers = read(&self.file(key))?.answers;
        let made = self.made.entry(key.clone()).or_default();
        // Counted even where there is no answer, so that the next question is the next turn.
        let answer = answers.get(*made).cloned();
        *made += 1;
        let too_often =
            || Explanation::new(format!("this was recorded {} times, and is asked once more", answers.len()));
        answer.map(Some).ok_or_else(too_often)
    }

    /// Reads what an agent changed.
    pub(super) fn patch(&self, name: &str) -> Result<Vec<u8>, Explanation> {
        // A name from a file that others may have written is not a path.
        let name = Path::new(name).file_name().ok_or_else(|| Explanation::new("it has no name"))?;
        read::bytes(&self.directory.join(name), MAX_FILE).map_err(Explanation::from)
    }

    /// Compares a call with the nearest one that was recorded: why it has no answer, and the lines that differ.
    pub(super) fn difference(&self, asked: &RecordedRequest) -> (String, Vec<String>) {
        difference(&self.directory, asked)
    }
}

/// A call and everything that was answered to it, in turn.
#[derive(Debug, Serialize, Deserialize)]
struct RecordingFile {
    schema: u32,
    /// The run that was recorded; empty for one of an earlier version.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    run: String,
    request: Value,
    tree: String,
    answers: Vec<RecordedAnswer>,
}

/// One answer, as it is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RecordedAnswer {
    /// What an agent said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) output: Option<String>,
    /// What a judge answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) reply: Option<Value>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) error: Option<String>,
    /// Zero for a judge.
    pub(super) exit_code: i32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) stop: Option<Stop>,
    pub(super) usage: Usage,
    /// The file with what an agent changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) patch: Option<String>,
}

fn read(file: &Path) -> Result<RecordingFile, Explanation> {
    let text = read::text(file, MAX_FILE)
        .map_err(|unread| Explanation::new(format!("{}: {unread}", file.display())))?;
    let recorded: RecordingFile = serde_json::from_str(&text)
        .map_err(|error| Explanation::new(format!("{}: {error}", file.display())))?;
    if recorded.schema > SCHEMA {
        return Err(Explanation::new(format!(
            "{} was written by a later version of ll-loop",
            file.display()
        )));
    }
    Ok(recorded)
}

/// Compares a call with the nearest one that was recorded.
fn difference(directory: &Path, asked: &RecordedRequest) -> (String, Vec<String>) {
    let files = fs_err::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let paths = files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    let recorded: Vec<_> = paths.filter_map(|path| Some((path.clone(), read(&path).ok()?))).collect();
    let Some(found) = nearest(&asked.request, &recorded, |(_, file)| &file.request) else {
        return ("no recorded answer: nothing is recorded there".to_owned(), Vec::new());
    };
    let (path, file) = found.recorded;
    let name = file_name(path);
    let what = if found.lines.is_empty() { "the files in the scope differ" } else { "the request differs" };
    let mut lines = vec![format!("no recorded answer; the nearest one is {name}:")];
    lines.extend(found.lines);
    if file.schema <= EXACT {
        let old = "an earlier version of ll-loop recorded this, and knew a call by every character of its prompt; \
                   make the recording anew with `--record`";
        lines.push(old.to_owned());
    }
    if file.tree != asked.tree {
        lines.push("the files in the scope are not what they were".to_owned());
    }
    (format!("no recorded answer: {what} from {name}"), lines)
}
