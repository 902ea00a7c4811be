//! What an agent might try.

use std::fmt::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::{As, Outside, confined, give_away, one, output_of, possible, project, run_as};
use crate::common::git;

/// Each line is a name and a command that ends well only where the attack has succeeded.
const PROBES: &str = include_str!("probes.txt");

fn probes() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROBES.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once(" | ").unwrap())
}

#[test]
fn whatever_is_tried_is_denied() {
    assert!(probes().count() >= 230);
    for who in possible() {
        for mode in ["workspace", "strict"] {
            try_all(who, mode, As::Somebody, &[]);
        }
    }
}

/// Tries everything in a sandbox. `owner` has the working tree, and `env` says where an engine is found.
pub(super) fn try_all(who: As, mode: &str, owner: As, env: &[(&str, &str)]) {
    let mut script = String::from(
        "try() { if timeout 20 bash -c \"$2\" > /dev/null 2>&1 < /dev/null; then echo \"OPEN $1\"; else echo denied; fi; }\n",
    );
    for (name, command) in probes() {
        writeln!(script, "try '{}' '{}'", name.replace('\'', ""), command.replace('\'', r"'\''")).unwrap();
    }
    let mut outside = Outside::new();
    let abstract_name = format!("ll-probe-{}", outside.port);
    let address = SocketAddr::from_abstract_name(abstract_name.as_bytes()).unwrap();
    let _listening = UnixListener::bind_addr(&address).unwrap();
    let project = project(&one(mode, "bash tried.sh"));
    project.write("tried.sh", &script);
    project.write("inner/file", "x");
    project.write(".claude/settings.json", "{}");
    let inner = project.at("inner").to_string_lossy().into_owned();
    git(&project, &["init", "-q", &inner]);
    if owner == As::Somebody {
        give_away(&project);
    }
    let mut command = project.program(
        "bash",
        &[
            "-c",
            "exec 9< /etc/hostname; exec \"$@\"",
            "bash",
            crate::common::LL_LOOP.as_str(),
            "run",
            "main",
            "--no-ci",
        ],
    );
    let out = outside.path().to_string_lossy().into_owned();
    let files = format!("{out}/_runner_file_commands");
    for (name, value) in [
        ("OUT", out.clone()),
        ("HOME", format!("{out}/home")),
        ("FILES", files.clone()),
        ("SOCK", format!("{out}/socket")),
        ("PORT", outside.port.to_string()),
        ("ABSTRACT", abstract_name),
        ("VICTIM", outside.victim.id().to_string()),
        ("PARENT", std::process::id().to_string()),
        ("GITHUB_ENV", format!("{files}/set_env")),
        ("GITHUB_OUTPUT", format!("{files}/set_output")),
        ("GITHUB_PATH", format!("{files}/add_path")),
        ("GITHUB_STEP_SUMMARY", format!("{files}/summary")),
        ("SSH_AUTH_SOCK", format!("{out}/socket")),
        ("CONTAINER_HOST", format!("unix://{out}/socket")),
    ] {
        command.env(name, value);
    }
    command.envs(env.iter().copied());
    let ran = run_as(command, who).code(0);
    let output = output_of(&project);
    let open: Vec<_> = output.lines().filter(|line| line.starts_with("OPEN")).collect();
    assert!(open.is_empty(), "{who:?} {mode}: {open:?}\n{}", ran.all());
    assert_eq!(output.lines().filter(|line| *line == "denied").count(), probes().count(), "{output}");
    assert!(outside.is_as_it_was(), "{who:?} {mode}");
    let status = git(&project, &["-c", "safe.directory=*", "status", "--short"]);
    for mask in [".npmrc", "AGENTS.md", ".mcp.json", ".vscode"] {
        assert!(!project.exists(mask), "{mask} is left: {status}");
    }
    assert_eq!(confined(&project).len(), 1);
}

#[test]
fn what_cannot_be_prevented_is_found_and_put_back() {
    for who in possible() {
        let attack = "mkdir -p src/deep/.claude && echo obey > src/deep/AGENTS.md && echo '{}' > src/deep/.claude/settings.json
            git init -q sub && git -C sub config core.fsmonitor 'touch /tmp/ran'
            echo /tmp > .git/commondir
            echo evil > second";
        let project = project(&one("workspace", attack));
        project.write("GEMINI.md", "kept\n");
        std::fs::hard_link(project.at("GEMINI.md"), project.at("second")).unwrap();
        give_away(&project);
        let ran = run_as(project.command(&["run", "main", "--no-ci"]), who);
        assert_eq!(project.end()["final_state"], "broken", "{}", ran.all());
        let event = &confined(&project)[0];
        let put_back: Vec<_> =
            event["put_back"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
        for name in
            ["GEMINI.md", ".git/commondir", "src/deep/AGENTS.md", "src/deep/.claude", "sub/.git/config"]
        {
            assert!(put_back.contains(&name), "{name}: {put_back:?}");
        }
        assert_eq!(project.read("GEMINI.md"), "kept\n");
        assert!(!project.exists("src/deep/AGENTS.md") && !project.exists(".git/commondir"));
        ran.says("changed protected files, which were put back");
    }
}

#[test]
fn what_is_put_back_is_said_of_an_action_that_took_too_long_as_well() {
    for who in possible() {
        let attack = "mkdir -p src/deep && echo obey > src/deep/AGENTS.md && sleep 60";
        let text = one("workspace", attack).replace("    sandbox:", "    timeout: 1s\n    sandbox:");
        let project = project(&text);
        give_away(&project);
        let ran = run_as(project.command(&["run", "main", "--no-ci"]), who);
        assert_eq!(project.end()["final_state"], "broken", "{}", ran.all());
        assert!(!project.exists("src/deep/AGENTS.md"));
        ran.says("changed protected files, which were put back");
    }
}
