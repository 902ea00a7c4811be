//! Actions that are confined by containers. Where no engine of containers answers, this says so and passes.

use std::process::Command;

use super::{As, confined, give_away, one, output_of, probes, project, run_as};
use crate::common::{Ran, git};
use crate::fake_host;

/// Tells whether docker answers, or says loudly that it does not. Who is not root may not ask it everywhere.
#[allow(
    clippy::print_stderr,
    reason = "whoever reads the log of the tests has to see that these tried nothing"
)]
pub(crate) fn is_possible() -> bool {
    let is_there = Command::new("docker").arg("version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("SKIPPED: NO DOCKER ANSWERS, SO NOTHING OF ITS SANDBOX IS TESTED");
    }
    is_there
}

#[test]
fn whatever_is_tried_in_a_container_is_denied() {
    if !is_possible() {
        return;
    }
    for owner in [As::Somebody, As::Root] {
        for mode in ["{engine: container}", "{mode: strict, engine: container}"] {
            probes::try_all(As::Root, mode, owner, &[]);
        }
    }
}

#[test]
fn an_action_in_a_container_works_with_git_and_leaves_nothing() {
    if !is_possible() {
        return;
    }
    let script = "set -e
        echo more >> src/work.txt; git add -A; git commit -qm one
        cat /proc/1/comm; readlink /proc/1/exe || true
        setsid sh -c 'while :; do date > alive; sleep 0.1; done' > /dev/null 2>&1 &
        sleep 0.5; cat; exit 7";
    let project = project(&one("{engine: container}", script));
    give_away(&project);
    let _failed = run_as(project.command(&["run", "main", "--no-ci"]), As::Root);
    let events = project.events();
    let ended = events.iter().find(|event| event["event"] == "action_complete").unwrap();
    assert_eq!(ended["exit_code"], 7, "{ended}");
    let before = project.read("alive");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(project.read("alive"), before, "a daemon outlives its action");
    let [event] = &confined(&project)[..] else { panic!("{:?}", confined(&project)) };
    assert_eq!(event["engine"], "container");
    assert!(!project.exists(".npmrc") && !project.exists(".codex"));
}

#[test]
fn root_works_on_a_tree_of_its_own_in_a_container() {
    if !is_possible() || !rustix::process::getuid().is_root() {
        return;
    }
    let project = project(&one("{engine: container}", "id -u; wc -c < /etc/shadow; echo made > made"));
    project.run(&["run", "main", "--no-ci"]).code(0);
    let output = output_of(&project);
    assert!(output.starts_with("0\n0\n"), "{output}");
    assert!(project.exists("made"));
}

/// What leads the client of docker to no engine.
const NO_DOCKER: (&str, &str) = ("DOCKER_HOST", "unix:///nowhere/docker.sock");

#[test]
fn an_engine_of_containers_that_does_not_answer_is_no_run() {
    let project = project(&one("{engine: container}", "touch ran"));
    // Nobody but root asks podman.
    let clients: &[&str] =
        if rustix::process::getuid().is_root() { &["docker", "podman"] } else { &["docker"] };
    for client in clients {
        let failing = "#!/bin/sh\necho 'it does not answer' >&2\nexit 1\n";
        fake_host::program(&project, &format!("{client}/{client}"), failing);
        let mut command = project.command(&["run", "main", "--no-ci"]);
        command.env("PATH", project.at(client));
        let ran = Ran::of(&command.output().unwrap()).code(69);
        ran.says(&format!("{client} cannot confine actions here: it does not answer"));
        assert!(!project.exists("ran"));
    }
}

/// Tells whether podman confines actions here where docker does not answer, or says loudly that it does not.
#[allow(
    clippy::print_stderr,
    reason = "whoever reads the log of the tests has to see that these tried nothing"
)]
fn is_podman_possible() -> bool {
    let tried = project(&one("{engine: container}", "true"));
    give_away(&tried);
    let mut command = tried.command(&["run", "main", "--no-ci"]);
    command.envs([NO_DOCKER]);
    let ran = run_as(command, As::Root);
    if ran.code == Some(69) {
        eprintln!("SKIPPED: NO PODMAN CONFINES ACTIONS HERE, SO NOTHING OF IT IS TESTED: {}", ran.stderr);
    }
    ran.code != Some(69)
}

#[test]
fn podman_takes_the_place_of_a_docker_that_does_not_answer() {
    if !is_podman_possible() {
        return;
    }
    probes::try_all(As::Root, "{engine: container}", As::Somebody, &[NO_DOCKER]);
    let script = "echo more >> src/work.txt; git add -A; git commit -qm one; id -u; exit 7";
    let project = project(&one("{engine: container}", script));
    give_away(&project);
    let mut command = project.command(&["run", "main", "--no-ci"]);
    command.envs([NO_DOCKER]);
    let ran = run_as(command, As::Root);
    let events = project.events();
    let ended = events.iter().find(|event| event["event"] == "action_complete").unwrap();
    assert_eq!(ended["exit_code"], 7, "{ended} {}", ran.all());
    assert!(git(&project, &["-c", "safe.directory=*", "log", "--oneline"]).contains("one"), "{}", ran.all());
}
