//! After a hand-off: another run of the workflow is started, which goes on with the run.

use crate::ci::github::dispatch::{Link, Next};
use crate::ci::{Provider, Subject, Telling, Wanted};
use crate::report::annotations::{Annotation, Level};

use super::context::Session;

/// Names a run that goes on elsewhere.
pub(crate) fn subject(loop_name: &str, instance: &str) -> Subject {
    Subject { loop_name: loop_name.to_owned(), instance: instance.to_owned(), ..Subject::default() }
}

/// Starts the next run, and says what became of it. Without a link, the files of the run are where no other one finds
/// them.
pub(crate) fn dispatch(
    provider: &Provider,
    wanted: &Wanted,
    subject: &Subject,
    link: Option<Link>,
    session: &Session<'_>,
) -> Next {
    let telling = Telling { env: &session.env.lookup(), token: session.env.token(), wanted, subject };
    let (next, warning) = provider.go_on(telling, link);
    if let Some(warning) = warning {
        session.talk.warning(&warning);
    }
    let mut message = next.sentence();
    let level = match &next {
        Next::Run { page, .. } => {
            message.extend(page.iter().flat_map(|page| [": ", page.as_str()]));
            Level::Notice
        }
        Next::End { .. } | Next::Not(_) => Level::Error,
    };
    let said = Annotation { level, title: subject.loop_name.clone(), message, location: None };
    session.talk.ci_line(&provider.dialect().annotation(&said));
    next
}
