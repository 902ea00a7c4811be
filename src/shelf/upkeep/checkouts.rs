//! Where a job has its own repository, and where those of others: what it runs there is about them.

use super::lined_yaml;
use super::script_lines::is_plain;
use crate::base::node::Node;

/// The directories into which a job checks repositories out.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkouts {
    own: Vec<String>,
    others: Vec<String>,
}

impl Checkouts {
    /// Reads those of a job, with what joins parts of a path.
    pub(super) fn of(job: &Node, joined: fn(&str, &str) -> String) -> Self {
        let mut found = Self::default();
        for step in lined_yaml::items(job.get("steps")) {
            if !lined_yaml::text(step.get("uses")).is_some_and(|uses| uses.starts_with("actions/checkout@")) {
                continue;
            }
            let input = |name: &str| lined_yaml::text(step.get("with").and_then(|with| with.get(name)));
            let path = joined("", input("path").filter(|path| is_plain(path)).unwrap_or(""));
            // The head of a pull request is of the same repository, or of its fork.
            let is_own = input("repository").is_none_or(|name| name.contains("github."));
            if is_own { found.own.push(path) } else { found.others.push(path) }
        }
        found
    }

    /// Notes that the sources of the repository are unpacked into a directory.
    pub(super) fn unpack(&mut self, directory: String) {
        if self.own.is_empty() {
            self.own.push(directory);
        }
    }

    /// Returns a directory of the job as it is called in the repository; nothing for one that is not of it.
    pub(super) fn inside(&self, directory: &str) -> Option<String> {
        let rest = |place: &String| match (place.as_str(), directory.strip_prefix(place.as_str())) {
            ("", rest) => rest,
            (_, Some(rest)) if rest.is_empty() || rest.starts_with('/') => Some(rest.trim_start_matches('/')),
            (_, _) => None,
        };
        // One checkout may lie within another, whose files it then is not part of.
        let deepest = |places: &[String]| {
            let holding = places.iter().filter_map(|place| Some((place.len(), rest(place)?.to_owned())));
            holding.max_by_key(|(depth, _)| *depth)
        };
        // Jobs of GitLab have no step for it: they begin in their own repository.
        if self.own.is_empty() && self.others.is_empty() {
            return Some(directory.to_owned());
        }
        let of_others = deepest(&self.others).map(|(depth, _)| depth);
        let (depth, within) = deepest(&self.own)?;
        // A second checkout of the same repository is a version with which the first is compared.
        let is_compared = self.own.len() > 1 && depth > 0;
        (!is_compared && of_others.is_none_or(|other| other <= depth)).then_some(within)
    }
}
