//! The commands and options of little-loops that are not here, each with what it is here. Typing one gives that hint, and
//! `docs/migration.md` has a line for each.

/// Something of little-loops, and what it is here.
struct Counterpart {
    /// A command; of an option, the command and the option.
    there: &'static str,
    here: &'static str,
}

const fn is(there: &'static str, here: &'static str) -> Counterpart {
    Counterpart { there, here }
}

const COMMANDS: [Counterpart; 18] = [
    is(
        "simulate",
        "`ll-loop validate --deep NAME` explores every way that verdicts could take, without running anything",
    ),
    is(
        "sim",
        "`ll-loop validate --deep NAME` explores every way that verdicts could take, without running anything",
    ),
    is("install", "`ll-loop add NAME` copies a ready loop; `ll-loop catalog` lists them"),
    is(
        "fragments",
        "`ll-loop validate LIBRARY` checks a library of fragments by itself; docs/fragments.md lists those that are in the program",
    ),
    is("monitor", "`ll-loop logs --follow NAME` shows a run while it goes on"),
    is(
        "queue",
        "`ll-loop run --queue NAME` waits for its turn, and `ll-loop list --running` shows what it waits for",
    ),
    is("next-loop", "nothing suggests a loop here; `ll-loop list` shows how each ended last"),
    is(
        "audit",
        "`ll-loop stats NAME` shows what the runs of a loop have in common, and `ll-loop why NAME` why one ended",
    ),
    is("audit-meta", "`ll-loop stats NAME` shows which verdicts the runs of a loop had"),
    is("evidence", "`ll-loop bundle NAME` writes a run into one file, and `ll-loop report NAME` shows it"),
    is("diagnose-evaluators", "`ll-loop stats NAME` names flaky states"),
    is("calibrate-budget", "`ll-loop stats NAME` shows what runs cost; `budget:` caps it"),
    is(
        "promote-baseline",
        "a baseline is a file of the repository here, such as that of the loop `coverage-ratchet`",
    ),
    is("edit-routes", "routes are edited in the loop file; `ll-loop show NAME` draws them"),
    is("rename", "rename the file, and `ll-loop validate` names what still calls the old name"),
    is(
        "cleanup",
        "`ll-loop history --prune` removes old runs; runs that were killed are cleaned up by the next command",
    ),
    is("scaffold-eval", "`ll-loop init` writes a loop from the checks of the repository"),
    is("scaffold-verify", "`ll-loop init` writes a loop from the checks of the repository"),
];

const OPTIONS: [Counterpart; 42] = [
    is("run --max-steps", "`max_steps` is a key of the loop; `--max-iterations` caps passes"),
    is("run --delay", "`backoff` is a key of the loop"),
    is("run --no-host-guard", "nothing guards the host here, so there is nothing to turn off"),
    is("run --host-guard-budget-mb", "nothing guards the host here; limit the job or the container"),
    is("run --no-prompt-size-guard", "prompts are not measured; `--max-tokens` caps what they cost"),
    is("run --prompt-size-warn-chars", "prompts are not measured; `--max-tokens` caps what they cost"),
    is("run --effort", "the host chooses it; name a model with `--model`"),
    is("run --qt", "`--quiet` shows the last words only"),
    is(
        "run --follow",
        "a run in the foreground is shown anyway; `ll-loop logs --follow NAME` shows another one",
    ),
    is("run -f", "a run in the foreground is shown anyway; `ll-loop logs --follow NAME` shows another one"),
    is(
        "run --show-diagrams",
        "`ll-loop show NAME` draws a loop, and `ll-loop show NAME --run RUN` the way of a run",
    ),
    is("run --diagram-edge-labels", "`ll-loop show NAME` draws a loop with its verdicts"),
    is("run --diagram-state-detail", "`ll-loop show NAME --format svg` has every detail"),
    is("run --diagram-scope", "`ll-loop show NAME` draws one loop; name a sub-loop to see that"),
    is("run --clear", "the terminal is yours to clear"),
    is("run --queue-timeout", "`--deadline` bounds the wait of `--queue` as well"),
    is("run --no-lock", "a scope is always claimed; a narrower `scope:` lets two runs go side by side"),
    is("run --program-md", "give it as the input: `ll-loop run NAME \"$(cat program.md)\"`"),
    is("run --builtin", "`lib/…` names what is in the program; `ll-loop add NAME` copies a ready loop"),
    is("run --handoff-threshold", "the host keeps its own context; `--deadline` hands a run off"),
    is("run --context-limit", "the host keeps its own context; `--deadline` hands a run off"),
    is("run --baseline", "a baseline is a file of the repository here"),
    is("run --baseline-skill", "a baseline is a file of the repository here"),
    is("run --items", "it had no effect there; `ll-loop plan NAME --each P=VALUES` spreads items over jobs"),
    is("run --cross-host", "`--host NAME` names the host of a run"),
    is("run --cost-output-json", "`result.json` among the reports (`--report-dir DIR`) has the cost"),
    is("run --serve", "`ll-loop logs --follow NAME` and `report.html` show a run"),
    is("run --port", "`ll-loop logs --follow NAME` and `report.html` show a run"),
    is("run --foreground-internal", "it is internal there, and nothing is needed in its place"),
    is("run --instance-id", "every run gets an id of its own; `--key` tells runs of one job apart"),
    is("resume --background", "a run is resumed in the foreground"),
    is("resume --instance-id", "name the run itself: `ll-loop resume RUN`"),
    is("resume --delay", "`backoff` is a key of the loop"),
    is("list --status", "`ll-loop status` shows the status of runs"),
    is("list --all-runs", "`ll-loop history` shows the runs that ended"),
    is("list --grid", "the list has one form"),
    is("list --builtin", "`ll-loop catalog` lists the ready loops"),
    is("list --visibility", "every loop is listed; `--category` and `--label` choose"),
    is("history --tail", "`--last N` shows the last runs, and `ll-loop report RUN` the steps of one"),
    is("history --event", "`ll-loop report RUN` shows the steps of a run; its journal has every event"),
    is("show --resolved", "`ll-loop compile NAME` prints a loop with everything worked in"),
    is("show --json", "`ll-loop compile NAME` prints it as it is run"),
];

/// Short forms of commands, for the options of both.
const SHORT: [(&str, &str); 6] =
    [("r", "run"), ("res", "resume"), ("l", "list"), ("h", "history"), ("s", "show"), ("st", "status")];

/// Returns what a command of little-loops is here.
pub(super) fn command(word: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|known| known.there == word).map(|known| known.here)
}

/// Returns what an option of a command of little-loops is here.
pub(super) fn option(command: &str, option: &str) -> Option<&'static str> {
    let command = SHORT.iter().find(|(short, _)| *short == command).map_or(command, |(_, long)| long);
    let there = format!("{command} {option}");
    OPTIONS.iter().find(|known| known.there == there).map(|known| known.here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_has_a_line_in_the_documents() {
        let page = include_str!("../../docs/migration.md");
        for Counterpart { there, here } in COMMANDS.iter().chain(&OPTIONS) {
            let line = format!("| `{there}` | {here} |");
            assert!(page.contains(&line), "docs/migration.md has no line {line}");
        }
    }

    #[test]
    fn a_short_form_has_the_options_of_its_command() {
        assert_eq!(option("r", "--delay"), option("run", "--delay"));
        assert!(option("run", "--delay").is_some());
        assert_eq!(option("run", "--verbose"), None);
    }
}
