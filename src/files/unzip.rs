//! Reads ZIP archives that strangers may have written, under one set of rules for bundles and artifacts. All entries are
//! looked at before one is read, and an archive with a single bad entry is refused as a whole: names are never mended,
//! for no honest packer writes such names.

use std::collections::HashSet;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use crate::base::text::one_line;

/// How an archive begins: with an entry, or with its end where it is empty (APPNOTE.TXT 4.3.7 and 4.3.16).
const MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// The bits of a Unix mode that say what kind of file it is.
const KIND: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// How much an archive may hold.
#[derive(Clone, Copy, Debug)]
pub struct UnzipLimits {
    /// Files and directories.
    pub entries: usize,
    /// Bytes of all files, unpacked.
    pub bytes: u64,
}

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum UnzipError {
    /// It does not begin like one.
    #[error("it is not a zip file")]
    NotZip,
    /// It cannot be unpacked.
    #[error("it cannot be read: {0}")]
    Broken(String),
    /// An entry that is not a plain file or directory below.
    #[error("its entry `{name}` is refused: {reason}")]
    Entry {
        /// The name, in a line.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two entries have the same name, so that readers may see different files.
    #[error("it has two entries of the same name")]
    Duplicate,
    /// It is larger than the limits allow.
    #[error("it holds more than {0}")]
    TooMuch(String),
    /// The file that it is in cannot be read.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for UnzipError {
    /// Tells a file that cannot be read from one whose content is wrong.
    fn from(error: io::Error) -> Self {
        let of_content = [ErrorKind::UnexpectedEof, ErrorKind::InvalidData, ErrorKind::InvalidInput];
        if of_content.contains(&error.kind()) { Self::Broken(error.to_string()) } else { Self::Io(error) }
    }
}

impl From<ZipError> for UnzipError {
    fn from(error: ZipError) -> Self {
        if let ZipError::Io(error) = error { error.into() } else { Self::Broken(error.to_string()) }
    }
}

/// A file or directory in an archive.
#[derive(Clone, Debug)]
pub struct ArchiveEntry {
    /// Its path: plain names with `/` between them, which lead downwards.
    pub name: String,
    /// Bytes, unpacked.
    pub size: u64,
    /// Its Unix mode, where the packer knew one.
    pub mode: Option<u32>,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// An archive that keeps the rules.
#[derive(Debug)]
pub struct Archive<R> {
    zip: ZipArchive<Rationed<R>>,
    entries: Vec<ArchiveEntry>,
}

/// How many bytes of the list of an archive are read for each entry that it may have, and beside them. The list stands in
/// memory before anybody can count its entries.
const BYTES_OF_ENTRY: u64 = 512;
const BYTES_OF_END: u64 = 1 << 20;

/// What reads an archive, and stops after so many bytes.
#[derive(Debug)]
struct Rationed<R> {
    inner: R,
    left: Arc<AtomicU64>,
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 && !buffer.is_empty() {
            return Err(io::Error::new(ErrorKind::InvalidData, "its list of entries is too long"));
        }
        let count = self.inner.read(&mut buffer[..most])?;
        self.left.store(left.saturating_sub(count as u64), Ordering::Relaxed);
        Ok(count)
    }
}

impl<R: Seek> Seek for Rationed<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Looks at every entry of an archive.
    pub fn open(mut reader: R, limits: UnzipLimits) -> Result<Self, UnzipError> {
        // The end of a ZIP archive is looked for from behind, so other content may stand in front
        // of it. Tools that read from the front would see another file.
        check_magic(&mut reader)?;
        let most = u64::try_from(limits.entries).unwrap_or(u64::MAX);
        let ration = most.saturating_mul(BYTES_OF_ENTRY).saturating_add(BYTES_OF_END);
        let left = Arc::new(AtomicU64::new(ration));
        let zip = ZipArchive::new(Rationed { inner: reader, left: Arc::clone(&left) });
        if left.load(Ordering::Relaxed) == 0 {
            return Err(UnzipError::Broken(format!("it has no list of at most {most} entries")));
        }
        let mut zip = zip?;
        // What is read from here on is bounded by the entries.
        left.store(u64::MAX, Ordering::Relaxed);
        if zip.len() > limits.entries {
            return Err(UnzipError::TooMuch(format!("{} entries", limits.entries)));
        }
        if zip.has_duplicate_names() {
            return Err(UnzipError::Duplicate);
        }
        let entries: Vec<ArchiveEntry> =
            // `by_index_raw` reads the header without a decoder, so nothing is decompressed before
            // the limits are known.
            (0..zip.len()).map(|index| entry(&zip.by_index_raw(index)?)).collect::<Result<_, _>>()?;
        // `a` and `a/` are two names of one path.
        let mut paths = HashSet::new();
        if !entries.iter().all(|entry| paths.insert(entry.name.as_str())) {
            return Err(UnzipError::Duplicate);
        }
        let bytes = entries.iter().fold(0_u64, |bytes, entry| bytes.saturating_add(entry.size));
        if bytes > limits.bytes {
            return Err(UnzipError::TooMuch(format!("{} bytes", limits.bytes)));
        }
        Ok(Self { zip, entries })
    }

    /// Returns everything in it.
    pub fn entries(&self) -> &[ArchiveEntry] {
        &self.entries
    }

    /// Reads a file: as many bytes as its entry says, or an error.
    pub fn read(&mut self, name: &str) -> Result<ZipContent<'_, R>, UnzipError> {
        let index = self.zip.index_for_name_raw(name.as_bytes()).ok_or(ZipError::FileNotFound)?;
        let file = self.zip.by_index(index)?;
        Ok(ZipContent { left: file.size(), file })
    }
}

/// Tells whether a file that begins like this is a ZIP archive.
pub fn is_zip(start: &[u8]) -> bool {
    MAGIC.iter().any(|magic| start.starts_with(magic))
}

/// How many bytes [`is_zip`] needs.
pub const MAGIC_LENGTH: u64 = 4;

fn check_magic<R: Read + Seek>(reader: &mut R) -> Result<(), UnzipError> {
    let mut start = Vec::new();
    reader.seek(SeekFrom::Start(0))?;
    reader.take(MAGIC_LENGTH).read_to_end(&mut start)?;
    reader.seek(SeekFrom::Start(0))?;
    if is_zip(&start) { Ok(()) } else { Err(UnzipError::NotZip) }
}

fn entry<R: Read>(file: &ZipFile<'_, R>) -> Result<ArchiveEntry, UnzipError> {
    let raw = file.name_raw();
    let wrong = |reason| UnzipError::Entry { name: one_line(&String::from_utf8_lossy(raw), 200), reason };
    let name = safe_name(raw).map_err(wrong)?;
    let is_directory = raw.ends_with(b"/");
    let kind = file.unix_mode().map_or(0, |mode| mode & KIND);
    // Packers on other systems leave the kind open.
    if !matches!((kind, is_directory), (0, _) | (DIRECTORY, true) | (REGULAR, false)) {
        return Err(wrong("it is a link or a special file"));
    }
    Ok(ArchiveEntry { name: name.to_owned(), size: file.size(), mode: file.unix_mode(), is_directory })
}

/// Returns a name without the slash that ends the name of a directory, if it leads downwards on every system.
fn safe_name(raw: &[u8]) -> Result<&str, &'static str> {
    let name = std::str::from_utf8(raw).map_err(|_| "its name is not UTF-8")?;
    // On Windows a backslash separates directories.
    if name.contains('\\') || name.chars().any(char::is_control) {
        return Err("its name holds a backslash or a control character");
    }
    let name = name.strip_suffix('/').unwrap_or(name);
    if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("its name leads elsewhere");
    }
    Ok(name)
}

/// The content of a file in an archive. The size in its entry is only what the packer says, so the bytes are counted.
#[derive(Debug)]
pub struct ZipContent<'a, R: Read> {
    file: ZipFile<'a, Rationed<R>>,
    left: u64,
}

impl<R: Read> Read for ZipContent<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let wrong = |what| io::Error::new(ErrorKind::InvalidData, what);
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| wrong("a file is longer than its entry says"))?;
        // An empty buffer reads nothing, which is not the end.
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(wrong("a file is shorter than its entry says"));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};
    use std::path::{Component, Path};

    use proptest::prelude::*;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    const LIMITS: UnzipLimits = UnzipLimits { entries: 3, bytes: 10 };

    /// An archive of files with these names, modes and contents.
    fn zip(entries: &[(&str, u32, &str)]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, mode, text) in entries {
            let options = SimpleFileOptions::default().unix_permissions(*mode);
            match (mode & KIND, name.ends_with('/')) {
                (0o120_000, _) => zip.add_symlink(*name, *text, options).unwrap(),
                (_, true) => zip.add_directory(*name, options).unwrap(),
                (_, false) => {
                    zip.start_file(*name, options).unwrap();
                    zip.write_all(text.as_bytes()).unwrap();
                }
            }
        }
        zip.finish().unwrap().into_inner()
    }

    fn open(bytes: Vec<u8>) -> Result<Archive<Cursor<Vec<u8>>>, UnzipError> {
        Archive::open(Cursor::new(bytes), LIMITS)
    }

    #[track_caller]
    fn refused(entries: &[(&str, u32, &str)], expected: &str) {
        assert_eq!(open(zip(entries)).unwrap_err().to_string(), expected);
    }

    #[test]
    fn an_honest_archive_is_read() {
        let mut archive = open(zip(&[("a/", 0o755, ""), ("a/b", 0o644, "hi"), ("c", 0o755, "")])).unwrap();
        let names: Vec<_> =
            archive.entries().iter().map(|e| (e.name.as_str(), e.size, e.is_directory)).collect();
        assert_eq!(names, [("a", 0, true), ("a/b", 2, false), ("c", 0, false)]);
        let mut text = String::new();
        archive.read("a/b").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "hi");
        assert!(matches!(archive.read("b"), Err(UnzipError::Broken(_))));
    }

    #[test]
    fn one_bad_entry_spoils_the_archive() {
        let good = ("good", 0o644, "");
        for name in ["../x", "a/../x", "/x", "a//b", "./a", "a/.", ".."] {
            refused(
                &[good, (name, 0o644, "")],
                &format!("its entry `{name}` is refused: its name leads elsewhere"),
            );
        }
        refused(
            &[("a\\b", 0o644, "")],
            "its entry `a\\b` is refused: its name holds a backslash or a control character",
        );
        refused(
            &[good, ("l", 0o120_777, "/etc")],
            "its entry `l` is refused: it is a link or a special file",
        );
        refused(&[("a", 0o644, ""), ("a/", 0o755, "")], "it has two entries of the same name");
    }

    #[test]
    fn two_entries_of_one_name_are_refused() {
        let mut bytes = zip(&[("one", 0o644, "x"), ("two", 0o644, "y")]);
        while let Some(at) = bytes.windows(3).position(|name| name == b"two") {
            bytes[at..at + 3].copy_from_slice(b"one");
        }
        assert!(matches!(open(bytes), Err(UnzipError::Duplicate)));
    }

    #[test]
    fn the_limits_hold_before_anything_is_read() {
        refused(&[("a", 0o644, "123456"), ("b", 0o644, "12345")], "it holds more than 10 bytes");
        let many = ["a", "b", "c", "d"].map(|name| (name, 0o644, ""));
        refused(&many, "it holds more than 3 entries");
    }

    #[test]
    fn a_list_that_is_too_long_is_not_read_to_its_end() {
        let names: Vec<String> = (0..30_000).map(|number| format!("{number}")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), 0o644, "")).collect();
        refused(&many, "it cannot be read: it has no list of at most 3 entries");
    }

    #[test]
    fn a_size_that_is_wrong_is_noticed() {
        let honest = zip(&[("bomb", 0o644, "12345")]);
        for wrong in [4_u32, 6] {
            let mut bytes = honest.clone();
            for at in (0..bytes.len() - 4).filter(|at| honest[*at..*at + 4] == 5_u32.to_le_bytes()) {
                bytes[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
            }
            let mut archive = open(bytes).unwrap();
            assert!(archive.read("bomb").unwrap().read_to_end(&mut Vec::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_a_zip_file_says_so() {
        for text in ["", "PK", "<html>"] {
            assert!(matches!(open(text.into()), Err(UnzipError::NotZip)), "{text}");
        }
        assert!(matches!(open("PK\x03\x04 but no more".into()), Err(UnzipError::Broken(_))));
    }

    proptest! {
        #[test]
        fn whatever_the_name_is_the_path_stays_below(name in "[a./\\\\\0-]{0,12}") {
            if let Ok(name) = safe_name(name.as_bytes()) {
                prop_assert!(Path::new(name).components().all(|part| matches!(part, Component::Normal(_))));
                prop_assert!(Path::new(name).components().next().is_some());
            }
        }
    }
}
