//! Confines the processes of actions as their loop says, or as is usual where it says nothing, and reports the result.

use std::path::PathBuf;

use super::sandbox_setup::{Confinable, may_be_left_to};
use super::world::World;
use crate::base::sandbox::{SandboxEngine, SandboxRules};
use crate::base::text::listed;
use crate::engine::request::Setting;
use crate::engine::sandbox_event::{self, HostCount, SandboxEvent};
use crate::evaluate::observation::{Observation, Stop};
use crate::host::Access;
use crate::process::spawn::Program;
use crate::sandbox::capability::Lack;
use crate::sandbox::confine::{Confined, Confinement, Wish};
use crate::sandbox::household::is_telemetry;

/// Changed files that a line names.
const MOST_NAMED: usize = 8;

impl World {
    /// Confines the process of an action where its sandbox says so. The observation is of an action that is not started,
    /// because it cannot be.
    pub(super) fn confine(
        &mut self,
        program: Program,
        setting: &Setting,
        what: Confinable,
    ) -> Result<(Program, Option<Confined>), Box<Observation>> {
        let Some(rules) = self.sandbox.rules(setting, &what) else {
            // Unlike what nobody confines, this is a decision of the loop, and said wherever the run is shown.
            self.sandbox.told.extend(self.sandbox.is_off(setting).then(SandboxEvent::off));
            return Ok((program, None));
        };
        if rules.engine == SandboxEngine::Host {
            self.sandbox.told.push(left_to_host(&rules));
            return Ok((program, None));
        }
        let unavailable = |why: String| {
            Box::new(Observation { stop: Some(Stop::Unavailable), ..Observation::not_started(why) })
        };
        let at = match self.make_confinement(rules.engine) {
            Ok(at) => at,
            // A host with a sandbox of its own may be trusted with it, where the loop did not ask
            // for a certain one.
            Err(lack) => {
                if let Confinable::Prompt { host, .. } = what
                    && may_be_left_to(host, &rules)
                {
                    self.sandbox.told.push(left_to_host(&rules));
                    return Ok((program, None));
                }
                // Never without it: an action that was to be confined and is not is worse than one
                // that did not run.
                return Err(unavailable(format!("{lack}; {}", lack.remedy())));
            }
        };
        let confinement = &self.sandbox.confinements[at];
        let scope: Vec<PathBuf> =
            self.area.territory.paths.iter().map(|path| PathBuf::from(path.to_string())).collect();
        // A sub-loop in a worktree of its own works there alone.
        let scope = if scope.iter().any(|path| path.starts_with(&self.root) || self.root.starts_with(path)) {
            scope
        } else {
            vec![self.root.clone()]
        };
        let (host, access, read) = match what {
            Confinable::Command(read) => (None, Access::Write, read),
            Confinable::Prompt { host, access, read } => (Some(host.name()), access, read),
        };
        let run_dir = self.files.scratch();
        let wish = Wish {
            rules: &rules,
            root: &self.root,
            scope: &scope,
            run_dir: &run_dir,
            host,
            only_looks: access == Access::ReadOnly,
            read: &read,
        };
        let confined = confinement.confine(program, &wish).and_then(|(program, confined)| {
            // Noted before the process starts, so that a later command can remove them after a
            // kill.
            confined.masks().note(&self.sandbox.masks)?;
            Ok((program, confined))
        });
        match confined {
            Ok((program, confined)) => Ok((program, Some(confined))),
            Err(error) => Err(unavailable(format!("the sandbox cannot be set up: {error}"))),
        }
    }

    /// Tells whether the sandbox of a loop is going to confine an action, rather than a host by itself or nothing.
    pub(super) fn confines(&mut self, setting: &Setting, what: &Confinable) -> bool {
        let rules = self.sandbox.rules(setting, what);
        rules.is_some_and(|rules| {
            rules.engine != SandboxEngine::Host && self.make_confinement(rules.engine).is_ok()
        })
    }

    /// Returns which of the confinements of the run is by an engine. It is made where there is none yet.
    fn make_confinement(&mut self, engine: SandboxEngine) -> Result<usize, Lack> {
        let ready = self.sandbox.engines.ready(engine)?;
        let made = &mut self.sandbox.confinements;
        // Finding out whether an engine works costs a process, so each is tried once in a run.
        if let Some(at) = made.iter().position(|made| made.engine() == ready.word()) {
            return Ok(at);
        }
        let home = self.env.get("HOME").map(PathBuf::from);
        let confinement = Confinement::new(ready, home, self.sandbox.leading_out.clone())
            .map_err(|error| Lack::Unmade(error.to_string()))?;
        made.push(confinement);
        Ok(made.len() - 1)
    }

    /// Looks at what a confined action left, tells it, and makes of one that changed protected files one that failed.
    pub(super) fn release(&mut self, confined: Option<Confined>, seen: Observation) -> Observation {
        let Some(confined) = confined else { return seen };
        let (engine, mode) = (confined.engine(), confined.mode());
        let (enforced, missing) = (confined.enforced(), confined.missing());
        let end = confined.end(seen.stderr.as_str());
        let reached = end.reached.iter();
        let net_of = |(host, (allowed, denied)): (&String, &(u64, u64))| {
            let (allowed, denied, is_telemetry) = (*allowed, *denied, is_telemetry(host));
            (host.clone(), HostCount { allowed, denied, is_telemetry })
        };
        let told = SandboxEvent {
            engine: engine.word().to_owned(),
            mode: mode.word().to_owned(),
            enforced,
            missing,
            net: reached.map(net_of).collect(),
            put_back: end.put_back.clone(),
        };
        // The action chose these names, and may have put a secret into one.
        let denied = sandbox_event::denied(&told.net).map(|line| self.redactor.text(&line).into_owned());
        self.remarks.extend(denied);
        self.sandbox.told.push(told);
        let is_put_back = end.not_put_back.is_none();
        let broken = match (end.not_put_back, end.put_back.as_slice()) {
            (Some(why), _) => format!("protected files may have been changed: {why}"),
            (None, []) if seen.stop.is_some() => return seen,
            (None, []) => return Observation { failure: end.failure.or(seen.failure), ..seen },
            (None, names) => {
                let names: Vec<_> = names.iter().take(MOST_NAMED).map(String::as_str).collect();
                format!("the action changed protected files, which were put back: {}", listed(&names, "and"))
            }
        };
        let why = self.redactor.text(&broken).into_owned();
        self.remarks.push(why.clone());
        // One that was stopped keeps its own end, but no way of a timeout leads on over files that may be another's.
        if seen.stop.is_some_and(|stop| is_put_back || stop.is_end_of_run()) {
            return seen;
        }
        // Even one that ended well has not done what it was asked.
        Observation { failure: Some(why), stop: None, exit_code: seen.exit_code.max(1), ..seen }
    }
}

fn left_to_host(rules: &SandboxRules) -> SandboxEvent {
    SandboxEvent {
        engine: SandboxEngine::Host.word().to_owned(),
        mode: rules.mode.word().to_owned(),
        missing: vec!["whatever the host does not keep its agent from".to_owned()],
        ..SandboxEvent::default()
    }
}
