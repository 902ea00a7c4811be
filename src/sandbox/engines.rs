//! The engines of this machine: which of them confine actions here, each tried out at most once.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::capability::{self, BwrapReady, Lack};
use super::container::{ContainerReady, OF_CLIENT, container};
use super::order::GateUser;
use super::own_limits;
use crate::base::sandbox::SandboxEngine;

/// An engine that works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyEngine {
    /// The program bubblewrap.
    Bwrap(BwrapReady),
    /// Docker or Podman.
    Container(ContainerReady),
    /// Landlock alone.
    Landlock(LandlockReady),
}

/// A Landlock that works here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LandlockReady {
    /// Whether it keeps signals and abstract sockets in.
    pub is_scoped: bool,
    /// As whom actions run, where that is somebody else.
    pub user: Option<GateUser>,
}

impl ReadyEngine {
    /// Returns its word.
    pub fn word(&self) -> SandboxEngine {
        match self {
            Self::Bwrap(_) => SandboxEngine::Bwrap,
            Self::Container(_) => SandboxEngine::Container,
            Self::Landlock(_) => SandboxEngine::Landlock,
        }
    }

    /// Returns as whom actions run, where that is somebody else.
    pub fn other_user(&self) -> Option<GateUser> {
        match self {
            Self::Bwrap(ready) => ready.user,
            Self::Landlock(ready) => ready.user,
            Self::Container(ready) => {
                Some(ready.user).filter(|user| user.uid != rustix::process::getuid().as_raw())
            }
        }
    }
}

/// The engines of this machine, each tried out when it is first asked for.
#[derive(Debug, Default)]
pub struct Engines {
    root: PathBuf,
    /// What clients of engines see of the environment, `PATH` among it.
    env: Vec<(String, String)>,
    bwrap: OnceCell<Result<BwrapReady, Lack>>,
    container: OnceCell<Result<ContainerReady, Lack>>,
}

impl Engines {
    /// Knows a working tree, and how the environment of the run is asked. Nothing is tried yet.
    pub fn new(root: &Path, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let env = OF_CLIENT.into_iter().filter_map(|name| Some((name.to_owned(), env(name)?))).collect();
        Self { root: root.to_owned(), env, ..Self::default() }
    }

    /// Returns what confines actions in this working tree, by the engine that is asked for.
    ///
    /// # Errors
    /// It cannot. Where the choice is ours, that is why bubblewrap cannot.
    pub fn ready(&self, engine: SandboxEngine) -> Result<ReadyEngine, Lack> {
        match engine {
            SandboxEngine::Auto => self.bwrap().or_else(|lack| self.container().map_err(|_| lack)),
            SandboxEngine::Bwrap => self.bwrap(),
            SandboxEngine::Container => self.container(),
            // What it leaves open is much: it is taken only where it is asked for.
            SandboxEngine::Landlock => landlock(&self.root).map(ReadyEngine::Landlock),
            SandboxEngine::Host => Err(Lack::Engine(engine.word())),
        }
    }

    fn bwrap(&self) -> Result<ReadyEngine, Lack> {
        let path = self.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        self.bwrap.get_or_init(|| capability::bwrap(&self.root, path)).clone().map(ReadyEngine::Bwrap)
    }

    fn container(&self) -> Result<ReadyEngine, Lack> {
        let ready = self.container.get_or_init(|| container(&self.root, &self.env));
        ready.clone().map(ReadyEngine::Container)
    }
}

fn landlock(root: &Path) -> Result<LandlockReady, Lack> {
    // Not kept as the others are: it takes two system calls, and no process.
    let is_scoped = own_limits::landlock_is_scoped();
    let is_scoped = is_scoped.map_err(|why| Lack::Landlock(why.to_string()))?;
    Ok(LandlockReady { is_scoped, user: capability::user(root)? })
}
