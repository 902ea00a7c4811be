//! The artifact service, its storage and the REST API of artifacts, as small as tests of clients need them: two
//! dialects, and faults at any request. What a real service would refuse is refused here.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::base::text::hex;

/// A token for the run `RUN` and the job `JOB`, not signed.
pub(super) const TOKEN: &str = "e30.eyJzY3AiOiJBY3Rpb25zLkV4YW1wbGUgQWN0aW9ucy5SZXN1bHRzOlJVTjpKT0IifQ.c2ln";

/// The signature of addresses, which comes back broken when somebody decodes and encodes it.
pub(super) const SIG: &str = "sig=c2VjcmV0%2Bsig%3d";

/// Whose service it is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// GitHub's: names are unique, sizes and digests are checked, blocks are put together as the list says.
    Azure,
    /// act's: unknown fields are refused, answers are in camel case, blocks are appended as they come.
    Act,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The answer is this one.
    Answer(u16, &'static str),
    /// The answer has a header as well.
    With(u16, &'static str),
    /// The connection ends before anything is done.
    Drop,
    /// It is done, and the connection ends before the answer.
    Lose,
    /// The answer ends in the middle of its body.
    Cut,
    /// The answer stops in the middle of its body and does not go on.
    Stall,
}

#[derive(Clone, Debug, Default)]
pub(super) struct StoredArtifact {
    id: u64,
    blocks: Vec<(String, Vec<u8>)>,
    pub(super) data: Option<Vec<u8>>,
    is_final: bool,
    pub(super) hash: Value,
    pub(super) created: Value,
}

#[derive(Debug, Default)]
struct FakeState {
    artifacts: BTreeMap<String, StoredArtifact>,
    faults: Vec<(&'static str, u32, Fault)>,
    requests: Vec<String>,
}

/// A running service.
#[derive(Clone)]
pub(super) struct FakeService {
    address: SocketAddr,
    style: Style,
    state: Arc<Mutex<FakeState>>,
}

struct FakeRequest {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

struct FakeAnswer {
    status: u16,
    header: String,
    body: Vec<u8>,
}

impl FakeAnswer {
    fn json(status: u16, body: &Value) -> Self {
        Self { status, header: "Content-Type: application/json".into(), body: body.to_string().into() }
    }

    fn twirp(status: u16, code: &str, msg: &str) -> Self {
        Self::json(status, &json!({"code": code, "msg": msg}))
    }

    fn storage(status: u16, code: &str) -> Self {
        let body = format!("<Error><Code>{code}</Code><Message>{SIG}</Message></Error>");
        Self { status, header: "Content-Type: application/xml".into(), body: body.into() }
    }
}

impl FakeService {
    pub(super) fn start(style: Style) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let service =
            Self { address: listener.local_addr().unwrap(), style, state: Arc::new(Mutex::default()) };
        let this = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let this = this.clone();
                std::thread::spawn(move || this.serve(stream.unwrap()));
            }
        });
        service
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes the next requests whose method and target hold `on` go wrong.
    pub(super) fn fault(&self, on: &'static str, times: u32, fault: Fault) {
        self.state().faults.push((on, times, fault));
    }

    pub(super) fn stored(&self, name: &str) -> StoredArtifact {
        self.state().artifacts[name].clone()
    }

    /// Stores an artifact as another job would.
    pub(super) fn store(&self, name: &str, data: &[u8], hash: Value) {
        let mut state = self.state();
        let id = 1001 + state.artifacts.len() as u64;
        let data = Some(data.to_vec());
        state.artifacts.insert(
            name.to_owned(),
            StoredArtifact { id, data, is_final: true, hash, ..StoredArtifact::default() },
        );
    }

    /// Returns how many requests had this in method and target.
    pub(super) fn count(&self, on: &str) -> usize {
        self.state().requests.iter().filter(|request| request.contains(on)).count()
    }

    fn state(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock().unwrap()
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read(&stream) else { return };
        let name = format!("{} {}", request.method, request.target);
        let fault = {
            let mut state = self.state();
            state.requests.push(name.clone());
            let fault = state.faults.iter_mut().find(|(on, times, _)| *times > 0 && name.contains(on));
            fault.map(|(_, times, fault)| {
                *times -= 1;
                fault.clone()
            })
        };
        let answer = match fault {
            Some(Fault::Drop) => return,
            Some(Fault::Answer(status, body)) => {
                FakeAnswer { status, header: "X-Fault: yes".into(), body: body.into() }
            }
            Some(Fault::With(status, header)) => {
                FakeAnswer { status, header: header.into(), body: Vec::new() }
            }
            Some(Fault::Lose | Fault::Cut | Fault::Stall) | None => self.answer(&request),
        };
        let length = answer.body.len();
        let head = format!(
            "HTTP/1.1 {} x\r\nContent-Length: {length}\r\nConnection: close\r\n{}\r\n\r\n",
            answer.status, answer.header
        );
        let shown = match fault {
            Some(Fault::Lose) => return,
            Some(Fault::Cut | Fault::Stall) => &answer.body[..length / 2],
            _ => &answer.body[..],
        };
        // A client that has given up is no matter of the server.
        let _ended = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(shown));
        if matches!(fault, Some(Fault::Stall)) {
            let _gone = stream.read(&mut [0]);
        }
    }

    fn answer(&self, request: &FakeRequest) -> FakeAnswer {
        let header = |name: &str| {
            let found = request.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        if let Some(method) = path.strip_prefix("/twirp/github.actions.results.api.v1.ArtifactService/") {
            if header("authorization") != Some(&format!("Bearer {TOKEN}")) {
                return FakeAnswer::twirp(401, "unauthenticated", "bad token");
            }
            return self.call(method, &serde_json::from_slice(&request.body).unwrap());
        }
        if let Some(name) = path.strip_prefix("/blob/") {
            if header("authorization").is_some() {
                return FakeAnswer::storage(400, "InvalidAuthenticationInfo");
            }
            if !query.split('&').any(|pair| pair == SIG) {
                return FakeAnswer::storage(403, "AuthenticationFailed");
            }
            return self.blob(request, name, query);
        }
        self.rest(path, header("authorization"))
    }

    fn call(&self, method: &str, request: &Value) -> FakeAnswer {
        let fields: &[&str] = match method {
            "CreateArtifact" => &["name", "version", "expires_at"],
            "FinalizeArtifact" => &["name", "size", "hash"],
            "ListArtifacts" => &["name_filter", "id_filter"],
            "GetSignedArtifactURL" | "DeleteArtifact" => &["name"],
            _ => return FakeAnswer::twirp(404, "bad_route", "no such method"),
        };
        let ids = ["workflow_run_backend_id", "workflow_job_run_backend_id"];
        let is_known = |key: &String| fields.contains(&key.as_str()) || ids.contains(&key.as_str());
        if !request.as_object().unwrap().keys().all(is_known) {
            return FakeAnswer::twirp(500, "internal", "unknown field");
        }
        if request[ids[0]] != "RUN" || request[ids[1]] != "JOB" {
            return FakeAnswer::twirp(403, "permission_denied", "ids");
        }
        let name = request["name"].as_str().unwrap_or_default();
        let address = format!("{}/blob/{name}?se=2030-01-01T00%3A00%3A00Z&{SIG}&sp=cw", self.address());
        let mut state = self.state();
        let next = 1001 + state.artifacts.len() as u64;
        let known = state.artifacts.get_mut(name);
        let answer = match (method, known) {
            ("CreateArtifact", Some(stored)) if stored.is_final && self.style == Style::Azure => {
                return FakeAnswer::twirp(409, "already_exists", "it exists");
            }
            ("CreateArtifact", _) => {
                assert_eq!(request["version"], 4);
                let stored =
                    StoredArtifact { id: next, created: request.clone(), ..StoredArtifact::default() };
                state.artifacts.insert(name.to_owned(), stored);
                json!({"ok": true, "signed_upload_url": address})
            }
            ("FinalizeArtifact", Some(stored)) => {
                let data = stored.data.clone().unwrap_or_default();
                let hash = format!("sha256:{}", hex(&Sha256::digest(&data)));
                if self.style == Style::Azure {
                    if stored.is_final {
                        return FakeAnswer::twirp(409, "already_exists", "it is final");
                    }
                    let size = data.len().to_string();
                    if request["size"] != size || request["hash"] != hash {
                        return FakeAnswer::twirp(400, "invalid_argument", "size or hash");
                    }
                }
                stored.is_final = true;
                stored.hash = request["hash"].clone();
                json!({"ok": true, "artifact_id": stored.id.to_string()})
            }
            ("ListArtifacts", _) => {
                let filter = request["name_filter"].as_str();
                let found = state
                    .artifacts
                    .iter()
                    .filter(|(name, stored)| stored.is_final && filter.is_none_or(|filter| filter == **name));
                let rows: Vec<Value> = found
                    .map(|(name, stored)| {
                        json!({
                            "workflow_run_backend_id": "RUN",
                            "workflow_job_run_backend_id": "JOB",
                            "database_id": stored.id.to_string(),
                            "name": name,
                            "size": stored.data.as_ref().unwrap().len().to_string(),
                            "created_at": "2026-11-20T20:24:38Z",
                            "digest": stored.hash,
                        })
                    })
                    .collect();
                json!({"artifacts": rows})
            }
            ("GetSignedArtifactURL", Some(_)) => json!({"name": name, "signed_url": address}),
            ("DeleteArtifact", Some(stored)) => {
                let id = stored.id.to_string();
                state.artifacts.remove(name);
                json!({"ok": true, "artifact_id": id})
            }
            _ => return FakeAnswer::twirp(404, "not_found", "no such artifact"),
        };
        FakeAnswer::json(200, &if self.style == Style::Act { camel(&answer) } else { answer })
    }

    fn blob(&self, request: &FakeRequest, name: &str, query: &str) -> FakeAnswer {
        let mut state = self.state();
        let stored = state.artifacts.get_mut(name).unwrap();
        let parameter = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key));
        match (request.method.as_str(), parameter("comp=")) {
            ("GET", _) => {
                let body = stored.data.clone().unwrap();
                return FakeAnswer { status: 200, header: "Content-Type: application/zip".into(), body };
            }
            ("PUT", Some("block")) => {
                let id = parameter("blockid=").unwrap().to_owned();
                let is_like = |(other, _): &(String, Vec<u8>)| other.len() == id.len() && *other != id;
                assert!(id.len().is_multiple_of(4) && stored.blocks.iter().all(is_like), "{id}");
                if self.style == Style::Act {
                    stored.data.get_or_insert_default().extend(&request.body);
                }
                stored.blocks.push((id, request.body.clone()));
            }
            ("PUT", Some("blocklist")) if self.style == Style::Azure => {
                let text = String::from_utf8(request.body.clone()).unwrap();
                let ids = text.split("<Latest>").skip(1).map(|rest| rest.split("</Latest>").next().unwrap());
                let mut data = Vec::new();
                for id in ids {
                    match stored.blocks.iter().find(|(known, _)| known == id) {
                        Some((_, block)) => data.extend(block),
                        None => return FakeAnswer::storage(400, "InvalidBlockList"),
                    }
                }
                stored.data = Some(data);
            }
            ("PUT", Some("blocklist")) => drop(stored.data.get_or_insert_default()),
            _ => return FakeAnswer::storage(400, "MissingRequiredHeader"),
        }
        FakeAnswer { status: 201, header: "ETag: x".into(), body: Vec::new() }
    }

    fn rest(&self, path: &str, authorization: Option<&str>) -> FakeAnswer {
        if authorization != Some("Bearer ghs_geheim") {
            return FakeAnswer::json(403, &json!({"message": "Resource not accessible by integration"}));
        }
        let state = self.state();
        let id =
            path.strip_prefix("/repos/o/r/actions/artifacts/").and_then(|rest| rest.strip_suffix("/zip"));
        let found = state.artifacts.iter().find(|(_, stored)| Some(stored.id.to_string().as_str()) == id);
        match found {
            Some((name, _)) => {
                let header = format!("Location: {}/blob/{name}?{SIG}", self.address());
                FakeAnswer { status: 302, header, body: Vec::new() }
            }
            None => FakeAnswer::json(404, &json!({"message": "Not Found"})),
        }
    }
}

fn read(stream: &TcpStream) -> Option<FakeRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(FakeRequest { method, target, headers, body })
}

/// Writes keys as act does, and leaves out what has no value.
fn camel(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let keys = map.iter().filter(|(_, value)| !value.is_null());
            keys.map(|(key, value)| {
                let mut parts = key.split('_');
                let first = parts.next().unwrap().to_owned();
                let rest = parts.map(|part| part[..1].to_uppercase() + &part[1..]);
                (first + &rest.collect::<String>(), camel(value))
            })
            .collect()
        }
        Value::Array(items) => items.iter().map(camel).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
