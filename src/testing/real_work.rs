//! Runs what is mocked, in a worktree that is removed afterwards: to see whether mocks still fit, and to run one state truly.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::asked::{AskedPlace, AskedWork, Gap, Script, SubLoopAnswer, WorkAnswer};
use super::play::{MOST_TURNS, Play, Played, play};
use super::prepare::ReadyCase;
use super::ready_test::ReadyTest;
use super::real_report::ComparedMock;
use super::scripted::MockScript;
use super::subject::LoopUnderTest;
use super::virtual_tree::TreeEffects;
use super::witness::says;
use crate::base::explanation::Explanation;
use crate::engine::request::{ActionRequest, AskRequest, SubLoopRequest};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::{Observation, Stop, Stream, Text};
use crate::files::transient;
use crate::git::call::Call;
use crate::machine::Target;
use crate::process::guard::Guard;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::session::context::Session;
use crate::session::error::Error;
use crate::session::git::at;
use crate::session::interrupts::Interrupts;

/// How long a command may take.
const LIMIT: Duration = Duration::from_mins(10);

/// How much of an output is kept.
const KEPT: usize = 1 << 20;

/// A worktree of the commit that is checked out, which goes with this value.
pub(crate) struct Sandbox<'s> {
    session: &'s Session<'s>,
    root: PathBuf,
    tree: PathBuf,
    interrupts: Interrupts,
    _place: TempDir,
}

impl<'s> Sandbox<'s> {
    /// Makes one.
    ///
    /// # Errors
    /// This is not a repository with a commit.
    pub(crate) fn make(session: &'s Session<'s>) -> Result<Self, Error> {
        let failed = |error: &std::io::Error| Error::failed("cannot make a temporary directory", error);
        let place = transient::directory("").map_err(|error| failed(&error))?;
        let tree = place.path().join("tree");
        let add = Call::new("worktree").with(&["add", "--quiet", "--detach"]).path(tree.to_string_lossy());
        at(&session.cwd, session).line(&add).map_err(|why| {
            Error::refused(format!("cannot make a temporary worktree: {why}"))
                .with_hint("commands are run there; it needs a git repository with a commit")
        })?;
        let interrupts = Interrupts::listen(&session.stop_by)?;
        Ok(Self { session, root: session.cwd.clone(), tree, interrupts, _place: place })
    }

    fn run(&self, request: &ActionRequest) -> Observation {
        let mut argv = request.shell.clone();
        argv.push(request.text.clone());
        let mut env: BTreeMap<String, String> = self.session.env.for_actions(false);
        env.extend(request.setting.env.iter().cloned());
        let scratch = self.tree.with_file_name("run");
        let _made = fs_err::create_dir_all(&scratch);
        env.insert("LL_RUN_DIR".to_owned(), scratch.to_string_lossy().into_owned());
        let cwd = request.setting.cwd.as_ref().map_or_else(|| self.tree.clone(), |cwd| self.tree.join(cwd));
        let program = Program {
            argv,
            env: env.into_iter().collect(),
            cwd: Some(cwd),
            stdin: None,
            guard: Guard::default(),
        };
        let end = request.setting.end.unwrap_or((LIMIT, Stop::Timeout));
        let limits = ProcessLimits { end: Some(end), ..ProcessLimits::default() };
        let mut streams = [Vec::new(), Vec::new()];
        let mut hear = |stream: Stream, bytes: &[u8]| {
            let kept: &mut Vec<u8> = match stream {
                Stream::Stdout => &mut streams[0],
                Stream::Stderr => &mut streams[1],
            };
            kept.extend(bytes.iter().take(KEPT.saturating_sub(kept.len())));
            Heard::More
        };
        let mut cancel = self.interrupts.cancel();
        let seen = self.interrupts.block_on(spawn::run(&program, limits, &mut cancel, &mut hear));
        let [stdout, stderr] = streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Observation { stdout: Text::whole(stdout), stderr: Text::whole(stderr), ..seen }
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        let gone = Call::new("worktree").with(&["remove", "--force"]).path(self.tree.to_string_lossy());
        // What cannot be removed goes with the temporary directory, and git forgets it then.
        let _best_effort = at(&self.root, self.session).line(&gone);
        let _pruned = at(&self.root, self.session).line(&Call::new("worktree").with(&["prune"]));
    }
}

/// Which commands are run truly, and what for.
enum Meant<'m> {
    /// Those of this state, in place of its mocks.
    State(&'m str),
    /// Each once, beside its mock.
    Compared(&'m mut Vec<ComparedMock>, &'m mut BTreeSet<(String, String)>),
}

/// Runs some commands, and answers everything else from mocks.
struct RealScript<'r, 's> {
    mocks: MockScript<'r>,
    sandbox: &'r Sandbox<'s>,
    meant: Meant<'r>,
    case: &'r str,
}

impl Script for RealScript<'_, '_> {
    fn work(&mut self, place: AskedPlace<'_>, work: AskedWork<'_>) -> Result<WorkAnswer, Gap> {
        let AskedWork::Shell(request) = work else { return self.mocks.work(place, work) };
        match &mut self.meant {
            Meant::State(state) if place.key() == *state => {
                let seen = self.sandbox.run(request);
                Ok(WorkAnswer {
                    takes: seen.duration,
                    seen,
                    usage: Usage::default(),
                    effects: TreeEffects::default(),
                    is_late: false,
                    interruption: None,
                })
            }
            Meant::State(_) => self.mocks.work(place, work),
            Meant::Compared(all, seen) => {
                let answer = self.mocks.work(place, work)?;
                let is_new = seen.insert((place.key(), request.text.clone()));
                if is_new && !place.in_closing_pass && answer.interruption.is_none() {
                    let real = self.sandbox.run(request);
                    let from = self.mocks.origin(&place);
                    all.push(compared(self.case, place, request, (&answer.seen, &real), from));
                }
                Ok(answer)
            }
        }
    }

    fn judge(&mut self, place: AskedPlace<'_>, request: &AskRequest) -> Result<(ModelAnswer, Duration), Gap> {
        self.mocks.judge(place, request)
    }

    fn sub_loop(&mut self, place: AskedPlace<'_>, request: &SubLoopRequest) -> Result<SubLoopAnswer, Gap> {
        self.mocks.sub_loop(place, request)
    }

    fn resumes(&mut self, state: &str) -> bool {
        self.mocks.resumes(state)
    }
}

fn compared(
    case: &str,
    place: AskedPlace<'_>,
    request: &ActionRequest,
    (mock, real): (&Observation, &Observation),
    from: Option<String>,
) -> ComparedMock {
    let verdict = |seen: &Observation| {
        let Some(Target::Step(id)) = place.machine.find(place.state) else { return None };
        let step = place.machine.step(id);
        says(step.evaluate.as_ref()?, step, seen).map(|verdict| verdict.to_string())
    };
    ComparedMock {
        case: case.to_owned(),
        state: place.key(),
        text: request.text.clone(),
        exit: (mock.exit_code, real.exit_code),
        verdict: (verdict(mock), verdict(real)),
        shape: (shape(mock.stdout.as_str()), shape(real.stdout.as_str())),
        from,
    }
}

/// Returns what kind of text an output is.
fn shape(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => {
            let keys: Vec<&str> = map.keys().map(String::as_str).collect();
            format!("JSON with {}", keys.join(", "))
        }
        Ok(Value::Array(_)) => "a list in JSON".to_owned(),
        Ok(Value::Number(_)) => "a number".to_owned(),
        Ok(Value::String(_) | Value::Bool(_) | Value::Null) | Err(_) => "text".to_owned(),
    }
}

/// Plays a case with this state run truly.
pub(crate) fn real(
    test: &ReadyTest,
    state: &str,
    subject: &mut LoopUnderTest,
    sandbox: &Sandbox<'_>,
) -> Result<Played, Explanation> {
    played(test, subject, sandbox, Meant::State(state))
}

/// Runs the commands of a case once each, and compares what they come to with its mocks.
pub(crate) fn compare(
    test: &ReadyTest,
    subject: &mut LoopUnderTest,
    sandbox: &Sandbox<'_>,
    all: &mut Vec<ComparedMock>,
    seen: &mut BTreeSet<(String, String)>,
) -> Result<(), Explanation> {
    played(test, subject, sandbox, Meant::Compared(all, seen)).map(drop)
}

fn played(
    test: &ReadyTest,
    subject: &mut LoopUnderTest,
    sandbox: &Sandbox<'_>,
    meant: Meant<'_>,
) -> Result<Played, Explanation> {
    let ReadyCase { start, placement, tree, mocks } = test.ready.clone();
    let machine = subject.own.settled(&start)?;
    let mut script = RealScript { mocks: MockScript::new(&mocks), sandbox, meant, case: &test.case.name };
    let loops = &mut subject.library;
    Ok(play(Play { machine, start, placement, tree, loops, script: &mut script, most_turns: MOST_TURNS }))
}

#[cfg(test)]
mod tests {
    use super::shape;

    #[test]
    fn an_output_has_a_shape() {
        for (text, expected) in [
            (" \n", "nothing"),
            ("12\n", "a number"),
            ("{\"a\": 1, \"b\": {}}", "JSON with a, b"),
            ("[1]", "a list in JSON"),
            ("2 failed", "text"),
        ] {
            assert_eq!(shape(text), expected);
        }
    }
}
