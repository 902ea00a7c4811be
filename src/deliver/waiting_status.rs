//! The status of a run that waits for its delivery, and how the delivery ends it.

use super::delivered::{Delivery, Done};
use crate::ci::Provider;
use crate::ci::reported::{ReportOptions, ReportRequest, ReportedRun};
use crate::context::Session;
use crate::context::error::Error;

/// Returns what the status says after a delivery. None of it is a success: the commit of the run is not what was verified.
pub(super) fn text(delivered: &Result<Delivery, Error>) -> String {
    let (done, delivery) = match delivered {
        Ok(delivery) => (&delivery.done, delivery),
        Err(error) => return format!("not delivered: {}", error.message()),
    };
    match (done, &delivery.url, &delivery.commit) {
        (Done::Created | Done::Updated, Some(url), _) => {
            format!("delivered in {url}, not part of this commit")
        }
        (Done::Created | Done::Updated, None, Some(commit)) => {
            format!("delivered in commit {commit}, not part of this commit")
        }
        (Done::Created | Done::Updated, None, None) => "not delivered: kept as a patch".to_owned(),
        (Done::Unchanged { why }, Some(url), _) => format!("not delivered again: {why}: {url}"),
        (Done::Unchanged { why }, None, _) => format!("not delivered again: {why}"),
        (Done::Refused { why }, ..) => match why.first() {
            Some(refusal) => format!("not delivered: {}", refusal.why),
            None => "not delivered".to_owned(),
        },
    }
}

impl Session<'_> {
    /// Ends the status of a run that waits for its delivery, if there is one, as a failure in a few words. `instance` is the
    /// id of the run, as a bundle or a job claims it: no status of another run of the workflow is touched.
    pub fn end_waiting(&self, instance: &str, text: &str) {
        let env = self.env.with_token_of_job();
        let lookup = &env.lookup();
        let subject = ReportedRun { instance: instance.to_owned(), ..ReportedRun::default() };
        let request = ReportRequest {
            env: lookup,
            token: env.token(),
            options: &ReportOptions::default(),
            subject: &subject,
            is_over: true,
        };
        // No more than a note: the delivery is over, whatever its status says.
        if let Err(why) = Provider::detect(lookup).end_waiting(request, text) {
            self.talk.note(&format!("whether a commit status waits for this delivery is not known: {why}"));
        }
    }
}
