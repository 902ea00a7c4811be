//! Finds the policy of a machine, and that of an environment.

use std::path::Path;

use crate::files::read::{self, Unread};
use crate::policy::in_force::Policy;
use crate::policy::policy_document::{MOST_BYTES, PolicyDocument, UnreadablePolicy};

/// The policy of a machine: it binds every run there.
pub const MACHINE_FILE: &str = "/etc/ll-loop/policy.yaml";

/// The variable with a policy, or with the path of one.
pub const VARIABLE: &str = "LL_LOOP_POLICY";

/// Reads what binds here: the file of the machine, and what the variable has. A relative path starts from `cwd`.
///
/// # Errors
/// One of them is there and cannot be read.
pub fn here(variable: Option<&str>, cwd: &Path) -> Result<Policy, UnreadablePolicy> {
    of(Path::new(MACHINE_FILE), variable, cwd)
}

fn of(machine: &Path, variable: Option<&str>, cwd: &Path) -> Result<Policy, UnreadablePolicy> {
    let mut policy = Policy::default();
    match file(machine, &machine.display().to_string()) {
        Ok(document) => policy.add(document),
        Err(Missed::Absent) => {}
        Err(Missed::Unreadable(why)) => return Err(why),
    }
    let Some(value) = variable.map(str::trim).filter(|value| !value.is_empty()) else { return Ok(policy) };
    // The environment was read with this character in place of what is not UTF-8.
    if value.contains('\u{fffd}') {
        return Err(UnreadablePolicy::new(VARIABLE, "it is not UTF-8"));
    }
    let document = if is_document(value) {
        PolicyDocument::read(VARIABLE, value)
    } else {
        let origin = format!("{value} ({VARIABLE})");
        file(&cwd.join(value), &origin).map_err(|missed| match missed {
            Missed::Absent => UnreadablePolicy::new(&origin, "there is no such file"),
            Missed::Unreadable(why) => why,
        })
    };
    policy.add(document?);
    Ok(policy)
}

/// Tells whether a text is a policy itself, and not the path of one.
fn is_document(text: &str) -> bool {
    // A colon alone may stand in a path.
    text.starts_with('{') || text.contains(['\n', '\r']) || text.contains(": ") || text.ends_with(':')
}

/// Why there is no policy in a file.
enum Missed {
    Absent,
    Unreadable(UnreadablePolicy),
}

fn file(path: &Path, origin: &str) -> Result<PolicyDocument, Missed> {
    let text = read::text(path, MOST_BYTES as u64).map_err(|unread| {
        // A link that leads nowhere was meant to lead to something.
        if matches!(unread, Unread::Absent) && fs_err::symlink_metadata(path).is_err() {
            Missed::Absent
        } else {
            Missed::Unreadable(UnreadablePolicy::new(origin, unread.to_string()))
        }
    })?;
    PolicyDocument::read(origin, &text).map_err(Missed::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(found: Result<Policy, UnreadablePolicy>) -> Vec<String> {
        found.unwrap().documents().iter().map(|document| document.origin().to_owned()).collect()
    }

    #[test]
    fn the_machine_and_the_variable_bind_both() {
        let directory = tempfile::tempdir().unwrap();
        let machine = directory.path().join("policy.yaml");
        let nothing = |variable| origins(of(&machine, variable, directory.path()));
        assert!(nothing(None).is_empty() && nothing(Some("")).is_empty() && nothing(Some(" \n ")).is_empty());
        std::fs::write(&machine, "hosts: [claude]\n").unwrap();
        std::fs::write(directory.path().join("other"), "hosts: [codex]\n").unwrap();
        let both = origins(of(&machine, Some("hosts: []"), directory.path()));
        assert_eq!(both, [machine.display().to_string(), VARIABLE.to_owned()]);
        let by_path = origins(of(&machine, Some("other"), directory.path()));
        assert_eq!(by_path[1], "other (LL_LOOP_POLICY)");
    }

    #[test]
    fn what_is_there_and_cannot_be_read_is_no_absence() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let nowhere = at("nowhere");
        std::fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink("missing", at("dangling")).unwrap();
        std::fs::write(at("binary"), b"hosts: [\xff]\n").unwrap();
        std::fs::write(at("empty"), "").unwrap();
        let large = std::fs::File::create(at("large")).unwrap();
        large.set_len(1 << 30).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        for name in ["directory", "dangling", "binary", "empty", "large", "fifo"] {
            assert!(of(&at(name), None, directory.path()).is_err(), "{name}");
            assert!(of(&nowhere, Some(name), directory.path()).is_err(), "{name}");
        }
        assert!(of(&nowhere, Some("gone.yaml"), directory.path()).is_err());
        assert!(of(&nowhere, Some("hosts: [\u{fffd}]"), directory.path()).is_err());
        assert!(of(&nowhere, None, directory.path()).unwrap().is_empty());
    }
}
