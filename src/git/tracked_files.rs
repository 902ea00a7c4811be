//! Asks git which files its index has, with the flags that tell it not to look at some of them, and reads the answer.

use super::call::Call;

/// Asks for the files of the whole repository, wherever in it the call is made. They come with their flags and their
/// objects, so that nobody who looks at a tree has to ask twice.
pub(crate) fn call() -> Call {
    Call::new("ls-files").with(&["-v", "--stage", "-z", "--full-name"]).path(":/")
}

/// An entry of the index.
pub(crate) struct TrackedFile<'p> {
    /// The path from the top of the working tree.
    pub(crate) path: &'p [u8],
    /// Mode, id and stage, with a space between them.
    pub(crate) content: &'p [u8],
    tag: u8,
}

impl<'p> TrackedFile<'p> {
    /// Returns the mode, in digits.
    pub(crate) fn mode(&self) -> &'p [u8] {
        self.content.split(|byte| *byte == b' ').next().unwrap_or(self.content)
    }

    /// Tells whether it is a submodule.
    pub(crate) fn is_submodule(&self) -> bool {
        self.mode() == b"160000"
    }

    /// Tells whether git looks at the file. It does not where it was told to assume that the file is unchanged, or that a
    /// sparse checkout leaves it out.
    pub(crate) fn is_seen(&self) -> bool {
        self.tag.is_ascii_uppercase() && !self.is_sparse()
    }

    /// Tells whether a sparse checkout leaves the file out.
    pub(crate) fn is_sparse(&self) -> bool {
        // Both flags have letters of their own, and either may come with the other.
        self.tag.eq_ignore_ascii_case(&b's')
    }
}

/// Reads what [`call`] asks for.
pub(crate) fn read(printed: &[u8]) -> impl Iterator<Item = TrackedFile<'_>> {
    printed.split(|byte| *byte == 0).filter_map(|line| {
        let [tag, b' ', rest @ ..] = line else { return None };
        let tab = rest.iter().position(|byte| *byte == b'\t')?;
        Some(TrackedFile { path: &rest[tab + 1..], content: &rest[..tab], tag: *tag })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_with_its_flags() {
        let printed = b"H 100644 aa 0\ta b\0h 100755 bb 0\tc\0S 120000 cc 0\td\te\0s 160000 dd 0\tf\0M 100644 ee 2\tg\0";
        let found: Vec<_> =
            read(printed).map(|file| (file.path, file.mode(), file.is_seen(), file.is_sparse())).collect();
        let expected: [(&[u8], &[u8], bool, bool); 5] = [
            (b"a b", b"100644", true, false),
            (b"c", b"100755", false, false),
            (b"d\te", b"120000", false, true),
            (b"f", b"160000", false, true),
            (b"g", b"100644", true, false),
        ];
        assert_eq!(found, expected);
    }
}
