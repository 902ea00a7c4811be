//! Performs an action: the engine's request becomes a process, the process an observation.

use std::cell::RefCell;
use std::io::{self, Write as _};

use tempfile::TempPath;

use super::kept::{Onlooker, RepositoryBefore};
use super::lines::LineCollector;
use super::ticking::{show, while_ticking};
use super::world::World;
use crate::engine::request::ActionRequest;
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// A longer text does not fit into one argument of a process, and runs from a file.
const ARGUMENT: usize = 96 * 1024;

/// Runs an action to its end and shows its output, and what a test changed.
pub(super) async fn perform(request: &ActionRequest, world: &mut World) -> Observation {
    if Onlooker::of(request.role.as_deref()) != Some(Onlooker::Tester) {
        return run(request, world).await;
    }
    world.rules.name(&request.text);
    let kept = RepositoryBefore::look(world).await;
    let seen = run(request, world).await;
    if let Some(kept) = kept {
        kept.tell(world).await;
    }
    seen
}

async fn run(request: &ActionRequest, world: &mut World) -> Observation {
    if world.cancel.is_asked() {
        // The request came between two steps; nothing is started any more.
        return Observation { stop: Some(Stop::Cancelled), ..Observation::exited(130, "") };
    }
    let (program, script) = match program(request, world) {
        Ok(prepared) => prepared,
        Err(why) => return Observation::not_started(why),
    };
    let limits = ProcessLimits { end: request.setting.end, idle: request.setting.idle, first: None };
    let redactor = &world.redactor;
    let sinks = RefCell::new(&mut world.sinks);
    let mut streams = [LineCollector::new(), LineCollector::new()];
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

/// Writes a text to a file that only we can read and that goes when the action has ended.
fn script(text: &str, world: &World) -> io::Result<TempPath> {
    let mut file =
        tempfile::Builder::new().prefix("action-").suffix(".sh").tempfile_in(world.files.scratch())?;
    file.write_all(text.as_bytes())?;
    Ok(file.into_temp_path())
}
