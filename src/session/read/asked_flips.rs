//! Asks the machine of a run what other verdicts would have led to. Only reads.

use std::path::PathBuf;
use std::rc::Rc;

use crate::base::explanation::Explanation;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::definition::load::{self, Located};
use crate::engine::event::{LoopStart, SCHEMA};
use crate::files::read::MIB;
use crate::journal::files::RunFiles;
use crate::journal::reader;
use crate::report::digest::Digest;
use crate::report::digest::flips::Otherwise;
use crate::run::other_verdicts::{ExaminedVerdicts, Suppositions};
use crate::run::replay::KnownMachine;
use crate::session::prepare::prepared::Prepared;

/// Of a longer journal, only `why` says what another verdict would have led to: reports are not kept waiting.
const MAX_JOURNAL: u64 = 8 * MIB;

/// The run that is asked about.
pub(crate) struct AskedRun {
    /// Its journal.
    pub(crate) journal: PathBuf,
    /// The loop file, and the directory that it is looked for from; nothing if it is not in this checkout.
    pub(crate) file: Option<(String, PathBuf)>,
}

impl AskedRun {
    /// Makes it of a run of this machine.
    pub(crate) fn of(files: &RunFiles, start: Option<&LoopStart>) -> Self {
        let home = files.loops().parent().unwrap_or(files.loops()).to_owned();
        Self { journal: files.journal(), file: start.map(|start| (start.source.file.clone(), home)) }
    }

    /// Makes it of the run in a bundle.
    pub(crate) fn of_bundle(opened: &OpenedBundle, session: &Session<'_>) -> Self {
        // Where the journal says that the file is may be anywhere.
        let file = opened.manifest.file.as_ref().map(|file| file.as_str().to_owned());
        let file = file.and_then(|file| {
            let mut homes = load::ancestors(&session.cwd).into_iter();
            let home = homes.find(|home| load::find(&file, home).is_ok())?;
            Some((file, home))
        });
        Self { journal: opened.journal(), file }
    }
}

/// Says it for the reports of a run.
pub(crate) fn of_run(files: &RunFiles, digest: &Digest, session: &Session<'_>) -> Otherwise {
    let Some(start) = digest.start() else { return Otherwise::default() };
    let subject = AskedRun::of(files, Some(start));
    if fs_err::metadata(&subject.journal).is_ok_and(|about| about.len() > MAX_JOURNAL) {
        return Otherwise::default();
    }
    of(&subject, start, ExaminedVerdicts::LastOf(digest.verdicts()), session)
}

/// Says it, or why it cannot be said.
pub(crate) fn of(
    subject: &AskedRun,
    start: &LoopStart,
    looked: ExaminedVerdicts,
    session: &Session<'_>,
) -> Otherwise {
    asked(subject, start, looked, session)
        .unwrap_or_else(|unknown| Otherwise { unknown: Some(unknown.into()), ..Otherwise::default() })
}

/// Makes the loop of a run as it was then, or says why that cannot be done.
pub(crate) fn loop_of(
    subject: &AskedRun,
    start: &LoopStart,
    session: &Session<'_>,
) -> Result<Prepared, Explanation> {
    if start.schema > SCHEMA {
        return Err(Explanation::new("a newer version of ll-loop wrote the journal"));
    }
    let absent = || Explanation::new("the loop is not in this checkout");
    let (file, home) = subject.file.as_ref().ok_or_else(absent)?;
    let located = load::find(file, home).map_err(|_| absent())?;
    // A loop that was broken since is not worth its errors.
    if digest_of(&located).is_none_or(|digest| digest != start.definition_sha256) {
        return Err(Explanation::new("the loop is not what it was then"));
    }
    let mut prepared = session.at(home).prepare(located)?;
    prepared.settle(&start.context, session)?;
    Ok(prepared)
}

fn asked(
    subject: &AskedRun,
    start: &LoopStart,
    looked: ExaminedVerdicts,
    session: &Session<'_>,
) -> Result<Otherwise, Explanation> {
    let mut prepared = loop_of(subject, start, session)?;
    let outermost =
        KnownMachine { machine: Rc::new(prepared.machine.clone()), digest: prepared.loaded.digest.clone() };
    let library = &mut prepared.library;
    let mut find =
        |name: &str, around: &LoopStart, begun: &LoopStart| library.find(name, around, &begun.context);
    let mut suppositions = Suppositions::new(outermost, &mut find, looked);
    reader::read(&subject.journal, |stamped| suppositions.event(&stamped))?;
    Ok(suppositions.finish())
}

fn digest_of(located: &Located) -> Option<String> {
    load::load(located).ok().map(|loaded| loaded.digest)
}
