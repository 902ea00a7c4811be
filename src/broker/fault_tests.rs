//! A thousand calls that ask a service which fails in every way: none costs more than it may, and each is charged at
//! least what it cost.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::model_service::{KeyHeader, ServiceApi, ServiceKey};
use super::{Broker, CallTerms, Dollars, GivenPrice, PriceList, Upstream, WireCaps, WireReport};
use crate::base::text::first_line;
use crate::forge::github::http::Transport;

const CALLS: usize = 1_000;

/// Calls that go on at the same time.
const AT_ONCE: usize = 25;

/// What a token costs, in microdollars.
const INPUT: u64 = 3;
const OUTPUT: u64 = 15;

/// What a call may cost, in microdollars.
const CAP: u64 = 3_000;

/// What the service does with a request.
const WAYS: [&str; 11] =
    ["answer", "cut", "529", "slow", "lie", "429", "cut-early", "silence", "500", "hang-up", "over"];

/// What each call has cost, by what the service knows.
type Account = Arc<Mutex<HashMap<String, u64>>>;

fn service() -> (u16, Account) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let account = Account::default();
    let kept = Arc::clone(&account);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let account = Arc::clone(&kept);
            thread::spawn(move || while serve(&stream, &account).is_some() {});
        }
    });
    (port, account)
}

/// Reads a request or an answer: its headers in small letters, and its body.
fn read(stream: &TcpStream) -> Option<(HashMap<String, String>, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some((name, value)) => drop(headers.insert(name.to_ascii_lowercase(), value.to_owned())),
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((headers, body))
}

/// Serves one request; nothing where no more come.
fn serve(mut stream: &TcpStream, account: &Account) -> Option<()> {
    let (headers, body) = read(stream)?;
    let way = headers.get("x-way")?.as_str();
    assert!(
        headers.get("x-api-key").is_some_and(|key| key == "the-key")
            && !headers.contains_key("authorization")
    );
    if let Ok(status) = way.parse::<u16>() {
        let text = r#"{"type":"error","error":{"type":"overloaded_error"}}"#;
        write!(stream, "HTTP/1.1 {status} Failed\r\ncontent-length: {}\r\n\r\n{text}", text.len()).ok()?;
        return Some(());
    }
    let asked: Value = serde_json::from_slice(&body).ok()?;
    let (input, output) = (body.len() as u64 / 3, asked["max_tokens"].as_u64()?);
    *account.lock().unwrap().entry(headers.get("x-call")?.clone()).or_default() +=
        input * INPUT + output * OUTPUT;
    if way == "hang-up" {
        let _gone = stream.shutdown(Shutdown::Both);
        return None;
    }
    let usage = match way {
        "silence" => Value::Null,
        "lie" => json!({"input_tokens": -5, "output_tokens": "many"}),
        "over" => json!({"input_tokens": input, "output_tokens": output + 1_000_000}),
        _ => json!({"input_tokens": input, "output_tokens": output}),
    };
    let events = [
        json!({"type": "message_start", "message": {"model": "small", "usage": usage}}),
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "so it is"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let mut text = String::new();
    for event in &events {
        let kind = event["type"].as_str().unwrap();
        text.extend([format!("event: {kind}\ndata: {event}\n\n")]);
    }
    let length = match way {
        "cut" => text.len() / 2,
        "cut-early" => 3,
        _ => text.len(),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        text.len()
    )
    .ok()?;
    for piece in text.as_bytes()[..length].chunks(if way == "slow" { 60 } else { 4096 }) {
        stream.write_all(piece).ok()?;
        if way == "slow" {
            thread::sleep(Duration::from_millis(1));
        }
    }
    if length < text.len() {
        let _gone = stream.shutdown(Shutdown::Both);
        return None;
    }
    Some(())
}

/// Asks the broker as a CLI does, and returns the first line of the answer.
fn ask(port: u16, token: &str, call: usize, way: &str, longest: usize) -> String {
    let body = json!({"model": "small", "max_tokens": longest, "stream": true,
                      "messages": [{"role": "user", "content": "x".repeat(call % 300)}]})
    .to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nx-call: {call}\r\nx-way: {way}\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    if call % 9 == 4 && way == "slow" {
        // A CLI that is ended in the middle of an answer.
        let _begun = stream.read(&mut [0; 200]);
        return String::new();
    }
    let mut answer = Vec::new();
    let _cut = stream.read_to_end(&mut answer);
    first_line(&String::from_utf8_lossy(&answer)).to_owned()
}

pub(super) fn terms(port: u16) -> CallTerms {
    CallTerms {
        policy: Arc::default(),
        api: ServiceApi::Anthropic,
        base: format!("http://127.0.0.1:{port}").parse().unwrap(),
        key: ServiceKey::new(KeyHeader::XApiKey, "the-key"),
        caps: WireCaps { cost: Some(Dollars::allowed(micro(CAP))), ..WireCaps::default() },
        prices: Arc::new(PriceList::new([("small".to_owned(), GivenPrice { input: 3.0, output: 15.0 })])),
        cassette: None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a test spends little")]
fn micro(dollars: u64) -> f64 {
    dollars as f64 / 1e6
}

pub(super) fn ended(pass: super::CallPass) -> WireReport {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(pass.end())
}

/// Makes a call of some requests, and checks what it came to.
fn call(broker: &Broker, service: u16, account: &Account, number: usize) {
    let pass = broker.admit(terms(service));
    for at in 0..=(number % 4) {
        let way = WAYS[(number * 7 + at * 3) % WAYS.len()];
        let is_stranger = (number + at) % 13 == 5;
        let token = if is_stranger { "ll-of-another" } else { pass.token() };
        let said = ask(broker.port(), token, number, way, 10 + (number * 31 + at * 17) % 120);
        assert!(!is_stranger || said.is_empty() || said.contains(" 401 "), "{number} {way}: {said}");
    }
    check(pass, account, number);
}

fn check(pass: super::CallPass, account: &Account, number: usize) {
    let report = ended(pass);
    let cost = micro(account.lock().unwrap().get(&number.to_string()).copied().unwrap_or_default());
    let charged = report.cost.unwrap().usd();
    assert!(cost <= charged + 1e-9 && cost <= micro(CAP) + 1e-9, "{number}: {cost} {report:?}");
}

#[test]
fn a_thousand_calls_of_a_failing_service_stay_within_their_caps() {
    let (service, account) = service();
    let broker = Broker::open(Upstream::new(&Transport::default()), "ll-".to_owned()).unwrap();
    thread::scope(|scope| {
        for first in 0..AT_ONCE {
            let (broker, account) = (&broker, &account);
            scope.spawn(move || {
                for number in (first..CALLS).step_by(AT_ONCE) {
                    call(broker, service, account, number);
                }
            });
        }
    });
    assert!(broker.take_strangers() > 0);
    let cost: u64 = account.lock().unwrap().values().sum();
    assert!(cost > 0, "nothing was asked");
}

#[test]
fn two_hundred_requests_at_once_stay_within_one_cap() {
    let (service, account) = service();
    let broker = Broker::open(Upstream::new(&Transport::default()), "ll-".to_owned()).unwrap();
    let pass = broker.admit(terms(service));
    thread::scope(|scope| {
        for at in 0..200 {
            let (broker, token) = (&broker, pass.token());
            scope.spawn(move || ask(broker.port(), token, 7, WAYS[at % WAYS.len()], 20));
        }
    });
    check(pass, &account, 7);
}
