//! Reads the journal of a bundle and nothing else of it, in memory: for whoever looks at thousands of them.

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use super::manifest::Manifest;
use super::names;
use super::open::{Bundle, LIMITS, OpenError, archive, is_bundle, only, whole};
use crate::base::text::one_line;
use crate::files::unzip::Archive;

/// The largest journal, and the largest bundle in an artifact, that are read into memory, in bytes.
const MOST: u64 = 32 << 20;

/// What was read of a bundle.
pub(crate) struct JournalOnly {
    /// What the bundle says about itself.
    pub(crate) manifest: Manifest,
    /// The journal, compared with its digest.
    pub(crate) journal: Vec<u8>,
}

impl JournalOnly {
    /// Reads a bundle, or the one in an artifact. Nothing where it is too large for that.
    ///
    /// # Errors
    /// There is no bundle, or what is read of it is not what it says.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, OpenError> {
        let mut outer = archive(path, LIMITS)?;
        if outer.entries().iter().any(|entry| entry.name == names::MANIFEST) {
            return Self::of(outer);
        }
        let all = outer.entries().iter().map(|entry| &entry.name);
        let Some(name) = only(all.filter(|name| is_bundle(Path::new(name))))? else {
            let shown = one_line(&path.display().to_string(), 200);
            return Err(OpenError::NotABundle(format!("{shown} has no {}", names::MANIFEST)));
        };
        if outer.entries().iter().any(|entry| entry.name == name && entry.size > MOST) {
            return Ok(None);
        }
        let bytes = whole(outer.read(&name)?, &name, MOST)?;
        Self::of(Archive::open(Cursor::new(bytes), LIMITS)?)
    }

    fn of<R: Read + Seek>(archive: Archive<R>) -> Result<Option<Self>, OpenError> {
        let bundle = Bundle::new(archive)?;
        let is_large =
            |file: &super::manifest::ManifestEntry| file.name.as_str() == names::JOURNAL && file.size > MOST;
        if bundle.manifest.files.iter().any(is_large) {
            return Ok(None);
        }
        let manifest = bundle.manifest.clone();
        let journal = bundle.read(names::JOURNAL, MOST)?.expect("a bundle without a journal is not opened");
        Ok(Some(Self { manifest, journal }))
    }
}
