//! Children and signals: how an action is started, read, and ended for good.

pub mod address;
pub mod bounds;
pub mod capture;
pub mod clock;
pub(crate) mod filesystem;
pub mod groups;
pub mod guard;
pub mod init;
pub mod life;
pub mod owner;
pub mod patience;
pub mod private;
pub mod relayed;
pub mod service;
pub mod signal;
pub mod spawn;
mod table;
pub mod terminal;
