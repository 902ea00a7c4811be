//! Which files a repository's git configuration makes git open. Nobody else asks: git itself reads the configuration, and
//! this only tells whether it would wait for one of the files that stand there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::read;

/// The most bytes of a configuration that are looked through.
const MAX_CONFIG: u64 = 1 << 20;

/// The most configurations that are looked through: git itself follows ten, one inside of another.
const MOST_CONFIGS: usize = 32;

/// The most files that are looked at. Each is a question to the system before each call of git.
const MOST_NAMED: usize = 100_000;

/// The names of the settings whose values are files that git opens, in lower case: `include.path` and `includeIf.….path`,
/// `core.excludesFile`, `core.attributesFile`.
const OPENED: [&str; 3] = ["path", "excludesfile", "attributesfile"];

/// Returns the files that these configurations, and those that they include, name. A relative path counts from the
/// configuration that holds it, and from the root of the working tree.
pub(super) fn opened_by(configs: &[PathBuf], root: &Path) -> Vec<PathBuf> {
    let mut open = configs.to_vec();
    let mut known: HashSet<PathBuf> = configs.iter().cloned().collect();
    let mut named = Vec::new();
    let mut at = 0;
    while let Some(config) = open.get(at).filter(|_| at < MOST_CONFIGS).cloned() {
        at += 1;
        let Ok(text) = read::text(&config, MAX_CONFIG) else { continue };
        let values = text.lines().filter_map(file_named);
        // What a relative path counts from depends on the setting. Looking at a path too many does
        // no harm.
        for file in values.flat_map(|value| [config.with_file_name(&value), root.join(&value)]) {
            if known.insert(file.clone()) {
                // A pipe that is named behind so many others is left to the time that a call may take.
                if named.len() >= MOST_NAMED {
                    return named;
                }
                open.push(file.clone());
                named.push(file);
            }
        }
    }
    named
}

/// Returns the file that a line of a configuration names.
// A value may follow the section on one line: `[include] path = FILE`.
fn file_named(line: &str) -> Option<String> {
    let (before, value) = line.split_once('=')?;
    let name = before.rsplit([']', ' ', '\t']).find(|word| !word.is_empty())?;
    let is_opened = OPENED.iter().any(|opened| name.eq_ignore_ascii_case(opened));
    let value = value.trim().trim_matches('"');
    (is_opened && !value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_settings_and_of_what_is_included_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let config = "[core]\n\texcludesFile = \"pipe one\"\n[include] path=more\n[user]\n\tname = path\n";
        fs_err::write(at("config"), config).unwrap();
        fs_err::write(at("more"), "[core]\nAttributesFile=/x/attributes\n[include]\n\tpath = config\n")
            .unwrap();
        let found = opened_by(&[at("config"), at("absent")], Path::new("/root"));
        for expected in [at("pipe one"), at("more"), "/x/attributes".into(), "/root/pipe one".into()] {
            assert!(found.contains(&expected), "{expected:?} in {found:?}");
        }
        assert!(!found.contains(&at("path")), "{found:?}");
    }

    #[test]
    fn a_configuration_that_names_all_files_that_fit_into_it_is_soon_read() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("config");
        let lines: Vec<String> = (0..70_000).map(|number| format!("path={number}")).collect();
        fs_err::write(&config, format!("[include]\n{}\n", lines.join("\n"))).unwrap();
        assert_eq!(opened_by(&[config], Path::new("/root")).len(), MOST_NAMED);
    }
}
