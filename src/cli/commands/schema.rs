//! `ll-loop schema`: the JSON Schema of loop files and of test files, for editors.

use clap::Args;

use crate::cli::output::Output;
use crate::definition::json_schema;
use crate::testing;

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub(in crate::cli) struct SchemaArgs {
    /// Print that of the test files of loops
    #[arg(long)]
    tests: bool,
}

pub(in crate::cli) fn schema(args: &SchemaArgs, output: &Output) -> u8 {
    let schema = if args.tests { testing::json_schema() } else { json_schema::json_schema() };
    output.data(&format!("{schema:#}\n"));
    0
}
