//! The CLI of an agent, played by a program that does what a test says: no test needs a network.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::Project;

/// A host that takes its answers in turn from `answers/N`, a script each, and writes down how it was called. The last
/// answer goes for every further call.
const HOST: &str = r#"#!/bin/bash
[ "$1" = --version ] && { echo "9.9 (fake)"; exit 0; }
[ "$1" = login ] && exit 0
n=$(( $(cat calls/count 2>/dev/null || echo 0) + 1 )); mkdir -p calls; echo $n > calls/count
basename "$0" > calls/$n.host
printf '%s\n' "$@" > calls/$n.argv
env > calls/$n.env
[ -t 0 ] || cat > calls/$n.stdin
while [ ! -e answers/$n ]; do n=$((n - 1)); [ $n -gt 0 ] || { echo "no answer" >&2; exit 9; }; done
. answers/$n
"#;

/// Makes a project with a loop and hosts of these names that answer so, and nothing else of the kind.
pub(crate) fn project(hosts: &[&str], text: &str, answers: &[String]) -> Project {
    let project = Project::with_loop(text);
    for host in hosts {
        install(&project, "bin", host);
    }
    for (index, answer) in answers.iter().enumerate() {
        project.write(&format!("answers/{}", index + 1), answer);
    }
    found(project)
}

/// Lets a project find its hosts, and has it wait for a moment only before a call is made again.
pub(crate) fn found(project: Project) -> Project {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", project.at("bin").display());
    project.env("PATH", path).env("LL_RETRY_WAIT", "20ms")
}

/// Puts a host into a directory.
pub(crate) fn install(project: &Project, directory: &str, host: &str) {
    program(project, &format!("{directory}/{host}"), HOST);
}

/// Makes a script that can be run.
pub(crate) fn program(project: &Project, path: &str, text: &str) {
    project.write(path, text);
    fs::set_permissions(project.at(path), fs::Permissions::from_mode(0o755)).unwrap();
}

/// An answer that prints lines of JSON.
pub(crate) fn prints(lines: &[Value]) -> String {
    lines.iter().flat_map(|line| ["echo '".to_owned(), line.to_string(), "'\n".to_owned()]).collect()
}

/// Returns how often a host was called.
pub(crate) fn calls(project: &Project) -> usize {
    fs::read_to_string(project.at("calls/count")).map_or(0, |count| count.trim().parse().unwrap())
}
