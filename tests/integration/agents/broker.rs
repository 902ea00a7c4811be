//! The broker, between a CLI that is played by a script and a service that is played by a thread: who gets which key, what
//! is let through, and what it comes to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Project, Ran, git};
use crate::fake_host;

/// What the models of the tests cost, in microdollars for a token.
const INPUT: u64 = 3;
const OUTPUT: u64 = 15;

const LOOP: &str = "name: main
description: an agent that asks its service
initial: ask
broker: auto
context: {seen: '${env.ANTHROPIC_API_KEY:default=nothing}'}
llm: {prices: {small: {input: 3, output: 15}}}
states:
  ask: {action: '/ask', evaluate: {type: exit_code}, on_yes: look, on_no: bad, on_error: bad}
  look: {action: 'env > look.env; echo ${context.seen:shell} > look.template', next: done}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
";

/// Asks the service what a plan says, in turn or all at once, and says so as claude does. It also looks for the key in
/// everything that the system shows of processes.
const ASK: &str = r#"
import concurrent.futures, glob, json, os, sys, urllib.error, urllib.request
plan, key = json.loads(sys.argv[1]), sys.argv[2]
took = [0, 0]
def ask(one):
    body = {"model": one.get("model", "small"), "max_tokens": one.get("longest", 50), "stream": one.get("stream", True),
            "messages": [{"role": "user", "content": "x" * one.get("length", 10)}]}
    headers = {"content-type": "application/json", "x-want": one.get("want", "answer"),
               "authorization": "Bearer " + one.get("token", os.environ.get("ANTHROPIC_AUTH_TOKEN", ""))}
    address = os.environ["ANTHROPIC_BASE_URL"] + one.get("path", "/v1/messages?beta=true")
    try:
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        text = urllib.request.urlopen(request, timeout=60).read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except Exception as error:
        return f"cut {error!r}"
    for line in text.splitlines():
        event = json.loads(line[5:]) if line.startswith("data:") else {}
        counts = event.get("usage") or event.get("message", {}).get("usage")
        if isinstance(counts, dict) and event["type"] == "message_delta" and isinstance(counts["output_tokens"], int):
            took[0] += counts["input_tokens"]
            took[1] += counts["output_tokens"]
    return None
if len(plan) > 1 and plan[0].get("together"):
    with concurrent.futures.ThreadPoolExecutor(len(plan)) as pool:
        said = list(pool.map(ask, plan))
else:
    said = []
    for one in plan:
        said.append(ask(one))
        if said[-1] and not one.get("go_on"):
            break
found = []
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        text = open(path, "rb").read()
    except OSError:
        continue
    if key[::-1].encode() in text and str(os.getpid()) not in path:
        found.append(path)
open("found", "w").write(json.dumps(found))
open("said", "w").write("\n".join(one for one in said if one))
error = next((one for one in said if one), None)
usage = {"input_tokens": took[0], "output_tokens": took[1]}
result = {"type": "result", "subtype": "success", "is_error": bool(error), "result": error or "done", "usage": usage}
if error and error[:3].isdigit():
    result["api_error_status"] = int(error[:3])
print(json.dumps(result))
sys.exit(1 if error else 0)
"#;

/// What a service has seen and given.
#[derive(Default)]
struct Given {
    /// Method, path, and the headers in small letters.
    requests: Vec<(String, Vec<String>)>,
    /// What it has taken for its answers, in microdollars.
    cost: u64,
}

/// A service that does what a request wants of it, and keeps an account that is true.
struct Service {
    port: u16,
    given: Arc<Mutex<Given>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let given = Arc::new(Mutex::new(Given::default()));
        let shared = Arc::clone(&given);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let given = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &given));
            }
        });
        Self { port, given }
    }

    /// A key that no other test has, for every process of the machine is looked at.
    fn key(&self) -> String {
        format!("sk-secret-{}-0123456789", self.port)
    }

    fn requests(&self) -> Vec<(String, Vec<String>)> {
        self.given.lock().unwrap().requests.clone()
    }

    /// In US dollars.
    #[expect(clippy::cast_precision_loss, reason = "a test spends little")]
    fn cost(&self) -> f64 {
        self.given.lock().unwrap().cost as f64 / 1e6
    }
}

/// Answers the requests of a connection.
fn serve(stream: &TcpStream, given: &Mutex<Given>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                break;
            }
            headers.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            let found = headers.iter().filter_map(|line| line.split_once(": "));
            found.filter(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let want = header("x-want").unwrap_or_default();
        let path = first.split(' ').take(2).collect::<Vec<_>>().join(" ");
        given.lock().unwrap().requests.push((path.clone(), headers.clone()));
        if path.contains("count_tokens") || !path.contains("/v1/messages") {
            answer(stream, "404 Not Found", "{}", None);
            continue;
        }
        if let Ok(status) = want.parse::<u16>() {
            answer(
                stream,
                &format!("{status} Failed"),
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                None,
            );
            continue;
        }
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let longest = asked["max_tokens"].as_u64().unwrap();
        // It takes a token for three bytes, and answers as long as it may.
        let input = body.len() as u64 / 3;
        given.lock().unwrap().cost += input * INPUT + longest * OUTPUT;
        let usage = match want.as_str() {
            "silence" => Value::Null,
            "lie" => json!({"input_tokens": -5, "output_tokens": "many"}),
            _ => json!({"input_tokens": input, "output_tokens": longest}),
        };
        let start = if usage.is_object() {
            json!({"input_tokens": input, "output_tokens": 1})
        } else {
            usage.clone()
        };
        let events = [
            json!({"type": "message_start", "message": {"model": "small", "usage": start}}),
            json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "so it is"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
            json!({"type": "message_stop"}),
        ];
        let texts =
            events.map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
        let text = texts.concat();
        let cut = match want.as_str() {
            "cut" => Some(text.len() / 2),
            "cut-early" => Some(3),
            _ => None,
        };
        if want == "slow" {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            let mut stream = stream;
            stream.write_all(head.as_bytes()).unwrap();
            for piece in text.as_bytes().chunks(40) {
                let _gone = stream.write_all(piece);
                thread::sleep(Duration::from_millis(2));
            }
            continue;
        }
        answer(stream, "200 OK", &text, cut);
        if cut.is_some() {
            return;
        }
    }
}

fn answer(mut stream: &TcpStream, status: &str, text: &str, cut: Option<usize>) {
    let length = text.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
    let text = &text[..cut.unwrap_or(text.len())];
    let _gone = stream.write_all((head + text).as_bytes());
    if cut.is_some() {
        let _gone = stream.shutdown(Shutdown::Both);
    }
}

/// A project whose agent asks a service what a plan says.
fn project(service: &Service, text: &str, plan: &Value) -> Project {
    // Nobody finds the key by looking for whoever looks for it.
    let reversed: String = service.key().chars().rev().collect();
    let answer = format!("python3 ask.py '{plan}' {reversed}");
    let project = fake_host::project(&["claude"], text, &[answer]);
    project.write("ask.py", ASK);
    project
        .env("ANTHROPIC_API_KEY", service.key())
        .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}/gateway", service.port))
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "main", "--llm", "--yes", "--no-ci", "--report-dir", "report"], more].concat())
}

/// Returns the warnings of the journal.
fn warnings(project: &Project) -> Vec<String> {
    let events = project.events().into_iter().filter(|event| event["event"] == "warning");
    events.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_key_is_with_the_broker_and_nowhere_else() {
    let service = Service::start();
    let project = project(&service, LOOP, &json!([{}]));
    let ran = run(&project, &[]).code(0);
    assert!(ran.stderr.contains("key: with the broker (`ANTHROPIC_API_KEY`)"), "{}", ran.all());
    let requests = service.requests();
    assert_eq!(requests.len(), 1);
    let (path, headers) = &requests[0];
    assert_eq!(path, "POST /gateway/v1/messages?beta=true");
    assert!(headers.contains(&format!("x-api-key: {}", service.key())), "{headers:?}");
    assert!(
        !headers.iter().any(|header| header.to_ascii_lowercase().starts_with("authorization")),
        "{headers:?}"
    );
    let env = project.read("calls/1.env");
    assert!(
        env.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:") && env.contains("ANTHROPIC_AUTH_TOKEN=ll-"),
        "{env}"
    );
    assert!(
        !env.contains("ANTHROPIC_API_KEY") && !project.read("look.env").contains("ANTHROPIC_API_KEY"),
        "{env}"
    );
    assert_eq!(project.read("look.template"), "nothing\n");
    for text in [env, project.read("look.env"), ran.all(), project.read("report/result.json")] {
        assert!(!text.contains(&service.key()), "{text}");
    }
    assert_eq!(project.read("found"), "[]");
    let usage =
        project.events().into_iter().find(|event| event["event"] == "action_complete").unwrap()["usage"]
            .take();
    assert_eq!(usage["wire"], json!({"requests": 1, "refused": 0, "failed": 0}));
    assert_eq!(
        (usage["output_tokens"].as_u64(), usage["cost_usd"].as_f64()),
        (Some(50), Some(service.cost()))
    );
}

#[test]
fn no_request_is_let_through_that_could_go_over_the_cap() {
    for plan in [
        json!(vec![json!({"longest": 500}); 9]),
        json!(vec![json!({"longest": 500, "stream": false}); 9]),
        json!(vec![json!({"longest": 500, "together": true}); 30]),
        json!([{"longest": 500, "want": "cut", "go_on": true}, {"longest": 500, "want": "lie"}, {"longest": 500}, {"longest": 500}]),
        json!([{"longest": 500, "want": "cut-early", "go_on": true}, {"longest": 500, "want": "silence"}, {"longest": 500}, {"longest": 500}]),
    ] {
        let service = Service::start();
        let project = project(&service, LOOP, &plan);
        let ran = run(&project, &["--max-cost", "0.02"]).code(6);
        assert!(service.cost() > 0.0 && service.cost() <= 0.02, "{} {}", service.cost(), ran.all());
        assert!(ran.stdout.contains("of the budget is left"), "{}", ran.all());
        let said = project.read("said");
        assert!(said.contains(r#"400 {"type":"error","error":{"type":"invalid_request_error","message":"the budget of this run"#), "{said}");
        let spent = project.state()["budget"]["cost_usd"].as_f64().unwrap();
        assert!(service.cost() <= spent + 1e-9 && spent <= 0.02 + 1e-9, "{spent} {}", service.cost());
    }
}

#[test]
fn a_request_without_a_price_does_not_undo_the_cap() {
    // The CLI says that nothing cost anything, and one of its requests is for a model that nobody has a price for.
    let free = ASK.replace(r#""usage": usage}"#, r#""usage": usage, "total_cost_usd": 0}"#);
    let plan =
        json!([{"longest": 500}, {"model": "nobody-knows", "longest": 1, "go_on": true}, {"longest": 500}]);
    let service = Service::start();
    let project = project(&service, LOOP, &plan);
    project.write("ask.py", &free);
    let ran = run(&project, &["--max-cost", "0.02"]);
    let answered = service.requests().iter().filter(|(path, _)| !path.contains("count_tokens")).count();
    assert_eq!(answered, 2, "{}", ran.all());
    assert!(project.read("said").contains("400"), "{}", ran.all());
    let spent = |project: &Project| project.state()["budget"]["cost_usd"].as_f64().unwrap();
    assert!((spent(&project) - service.cost()).abs() < 1e-9, "{} {}", spent(&project), service.cost());

    // Where the loop allows such requests, what the others cost counts, whatever the CLI says.
    let service = Service::start();
    let allowed = LOOP.replace("broker: auto\n", "broker: auto\nbudget: {cost_usd: 1, unpriced: allow}\n");
    let project = self::project(
        &service,
        &allowed,
        &json!([{"longest": 500}, {"model": "nobody-knows", "longest": 1}]),
    );
    project.write("ask.py", &free);
    let ran = run(&project, &[]).code(0);
    assert!(service.cost() > 0.0 && spent(&project) > 0.0, "{} {}", spent(&project), ran.all());
}

#[test]
fn faults_of_a_service_never_lead_over_a_cap() {
    let wants = ["answer", "cut", "529", "slow", "lie", "429", "cut-early", "silence", "500", "answer"];
    let one = |at: usize| {
        let token = if at % 17 == 3 { json!("ll-of-another") } else { Value::Null };
        let mut one = json!({"longest": 20 + at % 90, "length": at % 700, "want": wants[at % wants.len()], "together": true});
        if token.is_string() {
            one["token"] = token;
        }
        one
    };
    let plan: Vec<Value> = (0..200).map(one).collect();
    let service = Service::start();
    let project = project(&service, LOOP, &json!(plan));
    let ran = run(&project, &["--max-cost", "0.05"]);
    let spent = project.state()["budget"]["cost_usd"].as_f64().unwrap();
    assert!(
        service.cost() <= spent + 1e-9 && spent <= 0.05 + 1e-9,
        "{spent} {} {}",
        service.cost(),
        ran.all()
    );
    assert!(
        warnings(&project).iter().any(|warning| warning.contains("requests without the token of a call"))
    );
}

#[test]
fn only_the_api_is_asked_and_only_with_the_token_of_the_call() {
    for (plan, status, warned) in [
        (json!([{"token": "ll-guessed"}]), "401", "the broker refused 1 request without the token"),
        (json!([{"token": ""}]), "401", "the broker refused 1 request without the token"),
        (json!([{"path": "/v1/files"}]), "404", ""),
        (json!([{"path": "/v1/messages/../organizations"}]), "404", ""),
        (json!([{"path": "/v1/messages/batches"}]), "404", ""),
        (json!([{"path": "/gateway/v1/messages"}]), "404", ""),
    ] {
        let service = Service::start();
        let project = project(&service, LOOP, &plan);
        let ran = run(&project, &[]).code(69);
        assert!(project.read("said").starts_with(status), "{}", ran.all());
        assert_eq!(service.requests().len(), 0, "{plan}");
        let is_warned = warnings(&project).iter().any(|warning| warning.contains(warned));
        assert!(is_warned || warned.is_empty(), "{}", ran.all());
    }
}

#[test]
fn a_service_that_fails_is_asked_a_few_times() {
    let service = Service::start();
    let plan = vec![json!({"want": "529", "go_on": true}); 30];
    let project = project(&service, LOOP, &json!(plan));
    let ran = run(&project, &[]).code(69);
    assert!(ran.stdout.contains("the service answered with 529, 8 times"), "{}", ran.all());
    // Four calls, and eight requests of each.
    assert_eq!(service.requests().len(), 32);
}

#[test]
fn what_a_host_says_of_itself_is_compared_with_the_wire() {
    let service = Service::start();
    let project = project(&service, LOOP, &json!([{}]));
    project.write("ask.py", &ASK.replace("took[0] += ", "took[0] += 7 + "));
    let _ran = run(&project, &[]).code(0);
    let warnings = warnings(&project);
    assert!(warnings.iter().any(|warning| warning.contains("which counts")), "{warnings:?}");
}

#[test]
fn who_holds_the_key_is_said_at_the_start() {
    let service = Service::start();
    let in_ci = ["run", "main", "--llm", "--ci=plain", "--max-llm-calls", "3", "--no-strict"];
    let silent = LOOP.replace("broker: auto\n", "");
    let off = LOOP.replace("broker: auto", "broker: off");
    for (text, more, held) in [
        (silent.as_str(), &[][..], "key: with the broker"),
        (LOOP, &["--broker", "off"], "key: in the host's hands (`broker: off`)"),
        (&off, &[], "key: in the host's hands (`broker: off`)"),
        (&off, &["--broker", "auto"], "key: with the broker"),
    ] {
        let project = project(&service, text, &json!([{}]));
        let ran = project.run(&[&in_ci, more].concat());
        assert!(ran.stderr.contains(held), "{}", ran.all());
        let has_key = project.read("calls/1.env").contains(&service.key());
        assert_eq!(has_key, held.contains("hands"), "{}", ran.all());
    }
    let local = project(&service, &silent, &json!([{}]));
    let ran = run(&local, &[]);
    assert!(
        !ran.stderr.contains("key: ") && local.read("calls/1.env").contains(&service.key()),
        "{}",
        ran.all()
    );
}

#[test]
fn a_key_in_the_hands_of_a_host_is_refused_where_strangers_set_off_the_run() {
    let service = Service::start();
    let in_ci = ["run", "main", "--llm", "--ci=plain", "--max-llm-calls", "3", "--no-strict"];
    let of = |more: &[&str]| {
        let project = project(&service, LOOP, &json!([{}])).env("GITHUB_EVENT_NAME", "pull_request");
        project.run(&[&in_ci, more].concat())
    };
    let ran = of(&["--broker", "off"]).code(2);
    assert!(ran.stderr.contains("strangers can set off the event `pull_request`"), "{}", ran.all());
    let ran = of(&[]);
    assert!(ran.stderr.contains("key: with the broker"), "{}", ran.all());
    let subscription = fake_host::project(&["claude"], LOOP, &["exit 1".to_owned()])
        .env("CLAUDE_CODE_OAUTH_TOKEN", service.key())
        .env("GITHUB_EVENT_NAME", "pull_request");
    let ran = subscription.run(&in_ci).code(2);
    assert!(ran.stderr.contains("key: in the host's hands (it has a login of its own"), "{}", ran.all());
}

#[test]
fn no_key_goes_over_a_network_as_it_is() {
    let service = Service::start();
    let project = project(&service, LOOP, &json!([{}])).env("ANTHROPIC_BASE_URL", "http://gateway.example");
    let ran = run(&project, &[]).code(2);
    assert!(ran.stderr.contains("names a service that is not asked over TLS"), "{}", ran.all());
}

#[test]
fn the_token_of_a_call_is_masked_like_any_secret() {
    let service = Service::start();
    let text = LOOP.replace("env > look.env", "cat token; env > look.env");
    // It writes its token down for the test, and says it in every way.
    let say = r#"printf '%s' "$ANTHROPIC_AUTH_TOKEN" > token; echo "stderr $ANTHROPIC_AUTH_TOKEN" >&2; base64 -w0 token >&2
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'$ANTHROPIC_AUTH_TOKEN'"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"it is '$ANTHROPIC_AUTH_TOKEN'","usage":{"input_tokens":1,"output_tokens":1}}'"#;
    let project = fake_host::project(&["claude"], &text, &[say.to_owned()]);
    let project = project
        .in_github_job()
        .env("ANTHROPIC_API_KEY", service.key())
        .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", service.port));
    let in_ci = ["run", "main", "--llm", "--yes", "--sandbox", "off", "--no-strict", "--max-llm-calls", "3"];
    let ran = project.run(&[&in_ci, &["--record", "rec", "--report-dir", "report"][..]].concat());
    let token = project.read("token");
    assert_eq!(token.len(), "ll-".len() + 64, "{}", ran.all());
    let told: Vec<_> = ran.stdout.lines().filter_map(|line| line.strip_prefix("::add-mask::")).collect();
    assert_eq!(told, [&token[..35]], "{}", ran.all());
    let shown = ran.all().replace(&format!("::add-mask::{}", &token[..35]), "");
    let mut texts = vec![shown];
    for directory in ["report", "rec", ".loops"] {
        let files =
            std::process::Command::new("find").arg(project.at(directory)).args(["-type", "f"]).output();
        let files = String::from_utf8(files.unwrap().stdout).unwrap();
        texts.extend(
            files.lines().map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned()),
        );
    }
    assert!(texts.len() > 5, "{}", ran.all());
    for text in texts {
        for part in [&token[..35], &token[35..], &base64_of(&token)[..40]] {
            assert!(!text.contains(part), "{part} {text}");
        }
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Returns the names of the files of a directory.
fn names(project: &Project, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(project.at(directory)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Returns a project like the one that was recorded, with the recording and without key and service.
fn elsewhere(recorded: &Project, service: &Service, plan: &Value) -> Project {
    let reversed: String = service.key().chars().rev().collect();
    let project = fake_host::project(&["claude"], LOOP, &[format!("python3 ask.py '{plan}' {reversed}")]);
    project.write("ask.py", ASK);
    for name in names(recorded, "rec/wire") {
        project.write(&format!("rec/wire/{name}"), &recorded.read(&format!("rec/wire/{name}")));
    }
    project
}

#[test]
fn what_went_over_the_wire_is_given_again_without_key_and_service() {
    let service = Service::start();
    let plan = json!([{}, {"length": 30, "stream": false}]);
    let recorded = project(&service, LOOP, &plan);
    let _ran = run(&recorded, &["--record", "rec"]);
    let names = names(&recorded, "rec/wire");
    assert_eq!(names.len(), 2, "{names:?}");
    for name in &names {
        let text = recorded.read(&format!("rec/wire/{name}"));
        assert!(!text.contains(&service.key()) && !text.contains("ll-"), "{text}");
    }
    let asked = service.requests().len();
    let again = |plan: &Value| {
        let project = elsewhere(&recorded, &service, plan);
        let ran = project.run(&[
            "run",
            "main",
            "--replay",
            "rec/wire",
            "--yes",
            "--no-ci",
            "--report-dir",
            "report",
        ]);
        (project, ran)
    };
    let (project, ran) = again(&plan);
    let ran = ran.code(0);
    assert!(ran.stderr.contains("the recording plays"), "{}", ran.all());
    assert_eq!((service.requests().len(), project.read("said").as_str()), (asked, ""), "{}", ran.all());
    let usage =
        &project.events().into_iter().find(|event| event["event"] == "action_complete").unwrap()["usage"];
    assert_eq!(usage["wire"], json!({"requests": 2, "refused": 0, "failed": 0}));
    assert_eq!(usage["output_tokens"], json!(100));
    // The same request once more than it was answered, and one that was not recorded.
    let (_, ran) = again(&json!([{}, {}]));
    let ran = ran.code(69);
    assert!(ran.all().contains("was answered 1 times, and is asked once more"), "{}", ran.all());
    let (_, ran) = again(&json!([{"length": 11}]));
    let ran = ran.code(69);
    assert!(
        ran.all().contains("no recorded answer at the wire") && ran.all().contains("+ asked"),
        "{}",
        ran.all()
    );
    assert_eq!(service.requests().len(), asked);
}

#[test]
fn recorded_answers_come_before_those_at_the_wire() {
    let service = Service::start();
    let project = project(&service, LOOP, &json!([{}]));
    git(&project, &["init", "-q"]);
    // What the run and the agent of this test leave is no change.
    project.write(".gitignore", "*\n!new\n");
    let _ran = run(&project, &["--record", "rec"]).code(0);
    let replay = ["run", "main", "--replay", "rec", "--no-ci"];
    let _ran = project.run(&replay).code(0);
    assert_eq!((fake_host::calls(&project), service.requests().len()), (1, 1));
    // In another tree, the agent does its work again.
    project.write("new", "");
    let _ran = project.run(&replay).code(0);
    assert_eq!((fake_host::calls(&project), service.requests().len()), (2, 1));
    // Nobody is started where the key is to be in the hands of the host, or the agent is not there.
    for more in [&["--broker", "off"][..], &["--host", "gemini"]] {
        let ran = project.run(&[&replay, more].concat()).code(69);
        assert!(ran.all().contains("no recorded answer"), "{}", ran.all());
    }
}
