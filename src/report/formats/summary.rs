//! The summary of a run in Markdown, as a job shows it: its outcome, the way it took, every step, the output that
//! decided, and how to see it again. Its size is bounded whatever the run printed.

use std::fmt::Write as _;
use std::time::Duration;

use super::markdown::{code, fenced, with_code, words};
use super::merge_items;
use crate::base::name::StateName;
use crate::base::text::{head, one_line, plural, tail};
use crate::base::time::human;
use crate::board::TaskStatus;
use crate::engine::night::Night;
use crate::engine::outcome::Outcome;
use crate::engine::suppose::Course;
use crate::evaluate::model::Usage;
use crate::report::advice::{self, Advice};
use crate::report::board_work::BoardWork;
use crate::report::closing::advice;
use crate::report::digest::closing_rows::ClosingStanding;
use crate::report::digest::{Digest, EndKind, SentencePart};
use crate::report::items::Items;
use crate::report::nights::{self, History};
use crate::report::shown_steps::{self, ShownStep};
use crate::report::taken_edges::EdgeCount;
use crate::report::unbegun_run::Unbegun;
use crate::report::why::Why;
use crate::report::{open_question, passes, stages};

// With these numbers the summary of any run stays below 900 KB. GitHub shows none of a file beyond 1 MiB.
const FIRST_ROWS: usize = 20;
const LAST_ROWS: usize = 80;
const MAX_WARNINGS: usize = 20;
const MAX_OUTPUT: usize = 16 * 1024;
const MAX_OUTPUT_LINES: usize = 60;

/// How many states of a night are named.
const MAX_NAMED: usize = 8;

/// How many changed files are listed.
const MAX_FILES: usize = 50;

/// How many tasks are listed, and how many roles.
const MAX_TASKS: usize = 100;
const MAX_ROLES: usize = 20;

/// How many other verdicts are listed.
const MAX_FLIPS: usize = 5;

/// A larger graph is not readable as a picture.
const MAX_STATES: usize = 60;
const MAX_EDGES: usize = 200;

/// Writes the summary.
pub fn render(digest: &Digest) -> String {
    let mut out = String::new();
    headline(digest, &mut out);
    if let Some(unbegun) = digest.unbegun() {
        not_begun(unbegun, &mut out);
        return out;
    }
    let history = nights::of(digest);
    if let Some(history) = history.as_ref().filter(|history| is_quiet(digest, history)) {
        let nights = history.clean_in_a_row() as u64;
        let in_a_row = if nights > 1 { " in a row" } else { "" };
        let _ = writeln!(out, "{}{in_a_row}.", plural(nights, "clean night"));
        return out;
    }
    if digest.is_merge() {
        merge_items::render(&Items::of(digest), &mut out);
        changed(digest, &mut out);
        warnings(digest, &mut out);
        return out;
    }
    question(digest, &mut out);
    why(digest, &mut out);
    over_the_nights(history.as_ref(), &mut out);
    if let Some(work) = digest.work() {
        tasks(work, &mut out);
        roles(work, &mut out);
    }
    changed(digest, &mut out);
    path(digest, &mut out);
    steps(digest, &mut out);
    closing_pass(digest, &mut out);
    confined(digest, &mut out);
    last_output(digest, &mut out);
    warnings(digest, &mut out);
    reproduce(digest, &mut out);
    out
}

fn parts(parts: &[SentencePart]) -> String {
    parts.iter().fold(String::new(), |mut text, part| {
        match part {
            SentencePart::Words(part) => text.push_str(&words(part)),
            SentencePart::Name(name) => text.push_str(&code(name, 120)),
        }
        text
    })
}

fn headline(digest: &Digest, out: &mut String) {
    let sentence = parts(&digest.sentence_parts());
    let _ = writeln!(out, "## {} {}\n\n{sentence}\n", icon(digest), code(digest.loop_name(), 120));
    if digest.not_run().is_some() || digest.unbegun().is_some() {
        return;
    }
    let is_merge = digest.is_merge();
    let mut facts = if is_merge {
        vec![plural(digest.step_count(), "item")]
    } else {
        vec![plural(digest.iterations(), "iteration"), plural(digest.step_count(), "step")]
    };
    facts.push(human(digest.duration()));
    facts.extend(digest.usage().sentence());
    if let Some(end) = digest.end() {
        if !is_merge {
            facts.push(format!("ended at {}", code(end.final_state.as_str(), 120)));
        }
        facts.push(format!("exit code {}", end.exit_code));
    }
    if let Some(reused) = digest.reused() {
        let took = human(Duration::from_millis(reused.duration_ms));
        facts.push(format!("reused from run {}, which took {took}", code(&reused.run, 200)));
    }
    if !digest.run_id().is_empty() {
        facts.push(format!("run {}", code(digest.run_id(), 200)));
    }
    let _ = writeln!(out, "{}\n", facts.join(" · "));
    if let Some(green) = digest.green() {
        let _ = writeln!(out, "{}\n", with_code(&green));
    }
    if let Some(advice) = advice(digest) {
        quoted(&advice, out);
    }
}

/// Writes what can be done; a command in a block of its own, from which it is copied as it is.
fn quoted(advice: &Advice, out: &mut String) {
    let _ = writeln!(out, "> {}", with_code(&advice.words));
    if let Some(command) = &advice.command {
        let block = fenced(&command.to_string());
        block.lines().for_each(|line| {
            let _ = writeln!(out, "> {line}");
        });
    }
    out.push('\n');
}

/// Writes the question that the run waits with, and how earlier ones were answered.
fn question(digest: &Digest, out: &mut String) {
    if let Some(awaiting) = digest.awaiting() {
        let _ = writeln!(
            out,
            "### Question\n\n{}\n| | |\n|---|---|",
            fenced(head(&awaiting.question, MAX_OUTPUT))
        );
        for (name, value) in open_question::facts(awaiting) {
            let _ = writeln!(out, "| {name} | {} |", code(&value, 500));
        }
        out.push('\n');
        if digest.changes().is_some_and(|changes| changes.patch.is_some()) {
            out.push_str(
                "What it is about stands below; the whole patch is `changes.patch` among the reports.\n\n",
            );
        }
    }
    let answers = open_question::answers(digest.approvals());
    for line in &answers {
        let _ = writeln!(out, "- {}", words(line));
    }
    if !answers.is_empty() {
        out.push('\n');
    }
}

/// Writes why the run ended as it did. The outcome itself stands in the headline.
fn why(digest: &Digest, out: &mut String) {
    let Some(why) = Why::of(digest).filter(|why| why.chain.len() > 1) else { return };
    out.push_str("### Why\n\n");
    let mut before = None;
    for link in &why.chain[1..] {
        let place = link.place();
        let shown = place.as_ref().filter(|place| before.as_ref() != Some(*place));
        let _ = write!(out, "- ← {}", parts(&link.says));
        if let Some(place) = shown {
            let _ = write!(out, " · {}", code(&digest.reader.in_repository(place), 300));
        }
        let _ = writeln!(out, " · {}", code(&link.code.word(), 60));
        if !link.lines.is_empty() {
            let _ = write!(out, "\n{}", fenced(&link.lines.join("\n")));
        }
        before = place.or(before);
    }
    let flips = why.otherwise.flips.iter().take(MAX_FLIPS);
    for (index, flip) in flips.enumerate() {
        if index == 0 {
            out.push_str("\nIt would have ended otherwise if\n\n");
        }
        let [state, instead, verdict] =
            [flip.state.as_str(), flip.instead.as_str(), flip.verdict.as_str()].map(|name| code(name, 120));
        let led = match &flip.course {
            Course::Ends(end) => format!("{} in {}", end.outcome.word(), code(end.final_state.as_str(), 120)),
            Course::Enters(state) => format!("open, it would have entered {}", code(state.as_str(), 120)),
        };
        let _ = writeln!(out, "- step {}: {state} had said {instead} instead of {verdict}: {led}", flip.step);
    }
    out.push('\n');
}

/// Writes what keeps the run from beginning, and what to do about it.
fn not_begun(unbegun: &Unbegun, out: &mut String) {
    out.push_str("Nothing was run.\n\n");
    let details = unbegun.details();
    if !details.is_empty() {
        out.push_str(&fenced(head(&details, MAX_OUTPUT)));
    }
}

/// Tells whether a night needed nothing and has nothing to say: it is not to be looked at.
fn is_quiet(digest: &Digest, history: &History) -> bool {
    history.nights().last().is_some_and(nights::is_clean)
        && history.recurring().is_empty()
        && digest.warnings().is_empty()
}

fn over_the_nights(history: Option<&History>, out: &mut String) {
    let Some(history) = history else { return };
    out.push_str("### Over the nights\n\n| night | outcome | cycles | fixed | flaky | left |\n|---|---|--:|---|---|---|\n");
    for night in history.last().iter().rev() {
        let Night { at, outcome, verified, cycles, fixed, flaky, left, .. } = night;
        let outcome = outcome.map_or("incomplete", Outcome::word);
        let doubt = if outcome == Outcome::Success.word() && !verified { " (unverified)" } else { "" };
        let [fixed, flaky, left] = [fixed, flaky, left].map(|states| named(states));
        let _ = writeln!(out, "| {at} | {outcome}{doubt} | {cycles} | {fixed} | {flaky} | {left} |");
    }
    let recurring = history.recurring();
    for (index, one) in recurring.iter().enumerate() {
        let before = if index == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{before}- {} {}", code(one.state.as_str(), 120), one.words());
    }
    out.push('\n');
}

/// Lists the checks that were made once more at the end.
fn closing_pass(digest: &Digest, out: &mut String) {
    if digest.closing_pass().is_empty() {
        return;
    }
    out.push_str("### Closing pass\n\n| check | verdict | exit | duration |\n|---|---|--:|--:|\n");
    for row in digest.closing_rows() {
        let sign = match row.standing() {
            ClosingStanding::Passed => "✅",
            ClosingStanding::Quarantined => "⏭️",
            ClosingStanding::Failed => "❌",
        };
        let check = row.last;
        let (name, verdict) = (code(&check.check, 200), code(check.verdict.as_str(), 60));
        let after = row.after().map_or_else(String::new, |after| format!(", {after}"));
        let took = human(Duration::from_millis(check.duration_ms));
        let _ = writeln!(out, "| {name} | {sign} {verdict}{after} | {} | {took} |", check.exit_code);
    }
    out.push('\n');
    let rows = digest.closing_rows();
    for check in rows.iter().map(|row| row.last).filter(|check| !check.passed) {
        let printed = if check.stderr.trim().is_empty() { &check.stdout } else { &check.stderr };
        let last: Vec<&str> = printed.trim_end().lines().rev().take(20).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        if !last.is_empty() {
            let _ = writeln!(out, "{} printed:\n\n{}", code(&check.check, 200), fenced(&last.join("\n")));
        }
    }
}

/// Lists what the run changed in the working tree.
fn changed(digest: &Digest, out: &mut String) {
    if let Some(unknown) = digest.changes_unknown() {
        let _ = writeln!(
            out,
            "What the run changed in the working tree is not known: {}.\n",
            words(&one_line(unknown, 300))
        );
    }
    let Some(changes) = digest.changes() else { return };
    for unseen in &changes.unseen {
        let _ = writeln!(out, "Not seen: {}.\n", words(&one_line(unseen, 300)));
    }
    if changes.is_nothing() {
        return;
    }
    let counts = changes.files.iter().filter_map(|file| file.lines);
    let (added, removed) =
        counts.fold((0, 0), |(added, removed), lines| (added + lines.added, removed + lines.removed));
    let _ = writeln!(
        out,
        "### Changed files\n\n{}, +{added} −{removed} lines\n",
        plural(changes.count(), "file")
    );
    if !changes.files.is_empty() {
        out.push_str("| file | change | lines | bytes |\n|---|---|--:|--:|\n");
    }
    for file in changes.files.iter().take(MAX_FILES) {
        let from = file.from.as_ref().map_or_else(String::new, |from| format!(" from {}", code(from, 200)));
        let run = file.run.as_ref().map_or_else(String::new, |run| format!(" by run {}", code(run, 120)));
        let why = file
            .not_in_patch
            .as_ref()
            .map_or_else(String::new, |why| format!(", not in the patch: {}", words(why)));
        let lines =
            file.lines.map_or_else(String::new, |lines| format!("+{} −{}", lines.added, lines.removed));
        let size = file.size.map_or_else(String::new, |size| size.to_string());
        let _ = writeln!(
            out,
            "| {} | {}{from}{run}{why} | {lines} | {size} |",
            code(&file.path, 200),
            file.kind.word()
        );
    }
    // The journal has counted files beyond those that it lists.
    let more = changes.count().saturating_sub(changes.files.len().min(MAX_FILES) as u64);
    if more > 0 {
        let _ = writeln!(out, "\n… and {} more", plural(more, "file"));
    }
    if changes.head_moved() {
        let _ = writeln!(
            out,
            "\nHEAD went from {} to {}.",
            code(changes.start.commit.as_str(), 64),
            code(changes.end.commit.as_str(), 64)
        );
        for commit in changes.commits.iter().take(MAX_NAMED) {
            let _ = writeln!(
                out,
                "- {} {}",
                code(commit.sha.as_str().get(..12).unwrap_or(""), 12),
                words(&one_line(&commit.subject, 120))
            );
        }
    }
    if let Some(why) = &changes.no_patch {
        let _ = writeln!(out, "\nThere is no `changes.patch`: {}.", words(&one_line(why, 300)));
    }
    out.push('\n');
}

fn named(states: &[StateName]) -> String {
    let mut names: Vec<String> =
        states.iter().take(MAX_NAMED).map(|state| code(state.as_str(), 120)).collect();
    let more = states.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn icon(digest: &Digest) -> &'static str {
    match digest.end().map(|end| (end.outcome, end.verified)) {
        Some((Outcome::Success, true)) => "✅",
        Some((Outcome::Success, false)) => "⚠️",
        Some((Outcome::Handoff, _)) => "🟡",
        Some((Outcome::Blocked, _)) => "✋",
        Some((Outcome::Timeout, _)) => "⏰",
        Some((Outcome::Interrupted | Outcome::LeaseLost | Outcome::Stopped | Outcome::Cancelled, _)) => "⏹️",
        Some((
            Outcome::Failure
            | Outcome::Exhausted
            | Outcome::Error
            | Outcome::OverBudget
            | Outcome::Unavailable,
            _,
        )) => "❌",
        None if digest.not_run().is_some() => "⏭️",
        None if digest.unbegun().is_some() => "❌",
        None => "❔",
    }
}

/// Writes the tasks as a tree, each with how it stands and what it took.
fn tasks(work: &BoardWork, out: &mut String) {
    let Some(progress) = stages::progress(work) else { return };
    let _ = writeln!(out, "### Tasks\n\n{progress}\n");
    let (all, unreachable) = (&work.board().tasks, work.board().unreachable());
    for task in all.iter().take(MAX_TASKS) {
        let effort = work.effort(&task.id);
        let mut facts = vec![stages::status(task.status).to_owned()];
        if let Some(awaited) = unreachable.get(&task.id) {
            // That it is pending would be true as well, and would not say that it stays so.
            facts = vec![format!("unreachable, waits for task {}", words(awaited.as_str()))];
        }
        if effort.attempts > 0 {
            facts.push(plural(effort.attempts, "attempt"));
        }
        if effort.usage.calls > 0 {
            facts.push(plural(effort.usage.calls, "call"));
        }
        let why = work.reason(task).filter(|_| task.status == TaskStatus::Failed);
        let why = why.map_or_else(String::new, |why| format!(": {}", words(&one_line(why, 200))));
        let indent = "  ".repeat(task.id.depth().min(8) as usize);
        let (mark, id) = (stages::mark(task.status), words(task.id.as_str()));
        let description = words(&one_line(&task.description, 160));
        let _ = writeln!(out, "{indent}- {mark} {id} {description} — {}{why}", facts.join(", "));
    }
    let more = all.len().saturating_sub(MAX_TASKS) as u64;
    if more > 0 {
        let _ = writeln!(out, "- and {}", plural(more, "more task"));
    }
    out.push('\n');
}

/// Writes what those cost who have a role.
fn roles(work: &BoardWork, out: &mut String) {
    if work.roles().is_empty() {
        return;
    }
    out.push_str("### Calls by role\n\n| role | calls | tokens | cost |\n|---|--:|--:|--:|\n");
    let mut row = |name: &str, usage: &Usage| {
        let cost = usage.cost_usd.map_or_else(String::new, |cost| format!("${cost:.2}"));
        let _ = writeln!(out, "| {name} | {} | {} | {cost} |", usage.calls, usage.tokens());
    };
    for (role, usage) in work.roles().iter().take(MAX_ROLES) {
        row(&code(role, 60), usage);
    }
    let mut rest = work.others().clone();
    work.roles().values().skip(MAX_ROLES).for_each(|usage| rest.add(usage));
    if !rest.is_nothing() {
        row("others", &rest);
    }
    out.push('\n');
}

fn path(digest: &Digest, out: &mut String) {
    if digest.shown_edges().is_empty() {
        return;
    }
    let nodes = nodes(digest);
    out.push_str("### The way it took\n\n");
    if nodes.len() <= MAX_STATES && digest.shown_edges().len() <= MAX_EDGES {
        flowchart(digest, &nodes, out);
    } else {
        edge_list(digest, out);
    }
    out.push('\n');
}

/// Returns every state on the way, in the order in which it was met.
fn nodes(digest: &Digest) -> Vec<&str> {
    let mut nodes: Vec<&str> = Vec::new();
    let ends = digest.shown_edges().keys().flat_map(|(from, to)| [from.as_str(), to.as_str()]);
    for name in ends {
        // One more than can be drawn is enough to know that the graph is too large, and the search is linear.
        if nodes.len() <= MAX_STATES && !nodes.contains(&name) {
            nodes.push(name);
        }
    }
    nodes
}

fn flowchart(digest: &Digest, nodes: &[&str], out: &mut String) {
    let last = digest.end().map(|end| end.final_state.as_str());
    let id = |name: &str| nodes.iter().position(|node| *node == name).unwrap_or(0);
    out.push_str("```mermaid\nflowchart LR\n");
    for (index, name) in nodes.iter().enumerate() {
        // By number: a state may be called `end`, which Mermaid takes for a word of its own.
        let label = label(name, 120);
        let _ = if last == Some(*name) {
            writeln!(out, "  s{index}([\"{label}\"])")
        } else {
            writeln!(out, "  s{index}[\"{label}\"]")
        };
    }
    for ((from, to), edge) in digest.shown_edges() {
        let (from, to) = (id(from.as_str()), id(to.as_str()));
        let _ = writeln!(out, "  s{from} -->|\"{}\"| s{to}", edge_label(edge, |word| label(word, 30)));
    }
    if let Some(last) = last.filter(|last| nodes.contains(last)) {
        let colour = match digest.end_kind() {
            EndKind::Success | EndKind::NotRun => "#1a7f37",
            EndKind::HandedOff => "#9a6700",
            EndKind::Failure | EndKind::Error => "#cf222e",
        };
        let _ = writeln!(out, "  style s{} stroke:{colour},stroke-width:3px", id(last));
    }
    out.push_str("```\n");
}

fn edge_list(digest: &Digest, out: &mut String) {
    for ((from, to), edge) in digest.shown_edges().iter().take(MAX_EDGES) {
        let label = edge_label(edge, |word| code(word, 30));
        let _ = writeln!(out, "- {} → {}: {label}", code(from.as_str(), 120), code(to.as_str(), 120));
    }
    let more = digest.shown_edges().len().saturating_sub(MAX_EDGES) as u64;
    if more > 0 {
        let _ = writeln!(out, "- and {}", plural(more, "more edge"));
    }
}

/// Returns `no ×2`, or `yes ×1, no ×2` where several verdicts led the same way.
fn edge_label(edge: &EdgeCount, shown: impl Fn(&str) -> String) -> String {
    let mut labels: Vec<String> =
        edge.verdicts.iter().take(3).map(|(word, count)| format!("{} ×{count}", shown(word))).collect();
    if edge.verdicts.len() > 3 {
        labels.push(format!("… in all ×{}", edge.count));
    }
    labels.join(", ")
}

/// Returns a text as a label of Mermaid: everything that could mean something to it or to Markdown as a number.
fn label(text: &str, limit: usize) -> String {
    one_line(text, limit).chars().fold(String::new(), |mut out, c| {
        match c {
            ' ' | '_' | '-' | '.' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c => {
                let _ = write!(out, "#{};", u32::from(c));
            }
        }
        out
    })
}

fn steps(digest: &Digest, out: &mut String) {
    let (all, bookkeeping) = shown_steps::steps(digest);
    if all.is_empty() {
        return;
    }
    out.push_str("### Steps\n\n| # | state | action | verdict | exit | duration | next |\n");
    out.push_str("|--:|---|---|---|--:|--:|---|\n");
    let omitted = digest.omitted();
    let rows = shown_steps::rows(&all, digest.work().is_none());
    let fits = omitted == 0 && rows.len() <= FIRST_ROWS + LAST_ROWS;
    let (first, last) = if fits { (&rows[..], &rows[..0]) } else { rows_of_both_ends(&rows) };
    for one in first {
        row(one, out);
    }
    if !fits {
        let in_between = &rows[first.len()..rows.len() - last.len()];
        let left_out = omitted + in_between.iter().map(shown_steps::StepRow::steps).sum::<u64>();
        let _ = writeln!(out, "| … | {} not shown | | | | | |", plural(left_out, "step"));
    }
    for one in last {
        row(one, out);
    }
    if let Some(sentence) = shown_steps::left_out(bookkeeping) {
        let _ = writeln!(out, "\n{sentence}.");
    }
    out.push('\n');
}

/// Returns the rows of the beginning and of the end. In a run of which the middle was not kept, they may be few.
fn rows_of_both_ends<'r, 'd>(
    rows: &'r [shown_steps::StepRow<'d>],
) -> (&'r [shown_steps::StepRow<'d>], &'r [shown_steps::StepRow<'d>]) {
    let first = rows.len().min(FIRST_ROWS);
    (&rows[..first], &rows[rows.len().saturating_sub(LAST_ROWS).max(first)..])
}

fn row(row: &shown_steps::StepRow<'_>, out: &mut String) {
    let ShownStep { step, next } = match row {
        shown_steps::StepRow::Step(step) => step,
        shown_steps::StepRow::Like { passes, .. } => {
            let _ = writeln!(out, "| … | {} | | | | | |", passes::like(*passes));
            return;
        }
    };
    let action = step.action_line(60).map_or_else(String::new, |action| code(&action, 60));
    let verdict = match step.verdict() {
        Some(verdict) => code(verdict.as_str(), 60),
        None => words(&step.word()),
    };
    let exit = step.result.as_ref().map_or_else(String::new, |result| result.exit_code.to_string());
    let duration = step.result.as_ref().map_or_else(String::new, |result| human(result.duration));
    let next = next.map_or_else(String::new, |next| code(next.as_str(), 120));
    let _ = writeln!(
        out,
        "| {} | {} | {action} | {} {verdict} | {exit} | {duration} | {next} |",
        step.number,
        code(step.state.as_str(), 120),
        step.mark(),
    );
}

fn last_output(digest: &Digest, out: &mut String) {
    let unverified = || digest.end().filter(|end| !end.verified).and_then(|_| digest.last_failing());
    let Some(step) = digest.deciding_step().or_else(unverified) else {
        return;
    };
    let printed = step.output();
    if printed.trim().is_empty() {
        return;
    }
    // One line without an end, as of minified code, would leave no room for those before it.
    let lines: Vec<&str> = printed.lines().map(|line| head(line, 2000)).collect();
    let shown = lines[lines.len().saturating_sub(MAX_OUTPUT_LINES)..].join("\n");
    let place = match digest.line(&step.state) {
        Some(line) => format!(", {}", code(&format!("{}:{line}", digest.file_in_repository()), 300)),
        None => String::new(),
    };
    let state = code(step.state.as_str(), 120);
    let _ = writeln!(out, "### Last output of {state} (step {}{place})\n", step.number);
    if let Some(action) = step.action_line(200) {
        let _ = writeln!(out, "{} came to {}\n", code(&action, 200), words(&step.verdict_line()));
    }
    let _ = writeln!(out, "{}", fenced(tail(&shown, MAX_OUTPUT)));
}

/// Says what confined the actions, and what they were denied.
fn confined(digest: &Digest, out: &mut String) {
    let rows = digest.confined().rows();
    if rows.len() == 0 {
        return;
    }
    out.push_str("### Sandbox\n\n");
    for row in rows {
        let enforced: Vec<&str> = row.enforced.iter().map(String::as_str).collect();
        let enforced = if enforced.is_empty() { String::new() } else { format!(": {}", enforced.join(", ")) };
        let _ = writeln!(out, "- {}{}", words(&row.sentence()), words(&enforced));
        for remark in row.remarks() {
            let _ = writeln!(out, "  - {}", with_code(&one_line(&remark, 1000)));
        }
    }
    out.push('\n');
}

fn warnings(digest: &Digest, out: &mut String) {
    if digest.warnings().is_empty() {
        return;
    }
    out.push_str("### Warnings\n\n");
    for warning in digest.warnings().iter().take(MAX_WARNINGS) {
        out.push_str("- ");
        if let Some(state) = &warning.state {
            let _ = write!(out, "{}: ", code(state.as_str(), 120));
        }
        let _ = writeln!(out, "{}", words(&one_line(&warning.message, 300)));
    }
    let more = digest.warnings().len().saturating_sub(MAX_WARNINGS) as u64 + digest.more_warnings();
    if more > 0 {
        let _ = writeln!(out, "- and {}", plural(more, "more warning"));
    }
    out.push('\n');
}

fn reproduce(digest: &Digest, out: &mut String) {
    if let Some(command) = advice::again(digest) {
        out.push_str("### On your machine\n\n");
        out.push_str(&fenced(&command.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::base::time::Timestamp;
    use crate::engine::event::Event;
    use crate::engine::outcome::TerminatedBy;
    use crate::report::testing::{Journal, failing, plan, planned, state, succeeding, working};

    #[test]
    fn a_failing_run() {
        assert_snapshot!(render(&failing().digest()), @r#"
        ## ❌ `fix-types`

        failure: `check` said no in 3 of 3 iterations

        3 iterations · 5 steps · 11.8s · ended at `failed` · exit code 1 · run `fix-types-20251120T234847-1f2e`

        ### Why

        - ← it reached `failed` · `.loops/fix-types.yaml` · `terminal-reached`
        - ← step 5: `check` → `failed`, the way for `no` · `.loops/fix-types.yaml:6` · `route-verdict`
        - ← step 5: `check` said no · `verdict-failing`
        - ← `exit_code`: exit 1, 2.3s · `evaluator-exit-code`
        - ← `mypy src/` printed last · `evidence-output`

        ```text
        src/app.py:3: error: Name "foo" is not defined  [name-defined]
        src/app.py:9:5: error: Missing return statement  [return]
        Found 2 errors in 1 file (checked 4 source files)
        ```

        ### The way it took

        ```mermaid
        flowchart LR
          s0["check"]
          s1["fix"]
          s2(["failed"])
          s0 -->|"no ×2"| s1
          s1 -->|"next ×2"| s0
          s0 -->|"no ×1"| s2
          style s2 stroke:#cf222e,stroke-width:3px
        ```

        ### Steps

        | # | state | action | verdict | exit | duration | next |
        |--:|---|---|---|--:|--:|---|
        | 1 | `check` | `mypy src/` | ✗ `no` | 1 | 2.3s | `fix` |
        | 2 | `fix` | `ruff check --fix src/` | ✓ exit 0 | 0 | 2.3s | `check` |
        | 3 | `check` | `mypy src/` | ✗ `no` | 1 | 2.3s | `fix` |
        | 4 | `fix` | `ruff check --fix src/` | ✓ exit 0 | 0 | 2.3s | `check` |
        | 5 | `check` | `mypy src/` | ✗ `no` | 1 | 2.3s | `failed` |

        ### Last output of `check` (step 5, `.loops/fix-types.yaml:6`)

        `mypy src/` came to no (exit 1, 2.3s)

        ```text
        src/app.py:3: error: Name "foo" is not defined  [name-defined]
        src/app.py:9:5: error: Missing return statement  [return]
        Found 2 errors in 1 file (checked 4 source files)
        ```

        ### On your machine

        ```text
        ll-loop run fix-types --strict
        ```
        "#);
    }

    #[test]
    fn a_success() {
        assert_snapshot!(render(&succeeding().digest()), @r#"
        ## ✅ `fix-types`

        success: `check` said yes

        2 iterations · 3 steps · 7.0s · ended at `done` · exit code 0 · run `fix-types-20251120T234847-1f2e`

        ### Why

        - ← it reached `done` · `.loops/fix-types.yaml` · `terminal-reached`
        - ← step 3: `check` → `done`, the way for `yes` · `.loops/fix-types.yaml:6` · `route-verdict`
        - ← step 3: `check` said yes · `verdict-passing`
        - ← `exit_code`: exit 0, 2.3s · `evaluator-exit-code`
        - ← `mypy src/` printed last · `evidence-output`

        ```text
        Success: no issues found
        ```

        ### The way it took

        ```mermaid
        flowchart LR
          s0["check"]
          s1["fix"]
          s2(["done"])
          s0 -->|"no ×1"| s1
          s1 -->|"next ×1"| s0
          s0 -->|"yes ×1"| s2
          style s2 stroke:#1a7f37,stroke-width:3px
        ```

        ### Steps

        | # | state | action | verdict | exit | duration | next |
        |--:|---|---|---|--:|--:|---|
        | 1 | `check` | `mypy src/` | ✗ `no` | 1 | 2.3s | `fix` |
        | 2 | `fix` | `ruff check --fix src/` | ✓ exit 0 | 0 | 2.3s | `check` |
        | 3 | `check` | `mypy src/` | ✓ `yes` | 0 | 2.3s | `done` |

        ### On your machine

        ```text
        ll-loop run fix-types --strict
        ```
        "#);
    }

    fn night(day: i64, outcome: Option<Outcome>, cycles: u32, fixed: &[&str]) -> Night {
        Night {
            run_id: day.to_string(),
            at: Timestamp::from_millis(day * 24 * 3600 * 1000),
            outcome,
            verified: cycles == 1,
            unchanged: Some(true),
            cycles,
            fixed: fixed.iter().map(|name| state(name)).collect(),
            flaky: Vec::new(),
            left: Vec::new(),
        }
    }

    #[test]
    fn a_night_is_shown_with_those_before_it() {
        let mut journal = succeeding();
        let many: Vec<String> = (0..12).map(|index| format!("s{index}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        journal.after(vec![
            night(1, None, 1, &["a|b"]),
            night(2, Some(Outcome::Success), 3, &["check", "a|b"]),
            night(3, Some(Outcome::Handoff), 2, &many),
        ]);
        let summary = render(&journal.digest());
        let from = summary.find("### Over").unwrap();
        let to = summary.find("### The way").unwrap();
        assert_snapshot!(summary[from..to].trim_end(), @r"
        ### Over the nights

        | night | outcome | cycles | fixed | flaky | left |
        |---|---|--:|---|---|---|
        | 2025-11-20T23:48:47.005Z | success | 1 | `check` |  |  |
        | 1970-01-04T00:00:00.000Z | handoff | 2 | `s0`, `s1`, `s2`, `s3`, `s4`, `s5`, `s6`, `s7`, and 4 more |  |  |
        | 1970-01-03T00:00:00.000Z | success (unverified) | 3 | `check`, <code>a&#124;b</code> |  |  |
        | 1970-01-02T00:00:00.000Z | incomplete | 1 | <code>a&#124;b</code> |  |  |

        - `check` was fixed in 2 of the last 4 nights
        - <code>a&#124;b</code> was fixed in 2 of the last 4 nights
        ");
    }

    #[test]
    fn a_clean_night_is_a_few_lines() {
        let clean = |warning: Option<&str>, before: Vec<Night>| {
            let mut journal = Journal::start();
            journal.after(before);
            if let Some(message) = warning {
                journal.push(Event::Warning { state: None, message: message.to_owned() });
            }
            journal.step(("check", 1), "mypy src/", (0, ""), "yes", "done");
            journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
            render(&journal.because("cycle 1 needed no fix").digest())
        };
        let success = Some(Outcome::Success);
        assert_snapshot!(clean(None, vec![night(1, success, 2, &["a"]), night(2, success, 1, &[])]), @r"
        ## ✅ `fix-types`

        success: cycle 1 needed no fix

        1 iteration · 1 step · 2.3s · ended at `done` · exit code 0 · run `fix-types-20251120T234847-1f2e`

        2 clean nights in a row.
        ");
        // What there is to say is said in full.
        let recurring = vec![night(1, success, 2, &["a"]), night(2, success, 2, &["a"])];
        for summary in [clean(Some("1 night did not happen"), vec![]), clean(None, recurring)] {
            assert!(summary.contains("### Over the nights") && summary.contains("### Steps"), "{summary}");
        }
        // Also a night that ends well and had something to do.
        assert!(render(&succeeding().after(vec![]).digest()).contains("### Over the nights"));
    }

    #[test]
    fn a_run_that_was_killed() {
        let mut journal = Journal::start();
        journal
            .step(("check", 1), "mypy src/", (1, "bad\n"), "no", "fix")
            .enter("fix", 1)
            .act("ruff check --fix");
        assert_snapshot!(render(&journal.digest()), @r#"
        ## ❔ `fix-types`

        incomplete: the journal ends in `fix` (step 2), so the run was killed or is still running

        1 iteration · 2 steps · 2.3s · run `fix-types-20251120T234847-1f2e`

        ### Why

        - ← step 2: `fix` did not finish · `.loops/fix-types.yaml:12` · `verdict-none`

        ### The way it took

        ```mermaid
        flowchart LR
          s0["check"]
          s1["fix"]
          s0 -->|"no ×1"| s1
        ```

        ### Steps

        | # | state | action | verdict | exit | duration | next |
        |--:|---|---|---|--:|--:|---|
        | 1 | `check` | `mypy src/` | ✗ `no` | 1 | 2.3s | `fix` |
        | 2 | `fix` | `ruff check --fix` | • not finished |  |  |  |

        ### On your machine

        ```text
        ll-loop run fix-types --strict
        ```
        "#);
    }

    #[test]
    fn nothing_from_outside_is_markdown() {
        let hostile = "`|\\<img src=x> @team #1 [a](b)\"]";
        let mut journal = Journal::start();
        let name = "`|<b>@team #1\"]";
        journal.step((name, 1), hostile, (1, "```\n## forged\n@team\n"), "@team #1|", "failed");
        journal.push(Event::Warning { state: Some(state(name)), message: hostile.into() });
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", true);
        assert_snapshot!(render(&journal.digest()), @r##"
        ## ❌ `fix-types`

        failure: <code>&#96;&#124;&#60;b&#62;&#64;team &#35;1&#34;&#93;</code> said &#64;<!-- -->team &#35;<!-- -->1&#124;

        1 iteration · 1 step · 2.3s · ended at `failed` · exit code 1 · run `fix-types-20251120T234847-1f2e`

        ### Why

        - ← it reached `failed` · `.loops/fix-types.yaml` · `terminal-reached`
        - ← step 1: <code>&#96;&#124;&#60;b&#62;&#64;team &#35;1&#34;&#93;</code> → `failed`, the way for <code>&#64;team &#35;1&#124;</code> · `route-verdict`
        - ← step 1: <code>&#96;&#124;&#60;b&#62;&#64;team &#35;1&#34;&#93;</code> said &#64;<!-- -->team &#35;<!-- -->1&#124; · `verdict-passing`
        - ← `exit_code`: exit 1, 2.3s · `evaluator-exit-code`
        - ← <code>&#96;&#124;&#92;&#60;img src&#61;x&#62; &#64;team &#35;1 &#91;a&#93;&#40;b&#41;&#34;&#93;</code> printed last · `evidence-output`

        ````text
        ```
        ## forged
        @team
        ````

        ### The way it took

        ```mermaid
        flowchart LR
          s0["#96;#124;#60;b#62;#64;team #35;1#34;#93;"]
          s1(["failed"])
          s0 -->|"#64;team #35;1#124; ×1"| s1
          style s1 stroke:#cf222e,stroke-width:3px
        ```

        ### Steps

        | # | state | action | verdict | exit | duration | next |
        |--:|---|---|---|--:|--:|---|
        | 1 | <code>&#96;&#124;&#60;b&#62;&#64;team &#35;1&#34;&#93;</code> | <code>&#96;&#124;&#92;&#60;img src&#61;x&#62; &#64;team &#35;1 &#91;a&#93;&#40;b&#41;&#34;&#93;</code> | ✓ <code>&#64;team &#35;1&#124;</code> | 1 | 2.3s | `failed` |

        ### Last output of <code>&#96;&#124;&#60;b&#62;&#64;team &#35;1&#34;&#93;</code> (step 1)

        <code>&#96;&#124;&#92;&#60;img src&#61;x&#62; &#64;team &#35;1 &#91;a&#93;&#40;b&#41;&#34;&#93;</code> came to &#64;<!-- -->team &#35;<!-- -->1&#124; (exit 1, 2.3s)

        ````text
        ```
        ## forged
        @team
        ````

        ### Warnings

        - <code>&#96;&#124;&#60;b&#62;&#64;team &#35;1&#34;&#93;</code>: &#96;&#124;&#92;&#60;img src=x&#62; &#64;<!-- -->team &#35;<!-- -->1 &#91;a&#93;(b)"&#93;

        ### On your machine

        ```text
        ll-loop run fix-types --strict
        ```
        "##);
    }

    fn about_tasks(journal: &Journal) -> String {
        let summary = render(&journal.digest());
        let (_, tasks) = summary.split_once("### Tasks").unwrap();
        tasks.split("### The way").next().unwrap().trim().to_owned()
    }

    #[test]
    fn a_run_on_a_board_has_a_tree_of_tasks_and_a_table_of_roles() {
        assert_snapshot!(about_tasks(&working()), @"
        2 of 4 tasks completed, 1 failed, 1 unreachable

        - ✓ 1 Add the login form — completed, 1 attempt, 5 calls
        - ▾ 2 Store sessions — split, 2 attempts, 5 calls
          - ✓ 2.1 Pick a store — completed, 1 attempt, 1 call
          - ✗ 2.2 Write to it — failed, 2 attempts, 2 calls: no disk
        - · 3 Document it — unreachable, waits for task 2

        ### Calls by role

        | role | calls | tokens | cost |
        |---|--:|--:|--:|
        | `planner` | 3 | 3060 | $1.50 |
        | `supervisor` | 5 | 5100 | $2.50 |
        | `coder` | 7 | 7140 | $3.50 |
        | `tester` | 2 | 2040 | $1.00 |
        ");
    }

    #[test]
    fn a_description_is_no_markdown() {
        let hostile = "`|\\<img src=x> @team #1 [a](b)\n## forged\n::error::x";
        let mut journal = planned(&[(hostile, &[]), ("b", &[0])]);
        journal.operate("next", "next", &json!({})).stage("test", "`|<b>@team", "no", &json!({}));
        journal.operate("fail", "fail", &json!({"feedback": hostile}));
        journal.operate("next", "next", &json!({})).operate("give_up", "give_up", &json!({}));
        assert_snapshot!(about_tasks(&journal), @"
        0 of 2 tasks completed, 1 failed, 1 unreachable

        - ✗ 1 &#96;&#124;&#92;&#60;img src=x&#62; &#64;<!-- -->team &#35;<!-- -->1 &#91;a&#93;(b)… — failed, 2 attempts, 1 call: &#96;&#124;&#92;&#60;img src=x&#62; &#64;<!-- -->team &#35;<!-- -->1 &#91;a&#93;(b)…
        - · 2 b — unreachable, waits for task 1

        ### Calls by role

        | role | calls | tokens | cost |
        |---|--:|--:|--:|
        | `planner` | 2 | 2040 | $1.00 |
        | `supervisor` | 2 | 2040 | $1.00 |
        | <code>&#96;&#124;&#60;b&#62;&#64;team</code> | 1 | 1020 | $0.50 |
        ");
    }

    #[test]
    fn many_tasks_are_listed_in_part() {
        let long = "@x|`".repeat(2000);
        let tasks: Vec<(&str, &[i64])> = vec![(long.as_str(), &[]); 2000];
        let mut journal = Journal::on_board();
        journal.operate("load", "load", &plan(&tasks));
        let listed = about_tasks(&journal);
        assert!(listed.ends_with("- and 1900 more tasks") && listed.len() < 300_000, "{}", listed.len());
    }

    #[test]
    fn a_summary_is_bounded_whatever_the_run_printed() {
        let name = |index: u32| "`|".repeat(50) + &index.to_string();
        let output = format!("{}\n", "`".repeat(100)).repeat(1000);
        for states in [50, 500] {
            let mut journal = Journal::of("long", 1000);
            for step in 0..2000 {
                let (from, to) = (name(step % states), name((step * 7 + 1) % states));
                journal.step((&from, step + 1), &"|`".repeat(5000), (1, &output), &"<|".repeat(50), &to);
                journal.push(Event::Warning { state: Some(state(&from)), message: "@x|".repeat(5000) });
            }
            journal.end(Outcome::Exhausted, TerminatedBy::MaxSteps, &name(0), false);
            let summary = render(&journal.digest());
            assert!(summary.len() < 900_000, "{}", summary.len());
            assert_eq!(summary.contains("```mermaid"), states == 50);
        }
    }

    #[test]
    fn what_was_not_run_is_not_called_verified() {
        assert_snapshot!(render(&crate::report::testing::not_run()), @r"
        ## ⏭️ `fix-types`

        success (not in scope): nothing was run or verified, because nothing changed in `src`, `tests/*_x` since 1a2b3c4

        ### On your machine

        ```text
        ll-loop run .loops/fix-types.yaml
        ```
        ");
    }
}
