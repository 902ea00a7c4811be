//! Follows what runs the tasks of a project: make, just and task, the scripts of manifests, tox, hooks, and what builds and runs
//! programs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::command_words::{COMPOSER_BIN, NODE_BIN, entered, joined, plain_name, resolved};
use super::instructions::{DEEPEST, Follow, InstructionPart, MOST};
use super::judge_catalog::CATALOG;
use super::makefile::Makefile;
use super::search_path::AddedPlaces;
use super::tree::extension;
use super::{known_values, makefile, read_words};
use crate::shell::command::{SimpleCommand, commands};

impl Follow<'_> {
    pub(super) fn make(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
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
    pub(super) fn just(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
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
    pub(super) fn parts(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
        let folder = arguments.iter().rev().find(|word| !word.starts_with('-'));
        let Some(folder) = folder.and_then(|folder| resolved(directory, folder)) else { return false };
        let pattern = format!("{folder}/*");
        self.add(folder, InstructionPart::Folder);
        let programs = self.matching("", &pattern);
        if programs.len() == MOST {
            self.cut();
        }
        for path in programs {
            self.program(&path, &InstructionPart::Whole, true, directory, depth);
        }
        true
    }

    /// Follows recipes by name, in a file of `just` or `task`: the lines below the one that names it, and the recipes that it
    /// needs. Where no recipe is named, the one of this name is made, or else the first.
    pub(super) fn recipes(
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
    pub(super) fn scripts(
        &mut self,
        manager: &str,
        arguments: &[&str],
        directory: &str,
        depth: usize,
    ) -> bool {
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
    pub(super) fn scripts_of_all(&mut self, name: &str, depth: usize) -> bool {
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
    pub(super) fn named_scripts(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
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

    pub(super) fn manifest(&self, directory: &str, name: &str) -> Option<(String, Value)> {
        let path = resolved(directory, name)?;
        let value = serde_json::from_str(&self.content(&path)?).ok()?;
        Some((path, value))
    }

    /// Follows a script of a `composer.json`, and those that it calls by name.
    pub(super) fn composer(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
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
    pub(super) fn tox(&mut self, directory: &str, depth: usize) -> bool {
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
    pub(super) fn hooks(&mut self, directory: &str, depth: usize) -> bool {
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
    pub(super) fn cargo(&mut self, arguments: &[&str], directory: &str, depth: usize) -> bool {
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
    pub(super) fn go(&mut self, arguments: &[&str], directory: &str) -> bool {
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
    pub(super) fn ctest(&mut self, arguments: &[&str], directory: &str) -> bool {
        let told = arguments.iter().position(|word| *word == "--test-dir");
        let told = told.and_then(|at| arguments.get(at + 1).copied());
        let told = told.or_else(|| arguments.iter().find_map(|word| word.strip_prefix("--test-dir=")));
        let folder = told.map_or_else(|| Some(directory.to_owned()), |to| entered(directory, to));
        let mut waiting: Vec<String> = folder.into_iter().collect();
        for folder in &waiting {
            self.choices_of_cmake(folder);
        }
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

    /// Adds what was chosen for the folder in which a command of cmake or ninja builds.
    pub(super) fn built_in(&mut self, name: &str, arguments: &[&str], directory: &str) -> bool {
        let option = if name == "ninja" { "-C" } else { "--build" };
        let told = arguments.iter().position(|word| *word == option).and_then(|at| arguments.get(at + 1));
        let folder = match told {
            Some(folder) => entered(directory, folder),
            None => (name == "ninja").then(|| directory.to_owned()),
        };
        if let Some(folder) = folder {
            self.choices_of_cmake(&folder);
        }
        false
    }

    /// Adds the file in which cmake keeps what was chosen for a folder, such as whether tests are built.
    fn choices_of_cmake(&mut self, folder: &str) {
        let path = joined(folder, "CMakeCache.txt");
        if self.tree.file(&path).is_some() {
            // One that the check makes anew is that of its sources.
            self.add(path, InstructionPart::Product);
        }
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
