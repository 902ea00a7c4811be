//! Spreads loops over values: one item for each loop and each combination of the values that it takes.

use std::collections::{BTreeMap, BTreeSet};

use super::MOST_ITEMS;
use crate::base::name::VarName;

/// The values of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The parameter.
    pub name: VarName,
    /// Its values, each once.
    pub values: Vec<String>,
}

impl Dimension {
    /// Takes each value once. Returns how many came again.
    pub fn of(name: VarName, values: Vec<String>) -> (Self, usize) {
        let mut seen = BTreeSet::new();
        let all = values.len();
        let values: Vec<String> = values.into_iter().filter(|value| seen.insert(value.clone())).collect();
        let doubles = all - values.len();
        (Self { name, values }, doubles)
    }
}

/// More items than a plan has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these values make more than {MOST_ITEMS} items")]
pub struct TooMany;

/// Combines the values of these parameters; the last one changes first.
///
/// # Errors
/// There are more combinations than a plan has items.
pub fn product(dimensions: &[&Dimension]) -> Result<Vec<BTreeMap<VarName, String>>, TooMany> {
    // Counted before anything is made: a few long lists are enough to fill the memory.
    let count = dimensions.iter().try_fold(1_usize, |count, dimension| {
        count.checked_mul(dimension.values.len()).filter(|count| *count <= MOST_ITEMS)
    });
    // A parameter without values leaves no combination, however many the others have.
    let is_none = dimensions.iter().any(|dimension| dimension.values.is_empty());
    if is_none {
        return Ok(Vec::new());
    }
    count.ok_or(TooMany)?;
    let mut all = vec![BTreeMap::new()];
    for dimension in dimensions {
        let longer = |params: &BTreeMap<VarName, String>| {
            let params = params.clone();
            dimension.values.iter().map(move |value| {
                let mut params = params.clone();
                params.insert(dimension.name.clone(), value.clone());
                params
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(name: &str, values: &[&str]) -> Dimension {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Dimension::of(VarName::parse(name).unwrap(), values).0
    }

    fn shown(dimensions: &[&Dimension]) -> Vec<String> {
        let all = product(dimensions).unwrap();
        all.into_iter().map(|params| params.into_values().collect::<Vec<_>>().join("-")).collect()
    }

    #[test]
    fn two_parameters_make_the_product() {
        let (a, b) = (dimension("a", &["1", "2", "1"]), dimension("b", &["x", "y"]));
        assert_eq!(shown(&[&a, &b]), ["1-x", "1-y", "2-x", "2-y"]);
        assert_eq!(shown(&[]), [""]);
        assert_eq!(shown(&[&a, &dimension("c", &[])]), Vec::<String>::new());
    }

    #[test]
    fn doubles_are_counted() {
        let name = VarName::parse("a").unwrap();
        assert_eq!(Dimension::of(name, ["x", "x", "y", "x"].map(str::to_owned).to_vec()).1, 2);
    }

    #[test]
    fn too_many_are_refused_before_they_are_made() {
        let many: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
        let (many, _) = Dimension::of(VarName::parse("a").unwrap(), many);
        assert_eq!(product(&[&many]).unwrap().len(), 10_000);
        assert_eq!(product(&[&many, &dimension("b", &["1", "2"])]), Err(TooMany));
        assert_eq!(product(&[&many, &many, &many, &many, &many, &many]), Err(TooMany));
    }
}
