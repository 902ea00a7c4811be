//! `ll-loop schema`: the JSON Schema of loop files, of test files and of policies, for editors.

use clap::Args;

use crate::cli::output::Output;
use crate::definition::json_schema;
use crate::{policy, testing};

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub(in crate::cli) struct SchemaArgs {
    /// Print that of the test files of loops
    #[arg(long, conflicts_with = "policy")]
    tests: bool,
    /// Print that of policies from above
    #[arg(long)]
    policy: bool,
}

pub(in crate::cli) fn schema(args: &SchemaArgs, output: &Output) -> u8 {
    let schema = match args {
        SchemaArgs { tests: true, .. } => testing::json_schema(),
        SchemaArgs { policy: true, .. } => policy::json_schema(),
        SchemaArgs { .. } => json_schema::json_schema(),
    };
    output.data(&format!("{schema:#}\n"));
    0
}
