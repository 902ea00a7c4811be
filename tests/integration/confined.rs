//! As whom actions can be confined on this machine, for every test of runs whose actions are.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::common::{LL_LOOP, Project, Ran};

/// Somebody who is not root.
pub(crate) const SOMEBODY: u32 = 1234;

/// Whether the run is root's, or somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    Root,
    Somebody,
}

/// Returns as whom runs can be tried here, or says loudly why none can: no bubblewrap, no namespaces, or a checkout that
/// nobody but its owner may enter.
#[allow(
    clippy::print_stderr,
    reason = "whoever reads the log of the tests has to see that these tried nothing"
)]
pub(crate) fn possible() -> Vec<As> {
    let is_root = rustix::process::getuid().is_root();
    let mut command = Command::new("bwrap");
    command.args([
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        LL_LOOP.as_str(),
        "version",
    ]);
    if is_root {
        command.uid(SOMEBODY).gid(SOMEBODY);
    }
    let tried = command.current_dir("/").output();
    if let Ok(output) = &tried
        && output.status.success()
    {
        return if is_root { vec![As::Root, As::Somebody] } else { vec![As::Somebody] };
    }
    let why = tried.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    eprintln!("SKIPPED: NOTHING IS CONFINED HERE, SO NOTHING OF IT IS TESTED: {why}");
    Vec::new()
}

/// Gives everything in a project to somebody.
pub(crate) fn give_away(project: &Project) {
    if rustix::process::getuid().is_root() {
        let owner = format!("{SOMEBODY}:{SOMEBODY}");
        assert!(Command::new("chown").args(["-R", &owner]).arg(project.path()).status().unwrap().success());
    }
    std::fs::set_permissions(project.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a command somebody's.
pub(crate) fn run_as(mut command: Command, who: As) -> Ran {
    if who == As::Somebody && rustix::process::getuid().is_root() {
        command.uid(SOMEBODY).gid(SOMEBODY);
    }
    Ran::of(&command.output().unwrap())
}
