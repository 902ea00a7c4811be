//! Where the spending of a day is kept, as a policy writes it.

use std::fmt;

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, text};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::base::text::{after_last, one_line, up_to};

/// Where the spending of a day is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerPlace {
    /// A branch of a remote of the checkout, or of a repository at an address; without a name, of `origin`.
    Git(Option<String>),
    /// A service of the organisation.
    Web(String),
}

impl LedgerPlace {
    /// Reads a place as it is written; nothing where it is neither.
    ///
    /// A credential in an address is refused: a policy is shown, and written into journals.
    pub fn parse(written: &str) -> Option<Self> {
        let is_plain = |text: &str| {
            !text.is_empty()
                && !text.contains(|c: char| c.is_whitespace() || c.is_control())
                && !has_credential(text)
        };
        if written == "git" {
            return Some(Self::Git(None));
        }
        if let Some(remote) = written.strip_prefix("git=") {
            // Git would read it as an option.
            return (is_plain(remote) && !remote.starts_with('-'))
                .then(|| Self::Git(Some(remote.to_owned())));
        }
        let (scheme, rest) = written.split_once("://").filter(|_| is_plain(written))?;
        let server = rest.split(['/', '?', '#']).next().filter(|server| !server.is_empty())?;
        let host = server.split_once(':').map_or(server, |(host, _port)| host);
        let is_safe = match scheme {
            "https" => true,
            // Nobody but this machine is asked.
            "http" => matches!(host, "127.0.0.1" | "localhost"),
            _ => false,
        };
        is_safe.then(|| Self::Web(written.to_owned()))
    }
}

/// Returns what is written without what may be a secret: a credential, as for which it is refused, and a query.
fn shown(written: &str) -> String {
    let (kind, address) = written.strip_prefix("git=").map_or(("", written), |address| ("git=", address));
    // The address of a machine that is written without `//` has its name and a password in the same place.
    let Some((scheme, rest)) = address.split_once("://") else {
        return one_line(&format!("{kind}{}", after_last(address, &['@'])), 80);
    };
    let rest = up_to(rest, &['?', '#']);
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    one_line(&format!("{kind}{scheme}://{}{path}", after_last(server, &['@'])), 80)
}

fn has_credential(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else { return false };
    let server = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let Some((user, _)) = server.rsplit_once('@') else { return false };
    // Only SSH needs a name, which tells nothing. Elsewhere a token may stand alone in its place, and looks like a name.
    user.contains(':') || !matches!(scheme, "ssh" | "git+ssh" | "ssh+git")
}

impl fmt::Display for LedgerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git(None) => f.write_str("git"),
            Self::Git(Some(remote)) => write!(f, "git={remote}"),
            Self::Web(address) => f.write_str(address),
        }
    }
}

impl Decode for LedgerPlace {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let written = text(node, path, "the place of a ledger", out)?;
        let place = Self::parse(written);
        if place.is_none() {
            let message = format!("`{}` is not a valid place of a ledger", shown(written));
            let finding = Diagnostic::error("policy", FindingPlace::Value(path.clone()), message);
            out.push(finding.help(
                "write `git`, `git=REMOTE` or an `https://` address, without a name or a password in it",
            ));
        }
        place
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "pattern": r"^(git(=[^\s-]\S*)?|https?://\S+)$", "description": "`git`, `git=REMOTE` or an `https://` address."})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_on_a_branch_or_at_an_address() {
        for written in [
            "git",
            "git=origin",
            "git=https://example.com/o/ledger.git",
            "git=https://example.com/o@2/ledger.git",
            "git=ssh://git@example.com/o/ledger.git",
            "git=git@example.com:o/ledger.git",
            "https://example.com/l?x=1",
            "https://example.com/l?by=me@example.com",
        ] {
            assert_eq!(LedgerPlace::parse(written).unwrap().to_string(), written);
        }
        for none in [
            "",
            "Git",
            "git=",
            "git=-u",
            "git=a b",
            "git=https://me:word@example.com/o/l",
            "https://me:word@example.com/",
            // A token stands alone where others have their name.
            "git=https://ghp_0123456789@github.com/o/l",
            "git=ssh://me:word@example.com/o/l",
            "https://ghp_0123456789@example.com/",
            "http://example.com/",
            "ftp://x/",
            "/srv/ledger",
        ] {
            assert_eq!(LedgerPlace::parse(none), None, "{none}");
        }
    }

    #[test]
    fn a_refusal_shows_no_secret_of_an_address() {
        for (written, expected) in [
            ("git=https://ghp_0123456789@github.com/o/l", "git=https://github.com/o/l"),
            ("https://me:word@example.com/l", "https://example.com/l"),
            ("http://example.com/l?token=geheim", "http://example.com/l"),
            ("https://me:word@example.com/l?token=geheim#geheim", "https://example.com/l"),
            ("me:word@example.com/l", "example.com/l"),
            ("/srv/ledger", "/srv/ledger"),
        ] {
            assert_eq!(shown(written), expected);
        }
    }
}
