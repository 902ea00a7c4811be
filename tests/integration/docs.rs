//! What the documentation shows is true: every loop in it loads, every dependency is accounted for.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::Project;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<PathBuf> {
    let markdown = |directory: &Path| {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect::<Vec<_>>()
    };
    [root(), root().join("docs"), root().join("docs/design")]
        .iter()
        .flat_map(|directory| markdown(directory))
        .collect()
}

/// Returns the fenced blocks with this mark.
fn blocks(text: &str, mark: &str) -> Vec<String> {
    let fence = format!("```{mark}\n");
    let starts = text.split(&fence).skip(1);
    starts.map(|rest| rest.split("\n```").next().unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn every_loop_in_the_documentation_loads() {
    let mut count = 0;
    for document in documents() {
        for block in blocks(&fs::read_to_string(&document).unwrap(), "yaml loop") {
            let project = Project::with_loop(&block);
            let ran = project.run(&["validate", "main"]);
            assert_eq!(ran.code, Some(0), "{}:\n{block}\n{}", document.display(), ran.all());
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn every_dependency_is_accounted_for() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let reasons = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let mut count = 0;
    let mut in_dependencies = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if let (true, Some((name, _))) = (in_dependencies, line.split_once(" =")) {
            assert!(
                reasons.contains(&format!("`{name}`")),
                "docs/dependencies.md does not say why `{name}` is there"
            );
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn links_within_the_repository_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let is_local = !path.is_empty() && !target.contains("://") && !path.starts_with("mailto:");
            if is_local && !document.parent().unwrap().join(path).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
