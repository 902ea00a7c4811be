//! The directory that a merge writes, as far as it is known by its result: which bundle in it is the merged one.

use std::path::Path;

use serde_json::Value;

use super::EXTENSION;
use crate::base::name::StateName;
use crate::files::read;

/// The result of a run or a merge, in a directory of reports.
pub const RESULT: &str = "result.json";

/// The longest result that is read: a merge of all its items, in bytes.
const MAX_RESULT: u64 = 64 * read::MIB;

/// Returns the name of the bundle that a merge left in a directory.
pub fn bundle_of(directory: &Path) -> Option<String> {
    let text = read::bytes(&directory.join(RESULT), MAX_RESULT).ok()?;
    let result: Value = serde_json::from_slice(&text).ok()?;
    // A result of a run has no `plan_id`, and may name no bundle as that of a merge.
    result.get("plan_id")?;
    let name = result.get("bundle")?.as_str()?.to_owned();
    let is_plain =
        // The result may be a stranger's: a name with a slash would lead elsewhere.
        Path::new(&name).extension().is_some_and(|end| end == EXTENSION) && StateName::parse(&name).is_ok();
    is_plain.then_some(name)
}
