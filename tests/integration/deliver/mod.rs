//! `ll-loop deliver`: the real program, a real git server, and a model of GitHub that enforces its rules.
#![expect(
    clippy::similar_names,
    clippy::format_push_string,
    clippy::format_collect,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "a model is read beside the documents of the server, and its handlers look alike"
)]

mod chain;
mod faults;
mod gitlab;
mod graphql;
mod hostile;
mod judges;
mod leaks;
mod model;
mod remote;
mod rest;
mod rules;
mod scene;
mod source;
mod suggest;
mod waiting;
