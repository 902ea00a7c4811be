//! When a run is made although it could be reused: so that a loop whose inputs are not all named is found out.

use super::key::ReuseKey;
use crate::base::sum::Sum;

/// Tells whether a run is made although it could be reused: one in `every`, by chance that depends on the run alone.
pub fn is_due(key: ReuseKey, run: &str, every: u32) -> bool {
    let sum = Sum::of(format!("{key} {run}").as_bytes()).to_string();
    let number = u64::from_str_radix(&sum[..8], 16).unwrap_or(0);
    number.is_multiple_of(u64::from(every.max(1)))
}

#[cfg(test)]
mod tests {
    use super::super::key::{PartSums, of_texts};
    use super::*;

    #[test]
    fn about_one_in_so_many_is_due() {
        let key = PartSums::all(of_texts([])).key();
        let due = |every| (0..5000).filter(|run| is_due(key, &format!("run-{run}"), every)).count();
        assert_eq!(due(1), 5000);
        assert!((60..140).contains(&due(50)), "{}", due(50));
    }
}
