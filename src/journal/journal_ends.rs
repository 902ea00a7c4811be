//! Reads only the two ends of a journal, the beginning and the present state of a run, so that listing runs
//! costs the same after a hundred thousand steps as after one.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;

use super::light;
use super::reader::{MAX_LINE, whole_line};
use crate::base::time::Timestamp;
use crate::engine::event::{Event, LoopComplete, LoopStart, Stamped};
use crate::engine::whereabouts::Whereabouts;
use crate::files::read;

/// The bytes at the end of a journal that are read first; more are read if the state is not in them.
// Room for a few steps, because an event carries at most 8 KiB of each stream.
const FIRST_LOOK: u64 = 64 * 1024;

/// The most bytes that are read: if the last state began before them, the state of the run is not shown.
const LAST_LOOK: u64 = MAX_LINE;

/// The facts at the ends of a journal. All but the length are missing if the run was killed
/// before its first event.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// How it began, and when.
    pub start: Option<(Timestamp, LoopStart)>,
    /// The time and the number of the last event.
    pub last: Option<(Timestamp, u64)>,
    /// The present state of the run.
    pub place: Option<Place>,
    /// How the run ended, if its end is the last event.
    pub complete: Option<LoopComplete>,
}

/// The place of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The state.
    pub state: String,
    /// The pass.
    pub iteration: u32,
    /// The state execution.
    pub step: u32,
    /// Where in the closing pass it is, if it is there: ``the closing pass, in `test` ``.
    pub pass: Option<String>,
}

/// The events of a run that say where it is, or how it ended.
const TELLING: [&str; 7] = [
    "loop_complete",
    "loop_resume",
    "state_enter",
    "route",
    "closing_pass_start",
    "closing_pass_check",
    "closing_pass_end",
];

/// The fields that every event has.
#[derive(Deserialize)]
struct Header {
    event: String,
    ts: Timestamp,
    seq: u64,
    #[serde(default)]
    depth: u32,
}

/// Reads the ends of a journal. Skips lines that cannot be parsed, which a resume reports.
pub fn ends(path: &Path) -> io::Result<Ends> {
    let mut file = read::open(path)?;
    let length = file.metadata()?.len();
    let mut first = Vec::new();
    whole_line(&mut BufReader::new(&file), &mut first)?;
    let start = match event_of(&first) {
        Some(Stamped { ts, event: Event::LoopStart(start), .. }) => Some((ts, start)),
        Some(_) | None => None,
    };
    drop(first);
    let mut window = FIRST_LOOK;
    loop {
        let from = length.saturating_sub(window);
        let tail = read_from(&mut file, from)?;
        let mut ends = look(&tail, from > 0);
        if from == 0 || window >= LAST_LOOK || ends.place.is_some() {
            ends.start = start;
            return Ok(ends);
        }
        // So fast that all looks together read little more than the last one.
        window = window.saturating_mul(8).min(LAST_LOOK);
    }
}

fn read_from(file: &mut File, from: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    // The file may grow meanwhile.
    file.take(LAST_LOOK).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads an event for people: a text that is longer than in any event ends early.
fn event_of(line: &[u8]) -> Option<Stamped> {
    Stamped::from_line(&light::lightened(line).ok()?).ok()
}

/// Reads lines from the last one back to the one with the present state.
fn look(tail: &[u8], begins_within_a_line: bool) -> Ends {
    let mut ends = Ends::default();
    let mut since = Vec::new();
    let lines: Vec<&[u8]> = tail.split(|byte| *byte == b'\n').collect();
    for line in lines.iter().skip(usize::from(begins_within_a_line)).rev() {
        // A kill may have torn the last line; what is needed stands before it.
        let Ok(header) = serde_json::from_slice::<Header>(line) else { continue };
        let is_last = ends.last.is_none();
        ends.last.get_or_insert((header.ts, header.seq));
        if header.depth > 0 || !TELLING.contains(&header.event.as_str()) {
            continue;
        }
        let Some(event) = event_of(line).map(|stamped| stamped.event) else { continue };
        let (state, iteration, step) = if let Event::StateEnter { state, iteration, step, .. } = &event {
            (state, *iteration, *step)
        } else if let Event::LoopResume(resume) = &event {
            (&resume.from_state, resume.iteration, resume.step)
        } else if let Event::LoopComplete(end) = &event {
            (&end.final_state, end.iterations, end.steps)
        } else {
            since.push(event);
            continue;
        };
        let mut whereabouts = Whereabouts::default();
        for event in since.iter().rev() {
            whereabouts.event(event);
        }
        let state = whereabouts.state().unwrap_or(state).to_string();
        ends.place = Some(Place { state, iteration, step, pass: whereabouts.in_pass() });
        if let Event::LoopComplete(complete) = event {
            ends.complete = is_last.then_some(complete);
        }
        break;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = r#"{"event":"loop_start","ts":"2026-01-01T00:00:00.000Z","seq":1,"loop":"main","run_id":"main-1","definition_sha256":"","max_iterations":9,"inputs":[],"llm":"off","strict":false,"source":{"file":"f","lines":{}}}"#;
    const ENTER: &str = r#"{"event":"state_enter","ts":"2026-01-01T00:00:01.000Z","seq":2,"state":"a","iteration":3,"step":4,"attempt":1}"#;
    const INNER: &str = r#"{"event":"state_enter","ts":"2026-01-01T00:00:02.000Z","seq":3,"depth":1,"path":["main","sub"],"state":"b","iteration":1,"step":1,"attempt":1}"#;
    const END: &str = r#"{"event":"loop_complete","ts":"2026-01-01T00:00:03.000Z","seq":4,"outcome":"interrupted","terminated_by":"interrupted","final_state":"a","iterations":3,"steps":4,"cycles":1,"duration_ms":3000,"verified":false,"exit_code":130,"reason":"r"}"#;
    const LATER: &str = r#"{"event":"teleport","ts":"2026-01-01T00:00:04.000Z","seq":5,"where":"x"}"#;

    fn read(text: &str) -> Ends {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        ends(file.path()).unwrap()
    }

    /// Shows the state, the number of the last event, and whether the run is over.
    #[track_caller]
    fn check(text: &str, state: Option<&str>, seq: Option<u64>, is_over: bool) {
        let ends = read(text);
        let place = ends.place.as_ref().map(|place| place.state.as_str());
        let last = ends.last.map(|(_, seq)| seq);
        assert_eq!((place, last, ends.complete.is_some()), (state, seq, is_over), "{text}");
    }

    #[test]
    fn the_end_says_where_a_run_stands() {
        check("", None, None, false);
        check(&START[..30], None, None, false);
        check(&format!("{START}\n"), None, Some(1), false);
        check(&format!("{START}\n{ENTER}\n"), Some("a"), Some(2), false);
        check(&format!("{START}\n{ENTER}\n{INNER}\n"), Some("a"), Some(3), false);
        check(&format!("{START}\n{ENTER}\n{INNER}\n{END}\n"), Some("a"), Some(4), true);
        check(&format!("{START}\n{ENTER}\n{}", &END[..60]), Some("a"), Some(2), false);
    }

    #[test]
    fn a_run_that_went_on_after_its_end_is_not_over() {
        check(&format!("{START}\n{ENTER}\n{END}\n{LATER}\n"), Some("a"), Some(5), false);
    }

    #[test]
    fn a_run_in_its_closing_pass_is_there() {
        let route = r#"{"event":"route","ts":"2026-01-01T00:00:01.000Z","seq":3,"from":"a","to":"done","reason":"next"}"#;
        let pass = r#"{"event":"closing_pass_start","ts":"2026-01-01T00:00:02.000Z","seq":4,"checks":["t"],"reasons":["stale"]}"#;
        let ends = read(&format!("{START}\n{ENTER}\n{route}\n{pass}\n"));
        let place = ends.place.unwrap();
        assert_eq!((place.state.as_str(), place.step), ("done", 4));
        assert_eq!(place.pass.as_deref(), Some("the closing pass, in `t`"));
    }

    #[test]
    fn the_way_back_can_be_long() {
        let many = format!("{INNER}\n").repeat(5_000);
        let ends = read(&format!("{START}\n{ENTER}\n{many}"));
        assert_eq!(ends.place, Some(Place { state: "a".into(), iteration: 3, step: 4, pass: None }));
        assert_eq!(ends.start.unwrap().1.max_iterations, 9);
    }

    #[test]
    fn an_event_is_what_the_reader_of_whole_journals_takes_for_one() {
        let by_number = START.replace(r#""loop_start""#, "0");
        assert!(read(&format!("{by_number}\n{ENTER}\n")).start.is_none());
    }
}
