//! What a client can, and what the server offers it.

use std::path::PathBuf;

use ls_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, CompletionOptions,
    DiagnosticOptions, DiagnosticServerCapabilities, DidChangeWatchedFilesRegistrationOptions,
    FileSystemWatcher, FoldingRangeProviderCapability, HoverProviderCapability, InitializeParams,
    InitializeResult, OneOf, Registration, RegistrationParams, RenameOptions, ResourceOperationKind,
    SaveOptions, SemanticTokensFullOptions, SemanticTokensOptions, SemanticTokensServerCapabilities,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, WorkDoneProgressOptions,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use serde_json::Value;

use super::documents::file_of;
use super::semantic_tokens;
use super::text_document::ColumnUnit;

/// What the client said that it can.
#[expect(clippy::struct_excessive_bools, reason = "each is an ability of its own in the protocol")]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientAbilities {
    /// What its columns count.
    pub(super) unit: ColumnUnit,
    /// Whether it asks for diagnostics, and is told none unasked.
    pub(super) pulls: bool,
    /// Whether it asks again when it is told to.
    pub(super) refreshes: bool,
    /// Whether it says when files change on disk.
    pub(super) watches: bool,
    /// Whether another server says what the schema says.
    pub(super) mutes_schema: bool,
    /// Whether it renames files when it is told to.
    pub(super) renames_files: bool,
    /// Whether it has the commands `ll-loop.run` and `ll-loop.test`.
    pub(super) runs_loops: bool,
}

impl ClientAbilities {
    pub(super) fn of(params: &InitializeParams) -> Self {
        let client = &params.capabilities;
        let general = client.general.as_ref().and_then(|general| general.position_encodings.as_deref());
        let pulls = client.text_document.as_ref().is_some_and(|document| document.diagnostic.is_some());
        let workspace = client.workspace.as_ref();
        let refreshes = workspace.and_then(|workspace| workspace.diagnostics.as_ref()?.refresh_support);
        let watches =
            workspace.and_then(|workspace| workspace.did_change_watched_files.as_ref()?.dynamic_registration);
        let edits = workspace.and_then(|workspace| workspace.workspace_edit.as_ref());
        let operations = edits.and_then(|edits| edits.resource_operations.as_deref());
        let given = params.initialization_options.as_ref();
        Self {
            unit: ColumnUnit::chosen(general),
            pulls,
            refreshes: pulls && refreshes == Some(true),
            watches: watches == Some(true),
            mutes_schema: given.is_some_and(|given| given["mute"] == "schema"),
            // The protocol has operations on files only within `documentChanges`.
            renames_files: edits.is_some_and(|edits| edits.document_changes == Some(true))
                && operations.is_some_and(|all| all.contains(&ResourceOperationKind::Rename)),
            runs_loops: given.is_some_and(|given| given["runs"] == true),
        }
    }
}

/// Returns the directories that a client has open.
pub(super) fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let folders = params.workspace_folders.iter().flatten().filter_map(|folder| file_of(&folder.uri));
    let folders: Vec<PathBuf> = folders.collect();
    #[expect(deprecated, reason = "older clients say it in no other way")]
    let root = params.root_uri.as_ref().and_then(file_of);
    if folders.is_empty() { root.into_iter().collect() } else { folders }
}

/// Returns what the server offers.
pub(super) fn answer(abilities: ClientAbilities) -> InitializeResult {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        // The text is known by its changes, and need not come once more.
        save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
        ..TextDocumentSyncOptions::default()
    };
    let diagnostics = DiagnosticServerCapabilities::Options(DiagnosticOptions {
        identifier: Some(super::findings::SOURCE.to_owned()),
        inter_file_dependencies: true,
        workspace_diagnostics: true,
        ..DiagnosticOptions::default()
    });
    let folders = WorkspaceFoldersServerCapabilities {
        supported: Some(true),
        change_notifications: Some(OneOf::Left(true)),
    };
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(abilities.unit.kind()),
            text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            rename_provider: Some(OneOf::Right(RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: WorkDoneProgressOptions::default(),
            })),
            code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
                ..CodeActionOptions::default()
            })),
            document_formatting_provider: Some(OneOf::Left(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            completion_provider: Some(CompletionOptions {
                trigger_characters: Some([":", " ", ".", "{"].map(str::to_owned).to_vec()),
                ..CompletionOptions::default()
            }),
            folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
            inlay_hint_provider: Some(OneOf::Left(true)),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
            semantic_tokens_provider: Some(SemanticTokensServerCapabilities::SemanticTokensOptions(
                SemanticTokensOptions {
                    legend: semantic_tokens::legend(),
                    full: Some(SemanticTokensFullOptions::Bool(true)),
                    ..SemanticTokensOptions::default()
                },
            )),
            // To a client that does not ask, what is found is published.
            diagnostic_provider: abilities.pulls.then_some(diagnostics),
            workspace: Some(WorkspaceServerCapabilities {
                workspace_folders: Some(folders),
                ..WorkspaceServerCapabilities::default()
            }),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "ll-loop".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
        ..InitializeResult::default()
    }
}

/// Asks the client to say when loops change on disk, as they do when a branch is checked out.
pub(super) fn watched_files() -> RegistrationParams {
    let watcher = FileSystemWatcher { glob_pattern: "**/.loops/**".to_owned().into(), kind: None };
    let options = DidChangeWatchedFilesRegistrationOptions { watchers: vec![watcher] };
    RegistrationParams {
        registrations: vec![Registration {
            id: "ll-loop-files".to_owned(),
            method: "workspace/didChangeWatchedFiles".to_owned(),
            register_options: serde_json::to_value(options).ok().filter(|options| *options != Value::Null),
        }],
    }
}
