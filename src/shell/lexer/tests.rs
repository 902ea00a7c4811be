//! Texts, and how they are cut.

use proptest::prelude::*;

use super::*;
use crate::base::template::Template;

/// The tokens: words as they are, operators by name.
fn cut(text: &str) -> String {
    let Some(tokens) = tokens(text) else { return "open".to_owned() };
    let words = tokens.iter().map(|token| match token.kind {
        TokenKind::Plain | TokenKind::Word | TokenKind::Arithmetic => {
            format!("[{}]", &text[token.range.clone()])
        }
        TokenKind::Redirection { opens: true } => "file".to_owned(),
        TokenKind::Redirection { opens: false } => "redirected".to_owned(),
        TokenKind::Operator(operator) => format!("{operator:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn operators_are_found_outside_of_quotes_only() {
    for (text, expected) in [
        ("a b;c&d", "[a] [b] End [c] Background [d]"),
        ("a&&b||c|d|&e", "[a] And [b] Or [c] Pipe [d] Pipe [e]"),
        ("'a; b' \"c | d\" e\\;f", "['a; b'] [\"c | d\"] [e\\;f]"),
        ("a $(b; c | d) `e; f`", "[a] [$(b; c | d)] [`e; f`]"),
        ("\"$(a \"b; c\" ')')\" d", "[\"$(a \"b; c\" ')')\"] [d]"),
        ("a # b; c\nd#e", "[a] End [d#e]"),
        ("a \\\n  b", "[a] [b]"),
        ("${a:-b; c} $${d%;*};e", "[${a:-b; c}] [$${d%;*}] End [e]"),
        ("\"${a:-'}\";b", "[\"${a:-'}\"] End [b]"),
        ("$'a\\'; b';c", "[$'a\\'; b'] End [c]"),
        ("a=(b c) d", "[a=(b c)] [d]"),
        ("(a) f() b", "Open [a] Close [f] Open Close [b]"),
        ("((1 << 2)); a", "[((1 << 2))] End [a]"),
        ("diff <(a; b) c", "[diff] [<(a; b)] [c]"),
        ("a) b;; c;& d;;&", "[a] Close [b] CaseEnd [c] CaseEnd [d] CaseEnd"),
        ("$(a # it's\n b); c", "[$(a # it's\n b)] End [c]"),
        ("é 'ü; ö' \\ß;ä", "[é] ['ü; ö'] [\\ß] End [ä]"),
    ] {
        assert_eq!(cut(text), expected, "{text}");
    }
}

#[test]
fn redirections_take_their_targets() {
    for (text, expected) in [
        ("a > b 2>&1", "[a] file redirected"),
        ("a >/dev/null 2> /dev/null", "[a] redirected redirected"),
        ("a &>b", "[a] file"),
        ("a <<< 'b; c'", "[a] redirected"),
        ("a < b >>c", "[a] file file"),
        ("a <<X; b\nc; d\nX\ne", "[a] redirected End [b] End [e]"),
        ("a <<-'X'\n\tc | d\n\tX\ne", "[a] redirected End [e]"),
        ("a <<X <<Y\n1\nX\n2\nY\nb", "[a] redirected redirected End [b]"),
        ("a <<X\nno end; b", "[a] redirected End"),
    ] {
        assert_eq!(cut(text), expected, "{text}");
    }
}

#[test]
fn what_stays_open_is_left_alone() {
    for text in ["a 'b", "a \"b", "a $(b", "a ${b", "a `b", "a=(b", "$'a", "$'a\\"] {
        assert_eq!(cut(text), "open", "{text}");
    }
}

fn found(text: &str) -> Vec<TemplateQuotes> {
    let template = Template::parse(text).unwrap();
    let spans: Vec<_> = template.expressions().map(|expression| expression.span.clone()).collect();
    let found = around(text, &spans);
    assert_eq!(found.len(), spans.len(), "{text}");
    found
}

#[test]
fn what_stands_around_a_template_is_known() {
    use TemplateQuotes::*;
    for (text, expected) in [
        ("a ${prev}", Nothing),
        ("a \"b\" 'c' ${prev}", Nothing),
        ("a \"b ${prev}\"", DoubleQuotes),
        ("a 'b ${prev}'", SingleQuotes),
        ("a $'b\\'${prev}'", SingleQuotes),
        ("a \"$(b ${prev})\"", Nothing),
        ("a \"$(b \"${prev}\")\"", DoubleQuotes),
        ("a `b ${prev}`", Backticks),
        ("a \"`b '${prev}'`\"", Backticks),
        ("a $((1 + ${prev}))", Arithmetic),
        ("if (( ${prev} > 1 )); then a; fi", Arithmetic),
        ("a $(( (1) + ${prev} ))", Arithmetic),
        ("a $((1 + $(b ${prev})))", Nothing),
        ("a $${B:-${prev}}", Nothing),
        ("a \"$${B:-${prev}}\"", DoubleQuotes),
        ("cat <<EOF\nx ${prev}\nEOF\n", HereDocument),
        ("cat <<'EOF'\nx ${prev}\nEOF\n", HereDocument),
        ("cat <<-\"EOF\" > f; b\n\tx ${prev}\n\tEOF\n", HereDocument),
        ("cat <<EOF\nx\nEOF\na ${prev}", Nothing),
        ("a \"$(cat <<EOF\n${prev}\nEOF\n)\"", HereDocument),
        ("a <<< ${prev}", Nothing),
        ("a <<< \"${prev}\"", DoubleQuotes),
        ("# it's ${prev}", Comment),
        ("a # ${prev}", Comment),
        ("a b#${prev}", Nothing),
        ("# it's\na ${prev}", Nothing),
        ("eval ${prev}", Eval),
        ("a; eval b ${prev}", Eval),
        ("eval a; b ${prev}", Nothing),
        ("a it\\'s ${prev}", Nothing),
        ("a \"it's\" ${prev}", Nothing),
        ("case x in a) b ${prev};; esac", Nothing),
        ("a | { b ${prev}; }", Nothing),
        ("a \\${prev}", Backslash),
        ("a \"\\${prev}\"", Backslash),
        ("a $'\\${prev}'", SingleQuotes),
    ] {
        // `prev` alone has no path.
        let text = text.replace("${prev}", "${prev.output:shell}");
        assert_eq!(found(&text), [expected], "{text}");
    }
}

#[test]
fn what_is_around_a_substitution_holds_again_behind_it() {
    use TemplateQuotes::*;
    for (text, expected) in [
        ("eval \"$(b)\" ${prev}", Eval),
        ("eval $(b ${prev})", Nothing),
        ("a \"$(case x in y) b;; esac)\" ${prev}", Nothing),
        ("a \"$(b \"$${c:-'d}\" ${prev})\"", Nothing),
        ("a `b \" c` ${prev}", Nothing),
        ("(( (1) + (2) )); a ${prev}", Nothing),
        ("((a); b ${prev})", Nothing),
        ("x=$((a); b) c ${prev}", Nothing),
        ("cat <<'a b'\n${prev}\na b\n", HereDocument),
        ("then eval ${prev}", Eval),
    ] {
        let text = text.replace("${prev}", "${prev.output:shell}");
        assert_eq!(found(&text), [expected], "{text}");
    }
}

#[test]
fn bodies_of_substitutions_are_named_once() {
    let bodies = |text: &str| {
        let tokens = tokens(text).unwrap();
        let bodies = tokens.iter().flat_map(|token| token.bodies.clone());
        bodies.map(|body| text[body].to_owned()).collect::<Vec<_>>().join(" + ")
    };
    for (text, expected) in [
        ("a $(b $(c)) `d`", "b $(c) + d"),
        ("a \"x $(b) y\" > $(c)", "b + c"),
        ("a <(b) > >(c)", "b + c"),
        ("a $((1 + 2)) $((b); c)", "(b); c"),
        ("a=(b $(c))", "c"),
    ] {
        assert_eq!(bodies(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn every_template_is_met_once(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("${prev.output}"), Just("'"), Just("\""), Just("`"), Just("$("), Just(")"), Just("(("),
                Just("))"), Just("<<E\n"), Just("\nE\n"), Just("$${"), Just("}"), Just("#"), Just(" "), Just("\\"),
                Just("é"), Just("\n"), Just("$'"), Just("<<"),
            ],
            0..24,
        )
    ) {
        let text = parts.concat();
        if let Ok(template) = Template::parse(&text) {
            let spans: Vec<_> = template.expressions().map(|expression| expression.span.clone()).collect();
            prop_assert_eq!(around(&text, &spans).len(), spans.len());
        }
    }
}
