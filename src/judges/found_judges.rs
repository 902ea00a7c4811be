//! What became of the judges of a run.

use serde::{Deserialize, Serialize};

/// What became of the judges, all in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgesState {
    /// They are as they were at the start.
    Unchanged,
    /// There are more of them, and nothing was taken away.
    Added,
    /// They may say something else now.
    Changed,
    /// One of them could not be read.
    Unknown,
}

/// What happened to a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeChange {
    /// A new file, or new lines with nothing removed.
    Added,
    /// It is gone, or has another path.
    Removed,
    /// Its content.
    Edited,
    /// Git, and what asks git, does not see it any more, or does not see the work that it judges.
    Ignored,
    /// Whether it can be executed, or whether it is a file at all.
    Mode,
    /// A new file stands before another one that decided until now.
    Shadows,
    /// It is new and takes away from what is judged.
    Weakens,
    /// It was not there at the start, the run has installed it, and git ignores it. No change of the commit's own.
    Installed,
    /// It could not be read.
    Unreadable,
}

impl JudgeChange {
    /// Returns the word that is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Edited => "edited",
            Self::Ignored => "ignored",
            Self::Mode => "mode",
            Self::Shadows => "shadows",
            Self::Weakens => "weakens",
            Self::Installed => "installed",
            Self::Unreadable => "unreadable",
        }
    }

    /// Returns what it makes of all judges.
    pub fn state(self) -> JudgesState {
        match self {
            Self::Installed => JudgesState::Unchanged,
            Self::Added => JudgesState::Added,
            Self::Removed | Self::Edited | Self::Ignored | Self::Mode | Self::Shadows | Self::Weakens => {
                JudgesState::Changed
            }
            Self::Unreadable => JudgesState::Unknown,
        }
    }
}

/// A judge that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JudgeFile {
    /// Its path from the root of the repository.
    pub path: String,
    /// What happened to it.
    pub kind: JudgeChange,
    /// Why it is a judge, for people: `a test of Python`, `` `check` runs it ``.
    pub why: String,
    /// The states whose checks it judges, in the order of the commands. What is a judge for one check is work for
    /// another: a formatter looks at tests as at any other file.
    pub checks: Vec<String>,
}

/// A comment or marker that keeps a check from looking.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Suppression {
    /// The file, from the root of the repository.
    pub path: String,
    /// The line of the final tree, from 1.
    pub line: usize,
    /// That line, cut to 200 characters.
    pub text: String,
}

/// A file of the end with the judges of the start in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBackInPart {
    /// Its path.
    pub path: String,
    /// Its text, with the work of the run around the judges.
    pub text: String,
}

/// Tests that were added and may need what the closing pass puts back or hides: a fixture in `conftest.py`, a helper. They
/// fail without it, which says nothing of the work. The tests of the start alone have to confirm it then.
///
/// The pass first leaves them where they are, since tests that were added and hold are worth more. Both lists are empty where
/// nothing is put back or hidden, and a second try could not say anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedTests {
    /// Files of the start to which tests were added, to be put as they were.
    pub to_put_back: Vec<String>,
    /// New files, to be taken out of the way.
    pub to_hide: Vec<String>,
}

impl AddedTests {
    /// Tells whether a second try would be the first one again.
    pub fn are_none(&self) -> bool {
        self.to_put_back.is_empty() && self.to_hide.is_empty()
    }
}

/// Tests that were added, and the work without which they ought to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofWanted {
    /// The tests, by file.
    pub tests: Vec<AddedTest>,
    /// The other files that the run changed.
    pub work: Vec<String>,
    /// The files with other tests.
    pub others: Vec<String>,
}

/// A file to which tests were added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedTest {
    /// Its path from the root of the repository.
    pub path: String,
    /// The names of the cases that are new, as far as they can be told; each with the path.
    pub cases: Vec<String>,
    /// The states whose checks run it.
    pub checks: Vec<String>,
}

impl AddedTest {
    /// Returns what people know it by: its cases, or the file where those cannot be told.
    pub fn names(&self) -> Vec<String> {
        if self.cases.is_empty() { vec![self.path.clone()] } else { self.cases.clone() }
    }
}

/// What became of the judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgesFound {
    /// All in all. Suppressions are in it only where the loop lets them fail a run.
    pub state: JudgesState,
    /// The judges that are not as they were, by path.
    pub files: Vec<JudgeFile>,
    /// The suppressions that are new.
    pub suppressions: Vec<Suppression>,
    /// What the closing pass puts as it was at the start; what was not there then goes.
    pub to_put_back: Vec<String>,
    /// New files that stand before judges of the start, or take away from what they judge: the closing pass takes
    /// them out of the way.
    pub to_hide: Vec<String>,
    /// Files of which the closing pass puts parts as they were at the start: the rest of them is the work.
    pub in_part: Vec<PutBackInPart>,
    /// What is put aside as well where the pass says no, and it is made a second time.
    pub second_try: AddedTests,
    /// The tests that were added and have to prove something, where the loop wants that.
    pub to_prove: Option<ProofWanted>,
    /// Whether putting those back makes the judges what they were without undoing the work: a suppression or a test
    /// inside of a source cannot be put back.
    pub can_be_put_back: bool,
}

impl JudgesFound {
    /// Nothing happened to them.
    pub fn unchanged() -> Self {
        Self {
            state: JudgesState::Unchanged,
            files: Vec::new(),
            suppressions: Vec::new(),
            to_put_back: Vec::new(),
            to_hide: Vec::new(),
            in_part: Vec::new(),
            second_try: AddedTests::default(),
            to_prove: None,
            can_be_put_back: true,
        }
    }

    /// Tells whether the closing pass would leave the judges as they are.
    pub fn nothing_to_put_back(&self) -> bool {
        self.to_put_back.is_empty() && self.to_hide.is_empty() && self.in_part.is_empty()
    }

    /// The states whose checks have judges that changed, which have to be asked again with the judges of the start.
    /// A suppression concerns all of them.
    pub fn doubted<'a>(&'a self, all: &'a [String]) -> Vec<&'a str> {
        let changed = self.files.iter().filter(|file| file.kind.state() >= JudgesState::Changed);
        let named: Vec<&str> = changed.flat_map(|file| &file.checks).map(String::as_str).collect();
        let is_doubted = |state: &&str| !self.suppressions.is_empty() || named.contains(state);
        // A suppression has no check that it belongs to.
        all.iter().map(String::as_str).filter(is_doubted).collect()
    }

    /// The files with tests that the run has added, which have to prove something.
    pub fn added(&self) -> impl Iterator<Item = &str> {
        let added = self.files.iter().filter(|file| file.kind == JudgeChange::Added);
        added.map(|file| file.path.as_str())
    }
}
