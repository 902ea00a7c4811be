//! `ll-loop artifact`: uploads files to the current run of GitHub Actions, and downloads them from it or from
//! another run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use globset::{Glob, GlobMatcher};

use crate::base::text::plural;
use crate::base::time::Since;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::files::transient;
use crate::files::unzip::{UnzipError, UnzipLimits};
use crate::forge::archive::{ArchiveError, pack, unpack};
use crate::forge::github::artifacts::RunsMeant;
use crate::forge::github::results::{Results, absent, check_name, expiry};
use crate::process::clock::Clock;
use crate::session::read::fetch::{ArtifactRequest, fault, say_undigested};

// Against zip bombs: what a job has stored is not ours, and may be put together to fill the disk.
const LIMITS: UnzipLimits = UnzipLimits { entries: 100_000, bytes: 16 << 30 };

/// The commands about artifacts.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ArtifactArgs {
    /// Upload files and directories to the current run of the workflow
    Upload(UploadArgs),
    /// Download an artifact of the current run of the workflow or of another one
    Download(DownloadArgs),
}

/// The arguments of `artifact upload`.
#[derive(Debug, Args)]
pub(in crate::cli) struct UploadArgs {
    /// The name of the artifact, which has to be new in this run
    pub(super) name: String,
    /// Files and directories
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Keep it so many days, but no longer than the repository keeps artifacts
    // GitHub keeps no artifact for longer than 400 days.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=400))]
    pub(super) retention_days: Option<u32>,
}

/// The arguments of `artifact download`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DownloadArgs {
    /// The name of an artifact; a pattern with `*` for those of this run, each into a directory of its name, or with `--since` for those
    /// of all runs; or `run:ID` or `run:latest` for the `ll-loop-` artifact of the last attempt of a run
    #[arg(value_name = "NAME|PATTERN|run:ID|run:latest")]
    pub(super) what: String,
    /// The directory to unpack it into
    #[arg(long, value_name = "DIR")]
    pub(super) to: PathBuf,
    /// Look in this repository instead of `GITHUB_REPOSITORY`
    #[arg(long, value_name = "OWNER/NAME")]
    pub(super) repo: Option<String>,
    /// Look for the name only in this run
    #[arg(long, value_name = "ID")]
    pub(super) run: Option<u64>,
    /// Fetch what fits of all runs that was stored since then (`7d`, `2026-11-20`), each as the zip file that it is, named after its id;
    /// what is there is not fetched again
    #[arg(long, value_name = "DURATION|DATE", conflicts_with = "run")]
    pub(super) since: Option<Since>,
}

pub(in crate::cli) fn artifact(
    args: &ArtifactArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    match args {
        ArtifactArgs::Upload(args) => upload(args, session, output),
        ArtifactArgs::Download(args) => download(args, session, output),
    }
}

fn upload(args: &UploadArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let name = &args.name;
    let failed = |error| fault(format!("cannot store `{name}`"), &error);
    // Before anything is packed, which may take long.
    check_name(name).map_err(|error| fault("cannot store an artifact".to_owned(), &error))?;
    let results = Results::from_env(&session.env.lookup()).map_err(failed)?.ok_or_else(|| {
        let message = format!("cannot store `{name}`: this job offers no artifact service");
        Error::refused(message).with_hint(absent(&session.env.lookup())).of_kind(Kind::Unavailable)
    })?;
    let mut zip =
        transient::file("", "").map_err(|error| Error::failed("cannot create a temporary file", &error))?;
    let packed = pack(&args.paths, zip.as_file_mut())
        .map_err(|error| archive(format!("cannot store `{name}`"), &error).of_kind(Kind::Refused))?;
    for path in &packed.left_out {
        output.warning(&format!("`{}` is left out: it is a link or a special file", path.display()));
    }
    let expires = args.retention_days.map(|days| expiry(days, &session.env.lookup(), Clock::start().now()));
    let uploaded = results.upload(name, zip.path(), expires).map_err(failed)?;
    // The signed addresses of the upload: with them, anyone could write there until they expire.
    session.mask(&uploaded.secrets);
    let count = plural(packed.names.len() as u64, "file");
    let (id, size, digest) = (uploaded.id, uploaded.size, uploaded.digest);
    output.data(&format!("stored `{name}`: {count}, {size} bytes, {digest}, id {id}\n"));
    Ok(0)
}

fn download(args: &DownloadArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    if let Some(since) = args.since {
        return download_since(since, args, session, output);
    }
    let mut undigested = Vec::new();
    // GitHub takes no `*` in the name of an artifact, so it always means a pattern.
    if args.what.contains('*') {
        let names = fitting(args, session)?;
        if names.is_empty() {
            output.talk(&format!("no artifact of this run fits `{}`\n", args.what));
        }
        for name in names {
            undigested.extend(download_one(&name, &args.to.join(&name), args, session, output)?);
        }
    } else {
        undigested.extend(download_one(&args.what, &args.to, args, session, output)?);
    }
    let undigested: Vec<&str> = undigested.iter().map(String::as_str).collect();
    say_undigested(&undigested, session);
    Ok(0)
}

/// Fetches what fits of all runs since a moment.
fn download_since(
    since: Since,
    args: &DownloadArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let pattern = pattern(&args.what)?;
    let request = request(&args.what, args, session);
    let to = session.path(&args.to);
    let since = since.from(Clock::start().now());
    let all = request.fetch_since(|name| pattern.is_match(name), since, &to)?;
    let count = plural(all.fetched, "artifact");
    output.data(&format!("fetched {count} of {}, and {} were there\n", all.repository, all.known));
    Ok(0)
}

fn pattern(what: &str) -> Result<GlobMatcher, Error> {
    let pattern =
        Glob::new(what).map_err(|error| Error::refused(format!("invalid pattern `{what}`: {error}")))?;
    Ok(pattern.compile_matcher())
}

fn request<'r>(what: &'r str, args: &'r DownloadArgs, session: &'r Session<'_>) -> ArtifactRequest<'r> {
    ArtifactRequest {
        what,
        run: args.run,
        repository: args.repo.as_deref(),
        runs: RunsMeant::of_loop(None, None),
        allow_untrusted: false,
        session,
    }
}

/// Lists the artifacts of this run of the workflow whose names fit the pattern, which the job's own service knows.
fn fitting(args: &DownloadArgs, session: &Session<'_>) -> Result<BTreeSet<String>, Error> {
    let what = &args.what;
    if args.repo.is_some() || args.run.is_some() {
        let message = format!("`{what}` is looked for among the artifacts of this run alone");
        return Err(Error::refused(message).with_hint("leave out `--repo` and `--run`"));
    }
    let pattern = pattern(what)?;
    let failed = |error| fault(format!("cannot fetch `{what}`"), &error);
    let env = session.env.lookup();
    let results = Results::from_env(&env).map_err(failed)?.ok_or_else(|| {
        let message = format!("cannot fetch `{what}`: this job offers no artifact service");
        Error::refused(message).with_hint(absent(&env)).of_kind(Kind::Unavailable)
    })?;
    let names = results.list(None).map_err(failed)?.into_iter().map(|listed| listed.name);
    // A name becomes that of a directory.
    let is_plain = |name: &str| check_name(name).is_ok() && !name.starts_with('.');
    Ok(names.filter(|name| pattern.is_match(name) && is_plain(name)).collect())
}

/// Fetches one artifact. Returns its name if it has no digest.
fn download_one(
    what: &str,
    to: &Path,
    args: &DownloadArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<Option<String>, Error> {
    // Without a name: nothing is left of it, however this ends.
    let mut zip =
        tempfile::tempfile().map_err(|error| Error::failed("cannot create a temporary file", &error))?;
    let request = request(what, args, session);
    let (name, fetched) = request.fetch(&mut zip)?;
    let files =
        unpack(&mut zip, to, LIMITS).map_err(|error| archive(format!("cannot unpack `{name}`"), &error))?;
    let count = plural(files.len() as u64, "file");
    let (id, size, digest) = (fetched.id, fetched.size, fetched.digest);
    output.data(&format!("fetched `{name}`: {count}, {size} bytes, {digest}, id {id}\n"));
    Ok((!fetched.verified).then_some(name))
}

fn archive(what: String, error: &ArchiveError) -> Error {
    let help = match error {
        ArchiveError::Empty(_) => "hidden files count, links and empty directories do not",
        ArchiveError::Name { .. } => "rename it, or pack it yourself",
        ArchiveError::Unzip(UnzipError::NotZip) => {
            "it was stored with `archive: false`: use actions/download-artifact"
        }
        ArchiveError::Unzip(UnzipError::Entry { .. } | UnzipError::Duplicate) => {
            "do not use it: it may be an attack, for no usual tool writes such files"
        }
        ArchiveError::Exists(_) => "unpack into an empty directory",
        ArchiveError::Unzip(_) | ArchiveError::Zip(_) | ArchiveError::Io(_) => {
            return Error::failed(what, error);
        }
    };
    Error::failed(what, error).with_hint(help)
}
