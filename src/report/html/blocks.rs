//! What steps printed, as blocks of a page that nothing reads but its script, on demand: packed, and inert.

use std::io::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::colours::classed;
use crate::report::detail::{Detail, DetailedStep};
use crate::report::markup::Markup;
use crate::report::step::Tail;

/// A block.
struct Block {
    /// The name of its element.
    id: String,
    /// Its content: letters, digits, `+`, `/` and `=`.
    packed: String,
}

/// The blocks for which there is room, in the order of their steps.
pub(super) struct Blocks {
    all: Vec<Block>,
}

/// The two streams of a step.
const STREAMS: [(&str, &str); 2] = [("out", "standard output"), ("err", "standard error")];

/// Returns what a step printed, stream by stream, with the name of the block.
pub(super) fn streams(entry: &DetailedStep) -> impl Iterator<Item = (&'static str, String, &Tail)> {
    let tails = entry.printed.iter().flat_map(|printed| [&printed.stdout, &printed.stderr]);
    let named = STREAMS.into_iter().zip(tails).filter(|(_, tail)| tail.bytes > 0);
    named.map(|((short, long), tail)| (long, format!("{short}-{}", entry.number), tail))
}

impl Blocks {
    /// Packs what steps printed, as far as there is room: first the step that decided and what failed, the last of
    /// them before all others.
    pub(super) fn of(detail: &Detail, decided: Option<&str>, room: usize) -> Self {
        let mut order: Vec<(usize, &DetailedStep)> = detail.entries().iter().enumerate().collect();
        order.sort_by_key(|(index, entry)| {
            let is_decided = decided == Some(entry.number.to_string().as_str());
            (!is_decided, !entry.failed(), std::cmp::Reverse(*index))
        });
        let (mut found, mut left) = (Vec::new(), room);
        for (index, entry) in order {
            for (_, id, tail) in streams(entry).filter(|(.., tail)| !tail.text.is_empty()) {
                let packed = packed(&classed(&tail.text));
                // 100 bytes are for the element around it.
                if packed.len() + 100 <= left {
                    left -= packed.len() + 100;
                    found.push((index, Block { id, packed }));
                }
            }
        }
        found.sort_by_key(|(index, _)| *index);
        Self { all: found.into_iter().map(|(_, block)| block).collect() }
    }

    /// Writes them.
    pub(super) fn write(&self, out: &mut Markup) {
        for Block { id, packed } in &self.all {
            out.leaf("script", &[("type", "application/octet-stream"), ("id", id)], packed).ours("\n");
        }
    }
}

fn packed(text: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Nothing fails in memory.
    let bytes = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default();
    BASE64_STANDARD.encode(bytes)
}
