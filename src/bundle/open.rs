//! Opens a bundle from anywhere and believes nothing of it: every name, length and digest is checked before a single
//! file is written, and only what a run goes on with is written at all.

use std::collections::HashMap;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sha2::{Digest as _, Sha256};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::base::format::{self, Unfit};
use crate::base::text::{hex, one_line};

use super::manifest::{Entry, Manifest, SCHEMA};
use super::pack::Hashing;
use super::report::whole;
use super::{EXTENSION, names};

/// What a bundle may take at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Files.
    pub files: usize,
    /// Bytes of all files, unpacked.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 20_000, bytes: 4 << 30 }
    }
}

/// The manifest is read into memory.
const MOST_MANIFEST: u64 = 16 << 20;

/// Why a bundle is refused.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no archive.
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
    #[error("it has a file that no bundle has: `{0}`")]
    Foreign(String),
}

impl From<ZipError> for OpenError {
    fn from(error: ZipError) -> Self {
        refused(error, Self::Damaged)
    }
}

/// Tells a file that cannot be read from one that is not what it should be. Too short is the latter.
fn refused(error: ZipError, what: fn(String) -> OpenError) -> OpenError {
    if let ZipError::Io(error) = error {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            what(error.to_string())
        } else {
            OpenError::Io(error)
        }
    } else {
        what(error.to_string())
    }
}

/// Finds the bundle that is meant: a file, the one in a directory, or the one in an artifact. What has to be unpacked
/// for that goes to `scratch`.
pub fn locate(path: &Path, scratch: &Path, limits: &Limits) -> Result<PathBuf, OpenError> {
    if fs::metadata(path)?.is_dir() {
        let mut found = Vec::new();
        below(path, 3, &mut found)?;
        return match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(OpenError::NotABundle(format!("no file ends in .{EXTENSION}"))),
            several => {
                Err(OpenError::Several(several.iter().map(|path| path.display().to_string()).collect()))
            }
        };
    }
    let mut archive = archive(path)?;
    let names = entries(&archive)?;
    if names.iter().any(|name| name == names::MANIFEST) {
        return Ok(path.to_owned());
    }
    let bundles: Vec<&String> = names.iter().filter(|name| is_bundle(Path::new(name))).collect();
    match bundles.as_slice() {
        [one] => {
            let target = scratch.join(format!("artifact.{EXTENSION}"));
            let mut entry = archive.by_name(one)?;
            let size = entry.size();
            if size > limits.bytes {
                return Err(OpenError::TooLarge(format!("`{one}` has {size} bytes")));
            }
            let mut file = fs::File::create_new(&target)?;
            let copied = io::copy(&mut entry.by_ref().take(size + 1), &mut file).map_err(ZipError::Io)?;
            if copied != size {
                return Err(OpenError::Damaged(format!("`{one}` is longer than it says")));
            }
            Ok(target)
        }
        [] => Err(OpenError::NotABundle(format!("it has no {}", names::MANIFEST))),
        several => Err(OpenError::Several(several.iter().map(|name| one_line(name, 200)).collect())),
    }
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

fn is_bundle(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

pub(super) fn archive(path: &Path) -> Result<ZipArchive<io::BufReader<fs::File>>, OpenError> {
    let file = io::BufReader::new(fs::File::open(path)?);
    ZipArchive::new(file).map_err(|error| refused(error, OpenError::NotABundle))
}

/// Returns the names of what is in an archive.
pub(super) fn entries<R: Read + Seek>(archive: &ZipArchive<R>) -> Result<Vec<String>, OpenError> {
    let names = archive.file_names().map(|name| name.map(std::borrow::Cow::into_owned));
    Ok(names.collect::<Result<_, _>>()?)
}

/// A bundle whose manifest was read, and whose list of files agrees with it.
#[derive(Debug)]
pub struct Bundle<R> {
    archive: ZipArchive<R>,
    /// What it says about itself.
    pub manifest: Manifest,
}

impl Bundle<io::BufReader<fs::File>> {
    /// Opens a bundle.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, OpenError> {
        Self::new(archive(path)?, limits)
    }
}

impl<R: Read + Seek> Bundle<R> {
    /// Reads the manifest and compares it with the list of files.
    pub(super) fn new(mut archive: ZipArchive<R>, limits: &Limits) -> Result<Self, OpenError> {
        if archive.len() > limits.files {
            return Err(OpenError::TooLarge(format!("it has {} files", archive.len())));
        }
        let manifest = manifest(&mut archive)?;
        let mut listed: HashMap<&str, &Entry> = HashMap::new();
        for entry in &manifest.files {
            if !is_ours(&entry.name) {
                return Err(OpenError::Foreign(one_line(&entry.name, 200)));
            }
            if listed.insert(&entry.name, entry).is_some() {
                return Err(OpenError::Damaged(format!("`{}` is listed twice", one_line(&entry.name, 200))));
            }
        }
        let total = manifest.files.iter().fold(0u64, |total, entry| total.saturating_add(entry.size));
        if total > limits.bytes {
            return Err(OpenError::TooLarge(format!("its files have {total} bytes")));
        }
        for index in 0..archive.len() {
            let file = archive.by_index_raw(index)?;
            let name = file.name()?;
            let name = name.as_ref();
            if name == names::MANIFEST {
                continue;
            }
            let shown = one_line(name, 200);
            if file.is_symlink() || file.is_dir() {
                return Err(OpenError::Foreign(shown));
            }
            match listed.remove(name) {
                Some(entry) if entry.size == file.size() => {}
                Some(entry) => {
                    let (is, was) = (file.size(), entry.size);
                    return Err(OpenError::Damaged(format!("`{shown}` has {is} bytes, and had {was}")));
                }
                None => return Err(OpenError::Foreign(shown)),
            }
        }
        if let Some(name) = listed.keys().next() {
            return Err(OpenError::Damaged(format!("`{}` is missing", one_line(name, 200))));
        }
        if !manifest.files.iter().any(|entry| entry.name == names::JOURNAL) {
            return Err(OpenError::Damaged(format!("`{}` is missing", names::JOURNAL)));
        }
        Ok(Self { archive, manifest })
    }

    /// Compares every file with its digest, and writes those that a run goes on with below an empty directory.
    pub fn extract(mut self, target: &Path) -> Result<Manifest, OpenError> {
        for entry in &self.manifest.files {
            let mut file = self.archive.by_name(&entry.name)?;
            let executable = file.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            let mut digest = Sha256::new();
            let mut bytes = Tee { reader: (&mut file).take(entry.size + 1), digest: &mut digest };
            let size = if is_needed(&entry.name) {
                let path = target.join(&entry.name);
                fs::create_dir_all(path.parent().unwrap_or(target))?;
                let mut file = fs::File::create_new(&path)?;
                let size = io::copy(&mut bytes, &mut file).map_err(ZipError::Io)?;
                if executable {
                    use std::os::unix::fs::PermissionsExt as _;
                    fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
                }
                size
            } else {
                io::copy(&mut bytes, &mut io::sink()).map_err(ZipError::Io)?
            };
            if size != entry.size || hex(&digest.finalize()) != entry.sha256 {
                let name = one_line(&entry.name, 200);
                return Err(OpenError::Damaged(format!("`{name}` is not what the manifest says")));
            }
        }
        Ok(self.manifest)
    }

    /// Compares one file of at most so many bytes with its digest, and returns it; nothing where there is none.
    pub fn read(mut self, name: &str, most: u64) -> Result<Option<Vec<u8>>, OpenError> {
        let Some(entry) = self.manifest.files.iter().find(|entry| entry.name == name) else {
            return Ok(None);
        };
        let bytes = whole(self.archive.by_name(name)?, name, most)?;
        if bytes.len() as u64 != entry.size || hex(&Sha256::digest(&bytes)) != entry.sha256 {
            let name = one_line(name, 200);
            return Err(OpenError::Damaged(format!("`{name}` is not what the manifest says")));
        }
        Ok(Some(bytes))
    }
}

/// Reads and feeds a digest on the way.
struct Tee<'d, R> {
    reader: R,
    digest: &'d mut Sha256,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        io::Write::write_all(&mut Hashing(self.digest), &buffer[..read])?;
        Ok(read)
    }
}

fn manifest<R: Read + Seek>(archive: &mut ZipArchive<R>) -> Result<Manifest, OpenError> {
    let mut bytes = Vec::new();
    archive.by_name(names::MANIFEST)?.take(MOST_MANIFEST).read_to_end(&mut bytes).map_err(ZipError::Io)?;
    let not_read = |error: serde_json::Error| OpenError::Damaged(format!("{}: {error}", names::MANIFEST));
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(not_read)?;
    match format::check(&value, SCHEMA) {
        Ok(()) => serde_json::from_value(value).map_err(not_read),
        Err(Unfit::Newer(found)) => Err(OpenError::Newer { found }),
        Err(Unfit::Unknown) => Err(OpenError::Damaged(format!("{}: it has no `schema`", names::MANIFEST))),
    }
}

/// Tells whether a name is one that [`super::pack`] gives, and leads nowhere else.
fn is_ours(name: &str) -> bool {
    let single = [names::JOURNAL, names::STATE, names::LOG, names::TREE];
    let below = [names::STREAMS, names::RUN_DIR, names::REPORTS, names::LOOPS];
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\0', '\\']);
    single.contains(&name)
        || below
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| rest.split('/').all(is_plain)))
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
    struct Made {
        manifest: Value,
        files: Vec<(String, Vec<u8>, u32)>,
    }

    fn made() -> Made {
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
            .map(|(name, text, _)| json!({"name": name, "size": text.len(), "sha256": hex(&Sha256::digest(text))}))
            .collect();
        let manifest = json!({
            "schema": SCHEMA, "written_by": "ll-loop", "written_at": "2026-01-01T00:00:00.000Z", "loop": "main",
            "instance": "main-20260101T000000-abcdef", "file": ".loops/main.yaml", "definition_sha256": "",
            "repository": null, "job": null, "outcome": null, "resumable": true, "state": null, "iteration": 1,
            "step": 1, "last_seq": 1, "tree": null, "left_out": [], "files": listed,
        });
        Made { manifest, files }
    }

    impl Made {
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
            let entry = json!({"name": name, "size": text.len(), "sha256": hex(&Sha256::digest(text))});
            self.manifest["files"].as_array_mut().unwrap().push(entry);
            self.files.push((name.to_owned(), text.as_bytes().to_vec(), 0o100_644));
        }
    }

    fn extract(bytes: Vec<u8>, limits: &Limits) -> Result<Vec<String>, OpenError> {
        let target = tempfile::tempdir().unwrap();
        Bundle::new(ZipArchive::new(Cursor::new(bytes))?, limits)?.extract(target.path())?;
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
    fn refuses(spoil: impl FnOnce(&mut Made), expected: &str) {
        let mut bundle = made();
        spoil(&mut bundle);
        let error = extract(bundle.zip(), &Limits { files: 10, bytes: 1000 }).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_good_bundle_gives_what_a_run_goes_on_with() {
        let found = extract(made().zip(), &Limits::default()).unwrap();
        assert_eq!(found, ["events.jsonl", "output.log", "run-dir/a/b"]);
    }

    #[test]
    fn one_file_is_read_by_its_name() {
        let read = |made: &Made, name: &str, most| {
            let archive = ZipArchive::new(Cursor::new(made.zip())).unwrap();
            Bundle::new(archive, &Limits::default()).unwrap().read(name, most)
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
        refuses(|made| made.files.push(("extra".to_owned(), vec![], 0o100_644)), "no bundle has: `extra`");
        refuses(|made| made.manifest["files"][1]["sha256"] = json!("00"), "`output.log` is not what");
        // Also what nobody needs has to be what it was.
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
            "streams/../../x",
            "x",
            "events.jsonl/x",
            "EVENTS.JSONL",
            ".git/hooks/x",
        ] {
            refuses(|made| made.add(name, "x"), "it has a file that no bundle has");
        }
    }

    #[test]
    fn links_and_directories_are_refused() {
        refuses(
            |made| {
                made.add("run-dir/link", "/etc/passwd");
                made.files.last_mut().unwrap().2 = 0o120_777;
            },
            "no bundle has: `run-dir/link`",
        );
    }

    #[test]
    fn sizes_are_bounded_before_anything_is_read() {
        refuses(|made| made.add("run-dir/big", &"x".repeat(1000)), "its files have");
        refuses(|made| (0..9).for_each(|n| made.add(&format!("run-dir/{n}"), "")), "it has 14 files");
        // A length that is a lie.
        refuses(|made| made.manifest["files"][0]["size"] = json!(u64::MAX), "it is too large");
    }

    #[test]
    fn formats_are_told_apart() {
        refuses(|made| made.manifest["schema"] = json!(SCHEMA + 1), "a later version");
        refuses(|made| made.manifest["schema"] = json!(null), "it has no `schema`");
        refuses(|made| made.manifest["loop"] = json!("../x"), "manifest.json");
        refuses(|made| made.manifest = json!([]), "it has no `schema`");
        let whole = made().zip();
        for length in [0, 1, 4, whole.len() / 2, whole.len() - 1] {
            assert!(extract(whole[..length].to_vec(), &Limits::default()).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn no_flipped_byte_gets_through_unnoticed() {
        let whole = made().zip();
        let expected = extract(whole.clone(), &Limits::default()).unwrap();
        for at in 0..whole.len() {
            let mut spoilt = whole.clone();
            spoilt[at] ^= 0x41;
            // A byte that means nothing, such as a date, may be anything.
            if let Ok(found) = extract(spoilt, &Limits::default()) {
                assert_eq!(found, expected, "byte {at}");
            }
        }
    }

    #[test]
    fn a_bundle_is_found_in_an_artifact_and_in_a_directory() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let limits = Limits::default();
        fs::create_dir_all(at("one/deep")).unwrap();
        fs::create_dir(at("scratch")).unwrap();
        fs::write(at("one/deep/a.llz"), made().zip()).unwrap();
        assert_eq!(locate(&at("one/deep/a.llz"), &at("scratch"), &limits).unwrap(), at("one/deep/a.llz"));
        assert_eq!(locate(&at("one"), &at("scratch"), &limits).unwrap(), at("one/deep/a.llz"));
        assert!(matches!(locate(&at("scratch"), &at("scratch"), &limits), Err(OpenError::NotABundle(_))));
        assert!(matches!(locate(&at("nowhere"), &at("scratch"), &limits), Err(OpenError::Io(_))));
        let artifact = |names: &[&str]| {
            let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
            for name in names {
                zip.start_file(*name, SimpleFileOptions::default()).unwrap();
                zip.write_all(&made().zip()).unwrap();
            }
            fs::write(at("artifact.zip"), zip.finish().unwrap().into_inner()).unwrap();
        };
        artifact(&["report/a.llz", "junit.xml"]);
        let found = locate(&at("artifact.zip"), &at("scratch"), &limits).unwrap();
        assert_eq!(fs::read(found).unwrap(), made().zip());
        artifact(&["a.llz", "b.llz"]);
        let several = locate(&at("artifact.zip"), &at("scratch"), &limits).unwrap_err();
        assert_eq!(several.to_string(), "there is more than one bundle in it: a.llz, b.llz");
        artifact(&["junit.xml"]);
        assert!(matches!(
            locate(&at("artifact.zip"), &at("scratch"), &limits),
            Err(OpenError::NotABundle(_))
        ));
        fs::write(at("one/b.llz"), "").unwrap();
        assert!(matches!(locate(&at("one"), &at("scratch"), &limits), Err(OpenError::Several(_))));
    }
}
