//! Lists of ignored paths, such as `.gitignore`: tools that ask git do not look at what stands there.

use super::pattern::{PathPattern, PathSet};

/// Returns the first tracked file that a list hides at the end and did not hide at the start. `path` is that of the list,
/// and it speaks of what is below its folder.
pub(super) fn hides<'t>(path: &str, start: &str, end: &str, tracked: &'t [String]) -> Option<&'t str> {
    let folder = match path {
        // It lies in the git directory and speaks of the whole tree.
        ".git/info/exclude" => "",
        _ => path.rsplit_once('/').map_or("", |(folder, _)| folder),
    };
    let known: Vec<&str> = entries(start).collect();
    let new: Vec<PathPattern> = entries(end)
        // A negated entry shows more and hides nothing.
        .filter(|entry| !known.contains(entry) && !entry.starts_with('!'))
        .filter_map(|entry| PathPattern::parse(entry).ok())
        .collect();
    // But one that is gone may hide what it showed.
    let is_gone = |entry: &&str| entry.starts_with('!') && !entries(end).any(|other| other == *entry);
    let shown_before: Vec<PathPattern> = known
        .iter()
        .filter(|entry| is_gone(entry))
        .filter_map(|entry| PathPattern::parse(&entry[1..]).ok())
        .collect();
    if new.is_empty() && shown_before.is_empty() {
        return None;
    }
    let set = PathSet::of(new.iter().chain(&shown_before));
    let below = |path: &'t String| match folder {
        "" => Some(path.as_str()),
        _ => path.strip_prefix(folder)?.strip_prefix('/'),
    };
    tracked.iter().find(|path| below(path).is_some_and(|below| set.matches(below))).map(String::as_str)
}

/// Tells whether a list hides, or shows, anything at all.
pub fn lists_something(list: &str) -> bool {
    entries(list).next().is_some()
}

/// Tells what a list says of a path below its folder; nothing where it does not name it.
pub fn ignores(list: &str, path: &str) -> Option<bool> {
    let said = |entry: &str| {
        let shown = entry.strip_prefix('!');
        let pattern = PathPattern::parse(shown.unwrap_or(entry)).ok()?;
        PathSet::of([&pattern]).matches(path).then_some(shown.is_none())
    };
    // The last entry that names it decides.
    entries(list).filter_map(said).last()
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_that_names_a_path_decides() {
        for (list, path, expected) in [
            ("*.out\n", "a/coverage.out", Some(true)),
            ("*.out\n!coverage.out\n", "coverage.out", Some(false)),
            ("/coverage/\n", "coverage/a.xml", Some(true)),
            ("/coverage/\n# *.xml\n", "a.xml", None),
        ] {
            assert_eq!(ignores(list, path), expected, "{list} and {path}");
        }
    }

    #[test]
    fn a_list_hides_what_is_there_or_nothing() {
        let tracked = ["src/a.py".to_owned(), "sub/tests/b.py".to_owned()];
        for (path, start, end, expected) in [
            (".gitignore", "", "__pycache__/\n*.log\n", None),
            (".gitignore", "", "a.py\n", Some("src/a.py")),
            (".gitignore", "*.py\n", "*.py\n# more\n", None),
            (".gitignore", "*\n!a.py\n", "*\n", Some("src/a.py")),
            ("sub/.gitignore", "", "/tests\n", Some("sub/tests/b.py")),
            ("sub/.gitignore", "", "src/\n", None),
            (".gitignore", "", "!a.py\n[\n", None),
        ] {
            assert_eq!(hides(path, start, end, &tracked), expected, "{path} {end}");
        }
    }
}
