//! Journals and bundles that were cut, damaged, made by a later version, or written by somebody who means harm: every
//! command that reads one says what is wrong or shows what there is. None panics, and none lets a text act.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{CHECK_FIX, Project, Ran};

/// The commands that read the journal of a run, which `RUN` stands for, and change nothing.
const READERS: &[&str] = &[
    "report RUN",
    "report RUN --format summary",
    "report RUN --format junit",
    "report RUN --format result",
    "report RUN --format github",
    "report RUN --format html",
    "logs RUN",
    "history",
    "history main",
    "history RUN",
    "history RUN --json",
    "stats",
    "stats main --json",
    "diff RUN RUN",
    "diff RUN RUN --json",
    "status RUN",
    "status --json",
    "list --json",
    "show main --run RUN",
    "why RUN",
    "why RUN --json",
    "replay RUN",
    "repro RUN --script",
];

/// The same of those that begin something.
const ACTORS: &[&str] = &["resume RUN", "rewind RUN --to 1 --yes"];

/// What a terminal, a browser, a forge and a runner would obey.
const HARM: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}2J\u{202e}\u{2066}\r<script>x()</script><img src=x onerror=y()>![x](http://e)\n::error::z\n##vso[x]y\n| --- |\n";

/// Tells whether a terminal would obey anything of it.
fn is_obeyed(text: &str) -> bool {
    text.chars().any(|c| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

struct Stage {
    project: Project,
    journal: PathBuf,
    instance: String,
    text: String,
    commands: String,
}

impl Stage {
    /// Makes a project with one run that is over.
    fn new() -> Self {
        let project = Project::with_loop(CHECK_FIX);
        project.run(&["run", "main", "-q"]).code(0);
        let journal = project.run_files(".events.jsonl").remove(0);
        let text = fs::read_to_string(&journal).unwrap();
        let name = journal.file_name().unwrap().to_string_lossy().into_owned();
        let instance = name.strip_suffix(".events.jsonl").unwrap().to_owned();
        let commands = project.run(&["help"]).code(0).stdout;
        Self { project, journal, instance, text, commands }
    }

    fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn put(&self, text: &str) {
        fs::write(&self.journal, text).unwrap();
    }

    fn put_lines(&self, lines: &[Value]) {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        self.put(&(lines.join("\n") + "\n"));
    }

    /// Runs a command as long as there is such a one.
    fn run(&self, command: &str) -> Option<Ran> {
        let command = command.replace("RUN", &self.instance);
        let words: Vec<&str> = command.split(' ').collect();
        let is_there =
            self.commands.lines().any(|line| line.trim_start().starts_with(&format!("{} ", words[0])));
        is_there.then(|| self.project.run(&words)).filter(|ran| !ran.stderr.contains("possible values: "))
    }

    /// Runs all readers, and asserts that each comes to an end of its own and lets nothing act.
    #[track_caller]
    fn read(&self, what: &str) -> Vec<(&'static str, Ran)> {
        let ran = READERS.iter().filter_map(|reader| Some((*reader, self.run(reader)?)));
        ran.inspect(|(reader, ran)| check(ran, &format!("{reader}: {what}"))).collect()
    }

    #[track_caller]
    fn act(&self, what: &str) {
        for actor in ACTORS {
            if let Some(ran) = self.run(actor) {
                check(&ran, &format!("{actor}: {what}"));
            }
        }
    }
}

/// Puts a text of 50 MiB, or as many values as fit into it, into an event of this kind.
fn heavy(lines: &[Value], event: &str, field: &str, filling: &str) -> String {
    const LENGTH: usize = 50 << 20;
    let at = lines.iter().position(|line| line["event"] == event).unwrap();
    let text = match filling {
        "text" => format!("\"{}\"", "x".repeat(LENGTH)),
        one => format!("[{}{one}]", format!("{one},").repeat(LENGTH / (one.len() + 1))),
    };
    let mut lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let mut fields: Value = serde_json::from_str(&lines[at]).unwrap();
    *fields.pointer_mut(field).unwrap_or_else(|| panic!("{event} has no {field}")) = Value::from("HEAVY");
    lines[at] = fields.to_string().replace("\"HEAVY\"", &text);
    lines.join("\n") + "\n"
}

#[test]
#[cfg(target_os = "linux")]
fn a_line_of_50_mib_takes_at_most_200_mb() {
    let stage = Stage::new();
    let mut lines = stage.lines();
    for line in &mut lines {
        match line["event"].as_str() {
            Some("loop_start") => line["context"]["x"] = Value::Null,
            Some("evaluate") => line["details"]["x"] = Value::Null,
            _ => {}
        }
    }
    let heaviest = [
        ("evaluate", "/details/x", "0"),
        ("loop_start", "/context/x", "0"),
        ("loop_start", "/context/x", "text"),
        ("loop_start", "/inputs", "\"\""),
        ("loop_complete", "/reason", "text"),
    ];
    for (event, field, filling) in heaviest {
        stage.put(&heavy(&lines, event, field, filling));
        for reader in ["report RUN", "why RUN", "stats", "diff RUN RUN", "replay RUN", "history"] {
            // The limit is on memory that is written to, of this process and its threads.
            let reader = reader.replace("RUN", &stage.instance);
            let words = format!("ulimit -d 204800; exec {} {reader}", crate::common::LL_LOOP.as_str());
            let ran = Ran::of(&stage.project.program("sh", &["-c", &words]).output().unwrap());
            let what = format!("{reader}: {filling} in {event}{field}");
            assert!(ran.code.is_some_and(|code| code < 100), "{what}: {:?} {}", ran.code, ran.stderr);
            assert!(ran.all().len() < 1 << 20, "{what}: {} bytes were said", ran.all().len());
        }
    }
}

#[test]
fn a_line_that_cannot_be_read_is_not_a_process_that_died() {
    let stage = Stage::new();
    let mut lines: Vec<&str> = stage.text.lines().collect();
    lines[5] = "{\"event\":";
    stage.put(&(lines.join("\n") + "\n"));
    for (command, said) in stage.read("a line in the middle") {
        assert!(!said.all().contains("still running"), "{command}: {}", said.all());
    }
    let shown = stage.run("history RUN").unwrap().code(4);
    assert!(shown.stdout.contains("line 6 of the journal is not an event"), "{}", shown.stdout);
}

#[track_caller]
fn check(ran: &Ran, what: &str) {
    assert!(ran.code.is_some_and(|code| code != 101), "{what}: {:?} {}", ran.code, ran.all());
    assert!(!ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
    assert!(!is_obeyed(&ran.all()), "{what}: {:?}", ran.all());
}

fn code(ran: &[(&'static str, Ran)], reader: &str) -> Option<i32> {
    ran.iter().find(|(name, _)| *name == reader).and_then(|(_, ran)| ran.code)
}

#[test]
fn a_journal_that_is_cut_anywhere_is_read_as_far_as_it_goes() {
    let stage = Stage::new();
    let ends: Vec<usize> = stage.text.match_indices('\n').map(|(at, _)| at).collect();
    for at in ends.iter().flat_map(|end| [end - 20, *end, end + 1]).step_by(4) {
        stage.put(&stage.text[..at]);
        let read = stage.read(&format!("cut at {at}"));
        if at > ends[0] {
            for reader in ["report RUN", "stats", "diff RUN RUN", "history RUN"] {
                assert_eq!(code(&read, reader), Some(0), "{reader} at {at}");
            }
        }
    }
    stage.act("cut");
}

#[test]
fn a_journal_that_is_damaged_in_the_middle_is_told_with_its_line() {
    let stage = Stage::new();
    let lines: Vec<&str> = stage.text.lines().collect();
    let place = "line 5 of the journal";
    for bad in ["", "\0\0\0\0", "{\"event\":\"route\"", "[]", "{\"event\":\"route\",\"ts\":7,\"seq\":[]}"] {
        let mut lines = lines.clone();
        lines[4] = bad;
        stage.put(&(lines.join("\n") + "\n"));
        let read = stage.read(bad);
        assert_eq!(code(&read, "report RUN"), Some(4), "{bad}");
        assert_eq!(code(&read, "stats"), Some(2), "{bad}");
        assert_eq!((code(&read, "why RUN"), code(&read, "history RUN")), (Some(4), Some(4)), "{bad}");
        let report = read.iter().find(|(reader, _)| *reader == "report RUN").map(|(_, ran)| &ran.stdout);
        assert!(report.is_some_and(|report| report.contains(place)), "{report:?}");
        for (reader, ran) in read {
            if matches!(reader, "report RUN" | "stats" | "diff RUN RUN" | "history RUN") {
                assert!(ran.stderr.contains(place), "{reader}: {}", ran.all());
            }
        }
        stage.act(bad);
    }
    // Lines that are missing or there twice are events, but not those of a run.
    for (from, to) in [(4, 8), (6, 6), (1, 12)] {
        let twice = [&lines[..to], &lines[from..]].concat();
        stage.put(&(twice.join("\n") + "\n"));
        stage.read("twice");
        let missing = [&lines[..from], &lines[to..]].concat();
        stage.put(&(missing.join("\n") + "\n"));
        stage.read("missing");
        stage.act("missing");
    }
}

#[test]
fn a_journal_of_a_newer_version_is_told() {
    let stage = Stage::new();
    let mut lines = stage.lines();
    lines[0]["schema"] = 99.into();
    lines[0]["mood"] = "fine".into();
    lines.insert(1, serde_json::json!({"event": "teleport", "ts": lines[0]["ts"], "seq": 2, "to": ["x"]}));
    stage.put_lines(&lines);
    for (reader, ran) in stage.read("newer") {
        let shows_warnings = matches!(reader, "report RUN" | "history RUN" | "diff RUN RUN" | "stats");
        if shows_warnings || reader == "report RUN --format result" {
            assert!(ran.all().contains("newer version of ll-loop"), "{reader}: {}", ran.all());
            assert!(ran.all().contains("schema 99"), "{reader}: {}", ran.all());
        }
    }
    stage.act("newer");
}

/// Calls `each` with every text below a value and the way there.
fn texts(value: &mut Value, way: &str, each: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => each(way, text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, way, each)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| texts(value, &format!("{way}.{key}"), each));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn no_text_of_a_journal_acts_wherever_it_stands() {
    let stage = Stage::new();
    let mut lines = stage.lines();
    let last = lines.len();
    // What this run had no reason to say.
    for (at, event) in [
        serde_json::json!({"event": "warning", "state": "check", "message": "x"}),
        serde_json::json!({"event": "message", "state": "check", "text": "x"}),
        serde_json::json!({"event": "action_error", "state": "check", "error": "x"}),
        serde_json::json!({"event": "loop_error", "state": "check", "error": "x"}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut event = event;
        event["ts"] = lines[0]["ts"].clone();
        event["seq"] = 900.into();
        lines.insert(last - 1 + at, event);
    }
    let mut ways: Vec<(usize, String)> = Vec::new();
    for (at, line) in lines.iter_mut().enumerate() {
        let kind = line["event"].as_str().unwrap().to_owned();
        texts(line, &kind, &mut |way, _| ways.push((at, way.to_owned())));
    }
    ways.sort_by(|one, other| one.1.cmp(&other.1));
    ways.dedup_by(|one, other| one.1 == other.1);
    assert!(ways.len() > 25, "{ways:?}");
    for (at, way) in ways {
        let mut lines = lines.clone();
        let kind = lines[at]["event"].as_str().unwrap().to_owned();
        texts(&mut lines[at], &kind, &mut |found, text| {
            if found == way {
                text.push_str(HARM);
            }
        });
        stage.put_lines(&lines);
        for (reader, ran) in stage.read(&way) {
            if reader.ends_with("summary") || reader.ends_with("html") {
                // In HTML, Markdown is a text.
                let raw = if reader.ends_with("html") {
                    &["<script>x", "<img"][..]
                } else {
                    &["<script>x", "<img", "![x]("]
                };
                for raw in raw {
                    let in_code = ran.stdout.lines().filter(|line| line.contains(raw));
                    let acts = in_code.filter(|line| reader.ends_with("html") || !is_code(&ran.stdout, line));
                    assert_eq!(acts.collect::<Vec<_>>(), Vec::<&str>::new(), "{reader}: {way}");
                }
            }
            if reader.ends_with("github") {
                let commands = ran.stdout.lines().filter(|line| line.starts_with("::error::z"));
                assert_eq!(commands.count(), 0, "{way}: {}", ran.stdout);
            }
        }
    }
}

/// Tells whether a line of Markdown is one of a code block, or has what it quotes between backticks.
fn is_code(markdown: &str, line: &str) -> bool {
    let before = markdown.split(line).next().unwrap_or_default();
    let fences = before.lines().filter(|line| line.trim_start_matches(['>', ' ']).starts_with("```")).count();
    fences % 2 == 1 || line.matches('`').count() >= 2
}

#[test]
fn a_bundle_that_is_damaged_is_refused_by_whoever_looks_at_it() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main", "-q", "--report-dir", "out"]).code(0);
    let bundle = project.run(&["history", "--json"]).code(0).stdout;
    let bundle: Value = serde_json::from_str(bundle.lines().next().unwrap()).unwrap();
    let whole = fs::read(project.at(&format!("out/{}.llz", bundle["instance"].as_str().unwrap()))).unwrap();
    let look = |bytes: &[u8], what: &str| {
        fs::write(project.at("x.llz"), bytes).unwrap();
        let commands = [
            &["report", "x.llz"][..],
            &["diff", "x.llz", "main"],
            &["stats", "--from", "x.llz"],
            &["resume", "--from", "x.llz"],
            &["why", "x.llz"],
        ];
        commands.map(|command| {
            let ran = project.run(command);
            check(&ran, &format!("{command:?}: {what}"));
            ran.code
        })
    };
    assert_eq!(look(&whole, "whole")[..3], [Some(0), Some(0), Some(0)]);
    for part in 0..8 {
        let cut = &whole[..whole.len() * part / 8];
        assert_eq!(look(cut, &format!("cut at {part}/8"))[..3], [Some(2), Some(2), Some(2)], "{part}");
    }
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        look(&flipped, &format!("flipped at {at}"));
    }
}
