//! What Python has compiled: it runs instead of its source, as long as its header says that it was made of it. A header says
//! what its writer wants, so a planted one runs other tests than those that everybody reads.

use super::judge_catalog::{CATALOG, JudgeKind};
use super::tree::extension;

/// How long a header is.
pub const HEADER: usize = 16;

/// Bits of a header's flags: a digest of the source stands in it, and it is compared.
const BY_DIGEST: u32 = 1;
const IS_COMPARED: u32 = 2;

/// What a header says of the source (PEP 552).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiled {
    /// Nothing: it runs whatever the source is.
    Unchecked,
    /// The digest of the source, which is compared each time.
    OfDigest,
    /// The time of the source's last change, in seconds, and its length, both without their upper bits.
    OfTime {
        /// The seconds.
        time: u32,
        /// The bytes.
        length: u32,
    },
}

impl Compiled {
    /// Reads a header. Nothing of what is shorter is run.
    pub fn of(header: [u8; HEADER]) -> Self {
        // Words of four bytes: which Python, flags, and two that the flags explain.
        let (words, []) = header.as_chunks::<4>() else { return Self::Unchecked };
        let [_, flags, time, length] = [0, 1, 2, 3].map(|at| u32::from_le_bytes(words[at]));
        match flags {
            0 => Self::OfTime { time, length },
            flags if flags & BY_DIGEST != 0 && flags & IS_COMPARED != 0 => Self::OfDigest,
            // Python itself writes no others, and what it makes of them is its own affair.
            _ => Self::Unchecked,
        }
    }
}

/// Tells whether a path is that of something compiled that lies where Python looks for it beside a source.
pub fn is_bytecode(path: &str) -> bool {
    // Asked of every file that git does not track, most of which need no look at the catalogue.
    extension(path) == Some("pyc") && CATALOG.file(path).is_some_and(|row| row.kind == JudgeKind::Compiled)
}

/// Returns the path of the source: `a/__pycache__/b.cpython-311.pyc` is made of `a/b.py`.
pub fn source(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (above, "__pycache__") = folder.rsplit_once('/').unwrap_or(("", folder)) else { return None };
    // A module has no dot in its name; what follows says which Python compiled it, and for whom.
    let (module, _) = name.split_once('.')?;
    Some(if above.is_empty() { format!("{module}.py") } else { format!("{above}/{module}.py") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(flags: u32, time: u32, length: u32) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        for (at, word) in [(4, flags), (8, time), (12, length)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn only_a_header_that_is_compared_ties_it_to_its_source() {
        assert_eq!(Compiled::of(header(0, 7, 9)), Compiled::OfTime { time: 7, length: 9 });
        assert_eq!(Compiled::of(header(1, 7, 9)), Compiled::Unchecked);
        assert_eq!(Compiled::of(header(3, 7, 9)), Compiled::OfDigest);
        assert_eq!(Compiled::of(header(4, 7, 9)), Compiled::Unchecked);
    }

    #[test]
    fn its_source_lies_beside_its_folder() {
        for (path, expected) in [
            ("a/__pycache__/b.cpython-311.pyc", Some("a/b.py")),
            ("__pycache__/b.cpython-311-pytest-8.0.2.pyc", Some("b.py")),
            ("a/b/__pycache__/__init__.cpython-313.opt-1.pyc", Some("a/b/__init__.py")),
            ("a/b.pyc", None),
            ("b.pyc", None),
        ] {
            assert_eq!(source(path).as_deref(), expected, "{path}");
            assert_eq!(is_bytecode(path), expected.is_some(), "{path}");
        }
    }
}
