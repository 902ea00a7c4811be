//! Looks for loops that cannot always be found by their names.

use std::collections::HashMap;

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::path::DocPath;
use crate::definition::load::Listed;
use crate::files::file_name::file_name;
use crate::session::prepare::loop_check::Checked;

/// Files whose names are too much like that of a loop.
#[derive(Clone, Default)]
pub(super) struct Same {
    /// The file that is found instead.
    hidden_by: Option<String>,
    /// A loop whose name differs only in upper and lower case.
    twin: Option<String>,
}

/// Compares the names of files with each other.
pub(super) fn same(all: &[Listed]) -> Vec<Same> {
    let mut spelled: HashMap<String, Vec<&str>> = HashMap::new();
    for listed in all {
        spelled.entry(listed.name.to_lowercase()).or_default().push(&listed.name);
    }
    let twin = |name: &str| spelled.get(&name.to_lowercase())?.iter().find(|other| **other != name);
    let same = |listed: &Listed| Same {
        hidden_by: listed.hidden_by.as_ref().map(|path| file_name(path)),
        twin: twin(&listed.name).map(|twin| (*twin).to_owned()),
    };
    all.iter().map(same).collect()
}

/// Adds what is wrong with the name of a loop, also beside the files around it where these are known.
pub(super) fn check(checked: &mut Checked, same: Option<&Same>, commands: &[String]) {
    let found = findings(checked.name.as_deref().unwrap_or(""), same, commands);
    checked.findings.extend(found);
}

fn findings(name: &str, same: Option<&Same>, commands: &[String]) -> Diagnostics {
    let mut findings = Diagnostics::default();
    let place = || FindingPlace::Value(DocPath::root().key("name"));
    if commands.iter().any(|command| command == name) {
        let message = format!("`ll-loop {name}` is a command, and not this loop");
        let help = format!("run it with `ll-loop run {name}`, or give the file another name");
        findings.push(Diagnostic::warning("shadowed-by-command", place(), message).help(help));
    }
    if let Some(other) = same.and_then(|same| same.hidden_by.as_ref()) {
        let message = format!("this file is not found by its name, which is that of `{other}`");
        findings
            .push(Diagnostic::warning("same-name", place(), message).help("give one of them another name"));
    }
    if let Some(twin) = same.and_then(|same| same.twin.as_ref()) {
        let message = format!("the loops `{name}` and `{twin}` differ only in upper and lower case");
        let help = "give one of them another name: on macOS, a checkout has only one of the files";
        findings.push(Diagnostic::warning("same-name", place(), message).help(help));
    }
    findings
}
