//! The index as it was when the run began, of which a copy is kept beside the journal. Git takes a file for unchanged where
//! its times, its number and its size are those that the index has, and an action can write there what it likes: the id of
//! the commit beside the times of another content. So where the index is not what it was, the times are those of the copy,
//! and what differs by them, or between both, is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::look::{Measurer, SurroundingRepository, is_left_out};
use crate::base::text::hex;
use crate::engine::changes::KnownIndex;
use crate::files::read;
use crate::git::call::Call;
use crate::git::in_run::GitCalls;
use crate::git::own_index::{LARGEST, OwnIndex, copy_index, is_split, joining};
use crate::git::tracked_files::{self, TrackedFile};
use crate::run::look_error::LookError;

/// The modes of entries that are no files.
const NO_FILES: [&[u8]; 2] = [b"160000", b"040000"];

impl Measurer<'_> {
    /// Keeps the index as it is.
    pub(super) async fn keep_index(
        &mut self,
        place: &SurroundingRepository,
    ) -> Result<Option<KnownIndex>, LookError> {
        if !place.index().exists() {
            return Ok(None);
        }
        let copy = self.files.start_index();
        fs_err::create_dir_all(self.files.objects())?;
        let _absent = std::fs::remove_file(&copy);
        copy_index(place.index(), &copy)?;
        let is_split = is_split(&copy)?;
        // Of one that is split, the digest says nothing about the other part.
        // An empty digest is one that no index has, so the comparison is always made.
        let sha256 = of_file(&copy).filter(|_| !is_split).unwrap_or_default();
        if is_split {
            let own = OwnIndex::at(&copy, place.objects(), &self.files.objects())?;
            self.git.run_in(&own, place.top(), &joining(), None).await?;
        }
        Ok(Some(KnownIndex { place: named(place), sha256, kept: of_file(&copy).unwrap_or_default() }))
    }

    /// Makes an index whose every entry was compared with its file, for a run that goes on where the copy is not.
    pub(super) async fn make_index(&mut self, known: &KnownIndex) -> Result<Option<KnownIndex>, LookError> {
        let place = self.place().await?;
        let copy = self.files.start_index();
        if known.place == named(&place) && of_file(&copy).as_ref() == Some(&known.kept) {
            return Ok(None);
        }
        fs_err::create_dir_all(self.files.objects())?;
        let _absent = std::fs::remove_file(&copy);
        let own = OwnIndex::at(&copy, place.objects(), &self.files.objects())?;
        let read = Call::new("read-tree").id(place.commit());
        self.git.run_in(&own, place.top(), &read, None).await?;
        let refresh = Call::new("update-index").with(&["-q", "--refresh"]);
        self.git.run_in(&own, place.top(), &refresh, None).await?;
        let kept = of_file(&copy).unwrap_or_default();
        // No index has this digest: the one of the repository is always compared with the copy.
        Ok(Some(KnownIndex { place: named(&place), sha256: String::new(), kept }))
    }

    /// Returns lines of a status for the files of which the index cannot be believed.
    pub(super) async fn doubted(
        &self,
        git: &mut GitCalls,
        place: &SurroundingRepository,
        tracked: &[u8],
    ) -> Result<Vec<u8>, LookError> {
        // Another repository has come in the place of the one that is known.
        let Some(known) = self.known_index.filter(|known| known.place == named(place)) else {
            return Ok(Vec::new());
        };
        // No file stands for these. Which they are is compared with the start, and what the index has of them with the commit.
        let top = place.top();
        let there = move || tracked_files::read(tracked).filter(move |file| !is_left_out(top, file));
        let copy = self.files.start_index();
        let is_kept = of_file(&copy).as_ref() == Some(&known.kept);
        if is_kept && of_file(place.index()).as_ref() == Some(&known.sha256) {
            return Ok(Vec::new());
        }
        // Without the copy nothing in the index can be believed, so every file is read.
        if !is_kept {
            return Ok(there().flat_map(|file| line(&file)).collect());
        }
        let own = OwnIndex::at(&copy, place.objects(), &self.files.objects())?;
        let then = git.run_in(&own, place.top(), &tracked_files::call(), None).await?;
        let then: BTreeMap<&[u8], TrackedFile<'_>> =
            tracked_files::read(&then).map(|file| (file.path, file)).collect();
        let touched = Call::new("diff-files").with(&["-z", "--name-only"]);
        let touched = git.run_in(&own, place.top(), &touched, None).await?;
        let touched: BTreeSet<&[u8]> = touched.split(|byte| *byte == 0).collect();
        // Seen by git at the start, with the same entry, and with the times that it had then.
        let is_believed = |file: &TrackedFile<'_>| {
            then.get(file.path).is_some_and(|was| was.is_seen() && was.content == file.content)
                && !touched.contains(file.path)
        };
        let doubted = there().filter(|file| !is_believed(file));
        Ok(doubted.flat_map(|file| line(&file)).collect())
    }
}

/// Returns a line of a status that says that a file may be anything; none where no file belongs to the entry.
fn line(file: &TrackedFile<'_>) -> Vec<u8> {
    let mut words = file.content.split(|byte| *byte == b' ');
    let (Some(mode), Some(id), Some(b"0")) = (words.next(), words.next(), words.next()) else {
        return Vec::new();
    };
    if NO_FILES.contains(&mode) {
        return Vec::new();
    }
    // `1 XY sub mH mI mW hH hI path`
    // Written as git writes it, so that one reader takes both.
    [b"1 .M N...", mode, mode, mode, id, id, file.path].join(&b' ').into_iter().chain([0]).collect()
}

fn named(place: &SurroundingRepository) -> String {
    place.index().to_string_lossy().into_owned()
}

fn of_file(path: &Path) -> Option<String> {
    read::bytes(path, LARGEST).ok().map(|bytes| hex(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_index_has_a_line() {
        let printed =
            b"H 100644 aa 0\ta b\0h 100755 bb 0\tc\0S 120000 cc 0\td\0H 160000 dd 0\te\0M 100644 ee 2\tf\0";
        let lines: Vec<_> = tracked_files::read(printed)
            .map(|file| String::from_utf8_lossy(&line(&file)).replace('\0', ""))
            .collect();
        let expected = [
            "1 .M N... 100644 100644 100644 aa aa a b",
            "1 .M N... 100755 100755 100755 bb bb c",
            "1 .M N... 120000 120000 120000 cc cc d",
            "",
            "",
        ];
        assert_eq!(lines, expected);
    }
}
