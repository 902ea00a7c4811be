//! What ll-loop tells the two processes that it is beside a confined action: the gate outside, and the warden inside.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::landlock_rules::LandlockRules;
use super::plan::RO_BIND;

/// What the names of the action's variables begin with while they are in the gate's environment: under their own names,
/// some of them would change what the gate and the engine do, outside of the sandbox.
pub const VARIABLE: &str = "LL_SANDBOX_ENV_";

/// The word by which ll-loop is started as the gate.
pub const GATE: &str = "sandbox-gate";

/// The word by which ll-loop is started as the warden.
pub const WARDEN: &str = "sandbox-warden";

/// The socket on which the warden hears of the gate.
pub const CONTROL: &str = "control";

/// The socket behind which the proxy is.
pub const PROXY: &str = "proxy";

/// What the gate does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateOrder {
    /// The process that ordered it. The gate ends with it.
    pub parent: u32,
    /// What it starts, which in turn starts the warden.
    pub engine: EngineCall,
    /// The directory of its sockets, which no other user can look into.
    pub doors: String,
    /// The hosts that the proxy reaches; without, there is no proxy.
    pub hosts: Option<Vec<String>>,
    /// Ports of this machine's loopback that are reached from inside.
    pub forward: Vec<u16>,
    /// Where it writes what was reached.
    pub report: String,
    /// The directory of the action.
    pub cwd: String,
    /// The action.
    pub action: Vec<String>,
}

/// How the process is started that the warden is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCall {
    /// The program of the engine, and its options.
    pub argv: Vec<String>,
    /// Files that the options of bubblewrap hide, which others may remove at any time, such as the sockets of services.
    pub hidden: BTreeSet<String>,
    /// What follows behind the options: the warden, as it is called inside.
    pub warden: Vec<String>,
    /// As whom it is started, where that is somebody else.
    pub user: Option<GateUser>,
    /// Its environment. That of the action comes to the warden in another way.
    pub env: Vec<(String, String)>,
    /// Who hands the filters of system calls to the kernel.
    pub filters: FiltersBy,
    /// What the warden keeps to, where it shares the file system and the network of the machine.
    pub landlock: Option<LandlockRules>,
}

impl EngineCall {
    /// Returns its program and the options of this moment: bubblewrap fails where there is nothing any more that it could hide.
    pub fn argv_now(&self, is_there: impl Fn(&str) -> bool) -> Vec<&str> {
        let (mut kept, mut rest) = (Vec::with_capacity(self.argv.len()), self.argv.as_slice());
        while let Some((first, others)) = rest.split_first() {
            rest = match rest {
                [bind, _, path, later @ ..]
                    if bind == RO_BIND && self.hidden.contains(path) && !is_there(path) =>
                {
                    later
                }
                _ => {
                    kept.push(first.as_str());
                    others
                }
            };
        }
        kept
    }
}

/// Who hands the filters of system calls to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FiltersBy {
    /// The engine, which gets them as descriptors, in the options of bubblewrap.
    #[default]
    Engine,
    /// The warden, before it starts the action.
    Warden,
}

/// A user by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateUser {
    /// The user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// What was reached, by the name of the host: connections that were made, and those that were refused.
pub type Reached = BTreeMap<String, (u64, u64)>;

/// What the gate leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// Whether anything ran inside.
    pub is_started: bool,
    /// Why the action could not be started there.
    pub failure: Option<String>,
    /// What was reached.
    pub reached: Reached,
}

/// What the warden does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WardenOrder {
    /// The environment of the action.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The action.
    pub action: Vec<String>,
    /// Its directory.
    pub cwd: String,
    /// Whether the warden has to hand the filters of system calls to the kernel.
    pub has_filters: bool,
    /// What it keeps to, where it shares the file system and the network of the machine.
    pub landlock: Option<LandlockRules>,
}

/// What the warden says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WardenSaid {
    /// The action runs.
    Running,
    /// It cannot be started.
    NotStarted(String),
    /// A signal has ended it.
    Signalled(i32),
}

/// The address of the proxy, as programs are told it.
pub fn proxy_address(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// The socket of a port of this machine's loopback.
pub fn forwarded(port: u16) -> String {
    format!("port-{port}")
}

/// Returns the environment in which the gate is told that of an action.
pub fn disguised(env: BTreeMap<String, String>) -> Vec<(String, String)> {
    env.into_iter().map(|(name, value)| (format!("{VARIABLE}{name}"), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_not_hidden_and_everything_else_stays() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let call = EngineCall {
            argv: words(
                "bwrap --ro-bind / / --ro-bind /b /s/gone --ro-bind /b /s/there --ro-bind /a /b/gone",
            ),
            hidden: ["/s/gone", "/s/there"].map(str::to_owned).into(),
            ..EngineCall::default()
        };
        let now = call.argv_now(|path| !path.ends_with("gone"));
        assert_eq!(now, words("bwrap --ro-bind / / --ro-bind /b /s/there --ro-bind /a /b/gone"));
        assert_eq!(call.argv_now(|_| true), call.argv);
    }
}
