//! What a client asks about a place in a document, and what it gets.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeLens, CodeLensParams, Command,
    CompletionParams, DocumentChangeOperation, DocumentChanges, DocumentFormattingParams,
    DocumentSymbolParams, FoldingRangeParams, GotoDefinitionParams, Hover, HoverContents, HoverParams,
    InlayHint, InlayHintLabel, InlayHintParams, Location, OneOf, OptionalVersionedTextDocumentIdentifier,
    Position, PrepareRenameResponse, Range as LspRange, ReferenceParams, RenameFile, RenameParams,
    ResourceOp, SemanticTokens, SemanticTokensParams, TextDocumentEdit, TextDocumentIdentifier,
    TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::brought_hints::BroughtHint;
use super::documents::{OpenDocument, file_of};
use super::findings::OfferedRepair;
use super::key_meanings::KeyMeanings;
use super::navigation::ReadDocument;
use super::outline::NameKind;
use super::project_names::{FileKeeper, PlacedName, ProjectNames};
use super::rename::{MovedFile, RenameError, RenamePlan};
use super::repair_edit::RepairEdit;
use super::text_document::ColumnUnit;
use super::workspace::EditorWorkspace;
use super::{
    brought_hints, completion, folding, format, last_verdicts, named_files, navigation, rename,
    semantic_tokens, state_bounds, test_coverage,
};
use crate::base::name::StateName;
use crate::base::text::one_line;
use crate::context::Session;
use crate::definition::builtin::is_builtin;
use crate::definition::load;
use crate::machine::compile;
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
            json(&place.and_then(|place| place.hover()))
        }
        "textDocument/definition" => {
            let params: GotoDefinitionParams = read(params)?;
            let place = DocumentPlace::of(&params.text_document_position_params, workspace);
            list(place.iter().flat_map(DocumentPlace::definitions))
        }
        "textDocument/references" => {
            let params: ReferenceParams = read(params)?;
            let with_definitions = params.context.include_declaration;
            let place = DocumentPlace::of(&params.text_document_position, workspace);
            list(place.iter().flat_map(|place| place.references(with_definitions)))
        }
        "textDocument/prepareRename" => {
            let params: TextDocumentPositionParams = read(params)?;
            let place = DocumentPlace::of(&params, workspace);
            json(&place.and_then(|place| {
                let (range, placeholder) = rename::renamed(&place.names()?, &place.path, place.byte)?;
                let range = place.open.document.range(&range, workspace.unit);
                Some(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder })
            }))
        }
        "textDocument/rename" => {
            let params: RenameParams = read(params)?;
            let place =
                DocumentPlace::of(&params.text_document_position, workspace).ok_or(RenameError::NoName)?;
            json(&place.rename(&params.new_name)?)
        }
        "textDocument/documentSymbol" => {
            let params: DocumentSymbolParams = read(params)?;
            let place = DocumentPlace::at_start(params.text_document, workspace);
            let read = place.and_then(|place| place.read());
            list(read.iter().flat_map(ReadDocument::symbols))
        }
        "textDocument/foldingRange" => {
            let params: FoldingRangeParams = read(params)?;
            let open = file_of(&params.text_document.uri).and_then(|path| workspace.documents.get(&path));
            list(open.into_iter().flat_map(|open| folding::ranges(&open.document)))
        }
        "textDocument/semanticTokens/full" => {
            let params: SemanticTokensParams = read(params)?;
            let place =
                DocumentPlace::at_start(params.text_document, workspace).filter(DocumentPlace::is_ours);
            let tokens =
                |place: &DocumentPlace<'_>| semantic_tokens::tokens(&place.open.document, workspace.unit);
            json(&SemanticTokens { result_id: None, data: place.iter().flat_map(tokens).collect() })
        }
        "textDocument/inlayHint" => {
            let params: InlayHintParams = read(params)?;
            let place =
                DocumentPlace::at_start(params.text_document, workspace).filter(DocumentPlace::is_ours);
            list(place.iter().flat_map(|place| place.hints(&params.range)))
        }
        "textDocument/codeLens" => {
            let params: CodeLensParams = read(params)?;
            let place =
                DocumentPlace::at_start(params.text_document, workspace).filter(DocumentPlace::is_ours);
            list(place.iter().flat_map(DocumentPlace::lenses))
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
                // Asked for only where the name of a loop may stand, because it reads directories.
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
    // Editors move the cursor and the marks of whatever an edit replaces, so that it is kept small.
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
    // Kinds form a hierarchy: asking for one, such as the empty one, asks for all below it.
    let is_wanted = params.context.only.as_ref().is_none_or(|only| {
        only.iter().any(|kind| CodeActionKind::QUICKFIX.as_str().starts_with(kind.as_str()))
    });
    let Some(path) = file_of(uri).filter(|_| is_wanted) else { return Vec::new() };
    let Some(open) = workspace.documents.get(&path) else { return Vec::new() };
    let touches = |range: &LspRange| range.start <= params.range.end && params.range.start <= range.end;
    let found = workspace.repairs(&path).into_iter().filter(|offered| touches(&offered.diagnostic.range));
    let action = |OfferedRepair { diagnostic, change, is_answer }: OfferedRepair| {
        let title = match change.text.as_str() {
            "" => "Remove this".to_owned(),
            text => format!("Write `{}`", one_line(text, 60)),
        };
        let range = open.document.range(&change.range, workspace.unit);
        let edit = TextEdit { range, new_text: change.text };
        let changes = [(uri.clone(), vec![edit])].into();
        CodeActionOrCommand::CodeAction(CodeAction {
            title,
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![diagnostic]),
            edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
            // Editors make a preferred action at a single key, which must not choose among several answers.
            is_preferred: Some(is_answer),
            ..CodeAction::default()
        })
    };
    found.map(action).collect()
}

fn json(answer: &impl Serialize) -> Result<Value, RequestRefusal> {
    Ok(serde_json::to_value(answer)?)
}

/// Answers with a list; a document that is not open adds nothing to it.
fn list(answers: impl Iterator<Item: Serialize>) -> Result<Value, RequestRefusal> {
    json(&answers.collect::<Vec<_>>())
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

    fn at_start(text_document: TextDocumentIdentifier, workspace: &'w EditorWorkspace) -> Option<Self> {
        Self::of(&TextDocumentPositionParams { text_document, position: Position::default() }, workspace)
    }

    /// Tells whether it is in a loop, a library or a test, and not in any other YAML.
    fn is_ours(&self) -> bool {
        self.open.is_ours(&self.path)
    }

    /// Reads the names of the whole project.
    fn names(&self) -> Option<ProjectNames> {
        let session = self.workspace.session(&self.workspace.project_of(&self.path))?;
        // The file under the cursor counts also while its text does not look like a loop.
        let open = self.workspace.documents.ours().cloned().chain([self.path.clone()]);
        Some(named_files::of_project(&session, open))
    }

    /// Reads the names of this file and of those around it.
    fn names_around(&self) -> Option<ProjectNames> {
        let session = self.workspace.session(&self.workspace.project_of(&self.path))?;
        Some(named_files::around(&self.path, &session))
    }

    /// Returns the address of a file as the client has it.
    fn uri(&self, path: &Path) -> Option<Uri> {
        // Clients compare addresses as texts: one that is written otherwise would be another document.
        let open = self.workspace.documents.get(path).map(|open| open.uri.clone());
        open.or_else(|| Uri::from_file_path(path))
    }

    /// Says what is under the cursor: also of a state that another file makes, and what the machine and the last runs say of it.
    fn hover(&self) -> Option<Hover> {
        let read = self.read()?;
        let Some(name) = read.state_at(self.byte) else { return read.hover(self.byte) };
        let mut hover = read.hover(self.byte).or_else(|| self.hover_elsewhere())?;
        let Some(further) = self.further_on(name).filter(|further| !further.is_empty()) else {
            return Some(hover);
        };
        if let HoverContents::Markup(markup) = &mut hover.contents {
            markup.value = format!("{}\n\n{}", markup.value, further.join("\n"));
        }
        Some(hover)
    }

    /// Says what a state does that a parent makes.
    fn hover_elsewhere(&self) -> Option<Hover> {
        let names = self.names()?;
        let name = names.at(&self.path, self.byte)?;
        let owner = names.owner(&self.path, &name.owner)?;
        let (file, _) = names.state(&owner, &name.name)?;
        let made =
            ReadDocument::of(&names.files[&file].document, self.workspace.unit, KeyMeanings::of_loops())?;
        // The place under the cursor: that of the state is in another document.
        let here = self.open.document.range(&name.range, self.workspace.unit);
        Some(Hover { range: Some(here), ..made.hover_of_state(&name.name)? })
    }

    /// Returns lines on how often a run comes to a state, and what the last ones said there; nothing for a loop that cannot be
    /// read as it is now.
    fn further_on(&self, name: &str) -> Option<Vec<String>> {
        let session = self.workspace.session(&self.workspace.project_of(&self.path))?;
        let located = load::unsaved(&self.path.display().to_string(), &self.path, &session.cwd).ok()?;
        let located = located.beneath(session.unsaved.clone());
        let state = StateName::parse(name).ok()?;
        let loaded = load::load(&located).ok()?;
        let machine = compile::compile(&loaded.definition).0;
        let bounds = machine.and_then(|machine| state_bounds::said(&machine, &state));
        let mut lines: Vec<String> = bounds.into_iter().map(|said| format!("- {said}")).collect();
        let last = |name| last_verdicts::of_state(name, &state, &session);
        for said in located.name.iter().flat_map(|name| last(name.as_str())) {
            let said_so =
                |(verdict, count): &(String, u64)| last_verdicts::counted(&navigation::code(verdict), *count);
            let verdicts = said.verdicts.iter().map(said_so);
            let run = navigation::code(&said.run);
            lines.push(format!("- {run} said {}", verdicts.collect::<Vec<_>>().join(", ")));
        }
        Some(lines)
    }

    fn located(&self, names: &ProjectNames, found: &PlacedName<'_>) -> Option<Location> {
        // What the program brings along is in no file that an editor could open.
        let file = names.files.get(found.path).filter(|file| file.keeper != FileKeeper::Program)?;
        let range = file.document.range(&found.range, self.workspace.unit);
        Some(Location { uri: self.uri(found.path)?, range })
    }

    fn references(&self, with_definitions: bool) -> Vec<Location> {
        let Some(names) = self.names() else { return Vec::new() };
        let name = names.at(&self.path, self.byte);
        let target = name.and_then(|name| names.target(&self.path, name));
        let uses = target.iter().flat_map(|target| names.uses(target));
        let wanted = uses.filter(|found| with_definitions || !found.is_definition);
        wanted.filter_map(|found| self.located(&names, &found)).collect()
    }

    /// Returns where a name is made, or the file that it names.
    fn definitions(&self) -> Vec<Location> {
        let Some(names) = self.names() else { return Vec::new() };
        let Some(target) = names.at(&self.path, self.byte).and_then(|name| names.target(&self.path, name))
        else {
            return Vec::new();
        };
        if matches!(target.kind, NameKind::Loop | NameKind::Library) {
            let files = target.files.iter().filter(|file| !is_builtin(&file.to_string_lossy()));
            let uris = files.filter_map(|file| self.uri(file));
            // A file as a whole has no place in it: editors go to its beginning.
            return uris.map(|uri| Location { uri, range: LspRange::default() }).collect();
        }
        let made = names.uses(&target).into_iter().filter(|found| found.is_definition);
        made.filter_map(|found| self.located(&names, &found)).collect()
    }

    /// Returns the edit that gives what is under the cursor another name, in every file.
    fn rename(&self, to: &str) -> Result<WorkspaceEdit, RenameError> {
        let names = self.names().ok_or(RenameError::NoName)?;
        let RenamePlan { edits, moved } = rename::rename(&names, &self.path, self.byte, to)?;
        // Refused as a whole: with the old name of the file, the new ones would lead nowhere.
        if !moved.is_empty() && !self.workspace.renames_files {
            return Err(RenameError::NoFiles);
        }
        let mut changes = HashMap::new();
        for (path, edits) in edits {
            let (Some(uri), Some(file)) = (self.uri(&path), names.files.get(&path)) else { continue };
            let text_edit = |edit: RepairEdit| TextEdit {
                range: file.document.range(&edit.range, self.workspace.unit),
                new_text: edit.text,
            };
            changes.insert(uri, edits.into_iter().map(text_edit).collect::<Vec<_>>());
        }
        if moved.is_empty() {
            // Every client knows this form; the other one is needed only where files get other names.
            return Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() });
        }
        let edited = changes.into_iter().map(|(uri, edits)| {
            // By the version a client knows that its text has changed meanwhile, and refuses the edit.
            let version = file_of(&uri).and_then(|path| Some(self.workspace.documents.get(&path)?.version));
            DocumentChangeOperation::Edit(TextDocumentEdit {
                text_document: OptionalVersionedTextDocumentIdentifier { uri, version },
                edits: edits.into_iter().map(OneOf::Left).collect(),
            })
        });
        let moves = moved.into_iter().filter_map(|MovedFile { from, to }| {
            let (old_uri, new_uri) = (self.uri(&from)?, Uri::from_file_path(&to)?);
            let rename = RenameFile { old_uri, new_uri, options: None, annotation_id: None };
            Some(DocumentChangeOperation::Op(ResourceOp::Rename(rename)))
        });
        // They are carried out in this order, and the edits name the files as they are called before the move.
        let operations = DocumentChanges::Operations(edited.chain(moves).collect());
        Ok(WorkspaceEdit { document_changes: Some(operations), ..WorkspaceEdit::default() })
    }

    /// Returns what imports and parents bring, as remarks behind their names.
    fn hints(&self, within: &LspRange) -> Vec<InlayHint> {
        // Editors ask for hints at every scroll, and reading the whole project each time would take too long.
        let Some(names) = self.names_around() else { return Vec::new() };
        let hint = |hint: BroughtHint| InlayHint {
            position: self.open.document.range(&(hint.at..hint.at), self.workspace.unit).start,
            label: InlayHintLabel::String(hint.text),
            kind: None,
            text_edits: None,
            tooltip: None,
            padding_left: Some(true),
            padding_right: None,
            data: None,
        };
        let all = brought_hints::hints(&names, &self.path).into_iter().map(hint);
        all.filter(|hint| within.start <= hint.position && hint.position <= within.end).collect()
    }

    /// Returns what the last run of this loop said in each state, if the loop has a name to be known by.
    fn said_last(&self, session: &Session<'_>) -> Option<BTreeMap<String, String>> {
        let located = load::unsaved(&self.path.display().to_string(), &self.path, &session.cwd).ok()?;
        Some(last_verdicts::of_last_run(located.name?.as_str(), session))
    }

    /// Returns the remarks above a loop and its states: which tests there are, and what can be done. What runs something is a command
    /// of the client, which asks whether the workspace is trusted.
    fn lenses(&self) -> Vec<CodeLens> {
        let Some(names) = self.names_around() else { return Vec::new() };
        let session = self.workspace.session(&self.workspace.project_of(&self.path));
        let tests: Vec<PathBuf> =
            brought_hints::tests_about(&names, &self.path).map(|(path, _)| path.clone()).collect();
        let coverage = session.as_ref().and_then(|session| test_coverage::of_tests(&tests, session));
        let last = session.as_ref().and_then(|session| self.said_last(session));
        let mut all = Vec::new();
        for found in brought_hints::tests_of(&names, &self.path) {
            let range = self.open.document.range(&(found.at..found.at), self.workspace.unit);
            let mut push = |title: String, command: &str| {
                let command = Command { title, command: command.to_owned(), arguments: None };
                all.push(CodeLens { range, command: Some(command), data: None });
            };
            let cases = match found.cases {
                0 => "no test".to_owned(),
                1 => "1 test".to_owned(),
                cases => format!("{cases} tests"),
            };
            let of = (!found.is_loop).then_some(found.name.as_str());
            let ways = coverage.as_ref().map(|coverage| coverage.counts(of)).filter(|(_, all)| *all > 0);
            let tested = match ways {
                Some((taken, all)) => format!("{cases}, {taken} of {all} ways"),
                None => cases,
            };
            // A lens without a command is a text that does nothing.
            push(tested, "");
            if let Some(said) = of.and_then(|state| last.as_ref()?.get(state)) {
                push(format!("last run: {}", one_line(said, 60)), "");
            }
            if found.is_loop && self.workspace.runs_loops {
                push("run".to_owned(), "ll-loop.run");
                push("test".to_owned(), "ll-loop.test");
            }
        }
        all
    }
}
