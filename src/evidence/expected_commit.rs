//! Compares a verdict with the commit of the job that wants to sign it: where it began, and the tree that this commit has.

use serde::Deserialize;

use super::claimed_statement::Claim;
use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;
use crate::context::Session;
use crate::forge::github::api::Api;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::git::call::Call;
use crate::repository;

#[derive(Deserialize)]
struct AskedCommit {
    tree: AskedTree,
}

#[derive(Deserialize)]
struct AskedTree {
    sha: ObjectId,
}

/// Says how a verdict does not fit to the commit that it is expected to be about.
pub(super) fn fault(commit: &ObjectId, claim: &Claim, session: &Session<'_>) -> Option<String> {
    let began = claim.details.run.commit.as_deref();
    if began != Some(commit.as_str()) {
        let began = began.unwrap_or("no commit that is known");
        return Some(format!("the run began at {began}, not at {commit}"));
    }
    // A run that changed something has another tree, of which the commit says nothing.
    claim.details.commit.as_ref()?;
    match tree(commit, session) {
        Ok(tree) if claim.details.tree.as_ref() == Some(&tree) => None,
        Ok(tree) => Some(format!("the tree of {commit} is {tree}, not the one that the run ended on")),
        Err(why) => Some(format!("nobody can tell the tree of {commit}: {why}")),
    }
}

/// Asks the checkout for the tree of a commit, and the server where there is none.
fn tree(commit: &ObjectId, session: &Session<'_>) -> Result<ObjectId, Explanation> {
    let here = repository::at(&session.cwd, session);
    let call = Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", commit, "^{tree}");
    if let Some(tree) = here.line(&call).ok().and_then(|line| ObjectId::parse(&line).ok()) {
        return Ok(tree);
    }
    let env = &session.env.lookup();
    let repository = WorkflowJob::read(env).repository.as_deref().and_then(RepositoryName::parse);
    let repository =
        repository.ok_or_else(|| Explanation::new("it is not in this checkout, and no server is known"))?;
    let api = Api::from_env(env, session.env.token().map(str::to_owned))?;
    let answer: AskedCommit = api.get(&repository.path(&format!("/git/commits/{commit}")), &[])?;
    Ok(answer.tree.sha)
}
