//! What a job does to its checkout before it checks it: what is checked then is not what the repository holds.

use super::found_repository::Repository;
use super::script_lines::without_assignments;

/// Tells whether a task changes files of the repository: it does so as a job would, or it removes a place that the repository has,
/// to make it anew.
pub(super) fn alters_files(repository: &Repository, body: &str) -> bool {
    let commands =
        body.split(['\n', ';', '|', '&']).map(|command| command.trim_start_matches(['@', '-', ' ', '\t']));
    commands.into_iter().any(|command| alters_checkout(command) || removes_place(repository, command))
}

fn removes_place(repository: &Repository, command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (["rimraf" | "rm", places @ ..] | ["npx", "rimraf", places @ ..]) = words.as_slice() else {
        return false;
    };
    let plain = places
        .iter()
        .map(|place| place.trim_matches(['"', '\'']).trim_start_matches("./").trim_end_matches('/'));
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
        ] {
            assert!(alters_files(&repository, body), "{body}");
        }
        for body in ["rimraf dist && tsc", "rm -rf coverage", "tsc lib", "rm -f"] {
            assert!(!alters_files(&repository, body), "{body}");
        }
    }

    #[test]
    fn what_changes_sources_locks_or_programs_alters_a_checkout() {
        for command in [
            "sed -i -e /x/d tsconfig.json",
            "cargo +nightly update -Z minimal-versions",
            "cargo install --locked --path .",
            "yarn workspace @a/b add $(pwd)/package.tgz",
            "npm install react@18",
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
