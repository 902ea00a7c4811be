//! What a job needs before the checks of a loop can run: the language in the version that the repository names, what it depends on, and
//! the tools that a runner lacks.

use std::collections::{BTreeMap, BTreeSet};

use super::called_as_in_ci::is_of_checks;
use super::chosen_commands::{Check, Plan};
use super::ci::{CiAction, CiCommand, CiContents, LineKind, is_of_set_up, words};
use super::found_repository::{Finding, Repository, declared};
use super::install_lines::{
    adds_source, fetches_browsers, installs_of_system, is_beside_packages, is_frozen, is_install, is_of_root,
    is_of_system, is_same_install, language_of_install, without_pinned_packages,
};
use super::job_services::{JobContainer, JobServices};
use super::node_packages::package_manager;
use super::recipes::{MAKEFILES, first_recipe, recipes};
use super::rust_toolchain::{VARIABLE, component, is_toolchain, made_usual, named_by};
use super::script_lines::without_assignments;
use super::task_texts::lines_of_task;
use super::when_jobs_run::{is_channel, newest, version_parts};
use crate::base::text::{after_last, first_word, up_to};
use crate::judges::tree::extension;
use crate::tools::{Purpose, TOOLS, Tool, recognise, recognise_line};

/// A step before the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetUpStep {
    pub(super) does: SetUp,
    /// Whether it comes before the checkout, which may need what it installs.
    pub(super) is_before_checkout: bool,
    /// Where it is done; empty for the top.
    pub(super) directory: String,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SetUp {
    /// Calls an action of somebody else.
    Action {
        /// It, with its commit and its tag.
        action: &'static PinnedAction,
        /// Its inputs.
        with: Vec<(&'static str, String)>,
    },
    /// Calls an action as the repository's own workflows do.
    CopiedAction {
        /// It, `./.github/actions/setup` or `biomejs/setup-biome@v2`.
        uses: String,
        /// Its inputs.
        with: Vec<(String, String)>,
    },
    /// Runs a command.
    Run(String),
}

impl SetUpStep {
    /// Tells whether it calls the same action of the repository's own workflows, and differs in versions alone.
    fn is_of_other_version(&self, other: &Self) -> bool {
        let (SetUp::CopiedAction { uses, with }, SetUp::CopiedAction { uses: of_other, with: with_other }) =
            (&self.does, &other.does)
        else {
            return false;
        };
        let is_same = |(one, other): (&(String, String), &(String, String))| {
            let are_versions = version_parts(&one.1).is_some() && version_parts(&other.1).is_some();
            one.0 == other.0 && (one.1 == other.1 || are_versions)
        };
        uses == of_other && with.len() == with_other.len() && with.iter().zip(with_other).all(is_same)
    }

    /// Takes the versions of another call of the same action where they are newer.
    fn take_newer(&mut self, other: Self) {
        let (SetUp::CopiedAction { with, .. }, SetUp::CopiedAction { with: with_other, .. }) =
            (&mut self.does, other.does)
        else {
            return;
        };
        for (known, other) in with.iter_mut().zip(with_other) {
            if newest(&[known.1.as_str(), other.1.as_str()]) == Some(other.1.as_str()) {
                *known = other;
            }
        }
    }

    /// Tells whether this step leaves nothing to do for another one.
    fn stands_for(&self, other: &Self) -> bool {
        match (&self.does, &other.does) {
            // A language has one version in a job: the last that is set up would be that of all checks. The action of Ruby
            // installs what each directory depends on.
            (SetUp::Action { action, .. }, SetUp::Action { action: of_other, with }) => {
                action == of_other
                    && (self == other || !with.iter().any(|(key, _)| *key == "working-directory"))
            }
            (_, _) => self == other,
        }
    }
}

/// An action by its commit. A tag can be moved to other code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PinnedAction {
    pub(super) name: &'static str,
    pub(super) commit: &'static str,
    pub(super) tag: &'static str,
}

macro_rules! pinned {
    ($($constant:ident = $name:literal, $commit:literal, $tag:literal;)*) => {
        $(pub(super) static $constant: PinnedAction = PinnedAction { name: $name, commit: $commit, tag: $tag };)*

        /// All of them.
        static KNOWN_ACTIONS: &[&PinnedAction] = &[$(&$constant),*];
    };
}

pinned! {
    CHECKOUT = "actions/checkout", "d23441a48e516b6c34aea4fa41551a30e30af803", "v6.1.0";
    DOWNLOAD = "actions/download-artifact", "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c", "v8.0.1";
    NODE = "actions/setup-node", "820762786026740c76f36085b0efc47a31fe5020", "v7.0.0";
    PYTHON = "actions/setup-python", "5fda3b95a4ea91299a34e894583c3862153e4b97", "v7.0.0";
    GO = "actions/setup-go", "b7ad1dad31e06c5925ef5d2fc7ad053ef454303e", "v7.0.0";
    JAVA = "actions/setup-java", "b6effb05e454b25005698d916606bdc6ffcbf961", "v5.7.0";
    DOTNET = "actions/setup-dotnet", "a98b56852c35b8e3190ac28c8c2271da59106c68", "v6.0.0";
    UV = "astral-sh/setup-uv", "20cfd1bf945f4377ade1205e4dbc17946fc9a30d", "v10.0.1";
    PNPM = "pnpm/action-setup", "0977fd99725f1db4007ccb2928dbb4e90d06cc86", "v6.0.10";
    RUBY = "ruby/setup-ruby", "0dafeac902942906541bc140009cdbf32665b601", "v1.315.0";
    PHP = "shivammathur/setup-php", "f3e473d116dcccaddc5834248c87452386958240", "v2";
    TERRAFORM = "hashicorp/setup-terraform", "dfe3c3f87815947d99a8997f908cb6525fc44e9e", "v4.0.1";
    BEAM = "erlef/setup-beam", "988e02bfe678367a02564f65ca2e37726dc0268f", "v1.9.0";
    BUN = "oven-sh/setup-bun", "0c5077e51419868618aeaa5fe8019c62421857d6", "v2.2.0";
    DART = "dart-lang/setup-dart", "65eb853c7ba17dde3be364c3d2858773e7144260", "v1.7.2";
    FLUTTER = "subosito/flutter-action", "1a449444c387b1966244ae4d4f8c696479add0b2", "v2.23.0";
    ZIG = "mlugg/setup-zig", "d1434d08867e3ee9daa34448df10607b98908d29", "v2.2.1";
    OCAML = "ocaml/setup-ocaml", "e32b06a3e831ff2fbc6f08cf35be2085e3918014", "v3.6.1";
    NIX = "cachix/install-nix-action", "13d8dd58da0234aa297dedd986986ccb8e7f3e24", "v31.11.1";
    DENO = "denoland/setup-deno", "667a34cdef165d8d2b2e98dde39547c9daac7282", "v2.0.4";
    SBT = "sbt/setup-sbt", "6444f4c8111de4b9059c3975def104b03cfaa5f0", "v1.5.2";
    CHART_TESTING = "helm/chart-testing-action", "6ec842c01de15ebb84c8627d2744a0c2f2755c9f", "v2.8.0";
    CLOJURE = "DeLaGuardo/setup-clojure", "02f5a82b79a547523e664fe8a7a32ea14884d7b2", "13.6.0";
    NIM = "jiro4989/setup-nim-action", "cb1fc1270b117457dd0d9f610ec981fad3369cec", "v2.3.0";
}

/// What is set up of a language.
type SetLanguageUp = fn(&SetUpPlace<'_>) -> Vec<SetUp>;

/// The languages, in the order in which they are set up.
const LANGUAGES: [(&str, SetLanguageUp); 16] = [
    ("nix", nix),
    ("nim", nim),
    ("elixir", elixir),
    ("dart", dart),
    ("zig", zig),
    ("ocaml", ocaml),
    ("go", go),
    ("java", java),
    ("clojure", clojure),
    ("dotnet", dotnet),
    ("ruby", ruby),
    ("php", php),
    ("terraform", terraform),
    ("deno", deno),
    ("node", node),
    ("python", python),
];

/// Actions that set up a language, or a manager of packages, whose programs a task of another one may call.
static LANGUAGES_OF_ACTIONS: [(&PinnedAction, SetLanguageUp); 15] = [
    (&NIX, nix),
    (&GO, go),
    (&JAVA, java),
    (&DOTNET, dotnet),
    (&RUBY, ruby),
    (&PHP, php),
    (&TERRAFORM, terraform),
    (&DART, dart),
    (&ZIG, zig),
    // Before Node, whose action may ask it for the place of its cache.
    (&PNPM, |place| vec![place.pnpm()]),
    (&NODE, node),
    (&BUN, |place| vec![bun(place)]),
    (&DENO, deno),
    (&PYTHON, python),
    (&UV, |place| vec![uv(place)]),
];

fn is_action(step: &SetUp, pinned: &PinnedAction) -> bool {
    matches!(step, SetUp::Action { action, .. } if *action == pinned)
}

/// Returns the actions that install tools which need more than one program.
fn actions_of_tools(place: &SetUpPlace<'_>, called: &[&Finding]) -> Vec<SetUp> {
    let of_tools = [("sbt", &SBT), ("chart-testing", &CHART_TESTING)];
    let is_called = |name: &str| {
        called
            .iter()
            .any(|finding| recognise_line(&finding.command).is_some_and(|found| found.tool.name == name))
    };
    let meant = of_tools.into_iter().filter(|(name, _)| is_called(name));
    let version =
        |pinned: &PinnedAction| place.of_ci(pinned.name, "version").map(|version| ("version", version));
    meant.map(|(_, pinned)| action(pinned, version(pinned).into_iter().collect())).collect()
}

/// A directory in which something is set up, and what its repository says.
struct SetUpPlace<'r> {
    /// The repository as it is seen from there.
    here: Repository,
    /// All of it.
    repository: &'r Repository,
    contents: &'r CiContents,
    directory: String,
    /// The jobs that run the checks.
    jobs: BTreeSet<&'r str>,
    /// The conditions by which they do so in some jobs of a matrix.
    conditions: BTreeSet<&'r str>,
    /// Whether the loop runs in the container of those jobs.
    is_contained: bool,
    /// Whether a check runs the hooks of pre-commit.
    runs_hooks: bool,
    /// Of each check, the first job that makes it: others may prepare for a variant of it.
    homes: BTreeSet<&'r str>,
    /// Where in each of them the last line stands that makes a check, among all lines.
    last_lines: BTreeMap<&'r str, usize>,
}

/// Returns the steps before a loop. In a loop for packages, `package` is one of them, and the steps are for any package: they have no directory.
pub(super) fn steps(
    repository: &Repository,
    contents: &CiContents,
    plan: &Plan,
    package: Option<&str>,
) -> Vec<SetUpStep> {
    // A fix may call another tool than its check, and the job needs both.
    let findings: Vec<&Finding> =
        plan.checks.iter().flat_map(|check| [Some(&check.finding), check.fix.as_ref()]).flatten().collect();
    let is_contained = container(contents, plan).is_some();
    let mut steps: Vec<SetUpStep> = Vec::new();
    let directories: BTreeSet<&str> = findings.iter().map(|finding| finding.directory.as_str()).collect();
    for below in directories {
        let directory = match (package, below) {
            (Some(package), "") => package.to_owned(),
            (Some(package), below) => format!("{package}/{below}"),
            (None, below) => below.to_owned(),
        };
        let here = if directory.is_empty() { repository.clone() } else { repository.below(&directory) };
        let called: Vec<&Finding> =
            findings.iter().filter(|finding| finding.directory == below).copied().collect();
        let lines: Vec<&CiCommand> = lines_of(contents, &called).collect();
        let place = SetUpPlace {
            here,
            repository,
            contents,
            directory,
            jobs: lines.iter().map(|line| line.job.as_str()).collect(),
            conditions: lines.iter().filter_map(|line| line.condition.as_deref()).collect(),
            is_contained,
            runs_hooks: called.iter().any(|finding| calls_hooks(&finding.command)),
            homes: called.iter().filter_map(|check| home(contents, check)).collect(),
            last_lines: last_lines(contents, &called),
        };
        let does = place.steps(&called);
        // A workspace of Node has one lock file, at its top: one install there serves all of its packages.
        let is_of_top =
            |command: &str| package.is_none() && place.is_below_lock() && command == place.node_install();
        let has_installed = steps.iter().any(|step| step.directory.is_empty() && place.installs_node(step));
        for does in does {
            let directory = match &does {
                SetUp::Run(command) if is_of_top(command) && has_installed => continue,
                SetUp::Run(command) if is_of_top(command) || command.starts_with("rustup ") => String::new(),
                SetUp::Run(_) => below.to_owned(),
                // GitHub heeds `working-directory` only in steps that run a command.
                SetUp::Action { .. } | SetUp::CopiedAction { .. } => String::new(),
            };
            let is_before_checkout = is_contained && place.is_before_checkout(&does);
            let step = SetUpStep { does, is_before_checkout, directory };
            if let Some(known) = steps.iter_mut().find(|known| known.is_of_other_version(&step)) {
                known.take_newer(step);
            } else if !steps.iter().any(|known| known.stands_for(&step)) {
                steps.push(step);
            }
        }
    }
    // What sets a language up comes before what uses it.
    steps.sort_by_key(|step| matches!(step.does, SetUp::Run(_)));
    steps
}

/// Returns the command that installs what a check depends on, as far as the repository says it: its first words, as people type them.
pub fn install_of(repository: &Repository, finding: &Finding, package: Option<&str>) -> Option<String> {
    let directory = match (package, finding.directory.as_str()) {
        (Some(package), "") => package.to_owned(),
        (Some(package), below) => format!("{package}/{below}"),
        (None, below) => below.to_owned(),
    };
    let here = if directory.is_empty() { repository.clone() } else { repository.below(&directory) };
    let contents = CiContents::default();
    let place = SetUpPlace {
        here,
        repository,
        contents: &contents,
        directory,
        jobs: BTreeSet::new(),
        conditions: BTreeSet::new(),
        is_contained: false,
        runs_hooks: false,
        homes: BTreeSet::new(),
        last_lines: BTreeMap::new(),
    };
    let languages = place.languages(&[finding]);
    let commands = place.installs_of_files(&languages);
    let by_ruby = languages.contains("ruby").then(|| "bundle install".to_owned());
    let command = commands.into_iter().next().or(by_ruby)?;
    Some(command.split(" --").next().unwrap_or("").to_owned())
}

impl SetUpPlace<'_> {
    fn steps(&self, called: &[&Finding]) -> Vec<SetUp> {
        let languages = self.languages(called);
        let mut steps: Vec<SetUp> = LANGUAGES
            .iter()
            .filter(|(name, _)| languages.contains(name))
            .flat_map(|(_, set_up)| set_up(self))
            .collect();
        steps.extend(self.languages_of_jobs(&steps));
        steps.extend(actions_of_tools(self, called));
        let local = self.local_actions();
        steps.retain(|step| !self.is_in_local(&local, step));
        steps.extend(local.iter().cloned());
        let of_others = self.actions_of_others(called);
        steps.retain(|step| !self.is_set_up_by_others(step, &of_others));
        steps.extend(of_others);
        let of_ci = self.installs_of_ci(&languages);
        // Packages of the system and browsers come beside what a project depends on; any other line of the job, also a script of
        // its own, stands for the lock files.
        let is_of_step = |command: &str| {
            let mut lines = self.contents.commands.iter();
            let is_one = lines.any(|line| line.kind == LineKind::InstallOfStep && line.command == command);
            is_one && !self.is_own_set_up(command)
        };
        let is_all = !of_ci.iter().all(|command| is_beside_packages(command) || is_of_step(command));
        let of_files = if is_all { Vec::new() } else { self.installs_of_files(&languages) };
        // A package fetches its browsers when it is installed itself.
        let is_early = |command: &String| {
            !(is_of_step(command) && calls_packages(command)) && (is_all || !fetches_browsers(command))
        };
        let (early, late): (Vec<String>, Vec<String>) = of_ci.into_iter().partition(is_early);
        // What such a line calls itself comes before it: `task setup` needs the program.
        let is_left = |command: &String| !self.is_in_local(&local, &SetUp::Run(command.clone()));
        for command in early.into_iter().chain(of_files).chain(late).filter(is_left) {
            let program = up_to(&command, &[' ']);
            let is_lacking = LACKING_PROGRAMS.contains(&program) && !self.brought(&steps, program);
            steps.extend(self.install_of_program(program, &[]).filter(|_| is_lacking).map(SetUp::Run));
            let manager = self.action_of_manager(program).filter(|_| !self.brought(&steps, program));
            steps.extend(manager.filter(|manager| !self.is_in_local(&local, manager)));
            self.add_install(&mut steps, &command);
        }
        for command in targets_of_rust(called).chain(self.tools_of_actions(called)) {
            if !steps.iter().any(|step| matches!(step, SetUp::Run(known) if *known == command)) {
                steps.push(SetUp::Run(command));
            }
        }
        steps.extend(self.toolchains_of_commands(called, &steps).into_iter().map(SetUp::Run));
        steps.extend(self.list_of_pytest(called, &steps).map(SetUp::Run));
        // After all others, because a tool that one of them brings along is not installed again.
        let of_hooks = self.tools_of_hooks(called).map(|install| {
            let program = after_last(install.trim_end_matches("@latest"), &['/']);
            let version = self.version_of(program).unwrap_or_default();
            of_version(install, &version).unwrap_or_else(|| install.to_owned())
        });
        for install in self.tools(called, &steps).into_iter().chain(of_hooks.collect::<Vec<_>>()) {
            self.add_install(&mut steps, &install);
        }
        steps
    }

    /// Adds a command that installs something, and what it needs before it.
    fn add_install(&self, steps: &mut Vec<SetUp>, command: &str) {
        let calls_go = without_assignments(command).starts_with("go install ");
        // Without it, what `go install` makes is not on PATH.
        if calls_go && !steps.iter().any(|step| is_action(step, &GO)) {
            steps.extend(go(self));
        }
        steps.push(SetUp::Run(unbound(command)));
    }

    /// Returns the action that brings a manager of packages which a runner lacks.
    fn action_of_manager(&self, program: &str) -> Option<SetUp> {
        match program {
            "pnpm" => Some(self.pnpm()),
            "bun" => Some(bun(self)),
            "uv" => Some(uv(self)),
            _ => None,
        }
    }

    fn pnpm(&self) -> SetUp {
        let is_named =
            self.locked().text("package.json").is_some_and(|text| text.contains("\"packageManager\""));
        let version = self.of_ci(PNPM.name, "version").unwrap_or_else(|| "latest".to_owned());
        // The action fails where a version is given beside `packageManager`.
        action(&PNPM, if is_named { Vec::new() } else { vec![("version", version)] })
    }

    /// Returns what sets up the languages that the jobs with these commands have beside those of the tools: a task calls what it wants.
    fn languages_of_jobs(&self, known: &[SetUp]) -> Vec<SetUp> {
        let jobs = &self.jobs;
        let is_used = |name: &str| {
            self.contents
                .actions
                .iter()
                .any(|action| action.name == name && jobs.contains(action.job.as_str()))
        };
        let of_jobs = LANGUAGES_OF_ACTIONS.iter().filter(|(pinned, _)| is_used(pinned.name));
        let is_new = |step: &SetUp| !known.contains(step) && matches!(step, SetUp::Action { .. });
        of_jobs
            .filter(|(pinned, _)| !known.iter().any(|step| is_action(step, pinned)))
            .flat_map(|(_, set_up)| set_up(self))
            .filter(is_new)
            .collect()
    }

    /// Returns the repository's own actions that the jobs of the checks call: what they set up, no line says.
    fn local_actions(&self) -> Vec<SetUp> {
        let jobs = &self.jobs;
        let is_there = |path: &str| {
            let directory = path.trim_start_matches("./").trim_end_matches('/');
            ["action.yml", "action.yaml"]
                .iter()
                .any(|file| self.repository.has(&format!("{directory}/{file}")))
        };
        let meant = self.contents.local_actions.iter().filter(|action| jobs.contains(action.job.as_str()));
        // The job may have checked such an action out of another repository, which a job of ours does not.
        let steps = meant.filter(|action| self.directory.is_empty() && is_there(&action.name));
        steps
            .map(|action| SetUp::CopiedAction { uses: action.name.clone(), with: action.with.clone() })
            .collect()
    }

    /// Tells whether the repository's own actions do a step themselves: they set up a language, or install by the manager of it.
    fn is_in_local(&self, local: &[SetUp], step: &SetUp) -> bool {
        let text = |step: &SetUp| match step {
            SetUp::CopiedAction { uses, .. } => {
                let directory = uses.trim_start_matches("./").trim_end_matches('/');
                let files = ["action.yml", "action.yaml"].map(|file| format!("{directory}/{file}"));
                files.iter().find_map(|file| self.repository.text(file)).map(str::to_owned)
            }
            SetUp::Action { .. } | SetUp::Run(_) => None,
        };
        let installs = |text: &str, command: &str| {
            text.lines().any(|line| {
                let line = line.trim_start().trim_start_matches("- ").trim_start();
                is_same_install(line.strip_prefix("run:").unwrap_or(line).trim(), command)
            })
        };
        local.iter().filter_map(text).any(|text| match step {
            SetUp::Action { action, .. } => text.contains(&format!("uses: {}@", action.name)),
            SetUp::Run(command) => installs(&text, command),
            SetUp::CopiedAction { .. } => false,
        })
    }

    /// Returns the actions by which all jobs of a check set up what is not known here, such as an editor or a formatter. What only some
    /// of them have, the others do without.
    fn actions_of_others(&self, called: &[&Finding]) -> Vec<SetUp> {
        let is_known =
            |name: &str| KNOWN_ACTIONS.iter().any(|known| known.name == name) || OF_CRATES.contains(&name);
        let is_set_up = |action: &&CiAction| {
            is_of_set_up(&action.name)
                && action.is_whole
                && !is_known(&action.name)
                && !action.version.is_empty()
        };
        let known: Vec<&CiAction> = self.contents.actions.iter().filter(is_set_up).collect();
        let mut found: Vec<&CiAction> = Vec::new();
        for check in called.iter().filter(|_| self.directory.is_empty()) {
            let jobs = jobs(self.contents, &[check]);
            let is_of = |action: &CiAction, job: &str, name: &str| action.job == job && action.name == name;
            let is_everywhere =
                |name: &str| jobs.iter().all(|job| known.iter().any(|one| is_of(one, job, name)));
            for action in known.iter().filter(|action| jobs.contains(action.job.as_str())) {
                if is_everywhere(&action.name) && !found.iter().any(|other| other.name == action.name) {
                    found.push(action);
                }
            }
        }
        let copied = |action: &CiAction| SetUp::CopiedAction {
            uses: format!("{}@{}", action.name, action.version),
            with: action.inputs().cloned().collect(),
        };
        found.into_iter().map(copied).collect()
    }

    /// Tells whether a language that no job of the checks sets up by this action is set up by one of others: by the name of that.
    fn is_set_up_by_others(&self, step: &SetUp, of_others: &[SetUp]) -> bool {
        let SetUp::Action { action, .. } = step else { return false };
        let own = after_last(action.name, &['/']);
        // `setup-cached-uv` does what `setup-uv` does.
        let is_same = |other: &SetUp| {
            let SetUp::CopiedAction { uses, .. } = other else { return false };
            let mut others = after_last(up_to(uses, &['@']), &['/']).split('-');
            own.split('-').all(|word| others.by_ref().any(|other| other == word))
        };
        of_others.iter().any(is_same) && !self.calls_action(action.name)
    }

    /// Returns the jobs that alone make one of these checks. Others make what is made elsewhere as well, with an old toolchain for
    /// example, which no check of a loop is made with.
    fn jobs_of_one_check(&self, called: &[&Finding]) -> BTreeSet<&str> {
        let of_each = called.iter().map(|check| jobs(self.contents, &[check]));
        of_each.filter(|jobs| jobs.len() == 1).flatten().collect()
    }

    /// Returns what installs the tools and toolchains of Rust that an action installs in the jobs of these commands.
    fn tools_of_actions(&self, called: &[&Finding]) -> Vec<String> {
        let jobs = &self.jobs;
        let of_one_check = self.jobs_of_one_check(called);
        let mut found = Vec::new();
        for action in self.contents.actions.iter().filter(|action| jobs.contains(action.job.as_str())) {
            let input =
                |name: &str| action.with.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
            let words =
                |value: &str| value.split([',', '\n']).map(|word| word.trim().to_owned()).collect::<Vec<_>>();
            // An input may hold anything, and these words become part of a command of the workflow.
            let is_plain = |word: &String| {
                !word.is_empty()
                    && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            };
            match action.name.as_str() {
                name if OF_CRATES.contains(&name) => {
                    let tools = input("tool").into_iter().flat_map(words);
                    // The first one knows tools that are not crates as well, and this prefix is what tells them apart.
                    let is_of_any = name == "taiki-e/install-action";
                    let crates = tools.filter(|tool| !is_of_any || tool.starts_with("cargo-"));
                    let install = |tool: String| {
                        let (name, version) = tool.split_once('@').unwrap_or((&tool, ""));
                        let install = format!("cargo install {name} --locked");
                        is_plain(&name.to_owned()).then(|| of_version(&install, version).unwrap_or(install))
                    };
                    found.extend(crates.filter_map(install));
                }
                "dtolnay/rust-toolchain" if of_one_check.contains(action.job.as_str()) => {
                    let toolchain = input("toolchain").map(str::to_owned);
                    // Runners of GitHub come with `stable` and its usual components.
                    let other = toolchain.filter(|name| name != "stable" && is_plain(name));
                    found.extend(other.map(|name| self.install_of_toolchain(&name, called, &[])));
                }
                _ => {}
            }
        }
        if let Some(name) = self.only_toolchain() {
            let install = format!("rustup toolchain install {name} --profile minimal");
            if !found.iter().any(|command| command.starts_with(&install)) {
                found.push(self.install_of_toolchain(name, called, &["clippy", "rustfmt"]));
            }
            found.push(format!("rustup default {name}"));
        }
        found
    }

    /// Returns the toolchain of Rust that all jobs of the checks ask an action for, where a runner has another one.
    fn only_toolchain(&self) -> Option<&str> {
        if self.version_file(&["rust-toolchain.toml", "rust-toolchain"]).is_some() {
            return None;
        }
        let of_job = |job: &&str| {
            let mut actions = self.contents.actions.iter().filter(|action| action.job == **job);
            let action = actions.find(|action| action.name == "dtolnay/rust-toolchain")?;
            toolchain_of(action)
        };
        let mut names = self.jobs.iter().map(of_job);
        let first = names.next()??;
        (first != "stable" && names.all(|name| name == Some(first))).then_some(first)
    }

    /// Returns what installs a toolchain of Rust with the components that jobs have in it, and that commands need which name it.
    fn install_of_toolchain(&self, name: &str, called: &[&Finding], usual: &[&str]) -> String {
        let is_of_it = |action: &&CiAction| {
            action.name == "dtolnay/rust-toolchain"
                && self.jobs.contains(action.job.as_str())
                && toolchain_of(action) == Some(name)
        };
        let of_jobs = self.contents.actions.iter().filter(is_of_it).flat_map(|action| &action.with);
        let of_jobs = of_jobs.filter(|(key, _)| key == "components");
        let of_jobs = of_jobs.flat_map(|(_, value)| value.split([',', ' ', '\n']));
        let of_commands = called.iter().filter_map(|check| named_by(&words(&check.command)));
        let of_commands = of_commands.filter(|(of_command, _)| of_command == name);
        let of_commands = of_commands.filter_map(|(_, subcommand)| component(&subcommand));
        let mut components: Vec<&str> = Vec::new();
        for word in usual.iter().copied().chain(of_jobs).chain(of_commands) {
            // An input may hold anything, and these words become part of a command of the workflow.
            let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            if is_plain && !word.is_empty() && !components.contains(&word) {
                components.push(word);
            }
        }
        let components = components.iter().flat_map(|word| [" --component ", word]).collect::<String>();
        format!("rustup toolchain install {name} --profile minimal{components}")
    }

    /// Returns what installs the toolchains of Rust that commands name and that nothing so far installs.
    fn toolchains_of_commands(&self, called: &[&Finding], steps: &[SetUp]) -> Vec<String> {
        let is_installed = |name: &str| {
            let installs = |command: &str| {
                command.starts_with("rustup ") && command.split_whitespace().any(|word| word == name)
            };
            steps.iter().any(|step| matches!(step, SetUp::Run(command) if installs(command)))
        };
        let names: BTreeSet<String> = called
            .iter()
            .filter_map(|check| named_by(&words(&check.command)))
            .map(|(name, _)| name)
            .chain(called.iter().filter_map(|check| toolchain_of_command(&check.command)))
            .collect();
        let lacking = names.iter().filter(|name| *name != "stable" && !is_installed(name));
        lacking.map(|name| self.install_of_toolchain(name, called, &[])).collect()
    }

    /// Returns what installs the programs that hooks of pre-commit take from the machine: most hooks bring their own.
    fn tools_of_hooks(&self, called: &[&Finding]) -> impl Iterator<Item = &'static str> {
        let calls_hooks = called.iter().any(|finding| finding.command.starts_with("pre-commit "));
        let hooks =
            self.here.text(".pre-commit-config.yaml").filter(|_| calls_hooks).unwrap_or("").to_owned();
        TOOLS_OF_HOOKS
            .into_iter()
            .filter(move |(hook, _)| hooks.contains(&format!("id: {hook}")))
            .map(|(_, install)| install)
    }

    /// Returns the languages of the tools that are called. A task may call whatever has a manifest there.
    fn languages(&self, called: &[&Finding]) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        for finding in called {
            let tool = recognise_line(&finding.command).map(|found| found.tool);
            let language = tool
                .map(|tool| tool.ecosystem.as_str())
                // No language belongs to these files, so only the manifests say what their tools may need.
                .filter(|name| !matches!(*name, "any" | "yaml" | "documents" | "shell"));
            match language.and_then(|name| TOOLS.ecosystems.iter().find(|known| known.name == name)) {
                Some(known) => drop(found.insert(known.name.as_str())),
                None => found.extend(self.by_manifests()),
            }
            let hooks = self.here.text(".pre-commit-config.yaml").unwrap_or("");
            // These hooks call Terraform itself, which pre-commit does not install for them.
            if finding.command.starts_with("pre-commit ") && hooks.contains("id: terraform_") {
                found.insert("terraform");
            }
            // It is a program of Node whatever the tool behind it looks at, which may be Markdown or YAML.
            if finding.command.starts_with("npx ") {
                found.insert("node");
            }
        }
        found
    }

    fn by_manifests(&self) -> impl Iterator<Item = &'static str> {
        let has =
            |ecosystem: &&crate::tools::Ecosystem| ecosystem.manifests.iter().any(|file| self.here.has(file));
        TOOLS
            .ecosystems
            .iter()
            .filter(has)
            .map(|ecosystem| ecosystem.name.as_str())
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Returns the lines by which the jobs that run these commands prepare for them.
    fn installs_of_ci(&self, languages: &BTreeSet<&'static str>) -> Vec<String> {
        let commands = &self.contents.commands;
        let jobs = &self.jobs;
        let first =
            commands.iter().find(|command| is_install(&command.command)).map(|command| command.job.as_str());
        let hooks = self.contents.hooks.iter().filter(|_| self.runs_hooks).map(|line| line.job.as_str());
        let jobs: BTreeSet<&str> = jobs.iter().copied().chain(hooks).collect();
        let is_of_others = jobs.is_empty();
        let jobs = if is_of_others { first.into_iter().collect() } else { jobs };
        let mut found: Vec<String> = Vec::new();
        for (at, command) in
            commands.iter().enumerate().filter(|(_, command)| jobs.contains(command.job.as_str()))
        {
            // What stands behind the last check of a job is for something else.
            let is_early = self.last_lines.get(command.job.as_str()).is_none_or(|last| at <= *last);
            let is_here = command.directory == self.directory && is_early && self.is_meant(command);
            let same = found.iter_mut().find(|known| is_same_install(known, &command.command));
            if let Some(known) = same.filter(|_| is_here) {
                // One of them holds to the lock file.
                if is_frozen(&command.command) {
                    known.clone_from(&command.command);
                }
                continue;
            }
            let is_new = !found.contains(&command.command);
            let is_for_all = made_usual(&command.command).is_none()
                || jobs.iter().all(|job| self.calls(job, &command.command));
            let is_of_step = command.kind == LineKind::InstallOfStep;
            let is_of_variant = is_of_step && !is_of_others && !self.homes.contains(command.job.as_str());
            if is_of_variant {
                continue;
            }
            let installs = is_of_step
                || is_install(&command.command) && !installs_archive(&command.command)
                || self.is_own_set_up(&command.command);
            if is_here && is_new && is_for_all && installs {
                let is_exact = |command: &str| command.starts_with("uv sync");
                // It removes what it does not name itself: what another job needs.
                let keeps = is_exact(&command.command) && found.iter().any(|known| is_exact(known));
                found.push(format!("{}{}", command.command, if keeps { " --inexact" } else { "" }));
            }
        }
        // What another job needs may be no more than a tool of its own.
        if is_of_others && !self.installs_of_files(languages).is_empty() {
            found.retain(|command| is_of_system(command));
        }
        let is_of_language = |command: &String| {
            language_of_install(command).is_none_or(|language| languages.contains(language))
        };
        found.retain(|command| !is_of_others || is_of_language(command));
        // Of one package, the version that is named is the one that another line wants as well.
        let pinned = found.clone();
        found.retain(|command| !pinned.iter().any(|other| other.starts_with(&format!("{command}=="))));
        // The list of packages alone installs nothing.
        let has_packages = found.iter().any(|command| installs_of_system(command));
        if !found.iter().any(|command| adds_source(command)) {
            for command in &mut found {
                *command = without_pinned_packages(command);
            }
        }
        found.retain(|command| has_packages || !is_of_system(command));
        found
    }

    /// Tells whether a line prepares for the jobs that a loop takes the place of. What is for some jobs of a matrix is for those checks
    /// that only these make; without `sudo`, packages of the system are for the container that has them, and its root.
    fn is_meant(&self, line: &CiCommand) -> bool {
        let is_of_checks =
            line.condition.as_deref().is_none_or(|condition| self.conditions.contains(condition));
        is_of_checks && (self.is_contained || !is_of_root(&line.command))
    }

    /// Tells whether the jobs of the checks do this before they check the repository out.
    fn is_before_checkout(&self, does: &SetUp) -> bool {
        let SetUp::Run(command) = does else { return false };
        let is_meant = |line: &&CiCommand| line.command == *command && self.jobs.contains(line.job.as_str());
        is_of_system(command)
            && self.contents.commands.iter().find(is_meant).is_some_and(|line| line.is_before_checkout)
    }

    /// Tells whether a job has this line.
    fn calls(&self, job: &str, command: &str) -> bool {
        self.contents.commands.iter().any(|other| other.job == job && other.command == command)
    }

    /// Tells whether a command is a script of the repository that makes the machine ready, by its name.
    fn is_own_set_up(&self, command: &str) -> bool {
        let path = command.strip_prefix("bash ").unwrap_or(command);
        let path = path.strip_prefix("./").unwrap_or(path);
        let stem = after_last(path, &['/']);
        let says = |word: &str| {
            matches!(
                word,
                "install" | "setup" | "bootstrap" | "deps" | "dependencies" | "requirements" | "packages"
            )
        };
        let is_script = self.here.has(path) && stem.split(['-', '_', '.']).any(says);
        is_script || command == "make" && self.installs_by_make()
    }

    /// Tells whether all that make does where no task is named is to install something.
    fn installs_by_make(&self) -> bool {
        let Some(text) = self.here.first(&MAKEFILES).and_then(|file| self.here.text(file)) else {
            return false;
        };
        let goal = first_recipe(text);
        let all = recipes(text);
        let body =
            all.iter().find(|recipe| Some(recipe.name) == goal.as_deref()).map_or("", |recipe| &recipe.body);
        let mut lines = body.lines().map(|line| line.trim_start_matches(['@', '-', ' '])).peekable();
        lines.peek().is_some() && lines.all(is_install)
    }

    /// Returns what the lock files say how it is installed.
    fn installs_of_files(&self, languages: &BTreeSet<&'static str>) -> Vec<String> {
        let has = |file: &str| self.here.has(file);
        let mut found: Vec<String> = Vec::new();
        if languages.contains("python") {
            found.extend(self.python_installs());
        }
        if languages.contains("node") && self.has_packages_of_node() {
            found.push(self.node_install().to_owned());
        }
        if languages.contains("php") && has("composer.json") {
            found.push("composer install --no-interaction".to_owned());
        }
        if languages.contains("elixir") {
            found.push("mix deps.get".to_owned());
        }
        // A new machine has no index of packages for cabal; Stack takes the snapshot that its file names.
        if languages.contains("haskell") && (has("cabal.project") || !has("stack.yaml")) {
            found.push("cabal update".to_owned());
        }
        if languages.contains("dart") {
            found.push(if self.is_of_flutter() { "flutter pub get" } else { "dart pub get" }.to_owned());
        }
        if languages.contains("ocaml") {
            found.push("opam install . --deps-only --with-test --yes".to_owned());
        }
        if languages.contains("terraform") {
            // Checks look at no state, and a pull request has no credentials for a backend.
            found.push("terraform init -backend=false".to_owned());
        }
        found
    }

    /// Tells whether there is something to install for Node: what a package depends on, or its own scripts around that.
    fn has_packages_of_node(&self) -> bool {
        let says = ["ependencies\"", "\"workspaces\"", "\"prepare\"", "\"postinstall\"", "\"preinstall\""];
        let is_locked = || self.locked().first(&LOCKS).is_some();
        self.here
            .text("package.json")
            .is_some_and(|text| is_locked() || says.iter().any(|sign| text.contains(sign)))
    }

    /// Returns the place whose lock file says what is installed for Node: this one, or the top, of whose workspace it is a part.
    fn locked(&self) -> &Repository {
        if self.is_below_lock() { self.repository } else { &self.here }
    }

    fn is_below_lock(&self) -> bool {
        let has_lock = |place: &Repository| place.first(&LOCKS).is_some();
        !self.directory.is_empty() && !has_lock(&self.here) && has_lock(self.repository)
    }

    fn manager(&self) -> &'static str {
        package_manager(self.locked())
    }

    /// Tells whether a step installs what packages of Node depend on.
    fn installs_node(&self, step: &SetUpStep) -> bool {
        let manager = self.manager();
        matches!(&step.does, SetUp::Run(command) if is_install(command) && command.split(' ').next() == Some(manager))
    }

    fn node_install(&self) -> &'static str {
        let has_lock =
            ["package-lock.json", "npm-shrinkwrap.json"].iter().any(|file| self.locked().has(file));
        match (self.manager(), has_lock) {
            ("pnpm", _) => "pnpm install --frozen-lockfile",
            // Later versions of Yarn call the option of Yarn 1 by this name.
            ("yarn", _) if self.is_berry() => "yarn install --immutable",
            ("yarn", _) => "yarn install --frozen-lockfile",
            ("bun", _) => "bun install --frozen-lockfile",
            // `npm ci` fails where there is no lock file.
            (_, true) => "npm ci",
            (_, false) => "npm install",
        }
    }

    /// Tells whether a package of Dart needs Flutter, or one that its workflows check does.
    fn is_of_flutter(&self) -> bool {
        let of_package = self.here.text("pubspec.yaml");
        of_package.is_some_and(|text| text.lines().any(|line| line.trim() == "sdk: flutter"))
    }

    fn is_berry(&self) -> bool {
        // Yarn 1 reads `.yarnrc`; this name came with the versions after it.
        self.locked().has(".yarnrc.yml")
    }

    fn python_installs(&self) -> Vec<String> {
        let text = |file: &str| self.here.text(file).unwrap_or("");
        let project = text("pyproject.toml");
        let extra = ["test", "tests", "testing", "dev"].into_iter().find(|name| {
            project.split("[project.optional-dependencies]").nth(1).is_some_and(|rest| {
                rest.split("\n[").next().is_some_and(|table| {
                    table.lines().any(|line| {
                        line.trim_start()
                            .strip_prefix(name)
                            .is_some_and(|rest| rest.trim_start().starts_with('='))
                    })
                })
            })
        });
        let group = ["test", "tests", "dev"].into_iter().find(|name| {
            project.split("[dependency-groups]").nth(1).is_some_and(|rest| {
                rest.lines().any(|line| {
                    line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
                })
            })
        });
        let lists = [
            "requirements.txt",
            "requirements-dev.txt",
            "requirements-test.txt",
            "dev-requirements.txt",
            "test-requirements.txt",
            "requirements_dev.txt",
        ];
        // A lock file covers what the lists below could add, in versions that were resolved together.
        match self.here.first(&["uv.lock", "poetry.lock", "pdm.lock"]) {
            Some("uv.lock") => return vec!["uv sync".to_owned()],
            Some("poetry.lock") => return vec!["poetry install".to_owned()],
            Some(_) => return vec!["pdm install".to_owned()],
            None => {}
        }
        let mut found: Vec<String> = lists
            .iter()
            .filter(|file| self.here.has(file))
            .map(|file| format!("python -m pip install -r {file}"))
            .collect();
        let is_package = project.contains("[build-system]") || self.here.has("setup.py");
        // Editable, because tests of an installed copy would not see what a fix has changed.
        found.extend(match (is_package, extra) {
            (true, Some(extra)) => Some(format!("python -m pip install -e '.[{extra}]'")),
            (true, None) => Some("python -m pip install -e .".to_owned()),
            (false, _) => None,
        });
        found.extend(group.map(|group| format!("python -m pip install --group {group}")));
        found
    }

    /// Tells whether one of these steps installs a program. Who calls it needs it already.
    fn brought(&self, steps: &[SetUp], program: &str) -> bool {
        let names = |step: &SetUp| matches!(step, SetUp::Run(command) if command.contains(program) && command.split(' ').next() != Some(program));
        // A list of dependencies or a program of its own, `npm ci`, says itself what it is.
        let is_own = |step: &SetUp| matches!(step, SetUp::Run(command) if command.split(' ').next() == Some(program) && !LACKING_PROGRAMS.contains(&program));
        let is_any = |step: &SetUp| {
            names(step) || is_own(step) || brings(step, program) || self.is_dependency(step, program)
        };
        steps.iter().any(is_any)
    }

    /// Tells whether a step installs what a project depends on in Python, and a tool is declared there.
    fn is_dependency(&self, step: &SetUp, program: &str) -> bool {
        let SetUp::Run(command) = step else { return false };
        let is_of_project = ["requirements", "-e ", "--group"].iter().any(|sign| command.contains(sign));
        let is_tool = matches!(program, "pytest" | "mypy" | "ruff" | "black" | "flake8");
        let is_interpreter = matches!(program, "python" | "python3");
        is_of_project
            && (is_interpreter
                || is_tool && (declared(&self.here, program).is_some() || self.lists(command, program)))
    }

    /// Tells whether each job of a check installs packages of Python in a line of its own that a step has: the tool is among them.
    fn installs_python(&self, check: &Finding, steps: &[SetUp]) -> bool {
        let is_copied = |line: &CiCommand| {
            ["pip install ", "uv sync", "poetry install", "pdm install"]
                .iter()
                .any(|way| line.command.contains(way))
                && steps.iter().any(|step| matches!(step, SetUp::Run(known) if *known == line.command))
        };
        let jobs = jobs(self.contents, &[check]);
        let installs =
            |job: &&str| self.contents.commands.iter().any(|line| line.job == **job && is_copied(line));
        !jobs.is_empty() && jobs.iter().all(installs)
    }

    /// Tells whether a list of packages that a command installs has one.
    fn lists(&self, command: &str, package: &str) -> bool {
        let is_list = |word: &&str| matches!(extension(word), Some("txt" | "in"));
        let texts = command
            .split(' ')
            .filter(is_list)
            .filter_map(|path| self.here.text(path.trim_start_matches("./")));
        let is_package = |line: &str| {
            line.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).next() == Some(package)
        };
        texts.flat_map(str::lines).any(|line| is_package(line.trim_start()))
    }

    /// Returns what installs the list of dependencies that has pytest, where nothing so far does.
    fn list_of_pytest(&self, called: &[&Finding], steps: &[SetUp]) -> Option<String> {
        let is_called = called.iter().any(|finding| finding.command == "python -m pytest");
        let (file, _) = declared(&self.here, "pytest").filter(|_| is_called)?;
        let is_installed =
            steps.iter().any(|step| matches!(step, SetUp::Run(command) if command.contains(file.as_str())));
        // Only a list can be handed to `-r`; a manifest is installed as the package that it describes.
        (extension(&file) == Some("txt") && !is_installed).then(|| format!("python -m pip install -r {file}"))
    }

    /// Returns what installs the tools that are called by themselves and that nothing so far brings.
    fn tools(&self, called: &[&Finding], steps: &[SetUp]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for finding in called {
            let Some(words) = shlex::split(without_assignments(&finding.command)) else { continue };
            let Some(program) = words.first() else { continue };
            let (program, install) = match program.as_str() {
                "cargo" => match self.subcommand_of_cargo(&words) {
                    Some(name) => (name.clone(), Some(format!("cargo install {name} --locked"))),
                    None => continue,
                },
                "npx" => match self.missing_of_node(&words) {
                    Some(name) => (name.to_owned(), self.install_of_tool(name)),
                    None => continue,
                },
                "python" | "python3" if words.get(1).is_some_and(|word| word == "-m") => {
                    (words.get(2).cloned().unwrap_or_default(), self.install_of_program(program, &words))
                }
                _ => (program.clone(), self.install_of_program(program, &words)),
            };
            let of_task = self.tools_of_task(finding);
            let of_others = install.map(|install| (program, install)).into_iter().chain(of_task);
            let is_foreign =
                |(program, install): &(String, String)| !self.makes(install) || self.comes_by_action(program);
            for (program, install) in of_others.filter(is_foreign) {
                let is_of_python = install.starts_with("pip install ");
                let is_brought =
                    self.brought(steps, &program) || is_of_python && self.installs_python(finding, steps);
                if !is_brought && !found.contains(&install) {
                    found.push(install);
                }
            }
        }
        found
    }

    /// Tells whether the workflows call a program by an action of it, which brings a release of it along.
    fn comes_by_action(&self, program: &str) -> bool {
        let is_meant = |tool: &&Tool| tool.programs().iter().any(|known| known == program);
        let calls = |name: &String| self.contents.actions.iter().any(|action| action.name == *name);
        TOOLS.tools.iter().filter(is_meant).any(|tool| tool.actions.keys().any(calls))
    }

    /// Tells whether what a command installs is what the repository itself makes: a release of that is not what is checked.
    fn makes(&self, install: &str) -> bool {
        let Some(last) = install.split(' ').rfind(|word| !word.starts_with('-')) else { return false };
        let name = last.split(['@', '=']).next().unwrap_or(last);
        let is_module = || {
            let module = self
                .repository
                .text("go.mod")
                .and_then(|text| text.lines().find_map(|line| line.strip_prefix("module ")).map(str::trim));
            let behind = module.and_then(|module| name.strip_prefix(module));
            behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('/'))
        };
        let is_named = |file: &str, sign: &str| {
            let is_name = |line: &str| {
                let value =
                    line.trim().strip_prefix(sign).map(|rest| rest.trim_start_matches([' ', '=', ':']));
                value.is_some_and(|value| value.trim_matches([' ', ',', '"', '\'']) == name)
            };
            self.repository.text(file).is_some_and(|text| text.lines().any(is_name))
        };
        match first_word(install) {
            "go" => is_module(),
            "cargo" => is_named("Cargo.toml", "name"),
            "npm" => is_named("package.json", "\"name\""),
            _ => is_named("pyproject.toml", "name"),
        }
    }

    /// Returns the tools that a task calls by themselves, each with what installs it. Those of Python and Node come with the packages
    /// of a project, and a task may install what it needs.
    fn tools_of_task(&self, finding: &Finding) -> Vec<(String, String)> {
        let runner = up_to(&finding.command, &[' ']);
        if finding.evidence.task.is_none() || !matches!(runner, "make" | "just" | "task" | "mise") {
            return Vec::new();
        }
        let lines = lines_of_task(&self.here, &finding.evidence.file, finding.evidence.line);
        let command = |line: &str| {
            line.trim()
                .trim_start_matches(['-', '@', ' ', '"', '\''])
                .trim_end_matches(['"', '\''])
                .to_owned()
        };
        let installs = |program: &str| lines.contains("install") && lines.contains(program);
        let called = lines.lines().flat_map(|line| line.split("&&")).filter_map(|line| {
            let words = shlex::split(&command(line))?;
            let found = recognise(&words)?;
            let is_of_packages =
                matches!(found.tool.ecosystem.as_str(), "python" | "node" | "php" | "ruby" | "documents");
            let program = words.into_iter().next()?;
            let install = self.install_of_version(found.tool)?;
            (!is_of_packages && !found.is_started_by_others() && !installs(&program))
                .then_some((program, install))
        });
        called.collect()
    }

    /// Returns what installs a tool of the table.
    fn install_of_tool(&self, program: &str) -> Option<String> {
        let is_meant = |tool: &&Tool| tool.programs().iter().any(|known| known == program);
        self.install_of_version(TOOLS.tools.iter().find(is_meant)?)
    }

    /// Returns what installs a tool in the version that a workflow names for the action of it, or of what sets it up, or else the newest.
    fn install_of_version(&self, tool: &Tool) -> Option<String> {
        let install = tool.install.as_deref()?;
        // Of two programs that do the same, `prek` and `pre-commit`, the one that is installed has this version.
        let is_installed = |name: &&String| install.contains(name.as_str());
        let installed: Vec<&String> = tool.programs().iter().filter(is_installed).collect();
        let is_its_own = |action: &&String| installed.iter().any(|name| action.contains(name.as_str()));
        let of_action =
            tool.actions.keys().filter(is_its_own).find_map(|action| self.of_ci(action, "version"));
        let of_tag = || installed.iter().find_map(|name| self.version_of_tag(name));
        let version =
            of_action.or_else(|| installed.iter().find_map(|name| self.version_of(name))).or_else(of_tag);
        // An input may hold anything, and this becomes part of a command of the workflow.
        let is_plain = |version: &String| {
            version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let version = version.filter(is_plain).unwrap_or_default();
        let known = tool.install_version.iter().find(|(begin, _)| version.starts_with(begin.as_str()));
        let of_table = known.map(|(_, install)| install.replace("{version}", &version));
        let of_version = of_table.or_else(|| of_version(install, &version));
        Some(of_version.unwrap_or_else(|| install.to_owned()))
    }

    /// Returns the version of a tool whose own action has the same one: by its tag, or by the comment behind its commit.
    fn version_of_tag(&self, program: &str) -> Option<String> {
        let (name, _) = OF_TAGS.iter().find(|(_, known)| *known == program)?;
        let call = self.near_actions().chain(&self.contents.actions).find(|action| action.name == *name)?;
        let of_pin = call.pin.as_deref().and_then(|pin| pin.split_once("# ")).map(|(_, comment)| comment);
        Some(of_pin.unwrap_or(&call.version).to_owned())
    }

    /// Returns the version of a tool that an action of the workflows is given: `version` of one that sets it up by its name,
    /// `tflint-version` of any other.
    fn version_of(&self, program: &str) -> Option<String> {
        let sets_up = |action: &CiAction| {
            let name = after_last(&action.name, &['/']);
            is_of_set_up(name) && name.split_once("setup-").is_some_and(|(_, behind)| behind == program)
        };
        let under = program.replace('-', "_");
        let named = [format!("{program}-version"), format!("{under}_version"), format!("{program}_version")];
        let of_action = |action: &CiAction| {
            let mut inputs = action.inputs().chain(&action.of_variables);
            let is_meant = |name: &String| {
                sets_up(action) && name == "version"
                    || named.iter().any(|known| known.eq_ignore_ascii_case(name))
            };
            inputs.find(|(name, _)| is_meant(name)).map(|(_, value)| value.clone())
        };
        self.near_actions().chain(&self.contents.actions).find_map(of_action)
    }

    /// Returns the actions of the jobs of these checks.
    fn near_actions(&self) -> impl Iterator<Item = &CiAction> {
        self.contents.actions.iter().filter(|action| self.jobs.contains(action.job.as_str()))
    }

    /// Tells whether a job of these checks sets a driver up that measures what tests reach, for a check that no other job makes without.
    fn needs_driver(&self) -> bool {
        let without = |call: &&CiAction| call.inputs().any(|one| one.0 == "coverage" && one.1 == "none");
        let (without, with): (Vec<&CiAction>, Vec<&CiAction>) = self.calls_of(PHP.name).partition(without);
        let lines = &self.contents.commands;
        let is_made_without = |line: &CiCommand| {
            let mut others = lines.iter().filter(|other| words(&other.command) == words(&line.command));
            others.any(|other| without.iter().any(|call| call.job == other.job))
        };
        let last = |call: &&CiAction| lines.get(*self.last_lines.get(call.job.as_str())?);
        with.iter().filter_map(last).any(|line| !is_made_without(line))
    }

    /// Returns those by which they call one action.
    fn calls_of(&self, name: &str) -> impl Iterator<Item = &CiAction> {
        self.near_actions().filter(move |action| action.name == name)
    }

    /// Returns what installs the program that a command begins with.
    fn install_of_program(&self, program: &str, words: &[String]) -> Option<String> {
        let of_caller =
            CALLERS.iter().find(|(name, _)| *name == program).map(|(_, install)| (*install).to_owned());
        let is_module = || {
            words.get(1).is_some_and(|word| word == "-m")
                && recognise(words).is_some_and(|found| found.tool.name == "pytest")
        };
        of_caller
            .or_else(|| self.install_of_tool(program))
            .or_else(|| is_module().then(|| "python -m pip install pytest".to_owned()))
    }

    /// Returns the crate of a subcommand that cargo does not have by itself.
    fn subcommand_of_cargo(&self, words: &[String]) -> Option<String> {
        // A toolchain, `+nightly`, and options of cargo itself may stand before the subcommand.
        let name = words.iter().skip(1).find(|word| !word.starts_with(['+', '-']))?;
        let aliases = self.here.text(".cargo/config.toml").unwrap_or("");
        // An alias is not a crate: installing one by its name would fetch whatever a stranger has published under it.
        let is_alias = aliases.lines().any(|line| {
            let rest = line.trim_start().strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        (is_plain && !is_alias && !OF_CARGO.contains(&name.as_str())).then(|| format!("cargo-{name}"))
    }

    /// Returns the tool that `npx --no-install` calls, where the package here does not depend on it.
    fn missing_of_node<'w>(&self, words: &'w [String]) -> Option<&'w str> {
        let name = words.iter().skip(1).find(|word| !word.starts_with('-'))?;
        // Node finds the packages of a workspace's top from every directory below it.
        let manifests = [&self.here, self.repository].map(|place| place.text("package.json").unwrap_or(""));
        let is_known = manifests.iter().any(|text| text.contains(&format!("\"{name}")));
        (!is_known).then_some(name.as_str())
    }

    /// Returns the value that the repository's own workflows give an input of an action, if it is not an expression: of the jobs that
    /// make the checks, or else of any. Of several versions it is the one with which most checks are made, else the newest.
    fn of_ci(&self, action: &str, input: &str) -> Option<String> {
        let is_meant = |known: &&CiAction| known.name == action;
        let any = || self.contents.actions.iter().filter(is_meant);
        let near = || self.calls_of(action);
        self.usual_version(action, input)
            .or_else(|| newest_of(near().flat_map(CiAction::inputs), input))
            // What a variable of a job says, it says for what that does.
            .or_else(|| newest_of(near().flat_map(|known| &known.of_variables), input))
            .or_else(|| newest_of(any().flat_map(CiAction::inputs), input))
    }

    /// Returns the value that the jobs of the checks give an input of an action, as [`of_ci`](Self::of_ci) does.
    fn of_near_ci(&self, action: &str, input: &str) -> Option<String> {
        self.usual_version(action, input)
            .or_else(|| newest_of(self.calls_of(action).flat_map(CiAction::inputs), input))
    }

    /// Returns the version with which the CI makes most checks, where a job of these checks has it.
    fn usual_version(&self, action: &str, input: &str) -> Option<String> {
        let mut usual = self.contents.usual_versions.iter();
        let version = &usual.find(|usual| usual.action == action && usual.input == input)?.version;
        let has_it = |call: &CiAction| {
            let mut inputs = call.inputs().chain(&call.of_variables);
            inputs.any(|(key, value)| key == input && value.trim() == version)
        };
        self.calls_of(action).any(has_it).then(|| version.clone())
    }

    /// Tells whether a job of these checks calls an action.
    fn calls_action(&self, name: &str) -> bool {
        self.calls_of(name).next().is_some()
    }

    /// Returns the version that the repository's own workflows give an action whose newest release is the default: beside a channel
    /// that moves, a version that is named is the oldest that the repository takes.
    fn released_of_ci(&self, action: &str, input: &str) -> Option<String> {
        let has_channel = |known: &CiAction| known.name == action && known.has_channel(input);
        // A channel alone is what everything is made with.
        let is_one = |version: &String| version == "stable" || is_channel(version);
        self.of_ci(action, input)
            .filter(|version| is_one(version) || !self.contents.actions.iter().any(has_channel))
    }

    /// Returns all values that the repository's own workflows give an input of an action, a line each: a job may set up several.
    fn all_of_ci(&self, action: &str, input: &str) -> Option<String> {
        let of_action = self.contents.actions.iter().filter(|known| known.name == action);
        let values = of_action.flat_map(|known| &known.with).filter(|(key, _)| key == input);
        let lines: BTreeSet<&str> = values
            .flat_map(|(_, value)| value.lines())
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        (!lines.is_empty()).then(|| lines.into_iter().collect::<Vec<_>>().join("\n"))
    }

    /// Returns the first list of versions that a job of these checks gives an action, a line each; nothing where none gives more than one.
    fn list_of_ci(&self, action: &str, input: &str) -> Option<String> {
        let values = self.calls_of(action).flat_map(|known| &known.with);
        let lists = values
            .filter(|(key, _)| key == input)
            .map(|(_, value)| lines_of_value(value).collect::<Vec<_>>());
        lists.into_iter().find(|lines| lines.len() > 1).map(|lines| lines.join("\n"))
    }

    /// Returns the file of a version that the repository's own workflows give an action.
    fn version_file_of_ci(&self, action: &str, input: &'static str) -> Option<(&'static str, String)> {
        let file = self.of_ci(action, input)?;
        // A job can name a file that an earlier step of its own makes; a job of ours would fail there.
        self.repository.has(file.trim_start_matches("./")).then_some((input, file))
    }

    /// Returns the first of these files that is there, as a path from the top.
    fn version_file(&self, files: &[&str]) -> Option<String> {
        let below = |file: &str| {
            if self.directory.is_empty() { file.to_owned() } else { format!("{}/{file}", self.directory) }
        };
        // A package without such a file has the version that holds for the whole repository.
        self.here.first(files).map(below).or_else(|| self.repository.first(files).map(str::to_owned))
    }
}

/// Returns an install of the newest release as one of a version, `pipx install ruff==0.4.1`; nothing where the text is not all of a
/// version, or the way to say one is not known.
fn of_version(install: &str, version: &str) -> Option<String> {
    let number = version.strip_prefix('v').unwrap_or(version);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if number.split('.').count() != 3 || !number.split('.').all(is_number) {
        return None;
    }
    if let Some(name) = install.strip_prefix("cargo install ").and_then(|rest| rest.strip_suffix(" --locked"))
    {
        return Some(format!("cargo install {name}@{number} --locked"));
    }
    let module = install.strip_suffix("@latest").filter(|install| install.starts_with("go install "));
    if let Some(module) = module {
        return Some(format!("{module}@v{number}"));
    }
    let is_of_packages = ["pipx install ", "pip install "].iter().any(|begin| install.starts_with(begin));
    // A package that only brings a program of others along has numbers of its own.
    let is_wrapped = install.ends_with("-py") || install.ends_with("rust-just");
    (is_of_packages && !is_wrapped).then(|| format!("{install}=={number}"))
}

/// Returns the lines of an input that say something.
fn lines_of_value(value: &str) -> impl Iterator<Item = &str> {
    value.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// Returns the newest of the versions that inputs of this name have.
fn newest_of<'i>(inputs: impl Iterator<Item = &'i (String, String)>, name: &str) -> Option<String> {
    // An input may list several versions, a line each; the checks are made once, with the first.
    let first_line = |value: &'i String| lines_of_value(value).next().unwrap_or("");
    let values: Vec<&str> =
        inputs.filter(|(key, _)| key == name).map(|(_, value)| first_line(value)).collect();
    newest(&values).map(str::to_owned)
}

/// Returns a command that installs a module of Go, which chooses the Go that it needs by itself: `actions/setup-go` and the images
/// of Go bind every call to the version that the repository is built with, and a newer tool refuses that.
pub(super) fn unbound(command: &str) -> String {
    let is_module = command.starts_with("go install ") && command.contains('@');
    if is_module { format!("GOTOOLCHAIN=auto {command}") } else { command.to_owned() }
}

/// Actions that install crates, which a line says as well.
const OF_CRATES: [&str; 2] = ["taiki-e/install-action", "taiki-e/cache-cargo-install-action"];

/// Actions of which the versions are those of their programs.
const OF_TAGS: [(&str, &str); 1] = [("crate-ci/typos", "typos")];

/// The files by which the packages of Node are locked.
const LOCKS: [&str; 6] =
    ["pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "package-lock.json", "npm-shrinkwrap.json"];

/// What cargo does by itself, and what comes with the toolchain of a runner.
const OF_CARGO: [&str; 17] = [
    "bench", "build", "check", "clean", "clippy", "doc", "fetch", "fix", "fmt", "metadata", "miri",
    "package", "run", "test", "tree", "update", "vendor",
];

/// Programs that start others or are installed in a way of their own, and what installs them on a runner.
const CALLERS: [(&str, &str); 9] = [
    ("mise", "npm install --global @jdxcode/mise"),
    ("uv", "pipx install uv"),
    ("poetry", "pipx install poetry"),
    ("pdm", "pipx install pdm"),
    ("hatch", "pipx install hatch"),
    ("pipenv", "pipx install pipenv"),
    ("poe", "pipx install poethepoet"),
    // These two import what the project depends on, and pipx would keep them apart from that.
    ("pytest", "python -m pip install pytest"),
    ("mypy", "python -m pip install mypy"),
];

/// Hooks of pre-commit that call a program of the machine, and what installs that.
const TOOLS_OF_HOOKS: [(&str, &str); 3] = [
    ("terraform_wrapper_module_for_each", "go install github.com/minamijoyo/hcledit@latest"),
    ("terraform_tflint", "go install github.com/terraform-linters/tflint@latest"),
    ("terraform_docs", "go install github.com/terraform-docs/terraform-docs@latest"),
];

/// Programs that a runner lacks and that install what others need, or run a task that does.
const LACKING_PROGRAMS: [&str; 6] = ["just", "task", "mise", "poetry", "pdm", "pipenv"];

/// Returns the toolchain that a step of Rust's action asks for.
fn toolchain_of(action: &CiAction) -> Option<&str> {
    let said = action.inputs().find(|(key, _)| key == "toolchain");
    Some(said.map_or(action.version.as_str(), |(_, value)| value)).filter(|name| is_toolchain(name))
}

/// Returns the toolchain that stands as a variable before a command.
fn toolchain_of_command(command: &str) -> Option<String> {
    let before = command.strip_suffix(without_assignments(command))?;
    let name = before.split(' ').find_map(|word| word.strip_prefix(VARIABLE))?;
    is_toolchain(name).then(|| name.to_owned())
}

/// Tells whether a line of a job is this command: tasks are called in several ways.
fn is_call(line: &str, command: &str) -> bool {
    line == command || words(line) == words(command)
}

/// Returns what installs the targets for which commands call cargo: a runner has that of its own machine.
fn targets_of_rust<'c>(called: &'c [&Finding]) -> impl Iterator<Item = String> + 'c {
    called.iter().filter_map(|finding| {
        let words = words(&finding.command);
        let behind =
            words.iter().position(|word| *word == "--target").and_then(|at| words.get(at + 1).copied());
        let target = behind.or_else(|| words.iter().find_map(|word| word.strip_prefix("--target=")));
        let target = target.filter(|_| words.first() == Some(&"cargo"))?;
        (target != "x86_64-unknown-linux-gnu").then(|| format!("rustup target add {target}"))
    })
}

/// Returns what the jobs have beside their steps that make the checks of a loop.
pub(super) fn services<'c>(contents: &'c CiContents, plan: &Plan) -> Vec<&'c JobServices> {
    // Of several jobs that make one check, each has what it needs alone: two databases may want one port.
    let of_check = |check: &Check| {
        let jobs = jobs(contents, &[&check.finding]);
        let mut all = contents.services.iter().filter(|services| jobs.contains(services.job.as_str()));
        all.next()
    };
    let mut found: Vec<&JobServices> = Vec::new();
    for services in plan.checks.iter().filter_map(of_check) {
        if !found.iter().any(|known| known.job == services.job) {
            found.push(services);
        }
    }
    found
}

/// Returns the container in which all jobs that make the checks of a loop run.
pub(super) fn container<'c>(contents: &'c CiContents, plan: &Plan) -> Option<&'c JobContainer> {
    let checks: Vec<&Finding> = plan.checks.iter().map(|check| &check.finding).collect();
    let of_job = |job: &str| contents.containers.iter().find(|container| container.job == job);
    let mut of_jobs = jobs(contents, &checks).into_iter().map(of_job);
    let first = of_jobs.next()??;
    of_jobs.all(|other| other.is_some_and(|other| other.lines == first.lines)).then_some(first)
}

/// Returns the actions that set something up in a container: those that the jobs of the checks call. What else they need, it has.
pub(super) fn without_image(steps: &mut Vec<SetUpStep>, contents: &CiContents, container: &JobContainer) {
    let is_called =
        |name: &str| contents.actions.iter().any(|known| known.job == container.job && known.name == name);
    steps.retain(|step| match &step.does {
        SetUp::Action { action, .. } => is_called(action.name),
        SetUp::CopiedAction { .. } | SetUp::Run(_) => true,
    });
}

/// Returns the variables that jobs have for the checks of a loop: those that a check has wherever it is made, with the value on which
/// all of them agree.
pub(super) fn variables(contents: &CiContents, plan: &Plan) -> Vec<(String, String)> {
    let mut found: Vec<&(String, String)> = Vec::new();
    let is_call =
        |line: &CiCommand, check: &Check| !line.is_second_choice() && is_line_of(line, &check.finding);
    for check in &plan.checks {
        let all = contents.commands.iter().chain(&contents.hooks);
        let mut lines = all.filter(|line| is_call(line, check));
        let Some(first) = lines.next() else { continue };
        let others: Vec<&CiCommand> = lines.collect();
        let is_everywhere = |one: &&(String, String)| {
            let says = |line: &&CiCommand| value_of(&line.variables, &one.0) == Some(&one.1);
            // The nearest is the first, and hides those behind it.
            says(&first) && others.iter().all(says)
        };
        found.extend(first.variables.iter().filter(is_everywhere));
    }
    // What one check can do without, another one that says nothing of it may need: the browser of its tests.
    let of_all = |one: &(String, String)| {
        let is_of_any = |line: &&CiCommand| plan.checks.iter().any(|check| is_call(line, check));
        let mut lines = contents.commands.iter().chain(&contents.hooks).filter(is_of_any);
        lines.all(|line| value_of(&line.variables, &one.0) == Some(&one.1))
    };
    let is_agreed = |one: &&(String, String)| {
        found.iter().all(|other| other.0 != one.0 || other.1 == one.1) && (!leaves_out(&one.0) || of_all(one))
    };
    // What only some checks have stands before their commands.
    let is_set = |name: &str| stands_before(plan, name);
    // What only the step of a check has is not for the others: it stands before its command, or was put into it.
    let is_of_job = |one: &(String, String)| {
        let is_of_step = |line: &CiCommand| line.variables[..line.of_step].contains(one);
        let is_call = |line: &CiCommand| plan.checks.iter().any(|check| is_call(line, check));
        !contents.commands.iter().any(|line| is_call(line) && is_of_step(line)) || of_all(one)
    };
    let is_meant =
        |one: &&&(String, String)| is_of_checks(contents, one) && !is_set(&one.0) && is_of_job(one);
    let mut agreed: Vec<(String, String)> = Vec::new();
    for one in found.iter().filter(is_meant).filter(|one| is_agreed(one)) {
        if agreed.len() < MOST_VARIABLES && !agreed.contains(one) {
            agreed.push((*one).clone());
        }
    }
    agreed
}

/// Tells whether a variable stands before the command of a check.
pub(super) fn stands_before(plan: &Plan, name: &str) -> bool {
    let set = |check: &Check| {
        let command = check.finding.command.as_str();
        let exported = command.strip_prefix("export ").and_then(|rest| rest.split_once(" && "));
        let own = exported.map(|(own, _)| own).or_else(|| command.strip_suffix(without_assignments(command)));
        own.is_some_and(|own| {
            own.split(' ').any(|word| word.split_once('=').is_some_and(|(known, _)| known == name))
        })
    };
    plan.checks.iter().any(set)
}

/// Tells whether a variable says by its name that something is left out, `PUPPETEER_SKIP_DOWNLOAD`, or how things are installed.
fn leaves_out(name: &str) -> bool {
    let steers =
        ["BUNDLE_", "PIP_", "UV_", "COMPOSER_", "POETRY_"].iter().any(|begin| name.starts_with(begin));
    steers || ["SKIP", "_NO_", "DISABLE", "WITHOUT"].iter().any(|sign| name.contains(sign))
}

fn value_of<'v>(variables: &'v [(String, String)], name: &str) -> Option<&'v String> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// The most variables that are taken from jobs.
const MOST_VARIABLES: usize = 12;

/// Returns the jobs that make the checks of a loop.
pub(super) fn jobs_of<'c>(contents: &'c CiContents, plan: &Plan) -> BTreeSet<&'c str> {
    jobs(contents, &plan.checks.iter().map(|check| &check.finding).collect::<Vec<_>>())
}

/// Returns the jobs that run these commands.
fn jobs<'c>(contents: &'c CiContents, called: &[&Finding]) -> BTreeSet<&'c str> {
    lines_of(contents, called).map(|line| line.job.as_str()).collect()
}

/// Returns the lines by which jobs run these commands.
fn lines_of<'c>(contents: &'c CiContents, called: &[&Finding]) -> impl Iterator<Item = &'c CiCommand> {
    contents.commands.iter().filter(move |line| called.iter().any(|finding| is_line_of(line, finding)))
}

/// Returns the job of the line that is the evidence for a check, or else the first that makes it.
fn home<'c>(contents: &'c CiContents, check: &Finding) -> Option<&'c str> {
    let lines = &contents.commands;
    let own = lines.iter().find(|line| line.evidence == check.evidence);
    let any = || lines.iter().find(|line| is_line_of(line, check));
    own.or_else(any).map(|line| line.job.as_str())
}

/// Returns where in each job the last line stands that makes one of these checks, among all lines.
fn last_lines<'c>(contents: &'c CiContents, called: &[&Finding]) -> BTreeMap<&'c str, usize> {
    let is_of = |line: &CiCommand| called.iter().any(|finding| is_line_of(line, finding));
    let lines = contents.commands.iter().enumerate().filter(|(_, line)| is_of(line));
    // Of several, the last stays.
    lines.map(|(at, line)| (line.job.as_str(), at)).collect()
}

/// Tells whether a line of a job makes a check: it is the same command, or what is written in its place, as for the tests of `CMake`.
fn is_line_of(line: &CiCommand, check: &Finding) -> bool {
    is_call(&line.command, &check.command)
        || line.evidence == check.evidence
        || calls_hooks(&line.command) && calls_hooks(&check.command)
}

/// Tells whether a command runs the hooks of pre-commit, of whatever files.
fn calls_hooks(command: &str) -> bool {
    recognise_line(command).is_some_and(|found| found.tool.name == "pre-commit")
}

/// Tells whether a step brings a program along.
fn brings(step: &SetUp, program: &str) -> bool {
    match step {
        // What it installs, its inputs may name.
        SetUp::CopiedAction { uses, with } => {
            let names = |text: &str| text.split(['-', '/', ',', ' ', '_']).any(|word| word == program);
            names(uses) || with.iter().any(|(_, value)| names(value))
        }
        SetUp::Action { action, .. } => match action.name {
            "astral-sh/setup-uv" => matches!(program, "uv" | "uvx"),
            "pnpm/action-setup" => program == "pnpm",
            "oven-sh/setup-bun" => program == "bun",
            "denoland/setup-deno" => program == "deno",
            "helm/chart-testing-action" => program == "ct",
            _ => false,
        },
        SetUp::Run(_) => false,
    }
}

/// Tells whether a step calls what the packages of a project bring along.
fn calls_packages(command: &str) -> bool {
    ["vendor/", "node_modules/", "npx ", " exec ", "uv run ", "poetry run "]
        .iter()
        .any(|sign| command.contains(sign))
}

/// Tells whether what is installed is an archive that an earlier line has packed: `npm install -g ./x-*.tgz`.
fn installs_archive(command: &str) -> bool {
    let is_archive = |word: &str| [".tgz", ".whl", ".tar.gz", ".gem"].iter().any(|end| word.ends_with(end));
    command.split_whitespace().any(|word| is_archive(word) && !word.contains("://"))
}

fn action(action: &'static PinnedAction, with: Vec<(&'static str, String)>) -> SetUp {
    SetUp::Action { action, with }
}

fn go(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let of_ci = place.of_ci(GO.name, "go-version");
    // The `go` line of a module is the oldest version that it takes, which may not be one that its CI tries.
    let with = match (of_ci, place.version_file(&["go.mod", ".go-version"])) {
        (Some(version), _) => ("go-version", version),
        (None, Some(file)) => ("go-version-file", file),
        (None, None) => ("go-version", "stable".to_owned()),
    };
    vec![action(&GO, vec![with])]
}

fn java(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let distribution =
        place.of_ci("actions/setup-java", "distribution").unwrap_or_else(|| "temurin".to_owned());
    let of_ci = place.version_file_of_ci(JAVA.name, "java-version-file");
    let file = place.version_file(&[".java-version", ".tool-versions", ".sdkmanrc"]);
    let one = || place.of_ci(JAVA.name, "java-version");
    let listed = || versions_of_java(place);
    let named = of_ci.or(file.map(|file| ("java-version-file", file)));
    let version =
        named.unwrap_or_else(|| ("java-version", listed().or_else(one).unwrap_or_else(|| "21".to_owned())));
    vec![action(&JAVA, vec![("distribution", distribution), version])]
}

/// Returns all versions of Java that the jobs of the checks list, a line each; nothing where none lists more than one. Builds may ask
/// for each of them, and the action makes the last one the default: that of most jobs.
fn versions_of_java(place: &SetUpPlace<'_>) -> Option<String> {
    let of_action = |known: &CiAction| {
        let mut inputs = known.with.iter().chain(&known.of_variables).chain(&known.of_matrix);
        let (_, value) = inputs.find(|(key, _)| key == "java-version")?;
        let lines: Vec<String> = lines_of_value(value).map(str::to_owned).collect();
        (!lines.is_empty()).then_some(lines)
    };
    let lists: Vec<Vec<String>> = place.calls_of(JAVA.name).filter_map(of_action).collect();
    if lists.iter().all(|list| list.len() < 2) {
        return None;
    }
    let is_last = |version: &&String| lists.iter().filter(|list| list.last() == Some(*version)).count();
    let newer = |version: &&String| version_parts(version);
    let usual = lists.iter().filter_map(|list| list.last()).max_by_key(|one| (is_last(one), newer(one)))?;
    let mut others: Vec<&String> = lists.iter().flatten().filter(|version| *version != usual).collect();
    others.sort_by_key(newer);
    others.dedup();
    let lines = others.into_iter().chain([usual]).map(String::as_str).collect::<Vec<_>>();
    (lines.len() > 1).then(|| lines.join("\n"))
}

fn dotnet(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let file = place.version_file(&["global.json"]).map(|file| ("global-json-file", file));
    let listed = place.all_of_ci(DOTNET.name, "dotnet-version");
    // The file names the SDK that builds; tests for older frameworks need the others that the jobs list.
    let usual = || file.is_none().then(|| "10.0.x".to_owned());
    let versions = listed.or_else(usual).map(|versions| ("dotnet-version", versions));
    vec![action(&DOTNET, file.clone().into_iter().chain(versions).collect())]
}

fn ruby(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let mut with = Vec::new();
    // The action reads these files by itself, where a job does not say another version.
    let has_file = place.version_file(&[".ruby-version", ".tool-versions", "mise.toml"]).is_some();
    let of_job = place.of_near_ci(RUBY.name, "ruby-version");
    let usual = || place.of_ci(RUBY.name, "ruby-version").unwrap_or_else(|| "3.4".to_owned());
    // A job that says none has the one of its folder.
    let says_none = |call: &CiAction| call.is_whole && !call.inputs().any(|(name, _)| name == "ruby-version");
    let is_of_folder = place.calls_of(RUBY.name).any(says_none);
    let version = of_job.or_else(|| (!has_file && !is_of_folder).then(usual));
    with.extend(version.map(|version| ("ruby-version", version)));
    // This input makes the action call `bundle install`, with a cache.
    if place.here.has("Gemfile") {
        with.push(("bundler-cache", "true".to_owned()));
        if !place.directory.is_empty() {
            with.push(("working-directory", place.directory.clone()));
        }
    }
    vec![action(&RUBY, with)]
}

fn php(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let version = place.of_ci(PHP.name, "php-version").unwrap_or_else(|| "8.4".to_owned());
    // How PHP is set up belongs to its version.
    let has_version =
        |call: &&CiAction| call.inputs().any(|(key, value)| key == "php-version" && *value == version);
    let tests = |call: &&CiAction| {
        let mut lines = place.contents.commands.iter().filter(|line| line.job == call.job);
        lines.any(|line| {
            recognise_line(&line.command).is_some_and(|found| found.purpose == Some(Purpose::Test))
        })
    };
    let calls = || place.calls_of(PHP.name).filter(has_version);
    let call = calls().find(tests).or_else(|| calls().next());
    let of_call = |name: &'static str| {
        let (_, value) = call?.inputs().find(|(key, _)| key == name)?;
        Some((name, value.clone()))
    };
    // Without a word on it the action leaves Xdebug on, which slows every test down.
    let of_any = || place.of_ci(PHP.name, "coverage").unwrap_or_else(|| "none".to_owned());
    let without = of_call("coverage").filter(|(_, value)| value == "none" && !place.needs_driver());
    let coverage = without.map_or_else(of_any, |(_, value)| value);
    let of_list = || place.list_of_ci(PHP.name, "extensions").or_else(|| place.of_ci(PHP.name, "extensions"));
    let extensions = of_call("extensions").or_else(|| of_list().map(|value| ("extensions", value)));
    let settings = ["ini-file", "ini-values"].into_iter().filter_map(of_call);
    let tools = tools_of_php(place).map(|tools| ("tools", tools));
    let known = [("php-version", version.clone()), ("coverage", coverage)];
    vec![action(&PHP, known.into_iter().chain(extensions).chain(settings).chain(tools).collect())]
}

/// Returns the tools that the action of PHP installs in the jobs of the checks, each once. `none` would leave Composer out.
fn tools_of_php(place: &SetUpPlace<'_>) -> Option<String> {
    let lists = place.calls_of(PHP.name).flat_map(CiAction::inputs).filter(|(key, _)| key == "tools");
    let mut tools: Vec<&str> = Vec::new();
    for tool in lists.flat_map(|(_, list)| list.split([',', '\n'])).map(str::trim) {
        let name = |tool: &str| up_to(tool, &[':', '@']).to_owned();
        if !matches!(tool, "" | "none") && !tools.iter().any(|known| name(known) == name(tool)) {
            tools.push(tool);
        }
    }
    (!tools.is_empty()).then(|| tools.join(", "))
}

fn elixir(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    if let Some(file) = place.version_file(&[".tool-versions"]) {
        // The action refuses a file of versions unless they are to be taken strictly.
        let with = vec![("version-file", file), ("version-type", "strict".to_owned())];
        return vec![action(&BEAM, with)];
    }
    let version =
        |input: &str, newest: &str| place.of_ci(BEAM.name, input).unwrap_or_else(|| newest.to_owned());
    let with = vec![
        ("elixir-version", version("elixir-version", "1.x")),
        ("otp-version", version("otp-version", "27")),
    ];
    vec![action(&BEAM, with)]
}

fn dart(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    if place.is_of_flutter() {
        return vec![action(&FLUTTER, vec![("channel", "stable".to_owned())])];
    }
    let version = place.released_of_ci(DART.name, "sdk");
    vec![action(&DART, version.map(|version| ("sdk", version)).into_iter().collect())]
}

fn zig(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let version = place.of_ci(ZIG.name, "version").map(|version| ("version", version));
    vec![action(&ZIG, version.into_iter().collect())]
}

fn nim(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let version = place.released_of_ci(NIM.name, "nim-version").map(|version| ("nim-version", version));
    vec![action(&NIM, version.into_iter().collect())]
}

/// Each of its programs is an input; those that the files of the repository are for are installed where its workflows name none.
fn clojure(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let programs = [("cli", "deps.edn"), ("lein", "project.clj"), ("bb", "bb.edn"), ("clj-kondo", "")];
    let of_ci = programs.iter().filter_map(|(name, _)| Some((*name, place.of_ci(CLOJURE.name, name)?)));
    let mut with: Vec<(&'static str, String)> = of_ci.collect();
    if with.is_empty() {
        let is_there = |(_, file): &&(&str, &str)| place.here.has(file);
        with.extend(programs.iter().filter(is_there).map(|(name, _)| (*name, "latest".to_owned())));
    }
    // Clojure runs on Java, which its action does not install.
    let mut steps = java(place);
    steps.push(action(&CLOJURE, with));
    steps
}

fn nix(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let path = place.of_ci(NIX.name, "nix_path").map(|path| ("nix_path", path));
    vec![action(&NIX, path.into_iter().collect())]
}

/// What opam installs lies in its switch, and only `opam exec` would find it.
fn ocaml(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let version = place.of_ci(OCAML.name, "ocaml-compiler").unwrap_or_else(|| "5".to_owned());
    let path = SetUp::Run("opam var bin >> \"$GITHUB_PATH\"".to_owned());
    vec![action(&OCAML, vec![("ocaml-compiler", version)]), path]
}

fn terraform(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    // Without its wrapper, a program that calls it reads what it prints.
    let inputs = ["terraform_version", "terraform_wrapper"];
    let of_ci = inputs.into_iter().filter_map(|name| Some((name, place.of_ci(TERRAFORM.name, name)?)));
    vec![action(&TERRAFORM, of_ci.collect())]
}

fn deno(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    if let Some(file) = place.version_file_of_ci(DENO.name, "deno-version-file") {
        return vec![action(&DENO, vec![file])];
    }
    let version = place.of_ci(DENO.name, "deno-version").unwrap_or_else(|| "v2.x".to_owned());
    vec![action(&DENO, vec![("deno-version", version)])]
}

fn bun(place: &SetUpPlace<'_>) -> SetUp {
    let file = place.version_file_of_ci(BUN.name, "bun-version-file");
    let version = || Some(("bun-version", place.of_ci(BUN.name, "bun-version")?));
    action(&BUN, file.or_else(version).into_iter().collect())
}

fn node(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let has_engine = |text: &str| text.contains("\"engines\"") && text.contains("\"node\"");
    let file = place.version_file(&[".nvmrc", ".node-version", ".tool-versions"]).or_else(|| {
        place.here.text("package.json").filter(|text| has_engine(text))?;
        place.version_file(&["package.json"])
    });
    let of_ci = place.of_ci("actions/setup-node", "node-version");
    let file_of_ci = place.version_file_of_ci(NODE.name, "node-version-file");
    let of_ci = of_ci.filter(|_| file_of_ci.is_none());
    let file = file_of_ci.map(|(_, file)| file).or(file);
    let with = match (file, of_ci) {
        (_, Some(version)) => ("node-version", version),
        (Some(file), None) if !file.ends_with("package.json") => ("node-version-file", file),
        // A range such as `>=18` takes a version that the repository may never have been tried with.
        (Some(_) | None, None) => ("node-version", "lts/*".to_owned()),
    };
    let mut steps = Vec::new();
    match place.manager() {
        "pnpm" => steps.push(place.pnpm()),
        "bun" => steps.push(bun(place)),
        _ => {}
    }
    steps.push(action(&NODE, vec![with]));
    if place.manager() == "yarn" && place.is_berry() {
        // Runners have Yarn 1; corepack starts the version that the repository names.
        steps.push(SetUp::Run("corepack enable".to_owned()));
    }
    steps
}

fn uv(place: &SetUpPlace<'_>) -> SetUp {
    action(&UV, version_of_uv(place).into_iter().collect())
}

/// Returns the version of uv that the jobs of the checks name.
fn version_of_uv(place: &SetUpPlace<'_>) -> Option<(&'static str, String)> {
    Some(("version", place.of_near_ci(UV.name, "version").filter(|version| version != "latest")?))
}

fn python(place: &SetUpPlace<'_>) -> Vec<SetUp> {
    let file = place.version_file(&[".python-version", ".tool-versions"]);
    let of_ci = place.of_ci("actions/setup-python", "python-version");
    let with = match (of_ci, file) {
        (Some(version), _) => ("python-version", version),
        (None, Some(file)) => ("python-version-file", file),
        (None, None) => ("python-version", "3.x".to_owned()),
    };
    let uses_uv =
        place.here.has("uv.lock") || place.contents.actions.iter().any(|known| known.name == UV.name);
    let of_uv = place.of_ci(UV.name, "python-version").map(|version| ("python-version", version));
    // Where uv brings Python along, it is the one that is used.
    let is_of_uv = uses_uv && of_uv.is_some() && !place.calls_action(PYTHON.name);
    if is_of_uv {
        return vec![action(&UV, version_of_uv(place).into_iter().chain(of_uv).collect())];
    }
    let uv = uses_uv.then(|| uv(place));
    // The newest of a matrix may not be released yet.
    let unreleased = place.of_ci(PYTHON.name, "allow-prereleases").map(|value| ("allow-prereleases", value));
    let with = std::iter::once(with).chain(unreleased).collect();
    [Some(action(&PYTHON, with)), uv].into_iter().flatten().collect()
}
