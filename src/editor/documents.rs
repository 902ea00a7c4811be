//! The documents that are open in an editor, by their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ls_types::{TextDocumentContentChangeEvent, TextDocumentItem, Uri};

use super::text_document::{ColumnUnit, TextDocument};
use crate::base::text::first_line;
use crate::definition::load::DIRECTORY;
use crate::files::place;
use crate::files::unsaved::UnsavedTexts;
use crate::testing::suite::is_test_file;

/// The language that an editor may call our files, where it does not just say YAML.
const LANGUAGE: &str = "ll-loop";

/// A document that is open.
#[derive(Debug)]
pub(super) struct OpenDocument {
    /// How the client names it, to the letter.
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) document: TextDocument,
    /// Whether the client says that it is one of ours.
    is_said_ours: bool,
}

/// All documents that are open.
#[derive(Debug, Default)]
pub(super) struct OpenDocuments(BTreeMap<PathBuf, OpenDocument>);

impl OpenDocuments {
    /// Opens a document; one that is no file is left alone.
    pub(super) fn open(&mut self, item: TextDocumentItem) -> Option<PathBuf> {
        let path = file_of(&item.uri)?;
        let is_said_ours = item.language_id == LANGUAGE;
        let document = TextDocument::new(item.text);
        self.0.insert(
            path.clone(),
            OpenDocument { uri: item.uri, version: item.version, document, is_said_ours },
        );
        Some(path)
    }

    /// Changes a document that is open.
    pub(super) fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        unit: ColumnUnit,
    ) -> Option<PathBuf> {
        let path = file_of(uri)?;
        // Without the text that a client sends on opening, its changes have nothing to count from.
        let open = self.0.get_mut(&path)?;
        open.version = version;
        for change in changes {
            open.document.apply(change, unit);
        }
        Some(path)
    }

    /// Closes a document.
    pub(super) fn close(&mut self, uri: &Uri) -> Option<PathBuf> {
        let path = file_of(uri)?;
        self.0.remove(&path).map(|_| path)
    }

    /// Returns the document of a file, if it is open.
    pub(super) fn get(&self, path: &Path) -> Option<&OpenDocument> {
        self.0.get(path)
    }

    /// Returns the files of all documents that hold loops or tests of them.
    pub(super) fn ours(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter(|(path, open)| open.is_ours(path)).map(|(path, _)| path)
    }

    /// Returns what stands above the files on disk.
    pub(super) fn unsaved(&self) -> UnsavedTexts {
        UnsavedTexts::of(self.0.iter().map(|(path, open)| (path.clone(), Arc::from(open.document.text()))))
    }
}

impl OpenDocument {
    /// Tells whether it holds a loop, a library or tests: an editor sends whatever is YAML.
    pub(super) fn is_ours(&self, path: &Path) -> bool {
        self.is_said_ours
            || path.components().any(|part| part.as_os_str() == DIRECTORY)
            || is_test_file(path)
            || looks_like_a_loop(self.document.text())
    }
}

/// Tells whether a text elsewhere than in `.loops` is a loop, also while it cannot be parsed.
fn looks_like_a_loop(text: &str) -> bool {
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    let names_schema = || {
        let first = first_line(text);
        first.starts_with('#') && first.contains("$schema") && first.contains("loop.schema.json")
    };
    // Other YAML has `states` as well; beside one of these keys it is hardly anything but a loop.
    (has("states:") && (has("initial:") || has("from:"))) || has("paradigm:") || names_schema()
}

/// Returns the file that an address names. Documents without one, such as new ones without a name, do not belong to a loop yet.
pub(super) fn file_of(uri: &Uri) -> Option<PathBuf> {
    // `git:` and `untitled:` have paths as well, which are not those of files on disk.
    let is_file = uri.as_str().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let path = uri.to_file_path().filter(|path| is_file && path.is_absolute())?;
    Some(place::named(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_elsewhere_is_known_by_its_keys() {
        assert!(looks_like_a_loop("name: x\ninitial: a\nstates:\n  a: ["));
        assert!(looks_like_a_loop("# yaml-language-server: $schema=../schema/loop.schema.json\n"));
        assert!(!looks_like_a_loop("name: build\non: push\njobs: {}\n"));
        assert!(!looks_like_a_loop("states: [open, closed]\n"));
    }

    #[test]
    fn addresses_lead_to_files() {
        let file = |uri: &str| file_of(&uri.parse().unwrap());
        assert_eq!(file("file:///a/b%20c/x.yaml"), Some("/a/b c/x.yaml".into()));
        assert_eq!(file("file:///a/../b.yaml"), Some("/b.yaml".into()));
        assert_eq!(file("untitled:Untitled-1"), None);
        assert_eq!(file("https://example.org/a.yaml"), None);
    }
}
