//! What an answer took, by the kinds of tokens that have prices of their own.

/// Counts of tokens. No token is in two of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Read by the model, and in no cache.
    pub input: u64,
    /// Read from a cache.
    pub cached: u64,
    /// Read and written to a cache for some minutes.
    pub written: u64,
    /// Read and written to a cache for an hour.
    pub written_for_an_hour: u64,
    /// Written by the model, its thoughts included.
    pub output: u64,
}

impl TokenCounts {
    /// Returns everything that the model read.
    pub fn read(&self) -> u64 {
        [self.input, self.cached, self.written, self.written_for_an_hour]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Returns all of them.
    pub fn all(&self) -> u64 {
        self.read().saturating_add(self.output)
    }

    /// Takes the larger of each count. A service says the counts of an answer several times while it streams, and they
    /// only grow.
    #[must_use]
    pub fn or_more(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    /// Adds the counts of another answer.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            input: of(self.input, other.input),
            cached: of(self.cached, other.cached),
            written: of(self.written, other.written),
            written_for_an_hour: of(self.written_for_an_hour, other.written_for_an_hour),
            output: of(self.output, other.output),
        }
    }
}
