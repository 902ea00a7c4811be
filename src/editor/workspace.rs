//! The projects of an editor: which there are, and what is found in them, with the open documents above the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::documents::OpenDocuments;
use super::findings::{DiagnosticsBuilder, FileDiagnostics, OfferedRepair};
use super::project_check::{self, CheckOptions, CheckedProject, ProjectFacts};
use super::text_document::ColumnUnit;
use crate::context::Session;
use crate::context::environment::Environment;
use crate::context::talk::Silence;
use crate::definition::load::{self, DIRECTORY};

/// The projects, the open documents, and what is known of them.
pub(super) struct EditorWorkspace {
    env: Environment,
    /// The words that name commands.
    commands: Vec<String>,
    /// The directories that are open in the editor.
    folders: BTreeSet<PathBuf>,
    pub(super) documents: OpenDocuments,
    pub(super) unit: ColumnUnit,
    /// Whether another server says what the schema says, in files that name it.
    pub(super) mutes_schema: bool,
    /// Whether the client renames files when it is told to.
    pub(super) renames_files: bool,
    /// Whether the client has commands that run and test a loop.
    pub(super) runs_loops: bool,
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

impl EditorWorkspace {
    /// Makes one without folders and documents. Loops with names among `commands` get a warning.
    pub(super) fn new(env: Environment, commands: Vec<String>) -> Self {
        Self {
            env,
            commands,
            folders: BTreeSet::new(),
            documents: OpenDocuments::default(),
            unit: ColumnUnit::default(),
            mutes_schema: false,
            renames_files: false,
            runs_loops: false,
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
        // Which project a file elsewhere belongs to depends on the folders that are open.
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
        // Of folders that lie in each other, the innermost is the last in order.
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
            // Only now: a look that was given up has to be taken again.
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
        let mut builder = DiagnosticsBuilder::new(&project, self.unit, self.mutes_schema, &has_mark);
        match project_check::check_again(path, &known.facts, &self.options(), &session) {
            Ok(file) => builder.add(&file.path, &file.checked),
            Err(unread) => builder.add_unreadable(path, unread.error.message()),
        }
        // What is found in other files is complete only when all that take them over were looked at.
        builder.found.retain(|file, _| file == path);
        Some(builder.found)
    }

    /// Returns the repairs of what is found in a document, whose changes count from its beginning.
    pub(super) fn repairs(&self, path: &Path) -> Vec<OfferedRepair> {
        let project = self.project_of(path);
        let Some(session) = self.session(&project).filter(|_| self.documents.get(path).is_some()) else {
            return Vec::new();
        };
        let alone = ProjectFacts::default();
        let facts = self.known.get(&project).map(|known| &known.facts).filter(|facts| facts.knows(path));
        let facts = facts.unwrap_or(&alone);
        // Checked anew, because only diagnostics are kept, and repairs need the text and its tree.
        let Ok(file) = project_check::check_again(path, facts, &self.options(), &session) else {
            return Vec::new();
        };
        let has_mark = |path: &Path| self.has_mark(path);
        let builder = DiagnosticsBuilder::new(&project, self.unit, self.mutes_schema, &has_mark);
        let mark = if self.has_mark(path) { '\u{feff}'.len_utf8() } else { 0 };
        let mut offered = builder.with_repairs(path, &file.checked);
        for OfferedRepair { change, .. } in &mut offered {
            change.range = change.range.start + mark..change.range.end + mark;
        }
        offered
    }

    /// Returns what was found when all was looked at, for each file.
    pub(super) fn found(&self) -> FileDiagnostics {
        let mut all = FileDiagnostics::new();
        for (path, diagnostics) in self.known.values().flat_map(|known| &known.found) {
            let of_file = all.entry(path.clone()).or_default();
            // Loops of several projects may take over the same file.
            let new = diagnostics.iter().filter(|diagnostic| !of_file.contains(diagnostic));
            let new: Vec<_> = new.cloned().collect();
            of_file.extend(new);
        }
        all
    }

    fn checked(&self, project: &Path, goes_on: &mut dyn FnMut() -> bool) -> Option<KnownProject> {
        let Some(session) = self.session(project) else { return Some(KnownProject::default()) };
        let options = self.options();
        let mut may_go_on = || if goes_on() { Ok(()) } else { Err(()) };
        let CheckedProject { files, unread, facts, .. } =
            project_check::check_while(&options, &session, &mut may_go_on).ok()?;
        let has_mark = |path: &Path| self.has_mark(path);
        let mut builder = DiagnosticsBuilder::new(project, self.unit, self.mutes_schema, &has_mark);
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
            // They are in no list, so that the facts of the project say nothing about them.
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

#[cfg(test)]
mod tests {
    use ls_types::{Position, Range, TextDocumentContentChangeEvent, TextDocumentItem, Uri};

    use super::*;

    /// Files that take each other over, by every way there is.
    const FILES: [(&str, &str); 5] = [
        (
            ".loops/main.yaml",
            "name: main\ndescription: d\ninitial: a\nimport: [lib/parts.yaml]\nstates:\n  a: {fragment: run, on_yes: b, on_no: a}\n  b: {loop: sub, on_yes: c, on_no: a}\n  c: {terminal: true}\n",
        ),
        (
            ".loops/sub.yaml",
            "name: sub\nfrom: base\nstates:\n  fix: {action: \"echo 🐎 ${captured.check}\", next: check}\n",
        ),
        (
            ".loops/base.yaml",
            "name: base\ninitial: check\nstates:\n  check: {action: make, on_yes: done, on_no: fix}\n  done: {terminal: true}\n",
        ),
        (".loops/lib/parts.yaml", "fragments:\n  run:\n    action: |\n      make é\n    on_error: c\n"),
        (
            ".loops/tests/main.test.yaml",
            "loop: main\ncases:\n  - name: x\n    states: {a: {exit: 0}}\n    expect: {ends: success}\n",
        ),
    ];

    /// What somebody types, pastes or leaves half written.
    const PIECES: [&str; 14] = [
        "",
        "",
        "",
        "a",
        ": ",
        "\n",
        "  ",
        "on_no: b",
        "${captured.a}",
        "\"",
        "{",
        "]",
        "🐎\r\n",
        "terminal: true\n",
    ];

    /// Numbers that look like chance, the same in each run.
    struct EditChance(u64);

    impl EditChance {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end.max(1)
        }
    }

    fn uri(path: &Path) -> Uri {
        Uri::from_file_path(path).unwrap()
    }

    fn item(path: &Path, text: &str) -> TextDocumentItem {
        TextDocumentItem::new(uri(path), "yaml".to_owned(), 1, text.to_owned())
    }

    fn workspace(root: &Path) -> EditorWorkspace {
        let mut workspace = EditorWorkspace::new(Environment::of(BTreeMap::new()), Vec::new());
        workspace.open_folder(root.to_owned());
        workspace
    }

    /// Returns what a server finds that has just been started on these texts.
    fn fresh(root: &Path, texts: &[(PathBuf, String)]) -> FileDiagnostics {
        let mut workspace = workspace(root);
        for (path, text) in texts {
            workspace.documents.open(item(path, text)).unwrap();
        }
        assert!(workspace.check(&mut || true));
        workspace.found()
    }

    #[test]
    fn after_ten_thousand_edits_everything_is_as_if_it_were_read_for_the_first_time() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(directory.path()).unwrap();
        let mut texts: Vec<(PathBuf, String)> =
            FILES.iter().map(|(path, text)| (root.join(path), (*text).to_owned())).collect();
        for (path, text) in &texts {
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let mut edited = workspace(&root);
        for (path, text) in &texts {
            edited.documents.open(item(path, text)).unwrap();
        }
        let mut chance = EditChance(42);
        for edit in 0..10_000 {
            let which = chance.below(texts.len());
            let (path, text) = &mut texts[which];
            if text.len() > 600 || chance.below(60) == 0 {
                // Somebody takes everything back.
                let original = FILES[which].1.to_owned();
                let whole = TextDocumentContentChangeEvent {
                    range: None,
                    range_length: None,
                    text: original.clone(),
                };
                edited.documents.change(&uri(path), edit, vec![whole], ColumnUnit::Utf16).unwrap();
                *text = original;
            } else {
                let lines = super::super::text_document::LineStarts::of(text);
                let start = chance.below(text.len() + 1);
                let end = (start + chance.below(5)).min(text.len());
                let range = lines.range(text, &(start..end), ColumnUnit::Utf16);
                let piece = PIECES[chance.below(PIECES.len())];
                let bytes = lines.byte(text, range.start, ColumnUnit::Utf16)
                    ..lines.byte(text, range.end, ColumnUnit::Utf16);
                text.replace_range(bytes.start..bytes.end.max(bytes.start), piece);
                let typed = TextDocumentContentChangeEvent {
                    range: Some(range),
                    range_length: None,
                    text: piece.to_owned(),
                };
                edited.documents.change(&uri(path), edit, vec![typed], ColumnUnit::Utf16).unwrap();
            }
            let path = path.clone();
            edited.touch(&path);
            assert_eq!(edited.documents.get(&path).unwrap().document.text(), texts[which].1, "edit {edit}");
            if edit % 25 != 0 {
                continue;
            }
            let first = edited.check_first(&path);
            assert!(edited.check(&mut || true));
            let found = edited.found();
            assert_eq!(found, fresh(&root, &texts), "edit {edit}");
            // What is said at once about the file under the cursor is said again when all is looked at, unless another one
            // decides about it.
            let at_once = first.and_then(|mut first| first.remove(&path)).unwrap_or_default();
            let later = &found[&path];
            let is_of_others = |code: &ls_types::NumberOrString| matches!(code, ls_types::NumberOrString::String(code) if code == "untested" || code == "missing-key");
            let own = at_once.iter().filter(|one| !one.code.as_ref().is_some_and(is_of_others));
            for one in own {
                assert!(later.contains(one), "edit {edit}: {one:?}");
            }
        }
        // As typed is as saved.
        for (path, text) in &texts {
            fs_err::write(path, text).unwrap();
        }
        assert_eq!(fresh(&root, &[]), fresh(&root, &texts));
        assert_eq!(edited.documents.ours().count(), FILES.len());
        let nowhere = Range::new(Position::new(u32::MAX, 0), Position::new(0, u32::MAX));
        let typed =
            TextDocumentContentChangeEvent { range: Some(nowhere), range_length: None, text: "x".to_owned() };
        edited.documents.change(&uri(&texts[0].0), 1, vec![typed], ColumnUnit::Utf16).unwrap();
        assert!(edited.documents.get(&texts[0].0).unwrap().document.text().ends_with('x'));
    }
}
