//! The rules for people who answer a run on a server: what a comment says, who wrote it, and whether that counts. Pure: what
//! the server knows comes in, an answer or the reason against it comes out.

pub mod command;
pub mod ruling;
