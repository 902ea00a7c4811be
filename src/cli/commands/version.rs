//! `ll-loop version`.

use crate::cli::output::Output;

pub(in crate::cli) fn version(output: &Output) -> u8 {
    output.data(&format!("ll-loop {}\n", env!("CARGO_PKG_VERSION")));
    0
}
