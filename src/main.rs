//! The `ll-loop` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ll_loop::run_command_line(std::env::args_os().skip(1))
}
