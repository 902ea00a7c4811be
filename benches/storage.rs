//! What it costs to keep a run: a step at the beginning and after a hundred thousand, while a capture of 5 MB is held,
//! and to go on with a run of a hundred thousand steps. `cargo bench --profile dist --bench storage`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints figures, and fails when it cannot"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ll_loop::internals::base::redact::Redactor;
use ll_loop::internals::base::time::Timestamp;
use ll_loop::internals::definition::load;
use ll_loop::internals::engine::event::LoopStart;
use ll_loop::internals::engine::request::{Input, Next};
use ll_loop::internals::engine::{Engine, Start};
use ll_loop::internals::evaluate::observation::Observation;
use ll_loop::internals::journal::files::RunFiles;
use ll_loop::internals::journal::snapshot::{self, Snapshot, Surroundings};
use ll_loop::internals::journal::writer::{EventTime, Journal};
use ll_loop::internals::machine::Machine;
use ll_loop::internals::machine::compile::compile;

const STEPS: usize = 101_000;

const LONG: &str = "\
name: long
description: a hundred thousand steps with a long capture
initial: big
max_iterations: 1000000
states:
  big: {action: print much, capture: big, next: check}
  check: {action: check, append_to_messages: 'step ${state.step}', on_yes: fix, on_no: fix}
  fix: {action: fix, next: check}
  done: {terminal: true}
";

fn main() {
    let directory = tempfile::TempDir::new().unwrap();
    let loaded =
        load::decode("long.yaml", LONG, String::new()).unwrap_or_else(|_| panic!("the loop is valid"));
    let machine = compile(&loaded.definition).0.unwrap();

    let begun: Vec<Duration> =
        (0..100).flat_map(|_| steps(directory.path(), &machine, 20).split_off(10)).collect();
    let mut all = steps(directory.path(), &machine, STEPS);
    let late = median(all.split_off(STEPS - 1000));
    let middle = median(all[1000..2000].to_vec());
    let early = median(begun);
    println!(
        "a step, without its action, with 5 MB captured: {:.1} µs at step 10, {:.1} µs at step 1,000, {:.1} µs at step \
         100,000 (medians of 1,000): ratio {:.2} and {:.2}",
        micros(early),
        micros(middle),
        micros(late),
        late.as_secs_f64() / early.as_secs_f64(),
        late.as_secs_f64() / middle.as_secs_f64(),
    );
    resume(directory.path());
}

/// Does what the driver does around each action, and returns how long each step took.
fn steps(root: &Path, machine: &Machine, count: usize) -> Vec<Duration> {
    let at = Timestamp::from_millis(0);
    let random = u32::try_from(fs::read_dir(root).unwrap().count()).unwrap();
    let files = RunFiles::new(&root.join(random.to_string()), &machine.name, at, random);
    files.make_directory().and_then(|()| files.make_scratch()).unwrap();
    let mut journal = Journal::create(&files, Redactor::new(["a secret value"])).unwrap();
    let around = Surroundings { scope: Vec::new(), pid: 1, host: String::new() };
    let mut engine = Engine::new(machine, start(machine));
    let mut took = Vec::with_capacity(count);
    let big = Observation::exited(0, "x".repeat(5_000_000));
    let ok = Observation::exited(0, "src/app.py:3: error: Name foo is not defined\n");
    while took.len() < count {
        let input = if let Next::Run(request) = engine.next() {
            Input::ActionDone(if request.text == "print much" { big.clone() } else { ok.clone() })
        } else {
            Input::Begin
        };
        let began = Instant::now();
        let events = engine.handle(input, Duration::ZERO).unwrap();
        let written = journal
            .append(
                events,
                EventTime { now: at, elapsed: Duration::ZERO },
                std::slice::from_ref(&machine.name),
            )
            .unwrap();
        let content = Snapshot::of(&engine, &around, at, journal.last_seq(), journal.redactor()).unwrap();
        snapshot::write(&files, &content).unwrap();
        took.push(began.elapsed());
        assert!(!written.is_empty());
    }
    took
}

fn start(machine: &Machine) -> Start {
    let event = LoopStart {
        max_iterations: machine.limits.iterations.limit,
        ..LoopStart::new(machine.name.clone(), "long-1")
    };
    Start::of(event, Timestamp::from_millis(0), "long-1")
}

/// Takes the journal of the long run, and lets the program go on with it.
fn resume(root: &Path) {
    let loops = root.join("again/.loops");
    fs::create_dir_all(loops.join(".running")).unwrap();
    fs::write(
        loops.join("long.yaml"),
        LONG.replace("max_iterations: 1000000", "max_iterations: 1000000\ntimeout: 365d"),
    )
    .unwrap();
    let newest = fs::read_dir(root).unwrap().count() - 2;
    let from = root.join(newest.to_string()).join(".running");
    let (journal, stem) = fs::read_dir(&from)
        .unwrap()
        .filter_map(|entry| Some((entry.as_ref().ok()?.path(), entry.ok()?.file_name().into_string().ok()?)))
        .find_map(|(path, name)| Some((path, name.strip_suffix(".events.jsonl")?.to_owned())))
        .unwrap();
    let target = loops.join(".running").join(journal.file_name().unwrap());
    let text = fs::read_to_string(&journal).unwrap().replacen(
        "\"source\":{\"file\":\"\"",
        "\"source\":{\"file\":\".loops/long.yaml\"",
        1,
    );
    fs::write(&target, &text).unwrap();
    let streams = format!("{stem}.streams");
    fs::rename(from.join(&streams), loops.join(".running").join(&streams)).unwrap();
    let mut times = Vec::new();
    for _ in 0..9 {
        fs::write(&target, &text).unwrap();
        let began = Instant::now();
        // The cap is met at once: nothing but the way there is measured.
        let status = Command::new(env!("CARGO_BIN_EXE_ll-loop"))
            .args([
                "resume",
                "long",
                "--accept-changes",
                "--max-iterations",
                "1",
                "--quiet",
                "--deadline",
                "0.001",
            ])
            .current_dir(root.join("again"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        times.push(began.elapsed());
        assert_eq!(status.code(), Some(75));
    }
    println!(
        "resume of {STEPS} steps ({} MiB of journal): {:.0} ms (median of 9)",
        text.len() >> 20,
        micros(median(times)) / 1000.0,
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
