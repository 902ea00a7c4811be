//! One report of an earlier run, wherever that was kept: as a file, in a report directory, a bundle or an artifact.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use fs_err as fs;

use super::names;
use super::open::{Bundle, LIMITS, OpenError, archive, locate, only, whole};
use crate::files::transient;
use crate::files::unzip::{self, Archive};

/// Reads the report of this name, of at most so many bytes; if there is one.
pub fn read(path: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, OpenError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if metadata.is_dir() {
        let file = path.join(name);
        return if file.is_file() {
            whole(opened(&file)?, name, most).map(Some)
        } else {
            of_bundle(path, name, most)
        };
    }
    let mut start = Vec::new();
    opened(path)?.take(unzip::MAGIC_LENGTH).read_to_end(&mut start)?;
    if !unzip::is_zip(&start) {
        return whole(opened(path)?, name, most).map(Some);
    }
    let mut archive = archive(path, LIMITS)?;
    match of_artifact(&mut archive, name, most)? {
        Some(bytes) => Ok(Some(bytes)),
        // An artifact may hold a bundle next to other files.
        None => of_bundle(path, name, most),
    }
}

fn opened(path: &Path) -> io::Result<File> {
    Ok(crate::files::read::open(path)?)
}

/// Reads it from the bundle that is meant, where there is one.
fn of_bundle(path: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, OpenError> {
    let scratch = transient::directory("")?;
    let found = match locate(path, scratch.path(), LIMITS) {
        Ok(found) => found,
        Err(OpenError::NotABundle(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Bundle::open(&found, LIMITS)?.read(&format!("{}{name}", names::REPORTS), most)
}

/// Reads it from an archive of reports that is not a bundle.
fn of_artifact<R: Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>, OpenError> {
    let names = archive.entries().iter().map(|entry| &entry.name);
    if names.clone().any(|entry| entry == names::MANIFEST) {
        return Ok(None);
    }
    let found = only(names.filter(|entry| entry.rsplit('/').next() == Some(name)))?;
    found.map(|found| whole(archive.read(&found)?, name, most)).transpose()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zip(path: &Path, files: &[(&str, &str)]) {
        let mut zip = ZipWriter::new(fs::File::create(path).unwrap());
        for (name, text) in files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
    }

    #[track_caller]
    fn check(path: &Path, expected: Option<&str>) {
        let found = read(path, "a.json", 10).unwrap();
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{}", path.display());
    }

    #[track_caller]
    fn refused(path: &Path, expected: &str) {
        let error = read(path, "a.json", 10).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_report_is_found_wherever_it_was_kept() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        check(&at("nowhere"), None);
        check(place.path(), None);
        fs::write(at("other.json"), "other").unwrap();
        check(&at("other.json"), Some("other"));
        fs::write(at("a.json"), "mine").unwrap();
        check(place.path(), Some("mine"));
        zip(&at("artifact.zip"), &[("b.json", "no"), ("deep/a.json", "theirs")]);
        check(&at("artifact.zip"), Some("theirs"));
        zip(&at("artifact.zip"), &[("b.json", "no")]);
        check(&at("artifact.zip"), None);
        zip(&at("artifact.zip"), &[("a.json", "no"), ("b/a.json", "no")]);
        refused(&at("artifact.zip"), "there is more than one");
    }

    #[test]
    fn what_is_too_long_or_no_archive_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("a.json"), "more than ten bytes").unwrap();
        refused(&at("a.json"), "`a.json` has more than 10 bytes");
        zip(&at("artifact.zip"), &[("a.json", "more than ten bytes")]);
        refused(&at("artifact.zip"), "`a.json` has more than 10 bytes");
        fs::write(at("artifact.zip"), "PK\u{3}\u{4} and no more").unwrap();
        refused(&at("artifact.zip"), "it is not a bundle");
    }
}
