//! The files that the commands of checks run, or read as instructions: programs, scripts, rules, configuration. What
//! else is named in a command is the work.

use std::collections::BTreeSet;

use globset::GlobBuilder;

use super::command_words::{
    BUILTINS, ENDS_OF_MODULES, ENDS_OF_PROGRAMS, HANDLERS, INSTALLERS, INTERPRETERS, LOADERS, OPTIONS,
    OPTIONS_OF_MODULES, OPTIONS_OF_WORDS, PLACES_OF_MODULES, READERS_OF_VARIABLES, RUNNERS_OF_SCRIPTS,
    RUNNERS_OF_TASKS, SHELLS, USUAL, behind_wrappers, entered, in_library, is_code, is_expectation,
    is_named_as_a_check, is_shell_alone, is_shell_script, joined, list_of_words, loop_body, measured,
    only_reads, plain_name, reads_in, resolved, subshell_end, system_name,
};
use super::compared::is_compared;
use super::judge_catalog::CATALOG;
use super::known_values::FROM_ROOT;
use super::search_path::{AddedPlace, AddedPlaces, SearchPlace, added_libraries};
use super::tree::{FileAt, Tree, extension};
use super::{known_values, named_modules, read_words};
use crate::base::file_mode::FileMode;
use crate::base::text::first_line;
use crate::shell::command::{SimpleCommand, commands};
use crate::shell::token::ShellOperator;

/// How many scripts and tasks are followed into each other: far more than there are in any repository.
pub(super) const DEEPEST: usize = 12;

/// How deep a program is that is looked up, and not followed by intent.
const LOOKED_UP: usize = 1000;

/// How many links are followed.
const MOST_LINKS: usize = 3;

/// The most instructions that are looked for, and the most names of a text: a hostile Makefile has no end.
const MOST_INSTRUCTIONS: usize = 5000;
pub(super) const MOST: usize = 500;

/// The most commands that are followed of a check. Each may cost the reading of a manifest.
const MOST_COMMANDS: usize = 10_000;

/// The most turns of a loop that are followed, and the most patterns of files that are looked up.
const MOST_TURNS: usize = 100;
const MOST_PATTERNS: usize = 200;

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
    /// The same, each of them read into the script that names the folder.
    SourcedFolder,
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
pub(super) struct Follow<'f> {
    command: &'f CheckCommand<'f>,
    pub(super) tree: &'f dyn Tree,
    found: &'f mut Instructions,
    pub(super) seen: BTreeSet<(String, String, Vec<SearchPlace>)>,
    /// Where programs are looked for.
    pub(super) search: Vec<SearchPlace>,
    /// Whether what the command prints is compared with what it ought to be: then it is the work.
    is_compared: bool,
    /// Targets of the rules that are followed.
    pub(super) products: BTreeSet<String>,
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
    pub(super) fn add(&mut self, path: String, part: InstructionPart) {
        // Whatever comes after is not looked for; the number only keeps a hostile tree from holding
        // up the run.
        if self.found.all.len() < MOST_INSTRUCTIONS {
            self.found.all.insert(Instruction { path, part, state: self.command.state.to_owned() });
        } else {
            self.cut();
        }
    }

    /// Notes that not all that the check runs could be followed.
    pub(super) fn cut(&mut self) {
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

    pub(super) fn content(&self, path: &str) -> Option<String> {
        let file = self.tree.file(path)?;
        Some(String::from_utf8_lossy(&file.bytes).into_owned())
    }

    /// Follows a text of shell that is run in a directory. What it puts into `PATH` holds for it alone.
    pub(super) fn text(&mut self, text: &str, directory: &str, depth: usize) {
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
        if text.len() > known_values::LONGEST {
            self.cut();
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
    pub(super) fn words_of(&mut self, file: &str, directory: &str) {
        if let Some(path) = resolved(directory, file) {
            self.add(path, InstructionPart::Words);
        }
    }

    /// Adds directories to those in which programs are looked for, as a text that runs in a directory asks.
    pub(super) fn add_places(&mut self, added: &AddedPlaces, directory: &str) {
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
            // A new file there is read in as well.
            let folder = word.rsplit_once('/').map(|(folder, _)| folder).filter(|_| reads_in(body, name));
            if let Some(folder) = folder.and_then(|folder| resolved(directory, folder)) {
                self.add(folder, InstructionPart::SourcedFolder);
            }
            let found = self.matching(directory, word).into_iter();
            all.extend(found.map(|path| match path.strip_prefix(&below) {
                Some(inside) => inside.to_owned(),
                None => format!("{FROM_ROOT}{path}"),
            }));
        }
        if all.len() > MOST_TURNS {
            self.cut();
        }
        all.truncate(MOST_TURNS);
        all.iter().map(|word| known_values::with_variable(body, name, word)).collect()
    }

    /// Follows a file that an interpreter reads from its input.
    fn inputs(&mut self, command: &SimpleCommand, words: &[&str], directory: &str, depth: usize) {
        let (behind, _) = behind_wrappers(words);
        // What is not known may run what is told to it.
        let may_be_told = behind.first().is_some_and(|program| self.may_run_others(program));
        let told = if may_be_told { behind } else { &behind[..behind.len().min(1)] };
        let name = |word: &&str| plain_name(system_name(word)).to_owned();
        let Some(reader) = told.iter().map(name).find(|name| INTERPRETERS.contains(&name.as_str())) else {
            return;
        };
        for input in command.inputs.iter().filter_map(|word| word.value.as_deref()) {
            self.script(input, SHELLS.contains(&reader.as_str()), directory, depth);
        }
    }

    /// Follows the words of a command.
    pub(super) fn words(&mut self, words: &[&str], directory: &str, depth: usize) {
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
    pub(super) fn searching(&mut self, folders: &[&str], directory: &str, follow: impl FnOnce(&mut Self)) {
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

    pub(super) fn run(&mut self, words: &[&str], directory: &str, depth: usize) {
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
            "cmake" | "ninja" => self.built_in(name, arguments, directory),
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

    /// Tells whether a program is not known, so that it may run what it is told. No list of programs that run others can be whole.
    fn may_run_others(&self, program: &str) -> bool {
        let name = plain_name(program);
        // One of the tree may compare what it runs with what it ought to be, which is the work then.
        let is_of_tree =
            (program.contains('/') && !program.starts_with('/')) || self.functions.contains(program);
        let is_known = is_of_tree
            || BUILTINS.contains(&program)
            || INSTALLERS.contains(&name)
            || CATALOG.lookers.iter().any(|looker| looker == name);
        !is_known
    }

    /// Follows what a program that is not known may run of its words: an interpreter with a file of the tree behind it, what runs
    /// tasks, or a program of the tree that is there to check, and within a text the first.
    fn behind_unknown(&mut self, program: &str, arguments: &[&str], directory: &str, depth: usize) {
        if !self.may_run_others(program) || depth > DEEPEST {
            return;
        }
        let runs_programs = !HANDLERS.contains(&plain_name(program));
        for (at, word) in arguments.iter().enumerate().take(MOST) {
            let behind = &arguments[at + 1..];
            if RUNNERS_OF_TASKS.contains(&system_name(word))
                || self.runs_file(word, behind, directory)
                || (runs_programs && self.is_program_of_checks(word, directory))
            {
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

    /// Tells whether a word is the path of a program of the tree whose name says that it is there to check.
    fn is_program_of_checks(&self, word: &str, directory: &str) -> bool {
        let Some(path) =
            resolved(directory, word).filter(|path| word.contains('/') && is_named_as_a_check(path))
        else {
            return false;
        };
        // Where a file system keeps no modes, each file may be executed.
        let is_program = |file: FileAt| {
            let is_plain = extension(&path).is_none() || file.bytes.starts_with(b"#!");
            file.mode == FileMode::Executable && is_plain
        };
        self.tree.file(&path).is_some_and(is_program)
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
                _ if OPTIONS.contains(word) || list_of_words(name, word) => arguments.get(at + 1).copied(),
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
    pub(super) fn program(
        &mut self,
        path: &str,
        part: &InstructionPart,
        is_shell: bool,
        directory: &str,
        depth: usize,
    ) {
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
            if file.mode != FileMode::Link {
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

    /// Returns the files that a pattern of a shell or of make means, in order.
    pub(super) fn matching(&mut self, directory: &str, pattern: &str) -> Vec<String> {
        // Each looks through all files, and a hostile text has no end of them.
        let Some(left) = self.patterns.checked_sub(1) else {
            self.cut();
            return Vec::new();
        };
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
}

#[cfg(test)]
mod tests;
