//! The driver: performs what the engine asks for, and makes every event durable before anybody sees it.

mod acp;
mod action;
mod agent;
mod approval;
pub mod area;
mod artifact;
mod assembly;
pub mod checkpoint;
pub mod clock;
mod complaints;
mod continuation;
pub(crate) mod diff;
mod drive;
mod filtered;
mod git;
mod helper;
mod installed;
mod kept;
mod learning;
mod lines;
#[cfg(feature = "mcp")]
mod mcp;
pub mod measure;
mod moments;
mod normal;
pub mod otherwise;
pub mod patience;
pub mod projection;
mod query;
mod recorded;
pub mod recording;
pub mod replay;
mod rules;
#[cfg(feature = "mcp")]
mod servers;
pub mod shared_file;
pub mod snapshots;
mod status;
pub mod stops;
pub mod sub_loop;
mod survey;
mod ticking;
mod tool;
mod tree;
pub mod work_file;
mod world;

pub use agent::access;
pub use drive::{Ended, Lost, conduct, named};
pub use helper::{Helper, serve};
pub use rules::Rules;
pub use world::{Agents, SubLoop, Workplace, World, directory_of_actions};
