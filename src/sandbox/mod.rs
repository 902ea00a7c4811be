//! Keeps actions in: what a mode means is a [`plan`], and an engine carries it out.
//!
//! Beside a confined action, ll-loop runs twice more. The [`gate`] stays outside, starts the engine, and is the other end
//! of what leads out; the [`warden`] is inside, starts the action when the gate says so, and has no more rights than it.

mod bounded_answer;
pub mod capability;
pub mod confine;
pub mod container;
pub mod container_flags;
pub mod engines;
#[cfg(target_os = "linux")]
mod filter;
mod forward;
#[cfg(target_os = "linux")]
pub mod gate;
pub mod household;
pub mod landlock_rules;
#[cfg(not(target_os = "linux"))]
mod no_gate;
#[cfg(not(target_os = "linux"))]
mod no_limits;
pub mod order;
#[cfg(target_os = "linux")]
mod own_limits;
pub mod plan;
pub mod protected;
mod proxy;
pub mod reached;
pub mod warden;

#[cfg(not(target_os = "linux"))]
pub use no_gate as gate;
#[cfg(not(target_os = "linux"))]
use no_limits as own_limits;
