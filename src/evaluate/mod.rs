//! What a verdict is, and how an observation becomes one.

pub mod field;
pub mod observation;
pub mod verdict;

use field::Field;

use crate::base::decode::{record, tagged};
use crate::base::template::Template;

// A stand-in until the evaluators are there.
tagged! {
    /// How a result becomes a verdict.
    pub enum Evaluate {
        /// By the exit code.
        ExitCode(ExitCode) = "exit_code",
        /// By a number.
        OutputNumeric(OutputNumeric) = "output_numeric",
    }
}

record! {
    /// By the exit code.
    pub struct ExitCode {
        /// The code that means yes.
        target: Option<Field<i32>>,
        /// What is judged instead of the output.
        source: Option<Template>,
    }
}

record! {
    /// By a number.
    pub struct OutputNumeric {
        /// What it is compared with.
        target: Field<f64>,
        /// What is judged instead of the output.
        source: Option<Template>,
    }
}
