//! What the workflows of a repository run already.

use super::found_repository::{Evidence, Finding, Repository};
use super::lined_yaml;
use super::when_jobs_run::{
    Matrix, OtherMachine, asks_earlier_steps, is_started_by_changes, lines_of_matrix, matrix,
};
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
    /// Whether it runs only where an earlier step of its job has found something.
    asks_earlier: bool,
    pub(super) evidence: Evidence,
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
        let plain = |command: &str| command.trim_end_matches('/').to_owned();
        let is_known = |one: &Finding| {
            found
                .iter()
                .any(|other| plain(&other.command) == plain(&one.command) && other.directory == one.directory)
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
        None if line.asks_earlier => return None,
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
    if let ["cargo", "xtask", name, rest @ ..] = plain.as_slice() {
        let is_there = repository.text(".cargo/config.toml").is_some_and(|text| text.contains("xtask"));
        let kind = task_kind(name, &rest.join(" ")).filter(|_| is_there)?;
        return Some((kind.purpose?, kind.mends));
    }
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
        if is_started_by_changes(&root) {
            Workflow { path, text }.read(&root, &mut contents);
        }
    }
    contents.settle();
    contents
}

/// Tells whether a workflow names a program, however it calls it.
pub(super) fn names(repository: &Repository, program: &str) -> bool {
    let is_named = |text: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|word| word == program)
    };
    repository.paths().filter(|path| is_workflow(path)).filter_map(|path| repository.text(path)).any(is_named)
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
#[derive(Clone, Default)]
struct JobPlace<'j> {
    name: &'j str,
    directory: Option<String>,
    machine: Option<OtherMachine>,
    asks_earlier: bool,
    variables: Vec<(&'j str, &'j str)>,
    matrix: Matrix<'j>,
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
            let place = JobPlace {
                name: &job.key,
                directory,
                machine,
                asks_earlier: false,
                variables,
                matrix: matrix(&job.value),
            };
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
            let place = JobPlace { name: &job.key, ..JobPlace::default() };
            let (before, script) = (job.value.get("before_script"), job.value.get("script"));
            for script in [before, script] {
                for node in lined_yaml::items(script).iter().chain(script) {
                    self.script(node, &place, "", contents);
                }
            }
        }
    }

    fn step(&self, step: &Node, place: &JobPlace<'_>, contents: &mut CiContents) {
        let condition = step.get("if");
        let machine = lined_yaml::text(condition).and_then(OtherMachine::of_condition);
        let place = &JobPlace {
            machine: machine.or(place.machine),
            asks_earlier: asks_earlier_steps(condition),
            ..place.clone()
        };
        let is_elsewhere = step.get("working-directory").is_some() && directory(Some(step)).is_none();
        let directory = directory(Some(step));
        let directory = directory.as_ref().or(place.directory.as_ref()).map_or("", String::as_str);
        // Where only the job knows the directory, what is run there is not for any other.
        if let Some(script) = step.get("run").filter(|_| !is_elsewhere) {
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
            asks_earlier: place.asks_earlier,
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
            for line in lines_of_matrix(&place.with_values(&line, &directory), &place.matrix) {
                // What is indented stands in a condition or a loop.
                if line.starts_with([' ', '\t']) || !is_understood(&line) {
                    continue;
                }
                self.line(&line, &mut directory, place, &self.evidence(node, at), contents);
            }
        }
    }

    /// Notes the commands of a line, and where the next one is run.
    fn line(
        &self,
        line: &str,
        directory: &mut String,
        place: &JobPlace<'_>,
        evidence: &Evidence,
        contents: &mut CiContents,
    ) {
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
                asks_earlier: place.asks_earlier,
                evidence: evidence.clone(),
            });
        }
    }
}

impl JobPlace<'_> {
    /// Puts in the values of variables that the file itself writes, `${{ env.CARGO }}`, and at the top the place of the checkout.
    fn with_values(&self, line: &str, directory: &str) -> String {
        let put_in = |line: String, (name, value): &(&str, &str)| {
            line.replace(&format!("${{{{ env.{name} }}}}"), value)
        };
        let line = self.variables.iter().fold(line.to_owned(), put_in).trim_end().to_owned();
        if !directory.is_empty() {
            return line;
        }
        ["${{ github.workspace }}/", "$GITHUB_WORKSPACE/", "${GITHUB_WORKSPACE}/"]
            .iter()
            .fold(line, |line, place| line.replace(place, "./"))
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
