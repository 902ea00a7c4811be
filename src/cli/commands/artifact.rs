//! `ll-loop artifact`: files are stored with the run that is going on, and fetched from it or from another one.

use crate::base::text::plural;
use crate::ci::archive::{ArchiveError, pack, unpack};
use crate::ci::github::artifacts::PREFIX;
use crate::ci::github::results::{Results, absent, check_name, expiry};
use crate::cli::args::{ArtifactArgs, DownloadArgs, UploadArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::files::unzip::{UnzipError, UnzipLimits};
use crate::run::clock::Clock;

use super::fetch::{Asked, fault, mask};

const LIMITS: UnzipLimits = UnzipLimits { entries: 100_000, bytes: 16 << 30 };

pub(in crate::cli) fn artifact(args: &ArtifactArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    match args {
        ArtifactArgs::Upload(args) => upload(args, env, output),
        ArtifactArgs::Download(args) => download(args, env, output),
    }
}

fn upload(args: &UploadArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let name = &args.name;
    let failed = |error| fault(format!("`{name}` is not stored"), &error);
    check_name(name).map_err(|error| fault("nothing is stored".to_owned(), &error))?;
    let results = Results::from_env(&env.lookup()).map_err(failed)?.ok_or_else(|| {
        let message = format!("`{name}` is not stored: there is no artifact service here");
        CliError::invalid(message).help(absent(&env.lookup())).code(exit::UNAVAILABLE)
    })?;
    let mut zip = tempfile::NamedTempFile::new()
        .map_err(|error| CliError::failed("there is no place for a temporary file", &error))?;
    let packed = pack(&args.paths, zip.as_file_mut())
        .map_err(|error| archive(format!("`{name}` is not stored"), &error).before_the_run())?;
    for path in &packed.left_out {
        output.warning(&format!("`{}` is left out: it is a link or a special file", path.display()));
    }
    let expires = args.retention_days.map(|days| expiry(days, &env.lookup(), Clock::start().now()));
    let uploaded = results.upload(name, zip.path(), expires).map_err(failed)?;
    mask(&uploaded.secrets, env, output);
    let count = plural(packed.names.len() as u64, "file");
    let (id, size, digest) = (uploaded.id, uploaded.size, uploaded.digest);
    output.data(&format!("stored `{name}`: {count}, {size} bytes, {digest}, id {id}\n"));
    Ok(0)
}

fn download(args: &DownloadArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let mut zip = tempfile::tempfile()
        .map_err(|error| CliError::failed("there is no place for a temporary file", &error))?;
    let asked = Asked {
        what: &args.what,
        run: args.run,
        repository: args.repo.as_deref(),
        prefix: PREFIX,
        allow_untrusted: false,
        env,
        output,
    };
    let (name, fetched) = asked.fetch(&mut zip)?;
    let files = unpack(&mut zip, &args.to, LIMITS)
        .map_err(|error| archive(format!("`{name}` is not unpacked"), &error))?;
    let count = plural(files.len() as u64, "file");
    let (id, size, digest) = (fetched.id, fetched.size, fetched.digest);
    output.data(&format!("fetched `{name}`: {count}, {size} bytes, {digest}, id {id}\n"));
    Ok(0)
}

fn archive(what: String, error: &ArchiveError) -> CliError {
    let help = match error {
        ArchiveError::Empty(_) => "hidden files count, links and empty directories do not",
        ArchiveError::Name { .. } => "rename it, or pack it yourself",
        ArchiveError::Unzip(UnzipError::NotZip) => {
            "it was stored with `archive: false`: use actions/download-artifact"
        }
        ArchiveError::Unzip(UnzipError::Entry { .. } | UnzipError::Duplicate) => {
            "do not use it: no honest tool packs this"
        }
        ArchiveError::Exists(_) => "unpack into an empty directory",
        ArchiveError::Unzip(_) | ArchiveError::Zip(_) | ArchiveError::Io(_) => {
            return CliError::failed(what, error);
        }
    };
    CliError::failed(what, error).help(help)
}
