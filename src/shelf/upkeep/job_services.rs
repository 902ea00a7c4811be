//! What jobs have around their steps when they make the checks of a repository: services such as a database, the variables that say
//! where they are, and a container.

use super::lined_yaml;
use super::matrix_leg::MatrixLeg;
use super::script_lines::is_plain;
use crate::base::node::{Entry, Node};

/// The most lines of one service.
const MOST_LINES: usize = 40;

/// What a job has beside its steps, where it has services.
#[derive(Clone, Debug)]
pub(super) struct JobServices {
    /// The job, named with its file.
    pub(super) job: String,
    /// The services by their names, each in lines that begin at the left.
    services: Vec<(String, Vec<String>)>,
    /// Variables whose values are written in the file, the nearest first.
    pub(super) variables: Vec<(String, String)>,
}

impl JobServices {
    /// Reads those of a job; nothing where it has none, or where only the job knows what they are.
    pub(super) fn of(job: &Node, name: String, root: &Node, text: &str, leg: &MatrixLeg) -> Option<Self> {
        let services = lined_yaml::entries(job.get("services"));
        let written = services.iter().map(|entry| Some((entry.key.clone(), block(entry, text, leg)?)));
        let services = written.collect::<Option<Vec<_>>>().filter(|services| !services.is_empty())?;
        let steps = lined_yaml::items(job.get("steps")).iter().filter(|step| step.get("run").is_some());
        let nodes = steps.chain([job, root]).map(|node| node.get("env"));
        let variables = nodes.flat_map(|node| variables(node, leg)).collect();
        Some(Self { job: name, services, variables })
    }
}

/// Returns the variables whose values are written in the file, or are those of a job of its matrix.
pub(super) fn variables(node: Option<&Node>, leg: &MatrixLeg) -> Vec<(String, String)> {
    let of_entry = |entry: &Entry| {
        let written = lined_yaml::text(Some(&entry.value))?;
        let value = leg.put_in(written);
        // Every job has this place.
        let rest = value.strip_prefix(WORKSPACE).filter(|rest| rest.starts_with('/')).unwrap_or(&value);
        is_plain(rest).then(|| (entry.key.clone(), value.clone()))
    };
    lined_yaml::entries(node).iter().filter_map(of_entry).collect()
}

/// Where a job checks its repository out.
pub(super) const WORKSPACE: &str = "${{ github.workspace }}";

/// Returns the lines of an entry, with what a job of the matrix has.
fn block(entry: &Entry, text: &str, leg: &MatrixLeg) -> Option<Vec<String>> {
    let start = entry.key_span.range.start;
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    // A service within braces has no lines of its own that could be copied.
    let indentation = text.get(line_start..start).filter(|before| before.bytes().all(|byte| byte == b' '))?;
    let is_below =
        |line: &&str| line.trim().is_empty() || line.trim_start().len() + indentation.len() < line.len();
    let mut lines = text.get(line_start..)?.lines();
    let first = lines.next()?;
    let lines =
        std::iter::once(first).chain(lines.take_while(is_below)).filter(|line| !line.trim().is_empty());
    let put_in = |line: &str| {
        let line = leg.put_in(line.trim_end().get(indentation.len()..)?);
        is_whole(&line).then_some(line)
    };
    let lines = lines.take(MOST_LINES + 1).map(put_in).collect::<Option<Vec<_>>>()?;
    (lines.len() <= MOST_LINES).then_some(lines)
}

/// Tells whether a line says all by itself: nothing that only a job knows, or that stands elsewhere in the file.
fn is_whole(line: &str) -> bool {
    let is_reference = |word: &str| {
        word.strip_prefix(['*', '&'])
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    !line.contains("${{")
        && !line.contains("<<:")
        && !line.chars().any(char::is_control)
        && !line.split_whitespace().any(is_reference)
}

/// The container in which a job runs.
#[derive(Clone, Debug)]
pub(super) struct JobContainer {
    /// The job, named with its file.
    pub(super) job: String,
    /// The key `container`, in lines that begin at the left.
    pub(super) lines: Vec<String>,
}

impl JobContainer {
    /// Reads that of a job; nothing where it has none, or where only the job knows what it is.
    pub(super) fn of(job: &Node, name: String, text: &str, leg: &MatrixLeg) -> Option<Self> {
        let entry = lined_yaml::entries(Some(job)).iter().find(|entry| entry.key == "container")?;
        let lines = block(entry, text, leg)?;
        // A job of the matrix may have none.
        let is_empty = lines.len() == 1 && lines.iter().all(|line| line.trim_end().ends_with(':'));
        (!is_empty).then_some(Self { job: name, lines })
    }

    /// Returns it as a key of a job.
    pub(super) fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| format!("    {}\n", noted(line)));
        lines.collect::<Vec<_>>().concat()
    }
}

/// Returns the services and variables of these jobs, and other variables, as keys of one job; of two by one name, the first. What stands
/// before commands of checks is not for all of them.
pub(super) fn text(
    jobs: &[&JobServices],
    others: &[(String, String)],
    stands_before: &dyn Fn(&str) -> bool,
) -> String {
    let services = first_by_name(jobs.iter().flat_map(|job| &job.services));
    let of_jobs = jobs.iter().flat_map(|job| &job.variables).filter(|(name, _)| !stands_before(name));
    let variables = first_by_name(of_jobs.chain(others));
    let lines = services.iter().flat_map(|(_, lines)| lines).map(|line| format!("      {}\n", noted(line)));
    let services: String = lines.collect();
    let set = variables
        .iter()
        // Always as a text: `3.10` without quotes would be the number 3.1.
        .map(|(name, value)| format!("      {name}: {}\n", serde_json::Value::from(value.as_str())));
    let env: String = set.collect();
    let key =
        |key: &str, below: String| if below.is_empty() { below } else { format!("    {key}:\n{below}") };
    key("services", services) + &key("env", env)
}

fn first_by_name<'j, T>(all: impl Iterator<Item = &'j (String, T)>) -> Vec<&'j (String, T)> {
    let mut found: Vec<&(String, T)> = Vec::new();
    for one in all {
        if !found.iter().any(|(known, _)| *known == one.0) {
            found.push(one);
        }
    }
    found
}

/// Returns the line of a service. Its image is the one that the repository's own jobs have.
fn noted(line: &str) -> String {
    let is_image = ["image:", "container: "].iter().any(|key| line.trim_start().starts_with(key));
    let is_loose = is_image && !line.contains("@sha256:") && !line.contains('#');
    if is_loose { format!("{line} # zizmor: ignore[unpinned-images]") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_copied_that_says_all_by_itself() {
        for line in ["image: postgres:17", "options: --health-cmd \"a && b\"", "- 5432:5432", "A: 2 * 3"] {
            assert!(is_whole(line), "{line}");
        }
        for line in ["image: ${{ inputs.image }}", "env: *shared", "env: &shared", "<<: x", "a: \u{7}"] {
            assert!(!is_whole(line), "{line}");
        }
    }
}
