//! Choices of a walk: at random and the same for the same seed, or given.

/// Where choices come from, and those that were made.
#[derive(Clone, Debug)]
pub struct Choices {
    given: Option<Vec<u32>>,
    state: u64,
    taken: Vec<u32>,
}

impl Choices {
    /// Makes the choices of a walk of a seed.
    pub fn random(seed: u64, walk: u64) -> Self {
        // Numbers that lie beside each other begin far from each other.
        let state = mixed(seed ^ mixed(walk.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        Self { given: None, state, taken: Vec::new() }
    }

    /// Makes these choices, and then the first of each.
    pub fn given(choices: Vec<u32>) -> Self {
        Self { given: Some(choices), state: 0, taken: Vec::new() }
    }

    /// Returns the choices that were made.
    pub fn taken(&self) -> &[u32] {
        &self.taken
    }

    /// Chooses one of so many, from 0.
    pub fn below(&mut self, count: usize) -> usize {
        // One at least: a remainder of zero is a panic, and a state may have no choices.
        let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let choice = if let Some(given) = &self.given {
            // A walk that was made shorter meets its choices at other places, where there may be fewer to choose from.
            given.get(self.taken.len()).copied().unwrap_or(0) % count
        } else {
            // 2^64 by the golden ratio, the step of `SplitMix64`: being odd, it comes to every state before one comes again.
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            u32::try_from(mixed(self.state) % u64::from(count)).unwrap_or(0)
        };
        self.taken.push(choice);
        choice as usize
    }
}

/// `SplitMix64`, the usual way to make well spread numbers of a counter.
fn mixed(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let all = |mut choices: Choices| (0..20).map(|_| choices.below(7)).collect::<Vec<_>>();
        assert_eq!(all(Choices::random(1, 2)), all(Choices::random(1, 2)));
        assert_ne!(all(Choices::random(1, 2)), all(Choices::random(1, 3)));
        let mut made = Choices::random(5, 0);
        let first: Vec<usize> = (0..20).map(|_| made.below(7)).collect();
        assert_eq!(all(Choices::given(made.taken().to_vec())), first);
    }
}
