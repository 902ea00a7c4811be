//! What is plainly no check: a line that prints, fetches, installs, sets something or publishes. What is unknown is not among them.

use super::install_lines::{fetches_browsers, is_install, is_of_system};
use super::script_lines::without_assignments;
use crate::base::text::after_last;

/// Programs that check nothing, whatever they are told.
const PROGRAMS: &str = ": . [[ alias apt-key aws az base64 basename break bzip2 cat cd chgrp chmod chown codecov continue \
    corepack coveralls cp createdb createuser curl-config cut date declare df dirname disown docker-credential dos2unix dpkg \
    dropdb du echo env esac exit export fallocate false fi file free fnm gcloud genhtml gh ghcup gpg grcov gunzip gzip head \
    hostname id jobs kill killall lcov ldconfig ldd let ln local locale locale-gen locale-gen ls lsb_release lscpu lsmod md5sum \
    mkdir mktemp modprobe mongosh mount mv mysql mysqladmin netlify nproc nvm od pgrep pg_ctl pg_ctlcluster pg_isready pkill \
    popd printenv printf ps psql pushd pwd read readlink readonly realpath redis-cli redis-server return rm rmdir rustup \
    seq service set sha256sum sha512sum shasum shift shopt sleep snap sort source strip ssh-add ssh-agent ssh-keygen ssh-keyscan \
    stat stty sw_vers swapoff swapon sysctl systemctl systeminfo tac tail tar tee touch tr trap tree true truncate tty type \
    typeset udevadm ulimit umask umount uname uniq unset unxz unzip update-alternatives uptime vercel virtualenv wait wc wget which \
    who whoami winget xz yes zip zstd 7z asdf choco conda cpan cpanm cpm dnf flatpak mamba micromamba pacman pyenv \
    rbenv scoop sdkmanager avdmanager vcpkg volta xcode-select zypper cachix sccache ccache";

/// Subcommands that check nothing, by their programs.
const SUBCOMMANDS: [(&[&str], &str); 31] = [
    (
        &["git"],
        "add am apply archive branch checkout cherry-pick clean clone commit config describe fetch gc init lfs log ls-files \
         ls-remote merge merge-base mv pull push rebase remote reset restore rev-list rev-parse rm show stash submodule switch \
         status symbolic-ref tag update-index version worktree",
    ),
    (
        &["docker", "podman"],
        "cp images info inspect kill load login logout logs network ps pull push rm rmi save start stop system tag version volume",
    ),
    (
        &["npm", "pnpm", "yarn", "bun"],
        "add cache ci config create dedupe get global i import init install link list login logout ls pack plugin prefix prune \
         publish r rebuild remove rm root set setup store un uninstall unlink up update upgrade version view whoami why",
    ),
    (
        &["pip", "pip3", "pipx"],
        "cache config download freeze inject install list show uninstall upgrade wheel",
    ),
    (&["poetry"], "add cache config env export install publish remove self show source sync update version"),
    (&["uv"], "add cache export init pip publish python remove self sync tool venv version"),
    (&["pdm", "pipenv"], "add cache config export info install publish sync update use venv"),
    (&["hatch"], "config env publish python self version"),
    (
        &["cargo"],
        "add binstall clean fetch generate-lockfile init install locate-project login logout metadata new owner search tree \
         update vendor version yank",
    ),
    (&["go"], "clean env get install list telemetry version work"),
    (&["gem"], "env fetch install list push sources specification uninstall update"),
    (
        &["bundle", "bundler"],
        "add cache clean config env info init install list lock package show update version",
    ),
    (
        &["composer"],
        "bin clear-cache config dump-autoload global init install remove require self-update show update",
    ),
    (&["dotnet"], "add clean dev-certs new nuget restore sln tool workload"),
    (&["helm"], "dependency dep env plugin pull push registry repo version"),
    (&["terraform", "tofu"], "init login version"),
    (&["pre-commit", "prek"], "autoupdate clean gc install install-hooks"),
    (&["opam"], "config depext env init install list pin repo repository show switch update upgrade"),
    (&["stack"], "ls path setup update upgrade"),
    (&["cabal"], "fetch freeze get info list path update user-config"),
    (&["mix"], "archive.install deps deps.get deps.update deps.compile local.hex local.rebar"),
    (&["luarocks"], "config install list path remove show upload"),
    (&["lein"], "deps"),
    (&["nimble"], "install refresh"),
    (&["dart", "flutter"], "config doctor precache pub"),
    (&["nix"], "channel profile registry store"),
    (&["mise"], "cache doctor install ls reshim settings trust use"),
    (&["kind", "k3d", "minikube"], "create delete get load start stop"),
    (&["coverage"], "combine erase html json lcov xml"),
    (
        &["brew"],
        "bundle cleanup config doctor fetch info install link list outdated pin reinstall services tap trust uninstall unlink untap \
         update update-reset upgrade",
    ),
    (&["twine", "semantic-release", "changeset"], "publish upload version"),
];

/// Options with which one of those subcommands looks.
const LOOKS: [&str; 7] = ["--check", "--dry-run", "--exit-code", "--locked", "--quiet", "--porcelain", "-n"];

/// Words of the shell before a command.
const KEYWORDS: [&str; 13] =
    ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "time", "exec", "command"];

/// Tells whether each command of a line is plainly no check.
pub(super) fn is_plainly_none(line: &str) -> bool {
    let line = line.trim();
    let hands_on =
        ["$GITHUB_OUTPUT", "$GITHUB_ENV", "$GITHUB_PATH", "${GITHUB_OUTPUT", "${GITHUB_ENV", "${GITHUB_PATH"]
            .iter()
            .any(|file| line.split_once('>').is_some_and(|(_, behind)| behind.contains(file)));
    let is_pattern = line.ends_with(')') && !line.contains(['(', '"']);
    let is_head = line.ends_with("() {") || line.starts_with("function ") || is_pattern;
    // Both streams at once are no end of a command.
    let line = &line.replace("&>", ">");
    line.is_empty() || line.starts_with('#') || hands_on || is_head || {
        let commands = simple_commands(line);
        let is_piped = line.contains('|') && !line.contains("||");
        commands.iter().all(|command| is_plain_command(command, is_piped))
    }
}

/// Splits a line where the shell joins commands, also those in parentheses. What is in quotes or computed stays as it is.
fn simple_commands(line: &str) -> Vec<String> {
    let (mut found, mut text, mut quote, mut depth) = (Vec::new(), String::new(), None, 0_usize);
    // Whether a parenthesis is open that joins commands.
    let mut is_joined = false;
    let mut before = ' ';
    for c in line.chars() {
        let is_escaped = before == '\\';
        let is_redirected = before == '>' || (c == '&' && text.ends_with('<'));
        match (quote, c) {
            _ if is_escaped => text.push(c),
            (Some(open), _) => {
                quote = quote.filter(|_| c != open);
                text.push(c);
            }
            (None, '\'' | '"' | '`') => {
                quote = Some(c);
                text.push(c);
            }
            (None, '(') if depth > 0 || matches!(before, '$' | '<' | '>' | '=') => {
                depth += 1;
                text.push(c);
            }
            (None, ')') if depth > 0 => {
                depth -= 1;
                text.push(c);
            }
            // What stands before it is a pattern of `case`.
            (None, ')') if !is_joined && !text.trim().contains(' ') => text.clear(),
            (None, '&') if is_redirected => text.push(c),
            (None, ';' | '|' | '&' | '\n' | '(' | ')') if depth == 0 => {
                is_joined = (is_joined || c == '(') && c != ')';
                found.push(std::mem::take(&mut text));
            }
            (None, _) => text.push(c),
        }
        // Two backslashes are one, which escapes nothing.
        before = if is_escaped { ' ' } else { c };
    }
    found.push(text);
    found.into_iter().filter(|text| !text.trim().is_empty()).collect()
}

/// Tells the same of one command; one that is piped is what another one is told.
fn is_plain_command(command: &str, is_piped: bool) -> bool {
    let mut words: Vec<&str> = command.split_whitespace().collect();
    loop {
        let rest = words.join(" ");
        match words.as_slice() {
            [] | ["for" | "case" | "select" | "done" | "in", ..] => return true,
            [first, ..] if KEYWORDS.contains(first) => drop(words.remove(0)),
            // What git or a formatter says of the files is asked for later.
            [first, ..] if is_assignment(first) && first.contains("$(") => {
                return !["git diff", "git status", "fmt -l"].iter().any(|sign| command.contains(sign));
            }
            [first, ..] if without_assignments(&rest) != rest && first.contains('=') => {
                let left = without_assignments(&rest).split_whitespace().count();
                // Of quotes within quotes, what is left is no less than there was.
                words.drain(..words.len().saturating_sub(left).max(1));
            }
            [first, ..] if is_assignment(first) => return true,
            ["sudo" | "nohup" | "stdbuf", ..] => {
                words.remove(0);
                while words.first().is_some_and(|word| word.starts_with('-')) {
                    words.remove(0);
                }
            }
            _ => break,
        }
    }
    is_plain_call(&words, command, is_piped)
}

/// Tells whether a word sets a variable, whatever it computes for that.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

fn is_plain_call(words: &[&str], command: &str, is_piped: bool) -> bool {
    let Some((first, rest)) = words.split_first() else { return true };
    let program = after_last(first.trim_matches(['"', '\'']), &['/']);
    let shows = |word: &&str| matches!(*word, "--version" | "-version" | "-V" | "version" | "--help");
    let computes = command.contains("$(") || command.contains('`');
    let is_known = |names: &str| names.split_whitespace().any(|name| name == program);
    let by_subcommand = || {
        let (_, known) = SUBCOMMANDS.iter().find(|(programs, _)| programs.contains(&program))?;
        let subcommand = rest.iter().find(|word| !word.starts_with('-') && !word.contains('='))?;
        let looks = rest.iter().any(|word| LOOKS.contains(word));
        Some(known.split_whitespace().any(|name| name == *subcommand) && !looks)
    };
    match (program, rest) {
        ("[" | "[[" | "test", _) => !computes,
        (_, [.., last]) if shows(last) => true,
        (_, ["-v"])
        | ("sed", _)
        | ("brew", ["--prefix" | "--repository" | "--cellar" | "--cache", ..])
        | ("sh" | "bash" | "zsh", [] | ["-s" | "-" | "--login", ..])
        | ("python" | "python3", ["-m", "venv" | "ensurepip" | "virtualenv" | "site", ..]) => true,
        ("jq", rest) => !rest.iter().any(|word| matches!(*word, "-e" | "--exit-status")),
        ("find", rest) => !rest.iter().any(|word| word.starts_with("-exec") || *word == "-ok"),
        ("xargs", rest) => {
            let inner: Vec<&str> = rest.iter().skip_while(|word| word.starts_with('-')).copied().collect();
            is_plain_call(&inner, command, is_piped)
        }
        ("eval", _) => computes,
        // What is fetched and given to somebody, or kept, is no answer that is looked at.
        ("curl", rest) => is_piped || rest.iter().any(|word| keeps(word)) || command.contains('>'),
        ("sh" | "bash" | "zsh", _) => command.contains("<(curl") || command.contains("$(curl"),
        ("git", ["diff", rest @ ..]) => !rest.iter().any(|word| LOOKS.contains(word)),
        ("go", ["mod", "download" | "edit" | "tidy", rest @ ..]) => !rest.contains(&"-diff"),
        ("docker", ["compose", rest @ ..]) | ("docker-compose", rest) => rest
            .iter()
            .any(|word| matches!(*word, "down" | "logs" | "pull" | "ps" | "stop" | "-d" | "--detach")),
        ("docker", ["buildx", next, ..]) => matches!(*next, "create" | "inspect" | "ls" | "use"),
        ("python" | "python3", ["-m", "pip" | "pipx", rest @ ..]) => {
            is_plain_call(&[&["pip"], rest].concat(), command, is_piped)
        }
        ("npx" | "bunx" | "uvx", rest) if rest.contains(&"semantic-release") => true,
        // These publish, or only start what others do.
        ("npx" | "pnpx" | "bunx" | "bun" | "pnpm" | "yarn" | "npm", rest)
            if rest.iter().any(|word| word.split('@').next() == Some("pkg-pr-new")) =>
        {
            true
        }
        ("npx", ["nx-cloud", "start-ci-run" | "stop-all-agents" | "fix-ci", ..]) => true,
        ("cargo" | "npm" | "pnpm" | "yarn", ["publish", rest @ ..]) => {
            !rest.iter().any(|word| LOOKS.contains(word))
        }
        _ => {
            is_known(PROGRAMS)
                || by_subcommand().unwrap_or(false)
                || is_install(command.trim())
                || is_of_system(command.trim())
                || fetches_browsers(command.trim())
        }
    }
}

/// Tells whether an option of curl writes what it fetches into a file.
fn keeps(word: &str) -> bool {
    let is_short = word.starts_with('-') && !word.starts_with("--") && word.contains(['o', 'O']);
    is_short || word.starts_with("--output") || word == "--remote-name"
}

/// Words in the name of an action that sets something up, keeps, fetches or shows it, whatever else the name says.
const OF_ACTIONS: [&str; 45] = [
    "agent",
    "artifact",
    "artifacts",
    "autobuild",
    "badge",
    "cache",
    "cancel",
    "ccache",
    "changed",
    "checkout",
    "codecov",
    "comment",
    "configure",
    "coverage",
    "coveralls",
    "credentials",
    "disk",
    "download",
    "environment",
    "filter",
    "harden",
    "import",
    "init",
    "install",
    "installer",
    "labeler",
    "login",
    "notify",
    "prepare",
    "publish",
    "report",
    "reporter",
    "reports",
    "restore",
    "result",
    "results",
    "save",
    "sccache",
    "setup",
    "slack",
    "stale",
    "summary",
    "toolchain",
    "upload",
    "wait",
];

/// Words of such names that say so alone: `docker/build-push-action` builds.
const OF_PLAIN_ACTIONS: [&str; 12] = [
    "commit", "create", "deploy", "env", "label", "labels", "metadata", "pages", "push", "release", "space",
    "token",
];

/// Tells whether an action is plainly no check, by its name without a version.
pub(super) fn is_plain_action(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    // Whose it is says nothing of what it does.
    let own = if lower.starts_with("./") {
        lower.as_str()
    } else {
        lower.split_once('/').map_or("", |(_, own)| own)
    };
    let words: Vec<&str> = own.split(['/', '-', '_', '.']).collect();
    let is_known = matches!(
        name,
        "actions/github-script" | "re-actors/alls-green" | "helm/chart-testing-action" | "lukka/get-cmake"
    );
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let checks =
        has(&["build", "lint", "check", "test", "tests", "scan", "audit", "validate", "verify", "review"]);
    is_known || has(&OF_ACTIONS) || (has(&OF_PLAIN_ACTIONS) && !checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_prints_fetches_or_sets_something_is_no_check() {
        for line in [
            "",
            "files=\"[\\\"${charts[0]}/values.yaml\\\"]\"",
            "# npm test",
            "echo \"a && b; $(npm test)\"",
            "git config --global user.name x",
            "brew install x",
            "cd \"$(brew --prefix x)\"",
            "sudo apt-get update && sudo apt-get install -y x",
            "mkdir -p a && cd a",
            "export A=1",
            "VERSION=$(node -p \"require('./package.json').version\")",
            "node -p 1 >> \"$GITHUB_OUTPUT\"",
            "cargo --version",
            "curl -LO https://x.test/a.tgz",
            "curl -sSf https://x.test | sh -s -- -y",
            "bash <(curl -s https://codecov.io/bash)",
            "if [ \"$A\" = b ]; then",
            "for f in *; do",
            "done",
            "fi",
            "ubuntu*)",
            "docker compose up -d db",
            "npm publish --access public",
            "python -m pip install -U pip",
            "cp a b 2>&1",
            "cat a | sort | uniq > b",
            "[ -d a ] || mkdir a",
            "A=1 B='x y' sudo -E pip install x",
            "npx semantic-release",
            "pnpx pkg-pr-new@0.0 publish './packages/*'",
            "npx nx-cloud stop-all-agents",
            "pushd docs &>/dev/null",
            "arm-* | aarch64-*)",
            "git -c user.name=\"$A\" commit --message x",
            "SOURCE=\"$(git log -1 --pretty=\"%an: %B\" \"$SHA\")\"",
        ] {
            assert!(is_plainly_none(line), "{line}");
        }
    }

    #[test]
    fn what_is_unknown_or_looks_is_not_dropped() {
        for line in [
            "npm test",
            "git diff --exit-code",
            "test -z \"$(gofmt -l .)\"",
            "[ -z \"$(git status --porcelain)\" ]",
            "if ! ./check; then",
            "cd a && ./anything",
            "! grep -r x src",
            "cat a | grep b",
            "(cd a; make)",
            "bash -c 'x'",
            "curl --fail http://localhost",
            "ls | xargs shellcheck",
            "find . -exec lint {} +",
            "cargo publish --dry-run",
            "pip check",
            "go mod tidy -diff",
            "docker run x",
            "docker build .",
            "uv lock --check",
            "foo; echo done",
            "dirty=$(git diff)",
        ] {
            assert!(!is_plainly_none(line), "{line}");
        }
    }

    #[test]
    fn an_action_says_by_its_name_that_it_checks_nothing() {
        for name in [
            "actions/checkout",
            "actions/setup-node",
            "Swatinem/rust-cache",
            "dtolnay/rust-toolchain",
            "actions/upload-artifact",
            "codecov/codecov-action",
            "softprops/action-gh-release",
            "EnricoMi/publish-unit-test-result-action",
            "github/codeql-action/init",
            "./.github/actions/setup",
            "docker/login-action",
            "actions/github-script",
            "peter-evans/create-pull-request",
        ] {
            assert!(is_plain_action(name), "{name}");
        }
        for name in [
            "docker/build-push-action",
            "github/codeql-action/analyze",
            "actions/dependency-review-action",
            "cache-corp/lint-action",
            "amannn/action-semantic-pull-request",
            "./",
            "./.github/actions/test",
        ] {
            assert!(!is_plain_action(name), "{name}");
        }
    }
}
