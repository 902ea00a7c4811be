//! What a repository says to agents: its instructions and its commands. Hosts are told to leave a checkout alone, for what it
//! brings along can run; these texts cannot, so they are read here and handed over as text, to every host in the same way.
//!
//! ```text
//!   CLAUDE.md AGENTS.md GEMINI.md ──▶ in front of the prompt
//!   /fixit BUG-1 ──▶ .claude/commands/fixit.md, or a skill ──▶ its text with the arguments
//! ```
//!
//! All of it is pure: files are read through [`Texts`]. What a text would have run or read elsewhere stays as it is written.

mod include;
mod repository_command;
mod source;

use std::collections::BTreeMap;

use source::COMMANDS;
pub use source::{GuidanceFile, Texts};

use crate::base::text::head;

/// The files with instructions, in the order in which they are passed on.
const INSTRUCTIONS: [&str; 4] = ["CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", "GEMINI.md"];

/// Where skills are.
const SKILLS: &str = ".claude/skills";

/// The longest text of a file that is passed on, in bytes.
const LONGEST: usize = 64 * 1024;

/// How many commands and skills are known.
const MOST_COMMANDS: usize = 500;

/// What a repository says to agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guidance {
    /// What goes with every prompt.
    pub instructions: Vec<GuidanceFile>,
    /// What is there and cannot be passed on: a link that leads out of the repository, a pipe, what is too long or no text.
    pub unread: Vec<String>,
    commands: BTreeMap<String, GuidanceFile>,
}

/// A prompt as it is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidedPrompt {
    /// The text.
    pub text: String,
    /// The command that it names and that the repository does not have: its host has to know it.
    pub unknown: Option<String>,
}

impl Guidance {
    /// Reads what a repository says about a directory in it: its top, and what is on the way to that directory.
    pub fn read(texts: &dyn Texts, directory: &str) -> Self {
        let mut guidance = Self::default();
        for above in directories(directory) {
            for name in INSTRUCTIONS {
                guidance.instruct(texts, &format!("{above}{name}"));
            }
            guidance.learn(texts, &above);
        }
        guidance
    }

    /// Adds a file with instructions and those that it includes. What is said twice, as by a link, is said once.
    fn instruct(&mut self, texts: &dyn Texts, path: &str) {
        let Some(text) = self.text(texts, path).filter(|text| !text.trim().is_empty()) else { return };
        for file in include::with_included(texts, path, &text) {
            let text = cut(&file.text);
            if !self.instructions.iter().any(|known| known.text == text) {
                self.instructions.push(GuidanceFile { text, ..file });
            }
        }
    }

    /// Returns the text of a file, and notes where there is one that cannot be read.
    fn text(&mut self, texts: &dyn Texts, path: &str) -> Option<String> {
        let text = texts.text(path);
        if text.is_none() && texts.is_there(path) {
            self.unread.push(path.to_owned());
        }
        text
    }

    fn learn(&mut self, texts: &dyn Texts, above: &str) {
        let commands = format!("{above}{COMMANDS}");
        let mut in_folders = Vec::new();
        for path in texts.below(&commands) {
            let below = path.strip_prefix(&commands).map(|below| below.trim_start_matches('/'));
            let Some(stem) = below.and_then(|below| below.strip_suffix(".md")) else { continue };
            let Some(file) = self.read_command(texts, &path) else { continue };
            if let Some((_, last)) = stem.rsplit_once('/') {
                in_folders.push((last.to_owned(), file.clone()));
            }
            self.commands.entry(stem.replace('/', ":")).or_insert(file);
        }
        // A command in a folder is called with or without that, but one of this very name comes first.
        for (name, file) in in_folders {
            self.commands.entry(name).or_insert(file);
        }
        let skills = format!("{above}{SKILLS}");
        for path in texts.below(&skills) {
            let below = path.strip_prefix(&skills).map(|below| below.trim_start_matches('/'));
            let name = below.and_then(|below| below.strip_suffix("/SKILL.md"));
            if let Some(name) = name.filter(|name| !name.contains('/'))
                && let Some(file) = self.read_command(texts, &path)
            {
                self.commands.entry(name.to_owned()).or_insert(file);
            }
        }
    }

    /// Reads a command with the files that it includes; none where there are too many, or where it cannot be read.
    fn read_command(&mut self, texts: &dyn Texts, path: &str) -> Option<GuidanceFile> {
        if self.commands.len() >= MOST_COMMANDS {
            return None;
        }
        let text = self.text(texts, path)?;
        let files = include::with_included(texts, path, repository_command::body(&text));
        Some(GuidanceFile { path: path.to_owned(), text: cut(&include::joined(&files)) })
    }

    /// Tells whether the repository has commands of its own.
    pub fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Returns the file of the command that a prompt begins with, if it is one of the repository.
    pub fn command(&self, prompt: &str) -> Option<&GuidanceFile> {
        self.commands.get(repository_command::CommandCall::of(prompt)?.name)
    }

    /// Returns a prompt as it is handed over: with the text of its command, behind the instructions where it begins with
    /// `with_instructions`. A command that only the host knows stays at the beginning, where the host looks for it.
    pub fn prompt(&self, prompt: &str, with_instructions: bool) -> GuidedPrompt {
        let call = repository_command::CommandCall::of(prompt);
        let known = call.as_ref().and_then(|call| Some((call, self.commands.get(call.name)?)));
        let text = known.map_or_else(|| prompt.to_owned(), |(call, file)| call.filled_in(&file.text));
        let unknown = call.as_ref().filter(|_| known.is_none()).map(|call| call.name.to_owned());
        let instructions = with_instructions.then(|| self.said()).filter(|said| !said.is_empty());
        let text = match (instructions, &unknown) {
            (None, _) => text,
            (Some(said), None) => format!("{said}{text}"),
            (Some(said), Some(_)) => format!("{text}\n\n{said}"),
        };
        GuidedPrompt { text, unknown }
    }

    fn said(&self) -> String {
        if self.instructions.is_empty() {
            return String::new();
        }
        let files: String = self.instructions.iter().map(include::shown).collect();
        format!("Instructions of this repository:\n\n{files}")
    }
}

/// Returns the directories from the top down to one, each with a slash at its end but for the top.
fn directories(directory: &str) -> Vec<String> {
    let mut here = String::new();
    let mut all = vec![here.clone()];
    for part in directory.split('/').filter(|part| !part.is_empty()) {
        here.extend([part, "/"]);
        all.push(here.clone());
    }
    all
}

fn cut(text: &str) -> String {
    let kept = head(text, LONGEST);
    if kept.len() == text.len() {
        return text.to_owned();
    }
    format!("{kept}\n… {} bytes of this text were left out", text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    impl Texts for BTreeMap<&str, &str> {
        fn text(&self, path: &str) -> Option<String> {
            self.get(path).filter(|text| !text.starts_with('\0')).map(|text| (*text).to_owned())
        }

        fn is_there(&self, path: &str) -> bool {
            self.contains_key(path)
        }

        fn below(&self, directory: &str) -> Vec<String> {
            let inside =
                |path: &&&str| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
            self.keys().filter(inside).map(|path| (*path).to_owned()).collect()
        }
    }

    fn repository() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([
            ("CLAUDE.md", "Use tabs. See @docs/style.md and @../secret.md.\n"),
            ("AGENTS.md", "Run make.\n"),
            ("docs/style.md", "No semicolons.\n"),
            (
                ".claude/commands/fixit.md",
                "---\nallowed-tools: Bash\n---\nFix $ARGUMENTS, that is $1 first. !`rm -rf x`\n",
            ),
            (".claude/commands/ll/check.md", "Check it.\n"),
            (".claude/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: d\n---\nTidy up.\n"),
            ("web/AGENTS.md", "Web.\n"),
        ])
    }

    #[test]
    fn what_is_there_and_is_no_text_is_named() {
        let mut files = repository();
        files.insert("GEMINI.md", "\0");
        files.insert(".claude/commands/broken.md", "\0");
        let guidance = Guidance::read(&files, "");
        assert_eq!(guidance.unread, ["GEMINI.md", ".claude/commands/broken.md"]);
        assert!(guidance.command("/broken").is_none());
    }

    #[test]
    fn a_command_of_the_repository_is_its_text() {
        let guidance = Guidance::read(&repository(), "");
        assert_snapshot!(guidance.prompt("/fixit BUG-1 BUG-2", false).text, @"Fix BUG-1 BUG-2, that is BUG-1 first. (not run: `rm -rf x`)");
        assert_snapshot!(guidance.prompt("/ll:check", false).text, @"Check it.");
        assert_snapshot!(guidance.prompt("/check src", false).text, @r"
        Check it.

        ARGUMENTS: src
        ");
        assert_snapshot!(guidance.prompt("/tidy", false).text, @"Tidy up.");
        assert_eq!(guidance.command("/fixit x").unwrap().path, ".claude/commands/fixit.md");
    }

    #[test]
    fn a_command_of_this_very_name_comes_before_one_in_a_folder() {
        let mut files = repository();
        files.insert(".claude/commands/a/fixit.md", "Another one.\n");
        let guidance = Guidance::read(&files, "");
        assert_eq!(guidance.command("/fixit").unwrap().path, ".claude/commands/fixit.md");
        assert_eq!(guidance.command("/a:fixit").unwrap().path, ".claude/commands/a/fixit.md");
        assert_eq!(guidance.command("/check").unwrap().path, ".claude/commands/ll/check.md");
    }

    #[test]
    fn instructions_stand_in_front_and_include_nothing_from_outside() {
        let guidance = Guidance::read(&repository(), "web");
        let shown = guidance.prompt("Fix it.", true);
        assert_snapshot!(shown.text, @r#"
        Instructions of this repository:

        <file path="CLAUDE.md">
        Use tabs. See @docs/style.md and @../secret.md.
        </file>

        <file path="docs/style.md">
        No semicolons.
        </file>

        <file path="AGENTS.md">
        Run make.
        </file>

        <file path="web/AGENTS.md">
        Web.
        </file>

        Fix it.
        "#);
        assert_eq!(shown.unknown, None);
    }

    #[test]
    fn the_directory_of_git_is_included_by_no_spelling() {
        // On a file system that tells no cases apart, all of them are the same.
        let files = BTreeMap::from([
            ("CLAUDE.md", "@.git/config @.GIT/config @a/../.Git/config"),
            (".git/config", "token"),
            (".GIT/config", "token"),
            (".Git/config", "token"),
        ]);
        assert_eq!(Guidance::read(&files, "").instructions.len(), 1);
    }

    #[test]
    fn a_command_that_only_the_host_knows_stays_in_front() {
        let guidance = Guidance::read(&repository(), "");
        let prompt = guidance.prompt("/ll:other x", true);
        assert!(prompt.text.starts_with("/ll:other x\n\nInstructions"), "{}", prompt.text);
        assert_eq!(prompt.unknown.as_deref(), Some("ll:other"));
        // A path is not a command.
        assert_eq!(guidance.prompt("/usr/bin/x y", false).unknown, None);
        assert_eq!(Guidance::default().prompt("Fix it.", true).text, "Fix it.");
    }

    #[test]
    fn what_is_said_twice_or_too_long_is_bounded() {
        let long = "x".repeat(LONGEST + 10);
        let files = BTreeMap::from([("CLAUDE.md", long.as_str()), ("AGENTS.md", long.as_str())]);
        let guidance = Guidance::read(&files, "");
        assert_eq!(guidance.instructions.len(), 1);
        assert!(guidance.instructions[0].text.ends_with("… 10 bytes of this text were left out"));
    }
}
