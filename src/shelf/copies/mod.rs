//! Loops of other repositories, copied into this one: `ll-loop add github:…` takes a copy, `ll-loop update` a newer
//! one. Only these two speak to a server; a run reads the copy, and compares it with `.loops/lock.json`.

pub mod copied_loop;
mod copy_summary;
mod gather;
mod merged_edits;
mod store;
pub mod update_copies;

use std::path::PathBuf;

use crate::base::text::one_line;
use crate::ci::Provider;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::definition::load::{self, DIRECTORY};
use crate::definition::vendored::{CopyError, REMOTE, SharedName};
use crate::forge::github::api::Api;
use crate::forge::github::contents;
use crate::forge::github::contents::ContentsError;

/// The most bytes of the name of a branch or tag.
const MAX_REF: usize = 250;

/// Tells whether a text names a loop on a server.
pub fn is_remote(text: &str) -> bool {
    text.starts_with(REMOTE)
}

/// Returns what is printed of a text that quotes loops: in the log of a job, no line of it is a command for the provider.
pub fn printed(text: &str, session: &Session<'_>) -> String {
    let provider = Provider::detect(&session.env.lookup());
    let lines = text.lines().map(|line| provider.dialect().untrusted(line).into_owned() + "\n");
    lines.collect()
}

/// A loop on a server, and the branch, tag or commit that is meant.
#[derive(Debug, PartialEq, Eq)]
struct RequestedLoop {
    name: SharedName,
    reference: String,
}

impl RequestedLoop {
    /// Reads `github:OWNER/REPOSITORY/PATH.yaml@REF`.
    fn parse(text: &str) -> Result<Self, Error> {
        const FORM: &str = "write `github:OWNER/REPOSITORY/PATH.yaml@REF`, where REF is a branch, a tag, or the 40 digits of a commit";
        let refused = |why: &str| {
            Error::refused(format!("`{}` names no shared loop: {why}", one_line(text, 200))).with_hint(FORM)
        };
        let name = text.strip_prefix(REMOTE).unwrap_or(text);
        // A branch may hold an `@` as well as a path; the path ends in its extension.
        let ends = [".yaml@", ".yml@"].iter().filter_map(|end| Some(name.find(end)? + end.len() - 1));
        let at = ends.min().or_else(|| name.rfind('@'));
        let (name, reference) = match at {
            Some(at) => (&name[..at], &name[at + 1..]),
            None => (name, ""),
        };
        let name = SharedName::parse(name).map_err(|why| refused(&why.to_string()))?;
        match check_ref(reference) {
            Ok(()) => Ok(Self { name, reference: reference.to_owned() }),
            Err(why) => Err(refused(why)),
        }
    }
}

/// Says why nothing in git has this name.
fn check_ref(name: &str) -> Result<(), &'static str> {
    let is_odd = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '#' | '%')
    };
    match name {
        "" => Err("it has no `@REF`"),
        name if name.len() > MAX_REF => Err("its REF is too long"),
        name if name.chars().any(is_odd) || name.contains("..") || name.contains("@{") => {
            Err("no branch or tag can have the name of its REF")
        }
        name if name.starts_with(['-', '/']) || name.ends_with(['/', '.']) || name.contains("//") => {
            Err("no branch or tag can have the name of its REF")
        }
        _ => Ok(()),
    }
}

/// Returns the `.loops` that copies are kept in: the nearest one, or the one that the repository would have.
fn home(session: &Session<'_>) -> PathBuf {
    let roots = load::ancestors(&session.cwd);
    let found = roots.iter().find(|root| root.join(DIRECTORY).is_dir());
    found.or(roots.last()).unwrap_or(&session.cwd).join(DIRECTORY)
}

/// Returns a client of the server that the environment names, and the server's address.
fn server(session: &Session<'_>) -> Result<(Api, String), Error> {
    let token = session.env.token().map(str::to_owned);
    contents::server(&session.env.lookup(), token)
        .map_err(|error| failed("cannot reach a server", &error.into()))
}

/// Says that a server did not give what was asked for.
fn failed(what: &str, error: &ContentsError) -> Error {
    let kind = if error.is_unavailable() { Kind::Unavailable } else { Kind::Refused };
    let failed = Error::failed(what, error).of_kind(kind);
    match error.help() {
        Some(help) => failed.with_hint(help),
        None => failed,
    }
}

/// Says that a copy or the lock file is not as it has to be.
fn unusable(error: &CopyError) -> Error {
    Error::refused(error.to_string()).with_hint(error.help())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(&str, &str), &str>) {
        let found = RequestedLoop::parse(text);
        let found = found.as_ref().map(|asked| (asked.name.as_str(), asked.reference.as_str()));
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert!(error.message().contains(expected), "{error}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_loop_is_asked_for_with_a_branch_a_tag_or_a_commit() {
        check("github:o/r/a.yaml@v1", Ok(("o/r/a.yaml", "v1")));
        check("github:o/r/d/a.yml@me@home/x", Ok(("o/r/d/a.yml", "me@home/x")));
        check("github:o/r/p@2/a.yaml@v1.yaml", Ok(("o/r/p@2/a.yaml", "v1.yaml")));
        check("github:o/r/a.yaml@refs/tags/v1", Ok(("o/r/a.yaml", "refs/tags/v1")));
        check("github:o/r/a.yaml", Err("it has no `@REF`"));
        check("github:o/r/a.yaml@", Err("it has no `@REF`"));
        check("github:o/r/a@v1", Err("ends in `.yaml`"));
        check("github:o/a.yaml@v1", Err("OWNER/REPOSITORY/PATH"));
        check("github:o/r/../../x/y/a.yaml@v1", Err("lead upwards"));
        for odd in ["a b", "a..b", "-x", "a\nb", "a:b", "x~1", "a\u{1b}[0m", "/x", "x@{1}"] {
            check(&format!("github:o/r/a.yaml@{odd}"), Err("REF"));
        }
    }
}
