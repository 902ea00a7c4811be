//! Says in one line what a run finds otherwise than the nearest earlier one, which is why it has to be made.

use std::collections::BTreeMap;

use super::key::KeyParts;
use super::record::{FileTable, ReuseRecord};
use crate::base::text::one_line;

/// What differs between an earlier run and one that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordDifference {
    /// What differs, each in a few words: files first, then tools, then the rest.
    differing: Vec<String>,
    run: String,
}

impl RecordDifference {
    /// Compares a record with the parts of a key; nothing where they are the same.
    pub fn between(record: &ReuseRecord, parts: &KeyParts) -> Option<Self> {
        let mut differing = Vec::new();
        let (then, now) = (record.sums.named(), parts.sums().named());
        let differs = |name: &str| {
            let of = |all: &[(&'static str, crate::base::sum::Sum)]| {
                all.iter().find(|(known, _)| *known == name).map(|(_, sum)| *sum)
            };
            of(&then) != of(&now)
        };
        if differs("inputs") || differs("judges") {
            files(record.files.as_ref(), parts, &mut differing);
        }
        if differs("tools") {
            tools(&record.tools, parts, &mut differing);
        }
        for (part, words) in [
            ("loop", "the loop is another one"),
            ("values", "its values are others"),
            ("options", "it has other options"),
            ("env", "a variable of the environment is another one"),
            ("platform", "the system, its image or the directory of the loop is another one"),
            ("sandbox", "actions are confined in another way"),
        ] {
            if differs(part) {
                differing.push(words.to_owned());
            }
        }
        (!differing.is_empty()).then(|| Self { differing, run: record.run.run.clone() })
    }

    /// Returns how many things differ: the nearest record is the one with the fewest.
    pub fn count(&self) -> usize {
        self.differing.len()
    }

    /// Says it in one line: `src/api/a.rs changed since run 812`.
    pub fn sentence(&self) -> String {
        let first = self.differing.first().map_or("", String::as_str);
        let more = match self.differing.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        one_line(&format!("{first} since run {}{more}", self.run), 300)
    }
}

fn files(then: Option<&FileTable>, parts: &KeyParts, differing: &mut Vec<String>) {
    let (Some(then), Some(now)) = (then, FileTable::of(parts)) else {
        differing.push("its files are others".to_owned());
        return;
    };
    let then: BTreeMap<String, &str> = then.all().collect();
    let now: BTreeMap<String, &str> = now.all().collect();
    let before = differing.len();
    for (path, digits) in &now {
        match then.get(path) {
            None => differing.push(format!("{} is new", one_line(path, 120))),
            Some(known) if known != digits => differing.push(format!("{} changed", one_line(path, 120))),
            Some(_) => {}
        }
    }
    let gone = then.keys().filter(|path| !now.contains_key(*path));
    differing.extend(gone.map(|path| format!("{} is gone", one_line(path, 120))));
    // Files that are looked for and not there are judges, too, and stand in no table.
    if differing.len() == before {
        differing.push("what its checks look for is another one".to_owned());
    }
}

fn tools(then: &BTreeMap<String, crate::base::sum::Sum>, parts: &KeyParts, differing: &mut Vec<String>) {
    let before = differing.len();
    for (command, sum) in &parts.tools {
        if then.get(command) != Some(sum) {
            differing.push(format!("`{}` says something else", one_line(command, 80)));
        }
    }
    if differing.len() == before {
        differing.push("it asks other tools".to_owned());
    }
}
