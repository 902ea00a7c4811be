//! The parts of a page beside its steps: its outcome and reason, its graph and states, tasks, nights, changed files.

use super::page::{HtmlPage, NAME, PageSections, anchor, brief, sentence, step_link, stripped, table};
use crate::base::name::StateName;
use crate::base::text::{head, plural};
use crate::base::time::human;
use crate::board::TaskStatus;
use crate::engine::night::Night;
use crate::engine::outcome::Outcome;
use crate::engine::suppose::Course;
use crate::evaluate::model::Usage;
use crate::report::advice::{self, Advice};
use crate::report::graph::{self, EdgeRow};
use crate::report::markup::Markup;
use crate::report::why::Link;
use crate::report::{closing, nights as history, open_question, stages};

// What steps printed fills what the other parts leave of the 6 MiB of a page, so that these are kept short.
const MAX_FLIPS: usize = 10;
const MAX_TASKS: usize = 500;
const MAX_WAYS: usize = 300;
const MAX_STATES: usize = 500;
const MAX_FILES: usize = 500;
const MAX_NAMED: usize = 8;
const MAX_DETAILS: usize = 16 * 1024;

/// How many lines of the step that decided stand on the first screen.
const MAX_EVIDENCE: usize = 10;

/// Writes the outcome of the run, and where the parts of the page are.
pub(super) fn header(page: &HtmlPage<'_>, sections: &PageSections, out: &mut Markup) {
    let digest = page.digest;
    out.within("header", &[("class", page.kind())], |out| {
        out.within("p", &[("class", "outcome")], |out| {
            // The words behind the sign say the same, and a screen reader would read both.
            out.leaf("span", &[("aria-hidden", "true")], page.mark()).ours(" ").text(&page.outcome());
        });
        out.leaf("h1", &[], &brief(digest.loop_name(), NAME));
        out.within("p", &[("class", "sentence")], |out| sentence(&digest.sentence_parts(), out));
        evidence(page, out);
        if digest.unbegun().is_none() && digest.not_run().is_none() {
            facts(page, out);
        }
        if let Some(unbegun) = digest.unbegun() {
            out.ours("<p>Nothing was run.</p>");
            let details = unbegun.details();
            if !details.is_empty() {
                out.leaf("pre", &[("tabindex", "0")], head(&stripped(&details), MAX_DETAILS));
            }
        }
        if let Some(Advice { words, command }) = closing::advice(digest) {
            out.within("p", &[("class", "advice")], |out| {
                out.text(&words);
                if let Some(command) = command {
                    out.ours(" ").leaf("code", &[], &command.to_string());
                }
            });
        }
        if sections.all.len() > 1 {
            out.within("nav", &[("aria-label", "parts of this page")], |out| {
                out.within("ul", &[], |out| {
                    for section in &sections.all {
                        let href = format!("#{}", section.id);
                        out.within("li", &[], |out| {
                            out.leaf("a", &[("href", &href)], section.title);
                        });
                    }
                });
            });
        }
    });
    out.ours("\n");
}

/// Writes the last lines of the step that decided a run which came to no good end: a reader wants them before anything else.
fn evidence(page: &HtmlPage<'_>, out: &mut Markup) {
    let told = page.why.as_ref().filter(|_| !page.digest.is_success());
    let Some(link) = told.and_then(|why| why.chain.iter().rev().find(|link| !link.lines.is_empty())) else {
        return;
    };
    out.within("p", &[("class", "evidence")], |out| {
        out.ours("It printed");
        if let Some(step) = &link.step {
            out.ours(" in ");
            step_link(page, step, &format!("step {step}"), out);
        }
        out.ours(":");
    });
    let last = &link.lines[link.lines.len().saturating_sub(MAX_EVIDENCE)..];
    let lines: Vec<String> = last.iter().map(|line| stripped(line).into_owned()).collect();
    out.leaf("pre", &[("tabindex", "0")], &lines.join("\n"));
}

fn facts(page: &HtmlPage<'_>, out: &mut Markup) {
    let digest = page.digest;
    let steps = digest.step_count().to_string();
    let mut facts = if digest.is_merge() {
        vec![("items", steps)]
    } else {
        vec![("iterations", digest.iterations().to_string()), ("steps", steps)]
    };
    facts.push(("took", human(digest.duration())));
    facts.extend(digest.usage().sentence().map(|usage| ("agents and models", usage)));
    if let Some(end) = digest.end() {
        if !digest.is_merge() {
            facts.push(("ended at", brief(end.final_state.as_str(), NAME)));
        }
        facts.push(("exit code", end.exit_code.to_string()));
    }
    facts.extend(digest.began().map(|began| ("began", began.to_string())));
    let commit = digest.start().and_then(|start| start.commit.as_ref());
    facts.extend(commit.map(|commit| ("commit", brief(commit, 64))));
    let parent = digest.start().and_then(|start| start.parent.as_ref());
    facts.extend(parent.map(|parent| ("rewound from", brief(&parent.run, 200))));
    let file = digest.file_in_repository();
    facts.extend(Some(("loop file", brief(&file, 300))).filter(|_| !file.is_empty()));
    let run = digest.run_id();
    facts.extend(Some(("run", brief(run, 200))).filter(|_| !run.is_empty()));
    out.within("dl", &[], |out| {
        for (name, value) in facts {
            out.within("div", &[], |out| {
                out.leaf("dt", &[], name).leaf("dd", &[], &value);
            });
        }
    });
}

/// Writes the question that the run waits with, and how earlier ones were answered.
pub(super) fn question(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let answers = open_question::answers(page.digest.approvals());
    let awaiting = page.digest.awaiting();
    if awaiting.is_none() && answers.is_empty() {
        return;
    }
    let title = if awaiting.is_some() { "Question" } else { "Answers" };
    sections.add("question", title, |out| {
        if let Some(awaiting) = awaiting {
            out.leaf("pre", &[("tabindex", "0")], head(&stripped(&awaiting.question), MAX_DETAILS));
            out.within("dl", &[], |out| {
                for (name, value) in open_question::facts(awaiting) {
                    out.within("div", &[], |out| {
                        out.leaf("dt", &[], name).leaf("dd", &[], &brief(&value, 500));
                    });
                }
            });
        }
        if !answers.is_empty() {
            out.within("ul", &[], |out| {
                for line in &answers {
                    out.leaf("li", &[], &stripped(line));
                }
            });
        }
    });
}

/// Writes the chain from the outcome to its evidence, and what would have been with another verdict.
pub(super) fn why(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let Some(why) = page.why.as_ref().filter(|why| why.chain.len() > 1) else { return };
    sections.add("why", "Why", |out| {
        out.within("ol", &[("class", "chain")], |out| {
            let mut before = None;
            for part in &why.chain {
                let place = part.place();
                let is_new = place.is_some() && place != before;
                out.within("li", &[], |out| link(page, part, place.as_deref().filter(|_| is_new), out));
                before = place.or(before);
            }
        });
        if !why.otherwise.flips.is_empty() {
            out.ours("<h3>It would have ended otherwise if</h3>");
        }
        out.within("ul", &[], |out| {
            for flip in why.otherwise.flips.iter().take(MAX_FLIPS) {
                out.within("li", &[], |out| {
                    step_link(page, &flip.step, &format!("step {}", flip.step), out);
                    out.ours(": ").leaf("code", &[], &brief(flip.state.as_str(), NAME));
                    out.ours(" had said ").leaf("code", &[], &brief(flip.instead.as_str(), NAME));
                    out.ours(" instead of ").leaf("code", &[], &brief(flip.verdict.as_str(), NAME));
                    let (led, state) = match &flip.course {
                        Course::Ends(end) => (format!(": {} in ", end.outcome.word()), &end.final_state),
                        Course::Enters(state) => (": open, it would have entered ".to_owned(), state),
                    };
                    out.text(&led).leaf("code", &[], &brief(state.as_str(), NAME));
                });
            }
            if let Some(unknown) = &why.otherwise.unknown {
                let words =
                    format!("What another verdict would have led to is not known: {}.", brief(unknown, 300));
                out.leaf("li", &[], &words);
            }
        });
    });
}

fn link(page: &HtmlPage<'_>, link: &Link, place: Option<&str>, out: &mut Markup) {
    sentence(&link.says, out);
    if let Some(step) = &link.step {
        out.ours(" · ");
        step_link(page, step, &format!("step {step}"), out);
    }
    if let Some(place) = place {
        out.ours(" · ").leaf("code", &[], &brief(&page.digest.reader.in_repository(place), 300));
    }
    out.ours(" ").leaf("small", &[], &link.code.word());
    if !link.lines.is_empty() {
        let lines: Vec<String> = link.lines.iter().map(|line| stripped(line).into_owned()).collect();
        out.leaf("pre", &[("tabindex", "0")], &lines.join("\n"));
    }
}

/// Writes how another run differs.
pub(super) fn against(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let Some(against) = &page.detail.against else { return };
    sections.add("against", "Against another run", |out| {
        out.within("p", &[], |out| {
            out.leaf("code", &[], &brief(&against.name, 200))
                .ours(" came to ")
                .text(against.outcome)
                .ours(".");
        });
        match &against.first {
            None => {
                out.ours("<p>The same states, verdicts and ways, step by step.</p>");
            }
            Some((number, [here, there])) => {
                out.within("p", &[], |out| {
                    out.ours("They part at ");
                    step_link(page, number, &format!("step {number}"), out);
                    out.ours(":");
                });
                out.within("dl", &[("class", "pair")], |out| {
                    for (name, said) in [("here", here), ("there", there)] {
                        out.within("div", &[], |out| {
                            out.leaf("dt", &[], name).leaf("dd", &[], said);
                        });
                    }
                });
            }
        }
    });
}

/// Writes what this night and those before it came to.
pub(super) fn nights(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let Some(history) = history::of(page.digest) else { return };
    sections.add("nights", "Over the nights", |out| {
        let columns = ["night", "outcome", "#cycles", "fixed", "flaky", "left"];
        table("nights", &columns, out, |out| {
            for Night { at, outcome, verified, cycles, fixed, flaky, left, .. } in history.last().iter().rev()
            {
                let outcome = outcome.map_or("incomplete", Outcome::word);
                let doubt =
                    if outcome == Outcome::Success.word() && !verified { " (unverified)" } else { "" };
                out.within("tr", &[], |out| {
                    out.leaf("td", &[], &at.to_string()).leaf("td", &[], &format!("{outcome}{doubt}"));
                    out.leaf("td", &[("class", "n")], &cycles.to_string());
                    for states in [fixed, flaky, left] {
                        out.leaf("td", &[], &names(states));
                    }
                });
            }
        });
        let recurring = history.recurring();
        if !recurring.is_empty() {
            out.within("ul", &[], |out| {
                for one in recurring {
                    out.within("li", &[], |out| {
                        out.leaf("code", &[], &brief(one.state.as_str(), NAME)).ours(" ").text(&one.words());
                    });
                }
            });
        }
    });
}

fn names(states: &[StateName]) -> String {
    let mut names: Vec<String> =
        states.iter().take(MAX_NAMED).map(|state| brief(state.as_str(), NAME)).collect();
    let more = states.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// Writes the tasks, each with how it stands and what it took.
pub(super) fn tasks(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let Some(work) = page.digest.work() else { return };
    let Some(progress) = stages::progress(work) else { return };
    sections.add("tasks", "Tasks", |out| {
        out.leaf("p", &[], &progress);
        let (all, unreachable) = (&work.board().tasks, work.board().unreachable());
        let columns = ["task", "what", "stands", "#attempts", "#calls", "#took", "#cost"];
        table("tasks", &columns, out, |out| {
            for task in all.iter().take(MAX_TASKS) {
                let effort = work.effort(&task.id);
                let id = anchor("task", task.id.as_str());
                let class = if task.status == TaskStatus::Failed { "fail" } else { "" };
                out.within("tr", &[("id", &id), ("class", class)], |out| {
                    out.leaf("th", &[("scope", "row")], &brief(task.id.as_str(), 60));
                    out.within("td", &[], |out| {
                        out.text(&brief(&task.description, 300));
                        if let Some(why) = work.reason(task).filter(|_| task.status == TaskStatus::Failed) {
                            out.leaf("p", &[("class", "error")], &brief(why, 300));
                        }
                    });
                    let awaited = unreachable.get(&task.id);
                    let standing = awaited
                        .map(|awaited| format!("✗ unreachable, waits for {}", brief(awaited.as_str(), 60)));
                    let known = || format!("{} {}", stages::mark(task.status), stages::status(task.status));
                    out.leaf("td", &[], &standing.unwrap_or_else(known));
                    let numbers = [
                        effort.attempts.to_string(),
                        effort.usage.calls.to_string(),
                        human(effort.duration),
                        cost(&effort.usage),
                    ];
                    for number in &numbers {
                        out.leaf("td", &[("class", "n")], number);
                    }
                });
            }
        });
        more(all.len(), MAX_TASKS, "more task", out);
    });
}

fn cost(usage: &Usage) -> String {
    usage.cost_usd.map_or_else(String::new, |cost| format!("${cost:.2}"))
}

fn more(all: usize, shown: usize, what: &str, out: &mut Markup) {
    let more = all.saturating_sub(shown) as u64;
    if more > 0 {
        out.leaf("p", &[], &format!("… and {}", plural(more, what)));
    }
}

/// Writes what those cost who have a role.
pub(super) fn roles(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let all = page.digest.usage();
    let work = page.digest.work();
    if all.is_nothing() {
        return;
    }
    sections.add("cost", "Cost", |out| {
        table("cost", &["role", "#calls", "#tokens", "#cost"], out, |out| {
            let mut row = |name: &str, usage: &Usage| {
                out.within("tr", &[], |out| {
                    out.leaf("th", &[("scope", "row")], &brief(name, 60));
                    let numbers = [usage.calls.to_string(), usage.tokens().to_string(), cost(usage)];
                    for number in &numbers {
                        out.leaf("td", &[("class", "n")], number);
                    }
                });
            };
            if let Some(work) = work.filter(|work| !work.roles().is_empty()) {
                work.roles().iter().take(MAX_NAMED * 4).for_each(|(role, usage)| row(role, usage));
                Some(work.others())
                    .filter(|others| !others.is_nothing())
                    .into_iter()
                    .for_each(|usage| row("others", usage));
            }
            row("all", all);
        });
    });
}

/// Writes what confined the actions, and what they were denied.
pub(super) fn confined(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let rows = page.digest.confined().rows();
    if rows.len() == 0 {
        return;
    }
    sections.add("sandbox", "Sandbox", |out| {
        table("sandbox", &["engine", "mode", "#actions", "enforced", "what it left or met"], out, |out| {
            for row in rows {
                let enforced: Vec<&str> = row.enforced.iter().map(String::as_str).collect();
                out.within("tr", &[], |out| {
                    out.leaf("th", &[("scope", "row")], &brief(&row.engine, 60));
                    out.leaf("td", &[], &brief(&row.mode, 60));
                    out.leaf("td", &[("class", "n")], &row.actions.to_string());
                    out.leaf("td", &[], &enforced.join(", "));
                    out.leaf("td", &[], &brief(&row.remarks().join("; "), 2000));
                });
            }
        });
    });
}

/// Draws the loop with the way of the run, and says the same in a table.
pub(super) fn graph(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let graph = &page.detail.graph;
    if graph.states.is_empty() || page.digest.is_merge() {
        return;
    }
    sections.add("graph", "Graph", |out| {
        if let Some(drawn) = graph::embedded(graph) {
            out.within(
                "div",
                &[
                    ("class", "wide picture"),
                    ("tabindex", "0"),
                    ("role", "region"),
                    ("aria-label", "picture of the graph"),
                ],
                |out| {
                    out.add(&drawn);
                },
            );
        }
        // For screen readers, and for graphs that are too large to be drawn.
        let rows = graph.rows();
        table("ways", &["from", "verdict", "to", "#times"], out, |out| {
            for EdgeRow { from, words, to, count } in rows.iter().take(MAX_WAYS) {
                out.within("tr", &[], |out| {
                    out.leaf("td", &[], &brief(from, NAME)).leaf("td", &[], &brief(words, NAME));
                    out.leaf("td", &[], &brief(to, NAME)).leaf("td", &[("class", "n")], &count.to_string());
                });
            }
        });
        more(rows.len(), MAX_WAYS, "more way", out);
    });
}

/// Counts what happened in each state.
pub(super) fn states(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let states = page.digest.states();
    if states.is_empty() || page.digest.is_merge() {
        return;
    }
    sections.add("states", "States", |out| {
        let columns = ["state", "#visits", "#failed", "verdicts", "#took", "written at"];
        table("states", &columns, out, |out| {
            for (state, count) in states.iter().take(MAX_STATES) {
                let words: Vec<String> = count
                    .verdicts
                    .iter()
                    .take(4)
                    .map(|(word, times)| format!("{times}× {}", brief(word, 40)))
                    .collect();
                let line = page.digest.line(state);
                let place =
                    line.map(|line| format!("{}:{line}", brief(&page.digest.file_in_repository(), 300)));
                let id = anchor("state", state.as_str());
                out.within("tr", &[("id", &id)], |out| {
                    out.leaf("th", &[("scope", "row")], &brief(state.as_str(), NAME));
                    for number in [count.visits, count.failing] {
                        out.leaf("td", &[("class", "n")], &number.to_string());
                    }
                    out.leaf("td", &[], &words.join(", ")).leaf(
                        "td",
                        &[("class", "n")],
                        &human(count.duration),
                    );
                    out.within("td", &[], |out| {
                        if let Some(place) = &place {
                            out.leaf("code", &[], place);
                        }
                    });
                });
            }
        });
        more(states.len(), MAX_STATES, "more state", out);
    });
}

/// Lists what the run changed in the working tree.
pub(super) fn changes(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let unknown = page.digest.changes_unknown();
    let known = page.digest.changes().filter(|changes| !changes.is_nothing() || !changes.unseen.is_empty());
    let green = page.digest.green();
    if unknown.is_none() && known.is_none() && green.is_none() {
        return;
    }
    let title = if unknown.is_some() || known.is_some() { "Changed files" } else { "Verification" };
    sections.add("changes", title, |out| {
        if let Some(green) = &green {
            out.leaf("p", &[], &brief(green, 500));
        }
        for row in page.digest.closing_rows() {
            out.leaf("p", &[], &brief(&row.words(), 500));
        }
        if let Some(unknown) = unknown {
            out.leaf(
                "p",
                &[],
                &format!("What the run changed in the working tree is not known: {}.", brief(unknown, 300)),
            );
        }
        let Some(changes) = known else { return };
        for unseen in &changes.unseen {
            out.leaf("p", &[], &format!("Not seen: {}.", brief(unseen, 300)));
        }
        if changes.files.is_empty() {
            return;
        }
        table("changed files", &["file", "change", "#lines", "#bytes"], out, |out| {
            for file in changes.files.iter().take(MAX_FILES) {
                let from =
                    file.from.as_ref().map_or_else(String::new, |from| format!(" from {}", brief(from, 200)));
                let lines = file.lines.map(|lines| format!("+{} −{}", lines.added, lines.removed));
                out.within("tr", &[], |out| {
                    out.within("td", &[], |out| {
                        out.leaf("code", &[], &brief(&file.path, 200));
                    });
                    out.leaf("td", &[], &format!("{}{from}", file.kind.word()));
                    out.leaf("td", &[("class", "n")], &lines.unwrap_or_default());
                    out.leaf(
                        "td",
                        &[("class", "n")],
                        &file.size.map_or_else(String::new, |size| size.to_string()),
                    );
                });
            }
        });
        more(
            usize::try_from(changes.count()).unwrap_or(usize::MAX),
            changes.files.len().min(MAX_FILES),
            "more file",
            out,
        );
        if let Some(why) = &changes.no_patch {
            out.leaf("p", &[], &format!("There is no changes.patch: {}.", brief(why, 300)));
        }
    });
}

/// Lists the warnings.
pub(super) fn warnings(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let warnings = page.digest.warnings();
    if warnings.is_empty() {
        return;
    }
    sections.add("warnings", "Warnings", |out| {
        out.within("ul", &[], |out| {
            for warning in warnings {
                out.within("li", &[], |out| {
                    if let Some(state) = &warning.state {
                        out.leaf("code", &[], &brief(state.as_str(), NAME)).ours(": ");
                    }
                    out.text(&brief(&warning.message, 1000));
                });
            }
        });
        // The digest has kept only the first warnings, and all of these are listed above.
        more(usize::try_from(page.digest.more_warnings()).unwrap_or(usize::MAX), 0, "more warning", out);
    });
}

/// Says how to see more of the run, and to begin it again.
pub(super) fn again(page: &HtmlPage<'_>, sections: &mut PageSections) {
    let Some(command) = advice::again(page.digest) else { return };
    sections.add("again", "On your machine", |out| {
        out.leaf("pre", &[("tabindex", "0")], &command.to_string());
    });
}
