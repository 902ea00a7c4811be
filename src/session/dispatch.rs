//! Starts another run of the workflow after a hand-off, which resumes the run.

use crate::ci::Provider;
use crate::ci::github::dispatch::{ChainLink, NextRun};
use crate::ci::key::RunKey;
use crate::ci::reported::{ReportOptions, ReportRequest, ReportedRun};
use crate::report::annotations::{Annotation, Level};

use super::context::Session;

/// Names a run for reports.
pub(crate) fn subject(loop_name: &str, instance: &str, key: Option<&RunKey>) -> ReportedRun {
    ReportedRun {
        loop_name: loop_name.to_owned(),
        instance: instance.to_owned(),
        key: key.and_then(RunKey::shown),
    }
}

/// Starts the next run of the workflow, and says whether that worked. Without a link, it cannot: no other job could
/// fetch the files.
pub(crate) fn dispatch(
    provider: &Provider,
    options: &ReportOptions,
    subject: &ReportedRun,
    link: Option<ChainLink>,
    session: &Session<'_>,
) -> NextRun {
    let request = ReportRequest {
        env: &session.env.lookup(),
        token: session.env.token(),
        options,
        subject,
        is_over: false,
    };
    let (next, warning) = provider.go_on(request, link);
    if let Some(warning) = warning {
        session.talk.warning(&warning);
    }
    let mut message = next.sentence();
    let level = match &next {
        NextRun::Started { page, .. } => {
            message.extend(page.iter().flat_map(|page| [": ", page.as_str()]));
            Level::Notice
        }
        NextRun::ChainEnded { .. } | NextRun::NotStarted(_) => Level::Error,
    };
    let said = Annotation { level, title: subject.loop_name.clone(), message, location: None };
    session.talk.ci_line(&provider.dialect().annotation(&said));
    next
}
