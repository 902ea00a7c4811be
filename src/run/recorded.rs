//! Calls of agents and models that are recorded, or answered from a recording, with the working tree that they see.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::normal::Normal;
use super::recording::{RecordedAnswer, RecordedRequest, Recording};
use super::ticking::show;
use super::tree_digest::{WorkingTree, WorkingTrees};
use super::world::World;
use crate::base::explanation::Explanation;
use crate::broker::{CassetteUse, WireCassette};
use crate::engine::request::{AskRequest, PromptRequest};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::{Observation, Stop, Stream, Text};
use crate::git::in_run::GitCalls;
use crate::process::clock::Clock;

/// The longest time for looking at the working tree, and for changing it.
const LIMIT: Duration = Duration::from_mins(2);

/// A call before it is made.
pub(super) struct RecordedCall {
    asked: RecordedRequest,
    /// The working tree before it, where git can look at it.
    before: Option<(GitCalls, WorkingTrees, WorkingTree)>,
}

/// Looks at what a prompt asks and at what.
pub(super) async fn of_prompt(request: &PromptRequest, world: &World) -> Result<RecordedCall, Explanation> {
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
        ("sandbox", request.sandbox.map(|sandbox| sandbox.word().into())),
    ];
    for (key, value) in more.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        asked[key] = value;
    }
    let known_by = Normal::of(world).prompt(&request.composed);
    RecordedCall::new(asked, known_by, world).await
}

/// Looks at what a question asks and at what.
pub(super) async fn of_question(request: &AskRequest, world: &World) -> Result<RecordedCall, Explanation> {
    let question = &request.question;
    let asked = json!({
        "kind": "judge",
        "prompt": question.prompt,
        "schema": question.schema,
        "model": question.model,
    });
    let known_by = Normal::of(world).question(&question.prompt);
    RecordedCall::new(asked, known_by, world).await
}

impl RecordedCall {
    /// Fails where there is a repository and git cannot look at the working tree: half a recording would be replayed as a whole one.
    async fn new(mut request: Value, known_by: String, world: &World) -> Result<Self, Explanation> {
        // A recording is committed, and read by others.
        world.redactor.json(&mut request);
        let known_by = world.redactor.text(&known_by).into_owned();
        let before = match look(world).await {
            Ok(seen) => Some(seen),
            Err(_) if !is_in_repository(world) => None,
            Err(why) => return Err(Explanation::new(format!("the working tree cannot be looked at: {why}"))),
        };
        let digest = before.as_ref().map_or_else(|| "none".to_owned(), |(_, _, tree)| tree.digest.clone());
        Ok(Self { asked: RecordedRequest::new(request, known_by, digest), before })
    }
}

/// Tells whether the next answer to a call is recorded.
pub(super) fn is_kept(call: &RecordedCall, world: &World) -> bool {
    world.agents.recording.as_ref().is_some_and(|recording| recording.has(&call.asked))
}

/// Returns what keeps the requests of agents at the wire, or answers them; none where nothing of the kind is wanted.
pub(super) fn cassette(world: &World) -> Option<Arc<WireCassette>> {
    let recording = world.agents.recording.as_ref()?;
    let use_of_it = if recording.replays() {
        CassetteUse::Replay
    } else {
        CassetteUse::Record(world.files.instance().to_owned())
    };
    let wording = Box::new(Normal::of(world));
    Some(WireCassette::new(recording.wire()?, use_of_it, world.redactor.clone(), wording))
}

/// Tells whether the run works in a repository, whether or not git can use it.
pub(super) fn is_in_repository(world: &World) -> bool {
    let root = fs_err::canonicalize(&world.root).unwrap_or_else(|_| world.root.clone());
    world.env.contains_key("GIT_DIR") || root.ancestors().any(|directory| directory.join(".git").exists())
}

/// Looks at the working tree of a run.
async fn look(world: &World) -> Result<(GitCalls, WorkingTrees, WorkingTree), Explanation> {
    let mut git = GitCalls::new(world.own_env.clone(), world.cancel.clone(), LIMIT);
    let trees = WorkingTrees::open(&mut git, &world.root).await?;
    let tree = again(&mut git, &trees, world).await?;
    Ok((git, trees, tree))
}

async fn again(git: &mut GitCalls, trees: &WorkingTrees, world: &World) -> Result<WorkingTree, Explanation> {
    let directory = world.agents.recording.as_ref().map(Recording::directory);
    Ok(trees.look(git, &world.root, &world.surroundings.scope, directory).await?)
}

/// Keeps what an agent did. Returns why it could not, if it could not.
pub(super) async fn keep_prompt(
    call: RecordedCall,
    seen: &Observation,
    usage: &Usage,
    world: &mut World,
) -> Result<(), Explanation> {
    // What is not an answer must not be given as one later.
    if seen.stop.is_some_and(|stop| !stop.is_own_timeout()) {
        // The run was stopped around it; the next one will ask again.
        return Ok(());
    }
    let patch = match call.before {
        Some((mut git, trees, before)) => {
            // The call may have taken longer than the time for looks.
            git.clock = Clock::start();
            let after = again(&mut git, &trees, world).await?;
            trees.patch(&mut git, &before, &after).await?
        }
        None => Vec::new(),
    };
    let answer = RecordedAnswer {
        output: Some(world.redactor.text(seen.stdout.as_str()).into_owned()),
        reply: None,
        error: seen.failure.clone().map(|why| world.redactor.text(&why).into_owned()),
        exit_code: seen.exit_code,
        stop: seen.stop,
        usage: usage.clone(),
        patch: None,
    };
    keep(call.asked, answer, &patch, world)
}

/// Keeps what a judge answered. Returns why it could not, if it could not.
pub(super) fn keep_answer(
    call: RecordedCall,
    answer: &ModelAnswer,
    world: &mut World,
) -> Result<(), Explanation> {
    if answer.stop.is_some_and(|stop| !stop.is_own_timeout()) {
        return Ok(());
    }
    let mut reply = answer.reply.as_ref().ok().cloned();
    if let Some(reply) = &mut reply {
        world.redactor.json(reply);
    }
    let error = answer.reply.as_ref().err().map(|why| world.redactor.text(why.as_str()).into_owned());
    let (stop, usage) = (answer.stop, answer.usage.clone());
    let answer = RecordedAnswer { output: None, reply, error, exit_code: 0, stop, usage, patch: None };
    keep(call.asked, answer, &[], world)
}

fn keep(
    asked: RecordedRequest,
    answer: RecordedAnswer,
    patch: &[u8],
    world: &mut World,
) -> Result<(), Explanation> {
    let Some(recording) = &mut world.agents.recording else { return Ok(()) };
    let text = String::from_utf8_lossy(patch);
    // A patch cannot be redacted: with another text it would not apply.
    if world.redactor.text(&text) != text {
        return Err(Explanation::new("what the agent changed holds a secret"));
    }
    recording.add(asked, answer, patch, world.files.instance())
}

/// Gives what an agent did then: what it said, what it cost, and what it changed.
pub(super) async fn replay_prompt(call: RecordedCall, world: &mut World) -> (Observation, Usage) {
    let recorded = match answer(&call, world) {
        Ok(recorded) => recorded,
        Err(why) => return (missed(why.into()), Usage::default()),
    };
    // First the change, then the words: a replay that cannot change the tree must not look like an
    // answer.
    if let Some(name) = &recorded.patch
        && let Err(why) = change(name, call, world).await
    {
        return (missed(format!("what the agent changed cannot be changed again: {why}")), Usage::default());
    }
    let output = recorded.output.unwrap_or_default();
    let sinks = RefCell::new(&mut world.sinks);
    for line in output.lines() {
        show(&sinks, Stream::Stdout, line);
    }
    let seen = Observation {
        stdout: Text::whole(output),
        failure: recorded.error,
        stop: recorded.stop,
        ..Observation::exited(recorded.exit_code, "")
    };
    (seen, recorded.usage)
}

/// Gives what a judge answered then.
pub(super) fn replay_answer(call: &RecordedCall, world: &mut World) -> ModelAnswer {
    match answer(call, world) {
        Ok(recorded) => {
            let none = || "the recording has no answer".to_owned();
            let why = || Explanation::new(recorded.error.clone().unwrap_or_else(none));
            ModelAnswer {
                reply: recorded.reply.clone().ok_or_else(why),
                stop: recorded.stop,
                usage: recorded.usage,
            }
        }
        Err(why) => ModelAnswer { reply: Err(why), stop: Some(Stop::Unavailable), usage: Usage::default() },
    }
}

/// The observation of a call that could not be looked up.
pub(super) fn missed(why: String) -> Observation {
    Observation { stop: Some(Stop::Unavailable), ..Observation::not_started(why) }
}

async fn change(name: &str, call: RecordedCall, world: &World) -> Result<(), Explanation> {
    let Some(recording) = &world.agents.recording else { return Ok(()) };
    let patch = recording.patch(name)?;
    let (mut git, trees, _) = call.before.ok_or_else(|| Explanation::new("this is not a git repository"))?;
    git.clock = Clock::start();
    Ok(trees.apply(&mut git, &patch).await?)
}

/// Finds the answer to a call, or says why it has none, and shows how it differs from the nearest recorded one.
fn answer(call: &RecordedCall, world: &mut World) -> Result<RecordedAnswer, Explanation> {
    let Some(recording) = &mut world.agents.recording else {
        return Err(Explanation::new("nothing is recorded"));
    };
    if let Some(recorded) = recording.next(&call.asked)? {
        return Ok(recorded);
    }
    let (why, lines) = recording.difference(&call.asked);
    let sinks = RefCell::new(&mut world.sinks);
    for line in lines {
        show(&sinks, Stream::Stderr, &line);
    }
    Err(Explanation::new(why))
}
