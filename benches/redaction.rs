//! What it costs to hide secrets: megabytes a second for ordinary logs, dumps and texts of one sign. `cargo bench --profile dist --bench
//! redaction`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints figures, and fails when it cannot"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use ll_loop::internals::base::redact::{Flow, Redactor};

const SIZE: usize = 50 << 20;

fn main() {
    let token = "pL4nt+3d/t0=k&\"n\\<q'Zr9$~é%7Bw2Xv".to_owned();
    let many: Vec<String> =
        (0..20_u64).map(|number| format!("ghp_{:032x}", odd(number + 1))).chain([token]).collect();
    for secrets in [&many[20..], &many[..]] {
        let began = Instant::now();
        let redactor = Redactor::new(secrets);
        println!("{} secrets: made in {:.1} ms", secrets.len(), began.elapsed().as_secs_f64() * 1e3);
        for (name, text) in texts() {
            let whole = speed(&text, || drop(black_box(redactor.text(&text))));
            let in_chunks = speed(&text, || {
                let (mut flow, mut shown) = (Flow::default(), 0);
                for chunk in text.as_bytes().chunks(64 << 10) {
                    flow.push(std::str::from_utf8(chunk).unwrap(), &redactor, &mut |text| {
                        shown += text.len();
                    });
                }
                flow.finish(&redactor, &mut |text| shown += text.len());
                black_box(shown);
            });
            println!("  {name:14} {whole:6.0} MB/s, in chunks {in_chunks:6.0} MB/s");
        }
    }
}

fn speed(text: &str, mut work: impl FnMut()) -> f64 {
    let mut speeds: Vec<f64> = (0..3)
        .map(|_| {
            let began = Instant::now();
            work();
            f64::from(u32::try_from(text.len()).unwrap()) / 1e6 / began.elapsed().as_secs_f64()
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    speeds[1]
}

/// A number that looks like chance.
fn odd(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

fn texts() -> Vec<(&'static str, String)> {
    let (mut log, mut dump) = (String::new(), String::new());
    let mut number = 0_u64;
    while log.len() < SIZE {
        number += 1;
        let odd = odd(number);
        match odd % 4 {
            0 => writeln!(
                log,
                "2026-11-22T05:15:07.{:03}Z INFO request id={odd:016x} path=/api/v1/{} status=200",
                odd % 1000,
                odd % 99
            ),
            1 => writeln!(
                log,
                "   Compiling serde_json v1.0.{} (/home/runner/work/project/crates/part-{})",
                odd % 200,
                odd % 40
            ),
            2 => writeln!(
                log,
                "src/app.py:{}:{}: error: Name \"foo\" is not defined  [name-defined]",
                odd % 999,
                odd % 80
            ),
            _ => {
                writeln!(log, "{{\"level\":\"info\",\"msg\":\"user logged in\",\"user\":\"u{}\"}}", odd % 999)
            }
        }
        .unwrap();
    }
    while dump.len() < SIZE {
        number += 1;
        let bytes = [odd(number), odd(!number)].map(u64::to_be_bytes).concat();
        let shown: String =
            bytes.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect();
        let columns: Vec<String> =
            bytes.chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect();
        writeln!(dump, "{:08x}: {}  {shown}", (number * 16) & 0xFFFF_FFFF, columns.join(" ")).unwrap();
    }
    let mut all = vec![("log", log), ("xxd", dump)];
    let units = ["6", "=", "67 68 ", "103, ", "\\", "%41", "&", " ", "\\u0041", "a\n"];
    all.extend(units.map(|unit| (unit.trim_end(), unit.repeat((8 << 20) / unit.len()))));
    all
}
