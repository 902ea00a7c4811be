//! Which of the lines that the CI runs are checks of a loop, each once.

use std::collections::BTreeSet;

use super::ci::{Caveat, CiCommand, CiContents, LineKind, joined, unused_finding, words};
use super::found_repository::{Finding, Repository};
use super::install_lines::{is_beside_packages, is_install, is_same_install};
use super::line_purpose::{PUBLISHES, check_of, is_build, prepares, script_of};
use super::node_packages::package_manager;
use super::result_files::without_options;
use super::script_lines::{asks_git, without_assignments};
use super::step_titles::check_by_title;
use super::unused::{Reason, UnusedCommand};
use super::when_jobs_run::OtherMachine;
use crate::base::text::after_last;
use crate::judges::tree::extension;
use crate::tools::{Purpose, TOOLS, is_other, recognise_line};

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
        if line.kind == LineKind::InstallOfStep {
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
                    let own = own.or_else(|| check_by_title(repository, contents, line, why, is_behind));
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
    let measured = add_each_once(repository, &mut all.found, first);
    let is_test = |one: &Finding| one.purpose == Some(Purpose::Test) && !one.is_fix;
    let has_tests = all.found.iter().any(is_test);
    let is_kept = |one: &Finding| (is_test(one) && !has_tests) || calls_tasks(&one.command);
    let (kept, given_way): (Vec<_>, Vec<_>) = second.into_iter().partition(|(_, one)| is_kept(one));
    let later = add_each_once(repository, &mut all.found, kept.into_iter().map(|(_, finding)| finding));
    let measured = measured.into_iter().chain(later);
    all.unused.extend(measured.map(|finding| unused_finding(finding, Reason::OnlyMeasures)));
    all.unused.extend(with_other_installs(contents, &all.found));
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
    let is_plain = |one: &Finding| !one.is_fix && !contents.is_always_contained(one);
    let has_plain = all.found.iter().any(is_plain);
    all.leave_out(Reason::OnlyInImage, |one| {
        contents.is_only_contained(one) || has_plain && contents.is_always_contained(one)
    });
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

/// Returns the lines that call one of these checks in a job that has installed something else before: a library in another version.
fn with_other_installs(contents: &CiContents, found: &[Finding]) -> Vec<UnusedCommand> {
    let lines = &contents.commands;
    let installs = |job: &str, before: usize| -> BTreeSet<&str> {
        let of_job = lines[..before].iter().filter(|line| line.job == job && is_install(&line.command));
        of_job.map(|line| line.command.as_str()).filter(|command| !is_beside_packages(command)).collect()
    };
    let of_check = |check: &Finding| -> Vec<UnusedCommand> {
        let own = lines.iter().position(|line| line.evidence == check.evidence);
        let Some((at, home)) = own.and_then(|at| Some((at, lines.get(at)?))) else { return Vec::new() };
        let known = installs(&home.job, at);
        let is_other = |(at, line): &(usize, &CiCommand)| {
            let has_more = || {
                let mut all = installs(&line.job, *at).into_iter();
                all.any(|one| !known.iter().any(|other| *other == one || is_same_install(one, other)))
            };
            line.job != home.job && !line.needs_others() && line.is_call_of(check) && has_more()
        };
        let others = lines.iter().enumerate().filter(is_other);
        others.map(|(_, line)| line.unused(Reason::OtherInstalls)).collect()
    };
    found.iter().filter(|check| !check.is_fix).flat_map(of_check).collect()
}

/// Adds checks to those that are known, in the shorter of two ways to call one, and returns those that say more: what they measure.
fn add_each_once(
    repository: &Repository,
    known: &mut Vec<Finding>,
    findings: impl IntoIterator<Item = Finding>,
) -> Vec<Finding> {
    let says_more = |one: &Finding, other: &Finding| {
        let of_other = words(&other.command);
        words(&one.command).iter().skip(1).any(|word| !of_other.contains(word))
    };
    let mut others = Vec::new();
    for finding in findings {
        let is_same = |other: &&mut Finding| {
            other.directory == finding.directory
                && unmeasured(repository, other) == unmeasured(repository, &finding)
        };
        match known.iter_mut().find(is_same) {
            // What the longer one says more is how to measure, and a loop measures nothing.
            Some(known) if words(&finding.command).len() < words(&known.command).len() => {
                let longer = std::mem::replace(known, finding);
                others.extend(says_more(&longer, known).then_some(longer));
            }
            Some(known) => others.extend(says_more(&finding, known).then_some(finding)),
            None => known.push(finding),
        }
    }
    others
}

/// Tells whether each line that calls a check of mistakes or of the format stands behind a build of its job: it may look at what that
/// has made, such as the types of other packages.
pub(super) fn is_behind_build(lines: &[CiCommand], check: &Finding) -> bool {
    if !matches!(check.purpose, Some(Purpose::Lint | Purpose::Format)) {
        return false;
    }
    let builds = |line: &CiCommand| shlex::split(&line.command).is_some_and(|words| is_build(&words));
    let is_behind =
        |(at, call): (usize, &CiCommand)| lines[..at].iter().any(|line| line.job == call.job && builds(line));
    let mut calls = lines.iter().enumerate().filter(|(_, line)| line.is_call_of(check)).peekable();
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
