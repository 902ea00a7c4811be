//! The licence that the files of a repository carry in their first lines: where a program looks for it, what `init` writes carries it too.

use std::collections::BTreeMap;

use super::ci_files::{self, OWN_WORKFLOWS};
use super::found_repository::Repository;

/// Programs that look for it, as workflows name them.
const CHECKERS: [&str; 8] = [
    "addlicense",
    "copywrite",
    "hawkeye",
    "licensecheck",
    "license-eye",
    "license-header",
    "reuse lint",
    "skywalking-eyes",
];

/// Their configuration, by how its paths begin.
const SETTINGS: [&str; 5] = [".copywrite.hcl", ".licenserc", "REUSE.toml", "licenserc.toml", "LICENSES/"];

/// Returns the comment that most files of the repository carry which have comments as YAML does, where something looks for it.
pub(super) fn licence_header(repository: &Repository) -> Option<String> {
    let is_setting = |path: &str| SETTINGS.iter().any(|begin| path.starts_with(begin));
    let is_looked_for = repository.paths().any(is_setting) || is_looked_for_by_build(repository);
    if !is_looked_for && !ci_files::say(repository, &CHECKERS) {
        return None;
    }
    let is_own = |path: &&str| path.starts_with(".loops/") || OWN_WORKFLOWS.contains(path);
    let has_comments = |path: &&str| {
        [".yml", ".yaml", ".toml", ".sh", ".py", "Makefile"].iter().any(|end| path.ends_with(end))
    };
    let texts = repository.paths().filter(has_comments).filter(|path| !is_own(path));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for header in texts.filter_map(|path| header_of(repository.text(path)?)) {
        *counts.entry(header).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(header, _)| header)
}

/// Tells whether the build of a repository looks for it. The parent of Apache's own projects does.
fn is_looked_for_by_build(repository: &Repository) -> bool {
    let signs = ["apache-rat", "license-maven-plugin", "org.nosphere.apache.rat", "hierynomus.license"];
    let files = ["pom.xml", "build.gradle", "build.gradle.kts"];
    let mut texts = files.into_iter().filter_map(|file| repository.text(file));
    let has_parent = |text: &str| {
        let parent = text.split_once("<parent>").and_then(|(_, rest)| rest.split_once("</parent>"));
        parent.is_some_and(|(parent, _)| parent.contains("<groupId>org.apache"))
    };
    texts.any(|text| has_parent(text) || signs.iter().any(|sign| text.contains(sign)))
}

/// Returns the comment with which a text begins, where it is about a licence.
fn header_of(text: &str) -> Option<String> {
    const LONGEST: usize = 40;
    let lines = text.lines().skip_while(|line| line.starts_with("#!") || *line == "---" || line.is_empty());
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with('#')).take(LONGEST).collect();
    let lower = lines.join("\n").to_ascii_lowercase();
    let says = ["copyright", "spdx-license-identifier"].iter().any(|sign| lower.contains(sign));
    let is_plain = !lower.chars().any(|c| c.is_control() && c != '\n');
    (says && is_plain).then(|| lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "# Copyright X\n# SPDX-License-Identifier: MIT\n";

    #[test]
    fn the_licence_is_that_of_most_files_where_something_looks_for_it() {
        let with = |more: (&str, &str)| {
            let headed = format!("{HEADER}\non: push\n");
            let files = [
                ("a.yml", headed.as_str()),
                ("b.sh", "#!/bin/sh\n# Copyright X\n# SPDX-License-Identifier: MIT\n\n# more\n"),
                ("c.yml", "# Copyright Y\n"),
                ("d.yml", "# how to build\na: 1\n"),
                more,
            ];
            let repository = Repository::new(files.map(|(path, text)| (path.to_owned(), text.to_owned())));
            licence_header(&repository)
        };
        assert_eq!(with((".copywrite.hcl", "")).as_deref(), Some(HEADER));
        assert_eq!(
            with((".github/workflows/a.yml", "on: push\njobs: {a: {steps: [{run: addlicense -check .}]}}\n"))
                .as_deref(),
            Some(HEADER)
        );
        for pom in [
            "<parent>\n<groupId>org.apache.maven</groupId></parent>",
            "<plugin><artifactId>apache-rat-plugin</artifactId></plugin>",
        ] {
            assert_eq!(with(("pom.xml", pom)).as_deref(), Some(HEADER), "{pom}");
        }
        assert_eq!(with(("pom.xml", "<groupId>org.apache</groupId>")), None);
        assert_eq!(with(("x", "")), None);
        assert_eq!(header_of("a: 1\n"), None);
    }
}
