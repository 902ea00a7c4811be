//! The files that the commands of checks run, or read as instructions: programs, scripts, rules, configuration. What
//! else is named in a command is the work.

use std::collections::BTreeSet;

use globset::GlobBuilder;
use serde_json::Value;

use super::compared::is_compared;
use super::judge_catalog::CATALOG;
use super::known_values::{self, FROM_ROOT};
use super::makefile::{self, Makefile};
use super::search_path::{AddedPlace, AddedPlaces, SearchPlace, added_libraries};
use super::tree::{Tree, extension};
use super::{named_modules, read_words};
use crate::base::gitpath;
use crate::base::text::{after_last, first_line, head};
use crate::shell::command::{SimpleCommand, commands};
use crate::shell::token::ShellOperator;

/// How many scripts and tasks are followed into each other: far more than there are in any repository.
const DEEPEST: usize = 12;

/// How deep a program is that is looked up, and not followed by intent.
const LOOKED_UP: usize = 1000;

/// How many links are followed.
const MOST_LINKS: usize = 3;

/// The most instructions that are looked for, and the most names of a text: a hostile Makefile has no end.
const MOST_INSTRUCTIONS: usize = 5000;
const MOST: usize = 500;

/// The most commands that are followed of a check. Each may cost the reading of a manifest.
const MOST_COMMANDS: usize = 10_000;

/// The most turns of a loop that are followed, and the most patterns of files that are looked up.
const MOST_TURNS: usize = 100;
const MOST_PATTERNS: usize = 200;

/// How far the end of a subshell is looked for.
const LONGEST_SUBSHELL: usize = 64 * 1024;

/// The command of a state that observes.
#[derive(Clone, Copy, Debug)]
pub struct CheckCommand<'a> {
    /// The state.
    pub state: &'a str,
    /// The text, with what is known of its templates filled in.
    pub text: &'a str,
    /// The directory in which it is run, from the root of the repository; empty for the root.
    pub directory: &'a str,
    /// The directories of its `PATH`, in order: those in the tree from the root of the repository, which is empty, and
    /// others with a `/` in front.
    pub search: &'a [String],
    /// The directories of the tree in which interpreters look for libraries, because of variables such as `PYTHONPATH`.
    pub libraries: &'a [String],
    /// Those of [`LOADING_VARIABLES`] that its environment has, with their values.
    pub variables: &'a [(String, String)],
    /// The words in front of the text: the program that reads it, and what that is told.
    pub shell: &'a [String],
}

/// Variables by which shells and interpreters are told of files that they load first.
pub const LOADING_VARIABLES: [&str; 9] = [
    "BASH_ENV",
    "ENV",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHONSTARTUP",
    "RUBYOPT",
];

/// Which part of a file is an instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InstructionPart {
    /// All of it.
    Whole,
    /// All of it, which the check itself makes by a rule.
    Product,
    /// All of it, read into the script that names it: it may end that one.
    Sourced,
    /// All files below a folder.
    Folder,
    /// The rules of a Makefile that these targets need, and variables that are named among them.
    Targets(Vec<String>),
    /// Scripts of a `package.json`, by a key each.
    Keys(Vec<String>),
    /// All of it, if it is there: one that is new takes the place of something else.
    Shadow,
    /// A program that is looked for here, with the one outside of the tree that is run where there is none.
    Program(Option<String>),
    /// The same, where a text of the check itself asks for the directory.
    Asked(Option<String>),
    /// The same, in any directory whose path ends so.
    Anywhere(Option<String>),
    /// All of it: what it says becomes words of a command, or variables of its environment.
    Words,
    /// A file or a folder that a rule makes: where it is there, the rule may not be run.
    Target,
    /// Scripts and files of tasks, wherever they are: not all that the check runs could be followed.
    AnyScript,
}

/// A file that a check runs or obeys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instruction {
    pub(super) path: String,
    pub(super) part: InstructionPart,
    /// The state whose check it is.
    pub(super) state: String,
}

/// What following the commands of checks has found.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    pub(super) all: BTreeSet<Instruction>,
    /// The commands that were not followed any further, by state: what is looked with in the end.
    pub(super) leaves: Vec<(String, Vec<String>)>,
}

/// Programs that run the program behind them.
const WRAPPERS: [Wrapper; 35] = [
    Wrapper::plain(&["env"], &["-u", "--unset", "-C", "--chdir"]),
    Wrapper::plain(&["sudo"], &["-u", "--user", "-g", "--group"]),
    Wrapper::plain(&["time"], &["-f", "--format", "-o", "--output"]),
    Wrapper::plain(&["nice"], &["-n", "--adjustment"]),
    Wrapper::plain(&["nohup"], &[]),
    Wrapper::plain(&["exec"], &[]),
    Wrapper::plain(&["command"], &[]),
    Wrapper::plain(&["builtin"], &[]),
    Wrapper::plain(&["eval"], &[]),
    Wrapper::plain(&["setsid"], &[]),
    Wrapper::plain(&["ionice"], &["-c", "-n"]),
    Wrapper::plain(&["unbuffer"], &[]),
    Wrapper::plain(&["chronic"], &[]),
    Wrapper::plain(&["stdbuf"], &["-o", "-e", "-i"]),
    Wrapper::plain(&["xvfb-run"], &["-s", "-n"]),
    Wrapper::plain(&["xargs"], &["-n", "-I", "-P", "-L", "-d"]),
    Wrapper::within(&["uv", "run"], &["--with", "--group", "--extra", "-p", "--python", "--package"], VENV),
    Wrapper::within(&["poetry", "run"], &[], VENV),
    Wrapper::within(&["pipenv", "run"], &[], VENV),
    Wrapper::within(&["pdm", "run"], &[], VENV),
    Wrapper::within(&["hatch", "run"], &[], VENV),
    Wrapper::within(&["rye", "run"], &[], VENV),
    Wrapper::within(&["pixi", "run"], &["-e"], ".pixi/envs/default/bin"),
    Wrapper::plain(&["bundle", "exec"], &[]),
    Wrapper::within(&["npx"], &["-p", "--package"], NODE_BIN),
    Wrapper::within(&["bunx"], &[], NODE_BIN),
    Wrapper::within(&["pnpm", "exec"], &[], NODE_BIN),
    Wrapper::plain(&["pnpm", "dlx"], &[]),
    Wrapper::within(&["npm", "exec"], &[], NODE_BIN),
    Wrapper::within(&["yarn", "exec"], &[], NODE_BIN),
    Wrapper::within(&["composer", "exec"], &[], COMPOSER_BIN),
    Wrapper::plain(&["mise", "exec"], &[]),
    // The directory whose settings hold stands in front of the program.
    Wrapper::plain(&["direnv", "exec", "."], &[]),
    Wrapper::plain(&["direnv", "exec"], &[]),
    Wrapper::plain(&["dotenv"], &["-e", "-f"]),
];

/// Where an environment of Python has its programs, and package managers of JavaScript and PHP have those of dependencies.
const VENV: &str = ".venv/bin";
const NODE_BIN: &str = "node_modules/.bin";
const COMPOSER_BIN: &str = "vendor/bin";

/// A program that runs the program behind it.
struct Wrapper {
    words: &'static [&'static str],
    /// Its options that take a word.
    valued: &'static [&'static str],
    /// The folder in which it looks for the program first, here and in the directories above.
    folder: Option<&'static str>,
}

impl Wrapper {
    const fn plain(words: &'static [&'static str], valued: &'static [&'static str]) -> Self {
        Self { words, valued, folder: None }
    }

    const fn within(
        words: &'static [&'static str],
        valued: &'static [&'static str],
        folder: &'static str,
    ) -> Self {
        Self { words, valued, folder: Some(folder) }
    }

    /// Tells whether words begin with it, also by its path in the system.
    fn begins(&self, words: &[&str]) -> bool {
        let (Some((program, rest)), Some((name, more))) = (words.split_first(), self.words.split_first())
        else {
            return false;
        };
        system_name(program) == *name && rest.starts_with(more)
    }
}

/// Returns the name of a program that is called by its path in the system: `/usr/bin/env` is `env`, while `./env` is a program of
/// the tree.
fn system_name(program: &str) -> &str {
    if program.starts_with('/') { after_last(program, &['/']) } else { program }
}

/// Programs that read a file as a program.
const INTERPRETERS: [&str; 24] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "python", "pypy", "node", "nodejs", "deno", "bun",
    "tsx", "ts-node", "ruby", "perl", "php", "lua", "Rscript", "julia", "pwsh", "elixir", "bats",
];

/// Of those, the ones whose programs are read here.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "ksh"];

/// Commands that a shell has of its own: no directory of `PATH` is looked into for them.
const BUILTINS: [&str; 38] = [
    ".", ":", "[", "[[", "alias", "bg", "break", "case", "cd", "continue", "declare", "dirs", "do", "echo",
    "esac", "exit", "export", "false", "fg", "for", "getopts", "hash", "jobs", "let", "local", "popd",
    "printf", "pushd", "pwd", "read", "readonly", "return", "set", "shift", "source", "trap", "true",
    "unset",
];

/// Options that name a file whose content becomes variables or words.
const OPTIONS_OF_WORDS: [&str; 7] = [
    "--env-file",
    "--env-file-if-exists",
    "--dotenv",
    "--dotenv-filename",
    "--dotenv-path",
    "--files-from",
    "--file-list",
];

/// Options that name a module, and programs that load it.
const OPTIONS_OF_MODULES: [&str; 9] = [
    "-p",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--load-plugins",
    "--plugin",
    "--plugins",
    "--reporter",
];
const LOADERS: [&str; 25] = [
    "ava", "behave", "c8", "coverage", "cucumber", "flake8", "jest", "mocha", "mypy", "node", "nodejs",
    "nose2", "nyc", "py.test", "pylint", "pypy", "pytest", "python", "rake", "rspec", "ruby", "tap",
    "ts-node", "tsx", "vitest",
];

/// Where such a module lies, in the directory of a check, and how its file ends.
const PLACES_OF_MODULES: [&str; 6] = ["", "src/", "lib/", "tests/", "test/", "spec/"];
const ENDS_OF_MODULES: [&str; 9] =
    [".py", "/__init__.py", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.ts", ".rb"];

/// Programs that read a file of variables of this name without being told.
const READERS_OF_VARIABLES: [&str; 8] =
    ["bun", "dotenv", "dotenvx", "env-cmd", "foreman", "heroku", "honcho", "pipenv"];

/// Where environments of Python usually have their programs.
const USUAL: [&str; 2] = [VENV, "venv/bin"];

/// Programs that run scripts of a manifest by their names.
const RUNNERS_OF_SCRIPTS: [&str; 9] = [
    "concurrently",
    "conc",
    "npm-run-all",
    "npm-run-all2",
    "nps",
    "run-p",
    "run-s",
    "start-server-and-test",
    "wireit",
];

/// Programs that run tasks of a project.
const RUNNERS_OF_TASKS: [&str; 9] =
    ["make", "gmake", "npm", "pnpm", "yarn", "just", "task", "tox", "pre-commit"];

/// Programs whose words are names of programs, and run none of them.
const INSTALLERS: [&str; 18] = [
    "apk", "apt", "apt-get", "brew", "conda", "dnf", "gem", "man", "nix-env", "pacman", "pip", "pipx",
    "type", "whereis", "which", "yum", "zypper", "git",
];

/// How the file of a program of JavaScript ends that is named without its end.
const ENDS_OF_PROGRAMS: [&str; 8] =
    ["", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.cjs", "/index.ts"];

/// Options that name a file to be obeyed.
const OPTIONS: [&str; 36] = [
    "-c",
    "-f",
    "-p",
    "-r",
    "-s",
    "--config",
    "--config-file",
    "--configFile",
    "--configuration",
    "--rcfile",
    "--rootdir",
    "--conf",
    "--cov-config",
    "--schema",
    "--expected",
    "--golden",
    "--reference",
    "--thresholds",
    "--settings",
    "--ini",
    "--file",
    "--makefile",
    "--justfile",
    "--taskfile",
    "--project",
    "--require",
    "--import",
    "--loader",
    "--runner",
    "--setupFiles",
    "--reporter",
    "--ignore-path",
    "--baseline",
    "--rules",
    "--style",
    "--bootstrap",
];

/// Finds the instructions of commands in a tree.
pub(super) fn instructions(commands: &[CheckCommand<'_>], tree: &dyn Tree) -> Instructions {
    let mut found = Instructions::default();
    for command in commands {
        let places = command.search.iter().cloned().map(|place| {
            if place.starts_with('/') { SearchPlace::Outside(place) } else { SearchPlace::Inside(place) }
        });
        let search = places.collect();
        let mut follow = Follow {
            command,
            tree,
            found: &mut found,
            seen: BTreeSet::new(),
            search,
            is_compared: false,
            products: BTreeSet::new(),
            left: MOST_COMMANDS,
            patterns: MOST_PATTERNS,
            functions: BTreeSet::new(),
            libraries: command.libraries.to_vec(),
        };
        follow.shell(command.shell);
        follow.text(command.text, command.directory, 0);
        follow.configured(command.directory);
        follow.told_by_variables();
    }
    found
}

/// Follows the command of a check.
struct Follow<'f> {
    command: &'f CheckCommand<'f>,
    tree: &'f dyn Tree,
    found: &'f mut Instructions,
    seen: BTreeSet<(String, String, Vec<SearchPlace>)>,
    /// Where programs are looked for.
    search: Vec<SearchPlace>,
    /// Whether what the command prints is compared with what it ought to be: then it is the work.
    is_compared: bool,
    /// Targets of the rules that are followed.
    products: BTreeSet<String>,
    /// How many commands may still be followed.
    left: usize,
    /// How many patterns of files may still be looked up.
    patterns: usize,
    /// Functions of the texts that are followed.
    functions: BTreeSet<String>,
    /// The directories of the tree in which interpreters look for modules.
    libraries: Vec<String>,
}

impl Follow<'_> {
    fn add(&mut self, path: String, part: InstructionPart) {
        // Whatever comes after is not looked for; the number only keeps a hostile tree from holding
        // up the run.
        if self.found.all.len() < MOST_INSTRUCTIONS {
            self.found.all.insert(Instruction { path, part, state: self.command.state.to_owned() });
        } else {
            self.cut();
        }
    }

    /// Notes that not all that the check runs could be followed.
    fn cut(&mut self) {
        let (path, part, state) = (String::new(), InstructionPart::AnyScript, self.command.state.to_owned());
        self.found.all.insert(Instruction { path, part, state });
    }

    /// Adds the program that reads the text of the command, and the files that it is told.
    fn shell(&mut self, words: &[String]) {
        let Some((program, told)) = words.split_first() else { return };
        self.called(program, self.command.directory, LOOKED_UP);
        for path in told.iter().filter_map(|word| resolved(self.command.directory, word)) {
            if self.tree.file(&path).is_some() {
                self.add(path, InstructionPart::Whole);
            }
        }
    }

    fn content(&self, path: &str) -> Option<String> {
        let file = self.tree.file(path)?;
        Some(String::from_utf8_lossy(&file.bytes).into_owned())
    }

    /// Follows a text of shell that is run in a directory. What it puts into `PATH` holds for it alone.
    fn text(&mut self, text: &str, directory: &str, depth: usize) {
        let around = self.search.clone();
        self.read_in(text, directory, depth);
        self.search = around;
    }

    /// Follows a text that is read into another one, which goes on with its `PATH`.
    fn read_in(&mut self, text: &str, directory: &str, depth: usize) {
        let place = (directory.to_owned(), text.to_owned(), self.search.clone());
        if (DEEPEST + 1..LOOKED_UP).contains(&depth) {
            self.cut();
        }
        // A script may call itself, and two may call each other.
        if depth > DEEPEST || !self.seen.insert(place) {
            return;
        }
        let text = &read_words::with_readers(&known_values::with_known_values(text, directory));
        let added = AddedPlaces::of_text(text);
        self.add_places(&added, directory);
        let libraries = added_libraries(text).into_iter().filter_map(|path| entered(directory, &path));
        let libraries: Vec<String> = libraries.filter(|place| !self.libraries.contains(place)).collect();
        self.libraries.extend(libraries);
        self.libraries.truncate(MOST);
        self.functions.extend(read_words::functions(text));
        for path in self.listed(&read_words::arrays(text), directory) {
            let path = format!("{FROM_ROOT}{path}");
            self.given(&[path.as_str()], directory, depth);
        }
        for file in read_words::of_loops(text) {
            self.words_of(&file, directory);
        }
        for options in named_modules::options_in_variables(text) {
            let options: Vec<&str> = options.split_whitespace().collect();
            self.options("pytest", &options, directory);
        }
        for script in read_words::here_scripts(text) {
            self.text(&script, directory, depth + 1);
        }
        let mut directory = directory.to_owned();
        let all = commands(text);
        // The directories outside of subshells and substitutions, each with where these end.
        let mut outside: Vec<(usize, String)> = Vec::new();
        for (index, command) in all.iter().enumerate() {
            let at = command.range.start;
            while let Some((_, before)) = outside.pop_if(|(end, _)| *end < at) {
                directory = before;
            }
            if let Some(end) = subshell_end(text, at) {
                outside.push((end, directory.clone()));
            }
            let Some(left) = self.left.checked_sub(1) else { return self.cut() };
            self.left = left;
            // Where a word leads that holds a variable or a template is not known before the run.
            let words: Vec<&str> = command.values().iter().map(|value| value.unwrap_or("\0")).collect();
            if let ["for", name, "in", of @ ..] = &words[..] {
                let body = loop_body(text, command.range.end);
                for turn in self.turns(name, of, body.unwrap_or_default(), &directory) {
                    self.text(&turn, &directory, depth);
                }
                continue;
            }
            // A `cd` to an unknown directory stays where it is: guessing another place would miss
            // everything below.
            if let ["cd" | "pushd", to] = words[..] {
                directory = entered(&directory, to).unwrap_or(directory);
                // A directory of `PATH` that is no whole path is one of the place where a program is started.
                self.add_places(&added, &directory);
                continue;
            }
            let around = std::mem::replace(&mut self.is_compared, is_compared(command, &all, text));
            if !self.is_compared {
                for file in read_words::of_command(command, &all, text) {
                    self.words_of(&file, &directory);
                }
            }
            self.folder_of_unknown(command, &words, text, &directory);
            self.words(&words, &directory, depth);
            self.inputs(command, &words, &directory, depth);
            if let Some(before) = index.checked_sub(1).map(|index| &all[index])
                && before.after == Some(ShellOperator::Pipe)
                && is_shell_alone(&words)
            {
                let before: Vec<&str> = before.values().iter().map(|value| value.unwrap_or("\0")).collect();
                for path in self.listed(&before, &directory) {
                    self.program(&path, &InstructionPart::Whole, true, &directory, depth);
                }
            }
            self.is_compared = around;
        }
    }

    /// Adds the folder of a script whose name is not known before the run: `sh ci/$f`.
    fn folder_of_unknown(&mut self, command: &SimpleCommand, words: &[&str], text: &str, directory: &str) {
        let (behind, _) = behind_wrappers(words);
        let Some(program) = behind.first() else { return };
        let name = plain_name(program);
        if !SHELLS.contains(&name) && !matches!(name, "." | "source" | "\0") {
            return;
        }
        let Some(found) = behind.iter().position(|word| *word == "\0") else { return };
        // Words behind the script are what it is given.
        if behind[..found].iter().skip(1).any(|word| !word.starts_with('-')) {
            return;
        }
        let word = command.words.get(words.len() - behind.len() + found);
        let Some(raw) = word.and_then(|word| text.get(word.range.clone())) else { return };
        let known = raw.trim_start_matches(['"', '\'']).split(['$', '`']).next().unwrap_or_default();
        let folder = known.rsplit_once('/').map(|(folder, _)| folder.trim_end_matches('"'));
        let folder = folder.filter(|folder| *folder != ".");
        if let Some(folder) = folder.and_then(|folder| resolved(directory, folder)) {
            self.add(folder, InstructionPart::Folder);
        }
    }

    /// Adds a file whose content becomes words or variables, there or not.
    fn words_of(&mut self, file: &str, directory: &str) {
        if let Some(path) = resolved(directory, file) {
            self.add(path, InstructionPart::Words);
        }
    }

    /// Adds directories to those in which programs are looked for, as a text that runs in a directory asks.
    fn add_places(&mut self, added: &AddedPlaces, directory: &str) {
        let placed = |places: &[AddedPlace]| -> Vec<SearchPlace> {
            let of = |place: &AddedPlace| match place {
                AddedPlace::Known(path) => {
                    entered(directory, path).map(SearchPlace::Asked).into_iter().collect::<Vec<_>>()
                }
                AddedPlace::Unknown(end) => {
                    // Where git ignores a directory, nothing but its usual name leads there.
                    let usual =
                        USUAL.iter().filter(|folder| end.is_empty() || folder.ends_with(end.as_str()));
                    let usual = usual.map(|folder| SearchPlace::Asked(joined(directory, folder)));
                    usual.chain([SearchPlace::Somewhere(end.clone())]).collect()
                }
            };
            places.iter().flat_map(of).collect()
        };
        let (front, behind) = (placed(&added.front), placed(&added.behind));
        self.search_first(front);
        let behind: Vec<SearchPlace> =
            behind.into_iter().filter(|place| !self.search.contains(place)).collect();
        self.search.extend(behind);
    }

    /// Puts places in front of those in which programs are looked for.
    fn search_first(&mut self, mut places: Vec<SearchPlace>) {
        // Each once, so that scripts that call each other come to an end.
        self.search.retain(|place| !places.contains(place));
        places.append(&mut self.search);
        self.search = places;
    }

    /// Returns what a loop over words does, a text for each word.
    fn turns(&mut self, name: &str, of: &[&str], body: &str, directory: &str) -> Vec<String> {
        let below = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let mut all = Vec::new();
        for word in of.iter().filter(|word| !word.contains('\0')).take(MOST) {
            if !word.contains(['*', '?']) {
                all.push((*word).to_owned());
                continue;
            }
            let found = self.matching(directory, word).into_iter();
            all.extend(found.map(|path| match path.strip_prefix(&below) {
                Some(inside) => inside.to_owned(),
                None => format!("{FROM_ROOT}{path}"),
            }));
        }
        all.truncate(MOST_TURNS);
        all.iter().map(|word| known_values::with_variable(body, name, word)).collect()
    }

    /// Follows a file that an interpreter reads from its input.
    fn inputs(&mut self, command: &SimpleCommand, words: &[&str], directory: &str, depth: usize) {
        let is_interpreter = words.first().is_some_and(|word| INTERPRETERS.contains(&plain_name(word)));
        let inputs =
            command.inputs.iter().filter(|_| is_interpreter).filter_map(|word| word.value.as_deref());
        for input in inputs.map(str::to_owned).collect::<Vec<_>>() {
            let is_shell = SHELLS.contains(&plain_name(words[0]));
            self.script(&input, is_shell, directory, depth);
        }
    }

    /// Follows the words of a command.
    fn words(&mut self, words: &[&str], directory: &str, depth: usize) {
        // `uv run` and the like are programs too, and may lie in the tree.
        let (behind, folders) = behind_wrappers(words);
        if let (Some(wrapper), true) = (words.first(), behind.len() < words.len()) {
            self.called(wrapper, directory, depth);
            self.read_by(wrapper, &words[1..], directory);
        }
        let words = behind;
        if folders.is_empty() {
            self.run(words, directory, depth);
        } else {
            self.searching(&folders, directory, |follow| follow.run(words, directory, depth));
        }
    }

    /// Follows something for which programs are looked for in folders first, of a directory and of those above it.
    fn searching(&mut self, folders: &[&str], directory: &str, follow: impl FnOnce(&mut Self)) {
        let mut places = Vec::new();
        for folder in folders {
            let mut at = Some(directory);
            while let Some(here) = at {
                places.push(joined(here, folder));
                at = match here {
                    "" => None,
                    _ => Some(here.rsplit_once('/').map_or("", |(above, _)| above)),
                };
            }
        }
        let around = self.search.clone();
        // In front of the rest: a wrapper looks into its own folder before `PATH`.
        self.search_first(places.into_iter().map(SearchPlace::Inside).collect());
        follow(self);
        self.search = around;
    }

    /// Adds what a program in front of another one reads: files of variables.
    fn read_by(&mut self, program: &str, arguments: &[&str], directory: &str) {
        let name = plain_name(program);
        for (at, word) in arguments.iter().enumerate() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (*word, arguments.get(at + 1).copied()),
            };
            let is_short = matches!(option, "-e" | "-f") && READERS_OF_VARIABLES.contains(&name);
            if let Some(value) = value.filter(|_| is_short || OPTIONS_OF_WORDS.contains(&option)) {
                self.words_of(value, directory);
            }
        }
        if READERS_OF_VARIABLES.contains(&name) {
            for file in [".env", ".env.local", ".env.test"] {
                self.words_of(file, directory);
            }
        }
        if name == "direnv" {
            let text = resolved(directory, ".envrc").and_then(|path| self.content(&path));
            let added = AddedPlaces::of_text(&text.unwrap_or_default());
            self.add_places(&added, directory);
        }
    }

    /// Adds a program by the word that it is called by, and follows it where it lies in the tree.
    fn called(&mut self, program: &str, directory: &str, depth: usize) {
        if program.contains('/') {
            if let Some(path) = resolved(directory, program) {
                self.program(&path, &InstructionPart::Whole, true, directory, depth);
            }
            return;
        }
        // The value of a template or a variable is not known before the run, so such a word is not looked for.
        if program.contains('\0') || BUILTINS.contains(&program) {
            return;
        }
        let there = |place: &SearchPlace| match place {
            SearchPlace::Outside(folder) => {
                Some(format!("{folder}/{program}")).filter(|path| self.tree.file(path).is_some())
            }
            SearchPlace::Inside(_) | SearchPlace::Asked(_) | SearchPlace::Somewhere(_) => None,
        };
        let outside = self.search.iter().position(|place| there(place).is_some());
        let elsewhere = outside.and_then(|at| there(&self.search[at]));
        // Directories behind the one where the program was found outside are never reached.
        let before = self.search[..outside.unwrap_or(self.search.len())].to_vec();
        for place in before {
            match place {
                SearchPlace::Outside(_) => {}
                SearchPlace::Inside(folder) => {
                    let part = InstructionPart::Program(elsewhere.clone());
                    self.program(&joined(&folder, program), &part, true, directory, depth);
                }
                SearchPlace::Asked(folder) => {
                    let part = InstructionPart::Asked(elsewhere.clone());
                    self.program(&joined(&folder, program), &part, true, directory, depth);
                }
                SearchPlace::Somewhere(end) => {
                    let end = joined(&end, program);
                    self.add(end.clone(), InstructionPart::Anywhere(elsewhere.clone()));
                    for path in self.matching("", &format!("**/{end}")) {
                        let part = InstructionPart::Asked(elsewhere.clone());
                        self.program(&path, &part, true, directory, depth);
                    }
                }
            }
        }
    }

    fn run(&mut self, words: &[&str], directory: &str, depth: usize) {
        let Some((program, arguments)) = words.split_first() else { return };
        // `find -exec` runs what stands behind it.
        let runs = |word: &&str| matches!(*word, "-exec" | "-execdir" | "-ok" | "-okdir");
        for behind in arguments.split(runs).skip(1) {
            // What is found is run where it stands for the program, or for the script of a shell.
            let script = match behind {
                [shell, rest @ ..] if SHELLS.contains(&plain_name(shell)) => {
                    rest.iter().find(|word| !word.starts_with('-'))
                }
                _ => behind.first(),
            };
            if script != Some(&"{}") {
                self.words(behind, directory, depth);
                continue;
            }
            for path in self.listed(words, directory) {
                self.program(&path, &InstructionPart::Whole, true, directory, depth);
            }
        }
        let name = plain_name(program);
        self.called(program, directory, depth);
        if program.contains('/') || SHELLS.contains(&name) || self.functions.contains(*program) {
            self.given(arguments, directory, depth);
        }
        self.compared_with(name, arguments, directory);
        let only_reads = only_reads(name, arguments);
        if !only_reads {
            self.options(name, arguments, directory);
            self.read_by(program, arguments, directory);
        }
        let is_followed = match name {
            // The program is read and not run, so it is the work.
            _ if only_reads => false,
            // It is run within the shell, and an `exit` in it ends the whole check.
            "source" | "." => {
                let file = arguments.first().and_then(|file| resolved(directory, file));
                if let Some(path) = file {
                    self.program(&path, &InstructionPart::Sourced, true, directory, depth);
                }
                true
            }
            // `bun test` is its own runner. Of any other word, a file of that name comes before a script of the manifest.
            "bun" if arguments.first() != Some(&"test") => {
                self.interpreted(name, arguments, directory, depth)
                    || self.scripts(name, arguments, directory, depth)
            }
            // `node --run test` runs a script of the manifest.
            "node" if arguments.contains(&"--run") => {
                let behind: Vec<&str> =
                    arguments.iter().copied().skip_while(|word| *word != "--run").skip(1).collect();
                self.scripts("npm", &behind, directory, depth)
            }
            _ if RUNNERS_OF_SCRIPTS.contains(&name) => self.named_scripts(arguments, directory, depth),
            _ if INTERPRETERS.contains(&name) => self.interpreted(name, arguments, directory, depth),
            // `uv run x.py` runs a file beside it, which no directory of `PATH` has.
            _ if !program.contains('/') && extension(program) == Some("py") => {
                self.script(program, false, directory, depth)
            }
            "make" | "gmake" => self.make(arguments, directory, depth),
            "just" => self.just(arguments, directory, depth),
            "run-parts" => self.parts(arguments, directory, depth),
            "coverage" if arguments.first() == Some(&"run") => {
                self.interpreted("python", &measured(&arguments[1..]), directory, depth)
            }
            "task" => {
                let files = ["Taskfile.yml", "Taskfile.yaml", "taskfile.yml"];
                self.recipes(&files, Some("default"), arguments, directory, depth)
            }
            "npm" | "pnpm" | "yarn" => self.scripts(name, arguments, directory, depth),
            "turbo" | "lerna" => {
                let names = arguments.iter().filter(|word| !word.starts_with('-') && **word != "run");
                // Each is followed, whatever the one before came to.
                names.filter(|name| self.scripts_of_all(name, depth)).count() > 0
            }
            "composer" => self.composer(arguments, directory, depth),
            "tox" => self.tox(directory, depth),
            "pre-commit" | "prek" => self.hooks(directory, depth),
            "cargo" => self.cargo(arguments, directory, depth),
            "go" => self.go(arguments, directory),
            "ctest" => self.ctest(arguments, directory),
            _ => false,
        };
        if !is_followed {
            self.behind_unknown(program, arguments, directory, depth);
            // Where a script lies is known to it alone.
            let known = arguments.iter().map(|word| if word.starts_with(FROM_ROOT) { "\0" } else { *word });
            let leaf = std::iter::once(name).chain(known);
            self.found.leaves.push((self.command.state.to_owned(), leaf.map(str::to_owned).collect()));
        }
    }

    /// Follows what a program that is not known may run of its words: an interpreter with a file of the tree behind it, or what runs
    /// tasks, and within a text the former. No list of programs that run others can be whole.
    fn behind_unknown(&mut self, program: &str, arguments: &[&str], directory: &str, depth: usize) {
        let name = plain_name(program);
        // One of the tree may compare what it runs with what it ought to be, which is the work then.
        let is_of_tree =
            (program.contains('/') && !program.starts_with('/')) || self.functions.contains(program);
        let is_known = is_of_tree
            || BUILTINS.contains(&program)
            || INSTALLERS.contains(&name)
            || CATALOG.lookers.iter().any(|looker| looker == name);
        if is_known || depth > DEEPEST {
            return;
        }
        for (at, word) in arguments.iter().enumerate().take(MOST) {
            let behind = &arguments[at + 1..];
            if RUNNERS_OF_TASKS.contains(&system_name(word)) || self.runs_file(word, behind, directory) {
                return self.words(&arguments[at..], directory, depth + 1);
            }
            if !word.contains(char::is_whitespace) {
                continue;
            }
            let is_of_word = |sign: char| sign.is_alphanumeric() || "/._-+@~%:=,".contains(sign);
            let tokens = word.split(|sign| !is_of_word(sign)).filter(|token| !token.is_empty());
            let tokens: Vec<&str> = tokens.take(MOST).collect();
            for (at, token) in tokens.iter().enumerate() {
                if self.runs_file(token, &tokens[at + 1..], directory) {
                    self.words(&tokens[at..], directory, depth + 1);
                }
            }
        }
    }

    /// Tells whether a word is an interpreter that the words behind it tell to run something of the tree, or a text.
    fn runs_file(&self, word: &str, behind: &[&str], directory: &str) -> bool {
        let name = plain_name(system_name(word));
        if word.contains('/') != word.starts_with('/') || !INTERPRETERS.contains(&name) {
            return false;
        }
        let file = behind.iter().find(|word| !word.starts_with('-'));
        let is_shell = SHELLS.contains(&name);
        let is_text = |word: &&str| {
            let is_option = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
            if is_shell { is_option } else { *word == "-m" }
        };
        behind.first().is_some_and(is_text)
            || file.is_some_and(|file| self.found_by(name, file, directory).is_some())
    }

    /// Adds what something is compared with, where its name says so, and what git is told of files.
    fn compared_with(&mut self, name: &str, arguments: &[&str], directory: &str) {
        if matches!(name, "cmp" | "colordiff" | "diff") {
            for word in arguments.iter().filter(|word| !word.starts_with('-') && is_expectation(word)) {
                let Some(path) = resolved(directory, word) else { continue };
                let is_file = self.tree.file(&path).is_some();
                self.add(path, if is_file { InstructionPart::Whole } else { InstructionPart::Folder });
            }
        }
        let asks = |word: &&str| matches!(*word, "archive" | "check-attr" | "diff" | "grep" | "ls-files");
        if name == "git" && arguments.iter().any(asks) {
            for folder in ["", directory] {
                self.add(joined(folder, ".gitattributes"), InstructionPart::Shadow);
            }
            // What a checkout says of files for itself comes before that.
            self.add(".git/info/attributes".to_owned(), InstructionPart::Shadow);
        }
    }

    /// Adds the scripts that a script is given and that are there to check: it may run them.
    fn given(&mut self, arguments: &[&str], directory: &str, depth: usize) {
        for path in self.listed(arguments, directory) {
            let is_script = matches!(extension(&path), Some("sh" | "bash"))
                || self.content(&path).is_some_and(|text| is_shell_script(&text));
            if is_script && is_named_as_a_check(&path) {
                self.program(&path, &InstructionPart::Whole, true, directory, depth);
            }
        }
    }

    /// Returns the files of the tree that a command is given, or that `find` finds by their names.
    fn listed(&mut self, words: &[&str], directory: &str) -> Vec<String> {
        if let [program, arguments @ ..] = words
            && plain_name(program) == "find"
        {
            let places = arguments.iter().take_while(|word| !word.starts_with(['-', '(', '!'])).copied();
            let places: Vec<&str> = places.collect();
            let places = if places.is_empty() { vec!["."] } else { places };
            let name =
                arguments.iter().position(|word| *word == "-name").and_then(|at| arguments.get(at + 1));
            let name = name.copied().unwrap_or("*");
            return places
                .iter()
                .flat_map(|place| self.matching(directory, &format!("{place}/**/{name}")))
                .take(MOST)
                .collect();
        }
        let mut all = Vec::new();
        for word in words.iter().filter(|word| !word.starts_with('-') && !word.contains('\0')).take(MOST) {
            if word.contains(['*', '?']) {
                all.extend(self.matching(directory, word));
            } else if let Some(path) = resolved(directory, word).filter(|path| self.tree.file(path).is_some())
            {
                all.push(path);
            }
        }
        all.truncate(MOST);
        all
    }

    /// Adds the files that options name.
    fn options(&mut self, name: &str, arguments: &[&str], directory: &str) {
        for (at, word) in arguments.iter().enumerate() {
            if LOADERS.contains(&name) {
                self.option_of_modules(name, word, arguments.get(at + 1).copied(), directory);
            }
            // A list of words, as `pytest @tests.txt` reads it.
            let list =
                word.strip_prefix('@').filter(|_| INTERPRETERS.contains(&name) || LOADERS.contains(&name));
            if let Some(path) = list.and_then(|file| resolved(directory, file))
                && self.tree.file(&path).is_some()
            {
                self.add(path, InstructionPart::Words);
            }
            let value = match word.split_once('=') {
                Some((option, value)) if OPTIONS.contains(&option) => Some(value),
                _ if OPTIONS.contains(word) => arguments.get(at + 1).copied(),
                _ => None,
            };
            let Some(path) = value.and_then(|value| resolved(directory, value)) else { continue };
            if self.tree.file(&path).is_some() {
                self.add(path, InstructionPart::Whole);
            }
        }
    }

    /// Adds the modules that an option names: `-p NAME`, `-pNAME`, `--require=NAME`.
    fn option_of_modules(&mut self, name: &str, word: &str, next: Option<&str>, directory: &str) {
        let within = ["-p", "-r"].iter().find_map(|option| word.strip_prefix(option));
        let value = match word.split_once('=') {
            Some((option, value)) if OPTIONS_OF_MODULES.contains(&option) => Some(value),
            _ if OPTIONS_OF_MODULES.contains(&word) => next,
            _ => within.filter(|_| !word.starts_with("--")),
        };
        for module in value.into_iter().flat_map(|value| value.split(',')).take(MOST) {
            // A plugin of pytest that is new in the tree takes the place of the one that is installed.
            self.named_module(module, matches!(name, "pytest" | "py.test"), directory);
        }
    }

    /// Adds a module that is loaded because it is named, where it lies in the tree, and where a new one would.
    fn named_module(&mut self, module: &str, takes_new: bool, directory: &str) {
        // In a package that brings plugins, they are the work.
        if module.is_empty() || self.brings_plugins(directory) {
            return;
        }
        let as_path = module.replace('.', "/");
        let stem = if module.contains('/') { module } else { as_path.as_str() };
        let is_name = module.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '_' | '.'));
        let libraries = self.libraries.iter().map(|folder| in_library(folder));
        let places: Vec<String> =
            PLACES_OF_MODULES.iter().map(|place| (*place).to_owned()).chain(libraries).collect();
        for place in places {
            for end in ENDS_OF_MODULES {
                let Some(path) = resolved(directory, &format!("{place}{stem}{end}")) else { continue };
                if self.tree.file(&path).is_some() {
                    self.add(path, InstructionPart::Whole);
                } else if takes_new && is_name && place.is_empty() && matches!(end, ".py" | "/__init__.py") {
                    self.add(path, InstructionPart::Shadow);
                }
            }
        }
    }

    /// Adds the files that variables of the environment name to be loaded first.
    fn told_by_variables(&mut self) {
        let CheckCommand { variables, directory, .. } = *self.command;
        for (name, value) in variables {
            match name.as_str() {
                "BASH_ENV" | "ENV" | "LD_PRELOAD" | "PYTHONSTARTUP" => {
                    // `ENV=test` says where something runs.
                    let is_path = |word: &&str| word.contains(['/', '.']);
                    for word in value.split([' ', ':']).filter(is_path).take(MOST) {
                        if let Some(path) = resolved(directory, word) {
                            self.program(
                                &path,
                                &InstructionPart::Sourced,
                                name.ends_with("ENV"),
                                directory,
                                0,
                            );
                        }
                    }
                }
                _ => {
                    let value = named_modules::as_options(name, value);
                    let words: Vec<&str> = value.split_whitespace().take(MOST).collect();
                    self.options("node", &words, directory);
                }
            }
        }
    }

    /// Tells whether the package of a directory names plugins of pytest among what it is.
    fn brings_plugins(&self, directory: &str) -> bool {
        let mut places = [directory, ""]
            .into_iter()
            .flat_map(|folder| ["pyproject.toml", "setup.cfg", "setup.py"].map(|name| joined(folder, name)));
        places.any(|path| self.content(&path).is_some_and(|text| text.contains("pytest11")))
    }

    /// Adds the modules and files that the configuration in a directory names to be loaded.
    fn configured(&mut self, directory: &str) {
        for name in named_modules::CONFIGURATIONS {
            let Some(path) = resolved(directory, name) else { continue };
            let Some(text) = self.content(&path) else { continue };
            for module in named_modules::named(&path, &text) {
                self.named_module(&module, false, directory);
                let file = resolved(directory, &module).filter(|path| is_code(path));
                if let Some(path) = file.filter(|path| self.tree.file(path).is_some()) {
                    self.add(path, InstructionPart::Whole);
                }
            }
        }
    }

    /// Adds a program of the tree, and follows it where a shell reads it. A link is followed to where it leads.
    fn program(&mut self, path: &str, part: &InstructionPart, is_shell: bool, directory: &str, depth: usize) {
        let mut path = path.to_owned();
        // Its output is compared, so it is the work, unless its path says that it checks.
        if self.is_compared && *part == InstructionPart::Whole && !is_named_as_a_check(&path) {
            return;
        }
        // Links are followed a few times, as links can go in a circle.
        for _ in 0..MOST_LINKS {
            let is_product = *part == InstructionPart::Whole && self.products.contains(&path);
            self.add(path.clone(), if is_product { InstructionPart::Product } else { part.clone() });
            let Some(file) = self.tree.file(&path) else { return };
            if file.mode != crate::base::file_mode::FileMode::Link {
                break;
            }
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            let Some(target) = resolved(&folder, &String::from_utf8_lossy(&file.bytes)) else { return };
            path = target;
        }
        let Some(text) = self.content(&path) else { return };
        // What the first line names of the tree reads the script.
        if let Some(line) = first_line(&text).strip_prefix("#!").filter(|_| depth <= DEEPEST) {
            let words: Vec<&str> = line.split_whitespace().take(MOST).collect();
            let is_of_tree =
                |word: &&str| resolved(directory, word).is_some_and(|path| self.tree.file(&path).is_some());
            if words.iter().any(is_of_tree) {
                self.words(&words, directory, depth + 1);
            }
        }
        // Without a first line that says otherwise, the shell reads a program itself.
        let is_named = !text.starts_with("#!") || is_shell_script(&text);
        if is_shell && is_named {
            let text = known_values::filled_in(&text, &path);
            if matches!(part, InstructionPart::Sourced) {
                self.read_in(&text, directory, depth + 1);
                // Also where it was followed before.
                let added = AddedPlaces::of_text(&known_values::with_known_values(&text, directory));
                self.add_places(&added, directory);
            } else {
                self.text(&text, directory, depth + 1);
            }
        }
    }

    /// Adds a script and follows it; tells whether it is there.
    fn script(&mut self, file: &str, is_shell: bool, directory: &str, depth: usize) -> bool {
        // The sign of `xargs` and `find` for what they have found is no file.
        let path = resolved(directory, file).filter(|_| file != "{}");
        let Some(path) = path else { return false };
        self.program(&path, &InstructionPart::Whole, is_shell, directory, depth);
        self.tree.file(&path).is_some()
    }

    /// Returns the places in which an interpreter looks for what it is told to run, in order.
    fn places_of_program(&self, name: &str, file: &str, directory: &str) -> Vec<String> {
        let ends: &[&str] = match name {
            "python" | "pypy" => &["", "/__main__.py"],
            "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" => &ENDS_OF_PROGRAMS,
            _ => &[""],
        };
        let main = resolved(directory, file)
            .and_then(|folder| self.manifest(&folder, "package.json"))
            .filter(|_| ends.len() > 2)
            .and_then(|(_, package)| Some(format!("/{}", package["main"].as_str()?)));
        let ends = ends.iter().copied().map(str::to_owned).chain(main);
        ends.filter_map(|end| resolved(directory, &format!("{}{end}", file.trim_end_matches('/')))).collect()
    }

    /// Returns where an interpreter finds what it is told to run, if that lies in the tree.
    fn found_by(&self, name: &str, file: &str, directory: &str) -> Option<String> {
        let mut places = self.places_of_program(name, file, directory).into_iter();
        places.find(|path| self.tree.file(path).is_some())
    }

    /// Adds what an interpreter is told to run and follows it; tells whether it is there.
    fn program_of(&mut self, name: &str, file: &str, directory: &str, depth: usize) -> bool {
        let Some(found) = self.found_by(name, file, directory) else {
            return self.script(file, SHELLS.contains(&name), directory, depth);
        };
        for path in self.places_of_program(name, file, directory) {
            if path == found {
                break;
            }
            // A new file there is found first.
            self.add(path, InstructionPart::Shadow);
        }
        self.program(&found, &InstructionPart::Whole, SHELLS.contains(&name), directory, depth);
        true
    }

    fn interpreted(&mut self, name: &str, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let is_shell = SHELLS.contains(&name);
        let mut words = arguments.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "-m" if !is_shell => {
                    let Some(module) = words.next() else { return false };
                    return self.module(module, arguments, directory, depth);
                }
                // `-c` and its kin, such as `-ec`: the text follows.
                _ if is_shell && word.starts_with('-') && !word.starts_with("--") && word.ends_with('c') => {
                    let Some(text) = words.next() else { return false };
                    self.text(text, directory, depth + 1);
                    return true;
                }
                // A program within the words has no file.
                "-e" | "-c" | "--eval" if !is_shell => return false,
                // `-o pipefail`: the option takes a word.
                _ if is_shell && word.starts_with('-') && word.ends_with('o') => drop(words.next()),
                "-O" | "-W" | "-X" | "-r" | "--require" | "--import" | "-I" => drop(words.next()),
                "run" if matches!(name, "deno" | "bun") => {}
                _ if word.starts_with('-') => {}
                _ => return self.program_of(name, word, directory, depth),
            }
        }
        false
    }

    /// Adds a module of Python that lies in the tree. Any other one is a tool.
    fn module(&mut self, module: &str, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let path = module.replace('.', "/");
        // `-m` runs the `__main__` of a package, or a module; the `__init__` of a package runs before both.
        let ends = ["/__main__.py", ".py", "/__init__.py"];
        let folders =
            std::iter::once(String::new()).chain(self.libraries.iter().map(|folder| in_library(folder)));
        let places = folders.flat_map(|folder| ends.map(|end| format!("{folder}{path}{end}")));
        let mut is_there = false;
        for place in places.collect::<Vec<_>>() {
            if let Some(place) = resolved(directory, &place) {
                is_there |= self.tree.file(&place).is_some();
                self.add(place, InstructionPart::Shadow);
            }
        }
        // Only a hostile text has modules that run modules without end.
        if !is_there && depth <= DEEPEST {
            let behind = arguments.iter().skip_while(|word| **word != module).copied().collect::<Vec<_>>();
            // A tool behind `-m` is looked up, and not followed into other scripts.
            self.words(&behind, directory, depth + LOOKED_UP);
        }
        true
    }

    fn make(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let (mut file, mut directory, mut targets) = (None, directory.to_owned(), Vec::new());
        let mut words = arguments.iter().copied().peekable();
        while let Some(word) = words.next() {
            match word {
                "-f" | "--file" | "--makefile" => file = words.next().map(str::to_owned),
                _ if are_flags_before(word, 'f') => file = words.next().map(str::to_owned),
                "-C" | "--directory" => {
                    directory = words.next().and_then(|to| entered(&directory, to)).unwrap_or(directory);
                }
                _ if are_flags_before(word, 'C') => {
                    directory = words.next().and_then(|to| entered(&directory, to)).unwrap_or(directory);
                }
                // `-j 4`, but also `-j` alone with a target behind it.
                "-j" | "-l" => drop(words.next_if(|next| next.starts_with(|c: char| c.is_ascii_digit()))),
                "-o" | "-W" | "-I" => drop(words.next()),
                _ if word.starts_with('-') => {
                    if let Some(name) = value_within(word, &["-f", "--file", "--makefile"]) {
                        file = Some(name.to_owned());
                    } else if let Some(to) = value_within(word, &["-C", "--directory"]) {
                        directory = entered(&directory, to).unwrap_or(directory);
                    }
                }
                _ if word.contains('=') || word == "\0" => {}
                _ => targets.push(word.to_owned()),
            }
        }
        let names = match &file {
            Some(name) => vec![name.as_str()],
            // The order in which GNU make looks for its file.
            None => vec!["GNUmakefile", "makefile", "Makefile"],
        };
        // All are added: a `GNUmakefile` that is new takes the place of the `Makefile`.
        for name in names {
            let Some(path) = resolved(&directory, name) else { continue };
            let Some(text) = self.content(&path) else {
                // One that takes the place of the one that is there.
                self.add(path, InstructionPart::Shadow);
                continue;
            };
            let mut included = BTreeSet::new();
            let parsed = Makefile::parse(&self.with_included(&text, &directory, &mut included));
            let needed = parsed.needed(&targets);
            let all: BTreeSet<&String> =
                needed.iter().flat_map(|rule| &rule.targets).chain(&targets).collect();
            let mut all: Vec<String> = all.into_iter().cloned().collect();
            // Not the whole file: a rule that no check needs is the work.
            if included.is_empty() {
                self.add(path, InstructionPart::Targets(targets.clone()));
            } else {
                // What one of several files sets, another may read.
                all.extend(parsed.keys(&needed));
                self.add(path, InstructionPart::Targets(all.clone()));
            }
            for path in included {
                self.add(path, InstructionPart::Targets(all.clone()));
            }
            // A rule without a recipe makes nothing.
            let makes = needed.iter().filter(|rule| !rule.recipe.is_empty()).flat_map(|rule| &rule.targets);
            self.products.extend(makes.filter_map(|target| resolved(&directory, target)));
            let around = self.search.clone();
            for value in parsed.search_paths(&needed) {
                let value = known_values::of_make(&value, &directory);
                self.add_places(&AddedPlaces::of_value(&value), &directory);
            }
            for target in parsed.made(&needed).iter().take(MOST) {
                if let Some(path) = resolved(&directory, target) {
                    self.add(path, InstructionPart::Target);
                }
            }
            for line in parsed.recipes(&targets).into_iter().chain(parsed.defined_recipes()) {
                let line = known_values::of_make(&parsed.filled_in(&line), &directory);
                // Signs in front of a recipe's line are for make: not to print it, and not to mind
                // its failure.
                let line = line.trim_start_matches(['@', '-', '+']);
                // `$$` is a dollar of the shell, `$(…)` a text of make's own.
                let line = line
                    .replace("$$", "\u{1}")
                    .replace("$(MAKE)", "make")
                    .replace("${MAKE}", "make")
                    // What make has a shell print becomes words of the line.
                    .replace("$(shell ", "\u{1}(")
                    .replace('$', "_")
                    .replace('\u{1}', "$");
                self.text(&line, &directory, depth + 1);
            }
            self.search = around;
            return true;
        }
        false
    }

    /// Returns a Makefile with those that it includes in their places, and collects these, there or not.
    fn with_included(&mut self, text: &str, directory: &str, included: &mut BTreeSet<String>) -> String {
        let mut whole = String::new();
        for line in text.lines() {
            let mut paths = Vec::new();
            for path in makefile::included(line) {
                if !path.contains(['*', '?']) {
                    paths.extend(resolved(directory, path));
                    continue;
                }
                paths.extend(self.matching(directory, path));
                // A new file there is read as well.
                let folder = path.rsplit_once('/').and_then(|(folder, _)| resolved(directory, folder));
                if let Some(folder) = folder {
                    self.add(folder, InstructionPart::Folder);
                }
            }
            if paths.is_empty() {
                whole.extend([line, "\n"]);
            }
            for path in paths {
                // A file may include itself.
                let is_new = included.len() < MOST && included.insert(path.clone());
                if let Some(text) = self.content(&path).filter(|_| is_new) {
                    whole.push_str(&self.with_included(&text, directory, included));
                }
            }
        }
        whole
    }

    /// Follows recipes of `just`, of the file that it is told or else of the one that it finds.
    fn just(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let (mut file, mut directory, mut names) = (None, directory.to_owned(), Vec::new());
        let mut words = arguments.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "-f" | "--justfile" => file = words.next().map(str::to_owned),
                "-d" | "--working-directory" => {
                    directory = words.next().and_then(|to| entered(&directory, to)).unwrap_or(directory);
                }
                _ if word.starts_with('-') => {
                    if let Some(name) = value_within(word, &["-f", "--justfile"]) {
                        file = Some(name.to_owned());
                    }
                }
                _ => names.push(word),
            }
        }
        match &file {
            Some(file) => self.recipes(&[file.as_str()], None, &names, &directory, depth),
            None => self.recipes(&["justfile", "Justfile", ".justfile"], None, &names, &directory, depth),
        }
    }

    /// Adds the programs of a folder that are run one after another.
    fn parts(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let folder = arguments.iter().rev().find(|word| !word.starts_with('-'));
        let Some(folder) = folder.and_then(|folder| resolved(directory, folder)) else { return false };
        let pattern = format!("{folder}/*");
        self.add(folder, InstructionPart::Folder);
        for path in self.matching("", &pattern) {
            self.program(&path, &InstructionPart::Whole, true, directory, depth);
        }
        true
    }

    /// Returns the files that a pattern of a shell or of make means, in order.
    fn matching(&mut self, directory: &str, pattern: &str) -> Vec<String> {
        // Each looks through all files, and a hostile text has no end of them.
        let Some(left) = self.patterns.checked_sub(1) else { return Vec::new() };
        self.patterns = left;
        // A path with a sign for any name in it would be refused.
        let marked = pattern.replace('*', "\u{1}");
        let Some(wanted) = resolved(directory, &marked).map(|path| path.replace('\u{1}', "*")) else {
            return Vec::new();
        };
        let Ok(glob) = GlobBuilder::new(&wanted).literal_separator(true).build() else { return Vec::new() };
        let glob = glob.compile_matcher();
        let mut all: Vec<String> = self.tree.seen().into_iter().filter(|path| glob.is_match(path)).collect();
        all.sort();
        all.truncate(MOST);
        all
    }

    /// Follows recipes by name, in a file of `just` or `task`: the lines below the one that names it, and the recipes that it
    /// needs. Where no recipe is named, the one of this name is made, or else the first.
    fn recipes(
        &mut self,
        files: &[&str],
        default: Option<&str>,
        arguments: &[&str],
        directory: &str,
        depth: usize,
    ) -> bool {
        let paths = files.iter().filter_map(|file| resolved(directory, file));
        let Some(path) = paths.into_iter().find(|path| self.tree.file(path).is_some()) else { return false };
        let text = self.content(&path).unwrap_or_default();
        self.add(path, InstructionPart::Whole);
        let around = self.search.clone();
        let added = AddedPlaces::of_tasks(&text, &known_values::from_root(directory));
        self.add_places(&added, directory);
        for file in read_words::of_tasks(&text) {
            self.words_of(&file, directory);
        }
        let mut waiting: Vec<&str> =
            arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
        if waiting.is_empty() {
            waiting.extend(default.or_else(|| first_recipe(&text)));
        }
        let mut known = BTreeSet::new();
        while let Some(name) = waiting.pop() {
            // Recipes may need each other, and a hostile file has no end of them.
            if known.len() == MOST || !known.insert(name) {
                continue;
            }
            let lines = below(&text, name);
            waiting.extend(needed_recipes(&text, name, &lines));
            for line in lines {
                let command = line.trim().trim_start_matches("- ").trim_start_matches("cmd:");
                let command = command.trim().trim_matches(['"', '\'']).trim_start_matches(['@', '-']);
                self.text(command, directory, depth + 1);
            }
        }
        self.search = around;
        true
    }

    /// Follows scripts of a `package.json`, with those that run before and behind them.
    fn scripts(&mut self, manager: &str, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let mut directory = directory.to_owned();
        let (mut names, mut is_of_all) = (Vec::new(), false);
        let mut words = arguments.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--prefix" | "-C" | "--cwd" | "--dir" => {
                    directory = words.next().and_then(|to| entered(&directory, to)).unwrap_or(directory);
                }
                // For pnpm the root of the workspace, without a word behind it.
                "-w" if manager != "npm" => {}
                "-w" | "--workspace" | "-F" | "--filter" => {
                    let package = words.next().and_then(|to| self.package(&directory, to));
                    is_of_all |= package.is_none();
                    directory = package.unwrap_or(directory);
                }
                "-r" | "--recursive" | "-ws" | "--workspaces" => is_of_all = true,
                "workspace" if manager == "yarn" && names.is_empty() => {
                    is_of_all = words.next().is_some();
                }
                "workspaces" | "foreach" if manager == "yarn" && names.is_empty() => is_of_all = true,
                "--" => break,
                // `npm run test` and `npm test` are the same.
                "run" | "run-script" => {}
                _ if word.starts_with('-') => {
                    if let Some(to) = value_within(word, &["--prefix", "-C", "--cwd", "--dir"]) {
                        directory = entered(&directory, to).unwrap_or(directory);
                    } else if let Some(to) = value_within(word, &["-w", "--workspace", "-F", "--filter"]) {
                        let package = self.package(&directory, to.trim_start_matches('='));
                        is_of_all |= package.is_none();
                        directory = package.unwrap_or(directory);
                    }
                }
                "t" | "tst" => names.push("test"),
                _ => names.push(word),
            }
        }
        let Some(name) = names.first() else { return false };
        if is_of_all {
            return self.scripts_of_all(name, depth);
        }
        if self.script_of(name, &directory, depth) {
            return true;
        }
        // What is not a script is a program of a dependency, but for npm.
        let is_there = self.manifest(&directory, "package.json").is_some();
        let is_program = is_there && manager != "npm" && depth < DEEPEST;
        let behind: Vec<&str> = arguments.iter().copied().skip_while(|word| word != name).collect();
        if is_program {
            self.searching(&[NODE_BIN], &directory, |follow| follow.run(&behind, &directory, depth + 1));
        }
        is_program
    }

    /// Follows the scripts of a name in all packages of the repository: which are meant is known to the package manager alone.
    fn scripts_of_all(&mut self, name: &str, depth: usize) -> bool {
        let is_manifest = |path: &String| {
            path.rsplit('/').next() == Some("package.json") && !path.contains("node_modules/")
        };
        // A NUL is in no text that is followed.
        if depth > DEEPEST || !self.seen.insert((String::new(), format!("\0{name}"), Vec::new())) {
            return true;
        }
        let manifests: Vec<String> = self.tree.seen().into_iter().filter(is_manifest).take(MOST).collect();
        let directories = manifests.iter().map(|path| path.rsplit_once('/').map_or("", |(above, _)| above));
        let mut is_there = false;
        for directory in directories {
            is_there |= self.script_of(name, directory, depth);
        }
        is_there
    }

    /// Follows a script of the package in a directory; tells whether it has one of this name.
    fn script_of(&mut self, name: &str, directory: &str, depth: usize) -> bool {
        let Some((path, package)) = self.manifest(directory, "package.json") else { return false };
        if package["scripts"][name].as_str().is_none() {
            return false;
        }
        // npm runs `pretest` and `posttest` around `test`.
        let names = [format!("pre{name}"), name.to_owned(), format!("post{name}")];
        let scripts: Vec<&str> = names.iter().filter_map(|name| package["scripts"][name].as_str()).collect();
        let mut keys: Vec<String> = names.iter().map(|name| format!("scripts.{name}")).collect();
        // Scripts read the configuration of their manifest by variables.
        keys.extend(
            scripts.iter().any(|script| script.contains("npm_package_config")).then(|| "config".to_owned()),
        );
        let is_wireit = scripts.iter().any(|script| script.trim() == "wireit");
        keys.extend(is_wireit.then(|| format!("wireit.{name}")));
        self.add(path.clone(), InstructionPart::Keys(keys));
        // Two scripts may name each other. A NUL is in no text that is followed.
        if depth > DEEPEST || !self.seen.insert((path, format!("\0script {name}"), self.search.clone())) {
            return true;
        }
        for script in &scripts {
            self.searching(&[NODE_BIN], directory, |follow| follow.text(script, directory, depth + 1));
        }
        let others = scripts.iter().flat_map(|script| scripts_among(script, &package));
        for other in others.take(MOST).filter(|other| other != name) {
            self.script_of(&other, directory, depth + 1);
        }
        if is_wireit {
            let task = &package["wireit"][name];
            if let Some(command) = task["command"].as_str() {
                self.searching(&[NODE_BIN], directory, |follow| follow.text(command, directory, depth + 1));
            }
            let needs = task["dependencies"].as_array().into_iter().flatten();
            let needs = needs.filter_map(|need| need.as_str().or_else(|| need["script"].as_str()));
            for need in needs.take(MOST) {
                self.script_of(need, directory, depth + 1);
            }
        }
        true
    }

    /// Follows scripts of the manifest in a directory that a program is told to run, and texts among its words.
    fn named_scripts(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
        if let Some(path) = resolved(directory, "package-scripts.js")
            && self.tree.file(&path).is_some()
        {
            self.add(path, InstructionPart::Whole);
        }
        for text in arguments.iter().filter(|word| word.contains(' ')).take(MOST) {
            self.text(text, directory, depth + 1);
        }
        let Some((_, package)) = self.manifest(directory, "package.json") else { return false };
        let names: Vec<String> =
            arguments.iter().flat_map(|word| scripts_named(word, &package)).take(MOST).collect();
        for name in &names {
            self.script_of(name, directory, depth + 1);
        }
        !names.is_empty()
    }

    /// Returns the directory of a package that is named by its path, and not by its name.
    fn package(&self, directory: &str, path: &str) -> Option<String> {
        let package = entered(directory, path)?;
        self.tree.file(&joined(&package, "package.json")).map(|_| package)
    }

    fn manifest(&self, directory: &str, name: &str) -> Option<(String, Value)> {
        let path = resolved(directory, name)?;
        let value = serde_json::from_str(&self.content(&path)?).ok()?;
        Some((path, value))
    }

    /// Follows a script of a `composer.json`, and those that it calls by name.
    fn composer(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let is_name = |word: &&&str| !word.starts_with('-') && !matches!(**word, "run" | "run-script");
        let Some(name) = arguments.iter().find(is_name) else { return false };
        let Some((_, package)) = self.manifest(directory, "composer.json") else { return false };
        if package["scripts"][name].is_null() {
            return false;
        }
        let folder = package["config"]["bin-dir"].as_str().unwrap_or(COMPOSER_BIN);
        self.searching(&[folder], directory, |follow| {
            follow.commands_of_composer(&package["scripts"], name, directory, depth);
        });
        true
    }

    fn commands_of_composer(&mut self, scripts: &Value, name: &str, directory: &str, depth: usize) {
        let script = &scripts[name];
        let lines = script.as_array().map_or(std::slice::from_ref(script), Vec::as_slice);
        for line in lines.iter().filter_map(Value::as_str).filter(|_| depth < DEEPEST) {
            // In composer, `@name` calls another script.
            match line.strip_prefix('@') {
                Some(called) if !scripts[called].is_null() => {
                    self.commands_of_composer(scripts, called, directory, depth + 1);
                }
                Some(command) => self.text(command, directory, depth + 1),
                None => self.text(line, directory, depth + 1),
            }
        }
    }

    /// Follows the commands of tox, in whichever file they are.
    fn tox(&mut self, directory: &str, depth: usize) -> bool {
        let mut is_there = false;
        for file in ["tox.ini", "setup.cfg"] {
            for key in ["commands", "commands_pre", "commands_post"] {
                is_there |= self.lines_after(file, key, directory, depth);
            }
        }
        for file in ["tox.toml", "pyproject.toml"] {
            let text = resolved(directory, file).and_then(|path| self.content(&path));
            let Some(table) = text.and_then(|text| toml::from_str::<toml::Table>(&text).ok()) else {
                continue;
            };
            let tool = table.get("tool").and_then(|tool| tool.get("tox")?.as_table());
            let Some(table) = (if file == "tox.toml" { Some(&table) } else { tool }) else { continue };
            is_there = true;
            let mut lines = Vec::new();
            commands_of_tox(table, &mut lines, 0);
            for line in lines.iter().take(MOST) {
                let line = in_root_of_tox(line, directory);
                let words: Vec<&str> = line.split('\0').collect();
                self.words(&words, directory, depth + 1);
            }
        }
        is_there
    }

    /// Follows the lines of a key in a file of sections: of what is set there, each line is a command.
    fn lines_after(&mut self, file: &str, key: &str, directory: &str, depth: usize) -> bool {
        let Some(text) = resolved(directory, file).and_then(|path| self.content(&path)) else { return false };
        let text = in_root_of_tox(&text, directory);
        let mut is_inside = false;
        for line in text.lines() {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            if line.starts_with([' ', '\t']) && is_inside {
                self.text(line.trim().trim_start_matches('-'), directory, depth + 1);
            } else {
                is_inside = name.trim() == key;
                if is_inside {
                    self.text(value.trim(), directory, depth + 1);
                }
            }
        }
        true
    }

    /// Follows the programs of local hooks of `pre-commit`.
    fn hooks(&mut self, directory: &str, depth: usize) -> bool {
        let Some(path) = resolved(directory, ".pre-commit-config.yaml") else { return false };
        let Some(text) = self.content(&path) else { return false };
        self.add(path, InstructionPart::Whole);
        let entries =
            text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("entry:"));
        for entry in entries {
            self.text(entry.trim().trim_matches(['"', '\'']), directory, depth + 1);
        }
        true
    }

    /// Follows an alias of cargo, and the program `xtask` of a workspace.
    fn cargo(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
        if arguments.contains(&"xtask") {
            if let Some(path) = resolved(directory, "xtask") {
                self.add(path, InstructionPart::Folder);
            }
            return true;
        }
        let Some(name) = arguments.iter().find(|word| !word.starts_with(['-', '+'])) else { return false };
        let config = resolved(directory, ".cargo/config.toml").and_then(|path| self.content(&path));
        let config = config.and_then(|text| toml::from_str::<toml::Table>(&text).ok());
        let alias = config.as_ref().and_then(|config| config.get("alias")?.get(name));
        let words: Vec<String> = match alias {
            Some(toml::Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
            Some(toml::Value::Array(words)) => {
                words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
            }
            _ => return false,
        };
        let words: Vec<&str> = std::iter::once("cargo").chain(words.iter().map(String::as_str)).collect();
        if depth < DEEPEST {
            self.words(&words, directory, depth + 1);
        }
        true
    }

    /// Adds what `go run` builds of the tree.
    fn go(&mut self, arguments: &[&str], directory: &str) -> bool {
        // Any other command of `go` runs what is installed or builds the work.
        let ["run", rest @ ..] = arguments else { return false };
        let module = self.module_of_go(directory);
        let package = rest.iter().find_map(|word| {
            let within = || {
                let (folder, module) = module.as_ref()?;
                let path = word.split('@').next()?.strip_prefix(module.as_str())?.strip_prefix('/')?;
                resolved(folder, path)
            };
            if word.starts_with('.') { resolved(directory, word) } else { within() }
        });
        let is_there = package.is_some();
        if let Some(path) = package {
            let part =
                if extension(&path) == Some("go") { InstructionPart::Whole } else { InstructionPart::Folder };
            self.add(path, part);
        }
        is_there
    }

    /// Adds the lists of tests that ctest reads in the folder that it is told, or else where it is called; git may ignore them. Tells
    /// that what it runs is not known.
    fn ctest(&mut self, arguments: &[&str], directory: &str) -> bool {
        let told = arguments.iter().position(|word| *word == "--test-dir");
        let told = told.and_then(|at| arguments.get(at + 1).copied());
        let told = told.or_else(|| arguments.iter().find_map(|word| word.strip_prefix("--test-dir=")));
        let folder = told.map_or_else(|| Some(directory.to_owned()), |to| entered(directory, to));
        let mut waiting: Vec<String> = folder.into_iter().collect();
        let mut known = BTreeSet::new();
        while let Some(folder) = waiting.pop().filter(|_| known.len() < MOST) {
            let path = joined(&folder, "CTestTestfile.cmake");
            let Some(text) = self.content(&path).filter(|_| known.insert(path.clone())) else { continue };
            // One that the check makes anew is that of its sources.
            self.add(path, InstructionPart::Product);
            let below =
                text.lines().filter_map(|line| line.trim().strip_prefix("subdirs(")?.split(')').next());
            waiting.extend(below.filter_map(|name| entered(&folder, name.trim_matches('"'))));
        }
        false
    }

    /// Returns the directory and the name of the module of Go that a directory belongs to.
    fn module_of_go(&self, directory: &str) -> Option<(String, String)> {
        let mut at = Some(directory);
        while let Some(folder) = at {
            if let Some(text) = self.content(&joined(folder, "go.mod")) {
                let name = text.lines().find_map(|line| line.trim().strip_prefix("module "));
                return Some((folder.to_owned(), name?.trim().trim_matches('"').to_owned()));
            }
            at = match folder {
                "" => None,
                _ => Some(folder.rsplit_once('/').map_or("", |(above, _)| above)),
            };
        }
        None
    }
}

/// Words in the paths of what is there to check, and how such words begin or end: `runtests`, `checker`.
const OF_CHECKS: [&str; 30] = [
    "benchmark",
    "build",
    "ci",
    "compare",
    "count",
    "coverage",
    "dev",
    "e2e",
    "errors",
    "eval",
    "gate",
    "golden",
    "grade",
    "hack",
    "harness",
    "integration",
    "judge",
    "oracle",
    "quality",
    "reference",
    "report",
    "runner",
    "score",
    "script",
    "scripts",
    "smoke",
    "status",
    "suite",
    "tool",
    "tools",
];
const ROOTS_OF_CHECKS: [&str; 8] = ["assert", "audit", "check", "expect", "lint", "spec", "test", "verif"];

/// Returns the scripts of a manifest that a word of a command may name: `unit`, `npm:unit`, `test:*`.
fn scripts_named(word: &str, package: &Value) -> Vec<String> {
    let word =
        ["npm:", "pnpm:", "yarn:", "bun:"].iter().find_map(|begin| word.strip_prefix(begin)).unwrap_or(word);
    let Some(scripts) = package["scripts"].as_object() else { return Vec::new() };
    match word.split_once('*') {
        Some((begin, _)) if !begin.is_empty() => {
            scripts.keys().filter(|name| name.starts_with(begin)).take(MOST).cloned().collect()
        }
        Some(_) => Vec::new(),
        None => scripts.contains_key(word).then(|| word.to_owned()).into_iter().collect(),
    }
}

/// Returns the scripts of a manifest that programs may be told to run by one of its scripts. Package managers are followed
/// by what they are, and what looks at files alone runs none.
fn scripts_among(script: &str, package: &Value) -> Vec<String> {
    const KNOWN: [&str; 9] = ["npm", "pnpm", "yarn", "bun", "npx", "node", "cd", "echo", "export"];
    let all = commands(script);
    let runs = |words: &Vec<Option<&str>>| match words.first() {
        Some(Some(program)) => {
            let name = plain_name(program);
            !KNOWN.contains(&name) && !CATALOG.lookers.iter().any(|looker| looker == name)
        }
        Some(None) | None => false,
    };
    let words = all.iter().map(SimpleCommand::values).filter(runs);
    words
        .flat_map(|words| words.into_iter().skip(1).flatten().collect::<Vec<_>>())
        .flat_map(|word| scripts_named(word, package))
        .take(MOST)
        .collect()
}

/// Returns a text of tox with where it lies.
fn in_root_of_tox(text: &str, directory: &str) -> String {
    let root = known_values::from_root(directory);
    text.replace("{toxinidir}", &root).replace("{tox_root}", &root)
}

/// Collects the commands of a table of tox, with a NUL between their words.
fn commands_of_tox(table: &toml::Table, found: &mut Vec<String>, depth: usize) {
    for (key, value) in table.iter().filter(|_| depth < DEEPEST) {
        if let Some(table) = value.as_table() {
            commands_of_tox(table, found, depth + 1);
        }
        if !matches!(key.as_str(), "commands" | "commands_pre" | "commands_post") {
            continue;
        }
        for command in value.as_array().into_iter().flatten().filter_map(toml::Value::as_array) {
            let words: Vec<&str> = command.iter().filter_map(toml::Value::as_str).collect();
            found.push(words.join("\0"));
        }
    }
}

/// Tells whether a word names what ought to come out of something.
fn is_expectation(word: &str) -> bool {
    const WORDS: [&str; 12] = [
        "baseline",
        "correct",
        "expect",
        "expected",
        "golden",
        "goldens",
        "oracle",
        "ref",
        "reference",
        "snapshot",
        "snapshots",
        "want",
    ];
    let mut words = word.split(|sign: char| !sign.is_alphanumeric()).map(str::to_lowercase);
    words.any(|word| WORDS.contains(&word.as_str()))
}

/// Tells whether a file is one that is loaded.
fn is_code(path: &str) -> bool {
    const ENDS: [&str; 14] =
        ["cjs", "cts", "js", "json", "jsx", "mjs", "mts", "php", "py", "rb", "toml", "ts", "tsx", "yml"];
    extension(path).is_some_and(|end| ENDS.contains(&end))
}

/// Tells whether the first line of a script names a shell.
fn is_shell_script(text: &str) -> bool {
    let is_of_shell = |word: &str| SHELLS.contains(&after_last(word, &['/']));
    first_line(text).strip_prefix("#!").is_some_and(|line| line.split_whitespace().any(is_of_shell))
}

/// Tells whether words start a shell that reads what it runs, or the names of it, from the command in front.
fn is_shell_alone(words: &[&str]) -> bool {
    let (words, _) = behind_wrappers(words);
    let [program, options @ ..] = words else { return false };
    SHELLS.contains(&plain_name(program))
        && options.iter().all(|word| (word.starts_with('-') && !word.ends_with('c')) || *word == "{}")
}

/// Tells whether a path says that it is there to check, and not to be checked.
fn is_named_as_a_check(path: &str) -> bool {
    let mut words = path.split(|sign: char| !sign.is_alphanumeric()).map(str::to_lowercase);
    let has_root =
        |word: &str| ROOTS_OF_CHECKS.iter().any(|root| word.starts_with(root) || word.ends_with(root));
    let is_of_checks = |word: String| {
        OF_CHECKS.contains(&word.as_str())
            || has_root(&word)
            || has_root(word.trim_end_matches('s'))
            || word.starts_with("valid")
    };
    words.any(is_of_checks) || CATALOG.file(path).is_some()
}

/// Returns the words behind programs that run others, and behind variables that are set for one; and the folders in which
/// those look first.
fn behind_wrappers<'w>(words: &'w [&'w str]) -> (&'w [&'w str], Vec<&'static str>) {
    let mut words = words;
    let mut folders = Vec::new();
    loop {
        let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.begins(words));
        let Some(wrapper) = wrapper else {
            let Some(rest) = behind_timeout(words) else { return (words, folders) };
            words = rest;
            continue;
        };
        folders.extend(wrapper.folder);
        let mut at = wrapper.words.len();
        while let Some(word) = words.get(at) {
            let is_set = crate::shell::command::is_assignment(word);
            // An option of the wrapper, with the word that it takes, is not the program.
            match wrapper.valued.contains(word) {
                true => at += 2,
                false if word.starts_with('-') || is_set => at += 1,
                false => break,
            }
        }
        words = words.get(at..).unwrap_or_default();
    }
}

/// Returns the words behind `timeout` with its options and the time.
fn behind_timeout<'w>(words: &'w [&'w str]) -> Option<&'w [&'w str]> {
    let (program, rest) = words.split_first()?;
    if !matches!(system_name(program), "timeout" | "gtimeout") {
        return None;
    }
    let mut at = 0;
    while rest.get(at).is_some_and(|word| word.starts_with('-')) {
        at += if matches!(rest[at], "-k" | "-s" | "--kill-after" | "--signal") { 2 } else { 1 };
    }
    Some(rest.get(at + 1..).unwrap_or_default())
}

/// Returns what a loop does whose head ends at a place of a text: what stands between its `do` and its `done`.
fn loop_body(text: &str, head_end: usize) -> Option<&str> {
    let rest = head(text.get(head_end..)?, LONGEST_SUBSHELL);
    let (mut depth, mut begin, mut at) = (0_usize, 0, 0);
    for word in
        rest.split_inclusive(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '&' | '|' | ')'))
    {
        let plain =
            word.trim_end_matches(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '&' | '|' | ')'));
        match plain {
            "do" => {
                begin = if depth == 0 { at + plain.len() } else { begin };
                depth += 1;
            }
            "done" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return rest.get(begin..at);
                }
            }
            _ => {}
        }
        at += word.len();
    }
    None
}

/// Returns the words behind the options of `coverage run`, as an interpreter of Python takes them.
fn measured<'w>(words: &[&'w str]) -> Vec<&'w str> {
    const VALUED: [&str; 8] = [
        "--concurrency",
        "--context",
        "--data-file",
        "--debug",
        "--include",
        "--omit",
        "--rcfile",
        "--source",
    ];
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-') && **word != "-m") {
        at += if VALUED.contains(word) { 2 } else { 1 };
    }
    words.get(at..).unwrap_or_default().to_vec()
}

/// Returns where the subshell or the substitution ends of which a command is the first.
fn subshell_end(text: &str, command: usize) -> Option<usize> {
    text.get(..command)?.trim_end().strip_suffix('(')?;
    let mut depth = 1_usize;
    let behind = head(text.get(command..)?, LONGEST_SUBSHELL).char_indices();
    behind.filter(|(_, sign)| matches!(sign, '(' | ')')).find_map(|(at, sign)| {
        depth = if sign == '(' { depth + 1 } else { depth - 1 };
        (depth == 0).then_some(command + at)
    })
}

/// Returns the value of one of these options where it stands in one word with it: `--file=x`, `-fx`.
fn value_within<'w>(word: &'w str, options: &[&str]) -> Option<&'w str> {
    options.iter().find_map(|option| {
        let rest = word.strip_prefix(option)?;
        if option.starts_with("--") {
            rest.strip_prefix('=')
        } else {
            Some(rest).filter(|rest| !rest.is_empty())
        }
    })
}

/// Options of make that are a letter and take no word.
const FLAGS_OF_MAKE: &str = "BLRSbdeikmnpqrstvw";

/// Tells whether a word holds flags of make, and behind them a letter that takes the next word: `-sC web`.
fn are_flags_before(word: &str, letter: char) -> bool {
    let flags = word.strip_prefix('-').and_then(|signs| signs.strip_suffix(letter));
    flags.is_some_and(|flags| !flags.is_empty() && flags.chars().all(|sign| FLAGS_OF_MAKE.contains(sign)))
}

/// Returns the name of the first recipe of a justfile.
fn first_recipe(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let (head, rest) = line.split_once(':')?;
        // Settings and variables are written as `set x := y` and `x := y`.
        let is_recipe = !rest.starts_with('=') && !line.starts_with([' ', '\t', '#', '[']);
        head.trim_start_matches('@').split_whitespace().next().filter(|_| is_recipe)
    })
}

/// Returns the names of recipes that one may need: what stands behind the colon of its first line, and in its lines with
/// `deps:` and `task:`. Words that name none have no lines.
fn needed_recipes<'t>(text: &'t str, name: &str, lines: &[&'t str]) -> Vec<&'t str> {
    let head = text.lines().find(|line| begins_recipe(line, name));
    let behind = head.and_then(|head| head.split_once(':')).map(|(_, behind)| behind);
    let said = lines.iter().filter_map(|line| {
        let line = line.trim_start().trim_start_matches("- ");
        line.strip_prefix("deps:").or_else(|| line.strip_prefix("task:"))
    });
    let words = behind.into_iter().chain(said).flat_map(|text| text.split([' ', '\t', ',']));
    words
        .map(|word| word.trim_matches(['[', ']', '(', ')', '"', '\'']))
        .filter(|word| !word.is_empty())
        .take(MOST)
        .collect()
}

/// Tells whether a line is the first of a recipe.
fn begins_recipe(line: &str, name: &str) -> bool {
    let rest = line.trim_start().trim_start_matches('@').strip_prefix(name);
    rest.is_some_and(|rest| rest.contains(':') && rest.starts_with([':', ' ']))
}

/// Returns the lines below the one that begins with a name, as far as they are indented.
fn below<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut lines = text.lines().skip_while(|line| !begins_recipe(line, name));
    let Some(first) = lines.next() else { return Vec::new() };
    let depth = first.len() - first.trim_start().len();
    let is_below = |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() > depth;
    lines.take_while(is_below).collect()
}

/// Tells whether an interpreter is told to look at a program without running it: `bash -n x.sh`, `node --check x.js`.
fn only_reads(name: &str, arguments: &[&str]) -> bool {
    let mut options = arguments.iter().take_while(|word| word.starts_with('-'));
    // Options of a letter may come together, as in `-wc`, but `-Iscripts` is a letter with its value.
    let has = |word: &str, letter: char, flags: &str| {
        let signs = word.strip_prefix('-').unwrap_or_default();
        signs.contains(letter) && signs.chars().all(|sign| flags.contains(sign))
    };
    options.any(|word| match name {
        "fish" => matches!(*word, "-n" | "--no-execute"),
        "node" | "nodejs" => matches!(*word, "-c" | "--check"),
        "perl" | "ruby" => has(word, 'c', "cvwTW"),
        "php" => matches!(*word, "-l" | "--syntax-check"),
        _ => SHELLS.contains(&name) && has(word, 'n', "abefhkmntuvxBCHP"),
    })
}

/// Returns the name of a program without its folder and version: `/usr/bin/python3.12` is `python`.
pub(super) fn plain_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // Only interpreters carry their version in their names; `md5sum` and `7z` are names as they
    // stand.
    if matches!(plain, "python" | "pypy" | "ruby" | "php" | "perl" | "lua") { plain } else { name }
}

/// Returns how the path of a module in a directory of libraries begins, wherever it is asked for.
fn in_library(folder: &str) -> String {
    match folder {
        "" => format!("{FROM_ROOT}./"),
        folder => format!("{FROM_ROOT}{folder}/"),
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns a path from the root of the repository, of one that is read in a directory; none for one that leads out of it, and
/// for the root itself, which is no file.
pub(super) fn resolved(directory: &str, path: &str) -> Option<String> {
    entered(directory, path).filter(|path| !path.is_empty())
}

/// Returns the directory to which a path leads from another one, from the root of the repository, which is empty; none for one
/// that leads out of it.
fn entered(directory: &str, path: &str) -> Option<String> {
    let (directory, path) = path.strip_prefix(FROM_ROOT).map_or((directory, path), |path| ("", path));
    if path.starts_with(['/', '~', '-']) || path.is_empty() || path.contains(['\0', '$', '*']) {
        // What leads out of the repository is not the run's to change. With a variable in it,
        // it may lead anywhere.
        return None;
    }
    gitpath::folded(directory, path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tree::FileAt;
    use super::*;
    use crate::base::file_mode::FileMode;

    fn tree(files: &[(&str, &str)]) -> BTreeMap<String, FileAt> {
        let file =
            |text: &str| FileAt { mode: FileMode::File, bytes: text.as_bytes().to_vec(), is_ignored: false };
        files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect()
    }

    fn found(text: &str, search: &[&str], files: &[(&str, &str)]) -> String {
        let search: Vec<String> = search.iter().map(|place| (*place).to_owned()).collect();
        let shell = ["tools/sh", "-c"].map(str::to_owned);
        let variables = [("BASH_ENV", "./.ci-env"), ("NODE_OPTIONS", "--require ./ci/pre")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables =
            if search.contains(&"variables".to_owned()) { variables.to_vec() } else { Vec::new() };
        let command = CheckCommand {
            state: "check",
            text,
            directory: "",
            search: &search,
            libraries: &[],
            variables: &variables,
            shell: &shell,
        };
        let all = instructions(&[command], &tree(files)).all;
        // Each rule that is needed has its target, which has a test of its own.
        let all = all.iter().filter(|instruction| instruction.part != InstructionPart::Target);
        let shown = all.map(|instruction| match &instruction.part {
            InstructionPart::Whole => instruction.path.clone(),
            InstructionPart::Folder => format!("{}/", instruction.path),
            InstructionPart::Targets(targets) => format!("{}[{}]", instruction.path, targets.join(" ")),
            InstructionPart::Keys(keys) => format!("{}[{}]", instruction.path, keys.join(" ")),
            InstructionPart::Product => format!("{}*", instruction.path),
            InstructionPart::Sourced => format!("{}.", instruction.path),
            InstructionPart::Shadow => format!("{}?", instruction.path),
            InstructionPart::Words => format!("{}$", instruction.path),
            InstructionPart::AnyScript => "any script".to_owned(),
            InstructionPart::Target => "a target".to_owned(),
            InstructionPart::Asked(elsewhere) | InstructionPart::Anywhere(elsewhere) => {
                let sign = if matches!(instruction.part, InstructionPart::Asked(_)) { "+" } else { "~" };
                format!("{}{sign}{}", instruction.path, elsewhere.as_deref().unwrap_or_default())
            }
            InstructionPart::Program(None) => format!("{}=", instruction.path),
            InstructionPart::Program(Some(elsewhere)) => format!("{}={elsewhere}", instruction.path),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// The same, without the shell itself.
    fn beside_shell(text: &str, files: &[(&str, &str)]) -> String {
        let found = found(text, &[], files);
        found.split(' ').filter(|path| *path != "tools/sh").collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_stands_in_front_of_an_interpreter_need_not_be_known() {
        let files = &[
            ("ci/one.sh", "true"),
            ("greet.sh", ""),
            ("tool/__main__.py", ""),
            ("Makefile", "check:\n\tx\n"),
        ];
        for (text, expected) in [
            ("flock l sh ci/one.sh", "ci/one.sh"),
            ("flock l -c 'cd . && sh ci/one.sh'", "ci/one.sh"),
            ("taskset 1 /bin/bash -e ci/one.sh", "ci/one.sh"),
            ("script -qec 'sh ci/one.sh' /dev/null", "ci/one.sh"),
            ("docker run --rm image sh -c 'sh ci/one.sh'", "ci/one.sh"),
            ("awk 'BEGIN { exit system(\"sh ci/one.sh\") }'", "ci/one.sh"),
            ("retry 3 python3 tool", "tool? tool/__main__.py"),
            ("flock l make check", "GNUmakefile? Makefile[check] makefile?"),
            ("apt-get install -y make; echo sh ci/one.sh; which sh ci/one.sh; shellcheck sh ci/one.sh", ""),
            (
                "flock l sh; flock l bash other.sh; x folder/sh ci/one.sh; ./x sh greet.sh; f() { y; }; f sh greet.sh",
                "x",
            ),
        ] {
            assert_eq!(beside_shell(text, files), expected, "{text}");
        }
    }

    #[test]
    fn the_lists_of_ctest_are_found_in_their_folders() {
        let files = &[
            ("build/CTestTestfile.cmake", "subdirs(\"tests\")\nadd_test(a \"a\")\n"),
            ("build/tests/CTestTestfile.cmake", "subdirs(\"../tests\")\n"),
            ("CTestTestfile.cmake", ""),
        ];
        let both = "build/CTestTestfile.cmake* build/tests/CTestTestfile.cmake*";
        for (text, expected) in [
            ("ctest --test-dir build", both),
            ("cd build && ctest", both),
            ("ctest --test-dir=build/tests -V", "build/tests/CTestTestfile.cmake*"),
            ("ctest --test-dir /tmp/x; cmake --build build", ""),
        ] {
            assert_eq!(beside_shell(text, files), expected, "{text}");
        }
    }

    #[test]
    fn a_program_is_found_as_its_interpreter_finds_it() {
        let files = &[
            ("tool/__main__.py", ""),
            ("ci/look.py", ""),
            ("ci/look.js", ""),
            ("web/index.js", ""),
            ("app/package.json", "{\"main\": \"lib/main.js\"}"),
            ("app/lib/main.js", ""),
            ("lines", "#!/usr/bin/env -S sh ci/real.sh\n"),
            ("ci/real.sh", "true"),
            ("read", "#!ci/reader -x\n"),
            ("ci/reader", "#!ci/reader\n"),
            ("go.mod", "module example.org/calc\n"),
            ("tools/lint/main.go", ""),
        ];
        for (text, expected) in [
            ("python3 tool", "tool? tool/__main__.py"),
            ("python3 -m look", "look.py? look/__init__.py? look/__main__.py?"),
            (
                "PYTHONPATH=ci python3 -m look",
                "ci/look.py? ci/look/__init__.py? ci/look/__main__.py? look.py? look/__init__.py? look/__main__.py?",
            ),
            ("node ci/look", "ci/look? ci/look.js"),
            ("node web/", "web? web.cjs? web.js? web.mjs? web.ts? web/index.js"),
            ("node ./ci/look.js", "ci/look.js"),
            ("./lines", "ci/real.sh lines"),
            ("./read", "ci/reader read"),
            ("go run example.org/calc/tools/lint -v", "tools/lint/"),
            ("go run example.org/other/lint@v1", ""),
        ] {
            assert_eq!(beside_shell(text, files), expected, "{text}");
        }
        assert!(found("node app", &[], files).contains("app/lib/main.js"));
    }

    #[test]
    fn what_a_command_runs_or_obeys_is_found() {
        let files = &[
            ("check.sh", "#!/bin/sh\npython tools/look.py src/a.py\n. ./lib.sh\n"),
            ("lib.sh", "pytest -c conf/pytest.ini tests\n"),
            ("tools/look.py", ""),
            ("conf/pytest.ini", ""),
            ("src/a.py", ""),
            ("Makefile", "test: unit\n\tsh check.sh\nunit:\n\t@bash -c 'node x.js'\nother:\n\tsh other.sh\n"),
            ("x.js", ""),
            ("other.sh", ""),
            (
                "package.json",
                r#"{"scripts":{"test":"npm run unit","unit":"node x.js","pretest":"sh lib.sh"}}"#,
            ),
            ("part/package.json", r#"{"scripts":{"check":"sh x.sh"}}"#),
            ("part/x.sh", ""),
            (
                "Taskfile.yml",
                "tasks:\n  default:\n    deps: [ci]\n  ci:\n    cmds:\n      - task: look\n  look:\n    cmds:\n      - sh other.sh\n",
            ),
            ("justfile", "x := 'y'\ntest arg='1': lint\n  sh other.sh\nlint:\n  ruff .\nall: lint test\n"),
            ("tox.ini", "[testenv]\ncommands =\n  sh other.sh\n"),
            (".pre-commit-config.yaml", "- repo: local\n  hooks:\n    - entry: ./other.sh\n"),
            (".cargo/config.toml", "[alias]\nci = 'xtask ci'\n"),
            ("part/tox.toml", "[env_run_base]\ncommands = [['sh', '{tox_root}/x.sh']]\n"),
            ("sub/run.sh", "echo"),
            ("glob.mk", "include mk/*.mk\ntest: part\n"),
            ("mk/a.mk", "part:\n\tsh other.sh\n"),
            ("other.just", "look:\n  sh other.sh\n"),
            ("inc.mk", "include more.mk\n-include gone.mk\ntest: other\n"),
            ("vars.mk", "CHECK := ./other.sh\nQ = @\nALL = one\ntest: $(ALL)\none:\n\t$(Q)$(CHECK) -q\n"),
            ("more.mk", "other:\n\tsh other.sh\n"),
            (
                "look.sh",
                "[ \"$(sh work.sh)\" = x ]\nsh other.sh\nsh work.sh > out\ncmp out x\nx=$(sh scripts/more.sh)\n",
            ),
            ("work.sh", ""),
            ("look.py", ""),
            ("web/Makefile", "test:\n\t./look.sh\n"),
            ("web/look.sh", ""),
            ("scripts/more.sh", ""),
            (
                "scripts/all.sh",
                "DIR=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\n. \"$DIR/lib/a.sh\"\ncd \"$DIR/..\"\n./scripts/more.sh\n\"$DIR\"/../other.sh\n",
            ),
            ("scripts/lib/a.sh", ""),
            ("composer.json", r#"{"scripts":{"test":["@unit"],"unit":"node x.js"}}"#),
        ];
        for (text, expected) in [
            ("ruff check src/a.py", ""),
            ("sh check.sh", "check.sh conf/pytest.ini lib.sh. tools/look.py"),
            ("./check.sh", "check.sh conf/pytest.ini lib.sh. tools/look.py"),
            ("bash -eu check.sh < src/a.py", "check.sh conf/pytest.ini lib.sh. src/a.py tools/look.py"),
            ("sh < other.sh", "other.sh"),
            ("bash -n other.sh; node --check x.js; ruby -wc lib.sh; php -l x.js; php x.js", "x.js"),
            ("bash -eun other.sh; node -c x.js; bash -e other.sh", "other.sh"),
            ("perl -Iscripts x.js", "x.js"),
            ("timeout -k 1 60 env X=1 python3 -u tools/look.py", "tools/look.py"),
            ("/usr/bin/env python3 tools/look.py", "tools/look.py"),
            ("/usr/bin/timeout --signal KILL --kill-after 5 60 sh other.sh", "other.sh"),
            ("/usr/bin/time -f %e sh other.sh", "other.sh"),
            ("direnv exec . sh other.sh", "other.sh"),
            ("./env sh other.sh", "env"),
            ("cd sub && ./run.sh", "sub/run.sh"),
            ("sh look.sh", "look.sh other.sh scripts/more.sh"),
            ("sh look.sh | tail", "look.sh other.sh scripts/more.sh"),
            ("[ \"$(sh work.sh)\" = x ]", ""),
            ("cd sub; ../other.sh", "other.sh"),
            ("cd sub; cd ..; ./other.sh", "other.sh"),
            ("(cd sub && ./run.sh); ./other.sh", "other.sh sub/run.sh"),
            ("X=$(cd sub && (pwd)); ./other.sh", "other.sh"),
            ("{ cd sub; }; ./run.sh", "sub/run.sh"),
            ("cd sub; sh ../scripts/all.sh", "scripts/all.sh scripts/lib/a.sh. scripts/more.sh other.sh"),
            ("cd sub; make -C .. unit", "GNUmakefile? Makefile[unit] makefile? x.js"),
            ("pytest --config-file=conf/pytest.ini tests", "conf/pytest.ini"),
            ("make -j 2 unit", "GNUmakefile? Makefile[unit] makefile? x.js"),
            (
                "make -f inc.mk test",
                "gone.mk[other test] inc.mk inc.mk[other test] more.mk[other test] other.sh",
            ),
            ("make -finc.mk test", "gone.mk[other test] inc.mk[other test] more.mk[other test] other.sh"),
            (
                "make --makefile=inc.mk test",
                "gone.mk[other test] inc.mk inc.mk[other test] more.mk[other test] other.sh",
            ),
            ("make -f vars.mk test", "other.sh vars.mk vars.mk[test]"),
            ("make -Cweb test", "web/GNUmakefile? web/Makefile[test] web/look.sh web/makefile?"),
            ("make -sC web test", "web/GNUmakefile? web/Makefile[test] web/look.sh web/makefile?"),
            ("make --directory=web test", "web/GNUmakefile? web/Makefile[test] web/look.sh web/makefile?"),
            ("make -f glob.mk test", "glob.mk glob.mk[part test] mk/ mk/a.mk[part test] other.sh"),
            ("just -f other.just look", "other.just other.sh"),
            ("just --justfile=other.just", "other.just other.sh"),
            ("for f in sub/*.sh; do sh \"$f\"; done; ./other.sh", "sub/run.sh other.sh"),
            ("cd sub; for f in *.sh; do ./${f} $fine; done", "sub/run.sh"),
            ("for f in other.sh x.js; do for g in $f; do bash -e $g; done; done", "other.sh x.js"),
            ("run-parts --exit-on-error sub", "sub/ sub/run.sh"),
            (
                "coverage run --source src -m tools.look",
                "tools/look.py? tools/look/__init__.py? tools/look/__main__.py?",
            ),
            ("coverage run -p look.py -q", "look.py"),
            ("composer test", "vendor/bin/node= x.js"),
            (
                "npm test -- a",
                "lib.sh package.json[scripts.pretest scripts.test scripts.posttest] package.json[scripts.preunit scripts.unit scripts.postunit] x.js conf/pytest.ini node_modules/.bin/node= node_modules/.bin/npm= node_modules/.bin/pytest= node_modules/.bin/sh=",
            ),
            (
                "npm --prefix=part run check",
                "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
            ),
            (
                "npm run check -w part",
                "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
            ),
            (
                "turbo run check",
                "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
            ),
            (
                "yarn workspace part check",
                "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
            ),
            (
                "npm run check --workspace=@x/part",
                "part/package.json[scripts.precheck scripts.check scripts.postcheck] part/x.sh node_modules/.bin/sh= part/node_modules/.bin/sh=",
            ),
            (
                "pnpm -w unit",
                "package.json[scripts.preunit scripts.unit scripts.postunit] x.js node_modules/.bin/node=",
            ),
            (
                "bun run unit",
                "unit .env$ .env.local$ .env.test$ package.json[scripts.preunit scripts.unit scripts.postunit] x.js node_modules/.bin/node=",
            ),
            ("bun run x.js", "x.js .env$ .env.local$ .env.test$"),
            ("just test", "justfile other.sh"),
            ("just", "justfile other.sh"),
            ("just all", "justfile other.sh"),
            ("task", "Taskfile.yml other.sh"),
            ("task ci", "Taskfile.yml other.sh"),
            ("tox -e py", "other.sh"),
            ("cd part && tox", "part/x.sh"),
            ("pre-commit run -a", ".pre-commit-config.yaml other.sh"),
            ("cargo ci", "xtask/"),
            ("go run ./cmd/look", "cmd/look/"),
            ("python -m tools.look", "tools/look.py? tools/look/__init__.py? tools/look/__main__.py?"),
            ("find . -name '*.sh' -exec sh other.sh {} +", "other.sh"),
            ("uv run ./check", "check"),
            ("uv run look.py src/a.py", "look.py .venv/bin/look.py="),
            ("find sub -name '*.sh' -exec sh {} +", "sub/run.sh"),
            ("find sub -name '*.sh' | xargs -n 1 sh", "sub/run.sh"),
            ("cat other.sh | sh -s", "other.sh"),
            ("sh \"$PWD/other.sh\"; sh ${PWD}/sub/run.sh", "other.sh sub/run.sh"),
            ("sh \"$(git rev-parse --show-toplevel)/other.sh\"", "other.sh"),
            ("S=sub; sh $S/run.sh", "sub/run.sh"),
            ("eval sh other.sh; setsid -w stdbuf -oL sh sub/run.sh", "other.sh sub/run.sh"),
            ("T=(other.sh); for t in \"${T[@]}\"; do sh $t; done", ""),
            ("T=(scripts/more.sh); for t in \"${T[@]}\"; do sh $t; done", "scripts/more.sh"),
            ("run() { sh \"$1\"; }; run scripts/more.sh", "scripts/more.sh"),
            ("ls sub | while read f; do sh sub/$f; done", "sub/"),
            ("bash \"$x\" sub/$f; sh -e \"scripts/$f\"", "scripts/"),
            ("printf '%s\\n' other.sh | xargs -I{} sh {}", "other.sh"),
            ("bash -e <<'X'\nsh other.sh\nX\ncat <<Y\nsh x.sh\nY\n", "other.sh"),
            ("diff conf/expected.out out; cmp out src/a.py", "conf/expected.out/"),
            ("git diff --check", ".gitattributes? .git/info/attributes?"),
            ("./all check.sh src/a.py", "all check.sh lib.sh. tools/look.py conf/pytest.ini"),
            ("$X/check.sh; /usr/bin/check; ~/check.sh", ""),
        ] {
            let mut expected: Vec<&str> = expected.split(' ').filter(|word| !word.is_empty()).collect();
            let found = found(text, &[], files);
            let mut found: Vec<&str> = found.split(' ').filter(|word| !word.is_empty()).collect();
            // The shell that reads each of them.
            expected.push("tools/sh");
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_hostile_text_comes_to_an_end() {
        let package = r#"{"scripts":{"a":"npm run a; npm run b","b":"npm run a"}}"#;
        let deep = ["find -exec ", "python -m ", "env ", "timeout 1 "].map(|word| word.repeat(20_000));
        let many = "npm run a\n".repeat(50_000);
        for text in deep.iter().chain([&many]) {
            let found = found(text, &[], &[("package.json", package)]);
            assert!(found.len() < 1_000_000, "{text:.40}");
        }
    }

    #[test]
    fn a_program_is_looked_for_where_the_one_is_that_runs_it() {
        let package = r#"{"scripts":{"test":"jest"}}"#;
        let files = &[("a/package.json", package), ("/usr/bin/jest", ""), ("bin/jest", "")];
        let search = &["bin", "/usr/bin", "late"];
        for (text, expected) in [
            ("jest", "bin/jest=/usr/bin/jest"),
            ("ruff check", "bin/ruff= late/ruff="),
            (
                "cd a && npm test",
                "a/node_modules/.bin/jest=/usr/bin/jest a/package.json[scripts.pretest scripts.test scripts.posttest] bin/jest=/usr/bin/jest bin/npm= late/npm= node_modules/.bin/jest=/usr/bin/jest",
            ),
            ("npx jest", "bin/jest=/usr/bin/jest bin/npx= late/npx= node_modules/.bin/jest=/usr/bin/jest"),
            ("uv run pytest", ".venv/bin/pytest= bin/pytest= bin/uv= late/pytest= late/uv="),
        ] {
            let found = found(text, search, files);
            let found: Vec<&str> = found.split(' ').filter(|path| *path != "tools/sh").collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_program_is_looked_for_where_a_text_says() {
        let files = &[
            ("/usr/bin/pytest", ""),
            ("check.sh", "export PATH=\"$PWD/tools:$PATH\"\npytest -q\n"),
            ("env.sh", "PATH=tools:$PATH\n"),
            ("tools/pytest", "#!/bin/sh\nsh other.sh\n"),
            ("other.sh", ""),
            ("Makefile", "V = .venv\nexport PATH := $(CURDIR)/$(V)/bin:$(PATH)\ntest:\n\tpytest\n"),
            ("justfile", "export PATH := justfile_directory() + '/tools:' + env('PATH')\ntest:\n  pytest\n"),
            (".envrc", "PATH_add tools\n"),
        ];
        for (text, expected) in [
            ("PATH=.venv/bin:$PATH pytest", ".venv/bin/pytest+/usr/bin/pytest"),
            (". .venv/bin/activate && pytest -q", ".venv/bin/activate. .venv/bin/pytest+/usr/bin/pytest"),
            ("export PATH=tools:$PATH; pytest", "other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
            ("PATH=$PATH:late pytest", ""),
            ("sh check.sh", "check.sh other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
            ("sh check.sh; pytest", "check.sh other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
            (". ./env.sh; pytest", "env.sh. other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
            ("PATH=$(f)/x:$PATH pytest", "x/pytest~/usr/bin/pytest f~"),
            ("make test", "GNUmakefile? Makefile[test] makefile? .venv/bin/pytest+/usr/bin/pytest"),
            ("just test", "justfile other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
            ("direnv exec . pytest", "other.sh tools/pytest+/usr/bin/pytest tools/sh+"),
            ("cd sub; PATH=bin:$PATH pytest", "bin/pytest+/usr/bin/pytest sub/bin/pytest+/usr/bin/pytest"),
        ] {
            let all = found(text, &["/usr/bin"], files);
            // The programs of the directories matter for `pytest` alone.
            let known = all.split(' ').filter(|path| *path != "tools/sh" && !path.ends_with("/f~"));
            let mut known: Vec<&str> = known.collect();
            let mut wanted: Vec<&str> = expected.split(' ').filter(|path| !path.is_empty()).collect();
            wanted.retain(|path| !path.ends_with("f~"));
            known.retain(|path| !path.ends_with("/make+") && !path.ends_with("f~"));
            known.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(known, wanted, "{text}");
        }
    }

    #[test]
    fn what_variables_name_is_found() {
        let files = &[(".ci-env", "sh other.sh\n"), ("other.sh", ""), ("ci/pre.js", "")];
        let found = found("true", &["variables"], files);
        assert_eq!(found, ".ci-env. ci/pre.js other.sh tools/sh variables/sh=");
    }

    #[test]
    fn what_becomes_words_or_is_named_to_be_loaded_is_found() {
        let files = &[
            ("ciplug.py", ""),
            ("ci/hooks.js", ""),
            ("ci/list.txt", ""),
            ("pytest.ini", "[pytest]\naddopts = -p ci.more\n"),
            ("ci/more.py", ""),
            ("Makefile", "-include .env\nexport\nT = $(shell cat ci/list.txt)\ntest:\n\tpytest $(T)\n"),
            ("justfile", "set dotenv-load\ntest:\n  pytest\n"),
        ];
        for (text, expected) in [
            ("export $(grep -v '^#' .env | xargs); pytest", ".env$"),
            ("env $(cat .env) pytest", ".env$"),
            ("node --env-file=.env x", ".env$ x"),
            ("docker run --env-file ci.env x", "ci.env$"),
            ("dotenv run -- pytest", ".env$ .env.local$ .env.test$"),
            ("xargs pytest < ci/list.txt", "ci/list.txt$"),
            ("while read t; do pytest $t; done < ci/list.txt", "ci/list.txt$"),
            ("pytest @ci/list.txt", "ci/list.txt$"),
            (
                "make test",
                ".env[test *= T= shell=] GNUmakefile? Makefile[test *= T= shell=] makefile? ci/list.txt$",
            ),
            ("just test", ".env$ justfile"),
            ("pytest -p ciplug", "ciplug.py ciplug/__init__.py?"),
            ("pytest -p xdist", "xdist.py? xdist/__init__.py?"),
            ("PYTEST_ADDOPTS='-p ciplug' pytest", "ciplug.py ciplug/__init__.py?"),
            ("mocha --require ./ci/hooks", "ci/hooks.js"),
            ("mkdir -p ci/more", ""),
        ] {
            let all = found(text, &[], files);
            let mut known: Vec<&str> = all.split(' ').collect();
            // The shell, and what the configuration names for each check.
            known.retain(|path| !matches!(*path, "tools/sh" | "ci/more.py"));
            known.sort_unstable();
            let mut wanted: Vec<&str> = expected.split(' ').filter(|path| !path.is_empty()).collect();
            wanted.sort_unstable();
            assert_eq!(known, wanted, "{text}");
            assert!(all.contains("ci/more.py"), "{text}");
        }
    }

    #[test]
    fn scripts_are_followed_as_deep_as_they_call_each_other() {
        let package = r#"{"scripts":{"test":"run-s unit 'more:*'","unit":"npm run a","a":"npm run b","b":"npm run c","c":"npm run d","d":"sh last.sh","more:x":"concurrently \"npm:y\" \"sh other.sh\"","y":"true"}}"#;
        let files = &[("package.json", package), ("last.sh", ""), ("other.sh", "")];
        let found = found("npm test", &[], files);
        for path in ["last.sh", "other.sh", "scripts.more:x", "scripts.y"] {
            assert!(found.contains(path), "{path}: {found}");
        }
        let scripts: Vec<(String, String)> =
            (0..40).map(|at| (format!("s{at}.sh"), format!("sh s{}.sh", at + 1))).collect();
        let files: Vec<(&str, &str)> =
            scripts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        // What is deeper than any repository goes may be anything.
        let deep = self::found("sh s0.sh", &[], &files);
        assert!(deep.contains("s5.sh") && deep.contains("any script"), "{deep}");
        assert!(!self::found("sh s35.sh", &[], &files).contains("any script"));
    }

    #[test]
    fn a_path_is_read_where_it_is_run() {
        assert_eq!(resolved("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(resolved("", "../c"), None);
        assert_eq!(resolved("a", "/c"), None);
        assert_eq!(resolved("", "."), None);
        assert_eq!(entered("a", "..").as_deref(), Some(""));
        assert_eq!(entered("a", "../.."), None);
    }
}
