//! Children and signals: how an action is started, read, and ended for good.

pub mod address;
pub mod asking_terminal;
pub mod capture;
pub mod clock;
pub mod container_init;
pub(crate) mod filesystem;
pub mod groups;
pub mod guard_pipe;
pub mod life;
pub mod memory_bounds;
pub mod orphans;
pub mod owner;
pub mod patience;
pub mod private;
mod proc_table;
pub mod relayed;
pub mod running_child;
pub mod signal;
pub mod spawn;
