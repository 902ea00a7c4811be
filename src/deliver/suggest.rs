//! Suggests a fix in a review of a pull request: the way to branches that are not ours. Which pull request it is says
//! the server; the bundle is the work of whoever opened it, and is believed in nothing.

use super::caveats::Caveats;
use super::delivered::Done;
use super::offer::{Applied, Offered, check_changes};
use super::relayed_report::contradiction;
use super::secrecy::check_texts;
use super::servers::DeliveryServer;
use super::way::{Brought, DeliverOptions};
use crate::base::text::one_line;
use crate::context::Session;
use crate::forge::change::FileChange;
use crate::forge::forge_trait::{FileContents as _, ForgeError};
use crate::forge::github::api::Api;
use crate::forge::github::artifacts::{RunsMeant, attempt, is_checkpoint, of_run};
use crate::forge::github::github_server::Flavour;
use crate::forge::github::other_run::{OtherRun, is_merge_of};
use crate::forge::github::pull_head::PullHead;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::review::Reviews;
use crate::forge::marker::Marker;
use crate::forge::review_text::{LeftArtifact, ReviewFacts, review_body};
use crate::forge::standing::FixStanding;
use crate::forge::suggestion::{FixedFile, NotSuggested, PullFile, Suggestion, Suggestions};
use crate::repository::delivery_stop::DeliveryStop;
use crate::repository::workspace::{Workspace, broken};
use crate::session::read::fetch;

/// The largest file whose lines are compared.
const MOST_COMPARED: u64 = 8 << 20;

/// Suggests a fix in one review.
pub(super) fn deliver(
    offered: &Offered<'_>,
    standing: FixStanding,
    server: &DeliveryServer,
    options: &DeliverOptions,
    session: &Session<'_>,
) -> Result<Brought, DeliveryStop> {
    let Some((api, repository)) = server.api() else {
        return Err(DeliveryStop::refused("only GitHub has suggestions in reviews: use `--to patch`"));
    };
    if api.server().flavour() != Flavour::Github {
        return Err(DeliveryStop::refused(format!(
            "{} has no suggestions in reviews: use `--to patch`",
            api.server()
        )));
    }
    let env = &session.env.lookup();
    let run = OtherRun::of_event(env);
    match &run {
        Some(run) => {
            if let Some(why) = contradiction(&offered.bundle.manifest, run, repository) {
                return Err(DeliveryStop::refused(format!(
                    "the bundle is not of the run that set off this job: {why}"
                )));
            }
        }
        None => offered.check_repository()?,
    }
    let pull = PullHead::find(env, api, repository)?;
    let reviews = Reviews { api, repository, pull: &pull };
    reviews.check()?;
    let is_at_head = is_at_head(offered, &pull, api, repository)?;
    let applied = applied(offered, &pull, is_at_head)?;
    let brought = |done| Brought { url: Some(pull.url.clone()), ..Brought::nothing(done) };
    if applied.changes.is_empty() {
        let why = format!("the pull request #{} has the fix already", pull.number);
        return Ok(brought(Done::Unchanged { why }));
    }
    check_changes(&applied.changes, options)?;
    let manifest = &offered.bundle.manifest;
    let marker = Marker { run: manifest.instance.clone(), patch: applied.patch.clone(), standing };
    if let Some(url) = reviews.there(&marker)? {
        let why = format!("a review of #{} suggests this fix already", pull.number);
        return Ok(Brought { url: Some(url), ..brought(Done::Unchanged { why }) });
    }
    let files = reviews.files()?;
    let fix = applied.changes.iter().map(|change| fixed(change, &files, &offered.workspace));
    let suggestions = Suggestions::new(&fix.collect::<Result<Vec<_>, DeliveryStop>>()?, &files);
    if suggestions.comments.is_empty() {
        let rest =
            suggestions.rest.iter().map(|left| format!("{}: {}", left.path, left.why.words())).collect();
        let why = format!("nothing of the fix can be suggested in the lines that #{} shows", pull.number);
        return Err(DeliveryStop::about(why, rest));
    }
    let notes = vec![notes(&suggestions)];
    let artifact = run.as_ref().and_then(|run| artifact(run, offered, options, api, repository));
    let ours = repository.to_string();
    let text = review_body(&ReviewFacts {
        loop_name: manifest.r#loop.as_str(),
        head: &pull.sha,
        run: run.as_ref().map(|run| run.html_url.as_str()),
        is_at_head,
        artifact: run.as_ref().zip(artifact.as_deref()).map(|(run, name)| LeftArtifact {
            repository: &ours,
            run: run.id,
            name,
        }),
        suggestions: &suggestions,
        caveats: &Caveats::of(&offered.bundle.digest).quotations(),
        marker: &marker,
    });
    let bodies: Vec<String> = suggestions.comments.iter().map(Suggestion::body).collect();
    let comments = bodies.iter().map(|body| ("a suggestion", body.as_str()));
    let texts: Vec<(&str, &str)> = std::iter::once(("the review", text.as_str())).chain(comments).collect();
    check_texts(&texts, session)?;
    if options.dry_run {
        return Ok(Brought { notes, ..brought(Done::Created) });
    }
    let url = reviews.post(&text, &suggestions.comments, &marker)?;
    Ok(Brought { url: Some(url), notes, ..brought(Done::Created) })
}

/// Tells whether the run began at the head of the pull request; if not, it must have been at a merge of it.
fn is_at_head(
    offered: &Offered<'_>,
    pull: &PullHead,
    api: &Api,
    repository: &RepositoryName,
) -> Result<bool, DeliveryStop> {
    let (base, head) = (&offered.fix.base, &pull.sha);
    if base == head {
        return Ok(true);
    }
    let bases = [pull.base.to_string()];
    let is_merge = is_merge_of(base.as_str(), head.as_str(), &bases, api, repository);
    if is_merge.map_err(|error| ForgeError::from(error.needing("contents: read")))? {
        return Ok(false);
    }
    Err(DeliveryStop::refused(format!(
        "the run began at the commit {base}, which is neither the head of #{}, {head}, nor a merge of it",
        pull.number
    )))
}

/// Applies the fix to the head: lines of a review are counted there, and not in a merge.
fn applied(offered: &Offered<'_>, pull: &PullHead, is_at_head: bool) -> Result<Applied, DeliveryStop> {
    offered.workspace.need(&pull.sha)?;
    let applied = offered.applied(&pull.sha);
    let Err(DeliveryStop::Refused(why)) = &applied else { return applied };
    if is_at_head {
        return applied;
    }
    let paths = why.iter().flat_map(|refusal| refusal.paths.clone()).collect();
    let base = &pull.base;
    Err(DeliveryStop::about(
        format!("the run was at the merge with `{base}`, and its fix conflicts with the head alone"),
        paths,
    ))
}

/// Compares both versions of a file, where that can lead to a suggestion.
fn fixed(change: &FileChange, shown: &[PullFile], workspace: &Workspace) -> Result<FixedFile, DeliveryStop> {
    let path = &change.path;
    let (Some(old), Some(new), None) = (&change.old, &change.new, FixedFile::kind(change)) else {
        let why = FixedFile::kind(change).unwrap_or(NotSuggested::Mode);
        return Ok(FixedFile::unfit(path, why));
    };
    if !shown.iter().any(|shown| shown.path == *path) {
        return Ok(FixedFile::unfit(path, NotSuggested::Outside));
    }
    if old.size.max(new.size) > MOST_COMPARED {
        return Ok(FixedFile::unfit(path, NotSuggested::TooLong));
    }
    let blob = |id| workspace.blob(id).map_err(broken);
    let diff = workspace.plain_diff(&old.id, &new.id).map_err(broken)?;
    Ok(FixedFile::new(path, &old.id, blob(&old.id)?, blob(&new.id)?, &diff))
}

fn notes(suggestions: &Suggestions) -> String {
    let (shown, left) = (suggestions.comments.len(), suggestions.left());
    format!(
        "{shown} suggested, {left} not: {}",
        if left == 0 { "all is there" } else { "the review says why" }
    )
}

/// Returns the artifact that has the patch: the one that was named, or the only one of the loop.
fn artifact(
    run: &OtherRun,
    offered: &Offered<'_>,
    options: &DeliverOptions,
    api: &Api,
    repository: &RepositoryName,
) -> Option<String> {
    if let Some(name) = fetch::artifact(&options.what).filter(|name| !name.starts_with("run:")) {
        return Some(name.to_owned());
    }
    let prefix = RunsMeant::of_loop(Some(&offered.bundle.manifest.r#loop.file_stem()), None).prefix;
    let is_it =
        |name: &str| name.starts_with(&prefix) && attempt(name) == run.attempt() && !is_checkpoint(name);
    // Only the text is better for it.
    let found = of_run(api, repository, run.id).ok()?;
    let mut names = found.into_iter().map(|found| found.name).filter(|name| is_it(name));
    names.next().filter(|_| names.next().is_none()).map(|name| one_line(&name, 200))
}
