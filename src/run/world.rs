//! What the driver works with: everything around the engine, which whoever performs a request may use.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::area::Area;
use super::beside_checks::BesideChecks;
use super::brokerage::Brokerage;
use super::checkpoint::Checkpoints;
use super::continuation::FoundContinuation;
use super::followed_action::FollowedAction;
use super::helper::Helper;
use super::host_patience::Patience;
use super::leftovers::Leftovers;
use super::recording::Recording;
use super::replay::Left;
use super::rules::Rules;
use super::run_moments::RunMoments;
use super::sandbox_setup::SandboxSetup;
use super::surprises::Surprises;
use super::tree_snapshots::TreeSnapshots;
use crate::base::explanation::Explanation;
use crate::base::name::LoopName;
use crate::base::redact::Redactor;
use crate::engine::Start;
use crate::engine::request::{Setting, SubLoopRequest};
use crate::git::call::without_repository;
use crate::guidance::Guidance;
use crate::host::{Host, Version};
use crate::journal::files::RunFiles;
use crate::journal::snapshot::Surroundings;
use crate::journal::writer::Journal;
use crate::machine::Machine;
use crate::policy::Policy;
use crate::process::clock::Clock;
use crate::process::guard_pipe::Guard;
use crate::process::signal::Cancel;
use crate::process::spawn::Program;
use crate::report::Sinks;

/// Everything around the engine.
pub struct World {
    /// Where the run's files are.
    pub files: RunFiles,
    /// The durable events.
    pub journal: Journal,
    /// Where the run is shown.
    pub sinks: Sinks,
    /// Requests to end.
    pub cancel: Cancel,
    /// Ends the actions if this process cannot.
    pub guard: Guard,
    /// Who answers prompts and questions.
    pub agents: AgentSetup,
    /// The time.
    pub clock: Clock,
    /// The time that the run took before this process.
    pub before: Duration,
    /// The loops below the outermost one in which the run was left.
    pub left: Left,
    /// The environment that actions inherit.
    pub env: BTreeMap<String, String>,
    /// The environment of what is started for the run itself, such as git: without tokens, even where actions have one.
    pub own_env: BTreeMap<String, String>,
    /// The directory in which actions run.
    pub root: PathBuf,
    /// The same, where this process is in another one; see [`directory_of_actions`].
    pub starts_in: Option<PathBuf>,
    /// Hides secrets in what actions print.
    pub redactor: Redactor,
    /// Saves the run elsewhere from time to time.
    pub checkpoints: Checkpoints,
    /// The part of the working tree that is its work.
    pub area: Area,
    /// What `state.json` says beyond the engine.
    pub surroundings: Surroundings,
    /// What is to be said about the action that is performed, as warnings.
    pub remarks: Vec<String>,
    /// The check that is about to begin, where it was followed already.
    pub followed: Option<FollowedAction>,
    /// When it did what its judges are asked with.
    pub moments: RunMoments,
    /// What was written down for the next session before the last action.
    pub written: Option<FoundContinuation>,
    /// What was said already of what surprises people.
    pub surprises: Surprises,
    /// What keeps actions in.
    pub sandbox: SandboxSetup,
    /// What they have left running.
    pub leftovers: Leftovers,
    /// What was written to while checks were made beside it.
    pub beside_checks: BesideChecks,
    /// What the work of the run is judged by.
    pub rules: Rules,
    /// What became of the artifact of the run, if it has one.
    pub artifact: Option<Result<String, Explanation>>,
    /// Why `state.json` could not be written the last time, if it could not.
    pub state_failure: Option<io::Error>,
    /// The loops that are running, the outermost first.
    pub path: Vec<LoopName>,
    /// The steps that run the loops below the outermost one.
    pub around: Vec<u32>,
    /// Keeps the working tree as it is before each step, if somebody wants that.
    pub snapshots: Option<TreeSnapshots>,
    /// Answers queries in processes of their own.
    pub helper: Helper,
    /// Finds and prepares sub-loops: loop files are not the business of this layer.
    pub sub_loops: SubLoops,
}

/// Returns the directory that a process has to be started in to be in `root`; nothing where this process is there
/// already, for to be started in another directory takes a process longer.
pub fn directory_of_actions(root: &Path) -> Option<PathBuf> {
    let is_there = std::env::current_dir().is_ok_and(|here| here == root);
    (!is_there).then(|| root.to_owned())
}

/// Makes a sub-loop ready for a request of the run that began like this, or says why it cannot be.
pub(super) type SubLoops = Box<dyn FnMut(&SubLoopRequest, &Start) -> Result<SubLoop, Explanation>>;

/// A sub-loop that is ready.
pub struct SubLoop {
    /// What is run.
    pub machine: Rc<Machine>,
    /// How it begins.
    pub start: Start,
    /// Where it works, if not where the loop around it does.
    pub workplace: Option<Workplace>,
}

/// A directory of its own for a sub-loop.
pub struct Workplace {
    /// Where its actions run.
    pub root: PathBuf,
    /// Removes it, or says why it stays.
    pub leave: Box<dyn FnOnce() -> Result<(), Explanation>>,
}

/// Who answers in a run, and how patient we are.
pub struct AgentSetup {
    /// The CLI that takes prompts, if this machine has one.
    pub host: Option<&'static dyn Host>,
    /// The wait before a call that failed for now is made again; it doubles with each.
    pub first_wait: Duration,
    /// Where answers are kept or come from.
    pub recording: Option<Recording>,
    /// How long the host may be silent.
    pub patience: Patience,
    /// What is known of its program.
    pub installed: Option<Installed>,
    /// What the repository says to agents.
    pub guidance: Guidance,
    /// Holds the key of the service that the host asks, if we do.
    pub broker: Option<Brokerage>,
    /// What binds the run from above.
    pub policy: Arc<Policy>,
}

/// Where a program lies, and which one it is.
pub(super) type ProgramIdentity = (PathBuf, u64, u64, i64, i64);

/// What is known of the program of a host.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Another one may take its place while the run goes on.
    pub(super) identity: ProgramIdentity,
    pub(super) version: Option<Version>,
    /// What it said.
    pub(super) said: String,
    /// Whether it was found to have an account, or not to need one.
    pub(super) has_account: bool,
}

/// Where actions ran before a sub-loop that works elsewhere.
pub(super) struct Outside {
    root: PathBuf,
    starts_in: Option<PathBuf>,
    env: BTreeMap<String, String>,
    own_env: BTreeMap<String, String>,
}

impl Outside {
    /// Goes back there.
    pub(super) fn restore(self, world: &mut World) {
        let Self { root, starts_in, env, own_env } = self;
        (world.root, world.starts_in) = (root, starts_in);
        (world.env, world.own_env) = (env, own_env);
    }
}

impl World {
    /// Lets actions run in another directory, where git finds the repository by that alone.
    pub(super) fn move_to(&mut self, root: &Path) -> Outside {
        // `GIT_DIR` and its like would win over the directory, and name the repository around it.
        let env = without_repository(self.env.clone());
        let own_env = without_repository(self.own_env.clone());
        Outside {
            starts_in: std::mem::replace(&mut self.starts_in, directory_of_actions(root)),
            root: std::mem::replace(&mut self.root, root.to_owned()),
            env: std::mem::replace(&mut self.env, env),
            own_env: std::mem::replace(&mut self.own_env, own_env),
        }
    }

    /// Returns the environment of an action.
    pub(super) fn env_of(&self, setting: &Setting) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        env.extend(setting.env.iter().cloned());
        // Who looks at the working tree must not take the answers that are kept there for work.
        let recording = self.agents.recording.as_ref().and_then(|recording| recording.below(&self.root));
        env.extend(recording.map(|directory| ("LL_RECORDING".to_owned(), directory)));
        env
    }

    /// Makes the process of an action, in its directory and with nothing to read.
    pub(super) fn program(
        &self,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
        setting: &Setting,
    ) -> Result<Program, Explanation> {
        let cwd = setting.cwd.as_deref().map(|cwd| directory(&self.root, cwd)).transpose()?;
        let cwd = cwd.or_else(|| self.starts_in.clone());
        Ok(Program { argv, env: env.into_iter().collect(), cwd, stdin: None, guard: self.guard.clone() })
    }
}

/// Finds the directory of an action, which stays inside the working tree.
fn directory(root: &Path, cwd: &str) -> Result<PathBuf, Explanation> {
    let path = Path::new(cwd);
    let leaves = path.components().any(|part| matches!(part, Component::ParentDir | Component::RootDir));
    let outside =
        || Explanation::new(format!("`cwd: {cwd}` leads out of the working tree; name a directory below it"));
    if leaves {
        return Err(outside());
    }
    let directory = root.join(path);
    // Compared with links followed: a link in the tree may lead out of it.
    match (directory.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(real_root)) if real.starts_with(&real_root) => Ok(real),
        (Ok(_), _) => Err(outside()),
        (Err(_), _) => Err(Explanation::new(format!("`cwd: {cwd}` does not exist"))),
    }
}
