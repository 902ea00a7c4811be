//! Loops of other repositories, copied into this one: `ll-loop add` takes a copy from GitHub or from any git repository,
//! `ll-loop update` a newer one. Only these two speak to a server; a run reads the copy, and compares it with `.loops/lock.json`.

pub mod copied_loop;
mod copy_summary;
mod gather;
mod git_address;
mod merged_edits;
mod origin;
mod remote_repository;
mod store;
pub mod update_copies;

use std::path::PathBuf;

use git_address::GitAddress;

use crate::base::explanation::Explanation;
use crate::base::text::one_line;
use crate::ci::Provider;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::definition::load::{self, DIRECTORY};
use crate::definition::vendored::{CopyError, REMOTE, SharedName};
use crate::forge::github::api::Api;
use crate::forge::github::contents;
use crate::forge::github::contents::ContentsError;
use crate::process::address::without_credential;

/// The most bytes of the name of a branch or tag.
const MAX_REF: usize = 250;

/// Tells whether a text names a loop in a repository elsewhere: on GitHub, or by the address of a git repository.
pub fn is_remote(text: &str) -> bool {
    text.starts_with(REMOTE) || git_address::is_address(text)
}

/// Returns what is printed of a text that quotes loops: in the log of a job, no line of it is a command for the provider.
pub fn printed(text: &str, session: &Session<'_>) -> String {
    let provider = Provider::detect(&session.env.lookup());
    let lines = text.lines().map(|line| provider.dialect().untrusted(line).into_owned() + "\n");
    lines.collect()
}

/// A loop elsewhere, and the branch, tag or commit that is meant.
#[derive(Debug, PartialEq, Eq)]
enum RequestedLoop {
    /// On GitHub, whose API gives it.
    OfGithub { name: SharedName, reference: String },
    /// In a repository that git reaches.
    OfGit { address: GitAddress, name: SharedName, reference: String },
    /// In a repository that git reaches, without saying which file.
    Unnamed { address: GitAddress, reference: Option<String> },
}

impl RequestedLoop {
    /// Reads `github:OWNER/REPOSITORY/PATH.yaml@REF`, or `ADDRESS//PATH.yaml@REF` with the address of a git repository.
    fn parse(text: &str) -> Result<Self, Error> {
        match text.strip_prefix(REMOTE) {
            Some(name) => Self::of_github(name).map_err(|why| {
                refused(text, &why, "write `github:OWNER/REPOSITORY/PATH.yaml@REF`, where REF is a branch, a tag, or the 40 digits of a commit")
            }),
            None => Self::of_git(text).map_err(|why| {
                if let Some(meant) = git_address::of_page(text) {
                    let why = "it is the page of a file, not the address of a repository";
                    return refused(text, &Explanation::new(why), &format!("write `{meant}`"));
                }
                refused(text, &why, "write `https://HOST/REPOSITORY.git//PATH.yaml@REF`, where REF is a branch, a tag, or the 40 digits of a commit")
            }),
        }
    }

    fn of_github(text: &str) -> Result<Self, Explanation> {
        let (name, reference) = path_and_ref(text);
        let name = SharedName::parse(name)?;
        check_ref(reference)?;
        Ok(Self::OfGithub { name, reference: reference.to_owned() })
    }

    fn of_git(text: &str) -> Result<Self, Explanation> {
        let Some((address, file)) = git_address::address_and_path(text) else {
            let names_file = [".yaml", ".yml"].iter().any(|end| path_and_ref(text).0.ends_with(end));
            if names_file {
                return Err(Explanation::new("`//` has to stand between the repository and the path"));
            }
            // An `@` before the last part belongs to a user, `git@host:repository`.
            let last = text.rfind(['/', ':']).unwrap_or(0);
            let (address, reference) = match text[last..].split_once(['@', '#']) {
                Some((end, reference)) => (&text[..last + end.len()], Some(reference)),
                None => (text, None),
            };
            let address = GitAddress::parse(address)?;
            reference.map_or(Ok(()), check_ref)?;
            return Ok(Self::Unnamed { address, reference: reference.map(str::to_owned) });
        };
        let address = GitAddress::parse(address)?;
        let (path, reference) = path_and_ref(file);
        let name = address.name(path)?;
        check_ref(reference)?;
        Ok(Self::OfGit { address, name, reference: reference.to_owned() })
    }
}

/// Splits `PATH.yaml@REF`, or `PATH.yaml#REF` as others write it. A branch may hold an `@` as well as a path; the path ends in its
/// extension.
fn path_and_ref(text: &str) -> (&str, &str) {
    let ends = [".yaml@", ".yml@", ".yaml#", ".yml#"];
    let ends = ends.iter().filter_map(|end| Some(text.find(end)? + end.len() - 1));
    match ends.min().or_else(|| text.rfind('@')) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    }
}

fn refused(text: &str, why: &Explanation, form: &str) -> Error {
    // A text that is refused may be an address with a password in it.
    Error::refused(format!("`{}` names no shared loop: {why}", without_credential(&one_line(text, 200))))
        .with_hint(form)
}

/// Says why nothing in git has this name.
fn check_ref(name: &str) -> Result<(), Explanation> {
    let is_odd = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '#' | '%')
    };
    // A dash in front would make the name an option of git.
    let is_impossible = name.chars().any(is_odd)
        || ["..", "@{", "//"].iter().any(|odd| name.contains(odd))
        || name.starts_with(['-', '/'])
        || name.ends_with(['/', '.']);
    match name {
        "" => Err(Explanation::new("it has no `@REF`")),
        name if name.len() > MAX_REF => Err(Explanation::new("its REF is too long")),
        _ if is_impossible => Err(Explanation::new("no branch or tag can have the name of its REF")),
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
        let found = found.as_ref().map(|asked| match asked {
            RequestedLoop::OfGithub { name, reference } | RequestedLoop::OfGit { name, reference, .. } => {
                (name.as_str(), reference.as_str())
            }
            RequestedLoop::Unnamed { reference, .. } => ("", reference.as_deref().unwrap_or("")),
        });
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert!(error.message().contains(expected), "{error}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_loop_of_any_repository_is_asked_for_by_its_address() {
        check("https://h/g/s/r.git//l/a.yaml@v1", Ok(("h.host/s-r/l/a.yaml", "v1")));
        check("https://h/o/r//a.yaml#v1", Ok(("h.host/o-r/a.yaml", "v1")));
        check("git@h:o/r.git//a.yml@me@home/x", Ok(("h.host/o-r/a.yml", "me@home/x")));
        check("file:///srv/r.git/l/a.yaml@main", Ok(("file.host/srv-r/l/a.yaml", "main")));
        check("https://h/o/r.git", Ok(("", "")));
        check("git@h:o/r.git@v1", Ok(("", "v1")));
        check("https://h/o/r.git#v1", Ok(("", "v1")));
        check("https://h/o/r/blob/main/a.yaml", Err("it is the page of a file"));
        check("https://h/o/r//a.yaml", Err("it has no `@REF`"));
        check("https://h/o/r//../a.yaml@v1", Err("lead upwards"));
        check("https://h/o/r//a.yaml@--x", Err("no branch or tag"));
        check("ext::evil//a.yaml@v1", Err("not a protocol"));
        check("https://me:geheim@h/o/r//a.yaml@v1", Err("a credential"));
        assert!(
            !RequestedLoop::parse("https://me:geheim@h/o/r//a.yaml@v1")
                .unwrap_err()
                .message()
                .contains("geheim")
        );
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
