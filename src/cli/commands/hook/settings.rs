//! `ll-loop hook install` and `uninstall`: adds or removes two entries in the settings of Claude Code, and changes
//! nothing else.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::base::explanation::Explanation;
use crate::cli::output::Output;
use crate::context::error::Error;
use crate::run::shared_file;

/// The shared settings of a project, relative to its directory.
const PLACE: &str = ".claude/settings.json";

/// The events, and the commands that they call.
const HOOKS: [(&str, &str); 2] = [
    ("Stop", "ll-loop hook stop-check --format claude"),
    ("SessionStart", "ll-loop hook session-resume --format claude"),
];

/// The seconds after which Claude Code goes on without an answer.
// The hook waits 2 s for its input; the rest is for machines that are busy.
const TIMEOUT: u32 = 10;

/// A change of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsChange {
    /// Adds the entries that are missing.
    Install,
    /// Removes the entries, and lists and objects that become empty.
    Uninstall,
}

/// Changes the settings of the project in this directory, or prints the changed settings.
pub(super) fn change(change: SettingsChange, is_printed: bool, output: &Output) -> Result<u8, Error> {
    let path = Path::new(PLACE);
    let before = read(path)?;
    let mut after = before.clone();
    match change {
        SettingsChange::Install => install(&mut after).map_err(|what| odd(what.as_str()))?,
        SettingsChange::Uninstall => uninstall(&mut after),
    }
    let text = format!("{:#}\n", Value::Object(after.clone()));
    if is_printed {
        output.json_text(text.trim_end());
    } else if after == before {
        output.talk(&format!(
            "{PLACE} has {} already\n",
            if change == SettingsChange::Install { "both hooks" } else { "none of the hooks" }
        ));
    } else {
        let written = shared_file::replace(path, &text);
        written.map_err(|error| Error::failed(format!("cannot write {PLACE}"), &error))?;
        output.talk(&format!(
            "{PLACE}: {}\n",
            if change == SettingsChange::Install {
                "both hooks were added"
            } else {
                "the hooks were removed"
            }
        ));
    }
    Ok(0)
}

fn read(path: &Path) -> Result<Map<String, Value>, Error> {
    match shared_file::read(path) {
        Ok(None) => Ok(Map::new()),
        Ok(Some(bytes)) => {
            serde_json::from_slice(&bytes).map_err(|error| odd(&format!("it is not a JSON object: {error}")))
        }
        Err(error) => Err(odd(&error.to_string())),
    }
}

/// Refuses settings of an unexpected structure.
fn odd(what: &str) -> Error {
    Error::refused(format!("{PLACE} is left as it is: {what}")).with_hint(
        "mend the file, or add by hand what `ll-loop hook install --print` shows in another directory",
    )
}

/// Adds the hooks that are missing, or returns why it cannot.
fn install(settings: &mut Map<String, Value>) -> Result<(), Explanation> {
    let events = settings.entry("hooks").or_insert_with(|| json!({}));
    let events = events.as_object_mut().ok_or_else(|| Explanation::new("`hooks` is not an object"))?;
    for (event, command) in HOOKS {
        let groups = events.entry(event).or_insert_with(|| json!([]));
        let groups = groups.as_array_mut();
        let groups = groups.ok_or_else(|| Explanation::new(format!("`hooks.{event}` is not a list")))?;
        let mut there = groups.iter().filter_map(|group| group.get("hooks")?.as_array()).flatten();
        if !there.any(|hook| is_ours(hook, command)) {
            let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT});
            groups.push(json!({"hooks": [hook]}));
        }
    }
    Ok(())
}

/// Removes the hooks. Lists and objects that were empty before stay.
fn uninstall(settings: &mut Map<String, Value>) {
    let Some(events) = settings.get_mut("hooks").and_then(Value::as_object_mut) else { return };
    let mut has_less = false;
    for (event, command) in HOOKS {
        let Some(groups) = events.get_mut(event).and_then(Value::as_array_mut) else { continue };
        let count = groups.len();
        groups.retain_mut(|group| {
            let Some(hooks) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return true };
            let before = hooks.len();
            hooks.retain(|hook| !is_ours(hook, command));
            before == hooks.len() || !hooks.is_empty()
        });
        if groups.is_empty() && count > 0 {
            // `remove` would put the last key in its place; the order of the others is the user's.
            events.shift_remove(event);
            has_less = true;
        }
    }
    if has_less && events.is_empty() {
        settings.shift_remove("hooks");
    }
}

/// Tells whether a hook calls the same command of ll-loop, by any path and with any options.
fn is_ours(hook: &Value, command: &str) -> bool {
    let words = |text: &str| text.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>();
    let called = words(hook.get("command").and_then(Value::as_str).unwrap_or(""));
    let ours = words(command);
    called.len() == 3
        && called[1..] == ours[1..]
        && called[0].rsplit('/').next().is_some_and(|program| program.trim_matches('"') == ours[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    /// Installs twice and takes out again; the same as before has to be left.
    #[track_caller]
    fn check(text: &str) -> Map<String, Value> {
        let mut settings = map(text);
        install(&mut settings).unwrap();
        let once = settings.clone();
        install(&mut settings).unwrap();
        assert_eq!(settings, once);
        uninstall(&mut settings);
        assert_eq!(Value::Object(settings).to_string(), Value::Object(map(text)).to_string());
        once
    }

    #[test]
    fn what_was_there_stays_in_its_order() {
        check("{}");
        check(r#"{"z": 1, "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": []}]}, "a": {"b": [null]}}"#);
        let both = check(r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "other"}]}]}}"#);
        let stop = &both["hooks"]["Stop"];
        assert_eq!(stop[0]["hooks"][0]["command"], "other");
        assert_eq!(
            stop[1],
            json!({"hooks": [{"type": "command", "command": "ll-loop hook stop-check --format claude", "timeout": 10}]})
        );
        assert_eq!(
            both["hooks"]["SessionStart"][0]["hooks"][0]["command"],
            "ll-loop hook session-resume --format claude"
        );
    }

    #[test]
    fn hooks_that_call_us_otherwise_are_ours_too() {
        let ours = |command: &str| is_ours(&json!({"command": command}), HOOKS[0].1);
        assert!(ours("/opt/bin/ll-loop hook stop-check --state x --format claude"));
        assert!(ours("\"$HOME/bin/ll-loop\" hook stop-check"));
        for other in [
            "",
            "ll-loop hook",
            "ll-loop hook session-resume",
            "my-ll-loop hook stop-check",
            "echo ll-loop hook stop-check",
        ] {
            assert!(!ours(other), "{other}");
        }
    }

    #[test]
    fn a_hook_in_a_group_of_others_goes_alone() {
        let mut settings = map(
            r#"{"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": "ll-loop hook stop-check"}]}, 7, {}],
                "SessionStart": []}}"#,
        );
        uninstall(&mut settings);
        let left = map(r#"{"hooks": {"Stop": [{"hooks": [{"command": "a"}]}, 7, {}], "SessionStart": []}}"#);
        assert_eq!(settings, left);
    }

    #[test]
    fn what_stands_in_the_way_is_told() {
        for (text, why) in [
            (r#"{"hooks": []}"#, "`hooks` is not an object"),
            (r#"{"hooks": {"Stop": {}}}"#, "`hooks.Stop` is not a list"),
            (r#"{"hooks": {"SessionStart": "x"}}"#, "`hooks.SessionStart` is not a list"),
        ] {
            assert_eq!(install(&mut map(text)).unwrap_err().as_str(), why);
        }
    }
}
