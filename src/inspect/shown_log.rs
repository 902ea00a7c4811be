//! `replay`: shows the log of a run again, from its journal and what its actions printed, to sinks like those that showed
//! it first.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::bundle::names;
use crate::bundle::open::{self, Bundle, LIMITS, OpenError};
use crate::ci::Provider;
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::error::Error;
use crate::context::options::RunOptions;
use crate::engine::event::{ActionComplete, Event, Shown, Stamped};
use crate::files::transient;
use crate::journal::reader;
use crate::report::console::Verbosity;
use crate::report::numbers::{Numbering, StepNumber};
use crate::report::reading_place::{Reader, RunDownload};
use crate::report::{OutputLine, Sink, Stream, log_file};
use crate::run::printed_log::PrintedLog;
use crate::session::end::whereabouts::reader;
use crate::session::read::run_ref::RunRef;
use crate::session::start::incoming::unusable;

/// The widest window that a journal may ask for.
const WIDEST: usize = 1000;

/// How a part of a run was shown.
#[derive(Debug)]
pub(crate) struct Presentation {
    /// The CI system whose log it was; none for a person.
    pub(crate) provider: Option<Provider>,
    /// Colours, columns, and how much a person was shown.
    pub(crate) console: (bool, Option<usize>, Verbosity),
}

/// What one process did of a run: it began it, or went on with it.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// How it was shown; unknown in journals of an earlier version.
    pub(crate) look: Option<Presentation>,
    /// The tokens of its blocks, as far as they are known.
    pub(crate) tokens: Vec<String>,
    /// Where it is read about.
    pub(crate) reader: Reader,
    /// Its first event and the last one to show.
    span: (u64, u64),
}

/// A run that is shown again.
struct ReplayRun {
    journal: PathBuf,
    log: PathBuf,
    parts: Vec<Part>,
    /// What stands before the output of each action in the log file.
    headers: Vec<(u64, String)>,
    /// Whether its steps are the items of a plan, which no log has shown.
    is_merge: bool,
    _unpacked: Option<TempDir>,
}

impl Session<'_> {
    /// Shows a run again to the sinks that `sink` makes, one for each part, up to the verdict of a step. Returns how the
    /// sinks took it.
    ///
    /// # Errors
    /// There is no such run or step, or its journal or bundle cannot be read.
    pub(crate) fn replay(
        &self,
        name: Option<&str>,
        until: Option<&StepNumber>,
        sink: &mut dyn FnMut(&Part) -> Box<dyn Sink>,
    ) -> Result<io::Result<()>, Error> {
        let told = self.told_run(name, until)?;
        if !told.is_merge && told.parts.iter().any(|part| part.look.is_none()) {
            self.talk.warning("an earlier version wrote the journal: how the log looked is not known");
        }
        Ok(told.show(sink))
    }

    fn told_run(&self, name: Option<&str>, until: Option<&StepNumber>) -> Result<ReplayRun, Error> {
        let run = match RunRef::parse(name, self)? {
            RunRef::Here(run) => run,
            RunRef::Brought { path, shown } => {
                let unpacked = unpacked(&path).map_err(|error| unusable(&shown, &error))?;
                let (journal, log) = (unpacked.path().join(names::JOURNAL), unpacked.path().join(names::LOG));
                let of = |_: &Option<Presentation>| Reader {
                    remote: Some(RunDownload::Bundle(shown.clone())),
                    ..Reader::default()
                };
                return ReplayRun::read(journal, log, &shown, until, &of, Some(unpacked));
            }
            RunRef::Artifact(what) => return Err(RunRef::not_fetched(&what)),
        };
        let home = run.files.loops().parent().unwrap_or(run.files.loops());
        let of = |look: &Option<Presentation>| {
            let provider = look.as_ref().and_then(|look| look.provider.clone());
            let audience = provider.map_or(Audience::Person, Audience::Ci);
            reader(home, &run.files, &RunOptions { audience, ..RunOptions::default() }, self)
        };
        ReplayRun::read(run.files.journal(), run.files.log(), run.files.instance(), until, &of, None)
    }
}

fn unpacked(path: &Path) -> Result<TempDir, OpenError> {
    let (found, unpacked) = (transient::directory("")?, transient::directory("")?);
    let file = open::locate(path, found.path(), LIMITS)?;
    Bundle::open(&file, LIMITS)?.extract(unpacked.path())?;
    Ok(unpacked)
}

impl ReplayRun {
    fn read(
        journal: PathBuf,
        log: PathBuf,
        name: &str,
        until: Option<&StepNumber>,
        of: &dyn Fn(&Option<Presentation>) -> Reader,
        unpacked: Option<TempDir>,
    ) -> Result<Self, Error> {
        let (parts, headers) = (Vec::new(), Vec::new());
        let mut told = Self { journal, log, parts, headers, is_merge: false, _unpacked: unpacked };
        let (mut numbering, mut is_over, mut last) = (Numbering::default(), false, None);
        let read = reader::read(&told.journal, |stamped| {
            let number = numbering.event(&stamped);
            // Numbered all the same, because the steps of this run go on from there, but shown by the run before alone.
            if stamped.inherited {
                return;
            }
            if let Event::LoopStart(start) = &stamped.event {
                told.is_merge |= start.merges.is_some();
            }
            // Of the whole journal, wherever the replay stops: the log file is cut into actions at these lines.
            if let Some(header) = log_file::header(&stamped) {
                told.headers.push((stamped.seq, header));
            }
            if is_over {
                return;
            }
            last.clone_from(&number);
            let begins = matches!(stamped.event, Event::LoopResume(_)) && stamped.depth == 0;
            if told.parts.is_empty() || begins {
                told.parts.push(Part { span: (stamped.seq, stamped.seq), ..Part::default() });
            }
            if let Some(part) = told.parts.last_mut() {
                part.span.1 = stamped.seq;
                part.takes(&stamped.shown);
            }
            let is_verdict = matches!(stamped.event, Event::Route { .. });
            is_over = is_verdict && until.is_some() && number.as_ref() == until;
        });
        read.map_err(|error| Error::failed(format!("run {name}"), &error))?;
        if let Some(until) = until.filter(|until| !is_over && last.as_ref() != Some(until)) {
            return Err(Error::refused(format!("run {name} has no step {until} with a verdict"))
                .with_hint(format!("`ll-loop report {name}` shows its steps")));
        }
        for part in &mut told.parts {
            part.reader = of(&part.look);
        }
        Ok(told)
    }

    fn show(&self, sink: &mut dyn FnMut(&Part) -> Box<dyn Sink>) -> io::Result<()> {
        let mut printed = PrintedLog::open(&self.log, &self.headers);
        self.parts.iter().try_for_each(|part| self.show_part(part, sink(part).as_mut(), &mut printed))
    }

    fn show_part(&self, part: &Part, sink: &mut dyn Sink, printed: &mut PrintedLog<'_>) -> io::Result<()> {
        let mut shown = Ok(());
        let read = reader::read(&self.journal, |stamped| {
            if shown.is_err() || stamped.seq > part.span.1 {
                return;
            }
            if stamped.seq < part.span.0 {
                sink.past(&stamped);
                return;
            }
            shown = between(&stamped, sink, printed);
            if stamped.depth == 0 && matches!(stamped.event, Event::LoopComplete(_)) {
                sink.ends();
            }
            if shown.is_ok() {
                shown = sink.event(&stamped);
            }
            if matches!(stamped.event, Event::ActionStart { .. }) {
                printed.begin(stamped.seq);
            }
        });
        shown?;
        read.map_err(io::Error::other)?;
        // What ran when the process was killed, as far as it is kept.
        printed.try_for_each(|line| sink.output(line.shown()))
    }
}

impl Part {
    fn takes(&mut self, shown: &[Shown]) {
        for shown in shown {
            match shown {
                Shown::Look { provider, colour, width, verbosity } => {
                    let provider = provider.as_deref().and_then(|name| Provider::by_name(name, &|_| None));
                    let verbosity = Verbosity::from_word(verbosity).unwrap_or(Verbosity::Normal);
                    let console = (*colour, width.map(|width| width.min(WIDEST)), verbosity);
                    self.look = Some(Presentation { provider, console });
                }
                // A token that a stranger wrote is no more than a token.
                Shown::Token(token) if token.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                    self.tokens.push(token.clone());
                }
                Shown::Token(_) | Shown::Still { .. } => {}
            }
        }
    }
}

/// Shows what came before an event: the output of the action that it ends, and the lines in its silences.
fn between(stamped: &Stamped, sink: &mut dyn Sink, printed: &mut PrintedLog<'_>) -> io::Result<()> {
    // Where there is no line at all, the log is gone or has ended before, and what is missing is said, too.
    let (mut kept, mut is_bounded) = (0, true);
    let mut lines = printed.inspect(|line| {
        kept += line.text.len() as u64 + 1;
        is_bounded = line.is_end();
    });
    let mut before = 0;
    for shown in &stamped.shown {
        if let Shown::Still { lines: said, took_ms } = shown {
            let more = usize::try_from(said.saturating_sub(before)).unwrap_or(usize::MAX);
            lines.by_ref().take(more).try_for_each(|line| sink.output(line.shown()))?;
            before = before.max(*said);
            sink.still(Duration::from_millis(*took_ms))?;
        }
    }
    lines.try_for_each(|line| sink.output(line.shown()))?;
    let Event::ActionComplete(ActionComplete { seen, .. }) = &stamped.event else { return Ok(()) };
    let missing = (seen.stdout.bytes() + seen.stderr.bytes()).saturating_sub(kept);
    if !is_bounded || missing == 0 {
        return Ok(());
    }
    let text = format!("… {missing} bytes not kept");
    sink.output(OutputLine { stream: Stream::Stdout, text: &text })
}
