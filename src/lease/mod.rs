//! Who may work on a scope where several machines could: the rules of a lease that is kept as a ref of a git repository,
//! as pure functions and two small machines. [`Race`](race::Race) gets a lease, [`LeaseFence`](fence::LeaseFence) says how long
//! it can be relied on. Nothing here knows git or a clock: what was seen and when comes in, what to do comes out.
//!
//! Times are spans since any fixed moment of one machine's steady clock. No time of one machine is ever compared with a
//! time of another.

pub mod fence;
pub mod lease_record;
pub mod lease_scope;
pub mod race;
