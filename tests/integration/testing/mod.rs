//! Tests of loops: what they say, what they end with, and that nothing is run.

mod cases;
mod changed_loops;
mod shipped;
