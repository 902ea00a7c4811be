//! The service in two dialects, artifacts of all sizes, and everything that goes wrong on the way.

use std::io::{Read as _, Seek as _, Write as _};

use proptest::prelude::*;

use super::super::fake::{FakeService, Fault, SIG, Style, TOKEN};
use super::super::testing::Pauses;
use super::*;

const MIB: usize = 1 << 20;

fn results(service: &FakeService, pauses: &Pauses) -> Results {
    with(service, Transport::default().pause(pauses.pause()))
}

fn with(service: &FakeService, transport: Transport) -> Results {
    Results::new(&format!("{}/any/path", service.address()), TOKEN.to_owned(), transport).unwrap()
}

/// A file of bytes that repeat nowhere near.
fn file(size: usize) -> (tempfile::NamedTempFile, Vec<u8>) {
    let bytes: Vec<u8> = (0..size).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[4]).collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes).unwrap();
    (file, bytes)
}

fn content(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[track_caller]
fn check_size(style: Style, size: usize, blocks: usize) {
    let service = FakeService::start(style);
    let results = results(&service, &Pauses::none());
    let (zip, bytes) = file(size);
    let uploaded = results.upload("state", zip.path(), None).unwrap();
    assert_eq!((uploaded.id, uploaded.size), (1001, size as u64));
    assert_eq!(uploaded.secrets, ["c2VjcmV0%2Bsig%3d", "c2VjcmV0+sig="]);
    assert_eq!(uploaded.digest, format!("sha256:{}", hex(&Sha256::digest(&bytes))));
    assert!(service.stored("state").data.as_deref() == Some(&bytes[..]), "other bytes were stored");
    assert_eq!(service.count("comp=block&"), blocks);

    let mut into = tempfile::tempfile().unwrap();
    into.write_all(b"what was there before, and longer").unwrap();
    let downloaded = results.download("state", &mut into, size as u64).unwrap();
    assert!(content(&mut into) == bytes, "other bytes came");
    assert_eq!((downloaded.id, downloaded.size, downloaded.verified), (1001, size as u64, true));
    assert_eq!((downloaded.digest, downloaded.secrets), (uploaded.digest, uploaded.secrets));
}

#[test]
fn artifacts_of_any_size_come_back_as_they_were() {
    for style in [Style::Azure, Style::Act] {
        check_size(style, 0, 0);
        check_size(style, 1, 1);
        check_size(style, 8 * MIB, 1);
        check_size(style, 8 * MIB + 1, 2);
        check_size(style, 20 * MIB, 3);
    }
}

/// What an upload and a download of a small artifact come to while something goes wrong so many times: the pauses in
/// whole seconds, or the error and what to do.
#[track_caller]
fn check(on: &'static str, times: u32, fault: &Fault, expect: Result<&[u64], (&str, Option<&str>)>) {
    for style in [Style::Azure, Style::Act] {
        let service = FakeService::start(style);
        let pauses = Pauses::default();
        let mut transport = Transport::default().pause(pauses.pause());
        if matches!(fault, Fault::Stall) {
            transport = transport.idle(Duration::from_secs(1));
        }
        let results = with(&service, transport);
        let (zip, bytes) = file(1000);
        service.fault(on, times, fault.clone());
        let mut into = tempfile::tempfile().unwrap();
        let result = results
            .upload("state", zip.path(), None)
            .and_then(|_| results.download("state", &mut into, 1000));
        match (result, expect) {
            (Ok(downloaded), Ok(expect)) => {
                assert!(downloaded.verified && content(&mut into) == bytes, "{style:?} {on}");
                // A pause begins at its value and is up to half as long again.
                let waited = pauses.seconds();
                assert_eq!(waited.len(), expect.len(), "{style:?} {on}: {waited:?}");
                for (waited, least) in waited.iter().zip(expect) {
                    assert!((*least..=least * 3 / 2).contains(waited), "{style:?} {on}: {waited}");
                }
            }
            (Err(error), Err((message, help))) => {
                assert_eq!(error.to_string(), message, "{style:?} {on}");
                assert_eq!(error.help().as_deref(), help, "{style:?} {on}");
                let shown = format!("{error} {error:?} {results:?}");
                assert!(!shown.contains("c2VjcmV0") && !shown.contains("eyJzY3"), "{shown}");
            }
            (result, expect) => panic!("{style:?} {on} {fault:?}: {result:?}, expected {expect:?}"),
        }
    }
}

const CREATE: &str = "CreateArtifact";
const BLOCK: &str = "comp=block&";
const LIST: &str = "comp=blocklist";
const FINALIZE: &str = "FinalizeArtifact";
const FIND: &str = "ListArtifacts";
const LOCATE: &str = "GetSignedArtifactURL";
const FETCH: &str = "GET /blob/";
const STATUS: Option<&str> = Some(super::super::api::UNAVAILABLE);

#[test]
fn trouble_that_passes_is_overcome() {
    let busy = Fault::Answer(503, r#"{"code":"unavailable","msg":"try later"}"#);
    // Whether the name is new is asked twice at most, and so is what was stored.
    check(FIND, 1, &Fault::Drop, Ok(&[1]));
    check(FIND, 2, &busy, Ok(&[1]));
    check(FIND, 5, &busy, Ok(&[1, 1, 3]));
    for on in [CREATE, BLOCK, LIST, FINALIZE, LOCATE] {
        check(on, 2, &busy, Ok(&[3, 4]));
        check(on, 1, &Fault::Drop, Ok(&[3]));
        check(on, 1, &Fault::Answer(500, ""), Ok(&[3]));
        check(on, 1, &Fault::Answer(429, ""), Ok(&[3]));
    }
    check(FETCH, 2, &busy, Ok(&[5, 5]));
    check(FETCH, 1, &Fault::Drop, Ok(&[5]));
    check(FETCH, 1, &Fault::Cut, Ok(&[5]));
    check(FETCH, 1, &Fault::Stall, Ok(&[5]));
    for on in [CREATE, FINALIZE, LOCATE] {
        check(on, 1, &Fault::Cut, Ok(&[3]));
        check(on, 1, &Fault::Answer(200, "<html>"), Ok(&[3]));
        check(on, 1, &Fault::With(429, "Retry-After: 7"), Ok(&[7]));
        check(on, 1, &Fault::With(429, "Retry-After: 7000"), Ok(&[60]));
    }
}

#[test]
fn trouble_that_stays_is_told() {
    let busy = Fault::Answer(503, r#"{"code":"unavailable","msg":"try later"}"#);
    check(CREATE, 9, &busy, Err(("creating the artifact failed: status 503: try later", STATUS)));
    check(BLOCK, 9, &busy, Err(("storing the artifact failed: status 503", STATUS)));
    check(LIST, 9, &busy, Err(("storing the artifact failed: status 503", STATUS)));
    check(FINALIZE, 9, &busy, Err(("finalizing the artifact failed: status 503: try later", STATUS)));
    check(FIND, 9, &busy, Err(("listing the artifacts failed: status 503: try later", STATUS)));
    check(LOCATE, 9, &busy, Err(("locating the artifact failed: status 503: try later", STATUS)));
    check(FETCH, 9, &busy, Err(("fetching the artifact failed: status 503", STATUS)));
    check(CREATE, 9, &Fault::Drop, Err(("creating the artifact failed: Peer disconnected", STATUS)));
    check(FETCH, 9, &Fault::Cut, Err(("fetching the artifact failed: Peer disconnected", STATUS)));
    let html = "unreadable answer: expected value at line 1 column 1";
    let message = format!("creating the artifact failed: {html}");
    check(CREATE, 9, &Fault::Answer(200, "<html>"), Err((&message, STATUS)));
}

#[test]
fn an_answer_that_does_not_go_on_is_given_up() {
    let service = FakeService::start(Style::Azure);
    service.fault(CREATE, 9, Fault::Stall);
    let transport = Transport::default().pause(Pauses::default().pause()).idle(Duration::from_millis(20));
    let error = with(&service, transport).upload("state", file(1).0.path(), None).unwrap_err();
    assert_eq!(error.to_string(), "creating the artifact failed: no answer in time");
}

#[test]
fn a_refusal_is_final_and_says_what_to_do() {
    let conflict = "an artifact never changes: pass `key`, so that each has a name of its own";
    let exists = r#"{"code":"already_exists","msg":"an artifact with this name already exists"}"#;
    check(
        CREATE,
        1,
        &Fault::Answer(409, exists),
        Err((
            "another job or step of this run has stored `state` already; they share this name",
            Some(conflict),
        )),
    );
    check(
        CREATE,
        1,
        &Fault::Answer(403, r#"{"code":"permission_denied","msg":"insufficient usage to create artifact"}"#),
        Err((
            "there is no storage left for artifacts: insufficient usage to create artifact",
            Some("delete old artifacts, give `--retention-days`, or look at the billing of the account"),
        )),
    );
    let job = Some("the token is that of one job: it is not valid after the job has ended");
    for status in [401, 403] {
        check(
            CREATE,
            1,
            &Fault::Answer(status, r#"{"msg":"token expired"}"#),
            Err(("the artifact service refuses the runner's token: token expired", job)),
        );
    }
    check(
        CREATE,
        1,
        &Fault::Answer(404, "404 page not found"),
        Err((
            "the server has no artifact service of version 4",
            Some(
                "GitHub Enterprise Server has version 3 alone: upload the directory with actions/upload-artifact@v3",
            ),
        )),
    );
    check(
        CREATE,
        1,
        &Fault::Answer(200, "{}"),
        Err(("creating the artifact was refused with status 200: the service reports that it failed", None)),
    );
    check(
        FINALIZE,
        1,
        &Fault::Answer(400, r#"{"code":"invalid_argument","msg":"size mismatch"}"#),
        Err(("finalizing the artifact was refused with status 400: size mismatch", None)),
    );
    check(
        LIST,
        1,
        &Fault::Answer(400, "<Error><Code>InvalidBlockList</Code><X>sig=c2VjcmV0</X></Error>"),
        Err(("storing the artifact was refused with status 400: InvalidBlockList", None)),
    );
    check(
        BLOCK,
        1,
        &Fault::With(403, "x-ms-error-code: AuthenticationFailed"),
        Err(("storing the artifact was refused with status 403: AuthenticationFailed", None)),
    );
    check(
        LOCATE,
        1,
        &Fault::Answer(404, r#"{"code":"not_found","msg":"artifact not found"}"#),
        Err(("there is no artifact `state` in this run", None)),
    );
    // Before, it is asked whether the name is new, and whether it is there.
    check(FIND, 3, &Fault::Answer(200, "{}"), Err(("there is no artifact `state` in this run", None)));
}

#[test]
fn a_lost_answer_to_the_last_request_does_not_lose_the_artifact() {
    check(FINALIZE, 1, &Fault::Lose, Ok(&[3]));
    check(LIST, 1, &Fault::Lose, Ok(&[3]));
    check(CREATE, 1, &Fault::Lose, Ok(&[3]));
}

#[test]
fn another_digest_is_an_error_and_none_is_said() {
    let service = FakeService::start(Style::Azure);
    let results = results(&service, &Pauses::none());
    let right = format!("SHA256:{}", hex(&Sha256::digest(b"zip")));
    service.store("right", b"zip", json!(right));
    service.store("wrong", b"zip", json!(format!("sha256:{}", "0".repeat(64))));
    service.store("none", b"zip", Value::Null);
    service.store("other", b"zip", json!("md5:00"));
    let mut into = tempfile::tempfile().unwrap();
    let mut verified = |name| results.download(name, &mut into, 10).map(|downloaded| downloaded.verified);
    assert!(matches!(verified("right"), Ok(true)));
    assert!(matches!(verified("none"), Ok(false)));
    assert!(matches!(verified("other"), Ok(false)));
    let error = verified("wrong").unwrap_err();
    assert!(matches!(error, ArtifactError::Digest { .. }), "{error:?}");
}

#[test]
fn more_than_was_asked_for_is_not_fetched() {
    let service = FakeService::start(Style::Azure);
    service.store("big", &[0; 1001], Value::Null);
    let mut into = tempfile::tempfile().unwrap();
    let error = results(&service, &Pauses::none()).download("big", &mut into, 1000).unwrap_err();
    assert_eq!(error.to_string(), "the artifact has more than 1000 bytes");
    assert_eq!(into.metadata().unwrap().len(), 0);
}

#[test]
fn names_are_checked_before_anybody_is_asked() {
    let service = FakeService::start(Style::Azure);
    let error = results(&service, &Pauses::none()).upload("a/b", file(1).0.path(), None).unwrap_err();
    assert!(matches!(error, ArtifactError::Name { .. }), "{error:?}");
    assert_eq!(service.count(""), 0);
}

#[test]
fn a_name_is_taken_once() {
    let service = FakeService::start(Style::Azure);
    let results = results(&service, &Pauses::none());
    let (zip, _) = file(10);
    results.upload("state", zip.path(), None).unwrap();
    assert!(matches!(results.upload("state", zip.path(), None), Err(ArtifactError::Conflict { .. })));
    assert_eq!(results.list(None).unwrap().len(), 1);
}

#[test]
fn an_end_is_asked_for_only_where_one_is_wanted() {
    let service = FakeService::start(Style::Azure);
    let results = results(&service, &Pauses::none());
    let now = Timestamp::from_millis(1_795_204_800_000);
    let none = |_: &str| None;
    results.upload("kept", file(1).0.path(), None).unwrap();
    results.upload("short", file(1).0.path(), Some(expiry(5, &none, now))).unwrap();
    assert_eq!(service.stored("kept").created["expires_at"], Value::Null);
    assert_eq!(service.stored("short").created["expires_at"], "2026-11-25T20:00:00.000Z");
    let most = |name: &str| (name == "GITHUB_RETENTION_DAYS").then(|| "3".to_owned());
    assert_eq!(expiry(5, &most, now).to_string(), "2026-11-23T20:00:00.000Z");
    assert_eq!(expiry(2, &most, now).to_string(), "2026-11-22T20:00:00.000Z");
}

#[track_caller]
fn check_list(answer: &str, expect: &[(u64, &str, u64, Option<&str>)]) {
    let list: ArtifactListing = serde_json::from_str(answer).unwrap();
    let found: Vec<_> = list
        .artifacts
        .iter()
        .map(|listed| (listed.id, listed.name.as_str(), listed.size, listed.digest.as_deref()))
        .collect();
    assert_eq!(found, expect);
}

#[test]
fn answers_are_read_in_both_spellings() {
    check_list("{}", &[]);
    check_list(
        r#"{"artifacts":[{"workflow_run_backend_id":"r","workflow_job_run_backend_id":"j","database_id":"12",
            "name":"a","size":"34","created_at":"2026-11-20T20:24:38Z","digest":"sha256:00"}]}"#,
        &[(12, "a", 34, Some("sha256:00"))],
    );
    check_list(
        r#"{"artifacts":[{"workflowRunBackendId":"r","workflowJobRunBackendId":"j","databaseId":12,"name":"a",
            "size":34,"createdAt":"2026-11-20T20:24:38Z"}]}"#,
        &[(12, "a", 34, None)],
    );
    check_list(
        r#"{"artifacts":[{"workflowRunBackendId":"r","workflowJobRunBackendId":"j","databaseId":"1","name":"a"}]}"#,
        &[(1, "a", 0, None)],
    );
}

#[track_caller]
fn check_env(variables: &[(&str, &str)], expect: Result<Option<(&str, &str, &str)>, &str>) {
    let env =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let found = Results::from_env(&env).map_err(|error| error.to_string());
    let found = found
        .as_ref()
        .map(|found| found.as_ref().map(|it| (it.origin.as_str(), it.ids.run.as_str(), it.ids.job.as_str())))
        .map_err(String::as_str);
    assert_eq!(found, expect);
}

#[test]
fn the_runner_says_where_the_service_is() {
    let address = ("ACTIONS_RESULTS_URL", "https://results.example:8443/a/b?c");
    let token = ("ACTIONS_RUNTIME_TOKEN", TOKEN);
    check_env(&[], Ok(None));
    check_env(&[address], Ok(None));
    check_env(&[token, ("ACTIONS_RESULTS_URL", "")], Ok(None));
    check_env(&[address, token], Ok(Some(("https://results.example:8443", "RUN", "JOB"))));
    let cannot =
        |reason: &str| format!("the runner's access to the artifact service cannot be used: {reason}");
    let address_error = cannot("`ACTIONS_RESULTS_URL` is not a URL");
    check_env(&[("ACTIONS_RESULTS_URL", "results"), token], Err(&address_error));
    let token_error = cannot("`ACTIONS_RUNTIME_TOKEN` does not name a run with artifacts");
    for wrong in ["x", "e30.e30.x", "e30.eyJzY3AiOiJBY3Rpb25zLlJlc3VsdHM6UlVOIn0.x", "a.!.c"] {
        check_env(&[address, ("ACTIONS_RUNTIME_TOKEN", wrong)], Err(&token_error));
    }
    let proxy_error = cannot("`ALL_PROXY` holds no address of a proxy");
    check_env(&[address, token, ("ALL_PROXY", "??")], Err(&proxy_error));
}

#[track_caller]
fn check_absent(variables: &[(&str, &str)], expect: &str) {
    let env =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    assert!(absent(&env).starts_with(expect), "{}", absent(&env));
}

#[test]
fn where_there_is_no_service_the_advice_fits_the_server() {
    let server = |address| ("GITHUB_SERVER_URL", address);
    check_absent(&[], "a runner gives the service to actions");
    check_absent(&[server("https://github.com")], "a runner gives");
    check_absent(&[server("https://our.ghe.com")], "a runner gives");
    check_absent(&[server("https://github.corp.example")], "GitHub Enterprise Server has");
    check_absent(&[server("https://git.example"), ("GITEA_ACTIONS", "true")], "a runner gives");
}

#[track_caller]
fn check_names(name: &str, expect: bool) {
    assert_eq!(check_name(name).is_ok(), expect, "{name:?}");
}

#[test]
fn names_are_those_the_service_takes() {
    check_names("ll-loop-tidy-test-r42-a1", true);
    check_names("ünïcode und Leerzeichen", true);
    check_names(&"ü".repeat(255), true);
    check_names(&"x".repeat(256), false);
    check_names("", false);
    for wrong in ["a/b", "a\\b", "a\nb", "a\rb", "a:b", "a\"b", "a<b", "a>b", "a|b", "a*b", "a?b"] {
        check_names(wrong, false);
    }
}

#[test]
fn base64_is_read_with_and_without_padding() {
    assert_eq!(base64("").as_deref(), Some(&b""[..]));
    assert_eq!(base64("aGk=").as_deref(), Some(&b"hi"[..]));
    assert_eq!(base64("aGk").as_deref(), Some(&b"hi"[..]));
    assert_eq!(base64("-_8").as_deref(), base64("+/8=").as_deref());
    assert_eq!(base64("a b"), None);
}

proptest! {
    /// A token is text from outside.
    #[test]
    fn no_token_makes_it_panic(token in "\\PC{0,40}") {
        let _ids = ids(&token);
        let _bytes = base64(&token);
    }
}

#[test]
fn the_signature_in_these_tests_is_one_that_breaks_when_encoded_again() {
    assert!(SIG.contains("%2B") && SIG.contains("%3d"));
}
