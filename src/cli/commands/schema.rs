//! `ll-loop schema`: the JSON Schema of loop files, for editors.

use crate::cli::output::Output;
use crate::definition::publish;

pub(in crate::cli) fn schema(output: &Output) -> u8 {
    output.data(&format!("{:#}\n", publish::json_schema()));
    0
}
