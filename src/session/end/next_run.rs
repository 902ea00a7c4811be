//! Starts what goes on with a run after a hand-off: another run of the workflow, or a session of an agent that outlives this
//! process.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::base::advised_command;
use crate::base::run_key::RunKey;
use crate::base::text::one_line;
use crate::ci::Provider;
use crate::ci::chain::{ChainLink, NextRun};
use crate::ci::reported::{ReportOptions, ReportRequest, ReportedRun};
use crate::context::Session;
use crate::engine::event::Handoff;
use crate::files::read;
use crate::files::replace::replace;
use crate::forge::github::results::uncounted_job;
use crate::host::{Host, Prompt, Terms};
use crate::journal::files::RunFiles;
use crate::machine::OnHandoff;
use crate::report::annotations::{Annotation, AnnotationLevel};

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

/// Starts the session that a hand-off asks for, if any. The run is saved already, so a session that cannot
/// be started costs a warning.
pub(crate) fn spawn_session(
    handoff: Option<&Handoff>,
    host: Option<&'static dyn Host>,
    files: &RunFiles,
    session: &Session<'_>,
) {
    let Some(handoff) = handoff.filter(|handoff| handoff.behavior == OnHandoff::Spawn) else { return };
    let resume = advised_command::resume(files.instance());
    let advice = format!("`{resume}` continues the run");
    let Some(host) = host else {
        session
            .talk
            .warning(&format!("no session was started, because no agent may be asked here; {advice}"));
        return;
    };
    let told = handoff.continuation.as_ref().map_or_else(String::new, |text| format!("\n\n{text}"));
    let text = format!("Continue loop execution. Run: {resume}{told}");
    match start_session(host, &text, files, session) {
        Ok(()) => session.talk.warning(&format!("a new session of {} continues the run", host.name())),
        Err(error) => session.talk.warning(&format!("no session was started: {error}; {advice}")),
    }
}

fn start_session(
    host: &dyn Host,
    text: &str,
    files: &RunFiles,
    session: &Session<'_>,
) -> std::io::Result<()> {
    let call = host.prompt(&Prompt { text, ..Prompt::default() }, &Terms::default());
    let Some((program, arguments)) = call.argv.split_first() else { return Ok(()) };
    let log = fs_err::File::create(files.session())?.into_parts().0;
    let stdin = call.stdin.map_or_else(|| Ok(Stdio::null()), |text| given(&text, files))?;
    // In a process group of its own, so that Ctrl-C at the terminal does not end it with this process.
    Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(session.env.for_actions(false))
        .envs(call.env)
        .stdin(stdin)
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .map(drop)
}

/// Returns a text as the standard input of a process that outlives this one. The file is unlinked already.
fn given(text: &str, files: &RunFiles) -> std::io::Result<Stdio> {
    let path = files.session().with_extension("prompt");
    replace(&path, text)?;
    let file = read::open(&path)?;
    fs_err::remove_file(&path)?;
    Ok(file.into())
}
