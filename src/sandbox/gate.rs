//! The gate: ll-loop once more, outside, for as long as a confined action runs. It starts the engine, is the other end of
//! whatever leads out of the sandbox, passes on that the action has to end, and ends with the run.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::io::FdFlags;
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::filter::filters;
use super::forward::carry;
use super::order::{self, EngineCall, FiltersBy, GateOrder, GateReport, VARIABLE, WardenOrder, WardenSaid};
use super::proxy::Proxy;
use crate::base::sandbox::HostPattern;
use crate::files::read::{self, MIB};
use crate::files::replace::create;
use crate::process::memory_bounds;

/// How often the engine is started at most. bubblewrap fails where a mount comes or goes elsewhere on the machine, such as that of a
/// container, while it puts its own together.
const STARTS: u32 = 3;

/// What is known of the action.
#[derive(Default)]
struct ActionSeen {
    /// How the warden is told.
    control: Option<UnixStream>,
    /// What the warden said.
    said: Option<WardenSaid>,
    /// The signals that came before there was a warden.
    early: Vec<i32>,
}

/// Carries an order out, and returns the exit code of the action.
///
/// # Errors
/// The order cannot be carried out.
pub fn gate(order: &Path) -> io::Result<u8> {
    let order: GateOrder = serde_json::from_slice(&read::bytes(order, 16 * MIB).map_err(io::Error::other)?)?;
    memory_bounds::end_with(order.parent)?;
    keep_descriptors_out()?;
    let hosts = order.hosts.iter().flatten().filter_map(|host| HostPattern::parse(host).ok()).collect();
    let proxy = Arc::new(Proxy::new(hosts));
    let seen = Arc::new(Mutex::new(ActionSeen::default()));
    let hearing = open_doors(&order, &proxy, &seen)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Signals are heard from before the action starts.
    let status = runtime.block_on(attend(&order, &seen))?;
    if lock(&seen).control.is_some() {
        // With everything inside gone, its last words are there, and then the end.
        let _panicked = hearing.join();
    }
    let said = lock(&seen).said.clone();
    let report = GateReport { is_started: said.is_some(), failure: None, reached: proxy.reached() };
    let (report, code) = match said {
        // The code by which shells say that a command cannot be started.
        Some(WardenSaid::NotStarted(why)) => (GateReport { failure: Some(why), ..report }, 127),
        Some(WardenSaid::Signalled(number)) => {
            // Before the signal, which ends this process.
            write_report(&order, &report)?;
            return Ok(die_like(number));
        }
        Some(WardenSaid::Running) | None => {
            (report, status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1))
        }
    };
    write_report(&order, &report)?;
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

fn write_report(order: &GateOrder, report: &GateReport) -> io::Result<()> {
    create(Path::new(&order.report), serde_json::to_vec(report)?)
}

fn lock(seen: &Mutex<ActionSeen>) -> std::sync::MutexGuard<'_, ActionSeen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends as the action did, so that whoever waits for the gate sees the same.
fn die_like(number: i32) -> u8 {
    // A core would be that of the gate, and not of the action.
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _as_it_is = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    if let Some(signal) = Signal::from_named_raw(number) {
        let _survived = kill_process(getpid(), signal);
    }
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

/// Keeps what this process inherited from the ones it starts.
fn keep_descriptors_out() -> io::Result<()> {
    for entry in fs_err::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) =
            name.to_str().and_then(|name| name.parse::<i32>().ok()).filter(|number| *number > 2)
        else {
            continue;
        };
        #[expect(unsafe_code, reason = "see below")]
        // SAFETY: the kernel has just named it as open, this process has one thread and closes nothing meanwhile but
        // the directory that is read here, for which the call fails harmlessly once that is closed; the borrow ends
        // with the call.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _closed = rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
    Ok(())
}

/// Opens the sockets that lead out, each with a thread.
fn open_doors(
    order: &GateOrder,
    proxy: &Arc<Proxy>,
    seen: &Arc<Mutex<ActionSeen>>,
) -> io::Result<JoinHandle<()>> {
    let doors = Path::new(&order.doors);
    let control = listen(&doors.join(order::CONTROL))?;
    let told = WardenOrder {
        env: variables(),
        action: order.action.clone(),
        cwd: order.cwd.clone(),
        has_filters: order.engine.filters == FiltersBy::Warden,
        landlock: order.engine.landlock.clone(),
    };
    let seen = Arc::clone(seen);
    let hearing = thread::spawn(move || hear_warden(&control, &told, &seen));
    if order.hosts.is_some() {
        let proxy = Arc::clone(proxy);
        serve(listen(&doors.join(order::PROXY))?, move |client| proxy.serve(client));
    }
    for port in order.forward.iter().copied() {
        serve(listen(&doors.join(order::forwarded(port)))?, move |client| {
            carry(client, TcpStream::connect((Ipv4Addr::LOCALHOST, port))?)
        });
    }
    Ok(hearing)
}

/// Makes a socket that the user of the action can connect to. Its directory keeps everybody else out.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

fn serve(listener: UnixListener, with: impl Fn(UnixStream) -> io::Result<()> + Clone + Send + 'static) {
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let with = with.clone();
            thread::spawn(move || drop(with(client)));
        }
    });
}

/// Returns the environment of the action.
#[expect(
    clippy::disallowed_methods,
    reason = "the gate's own environment is how it is told that of the action"
)]
fn variables() -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes = |os: OsString| os.into_vec();
    std::env::vars_os()
        .filter_map(|(name, value)| {
            Some((name.as_bytes().strip_prefix(VARIABLE.as_bytes())?.to_vec(), bytes(value)))
        })
        .collect()
}

/// Tells the warden what to start, and hears how that ended. The first to connect is the warden: nothing else runs inside
/// before it has begun.
fn hear_warden(control: &UnixListener, told: &WardenOrder, seen: &Mutex<ActionSeen>) {
    let mut line = serde_json::to_vec(told).expect("an order of texts and numbers is JSON");
    line.push(b'\n');
    let (stream, early) = loop {
        let Ok((mut stream, _)) = control.accept() else { return };
        let Ok(twin) = stream.try_clone() else { return };
        // In one go: an action that is over at once must not be over before it is known to have begun.
        let mut seen = lock(seen);
        if stream.write_all(&line).is_ok() {
            seen.control = Some(twin);
            break (stream, std::mem::take(&mut seen.early));
        }
    };
    for number in early {
        pass_on(number, seen);
    }
    for line in BufReader::new(stream).lines() {
        let Ok(said) = line.and_then(|line| serde_json::from_str(&line).map_err(io::Error::other)) else {
            return;
        };
        lock(seen).said = Some(said);
    }
}

/// Tells the warden of a signal.
fn pass_on(number: i32, seen: &Mutex<ActionSeen>) {
    let mut seen = lock(seen);
    match &mut seen.control {
        Some(control) => drop(writeln!(control, "{number}")),
        None => seen.early.push(number),
    }
}

async fn attend(order: &GateOrder, seen: &Arc<Mutex<ActionSeen>>) -> io::Result<ExitStatus> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut ended = signal(SignalKind::child())?;
    let (mut engine, mut _filters) = start(order)?;
    let mut starts = 1;
    loop {
        let number = tokio::select! {
            _ = term.recv() => libc::SIGTERM,
            _ = int.recv() => libc::SIGINT,
            _ = hup.recv() => libc::SIGHUP,
            _ = quit.recv() => libc::SIGQUIT,
            _ = ended.recv() => {
                match engine.try_wait()? {
                    Some(status) if starts < STARTS && has_not_begun(status, seen) => {
                        starts += 1;
                        (engine, _filters) = start(order)?;
                    }
                    Some(status) => return Ok(status),
                    None => {}
                }
                continue;
            }
        };
        pass_on(number, seen);
    }
}

/// Tells whether the engine has failed by itself before anything ran inside, and nobody has asked it to end.
fn has_not_begun(status: ExitStatus, seen: &Mutex<ActionSeen>) -> bool {
    let seen = lock(seen);
    // bubblewrap ends with 1 when it cannot put its mounts together; an action ends only after its warden has connected.
    status.code() == Some(1) && seen.control.is_none() && seen.early.is_empty()
}

/// Starts the engine. Filters that it takes have to stay open until then.
fn start(order: &GateOrder) -> io::Result<(Child, Vec<File>)> {
    let EngineCall { argv: _, hidden: _, warden, user, env, filters: by, landlock: _ } = &order.engine;
    let argv = order.engine.argv_now(|path| Path::new(path).symlink_metadata().is_ok());
    let (program, options) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let taken = match by {
        FiltersBy::Engine => filters().map_err(io::Error::other)?.in_bytes().to_vec(),
        FiltersBy::Warden => Vec::new(),
    };
    let taken: Vec<File> = taken.iter().map(|filter| inherited(filter)).collect::<io::Result<_>>()?;
    let mut command = Command::new(program);
    command.args(options);
    for filter in &taken {
        command.arg("--add-seccomp-fd").arg(filter.as_raw_fd().to_string());
    }
    command.args(warden);
    // In a group of its own, it is not ended by what asks the action to end.
    command.env_clear().envs(env.iter().cloned()).process_group(0);
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    Ok((command.spawn()?, taken))
}

/// Makes a file in memory that a child inherits.
fn inherited(content: &[u8]) -> io::Result<File> {
    // Without `CLOEXEC`, for the engine reads it.
    let mut file = File::from(rustix::fs::memfd_create("filter", rustix::fs::MemfdFlags::empty())?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}
