//! The `ll-loop` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    end_where_it_panics();
    ll_loop::run_command_line(std::env::args_os().skip(1))
}

/// What ships is compiled to end where it panics. What tests try cannot be, as tests themselves go on after a panic, so it
/// ends in the same way here: a program that went on without one of its threads would be another one.
fn end_where_it_panics() {
    if cfg!(panic = "unwind") {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            tell(panic);
            std::process::abort();
        }));
    }
}
