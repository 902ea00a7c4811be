//! The files of this repository that inputs are made from.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the repository").to_owned()
}

/// Returns the texts of the files with these endings directly below a directory, in the order of their names; none
/// where the sources are not there.
fn files(directory: &str, extensions: &[&str]) -> Vec<String> {
    let entries = fs::read_dir(root().join(directory)).into_iter().flatten().filter_map(Result::ok);
    let is_wanted =
        |path: &PathBuf| path.extension().is_some_and(|found| extensions.iter().any(|e| found == *e));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_wanted).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Returns every loop file of the tests and of this repository itself, and every block of YAML and every loop in its
/// documents.
pub fn loops() -> Vec<String> {
    let yaml = ["yaml", "yml"];
    let mut all = files("tests/fixtures/loops", &yaml);
    all.extend(files("tests/fixtures/seeds", &yaml));
    all.extend(files(".loops", &yaml));
    all.extend(documents().iter().flat_map(|text| blocks(text, "yaml loop")));
    all
}

/// Returns the documents.
pub fn documents() -> Vec<String> {
    ["docs", "docs/design"].iter().flat_map(|directory| files(directory, &["md"])).collect()
}

/// Returns the fenced blocks with this mark.
fn blocks(text: &str, mark: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(found) = line.strip_prefix("```") {
            let block: String =
                lines.by_ref().take_while(|line| *line != "```").flat_map(|l| [l, "\n"]).collect();
            if found == mark {
                blocks.push(block);
            }
        }
    }
    blocks
}
