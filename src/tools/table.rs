//! The table as it stands in `catalog/tools.toml`, whose head says what each field means.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;
use serde::Deserialize;

/// The whole table.
pub static TOOLS: LazyLock<ToolTable> = LazyLock::new(|| {
    toml::from_str(include_str!("../../catalog/tools.toml")).expect("a test reads the same file")
});

/// What the file holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolTable {
    /// Options that mean the same for every tool.
    pub options: OptionTable,
    /// How names of tasks speak.
    pub(super) names: NameTable,
    /// The languages.
    #[serde(rename = "ecosystem")]
    pub ecosystems: Vec<Ecosystem>,
    /// Programs that start others.
    #[serde(rename = "caller")]
    pub(super) callers: Vec<ToolCaller>,
    /// The tools.
    #[serde(rename = "tool")]
    pub tools: Vec<Tool>,
    /// What says that a program did not run.
    pub(super) not_run: Vec<NotRunLine>,
}

/// Options, variables and places that mean the same for every tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionTable {
    pub(super) shows: Vec<String>,
    pub(super) writes: Vec<String>,
    pub(super) hides: Vec<String>,
    pub(super) variables: Vec<String>,
    /// Where programs are installed in a checkout, `node_modules/.bin/`.
    pub places: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameTable {
    pub(super) lint: Vec<String>,
    pub(super) format: Vec<String>,
    pub(super) test: Vec<String>,
    pub(super) mends: Vec<String>,
    pub(super) looks: Vec<String>,
    pub(super) never: Vec<String>,
}

/// A language, or another kind of files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecosystem {
    /// Its name.
    pub name: String,
    /// Whose words may stand in the output of its tools.
    pub(super) speak: Vec<String>,
    /// Globs of the files that a verdict depends on.
    pub inputs: Vec<String>,
    /// The files that make a directory a package of it.
    pub manifests: Vec<String>,
    /// Files that say which versions of other people's packages there are: without one of them, what runs code of the
    /// repository is not known. None where its manifests say that.
    #[serde(default)]
    pub locks: Vec<String>,
    /// Variables that change what its tools say.
    #[serde(default)]
    pub env: Vec<String>,
    /// Names of folders in which its tools keep what they have built or installed.
    #[serde(default)]
    pub stores: Vec<String>,
}

/// A program that starts another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCaller {
    pub(super) words: Vec<String>,
    #[serde(default)]
    pub(super) flags: Vec<String>,
    #[serde(default)]
    pub(super) valued: Vec<String>,
    /// How many words of its own it takes before the program.
    #[serde(default)]
    pub(super) counts: usize,
    /// Whether `-m` may stand before a module, as with `python`.
    #[serde(default)]
    pub(super) modules: bool,
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Mistakes.
    Lint,
    /// The format of files.
    Format,
    /// Tests.
    Test,
    /// Whether it can be built, the documents included.
    Build,
}

impl Purpose {
    /// All of them, in the order in which a loop asks.
    pub const ALL: [Self; 4] = [Self::Lint, Self::Format, Self::Build, Self::Test];

    /// Returns its name, which a state has.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lint => "lint",
            Self::Format => "format",
            Self::Test => "test",
            Self::Build => "build",
        }
    }
}

/// A tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The name of its [`Ecosystem`].
    pub ecosystem: String,
    programs: Option<Vec<String>>,
    #[serde(default)]
    pub(super) modules: Vec<String>,
    /// Scripts by which it is called, as the first argument of an interpreter.
    #[serde(default)]
    pub(super) scripts: Vec<String>,
    /// Files that configure it.
    #[serde(default)]
    pub config: Vec<String>,
    /// Shared files that may configure it, each with the beginning of the line that does.
    #[serde(default)]
    pub sections: BTreeMap<String, String>,
    /// Actions that run it in workflows, each with the command that it stands for.
    #[serde(default)]
    pub actions: BTreeMap<String, String>,
    /// Inputs of those actions without whose values they only report, and never fail.
    #[serde(default)]
    pub gates: BTreeMap<String, String>,
    /// Inputs of those actions, each with the option that it is; none for its paths.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// The command to write where a repository has only its configuration.
    pub offer: Option<String>,
    /// Patterns of the files that this command has to be given, as git knows them; none where it finds them by itself.
    #[serde(default)]
    pub offer_files: Vec<String>,
    #[serde(default)]
    pub(super) valued: Vec<String>,
    #[serde(default)]
    pub(super) toolchain: bool,
    #[serde(default)]
    pub(super) could_not_run: Vec<i32>,
    /// The exit codes that say no, as a loop file lists them, where `nonzero` has not all of them.
    pub failed: Option<String>,
    /// Other tools whose configuration it reads: who calls it does not call those.
    #[serde(default)]
    pub reads_config_of: Vec<String>,
    /// Whether it passes over files that git ignores, unless a command names them.
    #[serde(default)]
    pub heeds_ignores: bool,
    /// A command whose output changes when its verdict may.
    pub version: Option<String>,
    /// The command that installs it on the runner of a CI.
    pub install: Option<String>,
    /// The commands that install a version of it, `{version}` in its place, by how versions begin.
    #[serde(default)]
    pub install_version: BTreeMap<String, String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pure: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    others: Vec<String>,
    #[serde(rename = "check")]
    pub(super) checks: Vec<ToolCheck>,
}

/// Returns the command of an action with what is said of its inputs in their places, `<command:check>` and `<--option=input>`.
pub fn with_places<'i>(command: &str, input: impl Fn(&str) -> Option<&'i str>) -> String {
    let mut parts = command.split('<');
    let mut filled = parts.next().unwrap_or("").to_owned();
    for (place, behind) in parts.filter_map(|part| part.split_once('>')) {
        let (named, usual) = place.split_once(':').unwrap_or((place, ""));
        let (option, name) = named.rsplit_once('=').map_or(("", named), |(option, name)| (option, name));
        let value = input(name).unwrap_or(usual).trim();
        match option {
            _ if value.is_empty() => {}
            "" => filled.push_str(value),
            option => filled.extend([option, "=", value]),
        }
        filled.push_str(behind);
    }
    filled.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Tool {
    /// Returns the words by which it is called.
    pub fn programs(&self) -> &[String] {
        self.programs.as_deref().unwrap_or(std::slice::from_ref(&self.name))
    }

    /// Returns the language that it is for.
    pub fn ecosystem(&self) -> &'static Ecosystem {
        let found = TOOLS.ecosystems.iter().find(|ecosystem| ecosystem.name == self.ecosystem);
        found.expect("a test finds the ecosystem of each tool")
    }

    /// Returns the globs of the files that its verdict depends on.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        let of_language = self.ecosystem().inputs.iter();
        of_language.chain(&self.config).chain(self.sections.keys()).map(String::as_str)
    }
}

/// What a tool does when it neither looks nor is told to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BareCall {
    /// It says nothing about the files.
    #[default]
    Nothing,
    /// It mends them.
    Mend,
}

/// A way of calling a tool that looks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolCheck {
    /// The subcommand; none is the tool itself.
    pub words: Vec<String>,
    /// What it is about; none where the names of tasks say it.
    pub purpose: Option<Purpose>,
    pub(super) needs: Vec<String>,
    pub(super) bare: BareCall,
    pub(super) mends: Vec<String>,
    pub(super) never: Vec<String>,
    /// What mends it finds.
    pub mend: Option<String>,
    /// Patterns of all files that its verdict depends on, where it depends on nothing else but the version of the tool and the
    /// variables of its language.
    pub reads: Vec<String>,
    pub(super) tasks: bool,
    pub(super) names: Vec<String>,
    /// What some of these names are about, where they do not say it as the names of tasks do.
    pub(super) about: BTreeMap<String, Purpose>,
    pub(super) environments: Vec<String>,
    pub(super) flags: Vec<String>,
    pub(super) valued: Vec<String>,
    pub(super) pairs: Vec<String>,
    pub(super) skips: usize,
    /// Words among the names of tasks that say for what these are called. An entry that ends with `*` is the beginning of one.
    pub(super) settings: Vec<String>,
    pub(super) alone: bool,
    pub(super) could_not_run: Option<Vec<i32>>,
}

/// What is missing where a tool could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lack {
    /// What the repository depends on is not installed.
    Packages,
    /// A program.
    Program,
    /// A configuration that it understands.
    Configuration,
    /// The network, or a server.
    Network,
    /// Another version of the language or of the tool.
    Version,
}

/// A line by which a program says that it did not run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotRunLine {
    pub(super) by: String,
    line: String,
    #[serde(default)]
    pub(super) exits: Vec<i32>,
    beside: Option<String>,
    pub(super) lacks: Lack,
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for tests"))]
    example: String,
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    others: Vec<String>,
    /// Made when a check has failed, which most never do.
    #[serde(skip)]
    compiled: OnceLock<Regex>,
    #[serde(skip)]
    compiled_beside: OnceLock<Regex>,
}

impl NotRunLine {
    /// Returns the line that says it, if one of these does.
    pub(super) fn find<'l>(&self, lines: &[&'l str]) -> Option<&'l str> {
        let regex = self.compiled.get_or_init(|| compile(&self.line));
        let found = lines.iter().copied().find(|line| regex.is_match(line))?;
        let is_beside = self.beside.as_ref().is_none_or(|beside| {
            let regex = self.compiled_beside.get_or_init(|| compile(beside));
            lines.iter().any(|line| regex.is_match(line))
        });
        is_beside.then_some(found)
    }
}

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test compiles each pattern of the file")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::recognise::{pure_check, recognise};
    use super::*;

    fn words(text: &str) -> Vec<String> {
        shlex::split(text).unwrap()
    }

    #[test]
    fn every_example_of_a_tool_is_what_it_says() {
        let mut wrong = Vec::new();
        for tool in &TOOLS.tools {
            assert!(!tool.pure.is_empty() && !tool.others.is_empty(), "{} has no examples", tool.name);
            let examples = tool.pure.iter().map(|example| (example, Some(tool.name.as_str())));
            for (example, expected) in examples.chain(tool.others.iter().map(|example| (example, None))) {
                let found = pure_check(&words(example)).map(|found| found.name.as_str());
                if found != expected {
                    wrong.push(format!("`{example}` is {found:?}, not {expected:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn every_way_of_calling_a_tool_has_an_example() {
        let mut without = Vec::new();
        for tool in &TOOLS.tools {
            for check in &tool.checks {
                let has = |example: &String| {
                    recognise(&words(example)).is_some_and(|found| std::ptr::eq(found.check, check))
                };
                if !tool.pure.iter().chain(&tool.others).any(has) {
                    without.push(format!("{}: {:?}", tool.name, check.words));
                }
            }
        }
        assert!(without.is_empty(), "{without:#?}");
    }

    #[test]
    fn every_line_finds_its_example_and_none_of_the_others() {
        for row in &TOOLS.not_run {
            let beside = "!!! Interrupted: 1 error during collection !!!";
            assert!(row.find(&[&row.example, beside]).is_some(), "{}: {}", row.by, row.example);
        }
        for other in TOOLS.not_run.iter().flat_map(|row| &row.others) {
            let found = TOOLS.not_run.iter().find(|row| row.find(&[other]).is_some());
            assert!(found.is_none(), "{other} is found by {:?}", found.map(|row| &row.line));
        }
    }

    #[test]
    fn what_the_table_names_is_there_and_once() {
        let ecosystems: BTreeSet<&str> = TOOLS.ecosystems.iter().map(|one| one.name.as_str()).collect();
        let bys: BTreeSet<&str> = TOOLS.not_run.iter().map(|row| row.by.as_str()).collect();
        let mut names = BTreeSet::new();
        for tool in &TOOLS.tools {
            assert!(ecosystems.contains(tool.ecosystem.as_str()), "{}", tool.ecosystem);
            assert!(names.insert(&tool.name), "{} is there twice", tool.name);
            assert!(tool.version.is_some() || tool.offer.is_none(), "{} has no version", tool.name);
            let offer = tool.offer.as_deref().map(words);
            let is_pure =
                offer.is_none_or(|offer| pure_check(&offer).is_some_and(|found| found.name == tool.name));
            for command in tool.actions.values().map(|command| with_places(command, |_| None)) {
                assert!(
                    pure_check(&words(&command)).is_some_and(|found| found.name == tool.name),
                    "{command}"
                );
            }
            assert!(is_pure, "{}: what is offered is not a check of it: {:?}", tool.name, tool.offer);
        }
        for ecosystem in &TOOLS.ecosystems {
            assert!(ecosystem.speak.iter().all(|by| bys.contains(by.as_str())), "{:?}", ecosystem.speak);
        }
    }

    #[test]
    fn what_mends_is_no_check() {
        for check in TOOLS.tools.iter().flat_map(|tool| &tool.checks) {
            let Some(mend) = &check.mend else { continue };
            assert!(pure_check(&words(mend)).is_none(), "{mend}");
        }
    }
}
