//! The lines of a job that make it ready for others: they install what a repository depends on.

use crate::base::text::first_word;

/// What installs what a repository depends on, by how the command begins.
const INSTALLS: [&str; 43] = [
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
    "sudo apt-get",
    "sudo apt ",
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
    command == "yarn" || by_task || INSTALLS.iter().any(begins)
}

/// Tells whether a command leaves nothing behind that another one needs, or only what every machine has: of a line with several, the
/// rest stands by itself.
pub(super) fn makes_ready(command: &str) -> bool {
    let plain = ["echo", "mkdir", "set", "export", "source", ".", "true", "ls", "pwd", "cat", "date", "rm"];
    plain.contains(&first_word(command)) || is_install(command)
}
