//! The one job of a matrix whose place a loop takes: the versions, the variables and the installs of a workflow come from it
//! together, because only what a job has at once is known to go together.

use std::collections::BTreeSet;

use super::allowed_failures::MayFail;
use super::install_lines::is_of_system;
use super::lined_yaml;
use super::matrix_condition::{Comparison, MatrixCondition};
use super::when_jobs_run::{Matrix, OtherMachine, is_channel, is_linux, steps, version_parts};
use crate::base::node::Node;
use crate::base::text::after_last;

/// The values of one job of a matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MatrixLeg {
    values: Row,
    /// Whether the file says all of the matrix: then what is not among the values is an empty text.
    is_whole: bool,
    /// The values of all jobs that may not fail.
    others: Vec<Row>,
    /// The values of those that could be this job as well.
    alike: Vec<Row>,
    /// Whether the job runs on a release of Ubuntu that has other packages than the one of the workflow that `init` writes.
    has_other_packages: bool,
}

/// The values of one job, by their keys; those within a mapping as `config.os`.
type Row = Vec<(String, String)>;

/// The runner of the workflow that `init` writes, by its names.
const OWN_LABELS: [&str; 2] = ["ubuntu-24.04", "ubuntu-latest"];

/// The most jobs of a matrix that are looked at.
const MOST_ROWS: usize = 512;

impl MatrixLeg {
    /// Chooses the job: on Linux, with the newest versions unless others are usual, and with no options that only some jobs have. A value
    /// is passed over where the repository does not support it.
    pub(super) fn of(
        job: &Node,
        is_supported: &dyn Fn(&str, &str) -> bool,
        is_usual: &dyn Fn(&Self) -> bool,
    ) -> Self {
        let Some(node) = job.get("strategy").and_then(|node| node.get("matrix")) else {
            return Self::default();
        };
        // What is computed, no file says.
        let is_computed = lined_yaml::text(Some(node)).is_some()
            || lined_yaml::entries(Some(node))
                .iter()
                .any(|entry| lined_yaml::text(Some(&entry.value)).is_some());
        if is_computed {
            return Self::default();
        }
        let may_fail = MayFail::of(job);
        let label = lined_yaml::text(job.get("runs-on")).unwrap_or("");
        let all = rows(node);
        let options = options_of_some(job, &all);
        let is_failing = |row: &Row| row.iter().any(|(key, value)| may_fail.holds_for(key, value));
        let is_of_linux =
            |row: &Row| OtherMachine::of_label(&Self::of_row(row.clone()).put_in(label)).is_none();
        let are_supported = |row: &Row| row.iter().all(|(key, value)| is_supported(key, value));
        let is_plain = |row: &Row| !row.iter().any(|(key, value)| options.contains(key) && !value.is_empty());
        let others: Vec<Row> = all.iter().filter(|row| !is_failing(row)).cloned().collect();
        let mut left = all;
        let wishes: [&dyn Fn(&Row) -> bool; 4] =
            [&|row| !is_failing(row), &is_of_linux, &are_supported, &is_plain];
        for wish in wishes {
            if left.iter().any(wish) {
                left.retain(wish);
            }
        }
        let alike = left.clone();
        let has_usual = |row: &Row| is_usual(&Self::of_row(row.clone()));
        if left.iter().any(has_usual) {
            left.retain(has_usual);
        }
        let keys = keys_in_order(&left);
        let rank = |row: &Row| -> Vec<Rank> {
            keys.iter().map(|key| value_in(row, key).map_or_else(Rank::default, rank_of)).collect()
        };
        // Of equal ones, the first.
        let best = left.iter().rev().max_by_key(|row| rank(row)).cloned();
        best.map_or_else(Self::default, |values| {
            let leg = Self::of_row(values);
            let label = leg.put_in(label);
            let has_other_packages = label.starts_with("ubuntu-") && !OWN_LABELS.contains(&label.as_str());
            Self { others, alike, has_other_packages, ..leg }
        })
    }

    fn of_row(values: Row) -> Self {
        Self { values, is_whole: true, ..Self::default() }
    }

    /// Returns a text with the values of each job that could be this one.
    pub(super) fn put_in_each(&self, text: &str) -> Vec<String> {
        self.alike.iter().map(|row| Self::of_row(row.clone()).put_in(text)).collect()
    }

    /// Puts the values into a line that installs something. Packages of the system with a version in their names, `clang-10`, are those
    /// of one release of it.
    pub(super) fn put_in_install(&self, line: &str) -> String {
        if self.has_other_packages && is_of_system(line) { line.to_owned() } else { self.put_in(line) }
    }

    /// Returns the value of a key.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        value_in(&self.values, key)
    }

    /// Puts the values into a text, `${{ matrix.pkgs }}` and `${{ matrix.pkgs || '' }}`.
    pub(super) fn put_in(&self, text: &str) -> String {
        let (mut rest, mut out) = (text, String::new());
        while let Some((before, behind)) = rest.split_once("${{") {
            let Some((inner, after)) = behind.split_once("}}") else { break };
            out.push_str(before);
            match self.known(inner.trim()) {
                Some(value) => out.push_str(value),
                None => out.push_str(&rest[before.len()..rest.len() - after.len()]),
            }
            rest = after;
        }
        out + rest
    }

    /// Returns a line without the values that this job does not have, ` ${{ matrix.flags }}`: they are empty there.
    pub(super) fn without_absent(&self, line: &str) -> String {
        let (mut rest, mut out) = (line, String::new());
        while let Some((before, behind)) = rest.split_once(" ${{ matrix.") {
            let Some((key, after)) = behind.split_once(" }}") else { break };
            out.push_str(before);
            let is_absent = self.is_whole && self.value(key).is_none() && !key.contains([' ', '.']);
            if !is_absent || !(after.is_empty() || after.starts_with(' ')) {
                out.push_str(&rest[before.len()..rest.len() - after.len()]);
            }
            rest = after;
        }
        out + rest
    }

    fn known(&self, inner: &str) -> Option<&str> {
        let (inner, is_optional) = match inner.strip_suffix("''") {
            Some(before) => (before.trim_end().strip_suffix("||")?.trim_end(), true),
            None => (inner, false),
        };
        let key = inner.strip_prefix("matrix.")?;
        let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        match self.value(key) {
            _ if !is_name => None,
            Some(value) => Some(value),
            None => (self.is_whole || is_optional).then_some(""),
        }
    }

    /// Returns the values of a matrix with those of this job before the others.
    pub(super) fn first_in<'j>(&self, matrix: Matrix<'j>) -> Matrix<'j> {
        let reordered = |(key, mut values): (&'j str, Vec<&'j str>)| {
            if let Some(at) = self.value(key).and_then(|own| values.iter().position(|value| *value == own)) {
                values[..=at].rotate_right(1);
            }
            (key, values)
        };
        matrix.into_iter().map(reordered).collect()
    }

    /// Returns the condition of a step that holds in other jobs of the matrix, and not in this one.
    pub(super) fn condition_of_others<'j>(&self, condition: Option<&'j Node>) -> Option<&'j str> {
        let text = lined_yaml::text(condition)?.trim();
        let plain = text.trim_start_matches("${{").trim_end_matches("}}");
        let holds = plain.split("||").any(|one| one.split("&&").all(|part| self.may_hold(part.trim())));
        (!holds).then_some(text)
    }

    /// Tells whether all jobs in which a condition holds have a channel that this one has not, `nightly`: what they do needs that.
    pub(super) fn is_of_channels(&self, condition: &str) -> bool {
        let plain = condition.trim_start_matches("${{").trim_end_matches("}}");
        let holds = |row: &&Row| {
            let leg = Self::of_row((*row).clone());
            plain.split("||").any(|one| one.split("&&").all(|part| leg.may_hold(part.trim())))
        };
        let is_other = |(key, value): &(String, String)| {
            value.split(['-', '_', ' ', ',']).any(is_channel) && self.value(key) != Some(value)
        };
        let mut rows = self.others.iter().filter(holds).peekable();
        rows.peek().is_some() && rows.all(|row| row.iter().any(is_other))
    }

    /// Tells whether a comparison of versions holds, `matrix.php >= '8.2'`; nothing where it is none.
    fn compares_versions(&self, part: &str) -> Option<bool> {
        let (sign, (key, text)) =
            [">=", "<=", ">", "<"].into_iter().find_map(|sign| Some((sign, part.split_once(sign)?)))?;
        let value = version_parts(self.value(key.trim().strip_prefix("matrix.")?)?)?;
        let text = version_parts(text.trim().trim_matches('\''))?;
        Some(match sign {
            ">=" => value >= text,
            "<=" => value <= text,
            ">" => value > text,
            _ => value < text,
        })
    }

    /// Tells whether one comparison with a value of the matrix may hold; what is about something else may.
    fn may_hold(&self, part: &str) -> bool {
        if let Some(holds) = self.compares_versions(part) {
            return holds;
        }
        let in_brackets = || MatrixCondition::of(part.trim_matches(['(', ')']));
        let Some(condition) = MatrixCondition::of(part).or_else(in_brackets) else { return true };
        match (self.value(&condition.key), condition.way) {
            // What no job of the matrix says there is an empty text.
            (None, Comparison::Is | Comparison::IsNot) if self.is_whole && condition.text.is_empty() => {
                condition.holds_for("")
            }
            (Some(value), _) => condition.holds_for(value),
            (None, Comparison::IsNot | Comparison::Ends) => true,
            // What no file says may be the runner that all jobs have in the end.
            (None, Comparison::Is | Comparison::Begins | Comparison::Contains) => is_linux(&condition.text),
        }
    }
}

fn value_in<'r>(row: &'r Row, key: &str) -> Option<&'r str> {
    row.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
}

/// Returns the jobs of a matrix, as GitHub makes them of its lists, `exclude` and `include`.
fn rows(matrix: &Node) -> Vec<Row> {
    let is_list = |key: &str| !matches!(key, "include" | "exclude");
    let lists = lined_yaml::entries(Some(matrix)).iter().filter(|entry| is_list(&entry.key));
    let mut all: Vec<Row> = vec![Vec::new()];
    let mut has_lists = false;
    for entry in lists {
        has_lists = true;
        let values: Vec<Row> =
            lined_yaml::items(Some(&entry.value)).iter().map(|item| flat(&entry.key, item)).collect();
        all = all
            .iter()
            .flat_map(|row| values.iter().map(move |value| [row.as_slice(), value].concat()))
            .take(MOST_ROWS)
            .collect();
    }
    if !has_lists {
        all.clear();
    }
    let fits = |row: &Row, part: &Row| part.iter().all(|(key, value)| value_in(row, key) == Some(value));
    let parts = |key: &str| -> Vec<Row> {
        let flat_row = |item: &Node| {
            lined_yaml::entries(Some(item)).iter().flat_map(|entry| flat(&entry.key, &entry.value)).collect()
        };
        lined_yaml::items(matrix.get(key)).iter().map(flat_row).collect()
    };
    let excluded = parts("exclude");
    all.retain(|row| !excluded.iter().any(|part| fits(row, part)));
    // What is included is added to the jobs none of whose own values it would change, or else is a job of its own.
    let own: Vec<Row> = all.clone();
    for part in parts("include") {
        let is_kept = |row: &Row| {
            row.iter().all(|(key, value)| value_in(&part, key).is_none_or(|other| other == value))
        };
        let mut is_added = false;
        for (row, _) in all.iter_mut().zip(&own).filter(|(_, own)| is_kept(own)) {
            row.retain(|(key, _)| value_in(&part, key).is_none());
            row.extend(part.iter().cloned());
            is_added = true;
        }
        if !is_added {
            all.push(part);
        }
    }
    all.truncate(MOST_ROWS);
    all
}

/// Returns a value of a matrix by its key, or those of a mapping by theirs.
fn flat(key: &str, node: &Node) -> Row {
    match lined_yaml::text(Some(node)) {
        Some(text) => vec![(key.to_owned(), text.to_owned())],
        None => lined_yaml::entries(Some(node))
            .iter()
            .flat_map(|entry| flat(&format!("{key}.{}", entry.key), &entry.value))
            .collect(),
    }
}

/// Returns the keys that only some jobs have and that stand in commands, `mvn verify ${{ matrix.arguments }}`: such a job makes its
/// checks in a way of its own.
fn options_of_some(job: &Node, all: &[Row]) -> Vec<String> {
    let scripts: Vec<&str> =
        steps(job).into_iter().filter_map(|step| lined_yaml::text(step.get("run"))).collect();
    let is_named = |key: &str| {
        let written = format!("matrix.{key}");
        let names = |script: &&str| {
            script.match_indices(&written).any(|(at, _)| {
                let behind = &script[at + written.len()..];
                !behind.starts_with(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c))
            })
        };
        scripts.iter().any(names)
    };
    let keys: BTreeSet<&String> = all.iter().flatten().map(|(key, _)| key).collect();
    let is_of_some = |key: &str| all.iter().any(|row| value_in(row, key).is_none());
    keys.into_iter().filter(|key| is_of_some(key) && is_named(key)).cloned().collect()
}

/// Returns the keys of some jobs: those of runners, then those of versions, then others.
fn keys_in_order(rows: &[Row]) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in rows.iter().flatten() {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let is_any =
        |key: &str, is: &dyn Fn(&str) -> bool| rows.iter().filter_map(|row| value_in(row, key)).any(is);
    let is_version = |value: &str| value == "stable" || version_parts(value).is_some();
    keys.sort_by_key(|key| (!is_any(key, &is_linux), !is_any(key, &is_version)));
    keys
}

/// How much speaks for a value: what it is, and which version of that.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    kind: u8,
    version: Vec<u32>,
    label: String,
}

fn rank_of(value: &str) -> Rank {
    let of_kind = |kind: u8| Rank { kind, ..Rank::default() };
    // Such options change a lock file, which other checks may look at.
    let alters =
        |value: &str| ["--upgrade", "--resolution", "lowest"].iter().any(|sign| value.contains(sign));
    let is_moving = |value: &str| value.split(['-', '_', '.', '/']).any(is_channel) || alters(value);
    match version_parts(value) {
        // The runner of the workflow that `init` writes comes first, whatever it is called.
        _ if OWN_LABELS.contains(&value) => of_kind(4),
        _ if is_linux(value) => {
            Rank { kind: 3, label: after_last(value, &['-']).to_owned(), ..Rank::default() }
        }
        _ if value == "stable" => of_kind(3),
        Some(version) => Rank { kind: 2, version, ..Rank::default() },
        None if is_moving(value) => of_kind(0),
        None => of_kind(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(text: &str) -> MatrixLeg {
        MatrixLeg::of(&lined_yaml::parse(text).unwrap(), &|_, value| value != "3.15", &|leg| {
            leg.value("usual") == Some("yes")
        })
    }

    #[test]
    fn the_values_of_one_job_go_together() {
        for (text, expected) in [
            (
                "continue-on-error: ${{ matrix.gemfile == 'head' }}\nstrategy: {matrix: {ruby: ['3.3', '3.4'], gemfile: [a7, a8, head], exclude: [{ruby: '3.4', gemfile: a7}]}}",
                "3.4 a8",
            ),
            (
                "strategy: {matrix: {include: [{ruby: '3.4', gemfile: b}, {ruby: '3.3', gemfile: c}]}}",
                "3.4 b",
            ),
            (
                "runs-on: ${{ matrix.os }}\nstrategy: {matrix: {os: [windows-latest, ubuntu-22.04], ruby: [3, 4], include: [{os: macos-15, ruby: 5}]}}",
                "4 ",
            ),
            (
                "strategy: {matrix: {ruby: ['17', '21'], include: [{ruby: '25', gemfile: --odd}]}}\nsteps: [{run: 'mvn ${{ matrix.gemfile }}'}]",
                "21 ",
            ),
            ("strategy: {matrix: {ruby: ['17', '21'], include: [{ruby: '21', gemfile: x}]}}", "21 x"),
            ("strategy: {matrix: {ruby: ['3.14', '3.15']}}", "3.14 "),
            (
                "strategy: {matrix: {include: [{ruby: '3.4', gemfile: b}, {ruby: '3.3', gemfile: c, usual: 'yes'}]}}",
                "3.3 c",
            ),
            ("strategy: {matrix: {ruby: [edge, x]}}", "x "),
            (
                "strategy: {matrix: {ruby: '${{ fromJSON(needs.x.outputs.y) }}'}}",
                "${{ matrix.ruby }} ${{ matrix.gemfile }}",
            ),
            ("{}", "${{ matrix.ruby }} ${{ matrix.gemfile }}"),
        ] {
            let found = leg(text).put_in("${{ matrix.ruby }} ${{ matrix.gemfile }}");
            assert_eq!(found, expected, "{text}");
        }
        let install = "sudo apt-get install ${{ matrix.pkgs }}";
        for (label, expected) in
            [("ubuntu-20.04", install), ("ubuntu-latest", "sudo apt-get install clang-10")]
        {
            let text = format!("runs-on: {label}\nstrategy: {{matrix: {{pkgs: [clang-10]}}}}");
            assert_eq!(leg(&text).put_in_install(install), expected, "{label}");
        }
        let mapped = leg("strategy: {matrix: {on: [{os: a, py: '3.9'}, {os: b, py: '3.14'}]}}");
        assert_eq!(
            mapped.put_in("${{matrix.on.py}} ${{ matrix.on.os }} ${{ env.X }}"),
            "3.14 b ${{ env.X }}"
        );
        assert_eq!(MatrixLeg::default().put_in("x ${{ matrix.y || '' }}z"), "x z");
        let flags = leg(
            "strategy: {matrix: {ghc: ['9.0', '9.6', x], include: [{ghc: x, flags: --odd}]}}\nsteps: [{run: 'cabal test ${{ matrix.flags }}'}]",
        );
        assert_eq!(
            flags.without_absent("cabal test ${{ matrix.flags }} -v ${{ matrix.ghc }}"),
            "cabal test -v ${{ matrix.ghc }}"
        );
        let rust = leg(
            "strategy: {matrix: {rust: [stable, beta, nightly], include: [{rust: nightly, benches: true}]}}",
        );
        assert!(
            rust.is_of_channels("matrix.benches") && rust.is_of_channels("${{ matrix.rust == 'nightly' }}")
        );
        assert!(
            !rust.is_of_channels("matrix.rust == 'stable'")
                && !rust.is_of_channels("matrix.rust != 'nightly'")
        );
        let locked = leg(
            "strategy: {matrix: {sync: [{name: lowest, flags: --upgrade}, {name: locked, flags: --frozen}]}}",
        );
        assert_eq!(locked.put_in("uv sync ${{ matrix.sync.flags }}"), "uv sync --frozen");
    }

    #[test]
    fn a_loop_takes_the_place_of_the_job_on_linux_with_the_newest_versions() {
        let leg = leg(
            "strategy: {matrix: {os: [ubuntu-20.04, ubuntu-22.04, windows-latest], python: ['3.9', '3.14'], cxx: [clang++-14, g++-4.9]}}",
        );
        for (part, holds) in [
            ("matrix.os == 'ubuntu-22.04'", true),
            ("matrix.os == 'ubuntu-20.04'", false),
            ("matrix.os != 'windows-latest'", true),
            ("startsWith(matrix.os, 'ubuntu')", true),
            ("startsWith(matrix.os, 'macos')", false),
            ("matrix.python == 3.14", true),
            ("matrix.python == '3.9'", false),
            ("matrix.python < 3.10", false),
            ("matrix.python >= '3.9'", true),
            ("matrix.cxx >= 'x'", true),
            ("matrix.cxx == 'g++-4.9'", false),
            ("matrix.cxx != 'g++-4.9'", true),
            ("matrix.runner == 'ubuntu-latest'", true),
            ("matrix.coverage", false),
            ("!matrix.coverage", true),
            ("matrix.target != ''", false),
            ("matrix.target == ''", true),
            ("github.ref == 'refs/heads/main'", true),
        ] {
            assert_eq!(leg.may_hold(part), holds, "{part}");
        }
    }
}
