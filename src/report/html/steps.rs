//! The steps of a run on its page: a row for each, and below it what it ran, found, printed and changed.

use super::blocks::streams;
use super::page::{HtmlPage, NAME, PageSections, anchor, brief, step_link, stripped};
use crate::base::text::plural;
use crate::base::time::human;
use crate::report::detail::{DetailedStep, StepDiff, named};
use crate::report::difference::ToldStep;
use crate::report::items::{self, reason};
use crate::report::markup::Markup;
use crate::report::step::{Step, StepStanding};

/// Characters of an action that stand in its row.
const ACTION: usize = 160;

/// How many failed steps are listed above the table.
const MAX_FAILED: usize = 200;

/// Two actions that take this much longer or shorter, in per cent, do not take the same time.
const SAME: u128 = 10;

/// Writes a row for each step.
pub(super) fn rows(page: &HtmlPage<'_>) -> Vec<Markup> {
    page.detail.entries().iter().map(|entry| row(page, entry)).collect()
}

/// Writes the part about the steps.
pub(super) fn section(page: &HtmlPage<'_>, rows: &[Markup], sections: &mut PageSections) {
    if rows.is_empty() {
        return;
    }
    // First of all, because failures are what a page is opened for.
    failed(page, sections);
    let (title, what) = if page.digest.is_merge() { ("Items", "item") } else { ("Steps", "state") };
    sections.add("steps", title, |out| {
        left_out(page, out);
        out.ours(
            "<div class=\"tools\" hidden><label>Filter <input type=\"search\" id=\"filter\" autocomplete=\"off\"></label> \
             <label><input type=\"checkbox\" id=\"failed-only\"> failed only</label> \
             <output id=\"shown\" for=\"filter failed-only\"></output> \
             <span class=\"keys\"><kbd>j</kbd> <kbd>k</kbd> next and previous step, <kbd>f</kbd> next failure, \
             <kbd>/</kbd> filter</span></div>\n\
             <noscript><p>What the steps printed is shown with scripts alone; without them, it is in the log file.</p></noscript>\n\
             <div class=\"wide\" role=\"region\" aria-label=\"table of steps\" tabindex=\"0\"><table class=\"steps\"><thead><tr>\
             <th scope=\"col\" class=\"n\">step</th><th scope=\"col\">",
        )
        .text(what)
        .ours(
            "</th><th scope=\"col\">verdict</th>\
             <th scope=\"col\" class=\"n\">exit</th><th scope=\"col\" class=\"n\">took</th><th scope=\"col\">next</th>\
             </tr></thead>\n",
        );
        for row in rows {
            out.add(row);
        }
        out.ours("</table></div>\n");
    });
}

/// Lists what failed, the last first; of the items of a plan, as they come, each with the reason.
fn failed(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let mut failed: Vec<&DetailedStep> =
        page.detail.entries().iter().filter(|entry| entry.failed()).collect();
    if failed.is_empty() {
        return;
    }
    let is_merge = page.digest.is_merge();
    if !is_merge {
        failed.reverse();
    }
    let title = if is_merge { "Failed items" } else { "Failed steps" };
    sections.add("failed", title, |out| {
        out.within("ul", &[("class", "failed")], |out| {
            for entry in failed.iter().take(MAX_FAILED) {
                out.within("li", &[], |out| {
                    step_link(page, &entry.number, &format!("step {}", entry.number), out);
                    out.ours(" ").leaf("code", &[], &brief(&named(entry), NAME));
                    let said = entry.printed.as_ref().map(|printed| printed.stdout.text.as_str());
                    let ended = if is_merge { reason(said, &entry.step) } else { entry.step.verdict_line() };
                    out.ours(": ").text(&ended);
                    if page.decided.as_ref() == Some(&entry.number) {
                        out.ours(" <strong>decided</strong>");
                    }
                });
            }
        });
        let more = failed.len().saturating_sub(MAX_FAILED) as u64;
        if more > 0 {
            let what = if is_merge { "more item" } else { "earlier one" };
            out.leaf("p", &[], &format!("… and {}", plural(more, what)));
        }
    });
}

/// Says which steps are not on the page, and where they are.
fn left_out(page: &HtmlPage<'_>, out: &mut Markup) {
    let all = page.detail.all_left_out();
    if all == 0 {
        return;
    }
    let whole = format!("{} of {} are not on this page", all, plural(page.digest.step_count(), "step"));
    out.within("p", &[], |out| {
        out.text(&whole);
        for (index, (state, count)) in page.detail.left_out().take(20).enumerate() {
            out.ours(if index == 0 { ": " } else { ", " });
            out.text(&count.to_string()).ours(" of ").leaf("code", &[], &brief(state, NAME));
        }
        out.ours(". The journal, ").leaf("code", &[], "events.jsonl").ours(", has all of them.");
    });
}

fn row(page: &HtmlPage<'_>, entry: &DetailedStep) -> Markup {
    let (step, number) = (&entry.step, entry.number.to_string());
    let mut out = Markup::default();
    let (class, mark, said) = match step.standing() {
        StepStanding::Passing => ("", "✓", "passed"),
        StepStanding::Failing => ("fail", "✗", "failed"),
        StepStanding::Open => ("", "•", "open"),
    };
    let id = format!("step-{number}");
    let attributes = [("id", id.as_str()), ("class", class)];
    // A closing action has the number of the last step, and an id may occur only once.
    let attributes = if step.closing { &attributes[1..] } else { &attributes };
    let other = page.detail.against.as_ref().map(|against| against.step(&entry.number));
    out.within("tbody", attributes, |out| {
        out.within("tr", &[], |out| {
            out.within("th", &[("scope", "row"), ("class", "n")], |out| {
                if step.closing {
                    out.ours("end");
                } else {
                    out.leaf("a", &[("href", &format!("#{id}"))], &number);
                }
            });
            out.within("td", &[], |out| {
                // The page of a merge has no part about states.
                if entry.sub_loop.is_none() && !page.digest.is_merge() {
                    let href = format!("#{}", anchor("state", step.state.as_str()));
                    out.leaf("a", &[("href", &href)], &brief(step.state.as_str(), NAME));
                } else if let Some(page) = items::page(page.digest, step.state.as_str()) {
                    out.leaf("a", &[("href", &page)], &brief(&named(entry), NAME));
                } else {
                    out.text(&brief(&named(entry), NAME));
                }
                if page.decided.as_ref() == Some(&entry.number) && !step.closing {
                    out.ours(" <strong>decided</strong>");
                }
                if entry.inherited {
                    out.ours(" <small>of the run before</small>");
                }
            });
            out.within("td", &[], |out| {
                out.leaf("span", &[("class", "mark"), ("role", "img"), ("aria-label", said)], mark);
                out.ours(" ").text(&step.word());
                other.filter(|_| !step.closing).into_iter().for_each(|other| differs(step, other, out));
            });
            let result = step.result.as_ref();
            out.leaf(
                "td",
                &[("class", "n")],
                &result.map_or_else(String::new, |result| result.exit_code.to_string()),
            );
            out.within("td", &[("class", "n")], |out| {
                out.text(&result.map_or_else(String::new, |result| human(result.duration)));
                let slower = other
                    .flatten()
                    .filter(|other| other.state == step.state.as_str() && took_another_time(step, other));
                if let Some(other) = slower.filter(|_| result.is_some()) {
                    out.leaf("span", &[("class", "differs")], &format!("there {}", human(other.duration)));
                }
            });
            let next = step.route.as_ref().map_or_else(String::new, |route| brief(route.to.as_str(), NAME));
            out.leaf("td", &[], &next);
        });
        more(page, entry, out);
    });
    out.ours("\n");
    out
}

/// Says what the other run did in this step, if that is not the same.
fn differs(step: &Step, other: Option<&ToldStep>, out: &mut Markup) {
    let said = match other {
        None => "not there".to_owned(),
        Some(other) if other.state != step.state.as_str() => {
            format!(
                "there {}: {}",
                brief(&other.state, NAME),
                brief(other.word.as_deref().unwrap_or("next"), 40)
            )
        }
        Some(other) => {
            let word = other.word.as_deref();
            let is_same = step.verdict().is_none_or(|verdict| Some(verdict.as_str()) == word);
            let is_same_way =
                step.route.as_ref().is_none_or(|route| other.to.as_deref() == Some(route.to.as_str()));
            if is_same && is_same_way {
                return;
            }
            let to = other.to.as_ref().map_or_else(String::new, |to| format!(" → {}", brief(to, NAME)));
            format!("there {}{to}", brief(word.unwrap_or("next"), 40))
        }
    };
    out.ours(" ").leaf("span", &[("class", "differs")], &said);
}

fn took_another_time(step: &Step, other: &ToldStep) -> bool {
    let (here, there) = (step.duration().as_millis(), other.duration.as_millis());
    // Differences of up to 100 ms are noise of the machine.
    here.abs_diff(there) * 100 > here.max(there) * SAME && here.abs_diff(there) > 100
}

/// Writes what a step ran, found, printed and changed.
fn more(page: &HtmlPage<'_>, entry: &DetailedStep, out: &mut Markup) {
    let step = &entry.step;
    let diff = page.detail.diffs.iter().find(|diff| diff.step == entry.number);
    let action = step.action.as_ref().map(|action| stripped(&action.text).into_owned());
    let line = step.action.as_ref().map(|action| brief(&action.text, ACTION));
    if action.is_none() && diff.is_none() && step.error.is_none() {
        return;
    }
    out.within("tr", &[("class", "more")], |out| {
        out.within("td", &[("colspan", "6")], |out| {
            out.within("details", &[], |out| {
                out.leaf(
                    "summary",
                    &[],
                    line.as_deref().unwrap_or(if step.error.is_some() { "error" } else { "changes" }),
                );
                // A line that is whole is not said twice.
                if let Some(action) = action.filter(|action| Some(action.trim()) != line.as_deref()) {
                    out.leaf("pre", &[("class", "action"), ("tabindex", "0")], action.trim_end());
                }
                facts(page, entry, out);
                let failure = step.result.as_ref().and_then(|result| result.failure.as_ref());
                for why in failure.into_iter().chain(&step.error) {
                    out.leaf("p", &[("class", "error")], &stripped(why));
                }
                if let Some(diff) = diff {
                    patch(diff, out);
                }
                outputs(entry, out);
            });
        });
    });
}

fn facts(page: &HtmlPage<'_>, entry: &DetailedStep, out: &mut Markup) {
    let step = &entry.step;
    let mut facts = vec![step.verdict_line()];
    facts.extend(step.judged.as_ref().map(|judged| format!("judged by {}", brief(&judged.evaluator, 40))));
    facts.push(format!("iteration {}", step.iteration));
    if step.attempt > 1 {
        facts.push(format!("attempt {}", step.attempt));
    }
    facts.extend(step.role().map(|role| format!("by {}", brief(role, 60))));
    facts.push(format!("entered {}", step.started));
    out.within("p", &[("class", "facts")], |out| {
        out.text(&facts.join(" · "));
        if let Some(line) = page.digest.line(&step.state).filter(|_| entry.sub_loop.is_none()) {
            let place = page.digest.file_in_repository();
            out.ours(" · ").leaf("code", &[], &format!("{}:{line}", brief(&place, 300)));
        }
    });
}

fn patch(diff: &StepDiff, out: &mut Markup) {
    out.leaf("p", &[("class", "label")], "changed").within(
        "pre",
        &[("class", "patch"), ("tabindex", "0")],
        |out| {
            for line in diff.patch.lines() {
                match line.as_bytes().first() {
                    // The header of a patch begins like changed lines do; at worst an added
                    // line that begins with `++` has no colour.
                    Some(b'+') if !line.starts_with("+++") => out.leaf("span", &[("class", "added")], line),
                    Some(b'-') if !line.starts_with("---") => out.leaf("span", &[("class", "removed")], line),
                    _ => out.text(line),
                };
                out.ours("\n");
            }
        },
    );
    if diff.cut > 0 {
        let cut = format!(
            "{} more of it: {} has the whole patch of the run",
            plural(diff.cut, "byte"),
            "changes.patch"
        );
        out.leaf("p", &[], &cut);
    }
}

/// Writes where what the step printed is opened.
fn outputs(entry: &DetailedStep, out: &mut Markup) {
    for (stream, id, tail) in streams(entry) {
        out.within("details", &[("class", "output"), ("data-block", &id)], |out| {
            let missing = tail.bytes.saturating_sub(tail.text.len() as u64);
            let whole = plural(tail.bytes, "byte");
            let cut = if missing > 0 {
                format!(", of which the first {missing} are in the log file alone")
            } else {
                String::new()
            };
            out.leaf("summary", &[], &format!("{stream}, {whole}{cut}"));
        });
    }
    if entry.printed.is_none() {
        out.leaf(
            "p",
            &[("class", "label")],
            "There was no room here for what it printed; the log file has it.",
        );
    }
}
