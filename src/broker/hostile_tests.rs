//! Requests that mean two things at once, and services that say too much: what a service gets is what was looked at, and the
//! key stays here.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::fault_tests::{ended, terms};
use super::model_service::{KeyHeader, ServiceKey};
use super::{Broker, CallTerms, Upstream};
use crate::forge::github::http::Transport;

const KEY: &str = "sk-of-the-run-0123456789";

const BODY: &str = r#"{"model":"small","max_tokens":10,"messages":[]}"#;

const ANSWER: &str = r#"{"type":"message","model":"small","usage":{"input_tokens":1,"output_tokens":1}}"#;

/// What a service got: heads in small letters, and bodies.
type Got = Arc<Mutex<Vec<(String, String)>>>;

/// A service that says `head`, with everything that it was asked in its body.
fn service(head: &str) -> (u16, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let got = Got::default();
    let (kept, head) = (Arc::clone(&got), head.to_owned());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (got, head) = (Arc::clone(&kept), head.clone());
            thread::spawn(move || while serve(&stream, &head, &got).is_some() {});
        }
    });
    (port, got)
}

fn serve(mut stream: &TcpStream, answer: &str, got: &Got) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    got.lock().unwrap().push((head.clone(), String::from_utf8_lossy(&body).into_owned()));
    let said = if answer.starts_with("200") { ANSWER.to_owned() } else { format!("you sent {head}") };
    write!(stream, "HTTP/1.1 {answer}\r\nx-said: {KEY}\r\ncontent-length: {}\r\n\r\n{said}", said.len()).ok()
}

fn broker() -> Broker {
    Broker::open(Upstream::new(&Transport::default()), "ll-".to_owned()).unwrap()
}

fn terms_with_key(port: u16) -> CallTerms {
    CallTerms { key: ServiceKey::new(KeyHeader::XApiKey, KEY), ..terms(port) }
}

/// Sends bytes as they are, with the token of the call in the place of `TOKEN`, and returns all that comes back.
fn sent(broker: &Broker, token: &str, bytes: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", broker.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    // What is refused early is not read to its end.
    let _refused = stream.write_all(bytes.replace("TOKEN", token).as_bytes());
    let mut answer = Vec::new();
    let _still_open = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn request(first: &str, headers: &str, body: &str) -> String {
    format!("{first}\r\nhost: x\r\nauthorization: Bearer TOKEN\r\n{headers}\r\n\r\n{body}")
}

#[test]
fn what_can_be_read_in_two_ways_reaches_a_service_in_one_or_not_at_all() {
    let long = "x".repeat(1 << 20);
    let length = BODY.len();
    let first_line = "POST /v1/messages HTTP/1.1";
    let of_length = format!("content-length: {length}");
    let chunked = format!("{length:x}\r\n{BODY}\r\n0\r\n\r\n");
    let second = request("POST /v1/files HTTP/1.1", &of_length, BODY);
    let close = "connection: close";
    for (bytes, most) in [
        (request(first_line, &format!("{of_length}\r\n{close}"), BODY), 1),
        (request(first_line, &format!("transfer-encoding: chunked\r\n{close}"), &chunked), 1),
        (
            request(
                first_line,
                &format!("content-length: 4\r\ntransfer-encoding: chunked\r\n{close}"),
                &chunked,
            ),
            1,
        ),
        (
            request(
                first_line,
                &format!("transfer-encoding: chunked\r\ncontent-length: 4\r\n{close}"),
                &chunked,
            ),
            1,
        ),
        (request(first_line, &format!("transfer-encoding: chunked, identity\r\n{close}"), &chunked), 0),
        (request(first_line, &format!("content-length: 4\r\n{of_length}\r\n{close}"), BODY), 0),
        (request(first_line, &format!("content-length: +{length}\r\n{close}"), BODY), 0),
        (request(first_line, &format!("content-length : {length}\r\n{close}"), BODY), 0),
        (request(first_line, &format!("{of_length}\r\n folded: x\r\n{close}"), BODY), 1),
        (request(first_line, &format!("{of_length}\r\nx-evil: a\rx-api-key: b\r\n{close}"), BODY), 0),
        (request(first_line, &format!("{of_length}\r\nx-long: {long}\r\n{close}"), BODY), 0),
        // A tail behind the body is a request of its own, which names no path of the API.
        (request(first_line, &of_length, BODY) + &second, 1),
        (request(first_line, &of_length, &format!("{BODY}POST /v1/files HTTP/1.1\r\n\r\n")), 1),
        (
            request(
                "POST http://evil.example/v1/messages HTTP/1.1",
                &format!("{of_length}\r\n{close}"),
                BODY,
            ),
            1,
        ),
        (request("POST //evil.example/v1/messages HTTP/1.1", &format!("{of_length}\r\n{close}"), BODY), 0),
        (request("CONNECT evil.example:443 HTTP/1.1", close, ""), 0),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 0),
    ] {
        let (port, got) = service("200 OK");
        let broker = broker();
        let pass = broker.admit(terms_with_key(port));
        let said = sent(&broker, pass.token(), &bytes);
        let got = got.lock().unwrap().clone();
        let shown = &bytes[..bytes.len().min(300)];
        assert!(got.len() <= most, "{shown}: {got:?} {said}");
        assert!(got.len() == most || said.is_empty() || said.starts_with("HTTP/1.1 4"), "{shown}: {said}");
        for (head, body) in &got {
            assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
            assert!(head.contains(&format!("\r\nhost: 127.0.0.1:{port}\r\n")), "{head}");
            assert!(!head.contains("transfer-encoding") && !head.contains("evil"), "{head}");
            assert_eq!(head.matches("content-length").count(), 1, "{head}");
            assert_eq!(body, BODY, "{head}");
        }
        drop(ended(pass));
    }
}

#[test]
fn who_begins_a_request_and_does_not_end_it_keeps_nobody_waiting() {
    let (port, got) = service("200 OK");
    let broker = broker();
    let pass = broker.admit(terms_with_key(port));
    let begun: Vec<TcpStream> = (0..100)
        .map(|at| {
            let mut stream = TcpStream::connect(("127.0.0.1", broker.port())).unwrap();
            let begun =
                ["POST /v1/mess", "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"]
                    [at % 2];
            stream.write_all(begun.as_bytes()).unwrap();
            stream
        })
        .collect();
    let whole = request(
        "POST /v1/messages HTTP/1.1",
        &format!("connection: close\r\ncontent-length: {}", BODY.len()),
        BODY,
    );
    let said = sent(&broker, pass.token(), &whole);
    assert!(said.starts_with("HTTP/1.1 200") && got.lock().unwrap().len() == 1, "{said}");
    drop(begun);
    drop(ended(pass));
}

#[test]
fn a_redirection_is_not_followed_and_a_key_that_is_repeated_is_not_handed_on() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let place = elsewhere.local_addr().unwrap();
    for head in [
        format!("307 Temporary Redirect\r\nlocation: http://{place}/v1/messages"),
        "401 Unauthorized".to_owned(),
        "500 Internal Server Error".to_owned(),
        "400 Bad Request".to_owned(),
    ] {
        let (port, got) = service(&head);
        let broker = broker();
        let pass = broker.admit(terms_with_key(port));
        let whole = request(
            "POST /v1/messages HTTP/1.1",
            &format!("connection: close\r\ncontent-length: {}", BODY.len()),
            BODY,
        );
        let said = sent(&broker, pass.token(), &whole);
        assert!(said.starts_with(&format!("HTTP/1.1 {}", &head[..3])), "{said}");
        assert!(got.lock().unwrap()[0].0.contains(&format!("x-api-key: {KEY}")));
        assert!(said.contains("you sent") && said.contains("x-said: ***"), "{said}");
        assert!(!said.contains(KEY), "{said}");
        let report = format!("{:?}", ended(pass));
        assert!(!report.contains(KEY), "{report}");
    }
    assert!(elsewhere.accept().is_err(), "a redirection was followed");
}
