//! Opens a bundle from anywhere and believes nothing of it: every name, length and digest is checked before a single
//! file is written, and only what a run goes on with is written at all.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sha2::{Digest as _, Sha256};

use super::hashing::{HashedReader, Hashing};
use super::manifest::{Manifest, ManifestEntry, SCHEMA};
use super::tree::MOST_BYTES as MOST_OBJECTS;
use super::{EXTENSION, names};
use crate::base::format::{self, Unfit};
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::files::read;
use crate::files::unzip::{self, Archive, UnzipError, UnzipLimits};

/// What a bundle may take at most.
pub const LIMITS: UnzipLimits = UnzipLimits { entries: 20_000, bytes: 4 << 30 };

/// The manifest is read into memory.
pub(super) const MOST_MANIFEST: u64 = 16 << 20;

/// So is each line of the journal, and, where a part of it tells too little, the whole of it.
const MOST_LINE: u64 = 64 << 20;
const MOST_JOURNAL: u64 = 1 << 30;

/// So is a stream, of which 8 MiB are kept at most.
const MOST_STREAM: u64 = 16 << 20;

/// Returns how long a file may be, for what is done with it.
fn most(name: &str) -> u64 {
    match name {
        names::JOURNAL => MOST_JOURNAL,
        // The header of the objects takes some lines more.
        names::TREE | names::SNAPSHOTS => MOST_OBJECTS + (1 << 16),
        _ if name.starts_with(names::STREAMS) => MOST_STREAM,
        _ => u64::MAX,
    }
}

/// Why a bundle is refused.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not an archive.
    #[error("it is not a bundle: {0}")]
    NotABundle(String),
    /// There is more than one.
    #[error("there is more than one bundle in it: {}", .0.join(", "))]
    Several(Vec<String>),
    /// A later version wrote it.
    #[error("a later version of ll-loop wrote it (format {found}; this one knows {SCHEMA})")]
    Newer {
        /// The version of its format.
        found: u64,
    },
    /// It would take too much.
    #[error("it is too large: {0}")]
    TooLarge(String),
    /// A file is not what the manifest says.
    #[error("it is damaged or was changed: {0}")]
    Damaged(String),
    /// A name that no bundle of ours has.
    #[error("it contains a file that does not belong in a bundle: `{0}`")]
    Foreign(String),
    /// An entry that no archive may have.
    #[error(transparent)]
    Refused(UnzipError),
}

impl From<UnzipError> for OpenError {
    fn from(error: UnzipError) -> Self {
        match error {
            UnzipError::NotZip => Self::NotABundle(error.to_string()),
            UnzipError::Broken(why) => Self::Damaged(why),
            UnzipError::TooMuch(_) => Self::TooLarge(error.to_string()),
            UnzipError::Entry { .. } | UnzipError::Duplicate => Self::Refused(error),
            UnzipError::Io(error) => Self::Io(error),
        }
    }
}

/// Finds the bundle that is meant: a file, the one in a directory, or the one in an artifact. What has to be unpacked
/// for that goes to `scratch`.
pub fn locate(path: &Path, scratch: &Path, limits: UnzipLimits) -> Result<PathBuf, OpenError> {
    if fs::metadata(path)?.is_dir() {
        let mut found = Vec::new();
        // `gh run download` and the like put each artifact into a directory of its own; deeper lies
        // somebody else's tree.
        below(path, 3, &mut found)?;
        return match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(OpenError::NotABundle(format!("no file ends in .{EXTENSION}"))),
            several => {
                Err(OpenError::Several(several.iter().map(|path| path.display().to_string()).collect()))
            }
        };
    }
    let mut archive = archive(path, limits)?;
    let mut names = archive.entries().iter().map(|entry| &entry.name);
    if names.clone().any(|name| name == names::MANIFEST) {
        return Ok(path.to_owned());
    }
    let Some(name) = only(names.by_ref().filter(|name| is_bundle(Path::new(name))))? else {
        return Err(OpenError::NotABundle(format!("it has no {}", names::MANIFEST)));
    };
    let target = scratch.join(format!("artifact.{EXTENSION}"));
    let mut file = fs::File::create_new(&target)?;
    io::copy(&mut archive.read(&name)?, &mut file).map_err(UnzipError::from)?;
    Ok(target)
}

/// Returns the only name, or nothing where there are none.
pub(super) fn only<'a>(names: impl Iterator<Item = &'a String>) -> Result<Option<String>, OpenError> {
    match names.collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        several => Err(OpenError::Several(several.iter().map(|name| one_line(name, 200)).collect())),
    }
}

/// Returns the digest of a bundle as a whole, by which others vouch for it.
pub fn digest(path: &Path) -> io::Result<Sum> {
    let mut digest = Sha256::new();
    io::copy(&mut read::open(path)?, &mut Hashing(&mut digest))?;
    Ok(Sum::end(digest))
}

fn below(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            below(&entry.path(), depth - 1, found)?;
        } else if kind.is_file() && is_bundle(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

pub(super) fn is_bundle(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

pub(super) fn archive(path: &Path, limits: UnzipLimits) -> Result<Archive<io::BufReader<File>>, OpenError> {
    let file = read::open(path).map_err(io::Error::from)?;
    let opened = Archive::open(io::BufReader::new(file), limits);
    opened.map_err(|error| {
        // What cannot even be listed need not have been a bundle.
        if let UnzipError::Broken(why) = error { OpenError::NotABundle(why) } else { error.into() }
    })
}

/// Reads everything, if it is not more than it may be.
pub(super) fn whole(reader: impl Read, name: &str, most: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(UnzipError::from)?;
    if bytes.len() as u64 > most {
        return Err(OpenError::TooLarge(format!("`{}` has more than {most} bytes", one_line(name, 200))));
    }
    Ok(bytes)
}

/// A bundle whose manifest was read, and whose list of files agrees with it.
#[derive(Debug)]
pub struct Bundle<R> {
    archive: Archive<R>,
    /// What it says about itself.
    pub manifest: Manifest,
}

impl Bundle<io::BufReader<File>> {
    /// Opens a bundle.
    pub fn open(path: &Path, limits: UnzipLimits) -> Result<Self, OpenError> {
        Self::new(archive(path, limits)?)
    }
}

impl<R: Read + Seek> Bundle<R> {
    /// Reads the manifest and compares it with the list of files.
    pub(super) fn new(mut archive: Archive<R>) -> Result<Self, OpenError> {
        let manifest = manifest(&mut archive)?;
        let mut listed: HashMap<&str, &ManifestEntry> = HashMap::new();
        for entry in &manifest.files {
            let name = entry.name.as_str();
            if listed.insert(name, entry).is_some() {
                return Err(OpenError::Damaged(format!("`{}` is listed twice", one_line(name, 200))));
            }
            if entry.size > most(name) {
                return Err(OpenError::TooLarge(format!(
                    "`{}` has {} bytes",
                    one_line(name, 200),
                    entry.size
                )));
            }
        }
        for file in archive.entries().iter().filter(|file| file.name != names::MANIFEST) {
            let shown = one_line(&file.name, 200);
            // A directory is listed by no manifest of ours, and so is foreign.
            match listed.remove(file.name.as_str()).filter(|_| !file.is_directory) {
                Some(entry) if entry.size == file.size => {}
                Some(entry) => {
                    let (is, was) = (file.size, entry.size);
                    return Err(OpenError::Damaged(format!("`{shown}` has {is} bytes, and had {was}")));
                }
                None => return Err(OpenError::Foreign(shown)),
            }
        }
        if let Some(name) = listed.keys().next() {
            // What is listed and not there would be noticed only by the run that needs it.
            return Err(OpenError::Damaged(format!("`{}` is missing", one_line(name, 200))));
        }
        if !manifest.files.iter().any(|entry| entry.name.as_str() == names::JOURNAL) {
            return Err(OpenError::Damaged(format!("`{}` is missing", names::JOURNAL)));
        }
        Ok(Self { archive, manifest })
    }

    /// Compares every file with its digest, and writes those that a run goes on with below an empty directory.
    pub fn extract(mut self, target: &Path) -> Result<Manifest, OpenError> {
        // Only this bit of a mode is taken over: set-uid and the like may not be brought along.
        let is_executable = |file: &&unzip::ArchiveEntry| file.mode.is_some_and(|mode| mode & 0o111 != 0);
        let executable = self.archive.entries().iter().filter(is_executable);
        let executable: HashSet<String> = executable.map(|file| file.name.clone()).collect();
        for entry in &self.manifest.files {
            let name = entry.name.as_str();
            let mut digest = Sha256::new();
            let line = (name == names::JOURNAL).then_some(0);
            let reader = HashedReader { reader: self.archive.read(name)?, digest: &mut digest };
            let mut bytes = Tee { reader, line };
            let size = if is_needed(name) {
                let path = target.join(name);
                fs::create_dir_all(path.parent().unwrap_or(target))?;
                let mut file = fs::File::create_new(&path)?;
                let size = io::copy(&mut bytes, &mut file).map_err(UnzipError::from)?;
                if executable.contains(name) {
                    use std::os::unix::fs::PermissionsExt as _;
                    fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
                }
                size
            } else {
                io::copy(&mut bytes, &mut io::sink()).map_err(UnzipError::from)?
            };
            if size != entry.size || Sum::end(digest) != entry.sha256 {
                let name = one_line(name, 200);
                return Err(OpenError::Damaged(format!("`{name}` is not what the manifest says")));
            }
        }
        Ok(self.manifest)
    }

    /// Compares one file of at most so many bytes with its digest, and returns it, if the bundle has it.
    pub fn read(mut self, name: &str, most: u64) -> Result<Option<Vec<u8>>, OpenError> {
        let Some(entry) = self.manifest.files.iter().find(|entry| entry.name.as_str() == name) else {
            return Ok(None);
        };
        let bytes = whole(self.archive.read(name)?, name, most)?;
        if bytes.len() as u64 != entry.size || Sum::of(&bytes) != entry.sha256 {
            let name = one_line(name, 200);
            return Err(OpenError::Damaged(format!("`{name}` is not what the manifest says")));
        }
        Ok(Some(bytes))
    }
}

/// Reads and feeds a digest on the way.
struct Tee<'d, R> {
    reader: HashedReader<'d, R>,
    /// The length of the line so far, where lines are bounded.
    line: Option<u64>,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if let Some(line) = &mut self.line {
            // The longest line that may still grow starts behind the last end of a line in the
            // buffer.
            let rest = buffer[..read].iter().rposition(|byte| *byte == b'\n');
            *line = rest.map_or(*line + read as u64, |at| (read - at - 1) as u64);
            if *line > MOST_LINE {
                let why = format!("a line of the journal is longer than {} MiB", MOST_LINE >> 20);
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        Ok(read)
    }
}

fn manifest<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Manifest, OpenError> {
    let mut bytes = Vec::new();
    archive.read(names::MANIFEST)?.take(MOST_MANIFEST).read_to_end(&mut bytes).map_err(UnzipError::from)?;
    // What is wrong may be quoted.
    let not_read = |error: serde_json::Error| {
        OpenError::Damaged(format!("{}: {}", names::MANIFEST, one_line(&error.to_string(), 300)))
    };
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(not_read)?;
    match format::check(&value, SCHEMA) {
        Ok(()) => serde_json::from_value(value).map_err(not_read),
        Err(Unfit::Newer(found)) => Err(OpenError::Newer { found }),
        Err(Unfit::Unknown) => Err(OpenError::Damaged(format!("{}: it has no `schema`", names::MANIFEST))),
    }
}

/// Tells whether a run goes on with this file. The rest is for people.
fn is_needed(name: &str) -> bool {
    !name.starts_with(names::REPORTS) && !name.starts_with(names::LOOPS) && name != names::STATE
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use serde_json::{Value, json};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    /// What a bundle is made of, to be spoiled in one place.
    struct TestBundle {
        manifest: Value,
        files: Vec<(String, Vec<u8>, u32)>,
    }

    fn made() -> TestBundle {
        let files: Vec<(String, Vec<u8>, u32)> = [
            ("events.jsonl", "{}\n"),
            ("output.log", "hello"),
            ("run-dir/a/b", "x"),
            ("report/junit.xml", "<x/>"),
        ]
        .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec(), 0o100_644))
        .to_vec();
        let listed: Vec<Value> = files
            .iter()
            .map(|(name, text, _)| json!({"name": name, "size": text.len(), "sha256": Sum::of(text)}))
            .collect();
        let manifest = json!({
            "schema": SCHEMA, "written_by": "ll-loop", "written_at": "2026-01-01T00:00:00.000Z", "loop": "main",
            "instance": "main-20260101T000000-abcdef", "file": ".loops/main.yaml", "definition_sha256": "0".repeat(64),
            "repository": null, "job": null, "outcome": null, "resumable": true, "state": null, "iteration": 1,
            "step": 1, "last_seq": 1, "tree": null, "left_out": [], "files": listed,
        });
        TestBundle { manifest, files }
    }

    impl TestBundle {
        fn zip(&self) -> Vec<u8> {
            let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
            let options = SimpleFileOptions::default();
            zip.start_file(names::MANIFEST, options).unwrap();
            zip.write_all(self.manifest.to_string().as_bytes()).unwrap();
            for (name, text, mode) in &self.files {
                if mode & 0o170_000 == 0o120_000 {
                    zip.add_symlink(name.as_str(), String::from_utf8_lossy(text), options).unwrap();
                } else {
                    zip.start_file(name.as_str(), options.unix_permissions(*mode)).unwrap();
                    zip.write_all(text).unwrap();
                }
            }
            zip.finish().unwrap().into_inner()
        }

        /// Adds a file as the manifest has to name it.
        fn add(&mut self, name: &str, text: &str) {
            let entry = json!({"name": name, "size": text.len(), "sha256": Sum::of(text.as_bytes())});
            self.manifest["files"].as_array_mut().unwrap().push(entry);
            self.files.push((name.to_owned(), text.as_bytes().to_vec(), 0o100_644));
        }
    }

    fn extract(bytes: Vec<u8>, limits: UnzipLimits) -> Result<Vec<String>, OpenError> {
        let target = tempfile::tempdir().unwrap();
        Bundle::new(Archive::open(Cursor::new(bytes), limits)?)?.extract(target.path())?;
        let mut found = Vec::new();
        let mut open = vec![target.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                if entry.path().is_dir() {
                    open.push(entry.path());
                } else {
                    found.push(entry.path().strip_prefix(target.path()).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    #[track_caller]
    fn refuses(spoil: impl FnOnce(&mut TestBundle), expected: &str) {
        let mut bundle = made();
        spoil(&mut bundle);
        let error =
            extract(bundle.zip(), UnzipLimits { entries: 10, bytes: 10_000 }).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_good_bundle_gives_what_a_run_goes_on_with() {
        let found = extract(made().zip(), LIMITS).unwrap();
        assert_eq!(found, ["events.jsonl", "output.log", "run-dir/a/b"]);
    }

    #[test]
    fn one_file_is_read_by_its_name() {
        let read = |made: &TestBundle, name: &str, most| {
            let archive = Archive::open(Cursor::new(made.zip()), LIMITS).unwrap();
            Bundle::new(archive).unwrap().read(name, most)
        };
        let mut bundle = made();
        assert_eq!(read(&bundle, "report/junit.xml", 4).unwrap().unwrap(), b"<x/>");
        assert_eq!(read(&bundle, "report/none.xml", 4).unwrap(), None);
        assert!(matches!(read(&bundle, "report/junit.xml", 3), Err(OpenError::TooLarge(_))));
        bundle.files[3].1 = b"<y/>".to_vec();
        assert!(matches!(read(&bundle, "report/junit.xml", 4), Err(OpenError::Damaged(_))));
    }

    #[test]
    fn a_bundle_that_was_changed_is_refused() {
        refuses(|made| made.files[0].1 = b"[]\n".to_vec(), "`events.jsonl` is not what the manifest says");
        refuses(|made| made.files[0].1.push(b'\n'), "`events.jsonl` has 4 bytes, and had 3");
        refuses(|made| drop(made.files.remove(1)), "`output.log` is missing");
        refuses(
            |made| made.files.push(("extra".to_owned(), vec![], 0o100_644)),
            "does not belong in a bundle: `extra`",
        );
        refuses(
            |made| made.manifest["files"][1]["sha256"] = json!("0".repeat(64)),
            "`output.log` is not what",
        );
        // Files that a run does not need are compared as well.
        refuses(|made| made.files[3].1 = b"<y/>".to_vec(), "`report/junit.xml` is not what");
        refuses(
            |made| {
                let twice = made.manifest["files"][0].clone();
                made.manifest["files"].as_array_mut().unwrap().push(twice);
            },
            "`events.jsonl` is listed twice",
        );
        refuses(
            |made| {
                made.files.remove(0);
                made.manifest["files"].as_array_mut().unwrap().remove(0);
            },
            "`events.jsonl` is missing",
        );
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        for name in [
            "../x",
            "/etc/x",
            "run-dir/../../x",
            "run-dir/..",
            "run-dir//x",
            "run-dir/",
            "run-dir/./x",
            "run-dir\\..\\x",
            "run-dir/a\\..\\b",
            "run-dir/a\nb",
            "run-dir/\u{1b}[2J",
            "streams/../../x",
        ] {
            refuses(|made| made.add(name, "x"), "is refused: it");
        }
        for name in [
            "run-dir/.git/config",
            "run-dir/x/.GIT/hooks/post-checkout",
            "report/.g\u{200c}it/config",
            "x",
            "events.jsonl/x",
            "EVENTS.JSONL",
            ".git/hooks/x",
        ] {
            refuses(|made| made.add(name, "x"), "a bundle cannot contain a file with this name");
        }
    }

    #[test]
    fn links_and_directories_are_refused() {
        refuses(
            |made| {
                made.add("run-dir/link", "/etc/passwd");
                made.files.last_mut().unwrap().2 = 0o120_777;
            },
            "its entry `run-dir/link` is refused: it is a link",
        );
    }

    #[test]
    fn sizes_are_bounded_before_anything_is_read() {
        refuses(|made| made.add("run-dir/big", &"x".repeat(10_000)), "it holds more than 10000 bytes");
        refuses(
            |made| (0..9).for_each(|n| made.add(&format!("run-dir/{n}"), "")),
            "it holds more than 10 entries",
        );
        // A length that is a lie.
        refuses(|made| made.manifest["files"][0]["size"] = json!(u64::MAX), "it is too large");
    }

    #[test]
    fn every_value_of_a_manifest_is_of_its_type() {
        let tree = |key: &'static str, value: Value| {
            move |made: &mut TestBundle| {
                let id = "0".repeat(40);
                made.manifest["tree"] = json!({"base": id, "head": id, "commit": id, "tree": id, "index": null, "changed": true, "missing": null});
                made.manifest["tree"][key] = value;
            }
        };
        for key in ["base", "head", "commit", "tree", "index"] {
            for value in
                ["--output=x", "HEAD", "", "-", "0".repeat(41).as_str(), "../x", "A".repeat(40).as_str()]
            {
                refuses(tree(key, json!(value)), "this is not the id of a git object");
            }
            refuses(tree(key, json!(7)), "invalid type");
        }
        let own = |key: &'static str, value: Value| move |made: &mut TestBundle| made.manifest[key] = value;
        for value in ["", "../x", "main", "a/b-20260101T000000-abcdef", ".x-20260101T000000-abcdef"] {
            refuses(own("instance", json!(value)), "this is not the id of a run");
        }
        for value in ["/etc/passwd", "../x.yaml", ".loops/../../x", ".git/config", "a\u{0}b", "a\u{1b}b", ""]
        {
            refuses(own("file", json!(value)), "a path");
        }
        refuses(own("definition_sha256", json!("x")), "this is not a SHA-256 digest");
        refuses(own("outcome", json!("\u{1b}[2Jfine")), "unknown variant");
        refuses(own("state", json!("a\nb")), "a state name cannot contain");
        refuses(own("job", json!("a\u{1b}]0;b")), "this is not one line");
        refuses(own("left_out", json!([{"path": "a\nb", "why": "x"}])), "this is not one line");
        refuses(own("written_at", json!("yesterday")), "manifest.json");
        refuses(own("last_seq", json!(-1)), "manifest.json");
        refuses(own("last_seq", json!(1e300)), "manifest.json");
        refuses(own("iteration", json!(u64::MAX)), "manifest.json");
    }

    #[test]
    fn a_line_of_the_journal_is_bounded_before_it_is_read() {
        let mut digest = Sha256::new();
        let mut read = |lines: u64, length: u64| {
            let line = io::repeat(b'x').take(length).chain(Cursor::new(b"\n"));
            let again = io::repeat(b'x').take(length * (lines - 1)).chain(Cursor::new(b"\n"));
            io::copy(
                &mut Tee {
                    reader: HashedReader { reader: line.chain(again), digest: &mut digest },
                    line: Some(0),
                },
                &mut io::sink(),
            )
        };
        assert_eq!(read(2, 10).unwrap(), 22);
        let error = read(3, MOST_LINE / 2 + 1).unwrap_err().to_string();
        assert_eq!(error, "a line of the journal is longer than 64 MiB");
    }

    #[test]
    fn formats_are_told_apart() {
        refuses(|made| made.manifest["schema"] = json!(SCHEMA + 1), "a later version");
        refuses(|made| made.manifest["schema"] = json!(null), "it has no `schema`");
        refuses(|made| made.manifest["loop"] = json!("../x"), "manifest.json");
        refuses(|made| made.manifest = json!([]), "it has no `schema`");
        let whole = made().zip();
        for length in [0, 1, 4, whole.len() / 2, whole.len() - 1] {
            assert!(extract(whole[..length].to_vec(), LIMITS).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn no_flipped_byte_gets_through_unnoticed() {
        let whole = made().zip();
        let expected = extract(whole.clone(), LIMITS).unwrap();
        for at in 0..whole.len() {
            let mut spoilt = whole.clone();
            spoilt[at] ^= 0x41;
            // A byte that means nothing, such as a date, may be anything.
            if let Ok(found) = extract(spoilt, LIMITS) {
                assert_eq!(found, expected, "byte {at}");
            }
        }
    }

    #[test]
    fn a_bundle_is_found_in_an_artifact_and_in_a_directory() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let limits = LIMITS;
        fs::create_dir_all(at("one/deep")).unwrap();
        fs::create_dir(at("scratch")).unwrap();
        fs::write(at("one/deep/a.llz"), made().zip()).unwrap();
        assert_eq!(locate(&at("one/deep/a.llz"), &at("scratch"), limits).unwrap(), at("one/deep/a.llz"));
        assert_eq!(locate(&at("one"), &at("scratch"), limits).unwrap(), at("one/deep/a.llz"));
        assert!(matches!(locate(&at("scratch"), &at("scratch"), limits), Err(OpenError::NotABundle(_))));
        assert!(matches!(locate(&at("nowhere"), &at("scratch"), limits), Err(OpenError::Io(_))));
        let artifact = |names: &[&str]| {
            let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
            for name in names {
                zip.start_file(*name, SimpleFileOptions::default()).unwrap();
                zip.write_all(&made().zip()).unwrap();
            }
            fs::write(at("artifact.zip"), zip.finish().unwrap().into_inner()).unwrap();
        };
        artifact(&["report/a.llz", "junit.xml"]);
        let found = locate(&at("artifact.zip"), &at("scratch"), limits).unwrap();
        assert_eq!(fs::read(found).unwrap(), made().zip());
        artifact(&["a.llz", "b.llz"]);
        let several = locate(&at("artifact.zip"), &at("scratch"), limits).unwrap_err();
        assert_eq!(several.to_string(), "there is more than one bundle in it: a.llz, b.llz");
        artifact(&["junit.xml"]);
        assert!(matches!(locate(&at("artifact.zip"), &at("scratch"), limits), Err(OpenError::NotABundle(_))));
        fs::write(at("one/b.llz"), "").unwrap();
        assert!(matches!(locate(&at("one"), &at("scratch"), limits), Err(OpenError::Several(_))));
    }
}
