//! How an action was confined, as the journal says it, and the sentence about hosts that it was denied.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Denied hosts that a sentence names.
const MOST_NAMED: usize = 8;

/// How an action was confined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxEvent {
    /// What confined it; `none` where nothing did although it should have been.
    pub engine: String,
    /// How far.
    pub mode: String,
    /// What was enforced.
    pub enforced: Vec<String>,
    /// What was not.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<String>,
    /// What it tried to reach, by the name of the host.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub net: HostCounts,
    /// Protected files that it changed all the same, which were put back.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub put_back: Vec<String>,
}

impl SandboxEvent {
    /// The word for an action that the loop leaves open.
    pub const OFF: &str = "off";

    /// The engine where nothing confines, and where only the host of an agent does.
    const OPEN_ENGINES: [&str; 2] = ["none", "host"];

    /// Says that the loop leaves an action open.
    pub fn off() -> Self {
        Self { engine: "none".to_owned(), mode: Self::OFF.to_owned(), ..Self::default() }
    }

    /// Tells whether the loop leaves the action open.
    pub fn is_off(&self) -> bool {
        self.mode == Self::OFF
    }

    /// Tells whether a sandbox of ours held the action, and nothing of what its mode means was missing.
    pub fn is_whole(&self) -> bool {
        let is_ours = !self.engine.is_empty() && !Self::OPEN_ENGINES.contains(&self.engine.as_str());
        is_ours && matches!(self.mode.as_str(), "workspace" | "strict") && self.missing.is_empty()
    }
}

/// What was tried to reach, by the name of the host.
pub type HostCounts = BTreeMap<String, HostCount>;

/// How often a host was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCount {
    /// Connections that were made.
    pub allowed: u64,
    /// Connections that were refused.
    pub denied: u64,
    /// Whether it is where a CLI tells its vendor how it is used: nobody wants to know that it was refused.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_telemetry: bool,
}

/// Says which hosts were denied, with the line that would allow them; nothing where there are none.
pub fn denied(net: &HostCounts) -> Option<String> {
    let denied: Vec<_> =
        // CLIs try to reach their vendor's statistics; that they cannot is what people want.
        net.iter().filter(|(_, count)| count.denied > 0 && !count.is_telemetry).take(MOST_NAMED).collect();
    let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let said: Vec<_> = denied.iter().map(|(host, count)| format!("{host} {}", times(count.denied))).collect();
    let hosts: Vec<_> = denied.iter().map(|(host, _)| host.as_str()).collect();
    (!denied.is_empty()).then(|| {
        format!(
            "the sandbox denied {}; `net: [{}]` under `sandbox` would allow it",
            said.join(", "),
            hosts.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_who_was_denied_and_leaves_telemetry_out() {
        let count = |denied, is_telemetry| HostCount { allowed: 1, denied, is_telemetry };
        let net = HostCounts::from(
            [
                ("a.b", count(2, false)),
                ("c.d", count(1, false)),
                ("e.f", count(0, false)),
                ("t.t", count(9, true)),
            ]
            .map(|(host, count)| (host.to_owned(), count)),
        );
        let said =
            "the sandbox denied a.b 2 times, c.d once; `net: [a.b, c.d]` under `sandbox` would allow it";
        assert_eq!(denied(&net).unwrap(), said);
        assert_eq!(denied(&HostCounts::new()), None);
    }
}
