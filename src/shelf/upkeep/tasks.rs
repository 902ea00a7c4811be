//! A repository's own tasks: what people who work on it call.

use std::collections::{BTreeMap, BTreeSet};

use super::altered_checkout::alters_files;
use super::found_repository::{Evidence, Finding, Repository, declared, line_of};
use super::node_packages::package_manager;
use super::recipes::{MAKEFILES, Recipe, recipes};
use super::unused::{Reason, UnusedCommand};
use super::{ci, lined_yaml};
use crate::base::text::up_to;
use crate::tools::{Manner, Purpose, TaskKind, recognise_line, task_kind, task_part, watches, writes};

/// A task.
pub(super) struct RepositoryTask {
    pub(super) name: String,
    /// How it is called.
    pub(super) call: String,
    /// What it does, as far as that is known.
    pub(super) body: String,
    /// The recipes that run right before it, and what all do that run before it.
    needs: Vec<String>,
    needed: String,
    pub(super) file: String,
    pub(super) line: usize,
}

impl RepositoryTask {
    /// Tells whether it changes files of the repository by what runs before it or in a way that no name of a task says: then it is
    /// neither a check nor what mends.
    fn alters_files(&self, repository: &Repository) -> bool {
        writes(&self.needed) || [&self.body, &self.needed].iter().any(|text| alters_files(repository, text))
    }
}

/// Returns what stands for a task of the top, of which a line of a workflow says only the name: itself, or where it changes files of
/// the repository, the checks among the recipes that run right before it.
pub(super) fn without_changes(
    repository: &Repository,
    runner: &str,
    name: &str,
    purpose: Option<Purpose>,
) -> Vec<String> {
    let all = of_repository(repository);
    let of_name =
        |name: &str| all.iter().find(|task| task.name == name && task.call.split(' ').next() == Some(runner));
    let changes = |task: &RepositoryTask| writes(&task.body) || task.alters_files(repository);
    let Some(task) = of_name(name).filter(|task| changes(task)) else { return vec![name.to_owned()] };
    let is_check = |name: &&String| {
        let kind = task_kind(name, "").filter(|kind| !kind.mends && kind.purpose == purpose);
        kind.is_some() && of_name(name).is_some_and(|task| !changes(task))
    };
    task.needs.iter().filter(is_check).cloned().collect()
}

/// Returns every task of a repository, whatever it is about.
pub(super) fn of_repository(repository: &Repository) -> Vec<RepositoryTask> {
    READERS.iter().flat_map(|reader| reader(repository)).collect()
}

/// Reads the tasks of one kind of file.
type Reader = fn(&Repository) -> Vec<RepositoryTask>;

/// Every kind of file with tasks, in the order in which they count.
const READERS: &[Reader] = &[
    just,
    make,
    taskfile,
    mise,
    package_json,
    deno,
    rake,
    nox,
    tox,
    poe,
    hatch,
    pdm,
    turbo,
    nx,
    gradle,
    maven,
    composer,
    cmake,
    cargo_aliases,
    pre_commit,
];

/// What tasks say.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnTasks {
    /// Of each purpose what the first file has that says anything about it.
    pub(super) found: Vec<Finding>,
    /// The tasks that look as well, by their names, and are none of these.
    pub(super) unused: Vec<UnusedCommand>,
}

/// Returns what tasks say.
pub(super) fn own(repository: &Repository, called: &[ci::CiCommand]) -> OwnTasks {
    let (mut findings, mut known, mut unused) = (Vec::new(), BTreeSet::new(), Vec::new());
    let is_called = |tasks: &Vec<RepositoryTask>| {
        let runner = tasks.first().and_then(|task| task.call.split(' ').next());
        runner.is_some_and(|runner| called.iter().any(|line| line.command.split(' ').next() == Some(runner)))
    };
    let mut all: Vec<Vec<RepositoryTask>> = READERS.iter().map(|reader| reader(repository)).collect();
    // A repository may have several files of tasks. Its CI says which of them it is checked by.
    all.sort_by_key(|tasks| !is_called(tasks));
    for tasks in all {
        let found = of_purposes(repository, &tasks, called);
        // Hooks are all that a repository asks of a change, where another runner only knows parts.
        let has_parts =
            findings.iter().any(|one: &Finding| one.purpose == Some(Purpose::Lint) && !one.is_fix)
                && findings.iter().all(|one: &Finding| one.purpose != Some(Purpose::Lint) || is_part(one));
        let is_new = |one: &Finding| {
            !known.contains(&(one.purpose, one.is_fix))
                || (has_parts && one.command.starts_with("pre-commit "))
        };
        let (new, others): (Vec<Finding>, Vec<Finding>) = found.into_iter().partition(is_new);
        unused.extend(others.into_iter().filter(|one| !one.is_fix).map(|one| (one, Reason::OtherTasks)));
        unused.extend(not_taken(repository, &tasks, &new));
        // Only now: several tasks of one file may share a purpose.
        known.extend(new.iter().map(|one| (one.purpose, one.is_fix)));
        findings.extend(new);
    }
    let unused =
        unused.into_iter().filter(|(one, _)| !findings.iter().any(|known| known.command == one.command));
    let unused = unused.map(|(finding, why)| ci::unused_finding(finding, why)).collect();
    OwnTasks { found: findings, unused }
}

/// Returns the tasks of a file that look, by their names, and are not taken for checks.
fn not_taken(repository: &Repository, tasks: &[RepositoryTask], taken: &[Finding]) -> Vec<(Finding, Reason)> {
    let is_taken = |task: &RepositoryTask| taken.iter().any(|one| one.command == task.call);
    let left = tasks.iter().filter(|task| is_callable(&task.name) && !is_taken(task));
    let looks = left.filter_map(|task| Some((task, task_kind(&task.name, &task.body)?)));
    let looks = looks.filter(|(task, kind)| !kind.mends || has_own_fix(task, tasks));
    looks
        .map(|(task, kind)| {
            let why = if task.alters_files(repository) { Reason::TaskAlters } else { Reason::OtherTasks };
            (finding_of(task, kind.purpose, false), why)
        })
        .collect()
}

fn finding_of(task: &RepositoryTask, purpose: Option<Purpose>, is_fix: bool) -> Finding {
    Finding {
        purpose,
        is_fix,
        command: task.call.clone(),
        directory: String::new(),
        evidence: Evidence { file: task.file.clone(), line: task.line, task: Some(task.name.clone()) },
    }
}

/// Tells whether a task is about a part of its purpose, by its name.
fn is_part(finding: &Finding) -> bool {
    finding.evidence.task.as_deref().is_some_and(|task| !task_part(task).is_empty())
}

/// Tells whether something that the repository runs calls a program.
pub(super) fn call(repository: &Repository, program: &str) -> bool {
    let is_word = |text: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).any(|word| word == program)
    };
    let in_hooks = repository.text(".pre-commit-config.yaml").is_some_and(is_word);
    let in_tox = ["tox.ini", "noxfile.py"].iter().any(|file| repository.text(file).is_some_and(is_word));
    // Environments of hatch and tox may stand in files of others.
    let is_of_runner = |section: &str| {
        ["tool.hatch.envs", "tool.tox", "envs.", "env.", "env_run_base"]
            .iter()
            .any(|begin| section.starts_with(begin))
    };
    let in_sections = ["pyproject.toml", "hatch.toml", "tox.toml"].iter().any(|file| {
        let text = repository.text(file).unwrap_or("");
        text.split("\n[")
            .map(|section| section.trim_start_matches('['))
            .any(|section| is_of_runner(section) && is_word(section))
    });
    in_hooks
        || in_tox
        || in_sections
        || READERS.iter().flat_map(|reader| reader(repository)).any(|task| is_word(&task.body))
}

/// What a task is, by its name and by what it does. Where no name says it all, those that the CI calls count before others.
fn of_purposes(repository: &Repository, tasks: &[RepositoryTask], called: &[ci::CiCommand]) -> Vec<Finding> {
    let classified: Vec<(&RepositoryTask, TaskKind)> = tasks
        .iter()
        .filter(|task| is_callable(&task.name) && !task.alters_files(repository))
        .filter_map(|task| Some((task, task_kind(&task.name, &task.body)?)))
        .map(|(task, kind)| (task, TaskKind { mends: kind.mends && !has_own_fix(task, tasks), ..kind }))
        .collect();
    let mut chosen = Vec::new();
    for is_fix in [false, true] {
        for purpose in [Some(Purpose::Lint), Some(Purpose::Format), Some(Purpose::Test), None] {
            let wanted = |kind: &TaskKind| kind.purpose == purpose && kind.mends == is_fix;
            let of_kind: Vec<&(&RepositoryTask, TaskKind)> =
                classified.iter().filter(|(_, kind)| wanted(kind)).collect();
            // The plainest name says it all; else each of a few that say a part of it.
            let best = of_kind.iter().map(|(_, kind)| kind.parts).min();
            let plain = of_kind.iter().filter(|(_, kind)| Some(kind.parts) == best);
            let most = if best == Some(1) { 1 } else { 3 };
            let in_ci = |(task, _): &&&(&RepositoryTask, TaskKind)| {
                best != Some(1) && called.iter().any(|line| ci::words(&line.command) == ci::words(&task.call))
            };
            let by_ci: Vec<_> = of_kind.iter().filter(in_ci).collect();
            let of_names = plain.filter(|_| by_ci.is_empty()).take(most);
            chosen.extend(
                by_ci.iter().copied().chain(of_names).map(|(task, _)| finding_of(task, purpose, is_fix)),
            );
        }
    }
    chosen
}

/// Tells whether another task mends what this one looks for, by its name: beside `format:fix`, `format` is a check.
fn has_own_fix(task: &RepositoryTask, tasks: &[RepositoryTask]) -> bool {
    // Or it calls what mends, `nx format:write`.
    let writes =
        ["--write", "--fix", " -w ", ":write", ":fix"].iter().any(|option| task.body.contains(option));
    let is_fix = |other: &RepositoryTask| {
        let rest =
            other.name.strip_prefix(task.name.as_str()).filter(|rest| rest.starts_with([':', '-', '_']));
        rest.is_some() && task_kind(&other.name, "").is_some_and(|kind| kind.mends)
    };
    !writes && tasks.iter().any(is_fix)
}

/// Tells whether a name can stand in a command as it is.
fn is_callable(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":_.-/@".contains(&byte);
    // With a dash in front, the runner would take the name for an option.
    !name.is_empty() && name.len() <= 80 && name.bytes().all(is_plain) && !name.starts_with('-')
}

fn task(name: &str, call: String, body: &str, file: &str, line: usize) -> RepositoryTask {
    let (needs, needed) = (Vec::new(), String::new());
    RepositoryTask {
        name: name.to_owned(),
        call,
        body: body.to_owned(),
        needs,
        needed,
        file: file.to_owned(),
        line,
    }
}

fn of_recipes(repository: &Repository, files: &[&str], call: &str) -> Vec<RepositoryTask> {
    let Some((file, text)) = repository.first(files).and_then(|file| Some((file, repository.text(file)?)))
    else {
        return Vec::new();
    };
    let all = recipes(text);
    // make keeps names such as `.PHONY` to itself, and just hides those that begin with `_`.
    let is_task = |recipe: &&Recipe<'_>| !recipe.name.starts_with(['.', '@', '_']);
    let tasks = all.iter().filter(is_task).map(|recipe| RepositoryTask {
        needs: recipe.needs().map(str::to_owned).collect(),
        needed: recipe.needed(&all),
        ..task(recipe.name, format!("{call} {}", recipe.name), &recipe.body, file, recipe.line)
    });
    // What watches does not end.
    tasks.filter(|task| !watches(&task.body) && !watches(&task.needed)).collect()
}

fn just(repository: &Repository) -> Vec<RepositoryTask> {
    let files = ["justfile", "Justfile", ".justfile"];
    let text = repository.first(&files).and_then(|file| repository.text(file)).unwrap_or("");
    let mut tasks = of_recipes(repository, &files, "just");
    tasks.retain(|task| {
        let head = text.lines().nth(task.line.saturating_sub(1)).unwrap_or("");
        does_without_arguments(head, &task.body)
    });
    tasks
}

/// Tells whether a recipe of just does the same for everybody who calls it by its name alone. One with a parameter that has no default
/// fails so; what an unknown program does without the arguments that it is meant for, `test *pattern`, nobody knows.
fn does_without_arguments(head: &str, body: &str) -> bool {
    let words = up_to(head, &[':']).split_whitespace().skip(1);
    let mut parameters = words.filter(|word| !word.contains('=')).peekable();
    let is_known = |line: &str| {
        let plain = up_to(line.trim_start_matches(['@', '-']), &['{']).trim();
        recognise_line(plain).is_some_and(|found| found.manner == Manner::Pure)
    };
    match parameters.peek() {
        None => true,
        Some(_) => parameters.all(|word| word.starts_with('*')) && body.lines().any(is_known),
    }
}

fn make(repository: &Repository) -> Vec<RepositoryTask> {
    of_recipes(repository, &MAKEFILES, "make")
}

/// Reads a mapping of names to what they do.
fn of_mapping(
    repository: &Repository,
    files: &[&str],
    way: &[&str],
    call: &dyn Fn(&str) -> String,
) -> Vec<RepositoryTask> {
    let Some((file, text)) = repository.first(files).and_then(|file| Some((file, repository.text(file)?)))
    else {
        return Vec::new();
    };
    let Some(root) = lined_yaml::parse(text) else { return Vec::new() };
    let node = way.iter().try_fold(&root, |node, key| node.get(key));
    let tasks = lined_yaml::entries(node).iter().map(|entry| {
        let (body, line) =
            (lined_yaml::texts(&entry.value), lined_yaml::line(text, entry.key_span.range.start));
        task(&entry.key, call(&entry.key), &body, file, line)
    });
    tasks.collect()
}

fn taskfile(repository: &Repository) -> Vec<RepositoryTask> {
    let files = ["Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"];
    of_mapping(repository, &files, &["tasks"], &|name| format!("task {name}"))
}

fn package_json(repository: &Repository) -> Vec<RepositoryTask> {
    let manager = package_manager(repository);
    let mut tasks = of_mapping(repository, &["package.json"], &["scripts"], &|name| match (manager, name) {
        ("npm", "test") => "npm test".to_owned(),
        _ => format!("{manager} run {name}"),
    });
    // A script that only calls others does what they do.
    let bodies: BTreeMap<String, String> =
        tasks.iter().map(|task| (task.name.clone(), task.body.clone())).collect();
    for task in &mut tasks {
        task.body = with_called_scripts(&task.name, &bodies);
    }
    // The manager runs `prelint` and `postlint` around `lint` by itself.
    let names: BTreeSet<String> = tasks.iter().map(|task| task.name.clone()).collect();
    let is_around = |name: &str| {
        ["pre", "post"]
            .iter()
            .any(|around| name.strip_prefix(around).is_some_and(|inner| names.contains(inner)))
    };
    tasks.retain(|task| !is_around(&task.name));
    tasks
}

/// Returns what a script of a package does, with what the scripts do that it calls, each once.
fn with_called_scripts(name: &str, bodies: &BTreeMap<String, String>) -> String {
    let (mut known, mut open) = (BTreeSet::from([name]), vec![name]);
    let mut all: Vec<&str> = Vec::new();
    while let Some(body) = open.pop().and_then(|name| bodies.get(name)) {
        all.push(body);
        for called in called_scripts(body) {
            let begin = called.strip_suffix('*');
            let is_meant = |name: &str| begin.map_or(name == called, |begin| name.starts_with(begin));
            let new = bodies.keys().map(String::as_str).filter(|name| is_meant(name));
            open.extend(new.filter(|name| known.insert(name)));
        }
    }
    all.join("\n")
}

/// Returns the names of the scripts that the commands of a script call; one that ends with `*` is the beginning of several.
fn called_scripts(body: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for command in body.split(['\n', ';', '&', '|']) {
        let words: Vec<&str> =
            command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
        match words.as_slice() {
            ["npm" | "pnpm" | "yarn" | "bun", "run" | "run-script", name, ..]
            | ["pnpm" | "yarn" | "bun", name, ..] => found.push(*name),
            ["run-s" | "run-p" | "npm-run-all" | "npm-run-all2", names @ ..] => {
                found.extend(names.iter().filter(|name| !name.starts_with('-')));
            }
            ["concurrently", names @ ..] => {
                found.extend(names.iter().filter_map(|name| name.strip_prefix("npm:")));
            }
            _ => {}
        }
    }
    found
}

fn deno(repository: &Repository) -> Vec<RepositoryTask> {
    of_mapping(repository, &["deno.json", "deno.jsonc"], &["tasks"], &|name| format!("deno task {name}"))
}

fn composer(repository: &Repository) -> Vec<RepositoryTask> {
    // Without `run-script`, a command of composer's own would hide a script of the same name.
    of_mapping(repository, &["composer.json"], &["scripts"], &|name| format!("composer run-script {name}"))
}

fn turbo(repository: &Repository) -> Vec<RepositoryTask> {
    // Where the repository has not installed it, npx would fetch whatever the registry has by this name.
    let call = |name: &str| format!("npx --no-install turbo run {name}");
    let tasks = of_mapping(repository, &["turbo.json"], &["tasks"], &call);
    // Turborepo 1 has them under another key.
    if tasks.is_empty() { of_mapping(repository, &["turbo.json"], &["pipeline"], &call) } else { tasks }
}

fn nx(repository: &Repository) -> Vec<RepositoryTask> {
    of_mapping(repository, &["nx.json"], &["targetDefaults"], &|name| {
        format!("npx --no-install nx run-many -t {name}")
    })
}

fn cmake(repository: &Repository) -> Vec<RepositoryTask> {
    let file = "CMakePresets.json";
    let Some(text) = repository.text(file) else { return Vec::new() };
    let Some(root) = lined_yaml::parse(text) else { return Vec::new() };
    let presets = lined_yaml::items(root.get("testPresets")).iter().filter_map(|preset| {
        let name = lined_yaml::text(preset.get("name")).filter(|name| is_callable(name))?;
        let configure = lined_yaml::text(preset.get("configurePreset")).filter(|name| is_callable(name))?;
        let line = lined_yaml::line(text, preset.span.range.start);
        let call = format!(
            "cmake --preset {configure} && cmake --build --preset {configure} && ctest --preset {name} --no-tests=error"
        );
        Some(task("test", call, "", file, line))
    });
    // Each further preset would configure and build the same tests once more.
    presets.take(1).collect()
}

/// Reads the keys of a table of TOML, each with what it holds.
fn of_table(
    repository: &Repository,
    file: &str,
    table: &[&str],
    call: &dyn Fn(&str) -> String,
) -> Vec<RepositoryTask> {
    let Some(text) = repository.text(file) else { return Vec::new() };
    let Ok(root) = toml::de::DeTable::parse(text) else { return Vec::new() };
    let mut node = root.get_ref();
    for key in table {
        let inner = node.iter().find(|(name, _)| name.get_ref().as_ref() == *key);
        let Some(inner) = inner.and_then(|(_, value)| value.get_ref().as_table()) else { return Vec::new() };
        node = inner;
    }
    let tasks = node.iter().map(|(name, value)| {
        let (start, end) = (name.span().start, value.span().end);
        let body = text.get(value.span().start..end).unwrap_or("");
        task(name.get_ref(), call(name.get_ref()), body, file, lined_yaml::line(text, start))
    });
    tasks.collect()
}

fn mise(repository: &Repository) -> Vec<RepositoryTask> {
    let file = repository.first(&["mise.toml", ".mise.toml"]).unwrap_or("mise.toml");
    of_table(repository, file, &["tasks"], &|name| format!("mise run {name}"))
}

/// Returns how programs of a Python project are called.
pub(super) fn python(repository: &Repository) -> &'static str {
    match repository.first(&["uv.lock", "poetry.lock", "pdm.lock"]) {
        Some("uv.lock") => "uv run ",
        Some("poetry.lock") => "poetry run ",
        Some(_) => "pdm run ",
        None => "",
    }
}

fn poe(repository: &Repository) -> Vec<RepositoryTask> {
    let run = python(repository);
    of_table(repository, "pyproject.toml", &["tool", "poe", "tasks"], &|name| format!("{run}poe {name}"))
}

fn hatch(repository: &Repository) -> Vec<RepositoryTask> {
    // Where no environment is named, `hatch run` takes this one.
    let way = ["tool", "hatch", "envs", "default", "scripts"];
    of_table(repository, "pyproject.toml", &way, &|name| format!("hatch run {name}"))
}

fn pdm(repository: &Repository) -> Vec<RepositoryTask> {
    of_table(repository, "pyproject.toml", &["tool", "pdm", "scripts"], &|name| format!("pdm run {name}"))
}

fn cargo_aliases(repository: &Repository) -> Vec<RepositoryTask> {
    of_table(repository, ".cargo/config.toml", &["alias"], &|name| format!("cargo {name}"))
}

/// Finds tasks by the beginning of lines.
fn of_lines(
    repository: &Repository,
    files: &[&str],
    name: &dyn Fn(&str) -> Option<String>,
    call: &str,
) -> Vec<RepositoryTask> {
    let Some((file, text)) = repository.first(files).and_then(|file| Some((file, repository.text(file)?)))
    else {
        return Vec::new();
    };
    let tasks = text.lines().enumerate().filter_map(|(at, line)| {
        let name = name(line.trim())?;
        Some(task(&name, format!("{call} {name}"), "", file, at + 1))
    });
    tasks.collect()
}

fn word_behind(line: &str, before: &str) -> Option<String> {
    let rest = line.strip_prefix(before)?.trim_start_matches([' ', ':', '(', '"', '\'']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c))).unwrap_or(rest.len());
    Some(rest[..end].to_owned()).filter(|name| !name.is_empty())
}

fn rake(repository: &Repository) -> Vec<RepositoryTask> {
    let built_in = |line: &str| {
        let known = [
            ("RuboCop::RakeTask.new", "rubocop"),
            ("Rake::TestTask.new", "test"),
            ("Minitest::TestTask.create", "test"),
            ("RSpec::Core::RakeTask.new", "spec"),
        ];
        let (sign, usual) = known.into_iter().find(|(sign, _)| line.starts_with(sign))?;
        // Behind a blank stands a block, `RakeTask.new do |t|`, and not a name.
        let said = word_behind(line, sign).filter(|_| !line[sign.len()..].starts_with(' '));
        Some((said.unwrap_or_else(|| usual.to_owned()), usual))
    };
    let name = |line: &str| built_in(line).map(|(name, _)| name).or_else(|| word_behind(line, "task "));
    let files = ["Rakefile", "rakefile", "Rakefile.rb"];
    let mut tasks = of_lines(repository, &files, &name, "bundle exec rake");
    // Elsewhere a `spec` may be a document that is written.
    let text = repository.first(&files).and_then(|file| repository.text(file)).unwrap_or("");
    if !text.to_ascii_lowercase().contains("rspec") {
        tasks.retain(|task| task.name != "spec");
    }
    let usual: BTreeMap<String, &str> = text.lines().filter_map(|line| built_in(line.trim())).collect();
    for task in &mut tasks {
        let spaces = namespaces(text, task.line);
        if !spaces.is_empty() {
            task.name = format!("{}:{}", spaces.join(":"), task.name);
            task.call = format!("bundle exec rake {}", task.name);
            continue;
        }
        // Their names in the words of others.
        match usual.get(&task.name).copied().unwrap_or(task.name.as_str()) {
            "rubocop" => "lint".clone_into(&mut task.name),
            "spec" | "test" => "test".clone_into(&mut task.name),
            _ => {}
        }
    }
    tasks
}

/// Returns the namespaces of a Rakefile in which a line stands, the outer first.
fn namespaces(text: &str, line: usize) -> Vec<String> {
    let mut open: Vec<(usize, String)> = Vec::new();
    for above in text.lines().take(line.saturating_sub(1)) {
        let plain = above.trim();
        let indentation = above.len() - above.trim_start().len();
        if plain.ends_with(" do") {
            open.extend(word_behind(plain, "namespace ").map(|name| (indentation, name)));
        } else if plain == "end" {
            drop(open.pop_if(|(known, _)| *known == indentation));
        }
    }
    open.into_iter().map(|(_, name)| name).collect()
}

fn nox(repository: &Repository) -> Vec<RepositoryTask> {
    let text = repository.text("noxfile.py").unwrap_or("");
    let program = runner(repository, "nox");
    let lines: Vec<&str> = text.lines().collect();
    let sessions = lines.iter().enumerate().filter(|(_, line)| line.starts_with("@nox.session"));
    let tasks = sessions.filter_map(|(at, _)| {
        let (below, name) = lines[at..]
            .iter()
            .enumerate()
            .find_map(|(below, line)| Some((below, word_behind(line, "def ")?)))?;
        Some(task(&name, format!("{program} -s {name}"), "", "noxfile.py", at + below + 1))
    });
    tasks.collect()
}

/// Returns how a runner of environments is called: where the project depends on it, it comes with its plugins.
fn runner(repository: &Repository, name: &str) -> String {
    match declared(repository, name) {
        Some(_) => format!("{}{name}", python(repository)),
        None => name.to_owned(),
    }
}

/// What tox reads where there is no `tox.ini`: a file of its own, or a table of the project's.
fn tox_toml(repository: &Repository) -> Vec<RepositoryTask> {
    let is_own = repository.has("tox.toml");
    let (file, way): (_, &[&str]) =
        if is_own { ("tox.toml", &[]) } else { ("pyproject.toml", &["tool", "tox"]) };
    let program = runner(repository, "tox");
    let environments =
        of_table(repository, file, &[way, &["env"]].concat(), &|name| format!("{program} -e {name}"));
    // `py` is the environment of whichever Python runs tox.
    let base =
        of_table(repository, file, &[way, &["env_run_base"]].concat(), &|_| format!("{program} -e py"));
    // A base without commands runs nothing, and would be green.
    let runs = base.into_iter().filter(|task| task.name == "commands");
    let tests = runs.map(|commands| RepositoryTask { name: "test".to_owned(), ..commands });
    environments.into_iter().chain(tests).collect()
}

fn tox(repository: &Repository) -> Vec<RepositoryTask> {
    if !repository.has("tox.ini") {
        return tox_toml(repository);
    }
    let (file, program) = ("tox.ini", runner(repository, "tox"));
    // What only tox 3 reads, the one of today refuses.
    let Some(text) = repository.text(file).filter(|text| !text.contains("whitelist_externals =")) else {
        return Vec::new();
    };
    let environments = text.lines().enumerate().filter_map(|(at, line)| {
        let name = line.trim().strip_prefix("[testenv:")?.strip_suffix(']')?.trim();
        Some((name, at + 1))
    });
    let mut tasks: Vec<RepositoryTask> =
        environments.map(|(name, line)| task(name, format!("{program} -e {name}"), "", file, line)).collect();
    let line = line_of(text, |line| line.trim() == "[testenv]");
    tasks.extend(
        plain_environment(text).map(|name| task("test", format!("{program} -e {name}"), "", file, line)),
    );
    tasks
}

/// Returns the environment that runs the commands of `[testenv]`. Where each of them is for a factor, `tests: pytest`, an
/// environment without that factor runs nothing, and is green.
fn plain_environment(text: &str) -> Option<String> {
    let mut section = text.lines().skip_while(|line| line.trim() != "[testenv]");
    section.next()?;
    let lines: Vec<&str> = section.take_while(|line| !line.starts_with('[')).collect();
    let is_key = |line: &str| line.starts_with("commands") && line.contains('=');
    let Some(at) = lines.iter().position(|line| is_key(line)) else { return Some("py".to_owned()) };
    let first = lines[at].split_once('=').map_or("", |(_, rest)| rest.trim());
    let below =
        lines[at + 1..].iter().take_while(|line| line.is_empty() || line.starts_with([' ', '\t', '#']));
    let commands: Vec<&str> = std::iter::once(first)
        .chain(below.map(|line| line.trim()))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let factor = |line: &str| {
        let (factor, _) = line.split_once(": ")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.,!{}".contains(c);
        (!factor.is_empty() && factor.chars().all(is_plain)).then(|| factor.to_owned())
    };
    let factors: Option<Vec<String>> = commands.iter().map(|line| factor(line)).collect();
    match factors {
        Some(factors) if !factors.is_empty() => {
            let is_test = |name: &&String| {
                name.chars().all(|c| c.is_ascii_alphanumeric())
                    && task_kind(name, "").is_some_and(|kind| kind.purpose == Some(Purpose::Test))
            };
            factors.iter().find(is_test).map(|name| format!("py-{name}"))
        }
        Some(_) | None => Some("py".to_owned()),
    }
}

/// Tells whether a line of a build file of Gradle applies a plugin. What only configures it, or another one that calls the same
/// tool, does not.
fn applies(line: &str, plugin: &str) -> bool {
    let line = line.trim().trim_matches('`');
    let ways = ["id", "alias", "apply", "plugin", "classpath"];
    line == plugin || (line.contains(plugin) && ways.iter().any(|way| line.starts_with(way)))
}

fn gradle(repository: &Repository) -> Vec<RepositoryTask> {
    let Some(file) = repository.first(&["build.gradle.kts", "build.gradle"]) else { return Vec::new() };
    let text = repository.text(file).unwrap_or("");
    let program = if repository.has("gradlew") { "./gradlew" } else { "gradle" };
    let known = [
        ("spotless", "format:check", "spotlessCheck", "format:fix", "spotlessApply"),
        ("ktlint", "lint", "ktlintCheck", "lint:fix", "ktlintFormat"),
        ("detekt", "lint", "detekt", "", ""),
        ("checkstyle", "lint", "checkstyleMain", "", ""),
    ];
    let mut tasks = Vec::new();
    for (plugin, check, look, fix, mend) in known {
        let named = |line: &str| applies(line, plugin);
        if !text.lines().any(named) {
            continue;
        }
        let line = line_of(text, named);
        // There is no body to read: this word stands for one that only looks.
        tasks.push(task(check, format!("{program} {look}"), "--check", file, line));
        if !fix.is_empty() {
            tasks.push(task(fix, format!("{program} {mend}"), "", file, line));
        }
    }
    tasks
}

fn maven(repository: &Repository) -> Vec<RepositoryTask> {
    let file = "pom.xml";
    let Some(text) = repository.text(file) else { return Vec::new() };
    let program = if repository.has("mvnw") { "./mvnw" } else { "mvn" };
    let mut tasks = Vec::new();
    for (plugin, name, goal) in [
        ("spotless-maven-plugin", "format:check", "spotless:check"),
        ("spotless-maven-plugin", "format:fix", "spotless:apply"),
        ("maven-checkstyle-plugin", "lint", "checkstyle:check"),
    ] {
        if text.contains(plugin) {
            let line = line_of(text, |line| line.contains(plugin));
            let body = if name.ends_with("check") { "--check" } else { "" };
            tasks.push(task(name, format!("{program} --batch-mode {goal}"), body, file, line));
        }
    }
    tasks
}

fn pre_commit(repository: &Repository) -> Vec<RepositoryTask> {
    let file = ".pre-commit-config.yaml";
    let is_there = repository.has(file);
    // Without this option hooks look at staged files, of which a checkout has none.
    let task = task("lint", "pre-commit run --all-files".to_owned(), "", file, 1);
    if is_there { vec![task] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_rake_has_the_name_of_its_namespaces() {
        let text = "namespace :spec do\n  task :unit do\n  end\n  namespace \"x\" do\n    task :a\n  end\nend\ntask :b\n";
        for (line, expected) in [(2, &["spec"][..]), (5, &["spec", "x"]), (8, &[])] {
            assert_eq!(namespaces(text, line), expected, "{line}");
        }
    }

    #[test]
    fn a_recipe_of_just_may_need_arguments() {
        for (head, body, does) in [
            ("test:", "x", true),
            ("test: build", "x", true),
            ("test mode='all':", "x", true),
            ("test name:", "cargo test {{name}}", false),
            ("test +names:", "cargo test {{names}}", false),
            ("test *args:", "@cargo test {{args}}", true),
            ("test *pattern:", "nix run .#tests -- {{pattern}}", false),
        ] {
            assert_eq!(does_without_arguments(head, body), does, "{head} {body}");
        }
    }
}
