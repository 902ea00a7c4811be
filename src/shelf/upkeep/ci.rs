//! What the workflows of a repository run already.

use std::collections::BTreeSet;

use super::altered_checkout::{alters_checkout, alters_files, writes_over};
use super::checkouts::Checkouts;
use super::found_repository::{Evidence, Finding, Repository};
use super::install_lines::{adds_source, is_install, makes_ready};
use super::job_services::{JobContainer, JobServices, variables};
use super::lined_yaml;
use super::matrix_leg::MatrixLeg;
use super::named_environments;
use super::no_checks::is_plainly_none;
use super::node_packages::package_manager;
use super::recipes::{MAKEFILES, first_recipe, recipes};
use super::result_files::{without_options, without_result_files};
use super::rust_toolchain::{self, RustToolchain, with_toolchain};
use super::script_lines::{
    StepShell, asks_git, is_plain, is_plain_input, logical_lines, understood_commands, why_not_understood,
    with_questions, without_assignments, without_messages, without_reporter,
};
use super::terminal::{TerminalCall, is_terminal, without_terminal};
use super::unused::{Reason, UnusedCommand};
use super::when_jobs_run::{
    Matrix, OtherMachine, asks_earlier_steps, asks_for_label, has_task_each, is_after_merge, is_before_merge,
    is_channel, is_only_called, is_started_by_changes, label_of_matrix, leaves_tasks_out, lines_of_matrix,
    matrix, may_fail, needs_another_event, steps, value_of_matrix, version_parts, whole_line,
    without_failing,
};
use crate::base::node::{Entry, Node};
use crate::base::text::{after_last, first_word, up_to};
use crate::judges::tree::extension;
use crate::tools::{
    Manner, Purpose, Recognised, TOOLS, Tool, builds_documents, is_other, is_some_check, is_some_test,
    recognise, recognise_line, task_kind, with_places,
};

/// The workflow that `init` writes: what stands there is not what the repository said by itself.
pub(super) const OWN_WORKFLOWS: [&str; 2] =
    [".github/workflows/ll-loop.yml", ".gitlab/ll-loop.gitlab-ci.yml"];

/// What speaks against taking a line of a job by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Caveat {
    /// The job has started something before that still runs.
    BesideOthers,
    /// The job has fetched before what another one made.
    FetchesBuilt,
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
    fn is_second_choice(self) -> bool {
        match self {
            Self::AfterMerge
            | Self::AsksForLabel
            | Self::FedBySteps
            | Self::AltersCheckout
            | Self::OtherToolchain => true,
            Self::BesideOthers
            | Self::FetchesBuilt
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
    fn reason(self) -> Reason {
        match self {
            Self::BesideOthers => Reason::BesideOthers,
            Self::FetchesBuilt => Reason::FetchesBuilt,
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

/// A line that a job runs.
#[derive(Clone, Debug)]
pub(super) struct CiCommand {
    /// The command, which needs nothing of the job around it.
    pub(super) command: String,
    /// The directory in which it is called; empty for the top.
    pub(super) directory: String,
    /// The job, named with its file.
    pub(super) job: String,
    /// The machine that it needs, where it is not Linux.
    machine: Option<OtherMachine>,
    caveats: BTreeSet<Caveat>,
    /// The condition by which it runs in other jobs of a matrix than the one whose place a loop takes.
    pub(super) condition: Option<String>,
    /// Whether that asks for another version.
    is_of_other_version: bool,
    /// Whether its job checks the repository out behind it.
    pub(super) is_before_checkout: bool,
    /// Whether its job runs in a container.
    is_contained: bool,
    /// The toolchain of Rust that it is made with, should it call cargo.
    pub(super) toolchain: RustToolchain,
    /// The variables that the job has for it, the nearest first.
    pub(super) variables: Vec<(String, String)>,
    /// How many of them are of its step.
    pub(super) of_step: usize,
    /// Where its step stands in its file.
    pub(super) step: usize,
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
    /// The inputs for which the matrix has a channel among its versions.
    of_channels: BTreeSet<String>,
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
    /// The image that GitLab's jobs run in.
    pub(super) image: Option<String>,
    /// The runner of GitHub's jobs, where every job that checks the repository out needs macOS.
    pub(super) macos: Option<String>,
    /// The runners of those jobs.
    runners: Vec<String>,
    /// The lines that only another machine can do.
    of_other_machines: Vec<CiCommand>,
    /// What is known to be no check where it is read.
    pub(super) unused: Vec<UnusedCommand>,
}

/// What the workflows check, and what they run besides.
#[derive(Clone, Debug, Default)]
pub(super) struct CiChecks {
    /// The checks, and what mends.
    pub(super) found: Vec<Finding>,
    /// Everything else.
    pub(super) unused: Vec<UnusedCommand>,
}

/// A check that several lines of a job make together.
#[derive(Clone, Debug)]
pub(super) struct ComposedCheck {
    pub(super) finding: Finding,
    /// Which of all lines it is made of; those that are left are looked at by themselves.
    pub(super) lines: Vec<usize>,
}

impl CiChecks {
    /// Takes out what is as asked, for a reason.
    fn leave_out(&mut self, why: Reason, is_meant: impl Fn(&Finding) -> bool) {
        let (left_out, kept): (Vec<Finding>, Vec<Finding>) =
            std::mem::take(&mut self.found).into_iter().partition(is_meant);
        self.found = kept;
        self.unused.extend(left_out.into_iter().map(|finding| unused_finding(finding, why)));
    }
}

/// Says of a check that it is none of a loop.
pub(super) fn unused_finding(finding: Finding, why: Reason) -> UnusedCommand {
    UnusedCommand { command: finding.command, directory: finding.directory, evidence: finding.evidence, why }
}

impl CiContents {
    /// Tells whether a command names a directory that another line of its job makes.
    fn makes_place_of(&self, line: &CiCommand) -> bool {
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
        let is_of_check = |line: &&CiCommand| {
            line.evidence == check.evidence
                || line.directory == check.directory && words(&line.command) == words(&check.command)
        };
        let mut lines = self.commands.iter().filter(is_of_check).peekable();
        lines.peek().is_some() && lines.all(|line| line.is_contained) && self.is_mixed()
    }

    /// Notes the branches that a workflow names whose pushes start it. A pattern names none.
    fn note_branches(&mut self, workflow: &Node) {
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
    fn settle_toolchains(&mut self, repository: &Repository) {
        // What a job installs by cargo is a program, whatever it was built with.
        let looks = |line: &CiCommand| {
            recognise_line(&line.command).is_some_and(|found| found.manner != Manner::Other)
        };
        let is_cargo = |line: &CiCommand| match words(&line.command).as_slice() {
            ["cargo", "xtask", ..] => true,
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
    fn settle(&mut self) {
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

/// Returns what the workflows run, each check once: measured or not, it is the same.
pub(super) fn run(repository: &Repository, contents: &CiContents, composed: &[ComposedCheck]) -> CiChecks {
    let mut all = CiChecks { found: Vec::new(), unused: contents.unused.clone() };
    for line in &contents.of_other_machines {
        let why =
            if line.machine == Some(OtherMachine::Macos) { Reason::NeedsMacos } else { Reason::NeedsWindows };
        all.unused.push(line.unused(why));
    }
    // A task is the repository's own, whatever a job does before it; and tests of a changed tree are better than none, for which a
    // test of the toolchain would stand.
    let (mut first, mut second) = (Vec::new(), Vec::new());
    // The jobs of which a check is known so far.
    let mut checked: BTreeSet<&str> = BTreeSet::new();
    for (at, line) in contents.commands.iter().enumerate() {
        if let Some(one) = composed.iter().find(|one| one.lines.contains(&at)) {
            // Its first line stands for all of them.
            first.extend((one.lines.first() == Some(&at)).then(|| one.finding.clone()));
            continue;
        }
        let needs_more = line.needs_others() || line.has(Caveat::LacksService);
        let why = if needs_more {
            line.caveats.iter().next().map_or(Reason::Unknown, |caveat| caveat.reason())
        } else if contents.makes_place_of(line) {
            Reason::NamesBuilt
        } else {
            match check_of(repository, line) {
                Ok(finding) if line.is_second_choice() => {
                    second.push((line, finding));
                    continue;
                }
                Ok(finding) => {
                    if finding.purpose != Some(Purpose::Build) {
                        checked.insert(&line.job);
                    }
                    first.push(finding);
                    continue;
                }
                Err(why) => {
                    let is_behind = checked.contains(line.job.as_str());
                    let own = is_behind.then(|| behind_checks(repository, line, why)).flatten();
                    if let Some(finding) = own {
                        first.push(finding);
                        continue;
                    }
                    if asks_git(&line.command) { Reason::AsksOfOthers } else { why }
                }
            }
        };
        all.unused.push(line.unused(why));
    }
    add_each_once(repository, &mut all.found, first);
    let is_test = |one: &Finding| one.purpose == Some(Purpose::Test) && !one.is_fix;
    let has_tests = all.found.iter().any(is_test);
    let is_kept = |one: &Finding| (is_test(one) && !has_tests) || calls_tasks(&one.command);
    let (kept, given_way): (Vec<_>, Vec<_>) = second.into_iter().partition(|(_, one)| is_kept(one));
    add_each_once(repository, &mut all.found, kept.into_iter().map(|(_, finding)| finding));
    for (line, finding) in given_way {
        let caveat = line.caveats.iter().find(|caveat| caveat.is_second_choice());
        all.unused.push(unused_finding(finding, caveat.map_or(Reason::Unknown, |caveat| caveat.reason())));
    }
    let known = all.found.clone();
    all.leave_out(Reason::PartOfTests, |one| known.iter().any(|other| is_part(repository, one, other)));
    // With what only its job has, a tool often does the same in a special way: under a measure, or for another machine.
    let is_prepared = |one: &Finding| {
        contents.commands.iter().any(|line| line.has(Caveat::Prepared) && line.evidence == one.evidence)
    };
    let known = all.found.clone();
    let has_plain =
        |one: &Finding| known.iter().any(|other| !is_prepared(other) && is_longer_call(one, other));
    all.leave_out(Reason::HasPlainer, |one| is_prepared(one) && has_plain(one));
    // What only jobs with another version make is theirs, where the job whose place a loop takes calls the same tool.
    let is_of_others = |one: &Finding| {
        contents.commands.iter().any(|line| line.is_of_other_version && line.evidence == one.evidence)
    };
    let known = all.found.clone();
    let has_own = |one: &Finding| known.iter().any(|other| !is_of_others(other) && is_same_tool(one, other));
    all.leave_out(Reason::OtherVersion, |one| is_of_others(one) && has_own(one));
    without_other_managers(repository, &mut all);
    // A loop runs in one job: what other jobs make in a container has what it needs only there.
    all.leave_out(Reason::OnlyInImage, |one| contents.is_only_contained(one));
    all
}

/// Leaves out what calls scripts of a package by another manager than that of the repository, where this one calls some there: both
/// install into the same place, and each throws away what the other has made.
fn without_other_managers(repository: &Repository, checks: &mut CiChecks) {
    let manager = |finding: &Finding| {
        let words: Vec<&str> = without_assignments(&finding.command).split(' ').collect();
        match words.as_slice() {
            // Without this word, Bun runs a file, or tests, of its own.
            ["bun", "run", ..] => Some("bun".to_owned()),
            [name @ ("npm" | "pnpm" | "yarn"), ..] => Some((*name).to_owned()),
            _ => None,
        }
    };
    let own = package_manager(repository);
    let all = checks.found.clone();
    let has_own = |place: &str| {
        all.iter().any(|other| other.directory == place && manager(other).is_some_and(|name| name == own))
    };
    checks.leave_out(Reason::OtherManager, |one| {
        manager(one).is_some_and(|name| name != own) && has_own(&one.directory)
    });
}

/// Tells whether a check calls the tool of another one for the same, and says more words for it.
fn is_longer_call(one: &Finding, other: &Finding) -> bool {
    is_same_tool(one, other) && words(&one.command).len() > words(&other.command).len()
}

/// Tells whether two checks call one tool for the same, and no task.
fn is_same_tool(one: &Finding, other: &Finding) -> bool {
    let tool = |finding: &Finding| {
        let found = recognise_line(&finding.command)?;
        found.tasks.is_empty().then_some(found.tool.name.as_str())
    };
    one.purpose == other.purpose
        && one.is_fix == other.is_fix
        && one.directory == other.directory
        && tool(one).is_some_and(|name| tool(other) == Some(name))
}

fn calls_tasks(command: &str) -> bool {
    recognise_line(command).is_some_and(|found| !found.tasks.is_empty())
}

/// Adds checks to those that are known, in the shorter of two ways to call one.
fn add_each_once(
    repository: &Repository,
    known: &mut Vec<Finding>,
    findings: impl IntoIterator<Item = Finding>,
) {
    for finding in findings {
        let is_same = |other: &&mut Finding| {
            other.directory == finding.directory
                && unmeasured(repository, other) == unmeasured(repository, &finding)
        };
        match known.iter_mut().find(is_same) {
            // What the longer one says more is how to measure, and a loop measures nothing.
            Some(known) if words(&finding.command).len() < words(&known.command).len() => *known = finding,
            Some(_) => {}
            None => known.push(finding),
        }
    }
}

/// Returns the definitions, `NAME=VALUE`, with which the job that calls the tests of `CMake` configures them.
pub(super) fn definitions_of_ctest(contents: &CiContents) -> Vec<String> {
    let Some(call) = contents.call_of_ctest() else { return Vec::new() };
    let of_job = contents.commands.iter().filter(|line| line.job == call.job);
    let configured = of_job.filter(|line| words(&line.command).first() == Some(&"cmake"));
    configured.flat_map(|line| definitions(&line.command)).collect()
}

/// Returns the definitions among the words of a line that are written as they are.
fn definitions(line: &str) -> Vec<String> {
    let is_literal =
        |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:=.+-".contains(&byte));
    // `-D NAME=VALUE` is two words.
    let line = line.replace(" -D ", " -D");
    let defined = line.split_whitespace().filter_map(|word| word.strip_prefix("-D"));
    defined.filter(is_literal).filter(|text| text.contains('=')).map(str::to_owned).collect()
}

/// Returns what a line of which only its job knows all says of `CMake`: that the tests are called, or the definitions that are written
/// as they are.
fn part_of_cmake(line: &str) -> Option<String> {
    let command = without_assignments(line.rsplit("&&").next().unwrap_or(line));
    match first_word(command) {
        "ctest" => Some("ctest".to_owned()),
        "cmake" => {
            let defined = definitions(command);
            (!defined.is_empty()).then(|| format!("cmake -D{}", defined.join(" -D")))
        }
        _ => None,
    }
}

/// Tells whether each line that calls a check of mistakes or of the format stands behind a build of its job: it may look at what that
/// has made, such as the types of other packages.
pub(super) fn is_behind_build(lines: &[CiCommand], check: &Finding) -> bool {
    if !matches!(check.purpose, Some(Purpose::Lint | Purpose::Format)) {
        return false;
    }
    let builds = |line: &CiCommand| shlex::split(&line.command).is_some_and(|words| is_build(&words));
    let is_call =
        |line: &CiCommand| line.directory == check.directory && words(&line.command) == words(&check.command);
    let is_behind =
        |(at, call): (usize, &CiCommand)| lines[..at].iter().any(|line| line.job == call.job && builds(line));
    let mut calls = lines.iter().enumerate().filter(|(_, line)| is_call(line)).peekable();
    calls.peek().is_some() && calls.all(is_behind)
}

/// Returns what a check says without the place where its program is installed, the order of its words, and the options by which it
/// measures what its tests reach.
fn unmeasured<'f>(repository: &Repository, finding: &'f Finding) -> Vec<&'f str> {
    let measures = |word: &str| {
        ["--cov", "--no-cov", "-cover", "-Dcover", "--no-coverage"]
            .iter()
            .any(|begin| word.starts_with(begin))
    };
    let plain = without_options(&words(&finding.command)).into_iter().filter(|word| !measures(word));
    let mut found: Vec<&str> = plain.map(|word| word.trim_end_matches('/')).collect();
    if let Some(program) = found.first_mut() {
        let installed = TOOLS.options.places.iter().find_map(|place| program.strip_prefix(place.as_str()));
        // Of scripts of the repository, several may have one name: `./test` and `./web/test`.
        let is_own = repository.has(joined(&finding.directory, program).as_str());
        let by_name = if is_own { *program } else { after_last(program, &['/']) };
        *program = installed.unwrap_or(by_name);
    }
    // Jobs write the same options in different orders.
    found.sort_unstable();
    found
}

/// Tells whether tests are some of those that another command runs: it says no more than which files.
fn is_part(repository: &Repository, part: &Finding, whole: &Finding) -> bool {
    let (of_part, of_whole) = (words(&part.command), words(&whole.command));
    let is_path = |word: &&str| repository.has(joined(&part.directory, word).as_str());
    let are_tests = [part, whole].iter().all(|one| one.purpose == Some(Purpose::Test) && !one.is_fix);
    are_tests
        && part.directory == whole.directory
        && of_part
            .strip_prefix(of_whole.as_slice())
            .is_some_and(|rest| !rest.is_empty() && rest.iter().all(is_path))
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

/// Tells whether these words start a tool of Python, however many options they have; none do, too.
fn starts_python(words: &[&str]) -> bool {
    let Some(program) = words.first() else { return true };
    matches!(*program, "uv" | "uvx" | "pipx" | "poetry" | "pdm" | "hatch" | "python" | "python3")
}

/// Returns what a command of a job is, if it is a check or mends; otherwise why it is neither.
pub(super) fn check_of(repository: &Repository, line: &CiCommand) -> Result<Finding, Reason> {
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
        (Manner::Other, _) if is_build(words) => Ok((Purpose::Build, false)),
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

/// Returns the check that a line is behind another one of its job, though by itself it is none for a reason.
fn behind_checks(repository: &Repository, line: &CiCommand, why: Reason) -> Option<Finding> {
    if why == Reason::Prepares {
        return script_behind_checks(repository, line);
    }
    runs_by_itself(line, why).then(|| line.as_test())
}

/// Tells whether a line runs a program of the repository itself, `cargo run`, or a script of which no name says more: behind a check of
/// the same job it is one as well.
fn runs_by_itself(line: &CiCommand, why: Reason) -> bool {
    let words = words(&line.command);
    let publishes =
        |word: &&str| is_other(word) || matches!(*word, "push" | "upload" | "sign" | "docs" | "doc");
    let is_run = match words.as_slice() {
        ["cargo" | "go", "run", ..] => matches!(why, Reason::NotACheckOfTool | Reason::Unknown),
        ["bash" | "sh", path, ..] | [path, ..] => why == Reason::UnknownScript && is_own_script(path),
        [] => false,
    };
    is_run && !words.iter().any(publishes) && !line.is_second_choice() && line.condition.is_none()
}

/// Returns the check that a script is which builds, or looks at what tests have reached, by its name: behind the checks of its job.
fn script_behind_checks(repository: &Repository, line: &CiCommand) -> Option<Finding> {
    let path = script_of(repository, &line.directory, &line.command)?;
    // Of other languages, such a script often makes what its own package needs.
    let program = words(&line.command).first().map_or("", |word| after_last(word, &['/']));
    if matches!(program, "node" | "bun" | "python" | "python3" | "php" | "ruby") {
        return None;
    }
    let script = repository.text(&path)?.to_ascii_lowercase();
    let stem = after_last(&path, &['/']).split('.').next().unwrap_or("").to_ascii_lowercase();
    let words: Vec<&str> = stem.split(['-', '_']).collect();
    let is_meant = |word: &&str| {
        matches!(*word, "build" | "compile" | "coverage" | "docs" | "doc" | "package" | "all" | "ci")
    };
    let publishes = PUBLISHES.iter().any(|word| script.contains(word)) || script.contains("codecov");
    let is_one =
        words.iter().all(is_meant) && !publishes && line.stands_by_itself() && line.condition.is_none();
    let purpose = if words.contains(&"coverage") { Purpose::Test } else { Purpose::Build };
    is_one.then(|| Finding { purpose: Some(purpose), ..line.as_test() })
}

/// Tells whether a word is the path of a script in one of the usual folders for them, whose name does not say that it prepares something.
fn is_own_script(path: &str) -> bool {
    let is_of_top = path.starts_with("./") && extension(path) == Some("sh");
    let path = path.trim_start_matches("./");
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.trim_start_matches('.').trim_end_matches(".sh");
    let is_there = matches!(folder, "script" | "scripts" | "bin" | "ci") || folder.is_empty() && is_of_top;
    is_there && !prepares(stem) && !is_other(stem)
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
fn is_build(words: &[String]) -> bool {
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
    let CalledScript { path, arguments: rest } =
        CalledScript::of(repository, &line.directory, &plain).ok_or(Reason::Unknown)?;
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
fn builds(stem: &str) -> bool {
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
const PUBLISHES: [&str; 5] = ["publish", "deploy", "upload", "docker push", "git push"];

/// Tells whether a script makes ready for others or looks after what they did, by its name.
fn prepares(stem: &str) -> bool {
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

/// Reads the workflows.
pub(super) fn contents(repository: &Repository) -> CiContents {
    let mut contents = CiContents::default();
    let all: Vec<(&str, Node)> = workflows(repository).collect();
    let is_any_before_merge = all.iter().any(|(_, root)| is_before_merge(root));
    for (path, root) in &all {
        if !is_started_by_changes(root) || !is_called_by_changes(repository, path, root) {
            continue;
        }
        contents.note_branches(root);
        let is_late = is_any_before_merge && is_after_merge(root);
        let read = |text: &str, root: &Node, contents: &mut CiContents| {
            Workflow { repository, path, text, is_late }.read(root, contents);
        };
        let as_called = texts_as_called(repository, path, root, &all);
        if as_called.is_empty() {
            read(repository.text(path).unwrap_or(""), root, &mut contents);
        }
        for text in as_called {
            if let Some(root) = lined_yaml::parse(&text) {
                read(&text, &root, &mut contents);
            }
        }
    }
    for (path, why) in unread(repository) {
        let text = repository.text(path).unwrap_or("");
        let Some(root) = lined_yaml::parse(text).filter(is_started_by_changes) else { continue };
        Workflow { repository, path, text, is_late: false }.read_unused(&root, why, &mut contents);
    }
    contents.settle();
    contents.settle_toolchains(repository);
    contents
}

/// Returns the workflows that say nothing of what is checked, each with the reason.
fn unread(repository: &Repository) -> impl Iterator<Item = (&str, Reason)> {
    let named = repository.paths().filter(|path| is_of_github(path) && !OWN_WORKFLOWS.contains(path));
    named.filter_map(|path| match path {
        _ if !is_workflow(path) => Some((path, Reason::OfScanners)),
        _ if workflow(repository, path).is_none() => Some((path, Reason::OfPublishing)),
        _ => None,
    })
}

/// Returns the inputs that a job gives the workflow that it calls, as far as they are known: for each of its matrix, where that says
/// one of them.
fn given_inputs(job: &Node) -> Vec<Vec<(String, String)>> {
    let matrix = matrix(job);
    let inputs: Vec<(&str, &str)> = lined_yaml::entries(job.get("with"))
        .iter()
        .filter_map(|entry| Some((entry.key.as_str(), lined_yaml::text(Some(&entry.value))?)))
        .collect();
    let is_named =
        |(key, _): &&(&str, Vec<&str>)| inputs.iter().any(|(_, text)| text.contains(&value_of_matrix(key)));
    let (key, values) =
        matrix.iter().find(is_named).map_or(("", vec![""]), |(key, values)| (*key, values.clone()));
    let with = |value: &str| {
        let put_in = inputs.iter().map(|(name, text)| (*name, text.replace(&value_of_matrix(key), value)));
        put_in.filter(|(_, text)| is_plain(text)).map(|(name, text)| (name.to_owned(), text)).collect()
    };
    values.into_iter().map(with).collect()
}

/// The most calls of one workflow that are read.
const MOST_CALLS: usize = 12;

/// Returns the texts of a workflow that others call, with the inputs of each call in their places; none where it is as it is written.
fn texts_as_called(repository: &Repository, path: &str, root: &Node, all: &[(&str, Node)]) -> Vec<String> {
    let text = repository.text(path).unwrap_or("");
    if !is_only_called(root) || !text.contains("inputs.") {
        return Vec::new();
    }
    let declared = root.get("on").and_then(|on| on.get("workflow_call")).and_then(|call| call.get("inputs"));
    let defaults = lined_yaml::entries(declared).iter().map(|entry| (&entry.key, entry.value.get("default")));
    let local = format!("./{path}");
    let jobs = all.iter().filter(|(other, root)| *other != path && is_started_by_changes(root));
    let jobs = jobs.flat_map(|(_, root)| lined_yaml::entries(root.get("jobs")));
    let is_call = |job: &&Entry| {
        lined_yaml::text(job.value.get("uses")) == Some(&local) && !needs_another_event(job.value.get("if"))
    };
    let mut texts: Vec<String> = Vec::new();
    for given in jobs.filter(is_call).flat_map(|call| given_inputs(&call.value)) {
        let defaults = defaults.clone().filter_map(|(name, value)| {
            Some((name.clone(), lined_yaml::text(value).filter(|value| is_plain(value))?.to_owned()))
        });
        // What a call gives is put in first, and leaves nothing to the default.
        let as_called = given.into_iter().chain(defaults).fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("${{{{ inputs.{name} }}}}"), &value)
                .replace(&format!("${{{{inputs.{name}}}}}"), &value)
        });
        if texts.len() < MOST_CALLS && !texts.contains(&as_called) {
            texts.push(as_called);
        }
    }
    texts
}

/// Tells whether a workflow that only others call is called by one that a change starts, or by none here.
fn is_called_by_changes(repository: &Repository, path: &str, root: &Node) -> bool {
    if !is_only_called(root) {
        return true;
    }
    let calls = |other: &&str| {
        *other != path
            && is_of_github(other)
            && repository.text(other).is_some_and(|text| text.contains(path))
    };
    let mut callers = repository.paths().filter(calls).peekable();
    let is_started =
        |other: &str| workflow(repository, other).is_some_and(|root| is_started_by_changes(&root));
    callers.peek().is_none() || callers.any(is_started)
}

fn is_of_github(path: &str) -> bool {
    path.starts_with(".github/workflows/") && matches!(path.rsplit('.').next(), Some("yml" | "yaml"))
}

/// Tells whether a workflow names a program, however it calls it.
pub(super) fn names(repository: &Repository, program: &str) -> bool {
    let is_named = |text: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == program)
    };
    any_workflow(repository, is_named)
}

/// Tells whether a workflow names a program, or one of its versions, `clang-format-20`, in whatever line.
pub(super) fn mention(repository: &Repository, program: &str) -> bool {
    let is_version = |rest: &str| {
        let version = rest.strip_prefix('-');
        rest.is_empty() || version.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_program = |word: &str| word.strip_prefix(program).is_some_and(is_version);
    let mentions = |line: &str| {
        !line.trim_start().starts_with('#')
            && line.split(|c: char| c.is_whitespace() || "\"'`();|&=".contains(c)).any(is_program)
    };
    any_workflow(repository, |text| text.lines().any(mentions))
}

/// Tells whether a workflow says one of these, in whatever line.
pub(super) fn say(repository: &Repository, texts: &[&str]) -> bool {
    let says = |text: &str| texts.iter().any(|known| text.contains(known));
    any_workflow(repository, says)
}

/// The most branches that are taken from workflows.
const MOST_BRANCHES: usize = 6;

/// The most places of the repository that are taken from a matrix: of more, a plan makes jobs.
const MOST_PLACES: usize = 12;

/// Returns the workflows that may say what is checked, by their paths.
fn workflows(repository: &Repository) -> impl Iterator<Item = (&str, Node)> {
    repository.paths().filter_map(move |path| Some((path, workflow(repository, path)?)))
}

/// Tells whether the text of a workflow that may say what is checked is as asked.
fn any_workflow(repository: &Repository, says: impl Fn(&str) -> bool) -> bool {
    let named = repository.paths().filter(|path| is_workflow(path));
    // In this order: whether a file is a workflow that counts takes reading all of it.
    let mut found = named.filter(|path| repository.text(path).is_some_and(&says));
    found.any(|path| workflow(repository, path).is_some())
}

/// Tells whether a file may be a workflow that says what is checked, by its path.
fn is_workflow(path: &str) -> bool {
    // What others scan needs their service.
    let is_of_others = ["codeql", "scorecard"].iter().any(|part| path.contains(part));
    !OWN_WORKFLOWS.contains(&path) && !is_of_others && (path == ".gitlab-ci.yml" || is_of_github(path))
}

/// Returns the workflow at a path, where it is one that may say what is checked.
fn workflow(repository: &Repository, path: &str) -> Option<Node> {
    if !is_workflow(path) {
        return None;
    }
    let root = lined_yaml::parse(repository.text(path)?)?;
    // What publishes is not a check. One that proposed changes start checks them, whatever it does with a tag.
    let publishes = ["release", "publish", "deploy"].iter().any(|part| path.contains(part));
    (!publishes || is_before_merge(&root)).then_some(root)
}

/// A workflow that is being read.
struct Workflow<'r> {
    repository: &'r Repository,
    path: &'r str,
    text: &'r str,
    /// Whether it runs when a change is merged, where others run before.
    is_late: bool,
}

/// Where a step stands: its job, the directory of its commands as it is written, and the variables whose values are written in
/// the file, the nearest first.
#[derive(Clone, Default)]
struct JobPlace<'j> {
    name: &'j str,
    directory: Option<&'j str>,
    /// The shell of its commands, where the file names one.
    shell: Option<&'j str>,
    machine: Option<OtherMachine>,
    caveats: BTreeSet<Caveat>,
    toolchain: RustToolchain,
    variables: Vec<(String, String)>,
    /// How many of them are of the step.
    of_step: usize,
    /// Where the step stands in its file.
    step: usize,
    matrix: Matrix<'j>,
    /// The job of the matrix whose place a loop takes.
    leg: MatrixLeg,
    /// Whether a loop takes the place of all jobs of the matrix, each of which has a task of its own.
    has_task_each: bool,
    /// As in [`CiCommand`].
    condition: Option<&'j str>,
    is_before_checkout: bool,
    is_contained: bool,
    /// The value of the matrix that is a place of the repository, by how it is written.
    row: Option<(String, &'j str)>,
    checkouts: Checkouts,
}

impl Workflow<'_> {
    fn read(&self, root: &Node, contents: &mut CiContents) {
        let whole = written_directory(defaults(root));
        let shell = written_shell(defaults(root));
        let behind = self.text.split("env.").skip(1);
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        contents
            .put_in
            .extend(behind.map(|rest| rest.split(|c| !is_of_name(c)).next().unwrap_or("").to_owned()));
        for job in lined_yaml::entries(root.get("jobs")) {
            if needs_another_event(job.value.get("if")) {
                continue;
            }
            if may_fail(&job.value) {
                self.unused_job(&job.value, Reason::MayFail, contents);
                continue;
            }
            self.call_of_others(job, contents);
            let of_job = written_directory(defaults(&job.value));
            let leg = self.leg(&job.value);
            let matrix = leg.first_in(matrix(&job.value));
            let has_task_each = has_task_each(&job.value, &matrix);
            let of_leg = if has_task_each { MatrixLeg::default() } else { leg.clone() };
            let mut variables = variables(job.value.get("env"), &of_leg);
            variables.extend(self::variables(root.get("env"), &of_leg));
            let id = format!("{}:{}", self.path, job.key);
            contents.services.extend(JobServices::of(&job.value, id.clone(), root, self.text, &leg));
            contents.containers.extend(JobContainer::of(&job.value, id, self.text, &leg));
            let label = lined_yaml::text(job.value.get("runs-on"));
            let label = label.map(|label| label_of_matrix(label, &matrix));
            let machine = label.and_then(OtherMachine::of_label);
            let mut place = JobPlace {
                name: &job.key,
                directory: of_job.or(whole),
                shell: written_shell(defaults(&job.value)).or(shell),
                machine,
                caveats: self.is_late.then_some(Caveat::AfterMerge).into_iter().collect(),
                variables,
                has_task_each,
                matrix,
                is_contained: is_contained(&job.value, &leg),
                leg,
                checkouts: Checkouts::of(&job.value, joined),
                ..JobPlace::default()
            };
            for node in [root, &job.value] {
                place.add(Caveat::HasSecrets, has_secrets(node));
            }
            let checks_out = |step: &Node| {
                lined_yaml::text(step.get("uses")).is_some_and(|uses| uses.starts_with("actions/checkout@"))
            };
            let steps = steps(&job.value);
            if steps.iter().copied().any(checks_out) {
                contents.runners.extend(label.map(str::to_owned));
                place.is_before_checkout = true;
            }
            place.add(Caveat::AsksForLabel, asks_for_label(job.value.get("if")));
            place.add(Caveat::LacksService, lacks_services(&job.value, &place.id(self.path), contents));
            let unpacked = unpacked_source(&job.value);
            if let Some(directory) = &unpacked {
                place.checkouts.unpack(joined("", directory));
            }
            for step in steps {
                place.is_before_checkout &= !checks_out(step);
                // What is set up behind a check is for those behind it.
                let is_behind_check =
                    contents.commands.iter().any(|line| line.is_check_of(&place.id(self.path)));
                place.add(Caveat::Prepared, sets_up(step) && is_behind_check);
                // Before what it changes is noted, which concerns only the steps behind it.
                self.step(step, &place, contents);
                place.toolchain =
                    RustToolchain::of_step(step, &place.matrix, |text| place.with_values(text, ""))
                        .unwrap_or(place.toolchain);
                place.add(Caveat::AltersCheckout, is_altering(step) || self.writes_files(step, &place));
                place.add(Caveat::Prepared, prepares_machine(step));
                place.add(Caveat::BesideOthers, starts_another(step));
                place.add(Caveat::FetchesBuilt, fetches_built(step) && unpacked.is_none());
                place.add(Caveat::HandsOn, hands_on_behind(step));
            }
        }
        let image = |node: Option<&Node>| {
            let name = lined_yaml::text(node).or_else(|| lined_yaml::text(node?.get("name")))?;
            is_plain(name).then(|| name.to_owned())
        };
        let of_default = image(root.get("default").and_then(|node| node.get("image")));
        contents.image = contents.image.take().or_else(|| image(root.get("image"))).or(of_default);
        // Of GitLab, every key may be a job.
        let allows_failure = |job: &&Entry| lined_yaml::text(job.value.get("allow_failure")) == Some("true");
        for job in lined_yaml::entries(Some(root)) {
            let place = JobPlace { name: &job.key, ..JobPlace::default() };
            let (before, script) = (job.value.get("before_script"), job.value.get("script"));
            if allows_failure(&job) {
                for node in lined_yaml::items(script).iter().chain(script) {
                    self.unused_script(node, "", Reason::MayFail, contents);
                }
                continue;
            }
            // One shell runs all of them, so that a `cd` holds for those behind it.
            let mut directory = String::new();
            for script in [before, script] {
                for node in lined_yaml::items(script).iter().chain(script) {
                    self.script(node, &place, &mut directory, contents);
                }
            }
        }
    }

    /// Names everything in a workflow that says nothing of what is checked.
    fn read_unused(&self, root: &Node, why: Reason, contents: &mut CiContents) {
        let jobs = lined_yaml::entries(root.get("jobs"));
        for job in jobs.iter().filter(|job| !needs_another_event(job.value.get("if"))) {
            self.unused_job(&job.value, why, contents);
        }
    }

    fn unused_job(&self, job: &Node, why: Reason, contents: &mut CiContents) {
        for step in steps(job).into_iter().filter(|step| !needs_another_event(step.get("if"))) {
            self.unused_step(step, "", why, contents);
        }
        if let Some(uses) = job.get("uses") {
            self.unused_call(uses, why, contents);
        }
    }

    /// Names what a step runs, all of which is no check for a reason.
    fn unused_step(&self, step: &Node, directory: &str, why: Reason, contents: &mut CiContents) {
        if let Some(script) = step.get("run") {
            self.unused_script(script, directory, why, contents);
        }
        if let Some(uses) = step.get("uses") {
            self.unused_call(uses, why, contents);
        }
    }

    fn unused_script(&self, script: &Node, directory: &str, why: Reason, contents: &mut CiContents) {
        for (at, line) in lined_yaml::text(Some(script)).map(logical_lines).iter().flatten() {
            contents.unused.push(unused_line(line, directory, self.evidence(script, *at), why));
        }
    }

    fn unused_call(&self, uses: &Node, why: Reason, contents: &mut CiContents) {
        let Some(named) = lined_yaml::text(Some(uses)) else { return };
        let call = format!("{CALL_OF_ACTION}{named}");
        contents.unused.push(unused_line(&call, "", self.evidence(uses, 0), why));
    }

    /// Returns the job of a matrix whose place a loop takes. Of the versions of Python, one that the repository says it supports.
    fn leg(&self, job: &Node) -> MatrixLeg {
        let named: Vec<&str> = steps(job)
            .into_iter()
            .filter_map(|step| lined_yaml::text(step.get("with")?.get("python-version")))
            .collect();
        let (matrix, plain) = (matrix(job), |text: &str| text.split_whitespace().collect::<String>());
        let is_of_python = |key: &str| named.iter().any(|text| plain(text) == plain(&value_of_matrix(key)));
        let supported: Vec<(&str, Vec<&str>)> = matrix
            .iter()
            .filter(|(key, _)| is_of_python(key))
            .map(|(key, values)| (*key, supported_pythons(self.repository, values)))
            .collect();
        MatrixLeg::of(job, &|key, value| {
            supported.iter().all(|(known, values)| *known != key || values.contains(&value))
        })
    }

    /// Notes the environments of tox and nox that a job gives a workflow of others, which runs them.
    fn call_of_others(&self, job: &Entry, contents: &mut CiContents) {
        let uses = lined_yaml::text(job.value.get("uses"));
        let inputs = job.value.get("with").filter(|_| uses.is_some_and(|uses| !uses.starts_with("./")));
        let caveats = self.is_late.then_some(Caveat::AfterMerge).into_iter().collect();
        let place = JobPlace { name: &job.key, caveats, ..JobPlace::default() };
        let before = contents.commands.len();
        for entry in lined_yaml::entries(inputs) {
            let text = lined_yaml::text(Some(&entry.value)).unwrap_or("");
            for (below, line) in text.lines().enumerate() {
                let calls = named_environments::calls_in(self.repository, line).into_iter();
                let evidence = self.evidence(&entry.value, below);
                let command = |call: String| self.command(&call, String::new(), &place, evidence.clone());
                contents.commands.extend(calls.map(command));
            }
        }
        let is_of_others = uses.is_some_and(|uses| !uses.starts_with("./"));
        if let Some(uses) =
            job.value.get("uses").filter(|_| is_of_others && contents.commands.len() == before)
        {
            self.unused_call(uses, Reason::WorkflowOfOthers, contents);
        }
    }

    /// Tells whether a step writes into files of the repository.
    fn writes_files(&self, step: &Node, place: &JobPlace<'_>) -> bool {
        let directory = written_directory(Some(step)).or(place.directory).unwrap_or("");
        let directory = place.checkouts.inside(&joined("", directory)).unwrap_or_default();
        let script = lined_yaml::text(step.get("run")).map(logical_lines);
        let mut lines = script.iter().flatten();
        lines.any(|(_, line)| writes_over(self.repository, &directory, line))
    }

    fn step(&self, step: &Node, place: &JobPlace<'_>, contents: &mut CiContents) {
        let condition = step.get("if");
        if needs_another_event(condition) {
            return;
        }
        let Some(matrix) = without_failing(&place.matrix, step) else {
            let directory = place.checkouts.inside(&joined("", place.directory.unwrap_or("")));
            self.unused_step(step, &directory.unwrap_or_default(), Reason::MayFail, contents);
            return;
        };
        let machine = lined_yaml::text(condition)
            .and_then(|condition| OtherMachine::of_condition(condition, &place.matrix));
        let of_leg = if place.has_task_each { &MatrixLeg::default() } else { &place.leg };
        let mut own = variables(step.get("env"), of_leg);
        let of_step = own.len();
        own.extend(place.variables.iter().cloned());
        let mut place = JobPlace {
            machine: machine.or(place.machine),
            directory: written_directory(Some(step)).or(place.directory),
            shell: written_shell(Some(step)).or(place.shell),
            variables: own,
            of_step,
            step: step.span.range.start,
            condition: place.leg.condition_of_others(condition).filter(|_| !place.has_task_each),
            matrix,
            ..place.clone()
        };
        place.caveats.remove(&Caveat::AsksEarlier);
        place.add(Caveat::AsksEarlier, asks_earlier_steps(condition));
        place.add(Caveat::AsksForLabel, asks_for_label(condition));
        let is_of_channels = place.condition.is_some_and(|condition| place.leg.is_of_channels(condition));
        place.add(Caveat::OtherInterpreter, is_of_channels);
        // What an earlier step says, no other job can be told.
        place.add(Caveat::FedBySteps, is_fed_by_steps(step));
        place.add(Caveat::HasSecrets, has_secrets(step));
        let place = &place;
        if let Some(script) = step
            .get("run")
            .filter(|_| StepShell::of(place.shell) == StepShell::Other && !is_terminal(place.shell))
        {
            // In another language, its lines are parts of one thing.
            let first = lined_yaml::text(Some(script))
                .and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
            let named = lined_yaml::text(step.get("name")).filter(|name| is_plain(name));
            let said = named.or(first).unwrap_or("").to_owned();
            contents.unused.push(unused_line(&said, "", self.evidence(script, 0), Reason::OtherShell));
        } else if let Some(script) = step.get("run") {
            for place in place.of_each_place(self.repository, lined_yaml::text(Some(script))) {
                match place.known_directory() {
                    Some(mut directory) => self.script(script, &place, &mut directory, contents),
                    // Where only the job knows the directory, what is run there is not for any other.
                    None => self.parts_of_cmake(script, &place, contents),
                }
            }
        }
        if let Some(uses) = step.get("uses") {
            self.action(step, uses, place, contents);
        }
    }

    /// Notes the action that a step uses, and the command that it stands for.
    fn action(&self, step: &Node, uses: &Node, place: &JobPlace<'_>, contents: &mut CiContents) {
        let Some(named) = lined_yaml::text(Some(uses)) else { return };
        let inputs = lined_yaml::entries(step.get("with"));
        let values = |is_written: bool| {
            let of_entry = move |entry: &Entry| {
                let written = lined_yaml::text(Some(&entry.value))?;
                if is_token(written) && is_of_set_up(named) {
                    return is_written.then(|| (entry.key.clone(), TOKEN.to_owned()));
                }
                let value = place.with_variables(written);
                (is_plain_input(&value) && is_plain_input(written) == is_written)
                    .then(|| (entry.key.clone(), value))
            };
            inputs.iter().filter_map(of_entry).collect::<Vec<_>>()
        };
        let (with, of_variables) = (values(true), values(false));
        let of_entry = |entry: &Entry| {
            let written = lined_yaml::text(Some(&entry.value))?;
            place.matrix.iter().find(|(key, _)| written == value_of_matrix(key)).map(|(_, values)| values)
        };
        let of_leg = |entry: &Entry| {
            let written = lined_yaml::text(Some(&entry.value)).filter(|text| text.contains("matrix."))?;
            Some((entry.key.clone(), place.leg.put_in(written)))
        };
        let is_of_channels = |entry: &&Entry| {
            of_entry(entry).is_some_and(|values| values.iter().any(|value| is_channel(value)))
        };
        let of_channels = inputs.iter().filter(is_of_channels).map(|entry| entry.key.clone()).collect();
        let of_matrix: Vec<_> =
            inputs.iter().filter_map(of_leg).filter(|(_, value)| is_plain_input(value)).collect();
        let job = place.id(self.path);
        // An image has a tag in the place of a commit.
        let (name, version) = match named.split_once('@').or_else(|| named.rsplit_once(':')) {
            _ if named.starts_with("./") => (named, ""),
            Some(parts) => parts,
            None => return,
        };
        let pin = (is_commit(version) && present_name(name) == name).then(|| self.pin(uses, version));
        let (name, version) = (present_name(name).to_owned(), version.to_owned());
        let is_whole = with.len() + of_matrix.len() == inputs.len() && step.get("if").is_none();
        let action =
            CiAction { name, version, pin, job, with, of_variables, of_matrix, of_channels, is_whole };
        if named.starts_with("./") {
            // With only some of its inputs, or without its condition, the action would do something else than in that job.
            if action.is_whole && action.of_matrix.is_empty() {
                contents.local_actions.push(action);
            }
            self.unused_call(uses, Reason::OwnAction, contents);
            return;
        }
        // What an action sets up holds for the whole job, also where the directory of its commands is unknown.
        let name = action.name.clone();
        contents.actions.push(action);
        let name = name.as_str();
        let Some(directory) = place.known_directory() else {
            self.unused_call(uses, Reason::DirectoryUnknown, contents);
            return;
        };
        if let Some(script) = step.get("with").and_then(|with| with.get("command")).filter(|_| repeats(name))
        {
            self.script(script, place, &mut directory.clone(), contents);
            return;
        }
        let is_gate = |tool: &&Tool| {
            tool.gates.iter().all(|(input, value)| {
                lined_yaml::text(step.get("with").and_then(|with| with.get(input))) == Some(value)
            })
        };
        let tool = TOOLS.tools.iter().find(|tool| tool.actions.contains_key(name));
        let Some(tool) = tool.filter(is_gate) else {
            let why = if tool.is_some() { Reason::OnlyReports } else { Reason::UnknownAction };
            self.unused_call(uses, why, contents);
            return;
        };
        let with = step.get("with");
        let commands = match tool.actions.get(name) {
            Some(command) if command.contains('<') => filled(command, with, &place.matrix),
            Some(command) => with_inputs(tool, command, with).into_iter().collect(),
            None => Vec::new(),
        };
        let Some(within) = place.checkouts.inside(&directory) else {
            self.unused_call(uses, Reason::Elsewhere, contents);
            return;
        };
        if commands.is_empty() {
            self.unused_call(uses, Reason::InputsUnknown, contents);
        }
        let evidence = self.evidence(uses, 0);
        let command = |command: &String| self.command(command, within.clone(), place, evidence.clone());
        contents.commands.extend(commands.iter().map(command));
    }

    /// Returns the commit of an action with what its line says of it behind that: `# v4.2.0`.
    fn pin(&self, uses: &Node, commit: &str) -> String {
        let rest = self.text.get(uses.span.range.end..).and_then(|rest| rest.lines().next()).unwrap_or("");
        let comment = rest.trim_start_matches(['"', '\'']).trim();
        let is_plain = |text: &str| {
            text.len() <= 60
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" .-_=/@+".contains(&byte))
        };
        match comment
            .strip_prefix('#')
            .map(str::trim)
            .filter(|comment| is_plain(comment) && !comment.is_empty())
        {
            Some(comment) => format!("{commit} # {comment}"),
            None => commit.to_owned(),
        }
    }

    fn evidence(&self, node: &Node, below: usize) -> Evidence {
        let byte = node.span.range.start;
        // A block begins on the line behind its sign.
        let is_block = self.text.get(byte..).is_some_and(|rest| rest.starts_with(['|', '>']));
        let line = lined_yaml::line(self.text, byte) + usize::from(is_block) + below;
        Evidence { file: self.path.to_owned(), line, task: None }
    }

    /// Notes the commands of a script that begins in a directory, which is then the one in which it ends.
    fn script(&self, node: &Node, place: &JobPlace<'_>, directory: &mut String, contents: &mut CiContents) {
        let Some(script) = lined_yaml::text(Some(node)) else { return };
        let mut place = place.clone();
        for (at, line) in with_questions(without_messages(logical_lines(script))) {
            place.add(Caveat::BesideOthers, goes_on_beside(&line));
            let below = place.checkouts.inside(directory).unwrap_or_default();
            place.add(Caveat::AltersCheckout, writes_over(self.repository, &below, &line));
            place.toolchain = RustToolchain::of_line(&place.with_values(&line, ""), &place.matrix)
                .unwrap_or(place.toolchain);
            let line = place.with_values(&line, directory);
            let line = whole_line(without_reporter(&place.with_options_of_leg(&line)));
            if leaves_tasks_out(&line, &place.matrix) {
                let evidence = self.evidence(node, at);
                contents.unused.push(unused_line(&line, directory, evidence, Reason::VersionsOfMatrix));
            }
            for line in lines_of_matrix(&line, &place.matrix) {
                // What a check is called with, the lines above say; an install is that of one job.
                let line = if line.split("&&").any(|part| is_install(part.trim())) {
                    place.leg.put_in_install(&line)
                } else {
                    line
                };
                let line = line.trim_end().to_owned();
                // What is indented stands in a condition or a loop.
                if line.starts_with([' ', '\t']) {
                    let evidence = self.evidence(node, at);
                    contents.unused.push(unused_line(&line, directory, evidence, Reason::InStatement));
                    continue;
                }
                let Some(commands) = understood_commands(&line) else {
                    let inside = place.checkouts.inside(directory).filter(|_| asks_git(&line));
                    if let Some(inside) = inside {
                        contents.commands.push(self.command(&line, inside, &place, self.evidence(node, at)));
                        continue;
                    }
                    if matches!(first_word(&line), "cd" | "pushd") {
                        // Behind it, only the job knows where it is.
                        OUTSIDE.clone_into(directory);
                    }
                    if adds_source(&line) {
                        let source = self.command(&line, directory.clone(), &place, self.evidence(node, at));
                        contents.commands.push(source);
                    } else {
                        let is_of_other = StepShell::of(place.shell) == StepShell::Other;
                        let why = if is_of_other { Reason::OtherShell } else { why_not_understood(&line) };
                        self.part_of_cmake(&line, &place, self.evidence(node, at), why, contents);
                    }
                    continue;
                };
                if is_terminal(place.shell) {
                    contents.on_terminal.extend(place.terminal_calls(&commands, directory));
                }
                if !StepShell::of(place.shell).shares(&commands) {
                    // What gives it a terminal is noted for itself.
                    if !is_terminal(place.shell) {
                        let evidence = self.evidence(node, at);
                        contents.unused.push(unused_line(&line, directory, evidence, Reason::OtherShell));
                    }
                    continue;
                }
                self.line(&commands, directory, &place, &self.evidence(node, at), contents);
                place.add(Caveat::AltersCheckout, commands.iter().any(|command| alters_checkout(command)));
                place.add(Caveat::HandsOn, commands.iter().any(|command| hands_on(command)));
            }
        }
    }

    /// Notes of a script that `CMake` is configured or its tests are called there, whatever else only the job knows of it.
    fn parts_of_cmake(&self, node: &Node, place: &JobPlace<'_>, contents: &mut CiContents) {
        let Some(script) = lined_yaml::text(Some(node)) else { return };
        for (at, line) in logical_lines(script) {
            self.part_of_cmake(&line, place, self.evidence(node, at), Reason::DirectoryUnknown, contents);
        }
    }

    /// Notes the part of a line that is about `CMake`; another line is no check for a reason.
    fn part_of_cmake(
        &self,
        line: &str,
        place: &JobPlace<'_>,
        evidence: Evidence,
        why: Reason,
        contents: &mut CiContents,
    ) {
        let mut place = place.clone();
        place.add(Caveat::PartOfBuild, true);
        match part_of_cmake(line) {
            Some(part) => contents.commands.push(self.command(&part, String::new(), &place, evidence)),
            None => contents.unused.push(unused_line(line, "", evidence, why)),
        }
    }

    /// Notes the commands of a line, and where the next one is run.
    fn line(
        &self,
        commands: &[&str],
        directory: &mut String,
        place: &JobPlace<'_>,
        evidence: &Evidence,
        contents: &mut CiContents,
    ) {
        let mut place = place.clone();
        for part in commands {
            // The shell stays there, also for the lines behind this one.
            if let Some(below) = part.strip_prefix("cd ") {
                *directory = joined(directory, below.trim());
                continue;
            }
            let Some(inside) = place.checkouts.inside(directory) else {
                contents.unused.push(unused_line(part, directory, evidence.clone(), Reason::Elsewhere));
                continue;
            };
            // `time` only measures, and a run records by itself how long an action took.
            let command = part.strip_prefix("time ").unwrap_or(part).trim_start();
            let is_known = makes_ready(command) || recognise_line(command).is_some();
            contents.commands.push(self.command(command, inside, &place, evidence.clone()));
            place.add(Caveat::BehindUnknown, !is_known);
        }
    }

    fn command(
        &self,
        command: &str,
        directory: String,
        place: &JobPlace<'_>,
        evidence: Evidence,
    ) -> CiCommand {
        let mut caveats = place.caveats.clone();
        caveats.extend(asks_for_toolchain(command).then_some(Caveat::OtherToolchain));
        // A variable says more than what the job has made the default.
        let of_variable = place.variables.iter().find(|(name, _)| name == "RUSTUP_TOOLCHAIN");
        let of_variable = of_variable.map(|(_, value)| RustToolchain::Named(vec![value.clone()]));
        CiCommand {
            command: without_result_files(self.repository, &directory, command),
            caveats,
            toolchain: of_variable.unwrap_or_else(|| place.toolchain.clone()),
            directory,
            job: place.id(self.path),
            machine: place.machine,
            condition: place.condition.map(str::to_owned),
            is_of_other_version: place.condition.is_some_and(|condition| place.asks_for_version(condition)),
            is_before_checkout: place.is_before_checkout,
            is_contained: place.is_contained,
            variables: place.variables.clone(),
            of_step: place.of_step,
            step: place.step,
            evidence,
        }
    }
}

impl CiCommand {
    /// Tells whether this speaks against taking it by itself.
    pub(super) fn has(&self, caveat: Caveat) -> bool {
        self.caveats.contains(&caveat)
    }

    /// Tells whether it needs more than its own words.
    fn needs_others(&self) -> bool {
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
    fn unused(&self, why: Reason) -> UnusedCommand {
        UnusedCommand {
            command: self.command.clone(),
            directory: self.directory.clone(),
            evidence: self.evidence.clone(),
            why,
        }
    }

    /// Tells whether it is a check of a job, of a tool that is known.
    fn is_check_of(&self, job: &str) -> bool {
        self.job == job && recognise_line(&self.command).is_some_and(|found| found.manner == Manner::Pure)
    }
}

impl<'j> JobPlace<'j> {
    /// Notes what speaks against the lines from here on, if it holds.
    fn add(&mut self, caveat: Caveat, holds: bool) {
        self.caveats.extend(holds.then_some(caveat));
    }

    /// Returns commands of a step that gives them a terminal.
    fn terminal_calls(&self, commands: &[&str], directory: &str) -> Vec<TerminalCall> {
        let kind = self.variables.iter().find(|(name, _)| name == "TERM").map(|(_, kind)| kind.clone());
        let is_name = |kind: &String| kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let kind = kind.filter(is_name);
        let call = |command: &&str| TerminalCall {
            command: command.strip_prefix("time ").unwrap_or(command).trim_start().to_owned(),
            directory: directory.to_owned(),
            kind: kind.clone(),
        };
        commands.iter().filter(|_| self.machine.is_none()).map(call).collect()
    }

    /// Tells whether a condition is about a version of the matrix.
    fn asks_for_version(&self, condition: &str) -> bool {
        let is_versions =
            |values: &[&str]| values.len() > 1 && values.iter().all(|value| version_parts(value).is_some());
        self.matrix
            .iter()
            .any(|(key, values)| is_versions(values) && condition.contains(&format!("matrix.{key}")))
    }

    /// Returns how the job is named with its file.
    fn id(&self, path: &str) -> String {
        format!("{path}:{}", self.name)
    }

    /// Returns the place of a step in each of the jobs that a matrix makes of places of the repository, `working-directory:
    /// ${{ matrix.package }}`; itself where neither the script nor its directory names one.
    fn of_each_place(&self, repository: &Repository, script: Option<&str>) -> Vec<Self> {
        let texts: Vec<&str> = script.into_iter().chain(self.directory).collect();
        let is_named = |written: &String| texts.iter().any(|text| text.contains(written.as_str()));
        let is_place = |value: &&str| !joined("", value).is_empty() || *value == ".";
        let named = self.matrix.iter().map(|(key, values)| (value_of_matrix(key), values));
        let mut named = named.filter(|(written, values)| {
            is_named(written)
                && values.iter().all(|value| is_place(value) && repository.has_place(&joined("", value)))
        });
        match (named.next(), named.next()) {
            // Which values of two go together, only the jobs know.
            (Some((written, values)), None) if values.len() <= MOST_PLACES => {
                let row = |value: &&'j str| Some((written.clone(), *value));
                values.iter().map(|value| Self { row: row(value), ..self.clone() }).collect()
            }
            (_, _) => vec![self.clone()],
        }
    }

    /// Returns the directory of its commands, where it is known.
    fn known_directory(&self) -> Option<String> {
        let written = self.in_row(self.directory.unwrap_or(""));
        is_plain(&written).then(|| joined("", &written))
    }

    fn in_row(&self, text: &str) -> String {
        self.row.as_ref().map_or_else(|| text.to_owned(), |(written, value)| text.replace(written, value))
    }

    /// Puts in the values of variables that the file itself writes, `${{ env.CARGO }}`.
    fn with_variables(&self, text: &str) -> String {
        let put_in = |text: String, (name, value): &(String, String)| {
            text.replace(&format!("${{{{ env.{name} }}}}"), value)
        };
        // The nearest is the first, and leaves nothing for those behind it.
        self.variables.iter().fold(text.to_owned(), put_in)
    }

    /// Puts in what only some jobs of a matrix have, `${{ matrix.arguments || '' }}`, as the one has it whose place a loop takes.
    fn with_options_of_leg(&self, line: &str) -> String {
        if self.has_task_each {
            return line.to_owned();
        }
        let line = self.leg.without_absent(line);
        if line.contains("|| ''") { self.leg.put_in(&line) } else { line }
    }

    /// Puts in the values of variables, and at the top the place of the checkout.
    fn with_values(&self, line: &str, directory: &str) -> String {
        let line = self.in_row(&self.with_variables(&spaced(line))).trim_end().to_owned();
        let line = with_shell_variables(&line, &self.variables);
        // In a directory below, `./` would not be the top.
        if !directory.is_empty() {
            return line;
        }
        ["${{ github.workspace }}/", "$GITHUB_WORKSPACE/", "${GITHUB_WORKSPACE}/"]
            .iter()
            .fold(line, |line, place| line.replace(place, "./"))
    }
}

/// What stands before the name of an action that is no check.
pub(super) const CALL_OF_ACTION: &str = "uses: ";

fn unused_line(line: &str, directory: &str, evidence: Evidence, why: Reason) -> UnusedCommand {
    UnusedCommand { command: line.trim().to_owned(), directory: directory.to_owned(), evidence, why }
}

/// Writes expressions with a blank on each side, `${{matrix.os}}` as `${{ matrix.os }}`.
fn spaced(line: &str) -> String {
    let mut parts = line.split("${{");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        match part.split_once("}}") {
            Some((inner, behind)) => out.extend(["${{ ", inner.trim(), " }}", behind]),
            None => out.extend(["${{", part]),
        }
    }
    out
}

/// Puts in the values of variables that the shell would, `"${VERSION}"`, where no quote may keep it from that, and no value needs one.
fn with_shell_variables(line: &str, variables: &[(String, String)]) -> String {
    let is_plain =
        |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ._-/:=,@+".contains(&byte));
    if !line.contains('$') || line.contains('\'') {
        return line.to_owned();
    }
    let put_in = |line: String, (name, value): &(String, String)| {
        let line = line.replace(&format!("${{{name}}}"), value);
        let written = format!("${name}");
        let mut parts = line.split(&written);
        let first = parts.next().unwrap_or("").to_owned();
        // Of `$NAMES`, `NAME` is only the beginning.
        let goes_on = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        parts.fold(
            first,
            |line, part| if goes_on(part) { format!("{line}${name}{part}") } else { line + value + part },
        )
    };
    variables.iter().filter(|(_, value)| is_plain(value)).fold(line.to_owned(), put_in)
}

/// Returns those of the versions of Python that the repository says it supports, or all where it says of none of them: a matrix may
/// have one that is not released yet.
fn supported_pythons<'v>(repository: &Repository, values: &[&'v str]) -> Vec<&'v str> {
    let texts =
        ["pyproject.toml", "setup.cfg", "setup.py"].into_iter().filter_map(|file| repository.text(file));
    let sign = "Programming Language :: Python :: ";
    let of_line =
        |rest: &'_ str| rest.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().map(str::to_owned);
    let said: BTreeSet<String> =
        texts.flat_map(|text| text.split(sign).skip(1)).filter_map(of_line).collect();
    let known: Vec<&str> = values.iter().copied().filter(|value| said.contains(*value)).collect();
    if known.is_empty() { values.to_vec() } else { known }
}

/// The token of a job, as a workflow of ours writes it: there it may only read, which is all that is asked for to set something up.
const TOKEN: &str = "${{ github.token }}";

/// Tells whether an input is the token of the job, which every job has.
fn is_token(input: &str) -> bool {
    let plain: String = input.chars().filter(|c| !c.is_whitespace()).collect();
    matches!(plain.as_str(), "${{github.token}}" | "${{secrets.GITHUB_TOKEN}}")
}

/// Returns the oldest version of Rust that the repository says it supports.
fn oldest_supported(repository: &Repository) -> Option<Vec<u32>> {
    let is_key = |line: &&str| line.trim_start().starts_with("rust-version");
    let line = repository.text("Cargo.toml")?.lines().find(is_key)?;
    rust_toolchain::number(line.split(['"', '\'']).nth(1)?)
}

/// Tells whether a job has services that could not be read.
fn lacks_services(job: &Node, id: &str, contents: &CiContents) -> bool {
    let has_services = !lined_yaml::entries(job.get("services")).is_empty();
    has_services && !contents.services.iter().any(|known| known.job == id)
}

/// Tells whether a job runs in a container. That of a matrix may be empty.
fn is_contained(job: &Node, leg: &MatrixLeg) -> bool {
    let node = job.get("container");
    let image = lined_yaml::text(node).or_else(|| lined_yaml::text(node?.get("image")));
    image.is_some_and(|image| !leg.put_in(image).trim().is_empty())
}

/// Tells whether the version of an action is a commit.
pub(super) fn is_commit(version: &str) -> bool {
    version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the name that an action has today.
fn present_name(name: &str) -> &str {
    match name {
        "erlef/setup-elixir" | "actions/setup-elixir" => "erlef/setup-beam",
        "actions/setup-ruby" => "ruby/setup-ruby",
        name => name,
    }
}

/// Tells whether an action sets something up, by its name. Others may be given a token to write with it.
pub(super) fn is_of_set_up(name: &str) -> bool {
    let name = up_to(name, &['@']);
    after_last(name, &['/']).split('-').any(|word| word == "setup")
}

/// Tells whether an action calls the command that it is given, again where that fails.
fn repeats(action: &str) -> bool {
    matches!(action, "nick-fields/retry" | "nick-invision/retry" | "Wandalen/wretry.action")
}

/// Returns the commands that an action stands for whose inputs have places in it, `<command:check>`: one for each value of a matrix that
/// these name; none where only the job knows what they say.
fn filled(command: &str, with: Option<&Node>, matrix: &Matrix<'_>) -> Vec<String> {
    let text = with_places(command, |input| lined_yaml::text(with.and_then(|with| with.get(input))));
    let named = matrix.iter().find(|(key, _)| text.contains(&value_of_matrix(key)));
    let texts = match named {
        Some((key, values)) => {
            values.iter().map(|value| text.replace(&value_of_matrix(key), value)).collect::<Vec<_>>()
        }
        None => vec![text],
    };
    let is_one = |text: &String| understood_commands(text).is_some_and(|commands| commands.len() == 1);
    texts.into_iter().filter(is_one).collect()
}

/// Returns the command that an action stands for, with the arguments and inputs that the step gives it in the place of its own
/// paths; nothing where only the job knows them.
fn with_inputs(tool: &Tool, command: &str, with: Option<&Node>) -> Option<String> {
    if let Some(arguments) = with.and_then(|with| with.get("args")) {
        let arguments =
            lined_yaml::text(Some(arguments)).filter(|text| understood_commands(text.trim()).is_some())?;
        // What the arguments say as well, many tools take only once.
        let given: Vec<&str> = arguments.split_whitespace().collect();
        let own =
            without_paths(command).split(' ').filter(|word| !word.starts_with('-') || !given.contains(word));
        return Some(format!("{} {}", own.collect::<Vec<_>>().join(" "), arguments.trim()));
    }
    let (mut options, mut paths) = (Vec::new(), Vec::new());
    for entry in lined_yaml::entries(with) {
        let Some(option) = tool.inputs.get(&entry.key) else { continue };
        // A control character in a command would make a loop that does not load.
        let is_odd =
            |value: &str| value.contains("${{") || value.chars().any(|c| c.is_control() && c != '\n');
        let value = lined_yaml::text(Some(&entry.value)).filter(|value| !is_odd(value))?;
        match (option.as_str(), value.trim()) {
            // An option that is off is one that the command does not have.
            (_, "" | "false") => {}
            ("", _) => paths.extend(value.lines().filter_map(quoted_word)),
            (option, "true") => options.push(option.to_owned()),
            (option, value) => options.push(format!("{option} {}", quoted_word(value)?)),
        }
    }
    let kept = if paths.is_empty() { command } else { without_paths(command) };
    let words: Vec<_> = std::iter::once(kept.to_owned()).chain(options).chain(paths).collect();
    Some(words.join(" "))
}

/// Returns a command without the paths at its end: `.`, or a pattern in quotes.
fn without_paths(command: &str) -> &str {
    let rest = command.rsplit_once(' ').filter(|(_, word)| *word == "." || word.starts_with('\''));
    rest.map_or(command, |(rest, _)| rest)
}

/// Returns a line of an input as a word for the shell, which quotes that stand there already are no part of.
fn quoted_word(line: &str) -> Option<String> {
    let line = line.trim();
    let inner = ['\'', '"'].into_iter().find_map(|quote| line.strip_prefix(quote)?.strip_suffix(quote));
    let word = inner.unwrap_or(line);
    (!word.is_empty()).then(|| shlex::try_quote(word).ok().map(std::borrow::Cow::into_owned))?
}

fn written_directory(node: Option<&Node>) -> Option<&str> {
    lined_yaml::text(node?.get("working-directory"))
}

/// Returns what a workflow or a job says of all of its scripts.
fn defaults(node: &Node) -> Option<&Node> {
    node.get("defaults")?.get("run")
}

fn written_shell(node: Option<&Node>) -> Option<&str> {
    lined_yaml::text(node?.get("shell"))
}

/// Tells whether the steps behind this one see something else than what was checked out: what a command has changed, or what the
/// action has done that the repository itself is.
fn is_altering(step: &Node) -> bool {
    let of_action = lined_yaml::text(step.get("uses")).is_some_and(|uses| uses == "./");
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    let mut lines = script.iter().flatten();
    of_action || lines.any(|(_, line)| line.split("&&").any(|command| alters_checkout(command.trim())))
}

/// Tells whether a step starts something that still runs behind it, such as a server.
fn starts_another(step: &Node) -> bool {
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    script.iter().flatten().any(|(_, line)| goes_on_beside(line) || waits_for_server(line))
}

/// Tells whether a line of a script waits until something answers that it has started.
fn waits_for_server(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let asks =
        |word: &&str| matches!(*word, "curl" | "wget" | "nc" | "pg_isready" | "mysqladmin" | "redis-cli");
    matches!(words.first(), Some(&("until" | "while"))) && words.iter().any(asks)
}

/// Tells whether the shell does not wait for the last command of a line.
fn goes_on_beside(line: &str) -> bool {
    let line = line.trim_end();
    // Some programs say by a word that they stay.
    let stays = line.split_whitespace().any(|word| matches!(word, "--daemonize" | "--daemon" | "daemonize"));
    stays || line.ends_with('&') && !line.ends_with("&&")
}

/// Tells whether a step has variables that earlier ones say. A token only asks more of a server.
fn is_fed_by_steps(step: &Node) -> bool {
    lined_yaml::entries(step.get("env")).iter().any(|entry| {
        let value = lined_yaml::text(Some(&entry.value)).unwrap_or("");
        value.contains("steps.") && value.contains("${{") && !entry.key.contains("TOKEN")
    })
}

/// Tells whether a step, a job or a workflow sets variables to secrets, other than the token that every job has.
fn has_secrets(node: &Node) -> bool {
    lined_yaml::entries(node.get("env")).iter().any(|entry| {
        let value = lined_yaml::text(Some(&entry.value)).unwrap_or("");
        value.contains("secrets.") && !value.contains("secrets.GITHUB_TOKEN")
    })
}

/// Tells whether a step does with its machine what a command alone does not say: it downloads something, or sets variables and
/// paths of the steps behind it.
fn prepares_machine(step: &Node) -> bool {
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    let mut lines = script.iter().flatten();
    lines.any(|(_, line)| {
        ["$GITHUB_ENV", "${GITHUB_ENV", "$GITHUB_PATH", "${GITHUB_PATH"]
            .iter()
            .any(|file| line.contains(file))
            || matches!(first_word(line), "curl" | "wget")
    })
}

/// Tells whether what stands behind a step may need what that has fetched from another job.
fn fetches_built(step: &Node) -> bool {
    lined_yaml::text(step.get("uses")).is_some_and(|uses| {
        ["actions/download-artifact@", "dawidd6/action-download-artifact@"]
            .iter()
            .any(|action| uses.starts_with(action))
    })
}

/// Returns the directory into which a job unpacks the sources that another job has packed: they are those of the repository.
fn unpacked_source(job: &Node) -> Option<String> {
    let steps = steps(job);
    steps.iter().position(|step| fetches_built(step)).and_then(|at| {
        steps[at..].iter().find_map(|step| {
            let mut directory = written_directory(Some(step)).unwrap_or("").to_owned();
            logical_lines(lined_yaml::text(step.get("run"))?).into_iter().find_map(|(_, line)| {
                let words: Vec<&str> = line.split_whitespace().collect();
                if let ["cd", below] = words.as_slice() {
                    directory = joined(&directory, below);
                }
                let unpacks = words.first() == Some(&"tar")
                    && words.iter().any(|word| word.starts_with("--strip-components"))
                    && words.iter().any(|word| word.ends_with(".tar.gz"));
                let place = words.iter().position(|word| *word == "-C").and_then(|at| words.get(at + 1));
                unpacks.then(|| place.map_or_else(|| directory.clone(), |place| joined(&directory, place)))
            })
        })
    })
}

/// Tells whether what stands behind a step may need what that has handed on.
fn hands_on_behind(step: &Node) -> bool {
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    let mut lines = script.iter().flatten();
    lines.any(|(_, line)| line.split("&&").any(|command| hands_on(command.trim())))
}

/// Tells whether a command puts what it has built where other builds of the machine find it.
fn hands_on(command: &str) -> bool {
    let words = words(command);
    match words.as_slice() {
        ["npm" | "yarn" | "pnpm" | "bun", "link", ..] => true,
        // The program that is built there is called by its name.
        ["gem", "install", rest @ ..] => rest.iter().any(|word| extension(word) == Some("gem")),
        ["mvn" | "./mvnw" | "mvnw", rest @ ..] => rest.contains(&"install"),
        ["gradle" | "./gradlew" | "gradlew", rest @ ..] => {
            rest.iter().any(|task| after_last(task, &[':']) == "publishToMavenLocal")
        }
        _ => false,
    }
}

/// Tells whether a command names a place that only the machine of its job has.
fn is_of_one_machine(command: &str) -> bool {
    ["/opt/hostedtoolcache/", "/home/runner/", "/Users/runner/"].iter().any(|place| command.contains(place))
}

/// Tells whether a step calls an action that sets something up.
fn sets_up(step: &Node) -> bool {
    lined_yaml::text(step.get("uses"))
        .is_some_and(|uses| uses.contains("setup") && !uses.starts_with("actions/"))
}

/// Tells whether cargo is called of a version that the command names: what it says of others is left to those.
fn asks_for_toolchain(command: &str) -> bool {
    let is_version = |word: &str| {
        word.strip_prefix('+').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit()))
    };
    matches!(words(command).as_slice(), ["cargo", toolchain, ..] if is_version(toolchain))
}

/// A place that is no part of the repository.
const OUTSIDE: &str = "..";

/// Joins directories; what leads out of the repository stays outside.
fn joined(above: &str, below: &str) -> String {
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

    #[test]
    fn expressions_are_written_in_one_way() {
        for (line, expected) in [
            ("make a-${{matrix.x}} b", "make a-${{ matrix.x }} b"),
            ("${{  a }}${{b}}", "${{ a }}${{ b }}"),
            ("${{ a", "${{ a"),
            ("make", "make"),
        ] {
            assert_eq!(spaced(line), expected, "{line}");
        }
    }

    #[test]
    fn the_shell_puts_in_what_a_step_sets() {
        let variables = [("VERSION", "1.2"), ("FLAGS", "-a --b"), ("ODD", "x;y")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (line, expected) in [
            ("get --version \"${VERSION}\"", "get --version \"1.2\""),
            ("test $FLAGS --x=$VERSION", "test -a --b --x=1.2"),
            ("test $FLAGS_OF $ODD", "test $FLAGS_OF $ODD"),
            ("test '$VERSION'", "test '$VERSION'"),
        ] {
            assert_eq!(with_shell_variables(line, &variables), expected, "{line}");
        }
    }
}
