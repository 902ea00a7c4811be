//! A program that stands for us in the foreground, such as the client of a container: it has our environment and our
//! signals, and every line that it prints passes through our hands.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// A longer line is handed on in parts.
const MAX_LINE: usize = 64 * 1024;

/// How often the reader may look around although nothing is printed.
const LOOK: Duration = Duration::from_millis(200);

/// How long its output is read after it has ended: a process that holds the other end open is not ours.
const DRAIN: Duration = Duration::from_secs(2);

/// Runs a program to its end, and returns its exit code. `heard` gets each line that it prints, and nothing now and then.
///
/// # Errors
/// It cannot be started.
pub async fn run(argv: &[String], heard: &mut dyn FnMut(Option<&str>)) -> io::Result<u8> {
    let (name, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut signals = Forwarded::listen()?;
    let mut command = Command::new(name);
    command
        .args(arguments)
        .envs(super::private::hidden().cloned())
        // A terminal signals all of its foreground group: in ours, the program would hear each twice, and a second one hurries.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let (sender, mut lines) = mpsc::channel(64);
    for stream in [child.stdout.take().map(boxed), child.stderr.take().map(boxed)].into_iter().flatten() {
        tokio::spawn(read(stream, sender.clone()));
    }
    drop(sender);
    let mut is_open = true;
    let mut look = tokio::time::interval(LOOK);
    let status = loop {
        tokio::select! {
            line = lines.recv(), if is_open => {
                is_open = line.is_some();
                heard(line.as_deref());
            }
            status = child.wait() => break status?,
            number = signals.next() => if let Some(pid) = pid { let _gone = kill_process(pid, number); },
            _ = look.tick() => heard(None),
        }
    };
    let rest = async {
        while let Some(line) = lines.recv().await {
            heard(Some(&line));
        }
    };
    let _held = tokio::time::timeout(DRAIN, rest).await;
    Ok(code(status))
}

/// The output of a child.
type Output = Box<dyn AsyncRead + Send + Unpin>;

fn boxed(stream: impl AsyncRead + Send + Unpin + 'static) -> Output {
    Box::new(stream)
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Hands on the lines of an output. The end of a line may be of any kind, because the reader of a log may know them all.
async fn read(stream: Output, sender: mpsc::Sender<String>) {
    let mut reader = BufReader::with_capacity(MAX_LINE, stream);
    let mut line = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        line.extend_from_slice(&chunk[..end.unwrap_or(taken)]);
        reader.consume(taken);
        if end.is_some() || line.len() >= MAX_LINE {
            let whole = std::mem::take(&mut line);
            if sender.send(String::from_utf8_lossy(&whole).into_owned()).await.is_err() {
                return;
            }
        }
    }
    if !line.is_empty() {
        let _closed = sender.send(String::from_utf8_lossy(&line).into_owned()).await;
    }
}

/// The signals that are handed on.
struct Forwarded {
    int: tokio::signal::unix::Signal,
    term: tokio::signal::unix::Signal,
    hup: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
}

impl Forwarded {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.int.recv() => Signal::INT,
            _ = self.term.recv() => Signal::TERM,
            _ = self.hup.recv() => Signal::HUP,
            _ = self.quit.recv() => Signal::QUIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_signals_reaches_the_program_through_us_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let argv = ["sh", "-c", "cut -d ' ' -f 5 /proc/self/stat; echo $$"].map(str::to_owned);
        let mut lines = Vec::new();
        let code = runtime.block_on(run(&argv, &mut |line| lines.extend(line.map(str::to_owned))));
        assert_eq!(code.unwrap(), 0);
        // It leads a group of its own, which is never the one in the foreground.
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], lines[1]);
    }
}
