//! Gets the values of `--each` and `--per-path`: from files, commands, and the directories that git tracks.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use globset::GlobBuilder;

use crate::base::name::VarName;
use crate::base::text::{one_line, plural};
use crate::base::time::human;
use crate::context::error::{Error, Kind};
use crate::context::interrupts::Interrupts;
use crate::context::{Session, binding};
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::fanout::MOST_ITEMS;
use crate::fanout::each::{Each, ValueSource, of_file, of_lines};
use crate::fanout::spread::Dimension;
use crate::files::read::{self, MIB};
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::process::guard_pipe::Guard;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// The most bytes of values.
// Over a KiB for each item of the largest plan; a command that prints without an end must not fill the memory.
const MAX: u64 = 16 * MIB;

/// How long a command may take to print them.
// A command that hangs must not keep the job until the CI system ends it.
const PATIENCE: Duration = Duration::from_mins(10);

/// The mode of a submodule in the index of git.
const SUBMODULE: &str = "160000 ";

/// The parameter of `--per-path`.
pub(super) const PATH: &str = "path";

/// Gets the values of a parameter.
pub(super) fn each(each: Each, root: &Path, session: &Session<'_>) -> Result<Dimension, Error> {
    let Each { name, values } = each;
    let values = match values {
        ValueSource::Listed(values) => values,
        ValueSource::File(file) => {
            let text = read::text(&session.path(Path::new(&file)), MAX);
            let text = text.map_err(|error| {
                Error::refused(format!("cannot read the values of `{name}` from `{file}`: {error}"))
            })?;
            of_file(&text)
                .map_err(|error| Error::refused(format!("the values of `{name}` in `{file}`: {error}")))?
        }
        ValueSource::Command(argv) => printed(&argv, &name, root, session)?,
    };
    if let Some(odd) = values.iter().find(|value| value.contains('\0')) {
        let shown = one_line(odd, 100);
        return Err(Error::refused(format!(
            "a value of `{name}` has a NUL byte, which no program takes: `{shown}`"
        )));
    }
    Ok(once(name, values, session))
}

/// Drops values that came before, and says so.
fn once(name: VarName, values: Vec<String>, session: &Session<'_>) -> Dimension {
    let (dimension, doubles) = Dimension::of(name, values);
    if doubles > 0 {
        let count = plural(doubles as u64, "value");
        session.talk.note(&format!(
            "{count} of `{}` came again and {} dropped",
            dimension.name,
            if doubles == 1 { "was" } else { "were" }
        ));
    }
    dimension
}

/// Runs the command, and takes each line that it prints for a value.
fn printed(
    argv: &[String],
    name: &VarName,
    root: &Path,
    session: &Session<'_>,
) -> Result<Vec<String>, Error> {
    binding::starting(&format!("`--each {name}=cmd:…`, which nothing confines"), root, session)?;
    let program = Program {
        argv: argv.to_vec(),
        env: session.env.for_actions(false).into_iter().collect(),
        cwd: Some(root.to_owned()),
        stdin: None,
        guard: Guard::default(),
    };
    let mut stdout = Vec::new();
    let mut is_cut = false;
    let interrupts = Interrupts::listen(&session.stop_by)?;
    let mut cancel = interrupts.cancel();
    let mut keep = |stream: Stream, bytes: &[u8]| {
        if stream == Stream::Stdout {
            is_cut |= (stdout.len() + bytes.len()) as u64 > MAX;
            if is_cut {
                return Heard::Stop(Stop::Cancelled);
            }
            stdout.extend_from_slice(bytes);
        }
        Heard::More
    };
    let limits = ProcessLimits { end: Some((PATIENCE, Stop::Timeout)), ..ProcessLimits::default() };
    let ran = spawn::run(&program, limits, &mut cancel, &mut keep);
    let seen = interrupts.block_on(ran);
    let shown = one_line(&argv.join(" "), 200);
    // Before the failure: the stop that this led to would read like an interruption.
    if is_cut {
        return Err(Error::refused(format!("`{shown}` printed more than 16 MiB of values for `{name}`")));
    }
    if let Some(why) = failure(&seen) {
        let error = Error::refused(format!("the values of `{name}` are not known: `{shown}` {why}"));
        return Err(match interrupts.cancel().signal() {
            Some(signal) => error.of_kind(Kind::Interrupted(crate::run::named(signal))),
            None => error.with_hint(
                "a plan without them would leave items out; run the command by itself to see why it fails",
            ),
        });
    }
    match String::from_utf8(stdout) {
        Ok(text) => Ok(of_lines(&text)),
        Err(_) => Err(Error::refused(format!("`{shown}` printed values for `{name}` that are not UTF-8"))),
    }
}

fn failure(seen: &Observation) -> Option<String> {
    if seen.succeeded() {
        return None;
    }
    let last =
        || seen.stderr.as_str().lines().rfind(|line| !line.trim().is_empty()).map(|line| one_line(line, 200));
    if seen.stop == Some(Stop::Timeout) {
        return Some(format!("did not end within {}", human(PATIENCE)));
    }
    Some(match (&seen.failure, seen.signal) {
        (Some(failure), _) => format!("could not be run: {}", one_line(failure, 200)),
        (None, Some(_)) => "was ended by a signal".to_owned(),
        (None, None) => match last() {
            Some(said) => format!("ended with exit code {}: {said}", seen.exit_code),
            None => format!("ended with exit code {}", seen.exit_code),
        },
    })
}

/// Finds the directories with tracked files that match the pattern, as seen from `root`. Where none does, a pattern such as
/// `**/go.mod`, which ends with the name of a file, finds the directories of these files.
pub(super) fn per_path(pattern: &str, git: &Git, session: &Session<'_>) -> Result<Dimension, Error> {
    let clean = pattern.trim_end_matches('/');
    let clean = clean.strip_prefix("./").unwrap_or(clean);
    let wrong = |why: String| Error::refused(format!("`--per-path {pattern}`: {why}"));
    // `*` stays within a directory, so that `packages/*` means those right below.
    let glob = GlobBuilder::new(clean).literal_separator(true).build();
    let glob = glob.map_err(|error| wrong(error.kind().to_string()))?.compile_matcher();
    // With `--stage`, because only the mode tells a submodule from a file.
    let tracked = git.line(&Call::new("ls-files").with(&["--stage", "-z"]));
    let tracked = tracked.map_err(|why| wrong(format!("cannot list the files of the repository: {why}")))?;
    let (submodules, files): (Vec<_>, Vec<_>) = tracked
        .split('\0')
        .filter_map(|entry| entry.split_once('\t'))
        .partition(|(entry, _)| entry.starts_with(SUBMODULE));
    let files: Vec<&str> = files.into_iter().map(|(_, file)| file).collect();
    let directories = files.iter().flat_map(|file| file.match_indices('/').map(|(end, _)| &file[..end]));
    let directories: BTreeSet<&str> =
        directories.chain(submodules.into_iter().map(|(_, path)| path)).collect();
    let mut found: BTreeSet<&str> =
        directories.into_iter().filter(|directory| glob.is_match(directory)).collect();
    if found.is_empty() && ends_with_name(clean) {
        let matching = files.iter().filter(|file| glob.is_match(file));
        found = matching.map(|file| file.rsplit_once('/').map_or(".", |(directory, _)| directory)).collect();
    }
    if found.is_empty() {
        // What a command lists may well be nothing on some day, but a pattern that matches nothing is rarely meant.
        session.talk.warning(&format!(
            "no directory with tracked files matches `{pattern}`, so nothing is checked: is the pattern right, as seen from the root of the repository?"
        ));
    }
    if found.len() > MOST_ITEMS {
        return Err(wrong(format!(
            "{} directories match; a plan has at most {MOST_ITEMS} items",
            found.len()
        )));
    }
    let name = VarName::parse(PATH).expect("it is a name");
    Ok(once(name, found.into_iter().map(str::to_owned).collect(), session))
}

/// Whether the last part of a pattern is a name, and not itself a pattern: `packages/*` is not meant to find the directory
/// of `packages/README.md`.
fn ends_with_name(pattern: &str) -> bool {
    let last = pattern.rsplit('/').next().unwrap_or(pattern);
    !last.contains(['*', '?', '[', ']', '{', '}', '\\'])
}
