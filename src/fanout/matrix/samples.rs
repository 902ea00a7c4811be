//! Plans for the tests of the formats.

use super::job_format::{Fleet, JobSite};
use crate::base::name::{LoopName, VarName};
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::fanout::item::{ItemId, LegKey};
use crate::fanout::item_plan::{FanoutLoop, Item, Leg, Plan, PlanParts, WeightFrom};

/// Values of strangers that shells, YAML and CI systems would obey.
pub(super) const HOSTILE: &[&str] = &[
    "packages/$(touch pwned)",
    "packages/${{ github.token }}",
    "packages/{{ matrix }}",
    "packages/a\nb: c",
    "packages/it's \"so\"",
    "packages/`touch pwned`",
    "packages/$HOME",
    "!reference [a, b]",
    ".hidden",
    "*alias",
    "",
];

/// Returns a plan with an item and a leg for each value, whose scope is the value.
pub(super) fn plan_of(values: &[&str]) -> Plan {
    let item = |(index, value): (usize, &&str)| Item {
        id: ItemId::parse(&format!("tidy.{index}")).unwrap(),
        r#loop: LoopName::parse("tidy").unwrap(),
        params: [(VarName::parse("path").unwrap(), (*value).to_owned())].into(),
        scope: vec![(*value).to_owned()],
        weight_ms: 1000,
        weight_from: WeightFrom::Default,
        proves: None,
    };
    let items: Vec<Item> = values.iter().enumerate().map(item).collect();
    let leg = |(index, item): (usize, &Item)| Leg {
        key: LegKey::parse(&format!("l{:02}", index + 1)).unwrap(),
        items: vec![item.id.clone()],
        estimate_ms: 1000,
    };
    Plan::of(PlanParts {
        commit: ObjectId::parse(&"a".repeat(40)).unwrap(),
        differs: Vec::new(),
        created: Timestamp::from_millis(0),
        loops: vec![FanoutLoop {
            name: LoopName::parse("tidy").unwrap(),
            definition_sha256: Sum::of(b"tidy"),
            file: None,
        }],
        legs: items.iter().enumerate().map(leg).collect(),
        items,
        skipped: Vec::new(),
        reused: Vec::new(),
        reason: None,
    })
}

/// Returns a plan with so many legs.
pub(super) fn plan_of_legs(count: usize) -> Plan {
    let values: Vec<String> = (0..count).map(|index| format!("packages/{index}")).collect();
    plan_of(&values.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the jobs of all legs, in a place that has all there can be.
pub(super) fn fleet(plan: &Plan) -> Fleet<'_> {
    let place = JobSite {
        repo_claim: Some("checkout".to_owned()),
        claim: Some("reports".to_owned()),
        plan: "plan.json".to_owned(),
        ..JobSite::default()
    };
    Fleet::of(plan, place, |_| true)
}
