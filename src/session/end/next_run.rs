//! Starts another run of the workflow after a hand-off, which resumes the run.

use crate::base::run_key::RunKey;
use crate::base::text::one_line;
use crate::ci::Provider;
use crate::ci::chain::{ChainLink, NextRun};
use crate::ci::reported::{ReportOptions, ReportRequest, ReportedRun};
use crate::forge::github::results::uncounted_job;
use crate::report::annotations::{Annotation, AnnotationLevel};
use crate::session::context::Session;

/// Names a run for reports.
pub(crate) fn subject(
    loop_name: &str,
    instance: &str,
    key: Option<&RunKey>,
    session: &Session<'_>,
) -> ReportedRun {
    // A job may run the loop several times.
    let number = key.map_or(1, RunKey::number);
    let place = uncounted_job(&session.env.lookup()).map(|job| format!("job{job}.{number}"));
    ReportedRun {
        place,
        loop_name: loop_name.to_owned(),
        instance: instance.to_owned(),
        key: key.and_then(RunKey::shown),
    }
}

/// The exit code of a run that was handed off and not stored: nobody can go on with it.
pub(crate) const UNSTORED: u8 = 4;

impl Session<'_> {
    /// Says that the step of the action that uploads the reports failed, and tells the action how it ends where another
    /// job was to go on with the run.
    pub fn say_unstored(&self, artifact: &str, is_handed_off: bool) {
        let provider = Provider::detect(&self.env.lookup());
        let message = format!(
            "the reports of the run are not stored: the upload of `{}` failed, and the log of that step says why; where there is a conflict, another job or step of this run has stored its own under this name, and they share this name: pass `key`",
            one_line(artifact, 255)
        );
        let level = if is_handed_off { AnnotationLevel::Error } else { AnnotationLevel::Warning };
        let said = Annotation { level, title: "ll-loop".to_owned(), message, location: None };
        self.talk.ci_line(&provider.dialect().annotation(&said), &provider);
        if is_handed_off && let Err(error) = provider.announce(&[("exit-code", UNSTORED.to_string())]) {
            self.talk.warning(&format!("cannot give {} all results: {error}", provider.name()));
        }
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
            AnnotationLevel::Notice
        }
        NextRun::ChainEnded { .. } | NextRun::NotStarted(_) => AnnotationLevel::Error,
    };
    let said = Annotation { level, title: subject.loop_name.clone(), message, location: None };
    session.talk.ci_line(&provider.dialect().annotation(&said), provider);
    next
}
