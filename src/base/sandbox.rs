//! The word by which a loop says what an agent may change.

use super::decode::choice;

choice! {
    /// What an agent may change, as far as its host can confine it.
    pub enum Sandbox {
        /// Whatever the user may.
        Off = "off",
        /// Files of the working tree.
        Workspace = "workspace",
        /// Nothing.
        ReadOnly = "read-only",
    }
}
