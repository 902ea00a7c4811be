//! What `add` and `update` print, for a person who decides whether to trust a loop.

use std::fmt::Write as _;

use crate::base::text::screen;
use crate::machine::abilities::{Abilities, AbilityKind};

/// Shows what a loop can do.
pub(super) fn abilities(can: &Abilities) -> String {
    if can.is_empty() {
        return "it runs no command, and asks nobody\n".to_owned();
    }
    let mut out = "what it can do:\n".to_owned();
    for kind in AbilityKind::ALL {
        let all: Vec<&str> = can.of_kind(kind).collect();
        if !all.is_empty() {
            let _ = writeln!(out, "  {}:", kind.word());
            for what in all {
                item(&mut out, "•", what);
            }
        }
    }
    out
}

/// Shows what a loop can do that it could not do before, and the other way round.
pub(super) fn difference(before: &Abilities, after: &Abilities) -> String {
    let (gone, new) = (before.beyond(after), after.beyond(before));
    if gone.is_empty() && new.is_empty() {
        return "  it can do what it could do before\n".to_owned();
    }
    let mut out = String::new();
    for kind in AbilityKind::ALL {
        let (gone, new): (Vec<&str>, Vec<&str>) = (gone.of_kind(kind).collect(), new.of_kind(kind).collect());
        if gone.is_empty() && new.is_empty() {
            continue;
        }
        let _ = writeln!(out, "  {}:", kind.word());
        for what in gone {
            item(&mut out, "-", what);
        }
        for what in new {
            item(&mut out, "+", what);
        }
    }
    out
}

/// Shows something with its further lines below the first one. Every line begins with a sign of ours: nothing that it
/// holds is taken for our words, and no runner obeys it.
fn item(out: &mut String, sign: &str, what: &str) {
    let what = screen(what);
    // Some viewers of logs begin a new line at these as well.
    let lines = what.split(['\n', '\u{2028}', '\u{2029}', '\u{85}']);
    for (number, line) in lines.enumerate() {
        let sign = if number == 0 { sign } else { "│" };
        let _ = writeln!(out, "    {sign} {}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile;

    #[test]
    fn no_command_looks_like_a_line_of_ours() {
        let text = "name: n\ninitial: a\nstates:\n  a: {action: \"make\\n  tools:\\n\\e[2Jx\", next: b}\n  b: {terminal: true}\n";
        let loaded = load::decode("f", text, String::new()).unwrap();
        let can = Abilities::of(&compile::compile(&loaded.definition).0.unwrap());
        assert_eq!(abilities(&can), "what it can do:\n  commands:\n    • make\n    │   tools:\n    │ x\n");
    }
}
