//! What one line of a job checks, or why it checks nothing.

use super::altered_checkout::alters_files;
use super::ci::{Caveat, CiCommand, LineKind, joined};
use super::found_repository::{Finding, Repository};
use super::no_checks::is_plainly_none;
use super::recipes::{MAKEFILES, first_recipe, recipes};
use super::script_lines::without_assignments;
use super::unused::Reason;
use crate::base::text::{after_last, up_to};
use crate::tools::{
    Manner, Purpose, Recognised, builds_documents, is_other, is_some_check, is_some_test, recognise,
    recognise_line, task_kind,
};

/// Returns what a command of a job is, if it is a check or mends; otherwise why it is neither.
pub(super) fn check_of(repository: &Repository, line: &CiCommand) -> Result<Finding, Reason> {
    if line.kind == LineKind::InstallOfStep {
        return Err(Reason::Prepares);
    }
    if line.condition.as_deref().is_some_and(names_interpreter) {
        return Err(Reason::OtherInterpreter);
    }
    // An earlier line of the job may have made or unpacked the directory.
    let is_there = line.directory.is_empty()
        || repository
            .paths()
            .any(|path| path.strip_prefix(line.directory.as_str()).is_some_and(|rest| rest.starts_with('/')));
    if !is_there {
        return Err(Reason::DirectoryIsMade);
    }
    if is_of_one_machine(&line.command) {
        return Err(Reason::OfOneMachine);
    }
    let words = shlex::split(&line.command).ok_or(Reason::Joined)?;
    let found = recognise(&words).filter(|found| !only_interprets(found));
    if only_shows(&words, found.as_ref()) {
        return Err(Reason::Unknown);
    }
    let variables = steering(found.as_ref(), line);
    if words.iter().any(|word| is_made(repository, word)) {
        return Err(Reason::NamesBuilt);
    }
    if lacks_lock(repository, line, &words) {
        return Err(Reason::LacksLock);
    }
    let (purpose, is_fix) = match &found {
        Some(found) => of_tool(repository, line, &words, found)?,
        None if is_build(&words) => (Purpose::Build, false),
        // What an unknown script does after a finding of an earlier step is no check of the tree.
        None if line.has(Caveat::AsksEarlier) => return Err(Reason::AsksEarlier),
        None => own_script(repository, line, &words)?,
    };
    Ok(Finding {
        purpose: Some(purpose),
        is_fix,
        // An earlier line has installed it into the environment of tox.
        command: format!("{variables}{}", line.command.replace(" --skip-pkg-install", "")),
        directory: line.directory.clone(),
        evidence: line.evidence.clone(),
    })
}

/// Returns what the call of a known tool is.
fn of_tool(
    repository: &Repository,
    line: &CiCommand,
    words: &[String],
    found: &Recognised,
) -> Result<(Purpose, bool), Reason> {
    match (found.manner, found.tool.name.as_str()) {
        // The directory into which is built was made by an earlier line.
        (_, "cmake" | "ctest" | "meson") => Err(Reason::PartOfBuild),
        // An earlier step, `./configure` for example, has written its Makefile.
        (_, "make") if !has_makefile(repository, line) => Err(Reason::LacksMakefile),
        (Manner::Pure, _) => Ok((found.purpose.unwrap_or(Purpose::Test), false)),
        (Manner::Mends, _) => Ok((found.purpose.ok_or(Reason::Mends)?, true)),
        (Manner::Other, _) if is_build(words) || builds_crates(words) => Ok((Purpose::Build, false)),
        (Manner::Other, "make") if is_whole_make(repository, line, words) => Ok((Purpose::Build, false)),
        // Its default task, which a Rakefile makes the tests.
        (Manner::Other, "rake") if words.last().is_some_and(|word| word == "rake") => {
            Ok((Purpose::Test, false))
        }
        (Manner::Other, "tsc") if writes_nothing(repository, line, words) => Ok((Purpose::Lint, false)),
        (Manner::Other, _) => {
            let has_names = !found.tasks.is_empty() || !found.environments.is_empty();
            let unknown = if has_names { Reason::NamesSayNothing } else { Reason::NotACheckOfTool };
            let by_recipes = || recipes_say(repository, line, found);
            let purpose = by_names(found, &line.directory).or_else(by_recipes).ok_or(unknown)?;
            // Tests by the name of which nobody would take them for some are those of a service that the job has a key for.
            let is_known = purpose != Purpose::Test || !line.has(Caveat::HasSecrets);
            if is_known { Ok((purpose, false)) } else { Err(Reason::HasSecrets) }
        }
    }
}

/// Returns what tasks of make are by their recipes, where the names do not say it: checks, beside what is plainly none.
fn recipes_say(repository: &Repository, line: &CiCommand, found: &Recognised) -> Option<Purpose> {
    let text = makefile(repository, &line.directory).filter(|_| found.tool.name == "make")?;
    let all = recipes(text);
    let mut purposes = Vec::new();
    for name in &found.tasks {
        let recipe = all.iter().find(|recipe| recipe.name == name)?;
        for command in recipe.body.lines().map(|command| command.trim_start_matches('@')) {
            if is_plainly_none(command) {
                continue;
            }
            let known = recognise_line(command).filter(|known| known.manner == Manner::Pure)?;
            purposes.push(known.purpose?);
        }
    }
    let is_test = purposes.contains(&Purpose::Test);
    if is_test { Some(Purpose::Test) } else { purposes.first().copied() }
}

/// Returns the text of the Makefile of a directory.
fn makefile<'r>(repository: &'r Repository, directory: &str) -> Option<&'r str> {
    MAKEFILES.iter().find_map(|file| repository.text(&joined(directory, file)))
}

/// Tells whether a condition asks a matrix for an interpreter that is another program than the usual one, or is not released yet.
fn names_interpreter(condition: &str) -> bool {
    let names = ["pypy", "graalpy", "jruby", "truffleruby", "nightly", "-dev", "head"];
    condition.split('\'').skip(1).step_by(2).any(|value| names.iter().any(|name| value.contains(name)))
}

/// Tells whether a known tool is called for a script alone, `node scripts/check.js`, which says what is done.
fn only_interprets(found: &Recognised) -> bool {
    found.tool.name == "node" && found.manner == Manner::Other
}

/// Tells whether a program is only asked for its version or its help, `tflint -v`, or clears what it keeps. To tests, `-v` says how much
/// they tell.
fn only_shows(words: &[String], found: Option<&Recognised>) -> bool {
    let is_linter = found.is_some_and(|found| {
        found.tasks.is_empty() && matches!(found.purpose, Some(Purpose::Lint | Purpose::Format))
    });
    let clears = |word: &str| word.starts_with("clear-") || word == "cache:clear";
    match words {
        [_, subcommand, ..] if clears(subcommand) => is_linter,
        [_, option] if matches!(option.as_str(), "-v" | "-h" | "help") => is_linter,
        [_, .., option] => matches!(option.as_str(), "--version" | "-V" | "--help"),
        [] | [_] => false,
    }
}

/// Variables that say for what machine or with which toolchain a job works, and not how strictly.
pub(super) const MACHINES: [&str; 7] =
    ["CARGO_BUILD_TARGET", "GO111MODULE", "GOARCH", "GOOS", "GOTOOLCHAIN", "GOWORK", "RUSTUP_TOOLCHAIN"];

/// Returns the variables of a job by which a tool comes to another verdict, as they stand before a command that does not set them
/// itself.
fn steering(found: Option<&Recognised>, line: &CiCommand) -> String {
    // What is written the same way is so with any flags.
    let steered = found.filter(|found| found.purpose != Some(Purpose::Format));
    let known = steered.map_or(&[][..], |found| &found.tool.ecosystem().env);
    let own = line.command.strip_suffix(without_assignments(&line.command)).unwrap_or("");
    let is_own = |name: &str| own.split(' ').any(|word| word.split('=').next() == Some(name));
    let of = |name: &String| {
        if MACHINES.contains(&name.as_str()) || is_own(name) {
            return None;
        }
        let (_, value) = line.variables.iter().find(|(variable, _)| variable == name)?;
        // What only a workflow knows, no shell does.
        if value.contains("${{") {
            return None;
        }
        Some(format!("{name}={} ", shlex::try_quote(value).ok()?))
    };
    known.iter().filter_map(of).collect()
}

/// Returns what tasks are about that a workflow calls with each change: that it does says that they are checks. Of themselves their
/// names may be about a release.
fn by_names(found: &Recognised, directory: &str) -> Option<Purpose> {
    let names: Vec<&String> = found.tasks.iter().chain(&found.environments).collect();
    let kinds: Vec<_> = names.iter().map(|name| task_kind(name, "")).collect();
    // Tasks that are all known are called in a way that is no check, with an option that shows or writes.
    let is_known = kinds.iter().all(Option::is_some);
    if is_known || kinds.iter().flatten().any(|kind| kind.mends) {
        return None;
    }
    let is_of_tests = |name: &&&String| is_some_test(name);
    // Elsewhere `html` says too little; among documents it is the task of Sphinx's Makefile.
    let is_in_docs = matches!(directory.rsplit('/').next(), Some("docs" | "doc"));
    let is_build = |name: &&String| builds_documents(name) || (is_in_docs && name.as_str() == "html");
    let all_look = names.iter().zip(&kinds).all(|(name, kind)| kind.is_some() || is_some_check(name));
    match kinds.iter().flatten().find_map(|kind| kind.purpose) {
        // Beside a check, what an environment of a runner does is looked at as well.
        Some(purpose) if all_look || !found.environments.is_empty() => Some(purpose),
        None if all_look => Some(Purpose::Lint),
        None if names.iter().all(is_build) => Some(Purpose::Build),
        None if names.iter().filter(is_of_tests).count() == names.len() => Some(Purpose::Test),
        None if found.tasks.is_empty() && names.iter().all(|name| makes_something(name)) => {
            Some(Purpose::Build)
        }
        Some(_) | None => None,
    }
}

/// Tells whether an environment of a runner whose name says nothing, `tox -e man`, is a check by being called with each change: it does
/// not make ready for others, nor look after them.
fn makes_something(name: &str) -> bool {
    name == "build" || !(is_other(name) || prepares(name))
}

/// Tells whether a command holds to a lock file that only an earlier line has made.
fn lacks_lock(repository: &Repository, line: &CiCommand, words: &[String]) -> bool {
    let is_held = words.iter().any(|word| matches!(word.as_str(), "--locked" | "--frozen"));
    let is_there =
        |file: &str| repository.has(file) || repository.has(joined(&line.directory, file).as_str());
    words.first().is_some_and(|program| program == "cargo") && is_held && !is_there("Cargo.lock")
}

/// Tells whether a word is a path of what an earlier line has built.
fn is_made(repository: &Repository, word: &str) -> bool {
    let path = word.trim_start_matches("./");
    let first = up_to(path, &['/']);
    let is_of_cargo = ["target/debug/", "target/release/"].iter().any(|place| path.contains(place));
    is_of_cargo
        || matches!(first, "dist" | "target" | "out" | "_build" | "public" | "_site")
            && path.contains('/')
            // A repository may keep its sources in a folder of such a name.
            && !repository.paths().any(|file| file.split('/').next() == Some(first))
}

/// Tells whether the configuration that a call of TypeScript's compiler names, `tsc -p FILE`, keeps it from writing.
fn writes_nothing(repository: &Repository, line: &CiCommand, words: &[String]) -> bool {
    let is_option = |word: &String| matches!(word.as_str(), "-p" | "--project");
    let file = words.iter().skip_while(|word| !is_option(word)).nth(1);
    let text = file.and_then(|file| repository.text(&joined(&line.directory, file)));
    let says_so = |text: &str| text.split_whitespace().collect::<String>().contains("\"noEmit\":true");
    // With any other option, such as `--watch`, it does something else.
    let is_plain = words.iter().filter(|word| word.starts_with('-')).all(is_option);
    is_plain && text.is_some_and(says_so)
}

/// Tells whether there is a Makefile before anything is configured.
pub(super) fn has_makefile(repository: &Repository, line: &CiCommand) -> bool {
    // These options name another folder or file, of which nothing is known here.
    line.command.contains(" -C")
        || line.command.contains(" -f")
        || MAKEFILES.iter().any(|file| repository.has(joined(&line.directory, file).as_str()))
}

/// Tells whether a task of the repository is its build, which its tests may need.
pub(super) fn is_build(words: &[String]) -> bool {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    // A part of it, `pnpm run build:types`, makes what tests behind it look at.
    let is_part = |name: &str| matches!(name, "build:dts" | "build:types" | "build:lib");
    if let ["npm" | "pnpm" | "yarn" | "bun", "run", name] | ["pnpm" | "yarn", name] = names.as_slice()
        && is_part(name)
    {
        return true;
    }
    // Of a workspace, all of it.
    if matches!(names.as_slice(), ["npm" | "pnpm" | "yarn", "run", "build:all" | "build:packages"]) {
        return true;
    }
    matches!(
        names.as_slice(),
        ["npm" | "pnpm" | "yarn" | "bun" | "mise", "run", "build"]
            | ["pnpm" | "yarn" | "make" | "just" | "task" | "uv" | "poetry" | "hatch" | "pdm", "build"]
            | ["deno", "task", "build"]
            | ["bundle", "exec", "rake", "compile"]
            | ["python" | "python3", "-m", "build"]
    )
}

/// Tells whether cargo builds other parts than the usual ones, `--no-default-features`, which its tests may leave out. It does so for the
/// machine itself: for another one, the linker may be missing.
fn builds_crates(words: &[String]) -> bool {
    let plain: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.starts_with('+')).collect();
    let is_of_others = |word: &&str| {
        word.starts_with("--target") || word.starts_with("-Z") || matches!(*word, "--bin" | "--example")
    };
    let chooses = |word: &&str| {
        ["--features", "--all-features", "--no-default-features", "--all-targets", "--examples", "--benches"]
            .iter()
            .any(|option| word.starts_with(option))
    };
    matches!(plain.as_slice(), ["cargo", "build" | "b", rest @ ..]
        if rest.iter().any(chooses) && !rest.iter().any(is_of_others))
}

/// Tells whether make is called without a task, `make V=1 -j4`, or for all, and builds then: what comes first in its Makefile says so.
fn is_whole_make(repository: &Repository, line: &CiCommand, words: &[String]) -> bool {
    let is_setting = |word: &String| {
        let number = word.strip_prefix("-j");
        word.contains('=') && !word.starts_with('-')
            || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            || word == "all"
    };
    let program = words.iter().position(|word| word == "make");
    let text = makefile(repository, &line.directory);
    let goal = text.and_then(first_recipe).unwrap_or_default();
    // Where it only calls checks, these are known by themselves.
    let all = text.map_or_else(Vec::new, recipes);
    let needs = all.iter().find(|recipe| recipe.name == goal).map_or("", |recipe| recipe.needs);
    let only_checks =
        !needs.trim().is_empty() && needs.split_whitespace().all(|name| task_kind(name, "").is_some());
    let is_whole = goal == "all" || goal == "default" || builds(&goal) || is_program_of(repository, &goal);
    let builds_first = is_whole && !only_checks;
    let is_bare = program.is_some_and(|at| words[at + 1..].iter().all(is_setting));
    is_bare && builds_first && !is_other(&goal)
}

/// Tells whether a recipe is named after the repository's program, which it then makes.
fn is_program_of(repository: &Repository, goal: &str) -> bool {
    let is_source = |path: &str| {
        let stem = after_last(path, &['/']).split_once('.').map_or("", |(stem, _)| stem);
        !goal.is_empty() && stem == goal && [".c", ".cc", ".cpp"].iter().any(|end| path.ends_with(end))
    };
    repository.paths().any(is_source)
}

/// Returns what a script of the repository checks: by its name, by that of its task, `./tool lint`, by the directory of tests in
/// which it lies, or by the job of linters that calls it.
fn own_script(
    repository: &Repository,
    line: &CiCommand,
    words: &[String],
) -> Result<(Purpose, bool), Reason> {
    let mut plain: Vec<&str> = words.iter().map(String::as_str).collect();
    // Who looks for something that must not be there has checked it.
    if matches!(plain.as_slice(), ["!", "grep" | "egrep" | "rg", ..])
        || line.command.starts_with("! git grep ")
    {
        return Ok((Purpose::Lint, false));
    }
    // Neither what is set before it nor what only starts it says anything of it.
    let is_set = |word: &&&str| word.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '-']));
    let set = plain.iter().take_while(is_set).count();
    plain.drain(..set);
    if let ["uv" | "poetry" | "pdm" | "hatch", "run", behind @ ..] = plain.as_slice() {
        let own = behind.iter().position(|word| !word.starts_with('-')).unwrap_or(behind.len());
        plain = behind[own..].to_vec();
    }
    let names_toolchain = matches!(plain.as_slice(), ["cargo", word, ..] if word.starts_with('+'));
    plain.drain(if names_toolchain { 1..2 } else { 0..0 });
    if let ["cargo", "xtask", name, rest @ ..] = plain.as_slice() {
        // `xtask` is a convention: without this alias cargo has no such subcommand.
        let is_there = repository.text(".cargo/config.toml").is_some_and(|text| text.contains("xtask"));
        let kind = task_kind(name, &rest.join(" ")).filter(|_| is_there).ok_or(Reason::NamesSayNothing)?;
        return Ok((kind.purpose.ok_or(Reason::Mends)?, kind.mends));
    }
    let called = CalledScript::of(repository, &line.directory, &plain);
    let is_made = || plain.first().is_some_and(|program| is_local_program(program));
    let CalledScript { path, arguments: rest } =
        called.ok_or_else(|| if is_made() { Reason::NamesBuilt } else { Reason::Unknown })?;
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    // A script that changes the repository itself is no check of that.
    let script = repository.text(joined(&line.directory, &path).as_str()).ok_or(Reason::Unknown)?;
    if rest.iter().any(|word| matches!(*word, "--check" | "--verify" | "--check-only")) {
        return Ok((Purpose::Lint, false));
    }
    if alters_files(repository, script) {
        return Err(Reason::ScriptAlters);
    }
    // `verify.sh worktree-test` says where, and not what.
    let is_word = |task: &str| task.bytes().all(|byte| byte.is_ascii_lowercase());
    let by_task = || {
        rest.split_first()
            .filter(|(task, _)| is_word(task))
            .and_then(|(task, more)| task_kind(task, &more.join(" ")))
    };
    // `generate-reflection-test` makes one.
    let begin = stem.split(['-', '_', '.']).next().unwrap_or("");
    if matches!(begin, "dump" | "generate" | "gen" | "write" | "export") {
        return Err(Reason::Prepares);
    }
    if let Some(kind) = task_kind(stem, "").or_else(by_task) {
        return Ok((kind.purpose.ok_or(Reason::Mends)?, kind.mends));
    }
    let job = after_last(&line.job, &[':']);
    let is_of_linters = task_kind(job, "").is_some_and(|kind| kind.purpose == Some(Purpose::Lint));
    let is_of_tests = directory.split('/').any(|part| matches!(part, "test" | "tests"))
        || directory.is_empty()
            && ["runtest", "run-test", "run_test"].iter().any(|begin| stem.starts_with(begin));
    match () {
        () if builds(stem) && tests_by_itself(script) => Ok((Purpose::Test, false)),
        // This comes first: `tests/setup.sh` lies among the tests, and tests nothing.
        () if prepares(stem) => Err(Reason::Prepares),
        () if is_of_tests => Ok((Purpose::Test, false)),
        () if is_of_linters || (is_some_check(stem) && rest.is_empty()) => Ok((Purpose::Lint, false)),
        () => Err(Reason::UnknownScript),
    }
}

/// Tells whether a program is called by a path of the repository, where no manager of packages puts one.
fn is_local_program(program: &str) -> bool {
    let is_installed = ["vendor/", "node_modules/", ".venv/", "venv/"];
    let plain = program.trim_start_matches("./");
    program.starts_with("./") && !is_installed.iter().any(|place| plain.starts_with(place))
}

/// A script of the repository as a command calls it.
struct CalledScript<'w> {
    /// Its path from the directory of the command.
    path: String,
    arguments: &'w [&'w str],
}

impl<'w> CalledScript<'w> {
    fn of(repository: &Repository, directory: &str, words: &'w [&'w str]) -> Option<Self> {
        let (path, is_of_node, arguments) = match words {
            ["node", path, rest @ ..] => (path, true, rest),
            ["bash" | "sh" | "python" | "python3" | "bun" | "php" | "ruby", path, rest @ ..]
            | [path, rest @ ..] => (path, false, rest),
            [] => return None,
        };
        let path = path.strip_prefix("./").unwrap_or(path);
        // To node, `Makefile` is `Makefile.js` where nothing has the shorter name.
        let with_end = is_of_node.then(|| format!("{path}.js"));
        let mut names = std::iter::once(path.to_owned()).chain(with_end);
        let path = names.find(|name| repository.has(&joined(directory, name)))?;
        Some(Self { path, arguments })
    }
}

/// Returns the script of the repository that a command calls, by its path from the top.
pub(super) fn script_of(repository: &Repository, directory: &str, command: &str) -> Option<String> {
    let words = shlex::split(command)?;
    let plain: Vec<&str> = words.iter().map(String::as_str).collect();
    Some(joined(directory, &CalledScript::of(repository, directory, &plain)?.path))
}

/// Tells whether a script builds, by its name.
pub(super) fn builds(stem: &str) -> bool {
    stem.split(['-', '_', '.']).any(|word| matches!(word.to_ascii_lowercase().as_str(), "build" | "compile"))
}

/// Tells whether a script that only says that it builds runs tests of a known tool as well, and publishes nothing.
fn tests_by_itself(script: &str) -> bool {
    let is_test = |command: &str| {
        recognise_line(command.trim())
            .is_some_and(|found| found.manner == Manner::Pure && found.purpose == Some(Purpose::Test))
    };
    // A command may stand in a variable that is called later: `BUILD="./gradlew clean check"`.
    let commands = |line: &str| line.split([';', '|', '&', '"', '\'']).any(is_test);
    let lower = script.to_ascii_lowercase();
    let is_called = |line: &str| !line.trim_start().starts_with('#') && commands(line);
    script.lines().any(is_called) && !PUBLISHES.iter().any(|word| lower.contains(word))
}

/// What a script says that publishes.
pub(super) const PUBLISHES: [&str; 5] = ["publish", "deploy", "upload", "docker push", "git push"];

/// Tells whether a script makes ready for others or looks after what they did, by its name.
pub(super) fn prepares(stem: &str) -> bool {
    let known = [
        "install",
        "setup",
        "init",
        "prepare",
        "bootstrap",
        "configure",
        "build",
        "compile",
        "generate",
        "gen",
        "download",
        "fetch",
        "start",
        "stop",
        "up",
        "down",
        "serve",
        "server",
        "env",
        "info",
        "deps",
        "dependencies",
        "requirements",
        "update",
        "clean",
        "coverage",
        "upload",
        "report",
        "release",
        "publish",
        "deploy",
        "create",
        "version",
    ];
    stem.split(['-', '_', '.']).any(|word| known.contains(&word.to_ascii_lowercase().as_str()))
}

/// Tells whether a command names a place that only the machine of its job has.
fn is_of_one_machine(command: &str) -> bool {
    ["/opt/hostedtoolcache/", "/home/runner/", "/Users/runner/"].iter().any(|place| command.contains(place))
}
