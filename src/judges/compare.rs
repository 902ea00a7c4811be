//! Compares the judges of two trees.

use std::collections::{BTreeMap, BTreeSet};

use super::assess::{Assessed, Role};
use super::declared::{Declared, MayChange, OnSuppression};
use super::found_judges::{
    AddedTests, JudgeChange, JudgeFile, JudgesFound, JudgesState, PutBackInPart, Suppression,
};
pub use super::instructions::CheckCommand;
use super::instructions::{Instruction, InstructionPart, Instructions, instructions};
use super::judge_catalog::{CATALOG, JudgeKind, PartFormat, SectionRow};
use super::judge_parts::PartSelection;
use super::pattern::PathSet;
use super::suppressions::{MarkCounts, SuppressionMark, marks};
use super::tree::{At, FileAt, Tree, extension};
use super::{added_tests, entry_points, judge_parts, restored_parts, unnamed_modules};
use crate::base::text::after_last;

/// Two trees, and what has to be known of a loop to tell its judges.
#[derive(Clone, Copy)]
pub struct TreeComparison<'a> {
    /// What the loop says.
    pub declared: &'a Declared,
    /// The commands of its states that observe.
    pub commands: &'a [CheckCommand<'a>],
    /// The loop file and all that it imports, where they lie in the repository.
    pub loop_files: &'a [String],
    /// The paths that differ between the two trees, tracked or not, in any order. Of ignored paths only those that
    /// [`followed`] or [`is_obeyed_by_name`] names have to be in it.
    pub changed: &'a [String],
    /// The tree of the start.
    pub start: &'a dyn Tree,
    /// The final tree.
    pub end: &'a dyn Tree,
}

/// What the commands of checks come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedChecks {
    /// The paths of files that they run or obey, there or not. Git may ignore some of them, and what stands there at the start
    /// has to be kept by whoever makes the tree of the start, as no commit has it.
    pub obeyed: Vec<String>,
    /// The commands that are called in the end, in words; one that is not known before a run is a NUL.
    pub called: Vec<Vec<String>>,
}

/// Follows the commands of checks through scripts and tasks.
pub fn followed(commands: &[CheckCommand<'_>], start: &dyn Tree) -> FollowedChecks {
    let Instructions { all, leaves } = instructions(commands, start);
    // What is not known by its place has no path.
    let paths = all.into_iter().map(|instruction| instruction.path).filter(|path| !path.is_empty());
    let obeyed: BTreeSet<String> = paths.collect();
    let called = leaves.into_iter().map(|(_, words)| words).collect();
    FollowedChecks { obeyed: obeyed.into_iter().collect(), called }
}

/// Tells whether a file is obeyed because of its name alone. Git may ignore it, and checks obey it all the same: a new
/// `pytest.ini` in front of `pyproject.toml`, a `phpunit.xml` in front of the one that is kept.
pub fn is_obeyed_by_name(path: &str) -> bool {
    let is_obeyed = |kind| matches!(kind, JudgeKind::Shadow | JudgeKind::Config | JudgeKind::Ignored);
    CATALOG.file(path).is_some_and(|row| is_obeyed(row.kind))
        || CATALOG.sections.iter().any(|row| row.format != PartFormat::Make && row.means(path))
}

/// Tells whether a file is a judge because of its name, be it a test or a configuration.
pub fn is_by_name(path: &str) -> bool {
    CATALOG.file(path).is_some_and(|row| row.kind != JudgeKind::Compiled)
}

/// Tells what became of the judges.
pub fn look(comparison: &TreeComparison<'_>) -> JudgesFound {
    let known = KnownJudges::of(comparison);
    // In order and each once, so that the same trees always give the same answer.
    let paths: BTreeSet<&String> = comparison.changed.iter().collect();
    let mut counts = MarkCounts::default();
    let mut looked = JudgeSearch::new();
    for path in paths {
        let (start, end) = (comparison.start.at(path), comparison.end.at(path));
        let roles = known.roles(path);
        // Also where the file is no judge: a suppression within the work keeps a check from
        // looking.
        counts.count(path, of_file(path, &start, &roles), of_file(path, &end, &roles));
        looked.take(path, &roles, &start, &end, comparison.end);
        if let Some(why) = known.unnamed_tests(path, &start, &end) {
            looked.out_of_reach(path, &known.testers, &why);
        }
    }
    let mut found = looked.finish(counts, comparison.declared);
    if comparison.declared.rules.prove_added == Some(true) {
        found.to_prove = added_tests::wanted(comparison.changed, comparison.start, comparison.end, &found);
    }
    found
}

/// Returns the suppressions of what stands at a path.
fn of_file(path: &str, at: &At, roles: &[JudgeRole]) -> Vec<SuppressionMark> {
    let At::File(FileAt { is_ignored: false, bytes, .. }) = at else { return Vec::new() };
    let text = String::from_utf8_lossy(bytes);
    let mut found = marks(path, &text, !roles.is_empty());
    let of_make: Option<Vec<_>> = roles.iter().map(|judge| judge.role.rules(path, &text)).collect();
    if let Some(lines) = of_make.filter(|_| !roles.is_empty()) {
        // A suppression in a rule that is not run suppresses nothing.
        // Of a Makefile, only what checks run is a judge.
        found.retain(|mark| lines.iter().flatten().any(|line| line.trim().starts_with(&mark.text)));
    }
    found
}

/// A way in which a file is a judge.
struct JudgeRole {
    role: Role,
    why: String,
    checks: Vec<String>,
}

/// What is known of the judges of a loop, whatever happened to them.
struct KnownJudges<'a> {
    comparison: &'a TreeComparison<'a>,
    declared: PathSet,
    instructions: BTreeSet<Instruction>,
    /// All states with checks.
    states: Vec<String>,
    /// Those for which a test is more than a file.
    testers: Vec<String>,
    /// Words that checks or their configuration say.
    words: String,
}

/// Where a check of Python may be told to run the examples in texts.
const OF_WORDS: [&str; 5] = ["pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "conftest.py"];

impl<'a> KnownJudges<'a> {
    fn of(comparison: &'a TreeComparison<'a>) -> Self {
        let found = instructions(comparison.commands, comparison.start);
        let mut states: Vec<String> = Vec::new();
        for command in comparison.commands {
            if !states.iter().any(|state| state == command.state) {
                states.push(command.state.to_owned());
            }
        }
        let looks_only = |state: &String| {
            let mut leaves = found.leaves.iter().filter(|(of, _)| of == state).peekable();
            leaves.peek().is_some() && leaves.all(|(_, words)| is_looker(words))
        };
        let testers = states.iter().filter(|state| !looks_only(state)).cloned().collect();
        let mut words: Vec<String> =
            comparison.commands.iter().map(|command| command.text.to_owned()).collect();
        words.extend(found.leaves.iter().map(|(_, words)| words.join(" ")));
        let files = OF_WORDS.iter().filter_map(|path| comparison.start.file(path));
        words.extend(files.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()));
        Self {
            comparison,
            declared: PathSet::of(&comparison.declared.rules.files),
            instructions: found.all,
            states,
            testers,
            words: words.join("\n"),
        }
    }

    /// Tells whether a file lists nothing but plugins that the manifest of the start names, as an installation makes it.
    fn is_made_of_a_manifest(&self, path: &str, row: &SectionRow) -> bool {
        let Some(file) = self.comparison.end.file(path).filter(|_| entry_points::is_list(path)) else {
            return false;
        };
        let text = String::from_utf8_lossy(&file.bytes);
        let parts = judge_parts::parts(&text, &PartSelection::of_section(row, None)).unwrap_or_default();
        let manifest = |place: &String| self.comparison.start.file(place);
        let manifests = entry_points::manifests(path);
        let manifests = manifests.iter().filter_map(manifest).map(|file| file.bytes);
        let manifests: Vec<String> =
            manifests.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
        parts.iter().all(|part| manifests.iter().any(|manifest| entry_points::is_named(part, manifest)))
    }

    /// Returns every way in which the file at a path is a judge.
    fn roles(&self, path: &str) -> Vec<JudgeRole> {
        if self.comparison.declared.are_none {
            return Vec::new();
        }
        let mut roles = Vec::new();
        if self.comparison.loop_files.iter().any(|file| file == path) {
            roles.push(self.of_all(Role::Loop, "the loop".to_owned()));
        }
        if self.declared.matches(path) {
            roles.push(self.of_all(Role::Declared, "`judges` names it".to_owned()));
        }
        roles.extend(self.instructions.iter().filter_map(|instruction| of_instruction(instruction, path)));
        self.by_name(path, &mut roles);
        self.libraries(path, &mut roles);
        roles
    }

    /// Says which tests are not run any more because a source does not name their module, if there are such.
    fn unnamed_tests(&self, path: &str, start: &At, end: &At) -> Option<String> {
        let text = |at: &At| match at {
            At::File(file) => Some(String::from_utf8_lossy(&file.bytes).into_owned()),
            At::Nothing | At::Unreadable => None,
        };
        if self.comparison.declared.are_none || self.testers.is_empty() {
            return None;
        }
        let (old, new) = (text(start)?, text(end)?);
        let (module, file) = unnamed_modules::unnamed(path, &old, &new, self.comparison.end)?;
        Some(format!("it does not have `mod {module}` as it did, so that the tests of `{file}` are not run"))
    }

    fn libraries(&self, path: &str, roles: &mut Vec<JudgeRole>) {
        let testers = self.comparison.commands.iter().filter(|command| {
            let is_tester = self.testers.iter().any(|state| state == command.state);
            is_tester && CATALOG.library(path, command.directory, command.libraries).is_some()
        });
        let checks: Vec<String> = testers.map(|command| command.state.to_owned()).collect();
        if !checks.is_empty() {
            let why = "it has the name of a library that checks load".to_owned();
            roles.push(JudgeRole { role: Role::Library, why, checks });
        }
    }

    fn of_all(&self, role: Role, why: String) -> JudgeRole {
        JudgeRole { role, why, checks: self.states.clone() }
    }

    fn by_name(&self, path: &str, roles: &mut Vec<JudgeRole>) {
        // Without a command that could be told to be a tester, every check may be one.
        // Without commands it is not known who asks.
        let has_testers = !self.testers.is_empty() || self.states.is_empty();
        let of_testers = |role, why| JudgeRole { role, why, checks: self.testers.clone() };
        let row = CATALOG.file(path);
        match row.map(|row| (row.kind, &row.what)) {
            Some((kind @ JudgeKind::Test, what)) if has_testers => {
                roles.push(of_testers(Role::Named(kind), what.clone()));
            }
            // A module of Python is found by whatever program of Python a test starts, but a
            // formatter loads none.
            Some((kind @ (JudgeKind::Shadow | JudgeKind::Compiled), what))
                if matches!(extension(path), Some("py" | "pyc")) =>
            {
                if has_testers {
                    roles.push(of_testers(Role::Named(kind), what.clone()));
                }
            }
            Some((JudgeKind::Test, _)) | None => {}
            Some((kind, what)) => roles.push(self.of_all(Role::Named(kind), what.clone())),
        }
        let sections = CATALOG
            .sections
            .iter()
            .filter(|row| row.format != PartFormat::Make && row.means(path))
            .filter(|row| !self.is_made_of_a_manifest(path, row));
        roles.extend(sections.map(|row| self.of_all(Role::Section(row), row.what.clone())));
        let source = path.strip_suffix(".pyi").map(|stem| format!("{stem}.py"));
        if source.is_some_and(|source| self.comparison.start.file(&source).is_some()) {
            let why = "type checkers look at it in place of the source beside it".to_owned();
            roles.push(self.of_all(Role::Shadow, why));
        }
        let is_test = matches!(row, Some(row) if row.kind == JudgeKind::Test);
        if let Some(language) = CATALOG.language(path).filter(|_| has_testers && !is_test) {
            let is_meant = |word: &String| self.words.contains(word.as_str());
            let rows = CATALOG.inside.iter().filter(|row| row.language == language.name);
            let rows = rows.filter(|row| row.if_named.as_ref().is_none_or(is_meant));
            roles.extend(rows.map(|row| of_testers(Role::Inside(row), row.what.clone())));
        }
    }
}

fn of_instruction(instruction: &Instruction, path: &str) -> Option<JudgeRole> {
    let state = &instruction.state;
    let is_it = match instruction.part {
        // A folder is a target as well.
        InstructionPart::Target if instruction.path == path => true,
        InstructionPart::Folder | InstructionPart::SourcedFolder | InstructionPart::Target => {
            path.strip_prefix(instruction.path.as_str()).is_some_and(|rest| rest.starts_with('/'))
        }
        InstructionPart::Whole
        | InstructionPart::Product
        | InstructionPart::Sourced
        | InstructionPart::Targets(_)
        | InstructionPart::Keys(_)
        | InstructionPart::Shadow
        | InstructionPart::Words
        | InstructionPart::Asked(_)
        | InstructionPart::Program(_) => instruction.path == path,
        InstructionPart::Anywhere(_) => {
            let above = path.strip_suffix(instruction.path.as_str());
            above.is_some_and(|above| above.is_empty() || above.ends_with('/'))
        }
        InstructionPart::AnyScript => may_be_run(path),
    };
    let (role, why) = match &instruction.part {
        InstructionPart::Whole | InstructionPart::Folder => {
            (Role::Instruction, format!("`{state}` runs or obeys it"))
        }
        InstructionPart::Product => (Role::Product, format!("`{state}` makes and runs it")),
        InstructionPart::Sourced | InstructionPart::SourcedFolder => {
            (Role::Sourced, format!("what `{state}` runs reads it in"))
        }
        InstructionPart::Shadow => (Role::Shadow, format!("`{state}` would run it")),
        InstructionPart::AnyScript => {
            (Role::Instruction, format!("`{state}` runs more than could be followed, and maybe this"))
        }
        InstructionPart::Target => {
            (Role::Target { within: instruction.path != path }, format!("`{state}` makes it by a rule"))
        }
        InstructionPart::Words => (Role::Words, format!("what it says is read into what `{state}` runs")),
        InstructionPart::Asked(elsewhere) | InstructionPart::Anywhere(elsewhere) => {
            (Role::Asked(elsewhere.clone()), format!("`{state}` runs it, as it puts its folder into PATH"))
        }
        InstructionPart::Program(elsewhere) => {
            (Role::Program(elsewhere.clone()), format!("`{state}` runs it"))
        }
        InstructionPart::Targets(targets) => {
            (Role::Part(PartFormat::Make, targets.clone()), format!("`{state}` runs rules of it"))
        }
        InstructionPart::Keys(keys) => {
            (Role::Part(PartFormat::Json, keys.clone()), format!("`{state}` runs scripts of it"))
        }
    };
    is_it.then(|| JudgeRole { role, why, checks: vec![state.clone()] })
}

/// Tells whether a file is one by which scripts and tasks are run.
fn may_be_run(path: &str) -> bool {
    const NAMES: [&str; 4] = ["Makefile", "makefile", "GNUmakefile", "package.json"];
    NAMES.contains(&after_last(path, &['/'])) || matches!(extension(path), Some("sh" | "bash" | "mk"))
}

/// Tells whether a command looks at tests as at any other file.
fn is_looker(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let sub = rest.iter().find(|word| !word.starts_with(['-', '+']));
    CATALOG.lookers.iter().any(|looker| match looker.split_once(' ') {
        Some((name, with)) => name == program && sub.is_some_and(|sub| sub == with),
        None => looker == program,
    })
}

/// What was found so far.
struct JudgeSearch {
    found: JudgesFound,
    /// Files in which something changed that cannot be put back without undoing the work.
    sources: BTreeSet<String>,
    /// Judges that were not there at the start.
    new: BTreeSet<String>,
    /// What the loop names: the loop itself, which no check reads again.
    loops: BTreeSet<String>,
    /// Files of which parts are judges.
    in_part: BTreeMap<String, FileInPart>,
}

/// A file of which parts are judges.
struct FileInPart {
    roles: Vec<Role>,
    start: String,
    end: String,
}

impl FileInPart {
    fn of(path: &str, roles: &[JudgeRole], start: &At, end: &At) -> Option<Self> {
        // A file that is also a judge as a whole is put back as a whole.
        if roles.iter().any(|judge| judge.role.selection(path).is_none()) {
            return None;
        }
        let text = |at: &At| match at {
            At::File(file) => str::from_utf8(&file.bytes).ok().map(str::to_owned),
            At::Nothing => Some(String::new()),
            At::Unreadable => None,
        };
        // A file that is gone has no work left in it.
        let (start, end) = (text(start)?, text(end).filter(|_| *end != At::Nothing)?);
        Some(Self { roles: roles.iter().map(|judge| judge.role.clone()).collect(), start, end })
    }

    /// Returns the file of the end with the judges of the start; none where they cannot be put into it.
    fn put_back(&self, path: &str) -> Option<String> {
        let mut text = self.end.clone();
        for role in &self.roles {
            let wanted = role.selection(path)?;
            if judge_parts::parts(&self.start, &wanted) != judge_parts::parts(&text, &wanted) {
                text = restored_parts::put_back(&self.start, &text, &wanted)?;
            }
        }
        Some(text)
    }

    /// Tells whether the tests of a source are among its judges: the rest is the work. A manifest has none, though examples
    /// could stand in it.
    fn is_source(&self) -> bool {
        let is_manifest = self.roles.iter().any(|role| matches!(role, Role::Section(_)));
        !is_manifest && self.roles.iter().any(|role| matches!(role, Role::Inside(_)))
    }
}

impl JudgeSearch {
    fn new() -> Self {
        Self {
            found: JudgesFound::unchanged(),
            sources: BTreeSet::new(),
            new: BTreeSet::new(),
            loops: BTreeSet::new(),
            in_part: BTreeMap::new(),
        }
    }

    /// Takes what happened to the file at a path.
    fn take(&mut self, path: &str, roles: &[JudgeRole], start: &At, end: &At, tree: &dyn Tree) {
        if roles.is_empty() {
            return;
        }
        if let Some(in_part) = FileInPart::of(path, roles, start, end) {
            self.in_part.insert(path.to_owned(), in_part);
        }
        for judge in roles {
            let Some(assessed) = judge.role.assess(path, start, end, tree) else { continue };
            // Whether it was there decides between putting back and taking out of the way.
            if *start == At::Nothing {
                self.new.insert(path.to_owned());
            }
            if matches!(judge.role, Role::Loop) && assessed.kind.state() == JudgesState::Changed {
                self.loops.insert(path.to_owned());
            }
            // The folder stays, whatever is taken out of it.
            if matches!(judge.role, Role::Target { within: true })
                && assessed.kind.state() == JudgesState::Changed
            {
                self.sources.insert(path.to_owned());
            }
            self.tell(path, judge, assessed);
        }
        let is_changed = self.of(path).is_some_and(|file| file.kind.state() == JudgesState::Changed);
        if is_changed {
            self.undo(path);
        }
    }

    fn of(&mut self, path: &str) -> Option<&mut JudgeFile> {
        // They come by path.
        // Paths come in order, so the last file is the only one that can be meant.
        self.found.files.last_mut().filter(|file| file.path == path)
    }

    fn tell(&mut self, path: &str, judge: &JudgeRole, assessed: Assessed) {
        let Assessed { kind, also } = assessed;
        let why = also.map_or_else(|| judge.why.clone(), |also| format!("{}; {also}", judge.why));
        let Some(file) = self.of(path) else {
            let checks = judge.checks.clone();
            self.found.files.push(JudgeFile { path: path.to_owned(), kind, why, checks });
            return;
        };
        // The worst stands, and the first reason for it.
        if kind.state() > file.kind.state() {
            (file.kind, file.why) = (kind, why);
        }
        let more = judge.checks.iter().filter(|state| !file.checks.contains(state)).cloned();
        let more: Vec<String> = more.collect();
        file.checks.extend(more);
    }

    /// Takes a source that keeps tests from being run. What it says instead is the work, so nothing is put back.
    fn out_of_reach(&mut self, path: &str, checks: &[String], why: &str) {
        self.sources.insert(path.to_owned());
        match self.of(path) {
            Some(file) if file.kind.state() >= JudgesState::Changed => {
                file.why.push_str("; ");
                file.why.push_str(why);
            }
            Some(file) => (file.kind, file.why) = (JudgeChange::Weakens, why.to_owned()),
            None => {
                let (path, kind, why) = (path.to_owned(), JudgeChange::Weakens, why.to_owned());
                self.found.files.push(JudgeFile { path, kind, why, checks: checks.to_vec() });
            }
        }
    }

    /// Notes how a judge that changed is put back: its parts in it where it is more than a judge, or all of it.
    fn undo(&mut self, path: &str) {
        let in_part = self.in_part.get(path);
        if let Some(text) = in_part.and_then(|file| file.put_back(path)) {
            self.found.in_part.push(PutBackInPart { path: path.to_owned(), text });
        } else if in_part.is_some_and(FileInPart::is_source) {
            self.sources.insert(path.to_owned());
        } else {
            self.undo_whole(path);
        }
    }

    /// Tells whether all of a file is put back, or taken out of the way.
    fn goes_back_whole(&self, path: &str) -> bool {
        self.found.to_put_back.iter().chain(&self.found.to_hide).any(|known| known == path)
    }

    fn undo_whole(&mut self, path: &str) {
        let is_new = self.new.contains(path);
        let list = if is_new { &mut self.found.to_hide } else { &mut self.found.to_put_back };
        if !list.iter().any(|known| known == path) {
            list.push(path.to_owned());
        }
    }

    fn finish(mut self, counts: MarkCounts, declared: &Declared) -> JudgesFound {
        let fails = declared.rules.suppressions == OnSuppression::Fail;
        for (path, mark) in counts.fresh() {
            if fails {
                self.suppressed(&path, &mark);
            }
            self.found.suppressions.push(Suppression { path, line: mark.line, text: mark.text });
        }
        let may_add = declared.rules.may != MayChange::Nothing;
        if !may_add {
            let added: Vec<String> = self.found.added().map(str::to_owned).collect();
            for path in &added {
                self.undo(path);
            }
            for file in self.found.files.iter_mut().filter(|file| file.kind == JudgeChange::Added) {
                file.kind = JudgeChange::Weakens;
                file.why.push_str("; nothing may be added");
            }
        }
        let second_try = self.added();
        let mut found = self.found;
        found.second_try = second_try;
        // A run goes by the loop that it began with: no check would tell what another one says.
        found.can_be_put_back = self.sources.is_empty() && self.loops.is_empty();
        let of_files = found.files.iter().map(|file| file.kind.state());
        found.state = of_files.max().unwrap_or(JudgesState::Unchanged);
        if fails && !found.suppressions.is_empty() {
            found.state = found.state.max(JudgesState::Changed);
        }
        found
    }

    /// Returns the tests that were added, where they may need something that is put back or hidden.
    fn added(&self) -> AddedTests {
        if self.found.nothing_to_put_back() {
            // Where nothing is put back or hidden, a second try would be the first one again.
            return AddedTests::default();
        }
        let is_in_part =
            |path: &str| self.in_part.get(path).is_some_and(|file| file.put_back(path).is_some());
        let is_known =
            |path: &str| self.found.to_hide.iter().chain(&self.found.to_put_back).any(|one| one == path);
        let added = self.found.added().filter(|path| !is_in_part(path) && !is_known(path)).map(str::to_owned);
        let (to_hide, to_put_back) = added.partition(|path| self.new.contains(path));
        AddedTests { to_put_back, to_hide }
    }

    /// A suppression within a judge makes it one that changed; within a source nothing can be put back.
    fn suppressed(&mut self, path: &str, mark: &SuppressionMark) {
        let put_back = self.in_part.get(path).and_then(|file| file.put_back(path));
        let is_gone = |text: &String| marks(path, text, true).iter().all(|other| other.text != mark.text);
        let is_in_tests = put_back.as_ref().is_some_and(is_gone);
        let is_source = self.in_part.get(path).is_some_and(FileInPart::is_source);
        let Some(file) = self.found.files.iter_mut().find(|file| file.path == path) else {
            self.sources.insert(path.to_owned());
            return;
        };
        // A suppression in a test weakens it, even where the test only grew.
        if file.kind.state() < JudgesState::Changed {
            file.kind = JudgeChange::Weakens;
            file.why.push_str("; it has a suppression");
            if !is_source {
                self.undo_whole(path);
            }
        }
        match put_back {
            Some(text) if is_in_tests && !self.goes_back_whole(path) => {
                self.found.in_part.retain(|known| known.path != path);
                self.found.in_part.push(PutBackInPart { path: path.to_owned(), text });
            }
            _ if is_source => drop(self.sources.insert(path.to_owned())),
            _ => {
                // The judges alone would go back, and the suppression stay in what is around them.
                self.found.in_part.retain(|known| known.path != path);
                self.undo_whole(path);
            }
        }
    }
}

#[cfg(test)]
mod tests;
