//! Chooses from what was found: of each purpose, what the first place says that says anything about it.

use std::collections::BTreeSet;

use super::accounted_lines::{accounted, of_other_systems};
use super::block_checks::block_checks;
use super::called_as_in_ci::{as_in_ci, only_with_services, own_variables};
use super::ci::{CiContents, unused_finding, words};
use super::ci_checks::{CiChecks, ComposedCheck};
use super::cmake_targets::target_checks;
use super::drift_checks::drift_checks;
use super::found_repository::{Finding, Repository};
use super::hooks;
use super::long_jobs::hours;
use super::no_checks::is_plainly_none;
use super::script_lines::{asks_git, without_assignments};
use super::task_texts::{does, lines_of_task, scripts_of_task, without_writers};
use super::trial::{Trials, Tried};
use super::unused::{Reason, UnusedCommand, UnusedPackage};
use super::{ci, ci_checks, ci_files, line_purpose, offers, tasks, toolchains};
use crate::tools::{Manner, Purpose, recognise, recognise_line, task_part};

/// A check of a loop, and what mends what it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of its state.
    pub name: String,
    /// The check.
    pub finding: Finding,
    /// What mends it, if the repository has something that does.
    pub fix: Option<Finding>,
    /// Whether its CI calls it only where something has been built before.
    pub needs_build: bool,
}

impl Check {
    /// Tells whether it mends by itself what it finds, as hooks of pre-commit do: then it is asked again.
    pub fn mends_itself(&self) -> bool {
        recognise_line(&self.finding.command).is_some_and(|found| found.tool.name == "pre-commit")
    }

    /// Returns it, and what mends it.
    fn findings(&self) -> impl Iterator<Item = &Finding> {
        std::iter::once(&self.finding).chain(&self.fix)
    }
}

/// What a loop is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// Checks that are right only where the untouched tree passes them.
    pub tentative: Vec<Check>,
    /// What may be added, and what else was seen.
    pub unused: Vec<UnusedCommand>,
    /// How many hours the checks may take together, where that is more than one.
    pub hours: u32,
}

impl Plan {
    /// Returns how many hours the loop may take.
    pub(super) fn allowed_hours(&self) -> u32 {
        self.hours.max(1)
    }
}

/// How many checks of one purpose a loop has. What is more is named.
const MOST: usize = 12;

/// Where the tasks of the repository stand among the places, and what its CI calls.
const OF_TASKS: usize = 0;
const OF_CI: usize = 1;

/// Returns what each place says, in the order in which they count, and what they say besides.
fn found(
    repository: &Repository,
    contents: &CiContents,
    of_toolchains: Vec<Finding>,
) -> (Vec<Vec<Finding>>, Vec<UnusedCommand>) {
    let mut composed = drift_checks(repository, contents);
    composed.extend(target_checks(contents));
    // A line is of one of them alone.
    let of_blocks = block_checks(repository, contents);
    let is_free = |one: &ComposedCheck| {
        !one.lines.iter().any(|at| composed.iter().any(|known| known.lines.contains(at)))
    };
    let of_blocks: Vec<ComposedCheck> = of_blocks.into_iter().filter(is_free).collect();
    composed.extend(of_blocks);
    let CiChecks { found, mut unused } = ci_checks::run(repository, contents, &composed);
    let mut of_ci = Vec::new();
    let mut own = tasks::own(repository, &contents.commands);
    let is_partial = |one: &Finding| !one.is_fix && needs_base(repository, one);
    let (of_base, found): (Vec<Finding>, Vec<Finding>) = found.into_iter().partition(is_partial);
    let (of_base_own, left): (Vec<Finding>, Vec<Finding>) =
        std::mem::take(&mut own.found).into_iter().partition(is_partial);
    own.found = left;
    let of_base = of_base.into_iter().chain(of_base_own);
    unused.extend(of_base.map(|finding| unused_finding(finding, Reason::NeedsBase)));
    for check in found {
        match without_writers(repository, check.clone()) {
            Some(kept) => of_ci.push(kept),
            None => unused.push(unused_finding(check, Reason::TaskAlters)),
        }
    }
    // A workflow configures, builds and tests in steps of their own; here it is one command, with a directory of its own.
    let in_steps = of_toolchains.iter().filter(|test| test.command.contains("ctest"));
    of_ci.extend(in_steps.filter_map(|test| {
        Some(Finding { evidence: contents.call_of_ctest()?.evidence.clone(), ..test.clone() })
    }));
    unused.extend(own.unused);
    // Tests that the CI makes in an image need that, whoever calls them.
    let is_in_image =
        own.found.iter().any(|one| one.purpose == Some(Purpose::Test) && only_in_image(contents, one));
    let (in_image, of_toolchains): (Vec<Finding>, Vec<Finding>) =
        of_toolchains.into_iter().partition(|_| is_in_image);
    unused.extend(in_image.into_iter().map(|test| unused_finding(test, Reason::OnlyInImage)));
    let has_tests = own.found.iter().chain(&of_ci).any(|one| is(one, Purpose::Test, false));
    let (otherwise, of_toolchains): (Vec<Finding>, Vec<Finding>) =
        of_toolchains.into_iter().partition(|_| !has_tests && contents.commands.iter().any(tests_by_unknown));
    unused.extend(otherwise.into_iter().map(|test| unused_finding(test, Reason::TestedOtherwise)));
    (vec![own.found, of_ci, of_toolchains], unused)
}

/// Tells whether a line runs tests by a program of which nothing is known, `mage check`: what these need, only its job knows.
fn tests_by_unknown(line: &ci::CiCommand) -> bool {
    let words = words(&line.command);
    let is_word = |word: &&str| matches!(*word, "test" | "tests" | "check" | "unittest");
    recognise_line(&line.command).is_none()
        && line.kind == ci::LineKind::Usual
        && !is_plainly_none(&line.command)
        && words.iter().skip(1).any(is_word)
}

/// Tells whether a check, or a task that it calls, looks only at what a change touches: at a push that is nothing, and in a checkout
/// without other branches it fails.
fn needs_base(repository: &Repository, finding: &Finding) -> bool {
    let says = |text: &str| {
        let signs = ["nx affected", "--affected", "--since", "--changed-since", "--changedSince", "...["];
        signs.iter().any(|sign| text.contains(sign))
    };
    let names = recognise_line(&finding.command).map_or_else(Vec::new, |found| found.tasks);
    let is_called = |task: &&tasks::RepositoryTask| {
        finding.directory.is_empty() && (names.contains(&task.name) || finding.command == task.call)
    };
    says(&finding.command)
        || tasks::of_repository(repository).iter().filter(is_called).any(|task| says(&task.body))
}

/// Returns the reason for which something that was found is no check.
fn why_passed_over(repository: &Repository, contents: &CiContents, at: usize, finding: &Finding) -> Reason {
    match at {
        _ if finding.is_fix => Reason::Mends,
        OF_TASKS if only_in_image(contents, finding) => Reason::OnlyInImage,
        OF_TASKS if hooks::are_only_there(repository, finding) => Reason::HooksNotTried,
        OF_TASKS => Reason::CiDoesOtherwise,
        _ => Reason::OtherTasks,
    }
}

/// Plans the checks of a repository. With `mends`, a tool mends what it finds also where the repository has no task for that.
fn plan(repository: &Repository, mends: bool) -> Plan {
    let contents = ci_files::contents(repository);
    let in_ci = contents.commands.as_slice();
    // Tests that the CI only calls with something beside them need that here as well.
    let (of_toolchains, lacking): (Vec<Finding>, Vec<Finding>) =
        toolchains::tests(repository, &contents).into_iter().partition(|test| !contents.needs_others(test));
    let (found, mut unused) = found(repository, &contents, of_toolchains);
    let fixes: Vec<&Finding> =
        found.iter().flatten().filter(|one| one.is_fix && one.evidence.task.is_some()).collect();
    let (mut checks, mut more): (Vec<Check>, Vec<&Finding>) = (Vec::new(), Vec::new());
    let mut variants: Vec<&Finding> = Vec::new();
    for purpose in Purpose::ALL {
        let mut of_purpose = chosen(repository, &found, &contents, purpose);
        variants.extend(without_variants(&mut of_purpose));
        more.extend(of_purpose.split_off(MOST.min(of_purpose.len())));
        let has_plain = of_purpose.iter().any(|check| is_plain_task(check));
        for check in &of_purpose {
            let is_known = checks.iter().any(|known| {
                known.finding.command == check.command && known.finding.directory == check.directory
            });
            if is_known {
                continue;
            }
            // No tool mends a build or a test that fails.
            let has_fix = matches!(purpose, Purpose::Lint | Purpose::Format);
            // Beside `lint`, `lint:fix` is not what mends another check.
            let fixes: Vec<&Finding> =
                fixes.iter().filter(|fix| is_about(repository, fix, check)).copied().collect();
            let of_task = task_that_mends(check, purpose, &fixes)
                .filter(|fix| !has_plain || is_plain_task(check) || !is_plain_task(fix));
            let fix = of_task.or_else(|| mends.then(|| of_tool(check)).flatten());
            let name = name(check, purpose, of_purpose.len(), &checks);
            let needs_build = ci_checks::is_behind_build(in_ci, check);
            let fix = fix.filter(|_| has_fix);
            checks.push(Check { name, finding: (*check).clone(), fix, needs_build });
        }
    }
    if checks.is_empty() {
        checks.extend(toolchains::documents(repository).into_iter().take(1).map(|finding| Check {
            name: "build".to_owned(),
            finding,
            fix: None,
            needs_build: false,
        }));
    }
    let own = own_variables(&contents, &checks.iter().map(|check| &check.finding).collect::<Vec<_>>());
    for (check, own) in checks.iter_mut().zip(own) {
        check.finding.command = as_in_ci(repository, &contents, &check.finding, &own);
    }
    checks.sort_by_key(place_in_loop);
    // The toolchain's idea of a format does not stand beside the repository's own.
    let has_format = checks.iter().any(|check| check.finding.purpose == Some(Purpose::Format));
    let formats = if has_format { Vec::new() } else { toolchains::formats(repository) };
    // Nor does it where a task of another purpose has it looked at.
    let is_done = |one: &Finding| checks.iter().any(|check| does(repository, &check.finding, one));
    let tentative = formats.into_iter().filter(|one| !is_done(one)).take(1).map(|finding| {
        let fix = mends.then(|| of_tool(&finding)).flatten();
        Check { name: name(&finding, Purpose::Format, 1, &checks), finding, fix, needs_build: false }
    });
    let unproved = unproved(repository, &found, &contents, &checks);
    let tentative: Vec<Check> = tentative.chain(unproved).collect();
    let called: Vec<&Finding> = checks.iter().map(|check| &check.finding).collect();
    let offered = |finding: &Finding, why: Reason| unused_finding(finding.clone(), why);
    let more = more.into_iter().map(|finding| offered(finding, Reason::Many));
    let variants = variants.into_iter().map(|finding| offered(finding, Reason::OtherProperties));
    let of_toolchains = toolchains::offered(repository, &contents);
    let with_services = found.iter().flatten().filter(|one| only_with_services(in_ci, one));
    let with_services = with_services.map(|finding| offered(finding, Reason::LacksService));
    // Other tests stand for them.
    let has_tests = called.iter().any(|check| check.purpose == Some(Purpose::Test));
    let lacking = lacking.iter().filter(|_| !has_tests).map(|test| offered(test, Reason::OnlyBesideOthers));
    let before: Vec<UnusedCommand> =
        more.chain(variants).chain(with_services).chain(lacking).chain(of_toolchains).collect();
    // What else was found is no check for a reason of its own; a test of the toolchain gives way to any other.
    for (at, source) in found.iter().enumerate().take(OF_CI + 1) {
        let is_meant = |one: &&Finding| at == OF_CI || !one.is_fix;
        let passed_over = source.iter().filter(is_meant);
        unused.extend(passed_over.map(|one| offered(one, why_passed_over(repository, &contents, at, one))));
    }
    unused.extend(of_other_systems(repository));
    let kept: Vec<&Finding> = checks.iter().chain(&tentative).flat_map(Check::findings).collect();
    let mut accounted = accounted(repository, unused, &kept);
    accounted.retain(|one| !before.iter().any(|known| known.call() == one.call()));
    let configured = offers::configured(repository, in_ci, &called);
    let unused = before.into_iter().chain(accounted).chain(configured).collect();
    let all: Vec<&Finding> = checks.iter().map(|check| &check.finding).collect();
    let hours = hours(&contents, &all);
    Plan { checks, tentative, unused, hours }
}

/// Returns the hooks of pre-commit and the tasks that nothing runs for changes, beside what the CI looks for itself: checks only where
/// the tree passes them.
fn unproved(
    repository: &Repository,
    found: &[Vec<Finding>],
    contents: &CiContents,
    checks: &[Check],
) -> Vec<Check> {
    let is_known = |one: &Finding| checks.iter().any(|check| check.finding.command == one.command);
    let is_whole = |one: &Finding| is_plain_task(one) && !only_in_image(contents, one);
    let is_one = |one: &&Finding| {
        !one.is_fix && !is_known(one) && (hooks::are_only_there(repository, one) || is_whole(one))
    };
    let mut all: Vec<Check> = Vec::new();
    for finding in found.get(OF_TASKS).into_iter().flatten().filter(is_one) {
        let known: Vec<Check> = checks.iter().chain(&all).cloned().collect();
        let Some(purpose) = finding.purpose else { continue };
        let name = name(finding, purpose, 2, &known);
        all.push(Check { name, finding: finding.clone(), fix: None, needs_build: false });
    }
    all
}

/// Tells whether each line of the CI that calls a task does so within an image, or in a container, which has what the task needs.
fn only_in_image(contents: &CiContents, task: &Finding) -> bool {
    let of_lines = contents.commands.iter().map(|line| line.command.as_str());
    let lines = of_lines.chain(contents.unused.iter().map(|line| line.command.as_str()));
    let mut calls = lines.filter(|line| has_call(line, &task.command)).peekable();
    let starts_image = |line: &str| {
        let words = words(line);
        matches!(
            words.as_slice(),
            ["docker" | "podman", "run" | "exec" | "compose", ..] | ["docker-compose", "run" | "exec", ..]
        )
    };
    calls.peek().is_some() && calls.all(starts_image) || contents.is_only_contained(task)
}

/// Returns what says where a check stands in its loop: by its purpose, and behind the builds where it needs one.
fn place_in_loop(check: &Check) -> (Option<usize>, bool) {
    let place = |purpose: Purpose| Purpose::ALL.iter().position(|known| *known == purpose);
    let own = check.finding.purpose.and_then(place);
    // Tests stand behind the builds anyway.
    (if check.needs_build { own.max(place(Purpose::Build)) } else { own }, check.needs_build)
}

/// Returns the checks of a purpose: those of the first source that has any, and beside the tasks of the repository what its CI
/// calls and none of them does.
fn chosen<'f>(
    repository: &Repository,
    found: &'f [Vec<Finding>],
    contents: &CiContents,
    purpose: Purpose,
) -> Vec<&'f Finding> {
    let in_ci = contents.commands.as_slice();
    let of = |source: &'f Vec<Finding>| {
        source
            .iter()
            .filter(|one| is(one, purpose, false) && !is_passed_over(repository, found, contents, one))
    };
    let Some(at) = found.iter().position(|source| of(source).next().is_some()) else { return Vec::new() };
    let mut all: Vec<&Finding> = of(&found[at]).collect();
    if at == OF_TASKS {
        let of_ci = found.get(OF_CI).into_iter().flat_map(of);
        let is_new = |line: &&Finding| !all.iter().any(|task| does(repository, task, line));
        let more: Vec<&Finding> = of_ci.clone().filter(is_new).collect();
        let on_screen: Vec<&Finding> = of_ci.filter(|line| line.command.starts_with(SCREEN)).collect();
        for task in &mut all {
            *task = on_screen_as_in_ci(task, &on_screen, in_ci).unwrap_or(*task);
        }
        all.extend(more);
        // What stands in the place of a task is new as well.
        let mut known = BTreeSet::new();
        all.retain(|one| known.insert((one.command.as_str(), one.directory.as_str())));
    }
    all
}

/// What starts a command that needs a screen.
const SCREEN: &str = "xvfb-run ";

/// Returns the line by which the CI calls a task, where each line that does gives it a screen: without one, the task fails.
fn on_screen_as_in_ci<'f>(
    task: &Finding,
    on_screen: &[&'f Finding],
    in_ci: &[ci::CiCommand],
) -> Option<&'f Finding> {
    let mut calls = in_ci.iter().filter(|line| has_call(&line.command, &task.command));
    let is_of_all = task.evidence.task.is_some() && calls.all(|line| line.command.starts_with(SCREEN));
    on_screen.iter().find(|line| is_of_all && has_call(&line.command, &task.command)).copied()
}

/// Takes those checks out that do the same tasks as another one, with other properties, and returns them. The plainest of them stays.
fn without_variants<'f>(checks: &mut Vec<&'f Finding>) -> Vec<&'f Finding> {
    let is_plainer = |one: &Finding, other: &Finding| {
        let count = |finding: &Finding| words(&finding.command).len();
        count(one) < count(other)
    };
    let mut kept: Vec<&Finding> = Vec::new();
    let mut variants = Vec::new();
    for check in std::mem::take(checks) {
        match kept.iter_mut().find(|known| is_variant(known, check)) {
            Some(known) if is_plainer(check, known) => variants.push(std::mem::replace(known, check)),
            Some(_) => variants.push(check),
            None => kept.push(check),
        }
    }
    *checks = kept;
    variants
}

/// Tells whether two checks call the same tasks of one tool in one directory, and differ in properties alone: `-Pplatform=jdk9`.
fn is_variant(one: &Finding, other: &Finding) -> bool {
    let is_property = |word: &&str| {
        let name =
            word.strip_prefix("-P").or_else(|| word.strip_prefix("-D")).and_then(|rest| rest.split_once('='));
        // These say which tests are run, and not how.
        name.is_some_and(|(name, _)| !matches!(name, "test" | "it.test" | "groups" | "excludedGroups"))
    };
    let called = |finding: &Finding| {
        let found = recognise_line(&finding.command)?;
        let is_make = found.tool.name == "make";
        // Of make, each setting is one: `make CFLAGS=-O3`. Options of a program say what is done: `make test ARGS='--workspace'`.
        let is_setting = |word: &&str| {
            let value = word.split_once('=').filter(|_| is_make && !word.starts_with('-'));
            value.is_some_and(|(_, value)| !value.starts_with("--"))
        };
        let is_meant = found.tool.ecosystem == "java" || is_make;
        is_meant.then_some(())?;
        // A value may be of several words, `CFLAGS='-O2 -g'`.
        let all = shlex::split(without_assignments(&finding.command))?;
        let plain = all.iter().map(String::as_str).filter(|word| !is_property(word) && !is_setting(word));
        Some((found.tool.name.clone(), plain.map(str::to_owned).collect::<BTreeSet<String>>()))
    };
    let is_same_place = one.directory == other.directory && one.is_fix == other.is_fix;
    is_same_place && called(one).is_some_and(|of_one| called(other) == Some(of_one))
}

/// Tells whether a task gives way to what the CI checks by itself: one that it does not call and that calls nothing which it does, and
/// an environment of a runner that it never names. Nobody would notice when such a task no longer works.
fn is_passed_over(
    repository: &Repository,
    found: &[Vec<Finding>],
    contents: &CiContents,
    task: &Finding,
) -> bool {
    let in_ci = contents.commands.as_slice();
    if only_with_services(in_ci, task) || task.evidence.task.is_some() && only_in_image(contents, task) {
        return true;
    }
    // Who has linters look, and calls no task that looks at the format, may leave that to everybody.
    let is_same = |other: &Finding| {
        is(other, task.purpose.unwrap_or(Purpose::Build), false)
            || task.purpose == Some(Purpose::Format)
                && task.evidence.task.is_some()
                && is(other, Purpose::Lint, false)
    };
    // The tests that lie in a build are tests, whatever else only their job knows of them.
    let is_tested = task.purpose == Some(Purpose::Test) && contents.tests_by_cmake();
    let Some(of_ci) = found.get(OF_CI).filter(|of_ci| is_tested || of_ci.iter().any(is_same)) else {
        return false;
    };
    if hooks::are_only_there(repository, task) {
        return true;
    }
    let of_task = words(&task.command);
    // Without a name, make and its like run what comes first, which may call any of the others.
    let is_bare =
        |words: &[&str]| matches!(words, ["make" | "just" | "task"]) && words.first() == of_task.first();
    let is_call = |words: &[&str]| *words == of_task || is_bare(words);
    let is_called =
        in_ci.iter().any(|line| line.directory == task.directory && is_call(&words(&line.command)));
    let runner = ["tox", "nox"].into_iter().find(|runner| words(&task.command).first() == Some(runner));
    match (&task.evidence.task, runner) {
        (None, _) => false,
        (Some(_), Some(runner)) => !ci_files::names(repository, runner),
        (Some(_), None) => {
            let stays = || {
                // What is called elsewhere, nobody knows here; and who runs the hooks, the hooks say.
                let is_unknown = contents.unused.iter().any(|one| one.why == Reason::WorkflowOfOthers);
                task.evidence.file == hooks::FILE
                    || is_plain_task(task)
                        && (is_unknown || in_ci.iter().any(|line| does(repository, task, &line.as_test())))
            };
            !stays()
                && !is_called
                && !of_ci.iter().any(|other| has_call(&other.command, &task.command))
                && !is_called_otherwise(repository, of_ci, in_ci, task)
        }
    }
}

/// Tells whether a task is called within a command, `xvfb-run -a npm test`: by its whole words, because `npm run test-unit` calls
/// no `test`.
fn has_call(command: &str, task: &str) -> bool {
    // What is left out before the script of a package is left out only where its manager is the first word.
    let mut begins =
        std::iter::once(command).chain(command.match_indices(' ').map(|(at, _)| &command[at + 1..]));
    let task = words(task);
    begins.any(|rest| !task.is_empty() && words(rest).starts_with(&task))
}

/// Tells whether the CI calls the script of a task itself, in words that say nothing of what it checks: then the task says it.
fn is_called_otherwise(
    repository: &Repository,
    of_ci: &[Finding],
    in_ci: &[ci::CiCommand],
    task: &Finding,
) -> bool {
    let scripts = scripts_of_task(repository, task);
    if scripts.is_empty() {
        return false;
    }
    in_ci.iter().any(|line| {
        line_purpose::script_of(repository, &line.directory, &line.command)
            .is_some_and(|script| scripts.contains(&script))
            && !of_ci.iter().any(|check| check.evidence == line.evidence)
    })
}

fn is(finding: &Finding, purpose: Purpose, is_fix: bool) -> bool {
    finding.purpose == Some(purpose) && finding.is_fix == is_fix
}

/// Returns the task of the repository that mends what a check finds: of the same file and purpose, or everything.
fn task_that_mends(check: &Finding, purpose: Purpose, fixes: &[&Finding]) -> Option<Finding> {
    let is_meant = |fix: &&&Finding| is(fix, purpose, true) && mends_that(check, fix);
    let is_here = |fix: &&&Finding| fix.evidence.file == check.evidence.file && is_meant(fix);
    let any = is_meant;
    let all = |fix: &&&Finding| fix.purpose.is_none();
    let fix =
        fixes.iter().find(is_here).or_else(|| fixes.iter().find(any)).or_else(|| fixes.iter().find(all));
    fix.filter(|fix| fix.directory == check.directory).map(|fix| (*fix).clone())
}

/// Tells whether a task that mends may be about what a check finds. Two tasks are told by their names; of a tool that a workflow
/// calls, the task has to call the same tool: `make lint` that runs one linter mends nothing that another finds.
fn is_about(repository: &Repository, fix: &Finding, check: &Finding) -> bool {
    if check.evidence.task.is_some() {
        return true;
    }
    let Some(found) = recognise_line(&check.command) else { return false };
    let body = lines_of_task(repository, &fix.evidence.file, fix.evidence.line);
    let calls =
        |word: &str| body.split(|c: char| c.is_whitespace() || "\"';".contains(c)).any(|part| part == word);
    found.tool.programs().iter().any(|program| calls(program))
        && found.check.words.iter().all(|word| calls(word))
}

/// Tells whether a command is a task that is about all of its purpose, by its name.
fn is_plain_task(finding: &Finding) -> bool {
    finding.evidence.task.as_deref().is_some_and(|task| task_part(task).is_empty())
}

/// Tells whether a task that mends is about the same part as a check: `lint:css:fix` is not what mends `lint:js`.
fn mends_that(check: &Finding, fix: &Finding) -> bool {
    let part = |finding: &Finding| {
        let part = finding.evidence.task.as_deref().map(task_part);
        part.filter(|part| !part.is_empty())
    };
    part(fix).is_none_or(|of_fix| Some(of_fix) == part(check))
}

/// Returns the command with which the tool of a check mends what that finds, called as the check is.
fn of_tool(check: &Finding) -> Option<Finding> {
    let found = recognise_line(&check.command).filter(|found| found.manner == Manner::Pure)?;
    let mend = found.check.mend.as_deref()?;
    let program = found.tool.programs().first()?;
    let before = check.command.split(program.as_str()).next().unwrap_or("");
    let mend = if mend.starts_with(program.as_str()) { format!("{before}{mend}") } else { mend.to_owned() };
    Some(Finding { is_fix: true, command: mend, ..check.clone() })
}

/// Returns the name of a check: of its purpose, or with what tells it from others of that.
fn name(check: &Finding, purpose: Purpose, of_purpose: usize, known: &[Check]) -> String {
    let plain = |text: &str| {
        let letters =
            text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
        letters.collect::<String>().trim_matches('_').to_owned()
    };
    let base = match (&check.evidence.task, of_purpose) {
        (_, 1) => purpose.word().to_owned(),
        (Some(task), _) => plain(task),
        (None, _) if !check.directory.is_empty() => format!("{}_{}", purpose.word(), plain(&check.directory)),
        (None, _) => format!("{}_{}", purpose.word(), plain(&program(&check.command))),
    };
    let base = base.replacen(&format!("{0}_{0}", purpose.word()), purpose.word(), 1);
    let is_taken = |name: &str| known.iter().any(|check| check.name == name);
    let with_subcommand = subcommand(&check.command).map(|word| format!("{base}_{}", plain(&word)));
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    let mut names = std::iter::once(base.clone()).chain(with_subcommand).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or(base)
}

/// Returns the word behind the program of a command, where it is one: of `cargo doc --no-deps`, `doc`.
fn subcommand(command: &str) -> Option<String> {
    let words = shlex::split(without_assignments(command))?;
    let word = words.get(1)?;
    (!word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && !word.starts_with('-'))
    .then(|| word.clone())
}

/// Returns the program that a command calls in the end, or the task that it runs.
fn program(command: &str) -> String {
    // Of several commands, the last is what the others are for; what git is asked, they have done.
    let mut commands = command.rsplit("&&").map(str::trim).filter(|one| !asks_git(one));
    let command = commands.next().unwrap_or(command);
    let Some(words) = shlex::split(command) else { return String::new() };
    let found = recognise(&words);
    match (found, words.as_slice()) {
        // Behind `uv run` stands a program and its arguments, not a task.
        (None, [runner, run, .., task]) if run == "run" && runner != "uv" => task.clone(),
        (None, [manager, script]) if matches!(manager.as_str(), "npm" | "pnpm" | "yarn" | "bun") => {
            script.clone()
        }
        (Some(found), _) => {
            found.tasks.first().or(found.environments.first()).unwrap_or(&found.tool.name).clone()
        }
        (None, [shell, path, ..]) if matches!(shell.as_str(), "bash" | "sh") && !path.starts_with('-') => {
            let name = path.rsplit('/').next().unwrap_or(path);
            name.split('.').next().unwrap_or(name).to_owned()
        }
        (None, words) => words.first().and_then(|word| word.rsplit('/').next()).unwrap_or("").to_owned(),
    }
}

/// A loop that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLoop {
    /// Its name, which says where its file is below `.loops`.
    pub name: String,
    /// What it checks.
    pub plan: Plan,
    /// The packages that it is run for, one at a time; none where it is for the whole repository.
    pub packages: Vec<String>,
}

/// What was planned, and what was passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// The loops.
    pub loops: Vec<PlannedLoop>,
    /// Packages that are in none of them, each with the reason.
    pub left_out: Vec<UnusedPackage>,
    /// What was seen, where there is no loop to say it.
    pub unused: Vec<UnusedCommand>,
}

/// What says that a directory is a package.
const MANIFESTS: [&str; 15] = [
    "pubspec.yaml",
    "build.zig",
    "mix.exs",
    "Package.swift",
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "composer.json",
    "Gemfile",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "deno.json",
];

/// Plans the loops of a repository: one for all of it, or else one for all packages with equal commands.
pub fn loops(repository: &Repository, mends: bool) -> Planned {
    let whole = plan(repository, mends);
    if !whole.checks.is_empty() {
        let left_out = with_own_checks(repository, &whole);
        let whole = PlannedLoop { name: "tidy".to_owned(), plan: whole, packages: Vec::new() };
        return Planned { loops: vec![whole], left_out, unused: Vec::new() };
    }
    let mut planned = packages(repository, mends);
    let of_top = not_of_packages(repository, &planned, &whole.unused);
    match planned.loops.first_mut() {
        Some(first) => first.plan.unused.extend(of_top),
        None => planned.unused = of_top,
    }
    // A format of the toolchain alone: whether it holds, a try tells.
    if planned.loops.is_empty() && !whole.tentative.is_empty() {
        planned.loops.push(PlannedLoop { name: "tidy".to_owned(), plan: whole, packages: Vec::new() });
    }
    planned
}

/// Returns what was seen at the top and what no loop of the packages does.
fn not_of_packages(
    repository: &Repository,
    planned: &Planned,
    unused: &[UnusedCommand],
) -> Vec<UnusedCommand> {
    let below = |package: &String, finding: &Finding| {
        let directory = format!("{package}/{}", finding.directory);
        Finding { directory: directory.trim_end_matches('/').to_owned(), ..finding.clone() }
    };
    let of_loop = |one: &PlannedLoop| {
        let all = one.plan.checks.iter().flat_map(Check::findings);
        all.flat_map(|finding| one.packages.iter().map(move |package| below(package, finding)))
            .collect::<Vec<_>>()
    };
    let kept: Vec<Finding> = planned.loops.iter().flat_map(of_loop).collect();
    accounted(repository, unused.to_vec(), &kept.iter().collect::<Vec<_>>())
}

/// Returns the packages with checks of their own that nothing at the top calls.
fn with_own_checks(repository: &Repository, whole: &Plan) -> Vec<UnusedPackage> {
    let is_called = |package: &str| whole.checks.iter().any(|check| check.finding.directory == package);
    let packages: BTreeSet<&str> = repository.paths().filter_map(package).collect();
    // What a workspace calls for all its packages is seen at the top.
    let is_workspace = repository.has("pnpm-workspace.yaml")
        || ["package.json", "Cargo.toml"].iter().any(|file| {
            repository
                .text(file)
                .is_some_and(|text| text.contains("\"workspaces\"") || text.contains("[workspace"))
        })
        || repository.has("go.work");
    let unseen = packages.into_iter().filter(|package| {
        let below = repository.below(package);
        !is_called(package)
            && !is_workspace
            && !tasks::own(&below, &ci_files::contents(&below).commands).found.is_empty()
    });
    unseen.map(|package| UnusedPackage { package: package.to_owned(), why: Reason::HasOwnTasks }).collect()
}

fn packages(repository: &Repository, mends: bool) -> Planned {
    let mut groups: Vec<(Plan, Vec<String>)> = Vec::new();
    let mut left_out = Vec::new();
    let mut known = BTreeSet::new();
    for package in repository.paths().filter_map(package).filter(|package| known.insert(*package)) {
        if !is_plain(package) {
            left_out.push(UnusedPackage { package: package.to_owned(), why: Reason::OddName });
            continue;
        }
        let of_package = plan(&repository.below(package), mends);
        if of_package.checks.is_empty() {
            // What tests are made of is no package of anybody.
            if !is_of_tests(package) {
                left_out.push(UnusedPackage { package: package.to_owned(), why: Reason::SaysNothing });
            }
            continue;
        }
        match groups.iter_mut().find(|(known, _)| commands(known).eq(commands(&of_package))) {
            // The files of the first package are the evidence for all that share its commands.
            Some((_, packages)) => packages.push(package.to_owned()),
            None => groups.push((within(of_package, package), vec![package.to_owned()])),
        }
    }
    let shared = groups.iter().filter(|(_, packages)| packages.len() > 1).count();
    let mut number = 0;
    let named = groups.into_iter().map(|(plan, packages)| {
        let name = match packages.as_slice() {
            [alone] => format!("{alone}/tidy"),
            _ if shared == 1 => "tidy".to_owned(),
            _ => {
                number += 1;
                format!("tidy-{number}")
            }
        };
        PlannedLoop { name, plan, packages }
    });
    Planned { loops: named.collect(), left_out, unused: Vec::new() }
}

/// Returns the package that a file makes of its directory.
fn package(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    MANIFESTS.contains(&name).then_some(directory)
}

/// Tells whether a directory lies among files that tests are made of.
fn is_of_tests(directory: &str) -> bool {
    directory
        .split('/')
        .any(|part| matches!(part, "test" | "tests" | "__tests__" | "fixtures" | "__fixtures__" | "testdata"))
}

/// Tells whether the name of a package can stand in a loop, a workflow and a command as it is.
fn is_plain(directory: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/_.-@ +,~=".contains(c);
    // `..` leads out of the repository, and a dash would begin an option.
    directory.chars().all(is_plain)
        && !directory.split('/').any(|part| part.starts_with(['.', '-', ' ']) || part.ends_with(' '))
}

fn commands(plan: &Plan) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    plan.checks.iter().map(|check| {
        let fix = check.fix.as_ref().map(|fix| fix.command.as_str());
        (check.name.as_str(), check.finding.command.as_str(), fix)
    })
}

/// Says of evidence in a package where it is in the repository.
fn within(mut plan: Plan, package: &str) -> Plan {
    let below = |file: &mut String| *file = format!("{package}/{file}");
    for check in plan.checks.iter_mut().chain(&mut plan.tentative) {
        below(&mut check.finding.evidence.file);
        if let Some(fix) = &mut check.fix {
            below(&mut fix.evidence.file);
        }
    }
    plan.unused.iter_mut().for_each(|one| below(&mut one.evidence.file));
    plan
}

/// Says why a check that only some trees pass is none here.
fn why_not(purpose: Option<Purpose>, tried: Option<&Tried>) -> Reason {
    let is_format = purpose == Some(Purpose::Format);
    match tried {
        None if is_format => Reason::FormatNotTried,
        None => Reason::HooksNotTried,
        Some(Tried::Ran { .. } | Tried::Changed { .. }) if is_format => Reason::FormatNotThere,
        Some(Tried::Ran { .. } | Tried::Changed { .. }) => Reason::HooksFail,
        Some(Tried::CouldNotRun { .. }) if is_format => Reason::FormatCouldNotBeTried,
        Some(Tried::CouldNotRun { .. }) => Reason::HooksCouldNotBeTried,
    }
}

impl Plan {
    /// Takes in what a try has shown: a check that only some trees pass is kept where this one does, one that changed files is
    /// none, and what a check finds on the untouched tree is not mended unless somebody asks for that.
    #[must_use]
    pub fn settled(mut self, trials: &Trials, mends: bool) -> Self {
        for check in std::mem::take(&mut self.tentative) {
            match trials.of(&check.finding) {
                Some(Tried::Ran { exit: 0, .. }) => self.checks.push(check),
                tried => {
                    let why = why_not(check.finding.purpose, tried);
                    self.unused.push(unused_finding(check.finding, why));
                }
            }
        }
        // A format that the try has confirmed was put last, and belongs before the tests.
        self.checks.sort_by_key(place_in_loop);
        for check in &mut self.checks {
            if !mends && matches!(trials.of(&check.finding), Some(Tried::Ran { exit, .. }) if *exit != 0) {
                check.fix = None;
            }
        }
        self
    }
}
