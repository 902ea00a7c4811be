//! Options by which tests write files about themselves, what they reach or how each of them ended. A loop measures nothing, and such
//! a file in the tree would look like a change of the work.

use super::found_repository::Repository;
use super::script_lines::raw_words;
use crate::judges::ignore_lists::ignores;

/// Options whose value is the file.
const FILES: [&str; 12] = [
    "-coverprofile",
    "--coverprofile",
    "--junitxml",
    "--junit-xml",
    "--junitfile",
    "--jsonfile",
    "--log-junit",
    "--coverage-clover",
    "--coverage-cobertura",
    "--coverage-html",
    "--coverage-xml",
    "--coverage-php",
];

/// Those of them that have all tests measured, which a loop does not: they are left out also where git ignores the file.
const MEASURES: [&str; 4] =
    ["--coverage-clover", "--coverage-cobertura", "--coverage-html", "--coverage-xml"];

/// Options that say how such a file is filled, each with the beginning of the one that names it.
const OF_FILES: [(&str, &str); 4] = [
    ("-covermode", "-coverprofile"),
    ("-coverpkg", "-coverprofile"),
    ("--covermode", "--coverprofile"),
    ("--coverpkg", "--coverprofile"),
];

/// What reports of pytest-cov are named where only their kind is said.
const REPORTS: [(&str, &str); 4] = [
    ("xml", "coverage.xml"),
    ("html", "htmlcov/index.html"),
    ("json", "coverage.json"),
    ("lcov", "coverage.lcov"),
];

/// An option of a command that writes a file, with the words that it takes.
struct ResultOption {
    /// The place of its first word among those of the command, and how many it has.
    at: usize,
    count: usize,
    name: String,
    /// The file; nothing for an option that only says how another one's is filled.
    file: Option<String>,
}

/// Returns a command without what writes files that the repository does not ignore, or only measures; as it is where there is none.
pub(super) fn without_result_files(repository: &Repository, directory: &str, command: &str) -> String {
    let Some(words) = raw_words(command) else { return command.to_owned() };
    let options = options(&words);
    let writes = |option: &ResultOption| {
        let measures = MEASURES.contains(&option.name.as_str());
        option.file.as_ref().is_some_and(|file| measures || !is_ignored(repository, directory, file))
    };
    let written: Vec<&ResultOption> = options.iter().filter(|option| writes(option)).collect();
    let is_of_written = |option: &ResultOption| {
        OF_FILES
            .iter()
            .any(|(of, named)| option.name == *of && written.iter().any(|written| written.name == *named))
    };
    let left_out: Vec<&ResultOption> =
        options.iter().filter(|option| writes(option) || is_of_written(option)).collect();
    if left_out.is_empty() {
        return command.to_owned();
    }
    let is_kept =
        |at: &usize| !left_out.iter().any(|option| (option.at..option.at + option.count).contains(at));
    let kept: Vec<&str> = (0..words.len()).filter(is_kept).map(|at| words[at]).collect();
    kept.join(" ")
}

/// Returns words without all options that write such files, ignored or not.
pub(super) fn without_options<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let options = options(words);
    let is_kept =
        |at: &usize| !options.iter().any(|option| (option.at..option.at + option.count).contains(at));
    (0..words.len()).filter(is_kept).map(|at| words[at]).collect()
}

fn options(words: &[&str]) -> Vec<ResultOption> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let option = option(words, at);
        at += option.as_ref().map_or(1, |option| option.count);
        found.extend(option);
    }
    found
}

/// Reads the option that begins at a word: with its value behind `=` or `:`, or in the next word.
fn option(words: &[&str], at: usize) -> Option<ResultOption> {
    let word = *words.get(at)?;
    let (name, value, count) = match word.split_once('=').or_else(|| word.split_once(':')) {
        Some((name, value)) => (name, value, 1),
        None => (word, *words.get(at + 1)?, 2),
    };
    let value = value.trim_matches(['"', '\'']);
    // What the shell would make of it is not known here.
    if !name.starts_with('-') || value.is_empty() || value.starts_with('-') || value.contains('$') {
        return None;
    }
    let file = match name {
        _ if OF_FILES.iter().any(|(of, _)| *of == name) => None,
        _ if FILES.contains(&name) => Some(value.to_owned()),
        "--cov-report" => Some(report(value)?),
        "--logger" | "-l" if value.split(';').next() == Some("trx") => Some("TestResults/x.trx".to_owned()),
        "--collect" => Some("TestResults/x.xml".to_owned()),
        _ => return None,
    };
    Some(ResultOption { at, count, name: name.to_owned(), file })
}

/// Returns the file of a report, `xml` or `xml:reports/all.xml`; those for a terminal have none.
fn report(value: &str) -> Option<String> {
    let (kind, file) = value.split_once(':').map_or((value, None), |(kind, file)| (kind, Some(file)));
    let (_, usual) = REPORTS.iter().find(|(known, _)| *known == kind)?;
    Some(file.unwrap_or(usual).to_owned())
}

/// Tells whether git ignores a file that a command writes, or it lies outside of the tree.
fn is_ignored(repository: &Repository, directory: &str, file: &str) -> bool {
    let file = file.strip_prefix("./").unwrap_or(file);
    if file.starts_with(['/', '~']) || file.starts_with("..") {
        return true;
    }
    let path = if directory.is_empty() { file.to_owned() } else { format!("{directory}/{file}") };
    let above = path.match_indices('/').map(|(at, _)| &path[..=at]);
    // The list nearest to the file decides last.
    let lists = std::iter::once("")
        .chain(above)
        .filter_map(|above| Some((above.len(), repository.text(&format!("{above}.gitignore"))?)));
    lists.fold(false, |ignored, (at, list)| ignores(list, &path[at..]).unwrap_or(ignored))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(command: &str, ignored: &str) -> String {
        let files = [(".gitignore", ignored), ("api/.gitignore", "!kept.xml\n")];
        let repository = Repository::new(files.map(|(path, text)| (path.to_owned(), text.to_owned())));
        without_result_files(&repository, "api", command)
    }

    #[test]
    fn a_command_writes_no_file_that_would_be_a_change() {
        for (command, expected) in [
            ("go test -race -coverprofile=coverage.out -covermode=atomic ./...", "go test -race ./..."),
            ("go test -v -coverprofile=\"coverage.out\" ./... -coverpkg ./...", "go test -v ./..."),
            ("go test -covermode=atomic ./...", "go test -covermode=atomic ./..."),
            ("go test ./... -coverprofile", "go test ./... -coverprofile"),
            (
                "pytest --cov=src --cov-report=xml --cov-report=term tests",
                "pytest --cov=src --cov-report=term tests",
            ),
            ("pytest --cov-report xml:out/all.xml --junitxml=junit.xml -q", "pytest -q"),
            ("dotnet test --logger \"trx;LogFileName=a b.trx\" -c Release", "dotnet test -c Release"),
            ("dotnet test -l trx --collect:\"XPlat Code Coverage\"", "dotnet test"),
            ("dotnet test --logger GitHubActions", "dotnet test --logger GitHubActions"),
            ("vendor/bin/phpunit --coverage-clover clover.xml", "vendor/bin/phpunit"),
            ("phpunit --coverage-xml=x --testdox", "phpunit --testdox"),
            ("phpunit --coverage-text", "phpunit --coverage-text"),
            ("pytest --junitxml=/tmp/junit.xml", "pytest --junitxml=/tmp/junit.xml"),
            ("pytest 'a  b'", "pytest 'a  b'"),
        ] {
            assert_eq!(without(command, "*.log\n"), expected, "{command}");
        }
    }

    #[test]
    fn what_git_ignores_may_be_written() {
        let command = "go test -coverprofile=coverage.out -covermode=atomic ./...";
        for ignored in ["*.out\n", "coverage.out\n", "/api/coverage.out\n", "api/\n"] {
            assert_eq!(without(command, ignored), command, "{ignored}");
        }
        assert_eq!(without("pytest --junitxml=kept.xml", "*.xml\n"), "pytest");
        assert_eq!(without("phpunit --coverage-clover x.xml", "*.xml\n"), "phpunit");
    }
}
