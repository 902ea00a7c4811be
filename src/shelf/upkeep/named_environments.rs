//! The environments of tox and nox by their names, which variables say, and inputs that workflows of others take and run.

use super::ci::words;
use super::found_repository::Repository;

/// The variables by which tox and nox are told what to run.
pub(super) const VARIABLES: [&str; 3] = ["TOXENV", "TOX_ENV", "NOXSESSION"];

/// Returns a line with the environments that variables name for its runner: in their places, or where it names none itself, behind it.
pub(super) fn with_variables(line: &str, named: &[(&'static str, &str)]) -> String {
    // The nearest comes last.
    let put_in = |line: String, (name, value): &(&'static str, &str)| {
        let ways =
            [format!("\"${name}\""), format!("\"${{{name}}}\""), format!("${{{name}}}"), format!("${name}")];
        ways.iter().fold(line, |line, way| line.replace(way, value))
    };
    let line = named.iter().rev().fold(line.to_owned(), put_in);
    let all = words(&line);
    let Some((runner, rest)) = all.split_first() else { return line };
    let (begin, option) = match *runner {
        "tox" => ("TOX", "-e"),
        "nox" => ("NOX", "-s"),
        _ => return line,
    };
    let chooses = |word: &&str| {
        ["-e", "-f", "-m", "-s", "-k", "-t", "--env", "--session", "--tags", "--label"]
            .iter()
            .any(|option| word.starts_with(option))
    };
    let is_bare = rest.first().is_none_or(|word| word.starts_with('-')) && !rest.iter().any(chooses);
    let value = named.iter().rfind(|(name, _)| name.starts_with(begin)).map(|(_, value)| value.trim());
    match value.filter(|value| is_bare && !value.is_empty() && !line.contains([';', '|', '&'])) {
        Some(value) if !line.contains(" -- ") => format!("{line} {option} {value}"),
        Some(_) | None => line,
    }
}

/// Returns the calls of the environments that a line of an input names: by their names alone, or behind `tox -e`.
pub(super) fn calls_in(repository: &Repository, line: &str) -> Vec<String> {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || ",;:'\"".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let all = environments(repository);
    let call = |at: usize| {
        let name = words[at];
        // Digits tell a version, and so an interpreter that a machine may lack.
        if name.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let is_behind_tox = at >= 2 && words[at - 2..at] == ["tox", "-e"];
        let runner = all.iter().find(|(_, known)| *known == name).map(|(runner, _)| *runner);
        Some(match runner.or(is_behind_tox.then_some(Runner::Tox))? {
            Runner::Tox => format!("tox -e {name}"),
            Runner::Nox => format!("nox -s {name}"),
        })
    };
    (0..words.len()).filter_map(call).collect()
}

/// What runs an environment.
#[derive(Clone, Copy, Debug)]
enum Runner {
    Tox,
    Nox,
}

/// Returns the names of the repository's own environments.
fn environments(repository: &Repository) -> Vec<(Runner, &str)> {
    let of_tox = [("tox.ini", "[testenv:"), ("tox.toml", "[env."), ("pyproject.toml", "[tool.tox.env.")];
    let sections = of_tox.into_iter().flat_map(|(file, begin)| {
        let text = repository.text(file).unwrap_or("");
        text.lines().filter_map(move |line| line.trim().strip_prefix(begin)?.strip_suffix(']'))
    });
    let names = sections.map(|name| name.trim_matches(['"', '\'', ' '])).filter(|name| is_name(name));
    let noxfile = repository.text("noxfile.py").unwrap_or("");
    let sessions = noxfile.split("@nox.session").skip(1);
    let sessions = sessions.filter_map(|rest| Some(rest.split_once("def ")?.1.split_once('(')?.0));
    names.map(|name| (Runner::Tox, name)).chain(sessions.map(|name| (Runner::Nox, name))).collect()
}

/// Tells whether a name is that of one environment, and not a pattern of several, nor the key of a table within one.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_name_environments() {
        let named = [("TOXENV", "all"), ("NOXSESSION", "tests"), ("TOXENV", "${{ matrix.env }}")];
        for (line, expected) in [
            ("tox", "tox -e ${{ matrix.env }}"),
            ("uv run tox run -v", "uv run tox run -v -e ${{ matrix.env }}"),
            ("tox -e \"$TOXENV\"", "tox -e ${{ matrix.env }}"),
            ("tox -e lint", "tox -e lint"),
            ("tox -- -k x", "tox -- -k x"),
            ("tox list", "tox list"),
            ("nox", "nox -s tests"),
            ("nox -s lint", "nox -s lint"),
            ("make", "make"),
        ] {
            assert_eq!(with_variables(line, &named), expected, "{line}");
        }
        assert_eq!(with_variables("tox", &[]), "tox");
    }

    #[test]
    fn a_line_of_an_input_calls_the_environments_that_it_names() {
        let files = [
            ("tox.ini", "[testenv:lint]\n[testenv:docs-{a,b}]\n[testenv:pkg]\n[testenv:py314-devel]\n"),
            ("noxfile.py", "@nox.session(python=\"3\")\ndef types(session):\n    x\n"),
        ];
        let repository = Repository::new(files.map(|(path, text)| (path.to_owned(), text.to_owned())));
        for (line, expected) in [
            ("lint", &["tox -e lint"][..]),
            ("lint-pkg:tox -e lint;tox -e pkg", &["tox -e lint", "tox -e pkg"]),
            ("- linux: types", &["nox -s types"]),
            ("tox -e docs-a", &["tox -e docs-a"]),
            ("docs-a, unlint", &[]),
            ("py314-devel", &[]),
        ] {
            assert_eq!(calls_in(&repository, line), expected, "{line}");
        }
    }
}
