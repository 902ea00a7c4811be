//! Files that anybody may have put in their places: read up to a limit, replaced whole, and unpacked
//! with suspicion.

pub mod aside;
pub mod file_name;
pub mod file_time;
mod git_includes;
pub mod gitdir;
pub mod links;
pub mod own_directory;
pub mod place;
pub mod read;
pub mod replace;
pub mod secret;
pub mod transient;
pub mod unsaved;
pub mod unzip;
