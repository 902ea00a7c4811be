//! What happened to a judge, by what it is.

use serde_json::Value;

use super::found_judges::JudgeChange;
use super::ignore_lists;
use super::judge_catalog::{CATALOG, InsideRow, JudgeKind, PartFormat, SectionRow};
use super::judge_parts::{PartSelection, is_grown, parts};
use super::test_changes::{TextChange, compare, is_empty, of_others};
use super::tree::{At, FileAt, Tree, extension};
use crate::base::file_mode::FileMode;

/// How a file is a judge.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// The loop itself.
    Loop,
    /// The loop names it.
    Declared,
    /// A check runs or obeys it.
    Instruction,
    /// A check makes it and runs it, unless it is there and younger than what it is made of.
    Product,
    /// A script that a check runs reads it in: it may end that one.
    Sourced,
    /// Where it is new, it takes the place of something else, or stands before it.
    Shadow,
    /// A check runs it, and where it is not there, the program at this place outside of the tree.
    Program(Option<String>),
    /// The same, of a directory into which a text of the check itself puts what it runs.
    Asked(Option<String>),
    /// What it says becomes words of a command, or variables of its environment.
    Words,
    /// A rule makes it, or the folder that it is in, and may not be run where that is there.
    Target {
        /// Whether the rule makes the folder.
        within: bool,
    },
    /// It has the name of a library that is not the work; one that is there from the start is the work.
    Library,
    /// Parts of it are instructions.
    Part(PartFormat, Vec<String>),
    /// By its name.
    Named(JudgeKind),
    /// A part of it, by its name.
    Section(&'static SectionRow),
    /// Tests within it.
    Inside(&'static InsideRow),
}

/// What happened, and what more there is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assessed {
    pub(super) kind: JudgeChange,
    pub(super) also: Option<String>,
}

impl From<JudgeChange> for Assessed {
    fn from(kind: JudgeChange) -> Self {
        Self { kind, also: None }
    }
}

impl Role {
    /// Tells what happened to the judge at a path, if something did.
    pub(super) fn assess(&self, path: &str, start: &At, end: &At, tree: &dyn Tree) -> Option<Assessed> {
        match (start, end) {
            (At::Unreadable, _) | (_, At::Unreadable) => Some(JudgeChange::Unreadable.into()),
            (At::Nothing, At::Nothing) => None,
            (At::File(_), At::Nothing) => {
                // Of a file that is a judge in parts only, what is gone may not have been a judge.
                self.is_a_whole().then(|| JudgeChange::Removed.into()).or_else(|| {
                    let gone = FileAt { mode: FileMode::File, bytes: Vec::new(), is_ignored: false };
                    self.assess(path, start, &At::File(gone), tree).map(|_| JudgeChange::Removed.into())
                })
            }
            (At::Nothing, At::File(end)) => self.of_new(path, end, tree),
            (At::File(start), At::File(end)) => self.of_both(path, start, end, tree),
        }
    }

    /// Returns the lines of a Makefile that checks run, where it is a judge as far as these go.
    pub(super) fn rules(&self, path: &str, text: &str) -> Option<Vec<String>> {
        let Self::Part(PartFormat::Make, _) = self else { return None };
        parts(text, &self.selection(path)?)
    }

    /// Tells whether all of the file is the judge.
    fn is_a_whole(&self) -> bool {
        let is_part = matches!(self, Self::Section(_) | Self::Inside(_) | Self::Part(..));
        !is_part && !matches!(self, Self::Library | Self::Target { .. } | Self::Named(JudgeKind::Ignored))
    }

    /// Returns which parts of the file are judges, where the rest of it is work.
    pub(super) fn selection(&self, path: &str) -> Option<PartSelection<'_>> {
        match self {
            Self::Section(row) => Some(PartSelection::of_section(row, CATALOG.language(path))),
            Self::Inside(row) => Some(PartSelection::of_tests(row, CATALOG.language(path)?)),
            Self::Part(format, keys) => {
                Some(PartSelection { format: *format, keys, pattern: None, language: None })
            }
            Self::Loop
            | Self::Declared
            | Self::Instruction
            | Self::Product
            | Self::Sourced
            | Self::Shadow
            | Self::Program(_)
            | Self::Asked(_)
            | Self::Words
            | Self::Target { .. }
            | Self::Library
            | Self::Named(_) => None,
        }
    }

    /// A file that was not there at the start.
    fn of_new(&self, path: &str, end: &FileAt, tree: &dyn Tree) -> Option<Assessed> {
        let kind = match self {
            // What the check makes itself has no say in it, but what was there already and is newer
            // than its sources is not made again.
            Self::Product if !tree.was_made_at_last(path) => {
                let also = Some("it was there before the check that passed would have made it".to_owned());
                return Some(Assessed { kind: JudgeChange::Shadows, also });
            }
            // No shell finds a program that may not be run.
            Self::Asked(_) if end.mode == FileMode::File => return None,
            // The check asks for what is made there, by itself or by a command of the loop.
            Self::Asked(_) | Self::Sourced
                if (end.is_ignored || is_of_dependencies(path)) && is_made_by_the_loop(path, tree) =>
            {
                JudgeChange::Installed
            }
            Self::Target { .. } if is_made_by_the_loop(path, tree) => return None,
            Self::Target { .. } => {
                let also = Some("where it is there, the rule that makes it may not be run".to_owned());
                return Some(Assessed { kind: JudgeChange::Shadows, also });
            }
            Self::Words if is_made_by_the_loop(path, tree) => {
                if end.is_ignored { JudgeChange::Installed } else { JudgeChange::Added }
            }
            Self::Words => {
                let also = Some("it is new, and what it says becomes words of a command".to_owned());
                return Some(Assessed { kind: JudgeChange::Weakens, also });
            }
            Self::Instruction | Self::Product | Self::Program(None) | Self::Asked(None)
                if end.is_ignored || is_of_dependencies(path) =>
            {
                let is_made_by_the_check = matches!(self, Self::Product) || tree.was_made_at_last(path);
                if !is_made_by_the_check && !tree.is_installed(path) {
                    let also =
                        "it came after a check had looked, and no package manager says that it put it there";
                    return Some(Assessed { kind: JudgeChange::Shadows, also: Some(also.to_owned()) });
                }
                JudgeChange::Installed
            }
            // Another name for the program that was run until now.
            Self::Program(Some(elsewhere)) | Self::Asked(Some(elsewhere))
                // A link to the very program that was run before changes nothing.
                if end.mode == FileMode::Link && end.bytes == elsewhere.as_bytes() =>
            {
                JudgeChange::Installed
            }
            Self::Program(Some(elsewhere)) | Self::Asked(Some(elsewhere)) => {
                let also = Some(format!("{elsewhere} was run until now"));
                return Some(Assessed { kind: JudgeChange::Shadows, also });
            }
            Self::Sourced => {
                let also = Some("it is new, and may end the script that reads it in".to_owned());
                return Some(Assessed { kind: JudgeChange::Weakens, also });
            }
            Self::Loop => {
                let also = Some("it was not there at the start".to_owned());
                return Some(Assessed { kind: JudgeChange::Weakens, also });
            }
            Self::Shadow | Self::Library | Self::Named(JudgeKind::Shadow) => JudgeChange::Shadows,
            Self::Named(JudgeKind::Compiled) => {
                let also = Some("nothing ties it to its source".to_owned());
                return Some(Assessed { kind: JudgeChange::Shadows, also });
            }
            Self::Named(JudgeKind::Config) => JudgeChange::Weakens,
            // What git ignores is in no commit, so it is not the work either.
            Self::Declared | Self::Named(JudgeKind::Test | JudgeKind::Workflow) if end.is_ignored => {
                return None;
            }
            Self::Named(JudgeKind::Test) => return Some(of_new_test(path, end)),
            // A new configuration has no state of the start to be compared with.
            // What the commit's own checks name already and lack: to make it is the work.
            Self::Instruction
            | Self::Product
            | Self::Program(None)
            | Self::Asked(None)
            | Self::Declared
            | Self::Named(JudgeKind::Workflow) => JudgeChange::Added,
            Self::Inside(_) => return None,
            Self::Named(JudgeKind::Ignored) | Self::Section(_) | Self::Part(..) => {
                let nothing = FileAt { mode: end.mode, bytes: Vec::new(), is_ignored: end.is_ignored };
                let found = self.of_both(path, &nothing, end, tree)?;
                let is_list = found.kind == JudgeChange::Ignored;
                let kind = if is_list { JudgeChange::Ignored } else { JudgeChange::Weakens };
                return Some(Assessed { kind, ..found });
            }
        };
        Some(kind.into())
    }

    fn of_both(&self, path: &str, start: &FileAt, end: &FileAt, tree: &dyn Tree) -> Option<Assessed> {
        if end.is_ignored && !start.is_ignored && self.is_a_whole() {
            return Some(JudgeChange::Ignored.into());
        }
        let is_program = matches!(
            self,
            Self::Instruction
                | Self::Shadow
                | Self::Program(_)
                | Self::Asked(_)
                | Self::Declared
                | Self::Named(JudgeKind::Shadow)
        );
        // A runner of scripts leaves out what it may not run.
        let is_disarmed = matches!(self, Self::Named(JudgeKind::Test))
            && start.mode == FileMode::Executable
            && end.mode == FileMode::File;
        let is_kept = |mode: FileMode| mode == FileMode::File || mode == FileMode::Executable;
        // A file that became a link, or the other way round, may now be anything.
        if start.mode != end.mode && (is_program || is_disarmed || !is_kept(start.mode) || !is_kept(end.mode))
        {
            return Some(JudgeChange::Mode.into());
        }
        if start.bytes == end.bytes {
            return None;
        }
        // Bytes that are not text can only be the same or not.
        let (Ok(old), Ok(new)) = (str::from_utf8(&start.bytes), str::from_utf8(&end.bytes)) else {
            return Some(JudgeChange::Edited.into());
        };
        match self {
            Self::Named(JudgeKind::Ignored) => {
                let seen = tree.seen();
                let hidden = ignore_lists::hides(path, old, new, &seen)?;
                Some(Assessed { kind: JudgeChange::Ignored, also: Some(format!("it hides {hidden}")) })
            }
            Self::Named(JudgeKind::Test) => of_test(path, old, new),
            Self::Section(row) => of_parts(old, new, &self.selection(path)?, row.grows),
            Self::Part(..) => of_parts(old, new, &self.selection(path)?, false),
            Self::Inside(row) => of_tests_inside(path, old, new, row),
            // Whatever is built is another one after each change of the work.
            Self::Library | Self::Target { .. } => None,
            // Whatever a check compares with or reads, each byte of it may count.
            Self::Declared => Some(JudgeChange::Edited.into()),
            Self::Instruction
            | Self::Product
            | Self::Sourced
            | Self::Program(_)
            | Self::Asked(_)
            | Self::Words => {
                let is_same =
                    says_the_same(path, old, new) || (CATALOG.holds_exceptions(path) && are_fewer(old, new));
                (!is_same).then(|| JudgeChange::Edited.into())
            }
            Self::Loop
            | Self::Shadow
            | Self::Named(
                JudgeKind::Config | JudgeKind::Shadow | JudgeKind::Compiled | JudgeKind::Workflow,
            ) => {
                let is_same = says_the_same(path, old, new)
                    || compare(path, old, new) == TextChange::Nothing
                    || (CATALOG.holds_exceptions(path) && are_fewer(old, new));
                (!is_same).then(|| JudgeChange::Edited.into())
            }
        }
    }
}

/// Folders in which package managers have what they install, whether git ignores them or not.
const OF_DEPENDENCIES: [&str; 5] = [".tox", ".venv", "node_modules", "vendor", "venv"];

fn is_of_dependencies(path: &str) -> bool {
    path.split('/').any(|part| OF_DEPENDENCIES.contains(&part))
}

/// Tells whether a file that is new was made by the check that looked last, or by a command of the loop.
fn is_made_by_the_loop(path: &str, tree: &dyn Tree) -> bool {
    tree.was_made_at_last(path) || tree.is_installed(path)
}

/// Tells whether two texts of a configuration differ in how they are laid out alone.
fn says_the_same(path: &str, old: &str, new: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    // Order and layout of a configuration say nothing, so a formatter must not look like a cheat.
    let toml = |text: &str| toml::from_str::<toml::Table>(text).ok();
    match extension(path) {
        Some("json") => json(old).is_some_and(|old| Some(old) == json(new)),
        Some("toml") => toml(old).is_some_and(|old| Some(old) == toml(new)),
        _ => false,
    }
}

/// Tells whether a list of exceptions has lost some, and nothing else happened to it.
fn are_fewer(start: &str, end: &str) -> bool {
    // Baselines list an exception with how often it occurs.
    let count = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>();
    let words = |line: &str| line.chars().filter(|sign| !sign.is_ascii_digit()).collect::<String>();
    // Of the same exception, as often or less often.
    let is_left = |old: &str, new: &str| {
        old == new
            || (words(old) == words(new) && count(old).is_ok_and(|old| count(new).is_ok_and(|new| new < old)))
    };
    // In the same order, so that an exception that was added never passes for one that was there.
    let mut rest = start.lines();
    end.lines().all(|line| rest.any(|old| is_left(old, line)))
}

/// A new test, or something else among the tests: a helper, a hook and a package are code that may have a say in all of them.
fn of_new_test(path: &str, end: &FileAt) -> Assessed {
    let text = String::from_utf8_lossy(&end.bytes);
    // A script that can be run may be a runner or a hook, whatever its name.
    let is_script = end.mode == FileMode::Executable || text.starts_with("#!");
    let is_case = CATALOG.is_case_or_data(path) && (CATALOG.language(path).is_some() || !is_script);
    if let Some(why) = of_others(path, &text) {
        return Assessed { kind: JudgeChange::Shadows, also: Some(format!("a line of it {why}")) };
    }
    if is_case || is_empty(path, &text) {
        return JudgeChange::Added.into();
    }
    let also = Some("it is new, and by its name neither a test nor data".to_owned());
    Assessed { kind: JudgeChange::Weakens, also }
}

fn of_test(path: &str, old: &str, new: &str) -> Option<Assessed> {
    // More of what a test compares with is something else to compare with; more tests are more tests.
    let language = CATALOG.language(path).map(|language| language.name.as_str());
    let is_code = !matches!(language, None | Some("data" | "markup"));
    let is_list = matches!(extension(path), Some("snap" | "feature"));
    match compare(path, old, new) {
        TextChange::Nothing => None,
        TextChange::Grown if is_code || is_list => Some(JudgeChange::Added.into()),
        TextChange::Weakened(why) => {
            Some(Assessed { kind: JudgeChange::Weakens, also: Some(format!("a new line {why}")) })
        }
        TextChange::Grown | TextChange::Edited => Some(JudgeChange::Edited.into()),
    }
}

/// A manifest of a new package may take over what its workspace says.
const INHERITED: [&str; 1] = [".lints.workspace = true"];

fn of_parts(old: &str, new: &str, wanted: &PartSelection<'_>, grows: bool) -> Option<Assessed> {
    let of = |text: &str| if text.is_empty() { Some(Vec::new()) } else { parts(text, wanted) };
    let is_same = match (of(old), of(new)) {
        (Some(old), Some(mut new)) => {
            // Only what a whole set of lints is inherited by is known to take nothing away.
            new.retain(|part| old.contains(part) || !INHERITED.contains(&part.as_str()));
            if grows { is_grown(&old, &new) } else { old == new }
        }
        // What cannot be read any more may mean anything.
        _ => false,
    };
    (!is_same).then(|| JudgeChange::Edited.into())
}

fn of_tests_inside(path: &str, old: &str, new: &str, row: &'static InsideRow) -> Option<Assessed> {
    let language = CATALOG.language(path)?;
    let wanted = PartSelection::of_tests(row, language);
    let (old, new) = (parts(old, &wanted)?, parts(new, &wanted)?);
    if row.format != PartFormat::Blocks {
        // They stand in comments and texts, where every word counts.
        let kind = if is_grown(&old, &new) { JudgeChange::Added } else { JudgeChange::Edited };
        return (old != new).then(|| kind.into());
    }
    let (old, new) = (old.join("\n"), new.join("\n"));
    match compare(path, &old, &new) {
        TextChange::Nothing => None,
        TextChange::Grown => Some(JudgeChange::Added.into()),
        TextChange::Weakened(why) => {
            Some(Assessed { kind: JudgeChange::Weakens, also: Some(format!("a new line {why}")) })
        }
        TextChange::Edited => Some(JudgeChange::Edited.into()),
    }
}
