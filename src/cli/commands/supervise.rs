//! Acts as process 1 of a container: starts the real ll-loop as the owner of the workspace, and supervises it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::exit;
use crate::context::environment::{Environment, SUPERVISED};
use crate::process::container_init;

/// Never returns before the supervised process has ended.
pub(in crate::cli) fn supervise(arguments: &[OsString], env: &Environment) -> ExitCode {
    let workspace = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let mut extra = vec![(SUPERVISED, "1".to_owned())];
    let git = trust_in_git(env, &workspace.to_string_lossy());
    extra.extend(git.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let ended = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        runtime.block_on(container_init::supervise(arguments.iter().cloned(), &extra, &workspace))
    });
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // The command line is not read here, and with it no `--color`.
            crate::cli::output::Output::new(crate::cli::flags::Color::Auto, env)
                .error(&format!("cannot start as process 1 of a container: {error}"));
            ExitCode::from(exit::ERROR)
        }
    }
}

/// Lets git work in the workspace whoever owns it, for this process tree and without touching any file.
fn trust_in_git(env: &Environment, workspace: &str) -> [(String, String); 3] {
    // Behind what the image or the job has set in this way already.
    let count: usize = env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
    [
        ("GIT_CONFIG_COUNT".to_owned(), (count + 1).to_string()),
        (format!("GIT_CONFIG_KEY_{count}"), "safe.directory".to_owned()),
        (format!("GIT_CONFIG_VALUE_{count}"), workspace.to_owned()),
    ]
}
