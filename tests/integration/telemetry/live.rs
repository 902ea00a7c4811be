//! A run that is exported when it ends, to collectors that take it, and to such as hang, refuse, lead elsewhere or say too much.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::json;

use super::otlp::spans;
use crate::common::{CHECK_FIX, Project};

/// What a collector was sent: the head of a request, and its body.
struct SentRequest {
    head: String,
    body: Vec<u8>,
}

/// Serves whoever comes with one answer, and tells what they sent. Without an answer it says nothing for ever.
fn collector(answer: Option<&'static str>) -> (String, Receiver<SentRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut waiting = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let Some(request) = received(&mut stream) else { continue };
            let _nobody_listens = tell.send(request);
            match answer {
                Some(answer) => drop(stream.write_all(answer.as_bytes())),
                None => waiting.push(stream),
            }
        }
    });
    (address, told)
}

fn received(stream: &mut TcpStream) -> Option<SentRequest> {
    let mut data = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        data.extend_from_slice(&chunk[..read]);
        let Some(end) = data.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&data[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
        if data.len() >= end + 4 + length.unwrap_or(0) {
            return Some(SentRequest { head, body: data[end + 4..].to_vec() });
        }
    }
}

const TAKEN: &str =
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{}";

fn project(address: &str) -> Project {
    Project::with_loop(CHECK_FIX).env("OTEL_EXPORTER_OTLP_ENDPOINT", address)
}

#[test]
fn spans_and_metrics_are_sent_with_the_headers() {
    let (address, told) = collector(Some(TAKEN));
    let project = project(&address)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2hunter2")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    let ran = project.run(&["run", "main"]).code(0);
    assert!(!ran.all().contains("hunter2"), "{}", ran.all());
    let sent: Vec<SentRequest> = told.try_iter().collect();
    let first: Vec<&str> = sent.iter().filter_map(|request| request.head.lines().next()).collect();
    assert_eq!(first, ["post /v1/traces http/1.1", "post /v1/metrics http/1.1"]);
    assert!(sent[0].head.contains("authorization: bearer hunter2hunter2"), "{}", sent[0].head);
    assert!(sent[0].head.contains("content-type: application/json"), "{}", sent[0].head);
    let body = String::from_utf8(sent[0].body.clone()).unwrap();
    let names: Vec<_> = spans(&body).iter().map(|span| span["name"].clone()).collect();
    assert_eq!(names, [json!("ll-loop main"), json!("check"), json!("fix"), json!("check")]);
}

#[test]
fn what_is_not_taken_is_one_warning_and_not_the_verdict() {
    let answers = [
        // Whose clock is first over, is not said.
        (None, "was not exported"),
        (
            Some(
                "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            ),
            "429",
        ),
        (
            Some(
                "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            ),
            "elsewhere",
        ),
        (Some("HTTP/1.1 500 No\r\ncontent-length: 99999999999\r\nconnection: close\r\n\r\nx"), "500"),
        (Some("this is no HTTP"), "no answer"),
    ];
    for (answer, word) in answers {
        let (address, _told) = collector(answer);
        let ran = project(&address).run(&["run", "main"]).code(0);
        assert_eq!(ran.all().matches("was not exported").count(), 1, "{answer:?}: {}", ran.all());
        assert!(ran.all().contains(word), "{answer:?}: {}", ran.all());
    }
    // Nobody is there.
    let ran = project("http://127.0.0.1:1").run(&["run", "main"]).code(0);
    assert_eq!(ran.all().matches("was not exported").count(), 1, "{}", ran.all());
}

#[test]
fn a_run_that_was_killed_is_exported_once_by_whoever_makes_up_for_its_reports() {
    let (address, told) = collector(Some(TAKEN));
    let text = "name: main\ninitial: wait\nstates:\n  wait: {action: 'touch here; while [ ! -e go ]; do sleep 0.05; done', next: done}\n  \
                done: {terminal: true}\n";
    let project = Project::with_loop(text)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
        .env("OTEL_METRICS_EXPORTER", "none");
    let mut child = project.start_until(&["run", "main", "--report-dir", "reports"], "here");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told.try_iter().count(), 0);
    for _ in 0..2 {
        project.run(&["report", "main", "--format", "result"]).code(0);
    }
    project.write("go", "");
    let sent: Vec<SentRequest> = told.try_iter().collect();
    assert_eq!(sent.len(), 1);
    let body = String::from_utf8(sent[0].body.clone()).unwrap();
    assert!(body.contains("\"cancellation\""), "{body}");
    // What goes on with it sends its own part alone.
    project.run(&["resume", "main"]).code(0);
    assert_eq!(told.try_iter().count(), 1);
}

#[test]
fn an_address_that_is_none_is_said_once() {
    let ran = project("collector:4318").run(&["run", "main"]).code(0);
    let all = ran.all();
    assert!(all.contains("`OTEL_EXPORTER_OTLP_ENDPOINT` is not an address"), "{all}");
    assert_eq!(all.matches("not exported").count(), 1, "{all}");
}

#[test]
fn nothing_is_sent_where_the_environment_says_so() {
    let (address, told) = collector(Some(TAKEN));
    project(&address).env("OTEL_SDK_DISABLED", "true").run(&["run", "main"]).code(0);
    let none = [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
    let quiet = none.into_iter().fold(project(&address), |project, (name, value)| project.env(name, value));
    quiet.run(&["run", "main"]).code(0);
    let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    project(&address).env("TRACEPARENT", unsampled).run(&["run", "main"]).code(0);
    assert_eq!(told.try_iter().count(), 0);
}
