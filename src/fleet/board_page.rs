//! A board as one page for a browser: it is read without scripts, which only sort and filter.

use std::time::Duration;

use super::board_rows::{FleetBoard, FleetRow, added};
use super::loop_deliveries::LoopDeliveries;
use crate::base::text::{dollars, plural};
use crate::base::time::Timestamp;
use crate::report::digest::EndKind;
use crate::report::html::page_head;
use crate::report::markup::Markup;

const STYLE: &str = include_str!("board.css");
const SCRIPT: &str = include_str!("board.js");

/// How many deliveries of a loop have a link, the latest.
const LINKS: usize = 5;

/// The columns: what is on top, and whether numbers are below.
const COLUMNS: [(&str, bool); 12] = [
    ("Repository", false),
    ("Loop", false),
    ("Last", false),
    ("Age", true),
    ("Tree", false),
    ("Verified", true),
    ("Clean nights", true),
    ("Flaky", false),
    ("Cost", true),
    ("Fixes kept", true),
    ("Per kept fix", true),
    ("Reused", true),
];

/// Writes a board as it was at a time.
pub fn render(board: &FleetBoard, now: Timestamp) -> String {
    let mut out = Markup::default();
    out.ours("<!doctype html>\n<html lang=\"en\">");
    page_head::write("Loops", &[STYLE], &[SCRIPT], &mut out);
    out.ours("<body>\n<a class=\"skip\" href=\"#loops\">Skip to the loops</a>\n");
    header(board, now, &mut out);
    out.ours("<main>\n");
    waiting(board, &mut out);
    table(board, now, &mut out);
    out.ours("</main>\n<script>").ours(SCRIPT).ours("</script>\n</body>\n</html>\n");
    out.into_text()
}

fn header(board: &FleetBoard, now: Timestamp, out: &mut Markup) {
    let count = |is_it: &dyn Fn(&FleetRow) -> bool| board.rows().filter(|row| is_it(row)).count() as u64;
    let failing = count(&|row| matches!(row.last.kind, EndKind::Failure | EndKind::Error));
    let good = count(&|row| row.last.kind == EndKind::Success && row.last.is_verified == Some(true));
    let cost = board.rows().map(FleetRow::cost).fold(0.0, added);
    let more = if board.rows().any(|row| row.has_unknown_cost) { " and what is not known" } else { "" };
    out.ours("<header>\n<h1>Loops</h1>\n");
    let sentence = format!(
        "{}: {good} verified, {failing} failing. {}{more}. As of {} UTC.",
        plural(board.count() as u64, "loop"),
        dollars(cost),
        now.minute()
    );
    out.leaf("p", &[("class", "sentence")], &sentence).ours("\n");
    out.ours("<p id=\"tools\" hidden><label>Filter <input id=\"filter\" type=\"search\" autocomplete=\"off\"></label> ");
    out.ours("<span id=\"shown\" role=\"status\"></span> <small><kbd>/</kbd> filters, <kbd>j</kbd> and <kbd>k</kbd> go on and back</small></p>\n</header>\n");
}

/// Lists the questions first: somebody is waited for.
fn waiting(board: &FleetBoard, out: &mut Markup) {
    let asks = |row| Some((row, FleetRow::question(row)?));
    let rows: Vec<(&FleetRow, &str)> = board.rows().filter_map(asks).collect();
    if rows.is_empty() {
        return;
    }
    out.ours("<section aria-labelledby=\"waiting\"><h2 id=\"waiting\">Waiting for people</h2>\n<ul>\n");
    for (row, question) in rows {
        out.ours("<li>");
        name(row, out);
        out.ours(": ").text(question).ours("</li>\n");
    }
    out.ours("</ul></section>\n");
}

fn name(row: &FleetRow, out: &mut Markup) {
    out.leaf("strong", &[], &row.last.repository).ours(" ").leaf("code", &[], &row.last.loop_name);
}

fn table(board: &FleetBoard, now: Timestamp, out: &mut Markup) {
    out.ours("<h2 id=\"loops\">All loops</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-labelledby=\"loops\"><table>\n<thead><tr>");
    for (title, is_number) in COLUMNS {
        let class = if is_number { "n" } else { "" };
        out.leaf("th", &[("scope", "col"), ("class", class)], title);
    }
    out.ours("</tr></thead>\n<tbody>\n");
    board.rows().for_each(|row| write_row(row, now, out));
    out.ours("</tbody></table></div>\n");
}

fn write_row(row: &FleetRow, now: Timestamp, out: &mut Markup) {
    let last = &row.last;
    let (class, mark) = looks(row);
    out.open("tr", &[("class", class)]);
    out.leaf("th", &[("scope", "row")], &last.repository);
    out.ours("<td>").leaf("code", &[], &last.loop_name).ours("</td>");
    let word = last.outcome.replace('_', " ");
    // A success that nothing verified must not look like one on which people can rely.
    let is_doubt = last.kind == EndKind::Success && last.is_verified != Some(true);
    let word = if is_doubt { format!("{mark} {word} (unverified)") } else { format!("{mark} {word}") };
    out.open("td", &[("class", "outcome")]);
    match row.page() {
        Some(page) => out.leaf("a", &[("href", page), ("rel", "noreferrer noopener")], &word),
        None => out.text(&word),
    };
    out.ours("</td>");
    let age = now.since(last.at);
    number(&since(age), &age.as_secs().to_string(), out);
    out.ours("<td>").leaf("code", &[], row.tree().unwrap_or("unknown")).ours("</td>");
    number(&format!("{} of {}", row.verified, row.runs), &row.verified.to_string(), out);
    match row.clean_nights() {
        Some(nights) => number(&nights.to_string(), &nights.to_string(), out),
        // Without a number, a loop is sorted below those that have one.
        None => number("–", "-1", out),
    }
    let flaky: Vec<&str> = row.flaky.iter().map(String::as_str).collect();
    out.leaf("td", &[], &flaky.join(", "));
    let unknown = if row.has_unknown_cost { " + ?" } else { "" };
    let cost = row.cost();
    let days: Vec<String> =
        row.cost_by_day.iter().map(|(day, cost)| format!("{day}: {}", dollars(*cost))).collect();
    let is_free = days.is_empty() && !row.has_unknown_cost;
    let cost_text = if is_free { "–".to_owned() } else { format!("{}{unknown}", dollars(cost)) };
    // With an exponent: a sum may be `f64::MAX`, which has 309 digits otherwise.
    out.open("td", &[("class", "n"), ("data-sort", &format!("{cost:e}"))]);
    if days.is_empty() {
        out.text(&cost_text);
    } else {
        out.ours("<details>")
            .leaf("summary", &[], &cost_text)
            .leaf("p", &[], &days.join(", "))
            .ours("</details>");
    }
    out.ours("</td>");
    deliveries(row.deliveries.as_ref(), out);
    number(&row.reused.to_string(), &row.reused.to_string(), out);
    out.ours("</tr>\n");
}

/// Writes how many fixes people kept, and what each of them has cost.
fn deliveries(deliveries: Option<&LoopDeliveries>, out: &mut Markup) {
    let Some(deliveries) = deliveries else {
        number("unknown", "-1", out);
        return number("unknown", "-1", out);
    };
    let all = deliveries.all();
    if all.delivered == 0 {
        number("–", "0", out);
        return number("–", "-1", out);
    }
    out.open("td", &[("class", "n"), ("data-sort", &all.kept.to_string())]).ours("<details>");
    let more = if deliveries.is_whole { "" } else { ", the latest" };
    out.leaf("summary", &[], &format!("{} of {}{more}", all.kept, all.delivered)).ours("<p>");
    let fates = deliveries.by_fate().map(|(fate, count)| format!("{count} {}", fate.word()));
    out.text(&fates.collect::<Vec<_>>().join(", ")).ours("</p>");
    for cost in deliveries.by_model() {
        let model = cost.model.as_deref().unwrap_or("no model known");
        out.leaf("p", &[], &format!("{model}: {} of {} kept, {}", cost.kept, cost.delivered, cost.price()));
    }
    out.ours("<p>");
    for delivery in deliveries.known().iter().take(LINKS) {
        let shown = format!("#{} {}", delivery.number, delivery.fate.word());
        // Only an address is made a link of.
        if delivery.url.starts_with("https://") || delivery.url.starts_with("http://") {
            out.leaf("a", &[("href", &delivery.url), ("rel", "noreferrer noopener")], &shown);
        } else {
            out.text(&shown);
        }
        out.ours(" ");
    }
    out.ours("</p></details></td>");
    match all.per_kept_fix() {
        Some(usd) => number(&dollars(usd), &format!("{usd:e}"), out),
        None if all.kept == 0 => number("–", "-1", out),
        None => number("unknown", "-1", out),
    }
}

/// Says how long ago something was, as exactly as anybody wants to know.
fn since(age: Duration) -> String {
    match age.as_secs() / 60 {
        0 => "just now".to_owned(),
        minutes @ 1..60 => format!("{minutes} min"),
        minutes @ 60..1440 => format!("{} h", minutes / 60),
        minutes => plural(minutes / 1440, "day"),
    }
}

fn number(text: &str, sorted_by: &str, out: &mut Markup) {
    out.leaf("td", &[("class", "n"), ("data-sort", sorted_by)], text);
}

/// Returns the class of a row, and a sign that needs no colour.
fn looks(row: &FleetRow) -> (&'static str, &'static str) {
    match row.last.kind {
        EndKind::Success if row.last.is_verified == Some(true) => ("good", "✓"),
        EndKind::Success | EndKind::NotRun => ("doubt", "•"),
        EndKind::HandedOff => ("waits", "…"),
        EndKind::Failure | EndKind::Error => ("bad", "✗"),
    }
}
