//! Looks closer at a run, for reports that show every step: reads its journal again beside what its actions printed, draws
//! its loop, compares snapshots of its tree.

use std::path::Path;

use super::asked_flips::{self, AskedRun};
use super::run_snapshots::DiffLimits;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::engine::event::Stamped;
use crate::journal::files::RunFiles;
use crate::journal::reader;
use crate::report::detail::{Detail, Printed as PrintedTails, TailOfLines};
use crate::report::digest::Digest;
use crate::report::graph::Graph;
use crate::report::{Stream, log_file};
use crate::run::printed_log::PrintedLog;

/// How much of what steps changed is shown.
const DIFFS: DiffLimits = DiffLimits { each: 64 * 1024, all: 1 << 20 };

/// Looks closer at a run of this machine. A journal that cannot be read to its end is shown as far as it can be.
pub(crate) fn of_run(
    files: &RunFiles,
    unwritten: Option<&Stamped>,
    digest: &Digest,
    session: &Session<'_>,
) -> Detail {
    let subject = AskedRun::of(files, digest.start());
    let mut detail = read(&files.journal(), &files.log(), unwritten);
    detail.graph = graph(&subject, digest, session);
    detail.diffs = session.step_diffs(files, DIFFS);
    detail
}

/// Looks closer at the run in a bundle.
pub(crate) fn of_bundle(opened: &OpenedBundle, digest: &Digest, session: &Session<'_>) -> Detail {
    let subject = AskedRun::of_bundle(opened, session);
    let mut detail = read(&opened.journal(), &opened.log(), None);
    detail.graph = graph(&subject, digest, session);
    detail
}

/// Returns the loop with the way of the run, or that way alone where the loop is not what it was.
fn graph(subject: &AskedRun, digest: &Digest, session: &Session<'_>) -> Graph {
    let known = digest.start().and_then(|start| asked_flips::loop_of(subject, start, session).ok());
    known.map(|prepared| Graph::of_machine(&prepared.machine)).unwrap_or_default().with_run(digest)
}

fn read(journal: &Path, log: &Path, unwritten: Option<&Stamped>) -> Detail {
    let mut headers = Vec::new();
    let _as_far_as_it_goes = reader::read(journal, |stamped| {
        // Inherited events were printed to the log of another run.
        headers.extend(
            log_file::header(&stamped).filter(|_| !stamped.inherited).map(|header| (stamped.seq, header)),
        );
    });
    // The journal is read twice: what an action printed can only be found in the log once all headers are known.
    let mut printed = PrintedLog::open(log, &headers);
    let mut detail = Detail::default();
    let _as_far_as_it_goes = reader::read(journal, |stamped| {
        printed.begin(stamped.seq);
        detail.event(&stamped, tails(&mut printed));
    });
    if let Some(last) = unwritten {
        detail.event(last, PrintedTails::default());
    }
    detail.finish();
    detail
}

fn tails(lines: &mut PrintedLog<'_>) -> PrintedTails {
    let (mut stdout, mut stderr) = (TailOfLines::default(), TailOfLines::default());
    for line in lines.filter(|line| !line.is_end()) {
        match line.stream {
            Stream::Stdout => stdout.push(&line.text),
            Stream::Stderr => stderr.push(&line.text),
        }
    }
    PrintedTails { stdout: stdout.end(), stderr: stderr.end() }
}
