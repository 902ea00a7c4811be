//! The toolchain of Rust with which a job calls cargo: where no job makes a check with the one that everybody has, the check names its
//! own.

use super::lined_yaml;
use super::when_jobs_run::{Matrix, value_of_matrix};
use crate::base::node::Node;
use crate::base::text::up_to;

/// What makes a toolchain that of a command, before which it stands.
pub(super) const VARIABLE: &str = "RUSTUP_TOOLCHAIN=";

/// Which toolchain cargo is of at some place in a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum RustToolchain {
    /// The one that the machine has.
    #[default]
    OfMachine,
    /// The one that the job has asked for; of a matrix all of them.
    Named(Vec<String>),
    /// One that only the job knows.
    Unknown,
}

impl RustToolchain {
    /// Returns the toolchain that a step puts in the place of the one before; nothing where it leaves that.
    pub(super) fn of_step(
        step: &Node,
        matrix: &Matrix<'_>,
        with_values: impl Fn(&str) -> String,
    ) -> Option<Self> {
        let of_script = || {
            let script = lined_yaml::text(step.get("run"))?;
            script.lines().rev().find_map(|line| Self::of_line(&with_values(line), matrix))
        };
        let found = Self::of_action(step, matrix, &with_values).or_else(of_script)?;
        // Whether the step was made, only the job knows.
        Some(if step.get("if").is_some() { Self::Unknown } else { found })
    }

    fn of_action(step: &Node, matrix: &Matrix<'_>, with_values: impl Fn(&str) -> String) -> Option<Self> {
        let (name, version) = lined_yaml::text(step.get("uses"))?.split_once('@')?;
        if !name.contains("rust") {
            return None;
        }
        let said = lined_yaml::text(step.get("with").and_then(|with| with.get("toolchain")));
        match (said, name) {
            (Some(said), _) => Some(Self::of_text(&with_values(said), matrix)),
            (None, "dtolnay/rust-toolchain") if is_toolchain(version) => {
                Some(Self::Named(vec![version.to_owned()]))
            }
            // These names of the action are a toolchain with a component.
            (None, "dtolnay/rust-toolchain") if version == "miri" => {
                Some(Self::Named(vec!["nightly".to_owned()]))
            }
            (None, "dtolnay/rust-toolchain") if version == "clippy" => {
                Some(Self::Named(vec!["stable".to_owned()]))
            }
            (None, "dtolnay/rust-toolchain") => Some(Self::Unknown),
            (None, _) => None,
        }
    }

    /// Returns the toolchain that a line of a script puts in the place of the one before.
    pub(super) fn of_line(line: &str, matrix: &Matrix<'_>) -> Option<Self> {
        line.rsplit("&&").find_map(|command| Some(Self::of_text(made_usual(command.trim())?, matrix)))
    }

    fn of_text(text: &str, matrix: &Matrix<'_>) -> Self {
        let text = text.trim().trim_matches(['"', '\'']);
        let of_matrix = matrix.iter().find(|(key, _)| text == value_of_matrix(key));
        // Of several in one input, the first is the one that is used.
        let first = up_to(text, &[',', ' ']);
        match of_matrix {
            Some((_, values)) => Self::Named(values.iter().map(|value| (*value).to_owned()).collect()),
            None if is_toolchain(first) => Self::Named(vec![first.to_owned()]),
            None => Self::Unknown,
        }
    }

    /// Returns its name, where it is a nightly one and nothing else.
    pub(super) fn nightly(&self) -> Option<&str> {
        match self {
            Self::OfMachine | Self::Unknown => None,
            Self::Named(names) => {
                let first = names.first()?;
                names.iter().all(|name| name.starts_with("nightly")).then_some(first)
            }
        }
    }

    /// Returns its name, where it is one.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::OfMachine | Self::Unknown => None,
            Self::Named(names) => names.first().filter(|_| names.len() == 1).map(String::as_str),
        }
    }

    /// Returns the parts of its number, where it is one with a number.
    pub(super) fn number(&self) -> Option<Vec<u32>> {
        number(self.name()?)
    }

    /// Tells whether it is one of a number, which people ask for to see whether it still works.
    pub(super) fn is_numbered(&self) -> bool {
        match self {
            Self::OfMachine | Self::Unknown => false,
            Self::Named(names) => names.iter().all(|name| name.starts_with(|c: char| c.is_ascii_digit())),
        }
    }
}

/// Returns the parts of a version of Rust that tell it from others: all fixes of one, `1.98.1`, are that.
pub(super) fn number(version: &str) -> Option<Vec<u32>> {
    version.split('.').take(2).map(|part| part.parse().ok()).collect()
}

/// Returns the toolchain that a command makes the one of its whole job.
pub(super) fn made_usual(command: &str) -> Option<&str> {
    ["rustup default ", "rustup override set "].iter().find_map(|begin| command.strip_prefix(begin))
}

/// Tells whether a word is the name of a toolchain. A commit has forty digits, and says nothing.
pub(super) fn is_toolchain(name: &str) -> bool {
    let is_named = name.starts_with(|c: char| c.is_ascii_digit())
        || matches!(name, "stable" | "beta")
        || name.starts_with("nightly");
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    is_named && is_plain && name.len() < 40
}

/// Returns a command with its cargo called of a toolchain; nothing where it calls none, or says already of which.
pub(super) fn with_toolchain(command: &str, name: &str) -> Option<String> {
    let begins = command.starts_with("cargo ").then_some(0);
    let at = begins.or_else(|| command.find(" cargo ").map(|at| at + 1))?;
    let (before, behind) = (&command[..at], &command[at + "cargo ".len()..]);
    (!behind.starts_with('+')).then(|| format!("{before}cargo +{name} {behind}"))
}

/// Returns the toolchain that a command names, and the subcommand behind it.
pub(super) fn named_by(words: &[&str]) -> Option<(String, String)> {
    let ["cargo", toolchain, rest @ ..] = words else { return None };
    let name = toolchain.strip_prefix('+').filter(|name| is_toolchain(name))?;
    let subcommand = rest.iter().find(|word| !word.starts_with('-'))?;
    Some((name.to_owned(), (*subcommand).to_owned()))
}

/// Returns the component without which a subcommand of cargo is not there.
pub(super) fn component(subcommand: &str) -> Option<&'static str> {
    match subcommand {
        "fmt" => Some("rustfmt"),
        "clippy" => Some("clippy"),
        "miri" => Some("miri"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_which_toolchain_is_used_behind_it() {
        let matrix: Matrix<'_> = vec![("rust", vec!["stable", "nightly"])];
        let named = |names: &[&str]| {
            Some(RustToolchain::Named(names.iter().map(|name| (*name).to_owned()).collect()))
        };
        for (step, expected) in [
            ("uses: dtolnay/rust-toolchain@nightly", named(&["nightly"])),
            ("uses: dtolnay/rust-toolchain@miri", named(&["nightly"])),
            ("uses: dtolnay/rust-toolchain@master\nwith: {toolchain: 1.70.0}", named(&["1.70.0"])),
            (
                "uses: dtolnay/rust-toolchain@master\nwith: {toolchain: '${{ matrix.rust }}'}",
                named(&["stable", "nightly"]),
            ),
            (
                "uses: dtolnay/rust-toolchain@master\nwith: {toolchain: '${{ matrix.rust || 1 }}'}",
                Some(RustToolchain::Unknown),
            ),
            (
                "uses: dtolnay/rust-toolchain@6c977a6ca4077a0ceb28ffbe03f59d46e9ac8772",
                Some(RustToolchain::Unknown),
            ),
            ("run: rustup update nightly && rustup default nightly", named(&["nightly"])),
            ("if: matrix.x\nrun: rustup default nightly", Some(RustToolchain::Unknown)),
            ("uses: Swatinem/rust-cache@v2", None),
            ("run: rustup toolchain install nightly", None),
        ] {
            let step_node = lined_yaml::parse(step).unwrap();
            assert_eq!(RustToolchain::of_step(&step_node, &matrix, str::to_owned), expected, "{step}");
        }
    }

    #[test]
    fn a_command_names_its_toolchain() {
        for (command, expected) in [
            ("cargo miri test", Some("cargo +nightly miri test")),
            ("RUSTFLAGS='-D warnings' cargo test", Some("RUSTFLAGS='-D warnings' cargo +nightly test")),
            ("cargo +stable fmt", None),
            ("make test", None),
        ] {
            assert_eq!(with_toolchain(command, "nightly").as_deref(), expected, "{command}");
        }
        let named = named_by(&["cargo", "+nightly", "--quiet", "fmt"]);
        assert_eq!(named, Some(("nightly".to_owned(), "fmt".to_owned())));
        assert_eq!(named_by(&["cargo", "test"]), None);
    }
}
