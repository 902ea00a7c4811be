//! What must hold of a match besides its pattern: checksums, what is inside, and that nobody wrote it as an example.

use std::ops::Range;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use flate2::Crc;
use regex::bytes::Captures;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::base::text::up_to;

/// What must hold of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MatchProof {
    /// It does not look like an example.
    #[default]
    Plausible,
    /// It has small and capital letters and digits besides, as chance makes it.
    Mixed,
    /// It has digits besides.
    Digits,
    /// It has small and capital letters besides, and not as the words of a name have them.
    Cased,
    /// `sum` is the CRC-32 of `body` in digits of base 62.
    Crc32Base62,
    /// It ends with the checksum of Bech32.
    Bech32,
    /// Its first part is the header of a signed token.
    Jwt,
    /// The lines of a key follow.
    Pem,
    /// It is a private key, encoded once more.
    Base64Pem,
    /// It is a name, a colon and a password, encoded.
    Login,
    /// It begins with the number of a user of Discord.
    Discord,
    /// The password of an address is not a word that stands for one.
    Password,
}

/// The digits of base 62 in the checksums of tokens.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The digits of Bech32 (BIP 173).
const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// How many signs of a private key have to follow: the shortest kind has 64.
const SHORTEST_KEY: usize = 60;

/// How far the signs of a private key are looked for: headers, indentation and quotes stand between them.
const KEY_WINDOW: usize = 4096;

/// The most bytes that are decoded to look inside.
const MOST_DECODED: usize = 64 << 10;

impl MatchProof {
    /// Returns what shows it, which may be more than the match; nothing if it does not hold.
    pub(super) fn holds(self, bytes: &[u8], captures: &Captures<'_>) -> Option<Range<usize>> {
        let whole = captures.get(0)?;
        let value = captures.name("value").unwrap_or(whole).as_bytes();
        let range = whole.range();
        let is_proved = match self {
            Self::Pem => return key_behind(bytes, range.end).map(|end| range.start..end),
            Self::Plausible => is_plausible(value),
            Self::Mixed => is_plausible(value) && is_mixed(value),
            Self::Digits => is_plausible(value) && value.iter().any(u8::is_ascii_digit),
            Self::Cased => is_plausible(value) && is_cased(value),
            Self::Crc32Base62 => is_crc(captures.name("body")?.as_bytes(), captures.name("sum")?.as_bytes()),
            Self::Bech32 => is_bech32(value),
            Self::Jwt => is_signed_token(value),
            Self::Base64Pem => is_encoded_key(value),
            Self::Login => is_login(value),
            Self::Discord => is_discord(value),
            Self::Password => {
                let user = captures.name("user").map_or(&[][..], |user| user.as_bytes());
                is_password(user, value, captures.name("host")?.as_bytes())
            }
        };
        is_proved.then_some(range)
    }
}

/// Tells whether a match is a word of its own: nothing that belongs to a word stands before or after it, but for what an
/// escape sequence ends with.
pub(super) fn stands_alone(bytes: &[u8], whole: &Range<usize>) -> bool {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (before, after) = (&bytes[..whole.start], bytes.get(whole.end));
    (!before.last().is_some_and(is_inside) || ends_in_escape(before)) && !after.is_some_and(is_inside)
}

/// Tells whether bytes end in `\n`, `%3D`, `\x3d`, `\u003d` or the like.
fn ends_in_escape(bytes: &[u8]) -> bool {
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match bytes {
        [.., b'\\', b'n' | b'r' | b't' | b'f' | b'v' | b'b' | b'0'] => true,
        [.., b'%', one, two] | [.., b'\\', b'x', one, two] => is_hex(&[*one, *two]),
        [.., b'\\', b'u', one, two, three, four] => is_hex(&[*one, *two, *three, *four]),
        _ => false,
    }
}

/// Words that stand in examples. Chance would write the shortest of them into one of ten million tokens.
const EXAMPLES: [&str; 6] = ["example", "xxxxx", "placeholder", "redacted", "your_", "your-"];

/// Tells whether a value does not look like an example: no such word in it, and its signs are not always the same ones.
pub(super) fn is_plausible(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    // The end alone, because many tokens begin with a fixed text.
    let end = &value[value.len().saturating_sub(20)..];
    let mut signs = end.to_vec();
    signs.sort_unstable();
    signs.dedup();
    !EXAMPLES.iter().any(|word| text.contains(word)) && signs.len() >= end.len().min(18) / 3
}

/// Tells whether a value has small and capital letters and digits.
pub(super) fn is_mixed(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit)
}

/// Tells whether small and capital letters take turns more often than in the words of a name.
fn is_cased(value: &[u8]) -> bool {
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic());
    let cases: Vec<bool> = letters.map(u8::is_ascii_uppercase).collect();
    let turns = cases.windows(2).filter(|pair| pair[0] != pair[1]).count();
    turns * 4 >= cases.len()
}

// Tokens of GitHub and of npm end with this checksum: six digits, with zeros in front.
fn is_crc(body: &[u8], sum: &[u8]) -> bool {
    let mut crc = Crc::new();
    crc.update(body);
    let mut rest = crc.sum() as usize;
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[rest % BASE62.len()];
        rest /= BASE62.len();
    }
    sum == digits
}

/// Checks the checksum of BIP 173, of a text that is all capital or all small letters.
fn is_bech32(value: &[u8]) -> bool {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let lower = value.to_ascii_lowercase();
    let Some(separator) = lower.iter().rposition(|byte| *byte == b'1') else { return false };
    let (prefix, data) = (&lower[..separator], &lower[separator + 1..]);
    let digits = data.iter().map(|byte| BECH32.iter().position(|digit| digit == byte));
    let Some(digits) = digits.collect::<Option<Vec<usize>>>() else { return false };
    let high = prefix.iter().map(|byte| usize::from(byte >> 5));
    let low = prefix.iter().map(|byte| usize::from(byte & 31));
    let mut sum = 1_u32;
    for digit in high.chain([0]).chain(low).chain(digits) {
        let top = sum >> 25;
        sum = ((sum & 0x01ff_ffff) << 5) ^ u32::try_from(digit).unwrap_or(0);
        for (bit, generator) in GENERATOR.iter().enumerate() {
            sum ^= if (top >> bit) & 1 == 1 { *generator } else { 0 };
        }
    }
    // Bech32 ends in 1; the later Bech32m (BIP 350) in another constant, which keys of age do not
    // use.
    sum == 1
}

fn is_signed_token(value: &[u8]) -> bool {
    let header = value.split(|byte| *byte == b'.').next().unwrap_or(&[]);
    if header.len() > MOST_DECODED {
        return false;
    }
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(header).ok();
    let fields = decoded.and_then(|json| serde_json::from_slice::<Map<String, Value>>(&json).ok());
    let algorithm = fields.as_ref().and_then(|fields| fields.get("alg")?.as_str());
    // An unsigned token opens nothing.
    algorithm.is_some_and(|name| !name.eq_ignore_ascii_case("none"))
}

/// Returns where the signs of a private key end that follow its first line, if there are enough of them. Line ends may be
/// written as `\n`, and lines may be indented, quoted, commented or added up, as they are in sources.
fn key_behind(bytes: &[u8], start: usize) -> Option<usize> {
    let window = &bytes[start..bytes.len().min(start + KEY_WINDOW)];
    let mut at = headers(window);
    let mut seen = Vec::new();
    while let Some(&byte) = window.get(at) {
        match byte {
            b'\\' if matches!(window.get(at + 1), Some(b'n' | b'r' | b't')) => at += 1,
            _ if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=') => seen.push(byte),
            b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b'\\' | b',' | b';' | b'#' | b'|' | b'*'
            | b'>' => {}
            _ => break,
        }
        at += 1;
        if seen.len() >= SHORTEST_KEY {
            return (is_mixed(&seen) && is_plausible(&seen) && has_long_words(&window[..at]))
                .then_some(start + at);
        }
    }
    None
}

/// A key has lines of many signs; a sentence in plain words has none.
fn has_long_words(bytes: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    bytes.split(|byte| !is_sign(byte)).any(|word| word.len() >= 16)
}

/// Returns where the lines `Name: value` end that may stand before the signs of a key.
fn headers(window: &[u8]) -> usize {
    const MOST: usize = 8;
    let mut at = 0;
    for _ in 0..MOST {
        let rest = &window[at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
        let line = rest[..end].trim_ascii();
        let is_header = line.split(|byte| *byte == b':').next().is_some_and(|name| {
            name.len() < line.len()
                && !name.is_empty()
                && name.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-')
        });
        if !line.is_empty() && !is_header {
            break;
        }
        at += end + 1;
    }
    at
}

fn is_encoded_key(value: &[u8]) -> bool {
    let value = &value[..value.len().min(MOST_DECODED)];
    // Whole groups of four: the decoder refuses a text that ends in the middle of one.
    let Ok(decoded) = BASE64_STANDARD.decode(&value[..value.len() / 4 * 4]) else { return false };
    let marker = b"PRIVATE KEY";
    let found = decoded.windows(marker.len()).position(|part| part == marker);
    let line = |at: usize| decoded[at..].iter().position(|byte| *byte == b'\n').map(|end| at + end);
    found.and_then(line).is_some_and(|end| key_behind(&decoded, end).is_some())
}

fn is_login(value: &[u8]) -> bool {
    let Ok(decoded) = BASE64_STANDARD.decode(value) else { return false };
    // Of several colons the first: a name in a Basic header has none, and a password may.
    let colon = decoded.iter().position(|byte| *byte == b':');
    let is_text = decoded.iter().all(|byte| (b' '..=b'~').contains(byte) && *byte != b' ');
    // A host that is not an example, so that the password alone decides.
    colon.is_some_and(|at| is_text && is_password(&decoded[..at], &decoded[at + 1..], b"registry.io"))
}

fn is_discord(value: &[u8]) -> bool {
    let id = value.split(|byte| *byte == b'.').next().unwrap_or(&[]);
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(id);
    // A token of Discord begins with the id of its account, which has so many digits.
    let is_number = |id: Vec<u8>| (17..=20).contains(&id.len()) && id.iter().all(u8::is_ascii_digit);
    is_plausible(value) && decoded.is_ok_and(is_number)
}

/// The shortest password that is taken for one.
const SHORTEST_PASSWORD: usize = 6;

/// The fewest letters and digits of one. With less, it is a text for readers of addresses, such as `%3A%40c`.
const FEWEST_SIGNS: usize = 4;

/// Words that stand where a password would be.
const NO_PASSWORDS: [&str; 44] = [
    "admin",
    "anoncvs",
    "anonymous",
    "apikey",
    "changeit",
    "changeme",
    "credential",
    "credentials",
    "database",
    "default",
    "demo",
    "dummy",
    "fake",
    "foo",
    "foobar",
    "guest",
    "hidden",
    "key",
    "letmein",
    "minioadmin",
    "mongo",
    "mysql",
    "none",
    "null",
    "p4ssw0rd",
    "pass",
    "passphrase",
    "passw0rd",
    "passwd",
    "password",
    "placeholder",
    "postgres",
    "postgresql",
    "pwd",
    "rabbitmq",
    "redacted",
    "redis",
    "root",
    "sample",
    "secret",
    "test",
    "token",
    "user",
    "value",
];

/// Words that stand before one of these.
const WHOSE: [&str; 18] = [
    "a", "another", "app", "bad", "db", "default", "fake", "my", "new", "old", "other", "real", "some",
    "super", "test", "the", "user", "your",
];

/// Tells whether a password in an address is somebody's, and no example. At the address of an example, or of the machine
/// itself, letters alone are not.
fn is_password(user: &[u8], password: &[u8], host: &[u8]) -> bool {
    let Ok(written) = std::str::from_utf8(password) else { return false };
    let password = without_codes(written);
    let user = String::from_utf8_lossy(user).to_ascii_lowercase();
    let lower = password.to_ascii_lowercase();
    let word: String = lower.chars().filter(char::is_ascii_alphabetic).collect();
    let plain = lower.trim_matches(|c: char| !c.is_ascii_alphabetic());
    let is_word = |text: &str| NO_PASSWORDS.contains(&text) || text == user;
    let is_known =
        |text: &str| is_word(text) || WHOSE.iter().any(|whose| text.strip_prefix(whose).is_some_and(is_word));
    let has = |is: fn(char) -> bool| password.chars().any(is);
    let is_strong = has(|c| c.is_ascii_alphabetic()) && has(|c| c.is_ascii_digit());
    let count = password.chars().filter(char::is_ascii_alphanumeric).count();
    written.len() >= SHORTEST_PASSWORD
        && count >= FEWEST_SIGNS
        && !is_filled_in_later(written)
        && !is_known(plain)
        && !is_known(&word)
        && !lower.contains(&format!("{user}pass"))
        && is_plausible(password.as_bytes())
        && (is_strong || !is_nobodys(host))
        && has(|c| !c.is_ascii_digit())
}

/// Leaves out the codes of characters that an address writes in a password, such as `%40`.
fn without_codes(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.get(2..).unwrap_or(""))
}

/// Tells whether something is to be put in the place of this text: a variable, a template, a format, or stars.
fn is_filled_in_later(text: &str) -> bool {
    let marks = ['{', '}', '<', '>', '[', ']', '(', ')', '…'];
    let is_format = |at: usize| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_variable = |at: usize| text[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    text.contains(marks)
        || text.contains("***")
        || text.contains("...")
        || text.match_indices('%').any(|(at, _)| is_format(at))
        || text.match_indices('$').any(|(at, _)| is_variable(at) && (at == 0 || text[at + 1..].len() > 2))
}

/// Tells whether an address is that of an example (RFC 2606, RFC 6761), of this machine, or a single word.
fn is_nobodys(host: &[u8]) -> bool {
    let host = String::from_utf8_lossy(host).to_ascii_lowercase();
    let name = if host.starts_with('[') { "localhost" } else { up_to(&host, &[':']) };
    let ends =
        ["example", "example.com", "example.net", "example.org", "test", "invalid", "localhost", "local"];
    let is_below =
        |end: &&str| name == *end || name.strip_suffix(*end).is_some_and(|rest| rest.ends_with('.'));
    !name.contains('.') || name.starts_with("127.") || name == "0.0.0.0" || ends.iter().any(is_below)
}
