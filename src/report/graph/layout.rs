//! Places the states of a graph in layers, from the first one down, and leads the ways between them so that no label
//! lies on another. Ways back up keep to lanes of their own.

use std::collections::BTreeSet;

/// Between two elements of one layer.
const GAP: f64 = 22.0;
/// Between two layers.
const LEADING: f64 = 15.0;
/// The height of a label.
const LABEL: f64 = 16.0;
/// The width of a lane in which a way passes a layer.
const LANE: f64 = 10.0;
/// Between two ways at the edge of a box, at most.
const PORTS: f64 = 34.0;
/// How often the order and the places are improved.
const SWEEPS: usize = 12;

/// A state to place: the size of its box, and the room that it needs at its right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) beside: f64,
}

/// A way between two different states, and the width of its label.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutLink {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: f64,
}

/// A point of the picture.
pub(super) type PicturePoint = (f64, f64);

/// Where everything is.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The centres of the boxes.
    pub(super) centres: Vec<PicturePoint>,
    /// The points of each way: it comes to and leaves each one vertically.
    pub(super) ways: Vec<Vec<PicturePoint>>,
    /// The centre of the label of each way.
    pub(super) labels: Vec<PicturePoint>,
}

/// What stands in a layer: a box, or the lane of a way that passes.
#[derive(Clone, Debug)]
struct Element {
    layer: usize,
    left: f64,
    right: f64,
    is_box: bool,
    above: Vec<usize>,
    below: Vec<usize>,
    x: f64,
}

impl Element {
    fn new(layer: usize, left: f64, right: f64, is_box: bool) -> Self {
        Self { layer, left, right, is_box, above: Vec::new(), below: Vec::new(), x: 0.0 }
    }
}

/// Places a graph whose run begins in the state `initial`. No link may lead from a state to itself.
pub(super) fn place(shapes: &[Shape], links: &[LayoutLink], initial: usize) -> Layout {
    let ranks = ranks(shapes.len(), links, initial);
    let mut elements: Vec<Element> = Vec::new();
    for (shape, rank) in shapes.iter().zip(&ranks) {
        let half = shape.width / 2.0;
        // Every second layer has no boxes: the labels stand there.
        elements.push(Element::new(rank * 2, half, half + shape.beside, true));
    }
    // Each way as the elements that it passes, from above to below, and the one that has its label.
    let mut lanes: Vec<(Vec<usize>, usize)> = Vec::new();
    for link in links {
        let is_down = ranks[link.from] < ranks[link.to];
        let (upper, lower) = if is_down { (link.from, link.to) } else { (link.to, link.from) };
        let (first, last) = (ranks[upper] * 2 + 1, ranks[lower] * 2 - 1);
        // Beside the state that the way leaves, which is where its words were said.
        let labelled = if is_down { first } else { last };
        let mut lane = vec![upper];
        for layer in first..=last {
            let half = if layer == labelled { (link.label / 2.0).max(LANE / 2.0) } else { LANE / 2.0 };
            lane.push(elements.len());
            elements.push(Element::new(layer, half, half, false));
        }
        let label = lane[1 + labelled - first];
        lane.push(lower);
        for pair in lane.windows(2) {
            elements[pair[0]].below.push(pair[1]);
            elements[pair[1]].above.push(pair[0]);
        }
        lanes.push((lane, label));
    }
    let layers = ordered(&elements);
    spread(&mut elements, &layers);
    straighten(&mut elements, &layers, &lanes);
    finished(shapes, links, &ranks, &elements, &layers, &lanes)
}

/// Where the walk through a graph has been.
#[derive(Clone, Copy, PartialEq)]
enum WalkState {
    No,
    Open,
    Done,
}

/// Returns the layer of each state: below everything that leads to it, but for the ways back.
fn ranks(states: usize, links: &[LayoutLink], initial: usize) -> Vec<usize> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); states];
    for link in links {
        out[link.from].push(link.to);
    }
    let mut seen = vec![WalkState::No; states];
    let mut done = Vec::new();
    let mut back = BTreeSet::new();
    // From the first state, so that the ways back are those that lead against the course of a run.
    for root in std::iter::once(initial).filter(|root| *root < states).chain(0..states) {
        if seen[root] != WalkState::No {
            continue;
        }
        seen[root] = WalkState::Open;
        let mut stack = vec![(root, 0)];
        while let Some((at, next)) = stack.last_mut() {
            let at = *at;
            let Some(to) = out[at].get(*next).copied() else {
                seen[at] = WalkState::Done;
                done.push(at);
                stack.pop();
                continue;
            };
            *next += 1;
            match seen[to] {
                WalkState::No => {
                    seen[to] = WalkState::Open;
                    stack.push((to, 0));
                }
                WalkState::Open => {
                    back.insert((at, to));
                }
                WalkState::Done => {}
            }
        }
    }
    let mut ranks = vec![0; states];
    let mut down: Vec<Vec<usize>> = vec![Vec::new(); states];
    for link in links {
        let (from, to) =
            if back.contains(&(link.from, link.to)) { (link.to, link.from) } else { (link.from, link.to) };
        down[from].push(to);
    }
    // A way back that is turned around keeps the order in which the states were left.
    for at in done.iter().rev() {
        for to in &down[*at] {
            ranks[*to] = ranks[*to].max(ranks[*at] + 1);
        }
    }
    ranks
}

/// Returns the elements of each layer, in an order with few crossings.
fn ordered(elements: &[Element]) -> Vec<Vec<usize>> {
    let depth = elements.iter().map(|element| element.layer + 1).max().unwrap_or(0);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); depth];
    for (index, element) in elements.iter().enumerate() {
        layers[element.layer].push(index);
    }
    let mut position = vec![0.0; elements.len()];
    let arrange = |layer: &[usize], position: &mut Vec<f64>| {
        for (at, index) in layer.iter().enumerate() {
            // Relative to the middle, so that layers of different sizes compare.
            position[*index] = number(at) - (number(layer.len()) - 1.0) / 2.0;
        }
    };
    for layer in &layers {
        arrange(layer, &mut position);
    }
    let mut best = (crossings(elements, &layers, &position), layers.clone());
    for sweep in 0..SWEEPS {
        let is_down = sweep % 2 == 0;
        for at in 0..depth {
            let layer = if is_down { at } else { depth - 1 - at };
            let middle = |index: &usize| {
                let near = if is_down { &elements[*index].above } else { &elements[*index].below };
                mean(near.iter().map(|other| (position[*other], 1.0))).unwrap_or(position[*index])
            };
            let mut keyed: Vec<(f64, usize)> =
                layers[layer].iter().map(|index| (middle(index), *index)).collect();
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            layers[layer] = keyed.into_iter().map(|(_, index)| index).collect();
            arrange(&layers[layer], &mut position);
        }
        let found = crossings(elements, &layers, &position);
        // A sweep can also make an order worse.
        if found < best.0 {
            best = (found, layers.clone());
        }
    }
    best.1
}

/// Counts the crossings between neighbouring layers.
fn crossings(elements: &[Element], layers: &[Vec<usize>], position: &[f64]) -> usize {
    let mut count = 0;
    for layer in layers {
        let pairs = layer.iter().flat_map(|index| {
            elements[*index].below.iter().map(|other| (position[*index], position[*other]))
        });
        let mut pairs: Vec<(f64, f64)> = pairs.collect();
        pairs.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        // Inversions, by insertion into a sorted list.
        let mut sorted: Vec<f64> = Vec::with_capacity(pairs.len());
        for (_, lower) in pairs {
            let at = sorted.partition_point(|known| *known <= lower);
            count += sorted.len() - at;
            sorted.insert(at, lower);
        }
    }
    count
}

/// Gives every element its place across: near to what it is joined with, and apart from its neighbours.
fn spread(elements: &mut [Element], layers: &[Vec<usize>]) {
    // The weights that Graphviz's dot has: what passes many layers is to be straight before
    // anything else is.
    let weight = |one: &Element, other: &Element| match (one.is_box, other.is_box) {
        (false, false) => 8.0,
        (true, true) => 1.0,
        _ => 2.0,
    };
    for layer in layers {
        let none = vec![(0.0, 1.0); layer.len()];
        apart(elements, layer, &none);
    }
    for sweep in 0..SWEEPS * 3 {
        let is_down = sweep % 2 == 0;
        for at in 0..layers.len() {
            let layer = &layers[if is_down { at } else { layers.len() - 1 - at }];
            let wanted = layer.iter().map(|index| {
                let element = &elements[*index];
                let both = element.above.iter().chain(&element.below);
                let near = both.map(|other| (elements[*other].x, weight(element, &elements[*other])));
                let total: f64 = near.clone().map(|(_, weight)| weight).sum();
                mean(near).map_or((element.x, 0.1), |x| (x, total))
            });
            let wanted: Vec<(f64, f64)> = wanted.collect();
            apart(elements, layer, &wanted);
        }
    }
}

/// Makes each way one straight lane, as far as there is room: its bends are where it leaves one state and comes to the
/// other.
fn straighten(elements: &mut [Element], layers: &[Vec<usize>], lanes: &[(Vec<usize>, usize)]) {
    for _ in 0..SWEEPS {
        // Boxes keep their places more firmly than ways do.
        let mut wanted: Vec<(f64, f64)> = elements.iter().map(|element| (element.x, 4.0)).collect();
        for (lane, _) in lanes {
            let inner = &lane[1..lane.len() - 1];
            let mut places: Vec<f64> = inner.iter().map(|index| elements[*index].x).collect();
            places.sort_by(f64::total_cmp);
            let median = places[places.len() / 2];
            for index in inner {
                wanted[*index] = (median, 1.0);
            }
        }
        for layer in layers {
            let of_layer: Vec<(f64, f64)> = layer.iter().map(|index| wanted[*index]).collect();
            apart(elements, layer, &of_layer);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are few elements in a layer")]
fn number(count: usize) -> f64 {
    count as f64
}

fn mean(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, weights) = values.fold((0.0, 0.0), |(sum, weights), (x, w)| (sum + x * w, weights + w));
    (weights > 0.0).then(|| sum / weights)
}

/// Places the elements of a layer as near as possible to where they want to be, in their order and without overlaps: the
/// least squares of that, by pooling neighbours that would overlap.
fn apart(elements: &mut [Element], layer: &[usize], wanted: &[(f64, f64)]) {
    let mut offsets = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    for (at, index) in layer.iter().enumerate() {
        if at > 0 {
            offset += elements[layer[at - 1]].right + GAP + elements[*index].left;
        }
        offsets.push(offset);
    }
    // Pools of the mean, the weight and how many.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for ((x, weight), offset) in wanted.iter().zip(&offsets) {
        let mut pool = (x - offset, *weight, 1);
        while let Some(before) = pools.pop_if(|before| before.0 > pool.0) {
            let weight = before.1 + pool.1;
            pool = ((before.0 * before.1 + pool.0 * pool.1) / weight, weight, before.2 + pool.2);
        }
        pools.push(pool);
    }
    let placed = pools.iter().flat_map(|(x, _, many)| std::iter::repeat_n(*x, *many));
    for ((index, offset), x) in layer.iter().zip(&offsets).zip(placed) {
        elements[*index].x = x + offset;
    }
}

/// Turns places across into points, and leads the ways through them.
fn finished(
    shapes: &[Shape],
    links: &[LayoutLink],
    ranks: &[usize],
    elements: &[Element],
    layers: &[Vec<usize>],
    lanes: &[(Vec<usize>, usize)],
) -> Layout {
    let left = elements.iter().map(|element| element.x - element.left).fold(f64::INFINITY, f64::min);
    let right = elements.iter().map(|element| element.x + element.right).fold(f64::NEG_INFINITY, f64::max);
    if elements.is_empty() {
        return Layout::default();
    }
    let x = |index: usize| elements[index].x - left;
    // The top and the bottom of each layer.
    let mut bands: Vec<(f64, f64)> = Vec::with_capacity(layers.len());
    let mut y = 0.0;
    for (at, layer) in layers.iter().enumerate() {
        let boxes = layer.iter().filter(|index| **index < shapes.len());
        let height = boxes.map(|index| shapes[*index].height).fold(0.0, f64::max);
        let height = if at % 2 == 1 { LABEL } else { height };
        bands.push((y, y + height));
        y += height + LEADING;
    }
    let middle = |layer: usize| f64::midpoint(bands[layer].0, bands[layer].1);
    // The ways at the upper and the lower edge of each box, from left to right.
    let mut upper: Vec<Vec<(f64, usize)>> = vec![Vec::new(); shapes.len()];
    let mut lower = upper.clone();
    for (way, (lane, _)) in lanes.iter().enumerate() {
        lower[lane[0]].push((x(lane[1]), way));
        upper[lane[lane.len() - 1]].push((x(lane[lane.len() - 2]), way));
    }
    for ports in upper.iter_mut().chain(&mut lower) {
        ports.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    let port = |ports: &[(f64, usize)], state: usize, way: usize| {
        let at = ports.iter().position(|(_, other)| *other == way).unwrap_or(0);
        let count = number(ports.len());
        // Ways keep off the round corners of a state.
        let apart = PORTS.min((shapes[state].width - 16.0) / count);
        x(state) + (number(at) - (count - 1.0) / 2.0) * apart
    };
    let mut ways = Vec::with_capacity(links.len());
    let mut labels = Vec::with_capacity(links.len());
    for (way, ((lane, label), link)) in lanes.iter().zip(links).enumerate() {
        let (top, bottom) = (lane[0], lane[lane.len() - 1]);
        let half = |state: usize| shapes[state].height / 2.0;
        let mut points = vec![(port(&lower[top], top, way), middle(ranks[top] * 2) + half(top))];
        // Between the states of a layer, and past the labels where it begins and ends, a way is straight; elsewhere it
        // may bend.
        let inner = &lane[1..lane.len() - 1];
        for index in inner {
            let layer = elements[*index].layer;
            if layer.is_multiple_of(2) || Some(index) == inner.first() || Some(index) == inner.last() {
                let (from, to) = bands[layer];
                points.push((x(*index), from));
                points.push((x(*index), to));
            }
        }
        points.push((port(&upper[bottom], bottom, way), middle(ranks[bottom] * 2) - half(bottom)));
        if link.from != top {
            points.reverse();
        }
        ways.push(points);
        labels.push((x(*label), middle(elements[*label].layer)));
    }
    Layout {
        width: right - left,
        height: y - LEADING,
        centres: (0..shapes.len()).map(|state| (x(state), middle(ranks[state] * 2))).collect(),
        ways,
        labels,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shapes(count: usize) -> Vec<Shape> {
        vec![Shape { width: 80.0, height: 40.0, beside: 0.0 }; count]
    }

    fn links(pairs: &[(usize, usize)]) -> Vec<LayoutLink> {
        pairs.iter().map(|(from, to)| LayoutLink { from: *from, to: *to, label: 30.0 }).collect()
    }

    #[test]
    fn a_way_leads_down_and_its_way_back_up() {
        let layout = place(&shapes(3), &links(&[(0, 1), (1, 0), (0, 2)]), 0);
        let y: Vec<f64> = layout.centres.iter().map(|(_, y)| *y).collect();
        assert!(y[0] < y[1] && y[0] < y[2], "{y:?}");
        let (first, last) = (layout.ways[1][0], *layout.ways[1].last().unwrap());
        assert!(first.1 > last.1, "the way back goes up: {first:?} {last:?}");
    }

    #[test]
    fn a_chain_is_a_straight_line() {
        let layout = place(&shapes(4), &links(&[(0, 1), (1, 2), (2, 3)]), 0);
        assert!(layout.centres.iter().all(|(x, _)| (x - layout.centres[0].0).abs() < 0.5), "{layout:?}");
    }

    fn any_graph() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
        (1_usize..14).prop_flat_map(|count| {
            let pairs = prop::collection::btree_set((0..count, 0..count), 0..30);
            (Just(count), pairs).prop_map(|(count, pairs)| {
                (count, pairs.into_iter().filter(|(from, to)| from != to).collect())
            })
        })
    }

    proptest! {
        #[test]
        fn nothing_lies_on_anything_else((count, pairs) in any_graph()) {
            let (shapes, links) = (shapes(count), links(&pairs));
            let layout = place(&shapes, &links, 0);
            let boxes = layout.centres.iter().map(|(x, y)| (*x, *y, 40.0, 20.0));
            let labels = layout.labels.iter().map(|(x, y)| (*x, *y, 15.0, 8.0));
            let all: Vec<(f64, f64, f64, f64)> = boxes.chain(labels).collect();
            for (at, one) in all.iter().enumerate() {
                prop_assert!(one.0 - one.2 > -0.1 && one.0 + one.2 < layout.width + 0.1, "{one:?} in {layout:?}");
                prop_assert!(one.1 - one.3 > -0.1 && one.1 + one.3 < layout.height + 0.1, "{one:?}");
                for other in &all[at + 1..] {
                    let is_apart = (one.0 - other.0).abs() > one.2 + other.2 - 0.1
                        || (one.1 - other.1).abs() > one.3 + other.3 - 0.1;
                    prop_assert!(is_apart, "{one:?} and {other:?} overlap");
                }
            }
            for (way, link) in layout.ways.iter().zip(&links) {
                for (end, state) in [(way[0], link.from), (*way.last().unwrap(), link.to)] {
                    let centre = layout.centres[state];
                    prop_assert!((end.0 - centre.0).abs() <= 40.0, "{end:?} is at no box");
                    prop_assert!(((end.1 - centre.1).abs() - 20.0).abs() < 0.1, "{end:?} is at no edge");
                }
            }
        }
    }
}
