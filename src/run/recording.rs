//! Recorded answers: what agents and models said and changed is kept, and given again where none may be asked.
//!
//! A call is known by what is asked, whoever is asked, and by the files that it could look at. What was not recorded
//! is not answered: a replay is a test, and a guess would make it pass.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};

use crate::base::text::{hex, one_line};
use crate::engine::request::{AskRequest, PromptRequest};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::{Observation, Stop, Stream, Text};
use crate::files::read::{self, MIB};
use crate::files::replace::replace;

use super::World;
use super::git::Git;
use super::tree::{Tree, Trees};

/// The largest file of a recording that is read, in bytes.
const MAX_FILE: u64 = 256 * MIB;

/// The version of the format.
const SCHEMA: u32 = 1;

/// The longest time for looking at the working tree, and for changing it.
const LIMIT: Duration = Duration::from_mins(2);

/// How many lines of a difference are shown.
const SHOWN: usize = 40;

/// Whether answers are kept or given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are kept.
    Record,
    /// They are given.
    Replay,
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

    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }
}

/// A call and everything that was answered to it, in turn.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    schema: u32,
    request: Value,
    tree: String,
    answers: Vec<Said>,
}

/// One answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Said {
    /// What an agent said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    output: Option<String>,
    /// What a judge answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    reply: Option<Value>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    error: Option<String>,
    exit_code: i32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stop: Option<Stop>,
    usage: Usage,
    /// The file with what an agent changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    patch: Option<String>,
}

/// A call before it is made.
pub(super) struct Call {
    request: Value,
    key: String,
    digest: String,
    /// The working tree before it, where git can look at it.
    before: Option<(Git, Trees, Tree)>,
}

/// Looks at what a prompt asks and at what.
pub(super) async fn of_prompt(request: &PromptRequest, world: &World) -> Result<Call, String> {
    let mut asked = json!({
        "kind": "prompt",
        "prompt": request.text,
        "agent": request.agent,
        "tools": request.tools,
        "model": request.model,
    });
    // What is not asked for is not there, so that recordings from before there was such a thing stay good.
    let more = [
        ("fallback_model", request.fallback_model.clone().map(Value::String)),
        ("answer", request.answer.clone()),
    ];
    for (key, value) in more.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        asked[key] = value;
    }
    Call::new(asked, world).await
}

/// Looks at what a question asks and at what.
pub(super) async fn of_question(request: &AskRequest, world: &World) -> Result<Call, String> {
    let question = &request.question;
    let asked = json!({
        "kind": "judge",
        "prompt": question.prompt,
        "schema": question.schema,
        "model": question.model,
    });
    Call::new(asked, world).await
}

impl Call {
    /// Fails where there is a repository and git cannot look at the working tree: half a recording is none.
    async fn new(mut request: Value, world: &World) -> Result<Self, String> {
        world.redactor.json(&mut request);
        let before = match look(world).await {
            Ok(seen) => Some(seen),
            Err(_) if !is_in_repository(world) => None,
            Err(why) => return Err(format!("the working tree cannot be looked at: {why}")),
        };
        let digest = before.as_ref().map_or_else(|| "none".to_owned(), |(_, _, tree)| tree.digest.clone());
        let key = key(&request, &digest);
        Ok(Self { request, key, digest, before })
    }
}

/// Returns the name of a call.
fn key(request: &Value, tree: &str) -> String {
    let whole = json!([request, tree]).to_string();
    hex(&Sha256::digest(whole.as_bytes()))[..24].to_owned()
}

/// Tells whether the run works in a repository, whether or not git can use it.
fn is_in_repository(world: &World) -> bool {
    let root = fs_err::canonicalize(&world.root).unwrap_or_else(|_| world.root.clone());
    world.env.contains_key("GIT_DIR") || root.ancestors().any(|directory| directory.join(".git").exists())
}

/// Looks at the working tree of a run.
async fn look(world: &World) -> Result<(Git, Trees, Tree), String> {
    let mut git = Git::new(world, LIMIT);
    let trees = Trees::open(&mut git, &world.root).await?;
    let tree = again(&mut git, &trees, world).await?;
    Ok((git, trees, tree))
}

async fn again(git: &mut Git, trees: &Trees, world: &World) -> Result<Tree, String> {
    let directory = world.agents.recording.as_ref().map(|recording| recording.directory.clone());
    trees.look(git, &world.root, &world.surroundings.scope, &directory.unwrap_or_default()).await
}

/// Keeps what an agent did. Returns why it could not, if it could not.
pub(super) async fn keep_prompt(
    call: Call,
    seen: &Observation,
    usage: &Usage,
    world: &mut World,
) -> Result<(), String> {
    if seen.stop.is_some_and(|stop| !stop.is_own_timeout()) {
        // The run was stopped around it; the next one will ask again.
        return Ok(());
    }
    let patch = match call.before {
        Some((mut git, trees, before)) => {
            git.clock = super::clock::Clock::start();
            let after = again(&mut git, &trees, world).await?;
            trees.patch(&mut git, &before, &after).await?
        }
        None => Vec::new(),
    };
    let said = Said {
        output: Some(world.redactor.text(seen.stdout.as_str()).into_owned()),
        reply: None,
        error: seen.failure.clone().map(|why| world.redactor.text(&why).into_owned()),
        exit_code: seen.exit_code,
        stop: seen.stop,
        usage: usage.clone(),
        patch: None,
    };
    keep((&call.key, call.request, call.digest), said, &patch, world)
}

/// Keeps what a judge answered. Returns why it could not, if it could not.
pub(super) fn keep_answer(call: Call, answer: &ModelAnswer, world: &mut World) -> Result<(), String> {
    if answer.stop.is_some_and(|stop| !stop.is_own_timeout()) {
        return Ok(());
    }
    let mut reply = answer.reply.as_ref().ok().cloned();
    if let Some(reply) = &mut reply {
        world.redactor.json(reply);
    }
    let error = answer.reply.as_ref().err().map(|why| world.redactor.text(why).into_owned());
    let (stop, usage) = (answer.stop, answer.usage.clone());
    let said = Said { output: None, reply, error, exit_code: 0, stop, usage, patch: None };
    keep((&call.key, call.request, call.digest), said, &[], world)
}

fn keep(
    (key, request, tree): (&str, Value, String),
    mut said: Said,
    patch: &[u8],
    world: &mut World,
) -> Result<(), String> {
    let Some(recording) = &mut world.agents.recording else { return Ok(()) };
    let made = recording.made.entry(key.to_owned()).or_default();
    let turn = *made;
    *made += 1;
    let file = recording.directory.join(format!("{key}.json"));
    let mut answers = if turn == 0 { Vec::new() } else { read(&file)?.answers };
    if !patch.is_empty() {
        let text = String::from_utf8_lossy(patch);
        if world.redactor.text(&text) != text {
            return Err("what the agent changed holds a secret".to_owned());
        }
        let name = format!("{key}-{}.patch", turn + 1);
        replace(&recording.directory.join(&name), patch).map_err(|error| error.to_string())?;
        said.patch = Some(name);
    }
    answers.truncate(turn);
    answers.push(said);
    let recorded = Recorded { schema: SCHEMA, request, tree, answers };
    let text = serde_json::to_string_pretty(&recorded).map_err(|error| error.to_string())?;
    replace(&file, text + "\n").map_err(|error| error.to_string())
}

fn read(file: &Path) -> Result<Recorded, String> {
    let text = read::text(file, MAX_FILE).map_err(|unread| format!("{}: {unread}", file.display()))?;
    let recorded: Recorded =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    if recorded.schema > SCHEMA {
        return Err(format!("{} was written by a later version of ll-loop", file.display()));
    }
    Ok(recorded)
}

/// Gives what an agent did then: what it said, what it cost, and what it changed.
pub(super) async fn replay_prompt(call: Call, world: &mut World) -> (Observation, Usage) {
    let said = match answer(&call, world) {
        Ok(said) => said,
        Err(why) => return (missed(why), Usage::default()),
    };
    if let Some(name) = &said.patch
        && let Err(why) = change(name, call, world).await
    {
        return (missed(format!("what the agent changed cannot be changed again: {why}")), Usage::default());
    }
    let output = said.output.unwrap_or_default();
    let sinks = std::cell::RefCell::new(&mut world.sinks);
    for line in output.lines() {
        super::action::show(&sinks, Stream::Stdout, line);
    }
    let seen = Observation {
        stdout: Text::whole(output),
        failure: said.error,
        stop: said.stop,
        ..Observation::exited(said.exit_code, "")
    };
    (seen, said.usage)
}

/// Gives what a judge answered then.
pub(super) fn replay_answer(call: &Call, world: &mut World) -> ModelAnswer {
    match answer(call, world) {
        Ok(said) => {
            let why = || said.error.clone().unwrap_or_else(|| "the recording has no answer".to_owned());
            ModelAnswer { reply: said.reply.clone().ok_or_else(why), stop: said.stop, usage: said.usage }
        }
        Err(why) => ModelAnswer { reply: Err(why), stop: Some(Stop::Unavailable), usage: Usage::default() },
    }
}

/// The observation of a call that could not be looked up.
pub(super) fn missed(why: String) -> Observation {
    Observation { stop: Some(Stop::Unavailable), ..Observation::not_started(why) }
}

async fn change(name: &str, call: Call, world: &World) -> Result<(), String> {
    let Some(recording) = &world.agents.recording else { return Ok(()) };
    // A name from a file that others may have written is no path.
    let name = Path::new(name).file_name().ok_or("it has no name")?;
    let patch = read::bytes(&recording.directory.join(name), MAX_FILE).map_err(|error| error.to_string())?;
    let (mut git, trees, _) = call.before.ok_or("this is no git repository")?;
    git.clock = super::clock::Clock::start();
    trees.apply(&mut git, &patch).await
}

/// Finds the answer to a call, or says why there is none, and shows how it differs from the nearest one that there is.
fn answer(call: &Call, world: &mut World) -> Result<Said, String> {
    let Some(recording) = &mut world.agents.recording else { return Err("nothing is recorded".to_owned()) };
    let file = recording.file(&call.key);
    if file.exists() {
        let recorded = read(&file)?;
        let made = recording.made.entry(call.key.clone()).or_default();
        let said = recorded.answers.get(*made).cloned();
        *made += 1;
        return said.ok_or_else(|| {
            format!("this was recorded {} times, and is asked once more", recorded.answers.len())
        });
    }
    let (why, lines) = difference(&recording.directory, call);
    let sinks = std::cell::RefCell::new(&mut world.sinks);
    for line in lines {
        super::action::show(&sinks, Stream::Stderr, &line);
    }
    Err(why)
}

/// Compares a call with the nearest one that was recorded.
fn difference(directory: &Path, call: &Call) -> (String, Vec<String>) {
    let files = fs_err::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let recorded =
        files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    let recorded = recorded.filter_map(|path| Some((path.clone(), read(&path).ok()?)));
    let asked = pretty(&call.request);
    let likeness = |other: &Recorded| TextDiff::from_words(&pretty(&other.request), &asked).ratio();
    let nearest = recorded.max_by(|(_, one), (_, other)| likeness(one).total_cmp(&likeness(other)));
    let Some((path, nearest)) = nearest else {
        return ("no recorded answer: nothing is recorded there".to_owned(), Vec::new());
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let then = pretty(&nearest.request);
    let mut lines = vec![format!("no recorded answer; the nearest one is {name}:")];
    let diff = TextDiff::from_lines(&then, &asked);
    let changes = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => "- recorded",
            ChangeTag::Insert => "+ asked   ",
        };
        Some(format!("{sign} {}", one_line(change.value(), 300)))
    });
    lines.extend(changes.take(SHOWN));
    if nearest.tree != call.digest {
        lines.push("the files in the scope are not what they were".to_owned());
    }
    let what = if then == asked { "the files in the scope differ" } else { "the request differs" };
    (format!("no recorded answer: {what} from {name}"), lines)
}

/// Writes a request with the lines of its texts as lines.
fn pretty(request: &Value) -> String {
    let mut out = String::new();
    for (key, value) in request.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(text) => {
                out.extend(text.lines().flat_map(|line| [key.as_str(), ": ", line, "\n"]));
            }
            None => out.extend([key.as_str(), ": ", &value.to_string(), "\n"]),
        }
    }
    out
}
