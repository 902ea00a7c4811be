//! What a client asks about a place in a document, and what it gets.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CompletionParams, Diagnostic,
    DocumentFormattingParams, DocumentSymbolParams, GotoDefinitionParams, HoverParams, Location, Position,
    PrepareRenameResponse, Range as LspRange, ReferenceParams, RenameParams, TextDocumentPositionParams,
    TextEdit, Uri, WorkspaceEdit,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::documents::{OpenDocument, file_of};
use super::key_meanings::KeyMeanings;
use super::navigation::{ReadDocument, RenameError};
use super::outline::NameKind;
use super::text_document::ColumnUnit;
use super::workspace::EditorWorkspace;
use super::{completion, format};
use crate::base::text::one_line;
use crate::definition::builtin::is_builtin;
use crate::definition::load;
use crate::testing;
use crate::testing::suite::is_test_file;

/// The keys of test files.
static OF_TESTS: LazyLock<Value> = LazyLock::new(testing::json_schema);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestRefusal {
    #[error("there is no method `{0}`")]
    UnknownMethod(String),
    #[error("cannot understand the parameters: {0}")]
    BadParameters(#[from] serde_json::Error),
    #[error(transparent)]
    Rename(#[from] RenameError),
}

/// Reads the parameters of a request.
pub(super) fn read<P: DeserializeOwned>(params: Value) -> Result<P, RequestRefusal> {
    Ok(serde_json::from_value(params)?)
}

/// Answers a question about a document. One that is not open has no answers.
pub(super) fn answer(
    method: &str,
    params: Value,
    workspace: &EditorWorkspace,
) -> Result<Value, RequestRefusal> {
    match method {
        "textDocument/hover" => {
            let params: HoverParams = read(params)?;
            let place = DocumentPlace::of(&params.text_document_position_params, workspace);
            json(&place.and_then(|place| place.read()?.hover(place.byte)))
        }
        "textDocument/definition" => {
            let params: GotoDefinitionParams = read(params)?;
            let place = DocumentPlace::of(&params.text_document_position_params, workspace);
            json(&place.map(|place| place.definitions(workspace)).unwrap_or_default())
        }
        "textDocument/references" => {
            let params: ReferenceParams = read(params)?;
            let with_definitions = params.context.include_declaration;
            let place = DocumentPlace::of(&params.text_document_position, workspace);
            json(&place.map(|place| place.references(with_definitions)).unwrap_or_default())
        }
        "textDocument/prepareRename" => {
            let params: TextDocumentPositionParams = read(params)?;
            let place = DocumentPlace::of(&params, workspace);
            json(&place.and_then(|place| {
                let read = place.read()?;
                let (range, name) = read.renamed(place.byte)?;
                Some(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder: name.to_owned() })
            }))
        }
        "textDocument/rename" => {
            let params: RenameParams = read(params)?;
            let place =
                DocumentPlace::of(&params.text_document_position, workspace).ok_or(RenameError::NoName)?;
            let read = place.read().ok_or(RenameError::NoName)?;
            let edits = read.rename(place.byte, &params.new_name)?;
            let changes = [(place.open.uri.clone(), edits)].into();
            json(&WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
        }
        "textDocument/documentSymbol" => {
            let params: DocumentSymbolParams = read(params)?;
            let start = TextDocumentPositionParams {
                text_document: params.text_document,
                position: Position::default(),
            };
            let place = DocumentPlace::of(&start, workspace);
            json(&place.and_then(|place| Some(place.read()?.symbols())).unwrap_or_default())
        }
        "textDocument/formatting" => {
            let params: DocumentFormattingParams = read(params)?;
            let open = file_of(&params.text_document.uri).and_then(|path| workspace.documents.get(&path));
            json(&open.and_then(|open| formatting(open, workspace.unit)))
        }
        "textDocument/codeAction" => {
            let params: CodeActionParams = read(params)?;
            json(&repairs(&params, workspace))
        }
        "textDocument/completion" => {
            let params: CompletionParams = read(params)?;
            let place = DocumentPlace::of(&params.text_document_position, workspace);
            json(&place.map(|place| {
                let loops = || load::names(&workspace.project_of(&place.path));
                completion::at(&place.open.document, place.byte, workspace.unit, place.meanings(), &loops)
            }))
        }
        _ => Err(RequestRefusal::UnknownMethod(method.to_owned())),
    }
}

/// Returns the edit that gives a document its form: only what is between the first and the last difference.
fn formatting(open: &OpenDocument, unit: ColumnUnit) -> Option<Vec<TextEdit>> {
    let text = open.document.text();
    let made = format::formatted(text).ok()?;
    let first = text.char_indices().zip(made.chars()).find(|((_, one), other)| one != other);
    let start = first.map_or(text.len().min(made.len()), |((at, _), _)| at);
    let (old, new) = (&text[start..], &made[start..]);
    let same = old.chars().rev().zip(new.chars().rev()).take_while(|(one, other)| one == other);
    let behind: usize = same.map(|(c, _)| c.len_utf8()).sum();
    let (old, new) = (start..text.len() - behind, &new[..new.len() - behind]);
    let edit = TextEdit { range: open.document.range(&old, unit), new_text: new.to_owned() };
    Some(if old.is_empty() && new.is_empty() { Vec::new() } else { vec![edit] })
}

/// Returns the repairs of what is found in a part of a document.
fn repairs(params: &CodeActionParams, workspace: &EditorWorkspace) -> Vec<CodeActionOrCommand> {
    let uri = &params.text_document.uri;
    let is_wanted = params.context.only.as_ref().is_none_or(|only| {
        only.iter().any(|kind| CodeActionKind::QUICKFIX.as_str().starts_with(kind.as_str()))
    });
    let Some(path) = file_of(uri).filter(|_| is_wanted) else { return Vec::new() };
    let touches = |range: &LspRange| range.start <= params.range.end && params.range.start <= range.end;
    let found = workspace.repairs(&path).into_iter().filter(|(diagnostic, _)| touches(&diagnostic.range));
    let action = |(diagnostic, edit): (Diagnostic, TextEdit)| {
        let title = match edit.new_text.as_str() {
            "" => "Remove this".to_owned(),
            text => format!("Write `{}`", one_line(text, 60)),
        };
        let changes = [(uri.clone(), vec![edit])].into();
        CodeActionOrCommand::CodeAction(CodeAction {
            title,
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![diagnostic]),
            edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
            is_preferred: Some(true),
            ..CodeAction::default()
        })
    };
    found.map(action).collect()
}

fn json(answer: &impl Serialize) -> Result<Value, RequestRefusal> {
    Ok(serde_json::to_value(answer)?)
}

/// A place in a document that is open.
struct DocumentPlace<'w> {
    path: PathBuf,
    open: &'w OpenDocument,
    byte: usize,
    workspace: &'w EditorWorkspace,
}

impl<'w> DocumentPlace<'w> {
    fn of(params: &TextDocumentPositionParams, workspace: &'w EditorWorkspace) -> Option<Self> {
        let path = file_of(&params.text_document.uri)?;
        let open = workspace.documents.get(&path)?;
        let byte = open.document.byte(params.position, workspace.unit);
        Some(Self { path, open, byte, workspace })
    }

    fn read(&self) -> Option<ReadDocument<'w>> {
        ReadDocument::of(&self.open.document, self.workspace.unit, self.meanings())
    }

    /// Returns what keys mean in a file like this one.
    fn meanings(&self) -> KeyMeanings<'static> {
        if is_test_file(&self.path) { KeyMeanings::of(&OF_TESTS) } else { KeyMeanings::of_loops() }
    }

    fn located(&self, range: LspRange) -> Location {
        Location { uri: self.open.uri.clone(), range }
    }

    fn references(&self, with_definitions: bool) -> Vec<Location> {
        let found = self.read().map(|read| read.references(self.byte, with_definitions));
        found.unwrap_or_default().into_iter().map(|range| self.located(range)).collect()
    }

    /// Returns where a name is made: in this document, or in the file that it names.
    fn definitions(&self, workspace: &EditorWorkspace) -> Vec<Location> {
        let Some(read) = self.read() else { return Vec::new() };
        let file = read.name_at(self.byte).and_then(|name| match name.kind {
            NameKind::Loop => load::find_beside(&name.name, &workspace.project_of(&self.path), &self.path)
                .ok()
                .map(|located| located.path),
            NameKind::Library => self.path.parent().map(|directory| library(directory, &name.name)),
            NameKind::State | NameKind::Capture | NameKind::Variable | NameKind::Fragment => None,
        });
        let elsewhere = file.filter(|file| !is_builtin(&file.to_string_lossy()));
        match elsewhere.and_then(Uri::from_file_path) {
            Some(uri) => vec![Location { uri, range: LspRange::default() }],
            None => read.definitions(self.byte).into_iter().map(|range| self.located(range)).collect(),
        }
    }
}

/// Returns the file of a library that is imported, with the extension that it may be named without.
fn library(directory: &Path, name: &str) -> PathBuf {
    let file = directory.join(name);
    if load::is_loop_file(&file) { file } else { directory.join(format!("{name}.yaml")) }
}
