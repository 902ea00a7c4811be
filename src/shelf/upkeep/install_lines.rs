//! The lines of a job that make it ready for others: they install what a repository depends on.

use super::script_lines::without_assignments;
use crate::base::text::first_word;

/// What installs what a repository depends on, by how the command begins.
const INSTALLS: [&str; 41] = [
    "helm plugin install",
    "nimble install",
    "lein deps",
    "dart pub get",
    "dart pub upgrade",
    "flutter pub get",
    "opam install",
    "opam update",
    "mix deps.get",
    "mix local.hex",
    "mix local.rebar",
    "cabal update",
    "pip install",
    "pip3 install",
    "python -m pip install",
    "python3 -m pip install",
    "pipx install",
    "uv sync",
    "uv pip install",
    "uv tool install",
    "poetry install",
    "pdm install",
    "pipenv install",
    "npm ci",
    "npm install",
    "npm i",
    "pnpm install",
    "pnpm i",
    "yarn install",
    "yarn --immutable",
    "yarn --frozen-lockfile",
    "bun install",
    "corepack enable",
    "bundle install",
    "composer install",
    "composer update",
    "go mod download",
    "go install",
    "rustup ",
    "cargo install",
    "dotnet tool restore",
];

/// Tells whether a line of a job prepares it.
pub(super) fn is_install(command: &str) -> bool {
    let begins = |begin: &&str| {
        command.strip_prefix(begin.trim_end()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let by_task = shlex::split(command).is_some_and(|words| {
        let names: Vec<&str> = words.iter().map(String::as_str).collect();
        let (["make" | "just" | "task", name] | ["npm" | "pnpm" | "yarn" | "bun", "run", name]) =
            names.as_slice()
        else {
            return false;
        };
        matches!(*name, "deps" | "install" | "setup" | "install-dev" | "dev-install" | "bootstrap")
    });
    // `yarn` alone is `yarn install`.
    command == "yarn" || by_task || is_of_system(command) || INSTALLS.iter().any(begins)
}

/// Programs that install packages of the system.
const OF_SYSTEM: [&str; 6] = ["apt", "apt-get", "apk", "dnf", "microdnf", "yum"];

/// Tells whether a line is about packages of the system.
pub(super) fn is_of_system(command: &str) -> bool {
    let plain = as_user(command);
    let changes =
        |word: &str| matches!(word, "install" | "add" | "update" | "upgrade" | "build-dep" | "remove");
    OF_SYSTEM.contains(&first_word(plain)) && plain.split(' ').any(changes)
}

/// Tells whether a line installs packages of the system, and does not only ask which there are.
pub(super) fn installs_of_system(command: &str) -> bool {
    is_of_system(command) && command.split(' ').any(|word| matches!(word, "install" | "add" | "build-dep"))
}

/// Tells whether a line is about packages of the system and asks nobody for the rights to change them.
pub(super) fn is_of_root(command: &str) -> bool {
    is_of_system(command) && first_word(without_assignments(command)) != "sudo"
}

/// Returns a command without `sudo`, its options and the variables around it.
fn as_user(command: &str) -> &str {
    let plain = without_assignments(command);
    let Some(mut rest) = plain.strip_prefix("sudo ") else { return plain };
    while let Some((_, behind)) = rest.split_once(' ').filter(|(word, _)| word.starts_with('-')) {
        rest = behind;
    }
    without_assignments(rest)
}

/// Tells whether a command leaves nothing behind that another one needs, or only what every machine has: of a line with several, the
/// rest stands by itself.
pub(super) fn makes_ready(command: &str) -> bool {
    let plain = ["echo", "mkdir", "set", "export", "source", ".", "true", "ls", "pwd", "cat", "date", "rm"];
    plain.contains(&first_word(command)) || is_install(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_system_are_told_from_what_only_looks() {
        for (command, is_about, is_root) in [
            ("sudo apt-get install -y libx", true, false),
            ("sudo -E apt update", true, false),
            ("sudo DEBIAN_FRONTEND=noninteractive apt-get install x", true, false),
            ("apt-get -qq install x", true, true),
            ("DEBIAN_FRONTEND=noninteractive apt-get install x", true, true),
            ("apk add --no-cache git", true, true),
            ("dnf -y install gcc", true, true),
            ("apk info", false, false),
            ("make install", false, false),
        ] {
            assert_eq!((is_of_system(command), is_of_root(command)), (is_about, is_root), "{command}");
        }
    }
}
