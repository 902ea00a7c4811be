//! Finds the lines of states in a loop file, to which reports link.

use indexmap::IndexMap;

use crate::base::diagnostic::FindingPlace;
use crate::base::name::StateName;
use crate::base::path::DocPath;
use crate::definition::load::Loaded;

/// Returns the line of each state.
pub(super) fn lines(loaded: &Loaded) -> IndexMap<StateName, u32> {
    let states = DocPath::root().key("states");
    let line = |name: &StateName| {
        let span =
            loaded.sources.locate(&FindingPlace::Key(states.key(name.as_str())), Some(&loaded.tree))?;
        let line = loaded.sources.get(span.file)?.position(span.range.start).line;
        u32::try_from(line).ok()
    };
    loaded.definition.states.keys().filter_map(|name| Some((name.clone(), line(name)?))).collect()
}
