//! The environments of tox and nox by their names, which workflows of others take as inputs and run.

use super::found_repository::Repository;

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
