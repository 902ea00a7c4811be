//! Starts an agent's session that continues a run after a hand-off, and outlives this process.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::base::advised_command;
use crate::engine::event::Handoff;
use crate::files::read;
use crate::files::replace::replace;
use crate::host::{Host, Prompt, Terms};
use crate::journal::files::RunFiles;
use crate::machine::OnHandoff;
use crate::session::context::Session;

/// Starts the session that a hand-off asks for, if any. The run is saved already, so a session that cannot
/// be started costs a warning.
pub(crate) fn spawn(
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
    match start(host, &text, files, session) {
        Ok(()) => session.talk.warning(&format!("a new session of {} continues the run", host.name())),
        Err(error) => session.talk.warning(&format!("no session was started: {error}; {advice}")),
    }
}

fn start(host: &dyn Host, text: &str, files: &RunFiles, session: &Session<'_>) -> std::io::Result<()> {
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
