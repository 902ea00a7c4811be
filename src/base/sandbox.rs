//! What a loop says under `sandbox`: how far its actions are confined, and by what.

use serde_json::{Value, json};

use super::decode::{Bounds, Decode, Definitions, choice, ranged, record, text, wrong_type};
use super::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use super::node::{Node, NodeValue};
use super::path::DocPath;
use super::text::after_last;

choice! {
    /// How far an action is confined.
    pub enum SandboxMode {
        /// Not at all: whatever the user may.
        Off = "off",
        /// It writes files of the scope and of the run, and reads the rest of the system.
        Workspace = "workspace",
        /// The same, without the home of the user and without a network.
        Strict = "strict",
        /// It changes nothing, as far as the host of a prompt keeps its agent to that.
        ReadOnly = "read-only",
    }
}

choice! {
    /// What confines an action.
    pub enum SandboxEngine {
        /// The first one that works here.
        Auto = "auto",
        /// The program bubblewrap.
        Bwrap = "bwrap",
        /// A container.
        Container = "container",
        /// Landlock alone, with what it leaves open named.
        Landlock = "landlock",
        /// The host's own sandbox, by its flag.
        Host = "host",
    }
}

ranged! {
    /// A port of TCP.
    pub struct Port(u16) in Bounds::whole(1.0, 65535.0, "a port from 1 to 65535")
}

record! {
    /// How actions are confined.
    pub struct SandboxKeys {
        /// How far.
        mode: SandboxMode = SandboxMode::Workspace,
        /// Further paths that may be written, absolute or relative to the working tree; `~/` is the home.
        write: Vec<String> = Vec::new(),
        /// Paths that are not there, absolute or relative to the working tree; `~/` is the home.
        hide: Vec<String> = Vec::new(),
        /// What can be reached: `none`, `any`, or the names of hosts.
        net: Option<SandboxNet>,
        /// Ports of this machine's loopback that can be reached at the same number.
        forward: Vec<Port> = Vec::new(),
        /// What confines them.
        engine: SandboxEngine = SandboxEngine::Auto,
    }
}

/// What an action may reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SandboxNet {
    /// Its own loopback.
    None,
    /// The machine's whole network.
    Any,
    /// These hosts, by name.
    Hosts(Vec<HostPattern>),
}

/// The name of a host, or `*.` and the end of names, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    /// The name in lower case, without the star.
    name: String,
    is_wild: bool,
    port: Option<u16>,
}

/// Why a text names no host that can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoHost {
    /// An address says nothing about who is reached.
    #[error("an address is not a name; addresses are never reached")]
    Address,
    /// It has signs that no name has.
    #[error("write a name such as `api.example.com`, `*.example.com` or `example.com:8443`")]
    Form,
}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It is an address, or no name.
    pub fn parse(text: &str) -> Result<Self, NoHost> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') => {
                (name, Some(port.parse().ok().filter(|port| *port != 0).ok_or(NoHost::Form)?))
            }
            // Several colons make an address of IPv6.
            Some(_) => return Err(NoHost::Address),
            None => (text, None),
        };
        let lower = name.to_ascii_lowercase();
        let (name, is_wild) = lower.strip_prefix("*.").map_or((lower.as_str(), false), |rest| (rest, true));
        let is_part = |part: &str| {
            // By the rules no host has an underscore in its name, and in practice some have.
            let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !part.is_empty() && part.len() < 64 && part.bytes().all(is_sign)
        };
        // 63 and 253 bytes are the limits of DNS. A star in front of a single label would allow a whole top-level domain.
        if name.len() > 253 || !name.split('.').all(is_part) || (is_wild && !name.contains('.')) {
            return Err(NoHost::Form);
        }
        // As `inet_aton` does, resolvers read a name whose last part is a number as an address.
        let last = after_last(name, &['.']);
        if last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") {
            return Err(NoHost::Address);
        }
        Ok(Self { name: name.to_owned(), is_wild, port })
    }

    /// Tells whether a name and a port are allowed by it. Without a port it stands for those of HTTP.
    pub fn allows(&self, name: &str, port: u16) -> bool {
        // A dot at the end says that a name is complete, and changes nothing about it.
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let is_name = match name.strip_suffix(self.name.as_str()) {
            // `*.example.com` does not stand for `example.com` itself.
            Some("") => !self.is_wild,
            Some(before) => self.is_wild && before.ends_with('.'),
            None => false,
        };
        is_name && self.port.map_or(matches!(port, 80 | 443), |allowed| allowed == port)
    }

    /// Tells whether it allows everything that another one does.
    pub fn covers(&self, other: &Self) -> bool {
        let is_name = if self.is_wild {
            let ends_with = other.name.strip_suffix(self.name.as_str());
            // `*.a.example` covers itself and not `a.example`.
            ends_with.is_some_and(|before| before.ends_with('.') || (before.is_empty() && other.is_wild))
        } else {
            !other.is_wild && self.name == other.name
        };
        let is_port = |port: u16| self.port.map_or(matches!(port, 80 | 443), |allowed| allowed == port);
        is_name && other.port.map_or(self.port.is_none(), is_port)
    }

    /// Returns it as it is written.
    pub fn word(&self) -> String {
        let star = if self.is_wild { "*." } else { "" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{star}{}{port}", self.name)
    }
}

impl Decode for HostPattern {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let name = text(node, path, "the name of a host", out)?;
        Self::parse(name)
            .map_err(|why| {
                let message =
                    format!("`{}` is not a host that can be allowed", super::text::one_line(name, 80));
                let place = FindingPlace::Value(path.clone());
                out.push(Diagnostic::error("sandbox", place, message).help(why.to_string()));
            })
            .ok()
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "description": "The name of a host, such as `api.example.com`, `*.example.com` or `example.com:8443`."})
    }
}

impl Decode for SandboxNet {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match (&node.value, node.as_scalar().map(|scalar| scalar.text.trim())) {
            (NodeValue::List(_), _) => {
                let hosts: Vec<HostPattern> = Vec::decode(node, path, out)?;
                // A list without hosts lets nothing through, as the word `none` does.
                Some(if hosts.is_empty() { Self::None } else { Self::Hosts(hosts) })
            }
            (_, Some("none")) => Some(Self::None),
            (_, Some("any")) => Some(Self::Any),
            _ => {
                wrong_type(node, path, "`none`, `any` or a list of hosts", out);
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [{"enum": ["none", "any"]}, Vec::<HostPattern>::schema(definitions)]})
    }
}

/// What a loop asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SandboxRules {
    /// How far actions are confined.
    pub mode: SandboxMode,
    /// Further paths that may be written.
    pub write: Vec<String>,
    /// Paths that are not there.
    pub hide: Vec<String>,
    /// What can be reached, where that is said.
    pub net: Option<SandboxNet>,
    /// Ports of the machine's loopback.
    pub forward: Vec<u16>,
    /// What confines them.
    pub engine: SandboxEngine,
}

impl SandboxRules {
    /// Makes the rules of a mode, with nothing else said.
    pub fn of(mode: SandboxMode) -> Self {
        Self {
            mode,
            write: Vec::new(),
            hide: Vec::new(),
            net: None,
            forward: Vec::new(),
            engine: SandboxEngine::Auto,
        }
    }

    /// Tells whether the system has to confine the action, not only the host.
    pub fn confines(&self) -> bool {
        matches!(self.mode, SandboxMode::Workspace | SandboxMode::Strict)
    }

    /// Returns what can be reached. Only a loop that says so reaches anything; where it says nothing, what was tried is
    /// told with the line that would allow it.
    pub fn network(&self) -> SandboxNet {
        let unsaid = || match self.mode {
            SandboxMode::Workspace => SandboxNet::Hosts(Vec::new()),
            SandboxMode::Off | SandboxMode::Strict | SandboxMode::ReadOnly => SandboxNet::None,
        };
        self.net.clone().unwrap_or_else(unsaid)
    }

    fn is_bare(&self) -> bool {
        *self == Self::of(self.mode)
    }
}

impl Decode for SandboxRules {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        if !matches!(node.value, NodeValue::Map(_)) {
            return SandboxMode::decode(node, path, out).map(Self::of);
        }
        let SandboxKeys { mode, write, hide, net, forward, engine } = SandboxKeys::decode(node, path, out)?;
        let forward = forward.into_iter().map(Port::get).collect();
        let rules = Self { mode, write, hide, net, forward, engine };
        if rules.is_bare() || rules.confines() {
            return Some(rules);
        }
        let message = format!("`sandbox: {}` confines nothing that the other keys could bound", mode.word());
        let place = FindingPlace::Value(path.clone());
        out.push(
            Diagnostic::error("sandbox", place, message)
                .help("write `mode: workspace` or `mode: strict`, or the mode alone"),
        );
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [SandboxMode::schema(definitions), SandboxKeys::schema(definitions)]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_and_never_an_address() {
        for (text, name, port, is_allowed) in [
            ("example.com", "example.com", 443, true),
            ("example.com", "EXAMPLE.com.", 80, true),
            ("example.com", "example.com", 22, false),
            ("example.com", "a.example.com", 443, false),
            ("example.com", "notexample.com", 443, false),
            ("*.example.com", "a.b.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("*.example.com", "aexample.com", 443, false),
            ("example.com:8443", "example.com", 8443, true),
            ("example.com:8443", "example.com", 443, false),
            ("localhost", "localhost", 80, true),
        ] {
            let pattern = HostPattern::parse(text).unwrap();
            assert_eq!(pattern.allows(name, port), is_allowed, "{text} {name}:{port}");
            assert_eq!(HostPattern::parse(&pattern.word()), Ok(pattern));
        }
        for address in ["1.2.3.4", "2130706433", "0x7f.1", "127.1", "::1", "1.2.3.0x4"] {
            assert!(HostPattern::parse(address).is_err(), "{address}");
        }
        for none in ["", "*", "*.com", "https://a.b", "a/b", "a b", "a..b", "a:0", "a:x", "ä.de"] {
            assert_eq!(HostPattern::parse(none), Err(NoHost::Form), "{none}");
        }
    }
}
