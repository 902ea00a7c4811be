//! `ll-loop schema`: the JSON Schema of loop files, of test files, of verdicts and of policies, for editors and readers.

use clap::Args;

use crate::cli::output::Output;
use crate::definition::json_schema;
use crate::evidence::verdict_policy;
use crate::{policy, testing};

/// The arguments of `schema`.
#[derive(Debug, Args)]
#[group(multiple = false)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub(in crate::cli) struct SchemaArgs {
    /// Print that of the test files of loops
    #[arg(long)]
    tests: bool,
    /// Print that of policies from above
    #[arg(long)]
    policy: bool,
    /// Print that of the predicate of `verdict-details.intoto.json`
    #[arg(long)]
    verdict: bool,
    /// Print that of the policies of `verify`
    #[arg(long)]
    verdict_policy: bool,
}

/// The published form of what is claimed of a run.
const VERDICT: &str = include_str!("../../../schema/verdict.schema.json");

pub(in crate::cli) fn schema(args: &SchemaArgs, output: &Output) -> u8 {
    let schema = match args {
        SchemaArgs { verdict: true, .. } => {
            output.data(VERDICT);
            return 0;
        }
        SchemaArgs { tests: true, .. } => testing::json_schema(),
        SchemaArgs { policy: true, .. } => policy::json_schema(),
        SchemaArgs { verdict_policy: true, .. } => verdict_policy::json_schema(),
        SchemaArgs { .. } => json_schema::json_schema(),
    };
    output.data(&format!("{schema:#}\n"));
    0
}
