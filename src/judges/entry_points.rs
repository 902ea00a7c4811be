//! Lists of what a package of Python adds to others: `entry_points.txt`, which an installation makes of the manifest.

/// Files in which a package names its entry points.
const MANIFESTS: [&str; 3] = ["pyproject.toml", "setup.cfg", "setup.py"];

/// Tells whether a path is that of such a list.
pub(super) fn is_list(path: &str) -> bool {
    path.ends_with("/entry_points.txt")
}

/// Returns the manifests of which a list may be made: those of the directories above it.
pub(super) fn manifests(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = path;
    while let Some((folder, _)) = at.rsplit_once('/') {
        found.extend(MANIFESTS.iter().map(|name| format!("{folder}/{name}")));
        at = folder;
    }
    found.extend(MANIFESTS.iter().map(|name| (*name).to_owned()));
    found
}

/// Tells whether a manifest names what a part of a list does: `pytest11: name=module`.
pub(super) fn is_named(part: &str, manifest: &str) -> bool {
    let Some((group, entry)) = part.split_once(": ") else { return false };
    // The line that begins a section names nothing.
    if entry.starts_with('[') {
        return true;
    }
    let plain = |text: &str| {
        text.chars().filter(|sign| !sign.is_whitespace() && !matches!(sign, '"' | '\'')).collect::<String>()
    };
    let (manifest, entry) = (plain(manifest), plain(entry));
    let ends = |rest: &str| {
        !rest.starts_with(|sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '.' | ':'))
    };
    manifest.contains(group)
        && manifest.match_indices(&entry).any(|(at, _)| ends(&manifest[at + entry.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_an_installation_makes_is_known_by_the_manifest() {
        let manifest = "[project.entry-points.pytest11]\nown = \"own.plugin\"\n";
        assert!(is_named("pytest11: [pytest11]", manifest) && is_named("pytest11: own=own.plugin", manifest));
        assert!(is_named(
            "pytest11: own=own.plugin",
            "setup(entry_points={'pytest11': ['own = own.plugin']})"
        ));
        for part in ["pytest11: evil=own.plugin", "pytest11: own=own", "flake8.extension: own=own.plugin"] {
            assert!(!is_named(part, manifest), "{part}");
        }
        assert_eq!(
            manifests("src/own.egg-info/entry_points.txt")[3..],
            [
                "src/pyproject.toml",
                "src/setup.cfg",
                "src/setup.py",
                "pyproject.toml",
                "setup.cfg",
                "setup.py"
            ]
        );
    }
}
