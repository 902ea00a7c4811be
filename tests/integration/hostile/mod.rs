//! What somebody means harm with: the tree, its files, the configuration of git, and output that has secrets.

mod hostile_files;
mod odd_places;
mod our_git;
mod redaction;
mod secrets;
mod shown;
