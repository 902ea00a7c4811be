//! The rules for people who answer and steer runs on a server: what a comment says, who wrote it, what it is about, and whether
//! that counts. Pure: what the server knows comes in, a command or the reason against it comes out.

pub mod asked;
pub mod command;
pub mod command_log;
pub mod command_starts;
pub mod next_step;
pub mod notice;
pub mod reply;
pub mod ruling;
pub mod run_names;
pub mod run_wait;
