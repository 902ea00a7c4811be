//! The file `.loops/quarantine.yaml`: read by runs, and written by people, who may use a command for it.

use std::io;
use std::path::Path;

use super::quarantine::{self, FILE, QuarantineEntry, WrongQuarantine};
use crate::base::text::one_line;
use crate::files::read::{self, Unread};
use crate::files::replace::replace;

/// The largest file, in bytes.
const LARGEST: u64 = 256 * 1024;

/// The head of a new file.
const HEAD: &str = "# Checks whose failures are excused for a time; after its day, an entry excuses nothing. `ll-loop quarantine list` shows them.\n";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineFileError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no file that is read.
    #[error(transparent)]
    Unread(#[from] Unread),
    /// Its text cannot be read as a quarantine.
    #[error("it is not UTF-8")]
    NoText,
    /// It says something that no quarantine says.
    #[error(transparent)]
    Wrong(#[from] WrongQuarantine),
}

/// Returns the text of the file in `.loops`; none where there is no file.
///
/// # Errors
/// It cannot be read.
pub fn text(loops: &Path) -> Result<Option<String>, QuarantineFileError> {
    let file = loops.join(FILE);
    // A link that leads nowhere is not absent: whether it should excuse something is unknown.
    if file.symlink_metadata().is_err() {
        return Ok(None);
    }
    let bytes = read::bytes(&file, LARGEST)?;
    String::from_utf8(bytes).map(Some).map_err(|_| QuarantineFileError::NoText)
}

/// Returns the entries of the file in `.loops`.
///
/// # Errors
/// It cannot be read, or says something that no quarantine says.
pub fn entries(loops: &Path) -> Result<Vec<QuarantineEntry>, QuarantineFileError> {
    let text = text(loops)?;
    Ok(text.map_or_else(|| Ok(Vec::new()), |text| quarantine::parse(&text))?)
}

/// Adds an entry to the file in `.loops`, unless it is there. What stands there stays as it is.
///
/// # Errors
/// The entry is invalid, or the file cannot be read or written.
pub fn add(loops: &Path, entry: &QuarantineEntry) -> Result<(), QuarantineFileError> {
    // Held until the file is in its place, because it is read, added to and replaced. The directory stays the same one.
    let turn = read::directory(loops)?;
    turn.lock()?;
    let known = text(loops)?.unwrap_or_else(|| HEAD.to_owned());
    let end = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    // A string of JSON is one of YAML as well, whatever stands in it.
    let value = |value: &str| serde_json::Value::from(one_line(value, 400)).to_string();
    let added = format!(
        "{known}{end}- loop: {}\n  state: {}\n  owner: {}\n  until: {}\n  reason: {}\n",
        value(&entry.subject),
        value(entry.state.as_str()),
        value(&entry.owner),
        value(&entry.until),
        value(&entry.reason)
    );
    // Before it is written, since one wrong entry would make the whole file excuse nothing.
    let entries = quarantine::parse(&added)?;
    if entries.split_last().is_some_and(|(last, others)| others.contains(last)) {
        return Ok(());
    }
    replace(&loops.join(FILE), added.into_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::StateName;

    fn entry(owner: &str) -> QuarantineEntry {
        QuarantineEntry {
            subject: "api".to_owned(),
            state: StateName::parse("test").unwrap(),
            owner: owner.to_owned(),
            until: "2999-12-31".to_owned(),
            reason: "r".to_owned(),
        }
    }

    #[test]
    fn what_several_add_at_once_is_all_there_and_nothing_twice() {
        let directory = tempfile::tempdir().unwrap();
        let loops = directory.path();
        let owners: Vec<String> = (0..8).map(|number| format!("a{number}")).collect();
        std::thread::scope(|scope| {
            for owner in &owners {
                scope.spawn(move || add(loops, &entry(owner)).unwrap());
            }
        });
        add(loops, &entry("a3")).unwrap();
        let mut found: Vec<String> = entries(loops).unwrap().into_iter().map(|entry| entry.owner).collect();
        found.sort();
        assert_eq!(found, owners);
    }
}
