//! Which records have to go so that the store stays within its bounds: the oldest first.

/// The most records.
pub const MOST_RECORDS: usize = 10_000;

/// The most bytes of all records.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// A file of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile<P> {
    /// Where it is.
    pub place: P,
    /// Its size, in bytes.
    pub bytes: u64,
    /// When it was written, in milliseconds.
    pub written: i64,
}

/// Returns what has to go.
pub fn evicted<P>(mut all: Vec<StoredFile<P>>) -> Vec<StoredFile<P>> {
    all.sort_by_key(|file| std::cmp::Reverse(file.written));
    let mut bytes = 0_u64;
    let mut kept = 0;
    for file in &all {
        bytes = bytes.saturating_add(file.bytes);
        // What stands behind the first that does not fit is older, and goes as well, even where it is smaller.
        if kept == MOST_RECORDS || bytes > MOST_BYTES {
            break;
        }
        kept += 1;
    }
    all.split_off(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let file = |written, bytes| StoredFile { place: written, bytes, written };
        let many = (0..i64::try_from(MOST_RECORDS).unwrap() + 3).map(|written| file(written, 1)).collect();
        let gone: Vec<i64> = evicted(many).into_iter().map(|file| file.place).collect();
        assert_eq!(gone, [2, 1, 0]);
        let large = vec![file(1, MOST_BYTES / 2), file(3, MOST_BYTES / 2), file(2, MOST_BYTES / 2)];
        assert_eq!(evicted(large).into_iter().map(|file| file.place).collect::<Vec<_>>(), [1]);
        assert!(evicted(Vec::<StoredFile<i64>>::new()).is_empty());
    }
}
