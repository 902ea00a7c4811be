//! Git, called in one way: which words a call has, how it is made and how it fails, what differs between two trees, what
//! the working tree says.

pub(crate) mod blobs;
pub mod call;
pub mod error;
pub mod filters;
pub(crate) mod in_run;
pub(crate) mod object_names;
pub(crate) mod own_index;
pub(crate) mod raw_diff;
pub(crate) mod ref_calls;
pub mod repository_paths;
pub mod runner;
pub(crate) mod status;
pub(crate) mod tracked_files;
pub(crate) mod tree_list;
pub(crate) mod unwatched;
