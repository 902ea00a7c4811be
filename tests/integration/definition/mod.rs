//! Loop files: what can be written in them, what is found in them, and what they are made of.

mod bad_input;
mod bounds;
mod catalogue_shapes;
mod compile;
mod composition;
mod early_values;
mod fragments;
mod judges_key;
mod libraries;
mod mutations;
mod names;
mod predecessor_keys;
mod promises;
mod provided;
mod seeds;
mod show_and_schema;
mod validate;
mod worst_files;
