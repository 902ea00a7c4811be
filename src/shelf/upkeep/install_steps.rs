//! Steps that install something by their names, in whatever way: what they do comes whole with the checks of their job.

use super::install_lines::{is_install, makes_ready};
use super::no_checks::is_plainly_none;
use super::script_lines::logical_lines;
use crate::base::text::first_word;
use crate::tools::recognise_line;

/// The most lines of such a script.
const MOST_LINES: usize = 12;

/// Words of a name that say that its step does more than to install.
const MORE: [&str; 13] = [
    "artifact", "build", "check", "checks", "compile", "lint", "package", "release", "run", "smoke", "test",
    "tests", "verify",
];

/// Variables that each machine of a CI has.
const KNOWN: [&str; 8] =
    ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_WORKSPACE", "HOME", "PATH", "PWD", "RUNNER_TEMP", "USER"];

/// Returns the script of a step that installs something by its name, in one line; nothing where its lines are all known by themselves, or
/// where only its job knows what they say.
pub(super) fn whole_install(name: Option<&str>, script: &str) -> Option<String> {
    if !name.is_some_and(says_install) {
        return None;
    }
    let lines = logical_lines(script);
    let lines: Vec<&str> = lines.iter().map(|(_, line)| line.trim()).filter(|line| does(line)).collect();
    let is_known = |line: &&str| line.starts_with("cd ") || makes_ready(line) || is_plainly_none(line);
    let is_whole = lines.len() <= MOST_LINES && lines.iter().all(|line| is_plain_line(line));
    // What is built in the repository itself belongs to its checks.
    let is_of_build = |line: &&str| {
        matches!(first_word(line), "cmake" | "ctest" | "meson" | "ninja")
            || recognise_line(line).is_some() && !is_install(line)
    };
    let fetches = |line: &&str| line.contains("git clone") || line.contains("://");
    let builds = lines.iter().any(is_of_build) && !lines.iter().any(fetches);
    // Of what is saved into a lock file, a check may see that; what is taken away makes another variant.
    let saves =
        lines.iter().any(|line| is_install(line) && line.contains("--save") || line.contains("uninstall"));
    (is_whole && !builds && !saves && !lines.iter().all(is_known)).then(|| lines.join(" && "))
}

/// Tells whether a name begins with what it installs, and says nothing else.
fn says_install(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let begins = matches!(words.as_slice(), ["install" | "installing" | "setup", ..] | ["set", "up", ..]);
    begins && !words.iter().any(|word| MORE.contains(word))
}

/// Tells whether a line does something, and does not only say how the shell behaves.
fn does(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.starts_with("set -")
}

/// Tells whether a line says all by itself.
fn is_plain_line(line: &str) -> bool {
    let is_statement =
        matches!(first_word(line), "if" | "for" | "while" | "until" | "case" | "function" | "export");
    let is_known = |rest: &str| {
        rest.starts_with('(')
            || KNOWN.iter().any(|name| {
                rest.strip_prefix(name).is_some_and(|behind| {
                    !behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                })
            })
    };
    let is_open = line.ends_with(['|', '&', '\\', '(', '{']) || line.contains("<<") || line.contains(" #");
    !is_statement
        && !is_open
        && line.len() <= 300
        && shlex::split(line).is_some()
        && line.split('$').skip(1).all(is_known)
        && !line.contains(['`', '{', '}'])
        && !line.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_installs_is_taken_whole() {
        for (name, script, expected) in [
            ("Install Abseil", "vcpkg update\nget abseil", Some("vcpkg update && get abseil")),
            (
                "Set up X",
                "set -e\ngit clone https://x\ncd x\n# build\nmake\nsudo make install",
                Some("git clone https://x && cd x && make && sudo make install"),
            ),
            ("Install y", "get y | tar xz -C \"$HOME/bin\"", Some("get y | tar xz -C \"$HOME/bin\"")),
            ("Install dependencies", "npm ci\ncd web\nnpm ci", None),
            ("Install and test", "get x", None),
            ("Compile", "get x", None),
            ("Install", "get $VERSION", None),
            ("Install", "get ${{ matrix.x }}", None),
            ("Install", "if x; then\n  get y\nfi", None),
            ("Install", "cmake --install build", None),
            ("Install", "mvn -B install -DskipTests", None),
            ("Install", "", None),
        ] {
            assert_eq!(whole_install(Some(name), script).as_deref(), expected, "{name}: {script}");
        }
        assert_eq!(whole_install(None, "get x"), None);
    }
}
