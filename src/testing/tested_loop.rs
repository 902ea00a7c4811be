//! The loop that a test file is about, with everything that it takes to play it.

use std::path::Path;
use std::rc::Rc;

use super::play::Loops;
use super::prepare::TestedLoop;
use crate::base::explanation::Explanation;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::{Loaded, Located};
use crate::definition::schema::Loop;
use crate::engine::Start;
use crate::engine::event::{LoopStart, Source};
use crate::engine::request::SubLoopRequest;
use crate::machine::Machine;
use crate::machine::compile::compile_with;
use crate::machine::early::KnownValues;
use crate::run::SubLoop;
use crate::run::replay::KnownMachine;
use crate::session::prepare::library::{Library, texts};
use crate::session::prepare::prepared::Prepared;

/// A loop, or a mutant of it.
#[derive(Clone)]
pub(crate) struct LoopVariant {
    /// The machine.
    pub(crate) machine: Rc<Machine>,
    /// What it was made from.
    pub(crate) definition: Rc<Loop>,
}

impl LoopVariant {
    /// Makes the machine of a definition, if it is a loop that can run.
    pub(crate) fn of(definition: Loop) -> Option<Self> {
        // Each case gives values of its own, so what the written ones do not fit is left open until `settled`.
        let (machine, _) = compile_with(&definition, KnownValues::Draft);
        Some(Self { machine: Rc::new(machine?), definition: Rc::new(definition) })
    }

    /// Returns the machine for a run with these variables.
    pub(crate) fn settled(&self, start: &Start) -> Result<Rc<Machine>, Explanation> {
        // Most loops are the same with all values: thousands of walks and mutants then share one machine.
        if !self.machine.depends_on_context() {
            return Ok(Rc::clone(&self.machine));
        }
        let (made, problems) = compile_with(&self.definition, KnownValues::Run(&start.context));
        made.map(Rc::new).ok_or_else(|| {
            let first = problems.iter().next().map(|problem| problem.message.clone());
            let none = || "the loop cannot be made with these variables".to_owned();
            Explanation::new(first.unwrap_or_else(none))
        })
    }
}

/// A loop under test.
pub(crate) struct LoopUnderTest {
    /// Where it is.
    pub(crate) located: Located,
    /// The file as it was read.
    pub(crate) loaded: Loaded,
    /// The loop as it is.
    pub(crate) own: LoopVariant,
    source: Source,
    texts: Vec<String>,
    /// Its sub-loops.
    pub(crate) library: Library,
}

impl LoopUnderTest {
    /// Finds, reads and checks a loop, as a run does.
    pub(crate) fn find(name: &str, session: &Session<'_>) -> Result<Self, Error> {
        let prepared = session.prepare(session.find(name, false)?)?;
        let source = prepared.source();
        let texts = texts(&prepared.loaded.sources).into_iter().map(|(_, text)| text).collect();
        let Prepared { located, loaded, machine, library, .. } = prepared;
        let definition = Rc::new(loaded.definition.clone());
        let own = LoopVariant { machine: Rc::new(machine), definition };
        Ok(Self { located, loaded, own, source, texts, library })
    }

    /// Returns what has to be known to make its cases ready.
    pub(crate) fn tested<'t>(&'t self, texts: &'t [&'t str]) -> TestedLoop<'t> {
        let Self { own, loaded, source, .. } = self;
        TestedLoop { machine: &own.machine, digest: &loaded.digest, source, texts }
    }

    /// Returns the texts of its files.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.texts.iter().map(String::as_str).collect()
    }
}

/// Finds the machine of a loop that a state in the file `caller` runs by this name, and the file that it is in. No file is
/// that of the loop under test.
pub(crate) fn named(library: &mut Library, name: &str, caller: &str) -> Option<(Rc<Machine>, String)> {
    let caller = Some(Path::new(caller)).filter(|caller| !caller.as_os_str().is_empty());
    let (machine, file) = library.named(name, caller)?;
    Some((machine, file.display().to_string()))
}

impl Loops for Library {
    fn start(&mut self, request: &SubLoopRequest, around: &Start) -> Result<SubLoop, Explanation> {
        Self::start(self, request, around)
    }

    fn find(
        &mut self,
        name: &str,
        around: &LoopStart,
        start: &LoopStart,
    ) -> Result<KnownMachine, Explanation> {
        Self::find(self, name, around, &start.context)
    }
}
