//! Opens files that strangers may supply. Only a regular file is opened, for a pipe waits for who is at its other end
//! and a device may do anything; and no more is read than the caller allows.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

/// A mebibyte, the unit of limits.
pub const MIB: u64 = 1024 * 1024;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// There is nothing.
    #[error("there is no such file")]
    Absent,
    /// It is not a regular file.
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    /// The file is larger than the caller allows.
    #[error("it is larger than {}", size(*limit))]
    TooLarge {
        /// What the caller allows, in bytes.
        limit: u64,
    },
    /// The file is not UTF-8 text.
    #[error("it is not UTF-8: line {line}, byte {column} is wrong")]
    NotUtf8 {
        /// The line of the first wrong byte.
        line: usize,
        /// Its place in the line.
        column: usize,
    },
    /// The system refuses.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
        if is_absent { Self::Absent } else { Self::Io(error) }
    }
}

impl From<Unread> for io::Error {
    fn from(unread: Unread) -> Self {
        let kind = match unread {
            Unread::Io(error) => return error,
            Unread::Absent => ErrorKind::NotFound,
            Unread::NotAFile(_) => ErrorKind::InvalidInput,
            Unread::TooLarge { .. } => ErrorKind::FileTooLarge,
            Unread::NotUtf8 { .. } => ErrorKind::InvalidData,
        };
        Self::new(kind, unread.to_string())
    }
}

/// Opens a regular file. What it is is asked before, so that nothing else is ever opened, and once more of what was
/// opened, for another one may have taken its place meanwhile.
pub fn open(path: &Path) -> Result<File, Unread> {
    is_file(&fs_err::metadata(path)?)?;
    checked(path, fs_err::OpenOptions::new().read(true), OFlags::empty())
}

/// Opens a regular file in another way than for reading alone; where `options` say so, it is made. Errors have its
/// name.
pub fn open_with(path: &Path, options: &mut fs_err::OpenOptions, flags: OFlags) -> io::Result<File> {
    let named = |unread: Unread| {
        let error = io::Error::from(unread);
        io::Error::new(error.kind(), format!("cannot open `{}`: {error}", path.display()))
    };
    match fs_err::metadata(path) {
        Ok(metadata) => is_file(&metadata).map_err(named)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    checked(path, options, flags).map_err(named)
}

/// Opens a regular file that is not a link, for a stranger may have put one there.
pub fn unlinked(path: &Path) -> io::Result<File> {
    open_with(path, fs_err::OpenOptions::new().read(true), OFlags::NOFOLLOW)
}

/// Opens a regular file to write at its end, and makes it where there is none.
pub fn append(path: &Path) -> io::Result<File> {
    open_with(path, fs_err::OpenOptions::new().append(true).create(true), OFlags::empty())
}

/// Opens a directory, to lock it or to ask what it is.
pub fn directory(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, a pipe that took the place of the directory would hold up the open.
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    let opened = fs_err::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    Ok(opened.into_parts().0)
}

/// Copies a regular file with its mode over whatever regular file is there.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open(from)?;
    let mut target =
        open_with(to, fs_err::OpenOptions::new().write(true).create(true).truncate(true), OFlags::empty())?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(source.metadata()?.permissions())
}

fn checked(path: &Path, options: &mut fs_err::OpenOptions, flags: OFlags) -> Result<File, Unread> {
    // A pipe that took the place of the file since the look would hold up the open, and a terminal
    // would become ours.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    is_file(&file.metadata()?)?;
    Ok(file.into_parts().0)
}

/// Reads a file of at most `limit` bytes.
pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Unread> {
    let file = open(path)?;
    if file.metadata()?.len() > limit {
        return Err(Unread::TooLarge { limit });
    }
    // One byte more than allowed, because the file may have grown since its length was asked.
    let bytes = taken(file, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit { Err(Unread::TooLarge { limit }) } else { Ok(bytes) }
}

/// Reads a text of at most `limit` bytes.
pub fn text(path: &Path, limit: u64) -> Result<String, Unread> {
    String::from_utf8(bytes(path, limit)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let line = before.split(|byte| *byte == b'\n').count();
        Unread::NotUtf8 { line, column: before.len() - start + 1 }
    })
}

/// Reads the first `limit` bytes of a file of any size.
pub fn head(path: &Path, limit: u64) -> Result<Vec<u8>, Unread> {
    Ok(taken(open(path)?, limit)?)
}

fn taken(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_file(metadata: &Metadata) -> Result<(), Unread> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    Err(Unread::NotAFile(kind_of(metadata)))
}

/// Names what stands in a place.
fn kind_of(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => "a file",
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

/// Names what stands in the place of a file or directory and is neither.
pub fn special(path: &Path) -> Option<&'static str> {
    let metadata = fs_err::metadata(path).ok()?;
    (!metadata.is_file() && !metadata.is_dir()).then(|| kind_of(&metadata))
}

/// Names what stands in the place of a directory without being one.
pub fn no_directory(path: &Path) -> Option<&'static str> {
    let metadata = fs_err::metadata(path).ok()?;
    (!metadata.is_dir()).then(|| kind_of(&metadata))
}

/// Writes a limit as people read it.
fn size(bytes: u64) -> String {
    match bytes {
        MIB.. => format!("{} MiB", bytes / MIB),
        _ => format!("{} KiB", bytes / 1024),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn nothing_but_a_regular_file_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        // Opening a pipe without a writer, or a terminal, could block.
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink("pipe", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let said = |name: &str| bytes(&at(name), 10).unwrap_err().to_string();
        assert_eq!(said("."), "it is a directory, not a file");
        assert_eq!(said("pipe"), "it is a pipe, not a file");
        assert_eq!(said("link"), "it is a pipe, not a file");
        assert_eq!(said("socket"), "it is a socket, not a file");
        assert_eq!(said("zero"), "it is a device, not a file");
        assert_eq!(said("dangling"), "there is no such file");
        assert_eq!(said("pipe/below"), "there is no such file");
    }

    #[test]
    fn no_more_is_read_than_is_allowed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        assert!(matches!(bytes(file.path(), MIB), Err(Unread::TooLarge { limit: MIB })));
        assert_eq!(head(file.path(), 7).unwrap(), [0; 7]);
        // What the system makes up as it is read has no size.
        assert!(matches!(bytes(Path::new("/proc/self/status"), 8), Err(Unread::TooLarge { limit: 8 })));
    }

    #[test]
    fn a_file_that_is_no_text_says_where() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), b"one\ntw\xff").unwrap();
        assert_eq!(text(file.path(), 9).unwrap_err().to_string(), "it is not UTF-8: line 2, byte 3 is wrong");
    }
}
