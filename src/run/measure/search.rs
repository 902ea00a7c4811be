//! Looks for secrets in what a run changed, and leaves out what there is no time for.

use std::path::Path;

use crate::base::redact::Redactor;
use crate::files::secret::{self, SECRET};
use crate::process::signal::Cancel;
use crate::run::look_error::LookError;

/// So many bytes are searched where a run has to end soon. They take a second or two, and who has asked for the end waits for
/// less than ten.
const MOST_IN_A_HURRY: u64 = 16 << 20;

/// A search in the files that a run changed.
#[derive(Debug)]
pub(super) struct SecretSearch<'s> {
    /// What is looked for.
    pub(super) redactor: &'s Redactor,
    /// Who may ask the run to end, also while it is searched.
    pub(super) asked: Cancel,
    /// Whether the time of the job is over.
    pub(super) is_late: bool,
    /// How many bytes were searched since the run has to end soon.
    pub(super) searched: u64,
}

impl SecretSearch<'_> {
    /// Tells why a file is left out of the patch: it holds a secret, or nobody has the time to see.
    pub(super) async fn why_left_out(&mut self, path: &Path) -> Option<&'static str> {
        let metadata = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
        if self.redactor.is_empty() {
            return None;
        }
        self.asked.catch_up().await;
        if !self.has_time_for(metadata.len()) {
            return Some(secret::keep_back(self.redactor, &metadata));
        }
        // Where the file cannot be read, it may hold some.
        secret::why_kept_back(self.redactor, path).unwrap_or(Some(SECRET))
    }

    /// Refuses a patch that shows a secret: its contexts are lines that the run did not write.
    pub(super) fn patch(&mut self, patch: &[u8]) -> Result<(), LookError> {
        if self.redactor.is_empty() {
            return Ok(());
        }
        let read = readable(patch);
        // The files in it were searched within the same time.
        self.searched = 0;
        if !self.has_time_for(read.len() as u64 / 2) {
            return Err(LookError::unfit("there was no time to search it for secrets"));
        }
        if self.redactor.finds(&read) {
            return Err(LookError::unfit("a line that was there before holds a secret"));
        }
        Ok(())
    }

    /// Tells whether so many bytes more can be searched, and counts them.
    fn has_time_for(&mut self, bytes: u64) -> bool {
        if !self.is_late && !self.asked.is_asked() {
            return true;
        }
        let searched = self.searched.saturating_add(bytes);
        let fits = searched <= MOST_IN_A_HURRY;
        if fits {
            self.searched = searched;
        }
        fits
    }
}

/// Returns a patch without the contents of binary files: they are compressed, and were searched as files.
fn readable(patch: &[u8]) -> Vec<u8> {
    let mut is_binary = false;
    let mut read = Vec::with_capacity(patch.len());
    // Lines of a text begin with a sign of their own, so that none of them is one of these.
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        is_binary = match line {
            b"GIT binary patch\n" => true,
            line if line.starts_with(b"diff --git ") => false,
            _ => is_binary,
        };
        if !is_binary {
            read.extend_from_slice(line);
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_binary_files_a_patch_shows_no_more_than_the_name() {
        let patch = "diff --git a/x b/x\nGIT binary patch\nliteral 3\nabc\n\nliteral 0\ndef\n\ndiff --git a/y b/y\n@@ -1 +1 @@\n+GIT binary patch\n+y\n";
        let expected = "diff --git a/x b/x\ndiff --git a/y b/y\n@@ -1 +1 @@\n+GIT binary patch\n+y\n";
        assert_eq!(String::from_utf8(readable(patch.as_bytes())).unwrap(), expected);
    }

    #[test]
    fn in_a_hurry_what_is_large_is_left_out_and_the_rest_is_searched() {
        let redactor = Redactor::new(["correct-horse-battery"]);
        let (_ask, asked) = Cancel::channel();
        let search =
            |is_late| SecretSearch { redactor: &redactor, asked: asked.clone(), is_late, searched: 0 };
        assert!(search(false).has_time_for(u64::MAX));
        let mut hurried = search(true);
        let fits = [1, MOST_IN_A_HURRY, MOST_IN_A_HURRY - 1, 1].map(|bytes| hurried.has_time_for(bytes));
        assert_eq!(fits, [true, false, true, false]);
        let mut other = search(true);
        assert!(other.patch(b"+a line\n").is_ok());
        assert!(other.patch(b" correct-horse-battery\n").is_err());
    }
}
