//! Which commands of a text can fail unseen.

use proptest::prelude::*;

use super::*;

fn shell(words: &str) -> Vec<String> {
    words.split(' ').map(str::to_owned).collect()
}

/// What is masked in a text: the first letter of why, and the command.
fn found_in(text: &str, words: &str) -> String {
    let all = in_text(text, &shell(words));
    let shown = all.iter().map(|masked| format!("{:?} {}", masked.why, &text[masked.range.clone()]));
    shown.collect::<Vec<_>>().join(" | ")
}

fn found(text: &str) -> String {
    found_in(text, "bash -c")
}

#[track_caller]
fn fine(texts: &[&str]) {
    for text in texts {
        assert_eq!(found(text), "", "{text}");
    }
}

#[test]
fn what_shows_every_failure_is_fine() {
    fine(&[
        "",
        "make test",
        "make test\n",
        "# make lint\nmake test # ; make more",
        "make \\\n  test",
        "a && b",
        "a &&\n  b",
        "a || exit 1",
        "a || exit 1; b",
        "a || { echo no >&2; exit 1; }\nb",
        "cd x || exit\nmake",
        "cd x && make",
        "echo begin; make test",
        "printf 'a\\n' | diff - /dev/null > /dev/null",
        "X=1; Y=(a b); export Z=2\nmake",
        "cat > x <<'EOF'\none; two | three\nfour\nEOF",
        "python3 - <<EOF\na = 1\nb = 2\nEOF\n",
        "python3 -c 'a = 1; b = 2\nc | d'",
        "grep -q \"a; b | c\" x",
        "set -e\nmake lint\nmake test",
        "set -eu; make lint; make test",
        "set -o errexit\na\nb",
        "set -o pipefail; a | b",
        "set -euo pipefail\na | b\nc",
        "trap 'exit 1' ERR\na\nb",
        "if a; then b; else c; fi",
        "if a | grep -q x; then exit 1; fi",
        "while read -r x; do b \"$x\"; done < list",
        "for f in *.sh; do check \"$f\" || exit 1; done",
        "case $1 in (a) b;; c|d) e;; esac",
        "f() { a; }; f",
        "function f { a && b; }\nf",
        "(a && b)",
        "{ a; }",
        "[[ -f a && -f b || ! -f c ]]",
        "((1 + 1 == 2))",
        "test \"$(a; b | c)\" = x",
        "make test; code=$?; exit $code",
        "a; if [ $? -ne 1 ]; then exit 1; fi",
        "a | b; exit ${PIPESTATUS[0]}",
        "server & pid=$!; wait $pid",
        "! grep -q x y",
        "time make",
        "make test 2>&1",
        "[ -e x ] || exit 0\nmake",
        "a || true\nb",
        "exec make",
        "sleep 1; make",
        "cat log >&2; exit 1",
        "cat log\nfalse\n",
    ]);
}

#[test]
fn a_command_that_another_one_follows_fails_unseen() {
    for (text, expected) in [
        ("make lint; make test", "Sequence make lint"),
        ("make lint\nmake test\n", "Sequence make lint"),
        ("a; b; c", "Sequence a | Sequence b"),
        ("a && b; c", "Sequence a && b"),
        ("a || b\nc", "Sequence a || b"),
        ("cd x; make", "Sequence cd x"),
        ("test -f x\nmake", "Sequence test -f x"),
        ("x=$(a); b", "Sequence x=$(a)"),
        ("echo $(a); b", "Sequence echo $(a)"),
        ("echo a > b; c", "Sequence echo a > b"),
        ("make test; echo done", "Sequence make test"),
        ("a; set -e; b; c", "Sequence a"),
        ("set -e; set +e; a; b", "Sequence a"),
        ("(set -e; a; b); c", "Sequence (set -e; a; b)"),
        ("if x; then a; b; fi", "Sequence a"),
        ("if x; then a; else b; fi; c", "Sequence if x; then a; else b; fi"),
        ("for f in *; do a; b; done", "Sequence a"),
        ("{ a; b; }", "Sequence a"),
        ("f() { a; b; }; f", "Sequence a"),
        ("case x in y) a; b;; esac", "Sequence a"),
        ("cat <<X\n;\nX\na", "Sequence cat <<X"),
        ("make & make test", "Background make"),
        ("make &", "Background make"),
        ("set -e; make &", "Background make"),
        ("a & wait", "Background a"),
        ("'é' ü; ö", "Sequence 'é' ü"),
        ("a # b\n c", "Sequence a"),
        ("[[ a ]]; b", "Sequence [[ a ]]"),
        ("a; ${context.b}", "Sequence a"),
        ("a; b && exit 0; exit 1", "Sequence a | Sequence b && exit 0"),
        ("a; b || exit 1", "Sequence a"),
        ("a; exit 0", "Sequence a"),
        ("a; b false", "Sequence a"),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn a_part_of_a_pipeline_fails_unseen() {
    for (text, expected) in [
        ("make test | tee log", "Pipeline make test"),
        ("make test 2>&1 |\n  tee log", "Pipeline make test 2>&1"),
        ("a | b | c", "Pipeline a | Pipeline b"),
        ("a |& b", "Pipeline a"),
        ("set -e; a | b", "Pipeline a"),
        ("a | b && c", "Pipeline a"),
        ("a | b || exit 1", "Pipeline a"),
        ("echo x | a | b", "Pipeline a"),
        ("cat x | while read l; do b; done", "Pipeline cat x"),
        ("if x; then a | b; fi", "Pipeline a"),
        ("set -e; a | b; echo $?", "Pipeline a"),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn an_end_that_always_succeeds_hides_every_failure() {
    for (text, expected) in [
        ("make test || true", "Replaced make test"),
        ("make test || /bin/true", "Replaced make test"),
        ("make test || :", "Replaced make test"),
        ("make test || echo failed", "Replaced make test"),
        ("make test || exit 0", "Replaced make test"),
        ("a && b || true", "Replaced a && b"),
        ("a | b || true", "Replaced a | b"),
        ("set -e\na\nmake test || true\n", "Replaced make test"),
        ("a; b || true", "Sequence a | Replaced b"),
        ("a || { echo no; true; }", "Replaced a"),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn the_shell_decides_what_fails() {
    for (words, expected) in [
        ("bash -euo pipefail -c", ""),
        ("bash -e -o pipefail -c", ""),
        ("/bin/bash -eo pipefail -c", ""),
        ("/usr/bin/env bash -ec", "Pipeline a"),
        ("sh -ec", "Pipeline a"),
        ("bash -o pipefail -c", "Sequence a | b"),
        ("bash -c", "Pipeline a | Sequence a | b"),
        ("python3 -c", ""),
        ("fish -c", ""),
    ] {
        assert_eq!(found_in("a | b; c", words), expected, "{words}");
    }
}

#[test]
fn what_is_no_shell_text_is_left_alone() {
    fine(&[
        "a; b; 'c",
        "a; b; if c",
        "a; { b",
        "a; (b",
        "a; b; ;; c",
        "a; b)",
        "a; fi; b",
        "; ; &",
        "| a; b",
        "a && ; b; c",
        "case x y; a; b",
        "for",
        "function",
        "function f",
        "f(",
        "a; [[ b",
        "a b (c); d",
    ]);
    let deep = format!("{}a; b{}", "{ ".repeat(10_000), "; }".repeat(10_000));
    assert_eq!(found(&deep), "");
}

#[test]
fn a_long_text_takes_no_longer_for_each_of_its_parts() {
    // Anything worse than linear would take minutes.
    for part in [
        "a; ",
        "a | ",
        "$(",
        "\"$(",
        "<<X ",
        "<<X\n",
        "(",
        "{ ",
        "`",
        "\\",
        "a=(",
        "if a; then ",
        "case x in y) ",
    ] {
        let text = part.repeat(1_000_000 / part.len());
        drop(in_text(&text, &shell("bash -c")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_looked_at_without_harm(text in any::<String>()) {
        for masked in in_text(&text, &shell("bash -c")) {
            prop_assert!(text.get(masked.range).is_some());
        }
    }

    #[test]
    fn any_pieces_of_shell_are_looked_at_without_harm(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "a", " ", "\n", ";", "&", "|", "(", ")", "{", "}", "'", "\"", "`", "$", "\\", "<", ">", "#", "é", "=",
                "<<X\n", "X\n", "if ", "then ", "fi", "do ", "done", "for ", "while ", "case ", " in ", "esac", ";;",
                "[[ ", " ]]", "((", "))", "${", "$((", "$?", "set -e", "function f", "|| true", "!", "2>",
            ]),
            0..40,
        ),
    ) {
        let text = pieces.concat();
        for masked in in_text(&text, &shell("bash -c")) {
            let command = text.get(masked.range);
            prop_assert!(command.is_some_and(|command| !command.trim().is_empty()), "{text:?}");
        }
    }
}
