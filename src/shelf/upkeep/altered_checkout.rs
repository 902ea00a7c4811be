//! What a job does to its checkout before it checks it: what is checked then is not what the repository holds.

use super::found_repository::Repository;
use super::script_lines::without_assignments;

/// Tells whether a task changes files of the repository: it does so as a job would, or it removes a place that the repository has,
/// to make it anew.
pub(super) fn alters_files(repository: &Repository, body: &str) -> bool {
    let commands =
        body.split(['\n', ';', '|', '&']).map(|command| command.trim_start_matches(['@', '-', ' ', '\t']));
    let writes = |command: &str| removes_place(repository, command) || copies_over(repository, command);
    commands.into_iter().any(|command| alters_checkout(command) || writes(command))
}

/// Tells whether a line of a shell writes into a file of the repository, which is called in a directory: `echo x >> .npmrc`, `tee -a`.
pub(super) fn writes_over(repository: &Repository, directory: &str, line: &str) -> bool {
    let is_own = |target: &&str| {
        let file = plain_place(target);
        let path = if directory.is_empty() { file.to_owned() } else { format!("{directory}/{file}") };
        repository.has(&path)
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let behind_sign = words.iter().enumerate().filter_map(|(at, word)| {
        let target = word.trim_start_matches(['1', '&']).strip_prefix('>')?.trim_start_matches('>');
        if target.is_empty() { words.get(at + 1).copied() } else { Some(target) }
    });
    let of_tee = words.iter().skip_while(|word| **word != "tee").skip(1);
    let of_tee = of_tee.take_while(|word| !word.contains(['|', ';', '>'])).copied();
    behind_sign.chain(of_tee).any(|target| is_own(&target))
}

/// Tells whether a command copies or moves something into a place that the repository has, or moves that away.
fn copies_over(repository: &Repository, command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().filter(|word| !word.starts_with('-')).collect();
    let is_own = |place: &&str| {
        let place = plain_place(place);
        !matches!(place, "" | ".") && repository.has_place(place)
    };
    match words.as_slice() {
        ["cp", _, .., target] => is_own(target),
        ["mv", places @ ..] => places.len() > 1 && places.iter().any(is_own),
        _ => false,
    }
}

/// Returns a place of the repository as it is called at its top.
fn plain_place(place: &str) -> &str {
    place.trim_matches(['"', '\'']).trim_start_matches("./").trim_end_matches('/')
}

fn removes_place(repository: &Repository, command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (["rimraf" | "rm", places @ ..] | ["npx", "rimraf", places @ ..]) = words.as_slice() else {
        return false;
    };
    let plain = places.iter().map(|place| plain_place(place));
    plain.into_iter().any(|place| !place.is_empty() && !place.starts_with('-') && repository.has_place(place))
}

/// Tells whether a command changes what was checked out, or puts what it made in its place: sources, the lock file, or the program
/// itself, which later steps call by its name.
pub(super) fn alters_checkout(command: &str) -> bool {
    let words: Vec<&str> =
        without_assignments(command).split_whitespace().filter(|word| *word != "sudo").collect();
    // Neither what is installed for the whole machine nor what is not saved changes the manifest.
    let is_elsewhere = words.iter().any(|word| matches!(*word, "-g" | "--global" | "--no-save"));
    let words = words.into_iter().filter(|word| !word.starts_with('+')).collect::<Vec<_>>();
    match words.as_slice() {
        ["sed", rest @ ..] => rest.iter().any(|word| word.starts_with("-i") || *word == "--in-place"),
        ["patch", ..]
        | ["git", "apply" | "am" | "checkout" | "merge" | "reset" | "switch" | "revert", ..]
        | ["cargo", "update" | "add" | "remove" | "generate-lockfile", ..]
        | ["yarn", "workspace", _, "add" | "up" | "remove", ..]
        | ["uv" | "poetry" | "pdm", "add" | "remove", ..]
        | ["go", "mod", "edit", ..]
        | ["composer", "require" | "remove", ..]
        | ["dotnet", "add", ..] => true,
        ["uv", "sync" | "lock", rest @ ..] => {
            rest.iter().any(|word| matches!(*word, "-U" | "--upgrade") || word.starts_with("--resolution"))
        }
        ["cargo", "install", rest @ ..] => rest.iter().any(|word| word.starts_with("--path")),
        ["yarn" | "pnpm" | "bun", "add" | "up" | "upgrade" | "remove" | "update", ..] => !is_elsewhere,
        ["npm", "install" | "i" | "uninstall" | "update", rest @ ..] => {
            // Without a name, npm installs what the manifest lists already.
            !is_elsewhere && rest.iter().any(|word| !word.starts_with('-'))
        }
        // Without a version, it fetches what the module file names.
        ["go", "get", rest @ ..] => rest.iter().any(|word| word.contains('@')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_changes_files_by_any_of_its_commands() {
        let repository = Repository::new([("lib/a.js".to_owned(), String::new())]);
        for body in [
            "echo x && composer require --dev a/b && phpstan analyse",
            "rimraf lib && tsc",
            "@rm -rf ./lib/",
            "npx rimraf \"lib\"",
            "cp -r out/ lib/",
            "mv lib/a.js old.js",
        ] {
            assert!(alters_files(&repository, body), "{body}");
        }
        for body in [
            "rimraf dist && tsc",
            "rm -rf coverage",
            "tsc lib",
            "rm -f",
            "cp lib/a.js dist/",
            "cp lib/a.js .",
        ] {
            assert!(!alters_files(&repository, body), "{body}");
        }
    }

    #[test]
    fn a_line_writes_over_a_file_of_its_directory() {
        let repository = Repository::new([("web/.npmrc".to_owned(), String::new())]);
        for line in ["echo a=b >> .npmrc", "echo a=b >.npmrc", "echo a=b | tee -a .npmrc"] {
            assert!(writes_over(&repository, "web", line), "{line}");
            assert!(!writes_over(&repository, "", line), "{line}");
        }
        assert!(!writes_over(&repository, "web", "echo .npmrc >> ../.npmrc"));
    }

    #[test]
    fn what_changes_sources_locks_or_programs_alters_a_checkout() {
        for command in [
            "sed -i -e /x/d tsconfig.json",
            "cargo +nightly update -Z minimal-versions",
            "cargo install --locked --path .",
            "yarn workspace @a/b add $(pwd)/package.tgz",
            "npm install react@18",
            "uv sync --upgrade --resolution lowest-direct",
            "go get example.com/x@latest",
            "git checkout main -- src",
        ] {
            assert!(alters_checkout(command), "{command}");
        }
        for command in [
            "sed -n 1p a",
            "cargo install cargo-nextest --locked",
            "cargo test",
            "npm install",
            "uv sync --frozen",
            "npm install --no-save x",
            "npm install -g npm@11",
            "npm ci",
            "pnpm add -g corepack",
            "go get -t ./...",
            "yarn install",
            "pip install -e .",
            "composer update",
            "bundle install",
        ] {
            assert!(!alters_checkout(command), "{command}");
        }
    }
}
