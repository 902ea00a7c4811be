//! How closely the keys of evaluators are looked at when a file is read: a hostile file must not take long.

/// What is left of the effort for one file. When it is used up, the remaining patterns are not checked at load; the
/// run reports their faults.
#[derive(Debug)]
pub struct PatternEffort(usize);

impl PatternEffort {
    /// What a class of signs in a pattern takes.
    pub(super) const CLASS: usize = 50;

    /// What a class takes in which case does not matter.
    pub(super) const FOLDED_CLASS: usize = 2_000;

    /// What a repetition in a pattern takes, which may be one of something long.
    pub(super) const REPETITION: usize = 5_000;

    /// What a pattern takes that needs much memory: one of them is looked at to its end.
    pub(super) const LARGE_PATTERN: usize = 400_000;

    /// What a jq expression takes beside its length.
    pub(super) const QUERY: usize = 20_000;

    /// Makes what is there for a whole file: enough for hundreds of ordinary patterns and dozens of jq expressions.
    pub fn new() -> Self {
        Self(500_000)
    }

    /// Takes some of it, if there is as much.
    pub(super) fn spend(&mut self, effort: usize) -> bool {
        let left = self.0.checked_sub(effort);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

impl Default for PatternEffort {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone() {
        let mut effort = PatternEffort::new();
        assert!(effort.spend(499_999) && !effort.spend(2) && effort.spend(1) && !effort.spend(1));
    }
}
