//! What a command line is: which tool it calls in the end, and whether that only looks.

use super::table::{BareCall, Purpose, TOOLS, Tool, ToolCaller, ToolCheck};
use super::task_names::task_kind;

/// How a command line calls a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It only looks, and its exit code says what it saw. It may be done again without harm.
    Pure,
    /// It writes what the check would find.
    Mends,
    /// Neither: it shows something, hides what it finds, rewrites what is compared with, or is not understood.
    Other,
}

/// A command line that calls a known tool.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// The tool.
    pub tool: &'static Tool,
    /// The way of calling it that comes closest.
    pub check: &'static ToolCheck,
    /// What it does.
    pub manner: Manner,
    /// What it is about, also where the name of a task says it.
    pub purpose: Option<Purpose>,
    /// The names of the tasks that it calls.
    pub tasks: Vec<String>,
    /// The names of the environments of tox or nox that it calls.
    pub environments: Vec<String>,
    /// The programs that started one another before it, such as `npx`, and `python` of a module.
    pub(super) callers: Vec<&'static str>,
}

impl Recognised {
    /// Tells whether another program starts it, such as `npx` or `uv run`.
    pub fn is_started_by_others(&self) -> bool {
        !self.callers.is_empty()
    }

    /// Tells whether what runs in the end is somebody else's: a task may call whatever it wants.
    pub(super) fn is_of_tasks(&self) -> bool {
        self.check.tasks || !self.check.environments.is_empty() || self.tool.name == "pre-commit"
    }
}

/// Returns the tool that a command calls if all that it does is to look. The words are those of one command, without quotes; a
/// word that the shell would expand stands as it is written.
pub fn pure_check(words: &[String]) -> Option<&'static Tool> {
    recognise(words).filter(|found| found.manner == Manner::Pure).map(|found| found.tool)
}

/// Finds the tool that a command calls, however it calls it. Nothing where the program is not in the table.
pub fn recognise(words: &[String]) -> Option<Recognised> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    behind_callers(&words, MAX_CALLERS)
}

/// The same for a command as it is written. Nothing where its quotes do not end.
pub fn recognise_line(command: &str) -> Option<Recognised> {
    recognise(&shlex::split(command)?)
}

/// How many programs may start one another before the tool is called: `xvfb-run uv run python -m pytest` has three.
const MAX_CALLERS: usize = 4;

fn behind_callers(words: &[&str], callers: usize) -> Option<Recognised> {
    let (variables, words) = assignments(words);
    let inner = started(words).filter(|_| callers > 0).and_then(|(caller, inner)| {
        let mut found = behind_callers(inner, callers - 1)?;
        found.callers.push(caller);
        Some(found)
    });
    // Some are both: `pdm run pytest` starts a tool, `pdm run lint` is a task.
    let mut found = inner.or_else(|| called_directly(words))?;
    if variables.iter().any(|variable| writes(variable)) {
        found.manner = Manner::Other;
    }
    Some(found)
}

fn called_directly(words: &[&str]) -> Option<Recognised> {
    let (tool, arguments) = called(words)?;
    let arguments = Arguments { all: arguments };
    let check = best(tool, &arguments)?;
    let purpose = check.purpose.or_else(|| arguments.purpose(tool, check));
    // python itself says that a module is missing, so its lines in the output count as well.
    let callers = words.first().filter(|program| is_python(program)).map(|_| "python").into_iter().collect();
    let tasks = if check.tasks { arguments.tasks(tool, check) } else { Vec::new() };
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let (tasks, environments) = (owned(tasks), owned(arguments.environments(check)));
    let manner = arguments.manner(tool, check);
    Some(Recognised { tool, check, manner, purpose, tasks, environments, callers })
}

/// Splits the variables off that stand before a command, `env` included.
fn assignments<'w, 'a>(words: &'w [&'a str]) -> (&'w [&'a str], &'w [&'a str]) {
    let words = words.strip_prefix(&["env"]).unwrap_or(words);
    let is_assignment = |word: &&&str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let count = words.iter().take_while(is_assignment).count();
    words.split_at(count)
}

/// Tells whether a variable makes test runners write what they should compare with.
fn writes(variable: &str) -> bool {
    let name = variable.split_once('=').map_or(variable, |(name, _)| name).to_ascii_uppercase();
    TOOLS.options.variables.iter().any(|part| name.contains(part.as_str()))
}

/// Returns the tool that the first words call, and its arguments.
fn called<'w, 'a>(words: &'w [&'a str]) -> Option<(&'static Tool, &'w [&'a str])> {
    let (program, arguments) = words.split_first()?;
    if let Some(module) = module(words) {
        let (name, arguments) = module.split_first()?;
        let tool = TOOLS.tools.iter().find(|tool| tool.modules.iter().any(|known| known == name))?;
        return Some((tool, arguments));
    }
    if is_interpreter(program)
        && let Some((script, arguments)) = arguments.split_first()
    {
        let named = |tool: &&Tool| {
            tool.scripts.iter().any(|known| known == script)
                // Without a slash, php would run a file of this name in the directory, and not the tool.
                || (*program == "php" && script.contains('/') && is_program(tool, script))
        };
        return TOOLS.tools.iter().find(named).map(|tool| (tool, arguments));
    }
    TOOLS.tools.iter().find(|tool| is_program(tool, program)).map(|tool| (tool, arguments))
}

fn is_program(tool: &Tool, word: &str) -> bool {
    let is_named = |name: &str| tool.programs().iter().any(|program| program == name);
    is_named(word)
        || TOOLS.options.places.iter().any(|place| word.strip_prefix(place.as_str()).is_some_and(is_named))
}

fn is_interpreter(program: &str) -> bool {
    is_python(program) || program == "php"
}

fn is_python(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    // `py` is the launcher of Python on Windows.
    let version = name.strip_prefix("python").or((name == "py").then_some(""));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Returns what stands behind `python -m`, or behind the `-m` of a caller like it.
fn module<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    let (program, mut rest) = words.split_first()?;
    if !is_python(program) {
        return None;
    }
    loop {
        match rest {
            ["-m", module @ ..] => return Some(module),
            ["-W" | "-X", _, next @ ..] => rest = next,
            // Behind `-c` stands a program, whose own words are no options of Python.
            [option, next @ ..] if option.starts_with('-') && *option != "-c" => rest = next,
            _ => return None,
        }
    }
}

/// Returns the caller that the first words are, and the command that it starts.
fn started<'w, 'a>(words: &'w [&'a str]) -> Option<(&'static str, &'w [&'a str])> {
    let begins = |caller: &&ToolCaller| {
        words.len() > caller.words.len() && caller.words.iter().zip(words).all(|(one, other)| one == other)
    };
    // The longest: to `pnpm` alone, the `exec` behind it would be the program that it starts.
    let caller = TOOLS.callers.iter().filter(begins).max_by_key(|caller| caller.words.len())?;
    let mut rest = &words[caller.words.len()..];
    loop {
        let (first, next) = rest.split_first()?;
        if caller.modules && *first == "-m" {
            // `coverage run -m pytest` is `python -m pytest`: the words are the same from there.
            return Some((caller.words.first()?, next));
        }
        let name = first.split_once('=').map_or(*first, |(name, _)| name);
        let takes_one = caller.valued.iter().any(|option| option == name);
        match () {
            () if !first.starts_with('-') => break,
            () if *first == "--" || caller.flags.iter().any(|flag| flag == first) => rest = next,
            () if takes_one && name != *first => rest = next,
            () if takes_one => rest = next.get(1..)?,
            // An unknown option may take the next word, so that it is unknown what is started.
            () => return None,
        }
    }
    Some((caller.words.first()?, rest.get(caller.counts..)?))
}

/// Tells whether a word is this entry of the table; one that ends with `*` is the beginning of several.
fn is_meant(word: &str, entry: &str) -> bool {
    entry.strip_suffix('*').map_or(word == entry, |beginning| word.starts_with(beginning))
}

/// The arguments of a tool.
struct Arguments<'w, 'a> {
    all: &'w [&'a str],
}

impl<'a> Arguments<'_, 'a> {
    /// Tells whether one of these options stands there. An entry that ends with `*` is the beginning of one.
    fn has(&self, options: &[String]) -> bool {
        self.all.iter().any(|word| options.iter().any(|option| is_meant(word, option)))
    }

    /// Returns the words that are not options, nor values of such; those behind `--` belong to another program.
    fn plain(&self, tool: &Tool, check: &ToolCheck) -> Vec<&'a str> {
        let (mut found, mut words) = (Vec::new(), self.all.iter());
        while let Some(word) = words.next() {
            let is = |options: &[String]| options.iter().any(|option| option == word);
            if *word == "--" {
                break;
            } else if is(&check.pairs) {
                words.nth(1);
            } else if !is(&check.flags) && (is(&check.valued) || is(&tool.valued)) {
                words.next();
            } else if !(word.starts_with('-') || tool.toolchain && word.starts_with('+')) {
                found.push(*word);
            }
        }
        found
    }

    /// Returns what stands behind the subcommand, or nothing where another one is called.
    fn behind(&self, tool: &Tool, check: &ToolCheck) -> Option<Vec<&'a str>> {
        let plain = self.plain(tool, check);
        let is_called = plain.len() >= check.words.len()
            && check.words.iter().zip(&plain).all(|(one, other)| one == other);
        is_called.then(|| plain[check.words.len()..].to_vec())
    }

    /// Returns the names of the tasks that are called, without the variables among them.
    fn tasks(&self, tool: &Tool, check: &ToolCheck) -> Vec<&'a str> {
        let behind = self.behind(tool, check).into_iter().flatten();
        let is_setting = |word: &&str| check.settings.iter().any(|setting| is_meant(word, setting));
        let names = behind.skip(check.skips).filter(|word| !word.contains('=') && !is_setting(word));
        let mut names: Vec<&str> = names.collect();
        // What stands behind the name of a script is for the script.
        if tool.ecosystem == "node" && !matches!(tool.name.as_str(), "turbo" | "nx" | "grunt" | "gulp") {
            names.truncate(1);
        }
        names
    }

    fn environments(&self, check: &ToolCheck) -> Vec<&'a str> {
        let mut found = Vec::new();
        let mut words = self.all.iter().peekable();
        while let Some(word) = words.next() {
            if check.environments.iter().any(|option| option == word) {
                // nox takes several names behind one option, and tox a list with commas.
                while let Some(name) = words.next_if(|word| !word.starts_with('-')) {
                    found.extend(name.split(','));
                }
            }
        }
        found
    }

    /// Returns what the names of the tasks are about, where they agree.
    fn purpose(&self, tool: &Tool, check: &ToolCheck) -> Option<Purpose> {
        let mut names = self.environments(check);
        names.extend(self.tasks(tool, check));
        // Gradle names the task of a project with its path, `:app:test`.
        let by_table = |name: &str| check.about.get(name.rsplit(':').next().unwrap_or(name)).copied();
        let said = |name: &str| match by_table(name) {
            Some(purpose) => Some(Some(purpose)),
            None => task_kind(name, "").map(|kind| kind.purpose),
        };
        let mut purposes = names.into_iter().filter_map(said);
        let first = purposes.next()?;
        purposes.all(|other| other == first).then_some(first).flatten()
    }

    fn manner(&self, tool: &Tool, check: &ToolCheck) -> Manner {
        let options = &TOOLS.options;
        if self.has(&check.mends) {
            return Manner::Mends;
        }
        if self.has(&options.shows) || self.has(&options.hides) || self.has(&check.never) {
            return Manner::Other;
        }
        if self.has(&options.writes) || self.all.iter().any(|word| variable_writes(word)) {
            return Manner::Other;
        }
        if !check.needs.is_empty() && !self.has(&check.needs) {
            return match check.bare {
                BareCall::Mend => Manner::Mends,
                BareCall::Nothing => Manner::Other,
            };
        }
        self.manner_of_names(tool, check)
    }

    fn manner_of_names(&self, tool: &Tool, check: &ToolCheck) -> Manner {
        let tasks = self.tasks(tool, check);
        if !check.names.is_empty() {
            let is_known = |task: &&str| {
                let name = task.rsplit(':').next().unwrap_or(task);
                check.names.iter().any(|known| known == task || known == name)
            };
            // True without a task as well: a bare `gradle` or `mvn` checks nothing that is known.
            let only_prepares = tasks.iter().all(|task| *task == "clean");
            return if tasks.iter().all(is_known) && !only_prepares { Manner::Pure } else { Manner::Other };
        }
        let names = if check.tasks { tasks } else { self.environments(check) };
        if names.is_empty() {
            return if check.tasks { Manner::Other } else { Manner::Pure };
        }
        // An environment of tox that no name tells anything of is one of its tests: `py312`.
        let is_environment = !check.tasks;
        let kinds: Vec<_> = names.iter().map(|name| task_kind(name, "")).collect();
        let mends = kinds.iter().all(|kind| kind.as_ref().is_some_and(|kind| kind.mends));
        let looks = |(name, kind): (&&str, &Option<super::task_names::TaskKind>)| match kind {
            Some(kind) => !kind.mends,
            None => is_environment && is_version(name),
        };
        match () {
            () if mends => Manner::Mends,
            () if names.iter().zip(&kinds).all(looks) => Manner::Pure,
            () => Manner::Other,
        }
    }
}

/// Tells whether an environment is named by what it runs the tests with, such as `py312` or `pypy3-django5`.
fn is_version(name: &str) -> bool {
    name.starts_with("py") && !name.contains("fix") || name.starts_with("3.")
}

/// Tells whether `make test UPDATE=1` writes.
fn variable_writes(word: &str) -> bool {
    !word.starts_with('-')
        && word.split_once('=').is_some_and(|(name, _)| !name.contains('/') && writes(name))
}

/// Returns the way of calling the tool that fits the arguments best: the one with the longest subcommand.
fn best(tool: &'static Tool, arguments: &Arguments<'_, '_>) -> Option<&'static ToolCheck> {
    let fits = |check: &&ToolCheck| {
        arguments
            .behind(tool, check)
            .is_some_and(|behind| !check.alone || behind.is_empty() || !check.environments.is_empty())
    };
    tool.checks.iter().filter(fits).max_by_key(|check| check.words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(&'static str, Manner, Option<Purpose>)> {
        let words = shlex::split(text).unwrap();
        recognise(&words).map(|found| (found.tool.name.as_str(), found.manner, found.purpose))
    }

    #[test]
    fn a_command_is_what_it_runs_in_the_end() {
        use Manner::{Mends, Other, Pure};
        for (text, tool, manner, purpose) in [
            ("uv run --frozen python -m pytest", "pytest", Pure, Some(Purpose::Test)),
            ("npx --no-install prettier --write .", "prettier", Mends, Some(Purpose::Format)),
            ("cargo fmt", "cargo", Mends, Some(Purpose::Format)),
            ("CI=1 npm run lint:css", "npm", Pure, Some(Purpose::Lint)),
            ("make lint test", "make", Pure, None),
            ("npm run format", "npm", Mends, Some(Purpose::Format)),
            ("tox -e py312,lint", "tox", Pure, Some(Purpose::Lint)),
            ("cargo test -- --list", "cargo", Other, Some(Purpose::Test)),
        ] {
            assert_eq!(found(text), Some((tool, manner, purpose)), "{text}");
        }
        for text in [
            "",
            "env",
            "npx",
            "uv run",
            "sh -c pytest",
            "ls",
            "./pytest",
            "npx --unknown eslint",
            "python -c x",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_words_make_it_fall_over(words in proptest::collection::vec("[-a-z=/+. ]{0,8}|--|-m|npx|uv|run|make|cargo|tox|nx|-e|python", 0..8)) {
            drop(recognise(&words));
        }
    }
}
