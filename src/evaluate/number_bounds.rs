//! The ranges of numbers in the keys of evaluators: a number outside of its range does not load.

use crate::base::decode::{Bounds, Least, ranged};

/// More visits than this are a typing mistake.
const MOST_VISITS: f64 = 1e9;

ranged! {
    /// How many visits in a row mean something.
    pub struct VisitCount(i32) in Bounds::whole(1.0, MOST_VISITS, "a whole number from 1 to 1,000,000,000")
}

impl VisitCount {
    /// One visit.
    pub(super) const ONE: Self = Self(1);

    /// Two visits.
    pub(super) const TWO: Self = Self(2);

    /// Five visits.
    pub const FIVE: Self = Self(5);
}

ranged! {
    /// The exit code of an action.
    pub struct ExitStatus(i32) in Bounds::whole(0.0, 255.0, "an exit code, a whole number from 0 to 255")
}

ranged! {
    /// A difference that still counts as none.
    pub struct Margin(f64) in Bounds {
        expected: "a number of at least 0",
        is_whole: false,
        least: Least::At(0.0),
        most: None,
    }
}

impl Margin {
    /// No difference.
    pub(super) const NONE: Self = Self(0.0);

    /// Half of one.
    pub(super) const HALF: Self = Self(0.5);
}

ranged! {
    /// How sure somebody is.
    pub struct Confidence(f64) in Bounds {
        expected: "a number from 0 to 1",
        is_whole: false,
        least: Least::At(0.0),
        most: Some(1.0),
    }
}

impl Confidence {
    /// As sure as not.
    pub(super) const HALF: Self = Self(0.5);
}

ranged! {
    /// A score out of a hundred.
    pub struct Points(f64) in Bounds {
        expected: "a number from 0 to 100",
        is_whole: false,
        least: Least::At(0.0),
        most: Some(100.0),
    }
}

impl Points {
    /// What is good enough by default.
    pub const APPROVED: Self = Self(70.0);

    /// What can be made good enough by default.
    pub const REVISED: Self = Self(50.0);
}
