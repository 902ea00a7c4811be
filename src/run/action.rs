//! Performs an action: the engine's request becomes a process, the process an observation.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use tempfile::TempPath;

use crate::engine::request::{ActionRequest, Setting};
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::report::{OutputLine, Sinks};

use super::lines::Lines;
use super::{World, while_ticking};

/// A longer text does not fit into one argument of a process, and runs from a file.
const ARGUMENT: usize = 96 * 1024;

/// Runs an action to its end and shows its output.
pub(super) async fn perform(request: &ActionRequest, world: &mut World) -> Observation {
    if world.cancel.signal().is_some() {
        // The request came between two steps; nothing is started any more.
        return Observation { stop: Some(Stop::Cancelled), ..Observation::exited(130, "") };
    }
    let (program, script) = match program(request, world) {
        Ok(prepared) => prepared,
        Err(why) => return Observation::not_started(why),
    };
    let limits = ProcessLimits { end: request.setting.end, idle: request.setting.idle };
    let redactor = &world.redactor;
    let sinks = RefCell::new(&mut world.sinks);
    let mut streams = [Lines::new(), Lines::new()];
    let mut output = |stream: Stream, bytes: &[u8]| {
        streams[index(stream)].push(bytes, redactor, &mut |text| show(&sinks, stream, text));
        Heard::More
    };
    let seen = while_ticking(&sinks, spawn::run(&program, limits, &mut world.cancel, &mut output)).await;
    drop(script);
    for stream in [Stream::Stdout, Stream::Stderr] {
        streams[index(stream)].finish(redactor, &mut |text| show(&sinks, stream, text));
    }
    seen
}

pub(super) fn show(sinks: &RefCell<&mut Sinks>, stream: Stream, text: &str) {
    sinks.borrow_mut().output(OutputLine { stream, text });
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

/// Prepares the process, with the file that holds its text where the text is too long for an argument.
fn program(request: &ActionRequest, world: &World) -> Result<(Program, Option<TempPath>), String> {
    let mut argv = request.shell.clone();
    let script = if request.text.len() > ARGUMENT && argv.last().is_some_and(|word| word == "-c") {
        argv.pop();
        let script = script(&request.text, world);
        Some(script.map_err(|error| format!("cannot write the command to a file: {error}"))?)
    } else {
        None
    };
    argv.push(
        script.as_ref().map_or_else(|| request.text.clone(), |path| path.to_string_lossy().into_owned()),
    );
    Ok((world.program(argv, world.env_of(&request.setting), &request.setting)?, script))
}

impl World {
    /// Returns the environment of an action.
    pub(super) fn env_of(&self, setting: &Setting) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        env.extend(setting.env.iter().cloned());
        // Who looks at the working tree must not take the answers that are kept there for work.
        let recording = self.agents.recording.as_ref().and_then(|recording| recording.below(&self.root));
        env.extend(recording.map(|directory| ("LL_RECORDING".to_owned(), directory)));
        env
    }

    /// Makes the process of an action, in its directory and with nothing to read.
    pub(super) fn program(
        &self,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        setting: &Setting,
    ) -> Result<Program, String> {
        let cwd = setting.cwd.as_deref().map(|cwd| directory(&self.root, cwd)).transpose()?;
        let cwd = cwd.or_else(|| self.starts_in.clone());
        Ok(Program { argv, env: env.into_iter().collect(), cwd, stdin: None })
    }
}

/// Writes a text to a file that only we can read and that goes when the action has ended.
fn script(text: &str, world: &World) -> io::Result<TempPath> {
    let mut file =
        tempfile::Builder::new().prefix("action-").suffix(".sh").tempfile_in(world.files.scratch())?;
    file.write_all(text.as_bytes())?;
    Ok(file.into_temp_path())
}

/// Finds the directory of an action, which stays inside the working tree.
fn directory(root: &Path, cwd: &str) -> Result<PathBuf, String> {
    let path = Path::new(cwd);
    let leaves = path.components().any(|part| matches!(part, Component::ParentDir | Component::RootDir));
    let outside = || format!("`cwd: {cwd}` leads out of the working tree; name a directory below it");
    if leaves {
        return Err(outside());
    }
    let directory = root.join(path);
    match (directory.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(real_root)) if real.starts_with(&real_root) => Ok(real),
        (Ok(_), _) => Err(outside()),
        (Err(_), _) => Err(format!("`cwd: {cwd}` does not exist")),
    }
}
