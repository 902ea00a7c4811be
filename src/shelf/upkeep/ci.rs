//! What the CI of a repository runs: the lines of its jobs, the actions these use, and what speaks against taking a line by itself.

use std::collections::BTreeSet;

use super::found_repository::{Evidence, Finding, Repository};
use super::job_services::{JobContainer, JobServices};
use super::lined_yaml;
use super::rust_toolchain::{self, RustToolchain, with_toolchain};
use super::script_lines::without_assignments;
use super::terminal::{TerminalCall, without_terminal};
use super::unused::{Reason, UnusedCommand};
use super::when_jobs_run::{OtherMachine, is_channel};
use crate::base::node::Node;
use crate::base::text::{after_last, up_to};
use crate::tools::{Manner, Purpose, recognise_line};

/// What speaks against taking a line of a job by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Caveat {
    /// The job has started something before that still runs.
    BesideOthers,
    /// The job has fetched before what another one made.
    FetchesBuilt,
    /// Its variables are those of one event, such as a proposed change.
    FedByEvent,
    /// The job has checked another state of the repository out.
    OtherState,
    /// The job has put a build before where other builds of the machine find it.
    HandsOn,
    /// Only jobs of its matrix with another toolchain do it.
    OtherInterpreter,
    /// An earlier command of its line is not known.
    BehindUnknown,
    /// It is a part of a line of which only this part is understood.
    PartOfBuild,
    /// The job has a service of which only it knows all.
    LacksService,
    /// It runs only where an earlier step of its job has found something.
    AsksEarlier,
    /// It runs when a change is merged, where others run before.
    AfterMerge,
    /// It runs only for changes that somebody has put a label on.
    AsksForLabel,
    /// Earlier steps say what its variables are.
    FedBySteps,
    /// The job has altered before what it had checked out.
    AltersCheckout,
    /// It asks for a toolchain of its own.
    OtherToolchain,
    /// The job has prepared its machine before in a way that no other job can be told.
    Prepared,
    /// It is given secrets, which a change of a stranger does not have.
    HasSecrets,
}

impl Caveat {
    /// Tells whether it needs more than its own words: it is no check.
    fn needs_others(self) -> bool {
        match self {
            Self::BesideOthers
            | Self::FetchesBuilt
            | Self::FedByEvent
            | Self::OtherState
            | Self::HandsOn
            | Self::OtherInterpreter
            | Self::BehindUnknown
            | Self::PartOfBuild => true,
            Self::LacksService
            | Self::AsksEarlier
            | Self::AfterMerge
            | Self::AsksForLabel
            | Self::FedBySteps
            | Self::AltersCheckout
            | Self::OtherToolchain
            | Self::Prepared
            | Self::HasSecrets => false,
        }
    }

    /// Tells whether it gives way to what other jobs do.
    pub(super) fn is_second_choice(self) -> bool {
        match self {
            Self::AfterMerge
            | Self::AsksForLabel
            | Self::FedBySteps
            | Self::AltersCheckout
            | Self::OtherToolchain => true,
            Self::BesideOthers
            | Self::FetchesBuilt
            | Self::FedByEvent
            | Self::OtherState
            | Self::HandsOn
            | Self::OtherInterpreter
            | Self::BehindUnknown
            | Self::PartOfBuild
            | Self::LacksService
            | Self::AsksEarlier
            | Self::Prepared
            | Self::HasSecrets => false,
        }
    }

    /// Returns why a line that has it may be no check.
    pub(super) fn reason(self) -> Reason {
        match self {
            Self::BesideOthers => Reason::BesideOthers,
            Self::FetchesBuilt => Reason::FetchesBuilt,
            Self::FedByEvent => Reason::FedByEvent,
            Self::OtherState => Reason::OtherState,
            Self::HandsOn => Reason::HandsOn,
            Self::OtherInterpreter => Reason::OtherInterpreter,
            Self::BehindUnknown => Reason::BehindUnknown,
            Self::PartOfBuild => Reason::PartOfBuild,
            Self::LacksService => Reason::LacksService,
            Self::AsksEarlier => Reason::AsksEarlier,
            Self::AfterMerge => Reason::AfterMerge,
            Self::AsksForLabel => Reason::AsksForLabel,
            Self::FedBySteps => Reason::FedBySteps,
            Self::AltersCheckout => Reason::AltersCheckout,
            Self::OtherToolchain => Reason::OtherToolchain,
            Self::Prepared => Reason::HasPlainer,
            Self::HasSecrets => Reason::HasSecrets,
        }
    }
}

/// What a line stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Itself.
    Usual,
    /// All of a step that installs something.
    InstallOfStep,
}

/// A line that a job runs.
#[derive(Clone, Debug)]
pub(super) struct CiCommand {
    /// The command, which needs nothing of the job around it.
    pub(super) command: String,
    pub(super) kind: LineKind,
    /// The directory in which it is called; empty for the top.
    pub(super) directory: String,
    /// The job, named with its file.
    pub(super) job: String,
    /// The machine that it needs, where it is not Linux.
    pub(super) machine: Option<OtherMachine>,
    pub(super) caveats: BTreeSet<Caveat>,
    /// The condition by which it runs in other jobs of a matrix than the one whose place a loop takes.
    pub(super) condition: Option<String>,
    /// Whether that asks for another version.
    pub(super) is_of_other_version: bool,
    /// Whether its job checks the repository out behind it.
    pub(super) is_before_checkout: bool,
    /// Whether its job runs in a container.
    pub(super) is_contained: bool,
    /// The toolchain of Rust that it is made with, should it call cargo.
    pub(super) toolchain: RustToolchain,
    /// The variables that the job has for it, the nearest first.
    pub(super) variables: Vec<(String, String)>,
    /// How many of them are of its step.
    pub(super) of_step: usize,
    /// The names of those that stand in it with their values.
    pub(super) named: Vec<String>,
    /// Where its step stands in its file.
    pub(super) step: usize,
    /// The name of its step, where that does nothing else.
    pub(super) title: Option<String>,
    pub(super) evidence: Evidence,
}

/// An action that a job uses, with the values that are not expressions.
#[derive(Clone, Debug)]
pub(super) struct CiAction {
    pub(super) name: String,
    /// What stands behind its name: a tag, a branch or a commit.
    pub(super) version: String,
    /// Its commit with the comment behind it, as a workflow of ours may have it; nothing where it has no commit, or had another name.
    pub(super) pin: Option<String>,
    /// The job, named with its file.
    pub(super) job: String,
    pub(super) with: Vec<(String, String)>,
    /// Those that are variables whose values are written in the file.
    pub(super) of_variables: Vec<(String, String)>,
    /// Those that the matrix of the job says, as the one has them whose place a loop takes.
    pub(super) of_matrix: Vec<(String, String)>,
    /// The same in each job of the matrix that could be that one.
    pub(super) of_rows: Vec<(String, String)>,
    /// The inputs for which the matrix has a channel among its versions.
    pub(super) of_channels: BTreeSet<String>,
    /// Whether this is all that it is given, and no condition decides whether it is called.
    pub(super) is_whole: bool,
}

impl CiAction {
    /// Returns its inputs whose values are known without a variable.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &(String, String)> {
        self.with.iter().chain(&self.of_matrix)
    }

    /// Tells whether an input is a channel in some job.
    pub(super) fn has_channel(&self, input: &str) -> bool {
        self.of_channels.contains(input)
            || self.inputs().any(|(known, value)| known == input && is_channel(value))
    }
}

/// The version that an action is given for most of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UsualVersion {
    pub(super) action: String,
    pub(super) input: String,
    pub(super) version: String,
}

/// What the workflows of a repository say.
#[derive(Clone, Debug, Default)]
pub(super) struct CiContents {
    pub(super) commands: Vec<CiCommand>,
    /// What is called with a terminal alone.
    pub(super) on_terminal: Vec<TerminalCall>,
    pub(super) actions: Vec<CiAction>,
    /// Actions of the repository itself, by their directories, whose inputs are all written in the file.
    pub(super) local_actions: Vec<CiAction>,
    /// What jobs have beside their steps.
    pub(super) services: Vec<JobServices>,
    pub(super) containers: Vec<JobContainer>,
    /// Variables that the workflows put into their own lines: they are for those.
    pub(super) put_in: BTreeSet<String>,
    /// The branches whose pushes start the workflows, where these name them one by one.
    pub(super) branches: Vec<String>,
    /// How many minutes jobs may take, where the file says it.
    pub(super) minutes: Vec<(String, u32)>,
    /// The image that GitLab's jobs run in.
    pub(super) image: Option<String>,
    /// The runner of GitHub's jobs, where every job that checks the repository out needs macOS.
    pub(super) macos: Option<String>,
    /// The runners of those jobs.
    pub(super) runners: Vec<String>,
    /// The lines that only another machine can do.
    pub(super) of_other_machines: Vec<CiCommand>,
    /// What is known to be no check where it is read.
    pub(super) unused: Vec<UnusedCommand>,
    /// The versions with which most checks are made, where these are not the newest ones.
    pub(super) usual_versions: Vec<UsualVersion>,
    /// The lines that run the hooks of pre-commit, also those that are no checks by themselves.
    pub(super) hooks: Vec<CiCommand>,
}

/// Says of a check that it is none of a loop.
pub(super) fn unused_finding(finding: Finding, why: Reason) -> UnusedCommand {
    UnusedCommand { command: finding.command, directory: finding.directory, evidence: finding.evidence, why }
}

impl CiContents {
    /// Tells whether a command names a directory that another line of its job makes.
    pub(super) fn makes_place_of(&self, line: &CiCommand) -> bool {
        let of_job = self.commands.iter().filter(|other| other.job == line.job);
        let mut made = of_job.filter_map(|other| other.command.strip_prefix("mkdir "));
        let names = |place: &str| words(&line.command).iter().any(|word| word.trim_end_matches('/') == place);
        made.any(|places| {
            places.split(' ').any(|place| !place.is_empty() && names(place.trim_end_matches('/')))
        })
    }

    /// Tells whether the workflows call the tests of a toolchain only where they have something that a call by itself has not: a server,
    /// or another machine.
    pub(super) fn needs_others(&self, test: &Finding) -> bool {
        let tool = recognise_line(&test.command).map(|found| found.tool.name.as_str());
        let is_of_tool = |line: &&CiCommand| {
            recognise_line(&line.command).is_some_and(|found| {
                Some(found.tool.name.as_str()) == tool
                    && found.manner == Manner::Pure
                    && found.purpose == Some(Purpose::Test)
            })
        };
        let mut here = self.commands.iter().filter(is_of_tool).peekable();
        let is_called = here.peek().is_some() || self.of_other_machines.iter().any(|line| is_of_tool(&line));
        let is_mixed = self.is_mixed();
        tool.is_some() && is_called && here.all(|line| line.needs_others() || is_mixed && line.is_contained)
    }

    /// Returns the line that calls the tests of `CMake`, in a step that needs others before it.
    pub(super) fn call_of_ctest(&self) -> Option<&CiCommand> {
        let all = || self.commands.iter();
        all().find(|line| calls_ctest(line)).or_else(|| all().find(|line| self.tests_by_made_makefile(line)))
    }

    /// Tells whether a line calls the tests of a Makefile that `CMake` has made: an earlier line of its job calls that in the same
    /// directory, below the top.
    fn tests_by_made_makefile(&self, line: &CiCommand) -> bool {
        let is_before = |other: &&CiCommand| other.evidence.line < line.evidence.line;
        let is_cmake = |other: &CiCommand| words(&other.command).first() == Some(&"cmake");
        let of_job = self.commands.iter().filter(|other| other.job == line.job).filter(is_before);
        let mut here = of_job.filter(|other| other.directory == line.directory);
        let calls_tests = matches!(words(&line.command).as_slice(), ["make", "test", ..]);
        calls_tests && !line.directory.is_empty() && here.any(is_cmake)
    }

    /// Tells whether the tests of `CMake` are called in some line, also one that only its job knows all of.
    pub(super) fn tests_by_cmake(&self) -> bool {
        let mut all = self.commands.iter().chain(&self.of_other_machines);
        all.any(|line| calls_ctest(line) || self.tests_by_made_makefile(line))
    }

    /// Tells whether some jobs make checks in a container and others without one: no job of ours is both.
    pub(super) fn is_mixed(&self) -> bool {
        let looks = |line: &&CiCommand| {
            !line.needs_others()
                && recognise_line(&line.command).is_some_and(|found| found.manner == Manner::Pure)
        };
        let mut checks = self.commands.iter().filter(looks);
        let first = checks.next().map(|line| line.is_contained);
        first.is_some() && checks.any(|line| Some(line.is_contained) != first)
    }

    /// Tells whether each line that makes a check stands in a job with a container, which has what the check needs, while other checks
    /// are made without one.
    pub(super) fn is_only_contained(&self, check: &Finding) -> bool {
        self.is_always_contained(check) && self.is_mixed()
    }

    /// Tells whether each line that makes a check stands in a job with a container.
    pub(super) fn is_always_contained(&self, check: &Finding) -> bool {
        let mut lines = self.commands.iter().filter(|line| line.makes(check)).peekable();
        lines.peek().is_some() && lines.all(|line| line.is_contained)
    }

    /// Notes the branches that a workflow names whose pushes start it. A pattern names none.
    pub(super) fn note_branches(&mut self, workflow: &Node) {
        let of_push = workflow.get("on").and_then(|on| on.get("push")).and_then(|push| push.get("branches"));
        let named = lined_yaml::items(of_push).iter().filter_map(|item| lined_yaml::text(Some(item)));
        let is_name =
            |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
        for name in named.filter(is_name) {
            if self.branches.len() < MOST_BRANCHES && !self.branches.iter().any(|known| known == name) {
                self.branches.push(name.to_owned());
            }
        }
    }

    /// Says with which toolchain cargo is called, where no job makes a check with the one that everybody has: a nightly one is named by
    /// the command, and what is only tried with an old number is tried with that.
    pub(super) fn settle_toolchains(&mut self, repository: &Repository) {
        // What a job installs by cargo is a program, whatever it was built with.
        let looks = |line: &CiCommand| {
            recognise_line(&line.command).is_some_and(|found| found.manner != Manner::Other)
        };
        let is_cargo = |line: &CiCommand| match words(&line.command).as_slice() {
            ["cargo", "xtask" | "build" | "b", ..] => true,
            ["cargo", ..] => looks(line),
            _ => false,
        };
        let all: Vec<CiCommand> = self.commands.iter().filter(|line| is_cargo(line)).cloned().collect();
        // Where everything is made with a number, that is how the repository says what it uses.
        let is_pinned = all.iter().all(|line| line.toolchain.is_numbered());
        let newest_number = all.iter().filter_map(|line| line.toolchain.number()).max();
        // Beside an older one that is still supported, the newest number is the one that all is made with.
        let oldest = oldest_supported(repository);
        let is_usual = |line: &CiCommand| {
            let number = line.toolchain.number();
            number == newest_number && oldest.is_some() && oldest < number
        };
        let has_file = |line: &CiCommand| {
            ["rust-toolchain.toml", "rust-toolchain"]
                .iter()
                .any(|file| repository.has(file) || repository.has(joined(&line.directory, file).as_str()))
        };
        for line in self.commands.iter_mut().filter(|line| is_cargo(line) && !has_file(line)) {
            let same: Vec<&CiCommand> =
                all.iter().filter(|other| words(&other.command) == words(&line.command)).collect();
            if same.iter().all(|other| other.toolchain.nightly().is_some()) {
                let named = line.toolchain.nightly().and_then(|name| with_toolchain(&line.command, name));
                if let Some(named) = named {
                    line.command = named;
                }
            } else if !is_pinned && same.iter().all(|other| is_usual(other)) {
                let named = line.toolchain.name().and_then(|name| with_toolchain(&line.command, name));
                if let Some(named) = named {
                    line.command = named;
                }
            } else if !is_pinned && same.iter().all(|other| other.toolchain.is_numbered()) {
                line.caveats.insert(Caveat::OtherToolchain);
            }
        }
    }

    /// Leaves out what only another machine can do, unless no job runs on any but macOS.
    pub(super) fn settle(&mut self) {
        let machines: Vec<Option<OtherMachine>> =
            self.runners.iter().map(|label| OtherMachine::of_label(label)).collect();
        let is_of_macos =
            !machines.is_empty() && machines.iter().all(|one| *one == Some(OtherMachine::Macos));
        self.macos = self.runners.first().filter(|_| is_of_macos).cloned();
        let is_possible = |command: &CiCommand| match command.machine {
            None => true,
            Some(OtherMachine::Macos) => is_of_macos,
            // ll-loop itself does not run on Windows.
            Some(OtherMachine::Windows) => false,
        };
        let (possible, other) = std::mem::take(&mut self.commands).into_iter().partition(is_possible);
        self.commands = possible;
        self.of_other_machines = other;
    }
}

/// Tells whether a line calls the tests of `CMake` by its own programs.
fn calls_ctest(line: &CiCommand) -> bool {
    matches!(words(&line.command).as_slice(), ["ctest", ..] | ["cmake", "--workflow", ..])
}

/// Returns the definitions, `NAME=VALUE`, with which the job that calls the tests of `CMake` configures them.
pub(super) fn definitions_of_ctest(contents: &CiContents) -> Vec<String> {
    let Some(call) = contents.call_of_ctest() else { return Vec::new() };
    let of_job = contents.commands.iter().filter(|line| line.job == call.job);
    let configured = of_job.filter(|line| words(&line.command).first() == Some(&"cmake"));
    configured.flat_map(|line| definitions(&line.command)).collect()
}

/// Returns the definitions among the words of a line that are written as they are.
pub(super) fn definitions(line: &str) -> Vec<String> {
    let is_literal =
        |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:=.+-".contains(&byte));
    // `-D NAME=VALUE` is two words.
    let line = line.replace(" -D ", " -D");
    let defined = line.split_whitespace().filter_map(|word| word.strip_prefix("-D"));
    defined.filter(is_literal).filter(|text| text.contains('=')).map(str::to_owned).collect()
}

/// Returns the words of a command that say what is called: without the variables before it, without the `run` that may be left out
/// before the script of a package, and of nox and tox without what starts them, and how.
pub(super) fn words(command: &str) -> Vec<&str> {
    let all: Vec<&str> = without_terminal(without_assignments(command)).split_whitespace().collect();
    let is_runner = |word: &&str| matches!(*word, "nox" | "tox");
    if let Some(at) = all.iter().rposition(is_runner).filter(|at| starts_python(&all[..*at])) {
        let own = all[at..].iter().take_while(|word| **word != "--");
        let plain = own.filter(|word| !matches!(**word, "run" | "r" | "--skip-pkg-install"));
        return plain
            .map(|word| if matches!(*word, "--session" | "--sessions") { "-s" } else { word })
            .collect();
    }
    let is_manager = matches!(all.first(), Some(&("npm" | "pnpm" | "yarn" | "bun")));
    all.into_iter().filter(|word| !(is_manager && *word == "run")).collect()
}

/// Tells whether a command that is called in a directory is a check.
pub(super) fn is_call(directory: &str, command: &str, check: &Finding) -> bool {
    directory == check.directory && words(command) == words(&check.command)
}

/// Tells whether these words start a tool of Python, however many options they have; none do, too.
fn starts_python(words: &[&str]) -> bool {
    let Some(program) = words.first() else { return true };
    matches!(*program, "uv" | "uvx" | "pipx" | "poetry" | "pdm" | "hatch" | "python" | "python3")
}

/// The most branches that are taken from workflows.
const MOST_BRANCHES: usize = 6;

impl CiCommand {
    /// Tells whether this speaks against taking it by itself.
    pub(super) fn has(&self, caveat: Caveat) -> bool {
        self.caveats.contains(&caveat)
    }

    /// Tells whether it calls what a check calls, in the same place.
    pub(super) fn is_call_of(&self, check: &Finding) -> bool {
        is_call(&self.directory, &self.command, check)
    }

    /// Tells whether it makes a check: it is the line that the check was found in, or calls the same.
    pub(super) fn makes(&self, check: &Finding) -> bool {
        self.evidence == check.evidence || self.is_call_of(check)
    }

    /// Tells whether it needs more than its own words.
    pub(super) fn needs_others(&self) -> bool {
        self.caveats.iter().any(|caveat| caveat.needs_others())
    }

    /// Tells whether it gives way to what other jobs do.
    pub(super) fn is_second_choice(&self) -> bool {
        self.caveats.iter().any(|caveat| caveat.is_second_choice())
    }

    /// Tells whether nothing speaks against taking it elsewhere.
    pub(super) fn stands_by_itself(&self) -> bool {
        !self.needs_others()
            && !self.is_second_choice()
            && !self.has(Caveat::LacksService)
            && !self.has(Caveat::AsksEarlier)
    }

    /// Tells whether its job has prepared for it what no other job can be told: its machine, or secrets.
    pub(super) fn is_prepared_or_secret(&self) -> bool {
        self.has(Caveat::Prepared) || self.has(Caveat::HasSecrets)
    }

    /// Takes it for a test as it is written.
    pub(super) fn as_test(&self) -> Finding {
        Finding {
            purpose: Some(Purpose::Test),
            is_fix: false,
            command: self.command.clone(),
            directory: self.directory.clone(),
            evidence: self.evidence.clone(),
        }
    }

    /// Says of it that it is no check.
    pub(super) fn unused(&self, why: Reason) -> UnusedCommand {
        UnusedCommand {
            command: self.command.clone(),
            directory: self.directory.clone(),
            evidence: self.evidence.clone(),
            why,
        }
    }

    /// Tells whether it is a check of a job, of a tool that is known.
    pub(super) fn is_check_of(&self, job: &str) -> bool {
        self.job == job && recognise_line(&self.command).is_some_and(|found| found.manner == Manner::Pure)
    }
}

/// What stands before the name of an action that is no check.
pub(super) const CALL_OF_ACTION: &str = "uses: ";

pub(super) fn unused_line(line: &str, directory: &str, evidence: Evidence, why: Reason) -> UnusedCommand {
    UnusedCommand { command: line.trim().to_owned(), directory: directory.to_owned(), evidence, why }
}

/// Returns the oldest version of Rust that the repository says it supports.
fn oldest_supported(repository: &Repository) -> Option<Vec<u32>> {
    let is_key = |line: &&str| line.trim_start().starts_with("rust-version");
    let line = repository.text("Cargo.toml")?.lines().find(is_key)?;
    rust_toolchain::number(line.split(['"', '\'']).nth(1)?)
}

/// Tells whether the version of an action is a commit.
pub(super) fn is_commit(version: &str) -> bool {
    version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Tells whether an action sets something up, by its name. Others may be given a token to write with it.
pub(super) fn is_of_set_up(name: &str) -> bool {
    let own = after_last(up_to(name, &['@']), &['/']);
    let has = |known: &[&str]| own.split('-').any(|word| known.contains(&word));
    // What a project depends on, a line of ours installs.
    let is_of_packages =
        has(&["composer", "npm", "pnpm", "yarn", "bundle", "bundler", "deps", "dependencies"]);
    let fetches = own.starts_with("download-") && own != "download-artifact";
    has(&["setup"]) || !is_of_packages && (fetches || has(&["install", "installer", "binstall"]))
}

/// A place that is no part of the repository.
pub(super) const OUTSIDE: &str = "..";

/// Joins directories; what leads out of the repository stays outside.
pub(super) fn joined(above: &str, below: &str) -> String {
    let mut parts: Vec<&str> = above.split('/').filter(|part| !part.is_empty()).collect();
    for part in below.trim_matches(['"', '\'']).split('/') {
        match part {
            "" | "." => {}
            OUTSIDE if parts.last().is_some_and(|last| *last != OUTSIDE) => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_outside_is_no_place_of_the_repository() {
        for (above, below, expected) in [
            ("", "a/./b/", "a/b"),
            ("a/b", "..", "a"),
            ("a", "../../x", "../x"),
            ("", "../../x/..", "../.."),
            ("..", "x", "../x"),
        ] {
            assert_eq!(joined(above, below), expected, "{above} and {below}");
        }
    }
}
