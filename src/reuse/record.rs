//! The record of a verified run. It comes from a folder that others may have written to, so it is read as untrusted data: its
//! size is bounded, its key is made again from its parts, and whatever does not fit in every part is not taken.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::{KeyFile, KeyParts, MEANING, PartSums, ReuseKey};
use super::origin::RunOrigin;
use crate::base::name::StateName;
use crate::base::sum::Sum;
use crate::base::time::{Timestamp, human};
use crate::engine::reused::ReusedRun;
use crate::engine::verification::CheckRecord;
use crate::evaluate::verdict::{Observes, Verdict};
use crate::machine::{Machine, Meaning, Step, Target};

/// The largest record, in bytes.
pub const LARGEST: u64 = 4 * 1024 * 1024;

/// How far the clock of another machine may be ahead of ours.
pub(super) const AHEAD: Duration = Duration::from_mins(10);

/// The digits of the digest of a file that a record keeps, to say later which of them changed. They decide nothing.
const DIGITS: usize = 12;

/// The most files whose digests a record keeps: more would not fit.
const MOST_FILES: usize = 60_000;

/// The longest id of a run, address and name.
pub(super) const LONGEST: usize = 2000;

/// The result of a verified run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReuseRecord {
    /// What the parts of its key mean.
    pub meaning: u32,
    /// The parts of its key.
    pub sums: PartSums,
    /// Where it was made.
    pub origin: RunOrigin,
    /// The loop.
    pub r#loop: String,
    /// What it verified.
    pub run: ReusedRun,
    /// The files of its key by their folders, with the beginnings of their digests; none where there are too many.
    pub files: Option<FileTable>,
    /// The digests of what its tools said.
    pub tools: BTreeMap<String, Sum>,
}

/// Files by their folders, with the beginnings of the digests of their contents and modes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileTable(BTreeMap<String, BTreeMap<String, String>>);

impl FileTable {
    /// Makes the table of the files of a key; none where there are too many.
    pub fn of(parts: &KeyParts) -> Option<Self> {
        let mut table = Self::default();
        let judges = parts.judges.iter().filter_map(|(path, file)| Some((path, file.as_ref()?)));
        for (count, (path, file)) in parts.inputs.iter().chain(judges).enumerate() {
            if count >= MOST_FILES {
                return None;
            }
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            table.0.entry(folder.to_owned()).or_default().insert(name.to_owned(), digits(file));
        }
        Some(table)
    }

    /// Returns the paths with what is known of their files.
    pub fn all(&self) -> impl Iterator<Item = (String, &str)> {
        self.0.iter().flat_map(|(folder, files)| {
            files.iter().map(move |(name, digits)| {
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                (path, digits.as_str())
            })
        })
    }
}

fn digits(file: &KeyFile) -> String {
    let KeyFile { mode, content } = file;
    let sum = Sum::of(format!("{} {content}", mode.word()).as_bytes());
    sum.to_string()[..DIGITS].to_owned()
}

/// What a run wants of a record.
pub struct WantedRecord<'w> {
    /// Its key.
    pub key: ReuseKey,
    /// Where it is made.
    pub origin: &'w RunOrigin,
    /// The machine that it would run.
    pub machine: &'w Machine,
    /// When.
    pub now: Timestamp,
    /// How old a record may be.
    pub max_age: Duration,
}

/// Why a record is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// It is no record.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is not what was written.
    #[error("it is damaged")]
    Damaged,
    /// Its parts do not make the key that it says it has.
    #[error("its parts do not make its key")]
    OtherKey,
    /// Another version made it, for which the parts mean something else.
    #[error("another version of ll-loop wrote it")]
    OtherMeaning,
    /// It was made elsewhere.
    #[error("it was made {0}")]
    Elsewhere(&'static str),
    /// It is too old.
    #[error("it is {}, and `max_age` is {}", human(*age), human(*most))]
    TooOld {
        /// Its age.
        age: Duration,
        /// How old it may be.
        most: Duration,
    },
    /// It is from the future.
    #[error("its time is in the future")]
    Future,
    /// It says something that no run of this loop could have left.
    #[error("no run of this loop leaves such a record: {0}")]
    Impossible(&'static str),
    /// Git tracks its file, so that whoever wrote the commit wrote the record.
    #[error("git tracks its file")]
    Tracked,
}

/// Writes a text behind its digest, by which a damaged one is known.
pub(super) fn sealed(text: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{}\n", Sum::of(text)).into_bytes();
    bytes.extend(text);
    bytes
}

/// Returns the text behind its digest.
///
/// # Errors
/// It is too large, or not what was written.
pub(super) fn opened(bytes: &[u8]) -> Result<&[u8], NotTaken> {
    if bytes.len() as u64 > LARGEST {
        return Err(NotTaken::Unreadable("it is larger than 4 MiB".to_owned()));
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(NotTaken::Damaged)?;
    let (line, text) = (&bytes[..end], &bytes[end + 1..]);
    if Sum::of(text).to_string().as_bytes() == line { Ok(text) } else { Err(NotTaken::Damaged) }
}

impl ReuseRecord {
    /// Writes a record: a line with the digest of the rest, by which a damaged one is known, and the rest as JSON.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        Ok(sealed(&serde_json::to_vec(self)?))
    }

    /// Reads a record.
    ///
    /// # Errors
    /// It is not one, or does not fit itself.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotTaken> {
        let record: Self = serde_json::from_slice(opened(bytes)?)
            .map_err(|error| NotTaken::Unreadable(error.to_string()))?;
        if record.meaning != MEANING {
            return Err(NotTaken::OtherMeaning);
        }
        if record.key().sum() != record.run.key {
            return Err(NotTaken::OtherKey);
        }
        let is_name = |text: &str| {
            !text.is_empty()
                && text.len() < LONGEST
                && text.chars().all(|sign| !sign.is_control() && sign != ' ')
        };
        if !is_name(&record.run.run) {
            return Err(NotTaken::Impossible("it names no run"));
        }
        // Reports make a link of it, which must not be one of another scheme.
        if record.run.link.as_ref().is_some_and(|link| !is_name(link) || !link.starts_with("https://")) {
            return Err(NotTaken::Impossible("its link is not a valid URL"));
        }
        Ok(record)
    }

    /// Returns the key that its parts make.
    pub fn key(&self) -> ReuseKey {
        self.sums.key()
    }

    /// Tells whether a run may take it.
    ///
    /// # Errors
    /// It may not.
    pub fn check(&self, wanted: &WantedRecord<'_>) -> Result<(), NotTaken> {
        if self.key() != wanted.key {
            return Err(NotTaken::OtherKey);
        }
        if self.origin.repository != wanted.origin.repository {
            return Err(NotTaken::Elsewhere("in another repository"));
        }
        if !wanted.origin.may_take(&self.origin) {
            return Err(NotTaken::Elsewhere("where this run takes nothing from"));
        }
        if self.run.when > wanted.now.after(AHEAD) {
            return Err(NotTaken::Future);
        }
        let age = wanted.now.since(self.run.when);
        if age > wanted.max_age {
            return Err(NotTaken::TooOld { age, most: wanted.max_age });
        }
        self.fits(wanted.machine)
    }

    /// Tells whether a run of this machine could have left it.
    fn fits(&self, machine: &Machine) -> Result<(), NotTaken> {
        if self.r#loop != machine.name.as_str() {
            return Err(NotTaken::Impossible("it is of another loop"));
        }
        let is_success = match machine.find(&self.run.final_state) {
            Some(Target::End(end)) => {
                matches!(machine.end(end).meaning, Meaning::Success | Meaning::DeclaredSuccess)
            }
            Some(Target::Step(_)) | None => false,
        };
        if !is_success {
            return Err(NotTaken::Impossible("it did not end in a success"));
        }
        let step = |state: &StateName| match machine.find(state) {
            Some(Target::Step(step)) => Some(machine.step(step)),
            Some(Target::End(_)) | None => None,
        };
        if self.run.checks.is_empty() {
            return Err(NotTaken::Impossible("it has checked nothing"));
        }
        let has_passed =
            |check: &CheckRecord| step(&check.state).is_some_and(|step| is_passing(step, &check.verdict));
        if !self.run.checks.iter().any(has_passed) {
            return Err(NotTaken::Impossible("no check passed in it"));
        }
        let is_known = |state: &StateName| machine.find(state).is_some();
        let all = self.run.states.iter().map(|visited| &visited.state);
        if !all.chain(self.run.checks.iter().map(|check| &check.state)).all(is_known) {
            return Err(NotTaken::Impossible("it has states that the loop does not have"));
        }
        Ok(())
    }
}

fn is_passing(step: &Step, verdict: &Verdict) -> bool {
    step.observes(verdict) == Observes::Passing
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::key::of_texts;
    use super::super::origin::OriginEvent;
    use super::*;
    use crate::base::object::ObjectId;
    use crate::definition::load;
    use crate::engine::reused::ReusedState;
    use crate::engine::verification::Confirmed;
    use crate::machine::compile;

    const NOW: i64 = 1_763_682_527_000;

    fn machine() -> Machine {
        let text = "name: main\ninitial: check\nstates:\n  check: {action: x, on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true, outcome: failure}\n";
        let loaded = load::decode("main.yaml", text, String::new()).ok().unwrap();
        compile::compile(&loaded.definition).0.unwrap()
    }

    fn origin(event: OriginEvent) -> RunOrigin {
        RunOrigin { repository: "https://x/o/r".to_owned(), event, branch: None }
    }

    fn sums() -> PartSums {
        PartSums::all(of_texts(["part"]))
    }

    fn record() -> ReuseRecord {
        let state = StateName::parse("check").unwrap();
        let id = ObjectId::parse(&"a".repeat(40)).unwrap();
        let check = CheckRecord {
            state: state.clone(),
            verdict: Verdict::yes_if(true),
            tree: Some(id.clone()),
            confirmed: Confirmed::InRun,
        };
        ReuseRecord {
            meaning: MEANING,
            sums: sums(),
            origin: origin(OriginEvent::Push),
            r#loop: "main".to_owned(),
            run: ReusedRun {
                key: sums().key().sum(),
                run: "main-20251120T234847-1f2e00".to_owned(),
                commit: id.clone(),
                tree: id,
                is_dirty: false,
                when: Timestamp::from_millis(NOW - 60_000),
                duration_ms: 12_345,
                link: Some("https://x/o/r/actions/runs/7".to_owned()),
                final_state: StateName::parse("done").unwrap(),
                checks: vec![check],
                states: vec![ReusedState { state, duration_ms: 12_000 }],
                has_uncommitted: false,
            },
            files: Some(FileTable::default()),
            tools: BTreeMap::new(),
        }
    }

    fn taken(bytes: &[u8]) -> Result<(), NotTaken> {
        let (machine, origin) = (machine(), origin(OriginEvent::PullRequest));
        let wanted = WantedRecord {
            key: sums().key(),
            origin: &origin,
            machine: &machine,
            now: Timestamp::from_millis(NOW),
            max_age: Duration::from_hours(24),
        };
        ReuseRecord::parse(bytes)?.check(&wanted)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bytes = record().to_bytes().unwrap();
        assert_eq!(ReuseRecord::parse(&bytes), Ok(record()));
        assert_eq!(taken(&bytes), Ok(()));
    }

    /// Each is right but for one thing, and has the right digest.
    #[test]
    fn a_record_that_is_wrong_in_one_part_is_not_taken() {
        type Spoiling<'s> = (&'s str, &'s dyn Fn(&mut ReuseRecord));
        let hours = |hours: i64| Timestamp::from_millis(NOW + hours * 3_600_000);
        let name = |name: &str| StateName::parse(name).unwrap();
        let wrong: [Spoiling<'_>; 15] = [
            ("another version", &|record| record.meaning += 1),
            ("a part of another key", &|record| record.sums.inputs = of_texts(["other"])),
            ("another key", &|record| record.run.key = of_texts(["other"])),
            ("both", &|record| {
                record.sums.inputs = of_texts(["other"]);
                record.run.key = record.sums.key().sum();
            }),
            ("another repository", &|record| record.origin.repository = "https://x/fork/r".to_owned()),
            ("a pull request that is not this one", &|record| {
                record.origin =
                    RunOrigin { branch: Some("#7".to_owned()), ..origin(OriginEvent::PullRequest) };
            }),
            ("a machine of somebody", &|record| record.origin.event = OriginEvent::Local),
            ("too old", &|record| record.run.when = hours(-25)),
            ("the future", &|record| record.run.when = hours(1)),
            ("another loop", &|record| record.r#loop = "other".to_owned()),
            ("an end that does not exist", &|record| record.run.final_state = name("check")),
            ("a failure", &|record| record.run.final_state = name("failed")),
            ("no checks", &|record| record.run.checks.clear()),
            ("a check that failed", &|record| record.run.checks[0].verdict = Verdict::yes_if(false)),
            ("a state that is not there", &|record| record.run.states[0].state = name("elsewhere")),
        ];
        for (what, spoil) in wrong {
            let mut record = record();
            spoil(&mut record);
            assert!(taken(&record.to_bytes().unwrap()).is_err(), "{what}");
        }
        let mut record = record();
        record.run.link = Some("javascript:alert(1)".to_owned());
        assert!(taken(&record.to_bytes().unwrap()).is_err());
        assert!(taken(&vec![b' '; usize::try_from(LARGEST).unwrap() + 1]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// A thousand records that are damaged somewhere: none is taken.
        #[test]
        fn a_damaged_record_is_not_taken(at in any::<prop::sample::Index>(), byte in any::<u8>(), kind in 0..4u8, count in 1..40usize) {
            let whole = record().to_bytes().unwrap();
            let place = at.index(whole.len());
            let mut bytes = whole.clone();
            match kind {
                0 => bytes[place] = byte,
                1 => bytes.truncate(place),
                2 => bytes.insert(place, byte),
                _ => drop(bytes.drain(place..whole.len().min(place + count))),
            }
            prop_assume!(bytes != whole);
            prop_assert!(taken(&bytes).is_err());
        }
    }
}
