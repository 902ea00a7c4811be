//! Journals, which come out of bundles of others: read, shown in every format, folded, and gone on with.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ll_loop::internals::base::explanation::Explanation;
use ll_loop::internals::base::name::LoopName;
use ll_loop::internals::engine::Engine;
use ll_loop::internals::engine::event::{Event, LoopStart, Stamped};
use ll_loop::internals::engine::past::Standing;
use ll_loop::internals::journal::{journal_ends, reader};
use ll_loop::internals::machine::Machine;
use ll_loop::internals::report::annotations::{Checkout, annotations};
use ll_loop::internals::report::closing;
use ll_loop::internals::report::digest::Digest;
use ll_loop::internals::report::formats::FORMATS;
use ll_loop::internals::report::nights;
use ll_loop::internals::run::replay::{KnownMachine, Replay};
use tempfile::NamedTempFile;

use crate::{Target, note, repository, world};

/// See above.
pub const TARGET: Target = Target {
    name: "journal",
    run,
    seeds,
    words: &[
        "loop_start",
        "loop_resume",
        "loop_complete",
        "state_enter",
        "action_start",
        "action_complete",
        "evaluate",
        "route",
        "sub_loop_start",
        "sub_loop_complete",
        "handoff_detected",
        "warning",
        "board",
        "judge",
        "retry",
        "cycle_complete",
        "\"seq\":",
        "\"at_ms\":",
        "\"depth\":1,\"path\":[\"a\",\"b\"],",
        "\"ts\":\"1970-01-01T00:00:00.000Z\"",
        "\"ts\":\"+262142-12-31T23:59:59.999Z\"",
        "\"step\":4294967295",
        "\"iteration\":4294967295",
        "18446744073709551615",
        "-1",
        "1e308",
        "null",
        "[]",
        "{}",
        "\"\"",
        "\"stored\":",
        "\"truncated\":true",
        "\"outcome\":\"handoff\"",
        "\"terminated_by\":\"signal\"",
        "\"schema\":2",
        "\n",
    ],
};

/// The loops that journals here can be of, the first one for those of no loop of ours.
struct Machines(BTreeMap<LoopName, Rc<Machine>>);

thread_local! {
    static MACHINES: Machines = Machines(machines().into_iter().map(|(name, machine)| (name, Rc::new(machine))).collect());
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a file can be made"));
}

/// Loops with what the fixtures do not have.
const MORE: &[&str] = &[
    "name: outer\ninitial: call\nstates:\n  call: {loop: quick, context_passthrough: true, on_yes: done, on_no: call}\n  \
     done: {terminal: true}\n",
    "name: quick\ninitial: check\nstates:\n  check: {action: 'true', capture: seen, on_yes: done, on_no: check}\n  \
     done: {terminal: true}\n",
];

fn machines() -> BTreeMap<LoopName, Machine> {
    let texts = repository::loops().into_iter().chain(MORE.iter().map(|text| (*text).to_owned()));
    texts.filter_map(|text| world::machine(&text)).collect()
}

fn seeds() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (name, machine) in machines() {
        all.extend((0..3).map(|seed| world::journal(&name, &machine, seed)));
    }
    all.retain(|journal| journal.len() < 32 * 1024);
    all
}

fn run(data: &[u8]) {
    FILE.with_borrow_mut(|file| {
        let written = file
            .as_file()
            .set_len(0)
            .and_then(|()| std::io::Seek::rewind(file))
            .and_then(|()| file.write_all(data));
        written.expect("the file can be written");
        read(file.path(), data);
    });
    data.split(|byte| *byte == b'\n').for_each(line);
}

/// Every line is read alike in the two ways that there are, and written as it was read.
fn line(line: &[u8]) {
    let Ok(stamped) = Stamped::from_line(line) else { return };
    let slow = serde_json::from_slice::<Stamped>(line).expect("what is read quickly can be read");
    assert_eq!(stamped, slow, "{}", String::from_utf8_lossy(line));
    let text = serde_json::to_string(&stamped).expect("an event is JSON");
    let again = Stamped::from_line(text.as_bytes()).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&again).expect("an event is JSON"), text);
}

fn read(path: &std::path::Path, data: &[u8]) {
    let mut events = Vec::new();
    let lenient = reader::read(path, |event| events.push(event));
    note(("lenient", lenient.is_ok(), events.len().min(20)));
    let mut count = 0;
    let whole = reader::read_whole(path, |_| count += 1);
    let ends = journal_ends::ends(path).expect("the file can be read");
    if let Ok(whole) = whole {
        assert_eq!(whole.last_seq, count, "events are counted from 1 without gaps");
        assert!(whole.length <= data.len() as u64);
        if whole.length == data.len() as u64 {
            assert_eq!(
                ends.last.map_or(0, |(_, seq)| seq),
                whole.last_seq,
                "the end of a journal is its last event"
            );
        }
        assert!(lenient.is_ok(), "what is whole can be read");
        fold(&events);
    }
    if lenient.is_ok() {
        show(&events);
    }
}

/// Every format takes every journal.
fn show(events: &[Stamped]) {
    let digest = Digest::of(events);
    for format in FORMATS {
        let text = format.write(&digest, None);
        if format.name == "result" {
            drop(serde_json::from_str::<serde_json::Value>(&text).expect("the result is JSON"));
        }
        if matches!(format.name, "outputs" | "dotenv") {
            assert!(
                text.lines().all(|line| line.contains('=')),
                "a line without a name in {}:\n{text}",
                format.name
            );
        }
        if format.name == "junit" {
            let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
            assert!(!text.contains(odd), "a control character in XML");
        }
    }
    let tree = Checkout { roots: &["/repo"], home: "", exists: &|path| !path.contains("..") };
    drop(annotations(&digest, &tree));
    drop(closing::advice(&digest));
    if let Some(history) = nights::of(&digest) {
        let text = history.to_json();
        let name = LoopName::parse(digest.loop_name()).expect("it is the name of a loop");
        let again = nights::History::read(text.as_bytes(), &name).expect("what was written can be read");
        assert_eq!(again, history);
    }
}

/// A run of ours goes on from its journal, or it is said why not.
fn fold(events: &[Stamped]) {
    let Some(Event::LoopStart(first)) = events.first().map(|stamped| &stamped.event) else { return };
    MACHINES.with(|Machines(machines)| {
        let known =
            |machine: &Rc<Machine>| KnownMachine { machine: Rc::clone(machine), digest: "0".repeat(64) };
        let Some(outermost) = machines.get(&first.r#loop).or_else(|| machines.values().next()) else {
            return;
        };
        let mut find = |name: &str, _: &LoopStart, _: &LoopStart| {
            let found = LoopName::parse(name).ok().and_then(|name| machines.get(&name));
            found.map(known).ok_or_else(|| Explanation::new("there is none"))
        };
        let mut replay = Replay::new(known(outermost), &mut find);
        for stamped in events {
            if replay.event(stamped.clone()).is_err() {
                note("nowhere");
                return;
            }
        }
        let read = |_, _| Ok(Arc::new("stored\n".to_owned()));
        let mut left = replay.finish(read).expect("texts can be read");
        while let Some(level) = left.take_outermost() {
            let standing = level.standing();
            note(("standing", std::mem::discriminant(&standing)));
            if let Standing::Open(how) = standing {
                let start = world::told(level.past.start().clone());
                let machine = Rc::clone(&level.machine);
                let mut engine = Engine::resume(&machine, start, level.past, how, Duration::ZERO);
                let mut state = 0_u8;
                let mut sequence = || {
                    state = state.wrapping_mul(29).wrapping_add(77);
                    state >> 1
                };
                drop(world::walk(&mut engine, &mut sequence, 12));
            }
        }
    });
}
