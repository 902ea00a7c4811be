//! The loops that a journal is in at an event, one inside of the other, with what its reader keeps of each.

/// How deep loops are followed. A run nests half as many (`DEEPEST` of `run::sub_loop`); a journal that
/// somebody changed may claim any depth, and must not cost memory for it.
const FOLLOWED: usize = 32;

/// What a reader of a journal keeps of each loop that runs, the outermost first.
#[derive(Clone, Debug)]
pub struct LoopStack<T> {
    levels: Vec<T>,
}

impl<T> Default for LoopStack<T> {
    fn default() -> Self {
        Self { levels: Vec::new() }
    }
}

impl<T> LoopStack<T> {
    /// Tells whether a loop can begin at a depth: the one around it has begun. A journal that somebody changed may begin
    /// in a sub-loop.
    pub fn reaches(&self, depth: u32) -> bool {
        depth as usize <= self.levels.len() && (depth as usize) < FOLLOWED
    }

    /// Begins a loop in place of the one that was there and of all that it ran. Where none can begin, nothing changes.
    pub fn begin(&mut self, depth: u32, level: T) {
        if self.reaches(depth) {
            self.levels.truncate(depth as usize);
            self.levels.push(level);
        }
    }

    /// Forgets the loops inside of the one at a depth, whose state was left.
    pub fn leave_inner(&mut self, depth: u32) {
        self.levels.truncate((depth as usize).saturating_add(1));
    }

    /// Returns the loop at a depth.
    pub fn at(&self, depth: u32) -> Option<&T> {
        self.levels.get(depth as usize)
    }

    /// Returns the loop at a depth, to take an event.
    pub fn at_mut(&mut self, depth: u32) -> Option<&mut T> {
        self.levels.get_mut(depth as usize)
    }

    /// Returns the loop at a depth, and the one that it runs.
    pub fn with_inner(&mut self, depth: u32) -> Option<(&mut T, Option<&mut T>)> {
        let (level, inner) = self.levels.get_mut(depth as usize..)?.split_first_mut()?;
        Some((level, inner.first_mut()))
    }

    /// Returns the loops around one at a depth, from the inside out; none where the one next to it has not begun.
    pub fn around(&self, depth: u32) -> impl Iterator<Item = &T> {
        self.levels.get(..depth as usize).into_iter().flatten().rev()
    }

    /// Returns the loops as far as this depth, the outermost first.
    pub fn path(&self, depth: u32) -> &[T] {
        self.levels.get(..=depth as usize).unwrap_or(&self.levels)
    }

    /// Returns all of them, the outermost first.
    pub fn levels(&self) -> &[T] {
        &self.levels
    }

    /// Takes all of them, the outermost first.
    pub fn into_levels(self) -> Vec<T> {
        self.levels
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_loop_takes_the_place_of_the_one_before_and_of_what_that_ran() {
        let mut stack = LoopStack::default();
        for (depth, name) in [(0, "run"), (1, "kid"), (2, "grandkid"), (1, "other")] {
            stack.begin(depth, name);
        }
        assert_eq!(stack.levels(), ["run", "other"]);
        stack.begin(3, "from nowhere");
        assert_eq!(stack.path(3), ["run", "other"]);
        assert_eq!(stack.around(2).copied().collect::<Vec<_>>(), ["other", "run"]);
        assert_eq!(stack.around(4).next(), None);
        assert_eq!(stack.with_inner(0), Some((&mut "run", Some(&mut "other"))));
        stack.leave_inner(0);
        assert_eq!((stack.at(0), stack.at(1)), (Some(&"run"), None));
    }

    proptest! {
        #[test]
        fn no_journal_makes_it_deeper_than_it_is_followed(depths in prop::collection::vec(any::<u32>(), 0..20)) {
            let mut stack = LoopStack::default();
            let falling = (0..100_u32).chain(depths);
            for depth in falling {
                stack.begin(depth, depth);
                stack.leave_inner(depth);
                prop_assert!(stack.levels().len() <= FOLLOWED);
                prop_assert!(stack.levels().iter().enumerate().all(|(at, level)| at == *level as usize));
            }
        }
    }
}
