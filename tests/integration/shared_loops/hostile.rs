//! Servers and repositories that mean harm, and loops that may not be copied.

use std::time::Duration;

use serde_json::json;
use wiremock::matchers::path_regex;
use wiremock::{Mock, ResponseTemplate};

use super::{FILES, Hub, TIDY, lock};
use crate::ci::reported::Github;
use crate::common::Project;

const ADD: &[&str] = &["add", "github:octo/tools/loops/tidy.yaml@main"];

/// Adds a loop that is made of these files, which is refused, and leaves nothing.
#[track_caller]
fn refused(files: &[(&str, &str)], says: &str) {
    let hub = Hub::with(files);
    untouched(&hub.project(), says);
}

#[track_caller]
fn untouched(project: &Project, says: &str) {
    let ran = project.run(ADD).code(2).says(says);
    assert!(!ran.all().contains(['\u{1b}', '\u{202e}', '\u{7}']), "{:?}", ran.all());
    assert!(!project.exists(".loops/vendor") && !project.exists(".loops/lock.json"), "{says}");
}

#[test]
fn a_loop_that_names_what_is_not_its_own_is_refused() {
    let with =
        |line: &str| format!("name: tidy\n{line}\ninitial: done\nstates: {{done: {{terminal: true}}}}\n");
    for (line, says) in [
        ("from: ../../../.loops/mine", "leads out of the repository"),
        ("from: /etc/passwd", "leads out of the repository"),
        ("from: 'vendor:evil/x/a.yaml'", "only files of its own repository"),
        ("from: 'github:evil/x/a.yaml@v1'", "only files of its own repository"),
        ("import: [../../../../x.yaml]", "leads out of the repository"),
        ("from: nowhere", "there is no `nowhere`"),
    ] {
        refused(&[("loops/tidy.yaml", &with(line))], says);
    }
    let runs = |name: &str| {
        format!(
            "name: tidy\ninitial: a\nstates: {{a: {{loop: '{name}', on_yes: b, on_no: b}}, b: {{terminal: true}}}}\n"
        )
    };
    refused(&[("loops/tidy.yaml", &runs("nowhere"))], "is not in its repository");
    refused(&[("loops/tidy.yaml", &runs("vendor:evil/x/a.yaml"))], "only files of its own repository");
    refused(&[("loops/tidy.yaml", &runs("help")), ("120000 loops/help.yaml", "/etc/passwd")], "is a link");
    refused(&[("loops/tidy.yaml", "name: tidy\ninitial: nowhere\nstates: {}\n")], "nothing was copied");
}

#[test]
fn links_and_submodules_are_no_files() {
    refused(&[("120000 loops/tidy.yaml", "../../../../etc/passwd")], "`loops/tidy.yaml` is a link");
    refused(&[("120000 loops", "elsewhere")], "`loops` is a link");
    refused(&[("160000 loops", "")], "`loops` is a submodule");
    refused(&[("README.md", "")], "has no file `loops/tidy.yaml`");
}

#[test]
fn a_loop_is_not_larger_than_a_loop_can_be() {
    // One that says that it has a gigabyte is not even asked for.
    let hub = Hub::with(FILES);
    let head = hub.head();
    let item = json!({"path": "tidy.yaml", "mode": "100644", "sha": "a".repeat(40), "size": 1_u64 << 30});
    hub.instead(
        &Hub::tree(&head, "loops"),
        ResponseTemplate::new(200).set_body_json(json!({"tree": [item]})),
    );
    untouched(&hub.project(), "`loops/tidy.yaml` is larger than 1048576 bytes");
    assert!(!hub.asked().iter().any(|(path, _)| path.contains("/blobs/")));

    refused(&[("loops/tidy.yaml", &format!("{TIDY}#{}", "x".repeat(1 << 20)))], "larger than 1048576 bytes");
    let comment = format!("#{}\n", "x".repeat(600_000));
    let large = format!("{comment}fragments: {{f: {{action: x}}}}\n");
    refused(
        &[
            ("loops/tidy.yaml", &format!("{comment}{TIDY}")),
            ("loops/lib/common.yaml", &large),
            ("loops/base.yaml", FILES[1].1),
        ],
        "is larger than",
    );
    let names: Vec<String> = (0..21).map(|number| format!("l{number}.yaml")).collect();
    let many = format!(
        "name: tidy\nimport: [{}]\ninitial: a\nstates: {{a: {{terminal: true}}}}\n",
        names.join(", ")
    );
    let texts: Vec<(String, String)> = names
        .iter()
        .enumerate()
        .map(|(at, name)| (format!("loops/{name}"), format!("fragments: {{f{at}: {{action: x}}}}\n")))
        .collect();
    let mut files: Vec<(&str, &str)> =
        texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("loops/tidy.yaml", &many));
    refused(&files, "one file too many");
    let deep: Vec<(String, String)> = (0..6)
        .map(|depth| (format!("loops/d{depth}.yaml"), format!("name: d\nfrom: d{}\n", depth + 1)))
        .collect();
    let mut files: Vec<(&str, &str)> =
        deep.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("loops/tidy.yaml", "name: tidy\nfrom: d0\n"));
    refused(&files, "more than 4 times");
}

#[test]
fn a_server_that_lies_is_not_believed() {
    let hub = Hub::with(FILES);
    let head = hub.head();
    let json = |value: serde_json::Value| ResponseTemplate::new(200).set_body_json(value);
    let check = |end: &str, answer: ResponseTemplate, says: &str| {
        hub.as_usual();
        hub.instead(end, answer);
        untouched(&hub.project(), says);
    };
    let tree = Hub::tree(&head, "loops");
    let item = |path: &str, mode: &str, sha: &str| json!({"path": path, "mode": mode, "sha": sha, "size": 5});
    let zeros = "b".repeat(40);
    check(
        &tree,
        json(json!({"tree": [item("tidy.yaml", "100644", "../../x")]})),
        "which is not a git object id",
    );
    check(
        &tree,
        json(json!({"tree": [item("tidy.yaml", "100644", "\u{1b}[2J\u{7}")]})),
        "which is not a git object id",
    );
    check(&tree, json(json!({"tree": [item("tidy.yaml", "777777", &zeros)]})), "something unknown");
    check(&tree, json(json!({"tree": [], "truncated": true})), "does not list all files");
    check(
        &tree,
        json(
            json!({"tree": [item("../tidy.yaml", "100644", &zeros), item("tidy.yaml\n", "100644", &zeros)]}),
        ),
        "has no file",
    );
    check(&tree, json(json!([1])), "cannot be read");
    let other = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "name: other\n");
    hub.as_usual();
    hub.instead(&tree, json(json!({"tree": [item("tidy.yaml", "100644", &zeros)]})));
    hub.instead(&zeros, json(json!({"encoding": "base64", "content": other})));
    untouched(&hub.project(), "what came is not what its id says");
    hub.instead(&zeros, json(json!({"encoding": "base64", "content": "!!"})));
    untouched(&hub.project(), "not the base64");
    hub.instead(&zeros, json(json!({"encoding": "none", "content": ""})));
    untouched(&hub.project(), "in a way that is unknown");
    let long = "A".repeat(20 << 20);
    hub.instead(&zeros, json(json!({"encoding": "base64", "content": long})));
    untouched(&hub.project(), "has more than 16777216 bytes");
    check(
        &format!("git/commits/{head}"),
        json(json!({"sha": zeros, "tree": {"sha": zeros}})),
        "is about another one",
    );
    check(
        "git/ref/heads/main",
        json(json!({"ref": "refs/heads/other", "object": {"type": "commit", "sha": head}})),
        "no branch, tag or commit",
    );
    check(
        "git/ref/heads/main",
        json(json!({"ref": "refs/heads/main", "object": {"type": "blob\u{1b}[1m", "sha": head}})),
        "not to a commit",
    );
    check(
        "git/ref/heads/main",
        json(json!({"ref": "refs/heads/main", "object": {"type": "commit", "sha": "main"}})),
        "which is not a git object id",
    );
    let words =
        ResponseTemplate::new(403).set_body_json(json!({"message": "\u{1b}]0;owned\u{7}go\naway\u{202e}"}));
    check("octo/tools", words, "the token may not do");
}

#[test]
fn a_directory_of_a_hundred_thousand_files_is_no_trouble() {
    let hub = Hub::with(FILES);
    let tree = Hub::tree(&hub.head(), "loops");
    let sha = "a".repeat(40);
    let items: Vec<_> = (0..100_000)
        .map(|number| json!({"path": format!("f{number}"), "mode": "100644", "sha": sha}))
        .collect();
    hub.instead(&tree, ResponseTemplate::new(200).set_body_json(json!({"tree": items})));
    untouched(&hub.project(), "has no file `loops/tidy.yaml`");
    let looks: Vec<String> = (0..150).map(|number| format!("x/d{number}/f.yaml")).collect();
    let files: Vec<(&str, &str)> = looks.iter().map(|path| (path.as_str(), "")).collect();
    let names: Vec<String> = (0..150)
        .map(|number| format!("a{number}: {{loop: ../x/d{number}/g, on_yes: b, on_no: b}}"))
        .collect();
    let text =
        format!("name: tidy\ninitial: b\nstates:\n  b: {{terminal: true}}\n  {}\n", names.join("\n  "));
    let mut files = files;
    files.push(("loops/tidy.yaml", &text));
    // The first one that is not there ends it.
    refused(&files, "is not in its repository");
}

#[test]
fn the_token_goes_to_no_other_server() {
    let elsewhere = Github::willing();
    let hub = Hub::with(FILES);
    let there = format!("{}/repos/octo/tools", elsewhere.address());
    for status in [301, 302, 307, 308] {
        hub.instead("octo/tools", ResponseTemplate::new(status).insert_header("location", there.as_str()));
        untouched(&hub.project(), "redirects are not followed");
    }
    hub.as_usual();
    hub.instead(
        &Hub::tree(&hub.head(), ""),
        ResponseTemplate::new(302).insert_header("location", there.as_str()),
    );
    untouched(&hub.project(), "redirects are not followed");
    assert_eq!(elsewhere.received(), []);
}

#[test]
fn a_server_that_is_not_there_is_no_fault_of_the_loop() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    hub.instead("octo/tools", ResponseTemplate::new(503));
    project.run(ADD).code(69);
    hub.as_usual();
    hub.instead("octo/tools", ResponseTemplate::new(429).insert_header("retry-after", "3600"));
    project.run(ADD).code(69).says("limits the rate");
    let nobody = Project::new().env("GITHUB_API_URL", "http://127.0.0.1:1").env("LL_RETRY_WAIT", "1ms");
    nobody.run(ADD).code(69);
}

#[test]
fn what_is_one_file_elsewhere_is_refused() {
    let import = |names: &str| {
        format!("name: tidy\nimport: [{names}]\ninitial: a\nstates: {{a: {{terminal: true}}}}\n")
    };
    let library = "fragments: {f: {action: x}}\n";
    let other = "fragments: {g: {action: x}}\n";
    let case = import("Lib.yaml, lib.yaml");
    refused(
        &[("loops/tidy.yaml", &case), ("loops/Lib.yaml", library), ("loops/lib.yaml", other)],
        "upper and lower case alone",
    );
    let directories = import("Lib/a.yaml, lib/b.yaml");
    refused(
        &[("loops/tidy.yaml", &directories), ("loops/Lib/a.yaml", library), ("loops/lib/b.yaml", other)],
        "upper and lower case alone",
    );
    let combined = import("'e\u{301}.yaml'");
    refused(&[("loops/tidy.yaml", &combined), ("loops/e\u{301}.yaml", library)], "cannot contain");
    let turned = import("\"a\\u202e.yaml\"");
    refused(&[("loops/tidy.yaml", &turned), ("loops/a\u{202e}.yaml", library)], "cannot contain");
    let line = import("\"a\\nb.yaml\"");
    refused(&[("loops/tidy.yaml", &line), ("loops/a\nb.yaml", library)], "cannot contain");
    let git = import("../.git/config.yaml");
    refused(&[("loops/tidy.yaml", &git), (".git/config.yaml", library)], "cannot lead into `.git`");
}

#[test]
fn what_is_in_the_way_stays() {
    let hub = Hub::with(FILES);
    let project = hub.project().file(".loops/vendor/octo/tools/loops/help.yaml", "mine");
    project.run(ADD).code(2).says("is there already");
    assert_eq!(project.read(".loops/vendor/octo/tools/loops/help.yaml"), "mine");
    assert!(
        !project.exists(".loops/lock.json") && !project.exists(".loops/vendor/octo/tools/loops/tidy.yaml")
    );

    for link in [
        ".loops/vendor",
        ".loops/vendor/octo",
        ".loops/vendor/octo/tools/loops",
        ".loops/vendor/octo/tools/loops/help.yaml",
    ] {
        let project = hub.project();
        let outside = tempfile::tempdir().unwrap();
        let path = project.at(link);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(outside.path(), &path).unwrap();
        project.run(ADD).code(2).says("a link is in the way");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "{link}");
    }
    let project = hub.project().file(".loops/lock.json", "{");
    project.run(ADD).code(2).says("`.loops/lock.json` cannot be read");
    assert_eq!(project.read(".loops/lock.json"), "{");
}

#[test]
fn two_at_once_do_not_lose_each_other() {
    let hub = Hub::with(FILES);
    let project = hub.project();
    let names = ["tidy", "help", "tidy", "help", "tidy", "help"];
    let children: Vec<_> = names
        .iter()
        .map(|name| {
            project
                .command(&["add", &format!("github:octo/tools/loops/{name}.yaml@main")])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let lock = lock(&project);
    let sources: Vec<&str> =
        lock["loops"].as_array().unwrap().iter().map(|one| one["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["github:octo/tools/loops/help.yaml", "github:octo/tools/loops/tidy.yaml"]);
    project.run(&["run", "vendor:octo/tools/loops/tidy.yaml"]).code(0);
}

#[test]
fn a_slow_answer_is_waited_for() {
    let slow = Github::silent();
    slow.mount(
        Mock::given(path_regex(".*")).respond_with(
            ResponseTemplate::new(404)
                .set_body_json(json!({"message": "no"}))
                .set_delay(Duration::from_millis(50)),
        ),
    );
    let project = Project::new().env("GITHUB_API_URL", slow.address());
    project.run(ADD).code(2).says("finds nothing for GET /repos/octo/tools");
}

#[test]
fn a_body_without_an_end_is_cut() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let _read = stream.read(&mut [0; 4096]);
                let mut sent =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[");
                while sent.is_ok() {
                    sent = stream.write_all(&[b' '; 8192]);
                }
            });
        }
    });
    let project =
        Project::new().env("GITHUB_API_URL", format!("http://{address}")).env("LL_RETRY_WAIT", "1ms");
    untouched(&project, "has more than 16777216 bytes");
}

#[test]
fn nothing_that_a_loop_holds_is_obeyed_by_a_terminal_or_a_runner() {
    let text = "name: tidy\ninitial: a\nstates:\n  a:\n    action: \"echo\\n::add-mask::x\\n##[error]y\\n\\e]0;owned\\a\\u202e\\u2028::warning::z\\r::warning::q\"\n    next: b\n  b: {terminal: true}\n";
    let hub = Hub::with(&[("loops/tidy.yaml", text)]);
    let ran = hub.at(Project::new().in_github_job()).run(ADD).code(0);
    assert!(!ran.all().contains(['\u{1b}', '\u{202e}', '\u{7}', '\r', '\u{2028}']), "{:?}", ran.all());
    let begins = |line: &str| ["::", "##["].iter().any(|with| line.trim_start().starts_with(with));
    assert!(!ran.stdout.lines().any(begins), "{}", ran.stdout);
}
