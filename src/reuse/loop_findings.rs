//! Compares what a loop names as its inputs with the tree that it lies in: what its checks name and no input holds, and a scope
//! that no key can describe.

use std::path::Path;

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::gitpath;
use crate::base::path::DocPath;
use crate::base::template::Template;
use crate::base::text::one_line;
use crate::files::links::{real, repository};
use crate::machine::{Action, Machine, Reuse};
use crate::reuse::input_patterns::InputPatterns;
use crate::shell::command::commands;

/// The most files that are named.
const MOST_NAMED: usize = 5;

/// Looks at a loop that lies in a directory.
pub(crate) fn find(machine: &Machine, scope: &[Template], root: &Path) -> Diagnostics {
    let mut findings = Diagnostics::default();
    let Some(reuse) = &machine.reuse else { return findings };
    let top = repository(root, None);
    outside(scope, root, &top, &mut findings);
    unheld(machine, reuse, root, &top, &mut findings);
    findings
}

/// Refuses a scope outside of the repository: what lies there is in no key.
fn outside(scope: &[Template], root: &Path, top: &Path, findings: &mut Diagnostics) {
    for (at, path) in scope.iter().enumerate() {
        // A path with a value in it is known in the run alone, which then has no key.
        let Some(path) = path.as_literal() else { continue };
        if !real(&root.join(path.as_ref())).starts_with(top) {
            let place = FindingPlace::Value(DocPath::root().key("scope").index(at));
            let message = format!(
                "the loop cannot be reused: its scope `{}` is outside of the repository",
                one_line(&path, 120)
            );
            let help = "what lies there is in no key; leave `reuse` out";
            findings.push(Diagnostic::error("reuse", place, message).help(help));
        }
    }
}

/// Notes files that checks name and no input holds. What is known only in a run is not looked at.
fn unheld(machine: &Machine, reuse: &Reuse, root: &Path, top: &Path, findings: &mut Diagnostics) {
    let literals: Option<Vec<String>> =
        reuse.inputs.iter().map(|input| input.as_literal().map(std::borrow::Cow::into_owned)).collect();
    let Some(Ok(inputs)) = literals.map(|literals| InputPatterns::parse(&literals)) else { return };
    for (_, step) in machine.steps().filter(|(_, step)| step.is_check) {
        let Some(Action::Shell(shell)) = &step.action else { continue };
        let cwd = shell.setting.cwd.as_ref().and_then(Template::as_literal).unwrap_or_default();
        let directory = real(&root.join(cwd.as_ref()));
        let all = commands(shell.text.source());
        let named = all.iter().flat_map(crate::shell::command::SimpleCommand::values).flatten();
        let mut unheld: Vec<String> = named
            .filter(|word| !word.is_empty() && !word.starts_with('-') && !word.contains("${"))
            .filter_map(|word| {
                let file = directory.join(word);
                let path = file.strip_prefix(top).ok()?;
                let path = gitpath::to_text(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()));
                (file.is_file() && !inputs.hold(&path)).then_some(path)
            })
            .collect();
        unheld.dedup();
        for path in unheld.into_iter().take(MOST_NAMED) {
            let place = DocPath::root().key("states").key(step.name.as_str()).key("action");
            let message =
                format!("`{}` names the file `{}`, which no input holds", step.name, one_line(&path, 120));
            let help = "add it to `inputs` of `reuse`, if the check reads it";
            findings.push(Diagnostic::note("reuse-input", FindingPlace::Value(place), message).help(help));
        }
    }
}
