//! What one step of a job does, beside the commands that are read from it.

use super::altered_checkout::alters_checkout;
use super::ci::{joined, words};
use super::lined_yaml;
use super::script_lines::{logical_lines, understood_commands};
use super::when_jobs_run::{Matrix, steps, value_of_matrix};
use crate::base::node::Node;
use crate::base::text::{after_last, first_word};
use crate::judges::tree::extension;
use crate::tools::{Tool, with_places};

/// Tells whether an action calls the command that it is given, again where that fails.
pub(super) fn repeats(action: &str) -> bool {
    matches!(action, "nick-fields/retry" | "nick-invision/retry" | "Wandalen/wretry.action")
}

/// Returns the commands that an action stands for whose inputs have places in it, `<command:check>`: one for each value of a matrix that
/// these name; none where only the job knows what they say.
pub(super) fn filled(command: &str, with: Option<&Node>, matrix: &Matrix<'_>) -> Vec<String> {
    let text = with_places(command, |input| lined_yaml::text(with.and_then(|with| with.get(input))));
    let named = matrix.iter().find(|(key, _)| text.contains(&value_of_matrix(key)));
    let texts = match named {
        Some((key, values)) => {
            values.iter().map(|value| text.replace(&value_of_matrix(key), value)).collect::<Vec<_>>()
        }
        None => vec![text],
    };
    let is_one = |text: &String| understood_commands(text).is_some_and(|commands| commands.len() == 1);
    texts.into_iter().filter(is_one).collect()
}

/// Returns the command that an action stands for, with the arguments and inputs that the step gives it in the place of its own
/// paths; nothing where only the job knows them.
pub(super) fn with_inputs(tool: &Tool, command: &str, with: Option<&Node>) -> Option<String> {
    if let Some(arguments) = with.and_then(|with| with.get("args")) {
        let arguments =
            lined_yaml::text(Some(arguments)).filter(|text| understood_commands(text.trim()).is_some())?;
        // What the arguments say as well, many tools take only once.
        let given: Vec<&str> = arguments.split_whitespace().collect();
        let own =
            without_paths(command).split(' ').filter(|word| !word.starts_with('-') || !given.contains(word));
        return Some(format!("{} {}", own.collect::<Vec<_>>().join(" "), arguments.trim()));
    }
    let (mut options, mut paths) = (Vec::new(), Vec::new());
    for entry in lined_yaml::entries(with) {
        let Some(option) = tool.inputs.get(&entry.key) else { continue };
        // A control character in a command would make a loop that does not load.
        let is_odd =
            |value: &str| value.contains("${{") || value.chars().any(|c| c.is_control() && c != '\n');
        let value = lined_yaml::text(Some(&entry.value)).filter(|value| !is_odd(value))?;
        match (option.as_str(), value.trim()) {
            // An option that is off is one that the command does not have.
            (_, "" | "false") => {}
            ("", _) => paths.extend(value.lines().filter_map(quoted_word)),
            (" ", _) => paths.extend(value.split_whitespace().filter_map(quoted_word)),
            (option, "true") => options.push(option.to_owned()),
            (option, value) => options.push(format!("{option} {}", quoted_word(value)?)),
        }
    }
    let kept = if paths.is_empty() { command } else { without_paths(command) };
    let words: Vec<_> = std::iter::once(kept.to_owned()).chain(options).chain(paths).collect();
    Some(words.join(" "))
}

/// Returns a command without the paths at its end: `.`, or a pattern in quotes.
fn without_paths(command: &str) -> &str {
    let rest = command.rsplit_once(' ').filter(|(_, word)| *word == "." || word.starts_with('\''));
    rest.map_or(command, |(rest, _)| rest)
}

/// Returns a line of an input as a word for the shell, which quotes that stand there already are no part of.
fn quoted_word(line: &str) -> Option<String> {
    let line = line.trim();
    let inner = ['\'', '"'].into_iter().find_map(|quote| line.strip_prefix(quote)?.strip_suffix(quote));
    let word = inner.unwrap_or(line);
    (!word.is_empty()).then(|| shlex::try_quote(word).ok().map(std::borrow::Cow::into_owned))?
}

pub(super) fn written_directory(node: Option<&Node>) -> Option<&str> {
    lined_yaml::text(node?.get("working-directory"))
}

/// Returns what a workflow or a job says of all of its scripts.
pub(super) fn defaults(node: &Node) -> Option<&Node> {
    node.get("defaults")?.get("run")
}

pub(super) fn written_shell(node: Option<&Node>) -> Option<&str> {
    lined_yaml::text(node?.get("shell"))
}

/// Tells whether the steps behind this one see something else than what was checked out: what a command has changed, or what the
/// action has done that the repository itself is.
pub(super) fn is_altering(step: &Node) -> bool {
    let of_action = lined_yaml::text(step.get("uses")).is_some_and(|uses| uses == "./");
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    let mut lines = script.iter().flatten();
    of_action || lines.any(|(_, line)| line.split("&&").any(|command| alters_checkout(command.trim())))
}

/// Tells whether a step starts something that still runs behind it, such as a server.
pub(super) fn starts_another(step: &Node) -> bool {
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    script.iter().flatten().any(|(_, line)| goes_on_beside(line) || waits_for_server(line))
}

/// Tells whether a line of a script waits until something answers that it has started.
fn waits_for_server(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let asks =
        |word: &&str| matches!(*word, "curl" | "wget" | "nc" | "pg_isready" | "mysqladmin" | "redis-cli");
    matches!(words.first(), Some(&("until" | "while"))) && words.iter().any(asks)
}

/// Tells whether the shell does not wait for the last command of a line.
pub(super) fn goes_on_beside(line: &str) -> bool {
    let line = line.trim_end();
    // Some programs say by a word that they stay.
    let stays = line.split_whitespace().any(|word| matches!(word, "--daemonize" | "--daemon" | "daemonize"));
    stays || line.ends_with('&') && !line.ends_with("&&")
}

/// Tells whether a step has variables that earlier ones say. A token only asks more of a server.
pub(super) fn is_fed_by_steps(step: &Node) -> bool {
    lined_yaml::entries(step.get("env")).iter().any(|entry| {
        let value = lined_yaml::text(Some(&entry.value)).unwrap_or("");
        value.contains("steps.") && value.contains("${{") && !entry.key.contains("TOKEN")
    })
}

/// Tells whether a step checks another state of the repository out than the one that is looked at: a branch, or the base of a change.
pub(super) fn checks_other_state_out(step: &Node) -> bool {
    let is_checkout =
        lined_yaml::text(step.get("uses")).is_some_and(|uses| uses.starts_with("actions/checkout@"));
    let with = step.get("with").filter(|_| is_checkout);
    let input = |name: &str| lined_yaml::text(with.and_then(|with| with.get(name)));
    let is_here = input("path").is_none() && input("repository").is_none();
    input("ref").is_some_and(|state| {
        let is_of_change = ["head", "github.ref", "github.sha", "inputs.", "needs.", "env."];
        is_here && !state.is_empty() && !is_of_change.iter().any(|sign| state.contains(sign))
    })
}

/// Tells whether a step has variables that one event alone says, such as the number of a proposed change.
pub(super) fn is_fed_by_event(step: &Node) -> bool {
    lined_yaml::entries(step.get("env")).iter().any(|entry| {
        let value = lined_yaml::text(Some(&entry.value)).unwrap_or("");
        value.contains("${{") && value.contains("github.event.")
    })
}

/// Tells whether a step, a job or a workflow sets variables to secrets, other than the token that every job has.
pub(super) fn has_secrets(node: &Node) -> bool {
    lined_yaml::entries(node.get("env")).iter().any(|entry| {
        let value = lined_yaml::text(Some(&entry.value)).unwrap_or("");
        value.contains("secrets.") && !value.contains("secrets.GITHUB_TOKEN")
    })
}

/// Tells whether a step does with its machine what a command alone does not say: it downloads something, or sets variables and
/// paths of the steps behind it.
pub(super) fn prepares_machine(step: &Node) -> bool {
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    let mut lines = script.iter().flatten();
    lines.any(|(_, line)| {
        ["$GITHUB_ENV", "${GITHUB_ENV", "$GITHUB_PATH", "${GITHUB_PATH"]
            .iter()
            .any(|file| line.contains(file))
            || matches!(first_word(line), "curl" | "wget")
    })
}

/// Tells whether what stands behind a step may need what that has fetched from another job.
pub(super) fn fetches_built(step: &Node) -> bool {
    lined_yaml::text(step.get("uses")).is_some_and(|uses| {
        ["actions/download-artifact@", "dawidd6/action-download-artifact@"]
            .iter()
            .any(|action| uses.starts_with(action))
    })
}

/// Returns the directory into which a job unpacks the sources that another job has packed: they are those of the repository.
pub(super) fn unpacked_source(job: &Node) -> Option<String> {
    let steps = steps(job);
    steps.iter().position(|step| fetches_built(step)).and_then(|at| {
        steps[at..].iter().find_map(|step| {
            let mut directory = written_directory(Some(step)).unwrap_or("").to_owned();
            logical_lines(lined_yaml::text(step.get("run"))?).into_iter().find_map(|(_, line)| {
                let words: Vec<&str> = line.split_whitespace().collect();
                if let ["cd", below] = words.as_slice() {
                    directory = joined(&directory, below);
                }
                let unpacks = words.first() == Some(&"tar")
                    && words.iter().any(|word| word.starts_with("--strip-components"))
                    && words.iter().any(|word| word.ends_with(".tar.gz"));
                let place = words.iter().position(|word| *word == "-C").and_then(|at| words.get(at + 1));
                unpacks.then(|| place.map_or_else(|| directory.clone(), |place| joined(&directory, place)))
            })
        })
    })
}

/// Tells whether what stands behind a step may need what that has handed on.
pub(super) fn hands_on_behind(step: &Node) -> bool {
    let script = lined_yaml::text(step.get("run")).map(logical_lines);
    let mut lines = script.iter().flatten();
    lines.any(|(_, line)| line.split("&&").any(|command| hands_on(command.trim())))
}

/// Tells whether a command puts what it has built where other builds of the machine find it.
pub(super) fn hands_on(command: &str) -> bool {
    let words = words(command);
    match words.as_slice() {
        ["npm" | "yarn" | "pnpm" | "bun", "link", ..] => true,
        // The program that is built there is called by its name.
        ["gem", "install", rest @ ..] => rest.iter().any(|word| extension(word) == Some("gem")),
        ["mvn" | "./mvnw" | "mvnw", rest @ ..] => rest.contains(&"install"),
        ["gradle" | "./gradlew" | "gradlew", rest @ ..] => {
            rest.iter().any(|task| after_last(task, &[':']) == "publishToMavenLocal")
        }
        _ => false,
    }
}

/// Tells whether a step calls an action that sets something up.
pub(super) fn sets_up(step: &Node) -> bool {
    lined_yaml::text(step.get("uses"))
        .is_some_and(|uses| uses.contains("setup") && !uses.starts_with("actions/"))
}

/// Tells whether cargo is called of a version that the command names: what it says of others is left to those.
pub(super) fn asks_for_toolchain(command: &str) -> bool {
    let is_version = |word: &str| {
        word.strip_prefix('+').is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit()))
    };
    matches!(words(command).as_slice(), ["cargo", toolchain, ..] if is_version(toolchain))
}
