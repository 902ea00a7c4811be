//! Plans for tests.

use super::item::Namer;
use super::item_plan::{FanoutLoop, Item, Plan, PlanParts, Skipped, WeightFrom};
use super::partition::{Partition, groups, legs};
use crate::base::name::{LoopName, VarName};
use crate::base::object::ObjectId;
use crate::base::relative::Line;
use crate::base::sum::Sum;
use crate::base::time::Timestamp;

/// A plan of so many items on at most so many legs, and so many that need not run.
pub(super) fn plan_of(count: usize, most: usize, skipped: usize) -> Plan {
    let mut namer = Namer::default();
    let mut id_of =
        |value: String| namer.name("tidy", &[(VarName::parse("p").unwrap(), value)].into()).unwrap();
    let items: Vec<Item> = (0..count)
        .map(|index| Item {
            id: id_of(format!("p{index}")),
            r#loop: LoopName::parse("tidy").unwrap(),
            params: [(VarName::parse("p").unwrap(), format!("p{index}"))].into(),
            scope: vec![format!("src/p{index}")],
            weight_ms: 1000,
            weight_from: WeightFrom::Default,
            proves: None,
        })
        .collect();
    let skipped = (0..skipped)
        .map(|index| Skipped { id: id_of(format!("s{index}")), reason: Line::of("nothing changed") });
    let skipped: Vec<Skipped> = skipped.collect();
    Plan::of(PlanParts {
        commit: ObjectId::parse(&"a".repeat(40)).unwrap(),
        differs: Vec::new(),
        created: Timestamp::from_millis(0),
        loops: vec![FanoutLoop {
            name: LoopName::parse("tidy").unwrap(),
            definition_sha256: Sum::of(b"tidy"),
            file: None,
        }],
        legs: legs(&items, &groups(&items), Some(most), Partition::Lpt),
        items,
        skipped,
        reused: Vec::new(),
        reason: None,
    })
}
