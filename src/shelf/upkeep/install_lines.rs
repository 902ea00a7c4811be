//! The lines of a job that make it ready for others: they install what a repository depends on.

use super::script_lines::without_assignments;
use crate::base::text::{after_last, first_word};

/// What installs what a repository depends on, by how the command begins.
const INSTALLS: [&str; 75] = [
    "vcpkg install",
    "vcpkg update",
    "conan install",
    "sysctl -w",
    "modprobe",
    "xcode-select -s",
    "xcode-select --switch",
    "snap install",
    "gem install",
    "cargo binstall",
    "brew install",
    "conda install",
    "mamba install",
    "micromamba install",
    "nix profile add",
    "nix profile install",
    "flatpak install",
    "flatpak remote-add",
    "asdf install",
    "mise install",
    "cpanm",
    "pixi install",
    "pod install",
    "corepack prepare",
    "dotnet restore",
    "swift package resolve",
    "hatch env create",
    "ghcup install",
    "composer bin",
    "luarocks install",
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
    "pipenv sync",
    "poetry sync",
    "pdm sync",
    "uv pip sync",
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
    // What was to be saved, a matrix says only for other jobs.
    if is_empty_save(command) {
        return false;
    }
    let begins = |begin: &&str| {
        let own = if command.starts_with("sudo ") { as_user(command) } else { without_assignments(command) };
        own.strip_prefix(begin.trim_end()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
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
    command == "yarn"
        || by_task
        || is_of_system(command)
        || fetches_browsers(command)
        || INSTALLS.iter().any(begins)
}

/// Tells whether a line says where packages of the system come from: it writes that, or the key with which they are signed, or makes
/// the folder for that. One with variables of its shell may need the lines before it.
pub(super) fn adds_source(line: &str) -> bool {
    let names = line.contains("/etc/apt/") || line.contains("apt-key ");
    let is_computed = line.split('$').skip(1).any(|rest| !rest.starts_with('('));
    let is_statement = matches!(first_word(line), "if" | "for" | "while" | "function" | "case");
    let is_whole = !line.trim_end().ends_with(['|', '&', '\\']) && shlex::split(line).is_some();
    let is_manager = OF_SYSTEM.contains(&first_word(as_user(line)));
    let is_plain = !line.starts_with('#') && !line.contains(['<', '{', '`']) && !line.contains("&&");
    names
        && is_plain
        && is_whole
        && !is_computed
        && !is_statement
        && !is_manager
        && !line.chars().any(char::is_control)
}

/// Tells whether a line saves packages without naming one, `npm install --save-dev`.
fn is_empty_save(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let begins = words.next() == Some("npm") && matches!(words.next(), Some("install" | "i"));
    let options: Vec<&str> = words.collect();
    begins
        && options.iter().any(|word| matches!(*word, "--save-dev" | "--save" | "-D" | "-S"))
        && options.iter().all(|word| word.starts_with('-'))
}

/// Programs that install packages of the system.
const OF_SYSTEM: [&str; 6] = ["apt", "apt-get", "apk", "dnf", "microdnf", "yum"];

/// Tells whether a line is about packages of the system.
pub(super) fn is_of_system(command: &str) -> bool {
    let plain = as_user(command);
    let changes =
        |word: &str| matches!(word, "install" | "add" | "update" | "upgrade" | "build-dep" | "remove");
    let is_manager = OF_SYSTEM.contains(&first_word(plain)) && plain.split(' ').any(changes);
    is_manager || first_word(plain) == "add-apt-repository" || adds_source(command)
}

/// Tells whether a line installs packages of the system, and does not only ask which there are.
pub(super) fn installs_of_system(command: &str) -> bool {
    let installs = |word: &str| matches!(word, "install" | "add" | "build-dep");
    is_of_system(command) && !adds_source(command) && command.split(' ').any(installs)
}

/// Tells whether a line is about packages of the system and asks nobody for the rights to change them.
pub(super) fn is_of_root(command: &str) -> bool {
    is_of_system(command) && !command.split(' ').any(|word| word == "sudo")
}

/// Returns an install of packages of the system without those of a version, `nushell=0.114.1-0`: they come from a source that the job
/// has added before.
pub(super) fn without_pinned_packages(command: &str) -> String {
    if !is_of_system(command) || without_assignments(command) != command {
        return command.to_owned();
    }
    let is_pinned = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.contains(':'));
    let is_kept = |word: &&str| word.starts_with('-') || !is_pinned(word);
    command.split(' ').filter(is_kept).collect::<Vec<_>>().join(" ")
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

/// Options by which managers of Node hold to the lock file.
const FROZEN: [&str; 2] = ["--immutable", "--frozen-lockfile"];

/// Tells whether an install of packages of Node holds to the lock file.
pub(super) fn is_frozen(command: &str) -> bool {
    command.starts_with("npm ci") || command.split(' ').any(|word| FROZEN.contains(&word))
}

/// Tells whether two lines install what one manager of Node finds in the manifest, `yarn` and `yarn install --immutable`.
pub(super) fn is_same_install(one: &str, other: &str) -> bool {
    manager_of_install(one).is_some_and(|manager| manager_of_install(other) == Some(manager))
}

/// Returns the manager whose plain install a line is.
fn manager_of_install(command: &str) -> Option<&str> {
    // Of another folder, or for the whole machine, it is another install.
    if command
        .split(' ')
        .any(|word| matches!(word, "-g" | "--global" | "--prefix" | "--cwd" | "-C" | "--dir"))
    {
        return None;
    }
    let mut words = command.split(' ').filter(|word| !word.starts_with('-'));
    let manager = words.next()?;
    let is_install = match (manager, words.next()) {
        ("yarn", None) | ("npm", Some("ci")) => true,
        ("npm" | "pnpm" | "yarn" | "bun", Some(word)) => matches!(word, "install" | "i"),
        (_, _) => false,
    };
    (is_install && words.next().is_none()).then_some(manager)
}

/// What starts a program of a package.
const CALLERS: [&[&str]; 14] = [
    &["npx", "--yes"],
    &["npx", "--no-install"],
    &["npx"],
    &["npm", "exec", "--"],
    &["npm", "exec"],
    &["pnpm", "exec"],
    &["pnpm"],
    &["yarn", "run"],
    &["yarn"],
    &["bunx"],
    &["python", "-m"],
    &["uv", "run"],
    &["poetry", "run"],
    &[],
];

/// Tells whether a line fetches the browsers of tests, which no list of packages brings.
pub(super) fn fetches_browsers(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_call = |words: &[&str]| match words {
        ["playwright", "install" | "install-deps", ..]
        | ["cypress" | "@puppeteer/browsers", "install", ..]
        | ["puppeteer", "browsers", "install", ..] => true,
        // The script by which a package fetches them, where managers run none by themselves.
        ["node", path] => is_install_of_package(path),
        _ => false,
    };
    CALLERS.iter().any(|caller| words.strip_prefix(*caller).is_some_and(is_call))
}

/// Tells whether a path is that of a script `install` in an installed package.
fn is_install_of_package(path: &str) -> bool {
    let name = after_last(path, &['/']);
    path.trim_start_matches("./").starts_with("node_modules/") && name.starts_with("install.")
}

/// What makes a machine ready, or installs what no language of a project asks for.
const BESIDE: [&str; 8] = ["conan", "flatpak", "modprobe", "nix", "snap", "sysctl", "vcpkg", "xcode-select"];

/// Tells whether a line installs what comes beside the packages that a project depends on: those of the system, and browsers.
pub(super) fn is_beside_packages(command: &str) -> bool {
    is_of_system(command) || fetches_browsers(command) || BESIDE.contains(&first_word(as_user(command)))
}

/// Returns the language whose packages a line installs, where it is one that a manager of packages belongs to.
pub(super) fn language_of_install(command: &str) -> Option<&'static str> {
    let language = match first_word(as_user(command)) {
        "pip" | "pip3" | "python" | "python3" | "uv" | "poetry" | "pdm" | "pipenv" | "hatch" => "python",
        "npm" | "pnpm" | "yarn" | "bun" => "node",
        "bundle" => "ruby",
        "composer" => "php",
        "mix" => "elixir",
        _ => return None,
    };
    Some(language)
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

    #[test]
    fn an_install_for_the_whole_machine_is_one() {
        for line in [
            "sudo pip install -r a.txt",
            "sudo -H pip3 install x",
            "sudo luarocks install x",
            "COMPOSER_ROOT_VERSION=dev-main composer update",
        ] {
            assert!(is_install(line), "{line}");
        }
        assert!(!is_install("sudo make install-tools"));
    }

    #[test]
    fn packages_of_a_version_come_from_elsewhere() {
        for (command, expected) in [
            ("sudo apt-get install -y zsh nushell=0.1-0", "sudo apt-get install -y zsh"),
            ("sudo apt-get -o A::B=1 install x", "sudo apt-get -o A::B=1 install x"),
            ("pip install x==1", "pip install x==1"),
        ] {
            assert_eq!(without_pinned_packages(command), expected, "{command}");
        }
    }

    #[test]
    fn a_plain_install_is_the_same_however_it_is_written() {
        for (one, other, is_same) in [
            ("yarn", "yarn install --immutable", true),
            ("yarn --frozen-lockfile", "yarn install", true),
            ("npm install", "npm ci", true),
            ("pnpm i", "pnpm install --frozen-lockfile", true),
            ("npm install", "yarn install", false),
            ("npm install", "npm install -g x", false),
            ("npm ci", "npm ci --ignore-scripts", true),
            ("npm install", "npm install --prefix web", false),
            ("pip install", "pip install", false),
        ] {
            assert_eq!(is_same_install(one, other), is_same, "{one} and {other}");
        }
        assert!(!is_install("npm install --save-dev") && is_install("npm install --save-dev mocha"));
        assert!(is_frozen("npm ci") && is_frozen("yarn --immutable") && !is_frozen("yarn"));
    }

    #[test]
    fn browsers_are_fetched_behind_whatever_starts_a_package() {
        for line in [
            "npx playwright install --with-deps chromium",
            "pnpm exec playwright install",
            "yarn playwright install-deps",
            "python -m playwright install",
            "uv run playwright install firefox",
            "playwright install",
            "npx cypress install",
            "npx puppeteer browsers install chrome",
            "npx @puppeteer/browsers install chrome@stable",
            "node node_modules/puppeteer/install.mjs",
        ] {
            assert!(fetches_browsers(line) && is_install(line), "{line}");
        }
        for line in ["npx playwright test", "pnpm install", "node scripts/install.js", "cypress run", ""] {
            assert!(!fetches_browsers(line), "{line}");
        }
    }
}
