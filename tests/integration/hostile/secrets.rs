//! A planted secret that is printed in every way that a program might find: nothing that a run writes has it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Project, Ran, wait_for};
use crate::fake_host;
use crate::leaks::{folded, written};

/// Long, random, and with every character that some encoding changes.
const TOKEN: &str = "pL4nt+3d/t0=k&\"n\\<q'Zr9$~é%7Bw2Xv";

/// A secret of several lines.
const KEY: &str = "-----BEGIN PLANTED-----\nMIIBVgIBADANBg+q/kqhkiG9w0BAQEFAASCAUAwggE8\nAgEAAkEAqPl4nt3dKeyLin3Two==\n-----END PLANTED-----\n";

/// Returns the ways to write a secret, each by its name.
fn encodings(secret: &str) -> Vec<(String, String)> {
    let each = |write: &dyn Fn(char) -> String| secret.chars().map(write).collect::<String>();
    let bytes = |write: &dyn Fn(u8) -> String| secret.bytes().map(write).collect::<String>();
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let is_word_byte = |byte: u8| is_word(char::from(byte));
    let json = serde_json::to_string(secret).unwrap();
    let json = json[1..json.len() - 1].to_owned();
    let mut all = vec![
        ("raw", secret.to_owned()),
        ("percent", bytes(&|b| if is_word_byte(b) { char::from(b).into() } else { format!("%{b:02X}") })),
        (
            "small percent",
            bytes(&|b| if is_word_byte(b) { char::from(b).into() } else { format!("%{b:02x}") }),
        ),
        ("percent throughout", bytes(&|b| format!("%{b:02X}"))),
        ("JSON in JSON", serde_json::to_string(&json).unwrap().trim_matches('"').to_owned()),
        ("PHP's JSON", json.replace('/', "\\/")),
        ("Go's JSON", json.replace('&', "\\u0026").replace('<', "\\u003c")),
        ("JSON", json),
        ("units", secret.encode_utf16().fold(String::new(), |all, unit| all + &format!("\\u{unit:04x}"))),
        (
            "great units",
            secret.encode_utf16().fold(String::new(), |all, unit| all + &format!("\\u{unit:04X}")),
        ),
        ("hex", bytes(&|b| format!("{b:02x}"))),
        ("great hex", bytes(&|b| format!("{b:02X}"))),
        (
            "XML",
            each(&|c| match c {
                '&' => "&amp;".to_owned(),
                '<' => "&lt;".to_owned(),
                '"' => "&quot;".to_owned(),
                '\'' => "&apos;".to_owned(),
                c => c.to_string(),
            }),
        ),
        ("HTML", each(&|c| if is_word(c) { c.to_string() } else { format!("&#{};", u32::from(c)) })),
        ("shell", format!("'{}'", secret.replace('\'', "'\\''"))),
        ("Python's shell", format!("'{}'", secret.replace('\'', "'\"'\"'"))),
        (
            "backslashes",
            each(&|c| {
                if is_word(c) || c == '\n' || !c.is_ascii() { c.to_string() } else { format!("\\{c}") }
            }),
        ),
        (
            "$'…'",
            bytes(&|b| match b {
                b'\'' | b'\\' => format!("\\{}", char::from(b)),
                b'\n' => "\\n".to_owned(),
                b if b.is_ascii() => char::from(b).to_string(),
                b => format!("\\{b:03o}"),
            }),
        ),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text))
    .collect::<Vec<_>>();
    for (name, alphabet) in [("base64", *b"+/"), ("base64url", *b"-_")] {
        for skip in 0..3 {
            let text = base64(&[b"xyz"[..skip].to_vec(), secret.as_bytes().to_vec()].concat(), alphabet);
            // What depends on the secret alone, without the padding.
            let (from, to) = ((skip * 8_usize).div_ceil(6), (skip + secret.len()) * 8 / 6);
            all.push((format!("{name} at {skip}"), text[from..to].to_owned()));
        }
    }
    all
}

/// Returns more ways to write the token: what it is at the beginning of a line, broken into lines among them.
fn more_encodings() -> Vec<(String, String)> {
    let mut all = written(TOKEN);
    for width in [13, 20, 30] {
        all.push((format!("folded at {width}"), folded(TOKEN, width)));
    }
    all.push(("indented".to_owned(), folded(TOKEN, 13).replace('\n', "\r\n      ")));
    all
}

fn base64(bytes: &[u8], last: [u8; 2]) -> String {
    let digit = |value: u32| match u8::try_from(value & 63).unwrap() {
        value @ 0..26 => char::from(b'A' + value),
        value @ 26..52 => char::from(b'a' + value - 26),
        value @ 52..62 => char::from(b'0' + value - 52),
        value => char::from(last[usize::from(value - 62)]),
    };
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            (0..3).fold(0, |word, index| word << 8 | u32::from(chunk.get(index).copied().unwrap_or(0)));
        let digits = (0..4).map(|index| digit(word >> (18 - 6 * index)));
        text.extend(digits.take(chunk.len() + 1));
        text.extend(std::iter::repeat_n('=', 3 - chunk.len()));
    }
    text
}

/// Everything that must not be found: the encodings of the token and of each line of the key, and what a cut would leave
/// of them.
fn forbidden() -> Vec<(String, String)> {
    let secrets = std::iter::once(TOKEN).chain(KEY.lines());
    let mut all: Vec<_> = secrets.clone().flat_map(encodings).collect();
    for (name, text) in more_encodings() {
        // Lines that show a part, without the address of one of a dump.
        let parts = text.lines().filter(|_| text.contains('\n'));
        let parts = parts
            .map(|line| if text.starts_with("0000000") { &line[9.min(line.len())..] } else { line }.trim());
        all.extend(
            parts.filter(|part| part.len() > 12).map(|part| (format!("part of {name}"), part.to_owned())),
        );
        all.push((name, text));
    }
    for secret in secrets {
        all.push(("beginning".to_owned(), secret.chars().take(12).collect()));
        let end: Vec<char> = secret.chars().rev().take(12).collect();
        all.push(("end".to_owned(), end.into_iter().rev().collect()));
    }
    // A dashed line is a secret like any, but half of one is not.
    all.retain(|(_, text)| {
        !text.trim_matches('-').is_empty()
            && !"-----BEGIN PLANTED-----END PLANTED-----".contains(text.as_str())
            || text.len() > 20
    });
    all
}

/// Finds the encodings in a text, and in every text that is in it as JSON.
fn leaks_in(text: &str, forbidden: &[(String, String)], found: &mut Vec<String>) {
    for (name, encoded) in forbidden {
        if text.contains(encoded.as_str()) {
            let at = text.find(encoded.as_str()).unwrap();
            let around: String =
                text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
            let behind: String = text[at..].chars().take(80).collect();
            found.push(format!("{name} {behind:?} behind {around:?}"));
        }
    }
    for line in std::iter::once(text).chain(text.lines()) {
        if let Ok(value) = serde_json::from_str::<Value>(line) {
            leaks_in_json(&value, forbidden, found);
        }
    }
}

fn leaks_in_json(value: &Value, forbidden: &[(String, String)], found: &mut Vec<String>) {
    match value {
        Value::String(text) => leaks_in(text, forbidden, found),
        Value::Array(items) => items.iter().for_each(|item| leaks_in_json(item, forbidden, found)),
        Value::Object(map) => {
            for (key, value) in map {
                leaks_in(key, forbidden, found);
                leaks_in_json(value, forbidden, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn files(directory: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files(&entry, all);
        } else {
            all.push(entry);
        }
    }
}

/// Asserts that neither what was said nor what was written has a secret in it, and returns how many files were written.
#[track_caller]
fn no_leaks(project: &Project, ran: &[&Ran]) -> usize {
    let forbidden = forbidden();
    let mut written = Vec::new();
    for place in [".loops", "recorded", "reports"] {
        if project.exists(place) {
            files(&project.at(place), &mut written);
        }
    }
    for place in ["out", "summary"] {
        written.extend(project.exists(place).then(|| project.at(place)));
    }
    let texts = written.iter().map(|path| {
        (path.display().to_string(), String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned())
    });
    let said = ran.iter().flat_map(|ran| {
        [("stdout".to_owned(), ran.stdout.clone()), ("stderr".to_owned(), ran.stderr.clone())]
    });
    let mut all = String::new();
    for (place, text) in texts.chain(said) {
        let mut found = Vec::new();
        leaks_in(&text, &forbidden, &mut found);
        found.dedup();
        for leak in found {
            let _ = writeln!(all, "{place}: {leak}");
        }
    }
    assert!(all.is_empty(), "{all}");
    written.len()
}

/// A project with the secrets in its environment, and in a file for each encoding.
fn planted(project: Project) -> Project {
    for (number, secret) in [TOKEN, KEY].iter().enumerate() {
        for (index, (_, text)) in encodings(secret).iter().enumerate() {
            project.write(&format!("enc/{number}-{index:02}"), &format!("the value is {text} today\n"));
        }
    }
    for (index, (_, text)) in more_encodings().iter().enumerate() {
        let before = if text.starts_with("0000000") { "of it\n" } else { "the value is " };
        project.write(&format!("enc/2-{index:02}"), &format!("{before}{text} today\n"));
    }
    project.write("token", TOKEN);
    // Twice the size of a pipe's buffer and of a piece of a line, with the token across each border of the two.
    let mut borders = String::new();
    for border in [16 * 1024, 64 * 1024, 80 * 1024, 128 * 1024] {
        borders.push_str(&"x".repeat(border - borders.len() % border - TOKEN.len() / 2));
        borders.push_str(TOKEN);
    }
    project.write("borders", &(borders + "\n"));
    project.write("lines", &"a line of text\n".repeat(3000));
    let root = project.path().to_string_lossy().into_owned();
    project
        .env("PLANTED_TOKEN", TOKEN)
        .env("PLANTED_PRIVATE_KEY", KEY)
        .env("CI", "true")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_OUTPUT", format!("{root}/out"))
        .env("GITHUB_STEP_SUMMARY", format!("{root}/summary"))
}

const EVERYWHERE: &str = r#"
name: main
description: prints what it should not
initial: encoded
max_iterations: 40
context:
  from_env: "${env.PLANTED_TOKEN}"
states:
  encoded: {action: 'cat enc/*; cat enc/* >&2', next: halves}
  halves: {action: 'head -c 13 token; sleep 0.3; tail -c +14 token; echo; head -c 9 token >&2; sleep 0.1; tail -c +10 token >&2', next: pieces}
  pieces: {action: 'cat borders; cat borders >&2; cat lines token lines', capture: long, next: coloured}
  coloured: {action: 'printf "a \033[31m%s\033[0m%s b\n" "$(head -c 7 token)" "$(tail -c +8 token)"', next: captured}
  captured: {action: 'printenv PLANTED_TOKEN; printenv PLANTED_PRIVATE_KEY', capture: said, next: used}
  used: {action: 'echo ${captured.said.output:shell} ${context.given:shell}', next: named}
  named:
    action: 'printenv SAID; env'
    env: {SAID: '${captured.said.output}', OTHER: 'x${env.PLANTED_TOKEN}x'}
    next: numeric
  numeric:
    action: 'cat token'
    evaluate: {type: output_numeric, operator: eq, target: 5}
    on_yes: json
    on_no: json
    on_error: json
  json:
    action: 'echo "{\"a\": 1}"'
    evaluate: {type: output_json, path: '.${context.from_env}', target: '${context.given}'}
    on_yes: pattern
    on_no: pattern
    on_error: pattern
  pattern:
    action: 'echo ${context.given:shell} is it'
    evaluate: {type: output_contains, pattern: '${context.given}'}
    on_yes: place
    on_no: place
    on_error: place
  place: {action: 'true', cwd: '${context.given}', on_yes: absent, on_no: absent, on_error: absent}
  absent: {action: '${context.given:shell}', on_yes: inner, on_no: inner, on_error: inner}
  inner: {loop: kid, with: {word: '${context.given}'}, on_success: last, on_failure: last, on_error: last}
  last: {action: 'cat enc/*; cat lines; exit 1', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
"#;

const KID: &str = r"
name: kid
description: says a word
parameters:
  word: {type: string, required: true}
initial: say
states:
  say: {action: 'echo ${context.word:shell}; cat enc/*', capture: word, next: again}
  again: {action: 'echo ${captured.word.output:shell}', next: done}
  done: {terminal: true}
";

#[test]
fn a_secret_is_nowhere_in_what_a_run_writes() {
    let project = planted(Project::with_loop(EVERYWHERE).file(".loops/kid.yaml", KID));
    let given = format!("given={TOKEN}");
    let ran = project.run(&["run", "main", "--report-dir", "reports", "--context", &given]).code(1);
    let states: Vec<_> =
        project.events().iter().filter(|e| e["event"] == "state_enter").map(|e| e["state"].clone()).collect();
    assert_eq!(states.len(), 16, "{states:?}");
    assert!(ran.stdout.contains("the value is *** today"), "{}", ran.stdout);
    assert!(no_leaks(&project, &[&ran]) > 15);
    // For a person, and without a run.
    let person = project.run(&["run", "main", "--no-ci", "-v", "--context", &given]).code(1);
    let plan = project.run(&["run", "main", "--dry-run", "--context", &given]).code(0);
    assert!(plan.stdout.contains("***"), "{}", plan.stdout);
    let shown: Vec<Ran> =
        [&["history", "main"][..], &["logs", "main"], &["status"], &["list"], &["show", "main"]]
            .iter()
            .map(|arguments| project.run(arguments))
            .collect();
    let all: Vec<&Ran> = [&person, &plan].into_iter().chain(&shown).collect();
    no_leaks(&project, &all);
}

/// Prints a text in two parts, with a pause between them that is long enough to show the first.
const IN_PIECES: &str = r"
name: main
description: prints a dump slowly
initial: slow
states:
  slow:
    action: 'for file in enc/*; do cut=$(cat cut); head -c $cut $file; sleep 0.2; tail -c +$((cut + 1)) $file; done'
    next: done
  done: {terminal: true}
";

#[test]
fn a_dump_that_comes_in_pieces_is_nowhere() {
    let dumps: Vec<_> = written(TOKEN)
        .into_iter()
        .filter(|(name, _)| name.ends_with(" at 13") || name.ends_with(" at 14"))
        .collect();
    let dumps: Vec<_> = dumps.iter().filter(|(_, text)| text.starts_with("0000000")).collect();
    assert_eq!(dumps.len(), 6);
    let project = Project::with_loop(IN_PIECES).env("PLANTED_TOKEN", TOKEN);
    for (index, (_, text)) in dumps.iter().enumerate() {
        project.write(&format!("enc/{index}"), text);
    }
    // Behind the first line of some of them, and in the second of all.
    for cut in [48, 68, 79, 90] {
        project.write("cut", &cut.to_string());
        let ran = project.run(&["run", "main", "-v"]).code(0);
        assert!(ran.stdout.contains("***"), "{}", ran.stdout);
        no_leaks(&project, &[&ran]);
    }
}

#[test]
fn a_secret_in_a_mistake_is_not_repeated() {
    let text = "name: main\ndescription: x\nscope: ['${context.given}']\ninitial: a\nstates:\n  a: {action: 'true', on_yes: done}\n  done: {terminal: true}\n";
    let project = planted(Project::with_loop(text));
    let mistakes: [&[&str]; 5] = [
        &["run", TOKEN],
        &["run", "main", "--ci", "--param", &format!("{TOKEN}=1")],
        &["run", "main", "--replay", TOKEN],
        &["resume", TOKEN],
        &["run", "main", &format!("--ci={TOKEN}")],
    ];
    for arguments in mistakes {
        let ran = project.run(arguments);
        assert_ne!(ran.code, Some(0));
        no_leaks(&project, &[&ran]);
    }
    let ran = project.run(&["run", "main", "--context", &format!("given={TOKEN}")]).code(0);
    no_leaks(&project, &[&ran]);
}

const PROMPTS: &str = r"
name: main
description: asks
initial: ask
states:
  ask: {action: '/tell ${context.given}', on_yes: again, on_no: again, on_error: again}
  again: {action: 'tell ${prev.output}', action_type: prompt, on_yes: done, on_no: done, on_error: done}
  done: {terminal: true}
";

#[test]
fn a_secret_in_an_answer_is_nowhere() {
    let everything = encodings(TOKEN).into_iter().map(|(_, text)| text + "\n").collect::<String>();
    let said =
        |text: &str| json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}});
    let result = |more: Value| {
        let mut result =
            json!({"type": "result", "subtype": "success", "is_error": false, "result": everything});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        result
    };
    let judged = json!({"structured_output": {"verdict": "no", "confidence": 0.9, "reason": everything, "evidence": [TOKEN], TOKEN: TOKEN}});
    let lines =
        |values: &[Value]| values.iter().fold(String::new(), |all, value| all + &value.to_string() + "\n");
    let answers: Vec<String> =
        (1..=4).map(|number| format!("cat said/{number}; cat enc/* token >&2\n")).collect();
    let project = planted(fake_host::project(&["claude"], PROMPTS, &answers));
    // In two texts of an agent, and in two texts of one message.
    let (one, two) = TOKEN.split_at(16);
    let both = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": one}, {"type": "text", "text": two}]}});
    project.write(
        "said/1",
        &lines(&[said(&everything), said(&format!("it is {one}")), said(two), both, result(json!({}))]),
    );
    project.write("said/2", &lines(&[result(judged)]));
    project.write(
        "said/3",
        &lines(&[
            json!({"type": "result", "subtype": "error", "is_error": true, "result": format!("no {TOKEN}")}),
        ]),
    );
    project.write("said/4", TOKEN);
    std::process::Command::new("git").args(["init", "-q"]).current_dir(project.path()).status().unwrap();
    let given = format!("given={TOKEN}");
    let arguments = [
        "run",
        "main",
        "--llm",
        "--no-budget",
        "--record",
        "recorded",
        "--report-dir",
        "reports",
        "--context",
        &given,
    ];
    // What the agent is told stands in a file of the working tree, and no recording may hold that.
    let ran = project.run(&arguments).code(4).says("what the agent changed holds a secret");
    assert!(no_leaks(&project, &[&ran]) > 10);
    std::fs::remove_dir_all(project.at("calls")).unwrap();
    project.write(".gitignore", "/calls\n");
    let ran = project.run(&arguments);
    assert!(fake_host::calls(&project) >= 3, "{}", ran.all());
    assert!(project.exists("recorded"));
    assert!(no_leaks(&project, &[&ran]) > 10);
}

#[test]
fn a_secret_that_is_handed_on_is_nowhere() {
    let text = "name: main\ndescription: x\ninitial: work\nsignals: [handoff]\non_handoff: pause\nstates:\n  work: {action: 'echo \"CONTEXT_HANDOFF: go on with $(cat token)\"', next: done}\n  done: {terminal: true}\n";
    let project = planted(Project::with_loop(text));
    let ran = project.run(&["run", "main", "--report-dir", "reports"]).code(75);
    assert!(project.read("out").contains("go on with ***"), "{}", project.read("out"));
    let again = project.run(&["resume", "main"]);
    assert!(no_leaks(&project, &[&ran, &again]) > 8);
}

#[test]
fn a_password_that_is_a_word_of_the_journal_ends_no_run() {
    let text = "name: main\ndescription: x\ninitial: postgres\nstates:\n  postgres: {action: echo my success, on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true}\n";
    for password in ["success", "postgres", "loop_complete", "terminal"] {
        let project = Project::with_loop(text).env("POSTGRES_PASSWORD", password);
        project.run(&["run", "main"]).code(0);
        assert_eq!(project.end()["event"], "loop_complete", "{password}");
    }
}

/// A run shows its environment to no other process, but can still be stopped by the user who started it.
#[cfg(target_os = "linux")]
#[test]
fn the_environment_of_a_run_is_its_own() {
    use std::os::unix::process::CommandExt as _;

    let text = "name: main\ndescription: x\ninitial: a\nstates:\n  a: {action: 'cat /proc/$PPID/environ /proc/self/environ > seen 2>&1; touch begun; sleep 60', next: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text).env("CI_JOB_TOKEN", "glcbt-0123456789").env("ORDINARY", "1");
    // Root may look everywhere; another user is who a run belongs to in most systems.
    let nobody = 65_534;
    let is_root = rustix::process::getuid().is_root();
    let as_user = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        if is_root {
            command.uid(nobody).gid(nobody);
        }
        command
    };
    if is_root {
        for path in ["", ".loops", ".loops/main.yaml"] {
            std::os::unix::fs::chown(project.at(path), Some(nobody), Some(nobody)).unwrap();
        }
    }
    let mut child = as_user(&["run", "main"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| project.exists("begun"));
    let stopped = Ran::of(&as_user(&["stop", "main"]).output().unwrap()).code(0);
    child.wait().unwrap();
    assert_eq!(project.end()["outcome"], "interrupted", "{}", stopped.all());
    let seen = project.read("seen");
    assert!(seen.contains("/environ: Permission denied") && seen.contains("ORDINARY=1"), "{seen}");
    assert!(!seen.contains("glcbt-0123456789"), "{seen}");
}

#[test]
fn no_colour_takes_a_secret_apart() {
    let text = "\
name: main
initial: check
states:
  check: {action: cat printed, on_yes: done}
  done: {terminal: true}
";
    let printed = "gehe\u{1b}[31mim-12345 \u{1b}[1mbold\u{1b}[0m\n";
    let project = Project::with_loop(text).file("printed", printed).env("MY_TOKEN", "geheim-12345");
    for arguments in
        [["run", "--ci=github", "main"], ["run", "--ci=gitlab", "main"], ["run", "--verbose", "main"]]
    {
        let ran = project.run(&[&["--color", "always"], &arguments[..]].concat()).code(0);
        assert!(ran.stdout.contains("│ *** \u{1b}[1mbold\u{1b}[0m\n"), "{:?}", ran.stdout);
        assert!(!ran.all().contains("im-12345"), "{:?}", ran.all());
        let ran = project.run(&[&["--color", "never"], &arguments[..]].concat()).code(0);
        assert!(ran.stdout.contains("│ *** bold\n"), "{:?}", ran.stdout);
    }
    let reports = project.run_files("").into_iter().filter(|path| path.is_dir());
    let reports = reports.flat_map(|path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
    let files = project.run_files("").into_iter().chain(reports).filter(|path| path.is_file());
    let is_bundle = |path: &Path| path.extension().is_some_and(|end| end == "llz");
    for file in files.filter(|path| !is_bundle(path)) {
        let is_escaped = fs::read(&file).unwrap().contains(&0x1b);
        assert!(!is_escaped || file.extension().is_some_and(|end| end == "log"), "{}", file.display());
    }
}
