//! Reads what a repository says to agents: from the working tree, and on events that strangers can set off from a commit of the
//! repository's own.

use std::path::{Path, PathBuf};

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::object::ObjectId;
use crate::base::path::DocPath;
use crate::base::text::{listed, one_line};
use crate::context::Session;
use crate::files::links::real;
use crate::files::{place, read};
use crate::forge::github::workflow_event::{WorkflowEvent, short};
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::guidance::{Guidance, Texts};
use crate::machine::{Action, Machine};
use crate::repository;

/// The longest file that is read, in bytes: what is longer is cut, and more than twice of it is not text for anybody.
const LONGEST: u64 = 128 * 1024;

/// How many files are named that are not passed on.
const MOST_NAMED: usize = 5;

/// How many files of commands are looked for.
// No real list is as long, and the tree may be a stranger's: reading it must come to an end.
const MOST: usize = 2_000;

/// Returns what the repository around a loop says to agents in this job.
pub(super) fn of_run(root: &Path, session: &Session<'_>) -> Guidance {
    let event = WorkflowEvent::read(&session.env.lookup());
    if !event.has_texts_of_strangers() {
        let guidance = of_tree(root);
        if let Some(message) = unread(&guidance) {
            session.talk.warning(&message);
        }
        return guidance;
    }
    let top = place::repository(root).unwrap_or(root);
    let git = repository::at(top, session);
    let own = event.own_commit().and_then(|sha| ObjectId::parse(sha).ok());
    let known = own.filter(|id| git.line(&Call::new("cat-file").with(&["-t"]).id(id)).is_ok());
    if let Some(commit) = known {
        return Guidance::read(&CommitTexts { git, commit }, &below(top, root));
    }
    let of = event.own_commit().map_or_else(String::new, |sha| format!(" {}", short(sha)));
    session.talk.warning(&format!(
        "strangers can set off `{}`, and the commit{of} before their change is not in this checkout: agents are not told what the \
         repository says to them (`fetch-depth: 0` brings it)",
        event.name
    ));
    Guidance::default()
}

/// Returns what the working tree around a loop says to agents.
pub(super) fn of_tree(root: &Path) -> Guidance {
    let top = place::repository(root).unwrap_or(root);
    Guidance::read(&TreeTexts { top: real(top) }, &below(top, root))
}

fn below(top: &Path, root: &Path) -> String {
    real(root).strip_prefix(real(top)).unwrap_or(Path::new("")).to_string_lossy().into_owned()
}

/// Says what is there and is not passed on.
fn unread(guidance: &Guidance) -> Option<String> {
    let files: Vec<String> =
        guidance.unread.iter().take(MOST_NAMED).map(|path| one_line(path, 100)).collect();
    (!files.is_empty()).then(|| {
        let are = if files.len() == 1 { "is" } else { "are" };
        format!(
            "agents are not told what {} says, which {are} no text of this repository: a link out of it, a pipe, more than {} KiB, or no UTF-8",
            listed(&files, "or"),
            LONGEST / 1024
        )
    })
}

/// Says what is found of the repository's words for the prompts of a loop, and what is not.
pub(super) fn findings(machine: &Machine, guidance: &Guidance) -> Diagnostics {
    let mut findings = Diagnostics::default();
    if machine.heeds_project {
        return findings;
    }
    let mut is_said = guidance.instructions.is_empty();
    let mut unread = unread(guidance);
    for (_, step) in machine.steps() {
        let Some(Action::Prompt(prompt)) = &step.action else { continue };
        let place = FindingPlace::Value(DocPath::root().key("states").key(step.name.as_str()).key("action"));
        if let Some(message) = unread.take() {
            findings.push(Diagnostic::note("agent-texts", place.clone(), message));
        }
        if !std::mem::replace(&mut is_said, true) {
            let files: Vec<String> =
                guidance.instructions.iter().map(|file| one_line(&file.path, 100)).collect();
            let message = format!("prompts are sent with {}", listed(&files, "and"));
            findings.push(Diagnostic::note("agent-texts", place.clone(), message));
        }
        let text = prompt.text.source();
        match (guidance.command(text), guidance.prompt(text, false).unknown) {
            (Some(file), _) => {
                let message = format!("the command is the text of `{}`", one_line(&file.path, 100));
                findings.push(Diagnostic::note("agent-texts", place, message));
            }
            (None, Some(name)) => {
                let message = format!("the repository has no command `/{}`", one_line(&name, 60));
                let help = "the host is given the text as it is; write `.claude/commands/NAME.md` if it does not know the command";
                findings.push(Diagnostic::note("agent-texts", place, message).help(help));
            }
            (None, None) => {}
        }
    }
    findings
}

/// The files of a working tree.
struct TreeTexts {
    top: PathBuf,
}

impl Texts for TreeTexts {
    fn is_there(&self, path: &str) -> bool {
        fs_err::symlink_metadata(self.top.join(path)).is_ok()
    }

    fn text(&self, path: &str) -> Option<String> {
        let file = real(&self.top.join(path));
        // Nothing in `.git` is a text of the repository, and its configuration may hold a token.
        // A link may lead to another file of the repository, and nowhere else.
        let inside = file.strip_prefix(&self.top).ok().filter(|inside| !inside.starts_with(".git"))?;
        read::text(&self.top.join(inside), LONGEST).ok()
    }

    fn below(&self, directory: &str) -> Vec<String> {
        let (mut found, mut open) = (Vec::new(), vec![self.top.join(directory)]);
        while let Some(directory) = open.pop() {
            for entry in fs_err::read_dir(&directory).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && found.len() < MOST => open.push(entry.path()),
                    Ok(_) | Err(_) => {
                        let path = entry.path();
                        let below = path.strip_prefix(&self.top).ok().and_then(Path::to_str);
                        found.extend(below.map(str::to_owned));
                    }
                }
            }
        }
        found.truncate(MOST);
        // Directories are listed in the order of their file system, and a prompt must not depend on that.
        found.sort();
        found
    }
}

/// The files of a commit.
struct CommitTexts {
    git: Git,
    commit: ObjectId,
}

impl CommitTexts {
    fn listed(&self, options: &[&'static str], path: &str) -> Vec<(ObjectId, String)> {
        let list = Call::new("ls-tree")
            .with(&["--full-tree", "-z"])
            .with(options)
            .id(&self.commit)
            .path(path)
            .literal();
        let Ok(listed) = self.git.bytes(&list, &[]) else { return Vec::new() };
        let listed = String::from_utf8_lossy(&listed);
        let blob = |entry: &str| {
            let (facts, path) = entry.split_once('\t')?;
            // Only regular files: what a link leads to may be outside of the commit.
            let id = facts.strip_prefix("100").and_then(|facts| facts.rsplit(' ').next())?;
            Some((ObjectId::parse(id).ok()?, path.to_owned()))
        };
        listed.split('\0').filter_map(blob).take(MOST).collect()
    }
}

impl Texts for CommitTexts {
    fn is_there(&self, path: &str) -> bool {
        self.listed(&[], path).iter().any(|(_, known)| known == path)
    }

    fn text(&self, path: &str) -> Option<String> {
        let (id, _) = self.listed(&[], path).into_iter().find(|(_, known)| known == path)?;
        let bytes = self.git.bytes(&Call::new("cat-file").with(&["blob"]).id(&id), &[]).ok()?;
        String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= LONGEST)
    }

    fn below(&self, directory: &str) -> Vec<String> {
        self.listed(&["-r"], directory).into_iter().map(|(_, path)| path).collect()
    }
}
