//! `paradigm: convergence`: a number, measured and driven towards a target.

use super::paradigm_parts::{Work, done, to};
use crate::base::decode::{Decode as _, record};
use crate::base::diagnostic::Diagnostics;
use crate::base::name::StateName;
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::base::template::Template;
use crate::definition::assembled_tree::{entry, map, plain, text};
use crate::evaluate::Direction;
use crate::evaluate::field::Field;
use crate::evaluate::number_bounds::Margin;

record! {
    /// A number that has to reach a target.
    pub struct Convergence {
        /// The command that prints the number.
        check: Template,
        /// The target.
        toward: Field<f64>,
        /// What drives the number towards it.
        using: Work,
        /// How far from the target is near enough.
        tolerance: Option<Field<Margin>>,
        /// Which way is better.
        direction: Option<Direction>,
        /// Where to go when the number does not move any more.
        on_stall: Option<StateName>,
    }
}

pub(super) fn expand(own: &Node, out: &mut Diagnostics) -> Option<Node> {
    let read = Convergence::decode(own, &DocPath::root(), out)?;
    let (check, target, using) = (own.get("check")?, own.get("toward")?, own.get("using")?);
    let given = |key: &str| own.get(key).filter(|node| !node.is_null());
    let tolerance = given("tolerance").cloned().unwrap_or_else(|| plain(&target.span, "0"));
    // Without `previous`: the engine remembers the last number, and little-loops compared it with what `apply` printed.
    let mut judge = vec![
        to("type", "convergence", target),
        to("target", "${context.target}", target),
        entry("tolerance", text(&tolerance.span, "${context.tolerance}")),
    ];
    judge.extend(given("direction").map(|direction| entry("direction", direction.clone())));
    let stall = match given("on_stall") {
        Some(state) => entry("on_stall", state.clone()),
        None => to("on_stall", "done", check),
    };
    let measure = vec![
        to("action", "${context.metric_cmd}", check),
        to("capture", "current_value", check),
        entry("check", plain(&check.span, "true")),
        entry("evaluate", map(&target.span, judge)),
        to("on_target", "done", check),
        to("on_progress", "apply", check),
        stall,
    ];
    let states = vec![
        entry("measure", map(&check.span, measure)),
        read.using.state("apply", using, vec![to("next", "measure", using)]),
        done("done", check),
    ];
    let context = vec![
        entry("metric_cmd", check.clone()),
        entry("target", target.clone()),
        entry("tolerance", tolerance),
    ];
    Some(map(
        &own.span,
        vec![
            to("initial", "measure", check),
            entry("context", map(&target.span, context)),
            entry("states", map(&check.span, states)),
        ],
    ))
}
