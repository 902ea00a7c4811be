//! Which files of a repository say what its CI checks.

use super::ci::{CiContents, UsualVersion};
use super::ci_jobs::Workflow;
use super::found_repository::Repository;
use super::lined_yaml;
use super::script_lines::is_plain;
use super::unused::Reason;
use super::usual_versions::usual_versions;
use super::when_jobs_run::{
    is_after_merge, is_before_merge, is_only_called, is_started_by_changes, matrix, needs_another_event,
    value_of_matrix,
};
use crate::base::node::{Entry, Node};
use crate::base::text::{after_last, first_word};

/// The workflow that `init` writes: what stands there is not what the repository said by itself.
pub(super) const OWN_WORKFLOWS: [&str; 2] =
    [".github/workflows/ll-loop.yml", ".gitlab/ll-loop.gitlab-ci.yml"];

/// Reads the workflows.
pub(super) fn contents(repository: &Repository) -> CiContents {
    let contents = contents_for(repository, &[]);
    let usual = usual_versions(repository, &contents);
    if usual.is_empty() {
        return contents;
    }
    // Whatever else depends on a version, an option or an install, is then that of the same job.
    CiContents { usual_versions: usual.clone(), ..contents_for(repository, &usual) }
}

/// Reads the workflows, with the jobs of their matrices that have the usual versions.
fn contents_for(repository: &Repository, usual: &[UsualVersion]) -> CiContents {
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
            Workflow { repository, path, text, is_late, usual }.read(root, contents);
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
        Workflow { repository, path, text, is_late: false, usual }.read_unused(&root, why, &mut contents);
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
    if path == ".gitlab-ci.yml" && is_written_here(&root) {
        return None;
    }
    // What publishes is not a check. One that proposed changes start checks them, whatever it does with a tag.
    let publishes = ["release", "publish", "deploy"].iter().any(|part| path.contains(part));
    (!publishes || is_before_merge(&root)).then_some(root)
}

/// Tells whether all that the jobs of a pipeline do is to run loops: `init` has written it.
fn is_written_here(pipeline: &Node) -> bool {
    let runs_loop = |line: &Node| {
        let program = lined_yaml::text(Some(line)).map_or("", first_word);
        after_last(program, &['/']) == "ll-loop"
    };
    let jobs = lined_yaml::entries(Some(pipeline)).iter().filter_map(|job| job.value.get("script"));
    let mut jobs = jobs.peekable();
    jobs.peek().is_some() && jobs.all(|script| lined_yaml::items(Some(script)).iter().any(runs_loop))
}
