//! The names by which people mean a run on a server.

/// What a run is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNames {
    /// Its loop.
    pub loop_name: String,
    /// Its key, where it has one that people see.
    pub key: Option<String>,
    /// Its id.
    pub instance: String,
    /// The run of the workflow that it is in.
    pub run: u64,
}

impl RunNames {
    /// Takes them from the name of a status, `ll-loop/LOOP` or `ll-loop/LOOP (KEY)`, and from the mark in its link. A
    /// status that somebody named says nothing of the loop, and the id of the run begins with it.
    pub fn of_status(context: &str, instance: &str, run: u64) -> Self {
        // An id ends with a time and a random part; the name before them may have hyphens itself.
        let stem = instance.rsplitn(3, '-').nth(2).unwrap_or(instance);
        let ours = context.strip_prefix("ll-loop/");
        let (loop_name, key) = match ours.and_then(|name| name.strip_suffix(')')?.rsplit_once(" (")) {
            Some((name, key)) => (name, Some(key.to_owned())),
            None => (ours.unwrap_or(stem), None),
        };
        Self { loop_name: loop_name.to_owned(), key, instance: instance.to_owned(), run }
    }

    /// Tells whether this is one of them.
    pub fn bear(&self, name: &str) -> bool {
        let Self { loop_name, key, instance, run } = self;
        loop_name == name || key.as_deref() == Some(name) || instance == name || run.to_string() == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_meant_by_its_loop_its_key_its_id_and_its_number() {
        let instance = "fix-types-20251120T234847-1f2e";
        let plain = RunNames::of_status("ll-loop/team/fix-types", instance, 77);
        assert_eq!((plain.loop_name.as_str(), &plain.key), ("team/fix-types", &None));
        let keyed = RunNames::of_status("ll-loop/fix-types (linux)", instance, 77);
        assert_eq!((keyed.loop_name.as_str(), keyed.key.as_deref()), ("fix-types", Some("linux")));
        for name in ["fix-types", "linux", instance, "77"] {
            assert!(keyed.bear(name), "{name}");
        }
        for name in ["", "fix", "7", "Linux", "fix-types (linux)"] {
            assert!(!keyed.bear(name), "{name}");
        }
        assert_eq!(RunNames::of_status("quality", instance, 77).loop_name, "fix-types");
    }
}
