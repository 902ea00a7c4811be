//! The `ll-loop` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ll_loop::cli::main(std::env::args_os().skip(1))
}
