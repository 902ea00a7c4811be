//! Chooses from what was found: of each purpose, what the first place says that says anything about it.

use super::repository::{Finding, Purpose, Repository};
use super::{ci, tasks, tools};

/// A place where a repository says what it uses: the earlier in the table, the more it counts.
struct Source {
    find: fn(&Repository) -> Vec<Finding>,
}

/// Every place, in the order in which they count.
const SOURCES: &[Source] = &[
    Source { find: tasks::own },
    Source { find: ci::run },
    Source { find: tools::configured },
    Source { find: tools::of_toolchains },
];

/// Returns what each place says, in the order in which they count.
fn found(repository: &Repository) -> Vec<Vec<Finding>> {
    SOURCES.iter().map(|source| (source.find)(repository)).collect()
}

/// A check of a loop, and what mends what it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of its state.
    pub name: String,
    /// The check.
    pub finding: Finding,
    /// What mends it, if the repository has something that does.
    pub fix: Option<Finding>,
}

/// The checks of a loop, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Them.
    pub checks: Vec<Check>,
}

/// How many checks of one purpose a loop has.
const MOST: usize = 4;

/// Plans the checks of a repository.
fn plan(repository: &Repository) -> Plan {
    let found = found(repository);
    let mut checks: Vec<Check> = Vec::new();
    for purpose in Purpose::ALL {
        let of_source = |findings: &&Vec<Finding>| findings.iter().any(|one| is(one, purpose, false));
        let Some(source) = found.iter().find(of_source) else { continue };
        let fixes: Vec<&Finding> = found.iter().flatten().filter(|one| one.is_fix).collect();
        let of_purpose: Vec<&Finding> =
            source.iter().filter(|one| is(one, purpose, false)).take(MOST).collect();
        for check in &of_purpose {
            // A tool mends what it finds itself; a task, what its purpose is, or everything.
            let is_here =
                |fix: &&&Finding| fix.evidence.file == check.evidence.file && is(fix, purpose, true);
            let is_alone = fixes.iter().filter(is_here).count() == 1;
            let same_place = |fix: &&&Finding| is_here(fix) && (is_alone || is_same_tool(fix, check));
            let any = |fix: &&&Finding| is(fix, purpose, true) && fix.evidence.task.is_some();
            let all = |fix: &&&Finding| fix.purpose.is_none();
            let fix = fixes
                .iter()
                .find(same_place)
                .or_else(|| fixes.iter().find(any))
                .or_else(|| fixes.iter().find(all));
            let fix = fix.filter(|_| purpose != Purpose::Test).map(|fix| (*fix).clone());
            let name = name(check, purpose, of_purpose.len(), &checks);
            let is_known = checks.iter().any(|known| known.finding.command == check.command);
            if !is_known {
                checks.push(Check { name, finding: (*check).clone(), fix });
            }
        }
    }
    Plan { checks }
}

fn is(finding: &Finding, purpose: Purpose, is_fix: bool) -> bool {
    finding.purpose == Some(purpose) && finding.is_fix == is_fix
}

/// Tells whether a fix is of the same program: a task is of whatever its file runs.
fn is_same_tool(fix: &Finding, check: &Finding) -> bool {
    let program = |finding: &Finding| {
        let words = finding.command.split_whitespace();
        words.filter(|word| !word.starts_with('-')).take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    let (fix_words, check_words) = (program(fix), program(check));
    fix.evidence.task.is_some()
        || fix_words.iter().zip(&check_words).filter(|(one, other)| one == other).count() > 0
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
        (None, _) => {
            let callers = ["npx", "uv", "run", "poetry", "pdm", "bundle", "exec", "python", "cargo"];
            let mut words = check.command.split_whitespace();
            let program = words.find(|word| !word.starts_with('-') && !callers.contains(word));
            format!(
                "{}_{}",
                purpose.word(),
                plain(program.unwrap_or_default().rsplit('/').next().unwrap_or_default())
            )
        }
    };
    let is_taken = |name: &str| known.iter().any(|check| check.name == name);
    let mut name = base.clone();
    let mut number = 2;
    while is_taken(&name) {
        name = format!("{base}_{number}");
        number += 1;
    }
    name
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

/// What says that a directory is a package.
const MANIFESTS: [&str; 9] = [
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "go.mod",
    "composer.json",
    "Gemfile",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
];

/// How deep packages may lie.
const DEEPEST: usize = 4;

/// Plans the loops of a repository: one for all of it, or else one for all packages with equal commands.
pub fn loops(repository: &Repository) -> Vec<PlannedLoop> {
    let whole = plan(repository);
    if !whole.checks.is_empty() {
        return vec![PlannedLoop { name: "tidy".to_owned(), plan: whole, packages: Vec::new() }];
    }
    let mut groups: Vec<(Plan, Vec<String>)> = Vec::new();
    let mut packages: Vec<&str> = repository.paths().filter_map(package).collect();
    packages.dedup();
    for package in packages {
        let of_package = plan(&repository.below(package));
        if of_package.checks.is_empty()
            || groups.iter().any(|(_, known)| known.iter().any(|one| one == package))
        {
            continue;
        }
        match groups.iter_mut().find(|(known, _)| commands(known).eq(commands(&of_package))) {
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
    named.collect()
}

/// Returns the package that a file makes of its directory.
fn package(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.-@ ".contains(&byte);
    let is_sound =
        directory.bytes().all(is_plain) && !directory.split('/').any(|part| part.starts_with(['.', '-']));
    (MANIFESTS.contains(&name) && directory.split('/').count() <= DEEPEST && is_sound).then_some(directory)
}

fn commands(plan: &Plan) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    plan.checks.iter().map(|check| {
        let fix = check.fix.as_ref().map(|fix| fix.command.as_str());
        (check.name.as_str(), check.finding.command.as_str(), fix)
    })
}

/// Says of evidence in a package where it is in the repository.
fn within(mut plan: Plan, package: &str) -> Plan {
    for check in &mut plan.checks {
        for finding in [Some(&mut check.finding), check.fix.as_mut()].into_iter().flatten() {
            finding.evidence.file = format!("{package}/{}", finding.evidence.file);
        }
    }
    plan
}
