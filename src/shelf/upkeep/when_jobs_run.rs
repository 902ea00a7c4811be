//! When jobs of a workflow run, and on what: a job that no change starts is no check, and one value of a matrix may be a task.

use super::allowed_failures::MayFail;
use super::lined_yaml;
use super::script_lines::without_assignments;
use crate::base::node::{Entry, Node};
use crate::base::text::{after_last, up_to};

/// A machine that is not one of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherMachine {
    Macos,
    Windows,
}

impl OtherMachine {
    /// Reads the label of a runner.
    pub(super) fn of_label(label: &str) -> Option<Self> {
        let of = [("macos", Self::Macos), ("windows", Self::Windows)];
        of.into_iter()
            .find(|(name, _)| label.to_ascii_lowercase().starts_with(name))
            .map(|(_, machine)| machine)
    }

    /// Reads the condition of a step: `matrix.os == 'windows-latest'`, `runner.os != 'Linux'`.
    pub(super) fn of_condition(condition: &str, matrix: &Matrix<'_>) -> Option<Self> {
        let lower = condition.to_ascii_lowercase();
        if leaves_out_linux(&lower, matrix) {
            // Whatever else it may be as well, it runs there where no job is of Linux.
            return Some(Self::Macos);
        }
        // A negation or an alternative may hold on Linux as well.
        let is_about_linux = ["linux", "ubuntu", "!", "||"].iter().any(|part| lower.contains(part));
        let named = |name: &str| lower.contains(&format!("'{name}"));
        match () {
            () if is_about_linux => None,
            () if named("windows") => Some(Self::Windows),
            () if named("macos") => Some(Self::Macos),
            () => None,
        }
    }
}

/// Tells whether a condition, in small letters, holds on no machine of Linux.
fn leaves_out_linux(condition: &str, matrix: &Matrix<'_>) -> bool {
    let plain: String = condition.chars().filter(|c| !c.is_whitespace()).collect();
    // One label of Ubuntu leaves another one in.
    let is_only = |label: &str| {
        let mut values = matrix.iter().flat_map(|(_, values)| values);
        !values.any(|value| value.starts_with("ubuntu") && *value != label)
    };
    let mut left_out = plain.split("!='").skip(1).map(|rest| up_to(rest, &['\'']));
    !plain.contains("||")
        && left_out.any(|name| name == "linux" || (name.starts_with("ubuntu") && is_only(name)))
}

/// Tells whether a change of the code starts a workflow: what runs at night or at the push of a button writes something, or
/// asks others. GitLab's say nothing of the kind.
pub(super) fn is_started_by_changes(workflow: &Node) -> bool {
    let Some(on) = workflow.get("on") else { return true };
    let names = ["push", "pull_request", "pull_request_target", "merge_group", "workflow_call"];
    let is_known = |name: &str| names.contains(&name);
    // A push of tags is a release.
    let is_of_branches = |node: &Node| {
        let keys = lined_yaml::entries(Some(node));
        !keys.iter().any(|entry| entry.key == "tags")
            || keys.iter().any(|entry| entry.key.starts_with("branches"))
    };
    lined_yaml::text(Some(on)).is_some_and(is_known)
        || lined_yaml::items(Some(on)).iter().any(|item| lined_yaml::text(Some(item)).is_some_and(is_known))
        || lined_yaml::entries(Some(on))
            .iter()
            .any(|entry| is_known(&entry.key) && (entry.key != "push" || is_of_branches(&entry.value)))
}

/// Tells whether a workflow runs only where another one calls it, or somebody pushes a button.
pub(super) fn is_only_called(workflow: &Node) -> bool {
    let mut names = events(workflow).peekable();
    names.peek().is_some() && names.all(|name| matches!(name, "workflow_call" | "workflow_dispatch"))
}

/// Tells whether a workflow runs when a change is merged, and not before: at pushes to branches that it names.
pub(super) fn is_after_merge(workflow: &Node) -> bool {
    let Some(push) = workflow.get("on").and_then(|on| on.get("push")) else { return false };
    let branches = lined_yaml::items(push.get("branches"));
    let is_one = |item: &Node| lined_yaml::text(Some(item)).is_some_and(|name| !name.contains(['*', '!']));
    !is_before_merge(workflow) && !branches.is_empty() && branches.iter().all(is_one)
}

/// Tells whether a workflow runs for changes that are proposed.
pub(super) fn is_before_merge(workflow: &Node) -> bool {
    // What waits until a proposal is closed comes after the merge.
    let is_late = |name: &str| {
        let types = workflow.get("on").and_then(|on| on.get(name)).and_then(|event| event.get("types"));
        let types = lined_yaml::items(types);
        !types.is_empty() && types.iter().all(|one| lined_yaml::text(Some(one)) == Some("closed"))
    };
    let is_proposal = |name: &str| matches!(name, "pull_request" | "pull_request_target" | "merge_group");
    events(workflow).any(|name| is_proposal(name) && !is_late(name))
}

/// Returns the names of the events that start a workflow, however they are written.
fn events(workflow: &Node) -> impl Iterator<Item = &str> {
    let on = workflow.get("on");
    let of_list = lined_yaml::items(on).iter().filter_map(|item| lined_yaml::text(Some(item)));
    let of_map = lined_yaml::entries(on).iter().map(|entry| entry.key.as_str());
    lined_yaml::text(on).into_iter().chain(of_list).chain(of_map)
}

/// Returns the newest of several versions, which is `stable` where a tool says so, or the first value where none is a version. One that
/// is not released yet, `3.15-dev`, is passed over.
pub(super) fn newest<'v>(values: &[&'v str]) -> Option<&'v str> {
    if let Some(stable) = values.iter().find(|value| **value == "stable") {
        return Some(stable);
    }
    let versions = values.iter().filter_map(|value| Some((version_parts(value)?, *value)));
    versions
        .max_by(|one, other| one.0.cmp(&other.0))
        .map(|(_, value)| value)
        .or_else(|| values.first().copied())
}

/// Returns the numbers of a version, `3.14`, `v2.x` or `ruby-3.4`; nothing where it is none, or not released yet.
pub(super) fn version_parts(value: &str) -> Option<Vec<u32>> {
    // Of `jruby-9.4`, the number is that of another program.
    let known = ["v", "go", "ruby-", "php-", "python-", "node-"];
    let plain = known.into_iter().find_map(|begin| value.strip_prefix(begin)).unwrap_or(value);
    let plain = plain.trim_end_matches(".x").trim_end_matches(".*");
    plain.split('.').map(|part| part.parse::<u32>().ok()).collect()
}

/// Tells whether a version is a channel that moves before a release does.
pub(super) fn is_channel(version: &str) -> bool {
    matches!(version, "dev" | "devel" | "beta" | "main" | "master" | "nightly" | "head" | "edge")
}

/// Tells whether the label of a runner is one of Linux.
pub(super) fn is_linux(label: &str) -> bool {
    label.starts_with("ubuntu") || label.eq_ignore_ascii_case("linux")
}

/// Tells whether the jobs of a matrix have tasks or places of their own, so that a loop takes the place of all of them.
pub(super) fn has_task_each(job: &Node, matrix: &Matrix<'_>) -> bool {
    let is_place = |node: Option<&Node>| {
        lined_yaml::text(node.and_then(|node| node.get("working-directory")))
            .is_some_and(|text| text.contains("matrix."))
    };
    let is_task = |script: &str| {
        script.lines().any(|line| line.contains("matrix.") && lines_of_matrix(line.trim(), matrix).len() > 1)
    };
    is_place(job.get("defaults").and_then(|node| node.get("run")))
        || steps(job)
            .into_iter()
            .any(|step| is_place(Some(step)) || lined_yaml::text(step.get("run")).is_some_and(is_task))
}

/// Returns the steps of a job, also those that it runs at the same time.
pub(super) fn steps(job: &Node) -> Vec<&Node> {
    let with_inner = |step| match lined_yaml::items(Node::get(step, "parallel")) {
        [] => vec![step],
        inner => inner.iter().collect(),
    };
    lined_yaml::items(job.get("steps")).iter().flat_map(with_inner).collect()
}

/// Tells whether a step runs only where an earlier one of its job has found something.
pub(super) fn asks_earlier_steps(condition: Option<&Node>) -> bool {
    lined_yaml::text(condition).is_some_and(|text| text.contains("steps."))
}

/// Tells whether a job or a step runs at no change of the code: never, for a release, at night, or at the push of a button.
pub(super) fn needs_another_event(condition: Option<&Node>) -> bool {
    let Some(text) = lined_yaml::text(condition) else { return false };
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let plain = plain.trim_start_matches("${{").trim_end_matches("}}");
    // What waits for a failure looks after it, and `false` is how people put a step aside.
    let is_of_failure = |part: &str| matches!(part, "false" | "failure()" | "cancelled()");
    let events = [
        "event_name=='release'",
        "event_name=='schedule'",
        "event_name=='workflow_dispatch'",
        "ref_type=='tag'",
        "startsWith(github.ref,'refs/tags",
    ];
    let is_other = |way: &str| {
        let of_event = !way.contains('!') && events.iter().any(|event| way.contains(event));
        of_event || way.split("&&").any(|part| is_of_failure(part.trim_start_matches('(')))
    };
    // Any of several ways may hold at a change.
    plain.split("||").all(is_other)
}

/// Tells whether a job or a step runs for what is merged, and not for a change that is only proposed.
pub(super) fn leaves_changes_out(condition: Option<&Node>) -> bool {
    let Some(text) = lined_yaml::text(condition) else { return false };
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    plain.contains("event_name!='pull_request'") && !plain.contains("||")
}

/// Returns the label of a runner, where a matrix says it and no value of that is one of Linux: the first.
pub(super) fn label_of_matrix<'j>(label: &'j str, matrix: &Matrix<'j>) -> &'j str {
    let is_meant = |key: &str| label == value_of_matrix(key) || label == format!("${{{{matrix.{key}}}}}");
    let Some((_, values)) = matrix.iter().find(|(key, _)| is_meant(key)) else { return label };
    let mut machines = values.iter().map(|value| OtherMachine::of_label(value));
    let is_other = match machines.next() {
        Some(Some(first)) => machines.all(|other| other == Some(first)),
        Some(None) | None => false,
    };
    values.first().filter(|_| is_other).copied().unwrap_or(label)
}

/// The values of a matrix, by their keys.
pub(super) type Matrix<'j> = Vec<(&'j str, Vec<&'j str>)>;

/// The keys and values of a job that a matrix lists by itself.
type MatrixRow<'j> = Vec<(&'j str, &'j str)>;

/// Reads the matrix of a job, also what it includes, without the values whose jobs may fail.
pub(super) fn matrix(job: &Node) -> Matrix<'_> {
    let node = job.get("strategy").and_then(|node| node.get("matrix"));
    let may_fail = MayFail::of(job);
    let (kept, failing): (Vec<_>, Vec<_>) =
        included(node).into_iter().partition(|row| !is_failing(row, &may_fail));
    let mut found: Matrix<'_> = Vec::new();
    for entry in lined_yaml::entries(node) {
        let key = entry.key.as_str();
        let values =
            lined_yaml::items(Some(&entry.value)).iter().filter_map(|item| lined_yaml::text(Some(item)));
        let own =
            values.filter(|value| !may_fail.holds_for(key, value) && !is_marked(node, &failing, key, value));
        let included = kept.iter().filter(|_| key == "include").flatten().copied();
        for (key, value) in own.map(|value| (key, value)).chain(included) {
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => found.push((key, vec![value])),
            }
        }
    }
    found
}

fn included(matrix: Option<&Node>) -> Vec<MatrixRow<'_>> {
    let rows = lined_yaml::items(matrix.and_then(|node| node.get("include"))).iter();
    rows.map(|row| {
        let known = lined_yaml::entries(Some(row)).iter();
        known.filter_map(|entry| Some((entry.key.as_str(), lined_yaml::text(Some(&entry.value))?))).collect()
    })
    .collect()
}

fn is_failing(row: &MatrixRow<'_>, may_fail: &MayFail) -> bool {
    row.iter().any(|(key, value)| may_fail.holds_for(key, value))
}

/// Tells whether a row that may fail only marks this value of a list: it says nothing of any other list, and so is about all jobs of it.
fn is_marked(matrix: Option<&Node>, failing: &[MatrixRow<'_>], key: &str, value: &str) -> bool {
    let is_list = |key: &str| !lined_yaml::items(matrix.and_then(|node| node.get(key))).is_empty();
    failing.iter().any(|row| {
        let mut of_lists = row.iter().filter(|(key, _)| is_list(key));
        of_lists.next() == Some(&(key, value)) && of_lists.next().is_none()
    })
}

/// Tells whether a job may fail whatever its matrix says.
pub(super) fn may_fail(job: &Node) -> bool {
    let may_fail = MayFail::of(job);
    let node = job.get("strategy").and_then(|node| node.get("matrix"));
    let rows = included(node);
    let is_list_failing = |entry: &Entry| {
        let values: Vec<_> =
            lined_yaml::items(Some(&entry.value)).iter().map(|item| lined_yaml::text(Some(item))).collect();
        !values.is_empty()
            && values
                .into_iter()
                .all(|value| value.is_some_and(|value| may_fail.holds_for(&entry.key, value)))
    };
    let mut lists =
        lined_yaml::entries(node).iter().filter(|entry| !matches!(entry.key.as_str(), "include" | "exclude"));
    let has_lists = lists.clone().next().is_some();
    let are_lists_failing = if has_lists { lists.any(is_list_failing) } else { !rows.is_empty() };
    may_fail == MayFail::Always || are_lists_failing && rows.iter().all(|row| is_failing(row, &may_fail))
}

/// Returns a matrix without the values for which a step may fail; nothing where none is left of a key.
pub(super) fn without_failing<'j>(matrix: &Matrix<'j>, step: &Node) -> Option<Matrix<'j>> {
    let may_fail = MayFail::of(step);
    let of_key = |(key, values): &(&'j str, Vec<&'j str>)| {
        let kept: Vec<&str> =
            values.iter().filter(|value| !may_fail.holds_for(key, value)).copied().collect();
        (!kept.is_empty()).then_some((*key, kept))
    };
    let kept = matrix.iter().map(of_key).collect::<Option<Vec<_>>>();
    kept.filter(|_| may_fail != MayFail::Always)
}

/// Tells whether a job or a step runs for a change that somebody has put a label on: most changes have none.
pub(super) fn asks_for_label(condition: Option<&Node>) -> bool {
    let Some(text) = lined_yaml::text(condition) else { return false };
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let asked = plain.split("contains(github.event.");
    // What a label only keeps from running runs for all others.
    let is_negated = |before: &str| before.ends_with('!');
    let parts: Vec<&str> = asked.collect();
    let by_list =
        parts.windows(2).any(|pair| !is_negated(pair[0]) && up_to(pair[1], &[',']).contains("labels"));
    by_list || plain.contains("github.event.label.name==")
}

/// Returns how a value of a matrix is written.
pub(super) fn value_of_matrix(key: &str) -> String {
    format!("${{{{ matrix.{key} }}}}")
}

/// The most tasks that are read from one matrix.
const MOST_TASKS: usize = 6;

/// What takes the name of a task, and so the value of a matrix that stands behind it.
const BEFORE_TASKS: [&str; 26] = [
    "",
    "bash",
    "sh",
    "make",
    "just",
    "task",
    "npm run",
    "pnpm",
    "pnpm run",
    "yarn",
    "yarn run",
    "bun run",
    "deno task",
    "rake",
    "bundle exec rake",
    "nox -s",
    "tox -e",
    "tox r -e",
    "tox run -e",
    "tox run --skip-pkg-install -e",
    "python -m tox -e",
    "composer",
    "composer run-script",
    "mise run",
    "hatch run",
    "cargo xtask",
];

/// Options by which a job does a part of the work, says how many do it at a time, or with which version (hatch's `+py=`).
const SHARES: [&str; 12] = [
    "--shard",
    "--shard-index",
    "--max-workers",
    "--maxWorkers",
    "--workers",
    "--jobs",
    "--threads",
    "--parallel",
    "--concurrency",
    "-j",
    "+py",
    "+python",
];

/// Options by which a line of its own does each part of the work.
const SHARDS: [&str; 3] = ["--total-shards", "--shard-index", "--shard"];

/// Returns a line without the options that only divide the work, where the job computes their values: elsewhere all of it is done.
pub(super) fn whole_line(line: &str) -> String {
    let line = SHARES.iter().fold(without_absent(line), |line, option| without_computed(&line, option));
    SHARDS.iter().fold(line, |line, option| without_number(&line, option))
}

/// Returns a line without what only some jobs of a matrix have, ` ${{ matrix.arguments || '' }}`.
fn without_absent(line: &str) -> String {
    let (mut rest, mut kept) = (line, String::new());
    while let Some((before, behind)) = rest.split_once(" ${{ matrix.") {
        let Some((inner, after)) = behind.split_once("}}") else { break };
        kept.push_str(before);
        if !inner.trim_end().ends_with("|| ''") {
            kept.push_str(&rest[before.len()..rest.len() - after.len()]);
        }
        rest = after;
    }
    kept + rest
}

fn without_number(line: &str, option: &str) -> String {
    let Some((before, behind)) = line.split_once(&format!(" {option}")) else { return line.to_owned() };
    let value = behind.trim_start_matches(['=', ' ']);
    let rest = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '/');
    if value.len() == behind.len() || rest.len() == value.len() {
        return line.to_owned();
    }
    format!("{before}{rest}")
}

fn without_computed(line: &str, option: &str) -> String {
    let computed = |rest: &str| -> Option<usize> {
        let value = rest.strip_prefix(['=', ' ']).unwrap_or(rest);
        let ends = [("${{", "}}"), ("$(", ")")];
        let (begin, end) = ends.into_iter().find(|(begin, _)| value.starts_with(begin))?;
        Some(rest.len() - value.len() + value.find(end).filter(|at| *at > begin.len())? + end.len())
    };
    let sign = format!(" {option}");
    let mut found = line.match_indices(&sign).filter_map(|(at, _)| {
        let behind = at + sign.len();
        Some((at, behind + computed(&line[behind..])?))
    });
    // What stands there more than once, with parts of several values, is left as it is.
    match (found.next(), found.next()) {
        (Some((at, end)), None) if line[end..].is_empty() || line[end..].starts_with(' ') => {
            format!("{}{}", &line[..at], &line[end..])
        }
        _ => line.to_owned(),
    }
}

/// A line that ends with the value of a matrix, which is the name of a task.
struct TaskOfMatrix<'l, 'm> {
    before: &'l str,
    /// How the name begins.
    begin: &'l str,
    values: &'m [&'m str],
}

impl<'l, 'm> TaskOfMatrix<'l, 'm> {
    fn of(line: &'l str, matrix: &'m Matrix<'_>) -> Option<Self> {
        matrix.iter().find_map(|(key, values)| {
            let written = line.strip_suffix(&value_of_matrix(key))?;
            // The name of a task may begin before the value: `pnpm run test:${{ matrix.suite }}`.
            // So does the path of a script, `bash script/${{ matrix.script }}`.
            let (before, begin) = match written.rsplit_once(' ') {
                Some((before, begin)) if begin.ends_with([':', '/', '-']) => (before, begin),
                None if written.ends_with('/') => ("", written),
                Some(_) | None => (written.trim_end(), ""),
            };
            // Variables may stand before the program, as in `COVERAGE=no rake`.
            let program: Vec<&str> = without_assignments(before).split_whitespace().collect();
            let program = program.join(" ");
            let takes_task = BEFORE_TASKS.contains(&program.as_str())
                || program.starts_with("cargo xtask ")
                || program.starts_with("cmake --build ") && program.ends_with(" --target");
            takes_task.then_some(Self { before, begin, values })
        })
    }

    /// Returns the values that are taken.
    fn taken(&self) -> impl Iterator<Item = &'m str> {
        // Digits tell a version, except in this usual name of tests.
        let is_version = |value: &str| value != "e2e" && value.contains(|c: char| c.is_ascii_digit());
        self.values.iter().copied().filter(move |value| !is_version(value)).take(MOST_TASKS)
    }
}

/// Tells whether a line names tasks by a matrix, of which not all are taken.
pub(super) fn leaves_tasks_out(line: &str, matrix: &Matrix<'_>) -> bool {
    TaskOfMatrix::of(line, matrix).is_some_and(|task| task.taken().count() < task.values.len())
}

/// Puts in what a matrix says: the names of tasks, each in a line of its own. A version is left to the tool, which then takes
/// the one that is there.
pub(super) fn lines_of_matrix(line: &str, matrix: &Matrix<'_>) -> Vec<String> {
    if let Some(task) = TaskOfMatrix::of(line, matrix) {
        let TaskOfMatrix { before, begin, .. } = task;
        return task
            .taken()
            .map(|value| format!("{before} {begin}{value}").trim_start().to_owned())
            .collect();
    }
    if let Some(lines) = lines_of_projects(line, matrix) {
        return lines;
    }
    let line = &with_properties(&with_options(&without_versions(line, matrix), matrix), matrix);
    let version = ["--python", "--python-version"].into_iter().find_map(|option| {
        let (before, rest) = line.split_once(&format!(" {option} ${{{{ matrix."))?;
        let (_, behind) = rest.split_once("}}")?;
        Some(format!("{before}{behind}"))
    });
    vec![version.unwrap_or_else(|| line.to_owned())]
}

/// Returns a line for each project of sbt that a matrix names, `sbt 'project ${{ matrix.project }}' test`.
fn lines_of_projects(line: &str, matrix: &Matrix<'_>) -> Option<Vec<String>> {
    let (written, values) = matrix.iter().find_map(|(key, values)| {
        let written = format!("project {}", value_of_matrix(key));
        line.contains(&written).then_some((written, values))
    })?;
    let of_value =
        |value: &&str| lines_of_matrix(&line.replace(&written, &format!("project {value}")), matrix);
    Some(values.iter().take(MOST_TASKS).flat_map(of_value).collect())
}

/// Puts in the values of properties that a matrix says, `-Pmode=${{ matrix.mode }}`: those of its first job.
fn with_properties(line: &str, matrix: &Matrix<'_>) -> String {
    let is_plain = |value: &str| {
        !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    let put_in = |line: String, (key, values): &(&str, Vec<&str>)| {
        let Some((before, behind)) = line.split_once(&value_of_matrix(key)) else { return line };
        let word = after_last(before, &[' ']);
        let is_property = ["-P", "-D"].iter().any(|sign| word.starts_with(sign)) && word.ends_with('=');
        match values.first().filter(|first| is_property && is_plain(first)) {
            Some(first) if behind.is_empty() || behind.starts_with(' ') => format!("{before}{first}{behind}"),
            Some(_) | None => line,
        }
    };
    matrix.iter().fold(line.to_owned(), put_in)
}

/// Puts in options that a matrix says, `cargo test ${{ matrix.features }}`: those of its first job.
fn with_options(line: &str, matrix: &Matrix<'_>) -> String {
    let put_in = |line: String, (key, values): &(&str, Vec<&str>)| {
        let are_options = values.iter().all(|value| value.is_empty() || value.starts_with('-'));
        let written = format!(" {}", value_of_matrix(key));
        match (values.first(), line.split_once(&written)) {
            (Some(first), Some((before, behind)))
                if are_options && (behind.is_empty() || behind.starts_with(' ')) =>
            {
                format!("{} {first}{behind}", before.trim_end()).trim_end().to_owned()
            }
            (_, _) => line,
        }
    };
    matrix.iter().fold(line.to_owned(), put_in)
}

/// Returns a line without the words that only say a version of a matrix: a toolchain of cargo, `+${{ matrix.rust }}`, a version of
/// Scala, `'++ ${{ matrix.scala }}'`, and a property whose values all begin with a digit, `-Pjava=${{ matrix.java }}`.
fn without_versions(line: &str, matrix: &Matrix<'_>) -> String {
    let is_version = |key: &str| {
        matrix.iter().any(|(known, values)| {
            *known == key && values.iter().all(|value| value.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let mut kept = line.to_owned();
    for (key, _) in matrix {
        let value = value_of_matrix(key);
        for quote in ["'", "\""] {
            kept = kept
                .replace(&format!(" {quote}++ {value}{quote}"), "")
                .replace(&format!(" {quote}++{value}{quote}"), "");
        }
        kept = kept.replace(&format!(" ++{value}"), "");
        let Some((before, behind)) = kept.split_once(&value) else { continue };
        let word = after_last(before, &[' ']);
        let is_toolchain = word == "+" && before.trim_end_matches('+').trim_end() == "cargo";
        // The standard of a language is no version of a tool.
        let is_property = ["-P", "-D"].iter().any(|sign| word.starts_with(sign))
            && word.ends_with('=')
            && !word.ends_with("_STANDARD=")
            && is_version(key);
        if (is_toolchain || is_property) && (behind.is_empty() || behind.starts_with(' ')) {
            kept = format!("{}{behind}", before[..before.len() - word.len()].trim_end());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_one_that_is_released() {
        for (values, expected) in [
            (&["18.x", "20.x", "22.x"][..], Some("22.x")),
            (&["3.9", "3.10", "3.15-dev", "pypy3.11"], Some("3.10")),
            (&["1.22", "stable", "oldstable"], Some("stable")),
            (&["lts/*", "latest"], Some("lts/*")),
            (&["8", "21", "17"], Some("21")),
            (&["v1.x", "v2.x"], Some("v2.x")),
            (&["ruby-3.4", "ruby-4.0", "jruby-10.0"], Some("ruby-4.0")),
            (&[], None),
        ] {
            assert_eq!(newest(values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_matrix_has_no_values_whose_jobs_may_fail() {
        let kept = |text: &str| {
            let job = lined_yaml::parse(text).unwrap();
            let matrix: Vec<(String, String)> =
                matrix(&job).into_iter().map(|(key, values)| (key.to_owned(), values.join(" "))).collect();
            (matrix, may_fail(&job))
        };
        let of = |key: &str, values: &str| (key.to_owned(), values.to_owned());
        for (text, expected) in [
            (
                "continue-on-error: ${{ matrix.rust == 'beta' }}\nstrategy: {matrix: {rust: [stable, beta]}}",
                (vec![of("rust", "stable")], false),
            ),
            (
                "continue-on-error: ${{ matrix.extra }}\nstrategy:\n  matrix:\n    php: ['8.4', '8.5']\n    include:\n      - {php: '8.5', extra: true}\n      - {php: '8.6', extra: false}\n",
                (vec![of("php", "8.4 8.6"), of("extra", "false")], false),
            ),
            (
                "continue-on-error: ${{ matrix.extra }}\nstrategy: {matrix: {include: [{php: '8.5', extra: true}]}}",
                (vec![], true),
            ),
            ("continue-on-error: true", (vec![], true)),
            ("strategy: {matrix: {rust: [stable]}}", (vec![of("rust", "stable")], false)),
        ] {
            assert_eq!(kept(text), expected, "{text}");
        }
    }

    #[test]
    fn a_condition_says_on_what_machine_a_step_runs() {
        let matrix: Matrix<'_> = vec![("os", vec!["ubuntu-24.04", "ubuntu-22.04", "macos-15"])];
        for (condition, expected) in [
            ("runner.os == 'Windows'", Some(OtherMachine::Windows)),
            ("runner.os != 'Linux'", Some(OtherMachine::Macos)),
            ("${{ runner.os!='Linux' && github.event_name == 'push' }}", Some(OtherMachine::Macos)),
            ("runner.os != 'Linux' || matrix.x", None),
            ("runner.os != 'Windows'", None),
            ("matrix.os != 'ubuntu-22.04'", None),
            ("runner.os == 'Linux'", None),
        ] {
            assert_eq!(OtherMachine::of_condition(condition, &matrix), expected, "{condition}");
        }
        let one = vec![("os", vec!["ubuntu-latest", "windows-latest"])];
        let condition = "matrix.os != 'ubuntu-latest'";
        assert_eq!(OtherMachine::of_condition(condition, &one), Some(OtherMachine::Macos));
    }

    #[test]
    fn no_change_is_the_event_of_a_failure_or_of_several_others() {
        let holds = |condition: &str| {
            let text = format!("if: {}", serde_json::Value::from(condition));
            needs_another_event(lined_yaml::parse(&text).unwrap().get("if"))
        };
        for condition in [
            "failure() && steps.install.outcome == 'failure'",
            "${{ false }}",
            "(github.event_name == 'push' && startsWith(github.ref, 'refs/tags')) || github.event_name == 'schedule'",
        ] {
            assert!(holds(condition), "{condition}");
        }
        for condition in [
            "always()",
            "!failure()",
            "github.event_name == 'schedule' || matrix.x",
            "success() || failure()",
        ] {
            assert!(!holds(condition), "{condition}");
        }
    }

    #[test]
    fn a_label_is_put_on_few_changes() {
        for (condition, expected) in [
            (
                "github.ref == 'refs/heads/main' || contains(github.event.pull_request.labels.*.name, 'slow')",
                true,
            ),
            ("github.event.label.name == 'slow'", true),
            ("!contains(github.event.pull_request.labels.*.name, 'skip')", false),
            ("contains(github.event.head_commit.message, 'labels')", false),
        ] {
            let step = lined_yaml::parse(&format!("if: \"{condition}\"")).unwrap();
            assert_eq!(asks_for_label(step.get("if")), expected, "{condition}");
        }
    }

    #[test]
    fn a_matrix_names_tasks_and_scripts() {
        let matrix: Matrix<'_> = vec![("x", vec!["fmt", "spec", "3.4"])];
        for (line, expected) in [
            ("bash script/${{ matrix.x }}", vec!["bash script/fmt", "bash script/spec"]),
            ("./ci/${{ matrix.x }}", vec!["./ci/fmt", "./ci/spec"]),
            ("make ${{ matrix.x }}", vec!["make fmt", "make spec"]),
            ("make test-${{ matrix.x }}", vec!["make test-fmt", "make test-spec"]),
            ("pnpm run test:${{ matrix.x }}", vec!["pnpm run test:fmt", "pnpm run test:spec"]),
        ] {
            assert_eq!(lines_of_matrix(line, &matrix), expected, "{line}");
            assert!(leaves_tasks_out(line, &matrix), "{line}");
        }
        assert!(!leaves_tasks_out("make x", &matrix));
    }

    #[test]
    fn a_line_does_all_of_the_work() {
        for (line, expected) in [
            ("dart test --total-shards 5 --shard-index 0", "dart test"),
            ("dart test --shard-index=4 --total-shards=5 -p vm", "dart test -p vm"),
            ("dart test --shard-index", "dart test --shard-index"),
            ("jest --shard=2/4 --ci", "jest --ci"),
            ("jest --shard=${{ matrix.shard }}/4", "jest --shard=${{ matrix.shard }}/4"),
        ] {
            assert_eq!(whole_line(line), expected, "{line}");
        }
    }
}
