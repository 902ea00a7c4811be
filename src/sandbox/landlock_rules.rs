//! What an action sees where Landlock alone confines it: paths that it reads and writes, and ports that it connects to.
//! Landlock allows, and cannot deny within what it allows; what follows from that is said in [`left_open`].

use serde::{Deserialize, Serialize};

use super::plan::{PlanFacts, is_below};
use crate::base::sandbox::{SandboxMode, SandboxNet};

/// What Landlock allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockRules {
    /// Paths that are read, with what is below them.
    pub read: Vec<String>,
    /// Paths that are written as well.
    pub write: Vec<String>,
    /// Ports that are connected to; without, all of them are.
    pub connect: Option<Vec<u16>>,
    /// Whether signals and abstract sockets of others are kept from it.
    pub is_scoped: bool,
}

/// Places at the root that are not read as a whole.
const CLOSED: [&str; 5] = ["/home", "/root", "/run", "/tmp", "/lost+found"];

/// Devices that are written.
// Landlock refuses every write that no rule allows, even one to `/dev/null`.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Decides what Landlock allows. `top` are the directories at the root.
pub fn landlock_rules(
    mode: SandboxMode,
    net: &SandboxNet,
    (forward, is_scoped): (&[u16], bool),
    top: &[String],
    facts: &PlanFacts,
) -> LandlockRules {
    let holds_home = |path: &str| facts.home.as_ref().is_some_and(|home| is_below(home, path));
    let seen = match mode {
        SandboxMode::Strict => &facts.home_programs,
        SandboxMode::Off | SandboxMode::Workspace | SandboxMode::ReadOnly => &facts.home_entries,
    };
    // A directory above the home would open all of it, since nothing below can be taken back.
    let open = top.iter().filter(|path| !CLOSED.contains(&path.as_str()) && !holds_home(path));
    let own = [&facts.root, &facts.program, &facts.doors];
    let read = open.chain(seen).chain(own).chain(&facts.read).chain(&facts.kept_of_run).cloned();
    let private = [&facts.private_home, &facts.private_tmp, &facts.run_dir];
    let write = facts.scope.iter().chain(&facts.git).chain(&facts.more).chain(&facts.written).chain(private);
    LandlockRules {
        read: read.collect(),
        write: write.cloned().chain(DEVICES.map(str::to_owned)).collect(),
        connect: (*net != SandboxNet::Any).then(|| forward.to_vec()),
        is_scoped,
    }
}

/// Says what Landlock enforces.
pub fn enforced(mode: SandboxMode, net: &SandboxNet, is_scoped: bool) -> Vec<String> {
    let mut enforced = vec!["writes", "system calls"];
    if mode == SandboxMode::Strict {
        enforced.push("home");
    }
    if *net != SandboxNet::Any {
        enforced.push("ports of TCP");
    }
    if is_scoped {
        enforced.extend(["signals", "abstract sockets"]);
    }
    enforced.into_iter().map(str::to_owned).collect()
}

/// Says what stays open.
pub fn left_open(net: &SandboxNet, is_scoped: bool) -> Vec<String> {
    let mut open = vec![
        "protected files: a change is found afterwards and put back, and not prevented",
        "sockets of services, such as that of Docker, where this user may connect to them",
        "other processes of this user: what `/proc` shows of them",
        "a network of its own: a server of an action listens on the loopback of the machine, and the action does not \
         reach it",
    ];
    if *net == SandboxNet::Any {
        open.push("network: everything that this machine reaches, abstract sockets too");
    } else {
        open.push("network: UDP, and any host at the port of the proxy or one of `forward`");
    }
    if !is_scoped {
        open.push("signals to other processes of this user, and abstract sockets: they need Linux 6.12");
    }
    open.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(of: &[&str]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_above_a_home_is_read_and_only_the_scope_is_written() {
        let facts = PlanFacts {
            root: "/home/me/w".to_owned(),
            scope: texts(&["/home/me/w/src"]),
            home: Some("/home/me".to_owned()),
            home_entries: texts(&["/home/me/.bashrc"]),
            home_programs: texts(&["/home/me/.cargo/bin"]),
            private_home: "/p/home".to_owned(),
            private_tmp: "/p/tmp".to_owned(),
            run_dir: "/home/me/w/.loops/x".to_owned(),
            ..PlanFacts::default()
        };
        let top = texts(&["/etc", "/home", "/run", "/tmp", "/usr"]);
        let rules = |mode, net| landlock_rules(mode, net, (&[5432], true), &top, &facts);
        let of = rules(SandboxMode::Workspace, &SandboxNet::None);
        assert!(of.read.starts_with(&texts(&["/etc", "/usr", "/home/me/.bashrc", "/home/me/w"])), "{of:?}");
        assert!(of.write.starts_with(&texts(&["/home/me/w/src", "/p/home", "/p/tmp"])), "{of:?}");
        assert_eq!(of.connect, Some(vec![5432]));
        let strict = rules(SandboxMode::Strict, &SandboxNet::Any);
        assert!(!strict.read.contains(&"/home/me/.bashrc".to_owned()));
        assert_eq!(strict.connect, None);
    }

    #[test]
    fn what_stays_open_is_said() {
        let said = |net, is_scoped| left_open(net, is_scoped).join("; ");
        assert!(
            said(&SandboxNet::None, false).contains("UDP") && said(&SandboxNet::None, false).contains("6.12")
        );
        assert!(
            said(&SandboxNet::Any, true).contains("everything")
                && !said(&SandboxNet::Any, true).contains("6.12")
        );
        assert!(
            !enforced(SandboxMode::Workspace, &SandboxNet::Any, false).contains(&"ports of TCP".to_owned())
        );
    }
}
