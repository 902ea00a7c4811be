//! How code that knows no process asks for the value of a variable of the environment.

/// The environment: looks up a variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;
