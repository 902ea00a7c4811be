//! Files that anybody may have put in their places: read up to a limit, and replaced whole.

pub mod place;
pub mod read;
pub mod replace;
