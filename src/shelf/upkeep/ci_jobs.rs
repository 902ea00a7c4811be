//! Reads the jobs of a workflow, step by step.

use std::collections::BTreeSet;

use super::altered_checkout::{alters_checkout, writes_over};
use super::checkouts::Checkouts;
use super::ci::{
    CALL_OF_ACTION, Caveat, CiAction, CiCommand, CiContents, LineKind, OUTSIDE, UsualVersion, definitions,
    is_commit, is_of_set_up, joined, unused_line,
};
use super::ci_steps::{
    asks_for_toolchain, checks_other_state_out, defaults, fetches_built, filled, goes_on_beside, hands_on,
    hands_on_behind, has_secrets, is_altering, is_fed_by_event, is_fed_by_steps, prepares_machine, repeats,
    sets_up, starts_another, unpacked_source, with_inputs, written_directory, written_shell,
};
use super::found_repository::{Evidence, Repository};
use super::install_lines::{adds_source, is_install, makes_ready};
use super::install_steps::whole_install;
use super::job_services::{JobContainer, JobServices, variables};
use super::matrix_leg::MatrixLeg;
use super::result_files::without_result_files;
use super::rust_toolchain::RustToolchain;
use super::script_lines::{
    StepShell, asks_git, is_plain, is_plain_input, logical_lines, understood_commands, why_not_understood,
    with_questions, without_assignments, without_messages, without_reporter,
};
use super::step_titles::does_one_thing;
use super::terminal::{TerminalCall, is_terminal};
use super::unused::Reason;
use super::when_jobs_run::{
    Matrix, OtherMachine, asks_earlier_steps, asks_for_label, has_task_each, is_channel, label_of_matrix,
    leaves_changes_out, leaves_tasks_out, lines_of_matrix, matrix, may_fail, needs_another_event, steps,
    value_of_matrix, version_parts, whole_line, without_failing,
};
use super::{lined_yaml, named_environments};
use crate::base::node::{Entry, Node};
use crate::base::text::{first_word, up_to};
use crate::tools::{TOOLS, Tool, recognise_line};

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

/// The most places of the repository that are taken from a matrix: of more, a plan makes jobs.
const MOST_PLACES: usize = 12;

/// A workflow that is being read.
pub(super) struct Workflow<'r> {
    pub(super) repository: &'r Repository,
    pub(super) path: &'r str,
    pub(super) text: &'r str,
    /// Whether it runs when a change is merged, where others run before.
    pub(super) is_late: bool,
    /// The versions that a job is chosen for.
    pub(super) usual: &'r [UsualVersion],
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
    /// The names of those that a line has in it.
    named: Vec<String>,
    /// Where the step stands in its file.
    step: usize,
    /// Its name, where its script does one thing.
    title: Option<&'j str>,
    matrix: Matrix<'j>,
    /// The job of the matrix whose place a loop takes.
    leg: MatrixLeg,
    /// Whether a loop takes the place of all jobs of the matrix, each of which has a task of its own.
    has_task_each: bool,
    /// The environments of tox and nox that its variables name, each with the variable.
    environments: Vec<(&'static str, &'j str)>,
    /// As in [`CiCommand`].
    condition: Option<&'j str>,
    is_before_checkout: bool,
    is_contained: bool,
    /// The value of the matrix that is a place of the repository, by how it is written.
    row: Option<(String, &'j str)>,
    checkouts: Checkouts,
}

impl Workflow<'_> {
    pub(super) fn read(&self, root: &Node, contents: &mut CiContents) {
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
            let why = match () {
                () if may_fail(&job.value) => Some(Reason::MayFail),
                () if leaves_changes_out(job.value.get("if")) => Some(Reason::AfterMerge),
                () => None,
            };
            if let Some(why) = why {
                self.unused_job(&job.value, why, contents);
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
            let minutes =
                lined_yaml::text(job.value.get("timeout-minutes")).and_then(|text| text.parse().ok());
            contents.minutes.extend(minutes.map(|minutes| (id.clone(), minutes)));
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
                place.name_environments(node);
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
                place.add(Caveat::OtherState, checks_other_state_out(step));
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
    pub(super) fn read_unused(&self, root: &Node, why: Reason, contents: &mut CiContents) {
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
        let usual = self.usual_inputs(job);
        MatrixLeg::of(
            job,
            &|key, value| supported.iter().all(|(known, values)| *known != key || values.contains(&value)),
            &|leg| usual.iter().all(|(written, version)| leg.put_in(written).trim() == *version),
        )
    }

    /// Returns the inputs of the actions of a job whose values its matrix says, each with the usual one.
    fn usual_inputs<'j>(&self, job: &'j Node) -> Vec<(&'j str, &str)> {
        let of_step = |step: &'j Node| {
            let name = lined_yaml::text(step.get("uses")).map(|uses| present_name(up_to(uses, &['@'])));
            let usual = self.usual.iter().filter(move |usual| name == Some(usual.action.as_str()));
            usual.filter_map(|usual| {
                let written = lined_yaml::text(step.get("with")?.get(&usual.input))?;
                written.contains("matrix.").then_some((written, usual.version.as_str()))
            })
        };
        steps(job).into_iter().flat_map(of_step).collect()
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
        let why = if leaves_changes_out(condition) { Reason::AfterMerge } else { Reason::MayFail };
        let matrix = without_failing(&place.matrix, step).filter(|_| why == Reason::MayFail);
        if let Some(script) = step.get("run").filter(|script| runs_hooks(script)) {
            let line = self.command("pre-commit run", String::new(), place, self.evidence(script, 0));
            contents.hooks.push(line);
        }
        let Some(matrix) = matrix else {
            let directory = place.checkouts.inside(&joined("", place.directory.unwrap_or("")));
            self.unused_step(step, &directory.unwrap_or_default(), why, contents);
            return;
        };
        let machine = lined_yaml::text(condition)
            .and_then(|condition| OtherMachine::of_condition(condition, &place.matrix));
        let of_leg = if place.has_task_each { &MatrixLeg::default() } else { &place.leg };
        let mut own = variables(step.get("env"), of_leg);
        own.extend(place.variables_of_above(step.get("env")));
        let of_step = own.len();
        own.extend(place.variables.iter().cloned());
        let script = lined_yaml::text(step.get("run"));
        let title = lined_yaml::text(step.get("name")).filter(|_| script.is_some_and(does_one_thing));
        let mut place = JobPlace {
            machine: machine.or(place.machine),
            directory: written_directory(Some(step)).or(place.directory),
            shell: written_shell(Some(step)).or(place.shell),
            variables: own,
            of_step,
            step: step.span.range.start,
            title,
            condition: place.leg.condition_of_others(condition).filter(|_| !place.has_task_each),
            matrix,
            ..place.clone()
        };
        place.name_environments(step);
        place.caveats.remove(&Caveat::AsksEarlier);
        place.add(Caveat::AsksEarlier, asks_earlier_steps(condition));
        place.add(Caveat::AsksForLabel, asks_for_label(condition));
        let is_of_channels = place.condition.is_some_and(|condition| place.leg.is_of_channels(condition));
        place.add(Caveat::OtherInterpreter, is_of_channels);
        // What an earlier step says, no other job can be told.
        place.add(Caveat::FedBySteps, is_fed_by_steps(step));
        place.caveats.remove(&Caveat::FedByEvent);
        place.add(Caveat::FedByEvent, is_fed_by_event(step));
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
        } else if let Some(script) = step.get("run").filter(|_| !self.install(step, place, contents)) {
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

    /// Notes a step that installs something by its name, before any check of its job, as one line, and tells whether it is such a step.
    fn install(&self, step: &Node, place: &JobPlace<'_>, contents: &mut CiContents) -> bool {
        let Some(script) = step.get("run") else { return false };
        let text = place.with_variables(&spaced(lined_yaml::text(Some(script)).unwrap_or("")));
        let name = lined_yaml::text(step.get("name"));
        let install = whole_install(name, &text).filter(|_| StepShell::of(place.shell) == StepShell::Posix);
        let is_behind_check = contents.commands.iter().any(|line| line.is_check_of(&place.id(self.path)));
        let directory = place.known_directory().and_then(|directory| place.checkouts.inside(&directory));
        let (Some(install), Some(directory), false) = (install, directory, is_behind_check) else {
            return false;
        };
        let line = self.command(&install, directory, place, self.evidence(script, 0));
        contents.commands.push(CiCommand { command: install, kind: LineKind::InstallOfStep, ..line });
        true
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
        let of_rows = inputs
            .iter()
            .flat_map(|entry| {
                let written = lined_yaml::text(Some(&entry.value)).filter(|text| text.contains("matrix."));
                let values = written.map(|written| place.leg.put_in_each(written)).unwrap_or_default();
                values.into_iter().map(|value| (entry.key.clone(), value)).collect::<Vec<_>>()
            })
            .filter(|(_, value)| is_plain_input(value))
            .collect();
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
        let action = CiAction {
            name,
            version,
            pin,
            job,
            with,
            of_variables,
            of_matrix,
            of_rows,
            of_channels,
            is_whole,
        };
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
            let line = place.with_environments(&line);
            place.named = names_in(&line, &place.variables);
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
        match part_of_cmake(&place.leg.put_in(line)) {
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
            kind: LineKind::Usual,
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
            named: place.named.clone(),
            step: place.step,
            title: place.title.map(str::to_owned),
            evidence,
        }
    }
}

impl<'j> JobPlace<'j> {
    /// Notes what speaks against the lines from here on, if it holds.
    fn add(&mut self, caveat: Caveat, holds: bool) {
        self.caveats.extend(holds.then_some(caveat));
    }

    /// Notes the environments of tox and nox that the variables of a step, a job or a workflow name: the nearest comes last.
    fn name_environments(&mut self, node: &'j Node) {
        let env = node.get("env");
        let named = named_environments::VARIABLES.into_iter();
        let named = named.filter_map(|name| Some((name, lined_yaml::text(env?.get(name))?)));
        self.environments.extend(named);
    }

    /// Returns a line with the environments that a variable names for its runner, where it names none itself.
    fn with_environments(&self, line: &str) -> String {
        named_environments::with_variables(line, &self.environments)
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

    /// Returns the variables of a step whose values have those of the levels above in them, `--cfg x ${{ env.RUSTFLAGS }}`.
    fn variables_of_above(&self, env: Option<&Node>) -> Vec<(String, String)> {
        let of_entry = |entry: &Entry| {
            let written = lined_yaml::text(Some(&entry.value)).filter(|text| text.contains("env."))?;
            let value = self.with_variables(&spaced(written));
            is_plain(&value).then(|| (entry.key.clone(), value))
        };
        lined_yaml::entries(env).iter().filter_map(of_entry).collect()
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

/// Returns the names of the variables that a line has in it, for the shell or as an expression.
fn names_in(line: &str, variables: &[(String, String)]) -> Vec<String> {
    let is_in = |name: &&String| {
        [format!("${name}"), format!("${{{name}}}"), format!("env.{name}")]
            .iter()
            .any(|way| line.contains(way))
    };
    variables.iter().map(|(name, _)| name).filter(is_in).cloned().collect()
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

/// Tells whether a script runs the hooks of pre-commit, in whatever way.
fn runs_hooks(script: &Node) -> bool {
    let text = lined_yaml::text(Some(script)).unwrap_or("");
    ["pre-commit run", "prek run"].iter().any(|call| text.contains(call))
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

/// Returns the name that an action has today.
fn present_name(name: &str) -> &str {
    match name {
        "erlef/setup-elixir" | "actions/setup-elixir" => "erlef/setup-beam",
        "actions/setup-ruby" => "ruby/setup-ruby",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
