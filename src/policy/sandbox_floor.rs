//! How far actions are confined at least, by one document: whether what a loop says of its sandbox is enough.

use crate::base::sandbox::{HostPattern, SandboxEngine, SandboxMode, SandboxNet, SandboxRules};
use crate::base::text::listed;
use crate::policy::policy_rules::{LeastConfined, SandboxLeast, SandboxRuleKeys};

/// How far actions are confined where a loop says nothing, and by which of several documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxFloor {
    /// The mode.
    pub mode: SandboxMode,
    /// Whether every action is confined, and not only agents and what runs after them.
    pub of_everything: bool,
}

impl SandboxFloor {
    /// Returns the floor of a document.
    pub fn of(keys: &SandboxRuleKeys) -> Self {
        let mode = match keys.mode {
            SandboxLeast::Workspace => SandboxMode::Workspace,
            SandboxLeast::Strict => SandboxMode::Strict,
        };
        Self { mode, of_everything: keys.of == LeastConfined::Everything }
    }

    /// Returns what keeps to both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let is_stricter = rank(other.mode) > rank(self.mode);
        let mode = if is_stricter { other.mode } else { self.mode };
        Self { mode, of_everything: self.of_everything || other.of_everything }
    }
}

/// Orders modes by how much they forbid.
fn rank(mode: SandboxMode) -> u8 {
    match mode {
        SandboxMode::Off => 0,
        // The host's word alone.
        SandboxMode::ReadOnly => 1,
        SandboxMode::Workspace => 2,
        SandboxMode::Strict => 3,
    }
}

/// Tells whether a mode is at least as strict as another.
pub fn reaches(mode: SandboxMode, floor: SandboxMode) -> bool {
    rank(mode) >= rank(floor)
}

/// Returns what of the rules of a loop is less strict than a document: the words as they are written, and what the document
/// allows in their place.
pub fn looser(said: &SandboxRules, keys: &SandboxRuleKeys) -> Option<(String, String)> {
    let floor = SandboxFloor::of(keys);
    if !reaches(said.mode, floor.mode) {
        return Some((format!("sandbox: {}", said.mode.word()), format!("asks for `{}`", floor.mode.word())));
    }
    match said.engine {
        // What these leave open is the host's word, or a list of what is missing.
        SandboxEngine::Host | SandboxEngine::Landlock => {
            let allowed = "asks for an engine that enforces all of it: `auto`, `bwrap` or `container`";
            return Some((format!("engine: {}", said.engine.word()), allowed.to_owned()));
        }
        SandboxEngine::Auto | SandboxEngine::Bwrap | SandboxEngine::Container => {}
    }
    if let Some((net, allowed)) = looser_net(&said.network(), keys) {
        return Some((net, allowed));
    }
    if let Some(path) =
        said.write.iter().find(|path| !keys.write.iter().any(|allowed| is_below(path, allowed)))
    {
        let allowed = if keys.write.is_empty() {
            "allows no path beside the scope".to_owned()
        } else {
            format!("allows {}", listed(&keys.write, "and"))
        };
        return Some((format!("write: [{path}]"), allowed));
    }
    let port =
        said.forward.iter().find(|port| !keys.forward.iter().any(|allowed| allowed.get() == **port))?;
    Some((format!("forward: [{port}]"), "does not allow that port".to_owned()))
}

/// Returns what a loop lets actions reach that a document does not allow.
fn looser_net(said: &SandboxNet, keys: &SandboxRuleKeys) -> Option<(String, String)> {
    let hosts = match said {
        SandboxNet::None => return None,
        SandboxNet::Any if keys.net == Some(SandboxNet::Any) => return None,
        SandboxNet::Any => return Some(("net: any".to_owned(), "allows hosts by name at most".to_owned())),
        SandboxNet::Hosts(hosts) => hosts,
    };
    let allowed = match (&keys.net, keys.mode) {
        (Some(SandboxNet::Any), _) | (None, SandboxLeast::Workspace) => return None,
        (Some(SandboxNet::None), _) | (None, SandboxLeast::Strict) => &[],
        (Some(SandboxNet::Hosts(allowed)), _) => allowed.as_slice(),
    };
    let is_covered = |host: &HostPattern| allowed.iter().any(|allowed| allowed.covers(host));
    let host = hosts.iter().find(|host| !is_covered(host))?;
    let allows = if allowed.is_empty() {
        "allows no network".to_owned()
    } else {
        format!("allows {}", listed(allowed.iter().map(HostPattern::word), "and"))
    };
    Some((format!("net: [{}]", host.word()), allows))
}

/// Tells whether a path is another one, or lies below it, as they are written. A path that climbs may lead anywhere.
fn is_below(path: &str, above: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        let root = path.starts_with('/').then(|| "/".to_owned());
        let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned);
        root.into_iter().chain(parts).collect()
    };
    let (path, above) = (parts(path), parts(above));
    // A path without parts would be above every other.
    path.starts_with(&above) && !above.is_empty() && !path.iter().any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::decode::Decode as _;
    use crate::base::diagnostic::Diagnostics;
    use crate::base::node::FileId;
    use crate::base::path::DocPath;
    use crate::definition::yaml;
    use crate::policy::policy_rules::SandboxRule;

    fn said(text: &str) -> SandboxRules {
        let mut out = Diagnostics::default();
        let tree = yaml::parse(&format!("s: {text}"), FileId(0), &mut out).unwrap();
        SandboxRules::decode(tree.get("s").unwrap(), &DocPath::root(), &mut out).unwrap()
    }

    fn keys(text: &str) -> SandboxRuleKeys {
        let mut out = Diagnostics::default();
        let tree = yaml::parse(&format!("s: {text}"), FileId(0), &mut out).unwrap();
        SandboxRule::decode(tree.get("s").unwrap(), &DocPath::root(), &mut out).unwrap().0
    }

    #[test]
    fn a_loop_says_as_much_or_more() {
        for (policy, of_loop, refused) in [
            ("workspace", "workspace", None),
            ("workspace", "strict", None),
            ("workspace", "{mode: strict, hide: [x]}", None),
            ("workspace", "off", Some("sandbox: off")),
            ("workspace", "read-only", Some("sandbox: read-only")),
            ("strict", "workspace", Some("sandbox: workspace")),
            ("workspace", "{net: any}", Some("net: any")),
            ("workspace", "{net: [example.com]}", None),
            ("{net: any}", "{net: any}", None),
            ("{net: none}", "{net: [example.com]}", Some("net: [example.com]")),
            ("{net: ['*.example.com']}", "{net: [a.example.com]}", None),
            ("{net: ['*.example.com']}", "{net: [example.com]}", Some("net: [example.com]")),
            ("{net: [example.com]}", "{net: ['*.example.com']}", Some("net: [*.example.com]")),
            ("{net: [example.com]}", "{net: ['example.com:22']}", Some("net: [example.com:22]")),
            ("strict", "{mode: strict, net: [example.com]}", Some("net: [example.com]")),
            ("{mode: strict, net: [example.com]}", "{mode: strict, net: [example.com]}", None),
            ("workspace", "{engine: host}", Some("engine: host")),
            ("workspace", "{engine: landlock}", Some("engine: landlock")),
            ("workspace", "{engine: container}", None),
            ("workspace", "{write: [/]}", Some("write: [/]")),
            ("workspace", "{write: ['~/.cache']}", Some("write: [~/.cache]")),
            ("{write: ['~/.cache']}", "{write: ['~/.cache/pip/']}", None),
            ("{write: ['~/.cache']}", "{write: ['~/.cache/../.ssh']}", Some("write: [~/.cache/../.ssh]")),
            ("{write: ['~/.cache']}", "{write: ['~/.cached']}", Some("write: [~/.cached]")),
            ("workspace", "{forward: [2375]}", Some("forward: [2375]")),
            ("{forward: [5432]}", "{forward: [5432]}", None),
        ] {
            let found = looser(&said(of_loop), &keys(policy)).map(|(what, _)| what);
            assert_eq!(found.as_deref(), refused, "{policy}: {of_loop}");
        }
    }
}
