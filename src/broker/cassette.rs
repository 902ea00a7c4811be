//! Keeps what goes over the wire, and gives it again where no service is asked: a file for each request, with every
//! answer to it in turn.
//!
//! It is what was said, and nothing of how: no header of a request is kept, and secrets are masked.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cassette_faults::{NotKept, WireMiss};
use super::conversation::{WireRequest, Wording};
use crate::base::explanation::Explanation;
use crate::base::nearest::nearest;
use crate::base::redact::Redactor;
use crate::files::file_name::file_name;
use crate::files::read::{self, MIB};
use crate::files::replace::replace;

/// The version of the format.
const SCHEMA: u32 = 1;

/// The largest file that is read, in bytes.
// All answers to a request are in one file, and one that streams can have megabytes.
const MAX_FILE: u64 = 256 * MIB;

/// How many files are looked at for the nearest request. Who has written a recording may not be a friend.
const MOST_COMPARED: usize = 500;

/// The longest of them, in bytes.
const LONGEST_COMPARED: u64 = MIB;

/// What goes over the wire in a run, kept or given.
#[derive(Debug)]
pub struct WireCassette {
    directory: PathBuf,
    use_of_it: CassetteUse,
    redactor: Redactor,
    wording: Box<dyn Wording>,
    /// How often each request was made in this run.
    made: Mutex<HashMap<String, usize>>,
}

/// What a cassette is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CassetteUse {
    /// It keeps what goes over the wire in the run of this id.
    Record(String),
    /// It answers in the place of the service.
    Replay,
}

/// A request and everything that was answered to it, in turn.
#[derive(Debug, Serialize, Deserialize)]
struct CassetteFile {
    schema: u32,
    /// The run that was recorded.
    run: String,
    request: Value,
    answers: Vec<WireAnswer>,
}

/// An answer, as it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireAnswer {
    /// The HTTP status.
    pub status: u16,
    /// What its body is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_type: Option<String>,
    /// The body: a document, or the events of a stream.
    pub body: String,
}

impl WireCassette {
    /// Makes one of a directory, which is made with the first answer.
    pub fn new(
        directory: PathBuf,
        use_of_it: CassetteUse,
        redactor: Redactor,
        wording: Box<dyn Wording>,
    ) -> Arc<Self> {
        Arc::new(Self { directory, use_of_it, redactor, wording, made: Mutex::default() })
    }

    /// Tells whether it answers in the place of the service.
    pub fn replays(&self) -> bool {
        self.use_of_it == CassetteUse::Replay
    }

    /// Returns what makes texts independent of the run.
    pub(super) fn wording(&self) -> &dyn Wording {
        self.wording.as_ref()
    }

    fn made(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }

    fn masked(&self, request: &WireRequest) -> WireRequest {
        request.clone().edited(|value| self.redactor.json(value))
    }

    /// Keeps the next answer to a request. An earlier run's answers are replaced; those of an earlier part of the same run
    /// come before.
    ///
    /// # Errors
    /// It holds a secret that cannot be masked, or cannot be written.
    pub(super) fn keep(&self, request: &WireRequest, answer: WireAnswer) -> Result<(), NotKept> {
        let CassetteUse::Record(run) = &self.use_of_it else { return Ok(()) };
        let body = self.redactor.text(&answer.body).into_owned();
        // A stream cuts a secret into pieces, none of which is masked by itself.
        if self.redactor.finds(pieces(&body).as_bytes()) {
            return Err(NotKept::Secret);
        }
        let request = self.masked(request);
        let key = request.key();
        let file = self.file(&key);
        // Two answers to the same request may end at the same time.
        let mut made = self.made();
        let mut answers = match (read(&file, MAX_FILE), made.contains_key(&key)) {
            (Ok(before), was_made) if was_made || before.run == *run => before.answers,
            // What an earlier run left may be damaged and is replaced; what this one wrote must not be lost in silence.
            (Err(why), true) => return Err(NotKept::File(why)),
            (Ok(_) | Err(_), _) => Vec::new(),
        };
        answers.push(WireAnswer { body, ..answer });
        made.insert(key, answers.len());
        let content =
            CassetteFile { schema: SCHEMA, run: run.clone(), request: request.value().clone(), answers };
        let written = fs_err::create_dir_all(&self.directory).and_then(|()| {
            let text = serde_json::to_string_pretty(&content)?;
            replace(&file, text + "\n")
        });
        written.map_err(|error| NotKept::File(error.into()))
    }

    /// Returns the next answer to a request.
    ///
    /// # Errors
    /// It was not recorded, or not so often.
    pub(super) fn next(&self, request: &WireRequest) -> Result<WireAnswer, WireMiss> {
        let request = self.masked(request);
        let key = request.key();
        let file = self.file(&key);
        if !file.exists() {
            return Err(self.miss(&request));
        }
        let said = |why| WireMiss { why, lines: Vec::new() };
        let answers = read(&file, MAX_FILE).map_err(|why| said(why.into()))?.answers;
        let mut made = self.made();
        let turn = made.entry(key).or_default();
        *turn += 1;
        let too_often = || {
            let name = file_name(&file);
            said(format!("{name} was answered {} times, and is asked once more", answers.len()))
        };
        answers.get(*turn - 1).cloned().ok_or_else(too_often)
    }

    /// Compares a request with the nearest one that was recorded.
    fn miss(&self, request: &WireRequest) -> WireMiss {
        let files = fs_err::read_dir(&self.directory).into_iter().flatten().filter_map(Result::ok);
        // Only for a hint, so the first ones that are found will do.
        let paths = files.map(|entry| entry.path()).take(MOST_COMPARED);
        let recorded: Vec<_> =
            paths.filter_map(|path| Some((file_name(&path), read(&path, LONGEST_COMPARED).ok()?))).collect();
        let Some(found) = nearest(request.value(), &recorded, |(_, file)| &file.request) else {
            let why = "no recorded answer: nothing of the wire is recorded there".to_owned();
            return WireMiss { why, lines: Vec::new() };
        };
        let (name, _) = found.recorded;
        let mut lines = vec![format!("no recorded answer at the wire; the nearest request is {name}:")];
        lines.extend(found.lines);
        WireMiss { why: format!("no recorded answer: the request differs from wire/{name}"), lines }
    }
}

fn read(file: &Path, most: u64) -> Result<CassetteFile, Explanation> {
    let wrong = |why: &dyn Display| Explanation::new(format!("{}: {why}", file.display()));
    let text = read::text(file, most).map_err(|unread| wrong(&unread))?;
    let read: CassetteFile = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    if read.schema > SCHEMA {
        return Err(wrong(&"a later version of ll-loop wrote it"));
    }
    Ok(read)
}

/// Returns the texts of a stream one behind the other, as whoever hears it puts them together.
fn pieces(body: &str) -> String {
    fn gather(value: &Value, all: &mut String) {
        match value {
            Value::String(text) => all.push_str(text),
            Value::Array(items) => items.iter().for_each(|item| gather(item, all)),
            Value::Object(map) => {
                const WORDS: [&str; 6] =
                    ["text", "partial_json", "delta", "arguments", "content", "thinking"];
                for (key, value) in map {
                    if !value.is_string() || WORDS.contains(&key.as_str()) {
                        gather(value, all);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut all = String::new();
    for line in body.lines() {
        if let Some(event) = line.strip_prefix("data:")
            && let Ok(event) = serde_json::from_str(event)
        {
            gather(&event, &mut all);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::broker::conversation::testing::AsItIs;
    use crate::broker::model_service::ServiceApi;

    fn cassette(directory: &TempDir, use_of_it: CassetteUse) -> Arc<WireCassette> {
        let redactor = Redactor::new(["sk-a-secret-of-the-tests"]);
        WireCassette::new(directory.path().join("wire"), use_of_it, redactor, Box::new(AsItIs))
    }

    fn request(text: &str) -> WireRequest {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string();
        WireRequest::read(ServiceApi::Anthropic, &Method::POST, "/v1/messages", body.as_bytes(), &AsItIs)
    }

    fn answer(body: &str) -> WireAnswer {
        WireAnswer { status: 200, content_type: None, body: body.to_owned() }
    }

    fn record(run: &str) -> CassetteUse {
        CassetteUse::Record(run.to_owned())
    }

    #[test]
    fn answers_come_again_in_turn_and_no_more_often() {
        let directory = TempDir::new().unwrap();
        let kept = cassette(&directory, record("one"));
        kept.keep(&request("hi"), answer("first")).unwrap();
        // An earlier part of the same run.
        cassette(&directory, record("one")).keep(&request("hi"), answer("second")).unwrap();
        let given = cassette(&directory, CassetteUse::Replay);
        assert_eq!(given.next(&request("hi")).unwrap().body, "first");
        assert_eq!(given.next(&request("hi")).unwrap().body, "second");
        assert!(given.next(&request("hi")).unwrap_err().why.contains("was answered 2 times"));
        let miss = given.next(&request("ho")).unwrap_err();
        assert_eq!(miss.lines[1..], ["- recorded said: user: hi", "+ asked    said: user: ho"]);
        // Another run begins anew.
        cassette(&directory, record("two")).keep(&request("hi"), answer("third")).unwrap();
        let given = cassette(&directory, CassetteUse::Replay);
        assert_eq!(given.next(&request("hi")).unwrap().body, "third");
        assert!(given.next(&request("hi")).is_err());
    }

    #[test]
    fn secrets_are_masked_or_nothing_is_kept() {
        let directory = TempDir::new().unwrap();
        let kept = cassette(&directory, record("one"));
        let secret = "sk-a-secret-of-the-tests";
        kept.keep(&request(&format!("it is {secret}")), answer(&format!("so it is {secret}"))).unwrap();
        let given = cassette(&directory, CassetteUse::Replay);
        assert_eq!(given.next(&request("it is ***")).unwrap().body, "so it is ***");
        let delta = |text: &str| format!("data: {}\n\n", json!({"type": "x", "delta": {"text": text}}));
        let stream = delta("it is sk-a-sec") + &delta("ret-of-the-tests");
        assert_eq!(kept.keep(&request("hm"), answer(&stream)), Err(NotKept::Secret));
        assert!(given.next(&request("hm")).is_err());
    }
}
