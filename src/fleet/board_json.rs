//! A board for programs: `schema/board.schema.json`.

use serde_json::{Value, json};

use super::board_rows::{FleetBoard, FleetRow};
use super::loop_deliveries::LoopDeliveries;
use crate::base::time::Timestamp;
use crate::report::delivery_fates::FixCost;

/// The version of this format; it grows when a reader has to know.
const SCHEMA: u32 = 1;

/// Writes a board as it was at a time.
pub fn json(board: &FleetBoard, now: Timestamp) -> Value {
    json!({"schema": SCHEMA, "at": now, "loops": board.rows().map(row).collect::<Vec<_>>()})
}

/// Writes a loop of a repository. What is not known is null.
fn row(row: &FleetRow) -> Value {
    let last = &row.last;
    json!({
        "repository": last.repository,
        "loop": last.loop_name,
        "runs": row.runs,
        "verified": row.verified,
        "reused": row.reused,
        "last": {
            "run": last.run_id,
            "at": last.at,
            "outcome": last.outcome,
            "verified": last.is_verified,
            "tree": row.tree(),
            "page": row.page(),
        },
        "waits_for": row.question(),
        "clean_nights": row.clean_nights(),
        "flaky": row.flaky,
        "cost_usd": row.cost(),
        "cost_is_whole": !row.has_unknown_cost,
        "cost_by_day": row.cost_by_day,
        "deliveries": row.deliveries.as_ref().map(deliveries),
    })
}

/// Writes what became of the deliveries of a loop.
fn deliveries(deliveries: &LoopDeliveries) -> Value {
    let all = deliveries.all();
    let fates = deliveries.by_fate().map(|(fate, count)| (fate.id().to_owned(), json!(count)));
    json!({
        "delivered": all.delivered,
        "kept": all.kept,
        "fates": fates.collect::<serde_json::Map<_, _>>(),
        "per_kept_fix_usd": all.per_kept_fix(),
        "by_model": deliveries.by_model().iter().map(by_model).collect::<Vec<_>>(),
        "is_whole": deliveries.is_whole,
    })
}

fn by_model(cost: &FixCost) -> Value {
    let mut out = cost.json();
    // It is that of the row.
    out.as_object_mut().expect("a cost is an object").remove("loop");
    out
}
