//! The projects of an editor: which there are, and what is found in them, with the open documents above the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::documents::OpenDocuments;
use super::findings::{DiagnosticsBuilder, FileDiagnostics};
use super::project_check::{self, CheckOptions, CheckedProject, ProjectFacts};
use super::text_document::ColumnUnit;
use crate::definition::load::{self, DIRECTORY};
use crate::session::context::Session;
use crate::session::environment::Environment;
use crate::session::talk::Silence;

/// The projects, the open documents, and what is known of them.
pub(super) struct Workspace {
    env: Environment,
    /// The words that name commands.
    commands: Vec<String>,
    /// The directories that are open in the editor.
    folders: BTreeSet<PathBuf>,
    pub(super) documents: OpenDocuments,
    pub(super) unit: ColumnUnit,
    known: BTreeMap<PathBuf, KnownProject>,
    /// The projects in which something has changed since they were checked.
    stale: BTreeSet<PathBuf>,
}

/// What the last look at a whole project found.
#[derive(Default)]
struct KnownProject {
    facts: ProjectFacts,
    found: FileDiagnostics,
}

impl Workspace {
    /// Makes one without folders and documents. Loops with names among `commands` get a warning.
    pub(super) fn new(env: Environment, commands: Vec<String>) -> Self {
        Self {
            env,
            commands,
            folders: BTreeSet::new(),
            documents: OpenDocuments::default(),
            unit: ColumnUnit::default(),
            known: BTreeMap::new(),
            stale: BTreeSet::new(),
        }
    }

    /// Opens a directory, with the project that it is in.
    pub(super) fn open_folder(&mut self, folder: PathBuf) {
        self.stale.insert(project_of_folder(&folder));
        self.folders.insert(folder);
    }

    /// Closes a directory.
    pub(super) fn close_folder(&mut self, folder: &Path) {
        self.folders.remove(folder);
        self.stale.extend(self.known.keys().cloned());
    }

    /// Notes that a document or a file has changed.
    pub(super) fn touch(&mut self, path: &Path) {
        let project = self.project_of(path);
        // A project may take over files of another one.
        self.stale.extend(self.known.keys().filter(|known| path.starts_with(known)).cloned());
        self.stale.insert(project);
    }

    /// Tells whether something has changed since it was checked.
    pub(super) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Returns the directory from which `validate` would check a file: the one whose `.loops` it is in, or else the folder that
    /// is open around it.
    pub(super) fn project_of(&self, path: &Path) -> PathBuf {
        let holds_loops = |above: &&Path| above.file_name().is_some_and(|name| name == DIRECTORY);
        // Copies of other repositories may have a `.loops` of their own below this one.
        let around = path.ancestors().filter(holds_loops).filter_map(Path::parent).last();
        let folder = || self.folders.iter().filter(|folder| path.starts_with(folder)).max();
        let parent = || path.parent().unwrap_or(path).to_owned();
        let inside = around.filter(|around| folder().is_none_or(|folder| around.starts_with(folder)));
        let nearest = || path.ancestors().find(holds_loops).and_then(Path::parent);
        match inside.or_else(nearest) {
            Some(around) => around.to_owned(),
            None => folder().map_or_else(parent, |folder| project_of_folder(folder)),
        }
    }

    /// Makes the session of a project. It reads no variable of the environment but those that the workspace was given.
    pub(super) fn session(&self, project: &Path) -> Option<Session<'_>> {
        let session = Session::new(&self.env, project, &Silence).ok()?;
        Some(session.beneath(self.documents.unsaved()))
    }

    fn options(&self) -> CheckOptions<'_> {
        CheckOptions { commands: &self.commands, ..CheckOptions::default() }
    }

    /// Checks every project in which something has changed, until `goes_on` says no. Returns whether all of it is done.
    pub(super) fn check(&mut self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        while let Some(project) = self.stale.first().cloned() {
            let Some(known) = self.checked(&project, goes_on) else { return false };
            self.stale.remove(&project);
            if known.found.is_empty() {
                self.known.remove(&project);
            } else {
                self.known.insert(project, known);
            }
        }
        true
    }

    /// Checks one file with what is known of its project, for whoever has just changed it. Returns nothing where the whole
    /// project has to be looked at first.
    pub(super) fn check_first(&self, path: &Path) -> Option<FileDiagnostics> {
        let project = self.project_of(path);
        let known = self.known.get(&project)?;
        if !known.facts.knows(path) || self.documents.get(path).is_none() {
            return None;
        }
        let session = self.session(&project)?;
        let has_mark = |path: &Path| self.has_mark(path);
        let mut builder = DiagnosticsBuilder::new(&project, self.unit, &has_mark);
        match project_check::check_again(path, &known.facts, &self.options(), &session) {
            Ok(file) => builder.add(&file.path, &file.checked),
            Err(unread) => builder.add_unreadable(path, unread.error.message()),
        }
        builder.found.retain(|file, _| file == path);
        Some(builder.found)
    }

    /// Returns what was found when all was looked at, for each file.
    pub(super) fn found(&self) -> FileDiagnostics {
        let mut all = FileDiagnostics::new();
        for (path, diagnostics) in self.known.values().flat_map(|known| &known.found) {
            let of_file = all.entry(path.clone()).or_default();
            let new = diagnostics.iter().filter(|diagnostic| !of_file.contains(diagnostic));
            let new: Vec<_> = new.cloned().collect();
            of_file.extend(new);
        }
        all
    }

    fn checked(&self, project: &Path, goes_on: &mut dyn FnMut() -> bool) -> Option<KnownProject> {
        let Some(session) = self.session(project) else { return Some(KnownProject::default()) };
        let options = self.options();
        let CheckedProject { files, unread, facts } = project_check::check(&options, &session, goes_on)?;
        let has_mark = |path: &Path| self.has_mark(path);
        let mut builder = DiagnosticsBuilder::new(project, self.unit, &has_mark);
        for file in &files {
            builder.add(&file.path, &file.checked);
        }
        for (path, error) in unread.iter().filter_map(|unread| Some((unread.path.as_ref()?, &unread.error))) {
            builder.add_unreadable(path, error.message());
        }
        // What is open and not listed: copies, files elsewhere than in `.loops`, and such as are not saved yet.
        let others = self.documents.ours().filter(|path| self.project_of(path) == project);
        for path in others.filter(|path| !builder.found.contains_key(*path)).cloned().collect::<Vec<_>>() {
            let alone = ProjectFacts::default();
            match project_check::check_again(&path, &alone, &options, &session) {
                Ok(file) => builder.add(&path, &file.checked),
                Err(unread) => builder.add_unreadable(&path, unread.error.message()),
            }
        }
        Some(KnownProject { facts, found: builder.found })
    }

    fn has_mark(&self, path: &Path) -> bool {
        self.documents.get(path).is_some_and(|open| open.document.text().starts_with('\u{feff}'))
    }
}

/// Returns the project that a directory is in: the nearest one with loops, in the same repository.
fn project_of_folder(folder: &Path) -> PathBuf {
    let above = load::ancestors(folder).into_iter().find(|above| above.join(DIRECTORY).is_dir());
    above.unwrap_or_else(|| folder.to_owned())
}
