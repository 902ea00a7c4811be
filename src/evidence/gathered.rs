//! Finds what can prove a verdict: bundles, statements and attestations, in files, directories and on GitHub.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::Value;

use super::claimed_statement::LooseStatement;
use crate::base::text::first_line;
use crate::bundle::EXTENSION;
use crate::context::error::Error;
use crate::files::read;
use crate::statement::{DETAILS_FILE, VERDICT_FILE};

/// The longest statement or attestation that is read, in bytes.
const MAX_STATEMENT: u64 = 16 * read::MIB;

/// The most files of a directory that are looked at.
const MOST_FILES: usize = 10_000;

/// How deep directories are looked into.
const DEPTH: usize = 4;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct GatheredEvidence {
    /// Bundles.
    pub(super) bundles: Vec<PathBuf>,
    /// Unsigned statements.
    pub(super) statements: Vec<FoundStatement>,
    /// Files with attestations.
    pub(super) attestations: Vec<PathBuf>,
}

/// A statement in a file.
#[derive(Debug)]
pub(super) struct FoundStatement {
    pub(super) path: PathBuf,
    /// What is written there.
    pub(super) text: String,
    pub(super) statement: LooseStatement,
}

/// What a file is.
enum EvidenceFile {
    Statement(String, LooseStatement),
    Attestation,
    Other,
}

impl GatheredEvidence {
    /// Takes a file that was named: a bundle with the statements beside it, or a statement with the bundles beside it.
    pub(super) fn file(&mut self, path: &Path) -> Result<(), Error> {
        let beside = path.parent().unwrap_or(Path::new(""));
        if !is_json(path) {
            self.bundles.push(path.to_owned());
            for name in [VERDICT_FILE, DETAILS_FILE] {
                let statement = beside.join(name);
                if statement.is_file() {
                    self.written(&statement)?;
                }
            }
            return Ok(());
        }
        self.written(path)?;
        // Other statements beside it were not named, and would count as strays that are about no bundle.
        self.directory(beside, 1, false, &|path| !is_json(path))
    }

    /// Takes everything below a directory.
    pub(super) fn below(&mut self, directory: &Path) -> Result<(), Error> {
        self.directory(directory, DEPTH, true, &|_| true)
    }

    fn directory(
        &mut self,
        directory: &Path,
        depth: usize,
        is_deep: bool,
        wanted: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let unread = |error: &std::io::Error| Error::refused(format!("{}: {error}", directory.display()));
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(directory).map_err(|error| unread(&error))? {
            if entries.len() == MOST_FILES {
                // Which ones come first is the file system's choice, and what proves something may be among the others.
                let message = format!("{} has more than {MOST_FILES} files", directory.display());
                return Err(Error::refused(message)
                    .with_hint("put what is to be checked into a directory of its own, or name the bundle"));
            }
            entries.push(entry.map_err(|error| unread(&error))?.path());
        }
        // The order in which a file system lists files differs from machine to machine.
        entries.sort();
        for path in entries {
            // A link may lead out of the directory, or in a circle.
            if path.is_dir() && !path.is_symlink() {
                if depth > 1 {
                    self.directory(&path, depth - 1, is_deep, wanted)?;
                } else if is_deep
                    && let Some(evidence) = evidence_below(&path).map_err(|error| unread(&error))?
                {
                    let message = format!(
                        "{} lies deeper than {DEPTH} directories, where nothing is looked at",
                        evidence.display()
                    );
                    return Err(Error::refused(message).with_hint("name its own directory, or the bundle"));
                }
            } else if path.is_file() && wanted(&path) {
                if path.extension().is_some_and(|extension| extension == EXTENSION) {
                    self.bundles.push(path);
                } else if is_json(&path) {
                    self.any_json(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a file that has to be a statement or an attestation.
    fn written(&mut self, path: &Path) -> Result<(), Error> {
        match kind_of(path)? {
            EvidenceFile::Statement(text, statement) => {
                self.statements.push(FoundStatement { path: path.to_owned(), text, statement });
            }
            EvidenceFile::Attestation => self.attestations.push(path.to_owned()),
            EvidenceFile::Other => {
                let message = format!("{} is neither a statement nor an attestation", path.display());
                return Err(Error::refused(message)
                    .with_hint("name a bundle, a statement `*.intoto.json`, or an attestation that `gh` or `cosign` wrote"));
            }
        }
        Ok(())
    }

    /// Takes a file of a directory, if it is a statement or an attestation.
    fn any_json(&mut self, path: &Path) -> Result<(), Error> {
        if is_statement(path) {
            return self.written(path);
        }
        match kind_of(path) {
            Ok(EvidenceFile::Attestation) => self.attestations.push(path.to_owned()),
            // Reports and other files of a directory are not evidence.
            Ok(EvidenceFile::Statement(..) | EvidenceFile::Other) | Err(_) => {}
        }
        Ok(())
    }
}

/// Returns a bundle or a statement that lies somewhere below a directory, known by its name alone.
fn evidence_below(directory: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_file()
                && (path.extension().is_some_and(|extension| extension == EXTENSION) || is_statement(&path))
            {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// Tells whether a file is a statement of ours, by its name.
fn is_statement(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".intoto.json")
}

/// Tells whether a file may hold statements or attestations, by its name.
fn is_json(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json" || extension == "jsonl" || extension == "sigstore")
}

fn kind_of(path: &Path) -> Result<EvidenceFile, Error> {
    let unread =
        |error: &dyn std::error::Error| Error::refused(format!("cannot read {}: {error}", path.display()));
    let text = read::text(path, MAX_STATEMENT).map_err(|error| unread(&error))?;
    // `gh attestation download` writes one attestation a line.
    let first = if path.extension().is_some_and(|extension| extension == "jsonl") {
        first_line(&text)
    } else {
        &text
    };
    let value: Value = serde_json::from_str(first).map_err(|error| unread(&error))?;
    if value.get("dsseEnvelope").is_some() {
        return Ok(EvidenceFile::Attestation);
    }
    if value.get("predicateType").is_none() {
        return Ok(EvidenceFile::Other);
    }
    let statement = serde_json::from_value(value).map_err(|error| unread(&error))?;
    Ok(EvidenceFile::Statement(text, statement))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_that_lies_too_deep_is_no_evidence_that_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let (shallow, deep) = (place.path().join("a/b/c"), place.path().join("a/b/c/d/e"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(shallow.join("one.llz"), "").unwrap();
        // Other files are none of its business, however deep they lie.
        fs::write(deep.join("package.json"), "{}").unwrap();
        let mut found = GatheredEvidence::default();
        found.below(place.path()).unwrap();
        assert_eq!(found.bundles, [shallow.join("one.llz")]);
        for name in ["two.llz", "verdict.intoto.json"] {
            fs::write(deep.join(name), "").unwrap();
            let error = GatheredEvidence::default().below(place.path()).unwrap_err();
            let expected = format!("{} lies deeper than 4 directories", deep.join(name).display());
            assert!(error.message().starts_with(&expected), "{}", error.message());
            fs::remove_file(deep.join(name)).unwrap();
        }
        // Beside a file that was named, nothing below is meant.
        fs::write(deep.join("two.llz"), "").unwrap();
        fs::write(place.path().join("x.llz"), "").unwrap();
        GatheredEvidence::default().file(&place.path().join("x.llz")).unwrap();
    }

    #[test]
    fn a_directory_with_more_files_than_are_looked_at_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let put = |name: &str| drop(std::fs::File::create(place.path().join(name)).unwrap());
        for number in 1..MOST_FILES {
            put(&format!("{number}.txt"));
        }
        put("run.llz");
        let mut found = GatheredEvidence::default();
        found.below(place.path()).unwrap();
        assert_eq!(found.bundles, [place.path().join("run.llz")]);
        put("one-more.txt");
        let error = GatheredEvidence::default().below(place.path()).unwrap_err();
        assert!(error.message().contains("more than 10000 files"), "{}", error.message());
    }
}
