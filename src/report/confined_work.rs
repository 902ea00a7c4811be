//! What confined the actions of a run: how many, by what and how far, and what they asked for and were denied.

use indexmap::{IndexMap, IndexSet};

use crate::base::text::{listed, plural};
use crate::engine::sandbox_event::{HostCounts, SandboxEvent, denied};

/// Hosts, and changed files, that are kept.
const MOST_KEPT: usize = 200;

/// Files that a sentence names.
const MOST_NAMED: usize = 8;

/// The actions of a run that were confined, by engine and mode.
#[derive(Clone, Debug, Default)]
pub struct ConfinedWork {
    rows: IndexMap<(String, String), ConfinedActions>,
}

/// Actions that one engine confined in one mode.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct ConfinedActions {
    /// What confined them.
    pub engine: String,
    /// How far.
    pub mode: String,
    /// How many they were.
    pub actions: u64,
    /// What was enforced.
    pub enforced: IndexSet<String>,
    /// What was not, for some of them at least.
    pub missing: IndexSet<String>,
    /// What they tried to reach.
    pub net: HostCounts,
    /// Protected files that they changed, which were put back.
    pub put_back: IndexSet<String>,
}

impl ConfinedWork {
    /// Takes an action.
    pub fn acted(&mut self, event: &SandboxEvent) {
        let key = (event.engine.clone(), event.mode.clone());
        let row = self.rows.entry(key).or_insert_with(|| ConfinedActions {
            engine: event.engine.clone(),
            mode: event.mode.clone(),
            enforced: event.enforced.iter().cloned().collect(),
            ..ConfinedActions::default()
        });
        row.actions += 1;
        // What one of them lacked, all together lack.
        row.enforced.retain(|what| event.enforced.contains(what));
        row.missing.extend(event.missing.iter().cloned());
        // Paths come from the tree, and an action can make any number of them.
        row.put_back
            .extend(event.put_back.iter().take(MOST_KEPT.saturating_sub(row.put_back.len())).cloned());
        for (host, count) in &event.net {
            if row.net.len() < MOST_KEPT || row.net.contains_key(host) {
                let sum = row.net.entry(host.clone()).or_default();
                sum.allowed = sum.allowed.saturating_add(count.allowed);
                sum.denied = sum.denied.saturating_add(count.denied);
                sum.is_telemetry = count.is_telemetry;
            }
        }
    }

    /// Returns them, in the order in which each kind was first seen.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &ConfinedActions> {
        self.rows.values()
    }
}

impl ConfinedActions {
    /// Says what confined them and how far: `bwrap confined 3 actions (workspace)`.
    pub fn sentence(&self) -> String {
        if self.mode == SandboxEvent::OFF {
            return format!("the loop left {} open (`sandbox: off`)", plural(self.actions, "action"));
        }
        let verb = if self.engine == "host" { "was left" } else { "confined" };
        format!("{} {verb} {} ({})", self.engine, plural(self.actions, "action"), self.mode)
    }

    /// Says what was missing, put back and denied, each as a sentence of its own.
    pub fn remarks(&self) -> Vec<String> {
        let named = |names: &IndexSet<String>| {
            let names: Vec<&str> = names.iter().take(MOST_NAMED).map(String::as_str).collect();
            listed(&names, "and")
        };
        let missing = self.missing.iter().map(|what| format!("not enforced: {what}"));
        let put_back = (!self.put_back.is_empty())
            .then(|| format!("protected files were changed, and put back: {}", named(&self.put_back)));
        missing.chain(put_back).chain(denied(&self.net)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sandbox_event::HostCount;

    #[test]
    fn actions_are_counted_together_and_lack_what_one_of_them_lacked() {
        let event = |enforced: &[&str], missing: &[&str], denied| SandboxEvent {
            engine: "bwrap".to_owned(),
            mode: "workspace".to_owned(),
            enforced: enforced.iter().map(ToString::to_string).collect(),
            missing: missing.iter().map(ToString::to_string).collect(),
            net: HostCounts::from([("a.b".to_owned(), HostCount { denied, ..HostCount::default() })]),
            put_back: vec![".npmrc".to_owned()],
        };
        let mut work = ConfinedWork::default();
        work.acted(&event(&["writes", "network"], &[], 1));
        work.acted(&event(&["writes"], &["network"], 2));
        let [row] = work.rows().collect::<Vec<_>>()[..] else { panic!("{work:?}") };
        assert_eq!(row.sentence(), "bwrap confined 2 actions (workspace)");
        assert_eq!(row.enforced.iter().collect::<Vec<_>>(), ["writes"]);
        let said = row.remarks();
        assert_eq!(
            said[..2],
            ["not enforced: network", "protected files were changed, and put back: `.npmrc`"]
        );
        assert!(said[2].contains("a.b 3 times"), "{said:?}");
    }
}
