//! `https://…/repo.git//loops/tidy.yaml@v1`: the address of any git repository, and a loop in it. The address goes to git and
//! into `.loops/lock.json`, so it may hold neither a credential nor what git takes for something else than a place.

use crate::base::text::{one_line, up_to};
use crate::definition::vendored::{SharedName, SharedNameError};

/// The protocols that git speaks by itself. Others are programs that it would start.
const PROTOCOLS: [&str; 5] = ["https", "ssh", "file", "http", "git"];

/// The most bytes of an address.
const LONGEST: usize = 1000;

/// Why a text is not the address of a repository that loops may be copied from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GitAddressError {
    /// No protocol of git, or one that starts a program.
    #[error("`{0}` is not a protocol that loops are fetched by: it has to be https, ssh, file, http or git")]
    Protocol(String),
    /// It holds a password or a token.
    #[error("its address holds a credential, which `.loops/lock.json` would keep")]
    Credential,
    /// It names no host or no repository.
    #[error("its address names no repository")]
    NoRepository,
    /// Something in it is part of no address.
    #[error("its address contains {0:?}")]
    Odd(char),
    /// It is too long.
    #[error("its address is longer than {LONGEST} bytes")]
    TooLong,
}

/// The address of a repository, as git takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitAddress {
    text: String,
    /// What its copies lie in: the host, and the last two parts of the path.
    repository: String,
}

impl GitAddress {
    /// Reads an address.
    pub(super) fn parse(text: &str) -> Result<Self, GitAddressError> {
        if text.len() > LONGEST {
            return Err(GitAddressError::TooLong);
        }
        let is_odd = |c: &char| {
            c.is_control()
                || c.is_whitespace()
                || crate::base::text::is_direction(*c)
                || "\\?#\"'`".contains(*c)
        };
        if let Some(odd) = text.chars().find(is_odd) {
            return Err(GitAddressError::Odd(odd));
        }
        let (host, path) = host_and_path(text)?;
        let path = path.trim_end_matches('/');
        // With and without this ending, an address means the same repository, and its copies have one place.
        let path = path.strip_suffix("/.git").or_else(|| path.strip_suffix(".git")).unwrap_or(path);
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        // ssh would take a host that begins with a dash for an option, such as `-oProxyCommand=`.
        if parts.is_empty() || host.starts_with('-') {
            return Err(GitAddressError::NoRepository);
        }
        let plain =
            |part: &str| part.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)), "-");
        // A name of GitHub's has no dot before the slash: whatever allows `octo/*` allows nothing that calls itself so elsewhere.
        let host = match host {
            "" => "file.host".to_owned(),
            host if host.contains('.') => plain(&host.to_ascii_lowercase()),
            host => format!("{}.host", plain(host)),
        };
        // The name of a copy has two parts before the path, however deep the repository lies on its server.
        let last = plain(&parts[parts.len().saturating_sub(2)..].join("-"));
        Ok(Self { text: text.to_owned(), repository: format!("{host}/{last}") })
    }

    /// Returns it as git takes it.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name of a file of the repository.
    pub(super) fn name(&self, path: &str) -> Result<SharedName, SharedNameError> {
        SharedName::parse(&format!("{}/{path}", self.repository))
    }

    /// Tells whether somebody on the way may change what comes.
    pub(super) fn is_open(&self) -> bool {
        ["http://", "git://"].iter().any(|protocol| self.text.starts_with(protocol))
    }
}

/// Splits an address into its host, without a user, and its path.
fn host_and_path(text: &str) -> Result<(&str, &str), GitAddressError> {
    if let Some((protocol, rest)) = text.split_once("://") {
        if !PROTOCOLS.contains(&protocol) {
            return Err(GitAddressError::Protocol(one_line(protocol, 40)));
        }
        let (server, path) = rest.split_once('/').ok_or(GitAddressError::NoRepository)?;
        let (user, host) = server.rsplit_once('@').map_or(("", server), |(user, host)| (user, host));
        // Over ssh a name says who asks, and no more.
        if !user.is_empty() && (protocol != "ssh" || user.contains(':')) {
            return Err(GitAddressError::Credential);
        }
        let host = host.split(':').next().unwrap_or(host);
        if host.is_empty() && protocol != "file" {
            return Err(GitAddressError::NoRepository);
        }
        return if user.starts_with('-') { Err(GitAddressError::NoRepository) } else { Ok((host, path)) };
    }
    let (server, path) = text.split_once(':').ok_or(GitAddressError::NoRepository)?;
    // In `ext::COMMAND`, git takes the first part for a helper that it starts.
    if path.starts_with(':') {
        return Err(GitAddressError::Protocol(one_line(server, 40)));
    }
    // git takes `./a:b`, with a slash before the colon, for a path on this machine.
    if server.is_empty() || server.starts_with('-') || server.contains('/') {
        return Err(GitAddressError::NoRepository);
    }
    Ok((server.rsplit_once('@').map_or(server, |(_, host)| host), path))
}

/// Tells whether a text begins as an address does: with a protocol, or as `[USER@]HOST:PATH`.
pub(super) fn is_address(text: &str) -> bool {
    let first = up_to(text, &['/']);
    text.contains("://") || (first.contains(':') && !first.starts_with(':'))
}

/// Splits what a person writes into the address of the repository, and the path in it with the branch, tag or commit. The path
/// begins behind `//`; where that is left out, behind `.git/`.
pub(super) fn address_and_path(text: &str) -> Option<(&str, &str)> {
    let begin = text.find("://").map_or(0, |at| at + 3);
    if let Some(at) = text[begin..].find("//") {
        return Some((&text[..begin + at], &text[begin + at + 2..]));
    }
    let at = text[begin..].find(".git/")? + begin + ".git".len();
    Some((&text[..at], &text[at + 1..]))
}

/// Returns what somebody means who writes the address of the page on which a browser shows a loop; nothing where it is not such an address.
pub(super) fn of_page(text: &str) -> Option<String> {
    let text = text.split(['?', '#']).next()?;
    let pages = ["/-/blob/", "/blob/", "/src/branch/", "/src/tag/", "/raw/"];
    let (repository, rest) = pages.iter().find_map(|part| text.split_once(part))?;
    let (reference, path) = rest.split_once('/')?;
    let address = GitAddress::parse(repository).ok()?;
    address.name(path).is_ok().then(|| format!("{repository}//{path}@{reference}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_under_which_name_copies_lie() {
        for (text, repository) in [
            ("https://git.example/group/sub/repo.git", "git.example/sub-repo"),
            ("https://Git.Example:8443/o/r", "git.example/o-r"),
            ("ssh://git@git.example:22/o/r.git", "git.example/o-r"),
            ("git@git.example:o/r.git", "git.example/o-r"),
            ("git@git.example:r.git", "git.example/r"),
            ("https://octo/tools/x", "octo.host/tools-x"),
            ("file:///srv/git/tools.git", "file.host/git-tools"),
            ("file:///srv/my+tools/.git", "file.host/srv-my-tools"),
            ("file:///tools", "file.host/tools"),
            ("https://git.example/~me/r", "git.example/-me-r"),
        ] {
            assert_eq!(GitAddress::parse(text).unwrap().repository, repository, "{text}");
        }
    }

    #[test]
    fn an_address_starts_no_program_and_holds_no_credential() {
        for (text, error) in [
            ("ext::sh -c evil", GitAddressError::Odd(' ')),
            ("ext::evil/x", GitAddressError::Protocol("ext".to_owned())),
            ("fd://17/x", GitAddressError::Protocol("fd".to_owned())),
            ("https://me:geheim@git.example/o/r", GitAddressError::Credential),
            ("https://geheim@git.example/o/r", GitAddressError::Credential),
            ("ssh://me:geheim@git.example/o/r", GitAddressError::Credential),
            ("ssh://-oProxyCommand=evil/o/r", GitAddressError::NoRepository),
            ("-oProxyCommand=evil:o/r", GitAddressError::NoRepository),
            ("https:///o/r", GitAddressError::NoRepository),
            ("https://git.example/", GitAddressError::NoRepository),
            ("https://git.example/o/r?x", GitAddressError::Odd('?')),
            ("https://git.example/o/\u{202e}r", GitAddressError::Odd('\u{202e}')),
        ] {
            assert_eq!(GitAddress::parse(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn the_path_begins_behind_two_slashes_or_the_name_of_the_repository() {
        let split = address_and_path;
        assert_eq!(split("https://h/o/r//l/a.yaml@v1"), Some(("https://h/o/r", "l/a.yaml@v1")));
        assert_eq!(split("https://h/o/r.git/l/a.yaml"), Some(("https://h/o/r.git", "l/a.yaml")));
        assert_eq!(split("git@h:o/r.git//a.yaml"), Some(("git@h:o/r.git", "a.yaml")));
        assert_eq!(split("https://h/o/r.git"), None);
        let page = |text: &str| of_page(text).unwrap_or_default();
        assert_eq!(page("https://h/o/r/blob/v1/l/a.yaml?plain=1"), "https://h/o/r//l/a.yaml@v1");
        assert_eq!(page("https://h/g/s/r/-/blob/main/a.yaml"), "https://h/g/s/r//a.yaml@main");
        assert_eq!(page("https://h/o/r/blob/v1/README.md"), "");
        assert!(is_address("git@h:o/r") && is_address("https://h/o") && is_address("ext::sh"));
        assert!(!is_address("rust-tidy") && !is_address("./a:b.yaml") && !is_address("dir/a.yaml"));
    }
}
