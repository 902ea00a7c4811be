//! What is known of judges by ecosystem: the file `catalog/judges.toml`, whose head says what each row means.

use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;
use serde::Deserialize;

use super::pattern::{PathPattern, PathSet};

/// All rows.
pub(super) static CATALOG: LazyLock<JudgeCatalog> = LazyLock::new(|| {
    toml::from_str(include_str!("../../catalog/judges.toml")).expect("a test reads the same file")
});

/// What the file holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JudgeCatalog {
    pub(super) lookers: Vec<String>,
    exceptions: Vec<PathPattern>,
    pub(super) tables: Pattern,
    #[serde(rename = "library")]
    libraries: Vec<LibraryRow>,
    #[serde(rename = "file")]
    pub(super) files: Vec<FileRow>,
    #[serde(rename = "section")]
    pub(super) sections: Vec<SectionRow>,
    pub(super) inside: Vec<InsideRow>,
    #[serde(rename = "language")]
    pub(super) languages: Vec<Language>,
    #[serde(rename = "suppression")]
    pub(super) suppressions: Vec<SuppressionRow>,
    #[serde(rename = "weakening")]
    pub(super) weakenings: Vec<WeakeningRow>,
    #[serde(rename = "case")]
    pub(super) cases: Vec<CaseRow>,
}

/// How a judge decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JudgeKind {
    /// It is found and run without being named.
    Shadow,
    /// It runs instead of its source, and may be made of something else.
    Compiled,
    /// It configures what looks.
    Config,
    /// It keeps files from being seen.
    Ignored,
    /// A workflow of a CI.
    Workflow,
    /// A test, or what one compares with.
    Test,
}

/// Files that are judges as a whole.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRow {
    pub(super) what: String,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for readers of the file, and tests count by it")
    )]
    pub(super) ecosystem: String,
    pub(super) kind: JudgeKind,
    paths: Vec<PathPattern>,
    #[serde(default)]
    except: Vec<PathPattern>,
    #[serde(default)]
    placed: Vec<PathPattern>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<String>,
    #[serde(skip)]
    sets: OnceLock<[PathSet; 3]>,
}

impl FileRow {
    pub(super) fn means(&self, path: &str) -> bool {
        let [paths, except, _] = self.sets();
        paths.matches(path) && !except.matches(path)
    }

    /// Tells whether a runner takes the file for a test, by its name or by where exactly it lies. What is only somewhere
    /// below a folder of tests may be anything.
    fn is_case(&self, path: &str) -> bool {
        let [_, _, cases] = self.sets();
        cases.matches(path)
    }

    fn sets(&self) -> &[PathSet; 3] {
        self.sets.get_or_init(|| {
            let names = self.paths.iter().filter(|pattern| !pattern.is_folder());
            let cases = PathSet::of(names.chain(&self.placed));
            [PathSet::of(&self.paths), PathSet::of(&self.except), cases]
        })
    }
}

/// Libraries that are not the work: those of a language, and those of its tools for tests. An interpreter looks for each
/// in places of the tree first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LibraryRow {
    pub(super) what: String,
    names: Vec<String>,
    /// Where they would lie, with `*` for the name.
    files: Vec<String>,
    /// Folders in which an interpreter looks, of the directory of a check.
    folders: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<String>,
}

impl LibraryRow {
    /// Tells whether a path is that of such a library, for an interpreter that is run in a directory and told of others.
    fn means(&self, path: &str, directory: &str, told: &[String]) -> bool {
        let own = self.folders.iter().map(|folder| match (directory, folder.as_str()) {
            ("", folder) => folder.to_owned(),
            (directory, "") => directory.to_owned(),
            (directory, folder) => format!("{directory}/{folder}"),
        });
        let mut places = own.chain(told.iter().cloned());
        places.any(|place| {
            let below = if place.is_empty() { Some(path) } else { path.strip_prefix(&format!("{place}/")) };
            below.is_some_and(|below| self.files.iter().any(|file| self.is_named(below, file)))
        })
    }

    fn is_named(&self, path: &str, file: &str) -> bool {
        let name = file.split_once('*').and_then(|(start, end)| path.strip_prefix(start)?.strip_suffix(end));
        name.is_some_and(|name| self.names.iter().any(|known| known == name))
    }
}

/// How parts of a file are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PartFormat {
    Toml,
    Json,
    Ini,
    Lines,
    Blocks,
    Make,
    Fences,
    Prompts,
}

/// Files of which parts are judges.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionRow {
    pub(super) what: String,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for readers of the file, and tests count by it")
    )]
    pub(super) ecosystem: String,
    files: Vec<PathPattern>,
    pub(super) format: PartFormat,
    #[serde(default)]
    pub(super) keys: Vec<String>,
    pub(super) pattern: Option<Pattern>,
    #[serde(default)]
    pub(super) grows: bool,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<[String; 2]>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<[String; 2]>,
    #[serde(skip)]
    set: OnceLock<PathSet>,
}

impl SectionRow {
    pub(super) fn means(&self, path: &str) -> bool {
        self.set.get_or_init(|| PathSet::of(&self.files)).matches(path)
    }
}

/// Tests within sources.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InsideRow {
    pub(super) what: String,
    pub(super) language: String,
    pub(super) format: PartFormat,
    pub(super) pattern: Pattern,
    pub(super) if_named: Option<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<[String; 2]>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<[String; 2]>,
}

/// How comments and texts of a language look.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Language {
    pub(super) name: String,
    files: Vec<PathPattern>,
    #[serde(default)]
    pub(super) line: Vec<String>,
    /// Whether a line comment begins only in front of a line or behind a blank.
    #[serde(default)]
    pub(super) begins: bool,
    #[serde(default)]
    pub(super) block: Vec<[String; 2]>,
    #[serde(default)]
    pub(super) texts: Vec<[String; 3]>,
    #[serde(default)]
    pub(super) long: Vec<[String; 3]>,
    #[serde(default)]
    pub(super) letters: bool,
    #[serde(skip)]
    set: OnceLock<PathSet>,
}

/// Where a suppression is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Where {
    Comment,
    Code,
}

/// What keeps a check from looking.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SuppressionRow {
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for readers of the file"))]
    pub(super) what: String,
    pub(super) languages: Vec<String>,
    #[serde(rename = "where")]
    pub(super) place: Where,
    #[serde(default)]
    pub(super) judges: bool,
    pub(super) pattern: Pattern,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<String>,
}

/// What has to follow a line that takes something away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Before {
    /// Nothing.
    #[default]
    End,
    /// A line of the same block.
    Line,
    /// Anything that is not less indented.
    Anything,
}

/// A line that takes something away from the test it is put into.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WeakeningRow {
    pub(super) what: String,
    languages: Vec<String>,
    #[serde(default)]
    pub(super) before: Before,
    /// Whether it decides for tests in other files, too.
    #[serde(default)]
    pub(super) of_others: bool,
    pub(super) pattern: Pattern,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<String>,
}

impl WeakeningRow {
    pub(super) fn is_of(&self, language: Option<&Language>) -> bool {
        self.languages.is_empty() || language.is_some_and(|language| self.languages.contains(&language.name))
    }
}

/// How cases of a language begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseRow {
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for readers of the file"))]
    pub(super) what: String,
    pub(super) language: String,
    pub(super) begins: Pattern,
    pub(super) ahead: Option<Pattern>,
    pub(super) marks: Option<Pattern>,
    pub(super) rows: Option<Pattern>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<String>,
}

/// A regular expression over a line, in linear time. It is compiled when it is first asked: a run needs the rows of its
/// languages alone.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern {
    source: String,
    compiled: OnceLock<Regex>,
}

impl From<String> for Pattern {
    fn from(source: String) -> Self {
        Self { source, compiled: OnceLock::new() }
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.compiled.get_or_init(|| Regex::new(&self.source).expect("a test tries every row"))
    }
}

impl JudgeCatalog {
    /// Returns the language of a file, by its name.
    pub(super) fn language(&self, path: &str) -> Option<&Language> {
        let means =
            |language: &&Language| language.set.get_or_init(|| PathSet::of(&language.files)).matches(path);
        self.languages.iter().find(means)
    }

    /// Returns how the cases of a language begin.
    pub(super) fn cases(&self, language: &Language) -> Vec<&CaseRow> {
        self.cases.iter().filter(|row| row.language == language.name).collect()
    }

    /// Tells whether a file lists what is excepted from checks: fewer of these take nothing away.
    pub(super) fn holds_exceptions(&self, path: &str) -> bool {
        PathSet::of(&self.exceptions).matches(path)
    }

    /// Says what a file is that an interpreter would load in place of a library that is not the work.
    pub(super) fn library(&self, path: &str, directory: &str, told: &[String]) -> Option<&str> {
        let row = self.libraries.iter().find(|row| row.means(path, directory, told))?;
        Some(&row.what)
    }

    /// Tells whether a new file among the tests is a test or data, and no code that may have a say in all of them.
    pub(super) fn is_case_or_data(&self, path: &str) -> bool {
        let language = self.language(path).map(|language| language.name.as_str());
        let is_data = matches!(language, None | Some("data" | "markup" | "css"));
        let mut tests = self.files.iter().filter(|row| row.kind == JudgeKind::Test);
        is_data || is_material(path) || tests.any(|row| row.is_case(path))
    }

    /// Returns the row of a judge as a whole, the most telling kind first.
    pub(super) fn file(&self, path: &str) -> Option<&FileRow> {
        let all = self.files.iter().filter(|row| row.means(path));
        // The kinds are declared in this order: what can do most comes first.
        let first = all.min_by_key(|row| row.kind)?;
        // A configuration among the files that a test reads configures nothing.
        let is_example = is_material(path) && first.kind != JudgeKind::Test;
        let test = || self.files.iter().find(|row| row.kind == JudgeKind::Test && row.means(path));
        if is_example { test() } else { Some(first) }
    }
}

fn is_material(path: &str) -> bool {
    path.rsplit('/').skip(1).any(|folder| MATERIAL.contains(&folder))
}

/// Folders of what tests read.
const MATERIAL: [&str; 8] =
    ["fixtures", "__fixtures__", "testdata", "test-data", "test_data", "golden", "goldens", "__snapshots__"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_row_of_files_means_its_examples_and_no_others() {
        for row in &CATALOG.files {
            for path in &row.examples {
                assert!(row.means(path), "{} of {}: {path}", row.what, row.ecosystem);
            }
            for path in &row.others {
                assert!(!row.means(path), "{} of {}: {path}", row.what, row.ecosystem);
            }
            assert!(!row.examples.is_empty() && !row.others.is_empty(), "{}", row.what);
        }
    }

    #[test]
    fn each_row_of_libraries_means_its_examples_and_no_others() {
        for row in &CATALOG.libraries {
            for path in &row.examples {
                assert!(row.means(path, "", &["more".to_owned()]), "{}: {path}", row.what);
            }
            for path in &row.others {
                assert!(!row.means(path, "", &["more".to_owned()]), "{}: {path}", row.what);
            }
        }
        assert!(CATALOG.library("app/src/json.py", "app", &[]).is_some());
        assert!(CATALOG.library("src/json.py", "app", &[]).is_none());
    }

    #[test]
    fn there_are_tests_and_configuration_for_each_ecosystem() {
        let of = |kind| {
            let rows = CATALOG.files.iter().filter(move |row| row.kind == kind);
            rows.map(|row| row.ecosystem.as_str()).collect::<BTreeSet<_>>()
        };
        for ecosystem in [
            "python",
            "rust",
            "js",
            "go",
            "java",
            "dotnet",
            "ruby",
            "php",
            "cpp",
            "shell",
            "terraform",
            "elixir",
        ] {
            assert!(of(JudgeKind::Test).contains(ecosystem), "{ecosystem}");
            assert!(of(JudgeKind::Config).contains(ecosystem), "{ecosystem}");
        }
    }

    #[test]
    fn each_line_that_weakens_is_found() {
        for row in &CATALOG.weakenings {
            for line in &row.examples {
                assert!(row.pattern.is_match(line), "{}: {line}", row.what);
            }
            for line in &row.others {
                assert!(!row.pattern.is_match(line), "{}: {line}", row.what);
            }
        }
    }
}
