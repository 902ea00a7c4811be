//! `ll-loop command`: follows the command that somebody wrote in a comment on a pull request.

use clap::Args;

use crate::ci::Provider;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::steering::{DeliveryOrder, SteerOptions, Steered};

/// The arguments of `command`.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct SteerArgs {
    /// The id of the comment. The default is the one that set off this job (`on: issue_comment`)
    #[arg(long, value_name = "ID")]
    pub(super) comment: Option<u64>,
    /// The workflow that `/ll-loop fix` starts
    #[arg(long, value_name = "FILE", default_value = "fix.yml")]
    pub(super) fix_workflow: String,
    /// How many runs of workflows may be started by a dispatch in a day, whoever starts them
    #[arg(long, value_name = "N")]
    pub(super) max_day: Option<u64>,
}

pub(in crate::cli) fn steer(args: &SteerArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let SteerArgs { comment, fix_workflow, max_day } = args.clone();
    let options = SteerOptions { comment, fix_workflow, max_day };
    let steered = session.steer(&options)?;
    let (word, said, delivery) = match steered {
        Steered::Nothing(why) => ("nothing", why, None),
        Steered::Refused(why) => ("refused", why, None),
        Steered::Done { result, delivery } => ("done", result, delivery),
    };
    output.data(&format!("{word}: {said}\n"));
    let mut outputs = vec![("command", word.to_owned())];
    if let Some(DeliveryOrder { run, instance, base }) = delivery {
        outputs.extend([
            ("deliver-from", run.to_string()),
            ("deliver-run", instance),
            ("deliver-base", base),
        ]);
    }
    let provider = Provider::detect(&session.env.lookup());
    // The command was followed already, so this must not look as if it had failed.
    if let Err(error) = provider.announce(&outputs) {
        output.warning(&format!("cannot give {} all results: {error}", provider.name()));
    }
    Ok(0)
}
