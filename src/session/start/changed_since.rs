//! `--changed-since`: decides whether anything in the scope of a loop changed. In doubt the loop runs: a run too
//! many costs time, a run too few hides a failure. A base that cannot be found is a mistake in the workflow, and an
//! error.

use std::path::Path;

use serde_json::{Map, Value};

use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::base::redact::Redactor;
use crate::base::territory::ScopePath;
use crate::context::Session;
use crate::context::error::Error;
use crate::files::links;
use crate::forge::github::workflow_event::{WorkflowEvent, is_sha, short};
use crate::git::call::Call;
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::git::unwatched::UnwatchedPaths;
use crate::report::digest::NotRun;
use crate::repository;
use crate::repository::changed;
use crate::session::prepare::claim;
use crate::session::prepare::prepared::Prepared;

/// The value of `--changed-since` that stands for the base of the event.
const AUTO: &str = "auto";

const DEEPER: &str = "let actions/checkout get the history: `fetch-depth: 0`";

/// Returns why the loop need not run, if nothing changed since the base.
pub(crate) fn none_since(
    base: &str,
    prepared: &mut Prepared,
    context: &Map<String, Value>,
    session: &Session<'_>,
) -> Result<Option<NotRun>, Error> {
    let run_it = |why: &str| {
        session.talk.note(&format!("{why}, so the loop is run"));
        Ok(None)
    };
    let repository = LoopRepository::of(prepared, session)?;
    let found = match repository.find(base, &WorkflowEvent::read(&session.env.lookup()))? {
        Ok(found) => found,
        Err(why) => return run_it(&why.to_string()),
    };
    if let Some(why) = prepared.untold() {
        return run_it(&why);
    }
    // Nothing is masked here, because git has to find these paths; what is shown below is.
    let territory = claim::territory(prepared, context, session, &Redactor::default())?;
    let unwatched = UnwatchedPaths::look(&repository.git, &repository.top);
    let files = prepared.files().into_iter();
    let files = files.map(|(file, _)| links::real(&file).to_string_lossy().into_owned().into());
    // A change of the loop itself counts as well, wherever its files lie.
    let paths = territory.paths.iter().cloned().chain(files);
    let paths: Vec<ScopePath> = paths.chain(unwatched.ways_to(&territory.paths).cloned()).collect();
    if let Some(path) = paths.iter().find(|path| !repository.top.holds(path)) {
        let why = format!("what changed in {path} is unknown, because it is outside of the repository");
        return run_it(&why);
    }
    let is_changed = repository.is_changed(&found.commit, &paths).map_err(|why| {
        Error::refused(format!("cannot find out what changed since `{}`: {why}", found.shown))
    })?;
    let blind = || {
        let paths = territory.paths.iter();
        paths.filter(|_| !is_changed).find_map(|path| {
            let why = repository.blind_spot(&found.commit, path)?;
            Some(format!(
                "what changed in `{}` of the scope is unknown: {why}",
                path.seen_from(&territory.tree)
            ))
        })
    };
    if let Some(why) = blind().or_else(|| unwatched.why(&territory.paths).filter(|_| !is_changed)) {
        return run_it(&why);
    }
    Ok((!is_changed).then(|| NotRun {
        loop_name: prepared.machine.name.to_string(),
        file: prepared.located.shown.clone(),
        scope: territory.shown().iter().map(|path| session.redactor.text(path).into_owned()).collect(),
        since: found.shown,
    }))
}

/// Asks for the files that commits changed since a base.
pub(crate) fn committed_since(base: &ObjectId) -> Call {
    // With three dots: what this branch changed since they parted, and not what the base got
    // meanwhile.
    Call::new("diff").with(&["--name-only", "-z", "--no-renames"]).ids("", base, "...HEAD")
}

/// Asks for the files that differ from the commit that is checked out.
pub(crate) fn uncommitted() -> Call {
    Call::new("status").with(&[
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=none",
    ])
}

/// The repository in which a loop is at home.
pub(crate) struct LoopRepository {
    pub(crate) git: Git,
    pub(crate) top: ScopePath,
    is_shallow: bool,
}

/// The commit since which changes count.
pub(crate) struct Base {
    pub(crate) commit: ObjectId,
    /// Its name in messages.
    pub(crate) shown: String,
}

impl LoopRepository {
    pub(crate) fn of(prepared: &Prepared, session: &Session<'_>) -> Result<Self, Error> {
        let git = repository::at(&prepared.located.root, session);
        let ask = |words: &[&'static str]| git.line(&Call::new("rev-parse").with(words));
        let top = ask(&["--show-toplevel"]).map_err(|why| {
            Error::refused(format!("`--changed-since` needs a git repository: {why}"))
                .with_hint("leave it out, and the loop is run whatever changed")
        })?;
        let shallow = ask(&["--is-shallow-repository"]);
        Ok(Self { git, top: top.into(), is_shallow: shallow.is_ok_and(|said| said == "true") })
    }

    /// Finds the base, or says why nothing can be compared with it.
    pub(crate) fn find(&self, base: &str, event: &WorkflowEvent) -> Result<Result<Base, TreeError>, Error> {
        let asked = match (base, &event.base) {
            (AUTO, Some(base)) => base.as_str(),
            (AUTO, None) => return Ok(Err(TreeError::unfit("the event of this job has no base"))),
            (base, _) => base,
        };
        let shown = if is_sha(asked) { short(asked) } else { asked };
        let find = Call::new("rev-parse").with(&["--verify", "--quiet"]).named(asked, "^{commit}");
        let commit = match self.git.id(&find) {
            Ok(commit) => commit,
            // After a forced push, the commit before it may be on no branch, so that no clone fetches it.
            Err(_) if base == AUTO && !self.is_shallow => {
                return Ok(Err(TreeError::unfit(format!("the base {shown} is gone"))));
            }
            Err(_) => return Err(self.missing(&format!("the base `{shown}` is not in this clone"))),
        };
        // The diff with three dots needs a common commit, which a shallow clone may have cut off.
        match self.git.line(&Call::new("merge-base").id(&commit).revision("HEAD")) {
            // What the push took away has changed as well, and the diff with three dots does not see it.
            Ok(common) if base == AUTO && event.name == "push" && common.trim() != commit.as_str() => {
                Ok(Err(TreeError::unfit(format!("the push replaced {shown}"))))
            }
            Ok(_) => Ok(Ok(Base { commit, shown: shown.to_owned() })),
            Err(_) => {
                Err(self.missing(&format!("`{shown}` and HEAD have no commit in common in this clone")))
            }
        }
    }

    fn missing(&self, what: &str) -> Error {
        if self.is_shallow {
            return Error::refused(format!("{what}, which is shallow")).with_hint(DEEPER);
        }
        Error::refused(what).with_hint("name a commit, a branch or a tag; `git fetch` gets what is not here")
    }

    /// Tells whether anything below these paths changed, committed or not.
    fn is_changed(&self, base: &ObjectId, paths: &[ScopePath]) -> Result<bool, TreeError> {
        let ask = |call: Call| self.git.line(&call.paths(paths.iter().map(ToString::to_string)).literal());
        let committed = ask(committed_since(base))?;
        let uncommitted = ask(uncommitted())?;
        Ok(committed.split('\0').any(|file| !file.is_empty() && !is_own(file.as_bytes()))
            || changed(&uncommitted).next().is_some())
    }

    /// Says why git cannot know whether a path changed: it tracks nothing below it, neither now nor at the base.
    fn blind_spot(&self, base: &ObjectId, path: &ScopePath) -> Option<&'static str> {
        let tree = self.top.join("");
        let below = path.seen_from(&tree);
        let prints = |call: Call| self.git.line(&call).is_ok_and(|printed| !printed.is_empty());
        let tracked = Call::new("ls-files").with(&["-z"]).path(path.to_string()).literal();
        let at_base = Call::new("ls-tree").with(&["--full-tree", "--name-only", "-z"]).id(base);
        if prints(tracked) || below == "." || prints(at_base.path(below).literal()) {
            return None;
        }
        let ignored = Call::new("check-ignore").with(&["--quiet"]).path(path.to_string());
        Some(if self.git.line(&ignored).is_ok() {
            "git ignores it"
        } else if Path::new(&path.to_string()).symlink_metadata().is_ok() {
            "it holds no files"
        } else {
            "it does not exist"
        })
    }
}
