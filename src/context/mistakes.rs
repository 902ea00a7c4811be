//! Turns the findings in a loop file into what the reports of a run say that could not begin because of them.

use std::path::Path;

use crate::context::talk::Findings;
use crate::definition::load::Located;
use crate::definition::render;
use crate::report::unbegun_run::Mistake;

/// Returns the errors among findings, with their places as seen from the directory of the loop.
pub(crate) fn mistakes(located: &Located, findings: &Findings<'_>, cwd: &Path) -> Vec<Mistake> {
    let Findings { found, sources, tree } = findings;
    // From the JSON that `validate` prints, so that reports name the same places.
    let objects = render::to_json(found, sources, *tree);
    let errors = objects.iter().filter(|object| object["severity"] == "error");
    let mistake = |object: &serde_json::Value| {
        let number = |key: &str| object[key].as_u64().and_then(|number| u32::try_from(number).ok());
        let text = |key: &str| object[key].as_str().map(str::to_owned);
        Some(Mistake {
            message: text("message")?,
            help: text("help"),
            file: shown(&cwd.join(text("file")?), &located.root),
            line: number("line"),
            column: number("column"),
        })
    };
    errors.filter_map(mistake).collect()
}

/// Writes a path as seen from the directory of the loop.
pub(crate) fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}
