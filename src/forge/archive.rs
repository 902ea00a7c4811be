//! The zip file of an artifact: packed from files and directories, and unpacked with suspicion, because whoever could
//! store an artifact could write into it what they wanted.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err::OpenOptions;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::base::text::one_line;
use crate::files::unzip::{Archive, ArchiveEntry, UnzipError, UnzipLimits};
use crate::files::{read, transient};

/// Why files were not packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Nothing to pack.
    #[error("there is no file in {0}")]
    Empty(String),
    /// A name that other systems or tools do not take.
    #[error("`{name}` cannot be stored: {reason}")]
    Name {
        /// The name in the zip file.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file is there and is another one.
    #[error("`{}` already exists with other content", .0.display())]
    Exists(PathBuf),
    /// The zip file is refused.
    #[error(transparent)]
    Unzip(#[from] UnzipError),
    /// The zip file cannot be written.
    #[error("it cannot be written: {0}")]
    Zip(#[from] ZipError),
    /// A local file.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What was packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedArtifact {
    /// The names in the zip file.
    pub names: Vec<String>,
    /// Links and special files, which were left out.
    pub left_out: Vec<PathBuf>,
}

/// Packs files and directories. Their names begin below the directory that all of them are in, as those of the official
/// upload action do: of one directory its content, of one file the file.
pub fn pack(paths: &[PathBuf], into: &mut File) -> Result<PackedArtifact, ArchiveError> {
    pack_with(paths, "", into)
}

/// The same with a comment, which only [`comment`] shows.
pub fn pack_with(paths: &[PathBuf], comment: &str, into: &mut File) -> Result<PackedArtifact, ArchiveError> {
    let mut packed = PackedArtifact::default();
    let mut files = Vec::new();
    let mut roots = Vec::new();
    for path in paths {
        let is_directory = fs_err::metadata(path)?.is_dir();
        let place = if is_directory { fs_err::canonicalize(path)? } else { place_of_file(path)? };
        if is_directory {
            walk(&place, &mut files, &mut packed.left_out)?;
            roots.push(place);
        } else {
            roots.extend(place.parent().map(Path::to_owned));
            files.push(place);
        }
    }
    let root = common(&roots);
    let mut named = BTreeMap::new();
    for file in files {
        named.insert(name_below(&root, &file)?, file);
    }
    if named.is_empty() {
        let shown: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(ArchiveError::Empty(shown.join(", ")));
    }
    let mut zip = ZipWriter::new(into);
    zip.set_comment(comment)?;
    for (name, path) in &named {
        let mut file = read::open(path).map_err(io::Error::from)?;
        let metadata = file.metadata()?;
        // The time is left out, so that the same files make the same zip file.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .unix_permissions(metadata.permissions().mode() & 0o777)
            // From 4 GiB on an entry needs ZIP64, which has to be said before its data.
            .large_file(metadata.len() >= u64::from(u32::MAX));
        zip.start_file(name.as_str(), options)?;
        io::copy(&mut file, &mut zip)?;
    }
    zip.finish()?;
    packed.names = named.into_keys().collect();
    Ok(packed)
}

/// Returns the comment of a zip file; an empty one where it has none, or is not a zip file.
pub fn comment(zip: &mut File) -> String {
    let archive = zip::ZipArchive::new(zip).ok();
    archive.map_or_else(String::new, |archive| String::from_utf8_lossy(archive.comment()).into_owned())
}

/// Returns where a file is. A link that was named is followed, and keeps its name.
fn place_of_file(path: &Path) -> io::Result<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs_err::canonicalize(directory)?.join(path.file_name().unwrap_or_default()))
}

/// Finds the files below a directory. Links are not followed: they could lead anywhere.
fn walk(directory: &Path, files: &mut Vec<PathBuf>, left_out: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), files, left_out)?;
        } else if kind.is_file() {
            files.push(entry.path());
        } else {
            left_out.push(entry.path());
        }
    }
    Ok(())
}

/// Returns the deepest directory that all of these are or are in.
fn common(directories: &[PathBuf]) -> PathBuf {
    let Some((first, rest)) = directories.split_first() else { return PathBuf::new() };
    let is_above_all = |above: &&Path| rest.iter().all(|directory| directory.starts_with(above));
    first.ancestors().find(is_above_all).unwrap_or(first).to_owned()
}

fn name_below(root: &Path, file: &Path) -> Result<String, ArchiveError> {
    let below = file.strip_prefix(root).unwrap_or(file);
    let wrong = |reason| ArchiveError::Name { name: one_line(&below.to_string_lossy(), 200), reason };
    let name = below.to_str().ok_or_else(|| wrong("it is not UTF-8"))?;
    if name.contains(['"', ':', '<', '>', '|', '*', '?', '\r', '\n', '\\']) {
        return Err(wrong(r#"it holds one of " : < > | * ? \ or a line end"#));
    }
    Ok(name.to_owned())
}

/// Unpacks a zip file into a directory. Nothing is written outside of it, through a link, or over a file with another
/// content, and nothing at all is there before everything was looked at. Returns the files.
pub fn unpack(zip: &mut File, into: &Path, limits: UnzipLimits) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut archive = Archive::open(BufReader::new(zip), limits)?;
    let (directories, files): (Vec<ArchiveEntry>, Vec<ArchiveEntry>) =
        archive.entries().iter().cloned().partition(|entry| entry.is_directory);
    fs_err::create_dir_all(into)?;
    // In the same file system, so that what was unpacked has only to be renamed.
    let unpacked = transient::directory_in(crate::base::own::UNFINISHED, into)?;
    for file in &files {
        extract(&mut archive, file, unpacked.path())?;
    }
    let directories: Vec<PathBuf> = directories.into_iter().map(|entry| entry.name.into()).collect();
    let paths: Vec<PathBuf> = files.into_iter().map(|entry| entry.name.into()).collect();
    let mut missing = Vec::new();
    for path in &paths {
        // All are looked at before the first is moved, so that a refusal leaves nothing behind.
        if is_missing(into, path, unpacked.path())? {
            missing.push(path);
        }
    }
    // A directory of the archive may stand where a link or a file is, and creating it would follow
    // the link.
    for directory in &directories {
        check_way(into, directory)?;
    }
    for directory in &directories {
        fs_err::create_dir_all(into.join(directory))?;
    }
    for path in missing {
        let target = into.join(path);
        target.parent().map_or(Ok(()), fs_err::create_dir_all)?;
        fs_err::rename(unpacked.path().join(path), target)?;
    }
    Ok(paths)
}

fn extract(
    archive: &mut Archive<BufReader<&mut File>>,
    entry: &ArchiveEntry,
    into: &Path,
) -> Result<(), ArchiveError> {
    let target = into.join(&entry.name);
    target.parent().map_or(Ok(()), fs_err::create_dir_all)?;
    // `create_new` also refuses what another entry of this archive has made.
    let mut file = OpenOptions::new().write(true).create_new(true).open(&target)?;
    io::copy(&mut archive.read(&entry.name)?, &mut file).map_err(UnzipError::from)?;
    if let Some(mode) = entry.mode {
        // The owner keeps the right to read and write; set-uid, and writing by others, are not
        // taken over.
        file.set_permissions(Permissions::from_mode(mode & 0o755 | 0o600))?;
    }
    Ok(())
}

/// Tells whether a file is not there yet. One with the same content may be.
fn is_missing(into: &Path, path: &Path, unpacked: &Path) -> Result<bool, ArchiveError> {
    path.parent().map_or(Ok(()), |directory| check_way(into, directory))?;
    let target = into.join(path);
    match fs_err::symlink_metadata(&target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error.into()),
        Ok(metadata) if metadata.is_file() && is_same(&target, &unpacked.join(path))? => Ok(false),
        Ok(_) => Err(ArchiveError::Exists(target)),
    }
}

/// Checks that a directory and its parents, as far as they exist, are directories and not links.
fn check_way(into: &Path, directory: &Path) -> Result<(), ArchiveError> {
    for part in directory.ancestors().filter(|part| !part.as_os_str().is_empty()) {
        let place = into.join(part);
        match fs_err::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_dir() => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A parent is a file, which a later iteration reports.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Err(ArchiveError::Exists(place)),
        }
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (read::open(one)?, read::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one).bytes(), BufReader::new(other).bytes());
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (a, b) if a != b => return Ok(false),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    const LIMITS: UnzipLimits = UnzipLimits { entries: 10, bytes: 1000 };

    fn directory(files: &[(&str, &str)]) -> TempDir {
        let directory = TempDir::new().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        directory
    }

    /// Everything below a directory: files with their content, links with where they lead.
    fn tree(directory: &Path) -> Vec<(String, String)> {
        let (mut files, mut links) = (Vec::new(), Vec::new());
        walk(directory, &mut files, &mut links).unwrap();
        let below = |path: &Path| path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
        let mut all: Vec<(String, String)> =
            files.iter().map(|path| (below(path), fs_err::read_to_string(path).unwrap())).collect();
        all.extend(links.iter().map(|path| (below(path), "link".to_owned())));
        all.sort();
        all
    }

    fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[track_caller]
    fn check_pack(files: &[(&str, &str)], paths: &[&str], names: &[&str]) {
        let from = directory(files);
        let mut zip = tempfile::tempfile().unwrap();
        let paths: Vec<PathBuf> = paths.iter().map(|path| from.path().join(path)).collect();
        let packed = pack(&paths, &mut zip).unwrap();
        assert_eq!(packed.names, names);
        let to = TempDir::new().unwrap();
        assert_eq!(unpack(&mut zip, to.path(), LIMITS).unwrap().len(), names.len());
        let found: Vec<String> = tree(to.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, names);
    }

    #[test]
    fn names_begin_below_what_all_files_are_in() {
        let files = [("a/x.txt", "x"), ("a/.hidden/y.txt", "y"), ("b/z.txt", "z")];
        check_pack(&files, &["a"], &[".hidden/y.txt", "x.txt"]);
        check_pack(&files, &["a/x.txt"], &["x.txt"]);
        check_pack(&files, &["a", "b"], &["a/.hidden/y.txt", "a/x.txt", "b/z.txt"]);
        check_pack(&files, &["a", "a/x.txt"], &[".hidden/y.txt", "x.txt"]);
        check_pack(&files, &["a/x.txt", "b/z.txt"], &["a/x.txt", "b/z.txt"]);
        check_pack(&files, &["a/../b/."], &["z.txt"]);
    }

    #[test]
    fn modes_and_contents_come_back_and_the_same_files_make_the_same_zip() {
        let from = directory(&[("run", "#!/bin/sh\n"), ("data", "x")]);
        fs_err::set_permissions(from.path().join("run"), Permissions::from_mode(0o755)).unwrap();
        fs_err::set_permissions(from.path().join("data"), Permissions::from_mode(0o644)).unwrap();
        let bytes = || {
            let mut zip = tempfile::NamedTempFile::new().unwrap();
            pack(&[from.path().to_owned()], zip.as_file_mut()).unwrap();
            zip
        };
        let (mut one, other) = (bytes(), bytes());
        assert_eq!(fs_err::read(one.path()).unwrap(), fs_err::read(other.path()).unwrap());
        let to = TempDir::new().unwrap();
        unpack(one.as_file_mut(), to.path(), LIMITS).unwrap();
        assert_eq!(tree(to.path()), texts(&[("data", "x"), ("run", "#!/bin/sh\n")]));
        let mode = |name| fs_err::metadata(to.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("run"), mode("data")), (0o755, 0o644));
    }

    #[test]
    fn links_are_left_out_and_a_named_one_is_followed() {
        let from = directory(&[("d/a", "x")]);
        symlink("/etc/hostname", from.path().join("d/out")).unwrap();
        symlink("d/a", from.path().join("named")).unwrap();
        let mut zip = tempfile::tempfile().unwrap();
        let packed = pack(&[from.path().join("d")], &mut zip).unwrap();
        assert_eq!(packed.names, ["a"]);
        assert_eq!(packed.left_out, [fs_err::canonicalize(from.path()).unwrap().join("d/out")]);
        let packed = pack(&[from.path().join("named")], &mut tempfile::tempfile().unwrap()).unwrap();
        assert_eq!(packed.names, ["named"]);
    }

    #[test]
    fn what_cannot_be_stored_is_an_error() {
        let from = directory(&[("a:b", "x"), ("empty/sub/.keep", "")]);
        let error = |path: &str| {
            pack(&[from.path().join(path)], &mut tempfile::tempfile().unwrap()).unwrap_err().to_string()
        };
        assert_eq!(error("a:b"), r#"`a:b` cannot be stored: it holds one of " : < > | * ? \ or a line end"#);
        fs_err::remove_file(from.path().join("empty/sub/.keep")).unwrap();
        assert!(error("empty").starts_with("there is no file in `"), "{}", error("empty"));
        assert!(error("absent").contains("absent"), "{}", error("absent"));
    }

    /// A zip file of entries with these names, modes and contents.
    fn zip(entries: &[(&str, u32, &str)]) -> File {
        let mut zip = ZipWriter::new(tempfile::tempfile().unwrap());
        for (name, mode, text) in entries {
            let options = SimpleFileOptions::default().unix_permissions(*mode);
            if mode & 0o170_000 == 0o120_000 {
                zip.add_symlink(*name, *text, options).unwrap();
            } else if name.ends_with('/') {
                zip.add_directory(*name, options).unwrap();
            } else {
                zip.start_file(*name, options).unwrap();
                zip.write_all(text.as_bytes()).unwrap();
            }
        }
        zip.finish().unwrap()
    }

    #[track_caller]
    fn check_hostile(entries: &[(&str, u32, &str)], expect: &str) {
        let to = directory(&[("in/kept", "kept"), ("victim", "safe")]);
        symlink("..", to.path().join("in/up")).unwrap();
        symlink("../victim", to.path().join("in/away")).unwrap();
        let before = tree(to.path());
        let into = to.path().join("in");
        let error = unpack(&mut zip(entries), &into, LIMITS).unwrap_err().to_string();
        assert!(error.replace(&format!("{}/", into.display()), "").starts_with(expect), "{error}");
        assert_eq!(tree(to.path()), before, "something was written");
    }

    #[test]
    fn no_entry_leads_out_of_the_directory_or_over_a_file() {
        let elsewhere = |name: &str| format!("its entry `{name}` is refused: its name leads elsewhere");
        for name in ["../victim", "a/../../victim", "/etc/x", "a//b", "./a", "a/.", ".."] {
            check_hostile(&[("ok", 0o644, "x"), (name, 0o644, "x")], &elsewhere(name));
        }
        for name in ["a\\b", "..\\victim", "a\nb", "a\0b"] {
            check_hostile(&[(name, 0o644, "x")], "its entry `");
        }
        check_hostile(&[("l", 0o120_777, "/etc")], "its entry `l` is refused: it is a link");
        check_hostile(
            &[("l", 0o120_777, ".."), ("l/x", 0o644, "x")],
            "its entry `l` is refused: it is a link",
        );
        check_hostile(&[("up/victim", 0o644, "x")], "`up` already exists");
        check_hostile(&[("away", 0o644, "x")], "`away` already exists");
        check_hostile(&[("kept", 0o644, "other")], "`kept` already exists");
        check_hostile(&[("new", 0o644, "x"), ("kept", 0o644, "KEPT")], "`kept` already exists");
        check_hostile(&[("kept/x", 0o644, "x")], "`kept` already exists");
        check_hostile(&[("up/", 0o755, "")], "`up` already exists");
        check_hostile(&[("a", 0o644, "x"), ("a/b", 0o644, "x")], "failed to create");
    }

    #[test]
    fn no_more_is_unpacked_than_allowed() {
        let long = "x".repeat(1001);
        check_hostile(&[("a", 0o644, &long)], "it holds more than 1000 bytes");
        check_hostile(&[("a", 0o644, &long[..600]), ("b", 0o644, &long[..600])], "it holds more than 1000");
        let names: Vec<String> = (0..11).map(|i| format!("f{i}")).collect();
        let many: Vec<(&str, u32, &str)> = names.iter().map(|name| (name.as_str(), 0o644, "")).collect();
        check_hostile(&many, "it holds more than 10 entries");
    }

    #[test]
    fn an_entry_that_lies_about_its_size_is_caught() {
        let mut file = zip(&[("bomb", 0o644, &"x".repeat(5000))]);
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        let size = 5000_u32.to_le_bytes();
        let at: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..at + 4] == size).collect();
        assert_eq!(at.len(), 2, "once in the entry and once in the directory");
        for at in at {
            bytes[at..at + 4].copy_from_slice(&5_u32.to_le_bytes());
        }
        let mut lying = tempfile::tempfile().unwrap();
        lying.write_all(&bytes).unwrap();
        let to = TempDir::new().unwrap();
        assert!(unpack(&mut lying, to.path(), LIMITS).is_err());
        assert_eq!(tree(to.path()), []);
    }

    #[test]
    fn the_same_file_may_be_there_and_modes_lose_what_is_dangerous() {
        let to = directory(&[("same", "x")]);
        let mut zip = zip(&[("same", 0o644, "x"), ("d/", 0o755, ""), ("d/new", 0o106_777, "y")]);
        unpack(&mut zip, to.path(), LIMITS).unwrap();
        unpack(&mut zip, to.path(), LIMITS).unwrap();
        assert_eq!(tree(to.path()), texts(&[("d/new", "y"), ("same", "x")]));
        let mode = fs_err::metadata(to.path().join("d/new")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn what_is_no_zip_file_says_so() {
        for text in ["", "PK", "<html>", "PK\x03\x04 but no more"] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let to = TempDir::new().unwrap();
            let error = unpack(&mut file, to.path(), LIMITS).unwrap_err();
            assert_eq!(
                matches!(error, ArchiveError::Unzip(UnzipError::NotZip)),
                text.len() < 10,
                "{text:?}: {error:?}"
            );
        }
    }
}
