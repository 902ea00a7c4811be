//! `--reuse-store git`: results of runs as refs of a repository, for jobs that share no folder. A ref is
//! `refs/ll-loop/reuse/LOOP/DEFINITION/KEY/ORIGIN-DAY`, and its commit has no files and no parents; its message is the record. What
//! is fetched goes into the folder of the store, where it is as untrusted as everything else.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::base::explanation::Explanation;
use crate::base::name::LoopName;
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::base::text::head;
use crate::base::time::Timestamp;
use crate::context::Session;
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::lock::RefRemote;
use crate::repository::scratch::Scratch;
use crate::reuse::key::PartSums;
use crate::reuse::origin::OriginEvent;
use crate::reuse::record::{LARGEST, ReuseRecord};
use crate::reuse::store::ReuseStore;

/// Where all of them are.
const PREFIX: &str = "refs/ll-loop/reuse/";

/// How long a call of git may take: a store that answers later counts as absent.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most records of a key that are fetched: there is one for each kind of origin, and for each pull request.
const MOST: usize = 8;

/// The most refs that one push removes.
const MOST_REMOVED: usize = 200;

/// What a commit may have beside its message, in bytes.
const HEAD: u64 = 4 << 10;

const DAY: Duration = Duration::from_hours(24);

/// How many digits of a digest stand in a name.
const DIGITS: usize = 16;

/// The refs of a repository, and a scratch one beside it.
pub(crate) struct ReuseRefs {
    scratch: Scratch,
    remote: RefRemote,
    stop: Arc<AtomicBool>,
}

/// A ref with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordRef {
    id: ObjectId,
    name: String,
    /// The day on which it was pushed, since 1970.
    day: i64,
}

impl RecordRef {
    /// Reads a line of `ls-remote`. Whatever does not look like one of ours is left alone.
    fn parse(line: &str) -> Option<Self> {
        let (id, name) = line.split_once('\t')?;
        let parts: Vec<&str> = name.strip_prefix(PREFIX)?.split('/').collect();
        let [_, _, _, last] = parts.as_slice() else { return None };
        let is_plain = |part: &&str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let day = last.rsplit_once('-')?.1.parse().ok()?;
        parts.iter().all(is_plain).then_some(Self {
            id: ObjectId::parse(id).ok()?,
            name: name.to_owned(),
            day,
        })
    }

    /// Returns its name without the day: a later record of the same takes its place.
    fn without_day(&self) -> &str {
        self.name.rsplit_once('-').map_or(self.name.as_str(), |(before, _)| before)
    }
}

impl ReuseRefs {
    /// Finds a remote of a checkout, or takes the address that the caller gave.
    ///
    /// # Errors
    /// There is none, or no scratch repository can be made.
    pub(crate) fn find(
        asked: Option<&str>,
        checkout: &Git,
        session: &Session<'_>,
    ) -> Result<Self, Explanation> {
        let remote = RefRemote::find(asked, "--reuse-store", checkout, session)
            .map_err(|error| Explanation::new(error.message()))?;
        let scratch = Scratch::new(&remote.remote, remote.is_sha256, session).map_err(Explanation::from)?;
        Ok(Self { scratch, remote, stop: Arc::default() })
    }

    /// Brings the records of a key into the folder. Returns how many there are.
    ///
    /// # Errors
    /// The repository cannot be reached, or the folder not be written.
    pub(crate) fn fetch(
        &self,
        name: &LoopName,
        sums: &PartSums,
        store: &ReuseStore,
    ) -> Result<usize, Explanation> {
        let key = sums.key();
        let mut found = self.list(&format!("{}{key}/*", of_definition(name, sums.definition)))?;
        found.sort_by_key(|one| std::cmp::Reverse(one.day));
        found.truncate(MOST);
        if found.is_empty() {
            return Ok(0);
        }
        let fetch = Call::fetch_from(&self.remote.remote.url).with(&["--force", "--depth=1"]);
        let fetch = found.iter().fold(fetch, |call, one| call.named(&format!("+{0}:{0}", one.name), ""));
        self.git().line(&fetch).map_err(|why| self.remote.wiped(&why))?;
        let mut count = 0;
        for one in &found {
            let record = self.message(&one.id).and_then(|text| ReuseRecord::parse(&text).ok());
            let is_wanted = |record: &ReuseRecord| {
                // What a person has found at their machine is for that machine.
                record.key() == key
                    && record.r#loop == name.as_str()
                    && record.origin.event != OriginEvent::Local
            };
            if let Some(record) = record.filter(is_wanted) {
                store.keep(&record).map_err(Explanation::from)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Pushes a record, and removes those of the loop that are too old to be taken.
    ///
    /// # Errors
    /// The repository cannot be reached, or takes no refs from this job.
    pub(crate) fn push(
        &self,
        record: &ReuseRecord,
        now: Timestamp,
        max_age: Duration,
    ) -> Result<(), Explanation> {
        let name = LoopName::parse(&record.r#loop).map_err(Explanation::from)?;
        let text =
            String::from_utf8(record.to_bytes().map_err(Explanation::from)?).map_err(Explanation::from)?;
        let commit = self.scratch.commit(&text).map_err(Explanation::from)?;
        let (day, kept_for) = (days(now.as_millis()), days_of(max_age));
        let place = of_definition(&name, record.sums.definition);
        let without_day = format!("{place}{}/{}", record.key(), record.origin.class());
        let own = format!("{without_day}-{day}");
        let is_gone = |one: &RecordRef| {
            one.name != own && (one.day.saturating_add(kept_for) < day || one.without_day() == without_day)
        };
        let mut gone = self.list(&format!("{}*", of_loop(&name)))?;
        gone.retain(is_gone);
        gone.truncate(MOST_REMOVED);
        self.send(gone.iter().map(|one| format!(":{}", one.name)).chain([format!("+{commit}:{own}")]))
    }

    /// Removes every record of a definition.
    ///
    /// # Errors
    /// The repository cannot be reached, or takes no refs from this job.
    pub(crate) fn drop_definition(&self, name: &LoopName, definition: Sum) -> Result<(), Explanation> {
        let mut all = self.list(&format!("{}*", of_definition(name, definition)))?;
        while !all.is_empty() {
            let rest = all.split_off(all.len().min(MOST_REMOVED));
            self.send(all.iter().map(|one| format!(":{}", one.name)))?;
            all = rest;
        }
        Ok(())
    }

    fn send(&self, changes: impl Iterator<Item = String>) -> Result<(), Explanation> {
        let push = Call::push_to(&self.remote.remote.url);
        let push = changes.fold(push, |call, change| call.named(&change, ""));
        self.git().line(&push).map(drop).map_err(|why| self.remote.wiped(&why))
    }

    fn list(&self, pattern: &str) -> Result<Vec<RecordRef>, Explanation> {
        let list = Call::refs_of(&self.remote.remote.url).named(pattern, "");
        let printed = self.git().line(&list).map_err(|why| self.remote.wiped(&why))?;
        Ok(printed.lines().filter_map(RecordRef::parse).collect())
    }

    /// Returns the message of a commit that can be a record. Whoever may push there may push anything.
    fn message(&self, id: &ObjectId) -> Option<Vec<u8>> {
        let size = self.scratch.git.line(&Call::new("cat-file").with(&["-s"]).id(id)).ok()?;
        size.parse().ok().filter(|size: &u64| *size <= LARGEST + HEAD)?;
        Some(self.scratch.message(id)?.trim_ascii_end().to_vec())
    }

    fn git(&self) -> Git {
        self.scratch.connected.within(PATIENCE, &self.stop)
    }
}

fn of_loop(name: &LoopName) -> String {
    // A name may have slashes and letters of any language.
    format!("{PREFIX}{}/", head(&Sum::of(name.as_str().as_bytes()).to_string(), DIGITS))
}

fn of_definition(name: &LoopName, definition: Sum) -> String {
    format!("{}{}/", of_loop(name), head(&definition.to_string(), DIGITS))
}

fn days(millis: i64) -> i64 {
    millis.div_euclid(i64::try_from(DAY.as_millis()).unwrap_or(i64::MAX))
}

/// Returns how many days a record is kept: one more than it is taken, for clocks that differ.
fn days_of(age: Duration) -> i64 {
    i64::try_from(age.as_secs() / DAY.as_secs()).unwrap_or(i64::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_one_of_ours_is_a_record() {
        let id = "a".repeat(40);
        let day = |name: &str| RecordRef::parse(&format!("{id}\t{name}")).map(|one| one.day);
        assert_eq!(day("refs/ll-loop/reuse/0a/1b/2c/repository-20420"), Some(20_420));
        assert_eq!(day("refs/ll-loop/reuse/0a/1b/2c/branch-00ff-20420"), Some(20_420));
        for other in [
            "refs/heads/main",
            "refs/ll-loop/reuse/0a/1b/2c",
            "refs/ll-loop/reuse/0a/1b/2c/repository",
            "refs/ll-loop/reuse/0a/1b/2c/repository-x",
            "refs/ll-loop/reuse/0a/1b/--upload-pack=x y/repository-1",
            "refs/ll-loop/reuse/0a/1b/2c/repository-1/more",
        ] {
            assert_eq!(day(other), None, "{other}");
        }
        assert_eq!(RecordRef::parse("no line"), None);
    }

    #[test]
    fn a_record_is_kept_a_day_longer_than_it_is_taken() {
        assert_eq!((days(0), days(86_400_000), days(-1)), (0, 1, -1));
        assert_eq!(days_of(Duration::from_hours(36)), 2);
    }
}
