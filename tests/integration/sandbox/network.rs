//! What an action reaches.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::Value;

use super::{confined, give_away, one, output_of, possible, project, run_as};

/// Answers every request with the same words, for as long as the tests run.
fn server() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            // All of the head: what is closed with something unread is reset, and its answer lost.
            let mut head = Vec::new();
            let mut piece = [0; 1024];
            while !head.ends_with(b"\r\n\r\n")
                && let Ok(read @ 1..) = client.read(&mut piece)
            {
                head.extend_from_slice(&piece[..read]);
            }
            let _gone =
                client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached");
        }
    });
    port
}

const GET: &str = "import os, sys, urllib.request as u\ntry:\n  print(u.urlopen(sys.argv[1], timeout=10).read())\nexcept Exception as e:\n  print('not reached:', e)\n";

#[test]
fn a_port_of_the_machine_is_brought_in_and_others_are_not() {
    for who in possible() {
        let (open, closed) = (server(), server());
        let script =
            format!("python3 get.py http://127.0.0.1:{open}/; python3 get.py http://127.0.0.1:{closed}/");
        let project = project(&one(&format!("{{forward: [{open}]}}"), &script));
        project.write("get.py", GET);
        give_away(&project);
        run_as(project.command(&["run", "main", "--no-ci"]), who).code(0);
        let output = output_of(&project);
        assert!(output.contains("b'reached'") && output.contains("not reached"), "{output}");
    }
}

#[test]
fn hosts_are_reached_by_name_and_what_is_denied_is_told() {
    for who in possible() {
        let port = server();
        let script = format!(
            "python3 get.py http://localhost:{port}/ # by no proxy
            no_proxy= NO_PROXY= python3 get.py http://localhost:{port}/named
            no_proxy= NO_PROXY= python3 get.py http://127.0.0.1:{port}/
            no_proxy= NO_PROXY= python3 get.py http://denied.example/
            no_proxy= NO_PROXY= python3 get.py https://denied.example/
            no_proxy= NO_PROXY= python3 get.py http://[::1]:{port}/"
        );
        let project = project(&one(&format!("{{net: ['localhost:{port}']}}"), &script));
        project.write("get.py", GET);
        give_away(&project);
        let command = project.command(&["run", "main", "--no-ci", "--report-dir", "reports"]);
        let ran = run_as(command, who).code(0);
        let output = output_of(&project);
        assert_eq!(output.matches("b'reached'").count(), 1, "{output}");
        assert_eq!(output.matches("not reached").count(), 5, "{output}");
        let net = &confined(&project)[0]["net"];
        assert_eq!(net["localhost"]["allowed"], 1, "{net}");
        assert_eq!(net["denied.example"]["denied"], 2, "{net}");
        ran.says("`net: [denied.example]`");
        let result: Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
        let row = &result["sandbox"][0];
        assert_eq!((&row["engine"], &row["actions"]), (&"bwrap".into(), &1.into()), "{row}");
        assert_eq!(row["net"]["denied.example"]["denied"], 2, "{row}");
        let summary = project.read("reports/summary.md");
        assert!(summary.contains("### Sandbox\n\n- bwrap confined 1 action"), "{summary}");
        assert!(summary.contains("`net: [denied.example]`"), "{summary}");
    }
}

#[test]
fn with_no_network_there_is_no_proxy() {
    for who in possible() {
        let project =
            project(&one("{mode: strict}", "env | grep -i proxy; cat /proc/net/dev; ls /run/ll-loop/doors"));
        give_away(&project);
        run_as(project.command(&["run", "main", "--no-ci"]), who).code(0);
        let output = output_of(&project);
        assert!(!output.contains("eth") && output.contains("lo:") && !output.contains("proxy"), "{output}");
    }
}
