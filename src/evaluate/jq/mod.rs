//! jq expressions, where this program was built with them.

#[cfg(not(feature = "jq"))]
mod absent;
#[cfg(feature = "jq")]
mod interpreter;

#[cfg(not(feature = "jq"))]
pub use absent::{check, run};
#[cfg(feature = "jq")]
pub use interpreter::{check, run};
