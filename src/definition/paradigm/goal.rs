//! `paradigm: goal`: a check that has to hold, and what makes it hold.

use super::paradigm_parts::{Work, done, empty, to};
use crate::base::decode::{Decode as _, record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::definition::assembled_tree::{entry, items, map, text};

record! {
    /// What has to become true.
    pub struct Goal {
        /// The goal, in a sentence.
        goal: String,
        /// The check, and what fixes what it finds; the check itself when there is nothing else.
        tools: Vec<Work>,
    }
}

pub(super) fn expand(own: &Node, out: &mut Diagnostics) -> Option<Node> {
    let Goal { goal, tools } = Goal::decode(own, &DocPath::root(), out)?;
    let path = DocPath::root().key("tools");
    let written = items(own.get("tools")?);
    let Some(check) = tools.first() else {
        empty(&path, "tool", out);
        return None;
    };
    if tools.len() > 2 {
        let message = "a goal has at most two tools: a check and a fix";
        let help = "join commands in one tool, or write the states under `states`";
        out.push(Diagnostic::error("too-many", FindingPlace::Value(path.index(2)), message).help(help));
        return None;
    }
    let (at, fix_at) = (&written[0], written.last()?);
    let fix = tools.get(1).unwrap_or(check);
    let routes = [to("on_yes", "done", at), to("on_no", "fix", at)];
    // One tool does both.
    let is_check = check.check(at).filter(|_| tools.len() == 2);
    let states = vec![
        check.state("evaluate", at, routes.into_iter().chain(is_check).collect()),
        fix.state("fix", fix_at, vec![to("next", "evaluate", fix_at)]),
        done("done", at),
    ];
    let said = own.get("goal")?;
    Some(map(
        &own.span,
        vec![
            entry("name", text(&said.span, name(&goal))),
            entry("description", said.clone()),
            to("initial", "evaluate", at),
            entry("states", map(&own.get("tools")?.span, states)),
        ],
    ))
}

/// Makes a name of the words of a goal.
fn name(goal: &str) -> String {
    let kept: String = goal
        .to_lowercase()
        .chars()
        .map(|c| {
            if c.is_alphanumeric() {
                c
            } else if c == '\'' {
                // `don't` becomes `dont`; a blank in its place would make two words of it.
                '\u{0}'
            } else {
                ' '
            }
        })
        .filter(|c| *c != '\u{0}')
        .collect();
    let mut slug = String::from("goal");
    for word in kept.split_whitespace() {
        // With the hyphen, `goal-` and 50 characters at most, as in little-loops.
        if slug.chars().count() + word.chars().count() > 54 {
            break;
        }
        slug.push('-');
        slug.push_str(word);
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_goal_names_its_loop() {
        for (goal, expected) in [
            ("No type errors in src/", "goal-no-type-errors-in-src"),
            ("  It's \"done\"!  ", "goal-its-done"),
            ("?", "goal"),
        ] {
            assert_eq!(name(goal), expected);
        }
        assert!(name(&"word ".repeat(100)).len() <= 55);
    }
}
