//! Asks programs short questions, all at once, and waits for none of them long: a program on PATH may be anything.

use std::path::Path;
use std::time::Duration;

use crate::base::explanation::Explanation;
use crate::base::text::one_line;
use crate::context::Session;
use crate::evaluate::observation::{Observation, Stop};
use crate::files::transient;
use crate::process::guard_pipe::Guard;
use crate::process::signal::Cancel;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// How long a program may take. One that is written for Node.js takes seconds to start.
const LIMIT: Duration = Duration::from_secs(10);

/// The longest answer that is shown.
const MAX_SAID: usize = 80;

/// The result of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToolAnswer {
    /// It ended well, with this line.
    Said(String),
    /// It failed, or took too long.
    Failed(String),
    /// There is no such program.
    Absent,
}

/// Asks each of these command lines, side by side.
pub(super) fn all<const N: usize>(questions: [&[&str]; N], session: &Session<'_>) -> [ToolAnswer; N] {
    // A program on PATH may be anything, and gets no more tokens than an action does.
    let env = session.env.for_actions(false);
    let path = session.env.get("PATH").map(str::to_owned);
    std::thread::scope(|scope| {
        // One after the other, five programs that do not answer would take 50 seconds.
        let threads = questions.map(|question| {
            let (env, path) = (&env, path.as_deref());
            scope.spawn(move || {
                let Some((program, arguments)) = question.split_first() else { return ToolAnswer::Absent };
                let Some(program) = spawn::find(program, path) else { return ToolAnswer::Absent };
                let env = env.clone().into_iter().collect();
                ask(&program, arguments, env)
                    .map_or_else(|why| ToolAnswer::Failed(why.to_string()), |seen| read(&seen))
            })
        });
        threads.map(|thread| {
            thread.join().unwrap_or_else(|_| ToolAnswer::Failed("it was not understood".to_owned()))
        })
    })
}

/// Runs a program in a directory where it finds nothing.
fn ask(program: &Path, arguments: &[&str], env: Vec<(String, String)>) -> Result<Observation, Explanation> {
    // Many programs read settings, or even code, of the directory in which they are started.
    let nowhere = transient::directory("")?;
    // PATH may have relative parts, which would lead elsewhere from the new directory.
    let program = std::path::absolute(program)?;
    let program = program.to_str().ok_or_else(|| Explanation::new("its path is not UTF-8"))?;
    let program = Program {
        argv: [program].iter().chain(arguments).map(|&word| word.to_owned()).collect(),
        env,
        cwd: Some(nowhere.path().to_owned()),
        stdin: None,
        guard: Guard::default(),
    };
    let limits = ProcessLimits { end: Some((LIMIT, Stop::Timeout)), ..ProcessLimits::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime?;
    let (_never, mut cancel) = Cancel::channel();
    Ok(runtime.block_on(spawn::run(&program, limits, &mut cancel, &mut |_, _| Heard::More)))
}

fn read(seen: &Observation) -> ToolAnswer {
    let said = |text: &str| text.lines().map(|line| one_line(line, MAX_SAID)).find(|line| !line.is_empty());
    let (stdout, stderr) = (said(seen.stdout.as_str()), said(seen.stderr.as_str()));
    if seen.succeeded() {
        // Some programs print their version on stderr.
        return ToolAnswer::Said(stdout.or(stderr).unwrap_or_default());
    }
    ToolAnswer::Failed(match (seen.stop, &seen.failure) {
        (Some(_), _) => format!("it did not answer within {} s", LIMIT.as_secs()),
        (None, Some(failure)) => one_line(failure, MAX_SAID),
        (None, None) => format!("exit {}: {}", seen.exit_code, stderr.or(stdout).unwrap_or_default()),
    })
}
