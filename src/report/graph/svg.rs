//! Graphs as SVG. What is drawn has classes and no styles, so that a page can forbid these; [`CSS`] says how it looks.

use std::fmt::Write as _;

use super::graph_model::{DrawnState, Edge, Graph};
use super::layout::{self, Layout, LayoutLink, PicturePoint, Shape};
use crate::base::text::one_line;
use crate::report::digest::EndKind;
use crate::report::markup::{Markup, escaped};

/// A graph with more states is not drawn.
// More are left to Graphviz (`show --format dot`), which is made for graphs of that size.
const MAX_STATES: usize = 150;
/// A graph with more ways is not drawn.
const MAX_EDGES: usize = 300;

/// A name is cut to so many characters.
const MAX_NAME: usize = 32;
/// What stands below it is smaller.
const MAX_DETAIL: usize = 42;
/// A label is cut to so many characters.
const MAX_LABEL: usize = 36;

/// The width of a column of names, of details and of labels.
// Boxes are sized here, without a browser that could measure: these fit the font sizes in `graph.css`.
const NAME: f64 = 8.5;
const DETAIL: f64 = 6.7;
const LABEL: f64 = 6.7;

const MARGIN: f64 = 16.0;
/// The room above the first state for the mark of the start.
const START: f64 = 26.0;

/// How the classes look; colours follow what the reader prefers.
pub const CSS: &str = include_str!("graph.css");

/// Draws a graph for a page that has [`CSS`]; nothing if it is too large to be looked at.
pub fn embedded(graph: &Graph) -> Option<Markup> {
    is_readable(graph).then(|| Markup::of_ours(drawn(graph, "")))
}

/// Draws a graph as a file of its own; nothing if it is too large to be looked at.
pub fn standalone(graph: &Graph) -> Option<String> {
    let (x, y) = (-MARGIN, -MARGIN - START);
    // A picture in a file may be shown on any background, and the colours are made for this one.
    let style = format!(
        "<style>{CSS}</style>\n<rect class=\"paper\" x=\"{x}\" y=\"{y}\" width=\"100%\" height=\"100%\"/>\n"
    );
    is_readable(graph).then(|| drawn(graph, &style))
}

fn is_readable(graph: &Graph) -> bool {
    graph.states.len() <= MAX_STATES && graph.edges.len() <= MAX_EDGES
}

fn drawn(graph: &Graph, style: &str) -> String {
    let links: Vec<&Edge> = graph.edges.iter().filter(|edge| edge.from != edge.to).collect();
    let of_layout = |edge: &&Edge| LayoutLink {
        from: edge.from,
        to: edge.to,
        label: columns(&label(edge)) * LABEL + 8.0,
    };
    let shapes: Vec<Shape> =
        graph.states.iter().enumerate().map(|(index, state)| shape(graph, index, state)).collect();
    let ways: Vec<LayoutLink> = links.iter().map(of_layout).collect();
    let layout = layout::place(&shapes, &ways, graph.initial);
    let (width, height) = (layout.width + 2.0 * MARGIN, layout.height + 2.0 * MARGIN + START);
    let (width, height) = (width.ceil(), height.ceil());
    let class = if graph.has_run { "graph walked" } else { "graph" };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" role=\"group\" aria-label=\"state graph\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"{} {} {width} {height}\">\n{style}",
        -MARGIN,
        -MARGIN - START
    );
    // What was taken lies above what was not, and labels above all lines.
    for is_taken in [false, true] {
        for (edge, points) in links.iter().zip(&layout.ways) {
            if (edge.count > 0) == is_taken {
                line(edge, points, &mut out);
            }
        }
    }
    for edge in graph.edges.iter().filter(|edge| edge.from == edge.to) {
        around(edge, &shapes[edge.from], layout.centres[edge.from], &mut out);
    }
    for (edge, at) in links.iter().zip(&layout.labels) {
        words(edge, *at, "middle", &mut out);
    }
    start(graph, &shapes, &layout, &mut out);
    for ((state, shape), centre) in graph.states.iter().zip(&shapes).zip(&layout.centres) {
        state_box(state, shape, *centre, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn shape(graph: &Graph, index: usize, state: &DrawnState) -> Shape {
    let around = graph.edges.iter().find(|edge| edge.from == index && edge.to == index);
    let detail = detail(state);
    let width = (columns(&name(state)) * NAME).max(columns(&detail) * DETAIL) + 28.0;
    Shape {
        width: width.max(72.0),
        height: if detail.is_empty() { 34.0 } else { 48.0 },
        beside: around.map_or(0.0, |edge| 30.0 + columns(&label(edge)) * LABEL),
    }
}

fn name(state: &DrawnState) -> String {
    one_line(&state.name, MAX_NAME)
}

/// Returns what stands below a name: what a run did there, else what the loop says.
fn detail(state: &DrawnState) -> String {
    let said = || state.meaning.map(str::to_owned).or_else(|| state.work.clone());
    one_line(&state.standing().or_else(said).unwrap_or_default(), MAX_DETAIL)
}

fn label(edge: &Edge) -> String {
    let words = one_line(&edge.label, MAX_LABEL);
    if edge.count == 0 { words } else { format!("{words} ×{}", edge.count) }
}

#[expect(clippy::cast_precision_loss, reason = "a label is cut to a few characters")]
fn columns(text: &str) -> f64 {
    console::measure_text_width(text) as f64
}

fn taken(edge: &Edge) -> &'static str {
    if edge.count > 0 { "way taken" } else { "way" }
}

/// Draws a way as curves that are vertical where they begin and end, and the head of its arrow.
fn line(edge: &Edge, points: &[PicturePoint], out: &mut String) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
    let is_down = first.1 < last.1;
    let back = if is_down { -7.0 } else { 7.0 };
    let mut path = format!("M{:.1} {:.1}", first.0, first.1);
    for (at, pair) in points.windows(2).enumerate() {
        let ((x1, y1), (x2, mut y2)) = (pair[0], pair[1]);
        if at + 2 == points.len() {
            // The head of the arrow begins here; a line to its tip would make it blunt.
            y2 += back;
        }
        if (x1 - x2).abs() < 0.05 {
            let _ = write!(path, "V{y2:.1}");
        } else {
            let middle = f64::midpoint(y1, y2);
            let _ = write!(path, "C{x1:.1} {middle:.1} {x2:.1} {middle:.1} {x2:.1} {y2:.1}");
        }
    }
    let (x, y) = *last;
    let _ = writeln!(
        out,
        "<g class=\"{}\"><path d=\"{path}\"/><polygon points=\"{x:.1},{y:.1} {:.1},{:.1} {:.1},{:.1}\"/></g>",
        taken(edge),
        x - 4.5,
        y + 1.2 * back,
        x + 4.5,
        y + 1.2 * back
    );
}

/// Draws the way from a state to itself, at its right.
fn around(edge: &Edge, shape: &Shape, (x, y): PicturePoint, out: &mut String) {
    let x = x + shape.width / 2.0;
    let _ = writeln!(
        out,
        "<g class=\"{}\"><path d=\"M{x:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}\"/>\
         <polygon points=\"{x:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/></g>",
        taken(edge),
        y - 8.0,
        x + 26.0,
        y - 14.0,
        x + 26.0,
        y + 14.0,
        x + 7.0,
        y + 8.0,
        y + 8.0,
        x + 8.4,
        y + 3.5,
        x + 8.4,
        y + 12.5
    );
    words(edge, (x + 24.0, y), "start", out);
}

fn words(edge: &Edge, (x, y): PicturePoint, anchor: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "<text class=\"{} label\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
        taken(edge),
        y + 4.0,
        escaped(&label(edge))
    );
}

/// Marks the state in which a run begins.
fn start(graph: &Graph, shapes: &[Shape], layout: &Layout, out: &mut String) {
    let (Some(shape), Some((x, y))) = (shapes.get(graph.initial), layout.centres.get(graph.initial)) else {
        return;
    };
    let top = y - shape.height / 2.0;
    let class = if graph.has_run { "way taken" } else { "way" };
    let _ = writeln!(
        out,
        "<g class=\"{class} start\"><circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"5\"/><path d=\"M{x:.1} {:.1}V{:.1}\"/>\
         <polygon points=\"{x:.1},{top:.1} {:.1},{:.1} {:.1},{:.1}\"/></g>",
        top - 24.0,
        top - 19.0,
        top - 7.0,
        x - 4.5,
        top - 8.4,
        x + 4.5,
        top - 8.4
    );
}

fn state_box(state: &DrawnState, shape: &Shape, (x, y): PicturePoint, out: &mut String) {
    let end = state.end.map_or("", |end| match end.kind {
        EndKind::Success | EndKind::NotRun => " success",
        EndKind::HandedOff => " handed-off",
        EndKind::Failure | EndKind::Error => " failure",
    });
    let visited = if state.visits > 0 || state.end.is_some() { " visited" } else { "" };
    let terminal = if state.is_end { " terminal" } else { "" };
    let full = match (&state.work, state.standing()) {
        (_, Some(standing)) => format!("{}: {standing}", state.name),
        (Some(work), None) => format!("{}: {}", state.name, one_line(work, 400)),
        (None, None) => state.name.clone(),
    };
    let (left, top) = (x - shape.width / 2.0, y - shape.height / 2.0);
    let link = state.link.as_ref();
    if let Some(link) = link {
        let _ = write!(out, "<a href=\"{}\">", escaped(link));
    }
    // A terminal is round, as people know it.
    let radius = if state.is_end { shape.height / 2.0 } else { 7.0 };
    let _ = write!(
        out,
        "<g class=\"state{terminal}{visited}{end}\"><title>{}</title>\
         <rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{radius:.1}\"/>",
        escaped(&full),
        shape.width,
        shape.height
    );
    let detail = detail(state);
    let at = if detail.is_empty() { y + 5.0 } else { y - 3.0 };
    let _ = write!(
        out,
        "<text class=\"name\" x=\"{x:.1}\" y=\"{at:.1}\" text-anchor=\"middle\">{}</text>",
        escaped(&name(state))
    );
    if !detail.is_empty() {
        let _ = write!(
            out,
            "<text class=\"detail\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y + 14.0,
            escaped(&detail)
        );
    }
    out.push_str("</g>");
    out.push_str(if link.is_some() { "</a>\n" } else { "\n" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::graph::graph_model::DrawnEnd;

    const HOSTILE: &str = "a\"><script>alert(1)</script>\u{202e}\u{0}&amp;";

    fn state(name: &str) -> DrawnState {
        DrawnState { name: name.to_owned(), ..DrawnState::default() }
    }

    fn graph(names: &[&str], pairs: &[(usize, usize)]) -> Graph {
        let edge =
            |(from, to): &(usize, usize)| Edge { from: *from, to: *to, label: names[0].into(), count: 0 };
        Graph {
            states: names.iter().map(|name| state(name)).collect(),
            edges: pairs.iter().map(edge).collect(),
            ..Graph::default()
        }
    }

    #[test]
    fn a_hostile_name_is_a_text() {
        let mut hostile = graph(&[HOSTILE, "b"], &[(0, 1), (1, 1), (1, 0)]);
        hostile.states[0].link = Some(format!("#{HOSTILE}"));
        hostile.states[1].work = Some(HOSTILE.to_owned());
        let drawn = drawn(&hostile, "");
        assert!(
            !drawn.contains("<script") && !drawn.contains('\u{202e}') && !drawn.contains('\0'),
            "{drawn}"
        );
        assert!(drawn.contains("&quot;&gt;&lt;script&gt;") && drawn.contains("&amp;amp;"), "{drawn}");
    }

    #[test]
    fn a_picture_has_classes_and_no_styles() {
        let drawn = drawn(&graph(&["a", "b"], &[(0, 1), (1, 0), (0, 0)]), "");
        assert!(!drawn.contains("style") && !drawn.contains("id="), "{drawn}");
        assert!(standalone(&graph(&["a"], &[])).unwrap().contains("<style>"));
    }

    #[test]
    fn the_way_of_a_run_is_told_from_what_it_left_out() {
        let mut walked = graph(&["a", "b", "c"], &[(0, 1), (0, 2)]);
        (walked.has_run, walked.edges[0].count, walked.states[1].end) =
            (true, 3, Some(DrawnEnd { kind: EndKind::Failure, word: "failure" }));
        let drawn = drawn(&walked, "");
        assert_eq!(drawn.matches("class=\"way taken label\"").count(), 1, "{drawn}");
        assert!(
            drawn.contains("a ×3") && drawn.contains("state visited failure") && drawn.contains("✗ failure")
        );
    }

    #[test]
    fn what_is_too_large_to_be_looked_at_is_not_drawn() {
        let names: Vec<String> = (0..=MAX_STATES).map(|at| at.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let pairs: Vec<(usize, usize)> = (1..names.len()).map(|at| (at - 1, at)).collect();
        assert_eq!(standalone(&graph(&names, &pairs)), None);
        assert!(standalone(&graph(&names[1..], &[])).is_some());
        assert!(standalone(&Graph::default()).is_some());
    }
}
