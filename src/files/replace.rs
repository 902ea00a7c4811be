//! Writes files whole: half a file is never seen, and a link that somebody put in the place is replaced and not
//! written through.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::{read, transient};

/// Replaces whatever has this name by a file with this content.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace_with(path, |file| file.write_all(content.as_ref()))
}

/// The same for a content that is written piece by piece. The old file stays until all of it is written.
pub fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot write `{}`: {error}", path.display()))
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Beside its place, not among the temporary files: a rename does not cross file systems.
    // With the mode of any new file, less what the umask takes away: a temporary one would be its owner's alone.
    let mut file = transient::file_in(0o666, directory).map_err(named)?;
    write(file.as_file_mut()).map_err(named)?;
    // Who may read a file stays the same; what a link leads to says nothing about its place.
    if let Some(before) = fs_err::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file) {
        file.as_file().set_permissions(before.permissions()).map_err(named)?;
    }
    file.persist(path).map_err(|error| named(error.error))?;
    Ok(())
}

/// Makes a file, unless the name exists already, even as a dangling link.
pub fn create(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create_with(path, |file| file.write_all(content.as_ref()))
}

fn create_with(path: &Path, write: impl FnOnce(&mut fs_err::File) -> io::Result<()>) -> io::Result<()> {
    // `create_new` also fails at a dangling link, which a plain create would follow.
    match fs_err::OpenOptions::new().write(true).create_new(true).open(path) {
        // The next one would take half a file, as a full disk leaves it, for the whole.
        Ok(mut file) => write(&mut file).inspect_err(|_| {
            let _stays = fs_err::remove_file(path);
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes what a person named a place for: into a pipe or a device, such as `/dev/stdout`, and else a whole file.
pub fn deliver(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let is_stream = fs_err::symlink_metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        // `/dev/stdout` is a link to the output of this process; any other link is replaced, never
        // followed: in `/dev/shm`, anybody can make one.
        let is_of_the_system = path.parent().is_some_and(|parent| {
            parent == Path::new("/dev") || parent == Path::new("/dev/fd") || parent.starts_with("/proc")
        });
        kind.is_fifo() || kind.is_char_device() || (kind.is_symlink() && is_of_the_system)
    });
    if is_stream {
        // Opened anew, a file that stands behind it would be written from its beginning, over what was printed before.
        return match path.to_str() {
            Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => {
                whole(&mut io::stdout().lock(), content.as_ref())
            }
            Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => {
                whole(&mut io::stderr().lock(), content.as_ref())
            }
            Some(_) | None => stream(path)?.write_all(content.as_ref()),
        };
    }
    if let Some(kind) = read::special(path) {
        let why = format!("`{}` is {kind}, not a file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    replace(path, content)
}

fn whole(output: &mut dyn io::Write, content: &[u8]) -> io::Result<()> {
    output.write_all(content)?;
    output.flush()
}

/// Opens a pipe or a device. A pipe that nobody reads is refused: its reader may never come.
fn stream(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NXIO => {
            let why = format!("nobody reads from `{}`", path.display());
            io::Error::new(io::ErrorKind::InvalidInput, why)
        }
        error => error.into(),
    })?;
    // It was non-blocking for the open alone; the reader may well be slower than the writer.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_planted_link_is_replaced_and_not_written_through() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs_err::write(at("victim"), "mine").unwrap();
        symlink("victim", at("link")).unwrap();
        symlink("absent", at("dangling")).unwrap();
        for name in ["link", "dangling", "new"] {
            replace(&at(name), "report").unwrap();
            assert!(fs_err::symlink_metadata(at(name)).unwrap().is_file());
            assert_eq!(fs_err::read_to_string(at(name)).unwrap(), "report");
        }
        assert_eq!(fs_err::read_to_string(at("victim")).unwrap(), "mine");
        assert!(!at("absent").exists());
        assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_file_that_cannot_be_written_whole_stays_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        replace(&path, "before").unwrap();
        fs_err::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let failed = replace_with(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "before");
        replace(&path, "after").unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_there_is_kept_by_who_only_makes_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        symlink("absent", at("dangling")).unwrap();
        for name in ["dangling", "new", "new"] {
            create(&at(name), "made").unwrap();
        }
        assert!(!at("absent").exists());
        assert_eq!(fs_err::read_to_string(at("new")).unwrap(), "made");
    }

    #[test]
    fn a_file_that_cannot_be_made_whole_is_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let failed = create_with(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        create(&path, "whole").unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "whole");
    }

    #[test]
    fn a_link_in_shared_memory_is_replaced_and_not_written_through() {
        let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
        let at = |name: &str| directory.path().join(name);
        fs_err::write(at("victim"), "mine").unwrap();
        symlink("victim", at("link")).unwrap();
        deliver(&at("link"), "report").unwrap();
        assert!(fs_err::symlink_metadata(at("link")).unwrap().is_file());
        assert_eq!(fs_err::read_to_string(at("victim")).unwrap(), "mine");
    }

    #[test]
    fn a_device_that_is_named_is_written_to() {
        deliver(Path::new("/dev/null"), "text").unwrap();
        assert!(fs_err::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
