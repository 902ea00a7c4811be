//! Servers that take a delivery as a push: the commit is made here, and branch and delivered ref go there at once, each
//! only from where it was seen.

use std::collections::BTreeMap;

use super::push_service::DeliveryService;
use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::context::Session;
use crate::forge::forge_trait::{
    Commit, FileContents, Forge, ForgeError, ForgeErrorKind, NewCommit, Pulls, RefMove, WrittenCommit,
};
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::process::clock::Clock;
use crate::repository::workspace::{Remote, Workspace};

/// The identity of commits for which the environment names none.
const NAME: &str = "ll-loop";
const ADDRESS: &str = "ll-loop@localhost";

/// A server that takes pushes.
pub(crate) struct PushForge<'w> {
    pub(crate) name: String,
    pub(crate) workspace: &'w Workspace,
    pub(crate) remote: Remote,
    /// The identity of the commits: name and address.
    pub(crate) who: (String, String),
    /// What it can do besides.
    pub(crate) service: DeliveryService,
}

/// Returns who makes the commits.
pub(crate) fn identity(session: &Session<'_>) -> (String, String) {
    let of = |first: &str, second: &str, otherwise: &str| {
        let set = session.env.get(first).or_else(|| session.env.get(second));
        set.unwrap_or(otherwise).to_owned()
    };
    (
        of("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", NAME),
        of("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL", ADDRESS),
    )
}

impl PushForge<'_> {
    fn failed(&self, what: &str, why: &str) -> ForgeError {
        // Git has no codes for these. Its words are English, because calls run with `LC_ALL=C`.
        let is_away = [
            "Could not resolve host",
            "Failed to connect",
            "Couldn't connect",
            "unable to access",
            "Connection",
            "RPC failed",
            "hung up unexpectedly",
        ];
        let is_denied = [
            "Authentication failed",
            "Forbidden",
            "403",
            "401",
            "could not read Username",
            "not permitted",
            "denied",
        ];
        let message = format!("cannot {what} {}: {why}", self.name);
        let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
        // Denied goes first: git says "unable to access" of a server that answered 403 as well as
        // of one that is away.
        if says(&is_denied) {
            return ForgeError::new(ForgeErrorKind::Failed, message).with_help(self.service.needs());
        }
        let kind = if says(&is_away) { ForgeErrorKind::Unavailable } else { ForgeErrorKind::Failed };
        ForgeError::new(kind, message)
    }

    /// Makes the commit here.
    fn make(&self, commit: &NewCommit<'_>) -> Result<ObjectId, ForgeError> {
        let failed =
            |why: GitError| ForgeError::new(ForgeErrorKind::Failed, format!("cannot make the commit: {why}"));
        let (name, address) = &self.who;
        // With the `@`, git takes any number for seconds.
        let now = format!("@{} +0000", Clock::start().now().as_millis() / 1000);
        let git = self.workspace.git().clone();
        let git = git.with("GIT_AUTHOR_NAME", name).with("GIT_COMMITTER_NAME", name);
        let git = git.with("GIT_AUTHOR_EMAIL", address).with("GIT_COMMITTER_EMAIL", address);
        let git = git.with("GIT_AUTHOR_DATE", &now).with("GIT_COMMITTER_DATE", &now);
        let call = Call::new("commit-tree").option_id("-p", commit.parent).id(commit.tree);
        let made = git.bytes(&call, commit.message.as_bytes()).map_err(failed)?;
        ObjectId::parse(String::from_utf8_lossy(&made).trim()).map_err(|error| failed(error.into()))
    }

    /// Tells whether a ref is not any more where it was seen: what a server says about it differs from one to the next.
    fn was_moved(&self, moves: &[RefMove]) -> bool {
        let names: Vec<&str> = moves.iter().map(|moved| moved.name.as_str()).collect();
        let found = self.refs(&names);
        found.is_ok_and(|found| moves.iter().any(|moved| found.get(&moved.name) != moved.from.as_ref()))
    }

    /// Says what a push that was not taken means.
    fn refused(&self, printed: &str, said: &str, moves: &[RefMove]) -> ForgeError {
        // In `--porcelain`, such a line is of a ref that was not moved.
        let rows = || printed.lines().filter_map(|line| line.strip_prefix("!\t"));
        // So git says that a lease does not hold.
        let is_raced = |row: &str| row.contains("(stale info)") || row.contains("(fetch first)");
        if rows().any(is_raced) {
            return ForgeError::new(ForgeErrorKind::Raced, "a ref was moved meanwhile");
        }
        let all = format!("{printed} {said}");
        // Where two come at once, the server says that it cannot lock the ref, or that it has another value.
        let is_locked =
            ["cannot lock ref", "but expected", "reference already exists", "failed to update ref"];
        // A ref `a` and a ref `a/b` cannot both be there, and git names the one that is. Trying
        // again changes nothing about that, so it is told apart from a lost race first.
        let in_the_way =
            all.split_whitespace().zip(all.split_whitespace().skip(1)).find_map(|(word, next)| {
                let name = word.trim_matches(['\'', '"', '`', ',', ';', ':']);
                (next.starts_with("exists") && name.starts_with("refs/")).then(|| name.to_owned())
            });
        if let Some(name) = in_the_way.filter(|name| moves.iter().all(|moved| moved.name != *name)) {
            let branch = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
            return ForgeError::new(
                ForgeErrorKind::Failed,
                format!("`{branch}` is in the way of the branch that is to be written"),
            )
            .with_help(format!("rename or delete `{branch}` on {}", self.name));
        }
        if is_locked.iter().any(|words| all.contains(words)) {
            return ForgeError::new(ForgeErrorKind::Raced, "a ref was being moved at the same time");
        }
        // Only now, because it asks the server once more.
        if self.was_moved(moves) {
            return ForgeError::new(ForgeErrorKind::Raced, "a ref was moved at the same time");
        }
        if is_cut_off(said) {
            return self.failed("push to", said);
        }
        let rows: Vec<&str> = rows().collect();
        // What the server says is more to the point than what git makes of it.
        let why = of_server(said).unwrap_or_else(|| format!("{}; {said}", rows.join("; ")));
        ForgeError::new(
            ForgeErrorKind::Failed,
            format!("{} refuses the push: {}", self.name, one_line(&why, 400)),
        )
        .with_help("look whether a rule protects the branch, and what the token may")
    }
}

/// Tells whether the connection ended, or the server failed, before it said what it made of a push.
fn is_cut_off(said: &str) -> bool {
    ["RPC failed", "hung up unexpectedly", "unexpected disconnect"].iter().any(|words| said.contains(words))
}

/// Returns what the server says in the words of git, whose lines have become one.
fn of_server(said: &str) -> Option<String> {
    let said = said.split(" error: failed to push").next().unwrap_or("");
    let (_, of_server) = said.split_once("remote:")?;
    let pieces = of_server.split("remote:").map(|piece| {
        let piece = piece.trim();
        piece.strip_prefix("error:").unwrap_or(piece).trim()
    });
    let pieces: Vec<&str> = pieces.filter(|piece| !piece.is_empty()).collect();
    (!pieces.is_empty()).then(|| pieces.join("; "))
}

impl Forge for PushForge<'_> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs(&self, names: &[&str]) -> Result<BTreeMap<String, ObjectId>, ForgeError> {
        let mut list = Call::refs_of(&self.remote.url);
        for name in names {
            list = list.named(name, "");
        }
        let printed = self
            .workspace
            .connected(&self.remote)
            .line(&list)
            .map_err(|why| self.failed("read the refs of", &why.to_string()))?;
        let rows = printed.lines().filter_map(|line| line.split_once('\t'));
        // A name finds others that end in the same way.
        let rows = rows.filter(|(_, name)| names.contains(name));
        rows.map(|(id, name)| {
            let id =
                ObjectId::parse(id).map_err(|error| self.failed("read the refs of", &error.to_string()))?;
            Ok((name.to_owned(), id))
        })
        .collect()
    }

    fn commit(&self, id: &ObjectId) -> Result<Commit, ForgeError> {
        self.workspace.need(id).map_err(|stop| self.failed("read a commit of", &stop.to_string()))?;
        self.workspace.commit(id).map_err(|why| self.failed("read a commit of", &why.to_string()))
    }

    fn write(
        &self,
        commit: &NewCommit<'_>,
        moves: &[RefMove],
        _temporary: &str,
        _contents: &dyn FileContents,
    ) -> Result<WrittenCommit, ForgeError> {
        if commit.require_signed {
            return Err(ForgeError::new(
                ForgeErrorKind::Declined,
                format!("{} signs no commit that is pushed", self.name),
            ));
        }
        let made = self.make(commit)?;
        // All refs move, or none: a branch without its mark would be taken for one that a person
        // works on.
        let mut push = Call::new("push").with(&["--porcelain", "--atomic", "--no-verify"]);
        for option in commit.pull.map_or_else(Vec::new, |pull| self.service.push_options(pull)) {
            push = push.option_value("--push-option=", &option);
        }
        for RefMove { name, from } in moves {
            // An empty value demands that the ref is not there yet.
            let from = from.as_ref().map_or("", ObjectId::as_str);
            push = push.option_value("--force-with-lease=", &format!("{name}:{from}"));
        }
        push = push.named(&self.remote.url, "");
        for RefMove { name, .. } in moves {
            push = push.named(&format!("{made}:{name}"), "");
        }
        let pushed = self.workspace.connected(&self.remote).judged(&push);
        match pushed {
            Ok(pushed) if pushed.is_yes => {
                // Another delivery of the same second makes the same commit.
                if String::from_utf8_lossy(&pushed.printed).lines().any(|row| row.starts_with("=\t")) {
                    return Err(ForgeError::new(
                        ForgeErrorKind::Raced,
                        "another delivery wrote the same commit",
                    ));
                }
            }
            Ok(pushed) if !is_cut_off(&pushed.said) => {
                return Err(self.refused(&String::from_utf8_lossy(&pushed.printed), &pushed.said, moves));
            }
            cut_off => {
                // The answer may have been lost after the server had taken everything.
                let names: Vec<&str> = moves.iter().map(|moved| moved.name.as_str()).collect();
                let is_there = |found: BTreeMap<String, ObjectId>| {
                    names.iter().all(|name| found.get(*name) == Some(&made))
                };
                if !self.refs(&names).is_ok_and(is_there) {
                    return Err(match cut_off {
                        Ok(pushed) => {
                            self.refused(&String::from_utf8_lossy(&pushed.printed), &pushed.said, moves)
                        }
                        Err(why) => self.failed("push to", &why.to_string()),
                    });
                }
            }
        }
        let signed = self.service.is_signed(&made);
        Ok(WrittenCommit { id: made, signed })
    }

    fn take_back(&self, written: &ObjectId, moves: &[RefMove]) -> Result<(), ForgeError> {
        let mut push = Call::new("push").with(&["--quiet", "--atomic", "--no-verify"]);
        for RefMove { name, .. } in moves {
            // Only where they still stand at our commit: what a person has done since stays.
            push = push.option_value("--force-with-lease=", &format!("{name}:{written}"));
        }
        push = push.named(&self.remote.url, "");
        for RefMove { name, from } in moves {
            if let Some(from) = from {
                // Git pushes only what it has, also a commit that the server has had before.
                self.commit(from)?;
            }
            // Nothing before the colon removes the ref, which had not been there.
            push = push.named(&format!("{}:{name}", from.as_ref().map_or("", ObjectId::as_str)), "");
        }
        let pushed = self.workspace.connected(&self.remote).line(&push);
        pushed.map(drop).map_err(|why| self.failed("push to", &why.to_string()))
    }

    fn starts_checks(&self) -> Result<bool, ForgeError> {
        self.service.starts_checks()
    }

    fn waits_for_approval(&self) -> bool {
        false
    }

    fn pulls(&self) -> Option<&dyn Pulls> {
        self.service.pulls()
    }

    fn takes_pulls_with_pushes(&self) -> bool {
        self.service.takes_pulls_with_pushes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_that_nobody_answered_is_told_from_one_that_was_refused() {
        let cut_off = "error: RPC failed; HTTP 500 curl 22 The requested URL returned error: 500 send-pack: unexpected \
                       disconnect while reading sideband packet fatal: the remote end hung up unexpectedly";
        assert!(is_cut_off(cut_off));
        assert!(!is_cut_off("remote: error: hook declined error: failed to push some refs to 'x'"));
    }

    #[test]
    fn what_the_server_says_is_told_without_what_stands_around_it() {
        // Gitea 1.26, whose hook says an empty line before and after.
        let protected = "remote:  remote: error:         remote: error: branch ll-loop/tidy/main is protected from force \
                         push         remote: error:         error: failed to push some refs to 'http://x/o/r.git'";
        assert_eq!(of_server(protected).unwrap(), "branch ll-loop/tidy/main is protected from force push");
        let two = "remote: GitLab: You are not allowed to push. remote: Ask an owner. error: failed to push some refs";
        assert_eq!(of_server(two).unwrap(), "GitLab: You are not allowed to push.; Ask an owner.");
        assert_eq!(of_server("error: failed to push some refs to 'x'"), None);
        assert_eq!(of_server("remote:  error: failed to push some refs to 'x'"), None);
    }
}
