//! Who is told when the outcome of a loop changes, as its file says it.

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::path::DocPath;
use crate::definition::schema::{self, Loop, NotifyShape};

/// Who is told, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyRule {
    /// Who.
    pub to: NotifyTarget,
    /// What the document looks like, where the loop says so.
    pub shape: Option<NotifyShape>,
}

/// Where a document goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyTarget {
    /// To this address.
    Url(String),
    /// To the address in this variable of the environment.
    Variable(String),
    /// Into the standard input of this command line.
    Command(String),
}

/// Reads whom a loop tells. What it says in a wrong way is a problem.
pub(super) fn notify(definition: &Loop, problems: &mut Diagnostics) -> Option<NotifyRule> {
    let schema::Notify { url, url_from, command, shape } = definition.notify.as_ref()?;
    let mut problem = |message: &str, help: &str| {
        let place = FindingPlace::Key(DocPath::root().key("notify"));
        problems.push(Diagnostic::error("notify", place, message.to_owned()).help(help));
        None
    };
    let to = match (url, url_from, command) {
        (Some(url), None, None) => NotifyTarget::Url(url.clone()),
        (None, Some(name), None) => NotifyTarget::Variable(name.clone()),
        (None, None, Some(command)) => NotifyTarget::Command(command.clone()),
        _ => {
            return problem(
                "`notify` names no receiver, or several",
                "write one of `url`, `url_from` and `command`",
            );
        }
    };
    match &to {
        NotifyTarget::Url(url) if !is_address(url) => problem(
            "the `url` of `notify` is not an address",
            "write `https://…`, or `url_from` and a variable that holds it",
        ),
        NotifyTarget::Variable(name) if !is_variable(name) => problem(
            "`url_from` of `notify` is not the name of a variable",
            "write a name such as `SLACK_WEBHOOK_TOKEN`, without `$`",
        ),
        NotifyTarget::Command(command) if command.trim().is_empty() => problem(
            "the `command` of `notify` is empty",
            "write a command line, which reads JSON from its standard input",
        ),
        NotifyTarget::Url(_) | NotifyTarget::Variable(_) | NotifyTarget::Command(_) => {
            Some(NotifyRule { to, shape: *shape })
        }
    }
}

/// Tells whether a text could be an address that something is posted to.
pub fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control()))
}

fn is_variable(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}
