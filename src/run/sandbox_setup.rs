//! What keeps the actions of a run in: what their loop says, what is usual where it says nothing, and the result.

use std::path::PathBuf;

use crate::base::sandbox::{SandboxEngine, SandboxMode, SandboxRules};
use crate::engine::request::Setting;
use crate::engine::sandbox_event::SandboxEvent;
use crate::host::{Access, Host};
use crate::sandbox::confine::Confinement;
use crate::sandbox::engines::Engines;
use crate::sandbox::household::LEADING_OUT;

/// What confines the actions of a run whose loop says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SandboxDefault {
    /// Nothing.
    #[default]
    Nothing,
    /// These rules confine prompts, and command lines after one: they run what an agent wrote.
    Prompts(SandboxRules),
    /// These rules confine every action.
    Everything(SandboxRules),
}

/// What keeps the actions of a run in.
#[derive(Debug, Default)]
pub struct SandboxSetup {
    /// What confines actions whose loop says nothing.
    pub default: SandboxDefault,
    /// What the loop says around the one that is running.
    pub around: Option<SandboxRules>,
    /// Whether an agent was asked in this run.
    pub has_prompted: bool,
    /// What a hermetic run hides from every action that is confined, each by its whole path.
    pub hidden: Vec<String>,
    /// How actions were confined, for the journal.
    pub told: Vec<SandboxEvent>,
    /// What can confine them here.
    pub(super) engines: Engines,
    pub(super) confinements: Vec<Confinement>,
    pub(super) leading_out: Vec<String>,
    pub(super) masks: PathBuf,
}

/// What is to be confined, with the files that it reads.
pub(super) enum Confinable {
    /// A command line, or the server of a tool.
    Command(Vec<PathBuf>),
    /// The call of a host.
    Prompt {
        /// The host.
        host: &'static dyn Host,
        /// What its agent may do to files.
        access: Access,
        /// The files of the call.
        read: Vec<PathBuf>,
    },
}

impl SandboxSetup {
    /// Makes what confines the actions of a run. `env` finds a variable of the run.
    /// What actions find in the working tree in the place of protected paths is noted in the file `masks`.
    pub fn new(
        default: SandboxDefault,
        engines: Engines,
        masks: PathBuf,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        // Files and sockets that lead out of a sandbox are named by these variables.
        let leading_out = LEADING_OUT.into_iter().filter_map(env).collect();
        Self { default, engines, leading_out, masks, ..Self::default() }
    }

    /// Enters a loop below: where it says nothing, what was said around it holds. Returns what held before.
    pub(super) fn enter(&mut self, said: Option<&SandboxRules>) -> Option<SandboxRules> {
        let before = self.around.clone();
        // A loop without a word leaves what holds around it.
        if said.is_some() {
            self.around = said.cloned();
        }
        before
    }

    /// Tells whether the loop says of an action that nothing confines it.
    pub(super) fn is_off(&self, setting: &Setting) -> bool {
        let said = setting.sandbox.as_deref().or(self.around.as_ref());
        said.is_some_and(|said| said.mode == SandboxMode::Off)
    }

    /// Returns the rules for an action, if it is confined.
    pub(super) fn rules(&self, setting: &Setting, what: &Confinable) -> Option<SandboxRules> {
        if let Some(said) = setting.sandbox.as_deref().or(self.around.as_ref()) {
            let hide = said.hide.iter().chain(&self.hidden).cloned().collect();
            return said.confines().then(|| SandboxRules { hide, ..said.clone() });
        }
        match (&self.default, what) {
            (SandboxDefault::Everything(rules), _)
            | (SandboxDefault::Prompts(rules), Confinable::Prompt { .. }) => Some(rules.clone()),
            // From the first prompt on, an agent may have written what a command runs.
            (SandboxDefault::Prompts(rules), Confinable::Command(_)) if self.has_prompted => {
                Some(rules.clone())
            }
            (SandboxDefault::Prompts(_) | SandboxDefault::Nothing, _) => None,
        }
    }
}

/// Tells whether a host's own sandbox does where nothing else confines its agent: the loop has to leave the choice, and the
/// host has to have one.
pub fn may_be_left_to(host: &dyn Host, rules: &SandboxRules) -> bool {
    let is_said = rules.engine == SandboxEngine::Host;
    // Whoever asked for certain rules gets them or nothing.
    (is_said || *rules == SandboxRules::of(SandboxMode::Workspace)) && host.keeps_inside()
}
