//! Secrets in all ways of writing, in any surroundings, cut into any pieces: what is shown of them never shows them. Who
//! decides that knows nothing of the code that hides them ([`leaks`]).

use ll_loop::internals::base::redact::{Flow, Redactor};
use proptest::prelude::*;

use crate::leaks::{folded, leak, written};

/// Shows a text that comes in pieces, as a run shows output.
fn shown(redactor: &Redactor, text: &str, cuts: &[usize]) -> String {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let (mut flow, mut all) = (Flow::default(), String::new());
    for piece in cuts.windows(2) {
        flow.push(&text[piece[0]..piece[1]], redactor, &mut |text| all.push_str(text));
    }
    flow.finish(redactor, &mut |text| all.push_str(text));
    all
}

/// A dump begins a line.
fn at_line_start(text: String) -> String {
    if text.starts_with("0000000") { format!("\n{text}") } else { text }
}

#[test]
fn every_way_of_writing_is_hidden_and_would_be_found() {
    for secret in [
        "pL4nt+3d/t0=k&\"n\\<q'Zr9$~é%7Bw2Xv",
        "ghp_abcdefGHIJKL0123456789",
        "s3cr3t-t0k3n-value",
        "correct-horse-battery-staple",
        "Zm9vYmFyYmF6cXV4",
    ] {
        let redactor = Redactor::new([secret]);
        for (name, text) in written(secret) {
            let text = at_line_start(text);
            for text in
                [text.clone(), format!("before it {text} behind it\n"), format!("first\n{text}\nlast\n")]
            {
                assert!(leak(&text, secret).is_some(), "{name} would not be found: {text}");
                let whole = redactor.text(&text).into_owned();
                for seen in
                    [whole, shown(&redactor, &text, &[]), shown(&redactor, &text, &[5, 13, 40, 41, 77])]
                {
                    assert_eq!(leak(&seen, secret), None, "{name}: {text} ==> {seen}");
                }
            }
        }
    }
}

/// Returns the ways in which programs dump a secret with addresses, alone and behind something else.
fn dumps(secret: &str) -> impl Iterator<Item = (String, String)> {
    let is_dump =
        |name: &str| ["xxd", "hexdump", "od"].iter().any(|tool| name.split(' ').next() == Some(tool));
    written(secret).into_iter().filter(move |(name, text)| is_dump(name) && text.starts_with("0000000"))
}

#[test]
fn a_dump_is_shown_alike_however_its_bytes_come() {
    for secret in [
        "pL4nt+3d/t0=k&\"n\\<q'Zr9$~é%7Bw2Xv",
        "correct-horse-battery-staple",
        "+/=pL4nt3d-t0k3n-value",
        "!?+/=-*#!$%&!?ab",
    ] {
        let redactor = Redactor::new([secret]);
        for (name, text) in dumps(secret) {
            let text = format!("first\n{text}last\n");
            let whole = redactor.text(&text);
            assert!(whole.contains("***"), "{name}: {whole}");
            let line_ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
            let everywhere: Vec<usize> = (0..text.len()).collect();
            let cuts = everywhere.iter().map(|cut| vec![*cut]).chain([line_ends, everywhere.clone()]);
            for cuts in cuts {
                assert_eq!(shown(&redactor, &text, &cuts), whole, "{name}, cut at {cuts:?}");
            }
        }
    }
}

#[test]
fn codes_that_are_broken_by_a_line_end_are_hidden_however_they_come() {
    let secret = "correct-horse-battery-staple";
    let redactor = Redactor::new([secret]);
    let each = |text: &str, write: fn(u8) -> String| text.bytes().map(write).collect::<String>();
    let units = |text: &str| each(text, |byte| format!("\\u{byte:04x}"));
    let hex = |text: &str| each(text, |byte| format!("\\x{byte:02x}"));
    let entities = |text: &str| each(text, |byte| format!("&#x{byte:X};"));
    for write in [&units as &dyn Fn(&str) -> String, &hex, &entities] {
        let (one, two) = (write(&secret[..14]), write(&secret[14..]));
        let text = format!("first\n{one}\n{two}\nlast\n");
        assert_eq!(redactor.text(&text), "first\n***\nlast\n");
        for cut in 0..text.len() {
            assert_eq!(shown(&redactor, &text, &[cut]), "first\n***\nlast\n", "{text}, cut at {cut}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_way_of_writing_no_surroundings_and_no_cut_show_a_secret(
        secret in "[a-zA-Z0-9]{12,33}([+/=_.@!&<>\"'\\\\-]{1,2}[a-zA-Z0-9é]{1,9}){0,3}",
        way in 0..500_usize,
        before in "([g-z ,.]{0,60}\n){0,3}[g-z ]{0,20}",
        behind in "[ .,\n]?([ g-z,.]{0,60}\n){0,3}",
        width in prop::option::of(1..70_usize),
        has_returns: bool,
        cuts in prop::collection::vec(0..5000_usize, 0..6),
    ) {
        // A short one without a digit may be a word, and is not looked for in small or great letters.
        let signs = || secret.bytes().filter(u8::is_ascii_alphanumeric);
        prop_assume!(signs().any(|sign| sign.is_ascii_digit()) || signs().count() >= 16);
        let ways = written(&secret);
        let (name, text) = ways[way % ways.len()].clone();
        let breaks = ["raw", "hex", "base64", "small", "great"].iter().any(|name_of| name.starts_with(name_of));
        let text = match width {
            Some(width) if breaks && !text.contains('\n') => folded(&text, width),
            _ => at_line_start(text),
        };
        let text = format!("{before}{text}{behind}");
        let text = if has_returns && !text.contains('\r') { text.replace('\n', "\r\n") } else { text };
        let redactor = Redactor::new([&secret]);
        let whole = redactor.text(&text);
        prop_assert_eq!(leak(&whole, &secret), None, "{}: {:?} ==> {:?}", name, text, whole);
        let seen = shown(&redactor, &text, &cuts);
        prop_assert_eq!(leak(&seen, &secret), None, "{} in pieces: {:?} ==> {:?}", name, text, seen);
    }

    #[test]
    fn what_has_no_secret_is_shown_as_it_is(
        text in "([a-zA-Z0-9 ,.:=%&\\\\\"-]{0,60}[\n]){0,9}[a-z]{0,9}",
        cuts in prop::collection::vec(0..500_usize, 0..6),
    ) {
        let redactor = Redactor::new(["s3cr3t-t0k3n-value", "hunter2", "correct horse"]);
        prop_assert_eq!(shown(&redactor, &text, &cuts), text);
    }
}
