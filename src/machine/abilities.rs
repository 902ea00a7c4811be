//! What a loop can do, for a person who decides whether to trust it: its commands and the values that become part of
//! them, the variables of the environment that it reads and sets, its prompts, its tools.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Action, Machine, SubLoopAction};
use crate::base::template::Namespace;
use crate::definition::vendored::name_within;
use crate::evaluate::Evaluate;

/// A kind of thing that a loop can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbilityKind {
    /// It runs a command.
    Command,
    /// A value of its own, which may become part of a command or a prompt.
    Value,
    /// It reads or sets a variable of the environment.
    Environment,
    /// It asks an agent or a model.
    Prompt,
    /// It calls a tool, or lets an agent use it.
    Tool,
    /// It runs another loop.
    Loop,
}

impl AbilityKind {
    /// Every kind, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Command, Self::Value, Self::Environment, Self::Prompt, Self::Tool, Self::Loop];

    /// Returns the name of several of them.
    pub fn word(self) -> &'static str {
        match self {
            Self::Command => "commands",
            Self::Value => "values",
            Self::Environment => "environment",
            Self::Prompt => "prompts",
            Self::Tool => "tools",
            Self::Loop => "loops",
        }
    }
}

/// What loops can do: each thing with its kind, as it is written in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities(BTreeSet<(AbilityKind, String)>);

impl Abilities {
    /// Returns what a loop can do.
    pub fn of(machine: &Machine) -> Self {
        let mut abilities = Self::default();
        for (name, value) in &machine.context {
            abilities.value(name.as_str(), value);
        }
        for (name, parameter) in &machine.parameters {
            if let Some(value) = &parameter.default {
                abilities.value(name.as_str(), value);
            }
        }
        for (_, step) in machine.steps() {
            step.action.iter().for_each(|action| abilities.action(action));
            step.evaluate.iter().for_each(|evaluate| abilities.evaluate(evaluate));
        }
        for (_, end) in machine.ends() {
            end.closing.iter().for_each(|action| abilities.action(action));
        }
        for (_, key, template) in machine.templates() {
            if let Some(name) = key.strip_prefix("env.") {
                abilities.add(AbilityKind::Environment, format!("{name}={}", template.source()));
            }
            if let Some(name) = key.strip_prefix("with.").or(key.strip_prefix("params.")) {
                abilities.add(AbilityKind::Value, format!("{name}: {}", template.source()));
            }
            let read = template.expressions().filter(|expression| expression.namespace == Namespace::Env);
            for expression in read {
                abilities.add(
                    AbilityKind::Environment,
                    expression.to_string().trim_start_matches("env.").to_owned(),
                );
            }
        }
        abilities
    }

    /// Adds what another loop can do.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns everything of a kind.
    pub fn of_kind(&self, kind: AbilityKind) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(of, _)| *of == kind).map(|(_, what)| what.as_str())
    }

    /// Returns what is here, and not there.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).cloned().collect())
    }

    /// Tells whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, kind: AbilityKind, what: impl Into<String>) {
        self.0.insert((kind, what.into()));
    }

    fn value(&mut self, name: &str, value: &Value) {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // An empty value waits for one from the command line and adds nothing to a command by itself.
        if !shown.is_empty() {
            self.add(AbilityKind::Value, format!("{name}: {shown}"));
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Shell(shell) => {
                let text = shell.text.source().trim_end();
                // A shell reads the environment without any template, so that the text itself has to be searched.
                for name in shell_variables(text) {
                    self.add(AbilityKind::Environment, name);
                }
                // That a usual shell runs it says nothing about what a command can do.
                let is_usual = matches!(shell.shell.first().map(String::as_str), Some("bash" | "sh"));
                let with = if is_usual { String::new() } else { format!("{}: ", shell.shell.join(" ")) };
                self.add(AbilityKind::Command, format!("{with}{text}"));
            }
            Action::Prompt(prompt) => {
                self.add(AbilityKind::Prompt, prompt.text.source().trim_end());
                prompt.tools.iter().for_each(|tool| self.add(AbilityKind::Tool, tool.clone()));
            }
            Action::Tool(tool) => self.add(AbilityKind::Tool, tool.tool.source()),
            Action::Approval(approval) => self.add(AbilityKind::Prompt, approval.text.source().trim_end()),
            Action::Learning(learning) => self.add(AbilityKind::Prompt, learning.shown.source()),
            Action::SubLoop(SubLoopAction { name, .. }) => {
                let name = name.source();
                // ll-loop put the copy in front of the name; the author wrote only the name.
                self.add(AbilityKind::Loop, name_within(name).map_or(name, |(_, name)| name));
            }
            Action::Board(_) => {}
        }
    }

    fn evaluate(&mut self, evaluate: &Evaluate) {
        if evaluate.asks() {
            for (key, template) in evaluate.templates().into_iter().filter(|(key, _)| *key == "prompt") {
                self.add(AbilityKind::Prompt, format!("{key} of a judge: {}", template.source().trim_end()));
            }
        }
    }
}

/// Returns the names of variables that a command reads with `$NAME` or `${NAME…}`, in upper case as those of the
/// environment are, unless the command itself gives them a value.
fn shell_variables(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let names = text.split('$').skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(name)
    });
    names.filter(|name| name.len() > 1 && !text.contains(&format!("{name}="))).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile;

    fn of(text: &str) -> Abilities {
        let loaded = load::decode("f", text, String::new()).unwrap();
        Abilities::of(&compile::compile(&loaded.definition).0.unwrap())
    }

    #[track_caller]
    fn check(abilities: &Abilities, kind: AbilityKind, expected: &[&str]) {
        assert_eq!(abilities.of_kind(kind).collect::<Vec<_>>(), expected, "{kind:?}");
    }

    #[test]
    fn everything_that_reaches_out_is_named() {
        let abilities = of(
            "name: n\ninitial: a\ncontext: {lint: make lint, n: 3, empty: ''}\nenv: {CI_MODE: '1'}\n\
             parameters: {p: {type: string, default: fast}}\nstates:\n  \
             a: {action: 'X=1; curl -H \"$GITHUB_TOKEN\" \"$X\" ${context.lint} ${env.HOME}', on_yes: b, on_no: b}\n  \
             b: {action: Mend it., action_type: prompt, tools: [Bash], on_yes: c, on_no: c}\n  \
             c: {loop: other, on_yes: d, on_no: d}\n  \
             d: {action: files/read, action_type: mcp_tool, on_yes: e, on_no: e}\n  \
             e: {terminal: true, action: echo bye}\n",
        );
        check(
            &abilities,
            AbilityKind::Command,
            &["X=1; curl -H \"$GITHUB_TOKEN\" \"$X\" ${context.lint} ${env.HOME}", "echo bye"],
        );
        check(&abilities, AbilityKind::Value, &["lint: make lint", "n: 3", "p: fast"]);
        check(&abilities, AbilityKind::Environment, &["CI_MODE=1", "GITHUB_TOKEN", "HOME"]);
        check(&abilities, AbilityKind::Prompt, &["Mend it."]);
        check(&abilities, AbilityKind::Tool, &["Bash", "files/read"]);
        check(&abilities, AbilityKind::Loop, &["other"]);
    }

    #[test]
    fn what_is_new_can_be_told() {
        let before = of("name: n\ninitial: a\nstates: {a: {action: make, next: b}, b: {terminal: true}}\n");
        let after =
            of("name: n\ninitial: a\nstates: {a: {action: make all, next: b}, b: {terminal: true}}\n");
        check(&after.beyond(&before), AbilityKind::Command, &["make all"]);
        check(&before.beyond(&after), AbilityKind::Command, &["make"]);
        assert!(after.beyond(&after).is_empty());
    }
}
