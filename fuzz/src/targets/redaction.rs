//! Redaction with a leak oracle: a secret is planted in a text, written in one of the ways in which programs write
//! things down, and must not be there afterwards.
//!
//! The first bytes say how it is written; what follows are the secret, what stands before it and what stands behind it,
//! with NULs between.

use std::fmt::Write as _;

use ll_loop::internals::base::redact::{MIN_SECRET, Redactor};
use serde_json::{Value, json};

use crate::bytes::Plan;
use crate::{Target, note};

/// See above.
pub const TARGET: Target = Target {
    name: "redaction",
    run,
    seeds,
    words: &[
        "\0",
        "pass word",
        "it's",
        "\"",
        "\\",
        "\\\\",
        "'\\''",
        "%",
        "%41",
        "%25",
        "&amp;",
        "&#",
        ";",
        "\\u00",
        "\\x",
        "\\1",
        "+",
        "/",
        "=",
        "-",
        "_",
        "\n",
        "\r\n",
        "\t",
        " ",
        "…",
        "\u{1b}[31m",
        "\u{1b}]0;",
        "\u{7}",
        "\u{202e}",
        "\u{200b}",
        "é",
        "ß",
        "😀",
        "***",
        "AAAA",
        "4141",
        "==",
        "$",
        "{",
        "}",
        "<",
        ">",
        ":",
        "@",
        "-----BEGIN KEY-----\n",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    let secrets =
        ["hunter2-secret", "p\"a's\\s w/o+rd=", "schlüssel-😀-ü", "line one\nline two is longer", "aaaaaaaa"];
    let around = ["", "\0token=\0 and more", "\0{\"a\": \"\0\"}\n", "\0\\\0\\", "\0é…\0…é"];
    let mut all = Vec::new();
    for (at, secret) in secrets.iter().enumerate() {
        for way in 0..WAYS.len() {
            let head = [
                u8::try_from(way).unwrap_or_default(),
                3 * u8::try_from(way + at).unwrap_or_default(),
                7,
                201,
            ];
            all.push([&head, secret.as_bytes(), around[(way + at) % around.len()].as_bytes()].concat());
        }
    }
    all
}

/// Which characters are escaped, and how: the next of a few numbers, for ever.
struct Dice {
    state: u32,
}

impl Dice {
    fn new(plan: &mut Plan<'_>) -> Self {
        let bytes = [plan.byte(), plan.byte(), plan.byte(), 1];
        Self { state: u32::from_le_bytes(bytes) }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 16) % bound
    }
}

/// A way to write a secret down.
struct Way {
    name: &'static str,
    /// Returns the text to plant, and the part of it that must be gone.
    write: fn(&str, &mut Dice) -> (String, String),
}

const WAYS: &[Way] = &[
    Way { name: "as it is", write: |secret, _| whole(secret.to_owned()) },
    Way { name: "base64", write: |secret, dice| in_base64(secret, dice, STANDARD) },
    Way { name: "base64 for URLs", write: |secret, dice| in_base64(secret, dice, FOR_URLS) },
    Way { name: "hexadecimal", write: |secret, _| whole(each_byte(secret, |byte| format!("{byte:02x}"))) },
    Way {
        name: "hexadecimal, upper case",
        write: |secret, _| whole(each_byte(secret, |byte| format!("{byte:02X}"))),
    },
    Way { name: "JSON", write: |secret, _| whole(in_json(secret)) },
    Way { name: "JSON in JSON", write: |secret, _| whole(in_json(&in_json(secret))) },
    Way { name: "JSON with codes", write: |secret, dice| whole(some(secret, dice, json_code)) },
    Way { name: "percent", write: |secret, dice| whole(percent(secret, dice)) },
    Way { name: "percent of percent", write: |secret, dice| whole(percent(&percent(secret, dice), dice)) },
    Way { name: "entities", write: |secret, dice| whole(some(secret, dice, entity)) },
    Way {
        name: "a word of a shell",
        write: |secret, _| whole(format!("'{}'", secret.replace('\'', "'\\''"))),
    },
    Way {
        name: "quoted for a shell",
        write: |secret, dice| whole(some(secret, dice, |c, _| format!("\\{c}"))),
    },
    Way { name: "codes of C", write: |secret, dice| whole(some(secret, dice, c_code)) },
];

fn whole(text: String) -> (String, String) {
    (text.clone(), text)
}

fn each_byte(text: &str, write: impl Fn(u8) -> String) -> String {
    text.bytes().map(write).collect()
}

/// Writes some characters in another way.
fn some(text: &str, dice: &mut Dice, write: fn(char, &mut Dice) -> String) -> String {
    text.chars().map(|c| if dice.below(3) == 0 { c.to_string() } else { write(c, dice) }).collect()
}

fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn json_code(c: char, dice: &mut Dice) -> String {
    let upper = dice.below(2) == 0;
    let write = |unit: &u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
    c.encode_utf16(&mut [0; 2]).iter().map(write).collect()
}

fn percent(text: &str, dice: &mut Dice) -> String {
    let mut out = String::new();
    for c in text.chars() {
        // A sign of the notation is never left as it is.
        if dice.below(3) == 0 && !matches!(c, '%' | '+') {
            out.push(c);
        } else {
            let upper = dice.below(2) == 0;
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = if upper { write!(out, "%{byte:02X}") } else { write!(out, "%{byte:02x}") };
            }
        }
    }
    out
}

fn entity(c: char, dice: &mut Dice) -> String {
    match (c, dice.below(3)) {
        ('&', 0) => "&amp;".to_owned(),
        ('<', 0) => "&lt;".to_owned(),
        ('>', 0) => "&gt;".to_owned(),
        ('"', 0) => "&quot;".to_owned(),
        (_, 1) => format!("&#x{:x};", u32::from(c)),
        _ => format!("&#{};", u32::from(c)),
    }
}

fn c_code(c: char, dice: &mut Dice) -> String {
    let octal = dice.below(2) == 0;
    let write = |byte: u8| if octal { format!("\\{byte:03o}") } else { format!("\\x{byte:02x}") };
    each_byte(c.encode_utf8(&mut [0; 4]), write)
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Writes the secret among other bytes; what depends on nothing but the secret must be gone.
fn in_base64(secret: &str, dice: &mut Dice, alphabet: &[u8; 64]) -> (String, String) {
    let before = usize::try_from(dice.below(5)).unwrap_or_default();
    let behind = usize::try_from(dice.below(5)).unwrap_or_default();
    let bytes = [&b"user:"[..before], secret.as_bytes(), &b"@host"[..behind]].concat();
    let text = base64(&bytes, alphabet);
    let core = text[(before * 8).div_ceil(6)..(before + secret.len()) * 8 / 6].to_owned();
    (text, core)
}

fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for digit in 0..4 {
            let is_padding = digit > group.len();
            out.push(if is_padding {
                '='
            } else {
                char::from(alphabet[(bits >> (18 - 6 * digit) & 63) as usize])
            });
        }
    }
    out
}

fn run(data: &[u8]) {
    let mut plan = Plan::new(data);
    let way = &WAYS[usize::from(plan.byte()) % WAYS.len()];
    let mut dice = Dice::new(&mut plan);
    let text = plan.text();
    let mut parts = text.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or_default();
    let (secret, before, behind) = (part().trim(), part(), part());
    let redactor = Redactor::new([secret]);
    let everywhere = [before, secret, behind].concat();
    drop(redactor.tail(&everywhere, 16));
    // Too short to be hidden, also without what quotes; and the mask itself cannot be hidden.
    let bare: String = secret.chars().filter(|c| !matches!(c, '\\' | '\'' | '"')).collect();
    if bare.trim().len() < MIN_SECRET || secret.contains('*') || secret.chars().any(char::is_control) {
        let _clean = redactor.text(&everywhere);
        return;
    }
    let (planted, gone) = (way.write)(secret, &mut dice);
    // What stands before it is not the beginning of a code that it would complete.
    let tail = &before[before.floor_char_boundary(before.len().saturating_sub(12))..];
    let apart = if tail.contains(['\\', '%', '&']) { "\n" } else { "" };
    let text = [before, apart, &planted, behind].concat();
    let clean = redactor.text(&text);
    note((way.name, before.len().min(3), behind.len().min(3), clean.len() == text.len()));
    let leaks = |clean: &str| gone.len() >= MIN_SECRET && clean.contains(&gone) || clean.contains(secret);
    assert!(!leaks(&clean), "{secret:?} leaks, written as {}: {text:?} becomes {clean:?}", way.name);
    assert!(redactor.finds(text.as_bytes()), "{secret:?} is hidden and not found in {text:?}");
    let tail = redactor.tail(&text, planted.len() + behind.len());
    assert!(
        !leaks(&tail),
        "{secret:?} leaks from the end, written as {}: {text:?} becomes {tail:?}",
        way.name
    );
    let mut value = json!({"list": [text.as_ref() as &str, 1], text.as_ref() as &str: null});
    redactor.json(&mut value);
    let held = value["list"][0].as_str().unwrap_or_default();
    assert!(!leaks(held), "{secret:?} leaks from JSON: {held:?}");
    // A key that is one lower-case word stays: the words of formats are such.
    let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let mut keys = value.as_object().into_iter().flat_map(|map| map.keys());
    assert!(is_word || keys.all(|key| !leaks(key)), "{secret:?} leaks from a key");
}
