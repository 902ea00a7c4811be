//! Writes the workflow that runs the loops: its steps are there to be read and changed, and it is right on the first push.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::ci::{CiAction, CiContents, is_commit};
use super::ci_files::contents;
use super::found_repository::Repository;
use super::gitlab::gitlab;
use super::job_services::{self, JobContainer};
use super::loop_text::COMMIT;
use super::setup::{
    CHECKOUT, DOWNLOAD, PinnedAction, SetUp, SetUpStep, container, jobs_of, services, stands_before, steps,
    variables, without_image,
};
use super::workflow_loop::WorkflowLoop;
use super::yaml_style::quoted;

/// The CI system that a workflow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ci {
    /// GitHub Actions.
    Github,
    /// GitLab.
    Gitlab,
}

/// The most jobs that GitHub makes of one matrix.
const MOST_JOBS: usize = 256;

/// Writes the workflow for some loops, and returns its path with it.
pub fn workflow(ci: Ci, repository: &Repository, loops: &[WorkflowLoop<'_>]) -> (&'static str, String) {
    let contents = contents(repository);
    match ci {
        Ci::Github => (".github/workflows/ll-loop.yml", github(repository, &contents, loops)),
        Ci::Gitlab if repository.has(".gitlab-ci.yml") => {
            (".gitlab/ll-loop.gitlab-ci.yml", format!("{INCLUDE}{}", gitlab(repository, &contents, loops)))
        }
        Ci::Gitlab => (".gitlab-ci.yml", gitlab(repository, &contents, loops)),
    }
}

/// What has to stand in the file that is there, so that the jobs run.
const INCLUDE: &str = "# To run these jobs, add to .gitlab-ci.yml:\n#   include:\n#     - local: .gitlab/ll-loop.gitlab-ci.yml\n";

/// The beginning of every workflow, before the branches whose pushes start it.
const EVENTS: &str = "name: ll-loop

on:
  pull_request:
  push:
    branches:";

/// What stands before the jobs. A newer push ends what an older one of the same branch still runs; a branch that is shared keeps all.
const HEAD: &str = "
permissions:
  contents: read # to check the repository out

concurrency:
  group: ll-loop-${{ github.ref }}
  cancel-in-progress: ${{ github.event_name == 'pull_request' }}

jobs:
";

fn github(repository: &Repository, contents: &CiContents, loops: &[WorkflowLoop<'_>]) -> String {
    let mut out = format!("{EVENTS}{}{HEAD}", branches(repository, contents));
    for one in loops {
        let package = one.planned.packages.first().map(String::as_str);
        let mut steps = steps(repository, contents, one.settled, package);
        let container = container(contents, one.settled);
        if let Some(container) = container {
            without_image(&mut steps, contents, container);
        }
        let surroundings = job_services::text(
            &services(contents, one.settled),
            &variables(contents, one.settled),
            &|name| stands_before(one.settled, name),
        );
        let job = GithubJob {
            name: &one.planned.name,
            packages: &one.planned.packages,
            steps,
            surroundings: container.map_or_else(String::new, JobContainer::text) + &surroundings,
            jobs: jobs_of(contents, one.settled),
            minutes: one.minutes(),
            repository,
            contents,
        };
        if one.planned.packages.len() > MOST_JOBS { job.planned(&mut out) } else { job.plain(&mut out) }
    }
    out
}

/// Returns the branches whose pushes start the workflow, as they stand behind their key: those that the repository's own workflows
/// name, or that a clone of it checks out, or that most repositories have.
fn branches(repository: &Repository, contents: &CiContents) -> String {
    let of_clone = repository.default_branch().into_iter().collect();
    let own: Vec<&str> = contents.branches.iter().map(String::as_str).collect();
    let known = [own, of_clone].into_iter().find(|names| !names.is_empty());
    let names: Vec<String> = known.unwrap_or(vec!["main", "master"]).into_iter().map(quoted).collect();
    // In one line, formatters differ about quotes, and about how long it may be.
    let is_plain =
        |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    if names.len() <= 2 && names.iter().all(is_plain) {
        return format!(" [{}]\n", names.join(", "));
    }
    let lines: Vec<String> = names.iter().map(|name| format!("\n      - {name}")).collect();
    lines.concat() + "\n"
}

struct GithubJob<'p> {
    name: &'p str,
    packages: &'p [String],
    steps: Vec<SetUpStep>,
    /// What stands around the steps: a container, services and variables.
    surroundings: String,
    /// The jobs that make its checks.
    jobs: BTreeSet<&'p str>,
    /// How many minutes it may take.
    minutes: u32,
    repository: &'p Repository,
    contents: &'p CiContents,
}

impl GithubJob<'_> {
    /// Writes the checkout, with as much of the history and the submodules as the jobs take that make the same checks; where none
    /// does, as any takes.
    fn checkout(&self, out: &mut String) {
        // What the job runs was written by whoever made the change, and must not find a token in
        // `.git/config`.
        let _ = write!(
            out,
            "      - uses: {}\n        with:\n          persist-credentials: false\n",
            pinned_as_there(self.contents, &CHECKOUT)
        );
        // A version that is made of the history may be made in a job that no check of ours stands for.
        let is_any = self.jobs.is_empty() || self.is_versioned_by_history();
        let is_meant = |job: &str| is_any || self.jobs.contains(job);
        let of_checkout = |known: &&CiAction| known.name == CHECKOUT.name && is_meant(&known.job);
        for key in ["fetch-depth", "submodules"] {
            let calls = || self.contents.actions.iter().filter(of_checkout);
            let values = || calls().flat_map(|known| &known.with).filter(|(known, _)| known == key);
            let all = values().find(|(_, value)| matches!(value.as_str(), "0" | "true" | "recursive"));
            let number = |value: &str| value.parse::<u32>().ok().filter(|number| *number > 1);
            let most = || values().max_by_key(|(_, value)| number(value));
            let most = most().filter(|(_, value)| number(value).is_some());
            // Both are about having enough: the value that says most is that of the job which needs it.
            if let Some((_, value)) = all.or(most) {
                let _ = writeln!(out, "          {key}: {value}");
            }
        }
    }

    /// Tells whether a build takes the version from tags and commits, by the tool that does.
    fn is_versioned_by_history(&self) -> bool {
        let tools = [
            "setuptools_scm",
            "setuptools-scm",
            "hatch-vcs",
            "versioningit",
            "poetry-dynamic-versioning",
            "versioneer",
        ];
        let files = ["pyproject.toml", "setup.cfg", "setup.py"];
        let mut texts = files.iter().filter_map(|file| self.repository.text(file));
        texts.any(|text| tools.iter().any(|tool| text.contains(tool)))
    }

    /// Returns the name of the job, which takes letters, digits, `-` and `_`.
    fn id(&self) -> String {
        let letters = self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let name: String = letters.collect();
        // GitHub takes no name of a job that begins with a digit or a dash.
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("loop-{name}") }
    }

    fn plain(&self, out: &mut String) {
        let has_packages = !self.packages.is_empty();
        let title = if has_packages {
            format!("{} in ${{{{ matrix.path }}}}", self.name)
        } else {
            self.name.to_owned()
        };
        // A release and not `ubuntu-latest`, which moves on one day and could make a loop fail without a change.
        let _ = write!(
            out,
            "  {}:\n    name: {}\n    runs-on: {}\n    timeout-minutes: {}\n",
            self.id(),
            value(&title),
            self.contents.macos.as_deref().unwrap_or("ubuntu-24.04"),
            self.minutes
        );
        if has_packages {
            // One package that fails says nothing about the others.
            out.push_str("    strategy:\n      fail-fast: false\n      matrix:\n        path:\n");
            for package in self.packages {
                let _ = writeln!(out, "          - {}", quoted(package));
            }
        }
        out.push_str(&self.surroundings);
        out.push_str("    steps:\n");
        let package = has_packages.then_some("${{ matrix.path }}");
        self.set_up(out, package, true);
        self.checkout(out);
        self.set_up(out, package, false);
        Self::own(out, "", &[("loop", self.name.to_owned())]);
        if has_packages {
            out.push_str("          params: path=${{ matrix.path }}\n");
        }
    }

    /// Writes jobs for more packages than a matrix can hold: a plan, its legs, and the one result.
    fn planned(&self, out: &mut String) {
        let id = self.id();
        let head = |suffix: &str, name: &str| {
            format!(
                "  {id}-{suffix}:\n    name: {}\n    runs-on: ubuntu-24.04\n    timeout-minutes: ",
                value(name)
            )
        };
        let _ = write!(
            out,
            "{}15\n    outputs:\n      matrix: ${{{{ steps.plan.outputs.matrix }}}}\n      any: ${{{{ steps.plan.outputs.any }}}}\n      plan-artifact: ${{{{ steps.plan.outputs.plan-artifact }}}}\n    steps:\n",
            head("plan", &format!("{} plan", self.name))
        );
        self.checkout(out);
        Self::own_with_id(
            out,
            "/plan",
            "plan",
            &[("loop", self.name.to_owned()), ("per-path", self.pattern())],
        );
        // GitHub ends a job after six hours. The deadline of the leg leaves a quarter of an hour for its reports.
        let _ = write!(
            out,
            "{}360\n    needs: {id}-plan\n    if: needs.{id}-plan.outputs.any == 'true'\n    strategy:\n      fail-fast: false\n      matrix: ${{{{ fromJSON(needs.{id}-plan.outputs.matrix) }}}}\n    steps:\n",
            head("leg", "${{ matrix.leg }} ${{ matrix.title }}")
        );
        self.checkout(out);
        self.set_up_languages(out);
        download(
            out,
            "name",
            &format!("${{{{ needs.{id}-plan.outputs.plan-artifact }}}}"),
            ".loops/.running/plan",
        );
        self.install_in_packages(out);
        Self::own(
            out,
            "",
            &[
                ("plan", "${{ github.workspace }}/.loops/.running/plan/plan.json".to_owned()),
                ("leg", "${{ matrix.leg }}".to_owned()),
                ("report-dir", "${{ github.workspace }}/.loops/.running/leg.report".to_owned()),
                ("deadline", "5h45m".to_owned()),
            ],
        );
        // Also after legs that failed or were lost: the merge is what reports them.
        let _ = write!(
            out,
            "{}15\n    needs: [{id}-plan, {id}-leg]\n    if: always()\n    steps:\n",
            head("merge", self.name)
        );
        self.checkout(out);
        download(
            out,
            "name",
            &format!("${{{{ needs.{id}-plan.outputs.plan-artifact }}}}"),
            ".loops/.running/plan",
        );
        out.push_str("      - run: mkdir -p .loops/.running/legs\n");
        download(out, "pattern", "ll-loop-*-l[0-9]*-r${{ github.run_id }}-a*[0-9]", ".loops/.running/legs");
        Self::own(
            out,
            "/merge",
            &[
                ("plan", ".loops/.running/plan/plan.json".to_owned()),
                ("from", ".loops/.running/legs".to_owned()),
            ],
        );
    }

    /// Returns a pattern for the packages: their common directory, or else their manifest wherever it lies.
    fn pattern(&self) -> String {
        let above = |package: &String| package.rsplit_once('/').map(|(above, _)| above.to_owned());
        let first = self.packages.first().and_then(above);
        if let Some(above) =
            first.filter(|first| self.packages.iter().all(|package| above(package).as_ref() == Some(first)))
        {
            format!("{above}/*")
        } else {
            let package = self.packages.first().map_or("", String::as_str);
            let files = [
                "package.json",
                "Cargo.toml",
                "pyproject.toml",
                "go.mod",
                "composer.json",
                "Gemfile",
                "pom.xml",
            ];
            let here = self.repository.below(package);
            format!("*/**/{}", here.first(&files).unwrap_or("package.json"))
        }
    }

    /// Writes what sets the languages up, which is the same for every package.
    fn set_up_languages(&self, out: &mut String) {
        for step in &self.steps {
            match &step.does {
                SetUp::Action { action, with } => {
                    uses(&pinned_as_there(self.contents, action), with, out);
                }
                SetUp::CopiedAction { uses, with } => uses_copied(uses, with, out),
                SetUp::Run(_) => {}
            }
        }
    }

    /// Writes the step by which a leg installs what each of its packages depends on: which they are, only the plan says.
    fn install_in_packages(&self, out: &mut String) {
        let mut script = String::new();
        for step in &self.steps {
            let SetUp::Run(command) = &step.does else { continue };
            let _ = match step.directory.as_str() {
                "" => writeln!(script, "            (cd \"$package\" && {command})"),
                below => writeln!(script, "            (cd \"$package\"/{below} && {command})"),
            };
        }
        if !script.is_empty() {
            // The script gets values as variables: an expression within it would be pasted into the shell text.
            let _ = write!(
                out,
                "      - env:\n          LEG: ${{{{ matrix.leg }}}}\n          PATHS: {PATHS_OF_LEG}\n        run: |\n          jq -r --arg leg \"$LEG\" \"$PATHS\" .loops/.running/plan/plan.json | while IFS= read -r package; do\n{script}          done\n"
            );
        }
    }

    fn set_up(&self, out: &mut String, package: Option<&str>, is_before_checkout: bool) {
        for step in self.steps.iter().filter(|step| step.is_before_checkout == is_before_checkout) {
            match &step.does {
                SetUp::Action { action, with } => {
                    uses(&pinned_as_there(self.contents, action), with, out);
                }
                SetUp::CopiedAction { uses, with } => uses_copied(uses, with, out),
                SetUp::Run(command) => {
                    // No lock file of the repository has what is not of the repository.
                    let is_npm = ["npm install ", "npm i "].iter().any(|begin| command.starts_with(begin));
                    let is_global =
                        is_npm && command.split(' ').any(|word| matches!(word, "--global" | "-g"));
                    let note = if is_global { " # zizmor: ignore[adhoc-packages]" } else { "" };
                    let _ = writeln!(out, "      - run: {}{note}", quoted(command));
                    let directory = match (package, step.directory.as_str()) {
                        (None, "") => continue,
                        (None, below) => value(below),
                        (Some(package), "") => package.to_owned(),
                        (Some(package), below) => format!("{package}/{below}"),
                    };
                    let _ = writeln!(out, "        working-directory: {directory}");
                }
            }
        }
    }

    fn own(out: &mut String, which: &str, with: &[(&str, String)]) {
        let _ = write!(out, "{}", own_uses(which));
        with_inputs(out, with);
    }

    fn own_with_id(out: &mut String, which: &str, id: &str, with: &[(&str, String)]) {
        let _ = writeln!(out, "{}        id: {id}", own_uses(which));
        with_inputs(out, with);
    }
}

/// Selects the packages of a leg in a plan, for `jq`.
const PATHS_OF_LEG: &str = "\"(.legs[] | select(.key == $leg) | .items) as $ids | .items[] | select(.id | IN($ids[])) | .params.path\"";

/// Writes a step that calls an action.
fn uses(action: &str, with: &[(&'static str, String)], out: &mut String) {
    let _ = writeln!(out, "      - uses: {action}");
    if !with.is_empty() {
        out.push_str("        with:\n");
    }
    for (key, text) in with {
        let _ = writeln!(out, "          {key}: {}", input(text));
    }
}

/// Writes a step that the repository's own workflows have.
fn uses_copied(action: &str, with: &[(String, String)], out: &mut String) {
    // It is called as the repository's own workflows call it.
    let note = match action.rsplit_once('@') {
        _ if action.starts_with("./") => " # zizmor: ignore[self-repository]",
        Some((_, version)) if is_commit(version) => "",
        Some(_) | None => " # zizmor: ignore[unpinned-uses]",
    };
    let _ = writeln!(out, "      - uses: {}{note}", value(action));
    if !with.is_empty() {
        out.push_str("        with:\n");
    }
    for (key, text) in with {
        let _ = writeln!(out, "          {}: {}", value(key), input(text));
    }
}

fn with_inputs(out: &mut String, with: &[(&str, String)]) {
    out.push_str("        with:\n");
    for (key, text) in with {
        let _ = writeln!(
            out,
            "          {key}: {}",
            if text.starts_with("${{") { text.clone() } else { value(text) }
        );
    }
}

/// Writes the step that is ours: by the commit that the program was built from. A build that knows none names the branch.
fn own_uses(which: &str) -> String {
    match COMMIT {
        Some(commit) => format!("      - uses: little-loops/ll-loop{which}@{commit}\n"),
        None => format!(
            "      # There is no release yet: this follows the branch. Put a commit in its place to stay on it.\n      - uses: little-loops/ll-loop{which}@main # zizmor: ignore[unpinned-uses]\n"
        ),
    }
}

fn pinned(action: &PinnedAction) -> String {
    format!("{}@{} # {}", action.name, action.commit, action.tag)
}

/// Returns how an action is called by the commit that most lines of the repository's own workflows have of it, where they have one; else
/// as we know it.
fn pinned_as_there(contents: &CiContents, action: &PinnedAction) -> String {
    let of_action = contents.actions.iter().filter(|known| known.name == action.name);
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for pin in of_action.filter_map(|known| known.pin.as_deref()) {
        match counted.iter_mut().find(|(known, _)| *known == pin) {
            Some((_, count)) => *count += 1,
            None => counted.push((pin, 1)),
        }
    }
    // Of as many, the first.
    let usual = counted.iter().rev().max_by_key(|(_, count)| *count);
    usual.map_or_else(|| pinned(action), |(pin, _)| format!("{}@{pin}", action.name))
}

fn download(out: &mut String, key: &str, what: &str, path: &str) {
    let _ = write!(
        out,
        "      - uses: {}\n        with:\n          {key}: {what}\n          path: {path}\n",
        pinned(&DOWNLOAD)
    );
}

/// Writes the value of an input of an action, a list as a block.
fn input(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if lines.len() < 2 || lines.iter().any(|line| line.is_empty()) {
        return value(text.trim_end());
    }
    let block = lines.iter().flat_map(|line| ["\n            ", line]);
    std::iter::once("|").chain(block).collect()
}

/// Writes a value of an input. A version is a text: `3.10` as a number is 3.1.
fn value(text: &str) -> String {
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.contains("${{") {
        return Value::from(text).to_string();
    }
    quoted(text)
}
