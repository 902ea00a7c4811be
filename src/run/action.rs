//! Performs an action: the engine's request becomes a process, the process an observation.

use std::cell::RefCell;
use std::io::{self, Write as _};

use tempfile::TempPath;

use super::lines::LineCollector;
use super::put_back::{Onlooker, RepositoryBefore};
use super::sandbox_setup::Confinable;
use super::surprises::Surprises;
use super::ticking::{show, while_ticking};
use super::world::World;
use crate::base::explanation::Explanation;
use crate::engine::request::ActionRequest;
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::process::spawn::{self, Heard, ProcessEnd, ProcessLimits, Program};
use crate::shell::command::reads_input;

/// A longer text does not fit into one argument of a process, and runs from a file.
const ARGUMENT: usize = 96 * 1024;

/// Runs an action to its end and shows its output, and what a test changed. Meanwhile, what has ended of what actions left behind is
/// buried.
pub(super) async fn perform(request: &ActionRequest, world: &mut World) -> Observation {
    let (guard, instance) = (world.guard.clone(), world.files.instance().to_owned());
    let mut leftovers = std::mem::take(&mut world.leftovers);
    let seen = leftovers.while_it_works(run_and_tell(request, world), &guard, &instance).await;
    world.leftovers = leftovers;
    seen
}

async fn run_and_tell(request: &ActionRequest, world: &mut World) -> Observation {
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
    let read = script.iter().map(|script| script.to_path_buf()).collect();
    let (program, confined) = match world.confine(program, &request.setting, Confinable::Command(read)) {
        Ok(confined) => confined,
        Err(seen) => return *seen,
    };
    let limits = ProcessLimits { end: request.setting.end, idle: request.setting.idle, first: None };
    let redactor = &world.redactor;
    // In a cell, because the sinks are shown lines and told of the time within one wait.
    let sinks = RefCell::new(&mut world.sinks);
    let mut streams = [LineCollector::new(), LineCollector::new()];
    let mut output = |stream: Stream, bytes: &[u8]| {
        streams[index(stream)].push(bytes, redactor, &mut |text| show(&sinks, stream, text));
        Heard::More
    };
    let running = spawn::run_group(&program, limits, &mut world.cancel, &mut output);
    let ProcessEnd { seen, left_others } = while_ticking(&sinks, running).await;
    // The file of the command is removed once nothing reads it any more.
    drop(script);
    for stream in [Stream::Stdout, Stream::Stderr] {
        streams[index(stream)].finish(redactor, &mut |text| show(&sinks, stream, text));
    }
    let Surprises { background, input, .. } = &mut world.surprises;
    // Once in a run is enough to learn it.
    if left_others && !std::mem::replace(background, true) {
        world.remarks.push(IN_THE_BACKGROUND.to_owned());
    }
    // A `read` that found nothing and did no harm is ignored.
    let asked_nobody = !seen.succeeded() && reads_input(&request.text);
    if asked_nobody && !std::mem::replace(input, true) {
        world.remarks.push(WITHOUT_INPUT.to_owned());
    }
    world.release(confined, seen)
}

const IN_THE_BACKGROUND: &str = "the action left a process in the background, which was ended with it: start what a later \
    step needs in the action of that step";

const WITHOUT_INPUT: &str = "`read` saw the end of its input: actions have no standard input, and nobody is asked; a state with \
    `action_type: human_approval` asks";

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

/// Prepares the process, with the file that holds its text where the text is too long for an argument.
fn program(request: &ActionRequest, world: &World) -> Result<(Program, Option<TempPath>), Explanation> {
    let mut argv = request.shell.clone();
    // Only after `-c` is the next word the command itself; a shell takes a file without it.
    let script = if request.text.len() > ARGUMENT && argv.last().is_some_and(|word| word == "-c") {
        argv.pop();
        let script = script(&request.text, world);
        Some(
            script
                .map_err(|error| Explanation::new(format!("cannot write the command to a file: {error}")))?,
        )
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
        // In the directory of the run: there it is private, and a confined action may read it.
        tempfile::Builder::new().prefix("action-").suffix(".sh").tempfile_in(world.files.scratch())?;
    file.write_all(text.as_bytes())?;
    Ok(file.into_temp_path())
}
