//! What the workflows of a repository run already.

use super::found_repository::{Evidence, Finding, Repository};
use super::lined_yaml;
use crate::base::node::Node;
use crate::tools::{Manner, Purpose, TOOLS, recognise, task_kind};

/// The workflow that `init` writes: what stands there is not what the repository said by itself.
pub(super) const OWN_WORKFLOWS: [&str; 2] =
    [".github/workflows/ll-loop.yml", ".gitlab/ll-loop.gitlab-ci.yml"];

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
    pub(super) evidence: Evidence,
}

/// A machine that is not one of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherMachine {
    Macos,
    Windows,
}

impl OtherMachine {
    /// Reads the label of a runner.
    fn of_label(label: &str) -> Option<Self> {
        let of = [("macos", Self::Macos), ("windows", Self::Windows)];
        of.into_iter()
            .find(|(name, _)| label.to_ascii_lowercase().starts_with(name))
            .map(|(_, machine)| machine)
    }

    /// Reads the condition of a step: `matrix.os == 'windows-latest'`, `runner.os == 'macOS'`.
    fn of_condition(condition: &str) -> Option<Self> {
        let lower = condition.to_ascii_lowercase();
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

/// An action that a job uses, with the values that are not expressions.
#[derive(Clone, Debug)]
pub(super) struct CiAction {
    pub(super) name: String,
    pub(super) with: Vec<(String, String)>,
}

/// What the workflows of a repository say.
#[derive(Clone, Debug, Default)]
pub(super) struct CiContents {
    pub(super) commands: Vec<CiCommand>,
    pub(super) actions: Vec<CiAction>,
    /// The image that GitLab's jobs run in.
    pub(super) image: Option<String>,
    /// The runner of GitHub's jobs, where every job that checks the repository out needs macOS.
    pub(super) macos: Option<String>,
    /// The runners of those jobs.
    runners: Vec<String>,
}

impl CiContents {
    /// Leaves out what only another machine can do, unless no job runs on any but macOS.
    fn settle(&mut self) {
        let machines: Vec<Option<OtherMachine>> =
            self.runners.iter().map(|label| OtherMachine::of_label(label)).collect();
        let is_of_macos =
            !machines.is_empty() && machines.iter().all(|one| *one == Some(OtherMachine::Macos));
        self.macos = self.runners.first().filter(|_| is_of_macos).cloned();
        self.commands.retain(|command| match command.machine {
            None => true,
            Some(OtherMachine::Macos) => is_of_macos,
            Some(OtherMachine::Windows) => false,
        });
    }
}

/// Returns what the workflows run, each command once.
pub(super) fn run(repository: &Repository) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for command in contents(repository).commands {
        let finding = of_command(repository, &command);
        let is_known = |one: &Finding| {
            found.iter().any(|other| other.command == one.command && other.directory == one.directory)
        };
        found.extend(finding.filter(|one| !is_known(one)));
    }
    found
}

/// Returns what a command of a job is, if it is a check or mends.
fn of_command(repository: &Repository, line: &CiCommand) -> Option<Finding> {
    let is_there = line.directory.is_empty()
        || repository
            .paths()
            .any(|path| path.strip_prefix(line.directory.as_str()).is_some_and(|rest| rest.starts_with('/')));
    if !is_there {
        return None;
    }
    let words = shlex::split(&line.command)?;
    let (purpose, is_fix) = match recognise(&words) {
        Some(found) => match (found.manner, found.tool.name.as_str()) {
            // The directory into which is built was made by an earlier line.
            (_, "cmake" | "ctest" | "meson") => return None,
            (_, "make") if !has_makefile(repository, line) => return None,
            (Manner::Pure, _) => (found.purpose.unwrap_or(Purpose::Test), false),
            (Manner::Mends, _) => (found.purpose?, true),
            (Manner::Other, "npm" | "pnpm" | "yarn" | "bun") if is_build(&words) => (Purpose::Build, false),
            // Its default task, which a Rakefile makes the tests.
            (Manner::Other, "rake") if words.last().is_some_and(|word| word == "rake") => {
                (Purpose::Test, false)
            }
            (Manner::Other, _) => return None,
        },
        None => own_script(repository, &words)?,
    };
    Some(Finding {
        purpose: Some(purpose),
        is_fix,
        command: line.command.clone(),
        directory: line.directory.clone(),
        evidence: line.evidence.clone(),
    })
}

/// Tells whether there is a Makefile before anything is configured.
fn has_makefile(repository: &Repository, line: &CiCommand) -> bool {
    let files = ["GNUmakefile", "makefile", "Makefile"];
    line.command.contains(" -C")
        || line.command.contains(" -f")
        || files.iter().any(|file| repository.has(joined(&line.directory, file).as_str()))
}

/// Tells whether a script of a package is its build, which its tests may need.
fn is_build(words: &[String]) -> bool {
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(names.as_slice(), [_, "run", "build"] | ["pnpm" | "yarn", "build"])
}

/// Returns what a script of the repository checks, by its name.
fn own_script(repository: &Repository, words: &[String]) -> Option<(Purpose, bool)> {
    let plain: Vec<&str> = words.iter().map(String::as_str).collect();
    let (["bash" | "sh" | "python" | "python3" | "node", path, ..] | [path, ..]) = plain.as_slice() else {
        return None;
    };
    let path = path.strip_prefix("./").unwrap_or(path);
    let name = path.rsplit('/').next()?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let kind = task_kind(stem, "").filter(|_| repository.has(path))?;
    Some((kind.purpose?, kind.mends))
}

/// Reads the workflows.
pub(super) fn contents(repository: &Repository) -> CiContents {
    let mut contents = CiContents::default();
    for path in repository.paths().filter(|path| is_workflow(path)) {
        let Some(text) = repository.text(path) else { continue };
        let Some(root) = lined_yaml::parse(text) else { continue };
        Workflow { path, text }.read(&root, &mut contents);
    }
    contents.settle();
    contents
}

fn is_workflow(path: &str) -> bool {
    let ending = path.rsplit('.').next();
    // What publishes is not a check, and what others scan needs their service.
    let is_about_others =
        ["release", "publish", "deploy", "codeql", "scorecard"].iter().any(|part| path.contains(part));
    !OWN_WORKFLOWS.contains(&path)
        && !is_about_others
        && (path == ".gitlab-ci.yml"
            || (path.starts_with(".github/workflows/") && matches!(ending, Some("yml" | "yaml"))))
}

/// A workflow that is being read.
struct Workflow<'r> {
    path: &'r str,
    text: &'r str,
}

/// Where a step stands: its job, the directory of its commands, and the variables whose values are written in the file.
#[derive(Clone)]
struct JobPlace<'j> {
    name: &'j str,
    directory: Option<String>,
    machine: Option<OtherMachine>,
    variables: Vec<(&'j str, &'j str)>,
}

impl Workflow<'_> {
    fn read(&self, root: &Node, contents: &mut CiContents) {
        let whole = directory(root.get("defaults").and_then(|node| node.get("run")));
        for job in lined_yaml::entries(root.get("jobs")) {
            let of_job = directory(job.value.get("defaults").and_then(|node| node.get("run")));
            let mut variables = variables(job.value.get("env"));
            variables.extend(self::variables(root.get("env")));
            let label = lined_yaml::text(job.value.get("runs-on"));
            let machine = label.and_then(OtherMachine::of_label);
            let directory = of_job.or_else(|| whole.clone());
            let place = JobPlace { name: &job.key, directory, machine, variables };
            let checks_out = |step: &Node| {
                lined_yaml::text(step.get("uses")).is_some_and(|uses| uses.starts_with("actions/checkout@"))
            };
            if lined_yaml::items(job.value.get("steps")).iter().any(checks_out) {
                contents.runners.extend(label.map(str::to_owned));
            }
            for step in lined_yaml::items(job.value.get("steps")) {
                self.step(step, &place, contents);
            }
        }
        let image = |node: Option<&Node>| {
            let name = lined_yaml::text(node).or_else(|| lined_yaml::text(node?.get("name")))?;
            is_plain(name).then(|| name.to_owned())
        };
        let of_default = image(root.get("default").and_then(|node| node.get("image")));
        contents.image = contents.image.take().or_else(|| image(root.get("image"))).or(of_default);
        // Of GitLab, every key may be a job.
        for job in lined_yaml::entries(Some(root)) {
            let place = JobPlace { name: &job.key, directory: None, machine: None, variables: Vec::new() };
            let (before, script) = (job.value.get("before_script"), job.value.get("script"));
            for script in [before, script] {
                for node in lined_yaml::items(script).iter().chain(script) {
                    self.script(node, &place, "", contents);
                }
            }
        }
    }

    fn step(&self, step: &Node, place: &JobPlace<'_>, contents: &mut CiContents) {
        let place = &match lined_yaml::text(step.get("if")).and_then(OtherMachine::of_condition) {
            Some(machine) => JobPlace { machine: Some(machine), ..place.clone() },
            None => place.clone(),
        };
        let directory = directory(Some(step));
        let directory = directory.as_ref().or(place.directory.as_ref()).map_or("", String::as_str);
        if let Some(script) = step.get("run") {
            self.script(script, place, directory, contents);
        }
        let Some(uses) = step.get("uses") else { return };
        let Some((name, _)) = lined_yaml::text(Some(uses)).and_then(|text| text.split_once('@')) else {
            return;
        };
        let values = lined_yaml::entries(step.get("with")).iter().filter_map(|entry| {
            let value = lined_yaml::text(Some(&entry.value))?;
            is_plain(value).then(|| (entry.key.clone(), value.to_owned()))
        });
        contents.actions.push(CiAction { name: name.to_owned(), with: values.collect() });
        let command = TOOLS.tools.iter().find_map(|tool| tool.actions.get(name));
        let arguments = step.get("with").and_then(|with| with.get("args"));
        let command = command.and_then(|command| with_arguments(command, arguments));
        contents.commands.extend(command.map(|command| CiCommand {
            command,
            directory: directory.to_owned(),
            job: format!("{}:{}", self.path, place.name),
            machine: place.machine,
            evidence: self.evidence(uses, 0),
        }));
    }

    fn evidence(&self, node: &Node, below: usize) -> Evidence {
        let byte = node.span.range.start;
        // A block begins on the line behind its sign.
        let is_block = self.text.get(byte..).is_some_and(|rest| rest.starts_with(['|', '>']));
        let line = lined_yaml::line(self.text, byte) + usize::from(is_block) + below;
        Evidence { file: self.path.to_owned(), line, task: None }
    }

    fn script(&self, node: &Node, place: &JobPlace<'_>, directory: &str, contents: &mut CiContents) {
        let Some(script) = lined_yaml::text(Some(node)) else { return };
        let mut directory = directory.to_owned();
        for (at, line) in logical_lines(script) {
            let line = place.with_values(&line);
            // What is indented stands in a condition or a loop.
            if line.starts_with([' ', '\t']) || !is_understood(&line) {
                continue;
            }
            let mut within = directory.clone();
            for part in line.split("&&").map(str::trim) {
                if let Some(below) = part.strip_prefix("cd ") {
                    within = joined(&within, below.trim());
                    if !line.contains("&&") {
                        directory.clone_from(&within);
                    }
                    continue;
                }
                contents.commands.push(CiCommand {
                    command: part.to_owned(),
                    directory: within.clone(),
                    job: format!("{}:{}", self.path, place.name),
                    machine: place.machine,
                    evidence: self.evidence(node, at),
                });
            }
        }
    }
}

impl JobPlace<'_> {
    /// Puts in the values of variables that the file itself writes, `${{ env.CARGO }}`.
    fn with_values(&self, line: &str) -> String {
        let put_in = |line: String, (name, value): &(&str, &str)| {
            line.replace(&format!("${{{{ env.{name} }}}}"), value)
        };
        self.variables.iter().fold(line.to_owned(), put_in).trim_end().to_owned()
    }
}

fn variables(node: Option<&Node>) -> Vec<(&str, &str)> {
    let plain =
        |entry: &'_ crate::base::node::Entry| lined_yaml::text(Some(&entry.value)).is_some_and(is_plain);
    lined_yaml::entries(node)
        .iter()
        .filter(|entry| plain(entry))
        .filter_map(|entry| Some((entry.key.as_str(), lined_yaml::text(Some(&entry.value))?)))
        .collect()
}

/// Returns the command that an action stands for, with the arguments that the step gives it in the place of `.`; nothing where
/// only the job knows them.
fn with_arguments(command: &str, arguments: Option<&Node>) -> Option<String> {
    let Some(arguments) = arguments else { return Some(command.to_owned()) };
    let arguments = lined_yaml::text(Some(arguments)).filter(|text| is_understood(text.trim()))?;
    let command = command.strip_suffix(" .").unwrap_or(command);
    Some(format!("{command} {}", arguments.trim()))
}

/// Joins the lines of a script that go on in the next one, each with its number from 0.
fn logical_lines(script: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in script.lines().enumerate() {
        let (text, goes_on) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
        match found.last_mut().filter(|_| is_open) {
            Some((_, open)) => *open = format!("{} {}", open.trim_end(), text.trim()),
            None => found.push((at, text.to_owned())),
        }
        is_open = goes_on;
    }
    found
}

/// Tells whether a line is one command, or several joined by `&&`, that needs nothing of the shell around it.
fn is_understood(line: &str) -> bool {
    let without_joints = line.replace("&&", "");
    !without_joints.contains(['$', '|', ';', '&', '>', '<', '\\', '`', '#', '(', '{', '\n', '\r', '\t'])
        && !line.is_empty()
        && line.len() <= 300
        && !line.chars().any(char::is_control)
}

/// Tells whether a value holds nothing that is computed.
fn is_plain(value: &str) -> bool {
    !value.contains("${{")
        && !value.contains('$')
        && value.len() <= 200
        && !value.chars().any(char::is_control)
}

fn directory(node: Option<&Node>) -> Option<String> {
    let text = lined_yaml::text(node?.get("working-directory"))?;
    is_plain(text).then(|| joined("", text))
}

/// Joins directories without leaving the repository; one that does stays as nothing that is there.
fn joined(above: &str, below: &str) -> String {
    let mut parts: Vec<&str> = above.split('/').filter(|part| !part.is_empty()).collect();
    for part in below.trim_matches(['"', '\'']).split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
