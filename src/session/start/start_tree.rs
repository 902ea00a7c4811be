//! Looks at the working tree on which a run begins, and decides what it means if the run changes it.

use std::path::{Path, PathBuf};

use crate::base::object::ObjectId;
use crate::base::territory::Territory;
use crate::base::text::{listed_in_part, one_line, plural};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::options::{BeginOptions, RunOptions};
use crate::engine::changes::{KnownStart, StartTree, TreeIds};
use crate::engine::event::Llm;
use crate::engine::request::JudgingRequest;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::journal::files::RunFiles;
use crate::machine::{Machine, OnChange};
use crate::process::signal::Cancel;
use crate::repository::worktree::Worktree;
use crate::run::area::Area;
use crate::run::measure;
use crate::session::prepare::prepared::Prepared;

/// Returns what of the working tree is the work of a run.
pub(crate) fn area(territory: &Territory, options: &RunOptions, session: &Session<'_>) -> Area {
    let recording = options.llm.recording.as_ref().map(|(directory, _)| directory.as_path());
    // The items of a leg have their reports side by side.
    let reports = options.report_dir.as_deref();
    let reports = if options.assignment.is_some() { reports.and_then(Path::parent) } else { reports };
    let own = reports.into_iter().chain(recording).chain(options.beside.iter().map(PathBuf::as_path));
    let own: Vec<PathBuf> = own.map(|path| crate::files::links::real(&session.path(path))).collect();
    Area { territory: territory.clone(), own }
}

/// Decides what it means if a run changes tracked files and would succeed: what the command line says, or else the loop,
/// or else what the loop is for. A check in CI is about a commit; who maintains, or lets agents work, wants changes.
pub(crate) fn on_change(options: &BeginOptions, machine: &Machine, llm: Llm) -> OnChange {
    // A recording stands for the agents that it was made of.
    let lets_agents_work = llm == Llm::On || options.run.llm.recording.is_some();
    let is_check = options.run.audience.is_ci()
        && machine.maintain.is_none()
        && !machine.has_board()
        && !lets_agents_work;
    let by_purpose = if is_check { OnChange::Fail } else { OnChange::Report };
    options.on_change.or(machine.on_change).unwrap_or(by_purpose)
}

/// Returns the ids of the tree that there is now, where it is known.
pub(crate) async fn now(
    prepared: &Prepared,
    area: &Area,
    files: &RunFiles,
    in_worktree: bool,
    cancel: &Cancel,
    session: &Session<'_>,
) -> Option<TreeIds> {
    let env = session.env.for_ourselves();
    let env = if in_worktree { Worktree::env(env) } else { env };
    match measure::start(&prepared.located.root, area, files, None, env, cancel.clone()).await {
        StartTree::Known(found) => Some(found.ids),
        StartTree::Unknown { .. } => None,
    }
}

/// Looks at the tree on which a run begins. Returns it with warnings about it.
pub(crate) async fn start(
    prepared: &Prepared,
    area: &Area,
    (files, options, judging): (&RunFiles, &BeginOptions, &JudgingRequest),
    in_worktree: bool,
    cancel: &Cancel,
    session: &Session<'_>,
) -> Result<(StartTree, Vec<String>), Error> {
    let env = session.env.for_ourselves();
    let env = if in_worktree { Worktree::env(env) } else { env };
    let root = &prepared.located.root;
    let mut tree = measure::start(root, area, files, Some(judging), env, cancel.clone()).await;
    if let StartTree::Known(start) = &mut tree {
        start.stands_for = stands_for(start, session);
    }
    let is_told_to_fail = options.on_change.or(prepared.machine.on_change) == Some(OnChange::Fail);
    let warnings = match &tree {
        StartTree::Known(start) => known(start),
        StartTree::Unknown { unknown } if is_told_to_fail => {
            return Err(Error::refused(format!("changes of the working tree cannot be seen: {unknown}"))
                .of_kind(Kind::Unavailable)
                .with_hint("`on_change: fail` needs a git checkout with a commit; without one, what a run changes is unknown"));
        }
        StartTree::Unknown { unknown } if options.run.audience.is_ci() => {
            vec![format!(
                "what the run changes in the working tree will not be known: {}",
                one_line(unknown, 200)
            )]
        }
        StartTree::Unknown { .. } => Vec::new(),
    };
    Ok((tree, warnings))
}

/// Warns of what differs from the commit before the run begins.
fn known(start: &KnownStart) -> Vec<String> {
    let before = (!start.before.is_empty()).then(|| {
        let count = start.before.len() as u64;
        let named = listed_in_part(start.before.iter().map(|file| one_line(&file.path, 120)));
        format!(
            "the run begins with {} that {} from the commit: {named}",
            plural(count, "tracked file"),
            if count == 1 { "differs" } else { "differ" },
        )
    });
    before.into_iter().chain(start.unseen.iter().cloned()).collect()
}

/// Returns the commit of the pull request for which the checkout stands: where a pull request sets off the job, the
/// commit of the event merges it.
fn stands_for(start: &KnownStart, session: &Session<'_>) -> Option<ObjectId> {
    let env = &session.env.lookup();
    let job = WorkflowJob::read(env);
    let is_merge = job.event_name.as_deref() == Some("pull_request")
        && job.sha.as_deref() == Some(start.ids.commit.as_str());
    let head = is_merge.then(|| WorkflowEvent::read(env).sha).flatten();
    head.and_then(|sha| ObjectId::parse(&sha).ok())
}
