//! A loop as a page on which it can be walked: one chooses verdicts, and sees where they lead. Everything that a run could do was
//! explored before, so the page decides nothing and needs no network.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::{STYLE, page_head};
use crate::base::text::plural;
use crate::machine::explore::{self, Exploration, Passage, PassageDetour, Situation, passages};
use crate::machine::routing::{ActionEnd, RouteKey, moves};
use crate::machine::{Machine, Target};
use crate::report::graph::{self, Graph};
use crate::report::markup::{Markup, push_seen};

const CSS: &str = include_str!("playground.css");
const SCRIPT: &str = include_str!("playground.js");

/// More situations than this are not walked: the page would be too large to send to somebody.
const MOST: usize = 20_000;

/// A finding of the check, as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFinding {
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// Its code.
    pub code: String,
    /// What was found, and what to do.
    pub message: String,
    /// The file and the line.
    pub place: String,
}

/// Writes the page.
pub fn playground(machine: &Machine, findings: &[ShownFinding]) -> String {
    let walk = explore::explore(machine, MOST);
    let indices = walk.nodes().map(|(node, situation)| (situation, node)).collect();
    let walked = WalkPage { machine, graph: Graph::of_machine(machine), walk, indices };
    let mut out = Markup::default();
    out.ours("<!doctype html>\n").within("html", &[("lang", "en")], |out| {
        page_head::write(&format!("{}: playground", machine.name), &[STYLE, graph::CSS, CSS], &[SCRIPT], out);
        out.within("body", &[], |out| {
            out.ours("\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n");
            walked.header(out);
            out.within("main", &[("id", "main")], |out| {
                walked.walk(out);
                walked.picture(out);
                walked.table(out);
                shown(findings, out);
            });
            walked.data(out);
            out.ours("<script>").ours(SCRIPT).ours("</script>\n");
        });
    });
    out.ours("\n");
    out.into_text()
}

struct WalkPage<'m> {
    machine: &'m Machine,
    graph: Graph,
    walk: Exploration,
    /// The index of each situation that is walked.
    indices: BTreeMap<Situation, usize>,
}

impl WalkPage<'_> {
    fn header(&self, out: &mut Markup) {
        out.within("header", &[], |out| {
            out.leaf("h1", &[], self.machine.name.as_str());
            if let Some(description) = &self.machine.description {
                out.leaf("p", &[("class", "sentence")], description.trim());
            }
            out.within("dl", &[], |out| {
                for (term, value) in self.limits() {
                    out.ours("<div>").leaf("dt", &[], term).leaf("dd", &[], &value).ours("</div>");
                }
            });
        });
        out.ours("\n");
    }

    fn limits(&self) -> Vec<(&'static str, String)> {
        let limits = &self.machine.limits;
        let handler = |target: Option<Target>| {
            target.map_or_else(String::new, |target| format!(", then {}", self.machine.name_of(target)))
        };
        let mut all = vec![(
            "max_iterations",
            format!("{}{}", limits.iterations.limit, handler(limits.iterations.handler)),
        )];
        all.extend(limits.steps.map(|cap| ("max_steps", format!("{}{}", cap.limit, handler(cap.handler)))));
        all.extend(limits.edge_revisits.map(|most| ("max_edge_revisits", most.to_string())));
        all.push(("situations", self.walk.nodes().len().to_string()));
        all
    }

    /// Writes where the script shows the walk; without scripts there is the table.
    fn walk(&self, out: &mut Markup) {
        out.ours(
            "\n<section id=\"walk\" hidden><h2>Walk</h2>\n<div class=\"walk\"><div><div class=\"here\" aria-live=\"polite\">\
             <h3 id=\"walk-name\" tabindex=\"-1\"></h3><p class=\"facts\" id=\"walk-facts\"></p>\
             <pre id=\"walk-action\" tabindex=\"0\"></pre></div>\n<ul class=\"ways\" id=\"walk-ways\" aria-label=\"Verdicts\"></ul>\n\
             <div class=\"tools\"><button type=\"button\" id=\"walk-back\">Back</button>\
             <button type=\"button\" id=\"walk-again\">From the start</button>\
             <span class=\"keys\"><kbd>1</kbd> to <kbd>9</kbd> choose, <kbd>Backspace</kbd> goes back, <kbd>0</kbd> begins again</span>\
             </div></div>\n<div><h3>The way so far</h3><ol class=\"trail\" id=\"walk-trail\"></ol></div></div></section>\n",
        );
        if !self.walk.is_complete() {
            let cut = format!("Only the first {} can be walked.", plural(MOST as u64, "situation"));
            out.leaf("p", &[("class", "advice")], &cut);
        }
    }

    fn picture(&self, out: &mut Markup) {
        let Some(drawn) = graph::embedded(&self.graph) else { return };
        out.ours("<section><h2>The loop</h2><div class=\"picture wide\" tabindex=\"0\" role=\"region\" aria-label=\"The loop as a graph\">");
        out.add(&drawn).ours("</div></section>\n");
    }

    fn table(&self, out: &mut Markup) {
        out.ours("<section><h2>Every way</h2><div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Every way\"><table><thead><tr><th>state</th><th>verdict</th><th>leads to</th></tr></thead><tbody>");
        for edge in &self.graph.edges {
            let name = |state: usize| self.graph.states.get(state).map_or("", |state| state.name.as_str());
            out.ours("<tr>").leaf("td", &[], name(edge.from)).leaf("td", &[], &edge.label);
            out.leaf("td", &[], name(edge.to)).ours("</tr>\n");
        }
        out.ours("</tbody></table></div></section>\n");
    }

    /// Writes what the script walks. It is packed, so that nothing of it is run, and nothing of it ends its element.
    fn data(&self, out: &mut Markup) {
        // In the order of their numbers, by which ways name them.
        let nodes: Vec<Value> =
            self.walk.nodes().map(|(node, situation)| self.node(node, situation)).collect();
        let states: Vec<Value> = self
            .graph
            .states
            .iter()
            .map(|state| {
                let action = state.work.as_deref().map(seen);
                json!({"name": seen(&state.name), "action": action, "end": state.meaning})
            })
            .collect();
        let data = json!({"start": 0, "nodes": nodes, "states": states}).to_string();
        let attributes = [("type", "application/octet-stream"), ("id", "walk-data")];
        out.leaf("script", &attributes, &BASE64_STANDARD.encode(data)).ours("\n");
    }

    fn node(&self, node: usize, situation: Situation) -> Value {
        let machine = self.machine;
        let name = machine.name_of(situation.at).as_str();
        let state = self.graph.states.iter().position(|state| state.name == name);
        let (mut ways, mut dead) = (Vec::new(), Vec::new());
        match situation.at {
            Target::Step(id) => {
                let moves = moves(machine, id);
                for passage in passages(machine, id, &moves, situation) {
                    let is_bad = passage.by.way.as_ref().is_none_or(|way| {
                        way.verdict.as_ref().is_some_and(|verdict| verdict.is_error() || verdict.is_timeout())
                    });
                    ways.extend(self.way(passage.to, &words(&passage), is_bad));
                }
                let own = self.walk.dead_ends().iter().filter(|end| end.node == node);
                dead.extend(own.map(|end| end.verdict.to_string()));
            }
            Target::End(id) => {
                for (to, word) in explore::restarts(machine, id, situation) {
                    ways.extend(self.way(to, word, false));
                }
            }
        }
        json!({
            "state": state, "verified": situation.verified, "capped": situation.capped, "ways": ways, "dead": dead,
        })
    }

    /// Returns a way, if its end is among what is walked.
    fn way(&self, to: Situation, words: &str, is_bad: bool) -> Option<Value> {
        let to = self.indices.get(&to)?;
        Some(json!({"words": seen(words), "to": to, "bad": is_bad}))
    }
}

/// Writes what cannot be seen in a text so that it is, for the script shows it as it is.
fn seen(text: &str) -> String {
    let mut out = String::new();
    text.chars().for_each(|c| push_seen(c, &mut out));
    out
}

/// Says for what a way is taken.
fn words(passage: &Passage<'_>) -> String {
    let by = passage.by;
    let is_next = by.way.as_ref().is_some_and(|way| way.key == RouteKey::Next);
    let verdict = match (is_next, by.departure.ended) {
        (true, ActionEnd::Well) => "goes on".to_owned(),
        (true, ActionEnd::Badly) => "fails".to_owned(),
        (true, ActionEnd::Late) => "too late".to_owned(),
        (false, _) => by.departure.verdict.to_string(),
    };
    match passage.detour {
        Some(PassageDetour::Cap(cap)) => format!("{verdict}, and `{cap}` is met"),
        Some(PassageDetour::Stall) => format!("{verdict}, and nothing changes any more"),
        None if by.is_exhausted => format!("{verdict}, and the retries are used up"),
        None => verdict,
    }
}

fn shown(findings: &[ShownFinding], out: &mut Markup) {
    out.ours("<section><h2>What the check found</h2>");
    if findings.is_empty() {
        out.ours("<p>Nothing.</p></section>\n");
        return;
    }
    out.ours("<ul class=\"findings\">");
    for ShownFinding { severity, code, message, place } in findings {
        let class = if severity == "error" { "error-finding" } else { "warning-finding" };
        out.within("li", &[("class", class)], |out| {
            out.leaf("strong", &[], severity).ours(" ").leaf("code", &[], code).ours(" ").text(message);
            out.ours(" ").leaf("small", &[], place);
        });
    }
    out.ours("</ul></section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile;

    fn page(text: &str) -> String {
        let loaded = load::decode("loop.yaml", text, String::new()).unwrap();
        let machine = compile::compile(&loaded.definition).0.unwrap();
        let finding = ShownFinding {
            severity: "warning".to_owned(),
            code: "x".to_owned(),
            message: "</script><b>".to_owned(),
            place: "loop.yaml:1".to_owned(),
        };
        playground(&machine, &[finding])
    }

    /// Returns what the script walks.
    fn data(page: &str) -> Value {
        let packed = page.split("id=\"walk-data\">").nth(1).unwrap().split('<').next().unwrap();
        serde_json::from_slice(&BASE64_STANDARD.decode(packed).unwrap()).unwrap()
    }

    const LOOP: &str = "name: x\ninitial: check\nmax_iterations: 3\non_max_iterations: tell\nstates:\n  check: {action: '</script><script>alert(1)</script>', on_yes: done, on_no: fix}\n  fix: {action: b, next: check}\n  tell: {action: c, next: done}\n  done: {terminal: true}\n";

    #[test]
    fn every_way_of_the_check_can_be_walked() {
        let data = data(&page(LOOP));
        let nodes = data["nodes"].as_array().unwrap();
        let index = |number: &Value| usize::try_from(number.as_u64().unwrap()).unwrap();
        let name = |node: &Value| data["states"][index(&node["state"])]["name"].as_str().unwrap().to_owned();
        assert_eq!(name(&nodes[0]), "check");
        let ways: Vec<String> = nodes[0]["ways"]
            .as_array()
            .unwrap()
            .iter()
            .map(|way| format!("{} → {}", way["words"].as_str().unwrap(), name(&nodes[index(&way["to"])])))
            .collect();
        assert_eq!(ways, ["yes → done", "no → fix", "no, and `max_iterations` is met → tell"]);
        assert_eq!(nodes[0]["dead"], json!(["error"]));
        let done = nodes.iter().find(|node| name(node) == "done").unwrap();
        assert_eq!((&done["verified"], &done["ways"]), (&json!(true), &json!([])));
    }

    #[test]
    fn what_is_hostile_stays_text() {
        let page = page(LOOP);
        assert_eq!(page.matches("<script").count(), 2);
        assert!(page.contains("&lt;/script&gt;&lt;b&gt;"));
        assert_eq!(data(&page)["states"][0]["action"], "</script><script>alert(1)</script>");
    }
}
