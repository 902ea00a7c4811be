//! Where a run is read about: beside its own files, or on another machine that has nothing but a clone of the
//! repository.

/// Where people can read about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reader {
    /// The directory of the loop, from the root of the repository; empty for the root itself.
    pub home: String,
    /// The directory that its commands need, from where the reader is; empty where none does.
    pub directory: String,
    /// How another machine gets the run; nothing for readers beside its files.
    pub remote: Option<RunDownload>,
}

/// How another machine gets a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunDownload {
    /// From the artifacts of a run of a workflow.
    Workflow {
        /// The repository, as `OWNER/NAME`.
        repository: String,
        /// The number of the run of the workflow.
        run: String,
        /// The key of the run.
        key: Option<String>,
        /// The address of the API, for another server than github.com.
        api: Option<String>,
    },
    /// From its bundle in the reports that the job keeps, by its path.
    Bundle(String),
}

impl Reader {
    /// Returns a path of the run as seen from the root of the repository.
    pub fn in_repository(&self, path: &str) -> String {
        // Only a file outside of the directory of the run has an absolute path, and no place below `home`.
        if self.home.is_empty() || path.is_empty() || path.starts_with('/') {
            return path.to_owned();
        }
        let (mut home, mut rest) = (self.home.as_str(), path);
        while let (false, Some(above)) = (home.is_empty(), rest.strip_prefix("../")) {
            rest = above;
            home = home.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        if home.is_empty() { rest.to_owned() } else { format!("{home}/{rest}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_the_root_of_the_repository() {
        let check = |home: &str, path: &str, expected: &str| {
            let reader = Reader { home: home.to_owned(), ..Reader::default() };
            assert_eq!(reader.in_repository(path), expected, "{home} {path}");
        };
        check("", ".loops/x.yaml", ".loops/x.yaml");
        check("a/b", ".loops/x.yaml", "a/b/.loops/x.yaml");
        check("a/b", "../x.yaml", "a/x.yaml");
        check("a/b", "../../x.yaml", "x.yaml");
        check("a/b", "../../../x.yaml", "../x.yaml");
        check("a/b", "/x.yaml", "/x.yaml");
        check("a/b", "", "");
    }
}
