//! `ll-loop artifact`: files are stored with the run that is going on, and fetched from it or from another one.

use std::fs::File;

use crate::base::text::plural;
use crate::ci::Provider;
use crate::ci::archive::{ArchiveError, Limits, pack, unpack};
use crate::ci::github::api::Api;
use crate::ci::github::artifacts::{
    self, Found, Origin, PREFIX, Repository, latest, named, newest, of_run, origin, repository_id,
};
use crate::ci::github::fault::ArtifactError;
use crate::ci::github::results::{Downloaded, Results, absent, check_name, expiry};
use crate::cli::args::{ArtifactArgs, DownloadArgs, UploadArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::run::clock::Clock;

/// The most bytes of a zip file that is fetched.
const MAX_ZIP: u64 = 4 << 30;

const LIMITS: Limits = Limits { entries: 100_000, bytes: 16 << 30 };

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

/// What is asked for.
enum Wanted<'a> {
    Name(&'a str),
    Run(u64),
    Latest,
}

impl<'a> Wanted<'a> {
    fn parse(text: &'a str) -> Result<Self, CliError> {
        match text.strip_prefix("run:") {
            Some("latest") => Ok(Self::Latest),
            Some(run) => run.parse().map(Self::Run).map_err(|_| {
                CliError::invalid(format!("`{text}` names no run"))
                    .help("write `run:` and the number of a run, or `run:latest`")
            }),
            None => check_name(text)
                .map(|()| Self::Name(text))
                .map_err(|error| fault("nothing is fetched".to_owned(), &error)),
        }
    }
}

fn download(args: &DownloadArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let wanted = Wanted::parse(&args.what)?;
    if args.run.is_some() && !matches!(wanted, Wanted::Name(_)) {
        let message = format!("`{}` and `--run` both name a run", args.what);
        return Err(CliError::invalid(message).help("give the name of an artifact with `--run`"));
    }
    let failed = |error| fault(format!("`{}` is not fetched", args.what), &error);
    let mut zip = tempfile::tempfile()
        .map_err(|error| CliError::failed("there is no place for a temporary file", &error))?;
    let (name, fetched) = match of_this_run(&wanted, args, env, &mut zip).map_err(failed)? {
        Some(fetched) => fetched,
        None => elsewhere(&wanted, args, env, output, &mut zip)?,
    };
    mask(&fetched.secrets, env, output);
    if !fetched.verified {
        output.warning(&format!("`{name}` has no digest that it could be compared with"));
    }
    let files = unpack(&mut zip, &args.to, LIMITS)
        .map_err(|error| archive(format!("`{name}` is not unpacked"), &error))?;
    let count = plural(files.len() as u64, "file");
    let (id, size, digest) = (fetched.id, fetched.size, fetched.digest);
    output.data(&format!("fetched `{name}`: {count}, {size} bytes, {digest}, id {id}\n"));
    Ok(0)
}

/// Fetches an artifact of the run that is going on from the runner's service, where it is there.
fn of_this_run(
    wanted: &Wanted<'_>,
    args: &DownloadArgs,
    env: &Env,
    zip: &mut File,
) -> Result<Option<(String, Downloaded)>, ArtifactError> {
    let is_this_run = |run: u64| env.get("GITHUB_RUN_ID") == Some(run.to_string().as_str());
    let is_here = args.repo.as_deref().is_none_or(|repo| env.get("GITHUB_REPOSITORY") == Some(repo));
    let run = match wanted {
        Wanted::Name(_) => args.run,
        Wanted::Run(run) => Some(*run),
        Wanted::Latest => return Ok(None),
    };
    if !is_here || !run.is_none_or(is_this_run) {
        return Ok(None);
    }
    let Some(results) = Results::from_env(&env.lookup())? else { return Ok(None) };
    let name = match wanted {
        Wanted::Name(name) => (*name).to_owned(),
        Wanted::Run(_) | Wanted::Latest => {
            let found: Vec<Found> = results.list(None)?.into_iter().map(Found::from).collect();
            latest(&found).map(|found| found.name.clone()).ok_or_else(nothing_of_a_loop)?
        }
    };
    match results.download(&name, zip, MAX_ZIP) {
        Ok(fetched) => Ok(Some((name, fetched))),
        // Without `--run`, another run may have it.
        Err(ArtifactError::Absent(_)) if run.is_none() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fetches an artifact through the REST API, and only one that the repository's own code made.
fn elsewhere(
    wanted: &Wanted<'_>,
    args: &DownloadArgs,
    env: &Env,
    output: &Output,
    zip: &mut File,
) -> Result<(String, Downloaded), CliError> {
    let here = env.get("GITHUB_REPOSITORY");
    let repository = args.repo.as_deref().or(here).ok_or_else(|| {
        CliError::invalid("no repository is named")
            .help("give `--repo OWNER/NAME`, or set `GITHUB_REPOSITORY`")
    })?;
    let parsed = Repository::parse(repository).ok_or_else(|| {
        CliError::invalid(format!("`{repository}` is no repository")).help("write `OWNER/NAME`")
    })?;
    let token = env.get("GITHUB_TOKEN").or_else(|| env.get("GH_TOKEN")).map(str::to_owned);
    let failed = |error: ArtifactError| fault(format!("`{}` is not fetched", args.what), &error);
    let api = Api::from_env(&env.lookup(), token).map_err(|error| failed(error.into()))?;
    let own = env.get("GITHUB_REPOSITORY_ID").filter(|_| here == Some(repository));
    let own = match own.and_then(|id| id.parse().ok()) {
        Some(id) => id,
        None => repository_id(&api, &parsed).map_err(failed)?,
    };
    let found = find(wanted, args.run, &api, &parsed, own, env).map_err(failed)?;
    match origin(&found, Some(own)) {
        Origin::Own => {}
        Origin::Unknown => {
            output.warning(&format!("the server does not say whose code made `{}`", found.name));
        }
        Origin::Foreign => {
            let message = format!("`{}` was made by code that is not that of `{repository}`", found.name);
            let help = "a pull request from a fork stores its artifacts here too; look at the run before you use them";
            return Err(CliError::invalid(message).help(help));
        }
    }
    let fetched = artifacts::download(&api, &parsed, &found, zip, MAX_ZIP).map_err(failed)?;
    Ok((found.name, fetched))
}

/// Finds the artifact that is meant. Own ones that are still there come first, whatever else there is.
fn find(
    wanted: &Wanted<'_>,
    run: Option<u64>,
    api: &Api,
    repository: &Repository,
    own: u64,
    env: &Env,
) -> Result<Found, ArtifactError> {
    let run = match wanted {
        Wanted::Name(name) => {
            let mut found = match run {
                Some(run) => of_run(api, repository, run)?,
                None => named(api, repository, name)?,
            };
            found.retain(|found| found.name == *name);
            let this: Option<u64> = env.get("GITHUB_RUN_ID").and_then(|run| run.parse().ok());
            let rank = |found: &Found| {
                let is_own = origin(found, Some(own)) != Origin::Foreign;
                (is_own, !found.expired, this.is_some() && found.run_id == this, found.id)
            };
            let place = run.map_or_else(String::new, |run| format!(" in run {run}"));
            return found
                .into_iter()
                .max_by_key(rank)
                .ok_or_else(|| ArtifactError::Absent(format!("`{name}`{place}")));
        }
        Wanted::Run(run) => *run,
        Wanted::Latest => {
            let newest = newest(api, repository, PREFIX, Some(own))?.ok_or_else(nothing_of_a_loop)?;
            let Some(run) = newest.run_id else { return Ok(newest) };
            run
        }
    };
    latest(&of_run(api, repository, run)?).cloned().ok_or_else(nothing_of_a_loop)
}

fn nothing_of_a_loop() -> ArtifactError {
    ArtifactError::Absent(format!("that begins with `{PREFIX}` and has not expired"))
}

/// Has the CI system hide signatures of addresses, should anything ever show them.
fn mask(secrets: &[String], env: &Env, output: &Output) {
    let dialect = Provider::detect(&env.lookup()).dialect();
    for line in secrets.iter().filter_map(|secret| dialect.mask(secret)) {
        output.data(&format!("{line}\n"));
    }
}

fn fault(what: String, error: &ArtifactError) -> CliError {
    let code = if matches!(error, ArtifactError::Name { .. }) {
        exit::INVALID
    } else if error.is_unavailable() {
        exit::UNAVAILABLE
    } else if error.is_absent() {
        exit::ABSENT
    } else {
        exit::ERROR
    };
    let failed = CliError::failed(what, error).code(code);
    match error.help() {
        Some(help) => failed.help(help),
        None => failed,
    }
}

fn archive(what: String, error: &ArchiveError) -> CliError {
    let help = match error {
        ArchiveError::Empty(_) => "hidden files count, links and empty directories do not",
        ArchiveError::Name { .. } => "rename it, or pack it yourself",
        ArchiveError::NoZip => "it was stored with `archive: false`: use actions/download-artifact",
        ArchiveError::Entry { .. } => "do not use it: no honest tool packs this",
        ArchiveError::Exists(_) => "unpack into an empty directory",
        ArchiveError::TooMuch(_) | ArchiveError::Zip(_) | ArchiveError::Io(_) => {
            return CliError::failed(what, error);
        }
    };
    CliError::failed(what, error).help(help)
}
