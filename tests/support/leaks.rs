//! Writes secrets in the ways in which programs write them, and finds them again. It knows nothing of the code that hides
//! them: it decodes whatever may be meant, and looks for the secret in that.

use std::fmt::Write as _;

/// Returns the ways to write a text, each by its name; those of several lines have their line ends.
pub(crate) fn written(text: &str) -> Vec<(String, String)> {
    let bytes = text.as_bytes();
    let each = |write: &dyn Fn(char) -> String| text.chars().map(write).collect::<String>();
    let every = |write: &dyn Fn(u8) -> String| bytes.iter().map(|byte| write(*byte)).collect::<String>();
    let joined = |between: &str, write: &dyn Fn(u8) -> String| {
        bytes.iter().map(|byte| write(*byte)).collect::<Vec<_>>().join(between)
    };
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let json = serde_json::to_string(text).unwrap();
    let json = json[1..json.len() - 1].to_owned();
    let ascii_json = json.chars().fold(String::new(), |mut all, c| {
        if c.is_ascii() {
            all.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write!(all, "\\u{unit:04x}").unwrap());
        }
        all
    });
    let hex = |byte: u8| format!("{byte:02x}");
    let entity = |c: char| if is_word(c) { c.to_string() } else { format!("&#{};", u32::from(c)) };
    let mut all: Vec<(String, String)> = [
        ("raw", text.to_owned()),
        ("JSON", json.clone()),
        ("JSON in JSON", serde_json::to_string(&json).unwrap().trim_matches('"').to_owned()),
        ("PHP's JSON", json.replace('/', "\\/")),
        ("Python's JSON", ascii_json.clone()),
        ("Go's JSON", json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")),
        (
            "percent",
            every(&|b| if is_word(char::from(b)) { char::from(b).into() } else { format!("%{b:02X}") }),
        ),
        ("percent throughout", every(&|b| format!("%{b:02x}"))),
        ("HTML", each(&entity)),
        ("HTML throughout", each(&|c| format!("&#x{:X};", u32::from(c)))),
        ("shell", format!("'{}'", text.replace('\'', "'\\''"))),
        ("hex", every(&hex)),
        ("great hex", every(&|b| format!("{b:02X}"))),
        ("hex with blanks", joined(" ", &hex)),
        ("hex with colons", joined(":", &hex)),
        ("hex with hyphens", joined("-", &|b| format!("{b:02X}"))),
        ("hex of C", joined(", ", &|b| format!("0x{b:02x}"))),
        ("great hex of C", joined(",", &|b| format!("0x{b:02X}"))),
        ("hex of C on lines", joined(",\n    ", &|b| format!("0x{b:02x}"))),
        ("escapes of C", every(&|b| format!("\\x{b:02x}"))),
        ("octal escapes", every(&|b| format!("\\{b:03o}"))),
        ("decimals", joined(", ", &|b| b.to_string())),
        ("decimals close", format!("[{}]", joined(",", &|b| b.to_string()))),
        ("decimals with blanks", joined(" ", &|b| b.to_string())),
        ("decimals on lines", joined(",\n  ", &|b| b.to_string())),
        ("quoted-printable", quoted_printable(bytes, &|b| matches!(b, b' '..=b'~') && b != b'=')),
        ("quoted-printable throughout", quoted_printable(bytes, &|_| false)),
        ("characters", each(&|c| format!("{c} ")).trim_end().to_owned()),
        (
            "characters of a list",
            text.chars().map(|c| serde_json::to_string(&c).unwrap()).collect::<Vec<_>>().join(", "),
        ),
        ("characters on lines", each(&|c| format!("{c}\n"))),
        ("small", text.to_lowercase()),
        ("great", text.to_uppercase()),
        ("small ASCII", text.to_ascii_lowercase()),
        ("title", title(text)),
        ("xxd", xxd(bytes, 2)),
        ("xxd -g1", xxd(bytes, 1)),
        ("xxd -g4", xxd(bytes, 4)),
        ("xxd -p", folded(&every(&hex), 60)),
        ("hexdump -C", hexdump(bytes)),
        (
            "od -c",
            od(bytes, 1, &|word| match word[0] {
                b'\\' => "   \\".to_owned(),
                byte @ b' '..=b'~' => format!("   {}", char::from(byte)),
                byte => format!(" {byte:03o}"),
            }),
        ),
        ("od -b", od(bytes, 1, &|word| format!(" {:03o}", word[0]))),
        ("od -tx1", od(bytes, 1, &|word| format!(" {:02x}", word[0]))),
        ("od -tu1", od(bytes, 1, &|word| format!(" {:3}", word[0]))),
        ("od -x", od(bytes, 2, &|word| format!(" {:04x}", number(word)))),
        ("od -tx4", od(bytes, 4, &|word| format!(" {:08x}", number(word)))),
        ("od", od(bytes, 2, &|word| format!(" {:06o}", number(word)))),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    for skip in [3, 13, 14] {
        let padded = [&b"0123456789abcdef"[..skip], bytes].concat();
        let of_words = |word: &[u8]| format!(" {:04x}", number(word));
        all.push((format!("xxd at {skip}"), xxd(&padded, 2)));
        all.push((format!("hexdump -C at {skip}"), hexdump(&padded)));
        all.push((format!("od -x at {skip}"), od(&padded, 2, &of_words)));
    }
    for (what, inner) in [("", text), (" of JSON", &json), (" of Python's JSON", &ascii_json)] {
        for skip in 0..3 {
            let padded = [&b"xyz"[..skip], inner.as_bytes()].concat();
            let plain = base64(&padded);
            all.push((format!("base64{what} at {skip}"), plain.clone()));
            all.push((format!("base64url{what} at {skip}"), plain.replace('+', "-").replace('/', "_")));
            all.push((format!("base64{what} at {skip} on lines"), folded(&plain, 19)));
        }
    }
    all
}

/// Breaks a text into lines of so many characters.
pub(crate) fn folded(text: &str, width: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(width.max(1)).map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
}

fn title(text: &str) -> String {
    let mut is_first = true;
    let turned = text.chars().map(|c| {
        let first = std::mem::replace(&mut is_first, !c.is_alphanumeric());
        if first { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
    });
    turned.collect()
}

fn quoted_printable(bytes: &[u8], is_plain: &dyn Fn(u8) -> bool) -> String {
    let mut all = String::new();
    let mut length = 0;
    for byte in bytes {
        let code = if is_plain(*byte) { char::from(*byte).to_string() } else { format!("={byte:02X}") };
        if length + code.len() > 75 {
            all.push_str("=\r\n");
            length = 0;
        }
        length += code.len();
        all.push_str(&code);
    }
    all
}

/// The number of a word as most machines have it: the last byte first.
fn number(word: &[u8]) -> u64 {
    word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' }).collect()
}

fn xxd(bytes: &[u8], group: usize) -> String {
    bytes.chunks(16).enumerate().fold(String::new(), |mut all, (index, line)| {
        let columns: String = line
            .chunks(group)
            .map(|group| group.iter().fold(String::new(), |all, byte| all + &format!("{byte:02x}")) + " ")
            .collect();
        let width = 16 / group * (2 * group + 1);
        writeln!(all, "{:08x}: {columns:width$} {}", index * 16, shown(line)).unwrap();
        all
    })
}

fn hexdump(bytes: &[u8]) -> String {
    bytes.chunks(16).enumerate().fold(String::new(), |mut all, (index, line)| {
        let columns = line.iter().enumerate().fold(String::new(), |all, (index, byte)| {
            all + &format!("{byte:02x} ") + if index == 7 { " " } else { "" }
        });
        writeln!(all, "{:08x}  {columns:50}|{}|", index * 16, shown(line)).unwrap();
        all
    })
}

fn od(bytes: &[u8], size: usize, column: &dyn Fn(&[u8]) -> String) -> String {
    let mut all = bytes.chunks(16).enumerate().fold(String::new(), |mut all, (index, line)| {
        let columns: String =
            line.chunks(size).map(|word| column(&[word, &vec![0; size - word.len()]].concat())).collect();
        writeln!(all, "{:07o}{columns}", index * 16).unwrap();
        all
    });
    writeln!(all, "{:07o}", bytes.len()).unwrap();
    all
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0, |word, at| word << 8 | usize::from(chunk.get(at).copied().unwrap_or(0)));
        text.extend((0..=chunk.len()).map(|at| char::from(DIGITS[word >> (18 - 6 * at) & 63])));
        text.extend(std::iter::repeat_n('=', 3 - chunk.len()));
    }
    text
}

/// Returns how a text shows a secret, if it does: whole, in any way that is known here.
pub(crate) fn leak(text: &str, secret: &str) -> Option<String> {
    let wanted = signs(secret.as_bytes());
    let has = |bytes: &[u8]| contains(&signs(bytes), &wanted);
    let mut readings: Vec<(&str, Vec<u8>)> = vec![("text", text.as_bytes().to_vec())];
    for (name, reading) in
        [("percent", percent(text)), ("backslashes", backslashes(text)), ("entities", entities(text))]
    {
        readings.push((name, reading));
    }
    readings.push(("quoted-printable", codes(&text.replace("=\r\n", "").replace("=\n", ""), b'=', 2, 16)));
    for octets in [dump(text, true), dump(text, false)] {
        readings.extend(octets.into_iter().map(|octets| ("dump", octets)));
    }
    for radix in [8, 10, 16] {
        readings.push(("numbers", numbers(text, radix)));
    }
    let digits: Vec<u8> = text.replace("0x", " ").bytes().filter(u8::is_ascii_hexdigit).collect();
    readings.extend([0, 1].map(|skip| ("hex", pairs(digits.get(skip..).unwrap_or_default()))));
    let digits: Vec<u8> = text
        .bytes()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        })
        .filter(|byte| DIGITS.contains(byte))
        .collect();
    readings.extend((0..4).map(|skip| ("base64", from_base64(digits.get(skip..).unwrap_or_default()))));
    let found = readings
        .iter()
        .find(|(_, reading)| has(reading) || has(&backslashes(&String::from_utf8_lossy(reading))));
    found.map(|(name, _)| (*name).to_owned())
}

/// Letters and digits, in small letters; and what is none of ASCII.
fn signs(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    text.bytes().filter(|byte| byte.is_ascii_alphanumeric() || *byte > 127).collect()
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && all.windows(part.len()).any(|window| window == part)
}

/// Reads codes of so many digits behind a sign.
fn codes(text: &str, sign: u8, count: usize, radix: u32) -> Vec<u8> {
    let (bytes, mut at, mut out) = (text.as_bytes(), 0, Vec::new());
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 1 + count).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, radix).ok());
        let code = code.filter(|_| bytes[at] == sign);
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 1 + count } else { 1 };
    }
    out
}

fn percent(text: &str) -> Vec<u8> {
    codes(text, b'%', 2, 16)
}

fn backslashes(text: &str) -> Vec<u8> {
    let mut text = text.to_owned();
    while text.contains("\\\\") {
        text = text.replace("\\\\", "\\");
    }
    let mut units: Vec<u16> = Vec::new();
    let mut out = String::new();
    let mut rest = text.as_str();
    let end = |units: &mut Vec<u16>, out: &mut String| {
        out.push_str(&String::from_utf16_lossy(&std::mem::take(units)));
    };
    while let Some(c) = rest.chars().next() {
        let unit = rest.strip_prefix("\\u").and_then(|rest| u16::from_str_radix(rest.get(..4)?, 16).ok());
        if let Some(unit) = unit {
            units.push(unit);
            rest = &rest[6..];
        } else {
            end(&mut units, &mut out);
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    end(&mut units, &mut out);
    let out = codes(&out.replace("\\x", "\u{1}"), 1, 2, 16);
    codes(&String::from_utf8_lossy(&out), b'\\', 3, 8)
}

fn entities(text: &str) -> Vec<u8> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("&#") {
        out.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        let Some((code, behind)) = rest.split_once(';') else { continue };
        let number = match code.strip_prefix('x') {
            Some(code) => u32::from_str_radix(code, 16),
            None => code.parse(),
        };
        if let Some(c) = number.ok().and_then(char::from_u32) {
            out.push(c);
            rest = behind;
        }
    }
    out.push_str(rest);
    out.into_bytes()
}

/// Reads all numbers that are bytes.
fn numbers(text: &str, radix: u32) -> Vec<u8> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.map(|word| word.strip_prefix("0x").unwrap_or(word));
    words.filter_map(|word| u8::from_str_radix(word, radix).ok()).collect()
}

/// Reads the lines that begin with an address, in each way, as they stand or with the last byte of a word first.
fn dump(text: &str, is_turned: bool) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); 4];
    for line in text.lines() {
        let Some((_, columns)) = line.split_once([' ', ':']) else { continue };
        let columns = columns.trim_start();
        let columns = columns.find(" |").or(columns.rfind("  ")).map_or(columns, |end| &columns[..end]);
        for word in columns.split_whitespace() {
            let mut bytes = pairs(word.as_bytes());
            if is_turned {
                bytes.reverse();
            }
            all[0].extend(bytes);
            all[1].extend(u16::from_str_radix(word, 8).ok().into_iter().flat_map(u16::to_le_bytes));
        }
        for word in line.split_whitespace().skip(1) {
            match word.as_bytes() {
                [byte] => all[2].push(*byte),
                word => all[2]
                    .extend(std::str::from_utf8(word).ok().and_then(|word| u8::from_str_radix(word, 8).ok())),
            }
            all[3].extend(word.parse::<u8>());
        }
    }
    all
}

fn pairs(digits: &[u8]) -> Vec<u8> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks_exact(2).filter_map(pair).collect()
}

fn from_base64(digits: &[u8]) -> Vec<u8> {
    let value = |digit: &u8| DIGITS.iter().position(|known| known == digit).unwrap_or(0);
    let groups = digits.chunks(4).flat_map(|group| {
        let word = (0..4).fold(0, |word, at| word << 6 | group.get(at).map_or(0, value));
        [word >> 16, word >> 8, word].map(|byte| u8::try_from(byte & 255).unwrap())
    });
    groups.collect()
}
